//! `weir sweep`: simulations over the values of parameters, in parallel.

mod files;
mod inputs;
mod picture;
mod traces;

use super::page;
use crate::cli::SweepArgs;
use crate::error::CliError;
use crate::output;
use crate::progress::Counting;
use crate::signals::Signals;
use std::path::Path;
use std::thread;
use weir_catalog::Catalog;
use weir_report::sweep::{EffectReport, SensitivityReport, SweepReport, ValueReport};
use weir_sweep::results::Columns;
use weir_sweep::sensitivity::{Effect, Sensitivity, sensitivity};
use weir_sweep::{Journal, Results, Sweep, SweepError, merge, run as simulate};

pub(crate) fn run(
    args: &SweepArgs,
    catalog: &Catalog,
    editions: &[String],
) -> Result<u8, CliError> {
    files::check(args)?;
    let (Some(path), Some(out)) = (&args.sweep, &args.out) else { return merged(args) };
    let sweep = inputs::read(path, args, catalog, editions)?;
    let points = args.shard.points(sweep.points());
    if points.is_empty() {
        let (shard, points) = (args.shard.to_string(), sweep.points());
        return Err(SweepError::EmptyShard { shard, points }.into());
    }
    check_columns(args, sweep.columns())?;
    files::keep_others(out, points.len())?;
    let mut journal = Journal::open(&Journal::beside(out), &sweep, args.shard)?;
    let signals = Signals::catch()?;
    if let Some(code) = complete(args, &sweep, &points, &mut journal, &signals)? {
        let (completed, all) = (journal.completed(), points.len());
        output::talk(&format!(
            "weir: interrupted after {completed} of {all} points, which are kept in {}; the same \
             command continues",
            Journal::beside(out).display()
        ));
        return Ok(code);
    }
    let results = journal.results(&sweep);
    if results.valid().next().is_none()
        && let Some((point, reason)) = results.first_invalid()
    {
        let (file, reason) = (sweep.name().to_owned(), reason.to_owned());
        // Another run would find the same.
        journal.remove()?;
        let points = points.len() as u64;
        return Err(SweepError::NoValidPoint { file, points, point, reason }.into());
    }
    files::write(out, &results)?;
    journal.remove()?;
    report(args, &results)
}

/// Simulates the points that are not in the journal. Returns the exit code of a signal.
fn complete(
    args: &SweepArgs,
    sweep: &Sweep,
    points: &[u64],
    journal: &mut Journal,
    signals: &Signals,
) -> Result<Option<u8>, CliError> {
    let open: Vec<u64> = points.iter().copied().filter(|point| !journal.has(*point)).collect();
    if open.len() < points.len() {
        let completed = points.len() - open.len();
        output::talk(&format!("continuing after {completed} of {} points", points.len()));
    }
    let cores = || thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let jobs = args.jobs.unwrap_or_else(cores);
    let mut progress =
        Counting::start("points", points.len(), points.len() - open.len(), args.quiet);
    let stop = || signals.code().is_some();
    simulate(sweep, &open, jobs, &stop, |point, row| {
        progress.count();
        journal.add(point, row)
    })?;
    // A signal after the last point changes nothing.
    Ok(signals.code().filter(|_| journal.completed() < points.len()))
}

/// Merges shards, and reports on the whole.
fn merged(args: &SweepArgs) -> Result<u8, CliError> {
    let shards = args.merge.iter().map(|path| files::read(path));
    let results = merge(shards.collect::<Result<_, _>>()?)?;
    check_columns(args, results.columns())?;
    if let Some(out) = &args.out {
        files::write(out, &results)?;
    }
    report(args, &results)
}

/// Refuses wrong columns in options, before the points are simulated or a file is written.
fn check_columns(args: &SweepArgs, columns: &Columns) -> Result<(), CliError> {
    if let Some(name) = &args.of {
        columns.find_metric("--of", name)?;
    }
    picture::check(&args.plot, columns)
}

fn metric<'a>(args: &'a SweepArgs, results: &'a Results) -> &'a str {
    args.of.as_deref().unwrap_or_else(|| results.main_metric())
}

/// Prints the report, and writes the page.
fn report(args: &SweepArgs, results: &Results) -> Result<u8, CliError> {
    let completed = results.rows().len();
    let is_whole = completed as u64 == results.points();
    let invalid = completed - results.valid().count();
    let found = match is_whole {
        true => Some(sensitivity(results, "--of", metric(args, results))?),
        false => None,
    };
    let mut notes = Vec::new();
    if let Some((point, reason)) = results.first_invalid() {
        let others = match invalid {
            1 => "One point is invalid and left out".to_owned(),
            n => format!("{n} points are invalid and left out"),
        };
        notes.push(format!("{others}; point {point}: {reason}"));
    }
    let report = SweepReport {
        sweep: results.identity().to_owned(),
        points: results.points(),
        completed: completed as u64,
        invalid: invalid as u64,
        shard: (!is_whole).then(|| args.shard.to_string()),
        sensitivity: found.as_ref().map(described),
        notes,
    };
    if let Some(path) = &args.html {
        write_page(path, args, results, &report)?;
    }
    output::print(&report, args.output.format())?;
    Ok(0)
}

fn write_page(
    path: &Path,
    args: &SweepArgs,
    results: &Results,
    report: &SweepReport,
) -> Result<(), CliError> {
    let plots = picture::plots(&args.plot, report.sensitivity.as_ref(), results)?;
    page::write(path, &report.page(&plots)?)
}

fn described(found: &Sensitivity) -> SensitivityReport {
    let effect = |own: &Effect| EffectReport {
        parameter: own.parameter.clone(),
        variance_share: own.share,
        chance_share: own.by_chance,
        values: own
            .groups
            .iter()
            .map(|group| ValueReport {
                value: group.value.clone(),
                to: group.to.clone(),
                points: group.points as u64,
                mean: group.mean,
            })
            .collect(),
    };
    SensitivityReport {
        metric: found.metric.clone(),
        points: found.points as u64,
        lowest: found.lowest,
        highest: found.highest,
        is_grid: found.is_grid,
        parameters: found.effects.iter().map(effect).collect(),
    }
}
