//! The arguments of `weir observe`.

use super::baselines::{
    ObserveBetweenArgs, ObservePercentilesArgs, ObserveSnapshotArgs, SNAPSHOTS,
};
use super::import::ImportArgs;
use super::{OutputArgs, host_and_port, plot_file, some_time};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use weir_units::Span;

#[derive(Debug, Subcommand)]
pub(crate) enum ObserveCommand {
    /// Show an observation: rates of files and volumes against their limits, and waits.
    #[command(after_help = "Example:\n  weir sim layout.toml oltp.toml --observe run.weirobs\n  \
                      weir observe show run.weirobs --plot run.html\n\n\
                      The intact part of a truncated or damaged file is shown, with a note. \
                      docs/OBSERVATION.md describes the file format.")]
    Show(ObserveShowArgs),
    /// Import counters, logs, benchmark results and traces of other tools into an observation.
    #[command(after_help = "Example:\n  \
                            iostat -xt 5 > iostat.txt\n  \
                            weir observe import iostat.txt --out db1.weirobs\n  \
                            weir observe show db1.weirobs --plot db1.html\n  \
                            weir observe import --parquet observations/server=db1 --out db1.weirobs\n\n\
                            The kind of each file is detected from its contents, unless --as names \
                            it. Files compressed with gzip, xz or zstd are read directly; - is \
                            standard input. Several files are merged by time. Notes list the \
                            unused parts of a file and any missing data. weir observe kinds lists \
                            the supported kinds.")]
    Import(ObserveImportArgs),
    /// Write the samples of an observation as one table, for programs that read Parquet.
    #[command(after_help = "Example:\n  \
                            weir observe export run.weirobs --parquet run.parquet\n  \
                            weir observe export db1.weirobs db2.weirobs --parquet observations/\n  \
                            duckdb -c \"select name, max(value) from 'run.parquet' where metric = 'reads' group by name\"\n\n\
                            The table has a row for each value: time, subject, metric, unit and value; and \
                            rows for entities and limits, so that weir observe import --parquet returns the \
                            observation. A folder gets server=NAME/day=YYYY-MM-DD/part.parquet, in UTC. \
                            docs/OBSERVATION.md describes its columns. Parquet needs a build with \
                            --features parquet.")]
    Export(ObserveExportArgs),
    /// Fill in the sizing checklist for an application: IOPS, throughput, reads and writes, request
    /// size, latency and queue depth, each at the 50th, 90th and 99th percentile of the samples.
    #[command(
        after_help = "Example:\n  weir observe checklist db1.weirobs --only sda --only sdb\n\n\
                            The checklist covers the files, or the volumes if there are no files, and their total. \
                            Percentiles are over samples: samples of five minutes hide shorter peaks."
    )]
    Checklist(ObserveChecklistArgs),
    /// Save the current counters under a name, as a baseline.
    #[command(after_help = "Example:\n  \
                            weir observe snapshot --name before before.csv\n  \
                            weir observe snapshot --name now /proc/diskstats\n  \
                            weir observe between before now\n\n\
                            FILE is an observation, or an input that weir observe import reads; \
                            the newest sample of each subject is kept. Standard input (-) or a \
                            file in /proc without a time gets the current time. See \
                            docs/BASELINES.md.")]
    Snapshot(ObserveSnapshotArgs),
    /// List snapshots with their times, sources and subjects.
    #[command(after_help = "Example:\n  weir observe snapshots")]
    Snapshots {
        /// Folder of the snapshots.
        #[arg(long, value_name = "DIR", default_value = SNAPSHOTS)]
        dir: PathBuf,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show the activity of files, volumes and waits between two snapshots or times, in the
    /// columns of the qpi library.
    #[command(after_help = "Example:\n  weir observe between before after\n  \
                            weir observe between db1.weirobs@14:05 db1.weirobs@14:20\n  \
                            weir observe between before.csv after.csv --output csv\n\n\
                            FROM and TO are each a snapshot, a file (an observation, or an input that weir \
                            observe import reads; its newest sample counts), or FILE@TIME: @first, @last, @90s \
                            after the start, @14:05, \"@2026-11-22 14:05:00\". The exit code is 1 if the data \
                            does not cover that time.")]
    Between(ObserveBetweenArgs),
    /// Show IOPS, throughput and latency over time: the 50th, 90th and 99th percentile and the
    /// maximum of each hour's samples.
    #[command(after_help = "Example:\n  weir observe percentiles db1.weirobs --each 15min\n  \
                            weir observe percentiles db1.weirobs --only sda --of read-latency -o csv\n\n\
                            The table covers the files, or the volumes if there are no files. An interval begins at \
                            a whole multiple of its length by the clock; a sample belongs to the interval in which \
                            it ends. Latency percentiles are percentiles of the samples' means.")]
    Percentiles(ObservePercentilesArgs),
    /// Print a read-only script that queries the storage counters of a server.
    #[command(after_help = "Example:\n  weir observe script --sqlserver > weir.sql\n  \
                            sqlcmd -S SERVER -d master -i weir.sql -s \",\" -W -o before.csv\n  \
                            sqlcmd -S SERVER -d master -i weir.sql -s \",\" -W -o after.csv\n  \
                            weir observe import before.csv after.csv --out server.weirobs")]
    Script {
        /// For SQL Server, Azure SQL Database and Azure SQL Managed Instance, in T-SQL.
        #[arg(long, required = true)]
        sqlserver: bool,
    },
    /// List the supported kinds of input.
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
    /// Record a SQL Server, Azure SQL Database or Managed Instance:
    /// sqlserver://LOGIN@HOST:PORT/DATABASE.
    #[arg(long, value_name = "URL")]
    pub(crate) sqlserver: Option<String>,
    /// Record a PostgreSQL server: postgres://LOGIN@HOST:PORT/DATABASE.
    #[arg(long, value_name = "URL")]
    pub(crate) postgres: Option<String>,
    /// Record the disks of this machine, from /proc/diskstats or the given file.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "/proc/diskstats")]
    pub(crate) diskstats: Option<PathBuf>,
    /// Observation file to write.
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) out: Option<PathBuf>,
    /// Sampling interval, at least 100ms.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = sampling_time)]
    pub(crate) every: Span,
    /// Record for this time, for example 30m. The default is until Ctrl-C.
    #[arg(long = "for", value_name = "TIME", value_parser = some_time)]
    pub(crate) duration: Option<Span>,
    /// Read the password from the first line of this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// Read the Microsoft Entra token for SQL Server from the first line of this file. The file
    /// is read again on each reconnect.
    #[arg(long, value_name = "FILE", requires = "sqlserver", conflicts_with = "password_file")]
    pub(crate) token_file: Option<PathBuf>,
    /// Show the rates and latencies of files and disks on a live page in the browser at this address,
    /// for example 127.0.0.1:8080. Metrics are at /metrics. docs/WEB.md describes it.
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    pub(crate) web: Option<String>,
    /// Permit an address for --web that other machines can reach. There is no login, and no encryption.
    #[arg(long, requires = "web")]
    pub(crate) web_remote: bool,
    /// Hide the progress bar, which is shown on stderr if that is a terminal.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Parses a sampling interval, which has a minimum so that it does not load the server.
