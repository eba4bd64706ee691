//! Counters of a run. The simulator counts in the same way.

use super::flight::Flight;
use weir_report::number::float;
use weir_report::run::{ClockName, RunReport};
use weir_units::{Instant, Span};
use weir_workload::{JobSpec, Series, Tally, Workload};

pub(super) struct Score {
    tally: Tally,
    series: Option<Series>,
    /// Processes with a ramp.
    ramped: Vec<bool>,
    first: Option<Instant>,
    last: Instant,
}

impl Score {
    pub(super) fn new(specs: &[JobSpec], windows: Option<Span>) -> Self {
        Self {
            tally: Tally::new(specs.len()),
            series: windows.map(Series::new),
            ramped: specs.iter().map(|spec| spec.ramp_time > Span::ZERO).collect(),
            first: None,
            last: Instant::ZERO,
        }
    }

    /// Notes that a request was issued.
    #[inline]
    pub(super) fn issued(&mut self, now: Instant) {
        self.first.get_or_insert(now);
    }

    /// Counts a completed request.
    #[inline]
    pub(super) fn record(&mut self, workload: &Workload, flight: &Flight, now: Instant) {
        let Flight { process, op, length, .. } = *flight;
        self.last = now;
        if let Some(series) = &mut self.series {
            series.record(now, op, u64::from(length), None);
        }
        if self.counts(workload, process, now) {
            self.tally.record(process, op, length.into(), now - flight.issued);
        }
    }

    /// Returns whether a process is past its ramp.
    fn counts(&self, workload: &Workload, process: u32, now: Instant) -> bool {
        if !self.ramped[process as usize] {
            return true;
        }
        let state = workload.process_state(process);
        state.and_then(|state| state.measuring_from).is_some_and(|from| now >= from)
    }

    pub(super) fn report(
        &self,
        workload: &Workload,
        specs: &[JobSpec],
        seed: u64,
        now: Instant,
    ) -> RunReport {
        let elapsed = self.last - self.first.unwrap_or_default();
        RunReport {
            clock: ClockName::Wall,
            seed,
            elapsed_s: float(elapsed.nanos()) / 1e9,
            trace_hash: None,
            jobs: self.tally.jobs(workload, specs, now),
            volumes: Vec::new(),
            hosts: Vec::new(),
            series: self.series.as_ref().map(|s| s.points(self.last)).unwrap_or_default(),
            notes: Vec::new(),
        }
    }
}
