//! The tables of telegraf's first `sqlserver` plugin: one row per measurement and one column per
//! database. Rates are of a few seconds before the query.

use crate::error::ImportError;
use crate::results::{ResultSet, Row};
use crate::rows::{ReadRows, Rows};
use weir_observe::header::EntityKind;
use weir_observe::metric::{self as m, Metric};

const KIB: f64 = 1024.0;
const MS: f64 = 1e6;

/// Metrics of files by kind: rows, and log.
const OF_FILES: &[(&str, &Metric, f64)] = &[
    ("reads (bytes/sec)", &m::READ_BYTES_PER_S, 1.0),
    ("writes (bytes/sec)", &m::WRITE_BYTES_PER_S, 1.0),
    ("(reads/sec)", &m::READS_PER_S, 1.0),
    ("(writes/sec)", &m::WRITES_PER_S, 1.0),
    ("read latency (ms)", &m::READ_LATENCY_NS, MS),
    ("write latency (ms)", &m::WRITE_LATENCY_NS, MS),
    ("size (bytes)", &m::SIZE_ON_DISK_BYTES, 1.0),
    ("size (kb)", &m::SIZE_ON_DISK_BYTES, KIB),
];

/// Counters of the instance; those of databases exist only as their sum.
const OF_INSTANCE: &[(&str, &Metric)] = &[
    ("Batch Requests/sec | SQLServer:SQL Statistics", &m::BATCH_REQUESTS_PER_S),
    ("Transactions/sec | _Total | SQLServer:Databases", &m::TRANSACTIONS_PER_S),
    ("Log Bytes Flushed/sec | _Total | SQLServer:Databases", &m::LOG_BYTES_PER_S),
    ("Page life expectancy | SQLServer:Buffer Manager", &m::PAGE_LIFE_EXPECTANCY_S),
    ("User Connections | SQLServer:General Statistics", &m::USERS),
];

struct Pivot {
    measurement: usize,
    server: Option<usize>,
    value: Option<usize>,
    /// Columns of databases, with their names.
    databases: Vec<(usize, String)>,
}

pub(super) fn plan(set: &ResultSet) -> Option<Box<dyn ReadRows>> {
    let measurement = set.column(&["measurement"])?;
    let server = Some(set.column(&["servername"])?);
    let kind = set.column(&["type"])?;
    let value = set.column(&["value"]);
    let named = set.columns.iter().enumerate().filter(|(at, name)| {
        *at != measurement && Some(*at) != server && *at != kind && *name != "Total"
    });
    let databases = if value.is_some() {
        Vec::new()
    } else {
        named.map(|(at, name)| (at, name.clone())).collect()
    };
    Some(Box::new(Pivot { measurement, server, value, databases }))
}

/// Returns the kind of files and the metric of a measurement such as `Rows read latency (ms)`.
fn of_files(name: &str) -> Option<(&'static str, &'static Metric, f64)> {
    let (kind, what) = name.split_once(' ')?;
    let kind = match kind.to_lowercase().as_str() {
        "rows" => "rows",
        "log" => "log",
        _ => return None,
    };
    let (_, measure, by) = OF_FILES.iter().find(|(own, _, _)| what.eq_ignore_ascii_case(own))?;
    Some((kind, measure, *by))
}

impl ReadRows for Pivot {
    fn row(&mut self, rows: &mut Rows, set: &ResultSet, row: &Row) -> Result<(), ImportError> {
        let Some(name) = row.text(Some(self.measurement)) else { return Ok(()) };
        let host = rows.host(row.text(self.server));
        if let Some(value) = self.value {
            let Some((_, measure)) = OF_INSTANCE.iter().find(|(own, _)| *own == name) else {
                rows.sheet.unused("other counters");
                return Ok(());
            };
            let at = rows.stamp(row, host, measure.name)?;
            return rows.set(at, host, measure, row.number(set, Some(value))?);
        }
        let Some((kind, measure, by)) = of_files(name) else {
            let why = match name {
                "Wait time (ms)" | "Wait tasks" => ", as it does not say of how long an interval",
                _ => "",
            };
            rows.sheet.unused(&format!("{name}{why}"));
            return Ok(());
        };
        for (at, database) in &self.databases {
            let database = rows.sheet.entity(EntityKind::Database, database, Some(host));
            let file = rows.sheet.entity(EntityKind::File, kind, Some(database));
            rows.sheet.attribute(file, "role", if kind == "log" { "log" } else { "data" });
            let value = row.number(set, Some(*at))?;
            let at = rows.stamp(row, file, measure.name)?;
            rows.set(at, file, measure, value.map(|value| value * by))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_of_files() {
        let check = |name: &str, expect: Option<(&str, &Metric, f64)>| {
            assert_eq!(of_files(name), expect, "{name}");
        };
        check("Rows reads (bytes/sec)", Some(("rows", &m::READ_BYTES_PER_S, 1.0)));
        check("Log (writes/sec)", Some(("log", &m::WRITES_PER_S, 1.0)));
        check("Log write latency (ms)", Some(("log", &m::WRITE_LATENCY_NS, 1e6)));
        check("Rows (average bytes/read)", None);
        check("Wait tasks", None);
    }
}
