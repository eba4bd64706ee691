//! Replays of write logs: the volume as a loss of power at each flush would leave it, checked.
//!
//! Each check gets a copy of the image, because a file system that was not unmounted is first recovered
//! from its journal, which changes it.

mod check;

use crate::error::XtaskError;
pub use check::Check;
use std::io::Write;
use std::path::PathBuf;
use weir_store::write_log::{Flags, LogReader, Replay};

/// A replay.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The log.
    pub log: PathBuf,
    /// The image, which is made if needed.
    pub image: PathBuf,
    /// The first entry at which the image is checked; earlier ones are only replayed.
    pub from: u64,
    /// The number of entries that are replayed; all if not given.
    pub to: Option<u64>,
    /// The check at each point; none if not given.
    pub check: Option<Check>,
    /// Most points to check, spread evenly; all if not given.
    pub points: Option<u64>,
}

/// The counts of a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Replayed entries.
    pub entries: u64,
    /// Flushes and FUA writes among those that could be checked.
    pub points: u64,
    /// Points that were checked.
    pub checked: u64,
    /// Points to check that had no file system yet.
    pub empty: u64,
}

/// The kinds of a log's entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kinds {
    /// All.
    pub entries: u64,
    /// Bytes of a sector.
    pub sector: u32,
    /// Writes, also FUA ones.
    pub writes: u64,
    /// Bytes of all writes.
    pub bytes: u64,
    /// Discards.
    pub discards: u64,
    /// Flushes.
    pub flushes: u64,
    /// FUA writes.
    pub fua: u64,
}

/// Counts the entries of a log.
///
/// # Errors
///
/// [`XtaskError::Store`] if it cannot be read.
pub fn kinds(log: &std::path::Path) -> Result<Kinds, XtaskError> {
    let mut log = LogReader::open(log)?;
    let mut kinds = Kinds { entries: log.entries(), sector: log.sector(), ..Kinds::default() };
    while let Some(entry) = log.next_entry()? {
        let is_write = entry.len > 0 && !entry.flags.has(Flags::DISCARD);
        kinds.writes += u64::from(is_write);
        kinds.bytes += if is_write { entry.len } else { 0 };
        kinds.discards += u64::from(entry.flags.has(Flags::DISCARD));
        kinds.flushes += u64::from(entry.flags.has(Flags::FLUSH));
        kinds.fua += u64::from(entry.flags.has(Flags::FUA));
    }
    Ok(kinds)
}

/// Replays a log, and checks the image at its points. Prints a line each hundred checks.
///
/// # Errors
///
/// [`XtaskError::Unsound`] if a check fails: the image then has the content of that point.
/// [`XtaskError::Store`] if a file cannot be read or written.
pub fn replay(plan: &Plan, out: &mut dyn Write) -> Result<Tally, XtaskError> {
    let to = plan.to.unwrap_or(u64::MAX);
    let points = count_points(plan, to)?;
    let most = plan.points.unwrap_or(points).min(points);
    let mut replay = Replay::open(&plan.log, &plan.image)?;
    let mut tally = Tally { points, ..Tally::default() };
    let mut at = 0;
    while tally.entries < to {
        let Some(entry) = replay.step()? else { break };
        tally.entries += 1;
        if entry.number < plan.from || !entry.flags.is_point() {
            continue;
        }
        at += 1;
        // Of `points`, the ones at which the part of `most` that is due grows.
        let is_due = at * most / points > (at - 1) * most / points;
        let Some(check) = plan.check.as_ref().filter(|_| is_due) else { continue };
        match check.run(&plan.image)? {
            check::Verdict::Sound => tally.checked += 1,
            check::Verdict::Empty => tally.empty += 1,
            check::Verdict::Unsound { said } => {
                return Err(XtaskError::Unsound {
                    entry: entry.number,
                    point: at,
                    image: plan.image.clone(),
                    said,
                });
            }
        }
        if tally.checked > 0 && tally.checked.is_multiple_of(100) {
            writeln!(out, "{} points checked", tally.checked)
                .map_err(|source| XtaskError::System { doing: "writing the output", source })?;
        }
    }
    Ok(tally)
}

