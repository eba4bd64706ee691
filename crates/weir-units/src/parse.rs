//! The one reader of `NUMBER UNIT`, exact: decimals are scaled as integers, so
//! `1.5 GiB` is 1,610,612,736 bytes and never a rounded float.

use alloc::string::{String, ToString};
use core::fmt;

/// An error in the text of a quantity. Its message quotes the text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseError {
    /// Nothing there, or it is no number, or has something behind the number.
    NoNumber {
        /// The text.
        text: String,
    },
    /// Less than nothing.
    Negative {
        /// The text.
        text: String,
    },
    /// A number without a unit where one is needed.
    NoUnit {
        /// The text.
        text: String,
        /// Units that would be understood.
        expected: &'static str,
    },
    /// A unit that is not known here.
    UnknownUnit {
        /// The text.
        text: String,
        /// The unit read from it.
        unit: String,
        /// Units that would be understood.
        expected: &'static str,
    },
    /// More decimals than the unit can hold exactly (`0.3 B`).
    NotExact {
        /// The text.
        text: String,
    },
    /// Zero where something must flow.
    NotPositive {
        /// The text.
        text: String,
    },
    /// Larger than a 64-bit integer.
    TooLarge {
        /// The text.
        text: String,
    },
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNumber { text } if text.trim().starts_with(|c: char| c.is_ascii_digit()) => {
                write!(f, "{text:?} is not written as a number is: digits, like 1200 or 1,200.5")
            }
            Self::NoNumber { text } => write!(f, "{text:?} does not start with a number"),
            Self::Negative { text } => {
                write!(f, "{text:?} is negative; write it without the minus sign")
            }
            Self::NoUnit { text, expected } => {
                write!(f, "{text:?} has no unit; write for example {expected}")
            }
            Self::UnknownUnit { text, unit, expected } => {
                write!(f, "{text:?} has the unknown unit {unit:?}; write for example {expected}")
            }
            Self::NotExact { text } => {
                write!(f, "{text:?} is not a whole number of the smallest unit")
            }
            Self::NotPositive { text } => {
                write!(f, "{text:?} must be more than zero; leave a limit out to have none")
            }
            Self::TooLarge { text } => write!(f, "{text:?} is too large"),
        }
    }
}

impl core::error::Error for ParseError {}

impl ParseError {
    /// Makes the error of a text that does not start with a digit.
    pub(crate) fn not_a_number(text: &str) -> Self {
        let behind_the_sign = text.trim().strip_prefix('-').and_then(|rest| rest.chars().next());
        let text = text.to_string();
        match behind_the_sign {
            Some('0'..='9') => Self::Negative { text },
            _ => Self::NoNumber { text },
        }
    }
}

/// A unit's spelling and how many of the smallest unit it is.
pub(crate) type Unit = (&'static str, u64);

/// Reads `text` as a number followed by one of `units` (matched without case).
pub(crate) fn quantity(
    text: &str,
    units: &[Unit],
    expected: &'static str,
) -> Result<u64, ParseError> {
    let trimmed = text.trim();
    let split = trimmed
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_' || c == ','))
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let unit = unit.trim();
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(ParseError::not_a_number(text));
    }
    if unit.is_empty() {
        return Err(ParseError::NoUnit { text: text.to_string(), expected });
    }
    let Some(&(_, scale)) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) else {
        return Err(ParseError::UnknownUnit {
            text: text.to_string(),
            unit: unit.to_string(),
            expected,
        });
    };
    scaled(number, scale, text)
}

/// Reads `number` (digits, `_` or `,` between thousands, an optional decimal
/// part) times `scale`, exactly.
pub(crate) fn scaled(number: &str, scale: u64, text: &str) -> Result<u64, ParseError> {
    let too_large = || ParseError::TooLarge { text: text.to_string() };
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let mut digits: u128 = 0;
    for digit in whole.bytes().chain(decimals.bytes()).filter(|b| !matches!(b, b'_' | b',')) {
        if !digit.is_ascii_digit() {
            return Err(ParseError::not_a_number(text));
        }
        digits = digits
            .checked_mul(10)
            .and_then(|d| d.checked_add(u128::from(digit - b'0')))
            .filter(|d| *d <= u128::from(u64::MAX) * u128::from(u32::MAX))
            .ok_or_else(too_large)?;
    }
    let places = decimals.bytes().filter(u8::is_ascii_digit).count();
    let divisor = u32::try_from(places).ok().and_then(|p| 10_u128.checked_pow(p));
    let (Some(product), Some(divisor)) = (digits.checked_mul(u128::from(scale)), divisor) else {
        return Err(too_large());
    };
    if !product.is_multiple_of(divisor) {
        return Err(ParseError::NotExact { text: text.to_string() });
    }
    u64::try_from(product / divisor).map_err(|_| too_large())
}

/// Writes `value` with the largest unit (given largest first) that divides it.
pub(crate) fn write_exact(f: &mut fmt::Formatter<'_>, value: u64, units: &[Unit]) -> fmt::Result {
    match exact(value, units) {
        Some((name, scale)) => write!(f, "{} {name}", value / scale),
        None => write!(f, "{value}"),
    }
}

/// A number of six digits is hard to read beside its neighbours.
const LONG: u64 = 100_000;
/// Five decimals tell 2 TiB from 2 TiB and 64 MiB.
const DECIMALS: u64 = 100_000;

/// Writes `value` exactly as long as that is short, else in the largest unit that
/// it reaches, to five decimals: `2.00006 TiB` and not `2097216 MiB`.
pub(crate) fn write_short(f: &mut fmt::Formatter<'_>, value: u64, units: &[Unit]) -> fmt::Result {
    let long = exact(value, units).is_some_and(|(_, scale)| value / scale >= LONG);
    let Some((name, scale)) = units.iter().find(|(_, scale)| long && value >= *scale) else {
        return write_exact(f, value, units);
    };
    let rounded = u128::from(value) * u128::from(DECIMALS) + u128::from(*scale) / 2;
    let rounded = rounded / u128::from(*scale);
    let (whole, decimals) =
        (rounded / u128::from(DECIMALS), alloc::format!("{:05}", rounded % u128::from(DECIMALS)));
    match decimals.trim_end_matches('0') {
        // It would read as the round number that it is not.
        "" => write_exact(f, value, units),
        decimals => write!(f, "{whole}.{decimals} {name}"),
    }
}

fn exact(value: u64, units: &[Unit]) -> Option<Unit> {
    let fits = |scale: u64| value >= scale && value.is_multiple_of(scale);
    units.iter().find(|(_, scale)| fits(*scale)).or(units.last()).copied()
}
