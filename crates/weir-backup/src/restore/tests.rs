//! A restore returns the backed-up contents, with any sources and options.

use super::*;
use crate::assemble::Assembly;
use crate::format::{BackupId, Identity};
use crate::key::{Keys, Secret};
use crate::mark::marked;
use crate::memory::{self, MemorySource};
use crate::restore::image::ImageTarget;
use crate::restore::nbd::NbdTarget;
use crate::testing::nbd::{Served, store};
use crate::testing::power::{Noting, lose};
use proptest::prelude::*;
use std::path::Path;
use std::sync::{Arc, Mutex};
use weir_store::{FaultStore, Store};
use weir_units::Bytes;

/// Passes what every target has on to the first field.
macro_rules! forward {
    ($($method:ident($($name:ident: $kind:ty),*) -> $returns:ty;)*) => {$(
        fn $method(&self, $($name: $kind),*) -> $returns {
            self.0.$method($($name),*)
        }
    )*};
}

/// A target in memory, which can break.
#[derive(Debug, Clone)]
struct Memory {
    name: &'static str,
    bytes: Arc<Mutex<Vec<u8>>>,
    /// Fails after this number of writes.
    fails_after: Option<usize>,
    writes: Arc<Mutex<usize>>,
    is_published: Arc<Mutex<bool>>,
}

impl Memory {
    fn new(size: u64) -> Self {
        Self {
            name: "memory",
            bytes: Arc::new(Mutex::new(vec![0; usize::try_from(size).unwrap()])),
            fails_after: None,
            writes: Arc::default(),
            is_published: Arc::default(),
        }
    }
}

impl Target for Memory {
    fn name(&self) -> &'static str {
        self.name
    }

    fn size(&self) -> u64 {
        self.bytes.lock().unwrap().len() as u64
    }

    fn is_empty(&self, _: &Watch) -> Result<bool, BackupError> {
        Ok(is_zero(&self.bytes.lock().unwrap()))
    }

    fn clear(&self, _: &Watch) -> Result<(), BackupError> {
        self.bytes.lock().unwrap().fill(0);
        Ok(())
    }

    fn open(&self, _: usize) -> Result<Box<dyn TargetIo>, BackupError> {
        Ok(Box::new(self.clone()))
    }

    fn publish(&self) -> Result<(), BackupError> {
        *self.is_published.lock().unwrap() = true;
        Ok(())
    }
}

impl TargetIo for Memory {
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), BackupError> {
        let mut writes = self.writes.lock().unwrap();
        if self.fails_after == Some(*writes) {
            return Err(BackupError::Failed("it broke".to_owned()));
        }
        *writes += 1;
        let start = usize::try_from(offset).unwrap();
        self.bytes.lock().unwrap()[start..start + data.len()].copy_from_slice(data);
        Ok(())
    }

    fn write_zeros(&mut self, offset: u64, length: u64) -> Result<(), BackupError> {
        self.write(offset, &vec![0; usize::try_from(length).unwrap()])
    }

    fn finish(&mut self) -> Result<(), BackupError> {
        Ok(())
    }

    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), BackupError> {
        let start = usize::try_from(offset).unwrap();
        data.copy_from_slice(&self.bytes.lock().unwrap()[start..start + data.len()]);
        Ok(())
    }
}

fn identity(id: u8, stripes: u8, base: Option<u8>) -> Identity {
    Identity {
        id: BackupId::from_bytes([id; 16]),
        name: "s".to_owned(),
        kind: if base.is_some() { Kind::Differential } else { Kind::Full },
        base: base.map(|base| BackupId::from_bytes([base; 16])),
        stripes,
        created_unix_ms: 1,
        encryption: None,
    }
}

fn source(size: u64, ranges: Vec<(u64, Vec<u8>)>) -> MemorySource {
    MemorySource { name: "a".to_owned(), size, ranges }
}

fn assembly(identity: &Identity, sources: &[MemorySource]) -> Assembly {
    let stripes = memory::write(identity, sources, 5000, None, None).unwrap();
    Assembly::new(memory::inputs(identity, stripes), None, None).unwrap()
}

/// The contents of a source after its ranges were written over `before`.
fn expected(mut before: Vec<u8>, source: &MemorySource) -> Vec<u8> {
    before.resize(usize::try_from(source.size).unwrap(), 0);
    for (offset, contents) in &source.ranges {
        let start = usize::try_from(*offset).unwrap();
        before[start..start + contents.len()].copy_from_slice(contents);
    }
    before
}

