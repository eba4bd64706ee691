//! The limits that are charged with a sample, and the share of each.
//!
//! Requests pass the limits of their path in order. At a limit that is reached, or with a long
//! queue, they wait there. A small burst waits at the first limit for its service time, and at each
//! later limit for its additional service time. At a shared limit, requests also wait for about one
//! operation of the others.

use super::bins::NEAR;
use super::cap::{CapTrack, Shares};
use crate::system::{Counts, Medium, Reads};
use weir_observe::load::Load;

/// Utilisation at which a limit is saturated.
const SATURATED: f64 = 0.95;

/// Queue depth that counts as a queue.
const DEEP: f64 = 30.0;

/// Highest utilisation for which a queue is computed.
const FULLEST: f64 = 0.95;

/// Burst size if it is unknown.
const MANY: f64 = 1000.0;

/// Mean number of pieces from which on requests count as split.
const CUT: f64 = 1.01;

/// Minimum excess of the busy time over the service time, relative to it.
const TOLD: f64 = 0.05;

/// A queue of this share of all requests is a burst, and not a closed loop.
const AT_ONCE: f64 = 0.2;

/// The load of a subject in a sample, and the limits of its path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attribution<'a> {
    pub(super) subject: usize,
    pub(super) load: &'a Load,
    pub(super) path: &'a [Counts],
    pub(super) medium: Option<Medium>,
    /// For a column: pieces of a request to its stripe, and the number of columns.
    pub(super) whole: Option<(f64, f64)>,
    /// For a column: set if its operations are, or may be, pieces of larger requests.
    pub(super) is_cut: bool,
    /// Set if arrivals are evenly spaced.
    pub(super) is_even: bool,
    /// Busy time per request in seconds, if they come in bursts.
    pub(super) busy_of_bursts_s: Option<f64>,
    pub(super) caps: &'a [CapTrack],
}

