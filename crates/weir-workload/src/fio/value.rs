//! Numbers as fio 3.33 reads them, which is not always as its manual says.
//!
//! With `kb_base=1024`, the default, the prefixes are swapped for the sake of old job files: `4k`
//! and `4kb` are 4,096, and `4kib` is 4,000. With `kb_base=1000` it is the other way round. `4ki`
//! is read like `4k` under both, in contrast to the manual. Values that fio silently misreads are
//! rejected: `30sec` as 30 microseconds, `1.5` as 1, `bs= 8k` as 8 bytes.

use crate::error::ValueError;
use crate::job::{Extent, PerOp};
use std::str::FromStr;
use weir_units::{Bytes, Span};

/// An option's value and its `kb_base`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Value<'a> {
    /// The text after the `=`; `None` for a bare flag.
    text: Option<&'a str>,
    /// 1024 or 1000.
    kb_base: u64,
}

impl<'a> Value<'a> {
    pub(super) fn new(text: Option<&'a str>, kb_base: u64) -> Self {
        Self { text, kb_base }
    }

    /// Returns the text, which is required.
    pub(super) fn text(self) -> Result<&'a str, ValueError> {
        self.text.filter(|text| !text.is_empty()).ok_or(ValueError::Missing)
    }

    /// Reads `time_based`, `time_based=1` or `time_based=0`.
    pub(super) fn flag(self) -> Result<bool, ValueError> {
        if self.text.is_none() { Ok(true) } else { self.boolean() }
    }

    /// Reads `0` or `1`.
    pub(super) fn boolean(self) -> Result<bool, ValueError> {
        match self.text()? {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err(ValueError::NotAFlag),
        }
    }

    /// Reads a count or a number of bytes from `min` to `max`.
    pub(super) fn number(self, min: u64, max: u64) -> Result<u64, ValueError> {
        in_range(bytes(self.text()?, self.kb_base)?, min, max)
    }

    /// Reads the same for 32 bits.
    pub(super) fn small(self, min: u32, max: u32) -> Result<u32, ValueError> {
        let out_of_range = ValueError::OutOfRange { min: min.into(), max: max.into() };
        u32::try_from(self.number(min.into(), max.into())?).map_err(|_| out_of_range)
    }

    /// Reads `1g` or `50%`.
    pub(super) fn extent(self) -> Result<Extent, ValueError> {
        let text = self.text()?;
        match text.strip_suffix('%') {
            None => bytes(text, self.kb_base).map(|n| Extent::Bytes(Bytes::new(n))),
            Some(number) => {
                let percent = in_range(bytes(number, self.kb_base)?, 0, 100)?;
                Ok(Extent::Percent(u32::try_from(percent).map_err(|_| ValueError::TooLarge)?))
            }
        }
    }

    /// Reads a time; a bare number counts seconds.
    pub(super) fn seconds(self) -> Result<Span, ValueError> {
        time(self.text()?, 1_000_000)
    }

    /// Reads a time; a bare number counts microseconds.
    pub(super) fn micros(self) -> Result<Span, ValueError> {
        time(self.text()?, 1)
    }

    /// Reads a decimal number after `word:`, or returns `default` after `word` alone.
    pub(super) fn parameter(text: Option<&str>, default: f64) -> Result<f64, ValueError> {
        let Some(text) = text else { return Ok(default) };
        let not_a_number = ValueError::Parameter { what: "the parameter is not a number" };
        f64::from_str(text).ok().filter(|n| n.is_finite()).ok_or(not_a_number)
    }

    /// Reads `read`, `read,write` or `read,write,trim`, each part with `parse`. A missing part
    /// copies the last one; an empty one keeps that of `old`.
    pub(super) fn per_op<T: Clone>(
        self,
        old: &PerOp<T>,
        mut parse: impl FnMut(Self) -> Result<T, ValueError>,
    ) -> Result<PerOp<T>, ValueError> {
        let parts: Vec<&str> = self.text()?.split(',').collect();
        if parts.len() > 3 {
            return Err(ValueError::TooManyParts);
        }
        let mut part = |n: usize, old: &T| -> Result<T, ValueError> {
            let text = parts[n.min(parts.len() - 1)];
            if text.is_empty() { Ok(old.clone()) } else { parse(Self { text: Some(text), ..self }) }
        };
        Ok(PerOp {
            read: part(0, &old.read)?,
            write: part(1, &old.write)?,
            trim: part(2, &old.trim)?,
        })
    }

    /// Reads `1k-4k` or `1k:4k`, in either order.
    pub(super) fn range(self) -> Result<(u64, u64), ValueError> {
        let (a, b) = self.text()?.split_once(['-', ':']).ok_or(ValueError::NotARange)?;
        let (a, b) = (bytes(a, self.kb_base)?, bytes(b, self.kb_base)?);
        Ok((a.min(b), a.max(b)))
    }

    /// Reads pairs like `4k/50:64k/50` with `key` and `share`. A share may be missing.
    pub(super) fn split<K, S>(
        self,
        key: impl Fn(Self) -> Result<K, ValueError>,
        share: impl Fn(Self) -> Result<S, ValueError>,
    ) -> Result<Vec<(K, Option<S>)>, ValueError> {
        let part = |text| Self { text: Some(text), ..self };
        self.text()?
            .split(':')
            .map(|entry| match entry.split_once('/') {
                None | Some((_, "")) => {
                    Ok((key(part(entry.strip_suffix('/').unwrap_or(entry)))?, None))
                }
                Some((k, s)) => Ok((key(part(k))?, Some(share(part(s))?))),
            })
            .collect()
    }
}

