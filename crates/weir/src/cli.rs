//! The arguments. Help, man pages and completions all come from here.

mod backup;
mod baselines;
mod export;
mod lab;
mod observe;
mod plan;

pub(crate) use backup::{
    BackupCommand, BackupInternalsArgs, BackupListArgs, BackupPlanArgs, BackupPruneArgs,
    BackupRunArgs, BackupShowArgs, BackupVerifyArgs, ChosenArgs, DamagedArg, KeyArgs, PlaceArgs,
    RestoreArgs,
};
pub(crate) use baselines::{ObserveBetweenArgs, ObservePercentilesArgs, ObserveSnapshotArgs};
pub(crate) use export::ExportArgs;
pub(crate) use lab::{ClockArg, DriverArg, LabCommand, LabRunArgs};
pub(crate) use observe::{
    ClockArgs, ImportArgs, ObserveArgs, ObserveChecklistArgs, ObserveCommand, ObserveImportArgs,
    ObserveLiveArgs, ObserveShowArgs,
};
pub(crate) use plan::PlanArgs;

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use weir_layout::Role;
use weir_layout::file::CacheKey;
use weir_report::Format;
use weir_server::Address;
use weir_units::{Bytes, ParseError, Span};

/// Cloud storage limits as software: volumes that hold them, and predictions.
#[derive(Debug, Parser)]
#[command(name = "weir", version, propagate_version = true, subcommand_required = true)]
#[command(
    after_help = "Exit codes: 0 it worked; 1 the answer is no (a figure missed its tolerance or was \
                        not measured); 2 the input or the usage is wrong; 3 something failed while running; \
                        130 Ctrl-C ended it."
)]
pub(crate) struct Cli {
    /// Read a catalog edition of your own from this file, beside the built-in ones:
    /// --catalog my-cloud.toml. May be repeated. docs/LAYOUT.md explains the format.
    #[arg(long = "catalog", global = true, value_name = "FILE")]
    pub(crate) editions: Vec<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a layout's volumes over NBD, and page blobs over REST, with their limits.
    #[command(
        after_help = "Example:\n  weir serve layout.toml --data /var/lib/weir --nbd unix:/tmp/weir.sock\n\n\
                            Ctrl-C and SIGTERM complete what is under way and make it durable."
    )]
    Serve(ServeArgs),
    /// Predict, in virtual time, what fio jobs or a database get on a layout.
    #[command(
        after_help = "Example:\n  weir sim layout.toml fiowrite.ini --runtime 30s --output json\n  \
                            weir sim layout.toml oltp.toml --every 1min\n  \
                            weir sim layout.toml oltp.toml --observe run.weirobs --plot run.html\n  \
                            weir sim layout.toml backup.toml oltp.toml\n\n\
                            A job's directory or filename is the volume or stripe of the same last name: \
                            /mnt/nocache is the export nocache. Jobs of several files run one file after \
                            the other. Ctrl-C ends the run: what was simulated until then is reported and \
                            observed, and the exit code is 130; once more ends it at once."
    )]
    Sim(SimArgs),
    /// Run a database for real on a layout's volumes, and recover it.
    #[command(after_help = "Example:\n  weir run layout.toml oltp.toml --runtime 60s\n  \
                            weir run layout.toml oltp.toml --data /var/lib/weir\n  \
                            weir run layout.toml oltp.toml --data /var/lib/weir --recover-only\n\n\
                            The volumes are served in this process, with their limits, and really \
                            read and written. Every page that is read is checked. With --data, a \
                            start recovers what the last run left, however it ended, and checks \
                            every page; exit code 1 if something acknowledged is lost. Ctrl-C ends \
                            the run: what came until then is reported, and the exit code is 130.")]
    Run(RunArgs),
    /// Observe real systems while they run, read what they say, and look into observations:
    /// what was counted over time.
    #[command(
        args_conflicts_with_subcommands = true,
        subcommand_negates_reqs = true,
        arg_required_else_help = true,
        after_help = "Example:\n  weir observe --sqlserver sqlserver://weir@db1/master --every 1s --for 30m --out db1.weirobs\n  \
                      weir observe --postgres postgres://weir@db2/app --diskstats --out db2.weirobs\n  \
                      weir observe show db1.weirobs\n\n\
                      Several systems land in one observation. Nothing is changed where it is asked, and \
                      nothing is cleared. Without --for, Ctrl-C ends it. A password comes from \
                      WEIR_SQLSERVER_PASSWORD or WEIR_POSTGRES_PASSWORD, from --password-file or from the \
                      URL, a token from WEIR_SQLSERVER_TOKEN or --token-file. docs/LIVE.md has the rights \
                      that a login needs, and what is asked."
    )]
    Observe(Box<ObserveArgs>),
    /// Say which cap holds a system back, with evidence, what to do and what that brings; or
    /// that it is not the storage. Exit code 1 if something is throttled.
    #[command(after_help = "Example:\n  iostat -xt 1 60 > iostat.txt\n  \
                            weir diagnose iostat.txt --layout layout.toml --map sdc=data\n  \
                            weir diagnose files.weirobs --edition azure-mi-2018 --html report.html\n\n\
                            An observation is a file that weir observe or a run of Weir wrote, or whatever \
                            weir observe import reads. Limits come from the layout, from an edition (files of a \
                            managed instance by their size), or from the observation itself. docs/DIAGNOSIS.md \
                            explains each finding. Exit code 0: nothing is throttled, 1: something is, 2: the \
                            input is wrong.")]
    Diagnose(DiagnoseArgs),
    /// Find the cheapest layout that meets a need, with its price, its binding limit, and the next
    /// cheaper layout with the reason why it fails. Exit code 1 if no layout meets the need.
    #[command(after_help = "Example:\n  weir plan --iops 16000 --size 4TiB\n  \
                            weir plan --need need.toml --verify --out layout.toml\n  \
                            weir plan --edition azure-mi-now --family gp --size 900GiB --iops 7000 --budget 1200\n  \
                            weir plan --from files.weirobs --percentile 99 --growth 30% --headroom 20%\n  \
                            weir plan --need need.toml --keep present.toml --no-downtime\n  \
                            weir plan --fleet databases --family gp --out instances\n\n\
                            A need file has [data], [log], [tempdb] and [backup], each with size, iops, \
                            throughput, request, reads, latency, working_set; docs/PLAN.md describes all keys, and \
                            how the search is proven. Prices are list prices of the edition, with source and date; \
                            --prices takes others, also the vendor's retail price list in JSON. Exit code 0: \
                            there is a plan, 1: no layout meets the need; the answer says what to relax, 2: the input \
                            is wrong.")]
    Plan(Box<PlanArgs>),
    /// Write a script that builds a layout: database files, disks, machines, stripes, mounts; or
    /// only what changes from another layout.
    #[command(after_help = "Example:\n  weir export layout.toml --as az --out disks.sh\n  \
                            weir export new.toml --from old.toml --as tsql --database sales\n  \
                            weir export layout.toml --as tsql --mount pool=F:\\Data --name data-1=sales\n\n\
                            Nothing is run and nobody is asked: read the script, then run it. Each looks first \
                            what is there, and changes nothing when it is run again. What would lose data \
                            or stop a system is a comment in the script and a note here. docs/EXPORT.md \
                            has what each kind needs, does and does not do.")]
    Export(Box<ExportArgs>),
    /// Back up volumes and databases to striped files, plan it, and look after backups.
    #[command(subcommand)]
    Backup(BackupCommand),
    /// Restore a backup to volumes, to exports of a running server, or to images; or prove that it
    /// can be restored.
    #[command(
        after_help = "Example:\n  weir restore sales --from /backups --to layout.toml --data \
                            /var/lib/weir\n  weir restore sales --from /backups --control weir.sock \
                            --map data=data2\n  weir restore sales --from /backups --image images\n  \
                            weir restore sales --from /backups --prove --oltp oltp.toml\n\n\
                            Stripes are read in parallel, and each frame is checked before it is \
                            written. A target that is not empty is refused without --force. The \
                            first 4 KiB of a volume are written last: an interrupted restore does \
                            not look whole. docs/BACKUP.md has more."
    )]
    Restore(Box<RestoreArgs>),
    /// Rerun published experiments and compare the figures.
    #[command(subcommand)]
    Lab(LabCommand),
    /// Show what a running server does: rates, limits, and the cap that holds each volume.
    #[command(
        after_help = "Example:\n  weir status --interval 5s --output json\n\nVolumes that burst are \
                            listed with the credits that they have left."
    )]
    Status(StatusArgs),
    /// List or change the volumes of a running server.
    #[command(subcommand)]
    Volume(VolumeCommand),
    /// Act on a host of a running server.
    #[command(subcommand)]
    Host(HostCommand),
    /// Mount a layout's volumes as directories: any program's files, with the limits.
    #[command(after_help = "Example:\n  weir mount layout.toml /mnt/weir --data /var/lib/weir\n  \
                            weir mount instance.toml /mnt/weir --database sales\n\n\
                            Each volume or stripe is a directory whose files share its limits and its \
                            size. On a managed instance each database is a directory, and each file \
                            in it is a volume that moves through the tiers as it grows and shrinks. \
                            Ctrl-C, SIGTERM and umount complete what is under way. Needs /dev/fuse, \
                            and fusermount3 for users other than root.")]
    Mount(MountArgs),
    /// Make a certificate for page blobs over HTTPS, and the authority that clients trust.
    #[command(after_help = "Example:\n  weir cert tls\n  weir serve layout.toml   # with [blob] \
                            certificate = \"tls/certificate.pem\", key = \"tls/key.pem\"\n\n\
                            Clients trust tls/authority.pem. Its key is not kept: nobody can sign \
                            another certificate with it.")]
    Cert(CertArgs),
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
    /// The layout file (docs/LAYOUT.md explains its keys).
    pub(crate) layout: PathBuf,
    /// Keep the data in this folder, which is made if it is not there. Without it the
    /// data is in memory and gone at the end.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Listen for NBD clients here: unix:PATH or tcp:HOST:PORT, like
    /// unix:/tmp/weir.sock or tcp:0.0.0.0:10809. May be repeated.
    #[arg(long, value_name = "ADDRESS", default_values_t = [Address::default()])]
    pub(crate) nbd: Vec<Address>,
    /// Serve page blobs over REST here, as the layout's blob table would: an Azure SDK makes
    /// them, each is a volume of the layout's host. Without HOST:PORT at the layout's
    /// address, or at 127.0.0.1:10000, where UseDevelopmentStorage=true looks.
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, value_parser = host_and_port)]
    pub(crate) blob: Option<Option<String>>,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MountArgs {
    /// The layout file (docs/LAYOUT.md explains its keys).
    pub(crate) layout: PathBuf,
    /// The empty directory to mount at.
    pub(crate) dir: PathBuf,
    /// Keep the files in this folder, which is made if it is not there, under files/. Without
    /// it they are in a temporary folder and gone at the end.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// On a managed instance: a database that the layout does not have. May be repeated.
    #[arg(long = "database", value_name = "NAME", value_parser = database_name)]
    pub(crate) databases: Vec<String>,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CertArgs {
    /// The folder for authority.pem, certificate.pem and key.pem.
    pub(crate) dir: PathBuf,
    /// Host names and addresses that clients use. May be repeated.
    #[arg(
        long = "name",
        value_name = "NAME",
        default_values_t = ["localhost", "*.blob.localhost", "127.0.0.1", "::1"].map(str::to_owned)
    )]
    pub(crate) names: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    /// The layout file (docs/LAYOUT.md explains its keys).
    pub(crate) layout: PathBuf,
    /// fio job files, as fio takes them; or databases with their users (docs/OLTP.md explains the
    /// keys) and backups (docs/BACKUP.md), one file for each that ends in .toml.
    #[arg(required = true, value_name = "JOB")]
    pub(crate) jobs: Vec<PathBuf>,
    /// End each job after this time, whatever runtime its file has: 30s, 10min, 2h. Jobs
    /// without time_based end before that if their size is done. Of a database, measure
    /// so long.
    #[arg(long, value_name = "TIME", value_parser = some_time, allow_hyphen_values = true)]
    pub(crate) runtime: Option<Span>,
    /// Give each job's file this size instead of what the job file says: 64MiB, 30GiB.
    #[arg(long, value_name = "SIZE", value_parser = some_bytes, allow_hyphen_values = true)]
    pub(crate) size: Option<Bytes>,
    /// Take a directory or filename of the jobs for this volume or stripe:
    /// /mnt/data=readcache. May be repeated.
    #[arg(long, value_name = "PATH=EXPORT", value_parser = mapping)]
    pub(crate) map: Vec<(String, String)>,
    /// Start with what the jobs may touch of this volume or stripe in the host cache.
    /// May be repeated.
    #[arg(long, value_name = "EXPORT")]
    pub(crate) warm: Vec<String>,
    /// Crash a host at a time of the run: host@10s. Its cache is cold from then on. The
    /// host is called "host" where the layout gives no name.
    #[arg(long, value_name = "HOST@TIME", value_parser = moment)]
    pub(crate) crash: Option<(String, Span)>,
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The layout file (docs/LAYOUT.md explains its keys).
    pub(crate) layout: PathBuf,
    /// A database and its users: a file that ends in .toml (docs/OLTP.md explains its keys).
    #[arg(value_name = "OLTP")]
    pub(crate) oltp: PathBuf,
    /// Keep the data in this folder, which is made if it is not there, and go on from what
    /// it has. Without it the data is in memory and gone at the end.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Recover the database, say what was found, and end.
    #[arg(long, requires = "data")]
    pub(crate) recover_only: bool,
    /// Keep the number of the newest acknowledged transaction in this file, which a
    /// recovery is held to; in the folder of --data if this is not given.
    #[arg(long, value_name = "FILE")]
    pub(crate) acknowledged: Option<PathBuf>,
    /// Open a control socket at this path while it runs, for weir status and weir backup run.
    #[arg(long, value_name = "PATH")]
    pub(crate) control: Option<PathBuf>,
    /// Measure so long, whatever duration the description has: 30s, 10min.
    #[arg(long, value_name = "TIME", value_parser = some_time, allow_hyphen_values = true)]
    pub(crate) runtime: Option<Span>,
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

