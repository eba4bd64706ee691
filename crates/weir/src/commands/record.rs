//! `weir record`: keeps each request of a system with its time.

mod served;

use crate::cli::RecordArgs;
use crate::commands::observe::import::{kind_of, options_of};
use crate::commands::traces::{check_window, open_foreign, open_own, select};
use crate::error::{CliError, NO};
use crate::output;
use crate::signals::Signals;
use std::fs::{self, File};
use std::io::{BufWriter, Read};
use std::path::{Path, PathBuf};
use weir_report::number::float;
use weir_report::replay::{RecordReport, RecordedDevice};
use weir_trace::format::SIGNATURE;
use weir_trace::{Ending, Header, Kind, ReadTrace, Request, Selection, Writer};
use weir_units::Instant;

/// Requests between two looks at signals.
const LOOK: u64 = 1 << 16;

pub(crate) fn run(args: &RecordArgs) -> Result<u8, CliError> {
    check_out(&args.out, &args.traces)?;
    match &args.control {
        Some(control) => served::run(control, args),
        None => converted(args),
    }
}

/// Converts a trace of another tool, or a part of a trace of Weir.
fn converted(args: &RecordArgs) -> Result<u8, CliError> {
    check_window(&args.part)?;
    if let Some(every) = args.import.every {
        return Err(CliError::Refused(format!(
            "--every {every}: a trace has single requests and no samples; leave it out"
        )));
    }
    let options = options_of(&args.import)?;
    let kind = kind_of(&args.import)?;
    let own = match args.traces.as_slice() {
        [one] if kind.is_none_or(|kind| kind.name == "weirtrace") => open_own(one)?,
        _ => None,
    };
    if let Some(reader) = own {
        let source = format!("{}: {}", args.traces[0].display(), reader.header().source);
        let start = reader.header().start_unix_ns;
        let mut copy = Copied::begin(select(reader, &args.part), &args.out)?;
        copy.open(start, &source, &options.by, args)?;
        copy.all()?;
        let lost = match copy.trace.trace().ending() {
            Some(Ending::Lossy { lost }) => lost,
            _ => 0,
        };
        return copy.finish(source, lost, args);
    }
    let opened = open_foreign(&args.traces, kind, &options)?;
    let Ok([requests]) = <[_; 1]>::try_from(opened) else {
        return Err(CliError::Refused(
            "several traces cannot be recorded into one file; record each into its own, and \
             replay them together"
                .to_owned(),
        ));
    };
    let source = format!("{}: {}", requests.name(), requests.kind().about);
    let mut copy = Copied::begin(select(requests, &args.part), &args.out)?;
    let start = copy.trace.trace().start_unix_ns().or(options.start);
    copy.open(start, &source, &options.by, args)?;
    copy.all()?;
    copy.finish(source, 0, args)
}

/// A trace that is copied to a file, under a temporary name until it is complete.
struct Copied<'a, T> {
    trace: Selection<T>,
    /// The first request, which must be read to know the start of the trace.
    first: Option<Request>,
    out: &'a Path,
    part: PathBuf,
    writer: Option<Writer<BufWriter<File>>>,
    tally: Tally,
    signals: Signals,
}

impl<'a, T: ReadTrace> Copied<'a, T> {
    fn begin(mut trace: Selection<T>, out: &'a Path) -> Result<Self, CliError> {
        let first = trace.next_request().map_err(CliError::Replayed)?;
        let (part, signals) = (part_of(out), Signals::catch()?);
        Ok(Self { trace, first, out, part, writer: None, tally: Tally::default(), signals })
    }

    /// Creates the file, for a trace that began at `start`, in nanoseconds since 1970.
    fn open(
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
        let file = File::create(&self.part).map_err(|source| CliError::write(self.out, source))?;
        let writer = Writer::new(BufWriter::new(file), &header);
        self.writer = Some(writer.map_err(|source| self.unwritten(source))?);
        Ok(())
    }

    fn unwritten(&self, source: weir_trace::WriteError) -> CliError {
        CliError::Record { path: self.out.to_owned(), source }
    }

