//! Traces to record or replay: files of Weir, and block traces of other tools.

use crate::cli::{PartArgs, ReplayArgs};
use crate::error::CliError;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use weir_import::{Bytes, Input, Kind, Options, Requests, decompressed, trace_kind};
use weir_trace::format::SIGNATURE;
use weir_trace::{ReadTrace, Reader, Selection};
use weir_workload::replay::{Pace, Recording, ReplayOptions};

/// The bytes at the beginning of a file that show its kind.
const GLANCE: u64 = 64 << 10;
/// The bytes of the signature.
const SIGNATURE_LEN: u64 = SIGNATURE.len() as u64;

/// Returns whether all jobs are traces, by their contents; some jobs and some traces are an error.
pub(super) fn are_traces(jobs: &[PathBuf]) -> Result<bool, CliError> {
    let kinds: Vec<bool> = jobs.iter().map(|path| is_trace(path)).collect();
    match (kinds.iter().position(|own| *own), kinds.iter().position(|own| !own)) {
        (Some(_), None) => Ok(true),
        (Some(trace), Some(job)) => Err(CliError::Refused(format!(
            "{} is a trace and {} is not; give traces or jobs",
            jobs[trace].display(),
            jobs[job].display()
        ))),
        _ => Ok(false),
    }
}

/// Returns whether a file is a trace. One that cannot be read is not; its reader says why.
fn is_trace(path: &Path) -> bool {
    let is_description = path.extension().is_some_and(|end| end == "toml");
    // Reading from a pipe would consume it.
    if is_description || !path.is_file() {
        return false;
    }
    let mut begin = Vec::new();
    let read = File::open(path).and_then(decompressed).and_then(|input| {
        // Trace formats of fixed records are recognized by whole records.
        input.take(GLANCE).read_to_end(&mut begin)
    });
    read.is_ok() && trace_kind(&begin).is_some()
}

/// Opens a file of Weir, compressed or not; `None` if it is of another kind.
pub(super) fn open_own(path: &Path) -> Result<Option<Reader<Bytes>>, CliError> {
    let read = |source| CliError::Read { path: path.to_owned(), source };
    let open = || File::open(path).and_then(decompressed);
    let mut begin = Vec::new();
    let glance = open().and_then(|input| input.take(SIGNATURE_LEN).read_to_end(&mut begin));
    if glance.map_err(read)? < SIGNATURE.len() || begin != SIGNATURE {
        return Ok(None);
    }
    let reader = Reader::open(open().map_err(read)?);
    Ok(Some(reader.map_err(|source| CliError::Trace { path: path.to_owned(), source })?))
}

/// Opens a block trace of another tool.
pub(super) fn open_foreign(
    paths: &[PathBuf],
    kind: Option<Kind>,
    options: &Options,
) -> Result<Vec<Requests>, CliError> {
    let mut inputs = Vec::new();
    for path in paths {
        let read = |source| CliError::Read { path: path.clone(), source };
        let bytes = File::open(path).and_then(decompressed).map_err(read)?;
        inputs.push(Input { name: path.display().to_string(), bytes, kind });
    }
    Requests::open(inputs, options).map_err(|(name, source)| CliError::Import { name, source })
}

/// Opens the traces of a replay, each as the part that is wanted.
pub(super) fn open_all(paths: &[PathBuf], part: &PartArgs) -> Result<Vec<Recording>, CliError> {
    check_window(part)?;
    let (mut recordings, mut foreign) = (Vec::new(), Vec::new());
    for path in paths {
        match open_own(path)? {
            Some(reader) => recordings.push(recording(name_of(path), reader, part)),
            None => foreign.push(path.clone()),
        }
    }
    for requests in open_foreign(&foreign, None, &Options::default())? {
        let name = name_of(Path::new(requests.name()));
        recordings.push(recording(name, requests, part));
    }
    Ok(recordings)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn recording(name: String, trace: impl ReadTrace + 'static, part: &PartArgs) -> Recording {
    Recording { name, trace: Box::new(select(trace, part)) }
}

/// Selects the part of a trace that is wanted.
pub(super) fn select<T: ReadTrace>(trace: T, part: &PartArgs) -> Selection<T> {
    Selection::new(trace, part.window(), part.sample, part.devices.clone())
}

/// Refuses an empty window.
pub(super) fn check_window(part: &PartArgs) -> Result<(), CliError> {
    match (part.from, part.to) {
        (Some(from), Some(to)) if from >= to => Err(CliError::Refused(format!(
            "--from {from} --to {to}: the window is empty; give an end after its start"
        ))),
        _ => Ok(()),
    }
}

/// Returns the options of a replay.
pub(super) fn replay_options(
    args: &ReplayArgs,
    map: &[(String, String)],
) -> Result<ReplayOptions, CliError> {
    let pace = match (args.pace.unwrap_or_default(), args.depth) {
        (Pace::Closed { .. }, depth) => Pace::Closed { depth },
        (pace, None) => pace,
        (pace, Some(depth)) => {
            return Err(CliError::Refused(format!(
                "--depth {depth}: with --pace {pace}, requests are issued at their times; it needs \
                 --pace closed"
            )));
        }
    };
    Ok(ReplayOptions { pace, map: map.to_vec(), wrap: args.wrap })
}
