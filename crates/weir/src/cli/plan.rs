//! The arguments of `weir plan`.

use super::{OutputArgs, some_time};
use clap::Args;
use std::path::PathBuf;
use std::str::FromStr;
use weir_units::{Bytes, BytesPerSec, Iops, Money, Span};

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct PlanArgs {
    /// What is needed, by role, and what may be used.
    #[arg(long, value_name = "FILE")]
    pub(crate) need: Option<PathBuf>,
    /// Size from what was observed: an observation, or files that weir observe import reads. A need
    /// beside it says what cannot be observed: sizes, latencies, working sets.
    #[arg(long, value_name = "OBSERVATION", num_args = 1.., conflicts_with_all = ["iops",
        "throughput", "request", "reads"])]
    pub(crate) from: Vec<PathBuf>,
    /// So many of a hundred samples ask for no more, like 99.9 [default: 99].
    #[arg(long, value_name = "N", value_parser = percentile)]
    pub(crate) percentile: Option<f64>,
    /// Plan for the rates of a throttled system as they were observed. Without it, the plan is for an
    /// estimate of what the system would do if nothing throttled it.
    #[arg(long)]
    pub(crate) as_observed: bool,
    /// By how much sizes and rates are to grow, like 30%; 10000% at most.
    #[arg(long, value_name = "SHARE", value_parser = weir_plan::need::share)]
    pub(crate) growth: Option<u64>,
    /// What somebody in the observation is for, like sdc=data; may be repeated. Then nobody else
    /// counts.
    #[arg(long, value_name = "NAME=ROLE", value_parser = role, requires = "from")]
    pub(crate) role: Vec<(String, String)>,
    /// Plan many databases: a folder with a need file for each, DATABASE.toml, or its observation,
    /// DATABASE.weirobs. They go onto the managed instances that are cheapest together, with a bound
    /// on what could be cheaper still.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["need", "from", "size", "iops", "throughput",
        "request", "reads", "latency", "working_set", "headroom", "disks", "vcpus", "memory",
        "max_disks", "apart", "os", "engine", "budget", "fastest", "present"])]
    pub(crate) fleet: Option<PathBuf>,
    /// Of a fleet, the fewest instances, whatever they cost.
    #[arg(long, requires = "fleet")]
    pub(crate) fewest: bool,
    /// Size of the data, like 4TiB.
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Bytes>,
    /// Operations a second on the data.
    #[arg(long, value_name = "N")]
    pub(crate) iops: Option<Iops>,
    /// Bytes a second of the data, like "200 MB/s".
    #[arg(long, value_name = "RATE")]
    pub(crate) throughput: Option<BytesPerSec>,
    /// Bytes of an operation on the data [default: 8 KiB, or what the two rates give].
    #[arg(long, value_name = "SIZE")]
    pub(crate) request: Option<Bytes>,
    /// The share of reads, like 70%.
    #[arg(long, value_name = "SHARE")]
    pub(crate) reads: Option<String>,
    /// What half of the requests may take at most: it chooses the disks, and --verify holds the plan
    /// against it.
    #[arg(long, value_name = "TIME")]
    pub(crate) latency: Option<Span>,
    /// What of the data is read again and again, if a cache is to be counted on.
    #[arg(long, value_name = "SIZE")]
    pub(crate) working_set: Option<Bytes>,
    /// How much more than is said is to be carried, like 20%; 10000% at most.
    #[arg(long, value_name = "SHARE")]
    pub(crate) headroom: Option<String>,
    /// The catalog edition to plan with [default: that of --keep, or azure-now; of a fleet
    /// azure-mi-now].
    #[arg(long, value_name = "EDITION")]
    pub(crate) edition: Option<String>,
    /// vm, gp, next-gen-gp, bc, rds or postgres; may be repeated [default: all that the edition has].
    #[arg(long, value_name = "FAMILY", value_delimiter = ',')]
    pub(crate) family: Vec<String>,
    /// Families of disks, like premium-ssd; may be repeated [default: those no slower than the
    /// edition's own choice].
    #[arg(long, value_name = "FAMILY", value_delimiter = ',')]
    pub(crate) disks: Vec<String>,
    /// A machine or instance size that is there already.
    #[arg(long, value_name = "SIZE")]
    pub(crate) host: Option<String>,
    /// The fewest virtual processors.
    #[arg(long, value_name = "N", value_parser = count::<u32>)]
    pub(crate) vcpus: Option<u32>,
    /// The least memory.
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<Bytes>,
    /// The most disks.
    #[arg(long, value_name = "N", value_parser = count::<u64>)]
    pub(crate) max_disks: Option<u64>,
    /// The most data files of an instance [default: 8].
    #[arg(long, value_name = "N", value_parser = count::<u64>)]
    pub(crate) max_files: Option<u64>,
    /// Each role has disks of its own.
    #[arg(long)]
    pub(crate) apart: bool,
    /// The database engine of rds: postgresql, mysql, mariadb, oracle or sqlserver [default:
    /// postgresql].
    #[arg(long, value_name = "ENGINE")]
    pub(crate) engine: Option<String>,
    /// The most storage of an instance or a service.
    #[arg(long, value_name = "SIZE")]
    pub(crate) storage: Option<Bytes>,
    /// Licences of the database are there already.
    #[arg(long)]
    pub(crate) licence_owned: bool,
    /// The region of prices.
    #[arg(long, value_name = "REGION")]
    pub(crate) region: Option<String>,
    /// The currency of prices.
    #[arg(long, value_name = "CODE")]
    pub(crate) currency: Option<String>,
    /// The operating system of machines, linux or windows.
    #[arg(long, value_name = "OS")]
    pub(crate) os: Option<String>,
    /// Prices that come before the edition's: tables as in the catalog, or the vendor's retail price
    /// list in JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// The fastest layout of the need's shape for so much a month.
    #[arg(long, value_name = "AMOUNT")]
    pub(crate) budget: Option<Money>,
    /// The fastest layout of the need's shape within --host, --storage and --max-disks.
    #[arg(long)]
    pub(crate) fastest: bool,
    /// Simulate the need on the plan; a plan that fails is not printed as one.
    #[arg(long)]
    pub(crate) verify: bool,
    /// A layout that is there at present, to simulate beside the plan.
    #[arg(long, value_name = "LAYOUT", requires = "verify")]
    pub(crate) present: Option<PathBuf>,
    /// The layout of what is there: its disks and files stay, and may grow and be added to.
    #[arg(long, value_name = "LAYOUT", conflicts_with = "fleet")]
    pub(crate) keep: Option<PathBuf>,
    /// What is there must not be down: the machine, or the vCores of the instance, stay as well.
    #[arg(long, conflicts_with = "fleet")]
    pub(crate) no_downtime: bool,
    /// Peaks last no longer than this, and the credits of disks may carry them: 20min; more than any
    /// credits last is refused. Without it bursts are not counted on.
    #[arg(long, value_name = "TIME", value_parser = some_time, conflicts_with = "fleet")]
    pub(crate) bursting: Option<Span>,
    /// Write the layout to a file; of a fleet the layouts into a folder, which is made.
    #[arg(long, value_name = "PATH")]
    pub(crate) out: Option<PathBuf>,
    /// Show no progress of a fleet. It is shown on stderr, if that is a terminal.
    #[arg(long, short, requires = "fleet")]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// A number that is not zero.
fn count<N: FromStr + Default + PartialEq>(text: &str) -> Result<N, String> {
    let number = text.trim().parse().ok().filter(|n| *n != N::default());
    number.ok_or_else(|| format!("{text:?} is no whole number of 1 at least"))
}

fn percentile(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.trim().trim_end_matches('%').trim().parse().ok();
    let wrong = || format!("{text:?} is no number above 0 and up to 100, like 99 or 99.9");
    number.filter(|n| *n > 0.0 && *n <= 100.0).ok_or_else(wrong)
}

fn role(text: &str) -> Result<(String, String), String> {
    match text.rsplit_once('=') {
        Some((name, role @ ("data" | "log" | "tempdb" | "backup"))) if !name.is_empty() => {
            Ok((name.to_owned(), role.to_owned()))
        }
        _ => {
            Err("write NAME=ROLE, like sdc=data; a role is data, log, tempdb or backup".to_owned())
        }
    }
}
