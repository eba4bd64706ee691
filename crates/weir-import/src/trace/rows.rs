//! Traces as tables with one request per row.
//!
//! A `Layout` defines the columns of a row and their units. The module of a format makes one;
//! reading the rows is common to all.

use super::opened::Trace;
use super::request::{Direction, Origin, ReadRequests, Request, Sink};
use super::summing::scaled;
use crate::error::ImportError;
use crate::kind::Bytes;
use crate::number::is_missing;
use crate::options::Options;
use crate::sheet::Sheet;
use crate::text::Lines;
use std::borrow::Cow;
use weir_observe::moment::Clock;

/// Nanoseconds in a second.
pub(crate) const SECOND: u64 = 1_000_000_000;
/// Nanoseconds in a millisecond.
pub(crate) const MILLISECOND: u64 = 1_000_000;
/// Nanoseconds in a Windows tick.
pub(crate) const TICK: u64 = 100;
/// Bytes in a sector.
pub(crate) const SECTOR: u64 = 512;
/// Ticks from 1601 to 1970.
const TICKS_TO_1970: u64 = 116_444_736_000_000_000;
/// The usual number of fields in a row, for allocation.
const USUAL_FIELDS: usize = 16;
/// The most blank lines and heads before the first row.
const MOST_BEFORE: usize = 100;

/// The separator of the fields of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Split {
    Spaces,
    At(char),
}

/// The notation of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    /// Dates.
    Dates(Clock),
    /// Since 1970, in units of this many nanoseconds.
    Epoch(u64),
    /// In ticks since 1601.
    Ticks,
    /// Since an unknown moment, in units of this many nanoseconds.
    Since(u64),
}

/// The columns of a row. Numbers have their units, in bytes or nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) split: Split,
    pub(crate) time: (usize, Times),
    /// The operation; `None` for rows that are no request.
    pub(crate) op: (usize, fn(&str) -> Option<Direction>),
    pub(crate) offset: Option<(usize, u64)>,
    pub(crate) length: (usize, u64),
    pub(crate) latency: Option<(usize, u64)>,
    pub(crate) device: Option<usize>,
    pub(crate) host: Option<usize>,
    /// Resolution of times, in nanoseconds.
    pub(crate) resolution: u64,
}

impl Layout {
    /// Returns the last column used.
    fn last(&self) -> usize {
        let pairs = [self.offset, self.latency].into_iter().flatten().map(|(at, _)| at);
        let singles = [self.device, self.host].into_iter().flatten();
        let must = [self.time.0, self.op.0, self.length.0];
        pairs.chain(singles).chain(must).max().unwrap_or(0)
    }
}

/// A table before its first row.
pub(crate) struct Table {
    pub(crate) lines: Lines<Bytes>,
    pub(crate) layout: Layout,
    /// The row of names, which repeats in concatenated files.
    pub(crate) head: Option<String>,
    /// Notes to give.
    pub(crate) notes: Vec<String>,
    /// Assumed unit of its times.
    pub(crate) assumed: Option<&'static str>,
}

impl Table {
    /// Creates a table that begins with its first row.
    pub(crate) fn without_head(input: Bytes, layout: Layout) -> Self {
        Self { lines: Lines::new(input), layout, head: None, notes: Vec::new(), assumed: None }
    }
}

/// Determines the notation of times in a known unit from the first of them.
pub(crate) fn times_in(first: u64, unit: u64) -> Times {
    match first.checked_mul(unit) {
        _ if unit == TICK && is_ticks(first) => Times::Ticks,
        Some(nanos) if is_epoch(nanos) => Times::Epoch(unit),
        _ => Times::Since(unit),
    }
}

/// Statistics of requests whose times have an assumed unit.
#[derive(Debug, Clone, Copy, Default)]
struct Plausible {
    requests: u64,
    /// The earliest and the latest time.
    span: Option<(i64, i64)>,
}

/// The highest plausible mean rate of a trace.
const MOST_PER_S: f64 = 1e6;

/// The longest plausible trace, in seconds: 10 years.
const LONGEST_S: f64 = 10.0 * 365.25 * 86_400.0;

/// Fewer requests show no rate.
const FEW_REQUESTS: u64 = 100;

impl Plausible {
    fn take(&mut self, at: i64) {
        self.requests += 1;
        let (from, to) = self.span.unwrap_or((at, at));
        self.span = Some((from.min(at), to.max(at)));
    }

    /// Returns the reason why the assumed unit is impossible, if it is.
    fn doubt(&self) -> Option<String> {
        let (from, to) = self.span?;
        let seconds = float(to.abs_diff(from)) / 1e9;
        let (requests, per_s) = (self.requests, float(self.requests) / seconds);
        if requests >= FEW_REQUESTS && seconds > 0.0 && per_s > MOST_PER_S {
            return Some(format!("{requests} requests in {seconds:.6} s are {per_s:.0} IOPS"));
        }
        let years = seconds / (365.25 * 86_400.0);
        (seconds > LONGEST_S).then(|| format!("{requests} requests take {years:.0} years"))
    }
}

