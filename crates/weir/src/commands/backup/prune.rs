//! `weir backup prune`: removes the backups that no rule keeps.

use super::exports::Exports;
use super::kept;
use crate::cli::BackupPruneArgs;
use crate::error::CliError;
use crate::output;
use std::time::{SystemTime, UNIX_EPOCH};
use weir_backup::library::{Entry, State};
use weir_backup::retention::{Candidate, Decision, Rules, Wholeness, decide_about, order};
use weir_backup::{Cancel, Library};
use weir_catalog::Catalog;
use weir_report::backups::{BackupLine, PruneLine, PruneReport, short_id};

pub(super) fn run(args: &BackupPruneArgs, catalog: &Catalog) -> Result<u8, CliError> {
    let rules = Rules {
        last: args.keep_last,
        daily: args.keep_daily,
        weekly: args.keep_weekly,
        monthly: args.keep_monthly,
        is_incomplete_removed: args.incomplete,
        is_damaged_removed: args.damaged,
    };
    if rules.is_empty() {
        return Err(CliError::Refused(
            "no rule keeps a backup: give --keep-last, --keep-daily, --keep-weekly or \
             --keep-monthly"
                .to_owned(),
        ));
    }
    let (mut library, exports) =
        kept::library(&args.places, &args.server, catalog, &Cancel::default())?;
    for name in &args.name {
        if !library.entries().iter().any(|entry| entry.identity.name == *name) {
            return Err(CliError::Refused(format!("there are no backups named {name:?}")));
        }
    }
    refuse_unreadable(&library)?;
    let chosen = |entry: &&Entry| args.name.is_empty() || args.name.contains(&entry.identity.name);
    let all: Vec<Candidate> = library.entries().iter().map(candidate).collect();
    let is_named = |own: &Candidate| args.name.is_empty() || args.name.contains(&own.name);
    let decisions = decide_about(&all, &rules, now_unix_ms(), is_named);
    let mut report = PruneReport {
        places: kept::place_names(&args.places),
        is_dry_run: args.dry_run,
        ..PruneReport::default()
    };
    for (entry, decision) in library.entries().iter().zip(&decisions) {
        if chosen(&entry) {
            let is_removed = decision.is_removal();
            report.freed_bytes += if is_removed { entry.stored_bytes } else { 0 };
            let backup = kept::line(entry);
            let (reason, details) = reason(decision, &backup);
            report.backups.push(PruneLine { backup, is_removed, reason, details });
        }
    }
    if !args.dry_run {
        remove(&mut library, (&all, &decisions), |now| {
            decide_about(now, &rules, now_unix_ms(), is_named)
        })?;
    }
    exports.map_or(Ok(()), Exports::close)?;
    output::print(&report, args.output.format())?;
    Ok(0)
}

/// Refuses to prune beside a finished stripe that cannot be read: it may be of a differential, whose
/// full backup must stay.
fn refuse_unreadable(library: &Library) -> Result<(), CliError> {
    let Some(found) = library.strangers().find(|found| found.is_published) else { return Ok(()) };
    let problem =
        found.problem.clone().unwrap_or_else(|| format!("{} is of no backup", found.name));
    Err(CliError::Refused(format!(
        "nothing is pruned, since {} may be of a differential backup and cannot be read: {problem}; \
         read it with the version of weir that wrote it, or move it away",
        found.name
    )))
}

/// Removes what was decided, if it still is to be removed: a differential may have been begun on it in
/// the meantime.
fn remove(
    library: &mut Library,
    (all, decisions): (&[Candidate], &[Decision]),
    decide: impl Fn(&[Candidate]) -> Vec<Decision>,
) -> Result<(), CliError> {
    library.refresh()?;
    refuse_unreadable(library)?;
    let now: Vec<Candidate> = library.entries().iter().map(candidate).collect();
    let again = decide(&now);
    for index in order(all, decisions) {
        let id = all[index].id;
        let Some(at) = now.iter().position(|own| own.id == id) else { continue };
        if again[at].is_removal() {
            library.remove(id)?;
            continue;
        }
        let (reason, _) = reason(&again[at], &kept::line(&library.entries()[at]));
        output::talk(&format!(
            "weir: {id} is kept after all, since something changed meanwhile: {reason}"
        ));
    }
    Ok(())
}

