//! `cargo xtask`: see `cargo xtask --help`.

#![forbid(unsafe_code)]

use clap::{Args, Parser, Subcommand, ValueEnum};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use weir_units::Span;
use xtask::catalog_data;
use xtask::error::XtaskError;
use xtask::fuzz::smoke::{self, Plan};
use xtask::fuzz::{Target, corpus};
use xtask::interrupt::Interrupt;
use xtask::labs;
use xtask::schema;
use xtask::soak;
use xtask::suite::{self, Suite};
use xtask::torture::{self, Kind};
use xtask::write_log::{self, Check};

/// Upper bound of numbers without another one.
const MAX: u64 = u64::MAX;
/// Maximum memory of a fuzzed target; a larger allocation is a finding.
const MAX_MEMORY: u64 = 4 << 30;

/// Development tasks of this repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Chore {
    /// Fuzz the parsers with mutations of a committed corpus, reproducibly by seed.
    FuzzSmoke(FuzzArgs),
    /// Regenerate the generated part of the corpora.
    FuzzCorpus,
    /// Write the tables of machines and prices in catalog/data.
    CatalogData {
        /// Folder with the files of facts.
        facts: PathBuf,
    },
    /// Run a test suite that others wrote, from its checkout, and compare the results with the list of
    /// expected failures in xtask/suites.
    Suite(SuiteArgs),
    /// Kill servers of random layouts under load, and check that everything promised is there.
    Torture(TortureArgs),
    /// Read a write log of `weir serve --write-log` or of dm-log-writes (docs/WRITE_LOG.md).
    #[command(subcommand)]
    WriteLog(WriteLogChore),
    /// Fail if rates of labs in wall time are far from those in virtual time.
    CheckLabs {
        /// Output of `weir lab run NAME --clock both --output json`.
        file: PathBuf,
    },
    /// Serve a steady mixed load, and check that memory, descriptors, threads, space and latency stay flat
    /// and all content is right.
    Soak(SoakArgs),
    /// Write docs/layout.schema.json.
    Schema,
    /// Fail if docs/layout.schema.json is out of date.
    CheckSchema,
}

#[derive(Debug, Args)]
struct SuiteArgs {
    /// Name of the suite.
    suite: Suite,
    /// Folder with its checkout, in which it is built.
    #[arg(long, value_name = "DIR")]
    checkout: Option<PathBuf>,
    /// The program to test.
    #[arg(long, value_name = "FILE", default_value = "target/release/weir")]
    weir: PathBuf,
    /// Run only scripts whose path contains this text.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum KindArg {
    /// Volumes over NBD, which are resized and recached meanwhile.
    Nbd,
    /// Page blobs over REST, with snapshots.
    Blobs,
    /// Files in a mount.
    Mount,
    /// Volumes over NBD on a disk that runs full.
    Full,
    /// Volumes over NBD on a disk that fails.
    Failing,
    /// SQLite and PostgreSQL in a mount.
    Database,
    /// Backups of volumes under load.
    Backup,
    /// Volumes over NBD whose tiers, sizes and cache modes change, and that come and go.
    Tuning,
    /// All that this machine can run.
    All,
}

impl KindArg {
    fn kind(self) -> Option<Kind> {
        match self {
            Self::Nbd => Some(Kind::Nbd),
            Self::Blobs => Some(Kind::Blobs),
            Self::Mount => Some(Kind::Mount),
            Self::Full => Some(Kind::Full),
            Self::Failing => Some(Kind::Failing),
            Self::Database => Some(Kind::Database),
            Self::Backup => Some(Kind::Backup),
            Self::Tuning => Some(Kind::Tuning),
            Self::All => None,
        }
    }
}

#[derive(Debug, Args)]
struct TortureArgs {
    /// Kind of system; may be repeated, and the kinds take turns.
    #[arg(long = "kind", value_name = "KIND", default_value = "all")]
    kinds: Vec<KindArg>,
    /// Minutes after which no round begins. Each kind has one round in any case.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<1, 10_000>, allow_negative_numbers = true)]
    minutes: u64,
    /// End after this many ends of servers; each kind needs one.
    #[arg(long, value_name = "N", value_parser = whole::<1, MAX>, allow_negative_numbers = true)]
    rounds: Option<u64>,
    /// Random seed; equal seeds produce equal layouts and loads, but threads run in another order.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<0, MAX>, allow_negative_numbers = true)]
    seed: u64,
    /// The program to test.
    #[arg(long, value_name = "FILE", default_value = "target/release/weir")]
    weir: PathBuf,
}

#[derive(Debug, Subcommand)]
enum WriteLogChore {
    /// Count the entries of a log by their kinds.
    Show {
        /// The log.
        #[arg(long, value_name = "FILE")]
        log: PathBuf,
    },
    /// Replay a log onto an image, and check a copy of the image at each flush and FUA write.
    Replay(WriteLogArgs),
}

