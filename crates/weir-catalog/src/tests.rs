//! The built-in editions against figures typed by hand from the documents, the
//! rules of provisioned disks, and the messages that bad input gets.

mod builtin;
mod clouds;
mod messages;
mod provisioned;

use crate::{Catalog, Edition};

/// The documented example of an edition of one's own.
const EXAMPLE: &str = include_str!("../../../catalog/example.toml");

fn builtin(name: &str) -> Edition {
    Catalog::builtin().edition(name).unwrap().clone()
}
