//! The arguments of `weir backup plan`.

use crate::cli::{OutputArgs, some_bytes, some_time};
use clap::Args;
use std::path::PathBuf;
use weir_units::{Bytes, BytesPerSec, Span};

#[derive(Debug, Args)]
pub(crate) struct BackupPlanArgs {
    /// Bytes to back up, for example 4TiB [default: the bytes in use on the sources of --layout].
    #[arg(long, value_name = "SIZE", value_parser = some_bytes, required_unless_present = "layout")]
    pub(crate) size: Option<Bytes>,
    /// Backup window: the longest duration that is acceptable, for example 2h.
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(crate) within: Span,
    /// Layout file with the sources and their machine. The plan adds target disks to that machine.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["edition", "host"])]
    pub(crate) layout: Option<PathBuf>,
    /// Catalog edition to plan with if there is no layout; weir catalog list prints them [default:
    /// azure-now].
    #[arg(long, value_name = "NAME", requires = "host")]
    pub(crate) edition: Option<String>,
    /// Machine size to plan with if there is no layout, for example D64s_v3. The source is then assumed
    /// to be faster than everything else.
    #[arg(long, value_name = "SIZE", required_unless_present = "layout")]
    pub(crate) host: Option<String>,
    /// Files, volumes or stripes of the layout to back up. Several names are separated by commas
    /// [default: data files and logs; without files, all volumes that are not backup targets].
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',', requires = "layout")]
    pub(crate) sources: Vec<String>,
    /// Number of readers for each source, 1 to 64 [default: 1].
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true,
        value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) readers: u32,
    /// Time from the start of the backup to its first transfer, for example 2s, as measured on your
    /// system [default: 0s].
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(crate) setup: Option<Span>,
    /// Plan with compression: compressed size as a share (0.4 or 40%), or ratio (2.5:1) [default: no
    /// compression].
    #[arg(long, value_name = "RATIO", value_parser = ratio)]
    pub(crate) compress: Option<f64>,
    /// Bytes that one processor compresses per second, for example 200MiB [default: compression is
    /// never the limit].
    #[arg(long, value_name = "SIZE", value_parser = some_bytes, requires = "compress")]
    pub(crate) compress_rate: Option<Bytes>,
    /// Number of processors that compress [default: those of the machine].
    #[arg(long, value_name = "N", requires = "compress",
        value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) compress_threads: Option<u32>,
    /// OLTP description of a database that runs during the backup (docs/OLTP.md). May be repeated.
    #[arg(long, value_name = "OLTP", requires = "layout")]
    pub(crate) beside: Vec<PathBuf>,
    /// Largest acceptable loss of throughput and increase of response time of these databases, for
    /// example 10% [default: 10%]. A backup that would cost more is slowed down with a limit if the
    /// window allows that.
    #[arg(long, value_name = "SHARE", value_parser = weir_plan::share::share, requires = "beside")]
    pub(crate) max_slowdown: Option<u64>,
    /// Rate at which the backup reads its sources at most, for example 100MB/s, as weir backup run
    /// --limit has it [default: none, or the lowest that meets the window if databases need it].
    #[arg(long, value_name = "RATE", value_parser = super::run::limit)]
    pub(crate) limit: Option<BytesPerSec>,
    /// Disk families to choose target disks from, separated by commas [default: those at least as fast
    /// as the edition's default family].
    #[arg(long, value_name = "FAMILY", num_args = 1.., value_delimiter = ',')]
    pub(crate) disks: Vec<String>,
    /// Maximum number of target disks, 1 to 64 [default: as many as the machine takes].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    pub(crate) max_disks: Option<u64>,
    /// Measured latency of a write to a target disk, for example 24ms [default: the edition's].
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(crate) latency: Option<Span>,
    /// Region whose prices apply [default: the edition's first].
    #[arg(long, value_name = "REGION")]
    pub(crate) region: Option<String>,
    /// Currency of the prices [default: the edition's first].
    #[arg(long, value_name = "CODE")]
    pub(crate) currency: Option<String>,
    /// Price file that overrides the edition's prices.
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// Write the layout with the target disks to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Write the backup description to this file, for weir sim and weir export.
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
