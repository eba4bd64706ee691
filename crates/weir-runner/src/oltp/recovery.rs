//! Recovery after a stop or a crash, and the proof that nothing is lost.
//!
//! 1. The newest whole checkpoint says where the log is needed from.
//! 2. The log is read from there to the first block that is not the expected one. A
//!    block whose write was cut off is none, nor is one of an earlier round: its LSN is
//!    less. All records that are whole are transactions that committed.
//! 3. Every transaction that was acknowledged must be among them.
//! 4. Every page is read. Where the log has a newer version, or the page is torn, it is
//!    made anew from the log. No page may be newer than the log, none may be damaged
//!    otherwise, and the versions of all pages must add up to the changes that the last
//!    transaction counts: a write that was lost, in whichever file, is missed.
//! 5. What was made anew is written, and then a checkpoint after the end of the log, one
//!    round further: what may have been written behind the end is never taken for a
//!    part of the log again. Until that is written, another recovery does all of it again.

use super::acknowledged::Acknowledged;
use super::contents::Contents;
use super::files::{Files, PIECE};
use super::log::{self, HEADER, SLOT, Slot};
use super::page::{self, State};
use crate::error::RunnerError;
use std::collections::BTreeMap;
use std::ops::Range;
use weir_oltp::RedoPoint;
use weir_oltp::log::{CHECKPOINT_SLOT, LOG_START, SECTOR, ring};
use weir_oltp::model::PAGE;
use weir_report::recovery::RecoveryReport;
use weir_wall::Clock;

/// Pages that are written between two checks whether to stop.
const BATCH: usize = 128;

/// A recovery in progress.
pub(super) struct Recovering<'a> {
    pub(super) files: &'a mut Files,
    pub(super) contents: &'a mut Contents,
    /// The newest acknowledged transaction, if it was recorded.
    pub(super) acknowledged: Option<&'a Acknowledged>,
    pub(super) is_stopped: &'a dyn Fn() -> bool,
}

/// The part of the log after the redo point.
#[derive(Debug, Default)]
struct Redo {
    /// The end of the log.
    end: u64,
    /// The last transaction, and the number of page changes up to it.
    commit: u64,
    changes: u64,
    transactions: u64,
    /// The newest version of each page.
    pages: BTreeMap<u32, State>,
}

