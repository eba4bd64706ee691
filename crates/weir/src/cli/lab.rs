//! The arguments of `weir lab`.

use super::number::count_in;
use super::{OutputArgs, seed, some_bytes, some_time, svg_file};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use weir_units::{Bytes, Span};

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// List the labs.
    #[command(after_help = "Example:\n  weir lab list")]
    List {
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Run labs in virtual and wall time, and compare their figures with the published ones. The
    /// exit code is 1 if a figure misses or was not measured.
    #[command(
        override_usage = "weir lab run [OPTIONS] <LAB>...\n       weir lab run [OPTIONS] --all",
        after_help = "Example:\n  weir lab run ds14-benchmark\n  weir lab run --all --clock virtual --output json\n  \
                      weir lab run io-size vm-cap --clock wall --tries 3"
    )]
    Run(LabRunArgs),
}

#[derive(Debug, Args)]
pub(crate) struct LabRunArgs {
    /// Labs to run, by name (see weir lab list).
    #[arg(value_name = "LAB")]
    pub(crate) names: Vec<String>,
    /// Run all labs.
    #[arg(long, conflicts_with = "names")]
    pub(crate) all: bool,
    /// Clock to run on.
    #[arg(long, default_value = "both", value_enum)]
    pub(crate) clock: ClockArg,
    /// Driver of fio jobs in wall time [default: weir].
    #[arg(long = "with", value_enum, value_name = "DRIVER")]
    pub(crate) driver: Option<DriverArg>,
    /// Maximum size of a job's files in wall time [default: that of the lab, else 64MiB]. The
    /// articles use tens of GiB.
    #[arg(long, value_name = "SIZE", value_parser = some_bytes)]
    pub(crate) size: Option<Bytes>,
    /// Runtime of each job in wall time [default: that of the lab, else 6s]. The articles use 30 s.
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(crate) runtime: Option<Span>,
    /// Repeat a lab in wall time until its figures hold, at most this many times, from 1 to 10
    /// [default: 1]. Use it on a shared machine, which may stall. The figures of the last run
    /// count; nothing is averaged.
    #[arg(long, value_name = "N", value_parser = count_in::<u32>(1..=10))]
    pub(crate) tries: Option<u32>,
    /// Random seed of the jobs.
    #[arg(long, default_value_t = 1, value_parser = seed)]
    pub(crate) seed: u64,
    /// Plot published figures against those in virtual time to this SVG file.
    #[arg(long, value_name = "FILE", value_parser = svg_file)]
    pub(crate) plot: Option<PathBuf>,
    /// Write an HTML report to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// The clocks to run on.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ClockArg {
    /// The simulator's clock.
    Virtual,
    /// The real clock, with served volumes.
    Wall,
    /// Both clocks.
    Both,
}

/// The driver of jobs in wall time.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum DriverArg {
    /// Weir's own runner.
    Weir,
    /// fio, which must be installed.
    Fio,
}