/// How a run is made and looked at, on either clock.
#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// Seed of the jobs or users, a whole number: one seed gives one virtual run.
    #[arg(long, default_value_t = 1, value_parser = seed, allow_hyphen_values = true)]
    pub(crate) seed: u64,
    /// Report over stretches of this length, too, at least 1ms: 1s, 5min.
    #[arg(long, value_name = "TIME", value_parser = some_time, allow_hyphen_values = true)]
    pub(crate) every: Option<Span>,
    /// Write an observation of the run to this file: counters of every volume, file,
    /// database and wait, each --every or 1s. weir observe show reads it.
    #[arg(long, value_name = "FILE")]
    pub(crate) observe: Option<PathBuf>,
    /// Plot the run over time to this file, which ends in .svg or .html.
    #[arg(long, value_name = "FILE", value_parser = plot_file)]
    pub(crate) plot: Option<PathBuf>,
    /// Show no progress. It is shown on stderr, if that is a terminal.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// A length of time that is not zero.
fn some_time(text: &str) -> Result<Span, String> {
    let time: Span = text.parse().map_err(|error: ParseError| error.to_string())?;
    if time == Span::ZERO { Err("it must be more than zero".to_owned()) } else { Ok(time) }
}

/// A size that is not zero.
fn some_bytes(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|error: ParseError| error.to_string())?;
    if size == Bytes::ZERO { Err("it must be more than zero".to_owned()) } else { Ok(size) }
}

