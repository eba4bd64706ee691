//! The arguments of `weir plan`.

use super::number::positive;
use super::{OutputArgs, some_time};
use clap::Args;
use std::path::PathBuf;
use weir_catalog::Architecture;
use weir_plan::filesystem::FileSystem;
use weir_plan::measure::{percentile, role};
use weir_units::{Bytes, BytesPerSec, Iops, Money, Span, percent};

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Need file: size and rates of each role, and constraints on the layout (docs/PLAN.md).
    #[arg(long, value_name = "FILE")]
    pub(crate) need: Option<PathBuf>,
    /// Size for an observed load: an observation, or files that weir observe import reads. Add
    /// --need or --size for values that cannot be observed: sizes, latencies, working sets.
    #[arg(long, value_name = "OBSERVATION", num_args = 1.., conflicts_with_all = ["iops",
        "throughput", "request", "reads"])]
    pub(crate) from: Vec<PathBuf>,
    /// Size for this percentile of the observed samples, for example 99.9 [default: 99].
    #[arg(long, value_name = "N", value_parser = percentile)]
    pub(crate) percentile: Option<f64>,
    /// Size for the observed rates even if the system was throttled. By default, rates of a
    /// throttled system are raised to an estimate of its demand.
    #[arg(long)]
    pub(crate) as_observed: bool,
    /// Growth to plan for, on top of observed sizes and rates, for example 30%; at most 10000%.
    #[arg(long, value_name = "SHARE", value_parser = percent)]
    pub(crate) growth: Option<u64>,
    /// Assign a role to a disk of the observation, for example sdc=data. Disks without a role are
    /// then ignored. May be repeated.
    #[arg(long, value_name = "NAME=ROLE", value_parser = role, requires = "from")]
    pub(crate) role: Vec<(String, String)>,
    /// Plan many databases: a folder with a need file (DATABASE.toml) or an observation
    /// (DATABASE.weirobs) for each. They are packed onto the cheapest set of managed instances, with a
    /// proven lower bound.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["need", "from", "size", "iops", "throughput",
        "request", "reads", "latency", "working_set", "headroom", "disks", "vcpus", "memory",
        "max_disks", "apart", "architecture", "filesystem", "os", "engine", "budget", "fastest", "present"])]
    pub(crate) fleet: Option<PathBuf>,
    /// Pack a fleet onto the fewest instances, regardless of price.
    #[arg(long, requires = "fleet")]
    pub(crate) fewest: bool,
    /// Size of the data, for example 4TiB.
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Bytes>,
    /// IOPS on the data.
    #[arg(long, value_name = "N")]
    pub(crate) iops: Option<Iops>,
    /// Throughput on the data, for example "200 MB/s".
    #[arg(long, value_name = "RATE")]
    pub(crate) throughput: Option<BytesPerSec>,
    /// Request size on the data [default: throughput divided by IOPS if both are given, else 8 KiB].
    #[arg(long, value_name = "SIZE")]
    pub(crate) request: Option<Bytes>,
    /// Share of reads, for example 70%.
    #[arg(long, value_name = "SHARE")]
    pub(crate) reads: Option<String>,
    /// Maximum median latency, for example 3ms. The planner chooses disks by it; --verify checks it
    /// by simulation.
    #[arg(long, value_name = "TIME")]
    pub(crate) latency: Option<Span>,
    /// Working set of the data. Without it, the plan does not rely on a host cache.
    #[arg(long, value_name = "SIZE")]
    pub(crate) working_set: Option<Bytes>,
    /// Extra capacity to plan for on top of the stated rates, for example 20%; at most 10000%.
    #[arg(long, value_name = "SHARE")]
    pub(crate) headroom: Option<String>,
    /// Catalog edition to plan with [default: that of --keep, else azure-now; azure-mi-now for a
    /// fleet].
    #[arg(long, value_name = "EDITION")]
    pub(crate) edition: Option<String>,
    /// Compare the plans of several clouds: azure, aws, gcp, or editions; each may have a region of the
    /// prices, for example azure=West Europe. The output begins with the cheapest, and each cloud has
    /// its cheapest layout and its fastest: within --budget, or at any price. All are simulated.
    #[arg(long, value_name = "CLOUD[=REGION]", value_delimiter = ',', value_parser = cloud,
        conflicts_with_all = ["fleet", "edition", "region", "host", "disks", "keep", "no_downtime",
        "present", "prices", "fastest", "out", "html"])]
    pub(crate) compare: Vec<(String, Option<String>)>,
    /// Families to consider: vm, gp, next-gen-gp, bc, rds or postgres. May be repeated [default:
    /// all families of the edition].
    #[arg(long, value_name = "FAMILY", value_delimiter = ',')]
    pub(crate) family: Vec<String>,
    /// Disk families to consider, for example premium-ssd. May be repeated [default: those whose
    /// latency is at most that of the edition's default family].
    #[arg(long, value_name = "FAMILY", value_delimiter = ',')]
    pub(crate) disks: Vec<String>,
    /// Use this machine or instance size only.
    #[arg(long, value_name = "SIZE")]
    pub(crate) host: Option<String>,
    /// Processors of machines: x64 or arm64 [default: those of --keep, x64 for Windows, otherwise both].
    #[arg(long, value_name = "NAME")]
    pub(crate) architecture: Option<Architecture>,
    /// Minimum number of vCPUs.
    #[arg(long, value_name = "N", value_parser = positive::<u32>)]
    pub(crate) vcpus: Option<u32>,
    /// Minimum memory.
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<Bytes>,
    /// Maximum number of disks.
    #[arg(long, value_name = "N", value_parser = positive::<u64>)]
    pub(crate) max_disks: Option<u64>,
    /// Maximum number of data files of an instance [default: 8].
    #[arg(long, value_name = "N", value_parser = positive::<u64>)]
    pub(crate) max_files: Option<u64>,
    /// Give each role its own disks. By default only a backup is kept apart, from data and log;
    /// --apart=false lets all roles share disks.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value =
        "true")]
    pub(crate) apart: Option<bool>,
    /// Choose disks whose usable space with this file system holds the sizes: ext4, xfs, ntfs or
    /// none [default: none].
    #[arg(long, value_name = "NAME")]
    pub(crate) filesystem: Option<FileSystem>,
    /// Database engine for rds: postgresql, mysql, mariadb, oracle or sqlserver [default:
    /// postgresql].
    #[arg(long, value_name = "ENGINE")]
    pub(crate) engine: Option<String>,
    /// Maximum storage of an instance or a service.
    #[arg(long, value_name = "SIZE")]
    pub(crate) storage: Option<Bytes>,
    /// Leave a licence that you own out of the price: that of the database for an instance or a
    /// service, that of Windows Server for an Azure machine (Azure Hybrid Benefit).
    #[arg(long)]
    pub(crate) licence_owned: bool,
    /// Region of the prices.
    #[arg(long, value_name = "REGION")]
    pub(crate) region: Option<String>,
    /// Currency of the prices.
    #[arg(long, value_name = "CODE")]
    pub(crate) currency: Option<String>,
    /// Operating system of machines, linux or windows. Prices include its licence.
    #[arg(long, value_name = "OS")]
    pub(crate) os: Option<String>,
    /// Price file that overrides the edition's prices: tables as in the catalog, or the vendor's
    /// retail price list in JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// Find the fastest layout for this price per month: all rates of the need are scaled alike.
    #[arg(long, value_name = "AMOUNT")]
    pub(crate) budget: Option<Money>,
    /// Find the fastest layout within --host, --storage and --max-disks: all rates of the need are
    /// scaled alike.
    #[arg(long)]
    pub(crate) fastest: bool,
    /// Simulate the need on the plan, and with --budget or --fastest the rates that it promises. A plan that
    /// fails the simulation is rejected.
    #[arg(long)]
    pub(crate) verify: bool,
    /// Compare the plan with the layout in use: show its price, take the limits of an observation from
    /// it, and with --verify simulate the need on it.
    #[arg(long, value_name = "LAYOUT")]
    pub(crate) present: Option<PathBuf>,
    /// Extend this layout: its disks and files stay and may grow, and others may be added. The
    /// output compares its price with that of the plan.
    #[arg(long, value_name = "LAYOUT", conflicts_with = "fleet")]
    pub(crate) keep: Option<PathBuf>,
    /// With --keep, avoid downtime: the machine or the vCores of the instance stay, and no stripe is
    /// rebuilt.
    #[arg(long, conflicts_with = "fleet")]
    pub(crate) no_downtime: bool,
    /// Rely on the burst credits of disks for peaks of up to this length, for example 20min. It is
    /// an error if no credits last that long. By default, a plan does not rely on bursts.
    #[arg(long, value_name = "TIME", value_parser = some_time, conflicts_with = "fleet")]
    pub(crate) bursting: Option<Span>,
    /// Write the layout to this file. For a fleet, write the layouts to this folder, which is
    /// created.
    #[arg(long, value_name = "PATH")]
    pub(crate) out: Option<PathBuf>,
    /// Write an HTML report to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Hide the progress of a fleet plan, which is shown on stderr if that is a terminal.
    #[arg(long, short, requires = "fleet")]
    pub(crate) quiet: bool,
    /// Also print the use of every limit, all reasons and alternatives, and the bill of the layout
    /// in use.
    #[arg(long, short, conflicts_with = "fleet")]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Splits a cloud from the region of its prices.
fn cloud(text: &str) -> Result<(String, Option<String>), String> {
    let (name, region) = match text.split_once('=') {
        Some((name, region)) => (name.trim(), Some(region.trim())),
        None => (text.trim(), None),
    };
    match name.is_empty() || region.is_some_and(str::is_empty) {
        true => Err("write CLOUD or CLOUD=REGION, for example azure=West Europe".to_owned()),
        false => Ok((name.to_owned(), region.map(str::to_owned))),
    }
}
