//! Names and numbers that fit into columns.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};
use weir_report::number::{mib, rate, time};

/// The sign of a figure that does not exist.
pub(crate) const NONE: &str = "-";

/// Returns a text without characters that would move the cursor, have no width or change the
/// direction of writing. Names come from layouts and from clients of the blob service.
pub(crate) fn clean(text: &str) -> String {
    // Variation selectors widen the character before them on some terminals only.
    let shown = text.chars().filter(|c| !('\u{fe00}'..='\u{fe0f}').contains(c));
    shown.map(|c| if is_printable(c) { c } else { '\u{fffd}' }).collect()
}

fn is_printable(c: char) -> bool {
    let is_format = matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    );
    !c.is_control() && !is_format
}

/// Returns at most `width` columns of a text, with a mark where it was cut.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 0;
    for c in text.chars() {
        let own = c.width().unwrap_or(0);
        if used + own + 1 > width {
            break;
        }
        used += own;
        kept.push(c);
    }
    if width > 0 {
        kept.push('…');
    }
    debug_assert!(kept.width() <= width, "{kept:?} has more than {width} columns");
    kept
}

/// Returns a text as at most `rows` lines, which break between words where they can.
pub(crate) fn wrapped(text: &str, width: usize, rows: usize) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    let mut words = text.split(' ').filter(|word| !word.is_empty());
    while let Some(word) = words.next() {
        let gap = if line.is_empty() { "" } else { " " };
        let longer = format!("{line}{gap}{word}");
        if line.is_empty() || longer.width() <= width {
            line = longer;
        } else if lines.len() + 1 < rows {
            lines.push(std::mem::replace(&mut line, word.to_owned()));
        } else {
            line = longer + " " + &words.by_ref().collect::<Vec<_>>().join(" ");
        }
    }
    lines.push(line);
    lines.iter().map(|line| cut(line, width)).collect()
}

/// Returns a text of exactly `width` columns, with its start at the left.
pub(crate) fn left(text: &str, width: usize) -> String {
    let text = cut(text, width);
    let gap = width.saturating_sub(text.width());
    text + &" ".repeat(gap)
}

/// Returns a text of exactly `width` columns, with its end at the right.
pub(crate) fn right(text: &str, width: usize) -> String {
    let text = cut(text, width);
    " ".repeat(width.saturating_sub(text.width())) + &text
}

/// Returns the time of day of milliseconds since 1970, in UTC.
pub(crate) fn clock(ms: u64) -> String {
    let s = ms / 1_000;
    format!("{:02}:{:02}:{:02}", s / 3_600 % 24, s / 60 % 60, s % 60)
}

/// Returns a rate.
pub(crate) fn count(x: f64) -> String {
    known(x, |x| rate(x).to_string())
}

/// Returns bytes in MiB.
pub(crate) fn mebibytes(bytes: f64) -> String {
    known(bytes, |bytes| mib(bytes).to_string())
}

/// Returns milliseconds in a suitable unit.
pub(crate) fn milliseconds(ms: f64) -> String {
    known(ms, |ms| time(ms * 1e6).to_string())
}

/// Returns a share in whole percent.
pub(crate) fn share(share: f64) -> String {
    known(share, |share| format!("{:.0} %", share * 100.0))
}

fn known(x: f64, words: impl Fn(f64) -> String) -> String {
    if x.is_nan() { NONE.to_owned() } else { words(x) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_exactly_the_width_of_their_column() {
        for (text, width, at_left, at_right) in [
            ("data", 6, "data  ", "  data"),
            ("data", 4, "data", "data"),
            ("database", 5, "data…", "data…"),
            ("データ", 6, "データ", "データ"),
            ("データ", 5, "デー…", "デー…"),
            ("データ", 4, "デ… ", " デ…"),
            ("", 2, "  ", "  "),
            ("data", 0, "", ""),
            ("e\u{301}e\u{301}", 3, "e\u{301}e\u{301} ", " e\u{301}e\u{301}"),
        ] {
            assert_eq!(
                (left(text, width).as_str(), right(text, width).as_str()),
                (at_left, at_right)
            );
            assert_eq!((left(text, width).width(), right(text, width).width()), (width, width));
        }
    }

    #[test]
    fn a_sentence_breaks_between_words_and_loses_only_what_has_no_row() {
        let check = |text: &str, width, rows, expect: &[&str]| {
            assert_eq!(wrapped(text, width, rows), expect, "{text} in {width} x {rows}");
        };
        check("", 5, 2, &[""]);
        check("one two", 7, 2, &["one two"]);
        check("one two", 6, 2, &["one", "two"]);
        check("one two three four", 9, 3, &["one two", "three", "four"]);
        check("one two three four", 9, 2, &["one two", "three fo…"]);
        check("a-long-word one", 6, 3, &["a-lon…", "one"]);
        check("one a-long-word", 6, 3, &["one", "a-lon…"]);
        check("one", 2, 1, &["o…"]);
    }

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(
            clean("a\u{1b}[2J\nb\u{202e}c\u{200b}\u{9b}d"),
            "a\u{fffd}[2J\u{fffd}b\u{fffd}c\u{fffd}\u{fffd}d"
        );
        assert_eq!(clean("データ é\u{fe0f}"), "データ é");
    }

    #[test]
    fn figures_are_short() {
        assert_eq!(clock(86_400_000 * 20_000 + 3_723_999), "01:02:03");
        assert_eq!((count(3_500.2).as_str(), count(f64::NAN).as_str()), ("3,500", "-"));
        assert_eq!((mebibytes(1_048_576.0).as_str(), share(0.996).as_str()), ("1.00", "100 %"));
        assert_eq!((milliseconds(2.0).as_str(), milliseconds(f64::NAN).as_str()), ("2.00 ms", "-"));
    }
}
