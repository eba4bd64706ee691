//! A volume that knows its pages against a vector of bytes and a vector of versions.

use crate::meta::{Meta, MetaFile};
use crate::paged::folders::Folders;
use crate::paged::{Change, PAGE, PageRange, PagedStore, SnapshotId};
use crate::pieces::index;
use crate::store::Store;
use crate::volume::inspect;
use crate::{ErrorKind, file};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use weir_units::Bytes;

/// The border of two chunks of the map and of two segments, around which everything happens.
pub(super) const BASE: u64 = (2 << 20) - 8 * PAGE;
pub(super) const SEGMENT: u64 = 2 << 20;
pub(super) const START: u64 = BASE + 20 * PAGE;
pub(super) const MAX: u64 = BASE + 24 * PAGE;

#[derive(Debug, Clone)]
pub(super) enum Op {
    Write {
        offset: u64,
        len: u64,
    },
    Zero {
        offset: u64,
        len: u64,
        may_trim: bool,
    },
    Trim {
        offset: u64,
        len: u64,
    },
    Resize {
        new: u64,
    },
    Sync,
    Snapshot,
    /// The number of the snapshot among those that there are.
    Delete {
        which: usize,
    },
    View {
        which: usize,
    },
    DropViews,
    Tidy,
    TidyAll,
    Reopen,
}

fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => (0..24_u64).prop_map(|page| BASE + page * PAGE),
        1 => BASE..MAX,
    ]
}

fn len() -> impl Strategy<Value = u64> {
    prop_oneof![3 => (0..8_u64).prop_map(|pages| pages * PAGE), 2 => 1..3 * PAGE]
}

pub(super) fn op() -> impl Strategy<Value = Op> {
    let range = || (offset(), len());
    prop_oneof![
        10 => range().prop_map(|(offset, len)| Op::Write { offset, len }),
        2 => (range(), any::<bool>())
            .prop_map(|((offset, len), may_trim)| Op::Zero { offset, len, may_trim }),
        4 => range().prop_map(|(offset, len)| Op::Trim { offset, len }),
        3 => offset().prop_map(|new| Op::Resize { new }),
        3 => Just(Op::Sync),
        5 => Just(Op::Snapshot),
        4 => (0..4_usize).prop_map(|which| Op::Delete { which }),
        1 => (0..4_usize).prop_map(|which| Op::View { which }),
        1 => Just(Op::DropViews),
        3 => Just(Op::Tidy),
        2 => Just(Op::TidyAll),
        3 => Just(Op::Reopen),
    ]
}

pub(super) fn ops(max: usize) -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 1..max)
}

/// A state of the volume from [`BASE`] on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Image {
    pub(super) bytes: Vec<u8>,
    /// When each page was written last; 0 if it is not there.
    pub(super) versions: Vec<u64>,
}

impl Image {
    pub(super) fn size(&self) -> u64 {
        BASE + self.bytes.len() as u64
    }

    /// Joined ranges of the pages that are `wanted`.
    fn ranges(&self, wanted: impl Fn(usize) -> bool) -> Vec<PageRange> {
        let mut found: Vec<PageRange> = Vec::new();
        for page in (0..self.versions.len()).filter(|page| wanted(*page)) {
            let offset = BASE + page as u64 * PAGE;
            let len = PAGE.min(self.size() - offset);
            match found.last_mut() {
                Some(last) if last.offset + last.len == offset => last.len += len,
                _ => found.push(PageRange { offset, len }),
            }
        }
        found
    }

    fn changes(&self, since: &Image) -> Vec<Change> {
        let before = |page: usize| since.versions.get(page).copied().unwrap_or(0);
        let written = |page: usize| self.versions[page] != 0 && self.versions[page] != before(page);
        let cleared = |page: usize| self.versions[page] == 0 && before(page) != 0;
        let written = self.ranges(written).into_iter().map(|range| (range, false));
        let cleared = self.ranges(cleared).into_iter().map(|range| (range, true));
        let mut all: Vec<_> =
            written.chain(cleared).map(|(range, cleared)| Change { range, cleared }).collect();
        all.sort_by_key(|change| change.range.offset);
        all
    }

    pub(super) fn check_bytes(&self, store: &dyn Store) {
        assert_eq!(store.size().get(), self.size());
        let mut found = vec![0xee; self.bytes.len()];
        store.read_at(BASE, &mut found).unwrap();
        assert!(found == self.bytes, "{:?}", differ(&found, &self.bytes));
        found.fill(0xee);
        assert!(!store.try_read_at(BASE, &mut found).unwrap() || found == self.bytes);
    }

