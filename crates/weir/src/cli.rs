//! Command-line arguments. Help, man pages and completions are generated from them.

mod backup;
mod baselines;
mod compare;
mod diagnose;
#[cfg(test)]
mod documented;
mod export;
mod import;
mod lab;
mod mcp;
mod negative;
mod number;
mod observe;
mod plan;
mod record;
mod sweep;
mod top;
mod tune;
mod volume;
mod web;

pub(crate) use backup::{
    BackupCommand, BackupInternalsArgs, BackupListArgs, BackupPlanArgs, BackupPruneArgs,
    BackupRunArgs, BackupShowArgs, BackupVerifyArgs, ChosenArgs, DamagedArg, KeyArgs, PlaceArgs,
    RestoreArgs,
};
pub(crate) use baselines::{ObserveBetweenArgs, ObservePercentilesArgs, ObserveSnapshotArgs};
pub(crate) use compare::CompareArgs;
pub(crate) use diagnose::{By, DiagnoseArgs};
pub(crate) use export::{ExportArgs, ScriptArgs};
pub(crate) use import::{ClockArgs, ImportArgs};
pub(crate) use lab::{ClockArg, DriverArg, LabCommand, LabRunArgs};
pub(crate) use mcp::McpArgs;
pub(crate) use observe::{
    ObserveArgs, ObserveChecklistArgs, ObserveCommand, ObserveExportArgs, ObserveImportArgs,
    ObserveLiveArgs, ObserveShowArgs,
};
pub(crate) use plan::PlanArgs;
pub(crate) use record::{PartArgs, RecordArgs, ReplayArgs};
pub(crate) use sweep::SweepArgs;
pub(crate) use top::{StatusArgs, TopArgs};
pub(crate) use tune::{FitArgs, NeedArgs, TuneArgs};
pub(crate) use volume::{CreateArgs, HostCommand, VolumeCommand};
pub(crate) use web::WebArgs;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use weir_report::Format;
use weir_server::{Address, Waiting};
use weir_units::{Bytes, CacheMode, ParseError, Span};

/// Run, predict, explain and plan storage under the limits of the cloud.
#[derive(Debug, Parser)]
#[command(name = "weir", version, propagate_version = true, subcommand_required = true)]
#[command(after_help = "Global option:\n  \
                        --catalog <FILE>  Load your own catalog edition in addition to the \
                        built-in ones, for example --catalog my-cloud.toml. May be repeated. \
                        docs/LAYOUT.md describes the format.\n\n\
                        Exit codes: 0 success; 1 a negative answer (a limit throttles, a figure \
                        missed its tolerance, no layout meets the need); 2 wrong input or usage; 3 \
                        failure while running; 130 interrupted by Ctrl-C; 143 by SIGTERM.")]
