use super::*;
use crate::fault::FaultStore;
use crate::{ErrorKind, ExtentKind, Fault, MemoryStore, StoreError};
use std::fs;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use weir_random::Rng;

const SIZE: u64 = 64 << 10;

struct Rig {
    dir: tempfile::TempDir,
    store: LoggedStore,
}

impl Rig {
    fn over(store: Arc<dyn Store>, most: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = LoggedStore::with_memory(store, "v", &dir.path().join("log"), most).unwrap();
        Self { dir, store }
    }

    fn replay(&self) -> Replay {
        let image = self.dir.path().join("image");
        let _ = fs::remove_file(&image);
        Replay::open(&self.dir.path().join("log"), &image).unwrap()
    }

    /// The contents at each point of the log, and at its end.
    fn points(&self) -> Vec<Vec<u8>> {
        let (mut replay, mut points) = (self.replay(), Vec::new());
        while let Some(entry) = replay.step().unwrap() {
            if entry.flags.is_point() {
                points.push(self.image());
            }
        }
        points.push(self.image());
        points
    }

    fn image(&self) -> Vec<u8> {
        fs::read(self.dir.path().join("image")).unwrap()
    }

    fn content(&self) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(self.store.size().get()).unwrap()];
        self.store.read_at(0, &mut bytes).unwrap();
        bytes
    }

    /// All entries in a few words.
    fn words(&self) -> String {
        let (mut log, mut words) = (LogReader::open(&self.dir.path().join("log")).unwrap(), vec![]);
        while let Some(entry) = log.next_entry().unwrap() {
            let kinds = [
                (Flags::FLUSH, "flush"),
                (Flags::FUA, "fua"),
                (Flags::DISCARD, "discard"),
                (Flags::MARK, "mark"),
            ];
            let kind = kinds.iter().find(|(flag, _)| entry.flags.has(*flag));
            let kind = kind.map_or("write", |(_, kind)| *kind);
            words.push(match entry.len {
                0 => kind.to_owned(),
                len => format!("{kind} {}+{}", entry.offset / SECTOR, len / SECTOR),
            });
        }
        words.join(", ")
    }
}

/// A store that makes single writes durable, one in two.
fn durable() -> Arc<FaultStore> {
    let store = FaultStore::new(Bytes::new(SIZE));
    store.make_writes_durable(true);
    Arc::new(store)
}

#[test]
fn a_replay_has_the_content_of_each_flush() {
    for seed in 0..40 {
        let mut rng = Rng::new(&[seed]);
        // Little memory makes changes go into the log before their flush.
        let most = *rng.one(&[0, 20_000, 1 << 20]);
        let rig = Rig::over(Arc::new(FaultStore::new(Bytes::new(SIZE))), most);
        let mut expect = Vec::new();
        for step in 0_u8..120 {
            let unit = *rng.one(&[1, 100, SECTOR, 4096]);
            let size = rig.store.size().get();
            let offset = rng.below(size / unit) * unit;
            let len = (rng.within(1, 8) * unit).min(size - offset);
            let data = vec![step + 1; usize::try_from(len).unwrap()];
            match rng.below(12) {
                0 => rig.store.trim(offset, len).unwrap(),
                1 => rig.store.write_zeroes(offset, len, rng.flip()).unwrap(),
                2 => {
                    let sectors = rng.within(SIZE / 2 / SECTOR, SIZE / SECTOR);
                    rig.store.resize(Bytes::new(sectors * SECTOR)).unwrap();
                }
                3..6 => {
                    rig.store.sync().unwrap();
                    expect.push(rig.content());
                }
                6 => assert!(!rig.store.write_durably(offset, &data).unwrap()),
                _ => rig.store.write_at(offset, &data).unwrap(),
            }
        }
        rig.store.sync().unwrap();
        expect.push(rig.content());
        expect.push(rig.content());
        assert!(rig.points() == expect, "seed {seed}");
    }
}

