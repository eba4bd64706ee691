//! Latency of the storage itself, after all gates.
//!
//! A seeded draw from a distribution given by its quantiles, plus the time to
//! transfer the bytes. Between two quantiles the value is interpolated, in
//! integers; the draw depends on the seed and the request's serial number only,
//! so it is the same whichever driver runs the engine.

use alloc::vec::Vec;
use core::fmt;
use weir_random::{mix, split};
use weir_units::time::NANOS_PER_SEC;
use weir_units::{BytesPerSec, Span};

/// One more than the largest draw.
const FULL: u64 = 1 << 32;

/// The longest quantile: its product with a draw fits 64 bits.
const LONGEST: Span = Span::from_secs(4);

/// A latency distribution and a transfer rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Latency {
    /// (share of draws below, of 2^32; nanoseconds), both ascending, from 0 to 2^32.
    points: Vec<(u64, u64)>,
    transfer: Option<BytesPerSec>,
}

/// An error in the quantiles of a distribution.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LatencyError {
    /// Fewer than two points, or they do not run from 0 to 1.
    NotWhole,
    /// A time of more than four seconds.
    TooLong,
    /// A share or a time that is smaller than the one before it.
    NotAscending,
}

impl fmt::Display for LatencyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotWhole => "the quantiles of a latency must run from p0 to p100",
            Self::TooLong => "the quantiles of a latency are 4 s at most",
            Self::NotAscending => "the quantiles of a latency must ascend",
        })
    }
}

impl core::error::Error for LatencyError {}

impl Latency {
    /// Nothing takes any time: for volumes without limits.
    #[must_use]
    pub fn zero() -> Self {
        Self::fixed(Span::ZERO)
    }

    /// Always `span`.
    #[must_use]
    pub fn fixed(span: Span) -> Self {
        Self { points: alloc::vec![(0, span.nanos()), (FULL, span.nanos())], transfer: None }
    }

    /// From quantiles: (share in millionths, time), ascending, the first at 0 and
    /// the last at 1,000,000.
    ///
    /// # Errors
    ///
    /// [`LatencyError`] if they do not ascend, do not cover the whole, or are too long.
    pub fn from_quantiles(quantiles: &[(u32, Span)]) -> Result<Self, LatencyError> {
        let whole = quantiles.first().is_some_and(|q| q.0 == 0)
            && quantiles.last().is_some_and(|q| q.0 == 1_000_000)
            && quantiles.len() >= 2;
        if !whole {
            return Err(LatencyError::NotWhole);
        }
        if quantiles.iter().any(|q| q.1 > LONGEST) {
            return Err(LatencyError::TooLong);
        }
        if quantiles.windows(2).any(|w| w[0].0 >= w[1].0 || w[0].1 > w[1].1) {
            return Err(LatencyError::NotAscending);
        }
        let share = |millionths: u32| u64::from(millionths) * FULL / 1_000_000;
        let points = quantiles.iter().map(|(q, span)| (share(*q), span.nanos())).collect();
        Ok(Self { points, transfer: None })
    }

    /// The same, with `rate` for the bytes of one request.
    #[must_use]
    pub fn with_transfer(mut self, rate: BytesPerSec) -> Self {
        self.transfer = Some(rate);
        self
    }

