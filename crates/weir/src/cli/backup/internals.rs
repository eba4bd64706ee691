//! The arguments of `weir backup internals`.

use crate::cli::number::count_in;
use crate::cli::{OutputArgs, some_bytes};
use clap::Args;
use std::path::PathBuf;
use weir_units::Bytes;

#[derive(Debug, Args)]
pub(crate) struct BackupInternalsArgs {
    /// Layout file; docs/LAYOUT.md describes its keys.
    pub(crate) layout: PathBuf,
    /// Backup description; docs/BACKUP.md describes its keys. Without it, the options below describe
    /// the backup.
    #[arg(conflicts_with_all = ["sources", "stripes", "readers", "size", "max_transfer_size",
        "buffer_count", "compress"])]
    pub(crate) backup: Option<PathBuf>,
    /// Files, volumes or stripes to back up, separated by commas. Each volume or stripe has a reader
    /// [default: data files; without files, all volumes that are not backup targets].
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub(crate) sources: Vec<String>,
    /// Number of backup files, 1 to 64 [default: 1].
    #[arg(long, value_name = "N", value_parser = count_in::<u32>(1..=64))]
    pub(crate) stripes: Option<u32>,
    /// Number of readers of all sources together, 1 to 64 [default: one for each volume or stripe].
    #[arg(long, value_name = "N", value_parser = count_in::<u32>(1..=64))]
    pub(crate) readers: Option<u32>,
    /// Bytes to back up, for example 50GiB [default: the bytes in use on the sources].
    #[arg(long, value_name = "SIZE", value_parser = some_bytes)]
    pub(crate) size: Option<Bytes>,
    /// MAXTRANSFERSIZE: 64KiB to 4MiB, in multiples of 64KiB [default: 1MiB].
    #[arg(long, value_name = "SIZE", value_parser = some_bytes)]
    pub(crate) max_transfer_size: Option<Bytes>,
    /// BUFFERCOUNT, 1 to 16384 [default: 5 for each stripe and 2 for each reader].
    #[arg(long, value_name = "N", value_parser = count_in::<u32>(1..=16384))]
    pub(crate) buffer_count: Option<u32>,
    /// WITH COMPRESSION, which takes three sets of buffers.
    #[arg(long)]
    pub(crate) compress: bool,
    /// WITH CHECKSUM.
    #[arg(long)]
    pub(crate) checksum: bool,
    /// WITH ENCRYPTION.
    #[arg(long)]
    pub(crate) encrypt: bool,
    /// Memory that backup buffers may take, as the server's log states it [default: 1/128 of the
    /// machine's memory].
    #[arg(long, value_name = "SIZE", value_parser = some_bytes)]
    pub(crate) memory_limit: Option<Bytes>,
    /// Count buffers as SQL Server 2005 does: 4 for each stripe and 2 for each reader.
    #[arg(long, conflicts_with = "buffer_count")]
    pub(crate) sql_server_2005: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
