//! A volume in sparse files.
//!
//! A file of the common file systems ends at 16 TiB or before, so a volume is
//! cut into segments of 1 TiB: files `00000`, `00001`, ... in one folder. A
//! segment that was never written has no file. One that was has a file as long as
//! its share of the volume from the start, so that one that was cut is found out;
//! which there were is for whoever opens the volume to remember.
//!
//! Nothing here remembers how long the volume is: whoever opens it says so
//! (see [`crate::volume`]). Bytes that a file has behind that end are never
//! seen and are cut off, durably, before the volume grows over them.

use crate::pieces::{index, len_of, pieces};
use crate::segment::{DirtyFile, Making, Segment};
use crate::store::{Extent, ExtentList, Store, check_range};
use crate::sync::{exclusive, locked, shared};
use crate::{Result, StoreError, disk};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, RwLock};
use weir_units::Bytes;

/// How much of a volume one file holds unless its maker said otherwise.
pub const SEGMENT: Bytes = Bytes::gib(1024);

/// The largest volume of files.
pub const MAX_SIZE: Bytes = Bytes::gib(1024 * 1024);

/// A volume in sparse files of one folder.
#[derive(Debug)]
pub struct FileStore {
    dir: PathBuf,
    segment_len: u64,
    /// Shared by every operation, exclusive to a resize.
    layout: RwLock<Layout>,
    /// Whether files appeared or went since their names were last made durable.
    names_changed: AtomicBool,
    /// Held over a sync and over cutting, so that whoever finds nothing left to do
    /// knows that it is done, not just begun.
    sync: Mutex<Synced>,
    /// Held over a resize, so that two do not interleave.
    resizing: Mutex<()>,
}

/// What syncs came to.
#[derive(Debug, Default)]
struct Synced {
    /// How an earlier one failed.
    failed: Option<io::ErrorKind>,
    /// Segments whose files are there, in full length, whatever happens.
    segments: BTreeSet<u64>,
}

#[derive(Debug)]
struct Layout {
    size: u64,
    segments: Vec<Segment>,
}

impl FileStore {
    /// The volume of `size` whose segments are in the folder `dir`, which must
    /// exist. An empty folder is a volume of zeros.
    pub fn open(dir: impl Into<PathBuf>, size: Bytes) -> Result<Self> {
        Self::open_segmented(dir, size, SEGMENT)
    }

    /// As [`FileStore::open`], with files of at most `segment` bytes each. It
    /// must be the same every time, and not zero.
    pub fn open_segmented(dir: impl Into<PathBuf>, size: Bytes, segment: Bytes) -> Result<Self> {
        let dir = dir.into();
        assert!(segment > Bytes::ZERO, "a segment holds at least a byte");
        let mut present = BTreeSet::new();
        let names = disk::names_in(&dir)?.ok_or_else(|| {
            StoreError::io("read", &dir, io::Error::from(io::ErrorKind::NotFound))
        })?;
        for name in names {
            let Some(number) = segment_number(&name) else { continue };
            if !dir.join(&name).is_file() {
                return Err(StoreError::Damaged {
                    what: format!("{} is not a file", dir.join(&name).display()),
                    hint: "put the volume's segment file back, or remove what is in its place",
                });
            }
            present.insert(number);
        }
        // Files behind the end are listed too, to be found by `cut_tail`.
        let known = present.last().map_or(0, |last| last + 1);
        let count = count_segments(size, segment.get())?.max(known);
        let segments =
            (0..count).map(|n| Segment::new(dir.join(segment_name(n)), present.contains(&n)));
        Ok(Self {
            layout: RwLock::new(Layout { size: size.get(), segments: segments.collect() }),
            dir,
            segment_len: segment.get(),
            names_changed: AtomicBool::new(!present.is_empty()),
            sync: Mutex::default(),
            resizing: Mutex::default(),
        })
    }

    /// The folder that holds the segments.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether the store could have `size`.
    pub(crate) fn check_size(&self, size: Bytes) -> Result<()> {
        count_segments(size, self.segment_len).map(|_| ())
    }

