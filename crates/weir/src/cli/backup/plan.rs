//! The arguments of `weir backup plan`.

use crate::cli::{OutputArgs, some_bytes, some_time};
use clap::Args;
use std::path::PathBuf;
use weir_units::{Bytes, Span};

#[derive(Debug, Args)]
pub(crate) struct BackupPlanArgs {
    /// Bytes to back up, for example 4TiB [default: all that is in use of the sources of --layout].
    #[arg(long, value_name = "SIZE", value_parser = some_bytes, required_unless_present = "layout")]
    pub(crate) size: Option<Bytes>,
    /// The window: the time that the backup may take, for example 2h.
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(crate) within: Span,
    /// The layout with the sources. The plan adds target disks to its host.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["edition", "host"])]
    pub(crate) layout: Option<PathBuf>,
    /// Edition to plan with, where there is no layout.
    #[arg(long, value_name = "NAME", requires = "host")]
    pub(crate) edition: Option<String>,
    /// Size of the machine, where there is no layout. The source is then assumed to deliver whatever
    /// is read.
    #[arg(long, value_name = "SIZE", required_unless_present = "layout")]
    pub(crate) host: Option<String>,
    /// Files, volumes or stripes of the layout to read [default: data files and logs, or everything
    /// if the layout has no files].
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',', requires = "layout")]
    pub(crate) sources: Vec<String>,
    /// Readers of each source [default: 1].
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true,
        value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) readers: u32,
    /// Time from the start of the backup to its first transfer, for example 2s.
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(crate) setup: Option<Span>,
    /// Compress: the compressed size as a share (0.4 or 40%), or the ratio as 2.5:1.
    #[arg(long, value_name = "RATIO", value_parser = ratio)]
    pub(crate) compress: Option<f64>,
    /// Bytes that a processor compresses per second, for example 200MiB [default: as many as come].
    #[arg(long, value_name = "SIZE", value_parser = some_bytes, requires = "compress")]
    pub(crate) compress_rate: Option<Bytes>,
    /// Processors that compress [default: those of the machine].
    #[arg(long, value_name = "N", requires = "compress",
        value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) compress_threads: Option<u32>,
    /// Databases that run meanwhile (docs/OLTP.md). May be repeated.
    #[arg(long, value_name = "OLTP", requires = "layout")]
    pub(crate) beside: Vec<PathBuf>,
    /// The most that the backup may cost these databases, in throughput and in response time, for
    /// example 10% [default: 10%].
    #[arg(long, value_name = "SHARE", value_parser = weir_plan::need::share, requires = "beside")]
    pub(crate) max_slowdown: Option<u64>,
    /// Families of target disks [default: those that are no slower than the edition's default].
    #[arg(long, value_name = "FAMILY", num_args = 1.., value_delimiter = ',')]
    pub(crate) disks: Vec<String>,
    /// Maximum number of target disks.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    pub(crate) max_disks: Option<u64>,
    /// Latency of a write to a target, if you have measured it, for example 24ms.
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(crate) latency: Option<Span>,
    /// Region of the prices.
    #[arg(long, value_name = "REGION")]
    pub(crate) region: Option<String>,
    /// Currency of the prices.
    #[arg(long, value_name = "CODE")]
    pub(crate) currency: Option<String>,
    /// Price file that overrides the edition's prices.
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// Write the layout with the target disks to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Write the description of the backup to this file, for weir sim and weir export.
    #[arg(long, value_name = "FILE")]
    pub(crate) out_backup: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// A compressed size as a share of the original: `0.4`, `40%`, or `2.5:1`.
fn ratio(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let text = text.trim();
    let share = match (text.strip_suffix(":1"), text.strip_suffix('%')) {
        (Some(ratio), _) => number(ratio).map(|own| 1.0 / own),
        (_, Some(percent)) => number(percent).map(|own| own / 100.0),
        _ => number(text),
    };
    let wrong = || {
        format!(
            "{text:?} is no share from 0.001 to 1; write 0.4, 40% or 2.5:1 for a backup of 40 %"
        )
    };
    share.filter(|own| (0.001..=1.0).contains(own)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::ratio;

    #[test]
    fn a_ratio_is_a_share_a_percentage_or_a_ratio() {
        let check =
            |text: &str, expect: Option<f64>| assert_eq!(ratio(text).ok(), expect, "{text}");
        check("0.4", Some(0.4));
        check("40%", Some(0.4));
        check("2.5:1", Some(0.4));
        check("3", None);
        check("0", None);
        check("0:1", None);
        check("-1:1", None);
    }
}
