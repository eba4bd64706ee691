//! Tables as aligned text of a limited width.
//!
//! A table that is too wide is narrowed in three steps, in this order:
//!
//! 1. The widest columns wrap at spaces. Numbers never wrap; their headings may.
//! 2. If that is not enough, the columns are divided into several blocks below each other. Each
//!    block repeats the first column.
//! 3. A word that is wider than its column is broken.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The space before the first column.
const MARGIN: usize = 1;

/// The space between two columns.
const GAP: usize = 2;

/// Words of this width and less are never broken.
const WORD: usize = 24;

/// The least width that text of several words is wrapped to.
const TEXT: usize = 12;

/// A column: its heading and its cells.
#[derive(Debug, Clone)]
pub(crate) struct Column<'a> {
    /// The heading.
    pub(crate) head: &'a str,
    /// Numbers are aligned to the right.
    pub(crate) is_number: bool,
    /// One cell for each row.
    pub(crate) cells: Vec<String>,
}

impl Column<'_> {
    /// Returns the width without any wrapping.
    fn natural(&self) -> usize {
        self.cells.iter().map(|cell| lines_width(cell)).fold(self.head.width(), usize::max)
    }

    /// Returns the least width: that of numbers and of words.
    fn least(&self) -> usize {
        let head = self.head.split(' ').map(UnicodeWidthStr::width).max().unwrap_or(0).min(WORD);
        if self.is_number {
            return self.cells.iter().map(|cell| lines_width(cell)).fold(head, usize::max);
        }
        let words = self.cells.iter().flat_map(|cell| cell.split_whitespace());
        let word = words.map(UnicodeWidthStr::width).max().unwrap_or(0).min(WORD);
        head.max(word).max(self.natural().min(TEXT))
    }
}

fn lines_width(cell: &str) -> usize {
    cell.lines().map(UnicodeWidthStr::width).max().unwrap_or(0)
}

