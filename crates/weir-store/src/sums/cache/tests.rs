//! Pages come and go, and no change is lost.

use super::*;
use crate::{Fault, FaultStore, MemoryStore};

/// Checksums of more pages than the cache has.
const LEN: u64 = 9 * PAGE_LEN + 12;

/// Returns a cache with a room of its own.
fn alone<S: Store>(medium: S) -> Cached<S> {
    Cached::new(medium, &Arc::default())
}

#[test]
fn checksums_are_stored_when_their_place_is_needed_or_by_a_flush() {
    let cache = alone(MemoryStore::new(Bytes::new(LEN)));
    let content: Vec<u8> = (0..LEN).map(|at| u8::try_from(at % 251).unwrap() + 1).collect();
    for at in (0..LEN).step_by(4) {
        cache.write(at, &content[index(at)..index(at + 4)]).unwrap();
    }
    let mut found = vec![0; index(LEN)];
    cache.medium().read_at(0, &mut found).unwrap();
    let missing = found.chunks(PAGE).filter(|page| page.iter().all(|byte| *byte == 0)).count();
    assert_eq!(missing, index(SHARDS) * MOST);
    for _ in 0..2 {
        found.fill(0);
        cache.read(0, &mut found).unwrap();
        assert_eq!(found, content);
        assert!(cache.try_read(3, &mut found[..70]).unwrap());
        assert_eq!(found[..70], content[3..73]);
        cache.flush().unwrap();
    }
    cache.medium().read_at(0, &mut found).unwrap();
    assert_eq!(found, content);
}

#[test]
fn a_medium_that_takes_nothing_fails_writes_without_a_place_and_no_reads() {
    let cache = alone(FaultStore::new(Bytes::new(LEN)));
    cache.medium().write_at(0, &[9; 4]).unwrap();
    cache.medium().fail_after(0, Fault::NoSpace);
    let places = SHARDS * MOST as u64;
    for page in 1..=places {
        cache.write(page * PAGE_LEN, &[1; 4]).unwrap();
    }
    assert_eq!(cache.write(0, &[1; 4]).unwrap_err().kind(), crate::ErrorKind::NoSpace);
    assert!(cache.flush().is_err());
    let mut found = [0; 4];
    cache.read(0, &mut found).unwrap();
    assert_eq!(found, [9; 4]);
    cache.medium().heal();
    cache.write(0, &[1; 4]).unwrap();
    for page in 0..=places {
        cache.read(page * PAGE_LEN, &mut found).unwrap();
        assert_eq!(found, [1; 4], "{page}");
    }
}

#[test]
fn what_is_in_memory_only_is_no_hole() {
    let cache = alone(MemoryStore::new(Bytes::new(LEN)));
    cache.write(2 * PAGE_LEN + 8, &[1; 4]).unwrap();
    let first = |at| cache.first_extent(at, LEN - at).unwrap().unwrap();
    let hole = |len| Extent { len, kind: ExtentKind::Hole };
    assert_eq!(first(4), hole(2 * PAGE_LEN - 4));
    assert_eq!(first(2 * PAGE_LEN), Extent { len: PAGE_LEN, kind: ExtentKind::Data });
    assert_eq!(first(3 * PAGE_LEN), hole(LEN - 3 * PAGE_LEN));
}

#[test]
fn whoever_must_not_wait_gives_up_at_a_locked_shard() {
    let cache = alone(MemoryStore::new(Bytes::new(LEN)));
    let _transfer = locked(cache.shard(0));
    assert!(!cache.try_read(0, &mut [0; 4]).unwrap());
    assert!(cache.try_read(PAGE_LEN, &mut [0; 4]).unwrap());
}

#[test]
fn what_is_cut_off_is_zero_when_it_comes_back() {
    let cache = alone(MemoryStore::new(Bytes::new(LEN)));
    cache.write(0, &[7; PAGE]).unwrap();
    cache.write(2 * PAGE_LEN, &[7; 4]).unwrap();
    cache.resize(8).unwrap();
    cache.resize(LEN).unwrap();
    let mut found = vec![1; index(LEN)];
    cache.read(0, &mut found).unwrap();
    assert!(found[..8].iter().all(|byte| *byte == 7), "{found:?}");
    assert!(found[8..].iter().all(|byte| *byte == 0), "{found:?}");
}

#[test]
fn zeros_replace_what_is_in_memory_only() {
    for may_trim in [true, false] {
        let cache = alone(MemoryStore::new(Bytes::new(LEN)));
        cache.write(0, &[7; 3 * PAGE]).unwrap();
        cache.zero(PAGE_LEN - 4, 2 * PAGE_LEN, may_trim).unwrap();
        let mut found = vec![1; 3 * PAGE];
        cache.read(0, &mut found).unwrap();
        let zeros = found.iter().enumerate().filter(|(_, byte)| **byte == 0).map(|(at, _)| at);
        assert!(zeros.eq(PAGE - 4..3 * PAGE - 4), "{found:?}");
    }
}

#[test]
fn a_full_medium_takes_changes_while_some_page_has_its_place() {
    let cache = alone(FaultStore::new(Bytes::new(LEN)));
    for page in [0, 2] {
        cache.write(page * PAGE_LEN, &[1; 4]).unwrap();
    }
    for has_no_place in [0, 2] {
        cache.medium().fill_up(has_no_place * PAGE_LEN..(has_no_place + 1) * PAGE_LEN);
        cache.write((4 + has_no_place) * PAGE_LEN, &[1; 4]).unwrap();
        cache.medium().heal();
        cache.write(has_no_place * PAGE_LEN, &[2; 4]).unwrap();
    }
    for (page, expect) in [(0, 2), (2, 2), (4, 1), (6, 1)] {
        let mut found = [0; 4];
        cache.read(page * PAGE_LEN, &mut found).unwrap();
        assert_eq!(found, [expect; 4], "{page}");
    }
}

#[test]
fn volumes_share_the_room_for_pages_and_a_shard_has_one_in_any_case() {
    let room = Arc::new(Room::default());
    let caches: Vec<_> =
        (0..4).map(|_| Cached::new(MemoryStore::new(Bytes::new(LEN)), &room)).collect();
    let pages = |cache: &Cached<_>| -> usize {
        cache.shards.iter().map(|shard| locked(shard).pages.len()).sum()
    };
    for cache in &caches {
        (0..LEN / PAGE_LEN).for_each(|page| cache.write(page * PAGE_LEN, &[7; 4]).unwrap());
    }
    assert_eq!(caches.iter().map(pages).collect::<Vec<_>>(), [4, 3, 2, 2]);
    for cache in &caches {
        let mut found = vec![0; index(LEN)];
        cache.read(0, &mut found).unwrap();
        assert_eq!(found.iter().filter(|byte| **byte == 7).count(), 4 * 9);
    }
    // Pages that are cut off give their room back, and so do those of a closed volume.
    let mut caches = caches.into_iter();
    caches.next().unwrap().resize(PAGE_LEN).unwrap();
    caches.next();
    assert_eq!(room.0.load(Ordering::Relaxed), IN_ROOM);
}
