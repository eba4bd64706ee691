//! Tables in text: delimited, in columns of fixed width (sqlcmd), aligned (psql), in Markdown.
//!
//! Titles before a table, dashes below its head and the line behind it (`(50 rows affected)`) are
//! no rows. A file may have several tables.

use crate::error::ImportError;
use crate::text::{self, Lines};
use csv_core::{ReadRecordResult, Reader};
use std::io::BufRead;
use std::ops::Range;

/// The head of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    /// The line of text before it.
    pub(crate) title: Option<String>,
    /// Column names, unchanged.
    pub(crate) columns: Vec<String>,
    /// Line of the head.
    pub(crate) line: u64,
    form: Form,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    Delimited(u8),
    Markdown,
    /// Aligned by psql: bars between columns, and a line of `-` and `+` below the head.
    Aligned,
    /// Fixed ranges of characters.
    Fixed(Vec<Range<usize>>),
}

impl Table {
    /// Returns the column with the first of these names that exists, ignoring case, spaces and
    /// underscores.
    #[must_use]
    pub(crate) fn column(&self, names: &[&str]) -> Option<usize> {
        names.iter().find_map(|name| {
            let wanted = plain(name);
            self.columns.iter().position(|column| plain(column) == wanted)
        })
    }
}

/// Normalizes a name.
#[must_use]
pub(crate) fn plain(name: &str) -> String {
    let keep = |c: &char| !matches!(c, ' ' | '_' | '\u{a0}' | '[' | ']' | '"');
    name.trim().chars().filter(keep).flat_map(char::to_lowercase).collect()
}

/// The tables of an input in sequence.
#[derive(Debug)]
pub(crate) struct Tables<R> {
    lines: Lines<R>,
    csv: Option<(u8, Reader)>,
    /// Line of a last row that was cut.
    cut: Option<u64>,
    /// Number of lines that belong to no table or title.
    outside: u64,
}

impl<R: BufRead> Tables<R> {
    /// Creates a reader of the tables in `lines`.
    pub(crate) fn new(lines: Lines<R>) -> Self {
        Self { lines, csv: None, cut: None, outside: 0 }
    }

    /// Returns the number of the last line read.
    pub(crate) const fn line(&self) -> u64 {
        self.lines.number()
    }

    /// Returns the line of a row that was cut at the end of the input.
    pub(crate) const fn cut(&self) -> Option<u64> {
        self.cut
    }

    /// Returns the number of lines outside of tables and titles since the last call.
    pub(crate) const fn take_outside(&mut self) -> u64 {
        std::mem::replace(&mut self.outside, 0)
    }

    /// Advances to the next table, or returns `None` at the end.
    ///
    /// # Errors
    ///
    /// [`ImportError::Io`].
    pub(crate) fn next_table(&mut self) -> Result<Option<Table>, ImportError> {
        let mut title = None;
        loop {
            let Some(head) = self.lines.next_line()? else {
                self.outside += u64::from(title.is_some());
                return Ok(None);
            };
            if head.trim().is_empty() {
                continue;
            }
            let number = self.lines.number();
            let Some(next) = self.lines.next_line()? else {
                // A head without rows is a table too.
                let form = delimiter(&head).map(Form::Delimited);
                return Ok(form.map(|form| self.table(title, &head, number, form)));
            };
            if let Some(ranges) = dashes(&next) {
                return Ok(Some(self.table(title, &head, number, Form::Fixed(ranges))));
            }
            if is_crossed(&next) && head.contains(['|', '│']) {
                return Ok(Some(self.table(title, &head, number, Form::Aligned)));
            }
            if is_ruled(&next) && head.trim_start().starts_with('|') {
                return Ok(Some(self.table(title, &head, number, Form::Markdown)));
            }
            if let Some(delimiter) = delimiter(&head) {
                let table = self.table(title.clone(), &head, number, Form::Delimited(delimiter));
                let fields = self.split(&table.form, &next);
                if fields.iter().all(is_dash) && fields.len() > 1 {
                    return Ok(Some(table));
                }
                if fields.len() == table.columns.len() || next.trim().is_empty() {
                    self.lines.put_back(next);
                    return Ok(Some(table));
                }
            }
            self.lines.put_back(next);
            self.outside += u64::from(title.is_some());
            title = Some(head.trim().trim_matches(['=', '#', '*', ' ']).to_owned());
        }
    }

    fn table(&mut self, title: Option<String>, head: &str, line: u64, form: Form) -> Table {
        let columns = self.split(&form, head).iter().map(str::to_owned).collect();
        Table { title, columns, line, form }
    }

