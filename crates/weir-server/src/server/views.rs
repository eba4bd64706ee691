//! The frozen exports of a server.

use crate::control::Purpose;
use crate::volume::View;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_core::DeviceId;

/// The freezes of a server.
#[derive(Debug, Default)]
pub(super) struct Freezes {
    pub(super) last: u64,
    pub(super) open: BTreeMap<u64, Freeze>,
    /// The server stops.
    pub(super) closed: bool,
}

/// Exports as they were at one instant.
#[derive(Debug)]
pub(super) struct Freeze {
    pub(super) purpose: Purpose,
    pub(super) backup: String,
    pub(super) exports: Vec<Kept>,
}

/// An export of a freeze.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) name: String,
    pub(super) frozen: String,
    /// Its host's place, and its device there.
    pub(super) device: (usize, DeviceId),
    pub(super) view: Arc<View>,
}
