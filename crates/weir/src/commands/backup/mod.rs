//! `weir backup`: one module for each of its verbs.

pub(crate) mod exports;
mod internals;
pub(crate) mod kept;
mod key;
mod list;
mod plan;
mod prune;
mod run;
mod verify;
pub(crate) mod volumes;

use crate::cli::BackupCommand;
use crate::error::CliError;
use weir_catalog::Catalog;

pub(crate) fn run(command: &BackupCommand, catalog: &Catalog) -> Result<u8, CliError> {
    match command {
        BackupCommand::Run(args) => run::run(args, catalog),
        BackupCommand::Plan(args) => plan::run(args, catalog),
        BackupCommand::Internals(args) => internals::run(args, catalog),
        BackupCommand::List(args) => list::list(args, catalog),
        BackupCommand::Show(args) => list::show(args, catalog),
        BackupCommand::Verify(args) => verify::run(args, catalog),
        BackupCommand::Prune(args) => prune::run(args, catalog),
        BackupCommand::Key => key::run(),
    }
}
