//! The arguments. Help, man pages and completions all come from here.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use weir_report::Format;
use weir_server::Address;
use weir_units::{Bytes, Span};

/// Cloud storage limits as software: volumes that hold them, and predictions.
#[derive(Debug, Parser)]
#[command(name = "weir", version, propagate_version = true, subcommand_required = true)]
#[command(
    after_help = "Exit codes: 0 it worked; 1 the answer is no (a figure missed its tolerance); \
                        2 the input or the usage is wrong; 3 something failed while running."
)]
pub(crate) struct Cli {
    /// A catalog edition of your own, from a file. May be repeated.
    #[arg(long = "catalog", global = true, value_name = "FILE")]
    pub(crate) editions: Vec<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a layout's volumes over NBD, with their limits.
    #[command(
        after_help = "Example:\n  weir serve layout.toml --data /var/lib/weir --nbd unix:/tmp/weir.sock\n\n\
                            Ctrl-C and SIGTERM complete what is under way and make it durable."
    )]
    Serve(ServeArgs),
    /// Predict, in virtual time, what fio jobs get on a layout.
    #[command(
        after_help = "Example:\n  weir sim layout.toml fiowrite.ini --runtime 30s --output json\n\n\
                            A job's directory or filename is the volume or stripe of the same last name: \
                            /mnt/nocache is the export nocache. Jobs of several files run one file after \
                            the other."
    )]
    Sim(SimArgs),
    /// Rerun published experiments and compare the figures.
    #[command(subcommand)]
    Lab(LabCommand),
    /// Show what a running server does: rates, limits, and the cap that holds each volume.
    #[command(after_help = "Example:\n  weir status --interval 5s --output json")]
    Status(StatusArgs),
    /// List or change the volumes of a running server.
    #[command(subcommand)]
    Volume(VolumeCommand),
    /// Act on a host of a running server.
    #[command(subcommand)]
    Host(HostCommand),
    /// Look up tiers and machines, each figure with its source and date.
    #[command(subcommand)]
    Catalog(CatalogCommand),
    /// Check a layout file, or print its JSON schema.
    #[command(subcommand)]
    Layout(LayoutCommand),
    /// Print shell completions.
    #[command(after_help = "Example:\n  weir completions bash > /etc/bash_completion.d/weir")]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the man page.
    #[command(after_help = "Example:\n  weir man | man -l -")]
    Man,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The layout file.
    pub(crate) layout: PathBuf,
    /// Keep the data here; without it the data is in memory and gone at the end.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Listen here: unix:PATH or tcp:HOST:PORT. May be repeated [default:
    /// tcp:127.0.0.1:10809].
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) nbd: Vec<Address>,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    /// The layout file.
    pub(crate) layout: PathBuf,
    /// fio job files, as fio takes them.
    #[arg(required = true, value_name = "JOB")]
    pub(crate) jobs: Vec<PathBuf>,
    /// Seed of the jobs: one seed gives one run.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Run each job this long, as fio's --runtime.
    #[arg(long, value_name = "TIME")]
    pub(crate) runtime: Option<Span>,
    /// Give each job's file this size.
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Bytes>,
    /// A directory or filename of the jobs is this volume or stripe. May be repeated.
    #[arg(long, value_name = "PATH=EXPORT", value_parser = mapping)]
    pub(crate) map: Vec<(String, String)>,
    /// The host cache holds the jobs' files on this export from the start. May be
    /// repeated.
    #[arg(long, value_name = "EXPORT")]
    pub(crate) warm: Vec<String>,
    /// Report over stretches of this length, too.
    #[arg(long, value_name = "TIME")]
    pub(crate) every: Option<Span>,
    /// Crash a host at a time: its cache is cold from then on.
    #[arg(long, value_name = "HOST@TIME", value_parser = moment)]
    pub(crate) crash: Option<(String, Span)>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

fn mapping(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((path, export)) if !path.is_empty() && !export.is_empty() => {
            Ok((path.to_owned(), export.to_owned()))
        }
        _ => Err("write PATH=EXPORT, like /mnt/data=data".to_owned()),
    }
}

fn moment(text: &str) -> Result<(String, Span), String> {
    let (host, time) = text.split_once('@').ok_or("write HOST@TIME, like host@10s")?;
    let time = time.parse::<Span>().map_err(|error| error.to_string())?;
    Ok((host.to_owned(), time))
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// List the labs.
    #[command(after_help = "Example:\n  weir lab list")]
    List {
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Run labs on the virtual and the wall clock. Exit code 1 if a figure misses.
    #[command(
        after_help = "Example:\n  weir lab run ds14-benchmark\n  weir lab run --all --clock virtual --output json"
    )]
    Run(LabRunArgs),
}

