//! The guarantees of the volume, case by case.

use crate::paged::home::{Home, LayerList, Memory};
use crate::paged::layer::{Layer, Parts};
use crate::paged::{Change, PAGE, PageRange, PagedStore, SnapshotId};
use crate::pieces::index;
use crate::store::{Extent, ExtentKind, Store};
use crate::sync::locked;
use crate::{ErrorKind, Fault, FaultStore};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, OnceLock, Weak};
use std::thread;
use weir_units::Bytes;

const TIB: u64 = 1 << 40;

fn range(page: u64, pages: u64) -> PageRange {
    PageRange { offset: page * PAGE, len: pages * PAGE }
}

fn read(store: &dyn Store, offset: u64, len: u64) -> Vec<u8> {
    let mut buf = vec![0xee; index(len)];
    store.read_at(offset, &mut buf).unwrap();
    buf
}

#[track_caller]
fn refused<T: std::fmt::Debug>(done: crate::Result<T>, kind: ErrorKind, message: &str) {
    let error = done.unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (kind, message));
}

/// A volume on a medium that fails when the test says so.
fn on_a_medium(size: Bytes) -> (PagedStore, Arc<FaultStore>) {
    let medium = Arc::new(FaultStore::new(size));
    let layer = Layer::in_memory(0, Arc::clone(&medium) as Arc<dyn Store>);
    (PagedStore::from_layers(Arc::new(Memory), &LayerList::new(size), vec![layer]), medium)
}

#[test]
fn pages_are_told_as_they_were_written() {
    let store = PagedStore::in_memory(Bytes::mib(8));
    store.write_at(3 * PAGE, &[1; 1024]).unwrap();
    store.write_at(5 * PAGE, &[1; 1]).unwrap();
    store.write_at(10 * PAGE - 1, &[1; 2]).unwrap();
    let all = |max| store.pages(None, 0, 8 << 20, max).unwrap();
    assert_eq!(all(9), [range(3, 3), range(9, 2)]);
    assert_eq!(all(1), [range(3, 3)]);
    assert_eq!(all(0), []);
    // In part where they are asked for in part.
    let part = PageRange { offset: 2000, len: 3072 - 2000 };
    assert_eq!(store.pages(None, 2000, 2000, 9).unwrap(), [part]);
    assert_eq!(store.pages(None, 2000, 0, 9).unwrap(), []);
    // Zeros can be written, and written pages cleared.
    store.write_zeroes(20 * PAGE, PAGE, false).unwrap();
    store.write_zeroes(4 * PAGE, PAGE, true).unwrap();
    store.trim(9 * PAGE, PAGE + 1).unwrap();
    assert_eq!(all(9), [range(3, 1), range(5, 1), range(10, 1), range(20, 1)]);
}

#[test]
fn changes_are_told_from_one_state_to_another() {
    let store = PagedStore::in_memory(Bytes::mib(8));
    let change = |page, pages, cleared| Change { range: range(page, pages), cleared };
    store.write_at(0, &[1; 8 * 512]).unwrap();
    let first = store.snapshot().unwrap();
    store.trim(2 * PAGE, 2 * PAGE).unwrap();
    store.write_at(4 * PAGE, &[2; 512]).unwrap();
    store.write_at(100 * PAGE, &[2; 512]).unwrap();
    let second = store.snapshot().unwrap();
    store.write_at(2 * PAGE, &[3; 512]).unwrap();
    store.trim(100 * PAGE, PAGE).unwrap();
    let changes = |since, of, max| store.changes(since, of, 0, 8 << 20, max).unwrap();
    let expect = [change(2, 2, true), change(4, 1, false), change(100, 1, false)];
    assert_eq!(changes(first, Some(second), 9), expect);
    assert_eq!(changes(first, Some(second), 2), expect[..2]);
    let since_second = [change(2, 1, false), change(100, 1, true)];
    assert_eq!(changes(second, None, 9), since_second);
    // A page that was added and removed between the two is no change.
    let since_first = [change(2, 1, false), change(3, 1, true), change(4, 1, false)];
    assert_eq!(changes(first, None, 9), since_first);
    assert_eq!(changes(second, Some(second), 9), []);
    let later = "snapshot 2 is newer than the snapshot that it is compared with";
    refused(store.changes(second, Some(first), 0, 512, 9), ErrorKind::Snapshot, later);
}

