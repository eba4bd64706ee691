//! The arguments of `weir backup run`.

use crate::cli::{ControlArgs, OutputArgs};
use clap::Args;
use std::path::PathBuf;
use weir_units::{Bytes, BytesPerSec, ParseError};

/// The level of zstd that `--compress` means.
const LEVEL: &str = "1";

#[derive(Debug, Args)]
pub(crate) struct BackupRunArgs {
    /// Exports to back up, an OLTP description (its data files and log), or nbd:// URIs of other
    /// servers [default: all exports of the server that are no targets].
    #[arg(value_name = "SOURCE")]
    pub(crate) sources: Vec<String>,
    /// Targets of the stripes: a folder, an export of the same server, an nbd:// URI, or the https://
    /// URL of a blob container. Stripes are placed on them in turn.
    #[arg(long, value_name = "TARGET", num_args = 1.., required = true)]
    pub(crate) to: Vec<String>,
    /// The layout that serves the sources. With --data its volumes are served in this process;
    /// otherwise it tells where the files of a database lie.
    #[arg(long, value_name = "FILE")]
    pub(crate) layout: Option<PathBuf>,
    /// Data folder of a layout that is not being served. It goes before --control.
    #[arg(long, value_name = "DIR", requires = "layout")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
    /// Write page blobs instead of block blobs.
    #[arg(long)]
    pub(crate) page_blob: bool,
    /// File with the shared access signature for the https:// targets. Otherwise it is taken from the
    /// URL, or from the environment variable AZURE_STORAGE_SAS_TOKEN.
    #[arg(long, value_name = "FILE")]
    pub(crate) sas_file: Option<PathBuf>,
    /// Name of the backup, 1 to 128 characters [default: the name of the database or layout, or
    /// backup].
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Number of stripes, 1 to 64 [default: one for each target].
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) stripes: Option<u64>,
    /// Size of a transfer, 64KiB to 4MiB in steps of 64 KiB.
    #[arg(long, value_name = "SIZE", default_value = "1MiB")]
    pub(crate) max_transfer_size: Bytes,
    /// Number of buffers [default: 5 for each stripe and 2 for each source].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16384))]
    pub(crate) buffer_count: Option<u32>,
    /// Granularity of the ranges that are read, 512B to 1MiB, a power of two. Gaps between data
    /// that are smaller are read too.
    #[arg(long, value_name = "SIZE", default_value = "64KiB")]
    pub(crate) block_size: Bytes,
    /// Compress with zstd at this level, 1 to 19.
    #[arg(long, value_name = "LEVEL", num_args = 0..=1, require_equals = true,
        default_missing_value = LEVEL, value_parser = clap::value_parser!(i32).range(1..=19))]
    pub(crate) compress: Option<i32>,
    /// Write checksums. They are always written; the option is accepted for scripts that give it.
    #[arg(long)]
    pub(crate) checksum: bool,
    /// Encrypt with the key of --key-file or of the variable WEIR_BACKUP_KEY.
    #[arg(long)]
    pub(crate) encrypt: bool,
    /// File with the key; weir backup key makes one.
    #[arg(long, value_name = "FILE", requires = "encrypt")]
    pub(crate) key_file: Option<PathBuf>,
    /// Leave the sequence of full and differential backups as it is.
    #[arg(long, conflicts_with = "differential")]
    pub(crate) copy_only: bool,
    /// Back up only what changed since the last full backup.
    #[arg(long)]
    pub(crate) differential: bool,
    /// Read the backup back and check all of it.
    #[arg(long)]
    pub(crate) verify: bool,
    /// Most bytes to read per second, for example 100MB/s.
    #[arg(long, value_name = "RATE", value_parser = limit)]
    pub(crate) limit: Option<BytesPerSec>,
    /// Show no progress. It is shown on stderr, if that is a terminal.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

fn limit(text: &str) -> Result<BytesPerSec, String> {
    text.parse().map_err(|error: ParseError| error.to_string())
}