#[expect(clippy::cast_precision_loss, reason = "for a rate, 53 bits are enough")]
fn float(number: u64) -> f64 {
    number as f64
}

/// A reader of the rows.
struct Rows {
    table: Table,
    /// Number of fields needed.
    needed: usize,
    plausible: Plausible,
}

/// Opens a table.
pub(crate) fn open(mut table: Table, options: &Options) -> Trace {
    if let Some(unit) = options.time_unit {
        match table.layout.time.1 {
            Times::Since(_) => table.layout.time.1 = Times::Since(unit.nanos()),
            // The assumption that times count from 1970 in another unit was wrong.
            Times::Epoch(guess) if table.assumed.is_some() && guess != unit.nanos() => {
                table.layout.time.1 = Times::Since(unit.nanos());
            }
            _ => {}
        }
        table.assumed = None;
    }
    let layout = table.layout;
    let origin = match layout.time.1 {
        Times::Dates(_) | Times::Epoch(_) | Times::Ticks => Origin::Epoch,
        Times::Since(_) => Origin::Unknown,
    };
    let rows = Rows { needed: layout.last() + 1, table, plausible: Plausible::default() };
    Trace { reader: Box::new(rows), origin, resolution: layout.resolution }
}

/// Splits a row into fields.
pub(crate) fn split(split: Split, line: &str) -> Vec<&str> {
    let mut fields = Vec::with_capacity(USUAL_FIELDS);
    match split {
        Split::Spaces => fields.extend(line.split_ascii_whitespace()),
        Split::At(c) if !line.contains('"') => {
            fields.extend(line.split(c).map(str::trim_ascii));
        }
        Split::At(c) => {
            let mut quoted = false;
            let ends = |found: char| {
                quoted ^= found == '"';
                found == c && !quoted
            };
            fields.extend(line.split(ends).map(|field| field.trim().trim_matches('"').trim()));
        }
    }
    fields
}

/// Returns whether a line is blank or a comment.
pub(crate) fn is_idle(line: &str) -> bool {
    let line = line.trim_ascii_start();
    line.is_empty() || line.starts_with('#')
}

/// Reads the first significant line, and puts it back.
///
/// # Errors
///
/// [`ImportError`] if there is none.
pub(crate) fn first_line(lines: &mut Lines<Bytes>) -> Result<String, ImportError> {
    for _ in 0..MOST_BEFORE {
        let Some(line) = lines.next_line()? else { break };
        if !is_idle(&line) {
            return Ok(line);
        }
    }
    Err(ImportError::Empty { reason: "a trace was expected, with a request a line".to_owned() })
}

/// Returns whether `is_row` accepts the first rows of an input, at most `most` of them. A head and
/// a last row that may be cut do not count.
pub(crate) fn first_rows(
    text: &str,
    has_head: bool,
    most: usize,
    is_row: impl Fn(&str) -> bool,
) -> bool {
    let rows = text.lines().filter(|line| !is_idle(line)).skip(usize::from(has_head));
    let mut rows = rows.peekable();
    let mut found = 0;
    while let Some(row) = rows.next() {
        let may_be_cut = rows.peek().is_none() && !text.ends_with('\n');
        if found == most || (found > 0 && may_be_cut) {
            break;
        }
        if !is_row(row) {
            return false;
        }
        found += 1;
    }
    found > 0
}

impl ReadRequests for Rows {
    fn next(&mut self, sink: &mut dyn Sink, sheet: &mut Sheet) -> Result<bool, ImportError> {
        self.table.notes.drain(..).for_each(|note| sheet.note(note));
        let Some(line) = self.table.lines.next_line()? else {
            return self.check().map(|()| false);
        };
        if is_idle(&line) {
            return Ok(true);
        }
        match self.row(&line, sink, sheet) {
            Ok(()) => {}
            Err(ImportError::Malformed { line: Some(_), .. }) if self.table.lines.was_open() => {
                sheet.note("its last line was truncated and is left out");
            }
            // A repeated head: files were concatenated.
            Err(_) if self.table.head.as_ref() == Some(&line) => {}
            Err(error) => return Err(error),
        }
        Ok(true)
    }
}

impl Rows {
    /// Rejects figures that only a wrong unit of times explains.
    fn check(&self) -> Result<(), ImportError> {
        let Some(assumed) = self.table.assumed else { return Ok(()) };
        self.plausible.doubt().map_or(Ok(()), |doubt| {
            Err(ImportError::whole(format!(
                "its times have no unit; assumed to be {assumed}, {doubt}, which is impossible: state \
                 the unit with --time-unit s, ms, us, ns or 100ns"
            )))
        })
    }

