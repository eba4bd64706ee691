//! `vmstat`, as text: plain, `-a`, `-w`, `-t`, and with any text that a collector puts before
//! lines.
//!
//! The first row of a run is an average since the start of the machine and is left out. A head
//! begins another run, or another page of the same one; the module `pages` determines which.
//! Memory is in KiB, the unit of vmstat without `-S`; blocks always are.

use super::pages::{Begins, Pages};
use super::processors::{Part, Processors};
use super::quantity::{KIB, style_of};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::number::{Style, is_missing};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Reports, Sheet};
use crate::text::{Lines, words};
use std::borrow::Cow;
use weir_observe::header::{EntityId, EntityKind};
use weir_observe::metric::{self as m, Metric};
use weir_observe::moment::Clock;

pub(crate) const KIND: Kind = Kind {
    name: "vmstat",
    about: "vmstat, as text",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Word(&["bi"]),
        Sign::Word(&["bo"]),
        Sign::Word(&["us"]),
        Sign::Word(&["wa"]),
        Sign::Word(&["procs", "swpd"]),
    ]],
};

fn recognizes(text: &str) -> bool {
    text.lines().any(|line| Head::parse(&words(line)).is_some())
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(Box::new(Vmstat {
        lines: Lines::new(input),
        options: options.clone(),
        style: None,
        host: None,
        head: None,
        rows: 0,
        pages: Pages::default(),
        ahead: None,
        later_runs: 0,
        unknown: 0,
    }))
}

/// Columns that describe the moment of their row.
const LEVELS: [&str; 4] =
    [m::RUNNABLE.name, m::BLOCKED.name, m::MEMORY_FREE_BYTES.name, m::MEMORY_CACHE_BYTES.name];

/// The meaning of a column.
#[derive(Debug, Clone, PartialEq)]
enum Column {
    Of(&'static Metric, f64),
    Processors(Part),
    Unused,
}

fn column(name: &str) -> Column {
    match name {
        "r" => Column::Of(&m::RUNNABLE, 1.0),
        "b" => Column::Of(&m::BLOCKED, 1.0),
        "free" => Column::Of(&m::MEMORY_FREE_BYTES, KIB),
        "cache" => Column::Of(&m::MEMORY_CACHE_BYTES, KIB),
        "si" => Column::Of(&m::SWAP_IN_BYTES_PER_S, KIB),
        "so" => Column::Of(&m::SWAP_OUT_BYTES_PER_S, KIB),
        "bi" => Column::Of(&m::READ_BYTES_PER_S, KIB),
        "bo" => Column::Of(&m::WRITE_BYTES_PER_S, KIB),
        "us" | "sy" | "id" | "wa" | "st" | "gu" => {
            Part::named(name).map_or(Column::Unused, Column::Processors)
        }
        _ => Column::Unused,
    }
}

/// The columns of a head.
#[derive(Debug, Clone, PartialEq)]
struct Head {
    /// Number of words that a collector writes before the first column.
    before: usize,
    columns: Vec<(String, Column)>,
    /// Zone of times after the columns.
    zone: Option<String>,
}

impl Head {
    /// Parses a head.
    fn parse(words: &[&str]) -> Option<Self> {
        if !words.contains(&"bi") || !words.contains(&"bo") {
            return None;
        }
        let before = words.iter().position(|word| *word == "r")?;
        let last = words.iter().rposition(|word| matches!(column(word), Column::Processors(_)))?;
        let own = words.get(before..=last)?;
        let columns = own.iter().map(|name| ((*name).to_owned(), column(name))).collect();
        let zone = words.get(last + 1..).unwrap_or_default();
        let zone = (!zone.is_empty()).then(|| zone.join(" "));
        Some(Self { before, columns, zone })
    }

