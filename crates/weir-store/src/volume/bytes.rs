//! The store of a volume's bytes.

use crate::Result;
use crate::file::FileStore;
use crate::lock::DirLock;
use crate::paged::PagedStore;
use crate::store::{Extent, Store};
use crate::sums::FileSums;
use std::sync::Arc;
use weir_units::Bytes;

/// The store of a volume's bytes. A frozen view keeps it, and the lock.
#[derive(Debug)]
pub(super) struct VolumeBytes {
    pub(super) kind: Kind,
    pub(super) _lock: Arc<DirLock>,
}

#[derive(Debug)]
pub(super) enum Kind {
    Plain(FileStore),
    /// Plain, with checksums.
    Summed(Box<FileSums>),
    /// Has the size and its layers in the same [`crate::meta::MetaFile`].
    Paged(PagedStore),
}

impl VolumeBytes {
    fn store(&self) -> &dyn Store {
        match &self.kind {
            Kind::Plain(store) => store,
            Kind::Summed(store) => &**store,
            Kind::Paged(store) => store,
        }
    }

    /// Returns the files of a volume without layers.
    pub(super) fn files(&self) -> Option<&FileStore> {
        match &self.kind {
            Kind::Plain(store) => Some(store),
            Kind::Summed(store) => Some(store.data()),
            Kind::Paged(_) => None,
        }
    }

    pub(super) fn sums(&self) -> Option<&FileSums> {
        match &self.kind {
            Kind::Summed(store) => Some(store),
            Kind::Plain(_) | Kind::Paged(_) => None,
        }
    }
}

impl Store for VolumeBytes {
    fn size(&self) -> Bytes {
        self.store().size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.store().read_at(offset, buf)
    }

    fn try_read_at(&self, offset: u64, buf: &mut [u8]) -> Result<bool> {
        self.store().try_read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.store().write_at(offset, data)
    }

    fn write_zeroes(&self, offset: u64, len: u64, may_trim: bool) -> Result<()> {
        self.store().write_zeroes(offset, len, may_trim)
    }

    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        self.store().trim(offset, len)
    }

    fn sync(&self) -> Result<()> {
        self.store().sync()
    }

    fn resize(&self, new: Bytes) -> Result<()> {
        self.store().resize(new)
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>> {
        self.store().extents(offset, len, max)
    }

    fn syncs(&self) -> usize {
        self.store().syncs()
    }

    fn allocated(&self) -> Result<Bytes> {
        self.store().allocated()
    }
}
