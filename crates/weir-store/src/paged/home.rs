//! The medium of a volume's layers, and the list that names them.

use super::layer::Parts;
use crate::Result;
use crate::memory::MemoryStore;
use std::fmt::Debug;
use std::sync::Arc;
use weir_units::Bytes;

/// The layers of a volume, from the lowest to the top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LayerList {
    pub(crate) layers: Vec<ListedLayer>,
    pub(crate) next_snapshot: u64,
}

/// A layer of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListedLayer {
    pub(crate) number: u64,
    pub(crate) size: Bytes,
    pub(crate) snapshot: Option<u64>,
}

impl LayerList {
    /// Makes the list of a new volume.
    pub(crate) fn new(size: Bytes) -> Self {
        Self { layers: vec![ListedLayer { number: 0, size, snapshot: None }], next_snapshot: 1 }
    }
}

/// The medium of the layers.
pub(crate) trait Home: Debug + Send + Sync {
    /// Refuses a size that the layers could not have.
    fn check_size(&self, size: Bytes) -> Result<()>;
    /// Makes place for a layer that the list does not have yet, durably; what a crash
    /// left there goes.
    fn make(&self, number: u64, size: Bytes) -> Result<Parts>;
    /// Puts `list` in place of the one before: durable when it returns, and a crash
    /// leaves either. If it fails, the one before stays.
    fn save(&self, list: &LayerList) -> Result<()>;
    /// Takes in that a layer was synced.
    fn synced(&self, number: u64) -> Result<()>;
    /// Frees the space of a layer that is not listed and not in use any more.
    fn remove(&self, number: u64) -> Result<()>;
}

/// Layers in memory: nothing survives, so there is nothing to remember.
#[derive(Debug)]
pub(crate) struct Memory;

impl Home for Memory {
    fn check_size(&self, _: Bytes) -> Result<()> {
        Ok(())
    }

    fn make(&self, _: u64, size: Bytes) -> Result<Parts> {
        Ok(Parts { bytes: Arc::new(MemoryStore::new(size)), medium: None })
    }

    fn save(&self, _: &LayerList) -> Result<()> {
        Ok(())
    }

    fn synced(&self, _: u64) -> Result<()> {
        Ok(())
    }

    fn remove(&self, _: u64) -> Result<()> {
        Ok(())
    }
}