/// Ranges in order that do not overlap: some zeros, some text, some noise.
fn any_source() -> impl Strategy<Value = MemorySource> {
    let range = (0..9000_usize, 1..20_000_usize, 0..3_u8, any::<u8>());
    (prop::collection::vec(range, 0..6), 0..5000_u64).prop_map(|(parts, rest)| {
        let (mut at, mut ranges) = (0, Vec::new());
        for (gap, length, kind, seed) in parts {
            at += gap as u64;
            let contents: Vec<u8> = match kind {
                0 => vec![0; length],
                1 => vec![seed; length],
                _ => {
                    let mut noise = vec![0; length];
                    blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut noise);
                    noise
                }
            };
            ranges.push((at, contents));
            at += length as u64;
        }
        source(at + rest + 1, ranges)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn restored_is_what_was_backed_up(
        sources in prop::collection::vec(any_source(), 1..4),
        changes in prop::collection::vec(any_source(), 4),
        stripes in 1..6_u8,
        transfer in 512..20_000_usize,
        compression in prop::option::of(1..4_i32),
        is_encrypted: bool,
        has_differential: bool,
    ) {
        let key = is_encrypted.then(|| Arc::new(crate::key::Key::from_master(&[9; 32])));
        let encryption = key.as_ref().map(|key| crate::format::Encryption {
            salt: [1; 16],
            nonce_prefix: [2; 15],
            check: *key.check(),
        });
        let mut wanted: Vec<Vec<u8>> =
            sources.iter().map(|own| expected(Vec::new(), own)).collect();
        let full = Identity { encryption, ..identity(1, stripes, None) };
        let write = |identity: &Identity, sources: &[MemorySource]| {
            let all = memory::write(identity, sources, transfer, compression, key.as_ref());
            let inputs = memory::inputs(identity, all.unwrap());
            let mut assembly = Assembly::new(inputs, None, None).unwrap();
            assembly.key = key.clone();
            assembly
        };
        let mut base = write(&full, &sources);
        let mut differential = has_differential.then(|| {
            let changed: Vec<MemorySource> = sources
                .iter()
                .zip(&changes)
                .map(|(own, change)| MemorySource {
                    size: own.size,
                    ranges: change
                        .ranges
                        .iter()
                        .filter(|(offset, raw)| offset + raw.len() as u64 <= own.size)
                        .cloned()
                        .collect(),
                    ..own.clone()
                })
                .collect();
            for (own, change) in wanted.iter_mut().zip(&changed) {
                *own = expected(std::mem::take(own), change);
            }
            let base = Some(full.id);
            let own = Identity { id: BackupId::from_bytes([2; 16]), base, kind: Kind::Differential, ..full.clone() };
            write(&own, &changed)
        });
        let targets: Vec<Memory> = sources.iter().map(|own| Memory::new(own.size)).collect();
        let given: Vec<Option<&dyn Target>> =
            targets.iter().map(|own| Some(own as &dyn Target)).collect();
        let options = RestoreOptions { is_proved: true, ..RestoreOptions::default() };
        let watch = Watch::default();
        restore(&mut base, differential.as_mut(), &given, options, &watch).unwrap();
        for (target, wanted) in targets.iter().zip(&wanted) {
            prop_assert!(*target.bytes.lock().unwrap() == *wanted);
            prop_assert!(*target.is_published.lock().unwrap());
        }
    }
}

#[test]
fn an_interrupted_restore_begins_with_zeros() {
    let identity = identity(1, 2, None);
    let sources = [source(100_000, vec![(0, vec![7; 100_000])])];
    for writes in 0.. {
        let target = Memory { fails_after: Some(writes), ..Memory::new(100_000) };
        let mut base = assembly(&identity, &sources);
        let options = RestoreOptions::default();
        let watch = Watch::default();
        let done = restore(&mut base, None, &[Some(&target)], options, &watch);
        let bytes = target.bytes.lock().unwrap();
        if done.is_ok() {
            assert!(writes > 20 && bytes.iter().all(|byte| *byte == 7));
            return;
        }
        // The sector that has the mark of a volume is the last one.
        assert!(is_zero(&bytes[..512]) && !*target.is_published.lock().unwrap(), "{writes}");
    }
}

#[test]
fn a_damaged_frame_is_not_restored_and_skipped_only_when_told() {
    let identity = identity(1, 2, None);
    let sources = [source(40_000, vec![(0, vec![7; 40_000])])];
    let mut stripes = memory::write(&identity, &sources, 5000, None, None).unwrap();
    // The second frame of the second stripe: the fourth of all.
    stripes[1][512 + 5632 + 300] ^= 1;
    let run = |is_damage_skipped| {
        let target = Memory::new(40_000);
        let inputs = memory::inputs(&identity, stripes.clone());
        let mut own = Assembly::new(inputs, None, None).unwrap();
        let options = RestoreOptions { is_damage_skipped, is_proved: true };
        let done = restore(&mut own, None, &[Some(&target)], options, &Watch::default());
        let bytes = target.bytes.lock().unwrap().clone();
        (done, bytes)
    };
    let (done, bytes) = run(false);
    let error = done.unwrap_err();
    assert!(error.is_verdict() && error.to_string().contains("frame 1 of stripe 2"), "{error}");
    assert!(is_zero(&bytes[..4096]));
    let (done, bytes) = run(true);
    let counts = done.unwrap().remove(0);
    assert_eq!((counts.lost_frames, counts.frames), (1, 7));
    for (place, byte) in bytes.iter().enumerate() {
        let is_lost = (15_000..20_000).contains(&place);
        assert_eq!(*byte, if is_lost { 0 } else { 7 }, "{place}");
    }
}

#[test]
fn a_restore_that_reads_otherwise_than_written_is_not_proved() {
    /// Loses a bit of what is written.
    struct Lossy(Memory);
    impl Target for Lossy {
        fn name(&self) -> &'static str {
            "lossy"
        }
        fn size(&self) -> u64 {
            self.0.size()
        }
        fn is_empty(&self, watch: &Watch) -> Result<bool, BackupError> {
            self.0.is_empty(watch)
        }
        fn clear(&self, watch: &Watch) -> Result<(), BackupError> {
            self.0.clear(watch)
        }
        fn open(&self, in_flight: usize) -> Result<Box<dyn TargetIo>, BackupError> {
            self.0.bytes.lock().unwrap()[9000] = 1;
            self.0.open(in_flight)
        }
        fn publish(&self) -> Result<(), BackupError> {
            self.0.publish()
        }
    }
    let sources = [source(40_000, vec![(0, vec![7; 40_000])])];
    let mut own = assembly(&identity(1, 1, None), &sources);
    let options = RestoreOptions { is_proved: true, ..RestoreOptions::default() };
    let target = Lossy(Memory::new(40_000));
    let error = restore(&mut own, None, &[Some(&target)], options, &Watch::default()).unwrap_err();
    assert!(error.to_string().contains("lossy: 5000 bytes at offset 5000"), "{error}");
}

