//! Self-contained HTML pages: the verdict first, then money and other facts, tables and charts.
//!
//! Pages load nothing. They follow the reader's preference for a light or dark screen.

use crate::bars::{self, Bars};
use crate::chart::{self, Chart, DrawError};
use crate::scatter::{self, Scatter};
use crate::table::{Report, Table};
use std::fmt::Write as _;

const STYLE: &str = ":root{color-scheme:light dark}\
    body{font-family:sans-serif;margin:2em auto;max-width:1200px;padding:0 1em;line-height:1.4;\
    color:#1a1a1a;background:#fff}\
    section{border-left:4px solid #999;padding:0 1em;margin:1.5em 0}\
    section.throttling{border-color:#c81e1e}section.not-the-storage{border-color:#0072b2}\
    section.headroom{border-color:#e69f00}.small,footer,dt{color:#555}.small,footer{font-size:90%}\
    dl{display:grid;grid-template-columns:6em 1fr;gap:.2em 1em}dd{margin:0}\
    .wide{overflow-x:auto}table{border-collapse:collapse;margin:1em 0}\
    td,th{padding:.2em .7em;text-align:right;border-bottom:1px solid #ddd}\
    td:first-child,th:first-child{text-align:left}\
    pre{overflow-x:auto}svg{max-width:100%;height:auto}footer{margin-top:3em}\
    @media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#161616}\
    .small,footer,dt{color:#aaa}td,th{border-color:#444}\
    svg{filter:invert(.9) hue-rotate(180deg)}}";

/// A page, built from top to bottom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    title: String,
    body: String,
}

impl Page {
    /// Begins a page with its verdict, which is the title too.
    #[must_use]
    pub fn new(verdict: &str) -> Self {
        Self { title: verdict.to_owned(), body: format!("<h1>{}</h1>\n", escaped(verdict)) }
    }

    /// Adds paragraphs of text.
    #[must_use]
    pub fn paragraphs<'a>(mut self, lines: impl IntoIterator<Item = &'a str>) -> Self {
        for line in lines {
            let _ = writeln!(self.body, "<p>{}</p>", escaped(line));
        }
        self
    }

    /// Adds the tables that people read, each with its title and notes.
    #[must_use]
    pub fn tables<'a>(mut self, tables: impl IntoIterator<Item = &'a Table>) -> Self {
        for table in tables {
            self.body += &of_table(table);
        }
        self
    }

    /// Adds rows of charts under a heading; nothing without rows.
    ///
    /// # Errors
    ///
    /// [`DrawError`] if a chart cannot be drawn.
    pub fn charts(mut self, heading: &str, rows: &[Vec<Chart>]) -> Result<Self, DrawError> {
        if !rows.is_empty() {
            self = self.heading(heading);
            self.body += &chart::svg(rows)?;
        }
        Ok(self)
    }

    /// Adds bar charts under a heading; nothing without bars.
    ///
    /// # Errors
    ///
    /// [`DrawError`] if a chart cannot be drawn.
    pub fn bars(mut self, heading: &str, charts: &[Bars]) -> Result<Self, DrawError> {
        if charts.iter().any(|chart| !chart.bars.is_empty()) {
            self = self.heading(heading);
            self.body += &bars::svg(charts)?;
        }
        Ok(self)
    }

    /// Adds scatter plots under a heading; nothing without plots.
    ///
    /// # Errors
    ///
    /// [`DrawError`] if a plot cannot be drawn.
    pub fn scatters(mut self, heading: &str, plots: &[Scatter]) -> Result<Self, DrawError> {
        if !plots.is_empty() {
            self = self.heading(heading);
            self.body += &scatter::svg(plots)?;
        }
        Ok(self)
    }

    /// Adds text with its line breaks, under a heading.
    #[must_use]
    pub fn listing(mut self, heading: &str, text: &str) -> Self {
        self = self.heading(heading);
        let _ = writeln!(self.body, "<pre>{}</pre>", escaped(text.trim_end()));
        self
    }

    /// Adds a heading.
    #[must_use]
    pub fn heading(mut self, text: &str) -> Self {
        let _ = writeln!(self.body, "<h2>{}</h2>", escaped(text));
        self
    }

    /// Adds HTML.
    pub(crate) fn html_part(mut self, html: &str) -> Self {
        self.body += html;
        self
    }

    /// Returns the document. `written` says when and by what it was written.
    #[must_use]
    pub fn html(&self, written: &str) -> String {
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\"><title>{}</title>\n\
             <style>{STYLE}</style></head>\n<body>\n{}<footer>{}</footer>\n</body>\n</html>\n",
            escaped(&self.title),
            self.body,
            escaped(written)
        )
    }
}

/// A report of a run with a page of its own.
pub trait RunPage: Report {
    /// Returns the verdict in one sentence.
    fn verdict(&self) -> String;

    /// Returns what the verdict rests on, a sentence each.
    fn facts(&self) -> Vec<String>;

    /// Returns the lines below the tables and charts.
    fn remarks(&self) -> Vec<String>;

    /// Returns the page. `money` is a sentence on the price; `charts` are rows of charts over time.
    ///
    /// # Errors
    ///
    /// [`DrawError`] if a chart cannot be drawn.
    fn page(&self, money: Option<&str>, charts: &[Vec<Chart>]) -> Result<Page, DrawError> {
        let page = Page::new(&self.verdict())
            .paragraphs(money)
            .paragraphs(self.facts().iter().map(String::as_str))
            .tables(&self.tables())
            .charts("Over time", charts)?;
        Ok(page.paragraphs(self.remarks().iter().map(String::as_str)))
    }
}

/// Returns text as HTML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns a table with its title and notes; nothing for a table without rows and notes.
fn of_table(table: &Table) -> String {
    if !table.speaks() {
        return String::new();
    }
    let shown = table.shown();
    let mut out = String::new();
    if !table.title.is_empty() {
        let _ = writeln!(out, "<h2>{}</h2>", escaped(&table.title));
    }
    if !table.rows.is_empty() {
        out.push_str("<div class=\"wide\"><table><tr>");
        for (head, _) in &shown {
            let _ = write!(out, "<th scope=\"col\">{}</th>", escaped(head));
        }
        out.push_str("</tr>\n");
        for row in &table.rows {
            out.push_str("<tr>");
            for (_, at) in &shown {
                let _ = write!(out, "<td>{}</td>", escaped(&row[*at].to_string()));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</table></div>\n");
    }
    for note in &table.notes {
        let _ = writeln!(out, "<p class=\"small\">{}</p>", escaped(note));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells;

    #[test]
    fn a_page_escapes_text_and_leaves_out_columns_for_machines() {
        let mut own = Table::new("a < b", &["name", "|raw", ">rate|rate_per_s"]);
        own.row(cells!["<script>", "hidden", "5"]);
        let page = Page::new("x & y").tables([&own]).paragraphs(["1 < 2"]).html("<now>");
        let parts = [
            "<title>x &amp; y</title>",
            "<h1>x &amp; y</h1>",
            "<h2>a &lt; b</h2>",
            "<tr><th scope=\"col\">name</th><th scope=\"col\">rate</th></tr>",
            "<tr><td>&lt;script&gt;</td><td>5</td></tr>",
            "<p>1 &lt; 2</p>",
            "<footer>&lt;now&gt;</footer>",
        ];
        for part in parts {
            assert!(page.contains(part), "{part} is not in {page}");
        }
        assert!(!page.contains("hidden"), "{page}");
    }
}
