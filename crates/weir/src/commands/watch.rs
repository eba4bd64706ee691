//! `weir status --watch`: one report after the other.

use super::status::reading;
use crate::cli::StatusArgs;
use crate::error::CliError;
use crate::output;
use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{self, IsTerminal};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;
use weir_catalog::date_of;
use weir_report::status::StatusReport;
use weir_report::{Format, Report};
use weir_server::ServerError;
use weir_units::Span;

/// Moves the cursor to the top left and erases the screen from there.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Prints a report at each interval until a signal, the end of the server, or that of the reader.
pub(super) fn run(args: &StatusArgs, every: Span) -> Result<u8, CliError> {
    if every > Span::from_secs(3_600) {
        return Err(CliError::Refused(format!("--watch {every}: must be at most 1 h")));
    }
    let format = args.output.format();
    if !matches!(format, Format::Text | Format::Json) {
        return Err(CliError::Refused(
            "--watch: prints text or json; use --output json, or weir status without --watch"
                .to_owned(),
        ));
    }
    let signals = signals()?;
    let every = Duration::from_nanos(every.nanos());
    let mut before = reading(&args.control)?;
    while signals.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
        let now = match reading(&args.control) {
            Ok(now) if now.pid == before.pid && now.uptime_ns >= before.uptime_ns => now,
            Ok(_) => return Ok(stopped()),
            Err(CliError::Server(ServerError::Control { path, .. })) if !is_listening(&path) => {
                return Ok(stopped());
            }
            Err(error) => return Err(error),
        };
        let report = StatusReport::between(&before, now);
        if !output::print_more(&block(&report, format)?)? {
            return Ok(0);
        }
        before = report.now;
    }
    Ok(0)
}

/// Says that the server has stopped, which is no failure. Returns the exit code.
fn stopped() -> u8 {
    output::talk("the server has stopped");
    0
}

/// Returns whether a server has the socket, even if it does not answer.
fn is_listening(control: &Path) -> bool {
    UnixStream::connect(control).is_ok()
}

/// Returns the receiver of the signals that end the command.
fn signals() -> Result<Receiver<()>, CliError> {
    let failed = |source| CliError::System { context: "catching signals", source };
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let (caught, received) = channel();
    let wait = move || {
        for _ in signals.forever() {
            if caught.send(()).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(wait).map_err(failed)?;
    Ok(received)
}

/// Returns the report of one interval, with its time.
fn block(report: &StatusReport, format: Format) -> Result<String, CliError> {
    let time = time(weir_wall::calendar() / 1_000_000_000);
    if matches!(format, Format::Json) {
        let text = report.render(Format::Json);
        let failed = |error: serde_json::Error| CliError::System {
            context: "writing JSON",
            source: error.into(),
        };
        let mut document: Value = serde_json::from_str(&text).map_err(failed)?;
        document["time"] = json!(time);
        return Ok(format!("{document}\n"));
    }
    let text = report.render_on(format, &output::screen());
    Ok(match io::stdout().is_terminal() && !output::is_dumb() {
        true => format!("{CLEAR}{time}\n{text}"),
        false => format!("{time}\n{text}\n"),
    })
}

/// Returns seconds since 1970 as a date and a time in UTC.
fn time(seconds: u64) -> String {
    let (day, second) = (seconds / 86_400, seconds % 86_400);
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    format!("{}T{hour:02}:{minute:02}:{:02}Z", date_of(day), second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_in_rfc_3339() {
        assert_eq!(time(0), "1970-01-01T00:00:00Z");
        assert_eq!(time(1_795_654_927), "2026-11-26T01:02:07Z");
    }
}
