//! `weir backup`: one module for each of its verbs.

mod key;

use crate::cli::BackupCommand;
use crate::error::CliError;
use weir_catalog::Catalog;

pub(crate) fn run(command: &BackupCommand, _catalog: &Catalog) -> Result<u8, CliError> {
    match command {
        BackupCommand::Key => key::run(),
    }
}
