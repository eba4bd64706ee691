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

/// The progress of a device's sync.
#[derive(Debug, Default)]
pub(super) struct Durability {
    pub(super) stage: Stage,
    /// Requests that wait for the current sync, and those that need the next one.
    pub(super) now: Vec<usize>,
    pub(super) next: Vec<usize>,
}

/// The step that a sync has come to.
#[derive(Debug, Default)]
pub(super) enum Stage {
    #[default]
    Idle,
    /// Volumes, with the jobs of their lanes that must be done before.
    Storing(Vec<(usize, u64)>),
    Syncing {
        left: usize,
        failed: Option<StoreError>,
    },
}
