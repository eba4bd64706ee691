//! The pass over the samples of one subject.

use super::arrivals::Arrivals;
use super::attribution::Attribution;
use super::bins::{LoadHistogram, NEAR, bin, queued};
use super::cap::OFTEN_IDLE;
use super::facts::{OverTime, SubjectFacts};
use super::moments::Moments;
use crate::system::{Counts, Medium};
use hdrhistogram::Histogram;
use weir_observe::load::Load;
use weir_observe::rates::{Points, Reading, Spread};
use weir_units::Span;

/// Below this utilisation, latency is that of the medium.
const IDLE: f64 = 0.3;

/// Requests that waited for others for less than this share of their latency count as isolated.
const ALONE: f64 = 0.25;

/// A sample with this multiple of the unloaded latency is slow.
const SLOW: f64 = 1.5;

/// Number of samples after which the unloaded latency is computed again.
const AGAIN: u64 = 64;

/// Follows the samples of a subject.
#[derive(Debug)]
pub(super) struct SubjectTrack {
    pub(super) facts: SubjectFacts,
    moments: Moments,
    pub(super) arrivals: Arrivals,
    parts: Vec<(usize, f64)>,
    /// The unloaded latency after a number of samples: in nanoseconds, or in thousandths of the
    /// medium's.
    unloaded: Option<f64>,
    looked: u64,
}

impl SubjectTrack {
    pub(super) fn new(caps: usize) -> Self {
        // Two significant digits are always possible.
        let histogram = || Histogram::new(2).unwrap_or_else(|_| unreachable!("2 digits"));
        let second = Span::from_secs(1);
        let facts = SubjectFacts {
            whole: LoadHistogram::new(caps),
            slow: LoadHistogram::new(caps),
            peaks: vec![(0.0, 0.0); caps],
            total: Load { operations: Some(0.0), bytes: Some(0.0), ..Load::default() },
            iops: Spread::default(),
            bytes: Spread::default(),
            depth: Spread::default(),
            idle_latency: histogram(),
            alone: histogram(),
            apart: histogram(),
            latency: histogram(),
            moments: Vec::new(),
            has_queue_times: false,
            has_zero_queue_times: false,
            waited: Vec::new(),
            over_time: OverTime {
                iops: Points::new(second),
                bytes: Points::new(second),
                latency_ms: Points::new(second),
            },
        };
        Self {
            facts,
            moments: Moments::default(),
            arrivals: Arrivals::default(),
            parts: Vec::new(),
            unloaded: None,
            looked: 0,
        }
    }

