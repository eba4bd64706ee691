//! A verb in a process with limits.

use crate::settings::Limits;
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};

/// Largest message of a verb, in bytes.
const LARGEST_MESSAGE: usize = 16 << 10;

/// Width of text, in columns.
const COLUMNS: &str = "100";

/// The answer of a verb.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Its output.
    pub(crate) output: String,
    /// Its messages.
    pub(crate) messages: String,
    /// Its exit code; `None` if a signal ended it.
    pub(crate) code: Option<i32>,
}

impl Answer {
    /// Returns whether the process ended because it got no more memory.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        self.code.is_none() && self.messages.contains("memory allocation of")
    }
}

/// A reason why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// It took too long.
    Late,
    /// The answer is too long.
    Long,
    /// The process cannot be started or read.
    Failed(String),
}

/// Runs a verb in `folder`. The process is killed if it exceeds a limit, or if the returned future
/// is dropped.
pub(crate) async fn run(
    program: &Path,
    arguments: Vec<OsString>,
    folder: PathBuf,
    limits: Limits,
) -> Result<Answer, NoAnswer> {
    let failed = |error: io::Error| NoAnswer::Failed(error.to_string());
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env("COLUMNS", COLUMNS)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    limit_memory(&child, limits.memory).map_err(failed)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let finished = async {
        let output = bounded(stdout, limits.output, Excess::Refuse);
        let messages = bounded(stderr, LARGEST_MESSAGE, Excess::Drop);
        let (output, messages) = tokio::try_join!(output, messages)?;
        let status = child.wait().await.map_err(failed)?;
        Ok(Answer { output, messages, code: status.code() })
    };
    let ended = tokio::time::timeout(limits.time, finished).await;
    let answer = ended.unwrap_or(Err(NoAnswer::Late));
    if answer.is_err() {
        // It may have ended meanwhile.
        drop(child.kill().await);
    }
    answer
}

/// Limits the memory that a process may still allocate. One that has ended needs no limit.
fn limit_memory(child: &Child, most: u64) -> io::Result<()> {
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let Some(pid) = pid else { return Ok(()) };
    let limit = Rlimit { current: Some(most), maximum: Some(most) };
    match prlimit(Some(pid), Resource::Data, limit) {
        Ok(_) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The treatment of bytes beyond a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Excess {
    Refuse,
    Drop,
}

/// Reads a stream to its end, and at most `most` bytes of it.
async fn bounded(
    stream: Option<impl AsyncRead + Unpin>,
    most: usize,
    excess: Excess,
) -> Result<String, NoAnswer> {
    let Some(mut stream) = stream else { return Ok(String::new()) };
    let (mut all, mut part) = (Vec::new(), vec![0; 16 << 10]);
    loop {
        let read = stream.read(&mut part).await;
        let count = read.map_err(|error| NoAnswer::Failed(error.to_string()))?;
        if count == 0 {
            return Ok(String::from_utf8_lossy(&all).into_owned());
        }
        if all.len() + count > most && excess == Excess::Refuse {
            return Err(NoAnswer::Long);
        }
        let room = most - all.len();
        all.extend_from_slice(&part[..count.min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn shell(script: &str, limits: Limits) -> Result<Answer, NoAnswer> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let arguments = vec!["-c".into(), script.into()];
        runtime.block_on(run(Path::new("/bin/sh"), arguments, "/".into(), limits))
    }

    #[test]
    fn output_messages_and_code_are_returned() {
        let answer = shell("echo out; echo err >&2; exit 2", Limits::default()).unwrap();
        assert_eq!((answer.output.as_str(), answer.messages.as_str()), ("out\n", "err\n"));
        assert_eq!(answer.code, Some(2));
        let broken = shell("kill -9 $$", Limits::default()).unwrap();
        assert_eq!(broken.code, None);
    }

    #[test]
    fn a_process_beyond_a_limit_is_killed() {
        let long = Limits { output: 1000, ..Limits::default() };
        assert_eq!(shell("while :; do echo 0123456789; done", long).unwrap_err(), NoAnswer::Long);
        // Messages beyond the limit are dropped while the process goes on.
        let talk = "i=0; while [ $i -lt 9000 ]; do echo 0123456789 >&2; i=$((i+1)); done; echo out";
        let answer = shell(talk, Limits::default()).unwrap();
        assert_eq!((answer.messages.len(), answer.output.as_str()), (LARGEST_MESSAGE, "out\n"));
        let late = Limits { time: Duration::from_millis(50), ..Limits::default() };
        assert_eq!(shell("exec sleep 1000", late).unwrap_err(), NoAnswer::Late);
    }

    #[test]
    fn a_process_gets_no_more_memory_than_its_limit() {
        let little = Limits { memory: 64 << 20, ..Limits::default() };
        // The limit is there soon after the start.
        let script = "sleep 0.2; x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}";
        let answer = shell(script, little).unwrap();
        assert_ne!(answer.code, Some(0), "{answer:?}");
        assert_eq!(shell(script, Limits::default()).unwrap().output, "200000000\n");
    }

    #[test]
    fn a_missing_program_is_reported() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let program = Path::new("/nonexistent/weir");
        let ended = runtime.block_on(run(program, Vec::new(), "/".into(), Limits::default()));
        assert!(matches!(ended, Err(NoAnswer::Failed(_))), "{ended:?}");
    }
}
