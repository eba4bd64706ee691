//! A frozen view shows the volume as it was, whatever is done to the volume since.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_store::freeze::BLOCK;
use weir_store::{
    DataDir, ErrorKind, ExtentKind, Fault, FaultStore, Freezable, Frozen, MemoryStore, NewVolume,
    PagedStore, Scratch, Store, Volume,
};
use weir_units::Bytes;

const SIZE: u64 = 6 * BLOCK + 1000;
const LARGEST: u64 = 8 * BLOCK;

#[derive(Debug, Clone)]
enum Op {
    Write { offset: u64, len: u64, fill: u8 },
    Zero { offset: u64, len: u64, may_trim: bool },
    Trim { offset: u64, len: u64 },
    Resize { size: u64 },
    Freeze,
    Complete { view: usize },
    Release { view: usize, offset: u64, len: u64 },
    Read { view: usize, offset: u64, len: u64 },
    Thaw { view: usize },
    Reopen,
}

fn ranges() -> impl Strategy<Value = (u64, u64)> {
    let near = |at: u64| at.saturating_sub(700)..at + 700;
    let offset = prop_oneof![0..LARGEST, near(BLOCK), near(3 * BLOCK), near(SIZE)];
    (offset, prop_oneof![0..5000_u64, Just(BLOCK), 0..4 * BLOCK])
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        4 => (ranges(), 1..=255_u8)
            .prop_map(|((offset, len), fill)| Op::Write { offset, len, fill }),
        1 => (ranges(), any::<bool>())
            .prop_map(|((offset, len), may_trim)| Op::Zero { offset, len, may_trim }),
        1 => ranges().prop_map(|(offset, len)| Op::Trim { offset, len }),
        1 => prop_oneof![0..LARGEST, Just(2 * BLOCK), Just(SIZE)]
            .prop_map(|size| Op::Resize { size }),
        2 => Just(Op::Freeze),
        1 => (0..3_usize).prop_map(|view| Op::Complete { view }),
        1 => (0..3_usize, ranges())
            .prop_map(|(view, (offset, len))| Op::Release { view, offset, len }),
        2 => (0..3_usize, ranges())
            .prop_map(|(view, (offset, len))| Op::Read { view, offset, len }),
        1 => (0..3_usize).prop_map(|view| Op::Thaw { view }),
        1 => Just(Op::Reopen),
    ];
    prop::collection::vec(op, 1..40)
}

/// A view, and what it must show.
struct View {
    frozen: Arc<Frozen>,
    image: Vec<u8>,
    released: BTreeSet<u64>,
    /// The range that was released last, from its beginning to its end.
    last_released: (u64, u64),
    /// The base at the freeze, and its bytes.
    base: Option<(String, Vec<u8>)>,
    number: u64,
}

/// The store under test.
trait Subject {
    fn store(&self) -> &dyn Store;
    fn freezable(&self) -> &Freezable;
    fn scratch(&self) -> Scratch {
        Scratch::memory()
    }
    /// Returns whether changes are still known afterwards.
    fn reopen(&mut self) -> bool {
        true
    }
}

impl Subject for Freezable {
    fn store(&self) -> &dyn Store {
        self
    }

    fn freezable(&self) -> &Freezable {
        self
    }
}

struct Kept {
    dir: tempfile::TempDir,
    volume: Option<Arc<Volume>>,
    paged: bool,
    made: std::cell::Cell<u64>,
}

impl Kept {
    fn new(paged: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut kept = Self { dir, volume: None, paged, made: 0.into() };
        kept.open();
        kept
    }

    fn open(&mut self) {
        let data = DataDir::open(self.dir.path(), "test").unwrap();
        let new = NewVolume { size: Bytes::new(SIZE), attributes: [].into(), checksums: None };
        let volume = match self.paged {
            true => data.paged_volume("v", new),
            false => data.volume("v", new),
        };
        self.volume = Some(volume.unwrap());
    }
}

impl Subject for Kept {
    fn store(&self) -> &dyn Store {
        &**self.volume.as_ref().unwrap()
    }

