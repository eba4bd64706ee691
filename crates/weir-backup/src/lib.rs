//! Striped backups: their format, the engine that makes them, and restore.
//!
//! | module | holds |
//! |---|---|
//! | [`format`] | the bytes of a stripe, written and read |
//! | [`key`] | secrets, and the keys of a backup |
//! | [`read_at`] | where a stripe's bytes are read from |

#![forbid(unsafe_code)]

pub mod error;
pub mod format;
pub mod key;
pub mod read_at;

pub use error::BackupError;
pub use read_at::ReadAt;
