//! The arguments of `weir compare`.

use super::number::count_in;
use super::{ImportArgs, OutputArgs, seed, some_time};
use clap::Args;
use std::path::PathBuf;
use weir_units::{Span, percent};

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Sides of the comparison; the others are compared with the first. Each is a file, or a folder
    /// with repetitions of one measurement.
    #[arg(required = true, num_args = 2.., value_name = "SIDE")]
    pub(crate) sides: Vec<PathBuf>,
    /// Workload to simulate on layouts: a fio job file, or descriptions of databases or backups
    /// (.toml). May be repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) workload: Vec<PathBuf>,
    /// Override the runtime of each job or database of the workload, for example 30s.
    #[arg(long, value_name = "TIME", value_parser = some_time, requires = "workload")]
    pub(crate) runtime: Option<Span>,
    /// Number of simulations of each layout, from 3 to 1000.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = count_in::<u64>(3..=1000),
        requires = "workload")]
    pub(crate) seeds: u64,
    /// Seed of the first simulation; the others count up from it.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed,
        requires = "workload")]
    pub(crate) seed: u64,
    /// Share by which a side may be worse than the first, for example 10%.
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = percent)]
    pub(crate) tolerance: u64,
    /// Decide by this metric instead of all rates and latencies, for example iops, latency or price.
    /// May be repeated.
    #[arg(long, value_name = "METRIC")]
    pub(crate) metric: Vec<String>,
    /// Compare this disk, file, database or job instead of those with the most load. May be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) subject: Vec<String>,
    /// Compare the sums of all disks and of all files only, for example if all names differ.
    #[arg(long, conflicts_with = "subject")]
    pub(crate) total: bool,
    /// Map a name in later sides to the name that it has in the first, for example sdd=sdc. May be
    /// repeated.
    #[arg(long, value_name = "OTHER=A", value_parser = pair)]
    pub(crate) map: Vec<(String, String)>,
    /// Layout of the observed system, for its diagnosis and price. Give it once, or once for each
    /// side.
    #[arg(long, value_name = "LAYOUT", conflicts_with = "workload")]
    pub(crate) layout: Vec<PathBuf>,
    /// Write an HTML report to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) import: ImportArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.rsplit_once('=') {
        Some((other, first)) if !other.is_empty() && !first.is_empty() => {
            Ok((other.to_owned(), first.to_owned()))
        }
        _ => Err("expected OTHER=A, for example sdd=sdc".to_owned()),
    }
}
