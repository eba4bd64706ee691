use super::*;
use crate::ErrorKind;
use crate::segment::stall::Stalled;
use crate::segment::{FULL, UNSYNCABLE, kept_in};
use crate::store::ExtentKind::{Data, Hole};
use std::fs;
use std::fs::OpenOptions;
use std::sync::Barrier;
use std::thread;

pub(super) fn small(dir: &Path, size: u64) -> FileStore {
    FileStore::open_segmented(dir, Bytes::new(size), Bytes::new(1 << 16)).unwrap()
}

fn files(dir: &Path) -> Vec<String> {
    disk::names_in(dir).unwrap().unwrap()
}

/// The files and the names that a sync would have to wait for.
pub(super) fn owed(store: &FileStore) -> (usize, bool) {
    let layout = store.layout();
    let dirty = layout
        .segments
        .iter()
        .filter(|s| s.is_dirty() && s.take_dirty(0).unwrap().is_some())
        .count();
    (dirty, store.names_changed.load(Ordering::Acquire))
}

/// Keeps a segment in a file that can do less.
pub(super) fn keep_in(store: &FileStore, number: usize, other: &str) {
    let segment = kept_in(store.dir.join(segment_name(number as u64)), other);
    let mut layout = exclusive(&store.layout);
    Arc::get_mut(&mut layout).unwrap().segments[number] = Arc::new(segment);
}

pub(super) fn lost(dir: &Path) -> String {
    format!("an earlier sync of {} failed, bytes written before it may be lost", dir.display())
}

fn read(store: &impl Store, offset: u64, len: usize) -> Vec<u8> {
    let mut buf = vec![0xee; len];
    store.read_at(offset, &mut buf).unwrap();
    buf
}

#[test]
fn the_largest_volume_of_the_clouds_costs_nothing_and_holds_data_at_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let size = Bytes::gib(32 << 10);
    let store = FileStore::open(dir.path(), size).unwrap();
    assert_eq!(store.allocated().unwrap(), Bytes::ZERO);
    assert!(files(dir.path()).is_empty());
    let last = size.get() - 4096;
    assert_eq!(read(&store, last, 4096), [0; 4096]);
    store.write_at(last, &[7; 4096]).unwrap();
    // Over a border of segments, too.
    store.write_at((3 << 40) - 4096, &[8; 8192]).unwrap();
    store.sync().unwrap();
    assert_eq!(read(&store, last, 4096), [7; 4096]);
    assert_eq!(read(&store, (3 << 40) - 4096, 8192), [8; 8192]);
    assert_eq!(files(dir.path()), ["00002", "00003", "00031"]);
    let allocated = store.allocated().unwrap();
    assert!(allocated > Bytes::ZERO && allocated <= Bytes::kib(64), "{allocated:?}");
    let extents = store.extents(0, size.get(), usize::MAX).unwrap();
    let kinds: Vec<_> = extents.iter().map(|e| e.kind).collect();
    assert_eq!(kinds, [Hole, Data, Hole, Data]);
    assert_eq!(extents[1].len, 8192);
    assert_eq!(store.extents(0, size.get(), 1).unwrap(), extents[..1]);
    store.trim(0, size.get()).unwrap();
    assert_eq!(read(&store, last, 4096), [0; 4096]);
    assert_eq!(store.allocated().unwrap(), Bytes::ZERO);
}

#[test]
fn sizes_have_an_end() {
    let dir = tempfile::tempdir().unwrap();
    let too_large = Bytes::new(MAX_SIZE.get() + 1);
    let error = FileStore::open(dir.path(), too_large).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert_eq!(
        error.to_string(),
        "a volume of 1125899906842625 B is larger than the largest possible, 1024 TiB"
    );
    let store = FileStore::open(dir.path(), MAX_SIZE).unwrap();
    assert_eq!(store.resize(too_large).unwrap_err().kind(), ErrorKind::TooLarge);
    assert_eq!(store.size(), MAX_SIZE);
}

