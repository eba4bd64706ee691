//! `weir diagnose --fleet` and `--merge`: a row for each observation, and a summary of all.

use super::mapping;
use crate::cli::{By, DiagnoseArgs};
use crate::commands::plan;
use crate::commands::whole_file::{self, CleanUp};
use crate::error::{CliError, NO, USAGE};
use crate::input::read_layout_text;
use crate::output;
use crate::progress::Counting;
use crate::signals::Signals;
use std::io::{BufWriter, ErrorKind};
use std::path::Path;
use std::thread;
use weir_catalog::Catalog;
use weir_fleet::json::{self, JsonError};
use weir_fleet::results::Rows;
use weir_fleet::{Fleet, FleetError, Journal, Merged, Options, Results, Row, Summary, row};
use weir_report::Format;
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
    if args.by.is_some() && !fleet.has_days() {
        return Err(CliError::Refused(format!(
            "--by is for days of servers in Parquet (server=NAME/day=DAY), and {} has none; leave it out",
            root.display()
        )));
    }
    let shard = args.shard.unwrap_or(Shard::WHOLE);
    let numbers = shard.points(fleet.count());
    if numbers.is_empty() {
        let (shard, count) = (shard.to_string(), fleet.count());
        return Err(FleetError::EmptyShard { shard, count }.into());
    }
    let own = Kept {
        fleet: fleet.identity(),
        first: numbers.first().copied().unwrap_or(0),
        count: numbers.len() as u64,
    };
    own.check(out)?;
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
    let mut report = written(Some(out), journal.rows(), &CleanUp::default())?;
    journal.remove()?;
    report.shard = (!shard.is_whole()).then(|| shard.to_string());
    if fleet.ignored() > 0 {
        let words = "files that are no observations, and are left out";
        report.notes.push(format!("{words}: {}", fleet.ignored()));
    }
    answer(args, &report, Some(out))
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
        joins_days: args.by == Some(By::Server),
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

/// The results that a file may have to be replaced.
struct Kept<'a> {
    fleet: &'a str,
    /// The first observation.
    first: u64,
    /// Number of observations.
    count: u64,
}

impl Kept<'_> {
    /// Refuses to replace results of other observations.
    fn check(&self, out: &Path) -> Result<(), CliError> {
        if !out.exists() {
            return Ok(());
        }
        let (mut old, mut head) = (0, None);
        for row in Rows::open(out)? {
            let row = row?;
            old += 1;
            head.get_or_insert((row.fleet, row.observation));
        }
        let (count, fleet, first) = (self.count, self.fleet, self.first);
        let words = match head {
            _ if old != count => {
                format!("the results of {old} observations, and this run has {count}")
            }
            Some((other, _)) if other != fleet => {
                format!("results of the fleet {other}, and this run is of {fleet}")
            }
            Some((_, other)) if other != first => {
                format!("results from observation {other} on, and this run begins with {first}")
            }
            _ => return Ok(()),
        };
        Err(CliError::Refused(format!(
            "--out {}: has {words}; use another name, or remove the file",
            out.display()
        )))
    }
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
    let merged = Merged::open(&args.merge)?;
    if let (Some(out), Some((fleet, count))) = (&args.out, merged.fleet()) {
        Kept { fleet, first: 0, count }.check(out)?;
    }
    let clean_up = CleanUp::at_end()?;
    if args.out.is_some() || args.output.format() != Format::Json {
        let report = written(args.out.as_deref(), merged, &clean_up)?;
        return answer(args, &report, args.out.as_deref());
    }
    // The rows are printed after the summary, and the shards may be pipes.
    let failed = |source| CliError::System { context: "creating a temporary file", source };
    let folder = tempfile::tempdir().map_err(failed)?;
    let rows = folder.path().join("rows.csv");
    let report = written(Some(&rows), merged, &clean_up)?;
    answer(args, &report, Some(&rows))
}

/// Writes rows to a file under a temporary name, which it gets when all are written, and adds them
/// up.
fn written(
    out: Option<&Path>,
    rows: impl Iterator<Item = Result<Row, FleetError>>,
    clean_up: &CleanUp,
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
    clean_up.add(part.path());
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

/// Prints the report with all rows. They are read again from the results, which are complete.
fn print_json(report: &FleetDiagnosisReport, results: &Path) -> Result<(), CliError> {
    let out = BufWriter::new(std::io::stdout().lock());
    match json::write(out, report, Rows::open(results)?) {
        Ok(()) => Ok(()),
        Err(JsonError::Row(error)) => Err(error.into()),
        // The reader has seen enough.
        Err(JsonError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(JsonError::Output(source)) => {
            Err(CliError::System { context: "writing the output", source })
        }
    }
}

fn answer(
    args: &DiagnoseArgs,
    report: &FleetDiagnosisReport,
    results: Option<&Path>,
) -> Result<u8, CliError> {
    match (args.output.format(), results) {
        (Format::Json, Some(results)) => print_json(report, results)?,
        (format, _) => output::print(report, format)?,
    }
    Ok(match (report.is_throttled(), report.failed) {
        (true, _) => NO,
        (false, 0) => 0,
        (false, _) => USAGE,
    })
}
