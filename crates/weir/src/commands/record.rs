//! `weir record`: keeps each request of a system with its time.

mod copy;
mod device;
mod file;
mod served;

use crate::cli::RecordArgs;
use crate::commands::observe::import::{kind_of, options_of};
use crate::commands::traces::{check_window, select};
use crate::error::CliError;
use crate::signals::Signals;
use copy::Copied;
use file::part_of;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use weir_import::recorded::{open_foreign, open_own};
use weir_trace::format::SIGNATURE;
use weir_trace::{Ending, Reader};
use weir_units::Instant;

pub(crate) fn run(args: &RecordArgs) -> Result<u8, CliError> {
    check_out(&args.out, &args.traces)?;
    match &args.control {
        Some(control) => served::run(control, args),
        None if args.traces.is_empty() => device::run(args),
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
    let signals = Signals::catch()?;
    let kind = kind_of(&args.import)?;
    let own = match args.traces.as_slice() {
        [one] if kind.is_none_or(|kind| kind.name == "weirtrace") => open_own(one)?,
        _ => None,
    };
    if let (Some(option), true) = (args.import.given_for_own(), own.is_some()) {
        return Err(CliError::Refused(format!(
            "{}: it is a trace of Weir, and {option} is for those of other tools; leave it out",
            args.traces[0].display()
        )));
    }
    let part = part_of(&args.out)?;
    if let Some(reader) = own {
        let source = format!("{}: {}", args.traces[0].display(), reader.header().source);
        let start = reader.header().start_unix_ns;
        let mut copy = Copied::begin(select(reader, &args.part), part, &args.out)?.until(signals);
        copy.open(start, &source, &options.by, args)?;
        copy.all()?;
        let missing = missing(&mut copy);
        return copy.finish(source, missing, args);
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
    let mut copy = Copied::begin(select(requests, &args.part), part, &args.out)?.until(signals);
    let start = copy.trace().start_unix_ns().or(options.start);
    copy.open(start, &source, &options.by, args)?;
    copy.all()?;
    let lost = copy.trace().lost();
    copy.finish(source, (lost, false), args)
}

/// Returns how many requests a trace lost, and whether it was cut off behind the copied part.
fn missing<R: Read>(copy: &mut Copied<'_, Reader<R>>) -> (u64, bool) {
    let is_part = copy.is_part();
    let reader = copy.trace_mut();
    if is_part {
        // The number is at the end of the trace. Damage on the way there is behind the part.
        reader.skip_before(Instant::FAR);
        while let Ok(Some(_)) = reader.next_request() {}
    }
    match reader.ending() {
        Some(Ending::Lossy { lost }) => (lost, false),
        Some(Ending::Cut { .. }) => (0, !is_part),
        _ => (0, false),
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
