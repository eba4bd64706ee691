//! Backups whose targets fail, run full and lose power.

use super::*;
use crate::Library;
use crate::assemble::Assembly;
use crate::format::Kind;
use crate::place::{Folder, Place};
use crate::target::file::StripeFile;
use crate::target::raw::{RawPlace, Room, reserve};
use crate::testing::nbd::{Change, Served, store};
use crate::testing::power::{Noting, Operation, Survivors, lose};
use crate::testing::{identity, source};
use crate::verify::{Watch, verify_assembly};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex};
use weir_store::{FaultStore, Store};
use weir_units::Bytes;

const TRANSFER: u64 = 64 << 10;
/// The size of the source: eight transfers.
const SIZE: u64 = 8 * TRANSFER;

/// Bytes that do not repeat.
fn pattern(seed: u64) -> Vec<u8> {
    let byte = |at: u64| (at.wrapping_mul(0x9e37_79b9 + 2 * seed) >> 13).to_le_bytes()[0];
    (0..SIZE).map(byte).collect()
}

fn served(seed: u64) -> Served {
    Served::new(store(SIZE, &pattern(seed)))
}

fn job(identity: Identity, data: &Served, stripes: Vec<Arc<dyn StripeSink>>) -> Job {
    let manifest = Manifest::new(&identity, "test".to_owned());
    let about = ManifestSource { name: "data".to_owned(), size: SIZE, ..Default::default() };
    let count = u32::try_from(stripes.len()).unwrap();
    Job {
        manifest: Manifest { sources: vec![about.clone()], ..manifest },
        identity,
        key: None,
        compression: None,
        sources: vec![Source::new(data.uri(), about, None)],
        bytes: SIZE,
        targets: vec!["target".to_owned(); stripes.len()],
        stripes,
        buffers: Buffers::new((1, count), false, Bytes::new(TRANSFER), None),
        block: 4096,
        encoders: 1,
        limit: None,
    }
}

/// A stripe that notes what is asked of it.
#[derive(Debug, Default)]
struct Noted {
    /// Fails at this write.
    fails_at: Option<u32>,
    /// Cannot be removed.
    is_stuck: bool,
    /// Waits in its third write until it is cancelled.
    is_slow: bool,
    writes: AtomicU32,
    syncs: AtomicU32,
    is_cancelled: Mutex<bool>,
    changed: Condvar,
    is_discarded: AtomicBool,
    is_published: AtomicBool,
}

impl StripeSink for Noted {
    fn name(&self) -> String {
        "noted".to_owned()
    }

    fn write_at(&self, _: u64, _: &[u8]) -> Result<(), BackupError> {
        let write = self.writes.fetch_add(1, Ordering::Relaxed);
        if self.fails_at.is_some_and(|at| write >= at) {
            return Err(BackupError::Failed("it broke".to_owned()));
        }
        let mut is_cancelled = self.is_cancelled.lock().unwrap();
        while self.is_slow && write >= 2 && !*is_cancelled {
            is_cancelled = self.changed.wait(is_cancelled).unwrap();
        }
        if *is_cancelled { Err(BackupError::Interrupted) } else { Ok(()) }
    }