    /// Takes a sample; `caps_of` is the path by the caps of the system.
    pub(super) fn take(&mut self, attribution: &Attribution<'_>, caps_of: &[Counts]) {
        let Attribution { subject, load, path, medium, caps, .. } = *attribution;
        let closed_loop = load.depth.filter(|_| self.arrivals.are_closed_loop());
        let randomness = match closed_loop {
            // In a closed loop, a request waits for the other requests in flight at most.
            Some(depth) => 1.0 - 1.0 / depth.max(1.0),
            None if self.arrivals.are_even() => 0.0,
            None => 1.0,
        };
        let used = attribution.parts(&mut self.parts);
        let is_slow = self.is_slow(load, medium, used);
        let facts = &mut self.facts;
        let operations = load.operations.unwrap_or(0.0);
        let (mut is_bounded, mut likely_ns) = (true, 0.0_f64);
        for counts in path {
            let likely = caps[counts.cap].longest(subject, randomness).likely_ns;
            is_bounded &= likely.is_some();
            // Limits in a row account for the wait at the slowest.
            likely_ns = likely_ns.max(likely.unwrap_or(0.0));
        }
        for (place, part) in &self.parts {
            let at_peak = caps[path[*place].cap].is_at_peak();
            facts.peaks[*place].0 += if at_peak { operations * part } else { 0.0 };
            facts.peaks[*place].1 += operations * part;
        }
        for stretch in [Some(&mut facts.whole), is_slow.then_some(&mut facts.slow)] {
            let Some(stretch) = stretch else { continue };
            for (place, part) in &self.parts {
                let longest = caps[path[*place].cap].longest(subject, randomness);
                let possible = (longest.ns * operations, longest.most_ns * operations);
                stretch.bins[*place][bin(used)].add(load, *part, possible);
            }
            if self.parts.is_empty() {
                stretch.bins[path.len()][bin(used)].add(load, 1.0, (0.0, 0.0));
            }
            stretch.take(load, is_bounded);
        }
        facts.has_queue_times |= queued(load).is_some();
        add(&mut facts.total, load);
        let reading = |amount: f64| Reading { from: load.from, to: load.to, amount };
        facts.over_time.reach(load.to);
        if let Some(operations) = load.operations {
            facts.iops.add(&reading(operations));
            facts.over_time.iops.add(&reading(operations));
        }
        if let Some(bytes) = load.bytes {
            facts.bytes.add(&reading(bytes));
            facts.over_time.bytes.add(&reading(bytes));
        }
        if let Some(depth) = load.depth {
            facts.depth.add(&reading(depth * load.seconds()));
        }
        if let Some(latency) = load.latency_ns() {
            record(&mut facts.latency, latency, 1);
            let milliseconds = latency / 1e6;
            facts.over_time.latency_ms.add(&reading(milliseconds * load.seconds()));
            let alone = load.ns.unwrap_or(0.0) - queued(load).unwrap_or(0.0);
            // The first piece of a request waits least, and may always be on the same disk.
            let is_cut = attribution.is_cut;
            let is_quiet = used < IDLE || (closed_loop.is_some() && is_bounded);
            let is_alone = is_quiet && !is_cut && likely_ns < ALONE * latency;
            if used < IDLE {
                record(&mut facts.idle_latency, alone / operations, 1);
            }
            if let Some(medium) = medium.filter(|_| is_alone).map(|medium| medium.load_ns(load)) {
                let likely_ns = if is_bounded { likely_ns * operations } else { 0.0 };
                record(&mut facts.alone, 1000.0 * (alone - likely_ns) / medium, 1);
            }
            let is_idle =
                is_bounded && !is_cut && load.busy().is_some_and(|busy| busy < OFTEN_IDLE);
            if let Some(medium) = medium.filter(|_| is_idle).map(|medium| medium.load_ns(load)) {
                let left_ns = (alone - likely_ns * operations).max(0.0);
                record(&mut facts.apart, 1000.0 * left_ns / medium, 1);
            }
        }
        let most = self.parts.iter().max_by(|one, other| one.1.total_cmp(&other.1));
        let cap = most.map(|(place, _)| (caps_of[*place].cap, caps[path[*place].cap].kind_now()));
        self.moments.take(load, medium, queued(load), used, cap);
    }

    /// Returns whether latency exceeds the unloaded latency known so far.
    fn is_slow(&mut self, load: &Load, medium: Option<Medium>, used: f64) -> bool {
        let ns = load.ns.unwrap_or(0.0);
        if let Some(queued) = queued(load) {
            return queued > ns * (1.0 - 1.0 / SLOW);
        }
        let own = if medium.is_some() { &self.facts.alone } else { &self.facts.idle_latency };
        if own.len() >= self.looked + AGAIN {
            self.looked = own.len();
            self.unloaded = Some(weir_report::number::float(own.value_at_quantile(0.1)));
        }
        let unloaded = match medium {
            Some(medium) => {
                Some(medium.load_ns(load) * self.unloaded.map_or(1.0, |own| own / 1000.0))
            }
            None => self.unloaded.map(|own| own * load.operations.unwrap_or(0.0)),
        };
        unloaded.map_or(used >= NEAR, |unloaded| ns > SLOW * unloaded)
    }

    pub(super) fn finish(mut self) -> SubjectFacts {
        self.facts.moments = self.moments.finish();
        self.facts
    }
}

fn record(histogram: &mut Histogram<u64>, value: f64, times: u64) {
    // It grows up to the largest number there is, so nothing is beyond it.
    let recorded = histogram.record_n(weir_report::number::whole(value), times);
    debug_assert!(recorded.is_ok(), "{value}");
}

/// Adds a sample. Missing values change nothing.
fn add(total: &mut Load, load: &Load) {
    let add = |sum: &mut Option<f64>, value: Option<f64>| {
        if let Some(value) = value {
            *sum = Some(sum.unwrap_or(0.0) + value);
        }
    };
    add(&mut total.reads, load.reads);
    add(&mut total.writes, load.writes);
    add(&mut total.operations, load.operations);
    add(&mut total.read_bytes, load.read_bytes);
    add(&mut total.write_bytes, load.write_bytes);
    add(&mut total.bytes, load.bytes);
    add(&mut total.read_ns, load.read_ns);
    add(&mut total.write_ns, load.write_ns);
    add(&mut total.ns, load.ns);
    add(&mut total.queued_read_ns, load.queued_read_ns);
    add(&mut total.queued_write_ns, load.queued_write_ns);
    add(&mut total.hits, load.hits);
    add(&mut total.counted, load.counted);
    add(&mut total.sequential, load.sequential);
}