#[test]
fn an_encrypted_backup_needs_its_key() {
    let keys = Keys::new(Secret::new(b"a secret that is long enough").unwrap());
    let (encryption, key) = keys.fresh().unwrap();
    let identity = Identity { encryption: Some(encryption), ..identity(1, 1, None) };
    let sources = [source(10_000, vec![(0, vec![7; 10_000])])];
    let stripes = memory::write(&identity, &sources, 5000, Some(1), Some(&key)).unwrap();
    let target = Memory::new(10_000);
    let inputs = || memory::inputs(&identity, stripes.clone());
    let mut own = Assembly::new(inputs(), None, None).unwrap();
    let options = RestoreOptions::default();
    let watch = Watch::default();
    let error = restore(&mut own, None, &[Some(&target)], options, &watch).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("--key-file"), "{error}");
    let mut own = Assembly::new(inputs(), None, Some(&keys)).unwrap();
    restore(&mut own, None, &[Some(&target)], options, &watch).unwrap();
    assert_eq!(*target.bytes.lock().unwrap(), vec![7; 10_000]);
}

#[test]
fn images_are_sparse_and_have_their_name_at_the_end_only() {
    let folder = tempfile::tempdir().unwrap();
    let size = 64 << 20;
    let sources = [source(size, vec![(0, vec![7; 10_000]), (1 << 20, vec![0; 1 << 20])])];
    let mut own = assembly(&identity(1, 2, None), &sources);
    let image = ImageTarget::create(folder.path(), "a/b", size, false).unwrap();
    let names = || -> Vec<String> {
        let all = std::fs::read_dir(folder.path()).unwrap();
        all.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert_eq!(names(), ["a_b.raw.tmp"]);
    let options = RestoreOptions::default();
    restore(&mut own, None, &[Some(&image)], options, &Watch::default()).unwrap();
    assert_eq!(names(), ["a_b.raw"]);
    let bytes = std::fs::read(folder.path().join("a_b.raw")).unwrap();
    assert!(bytes == expected(Vec::new(), &sources[0]));
    let blocks = std::os::unix::fs::MetadataExt::blocks(
        &std::fs::metadata(folder.path().join("a_b.raw")).unwrap(),
    );
    assert!(blocks * 512 < 1 << 20, "{blocks} blocks");
    let error = ImageTarget::create(folder.path(), "a/b", size, false).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("--force"), "{error}");
    // One that is not completed leaves nothing, and harms nothing.
    drop(ImageTarget::create(folder.path(), "a/b", size, true).unwrap());
    assert_eq!(names(), ["a_b.raw"]);
}

