//! Traces that were recorded or replayed.

use crate::answer::Answer;
use crate::cells;
use crate::number::{float, grouped, percent, rate, time};
use crate::page::RunPage;
use crate::run::{LatencyReport, RunReport, SimReport, WritebackReport};
use crate::table::{Report, Table};
use serde::Serialize;
use std::collections::BTreeMap;
use weir_units::Span;

/// A replay has fallen behind if a request was complete later than this after it was due.
pub const BEHIND: Span = Span::from_secs(1);
/// It has also fallen behind if it ends later than its last arrival by more than this many seconds,
/// and by more than this part of its length.
const END_S: f64 = 0.1;
const END: f64 = 0.01;

/// The result of a replay.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplayReport {
    /// The run. A job is a device of a trace.
    #[serde(flatten)]
    pub run: RunReport,
    /// The pace.
    pub pace: String,
    /// True if requests waited for others, and not for their recorded times.
    pub is_closed: bool,
    /// Completed requests, including flushes.
    pub requests: u64,
    /// Time from the first arrival to the last, as recorded.
    pub recorded_s: f64,
    /// Time in which the requests were due at the pace; 0 for a closed replay.
    pub due_s: f64,
    /// Requests that were issued later than they were due.
    pub late: u64,
    /// The longest delay of these.
    pub late_most_ns: u64,
    /// The longest time from which a request was due to its completion; 0 for a closed replay.
    pub behind_most_ns: u64,
    /// Time in which the latest completed request was more than [`BEHIND`] behind.
    pub behind_ns: u64,
    /// False if the replay ended before its traces: by a signal or an error.
    pub is_whole: bool,
    /// Requests that were issued and not complete at its end.
    pub in_flight: u64,
    /// Requests that were due and not issued at its end, if it ended early.
    pub unissued: u64,
    /// Recorded latencies beside those of the replay.
    pub recorded: Vec<RecordedReport>,
    /// Volumes with write-backs of a host cache.
    pub writebacks: Vec<WritebackReport>,
}

/// Recorded latencies beside those of the replay, of the requests that have both.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecordedReport {
    /// The job.
    pub name: String,
    /// read, write or trim.
    pub op: String,
    /// Requests with a recorded latency.
    pub ios: u64,
    /// As recorded.
    pub recorded: LatencyReport,
    /// In the replay.
    pub replayed: LatencyReport,
}

impl ReplayReport {
    /// Returns whether the layout completed the requests as they came. A replay that ended early
    /// does not show it.
    #[must_use]
    pub fn keeps_up(&self) -> bool {
        let end_s = self.run.elapsed_s - self.due_s;
        let is_near = self.behind_most_ns <= BEHIND.nanos() && end_s <= END_S.max(self.due_s * END);
        self.is_whole && (self.is_closed || is_near)
    }

    /// Returns the limit that requests waited for most, and its share of their latency.
    fn binding(&self) -> Option<(String, f64)> {
        let mut waits: BTreeMap<&str, u64> = BTreeMap::new();
        // In wall time, only the volumes know the limits that requests waited for.
        let jobs = self.run.jobs.iter().map(|own| (&own.waits_ns, own.medium_ns));
        let volumes = self.run.volumes.iter().map(|own| (&own.waits_ns, own.medium_ns));
        let is_of_jobs = self.run.jobs.iter().any(|own| !own.waits_ns.is_empty());
        let parts: Vec<_> = if is_of_jobs { jobs.collect() } else { volumes.collect() };
        for (cap, ns) in parts.iter().flat_map(|(own, _)| own.iter()) {
            *waits.entry(cap).or_default() += ns;
        }
        let medium: u64 = parts.iter().map(|(_, medium)| medium).sum();
        let total = medium + waits.values().sum::<u64>();
        let (cap, most) = waits.into_iter().max_by_key(|(_, ns)| *ns).filter(|(_, ns)| *ns > 0)?;
        Some((cap.to_owned(), float(most) / float(total)))
    }