    fn freezable(&self) -> &Freezable {
        self.volume.as_ref().unwrap().freezable()
    }

    fn scratch(&self) -> Scratch {
        self.made.set(self.made.get() + 1);
        Scratch::folder(self.dir.path().join("frozen").join(self.made.get().to_string()))
    }

    fn reopen(&mut self) -> bool {
        self.volume = None;
        self.open();
        true
    }
}

struct Model {
    bytes: Vec<u8>,
    views: Vec<View>,
    base: Option<(String, Vec<u8>)>,
    base_number: u64,
    freezes: u64,
}

fn usize_of(n: u64) -> usize {
    usize::try_from(n).unwrap()
}

impl Model {
    fn range(&self, offset: u64, len: u64) -> Option<std::ops::Range<usize>> {
        let (from, to) = (usize_of(offset), usize_of(offset + len));
        (to <= self.bytes.len()).then_some(from..to)
    }

    fn change(
        &mut self,
        offset: u64,
        len: u64,
        done: weir_store::Result<()>,
        bytes: impl Fn(u64) -> u8,
    ) {
        match self.range(offset, len) {
            None => assert_eq!(done.unwrap_err().kind(), ErrorKind::OutOfRange),
            Some(range) => {
                done.unwrap();
                for at in range {
                    self.bytes[at] = bytes(at as u64);
                }
            }
        }
    }

    fn apply(&mut self, subject: &mut impl Subject, op: &Op) {
        match *op {
            Op::Write { offset, len, fill } => {
                let byte = |at: u64| fill.wrapping_add(u8::try_from(at / 512 % 256).unwrap());
                let data: Vec<u8> = (offset..offset + len).map(byte).collect();
                let done = subject.store().write_at(offset, &data);
                self.change(offset, len, done, byte);
            }
            Op::Zero { offset, len, may_trim } => {
                let done = subject.store().write_zeroes(offset, len, may_trim);
                self.change(offset, len, done, |_| 0);
            }
            Op::Trim { offset, len } => {
                let done = subject.store().trim(offset, len);
                self.change(offset, len, done, |_| 0);
            }
            Op::Resize { size } => {
                subject.store().resize(Bytes::new(size)).unwrap();
                self.bytes.resize(usize_of(size), 0);
            }
            Op::Freeze if self.views.len() < 3 => {
                let frozen = subject.freezable().freeze(subject.scratch());
                self.freezes += 1;
                let (image, base) = (self.bytes.clone(), self.base.clone());
                assert_eq!(frozen.tracking().base, base.as_ref().map(|(id, _)| id.clone()));
                assert!(frozen.tracking().known);
                let number = self.freezes;
                let (released, last_released) = ([].into(), (0, 0));
                self.views.push(View { frozen, image, released, last_released, base, number });
            }
            Op::Freeze => {}
            Op::Complete { view } => {
                let Some(view) = self.views.get(view) else { return };
                let id = format!("backup {}", view.number);
                let became = subject.freezable().complete(&view.frozen, &id).unwrap();
                assert_eq!(became, self.base.is_none() || view.number >= self.base_number);
                if became {
                    self.base = Some((id, view.image.clone()));
                    self.base_number = view.number;
                }
            }
            Op::Release { view, offset, len } => {
                let Some(view) = self.views.get_mut(view) else { return };
                view.frozen.release(offset, len);
                view.release(offset, len);
            }
            Op::Read { view, offset, len } => {
                let Some(view) = self.views.get(view) else { return };
                view.read(offset, len);
            }
            Op::Thaw { view } if view < self.views.len() => {
                let view = self.views.remove(view);
                view.check(subject.store());
                subject.freezable().thaw(&view.frozen);
                let lost = view.frozen.read_at(0, &mut []).unwrap_err();
                assert_eq!(lost.kind(), ErrorKind::FrozenLost);
            }
            Op::Thaw { .. } => {}
            Op::Reopen => {
                for view in self.views.drain(..) {
                    view.check(subject.store());
                    subject.freezable().thaw(&view.frozen);
                }
                assert!(subject.reopen());
                // Numbers of eras begin again.
                self.base_number = 0;
                let base = self.base.as_ref().map(|(id, _)| id.clone());
                let tracking = subject.freezable().tracking();
                assert_eq!((tracking.known, tracking.base), (true, base));
            }
        }
    }

