//! The report of all rows, added up one by one.

use crate::error::FleetError;
use crate::histogram::Latencies;
use crate::row::{Row, Status};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use weir_report::fleet_diagnosis::{
    FleetCapReport, FleetDiagnosisReport, FleetFailureReport, FleetFixReport, FleetLatencyReport,
    FleetServerReport,
};
use weir_report::number::{Amount, Delta};
use weir_units::Money;

/// Servers in the list of the longest waits.
const LONGEST: usize = 20;
/// Observations without a diagnosis that the report names.
const FAILURES: usize = 10;

/// The sums of the rows so far. Its memory does not grow with their number.
#[derive(Debug, Default)]
pub struct Summary {
    report: FleetDiagnosisReport,
    caps: BTreeMap<String, FleetCapReport>,
    fixes: BTreeMap<String, (u64, Money, Money)>,
    latencies: Latencies,
    server: Option<Server>,
}

/// The server whose rows follow each other.
#[derive(Debug)]
struct Server {
    name: String,
    is_diagnosed: bool,
    is_throttled: bool,
    /// The longest wait time, and the price before and after the fix of that row.
    fix: Option<(f64, Option<Price>)>,
}

#[derive(Debug)]
struct Price {
    currency: String,
    before: Money,
    after: Money,
}

impl Summary {
    /// Adds a row. Rows of one server follow each other, since results are in the order of servers.
    ///
    /// # Errors
    ///
    /// [`FleetError::Results`] if a field of the row is no number or histogram.
    pub fn add(&mut self, row: &Row) -> Result<(), FleetError> {
        let report = &mut self.report;
        row.fleet.clone_into(&mut report.fleet);
        report.observations = row.observations;
        report.completed += 1;
        report.partial += u64::from(row.status == Status::Partial);
        match row.verdict.as_deref() {
            Some("throttled") => report.verdicts.throttled += 1,
            Some("not-the-storage") => report.verdicts.not_the_storage += 1,
            Some("healthy") => report.verdicts.healthy += 1,
            Some("not-enough-evidence") => report.verdicts.not_enough_evidence += 1,
            _ => {}
        }
        if row.status == Status::Failed {
            report.failed += 1;
            if report.failures.len() < FAILURES {
                let reason = row.reason.clone().unwrap_or_default();
                report.failures.push(FleetFailureReport { file: row.file.clone(), reason });
            }
        }
        if let Some(text) = &row.latency_histogram {
            let added = self.latencies.add_text(text);
            added.map_err(|part| damaged(row, "latency_histogram", &part))?;
        }
        self.next_server(row)?;
        if row.is_throttled() {
            self.add_waits(row)?;
        }
        Ok(())
    }

    fn next_server(&mut self, row: &Row) -> Result<(), FleetError> {
        if self.server.as_ref().is_none_or(|own| own.name != row.server) {
            self.end_server();
            let name = row.server.clone();
            self.server =
                Some(Server { name, is_diagnosed: false, is_throttled: false, fix: None });
        }
        let Some(server) = self.server.as_mut() else { return Ok(()) };
        server.is_diagnosed |= row.status != Status::Failed;
        if !row.is_throttled() {
            return Ok(());
        }
        server.is_throttled = true;
        let waited = row.wait_s.unwrap_or(0.0);
        if server.fix.as_ref().is_none_or(|(most, _)| *most < waited) {
            server.fix = Some((waited, price(row)?));
        }
        Ok(())
    }

    fn end_server(&mut self) {
        let Some(server) = self.server.take() else { return };
        self.report.servers += 1;
        self.report.undiagnosed_servers += u64::from(!server.is_diagnosed);
        if !server.is_throttled {
            return;
        }
        self.report.throttled_servers += 1;
        let Some(Price { currency, before, after }) = server.fix.and_then(|(_, price)| price)
        else {
            self.report.unpriced_servers += 1;
            return;
        };
        let sum = self.fixes.entry(currency).or_insert((0, Money::ZERO, Money::ZERO));
        *sum = (sum.0 + 1, sum.1 + before, sum.2 + after);
    }

