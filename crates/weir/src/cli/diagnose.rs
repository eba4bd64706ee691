//! The arguments of `weir diagnose`.

use super::number::count_in;
use super::{ImportArgs, OutputArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use weir_sweep::Shard;

/// Options that apply to one observation.
const OF_ONE: [&str; 9] = [
    "html",
    "verbose",
    "kind",
    "every",
    "start",
    "time_unit",
    "file_counts",
    "utc_offset",
    "day_first",
];

#[derive(Debug, Args)]
pub(crate) struct DiagnoseArgs {
    /// Observations, or inputs that weir observe import reads; several are merged by time.
    #[arg(required_unless_present_any = ["fleet", "merge"], value_name = "OBSERVATION")]
    pub(crate) files: Vec<PathBuf>,
    /// Layout of the observed system.
    #[arg(long, value_name = "LAYOUT")]
    pub(crate) layout: Option<PathBuf>,
    /// Catalog edition whose tiers give the limits of files by size. Use it if there is no layout.
    #[arg(long, value_name = "EDITION", conflicts_with = "layout")]
    pub(crate) edition: Option<String>,
    /// Map a name in the observation to a name in the layout, for example sdc=data. May be
    /// repeated.
    #[arg(long, value_name = "OBSERVED=LAYOUT", requires = "layout")]
    pub(crate) map: Vec<String>,
    /// Write an HTML report with a plot of each file against its limits.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Also print time spans, causes that were ruled out, sources, all limits and files, and
    /// findings that do not affect the observed load.
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Diagnose all observations below this folder: files named *.weirobs, and the partitions of
    /// weir observe export --parquet.
    #[arg(long, value_name = "DIR", requires = "out", conflicts_with = "files")]
    #[arg(conflicts_with_all = OF_ONE)]
    pub(crate) fleet: Option<PathBuf>,
    /// Write a row for each observation of the fleet to this CSV file. Completed rows are kept in
    /// FILE.journal until all are complete; the same command continues an interrupted diagnosis.
    #[arg(long, value_name = "FILE", conflicts_with = "files", value_parser = results_file)]
    pub(crate) out: Option<PathBuf>,
    /// For Parquet by server and day: diagnose each day by itself (day), or all days of a server together
    /// (server), if they are of one recording [default: day].
    #[arg(long, value_name = "PART", requires = "fleet")]
    pub(crate) by: Option<By>,
    /// Number of observations that are diagnosed at once [default: all cores].
    #[arg(long, value_name = "N", value_parser = count_in::<usize>(1..=1024), requires = "fleet")]
    pub(crate) jobs: Option<usize>,
    /// Diagnose a share of the fleet: the i-th of n, for example 2/8. Each shard has its own --out.
    #[arg(long, value_name = "I/N", requires = "fleet")]
    pub(crate) shard: Option<Shard>,
    /// Merge the results of all shards of a fleet into --out, or report on results that are whole.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    #[arg(conflicts_with_all = ["files", "fleet", "layout", "edition", "map"])]
    #[arg(conflicts_with_all = OF_ONE)]
    pub(crate) merge: Vec<PathBuf>,
    /// Hide the progress bar of a fleet, which is shown on stderr if that is a terminal.
    #[arg(long, short, requires = "fleet")]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) import: ImportArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// The part of a tree of Parquet that is one observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    Day,
    Server,
}

fn results_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension().and_then(|end| end.to_str()) {
        Some("csv") => Ok(path),
        _ => Err("the name of results must end in .csv".to_owned()),
    }
}
