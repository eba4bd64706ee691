//! A store on a block device or in a file of fixed size, held for itself.

use crate::error::BackendError;
use rustix::fs::{FallocateFlags, FlockOperation, OFlags, SeekFrom, fallocate, flock, seek};
use rustix::io::{Errno, ReadWriteFlags};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSliceMut};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use weir_store::{Extent, ExtentKind, ExtentList, Store, StoreError};
use weir_units::Bytes;

type Result<T> = std::result::Result<T, StoreError>;

/// The zeros that are written at once where the system cannot zero a range.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
/// Writes that are worth storing at once.
const DEPTH: usize = 32;

/// A store on a block device or in a file of fixed size.
#[derive(Debug)]
pub struct HeldFile {
    path: PathBuf,
    file: File,
    size: u64,
    is_device: bool,
    /// The first failure of a sync.
    failed: Mutex<Option<io::ErrorKind>>,
}

impl HeldFile {
    /// Opens it, so that nobody else who asks gets it meanwhile.
    ///
    /// # Errors
    ///
    /// [`BackendError::File`] if it is not there, is something else, is read-only, empty, mounted, or
    /// held by another process.
    pub fn open(path: &Path) -> std::result::Result<Self, BackendError> {
        let wrong = |reason: &str| Err(BackendError::File(reason.to_owned()));
        let system = |verb: &'static str| {
            move |error: io::Error| BackendError::File(format!("cannot {verb} it: {error}"))
        };
        let kind = std::fs::metadata(path).map_err(system("find"))?.file_type();
        let is_device = kind.is_block_device();
        if !is_device && !kind.is_file() {
            return wrong("it is neither a block device nor a file");
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        if is_device {
            // Linux then refuses a device that is mounted, or that another holds in this way.
            options.custom_flags(OFlags::EXCL.bits().cast_signed());
        }
        let file = match options.open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                return wrong(
                    "it is mounted or used by another program; unmount it or stop that program",
                );
            }
            Err(error) => return Err(system("open")(error)),
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return wrong("another program has locked it; stop that program");
            }
            Err(errno) => return Err(system("lock")(errno.into())),
        }
        let size = seek(&file, SeekFrom::End(0));
        let size = size.map_err(|errno| system("find the size of")(errno.into()))?;
        if size == 0 {
            return wrong("it is empty; give it its size first, for example with truncate -s 10G");
        }
        Ok(Self { path: path.to_owned(), file, size, is_device, failed: Mutex::default() })
    }

    /// Uses only the first `size` bytes.
    #[must_use]
    pub fn shortened(self, size: Bytes) -> Self {
        Self { size: size.get().min(self.size), ..self }
    }

    /// Returns whether a sync failed: written bytes may be lost since.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failure().is_some()
    }

    fn failure(&self) -> MutexGuard<'_, Option<io::ErrorKind>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Syncs with `sync`. A system that fails to write what it had accepted says so once and forgets
    /// the bytes, so after one failure every sync fails until the file is opened again.
    fn sync_with(&self, sync: impl FnOnce() -> io::Result<()>) -> Result<()> {
        let mut failure = self.failure();
        if let Some(kind) = *failure {
            let path = self.path.display();
            let context =
                format!("an earlier sync of {path} failed, bytes written before it may be lost");
            return Err(StoreError::Io { context, source: kind.into() });
        }
        sync().map_err(|error| {
            *failure = Some(error.kind());
            self.failed("sync", error)
        })
    }

    fn check(&self, offset: u64, len: u64) -> Result<()> {
        match offset.checked_add(len) {
            Some(end) if end <= self.size => Ok(()),
            _ => Err(StoreError::OutOfRange { offset, len, size: self.size }),
        }
    }

    fn failed(&self, verb: &str, source: io::Error) -> StoreError {
        let context = format!("cannot {verb} {}", self.path.display());
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                StoreError::NoSpace { context, source }
            }
            _ => StoreError::Io { context, source },
        }
    }

    /// Zeroes a range by the system. Returns `false` if it cannot.
    fn zero(&self, how: FallocateFlags, offset: u64, len: u64) -> io::Result<bool> {
        loop {
            match fallocate(&self.file, how | FallocateFlags::KEEP_SIZE, offset, len) {
                Ok(()) => return Ok(true),
                Err(Errno::INTR) => {}
                // A block device also refuses ranges that are not of its sectors.
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => return Ok(false),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn write_zeros(&self, mut offset: u64, len: u64) -> io::Result<()> {
        let end = offset + len;
        while offset < end {
            let part = usize::try_from(end - offset).unwrap_or(usize::MAX).min(ZEROS.len());
            self.file.write_all_at(&ZEROS[..part], offset)?;
            offset += part as u64;
        }
        Ok(())
    }
}

impl Store for HeldFile {
    fn size(&self) -> Bytes {
        Bytes::new(self.size)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.check(offset, buf.len() as u64)?;
        self.file.read_exact_at(buf, offset).map_err(|error| self.failed("read", error))
    }

    fn try_read_at(&self, mut offset: u64, mut buf: &mut [u8]) -> Result<bool> {
        self.check(offset, buf.len() as u64)?;
        while !buf.is_empty() {
            let mut parts = [IoSliceMut::new(buf)];
            match rustix::io::preadv2(&self.file, &mut parts, offset, ReadWriteFlags::NOWAIT) {
                Ok(0) => return Ok(false),
                Ok(n) => {
                    offset += n as u64;
                    buf = &mut buf[n..];
                }
                Err(Errno::INTR) => {}
                // Not in memory, or a file system that cannot tell.
                Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(false),
                Err(errno) => return Err(self.failed("read", errno.into())),
            }
        }
        Ok(true)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.check(offset, data.len() as u64)?;
        self.file.write_all_at(data, offset).map_err(|error| self.failed("write", error))
    }

    fn write_zeroes(&self, offset: u64, len: u64, may_trim: bool) -> Result<()> {
        self.check(offset, len)?;
        if len == 0 {
            return Ok(());
        }
        let (punch, zero) = (FallocateFlags::PUNCH_HOLE, FallocateFlags::ZERO_RANGE);
        let ways: &[FallocateFlags] = if may_trim { &[punch, zero] } else { &[zero] };
        for how in ways {
            if self.zero(*how, offset, len).map_err(|error| self.failed("zero", error))? {
                return Ok(());
            }
        }
        self.write_zeros(offset, len).map_err(|error| self.failed("write zeros to", error))
    }

    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        self.write_zeroes(offset, len, true)
    }

    fn sync(&self) -> Result<()> {
        self.sync_with(|| self.file.sync_data())
    }

    fn resize(&self, new: Bytes) -> Result<()> {
        if new.get() == self.size {
            return Ok(());
        }
        Err(self.failed("resize", io::ErrorKind::Unsupported.into()))
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>> {
        self.check(offset, len)?;
        let mut list = ExtentList::new(max);
        let (mut at, end) = (offset, offset + len);
        // Linux tells no holes of a device.
        while at < end && !self.is_device && !list.is_full() {
            let data = match seek(&self.file, SeekFrom::Data(at)) {
                Ok(found) => found.min(end),
                Err(Errno::NXIO) => end,
                Err(Errno::INVAL | Errno::OPNOTSUPP) => break,
                Err(errno) => return Err(self.failed("find the holes of", errno.into())),
            };
            list.push(data - at, ExtentKind::Hole);
            let hole = match seek(&self.file, SeekFrom::Hole(data)) {
                Ok(found) => found.min(end),
                Err(_) => end,
            };
            list.push(hole - data, ExtentKind::Data);
            at = hole;
        }
        list.push(end - at, ExtentKind::Data);
        Ok(list.into_vec())
    }

    /// Returns the space of the file that is taken, or the size of the device.
    fn allocated(&self) -> Result<Bytes> {
        use std::os::unix::fs::MetadataExt;
        if self.is_device {
            return Ok(self.size());
        }
        let meta = self.file.metadata().map_err(|error| self.failed("look at", error))?;
        Ok(Bytes::new(meta.blocks() * 512))
    }

    fn depth(&self) -> usize {
        DEPTH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(size: u64) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        File::create(&path).unwrap().set_len(size).unwrap();
        (folder, path)
    }

    #[test]
    fn bytes_come_back_and_zeros_are_holes() {
        let (_folder, path) = file(1 << 20);
        let store = HeldFile::open(&path).unwrap();
        assert_eq!(store.size(), Bytes::mib(1));
        store.write_at(70_000, b"abc").unwrap();
        store.write_at((1 << 20) - 1, b"z").unwrap();
        let mut found = [9; 5];
        store.read_at(69_999, &mut found).unwrap();
        assert_eq!(&found, b"\0abc\0");
        let extents = store.extents(0, 1 << 20, 10).unwrap();
        assert_eq!(extents.iter().map(|own| own.len).sum::<u64>(), 1 << 20);
        assert_eq!(extents[0].kind, ExtentKind::Hole);
        store.sync().unwrap();
        store.trim(0, 128 << 10).unwrap();
        store.write_zeroes((1 << 20) - 1, 1, false).unwrap();
        store.read_at(69_999, &mut found).unwrap();
        assert_eq!(&found, &[0; 5]);
        assert!(store.write_at(1 << 20, b"x").is_err() && store.resize(Bytes::mib(2)).is_err());
    }

    #[test]
    fn a_file_has_one_holder() {
        let (_folder, path) = file(4096);
        let store = HeldFile::open(&path).unwrap();
        let refused = HeldFile::open(&path).unwrap_err().to_string();
        assert_eq!(refused, "another program has locked it; stop that program");
        drop(store);
        assert!(HeldFile::open(&path).is_ok());
    }

    #[test]
    fn what_cannot_be_a_disk_is_refused() {
        let (folder, path) = file(0);
        let said = |path: &Path| HeldFile::open(path).unwrap_err().to_string();
        assert!(said(&path).starts_with("it is empty"), "{}", said(&path));
        assert_eq!(said(folder.path()), "it is neither a block device nor a file");
        assert!(said(&folder.path().join("none")).starts_with("cannot find it"));
    }

    #[test]
    fn a_sync_that_failed_is_not_forgotten() {
        let (_folder, path) = file(4096);
        let held = HeldFile::open(&path).expect("a file");
        held.sync().expect("a sync");
        held.sync_with(|| Err(io::Error::other("the medium is gone"))).expect_err("a failure");
        let error = held.sync().expect_err("bytes may be lost").to_string();
        assert!(error.contains("an earlier sync of"), "{error}");
        assert!(held.has_failed());
    }
}
