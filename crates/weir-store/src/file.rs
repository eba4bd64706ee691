//! A volume in sparse files.
//!
//! A file of the common file systems ends at 16 TiB or before, so a volume is
//! cut into segments of 1 TiB: files `00000`, `00001`, ... in one folder. A
//! segment that was never written has no file. A written one has a file of its full
//! length from the start, so that a file that was cut is detected. The caller keeps
//! the list of segments.
//!
//! The caller also keeps the size of the volume (see [`crate::volume`]). Bytes that a
//! file has behind that end are never read, and are cut off, durably, before the volume
//! grows over them.

mod syncs;

use crate::pieces::{Piece, index, len_of, pieces};
use crate::segment::{Making, Segment};
use crate::store::{Extent, ExtentList, Store, check_range};
use crate::sync::{exclusive, locked, shared};
use crate::{Result, StoreError, disk};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
pub(crate) use syncs::MOST as SYNCS;
use syncs::{Synced, Syncs};
use weir_units::Bytes;

/// The bytes of a volume in one file, by default.
pub const SEGMENT: Bytes = Bytes::gib(1024);

/// The largest volume of files.
pub const MAX_SIZE: Bytes = Bytes::gib(1024 * 1024);

/// A volume in sparse files of one folder.
#[derive(Debug)]
pub struct FileStore {
    dir: PathBuf,
    /// The folder, once its names were made durable.
    folder: OnceLock<File>,
    segment_len: u64,
    /// Replaced by a resize. Locked to look or to replace and never over I/O: who
    /// must not wait for a medium looks here too.
    layout: RwLock<Arc<Layout>>,
    /// Shared by what changes bytes, exclusive to a resize while it moves the end:
    /// nothing lands behind it.
    changing: RwLock<()>,
    /// True if files were added or removed since their names were last made durable.
    names_changed: AtomicBool,
    syncs: Syncs,
    /// Held over a resize, so that two do not interleave.
    resizing: Mutex<()>,
}

/// The length of the volume, and its segments; behind the end there may be some that
/// are still to be removed.
#[derive(Debug)]
struct Layout {
    size: u64,
    segments: Vec<Arc<Segment>>,
}

impl FileStore {
    /// Opens the volume of `size` whose segments are in the folder `dir`, which must
    /// exist. An empty folder is a volume of zeros.
    pub fn open(dir: impl Into<PathBuf>, size: Bytes) -> Result<Self> {
        Self::open_segmented(dir, size, SEGMENT)
    }

    /// Opens as [`FileStore::open`] does, with files of at most `segment` bytes each. It
    /// must be the same every time, and not zero.
    pub fn open_segmented(dir: impl Into<PathBuf>, size: Bytes, segment: Bytes) -> Result<Self> {
        let dir = dir.into();
        assert!(segment > Bytes::ZERO, "a segment holds at least a byte");
        let mut present = BTreeSet::new();
        let names = disk::names_in(&dir)?.ok_or_else(|| {
            StoreError::io("read", &dir, io::Error::from(io::ErrorKind::NotFound))
        })?;
        let most = count_segments(MAX_SIZE, segment.get())?;
        for name in names {
            let Some(number) = segment_number(&name, most) else { continue };
            if !dir.join(&name).is_file() {
                return Err(StoreError::Damaged {
                    what: format!("{} is not a file", dir.join(&name).display()),
                    hint: "restore the volume's segment file, or remove what is in its place",
                });
            }
            present.insert(number);
        }
        // Files behind the end are listed too, to be found by `cut`.
        let known = present.last().map_or(0, |last| last + 1);
        let count = count_segments(size, segment.get())?.max(known);
        let segments = (0..count)
            .map(|n| Arc::new(Segment::new(dir.join(segment_name(n)), present.contains(&n))));
        let layout = Layout { size: size.get(), segments: segments.collect() };
        Ok(Self {
            dir,
            folder: OnceLock::new(),
            segment_len: segment.get(),
            layout: RwLock::new(Arc::new(layout)),
            changing: RwLock::default(),
            // By a process that was killed before its sync.
            names_changed: AtomicBool::new(true),
            syncs: Syncs::default(),
            resizing: Mutex::default(),
        })
    }