    fn row(
        &mut self,
        line: &str,
        sink: &mut dyn Sink,
        sheet: &mut Sheet,
    ) -> Result<(), ImportError> {
        let layout = &self.table.layout;
        let fields = split(layout.split, line);
        let row = Row { fields, number: self.table.lines.number(), split: layout.split };
        let (found, needed) = (row.fields.len(), self.needed);
        if found < needed {
            return Err(row.wrong(format!("a row has {found} fields, and {needed} are needed")));
        }
        let at = row.time(layout.time)?;
        let op = row.field(layout.op.0);
        let length = row.number("length", Some(layout.length))?;
        let offset = row.number("offset", layout.offset)?;
        let latency = row.latency(layout.latency)?;
        let Some(length) = length else {
            sheet.unused("rows without a length");
            return Ok(());
        };
        let Some(direction) = (layout.op.1)(op) else {
            sheet.unused(&no_request(op));
            return Ok(());
        };
        if self.table.assumed.is_some() {
            self.plausible.take(at);
        }
        let host = layout.host.map(|at| row.field(at)).filter(|name| !name.is_empty());
        let name = layout.device.map(|at| row.field(at)).filter(|name| !name.is_empty());
        let device = sink.device(host, name.unwrap_or("disk"))?;
        sink.request(Request { at, device, direction, offset, length, latency })
    }
}

fn no_request(op: &str) -> String {
    if is_missing(op) {
        return "rows without an operation".to_owned();
    }
    format!("rows whose operation is {op}")
}

/// The fields of a row, and its position.
struct Row<'a> {
    fields: Vec<&'a str>,
    number: u64,
    split: Split,
}

impl Row<'_> {
    fn field(&self, at: usize) -> &str {
        self.fields.get(at).copied().unwrap_or_default()
    }

    fn wrong(&self, reason: String) -> ImportError {
        ImportError::at(self.number, reason)
    }

    /// Unless commas separate fields, they may be decimal separators.
    fn plain(&self, at: usize) -> Cow<'_, str> {
        let text = self.field(at);
        if self.split != Split::At(',') && text.contains(',') {
            return Cow::Owned(text.replacen(',', ".", 1));
        }
        Cow::Borrowed(text)
    }

    fn number(&self, what: &str, place: Option<(usize, u64)>) -> Result<Option<u64>, ImportError> {
        let Some((at, unit)) = place else { return Ok(None) };
        match scaled(&self.plain(at), unit) {
            Some(number) => Ok(Some(number)),
            None if is_missing(self.field(at)) => Ok(None),
            None => {
                Err(self
                    .wrong(format!("the {what} is {:?}, which is not a number", self.field(at))))
            }
        }
    }

    /// Returns the latency; some traces use a negative one for unknown.
    fn latency(&self, place: Option<(usize, u64)>) -> Result<Option<u64>, ImportError> {
        let is_negative = place.is_some_and(|(at, _)| self.field(at).starts_with('-'));
        if is_negative { Ok(None) } else { self.number("latency", place) }
    }

    fn time(&self, (at, times): (usize, Times)) -> Result<i64, ImportError> {
        let text = self.plain(at);
        let time = match times {
            Times::Dates(clock) => clock.moment(self.field(at)),
            Times::Epoch(unit) | Times::Since(unit) => {
                scaled(&text, unit).and_then(|nanos| i64::try_from(nanos).ok())
            }
            Times::Ticks => scaled(&text, 1).and_then(ticks),
        };
        time.ok_or_else(|| {
            self.wrong(format!("the time is {:?}, which is not a time", self.field(at)))
        })
    }
}

/// Converts ticks since 1601 to nanoseconds since 1970.
fn ticks(ticks: u64) -> Option<i64> {
    i64::try_from(ticks.checked_sub(TICKS_TO_1970)?.checked_mul(TICK)?).ok()
}

/// Returns whether a number is plausible as ticks since 1601 in this century.
pub(crate) fn is_ticks(number: u64) -> bool {
    // 2000 to 2100.
    (125_911_584_000_000_000..157_469_184_000_000_000).contains(&number)
}

/// Returns whether nanoseconds since 1970 are in this century.
pub(crate) fn is_epoch(nanos: u64) -> bool {
    (946_684_800 * SECOND..4_102_444_800 * SECOND).contains(&nanos)
}

/// Parses an operation: a word, a letter or two, a SCSI command, or 0 and 1.
pub(crate) fn direction(text: &str) -> Option<Direction> {
    const WORDS: [(&str, Direction); 22] = [
        ("r", Direction::Read),
        ("w", Direction::Write),
        ("read", Direction::Read),
        ("write", Direction::Write),
        ("rs", Direction::Read),
        ("ws", Direction::Write),
        ("0", Direction::Read),
        ("1", Direction::Write),
        ("rd", Direction::Read),
        ("wr", Direction::Write),
        ("ra", Direction::Read),
        ("reads", Direction::Read),
        ("writes", Direction::Write),
        ("d", Direction::Discard),
        ("discard", Direction::Discard),
        ("trim", Direction::Discard),
        ("unmap", Direction::Discard),
        ("f", Direction::Flush),
        ("flush", Direction::Flush),
        ("sync", Direction::Flush),
        ("fsync", Direction::Flush),
        ("fdatasync", Direction::Flush),
    ];
    let word = WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
    word.map(|(_, direction)| *direction).or_else(|| super::scsi::hexadecimal(text))
}
