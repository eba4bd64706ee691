//! The state after a crash between any two steps, and after a failure that passes.

use super::model::{BASE, Image, MAX, Model, Op, START, change, ops};
use crate::paged::home::{Home, LayerList};
use crate::paged::layer::Parts;
use crate::paged::log::{Medium, Part};
use crate::paged::{PAGE, PagedStore, SnapshotId};
use crate::pieces::index;
use crate::store::{Extent, Store};
use crate::sync::locked;
use crate::{ErrorKind, Fault, FaultStore, Result, StoreError};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use weir_units::Bytes;

mod late;
mod together;

/// A machine whose disk has all that a volume is kept in.
#[derive(Debug, Clone)]
struct Machine(Arc<Mutex<Disk>>);

#[derive(Debug)]
struct Disk {
    list: Option<LayerList>,
    layers: BTreeMap<u64, DiskLayer>,
    /// Steps that still succeed.
    steps: Option<u64>,
    failure: Failure,
    dead: bool,
    coin: u64,
}

#[derive(Debug)]
struct DiskLayer {
    bytes: Arc<FaultStore>,
    map: DiskFile,
    log: DiskFile,
}

/// The files as a process finds them, and as they are after a power loss.
#[derive(Debug, Clone, Default)]
struct DiskFile {
    now: Vec<u8>,
    durable: Vec<u8>,
}

/// The event after the last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// The process ends, and maybe the power with it.
    End,
    /// One step fails, and has been done, in part, or not.
    Passing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    PowerLoss,
    Kill,
}

impl Disk {
    fn toss(&mut self) -> bool {
        self.coin = self.coin.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.coin >> 63 == 1
    }

    /// Takes a step; the failure, if it is due.
    fn step(&mut self) -> Result<()> {
        let well = match &mut self.steps {
            _ if self.dead => false,
            None => true,
            Some(0) => {
                self.steps = None;
                self.dead = self.failure == Failure::End;
                false
            }
            Some(steps) => {
                *steps -= 1;
                true
            }
        };
        if self.dead {
            self.layers.values().for_each(|layer| layer.bytes.fail_after(0, Fault::Io));
        }
        let source = io::Error::other("broken medium");
        if well { Ok(()) } else { Err(StoreError::Io { context: "injected".to_owned(), source }) }
    }

    fn file(&mut self, number: u64, part: Part) -> &mut DiskFile {
        let layer = self.layers.get_mut(&number).unwrap();
        match part {
            Part::Map => &mut layer.map,
            Part::Log => &mut layer.log,
        }
    }

    /// Gives a file a content: a step that can fail half done.
    fn put(&mut self, number: u64, part: Part, content: Vec<u8>) -> Result<()> {
        if self.dead {
            return self.step();
        }
        let done = self.step();
        let written = done.is_ok() || self.toss();
        let synced = done.is_ok() || self.toss();
        let file = self.file(number, part);
        if written {
            file.now = content;
        }
        if written && synced {
            file.durable = file.now.clone();
        }
        done
    }
}

impl Machine {
    fn new() -> Self {
        let (list, layers) = (None, BTreeMap::new());
        let failure = Failure::End;
        let disk = Disk { list, layers, steps: None, failure, dead: false, coin: 1 };
        Self(Arc::new(Mutex::new(disk)))
    }

    fn fail_after(&self, steps: u64, failure: Failure) {
        let mut disk = locked(&self.0);
        (disk.steps, disk.failure) = (Some(steps), failure);
    }

    /// The machine after its process, or its power, went.
    fn after(&self, what: After, seed: u64) -> Self {
        let disk = locked(&self.0);
        let layers = disk.layers.iter().map(|(number, layer)| {
            layer.bytes.heal();
            let bytes = Arc::new(match what {
                After::PowerLoss => layer.bytes.crash(seed ^ number).unwrap(),
                After::Kill => layer.bytes.kill().unwrap(),
            });
            let file = |file: &DiskFile| match what {
                After::PowerLoss => {
                    DiskFile { now: file.durable.clone(), durable: file.durable.clone() }
                }
                After::Kill => file.clone(),
            };
            (*number, DiskLayer { bytes, map: file(&layer.map), log: file(&layer.log) })
        });
        let machine = Self::new();
        let mut next = locked(&machine.0);
        next.layers = layers.collect();
        next.list = disk.list.clone();
        next.coin = seed | 1;
        drop(next);
        machine
    }