    fn sync(&self, _: u64, _: bool) -> Result<(), BackupError> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn publish(&self) -> Result<(), BackupError> {
        self.is_published.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn cancel(&self) {
        *self.is_cancelled.lock().unwrap() = true;
        self.changed.notify_all();
    }

    fn discard(&self) -> Result<(), BackupError> {
        self.is_discarded.store(true, Ordering::Relaxed);
        match self.is_stuck {
            true => Err(BackupError::Failed("noted was not removed".to_owned())),
            false => Ok(()),
        }
    }
}

/// Without the cancellation the other stripe would wait for ever.
#[test]
fn the_failure_of_one_stripe_ends_the_others() {
    let data = served(1);
    let broken = Arc::new(Noted { fails_at: Some(2), ..Noted::default() });
    let slow = Arc::new(Noted { is_slow: true, ..Noted::default() });
    let stripes: Vec<Arc<dyn StripeSink>> = vec![broken.clone(), slow.clone()];
    let error = run(job(identity(1, 2, None), &data, stripes), &mut |_| true).unwrap_err();
    assert_eq!(error.to_string(), "it broke");
    for own in [broken, slow] {
        // No stripe came to its end.
        assert_eq!(own.syncs.load(Ordering::Relaxed), 0);
        assert!(*own.is_cancelled.lock().unwrap() && own.is_discarded.load(Ordering::Relaxed));
        assert!(!own.is_published.load(Ordering::Relaxed));
    }
}

/// A stripe that fails at its end: the header and four frames are its first five writes.
#[test]
fn no_stripe_is_published_if_one_cannot_be_closed() {
    let data = served(1);
    let broken = Arc::new(Noted { fails_at: Some(5), ..Noted::default() });
    let other = Arc::new(Noted { is_stuck: true, ..Noted::default() });
    let stripes: Vec<Arc<dyn StripeSink>> = vec![broken, other.clone()];
    let error = run(job(identity(1, 2, None), &data, stripes), &mut |_| true).unwrap_err();
    // Nothing is said to be removed that was not.
    assert_eq!(error.to_string(), "it broke; noted was not removed");
    assert!(!other.is_published.load(Ordering::Relaxed));
    assert!(other.is_discarded.load(Ordering::Relaxed));
}

fn files(disk: &Arc<Noting>, folder: &Path, identity: &Identity) -> Vec<Arc<dyn StripeSink>> {
    let make = |stripe| -> Arc<dyn StripeSink> {
        let disk = Arc::clone(disk) as Arc<dyn crate::target::disk::Disk>;
        Arc::new(StripeFile::create_on(disk, folder, &identity.file_name(stripe)).unwrap())
    };
    (0..identity.stripes).map(make).collect()
}

/// Returns which backups are complete; each of them is sound.
fn complete(places: Vec<Box<dyn Place>>) -> Vec<Identity> {
    let mut library = Library::open(places).unwrap();
    let entries = library.entries().iter().filter(|entry| entry.is_complete());
    let all: Vec<Identity> = entries.map(|entry| entry.identity.clone()).collect();
    for own in &all {
        let inputs = library.inputs(own.id).unwrap();
        let assembly = Assembly::new(inputs, Some(own.id), None).unwrap();
        let verified = verify_assembly(assembly, &Watch::default()).unwrap();
        assert!(verified.is_sound(), "{own:?}: {:?}", verified.counts.damage);
    }
    all
}

fn folder_of(survivors: &Survivors) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, bytes) in survivors {
        std::fs::write(folder.path().join(path.file_name().unwrap()), bytes).unwrap();
    }
    folder
}

fn ids(folder: &Path) -> Vec<u8> {
    let place: Box<dyn Place> = Box::new(Folder::new(folder).unwrap());
    complete(vec![place]).iter().map(|own| own.id.as_bytes()[0]).collect()
}

/// Calls `check` with what survives a power loss after each operation, in several ways.
fn at_each_loss(before: &Survivors, operations: &[Operation], mut check: impl FnMut(usize, &Path)) {
    for done in 0..=operations.len() {
        for seed in 0..4 {
            let folder = folder_of(&lose(before, &operations[..done], seed));
            check(done, folder.path());
        }
    }
}

#[test]
fn files_survive_a_power_loss_whole_or_clearly_incomplete() {
    let folder = tempfile::tempdir().unwrap();
    crate::testing::store(folder.path(), &identity(1, 2, None), &[source("data", 9000, 1)], None);
    let (disk, before) = Noting::in_folder(folder.path());
    let (disk, data, own) = (Arc::new(disk), served(2), identity(2, 3, None));
    run(job(own.clone(), &data, files(&disk, folder.path(), &own)), &mut |_| true).unwrap();
    let operations = disk.operations();
    // 3 files, headers, ends, syncs, names and folders, and 8 frames.
    assert!(operations.len() >= 3 * 8 + 8, "{}", operations.len());
    let mut completed = 0;
    at_each_loss(&before, &operations, |done, folder| {
        let ids = ids(folder);
        assert!(ids.contains(&1), "an earlier backup was harmed after operation {done}");
        completed += usize::from(ids.contains(&2));
        if done == operations.len() {
            assert_eq!(ids, [1, 2], "it was reported as complete");
        }
    });
    // Only the last operations can leave it complete.
    assert!((4..=40).contains(&completed), "{completed}");
}

