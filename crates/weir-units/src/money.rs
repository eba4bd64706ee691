//! Money in millionths of a currency's unit, so that unit prices and their sums are exact. The
//! currency is stored beside it.

use crate::parse::{self, ParseError, Units};
use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign};
use core::str::FromStr;

const MICROS: u64 = 1_000_000;
const MICROS_PER_CENT: u64 = 10_000;

const UNITS: Units = Units {
    names: &[("k", 1_000 * MICROS), ("M", 1_000_000 * MICROS)],
    bare: Some(MICROS),
    expected: "1200 or 1,200.50, without a currency",
};

/// An amount of money, not below zero. Parsed from `135.17`, `1,200` or `1.2k`; prints to the cent,
/// halves rounded up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money(u64);

impl Money {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// Creates an amount of `n` millionths.
    #[must_use]
    pub const fn from_micros(n: u64) -> Self {
        Self(n)
    }

    /// Returns the millionths.
    #[must_use]
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// Multiplies by `n`, saturating.
    #[must_use]
    pub const fn times(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }

    /// Returns the excess over `other`, or zero.
    #[must_use]
    pub const fn beyond(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns the amount for printing with all its decimals, at least two.
    #[must_use]
    pub const fn exact(self) -> ExactMoney {
        ExactMoney(self)
    }

    /// Returns the largest amount that prints like this one, so that a price is within a budget that prints the same.
    #[must_use]
    pub const fn largest_alike(self) -> Self {
        let cents = self.0.saturating_add(MICROS_PER_CENT / 2) / MICROS_PER_CENT;
        Self(cents.saturating_mul(MICROS_PER_CENT).saturating_add(MICROS_PER_CENT / 2 - 1))
    }
}

/// Saturates; no price comes near.
impl Add for Money {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::ZERO, Add::add)
    }
}

impl FromStr for Money {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse::quantity(text, &UNITS).map(Self)
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cents = self.0.saturating_add(MICROS_PER_CENT / 2) / MICROS_PER_CENT;
        let (whole, cents) = (cents / 100, cents % 100);
        let digits = alloc::format!("{whole}");
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        write!(f, ".{cents:02}")
    }
}

/// Money that prints with all its decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExactMoney(Money);

impl fmt::Display for ExactMoney {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.0;
        let decimals = alloc::format!("{:06}", micros % MICROS);
        let shown = decimals.trim_end_matches('0').len().max(2);
        write!(f, "{}.{}", micros / MICROS, &decimals[..shown])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn amounts_that_print_alike_are_within_each_other() {
        for (micros, largest) in
            [(0, 4_999), (335_694_880, 335_694_999), (335_695_000, 335_704_999)]
        {
            let money = Money::from_micros(micros);
            assert_eq!(money.largest_alike().micros(), largest);
            assert_eq!(money.to_string(), money.largest_alike().to_string());
        }
    }

    #[test]
    fn parses_exactly_and_prints_to_the_cent() {
        let check = |text: &str, micros: u64, shown: &str, exact: &str| {
            let money: Money = text.parse().unwrap();
            assert_eq!(money.micros(), micros, "{text}");
            assert_eq!(money.to_string(), shown, "{text}");
            assert_eq!(money.exact().to_string(), exact, "{text}");
        };
        check("135.17", 135_170_000, "135.17", "135.17");
        check("0.00511", 5_110, "0.01", "0.00511");
        check("136.085", 136_085_000, "136.09", "136.085");
        check("3,208.98", 3_208_980_000, "3,208.98", "3208.98");
        check("1234567", 1_234_567_000_000, "1,234,567.00", "1234567.00");
        check("1.2k", 1_200_000_000, "1,200.00", "1200.00");
        check("0", 0, "0.00", "0.00");
    }

    #[test]
    fn texts_that_are_not_amounts_are_rejected() {
        let message = |text: &str| text.parse::<Money>().unwrap_err().to_string();
        assert_eq!(message("-3"), "\"-3\" is negative; write it without the minus sign");
        assert_eq!(message("USD 3"), "\"USD 3\" does not start with a number");
        assert_eq!(
            message("3 USD"),
            "\"3 USD\" has the unknown unit \"USD\"; write for example 1200 or 1,200.50, without a \
             currency"
        );
        assert_eq!(
            message("0.0000001"),
            "\"0.0000001\" is not a whole number of the smallest unit"
        );
        assert_eq!(message("99999999999999"), "\"99999999999999\" is too large");
    }

    #[test]
    fn sums_are_exact() {
        let one: Money = "0.1".parse().unwrap();
        assert_eq!([one; 10].into_iter().sum::<Money>().to_string(), "1.00");
        assert_eq!(one.times(3).beyond(one).micros(), 200_000);
        assert_eq!(one.beyond(one.times(3)), Money::ZERO);
    }
}
