//! The checksums of a volume in files, and how they come and go.

use super::Summed;
use super::block::sums_len;
use super::log;
use super::regions::{Pace, States};
use crate::file::FileStore;
use crate::{Result, StoreError, disk};
use std::path::{Path, PathBuf};
use weir_units::Bytes;

const SUMS: &str = "sums";
const OPEN: &str = "open";

/// The bytes of checksums in one file: those of 1 TiB.
const SEGMENT: Bytes = Bytes::gib(1);

/// The bytes whose checksums are computed anew before a volume is served after a crash. That takes some
/// seconds at most; syncs compute the rest.
const AT_START: u64 = 1 << 30;

/// A volume of files with checksums.
pub(crate) type FileSums = Summed<FileStore>;

/// Removes the checksums of the volume in `dir`, or what a crash left of them.
pub(crate) fn remove(dir: &Path) -> Result<()> {
    disk::remove_tree(&dir.join(SUMS))?;
    disk::remove_tree(&dir.join(OPEN))
}

/// Makes the files of a volume whose checksums are unknown.
fn make_unknown(dir: &Path) -> Result<()> {
    remove(dir)?;
    disk::create_dirs(&dir.join(SUMS))?;
    disk::create_dirs(&dir.join(OPEN))
}

impl FileSums {
    /// Makes the files for a new volume in `dir`, which has only zeros.
    pub(crate) fn create(dir: &Path) -> Result<()> {
        make_unknown(dir)?;
        States::init(open_list(dir)?)
    }

    /// Makes the files for a volume in `dir` that has bytes. Its checksums are unknown before
    /// [`FileSums::compute`].
    pub(crate) fn add(dir: &Path) -> Result<()> {
        make_unknown(dir)
    }

    /// Opens the checksums in `dir` of a volume, and computes some of those that a crash made unknown.
    pub(crate) fn open_in(dir: &Path, name: &str, data: FileStore) -> Result<Self> {
        let opened = Self::look_in(dir, name, data)?;
        opened.sums.cut()?;
        opened.sums.lengthen(opened.sums_size())?;
        // Bytes that cannot be read now fail in a read; their region stays open.
        let _ = opened.rebuild(AT_START);
        Ok(opened)
    }

    /// Opens the checksums in `dir` of a volume to verify it. Nothing is changed.
    pub(crate) fn look_in(dir: &Path, name: &str, data: FileStore) -> Result<Self> {
        let size = Bytes::new(sums_len(crate::Store::size(&data).get()));
        let sums = FileStore::open_segmented(folder(dir, SUMS)?, size, SEGMENT)?;
        Self::open(name, data, sums, open_list(dir)?, Pace::DEFAULT)
    }

    /// Computes all checksums that are unknown, and seals all regions.
    pub(crate) fn compute(&self) -> Result<()> {
        self.rebuild(u64::MAX)?;
        self.close()
    }

    fn sums_size(&self) -> Bytes {
        crate::Store::size(&self.sums)
    }
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
    Err(StoreError::Damaged {
        what: format!("{} is missing; it contained checksums of the volume", folder.display()),
        hint: "restore the folder from a copy, or serve the volume once with checksums = false: \
               its bytes are then served without verification",
    })
}