    fn create(&self) -> PagedStore {
        PagedStore::create(Arc::new(self.clone()), Bytes::new(START)).unwrap()
    }

    fn open(&self) -> PagedStore {
        let list = {
            let mut disk = locked(&self.0);
            let list = disk.list.clone().unwrap();
            let listed: BTreeSet<_> = list.layers.iter().map(|layer| layer.number).collect();
            disk.layers.retain(|number, _| listed.contains(number));
            list
        };
        let parts = list.layers.iter().map(|layer| self.parts(layer.number, layer.size).unwrap());
        PagedStore::open(Arc::new(self.clone()), &list, parts.collect()).unwrap()
    }

    fn parts(&self, number: u64, size: Bytes) -> Result<Parts> {
        let bytes = Arc::clone(&locked(&self.0).layers[&number].bytes);
        bytes.resize(size)?;
        let bytes = Arc::new(DiskBytes { machine: self.clone(), bytes });
        let medium = DiskFiles { machine: self.clone(), number };
        Ok(Parts { bytes, medium: Some(Box::new(medium)) })
    }
}

impl Home for Machine {
    fn check_size(&self, _: Bytes) -> Result<()> {
        Ok(())
    }

    fn make(&self, number: u64, size: Bytes) -> Result<Parts> {
        let mut disk = locked(&self.0);
        disk.step()?;
        let bytes = Arc::new(FaultStore::new(size));
        let (map, log) = (DiskFile::default(), DiskFile::default());
        disk.layers.insert(number, DiskLayer { bytes, map, log });
        drop(disk);
        self.parts(number, size)
    }

    fn save(&self, list: &LayerList) -> Result<()> {
        let mut disk = locked(&self.0);
        let dead = disk.dead;
        let done = disk.step();
        // It is put back where the process goes on.
        let late = disk.failure == Failure::End && !dead && disk.toss();
        if done.is_ok() || late {
            disk.list = Some(list.clone());
        }
        done
    }

    fn synced(&self, _: u64) -> Result<()> {
        locked(&self.0).step()
    }

    fn remove(&self, number: u64) -> Result<()> {
        let mut disk = locked(&self.0);
        disk.step()?;
        let listed = disk.list.iter().flat_map(|list| &list.layers);
        assert!(listed.into_iter().all(|layer| layer.number != number));
        disk.layers.remove(&number);
        Ok(())
    }
}

/// Bytes of a layer of a [`Machine`]; to sync them is a step.
#[derive(Debug)]
struct DiskBytes {
    machine: Machine,
    bytes: Arc<FaultStore>,
}

impl Store for DiskBytes {
    fn size(&self) -> Bytes {
        self.bytes.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.bytes.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.bytes.write_at(offset, data)
    }

    fn write_zeroes(&self, offset: u64, len: u64, may_trim: bool) -> Result<()> {
        self.bytes.write_zeroes(offset, len, may_trim)
    }

    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        self.bytes.trim(offset, len)
    }

    fn sync(&self) -> Result<()> {
        locked(&self.machine.0).step()?;
        self.bytes.sync()
    }

    fn resize(&self, new: Bytes) -> Result<()> {
        locked(&self.machine.0).step()?;
        self.bytes.resize(new)
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>> {
        self.bytes.extents(offset, len, max)
    }

    fn allocated(&self) -> Result<Bytes> {
        self.bytes.allocated()
    }
}

/// Map and log of a layer of a [`Machine`].
#[derive(Debug)]
struct DiskFiles {
    machine: Machine,
    number: u64,
}

impl Medium for DiskFiles {
    fn path(&self, part: Part) -> PathBuf {
        PathBuf::from(format!("{}/{part:?}", self.number))
    }

    fn read(&self, part: Part) -> Result<Vec<u8>> {
        Ok(locked(&self.machine.0).file(self.number, part).now.clone())
    }

