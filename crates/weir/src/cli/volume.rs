//! Arguments of the commands to a running server.

use super::{ControlArgs, OutputArgs, cache_modes, some_bytes};
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use weir_layout::Role;
use weir_units::{Bytes, BytesPerSec, CacheMode, Iops, Share};

#[derive(Debug, Subcommand)]
pub(crate) enum VolumeCommand {
    /// List the volumes with their tiers and limits.
    #[command(after_help = "Example:\n  weir volume list --output csv")]
    List {
        #[command(flatten)]
        control: ControlArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Create a volume on the running server: a disk, or a file of a managed instance. It
    /// survives a restart if the server has a data folder.
    #[command(after_help = "Examples:\n  weir volume create scratch --size 64GiB\n  weir volume \
                            create fast --tier P30 --cache read-only\n  weir volume create \
                            sales-2 --size 256GiB --role data --database sales")]
    Create(CreateArgs),
    /// Delete a volume that was created with weir volume create, and its data.
    #[command(after_help = "Examples:\n  \
                      weir volume delete scratch --yes\n  \
                      weir volume delete scratch --if-unused\n\n\
                      Clients are disconnected; with --if-unused, a volume with clients is not deleted. Volumes of \
                      the layout cannot be deleted.")]
    Delete {
        /// Volume name, as weir volume list shows it
        name: String,
        /// Confirm the deletion; the data cannot be recovered.
        #[arg(long)]
        yes: bool,
        /// Delete it only if no client is connected to it, no backup reads it, and it holds no data.
        #[arg(long, conflicts_with = "yes")]
        if_unused: bool,
        #[command(flatten)]
        control: ControlArgs,
    },
    /// Resize a volume; its tier and limits change at once, under load.
    #[command(after_help = "Example:\n  \
                      weir volume resize data 540GiB\n\n\
                      Clients see the new size when they reconnect. Shrinking is refused if there \
                      is data beyond the new end.")]
    Resize {
        /// Volume name, as weir volume list shows it
        name: String,
        /// New size, for example 540GiB or 2TiB
        #[arg(value_parser = some_bytes, allow_hyphen_values = true)]
        size: Bytes,
        #[command(flatten)]
        control: ControlArgs,
    },
    /// Give a volume the limits of another tier, under load; its size does not change.
    #[command(after_help = "Example:\n  \
                      weir volume set-tier data P40\n\n\
                      A disk with a performance tier gets another one, and keeps its own tier. A volume \
                      of the layout has its own tier again at the next start. On a managed instance the \
                      tier follows from the size.")]
    SetTier {
        /// Volume name, as weir volume list shows it
        name: String,
        /// Tier of the edition
        tier: String,
        #[command(flatten)]
        control: ControlArgs,
    },
    /// Change the provisioned IOPS and throughput of a volume, or its own limits.
    #[command(group(ArgGroup::new("rates").required(true).multiple(true).args(["iops", "throughput"])))]
    #[command(after_help = "Examples:\n  \
                      weir volume set-rates data --iops 12000\n  \
                      weir volume set-rates data --iops 8000 --throughput 400MB/s\n\n\
                      Families such as Premium SSD v2, Ultra and gp3 have provisioned rates. A rate that is not given \
                      stays. A volume of the layout returns to the layout's rates at the next start.")]
    SetRates {
        /// Volume name, as weir volume list shows it
        name: String,
        /// Operations per second.
        #[arg(long, value_name = "N")]
        iops: Option<Iops>,
        /// Throughput, for example 400MB/s.
        #[arg(long, value_name = "RATE")]
        throughput: Option<BytesPerSec>,
        #[command(flatten)]
        control: ControlArgs,
    },
    /// Fill the burst credits of a volume to a part of its bucket.
    #[command(after_help = "Example:\n  \
                      weir volume set-credits data 0%\n\n\
                      Operations and bytes are set alike. weir status shows the credits and how \
                      long they last. In a layout, credits = \"0 %\" does the same at the start.")]
    SetCredits {
        /// Volume name, as weir volume list shows it
        name: String,
        /// Part of a full bucket, from 0% to 100%
        #[arg(allow_hyphen_values = true)]
        credits: Share,
        #[command(flatten)]
        control: ControlArgs,
    },
    /// Set a volume's host cache mode.
    #[command(after_help = "Example:\n  weir volume set-cache data read-only")]
    SetCache {
        /// Volume name, as weir volume list shows it
        name: String,
        /// Cache mode
        #[arg(value_parser = cache_modes())]
        mode: CacheMode,
        #[command(flatten)]
        control: ControlArgs,
    },
}

