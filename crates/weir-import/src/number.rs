//! Numbers in various notations: `1,234.5`, `1.234,5`, `1 234,5`, `12,5`, `1'234`, `NULL`.
//!
//! A single number can be ambiguous: `1,234` is a thousand or a bit more than one. A [`Style`] is
//! found from many numbers.

/// The decimal separator of an input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Style {
    /// `1,234.5`
    #[default]
    Point,
    /// `1.234,5`
    Comma,
}

impl Style {
    /// Determines the style of numbers in columns from those that only one style would write; the
    /// point by default.
    pub(crate) fn detect<'a>(numbers: impl IntoIterator<Item = &'a str>) -> Self {
        let (mut point, mut comma) = (0_u32, 0_u32);
        for text in numbers {
            match vote(text.trim()) {
                Some(Self::Point) => point += 1,
                Some(Self::Comma) => comma += 1,
                None => {}
            }
        }
        if comma > point { Self::Comma } else { Self::Point }
    }

    /// Parses a number of this style.
    #[must_use]
    pub(crate) fn parse(self, text: &str) -> Option<f64> {
        let decimal = if self == Self::Point { b'.' } else { b',' };
        if let Some(number) = plain(text.as_bytes(), decimal) {
            return Some(number);
        }
        let text = text.trim();
        let text = text.strip_suffix('%').unwrap_or(text).trim_end();
        // The most common form needs no rewriting.
        if self == Self::Point
            && let Ok(number) = text.parse::<f64>()
        {
            let is_word =
                text.bytes().any(|b| b.is_ascii_alphabetic() && !matches!(b, b'e' | b'E'));
            return (number.is_finite() && !is_word).then_some(number);
        }
        let (decimal, thousands) = match self {
            Self::Point => ('.', ','),
            Self::Comma => (',', '.'),
        };
        let whole = text.split(decimal).next().unwrap_or_default();
        if text.matches(decimal).count() > 1 || !is_grouped(whole, thousands) {
            return None;
        }
        let plain: String = text
            .chars()
            .filter(|c| *c != thousands && !is_space(*c) && *c != '\'' && *c != '’')
            .map(|c| if c == decimal { '.' } else { c })
            .collect();
        let digits = plain.trim_start_matches(['-', '+', '\u{2212}']);
        let is_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            && digits
                .chars()
                .all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '-' | '+'));
        let plain = plain.replace('\u{2212}', "-");
        plain.parse().ok().filter(|number: &f64| is_number && number.is_finite())
    }
}

/// The digits that are exact in a float, like the power of ten that divides them.
const EXACT: usize = 15;
const POWERS: [f64; EXACT + 1] =
    [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// Parses a short number with only a sign and decimals, the most common form. Digits and power of
/// ten are exact, so their quotient is the nearest float.
fn plain(text: &[u8], decimal: u8) -> Option<f64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if !digits.first().is_some_and(u8::is_ascii_digit) || digits.len() > EXACT {
        return None;
    }
    let (mut number, mut point) = (0_u64, None);
    for (at, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => number = number * 10 + u64::from(byte - b'0'),
            _ if *byte == decimal && point.is_none() => point = Some(at + 1),
            _ => return None,
        }
    }
    let decimals = point.map_or(0, |point| digits.len() - point);
    #[expect(clippy::cast_precision_loss, reason = "this number of digits is exact")]
    let number = number as f64 / POWERS.get(decimals)?;
    Some(if digits.len() < text.len() { -number } else { number })
}

/// Returns whether a text stands for a missing number.
#[must_use]
pub(crate) fn is_missing(text: &str) -> bool {
    let text = text.trim();
    const WORDS: [&str; 6] = ["null", "nan", "n/a", "(null)", "none", "-"];
    text.is_empty() || WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Returns whether a character is a space that separates thousands.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}')
}