fn in_range(n: u64, min: u64, max: u64) -> Result<u64, ValueError> {
    if (min..=max).contains(&n) { Ok(n) } else { Err(ValueError::OutOfRange { min, max }) }
}

/// Reads digits (or `0x` and hexadecimal digits), and returns the rest.
fn leading_number(text: &str) -> Result<(u64, &str), ValueError> {
    if text.starts_with('(') {
        return Err(ValueError::Expression);
    }
    let (radix, digits) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (16, digits),
        None => (10, text),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (number, rest) = digits.split_at(end);
    if number.is_empty() || rest.starts_with('.') {
        return Err(ValueError::NotANumber { text: text.to_owned() });
    }
    let number = u64::from_str_radix(number, radix).map_err(|_| ValueError::TooLarge)?;
    Ok((number, rest))
}

/// Reads a number with a size suffix.
pub(super) fn bytes(text: &str, kb_base: u64) -> Result<u64, ValueError> {
    let (number, suffix) = leading_number(text)?;
    let suffix = suffix.to_ascii_lowercase();
    let (letter, rest) = suffix.split_at_checked(1).unwrap_or(("", ""));
    let unknown = || ValueError::SizeUnit { unit: suffix.clone() };
    let power = match letter {
        "" => return Ok(number),
        "b" if rest.is_empty() => return Ok(number),
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return Err(unknown()),
    };
    let base: u64 = match (rest, kb_base) {
        ("" | "b" | "i", base) => base,
        ("ib", 1024) => 1000,
        ("ib", _) => 1024,
        _ => return Err(unknown()),
    };
    number.checked_mul(base.pow(power)).ok_or(ValueError::TooLarge)
}