    /// Returns the fields of the next row, or `None` at the end of the table.
    ///
    /// # Errors
    ///
    /// [`ImportError::Io`].
    pub(crate) fn next_row(&mut self, table: &Table) -> Result<Option<Fields>, ImportError> {
        loop {
            let Some(mut line) = self.lines.next_line()? else { return Ok(None) };
            if line.trim().is_empty() {
                match self.lines.next_line()? {
                    None => return Ok(None),
                    Some(next) => {
                        let goes_on = matches!(table.form, Form::Delimited(_))
                            && self.split(&table.form, &next).len() == table.columns.len()
                            && !self.split(&table.form, &next).is(&table.columns);
                        // Dashes below a row of equal width show that it is the head of another
                        // table.
                        let is_head = goes_on && self.has_dashes(&table.form)?;
                        self.lines.put_back(next);
                        if goes_on && !is_head {
                            continue;
                        }
                        return Ok(None);
                    }
                }
            }
            let trimmed = line.trim();
            if trimmed.starts_with('(') && trimmed.contains("row") && trimmed.ends_with(')') {
                return Ok(None);
            }
            // Titles are printed between results without an empty line.
            if matches!(&table.form, Form::Fixed(ranges) if !is_row(&line, ranges)) {
                self.lines.put_back(line);
                return Ok(None);
            }
            // A quoted text may continue in the next line.
            let mut joined = 0;
            while matches!(table.form, Form::Delimited(_))
                && line.bytes().filter(|byte| *byte == b'"').count() % 2 == 1
                && joined < MOST_JOINED
            {
                let Some(more) = self.lines.next_line()? else { break };
                line = format!("{line}\n{more}");
                joined += 1;
            }
            let fields = self.split(&table.form, &line);
            let is_short = match &table.form {
                Form::Fixed(ranges) => ends_before_last(&line, ranges),
                _ => fields.len() < table.columns.len(),
            };
            if self.lines.was_open() && is_short {
                self.cut = Some(self.lines.number());
                return Ok(None);
            }
            // A repeated head: files were concatenated.
            if fields.is(&table.columns) {
                continue;
            }
            return Ok(Some(fields));
        }
    }

    /// Returns whether the next line is all dashes, as below the head of a table.
    fn has_dashes(&mut self, form: &Form) -> Result<bool, ImportError> {
        let Some(next) = self.lines.next_line()? else { return Ok(false) };
        let fields = self.split(form, &next);
        let has_dashes = fields.len() > 1 && fields.iter().all(is_dash);
        self.lines.put_back(next);
        Ok(has_dashes)
    }

    fn split(&mut self, form: &Form, line: &str) -> Fields {
        let bars = ['|', '│'];
        match form {
            Form::Delimited(delimiter) => self.delimited(*delimiter, line),
            Form::Markdown => {
                let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
                inner.split('|').collect()
            }
            Form::Aligned => line.split(bars).collect(),
            Form::Fixed(ranges) if !is_in_columns(line, ranges) => line.split(' ').collect(),
            Form::Fixed(ranges) if line.is_ascii() => {
                let field = |range: &Range<usize>| {
                    line.get(range.start..range.end.min(line.len())).unwrap_or_default()
                };
                ranges.iter().map(field).collect()
            }
            Form::Fixed(ranges) => {
                let chars: Vec<char> = line.chars().collect();
                let field = |range: &Range<usize>| {
                    let end = range.end.min(chars.len());
                    let own = chars.get(range.start..end).unwrap_or_default();
                    own.iter().collect::<String>()
                };
                ranges.iter().map(field).collect()
            }
        }
    }

    fn delimited(&mut self, delimiter: u8, line: &str) -> Fields {
        if !line.contains('"') {
            return text::fields(line, delimiter).into_iter().collect();
        }
        let reader = match &mut self.csv {
            Some((own, reader)) if *own == delimiter => reader,
            csv => {
                let reader = csv_core::ReaderBuilder::new().delimiter(delimiter).build();
                &mut csv.insert((delimiter, reader)).1
            }
        };
        reader.reset();
        let (mut out, mut ends) = (vec![0; line.len() + 1], vec![0; line.len() + 2]);
        let (result, _, mut written, mut fields) =
            reader.read_record(line.as_bytes(), &mut out, &mut ends);
        if result == ReadRecordResult::InputEmpty {
            let (_, _, more, ended) =
                reader.read_record(&[], &mut out[written..], &mut ends[fields..]);
            written += more;
            fields += ended;
        }
        let mut start = 0;
        let field = |end: &usize| {
            let range = start..(*end).min(written);
            start = *end;
            String::from_utf8_lossy(&out[range])
        };
        ends[..fields].iter().map(field).collect()
    }
}

