//! The closed loop, on disks with a constant latency.

use super::*;
use crate::model::{self, Checkpoint, Checkpoints, DataFile, Log, Transaction};
use weir_units::Bytes;

/// 50 users of a warm database of 8 MiB in two files, on 4 schedulers.
fn model() -> Model {
    let data = |file| DataFile::new(file, Bytes::gib(1));
    let transaction = Transaction {
        name: "t".to_owned(),
        share: 1,
        batches: 2,
        reads: 2.5,
        writes: 1.5,
        new_pages: 0.0,
        hot_pages: 10,
        hot_writes: 1,
        sequential: false,
        tempdb_pages: 0,
        log: Bytes::new(700),
        cpu: Span::from_micros(300),
    };
    Model {
        users: 50,
        think_time: Span::from_millis(10),
        vcores: 4,
        quantum: Span::from_millis(4),
        mix: vec![transaction],
        working_set: 1024,
        skew: 0.5,
        buffer_pool: 1024,
        warm: true,
        read_extents: false,
        data: vec![data(0), data(1)],
        log: Log { file: 2, size: Bytes::gib(1), block: Bytes::kib(60), writes: 8 },
        checkpoint: Checkpoint {
            kind: Checkpoints::Automatic { every: Span::from_secs(1) },
            writes: 4,
            coalesce: Bytes::kib(256),
            latency: None,
        },
        tempdb: None,
        seed: 1,
    }
}

/// A database and its disks.
struct Rig {
    database: Database,
    latency: Span,
    in_flight: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    issued: Vec<(Instant, FileIo)>,
    now: Instant,
}

impl Rig {
    fn new(model: Model, latency: Span) -> Self {
        let database = Database::new(model);
        let (in_flight, issued) = (BinaryHeap::new(), Vec::new());
        Self { database, latency, in_flight, issued, now: Instant::ZERO }
    }

    /// Runs for `length`, and calls `look` after every event.
    fn run(&mut self, length: Span, mut look: impl FnMut(&mut Database)) {
        let end = self.now + length;
        loop {
            while let Some(io) = self.database.poll_io() {
                let serial = self.issued.len() as u64;
                self.in_flight.push(Reverse((self.now + self.latency, serial, io.tag)));
                self.issued.push((self.now, io));
            }
            look(&mut self.database);
            let disk = self.in_flight.peek().map(|Reverse((at, ..))| *at);
            let next = disk.into_iter().chain(self.database.poll_deadline()).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = next;
            if disk == Some(next) {
                let Some(Reverse((_, _, tag))) = self.in_flight.pop() else { break };
                self.database.handle_completion(next, tag, Span::ZERO);
            } else {
                self.database.handle_timeout(next);
            }
        }
        self.now = end;
    }
}

/// Counts the users in all states.
fn users(database: &Database) -> usize {
    let timers = database.timers.iter();
    let is_own = |timer: &Timer| !matches!(timer, Timer::Checkpoint | Timer::Poll);
    let own = timers.filter(|Reverse((_, _, timer))| is_own(timer)).count();
    let at_pages: usize = database.waiting.values().map(Vec::len).sum();
    let in_tempdb = database.tempdb.as_ref().map_or(0, Tempdb::waiting_count);
    own + at_pages
        + database.unplaced.len()
        + database.out_of_memory.len()
        + database.cores.waiting_count()
        + database.log.waiting_count()
        + in_tempdb
}

#[test]
fn every_user_is_always_in_one_place() {
    let mut rig =
        Rig::new(Model { buffer_pool: 100, warm: false, ..model() }, Span::from_millis(3));
    rig.run(Span::from_secs(3), |database| assert_eq!(users(database), 50));
    assert!(rig.database.counters().transactions > 1_000);
}

#[test]
#[expect(clippy::cast_precision_loss, reason = "for a ratio")]
fn littles_law_holds() {
    for latency in [Span::from_micros(100), Span::from_millis(5)] {
        let mut rig = Rig::new(model(), latency);
        let seconds = 60;
        rig.run(Span::from_secs(seconds), |_| {});
        let counted = rig.database.counters();
        let done = counted.transactions as f64;
        let rate = done / seconds as f64;
        let response = counted.response.nanos() as f64 / 1e9 / done;
        let users = rate * (response + 0.010);
        assert!((users / 50.0 - 1.0).abs() < 0.01, "{users} users at {latency}");
        assert_eq!(counted.batches, 2 * counted.transactions);
        // The CPU time is that of all transactions, including unfinished ones.
        let cpu = counted.cpu.nanos() as f64 / (done * 300e3);
        assert!((1.0..1.01).contains(&cpu), "{cpu}");
    }
}

