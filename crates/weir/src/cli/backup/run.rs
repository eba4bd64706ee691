//! The arguments of `weir backup run`.

use crate::cli::number::{count, count_in};
use crate::cli::{ControlArgs, OutputArgs};
use clap::Args;
use std::path::PathBuf;
use weir_units::{Bytes, BytesPerSec, ParseError};

/// The level of zstd that `--compress` means.
const LEVEL: &str = "1";

#[derive(Debug, Args)]
pub(crate) struct BackupRunArgs {
    /// Export to back up; or an OLTP description (FILE.toml), for the exports with its data files and
    /// log; or nbd://HOST/NAME, an export of another server, which cannot be frozen [default: every
    /// export of the server, except targets and volumes for backups: those that hold backups, or are
    /// called backup, or have files of role backup only in --layout].
    #[arg(value_name = "SOURCE")]
    pub(crate) sources: Vec<String>,
    /// Where stripes are written: a folder (./NAME or /PATH), an export of the same server, an
    /// nbd://HOST/NAME volume, or the https:// URL of a blob container. Stripes are placed on several
    /// targets in turn.
    #[arg(long, value_name = "TARGET", num_args = 1.., required = true)]
    pub(crate) to: Vec<String>,
    /// Layout file of the sources. With --data, its volumes are served by this process for the time of
    /// the backup. Without it, the layout only tells on which export each file of a database lies.
    #[arg(long, value_name = "FILE")]
    pub(crate) layout: Option<PathBuf>,
    /// Data folder of a layout that no server has open. --control is then ignored.
    #[arg(long, value_name = "DIR", requires = "layout")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
    /// Write page blobs instead of block blobs, for storage accounts that have no block blobs.
    #[arg(long)]
    pub(crate) page_blob: bool,
    /// File with the shared access signature of the https:// targets. Otherwise the signature is part
    /// of the URL, or the value of AZURE_STORAGE_SAS_TOKEN.
    #[arg(long, value_name = "FILE")]
    pub(crate) sas_file: Option<PathBuf>,
    /// Name of the backup, 1 to 128 characters, which starts the name of each stripe. Backups of the
    /// same name are one series for prune [default: the name of the database or the layout, or
    /// "backup"].
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Number of stripes, 1 to 64. More stripes keep more writes in flight; four for each disk and
    /// eight in all are usually enough [default: one for each target].
    #[arg(long, value_name = "N", value_parser = stripes)]
    pub(crate) stripes: Option<u64>,
    /// Largest transfer, and the size of a frame: 64KiB to 4MiB, in multiples of 64KiB. Larger
    /// transfers count as fewer operations on disks that merge them.
    #[arg(long, value_name = "SIZE", default_value = "1MiB")]
    pub(crate) max_transfer_size: Bytes,
    /// Number of transfer buffers, 1 to 16384. They bound the memory of a backup; SQL Server's rule is
    /// rarely beaten [default: 5 for each stripe and 2 for each source, three times that with
    /// --compress].
    #[arg(long, value_name = "N",
        value_parser = count_in::<u32>(1..=16384))]
    pub(crate) buffer_count: Option<u32>,
    /// Granularity of reads: 512B to 1MiB, a power of two. A smaller one skips smaller holes and makes
    /// more and shorter reads.
    #[arg(long, value_name = "SIZE", default_value = "64KiB")]
    pub(crate) block_size: Bytes,
    /// Compress with zstd: level 1 (fast) to 19 (small). --compress alone is level 1.
    #[arg(long, value_name = "LEVEL", num_args = 0..=1, require_equals = true,
        default_missing_value = LEVEL, value_parser = clap::value_parser!(i32).range(1..=19))]
    pub(crate) compress: Option<i32>,
    /// Has no effect, since checksums are always written; accepted for the sake of scripts that use
    /// it.
    #[arg(long)]
    pub(crate) checksum: bool,
    /// Encrypt the contents with the key of --key-file or of WEIR_BACKUP_KEY.
    #[arg(long)]
    pub(crate) encrypt: bool,
    /// File with the key; weir backup key makes one.
    #[arg(long, value_name = "FILE", requires = "encrypt")]
    pub(crate) key_file: Option<PathBuf>,
    /// Take a full backup on which no differential builds, for example for a test system.
    #[arg(long, conflicts_with = "differential")]
    pub(crate) copy_only: bool,
    /// Back up only the blocks that changed since the last full backup of the sources. That backup
    /// must be complete, on the targets or in a place given by --from.
    #[arg(long)]
    pub(crate) differential: bool,
    /// With --differential: a place that holds the full backup, if it is not on the targets. May be
    /// repeated.
    #[arg(long, value_name = "PLACE", requires = "differential")]
    pub(crate) from: Vec<String>,
    /// Read the backup back and check every frame when it is complete.
    #[arg(long)]
    pub(crate) verify: bool,
    /// Highest rate at which the sources together are read, for example 100MB/s, to leave throughput
    /// to their other clients [default: no limit].
    #[arg(long, value_name = "RATE", value_parser = limit)]
    pub(crate) limit: Option<BytesPerSec>,
    /// Write the report as an HTML page to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Hide the progress bar, which is shown on stderr if that is a terminal.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Parses a number of stripes. Its range is checked with the targets.
fn stripes(text: &str) -> Result<u64, String> {
    count(text).map_err(|error| format!("a backup has 1 to 64 stripes: {error}"))
}

pub(super) fn limit(text: &str) -> Result<BytesPerSec, String> {
    text.parse().map_err(|error: ParseError| error.to_string())
}
