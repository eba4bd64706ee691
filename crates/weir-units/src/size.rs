//! Sizes in bytes.

use crate::parse::{self, ParseError, Unit, Units};
use core::fmt;
use core::str::FromStr;

const UNITS: Units = Units {
    names: &[
        ("B", 1),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("PiB", 1 << 50),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("PB", 1_000_000_000_000_000),
        // One letter is binary, as in fio, qemu and nbdkit.
        ("K", 1 << 10),
        ("M", 1 << 20),
        ("G", 1 << 30),
        ("T", 1 << 40),
        ("P", 1 << 50),
    ],
    bare: None,
    expected: "64 KiB, 540 GiB or 200 MB",
};

const PRINTED: &[Unit] =
    &[("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// A size in bytes. Parsed from `64 KiB`, `64KiB`, `64K` (all 65,536) or `64 KB` (64,000).
///
/// It prints in the largest binary unit that is exact, or to five decimals if that number would be
/// long. [`exact`](Self::exact) and serialization print it to the byte.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// Creates a size of `n` bytes.
    #[must_use]
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// Creates a size of `n` KiB.
    #[must_use]
    pub const fn kib(n: u64) -> Self {
        Self(n << 10)
    }

    /// Creates a size of `n` MiB.
    #[must_use]
    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }

    /// Creates a size of `n` GiB.
    #[must_use]
    pub const fn gib(n: u64) -> Self {
        Self(n << 30)
    }

    /// Returns the number of bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the size for printing to the byte, however long: `2097216 MiB`.
    #[must_use]
    pub const fn exact(self) -> Exact {
        Exact(self)
    }
}

impl FromStr for Bytes {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse::quantity(text, &UNITS).map(Self)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        parse::write_short(f, self.0, PRINTED)
    }
}

/// A size that prints to the byte, for files and commands. See [`Bytes::exact`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exact(Bytes);

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        parse::write_exact(f, self.0.0, PRINTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[track_caller]
    fn check(text: &str, expect: Result<u64, &str>) {
        let got = text.parse::<Bytes>().map(Bytes::get).map_err(|e| e.to_string());
        assert_eq!(got, expect.map_err(ToString::to_string));
    }

    #[test]
    fn parses_binary_and_decimal_units() {
        check("64 KiB", Ok(65_536));
        check("64KiB", Ok(65_536));
        check("64k", Ok(65_536));
        check("64 KB", Ok(64_000));
        check("1.5 GiB", Ok(1_610_612_736));
        check("540 GiB", Ok(579_820_584_960));
        check("1_024 GiB", Ok(1 << 40));
        check("4TB", Ok(4_000_000_000_000));
        check("4TiB", Ok(4_398_046_511_104));
        check("4T", Ok(4_398_046_511_104));
        check("1,024 GiB", Ok(1 << 40));
        check("0 B", Ok(0));
    }

    #[test]
    fn rejects_sizes_that_are_not_exact() {
        check("64", Err("\"64\" has no unit; write for example 64 KiB, 540 GiB or 200 MB"));
        check("GiB", Err("\"GiB\" does not start with a number"));
        check("-1 GiB", Err("\"-1 GiB\" is negative; write it without the minus sign"));
        check("-GiB", Err("\"-GiB\" does not start with a number"));
        check(
            "1 XB",
            Err(
                "\"1 XB\" has the unknown unit \"XB\"; write for example 64 KiB, 540 GiB or 200 MB",
            ),
        );
        check("1,5 TiB", Err("\"1,5 TiB\" is ambiguous; write 1.5 TiB or 15 TiB"));
        check("1,5", Err("\"1,5\" is ambiguous; write 1.5 or 15"));
        check("0.3 B", Err("\"0.3 B\" is not a whole number of the smallest unit"));
        check("99999999 TiB", Err("\"99999999 TiB\" is too large"));
        check(
            "99999999999999999999999999999999999999999 B",
            Err("\"99999999999999999999999999999999999999999 B\" is too large"),
        );
        check(
            "1.2.3 B",
            Err("\"1.2.3 B\" is not a number; write digits, for example 1200 or 1,200.5"),
        );
    }

    #[test]
    fn prints_one_readable_unit() {
        let check = |bytes: u64, expect: &str| assert_eq!(Bytes::new(bytes).to_string(), expect);
        check(0, "0 B");
        check(65_536, "64 KiB");
        check((1 << 30) + (512 << 20), "1536 MiB");
        check((2 << 40) + (64 << 20), "2.00006 TiB");
        check(12_345_678, "11.77376 MiB");
        // Not rounded to "2 TiB".
        check((2 << 40) + 512, "2199023256064 B");
        check(u64::MAX, "18446744073709551615 B");
    }

    proptest::proptest! {
        #[test]
        fn exact_sizes_parse_to_the_same(n: u64) {
            let size = Bytes::new(n);
            proptest::prop_assert_eq!(size.exact().to_string().parse::<Bytes>(), Ok(size));
        }
    }
}
