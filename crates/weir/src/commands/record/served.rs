//! `weir record --control`: the requests to the volumes of a running server.

use super::file::{Tally, has_requests, keep, part_of};
use crate::cli::RecordArgs;
use crate::error::{CliError, FAILED, NO};
use crate::output;
use crate::signals::Signals;
use std::fs::File;
use std::io::{self, BufRead, ErrorKind, Write};
use std::path::Path;
use std::time::Duration;
use tempfile::NamedTempFile;
use weir_import::recorded::open_own;
use weir_server::control::Recorded;
use weir_trace::Ending;
use weir_units::{Instant, Span};
use weir_wall::Clock;

/// Time until a signal is noticed.
const NOTICE: Duration = Duration::from_millis(100);

pub(super) fn run(control: &Path, args: &RecordArgs) -> Result<u8, CliError> {
    if let Some(option) = args.part.given_without_devices() {
        return Err(CliError::Refused(format!(
            "{option} is for traces; record the requests, then select a part of the trace"
        )));
    }
    let signals = Signals::catch()?;
    let recorded = Recorded::begin(control, &args.part.devices, NOTICE)?;
    let mut part = part_of(&args.out)?;
    output::talk("weir: recording; Ctrl-C ends it");
    let copied = copy(recorded, part.as_file_mut(), args.duration, &signals);
    if has_requests(part.path()) {
        // A partial trace is kept as well: readers use it up to its last whole block.
        keep(part, &args.out)?;
        copied?;
    } else {
        copied?;
        check_empty(&part, args)?;
        keep(part, &args.out)?;
    }
    report(args)
}

/// Copies the trace to the file, until the server has sent its end. A signal, or the end of
/// `duration`, ends the recording.
fn copy(
    mut recorded: Recorded,
    file: &mut File,
    duration: Option<Span>,
    signals: &Signals,
) -> Result<(), CliError> {
    let clock = Clock::start();
    let mut is_over = false;
    loop {
        let has_time = duration.is_none_or(|length| clock.now() < Instant::ZERO + length);
        if !is_over && (signals.code().is_some() || !has_time) {
            is_over = true;
            recorded.end()?;
        }
        let read = match recorded.fill_buf() {
            Ok([]) => return Ok(()),
            Ok(bytes) => file.write_all(bytes).map(|()| bytes.len()),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(0),
                _ => Err(error),
            },
        };
        recorded.consume(read.map_err(failed)?);
    }
}

fn failed(source: io::Error) -> CliError {
    CliError::System { context: "recording", source }
}

/// Refuses a recording without requests that would replace a trace, or that is none.
fn check_empty(part: &NamedTempFile, args: &RecordArgs) -> Result<(), CliError> {
    // The server may have gone before it sent anything.
    let gone = || failed(io::Error::from(ErrorKind::UnexpectedEof));
    let mut reader = open_own(part.path()).ok().flatten().ok_or_else(gone)?;
    if !has_requests(&args.out) {
        return Ok(());
    }
    let is_sound = reader.next_request().is_ok();
    match reader.ending().filter(|_| is_sound) {
        Some(Ending::Complete | Ending::Lossy { .. }) => Err(CliError::Refused(format!(
            "no request came, so {} keeps the trace that it has; give another --out for an empty one",
            args.out.display()
        ))),
        _ => Err(gone()),
    }
}

/// Reads the file again and reports it.
fn report(args: &RecordArgs) -> Result<u8, CliError> {
    let out = args.out.as_path();
    let Some(mut reader) = open_own(out)? else {
        // The server has gone before it sent anything.
        let source = io::Error::from(ErrorKind::UnexpectedEof);
        return Err(failed(source));
    };
    let mut tally = Tally::default();
    loop {
        let next = reader.next_request();
        let next = next.map_err(|source| CliError::Trace { path: out.to_owned(), source })?;
        let Some(request) = next else { break };
        tally.declare(reader.devices());
        tally.count(&request);
    }
    let source = reader.header().source.clone();
    let (lost, code, notes) = match reader.ending() {
        Some(Ending::Lossy { lost }) => (lost, NO, Vec::new()),
        Some(Ending::Complete) => (0, 0, Vec::new()),
        ending => (0, FAILED, ending.map(|own| own.to_string()).into_iter().collect()),
    };
    output::print(&tally.report(out, source, (lost, notes))?, args.output.format())?;
    Ok(code)
}
