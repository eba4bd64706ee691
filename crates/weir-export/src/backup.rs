//! Backups as statements and settings of other tools: T-SQL, Ola Hallengren's DatabaseBackup,
//! dbatools and pgBackRest.
//!
//! Stripes, transfer size and compression come from the description of a backup, paths from the
//! mount points of its targets. Scripts contain no secrets: access to URLs needs a credential of
//! the server or environment variables.

mod dbatools;
mod job;
mod ola;
mod pgbackrest;
mod tsql;

use crate::change::Change;
use crate::error::ExportError;
use crate::kind::Kind;
use crate::options::{Options, refused};
use crate::script::Script;
use job::Job;

/// Returns the kinds of scripts for a backup, each with the reason if it cannot write one with this
/// number of targets and of stripes.
#[must_use]
pub fn backup_kinds(targets: usize, stripes: usize) -> Vec<(Kind, Option<String>)> {
    let kinds = Kind::ALL.into_iter().filter(|kind| kind.is_backup());
    let reason = |kind| match kind {
        Kind::Pgbackrest => pgbackrest::one_repository(targets),
        _ => job::too_many(stripes, false),
    };
    kinds.map(|kind| (kind, reason(kind))).collect()
}

pub(crate) fn write(
    script: &mut Script,
    change: &Change,
    options: &Options,
) -> Result<(), ExportError> {
    let kind = script.kind();
    let Some(backup) = &options.backup else {
        let reason = "it needs the description of a backup; give --backup FILE, which weir backup \
                      plan --out-backup writes";
        return Err(refused(format!("--as {kind}"), reason.to_owned()));
    };
    let job = Job { kind, change, options, backup };
    job.check()?;
    match kind {
        Kind::Ola => ola::write(script, &job),
        Kind::Dbatools => dbatools::write(script, &job),
        Kind::Pgbackrest => pgbackrest::write(script, &job),
        _ => tsql::write(script, &job),
    }
}
