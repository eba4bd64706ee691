//! Time profiles of HammerDB (xtprof): the durations of stored procedures, in the log
//! `hdbxtprofile.log` and in the JSON of `job ID timing`.
//!
//! ```text
//!  MySQL Hammerdb Time Profile Report @ Thu Jan 27 05:47:26 UTC 2022
//!  >>>>> VIRTUAL USER 2 : ELAPSED TIME : 912505ms                       not used
//!  >>>>> SUMMARY OF 8 ACTIVE VIRTUAL USERS : MEDIAN ELAPSED TIME : 904548ms
//!  >>>>> PROC: NEWORD
//!  CALLS: 322104  MIN: 2.269ms  AVG: 9.236ms  MAX: 36.366ms  TOTAL: 2975206.250ms
//!  P99: 14.197ms  P95: 12.399ms  P50: 9.087ms  SD: 1808.882  RATIO: 41.115%
//! ```
//!
//! A standard deviation without a unit is in microseconds, as old versions print it.

use super::job::{self, MS, US};
use super::minute::{moment, tell_zone};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Sheet};
use crate::text::Lines;
use serde_json::Value;
use weir_observe::metric::{self as m, Metric};
use weir_observe::moment::Clock;

pub(crate) const KIND: Kind = Kind {
    name: "hammerdb-profile",
    about: "time profiles of HammerDB (hdbxtprofile.log, job ID timing)",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Word(&["calls"]),
        Sign::Word(&["avg_ms"]),
        Sign::Word(&["p99_ms"]),
        Sign::Text(&["PROC: ", "Profile"]),
    ]],
};

/// The most bytes of a document, which is kept in memory.
const LONGEST: usize = 64 << 20;

/// Latencies: name in the log, name in JSON, and metric.
const LATENCIES: [(&str, &str, &Metric); 7] = [
    ("MIN", "min_ms", &m::TRANSACTION_LATENCY_MIN_NS),
    ("AVG", "avg_ms", &m::TRANSACTION_LATENCY_NS),
    ("MAX", "max_ms", &m::TRANSACTION_LATENCY_MAX_NS),
    ("P99", "p99_ms", &m::TRANSACTION_LATENCY_P99_NS),
    ("P95", "p95_ms", &m::TRANSACTION_LATENCY_P95_NS),
    ("P50", "p50_ms", &m::TRANSACTION_LATENCY_P50_NS),
    ("SD", "sd", &m::TRANSACTION_LATENCY_STDDEV_NS),
];

fn recognizes(text: &str) -> bool {
    let has_names = || ["\"calls\"", "\"avg_ms\"", "\"p99_ms\""].iter().all(|n| text.contains(n));
    text.contains("Hammerdb Time Profile Report @")
        || text.lines().any(|line| line.starts_with(">>>>> PROC: "))
        || (text.trim_start().starts_with('{') && has_names())
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    let clock = options.clock;
    let (at, elapsed, is_zone_told) = (None, 0, false);
    let lines = Lines::new(input);
    Ok(Box::new(Profile { lines, clock, at, elapsed, samples: 0, is_zone_told }))
}

struct Profile {
    lines: Lines<Bytes>,
    clock: Clock,
    /// Time of the current report.
    at: Option<i64>,
    /// Total duration of all reports so far, in nanoseconds.
    elapsed: u64,
    samples: u64,
    is_zone_told: bool,
}

/// A summary of a report, as far as it was read.
struct Summary {
    /// Duration in nanoseconds.
    nanos: u64,
    users: Option<f64>,
    procedures: Vec<(String, Vec<(&'static Metric, f64)>)>,
}

impl ReadSamples for Profile {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        let mut summary: Option<Summary> = None;
        while let Some(line) = self.lines.next_line()? {
            let text = line.trim();
            if text.starts_with('{') && summary.is_none() {
                let summary = self.document(line)?;
                return Ok(Some(self.put(sheet, &summary)));
            }
            if let Some((_, when)) = text.split_once("Time Profile Report @") {
                if summary.is_some() {
                    self.lines.put_back(line);
                    break;
                }
                if let Some((at, zone)) = moment(self.clock, when) {
                    self.at = Some(at);
                    tell_zone(sheet, zone, &mut self.is_zone_told);
                }
                continue;
            }
            if let Some(rest) = text.strip_prefix(">>>>> SUMMARY OF ") {
                summary = Some(Summary::begin(rest));
            } else if text.starts_with(">>>>> VIRTUAL USER ") {
                sheet.unused("times of single virtual users");
            } else if let Some(summary) = &mut summary {
                let (number, is_open) = (self.lines.number(), self.lines.was_open());
                match summary.line(text) {
                    Ok(()) => {}
                    Err(_) if is_open => sheet.note("its last line was truncated and is left out"),
                    Err(reason) => return Err(ImportError::at(number, reason)),
                }
            }
        }
        match summary.filter(|summary| !summary.procedures.is_empty()) {
            Some(summary) => Ok(Some(self.put(sheet, &summary))),
            None if self.samples == 0 => {
                let reason = "it contains no SUMMARY of a time profile: it was truncated, or no \
                              run was completed";
                Err(ImportError::at(self.lines.number(), reason))
            }
            None => Ok(None),
        }
    }
}

impl Profile {
    fn put(&mut self, sheet: &mut Sheet, summary: &Summary) -> At {
        self.samples += 1;
        for (name, values) in &summary.procedures {
            let id = job::job(sheet, None, name);
            for (measure, value) in values {
                sheet.set(id, measure, *value);
                if **measure == m::TRANSACTIONS && summary.nanos > 0 {
                    let seconds = job::seconds(summary.nanos);
                    sheet.set(id, &m::TRANSACTIONS_PER_S, value / seconds);
                }
            }
            if let Some(users) = summary.users {
                sheet.set(id, &m::USERS, users);
            }
            job::put_interval(sheet, id, summary.nanos);
        }
        job::begin(sheet, summary.nanos);
        // Without a duration, one second separates them.
        self.elapsed = self.elapsed.saturating_add(summary.nanos.max(1_000_000_000));
        self.at.take().map_or(At::Since(self.elapsed), At::Wall)
    }

