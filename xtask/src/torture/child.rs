//! Programs beside Weir. They can hang if Weir hangs, so each wait for them has a time limit.

use super::server::wait_within;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use weir_units::Span;

/// The time for a program that was killed. One that waits for the mount ends only with Weir.
const GRACE: Span = Span::from_secs(5);

/// Waits for the end of a program, and kills it if it goes on for too long. Returns its status if it ended by
/// itself.
pub(super) fn end(child: &mut Child, time: Span) -> Option<ExitStatus> {
    let by_itself = wait(child, time);
    if by_itself.is_none() {
        // It may have ended just now.
        drop(child.kill());
        wait(child, GRACE);
    }
    by_itself
}

fn wait(child: &mut Child, time: Span) -> Option<ExitStatus> {
    let mut status = None;
    let ended = wait_within(time, "a program does not end", || {
        status = child.try_wait().ok().flatten();
        Ok(status.is_some())
    });
    ended.ok().and(status)
}

/// Runs a program, which must succeed in time.
pub(super) fn must(command: &mut Command, time: Span) -> Result<(), String> {
    let name = Path::new(command.get_program()).display().to_string();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{name}: {error}"))?;
    let said = [child.stdout.take().map(read), child.stderr.take().map(read)];
    let Some(status) = end(&mut child, time) else {
        // Its own children may keep the pipes open.
        return Err(format!("{name}: it does not end within {time}"));
    };
    if status.success() {
        return Ok(());
    }
    let said = said.into_iter().flatten().filter_map(|own| own.join().ok());
    Err(format!("{name}: {status}: {}", said.collect::<String>().trim_end()))
}

/// Reads a pipe in a thread, so that its writer never waits.
pub(super) fn read(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut said = Vec::new();
        // An error ends the output early.
        let _ = pipe.read_to_end(&mut said);
        String::from_utf8_lossy(&said).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        shell
    }

    #[test]
    fn a_program_that_hangs_or_fails_is_an_error() {
        let second = Span::from_secs(1);
        assert_eq!(must(&mut shell("true"), second), Ok(()));
        let hangs = must(&mut shell("exec sleep 1000"), second);
        assert!(hangs.is_err_and(|what| what.contains("does not end within")));
        let fails = must(&mut shell("echo no; echo space >&2; exit 3"), Span::from_secs(60));
        assert!(fails.is_err_and(|what| what.contains("no\nspace")));
    }
}