/// Reads a number with a time suffix; without one, it counts units of `bare` microseconds.
fn time(text: &str, bare: u64) -> Result<Span, ValueError> {
    let (number, suffix) = leading_number(text)?;
    let micros = match suffix.to_ascii_lowercase().as_str() {
        "" => bare,
        "us" | "usec" => 1,
        "ms" | "msec" => 1_000,
        "s" => 1_000_000,
        "m" => 60 * 1_000_000,
        "h" => 3_600 * 1_000_000,
        "d" => 86_400 * 1_000_000,
        unit => return Err(ValueError::TimeUnit { unit: unit.to_owned() }),
    };
    let nanos = number.checked_mul(micros).and_then(|n| n.checked_mul(1_000));
    nanos.map(Span::from_nanos).ok_or(ValueError::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, kb_base: u64, expect: Result<u64, &str>) {
        let got = bytes(text, kb_base).map_err(|e| e.to_string());
        assert_eq!(got, expect.map_err(str::to_owned), "{text} with kb_base={kb_base}");
    }

    #[test]
    fn size_suffixes_mean_what_fio_makes_of_them() {
        // Each line as `fio --parse-only --debug=parse` prints it.
        for (text, base_1024, base_1000) in [
            ("4", 4, 4),
            ("4b", 4, 4),
            ("4k", 4_096, 4_000),
            ("4K", 4_096, 4_000),
            ("4kb", 4_096, 4_000),
            ("4kB", 4_096, 4_000),
            ("4ki", 4_096, 4_000),
            ("4kib", 4_000, 4_096),
            ("4KiB", 4_000, 4_096),
            ("1m", 1 << 20, 1_000_000),
            ("1MiB", 1_000_000, 1 << 20),
            ("30g", 30 << 30, 30_000_000_000),
            ("1gib", 1_000_000_000, 1 << 30),
            ("2t", 2 << 40, 2_000_000_000_000),
            ("1tib", 1_000_000_000_000, 1 << 40),
            ("1p", 1 << 50, 1_000_000_000_000_000),
            ("0x1000", 4_096, 4_096),
        ] {
            check(text, 1024, Ok(base_1024));
            check(text, 1000, Ok(base_1000));
        }
    }

    #[test]
    fn invalid_sizes_are_rejected() {
        check("", 1024, Err("\"\" is not a whole number"));
        check("k", 1024, Err("\"k\" is not a whole number"));
        check("-4k", 1024, Err("\"-4k\" is not a whole number"));
        check("1.5g", 1024, Err("\"1.5g\" is not a whole number"));
        check("(4*1024)", 1024, Err("write the result instead of an expression"));
        check("99999p", 1024, Err("is too large"));
        let unit = "unknown unit \"kk\"; use k, m, g, t, p, or KiB, MiB, ... as fio's kb_base \
                    defines them";
        check("4kk", 1024, Err(unit));
    }

    #[test]
    fn times_count_seconds_or_microseconds_unless_they_say() {
        let seconds = |text| Value::new(Some(text), 1024).seconds().map_err(|e| e.to_string());
        let micros = |text| Value::new(Some(text), 1024).micros().map_err(|e| e.to_string());
        assert_eq!(seconds("30"), Ok(Span::from_secs(30)));
        assert_eq!(seconds("30s"), Ok(Span::from_secs(30)));
        assert_eq!(seconds("2m"), Ok(Span::from_secs(120)));
        assert_eq!(seconds("1h"), Ok(Span::from_secs(3_600)));
        assert_eq!(seconds("1D"), Ok(Span::from_secs(86_400)));
        assert_eq!(seconds("500ms"), Ok(Span::from_millis(500)));
        assert_eq!(seconds("500msec"), Ok(Span::from_millis(500)));
        assert_eq!(micros("100"), Ok(Span::from_micros(100)));
        assert_eq!(micros("100usec"), Ok(Span::from_micros(100)));
        assert_eq!(micros("1s"), Ok(Span::from_secs(1)));
        let sec = "unknown time unit \"sec\", which fio reads as microseconds; use us, ms, s, m, \
                   h or d";
        assert_eq!(seconds("30sec"), Err(sec.to_owned()));
        assert_eq!(seconds("1.5"), Err("\"1.5\" is not a whole number".to_owned()));
        assert_eq!(seconds("99999999999999d"), Err("is too large".to_owned()));
    }

    #[test]
    fn a_missing_direction_copies_the_last_and_an_empty_one_keeps_what_it_had() {
        let per_op =
            |text| Value::new(Some(text), 1024).per_op(&PerOp::all(1), |v| v.number(0, u64::MAX));
        assert_eq!(per_op("4k"), Ok(PerOp { read: 4096, write: 4096, trim: 4096 }));
        assert_eq!(per_op("4k,8k"), Ok(PerOp { read: 4096, write: 8192, trim: 8192 }));
        assert_eq!(per_op("2,3,4"), Ok(PerOp { read: 2, write: 3, trim: 4 }));
        assert_eq!(per_op(",3"), Ok(PerOp { read: 1, write: 3, trim: 3 }));
        assert_eq!(per_op("2,"), Ok(PerOp { read: 2, write: 1, trim: 1 }));
        assert_eq!(per_op("1,2,3,4"), Err(ValueError::TooManyParts));
    }
}
