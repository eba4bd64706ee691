//! Shares of a whole, in millionths.

/// The whole, in millionths.
pub const WHOLE: u64 = 1_000_000;

/// Formats millionths as per cent, rounded to tenths. Less than the whole stays less.
#[must_use]
pub fn in_percent(share: u64) -> String {
    let rounded = share.saturating_add(500) / 1_000;
    let tenths = if share < WHOLE { rounded.min(999) } else { rounded };
    let (whole, tenths) = (tenths / 10, tenths % 10);
    if tenths == 0 { whole.to_string() } else { format!("{whole}.{tenths}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_and_less_than_the_whole_stays_less() {
        let all = [
            (799_960, "80"),
            (302_499, "30.2"),
            (302_500, "30.3"),
            (999_999, "99.9"),
            (WHOLE, "100"),
        ];
        for (share, percent) in all {
            assert_eq!(in_percent(share), percent);
        }
    }
}
