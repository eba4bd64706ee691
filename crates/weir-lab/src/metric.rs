//! Metrics of a run.
//!
//! A metric is a name, optionally with an argument: `wait_pct:WRITELOG`. The available metrics
//! depend on the kind of run: [`jobs`], [`databases`], [`backups`], a [`layout`] alone, a plan
//! ([`planned`]), or a tuned layout ([`tuned`]).

mod backups;
mod databases;
mod jobs;
mod layout;
mod name;
mod planned;
mod tuned;

use crate::figure::FigureKeys;
use crate::work::Outcome;
use name::{Unknown, split};
use weir_report::backup::BackupReport;
use weir_report::lab::Value;
use weir_report::oltp::{DatabaseReport, OltpReport};

/// Returns the unit of a metric.
pub(crate) fn unit(metric: &str) -> &'static str {
    match split(metric).0 {
        "backup_mib_per_s" => "MiB/s",
        "backup_buffer_mib" => "MiB",
        "backup_scaled_s" => "s",
        "mb_per_s" | "read_mb_per_s" | "write_mb_per_s" => "MB/s",
        "read_mib_per_s" | "write_mib_per_s" => "MiB/s",
        "mean_ms" | "p50_ms" | "p99_ms" | "read_mean_ms" | "write_mean_ms" => "ms",
        "transaction_ms" => "ms",
        "series_between_s" => "s",
        "read_iops" | "write_iops" | "iops" | "file_iops" | "limit_iops" => "IOPS",
        "mib_per_s" | "file_mib_per_s" | "file_write_mib_per_s" | "limit_mib_per_s" => "MiB/s",
        "batches_per_s" => "batch requests/s",
        "transactions_per_min" => "transactions/min",
        "cpu_pct" | "wait_pct" => "%",
        "read_ms" | "write_ms" | "io_ms" | "medium_ms" => "ms",
        "files_gib" | "blobs_gib" | "step_up_gib" => "GiB",
        _ => "",
    }
}

/// Returns whether a metric exists only in virtual time: jobs in wall time do not see what the
/// server does with their requests.
pub(crate) fn virtual_only(metric: &str) -> bool {
    jobs::virtual_only(metric)
}

/// Returns a metric of a run; `None` if the run does not have it.
///
/// # Errors
///
/// A message if no such run can have it.
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
        Outcome::Tune(report) => ("a tuned layout has", tuned::read(metric, report)),
        Outcome::Layout(checked) => ("a layout alone has", layout::read(metric, checked)),
    };
    value.map_err(|Unknown| format!("{what} no metric {metric:?}"))
}

/// Returns the expected value of a figure in wall time, if that is the value in virtual time.
pub(crate) fn expected(keys: &FigureKeys, outcome: &Outcome<'_>) -> Option<Value> {
    let (Outcome::Backups(own), true) = (outcome, is_of_both_clocks(&keys.metric)) else {
        return None;
    };
    let name = keys.backup.as_ref();
    let mut all = own.simulated.iter();
    let found = all.find(|backup| name.is_none_or(|name| *name == backup.backup))?;
    Some(Value::Number(found.elapsed_s))
}

/// Returns whether a metric compares the two clocks, at the size of wall time.
pub(crate) fn is_of_both_clocks(metric: &str) -> bool {
    metric == "backup_scaled_s"
}

/// Returns the backup of a figure.
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

/// Returns the database of a figure.
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
