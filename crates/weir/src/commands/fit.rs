//! `weir fit`: whether a layout carries a need.

use super::needs::needed;
use crate::cli::FitArgs;
use crate::error::{CliError, NO};
use crate::output;
use weir_catalog::Catalog;
use weir_report::fit::FitAnswer;
use weir_tune::{FitOptions, fit};

pub(crate) fn run(args: &FitArgs, catalog: &Catalog) -> Result<u8, CliError> {
    let needed = needed(&args.layout, &args.need, catalog)?;
    let name = args.layout.display().to_string();
    let bursts = args.bursts || needed.bursts;
    let options = FitOptions { seed: args.seed, bursts };
    let mut report = fit(&name, &needed.text, &needed.need, catalog, options)?;
    report.notes.extend(needed.notes);
    output::print(&report, args.output.format())?;
    Ok(if report.answer == FitAnswer::No { NO } else { 0 })
}
