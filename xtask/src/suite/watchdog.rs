//! Ends a test that hangs, with everything that it started.
//!
//! `timeout` ends a process group only. Tests of file systems start sessions of their own, and a process that
//! waits for a file system in user space takes no signal until the server of that file system is gone. A run
//! is therefore marked by a variable of its environment, which every process inherits, servers included.

use crate::error::XtaskError;
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
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
    // It may have removed its mark.
    let killed = child.kill().map_err(failed("ending"));
    end(mark).and(killed)?;
    for _ in 0..ROUNDS {
        if child.try_wait().map_err(failed("waiting for"))?.is_some() {
            return Ok(None);
        }
        std::thread::sleep(PAUSE);
    }
    Err(XtaskError::Suite(format!(
        "process {} of a test that hung does not end; see /proc/PID/stack, and restart the machine",
        child.id()
    )))
}

/// Does what [`run`] does, without a mark of the caller, and kills what is left of the command. `said` is a file
/// for its output, which is returned.
pub(super) fn run_to_file(
    command: &mut Command,
    said: &Path,
    limit: Duration,
) -> Result<(Option<ExitStatus>, String), XtaskError> {
    let creating = |stream: File| stream.try_clone().map(|other| (stream, other));
    let (out, err) =
        File::create(said).and_then(creating).map_err(XtaskError::file("creating", said))?;
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    let mark = Mark { name: "WEIR_SUITE_RUN", value: said.as_os_str() };
    let ended = run(command, mark, limit)?;
    end(mark)?;
    let said = fs::read(said).map_err(XtaskError::file("reading", said))?;
    Ok((ended, String::from_utf8_lossy(&said).into_owned()))
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
            kill(process, mark);
        }
        std::thread::sleep(PAUSE);
    }
    let left = marked(mark)?.iter().map(|own| own.as_raw_nonzero().to_string()).collect::<Vec<_>>();
    Err(XtaskError::Suite(format!(
        "processes {} of a test that hung do not end; see /proc/PID/stack, and restart the machine",
        left.join(", ")
    )))
}

/// Kills a process if it has the mark, and not another one that has its number by now.
fn kill(process: Pid, mark: Mark<'_>) {
    let Ok(handle) = pidfd_open(process, PidfdFlags::empty()) else { return };
    if is_marked(process, mark) {
        // It may have ended by itself.
        let _ = pidfd_send_signal(handle, Signal::KILL);
    }
}

/// Returns whether a thread of a process has the mark. The first one may have ended before the others.
fn is_marked(process: Pid, mark: Mark<'_>) -> bool {
    let own = [mark.name.as_bytes(), b"=", mark.value.as_bytes()].concat();
    let threads = fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero()));
    threads.into_iter().flatten().flatten().any(|thread| {
        let environment = fs::read(thread.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|pair| pair == own)
    })
}

/// Returns the processes with the mark, except for this one. Zombies have no environment, and are none of them.
fn marked(mark: Mark<'_>) -> Result<Vec<Pid>, XtaskError> {
    let folder = Path::new("/proc");
    let list = fs::read_dir(folder).map_err(XtaskError::file("reading", folder))?;
    let ids = list.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let is_other = |process: &Pid| *process != getpid() && is_marked(*process, mark);
    Ok(ids.filter_map(Pid::from_raw).filter(is_other).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

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