pub(crate) struct Cli {
    /// Load your own catalog edition in addition to the built-in ones, for example --catalog
    /// my-cloud.toml. May be repeated. docs/LAYOUT.md describes the format.
    // Hidden here and shown in the footer: a global option is repeated in the help of every verb.
    #[arg(long = "catalog", global = true, hide = true, value_name = "FILE")]
    pub(crate) editions: Vec<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Parses the arguments of a process, the first of which is its name.
    pub(crate) fn read(args: impl IntoIterator<Item = OsString>) -> clap::error::Result<Self> {
        Self::try_parse_from(negative::joined(args))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the volumes of a layout over NBD, and page blobs over REST, with their limits enforced.
    #[command(after_help = "Example:\n  \
                      weir serve layout.toml --data /var/lib/weir --nbd unix:/tmp/weir.sock\n\n\
                      The key clients of a layout names who may reach an export over TCP \
                      (docs/CLIENTS.md). A refused request is a line on stderr. Ctrl-C and SIGTERM stop the server after the requests in flight are complete \
                      and durable.")]
    Serve(ServeArgs),
    /// Simulate fio jobs, a database, a backup or recorded traces on a layout, in virtual time.
    #[command(after_help = "Example:\n  \
                      weir sim layout.toml fiowrite.ini --runtime 30s --output json\n  \
                      weir sim layout.toml oltp.toml --every 1min\n  \
                      weir sim layout.toml oltp.toml --observe run.weirobs --plot run.html\n  \
                      weir sim layout.toml backup.toml oltp.toml\n  \
                      weir sim layout.toml tuesday.weirtrace --map sdc=data --pace 2x\n\n\
                      The last component of a job's directory or filename selects the volume or \
                      stripe: /mnt/nocache is the export nocache. Job files run one after the \
                      other. Ctrl-C ends the run and reports the part simulated so far, with exit \
                      code 130; a second Ctrl-C ends it at once.")]
    Sim(SimArgs),
    /// Run a database, or replay traces, in real time on the volumes of a layout; recover the database
    /// after a crash.
    #[command(after_help = "Example:\n  \
                            weir run layout.toml oltp.toml --runtime 60s\n  \
                            weir run layout.toml oltp.toml --data /var/lib/weir\n  \
                            weir run layout.toml oltp.toml --data /var/lib/weir --recover-only\n  \
                            weir run layout.toml tuesday.weirtrace --map sdc=data\n\n\
                            This process serves the volumes, enforces their limits and stores real \
                            data. Every page that is read is checked. With --data, a run first \
                            recovers the database that the last run left, and checks every page. \
                            The exit code is 1 if an acknowledged transaction is lost. Ctrl-C ends \
                            the run and reports the part executed so far, with exit code 130.")]
    Run(RunArgs),
    /// Record each request of a system with its time, for a replay with weir sim or weir run.
    Record(Box<RecordArgs>),
    /// Record the storage counters of real systems, import the output of other tools, and query
    /// the resulting observations.
    #[command(
        args_conflicts_with_subcommands = true,
        subcommand_negates_reqs = true,
        arg_required_else_help = true,
        after_help = "Example:\n  weir observe --sqlserver sqlserver://weir@db1/master --every 1s --for 30m --out db1.weirobs\n  \
                      weir observe --postgres postgres://weir@db2/app --diskstats --out db2.weirobs\n  \
                      weir observe show db1.weirobs\n\n\
                      Several systems can be recorded into one observation. Weir only reads: it changes and \
                      clears no counters. Without --for, it records until Ctrl-C. The password comes from \
                      WEIR_SQLSERVER_PASSWORD or WEIR_POSTGRES_PASSWORD, from --password-file or from the \
                      URL; a token comes from WEIR_SQLSERVER_TOKEN or --token-file. docs/LIVE.md lists the \
                      queries and the permissions that they need."
    )]
    Observe(Box<ObserveArgs>),
    /// Find the cap that throttles a system, with evidence, a fix and its expected effect, or show
    /// that storage is not the cause.
    #[command(after_help = "Example:\n  \
                            iostat -xt 1 60 > iostat.txt\n  \
                            weir diagnose iostat.txt --layout layout.toml --map sdc=data\n  \
                            weir diagnose files.weirobs --edition azure-mi-2018 --html report.html\n  \
                            weir diagnose --fleet observations/ --out fleet.csv\n  \
                            weir diagnose --merge shard-1.csv shard-2.csv --out fleet.csv\n\n\
                            An observation is a file written by weir observe or by a run of Weir, \
                            or any input that weir observe import reads. Limits come from the \
                            layout, from an edition (for files of a managed instance, by size), or \
                            from the observation itself. docs/DIAGNOSIS.md explains each finding. \
                            Exit codes: 0 nothing is throttled, 1 something is throttled, 2 wrong \
                            input, or nothing is throttled and observations of the fleet failed, 3 a \
                            failure, 130 and 143 interrupted.")]
    Diagnose(Box<DiagnoseArgs>),
    /// Compare observations, results of runs, or layouts side by side, and show which differences are
    /// more than noise.
    #[command(
        after_help = "Example:\n  weir compare before.weirobs after.weirobs --tolerance 10%\n  \
                            weir compare iostat-1.txt iostat-2.txt --layout layout.toml\n  \
                            weir compare old-runs new-runs --metric iops\n  \
                            weir compare p30.toml p40.toml --workload fiowrite.ini --html report.html\n\n\
                            All sides are of one kind: observations and inputs that weir observe import reads; JSON of \
                            weir sim, weir run or weir lab run; or layouts, which are simulated under one \
                            workload with several seeds. The files of a folder are repetitions of one \
                            measurement. docs/COMPARE.md describes the test. For one need on several clouds, \
                            see weir plan --compare. Exit codes: 0 no side is worse; 1 a side is worse than \
                            A by more than --tolerance and by more than noise; 2 wrong input, or too little \
                            of it."
    )]
    Compare(Box<CompareArgs>),
    /// Simulate all combinations of parameter values, or a random sample of them, on all cores, and
    /// show which parameter moves the result most.
    #[command(after_help = "Example:\n  weir sweep sweep.toml --out results.csv\n  \
                            weir sweep sweep.toml --out results.csv --of p99 --html results.html\n  \
                            weir sweep sweep.toml --shard 2/8 --out shard-2.csv\n  \
                            weir sweep --merge shard-1.csv shard-2.csv --out results.csv\n  \
                            weir sweep --merge results.csv --of price --html results.html --plot x=depth,y=p99\n\n\
                            A sweep file names a layout, a workload (jobs, descriptions or traces) and \
                            parameters of both. The results \
                            have one row for each point, with every parameter as a column. Ctrl-C and \
                            SIGTERM end the sweep and keep the completed points; the same command \
                            continues. docs/SWEEP.md describes the files. Exit codes: 0 all points are \
                            complete, 2 wrong input, 3 the results could not be written, 130 and 143 \
                            interrupted.")]
    Sweep(Box<SweepArgs>),
    /// Find the cheapest layout that meets a need, with its price, its binding limit and the reason
    /// why the next cheaper layout fails.
    #[command(after_help = "Example:\n  weir plan --iops 16000 --size 4TiB\n  \
                            weir plan --need need.toml --verify --out layout.toml\n  \
                            weir plan --edition azure-mi-now --family gp --size 900GiB --iops 7000 --budget 1200\n  \
                            weir plan --from files.weirobs --percentile 99 --growth 30% --headroom 20%\n  \
                            weir plan --need need.toml --keep present.toml --no-downtime\n  \
                            weir plan --fleet databases --family gp --out instances\n  \
                            weir plan --compare azure,aws,gcp --iops 16000 --size 4TiB\n\n\
                            A need file has [data], [log], [tempdb] and [backup], each with size, iops, \
                            throughput, request, reads, latency, working_set. docs/PLAN.md describes all keys and \
                            the proof of optimality. Prices are list prices of the edition, with source and date; \
                            --prices loads others, for example the vendor's retail price list in JSON. To compare \
                            layouts or measurements that exist, see weir compare. Exit \
                            codes: 0 a plan was found (with --compare, of one cloud at least), 1 no layout meets the \
                            need (the answer says which constraint to relax), 2 wrong input.")]
    Plan(Box<PlanArgs>),
    /// Answer whether a layout carries a need: yes, barely or no, with the headroom, the limit that
    /// ends it, and the cheapest single change that makes it a yes.
    #[command(after_help = "Example:\n  weir fit layout.toml --need need.toml\n  \
                            weir fit layout.toml --load files.weirobs --growth 30%\n  \
                            weir fit layout.toml --need peak.toml --also night.toml\n  \
                            weir fit layout.toml --load iostat.txt --role sdc=data -o json\n\n\
                            The need is simulated on the layout. It is met if its rates are delivered and \
                            its median latency is within the target: its own, or else the 99th percentile \
                            of a request that does not wait. Below 10 % of headroom the answer is barely. \
                            docs/TUNE.md describes both verbs. Exit codes: 0 yes or barely, 1 no, 2 wrong \
                            input.")]
    Fit(Box<FitArgs>),
    /// Find the cheapest changes of a layout that reach a goal, and apply them step by step, in
    /// simulation, on a running server or on a real system, each with its reason, price, downtime, and
    /// predicted and measured effect.
    #[command(
        after_help = "Example:\n  weir tune layout.toml --workload fiowrite.ini --goal iops=8000\n  \
                            weir tune layout.toml --need need.toml --budget 900 --out tuned.toml\n  \
                            weir tune layout.toml --load files.weirobs --html tuned.html\n  \
                            weir tune layout.toml --workload job.fio --goal iops=2000 --control /tmp/weir.sock\n  \
                            weir tune layout.toml --load before.weirobs --rounds walk --as az\n\n\
                            A real system is changed by you: --rounds writes the script, waits for the observation \
                            afterwards, and goes on from there. docs/TUNE.md describes the search, the record and the reasons to \
                            stop. Exit codes: 0 the goal is reached, 1 it is not (the answer says why), 2 \
                            wrong input, 3 the server failed."
    )]
    Tune(Box<TuneArgs>),
    /// Write a script that builds a layout (machines, disks, stripes, mounts, database files), or
    /// only the changes from another layout.
    #[command(after_help = "Example:\n  \
                            weir export layout.toml --as az --out disks.sh\n  \
                            weir export new.toml --from old.toml --as tsql --database sales\n  \
                            weir export layout.toml --as tsql --mount pool=F:\\Data --name data-1=sales\n\n\
                            Weir runs nothing itself: read the script, then run it. A script \
                            checks the present state first, so a second run changes nothing. Steps \
                            that would lose data or stop a system are comments in the script, with \
                            notes on stderr. docs/EXPORT.md describes what each kind requires, \
                            does and leaves out.")]
    Export(Box<ExportArgs>),
    /// Back up volumes and databases to striped files; plan, list, verify and prune backups.
    #[command(subcommand)]
    Backup(BackupCommand),
    /// Restore a backup to volumes, to a running server or to images, or prove that it can be
    /// restored.
    #[command(after_help = "Example:\n  \
                      weir restore sales --from /backups --to layout.toml --data /var/lib/weir\n  \
                      weir restore sales --from /backups --control weir.sock --map data=data2\n  \
                      weir restore sales --from /backups --image images\n  \
                      weir restore sales --from /backups --prove --oltp oltp.toml\n\n\
                      Stripes are read in parallel, and each frame is checked before it is \
                      written. A target that is not empty is refused without --force. The first 4 \
                      KiB of a volume are written last, so that an interrupted restore does not \
                      look complete. See docs/BACKUP.md.\n\n\
                      Exit codes: 0 restored, or proved; 1 damaged, or stripes are missing; 2 wrong \
                      input or key, no room, or a target that is not empty; 3 a place or target \
                      failed; 130 Ctrl-C.")]
    Restore(Box<RestoreArgs>),
    /// Rerun published experiments and compare the results with the published figures.
    #[command(subcommand)]
    Lab(LabCommand),
    /// Show the rates, limits and binding caps of a running server.
    #[command(after_help = "Example:\n  \
                      weir status --interval 5s --output json\n  \
                      weir status --watch 5s --output json > status.jsonl\n\n\
                      For volumes that burst, the report says what they may do now, what they \
                      fall back to, and how long their credits last at the present rate.")]
    Status(StatusArgs),
    /// Watch a running server in the terminal: rates, limits, waits, credits and the binding cap of
    /// each volume.
    #[command(after_help = "Example:\n  \
                      weir top\n  \
                      weir top weir.sock --interval 500ms\n\n\
                      Keys: Up and Down select, Enter shows one volume with its limits, waits and \
                      history, Esc goes back; s sorts by the next column, r reverses the order, p \
                      pauses; t changes the tier of the selected volume; ? explains the columns; q \
                      and Ctrl-C quit.\n\n\
                      If the server stops or hangs, weir top says so and dims its last figures until \
                      a server answers at the same socket. NO_COLOR switches colours off. In scripts, use \
                      weir status --watch. docs/TOP.md describes the columns. Exit codes: 0 quit, also \
                      by Ctrl-C or a signal; 2 bad usage, or stdin or stdout is no terminal; 3 no server \
                      answers at the start, or the terminal fails.")]
    Top(TopArgs),
    /// List or change the volumes of a running server.
    #[command(subcommand)]
    Volume(VolumeCommand),
    /// Crash a host of a running server, warm its cache, or set its burst credits.
    #[command(subcommand)]
    Host(HostCommand),
    /// Mount the volumes of a layout as directories, so that any program's files get their limits.
    #[command(after_help = "Example:\n  \
                            weir mount layout.toml /mnt/weir --data /var/lib/weir\n  \
                            weir mount instance.toml /mnt/weir --database sales\n\n\
                            Each volume or stripe is a directory whose files share its limits and \
                            its size. On a managed instance each database is a directory, and each \
                            file in it is a volume that moves through the tiers as it grows and \
                            shrinks. Ctrl-C, SIGTERM and umount first complete the requests in \
                            flight. Needs /dev/fuse, and fusermount3 for users other than root.")]
    Mount(MountArgs),
    /// Create certificates for page blobs over HTTPS or for NBD over TLS, and the authority that
    /// clients must trust.
    #[command(after_help = "Example:\n  \
                            weir cert tls\n  \
                            weir serve layout.toml   # with [blob] certificate = \"tls/certificate.pem\", key = \"tls/key.pem\"\n  \
                            weir cert pki --nbd --name db1.example\n  \
                            weir serve layout.toml --nbd tcp:0.0.0.0:10809 --tls-certificates pki --tls-verify-peer\n  \
                            nbdinfo 'nbds://db1.example/data?tls-certificates=pki'\n\n\
                            Make clients of page blobs trust tls/authority.pem. Clients of NBD get ca-cert.pem, \
                            client-cert.pem and client-key.pem. The private key of the authority \
                            is discarded, so it can sign no other certificate.")]
    Cert(CertArgs),
    /// Check the data folder of a stopped server for damage: its files, its metadata, and the checksums of its
    /// blocks.
    #[command(after_help = "Example:\n  \
                            weir check /var/lib/weir\n  \
                            weir check /var/lib/weir --volume data --output json\n\n\
                            Each damaged range has a line with its file and offset. Blocks have \
                            checksums if their volume has checksums = true in the layout; other bytes are \
                            only read. Nothing is changed; a served folder is refused. docs/CHECK.md \
                            describes what is found. Exit codes: 0 no damage, 1 damage, 2 wrong input, 3 the \
                            folder is in use or a part of it could not be checked.")]
    Check(CheckArgs),
    /// Look up tiers and machines; each figure has a source and a date.
    #[command(subcommand)]
    Catalog(CatalogCommand),
    /// Show the list prices of a machine, a disk or a family by region, with source and date.
    #[command(
        after_help = "Example:\n  weir prices D16s_v5\n  weir prices D16s_v5 --region westeurope\n  \
                            weir prices P30 --region all --output csv\n  weir prices --regions azure-now\n\n\
                            A month is 730 hours. The price in use is the first one on demand; other \
                            sources, reservations and licences are listed beside it. Prices \
                            older than a year are marked as such."
    )]
    Prices(PricesArgs),
    /// Check a layout file, or print its JSON schema.
    #[command(subcommand)]
    Layout(LayoutCommand),
    /// Serve diagnose, simulate, plan, fit, tune, compare, catalog and prices as tools, over the
    /// Model Context Protocol on stdin and stdout.
    #[command(after_help = "Example:\n  weir mcp --root /srv/observations --root /etc/weir\n\n\
                            An assistant starts this command itself; docs/MCP.md shows its configuration. The \
                            tools only read, and only files below the folders of --root; links that lead outside \
                            are refused. A call is limited in time and in the size of its input and answer.")]
    Mcp(McpArgs),
    /// Print shell completions.
    #[command(after_help = "Example:\n  weir completions bash > /etc/bash_completion.d/weir")]
    Completions {
        /// Shell to complete for
        shell: clap_complete::Shell,
    },
    /// Print the man page, or write the pages of all verbs to a directory.
    #[command(
        after_help = "Examples:\n  weir man | man -l -\n  weir man --dir /usr/local/share/man/man1"
    )]
    Man {
        /// Write one page for each verb to this directory, which is created if needed.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Layout file; docs/LAYOUT.md describes its keys.
    pub(crate) layout: PathBuf,
    /// Store the data in this folder, which is created if needed. Without this option the data
    /// is kept in memory and lost at exit.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Listen for NBD clients at this address, unix:PATH or tcp:HOST:PORT, for example
    /// unix:/tmp/weir.sock or tcp:0.0.0.0:10809; or `systemd`, for the sockets of a socket unit. May be
    /// repeated.
    #[arg(long, value_name = "ADDRESS", default_values_t = [Address::default()])]
    pub(crate) nbd: Vec<Address>,
    /// Serve NBD clients over TCP and on sockets of systemd with TLS only. The folder has server-cert.pem
    /// and server-key.pem, in PEM. Other Unix sockets stay without TLS.
    #[arg(long, value_name = "DIR")]
    pub(crate) tls_certificates: Option<PathBuf>,
    /// Require a certificate of each client that an authority in ca-cert.pem of the folder has signed.
    #[arg(long, requires = "tls_certificates")]
    pub(crate) tls_verify_peer: bool,
    /// Serve page blobs over REST at this address. Clients create blobs with an Azure SDK; each
    /// blob is a volume of the layout's host. The default is the address in the layout's blob
    /// table, or 127.0.0.1:10000, the address of UseDevelopmentStorage=true.
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, value_parser = host_and_port)]
    pub(crate) blob: Option<Option<String>>,
    /// Log every write, discard and flush of a volume in a new file, in the format of dm-log-writes, for
    /// example data=data.log. A replay shows the volume as a loss of power at any flush would leave it
    /// (docs/WRITE_LOG.md). May be repeated.
    #[arg(long = "write-log", value_name = "VOLUME=FILE", value_parser = write_log)]
    pub(crate) write_logs: Vec<(String, PathBuf)>,
    #[command(flatten)]
    pub(crate) web: WebArgs,
    #[command(flatten)]
    pub(crate) wait: WaitArgs,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

