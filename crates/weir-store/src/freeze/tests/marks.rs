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
    let freezable = Freezable::new(Arc::new(MemoryStore::new(Bytes::new(LONG + BLOCK))));
    freezable.write_at(0, &vec![1; 3 * (64 << 10)]).unwrap();
    back_up(&freezable, &[]);
    freezable.trim(BLOCK, LONG).unwrap();
    assert_eq!(changed(&freezable), [(BLOCK, 2 * BLOCK)]);
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

/// Notices ranges that a differential backup leaves out or takes twice where it asks for some at a time.
#[test]
fn the_changed_ranges_can_be_asked_for_one_by_one() {
    let freezable = Freezable::new(Arc::new(MemoryStore::new(Bytes::new(SIZE))));
    back_up(&freezable, &[]);
    for block in [1, 3, 4, 7] {
        freezable.write_at(block * BLOCK, &[1]).unwrap();
    }
    let view = freezable.freeze(Scratch::memory());
    let ask = |from| {
        let some = view.changed(from, 1);
        (some.ranges, some.next)
    };
    assert_eq!(ask(0), (vec![(BLOCK, BLOCK)], Some(3 * BLOCK)));
    assert_eq!(ask(3 * BLOCK), (vec![(3 * BLOCK, 2 * BLOCK)], Some(7 * BLOCK)));
    assert_eq!(ask(7 * BLOCK), (vec![(7 * BLOCK, BLOCK)], None));
    assert_eq!(ask(4 * BLOCK + 100), (vec![(4 * BLOCK + 100, BLOCK - 100)], Some(7 * BLOCK)));
}

/// Notices changes that a full backup has, and the differential after it takes again.
#[test]
fn changes_before_a_full_backup_do_not_count_after_it() {
    let freezable = Freezable::new(Arc::new(MemoryStore::new(Bytes::new(SIZE))));
    back_up(&freezable, &[]);
    freezable.write_at(BLOCK, &[1]).unwrap();
    back_up(&freezable, &[]);
    freezable.write_at(2 * BLOCK, &[1]).unwrap();
    assert_eq!(changed(&freezable), [(2 * BLOCK, BLOCK)]);
}
