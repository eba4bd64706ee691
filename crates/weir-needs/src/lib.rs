//! Needs of tests that no package of a system meets: devices, and folders beside the project.
//!
//! A test whose need is not met prints that it is skipped and passes. With `CI=true` it fails, unless
//! `WEIR_TEST_WITHOUT` names the need, so that the lack is a decision and not an accident.

#![forbid(unsafe_code)]

use std::path::PathBuf;

/// Returns `found`: whether a need is met. `word` stands for the need in `WEIR_TEST_WITHOUT`, and `what`
/// in messages.
///
/// # Panics
///
/// If the need is not met, `CI` is `true` and `WEIR_TEST_WITHOUT` does not name it.
#[must_use]
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
pub fn is_met(word: &str, what: &str, found: bool) -> bool {
    let without = std::env::var("WEIR_TEST_WITHOUT").unwrap_or_default();
    let must = std::env::var("CI").as_deref() == Ok("true");
    let is_named = without.split_whitespace().any(|own| own == word);
    assert!(found || !must || is_named, "CI=true, and this machine lacks {what}");
    if !found {
        println!("skipped: needs {what}");
    }
    found
}

/// Returns the folder `../shared/NAME` beside the project, if it is there. `NAME` stands for it in
/// `WEIR_TEST_WITHOUT`.
///
/// # Panics
///
/// As [`is_met`] does.
#[must_use]
pub fn shared(name: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(name);
    is_met(name, &format!("../shared/{name}"), folder.is_dir()).then_some(folder)
}
