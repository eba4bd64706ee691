//! The required parts of fio's `json+` report.

use super::job_file;
use crate::error::RunnerError;
use serde::Deserialize;
use serde::de::Error as _;
use std::collections::BTreeMap;
use weir_report::number::float;
use weir_report::run::{JobReport, LatencyReport, OpReport};

#[derive(Debug, Deserialize)]
pub(super) struct Output {
    #[serde(rename = "fio version")]
    pub(super) version: String,
    jobs: Vec<Process>,
}

/// The results of one process.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Process {
    jobname: String,
    read: Side,
    write: Side,
    trim: Side,
}

/// One kind of operation.
#[derive(Debug, Default, Deserialize)]
struct Side {
    io_bytes: u64,
    /// In milliseconds.
    runtime: u64,
    clat_ns: Latency,
}

#[derive(Debug, Default, Deserialize)]
struct Latency {
    min: u64,
    max: u64,
    mean: f64,
    /// Completed operations, which `io_bytes` counts too. `total_ios` counts issued ones,
    /// without those that were in flight at the end of the ramp.
    #[serde(rename = "N")]
    count: u64,
    /// Occurrences of each latency, within 1 %.
    #[serde(default)]
    bins: BTreeMap<u64, u64>,
}

impl Output {
    /// Reads the report; fio may have written notes before it.
    pub(super) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let start = if text.starts_with('{') { Some(0) } else { text.find("\n{") };
        serde_json::from_str(&text[start.unwrap_or(0)..])
    }

    /// Makes the report of `count` processes that have done nothing.
    pub(super) fn nothing(count: usize) -> Self {
        Self {
            version: "fio".to_owned(),
            jobs: (0..count)
                .map(|process| Process {
                    jobname: job_file::section(process),
                    ..Process::default()
                })
                .collect(),
        }
    }

    /// Returns the processes by their numbers.
    pub(super) fn in_order(&self, count: usize) -> Result<Vec<&Process>, RunnerError> {
        let mut by_name: BTreeMap<&str, &Process> =
            self.jobs.iter().map(|process| (process.jobname.as_str(), process)).collect();
        let mut take = |process| {
            let name = job_file::section(process);
            let found = by_name
                .remove(name.as_str())
                .ok_or_else(|| serde_json::Error::custom(format!("it says nothing about {name}")));
            found.map_err(|source| RunnerError::FioReport { source })
        };
        (0..count).map(&mut take).collect()
    }
}

impl Process {
    /// Returns the measured time.
    pub(super) fn seconds(&self) -> f64 {
        let sides = [&self.read, &self.write, &self.trim];
        float(sides.map(|side| side.runtime).into_iter().max().unwrap_or(0)) / 1e3
    }
}

/// Adds the sums of `processes` to a report.
pub(super) fn report(empty: JobReport, processes: &[&Process]) -> JobReport {
    let seconds = processes.iter().map(|process| process.seconds()).fold(0.0, f64::max);
    let side = |of: fn(&Process) -> &Side| {
        let sides: Vec<&Side> = processes.iter().map(|process| of(process)).collect();
        op_report(&sides, seconds)
    };
    let (read, write, trim) = (side(|p| &p.read), side(|p| &p.write), side(|p| &p.trim));
    let busy = |op: &OpReport| float(op.ios) * op.latency.mean / 1e9;
    let busy = busy(&read) + busy(&write) + busy(&trim);
    let queue_depth = if seconds > 0.0 { busy / seconds } else { 0.0 };
    JobReport { measured_s: seconds, read, write, trim, queue_depth, ..empty }
}

fn op_report(sides: &[&Side], seconds: f64) -> OpReport {
    let (ios, bytes) = sides
        .iter()
        .fold((0, 0), |(ios, bytes), side| (ios + side.clat_ns.count, bytes + side.io_bytes));
    let per_s = |n: u64| if seconds > 0.0 { float(n) / seconds } else { 0.0 };
    let latencies: Vec<&Latency> =
        sides.iter().map(|side| &side.clat_ns).filter(|latency| latency.count > 0).collect();
    OpReport {
        ios,
        bytes,
        iops: per_s(ios),
        bytes_per_s: per_s(bytes),
        latency: latency_report(&latencies),
    }
}