#[test]
fn one_seed_is_one_run() {
    let run = |seed| {
        let mut rig = Rig::new(Model { seed, warm: false, ..model() }, Span::from_millis(1));
        rig.run(Span::from_secs(2), |_| {});
        (rig.issued, rig.database.counters())
    };
    assert!(run(7) == run(7), "two runs of one seed differ");
    assert!(run(7).0 != run(8).0, "the seed changes nothing");
}

#[test]
fn means_are_means() {
    let mut rig = Rig::new(model(), Span::from_micros(100));
    rig.run(Span::from_secs(20), |_| {});
    let counted = rig.database.counters();
    // 2.5 + 1.5 + 1 hot page, including unfinished transactions.
    let mean = counted.pages_wanted * 1000 / counted.transactions;
    assert!((4_960..=5_040).contains(&mean), "{mean} thousandths of a page");
}

#[test]
fn a_small_pool_reads_missing_pages_and_stays_small() {
    let mut mix = model().mix;
    (mix[0].writes, mix[0].hot_writes) = (0.0, 0);
    let small = Model { mix, buffer_pool: 256, ..model() };
    let mut rig = Rig::new(small, Span::from_millis(1));
    rig.run(Span::from_secs(20), |database| assert!(database.pages_in_memory() <= 256));
    let counted = rig.database.counters();
    // A quarter of uniform accesses is in memory.
    let missed = counted.pages_missed * 1000 / counted.pages_wanted;
    assert!((730..=770).contains(&missed), "{missed} of 1000");
    assert_eq!(counted.pages_evicted, counted.pages_missed - rig.under_way_reads());
}

impl Rig {
    fn under_way_reads(&self) -> u64 {
        let read = |tag: u32| matches!(self.database.in_flight[tag as usize], Purpose::Read { .. });
        self.in_flight.iter().filter(|Reverse((_, _, tag))| read(*tag)).count() as u64
    }
}

#[test]
fn changed_pages_are_written_and_cannot_change_meanwhile() {
    let mut rig = Rig::new(model(), Span::from_millis(20));
    rig.run(Span::from_millis(999), |_| {});
    let dirty = rig.database.pages_dirty();
    let writes_to_data = |rig: &Rig| {
        let written = rig.issued.iter().filter(|(_, io)| io.op == FileOp::Write && io.file < 2);
        written.map(|(_, io)| io.len / PAGE).sum::<u64>()
    };
    assert!(dirty > 100 && writes_to_data(&rig) == 0, "{dirty} dirty pages");
    let before = rig.database.counters().waits.get(Wait::PageIoLatchEx).count;
    rig.run(Span::from_millis(900), |_| {});
    assert_eq!(rig.database.counters().checkpoints, 1);
    // And those that were changed before the sweep reached them.
    assert!(writes_to_data(&rig) >= dirty, "{} of {dirty}", writes_to_data(&rig));
    let waited = rig.database.counters().waits.get(Wait::PageIoLatchEx).count;
    assert!(before == 0 && waited > 0, "{before}, then {waited}");
}

#[test]
fn a_cold_database_reads_whole_extents_until_memory_is_full() {
    let cold = Model { warm: false, read_extents: true, ..model() };
    let mut rig = Rig::new(cold, Span::from_millis(1));
    rig.run(Span::from_secs(3), |_| {});
    let reads = || rig.issued.iter().filter(|(_, io)| io.op == FileOp::Read);
    assert!(reads().all(|(_, io)| io.len == 8 * PAGE && io.offset.is_multiple_of(8 * PAGE)));
    assert_eq!(reads().count(), 128);
    assert_eq!(rig.database.pages_in_memory(), 1024);
}

