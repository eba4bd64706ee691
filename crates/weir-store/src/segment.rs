//! One sparse file that holds a stretch of a volume.
//!
//! The file appears with the first write, in full length and without taking space;
//! what is behind its end, or in no file at all, is zeros. It is opened when it is
//! first touched, so a thousand idle volumes hold no descriptors.

use crate::file::SYNCS;
use crate::pieces::len_of;
use crate::store::{ExtentKind, ExtentList};
use crate::{Result, StoreError};
use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::{Errno, ReadWriteFlags};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_units::Bytes;

/// The source of zeros on a file system that cannot make them.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// The largest write that is given to the system at once. Its page cache keeps a write in folios as large as the
/// write, up to 2 MiB, and walks all blocks of a folio for each small write and sync that touches it later.
const PIECE: usize = 256 << 10;

/// The unit of [`MetadataExt::blocks`].
const STAT_BLOCK: u64 = 512;

/// The type of a file system in memory (`TMPFS_MAGIC` of `linux/magic.h`).
const TMPFS: i64 = 0x0102_1994;

#[derive(Debug)]
pub(crate) struct Segment {
    path: PathBuf,
    /// True if the file exists.
    present: AtomicBool,
    file: OnceLock<File>,
    /// The same file, opened once more for each further sync at a time.
    more: [OnceLock<File>; SYNCS - 1],
    /// True if the open file has no medium to wait for. Such a file system need
    /// not know how to read without waiting.
    in_memory: AtomicBool,
    /// True if something was changed since the last sync. A file that is found
    /// may have been changed by a process that was killed before its sync.
    dirty: AtomicBool,
    #[cfg(test)]
    pub(crate) stall: stall::Stall,
}

/// The parts of a new segment's file.
#[derive(Debug)]
pub(crate) struct Making<'a> {
    /// The length of the file.
    pub(crate) len: u64,
    /// Set before anyone can use a new file.
    pub(crate) names_changed: &'a AtomicBool,
}