    /// Durably forgets what the files hold behind the volume's end: the rest of
    /// a shrinking that did not finish.
    pub(crate) fn cut_tail(&self) -> Result<()> {
        let _alone = locked(&self.resizing);
        self.cut()
    }

    fn cut(&self) -> Result<()> {
        let (count, in_last, mut behind) = {
            let mut layout = exclusive(&self.layout);
            let count = index(layout.size.div_ceil(self.segment_len));
            let kept = count.min(layout.segments.len());
            (count, layout.size % self.segment_len, layout.segments.split_off(kept))
        };
        let mut synced = locked(&self.sync);
        synced.segments.retain(|segment| index(*segment) < count);
        // Nobody gets at them any more, so nobody has to wait while they go.
        while let Some(last) = behind.last() {
            match last.remove() {
                Ok(true) => self.names_changed.store(true, Ordering::Release),
                Ok(false) => {}
                Err(error) => {
                    exclusive(&self.layout).segments.append(&mut behind);
                    return Err(error);
                }
            }
            behind.pop();
        }
        if let Some(last) = shared(&self.layout).segments.get(count.wrapping_sub(1))
            && in_last > 0
        {
            last.cut(in_last)?;
        }
        self.sync_names()
    }

    /// Makes every file durably as long as its share of a volume of `size`, which
    /// is not less than now. Those that the volume does not remember may be shorter
    /// if they were made just before a crash, or by an earlier release.
    pub(crate) fn lengthen(&self, size: Bytes) -> Result<()> {
        self.lengthen_all(&shared(&self.layout), size)
    }

    fn lengthen_all(&self, layout: &Layout, size: Bytes) -> Result<()> {
        let shares = (0..).map(|number| share(size.get(), self.segment_len, number));
        layout.segments.iter().zip(shares).try_for_each(|(segment, share)| segment.lengthen(share))
    }

    /// The segments whose files are there, in full length, whatever happens.
    pub(crate) fn durable_segments(&self) -> BTreeSet<u64> {
        locked(&self.sync).segments.clone()
    }

    fn present(&self) -> BTreeSet<u64> {
        let layout = shared(&self.layout);
        (0..).zip(&layout.segments).filter(|(_, s)| s.is_present()).map(|(n, _)| n).collect()
    }

    /// What a segment needs to know to make its file.
    fn making(&self, layout: &Layout, number: u64) -> Making<'_> {
        let len = share(layout.size, self.segment_len, number);
        Making { len, names_changed: &self.names_changed }
    }

    /// The lock of the layout is not held over the waiting: a resize that waits
    /// for it would hold up every other request.
    fn sync_files(&self) -> Result<()> {
        let dirty: Result<Vec<_>> =
            shared(&self.layout).segments.iter().map(Segment::take_dirty).collect();
        dirty?.iter().flatten().try_for_each(DirtyFile::sync)
    }

    fn sync_names(&self) -> Result<()> {
        if !self.names_changed.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        disk::sync_dir(&self.dir).inspect_err(|_| self.names_changed.store(true, Ordering::Release))
    }
}

/// How many segments `size` bytes have.
fn count_segments(size: Bytes, segment_len: u64) -> Result<u64> {
    if size > MAX_SIZE {
        return Err(StoreError::TooLarge { size, max: MAX_SIZE });
    }
    Ok(size.get().div_ceil(segment_len))
}

/// How much of a volume of `size` a segment holds.
pub(crate) fn share(size: u64, segment_len: u64, number: u64) -> u64 {
    size.saturating_sub(number * segment_len).min(segment_len)
}

pub(crate) fn segment_name(number: u64) -> String {
    format!("{number:05}")
}

/// The number of the segment kept in a file of that name, if any is.
fn segment_number(name: &str) -> Option<u64> {
    let number = name.parse().ok()?;
    (number < MAX_SIZE.get() && segment_name(number) == name).then_some(number)
}

