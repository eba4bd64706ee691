//! Rates: operations and bytes per second. Whole numbers, at least one.

use crate::parse::{self, ParseError, Unit};
use alloc::string::ToString;
use core::fmt;
use core::num::NonZeroU64;
use core::str::FromStr;

const UNITS: &[Unit] = &[
    ("B/s", 1),
    ("KiB/s", 1 << 10),
    ("MiB/s", 1 << 20),
    ("GiB/s", 1 << 30),
    ("KB/s", 1_000),
    ("MB/s", 1_000_000),
    ("GB/s", 1_000_000_000),
];

const PRINTED: &[Unit] = &[
    ("GiB/s", 1 << 30),
    ("MiB/s", 1 << 20),
    ("MB/s", 1_000_000),
    ("KiB/s", 1 << 10),
    ("KB/s", 1_000),
    ("B/s", 1),
];

/// Operations per second, as a gate counts them (one per I/O unit of the
/// edition, commonly 256 KiB). Read from `5000`, `5,000` or `5000 IOPS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Iops(NonZeroU64);

/// Bytes per second. Read from `200 MiB/s` or `200 MB/s` (10^6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BytesPerSec(NonZeroU64);

impl Iops {
    /// `n` operations per second; `None` for zero, which would never admit anything.
    #[must_use]
    pub const fn new(n: u64) -> Option<Self> {
        match NonZeroU64::new(n) {
            Some(n) => Some(Self(n)),
            None => None,
        }
    }

    /// Operations per second.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// Returns it as a non-zero integer, for arithmetic that divides by it.
    #[must_use]
    pub const fn per_sec(self) -> NonZeroU64 {
        self.0
    }
}

impl BytesPerSec {
    /// `n` bytes per second; `None` for zero, which would never admit anything.
    #[must_use]
    pub const fn new(n: u64) -> Option<Self> {
        match NonZeroU64::new(n) {
            Some(n) => Some(Self(n)),
            None => None,
        }
    }

    /// Bytes per second.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// Returns it as a non-zero integer, for arithmetic that divides by it.
    #[must_use]
    pub const fn per_sec(self) -> NonZeroU64 {
        self.0
    }
}

impl FromStr for Iops {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let trimmed = text.trim();
        let number = if trimmed.ends_with(|c: char| c.is_ascii_digit()) {
            parse::scaled(trimmed, 1, text)
        } else {
            parse::quantity(text, &[("IOPS", 1), ("/s", 1)], "5000 or 5000 IOPS")
        };
        Self::new(number?).ok_or_else(|| ParseError::NotPositive { text: text.to_string() })
    }
}

impl FromStr for BytesPerSec {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let number = parse::quantity(text, UNITS, "200 MiB/s or 200 MB/s")?;
        Self::new(number).ok_or_else(|| ParseError::NotPositive { text: text.to_string() })
    }
}

impl fmt::Display for Iops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} IOPS", self.get())
    }
}

impl fmt::Display for BytesPerSec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        parse::write_exact(f, self.get(), PRINTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_states_its_unit_and_is_never_zero() {
        assert_eq!("200 MiB/s".parse(), Ok(BytesPerSec(NonZeroU64::new(209_715_200).unwrap())));
        assert_eq!("200 MB/s".parse(), Ok(BytesPerSec(NonZeroU64::new(200_000_000).unwrap())));
        assert_eq!("5,000 IOPS".parse(), Ok(Iops(NonZeroU64::new(5_000).unwrap())));
        assert_eq!("5000".parse(), Ok(Iops(NonZeroU64::new(5_000).unwrap())));
        let message = |e: ParseError| e.to_string();
        assert_eq!(
            "0 MB/s".parse::<BytesPerSec>().map_err(message),
            Err("\"0 MB/s\" must be more than zero; leave a limit out to have none".to_string())
        );
        assert_eq!(
            "200".parse::<BytesPerSec>().map_err(message),
            Err("\"200\" has no unit; write for example 200 MiB/s or 200 MB/s".to_string())
        );
        assert_eq!(
            "fast".parse::<Iops>().map_err(message),
            Err("\"fast\" does not start with a number".to_string())
        );
        assert_eq!(
            "-3".parse::<Iops>().map_err(message),
            Err("\"-3\" is negative; write it without the minus sign".to_string())
        );
    }

    proptest::proptest! {
        #[test]
        fn what_is_printed_reads_back_the_same(n in 1_u64..) {
            let rate = BytesPerSec::new(n).unwrap();
            proptest::prop_assert_eq!(rate.to_string().parse::<BytesPerSec>(), Ok(rate));
            let rate = Iops::new(n).unwrap();
            proptest::prop_assert_eq!(rate.to_string().parse::<Iops>(), Ok(rate));
        }
    }
}
