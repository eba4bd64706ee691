//! The report of a fleet as JSON, with its rows. They are written one by one, so the memory does not grow
//! with the fleet.

use crate::error::FleetError;
use crate::histogram::buckets;
use crate::row::{Row, Status};
use crate::summary::{damaged, waits};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use weir_report::fleet_diagnosis::FleetDiagnosisReport;
use weir_report::number::Amount;
use weir_report::{Format, Report as _};
use weir_units::Money;

/// A reason why there is no JSON.
#[derive(Debug)]
pub enum JsonError {
    /// A row that cannot be read.
    Row(FleetError),
    /// A failure of the output.
    Output(io::Error),
}

impl From<FleetError> for JsonError {
    fn from(error: FleetError) -> Self {
        Self::Row(error)
    }
}

impl From<io::Error> for JsonError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Writes a report with its rows, each on a line, as the last key `rows`.
///
/// # Errors
///
/// [`JsonError`] for a row that cannot be read, or a failure of the output.
pub fn write(
    mut out: impl Write,
    report: &FleetDiagnosisReport,
    rows: impl Iterator<Item = Result<Row, FleetError>>,
) -> Result<(), JsonError> {
    let summary = report.render(Format::Json);
    // The report is an object with at least one key, so a comma may follow.
    let open = summary.trim_end().trim_end_matches('}').trim_end();
    write!(out, "{open},\n  \"rows\": [")?;
    let mut separator = "\n    ";
    for row in rows {
        out.write_all(separator.as_bytes())?;
        serde_json::to_writer(&mut out, &JsonRow::new(&row?)?).map_err(io::Error::from)?;
        separator = ",\n    ";
    }
    out.write_all(if separator.starts_with(',') { b"\n  ]\n}\n" } else { b"]\n}\n" })?;
    Ok(out.flush()?)
}

/// A row, with the names of the columns of CSV. Lists in texts are lists here.
#[derive(Serialize)]
struct JsonRow<'a> {
    observation: u64,
    server: &'a str,
    day: Option<&'a str>,
    file: &'a str,
    status: Status,
    reason: Option<&'a str>,
    verdict: Option<&'a str>,
    summary: Option<&'a str>,
    subject: Option<&'a str>,
    cap: Option<&'a str>,
    limit: Option<f64>,
    limit_is_bytes: Option<bool>,
    throttled_s: Option<f64>,
    wait_s: Option<f64>,
    waits_s: BTreeMap<&'a str, f64>,
    samples: Option<u64>,
    span_s: Option<f64>,
    operations: Option<f64>,
    iops: Option<f64>,
    throughput_bytes_per_s: Option<f64>,
    latency_mean_ns: Option<f64>,
    latency_histogram: Vec<Bucket>,
    fix: Option<&'a str>,
    fix_price_before: Option<Amount>,
    fix_price_after: Option<Amount>,
    currency: Option<&'a str>,
}

/// A bucket of latencies.
#[derive(Serialize)]
struct Bucket {
    lowest_ns: u64,
    samples: u64,
}

impl<'a> JsonRow<'a> {
    fn new(row: &'a Row) -> Result<Self, FleetError> {
        let amount = |column: &'static str, text: &Option<String>| {
            let text = text.as_deref();
            let money = text.map(|own| own.parse::<Money>().map_err(|_| damaged(row, column, own)));
            money.transpose().map(|money| money.map(Amount))
        };
        let mut histogram = Vec::new();
        for bucket in buckets(row.latency_histogram.as_deref().unwrap_or_default()) {
            let bucket = bucket.map_err(|part| damaged(row, "latency_histogram", part))?;
            histogram.push(Bucket { lowest_ns: bucket.0, samples: bucket.1 });
        }
        Ok(Self {
            observation: row.observation,
            server: &row.server,
            day: row.day.as_deref(),
            file: &row.file,
            status: row.status,
            reason: row.reason.as_deref(),
            verdict: row.verdict.as_deref(),
            summary: row.summary.as_deref(),
            subject: row.subject.as_deref(),
            cap: row.cap.as_deref(),
            limit: row.limit,
            limit_is_bytes: row.limit_is_bytes,
            throttled_s: row.throttled_s,
            wait_s: row.wait_s,
            waits_s: waits(row).collect::<Result<_, _>>()?,
            samples: row.samples,
            span_s: row.span_s,
            operations: row.operations,
            iops: row.iops,
            throughput_bytes_per_s: row.throughput_bytes_per_s,
            latency_mean_ns: row.latency_mean_ns,
            latency_histogram: histogram,
            fix: row.fix.as_deref(),
            fix_price_before: amount("fix_price_before", &row.fix_price_before)?,
            fix_price_after: amount("fix_price_after", &row.fix_price_after)?,
            currency: row.currency.as_deref(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(rows: Vec<Result<Row, FleetError>>) -> Result<String, JsonError> {
        let mut out = Vec::new();
        write(&mut out, &FleetDiagnosisReport::default(), rows.into_iter())?;
        Ok(String::from_utf8(out).expect("text"))
    }

    #[test]
    fn rows_follow_the_summary_each_on_a_line() {
        let row = Row {
            server: "db1".to_owned(),
            waits: Some("disk_iops:2.5 log_rate:1".to_owned()),
            latency_histogram: Some("1007616:12 1024000:3".to_owned()),
            fix_price_before: Some("12.5".to_owned()),
            ..Row::default()
        };
        let other = Row { observation: 1, ..Row::default() };
        let text = text(vec![Ok(row), Ok(other)]).expect("JSON");
        assert_eq!(text.lines().filter(|line| line.contains("\"observation\":")).count(), 2);
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let first = &json["rows"][0];
        assert_eq!(first["waits_s"], serde_json::json!({ "disk_iops": 2.5, "log_rate": 1.0 }));
        let bucket = serde_json::json!({ "lowest_ns": 1_024_000, "samples": 3 });
        assert_eq!(first["latency_histogram"][1], bucket);
        assert_eq!(first["fix_price_before"], 12.5);
        assert_eq!((&first["status"], &first["cap"]), (&"failed".into(), &().into()));
        assert_eq!(json["rows"][1]["latency_histogram"], serde_json::json!([]));
        assert_eq!(json["completed"], 0);
    }

    #[test]
    fn without_rows_the_list_is_empty() {
        let text = text(Vec::new()).expect("JSON");
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(json["rows"], serde_json::json!([]));
    }

    #[test]
    fn damaged_rows_are_named() {
        let check = |row: Row, expect: &str| {
            let Err(JsonError::Row(error)) = text(vec![Ok(row)]) else { panic!("{expect}") };
            assert!(error.to_string().contains(expect), "{error}");
        };
        let text = |text: &str| Some(text.to_owned());
        check(
            Row { waits: text("disk_iops"), ..Row::default() },
            "\"disk_iops\" in the column waits",
        );
        check(Row { latency_histogram: text("1:x"), ..Row::default() }, "latency_histogram");
        check(Row { fix_price_after: text("much"), ..Row::default() }, "fix_price_after");
    }
}
