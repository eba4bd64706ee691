//! The proof that a database is whole: it is recovered from the restored volumes.

use super::targets::Goal;
use crate::cli::RestoreArgs;
use crate::error::CliError;
use crate::signals::Signals;
use std::path::Path;
use weir_backup::BackupError;
use weir_oltp::Description;
use weir_report::number::grouped;
use weir_runner::oltp::serving::served_files;
use weir_runner::{OltpOptions, OltpRun};

/// Reads the description of the database.
pub(super) fn read(path: &Path) -> Result<Description, CliError> {
    let text = crate::input::read(path, "workload description")?;
    Ok(Description::parse(&path.display().to_string(), &text)?)
}

/// Recovers the database on the restored volumes; returns what was found, in a sentence.
pub(super) fn recover(
    args: &RestoreArgs,
    description: &Description,
    goal: &Goal,
    signals: &Signals,
) -> Result<String, CliError> {
    let Some(own) = goal.own() else {
        return Err(CliError::Refused(
            "a database is recovered on the volumes of a layout: restore with --to LAYOUT --data \
             DIR"
            .to_owned(),
        ));
    };
    let files = served_files(&own.layout, &own.server.uris(), own.server.refused());
    let options = OltpOptions {
        files: &files,
        seed: 1,
        every: None,
        acknowledged: args.acknowledged.as_deref(),
        is_stopped: Some(&|| signals.code().is_some()),
        service: None,
        resize: None,
    };
    let (_, recovery) = OltpRun::open(description, options)?;
    if recovery.is_new {
        return Err(CliError::from(BackupError::Unusable(
            "the restored volumes hold no database: the backup is not proved".to_owned(),
        )));
    }
    let held = match recovery.acknowledged {
        Some(number) => {
            format!("nothing that was acknowledged, up to transaction {}, is lost", grouped(number))
        }
        None => "all pages are as the log says".to_owned(),
    };
    Ok(format!(
        "the database was recovered: {} transactions replayed, the last is {}, {} pages checked; \
         {held}",
        grouped(recovery.transactions),
        grouped(recovery.commit),
        grouped(recovery.pages_read),
    ))
}
