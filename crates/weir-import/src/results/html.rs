//! HTML tables, as grids of results are copied or saved.
//!
//! ```text
//!  <table> <tr> <th>db_name</th> .. </tr> <tr> <td>DB2</td> .. </tr> </table>
//! ```
//!
//! The first row of a table is its head. Only tables, rows and cells are interpreted.

use super::set::{Found, ResultSet};
use crate::error::ImportError;
use crate::kind::Bytes;
use crate::text::Lines;
use std::collections::VecDeque;

/// The most bytes of a page, which is kept in memory.
const LONGEST: usize = 256 << 20;

/// Returns whether a text begins as HTML with a table.
pub(super) fn is_html(text: &str) -> bool {
    let start = text.trim_start();
    let lower = |text: &str| text.to_ascii_lowercase();
    // The clipboard of Windows puts a header before the HTML.
    start.starts_with('<') && lower(start).contains("<table")
        || (start.starts_with("Version:") && lower(start).contains("<table"))
}

/// The tables of a page.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) sets: VecDeque<Found>,
    /// True if the last row has no end; it is left out.
    pub(super) is_cut: bool,
}

impl Page {
    /// Reads all tables.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if the page is too long or not text.
    pub(super) fn read(mut lines: Lines<Bytes>) -> Result<Self, ImportError> {
        let mut text = String::new();
        while let Some(line) = lines.next_line()? {
            text.push_str(&line);
            text.push('\n');
            if text.len() > LONGEST {
                let reason = format!("a page has more than {} MiB", LONGEST >> 20);
                return Err(ImportError::at(lines.number(), reason));
            }
        }
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let mut reading = Reading::default();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('<') {
            reading.text(before);
            if let Some(comment) = behind.strip_prefix("!--") {
                rest = comment.split_once("-->").map_or("", |(_, rest)| rest);
                continue;
            }
            let Some((tag, after)) = behind.split_once('>') else {
                rest = "";
                break;
            };
            reading.tag(tag);
            rest = after;
        }
        reading.text(rest);
        reading.finish()
    }
}

#[derive(Debug, Default)]
struct Reading {
    page: Page,
    /// Rows of the current table.
    table: Option<Vec<Vec<String>>>,
    row: Option<Vec<String>>,
    cell: Option<String>,
}

impl Reading {
    fn text(&mut self, text: &str) {
        if let Some(cell) = &mut self.cell {
            cell.push_str(text);
        }
    }

    fn tag(&mut self, tag: &str) {
        let name = tag.split(|c: char| c.is_whitespace()).next().unwrap_or_default();
        match name.trim_end_matches('/').to_ascii_lowercase().as_str() {
            "table" => {
                self.end_table();
                self.table = Some(Vec::new());
            }
            "/table" => self.end_table(),
            "tr" => {
                self.end_row();
                self.row = Some(Vec::new());
            }
            "/tr" => self.end_row(),
            "td" | "th" => {
                self.end_cell();
                self.cell = Some(String::new());
            }
            "/td" | "/th" => self.end_cell(),
            "br" => self.text(" "),
            _ => {}
        }
    }

    fn end_cell(&mut self) {
        if let (Some(cell), Some(row)) = (self.cell.take(), &mut self.row) {
            let plain = decoded(&cell);
            row.push(plain.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }

    fn end_row(&mut self) {
        self.end_cell();
        if let (Some(row), Some(table)) = (self.row.take(), &mut self.table)
            && !row.is_empty()
        {
            table.push(row);
        }
    }

    fn end_table(&mut self) {
        self.end_row();
        let Some(mut rows) = self.table.take().map(VecDeque::from) else { return };
        if let Some(head) = rows.pop_front() {
            self.page.sets.push_back(Found { set: ResultSet::new(None, head, None), rows });
        }
    }

    /// Finishes a table without an end; its last row counts if it is complete.
    fn finish(mut self) -> Page {
        self.page.is_cut = self.table.is_some();
        if self.row.take().is_some() {
            self.cell = None;
        }
        self.end_table();
        self.page
    }
}

/// Decodes the character references of a text.
fn decoded(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('&') {
        plain.push_str(before);
        let known =
            behind.split_once(';').and_then(|(name, after)| Some((character(name)?, after)));
        match known {
            Some((c, after)) => {
                plain.push(c);
                rest = after;
            }
            None => {
                plain.push('&');
                rest = behind;
            }
        }
    }
    plain.push_str(rest);
    plain
}

fn character(name: &str) -> Option<char> {
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<Vec<String>> {
        let page = Page::parse(text);
        let all = page.sets.into_iter();
        all.flat_map(|found| std::iter::once(found.set.columns).chain(found.rows)).collect()
    }

    #[test]
    fn tables_with_and_without_ends_of_cells() {
        let text = "<html><TABLE border=1><tr><th>a<th>b &amp; c</tr>\n<tr><td> 1 </td><td>x<br>y&#160;\
                    &lt;z</td></tr></table><!-- <td> --> 7";
        assert_eq!(rows(text), [["a", "b & c"], ["1", "x y <z"]]);
        assert!(!Page::parse(text).is_cut);
    }

    #[test]
    fn a_truncated_page_has_its_complete_rows() {
        let text =
            "<table><tr><td>a</td><td>b</td></tr><tr><td>1</td><td>2</td></tr><tr><td>3</td><td>4";
        assert_eq!(rows(text), [["a", "b"], ["1", "2"]]);
        assert!(Page::parse(text).is_cut);
        assert!(rows("<table").is_empty() && rows("").is_empty());
    }
}
