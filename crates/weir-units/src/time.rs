//! Points in time and spans, in nanoseconds.
//!
//! An [`Instant`] counts from a zero that its driver chooses, for example the start of a simulation
//! or of a server. Only a driver reads a clock.

use crate::parse::{self, ParseError, Unit, Units};
use core::fmt;
use core::ops::{Add, AddAssign, Sub};
use core::str::FromStr;

/// Nanoseconds in a second.
pub const NANOS_PER_SEC: u64 = 1_000_000_000;

const UNITS: Units = Units {
    names: &[
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("ms", 1_000_000),
        ("s", NANOS_PER_SEC),
        ("sec", NANOS_PER_SEC),
        ("m", 60 * NANOS_PER_SEC),
        ("min", 60 * NANOS_PER_SEC),
        ("h", 3_600 * NANOS_PER_SEC),
        ("d", 86_400 * NANOS_PER_SEC),
    ],
    bare: None,
    expected: "10ms, 30s or 2h",
};

const PRINTED: &[Unit] = &[
    ("h", 3_600 * NANOS_PER_SEC),
    ("min", 60 * NANOS_PER_SEC),
    ("s", NANOS_PER_SEC),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Nanoseconds since the driver's zero. 584 years fit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A length of time in nanoseconds. Parsed from `10ms`, `1.5 s`, `2h`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Instant {
    /// The driver's zero.
    pub const ZERO: Self = Self(0);
    /// Later than anything that happens.
    pub const FAR: Self = Self(u64::MAX);

    /// Creates a point `n` nanoseconds after zero.
    #[must_use]
    pub const fn from_nanos(n: u64) -> Self {
        Self(n)
    }

    /// Returns the nanoseconds since zero.
    #[must_use]
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Returns the time from `earlier` to `self`; zero if `earlier` is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// Creates a span of `n` nanoseconds.
    #[must_use]
    pub const fn from_nanos(n: u64) -> Self {
        Self(n)
    }

    /// Creates a span of `n` microseconds.
    #[must_use]
    pub const fn from_micros(n: u64) -> Self {
        Self(n * 1_000)
    }

    /// Creates a span of `n` milliseconds.
    #[must_use]
    pub const fn from_millis(n: u64) -> Self {
        Self(n * 1_000_000)
    }

    /// Creates a span of `n` seconds.
    #[must_use]
    pub const fn from_secs(n: u64) -> Self {
        Self(n * NANOS_PER_SEC)
    }

    /// Returns the nanoseconds.
    #[must_use]
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Returns the difference, or zero if `other` is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add<Span> for Instant {
    type Output = Self;

    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Instant {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub for Instant {
    type Output = Span;

    fn sub(self, earlier: Self) -> Span {
        self.since(earlier)
    }
}

impl Add for Span {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl FromStr for Span {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse::quantity(text, &UNITS).map(Self)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        parse::write_exact(f, self.0, PRINTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn parses_and_prints_times() {
        assert_eq!("10ms".parse(), Ok(Span::from_millis(10)));
        assert_eq!("1.5 s".parse(), Ok(Span::from_millis(1_500)));
        assert_eq!("2h".parse(), Ok(Span::from_secs(7_200)));
        assert_eq!("1.2us".parse(), Ok(Span::from_nanos(1_200)));
        assert_eq!(Span::from_millis(1_500).to_string(), "1500 ms");
        assert_eq!(Span::from_secs(1_800).to_string(), "30 min");
        assert_eq!("1,500 ms".parse(), Ok(Span::from_millis(1_500)));
        assert!("30".parse::<Span>().is_err());
        assert!("1,5 s".parse::<Span>().is_err());
        assert!("0.5 ns".parse::<Span>().is_err());
    }

    #[test]
    fn time_never_wraps() {
        assert_eq!(Instant::FAR + Span::from_secs(1), Instant::FAR);
        assert_eq!(Instant::ZERO - Instant::FAR, Span::ZERO);
    }
}