    /// Returns the number of words before the first column of a row: as in the head, unless only
    /// rows have a time before them.
    fn before_row(&self, line: &str, words: &[&str], clock: Clock) -> usize {
        let more = words.len().saturating_sub(self.columns.len());
        let is_time = || {
            let stamp = words.get(..more).unwrap_or_default();
            clock.moment(&joined(line, stamp)).is_some()
        };
        if self.zone.is_none() && more > self.before && is_time() { more } else { self.before }
    }
}

struct Vmstat {
    lines: Lines<Bytes>,
    options: Options,
    style: Option<Style>,
    host: Option<EntityId>,
    head: Option<Head>,
    rows: u64,
    pages: Pages,
    /// A row read ahead.
    ahead: Option<Row>,
    /// Number of later runs whose first rows were left out.
    later_runs: u64,
    /// Number of rows after a head that may begin a run or not.
    unknown: u64,
}

/// A parsed row.
struct Row {
    at: Option<i64>,
    values: Vec<(&'static Metric, f64)>,
    /// The numbers of all rates and shares.
    rates: Vec<f64>,
    /// True if a head precedes it.
    follows_head: bool,
}

impl Row {
    /// Removes all values but levels, which describe the moment of the row.
    fn drop_rates(&mut self) {
        self.values.retain(|(measure, _)| LEVELS.contains(&measure.name));
    }
}

impl ReadSamples for Vmstat {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        sheet.reports = Reports::All;
        let Some(mut row) = self.next_row(sheet)? else { return Ok(self.end(sheet)) };
        match self.begins(&row) {
            Begins::Run => {
                let first = row.at;
                self.later_runs += u64::from(self.rows > 0);
                match self.next_row(sheet)? {
                    Some(second) if !second.follows_head => {
                        self.pages.take(false, second.at, &second.rates);
                        row = second;
                        let step = row.at.zip(first).and_then(|(at, first)| at.checked_sub(first));
                        let step = step.filter(|step| *step > 0);
                        sheet.interval_ns = step;
                        if self.rows == 0 {
                            sheet.held = step;
                        }
                    }
                    second => {
                        self.ahead = second;
                        row.drop_rates();
                    }
                }
            }
            Begins::Unknown => {
                self.unknown += 1;
                row.drop_rates();
            }
            Begins::Nothing => {}
        }
        let host = *self.host.get_or_insert_with(|| sheet.entity(EntityKind::Host, "host", None));
        for (measure, value) in row.values {
            sheet.set(host, measure, value);
        }
        self.rows += 1;
        let since = || self.options.step().nanos().saturating_mul(self.rows - 1);
        Ok(Some(row.at.map_or_else(|| At::Since(since()), At::Wall)))
    }
}

impl Vmstat {
    /// Returns what begins with a row.
    fn begins(&mut self, row: &Row) -> Begins {
        self.pages.take(row.follows_head, row.at, &row.rates)
    }

    /// Notes the number of rows left out, at the end.
    fn end(&mut self, sheet: &mut Sheet) -> Option<At> {
        if std::mem::take(&mut self.rows) > 0 {
            sheet.note("the first row is an average since boot and is left out");
        }
        match std::mem::take(&mut self.later_runs) {
            0 => {}
            runs => sheet.note(format!(
                "the first rows of {runs} later runs are averages since boot and are left out"
            )),
        }
        match std::mem::take(&mut self.unknown) {
            0 => {}
            rows => sheet.note(format!(
                "{rows} rows after a header may be averages since boot: their rates are unknown \
                 (vmstat -n prints one header for each run)"
            )),
        }
        None
    }

    /// Returns the row read ahead, or the next one.
    fn next_row(&mut self, sheet: &mut Sheet) -> Result<Option<Row>, ImportError> {
        match self.ahead.take() {
            Some(row) => Ok(Some(row)),
            None => self.row(sheet),
        }
    }

