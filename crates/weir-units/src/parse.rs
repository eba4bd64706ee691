//! The parser of numbers with units. It is exact: decimals are scaled as integers, so `1.5 GiB` is
//! 1,610,612,736 bytes and never a rounded float.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

/// An error in the text of a quantity. Its message quotes the text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseError {
    /// Not a number with an optional unit.
    NoNumber {
        /// The text.
        text: String,
    },
    /// A number below zero.
    Negative {
        /// The text.
        text: String,
    },
    /// A number without its unit.
    NoUnit {
        /// The text.
        text: String,
        /// Examples of valid texts.
        expected: &'static str,
    },
    /// An unknown unit.
    UnknownUnit {
        /// The text.
        text: String,
        /// The unit.
        unit: String,
        /// Examples of valid texts.
        expected: &'static str,
    },
    /// A text with several meanings, for example `1,5` or `600 Mbps`.
    Ambiguous {
        /// The text.
        text: String,
        /// Texts with one meaning.
        write: String,
    },
    /// More decimals than the unit can hold exactly (`0.3 B`).
    NotExact {
        /// The text.
        text: String,
    },
    /// Zero as a limit, which would admit nothing.
    NotPositive {
        /// The text.
        text: String,
    },
    /// Above the maximum of a quantity.
    AboveMaximum {
        /// The text.
        text: String,
        /// The maximum.
        maximum: &'static str,
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
                write!(f, "{text:?} is not a number; write digits, for example 1200 or 1,200.5")
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
            Self::Ambiguous { text, write } => write!(f, "{text:?} is ambiguous; write {write}"),
            Self::NotExact { text } => {
                write!(f, "{text:?} is not a whole number of the smallest unit")
            }
            Self::NotPositive { text } => {
                write!(f, "{text:?} must be more than zero; leave a limit out to have none")
            }
            Self::AboveMaximum { text, maximum } => {
                write!(f, "{text:?} is above the maximum of {maximum}")
            }
            Self::TooLarge { text } => write!(f, "{text:?} is too large"),
        }
    }
}

impl core::error::Error for ParseError {}

impl ParseError {
    /// Returns the error for a text that does not start with a number.
    fn not_a_number(text: &str) -> Self {
        let after_sign = text.trim().strip_prefix('-').and_then(|rest| rest.chars().next());
        let text = text.to_string();
        match after_sign {
            Some('0'..='9') => Self::Negative { text },
            _ => Self::NoNumber { text },
        }
    }
}

/// The name of a unit, and its size in the smallest unit.
pub(crate) type Unit = (&'static str, u64);

/// The units of a quantity.
pub(crate) struct Units {
    /// Names, matched without case and spaces.
    pub(crate) names: &'static [Unit],
    /// The unit of a number without one; `None` if the unit is required.
    pub(crate) bare: Option<u64>,
    /// Examples for messages.
    pub(crate) expected: &'static str,
}

/// Parses a number followed by one of `units`, in the smallest unit.
pub(crate) fn quantity(text: &str, units: &Units) -> Result<u64, ParseError> {
    let trimmed = text.trim();
    let split = trimmed
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '_' | ',')))
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(ParseError::not_a_number(text));
    }
    check_commas(number, text)?;
    let unit: String = unit.split_whitespace().collect();
    let scale = if unit.is_empty() {
        let no_unit = || ParseError::NoUnit { text: text.to_string(), expected: units.expected };
        units.bare.ok_or_else(no_unit)?
    } else {
        let unknown = || ParseError::UnknownUnit {
            text: text.to_string(),
            unit: trimmed[split..].trim().to_string(),
            expected: units.expected,
        };
        let known = units.names.iter().find(|(name, _)| name.eq_ignore_ascii_case(&unit));
        known.ok_or_else(unknown)?.1
    };
    scaled(number, scale, text)
}

/// Checks that commas in `number` separate thousands. A comma may also mean a decimal point.
fn check_commas(number: &str, text: &str) -> Result<(), ParseError> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let mut groups = whole.split(',').map(|group| group.bytes().filter(u8::is_ascii_digit).count());
    let is_first_fine = groups.next().is_some_and(|digits| (1..=3).contains(&digits));
    let is_grouped = is_first_fine && !whole.starts_with('0') && groups.all(|digits| digits == 3);
    if !number.contains(',') || (is_grouped && !decimals.contains(',')) {
        return Ok(());
    }
    if number.ends_with(',') || number.contains(",,") {
        return Err(ParseError::not_a_number(text));
    }
    let own = text.trim();
    let write = match (number.matches(',').count(), number.contains('.')) {
        (1, false) if number.starts_with('0') => own.replacen(',', ".", 1),
        (1, false) => format!("{} or {}", own.replacen(',', ".", 1), own.replacen(',', "", 1)),
        // 1.200,5
        (1, true) if decimals.contains(',') => own.replacen('.', "", 1).replacen(',', ".", 1),
        _ => own.replace(',', ""),
    };
    Err(ParseError::Ambiguous { text: text.to_string(), write })
}

/// Parses `number` (digits, `_` or `,` between thousands, an optional decimal part) and multiplies
/// it by `scale`, exactly.
fn scaled(number: &str, scale: u64, text: &str) -> Result<u64, ParseError> {
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

/// Writes `value` in the largest unit (given largest first) that divides it.
pub(crate) fn write_exact(f: &mut fmt::Formatter<'_>, value: u64, units: &[Unit]) -> fmt::Result {
    match exact(value, units) {
        Some((name, scale)) => write!(f, "{} {name}", value / scale),
        None => write!(f, "{value}"),
    }
}

/// Numbers from here on are hard to read in a table.
const LONG: u64 = 100_000;
/// Five decimals distinguish 2 TiB from 2 TiB and 64 MiB.
const DECIMALS: u64 = 100_000;

/// Writes `value` exactly if that is short, otherwise to five decimals in the largest unit that it
/// reaches: `2.00006 TiB` instead of `2097216 MiB`.
pub(crate) fn write_short(f: &mut fmt::Formatter<'_>, value: u64, units: &[Unit]) -> fmt::Result {
    let long = exact(value, units).is_some_and(|(_, scale)| value / scale >= LONG);
    let Some((name, scale)) = units.iter().find(|(_, scale)| long && value >= *scale) else {
        return write_exact(f, value, units);
    };
    let rounded = u128::from(value) * u128::from(DECIMALS) + u128::from(*scale) / 2;
    let rounded = rounded / u128::from(*scale);
    let (whole, decimals) =
        (rounded / u128::from(DECIMALS), format!("{:05}", rounded % u128::from(DECIMALS)));
    match decimals.trim_end_matches('0') {
        // Rounded to a whole number, it would look exact.
        "" => write_exact(f, value, units),
        decimals => write!(f, "{whole}.{decimals} {name}"),
    }
}

fn exact(value: u64, units: &[Unit]) -> Option<Unit> {
    let divides = |scale: u64| value >= scale && value.is_multiple_of(scale);
    units.iter().find(|(_, scale)| divides(*scale)).or(units.last()).copied()
}