/// How a server waits for deadlines.
#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// Poll for requests and deadlines instead of sleeping, so that latencies below a millisecond
    /// are met closely. Each host of the layout keeps a core busy while it has clients; leave at
    /// least one more core to the clients.
    #[arg(long)]
    poll: bool,
}

impl WaitArgs {
    pub(crate) fn waiting(&self) -> Waiting {
        if self.poll { Waiting::Poll } else { Waiting::default() }
    }
}

#[derive(Debug, Args)]
pub(crate) struct MountArgs {
    /// Layout file; docs/LAYOUT.md describes its keys.
    pub(crate) layout: PathBuf,
    /// Mount point: an empty directory.
    pub(crate) dir: PathBuf,
    /// Store the files under files/ in this folder, which is created if needed. Without this
    /// option they are kept in a temporary folder and lost at exit.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Add a database that is not in the layout, on a managed instance. May be repeated.
    #[arg(long = "database", value_name = "NAME", value_parser = database_name)]
    pub(crate) databases: Vec<String>,
    #[command(flatten)]
    pub(crate) web: WebArgs,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CertArgs {
    /// Folder for the files, which is created if needed.
    pub(crate) dir: PathBuf,
    /// Create the files of NBD: ca-cert.pem, server-cert.pem and server-key.pem, and client-cert.pem and
    /// client-key.pem for clients of a server with --tls-verify-peer. Without this option, they are
    /// authority.pem, certificate.pem and key.pem.
    #[arg(long)]
    pub(crate) nbd: bool,
    /// Host name or address that clients use. May be repeated.
    #[arg(
        long = "name",
        value_name = "NAME",
        default_values_t = ["localhost", "*.blob.localhost", "127.0.0.1", "::1"].map(str::to_owned)
    )]
    pub(crate) names: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Data folder, as given to weir serve --data
    pub(crate) dir: PathBuf,
    /// Check only this volume.
    #[arg(long, value_name = "NAME")]
    pub(crate) volume: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    /// Layout file; docs/LAYOUT.md describes its keys.
    pub(crate) layout: PathBuf,
    /// fio job files; files that end in .toml, each of which describes a database workload
    /// (docs/OLTP.md) or a backup (docs/BACKUP.md); or traces (docs/TRACES.md), which are
    /// recognised by their contents and replayed side by side.
    #[arg(required = true, value_name = "JOB")]
    pub(crate) jobs: Vec<PathBuf>,
    /// Override the runtime of each job, for example 30s, 10min or 2h. A job without time_based
    /// still ends when it has transferred its size. For a database, the measured time.
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(crate) runtime: Option<Span>,
    /// Override the size of each job, for example 64MiB or 30GiB.
    #[arg(long, value_name = "SIZE", value_parser = some_bytes)]
    pub(crate) size: Option<Bytes>,
    /// Map a directory or filename of a job, or a device of a trace, to a volume or stripe, for
    /// example /mnt/data=readcache or sdc=data. May be repeated.
    #[arg(long, value_name = "PATH=EXPORT", value_parser = mapping)]
    pub(crate) map: Vec<(String, String)>,
    /// Start with a warm host cache for this volume or stripe: the cache holds every block that the
    /// jobs can touch. May be repeated.
    #[arg(long, value_name = "EXPORT")]
    pub(crate) warm: Vec<String>,
    /// Crash a host at this time of the run, for example host@10s; its cache is cold afterwards.
    /// A host without a name in the layout is called "host".
    #[arg(long, value_name = "HOST@TIME", value_parser = moment)]
    pub(crate) crash: Option<(String, Span)>,
    #[command(flatten)]
    pub(crate) run: RunOptions,
    #[command(flatten)]
    pub(crate) replay: ReplayArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Layout file; docs/LAYOUT.md describes its keys.
    pub(crate) layout: PathBuf,
    /// Database workload: a file that ends in .toml (docs/OLTP.md); or traces to replay
    /// (docs/TRACES.md).
    #[arg(required = true, value_name = "JOB")]
    pub(crate) jobs: Vec<PathBuf>,
    /// Map a device of a trace to a volume or stripe, for example sdc=data. May be repeated.
    #[arg(long, value_name = "DEVICE=EXPORT", value_parser = mapping)]
    pub(crate) map: Vec<(String, String)>,
    /// Store the data in this folder, which is created if needed, and continue from the data in
    /// it. Without this option the data is kept in memory and lost at exit.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Replay traces although the folder of --data holds volumes: their contents are overwritten.
    #[arg(long, requires = "data")]
    pub(crate) overwrite: bool,
    /// Recover the database, report the result and exit.
    #[arg(long, requires = "data")]
    pub(crate) recover_only: bool,
    /// File that records the newest acknowledged transaction; a later recovery must find it. The
    /// default is a file in the folder of --data.
    #[arg(long, value_name = "FILE")]
    pub(crate) acknowledged: Option<PathBuf>,
    /// Open a control socket at this path during the run, for weir status and weir backup run.
    #[arg(long, value_name = "PATH")]
    pub(crate) control: Option<PathBuf>,
    /// Override the measured time of the description, for example 30s or 10min.
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(crate) runtime: Option<Span>,
    #[command(flatten)]
    pub(crate) web: WebArgs,
    #[command(flatten)]
    pub(crate) wait: WaitArgs,
    #[command(flatten)]
    pub(crate) run: RunOptions,
    #[command(flatten)]
    pub(crate) replay: ReplayArgs,
}