fn sampling_time(text: &str) -> Result<Span, String> {
    let time = some_time(text)?;
    if time < Span::from_millis(100) {
        Err("the sampling interval must be at least 100ms".to_owned())
    } else {
        Ok(time)
    }
}

#[derive(Debug, Args)]
pub(crate) struct ObserveChecklistArgs {
    /// Observation file
    pub(crate) file: PathBuf,
    /// Show only this file or volume. May be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ObserveImportArgs {
    /// Input files; - is standard input
    #[arg(required_unless_present = "parquet", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Import a table of weir observe export --parquet: a file, or the folder of a server or of one
    /// of its days.
    #[arg(long, value_name = "FILE|DIR", conflicts_with_all = OF_OTHERS)]
    pub(crate) parquet: Option<PathBuf>,
    /// Observation file to write.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) import: ImportArgs,
}

/// Options for files of other tools.
const OF_OTHERS: [&str; 8] =
    ["files", "kind", "every", "start", "time_unit", "file_counts", "utc_offset", "day_first"];

#[derive(Debug, Args)]
pub(crate) struct ObserveExportArgs {
    /// Observation files
    #[arg(required = true, value_name = "OBSERVATION")]
    pub(crate) files: Vec<PathBuf>,
    /// Parquet file to write; or a folder, if there is one, the name ends in /, or there are several
    /// observations.
    /// A folder gets a file for each server and day.
    #[arg(long, value_name = "FILE|DIR/")]
    pub(crate) parquet: PathBuf,
    /// Name of the server in a folder, of one observation [default: the name of the file].
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// Replace the days of the server that are in the folder already.
    #[arg(long)]
    pub(crate) replace: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ObserveShowArgs {
    /// Observation file
    pub(crate) file: PathBuf,
    /// Plot the rates over time to this file, which must end in .svg or .html.
    #[arg(long, value_name = "FILE", value_parser = plot_file)]
    pub(crate) plot: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
