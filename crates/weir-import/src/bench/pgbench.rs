//! Output of pgbench 9.6 to 17: progress (`-P`), and a summary of each run.
//!
//! ```text
//!  progress: 5.0 s, 1234.5 tps, lat 3.456 ms stddev 1.234, 0 failed
//!  transaction type: <builtin: TPC-B (sort of)>
//!  scaling factor: 100
//!  latency average = 3.485 ms
//!  tps = 6883.22 (including connections establishing)            until 13
//!  tps = 6884.10 (excluding connections establishing)
//!  tps = 6884.10 (without initial connection time)               since 14
//! ```
//!
//! Progress covers the interval before it, the summary the whole run. If there is progress, the
//! summary is therefore another job.

use super::job::{self, Facts, Jobs, MS};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Sheet};
use crate::text::Lines;
use weir_observe::header::Attribute;
use weir_observe::metric::{self as m, Metric};

pub(crate) const KIND: Kind = Kind {
    name: "pgbench",
    about: "output of pgbench",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Text(&["transaction type:"]),
        Sign::Text(&["scaling factor:"]),
        Sign::Text(&["number of transactions"]),
        Sign::Word(&["tps"]),
    ]],
};

fn recognizes(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim_start();
        line.starts_with("transaction type:")
            || line.starts_with("number of transactions actually processed:")
            || line.starts_with("pgbench (")
            || (line.starts_with("progress: ") && line.contains(" tps, lat "))
    })
}

fn open(input: Bytes, _: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(Box::new(Pgbench {
        lines: Lines::new(input),
        jobs: Jobs::default(),
        base: 0.0,
        end: 0.0,
        is_dated: false,
        held: None,
        has_progress: false,
        summary: Summary::default(),
        ended: false,
    }))
}

/// Values of a sample, with their metrics.
type Values = Vec<(&'static Metric, f64)>;

/// A line of progress.
#[derive(Debug)]
struct Progress {
    /// Seconds since the start of the run, or since 1970.
    seconds: f64,
    values: Values,
}

/// The summary of a run, as far as it is read.
#[derive(Debug, Default)]
struct Summary {
    script: Option<String>,
    facts: Facts,
    duration: Option<f64>,
    transactions: Option<f64>,
    tps: Option<f64>,
    values: Values,
    /// True if the following lines are of single scripts and statements.
    is_detail: bool,
}

struct Pgbench {
    lines: Lines<Bytes>,
    jobs: Jobs,
    /// Seconds at the start of the current run.
    base: f64,
    /// Seconds of the last sample.
    end: f64,
    is_dated: bool,
    /// Progress that the summary may join.
    held: Option<Progress>,
    has_progress: bool,
    summary: Summary,
    ended: bool,
}

impl ReadSamples for Pgbench {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        while !self.ended {
            let Some(line) = self.lines.next_line()? else {
                self.ended = true;
                break;
            };
            let text = line.trim();
            if let Some(progress) = text.strip_prefix("progress: ") {
                let Some(progress) = self.progress(sheet, progress)? else { continue };
                let done = self.end_of_run(sheet);
                self.has_progress = true;
                let before = self.held.replace(progress);
                if done.is_some() {
                    return Ok(done);
                }
                if let Some(before) = before {
                    return Ok(Some(self.put_progress(sheet, &before)));
                }
                continue;
            }
            let begins = text.starts_with("transaction type:") || text.starts_with("pgbench (");
            if begins && let Some(at) = self.end_of_run(sheet) {
                self.lines.put_back(line);
                return Ok(Some(at));
            }
            self.summary_line(sheet, text)?;
        }
        if let Some(at) = self.end_of_run(sheet) {
            return Ok(Some(at));
        }
        Ok(self.held.take().map(|held| self.put_progress(sheet, &held)))
    }
}

impl Pgbench {
    /// Parses `5.0 s, 1234.5 tps, lat 3.456 ms stddev 1.234, 0 failed, lag 0.1 ms, 3 skipped`.
    fn progress(&self, sheet: &mut Sheet, text: &str) -> Result<Option<Progress>, ImportError> {
        let mut seconds = None;
        let mut values = Values::new();
        for part in text.split(',') {
            let words: Vec<&str> = part.split_whitespace().collect();
            let number = |at: usize| words.get(at).and_then(|word| word.parse::<f64>().ok());
            match words[..] {
                [_, "s"] => seconds = number(0),
                [_, "tps"] => values.extend(number(0).map(|tps| (&m::TRANSACTIONS_PER_S, tps))),
                ["lat", ..] => {
                    let of = |name: &str| {
                        let at = words.iter().position(|word| *word == name)?;
                        number(at + 1).filter(|ms| ms.is_finite()).map(|ms| ms * MS)
                    };
                    let all = [
                        ("lat", &m::TRANSACTION_LATENCY_NS),
                        ("stddev", &m::TRANSACTION_LATENCY_STDDEV_NS),
                    ];
                    values.extend(
                        all.into_iter().filter_map(|(name, measure)| Some((measure, of(name)?))),
                    );
                }
                [_, what] => sheet.unused(what),
                [what, ..] => sheet.unused(what),
                [] => {}
            }
        }
        let tps = values.iter().find(|(measure, _)| **measure == m::TRANSACTIONS_PER_S);
        let (Some(seconds), Some((_, tps))) = (seconds, tps.copied()) else {
            if self.lines.was_open() {
                sheet.note("its last line was truncated and is left out");
                return Ok(None);
            }
            let reason = format!("progress is expected as \"N s, N tps, ..\", but found {text:?}");
            return Err(ImportError::at(self.lines.number(), reason));
        };
        if tps == 0.0 {
            // Without transactions there is no latency.
            values.retain(|(measure, _)| **measure == m::TRANSACTIONS_PER_S);
        }
        Ok(Some(Progress { seconds, values }))
    }