    fn answer(&self) -> Answer {
        let requests = grouped(self.requests);
        let (elapsed, due) = (rate(self.run.elapsed_s), rate(self.due_s));
        let line = match (self.is_closed, self.keeps_up()) {
            _ if !self.is_whole => format!(
                "No verdict, since the replay ended early: {requests} requests are complete, {} are \
                 not, and {} were due and not issued",
                grouped(self.in_flight),
                grouped(self.unissued)
            ),
            (true, _) => format!(
                "{requests} requests take {elapsed} s as fast as their dependencies allow; they \
                 were recorded in {} s",
                rate(self.recorded_s)
            ),
            (false, true) => format!(
                "It keeps up: {requests} requests that arrive in {due} s are complete after \
                 {elapsed} s"
            ),
            (false, false) => format!(
                "It falls behind: {requests} requests arrive in {due} s and take {elapsed} s"
            ),
        };
        let bound = self.binding().map(|(cap, share)| {
            format!("requests wait most for {cap}: {} of their latency", percent(share))
        });
        let latencies = self.recorded.iter().max_by_key(|own| own.ios).map(|own| {
            let [now, then] = [own.replayed.p99, own.recorded.p99].map(|ns| time(float(ns)));
            format!("99 % of the {}s of {} take up to {now}; recorded: {then}", own.op, own.name)
        });
        let late = (self.late > 0).then(|| {
            format!(
                "{} requests were issued late, by at most {}; their latency counts from the time at \
                 which they were due",
                grouped(self.late),
                time(float(self.late_most_ns))
            )
        });
        let is_behind = !self.is_closed && self.behind_most_ns > BEHIND.nanos();
        let behind = is_behind.then(|| {
            format!(
                "requests are complete up to {} after they are due, and for {} more than {}",
                time(float(self.behind_most_ns)),
                time(float(self.behind_ns)),
                time(float(BEHIND.nanos()))
            )
        });
        Answer {
            line,
            details: behind.into_iter().chain(bound).chain(latencies).chain(late).collect(),
            notes: Vec::new(),
        }
    }

    fn recorded_table(&self) -> Table {
        let heads = [
            "latency of|job",
            "op",
            "|ios",
            ">p50|replayed_p50_ns",
            ">recorded|recorded_p50_ns",
            ">p99|replayed_p99_ns",
            ">recorded|recorded_p99_ns",
            ">max|replayed_max_ns",
            ">recorded|recorded_max_ns",
            "|replayed_mean_ns",
            "|recorded_mean_ns",
        ];
        let mut table = Table::new("", &heads).named("recorded");
        for own in &self.recorded {
            let (now, then) = (&own.replayed, &own.recorded);
            let pairs = [now.p50, then.p50, now.p99, then.p99, now.max, then.max];
            let mut row = cells![own.name.as_str(), own.op.as_str(), grouped(own.ios)];
            row.extend(pairs.map(|ns| time(float(ns))));
            row.extend([time(now.mean), time(then.mean)]);
            table.row(row);
        }
        table
    }

    /// Returns the figures of the replay, for CSV.
    fn figures(&self) -> Table {
        let heads = [
            "|pace",
            "|requests",
            "|recorded_s",
            "|due_s",
            "|late",
            "|late_most_ns",
            "|behind_most_ns",
            "|behind_ns",
            "|is_whole",
            "|in_flight",
            "|unissued",
        ];
        let mut table = Table::new("", &heads).named("replay");
        table.row(cells![
            self.pace.as_str(),
            grouped(self.requests),
            rate(self.recorded_s),
            rate(self.due_s),
            grouped(self.late),
            grouped(self.late_most_ns),
            grouped(self.behind_most_ns),
            grouped(self.behind_ns),
            self.is_whole.to_string(),
            grouped(self.in_flight),
            grouped(self.unissued),
        ]);
        table
    }
}

impl RunPage for ReplayReport {
    fn verdict(&self) -> String {
        self.answer().line
    }

    fn facts(&self) -> Vec<String> {
        self.answer().details
    }

    fn remarks(&self) -> Vec<String> {
        self.run.notes.clone()
    }
}

impl Report for ReplayReport {
    fn tables(&self) -> Vec<Table> {
        let (run, writebacks) = (self.run.clone(), self.writebacks.clone());
        let mut tables = SimReport { run, writebacks }.tables();
        tables.insert(1, self.recorded_table());
        tables.push(self.figures());
        tables
    }

    fn lead(&self) -> Option<Answer> {
        Some(self.answer())
    }
}

/// The result of a recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RecordReport {
    /// The file.
    pub path: String,
    /// Description of the source.
    pub source: String,
    /// Requests in the file.
    pub requests: u64,
    /// Requests that are missing, because the recorder was too slow.
    pub lost: u64,
    /// Time of the last request since the start of the trace.
    pub length_s: f64,
    /// Bytes of the file.
    pub bytes: u64,
    /// The devices.
    pub devices: Vec<RecordedDevice>,
    /// Notes about the source.
    pub notes: Vec<String>,
}

/// The requests of a device of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RecordedDevice {
    /// Its name.
    pub name: String,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Discards.
    pub discards: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// The end of the request that reaches furthest: the smallest volume for a replay.
    pub reaches_bytes: u64,
}

impl RecordedDevice {
    /// Returns whether the trace has requests of it.
    #[must_use]
    pub const fn is_used(&self) -> bool {
        self.reads + self.writes + self.discards + self.flushes > 0
    }
}