#[test]
fn the_end_of_a_replay_has_the_newest_content_of_durable_writes() {
    for seed in 0..40 {
        let mut rng = Rng::new(&[seed]);
        let rig = Rig::over(durable(), 1 << 20);
        for step in 0_u8..100 {
            let (offset, len) = (rng.below(100) * 100, 1 + rng.index(3000));
            let data = vec![step + 1; len];
            match rng.below(6) {
                0 => rig.store.sync().unwrap(),
                1 => drop(rig.store.zero_durably(offset, 2000, true).unwrap()),
                2 => assert!(rig.store.write_durably(offset, &data).unwrap()),
                _ => rig.store.write_at(offset, &data).unwrap(),
            }
        }
        rig.store.sync().unwrap();
        assert!(rig.points().last() == Some(&rig.content()), "seed {seed}");
    }
}

#[test]
fn durable_writes_come_before_older_ones_without_a_flush() {
    let rig = Rig::over(durable(), 1 << 20);
    let write = |sector: u64| rig.store.write_at(sector * SECTOR, &[1; 1024]).unwrap();
    [0, 10, 20, 30].into_iter().for_each(write);
    assert_eq!(rig.words(), "mark");
    assert!(rig.store.write_durably(40 * SECTOR, &[2; 512]).unwrap());
    assert_eq!(rig.words(), "mark, fua 40+1");
    // Only those up to the one under it go first.
    assert!(rig.store.write_durably(11 * SECTOR, &[2; 512]).unwrap());
    assert_eq!(rig.words(), "mark, fua 40+1, write 0+2, write 10+2, fua 11+1");
    rig.store.trim(0, 1024).unwrap();
    rig.store.sync().unwrap();
    let rest = "write 20+2, write 30+2, discard 0+2, flush";
    assert_eq!(rig.words(), format!("mark, fua 40+1, write 0+2, write 10+2, fua 11+1, {rest}"));
}

/// A store whose syncs say that they have begun, and wait until they may end. All reads would wait.
#[derive(Debug)]
struct Slow {
    store: MemoryStore,
    begun: Mutex<Sender<()>>,
    go: Mutex<Receiver<()>>,
}

fn own<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store for Slow {
    fn size(&self) -> Bytes {
        self.store.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.store.read_at(offset, buf)
    }

    fn try_read_at(&self, _: u64, _: &mut [u8]) -> Result<bool> {
        Ok(false)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.store.write_at(offset, data)
    }

    fn write_zeroes(&self, offset: u64, len: u64, may_trim: bool) -> Result<()> {
        self.store.write_zeroes(offset, len, may_trim)
    }

    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        self.store.trim(offset, len)
    }

    fn sync(&self) -> Result<()> {
        own(&self.begun).send(()).unwrap();
        own(&self.go).recv().unwrap();
        Ok(())
    }

    fn resize(&self, new: Bytes) -> Result<()> {
        self.store.resize(new)
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>> {
        self.store.extents(offset, len, max)
    }

    fn allocated(&self) -> Result<Bytes> {
        self.store.allocated()
    }
}

#[test]
fn a_write_during_a_flush_comes_after_it() {
    let ((begun, begins), (lets_go, go)) = (channel(), channel());
    let store = MemoryStore::new(Bytes::new(SIZE));
    let slow = Slow { store, begun: Mutex::new(begun), go: Mutex::new(go) };
    let rig = Rig::over(Arc::new(slow), 1 << 20);
    rig.store.write_at(0, &[1; 512]).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| rig.store.sync().unwrap());
        begins.recv().unwrap();
        rig.store.write_at(SECTOR, &[2; 512]).unwrap();
        lets_go.send(()).unwrap();
    });
    assert_eq!(rig.words(), "mark, write 0+1, flush");
    lets_go.send(()).unwrap();
    rig.store.sync().unwrap();
    assert_eq!(rig.words(), "mark, write 0+1, flush, write 1+1, flush");
}