#[test]
fn the_memory_of_a_restore_is_bounded_whatever_its_stripes_and_sources() {
    /// Counts its ways, and the bytes that may be in flight on them.
    struct Counted<'a>(Memory, &'a Mutex<(usize, usize)>);
    impl Target for Counted<'_> {
        fn name(&self) -> &'static str {
            "counted"
        }
        fn size(&self) -> u64 {
            self.0.size()
        }
        fn is_empty(&self, watch: &Watch) -> Result<bool, BackupError> {
            self.0.is_empty(watch)
        }
        fn clear(&self, watch: &Watch) -> Result<(), BackupError> {
            self.0.clear(watch)
        }
        fn open(&self, in_flight: usize) -> Result<Box<dyn TargetIo>, BackupError> {
            let mut counts = self.1.lock().unwrap();
            *counts = (counts.0 + 1, counts.1 + in_flight);
            self.0.open(in_flight)
        }
        fn publish(&self) -> Result<(), BackupError> {
            self.0.publish()
        }
    }
    for (sources, ways) in [(1_u16, 16), (5, 15), (40, 40)] {
        let all: Vec<MemorySource> = (0..sources)
            .map(|at| {
                let ranges = vec![(0, vec![at.to_le_bytes()[0] | 1; 100_000])];
                MemorySource { name: at.to_string(), size: 100_000, ranges }
            })
            .collect();
        let mut own = assembly(&identity(1, 64, None), &all);
        let counts = Mutex::new((0, 0));
        let targets: Vec<Counted<'_>> =
            all.iter().map(|own| Counted(Memory::new(own.size), &counts)).collect();
        let given: Vec<Option<&dyn Target>> =
            targets.iter().map(|own| Some(own as &dyn Target)).collect();
        restore(&mut own, None, &given, RestoreOptions::default(), &Watch::default()).unwrap();
        for (target, own) in targets.iter().zip(&all) {
            assert!(*target.0.bytes.lock().unwrap() == own.ranges[0].1);
        }
        let (opened, in_flight) = *counts.lock().unwrap();
        // One more for the start of each target.
        assert!(opened <= ways + all.len(), "{opened} ways to {sources} targets");
        assert!(in_flight <= (64 << 20) + all.len() * 4096, "{in_flight} bytes in flight");
    }
}

#[test]
fn an_image_never_follows_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let victim = folder.path().join("victim");
    std::fs::write(&victim, b"precious").unwrap();
    let images = folder.path().join("images");
    std::fs::create_dir(&images).unwrap();
    let link = |name: &str| std::os::unix::fs::symlink(&victim, images.join(name)).unwrap();
    let create = |is_replaced| ImageTarget::create(&images, "a", 4096, is_replaced);
    link("a.raw.tmp");
    let error = create(false).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("--force replaces it"), "{error}");
    // With --force the link goes, and not what it points to.
    drop(create(true).unwrap());
    assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
    // A link without an end is something, too.
    std::fs::remove_file(&victim).unwrap();
    link("a.raw");
    let error = create(false).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("a.raw is there already"), "{error}");
    assert!(!victim.exists());
    // A file that appears in the meantime is not replaced.
    std::fs::remove_file(images.join("a.raw")).unwrap();
    let image = create(false).unwrap();
    std::fs::write(images.join("a.raw"), b"new").unwrap();
    let error = image.publish().unwrap_err();
    assert!(error.is_input() && error.to_string().contains("is there already"), "{error}");
    assert_eq!(std::fs::read(images.join("a.raw")).unwrap(), b"new");
}