#[test]
fn a_snapshot_is_read_and_not_changed() {
    let store = PagedStore::in_memory(Bytes::mib(1));
    store.write_at(0, &[1; 512]).unwrap();
    let id = store.snapshot().unwrap();
    store.write_at(0, &[2; 512]).unwrap();
    store.resize(Bytes::kib(1)).unwrap();
    let view = store.view(id).unwrap();
    assert_eq!(view.size(), Bytes::mib(1));
    assert_eq!(read(&*view, 0, 1024), [[1; 512], [0; 512]].concat());
    let mut tried = [0; 4];
    assert!(view.try_read_at(0, &mut tried).unwrap() && tried == [1; 4]);
    assert!(store.try_read_at(0, &mut tried).unwrap() && tried == [2; 4]);
    let changes = [
        view.write_at(0, &[1]),
        view.write_zeroes(0, 1, true),
        view.trim(0, 1),
        view.resize(Bytes::mib(2)),
    ];
    for change in changes {
        refused(change, ErrorKind::ReadOnly, "a snapshot or a frozen view is read-only");
    }
    view.sync().unwrap();
    // Its own page, and the one that replaced it.
    assert_eq!(view.allocated().unwrap(), Bytes::kib(4));
    let extents = view.extents(0, 1024, 9).unwrap();
    let kinds = [ExtentKind::Data, ExtentKind::Hole].map(|kind| Extent { len: 512, kind });
    assert_eq!(extents, kinds);
    let behind = "1 bytes at offset 1048576 reach past the end of the volume (1048576 bytes)";
    refused(view.read_at(1 << 20, &mut [0]), ErrorKind::OutOfRange, behind);
    refused(store.pages(Some(id), 1 << 20, 1, 9), ErrorKind::OutOfRange, behind);
}

#[test]
fn a_snapshot_that_is_not_there_is_told() {
    let store = PagedStore::in_memory(Bytes::mib(1));
    let missing = "snapshot 7 does not exist";
    let id = SnapshotId(7);
    assert!(store.view(id).is_none());
    assert!(!store.delete_snapshot(id).unwrap());
    refused(store.pages(Some(id), 0, 1, 9), ErrorKind::Snapshot, missing);
    refused(store.changes(id, None, 0, 1, 9), ErrorKind::Snapshot, missing);
    let first = store.snapshot().unwrap();
    refused(store.changes(first, Some(id), 0, 1, 9), ErrorKind::Snapshot, missing);
}

#[test]
fn snapshots_have_an_end() {
    let store = PagedStore::in_memory(Bytes::kib(1));
    for _ in 1..crate::paged::MAX_LAYERS {
        store.snapshot().unwrap();
    }
    let message = "snapshot 4096 exceeds the maximum number of snapshots; delete others first";
    refused(store.snapshot(), ErrorKind::Snapshot, message);
    assert!(store.delete_snapshot(SnapshotId(9)).unwrap());
    while store.tidy().unwrap() {}
    assert_eq!(store.snapshot().unwrap(), SnapshotId(4096));
}

#[test]
fn a_deleted_snapshot_gives_its_space_back() {
    let store = PagedStore::in_memory(Bytes::mib(8));
    let mib = vec![1; 1 << 20];
    let mut ids = Vec::new();
    for _ in 0..4 {
        store.write_at(0, &mib).unwrap();
        ids.push(store.snapshot().unwrap());
    }
    assert_eq!(store.allocated().unwrap(), Bytes::mib(4));
    let view = store.view(ids[1]).unwrap();
    for id in &ids[..3] {
        assert!(store.delete_snapshot(*id).unwrap());
    }
    while store.tidy().unwrap() {}
    // A layer that a view reads stays.
    assert_eq!(store.allocated().unwrap(), Bytes::mib(2));
    assert!(read(&*view, 0, 1 << 20) == mib);
    drop(view);
    while store.tidy().unwrap() {}
    assert_eq!(store.allocated().unwrap(), Bytes::mib(1));
    // The last one is given back when the next one is taken.
    assert!(store.delete_snapshot(ids[3]).unwrap());
    store.write_at(0, &mib).unwrap();
    assert!(!store.tidy().unwrap());
    assert_eq!(store.allocated().unwrap(), Bytes::mib(2));
    let last = store.snapshot().unwrap();
    while store.tidy().unwrap() {}
    assert_eq!((store.allocated().unwrap(), store.snapshots()), (Bytes::mib(1), vec![last]));
}

