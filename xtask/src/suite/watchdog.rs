//! Ends a test that hangs, with everything that it started.
//!
//! `timeout` ends a process group only. Tests of file systems start sessions of their own, and a process that
//! waits for a file system in user space takes no signal until the server of that file system is gone. A run
//! is therefore marked by a variable of its environment, which every process inherits, servers included.

use crate::error::XtaskError;
use rustix::process::{Pid, Signal, getpid, kill_process};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// Name and value of the variable that marks the processes of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a OsStr,
}

/// Pause between two looks at a running test, and between two rounds of kills.
const PAUSE: Duration = Duration::from_millis(20);
/// Most rounds of kills: 10 s.
const ROUNDS: u32 = 500;

/// Runs a command, whose output must not be a pipe. Returns nothing if it did not end within the limit; then all
/// processes with the mark have been killed.
#[expect(clippy::disallowed_methods, reason = "the limit is one of wall time")]
pub(super) fn run(
    command: &mut Command,
    mark: Mark<'_>,
    limit: Duration,
) -> Result<Option<ExitStatus>, XtaskError> {
    let program = command.get_program().to_owned();
    let failed = |doing| XtaskError::file(doing, Path::new(&program));
    command.env(mark.name, mark.value);
    let mut child = command.spawn().map_err(failed("starting"))?;
    let begin = Instant::now();
    while begin.elapsed() < limit {
        if let Some(status) = child.try_wait().map_err(failed("waiting for"))? {
            return Ok(Some(status));
        }
        std::thread::sleep(PAUSE);
    }
    let ended = end(mark);
    // It is dead now, unless `end` failed.
    ended.and_then(|()| child.wait().map_err(failed("waiting for"))).map(|_| None)
}

/// Kills all processes with the mark until there are none.
#[expect(clippy::disallowed_methods, reason = "the kernel ends them meanwhile")]
pub(super) fn end(mark: Mark<'_>) -> Result<(), XtaskError> {
    for _ in 0..ROUNDS {
        let left = marked(mark)?;
        if left.is_empty() {
            return Ok(());
        }
        for process in left {
            // It may have ended by itself.
            let _ = kill_process(process, Signal::KILL);
        }
        std::thread::sleep(PAUSE);
    }
    let left = marked(mark)?.iter().map(|own| own.as_raw_nonzero().to_string()).collect::<Vec<_>>();
    Err(XtaskError::Suite(format!(
        "processes {} of a test that hung do not end; see /proc/PID/stack, and restart the machine",
        left.join(", ")
    )))
}

/// Returns the processes with the mark, except for this one. Zombies have no environment, and are none of them.
fn marked(mark: Mark<'_>) -> Result<Vec<Pid>, XtaskError> {
    let own = [mark.name.as_bytes(), b"=", mark.value.as_bytes()].concat();
    let folder = Path::new("/proc");
    let list = fs::read_dir(folder).map_err(XtaskError::file("reading", folder))?;
    let ids = list.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let is_marked = |process: &Pid| {
        let path = format!("/proc/{}/environ", process.as_raw_nonzero());
        let environment = fs::read(path).unwrap_or_default();
        *process != getpid() && environment.split(|byte| *byte == 0).any(|pair| pair == own)
    };
    Ok(ids.filter_map(Pid::from_raw).filter(is_marked).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    #[test]
    fn a_command_that_hangs_is_killed_with_its_sessions() {
        let folder = tempfile::tempdir().expect("a folder");
        let mark = Mark { name: "WEIR_WATCHED", value: folder.path().as_os_str() };
        let hang = |script: &str, limit| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null());
            run(&mut command, mark, Duration::from_millis(limit)).expect("it runs")
        };
        assert!(hang("exit 0", 60_000).expect("it ends").success());
        // A session of its own that ignores signals, and a shell that waits for it.
        assert_eq!(hang("setsid sh -c 'trap \"\" TERM INT; sleep 600' & wait", 300), None);
        assert_eq!(marked(mark).expect("a list"), []);
    }
}
