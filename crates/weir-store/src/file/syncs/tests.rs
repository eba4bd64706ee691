//! Syncs beside each other, of which the test stalls one.

use super::*;
use crate::Store;
use crate::file::tests::{Ended, keep_in, lost, owed, small};
use crate::segment::FULL;
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::Duration;
use weir_units::Bytes;

/// Stalls the next sync of `store` when it has taken its marks, and runs `meanwhile` while it does.
fn while_syncing(store: &FileStore, meanwhile: impl FnOnce()) -> Result<()> {
    let stalled = store.syncs.stall.next();
    thread::scope(|scope| {
        let first = scope.spawn(|| store.sync());
        stalled.begun.wait();
        let stall = Ended(&stalled);
        meanwhile();
        drop(stall);
        first.join().unwrap()
    })
}

/// Runs `sync` beside one that is stalled, and expects it to wait for that one or not.
fn beside(
    store: &FileStore,
    waits: bool,
    sync: impl FnOnce() -> Result<()> + Send,
) -> [Result<()>; 2] {
    let (ended, end) = std::sync::mpsc::channel::<()>();
    thread::scope(|scope| {
        let mut second = None;
        let first = while_syncing(store, || {
            second = Some(scope.spawn(move || {
                let done = sync();
                drop(ended);
                done
            }));
            let patience = Duration::from_millis(if waits { 50 } else { 60_000 });
            let has_ended = end.recv_timeout(patience) != Err(RecvTimeoutError::Timeout);
            assert_ne!(has_ended, waits);
        });
        [first, second.unwrap().join().unwrap()]
    })
}

#[test]
fn a_sync_without_changes_waits_for_the_one_that_has_them() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(dir.path(), 1 << 18);
    assert_eq!(store.syncs(), 4);
    store.write_at(0, &[1]).unwrap();
    beside(&store, true, || store.sync()).into_iter().for_each(Result::unwrap);
    assert_eq!(owed(&store), (0, false));
}

#[test]
fn a_sync_does_not_wait_for_earlier_ones_that_it_does_not_need() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(dir.path(), 1 << 18);
    let change_and_sync = || {
        store.write_at(0, &[2; 1 << 16])?;
        store.sync()
    };
    change_and_sync().unwrap();
    // It has no open files of its own.
    store.write_at(0, &[3; 1 << 16]).unwrap();
    beside(&store, true, change_and_sync).into_iter().for_each(Result::unwrap);
    // One that is alone opens them.
    store.syncs.lock().lacks_files = true;
    change_and_sync().unwrap();
    for _ in 0..2 {
        store.write_at(0, &[3; 1 << 16]).unwrap();
        beside(&store, false, change_and_sync).into_iter().for_each(Result::unwrap);
        assert_eq!(owed(&store), (0, false));
    }
}

#[test]
fn no_sync_succeeds_that_relies_on_one_that_fails() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(dir.path(), 1 << 18);
    store.sync().unwrap();
    keep_in(&store, 1, FULL);
    store.write_at(1 << 16, &[1]).unwrap_err();
    let failed = beside(&store, true, || store.sync()).map(|done| done.unwrap_err().to_string());
    let own = format!("cannot sync {}/00001", dir.path().display());
    assert_eq!(failed, [own, lost(dir.path())]);
}

#[test]
fn a_sync_that_ends_after_a_resize_promises_no_lengths() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(dir.path(), 100_000);
    store.write_at(0, &[1; 100_000]).unwrap();
    while_syncing(&store, || store.adopt(Bytes::new(120_000)).unwrap()).unwrap();
    assert_eq!(store.durable_segments(), BTreeSet::new());
    store.sync().unwrap();
    assert_eq!(store.durable_segments(), BTreeSet::from([0, 1]));
}

/// Notices a sync that promises files which a shrinking has removed meanwhile.
#[test]
fn a_sync_that_ends_after_a_shrinking_promises_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(dir.path(), 100_000);
    store.write_at(0, &[1; 100_000]).unwrap();
    let shrink = || {
        store.adopt(Bytes::new(100)).unwrap();
        store.cut().unwrap();
    };
    while_syncing(&store, shrink).unwrap();
    assert_eq!(store.durable_segments(), BTreeSet::new());
    store.sync().unwrap();
    assert_eq!(store.durable_segments(), BTreeSet::from([0]));
}

/// Notices a sync that promises the length of a file that became longer meanwhile.
#[test]
fn a_sync_that_ends_after_a_lengthening_promises_no_lengths() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(dir.path(), 100_000);
    store.write_at(0, &[1; 100_000]).unwrap();
    while_syncing(&store, || store.lengthen(Bytes::new(120_000)).unwrap()).unwrap();
    assert_eq!(store.durable_segments(), BTreeSet::new());
    store.sync().unwrap();
    assert_eq!(store.durable_segments(), BTreeSet::from([0, 1]));
}

/// Notices marks that a sync took with it, and later syncs that wait for it forever.
#[test]
fn after_a_sync_that_ended_by_a_panic_no_later_one_succeeds() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(dir.path(), 1 << 18);
    store.write_at(0, &[1]).unwrap();
    let mut state = store.syncs.lock();
    state.lacks_files = true;
    let begun = store.syncs.begin(&mut state, &store).unwrap();
    assert!(state.opens_files && !state.is_alone());
    drop(state);
    assert_eq!(owed(&store), (1, true));
    drop(begun);
    let state = store.syncs.lock();
    assert!(!state.opens_files && state.is_alone());
    drop(state);
    assert_eq!(store.sync().unwrap_err().to_string(), lost(dir.path()));
}
