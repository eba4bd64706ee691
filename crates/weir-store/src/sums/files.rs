//! The checksums of a volume in files, and how they come and go.

use super::Summed;
use super::block::{BLOCK, SUM, sums_len};
use super::cache::{Cached, Room};
use super::log::{self, Log, Regions};
use super::regions::Pace;
use crate::file::{FileStore, segment_name};
use crate::{Result, StoreError, disk};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_units::Bytes;

const SUMS: &str = "sums";
const OPEN: &str = "open";
/// The way out of checksums that are missing.
const RESTORE: &str = "restore the folder from a copy, or serve the volume once with checksums = false: \
               its bytes are then served without verification";

/// The bytes of checksums in one file: those of 1 TiB.
const SEGMENT: Bytes = Bytes::gib(1);

/// The bytes of all volumes of a data directory whose checksums are computed anew before they are served after a
/// crash. The rest follows while they are served.
const AT_START: u64 = 64 << 20;

/// Limits that the checksums of all volumes of a data directory share.
#[derive(Debug)]
pub(crate) struct Shares {
    /// The bytes that further openings may read.
    opening: AtomicU64,
    room: Arc<Room>,
}

impl Default for Shares {
    fn default() -> Self {
        Self { opening: AtomicU64::new(AT_START), room: Arc::default() }
    }
}

/// A volume of files with checksums.
pub(crate) type FileSums = Summed<FileStore>;

/// Removes the checksums of the volume in `dir`, or what a crash left of them.
pub(crate) fn remove(dir: &Path) -> Result<()> {
    disk::remove_tree(&dir.join(SUMS))?;
    disk::remove_tree(&dir.join(OPEN))
}

/// Makes the files of a volume without checksums, with the regions whose checksums are unknown.
fn make(dir: &Path, unknown: Regions) -> Result<()> {
    remove(dir)?;
    disk::create_dirs(&dir.join(SUMS))?;
    disk::create_dirs(&dir.join(OPEN))?;
    Log::init(open_list(dir)?, unknown).map(drop)
}

impl FileSums {
    /// Makes the files for a new volume in `dir`, which has only zeros.
    pub(crate) fn create(dir: &Path) -> Result<()> {
        make(dir, Regions::NONE)
    }

    /// Makes the files for a volume in `dir` that has bytes. Its checksums are unknown.
    pub(crate) fn add(dir: &Path) -> Result<()> {
        make(dir, Regions::ALL)
    }

    /// Opens the checksums in `dir` of a volume, and computes some of those that are unknown.
    pub(crate) fn open_in(
        dir: &Path,
        name: &str,
        data: FileStore,
        shares: &Shares,
    ) -> Result<Self> {
        let opened = Self::with_room(dir, name, data, &shares.room)?;
        let sums = opened.sums.medium();
        sums.cut()?;
        sums.lengthen(crate::Store::size(sums))?;
        // Openings of one directory come one after the other.
        let left = opened.resume(shares.opening.load(Ordering::Relaxed))?;
        shares.opening.store(left, Ordering::Relaxed);
        Ok(opened)
    }

    /// Opens the checksums in `dir` of a volume to verify it. Nothing is changed.
    pub(crate) fn look_in(dir: &Path, name: &str, data: FileStore) -> Result<Self> {
        Self::with_room(dir, name, data, &Arc::default())
    }

    fn with_room(dir: &Path, name: &str, data: FileStore, room: &Arc<Room>) -> Result<Self> {
        let size = Bytes::new(sums_len(crate::Store::size(&data).get()));
        let sums = FileStore::open_segmented(folder(dir, SUMS)?, size, SEGMENT)?;
        let opened =
            Self::open(name, data, Cached::new(sums, room), open_list(dir)?, Pace::DEFAULT);
        opened.map_err(|error| match error {
            StoreError::Damaged { what, hint } => {
                let file = dir.join(OPEN).join(segment_name(0));
                StoreError::Damaged { what: format!("{}: {what}", file.display()), hint }
            }
            other => other,
        })
    }

    /// Returns the place of a copy of the list of open regions in `dir` that was damaged when it was loaded: its
    /// file, offset and length.
    pub(crate) fn damaged_copy(&self, dir: &Path) -> Option<(PathBuf, u64, u64)> {
        let offset = self.states.damaged_copy()?;
        Some((dir.join(OPEN).join(segment_name(0)), offset, log::SLOT))
    }

    /// Computes checksums that are unknown, until about `budget` bytes are read, and seals all regions after the
    /// last one. Returns whether some are still unknown.
    pub(crate) fn compute(&self, budget: u64) -> Result<bool> {
        if self.unknown_bytes() == 0 {
            return Ok(false);
        }
        self.computes_beside.store(true, Ordering::Release);
        let done = self.compute_some(budget);
        if !matches!(done, Ok(true)) {
            self.computes_beside.store(false, Ordering::Release);
        }
        done
    }

    fn compute_some(&self, budget: u64) -> Result<bool> {
        self.rebuild(budget)?;
        let is_left = self.unknown_bytes() > 0;
        if !is_left {
            self.close()?;
        }
        Ok(is_left)
    }
}

/// Returns the reason of damage at `offset` in the volume, if the file of its checksums is missing or ends before
/// them.
pub(crate) fn missing(dir: &Path, offset: u64) -> Option<String> {
    let at = offset / BLOCK * SUM;
    let file = dir.join(SUMS).join(segment_name(at / SEGMENT.get()));
    let is_short = |len| len < at % SEGMENT.get() + SUM;
    let state = match file.metadata() {
        Ok(about) if is_short(about.len()) => format!("is cut to {} bytes", about.len()),
        Ok(_) => return None,
        Err(_) => "does not exist".to_owned(),
    };
    Some(format!(
        "the bytes are not those of their checksums: the file of these checksums, {}, {state}; restore it from a \
         copy",
        file.display()
    ))
}

fn open_list(dir: &Path) -> Result<FileStore> {
    FileStore::open(folder(dir, OPEN)?, Bytes::new(log::LEN))
}

/// Returns a folder of the volume, which must be there.
fn folder(dir: &Path, name: &str) -> Result<PathBuf> {
    let folder = dir.join(name);
    if folder.is_dir() {
        return Ok(folder);
    }
    let (content, hint) = match name {
        OPEN => ("the list of regions with unknown checksums", log::ANEW),
        _ => ("checksums of the volume", RESTORE),
    };
    let what = format!("{} is missing; it contained {content}", folder.display());
    Err(StoreError::Damaged { what, hint })
}
