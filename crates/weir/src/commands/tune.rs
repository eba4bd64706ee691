//! `weir tune`: the cheapest changes of a layout that reach a goal, step by step.

mod rounds;
mod served;

use self::rounds::RealSystem;
use self::served::Served;
use super::needs::needed;
use super::{page, plan, sim};
use crate::cli::{ScriptArgs, TuneArgs};
use crate::error::{CliError, FAILED, NO};
use crate::input::{is_same, read_layout_text};
use crate::output;
use std::fs;
use weir_catalog::Catalog;
use weir_report::tune::TuneEnd;
use weir_tune::{Bench, Credits, Goal, Load, TuneOptions, Tuned, tune, tune_on};

pub(crate) fn run(args: &TuneArgs, catalog: &Catalog) -> Result<u8, CliError> {
    check(args)?;
    let (tuned, signalled) = match &args.rounds {
        Some(folder) => RealSystem::new(args, folder, catalog)?.walk()?,
        None => walk(args, catalog)?,
    };
    // The report names the changes that a server still has, so it does not wait for files.
    output::print(&tuned.report, args.output.format())?;
    if let Some(path) = &args.out {
        fs::write(path, &tuned.text).map_err(|source| CliError::write(path, source))?;
    }
    if let Some(path) = &args.html {
        page::write(path, &tuned.report.page()?)?;
    }
    Ok(match tuned.report.end {
        TuneEnd::Interrupted => signalled.unwrap_or(FAILED),
        TuneEnd::Failed => FAILED,
        TuneEnd::Reached => 0,
        _ => NO,
    })
}

/// Walks in simulation, or on a running server. Returns the exit code for a received signal, too.
fn walk(args: &TuneArgs, catalog: &Catalog) -> Result<(Tuned, Option<u8>), CliError> {
    let name = args.layout.display().to_string();
    let (load, text, mut notes, bursts) = load(args, catalog)?;
    let bursts = args.bursts || bursts;
    let credits = match (bursts, &args.control) {
        (true, _) => Credits::Given,
        (false, Some(_)) => Credits::Spent,
        (false, None) => Credits::Never,
    };
    let bench = Bench { catalog, load, seed: args.seed, runtime: args.runtime, credits };
    let goal = Goal { targets: args.goal.clone() };
    let simulations = usize::try_from(args.simulations).ok();
    let options = TuneOptions {
        budget: args.budget,
        simulations,
        keeps: args.keep,
        no_downtime: args.no_downtime,
    };
    let mut signalled = None;
    let mut tuned = match &args.control {
        None => tune(&name, &text, &bench, &goal, options)?,
        Some(control) => {
            if matches!(bench.load, Load::Databases(..)) {
                let words = "--control: a server sees requests, not transactions; give fio jobs, \
                             --need or --load";
                return Err(CliError::Refused(words.to_owned()));
            }
            let mut served = Served::new(control, args, bursts)?;
            served.check(&name, &read_layout_text(&args.layout, catalog)?.1)?;
            let tuned = tune_on(&mut served, (&name, &text), &bench, &goal, options);
            signalled = served.signalled();
            if let Err(error) = served.refill() {
                output::talk(&format!("weir: the burst credits stay empty: {error}"));
            }
            tuned?
        }
    };
    if args.control.is_some() && tuned.report.end == TuneEnd::Exhausted {
        notes.push(
            "a running server takes other tiers, sizes, provisioned rates and cache modes; weir tune without --control \
             tries all changes"
                .to_owned(),
        );
    }
    notes.append(&mut tuned.report.notes);
    tuned.report.notes = notes;
    Ok((tuned, signalled))
}

/// Checks the options before anything is simulated.
fn check(args: &TuneArgs) -> Result<(), CliError> {
    // The parser does not say so, because a need and a workload exclude each other.
    if args.runtime.is_some() && args.workload.is_empty() {
        return Err(CliError::Refused("--runtime needs --workload FILE".to_owned()));
    }
    // The parser ignores that an option requires another one if that one conflicts with a given one.
    let of_observations = [
        ("--percentile", args.need.percentile.is_some()),
        ("--as-observed", args.need.as_observed),
        ("--growth", args.need.growth.is_some()),
        ("--role", !args.need.role.is_empty()),
    ];
    if let Some((option, _)) = of_observations.iter().find(|(_, is_given)| *is_given)
        && args.need.load.is_empty()
    {
        return Err(CliError::Refused(format!("{option} needs --load OBSERVATION")));
    }
    if args.rounds.is_some() && !args.workload.is_empty() {
        let words = "--workload: the load of --rounds is observed; give --load OBSERVATION";
        return Err(CliError::Refused(words.to_owned()));
    }
    if args.rounds.is_some() && !args.goal.is_empty() {
        let words = "--goal: the goal of --rounds is that the observed load is met; leave it out";
        return Err(CliError::Refused(words.to_owned()));
    }
    if args.rounds.is_none() && args.script != ScriptArgs::default() {
        let words = "options of scripts need --rounds DIR and --as KIND; weir export writes a single \
                     script";
        return Err(CliError::Refused(words.to_owned()));
    }
    if let Some(folder) = args.rounds.as_ref().filter(|own| own.exists() && !own.is_dir()) {
        let words = format!("--rounds {}: is not a folder; give a folder", folder.display());
        return Err(CliError::Refused(words));
    }
    let own = [&args.layout];
    let inputs = || {
        let all = own.into_iter().chain(&args.workload).chain(&args.need.need);
        all.chain(&args.need.load)
    };
    for (option, path) in [("--out", &args.out), ("--html", &args.html)] {
        let Some(path) = path else { continue };
        if inputs().any(|own| is_same(own, path)) {
            let words = format!("{option} {}: is an input file; use another name", path.display());
            return Err(CliError::Refused(words));
        }
        plan::can_write(option, path)?;
    }
    if args.out.is_some() && args.out == args.html {
        let words = "--out and --html name the same file; give each its own";
        return Err(CliError::Refused(words.to_owned()));
    }
    Ok(())
}

/// Reads the load and the layout; returns the layout's text, notes, and whether the load counts on
/// burst credits.
fn load(args: &TuneArgs, catalog: &Catalog) -> Result<(Load, String, Vec<String>, bool), CliError> {
    if args.workload.is_empty() {
        if args.need.need.is_none() && args.need.load.is_empty() {
            let words = "the load is missing: give --workload FILE, --need FILE or --load \
                         OBSERVATION";
            return Err(CliError::Refused(words.to_owned()));
        }
        let needed = needed(&args.layout, &args.need, catalog)?;
        return Ok((Load::Needs(vec![needed.need]), needed.text, needed.notes, needed.bursts));
    }
    let (text, _) = read_layout_text(&args.layout, catalog)?;
    let load = if sim::are_descriptions(&args.workload)? {
        let (databases, backups) = sim::read_descriptions(&args.workload, args.runtime)?;
        Load::Databases(databases, backups)
    } else {
        let jobs = sim::read_jobs(&args.workload)?;
        sim::tell_of_ignored(&jobs);
        Load::Jobs(jobs.scale(None, args.runtime))
    };
    Ok((load, text, Vec::new(), false))
}
