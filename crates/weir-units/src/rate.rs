//! Rates: operations and bytes per second. Whole numbers, at least one.

use crate::parse::{self, ParseError, Unit, Units};
use alloc::string::ToString;
use core::fmt;
use core::num::NonZeroU64;
use core::str::FromStr;

const OPERATIONS: Units = Units {
    names: &[
        ("IOPS", 1),
        ("/s", 1),
        ("k", 1_000),
        ("kIOPS", 1_000),
        ("k/s", 1_000),
        ("M", 1_000_000),
        ("MIOPS", 1_000_000),
        ("M/s", 1_000_000),
    ],
    bare: Some(1),
    expected: "5000, 40k or 5000 IOPS",
};

const BYTES: Units = Units {
    names: &[
        ("B/s", 1),
        ("KiB/s", 1 << 10),
        ("MiB/s", 1 << 20),
        ("GiB/s", 1 << 30),
        ("TiB/s", 1 << 40),
        ("KB/s", 1_000),
        ("MB/s", 1_000_000),
        ("GB/s", 1_000_000_000),
        ("TB/s", 1_000_000_000_000),
    ],
    bare: None,
    expected: "200 MiB/s or 200 MB/s",
};

const PRINTED: &[Unit] = &[
    ("GiB/s", 1 << 30),
    ("MiB/s", 1 << 20),
    ("MB/s", 1_000_000),
    ("KiB/s", 1 << 10),
    ("KB/s", 1_000),
    ("B/s", 1),
];

/// Operations per second, as a gate counts them (one per I/O unit of the edition, commonly
/// 256 KiB). Parsed from `5000`, `5,000`, `5k` or `5000 IOPS`; `k` is 1,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Iops(NonZeroU64);

/// Bytes per second. Parsed from `200 MiB/s`, `200 MB/s` (10^6) or `200 MBps`.
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
        let number = parse::quantity(text, &OPERATIONS)?;
        Self::new(number).ok_or_else(|| ParseError::NotPositive { text: text.to_string() })
    }
}

impl FromStr for BytesPerSec {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let number = match text.trim().strip_suffix("ps") {
            // The case of the B distinguishes bytes from bits, and is often wrong.
            Some(rate) if rate.ends_with('B') => {
                parse::quantity(&alloc::format!("{rate}/s"), &BYTES)
            }
            Some(rate) if rate.ends_with('b') => Err(ParseError::Ambiguous {
                text: text.to_string(),
                write: "bytes per second, for example 200 MB/s".to_string(),
            }),
            _ => parse::quantity(text, &BYTES),
        }?;
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
    use alloc::string::String;

    #[track_caller]
    fn iops(text: &str, expect: Result<u64, &str>) {
        let expect: Result<u64, String> = expect.map_err(ToString::to_string);
        assert_eq!(text.parse().map(Iops::get).map_err(|e: ParseError| e.to_string()), expect);
    }

    #[track_caller]
    fn rate(text: &str, expect: Result<u64, &str>) {
        let expect: Result<u64, String> = expect.map_err(ToString::to_string);
        let got = text.parse().map(BytesPerSec::get).map_err(|e: ParseError| e.to_string());
        assert_eq!(got, expect);
    }

    #[test]
    fn operations_are_parsed_with_and_without_a_multiplier() {
        iops("5000", Ok(5_000));
        iops("5,000 IOPS", Ok(5_000));
        iops("40,000", Ok(40_000));
        iops("40k", Ok(40_000));
        iops("40K", Ok(40_000));
        iops("1.5k IOPS", Ok(1_500));
        iops("1.2 M", Ok(1_200_000));
        iops("500/s", Ok(500));
        iops("1,234,567", Ok(1_234_567));
        iops("fast", Err("\"fast\" does not start with a number"));
        iops("-3", Err("\"-3\" is negative; write it without the minus sign"));
        iops("0", Err("\"0\" must be more than zero; leave a limit out to have none"));
        iops("1.5", Err("\"1.5\" is not a whole number of the smallest unit"));
    }

    #[test]
    fn throughput_needs_its_unit() {
        rate("200 MiB/s", Ok(209_715_200));
        rate("200 MB/s", Ok(200_000_000));
        rate("600MB/s", Ok(600_000_000));
        rate("1,200 MB/s", Ok(1_200_000_000));
        rate("600 MBps", Ok(600_000_000));
        rate("600MiBps", Ok(629_145_600));
        rate("1.5 GB/s", Ok(1_500_000_000));
        rate("0 MB/s", Err("\"0 MB/s\" must be more than zero; leave a limit out to have none"));
        rate("200", Err("\"200\" has no unit; write for example 200 MiB/s or 200 MB/s"));
        rate(
            "200 MB",
            Err("\"200 MB\" has the unknown unit \"MB\"; write for example 200 MiB/s or 200 MB/s"),
        );
    }

    #[test]
    fn numbers_with_two_meanings_are_rejected() {
        iops("1,5", Err("\"1,5\" is ambiguous; write 1.5 or 15"));
        iops("1,5k", Err("\"1,5k\" is ambiguous; write 1.5k or 15k"));
        iops("0,500", Err("\"0,500\" is ambiguous; write 0.500"));
        iops("12,34,567", Err("\"12,34,567\" is ambiguous; write 1234567"));
        iops("1.200,5", Err("\"1.200,5\" is ambiguous; write 1200.5"));
        iops("5,", Err("\"5,\" is not a number; write digits, for example 1200 or 1,200.5"));
        let bits = "is ambiguous; write bytes per second, for example 200 MB/s";
        rate("600 Mbps", Err(&alloc::format!("\"600 Mbps\" {bits}")));
        rate("600 Gibps", Err(&alloc::format!("\"600 Gibps\" {bits}")));
    }

    proptest::proptest! {
        #[test]
        fn printed_rates_parse_to_the_same(n in 1_u64..) {
            let rate = BytesPerSec::new(n).unwrap();
            proptest::prop_assert_eq!(rate.to_string().parse::<BytesPerSec>(), Ok(rate));
            let rate = Iops::new(n).unwrap();
            proptest::prop_assert_eq!(rate.to_string().parse::<Iops>(), Ok(rate));
        }
    }
}
