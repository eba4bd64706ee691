//! Places that a backup is written to: folders, raw volumes, blobs.
//!
//! | module | holds |
//! |---|---|
//! | [`file`](mod@file) | stripe files in a folder: a temporary name, then a rename |
//! | `disk` | the operations on files that a stripe needs |
//! | [`raw`] | stripes on raw volumes, reached as NBD exports |
//! | [`spec`] | a place as a user writes it |
//! | [`blob`] | stripes as block or page blobs of an Azure-compatible endpoint |
//! | [`http`] | requests to such an endpoint |
//! | `promises` | what must hold for any bytes that are read as a label or a list of blobs |

pub mod blob;
pub(crate) mod disk;
pub mod file;
pub mod http;
mod lock;
pub(crate) mod promises;
pub mod raw;
pub mod spec;

pub use http::ContainerUrl;
pub use lock::BackupLock;
pub use spec::PlaceSpec;

use crate::error::BackupError;
use crate::export::Export;
use std::fmt;
use weir_units::Bytes;

/// A region of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// The export.
    pub export: Export,
    /// The first byte.
    pub base: u64,
    /// The bytes that it has.
    pub room: u64,
}

impl Region {
    /// Returns an error if bytes at an offset of it reach beyond its end.
    pub(crate) fn check(&self, name: &str, offset: u64, length: u64) -> Result<(), BackupError> {
        if offset.checked_add(length).is_some_and(|end| end <= self.room) {
            return Ok(());
        }
        Err(BackupError::NoRoom(format!(
            "no room on {name}: a stripe outgrew the {} that it got; add targets, or remove backups \
             with weir backup prune",
            Bytes::new(self.room)
        )))
    }
}

/// A stripe that is written by threads. Writes of different ranges may run at the same time.
pub trait StripeSink: Send + Sync + fmt::Debug {
    /// Returns the stripe's name, for messages: a path or a URL.
    fn name(&self) -> String;

    /// Returns the region of an export that the stripe lies in, if its frames are better written
    /// through the event loop than by [`write_at`](Self::write_at).
    fn volume(&self) -> Option<&Region> {
        None
    }

    /// Writes bytes at an offset of the stripe.
    ///
    /// # Errors
    /// When the medium fails, or has no room.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), BackupError>;

    /// Makes everything that was written durable. `length` is the stripe's whole length, which ends
    /// with its footer if `is_closed`.
    ///
    /// # Errors
    /// When the medium fails.
    fn sync(&self, length: u64, is_closed: bool) -> Result<(), BackupError>;

    /// Gives the stripe its name. Nothing of it is visible as a stripe before.
    ///
    /// # Errors
    /// When the medium fails, or something has that name already.
    fn publish(&self) -> Result<(), BackupError>;

    /// Ends writes that wait, and lets later ones fail: another stripe has failed.
    fn cancel(&self) {}

    /// Removes what was written, without a long wait.
    ///
    /// # Errors
    /// When something may be left, in a sentence that says what.
    fn discard(&self) -> Result<(), BackupError>;
}
