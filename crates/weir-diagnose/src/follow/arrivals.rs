//! The arrival process: random, evenly spaced, or a closed loop.

use weir_observe::load::Load;

/// The number of random arrivals in a sample has a variance equal to its mean (Poisson). Arrivals
/// of a timer or a closed loop have a small part of that.
const EVEN: f64 = 0.5;

/// Squared differences of this multiple of the expected ones are bursts.
const IN_BURSTS: f64 = 8.0;

/// At least one in this number of samples must be a burst. The start and end of a load do not count.
const OFTEN: f64 = 6.0;

/// In a closed loop, the queue depth is constant, whatever the latency: its squared variation is
/// less than this part of that of the operations.
const STEADY: f64 = 0.25;

/// The variation of the number of operations between samples.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Arrivals {
    /// Operations per second of the previous sample, if there were any.
    before: Option<f64>,
    /// Expected squared differences of random arrivals, and the observed ones.
    expected: f64,
    squares: f64,
    /// Operations of the previous sample, also if there were none.
    all_before: Option<f64>,
    /// Pairs of samples with operations, and those among them with a large difference.
    pairs: f64,
    uneven: f64,
    /// Busy time in seconds, and the operations in it.
    busy_s: f64,
    operations: f64,
    /// Queue depth of the previous sample, and the relative squared differences of queue depth and
    /// operations.
    depth_before: Option<f64>,
    of_depth: f64,
    of_operations: f64,
}

impl Arrivals {
    pub(super) fn take(&mut self, load: &Load) {
        let seconds = load.seconds();
        let operations = load.operations.unwrap_or(0.0);
        if let Some(before) = self.all_before.filter(|before| before + operations > 0.0) {
            self.pairs += 1.0;
            let is_uneven = (operations - before).powi(2) > IN_BURSTS * (operations + before);
            self.uneven += f64::from(u8::from(is_uneven));
        }
        self.all_before = Some(operations);
        if let Some(busy_ns) = load.busy_ns {
            self.busy_s += busy_ns / 1e9;
            self.operations += operations;
        }
        let now = load.operations.filter(|operations| *operations > 0.0).map(|all| all / seconds);
        let depth = load.ns.filter(|ns| *ns > 0.0).map(|ns| ns / seconds / 1e9);
        if let (Some(before), Some(now)) = (self.before, now) {
            // The variance of a difference is the sum of both variances.
            self.squares += (now - before).powi(2) * seconds.powi(2);
            self.expected += (now + before) * seconds;
            if let (Some(depth_before), Some(depth)) = (self.depth_before, depth) {
                let beside = |one: f64, other: f64| (2.0 * (one - other) / (one + other)).powi(2);
                self.of_depth += beside(depth, depth_before);
                self.of_operations += beside(now, before);
            }
        }
        (self.before, self.depth_before) = (now, depth);
    }

    /// Returns the mean busy time per request in seconds, if requests come in bursts and it is
    /// known.
    pub(super) fn busy_of_bursts(&self) -> Option<f64> {
        let is_often = OFTEN * self.uneven >= self.pairs && self.pairs > 0.0;
        (is_often && self.busy_s > 0.0).then(|| self.busy_s / self.operations)
    }

    /// Returns whether arrivals are a closed loop.
    pub(super) fn are_closed_loop(&self) -> bool {
        self.of_operations > 0.0 && self.of_depth < STEADY * self.of_operations
    }

    /// Returns whether arrivals are evenly spaced.
    pub(super) fn are_even(&self) -> bool {
        self.expected > 0.0 && self.squares < EVEN * self.expected
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::{Instant, Span};

    /// Returns the arrivals of samples of one second, given as operations and their total latency
    /// in milliseconds.
    fn seen(samples: &[(f64, f64)]) -> Arrivals {
        let mut arrivals = Arrivals::default();
        for (second, (operations, ms)) in (0..).zip(samples) {
            let from = Instant::ZERO + Span::from_secs(second);
            arrivals.take(&Load {
                from,
                to: from + Span::from_secs(1),
                operations: Some(*operations),
                ns: Some(ms * 1e6),
                busy_ns: Some(100e6),
                ..Load::default()
            });
        }
        arrivals
    }

    #[test]
    fn arrivals_show_in_the_number_of_requests() {
        // Evenly spaced, closed loop, busy milliseconds per request.
        let check = |samples: &[(f64, f64)], expect: (bool, bool, Option<f64>)| {
            let seen = seen(samples);
            let busy_ms = seen.busy_of_bursts().map(|seconds| seconds * 1e3);
            assert_eq!((seen.are_even(), seen.are_closed_loop(), busy_ms), expect, "{samples:?}");
        };
        // A timer; what they take varies.
        check(&[(500.0, 900.0), (501.0, 1_100.0), (500.0, 800.0)], (true, false, None));
        // By chance: around 400, by about 20.
        check(&[(400.0, 800.0), (425.0, 850.0), (390.0, 700.0)], (false, false, None));
        // A constant queue depth of four.
        check(&[(1_000.0, 4_000.0), (1_060.0, 4_001.0), (950.0, 3_999.0)], (false, true, None));
        // A hundred now and then.
        let bursts = [(100.0, 900.0), (0.0, 0.0), (100.0, 900.0), (200.0, 1_800.0)];
        check(&bursts, (false, false, Some(1.0)));
        // A load that starts and ends is no burst.
        let stretch: Vec<(f64, f64)> = (0..20)
            .map(|at| if (3..15).contains(&at) { (300.0, 600.0) } else { (0.0, 0.0) })
            .collect();
        check(&stretch, (true, false, None));
        check(&[], (false, false, None));
    }
}
