//! Values of parameters, as a sweep file states them.

use std::fmt;
use weir_units::{Bytes, BytesPerSec, Iops, Span};

/// A value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A whole number.
    Whole(i64),
    /// Another number.
    Float(f64),
    /// True or false.
    Flag(bool),
    /// A quantity in the smallest unit.
    Quantity(Unit, u64),
    /// Any other text.
    Text(String),
}

/// The unit of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A size.
    Bytes,
    /// A throughput.
    BytesPerSecond,
    /// Operations per second, written with `IOPS`.
    Iops,
    /// A time, in nanoseconds.
    Time,
}

impl Unit {
    /// Returns the end of a column's name.
    const fn suffix(self) -> &'static str {
        match self {
            Self::Bytes => "_bytes",
            Self::BytesPerSecond => "_bytes_per_s",
            Self::Iops => "_iops",
            Self::Time => "_ns",
        }
    }

    /// Returns the text of a quantity, exactly. All files of Weir read it.
    pub(crate) fn text(self, amount: u64) -> String {
        match self {
            Self::Bytes => Bytes::new(amount).exact().to_string(),
            Self::BytesPerSecond => {
                BytesPerSec::new(amount).map_or_else(|| "0 B/s".to_owned(), |rate| rate.to_string())
            }
            Self::Iops => format!("{amount} IOPS"),
            Self::Time => Span::from_nanos(amount).to_string(),
        }
    }
}

impl Value {
    /// Reads a text: a quantity with its unit, or else the text as it is. A bare letter as the unit
    /// (`64k`, `10m`) has several meanings and stays a text.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let quantity = |unit, amount| Self::Quantity(unit, amount);
        let letters = text.trim().trim_start_matches(|c: char| !c.is_alphabetic());
        if letters.len() < 2 && letters != "B" && !matches!(letters, "s" | "h" | "d") {
            return Self::Text(text.to_owned());
        }
        if let Ok(rate) = text.parse::<BytesPerSec>() {
            return quantity(Unit::BytesPerSecond, rate.get());
        }
        if let Ok(size) = text.parse::<Bytes>() {
            return quantity(Unit::Bytes, size.get());
        }
        if let Ok(time) = text.parse::<Span>() {
            return quantity(Unit::Time, time.nanos());
        }
        match text.parse::<Iops>() {
            Ok(iops) if letters.eq_ignore_ascii_case("iops") => quantity(Unit::Iops, iops.get()),
            _ => Self::Text(text.to_owned()),
        }
    }

    /// Returns the value for a TOML file.
    pub(crate) fn toml(&self) -> toml_edit::Value {
        match self {
            Self::Whole(n) => (*n).into(),
            Self::Float(x) => (*x).into(),
            Self::Flag(flag) => (*flag).into(),
            Self::Quantity(unit, amount) => unit.text(*amount).into(),
            Self::Text(text) => text.as_str().into(),
        }
    }

    /// Returns the value for an option of fio, whose units have other names: `4 KiB` is 4096 here,
    /// and 4000 there.
    pub(crate) fn fio(&self) -> String {
        match self {
            Self::Quantity(Unit::Bytes | Unit::BytesPerSecond | Unit::Iops, amount) => {
                amount.to_string()
            }
            Self::Quantity(Unit::Time, nanos) => {
                let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
                let exact = units.iter().find(|(_, unit)| nanos.is_multiple_of(*unit));
                exact.map_or_else(String::new, |(name, unit)| format!("{}{name}", nanos / unit))
            }
            Self::Flag(flag) => u8::from(*flag).to_string(),
            other => other.to_string(),
        }
    }

    /// Returns the value in a column of numbers in the smallest unit; `None` for texts.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "columns hold floats")]
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Whole(n) => Some(*n as f64),
            Self::Float(x) => Some(*x),
            Self::Quantity(_, amount) => Some(*amount as f64),
            Self::Flag(_) | Self::Text(_) => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(n) => write!(f, "{n}"),
            Self::Float(x) => write!(f, "{x}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Quantity(unit, amount) => f.write_str(&unit.text(*amount)),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// The kind of all values of a parameter, which decides its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Numbers without a unit.
    Numbers,
    /// Quantities of one unit, in the smallest unit.
    Quantities(Unit),
    /// Texts.
    Texts,
}

impl Kind {
    /// Returns the kind that all values have, or else [`Kind::Texts`].
    #[must_use]
    pub fn common_to(values: &[Value]) -> Self {
        let one = |value: &Value| match value {
            Value::Whole(_) | Value::Float(_) => Self::Numbers,
            Value::Quantity(unit, _) => Self::Quantities(*unit),
            Value::Flag(_) | Value::Text(_) => Self::Texts,
        };
        let mut kinds = values.iter().map(one);
        let first = kinds.next().unwrap_or(Self::Texts);
        if kinds.all(|kind| kind == first) { first } else { Self::Texts }
    }

