//! Chores of this repository that want to be programs rather than scripts.
//!
//! `cargo xtask --help` lists them. They are a library so that the long fuzzing
//! of `fuzz/` runs the very same targets as the smoke test.
//!
//! | module | holds |
//! |---|---|
//! | [`fuzz`] | what is fuzzed, and a small fuzzer that needs no nightly compiler |
//! | [`schema`] | `docs/layout.schema.json` |
//! | [`error`] | every way in which a chore can fail |

#![forbid(unsafe_code)]

pub mod error;
pub mod fuzz;
pub mod schema;

use std::path::PathBuf;

/// The root of the repository that this was built from.
#[must_use]
pub fn root() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root
}
