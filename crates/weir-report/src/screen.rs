//! The screen that text is laid out for: its width, its colours, and how much detail is wanted.
//!
//! A report does not know where it is printed. The caller does, and passes a [`Screen`].

use unicode_width::UnicodeWidthStr;

/// The width of text for a pipe or a file.
pub const PIPE_WIDTH: usize = 80;

/// The narrowest width that text is laid out for.
const NARROWEST: usize = 40;

/// Options for text output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Screen {
    width: Option<usize>,
    has_colours: bool,
    is_verbose: bool,
}

/// The colour of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// A problem.
    Red,
    /// No problem.
    Green,
    /// Undecided.
    Yellow,
    /// A problem elsewhere.
    Cyan,
}

impl Screen {
    /// Returns a screen of unlimited width, without colours.
    #[must_use]
    pub const fn unlimited() -> Self {
        Self { width: None, has_colours: false, is_verbose: false }
    }

    /// Returns a screen of `width` columns, but at least 40, without colours.
    #[must_use]
    pub const fn of_width(width: usize) -> Self {
        let width = if width < NARROWEST { NARROWEST } else { width };
        Self { width: Some(width), has_colours: false, is_verbose: false }
    }

    /// Returns the same screen, with or without colours.
    #[must_use]
    pub const fn with_colours(self, has_colours: bool) -> Self {
        Self { has_colours, ..self }
    }

    /// Returns the same screen, with or without the details that are left out by default.
    #[must_use]
    pub const fn with_details(self, is_verbose: bool) -> Self {
        Self { is_verbose, ..self }
    }

    /// Returns the number of columns, or `None` if lines are not wrapped.
    #[must_use]
    pub const fn width(&self) -> Option<usize> {
        self.width
    }

    /// Returns whether details are wanted that are left out by default.
    #[must_use]
    pub const fn is_verbose(&self) -> bool {
        self.is_verbose
    }

    /// Returns `text` in bold and in `colour`, or as it is on a screen without colours.
    #[must_use]
    pub(crate) fn paint(&self, colour: Colour, text: &str) -> String {
        if !self.has_colours {
            return text.to_owned();
        }
        let code = match colour {
            Colour::Red => 31,
            Colour::Green => 32,
            Colour::Yellow => 33,
            Colour::Cyan => 36,
        };
        format!("\u{1b}[1;{code}m{text}\u{1b}[0m")
    }

    /// Wraps a line of prose at spaces. Lines after the first have the indentation of the first and
    /// `hanging` spaces more. A word that is too long stays whole, so that paths and commands can be
    /// copied.
    #[must_use]
    pub fn prose(&self, line: &str, hanging: usize) -> String {
        let Some(width) = self.width else { return line.to_owned() };
        if line.width() <= width {
            return line.to_owned();
        }
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        let rest = (indent + hanging).min(width / 2);
        let mut out = " ".repeat(indent);
        let mut used = indent;
        let mut is_first = true;
        for word in text.split(' ') {
            let own = word.width();
            if !is_first && used + 1 + own > width && used > rest {
                out.truncate(out.trim_end().len());
                out.push('\n');
                out.push_str(&" ".repeat(rest));
                used = rest;
            } else if !is_first {
                out.push(' ');
                used += 1;
            }
            out.push_str(word);
            used += own;
            is_first = false;
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_wraps_at_spaces_and_keeps_its_indentation() {
        let check = |line: &str, hanging, expect: &str| {
            assert_eq!(Screen::of_width(40).prose(line, hanging), expect);
        };
        check("short", 4, "short");
        check(
            "one two three four five six seven eight nine ten",
            0,
            "one two three four five six seven eight\nnine ten",
        );
        check(
            "  a reason that is longer than the width of the screen",
            2,
            "  a reason that is longer than the width\n    of the screen",
        );
        let path = "/a/path/that/is/much/longer/than/the/screen/is/wide";
        check(&format!("see {path} for it"), 2, &format!("see\n  {path}\n  for it"));
        assert_eq!(Screen::unlimited().prose(&"word ".repeat(50), 0), "word ".repeat(50));
    }

    #[test]
    fn only_a_screen_with_colours_has_escapes() {
        let screen = Screen::of_width(80);
        assert_eq!(screen.paint(Colour::Red, "throttled"), "throttled");
        let painted = screen.with_colours(true).paint(Colour::Red, "throttled");
        assert_eq!(painted, "\u{1b}[1;31mthrottled\u{1b}[0m");
    }
}