fn latency_report(latencies: &[&Latency]) -> LatencyReport {
    let count: u64 = latencies.iter().map(|latency| latency.count).sum();
    if count == 0 {
        return LatencyReport::default();
    }
    let mut bins: BTreeMap<u64, u64> = BTreeMap::new();
    for (nanos, times) in latencies.iter().flat_map(|latency| &latency.bins) {
        *bins.entry(*nanos).or_default() += times;
    }
    let sum: f64 = latencies.iter().map(|latency| latency.mean * float(latency.count)).sum();
    let max = latencies.iter().map(|latency| latency.max).max().unwrap_or(0);
    let at = |permille| quantile(&bins, permille).min(max);
    LatencyReport {
        mean: sum / float(count),
        min: latencies.iter().map(|latency| latency.min).min().unwrap_or(0),
        p50: at(500),
        p90: at(900),
        p95: at(950),
        p99: at(990),
        p99_9: at(999),
        max,
    }
}

/// Returns the smallest latency that `permille` of all do not exceed.
fn quantile(bins: &BTreeMap<u64, u64>, permille: u64) -> u64 {
    let count: u64 = bins.values().sum();
    let wanted = (count * permille).div_ceil(1000);
    let mut seen = 0;
    for (nanos, times) in bins {
        seen += times;
        if seen >= wanted {
            return *nanos;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(mean: f64, bins: &[(u64, u64)]) -> Latency {
        let bins: BTreeMap<u64, u64> = bins.iter().copied().collect();
        let (min, max) = (*bins.keys().next().unwrap(), *bins.keys().last().unwrap());
        Latency { min, max, mean, count: bins.values().sum(), bins }
    }

    #[test]
    fn percentiles_are_of_all_processes_together() {
        let (fast, slow) = (latency(10.0, &[(10, 900)]), latency(100.0, &[(90, 50), (110, 50)]));
        let joined = latency_report(&[&fast, &slow]);
        let expect = LatencyReport {
            mean: 19.0,
            min: 10,
            p50: 10,
            p90: 10,
            p95: 90,
            p99: 110,
            p99_9: 110,
            max: 110,
        };
        assert_eq!(joined, expect);
        assert_eq!(latency_report(&[]), LatencyReport::default());
    }

    #[test]
    fn a_percentile_is_not_above_the_maximum() {
        let mut seen = latency(95.0, &[(96, 1)]);
        seen.max = 95;
        assert_eq!(latency_report(&[&seen]).p50, 95);
    }

    #[test]
    fn a_report_is_found_behind_notes() {
        let side = r#"{"total_ios":2,"io_bytes":12288,"runtime":1500,
            "clat_ns":{"min":1,"max":9,"mean":4.5,"stddev":0.1,"N":3,"bins":{"1":2,"9":1}}}"#;
        let text = format!(
            "fio: a note\nand {{more}}\n{{\"fio version\":\"fio-3.33\",\"jobs\":[\
             {{\"jobname\":\"process0\",\"read\":{side},\"write\":{side},\"trim\":{side}}}]}}\n"
        );
        for text in [text.as_str(), &text[text.find("\n{").unwrap() + 1..]] {
            let output = Output::parse(text).unwrap();
            let process = output.in_order(1).unwrap()[0];
            assert_eq!(process.seconds(), 1.5);
            let read = op_report(&[&process.read], 1.5);
            assert_eq!((read.ios, read.bytes, read.iops), (3, 12_288, 2.0));
            assert_eq!(process.read.clat_ns.bins, BTreeMap::from([(1, 2), (9, 1)]));
            let missing = output.in_order(2).unwrap_err().to_string();
            let expect = "cannot read fio's report: it says nothing about process1; \
                          fio 3.33 is known to work";
            assert_eq!(missing, expect);
        }
        assert!(Output::parse("fio: no report").is_err());
    }
}
