//! Reports that begin with their answer: one line that says it, lines that explain it, then tables.

use crate::page::Page;
use crate::screen::Screen;
use crate::table::Table;

/// The answer of a report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The answer in one line.
    pub line: String,
    /// Facts that it rests on, and what to do next, a line each.
    pub details: Vec<String>,
    /// Lines below the tables.
    pub notes: Vec<String>,
}

impl Answer {
    /// Returns the answer and the tables below it as text.
    pub(crate) fn text(&self, tables: &[Table], screen: &Screen) -> String {
        let line = |text: &str| format!("{}\n", screen.prose(text, 2));
        let mut out = line(&self.line);
        self.details.iter().for_each(|detail| out += &line(&format!("  {detail}")));
        for table in tables.iter().filter(|table| table.speaks()) {
            out += &format!("\n{}", table.block(screen));
        }
        if !self.notes.is_empty() {
            out.push('\n');
        }
        self.notes.iter().for_each(|note| out += &line(note));
        out
    }

    /// Begins a page with the answer; the tables and notes are below it.
    pub(crate) fn page(&self, tables: &[Table]) -> Page {
        Page::new(&self.line)
            .paragraphs(self.details.iter().map(String::as_str))
            .tables(tables)
            .paragraphs(self.notes.iter().map(String::as_str))
    }

    /// Returns the answer and the tables below it in Markdown.
    pub(crate) fn markdown(&self, tables: &[Table]) -> String {
        let mut out = format!("**{}**\n", self.line);
        self.details.iter().for_each(|line| out += &format!("\n{line}\n"));
        for table in tables.iter().filter(|table| table.speaks()) {
            out += &format!("\n{}\n", table.markdown());
            table.notes.iter().for_each(|note| out += &format!("\n{note}\n"));
        }
        self.notes.iter().for_each(|note| out += &format!("\n{note}\n"));
        out
    }
}