/// Returns whether all groups but the first have three digits.
fn is_grouped(whole: &str, separator: char) -> bool {
    let mut groups = whole.split(|c| c == separator || c == '\'' || c == '’' || is_space(c));
    let first = groups.next().unwrap_or_default();
    let mut rest = groups.peekable();
    let grouped = rest.peek().is_some();
    let three = |group: &str| group.len() == 3 && group.bytes().all(|b| b.is_ascii_digit());
    let first = first.trim_start_matches(['-', '+']);
    rest.all(three) && (!grouped || (1..=3).contains(&first.len()))
}

/// Returns the style, if only one would write this.
fn vote(text: &str) -> Option<Style> {
    let (points, commas) = (text.matches('.').count(), text.matches(',').count());
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | ',')) {
        return None;
    }
    if !text
        .chars()
        .all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '+' | 'e' | 'E' | '%'))
    {
        return None;
    }
    let last = text.rfind(['.', ','])?;
    let behind = text[last + 1..].trim_end_matches('%').len();
    match (points, commas) {
        (1, 0) if behind != 3 => Some(Style::Point),
        (0, 1) if behind != 3 => Some(Style::Comma),
        // Leading zeros are not grouped.
        (1, 0) if text.trim_start_matches(['-', '+']).starts_with("0.") => Some(Style::Point),
        (0, 1) if text.trim_start_matches(['-', '+']).starts_with("0,") => Some(Style::Comma),
        (0, 2..) => Some(Style::Point),
        (2.., 0) => Some(Style::Comma),
        (1.., 1..) if text[last..].starts_with('.') => Some(Style::Point),
        (1.., 1..) => Some(Style::Comma),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_both_styles() {
        let check = |style: Style, text: &str, expect: Option<f64>| {
            assert_eq!(style.parse(text), expect, "{style:?} {text:?}");
        };
        check(Style::Point, "1234.5", Some(1234.5));
        check(Style::Point, "1,234.5", Some(1234.5));
        check(Style::Point, "167,901,259", Some(167_901_259.0));
        check(Style::Point, " -3.5e-3 ", Some(-0.0035));
        check(Style::Point, "93.75%", Some(93.75));
        check(Style::Point, "12,5", None);
        check(Style::Point, "1,23,456", None);
        check(Style::Point, "inf", None);
        check(Style::Point, "nan", None);
        check(Style::Point, "1.2.3", None);
        check(Style::Comma, "12,5", Some(12.5));
        check(Style::Comma, "1.234,5", Some(1234.5));
        check(Style::Comma, "1\u{a0}234,5", Some(1234.5));
        check(Style::Comma, "1 234", Some(1234.0));
        check(Style::Point, "1'234.5", Some(1234.5));
        check(Style::Point, "", None);
        check(Style::Point, "sda", None);
        check(Style::Point, "12 monkeys", None);
    }

    #[test]
    fn short_numbers_are_parsed_exactly() {
        for text in [
            "0",
            "-0.00",
            "0.1",
            "12.50",
            "-5000.07",
            "123456789012345",
            "99.999999999",
            "0.00000000001",
            "5.",
            "1234567890123456789",
            "0.1234567890123456",
        ] {
            let expect = text.parse::<f64>().ok().map(f64::to_bits);
            assert_eq!(Style::Point.parse(text).map(f64::to_bits), expect, "{text}");
            let comma = text.replace('.', ",");
            assert_eq!(Style::Comma.parse(&comma).map(f64::to_bits), expect, "{comma}");
        }
    }

    #[test]
    fn the_style_is_detected_by_unambiguous_numbers() {
        let check =
            |texts: &[&str], expect| assert_eq!(Style::detect(texts.iter().copied()), expect);
        check(&["0,00", "4,13", "1,234"], Style::Comma);
        check(&["0.00", "1,234"], Style::Point);
        check(&["1,234", "53,577"], Style::Point);
        check(&["1.234.567"], Style::Comma);
        check(&["sda", "a,b", ""], Style::Point);
        check(&["1,234.5"], Style::Point);
        check(&["1.234,5"], Style::Comma);
    }

    #[test]
    fn missing_values() {
        assert!(["", " ", "NULL", "NaN", "-", "n/a"].iter().all(|text| is_missing(text)));
        assert!(["0", "-1", "x"].iter().all(|text| !is_missing(text)));
    }
}
