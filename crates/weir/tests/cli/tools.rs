//! Programs that are not Weir's, and what else a machine may lack.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Returns whether a program is installed. It has to be with `CI=true`.
pub(crate) fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|dir| dir.join(program).is_file());
    let must = std::env::var_os("CI").as_deref() == Some(OsStr::new("true"));
    assert!(found || !must, "CI=true, and {program} is not installed");
    found
}

/// Returns Python with a package. It has to be there with `CI=true`.
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
pub(crate) fn python_with(package: &str) -> Option<String> {
    let python = std::env::var("WEIR_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let mut import = Command::new(&python);
    import.args(["-c", &format!("import {package}")]).stdout(Stdio::null()).stderr(Stdio::null());
    let found = import.status().is_ok_and(|status| status.success());
    let must = std::env::var_os("CI").as_deref() == Some(OsStr::new("true"));
    assert!(found || !must, "CI=true, and the Python package {package} is not installed");
    if !found {
        println!("skipped: needs the Python package {package}");
    }
    found.then_some(python)
}

/// Returns whether nbdkit has a plug-in that works. It has to be there with `CI=true`.
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
pub(crate) fn nbdkit_has(plugin: &str) -> bool {
    let mut dump = Command::new("nbdkit");
    dump.args([plugin, "--dump-plugin"]).stdin(Stdio::null());
    dump.stdout(Stdio::null()).stderr(Stdio::null());
    let found = dump.status().is_ok_and(|status| status.success());
    let must = std::env::var_os("CI").as_deref() == Some(OsStr::new("true"));
    assert!(found || !must, "CI=true, and nbdkit has no plug-in {plugin}");
    if !found {
        println!("skipped: needs nbdkit's plug-in {plugin}");
    }
    found
}

/// Returns whether this machine has something that no package brings. With `CI=true`, `WEIR_TEST_WITHOUT` has
/// to name it if it is missing.
pub(crate) fn machine_has(what: &str, found: bool) -> bool {
    weir_needs::is_met(what, what, found)
}

/// Returns the folder of the genuine files beside the project, if it is there.
pub(crate) fn samples() -> Option<PathBuf> {
    weir_needs::shared("samples")
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