impl Attribution<'_> {
    /// Writes the positions of the charged limits and their shares to `parts`, and returns the
    /// highest utilisation.
    pub(super) fn parts(&self, parts: &mut Vec<(usize, f64)>) -> f64 {
        parts.clear();
        let most = self.scores().map(|(_, score)| score).fold(0.0, f64::max);
        if most <= 0.0 {
            return most;
        }
        let first = || self.scores().find(|(_, score)| *score >= most - 0.005);
        if most >= SATURATED {
            parts.extend(first().map(|(place, _)| (place, 1.0)));
            return most;
        }
        let left = self.for_others(parts);
        if self.is_steady(most) {
            parts.extend(first().map(|(place, _)| (place, left)));
        } else {
            self.in_bursts(left, parts);
        }
        let sum: f64 = parts.iter().map(|(_, part)| part).sum();
        if sum > 0.0 {
            parts.iter_mut().for_each(|(_, part)| *part /= sum);
        } else {
            parts.clear();
            parts.extend(first().map(|(place, _)| (place, 1.0)));
        }
        most
    }

    /// Returns the utilisation of each limit that may throttle this subject.
    fn scores(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        let all = self.path.iter().enumerate();
        all.filter_map(|(place, counts)| Some((place, self.score(counts)?)))
    }

    fn score(&self, counts: &Counts) -> Option<f64> {
        let track = &self.caps[counts.cap];
        let used = track.used()?;
        // With an unknown number of cache hits, this is an upper bound, and a limit with known use
        // takes precedence.
        let share = if used.is_bound { used.share.min(NEAR - 0.01) } else { used.share };
        // A smaller user gets its fair share of a limit, whatever its utilisation.
        Some(share.min(track.relative_to_largest(self.subject)))
    }

    fn operations(&self) -> f64 {
        self.load.operations.unwrap_or(0.0).max(1.0)
    }

    /// Returns whether requests are a closed loop.
    fn is_steady(&self, most: f64) -> bool {
        let depth = self.load.ns.unwrap_or(0.0) / (most * self.load.seconds() * 1e9);
        // Requests in flight at an unused limit wait for others or for the medium.
        let is_all = self.load.busy().is_none_or(|busy| most >= SATURATED * busy.min(1.0));
        is_all && depth >= DEEP && depth < AT_ONCE * self.operations()
    }

    /// Returns the latency per request in excess of the medium's, in seconds, if known.
    fn excess_s(&self) -> Option<f64> {
        let medium = self.medium?;
        let beyond = self.load.ns.unwrap_or(0.0) - medium.load_ns(self.load);
        Some(beyond.max(0.0) / self.operations() / 1e9)
    }

    /// Charges waits for other subjects, and returns the remaining wait time in seconds.
    fn for_others(&self, parts: &mut Vec<(usize, f64)>) -> f64 {
        let Some(mut left_s) = self.excess_s() else { return 1.0 };
        for (place, counts) in self.path.iter().enumerate() {
            let track = &self.caps[counts.cap];
            if track.used().is_some() {
                let others = track.shares(self.subject).others_wait_s.min(left_s);
                parts.push((place, others));
                left_s -= others;
            }
        }
        left_s
    }

    /// Returns the number of pieces of a request that arrive together at a limit.
    fn pieces(&self, counts: &Counts) -> Pieces {
        let Some((pieces, columns)) = self.whole else { return Pieces::ONE };
        Pieces::new(pieces, columns, self.caps[counts.cap].is_disk_limit())
    }

    /// Charges waits within bursts, which have the rest of each limit that others leave.
    fn in_bursts(&self, left_s: f64, parts: &mut Vec<(usize, f64)>) {
        let missing = self.missing();
        let queue = |counts: &Counts| {
            let Shares { own, others, .. } = self.caps[counts.cap].shares(self.subject);
            let used = own.min(self.score(counts)?) / (1.0 - others).max(0.05);
            let pieces = self.pieces(counts);
            let passing = if counts.reads == Reads::Misses { missing } else { 1.0 };
            let operations = (self.operations() * pieces.columns * passing).max(1.0);
            let service_s = used * self.load.seconds() / operations;
            let used = if self.is_even { 0.0 } else { used.min(FULLEST) };
            (service_s > 0.0).then_some(CapQueue { used, service_s, pieces, passing })
        };
        let requests = |queue: CapQueue| queue.requests(left_s / queue.passing);
        let at_once =
            self.path.iter().filter_map(queue).map(requests).fold(MANY, f64::min).max(1.0);
        let window = self.window(self.path.iter().filter_map(queue), at_once);
        let first = parts.len();
        // Cache hits pass only the limit of the cache.
        for (part, is_hit) in [(missing, false), (1.0 - missing, true)] {
            let wait_s = |counts: &Counts| {
                let passes = !is_hit || counts.reads == Reads::All;
                queue(counts).filter(|_| passes).map(|queue| queue.wait_s(at_once))
            };
            let last = self.path.iter().filter_map(wait_s).fold(0.0, f64::max);
            let mut before = 0.0;
            for (place, counts) in self.path.iter().enumerate().filter(|_| part > 0.0) {
                let wait_s = wait_s(counts).filter(|wait_s| *wait_s > before);
                if let Some(wait_s) = wait_s.map(|wait_s| last * in_window(wait_s / last, window)) {
                    parts.push((place, part * (wait_s - before)));
                    before = wait_s;
                }
            }
        }
        let all: f64 = parts[first..].iter().map(|(_, part)| part).sum();
        if all > 0.0 {
            parts[first..].iter_mut().for_each(|(_, part)| *part *= left_s / all);
        }
    }

    /// Returns the part of a burst that arrives at once, if a burst of that size would explain the
    /// waits; the others arrive as these end. The burst size follows from the busy time: one
    /// service time per request at the slowest limit, and one medium latency.
    fn window(&self, queues: impl Iterator<Item = CapQueue>, at_once: f64) -> f64 {
        let slowest = queues.max_by(|one, other| one.spacing_s().total_cmp(&other.spacing_s()));
        let known = (self.busy_of_bursts_s, self.medium, slowest);
        let (Some(busy_s), Some(medium), Some(slowest)) = known else { return 1.0 };
        // The pieces of one request are a burst of their own, which comes at once.
        let (pieces, columns) = self.whole.unwrap_or((1.0, 1.0));
        if pieces > CUT {
            return 1.0;
        }
        let medium_s = medium.load_ns(self.load) / self.operations() / 1e9;
        let apart_s = busy_s - slowest.spacing_s();
        if apart_s < TOLD * slowest.spacing_s() || medium_s <= 0.0 {
            return 1.0;
        }
        let burst = columns * medium_s / apart_s;
        1.0 - (1.0 - ((at_once - 1.0) / burst).clamp(0.0, 1.0)).sqrt()
    }

    /// Returns the cache miss rate, if known.
    fn missing(&self) -> f64 {
        let hits = self.load.hits.unwrap_or(0.0);
        (1.0 - hits / self.operations()).clamp(0.0, 1.0)
    }
}

/// The pieces of requests to a stripe that arrive together at a limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pieces {
    /// Other pieces of the same request.
    of_its_own: f64,
    /// Pieces of each other request of the same burst.
    of_another: f64,
    /// Number of disks whose pieces pass this limit.
    pub(super) columns: f64,
}

impl Pieces {
    /// Returns the pieces of requests that are not split.
    pub(super) const ONE: Self = Self { of_its_own: 0.0, of_another: 1.0, columns: 1.0 };