/// Options of a run that apply to either clock.
#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// Seed of the random numbers, a whole number. Equal seeds give equal virtual runs.
    #[arg(long, default_value_t = 1, value_parser = seed)]
    pub(crate) seed: u64,
    /// Also report each interval of this length, at least 1ms, for example 1s or 5min.
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(crate) every: Option<Span>,
    /// Write an observation of the run to this file: the counters of all volumes, files,
    /// databases and waits, sampled every --every or 1s. Read it with weir observe show.
    #[arg(long, value_name = "FILE")]
    pub(crate) observe: Option<PathBuf>,
    /// Plot the run over time to this file, which must end in .svg or .html.
    #[arg(long, value_name = "FILE", value_parser = plot_file)]
    pub(crate) plot: Option<PathBuf>,
    /// Write an HTML page to this file: verdict, price, tables, and charts over time with the limits.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Hide the progress bar, which is shown on stderr if that is a terminal.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Parses a positive time span.
fn some_time(text: &str) -> Result<Span, String> {
    let time: Span = text.parse().map_err(|error: ParseError| error.to_string())?;
    if time == Span::ZERO { Err("it must be more than zero".to_owned()) } else { Ok(time) }
}

/// Parses a positive size.
fn some_bytes(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|error: ParseError| error.to_string())?;
    if size == Bytes::ZERO { Err("it must be more than zero".to_owned()) } else { Ok(size) }
}