#[test]
fn waits_for_schedulers_are_counted() {
    let mut mix = model().mix;
    mix[0].cpu = Span::from_millis(10);
    let mut rig = Rig::new(Model { mix, vcores: 1, ..model() }, Span::from_micros(100));
    rig.run(Span::from_secs(10), |_| {});
    let counted = rig.database.counters();
    // One scheduler does 100 transactions of 10 ms in a second.
    assert!((980..=1000).contains(&counted.transactions), "{}", counted.transactions);
    let waited = counted.waits.get(Wait::SosSchedulerYield);
    // 10 ms are three turns of at most 4 ms.
    assert!(waited.count > 2_900 && waited.time > Span::from_secs(400), "{waited:?}");
}

#[test]
fn a_held_log_is_charged_to_the_governor() {
    let mut database = Database::new(Model { users: 1, ..model() });
    let (now, io) = loop {
        let now = database.poll_deadline().expect("a user");
        database.handle_timeout(now);
        if let Some(io) = database.poll_io() {
            break (now, io);
        }
    };
    assert_eq!((io.file, io.len), (2, 1024));
    database.handle_completion(now + Span::from_millis(9), io.tag, Span::from_millis(7));
    let waits = database.counters().waits;
    let of = |wait| (waits.get(wait).count, waits.get(wait).time);
    assert_eq!(of(Wait::WriteLog), (1, Span::from_millis(2)));
    assert_eq!(of(Wait::InstanceLogRateGovernor), (1, Span::from_millis(7)));
}

/// The model with a tempdb of `files` files of 256 pages. Each transaction fills 4 pages.
fn with_tempdb(files: u32, latch: Span) -> Model {
    let file = |n: u32| DataFile::new(3 + n, Bytes::mib(4));
    let data: Vec<DataFile> = (0..files).map(file).collect();
    let size = Bytes::mib(2 * u64::from(files));
    let mut mix = model().mix;
    mix[0].tempdb_pages = 4;
    let kind = Checkpoints::Indirect { target_recovery: Span::from_millis(100) };
    let checkpoint = Checkpoint { kind, ..model().checkpoint };
    Model { mix, tempdb: Some(model::Tempdb { data, size, latch }), checkpoint, ..model() }
}

#[test]
fn tempdb_is_written_evenly_over_its_files() {
    let mut rig = Rig::new(with_tempdb(3, Span::ZERO), Span::from_millis(1));
    rig.run(Span::from_secs(3), |database| assert_eq!(users(database), 50));
    let mut written = [0; 3];
    for (_, io) in rig.issued.iter().filter(|(_, io)| io.file >= 3) {
        assert_eq!(io.op, FileOp::Write);
        assert!(io.len <= 256 << 10 && io.offset + io.len <= 2 << 20, "{io:?}");
        written[io.file as usize - 3] += io.len;
    }
    let (least, most) = (written.iter().min(), written.iter().max());
    assert!(least.zip(most).is_some_and(|(least, most)| least * 100 > most * 95), "{written:?}");
    // A page that is filled again before it is old enough is written once.
    let filled = rig.database.counters().transactions * 4 * PAGE;
    let all = written.iter().sum::<u64>();
    assert!(all > filled / 10 && all <= filled + (6 << 20), "{all} of {filled}");
}

#[test]
fn a_page_of_tempdb_that_is_being_written_is_waited_for() {
    let waited = |latency| {
        let mut rig = Rig::new(with_tempdb(1, Span::ZERO), latency);
        rig.run(Span::from_secs(3), |database| assert_eq!(users(database), 50));
        let counted = rig.database.counters();
        (counted.waits.get(Wait::PageIoLatchEx).count, counted.transactions)
    };
    let (fast, slow) = (waited(Span::from_micros(10)), waited(Span::from_millis(100)));
    assert!(slow.0 > 10 * fast.0 + 100, "{fast:?} and {slow:?}");
}

#[test]
fn more_files_of_tempdb_are_less_contention() {
    // 4 pages of 250 us are 1,000 transactions a second from each file.
    let run = |files| {
        let mut rig = Rig::new(with_tempdb(files, Span::from_micros(250)), Span::from_micros(100));
        rig.run(Span::from_secs(2), |_| {});
        let counted = rig.database.counters();
        (counted.transactions, counted.waits.get(Wait::PageLatchUp).time)
    };
    let (one, two, eight) = (run(1), run(2), run(8));
    assert!(
        (1_950..=2_000).contains(&one.0) && (3_800..=4_000).contains(&two.0),
        "{one:?} {two:?}"
    );
    assert!(eight.1 < two.1 && two.1 < one.1, "{one:?} {two:?} {eight:?}");
}

