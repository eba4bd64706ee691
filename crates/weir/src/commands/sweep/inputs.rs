//! The files of a sweep.

use super::traces;
use crate::cli::SweepArgs;
use crate::commands::traces::are_traces;
use crate::commands::{plan, sim};
use crate::error::CliError;
use crate::input::{read as read_text, read_layout_file};
use std::io;
use std::path::{Path, PathBuf};
use weir_catalog::Catalog;
use weir_sweep::{Inputs, Load, NamedText, Sweep, SweepFile};
use weir_workload::Source;

/// Reads a sweep file and the files that it names, which are relative to its folder.
pub(super) fn read(
    path: &Path,
    args: &SweepArgs,
    catalog: &Catalog,
    editions: &[String],
) -> Result<Sweep, CliError> {
    let text = read_text(path, "sweep file")?;
    let name = path.display().to_string();
    let file = SweepFile::parse(&name, &text)?;
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    let workload: Vec<PathBuf> = file.workload.all().iter().map(|own| folder.join(own)).collect();
    let is_of_traces = are_traces(&workload)?;
    if !is_of_traces {
        sim::are_descriptions(&workload)?;
    }
    let paths = [folder.join(&file.layout), path.to_owned()];
    let own = file.catalog.as_ref().map(|own| folder.join(own));
    for (option, out) in [("--out", &args.out), ("--html", &args.html)] {
        let mut inputs = paths.iter().chain(&workload).chain(&own);
        if let Some(out) = out
            && inputs.any(|own| plan::is_same(own, out))
        {
            let words = format!("{option} {}: is an input file; use another name", out.display());
            return Err(CliError::Refused(words));
        }
    }
    // Names as the sweep file has them: results must not depend on the folder of a shard.
    let named = |name: &str, what| -> Result<NamedText, CliError> {
        let text = read_text(&folder.join(name), what)?;
        Ok(NamedText { name: name.to_owned(), text })
    };
    let layout = NamedText { text: read_layout_file(&paths[0])?, name: file.layout.clone() };
    let load = if is_of_traces {
        Load::Traces(traces::read(&workload, &file)?)
    } else {
        let files = file.workload.all().iter().map(|name| named(name, "workload"));
        Load::Texts(files.collect::<Result<_, _>>()?)
    };
    let inputs = Inputs {
        version: env!("CARGO_PKG_VERSION"),
        sweep: NamedText { name, text },
        layout,
        workload: load,
        edition: file.catalog.as_ref().map(|name| named(name, "catalog edition")).transpose()?,
        catalog: catalog.clone(),
        editions: editions.to_vec(),
        source: Box::new(Beside(folder.clone())),
    };
    Ok(Sweep::new(inputs)?)
}

/// The environment, and include files beside the job file.
struct Beside(PathBuf);

impl Source for Beside {
    fn env(&self, name: &str) -> Option<String> {
        sim::Surroundings.env(name)
    }

    fn include(&self, from: &str, name: &str) -> io::Result<String> {
        sim::Surroundings.include(&self.0.join(from).display().to_string(), name)
    }
}