/// Returns the parser of cache modes, with a description of each for the help.
fn cache_modes() -> impl TypedValueParser<Value = CacheMode> {
    let modes = CacheMode::ALL.map(|mode| PossibleValue::new(mode.name()).help(mode.description()));
    PossibleValuesParser::new(modes).try_map(|name| name.parse::<CacheMode>())
}

fn plot_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension().and_then(|end| end.to_str()) {
        Some("svg" | "html") => Ok(path),
        _ => Err("the name of a plot must end in .svg or .html".to_owned()),
    }
}

fn svg_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension().and_then(|end| end.to_str()) {
        Some("svg") => Ok(path),
        _ => Err("the name of this plot must end in .svg".to_owned()),
    }
}

fn seed(text: &str) -> Result<u64, String> {
    let wrong = |_| format!("expected a whole number from 0 to {}", u64::MAX);
    weir_units::count(text).map_err(wrong)
}

fn database_name(text: &str) -> Result<String, String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if (1..=48).contains(&text.len()) && !text.starts_with('.') && text.chars().all(fine) {
        Ok(text.to_owned())
    } else {
        Err("expected 1 to 48 letters, digits, '.', '_' or '-', without a dot in front".to_owned())
    }
}

fn host_and_port(text: &str) -> Result<String, String> {
    if weir_layout::blob::is_address(text) {
        Ok(text.to_owned())
    } else {
        Err("expected HOST:PORT with a port of at most 65535, for example 127.0.0.1:10000"
            .to_owned())
    }
}