#[test]
fn what_fails_is_not_in_the_log() {
    let store = Arc::new(FaultStore::new(Bytes::new(SIZE)));
    let rig = Rig::over(Arc::clone(&store) as Arc<dyn Store>, 1 << 20);
    rig.store.write_at(0, &[1; 512]).unwrap();
    store.fail_after(0, Fault::Io);
    assert!(rig.store.write_at(SECTOR, &[1; 512]).is_err() && rig.store.sync().is_err());
    assert_eq!(rig.words(), "mark");
    store.heal();
    rig.store.sync().unwrap();
    assert_eq!(rig.words(), "mark, write 0+1, flush");
}

#[test]
fn long_zeros_and_discards_have_parts_that_readers_take() {
    let store = MemoryStore::new(Bytes::gib(2));
    let rig = Rig::over(Arc::new(store), 1 << 20);
    rig.store.trim(0, 300 << 20).unwrap();
    rig.store.write_zeroes(1 << 30, 40 << 20, false).unwrap();
    rig.store.sync().unwrap();
    let (mib, words) = (2048, rig.words());
    let discards =
        format!("discard 0+{0}, discard {0}+{0}, discard {1}+{2}", 128 * mib, 256 * mib, 44 * mib);
    let at = 1024 * mib;
    let zeros = format!(
        "write {at}+{0}, write {1}+{0}, write {2}+{3}",
        16 * mib,
        at + 16 * mib,
        at + 32 * mib,
        8 * mib
    );
    assert_eq!(words, format!("mark, {discards}, {zeros}, flush"));
    let file = fs::metadata(rig.dir.path().join("log")).unwrap();
    assert!(std::os::unix::fs::MetadataExt::blocks(&file) * 512 < 1 << 20, "zeros are holes");
}

#[test]
fn a_log_is_a_new_file() {
    let rig = Rig::over(durable(), 0);
    let again = LoggedStore::create(durable(), "v", &rig.dir.path().join("log"));
    let error = again.map(drop).unwrap_err();
    assert!(
        matches!(&error, StoreError::Io { source, .. }
        if source.kind() == std::io::ErrorKind::AlreadyExists),
        "{error}"
    );
}

#[test]
fn a_damaged_log_is_refused() {
    let rig = Rig::over(durable(), 0);
    rig.store.write_at(0, &[1; 1024]).unwrap();
    rig.store.sync().unwrap();
    let path = rig.dir.path().join("log");
    let whole = fs::read(&path).unwrap();
    let read = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let mut log = LogReader::open(&path)?;
        while log.next_entry()?.is_some() {}
        Ok(log.entries())
    };
    assert_eq!(read(&whole).map_err(|error: StoreError| error.to_string()), Ok(3));
    for (at, byte) in [(0, 1), (8, 2), (24, 1), (512 + 25, 255), (1024 + 7, 255), (1024 + 15, 255)]
    {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        assert_eq!(read(&bytes).unwrap_err().kind(), ErrorKind::Damaged, "byte {at}");
    }
    for len in [0, 10, 600, 1100, 2000] {
        let error = read(&whole[..len]).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Damaged | ErrorKind::Io), "{len}: {error}");
    }
}

#[test]
fn zeros_are_written_where_an_image_can_have_no_holes() {
    let rig = Rig::over(durable(), 0);
    let replay = rig.replay();
    let (size, mib) = (4 << 20, 1 << 20);
    for (offset, len) in [(0, 1), (100, mib), (7, 2 * mib + 5), (mib, 3 * mib), (size, 0)] {
        let mut expect = vec![7; index(size)];
        fs::write(rig.dir.path().join("image"), &expect).unwrap();
        replay.write_zeros(offset, len).unwrap();
        expect[index(offset)..index(offset + len)].fill(0);
        assert!(rig.image() == expect, "{len} at {offset}");
    }
}