fn plot_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension().and_then(|end| end.to_str()) {
        Some("svg" | "html") => Ok(path),
        _ => Err("a plot is an .svg or .html; give a name that ends so".to_owned()),
    }
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("a seed is a whole number from 0 to {}", u64::MAX))
}

fn database_name(text: &str) -> Result<String, String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if (1..=48).contains(&text.len()) && !text.starts_with('.') && text.chars().all(fine) {
        Ok(text.to_owned())
    } else {
        Err("it has 1 to 48 letters, digits, '.', '_' or '-', and no dot at first".to_owned())
    }
}

fn host_and_port(text: &str) -> Result<String, String> {
    if weir_layout::blob::is_address(text) {
        Ok(text.to_owned())
    } else {
        Err("it needs a host and a port of at most 65535, like 127.0.0.1:10000".to_owned())
    }
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
    Ok((host.to_owned(), some_time(time)?))
}

#[derive(Debug, Args)]
pub(crate) struct DiagnoseArgs {
    /// Observations, or files that weir observe import reads; several are put side by side.
    #[arg(required = true, value_name = "OBSERVATION")]
    pub(crate) files: Vec<PathBuf>,
    /// The layout of the system that was observed.
    #[arg(long, value_name = "LAYOUT")]
    pub(crate) layout: Option<PathBuf>,
    /// The catalog edition whose tiers limit files by their size, where there is no layout.
    #[arg(long, value_name = "EDITION", conflicts_with = "layout")]
    pub(crate) edition: Option<String>,
    /// Who is who where names differ: sdc=data; may be repeated.
    #[arg(long, value_name = "OBSERVED=LAYOUT", requires = "layout")]
    pub(crate) map: Vec<String>,
    /// Write a page with plots of each file against its limits.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) import: ImportArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ControlArgs {
    /// The server's control socket: a path of your own lets several servers run.
    #[arg(
        long,
        value_name = "PATH",
        env = "WEIR_CONTROL",
        default_value_os_t = weir_server::control::default_path()
    )]
    pub(crate) control: PathBuf,
}