    /// Returns the pieces of requests that are split over columns, at the limit of one column or of
    /// all.
    pub(super) fn new(pieces: f64, columns: f64, is_disk_limit: bool) -> Self {
        match is_disk_limit {
            true => {
                let of_another = pieces / columns;
                Self { of_its_own: (of_another - 1.0).max(0.0), of_another, columns: 1.0 }
            }
            false => {
                Self { of_its_own: (pieces - 1.0).max(0.0), of_another: pieces.max(1.0), columns }
            }
        }
    }

    /// Returns the number of other pieces that a piece meets, from the burst size.
    pub(super) fn others(self, requests: f64) -> f64 {
        self.of_its_own + (requests - 1.0) * self.of_another
    }

    /// Returns the burst size from the number of other requests.
    pub(super) fn requests(self, others: f64) -> f64 {
        1.0 + (others - self.of_its_own) / self.of_another
    }
}

/// The queue at a limit as if it were the only one. Limits in a row account together for the wait
/// at the slowest limit alone; each accounts for its own wait minus the waits at earlier limits.
#[derive(Debug, Clone, Copy)]
struct CapQueue {
    /// Utilisation for random arrivals; zero for evenly spaced ones.
    used: f64,
    /// Service time.
    service_s: f64,
    /// Pieces per request.
    pieces: Pieces,
    /// The share of requests that pass the limit.
    passing: f64,
}

/// Returns the share of the wait at the slowest limit that is spent at an earlier limit with
/// `beside` of its service time. The `window` of the burst arrives at once, and the rest as these
/// end. The earlier limit serves the window first; after that it passes no more than the slowest
/// limit does, so that its queue shrinks.
fn in_window(beside: f64, window: f64) -> f64 {
    if window >= 1.0 || beside >= 1.0 {
        return beside;
    }
    // In units of the time that the slowest limit takes for the burst.
    let (queue, rest) = (window * beside, 1.0 - window);
    let cleared = queue / (1.0 - beside);
    let after = match cleared < rest {
        true => queue * cleared / 2.0,
        false => rest * (queue - (1.0 - beside) * rest / 2.0),
    };
    let all = window * (1.0 - window / 2.0);
    if all > 0.0 { (window * queue / 2.0 + after) / all } else { 0.0 }
}

impl CapQueue {
    /// Returns the spacing of operations of one disk at full rate.
    fn spacing_s(self) -> f64 {
        self.service_s * self.pieces.columns
    }

    /// Returns the mean wait time of a burst.
    fn wait_s(self, requests: f64) -> f64 {
        let others = self.pieces.others(requests);
        self.service_s * (others + self.used) / 2.0 / (1.0 - self.used)
    }

    /// Returns the burst size from the mean wait time.
    fn requests(self, wait_s: f64) -> f64 {
        self.pieces.requests(wait_s * 2.0 * (1.0 - self.used) / self.service_s - self.used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(is: f64, expect: f64) {
        assert!((is - expect).abs() <= 1e-3 * expect.max(1.0), "{is}, not {expect}");
    }

    #[test]
    fn wait_times_at_a_cap() {
        let queue = |used, pieces| CapQueue { used, service_s: 0.004, pieces, passing: 1.0 };
        // Poisson arrivals at a server of constant time: use * time / 2 / (1 - use).
        check(queue(0.5, Pieces::ONE).wait_s(1.0), 0.002);
        check(queue(0.8, Pieces::ONE).wait_s(1.0), 0.008);
        // Ten at once, in turns: the last waits for nine.
        check(queue(0.0, Pieces::ONE).wait_s(10.0), 0.018);
        check(queue(0.0, Pieces::ONE).requests(0.018), 10.0);
        // A request of eight pieces over four columns: two at each, eight at the host.
        check(queue(0.0, Pieces::new(8.0, 4.0, true)).wait_s(1.0), 0.002);
        check(queue(0.0, Pieces::new(8.0, 4.0, false)).wait_s(1.0), 0.014);
        // Five requests over four columns: each meets one other at its column.
        check(Pieces::new(1.0, 4.0, true).others(5.0), 1.0);
        check(Pieces::new(1.0, 4.0, false).others(5.0), 4.0);
    }

    #[test]
    fn a_closed_loop_burst_waits_little_at_the_first_cap() {
        // One burst: in proportion.
        check(in_window(0.6, 1.0), 0.6);
        // A third at once. Of 100 with a turn of 1 at the slowest and 0.5 at the first, 32 wait for
        // 8 there; it is clear after 32, until when 32 more come and wait for 8, too: 5.12 on average.
        // Before the slowest they wait for 32 * (1 - 0.16) = 26.88.
        check(in_window(0.5, 0.32), 5.12 / 26.88);
        // It is not clear before the burst ends: 32 wait for 12.8, 68 for 25.6 less 0.2 * 34.
        check(in_window(0.8, 0.32), (0.32 * 12.8 + 0.68 * 18.8) / 26.88);
    }
}