impl Segment {
    pub(crate) fn new(path: PathBuf, present: bool) -> Self {
        Self {
            path,
            present: AtomicBool::new(present),
            file: OnceLock::new(),
            more: Default::default(),
            in_memory: AtomicBool::new(false),
            dirty: AtomicBool::new(present),
            #[cfg(test)]
            stall: stall::Stall::default(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn failed(&self, verb: &str, source: impl Into<io::Error>) -> StoreError {
        StoreError::io(verb, &self.path, source.into())
    }

    /// Returns the file, if it exists.
    fn existing(&self) -> Result<Option<&File>> {
        let (open, present) = (self.file.get(), self.is_present());
        #[cfg(test)]
        self.stall.meet();
        if open.is_some() || !present {
            return Ok(open);
        }
        let opened = OpenOptions::new().read(true).write(true).open(&self.path);
        Ok(self.unless_removed("open", opened)?.map(|file| self.keep_open(file)))
    }

    /// Returns the file at the path. A shrinking may have removed it just now.
    fn unless_removed<T>(&self, verb: &str, found: io::Result<T>) -> Result<Option<T>> {
        match found {
            Ok(found) => Ok(Some(found)),
            Err(e) if e.kind() == io::ErrorKind::NotFound && !self.is_present() => Ok(None),
            Err(e) => Err(self.failed(verb, e)),
        }
    }

    fn keep_open(&self, file: File) -> &File {
        let in_memory = rustix::fs::fstatfs(&file).is_ok_and(|s| s.f_type == TMPFS);
        self.in_memory.store(in_memory, Ordering::Relaxed);
        self.file.get_or_init(|| file)
    }

    /// Looks at its path if it is not open: nothing is opened just for this.
    fn metadata(&self) -> Result<Option<Metadata>> {
        let found = match self.file.get() {
            Some(file) => file.metadata(),
            None if self.is_present() => std::fs::metadata(&self.path),
            None => return Ok(None),
        };
        self.unless_removed("look at", found)
    }

    fn existing_or_new(&self, making: &Making) -> Result<&File> {
        if let Some(file) = self.existing()? {
            return Ok(file);
        }
        let mut options = OpenOptions::new();
        let opened = options.read(true).write(true).create(true).truncate(false).open(&self.path);
        let made = opened.and_then(|file| file.set_len(making.len).map(|()| file));
        let file = made.map_err(|e| self.failed("create", e))?;
        // A sync that knows of the file has to make its length durable.
        self.mark_dirty();
        making.names_changed.store(true, Ordering::Release);
        self.present.store(true, Ordering::Release);
        Ok(self.keep_open(file))
    }

    pub(crate) fn is_present(&self) -> bool {
        self.present.load(Ordering::Acquire)
    }

    /// Makes the file, if there is one, `len` bytes long unless it is longer; returns
    /// whether it was shorter. Durable after the next sync.
    pub(crate) fn lengthen(&self, len: u64) -> Result<bool> {
        let shorter = self.metadata()?.is_some_and(|found| found.len() < len);
        if shorter {
            self.set_len("lengthen", len)?;
        }
        Ok(shorter)
    }

    /// Forgets what is behind `len`. Durable after the next sync.
    pub(crate) fn cut(&self, len: u64) -> Result<()> {
        match self.metadata()? {
            Some(found) if found.len() > len => self.set_len("shorten", len),
            _ => Ok(()),
        }
    }

    fn set_len(&self, verb: &str, len: u64) -> Result<()> {
        let Some(file) = self.existing()? else { return Ok(()) };
        let done = file.set_len(len);
        self.mark_dirty();
        done.map_err(|e| self.failed(verb, e))
    }

    pub(crate) fn read(&self, mut at: u64, mut buf: &mut [u8]) -> Result<()> {
        let Some(file) = self.existing()? else {
            buf.fill(0);
            return Ok(());
        };
        while !buf.is_empty() {
            match file.read_at(buf, at) {
                Ok(0) => break,
                Ok(n) => {
                    at += n as u64;
                    buf = &mut buf[n..];
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.failed("read", e)),
            }
        }
        buf.fill(0);
        Ok(())
    }

    /// Reads what is in memory; `false` where the medium would be waited for, as it
    /// is for the first read, which opens the file.
    pub(crate) fn try_read(&self, mut at: u64, mut buf: &mut [u8]) -> Result<bool> {
        let Some(file) = self.file.get() else {
            buf.fill(0);
            return Ok(!self.is_present());
        };
        if self.in_memory.load(Ordering::Relaxed) {
            self.read(at, buf)?;
            return Ok(true);
        }
        while !buf.is_empty() {
            let mut parts = [io::IoSliceMut::new(buf)];
            match rustix::io::preadv2(file, &mut parts, at, ReadWriteFlags::NOWAIT) {
                Ok(0) => {
                    buf.fill(0);
                    break;
                }
                Ok(n) => {
                    at += n as u64;
                    buf = &mut buf[n..];
                }
                Err(Errno::INTR) => {}
                // Not there, or a file system that cannot tell.
                Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(false),
                Err(e) => return Err(self.failed("read", e)),
            }
        }
        Ok(true)
    }

    pub(crate) fn write(&self, at: u64, data: &[u8], making: &Making) -> Result<()> {
        let file = self.existing_or_new(making)?;
        let mut pieces = data.chunks(PIECE).zip((at..).step_by(PIECE));
        let written = pieces.try_for_each(|(piece, at)| file.write_all_at(piece, at));
        self.mark_dirty();
        written.map_err(|e| self.failed("write", e))
    }

    /// Zeroes and frees a range.
    pub(crate) fn punch(&self, at: u64, len: u64) -> Result<()> {
        let Some(file) = self.existing()? else { return Ok(()) };
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let done = match self.fallocate(file, flags, at, len) {
            Ok(true) => Ok(()),
            // Bytes behind the file's end are zeros already.
            Ok(false) => file.metadata().and_then(|m| {
                let end = m.len().min(at + len);
                write_zeros(file, at, end.saturating_sub(at))
            }),
            Err(e) => Err(e),
        };
        self.mark_dirty();
        done.map_err(|e| self.failed("trim", e))
    }

    /// Zeroes a range and keeps or takes its space.
    pub(crate) fn zero(&self, at: u64, len: u64, making: &Making) -> Result<()> {
        let file = self.existing_or_new(making)?;
        let done = match self.fallocate(file, FallocateFlags::ZERO_RANGE, at, len) {
            Ok(true) => Ok(()),
            Ok(false) => write_zeros(file, at, len),
            Err(e) => Err(e),
        };
        self.mark_dirty();
        done.map_err(|e| self.failed("write zeros to", e))
    }

    /// Makes zeros. Returns `false` if the file system has no such operation.
    fn fallocate(&self, file: &File, how: FallocateFlags, at: u64, len: u64) -> io::Result<bool> {
        loop {
            match rustix::fs::fallocate(file, how, at, len) {
                Ok(()) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(false),
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Appends the extents of a range. A file system that does not know its
    /// holes is all data.
    pub(crate) fn extents(&self, at: u64, len: u64, list: &mut ExtentList) -> Result<()> {
        let Some(file) = self.existing()? else {
            list.push(len, ExtentKind::Hole);
            return Ok(());
        };
        let (mut at, end) = (at, at + len);
        while at < end && !list.is_full() {
            let data = match rustix::fs::seek(file, SeekFrom::Data(at)) {
                Ok(found) => found.min(end),
                Err(Errno::NXIO) => end,
                Err(Errno::INVAL | Errno::OPNOTSUPP) => at,
                Err(e) => return Err(self.failed("find the holes of", e)),
            };
            list.push(data - at, ExtentKind::Hole);
            if data == end {
                break;
            }
            let hole = match rustix::fs::seek(file, SeekFrom::Hole(data)) {
                Ok(found) => found.min(end),
                Err(Errno::INVAL | Errno::OPNOTSUPP) => end,
                // Punched since: the next turn finds where the hole ends.
                Err(Errno::NXIO) => data,
                Err(e) => return Err(self.failed("find the holes of", e)),
            };
            list.push(hole - data, ExtentKind::Data);
            at = hole;
        }
        Ok(())
    }

    pub(crate) fn allocated(&self) -> Result<Bytes> {
        let blocks = self.metadata()?.map_or(0, |found| found.blocks());
        Ok(Bytes::new(blocks * STAT_BLOCK))
    }

    /// Removes the file; returns whether there was one. Who has it open still reads
    /// what it held.
    pub(crate) fn remove(&self) -> Result<bool> {
        // Before it goes: who finds no file sees why (`unless_removed`).
        if !self.present.swap(false, Ordering::AcqRel) {
            return Ok(false);
        }
        std::fs::remove_file(&self.path).map_err(|e| {
            self.present.store(true, Ordering::Release);
            self.failed("remove", e)
        })?;
        Ok(true)
    }

    /// Marks it as changed, after the change: a sync between the mark and the change
    /// would take the mark and leave the change.
    fn mark_dirty(&self) {
        self.dirty.store(true, Ordering::Release);
    }

    /// Returns whether something was changed since the last sync.
    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty.load(Ordering::Acquire)
    }

    /// Returns the file that a sync at `place` has to write, and takes the mark. It is taken last: a
    /// file that cannot be opened keeps it.
    pub(crate) fn take_dirty(&self, place: usize) -> Result<Option<&File>> {
        let file = self.open(place)?;
        if file.is_some() {
            self.dirty.swap(false, Ordering::AcqRel);
        }
        Ok(file)
    }

    /// Returns whether the file is open for a sync at `place`.
    pub(crate) fn is_open(&self, place: usize) -> bool {
        self.opened(place).get().is_some()
    }

    fn opened(&self, place: usize) -> &OnceLock<File> {
        if place == 0 { &self.file } else { &self.more[place - 1] }
    }

    /// Opens the file, if it exists, for a sync at `place`.
    pub(crate) fn open(&self, place: usize) -> Result<Option<&File>> {
        let own = self.existing()?;
        let cell = self.opened(place);
        if place == 0 || own.is_none() || cell.get().is_some() {
            return Ok(if place == 0 { own } else { cell.get() });
        }
        let opened = OpenOptions::new().read(true).write(true).open(&self.path);
        Ok(self.unless_removed("open", opened)?.map(|file| cell.get_or_init(|| file)))
    }
}

fn write_zeros(file: &File, at: u64, len: u64) -> io::Result<()> {
    for piece in crate::pieces::pieces(at, len, len_of(&ZEROS)) {
        file.write_all_at(&ZEROS[..piece.in_unit().len()], at + piece.at)?;
    }
    Ok(())
}

/// Makes a segment whose file is another that can do less.
#[cfg(test)]
pub(crate) fn kept_in(path: PathBuf, other: &str) -> Segment {
    let segment = Segment::new(path, false);
    let file = OpenOptions::new().read(true).write(true).open(other).unwrap();
    segment.keep_open(file);
    segment
}

/// Always full, and cannot be synced.
#[cfg(test)]
pub(crate) const FULL: &str = "/dev/full";

/// Has always length zero, takes every length, and cannot be synced or read without
/// waiting.
#[cfg(test)]
pub(crate) const UNSYNCABLE: &str = "/proc/self/comm";

/// A medium that stalls when a test says so.
#[cfg(test)]
pub(crate) mod stall {
    use crate::sync::locked;
    use std::sync::{Arc, Barrier, Mutex};

    #[derive(Debug, Default)]
    pub(crate) struct Stall(Mutex<Option<Arc<Stalled>>>);

    /// One operation that stalls.
    #[derive(Debug)]
    pub(crate) struct Stalled {
        /// Met when it does.
        pub(crate) begun: Barrier,
        /// To be met for it to go on.
        pub(crate) ended: Barrier,
    }

    impl Stall {
        /// Stalls the next operation that goes to the file.
        pub(crate) fn next(&self) -> Arc<Stalled> {
            let stalled = Stalled { begun: Barrier::new(2), ended: Barrier::new(2) };
            Arc::clone(locked(&self.0).insert(Arc::new(stalled)))
        }

        pub(crate) fn meet(&self) {
            let stalled = locked(&self.0).take();
            if let Some(stalled) = stalled {
                stalled.begun.wait();
                stalled.ended.wait();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_medium_is_its_own_kind_and_what_was_begun_stays_to_be_synced() {
        let segment = kept_in(PathBuf::from("data/00000"), FULL);
        let making = Making { len: 1, names_changed: &AtomicBool::new(false) };
        let error = segment.write(0, &[1], &making).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::NoSpace);
        assert_eq!(error.to_string(), "no space left: cannot write data/00000");
        assert!(segment.is_dirty());
        assert!(segment.take_dirty(0).unwrap().is_some());
        assert!(!segment.is_dirty());
    }

    #[test]
    fn reads_that_might_wait_are_left_to_callers_that_may_wait() {
        let segment = kept_in(PathBuf::from("data/00000"), UNSYNCABLE);
        let mut name = [0];
        assert!(!segment.try_read(0, &mut name).unwrap());
        segment.read(0, &mut name).unwrap();
        assert_ne!(name, [0]);
    }

    #[test]
    fn a_file_in_memory_is_never_waited_for() {
        let segment = Segment::new(PathBuf::from("data/00000"), false);
        let flags = rustix::fs::MemfdFlags::empty();
        let file = File::from(rustix::fs::memfd_create("segment", flags).unwrap());
        file.write_all_at(&[7], 0).unwrap();
        segment.keep_open(file);
        let mut found = [0xee; 2];
        assert!(segment.try_read(0, &mut found).unwrap());
        assert_eq!(found, [7, 0]);
    }

    #[test]
    fn a_write_of_several_pieces_is_stored_whole() {
        let dir = tempfile::tempdir().unwrap();
        let segment = Segment::new(dir.path().join("00000"), false);
        let data: Vec<u8> = (1..=251_u8).cycle().take(2 * PIECE + 77).collect();
        let names_changed = AtomicBool::new(false);
        let making = Making { len: 4 * len_of(&data), names_changed: &names_changed };
        segment.write(5, &data, &making).unwrap();
        let mut found = vec![0; data.len() + 6];
        segment.read(0, &mut found).unwrap();
        assert!(found[5..].starts_with(&data));
        assert_eq!((&found[..5], found.last()), (&[0; 5][..], Some(&0)));
    }

    #[test]
    fn a_file_is_opened_by_who_may_wait() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("00000");
        std::fs::write(&path, [7]).unwrap();
        let segment = Segment::new(path, true);
        assert!(!segment.try_read(0, &mut [0]).unwrap());
        assert!(segment.file.get().is_none());
    }

    /// Notices a cut that hides the loss of bytes from the next start.
    #[test]
    fn a_cut_does_not_lengthen_a_file_that_lost_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("00000");
        std::fs::write(&path, [7; 100]).unwrap();
        let segment = Segment::new(path.clone(), true);
        for (cut, expect) in [(200, 100), (100, 100), (50, 50)] {
            segment.cut(cut).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().len(), expect);
        }
    }

    /// Notices two syncs that share a file, of which only one gets the error of the system.
    #[test]
    fn each_sync_has_an_open_file_of_its_own_which_stays_open() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("00000");
        std::fs::write(&path, [7]).unwrap();
        let segment = Segment::new(path.clone(), true);
        let open = |place| segment.open(place).unwrap().unwrap();
        let files = [open(0), open(1), open(2)];
        std::fs::rename(&path, dir.path().join("away")).unwrap();
        for (place, file) in files.into_iter().enumerate() {
            assert!(std::ptr::eq(open(place), file));
            assert_eq!(files.iter().filter(|other| std::ptr::eq(**other, file)).count(), 1);
        }
    }

    #[test]
    fn zeros_are_written_where_the_file_system_cannot_make_them() {
        let file = tempfile::tempfile().unwrap();
        let len = 3 * ZEROS.len();
        file.write_all_at(&vec![7; len], 0).unwrap();
        write_zeros(&file, 5, len_of(&ZEROS) * 2).unwrap();
        let mut content = vec![0; len];
        file.read_exact_at(&mut content, 0).unwrap();
        let zeros = content.iter().enumerate().filter(|(_, b)| **b == 0).map(|(i, _)| i);
        assert!(zeros.eq(5..5 + 2 * ZEROS.len()));
    }
}