#[test]
fn a_prune_survives_a_power_loss() {
    let folder = tempfile::tempdir().unwrap();
    for (id, base) in [(1, None), (2, Some(1)), (3, None)] {
        let own = identity(id, 2, base);
        crate::testing::store(folder.path(), &own, &[source("data", 9000, id)], None);
    }
    let (disk, before) = Noting::in_folder(folder.path());
    let disk = Arc::new(disk);
    let place: Box<dyn Place> = Box::new(Folder::new(folder.path()).unwrap().on(disk.clone()));
    let mut library = Library::open(vec![place]).unwrap();
    // As `prune --keep-last 1` orders it.
    for id in [2, 1] {
        library.remove(identity(id, 2, None).id).unwrap();
    }
    let operations = disk.operations();
    at_each_loss(&before, &operations, |done, folder| {
        let ids = ids(folder);
        assert!(ids.contains(&3), "a kept backup was harmed after operation {done}");
        assert!(!ids.contains(&2) || ids.contains(&1), "a differential lost its full backup");
        if done == operations.len() {
            assert_eq!(ids, [3]);
        }
    });
}

/// Opens a volume as a place, with a power loss after each of its changes.
fn at_each_change(
    size: u64,
    before: &[Change],
    changes: &[Change],
    mut check: impl FnMut(usize, &[Identity]),
) {
    for done in 0..=changes.len() {
        for seed in 0..3 {
            let volume = FaultStore::new(Bytes::new(size));
            before.iter().chain(&changes[..done]).for_each(|change| change.apply(&volume));
            let survived = Served::new(volume.crash(seed).unwrap());
            let place: Box<dyn Place> =
                Box::new(RawPlace::new(Export::new("volume", survived.uri())));
            check(done, &complete(vec![place]));
        }
    }
}

#[test]
fn a_raw_volume_survives_a_power_loss_whole_or_clearly_incomplete() {
    let size = 4 << 20;
    let volume = Served::new(FaultStore::new(Bytes::new(size)));
    let back_up = |id: u8, seed| {
        let (data, own) = (served(seed), identity(id, 2, None));
        let room = Room { stripe: 6 * TRANSFER, may_be_less: false };
        let stripes = reserve(&Export::new("volume", volume.uri()), &own, &[0, 1], room).unwrap();
        let stripes = stripes.into_iter().map(|own| Arc::new(own) as Arc<dyn StripeSink>);
        run(job(own, &data, stripes.collect()), &mut |_| true).unwrap();
        volume.store().sync().unwrap();
    };
    back_up(1, 1);
    let mut before = volume.changes();
    before.push(Change::Sync);
    back_up(2, 2);
    let changes = volume.changes().split_off(before.len() - 1);
    assert!(changes.len() > 16, "{}", changes.len());
    let ids = |all: &[Identity]| all.iter().map(|own| own.id.as_bytes()[0]).collect::<Vec<_>>();
    at_each_change(size, &before, &changes, |done, all| {
        let ids = ids(all);
        assert!(ids.contains(&1), "an earlier backup was harmed after change {done}");
        assert!(done < changes.len() || ids == [1, 2], "it was reported as complete");
    });
    // And a prune of the first one.
    let before: Vec<Change> = before.into_iter().chain(changes).chain([Change::Sync]).collect();
    let place: Box<dyn Place> = Box::new(RawPlace::new(Export::new("volume", volume.uri())));
    let count = volume.changes().len();
    Library::open(vec![place]).unwrap().remove(identity(1, 2, None).id).unwrap();
    let changes = volume.changes().split_off(count);
    at_each_change(size, &before, &changes, |done, all| {
        let ids = ids(all);
        assert!(ids.contains(&2), "a kept backup was harmed after change {done}");
        assert!(done < changes.len() || ids == [2]);
    });
}

