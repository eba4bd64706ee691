//! `weir diagnose --fleet` and `--merge`: a row for each observation, and a summary of all.

use super::mapping;
use crate::cli::DiagnoseArgs;
use crate::commands::{plan, whole_file};
use crate::error::{CliError, NO, USAGE};
use crate::input::read_layout_text;
use crate::output;
use crate::progress::Counting;
use crate::signals::Signals;
use std::io::BufWriter;
use std::path::Path;
use std::thread;
use weir_catalog::Catalog;
use weir_fleet::{Fleet, FleetError, Journal, Merged, Options, Results, Row, Summary, row};
use weir_report::fleet_diagnosis::FleetDiagnosisReport;
use weir_sweep::{Shard, in_parallel};

pub(super) fn run(
    args: &DiagnoseArgs,
    catalog: &Catalog,
    editions: &[String],
) -> Result<u8, CliError> {
    if let Some(out) = &args.out {
        if args.merge.iter().any(|own| plan::is_same(own, out)) {
            let words = format!("--out {}: is one of the shards; use another name", out.display());
            return Err(CliError::Refused(words));
        }
        plan::can_write("--out", out)?;
    }
    let (Some(root), Some(out)) = (&args.fleet, &args.out) else { return merged(args) };
    let fleet = Fleet::find(root, options(args, catalog, editions)?)?;
    refuse_parquet(&fleet)?;
    let shard = args.shard.unwrap_or(Shard::WHOLE);
    let numbers = shard.points(fleet.count());
    if numbers.is_empty() {
        let (shard, count) = (shard.to_string(), fleet.count());
        return Err(FleetError::EmptyShard { shard, count }.into());
    }
    keep_others(out, numbers.len())?;
    let mut journal = Journal::open(&Journal::beside(out), &fleet, shard)?;
    let signals = Signals::catch()?;
    if let Some(code) = complete(args, &fleet, &numbers, &mut journal, &signals)? {
        output::talk(&format!(
            "weir: interrupted after {} of {} observations, which are kept in {}; the same command \
             continues",
            journal.completed(),
            numbers.len(),
            Journal::beside(out).display()
        ));
        return Ok(code);
    }
    let mut report = written(Some(out), journal.rows())?;
    journal.remove()?;
    report.shard = (!shard.is_whole()).then(|| shard.to_string());
    if fleet.ignored() > 0 {
        let words = "files that are no observations, and are left out";
        report.notes.push(format!("{words}: {}", fleet.ignored()));
    }
    answer(args, &report)
}

fn options(
    args: &DiagnoseArgs,
    catalog: &Catalog,
    editions: &[String],
) -> Result<Options, CliError> {
    let layout = args.layout.as_ref().map(|path| read_layout_text(path, catalog)).transpose()?;
    if let Some(name) = &args.edition {
        catalog.edition(name)?;
    }
    Ok(Options {
        layout: layout.map(|(text, layout)| (layout, text)),
        edition: args.edition.clone(),
        mapping: mapping(&args.map)?,
        catalog: catalog.clone(),
        editions: editions.to_vec(),
        version: env!("CARGO_PKG_VERSION"),
    })
}

/// Refuses Parquet before any work, unless this program is built with it.
#[cfg_attr(feature = "parquet", expect(clippy::unnecessary_wraps, reason = "other builds fail"))]
fn refuse_parquet(fleet: &Fleet) -> Result<(), CliError> {
    #[cfg(not(feature = "parquet"))]
    if let Some(own) = fleet.observations().iter().find(|own| own.is_parquet()) {
        return Err(CliError::NoParquet { path: own.path.clone() });
    }
    #[cfg(feature = "parquet")]
    let _ = fleet;
    Ok(())
}

/// Refuses to replace results of another number of observations, which may be those of the fleet.
fn keep_others(out: &Path, count: usize) -> Result<(), CliError> {
    if !out.exists() {
        return Ok(());
    }
    let mut old = 0;
    for row in weir_fleet::results::Rows::open(out)? {
        row?;
        old += 1;
    }
    if old == count {
        return Ok(());
    }
    Err(CliError::Refused(format!(
        "--out {}: has the results of {old} observations, and this run has {count}; use another \
         name, or remove the file",
        out.display()
    )))
}

/// Diagnoses the observations that are not in the journal. Returns the exit code of a signal.
fn complete(
    args: &DiagnoseArgs,
    fleet: &Fleet,
    numbers: &[u64],
    journal: &mut Journal,
    signals: &Signals,
) -> Result<Option<u8>, CliError> {
    let open: Vec<u64> = numbers.iter().copied().filter(|own| !journal.has(*own)).collect();
    let completed = numbers.len() - open.len();
    if completed > 0 {
        let all = numbers.len();
        output::talk(&format!("continuing after {completed} of {all} observations"));
    }
    let cores = || thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let jobs = args.jobs.unwrap_or_else(cores);
    let mut progress = Counting::start("observations", numbers.len(), completed, args.quiet);
    let stop = || signals.code().is_some();
    in_parallel(
        &open,
        jobs,
        &stop,
        |number, _| Some(row::row(fleet, number)),
        |_, row| {
            progress.count();
            journal.add(&row)
        },
    )?;
    // A signal after the last observation changes nothing.
    Ok(signals.code().filter(|_| journal.completed() < numbers.len()))
}

/// Merges shards, and reports on the whole.
fn merged(args: &DiagnoseArgs) -> Result<u8, CliError> {
    let report = written(args.out.as_deref(), Merged::open(&args.merge)?)?;
    answer(args, &report)
}

/// Writes rows to a file under a temporary name, which it gets when all are written, and adds them
/// up.
fn written(
    out: Option<&Path>,
    rows: impl Iterator<Item = Result<Row, FleetError>>,
) -> Result<FleetDiagnosisReport, CliError> {
    let mut summary = Summary::default();
    let Some(out) = out else {
        for row in rows {
            summary.add(&row?)?;
        }
        return Ok(summary.finish());
    };
    let failed = |source| CliError::write(out, source);
    let part = whole_file::part_of(out).map_err(failed)?;
    let mut results = Results::new(BufWriter::new(part.as_file()));
    for row in rows {
        let row = row?;
        summary.add(&row)?;
        results.row(&row).map_err(failed)?;
    }
    results.finish().map_err(failed)?;
    whole_file::keep(part, out).map_err(failed)?;
    Ok(summary.finish())
}

fn answer(args: &DiagnoseArgs, report: &FleetDiagnosisReport) -> Result<u8, CliError> {
    output::print(report, args.output.format())?;
    Ok(match (report.is_throttled(), report.failed) {
        (true, _) => NO,
        (false, 0) => 0,
        (false, _) => USAGE,
    })
}
