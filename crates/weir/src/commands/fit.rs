//! `weir fit`: whether a layout carries one or more needs.

use super::needs::{Needed, needed, needed_on};
use crate::cli::{FitArgs, NeedArgs};
use crate::error::{CliError, NO};
use crate::output;
use std::path::Path;
use weir_catalog::Catalog;
use weir_report::fit::FitAnswer;
use weir_tune::{FitOptions, NamedNeed, fit};

/// The name of the first need, if there are several.
const PEAK: &str = "peak";
/// The name of the need of `--night`.
const NIGHT: &str = "night";

pub(crate) fn run(args: &FitArgs, catalog: &Catalog) -> Result<u8, CliError> {
    let Needed { need, mut text, bursts, mut notes } = needed(&args.layout, &args.need, catalog)?;
    let has_others = args.night.is_some() || !args.also.is_empty();
    let mut needs = vec![NamedNeed {
        name: has_others.then(|| PEAK.to_owned()),
        need,
        bursts: args.bursts || bursts,
    }];
    let night = args.night.map(|hours| (NIGHT.to_owned(), args.need.clone(), Some(hours)));
    let also = args.also.iter().map(|path| {
        let own = NeedArgs { need: Some(path.clone()), ..NeedArgs::default() };
        (name_of(path), own, None)
    });
    for (name, own, hours) in night.into_iter().chain(also) {
        // It may add files of its roles to the layout.
        let needed = needed_on((&args.layout, &text), &own, hours, catalog)?;
        text = needed.text;
        let bursts = args.bursts || needed.bursts;
        notes.extend(needed.notes.iter().map(|note| format!("{name}: {note}")));
        needs.push(NamedNeed { name: Some(name), need: needed.need, bursts });
    }
    let names: Vec<_> = needs.iter().map(|own| &own.name).collect();
    if let Some(twice) = (1..names.len()).find(|at| names[..*at].contains(&names[*at])) {
        let name = names[twice].as_deref().unwrap_or_default();
        let words = format!("two needs are called {name}; rename one of the files");
        return Err(CliError::Refused(words));
    }
    let options = FitOptions { seed: args.seed, no_downtime: args.no_downtime };
    let name = args.layout.display().to_string();
    let mut report = fit(&name, &text, &needs, catalog, options)?;
    report.notes.extend(notes);
    output::print(&report, args.output.format())?;
    Ok(if report.answer == FitAnswer::No { NO } else { 0 })
}

/// Returns the name of a need file without its ending.
fn name_of(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