#[test]
fn a_full_disk_ends_a_backup_with_one_message_and_harms_none() {
    let folder = tempfile::tempdir().unwrap();
    crate::testing::store(folder.path(), &identity(1, 2, None), &[source("data", 9000, 1)], None);
    for room in [0, 512, 4096, 100_000, 300_000, SIZE] {
        let (disk, data, own) =
            (Arc::new(Noting::with_room(room)), served(2), identity(2, 2, None));
        let stripes = files(&disk, folder.path(), &own);
        let error = run(job(own, &data, stripes), &mut |_| true).unwrap_err();
        let text = error.to_string();
        assert!(error.is_input(), "{text}");
        assert!(text.starts_with("no room for ") && text.contains("Free some room"), "{text}");
        assert_eq!(ids(folder.path()), [1]);
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 2, "what was written is removed");
    }
}

/// Changes that a server tells in a circle.
struct Circle;

impl Changes for Circle {
    fn changed(&mut self, from: u64) -> Result<ChangedRanges, BackupError> {
        Ok((vec![(from, 4096)], Some(if from == 0 { 8192 } else { 4096 })))
    }
}

#[test]
fn changes_that_go_back_are_an_error() {
    let data = served(1);
    let own = Identity { kind: Kind::Differential, ..identity(2, 1, Some(1)) };
    let stripe = Arc::new(Noted::default());
    let mut job = job(own, &data, vec![stripe.clone()]);
    job.sources[0].changes = Some(Box::new(Circle));
    let error = run(job, &mut |_| true).unwrap_err().to_string();
    assert!(error.contains("then sent back to 4096"), "{error}");
    assert!(!stripe.is_published.load(Ordering::Relaxed));
}

#[test]
fn a_stripe_that_a_killed_backup_left_is_free_for_the_next_one() {
    let size = 8 << 20;
    let volume = Served::new(FaultStore::new(Bytes::new(size)));
    let export = || Export::new("volume", volume.uri());
    let finished = identity(1, 1, None);
    let exact = Room { stripe: 1 << 20, may_be_less: false };
    let stripes = reserve(&export(), &finished, &[0], exact).unwrap();
    let stripes = stripes.into_iter().map(|own| Arc::new(own) as Arc<dyn StripeSink>).collect();
    run(job(finished, &served(1), stripes), &mut |_| true).unwrap();
    // One that is compressed takes all that is free.
    let all = Room { stripe: 1 << 30, may_be_less: true };
    let running = reserve(&export(), &identity(2, 1, None), &[0], all).unwrap();
    let modified = || {
        let library = Library::open(vec![Box::new(RawPlace::new(export()))]).unwrap();
        let own = library.entries().iter().find(|own| !own.is_complete()).cloned();
        own.map(|own| own.modified_unix_ms)
    };
    let write =
        |stripe: &dyn StripeSink| stripe.write_at(0, &identity(2, 1, None).header(0)).unwrap();
    running.iter().for_each(|stripe| write(stripe));
    // While its writer lives, it has no date, and nobody else gets at it.
    assert_eq!(modified(), Some(None));
    let error = reserve(&export(), &identity(3, 1, None), &[0], exact).unwrap_err().to_string();
    assert!(error.contains("is writing to volume"), "{error}");
    // As after a kill: nothing is tidied up.
    drop(running);
    assert_eq!(modified(), Some(Some(1)), "a prune may go by its age");
    let next = reserve(&export(), &identity(3, 1, None), &[0], Room { stripe: 4 << 20, ..exact });
    assert_eq!(next.unwrap().len(), 1);
    let place: Box<dyn Place> = Box::new(RawPlace::new(export()));
    assert_eq!(complete(vec![place]).len(), 1, "the finished one is whole");
}

