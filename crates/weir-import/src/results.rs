//! Result sets of databases in all formats: tables of text, records of `psql -x`, documents of
//! JSON.
//!
//! A JSON document is kept in memory. Every list of objects in it is a result set, so an answer of
//! `FOR JSON`, a result saved by Azure Data Studio and a notebook with such results are read
//! alike.

mod document;
mod html;
mod set;

pub use set::RowSet;
pub(crate) use set::{ResultSet, Row};

use document::JSON_HEAD;
use set::Found;

use crate::error::ImportError;
use crate::kind::Bytes;
use crate::number::Style;
use crate::table::Tables;
use crate::text::{self, Lines};
use std::collections::VecDeque;

/// The number of rows used to find the style of numbers.
const GLANCE: usize = 64;

enum Source {
    Text(Box<Tables<Bytes>>),
    Records(Box<Records>),
    Document(VecDeque<Found>),
}

/// The result sets of an input in sequence.
pub(crate) struct ResultSets {
    source: Source,
    /// Rows read ahead, and the error that ended the read-ahead.
    ahead: VecDeque<Row>,
    behind: Option<Result<(), ImportError>>,
    document: VecDeque<Vec<String>>,
    /// True if the last row of a document is incomplete.
    is_cut: bool,
}

impl ResultSets {
    /// Opens the result sets of `input`.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if it is an incomplete document.
    pub(crate) fn new(mut input: Bytes) -> Result<Self, ImportError> {
        let glance = text::beginning(input.fill_buf()?);
        let lines = Lines::new(input);
        let mut is_cut = false;
        let source = if html::is_html(&glance) {
            let page = html::Page::read(lines)?;
            is_cut = page.is_cut;
            Source::Document(page.sets)
        } else if is_json(&glance) {
            Source::Document(document::read(lines)?)
        } else if has_records(&glance) {
            Source::Records(Box::new(Records { lines, next: None, title: None }))
        } else {
            Source::Text(Box::new(Tables::new(lines)))
        };
        let (ahead, document) = (VecDeque::new(), VecDeque::new());
        Ok(Self { source, ahead, behind: None, document, is_cut })
    }

    /// Advances to the next result set.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if it cannot be read.
    pub(crate) fn next_set(&mut self) -> Result<Option<ResultSet>, ImportError> {
        self.ahead.clear();
        self.behind = None;
        let set = match &mut self.source {
            Source::Text(tables) => tables.next_table()?.map(|table| {
                ResultSet::new(table.title.clone(), table.columns.clone(), Some(table))
            }),
            Source::Records(records) => records.next_set()?,
            Source::Document(found) => found.pop_front().map(|found| {
                self.document = found.rows;
                found.set
            }),
        };
        let Some(mut set) = set else { return Ok(None) };
        while self.ahead.len() < GLANCE && self.behind.is_none() {
            match self.read_row(&set) {
                Ok(Some(row)) => self.ahead.push_back(row),
                Ok(None) => self.behind = Some(Ok(())),
                Err(error) => self.behind = Some(Err(error)),
            }
        }
        let fields = self.ahead.iter().flat_map(|row| row.fields.iter());
        set.style = Style::detect(fields);
        Ok(Some(set))
    }

    /// Returns the next row of `set`, or `None` at its end.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if it does not fit its head.
    pub(crate) fn next_row(&mut self, set: &ResultSet) -> Result<Option<Row>, ImportError> {
        if let Some(row) = self.ahead.pop_front() {
            return Ok(Some(row));
        }
        match self.behind.replace(Ok(())) {
            Some(behind) => behind.map(|()| None),
            None => {
                self.behind = None;
                self.read_row(set)
            }
        }
    }

    /// Returns the next row, if it was read ahead.
    pub(crate) fn first(&self) -> Option<&Row> {
        self.ahead.front()
    }

    /// Returns the line of a set's head, and the text of the head with its first row.
    pub(crate) fn glance(&self, set: &ResultSet) -> (u64, String) {
        let row = self.ahead.front().map(|row| row.fields.iter().collect::<Vec<_>>().join(","));
        let line = set.table.as_ref().map_or(0, |table| table.line);
        (line, format!("{}\n{}", set.columns.join(","), row.unwrap_or_default()))
    }

    /// Returns whether the last row was cut at the end of the input.
    pub(crate) fn is_cut(&self) -> bool {
        match &self.source {
            Source::Text(tables) => tables.cut().is_some(),
            // The last result set is the truncated one.
            Source::Document(rest) => self.is_cut && rest.is_empty(),
            Source::Records(_) => false,
        }
    }

    /// Returns the number of lines outside of tables since the last call.
    pub(crate) fn take_outside(&mut self) -> u64 {
        match &mut self.source {
            Source::Text(tables) => tables.take_outside(),
            _ => 0,
        }
    }

    fn read_row(&mut self, set: &ResultSet) -> Result<Option<Row>, ImportError> {
        let (fields, line) = match &mut self.source {
            Source::Text(tables) => {
                let Some(table) = &set.table else { return Ok(None) };
                (tables.next_row(table)?, Some(tables.line()))
            }
            Source::Records(records) => {
                let row = records.next_row(set)?.map(|row| row.iter().collect());
                (row, Some(records.lines.number()))
            }
            Source::Document(_) => {
                (self.document.pop_front().map(|row| row.iter().collect()), None)
            }
        };
        let Some(fields) = fields else { return Ok(None) };
        let row = Row { fields, line };
        let (there, expected) = (row.fields.len(), set.columns.len());
        // A separator at the end of each line makes one empty field more.
        let is_more = there == expected + 1 && row.fields.get(expected).is_some_and(str::is_empty);
        if there != expected && !is_more {
            return Err(
                row.wrong(format!("a row has {there} fields, but its header has {expected}"))
            );
        }
        Ok(Some(row))
    }
}

