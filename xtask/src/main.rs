//! `cargo xtask`: see `cargo xtask --help`.

#![forbid(unsafe_code)]

use clap::{Args, Parser};
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
use xtask::labs;
use xtask::schema;
use xtask::soak;
use xtask::suite::{self, Suite};
use xtask::torture;

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

#[derive(Debug, Args)]
struct TortureArgs {
    /// Longest time.
    #[arg(long, value_name = "N", default_value_t = 1)]
    minutes: u64,
    /// Most servers that end.
    #[arg(long, value_name = "N")]
    rounds: Option<u64>,
    /// Random seed; equal seeds produce equal layouts and loads, but threads run in another order.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The program to test.
    #[arg(long, value_name = "FILE", default_value = "target/release/weir")]
    weir: PathBuf,
}

#[derive(Debug, Args)]
struct SoakArgs {
    /// Time.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    minutes: u64,
    /// Random seed; equal seeds produce equal loads, but threads run in another order.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The program to test.
    #[arg(long, value_name = "FILE", default_value = "target/release/weir")]
    weir: PathBuf,
}

#[derive(Debug, Args)]
struct FuzzArgs {
    /// Processor time per target, in seconds.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Random seed; equal seeds produce equal inputs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Target to fuzz; may be repeated [default: all].
    #[arg(long)]
    target: Vec<Target>,
    /// Continue after a panic, and report each location once.
    #[arg(long)]
    keep_going: bool,
    /// Run only this iteration of the seed.
    #[arg(long, conflicts_with = "input")]
    iteration: Option<u64>,
    /// Run only the input in this file.
    #[arg(long)]
    input: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(Chore::parse(), &mut io::stdout().lock()) {
        Ok(code) => code,
        Err(error) => {
            // Without stderr, the error cannot be reported.
            drop(writeln!(io::stderr(), "error: {error}"));
            ExitCode::from(2)
        }
    }
}

fn run(chore: Chore, out: &mut dyn Write) -> Result<ExitCode, XtaskError> {
    match chore {
        Chore::FuzzSmoke(args) => return fuzz(args, out),
        Chore::Suite(args) => return suite(&args, out),
        Chore::Torture(args) => return torture(args, out),
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
    let TortureArgs { minutes, rounds, seed, weir } = args;
    let time = Span::from_secs(minutes.saturating_mul(60));
    let tally = torture::run(&torture::Plan { time, rounds, seed, weir }, out)?;
    writeln!(
        out,
        "{} systems: {} kills, {} host crashes, {} stops, {} changes under load; {} writes and {} flushes were \
         acknowledged, {} promised blocks were checked: nothing is lost",
        tally.systems, tally.kills, tally.crashes, tally.stops, tally.changes, tally.writes, tally.flushes,
        tally.promises
    )
    .map_err(|source| XtaskError::System { doing: "writing the output", source })?;
    Ok(if tally.promises > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn soak(args: SoakArgs, out: &mut dyn Write) -> Result<ExitCode, XtaskError> {
    let SoakArgs { minutes, seed, weir } = args;
    let plan = soak::Plan { time: Span::from_secs(minutes * 60), seed, weir };
    let verdict = soak::run(&plan, out)?;
    Ok(if verdict.is_flat() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn limit_memory() -> Result<(), XtaskError> {
    let Rlimit { maximum, .. } = getrlimit(Resource::As);
    let current = Some(maximum.unwrap_or(u64::MAX).min(MAX_MEMORY));
    setrlimit(Resource::As, Rlimit { current, maximum })
        .map_err(|errno| XtaskError::System { doing: "limiting the memory", source: errno.into() })
}