/// Notices a log that goes on without a change that the store has taken.
#[test]
fn a_log_ends_with_a_change_that_cannot_be_read_back() {
    let store = Arc::new(FaultStore::new(Bytes::new(SIZE)));
    let rig = Rig::over(Arc::clone(&store) as Arc<dyn Store>, 1 << 20);
    store.fail_reads(0..SECTOR);
    rig.store.write_at(100, &[1; 100]).unwrap_err();
    store.heal();
    let path = rig.dir.path().join("log").display().to_string();
    let ended = format!(
        "the write log {path} has ended: injected by a test; stop the server, and start it with a new log"
    );
    assert_eq!(rig.store.write_at(0, &[1; 512]).unwrap_err().to_string(), ended);
    assert_eq!(rig.store.sync().unwrap_err().to_string(), ended);
    assert_eq!(rig.words(), "mark");
}

#[test]
fn a_part_of_a_sector_is_logged_with_its_sector_and_no_other() {
    let rig = Rig::over(durable(), 0);
    rig.store.write_at(5 * SECTOR + 100, &[1; 100]).unwrap();
    rig.store.sync().unwrap();
    assert_eq!(rig.words(), "mark, write 5+1, flush");
    assert_eq!(LogReader::open(&rig.dir.path().join("log")).unwrap().sector(), 512);
}

#[test]
fn a_resize_reaches_the_store_and_its_cut_sectors_the_log() {
    let rig = Rig::over(durable(), 0);
    let resize = |size| {
        rig.store.resize(Bytes::new(size)).unwrap();
        assert_eq!(rig.store.size(), Bytes::new(size));
        rig.words()
    };
    assert_eq!(resize(SIZE), "mark, mark");
    assert_eq!(resize(1000), "mark, mark, discard 2+126, mark");
    assert_eq!(resize(1024), "mark, mark, discard 2+126, mark, mark");
}

#[test]
fn durable_zeros_are_those_of_the_store_and_of_the_log() {
    for is_durable in [true, false] {
        let store = FaultStore::new(Bytes::new(SIZE));
        store.make_writes_durable(is_durable);
        let rig = Rig::over(Arc::new(store), 1 << 20);
        rig.store.write_at(0, &[1; 2048]).unwrap();
        rig.store.sync().unwrap();
        assert_eq!(rig.store.zero_durably(512, 1024, false).unwrap(), is_durable);
        let mut found = [7; 2048];
        assert!(rig.store.try_read_at(0, &mut found).unwrap());
        assert_eq!(found, [[1; 512], [0; 512], [0; 512], [1; 512]].as_flattened());
        let before = "mark, write 0+4, flush";
        let expect = if is_durable { format!("{before}, fua 1+2") } else { before.to_owned() };
        assert_eq!(rig.words(), expect);
    }
}

#[test]
fn reads_extents_and_space_are_those_of_the_store() {
    let rig = Rig::over(Arc::new(MemoryStore::new(Bytes::new(SIZE))), 0);
    rig.store.write_at(4096, &[1; 4096]).unwrap();
    let extents = [(4096, ExtentKind::Hole), (4096, ExtentKind::Data)];
    let expect = extents.map(|(len, kind)| Extent { len, kind });
    assert_eq!(rig.store.extents(0, 8192, 9).unwrap(), expect);
    assert_eq!(rig.store.allocated().unwrap(), Bytes::new(4096));
}

#[test]
fn a_read_that_would_wait_is_told_as_such() {
    let ((begun, _), (_, go)) = (channel(), channel());
    let store = MemoryStore::new(Bytes::new(SIZE));
    let slow = Slow { store, begun: Mutex::new(begun), go: Mutex::new(go) };
    let rig = Rig::over(Arc::new(slow), 0);
    assert!(!rig.store.try_read_at(0, &mut [0]).unwrap());
}
