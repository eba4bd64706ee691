//! Damage is found, and crashes are never taken for damage.

use super::block::{sum_of, sums_len};
use super::*;
use crate::{ErrorKind, Fault, FaultStore, MemoryStore};
use proptest::prelude::*;
use std::sync::Arc;

mod concurrent;
mod unknown;

/// Seals at every second sync what was not written for one.
const QUICK: Pace = Pace { every: 2, quiet: 1 };

/// Two regions, the second one not full.
const SIZE: u64 = 40 * BLOCK + 700;

/// The three media of a volume.
struct Media<S>(S, S, S);

impl<S: Store + Sized> Media<S> {
    fn new(size: u64, make: impl Fn(Bytes) -> S) -> Self {
        let [size, sums, list] = [size, sums_len(size), log::LEN].map(Bytes::new);
        let list = log::Log::init(make(list), log::Regions::NONE).unwrap();
        Self(make(size), make(sums), list)
    }

    fn open(self) -> Result<Summed<S>> {
        Summed::open("db", self.0, Cached::new(self.1, &Arc::default()), self.2, QUICK)
    }
}

/// A new volume, whose regions are all sealed.
fn memory(size: u64) -> Summed<MemoryStore> {
    Media::new(size, MemoryStore::new).open().unwrap()
}

fn read<S: Store>(store: &Summed<S>, offset: u64, len: usize) -> Result<Vec<u8>> {
    let mut buf = vec![0xee; len];
    let tried = store.try_read_at(offset, &mut buf);
    let got = buf.clone();
    let done = store.read_at(offset, &mut buf).map(|()| buf);
    if matches!(tried, Ok(true)) {
        assert_eq!(done.as_ref().unwrap(), &got);
    }
    done
}

fn flip<S: Store>(store: &S, bit: u64) {
    let mut byte = [0];
    store.read_at(bit / 8, &mut byte).unwrap();
    byte[0] ^= 1 << (bit % 8);
    store.write_at(bit / 8, &byte).unwrap();
}