    fn replace(&mut self, part: Part, content: &[u8]) -> Result<()> {
        locked(&self.machine.0).put(self.number, part, content.to_vec())
    }

    fn append(&mut self, at: u64, frame: &[u8]) -> Result<()> {
        let mut disk = locked(&self.machine.0);
        let mut log = disk.file(self.number, Part::Log).now.clone();
        let at = index(at);
        log.resize((at + frame.len()).max(log.len()), 0);
        log[at..at + frame.len()].copy_from_slice(frame);
        if disk.steps == Some(0) && disk.toss() {
            // Torn: some of it is not there.
            for part in log[at..].chunks_mut(16) {
                if disk.toss() {
                    part.fill(0);
                }
            }
        }
        disk.put(self.number, Part::Log, log)
    }

    fn settle(&mut self) -> Result<()> {
        let mut disk = locked(&self.machine.0);
        disk.step()?;
        for part in [Part::Map, Part::Log] {
            let file = disk.file(self.number, part);
            file.durable = file.now.clone();
        }
        Ok(())
    }

    fn rest(&mut self) {}
}

/// The contents that may be found after a crash: the snapshots exactly; of each byte, and of each
/// page's being there, what it was at some time since all was durable.
struct History {
    model: Model,
    /// The states since then, the latest last; all of one size.
    live: Vec<Image>,
    /// The snapshot that was being taken or deleted: it may be there or not.
    doubtful: Option<(u64, Image)>,
    /// The size that a resize was to bring: it may have.
    coming: Option<u64>,
}

impl History {
    fn new() -> Self {
        let model = Model::new(START);
        let live = vec![model.live.clone()];
        Self { model, live, doubtful: None, coming: None }
    }

    fn durable(&mut self) {
        self.live = vec![self.model.live.clone()];
    }

    /// Does `op`; tells how it went, unless it had to be refused.
    fn apply(&mut self, store: &PagedStore, op: &Op) -> Result<()> {
        match *op {
            Op::Snapshot => self.snapshot(store),
            Op::Delete { which } => self.model.nth(which).map_or(Ok(()), |id| {
                self.doubtful = self.model.snapshots.remove(&id).map(|image| (id, image));
                store.delete_snapshot(SnapshotId(id)).map(|_| self.doubtful = None)
            }),
            Op::Tidy => store.tidy().map(|_| ()),
            Op::TidyAll => tidy_all(store),
            Op::Resize { new } => self.resize(store, new),
            Op::Sync => store.sync().map(|()| self.durable()),
            _ => self.change(store, op),
        }
    }

    fn snapshot(&mut self, store: &PagedStore) -> Result<()> {
        let next = locked(&store.admin).next_snapshot;
        self.doubtful = Some((next, self.model.live.clone()));
        assert_eq!(store.snapshot()?, SnapshotId(next));
        self.model.snapshots.extend(self.doubtful.take());
        self.durable();
        Ok(())
    }

    fn resize(&mut self, store: &PagedStore, new: u64) -> Result<()> {
        self.coming = Some(new);
        let done = store.resize(Bytes::new(new));
        if done.is_ok() || store.size().get() == new {
            let grown = new > self.model.live.size();
            self.model.change(&Op::Resize { new });
            self.live.iter_mut().for_each(|image| image.resize(&self.model.live));
            self.live.push(self.model.live.clone());
            self.coming = None;
            if grown {
                self.durable();
            }
        } else {
            self.model.cut_page(index(new - BASE));
        }
        done
    }

    fn change(&mut self, store: &PagedStore, op: &Op) -> Result<()> {
        let before = self.model.clone();
        if self.model.change(op) {
            // A part of what failed may have been done.
            self.live.push(self.model.live.clone());
            return change(store, &before, op);
        }
        let error = change(store, &before, op).unwrap_err();
        assert!([ErrorKind::OutOfRange, ErrorKind::Io].contains(&error.kind()));
        Ok(())
    }