impl Recovering<'_> {
    /// Recovers the database. Returns the redo point from which it continues, and the report.
    pub(super) fn run(&mut self) -> Result<(RedoPoint, RecoveryReport), RunnerError> {
        let clock = Clock::start();
        let from = self.newest_checkpoint()?;
        let redo = self.scan(from.unwrap_or_default())?;
        let newest = self.acknowledged.and_then(Acknowledged::newest);
        if let Some(acknowledged) = newest.filter(|newest| *newest > redo.commit) {
            return Err(RunnerError::Lost { acknowledged, recovered: redo.commit });
        }
        let unproved = newest.is_none() && redo.commit > 0;
        let noted = self.acknowledged.filter(|_| unproved);
        let mut report = RecoveryReport {
            is_new: from.is_none(),
            log_bytes: redo.end - from.unwrap_or_default().lsn,
            transactions: redo.transactions,
            commit: redo.commit,
            changes: redo.changes,
            acknowledged: newest,
            notes: noted.map(Acknowledged::no_number).into_iter().collect(),
            ..RecoveryReport::default()
        };
        // A database that was never started has no pages.
        if from.is_some() || redo.transactions > 0 {
            let rebuilt = self.check_pages(&redo, &mut report)?;
            self.write_pages(&rebuilt)?;
        }
        let next = self.next_checkpoint(from.unwrap_or_default(), &redo)?;
        report.seconds = weir_report::number::float(clock.now().nanos()) / 1e9;
        Ok((next, report))
    }

    /// Returns the newest valid checkpoint; `None` if the database was never started.
    fn newest_checkpoint(&mut self) -> Result<Option<RedoPoint>, RunnerError> {
        let file = self.files.log();
        let bytes = self.files.read(file, 0, 2 * CHECKPOINT_SLOT)?;
        let slots: Vec<Slot> = bytes.chunks_exact(SLOT).map(log::slot).collect();
        let mut newest: Option<RedoPoint> = None;
        for slot in &slots {
            let Slot::Checkpoint(identity, redo, new) = slot else { continue };
            if *identity != self.contents.identity() {
                let file = self.files.served[file].place.name.clone();
                return Err(RunnerError::OtherDatabase { file });
            }
            if newest.is_none_or(|newest| redo.sequence > newest.sequence) {
                newest = Some(*redo);
                self.contents.set_new_pages(new);
            }
        }
        if newest.is_none() && slots.iter().all(|slot| *slot == Slot::Torn) {
            return Err(self.log_error(0, "neither of its two checkpoints is intact"));
        }
        Ok(newest)
    }

    /// Reads the log from `from` to its end.
    fn scan(&mut self, from: RedoPoint) -> Result<Redo, RunnerError> {
        let file = self.files.log();
        let ring = ring(self.files.served[file].place.size.get());
        let mut redo = Redo { commit: from.commit, changes: from.changes, ..Redo::default() };
        let (mut lsn, mut stream, mut begun) = (from.lsn, Vec::new(), false);
        // Bytes that were read ahead, and the number of used ones.
        let (mut window, mut used): (Vec<u8>, usize) = (Vec::new(), 0);
        let mut previous = None;
        while lsn - from.lsn < ring {
            let left = ring - lsn % ring;
            let mut ahead = |window: &mut Vec<u8>, used: &mut usize, least: u64| {
                if window.len() - *used < usize::try_from(least).unwrap_or(usize::MAX) {
                    let length = least.max(PIECE).min(left);
                    *window = self.files.read(file, LOG_START + lsn % ring, length)?;
                    *used = 0;
                }
                Ok::<(), RunnerError>(())
            };
            ahead(&mut window, &mut used, SECTOR.min(left))?;
            let Some(header) = log::block_header(lsn, &window[used..]) else { break };
            let len = ((HEADER + header.bytes) as u64).next_multiple_of(SECTOR);
            if len > left {
                break;
            }
            ahead(&mut window, &mut used, len)?;
            let Some(records) = log::block_records(header, &window[used..]) else { break };
            // The first record that begins after the redo point is the first complete one.
            let skip = if begun { 0 } else { header.first };
            begun |= header.first < header.bytes;
            stream.extend_from_slice(&records[skip..]);
            self.take_records(lsn, &mut stream, &mut previous, &mut redo)?;
            used += usize::try_from(len).unwrap_or(usize::MAX);
            lsn += len;
        }
        redo.end = lsn;
        Ok(redo)
    }

    /// Takes the complete records.
    fn take_records(
        &mut self,
        lsn: u64,
        stream: &mut Vec<u8>,
        previous: &mut Option<(u64, u64)>,
        redo: &mut Redo,
    ) -> Result<(), RunnerError> {
        let mut taken = 0;
        loop {
            let next = log::record(&stream[taken..]);
            let next = next.map_err(|()| self.log_error(lsn, "it contains an invalid record"))?;
            let Some((record, length)) = next else { break };
            taken += length;
            let in_order = match *previous {
                None => record.number <= redo.commit + 1,
                Some((number, changes)) => {
                    record.number == number + 1
                        && record.changes == changes + record.pages.len() as u64
                }
            };
            let placement = self.contents.placement();
            if !in_order || record.pages.iter().any(|(page, _)| !placement.has(*page)) {
                let what =
                    format!("transaction {} does not follow the previous one", record.number);
                return Err(self.log_error(lsn, &what));
            }
            *previous = Some((record.number, record.changes));
            redo.transactions += 1;
            if record.number > redo.commit {
                (redo.commit, redo.changes) = (record.number, record.changes);
            }
            for (page, version) in record.pages {
                self.contents.see(page);
                redo.pages.insert(page, State { version, commit: record.number });
            }
        }
        stream.drain(..taken);
        Ok(())
    }

    /// Reads every page. Returns the numbers of those to rebuild from the log.
    fn check_pages(
        &mut self,
        redo: &Redo,
        report: &mut RecoveryReport,
    ) -> Result<Vec<u32>, RunnerError> {
        let (mut rebuilt, mut versions) = (Vec::new(), 0_u64);
        for file in 0..self.contents.placement().files() {
            let piece = u32::try_from(PIECE / PAGE).unwrap_or(1);
            let ranges = self.contents.ranges(file);
            for (first, count) in ranges.into_iter().flat_map(|range: Range<u32>| {
                let count = move |first| piece.min(range.end - first);
                range.clone().step_by(piece as usize).map(move |first| (first, count(first)))
            }) {
                self.check_stopped()?;
                let offset = self.contents.placement().locate(first).1;
                let bytes = self.files.read(file, offset, u64::from(count) * PAGE)?;
                for (page, bytes) in (first..).zip(bytes.chunks_exact(page::SIZE)) {
                    let (state, is_rebuilt) = self.check_page(page, bytes, redo, report)?;
                    self.contents.set_state(page, state);
                    versions += state.version;
                    rebuilt.extend(is_rebuilt.then_some(page));
                }
                report.pages_read += u64::from(count);
            }
        }
        if versions != redo.changes {
            let (commit, expect) = (redo.commit, redo.changes);
            return Err(RunnerError::Changes { commit, expect, found: versions });
        }
        report.pages_rebuilt = rebuilt.len() as u64;
        Ok(rebuilt)
    }

    /// Checks a page against the state that it must have, and whether the log must contain it.
    fn check_page(
        &self,
        page: u32,
        bytes: &[u8],
        redo: &Redo,
        report: &mut RecoveryReport,
    ) -> Result<(State, bool), RunnerError> {
        let logged = redo.pages.get(&page).copied();
        match (page::decode(self.contents.id(page), bytes), logged) {
            (Ok(found), _) if found.commit > redo.commit => Err(self.page_error(
                page,
                format!(
                    "it has version {} of transaction {}, but the log ends at transaction {}",
                    found.version, found.commit, redo.commit
                ),
            )),
            (Ok(found), Some(logged)) if found.version > logged.version => Err(self.page_error(
                page,
                format!(
                    "it has version {}, but the newest in the log is version {} of transaction {}",
                    found.version, logged.version, logged.commit
                ),
            )),
            (Ok(found), Some(logged)) => Ok((logged, found != logged)),
            (Ok(found), None) => Ok((found, false)),
            (Err(_), Some(logged)) => {
                report.torn_pages += 1;
                Ok((logged, true))
            }
            (Err(bad), None) => Err(self.page_error(page, bad.to_string())),
        }
    }

    fn write_pages(&mut self, rebuilt: &[u32]) -> Result<(), RunnerError> {
        for file in 0..self.contents.placement().files() {
            let placement = self.contents.placement();
            let own: Vec<u32> = rebuilt
                .iter()
                .copied()
                .filter(|page: &u32| placement.locate(*page).0 == file)
                .collect();
            for some in own.chunks(BATCH) {
                self.check_stopped()?;
                let Self { files, contents, .. } = self;
                let write = |page: &u32| {
                    let mut bytes = Vec::with_capacity(page::SIZE);
                    page::encode(contents.id(*page), contents.state(*page), &mut bytes);
                    (contents.placement().locate(*page).1, bytes)
                };
                files.write(file, some.iter().map(write))?;
            }
        }
        Ok(())
    }

    /// Fails if the recovery is to stop. Until it has written its final checkpoint, another
    /// recovery repeats all of it.
    fn check_stopped(&self) -> Result<(), RunnerError> {
        if (self.is_stopped)() { Err(RunnerError::RecoveryInterrupted) } else { Ok(()) }
    }

    /// Writes the checkpoint from which the database continues.
    fn next_checkpoint(&mut self, from: RedoPoint, redo: &Redo) -> Result<RedoPoint, RunnerError> {
        let file = self.files.log();
        let round = ring(self.files.served[file].place.size.get());
        let next = RedoPoint {
            sequence: from.sequence + 1,
            lsn: redo.end + round,
            commit: redo.commit,
            changes: redo.changes,
        };
        let mut bytes = Vec::new();
        log::checkpoint(self.contents.identity(), &next, self.contents.new_pages(), &mut bytes);
        self.files.write(file, [(next.offset(), bytes)])?;
        Ok(next)
    }

    fn log_error(&self, lsn: u64, what: &str) -> RunnerError {
        let served = &self.files.served[self.files.log()];
        let offset = LOG_START + lsn % ring(served.place.size.get()).max(1);
        RunnerError::Log { file: served.place.name.clone(), lsn, offset, what: what.to_owned() }
    }

    fn page_error(&self, page: u32, what: String) -> RunnerError {
        let (file, offset) = self.contents.placement().locate(page);
        let file = self.files.served[file].place.name.clone();
        RunnerError::Page { file, page: offset / PAGE, offset, what }
    }
}