#[track_caller]
fn check_damaged<T: std::fmt::Debug>(done: Result<T>, block: u64) {
    match done.unwrap_err() {
        StoreError::DamagedBlock { volume, offset, .. } => {
            assert_eq!((&*volume, offset), ("db", block))
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_flipped_bit_fails_the_read_of_its_block_until_the_block_is_written() {
    let store = memory(SIZE);
    store.write_at(0, &[7; 5 * 4096]).unwrap();
    store.close().unwrap();
    flip(&store.data, 8 * (2 * BLOCK + 17));
    check_damaged(read(&store, 0, 5 * 4096), 2 * BLOCK);
    check_damaged(read(&store, 2 * BLOCK + 4000, 1), 2 * BLOCK);
    assert!(!store.try_read_at(2 * BLOCK, &mut [0; 4096]).unwrap());
    assert_eq!(read(&store, 3 * BLOCK, 100).unwrap(), [7; 100]);
    assert!(store.try_read_at(3 * BLOCK, &mut [0; 100]).unwrap());
    // A part of the block would bless the rest.
    check_damaged(store.write_at(2 * BLOCK + 1, &[1; 4000]), 2 * BLOCK);
    check_damaged(store.trim(2 * BLOCK, 4095), 2 * BLOCK);
    check_damaged(store.resize(Bytes::new(2 * BLOCK + 9)), 2 * BLOCK);
    assert_eq!((store.damaged_reads(), store.damaged_blocks()), (5, vec![2 * BLOCK]));
    store.write_at(2 * BLOCK, &[8; 4096]).unwrap();
    assert_eq!(read(&store, 2 * BLOCK, 4096).unwrap(), [8; 4096]);
}

#[test]
fn the_error_names_volume_block_and_checksums() {
    let store = memory(SIZE);
    flip(&store.data, 0);
    let error = read(&store, 0, 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DamagedBlock);
    let found = sum_of(&[1]);
    assert_eq!(
        error.to_string(),
        format!(
            "block at offset 0 of volume db is damaged: its checksum is 00000000, its bytes have \
             {found:08x}"
        )
    );
}

#[test]
fn bytes_that_are_gone_are_no_zeros_and_their_extents_no_hole() {
    let size = 3 * STRETCH;
    let store = memory(size);
    for at in [0, 2 * BLOCK, STRETCH + 5 * BLOCK, 3 * STRETCH - BLOCK] {
        store.write_at(at, &[7; 4096]).unwrap();
    }
    let extents = store.extents(0, size, usize::MAX).unwrap();
    store.data.trim(0, size).unwrap();
    let after = store.extents(0, size, usize::MAX).unwrap();
    let data = |extents: &[Extent]| -> u64 {
        extents.iter().filter(|e| e.kind == ExtentKind::Data).map(|e| e.len).sum()
    };
    assert_eq!(data(&after), 4 * BLOCK, "{after:?} of {extents:?}");
    assert_eq!(after.iter().map(|e| e.len).sum::<u64>(), size);
    check_damaged(read(&store, 2 * BLOCK, 5), 2 * BLOCK);
    let mut found = Vec::new();
    store.scrub(|range| found.push((range.offset, range.len))).unwrap();
    let blocks = [0, 2 * BLOCK, STRETCH + 5 * BLOCK, 3 * STRETCH - BLOCK].map(|at| (at, BLOCK));
    assert_eq!(found, blocks);
}

#[test]
fn a_scrub_joins_neighbours_and_leaves_out_what_a_crash_made_unknown() {
    let store = memory(2 * STRETCH);
    store.write_at(0, &[7; 64 << 10]).unwrap();
    store.close().unwrap();
    store.write_at(STRETCH, &[7; 64 << 10]).unwrap();
    for block in [4, 5, 9] {
        flip(&store.data, 8 * (block * BLOCK));
    }
    flip(&store.data, 8 * STRETCH);
    // As after a crash.
    let Summed { data, sums, states, .. } = store;
    let list = states.into_store();
    let store = Media(data, sums.into_medium(), list).open().unwrap();
    let mut found = Vec::new();
    let scrub = store.scrub(|range| found.push((range.offset, range.len))).unwrap();
    assert_eq!(found, [(4 * BLOCK, 2 * BLOCK), (9 * BLOCK, BLOCK)]);
    assert_eq!(scrub, Scrub { verified: 64 << 10, unknown: 64 << 10 });
    // Computed anew, the bytes are what they are.
    store.rebuild(u64::MAX).unwrap();
    assert_eq!(read(&store, STRETCH, 1).unwrap(), [6]);
    store.close().unwrap();
    flip(&store.data, 8 * STRETCH);
    check_damaged(read(&store, STRETCH, 1), STRETCH);
}

/// Fails below a hole of the bytes, where the list of extents needs the checksums.
#[test]
fn a_scrub_goes_on_behind_checksums_that_cannot_be_read() {
    let media = Media::new(3 * STRETCH, FaultStore::new);
    let store = media.open().unwrap();
    for at in [0, STRETCH, 2 * STRETCH] {
        store.write_at(at, &[7; 4096]).unwrap();
    }
    store.close().unwrap();
    store.data.trim(STRETCH, STRETCH).unwrap();
    flip(&store.data, 8 * 2 * STRETCH);
    let Summed { data, sums, states, .. } = store;
    let list = states.into_store();
    let store = Media(data, sums.into_medium(), list).open().unwrap();
    store.sums.medium().fail_reads(sums_len(STRETCH)..sums_len(2 * STRETCH));
    let mut found = Vec::new();
    store.scrub(|range| found.push((range.offset, range.len, range.reason))).unwrap();
    let reason = Some("injected by a test: bad sector".to_owned());
    assert_eq!(found, [(STRETCH, STRETCH, reason), (2 * STRETCH, BLOCK, None)]);
}

#[test]
fn a_region_in_use_stays_open_and_its_writes_cost_no_sync_of_the_list() {
    let media = Media::new(SIZE, FaultStore::new);
    let store = media.open().unwrap();
    let mut generations = Vec::new();
    for _ in 0..2000 {
        store.write_at(0, &[1; 4096]).unwrap();
        store.sync().unwrap();
        (0..3).for_each(|_| store.sync().unwrap());
        generations.push(store.states.generation());
    }
    let lists = generations[1999] - generations[1000];
    assert!(lists == 0, "{lists} lists in 1,000 rounds");
}

/// A write that fails makes no block look damaged, and covers no earlier damage.
#[test]
fn after_a_failed_write_the_bytes_are_the_old_or_the_new() {
    for after in 0..6 {
        let media = Media::new(SIZE, FaultStore::new);
        let store = media.open().unwrap();
        store.write_at(0, &[1; 8192]).unwrap();
        store.write_at(9 * BLOCK, &[1; 4096]).unwrap();
        store.close().unwrap();
        flip(&store.data, 8 * 9 * BLOCK);
        for medium in [&store.data, store.sums.medium()] {
            medium.fail_after(after, Fault::NoSpace);
        }
        let mut states = vec![vec![1; 8192]];
        let mut expect = |offset: usize, data: &[u8]| {
            let mut state = states.last().unwrap().clone();
            state[offset..offset + data.len()].copy_from_slice(data);
            states.push(state);
            store.write_at(offset as u64, data).is_ok()
        };
        let done = [expect(0, &[2; 8192]), expect(100, &[3; 5000])];
        for medium in [&store.data, store.sums.medium()] {
            medium.heal();
        }
        let found = read(&store, 0, 8192).unwrap();
        assert!(!done[1] || found == states[2], "{done:?}");
        for (number, block) in found.chunks(4096).enumerate() {
            let at = number * 4096;
            // The second write may have met the old bytes, too.
            let mut known = states.clone();
            known.push(states[0].clone());
            known[3][100..5100].fill(3);
            assert!(known.iter().any(|state| state[at..at + 4096] == *block), "{done:?} {number}");
        }
        // Only checksums that could not be stored are computed anew, with those of their region.
        let is_known = store.states.next_unknown(None).is_none();
        if is_known {
            check_damaged(read(&store, 9 * BLOCK, 1), 9 * BLOCK);
        }
        (0..8).for_each(|_| store.sync().unwrap());
        assert!(store.states.next_unknown(None).is_none());
        assert_eq!(read(&store, 0, 8192).unwrap(), found);
        flip(&store.data, 8 * 5000);
        check_damaged(read(&store, 0, 8192), BLOCK);
    }
}

#[test]
fn a_failed_write_of_a_damaged_block_does_not_make_it_look_sound() {
    let store = Media::new(SIZE, FaultStore::new).open().unwrap();
    store.write_at(0, &[1; 8192]).unwrap();
    store.close().unwrap();
    flip(&store.data, 0);
    store.data.fail_after(0, Fault::NoSpace);
    store.write_at(0, &[2; 8192]).unwrap_err();
    store.data.heal();
    assert!(store.states.next_unknown(None).is_none());
    check_damaged(read(&store, 0, 1), 0);
    assert_eq!(read(&store, 4096, 1).unwrap(), [1]);
}

#[test]
fn a_volume_that_grows_after_a_shrinking_that_failed_late_has_zeros() {
    let store = memory(SIZE);
    store.write_at(0, &[7; 40 * 4096]).unwrap();
    store.close().unwrap();
    let new = Bytes::new(2 * BLOCK + 9);
    let late = store.resized(new, |data| data.resize(new).and(Err(StoreError::ReadOnly)));
    late.unwrap_err();
    assert_eq!(store.size(), new);
    (0..8).for_each(|_| store.sync().unwrap());
    store.resize(Bytes::new(SIZE)).unwrap();
    let mut expect = vec![0; index(SIZE)];
    expect[..2 * 4096 + 9].fill(7);
    assert!(all(&store) == expect);
}

#[derive(Debug, Clone)]
enum Op {
    Write { offset: u64, len: u64, fill: u8 },
    Zero { offset: u64, len: u64, may_trim: bool },
    Resize { new: u64 },
    Sync,
    Close,
}

fn range() -> impl Strategy<Value = (u64, u64)> {
    let offset = prop_oneof![(0..41_u64).prop_map(|block| block * BLOCK), 0..SIZE];
    let len = prop_oneof![Just(BLOCK), Just(3 * BLOCK), 1..9000_u64];
    (offset, len)
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => (range(), 1..=255_u8).prop_map(|((offset, len), fill)| Op::Write { offset, len, fill }),
        2 => (range(), any::<bool>())
            .prop_map(|((offset, len), may_trim)| Op::Zero { offset, len, may_trim }),
        1 => (1..SIZE + 9 * BLOCK).prop_map(|new| Op::Resize { new }),
        3 => Just(Op::Sync),
        1 => Just(Op::Close),
    ]
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 1..40)
}

/// Applies an operation to a store, as far as it is inside.
fn apply(store: &impl Store, op: &Op) -> Result<()> {
    let size = store.size().get();
    let inside = |offset: u64, len: u64| len.min(size.saturating_sub(offset));
    match *op {
        Op::Write { offset, len, fill } => match inside(offset, len) {
            0 => Ok(()),
            len => store.write_at(offset, &vec![fill; index(len)]),
        },
        Op::Zero { offset, len, may_trim } => match inside(offset, len) {
            0 => Ok(()),
            len => store.write_zeroes(offset, len, may_trim),
        },
        Op::Resize { new } => store.resize(Bytes::new(new)),
        Op::Sync | Op::Close => store.sync(),
    }
}

fn apply_summed<S: Store>(store: &Summed<S>, op: &Op) -> Result<()> {
    match op {
        Op::Close => store.close(),
        op => apply(store, op),
    }
}

fn all<S: Store>(store: &S) -> Vec<u8> {
    let mut bytes = vec![0xee; index(store.size().get())];
    store.read_at(0, &mut bytes).unwrap();
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn bytes_are_those_of_the_store_and_a_flipped_bit_is_never_returned(
        ops in ops(), flips in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
    ) {
        let (store, plain) = (memory(SIZE), MemoryStore::new(Bytes::new(SIZE)));
        for op in &ops {
            apply_summed(&store, op).unwrap();
            apply(&plain, op).unwrap();
            prop_assert!(all(&store) == all(&plain), "{:?}", op);
        }
        let size = plain.size().get();
        let flipped: Vec<u64> = flips.iter().map(|at| at.index(index(size * 8)) as u64).collect();
        flipped.iter().for_each(|bit| flip(&store.data, *bit));
        let truth = all(&plain);
        for (number, block) in (0..).zip(truth.chunks(4096)) {
            let flips = flipped.iter().filter(|bit| **bit / 8 / BLOCK == number).count();
            match read(&store, number * BLOCK, block.len()) {
                Ok(found) => prop_assert_eq!(found, block),
                // Two flips of one bit are none.
                Err(_) => prop_assert!(flips > 0, "block {}", number),
            }
            prop_assert!(flips != 1 || read(&store, number * BLOCK, 1).is_err(), "block {}", number);
        }
        // Whatever is written later, a block reads as it should or fails.
        for op in ops.iter().filter(|op| !matches!(op, Op::Resize { .. })) {
            if apply_summed(&store, op).is_ok() {
                apply(&plain, op).unwrap();
            } else if let Op::Write { offset, len, .. } | Op::Zero { offset, len, .. } = op {
                // A refused range has old or new bytes: the same in both from here on.
                let len = (*len).min(size - offset);
                let (first, last) = (offset / BLOCK, (offset + len).div_ceil(BLOCK));
                for block in first..last {
                    let at = block * BLOCK;
                    let zeros = vec![0; index(BLOCK.min(size - at))];
                    store.write_at(at, &zeros).unwrap();
                    plain.write_at(at, &zeros).unwrap();
                }
            }
        }
        let truth = all(&plain);
        for (number, block) in (0..).zip(truth.chunks(4096)) {
            if let Ok(found) = read(&store, number * BLOCK, block.len()) {
                prop_assert_eq!(found, block);
            }
        }
    }

    /// The process is killed and then the power is lost, between any two steps, with any of the unsynced sectors of
    /// each medium: no block looks damaged, and synced bytes are there or later ones.
    #[test]
    fn a_crash_is_never_taken_for_damage(
        ops in [ops(), ops()], steps in [0..60_u64, 0..60], seeds: [u64; 5], kills in 0..3_usize,
    ) {
        // The content at the last sync, and after each operation since then.
        let mut contents = vec![vec![0; index(SIZE)]];
        let mut media = Media::new(SIZE, FaultStore::new);
        for round in 0..2 {
            let store = media.open().unwrap();
            store.resume(20 * BLOCK).unwrap();
            // One of the three ends first; the others then lose what the first would have allowed.
            let fail = |medium: &FaultStore| medium.fail_after(steps[round], Fault::Io);
            match seeds[round] % 3 {
                0 => fail(&store.data),
                1 => fail(store.sums.medium()),
                _ => store.states.with_store(fail),
            }
            for op in ops[round].iter().filter(|op| !matches!(op, Op::Resize { .. })) {
                let plain = MemoryStore::new(Bytes::new(SIZE));
                plain.write_at(0, contents.last().unwrap()).unwrap();
                apply(&plain, op).unwrap();
                contents.push(all(&plain));
                if apply_summed(&store, op).is_err() {
                    break;
                }
                if matches!(op, Op::Sync | Op::Close) {
                    contents.drain(..contents.len() - 1);
                }
            }
            let Summed { data, sums, states, .. } = store;
            let (sums, list) = (sums.into_medium(), states.into_store());
            let is_kill = round < kills;
            let [data, sums, list] = [(&data, 0), (&sums, 1), (&list, 2)].map(|(medium, number)| {
                medium.heal();
                match is_kill {
                    true => medium.kill().unwrap(),
                    false => medium.crash(seeds[2 + round].wrapping_add(number)).unwrap(),
                }
            });
            // A byte has the value of the last write that the crash has kept, or of the sync.
            for (at, byte) in all(&data).iter().enumerate() {
                let is_known = contents.iter().any(|own| own[at] == *byte);
                prop_assert!(is_known, "byte {} in round {}", at, round);
            }
            // The next round begins with these bytes, and a later crash can still lose those of a kill.
            contents.push(all(&data));
            media = Media(data, sums, list);
        }
        let Media(data, sums, list) = media;
        let expect = all(&data);
        let store = Media(data, sums, list).open().unwrap();
        prop_assert!(all(&store) == expect);
        let mut found = Vec::new();
        store.scrub(|range| found.push(range)).unwrap();
        prop_assert_eq!(&found, &[]);
        // The new checksums agree with the bytes, and later damage is found.
        store.rebuild(u64::MAX).unwrap();
        store.close().unwrap();
        prop_assert!(all(&store) == expect);
        store.scrub(|range| found.push(range)).unwrap();
        prop_assert_eq!(&found, &[]);
        flip(&store.data, seeds[4] % (SIZE * 8));
        store.scrub(|range| found.push(range)).unwrap();
        prop_assert_eq!(found.len(), 1);
    }
}

#[test]
fn the_space_of_a_volume_is_that_of_its_bytes_and_its_checksums() {
    let store = memory(SIZE);
    store.write_at(0, &[7; 8192]).unwrap();
    store.close().unwrap();
    assert_eq!(store.allocated().unwrap(), Bytes::new(8192 + 4096));
}

/// Notices a sync that succeeds although checksums that were stored may be lost, and an end that seals no region for
/// lack of space and says nothing.
#[test]
fn a_sync_fails_if_checksums_are_lost_and_an_end_if_they_have_no_space() {
    let sealing = |fault, prepare: fn(&Summed<FaultStore>)| {
        let store = Media::new(SIZE, FaultStore::new).open().unwrap();
        store.write_at(0, &[1; 4096]).unwrap();
        prepare(&store);
        store.sums.medium().fail_after(0, fault);
        ((0..6).any(|_| store.sync().is_err()), store.close().is_err())
    };
    assert_eq!(sealing(Fault::Io, |store| store.sums.flush().unwrap()), (true, false));
    // Regions whose checksums are lost stay open; these here could be sealed.
    assert_eq!(sealing(Fault::NoSpace, |_| ()), (false, true));
}

/// Notices a file of checksums that is too short or missing and that nobody names.
#[test]
fn a_checksum_that_is_missing_is_named_with_its_file() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("sums")).unwrap();
    // The file of 1 TiB each, and the bytes that it has.
    let cases = [
        (0, None, 0, Some("does not exist")),
        (0, Some(3), 0, Some("is cut to 3 bytes")),
        (0, Some(4), 4095, None),
        (0, Some(7), 4096, Some("is cut to 7 bytes")),
        (0, Some(8), 4096, None),
        (0, Some(400), 100 * BLOCK, Some("is cut to 400 bytes")),
        (0, Some(404), 100 * BLOCK, None),
        (1, Some(4), 1 << 40, None),
        (1, Some(7), (1 << 40) + BLOCK, Some("is cut to 7 bytes")),
        (1, Some(8), (1 << 40) + BLOCK, None),
        (2, None, 2 << 40, Some("does not exist")),
    ];
    for (number, len, offset, expect) in cases {
        let file = dir.path().join(format!("sums/{number:05}"));
        if let Some(len) = len {
            std::fs::write(&file, vec![0; len]).unwrap();
        }
        let found = missing(dir.path(), offset);
        let expect = expect.map(|state| {
            format!(
                "the bytes are not those of their checksums: the file of these checksums, {}, {state}; restore it \
                 from a copy",
                file.display()
            )
        });
        assert_eq!(found, expect, "{offset} of {len:?}");
    }
}