    /// Returns the folder that holds the segments.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn layout(&self) -> Arc<Layout> {
        Arc::clone(&shared(&self.layout))
    }

    /// Forgets what the files hold behind the volume's end: the rest of a shrinking.
    /// Durable after the next sync.
    pub(crate) fn cut(&self) -> Result<()> {
        let layout = self.layout();
        let kept = index(layout.size.div_ceil(self.segment_len));
        if layout.segments.len() > kept {
            for segment in &layout.segments[kept..] {
                if segment.remove()? {
                    self.names_changed.store(true, Ordering::Release);
                }
            }
            let segments = layout.segments[..kept].to_vec();
            *exclusive(&self.layout) = Arc::new(Layout { size: layout.size, segments });
        }
        match layout.size % self.segment_len {
            0 => Ok(()),
            in_last => layout.segments[kept - 1].cut(in_last),
        }
    }

    /// Makes every file as long as its share of a volume of `size`, which is not less
    /// than now. Those that the volume does not remember may be shorter if they were
    /// made just before a crash, or by an earlier release.
    pub(crate) fn lengthen(&self, size: Bytes) -> Result<()> {
        self.lengthen_all(size, &mut self.syncs.lock())
    }

    fn lengthen_all(&self, size: Bytes, synced: &mut Synced) -> Result<()> {
        for (number, segment) in (0..).zip(&self.layout().segments) {
            if segment.lengthen(share(size.get(), self.segment_len, number))? {
                synced.lengthened(number);
            }
        }
        Ok(())
    }

    /// Makes the files, durably, those of a volume of `size`, which is more than now.
    /// The size is not changed; two resizes must not interleave.
    pub(crate) fn prepare(&self, size: Bytes) -> Result<()> {
        self.cut()?;
        self.lengthen(size)?;
        self.sync()
    }

    /// Moves the end: one that is farther needs [`prepare`](Self::prepare) before, one
    /// that is nearer [`cut`](Self::cut) afterwards.
    pub(crate) fn adopt(&self, size: Bytes) -> Result<()> {
        let count = count_segments(size, self.segment_len)?;
        let mut synced = self.syncs.lock();
        let _alone = exclusive(&self.changing);
        // A file that appeared since they were prepared has its share of the old size.
        self.lengthen_all(size, &mut synced)?;
        synced.cut(count);
        let mut segments = self.layout().segments.clone();
        let known = segments.len() as u64;
        let more = (known..count).map(|n| Segment::new(self.dir.join(segment_name(n)), false));
        segments.extend(more.map(Arc::new));
        *exclusive(&self.layout) = Arc::new(Layout { size: size.get(), segments });
        Ok(())
    }

    /// Returns the segments whose files are there, in full length, whatever happens.
    pub(crate) fn durable_segments(&self) -> BTreeSet<u64> {
        self.syncs.durable_segments()
    }

    /// Returns the segments that have files, without those that are still to be removed.
    fn present(&self) -> BTreeSet<u64> {
        let layout = self.layout();
        let holds = |number| share(layout.size, self.segment_len, number) > 0;
        let present = (0..).zip(&layout.segments).filter(|(n, s)| holds(*n) && s.is_present());
        present.map(|(number, _)| number).collect()
    }

    /// Calls `look` on a range. No lock is held meanwhile, so a medium that stalls delays no other
    /// call. If a resize cut the range off meanwhile, it is refused as if the resize came first.
    fn look<T>(
        &self,
        offset: u64,
        len: u64,
        look: impl FnOnce(&[Arc<Segment>]) -> Result<T>,
    ) -> Result<T> {
        let layout = self.layout();
        check_range(offset, len, layout.size)?;
        let seen = look(&layout.segments);
        check_range(offset, len, self.size().get())?;
        seen
    }

    /// Changes the pieces of a range, with no resize in between.
    fn change(
        &self,
        offset: u64,
        len: u64,
        change: impl Fn(&Segment, &Making, Piece) -> Result<()>,
    ) -> Result<()> {
        let _no_resize = shared(&self.changing);
        let layout = self.layout();
        check_range(offset, len, layout.size)?;
        pieces(offset, len, self.segment_len).try_for_each(|piece| {
            let len = share(layout.size, self.segment_len, piece.unit);
            let making = Making { len, names_changed: &self.names_changed };
            change(&layout.segments[index(piece.unit)], &making, piece)
        })
    }

    /// Returns the folder, to make its names durable.
    fn folder(&self) -> Result<&File> {
        if let Some(folder) = self.folder.get() {
            return Ok(folder);
        }
        let opened = File::open(&self.dir).map_err(|e| StoreError::io("open", &self.dir, e))?;
        Ok(self.folder.get_or_init(|| opened))
    }
}

