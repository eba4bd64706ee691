//! `cargo xtask`: see `cargo xtask --help`.

#![forbid(unsafe_code)]

use clap::{Args, Parser};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use xtask::error::XtaskError;
use xtask::fuzz::smoke::{self, Plan};
use xtask::fuzz::{Target, corpus};
use xtask::schema;

/// A fuzzed target may use so much memory; an allocation beyond is a finding.
const MAX_MEMORY: u64 = 4 << 30;

/// Chores of this repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Chore {
    /// Feed the parsers inputs made from a committed corpus, the same for the same seed.
    FuzzSmoke(FuzzArgs),
    /// Write the generated part of the corpora anew.
    FuzzCorpus,
    /// Write docs/layout.schema.json.
    Schema,
    /// Fail if docs/layout.schema.json is out of date.
    CheckSchema,
}

#[derive(Debug, Args)]
struct FuzzArgs {
    /// How long to feed each target.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Same seed, same inputs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// What to feed; may be repeated [default: all].
    #[arg(long)]
    target: Vec<Target>,
    /// Go on after a panic, and tell of each place once.
    #[arg(long)]
    keep_going: bool,
    /// Run only this input of the seed again.
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
            // With stderr gone there is nobody left to tell.
            drop(writeln!(io::stderr(), "error: {error}"));
            ExitCode::from(2)
        }
    }
}

fn run(chore: Chore, out: &mut dyn Write) -> Result<ExitCode, XtaskError> {
    let said = |source| XtaskError::System { doing: "writing the output", source };
    match chore {
        Chore::FuzzSmoke(args) => return fuzz(args, out),
        Chore::FuzzCorpus => writeln!(out, "{} inputs written", corpus::generate()?),
        Chore::Schema => writeln!(out, "{} written", schema::write(&xtask::root())?.display()),
        Chore::CheckSchema => {
            writeln!(out, "{} is up to date", schema::check(&xtask::root())?.display())
        }
    }
    .map_err(said)?;
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

fn limit_memory() -> Result<(), XtaskError> {
    let Rlimit { maximum, .. } = getrlimit(Resource::As);
    let current = Some(maximum.unwrap_or(u64::MAX).min(MAX_MEMORY));
    setrlimit(Resource::As, Rlimit { current, maximum })
        .map_err(|errno| XtaskError::System { doing: "limiting the memory", source: errno.into() })
}