/// The trimmed fields of a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    /// All fields, concatenated.
    text: String,
    ends: Vec<usize>,
}

impl Fields {
    /// Returns a field by position.
    #[must_use]
    pub(crate) fn get(&self, at: usize) -> Option<&str> {
        let end = *self.ends.get(at)?;
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        self.text.get(start.unwrap_or(0)..end)
    }

    /// Returns the number of fields.
    #[must_use]
    pub(crate) const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns all fields.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    /// Returns whether the fields equal these.
    fn is(&self, others: &[String]) -> bool {
        self.len() == others.len() && self.iter().eq(others)
    }
}

impl<T: AsRef<str>> FromIterator<T> for Fields {
    fn from_iter<I: IntoIterator<Item = T>>(fields: I) -> Self {
        let fields = fields.into_iter();
        let count = fields.size_hint().0;
        let text = String::with_capacity(count * USUAL_LENGTH);
        let mut all = Self { text, ends: Vec::with_capacity(count) };
        for field in fields {
            all.text.push_str(field.as_ref().trim());
            all.ends.push(all.text.len());
        }
        all
    }
}

/// The usual length of a field, for allocation.
const USUAL_LENGTH: usize = 12;
/// The most lines of a quoted text.
const MOST_JOINED: usize = 1000;

/// Returns the separator that splits a head into most fields, outside of quotes.
#[must_use]
pub(crate) fn delimiter(head: &str) -> Option<u8> {
    let best = [',', ';', '\t', '|'].into_iter().map(|delimiter| {
        let mut quoted = false;
        let mut found = 0;
        for c in head.chars() {
            quoted ^= c == '"';
            found += usize::from(c == delimiter && !quoted);
        }
        (found, delimiter)
    });
    let (found, delimiter) = best.max_by_key(|(found, _)| *found)?;
    if found > 0 { u8::try_from(delimiter).ok() } else { None }
}

/// Returns the columns marked by a line of dashes.
fn dashes(line: &str) -> Option<Vec<Range<usize>>> {
    if !line.contains("--") || !line.chars().all(|c| c == '-' || c == ' ') {
        return None;
    }
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (at, c) in line.chars().enumerate() {
        match ranges.last_mut() {
            Some(last) if c == '-' && last.end == at => last.end = at + 1,
            _ if c == '-' => ranges.push(at..at + 1),
            _ => {}
        }
    }
    // The last column may be wider than its dashes.
    if let Some(last) = ranges.last_mut() {
        last.end = usize::MAX;
    }
    Some(ranges)
}

/// Returns whether a line has spaces between the columns.
fn is_in_columns(line: &str, ranges: &[Range<usize>]) -> bool {
    let mut starts = ranges.iter().skip(1).map(|range| range.start.saturating_sub(1)).peekable();
    for (at, c) in line.chars().enumerate() {
        if starts.next_if_eq(&at).is_some() && c != ' ' {
            return false;
        }
    }
    true
}

/// Returns whether the last column of a line is empty.
fn ends_before_last(line: &str, ranges: &[Range<usize>]) -> bool {
    is_in_columns(line, ranges)
        && ranges.last().is_some_and(|last| line.trim_end().chars().count() <= last.start)
}

/// Returns whether a line can be a row: it keeps to the columns, or has as many words separated by
/// one space, as `sqlcmd -W` prints.
fn is_row(line: &str, ranges: &[Range<usize>]) -> bool {
    let words = || line.split(' ').count() == ranges.len();
    !line.starts_with("==") && (is_in_columns(line, ranges) || words())
}

/// Returns whether a line is the one below the head of a table of psql.
fn is_crossed(line: &str) -> bool {
    line.contains(['+', '┼']) && line.trim().chars().all(|c| "-+─┼".contains(c))
}

fn is_dash(field: &str) -> bool {
    !field.is_empty() && field.chars().all(|c| c == '-')
}