    fn check(&self, store: &dyn Store) {
        let mut found = vec![0xee; self.bytes.len()];
        store.read_at(0, &mut found).unwrap();
        assert!(found == self.bytes, "the volume differs");
        self.views.iter().for_each(|view| view.check(store));
    }
}

impl View {
    /// Notes that a range is released, with the part of a block that the range before it had.
    fn release(&mut self, offset: u64, len: u64) {
        let size = self.image.len() as u64;
        let end = (offset + len).min(size);
        if offset >= end {
            return;
        }
        let (first, last) = self.last_released;
        let joined = match (first..=last).contains(&offset) {
            true => (first, last.max(end)),
            false => (offset, end),
        };
        self.last_released = joined;
        let whole = |block: &u64| {
            let (from, to) = (block * BLOCK, ((block + 1) * BLOCK).min(size));
            joined.0 <= from && to <= joined.1 && from < size
        };
        self.released.extend((0..9).filter(whole));
    }

    fn read(&self, offset: u64, len: u64) {
        let mut found = vec![0xee; usize_of(len)];
        let done = self.frozen.read_at(offset, &mut found);
        let end = offset + len;
        if end > self.image.len() as u64 {
            assert_eq!(done.unwrap_err().kind(), ErrorKind::OutOfRange);
            return;
        }
        let touches = |block: &u64| len > 0 && block * BLOCK < end && offset < (block + 1) * BLOCK;
        if self.released.iter().any(touches) {
            assert_eq!(done.unwrap_err().kind(), ErrorKind::FrozenLost);
            return;
        }
        done.unwrap();
        let expect = &self.image[usize_of(offset)..usize_of(end)];
        assert!(found == expect, "the view differs");
        let mut tried = vec![0xee; usize_of(len)];
        if self.frozen.try_read_at(offset, &mut tried).unwrap() {
            assert!(tried == expect, "the view differs where it is tried");
        }
    }

    fn check(&self, _: &dyn Store) {
        let size = self.image.len() as u64;
        let blocks = 0..size.div_ceil(BLOCK);
        let unread = blocks.end - self.released.len() as u64;
        assert!(self.frozen.kept().get() <= unread * BLOCK, "released blocks are kept");
        assert!(self.frozen.kept() <= self.frozen.most_kept());
        for block in blocks.clone() {
            self.read(block * BLOCK, BLOCK.min(size - block * BLOCK));
        }
        if self.released.is_empty() {
            self.read(0, size);
            let extents = self.frozen.extents(0, size, usize::MAX).unwrap();
            let mut at = 0;
            for extent in extents {
                let part = &self.image[usize_of(at)..usize_of(at + extent.len)];
                assert!(extent.kind == ExtentKind::Data || part.iter().all(|byte| *byte == 0));
                at += extent.len;
            }
            assert_eq!(at, size);
        }
        self.check_changed(size);
    }

    /// Checks that bytes that differ from the base are among those that are told as changed.
    fn check_changed(&self, size: u64) {
        let Some((_, base)) = &self.base else { return };
        let (mut changed, mut from) = (Vec::new(), 0);
        loop {
            let some = self.frozen.changed(from, 2);
            assert!(some.ranges.len() <= 2);
            changed.extend(some.ranges);
            match some.next {
                Some(next) => from = next,
                None => break,
            }
        }
        assert!(changed.windows(2).all(|pair| pair[0].0 + pair[0].1 < pair[1].0), "{changed:?}");
        for at in 0..size {
            let before = base.get(usize_of(at)).copied().unwrap_or(0);
            let is_changed = changed.iter().any(|(from, len)| (*from..from + len).contains(&at));
            assert!(before == self.image[usize_of(at)] || is_changed, "byte {at} is not told");
        }
    }
}