fn mapping(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((path, export)) if !path.is_empty() && !export.is_empty() => {
            Ok((path.to_owned(), export.to_owned()))
        }
        _ => Err("expected PATH=EXPORT, for example /mnt/data=data".to_owned()),
    }
}

fn write_log(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((volume, file)) if !volume.is_empty() && !file.is_empty() => {
            Ok((volume.to_owned(), file.into()))
        }
        _ => Err("expected VOLUME=FILE, for example data=data.log".to_owned()),
    }
}

fn moment(text: &str) -> Result<(String, Span), String> {
    let (host, time) = text.split_once('@').ok_or("expected HOST@TIME, for example host@10s")?;
    Ok((host.to_owned(), some_time(time)?))
}

#[derive(Debug, Args)]
pub(crate) struct ControlArgs {
    /// Control socket of the server. Servers that run side by side need different paths.
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
    /// Output format.
    #[arg(long, short, value_name = "FORMAT", default_value = "text", value_enum)]
    output: OutputFormat,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum OutputFormat {
    /// Aligned columns.
    #[default]
    Text,
    /// One document; each field name gives the unit of its number.
    Json,
    /// One table with a header line; if there are several tables, the first column names them.
    Csv,
    /// Markdown tables.
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
pub(crate) struct PricesArgs {
    /// Machine, disk or family, for example D16s_v5, P30, gp3 or premium-ssd-v2
    #[arg(required_unless_present = "regions")]
    pub(crate) name: Option<String>,
    /// Edition to look in, as weir catalog editions lists it [default: all].
    #[arg(long, value_name = "NAME")]
    pub(crate) edition: Option<String>,
    /// Region of the prices, for example westeurope, or all [default: the edition's own].
    #[arg(long, value_name = "REGION")]
    pub(crate) region: Option<String>,
    /// Currency of the prices, for example USD.
    #[arg(long, value_name = "CODE")]
    pub(crate) currency: Option<String>,
    /// List the regions with prices, of all editions or of the one that is named.
    #[arg(long, conflicts_with_all = ["region", "currency"])]
    pub(crate) regions: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CatalogCommand {
    /// List the catalog editions.
    #[command(after_help = "Example:\n  weir catalog editions")]
    Editions {
        #[command(flatten)]
        output: OutputArgs,
    },
    /// List the tiers of an edition.
    #[command(after_help = "Example:\n  weir catalog tiers azure-now")]
    Tiers {
        /// Edition name, as weir catalog editions lists it
        edition: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// List the machines of an edition.
    #[command(after_help = "Example:\n  weir catalog hosts azure-premium-2015")]
    Hosts {
        /// Edition name, as weir catalog editions lists it
        edition: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show all figures known for a name, with their sources and dates, and conflicts between
    /// sources.
    #[command(after_help = "Example:\n  weir catalog show DS14")]
    Show {
        /// Edition, tier, machine, family or rule, for example azure-now, P30, DS14, mi-2020/P60
        /// or host-cache
        name: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Write an edition with the machines and prices of files that you download from your cloud. It
    /// extends an edition of the catalog. Weir itself needs no network.
    #[command(after_help = "Example:\n  az vm list-skus -l westeurope -o json > skus.json\n  \
                            weir catalog update azure-now skus.json prices.json --out mine.toml\n  \
                            weir --catalog mine.toml plan --edition azure-now-updated --iops 16000 --size 4TiB\n\n\
                            Files are recognised by their contents: the Azure retail prices in JSON (also \
                            several pages) or CSV, az vm list-skus -o json, aws ec2 \
                            describe-instance-types, price list offers of AWS, gcloud compute \
                            machine-types list --format json, and the SKU list of Google.")]
    Update {
        /// Edition to extend: azure-now, aws or gcp
        edition: String,
        /// Downloaded files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Name of the new edition [default: EDITION-updated].
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// Date of files that state none, for example 2026-11-25 [default: today].
        #[arg(long, value_name = "DATE")]
        as_of: Option<String>,
        /// Write the edition to a file [default: standard output].
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum LayoutCommand {
    /// Check a layout and show its limits. For database files, also show their tiers, the next
    /// tiers up and down, and the headroom of the instance.
    #[command(
        after_help = "Example:\n  weir layout check layout.toml\n  weir layout check layout.toml \
                      --output json | jq '.volumes[] | {volume, iops}'"
    )]
    Check {
        /// Layout file
        layout: PathBuf,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Print the JSON schema of layout files.
    #[command(after_help = "Example:\n  weir layout schema > weir-layout.schema.json")]
    Schema,
}
