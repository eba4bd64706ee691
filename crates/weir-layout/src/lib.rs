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
//! | `resolve` | hosts and stripes |
//! | `volume` | what one volume's keys come to |
//! | [`backups`] | volumes that backups are written to |
//! | [`bill`] | the price of a layout, line by line |
//! | [`blob`] | page blobs: where they are served, what their volumes are |
//! | [`coming`] | volumes that are made while their host runs |
//! | [`files`] | database files: where they are, and what they are together |
//! | [`instance`] | managed instances: what they give, and what their files may come to |
//! | [`luns`] | the numbers of disks at their machine |
//! | `pool` | disks that share their limits |
//! | [`steps`] | what a file would get at another size |
//! | [`text`] | layouts as text |
//! | [`error`] | every way in which a layout can be wrong |

#![forbid(unsafe_code)]

pub mod backups;
pub mod bill;
pub mod blob;
pub mod coming;
pub mod error;
pub mod file;
pub mod files;
pub mod instance;
pub mod luns;
mod pool;
mod resolve;
pub mod steps;
pub mod text;
mod volume;

pub use bill::Bill;
pub use blob::Blob;
pub use error::LayoutError;
pub use file::{ManagedInstance, Role};
pub use files::File;
pub use instance::Instance;
pub use resolve::{Export, Host, Layout};
pub use text::LayoutText;
pub use volume::{Choices, Volume};

#[cfg(test)]
mod tests;