/// Arguments of `weir volume create`.
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// Name of the volume and of its export
    pub(crate) name: String,
    /// Size, for example 540GiB. The default is the size of the tier.
    #[arg(long, value_name = "SIZE", value_parser = some_bytes)]
    pub(crate) size: Option<Bytes>,
    /// Tier, for example P30. The default is the smallest tier that holds the size.
    #[arg(long, value_name = "TIER")]
    pub(crate) tier: Option<String>,
    /// Tier set or family, for editions that have several.
    #[arg(long, value_name = "FAMILY")]
    pub(crate) family: Option<String>,
    /// Provisioned IOPS of a family that has them, otherwise the limit of a disk without a tier.
    #[arg(long, value_name = "IOPS")]
    pub(crate) iops: Option<Iops>,
    /// Provisioned throughput or throughput limit, for example 200MB/s.
    #[arg(long, value_name = "RATE")]
    pub(crate) throughput: Option<BytesPerSec>,
    /// No limits and no latency.
    #[arg(long, conflicts_with_all = ["tier", "family", "iops", "throughput"])]
    pub(crate) unlimited: bool,
    /// Host cache mode.
    #[arg(long, value_name = "MODE", value_parser = cache_modes())]
    pub(crate) cache: Option<CacheMode>,
    /// Role of the file, on a managed instance.
    #[arg(long, value_name = "ROLE", value_enum)]
    pub(crate) role: Option<RoleArg>,
    /// Database of the file, on a managed instance.
    #[arg(long, value_name = "DATABASE")]
    pub(crate) database: Option<String>,
    /// Store checksums of its blocks, so that a read of a block that its disk damaged fails. The server needs a
    /// data folder.
    #[arg(long)]
    pub(crate) checksums: bool,
    /// Host that the volume is attached to; required if the layout has several.
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

/// Role of a database file.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum RoleArg {
    /// Tables and indexes.
    Data,
    /// Transaction log.
    Log,
    /// Temporary objects and row versions.
    Tempdb,
    /// Backup.
    Backup,
}

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Self {
        match role {
            RoleArg::Data => Self::Data,
            RoleArg::Log => Self::Log,
            RoleArg::Tempdb => Self::Tempdb,
            RoleArg::Backup => Self::Backup,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum HostCommand {
    /// Crash a host: its clients are disconnected, its cache is emptied, and writes that a
    /// read-write cache has not written back are lost.
    #[command(after_help = "Example:\n  weir host crash host")]
    Crash {
        /// Host name; "host" if the layout gives none
        name: String,
        #[command(flatten)]
        control: ControlArgs,
    },
    /// Fill the burst credits of a host to a part of its buckets.
    #[command(after_help = "Example:\n  weir host set-credits host 0%")]
    SetCredits {
        /// Host name; "host" if the layout gives none
        name: String,
        /// Part of a full bucket, from 0% to 100%
        #[arg(allow_hyphen_values = true)]
        credits: Share,
        #[command(flatten)]
        control: ControlArgs,
    },
    /// Load a range of an export into the host cache.
    #[command(after_help = "Example:\n  weir host warm reads --length 120GiB")]
    Warm {
        /// Volume or stripe, as weir status shows it
        export: String,
        /// Start of the range, for example 10GiB.
        #[arg(long, value_name = "SIZE", default_value = "0B")]
        offset: Bytes,
        /// Length of the range, for example 120GiB.
        #[arg(long, value_name = "SIZE", value_parser = some_bytes)]
        length: Bytes,
        #[command(flatten)]
        control: ControlArgs,
    },
}