/// Returns the table as text. Lines have no space at their end.
pub(crate) fn lay_out(columns: &[Column<'_>], width: Option<usize>) -> String {
    let natural: Vec<usize> = columns.iter().map(Column::natural).collect();
    match width {
        Some(width) if total(&natural) > width => blocks(columns, width)
            .iter()
            .map(|block| {
                let own: Vec<&Column<'_>> = block.iter().map(|at| &columns[*at]).collect();
                let widths = narrowed(&own, width);
                lines(&own, &widths)
            })
            .collect::<Vec<_>>()
            .join("\n\n"),
        _ => lines(&columns.iter().collect::<Vec<_>>(), &natural),
    }
}

fn total(widths: &[usize]) -> usize {
    MARGIN + widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Divides the columns into blocks that fit, each with the first column.
fn blocks(columns: &[Column<'_>], width: usize) -> Vec<Vec<usize>> {
    let least: Vec<usize> = columns.iter().map(Column::least).collect();
    if total(&least) <= width || columns.len() < 2 {
        return vec![(0..columns.len()).collect()];
    }
    let mut blocks: Vec<Vec<usize>> = Vec::new();
    let mut block = vec![0];
    for at in 1..columns.len() {
        let widths: Vec<usize> = block.iter().chain([&at]).map(|at| least[*at]).collect();
        if block.len() > 1 && total(&widths) > width {
            blocks.push(std::mem::replace(&mut block, vec![0]));
        }
        block.push(at);
    }
    blocks.push(block);
    blocks
}

/// Returns widths that fit: the widest column gives way first.
fn narrowed(columns: &[&Column<'_>], width: usize) -> Vec<usize> {
    let least: Vec<usize> = columns.iter().map(|column| column.least()).collect();
    let mut widths: Vec<usize> = columns.iter().map(|column| column.natural()).collect();
    while total(&widths) > width {
        let slack = (0..widths.len()).filter(|at| widths[*at] > least[*at]);
        // Otherwise words are broken.
        let text = (0..widths.len()).filter(|at| !columns[*at].is_number && widths[*at] > TEXT);
        let widest = slack.max_by_key(|at| widths[*at]).or(text.max_by_key(|at| widths[*at]));
        let Some(widest) = widest else { break };
        widths[widest] -= 1;
    }
    widths
}

fn lines(columns: &[&Column<'_>], widths: &[usize]) -> String {
    let rows = columns.iter().map(|column| column.cells.len()).max().unwrap_or(0);
    let heads: Vec<&str> = columns.iter().map(|column| column.head).collect();
    let mut out = vec![row(columns, widths, &heads)];
    for at in 0..rows {
        let cells: Vec<&str> = columns.iter().map(|column| column.cells[at].as_str()).collect();
        out.push(row(columns, widths, &cells));
    }
    out.join("\n")
}

fn row(columns: &[&Column<'_>], widths: &[usize], cells: &[&str]) -> String {
    let cells: Vec<Vec<String>> =
        cells.iter().zip(widths).map(|(cell, width)| wrapped(cell, *width)).collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(1).max(1);
    let mut lines = Vec::new();
    for at in 0..height {
        let mut line = " ".repeat(MARGIN);
        for (place, (column, width)) in columns.iter().zip(widths).enumerate() {
            if place > 0 {
                line.push_str(&" ".repeat(GAP));
            }
            let text = cells[place].get(at).map_or("", String::as_str);
            let fill = " ".repeat(width.saturating_sub(text.width()));
            if column.is_number {
                line.push_str(&fill);
                line.push_str(text);
            } else {
                line.push_str(text);
                line.push_str(&fill);
            }
        }
        lines.push(line.trim_end().to_owned());
    }
    lines.join("\n")
}

/// Wraps a cell at spaces, and breaks words that are wider than `width`.
fn wrapped(cell: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    for line in cell.lines() {
        if line.width() <= width {
            lines.push(line.to_owned());
            continue;
        }
        let mut own = String::new();
        for word in line.split_whitespace() {
            let needs = if own.is_empty() { 0 } else { own.width() + 1 } + word.width();
            if needs <= width {
                if !own.is_empty() {
                    own.push(' ');
                }
                own.push_str(word);
                continue;
            }
            if !own.is_empty() {
                lines.push(std::mem::take(&mut own));
            }
            let mut parts = broken(word, width);
            own = parts.pop().unwrap_or_default();
            lines.append(&mut parts);
        }
        lines.push(own);
    }
    lines
}

/// Breaks a word into parts of `width` at most, behind a separator where there is one.
fn broken(word: &str, width: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut own = String::new();
    for letter in word.chars() {
        if own.width() + letter.width().unwrap_or(0) > width {
            let at =
                own.rfind(['/', ',', ';', '-', '_', '.', '=', ':', '&']).map_or(0, |at| at + 1);
            let rest = if at * 2 > own.len() { own.split_off(at) } else { String::new() };
            parts.push(std::mem::replace(&mut own, rest));
        }
        own.push(letter);
    }
    parts.push(own);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text<'a>(head: &'a str, cells: &[&str]) -> Column<'a> {
        let cells = cells.iter().map(|cell| (*cell).to_owned()).collect();
        Column { head, is_number: false, cells }
    }

    fn number<'a>(head: &'a str, cells: &[&str]) -> Column<'a> {
        Column { is_number: true, ..text(head, cells) }
    }

    fn widest(text: &str) -> usize {
        text.lines().map(UnicodeWidthStr::width).max().unwrap_or(0)
    }

    #[test]
    fn a_table_that_fits_is_not_wrapped() {
        let columns = [text("name", &["P10", "P30, cached"]), number("IOPS", &["500", "5,000"])];
        let expect = " name          IOPS\n P10            500\n P30, cached  5,000";
        assert_eq!(lay_out(&columns, Some(40)), expect);
        assert_eq!(lay_out(&columns, None), expect);
    }

    #[test]
    fn text_wraps_and_numbers_do_not() {
        let columns = [
            text("finding", &["requests wait at the limit of the machine", "none"]),
            number("time lost", &["1,234,567", "0"]),
        ];
        let expect = " finding                        time lost\n requests wait at the limit of  \
                      1,234,567\n the machine\n none                                   0";
        assert_eq!(lay_out(&columns, Some(41)), expect);
    }

    #[test]
    fn too_many_columns_are_divided_into_blocks() {
        let heads: Vec<String> = (0..12).map(|at| format!("limit {at}")).collect();
        let mut columns = vec![text("volume", &["data", "log"])];
        columns.extend(heads.iter().map(|head| number(head, &["1,000,000", "5"])));
        let out = lay_out(&columns, Some(60));
        assert!(widest(&out) <= 60, "{out}");
        assert_eq!(out.matches(" data ").count(), out.matches("volume").count());
        assert_eq!(out.matches("1,000,000").count(), 12);
    }

    #[test]
    fn words_that_are_too_long_are_broken_behind_separators() {
        let source = "https://learn.example.com/azure/virtual-machines/disks-types";
        let columns = [text("tier", &["P10"]), text("source", &[source])];
        let out = lay_out(&columns, Some(40));
        assert!(widest(&out) <= 40, "{out}");
        let parts: Vec<&str> = out.split_whitespace().collect();
        assert_eq!(parts[3..].concat(), source);
    }

    #[test]
    fn nothing_is_wider_than_the_screen() {
        let long = "a sentence of many words that goes on and on until it does not fit any more";
        for width in [40, 80, 120] {
            for count in 1..14 {
                let mut columns = vec![text("name", &[long])];
                columns.extend((0..count).map(|_| number("bytes/s", &["12,345,678"])));
                let out = lay_out(&columns, Some(width));
                assert!(widest(&out) <= width, "{width} {count}\n{out}");
            }
        }
    }
}
