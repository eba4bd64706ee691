//! Copies a trace to a file, under a temporary name until it is complete.

use super::file::{Tally, has_requests, keep};
use crate::cli::RecordArgs;
use crate::error::{CliError, NO};
use crate::output;
use crate::signals::Signals;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use tempfile::NamedTempFile;
use weir_trace::{Header, ReadTrace, Request, Selection, Writer};

/// Requests between two looks at signals.
const LOOK: u64 = 1 << 16;

/// A trace that is copied to a file, under a temporary name until it is complete.
pub(super) struct Copied<'a, T> {
    trace: Selection<T>,
    /// The first request, which must be read to know the start of the trace.
    first: Option<Request>,
    out: &'a Path,
    part: Option<NamedTempFile>,
    writer: Option<Writer<BufWriter<File>>>,
    tally: Tally,
    signals: Option<Signals>,
}

impl<'a, T: ReadTrace> Copied<'a, T> {
    /// Reads the first request. The copy goes to `part`, which gets the name `out` at its end.
    pub(super) fn begin(
        mut trace: Selection<T>,
        part: NamedTempFile,
        out: &'a Path,
    ) -> Result<Self, CliError> {
        let first = trace.next_request().map_err(CliError::Replayed)?;
        let (part, tally) = (Some(part), Tally::default());
        Ok(Self { trace, first, out, part, writer: None, tally, signals: None })
    }

    /// Ends the copy at a signal; nothing of it is kept then.
    pub(super) fn until(mut self, signals: Signals) -> Self {
        self.signals = Some(signals);
        self
    }

    /// Returns whether the trace has no requests.
    pub(super) const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Returns the trace.
    pub(super) const fn trace(&self) -> &T {
        self.trace.trace()
    }

    /// Returns the trace, to read what is behind the copied part.
    pub(super) const fn trace_mut(&mut self) -> &mut T {
        self.trace.trace_mut()
    }

    /// Returns whether the copy ended at the end of its window, and not at that of the trace.
    pub(super) const fn is_part(&self) -> bool {
        self.trace.is_part()
    }

    /// Begins the file, for a trace that began at `start`, in nanoseconds since 1970.
    pub(super) fn open(
        &mut self,
        start: Option<i64>,
        source: &str,
        by: &str,
        args: &RecordArgs,
    ) -> Result<(), CliError> {
        let from = args.part.from.unwrap_or_default();
        let header = Header {
            start_unix_ns: start.map(|start| start.saturating_add_unsigned(from.nanos())),
            source: source.to_owned(),
            by: by.to_owned(),
        };
        let Some(part) = &self.part else { return Ok(()) };
        let file = part.as_file().try_clone();
        let file = file.map_err(|source| CliError::write(self.out, source))?;
        let writer = Writer::new(BufWriter::new(file), &header);
        self.writer = Some(writer.map_err(|source| self.unwritten(source))?);
        Ok(())
    }

    fn unwritten(&self, source: weir_trace::WriteError) -> CliError {
        CliError::Record { path: self.out.to_owned(), source }
    }

    /// Copies all requests.
    pub(super) fn all(&mut self) -> Result<(), CliError> {
        let mut next = self.first.take();
        let mut count = 0;
        while let Some(request) = next {
            self.one(&request)?;
            count += 1;
            if count % LOOK == 0
                && let Some(code) = self.signals.as_ref().and_then(Signals::code)
            {
                return Err(CliError::Ended(i32::from(code) - 128));
            }
            next = self.trace.next_request().map_err(CliError::Replayed)?;
        }
        let missing = self.trace.missing();
        let known = self.trace.devices().join(", ");
        if count == 0 {
            return Err(CliError::Refused(match missing.first() {
                Some(name) => {
                    format!("--device {name}: the trace has no such device; there are: {known}")
                }
                None => "the trace has no requests in this window; give another --from, --to or \
                         --sample"
                    .to_owned(),
            }));
        }
        for name in missing {
            output::talk(&format!(
                "weir: --device {name} has no effect: the trace has no such device; there are: {known}"
            ));
        }
        Ok(())
    }

    fn one(&mut self, request: &Request) -> Result<(), CliError> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let wrong = |source| CliError::Record { path: self.out.to_owned(), source };
        let devices = self.trace.devices();
        for name in devices.iter().skip(self.tally.devices.len()) {
            writer.device(name).map_err(wrong)?;
        }
        self.tally.declare(devices);
        writer.request(request).map_err(wrong)?;
        self.tally.count(request);
        Ok(())
    }

    /// Keeps what was written of a recording that failed, if that has requests. Returns whether it
    /// has.
    pub(super) fn keep_written(mut self) -> Result<bool, CliError> {
        // What it still holds cannot be written.
        drop(self.writer.take());
        match self.part.take().filter(|part| has_requests(part.path())) {
            Some(part) => keep(part, self.out).map(|()| true),
            None => Ok(false),
        }
    }

    /// Ends the copy, of a trace that lacks requests if they were `lost` or it was `cut` off. A copy
    /// of a cut trace has no end either.
    pub(super) fn finish(
        mut self,
        source: String,
        (lost, cut): (u64, bool),
        args: &RecordArgs,
    ) -> Result<u8, CliError> {
        let Some(writer) = self.writer.take() else { return Ok(0) };
        let done = if cut { writer.finish_cut() } else { writer.finish(lost) };
        let out = done.map_err(|source| self.unwritten(source))?;
        let write = |source| CliError::write(self.out, source);
        drop(out.into_inner().map_err(|error| write(error.into_error()))?);
        if let Some(part) = self.part.take() {
            keep(part, self.out)?;
        }
        let notes = self.trace.notes();
        let tally = std::mem::take(&mut self.tally);
        output::print(&tally.report(self.out, source, (lost, notes))?, args.output.format())?;
        Ok(if lost > 0 || cut { NO } else { 0 })
    }
}