#[test]
fn a_lost_or_short_segment_reads_as_zeros() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(dir.path(), 1 << 18);
    store.write_at(0, &[1; 1 << 18]).unwrap();
    drop(store);
    fs::remove_file(dir.path().join("00001")).unwrap();
    OpenOptions::new().write(true).open(dir.path().join("00002")).unwrap().set_len(100).unwrap();
    let store = small(dir.path(), 1 << 18);
    let mut expect = vec![1; 1 << 18];
    expect[1 << 16..2 << 16].fill(0);
    expect[(2 << 16) + 100..3 << 16].fill(0);
    assert!(read(&store, 0, 1 << 18) == expect);
    let mut buf = vec![0xee; 1 << 18];
    assert!(!store.try_read_at(0, &mut buf).unwrap() || buf == expect);
}

#[test]
fn something_else_in_the_place_of_a_segment_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("00001")).unwrap();
    let error = FileStore::open(dir.path(), Bytes::gib(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged);
    assert_eq!(error.to_string(), format!("{}/00001 is not a file", dir.path().display()));
}

#[test]
fn other_files_beside_the_segments_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let others = ["+0001", "0001", "000001", "00001.bak", "99999999999999999999"];
    for name in others {
        fs::write(dir.path().join(name), name).unwrap();
    }
    let store = small(dir.path(), 1 << 18);
    assert_eq!(read(&store, 0, 1 << 18), vec![0; 1 << 18]);
    store.resize(Bytes::ZERO).unwrap();
    for name in others {
        assert_eq!(fs::read_to_string(dir.path().join(name)).unwrap(), name);
    }
}

#[test]
fn bytes_behind_the_end_after_a_crash_stay_invisible_when_the_volume_grows() {
    let dir = tempfile::tempdir().unwrap();
    small(dir.path(), 1 << 18).write_at(0, &[1; 1 << 18]).unwrap();
    // As after a shrinking that came no further than the size.
    let store = small(dir.path(), 100_000);
    assert_eq!(files(dir.path()).len(), 4);
    store.resize(Bytes::new(1 << 18)).unwrap();
    assert_eq!(files(dir.path()), ["00000", "00001"]);
    assert!(read(&store, 0, 100_000).iter().all(|b| *b == 1));
    assert!(read(&store, 100_000, (1 << 18) - 100_000).iter().all(|b| *b == 0));
}

#[test]
fn a_sync_takes_what_was_changed_and_new_names_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(dir.path(), 1 << 18);
    store.write_at(0, &[1; 1 << 17]).unwrap();
    assert_eq!(owed(&store), (2, true));
    store.write_at(0, &[1]).unwrap();
    store.sync().unwrap();
    assert_eq!(owed(&store), (0, false));
    let _ = read(&store, 0, 1 << 17);
    assert_eq!(owed(&store), (0, false));
    store.trim(0, 1 << 17).unwrap();
    assert_eq!(owed(&store), (2, false));
    store.write_zeroes(1 << 17, 1 << 17, false).unwrap();
    assert_eq!(owed(&store), (2, true));
}

#[test]
fn the_first_sync_covers_what_an_earlier_process_wrote() {
    let dir = tempfile::tempdir().unwrap();
    small(dir.path(), 1 << 18).write_at(0, &[1; 1 << 17]).unwrap();
    let store = small(dir.path(), 1 << 18);
    assert_eq!(owed(&store), (2, true));
    // A growing stands on what was written and on what was removed before it.
    let store = small(dir.path(), 100_000);
    store.resize(Bytes::new(1 << 18)).unwrap();
    assert_eq!(owed(&store), (0, false));
    fs::remove_file(dir.path().join("00000")).unwrap();
    fs::remove_file(dir.path().join("00001")).unwrap();
    let store = small(dir.path(), 0);
    assert_eq!(owed(&store), (0, true));
    store.resize(Bytes::new(1 << 18)).unwrap();
    assert_eq!(owed(&store), (0, false));
}