    pub(super) fn check_pages(&self, store: &PagedStore, of: Option<SnapshotId>) {
        let expect = self.ranges(|page| self.versions[page] != 0);
        assert_eq!(store.pages(of, 0, self.size(), usize::MAX).unwrap(), expect);
        let first = expect.first().into_iter().copied().collect::<Vec<_>>();
        assert_eq!(store.pages(of, 0, self.size(), 1).unwrap(), first);
    }
}

/// The pages in which two differ.
pub(super) fn differ(one: &[u8], other: &[u8]) -> Vec<usize> {
    let pages = one.chunks(512).zip(other.chunks(512)).enumerate();
    pages.filter(|(_, (one, other))| one != other).map(|(page, _)| page).collect()
}

#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) live: Image,
    pub(super) snapshots: BTreeMap<u64, Image>,
    clock: u64,
}

impl Model {
    pub(super) fn new(size: u64) -> Self {
        let bytes = vec![0; index(size - BASE)];
        let versions = vec![0; bytes.len().div_ceil(512)];
        Self { live: Image { bytes, versions }, snapshots: BTreeMap::new(), clock: 0 }
    }

    /// The range in `bytes`, if it is inside the volume.
    fn range(&self, offset: u64, len: u64) -> Option<Range<usize>> {
        let start = index(offset - BASE);
        let end = start + index(len);
        (end <= self.live.bytes.len()).then_some(start..end)
    }

    fn put(&mut self, range: Range<usize>, bytes: &[u8]) {
        self.clock += 1;
        if !range.is_empty() {
            self.live.versions[range.start / 512..range.end.div_ceil(512)].fill(self.clock);
        }
        self.live.bytes[range].copy_from_slice(bytes);
    }

    fn trim(&mut self, range: Range<usize>) {
        self.clock += 1;
        if range.is_empty() {
            return;
        }
        let size = self.live.bytes.len();
        for page in range.start / 512..range.end.div_ceil(512) {
            let all = page * 512..(page * 512 + 512).min(size);
            if range.start <= all.start && range.end >= all.end {
                self.live.versions[page] = 0;
            } else if self.live.versions[page] != 0 {
                self.live.versions[page] = self.clock;
            }
        }
        self.live.bytes[range].fill(0);
    }

    fn resize(&mut self, new: usize) {
        self.cut_page(new);
        self.live.bytes.resize(new, 0);
        self.live.versions.resize(new.div_ceil(512), 0);
    }

    /// The rest of a page that is cut is written again, even if cutting it then fails.
    pub(super) fn cut_page(&mut self, new: usize) {
        self.clock += 1;
        let Image { bytes, versions } = &mut self.live;
        if new < bytes.len() && !new.is_multiple_of(512) && versions[new / 512] != 0 {
            versions[new / 512] = self.clock;
        }
    }

    pub(super) fn nth(&self, which: usize) -> Option<u64> {
        self.snapshots.keys().copied().nth(which)
    }

    /// Returns bytes to write there, which never are those that are there already.
    pub(super) fn data(&self, len: u64) -> Vec<u8> {
        let seed = self.clock.wrapping_mul(37) + 1;
        (0..len).map(|at| ((seed + at / 100) % 255 + 1).to_le_bytes()[0]).collect()
    }

    /// Applies `op` to the bytes and the size; `false` if it has to be refused.
    pub(super) fn change(&mut self, op: &Op) -> bool {
        let (offset, len) = match *op {
            Op::Write { offset, len } | Op::Trim { offset, len } => (offset, len),
            Op::Zero { offset, len, .. } => (offset, len),
            Op::Resize { new } => {
                self.resize(index(new - BASE));
                return true;
            }
            _ => return true,
        };
        let Some(range) = self.range(offset, len) else { return false };
        match op {
            Op::Write { .. } => self.put(range, &self.data(len)),
            Op::Zero { may_trim: false, .. } => self.put(range, &vec![0; index(len)]),
            _ => self.trim(range),
        }
        true
    }

    pub(super) fn check(&self, store: &PagedStore) {
        self.live.check_bytes(store);
        self.live.check_pages(store, None);
        self.check_snapshots(store);
        for (id, image) in &self.snapshots {
            let since = SnapshotId(*id);
            let ofs = self.snapshots.range(id..).map(|(of, image)| (Some(SnapshotId(*of)), image));
            for (of, later) in ofs.chain([(None, &self.live)]) {
                let found = store.changes(since, of, 0, later.size(), usize::MAX).unwrap();
                assert_eq!(found, later.changes(image), "from {since} to {of:?}");
            }
        }
    }

