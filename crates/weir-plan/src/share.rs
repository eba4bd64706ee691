//! Shares of a whole, in millionths.

/// The whole, in millionths.
pub const WHOLE: u64 = 1_000_000;

/// Formats millionths as per cent.
#[must_use]
pub fn in_percent(share: u64) -> String {
    let (whole, tenths) = (share / 10_000, share % 10_000 / 1_000);
    if tenths == 0 { whole.to_string() } else { format!("{whole}.{tenths}") }
}