#[derive(Debug, Args)]
struct WriteLogArgs {
    /// The log.
    #[arg(long, value_name = "FILE")]
    log: PathBuf,
    /// The image, with the content that the volume had when the log began. A new volume needs none.
    #[arg(long, value_name = "FILE")]
    image: PathBuf,
    /// Check from this entry on, for example from the number of entries that mkfs left.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<0, MAX>, allow_negative_numbers = true)]
    from: u64,
    /// Replay this number of entries [default: all].
    #[arg(long, value_name = "N", value_parser = whole::<0, MAX>, allow_negative_numbers = true)]
    to: Option<u64>,
    /// Run this line with the shell, with {} for a copy of the image; it must end with code 0. [default:
    /// recovery and check of ext2 to ext4, XFS or btrfs]
    #[arg(long, value_name = "CMD {}", value_parser = Check::parse, conflicts_with = "no_check")]
    check: Option<Check>,
    /// Check nothing.
    #[arg(long)]
    no_check: bool,
    /// Check at most this number of points, spread evenly [default: all].
    #[arg(long, value_name = "N", value_parser = whole::<0, MAX>, allow_negative_numbers = true)]
    points: Option<u64>,
}

#[derive(Debug, Args)]
struct SoakArgs {
    /// Time.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = whole::<1, 10_000>, allow_negative_numbers = true)]
    minutes: u64,
    /// Random seed; equal seeds produce equal loads, but threads run in another order.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<0, MAX>, allow_negative_numbers = true)]
    seed: u64,
    /// The program to test.
    #[arg(long, value_name = "FILE", default_value = "target/release/weir")]
    weir: PathBuf,
}

#[derive(Debug, Args)]
struct FuzzArgs {
    /// Processor time per target, in seconds.
    #[arg(long, default_value_t = 20, value_parser = whole::<0, MAX>, allow_negative_numbers = true)]
    seconds: u64,
    /// Random seed; equal seeds produce equal inputs.
    #[arg(long, default_value_t = 1, value_parser = whole::<0, MAX>, allow_negative_numbers = true)]
    seed: u64,
    /// Target to fuzz; may be repeated [default: all].
    #[arg(long)]
    target: Vec<Target>,
    /// Continue after a panic, and report each location once.
    #[arg(long)]
    keep_going: bool,
    /// Run only this iteration of the seed.
    #[arg(long, conflicts_with = "input", value_parser = whole::<0, MAX>, allow_negative_numbers = true)]
    iteration: Option<u64>,
    /// Run only the input in this file.
    #[arg(long)]
    input: Option<PathBuf>,
}

/// Parses a number within bounds.
fn whole<const LEAST: u64, const MOST: u64>(text: &str) -> Result<u64, String> {
    let number = text.parse::<u64>().ok().filter(|own| (LEAST..=MOST).contains(own));
    number.ok_or_else(|| match MOST {
        MAX => format!("it must be a whole number, {LEAST} or more"),
        _ => format!("it must be a whole number from {LEAST} to {MOST}"),
    })
}

fn main() -> ExitCode {
    match run(Chore::parse(), &mut io::stdout().lock()) {
        Ok(code) => code,
        Err(error) => {
            // Without stderr, the error cannot be reported.
            drop(writeln!(io::stderr(), "error: {error}"));
            // A loss that a campaign finds is not wrong input.
            ExitCode::from(if matches!(error, XtaskError::Lost(_)) { 1 } else { 2 })
        }
    }
}

fn run(chore: Chore, out: &mut dyn Write) -> Result<ExitCode, XtaskError> {
    match chore {
        Chore::FuzzSmoke(args) => return fuzz(args, out),
        Chore::Suite(args) => return suite(&args, out),
        Chore::Torture(args) => return torture(args, out),
        Chore::WriteLog(chore) => return write_log(chore, out),
        Chore::CheckLabs { file } => return check_labs(file, out),
        Chore::Soak(args) => return soak(args, out),
        Chore::FuzzCorpus => writeln!(out, "{} inputs written", corpus::generate()?),
        Chore::CatalogData { facts } => {
            let paths = catalog_data::write(&facts, &xtask::root())?;
            writeln!(out, "{} tables written", paths.len())
        }
        Chore::Schema => writeln!(out, "{} written", schema::write(&xtask::root())?.display()),
        Chore::CheckSchema => {
            writeln!(out, "{} is up to date", schema::check(&xtask::root())?.display())
        }
    }
    .map_err(|source| XtaskError::System { doing: "writing the output", source })?;
    Ok(ExitCode::SUCCESS)
}

