//! `weir backup prune`: removes the backups that no rule keeps.

use super::exports::Exports;
use super::kept;
use crate::cli::BackupPruneArgs;
use crate::error::CliError;
use crate::output;
use std::time::{SystemTime, UNIX_EPOCH};
use weir_backup::library::{Entry, State};
use weir_backup::retention::{Candidate, Decision, Rules, Wholeness, decide_about, order};
use weir_catalog::Catalog;
use weir_report::backups::{PruneLine, PruneReport};

pub(super) fn run(args: &BackupPruneArgs, catalog: &Catalog) -> Result<u8, CliError> {
    let rules = Rules {
        last: args.keep_last,
        daily: args.keep_daily,
        weekly: args.keep_weekly,
        monthly: args.keep_monthly,
        is_incomplete_removed: args.incomplete,
    };
    if rules.is_empty() {
        return Err(CliError::Refused(
            "no rule keeps a backup: give --keep-last, --keep-daily, --keep-weekly or \
             --keep-monthly"
                .to_owned(),
        ));
    }
    let (mut library, exports) = kept::library(&args.places, &args.server, catalog)?;
    for name in &args.name {
        if !library.entries().iter().any(|entry| entry.identity.name == *name) {
            return Err(CliError::Refused(format!("there are no backups named {name:?}")));
        }
    }
    let chosen = |entry: &&Entry| args.name.is_empty() || args.name.contains(&entry.identity.name);
    let all: Vec<Candidate> = library.entries().iter().map(candidate).collect();
    let is_named = |own: &Candidate| args.name.is_empty() || args.name.contains(&own.name);
    let decisions = decide_about(&all, &rules, now_unix_ms(), is_named);
    let mut report = PruneReport { is_dry_run: args.dry_run, ..PruneReport::default() };
    for (entry, decision) in library.entries().iter().zip(&decisions) {
        if chosen(&entry) {
            let is_removed = decision.is_removal();
            report.freed_bytes += if is_removed { entry.stored_bytes } else { 0 };
            report.backups.push(PruneLine {
                backup: kept::line(entry),
                is_removed,
                reason: reason(decision),
            });
        }
    }
    if !args.dry_run {
        for index in order(&all, &decisions) {
            library.remove(all[index].id)?;
        }
    }
    exports.map_or(Ok(()), Exports::close)?;
    output::print(&report, args.output.format())?;
    Ok(0)
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
        },
    }
}

fn reason(decision: &Decision) -> String {
    match decision {
        Decision::Kept(rule) => format!("--keep-{rule}"),
        Decision::Needed(id) => format!("the differential {id} builds on it"),
        Decision::Unfinished => "incomplete, and younger than a day: it may be being written; \
                                 --incomplete removes it"
            .to_owned(),
        Decision::Elsewhere => {
            "its other stripes may be in another place; --incomplete removes it".to_owned()
        }
        Decision::NotChosen => "it has another name".to_owned(),
        Decision::Orphan => "its full backup is not in these places".to_owned(),
        Decision::Removed => "no rule keeps it".to_owned(),
        Decision::RemovedIncomplete => "it is incomplete".to_owned(),
    }
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
