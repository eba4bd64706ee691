//! Checksums of served volumes that are unknown, since a crash or because the volume had none.
//!
//! Until a region's checksums are computed, its blocks are read without verification. A thread computes
//! them beside the requests, one volume after the other.

use super::shared::Shared;
use crate::error::ServerError;
use crate::listener::pause;
use crate::notice::{Listening, Notice};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{Builder, JoinHandle};
use weir_store::Volume as StoredVolume;
use weir_units::Bytes;

/// The bytes that are read at a time. Meanwhile no volume is opened or removed.
const STEP: Bytes = Bytes::mib(4);

/// A volume with fewer bytes is not worth a notice.
const LONG: Bytes = Bytes::gib(1);

/// Starts the thread, if some checksums are unknown.
pub(super) fn start(
    shared: &Shared,
    notices: &Listening,
    stop: &Arc<AtomicBool>,
) -> Result<Option<JoinHandle<()>>, ServerError> {
    let hosts = shared.hosts();
    let stored = hosts.iter().flat_map(|host| host.stored.iter().flatten());
    let unknown = stored.filter(|volume| volume.unverified() > Bytes::ZERO);
    // A volume that is removed meanwhile is not kept.
    let volumes: Vec<_> = unknown.map(Arc::downgrade).collect();
    if volumes.is_empty() {
        return Ok(None);
    }
    let (notices, stop) = (notices.clone(), Arc::clone(stop));
    Builder::new()
        .name("weir-sums".to_owned())
        .spawn(move || volumes.iter().for_each(|volume| compute(volume, &notices, &stop)))
        .map(Some)
        .map_err(ServerError::system("starting the thread that computes checksums"))
}

/// Computes the checksums of a volume, until the server stops.
fn compute(volume: &Weak<StoredVolume>, notices: &Listening, stop: &AtomicBool) {
    let mut is_long = false;
    let mut is_first = true;
    while !stop.load(Ordering::Acquire) {
        let Some(volume) = volume.upgrade() else { return };
        let name = volume.name().to_owned();
        let unverified = volume.unverified();
        if std::mem::take(&mut is_first) && unverified >= LONG {
            is_long = true;
            notices.tell(Notice::Unverified { volume: name.clone(), bytes: unverified });
        }
        let reason = match volume.compute_checksums(STEP) {
            Ok(true) => {
                // Requests and other volumes have their turn.
                drop(volume);
                pause();
                continue;
            }
            Ok(false) => None,
            Err(error) => Some(error.to_string()),
        };
        if is_long || reason.is_some() {
            notices.tell(Notice::Verified { volume: name, reason });
        }
        return;
    }
}
