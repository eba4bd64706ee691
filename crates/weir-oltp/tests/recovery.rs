//! A database can be recovered at any moment, on disks that complete I/O in any order.
//!
//! A simple model of disks runs beside the state machine, and checks the conditions of a recovery:
//!
//! - no page is written before the log of its changes,
//! - changes before the redo point are in the data files when it is written,
//! - the log after the redo point is never overwritten,
//! - all log up to a commit is written when the commit is acknowledged.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use proptest::prelude::*;
use std::collections::BTreeMap;
use weir_oltp::log::{LOG_START, ring};
use weir_oltp::model::{Growth, PAGE};
use weir_oltp::{
    Commit, Content, Database, Description, FileAbout, FileIo, FileOp, RedoPoint, Wait,
};
use weir_random::Rng;
use weir_units::{Bytes, Instant, Span};

/// Makes a description with the files `d1`, `d2` and `log`.
fn description(log_block: u64, checkpoint: &str, pool: u64, write_log: u64) -> Description {
    let text = format!(
        "users = 30\nthink_time = \"2ms\"\nvcores = 4\nsize = \"4 MiB\"\nbuffer_pool = \"{pool} KiB\"\n\
         data = [\"d1\", \"d2\"]\nlog = \"log\"\n[log_writer]\nblock = \"{log_block} B\"\nwrites = 6\n\
         [checkpoint]\n{checkpoint}\nwrites = 4\n\
         [[transaction]]\nname = \"t\"\nshare = 3\nreads = 1\nwrites = 2.5\nhot_pages = 5\n\
         hot_writes = 1\nlog = \"{write_log} B\"\ncpu = \"100us\"\n\
         [[transaction]]\nname = \"large\"\nshare = 1\nreads = 3\nwrites = 16\nnew_pages = 4\n\
         log = \"5 KiB\"\n\
         cpu = \"200us\"\n"
    );
    Description::parse("oltp.toml", &text).unwrap_or_else(|error| panic!("{error}"))
}

/// The state of the disks, and their in-flight I/O.
struct Disks {
    database: Database,
    ring: u64,
    /// The newest version of each page, and the commit that made it.
    pages: BTreeMap<u32, (u64, u64)>,
    /// The version of each page in the data files.
    written: BTreeMap<u32, u64>,
    /// In-flight versions, by tag.
    writing: BTreeMap<u32, Vec<(u32, u64)>>,
    /// The start of the records of in-flight blocks, by tag.
    logging: BTreeMap<u32, u64>,
    /// Changes after the redo point: commit, page, version.
    history: Vec<(u64, u32, u64)>,
    /// The end of each commit's record, in bytes of all records.
    ends: Vec<u64>,
    /// Bytes of records in blocks so far.
    sent: u64,
    redo: RedoPoint,
    checkpoints: u64,
    in_flight: BTreeMap<(Instant, u64), FileIo>,
    issued: u64,
    rng: Rng,
}

impl Disks {
    fn new(description: &Description, log_kib: u64, seed: u64) -> Self {
        let file = |(name, size)| FileAbout::new(name, size);
        let files = [("d1", Bytes::mib(8)), ("d2", Bytes::mib(4)), ("log", Bytes::kib(log_kib))];
        let mut files = files.map(file);
        files[1].growth = Some(Growth { by: Bytes::mib(1), most: Bytes::mib(16) });
        let model = description.model(&files, seed);
        let model = model.unwrap_or_else(|error| panic!("{error}"));
        Self {
            ring: ring(model.log.size.get()),
            database: Database::resume(model, RedoPoint::default()),
            pages: BTreeMap::new(),
            written: BTreeMap::new(),
            writing: BTreeMap::new(),
            logging: BTreeMap::new(),
            history: Vec::new(),
            ends: vec![0],
            sent: 0,
            redo: RedoPoint::default(),
            checkpoints: 0,
            in_flight: BTreeMap::new(),
            issued: 0,
            rng: Rng::new(&[seed]),
        }
    }

    /// Returns the bytes of records that are written without a gap.
    fn hardened(&self) -> u64 {
        self.logging.values().min().copied().unwrap_or(self.sent)
    }

    fn commit(&mut self, commit: &Commit) {
        assert_eq!(commit.number, self.ends.len() as u64);
        self.ends.push(self.ends.last().unwrap() + commit.bytes);
        for page in &commit.pages {
            let (version, by) = self.pages.entry(*page).or_default();
            (*version, *by) = (*version + 1, commit.number);
            self.history.push((commit.number, *page, *version));
        }
    }

