//! Checksums that become unknown, and those that are computed anew.

use super::*;
use crate::FileStore;
use std::path::Path;

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

/// A volume that gets checksums, which are unknown.
fn with_new_sums(dir: &Path) -> FileSums {
    let data = dir.join("data");
    std::fs::create_dir(&data).unwrap();
    FileSums::add(dir).unwrap();
    let bytes = FileStore::open(&data, Bytes::new(SIZE)).unwrap();
    bytes.write_at(0, &vec![7; index(SIZE)]).unwrap();
    FileSums::look_in(dir, "db", bytes).unwrap()
}

/// Notices checksums that are never computed, or never sealed after that.
#[test]
fn checksums_that_a_volume_gets_are_computed_in_parts_and_then_sealed() {
    let dir = tempfile::tempdir().unwrap();
    let store = with_new_sums(dir.path());
    assert_eq!(store.unknown_bytes(), SIZE);
    assert!(store.compute(BLOCK).unwrap());
    assert!(!store.compute(u64::MAX).unwrap());
    assert_eq!(store.unknown_bytes(), 0);
    assert!(store.states.due(true).is_empty());
    flip(&store.data, 0);
    check_damaged(read(&store, 0, 1), 0);
}

/// Notices syncs that compute nothing, or that compute beside the thread that does.
#[test]
fn syncs_compute_checksums_before_and_after_a_thread_does_and_not_beside_it() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let store = with_new_sums(dirs[0].path());
    store.sync().unwrap();
    assert_eq!(store.unknown_bytes(), 0);
    let store = with_new_sums(dirs[1].path());
    assert!(store.compute(BLOCK).unwrap());
    store.sync().unwrap();
    assert_eq!(store.unknown_bytes(), SIZE);
    assert!(!store.compute(u64::MAX).unwrap());
    store.write_at(0, &[1; 4096]).unwrap();
    store.states.set_open_unknown();
    assert!(store.unknown_bytes() > 0);
    store.sync().unwrap();
    assert_eq!(store.unknown_bytes(), 0);
}

/// Notices an opening after a crash that computes nothing, or does not say what it has read.
#[test]
fn an_opening_computes_checksums_and_returns_the_rest_of_its_budget() {
    let store = memory(SIZE);
    store.write_at(0, &vec![7; index(SIZE)]).unwrap();
    store.states.set_open_unknown();
    let left = store.resume(100 * BLOCK).unwrap();
    assert_eq!(store.unknown_bytes(), 0);
    // Besides the 41 blocks, the ends of the two regions.
    assert_eq!(left, (100 - 41 - 2) * BLOCK);
}

/// Notices a computation that goes on in another region, and accepts damage there.
#[test]
fn a_computation_goes_on_in_the_next_stretch_of_its_region() {
    let second = REGIONS * STRETCH;
    let store = memory(second + STRETCH);
    let (known, unknown) = (STRETCH + 5 * BLOCK, second + 5 * BLOCK);
    store.write_at(known, &[7; 4096]).unwrap();
    store.close().unwrap();
    store.write_at(0, &[7; 4096]).unwrap();
    store.write_at(unknown, &[7; 4096]).unwrap();
    store.states.set_open_unknown();
    assert_eq!(store.unknown_bytes(), 2 * STRETCH);
    [known, unknown].into_iter().for_each(|at| flip(&store.data, 8 * at));
    store.rebuild(u64::MAX).unwrap();
    assert_eq!(store.unknown_bytes(), 0);
    assert_eq!(read(&store, unknown, 1).unwrap(), [6]);
    check_damaged(read(&store, known, 1), known);
}

#[test]
fn a_region_behind_the_end_has_no_unknown_bytes() {
    let store = memory(2 * STRETCH);
    store.write_at(STRETCH, &[7; 4096]).unwrap();
    store.states.set_open_unknown();
    assert_eq!(store.unknown_bytes(), STRETCH);
    store.resize(Bytes::new(STRETCH)).unwrap();
    assert_eq!(store.unknown_bytes(), 0);
}

/// Notices one block that cannot be read and keeps its neighbours from their new checksums.
#[test]
fn blocks_beside_one_that_cannot_be_read_get_new_checksums() {
    let store = Media::new(SIZE, FaultStore::new).open().unwrap();
    store.write_at(0, &[7; 5 * 4096]).unwrap();
    store.states.set_open_unknown();
    flip(&store.data, 8 * 3 * BLOCK);
    store.data.fail_reads(2 * BLOCK..3 * BLOCK);
    store.rebuild(u64::MAX).unwrap();
    assert_eq!(store.unknown_bytes(), 0);
    store.data.heal();
    assert_eq!(read(&store, 2 * BLOCK, 4097).unwrap(), [vec![7; 4096], vec![6]].concat());
    flip(&store.data, 8 * 3 * BLOCK);
    check_damaged(read(&store, 3 * BLOCK, 1), 3 * BLOCK);
}
