//! The arguments of `weir observe`.

use super::baselines::{
    ObserveBetweenArgs, ObservePercentilesArgs, ObserveSnapshotArgs, SNAPSHOTS,
};
use super::{OutputArgs, plot_file, some_time};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use weir_observe::import::trace::TimeUnit;
use weir_units::Span;

#[derive(Debug, Subcommand)]
pub(crate) enum ObserveCommand {
    /// Show what is in an observation: rates of files and volumes against their limits,
    /// waits, and who was observed.
    #[command(after_help = "Example:\n  weir sim layout.toml oltp.toml --observe run.weirobs\n  \
                      weir observe show run.weirobs --plot run.html\n\n\
                      A file that was cut or damaged is shown as far as it is whole, and that is said. \
                      docs/OBSERVATION.md explains the file.")]
    Show(ObserveShowArgs),
    /// Read what other systems say, counters, logs, results and traces, into an observation.
    #[command(after_help = "Example:\n  iostat -xt 5 > iostat.txt\n  \
                            weir observe import iostat.txt --out db1.weirobs\n  \
                            weir observe show db1.weirobs --plot db1.html\n\n\
                            The kind of each file is found by what is in it; --as says it. Files compressed \
                            with gzip, xz or zstd are read as they are, - is standard input. Several files are put side \
                            by side by their times. What a file has that is not used, and what it lacks, is \
                            said. weir observe kinds lists what is read.")]
    Import(ObserveImportArgs),
    /// Fill in the list of what an application asks of its storage: IOPS, throughput, reads
    /// and writes, request size, latency, queue depth, each at the 50th, 90th and 99th
    /// percentile of the samples.
    #[command(
        after_help = "Example:\n  weir observe checklist db1.weirobs --only sda --only sdb\n\n\
                            Of the files, if there are any, else of the volumes, and of all together. \
                            Percentiles are over samples: of five minutes each they hide what is shorter."
    )]
    Checklist(ObserveChecklistArgs),
    /// Keep what everybody has counted by now under a name: a baseline.
    #[command(after_help = "Example:\n  weir observe snapshot --name before before.csv\n  \
                            weir observe snapshot --name now /proc/diskstats\n  \
                            weir observe between before now\n\n\
                            A FILE is an observation, or whatever weir observe import reads; of each that is \
                            in it the newest sample is kept. What is read from standard input (-) or /proc \
                            and does not say when it was taken is of now. docs/BASELINES.md has more.")]
    Snapshot(ObserveSnapshotArgs),
    /// List snapshots: when each was taken, of what, and who is in it.
    #[command(after_help = "Example:\n  weir observe snapshots")]
    Snapshots {
        /// The folder of the snapshots.
        #[arg(long, value_name = "DIR", default_value = SNAPSHOTS)]
        dir: PathBuf,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show what files, volumes and waits did between two snapshots or two times, in the
    /// columns of qpi.
    #[command(after_help = "Example:\n  weir observe between before after\n  \
                            weir observe between db1.weirobs@14:05 db1.weirobs@14:20\n  \
                            weir observe between before.csv after.csv --output csv\n\n\
                            FROM and TO are each a snapshot, or a file (an observation, or what weir observe \
                            import reads) whose newest sample counts, or FILE@TIME: @first, @last, @90s from \
                            its beginning, @14:05, \"@2026-11-22 14:05:00\". Exit code 1 if nothing can be \
                            told of that time.")]
    Between(ObserveBetweenArgs),
    /// Show IOPS, throughput and latency over time: the 50th, 90th and 99th percentile and the
    /// highest of the samples of each hour.
    #[command(after_help = "Example:\n  weir observe percentiles db1.weirobs --each 15min\n  \
                            weir observe percentiles db1.weirobs --only sda --of read-latency -o csv\n\n\
                            Of the files, if there are any, else of the volumes. A stretch begins at a \
                            whole multiple of its length by the clock; a sample is of the stretch in which \
                            it ends. A latency is the mean of a sample, of which these are percentiles.")]
    Percentiles(ObservePercentilesArgs),
    /// Print the script that asks a server what it counts of its storage: it reads, and
    /// changes nothing.
    #[command(after_help = "Example:\n  weir observe script --sqlserver > weir.sql\n  \
                            sqlcmd -S SERVER -d master -i weir.sql -s \",\" -W -o before.csv\n  \
                            sqlcmd -S SERVER -d master -i weir.sql -s \",\" -W -o after.csv\n  \
                            weir observe import before.csv after.csv --out server.weirobs")]
    Script {
        /// For SQL Server, Azure SQL Database and Azure SQL Managed Instance, in T-SQL.
        #[arg(long, required = true)]
        sqlserver: bool,
    },
    /// List the kinds of input that weir observe import reads.
    #[command(after_help = "Example:\n  weir observe kinds")]
    Kinds {
        #[command(flatten)]
        output: OutputArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ObserveArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ObserveCommand>,
    #[command(flatten)]
    pub(crate) live: ObserveLiveArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ObserveLiveArgs {
    /// A SQL Server, Azure SQL Database or Managed Instance: sqlserver://LOGIN@HOST:PORT/DATABASE.
    #[arg(long, value_name = "URL")]
    pub(crate) sqlserver: Option<String>,
    /// A PostgreSQL: postgres://LOGIN@HOST:PORT/DATABASE.
    #[arg(long, value_name = "URL")]
    pub(crate) postgres: Option<String>,
    /// The disks of this machine; from another file than /proc/diskstats, if one is named.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "/proc/diskstats")]
    pub(crate) diskstats: Option<PathBuf>,
    /// The observation to write.
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) out: Option<PathBuf>,
    /// The time from sample to sample, at least 100ms.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = sampling_time)]
    pub(crate) every: Span,
    /// How long: 30m. Until Ctrl-C, if this is not given.
    #[arg(long = "for", value_name = "TIME", value_parser = some_time)]
    pub(crate) duration: Option<Span>,
    /// The file that has the password, in its first line.
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// The file that has the token of Microsoft Entra for the SQL Server, in its first line. It
    /// is read again when the connection is made again.
    #[arg(long, value_name = "FILE", requires = "sqlserver", conflicts_with = "password_file")]
    pub(crate) token_file: Option<PathBuf>,
    /// Show no progress. It is shown on stderr, if that is a terminal.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// A time between samples that a server can bear.
fn sampling_time(text: &str) -> Result<Span, String> {
    let time = some_time(text)?;
    if time < Span::from_millis(100) {
        Err("it must be 100ms or more".to_owned())
    } else {
        Ok(time)
    }
}

#[derive(Debug, Args)]
pub(crate) struct ObserveChecklistArgs {
    /// The observation.
    pub(crate) file: PathBuf,
    /// Of this file or volume alone; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ObserveImportArgs {
    /// What to read; - is standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The observation to write.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) import: ImportArgs,
}

/// How files of other systems are read.
#[derive(Debug, Default, Args)]
pub(crate) struct ImportArgs {
    /// The kind of all files, where it should not be found by what is in them.
    #[arg(long = "as", value_name = "KIND")]
    pub(crate) kind: Option<String>,
    /// The time from sample to sample, of files that have no times: 5s.
    #[arg(long, value_name = "TIME")]
    pub(crate) every: Option<Span>,
    /// When files without dates begin: "2026-11-22 14:00:00".
    #[arg(long, value_name = "TIME")]
    pub(crate) start: Option<String>,
    /// Unit of the times in a block trace that does not say it. Use it where the notes of an import
    /// name a unit that was assumed: s, ms, us, ns or 100ns.
    #[arg(long, value_name = "UNIT", value_parser = TimeUnit::NAMES)]
    pub(crate) time_unit: Option<String>,
    #[command(flatten)]
    pub(crate) clock: ClockArgs,
}

/// How times without a zone, and dates of three numbers, are read.
#[derive(Debug, Default, Clone, Args)]
pub(crate) struct ClockArgs {
    /// Where times say no zone, how far they are ahead of UTC: +01:00.
    #[arg(long, value_name = "OFFSET", allow_hyphen_values = true)]
    pub(crate) utc_offset: Option<String>,
    /// Read 05/06/2026 as 5 June, not as 6 May.
    #[arg(long)]
    pub(crate) day_first: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ObserveShowArgs {
    /// The observation.
    pub(crate) file: PathBuf,
    /// Plot it over time to this file, which ends in .svg or .html.
    #[arg(long, value_name = "FILE", value_parser = plot_file)]
    pub(crate) plot: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
