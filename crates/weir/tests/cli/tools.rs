//! Programs that are not Weir's.

use std::ffi::OsStr;

/// Returns whether a program is installed. It has to be with `CI=true`.
pub(crate) fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|dir| dir.join(program).is_file());
    let must = std::env::var_os("CI").as_deref() == Some(OsStr::new("true"));
    assert!(found || !must, "CI=true, and {program} is not installed");
    found
}

/// Ends the test, aloud, where a program is missing.
macro_rules! needs {
    ($($program:literal),+) => {
        $(if !tools::has($program) {
            println!("skipped: needs {}", $program);
            return;
        })+
    };
}
pub(crate) use needs;
