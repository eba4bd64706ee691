//! `weir observe export --parquet` and `weir observe import --parquet`.

#[cfg(feature = "parquet")]
mod export;
#[cfg(feature = "parquet")]
mod import;

use crate::cli::ObserveExportArgs;
use crate::error::CliError;
use std::path::Path;

#[cfg(feature = "parquet")]
pub(super) fn export(args: &ObserveExportArgs) -> Result<u8, CliError> {
    export::run(args)
}

#[cfg(feature = "parquet")]
pub(super) fn import(path: &Path, out: &Path) -> Result<u8, CliError> {
    import::run(path, out)
}

#[cfg(not(feature = "parquet"))]
pub(super) fn export(args: &ObserveExportArgs) -> Result<u8, CliError> {
    Err(CliError::NoParquet { path: args.parquet.clone() })
}

#[cfg(not(feature = "parquet"))]
pub(super) fn import(path: &Path, _: &Path) -> Result<u8, CliError> {
    Err(CliError::NoParquet { path: path.to_owned() })
}
