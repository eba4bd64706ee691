//! Numbers without a unit of measurement: counts and percentages.

use crate::parse::{self, ParseError, Units};
use alloc::format;
use alloc::string::ToString;
use core::fmt;
use core::str::FromStr;

const COUNT: Units =
    Units { names: &[("k", 1_000), ("M", 1_000_000)], bare: Some(1), expected: "40, 1,200 or 40k" };

/// Millionths of the whole in a per cent.
const PERCENT: u64 = 10_000;

const PERCENTAGE: Units = Units { names: &[("%", PERCENT)], bare: Some(PERCENT), expected: "70 %" };

/// Maximum of a percentage. More than a hundredfold is taken for a mistake.
const MAX_PERCENT: u64 = 10_000;

/// Parses a number of things: `40`, `1,200` or `40k`.
///
/// # Errors
///
/// [`ParseError`] for text that is not a whole number.
pub fn count(text: &str) -> Result<u64, ParseError> {
    parse::quantity(text, &COUNT)
}

/// Parses a percentage, `70 %` or `70`, into millionths of the whole.
///
/// # Errors
///
/// [`ParseError`] for text that is not a percentage, is above 10,000 %, or may be a fraction of
/// the whole (`0.7`).
pub fn percent(text: &str) -> Result<u64, ParseError> {
    let share = parse::quantity(text, &PERCENTAGE)?;
    let own = text.trim();
    if share > MAX_PERCENT * PERCENT {
        return Err(ParseError::AboveMaximum { text: text.to_string(), maximum: "10000 %" });
    }
    if !own.ends_with('%') && (1..=PERCENT).contains(&share) {
        let (whole, decimals) = (share / 100, format!("{:02}", share % 100));
        // As a fraction, the number is a hundred times as many per cent.
        let fraction = match decimals.trim_end_matches('0') {
            "" => whole.to_string(),
            decimals => format!("{whole}.{decimals}"),
        };
        let write = format!("{own} % or {fraction} %");
        return Err(ParseError::Ambiguous { text: text.to_string(), write });
    }
    Ok(share)
}

/// A part of a whole, in millionths; the whole by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(u32);

impl Share {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// The whole.
    pub const WHOLE: Self = Self(1_000_000);

    /// Returns the share that `part` is of `whole`, rounded down; the whole if it is more.
    #[must_use]
    pub fn from_part(part: u64, whole: u64) -> Self {
        let millionths = u128::from(part) * u128::from(Self::WHOLE.0) / u128::from(whole.max(1));
        Self(u32::try_from(millionths).unwrap_or(Self::WHOLE.0).min(Self::WHOLE.0))
    }

    /// Returns the part of `whole`, rounded down.
    #[must_use]
    pub fn part_of(self, whole: u64) -> u64 {
        let part = u128::from(whole) * u128::from(self.0) / u128::from(Self::WHOLE.0);
        // A part is at most the whole.
        u64::try_from(part).unwrap_or(whole)
    }
}

impl Default for Share {
    fn default() -> Self {
        Self::WHOLE
    }
}

impl FromStr for Share {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match u32::try_from(percent(text)?) {
            Ok(millionths) if millionths <= Self::WHOLE.0 => Ok(Self(millionths)),
            _ => Err(ParseError::AboveMaximum { text: text.to_string(), maximum: "100 %" }),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, decimals) = (u64::from(self.0) / PERCENT, u64::from(self.0) % PERCENT);
        match format!("{decimals:04}").trim_end_matches('0') {
            "" => write!(f, "{whole} %"),
            decimals => write!(f, "{whole}.{decimals} %"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    #[track_caller]
    fn check(parse: fn(&str) -> Result<u64, ParseError>, text: &str, expect: Result<u64, &str>) {
        let expect: Result<u64, String> = expect.map_err(ToString::to_string);
        assert_eq!(parse(text).map_err(|error| error.to_string()), expect);
    }

    #[test]
    fn counts_are_whole_numbers_with_a_multiplier() {
        check(count, "7", Ok(7));
        check(count, " 0 ", Ok(0));
        check(count, "40,000", Ok(40_000));
        check(count, "40k", Ok(40_000));
        check(count, "1.5 M", Ok(1_500_000));
        check(count, "18446744073709551615", Ok(u64::MAX));
        check(count, "1.5", Err("\"1.5\" is not a whole number of the smallest unit"));
        check(count, "1,5", Err("\"1,5\" is ambiguous; write 1.5 or 15"));
        check(count, "-1", Err("\"-1\" is negative; write it without the minus sign"));
        check(count, "many", Err("\"many\" does not start with a number"));
        check(
            count,
            "4 disks",
            Err("\"4 disks\" has the unknown unit \"disks\"; write for example 40, 1,200 or 40k"),
        );
    }

    #[test]
    fn shares_are_at_most_the_whole() {
        let share = |text: &str| text.parse::<Share>().map_err(|error| error.to_string());
        for (text, half_of_seven) in [("0 %", 0), ("50 %", 3), ("99.9999 %", 6), ("100 %", 7)] {
            let share = share(text).expect("a share");
            assert_eq!((share.to_string().as_str(), share.part_of(7)), (text, half_of_seven));
        }
        assert_eq!(share("0"), Ok(Share::NONE));
        assert_eq!(Share::default().part_of(u64::MAX), u64::MAX);
        assert_eq!(share("101 %"), Err("\"101 %\" is above the maximum of 100 %".into()));
        assert_eq!(
            share("-1 %"),
            Err("\"-1 %\" is negative; write it without the minus sign".into())
        );
    }

    #[test]
    fn percentages_are_told_from_fractions() {
        check(percent, "70 %", Ok(700_000));
        check(percent, "70%", Ok(700_000));
        check(percent, "70", Ok(700_000));
        check(percent, "0", Ok(0));
        check(percent, "0.5 %", Ok(5_000));
        check(percent, "1%", Ok(10_000));
        check(percent, "1,000 %", Ok(10_000_000));
        check(percent, "10000 %", Ok(100_000_000));
        check(percent, "10001 %", Err("\"10001 %\" is above the maximum of 10000 %"));
        check(percent, "0.2", Err("\"0.2\" is ambiguous; write 0.2 % or 20 %"));
        check(percent, "1", Err("\"1\" is ambiguous; write 1 % or 100 %"));
        check(percent, "0.0255", Err("\"0.0255\" is ambiguous; write 0.0255 % or 2.55 %"));
        check(
            percent,
            "0.00001 %",
            Err("\"0.00001 %\" is not a whole number of the smallest unit"),
        );
        check(percent, "half", Err("\"half\" does not start with a number"));
    }
}