    /// A failure that passed left all as it was.
    fn check_after_failure(&mut self, store: &PagedStore) {
        if let Some((id, image)) = self.doubtful.take()
            && store.snapshots().contains(&SnapshotId(id))
        {
            self.model.snapshots.insert(id, image);
        }
        self.coming = None;
        self.model.check(store);
    }

    /// Finds in a store that was opened again one of the states that it may have.
    fn check_after(&mut self, what: After, store: &PagedStore) {
        if let Some((id, image)) = self.doubtful.take()
            && store.snapshots().contains(&SnapshotId(id))
        {
            self.model.snapshots.insert(id, image);
        }
        self.model.check_snapshots(store);
        let found = Image::read(store);
        let size = self.model.live.size();
        assert!([Some(size), self.coming.take()].contains(&Some(found.size())));
        self.live.iter_mut().for_each(|image| image.resize(&found));
        for (at, byte) in found.bytes.iter().enumerate() {
            let was = self.live.iter().any(|image| image.bytes[at] == *byte);
            assert!(was, "byte {at}, of page {}, is {byte}, which it never was", at / 512);
        }
        for (page, version) in found.versions.iter().enumerate() {
            let there = |version: u64| version != 0;
            let was = |image: &Image| there(image.versions[page]) == there(*version);
            assert!(self.live.iter().any(was), "page {page} is {version}, which it never was");
        }
        self.model.live = found;
        match what {
            After::PowerLoss => self.durable(),
            // Changes that were not durable are not durable yet.
            After::Kill => self.live.push(self.model.live.clone()),
        }
    }
}

fn tidy_all(store: &PagedStore) -> Result<()> {
    while store.tidy()? {}
    Ok(())
}

impl Image {
    /// Reads the contents of a store. Each page that is there has a version of its own.
    fn read(store: &PagedStore) -> Self {
        let size = store.size().get();
        let mut bytes = vec![0xee; index(size - BASE)];
        store.read_at(BASE, &mut bytes).unwrap();
        let mut versions = vec![0; bytes.len().div_ceil(512)];
        for range in store.pages(None, 0, size, usize::MAX).unwrap() {
            let pages =
                (range.offset - BASE) / PAGE..(range.offset + range.len - BASE).div_ceil(PAGE);
            versions[index(pages.start)..index(pages.end)].fill(u64::MAX);
        }
        Self { bytes, versions }
    }

    fn resize(&mut self, to: &Self) {
        self.bytes.resize(to.bytes.len(), 0);
        self.versions.resize(to.versions.len(), 0);
    }
}

/// One life of a process, and how it ends.
#[derive(Debug, Clone)]
struct Life {
    ops: Vec<Op>,
    /// After how many steps it ends; else with its operations.
    steps: Option<u64>,
    after: After,
    seed: u64,
}

/// Runs lives, each on what the one before left; whether the steps of all were over.
fn check(lives: &[Life]) -> bool {
    let mut machine = Machine::new();
    let mut store = machine.create();
    let mut history = History::new();
    let mut all_over = true;
    for Life { ops, steps, after, seed } in lives {
        locked(&machine.0).coin = seed | 1;
        steps.inspect(|steps| machine.fail_after(*steps, Failure::End));
        let failed = ops.iter().any(|op| history.apply(&store, op).is_err());
        assert_eq!(failed, locked(&machine.0).dead);
        all_over &= failed || steps.is_none();
        machine = machine.after(*after, *seed);
        store = machine.open();
        history.check_after(*after, &store);
    }
    // It goes on, and nothing of what was cut off comes back.
    history.apply(&store, &Op::Resize { new: MAX }).unwrap();
    assert_eq!(Image::read(&store).bytes, history.model.live.bytes);
    history.apply(&store, &Op::Write { offset: BASE + 100, len: 1000 }).unwrap();
    history.apply(&store, &Op::TidyAll).unwrap();
    history.apply(&store, &Op::Sync).unwrap();
    history.check_after(After::PowerLoss, &machine.after(After::PowerLoss, 1).open());
    all_over
}

const AFTER: [After; 2] = [After::PowerLoss, After::Kill];

