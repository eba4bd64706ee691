//! The arguments of `weir fit` and `weir tune`.

use super::export::{KindArg, ScriptArgs};
use super::{OutputArgs, seed, some_time};
use clap::Args;
use std::path::PathBuf;
use weir_observe::when::Hours;
use weir_plan::measure::{percentile, role};
use weir_tune::goal::Target;
use weir_units::{Money, Span, percent};

/// A load given as a need, as an observation, or as both.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct NeedArgs {
    /// Need file: rates and sizes of each role (docs/PLAN.md). With --load, it gives what cannot be
    /// observed: latencies, working sets, sizes.
    #[arg(long, value_name = "FILE")]
    pub(crate) need: Option<PathBuf>,
    /// Take the rates from an observation, or from files that weir observe import reads. Sizes that
    /// were not observed are those of the layout.
    #[arg(long, value_name = "OBSERVATION", num_args = 1..)]
    pub(crate) load: Vec<PathBuf>,
    /// Take this percentile of the observed samples, for example 99.9 [default: 99].
    #[arg(long, value_name = "N", value_parser = percentile, requires = "load")]
    pub(crate) percentile: Option<f64>,
    /// Take the observed rates even if the system was throttled. By default, rates of a throttled
    /// system are raised to an estimate of its demand.
    #[arg(long, requires = "load")]
    pub(crate) as_observed: bool,
    /// Add this growth to observed sizes and rates, for example 30%; at most 10000%.
    #[arg(long, value_name = "SHARE", value_parser = percent, requires = "load")]
    pub(crate) growth: Option<u64>,
    /// Assign a role to a disk of the observation, for example sdc=data. Disks without a role are
    /// then ignored. May be repeated.
    #[arg(long, value_name = "NAME=ROLE", value_parser = role, requires = "load")]
    pub(crate) role: Vec<(String, String)>,
}

/// Parses hours of the day.
fn hours(text: &str) -> Result<Hours, String> {
    let wrong = "expected two times of the day, such as 22:00-06:00 or 22:00-06:00+01:00";
    Hours::parse(text).ok_or_else(|| wrong.to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct FitArgs {
    /// Layout file; docs/LAYOUT.md describes its keys.
    pub(crate) layout: PathBuf,
    #[command(flatten)]
    pub(crate) need: NeedArgs,
    /// Another need that the layout has to carry at another time, for example at night, with a backup
    /// beside the load. May be repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) also: Vec<PathBuf>,
    /// Answer for these hours of each observed day, too, for example 22:00-06:00 in UTC or
    /// 22:00-06:00+01:00. Their rates are taken as observed.
    #[arg(long, value_name = "HOURS", value_parser = hours, requires = "load")]
    pub(crate) night: Option<Hours>,
    /// Propose only changes without downtime: tiers and sizes of disks that grow online, bought rates, and
    /// files, storage and IOPS of an instance (a failover of about 10 seconds).
    #[arg(long)]
    pub(crate) no_downtime: bool,
    /// Count on burst credits, from those that the layout gives. By default, the layout has to carry
    /// the load when credits are spent.
    #[arg(long)]
    pub(crate) bursts: bool,
    /// Seed of the simulations.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TuneArgs {
    /// Layout file; docs/LAYOUT.md describes its keys.
    pub(crate) layout: PathBuf,
    /// Load: a fio job file, or descriptions of databases or backups (.toml). May be repeated.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["need", "load"])]
    pub(crate) workload: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) need: NeedArgs,
    /// Override the runtime of each job or database of the workload, for example 30s.
    #[arg(long, value_name = "TIME", value_parser = some_time, requires = "workload")]
    pub(crate) runtime: Option<Span>,
    /// Goal of a workload: iops, throughput, latency (the median), p99, transactions (per minute) or
    /// response (their mean time), for example iops=8000 or latency=5ms. May be repeated. By default,
    /// jobs may wait at limits for 10 % of their time at storage, and databases for 10 % of their
    /// response time. The goal of a need is the need.
    #[arg(long, value_name = "METRIC=VALUE", requires = "workload")]
    pub(crate) goal: Vec<Target>,
    /// Highest price of the layout per month, in the currency of its edition.
    #[arg(long, value_name = "AMOUNT")]
    pub(crate) budget: Option<Money>,
    /// Make only changes without downtime: tiers and sizes of disks that grow online, bought rates, and
    /// files, storage and IOPS of an instance (a failover of about 10 seconds).
    #[arg(long)]
    pub(crate) no_downtime: bool,
    /// Most layouts to simulate.
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = super::number::positive::<u32>)]
    pub(crate) simulations: u32,
    /// Count on burst credits, from those that the layout gives. By default, the layout has to carry
    /// the load when credits are spent.
    #[arg(long)]
    pub(crate) bursts: bool,
    /// Seed of the predictions; measurements have the next one.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed)]
    pub(crate) seed: u64,
    /// Apply the changes to the running server with this control socket, under load, and measure
    /// there. By default, they are applied in simulation only.
    #[arg(long, value_name = "PATH")]
    pub(crate) control: Option<PathBuf>,
    /// Measure the server for this time before the first change and after each
    /// [default: 10s].
    #[arg(long = "for", value_name = "TIME", value_parser = some_time, requires = "control")]
    pub(crate) window: Option<Span>,
    /// Wait this time after a change before measuring the server [default: 2s].
    #[arg(long, value_name = "TIME", value_parser = some_time, requires = "control")]
    pub(crate) settle: Option<Span>,
    /// Wait at most this time until a file that was added to the server has had its share of the
    /// requests for 3 s [default: 10min].
    #[arg(long, value_name = "TIME", value_parser = some_time, requires = "control")]
    pub(crate) file_wait: Option<Span>,
    /// Keep the changes of the server if they do not reach the goal. By default, they are undone.
    #[arg(long, requires = "control")]
    pub(crate) keep: bool,
    /// Change a real system in rounds: write a script into this folder, wait for the observation
    /// afterwards in the same folder, and go on from there. A walk that was ended goes on with the
    /// same command.
    #[arg(long, value_name = "DIR", requires_all = ["load", "kinds"], conflicts_with = "control")]
    pub(crate) rounds: Option<PathBuf>,
    /// Kind of script for --rounds, as for weir export. May be repeated, for example for disks (az) and
    /// stripes (mdadm).
    #[arg(long = "as", value_name = "KIND", value_enum, requires = "rounds")]
    pub(crate) kinds: Vec<KindArg>,
    /// Write the layout after the last step to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Write the record as an HTML report to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten, next_help_heading = "Scripts of --rounds")]
    pub(crate) script: ScriptArgs,
}
