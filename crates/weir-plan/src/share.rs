//! Shares of a whole, in millionths.

/// The whole, in millionths.
pub const WHOLE: u64 = 1_000_000;

/// Formats millionths as per cent.
#[must_use]
pub fn in_percent(share: u64) -> String {
    let (whole, tenths) = (share / 10_000, share % 10_000 / 1_000);
    if tenths == 0 { whole.to_string() } else { format!("{whole}.{tenths}") }
}

/// Maximum of a share in per cent. More than a hundredfold is taken for a mistake.
const MOST_PERCENT: u64 = 10_000;

/// Parses a share in per cent, `70 %` or `70`, into millionths.
///
/// # Errors
///
/// A message for text that is not a percentage, or that may be a fraction of the whole.
pub fn share(text: &str) -> Result<u64, String> {
    let own = text.trim();
    let number = own.strip_suffix('%').unwrap_or(own).trim();
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let is_number = !whole.is_empty()
        && decimals.len() <= 4
        && whole.bytes().chain(decimals.bytes()).all(|b| b.is_ascii_digit());
    let digits = format!("{whole}{decimals:0<4}");
    let parsed = if is_number { digits.parse::<u64>().ok() } else { None };
    let share =
        parsed.ok_or_else(|| format!("{text:?} is not a percentage, for example \"70 %\""))?;
    if share > MOST_PERCENT * WHOLE / 100 {
        return Err(format!("{text:?} is above the maximum of {MOST_PERCENT} %"));
    }
    if !own.ends_with('%') && 0 < share && share <= WHOLE / 100 {
        return Err(format!("{text:?} may mean {number} % or a fraction of 1; write it with a %"));
    }
    Ok(share)
}
