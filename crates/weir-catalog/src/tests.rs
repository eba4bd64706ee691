//! Built-in editions against figures copied from documents, rules of provisioning, and messages for
//! invalid input.

mod builtin;
mod clouds;
mod messages;
mod provisioned;

use crate::{Catalog, Edition};

/// The documented example of a custom edition.
const EXAMPLE: &str = include_str!("../../../catalog/example.toml");

fn builtin(name: &str) -> Edition {
    Catalog::builtin().edition(name).unwrap().clone()
}