#[test]
fn failed_writes_leave_no_pages() {
    let (store, medium) = on_a_medium(Bytes::mib(1));
    store.write_at(0, &[1; 512]).unwrap();
    let write = |well, offset, len| {
        medium.fail_after(well, Fault::NoSpace);
        store.write_at(offset, &vec![2; len]).unwrap_err().kind()
    };
    assert_eq!(write(0, 512, 512), ErrorKind::NoSpace);
    assert_eq!(write(0, 300, 512), ErrorKind::NoSpace);
    // The rest of the page could be brought up, the write was refused.
    assert_eq!(write(1, 5000, 120), ErrorKind::NoSpace);
    assert_eq!(store.pages(None, 0, 1 << 20, 9).unwrap(), [range(0, 1)]);
    assert_eq!(read(&store, 0, 8192), [vec![1; 512], vec![0; 8192 - 512]].concat());
}

/// Notices a page that is read before all of it is written or cut off.
#[test]
fn a_change_of_whole_pages_reads_nothing_below() {
    let size = 8 * PAGE - 100;
    let (store, medium) = on_a_medium(Bytes::new(size));
    store.write_at(0, &vec![1; index(size)]).unwrap();
    store.snapshot().unwrap();
    medium.fail_reads(0..size);
    store.write_at(PAGE, &[2; 1024]).unwrap();
    store.write_at(7 * PAGE, &[2; 412]).unwrap();
    store.resize(Bytes::new(4 * PAGE)).unwrap();
    assert_eq!(read(&store, PAGE, 1024), [2; 1024]);
    store.write_at(0, &[2; 1]).unwrap_err();
}

/// Notices bytes of a snapshot behind an end that was moved into their page.
#[test]
fn a_page_that_is_cut_has_zeros_there_when_the_volume_grows() {
    for kept in [1, 300, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE - 1] {
        let store = PagedStore::in_memory(Bytes::new(4 * PAGE));
        store.write_at(0, &[1; 2048]).unwrap();
        store.snapshot().unwrap();
        store.resize(Bytes::new(kept)).unwrap();
        store.resize(Bytes::new(4 * PAGE)).unwrap();
        let expect = [vec![1; index(kept)], vec![0; index(4 * PAGE - kept)]].concat();
        assert_eq!(read(&store, 0, 4 * PAGE), expect, "{kept}");
    }
}

/// Notices a merge below a view that was forgotten with the next one, and a list of views that only grows.
#[test]
fn a_view_is_known_as_long_as_it_is_held_and_no_longer() {
    let store = PagedStore::in_memory(Bytes::mib(1));
    store.write_at(0, &[1; 512]).unwrap();
    let id = store.snapshot().unwrap();
    let view = store.view(id).unwrap();
    for _ in 0..100 {
        drop(store.view(id).unwrap());
    }
    assert!(locked(&store.views).0.len() <= 2);
    store.write_at(0, &[2; 512]).unwrap();
    assert!(store.delete_snapshot(id).unwrap());
    store.snapshot().unwrap();
    while store.tidy().unwrap() {}
    assert_eq!(read(&*view, 0, 512), [1; 512]);
}

/// A crash can leave bytes where the map says nothing.
#[test]
fn bytes_of_pages_that_were_not_written_are_never_seen() {
    let (store, medium) = on_a_medium(Bytes::mib(1));
    medium.write_at(0, &[9; 8192]).unwrap();
    assert_eq!(read(&store, 0, 8192), [0; 8192]);
    store.write_at(100, &[1; 1000]).unwrap();
    store.trim(0, 512).unwrap();
    let expect = [vec![0; 512], vec![1; 588], vec![0; 8192 - 1100]].concat();
    assert_eq!(read(&store, 0, 8192), expect);
}