fn fuzz(args: FuzzArgs, out: &mut dyn Write) -> Result<ExitCode, XtaskError> {
    limit_memory()?;
    let single = || match args.target.as_slice() {
        [target] => Ok(*target),
        _ => Err(XtaskError::OneTarget),
    };
    if let Some(path) = &args.input {
        smoke::replay_file(single()?, path)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(iteration) = args.iteration {
        smoke::replay_iteration(single()?, args.seed, iteration)?;
        return Ok(ExitCode::SUCCESS);
    }
    let all = args.target.is_empty();
    let plan = Plan {
        targets: if all { Target::ALL.to_vec() } else { args.target },
        time: Duration::from_secs(args.seconds),
        seed: args.seed,
        keep_going: args.keep_going,
    };
    let findings = smoke::run(&plan, out)?;
    Ok(if findings == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn suite(args: &SuiteArgs, out: &mut dyn Write) -> Result<ExitCode, XtaskError> {
    let (checkout, weir, only) = (args.checkout.as_deref(), &args.weir, args.only.as_deref());
    let plan = suite::Plan { suite: args.suite, checkout, weir, only };
    let tally = suite::run(&plan, out)?;
    let is_sound = tally.unexpected == 0 && tally.passed > 0;
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn check_labs(path: PathBuf, out: &mut dyn Write) -> Result<ExitCode, XtaskError> {
    let text = std::fs::read_to_string(&path).map_err(|source| XtaskError::File {
        doing: "reading",
        path,
        source,
    })?;
    let (compared, outside) = labs::check(&text, out)?;
    writeln!(out, "{} of {compared} rates in wall time are within bounds", compared - outside)
        .map_err(|source| XtaskError::System { doing: "writing the output", source })?;
    Ok(if outside == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn torture(args: TortureArgs, out: &mut dyn Write) -> Result<ExitCode, XtaskError> {
    let TortureArgs { kinds, minutes, rounds, seed, weir } = args;
    let time = Span::from_secs(minutes.saturating_mul(60));
    // An empty list stands for all.
    let kinds = kinds.into_iter().map(KindArg::kind).collect::<Option<_>>().unwrap_or_default();
    let interrupt = Interrupt::catch(
        "ending after the present round; another signal ends at once, and leaves servers, mounts and folders",
    )?;
    let plan = torture::Plan { kinds, time, rounds, seed, weir, interrupt };
    let report = torture::run(&plan, out)?;
    if let Some(code) = plan.interrupt.code() {
        return Ok(ExitCode::from(code));
    }
    Ok(if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn write_log(chore: WriteLogChore, out: &mut dyn Write) -> Result<ExitCode, XtaskError> {
    let failed = |source| XtaskError::System { doing: "writing the output", source };
    let args = match chore {
        WriteLogChore::Replay(args) => args,
        WriteLogChore::Show { log } => {
            let own = write_log::kinds(&log)?;
            writeln!(
                out,
                "{} entries with sectors of {} bytes: {} writes of {} bytes ({} of them FUA), {} discards, {} flushes",
                own.entries, own.sector, own.writes, own.bytes, own.fua, own.discards, own.flushes
            )
            .map_err(failed)?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    let WriteLogArgs { log, image, from, to, check, no_check, points } = args;
    let check = (!no_check).then(|| check.unwrap_or(Check::ByFileSystem));
    let plan = write_log::Plan { log, image, from, to, check, points };
    let tally = match write_log::replay(&plan, out) {
        Err(error @ XtaskError::Unsound { .. }) => {
            writeln!(out, "{error}").map_err(failed)?;
            return Ok(ExitCode::FAILURE);
        }
        other => other?,
    };
    let empty = match tally.empty {
        0 => String::new(),
        empty => format!(", {empty} had no file system yet"),
    };
    writeln!(
        out,
        "{} entries replayed; of {} points, {} were checked without an error{empty}",
        tally.entries, tally.points, tally.checked
    )
    .map_err(failed)?;
    Ok(if no_check || tally.checked > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn soak(args: SoakArgs, out: &mut dyn Write) -> Result<ExitCode, XtaskError> {
    let SoakArgs { minutes, seed, weir } = args;
    let interrupt = Interrupt::catch(
        "ending; another signal ends at once, and leaves the server and its folder",
    )?;
    let plan = soak::Plan { time: Span::from_secs(minutes * 60), seed, weir, interrupt };
    let verdict = soak::run(&plan, out)?;
    if let Some(code) = plan.interrupt.code() {
        return Ok(ExitCode::from(code));
    }
    Ok(if verdict.is_some_and(|own| own.is_flat()) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn limit_memory() -> Result<(), XtaskError> {
    let Rlimit { maximum, .. } = getrlimit(Resource::As);
    let current = Some(maximum.unwrap_or(u64::MAX).min(MAX_MEMORY));
    setrlimit(Resource::As, Rlimit { current, maximum })
        .map_err(|errno| XtaskError::System { doing: "limiting the memory", source: errno.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_bounds_are_explained() {
        let check = |line: &str, expect: &str| {
            let words = std::iter::once("xtask").chain(line.split(' '));
            let said = Chore::try_parse_from(words).map(|_| ()).expect_err("an error").to_string();
            assert!(said.contains(expect), "{line}: {said}");
        };
        check("torture --seed -1", "'-1' for '--seed <N>': it must be a whole number, 0 or more");
        check(
            "torture --rounds -1",
            "'-1' for '--rounds <N>': it must be a whole number, 1 or more",
        );
        check("torture --minutes 0", "it must be a whole number from 1 to 10000");
        check("soak --seed -5", "'-5' for '--seed <N>': it must be a whole number, 0 or more");
        check(
            "fuzz-smoke --seed -1",
            "'-1' for '--seed <SEED>': it must be a whole number, 0 or more",
        );
        check(
            "write-log replay --log a --image b --points 1.5",
            "it must be a whole number, 0 or more",
        );
    }
}