fn count_points(plan: &Plan, to: u64) -> Result<u64, XtaskError> {
    let (mut log, mut points) = (LogReader::open(&plan.log)?, 0);
    while let Some(entry) = log.next_entry()? {
        let is_in = (plan.from..to).contains(&entry.number);
        points += u64::from(is_in && entry.flags.is_point());
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::Arc;
    use weir_store::{LoggedStore, MemoryStore, Store};
    use weir_units::Bytes;

    /// A log of ten flushes, each of a block with its number.
    fn log_of_ten(dir: &std::path::Path) -> Plan {
        let log = dir.join("log");
        let store = Arc::new(MemoryStore::new(Bytes::mib(1)));
        let store = LoggedStore::create(store, "v", &log).unwrap();
        for number in 1..=10_u8 {
            store.write_at(0, &[number; 512]).unwrap();
            store.sync().unwrap();
        }
        let (image, points) = (dir.join("image"), None);
        Plan { log, image, from: 0, to: None, check: None, points }
    }

    fn seen(plan: &Plan, dir: &std::path::Path) -> (Tally, Vec<u8>) {
        let seen = dir.join("seen");
        let _ = fs::remove_file(&seen);
        let line = format!("head -c 1 {{}} >> '{}'", seen.display());
        let check = Some(Check::parse(&line).unwrap());
        let tally = replay(&Plan { check, ..plan.clone() }, &mut Vec::new()).unwrap();
        (tally, fs::read(&seen).unwrap_or_default())
    }

    #[test]
    fn each_point_is_checked_or_some_that_are_spread_evenly() {
        let dir = tempfile::tempdir().unwrap();
        let plan = log_of_ten(dir.path());
        let (tally, all) = seen(&plan, dir.path());
        assert_eq!(all, (1..=10).collect::<Vec<u8>>());
        assert_eq!(tally, Tally { entries: 21, points: 10, checked: 10, empty: 0 });
        let some = Plan { points: Some(3), ..plan.clone() };
        assert_eq!(seen(&some, dir.path()).1, [4, 7, 10]);
        // The mark is entry 0, and each flush follows its write.
        let part = Plan { from: 5, to: Some(11), ..plan };
        let (tally, part) = seen(&part, dir.path());
        assert_eq!((tally.entries, part), (11, vec![3, 4, 5]));
    }

    #[test]
    fn a_check_that_fails_ends_the_replay_there() {
        let dir = tempfile::tempdir().unwrap();
        let plan = log_of_ten(dir.path());
        let line =
            "test \"$(head -c 1 {} | od -An -tu1 | tr -d ' ')\" != 4 || { echo four; false; }";
        let check = Some(Check::parse(line).unwrap());
        let error = replay(&Plan { check, ..plan.clone() }, &mut Vec::new()).unwrap_err();
        assert!(
            matches!(&error, XtaskError::Unsound { entry: 8, point: 4, said, .. }
            if said.contains("four")),
            "{error}"
        );
        assert_eq!(fs::read(&plan.image).unwrap()[0], 4);
    }

    #[test]
    fn a_volume_without_a_file_system_is_not_checked() {
        let dir = tempfile::tempdir().unwrap();
        let plan = Plan { check: Some(Check::ByFileSystem), ..log_of_ten(dir.path()) };
        let tally = replay(&plan, &mut Vec::new()).unwrap();
        assert_eq!((tally.checked, tally.empty), (0, 10));
        assert!(Check::parse("fsck image").is_err());
        let kinds = kinds(&plan.log).unwrap();
        assert_eq!((kinds.entries, kinds.writes, kinds.bytes, kinds.flushes), (21, 10, 5120, 10));
    }
}