#[test]
fn a_sync_that_could_not_begin_has_lost_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (data, away) = (dir.path().join("data"), dir.path().join("away"));
    fs::create_dir(&data).unwrap();
    small(&data, 1 << 18).write_at(0, &[1; 1 << 17]).unwrap();
    let store = small(&data, 1 << 18);
    store.write_at(0, &[2]).unwrap();
    // A file that cannot be opened for now, and after it the folder.
    fs::rename(data.join("00001"), &away).unwrap();
    let error = store.sync().unwrap_err();
    assert_eq!(error.to_string(), format!("cannot open {}/00001", data.display()));
    fs::rename(&away, data.join("00001")).unwrap();
    let _ = read(&store, 1 << 16, 1);
    fs::rename(&data, &away).unwrap();
    let error = store.sync().unwrap_err();
    assert_eq!(error.to_string(), format!("cannot open {}", data.display()));
    assert_eq!(owed(&store), (0, true));
    fs::rename(&away, &data).unwrap();
    store.sync().unwrap();
    assert_eq!(owed(&store), (0, false));
    // The folder stays open.
    fs::rename(&data, &away).unwrap();
    store.names_changed.store(true, Ordering::Release);
    store.sync().unwrap();
}

#[test]
fn a_file_whose_sync_failed_is_synced_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(dir.path(), 1 << 18);
    store.write_at(0, &[1; 3 << 16]).unwrap();
    store.sync().unwrap();
    drop(store);
    let store = small(dir.path(), 1 << 18);
    fs::rename(dir.path().join("00001"), dir.path().join("away")).unwrap();
    store.sync().unwrap_err();
    fs::rename(dir.path().join("away"), dir.path().join("00001")).unwrap();
    assert_eq!(owed(&store), (2, true), "all but the first");
}

#[test]
fn a_full_medium_fails_the_write_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(dir.path(), 1 << 18);
    store.write_at(0, &[1; 1 << 16]).unwrap();
    keep_in(&store, 1, FULL);
    let error = store.write_at(0, &[2; 1 << 17]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    assert_eq!(error.hint(), Some("free space on the file system"));
    store.write_at(2 << 16, &[3; 1 << 16]).unwrap();
    assert_eq!(read(&store, 2 << 16, 1 << 16), vec![3; 1 << 16]);
}

#[test]
fn after_a_failed_sync_no_later_one_succeeds() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(dir.path(), 1 << 18);
    store.sync().unwrap();
    // A device takes writes or not, but is never synced.
    keep_in(&store, 1, FULL);
    store.write_at(1 << 16, &[1]).unwrap_err();
    let first = store.sync().unwrap_err();
    assert_eq!(first.to_string(), format!("cannot sync {}/00001", dir.path().display()));
    let second = store.sync().unwrap_err();
    assert_eq!(second.kind(), ErrorKind::Io);
    assert_eq!(second.to_string(), lost(dir.path()));
}

/// Notices a sync that leaves out the names of new files.
#[test]
fn a_folder_whose_sync_failed_fails_the_sync() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(dir.path(), 1 << 18);
    // A device, which is never synced.
    store.folder.set(File::open("/dev/null").unwrap()).unwrap();
    store.write_at(0, &[1]).unwrap();
    let first = store.sync().unwrap_err();
    assert_eq!(first.to_string(), format!("cannot sync {}", dir.path().display()));
    assert_eq!(store.sync().unwrap_err().to_string(), lost(dir.path()));
}

#[test]
fn a_file_that_was_not_synced_in_its_new_length_does_not_carry_a_new_size() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(dir.path(), 100_000);
    store.sync().unwrap();
    keep_in(&store, 1, UNSYNCABLE);
    let grown = || store.prepare(Bytes::new(1 << 18)).unwrap_err().to_string();
    assert_eq!(grown(), format!("cannot sync {}/00001", dir.path().display()));
    assert_eq!(grown(), lost(dir.path()));
    assert_eq!(store.resize(Bytes::new(1 << 18)).unwrap_err().to_string(), lost(dir.path()));
    assert_eq!(store.size(), Bytes::new(100_000));
}

