//! Every store against the simplest one: a vector of bytes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use proptest::prelude::*;
use std::ops::{Deref, Range};
use std::sync::Arc;
use tempfile::TempDir;
use weir_store::{
    DataDir, ErrorKind, Extent, ExtentKind, FaultStore, FileStore, MemoryStore, NewVolume, Store,
    Volume,
};
use weir_units::Bytes;

/// Segments of this size in the file tests, so that a small volume has several.
const SEGMENT: u64 = 64 << 10;
/// The bytes of a leaf of the memory store; the volumes are a little longer.
const LEAF: u64 = 2 << 20;
const MAX_SIZE: u64 = LEAF + 2 * SEGMENT;

#[derive(Debug, Clone)]
enum Op {
    Read { offset: u64, len: u64 },
    TryRead { offset: u64, len: u64 },
    Write { offset: u64, len: u64, fill: u8 },
    Zero { offset: u64, len: u64, may_trim: bool },
    Trim { offset: u64, len: u64 },
    Resize { new: u64 },
    Sync,
    Extents { offset: u64, len: u64, max: usize },
    Reopen,
}

/// Near borders of pages, segments and leaves, some behind the end.
fn offset() -> impl Strategy<Value = u64> {
    let border = prop_oneof![
        3 => Just(0),
        3 => (0..4_u64).prop_map(|page| page * 4096),
        3 => (0..=MAX_SIZE / SEGMENT).prop_map(|segment| segment * SEGMENT),
        3 => Just(LEAF),
        1 => Just(MAX_SIZE),
        1 => Just(u64::MAX),
    ];
    let beside = prop_oneof![2 => Just(0), 1 => -600..600_i64];
    (border, beside).prop_map(|(border, beside)| border.saturating_add_signed(beside))
}

fn len() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1..600_u64, Just(4096), Just(8192), Just(SEGMENT), 0..3 * SEGMENT]
}

fn op() -> impl Strategy<Value = Op> {
    let range = || (offset(), len());
    prop_oneof![
        2 => range().prop_map(|(offset, len)| Op::Read { offset, len }),
        1 => range().prop_map(|(offset, len)| Op::TryRead { offset, len }),
        6 => (range(), 1..=255_u8)
            .prop_map(|((offset, len), fill)| Op::Write { offset, len, fill }),
        2 => (range(), any::<bool>())
            .prop_map(|((offset, len), may_trim)| Op::Zero { offset, len, may_trim }),
        2 => range().prop_map(|(offset, len)| Op::Trim { offset, len }),
        2 => offset().prop_map(|new| Op::Resize { new: new.min(MAX_SIZE) }),
        1 => Just(Op::Sync),
        2 => (range(), prop_oneof![0..4_usize, Just(usize::MAX)])
            .prop_map(|((offset, len), max)| Op::Extents { offset, len, max }),
        1 => Just(Op::Reopen),
    ]
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 1..40)
}

struct Model(Vec<u8>);

impl Model {
    /// The range as indices, if it is inside.
    fn range(&self, offset: u64, len: u64) -> Option<Range<usize>> {
        let end = usize::try_from(offset.checked_add(len)?).unwrap();
        (end <= self.0.len()).then(|| end - usize::try_from(len).unwrap()..end)
    }

    /// The range in which the store must do `done` or, if it is outside, refuse.
    fn check<T: std::fmt::Debug>(
        &self,
        offset: u64,
        len: u64,
        done: weir_store::Result<T>,
    ) -> Option<(Range<usize>, T)> {
        match self.range(offset, len) {
            Some(range) => Some((range, done.unwrap())),
            None => {
                assert_eq!(done.unwrap_err().kind(), ErrorKind::OutOfRange);
                None
            }
        }
    }

    fn check_extents(&self, range: Range<usize>, found: &[Extent], max: usize) {
        assert!(found.len() <= max);
        assert!(found.windows(2).all(|pair| pair[0].kind != pair[1].kind), "{found:?}");
        let mut at = range.start;
        for extent in found {
            assert!(extent.len > 0);
            let end = at + usize::try_from(extent.len).unwrap();
            if extent.kind == ExtentKind::Hole {
                assert!(self.0[at..end].iter().all(|byte| *byte == 0), "data in a hole");
            }
            at = end;
        }
        assert!(at == range.end || (found.len() == max && at < range.end), "{found:?}");
    }