    /// Returns whether no request takes any time.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.transfer.is_none() && self.points.iter().all(|p| p.1 == 0)
    }

    /// Returns the shortest time of a request, without the transfer.
    #[must_use]
    pub fn shortest(&self) -> Span {
        Span::from_nanos(self.points.first().map_or(0, |point| point.1))
    }

    /// The mean of the distribution, without the transfer.
    #[must_use]
    pub fn mean(&self) -> Span {
        let area: u128 = self
            .points
            .windows(2)
            .map(|w| u128::from(w[1].0 - w[0].0) * (u128::from(w[0].1) + u128::from(w[1].1)))
            .sum();
        Span::from_nanos(u64::try_from(area / (2 * u128::from(FULL))).unwrap_or(u64::MAX))
    }

    /// Returns the transfer rate, if transfers take extra time.
    #[must_use]
    pub const fn transfer(&self) -> Option<BytesPerSec> {
        self.transfer
    }

    /// The time of the request with number `serial` and `bytes`.
    #[must_use]
    pub fn draw(&self, seed: u64, serial: u64, bytes: u64) -> Span {
        let u = mix(split(seed, serial)) >> 32;
        // Counted, not searched: which point ends a search cannot be predicted.
        let inner = &self.points[1..self.points.len() - 1];
        let upper = 1 + inner.iter().map(|point| usize::from(u >= point.0)).sum::<usize>();
        let (low, high) = (self.points[upper - 1], self.points[upper]);
        // Times are four seconds at most and `u` has 32 bits, so this stays within 64.
        let value = low.1 + (high.1 - low.1) * (u - low.0) / (high.0 - low.0);
        let transfer = self.transfer.map_or(0, |rate| bytes * NANOS_PER_SEC / rate.per_sec());
        Span::from_nanos(value.saturating_add(transfer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote() -> Latency {
        let q = |p: u32, us: u64| (p, Span::from_micros(us));
        Latency::from_quantiles(&[
            q(0, 1_000),
            q(500_000, 2_000),
            q(990_000, 5_000),
            q(1_000_000, 20_000),
        ])
        .expect("ascending quantiles")
    }

    #[test]
    fn draws_follow_the_quantiles() {
        let latency = remote();
        let mut draws: Vec<u64> = (0..100_000).map(|n| latency.draw(7, n, 0).nanos()).collect();
        draws.sort_unstable();
        let close = |got: u64, want: u64| got.abs_diff(want) * 50 <= want;
        assert!(close(draws[50_000], 2_000_000), "p50 {}", draws[50_000]);
        assert!(close(draws[25_000], 1_500_000), "p25 {}", draws[25_000]);
        assert!(close(draws[98_000], 4_940_000), "p98 {}", draws[98_000]);
        let mean = draws.iter().sum::<u64>() / 100_000;
        assert!(close(mean, latency.mean().nanos()), "{mean} {}", latency.mean());
        assert!(draws[0] >= 1_000_000 && draws[99_999] <= 20_000_000);
    }

    #[test]
    fn the_bytes_take_their_time_too() {
        let rate = BytesPerSec::new(1_000_000_000).expect("a rate above zero");
        let latency = Latency::fixed(Span::from_millis(1)).with_transfer(rate);
        assert_eq!(latency.draw(1, 1, 1_000_000), Span::from_millis(2));
    }

    #[test]
    fn quantiles_must_make_a_distribution() {
        let at = |p: u32, ms: u64| (p, Span::from_millis(ms));
        let check = |q: &[(u32, Span)], e| assert_eq!(Latency::from_quantiles(q), Err(e));
        check(&[at(0, 1)], LatencyError::NotWhole);
        check(&[at(10, 1), at(1_000_000, 2)], LatencyError::NotWhole);
        check(&[at(0, 1), at(1_000_000, 4_001)], LatencyError::TooLong);
        check(&[at(0, 3), at(500_000, 2), at(1_000_000, 4)], LatencyError::NotAscending);
        // Four seconds are not too long, and equal times are ascending enough.
        let longest = Latency::from_quantiles(&[at(0, 4_000), at(1_000_000, 4_000)]);
        assert_eq!(longest, Ok(Latency::fixed(LONGEST)));
    }

    #[test]
    fn a_latency_is_zero_if_no_request_takes_any_time() {
        let rate = BytesPerSec::new(1).expect("a rate above zero");
        let some = [(0, Span::ZERO), (1_000_000, Span::from_nanos(1))];
        for (latency, expect) in [
            (Latency::zero(), true),
            (Latency::fixed(Span::from_nanos(1)), false),
            (Latency::zero().with_transfer(rate), false),
            (Latency::from_quantiles(&some).expect("ascending quantiles"), false),
        ] {
            assert_eq!(latency.is_zero(), expect, "{latency:?}");
        }
    }
}