    /// Reads the JSON of `job ID timing` from its first line on.
    fn document(&mut self, first: String) -> Result<Summary, ImportError> {
        let begins = self.lines.number();
        let mut text = first;
        while let Some(line) = self.lines.next_line()? {
            text.push('\n');
            text.push_str(&line);
            if text.len() > LONGEST {
                let reason = format!("a document has more than {} MiB", LONGEST >> 20);
                return Err(ImportError::at(begins, reason));
            }
        }
        let value: Value = serde_json::from_str(&text).map_err(|error| {
            let line = begins + u64::try_from(error.line()).unwrap_or(1) - 1;
            ImportError::at(line, format!("incomplete JSON: {error}"))
        })?;
        let mut summary = Summary { nanos: 0, users: None, procedures: Vec::new() };
        for (name, own) in value.as_object().into_iter().flatten() {
            let number = |key: &str| match &own[key] {
                Value::String(text) => text.trim().parse::<f64>().ok(),
                value => value.as_f64(),
            };
            let Some(calls) = number("calls").filter(|calls| calls.is_finite()) else { continue };
            let mut values = vec![(&m::TRANSACTIONS, calls)];
            for (log, key, measure) in LATENCIES {
                let by = if log == "SD" { US } else { MS };
                values.extend(number(key).map(|value| (measure, value * by)));
            }
            let elapsed = number("elapsed_ms").map_or(0, |ms| job::nanos(ms / 1e3));
            summary.nanos = summary.nanos.max(elapsed);
            summary.procedures.push((name.clone(), values));
        }
        if summary.procedures.is_empty() {
            let reason = "a JSON document in which no procedure has \"calls\"";
            return Err(ImportError::at(begins, reason));
        }
        Ok(summary)
    }
}

impl Summary {
    /// Begins a summary with `8 ACTIVE VIRTUAL USERS : MEDIAN ELAPSED TIME : 904548ms`.
    fn begin(rest: &str) -> Self {
        let users = rest.split(' ').next().and_then(|users| users.parse().ok());
        let elapsed = rest.rsplit(' ').next().and_then(|text| text.strip_suffix("ms"));
        let ms = elapsed.and_then(|ms| ms.parse::<f64>().ok()).unwrap_or(0.0);
        Self { nanos: job::nanos(ms / 1e3), users, procedures: Vec::new() }
    }

    /// Takes a line; the error describes the malformed part.
    fn line(&mut self, text: &str) -> Result<(), String> {
        if let Some(name) = text.strip_prefix(">>>>> PROC: ") {
            self.procedures.push((name.trim().to_owned(), Vec::new()));
            return Ok(());
        }
        let Some((_, values)) = self.procedures.last_mut() else { return Ok(()) };
        if let Some((calls, _)) = value(text, "CALLS")? {
            values.push((&m::TRANSACTIONS, calls));
        }
        for (name, _, measure) in LATENCIES {
            let Some((number, unit)) = value(text, name)? else { continue };
            // Only the standard deviation of old versions has no unit.
            values.push((measure, number * if unit == "ms" { MS } else { US }));
        }
        Ok(())
    }
}

/// Finds `NAME: 9.236ms` in a line: the number, and the text after it.
fn value<'a>(text: &'a str, name: &str) -> Result<Option<(f64, &'a str)>, String> {
    let Some(at) = text.find(&format!("{name}: ")) else { return Ok(None) };
    let rest = text.get(at + name.len() + 2..).unwrap_or_default();
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
    let (number, behind) = rest.split_at(end);
    let unit = if behind.starts_with("ms") { "ms" } else { "" };
    let is_whole = unit == "ms" || matches!(name, "CALLS" | "SD");
    match number.parse::<f64>() {
        Ok(number) if is_whole => Ok(Some((number, unit))),
        _ => Err(format!("{name} is {rest:?}, which is not a number of milliseconds")),
    }
}

#[cfg(test)]
mod tests {
    use super::value;

    #[test]
    fn values_by_their_names() {
        let line = "CALLS: 41234\tMIN: 2.409ms\tAVG: 9.169ms\tSD: 1840.094\tRATIO: 41.435%";
        assert_eq!(value(line, "CALLS"), Ok(Some((41234.0, ""))));
        assert_eq!(value(line, "AVG"), Ok(Some((9.169, "ms"))));
        assert_eq!(value(line, "SD"), Ok(Some((1840.094, ""))));
        assert_eq!(value(line, "P99"), Ok(None));
        // Copied text loses its tabs.
        assert_eq!(value("CALLS: 7MIN: 2.4ms", "CALLS"), Ok(Some((7.0, ""))));
        assert!(value("MIN: x", "MIN").is_err() && value("MIN: 2.4", "MIN").is_err());
    }
}