    /// Returns the next row, or `None` at the end.
    fn row(&mut self, sheet: &mut Sheet) -> Result<Option<Row>, ImportError> {
        let mut follows_head = false;
        while let Some(line) = self.lines.next_line()? {
            let words = words(&line);
            if let Some(head) = Head::parse(&words) {
                self.head(sheet, head);
                follows_head = true;
                continue;
            }
            let Some(head) = &self.head else {
                if !words.is_empty() && !is_title(&line) {
                    sheet.skipped("lines before the first header", self.lines.number(), &line);
                }
                continue;
            };
            let first = words.get(head.before);
            if !first.is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit())) {
                if !words.is_empty() && !is_title(&line) {
                    sheet.skipped("lines that are not rows", self.lines.number(), &line);
                }
                continue;
            }
            match self.values(&line, &words) {
                Ok(row) => return Ok(Some(Row { follows_head, ..row })),
                Err(_) if self.lines.was_open() => {
                    sheet.note("its last line was truncated and is left out");
                }
                Err(reason) => return Err(ImportError::at(self.lines.number(), reason)),
            }
        }
        Ok(None)
    }

    fn head(&mut self, sheet: &mut Sheet, head: Head) {
        if self.head.as_ref() == Some(&head) {
            return;
        }
        for (name, _) in head.columns.iter().filter(|(_, column)| *column == Column::Unused) {
            sheet.unused(name);
        }
        if let Some(zone) = head.zone.as_ref().filter(|zone| !is_utc(zone)) {
            let ahead = self.options.clock.offset;
            sheet.note(format!(
                "the zone of its times is {zone}: assumed to be {ahead} s ahead of UTC"
            ));
        }
        self.head = Some(head);
    }

    fn values(&mut self, line: &str, words: &[&str]) -> Result<Row, String> {
        let Some(head) = &self.head else { return Err("a row has no header".to_owned()) };
        let clock = self.options.clock;
        let before = head.before_row(line, words, clock);
        let end = before + head.columns.len();
        let (Some(stamp), Some(own)) = (words.get(..before), words.get(before..end)) else {
            let expected = head.columns.len();
            let count = words.len().saturating_sub(before);
            return Err(format!("a row has {count} columns, but its header has {expected}"));
        };
        let style = style_of(&mut self.style, own);
        let mut values = Vec::with_capacity(own.len() + 1);
        let mut processors = Processors::default();
        let mut rates = Vec::with_capacity(own.len());
        for (word, (name, column)) in own.iter().zip(&head.columns) {
            // Interrupts and context switches help to distinguish rows, and are otherwise unused.
            let is_told = matches!(name.as_str(), "in" | "cs");
            if *column == Column::Unused && !is_told {
                continue;
            }
            let number = match style.parse(word) {
                Some(number) => number,
                None if is_missing(word) || is_told => continue,
                None => return Err(format!("{word:?} is not a number")),
            };
            let is_level = |measure: &Metric| LEVELS.contains(&measure.name);
            if !matches!(column, Column::Of(measure, _) if is_level(measure)) {
                rates.push(number);
            }
            match column {
                Column::Of(measure, by) => values.push((*measure, number * by)),
                Column::Processors(part) => processors.add_to(*part, number),
                Column::Unused => {}
            }
        }
        values.extend(processors.shares());
        let at = clock.moment(&joined(line, stamp)).or_else(|| {
            let behind = joined(line, words.get(end..).unwrap_or_default());
            if head.zone.as_deref().is_some_and(is_utc) {
                return clock.moment(&format!("{behind} UTC"));
            }
            clock.moment(&behind)
        });
        Ok(Row { at, values, rates, follows_head: false })
    }
}

/// Joins consecutive words of a line with one space.
fn joined<'a>(line: &'a str, words: &[&'a str]) -> Cow<'a, str> {
    let [first, .., last] = words else {
        return Cow::Borrowed(words.first().copied().unwrap_or_default());
    };
    // A slice of the line suffices if the words have one space between them.
    let begin = first.as_ptr().addr().wrapping_sub(line.as_ptr().addr());
    let end = (last.as_ptr().addr() + last.len()).wrapping_sub(line.as_ptr().addr());
    let length: usize = words.iter().map(|word| word.len() + 1).sum();
    match line.get(begin..end) {
        Some(text) if text.len() + 1 == length && !text.contains('\t') => Cow::Borrowed(text),
        _ => Cow::Owned(words.join(" ")),
    }
}

fn is_utc(zone: &str) -> bool {
    matches!(zone, "UTC" | "GMT")
}

/// Returns whether a line has the titles of groups of columns.
fn is_title(line: &str) -> bool {
    line.contains("procs") && line.contains("memory") || line.contains("--")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_words() {
        for line in
            ["2015-01-03 16:40:43\t1 2", "2015-01-03\t16:40:43 1 2", "2015-01-03  16:40:43 1"]
        {
            assert_eq!(joined(line, &words(line)[..2]), "2015-01-03 16:40:43");
        }
        assert_eq!(joined("a b", &["a"]), "a");
        assert_eq!(joined("a b", &[]), "");
    }

    #[test]
    fn heads() {
        let check = |line: &str, expect: Option<(usize, usize, Option<&str>)>| {
            let head = Head::parse(&words(line));
            let head = head.as_ref().map(|h| (h.before, h.columns.len(), h.zone.as_deref()));
            assert_eq!(head, expect, "{line}");
        };
        let plain =
            " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st";
        check(plain, Some((0, 17, None)));
        check(&format!("{plain} gu                 CET"), Some((0, 18, Some("CET"))));
        check(&format!("2015-01-03 16:40:43\t{plain}"), Some((2, 17, None)));
        check("r b avm fre re pi po fr sr cy in sy cs us sy id wa", None);
    }
}