#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct OutputArgs {
    /// The format of the output.
    #[arg(long, short, value_name = "FORMAT", default_value = "text", value_enum)]
    output: OutputFormat,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum OutputFormat {
    /// Aligned columns, for people.
    #[default]
    Text,
    /// One document; every figure a number in the unit that its name says.
    Json,
    /// One table with a header line; of several, the first column says which.
    Csv,
    /// Tables in Markdown.
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
    /// Measure rates over this time, at most 1h: 500ms, 5s.
    #[arg(
        long,
        default_value = "1s",
        value_name = "TIME",
        value_parser = some_time,
        allow_hyphen_values = true
    )]
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
    /// Make a volume and serve it, on the running server: a disk, or a file of a managed
    /// instance. It is there at the next start, too, if the server has a data folder.
    #[command(after_help = "Examples:\n  weir volume create scratch --size 64GiB\n  weir volume \
                            create fast --tier P30 --cache read-only\n  weir volume create \
                            sales-2 --size 256GiB --role data --database sales")]
    Create(CreateArgs),
    /// Delete a volume that weir volume create made, with all its data.
    #[command(after_help = "Example:\n  weir volume delete scratch --yes\n\nIts clients are cut \
                            off. A volume of the layout is not deleted.")]
    Delete {
        /// The volume; weir volume list shows them.
        name: String,
        /// Delete it: its data cannot be brought back.
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        control: ControlArgs,
    },
    /// Resize a volume; its tier and limits follow at once, under load.
    #[command(
        after_help = "Example:\n  weir volume resize data 540GiB\n\nClients see the new size when \
                            they connect again. A volume with data behind the new end is not shrunk."
    )]
    Resize {
        /// The volume; weir volume list shows them.
        name: String,
        /// Its new size, with a unit: 540GiB, 2TiB.
        #[arg(value_parser = some_bytes, allow_hyphen_values = true)]
        size: Bytes,
        #[command(flatten)]
        control: ControlArgs,
    },
    /// Set a volume's host cache mode.
    #[command(after_help = "Example:\n  weir volume set-cache data read-only")]
    SetCache {
        /// The volume; weir volume list shows them.
        name: String,
        /// The mode, as a layout writes it.
        #[arg(value_enum)]
        mode: CacheArg,
        #[command(flatten)]
        control: ControlArgs,
    },
}

