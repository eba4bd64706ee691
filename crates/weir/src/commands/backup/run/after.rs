//! The steps after a complete backup. Nothing that goes wrong here makes the backup a failure: it is a
//! warning, and says that the backup is complete.

use super::super::kept::{self, Bar};
use super::base::Found;
use super::limits::Limits;
use super::served::{Freeze, Served};
use super::targets::Targets;
use crate::cli::BackupRunArgs;
use crate::error::{CliError, NO};
use crate::output;
use crate::signals::Signals;
use weir_backup::format::BackupId;
use weir_backup::key::Keys;
use weir_backup::verify::verify_assembly;
use weir_backup::{Assembly, BackupError, Library, Verified, Watch};
use weir_report::backup_run::BackupRunReport;
use weir_report::backups::{counted, size};
use weir_report::status::Refused;

/// The parts of a backup that are needed after it.
pub(super) struct Rest<'a> {
    pub(super) limits: &'a Limits<'a>,
    /// The full backup of a differential.
    pub(super) base: Option<Found<'a>>,
    pub(super) targets: &'a Targets,
    pub(super) served: Option<&'a Served>,
    pub(super) keys: Option<&'a Keys>,
}

/// Warns that something went wrong beside a complete backup.
pub(super) fn warn(report: &mut BackupRunReport, what: &str) {
    output::talk(&format!("weir: warning: the backup is complete, but {what}"));
    report.notes.push(format!("warning: {what}"));
}

/// Warns of a volume that is not in the backup.
pub(super) fn warn_of_missing(report: &mut BackupRunReport, own: &Refused) {
    let what =
        format!("{} is not in this backup, because it is not served: {}", own.name, own.reason);
    output::talk(&format!("weir: warning: {what}"));
    report.notes.push(format!("warning: {what}"));
}

/// Explains the report, verifies the backup, and ends the freeze. Returns the exit code.
pub(super) fn finish(
    args: &BackupRunArgs,
    report: &mut BackupRunReport,
    mut rest: Rest<'_>,
    (freeze, signals): (Option<Freeze>, &Signals),
) -> u8 {
    let mut code = 0;
    // The server does not know the limit of the backup itself.
    let own = report.run.binding_limit.clone().filter(|_| args.limit.is_some());
    let explained = rest.limits.explain(&mut report.run);
    report.run.binding_limit = own.or_else(|| report.run.binding_limit.take());
    if let Err(error) = explained {
        warn(report, &format!("the server did not tell its limits: {error}"));
    }
    if let Some(base) = &mut rest.base {
        report.notes.push(base.note());
        if let Err(error) = base.look_again() {
            warn(report, &format!("it may be impossible to restore: {error}"));
            code = NO;
        }
    }
    if args.verify {
        let verified = verify(args, report, &rest, signals);
        match verified {
            Ok(()) if report.is_verified == Some(false) => code = NO,
            Ok(()) => {}
            Err(CliError::Stripes(BackupError::Interrupted)) => {
                warn(report, "its verification was interrupted");
                code = signals.code().unwrap_or(NO);
            }
            Err(error) => {
                warn(report, &format!("it could not be verified: {error}"));
                code = NO;
            }
        }
    }
    if let Some(freeze) = freeze {
        release(args, report, freeze);
    }
    code
}

/// Ends the freeze. A full backup becomes the base of later differentials, unless it was to be verified
/// and was not found sound.
fn release(args: &BackupRunArgs, report: &mut BackupRunReport, freeze: Freeze) {
    let names: Vec<String> =
        freeze.answer.exports.iter().map(|export| export.name.clone()).collect();
    let is_trusted = !args.verify || report.is_verified == Some(true);
    let is_full = !args.differential && !args.copy_only;
    let is_base = is_full && is_trusted;
    if is_full && !is_trusted {
        report.notes.push(
            "changes are not counted from it, since it was not found sound: differentials go on \
             building on an older full backup, or are refused"
                .to_owned(),
        );
    }
    match freeze.release(is_trusted) {
        Ok(released) => {
            report.kept_bytes = Some(released.kept_bytes);
            let left: Vec<String> =
                names.into_iter().filter(|name| !released.base_of.contains(name)).collect();
            if is_base && !left.is_empty() {
                let left = left.join(", ");
                warn(
                    report,
                    &format!(
                        "the server does not count the changes of {left} from it: differentials go \
                         on building on an older full backup, or are refused"
                    ),
                );
            }
        }
        Err(error) => warn(
            report,
            &format!(
                "the server did not end the freeze in order, and may not count changes from this \
                 backup: {error}"
            ),
        ),
    }
}

/// Reads the backup back, and the full backup that it builds on.
fn verify(
    args: &BackupRunArgs,
    report: &mut BackupRunReport,
    rest: &Rest<'_>,
    signals: &Signals,
) -> Result<(), CliError> {
    let places = rest.targets.open(&args.from, rest.served)?;
    let mut library = Library::open(places)?;
    let own = report.id.parse().map_err(|error: weir_backup::format::id::ParseIdError| {
        CliError::Stripes(BackupError::Failed(error.to_string()))
    })?;
    let base = rest.base.as_ref().map(Found::id);
    let (mut is_sound, mut notes) = (true, Vec::new());
    for id in base.into_iter().chain([own]) {
        let verified = read_back(args, &mut library, (id, rest.keys), signals)?;
        is_sound &= verified.is_sound();
        let which = match id == own {
            true => String::new(),
            false => format!(" of its full backup {id}"),
        };
        let counts = &verified.counts;
        notes.extend(counts.damage.iter().map(|damage| format!("damage{which}: {damage}")));
        let bytes = size(counts.raw_bytes);
        notes.push(format!("read back{which}: {}, {bytes}", counted(counts.frames, "frame")));
    }
    report.is_verified = Some(is_sound);
    report.notes.extend(notes);
    Ok(())
}

fn read_back(
    args: &BackupRunArgs,
    library: &mut Library,
    (id, keys): (BackupId, Option<&Keys>),
    signals: &Signals,
) -> Result<Verified, BackupError> {
    let assembly = Assembly::new(library.inputs(id)?, Some(id), keys)?;
    let watch = Watch::default();
    let bar = Bar::new(assembly.length(), args.quiet);
    kept::watched(signals, &bar, &watch, || verify_assembly(assembly, &watch))
}
