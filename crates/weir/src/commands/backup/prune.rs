//! `weir backup prune`: removes the backups that no rule keeps.

use super::exports::Exports;
use super::kept;
use crate::cli::BackupPruneArgs;
use crate::error::{CliError, USAGE};
use crate::output;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};
use weir_backup::format::{BackupId, Kind};
use weir_backup::library::{Entry, State};
use weir_backup::retention::{Candidate, Decision, Rules, Wholeness, decide_about, order};
use weir_backup::target::BackupLock;
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
    let all: Vec<Candidate> = library.entries().iter().map(candidate).collect();
    let is_named = |own: &Candidate| args.name.is_empty() || args.name.contains(&own.name);
    let decisions = decide_about(&all, &rules, now_unix_ms(), is_named);
    let lines: Vec<BackupLine> = library.entries().iter().map(kept::line).collect();
    let mut done = Done::default();
    if !args.dry_run {
        done = remove(&mut library, (&all, &decisions), |now| {
            decide_about(now, &rules, now_unix_ms(), is_named)
        });
    }
    // Refused before anything was removed.
    if done.removed.is_empty()
        && let Some((_, error)) = done.failed.take_if(|(_, error)| error.code() == USAGE)
    {
        return Err(error);
    }
    let mut report = PruneReport {
        places: kept::place_names(&args.places),
        is_dry_run: args.dry_run,
        ..PruneReport::default()
    };
    for ((own, decision), backup) in all.iter().zip(decisions).zip(lines) {
        let is_left_out = !is_named(own) || done.gone.contains(&own.id);
        if !is_left_out {
            let is_removed =
                decision.is_removal() && (args.dry_run || done.removed.contains(&own.id));
            report.freed_bytes += if is_removed { backup.stored_bytes } else { 0 };
            let (reason, details) = done.reason(own.id, decision, &backup, args.dry_run);
            report.backups.push(PruneLine { backup, is_removed, reason, details });
        }
    }
    exports.map_or(Ok(()), Exports::close)?;
    output::print(&report, args.output.format())?;
    done.failed.map_or(Ok(0), |(_, error)| Err(error))
}

/// The removals that were done.
#[derive(Debug, Default)]
struct Done {
    removed: BTreeSet<BackupId>,
    /// Backups that are kept after all, since something changed meanwhile.
    kept: BTreeMap<BackupId, Decision>,
    /// Backups that somebody else removed meanwhile.
    gone: BTreeSet<BackupId>,
    /// The removal that failed. Nothing was removed after it.
    failed: Option<(BackupId, CliError)>,
}

impl Done {
    /// Returns the reason for what became of a backup.
    fn reason(
        &self,
        id: BackupId,
        decision: Decision,
        backup: &BackupLine,
        is_dry_run: bool,
    ) -> (String, Option<String>) {
        match &self.failed {
            _ if is_dry_run || !decision.is_removal() || self.removed.contains(&id) => {}
            Some((failed, _)) if *failed == id => {
                let details = "its removal failed, and a part of it may be gone: list shows it";
                return ("removal failed".to_owned(), Some(details.to_owned()));
            }
            Some(_) if !self.kept.contains_key(&id) => {
                let details = "another removal failed before it was its turn";
                return ("not reached".to_owned(), Some(details.to_owned()));
            }
            _ => {}
        }
        reason(self.kept.get(&id).unwrap_or(&decision), backup)
    }
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
) -> Done {
    let mut done = Done::default();
    for (at, index) in order(all, decisions).into_iter().enumerate() {
        let id = all[index].id;
        // Differentials are begun on full backups only: those are looked at once more just before, while
        // no differential on this machine can be begun.
        let is_full = all[index].kind == Kind::Full;
        let locked = match is_full {
            true => BackupLock::take(id, &Cancel::default()).map(Some),
            false => Ok(None),
        };
        let removed = locked
            .map_err(CliError::from)
            .and_then(|_lock| remove_one(library, id, at == 0 || is_full, &decide));
        match removed {
            Ok(None) => drop(done.gone.insert(id)),
            Ok(Some(decision)) if decision.is_removal() => drop(done.removed.insert(id)),
            Ok(Some(decision)) => {
                let line = library.by_id(id).map(kept::line).unwrap_or_default();
                let (reason, _) = reason(&decision, &line);
                output::talk(&format!(
                    "weir: {id} is kept after all, since something changed meanwhile: {reason}"
                ));
                done.kept.insert(id, decision);
            }
            Err(error) => {
                done.failed = Some((id, error));
                break;
            }
        }
    }
    done
}

