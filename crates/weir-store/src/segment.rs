//! One sparse file that holds a stretch of a volume.
//!
//! The file appears with the first write, in full length and without taking space;
//! what is behind its end, or in no file at all, is zeros. It is opened when it is
//! first touched, so a thousand idle volumes hold no descriptors.

use crate::pieces::len_of;
use crate::store::{ExtentKind, ExtentList};
use crate::{Result, StoreError};
use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::{Errno, ReadWriteFlags};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use weir_units::Bytes;

/// Where zeros come from on a file system that cannot make them.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// What [`MetadataExt::blocks`] counts in.
const STAT_BLOCK: u64 = 512;

#[derive(Debug)]
pub(crate) struct Segment {
    path: PathBuf,
    /// Whether the file exists.
    present: AtomicBool,
    file: OnceLock<Arc<File>>,
    /// Whether something was changed since the last sync. A file that is found
    /// may have been changed by a process that was killed before its sync.
    dirty: AtomicBool,
    /// Set once the file system refused to read without waiting.
    always_waits: AtomicBool,
}

/// What is needed to make a segment's file.
#[derive(Debug)]
pub(crate) struct Making<'a> {
    /// How long it is to be.
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
            dirty: AtomicBool::new(present),
            always_waits: AtomicBool::new(false),
        }
    }

    fn failed(&self, verb: &str, source: impl Into<io::Error>) -> StoreError {
        StoreError::io(verb, &self.path, source.into())
    }

    /// The file, if it exists.
    fn existing(&self) -> Result<Option<&Arc<File>>> {
        if let Some(file) = self.file.get() {
            return Ok(Some(file));
        }
        if !self.present.load(Ordering::Acquire) {
            return Ok(None);
        }
        let opened = OpenOptions::new().read(true).write(true).open(&self.path);
        let file = opened.map_err(|e| self.failed("open", e))?;
        Ok(Some(self.file.get_or_init(|| Arc::new(file))))
    }

    fn existing_or_new(&self, making: &Making) -> Result<&Arc<File>> {
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
        Ok(self.file.get_or_init(|| Arc::new(file)))
    }

    pub(crate) fn is_present(&self) -> bool {
        self.present.load(Ordering::Acquire)
    }

    /// Makes the file, if there is one, durably `len` bytes long unless it is longer.
    pub(crate) fn lengthen(&self, len: u64) -> Result<()> {
        if !self.is_present() {
            return Ok(());
        }
        // By its path: a file that is long enough is not opened for this.
        let found = std::fs::metadata(&self.path).map_err(|e| self.failed("look at", e))?;
        if found.len() >= len {
            return Ok(());
        }
        let Some(file) = self.existing()? else { return Ok(()) };
        let lengthened = file.set_len(len).and_then(|()| file.sync_all());
        lengthened.map_err(|e| self.failed("lengthen", e))
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

    /// Reads what is in memory; `false` where the medium would be waited for.
    pub(crate) fn try_read(&self, mut at: u64, mut buf: &mut [u8]) -> Result<bool> {
        let Some(file) = self.existing()? else {
            buf.fill(0);
            return Ok(true);
        };
        while !buf.is_empty() && !self.always_waits.load(Ordering::Relaxed) {
            let mut parts = [io::IoSliceMut::new(buf)];
            match rustix::io::preadv2(file, &mut parts, at, ReadWriteFlags::NOWAIT) {
                Ok(0) => {
                    buf.fill(0);
                    return Ok(true);
                }
                Ok(n) => {
                    at += n as u64;
                    buf = &mut buf[n..];
                }
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                    self.always_waits.store(true, Ordering::Relaxed);
                }
                Err(e) => return Err(self.failed("read", e)),
            }
        }
        self.read(at, buf)?;
        Ok(true)
    }

    pub(crate) fn write(&self, at: u64, data: &[u8], making: &Making) -> Result<()> {
        let file = self.existing_or_new(making)?;
        let written = file.write_all_at(data, at);
        self.mark_dirty();
        written.map_err(|e| self.failed("write", e))
    }

    /// Zeroes and frees a range.
    pub(crate) fn punch(&self, at: u64, len: u64) -> Result<()> {
        let Some(file) = self.existing()? else { return Ok(()) };
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let done = match self.fallocate(file, flags, at, len) {
            Ok(true) => Ok(()),
            // What is behind the file's end is zeros already.
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

    /// `false` where the file system has no such operation.
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
        let Some(file) = self.existing()? else { return Ok(Bytes::ZERO) };
        let metadata = file.metadata().map_err(|e| self.failed("look at", e))?;
        Ok(Bytes::new(metadata.blocks() * STAT_BLOCK))
    }

    /// Durably forgets what is behind `len`.
    pub(crate) fn cut(&self, len: u64) -> Result<()> {
        let Some(file) = self.existing()? else { return Ok(()) };
        let cut = file.metadata().and_then(|m| {
            if m.len() <= len {
                return Ok(());
            }
            file.set_len(len)?;
            file.sync_all()
        });
        cut.map_err(|e| self.failed("shorten", e))
    }

    /// Removes the file; returns whether there was one.
    pub(crate) fn remove(&self) -> Result<bool> {
        if !self.present.load(Ordering::Acquire) {
            return Ok(false);
        }
        std::fs::remove_file(&self.path).map_err(|e| self.failed("remove", e))?;
        Ok(true)
    }

    /// After the change, not before: a sync between the mark and the change
    /// would take the mark and leave the change.
    fn mark_dirty(&self) {
        self.dirty.store(true, Ordering::Release);
    }

    /// What a sync has to wait for.
    pub(crate) fn take_dirty(&self) -> Result<Option<DirtyFile>> {
        if !self.dirty.load(Ordering::Acquire) {
            return Ok(None);
        }
        let Some(file) = self.existing()? else { return Ok(None) };
        let dirty = self.dirty.swap(false, Ordering::AcqRel);
        Ok(dirty.then(|| DirtyFile { file: Arc::clone(file), path: self.path.clone() }))
    }
}

/// A file with changes that may not be durable.
#[derive(Debug)]
pub(crate) struct DirtyFile {
    file: Arc<File>,
    path: PathBuf,
}

impl DirtyFile {
    pub(crate) fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|e| StoreError::io("sync", &self.path, e))
    }
}

fn write_zeros(file: &File, at: u64, len: u64) -> io::Result<()> {
    for piece in crate::pieces::pieces(at, len, len_of(&ZEROS)) {
        file.write_all_at(&ZEROS[..piece.in_unit().len()], at + piece.at)?;
    }
    Ok(())
}

/// A segment whose file is a device that is always full and cannot be synced.
#[cfg(test)]
pub(crate) fn always_full(path: PathBuf) -> Segment {
    let segment = Segment::new(path, false);
    let device = OpenOptions::new().read(true).write(true).open("/dev/full").unwrap();
    segment.file.set(Arc::new(device)).unwrap();
    segment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_medium_is_its_own_kind_and_what_was_begun_stays_to_be_synced() {
        let segment = always_full(PathBuf::from("data/00000"));
        let making = Making { len: 1, names_changed: &AtomicBool::new(false) };
        let error = segment.write(0, &[1], &making).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::NoSpace);
        assert_eq!(error.to_string(), "no space left: cannot write data/00000");
        assert!(segment.take_dirty().unwrap().is_some());
        assert!(segment.take_dirty().unwrap().is_none());
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