/// Refuses a size that no volume of files has.
pub(crate) fn check_size(size: Bytes) -> Result<()> {
    if size > MAX_SIZE { Err(StoreError::TooLarge { size, max: MAX_SIZE }) } else { Ok(()) }
}

/// Returns the number of segments of `size` bytes.
fn count_segments(size: Bytes, segment_len: u64) -> Result<u64> {
    check_size(size)?;
    Ok(size.get().div_ceil(segment_len))
}

/// Returns the bytes that a segment holds of a volume of `size`.
pub(crate) fn share(size: u64, segment_len: u64, number: u64) -> u64 {
    size.saturating_sub(number * segment_len).min(segment_len)
}

pub(crate) fn segment_name(number: u64) -> String {
    format!("{number:05}")
}

/// Returns the number of the segment kept in a file of that name, if any is. A volume has at most `most`.
fn segment_number(name: &str, most: u64) -> Option<u64> {
    let number = name.parse().ok()?;
    (number < most && segment_name(number) == name).then_some(number)
}

impl Store for FileStore {
    fn size(&self) -> Bytes {
        Bytes::new(shared(&self.layout).size)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.look(offset, len_of(buf), |segments| {
            pieces(offset, len_of(buf), self.segment_len).try_for_each(|piece| {
                segments[index(piece.unit)].read(piece.start, &mut buf[piece.in_request()])
            })
        })
    }

    fn try_read_at(&self, offset: u64, buf: &mut [u8]) -> Result<bool> {
        self.look(offset, len_of(buf), |segments| {
            for piece in pieces(offset, len_of(buf), self.segment_len) {
                let out = &mut buf[piece.in_request()];
                if !segments[index(piece.unit)].try_read(piece.start, out)? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.change(offset, len_of(data), |segment, making, piece| {
            segment.write(piece.start, &data[piece.in_request()], making)
        })
    }

    fn write_zeroes(&self, offset: u64, len: u64, may_trim: bool) -> Result<()> {
        if may_trim {
            return self.trim(offset, len);
        }
        self.change(offset, len, |segment, making, piece| {
            segment.zero(piece.start, piece.len, making)
        })
    }

    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        self.change(offset, len, |segment, _, piece| segment.punch(piece.start, piece.len))
    }

    /// Waits for every file changed since the last sync, and for the names of
    /// new files. A system that fails to write what it had accepted reports it
    /// once and forgets the bytes, so after one such failure every sync fails
    /// until the store is opened again. Other failures are of the moment.
    fn sync(&self) -> Result<()> {
        self.syncs.run(self)
    }

    /// Changes the size in the files only. A size that is stored elsewhere has to change there too;
    /// a [`crate::Volume`] does both in the right order.
    fn resize(&self, new: Bytes) -> Result<()> {
        check_size(new)?;
        let _alone = locked(&self.resizing);
        if new > self.size() {
            self.prepare(new)?;
        }
        self.adopt(new)?;
        self.cut()
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>> {
        self.look(offset, len, |segments| {
            let mut list = ExtentList::new(max);
            for piece in pieces(offset, len, self.segment_len) {
                if list.is_full() {
                    break;
                }
                segments[index(piece.unit)].extents(piece.start, piece.len, &mut list)?;
            }
            Ok(list.into_vec())
        })
    }

    fn syncs(&self) -> usize {
        SYNCS
    }

    fn allocated(&self) -> Result<Bytes> {
        self.layout().segments.iter().try_fold(Bytes::ZERO, |sum, segment| {
            Ok(Bytes::new(sum.get() + segment.allocated()?.get()))
        })
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
