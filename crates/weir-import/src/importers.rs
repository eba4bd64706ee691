//! The list of importers.
//!
//! To add an importer:
//!
//! 1. Write one file in the folder of its group, for example `linux/NAME.rs`. It implements
//!    [`ReadSamples`](crate::sheet::ReadSamples) and defines a `KIND`: the name for `--as`, a
//!    description, a test that recognizes the input, a function that opens a reader, and signs by
//!    which an input of no known kind is likened to this one.
//! 2. Add `NAME::KIND` to `KINDS` in the file of the group, and declare the module there. The order
//!    is that of detection.
//! 3. Describe the kind in a row of `docs/IMPORT.md`; a test compares the row with `KIND`.
//!
//! An importer imports the shared tools (`sheet`, `text`, `table`, `rows` and so on) and files of
//! its own group. It does not import this list, the detection or [`merge`](crate::merge).

use crate::kind::Kind;
use crate::{backup, bench, cloud, linux, postgres, sql, trace, windows};

/// The kinds by origin, in the order of detection. Kinds with distinctive words come before kinds
/// known by their shape.
const GROUPS: [&[Kind]; 8] = [
    cloud::KINDS,
    windows::KINDS,
    linux::KINDS,
    backup::KINDS,
    &[sql::assessment::KIND, sql::KIND],
    postgres::KINDS,
    trace::KINDS,
    bench::KINDS,
];

/// Returns all kinds, in the order of detection.
pub fn kinds() -> impl Iterator<Item = Kind> {
    GROUPS.into_iter().flatten().copied()
}

/// Returns the kind of a name.
#[must_use]
pub fn kind_named(name: &str) -> Option<Kind> {
    kinds().find(|kind| kind.name == name)
}
