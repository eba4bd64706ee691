//! Words of backups: short ids, and sizes of one unit in a table.

use crate::backup_plan::duration;
use crate::number::{float, rate, time, whole};
use crate::table::Cell;

/// The characters of an id that tables show: its time, which the names of its files have too.
const SHORT: usize = 13;

/// Shortens the id of a backup. The verbs accept the beginning of an id.
#[must_use]
pub fn short_id(id: &str) -> &str {
    id.get(..SHORT).unwrap_or(id)
}

/// Shortens a time of day to the minute: `2026-03-02 00:00`.
pub(super) fn minute(moment: &str) -> &str {
    moment.get(..16).unwrap_or(moment)
}

/// Counts things in words: `1 frame`, `40,000 frames`.
#[must_use]
pub fn counted(n: u64, one: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{} {one}{plural}", crate::number::group(n))
}

/// The unit of all sizes of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Unit {
    name: &'static str,
    bytes: f64,
}

impl Unit {
    /// Chooses the unit by the largest size: at least ten of it, or else the next smaller unit.
    pub(crate) fn for_sizes(sizes: impl IntoIterator<Item = u64>) -> Self {
        let largest = sizes.into_iter().max().unwrap_or(0);
        let units = [("TiB", 40), ("GiB", 30), ("MiB", 20)];
        let own = units.into_iter().find(|(_, shift)| largest >= 10 << shift);
        let (name, shift) =
            own.unwrap_or(if largest >= 1 << 20 { ("MiB", 20) } else { ("KiB", 10) });
        Self { name, bytes: float(1 << shift) }
    }

    pub(crate) const fn name(self) -> &'static str {
        self.name
    }

    /// Returns a size in this unit for people, and in bytes for machines.
    pub(crate) fn cell(self, bytes: u64) -> Cell {
        Cell::number(rate(float(bytes) / self.bytes).to_string(), float(bytes))
    }
}

/// Returns a size in words, in the unit that suits it: `1,431 MiB`.
#[must_use]
pub fn size(bytes: u64) -> String {
    let unit = Unit::for_sizes([bytes]);
    match bytes {
        0..1024 => format!("{bytes} B"),
        _ => format!("{} {}", unit.cell(bytes), unit.name()),
    }
}

/// Returns the time that something took, in words: `8.12 ms`, `12.3 s`, `1 h 32 min`.
pub(crate) fn took(seconds: f64) -> String {
    if seconds < 1.0 { time(seconds * 1e9).to_string() } else { duration(seconds) }
}

/// Returns a rate in words, with one decimal: `164.3 MiB/s`.
#[must_use]
pub fn speed(bytes_per_s: f64) -> String {
    format!("{} MiB/s", per_second(bytes_per_s / f64::from(1 << 20)))
}

/// Returns a rate in MiB/s with one decimal, and grouped: `164.3`, `1,431.0`.
pub(crate) fn per_second(mib_per_s: f64) -> String {
    let tenths = whole(mib_per_s * 10.0);
    format!("{}.{}", crate::number::group(tenths / 10), tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_unit_that_suits_them() {
        let check = |bytes: u64, expect: &str| assert_eq!(size(bytes), expect);
        check(0, "0 B");
        check(512, "512 B");
        check(98_000, "95.7 KiB");
        check(3 << 20, "3.00 MiB");
        check(1431 << 20, "1,431 MiB");
        check(50 << 30, "50.0 GiB");
        check(12 << 40, "12.0 TiB");
    }

    #[test]
    fn rates_have_one_decimal() {
        assert_eq!(speed(164.332 * 1_048_576.0), "164.3 MiB/s");
        assert_eq!(speed(1431.0 * 1_048_576.0), "1,431.0 MiB/s");
        assert_eq!(counted(40_000, "frame"), "40,000 frames");
        assert_eq!(counted(1, "stripe"), "1 stripe");
        assert_eq!(short_id("01010101-0101-0101"), "01010101-0101");
    }
}