impl RecordReport {
    fn answer(&self) -> Answer {
        let requests = grouped(self.requests);
        let line = match self.lost {
            0 => format!("{requests} requests of {} s are in {}", rate(self.length_s), self.path),
            lost => format!(
                "{} requests are missing in {}, because the recorder was too slow",
                grouped(lost),
                self.path
            ),
        };
        let bytes = grouped(self.bytes);
        let size = match self.requests {
            0 => format!("{bytes} bytes"),
            n => format!("{bytes} bytes, {:.2} for each request", float(self.bytes) / float(n)),
        };
        Answer { line, details: vec![self.source.clone(), size], notes: self.notes.clone() }
    }
}

impl Report for RecordReport {
    fn tables(&self) -> Vec<Table> {
        let heads = [
            "device",
            ">reads",
            ">writes",
            ">discards",
            ">flushes",
            ">MiB|bytes",
            ">reaches MiB|reaches_bytes",
        ];
        let mut table = Table::new("", &heads);
        for own in &self.devices {
            table.row(cells![
                own.name.as_str(),
                grouped(own.reads),
                grouped(own.writes),
                grouped(own.discards),
                grouped(own.flushes),
                crate::number::mib(float(own.bytes)),
                crate::number::mib(float(own.reaches_bytes)),
            ]);
        }
        vec![table]
    }

    fn lead(&self) -> Option<Answer> {
        Some(self.answer())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::ClockName;
    use crate::screen::PIPE_WIDTH;
    use crate::screen::Screen;

    fn report(elapsed_s: f64, due_s: f64) -> ReplayReport {
        let run = RunReport {
            clock: ClockName::Virtual,
            seed: 1,
            elapsed_s,
            trace_hash: None,
            jobs: Vec::new(),
            volumes: Vec::new(),
            hosts: Vec::new(),
            series: Vec::new(),
            notes: Vec::new(),
        };
        ReplayReport {
            run,
            pace: "recorded".to_owned(),
            is_closed: false,
            requests: 1_000,
            recorded_s: due_s,
            due_s,
            late: 0,
            late_most_ns: 0,
            behind_most_ns: 0,
            behind_ns: 0,
            is_whole: true,
            in_flight: 0,
            unissued: 0,
            recorded: Vec::new(),
            writebacks: Vec::new(),
        }
    }

    #[test]
    fn the_first_line_says_whether_the_layout_keeps_up() {
        let first = |elapsed_s, due_s| {
            let text = report(elapsed_s, due_s).text(&Screen::unlimited());
            text.lines().next().unwrap_or_default().to_owned()
        };
        assert!(first(10.09, 10.0).starts_with("It keeps up: 1,000 requests"));
        assert!(first(1_009.0, 1_000.0).starts_with("It keeps up"));
        assert!(first(10.2, 10.0).starts_with("It falls behind"));
        let closed = ReplayReport { is_closed: true, due_s: 0.0, ..report(99.0, 10.0) };
        assert!(closed.text(&Screen::unlimited()).contains("were recorded in 10"));
    }

    #[test]
    fn a_replay_that_was_behind_in_its_middle_does_not_keep_up() {
        let own = ReplayReport {
            behind_most_ns: 70_000_000_000,
            behind_ns: 90_000_000_000,
            ..report(7_200.0, 7_200.0)
        };
        let text = own.text(&Screen::unlimited());
        assert!(text.starts_with("It falls behind: 1,000 requests"), "{text}");
        assert!(text.contains("complete up to 70") && text.contains("for 90"), "{text}");
    }

    #[test]
    fn a_replay_that_ended_early_has_no_verdict() {
        let own = ReplayReport { is_whole: false, in_flight: 7, unissued: 12, ..report(1.0, 1.0) };
        assert!(!own.keeps_up());
        let text = own.text(&Screen::unlimited());
        let line = text.lines().next().unwrap_or_default();
        let expect = "No verdict, since the replay ended early: 1,000 requests are complete, 7 are \
                      not, and 12 were due and not issued";
        assert_eq!(line, expect);
    }

    #[test]
    fn recorded_latencies_stand_beside_those_of_the_replay_in_80_columns() {
        let latency = |p50, p99, max| LatencyReport { p50, p99, max, ..LatencyReport::default() };
        let recorded = RecordedReport {
            name: "web/0 on data".to_owned(),
            op: "write".to_owned(),
            ios: 10,
            recorded: latency(1_500_000, 91_230_000, 20_000_000_000),
            replayed: latency(2_500_000, 12_340_000, 30_000_000_000),
        };
        let report = ReplayReport { recorded: vec![recorded], ..report(1.0, 1.0) };
        let text = report.text(&Screen::of_width(PIPE_WIDTH));
        assert!(text.lines().all(|line| line.chars().count() <= PIPE_WIDTH), "{text}");
        assert!(text.contains("2.50 ms") && text.contains("91.23 ms"), "{text}");
    }
}
