//! Reading a figure from what came of a run.
//!
//! A metric is a name, or a name and what it is of: `wait_pct:WRITELOG`. Which there
//! are depends on what ran: [`jobs`], [`databases`], [`backups`], or nothing but a [`layout`] or what was
//! [`planned`].

mod backups;
mod databases;
mod jobs;
mod layout;
mod planned;

use crate::figure::FigureKeys;
use crate::work::Outcome;
use weir_report::backup::BackupReport;
use weir_report::lab::Value;
use weir_report::oltp::{DatabaseReport, OltpReport};

/// The job of a warm-up; it is not measured.
pub(crate) const WARM_UP: &str = "warm-up";

/// There is no such metric.
#[derive(Debug, PartialEq, Eq)]
struct Unknown;

/// A metric's name, and what it is of.
fn split(metric: &str) -> (&str, &str) {
    metric.split_once(':').unwrap_or((metric, ""))
}

/// The unit of a metric.
pub(crate) fn unit(metric: &str) -> &'static str {
    match split(metric).0 {
        "backup_mib_per_s" => "MiB/s",
        "backup_buffer_mib" => "MiB",
        "backup_scaled_s" => "s",
        "iops" | "file_iops" | "limit_iops" => "IOPS",
        "mib_per_s" | "file_mib_per_s" | "file_write_mib_per_s" | "limit_mib_per_s" => "MiB/s",
        "batches_per_s" => "batch requests/s",
        "transactions_per_min" => "transactions/min",
        "cpu_pct" | "wait_pct" => "%",
        "read_ms" | "write_ms" | "io_ms" | "medium_ms" => "ms",
        "files_gib" | "blobs_gib" | "step_up_gib" => "GiB",
        _ => "",
    }
}

/// Whether only the virtual clock can give it: the wall clock's jobs do not see what
/// the server does with their requests.
pub(crate) fn virtual_only(metric: &str) -> bool {
    jobs::virtual_only(metric)
}

/// The metric of `keys` in a run, or `None` if that run does not have it.
///
/// # Errors
///
/// What is wrong with it, if what ran cannot have it.
pub(crate) fn read(keys: &FigureKeys, outcome: &Outcome<'_>) -> Result<Option<Value>, String> {
    let metric = keys.metric.as_str();
    let (what, value) = match outcome {
        Outcome::Jobs(run) => {
            let number = jobs::read(metric, run);
            ("fio jobs have", number.map(|number| number.map(Value::Number)))
        }
        Outcome::Databases(run) if backups::is_one(metric) => {
            ("backups have", backups::read(metric, backup(keys, run)?))
        }
        Outcome::Backups(own) => ("backups have", backups::read(metric, backup(keys, &own.run)?)),
        Outcome::Databases(run) => {
            ("databases have", databases::read(metric, database(keys, run)?))
        }
        Outcome::Plan(planned) => ("a plan has", planned::read(metric, planned)),
        Outcome::Layout(checked) => ("a layout alone has", layout::read(metric, checked)),
    };
    value.map_err(|Unknown| format!("{what} no metric {metric:?}"))
}

/// Returns the value that a figure in wall time is held against, if that is the virtual clock's.
pub(crate) fn expected(keys: &FigureKeys, outcome: &Outcome<'_>) -> Option<Value> {
    let (Outcome::Backups(own), true) = (outcome, is_of_both_clocks(&keys.metric)) else {
        return None;
    };
    let name = keys.backup.as_ref();
    let mut all = own.simulated.iter();
    let found = all.find(|backup| name.is_none_or(|name| *name == backup.backup))?;
    Some(Value::Number(found.elapsed_s))
}

/// Returns whether a metric compares the clocks with one another, at the size of wall time.
pub(crate) fn is_of_both_clocks(metric: &str) -> bool {
    metric == "backup_scaled_s"
}

/// Returns the backup that a figure is of.
fn backup<'a>(keys: &FigureKeys, run: &'a OltpReport) -> Result<&'a BackupReport, String> {
    match (&keys.backup, run.backups.as_slice()) {
        (None, [only]) => Ok(only),
        (None, []) => Err("there is no backup".to_owned()),
        (None, _) => Err("there are several backups; say which one".to_owned()),
        (Some(name), all) => {
            let found = all.iter().find(|backup| backup.backup == *name);
            found.ok_or_else(|| format!("there is no backup {name:?}"))
        }
    }
}

/// The database that a figure is of.
fn database<'a>(keys: &FigureKeys, run: &'a OltpReport) -> Result<&'a DatabaseReport, String> {
    match (&keys.database, run.databases.as_slice()) {
        (None, [only]) => Ok(only),
        (None, _) => Err("there are several databases; say which one".to_owned()),
        (Some(name), all) => {
            let found = all.iter().find(|database| database.database == *name);
            found.ok_or_else(|| format!("there is no database {name:?}"))
        }
    }
}
