//! Shares of a whole, in millionths.

/// The whole, in millionths.
pub const WHOLE: u64 = 1_000_000;

/// Returns `sum * part / whole`, rounded down; 0 of nothing.
#[must_use]
pub fn pro_rata(sum: u64, part: u64, whole: u64) -> u64 {
    let scaled = u128::from(sum) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// Formats millionths as per cent, in tenths that are rounded down.
#[must_use]
pub fn in_percent(share: u64) -> String {
    let (whole, tenths) = (share / 10_000, share % 10_000 / 1_000);
    if tenths == 0 { whole.to_string() } else { format!("{whole}.{tenths}") }
}

/// Rounds a share to the nearest tenth of a per cent. Less than the whole stays less.
#[must_use]
pub const fn to_tenths(share: u64) -> u64 {
    let rounded = share.saturating_add(500) / 1_000 * 1_000;
    if share < WHOLE && rounded >= WHOLE { WHOLE - 1_000 } else { rounded }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_and_less_than_the_whole_stays_less() {
        let all = [
            (799_960, "79.9", "80"),
            (302_499, "30.2", "30.2"),
            (302_500, "30.2", "30.3"),
            (999_999, "99.9", "99.9"),
            (WHOLE, "100", "100"),
        ];
        for (share, down, nearest) in all {
            assert_eq!(
                (in_percent(share).as_str(), in_percent(to_tenths(share)).as_str()),
                (down, nearest)
            );
        }
    }
}
