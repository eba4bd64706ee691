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
//! | [`error`] | every way in which a layout can be wrong |

#![forbid(unsafe_code)]

pub mod error;
pub mod file;
mod resolve;
mod volume;

pub use error::LayoutError;
pub use resolve::{Export, Host, Layout};
pub use volume::Volume;

#[cfg(test)]
mod tests;
