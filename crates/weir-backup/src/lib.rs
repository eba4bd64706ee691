//! Striped backups: their format, the engine that makes them, and restore.
//!
//! | module | holds |
//! |---|---|
//! | [`format`](mod@format) | the bytes of a stripe, written and read |
//! | [`key`] | secrets, and the keys of a backup |
//! | [`cancel`] | a request to stop |
//! | [`export`] | an export that is read or written |
//! | [`read_at`] | where a stripe's bytes are read from |
//! | [`probe`], [`assemble`], [`walk`] | the ends of a stripe, the stripes of a backup, its frames |
//! | [`damage`], [`verify`](mod@verify) | the names of damage, and the search for it |
//! | [`place`] | folders and other places that hold stripes |
//! | [`library`], [`retention`] | the backups in some places, and which of them to keep |
//! | [`base`] | the full backup that a differential builds on |
//! | [`restore`](mod@restore) | frames into volumes and images |
//! | `label` | the label of a raw volume: which stripes lie where |
//! | `mark` | the first bytes of a volume that is being restored |
//! | [`memory`] | a backup written to memory |
//! | [`fuzz`] | what must hold for any bytes that are read as stripes |

#![forbid(unsafe_code)]

pub mod assemble;
pub mod base;
pub mod cancel;
pub mod damage;
pub mod error;
pub mod export;
pub mod format;
pub mod fuzz;
pub mod key;
mod label;
pub mod library;
mod mark;
pub mod memory;
pub mod place;
pub mod probe;
pub mod random;
pub mod read_at;
pub mod restore;
pub mod retention;
pub mod run;
pub mod target;
#[cfg(test)]
mod testing;
pub mod verify;
pub mod walk;

pub use assemble::{Assembly, StripeInput};
pub use cancel::Cancel;
pub use damage::Damage;
pub use error::BackupError;
pub use export::Export;
pub use library::Library;
pub use read_at::ReadAt;
pub use restore::{RestoreOptions, restore};
pub use verify::{Verified, Watch, verify};
