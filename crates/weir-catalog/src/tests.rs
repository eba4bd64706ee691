//! Built-in editions against figures copied from documents, rules of provisioning, and messages for
//! invalid input.

mod builtin;
mod clouds;
mod messages;
mod provisioned;
mod tables;
mod update;

use crate::{Catalog, Edition};

/// The documented example of a custom edition.
const EXAMPLE: &str = include_str!("../../../catalog/example.toml");

/// Returns a built-in edition without the machines and prices of the tables.
fn of_file(name: &str) -> Edition {
    let file = format!("catalog/{name}.toml");
    let (origin, text) = crate::catalog::BUILTIN.iter().find(|own| own.0 == file).unwrap();
    Edition::from_toml(origin, text).unwrap()
}

fn builtin(name: &str) -> Edition {
    Catalog::builtin().edition(name).unwrap().clone()
}