    fn add_waits(&mut self, row: &Row) -> Result<(), FleetError> {
        for wait in waits(row) {
            let (cap, wait_s) = wait?;
            let own = self.cap(cap);
            own.wait_s += wait_s;
            self.report.wait_s += wait_s;
        }
        let Some(cap) = &row.cap else { return Ok(()) };
        let own = self.cap(cap);
        own.observations += 1;
        own.throttled_s += row.throttled_s.unwrap_or(0.0);
        let longest = &mut self.report.longest_waits;
        longest.push(FleetServerReport {
            server: row.server.clone(),
            day: row.day.clone(),
            cap: cap.clone(),
            subject: row.subject.clone().unwrap_or_default(),
            limit: row.limit,
            limit_is_bytes: row.limit_is_bytes.unwrap_or(false),
            throttled_s: row.throttled_s.unwrap_or(0.0),
            wait_s: row.wait_s.unwrap_or(0.0),
            fix: row.fix.clone().unwrap_or_default(),
        });
        // A stable sort: of equal ones, the first in the order of the rows.
        longest.sort_by(|one, other| other.wait_s.total_cmp(&one.wait_s));
        longest.truncate(LONGEST);
        Ok(())
    }

    fn cap(&mut self, cap: &str) -> &mut FleetCapReport {
        self.caps.entry(cap.to_owned()).or_insert_with(|| FleetCapReport {
            cap: cap.to_owned(),
            observations: 0,
            throttled_s: 0.0,
            wait_s: 0.0,
        })
    }

    /// Returns the report.
    #[must_use]
    pub fn finish(mut self) -> FleetDiagnosisReport {
        self.end_server();
        let mut report = self.report;
        report.caps = self.caps.into_values().collect();
        report.caps.sort_by(|one, other| match other.wait_s.total_cmp(&one.wait_s) {
            Ordering::Equal => one.cap.cmp(&other.cap),
            order => order,
        });
        let fixes = self.fixes.into_iter().map(|(currency, (servers, before, after))| {
            let difference = Delta::between(before, after);
            let (before, after) = (Amount(before), Amount(after));
            FleetFixReport { currency, servers, before, after, difference }
        });
        report.fixes = fixes.collect();
        let at = |percentile| self.latencies.percentile(percentile).unwrap_or(0);
        let samples = self.latencies.count();
        report.latency = (samples > 0).then(|| FleetLatencyReport {
            samples,
            p50_ns: at(50.0),
            p95_ns: at(95.0),
            p99_ns: at(99.0),
        });
        report
    }
}

fn price(row: &Row) -> Result<Option<Price>, FleetError> {
    let (Some(currency), Some(before), Some(after)) =
        (&row.currency, &row.fix_price_before, &row.fix_price_after)
    else {
        return Ok(None);
    };
    let money = |column: &'static str, text: &str| {
        text.parse::<Money>().map_err(|_| damaged(row, column, text))
    };
    let before = money("fix_price_before", before)?;
    let after = money("fix_price_after", after)?;
    Ok(Some(Price { currency: currency.clone(), before, after }))
}

/// Returns the wait time of a row at each cap, in seconds.
pub(crate) fn waits(row: &Row) -> impl Iterator<Item = Result<(&str, f64), FleetError>> {
    row.waits.as_deref().unwrap_or_default().split_whitespace().map(|part| {
        let pair = part.split_once(':').and_then(|(cap, s)| Some((cap, s.parse().ok()?)));
        pair.ok_or_else(|| damaged(row, "waits", part))
    })
}

/// Names the field of a row that cannot be read.
pub(crate) fn damaged(row: &Row, column: &str, text: &str) -> FleetError {
    FleetError::Results {
        file: "the results".to_owned(),
        reason: format!(
            "observation {} ({}) has {text:?} in the column {column}",
            row.observation, row.file
        ),
    }
}
