//! A ReadWrite cache: the writes that it keeps, shows and loses.

use super::rig::{Cold, Rig, blocking, host, iops, memory, reports, volume};
use std::sync::Arc;
use weir_core::{CacheMode, VolumeId};
use weir_proto::{Command, Errno, Request};
use weir_store::{Fault, FaultStore, MemoryStore, Store};
use weir_units::{Bytes, Span};

/// A ReadWrite volume over `store`; writing back is held to `limit` operations a
/// second, if any.
fn cached(store: &Arc<impl Store + 'static>, limit: u64) -> Rig {
    let mut spec = volume(store.size());
    spec.cache = CacheMode::ReadWrite;
    spec.limits = iops(limit);
    Rig::new(host(vec![spec]), vec![blocking(store)])
}

fn fault_store() -> Arc<FaultStore> {
    Arc::new(FaultStore::new(Bytes::mib(8)))
}

#[track_caller]
fn check_store(store: &impl Store, offset: u64, expect: &[u8]) {
    let mut found = vec![0; expect.len()];
    store.read_at(offset, &mut found).expect("a sound store");
    let differs = found.iter().zip(expect).position(|(found, expect)| found != expect);
    assert_eq!(differs, None, "the first byte that differs");
}

#[test]
fn a_write_is_seen_at_once_and_stored_by_a_flush() {
    let store = fault_store();
    let mut rig = cached(&store, 0);
    let written = rig.write(0, 1000, &[1; 100]);
    rig.check(written, Ok(()));
    assert_eq!(rig.contents(0, 999, 102), [&[0][..], &[1; 100], &[0]].concat());
    check_store(&*store, 1000, &[0; 100]);
    let flushed = rig.flush(0);
    rig.check(flushed, Ok(()));
    check_store(&*store, 999, &[&[0][..], &[1; 100], &[0]].concat());
    assert_eq!(store.unsynced(), 0);
}

#[test]
fn old_dirty_blocks_are_written_back_without_a_flush() {
    let store = fault_store();
    let mut rig = cached(&store, 0);
    let written = rig.write(0, 0, &[1; 4096]);
    rig.check(written, Ok(()));
    rig.wait(Span::from_millis(999));
    check_store(&*store, 0, &[0; 4096]);
    rig.wait(Span::from_millis(1));
    rig.work();
    check_store(&*store, 0, &[1; 4096]);
}

#[test]
fn a_crash_loses_what_was_not_flushed_and_nothing_else() {
    let store = fault_store();
    let mut rig = cached(&store, 0);
    let flushed = [rig.write(0, 0, &[1; 8192]), rig.flush(0)];
    flushed.into_iter().for_each(|cookie| rig.check(cookie, Ok(())));
    let lost = rig.write(0, 4000, &[2; 200]);
    rig.check(lost, Ok(()));
    // Forced through, in the middle of a block that is dirty.
    let forced = rig.write_fua(0, 4096, &[3; 50]);
    rig.check(forced, Ok(()));
    let mut seen = [[1; 4000].as_slice(), &[2; 96], &[3; 50], &[2; 54], &[1; 3992]].concat();
    assert_eq!(rig.contents(0, 0, 8192), seen);
    assert_eq!(rig.host.crash(rig.now), Bytes::kib(8), "two blocks were dirty");
    seen[4000..4096].fill(1);
    seen[4146..4200].fill(1);
    assert_eq!(rig.contents(0, 0, 8192), seen);
}

#[test]
fn zeroes_reach_through_the_cache() {
    let store = fault_store();
    let mut rig = cached(&store, 0);
    let base = [rig.write(0, 0, &[1; 16_384]), rig.flush(0), rig.write(0, 0, &[2; 16_384])];
    base.into_iter().for_each(|cookie| rig.check(cookie, Ok(())));
    let trim = rig.send(rig.me, 0, Request::new(Command::Trim, 0, 2000, 8000), &[]);
    rig.check(trim, Ok(()));
    let expect = [[2; 2000].as_slice(), &[0; 8000], &[2; 6384]].concat();
    assert_eq!(rig.contents(0, 0, 16_384), expect);
    let flushed = rig.flush(0);
    rig.check(flushed, Ok(()));
    check_store(&*store, 0, &expect);
}

#[test]
fn a_write_back_that_fails_is_tried_again_by_every_flush_until_it_succeeds() {
    let store = fault_store();
    let mut rig = cached(&store, 0);
    let written = rig.write(0, 0, &[1; 4096]);
    rig.check(written, Ok(()));
    store.fail_after(0, Fault::NoSpace);
    for _ in 0..3 {
        let flushed = rig.flush(0);
        rig.check(flushed, Err(Errno::NoSpc));
    }
    let forced = rig.write_fua(0, 8192, &[2; 512]);
    rig.check(forced, Err(Errno::NoSpc));
    assert_eq!(rig.contents(0, 0, 4096), [1; 4096]);
    store.heal();
    let flushed = rig.flush(0);
    rig.check(flushed, Ok(()));
    check_store(&store.crash(1).expect("a sound store"), 0, &[1; 4096]);
    assert_eq!(rig.host.crash(rig.now), Bytes::ZERO);
}