    /// Returns the name of the column of a parameter: with the unit, unless it ends in it already.
    #[must_use]
    pub fn column(self, parameter: &str) -> String {
        match self {
            Self::Quantities(unit) => {
                let suffix = unit.suffix();
                let has_unit = parameter.ends_with(suffix) || parameter == &suffix[1..];
                let suffix = if has_unit { "" } else { suffix };
                format!("{parameter}{suffix}")
            }
            Self::Numbers | Self::Texts => parameter.to_owned(),
        }
    }

    /// Returns a value as the text of its column.
    #[must_use]
    pub fn field(self, value: &Value) -> String {
        match (self, value.number()) {
            (Self::Texts, _) | (_, None) => value.to_string(),
            (_, Some(number)) => number.to_string(),
        }
    }
}

/// A scale on which a range is divided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Equal differences.
    #[default]
    Linear,
    /// Equal ratios.
    Log,
}

/// The numbers between two ends, which have one unit or none.
#[derive(Debug, Clone, PartialEq)]
pub struct Range {
    /// The first number.
    pub(crate) from: f64,
    /// The last number.
    pub(crate) to: f64,
    /// The scale.
    pub(crate) scale: Scale,
    /// True if only whole numbers exist.
    pub(crate) is_whole: bool,
    /// The unit.
    pub(crate) unit: Option<Unit>,
}

impl Range {
    /// Returns the value at a share of the way, from 0 to 1.
    #[must_use]
    pub fn at(&self, share: f64) -> Value {
        let number = match self.scale {
            _ if share <= 0.0 => self.from,
            _ if share >= 1.0 => self.to,
            Scale::Linear => self.from + (self.to - self.from) * share,
            Scale::Log => self.from * (self.to / self.from).powf(share),
        };
        self.value(number)
    }

    /// Returns a number as a value.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between two ends that are whole numbers"
    )]
    pub(crate) fn value(&self, number: f64) -> Value {
        match self.unit {
            Some(unit) => Value::Quantity(unit, number.round().max(0.0) as u64),
            None if self.is_whole => Value::Whole(number.round() as i64),
            None => Value::Float(rounded(number)),
        }
    }
}

/// Rounds to twelve digits. The last digits of powers differ between machines, and shards of one sweep
/// may run on several.
fn rounded(number: f64) -> f64 {
    format!("{number:.11e}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_need_an_unambiguous_unit() {
        let check = |text: &str, expect: Value| assert_eq!(Value::read(text), expect, "{text}");
        check("4 KiB", Value::Quantity(Unit::Bytes, 4_096));
        check("10 MB/s", Value::Quantity(Unit::BytesPerSecond, 10_000_000));
        check("5,000 IOPS", Value::Quantity(Unit::Iops, 5_000));
        check("30s", Value::Quantity(Unit::Time, 30_000_000_000));
        check("1.5 ms", Value::Quantity(Unit::Time, 1_500_000));
        for text in ["64k", "10m", "P30", "randread", "read-only", "4k,8k", "40k", "50 %", ""] {
            check(text, Value::Text(text.to_owned()));
        }
    }

    #[test]
    fn fio_gets_bytes_and_times_with_its_own_units() {
        let check = |text: &str, expect: &str| assert_eq!(Value::read(text).fio(), expect);
        check("4 KiB", "4096");
        check("10 MiB/s", "10485760");
        check("500 IOPS", "500");
        check("30s", "30s");
        check("2h", "7200s");
        check("1.5ms", "1500us");
        check("64k", "64k");
        assert_eq!(Value::Flag(true).fio(), "1");
    }

    #[test]
    fn a_column_has_the_unit_of_its_values_in_its_name() {
        let column = |name: &str, texts: &[&str]| {
            let values: Vec<Value> = texts.iter().map(|text| Value::read(text)).collect();
            let kind = Kind::common_to(&values);
            (kind.column(name), kind.field(&values[0]))
        };
        let check = |name, texts: &[&str], head: &str, field: &str| {
            assert_eq!(column(name, texts), (head.to_owned(), field.to_owned()));
        };
        check("block", &["4 KiB", "1 MiB"], "block_bytes", "4096");
        check("limit", &["10 MiB/s"], "limit_bytes_per_s", "10485760");
        check("limit_iops", &["500 IOPS"], "limit_iops", "500");
        check("time", &["1 ms"], "time_ns", "1000000");
        check("tier", &["P30", "P40"], "tier", "P30");
        check("mixed", &["4 KiB", "1 s"], "mixed", "4 KiB");
    }

    #[test]
    fn a_range_ends_where_it_says_and_rounds_whole_numbers() {
        let range = |scale, is_whole| Range { from: 1.0, to: 64.0, scale, is_whole, unit: None };
        let log = range(Scale::Log, true);
        let at: Vec<Value> = (0..=6).map(|n| log.at(f64::from(n) / 6.0)).collect();
        assert_eq!(at, [1, 2, 4, 8, 16, 32, 64].map(Value::Whole));
        assert_eq!(range(Scale::Linear, false).at(0.5), Value::Float(32.5));
        assert_eq!(range(Scale::Linear, true).at(0.1), Value::Whole(7));
    }
}
