//! Programs of other projects.

use std::ffi::OsStr;
use std::io::Write;
use std::process::{Command, Stdio};

/// Returns whether a requirement is met; where everything must run, it must be.
#[expect(clippy::print_stdout, reason = "a test that is skipped says so aloud")]
pub(crate) fn is_there(found: bool, what: &str) -> bool {
    let must = std::env::var_os("CI").as_deref() == Some(OsStr::new("true"));
    assert!(found || !must, "CI=true, and {what} is not installed");
    if !found {
        println!("skipped: needs {what}");
    }
    found
}

/// Returns whether a program is installed.
pub(crate) fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|dir| dir.join(program).is_file());
    is_there(found, program)
}

/// Runs a program with a text as input; returns its output and whether it succeeded.
pub(crate) fn feed(program: &str, args: &[&str], text: &str) -> (String, bool) {
    let mut command = Command::new(program);
    command.args(args).env("PYTHONDONTWRITEBYTECODE", "1");
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().expect("a program");
    let mut stdin = child.stdin.take().expect("a pipe");
    let text = text.to_owned();
    let writer = std::thread::spawn(move || drop(stdin.write_all(text.as_bytes())));
    let output = child.wait_with_output().expect("an end");
    writer.join().expect("no panic");
    let said = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&said).into_owned(), output.status.success())
}