/// A volume that is to be made.
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// Its name, and its export's.
    pub(crate) name: String,
    /// Its size, with a unit; that of its tier if left out.
    #[arg(long, value_name = "SIZE", value_parser = some_bytes, allow_hyphen_values = true)]
    pub(crate) size: Option<Bytes>,
    /// Its tier, as a layout names it.
    #[arg(long, value_name = "TIER")]
    pub(crate) tier: Option<String>,
    /// The tier set or family of its tier or size.
    #[arg(long, value_name = "FAMILY")]
    pub(crate) family: Option<String>,
    /// Its host cache mode.
    #[arg(long, value_name = "MODE", value_enum)]
    pub(crate) cache: Option<CacheArg>,
    /// What is in the file, on a managed instance.
    #[arg(long, value_name = "ROLE", value_enum)]
    pub(crate) role: Option<RoleArg>,
    /// The file's database, on a managed instance.
    #[arg(long, value_name = "DATABASE")]
    pub(crate) database: Option<String>,
    /// Its host, where there are several.
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

/// What is in a file.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum RoleArg {
    /// Pages of tables and indexes.
    Data,
    /// The transaction log.
    Log,
    /// Temporary objects and row versions.
    Tempdb,
    /// A backup.
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

/// A host cache mode.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum CacheArg {
    /// No cache.
    None,
    /// Reads are served from the host.
    ReadOnly,
    /// Writes are done once the host has them, too.
    ReadWrite,
}

