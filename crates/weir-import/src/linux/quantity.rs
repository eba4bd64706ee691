//! Numbers of sysstat, with and without units.

use crate::number::Style;

pub(super) const KIB: f64 = 1024.0;

/// Parses a number in a unit of `by` smaller units: `1.5` KiB are 1536 bytes. With `-h`, sysstat
/// appends a unit to the number, which then applies.
pub(super) fn quantity(style: Style, text: &str, by: f64) -> Option<f64> {
    if text.as_bytes().last().is_some_and(u8::is_ascii_digit) {
        return Some(style.parse(text)? * by);
    }
    let (number, unit) = match text.chars().last()? {
        's' => (&text[..text.len() - 1], 512.0),
        'B' => (&text[..text.len() - 1], 1.0),
        'k' => (&text[..text.len() - 1], KIB),
        'M' => (&text[..text.len() - 1], KIB * KIB),
        'G' => (&text[..text.len() - 1], KIB * KIB * KIB),
        'T' => (&text[..text.len() - 1], KIB * KIB * KIB * KIB),
        _ => (text, by),
    };
    Some(style.parse(number)? * unit)
}

/// Returns the style of numbers once one has decimals; a whole number does not show it.
pub(super) fn style_of(known: &mut Option<Style>, words: &[&str]) -> Style {
    known.unwrap_or_else(|| {
        // Most outputs without decimals have none anywhere.
        if !words.iter().any(|word| word.bytes().any(|byte| matches!(byte, b'.' | b','))) {
            return Style::default();
        }
        let style = Style::detect(words.iter().copied());
        if words.iter().any(|word| word.contains(['.', ',']) && style.parse(word).is_some()) {
            *known = Some(style);
        }
        style
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_units_of_sysstat() {
        let check = |text: &str, expect: Option<f64>| {
            assert_eq!(quantity(Style::Point, text, KIB), expect, "{text}");
        };
        check("1.5", Some(1536.0));
        check("1.5k", Some(1536.0));
        check("2.0M", Some(2_097_152.0));
        check("0.0B", Some(0.0));
        check("k", None);
        check("sda", None);
        check("", None);
    }
}