#[test]
fn eight_tebibytes_cost_what_was_written() {
    let size = 8 * TIB;
    let store = PagedStore::in_memory(Bytes::new(size));
    let chunks = || store.stack().0.iter().map(|entry| entry.layer.chunks()).sum::<usize>();
    assert_eq!(store.pages(None, 0, size, usize::MAX).unwrap(), []);
    let blocks = size / 4096;
    let places: Vec<_> = (0..100).map(|n| n * blocks / 100).chain([blocks - 1]).collect();
    for block in &places {
        store.write_at(block * 4096, &[1; 4096]).unwrap();
    }
    let expect: Vec<_> = places.iter().map(|block| range(block * 8, 8)).collect();
    assert_eq!(store.pages(None, 0, size, usize::MAX).unwrap(), expect);
    assert_eq!(chunks(), 101);
    let first = store.snapshot().unwrap();
    assert_eq!(chunks(), 101);
    store.trim(0, size).unwrap();
    assert_eq!(store.pages(None, 0, size, usize::MAX).unwrap(), []);
    assert_eq!(store.extents(0, size, 9).unwrap(), [Extent { len: size, kind: ExtentKind::Hole }]);
    assert_eq!(chunks(), 202);
    let cleared: Vec<_> =
        expect.iter().map(|range| Change { range: *range, cleared: true }).collect();
    assert_eq!(store.changes(first, None, 0, size, usize::MAX).unwrap(), cleared);
    store.resize(Bytes::new(4 * TIB)).unwrap();
    store.resize(Bytes::new(size)).unwrap();
    assert_eq!(read(&store, size - 512, 512), [0; 512]);
    assert_eq!(store.pages(Some(first), 0, size, usize::MAX).unwrap(), expect);
    store.delete_snapshot(first).unwrap();
    store.snapshot().unwrap();
    while store.tidy().unwrap() {}
    assert_eq!((chunks(), store.allocated().unwrap()), (0, Bytes::ZERO));
}

const SHARED_PAGES: u64 = 64;
const WRITERS: u64 = 4;
/// A page that is written and cleared as a whole.
const LONE: u64 = SHARED_PAGES + 3;

/// The values that a writer has put into its part of each shared page, in order.
fn parts(store: &dyn Store, writer: u64) -> Vec<u8> {
    let len = PAGE / WRITERS;
    let pages = (0..SHARED_PAGES).map(|page| read(store, page * PAGE + writer * len, len));
    pages.map(|part| part.iter().all(|b| *b == part[0]).then_some(part[0]).unwrap()).collect()
}

/// Each writer goes over the pages in rounds, so a state that was once is some pages of a
/// round and the others of the round before.
fn check_state(store: &dyn Store) {
    for writer in 0..WRITERS {
        let parts = parts(store, writer);
        let (first, last) = (parts[0], parts[parts.len() - 1]);
        assert!(parts.is_sorted_by(|a, b| a >= b) && first - last <= 1, "{parts:?}");
    }
}

fn write_rounds(store: &PagedStore, writer: u64, rounds: u8) {
    let len = PAGE / WRITERS;
    for round in 1..=rounds {
        for page in 0..SHARED_PAGES {
            let part = vec![round; index(len)];
            store.write_at(page * PAGE + writer * len, &part).unwrap();
        }
        if round % 8 == 0 {
            store.sync().unwrap();
        }
    }
}

/// Writes a page and clears it, in turn, with a greater number each time.
fn write_and_clear(store: &PagedStore, page: u64, rounds: u8) {
    for round in 1..=rounds {
        store.write_at(page * PAGE, &[round; 512]).unwrap();
        if round % 2 == 0 {
            store.trim(page * PAGE, PAGE).unwrap();
        }
    }
}

/// Never sees a smaller number after a greater one.
fn watch(store: &PagedStore, page: u64, over: &AtomicBool) {
    let mut last = 0;
    while !over.load(Ordering::Acquire) {
        let seen = read(store, page * PAGE, PAGE);
        let newest = *seen.iter().max().unwrap();
        assert!(newest == 0 || newest >= last, "{newest} after {last}");
        last = last.max(newest);
    }
}

