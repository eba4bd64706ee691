//! Blocks that count as changed since a full backup, and changes that are unknown.

use super::*;
use crate::{Fault, MemoryStore};

/// Completes a full backup of `freezable` as it is now.
fn back_up(freezable: &Freezable, pending: &[(u64, u64)]) {
    let full = freezable.freeze(Scratch::memory());
    full.mark_pending(pending.iter().copied());
    assert!(freezable.complete(&full, "full").unwrap());
    freezable.thaw(&full);
}

fn changed(freezable: &Freezable) -> Vec<(u64, u64)> {
    freezable.freeze(Scratch::memory()).changed(0, 9).ranges
}

/// Notices a long trim that a differential backup leaves out, or takes with its holes.
#[test]
fn a_trim_of_more_than_64_mib_marks_the_data_in_it() {
    const LONG: u64 = (64 << 20) + BLOCK;
    let freezable = Freezable::new(Arc::new(MemoryStore::new(Bytes::new(LONG))));
    freezable.write_at(0, &vec![1; 3 * (64 << 10)]).unwrap();
    back_up(&freezable, &[]);
    freezable.trim(0, LONG).unwrap();
    assert_eq!(changed(&freezable), [(0, 3 * BLOCK)]);
}

/// Notices pending bytes that a differential backup leaves out. An empty range marks nothing.
#[test]
fn bytes_that_are_pending_at_a_full_backup_count_as_changed_after_it() {
    let freezable = Freezable::new(Arc::new(MemoryStore::new(Bytes::new(SIZE))));
    back_up(&freezable, &[(2 * BLOCK, 10), (0, 0)]);
    assert_eq!(changed(&freezable), [(2 * BLOCK, BLOCK)]);
}

/// Notices durable changes that are not made, or that a differential backup leaves out.
#[test]
fn durable_changes_survive_a_loss_of_power_and_count_as_changed() {
    let store = Arc::new(FaultStore::new(Bytes::new(SIZE)));
    store.write_at(3 * BLOCK, &[1; 512]).unwrap();
    store.sync().unwrap();
    store.make_writes_durable(true);
    let freezable = Freezable::new(store.clone());
    back_up(&freezable, &[]);
    assert!(freezable.write_durably(BLOCK, &[2; 512]).unwrap());
    assert!(freezable.zero_durably(3 * BLOCK, 512, true).unwrap());
    assert_eq!(store.unsynced(), 0);
    let after = store.crash(1).unwrap();
    let mut found = [0xee; 512];
    for (at, byte) in [(BLOCK, 2), (3 * BLOCK, 0)] {
        after.read_at(at, &mut found).unwrap();
        assert_eq!(found, [byte; 512]);
    }
    assert_eq!(changed(&freezable), [(BLOCK, BLOCK), (3 * BLOCK, BLOCK)]);
}

/// Notices changes that count as known although bytes of the base may be lost.
#[test]
fn the_changes_are_unknown_after_a_record_whose_sync_failed() {
    let store = Arc::new(FaultStore::new(Bytes::new(SIZE)));
    let freezable = Freezable::recorded(store.clone(), Box::new(Medium::default()));
    assert!(freezable.tracking().known);
    store.fail_after(0, Fault::Io);
    assert_eq!(freezable.record().unwrap_err().kind(), ErrorKind::Io);
    assert!(!freezable.tracking().known);
}
