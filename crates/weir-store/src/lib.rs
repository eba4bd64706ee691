//! Stores for the bytes of served volumes.
//!
//! Many threads call a [`Store`] at once, so every operation takes `&self`. A server executes hot
//! reads on its own thread: a read costs little more than its copy, and [`Store::try_read_at`] returns
//! `false` instead of waiting. Ranges that were never written take no space, up to 32 TiB and beyond.
//!
//! | module | holds |
//! |---|---|
//! | [`store`] | [`Store`], the operations of a volume's bytes; [`Extent`] |
//! | [`asynchronous`] | [`AsyncStore`], operations that end later |
//! | [`memory`] | [`MemoryStore`], sparse, in 4 KiB pages |
//! | [`file`](mod@file) | [`FileStore`], sparse files of at most 1 TiB each |
//! | [`paged`] | [`PagedStore`], which knows its written pages and takes snapshots |
//! | [`freeze`] | [`Freezable`], a store as it was at one instant, and the blocks changed since |
//! | [`dir`] | [`DataDir`], a locked folder of volumes |
//! | [`check`] | [`FolderCheck`], which verifies a data directory |
//! | [`volume`] | [`Volume`], a [`FileStore`] or [`PagedStore`] whose size and attributes survive |
//! | [`meta`] | [`Meta`], the metadata of a volume, and its file |
//! | [`sums`] | checksums of a volume in files, and [`Scrub`] |
//! | [`fault`] | [`FaultStore`], for tests: power loss, full and broken media |
//! | [`write_log`] | [`LoggedStore`], whose content at each flush can be made again |
//! | [`error`] | [`StoreError`] |
//! | [`fuzz`] | the files of a volume from arbitrary bytes |
//!
//! Durability: bytes written before a [`Store::sync`] that returned `Ok`
//! survive the death of the process and of the machine; later ones survive the
//! death of the process only. For a [`PagedStore`], later ones survive only an orderly close, which
//! syncs: the map of written pages is in memory until then.

#![forbid(unsafe_code)]

pub mod asynchronous;
pub mod check;
pub mod dir;
mod disk;
pub mod error;
pub mod fault;
pub mod file;
pub mod freeze;
pub mod fuzz;
mod lock;
pub mod memory;
pub mod meta;
mod name;
pub mod paged;
mod pieces;
mod registry;
mod segment;
pub mod store;
pub mod sums;
mod sync;
pub mod volume;
pub mod write_log;

pub use asynchronous::{AsyncStore, Operation, Outcome, Then};
pub use check::{CheckedVolume, Damage, DamagedBytes, FolderCheck};
pub use dir::{DataDir, ListedVolume};
pub use error::{ErrorKind, StoreError};
pub use fault::{Fault, FaultStore};
pub use file::FileStore;
pub use freeze::{Changed, Freezable, Frozen, Scratch, Tracking};
pub use memory::MemoryStore;
pub use meta::{AttributeWithSize, LayerMeta, Layers, Meta};
pub use paged::{Change, PageRange, PagedStore, SnapshotId};
pub use store::{Extent, ExtentKind, ExtentList, ReadStore, Store};
pub use sums::{DamagedRange, Scrub};
pub use volume::{NewVolume, Volume};
pub use write_log::LoggedStore;

/// The `Result` of this crate.
pub type Result<T> = std::result::Result<T, StoreError>;