impl Store for FileStore {
    fn size(&self) -> Bytes {
        Bytes::new(shared(&self.layout).size)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let layout = shared(&self.layout);
        check_range(offset, len_of(buf), layout.size)?;
        for piece in pieces(offset, len_of(buf), self.segment_len) {
            layout.segments[index(piece.unit)].read(piece.start, &mut buf[piece.in_request()])?;
        }
        Ok(())
    }

    fn try_read_at(&self, offset: u64, buf: &mut [u8]) -> Result<bool> {
        let layout = shared(&self.layout);
        check_range(offset, len_of(buf), layout.size)?;
        for piece in pieces(offset, len_of(buf), self.segment_len) {
            let out = &mut buf[piece.in_request()];
            if !layout.segments[index(piece.unit)].try_read(piece.start, out)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let layout = shared(&self.layout);
        check_range(offset, len_of(data), layout.size)?;
        for piece in pieces(offset, len_of(data), self.segment_len) {
            let segment = &layout.segments[index(piece.unit)];
            let making = self.making(&layout, piece.unit);
            segment.write(piece.start, &data[piece.in_request()], &making)?;
        }
        Ok(())
    }

    fn write_zeroes(&self, offset: u64, len: u64, may_trim: bool) -> Result<()> {
        if may_trim {
            return self.trim(offset, len);
        }
        let layout = shared(&self.layout);
        check_range(offset, len, layout.size)?;
        for piece in pieces(offset, len, self.segment_len) {
            let segment = &layout.segments[index(piece.unit)];
            segment.zero(piece.start, piece.len, &self.making(&layout, piece.unit))?;
        }
        Ok(())
    }

    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        let layout = shared(&self.layout);
        check_range(offset, len, layout.size)?;
        for piece in pieces(offset, len, self.segment_len) {
            layout.segments[index(piece.unit)].punch(piece.start, piece.len)?;
        }
        Ok(())
    }

    /// Waits for every file changed since the last sync, and for the names of
    /// new files. A system that fails to write what it had accepted reports it
    /// once and forgets the bytes, so after one failure every sync fails until
    /// the store is opened again.
    fn sync(&self) -> Result<()> {
        let mut state = locked(&self.sync);
        if let Some(kind) = state.failed {
            let context = format!(
                "an earlier sync of {} failed, bytes written before it may be lost",
                self.dir.display()
            );
            return Err(StoreError::Io { context, source: io::Error::from(kind) });
        }
        // Before the files are synced: one that appears meanwhile is for the next.
        let present = self.present();
        let synced = self.sync_files().and_then(|()| self.sync_names());
        if let Err(StoreError::Io { source, .. } | StoreError::NoSpace { source, .. }) = &synced {
            state.failed = Some(source.kind());
        } else {
            state.segments = present;
        }
        synced
    }

    /// Whoever remembers the size elsewhere has to change it there too;
    /// a [`crate::Volume`] does both in the right order.
    fn resize(&self, new: Bytes) -> Result<()> {
        let count = count_segments(new, self.segment_len)?;
        let _alone = locked(&self.resizing);
        if new > self.size() {
            self.cut()?;
            self.lengthen(new)?;
            let mut layout = exclusive(&self.layout);
            // One that appeared since has its share of the old size.
            self.lengthen_all(&layout, new)?;
            let known = layout.segments.len() as u64;
            let more = (known..count).map(|n| Segment::new(self.dir.join(segment_name(n)), false));
            layout.segments.extend(more);
            layout.size = new.get();
            Ok(())
        } else {
            exclusive(&self.layout).size = new.get();
            self.cut()
        }
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>> {
        let layout = shared(&self.layout);
        check_range(offset, len, layout.size)?;
        let mut list = ExtentList::new(max);
        for piece in pieces(offset, len, self.segment_len) {
            if list.is_full() {
                break;
            }
            layout.segments[index(piece.unit)].extents(piece.start, piece.len, &mut list)?;
        }
        Ok(list.into_vec())
    }

    fn allocated(&self) -> Result<Bytes> {
        let layout = shared(&self.layout);
        layout.segments.iter().try_fold(Bytes::ZERO, |sum, segment| {
            Ok(Bytes::new(sum.get() + segment.allocated()?.get()))
        })
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
