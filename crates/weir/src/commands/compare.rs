//! `weir compare`: several sides, and the differences that are more than noise.

use super::page;
use crate::cli::{CompareArgs, ImportArgs};
use crate::commands::{observe, plan, sim};
use crate::error::{CliError, NO, USAGE};
use crate::input::{read, read_layout};
use crate::output;
use std::fs::{self, File};
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use weir_catalog::Catalog;
use weir_compare::{Input, Observed, Options, Request, Side, Workload, compare};
use weir_layout::Layout;
use weir_observe::joined::ahead;
use weir_observe::{Ending, Reader};
use weir_report::number::float;

pub(crate) fn run(args: &CompareArgs, catalog: &Catalog) -> Result<u8, CliError> {
    check(args)?;
    let options = options(args);
    let workload = workload(args)?;
    let layouts = args.layout.iter().map(|path| read_layout(path, catalog));
    let layouts = layouts.collect::<Result<Vec<_>, _>>()?;
    let mut reading = Reading { import: &args.import, catalog, has_imported: false };
    let mut sides = Vec::new();
    for (place, path) in args.sides.iter().enumerate() {
        let layout = if layouts.len() == 1 { layouts.first() } else { layouts.get(place) };
        sides.push(reading.side(path, layout)?);
    }
    if let (Some(option), false) = (args.import.given(), reading.has_imported) {
        let words =
            format!("{option} is for files of other tools, and no side is one; leave it out");
        return Err(CliError::Refused(words));
    }
    let request = Request { catalog, workload: workload.as_ref(), options: &options };
    let report = compare(sides, &request)?;
    if let Some(path) = &args.html {
        page::write(path, &report.page()?)?;
    }
    output::print(&report, args.output.format())?;
    Ok(match () {
        () if report.is_worse => NO,
        () if report.is_undecided => USAGE,
        () => 0,
    })
}

fn check(args: &CompareArgs) -> Result<(), CliError> {
    if args.layout.len() > 1 && args.layout.len() != args.sides.len() {
        return Err(CliError::Refused(format!(
            "--layout is given {} times for {} sides: give it once, or once for each side",
            args.layout.len(),
            args.sides.len()
        )));
    }
    if let Some(path) = &args.html {
        let mut inputs = args.sides.iter().chain(&args.workload).chain(&args.layout);
        if inputs.any(|own| plan::is_same(own, path)) {
            let words = format!("--html {}: is an input file; use another name", path.display());
            return Err(CliError::Refused(words));
        }
        plan::can_write("--html", path)?;
    }
    Ok(())
}

fn options(args: &CompareArgs) -> Options {
    Options {
        // The share is in millionths.
        tolerance: float(args.tolerance) / 1e6,
        subjects: args.subject.iter().cloned().collect(),
        metrics: args.metric.iter().cloned().collect(),
        map: args.map.clone(),
        total_only: args.total,
        seeds: args.seeds,
        seed: args.seed,
    }
}

fn workload(args: &CompareArgs) -> Result<Option<Workload>, CliError> {
    if args.workload.is_empty() {
        return Ok(None);
    }
    if sim::are_descriptions(&args.workload)? {
        let (databases, backups) = sim::read_descriptions(&args.workload, args.runtime)?;
        return Ok(Some(Workload::Descriptions(databases, backups)));
    }
    let jobs = sim::read_jobs(&args.workload)?.scale(None, args.runtime);
    sim::tell_of_ignored(&jobs);
    Ok(Some(Workload::Jobs(jobs)))
}

/// The sides as they are read.
struct Reading<'a> {
    import: &'a ImportArgs,
    catalog: &'a Catalog,
    /// True once a file of another tool was imported.
    has_imported: bool,
}

impl Reading<'_> {
    /// Reads a side: a file, or the files of a folder.
    fn side(&mut self, path: &Path, layout: Option<&Layout>) -> Result<Side, CliError> {
        let name = path.display().to_string();
        if !path.is_dir() {
            return Ok(Side { name, inputs: vec![self.input(path, layout)?] });
        }
        let failed = |source| CliError::Read { path: path.to_owned(), source };
        let mut files: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(path).map_err(failed)? {
            let own = entry.map_err(failed)?.path();
            let is_hidden =
                own.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            if own.is_file() && !is_hidden {
                files.push(own);
            }
        }
        files.sort();
        let inputs = files.iter().map(|own| self.input(own, layout));
        Ok(Side { name, inputs: inputs.collect::<Result<_, _>>()? })
    }

    /// Reads an input of any kind.
    fn input(&mut self, path: &Path, layout: Option<&Layout>) -> Result<Input, CliError> {
        if observe::is_observation(path)? {
            let file = File::open(path);
            let file = file.map_err(|source| CliError::Read { path: path.to_owned(), source })?;
            return observation(path, file, layout, Vec::new(), self.catalog);
        }
        if path.extension().is_some_and(|end| end == "toml") {
            return Ok(Input::Layout(Box::new(read_layout(path, self.catalog)?)));
        }
        if begins_as_json(path)? {
            let text = read(path, "result")?;
            if weir_compare::is_result(&text) {
                return Ok(Input::Result(text));
            }
        }
        self.has_imported = true;
        let (file, notes) = observe::imported(&[path.to_owned()], self.import)?;
        observation(path, file, layout, notes, self.catalog)
    }
}

/// Returns whether a file begins as a JSON document of moderate size.
fn begins_as_json(path: &Path) -> Result<bool, CliError> {
    /// Results are far smaller. Inputs of other tools may be larger, and are imported in parts.
    const LARGEST: u64 = 1 << 28;
    let failed = |source| CliError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.len() > LARGEST {
        return Ok(false);
    }
    let mut start = Vec::new();
    file.take(64).read_to_end(&mut start).map_err(failed)?;
    let first = start.iter().find(|byte| !byte.is_ascii_whitespace());
    Ok(matches!(first, Some(b'{' | b'[')))
}

fn observation(
    path: &Path,
    mut file: File,
    layout: Option<&Layout>,
    mut notes: Vec<String>,
    catalog: &Catalog,
) -> Result<Input, CliError> {
    let wrong = |source| CliError::Observation { path: path.to_owned(), source };
    let failed = |source| CliError::Read { path: path.to_owned(), source };
    let mut reader = Reader::open(BufReader::new(&file)).map_err(wrong)?;
    reader.skip_to_end().map_err(wrong)?;
    let (header, _, ending) = reader.into_parts();
    if ending != Ending::Complete {
        notes.push(format!("{}: {ending}", path.display()));
    }
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let reader = Reader::open(BufReader::with_capacity(1 << 20, file)).map_err(wrong)?;
    let layout = match (layout, &header.layout) {
        (Some(layout), _) => Some(layout.clone()),
        (None, Some(kept)) => match Layout::parse(&kept.name, &kept.text, catalog) {
            Ok(layout) => Some(layout),
            Err(error) => {
                notes.push(format!(
                    "{}: the layout of the run, {}, is invalid now ({error}; try --catalog or --layout)",
                    path.display(),
                    kept.name
                ));
                None
            }
        },
        (None, None) => None,
    };
    let chunks = ahead(reader);
    Ok(Input::Observation(Box::new(Observed { header, chunks, layout, notes })))
}
