//! The arguments of `weir lab`.

use super::{OutputArgs, seed, some_bytes, some_time};
use clap::{Args, Subcommand, ValueEnum, value_parser};
use weir_units::{Bytes, Span};

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// List the labs.
    #[command(after_help = "Example:\n  weir lab list")]
    List {
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Run labs on the virtual and the wall clock. Exit code 1 if a figure misses or
    /// was not measured.
    #[command(
        override_usage = "weir lab run [OPTIONS] <LAB>...\n       weir lab run [OPTIONS] --all",
        after_help = "Example:\n  weir lab run ds14-benchmark\n  weir lab run --all --clock virtual --output json\n  \
                      weir lab run io-size vm-cap --clock wall --tries 3"
    )]
    Run(LabRunArgs),
}

#[derive(Debug, Args)]
pub(crate) struct LabRunArgs {
    /// The labs; weir lab list shows them.
    #[arg(value_name = "LAB")]
    pub(crate) names: Vec<String>,
    /// Every lab.
    #[arg(long, conflicts_with = "names")]
    pub(crate) all: bool,
    /// Which clock.
    #[arg(long, default_value = "both", value_enum)]
    pub(crate) clock: ClockArg,
    /// Who drives the wall clock's jobs: weir, if this is not given.
    #[arg(long = "with", value_enum, value_name = "DRIVER")]
    pub(crate) driver: Option<DriverArg>,
    /// Files of jobs that are larger have this size in wall time, 64MiB if this is not
    /// given; the articles' are of tens of GiB. A lab may say its own.
    #[arg(long, value_name = "SIZE", value_parser = some_bytes, allow_hyphen_values = true)]
    pub(crate) size: Option<Bytes>,
    /// How long each job runs in wall time, 6s if this is not given; the article's run
    /// 30 s. A lab may say its own.
    #[arg(long, value_name = "TIME", value_parser = some_time, allow_hyphen_values = true)]
    pub(crate) runtime: Option<Span>,
    /// Run a lab up to so many times (1 to 10) in wall time until its figures hold
    /// there, once if this is not given; a shared machine may stall. The last run's
    /// figures count, all of them: nothing is averaged or picked.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=10))]
    pub(crate) tries: Option<u32>,
    /// Seed of the jobs, a whole number.
    #[arg(long, default_value_t = 1, value_parser = seed, allow_hyphen_values = true)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Which clock runs a lab.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ClockArg {
    /// The simulator's.
    Virtual,
    /// The real one, on served volumes.
    Wall,
    /// Both.
    Both,
}

/// Who drives jobs in wall time.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum DriverArg {
    /// Weir's own runner.
    Weir,
    /// The real fio, which must be installed.
    Fio,
}