#[test]
fn a_scan_reads_ahead_in_large_reads() {
    let mut mix = model().mix;
    mix[0] = Transaction { sequential: true, reads: 512.0, writes: 0.0, ..mix[0].clone() };
    (mix[0].hot_writes, mix[0].hot_pages) = (0, 0);
    let cold = Model { mix, users: 1, warm: false, working_set: 1024, ..model() };
    let mut rig = Rig::new(cold, Span::from_millis(1));
    rig.run(Span::from_secs(1), |_| {});
    let reads = rig.issued.iter().filter(|(_, io)| io.op == FileOp::Read);
    let reads: Vec<u64> = reads.map(|(_, io)| io.len).collect();
    // All pages of the files once, mostly in reads of 64 pages.
    assert_eq!(reads.iter().sum::<u64>(), u64::from(rig.database.placement.pages()) * PAGE);
    assert!(reads.iter().filter(|len| **len == 64 * PAGE).count() >= 12, "{reads:?}");
    let counted = rig.database.counters();
    assert!(counted.pages_missed * 20 < counted.pages_wanted, "{counted:?}");
}

#[test]
fn a_load_reads_nothing() {
    let mut mix = model().mix;
    mix[0] = Transaction {
        sequential: true,
        reads: 0.0,
        writes: 0.0,
        new_pages: 32.0,
        ..mix[0].clone()
    };
    (mix[0].hot_writes, mix[0].hot_pages) = (0, 0);
    let load = Model { mix, users: 1, warm: false, ..model() };
    let mut rig = Rig::new(load, Span::from_millis(1));
    rig.run(Span::from_secs(3), |_| {});
    assert!(rig.issued.iter().all(|(_, io)| io.op == FileOp::Write));
    let pages = rig.issued.iter().filter(|(_, io)| io.file < 2);
    assert!(pages.clone().count() > 0 && pages.clone().all(|(_, io)| io.len >= 8 * PAGE));
}

/// Transactions that add 2 MiB to two files with 4 MiB of the working set and 4 MiB of free space
/// each; the first file grows by 1 MiB.
fn filling(most: Bytes) -> Model {
    let mut mix = model().mix;
    let load = Transaction { reads: 0.0, writes: 0.0, new_pages: 256.0, ..mix[0].clone() };
    mix[0] = Transaction { hot_writes: 0, hot_pages: 0, log: Bytes::mib(2), ..load };
    let mut model = Model { mix, users: 2, buffer_pool: 2048, ..model() };
    for data in &mut model.data {
        (data.size, data.used) = (Bytes::mib(8), Bytes::mib(4));
    }
    model.data[0].growth = Some(model::Growth { by: Bytes::mib(1), most });
    model
}

#[test]
fn files_fill_and_grow_and_then_they_are_full() {
    let mut rig = Rig::new(filling(Bytes::mib(12)), Span::from_millis(1));
    let mut grown = Vec::new();
    let mut sizes = [8 << 20; 2];
    rig.run(Span::from_secs(20), |database| {
        assert_eq!(users(database), 2);
        // The working set is in memory, and as many new pages as fit.
        assert!(database.pages_in_memory() <= 2048 + 512, "{}", database.pages_in_memory());
        while let Some(growth) = database.poll_growth() {
            sizes[growth.file as usize] = growth.size.get();
            grown.push(growth);
            database.handle_growth(database.now, true);
        }
    });
    let growth = |mib| FileGrowth { file: 0, size: Bytes::mib(mib) };
    assert_eq!(grown, [9, 10, 11, 12].map(growth));
    let counted = rig.database.counters();
    assert_eq!((counted.growths, counted.transactions), (4, (8 + 4) / 2));
    assert!(counted.failed > 10, "{counted:?}");
    // Every extent of the files was written, none beyond the end, and no new one twice.
    let mut written = [0, 0];
    for (_, io) in rig.issued.iter().filter(|(_, io)| io.file < 2 && io.op == FileOp::Write) {
        let file = io.file as usize;
        assert!(io.offset >= 4 << 20 && io.offset + io.len <= sizes[file], "{io:?}");
        written[file] += io.len;
    }
    assert_eq!(written, [8 << 20, 4 << 20]);
}