    pub(super) fn check_snapshots(&self, store: &PagedStore) {
        let known: Vec<_> = self.snapshots.keys().map(|id| SnapshotId(*id)).collect();
        assert_eq!(store.snapshots(), known);
        for (id, image) in &self.snapshots {
            image.check_bytes(&*store.view(SnapshotId(*id)).unwrap());
            image.check_pages(store, Some(SnapshotId(*id)));
        }
    }
}

/// Does to `store` what changes its bytes or its size.
pub(super) fn change(store: &PagedStore, model: &Model, op: &Op) -> crate::Result<()> {
    match *op {
        Op::Write { offset, len } => store.write_at(offset, &model.data(len)),
        Op::Zero { offset, len, may_trim } => store.write_zeroes(offset, len, may_trim),
        Op::Trim { offset, len } => store.trim(offset, len),
        Op::Resize { new } => store.resize(Bytes::new(new)),
        Op::Sync => store.sync(),
        _ => Ok(()),
    }
}

/// Runs `ops` on what `open` makes, opened anew at each [`Op::Reopen`].
fn check(ops: &[Op], mut store: PagedStore, mut reopen: impl FnMut(PagedStore) -> PagedStore) {
    let mut model = Model::new(START);
    let mut last_id = 0;
    let mut views: Vec<(Arc<dyn Store>, Image)> = Vec::new();
    for op in ops {
        match *op {
            Op::Snapshot => {
                let SnapshotId(id) = store.snapshot().unwrap();
                assert!(id > last_id);
                last_id = id;
                model.snapshots.insert(id, model.live.clone());
            }
            Op::Delete { which } => match model.nth(which) {
                Some(id) => {
                    model.snapshots.remove(&id);
                    assert!(store.delete_snapshot(SnapshotId(id)).unwrap());
                    assert!(!store.delete_snapshot(SnapshotId(id)).unwrap());
                }
                None => assert!(!store.delete_snapshot(SnapshotId(last_id + 1)).unwrap()),
            },
            Op::View { which } => {
                let Some(id) = model.nth(which) else { continue };
                let view = store.view(SnapshotId(id)).unwrap();
                views.push((view, model.snapshots[&id].clone()));
            }
            Op::DropViews => views.clear(),
            Op::Tidy => drop(store.tidy().unwrap()),
            Op::TidyAll => {
                while store.tidy().unwrap() {}
                if views.is_empty() {
                    // The live layer, and an orphan at most.
                    assert!(store.stack().0.len() <= model.snapshots.len() + 2);
                }
            }
            Op::Reopen => {
                views.clear();
                store = reopen(store);
            }
            ref op => {
                let done = change(&store, &model, op);
                if model.change(op) {
                    done.unwrap();
                } else {
                    assert_eq!(done.unwrap_err().kind(), ErrorKind::OutOfRange);
                }
            }
        }
        model.check(&store);
        views.iter().for_each(|(view, image)| image.check_bytes(&**view));
    }
}

pub(super) fn create(dir: &Path) -> PagedStore {
    let size = Bytes::new(START);
    let meta = Meta {
        size,
        declared_size: size,
        segment: Bytes::new(SEGMENT),
        segments: BTreeSet::new(),
        attributes: BTreeMap::new(),
        layers: None,
        checksums: false,
    };
    Folders::create(dir, Arc::new(MetaFile::new(dir, meta)), size).unwrap()
}

pub(super) fn open(dir: &Path) -> crate::Result<PagedStore> {
    let meta = inspect(dir)?.unwrap();
    let layers = meta.layers.clone().unwrap();
    Folders::open(dir, Arc::new(MetaFile::new(dir, meta)), &layers)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn pages_in_memory_are_those_of_the_model(ops in ops(60)) {
        assert_ne!(Bytes::new(SEGMENT), file::SEGMENT);
        check(&ops, PagedStore::in_memory(Bytes::new(START)), |store| store);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn pages_in_files_are_those_of_the_model_over_reopening(ops in ops(40)) {
        let dir = tempfile::tempdir().unwrap();
        check(&ops, create(dir.path()), |store| {
            drop(store);
            open(dir.path()).unwrap()
        });
    }
}