#[test]
fn a_segment_that_grew_after_its_sync_is_not_there_in_full_length() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(dir.path(), 100_000);
    store.prepare(Bytes::new(1 << 18)).unwrap();
    // It appears in its share of the old size, and is synced.
    store.write_at(0, &[1; 100_000]).unwrap();
    store.sync().unwrap();
    assert_eq!(store.durable_segments(), [0, 1].into());
    store.adopt(Bytes::new(1 << 18)).unwrap();
    assert_eq!(fs::metadata(dir.path().join("00001")).unwrap().len(), 1 << 16);
    assert_eq!(store.durable_segments(), [0].into());
    store.sync().unwrap();
    assert_eq!(store.durable_segments(), [0, 1].into());
}

#[test]
fn a_file_that_cannot_be_removed_now_is_removed_later() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(dir.path(), 1 << 18);
    store.write_at(0, &[1; 1 << 18]).unwrap();
    let (file, away) = (dir.path().join("00002"), dir.path().join("away"));
    fs::rename(&file, &away).unwrap();
    fs::create_dir(&file).unwrap();
    let error = store.resize(Bytes::new(1 << 16)).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot remove {}", file.display()));
    assert_eq!(store.size(), Bytes::new(1 << 16));
    store.sync().unwrap();
    assert_eq!(store.durable_segments(), [0].into(), "the others are to go");
    assert_eq!(store.resize(Bytes::new(1 << 18)).unwrap_err().kind(), ErrorKind::Io);
    fs::remove_dir(&file).unwrap();
    fs::rename(&away, &file).unwrap();
    store.resize(Bytes::new(1 << 18)).unwrap();
    assert_eq!(files(dir.path()), ["00000"]);
    assert!(read(&store, 1 << 16, 3 << 16).iter().all(|b| *b == 0));
}

/// Stalls `operation` at the second segment, and runs `meanwhile` while it does.
fn while_stalled<T: Send>(
    store: &FileStore,
    operation: impl FnOnce() -> Result<T> + Send,
    meanwhile: impl FnOnce(),
) -> Result<T> {
    let stalled: Arc<Stalled> = store.layout().segments[1].stall.next();
    thread::scope(|scope| {
        let operation = scope.spawn(operation);
        stalled.begun.wait();
        let stall = Ended(&stalled);
        // Else a resize would wait for the operation, and that for the test.
        assert!(store.layout.try_write().is_ok(), "the host's thread waits here");
        meanwhile();
        drop(stall);
        operation.join().unwrap()
    })
}

/// Ends a stall, also that of a test that failed.
pub(super) struct Ended<'a>(pub(super) &'a Stalled);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.ended.wait();
    }
}

#[test]
fn no_resize_and_no_host_waits_for_a_read_that_stalls() {
    let dir = tempfile::tempdir().unwrap();
    let all = Bytes::new(1 << 18);
    let stall = |warm: bool, operation: fn(&FileStore) -> Result<()>, sizes: &[u64]| {
        small(dir.path(), all.get()).write_at(0, &[1; 1 << 18]).unwrap();
        let store = small(dir.path(), all.get());
        if warm {
            let _ = read(&store, 0, 1 << 18);
        }
        let resize = || {
            for size in sizes {
                store.resize(Bytes::new(*size)).unwrap();
                assert_eq!(store.size(), Bytes::new(*size));
                store.try_read_at(0, &mut [0]).unwrap();
                store.allocated().unwrap();
            }
        };
        while_stalled(&store, || operation(&store), resize).map_err(|e| e.to_string())
    };
    let read: fn(&FileStore) -> Result<()> = |store| {
        let mut buf = vec![0xee; 1 << 17];
        store.read_at(0, &mut buf)?;
        assert!(buf.iter().all(|b| *b < 2), "old bytes, or what the volume has after the resize");
        Ok(())
    };
    let extents: fn(&FileStore) -> Result<()> = |store| store.extents(0, 1 << 17, 9).map(|_| ());
    let gone = "131072 bytes at offset 0 reach past the end of the volume (100 bytes)";
    for operation in [read, extents] {
        // The file may be open when it is removed, or not yet.
        for warm in [true, false] {
            assert_eq!(stall(warm, operation, &[all.get() + 100]), Ok(()));
            assert_eq!(stall(warm, operation, &[100]), Err(gone.to_owned()));
            assert_eq!(stall(warm, operation, &[100, all.get()]), Ok(()));
        }
    }
    assert_eq!(stall(false, |store| store.sync(), &[]), Ok(()));
}

