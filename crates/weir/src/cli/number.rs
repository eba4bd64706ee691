//! Whole numbers and rates of options.

use std::ops::RangeInclusive;
use weir_units::{Bytes, BytesPerSec, ParseError};

/// Parses a whole number, for example 7, 1,200 or 40k.
pub(in crate::cli) fn count<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    let number = weir_units::count(text).map_err(|error| error.to_string())?;
    N::try_from(number).map_err(|_| format!("{text} is too large"))
}

/// Parses a whole number of at least 1.
pub(in crate::cli) fn positive<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    match weir_units::count(text) {
        Ok(0) => Err(format!("{text:?} is not a whole number of at least 1")),
        _ => count(text),
    }
}

/// Returns a parser of whole numbers in a range.
pub(in crate::cli) fn count_in<N: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<N, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = weir_units::count(text).map_err(|error| error.to_string())?;
        let own = N::try_from(number).ok().filter(|_| range.contains(&number));
        own.ok_or_else(|| format!("{text} is not in {}..={}", range.start(), range.end()))
    }
}

/// Parses the bytes of a second: 200MiB/s, or 200MiB.
pub(in crate::cli) fn bytes_in_a_second(text: &str) -> Result<Bytes, String> {
    match text.parse::<BytesPerSec>() {
        Ok(rate) => Ok(Bytes::new(rate.get())),
        Err(ParseError::UnknownUnit { .. }) => {
            let size: Bytes = text.parse().map_err(|error: ParseError| error.to_string())?;
            if size == Bytes::ZERO { Err("it must be more than zero".to_owned()) } else { Ok(size) }
        }
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_multipliers_and_ranges() {
        assert_eq!(count("1,200"), Ok(1_200_u32));
        assert_eq!(
            count("5G"),
            Err::<u32, _>(
                "\"5G\" has the unknown unit \"G\"; write for \
                                               example 40, 1,200 or 40k"
                    .to_owned()
            )
        );
        assert_eq!(count("5000M"), Err::<u32, _>("5000M is too large".to_owned()));
        assert_eq!(positive("16k"), Ok(16_000_u32));
        assert_eq!(
            positive::<u32>("0"),
            Err("\"0\" is not a whole number of at least 1".to_owned())
        );
        assert_eq!(count_in(1..=16_384)("1k"), Ok(1_000_u32));
        assert_eq!(count_in::<u32>(1..=64)("65"), Err("65 is not in 1..=64".to_owned()));
    }

    #[test]
    fn a_rate_of_compression_is_given_with_or_without_its_second() {
        assert_eq!(bytes_in_a_second("200MiB/s"), Ok(Bytes::mib(200)));
        assert_eq!(bytes_in_a_second("200 MiB"), Ok(Bytes::mib(200)));
        assert!(bytes_in_a_second("0 MiB").is_err());
        assert!(bytes_in_a_second("200 Mbps").is_err());
    }
}
