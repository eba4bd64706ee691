//! The cost of a volume in memory.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::thread;
use weir_store::{Extent, ExtentKind, MemoryStore, Store};
use weir_units::Bytes;

const SIZE: Bytes = Bytes::gib(32 << 10);

#[track_caller]
fn check_allocated(store: &MemoryStore, expect: Bytes) {
    assert_eq!(store.allocated().unwrap(), expect);
}

#[test]
fn space_is_taken_by_the_page_and_given_back() {
    let store = MemoryStore::new(SIZE);
    check_allocated(&store, Bytes::ZERO);
    for gib in 0..1024_u64 {
        store.write_at(gib << 30, &[1; 8192]).unwrap();
    }
    check_allocated(&store, Bytes::mib(8));
    store.write_at(SIZE.get() - 1, &[1]).unwrap();
    check_allocated(&store, Bytes::new((8 << 20) + 4096));
    // A page is given back whole.
    store.trim(1 << 30, 8191).unwrap();
    check_allocated(&store, Bytes::mib(8));
    store.write_zeroes(1 << 30, 8192, false).unwrap();
    check_allocated(&store, Bytes::new((8 << 20) + 4096));
    store.write_zeroes(1 << 30, 8192, true).unwrap();
    check_allocated(&store, Bytes::new((8 << 20) - 4096));
    store.resize(Bytes::gib(512)).unwrap();
    check_allocated(&store, Bytes::new((4 << 20) - 8192));
    store.trim(0, 512 << 30).unwrap();
    check_allocated(&store, Bytes::ZERO);
}

#[test]
fn the_extents_of_a_sparse_volume_are_those_of_its_pages() {
    let store = MemoryStore::new(SIZE);
    store.write_at(5000, &[1]).unwrap();
    store.write_at((2 << 20) - 1, &[1; 2]).unwrap();
    let (hole, data) = (ExtentKind::Hole, ExtentKind::Data);
    let expect = [
        (4096, hole),
        (4096, data),
        ((2 << 20) - 3 * 4096, hole),
        (8192, data),
        (SIZE.get() - (2 << 20) - 4096, hole),
    ]
    .map(|(len, kind)| Extent { len, kind });
    assert_eq!(store.extents(0, SIZE.get(), usize::MAX).unwrap(), expect);
    assert_eq!(store.extents(0, SIZE.get(), 3).unwrap(), expect[..3]);
    assert_eq!(store.extents(4096, 1, 9).unwrap(), [Extent { len: 1, kind: data }]);
}

#[test]
fn threads_that_write_side_by_side_lose_nothing() {
    let store = MemoryStore::new(Bytes::mib(64));
    thread::scope(|scope| {
        for thread in 0..4_u8 {
            let store = &store;
            scope.spawn(move || {
                for block in 0..4096_u64 {
                    let at = (block * 4 + u64::from(thread)) * 4096;
                    store.write_at(at, &[thread + 1; 4096]).unwrap();
                }
            });
        }
    });
    check_allocated(&store, Bytes::mib(64));
    let mut content = vec![0; 64 << 20];
    store.read_at(0, &mut content).unwrap();
    let owners = [1, 2, 3, 4_u8].into_iter().cycle();
    assert!(content.chunks(4096).zip(owners).all(|(page, owner)| page.iter().all(|b| *b == owner)));
}

#[test]
fn a_trim_to_the_last_byte_before_a_leaf_keeps_that_byte() {
    const LEAF: u64 = 2 << 20;
    let store = MemoryStore::new(SIZE);
    store.write_at(LEAF - 4096, &[1; 8192]).unwrap();
    store.trim(0, LEAF - 1).unwrap();
    let mut found = [0xee; 8192];
    store.read_at(LEAF - 4096, &mut found).unwrap();
    assert!(found[..4095] == [0; 4095] && found[4095..] == [1; 4097]);
}

/// These are what a store gets that says nothing of them.
#[test]
fn a_store_promises_no_durable_writes_and_nothing_at_once() {
    let store = MemoryStore::new(Bytes::mib(1));
    assert!(!store.write_durably(5000, &[7; 9]).unwrap());
    assert!(!store.zero_durably(5003, 3, true).unwrap());
    let mut found = [1; 11];
    store.read_at(4999, &mut found).unwrap();
    assert_eq!(found, [0, 7, 7, 7, 0, 0, 0, 7, 7, 7, 0]);
    assert_eq!((store.depth(), store.syncs()), (1, 1));
}