#[test]
fn a_damaged_slot_never_shows_an_older_state_and_is_named() {
    let size = 4 << 20;
    let volume = Served::new(FaultStore::new(Bytes::new(size)));
    let export = || Export::new("volume", volume.uri());
    let back_up = |id: u8| {
        let own = identity(id, 1, None);
        let room = Room { stripe: 10 * TRANSFER, may_be_less: false };
        let stripes = reserve(&export(), &own, &[0], room).unwrap();
        let stripes = stripes.into_iter().map(|own| Arc::new(own) as Arc<dyn StripeSink>).collect();
        run(job(own, &served(id.into()), stripes), &mut |_| true).unwrap();
    };
    back_up(1);
    back_up(2);
    for slot in [0, 4096] {
        let mut own = [0; 512];
        volume.store().read_at(slot, &mut own).unwrap();
        volume.store().write_at(slot + 100, &[0xee; 8]).unwrap();
        let place: Box<dyn Place> = Box::new(RawPlace::new(export()));
        let library = Library::open(vec![place]).unwrap();
        assert!(library.entries().iter().all(crate::library::Entry::is_complete));
        assert_eq!(library.entries().len(), 2, "slot {slot}");
        let named: Vec<_> = library.strangers().filter_map(|own| own.problem.clone()).collect();
        assert!(matches!(&named[..], [own] if own.contains("copies of the label")), "{named:?}");
        volume.store().write_at(slot, &own).unwrap();
    }
    // Both at once are no empty volume.
    volume.store().write_at(100, &[0xee; 8]).unwrap();
    volume.store().write_at(4196, &[0xee; 8]).unwrap();
    let place: Box<dyn Place> = Box::new(RawPlace::new(export()));
    let error = Library::open(vec![place]).unwrap_err().to_string();
    assert!(error.contains("is damaged in both of its places"), "{error}");
    let room = Room { stripe: TRANSFER, may_be_less: false };
    let error = reserve(&export(), &identity(3, 1, None), &[0], room).unwrap_err().to_string();
    assert!(error.contains("nothing is written there"), "{error}");
}

/// Stripes of one volume are removed at the same time, over connections of their own.
#[test]
fn stripes_that_are_removed_at_once_leave_no_entry() {
    let volume = Served::new(FaultStore::new(Bytes::new(16 << 20)));
    let export = || Export::new("volume", volume.uri());
    let room = Room { stripe: 1 << 20, may_be_less: false };
    for round in 1..=20 {
        let own = identity(round, 8, None);
        let stripes = reserve(&export(), &own, &[0, 1, 2, 3, 4, 5, 6, 7], room).unwrap();
        let stripes: Vec<Arc<dyn StripeSink>> =
            stripes.into_iter().map(|own| Arc::new(own) as Arc<dyn StripeSink>).collect();
        let cause = undo(BackupError::Failed("it broke".to_owned()), &stripes);
        assert_eq!(cause.to_string(), "it broke");
        let left = RawPlace::new(export()).list().unwrap();
        assert!(left.is_empty(), "round {round}: {left:?}");
    }
}

/// A prune that listed a stripe before another one took its region removes nothing.
#[test]
fn a_stripe_that_took_a_listed_region_is_not_removed() {
    let volume = Served::new(FaultStore::new(Bytes::new(4 << 20)));
    let export = || Export::new("volume", volume.uri());
    let back_up = |id: u8| {
        let own = identity(id, 1, None);
        let room = Room { stripe: 10 * TRANSFER, may_be_less: false };
        let stripes = reserve(&export(), &own, &[0], room).unwrap();
        let stripes = stripes.into_iter().map(|own| Arc::new(own) as Arc<dyn StripeSink>).collect();
        run(job(own, &served(1), stripes), &mut |_| true).unwrap();
    };
    let mut place = RawPlace::new(export());
    back_up(1);
    let before = place.list().unwrap().remove(0);
    place.remove(&before).unwrap();
    back_up(2);
    let region = |locator: &str| locator.split(' ').take(2).map(str::to_owned).collect::<Vec<_>>();
    let after = place.list().unwrap().remove(0);
    assert_eq!(region(&after.locator), region(&before.locator), "it has the same region");
    place.remove(&before).unwrap();
    assert_eq!(place.list().unwrap().len(), 1);
    place.remove(&after).unwrap();
    assert!(place.list().unwrap().is_empty());
}