/// Removes a backup, unless the decision about it is another one now. Returns the decision; `None` for
/// a backup that is not there any more.
fn remove_one(
    library: &mut Library,
    id: BackupId,
    is_looked_at: bool,
    decide: impl Fn(&[Candidate]) -> Vec<Decision>,
) -> Result<Option<Decision>, CliError> {
    if is_looked_at {
        library.refresh()?;
        refuse_unreadable(library)?;
    }
    let now: Vec<Candidate> = library.entries().iter().map(candidate).collect();
    let Some(at) = now.iter().position(|own| own.id == id) else { return Ok(None) };
    let decision = decide(&now).swap_remove(at);
    if decision.is_removal() {
        library.remove(id)?;
    }
    Ok(Some(decision))
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
    use weir_backup::format::Identity;
    use weir_backup::memory::{self, MemorySource};
    use weir_backup::place::{Folder, FoundStripe, Place};
    use weir_backup::{BackupError, ReadAt};

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

    /// Full backups 1 to 3 in a folder.
    fn three_backups(folder: &Path) -> Library {
        (1..=3).for_each(|id| store(folder, &identity(id, None)));
        let place: Box<dyn Place> = Box::new(Folder::new(folder).expect("a folder"));
        Library::open(vec![place]).expect("backups")
    }

    /// A differential is begun on a full backup after the decision to remove that.
    #[test]
    fn a_full_backup_that_is_needed_by_then_is_kept_after_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut library = three_backups(folder.path());
        let rules = Rules { last: 1, ..Rules::default() };
        let decide = |all: &[Candidate]| decide_about(all, &rules, 10, |_| true);
        let all: Vec<Candidate> = library.entries().iter().map(candidate).collect();
        let decisions = decide(&all);
        assert_eq!(decisions[..2], [Decision::Removed, Decision::Removed]);
        let begun = identity(4, Some(1));
        let path = folder.path().join(format!("{}.tmp", begun.file_name(0)));
        std::fs::write(path, begun.header(0)).expect("a header");
        let done = remove(&mut library, (&all, &decisions), decide);
        let bytes =
            |ids: &BTreeSet<BackupId>| ids.iter().map(|id| id.as_bytes()[0]).collect::<Vec<_>>();
        assert_eq!(bytes(&done.removed), [2]);
        assert_eq!(done.kept.get(&begun.base.expect("one")), Some(&Decision::Needed(begun.id)));
        library.refresh().expect("backups");
        let left = library.entries().iter().map(|own| own.identity.id.as_bytes()[0]);
        assert_eq!(left.collect::<Vec<_>>(), [1, 3, 4]);
    }

    /// A differential shows itself and looks for its full backup while a prune wants to remove that.
    #[test]
    fn a_prune_waits_for_a_differential_that_is_being_begun() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut library = three_backups(folder.path());
        let rules = Rules { last: 1, ..Rules::default() };
        let decide = |all: &[Candidate]| decide_about(all, &rules, 10, |_| true);
        let all: Vec<Candidate> = library.entries().iter().map(candidate).collect();
        let decisions = decide(&all);
        let begun = identity(4, Some(1));
        let lock = BackupLock::take(all[0].id, &Cancel::default()).expect("free");
        let done = std::thread::scope(|scope| {
            let pruning = scope.spawn(|| remove(&mut library, (&all, &decisions), decide));
            #[expect(
                clippy::disallowed_methods,
                reason = "time for the prune to come to the lock"
            )]
            std::thread::sleep(std::time::Duration::from_millis(300));
            let path = folder.path().join(format!("{}.tmp", begun.file_name(0)));
            std::fs::write(path, begun.header(0)).expect("a header");
            drop(lock);
            pruning.join().expect("no panic")
        });
        assert_eq!(done.kept.get(&all[0].id), Some(&Decision::Needed(begun.id)));
        assert!(!done.removed.contains(&all[0].id));
    }

    /// A folder that takes no removal after the first one.
    struct Stuck(Folder, u32);

    impl Place for Stuck {
        fn name(&self) -> &str {
            self.0.name()
        }

        fn list(&mut self) -> Result<Vec<FoundStripe>, BackupError> {
            self.0.list()
        }

        fn open(&mut self, stripe: &FoundStripe) -> Result<Box<dyn ReadAt>, BackupError> {
            self.0.open(stripe)
        }

        fn remove(&mut self, stripe: &FoundStripe) -> Result<(), BackupError> {
            self.1 += 1;
            match self.1 {
                1 => self.0.remove(stripe),
                _ => Err(BackupError::Failed("it is stuck".to_owned())),
            }
        }
    }

    #[test]
    fn the_report_is_of_what_was_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        (1..=4).for_each(|id| store(folder.path(), &identity(id, None)));
        let place = Stuck(Folder::new(folder.path()).expect("a folder"), 0);
        let mut library = Library::open(vec![Box::new(place)]).expect("backups");
        let rules = Rules { last: 1, ..Rules::default() };
        let decide = |all: &[Candidate]| decide_about(all, &rules, 10, |_| true);
        let all: Vec<Candidate> = library.entries().iter().map(candidate).collect();
        let decisions = decide(&all);
        let done = remove(&mut library, (&all, &decisions), decide);
        let said = |at: usize| {
            let line = kept::line(library.by_id(all[at].id).expect("it was there"));
            done.reason(all[at].id, decisions[at].clone(), &line, false).0
        };
        assert_eq!(done.removed.iter().map(|id| id.as_bytes()[0]).collect::<Vec<_>>(), [1]);
        assert_eq!(
            (said(1), said(2), said(3)),
            ("removal failed".to_owned(), "not reached".to_owned(), "--keep-last".to_owned(),)
        );
        let (_, error) = done.failed.expect("a failure");
        assert_eq!((error.to_string(), error.code()), ("it is stuck".to_owned(), 3));
    }
}