fn check(mut subject: impl Subject, ops: &[Op]) {
    let bytes = vec![0; usize_of(SIZE)];
    let mut model = Model { bytes, views: Vec::new(), base: None, base_number: 0, freezes: 0 };
    for op in ops {
        model.apply(&mut subject, op);
    }
    model.check(subject.store());
    model.views.iter().for_each(|view| subject.freezable().thaw(&view.frozen));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn views_of_a_store_in_memory_stay_as_they_were(ops in ops()) {
        check(Freezable::new(Arc::new(MemoryStore::new(Bytes::new(SIZE)))), &ops);
    }

    #[test]
    fn views_of_pages_in_memory_stay_as_they_were(ops in ops()) {
        check(Freezable::new(Arc::new(PagedStore::in_memory(Bytes::new(SIZE)))), &ops);
    }

    #[test]
    fn views_of_a_volume_stay_as_they_were_and_changes_survive_its_closing(ops in ops()) {
        check(Kept::new(false), &ops);
    }

    #[test]
    fn views_of_a_paged_volume_stay_as_they_were_and_changes_survive(ops in ops()) {
        check(Kept::new(true), &ops);
    }
}

/// Writers count up in each block; the view shows each as it was at one moment, the same
/// however often it is read, and none older than what was there before the freeze began.
#[test]
fn a_view_does_not_move_while_threads_write() {
    const BLOCKS: u64 = 64;
    const THREADS: u64 = 4;
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(dir.path(), "test").unwrap();
    let new =
        NewVolume { size: Bytes::new(BLOCKS * BLOCK), attributes: [].into(), checksums: None };
    let volume = data.volume("v", new).unwrap();
    let memory = Freezable::new(Arc::new(MemoryStore::new(Bytes::new(BLOCKS * BLOCK))));
    let stop = AtomicBool::new(false);
    for freezable in [&memory, volume.freezable()] {
        stop.store(false, Ordering::Release);
        let written: Vec<_> = (0..BLOCKS).map(|_| std::sync::atomic::AtomicU64::new(0)).collect();
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (written, stop) = (&written, &stop);
                scope.spawn(move || {
                    for round in 1_u64.. {
                        for block in (thread..BLOCKS).step_by(usize_of(THREADS)) {
                            let content = round.to_le_bytes().repeat(usize_of(BLOCK / 8));
                            freezable.write_at(block * BLOCK, &content).unwrap();
                            written[usize_of(block)].store(round, Ordering::SeqCst);
                        }
                        if stop.load(Ordering::Acquire) {
                            return;
                        }
                    }
                });
            }
            for number in 0..20 {
                let scratch = Scratch::folder(dir.path().join(format!("frozen/{number}")));
                let read = |block: &std::sync::atomic::AtomicU64| block.load(Ordering::SeqCst);
                let before: Vec<u64> = written.iter().map(read).collect();
                let frozen = freezable.freeze(scratch);
                let after: Vec<u64> = written.iter().map(read).collect();
                let mut first = vec![0; usize_of(BLOCKS * BLOCK)];
                frozen.read_at(0, &mut first).unwrap();
                for (block, content) in first.chunks(usize_of(BLOCK)).enumerate() {
                    let round = u64::from_le_bytes(content[..8].try_into().unwrap());
                    assert!(content.chunks(8).all(|word| word == round.to_le_bytes()), "torn");
                    // One more may have been under way, and is told only when it is done.
                    assert!(before[block] <= round && round <= after[block] + 1);
                }
                for _ in 0..3 {
                    let mut again = vec![0; first.len()];
                    frozen.read_at(0, &mut again).unwrap();
                    assert!(again == first, "the view moved");
                }
                freezable.thaw(&frozen);
            }
            stop.store(true, Ordering::Release);
        });
    }
}

fn faulty() -> (Arc<FaultStore>, Freezable) {
    let store = Arc::new(FaultStore::new(Bytes::new(SIZE)));
    store.write_at(0, &vec![1; usize_of(SIZE)]).unwrap();
    (Arc::clone(&store), Freezable::new(store))
}

#[track_caller]
fn lost(frozen: &Frozen, expect: &str) {
    let error = frozen.read_at(0, &mut [0; 512]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FrozenLost);
    assert_eq!(error.to_string(), format!("the frozen view is lost: {expect}"));
    let error = frozen.extents(0, SIZE, 8).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FrozenLost);
}