    /// Copies all requests.
    fn all(&mut self) -> Result<(), CliError> {
        let mut next = self.first.take();
        let mut count = 0;
        while let Some(request) = next {
            self.one(&request)?;
            count += 1;
            if count % LOOK == 0
                && let Some(code) = self.signals.code()
            {
                return Err(CliError::Ended(i32::from(code) - 128));
            }
            next = self.trace.next_request().map_err(CliError::Replayed)?;
        }
        if count == 0 {
            let missing: Vec<&str> = self.trace.missing().collect();
            let known = self.trace.devices().join(", ");
            return Err(CliError::Refused(match missing.first() {
                Some(name) => {
                    format!("--device {name}: the trace has no such device; there are: {known}")
                }
                None => "the trace has no requests in this window; give another --from, --to or \
                         --sample"
                    .to_owned(),
            }));
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

    fn finish(mut self, source: String, lost: u64, args: &RecordArgs) -> Result<u8, CliError> {
        let Some(writer) = self.writer.take() else { return Ok(0) };
        let out = writer.finish(lost).map_err(|source| self.unwritten(source))?;
        let write = |source| CliError::write(self.out, source);
        let file = out.into_inner().map_err(|error| write(error.into_error()))?;
        keep(&file, &self.part, self.out)?;
        let notes = self.trace.notes();
        let tally = std::mem::take(&mut self.tally);
        output::print(&tally.report(self.out, source, (lost, notes))?, args.output.format())?;
        Ok(if lost > 0 { NO } else { 0 })
    }
}

/// Gives a complete file its name.
fn keep(file: &File, part: &Path, out: &Path) -> Result<(), CliError> {
    let kept = file.sync_all().and_then(|()| fs::rename(part, out));
    kept.map_err(|source| CliError::write(out, source))
}

/// Returns the name of a file until it is complete.
fn part_of(out: &Path) -> PathBuf {
    let mut part = out.to_owned().into_os_string();
    part.push(".part");
    PathBuf::from(part)
}

impl<T> Drop for Copied<'_, T> {
    fn drop(&mut self) {
        // A complete file has its final name.
        let _ = fs::remove_file(&self.part);
    }
}

/// Counts of the requests in a file.
#[derive(Debug, Default)]
struct Tally {
    devices: Vec<RecordedDevice>,
    requests: u64,
    last: Instant,
}

impl Tally {
    /// Adds devices that were not seen before.
    fn declare(&mut self, devices: &[String]) {
        let new = devices.iter().skip(self.devices.len());
        let new = new.map(|name| RecordedDevice { name: name.clone(), ..Default::default() });
        self.devices.extend(new);
    }

    /// Reports a file with these requests.
    fn report(
        self,
        out: &Path,
        source: String,
        (lost, notes): (u64, Vec<String>),
    ) -> Result<RecordReport, CliError> {
        let bytes = fs::metadata(out).map_err(|source| CliError::write(out, source))?.len();
        Ok(RecordReport {
            path: out.display().to_string(),
            source,
            requests: self.requests,
            lost,
            length_s: float(self.last.nanos()) / 1e9,
            bytes,
            devices: self.devices.into_iter().filter(RecordedDevice::is_used).collect(),
            notes,
        })
    }

    fn count(&mut self, request: &Request) {
        self.last = request.at;
        self.requests += 1;
        let Some(device) = self.devices.get_mut(request.device as usize) else { return };
        match request.kind {
            Kind::Read => device.reads += 1,
            Kind::Write | Kind::WriteThrough => device.writes += 1,
            Kind::Discard => device.discards += 1,
            Kind::Flush => device.flushes += 1,
        }
        if !matches!(request.kind, Kind::Discard) {
            device.bytes = device.bytes.saturating_add(request.len);
        }
        device.reaches_bytes = device.reaches_bytes.max(request.offset + request.len);
    }
}

/// Checks that a trace can be written there. Only a trace that is not also an input is replaced.
fn check_out(out: &Path, traces: &[PathBuf]) -> Result<(), CliError> {
    let refused = |why: &str| {
        Err(CliError::Refused(format!("--out {}: {why}; give another name", out.display())))
    };
    if out.as_os_str() == "-" {
        return refused("a trace cannot be written to standard output");
    }
    let Ok(there) = fs::symlink_metadata(out) else { return Ok(()) };
    let mut begin = [0; SIGNATURE.len()];
    let is_trace = |path: &Path| {
        let read = File::open(path).and_then(|mut file| file.read_exact(&mut begin));
        read.is_ok() && begin == SIGNATURE
    };
    match () {
        () if there.is_symlink() => refused("it is a link, which would be replaced"),
        () if !there.is_file() => refused("it exists and is not a file"),
        () if traces.iter().any(|own| crate::input::is_same(own, out)) => {
            refused("it is the trace to read")
        }
        () if there.len() > 0 && !{ is_trace }(out) => refused("it exists and is not a trace"),
        () => Ok(()),
    }
}
