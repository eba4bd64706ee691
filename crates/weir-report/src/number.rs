//! Formatting of numbers. Floats are allowed here, since nothing is computed from them.

use crate::table::Cell;
use serde::{Serialize, Serializer};
use std::fmt;
use weir_units::Money;

/// Returns an integer with thousands separators.
#[must_use]
pub fn grouped(n: u64) -> Cell {
    Cell::number(group(n), float(n))
}

pub(crate) fn group(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Returns a rate or count: no decimals above 100, one below, two below 10.
#[must_use]
pub fn rate(x: f64) -> Cell {
    let shown = match x {
        x if x >= 99.95 => group(whole(x)),
        x if x >= 9.995 => format!("{x:.1}"),
        x if x > 0.0 => format!("{x:.2}"),
        _ => "0".to_owned(),
    };
    Cell::number(shown, x)
}

/// Returns bytes, or bytes per second: MiB in text, bytes in JSON and CSV.
#[must_use]
pub fn mib(bytes: f64) -> Cell {
    Cell::number(rate(bytes / f64::from(1 << 20)).to_string(), bytes)
}

/// Returns bytes: GiB in text, bytes in JSON and CSV.
#[must_use]
pub fn gib(bytes: u64) -> Cell {
    Cell::number(rate(float(bytes) / f64::from(1 << 30)).to_string(), float(bytes))
}

/// Returns a time in nanoseconds with a suitable unit.
#[must_use]
pub fn time(nanos: f64) -> Cell {
    let shown = match nanos {
        n if n >= 60e9 => format!("{} s", rate(n / 1e9)),
        n if n >= 1e9 => format!("{:.2} s", n / 1e9),
        n if n >= 100e6 => format!("{:.0} ms", n / 1e6),
        n if n >= 1e6 => format!("{:.2} ms", n / 1e6),
        n if n >= 1e3 => format!("{:.0} us", n / 1e3),
        n if n > 0.0 => format!("{n:.0} ns"),
        _ => "0".to_owned(),
    };
    Cell::number(shown, nanos)
}

/// Money, rounded to cents in text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount(pub Money);

impl Amount {
    /// Returns the amount with all decimals.
    #[must_use]
    pub fn exact(self) -> Cell {
        Cell::number(self.0.exact().to_string(), self.number())
    }

    /// Returns the amount with its currency in text.
    #[must_use]
    pub fn with_currency(self, currency: &str) -> Cell {
        Cell::number(format!("{} {currency}", self.0), self.number())
    }

    /// Returns the amount, marked in text as a part of a price of which the rest is unknown.
    #[must_use]
    pub fn with_unknown_rest(self) -> Cell {
        Cell::number(format!("{} + ?", self.0), self.number())
    }

    pub(crate) fn number(self) -> f64 {
        float(self.0.micros()) / 1e6
    }
}

impl From<Amount> for Cell {
    fn from(amount: Amount) -> Self {
        Self::number(amount.0.to_string(), amount.number())
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.number())
    }
}

/// A difference of two amounts of money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delta {
    is_less: bool,
    by: Money,
}

impl Delta {
    /// Returns `after` minus `before`.
    #[must_use]
    pub fn between(before: Money, after: Money) -> Self {
        match after < before {
            true => Self { is_less: true, by: before.beyond(after) },
            false => Self { is_less: false, by: after.beyond(before) },
        }
    }

    /// Returns the difference in words, for example `12.50 USD more`.
    #[must_use]
    pub fn words(self, currency: &str) -> String {
        match (self.by, self.is_less) {
            (Money::ZERO, _) => "the same".to_owned(),
            (by, true) => format!("{by} {currency} less"),
            (by, false) => format!("{by} {currency} more"),
        }
    }

    fn number(self) -> f64 {
        let by = Amount(self.by).number();
        if self.is_less { -by } else { by }
    }
}

impl fmt::Display for Delta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match (self.by, self.is_less) {
            (Money::ZERO, _) => "",
            (_, true) => "-",
            (_, false) => "+",
        };
        write!(f, "{sign}{}", self.by)
    }
}

impl From<Delta> for Cell {
    fn from(delta: Delta) -> Self {
        Self::number(delta.to_string(), delta.number())
    }
}

impl Serialize for Delta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.number())
    }
}

/// Returns a share of one in percent.
#[must_use]
pub fn percent(share: f64) -> Cell {
    // An empty sum is -0, and small negative numbers round to it.
    let percent = format!("{:.1}", share * 100.0);
    let shown = if percent == "-0.0" { "0.0" } else { &percent };
    Cell::number(format!("{shown} %"), share)
}

/// Returns the nearest integer, saturating.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded, and it may saturate"
)]
pub fn whole(x: f64) -> u64 {
    x.round() as u64
}

/// Converts an integer to a float, for ratios.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "for display and ratios, 53 bits are enough")]
pub fn float(n: u64) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_of_money_has_a_sign() {
        let of = |text: &str| text.parse::<Money>().expect("money");
        let check = |before: &str, after: &str, shown: &str, words: &str| {
            let delta = Delta::between(of(before), of(after));
            assert_eq!((delta.to_string().as_str(), delta.words("USD").as_str()), (shown, words));
        };
        check("10.00", "12.50", "+2.50", "2.50 USD more");
        check("12.50", "10.00", "-2.50", "2.50 USD less");
        check("10.00", "10.00", "0.00", "the same");
        let json = serde_json::to_string(&Delta::between(of("12.50"), of("10.00")));
        assert_eq!(json.expect("JSON"), "-2.5");
    }

    #[test]
    fn numbers_read_well() {
        let check = |cell: &Cell, expect: &str| assert_eq!(cell.to_string(), expect);
        check(&grouped(0), "0");
        check(&grouped(999), "999");
        check(&grouped(1_234_567), "1,234,567");
        check(&rate(4_999.6), "5,000");
        check(&rate(48.828), "48.8");
        check(&rate(3.2), "3.20");
        check(&time(1_950_000.0), "1.95 ms");
        check(&time(110_000.0), "110 us");
        check(&time(2.5e9), "2.50 s");
        check(&percent(0.123), "12.3 %");
        check(&percent(-0.0), "0.0 %");
        check(&percent(-0.000_4), "0.0 %");
        check(&percent(-0.012), "-1.2 %");
    }
}