#[test]
fn a_scratch_store_that_is_full_or_broken_loses_the_view_and_not_the_write() {
    for (fault, reason) in [
        (Fault::NoSpace, "old contents cannot be kept: no space left: injected by a test"),
        (Fault::Io, "old contents cannot be kept: injected by a test"),
    ] {
        let (store, freezable) = faulty();
        let scratch = Arc::new(FaultStore::new(Bytes::new(SIZE)));
        let frozen = freezable.freeze(Scratch::over(scratch.clone()));
        freezable.write_at(0, &[2; 4096]).unwrap();
        frozen.read_at(0, &mut [0; 512]).unwrap();
        scratch.fail_after(0, fault);
        freezable.write_at(BLOCK, &[2; 4096]).unwrap();
        lost(&frozen, reason);
        let mut found = [0; 4096];
        store.read_at(BLOCK, &mut found).unwrap();
        assert_eq!(found, [2; 4096]);
        assert!(!freezable.complete(&frozen, "b").unwrap(), "a lost view is no base");
        freezable.trim(0, SIZE).unwrap();
        freezable.thaw(&frozen);
        lost(&frozen, reason);
    }
}

#[test]
fn a_volume_that_is_full_takes_the_room_of_the_view() {
    let (store, freezable) = faulty();
    let frozen = freezable.freeze(Scratch::memory());
    // One failure: as if giving the view up had made the room.
    store.fail_after(0, Fault::NoSpace);
    let refused = freezable.write_at(0, &[2; 512]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NoSpace);
    lost(&frozen, "the medium is full, and clients need the space");
    store.heal();
    freezable.write_at(0, &[2; 512]).unwrap();
}

#[test]
fn a_volume_whose_old_contents_cannot_be_read_loses_the_view() {
    let (store, freezable) = faulty();
    let frozen = freezable.freeze(Scratch::memory());
    store.fail_after(0, Fault::Io);
    assert_eq!(freezable.trim(0, BLOCK).unwrap_err().kind(), ErrorKind::Io);
    store.heal();
    lost(&frozen, "old contents cannot be found: injected by a test");
}

#[test]
fn a_view_is_read_only_and_costs_nothing_until_something_changes() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(dir.path().join("data"), "test").unwrap();
    let new = NewVolume { size: Bytes::gib(1024), attributes: [].into(), checksums: None };
    let volume = data.volume("v", new).unwrap();
    volume.write_at(0, &[1; 4096]).unwrap();
    let folder = data.frozen().join("1").join("v");
    let frozen = volume.freezable().freeze(Scratch::folder(folder.clone()));
    for refused in [
        frozen.write_at(0, &[1]),
        frozen.write_zeroes(0, 1, true),
        frozen.trim(0, 1),
        frozen.resize(Bytes::ZERO),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ReadOnly);
    }
    // Holes that stay holes, and holes that are written to.
    volume.trim(1 << 30, 1 << 39).unwrap();
    volume.write_at(1 << 35, &[1; 4096]).unwrap();
    assert!(!folder.exists() && frozen.kept() == Bytes::ZERO);
    let extents = frozen.extents(0, 1 << 40, 8).unwrap();
    assert!(extents.len() <= 2 || extents[1..].iter().all(|e| e.len < 1 << 39), "{extents:?}");
    volume.write_at(100, &[2; 10]).unwrap();
    assert!(folder.exists() && frozen.kept() == Bytes::new(BLOCK));
    volume.freezable().thaw(&frozen);
    assert!(!folder.exists());
}

#[test]
fn scratch_of_a_killed_process_is_removed_when_the_folder_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let frozen = DataDir::open(dir.path(), "test").unwrap().frozen();
    assert!(frozen.starts_with(dir.path()));
    std::fs::create_dir_all(frozen.join("7/v")).unwrap();
    std::fs::write(frozen.join("7/v/00000"), "old").unwrap();
    DataDir::open(dir.path(), "test").unwrap();
    assert!(!frozen.exists());
}