/// All that has steps, and maps that are written anew now and then.
fn script() -> Vec<Op> {
    let write = |page, pages| Op::Write { offset: BASE + page * PAGE, len: pages * PAGE };
    let trim = |page, pages| Op::Trim { offset: BASE + page * PAGE, len: pages * PAGE };
    let mut ops = vec![
        write(0, 20),
        Op::Snapshot,
        write(2, 2),
        Op::Write { offset: BASE + 10 * PAGE + 7, len: 3000 },
    ];
    ops.extend([Op::Sync, trim(1, 2), Op::Snapshot, Op::Resize { new: BASE + 7 * PAGE + 100 }]);
    ops.extend([Op::Snapshot, Op::Resize { new: MAX }, write(12, 1), Op::Snapshot]);
    ops.extend([Op::Delete { which: 1 }, Op::TidyAll, Op::Delete { which: 0 }, Op::TidyAll]);
    for page in 0..8 {
        ops.extend([write(2 * page, 1), Op::Sync, trim(2 * page, 1), write(2 * page + 1, 1)]);
    }
    ops.extend([Op::Sync, Op::Snapshot, Op::Resize { new: BASE + 3 * PAGE + 9 }, write(0, 1)]);
    ops.extend([Op::Delete { which: 1 }, Op::TidyAll, Op::Sync]);
    ops
}

/// Ends the process, and maybe the power, after each step of `ops` in turn, and then does
/// `then`.
#[track_caller]
fn check_all_steps(ops: &[Op], then: &[Op], at_least: u64) {
    let is_over = |steps| {
        (0..12).all(|seed| {
            AFTER.into_iter().all(|after| {
                let then = Life { ops: then.to_vec(), steps: None, after: After::PowerLoss, seed };
                check(&[Life { ops: ops.to_vec(), steps: Some(steps), after, seed }, then])
            })
        })
    };
    let steps = (0..).take_while(|steps| is_over(*steps)).count() as u64;
    assert!(steps >= at_least, "{steps}");
}

#[test]
fn a_crash_between_any_two_steps_of_a_script_leaves_the_old_or_the_new() {
    let write = Op::Write { offset: BASE + 5 * PAGE, len: 2 * PAGE };
    let then = [Op::Resize { new: MAX }, Op::Sync, write, Op::Sync, Op::Snapshot];
    check_all_steps(&script(), &then, 100);
}

/// Then the lower layer is, in part, what the upper one is, and pushed down itself.
#[test]
fn a_merge_that_a_crash_cut_off_does_not_spoil_another_one() {
    let write = |page, pages| Op::Write { offset: BASE + page * PAGE, len: pages * PAGE };
    let end = Op::Resize { new: BASE + 7 * PAGE + 7 };
    let mut ops = vec![end, write(0, 7), Op::Snapshot, write(3, 1), Op::Snapshot];
    ops.extend([Op::Resize { new: MAX }, write(4, 16), Op::Sync, Op::Snapshot]);
    ops.extend([Op::Delete { which: 1 }, Op::TidyAll]);
    let then = [Op::Delete { which: 0 }, Op::TidyAll, Op::Sync];
    check_all_steps(&ops, &then, 50);
}

/// Its size is the new one, and its bytes have not been cut yet.
#[test]
fn bytes_that_a_shrink_failed_to_cut_do_not_return() {
    let all = Op::Write { offset: BASE, len: 4 * PAGE };
    let cut = Op::Resize { new: BASE + 2 * PAGE + 100 };
    let grow = Op::Resize { new: BASE + 3 * PAGE };
    let merge =
        vec![Op::Snapshot, grow.clone(), Op::Snapshot, Op::Delete { which: 0 }, Op::TidyAll];
    for then in [vec![grow], merge] {
        let machine = Machine::new();
        let store = machine.create();
        let mut history = History::new();
        history.apply(&store, &all).unwrap();
        // After the list, which is the first step.
        machine.fail_after(1, Failure::Passing);
        history.apply(&store, &cut).unwrap_err();
        assert!(locked(&machine.0).steps.is_none());
        assert_eq!(store.size().get(), history.model.live.size());
        for op in then {
            history.apply(&store, &op).unwrap();
            history.model.check(&store);
        }
    }
}

