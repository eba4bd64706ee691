//! Jobs that wait for a medium: they delay no other requests, and end correctly.

use super::rig::{Cold, Rig, blocking, host, iops, memory, reports, volume};
use crate::host_loop::{Behind, ClientId, Owing};
use crate::volume::VolumeData;
use crate::worker::{Finished, Task, Workers};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use weir_core::{CacheMode, DeviceId, DeviceSpec, VolumeId, VolumeSpec};
use weir_proto::{Command, CommandFlags, Errno, Request};
use weir_store::{Extent, Fault, FaultStore, MemoryStore, Store, StoreError};
use weir_units::{Bytes, Span};

const SIZE: Bytes = Bytes::mib(1);

/// A store whose medium does nothing until it is let go on.
#[derive(Debug)]
struct Stalled {
    store: MemoryStore,
    goes: Mutex<bool>,
    changed: Condvar,
    panics: AtomicBool,
}

impl Stalled {
    fn new() -> Arc<Self> {
        let (store, goes, changed) = (MemoryStore::new(SIZE), Mutex::default(), Condvar::new());
        Arc::new(Self { store, goes, changed, panics: AtomicBool::new(false) })
    }

    fn let_go(&self) {
        *self.goes.lock().expect("no panic") = true;
        self.changed.notify_all();
    }

    fn wait(&self) -> &MemoryStore {
        let goes = self.goes.lock().expect("no panic");
        drop(self.changed.wait_while(goes, |goes| !*goes).expect("no panic"));
        assert!(!self.panics.load(Ordering::Acquire), "the medium is on fire");
        &self.store
    }
}

impl Store for Stalled {
    fn size(&self) -> Bytes {
        self.store.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        self.wait().read_at(offset, buf)
    }

    fn try_read_at(&self, _: u64, _: &mut [u8]) -> Result<bool, StoreError> {
        Ok(false)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), StoreError> {
        self.wait().write_at(offset, data)
    }

    fn write_zeroes(&self, offset: u64, len: u64, may_trim: bool) -> Result<(), StoreError> {
        self.wait().write_zeroes(offset, len, may_trim)
    }

    fn trim(&self, offset: u64, len: u64) -> Result<(), StoreError> {
        self.wait().trim(offset, len)
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.wait().sync()
    }

