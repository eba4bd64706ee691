//! The need that the files of `--from` or `--load` show.

use super::observe::Source;
use crate::cli::ImportArgs;
use crate::error::CliError;
use std::path::PathBuf;
use weir_catalog::Catalog;
use weir_layout::Layout;
use weir_observe::sizing::Roles;
use weir_plan::Measure;
use weir_plan::measure::{self, Samples as _};
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

/// Fills `file` with the observed rates and sizes of each role; returns notes about them. `present` is the layout of
/// the observed system.
pub(super) fn fill(
    file: &mut NeedFile,
    paths: &[PathBuf],
    measure: &Measure,
    (present, catalog): (Option<Layout>, &Catalog),
) -> Result<Vec<String>, CliError> {
    measure::fill(file, (&names(paths), &source_of(paths)?), measure, (present, catalog))
}

/// Does the same for a layout that the load is to run on. It is taken for that of the observed system unless the
/// observation contains another one, as a run of Weir does.
pub(super) fn fill_for(
    file: &mut NeedFile,
    paths: &[PathBuf],
    measure: &Measure,
    (layout, catalog): (Layout, &Catalog),
) -> Result<Vec<String>, CliError> {
    let source = source_of(paths)?;
    let present = source.header()?.layout.is_none().then_some(layout);
    measure::fill(file, (&names(paths), &source), measure, (present, catalog))
}

fn names(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn source_of(paths: &[PathBuf]) -> Result<Source, CliError> {
    Source::any(paths, &ImportArgs::default())
}