#[cfg(test)]
mod tests {
    use crate::error::RunnerError;
    use crate::oltp::serving::served_files;
    use crate::oltp::{OltpOptions, OltpRun, OltpRunError};
    use std::cell::Cell;
    use weir_catalog::Catalog;
    use weir_layout::Layout;
    use weir_oltp::Description;
    use weir_server::{Address, Options, Server};
    use weir_units::Span;

    const LAYOUT: &str = "[[volume]]\nname = \"data\"\nsize = \"8 MiB\"\nunlimited = true\n\
        [[volume]]\nname = \"log\"\nsize = \"64 MiB\"\nunlimited = true\n";

    /// No checkpoint: the log has all changes.
    const OLTP: &str = "users = 4\nvcores = 4\nsize = \"8 MiB\"\nbuffer_pool = \"16 MiB\"\n\
        data = [\"data\"]\nlog = \"log\"\n[checkpoint]\nevery = \"1h\"\n[[transaction]]\n\
        name = \"t\"\nshare = 1\nreads = 0\nwrites = 4\nlog = \"1 KiB\"\ncpu = \"100us\"\n";

    #[test]
    fn it_stops_while_pages_are_read_and_while_they_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::parse("layout.toml", LAYOUT, &Catalog::builtin()).unwrap();
        let listen = vec![Address::Unix(folder.path().join("nbd"))];
        let options = Options { listen, ..Options::default() };
        let server = Server::start(layout.clone(), None, &options).unwrap();
        let files = served_files(&layout, &server.uris(), server.refused());
        let options = OltpOptions { files: &files, seed: 1, ..OltpOptions::default() };
        let description = Description::parse("oltp.toml", OLTP).unwrap();
        let (mut run, _) = OltpRun::open(&description, options).unwrap();
        while run.database().acknowledged() < 20 {
            run.run_until(run.now() + Span::from_millis(1)).unwrap();
        }
        drop(run);
        // A check before each of the 8 MiB that are read, and one before the writes.
        for most in [0, 7, 8] {
            let looks = Cell::new(0);
            let is_stopped = || looks.replace(looks.get() + 1) == most;
            let options = OltpOptions { is_stopped: Some(&is_stopped), ..options };
            let stopped = OltpRun::open(&description, options).map(|_| ()).unwrap_err();
            let expected = OltpRunError::Runner(RunnerError::RecoveryInterrupted);
            assert_eq!(stopped.to_string(), expected.to_string(), "{most}");
        }
        let (_, report) = OltpRun::open(&description, options).unwrap();
        assert!(report.pages_rebuilt > 0 && report.commit >= 20, "{report:?}");
        // No acknowledged transaction was recorded, and none was required.
        assert_eq!((report.acknowledged, report.notes.len()), (None, 0));

        // The number is required and missing.
        let path = folder.path().join("acknowledged");
        let options = OltpOptions { acknowledged: Some(&path), ..options };
        let (mut run, report) = OltpRun::open(&description, options).unwrap();
        let said = format!(
            "no number of acknowledged transactions ({} is missing): the end of the log is not \
             proved",
            path.display()
        );
        assert_eq!((report.acknowledged, report.notes), (None, vec![said]));
        while run.database().acknowledged() < 40 {
            run.run_until(run.now() + Span::from_millis(1)).unwrap();
        }
        drop(run);
        let (_, report) = OltpRun::open(&description, options).unwrap();
        assert!(report.acknowledged >= Some(40) && report.notes.is_empty(), "{report:?}");
        server.stop().unwrap();
    }
}
