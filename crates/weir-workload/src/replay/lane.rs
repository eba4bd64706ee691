//! The requests of a trace to one device, counted.

use crate::tally::{OpTally, wide};
use std::collections::BTreeMap;
use weir_report::replay::RecordedReport;
use weir_report::run::JobReport;
use weir_trace::Kind;
use weir_units::Span;

/// Names of the kinds that are counted apart.
const NAMES: [&str; 3] = ["read", "write", "trim"];

/// The requests of a trace to one device.
#[derive(Debug)]
pub(super) struct Lane {
    name: String,
    /// The device of the layout.
    pub(super) device: u32,
    replayed: [OpTally; 3],
    /// Latencies of the replay and of the record, of requests that have both.
    both: [[OpTally; 2]; 3],
    flushes: u64,
    /// Requests left out because they move nothing.
    pub(super) empty: u64,
    /// Requests moved into the device.
    pub(super) wrapped: u64,
}

impl Lane {
    pub(super) fn new(name: String, device: u32) -> Self {
        let pair = || [OpTally::new(), OpTally::new()];
        Self {
            name,
            device,
            replayed: [OpTally::new(), OpTally::new(), OpTally::new()],
            both: [pair(), pair(), pair()],
            flushes: 0,
            empty: 0,
            wrapped: 0,
        }
    }

    #[inline]
    pub(super) fn record(&mut self, kind: Kind, len: u64, latency: Span, recorded: Option<Span>) {
        let at = match kind {
            Kind::Read => 0,
            Kind::Write | Kind::WriteThrough => 1,
            Kind::Discard => 2,
            Kind::Flush => {
                self.flushes += 1;
                return;
            }
        };
        self.replayed[at].record(len, latency.nanos());
        if let Some(recorded) = recorded {
            let [own, then] = &mut self.both[at];
            own.record(len, latency.nanos());
            then.record(len, recorded.nanos());
        }
    }

    pub(super) fn job(&self, seconds: f64) -> JobReport {
        let latency: u128 = self.replayed.iter().map(OpTally::latency_sum).sum();
        let [read, write, trim] = [0, 1, 2].map(|at: usize| self.replayed[at].report(seconds));
        JobReport {
            name: self.name.clone(),
            processes: 1,
            measured_s: seconds,
            read,
            write,
            trim,
            queue_depth: if seconds > 0.0 { wide(latency) / 1e9 / seconds } else { 0.0 },
            hit_share: None,
            waits_ns: BTreeMap::new(),
            medium_ns: 0,
        }
    }

    /// Adds the requests to those of other lanes.
    pub(super) fn add_to(&self, sum: &mut OpTally) {
        self.replayed.iter().for_each(|own| sum.add(own));
    }

    pub(super) fn recorded(&self) -> impl Iterator<Item = RecordedReport> + '_ {
        let row = |(op, [own, then]): (&&'static str, &[OpTally; 2])| {
            let [replayed, recorded] = [own, then].map(|tally| tally.report(0.0));
            (recorded.ios > 0).then(|| RecordedReport {
                name: self.name.clone(),
                op: (*op).to_owned(),
                ios: recorded.ios,
                recorded: recorded.latency,
                replayed: replayed.latency,
            })
        };
        NAMES.iter().zip(&self.both).filter_map(row)
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let count =
            |count: u64, text: &str| (count > 0).then(|| format!("{}: {count} {text}", self.name));
        let notes = [
            count(self.flushes, "flushes are replayed and not part of the figures of jobs"),
            count(self.empty, "requests without a length are left out: they move no bytes"),
            count(self.wrapped, "requests lie beyond the end and were moved into the volume"),
        ];
        notes.into_iter().flatten().collect()
    }
}
