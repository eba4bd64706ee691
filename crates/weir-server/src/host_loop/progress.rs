//! The progress of resizes and syncs that wait for workers.

use crate::error::ServerError;
use weir_core::VolumeSpec;
use weir_store::StoreError;

/// The receiver of the result of a resize.
pub(super) type Told = Box<dyn FnOnce(Result<(), ServerError>) + Send>;

/// A resize that waits for a worker.
pub(super) struct Resizing {
    pub(super) name: String,
    pub(super) spec: VolumeSpec,
    pub(super) told: Told,
}

impl std::fmt::Debug for Resizing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resizing").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The progress of a device's syncs.
#[derive(Debug, Default)]
pub(super) struct Durability {
    /// Requests that need a sync that has not begun.
    pub(super) next: Vec<usize>,
    /// The sync that waits for lanes.
    pub(super) storing: Option<Storing>,
    /// The syncs that stores have.
    pub(super) syncing: Vec<Syncing>,
    /// The number of the last sync.
    pub(super) begun: u64,
    /// The host has the device on its list of those whose next sync may begin.
    pub(super) listed: bool,
}

/// A sync that waits for lanes.
#[derive(Debug)]
pub(super) struct Storing {
    /// Requests that wait for it.
    pub(super) keys: Vec<usize>,
    /// Volumes, with the jobs of their lanes that must be done before.
    pub(super) until: Vec<(usize, u64)>,
}

/// A sync that stores have.
#[derive(Debug)]
pub(super) struct Syncing {
    pub(super) number: u64,
    /// Requests that wait for it.
    pub(super) keys: Vec<usize>,
    /// Volumes that are not done.
    pub(super) left: usize,
    pub(super) failed: Option<StoreError>,
}