    /// Writes progress into the sheet.
    fn put_progress(&mut self, sheet: &mut Sheet, progress: &Progress) -> At {
        let id = job::job(sheet, None, "pgbench");
        for (measure, value) in &progress.values {
            sheet.set(id, measure, *value);
        }
        // Only seconds since 1970 are that large.
        self.is_dated = progress.seconds > 1e8;
        self.end = if self.is_dated { progress.seconds } else { self.base + progress.seconds };
        self.at()
    }

    /// Returns the time of the current sample.
    fn at(&self) -> At {
        let nanos = job::nanos(self.end);
        if self.is_dated {
            At::Wall(i64::try_from(nanos).unwrap_or(i64::MAX))
        } else {
            At::Since(nanos)
        }
    }

    /// Writes the result of a run, if its summary is complete.
    fn end_of_run(&mut self, sheet: &mut Sheet) -> Option<At> {
        let summary = std::mem::take(&mut self.summary);
        let tps = match summary.tps {
            Some(tps) => tps,
            None => {
                // Its head may be there already, before its results.
                self.summary = summary;
                return None;
            }
        };
        let held = self.held.take();
        let at = held.map(|held| self.put_progress(sheet, &held));
        let name = summary.script.as_deref().unwrap_or("pgbench");
        let name = if self.has_progress { format!("{name}, whole run") } else { name.to_owned() };
        let id = self.jobs.job(sheet, None, &name, &summary.facts);
        for (measure, value) in &summary.values {
            sheet.set(id, measure, *value);
        }
        if at.is_none() {
            let of_count = || summary.transactions.filter(|_| tps > 0.0).map(|count| count / tps);
            self.end = self.base + summary.duration.or_else(of_count).unwrap_or(1.0);
        }
        self.base = self.end;
        self.has_progress = false;
        Some(at.unwrap_or_else(|| self.at()))
    }

    fn summary_line(&mut self, sheet: &mut Sheet, text: &str) -> Result<(), ImportError> {
        let detail = ["SQL script", "statement latencies", "- statement latencies", "- latencies"];
        if detail.iter().any(|head| text.starts_with(head)) {
            self.summary.is_detail = true;
            sheet.unused("results of single scripts and statements");
        }
        if self.summary.is_detail && !text.starts_with("transaction type:") {
            return Ok(());
        }
        if let Some(version) = text.strip_prefix("pgbench (") {
            sheet.about("pgbench", version.split(')').next().unwrap_or(version));
            return Ok(());
        }
        let Some((name, value)) = text.split_once([':', '=']) else { return Ok(()) };
        match self.summary.fact(name.trim(), value.trim()) {
            Ok(()) => Ok(()),
            Err(_) if self.lines.was_open() => {
                sheet.note("its last line was truncated and is left out");
                Ok(())
            }
            Err(reason) => Err(ImportError::at(self.lines.number(), reason)),
        }
    }
}

impl Summary {
    /// Takes a line of the summary; the error describes the malformed part.
    fn fact(&mut self, name: &str, value: &str) -> Result<(), String> {
        let first = value.split([' ', '/']).next().unwrap_or_default();
        let number = || {
            first.parse::<f64>().map_err(|_| format!("{name} is {first:?}, which is not a number"))
        };
        let whole = || number().map(job::whole);
        let nanos = || -> Result<f64, String> {
            let unit = value.split_whitespace().nth(1).unwrap_or("ms");
            Ok(number()? * if unit == "us" { job::US } else { MS })
        };
        let mut add = |what: &'static str, value: Option<u64>| {
            self.facts.extend(value.map(|value| (what, Attribute::from(value))));
        };
        match name {
            "transaction type" => {
                *self = Self { script: Some(value.to_owned()), ..Self::default() };
            }
            "scaling factor" => add("scale", whole()?),
            "number of clients" => {
                add("clients", whole()?);
                self.values.push((&m::USERS, number()?));
            }
            "number of threads" => add("threads", whole()?),
            "query mode" => self.facts.push(("query_mode", value.into())),
            "duration" => self.duration = Some(number()?),
            "number of transactions actually processed" => {
                self.transactions = Some(number()?);
                self.values.push((&m::TRANSACTIONS, number()?));
            }
            "number of failed transactions" => {
                self.values.push((&m::TRANSACTIONS_FAILED, number()?));
            }
            "latency average" => self.values.push((&m::TRANSACTION_LATENCY_NS, nanos()?)),
            "latency stddev" => self.values.push((&m::TRANSACTION_LATENCY_STDDEV_NS, nanos()?)),
            "tps" if value.contains("including connections") => {
                self.values.push((&m::TRANSACTIONS_WITH_CONNECTING_PER_S, number()?));
                self.tps = self.tps.or(Some(number()?));
            }
            "tps" => {
                self.values.push((&m::TRANSACTIONS_PER_S, number()?));
                self.tps = Some(number()?);
            }
            _ => {}
        }
        Ok(())
    }
}
