//! The need that the files of `--from` or `--load` show.

use super::observe::Source;
use crate::cli::ImportArgs;
use crate::error::CliError;
use std::path::PathBuf;
use weir_catalog::Catalog;
use weir_layout::Layout;
use weir_observe::sizing::Roles;
use weir_plan::Measure;
use weir_plan::measure;
use weir_plan::need::NeedFile;

/// Returns the measure that options ask for.
pub(super) fn measure_of(
    percentile: Option<f64>,
    growth: Option<u64>,
    roles: &[(String, String)],
    is_as_observed: bool,
) -> Measure {
    let own = Measure::default();
    Measure {
        percentile: percentile.unwrap_or(own.percentile),
        growth: growth.unwrap_or(own.growth),
        roles: Roles { said: roles.iter().cloned().collect() },
        is_as_observed,
        ..own
    }
}

/// Fills `file` with the observed rates and sizes of each role; returns notes about them.
pub(super) fn fill(
    file: &mut NeedFile,
    paths: &[PathBuf],
    measure: &Measure,
    (present, catalog): (Option<Layout>, &Catalog),
) -> Result<Vec<String>, CliError> {
    let name = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let source = Source::any(paths, &ImportArgs::default())?;
    measure::fill(file, (&name, &source), measure, (present, catalog))
}