    fn resize(&self, new: Bytes) -> Result<(), StoreError> {
        self.wait().resize(new)
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>, StoreError> {
        self.wait().extents(offset, len, max)
    }

    fn allocated(&self) -> Result<Bytes, StoreError> {
        self.store.allocated()
    }
}

/// One of everything that may wait; their cookies.
fn one_of_each(rig: &mut Rig, device: usize, at: u64) -> Vec<u64> {
    let zeroes = Request::new(Command::WriteZeroes, 0, at + 8192, 4096);
    let me = rig.me;
    vec![
        rig.write(device, at, &[7; 4096]),
        rig.write(device, at + 4096, &[7; 100]),
        rig.write_fua(device, at, &[8; 4096]),
        rig.send(me, device, zeroes.with(CommandFlags::NO_HOLE), &[]),
        rig.send(me, device, Request::new(Command::Trim, 0, at + 12_288, 4096), &[]),
        rig.read(device, at + 16_384, 4096),
        rig.flush(device),
    ]
}

#[test]
fn a_stalled_store_holds_up_its_own_volume_and_no_other() {
    let (stalled, well) = (Stalled::new(), Arc::new(Cold::new(MemoryStore::new(SIZE))));
    let mut specs = vec![volume(SIZE), volume(SIZE), volume(SIZE)];
    specs[0].cache = CacheMode::ReadWrite;
    let stores = vec![blocking(&stalled), blocking(&well), memory(SIZE)];
    let mut rig = Rig::new(host(specs), stores);
    let (sender, finished) = channel();
    let sender = Mutex::new(sender);
    let mut workers =
        Workers::new("test", false, move |done| drop(sender.lock().expect("no panic").send(done)));
    let mut turn = |rig: &mut Rig| {
        rig.turn();
        workers.run_all(rig.jobs.drain(..).collect());
    };

    let waits: Vec<u64> = (0..20).flat_map(|n| one_of_each(&mut rig, 0, n * 20_480)).collect();
    turn(&mut rig);
    for device in [1, 2] {
        for cookie in one_of_each(&mut rig, device, 0) {
            turn(&mut rig);
            while rig.answer(cookie).is_none() {
                rig.hand_back(vec![finished.recv().expect("the workers live")]);
                turn(&mut rig);
            }
        }
    }
    // A ReadWrite cache takes whole blocks without its medium; that is all.
    for (n, cookie) in waits.iter().enumerate() {
        assert_eq!(rig.answer(*cookie).is_some(), n % 7 == 0, "request {n}");
    }

    stalled.let_go();
    while !rig.host.is_idle() {
        rig.hand_back(vec![finished.recv().expect("the workers live")]);
        turn(&mut rig);
    }
    assert!(waits.iter().all(|cookie| rig.answer(*cookie).is_some_and(Result::is_ok)));
    let me = rig.me;
    assert_eq!((rig.held(me), rig.in_flight(me)), (0, 0));
}

#[test]
fn a_panic_in_a_worker_is_an_error_and_the_next_job_is_done() {
    let stalled = Stalled::new();
    stalled.let_go();
    let mut rig = Rig::new(host(vec![volume(SIZE)]), vec![blocking(&stalled)]);
    stalled.panics.store(true, Ordering::Release);
    for cookie in [rig.write(0, 0, &[1; 512]), rig.read(0, 0, 512), rig.flush(0)] {
        rig.check(cookie, Err(Errno::Io));
    }
    stalled.panics.store(false, Ordering::Release);
    for cookie in one_of_each(&mut rig, 0, 0) {
        rig.check(cookie, Ok(()));
    }
}

/// A ReadWrite volume over a store that is cold and that fails when told to.
fn cached() -> (Rig, Arc<Cold<FaultStore>>) {
    let store = Arc::new(Cold::new(FaultStore::new(SIZE)));
    store.store.write_at(0, &[9; 4096]).expect("a sound store");
    let mut spec = volume(SIZE);
    spec.cache = CacheMode::ReadWrite;
    (Rig::new(host(vec![spec]), vec![blocking(&store)]), store)
}

#[test]
fn a_block_of_which_a_part_is_written_is_seen_when_it_is_whole() {
    let (mut rig, _) = cached();
    let (first, second) = (rig.write(0, 100, &[1; 100]), rig.write(0, 150, &[2; 100]));
    rig.turn();
    assert!(rig.answer(first).is_none() && rig.answer(second).is_none());
    let read = rig.read(0, 0, 300);
    rig.turn();
    // The lane's job is the first, the read the second.
    rig.work_on(1);
    assert_eq!(rig.answer(read), Some(&Ok(vec![9; 300])), "not a half of it");
    rig.work();
    assert!(rig.answer(first).is_some() && rig.answer(second).is_some());
    let expect = [[9; 100].as_slice(), &[1; 50], &[2; 100], &[9; 50]].concat();
    assert_eq!(rig.contents(0, 0, 300), expect);
}

#[test]
fn a_part_whose_rest_cannot_be_read_leaves_nothing_behind() {
    let (mut rig, store) = cached();
    store.store.fail_after(0, Fault::Io);
    let written = rig.write(0, 4000, &[1; 8192]);
    rig.check(written, Err(Errno::Io));
    store.store.heal();
    assert_eq!(rig.contents(0, 0, 4096), [9; 4096]);
    assert_eq!(rig.host.crash(rig.now), Bytes::kib(4), "the block that it covered");
}

#[test]
fn partial_block_writes_keep_the_order_of_arrival() {
    let (mut rig, store) = cached();
    store.cold.store(false, Ordering::Release);
    let forced = rig.write_fua(0, 0, &[1; 512]);
    let kept = rig.write(0, 512, &[2; 512]);
    let later = rig.write_fua(0, 1024, &[3; 512]);
    for cookie in [forced, kept, later] {
        rig.check(cookie, Ok(()));
    }
    let expect = [[1; 512], [2; 512], [3; 512], [9; 512]].concat();
    assert_eq!(rig.contents(0, 0, 2048), expect);
    let flushed = rig.flush(0);
    rig.check(flushed, Ok(()));
    let mut found = vec![0; 2048];
    store.store.crash(1).expect("in memory").read_at(0, &mut found).expect("in memory");
    assert_eq!(found, expect);
}

#[test]
fn a_crash_loses_nothing_that_is_on_its_way() {
    let (mut rig, store) = cached();
    let written = rig.write(0, 0, &[1; 4096]);
    rig.turn();
    assert_eq!(rig.answer(written), Some(&Ok(Vec::new())));
    rig.wait(Span::from_secs(1));
    assert_eq!(rig.jobs.len(), 1, "it is being written back");
    let newer = rig.write(0, 0, &[2; 512]);
    rig.turn();
    assert_eq!(rig.answer(newer), Some(&Ok(Vec::new())));
    assert_eq!(rig.host.crash(rig.now), Bytes::kib(4), "the newer write is lost");
    let seen = rig.read(0, 0, 4096);
    rig.turn();
    rig.work_on(1);
    assert_eq!(rig.answer(seen), Some(&Ok(vec![1; 4096])), "the older is still on its way");
    rig.work();
    assert_eq!(rig.contents(0, 0, 4096), [1; 4096]);
    let mut found = [0; 4096];
    store.read_at(0, &mut found).expect("in memory");
    assert_eq!(found, [1; 4096]);
}

#[test]
fn a_write_that_was_read_once_stays_visible() {
    let (mut rig, _) = cached();
    let written = rig.write(0, 0, &[1; 4096]);
    rig.wait(Span::from_secs(1));
    assert_eq!(rig.answer(written), Some(&Ok(Vec::new())));
    let written_back = reports(rig.jobs.remove(0));
    rig.write_fua(0, 0, &[2; 512]);
    rig.turn();
    let seen = rig.read(0, 0, 512);
    rig.turn();
    rig.work();
    assert_eq!(rig.answer(seen), Some(&Ok(vec![2; 512])), "it may be seen before its reply");
    rig.hand_back(written_back);
    // The lane's next job, then the read.
    let again = rig.read(0, 0, 512);
    rig.turn();
    rig.work_on(1);
    assert_eq!(rig.answer(again), Some(&Ok(vec![2; 512])));
    rig.settle();
}

/// The engine has written back the first write of a block whose rest is still being
/// read when a second one covers all of it and waits for room: what the first was
/// promised must not wait with it.
#[test]
fn acknowledged_blocks_reach_the_store_under_later_writes() {
    let (store, mut spec) = (Arc::new(Cold::new(FaultStore::new(SIZE))), volume(SIZE));
    spec.cache = CacheMode::ReadWrite;
    spec.limits = iops(1);
    let mut host = host(vec![spec]);
    host.cache.as_mut().expect("a cache").dirty_limit = Bytes::kib(8);
    let mut rig = Rig::new(host, vec![blocking(&store)]);
    let first = rig.write(0, 0, &[1; 512]);
    rig.wait(Span::from_secs(1));
    let other = rig.write(0, 16 << 10, &[2; 4096]);
    let second = rig.write(0, 0, &[3; 8192]);
    rig.turn();
    rig.work();
    assert!(rig.answer(first).is_some() && rig.answer(other).is_some());
    let flushed = rig.flush(0);
    rig.wait(Span::from_secs(1));
    rig.work();
    assert_eq!(rig.answer(flushed), Some(&Ok(vec![])));
    assert!(rig.host.engine().totals(VolumeId(0)).is_some_and(|t| t.written_back == 8192));
    let mut found = [0; 512];
    store.store.crash(1).expect("in memory").read_at(0, &mut found).expect("in memory");
    assert!(found == [1; 512] || found == [3; 512], "{}", found[0]);
    rig.check(second, Ok(()));
}

#[test]
fn a_rest_that_comes_after_a_crash_is_not_taken_for_another() {
    let (mut rig, _) = cached();
    rig.write(0, 0, &[1; 512]);
    rig.turn();
    let rest = reports(rig.jobs.remove(0));
    rig.host.crash(rig.now);
    rig.reconnect();
    let forced = rig.write_fua(0, 1024, &[2; 512]);
    let kept = rig.write(0, 2048, &[3; 512]);
    rig.turn();
    rig.hand_back(rest);
    rig.check(kept, Ok(()));
    rig.check(forced, Ok(()));
    let expect = [[9; 512], [9; 512], [2; 512], [9; 512], [3; 512]].concat();
    assert_eq!(rig.contents(0, 0, 2560), expect);
}

#[test]
fn a_crash_ends_jobs_of_workers_and_answers_each_request_at_most_once() {
    let store = Arc::new(FaultStore::new(SIZE));
    let mut rig = Rig::new(host(vec![volume(SIZE)]), vec![blocking(&store)]);
    for n in 0..20 {
        rig.write_fua(0, n * 512, &[1; 512]);
    }
    rig.turn();
    assert!(!rig.jobs.is_empty());
    rig.host.crash(rig.now);
    rig.reconnect();
    rig.work();
    assert!(rig.host.is_idle());
    assert_eq!(rig.contents(0, 0, 512), [1; 512]);
}

#[test]
fn a_shrinking_is_refused_while_a_write_behind_the_new_end_is_on_its_way() {
    let store = Arc::new(FaultStore::new(SIZE));
    let mut rig = Rig::new(host(vec![volume(SIZE)]), vec![blocking(&store)]);
    let half = volume(Bytes::kib(512));
    let refused = "volume \"data\": there is data beyond 512 KiB; trim or move it before shrinking";
    // It comes between the look at the store and the change.
    let (sender, told) = channel();
    rig.host.resize(rig.now, VolumeId(0), "data", &half, Behind::Keep, move |result| {
        sender.send(result.map_err(|e| e.to_string())).expect("someone listens");
    });
    rig.turn();
    let probe = reports(rig.jobs.remove(0));
    let written = rig.write(0, 600 << 10, &[1; 512]);
    rig.hand_back(probe);
    assert_eq!(told.try_recv().expect("it is over"), Err(refused.to_owned()));
    rig.check(written, Ok(()));
    assert_eq!(rig.resize(&half), Err(refused.to_owned()));
    assert_eq!(rig.host.size(weir_core::DeviceId(0)), SIZE);
    let trim = rig.send(rig.me, 0, Request::new(Command::Trim, 0, 512 << 10, 512 << 10), &[]);
    rig.check(trim, Ok(()));
    assert_eq!(rig.resize(&half), Ok(()));
    assert_eq!(rig.host.size(weir_core::DeviceId(0)), Bytes::kib(512));
}

#[test]
fn a_full_store_is_reported_at_its_start_and_its_end() {
    let (mut rig, store) = cached();
    let volume = VolumeId(0);
    let written = rig.write(0, 0, &[1; 12 << 10]);
    rig.check(written, Ok(()));
    store.store.fail_after(0, Fault::NoSpace);
    for _ in 0..3 {
        let flushed = rig.flush(0);
        rig.check(flushed, Err(Errno::NoSpc));
    }
    assert_eq!(rig.host.owed(volume), Bytes::kib(12));
    let reason = "no space left: injected by a test".to_owned();
    assert_eq!(rig.host.take_owing(), [Owing::Begins { volume, reason, full: true }]);
    assert_eq!(rig.contents(0, 0, 12 << 10), [1; 12 << 10]);
    store.store.heal();
    let flushed = rig.flush(0);
    rig.check(flushed, Ok(()));
    assert_eq!(rig.host.owed(volume), Bytes::ZERO);
    assert_eq!(rig.host.take_owing(), [Owing::Ends { volume }]);
    store.store.fail_after(0, Fault::Io);
    let again = [rig.write(0, 0, &[1; 4096]), rig.flush(0)];
    let answers = again.map(|cookie| rig.finish(cookie));
    assert_eq!(answers, [Ok(vec![]), Err(Errno::Io)]);
    let reason = "injected by a test".to_owned();
    assert_eq!(rig.host.take_owing(), [Owing::Begins { volume, reason, full: false }]);
    let mut found = vec![0; 12 << 10];
    store.store.crash(1).expect("in memory").read_at(0, &mut found).expect("in memory");
    assert_eq!(found, [1; 12 << 10]);
}

#[test]
fn zeros_over_a_long_range_do_not_hold_the_loop_and_keep_their_place() {
    let size = Bytes::mib(64);
    let mut rig = Rig::new(host(vec![volume(size)]), vec![memory(size)]);
    let before = rig.write(0, 0, &[1; 4096]);
    rig.check(before, Ok(()));
    let long = Request::new(Command::WriteZeroes, 0, 0, 32 << 20).with(CommandFlags::NO_HOLE);
    let zeroed = rig.send(rig.me, 0, long, &[]);
    rig.turn();
    assert!(matches!(rig.jobs[0].task, Task::Lane { .. }), "it is a worker's");
    let after = rig.write(0, 512, &[2; 512]);
    rig.turn();
    assert!(rig.answer(after).is_none(), "it has its place behind");
    rig.check(zeroed, Ok(()));
    rig.check(after, Ok(()));
    assert_eq!(rig.contents(0, 0, 1536), [[0; 512], [2; 512], [0; 512]].concat());
    let short = rig.write(0, 0, &[3; 512]);
    rig.turn();
    assert!(rig.answer(short).is_some(), "and then all is here and now again");
}

#[test]
fn a_flush_of_a_stripe_syncs_all_columns_at_once() {
    let stores: Vec<_> = (0..4).map(|_| Arc::new(FaultStore::new(SIZE))).collect();
    let mut spec = host((0..4).map(|_| volume(SIZE)).collect());
    let unit = Bytes::kib(4);
    spec.devices = vec![weir_core::DeviceSpec::Stripe { unit, columns: vec![0, 1, 2, 3] }];
    let mut rig = Rig::new(spec, stores.iter().map(blocking).collect());
    let flushed = rig.flush(0);
    rig.turn();
    assert_eq!(rig.jobs.len(), 4);
    stores[2].fail_after(0, Fault::Io);
    (0..3).for_each(|_| rig.work_on(rig.jobs.len() - 1));
    assert!(rig.answer(flushed).is_none(), "one is not back");
    rig.check(flushed, Err(Errno::Io));
}

#[test]
fn bytes_under_way_are_counted_for_their_client() {
    let store = Arc::new(FaultStore::new(SIZE));
    let mut rig = Rig::new(host(vec![volume(SIZE)]), vec![blocking(&store)]);
    let me = rig.me;
    let other = ClientId(1);
    rig.connect(other);
    rig.write(0, 0, &[1; 5000]);
    rig.send(other, 0, Request::new(Command::Write, 0, 8192, 700), &[2; 700]);
    rig.turn();
    assert_eq!((rig.held(me), rig.held(other)), (5000, 700));
    rig.disconnect(other);
    rig.settle();
    assert_eq!(rig.held(me), 0);
    assert_eq!(rig.contents(0, 8192, 700), [2; 700], "it is stored all the same");
}

#[test]
fn a_cache_that_is_far_ahead_of_its_store_waits_for_it() {
    let size = Bytes::mib(256);
    let store = Arc::new(FaultStore::new(size));
    let mut spec = volume(size);
    spec.cache = CacheMode::ReadWrite;
    let mut rig = Rig::new(host(vec![spec]), vec![blocking(&store)]);
    let data = vec![1; 1 << 20];
    let mut answered = 0;
    for n in 0..200 {
        let written = rig.write(0, n << 20, &data);
        rig.turn();
        answered += u64::from(rig.answer(written).is_some());
    }
    assert!((64..70).contains(&answered), "{answered} MiB are kept that the store does not have");
    rig.settle();
    assert_eq!(rig.host.outstanding(), 0);
}

#[test]
fn a_cache_that_its_store_refuses_takes_no_more_and_loses_nothing() {
    const MIB: usize = 1 << 20;
    let size = Bytes::mib(256);
    let store = Arc::new(FaultStore::new(size));
    let mut spec = volume(size);
    spec.cache = CacheMode::ReadWrite;
    let mut rig = Rig::new(host(vec![spec]), vec![blocking(&store)]);
    store.fail_after(0, Fault::NoSpace);
    let fill = |n: u64| vec![u8::try_from(n).expect("at most 200") + 1; MIB];
    let mut sent = Vec::new();
    for n in 0..200 {
        sent.push((n, rig.write(0, n << 20, &fill(n))));
        rig.turn();
        // The workers are late, at first.
        if n >= 20 {
            rig.work();
        }
    }
    rig.settle();
    let answer = |rig: &Rig, cookie| rig.answer(cookie).expect("it is answered").clone();
    let (kept, refused): (Vec<_>, Vec<_>) =
        sent.into_iter().partition(|(_, cookie)| answer(&rig, *cookie).is_ok());
    assert_eq!(kept.len(), 21, "what came until the store was heard of");
    assert!(refused.iter().all(|(_, cookie)| answer(&rig, *cookie) == Err(Errno::NoSpc)));
    assert_eq!(rig.host.owed(VolumeId(0)), Bytes::mib(21));
    // One that is refused leaves its own range as it may be, and no other.
    let over = rig.write(0, 512, &[0xee; 4096]);
    rig.check(over, Err(Errno::NoSpc));

    store.heal();
    // Without a flush, a write that the store takes brings the rest.
    let over = rig.write(0, 1024, &[0xff; 4096]);
    rig.check(over, Ok(()));
    rig.settle();
    assert_eq!(rig.host.owed(VolumeId(0)), Bytes::ZERO);
    assert_eq!(rig.host.take_owing().len(), 2, "it began, and it ended");
    let length = u32::try_from(MIB).expect("a MiB");
    for (n, _) in kept {
        let mut found = vec![0; MIB];
        store.read_at(n << 20, &mut found).expect("in memory");
        assert!(found == rig.contents(0, n << 20, length), "MiB {n} has left the cache");
        match n {
            0 => assert!(found[1024..5120] == [0xff; 4096] && found[5120..] == fill(0)[5120..]),
            n => assert!(found == fill(n), "MiB {n}"),
        }
    }
    let cached = rig.write(0, 0, &[3; 4096]);
    rig.turn();
    assert_eq!(rig.answer(cached), Some(&Ok(vec![])), "the cache takes writes again");
    assert!(rig.jobs.is_empty());
}

#[test]
fn bytes_waiting_in_a_cache_are_counted_for_their_client() {
    let mut spec = volume(SIZE);
    spec.cache = CacheMode::ReadWrite;
    spec.limits = iops(1);
    let mut host = host(vec![spec]);
    host.cache.as_mut().expect("a cache").dirty_limit = Bytes::kib(16);
    let mut rig = Rig::new(host, vec![memory(SIZE)]);
    let me = rig.me;
    let written: Vec<u64> = (0..40).map(|n| rig.write(0, n << 13, &[1; 8192])).collect();
    rig.turn();
    let waiting = |rig: &Rig| written.iter().filter(|c| rig.answer(**c).is_none()).count();
    assert!(waiting(&rig) >= 30, "the disk takes one a second");
    assert_eq!(rig.held(me), waiting(&rig) << 13);
    rig.wait(Span::from_secs(3));
    assert_eq!(rig.held(me), waiting(&rig) << 13);
    rig.settle();
    assert_eq!((waiting(&rig), rig.held(me)), (0, 0));
}

/// All reports of a lane but the last leave it at work.
#[test]
fn a_long_batch_is_reported_as_it_goes() {
    let store = Arc::new(FaultStore::new(SIZE));
    let mut rig = Rig::new(host(vec![volume(SIZE)]), vec![blocking(&store)]);
    let first = rig.write(0, 0, &[1; 512]);
    let written: Vec<u64> = (1..40).map(|n| rig.write(0, n * 512, &[1; 512])).collect();
    rig.turn();
    let mut done = reports(rig.jobs.remove(0));
    let last = |done: &Finished| matches!(done, Finished::Lane { last: true, .. });
    assert!(done.len() > 1 && done.iter().filter(|done| last(done)).count() == 1);
    let rest = done.split_off(1);
    rig.hand_back(done);
    assert!(rig.answer(first).is_some() && rig.answer(written[38]).is_none());
    let next = rig.write(0, 0, &[2; 512]);
    rig.turn();
    assert!(rig.jobs.is_empty(), "one worker at a time");
    rig.hand_back(rest);
    rig.check(next, Ok(()));
}

#[test]
fn a_worker_that_has_reported_holds_no_store() {
    let data = blocking(&Arc::new(MemoryStore::new(SIZE)));
    let store = Arc::clone(&data.store);
    let mut rig = Rig::new(host(vec![volume(SIZE)]), vec![data]);
    rig.write(0, 0, &[1; 512]);
    rig.flush(0);
    rig.turn();
    assert_eq!(rig.jobs.len(), 2, "a lane and a sync");
    for job in std::mem::take(&mut rig.jobs) {
        let before = Arc::strong_count(&store);
        let mut after = 0;
        job.run(&mut |_| after = Arc::strong_count(&store));
        assert_eq!(after, before - 1, "closing it would have to wait for the worker");
    }
}

#[test]
fn writes_of_a_deep_store_go_together_unless_they_overlap() {
    let store = Arc::new(Cold::deep(MemoryStore::new(SIZE), 4));
    let mut rig = Rig::new(host(vec![volume(SIZE)]), vec![blocking(&store)]);
    let apart: Vec<u64> = (0..3).map(|n| rig.write(0, n * 4096, &[1; 4096])).collect();
    let over = rig.write(0, 4000, &[2; 200]);
    let behind = rig.write(0, 40_960, &[3; 512]);
    rig.turn();
    assert_eq!(rig.jobs.len(), 3);
    // The last is done first, and answered after those before it.
    rig.work_on(2);
    assert_eq!((rig.answer(apart[2]), rig.jobs.len()), (None, 2));
    rig.work_on(1);
    rig.work_on(0);
    assert!(apart.iter().all(|cookie| rig.answer(*cookie) == Some(&Ok(Vec::new()))));
    // Now the write that overlapped them has started, and so has the one behind it.
    assert_eq!(rig.jobs.len(), 2);
    rig.settle();
    assert!([over, behind].iter().all(|cookie| rig.answer(*cookie) == Some(&Ok(Vec::new()))));
    let data = rig.contents(0, 0, 8192);
    assert!(data[..4000].iter().all(|byte| *byte == 1) && data[4000..4200] == [2; 200]);
    assert!(data[4200..].iter().all(|byte| *byte == 1));
}

#[test]
fn at_most_its_depth_is_at_work_on_a_store() {
    let store = Arc::new(Cold::deep(MemoryStore::new(SIZE), 4));
    let mut rig = Rig::new(host(vec![volume(SIZE)]), vec![blocking(&store)]);
    for n in 0..10 {
        rig.write(0, n * 4096, &[1; 4096]);
    }
    rig.turn();
    assert_eq!(rig.jobs.len(), 4);
    rig.work_one();
    assert_eq!(rig.jobs.len(), 4);
    rig.settle();
    assert!(rig.host.is_idle());
}

/// Time that a request waits for a backend is counted apart from the server's own.
#[test]
fn waits_for_a_backend_are_counted_apart() {
    let store = || Arc::new(Cold::new(MemoryStore::new(SIZE))) as Arc<dyn Store>;
    let volumes = vec![VolumeData::on_backend(store()), VolumeData::new(store(), true)];
    let mut rig = Rig::new(host(vec![volume(SIZE), volume(SIZE)]), volumes);
    for device in [0, 1] {
        rig.write(device, 0, &[1; 4096]);
        rig.read(device, 0, 4096);
        rig.flush(device);
        rig.turn();
        rig.now += Span::from_millis(3);
        rig.work();
    }
    let served = |device| *rig.host.served(DeviceId(device)).expect("a device");
    assert_eq!((served(0).backend, served(0).overhead), (Span::from_millis(9), Span::ZERO));
    assert_eq!((served(1).backend, served(1).overhead), (Span::ZERO, Span::from_millis(9)));
}

/// A write with FUA waits for a sync only if a store has not made all of it durable.
#[test]
fn a_write_that_the_store_makes_durable_needs_no_sync() {
    for (durable, syncs) in [([true, true], 0), ([true, false], 2), ([false, false], 2)] {
        let stores = durable.map(|durable| {
            let store = Arc::new(Cold::deep(FaultStore::new(SIZE), 4));
            store.store.make_writes_durable(durable);
            store
        });
        let cached = VolumeSpec { cache: CacheMode::ReadWrite, ..volume(SIZE) };
        let mut spec = host(vec![cached.clone(), cached]);
        spec.devices = vec![DeviceSpec::Stripe { unit: Bytes::kib(4), columns: vec![0, 1] }];
        let mut rig = Rig::new(spec, stores.iter().map(blocking).collect());
        let dirty = rig.write(0, 0, &[1; 8192]);
        rig.check(dirty, Ok(()));
        let fua = rig.write_fua(0, 2048, &[2; 4096]);
        let zeroes = Request::new(Command::WriteZeroes, 0, 6144, 2048).with(CommandFlags::FUA);
        let zeroes = rig.send(rig.me, 0, zeroes, &[]);
        rig.check(fua, Ok(()));
        rig.check(zeroes, Ok(()));
        let synced: usize = stores.iter().map(|own| own.syncs.load(Ordering::Relaxed)).sum();
        assert!(if syncs == 0 { synced == 0 } else { synced >= syncs }, "{durable:?}: {synced}");
        for store in &stores {
            let survived = store.store.crash(1).expect("a store in memory");
            let mut found = [9; 4096];
            survived.read_at(0, &mut found).expect("a read");
            let expect: &[u8] = if Arc::ptr_eq(store, &stores[0]) {
                &[[0; 2048], [2; 2048]].concat()
            } else {
                &[[2; 2048], [0; 2048]].concat()
            };
            assert_eq!(found, expect, "{durable:?}");
        }
    }
}
