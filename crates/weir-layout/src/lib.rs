//! The layout file: host, volumes, stripes and caches in one TOML that every
//! verb reads.
//!
//! [`Layout::parse`] reads the text ([`mod@file`] is its shape), looks every name up
//! in the catalog, checks it against what the edition allows, and leaves a
//! [`HostSpec`](weir_core::HostSpec) per host, which an engine is compiled from.
//!
//! | module | holds |
//! |---|---|
//! | [`mod@file`] | the keys as they are written, and their JSON schema |
//! | `layout` | [`Layout`], [`Host`], [`Export`]: a resolved layout |
//! | `resolve` | the resolution of hosts, volumes, stripes and files |
//! | `volume` | the resolution of a volume's keys |
//! | [`backend`] | volumes whose bytes are on an NBD server, on a block device or in a file |
//! | [`clients`] | the clients that may reach an export over NBD |
//! | [`backups`] | volumes that backups are written to |
//! | [`bill`] | the price of a layout, line by line |
//! | [`blob`], `serving` | page blobs: address, limits, accounts; and the resolution of their keys |
//! | `database_file`, [`files`] | database files, and their places |
//! | [`hot_plug`], `new_volume` | volumes that are created, changed and deleted while their host runs |
//! | [`instance`] | managed instances: their limits, and the sums of their files |
//! | [`luns`] | numbers of disks at their machine |
//! | `pool` | disks that share their limits |
//! | [`steps`] | limits of a file at other sizes |
//! | [`text`] | layouts as text |
//! | [`error`] | errors of layouts |

#![forbid(unsafe_code)]

pub mod backend;
pub mod backups;
pub mod bill;
pub mod blob;
pub mod clients;
mod database_file;
pub mod error;
pub mod file;
pub mod files;
pub mod hot_plug;
pub mod instance;
mod layout;
pub mod luns;
mod new_volume;
mod pool;
mod resolve;
mod serving;
pub mod steps;
pub mod text;
mod volume;

pub use backend::Backend;
pub use bill::Bill;
pub use blob::Blob;
pub use error::LayoutError;
pub use file::{ManagedInstance, Role};
pub use files::File;
pub use instance::Instance;
pub use layout::{Export, Host, Layout};
pub use text::LayoutText;
pub use volume::{Choices, Volume};

#[cfg(test)]
mod tests;
