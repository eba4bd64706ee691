//! The arguments of `weir observe snapshot`, `between` and `percentiles`.

use super::{ClockArgs, ImportArgs, OutputArgs, some_time};
use clap::Args;
use std::path::PathBuf;
use weir_units::Span;

/// Where snapshots are, if nobody says.
pub(crate) const SNAPSHOTS: &str = "snapshots";

#[derive(Debug, Args)]
pub(crate) struct ObserveSnapshotArgs {
    /// What to read; - is standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The name of the snapshot.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,
    /// The folder of the snapshots, which is made if it is not there.
    #[arg(long, value_name = "DIR", default_value = SNAPSHOTS)]
    pub(crate) dir: PathBuf,
    /// Replace the snapshot that has this name.
    #[arg(long)]
    pub(crate) replace: bool,
    #[command(flatten)]
    pub(crate) import: ImportArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ObserveBetweenArgs {
    /// The beginning: a snapshot, a file, or FILE@TIME.
    pub(crate) from: String,
    /// The end.
    pub(crate) to: String,
    /// The folder of the snapshots.
    #[arg(long, value_name = "DIR", default_value = SNAPSHOTS)]
    pub(crate) dir: PathBuf,
    /// How far the two are apart, where they do not say when they were taken: 10min.
    #[arg(long, value_name = "TIME", value_parser = some_time, allow_hyphen_values = true)]
    pub(crate) apart: Option<Span>,
    /// List waits of the background, too, which qpi.wait_stats leaves out.
    #[arg(long)]
    pub(crate) all_waits: bool,
    #[command(flatten)]
    pub(crate) clock: ClockArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ObservePercentilesArgs {
    /// The observation.
    pub(crate) file: PathBuf,
    /// Of this file or volume alone; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// Of what: iops, throughput and latency, if this is not given; or reads, writes, random,
    /// sequential, request-size, read-latency, write-latency, queue-depth. May be repeated.
    #[arg(long, value_name = "WHAT")]
    pub(crate) of: Vec<String>,
    /// The length of a stretch: 15min, 1h.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = some_time)]
    pub(crate) each: Span,
    /// Where the observation does not say, how far its clock is ahead of UTC: +01:00.
    #[arg(long, value_name = "OFFSET", allow_hyphen_values = true)]
    pub(crate) utc_offset: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