/// Records of `psql -x`: one line per field.
struct Records {
    lines: Lines<Bytes>,
    /// The next record.
    next: Option<Record>,
    title: Option<String>,
}

#[derive(Debug, Default)]
struct Record {
    title: Option<String>,
    names: Vec<String>,
    values: Vec<String>,
}

impl Records {
    fn next_set(&mut self) -> Result<Option<ResultSet>, ImportError> {
        if self.next.is_none() {
            self.next = self.read()?;
        }
        let Some(record) = &mut self.next else { return Ok(None) };
        Ok(Some(ResultSet::new(record.title.take(), record.names.clone(), None)))
    }

    fn next_row(&mut self, set: &ResultSet) -> Result<Option<Vec<String>>, ImportError> {
        if self.next.is_none() {
            self.next = self.read()?;
        }
        let is_same = |record: &mut Record| record.names == set.columns && record.title.is_none();
        Ok(self.next.take_if(is_same).map(|record| record.values))
    }

    fn read(&mut self) -> Result<Option<Record>, ImportError> {
        let mut record = Record::default();
        while let Some(line) = self.lines.next_line()? {
            if is_record(&line) {
                if !record.names.is_empty() {
                    self.lines.put_back(line);
                    return Ok(Some(record));
                }
                record.title = self.title.take();
            } else if let Some((name, value)) = line.split_once(['|', '│']) {
                // A line without a name continues the value.
                if !name.trim().is_empty() {
                    record.names.push(name.trim().to_owned());
                    record.values.push(value.trim().trim_end_matches('+').trim().to_owned());
                }
            } else if !line.trim().is_empty() {
                self.title = Some(line.trim().to_owned());
                if !record.names.is_empty() {
                    return Ok(Some(record));
                }
            }
        }
        Ok((!record.names.is_empty()).then_some(record))
    }
}

fn is_record(line: &str) -> bool {
    line.starts_with("-[ ") || line.starts_with("─[ ")
}

fn has_records(text: &str) -> bool {
    text.lines().any(is_record)
}

/// Returns whether a text begins as a JSON document, also below a head of sqlcmd.
pub(crate) fn is_json(text: &str) -> bool {
    let text = text.trim_start();
    // A name in brackets is no list.
    let is_list = |rest: &str| rest.is_empty() || rest.starts_with(['{', '[', '"', ']']);
    let list = text.strip_prefix('[').map(str::trim_start);
    text.starts_with('{') || list.is_some_and(is_list) || text.starts_with(JSON_HEAD)
}

/// Returns the names at the beginning of a document.
fn quoted(text: &str) -> Vec<String> {
    text.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns the heads at the beginning of an input.
pub(crate) fn heads(text: &str) -> Vec<ResultSet> {
    if is_json(text) {
        return vec![ResultSet::of_columns(quoted(text))];
    }
    let input: Bytes = Box::new(std::io::Cursor::new(text.to_owned()));
    let mut heads = Vec::new();
    if let Ok(mut sets) = ResultSets::new(input) {
        while let Ok(Some(set)) = sets.next_set() {
            while matches!(sets.next_row(&set), Ok(Some(_))) {}
            heads.push(set);
        }
    }
    heads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &[(&[&str], &[&[&str]])]) {
        let input: Bytes = Box::new(std::io::Cursor::new(text.to_owned()));
        let mut sets = ResultSets::new(input).expect("sets");
        let mut all = Vec::new();
        while let Some(set) = sets.next_set().expect("a set") {
            let mut rows = Vec::new();
            while let Some(row) = sets.next_row(&set).expect("a row") {
                rows.push(row.fields.iter().map(str::to_owned).collect::<Vec<_>>());
            }
            all.push((set.columns, rows));
        }
        assert_eq!(all.len(), expect.len(), "{all:?}");
        for ((columns, rows), expect) in all.iter().zip(expect) {
            assert_eq!(columns, expect.0);
            assert_eq!(rows, expect.1);
        }
    }

    #[test]
    fn of_records() {
        let text = "-[ RECORD 1 ]--\na   | 1\nb_c | x | y\n-[ RECORD 2 ]--\na   | 2\nb_c | \n\n";
        check(text, &[(&["a", "b_c"], &[&["1", "x | y"], &["2", ""]])]);
        let text = "-[ RECORD 1 ]\na | 1\n-[ RECORD 1 ]\nb | 2\n";
        check(text, &[(&["a"], &[&["1"]]), (&["b"], &[&["2"]])]);
    }

    #[test]
    fn of_documents() {
        check(
            r#"[{"a":1,"b":null},{"a":2.5,"c":"x"}]"#,
            &[(&["a", "b", "c"], &[&["1", "", ""], &["2.5", "", "x"]])],
        );
        check(
            r#"{"schema":{"fields":[{"name":"a"},{"name":"b"}]},"data":[{"0":"1","1":"NULL"}]}"#,
            &[(&["a", "b"], &[&["1", "NULL"]])],
        );
        check("{\"a\":1}\n{\"a\":2}\n", &[(&["a"], &[&["1"], &["2"]])]);
        check(r#"{"x":[{"a":1}],"y":[{"b":2}]}"#, &[(&["a"], &[&["1"]]), (&["b"], &[&["2"]])]);
        let split = "JSON_F52E2B61-18A1-11d1-B105-00805F49916B\n-----\n[{\"a\":\n1}]\n\n(1 rows affected)\n";
        check(split, &[(&["a"], &[&["1"]])]);
    }
}
