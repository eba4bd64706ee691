//! The arguments of `weir sweep`.

use super::OutputArgs;
use super::number::count_in;
use clap::Args;
use std::path::PathBuf;
use weir_sweep::Shard;

#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// Sweep file: layout, workload, and parameters with their values; docs/SWEEP.md describes its
    /// keys.
    #[arg(value_name = "SWEEP", required_unless_present = "merge")]
    pub(crate) sweep: Option<PathBuf>,
    /// Write the results to this file, with one row for each point. The name ends in .csv, or in
    /// .parquet if weir is built with Parquet. Completed points are kept in FILE.journal until all are
    /// complete; the same command continues an interrupted sweep.
    #[arg(long, value_name = "FILE", required_unless_present = "merge", value_parser = results_file)]
    pub(crate) out: Option<PathBuf>,
    /// Number of simulations that run at once [default: all cores].
    #[arg(long, value_name = "N", value_parser = count_in::<usize>(1..=1024))]
    pub(crate) jobs: Option<usize>,
    /// Simulate a share of the points: the i-th of n, for example 2/8. Each shard has its own --out.
    #[arg(long, value_name = "I/N", default_value_t = Shard::WHOLE, hide_default_value = true)]
    pub(crate) shard: Shard,
    /// Merge the results of all shards of a sweep into --out, or report on results that are whole.
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["sweep", "jobs", "shard"])]
    pub(crate) merge: Vec<PathBuf>,
    /// Rank the parameters by their effect on this metric: a column of the results, or iops,
    /// throughput, latency, p50, p99, transactions, response, backup, waiting, price, or elapsed and behind
    /// of traces [default: transactions or iops, or backup for backups alone].
    #[arg(long, value_name = "METRIC")]
    pub(crate) of: Option<String>,
    /// Write an HTML report to this file, with the effects of the parameters and plots.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Plot one column against another in the HTML report, for example x=depth,y=p99. May be repeated
    /// [default: the metric of --of against each parameter].
    #[arg(long, value_name = "x=COLUMN,y=COLUMN", value_parser = axes, requires = "html")]
    pub(crate) plot: Vec<(String, String)>,
    /// Hide the progress bar, which is shown on stderr if that is a terminal.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

fn results_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension().and_then(|end| end.to_str()) {
        Some("csv" | "parquet") => Ok(path),
        _ => Err("the name of results must end in .csv or .parquet".to_owned()),
    }
}

fn axes(text: &str) -> Result<(String, String), String> {
    let mut axes = [None, None];
    for part in text.split(',') {
        match part.split_once('=') {
            Some(("x", name)) if !name.is_empty() => axes[0] = Some(name.to_owned()),
            Some(("y", name)) if !name.is_empty() => axes[1] = Some(name.to_owned()),
            _ => axes = [None, None],
        }
    }
    match axes {
        [Some(x), Some(y)] => Ok((x, y)),
        _ => Err("expected x=COLUMN,y=COLUMN, for example x=depth,y=p99".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_names_both_axes() {
        let pair = |x: &str, y: &str| Ok((x.to_owned(), y.to_owned()));
        assert_eq!(axes("x=depth,y=p99"), pair("depth", "p99"));
        assert_eq!(axes("y=p99,x=depth"), pair("depth", "p99"));
        for wrong in ["x=depth", "depth,p99", "x=,y=p99", "x=a,y=b,z=c", ""] {
            assert!(axes(wrong).is_err(), "{wrong}");
        }
    }
}