/// A pool of 128 pages for users that each access more than that, with and without disk latency.
#[test]
fn a_transaction_larger_than_memory_commits() {
    for latency in [Span::ZERO, Span::from_millis(1)] {
        for (writes, new_pages) in [(300.0, 0.0), (0.0, 300.0)] {
            let mut model = filling(Bytes::gib(1));
            let kind = Transaction { writes, new_pages, ..model.mix[0].clone() };
            (model.mix, model.buffer_pool, model.warm) = (vec![kind], 128, false);
            let mut rig = Rig::new(model, latency);
            rig.run(Span::from_secs(5), |database| {
                while database.poll_growth().is_some() {
                    database.handle_growth(database.now, true);
                }
            });
            let counted = rig.database.counters();
            assert!(counted.transactions > 10, "{latency} {writes}: {counted:?}");
            let reads = rig.issued.iter().filter(|(_, io)| io.op == FileOp::Read && io.file < 2);
            assert_eq!(reads.count() > 0, writes > 0.0, "new pages are never read");
        }
    }
}

#[test]
fn memory_does_not_exceed_its_size_with_many_users() {
    let model = Model { users: 5_000, buffer_pool: 128, warm: false, ..model() };
    let mut rig = Rig::new(model, Span::from_millis(3));
    let mut most = 0;
    rig.run(Span::from_secs(2), |database| most = most.max(database.pages_in_memory()));
    assert!(most <= 128 + 2 * 64, "{most} pages in memory");
    let counted = rig.database.counters();
    assert!(counted.waits.get(Wait::SleepBufferpoolHelpLw).count > 0, "{counted:?}");
    assert!(counted.transactions > 1_000, "{counted:?}");
}

#[test]
fn pages_of_a_failed_transaction_are_free_for_others() {
    let mut model = filling(Bytes::mib(8));
    let small = Transaction { new_pages: 1.0, log: Bytes::kib(8), ..model.mix[0].clone() };
    let large = Transaction { new_pages: 2_000.0, ..model.mix[0].clone() };
    (model.mix, model.users) = (vec![large, small], 1);
    let mut rig = Rig::new(model, Span::from_millis(1));
    rig.run(Span::from_secs(60), |_| {});
    let counted = rig.database.counters();
    // 8 MiB are free, and all of them are used in the end, page by page.
    assert_eq!(counted.transactions, 1024, "{counted:?}");
}

/// The size of the tables depends on that of memory, not on the written pages.
#[test]
fn memory_does_not_grow_with_added_pages() {
    let mut model = filling(Bytes::gib(1 << 10));
    (model.buffer_pool, model.warm) = (2048, false);
    let mut rig = Rig::new(model, Span::from_micros(10));
    rig.run(Span::from_secs(20), |database| {
        while database.poll_growth().is_some() {
            database.handle_growth(database.now, true);
        }
    });
    let added = rig.database.counters().transactions * 256;
    assert!(added > 100_000, "{added}");
    let kept = rig.database.pages.pieces();
    assert!(kept * 4096 < 20_000, "{kept} pieces for {added} pages");
}

#[test]
fn transactions_fail_if_no_file_can_grow() {
    let mut rig = Rig::new(filling(Bytes::gib(1)), Span::from_millis(1));
    let mut asked = 0;
    rig.run(Span::from_secs(20), |database| {
        while let Some(growth) = database.poll_growth() {
            asked += 1;
            assert_eq!(growth.size, Bytes::mib(9));
            database.handle_growth(database.now, false);
        }
    });
    let counted = rig.database.counters();
    assert_eq!((asked, counted.growths, counted.transactions), (1, 0, 4));
    assert!(counted.failed > 10, "{counted:?}");
}

#[test]
fn the_lazy_writer_makes_room() {
    let never = Checkpoints::Automatic { every: Span::from_secs(3600) };
    let checkpoint = Checkpoint { kind: never, ..model().checkpoint };
    let small = Model { buffer_pool: 256, warm: false, checkpoint, ..model() };
    let mut rig = Rig::new(small, Span::from_millis(1));
    let mut most = 0;
    rig.run(Span::from_secs(5), |database| most = most.max(database.pages_in_memory()));
    assert!(rig.issued.iter().any(|(_, io)| io.op == FileOp::Write && io.file < 2));
    assert!(most < 256 + 2 * 64, "{most} pages in memory");
    let waits = rig.database.counters().waits;
    assert!(waits.get(Wait::SleepBufferpoolHelpLw).count > 0, "{waits:?}");
}
