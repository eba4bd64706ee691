//! One unit for all quantities of a column, so that rows compare at a glance.
//!
//! A column uses the unit with the shortest numbers in which all values are exact to three decimals.
//! If there is none, it uses the unit in which most values are exact, and rounds the others to a tenth.

use crate::number::{group, whole};
use crate::table::Cell;

/// A unit with its size.
type Unit = (&'static str, u64);

const SIZES: &[Unit] = &[("TiB", 1 << 40), ("GiB", 1 << 30)];
const SMALL_SIZES: &[Unit] = &[("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];
const RATES: &[Unit] = &[("MiB/s", 1 << 20), ("MB/s", 1_000_000)];
const SMALL_RATES: &[Unit] = &[("KiB/s", 1 << 10), ("KB/s", 1_000), ("B/s", 1)];
const TIMES: &[Unit] = &[("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

/// Decimals that a value may have to count as exact.
const DECIMALS: u32 = 3;

/// The unit of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scale {
    name: &'static str,
    unit: u64,
    /// The decimals of all values; `None` for those that each value needs.
    decimals: Option<usize>,
}

impl Scale {
    /// Returns the unit for sizes in bytes.
    pub(crate) fn of_sizes(values: &[f64]) -> Self {
        let is_small = values.iter().all(|value| *value < f64::from(1 << 30));
        Self::shortest(values, if is_small { SMALL_SIZES } else { SIZES }, ("GiB", 1 << 30))
    }

    /// Returns the unit for rates in bytes per second.
    pub(crate) fn of_rates(values: &[f64]) -> Self {
        let is_small = values.iter().all(|value| *value < 1e6);
        Self::shortest(values, if is_small { SMALL_RATES } else { RATES }, ("MiB/s", 1 << 20))
    }

    /// Returns the unit for times in nanoseconds: the largest in which the longest is 1 or more.
    pub(crate) fn of_times(values: &[f64]) -> Self {
        let most = whole(values.iter().copied().fold(0.0, f64::max));
        let unit = TIMES.iter().rev().find(|(_, unit)| most >= *unit);
        let (name, unit) = unit.or(TIMES.first()).copied().unwrap_or(("ns", 1));
        Self { name, unit, decimals: Some(2) }
    }

    fn shortest(values: &[f64], units: &[Unit], usual: Unit) -> Self {
        let length = |unit: &Unit| {
            let exact = values.iter().map(|value| Some(exact(whole(*value), unit.1)?.len()));
            exact.sum::<Option<usize>>()
        };
        let best = units.iter().filter_map(|unit| Some((length(unit)?, unit)));
        // The first is the largest unit.
        match best.min_by_key(|(length, _)| *length) {
            Some((_, (name, unit))) => Self { name, unit: *unit, decimals: None },
            None => {
                let count = |unit: u64| {
                    let is_exact = |value: &&f64| exact(whole(**value), unit).is_some();
                    values.iter().filter(is_exact).count()
                };
                let better = units.iter().find(|unit| count(unit.1) > count(usual.1));
                let (name, unit) = better.copied().unwrap_or(usual);
                Self { name, unit, decimals: Some(1) }
            }
        }
    }

    /// Returns a value for people in the unit, and plain for machines.
    pub(crate) fn cell(self, value: f64) -> Cell {
        let shown = exact(whole(value), self.unit).filter(|_| self.decimals.is_none());
        let shown = shown.unwrap_or_else(|| {
            let scaled = value / crate::number::float(self.unit);
            let text = format!("{scaled:.*}", self.decimals.unwrap_or(1));
            match text.split_once('.') {
                Some((digits, rest)) => format!("{}.{rest}", grouped(digits)),
                None => grouped(&text),
            }
        });
        Cell::number(format!("{shown} {}", self.name), value)
    }
}

fn grouped(digits: &str) -> String {
    digits.parse().map_or_else(|_| digits.to_owned(), group)
}

/// Returns a value in a unit, if three decimals suffice.
fn exact(value: u64, unit: u64) -> Option<String> {
    let thousandths = u128::from(value) * u128::from(10_u64.pow(DECIMALS));
    if !thousandths.is_multiple_of(u128::from(unit)) {
        return None;
    }
    let decimals = thousandths / u128::from(unit) % 1_000;
    let decimals = format!("{decimals:03}");
    let digits = group(value / unit);
    Some(match decimals.trim_end_matches('0') {
        "" => digits,
        decimals => format!("{digits}.{decimals}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(scale: fn(&[f64]) -> Scale, values: &[f64]) -> Vec<String> {
        let scale = scale(values);
        values.iter().map(|value| scale.cell(*value).to_string()).collect()
    }

    #[test]
    fn a_column_has_one_unit() {
        let gib = f64::from(1 << 30);
        let sizes = |values: &[f64], expect: &[&str]| {
            let values: Vec<f64> = values.iter().map(|value| value * gib).collect();
            assert_eq!(shown(Scale::of_sizes, &values), expect);
        };
        sizes(&[900.0, 1_024.0], &["900 GiB", "1,024 GiB"]);
        sizes(&[3_584.0, 4_096.0], &["3.5 TiB", "4 TiB"]);
        sizes(&[0.5, 0.25], &["512 MiB", "256 MiB"]);
        sizes(&[1_000.3, 0.1], &["1,000.3 GiB", "0.1 GiB"]);
        let rates = |values: &[f64], expect: &[&str]| {
            assert_eq!(shown(Scale::of_rates, values), expect);
        };
        let mib = f64::from(1 << 20);
        rates(&[125.0 * mib, 200e6], &["131.072 MB/s", "200 MB/s"]);
        rates(&[125.0 * mib, 200.0 * mib], &["125 MiB/s", "200 MiB/s"]);
        // Published limits stay as they are published.
        rates(&[150.0 * mib, 400e6, 125e6], &["157.3 MB/s", "400.0 MB/s", "125.0 MB/s"]);
        rates(&[123_456_789.0, 100.0 * mib], &["117.7 MiB/s", "100.0 MiB/s"]);
        rates(&[0.0, 5_120.0], &["0 KiB/s", "5 KiB/s"]);
        assert_eq!(
            shown(Scale::of_times, &[1.9e6, 140e3, 25.31e6]),
            ["1.90 ms", "0.14 ms", "25.31 ms"]
        );
        assert_eq!(shown(Scale::of_times, &[140e3, 90e3]), ["140.00 us", "90.00 us"]);
    }
}