    fn apply(&mut self, store: &dyn Store, op: &Op) {
        match *op {
            Op::Read { offset, len } => {
                let mut buf = vec![0xee; usize::try_from(len).unwrap()];
                let done = store.read_at(offset, &mut buf);
                if let Some((range, ())) = self.check(offset, len, done) {
                    assert!(self.0[range] == buf, "{op:?}");
                }
            }
            Op::TryRead { offset, len } => {
                let mut buf = vec![0xee; usize::try_from(len).unwrap()];
                let done = store.try_read_at(offset, &mut buf);
                if let Some((range, true)) = self.check(offset, len, done) {
                    assert!(self.0[range] == buf, "{op:?}");
                }
            }
            Op::Write { offset, len, fill } => {
                let sector = |at: u64| u8::try_from(at / 512 % 256).unwrap();
                let data: Vec<u8> = (0..len).map(|at| fill.wrapping_add(sector(at))).collect();
                let done = store.write_at(offset, &data);
                if let Some((range, ())) = self.check(offset, len, done) {
                    self.0[range].copy_from_slice(&data);
                }
            }
            Op::Zero { offset, len, may_trim } => {
                let done = store.write_zeroes(offset, len, may_trim);
                if let Some((range, ())) = self.check(offset, len, done) {
                    self.0[range].fill(0);
                }
            }
            Op::Trim { offset, len } => {
                let done = store.trim(offset, len);
                if let Some((range, ())) = self.check(offset, len, done) {
                    self.0[range].fill(0);
                }
            }
            Op::Resize { new } => {
                store.resize(Bytes::new(new)).unwrap();
                self.0.resize(usize::try_from(new).unwrap(), 0);
                assert_eq!(store.size(), Bytes::new(new));
            }
            Op::Sync => store.sync().unwrap(),
            Op::Extents { offset, len, max } => {
                let done = store.extents(offset, len, max);
                if let Some((range, found)) = self.check(offset, len, done) {
                    self.check_extents(range, &found, max);
                }
            }
            Op::Reopen => {}
        }
    }

    fn check_all(&self, store: &dyn Store) {
        let mut content = vec![0xee; self.0.len()];
        store.read_at(0, &mut content).unwrap();
        assert!(content == self.0, "the content differs");
        let all = store.extents(0, content.len() as u64, usize::MAX).unwrap();
        self.check_extents(0..self.0.len(), &all, usize::MAX);
    }
}

/// Runs `ops` on what `open` makes, opened anew at each [`Op::Reopen`].
fn check<S>(ops: &[Op], mut store: S, mut reopen: impl FnMut(S) -> S)
where
    S: Deref<Target: Store + Sized>,
{
    let mut model = Model(vec![0; usize::try_from(store.size().get()).unwrap()]);
    for op in ops {
        model.apply(&*store, op);
        if matches!(op, Op::Reopen) {
            store = reopen(store);
        }
    }
    model.check_all(&*store);
}

const START: Bytes = Bytes::new(LEAF + SEGMENT);

fn files(dir: &TempDir, size: Bytes) -> Box<FileStore> {
    Box::new(FileStore::open_segmented(dir.path(), size, Bytes::new(SEGMENT)).unwrap())
}

fn volume(dir: &TempDir, checksums: Option<bool>) -> Arc<Volume> {
    let new = NewVolume { size: START, attributes: [].into(), checksums };
    DataDir::open(dir.path(), "test").unwrap().volume("db", new).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn memory_is_a_vector_of_bytes(ops in ops()) {
        check(&ops, Box::new(MemoryStore::new(START)), |store| store);
    }

    #[test]
    fn a_store_with_faults_is_a_vector_of_bytes_over_kills(ops in ops()) {
        check(&ops, Box::new(FaultStore::new(START)), |store| Box::new(store.kill().unwrap()));
    }

    #[test]
    fn a_store_that_is_synced_is_a_vector_of_bytes_over_crashes(ops in ops(), seed: u64) {
        check(&ops, Box::new(FaultStore::new(START)), |store| {
            store.sync().unwrap();
            Box::new(store.crash(seed).unwrap())
        });
    }

    #[test]
    fn files_are_a_vector_of_bytes_over_reopening(ops in ops()) {
        let dir = tempfile::tempdir().unwrap();
        check(&ops, files(&dir, START), |store| files(&dir, store.size()));
    }

    #[test]
    fn a_volume_is_a_vector_of_bytes_that_remembers_its_size(ops in ops()) {
        let dir = tempfile::tempdir().unwrap();
        check(&ops, volume(&dir, None), |store| {
            drop(store);
            volume(&dir, None)
        });
    }

    #[test]
    fn a_volume_with_checksums_is_a_vector_of_bytes(ops in ops()) {
        let dir = tempfile::tempdir().unwrap();
        check(&ops, volume(&dir, Some(true)), |store| {
            drop(store);
            volume(&dir, Some(true))
        });
    }

    /// Each sector after a crash is as it was synced or as a later change left it.
    #[test]
    fn a_crash_loses_only_what_was_not_synced(
        synced in ops(), lost in ops(), seed: u64,
    ) {
        let store = FaultStore::new(START);
        let mut model = Model(vec![0; usize::try_from(START.get()).unwrap()]);
        let stays = |op: &&Op| !matches!(op, Op::Resize { .. } | Op::Reopen | Op::Sync);
        synced.iter().filter(stays).for_each(|op| model.apply(&store, op));
        store.sync().unwrap();
        prop_assert_eq!(store.unsynced(), 0);
        let mut versions = vec![model.0.clone()];
        for op in lost.iter().filter(stays) {
            model.apply(&store, op);
            versions.push(model.0.clone());
        }
        let after = store.crash(seed).unwrap();
        let mut content = vec![0; model.0.len()];
        after.read_at(0, &mut content).unwrap();
        for (at, byte) in content.iter().enumerate() {
            prop_assert!(
                versions.iter().any(|version| version[at] == *byte),
                "byte {} is {}, which it never was", at, byte
            );
        }
    }
}
