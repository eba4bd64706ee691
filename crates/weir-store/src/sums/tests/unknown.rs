//! Checksums that become unknown, and those that are computed anew.

use super::*;
use crate::FileStore;

/// Notices a block that has new bytes and the old checksum, and looks damaged.
#[test]
fn a_block_whose_checksum_could_not_be_stored_is_unknown() {
    let store = Media::new(SIZE, FaultStore::new).open().unwrap();
    store.sums.medium().fail_reads(0..4);
    store.write_at(0, &[1; 4096]).unwrap_err();
    store.sums.medium().heal();
    assert!(store.states.next_unknown(None).is_some());
    assert_eq!(read(&store, 0, 1).unwrap(), [1]);
}

/// Notices checksums that count as durable although the system may have dropped them.
#[test]
fn after_a_failed_sync_of_the_checksums_open_regions_stay_unknown() {
    let store = Media::new(SIZE, FaultStore::new).open().unwrap();
    store.write_at(0, &[1; 4096]).unwrap();
    // Their writes succeed, and their sync fails.
    store.sums.flush().unwrap();
    store.sums.medium().fail_after(0, Fault::Io);
    store.close().unwrap_err();
    store.sums.medium().heal();
    assert!(store.states.next_unknown(None).is_some());
    store.rebuild(u64::MAX).unwrap_err();
    store.close().unwrap();
    assert!(store.states.next_unknown(None).is_some());
}

/// Notices a computation that goes on in the midst of a block, where the volume ended before.
#[test]
fn checksums_are_computed_from_whole_blocks_where_the_volume_has_grown_meanwhile() {
    let store = memory(SIZE);
    store.write_at(0, &vec![7; index(SIZE)]).unwrap();
    store.states.set_open_unknown();
    store.rebuild(42 * BLOCK).unwrap();
    store.resize(Bytes::new(SIZE + 3 * BLOCK)).unwrap();
    store.rebuild(u64::MAX).unwrap();
    assert!(store.states.next_unknown(None).is_none());
    store.scrub(|range| panic!("{range:?}")).unwrap();
    assert_eq!(read(&store, SIZE - 1, 2).unwrap(), [7, 0]);
}

/// Notices checksums that are never computed, or never sealed after that.
#[test]
fn checksums_that_a_volume_gets_are_computed_in_parts_and_then_sealed() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    FileSums::add(dir.path()).unwrap();
    let bytes = FileStore::open(&data, Bytes::new(SIZE)).unwrap();
    bytes.write_at(0, &vec![7; index(SIZE)]).unwrap();
    let store = FileSums::look_in(dir.path(), "db", bytes).unwrap();
    assert_eq!(store.unknown_bytes(), SIZE);
    assert!(store.compute(BLOCK).unwrap());
    assert!(!store.compute(u64::MAX).unwrap());
    assert_eq!(store.unknown_bytes(), 0);
    assert!(store.states.due(true).is_empty());
    flip(&store.data, 0);
    check_damaged(read(&store, 0, 1), 0);
}