fn candidate(entry: &Entry) -> Candidate {
    Candidate {
        id: entry.identity.id,
        name: entry.identity.name.clone(),
        kind: entry.identity.kind,
        base: entry.identity.base,
        created_unix_ms: entry.identity.created_unix_ms,
        modified_unix_ms: entry.modified_unix_ms,
        wholeness: match entry.state {
            State::Complete => Wholeness::Complete,
            State::Missing(_) => Wholeness::Missing,
            State::Incomplete => Wholeness::Incomplete,
            State::Damaged => Wholeness::Damaged,
        },
    }
}

/// Returns the reason of a decision on few columns, and in a sentence if there is more to say.
fn reason(decision: &Decision, backup: &BackupLine) -> (String, Option<String>) {
    let (short, details) = match decision {
        Decision::Kept(rule) => return (format!("--keep-{rule}"), None),
        Decision::Needed(id) => return (format!("{} needs it", short_id(&id.to_string())), None),
        Decision::Removed => ("no rule keeps it", None),
        Decision::NotChosen => ("another name", None),
        Decision::Unfinished => (
            "incomplete",
            Some(
                "it was written to within a day, so it may still be running; --incomplete removes it",
            ),
        ),
        Decision::Undated => (
            "incomplete",
            Some(
                "its place does not say when it was last written to, so it may still be running; \
                 --incomplete removes it",
            ),
        ),
        Decision::Elsewhere => (
            "stripes missing",
            Some("they may be elsewhere: name that place, too; --incomplete removes it"),
        ),
        Decision::Damaged => (
            "damaged",
            Some(
                "it was complete once: weir backup verify says what can still be restored, and \
                 --damaged removes it",
            ),
        ),
        Decision::Orphan => (
            "full not here",
            Some(
                "its full backup is not complete in these places: name the place that has it, or \
                 remove the stripes by hand",
            ),
        ),
        Decision::RemovedIncomplete => ("incomplete", Some("it was never finished")),
        Decision::RemovedDamaged => ("damaged", Some("--damaged was given")),
    };
    let problems = backup.problems();
    let details = details.map(|details| match problems.is_empty() {
        true => details.to_owned(),
        false => format!("{problems}; {details}"),
    });
    (short.to_owned(), details)
}

/// Returns the present Unix time in milliseconds.
fn now_unix_ms() -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "the age of an incomplete backup is by the clock"
    )]
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.ok().and_then(|since| u64::try_from(since.as_millis()).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use weir_backup::format::{BackupId, Identity, Kind};
    use weir_backup::memory::{self, MemorySource};
    use weir_backup::place::{Folder, Place};

    fn identity(id: u8, base: Option<u8>) -> Identity {
        Identity {
            id: BackupId::from_bytes([id; 16]),
            name: "sales".to_owned(),
            kind: if base.is_some() { Kind::Differential } else { Kind::Full },
            base: base.map(|base| BackupId::from_bytes([base; 16])),
            stripes: 1,
            created_unix_ms: id.into(),
            encryption: None,
        }
    }

    fn store(folder: &Path, own: &Identity) {
        let source =
            MemorySource { name: "data".to_owned(), size: 4096, ranges: vec![(0, vec![1; 4096])] };
        let stripes = memory::write(own, &[source], 4096, None, None).expect("a backup");
        std::fs::write(folder.join(own.file_name(0)), &stripes[0]).expect("a stripe");
    }

    /// A differential is begun on a full backup after the decision to remove that.
    #[test]
    fn a_full_backup_that_is_needed_by_then_is_kept_after_all() {
        let folder = tempfile::tempdir().expect("a folder");
        (1..=3).for_each(|id| store(folder.path(), &identity(id, None)));
        let place: Box<dyn Place> = Box::new(Folder::new(folder.path()).expect("a folder"));
        let mut library = Library::open(vec![place]).expect("backups");
        let rules = Rules { last: 1, ..Rules::default() };
        let decide = |all: &[Candidate]| decide_about(all, &rules, 10, |_| true);
        let all: Vec<Candidate> = library.entries().iter().map(candidate).collect();
        let decisions = decide(&all);
        assert_eq!(decisions[..2], [Decision::Removed, Decision::Removed]);
        let begun = identity(4, Some(1));
        let path = folder.path().join(format!("{}.tmp", begun.file_name(0)));
        std::fs::write(path, begun.header(0)).expect("a header");
        remove(&mut library, (&all, &decisions), decide).expect("a prune");
        library.refresh().expect("backups");
        let left = library.entries().iter().map(|own| own.identity.id.as_bytes()[0]);
        assert_eq!(left.collect::<Vec<_>>(), [1, 3, 4]);
    }
}