/// Returns whether a line is the one below the head of a Markdown table.
fn is_ruled(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('|') && line.contains('-') && line.chars().all(|c| "|-: ".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Told = Vec<(Option<String>, Vec<String>, Vec<Vec<String>>)>;

    fn tables(text: &str) -> Told {
        let mut tables = Tables::new(Lines::new(text.as_bytes()));
        let mut all = Vec::new();
        while let Some(table) = tables.next_table().expect("text") {
            let mut rows = Vec::new();
            while let Some(row) = tables.next_row(&table).expect("text") {
                rows.push(row.iter().map(str::to_owned).collect());
            }
            all.push((table.title.clone(), table.columns, rows));
        }
        all
    }

    #[track_caller]
    fn check(text: &str, columns: &[&str], rows: &[&[&str]]) {
        let all = tables(text);
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(all[0].1, columns);
        assert_eq!(all[0].2, rows);
    }

    #[test]
    fn delimited() {
        check("a,b\n1,2\n3,4\n", &["a", "b"], &[&["1", "2"], &["3", "4"]]);
        check("a;b\n1,5;2\n", &["a", "b"], &[&["1,5", "2"]]);
        check("a\tb c\n1\t2\n\n", &["a", "b c"], &[&["1", "2"]]);
        check("\"a,x\",\"b\"\n\"1\"\"2\",\"3\n4\"\n", &["a,x", "b"], &[&["1\"2", "3\n4"]]);
        check("a,b\n\n1,2\n", &["a", "b"], &[&["1", "2"]]);
        check("a,b\n1,2\na,b\n3,4\n", &["a", "b"], &[&["1", "2"], &["3", "4"]]);
        check("a,b\n", &["a", "b"], &[]);
    }

    #[test]
    fn as_sqlcmd_prints() {
        check("a,b\r\n-,---\r\n1,2\r\n\r\n(1 rows affected)\r\n", &["a", "b"], &[&["1", "2"]]);
        let fixed = "name      size \n--------- -----\none and     12 \ntwo        NULL\n\n(2 rows affected)\n";
        check(fixed, &["name", "size"], &[&["one and", "12"], &["two", "NULL"]]);
    }

    #[test]
    fn tables_with_equal_columns_are_separated_by_dashes() {
        let all = tables("a,b\n-,-\n1,2\n\nc,d\n-,-\n3,4\n\n5,6\n");
        assert_eq!(all.len(), 2, "{all:?}");
        assert_eq!(
            (&all[0].2, &all[1].1),
            (&vec![vec!["1".into(), "2".into()]], &vec!["c".into(), "d".into()])
        );
        assert_eq!(all[1].2, [["3", "4"], ["5", "6"]]);
    }

    #[test]
    fn as_sqlcmd_prints_without_blanks() {
        let narrow = "wait_type tasks\n--------- -----\nWRITELOG 12\nLCK_M_SCH_M 1234567\n";
        check(narrow, &["wait_type", "tasks"], &[&["WRITELOG", "12"], &["LCK_M_SCH_M", "1234567"]]);
    }

    #[test]
    fn fixed_width_with_titles_between() {
        let all = tables("== A ==\na   b  \n--- ---\n  1 2\n== B ==\nc   d\n--- ---\n  3 4\n");
        assert_eq!(all[0].2, [["1", "2"]]);
        assert_eq!(
            (all[1].0.as_deref(), &all[1].2[..]),
            (Some("B"), &[vec!["3".into(), "4".into()]][..])
        );
    }

    #[test]
    fn as_psql_aligns() {
        let text = " name | reads \n------+-------\n a b  |    12\n      |     3\n(2 rows)\n\n";
        check(text, &["name", "reads"], &[&["a b", "12"], &["", "3"]]);
    }

    #[test]
    fn in_markdown() {
        check("| a | b c |\n|:---|---:|\n| 1,070 | x |\n", &["a", "b c"], &[&["1,070", "x"]]);
    }

    #[test]
    fn several_with_titles() {
        let all = tables("=== 1. First ===\na b\n- --\n1 2\n\nSecond\nc,d\n3,4\n");
        let titles: Vec<_> = all.iter().map(|table| table.0.as_deref()).collect();
        assert_eq!(titles, [Some("1. First"), Some("Second")]);
        assert_eq!(all[1].2, [["3", "4"]]);
    }

    #[test]
    fn a_truncated_row_is_not_returned() {
        let mut tables = Tables::new(Lines::new(&b"a,b,c\n1,2,3\n4,5"[..]));
        let table = tables.next_table().expect("text").expect("a table");
        assert_eq!(tables.next_row(&table).expect("text").map(|row| row.len()), Some(3));
        assert_eq!(tables.next_row(&table).expect("text"), None);
        assert_eq!(tables.cut(), Some(3));
    }

    #[test]
    fn columns_by_any_of_their_names() {
        let table = Table {
            title: None,
            columns: vec!["Wait Type".into(), "[wait_time_ms]".into()],
            line: 1,
            form: Form::Markdown,
        };
        assert_eq!(table.column(&["nothing", "wait_type"]), Some(0));
        assert_eq!(table.column(&["Wait_Time_ms"]), Some(1));
        assert_eq!(table.column(&["wait"]), None);
    }
}
