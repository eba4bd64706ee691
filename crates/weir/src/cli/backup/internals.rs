//! The arguments of `weir backup internals`.

use crate::cli::{OutputArgs, some_bytes};
use clap::Args;
use std::path::PathBuf;
use weir_units::Bytes;

#[derive(Debug, Args)]
pub(crate) struct BackupInternalsArgs {
    /// The layout file (docs/LAYOUT.md explains its keys).
    pub(crate) layout: PathBuf,
    /// The description of the backup (docs/BACKUP.md explains its keys). The options below stand
    /// in for it.
    #[arg(conflicts_with_all = ["sources", "stripes", "readers", "size", "max_transfer_size",
        "buffer_count", "compress"])]
    pub(crate) backup: Option<PathBuf>,
    /// Files, volumes or stripes to read; a reader for each volume or stripe [default: data files,
    /// or everything if the layout has no files].
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub(crate) sources: Vec<String>,
    /// Files of the backup [default: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) stripes: Option<u32>,
    /// Readers of all sources together [default: one for each volume or stripe].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) readers: Option<u32>,
    /// Bytes to back up [default: all that is in use of the sources].
    #[arg(long, value_name = "SIZE", value_parser = some_bytes)]
    pub(crate) size: Option<Bytes>,
    /// MAXTRANSFERSIZE, in multiples of 64KiB up to 4MiB [default: 1MiB].
    #[arg(long, value_name = "SIZE", value_parser = some_bytes)]
    pub(crate) max_transfer_size: Option<Bytes>,
    /// BUFFERCOUNT [default: five for each stripe and two for each reader].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16384))]
    pub(crate) buffer_count: Option<u32>,
    /// COMPRESSION.
    #[arg(long)]
    pub(crate) compress: bool,
    /// CHECKSUM.
    #[arg(long)]
    pub(crate) checksum: bool,
    /// ENCRYPTION.
    #[arg(long)]
    pub(crate) encrypt: bool,
    /// The memory that buffers may take, as the server's log says it [default: a 128th of the
    /// machine's memory].
    #[arg(long, value_name = "SIZE", value_parser = some_bytes)]
    pub(crate) memory_limit: Option<Bytes>,
    /// Count buffers as before SQL Server 2008: four for each stripe and two for each reader.
    #[arg(long, conflicts_with = "buffer_count")]
    pub(crate) sql_server_2005: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