#[test]
fn no_host_waits_for_a_change_that_stalls() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(dir.path(), 1 << 18);
    store.write_at(0, &[1; 1 << 18]).unwrap();
    let changes: [fn(&FileStore) -> Result<()>; 3] = [
        |store| store.write_at(0, &[2; 1 << 17]),
        |store| store.trim(0, 1 << 17),
        |store| store.write_zeroes(0, 1 << 17, false),
    ];
    for change in changes {
        let host = || {
            assert_eq!(store.size(), Bytes::new(1 << 18));
            store.try_read_at(1 << 17, &mut [0]).unwrap();
            store.allocated().unwrap();
            // A resize does: nothing is to land behind its end.
            assert!(store.changing.try_write().is_err());
        };
        while_stalled(&store, || change(&store), host).unwrap();
    }
}

/// A writer that goes on until it is refused, in the midst of a write or between
/// two, leaves nothing behind the new end.
#[track_caller]
fn check_shrinking_under_a_writer(store: &impl Store, write_len: usize) {
    let (size, half) = (store.size(), store.size().get() / 2);
    let data = vec![1; write_len];
    for round in 0..20 {
        let begin = Barrier::new(2);
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                begin.wait();
                let offsets = (half..size.get()).step_by(write_len).cycle();
                let mut refused = offsets.filter_map(|at| store.write_at(at, &data).err());
                refused.next().map(|e| e.kind())
            });
            begin.wait();
            store.resize(Bytes::new(half)).unwrap();
            assert_eq!(writer.join().unwrap(), Some(ErrorKind::OutOfRange));
        });
        store.resize(size).unwrap();
        assert!(read(store, half, index(half)).iter().all(|b| *b == 0), "round {round}");
    }
}

#[test]
fn nothing_lands_behind_the_end_of_a_shrinking_volume() {
    let dir = tempfile::tempdir().unwrap();
    check_shrinking_under_a_writer(&small(dir.path(), 1 << 20), 4096);
    check_shrinking_under_a_writer(&small(dir.path(), 1 << 20), 1 << 19);
    check_shrinking_under_a_writer(&crate::MemoryStore::new(Bytes::mib(16)), 4096);
    check_shrinking_under_a_writer(&crate::MemoryStore::new(Bytes::mib(16)), 8 << 20);
    check_shrinking_under_a_writer(&crate::PagedStore::in_memory(Bytes::mib(16)), 4096);
}

#[test]
fn names_of_files_that_no_volume_has_are_not_those_of_segments() {
    let number = |own: u64| segment_number(&segment_name(own), 1024);
    assert_eq!((number(0), number(1023), number(1024)), (Some(0), Some(1023), None));
}

/// Notices a file whose name makes room for as many segments as its number says.
#[test]
fn a_file_with_a_number_that_no_segment_has_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let stray = dir.path().join("999999999999");
    std::fs::write(&stray, "stray").unwrap();
    let store = FileStore::open(dir.path(), Bytes::gib(1)).unwrap();
    store.write_at(0, &[7; 512]).unwrap();
    store.sync().unwrap();
    assert_eq!(store.layout().segments.len(), 1);
    assert_eq!(std::fs::read(&stray).unwrap(), b"stray");
}

#[test]
fn a_resize_to_the_present_size_waits_for_no_medium() {
    let dir = tempfile::tempdir().unwrap();
    let store = small(dir.path(), 1 << 18);
    store.write_at(0, &[1]).unwrap();
    store.resize(Bytes::new(1 << 18)).unwrap();
    assert_eq!(owed(&store), (1, true));
}
