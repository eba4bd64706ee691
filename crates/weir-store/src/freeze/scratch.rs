//! The scratch store for old contents of a frozen volume.

use crate::file::FileStore;
use crate::memory::MemoryStore;
use crate::store::Store;
use crate::sync::locked;
use crate::{Result, disk};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use weir_units::Bytes;

/// Room for old contents, made when there is first something to keep. A folder goes with it.
#[derive(Debug)]
pub struct Scratch {
    place: Place,
    store: OnceLock<Arc<dyn Store>>,
    making: Mutex<()>,
}

#[derive(Debug)]
enum Place {
    Memory,
    Folder(PathBuf),
}

impl Scratch {
    /// Returns room in memory.
    #[must_use]
    pub fn memory() -> Self {
        Self::new(Place::Memory, OnceLock::new())
    }

    /// Returns room in sparse files of a folder that does not exist yet.
    #[must_use]
    pub fn folder(path: PathBuf) -> Self {
        Self::new(Place::Folder(path), OnceLock::new())
    }

    /// Returns room in a store, which must be all zeros and as long as the volume.
    #[must_use]
    pub fn over(store: Arc<dyn Store>) -> Self {
        Self::new(Place::Memory, OnceLock::from(store))
    }

    fn new(place: Place, store: OnceLock<Arc<dyn Store>>) -> Self {
        Self { place, store, making: Mutex::default() }
    }

    /// Returns the store if there is one; without one, everything that is kept is zeros.
    pub(super) fn made(&self) -> Option<&dyn Store> {
        self.store.get().map(|store| &**store)
    }

    /// Returns the store, which is as long as the volume.
    pub(super) fn store(&self, size: u64) -> Result<&dyn Store> {
        if let Some(store) = self.store.get() {
            return Ok(&**store);
        }
        let _alone = locked(&self.making);
        if let Some(store) = self.store.get() {
            return Ok(&**store);
        }
        let size = Bytes::new(size);
        let made: Arc<dyn Store> = match &self.place {
            Place::Memory => Arc::new(MemoryStore::new(size)),
            Place::Folder(path) => {
                disk::create_dirs(path)?;
                Arc::new(FileStore::open(path, size)?)
            }
        };
        Ok(&**self.store.get_or_init(|| made))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let (Place::Folder(path), Some(_)) = (&self.place, self.store.get()) {
            // A folder that cannot be removed takes room until the data directory is opened again.
            let _ = disk::remove_tree(path);
        }
    }
}
