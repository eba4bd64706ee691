//! Traces to record or replay: files of Weir, and block traces of other tools.

use crate::cli::{PartArgs, ReplayArgs};
use crate::error::CliError;
use std::path::PathBuf;
use weir_import::recorded::{Recorded, is_trace, open_traces};
use weir_trace::{ReadTrace, Selection};
use weir_workload::replay::{Pace, Recording, ReplayOptions};

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

/// Opens the traces of a replay, each as the part that is wanted.
pub(super) fn open_all(paths: &[PathBuf], part: &PartArgs) -> Result<Vec<Recording>, CliError> {
    check_window(part)?;
    let of = |own: Recorded| Recording { name: own.name, trace: Box::new(select(own.trace, part)) };
    Ok(open_traces(paths)?.into_iter().map(of).collect())
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
