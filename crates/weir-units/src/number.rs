//! Numbers without a unit of measurement: counts and percentages.

use crate::parse::{self, ParseError, Units};
use alloc::format;
use alloc::string::ToString;

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
