//! The times of issue.

use std::fmt;
use std::str::FromStr;
use weir_units::Instant;

/// The pace of a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Pace {
    /// As recorded.
    #[default]
    Recorded,
    /// Faster or slower by a factor, in thousandths.
    Times(u64),
    /// As fast as dependencies allow: a request waits for those that had completed before it
    /// arrived, by the recorded latencies; or, with a depth, until fewer than that are in flight.
    Closed {
        /// The most requests of a trace in flight.
        depth: Option<u32>,
    },
}

impl Pace {
    pub(super) const fn is_closed(self) -> bool {
        matches!(self, Self::Closed { .. })
    }

    /// Returns the time of issue of a request that arrived at `at`, if it does not depend on others.
    #[inline]
    pub(super) fn due(self, at: Instant) -> Option<Instant> {
        match self {
            Self::Recorded => Some(at),
            Self::Times(thousandths) => {
                let nanos = u128::from(at.nanos()) * 1000 / u128::from(thousandths);
                Some(Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
            }
            Self::Closed { .. } => None,
        }
    }
}

impl FromStr for Pace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || {
            "expected recorded, closed, or a factor from 0.001x to 1000x, for example 2x or 0.5x"
                .to_owned()
        };
        match text {
            "recorded" => return Ok(Self::Recorded),
            "closed" => return Ok(Self::Closed { depth: None }),
            _ => {}
        }
        let factor = text.strip_suffix('x').ok_or_else(wrong)?;
        let (whole, part) = factor.split_once('.').unwrap_or((factor, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !is_number(whole) || !is_number(part) || part.len() > 3 || whole.len() > 4 {
            return Err(wrong());
        }
        let number: u64 = format!("{whole}{part:0<3}").parse().map_err(|_| wrong())?;
        if (1..=1_000_000).contains(&number) { Ok(Self::Times(number)) } else { Err(wrong()) }
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recorded => f.write_str("recorded"),
            Self::Times(thousandths) => {
                let text = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
                write!(f, "{}x", text.trim_end_matches('0').trim_end_matches('.'))
            }
            Self::Closed { depth: None } => f.write_str("closed"),
            Self::Closed { depth: Some(depth) } => write!(f, "closed with depth {depth}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paces_are_read_and_printed() {
        let check = |text: &str, expect: Pace, shown: &str| {
            let pace: Pace = text.parse().expect(text);
            assert_eq!((pace, pace.to_string().as_str()), (expect, shown));
        };
        check("recorded", Pace::Recorded, "recorded");
        check("closed", Pace::Closed { depth: None }, "closed");
        check("2x", Pace::Times(2000), "2x");
        check("0.5x", Pace::Times(500), "0.5x");
        check("10.25x", Pace::Times(10_250), "10.25x");
        for wrong in ["2", "x", "0x", "-1x", "1001x", "0.0001x", "1.x", ".5x", "fast", "1e3x"] {
            assert!(wrong.parse::<Pace>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn factors_divide_times_exactly() {
        let due = |pace: Pace, nanos| pace.due(Instant::from_nanos(nanos)).map(Instant::nanos);
        assert_eq!(due(Pace::Recorded, 7), Some(7));
        assert_eq!(due(Pace::Times(2000), 7), Some(3));
        assert_eq!(due(Pace::Times(500), u64::MAX / 2), Some(u64::MAX - 1));
        assert_eq!(due(Pace::Times(1), u64::MAX), Some(u64::MAX));
        assert_eq!(due(Pace::Closed { depth: None }, 7), None);
    }
}