#[test]
fn room_for_images_is_checked_where_they_will_be() {
    let folder = tempfile::tempdir().unwrap();
    let later = folder.path().join("not/there/yet");
    image::check_room(&later, 4096).unwrap();
    let error = image::check_room(&later, u64::MAX).unwrap_err();
    assert!(error.is_input(), "{error}");
    let text = error.to_string();
    assert!(text.contains("the images need") && text.contains("are available"), "{text}");
}

const IMAGE: u64 = 20_000;

/// A backup of two sources that are full of one byte.
fn two(byte: u8) -> Assembly {
    let own = |name: &str| MemorySource {
        name: name.to_owned(),
        ..source(IMAGE, vec![(0, vec![byte; 20_000])])
    };
    assembly(&identity(1, 2, None), &[own("data"), own("log")])
}

/// Returns the byte that an image is full of; `None` if it is not there.
fn full_of(bytes: Option<&Vec<u8>>) -> Option<u8> {
    let bytes = bytes?;
    assert!(
        bytes.len() as u64 == IMAGE && bytes.iter().all(|byte| *byte == bytes[0]),
        "it is torn"
    );
    Some(bytes[0])
}

fn contents(folder: &Path, name: &str) -> Option<u8> {
    full_of(std::fs::read(folder.join(name)).ok().as_ref())
}

#[test]
fn images_of_two_restores_never_stand_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["data.raw", "log.raw"].map(|name| folder.path().join(name));
    for path in &paths {
        std::fs::write(path, vec![1; 20_000]).unwrap();
    }
    let (disk, before) = Noting::in_folder(folder.path());
    let disk: Arc<Noting> = Arc::new(disk);
    let make = |name: &str| {
        let disk = Arc::clone(&disk) as Arc<dyn crate::target::disk::Disk>;
        ImageTarget::create_on(disk, folder.path(), (name, IMAGE), true).unwrap()
    };
    let targets = [make("data"), make("log")];
    let given: Vec<Option<&dyn Target>> =
        targets.iter().map(|own| Some(own as &dyn Target)).collect();
    restore(&mut two(2), None, &given, RestoreOptions::default(), &Watch::default()).unwrap();
    drop(targets);
    let operations = disk.operations();
    let mut seen = std::collections::BTreeSet::new();
    for done in 0..=operations.len() {
        for seed in 0..8 {
            let left = lose(&before, &operations[..done], seed);
            let [data, log] = [&paths[0], &paths[1]].map(|path| full_of(left.get(path)));
            assert!(data.is_none() || log.is_none() || data == log, "{data:?} beside {log:?}");
            seen.insert((data, log));
        }
    }
    assert!(seen.contains(&(Some(1), Some(1))) && seen.contains(&(Some(2), Some(2))), "{seen:?}");
    // The old images are never lost before the new ones are there.
    let left = lose(&before, &operations, 0);
    assert_eq!(left.len(), 2, "{:?}", left.keys());
}

/// An image that does not get its name.
struct Unnamed(ImageTarget);

impl Target for Unnamed {
    forward! {
        name() -> &str;
        size() -> u64;
        is_empty(watch: &Watch) -> Result<bool, BackupError>;
        clear(watch: &Watch) -> Result<(), BackupError>;
        open(in_flight: usize) -> Result<Box<dyn TargetIo>, BackupError>;
        is_hidden() -> bool;
        set_aside() -> Result<(), BackupError>;
        take_back() -> Result<(), BackupError>;
    }
    fn publish(&self) -> Result<(), BackupError> {
        Err(BackupError::Failed("it broke".to_owned()))
    }
}

#[test]
fn images_that_were_there_are_as_they_were_if_one_of_several_fails() {
    for is_replaced in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        if is_replaced {
            for name in ["data.raw", "log.raw"] {
                std::fs::write(folder.path().join(name), vec![1; 20_000]).unwrap();
            }
        }
        let make = |name| ImageTarget::create(folder.path(), name, IMAGE, is_replaced).unwrap();
        let (data, log) = (make("data"), Unnamed(make("log")));
        let given: [Option<&dyn Target>; 2] = [Some(&data), Some(&log)];
        let watch = Watch::default();
        let done = restore(&mut two(2), None, &given, RestoreOptions::default(), &watch);
        assert_eq!(done.unwrap_err().to_string(), "it broke");
        drop((data, log));
        let expect = is_replaced.then_some(1);
        for name in ["data.raw", "log.raw"] {
            assert_eq!(contents(folder.path(), name), expect, "{name}");
        }
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, if is_replaced { 2 } else { 0 });
    }
}