/// Notices bytes behind the end that return, where the rest of their page was brought up in memory only.
#[test]
fn a_page_that_was_cut_is_cut_again_after_a_crash() {
    for (what, seed) in AFTER.into_iter().flat_map(|what| (0..4).map(move |seed| (what, seed))) {
        let machine = Machine::new();
        let store = machine.create();
        let mut history = History::new();
        let all = Op::Write { offset: BASE, len: 4 * PAGE };
        for op in [all, Op::Snapshot, Op::Resize { new: BASE + 2 * PAGE + 100 }] {
            history.apply(&store, &op).unwrap();
        }
        let store = machine.after(what, seed).open();
        history.check_after(what, &store);
        history.apply(&store, &Op::Resize { new: MAX }).unwrap();
        assert_eq!(Image::read(&store).bytes, history.model.live.bytes);
    }
}

/// Notices a page in the midst of which the volume ends, and that is brought up for nothing.
#[test]
fn an_opening_and_a_resize_to_the_same_size_change_no_page() {
    let (machine, size) = (Machine::new(), BASE + 100);
    let store = machine.create();
    store.resize(Bytes::new(size)).unwrap();
    store.write_at(BASE, &[1; 100]).unwrap();
    let id = store.snapshot().unwrap();
    store.resize(Bytes::new(size)).unwrap();
    assert_eq!(store.changes(id, None, 0, size, 9).unwrap(), []);
    drop(store);
    let store = machine.open();
    assert_eq!(store.changes(id, None, 0, size, 9).unwrap(), []);
}

/// The contents that a process found are durable with its first sync, even if it changed nothing.
#[test]
fn bytes_of_a_killed_process_are_made_durable() {
    let write = Op::Write { offset: BASE, len: 3 * PAGE };
    let (mut found, mut found_none) = (0, 0);
    for (steps, seed) in (0..8).flat_map(|steps| (0..32).map(move |seed| (steps, seed))) {
        let ops = vec![write.clone(), Op::Sync];
        let killed = Life { ops, steps: Some(steps), after: After::Kill, seed };
        let synced = Life { ops: vec![Op::Sync], steps: None, after: After::PowerLoss, seed };
        check(&[killed.clone(), synced]);
        let machine = Machine::new();
        let store = machine.create();
        machine.fail_after(steps, Failure::End);
        let mut history = History::new();
        killed.ops.iter().any(|op| history.apply(&store, op).is_err());
        let found_pages = machine.after(After::Kill, seed).open().pages(None, 0, START, 9).unwrap();
        *(if found_pages.is_empty() { &mut found_none } else { &mut found }) += 1;
    }
    assert!(found > 0 && found_none > 0);
}

fn life() -> impl Strategy<Value = Life> {
    let after = prop_oneof![2 => Just(After::PowerLoss), 1 => Just(After::Kill)];
    let steps = prop::option::weighted(0.7, 0..100_u64);
    (ops(25), steps, after, any::<u64>()).prop_map(|(ops, steps, after, seed)| Life {
        ops,
        steps,
        after,
        seed,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(384))]

    #[test]
    fn a_crash_between_any_two_steps_leaves_the_old_or_the_new(
        lives in prop::collection::vec(life(), 1..5),
    ) {
        check(&lives);
    }

    #[test]
    fn a_failure_that_passes_leaves_all_as_it_was(
        ops in ops(50), steps in prop::collection::vec(0..20_u64, 1..6), seed: u64,
    ) {
        let machine = Machine::new();
        locked(&machine.0).coin = seed | 1;
        let store = machine.create();
        let mut history = History::new();
        let mut steps = steps.into_iter();
        for op in &ops {
            if locked(&machine.0).steps.is_none() {
                steps.next().inspect(|steps| machine.fail_after(*steps, Failure::Passing));
            }
            match history.apply(&store, op) {
                Ok(()) => history.model.check(&store),
                Err(_) => history.check_after_failure(&store),
            }
        }
        let crashed = machine.after(After::PowerLoss, seed);
        history.check_after(After::PowerLoss, &crashed.open());
    }
}
