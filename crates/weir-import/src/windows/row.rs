//! Fields of a row and the numbers in them, without copies.

use crate::number::{Style, is_missing};

/// The unquoted fields of a row.
#[derive(Debug, Clone)]
pub(super) struct Fields<'a> {
    rest: Option<&'a str>,
    delimiter: u8,
    /// True if the last quote has no end.
    is_open: bool,
}

impl<'a> Fields<'a> {
    pub(super) fn new(row: &'a str, delimiter: u8) -> Self {
        Self { rest: Some(row), delimiter, is_open: false }
    }

    /// Returns whether a quote has no end.
    pub(super) const fn is_open(&self) -> bool {
        self.is_open
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest.take()?;
        let Some(quoted) = rest.trim_start_matches(' ').strip_prefix('"') else {
            let (field, rest) = cut(rest, self.delimiter);
            self.rest = rest;
            return Some(field.trim());
        };
        let mut from = 0;
        loop {
            let end = quoted.bytes().skip(from).position(|byte| byte == b'"');
            let Some((field, behind)) = end.and_then(|end| quoted.split_at_checked(from + end))
            else {
                self.is_open = true;
                return Some(quoted.trim());
            };
            let behind = behind.get(1..).unwrap_or_default();
            // A doubled quote is a literal one.
            if behind.starts_with('"') {
                from = field.len() + 2;
                continue;
            }
            self.rest = cut(behind, self.delimiter).1;
            return Some(field.trim());
        }
    }
}

/// Splits a text at a delimiter. Fields are short, so a search without preparation is the fastest.
fn cut(text: &str, delimiter: u8) -> (&str, Option<&str>) {
    let at = text.bytes().position(|byte| byte == delimiter);
    match at.and_then(|at| Some((text.get(..at)?, text.get(at + 1..)?))) {
        Some((field, rest)) => (field, Some(rest)),
        None => (text, None),
    }
}

/// Values of counters. Windows never groups thousands; a spreadsheet may.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    has_points: bool,
}

/// The content of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Said {
    Value(f64),
    /// A blank, a word for a missing value, or the result of a division by zero.
    Nothing,
    /// Text that is no number.
    Other,
}

impl Numbers {
    pub(super) fn read(&mut self, text: &str) -> Said {
        let is_plain = text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.');
        if is_plain && let Ok(value) = text.parse::<f64>() {
            self.has_points |= text.contains('.');
            return if value.is_finite() { Said::Value(value) } else { Said::Nothing };
        }
        // The Windows runtime prints "-1.#IND00" and "1.#QNAN" for values that are not numbers.
        if is_missing(text) || text.contains(".#") || text.contains(",#") {
            return Said::Nothing;
        }
        let point = text.rfind('.');
        let style =
            if self.has_points || point > text.rfind(',') { Style::Point } else { Style::Comma };
        style.parse(text).map_or(Said::Other, Said::Value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_and_without_quotes() {
        let check = |row: &str, expect: &[&str], is_open: bool| {
            let mut fields = Fields::new(row, b',');
            let got: Vec<_> = fields.by_ref().collect();
            assert_eq!((&got[..], fields.is_open()), (expect, is_open), "{row}");
        };
        check("a, b ,", &["a", "b", ""], false);
        check(r#""a,x","b ","c""#, &["a,x", "b", "c"], false);
        check(r#""a""b",c"#, &[r#"a""b"#, "c"], false);
        check(r#""a","b"#, &["a", "b"], true);
        check("", &[""], false);
    }

    #[test]
    fn numbers_of_both_styles() {
        let read = |texts: &[&str]| -> Vec<Said> {
            let mut numbers = Numbers::default();
            texts.iter().map(|text| numbers.read(text)).collect()
        };
        assert_eq!(read(&["0.5", "1,234.5"]), [Said::Value(0.5), Said::Value(1234.5)]);
        assert_eq!(read(&["0.5", "1,234"]), [Said::Value(0.5), Said::Value(1234.0)]);
        assert_eq!(read(&["0,500", "1.234,5"]), [Said::Value(0.5), Said::Value(1234.5)]);
        assert_eq!(read(&["4.0E-4", "-1.#IND00"]), [Said::Value(4e-4), Said::Nothing]);
        assert_eq!(read(&["", " ", "NaN", "1o0"])[2..], [Said::Nothing, Said::Other]);
    }
}