#[derive(Debug, Args)]
pub(crate) struct LabRunArgs {
    /// The labs.
    #[arg(required_unless_present = "all", value_name = "LAB")]
    pub(crate) names: Vec<String>,
    /// Every lab.
    #[arg(long, conflicts_with = "names")]
    pub(crate) all: bool,
    /// Which clock.
    #[arg(long, default_value = "both", value_enum)]
    pub(crate) clock: ClockArg,
    /// Who drives the wall clock's jobs.
    #[arg(long = "with", default_value = "weir", value_enum, value_name = "DRIVER")]
    pub(crate) driver: DriverArg,
    /// Size of each job's file in wall time; the articles' are of tens of GiB.
    #[arg(long, default_value = "64MiB", value_name = "SIZE")]
    pub(crate) size: Bytes,
    /// How long each job runs in wall time; the article's run 30 s.
    #[arg(long, default_value = "6s", value_name = "TIME")]
    pub(crate) runtime: Span,
    /// Seed of the jobs.
    #[arg(long, default_value_t = 1)]
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

#[derive(Debug, Args)]
pub(crate) struct ControlArgs {
    /// The server's control socket [default: weir.sock in the runtime folder].
    #[arg(long, value_name = "PATH", env = "WEIR_CONTROL")]
    pub(crate) control: Option<PathBuf>,
}

impl ControlArgs {
    pub(crate) fn path(&self) -> PathBuf {
        self.control.clone().unwrap_or_else(weir_server::control::default_path)
    }
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct OutputArgs {
    /// The format of the output.
    #[arg(long, short, value_name = "FORMAT", default_value = "text", value_enum)]
    output: OutputFormat,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum OutputFormat {
    Text,
    Json,
    Csv,
    Markdown,
}

impl OutputArgs {
    pub(crate) fn format(self) -> Format {
        match self.output {
            OutputFormat::Text => Format::Text,
            OutputFormat::Json => Format::Json,
            OutputFormat::Csv => Format::Csv,
            OutputFormat::Markdown => Format::Markdown,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Measure rates over this time; at most 1h.
    #[arg(long, default_value = "1s", value_name = "TIME")]
    pub(crate) interval: Span,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

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
    /// Resize a volume; its tier and limits follow at once, under load.
    #[command(
        after_help = "Example:\n  weir volume resize data 540GiB\n\nClients see the new size when \
                            they connect again. A volume with data behind the new end is not shrunk."
    )]
    Resize {
        /// The volume.
        name: String,
        /// Its new size, with a unit.
        size: Bytes,
        #[command(flatten)]
        control: ControlArgs,
    },
    /// Set a volume's host cache mode.
    #[command(after_help = "Example:\n  weir volume set-cache data read-only")]
    SetCache {
        /// The volume.
        name: String,
        /// none, read-only or read-write.
        mode: String,
        #[command(flatten)]
        control: ControlArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum HostCommand {
    /// Crash a host: its clients are cut off, its cache is cold, and what a
    /// read-write cache had not written back is lost.
    #[command(after_help = "Example:\n  weir host crash host")]
    Crash {
        /// The host; "host" where the layout gives no name.
        name: String,
        #[command(flatten)]
        control: ControlArgs,
    },
    /// Fill the host cache with a range of an export, as a warm-up would.
    #[command(after_help = "Example:\n  weir host warm reads --length 120GiB")]
    Warm {
        /// The export.
        export: String,
        /// First byte.
        #[arg(long, default_value = "0B")]
        offset: Bytes,
        /// How much.
        #[arg(long)]
        length: Bytes,
        #[command(flatten)]
        control: ControlArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum CatalogCommand {
    /// List the editions.
    #[command(after_help = "Example:\n  weir catalog editions")]
    Editions {
        #[command(flatten)]
        output: OutputArgs,
    },
    /// List the tiers of an edition.
    #[command(after_help = "Example:\n  weir catalog tiers azure-now")]
    Tiers {
        /// The edition.
        edition: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// List the machines of an edition.
    #[command(after_help = "Example:\n  weir catalog hosts azure-premium-2015")]
    Hosts {
        /// The edition.
        edition: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show everything known under a name: every figure, its source, its date, and
    /// where sources conflict.
    #[command(after_help = "Example:\n  weir catalog show DS14")]
    Show {
        /// A tier, machine, family or rule.
        name: String,
        #[command(flatten)]
        output: OutputArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum LayoutCommand {
    /// Check a layout and show what it comes to.
    #[command(after_help = "Example:\n  weir layout check layout.toml")]
    Check {
        /// The layout file.
        layout: PathBuf,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Print the JSON schema of layout files.
    #[command(after_help = "Example:\n  weir layout schema > weir-layout.schema.json")]
    Schema,
}