impl From<CacheArg> for CacheKey {
    fn from(mode: CacheArg) -> Self {
        match mode {
            CacheArg::None => Self::None,
            CacheArg::ReadOnly => Self::ReadOnly,
            CacheArg::ReadWrite => Self::ReadWrite,
        }
    }
}

impl CacheArg {
    /// As layouts and servers write it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ReadOnly => "read-only",
            Self::ReadWrite => "read-write",
        }
    }
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
        /// The volume or stripe; weir status shows them.
        export: String,
        /// Start here: 10GiB.
        #[arg(long, value_name = "SIZE", default_value = "0B", allow_hyphen_values = true)]
        offset: Bytes,
        /// Put so much into the cache: 120GiB.
        #[arg(long, value_name = "SIZE", value_parser = some_bytes, allow_hyphen_values = true)]
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
        /// The edition; weir catalog editions lists them.
        edition: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// List the machines of an edition.
    #[command(after_help = "Example:\n  weir catalog hosts azure-premium-2015")]
    Hosts {
        /// The edition; weir catalog editions lists them.
        edition: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show everything known under a name: every figure, its source, its date, and
    /// where sources conflict.
    #[command(after_help = "Example:\n  weir catalog show DS14")]
    Show {
        /// An edition, tier, machine, family or rule: azure-now, P30, DS14, mi-2020/P60,
        /// host-cache.
        name: String,
        #[command(flatten)]
        output: OutputArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum LayoutCommand {
    /// Check a layout and show what it comes to: limits, and of database files their
    /// tiers, the next steps up and down, and what is left of the instance's limits.
    #[command(
        after_help = "Example:\n  weir layout check layout.toml\n  weir layout check layout.toml \
                      --output json | jq '.volumes[] | {volume, iops}'"
    )]
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