#[test]
fn a_flush_that_shares_a_sync_shares_its_bad_news() {
    let store = fault_store();
    let mut rig = cached(&store, 0);
    let first = rig.flush(0);
    rig.turn();
    let (written, second) = (rig.write(0, 0, &[1; 4096]), rig.flush(0));
    store.fail_after(0, Fault::NoSpace);
    rig.turn();
    // The first flush ends now; what failed meanwhile concerns the second.
    rig.check(first, Ok(()));
    rig.check(written, Ok(()));
    rig.check(second, Err(Errno::NoSpc));
}

#[test]
fn a_read_on_a_worker_sees_what_was_dirty_when_it_began() {
    let store = Arc::new(Cold::new(MemoryStore::new(Bytes::mib(4))));
    let mut rig = cached(&store, 0);
    let written = rig.write(0, 0, &[1; 4096]);
    rig.check(written, Ok(()));
    let read = rig.read(0, 0, 4096);
    rig.turn();
    let done = reports(rig.jobs.remove(0));
    // The worker has read; before it is back, the block reaches the store and
    // leaves the cache.
    rig.wait(Span::from_secs(2));
    rig.work();
    check_store(&*store, 0, &[1; 4096]);
    rig.hand_back(done);
    assert_eq!(rig.answer(read), Some(&Ok(vec![1; 4096])));
}

#[test]
fn leaving_read_write_under_load_keeps_what_waits_for_room() {
    let store = fault_store();
    let mut rig = cached(&store, 100);
    // 1 MiB may be dirty and 16 runs of 64 KiB on their way; the rest waits for room.
    let data = vec![6; 64 << 10];
    let writes: Vec<u64> = (0..128).map(|n| rig.write(0, n << 16, &data)).collect();
    rig.turn();
    assert!(rig.host.outstanding() > 0);
    rig.host.set_cache(rig.now, VolumeId(0), CacheMode::None);
    writes.into_iter().for_each(|cookie| rig.check(cookie, Ok(())));
    let flushed = rig.flush(0);
    rig.check(flushed, Ok(()));
    assert_eq!(rig.host.crash(rig.now), Bytes::ZERO);
    let survived = store.crash(3).expect("a sound store");
    (0..128).for_each(|n| check_store(&survived, n << 16, &data));
}

#[test]
fn a_drained_host_has_stored_everything() {
    let store = fault_store();
    let mut rig = cached(&store, 10);
    let writes: Vec<u64> = (0..200).map(|n| rig.write(0, n << 14, &[8; 8192])).collect();
    rig.turn();
    rig.host.drain(rig.now);
    let before = rig.now;
    writes.into_iter().for_each(|cookie| rig.check(cookie, Ok(())));
    assert_eq!(rig.now, before, "no limit holds any more");
    rig.host.sync_all().expect("a sound store");
    let survived = store.crash(3).expect("a sound store");
    (0..200).for_each(|n| check_store(&survived, n << 14, &[8; 8192]));
}

#[test]
fn a_whole_block_is_cached_without_a_look_at_the_disk() {
    let store = fault_store();
    let mut rig = cached(&store, 0);
    store.fail_after(0, Fault::Io);
    let whole = rig.write(0, 4096, &[1; 8192]);
    rig.check(whole, Ok(()));
    let part = rig.write(0, 0, &[1; 512]);
    rig.check(part, Err(Errno::Io));
}

#[test]
fn write_backs_due_before_a_crash_are_kept() {
    let store = fault_store();
    let mut rig = cached(&store, 0);
    let written = rig.write(0, 0, &[1; 4096]);
    rig.check(written, Ok(()));
    // The driver is late: it has not called the host since.
    let late = rig.now + Span::from_secs(2);
    assert_eq!(rig.host.crash(late), Bytes::ZERO);
    rig.wait(Span::from_secs(2));
    rig.work();
    check_store(&*store, 0, &[1; 4096]);
}

#[test]
fn the_end_of_a_volume_need_not_be_a_blocks() {
    let size = Bytes::new(10_000);
    let mut spec = volume(size);
    spec.cache = CacheMode::ReadWrite;
    let mut rig = Rig::new(host(vec![spec]), vec![memory(size)]);
    let written = [rig.write(0, 9_000, &[1; 1_000]), rig.flush(0)];
    written.into_iter().for_each(|cookie| rig.check(cookie, Ok(())));
    rig.host.crash(rig.now);
    assert_eq!(rig.contents(0, 8_999, 1_001), [&[0][..], &[1; 1_000]].concat());
}