#[test]
fn volumes_survive_a_power_loss_of_their_restore_whole_or_marked() {
    let size = 64 << 10;
    let old = vec![9; 64 << 10];
    let (data, log) = (Served::new(store(size, &old)), Served::new(store(size, &old)));
    let connect =
        |name: &str, own: &Served| NbdTarget::connect(crate::Export::new(name, own.uri())).unwrap();
    let targets = [connect("data", &data), connect("log", &log)];
    let all: Vec<&dyn Target> = targets.iter().map(|own| own as &dyn Target).collect();
    let given: Vec<Option<&dyn Target>> = all.iter().map(|own| Some(*own)).collect();
    let (watch, id) = (Watch::default(), BackupId::from_bytes([1; 16]));
    prepare(&all, &all, id, &watch).unwrap();
    assert!(["data", "log"].iter().all(|name| watch.reached(name) == Some(Reached::Begun)));
    restore(&mut two(2), None, &given, RestoreOptions::default(), &watch).unwrap();
    assert!(["data", "log"].iter().all(|name| watch.reached(name) == Some(Reached::Whole)));
    let mut new = vec![2; 20_000];
    new.resize(64 << 10, 0);
    let changes = data.changes();
    let (mut is_old, mut is_marked, mut is_new) = (0, 0, 0);
    for done in 0..=changes.len() {
        for seed in 0..4 {
            let volume = FaultStore::new(Bytes::new(size));
            volume.write_at(0, &old).unwrap();
            volume.sync().unwrap();
            changes[..done].iter().for_each(|change| change.apply(&volume));
            let survived = volume.crash(seed).unwrap();
            let mut bytes = vec![0; 64 << 10];
            survived.read_at(0, &mut bytes).unwrap();
            match marked(&bytes) {
                Some(own) => is_marked += usize::from(own == id),
                None if bytes == old => is_old += 1,
                None => {
                    assert!(bytes == new, "neither whole nor marked after change {done}");
                    is_new += 1;
                }
            }
        }
    }
    assert!(is_old > 0 && is_marked > 8 && is_new > 0, "{is_old}, {is_marked}, {is_new}");
}

#[test]
fn a_target_that_fails_late_leaves_the_others_whole_and_is_named() {
    let sources = ["data", "log"].map(|name| MemorySource {
        name: name.to_owned(),
        ..source(IMAGE, vec![(0, vec![2; 20_000])])
    });
    // How many writes the second target takes until its end.
    let count = |fails_after| {
        let targets =
            [Memory::new(IMAGE), Memory { fails_after, name: "log", ..Memory::new(IMAGE) }];
        let given: Vec<Option<&dyn Target>> =
            targets.iter().map(|own| Some(own as &dyn Target)).collect();
        let (watch, mut own) = (Watch::default(), assembly(&identity(1, 1, None), &sources));
        let done = restore(&mut own, None, &given, RestoreOptions::default(), &watch);
        let writes = *targets[1].writes.lock().unwrap();
        (done.is_ok(), writes, watch)
    };
    let (is_done, writes, _) = count(None);
    assert!(is_done);
    // The last write is that of the sector with the mark.
    let (is_done, _, watch) = count(Some(writes - 1));
    assert!(!is_done);
    assert_eq!(watch.reached("memory"), Some(Reached::Whole));
    assert_eq!(watch.reached("log"), Some(Reached::Unknown));
}

