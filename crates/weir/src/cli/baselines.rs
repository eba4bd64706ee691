//! The arguments of `weir observe snapshot`, `between` and `percentiles`.

use super::import::{ClockArgs, ImportArgs};
use super::{OutputArgs, some_time};
use clap::Args;
use std::path::PathBuf;
use weir_units::Span;

/// Default folder of the snapshots.
pub(crate) const SNAPSHOTS: &str = "snapshots";

#[derive(Debug, Args)]
pub(crate) struct ObserveSnapshotArgs {
    /// Input files; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Name of the snapshot.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,
    /// Folder of the snapshots, which is created if needed.
    #[arg(long, value_name = "DIR", default_value = SNAPSHOTS)]
    pub(crate) dir: PathBuf,
    /// Replace an existing snapshot of this name.
    #[arg(long)]
    pub(crate) replace: bool,
    #[command(flatten)]
    pub(crate) import: ImportArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ObserveBetweenArgs {
    /// Start: a snapshot, a file, or FILE@TIME
    pub(crate) from: String,
    /// End: a snapshot, a file, or FILE@TIME
    pub(crate) to: String,
    /// Folder of the snapshots.
    #[arg(long, value_name = "DIR", default_value = SNAPSHOTS)]
    pub(crate) dir: PathBuf,
    /// Time between the two inputs if they have no timestamps, for example 10min.
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(crate) apart: Option<Span>,
    /// Include background waits, which qpi.wait_stats leaves out.
    #[arg(long)]
    pub(crate) all_waits: bool,
    #[command(flatten)]
    pub(crate) clock: ClockArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ObservePercentilesArgs {
    /// Observation file
    pub(crate) file: PathBuf,
    /// Show only this file or volume. May be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// Metric: iops, throughput, latency (the default three), reads, writes, random, sequential,
    /// request-size, read-latency, write-latency or queue-depth. May be repeated.
    #[arg(long, value_name = "METRIC")]
    pub(crate) of: Vec<String>,
    /// Length of an interval, for example 15min or 1h.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = some_time)]
    pub(crate) each: Span,
    /// UTC offset of an observation that does not state it, for example +01:00.
    #[arg(long, value_name = "OFFSET")]
    pub(crate) utc_offset: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