    fn issue(&mut self, now: Instant) {
        while self.database.poll_growth().is_some() {
            self.database.handle_growth(now, true);
        }
        while let Some(commit) = self.database.poll_commit() {
            self.commit(&commit);
        }
        while let Some(io) = self.database.poll_io() {
            match self.database.content(&io) {
                Content::Pages { first, count } if io.op == FileOp::Write => {
                    self.write(&io, first..first + count);
                }
                Content::Log { lsn, bytes } => {
                    assert_eq!(io.offset, LOG_START + lsn % self.ring);
                    let used = lsn + io.len - self.redo.lsn;
                    assert!(used <= self.ring, "{used} bytes of log after the redo point");
                    assert!(lsn % self.ring + io.len <= self.ring, "{io:?}");
                    self.logging.insert(io.tag, self.sent);
                    self.sent += bytes;
                }
                _ => {}
            }
            self.issued += 1;
            // One in twenty is very late.
            let most = if self.rng.below(20) == 0 { 60_000_000 } else { 4_000_000 };
            let at = now + Span::from_nanos(1 + self.rng.below(most));
            self.in_flight.insert((at, self.issued), io);
        }
    }

    fn write(&mut self, io: &FileIo, pages: std::ops::Range<u32>) {
        assert_eq!(io.len, u64::from(pages.end - pages.start) * PAGE);
        let mut versions = Vec::new();
        for page in pages {
            assert!(
                self.writing.values().flatten().all(|(other, _)| *other != page),
                "page {page} is written twice at once"
            );
            let (version, by) = self.pages.get(&page).copied().unwrap_or_default();
            let end = self.ends[usize::try_from(by).unwrap()];
            assert!(end <= self.hardened(), "page {page} goes before its log");
            versions.push((page, version));
        }
        self.writing.insert(io.tag, versions);
    }

    fn complete(&mut self, now: Instant, io: &FileIo) {
        match self.database.content(io) {
            Content::Pages { first, count } if io.op == FileOp::Read => {
                for page in first..first + count {
                    let newest = self.pages.get(&page).map_or(0, |(version, _)| *version);
                    let found = self.written.get(&page).copied().unwrap_or(0);
                    assert_eq!(found, newest, "page {page} is read and was not written");
                }
            }
            Content::Pages { .. } => {
                for (page, version) in self.writing.remove(&io.tag).unwrap() {
                    self.written.insert(page, version);
                }
            }
            Content::Log { .. } => {
                self.logging.remove(&io.tag).unwrap();
            }
            Content::Checkpoint(redo) => self.checkpointed(redo),
            Content::Temporary => {}
        }
        self.database.handle_completion(now, io.tag, Span::ZERO);
        let told = self.ends[usize::try_from(self.database.acknowledged()).unwrap()];
        assert!(told <= self.hardened(), "a commit is done and its log is not there");
    }

    /// Drops the log before `redo`.
    fn checkpointed(&mut self, redo: RedoPoint) {
        self.checkpoints += 1;
        assert_eq!(redo.sequence, self.checkpoints);
        for (commit, page, version) in self.history.extract_if(.., |(by, ..)| *by <= redo.commit) {
            let found = self.written.get(&page).copied().unwrap_or(0);
            assert!(
                found >= version,
                "checkpoint {}: page {page} has version {found}, commit {commit} made {version}",
                redo.sequence
            );
        }
        self.redo = redo;
    }

    fn run(&mut self, length: Span) {
        let end = Instant::ZERO + length;
        let mut now = Instant::ZERO;
        while now < end {
            self.issue(now);
            let disk = self.in_flight.keys().next().map(|(at, _)| *at);
            now = disk.into_iter().chain(self.database.poll_deadline()).min().unwrap();
            if disk == Some(now) {
                let (_, io) = self.in_flight.pop_first().unwrap();
                self.complete(now, &io);
            } else {
                self.database.handle_timeout(now);
            }
        }
    }
}

const AUTOMATIC: &str = "every = \"150ms\"";
const INDIRECT: &str = "target_recovery = \"150ms\"";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn recovery_is_possible_on_any_disks(
        seed in any::<u64>(),
        block in 3_u64..40,
        log_kib in prop_oneof![Just(96), Just(256), Just(4096)],
        pool_kib in prop_oneof![Just(512), Just(2048), Just(8192)],
        write_log in prop_oneof![Just(0), Just(700), Just(2048)],
        checkpoint in prop_oneof![Just(AUTOMATIC), Just(INDIRECT)],
    ) {
        let description = description(block * 512, checkpoint, pool_kib, write_log);
        let mut disks = Disks::new(&description, log_kib, seed);
        disks.run(Span::from_secs(3));
        prop_assert!(disks.checkpoints > 0, "{} checkpoints", disks.checkpoints);
        prop_assert!(disks.database.acknowledged() > 100);
    }
}

#[test]
fn commits_wait_for_a_checkpoint_if_the_log_is_full() {
    let waited = |log_kib| {
        let description = description(60 << 10, "every = \"1h\"", 8192, 2048);
        let mut disks = Disks::new(&description, log_kib, 1);
        disks.run(Span::from_secs(1));
        let waits = disks.database.counters().waits.get(Wait::LogmgrReserveAppend);
        (disks.checkpoints > 0, waits.count > 0, waits.time > Span::ZERO)
    };
    // A large log needs no early checkpoint.
    assert_eq!(waited(64 << 10), (false, false, false));
    assert_eq!(waited(128), (true, true, true));
}
