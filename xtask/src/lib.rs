//! Development tasks of this repository.
//!
//! `cargo xtask --help` lists them. They are a library, so that the fuzzers in `fuzz/` and the
//! smoke test share their targets.
//!
//! | module | holds |
//! |---|---|
//! | [`catalog_data`] | the tables in `catalog/data` |
//! | [`fuzz`] | fuzz targets, and a small fuzzer that needs no nightly compiler |
//! | [`labs`] | figures of labs in wall time, beside those in virtual time |
//! | [`schema`] | `docs/layout.schema.json` |
//! | [`soak`] | a steady load, whose resources must stay flat |
//! | [`suite`] | test suites that others wrote |
//! | [`torture`] | campaigns of crashes |
//! | [`write_log`] | replays of write logs, and checks of the volume at each flush |
//! | [`error`] | errors of the tasks |

#![forbid(unsafe_code)]

mod blob_client;
pub mod catalog_data;
pub mod error;
pub mod fuzz;
pub mod interrupt;
pub mod labs;
pub mod schema;
pub mod soak;
pub mod suite;
pub mod torture;
pub mod write_log;

use std::path::PathBuf;

/// Returns the full path of the program to test.
///
/// # Errors
///
/// [`error::XtaskError::Program`] if it is not there.
pub(crate) fn program(path: &std::path::Path) -> Result<std::path::PathBuf, error::XtaskError> {
    let missing = |source| error::XtaskError::Program { path: path.to_owned(), source };
    path.canonicalize().map_err(missing)
}

/// Returns the root of the repository that this was built from.
#[must_use]
pub fn root() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root
}