fn check_threads(store: &PagedStore, rounds: u8) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| watch(store, LONE, &over));
        let mut writers: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(move || write_rounds(store, writer, rounds)))
            .collect();
        writers.push(scope.spawn(move || write_and_clear(store, LONE, rounds)));
        let mut views = Vec::new();
        while writers.iter().any(|writer| !writer.is_finished()) {
            let id = store.snapshot().unwrap();
            let view = store.view(id).unwrap();
            let all = read(&*view, 0, 2 * SHARED_PAGES * PAGE);
            check_state(&*view);
            views.push((id, view, all));
            if views.len() > 3 {
                let (id, view, all) = views.remove(0);
                assert!(store.delete_snapshot(id).unwrap());
                assert!(read(&*view, 0, 2 * SHARED_PAGES * PAGE) == all, "{id} has changed");
            }
            store.tidy().unwrap();
        }
        over.store(true, Ordering::Release);
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        for (id, view, all) in views {
            assert!(read(&*view, 0, 2 * SHARED_PAGES * PAGE) == all, "{id} has changed");
        }
    });
    for writer in 0..WRITERS {
        assert_eq!(parts(store, writer), vec![rounds; index(SHARED_PAGES)]);
    }
    while store.tidy().unwrap() {}
    check_state(store);
}

#[test]
fn threads_lose_nothing_while_snapshots_come_and_go() {
    check_threads(&PagedStore::in_memory(Bytes::mib(8)), 250);
    let dir = tempfile::tempdir().unwrap();
    check_threads(&super::model::create(dir.path()), 60);
}

/// One writes a page, the other a part of it, while it is not in the top yet: what only the
/// first one writes is there afterwards.
#[test]
fn bringing_up_a_page_covers_nothing() {
    let store = PagedStore::in_memory(Bytes::mib(8));
    store.write_at(0, &vec![1; 2 << 20]).unwrap();
    store.snapshot().unwrap();
    let begin = Barrier::new(2);
    let write = |offset: u64, data: &[u8]| {
        for page in 0..4096 {
            begin.wait();
            store.write_at(page * PAGE + offset, data).unwrap();
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| write(0, &[2; 512]));
        scope.spawn(|| write(100, &[3; 100]));
    });
    for page in read(&store, 0, 2 << 20).chunks(512) {
        let (part, rest) = (&page[100..200], [&page[..100], &page[200..]].concat());
        assert!(rest.iter().all(|b| *b == 2));
        assert!(part.iter().all(|b| *b == 2) || part.iter().all(|b| *b == 3));
    }
}

/// Sees whether changes wait while the list of layers is replaced.
#[derive(Debug, Default)]
struct Watched {
    store: OnceLock<Weak<PagedStore>>,
    waited: AtomicBool,
}

impl Home for Watched {
    fn check_size(&self, _: Bytes) -> crate::Result<()> {
        Ok(())
    }

    fn make(&self, number: u64, size: Bytes) -> crate::Result<Parts> {
        Memory.make(number, size)
    }

    fn save(&self, _: &LayerList) -> crate::Result<()> {
        let store = self.store.get().and_then(Weak::upgrade);
        let waits = store.is_some_and(|store| store.changing.try_read().is_err());
        self.waited.store(waits, Ordering::Release);
        Ok(())
    }

    fn synced(&self, _: u64) -> crate::Result<()> {
        Ok(())
    }

    fn remove(&self, _: u64) -> crate::Result<()> {
        Ok(())
    }
}

/// Else one in flight would land in a layer that is frozen, or behind the end.
#[test]
fn no_change_is_under_way_while_the_top_is_replaced_or_cut() {
    let home = Arc::new(Watched::default());
    let made = PagedStore::create(Arc::clone(&home) as Arc<dyn Home>, Bytes::mib(1)).unwrap();
    let store = Arc::new(made);
    home.store.set(Arc::downgrade(&store)).unwrap();
    let waited = |change: &dyn Fn()| {
        change();
        home.waited.swap(false, Ordering::AcqRel)
    };
    assert!(waited(&|| assert_eq!(store.snapshot().unwrap(), SnapshotId(1))));
    assert!(waited(&|| store.resize(Bytes::kib(4)).unwrap()));
    assert!(!waited(&|| assert!(store.delete_snapshot(SnapshotId(1)).unwrap())));
}