#[test]
fn a_missing_stripe_is_asked_for_in_other_places() {
    let identity = identity(1, 3, None);
    let sources = [source(40_000, vec![(0, vec![7; 40_000])])];
    let stripes = memory::write(&identity, &sources, 5000, None, None).unwrap();
    let text = |spoil: &dyn Fn(&mut Vec<crate::StripeInput>)| {
        let mut inputs = memory::inputs(&identity, stripes.clone());
        spoil(&mut inputs);
        let own = Assembly::new(inputs, None, None).unwrap();
        check(&own, RestoreOptions::default()).unwrap_err().to_string()
    };
    let missing = text(&|inputs| drop(inputs.remove(1)));
    let id = identity.id;
    assert_eq!(
        missing,
        format!(
            "not all stripes of backup {id} are here: stripe 2 of 3 is missing; name the other places \
             that have stripes of it with --from. If they are lost, --damaged skip restores the rest"
        )
    );
    // With damage beside it, that is said too.
    let mut cut = stripes[0].clone();
    cut.truncate(6000);
    let both = text(&|inputs| {
        inputs.remove(1);
        inputs[0].bytes = Box::new(cut.clone());
    });
    assert!(both.contains("is damaged: stripe 2 of 3 is missing; stripe 1"), "{both}");
}

/// A target that cannot be marked.
struct Unmarkable(NbdTarget);

impl Target for Unmarkable {
    forward! {
        name() -> &str;
        size() -> u64;
        is_empty(watch: &Watch) -> Result<bool, BackupError>;
        clear(watch: &Watch) -> Result<(), BackupError>;
        open(in_flight: usize) -> Result<Box<dyn TargetIo>, BackupError>;
        publish() -> Result<(), BackupError>;
    }
    fn begin(&self, _: BackupId) -> Result<Vec<u8>, BackupError> {
        Err(BackupError::Failed("it broke".to_owned()))
    }
}

#[test]
fn a_volume_gets_its_first_bytes_back_if_another_cannot_be_marked() {
    let old: Vec<u8> = (0..64_u32 << 10).map(|at| (at % 251) as u8).collect();
    let (data, log) = (Served::new(store(64 << 10, &old)), Served::new(store(64 << 10, &old)));
    let connect =
        |name: &str, own: &Served| NbdTarget::connect(crate::Export::new(name, own.uri())).unwrap();
    let (first, second) = (connect("data", &data), Unmarkable(connect("log", &log)));
    let all: [&dyn Target; 2] = [&first, &second];
    let watch = Watch::default();
    let error = prepare(&all, &all, BackupId::from_bytes([1; 16]), &watch).unwrap_err();
    assert_eq!(error.to_string(), "it broke");
    let mut now = vec![0; old.len()];
    data.store().read_at(0, &mut now).unwrap();
    assert!(now == old && data.changes().len() > 1, "it was marked, and has its bytes again");
    assert_eq!(watch.reached("data"), None);
}

#[test]
fn a_volume_with_a_label_that_cannot_be_read_is_never_replaced() {
    let mut bytes = vec![0; 4 << 20];
    for at in [0, 4096] {
        // A label of a version to come.
        bytes[at..at + 10].copy_from_slice(b"WEIRLBL1\x02\x00");
    }
    let volume = Served::new(store(4 << 20, &bytes));
    let export = || crate::Export::new("volume", volume.uri());
    let error = NbdTarget::connect(export()).unwrap_err().to_string();
    assert!(error.contains("it holds backups, which a restore never replaces"), "{error}");
    assert!(export().is_for_backups().unwrap());
}

#[test]
fn an_old_image_of_the_user_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["data.raw", "data.raw.old", "log.raw"] {
        std::fs::write(path(name), vec![1; 20_000]).unwrap();
    }
    let make = |name| ImageTarget::create(folder.path(), name, IMAGE, true).unwrap();
    // One alone is replaced at once, and nothing is set aside.
    let (data, watch) = (make("data"), Watch::default());
    let mut own = assembly(&identity(1, 1, None), &[source(IMAGE, vec![(0, vec![2; 20_000])])]);
    restore(&mut own, None, &[Some(&data)], RestoreOptions::default(), &watch).unwrap();
    drop(data);
    assert_eq!(contents(folder.path(), "data.raw"), Some(2));
    assert_eq!(std::fs::read(path("data.raw.old")).unwrap(), vec![1; 20_000]);
    // Several have no place for it, which is said before anything is written.
    let (data, log) = (make("data"), make("log"));
    let all: [&dyn Target; 2] = [&data, &log];
    let error = prepare(&all, &all, BackupId::from_bytes([1; 16]), &watch).unwrap_err().to_string();
    assert!(error.contains("data.raw.old is there already"), "{error}");
    drop((data, log));
    assert_eq!(std::fs::read(path("data.raw.old")).unwrap(), vec![1; 20_000]);
    assert_eq!(contents(folder.path(), "log.raw"), Some(1));
}
