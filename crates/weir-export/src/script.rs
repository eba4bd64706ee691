//! The common parts of scripts: wrapped comments that text cannot break out of, blank lines, and
//! notes for the user.

use crate::change::Change;
use crate::kind::Kind;

/// A script with notes for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// The script.
    pub text: String,
    /// Steps that the script does not take, with reasons.
    pub notes: Vec<String>,
}

/// The width of comments, including their sign.
const WIDTH: usize = 98;

/// A script in the making.
#[derive(Debug)]
pub(crate) struct Script {
    kind: Kind,
    text: String,
    notes: Vec<String>,
    /// The indentation of comments.
    indent: &'static str,
}

impl Script {
    /// Returns a script with a header that names the layouts.
    pub(crate) fn new(kind: Kind, change: &Change) -> Self {
        let mut script = Self { kind, text: String::new(), notes: Vec::new(), indent: "" };
        if let Some(line) = kind.interpreter() {
            script.line(line);
        }
        let new = &change.new;
        let edition = new.edition.as_deref();
        let edition = edition.map(|name| format!(", edition {name}")).unwrap_or_default();
        script.comment(&format!(
            "Made by weir export {} --as {kind} from {} (host {}{edition}).",
            env!("CARGO_PKG_VERSION"),
            new.layout,
            new.host
        ));
        if let Some(old) = &change.old {
            let text = match kind.is_module() {
                true => {
                    format!("It contains the whole layout; the layout in use is {}.", old.layout)
                }
                false => format!("It contains the changes from {}, the layout in use.", old.layout),
            };
            script.comment(&text);
        }
        script
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Writes the requirements, actions and limits of the script.
    pub(crate) fn header(&mut self, needs: &str, does: &str, does_not: &str) {
        for (head, text) in [("Needs", needs), ("Does", does), ("Does not", does_not)] {
            self.comment("");
            self.comment(&format!("{head}: {text}"));
        }
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Writes several lines.
    pub(crate) fn lines(&mut self, text: &str) {
        self.line(text.trim_matches('\n'));
    }

    /// Writes an empty line, unless the last one is empty.
    pub(crate) fn blank(&mut self) {
        if !self.text.ends_with("\n\n") && !self.text.is_empty() {
            self.text.push('\n');
        }
    }

    /// Writes a wrapped comment. Text cannot end the comment.
    pub(crate) fn comment(&mut self, text: &str) {
        let (sign, indent) = (self.kind.comment(), self.indent);
        let mut line = format!("{indent}{}", sign.trim_end());
        let mut is_empty = true;
        for word in printable(text).split_whitespace() {
            if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
                self.line(&line);
                line = format!("{indent}{}", sign.trim_end());
            }
            line.push(' ');
            line.push_str(word);
            is_empty = false;
        }
        self.line(&line);
    }

    /// Writes a line as a comment.
    pub(crate) fn quiet(&mut self, line: &str) {
        let sign = self.kind.comment().trim_end();
        let line = format!("{}{sign}    {}", self.indent, printable(line));
        self.line(&line);
    }

    /// Writes a step that the script does not take, as a comment and as a note.
    pub(crate) fn warn(&mut self, text: &str) {
        self.comment(&format!("NOT DONE: {text}"));
        self.note(text);
    }

    /// Writes a step that the script does not take, followed by the commands for it.
    pub(crate) fn warn_with_steps(&mut self, text: &str, steps: &str) {
        self.comment(&format!("NOT DONE: {text}. {steps}"));
        self.note(&format!("{text}; the steps are in the script"));
    }

    /// Sets the indentation of comments.
    pub(crate) fn indent(&mut self, indent: &'static str) {
        self.indent = indent;
    }

    /// Adds a note for the user.
    pub(crate) fn note(&mut self, text: &str) {
        self.notes.push(printable(text));
    }

    /// Notes that nothing changes, for a module, which is written anyway.
    pub(crate) fn same(&mut self, change: &Change) {
        let old = change.old.as_ref().map_or("the layout in use", |old| old.layout.as_str());
        let text = format!(
            "no changes: {} and {old} are the same for {}; the module is written anyway, because \
             whatever is missing from it would be detached or destroyed",
            change.new.layout, self.kind
        );
        self.comment("");
        self.comment(&text);
        self.note(&text);
    }

    /// Notes that there is nothing to do.
    pub(crate) fn nothing(&mut self, change: &Change) {
        let old = change.old.as_ref().map_or("the layout in use", |old| old.layout.as_str());
        let text = format!(
            "nothing to do: {} and {old} are the same for {}",
            change.new.layout, self.kind
        );
        self.blank();
        self.comment(&text);
        self.note(&text);
    }

    pub(crate) fn finish(self) -> Export {
        Export { text: self.text, notes: self.notes }
    }
}

/// Returns text as one line: control characters become question marks.
pub(crate) fn printable(text: &str) -> String {
    let one =
        |c: char| if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') { '?' } else { c };
    text.chars().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(kind: Kind) -> Script {
        Script { kind, text: String::new(), notes: Vec::new(), indent: "" }
    }

    #[test]
    fn a_comment_stays_one_whatever_it_holds() {
        let check = |kind: Kind, text: &str, expect: &str| {
            let mut script = script(kind);
            script.comment(text);
            assert_eq!(script.text, expect);
        };
        check(Kind::Az, "a\nrm -rf /", "# a?rm -rf /\n");
        check(Kind::Tsql, "a\r\nDROP", "-- a??DROP\n");
        check(Kind::Bicep, "a\u{2028}b\u{85}c", "// a?b?c\n");
        check(Kind::Terraform, "", "#\n");
        let long = "word ".repeat(30);
        check(Kind::Fstab, &long, &format!("#{}\n#{}\n", " word".repeat(19), " word".repeat(11)));
    }
}
