//! Traces that are tables: a request a row.
//!
//! A `Layout` says where in a row is what and in which units. Whoever knows a format makes
//! one; reading the rows is the same for all.

use super::summing::{Direction, Origin, ReadRequests, Request, Samples, Summing, scaled};
use crate::ImportError;
use crate::kind::Bytes;
use crate::merge::Options;
use crate::number::is_missing;
use crate::sheet::{ReadSamples, Sheet};
use crate::text::Lines;
use std::borrow::Cow;
use weir_observe::moment::Clock;

/// A second in nanoseconds.
pub(crate) const SECOND: u64 = 1_000_000_000;
/// A millisecond.
pub(crate) const MILLISECOND: u64 = 1_000_000;
/// A tick of Windows.
pub(crate) const TICK: u64 = 100;
/// A sector in bytes.
pub(crate) const SECTOR: u64 = 512;
/// From 1601 to 1970 in ticks.
const TICKS_TO_1970: u64 = 116_444_736_000_000_000;
/// Most rows have fewer fields.
const USUAL_FIELDS: usize = 16;
/// Blank lines and heads that may come before the first row.
const MOST_BEFORE: usize = 100;

/// What separates the fields of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Split {
    Spaces,
    At(char),
}

/// How times are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    /// As dates.
    Dates(Clock),
    /// Since 1970, in units of so many nanoseconds.
    Epoch(u64),
    /// In ticks since 1601.
    Ticks,
    /// Since something that nobody knows, in units of so many nanoseconds.
    Since(u64),
}

/// Where in a row is what. Numbers stand with their units, in bytes or nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) split: Split,
    pub(crate) time: (usize, Times),
    /// What the request does; nothing for what is no request.
    pub(crate) op: (usize, fn(&str) -> Option<Direction>),
    pub(crate) offset: Option<(usize, u64)>,
    pub(crate) length: (usize, u64),
    pub(crate) latency: Option<(usize, u64)>,
    pub(crate) device: Option<usize>,
    pub(crate) host: Option<usize>,
    /// From one time to the next that can be told from it, in nanoseconds.
    pub(crate) resolution: u64,
}

impl Layout {
    /// The column that is farthest to the right.
    fn last(&self) -> usize {
        let pairs = [self.offset, self.latency].into_iter().flatten().map(|(at, _)| at);
        let singles = [self.device, self.host].into_iter().flatten();
        let must = [self.time.0, self.op.0, self.length.0];
        pairs.chain(singles).chain(must).max().unwrap_or(0)
    }
}

/// A table whose rows come next.
pub(crate) struct Table {
    pub(crate) lines: Lines<Bytes>,
    pub(crate) layout: Layout,
    /// The row of names, which comes again where files were put together.
    pub(crate) head: Option<String>,
    /// To be told.
    pub(crate) notes: Vec<String>,
    /// The unit that its times were taken to have, where nothing says it.
    pub(crate) assumed: Option<&'static str>,
}

impl Table {
    /// A table that begins with its first row.
    pub(crate) fn without_head(input: Bytes, layout: Layout) -> Self {
        Self { lines: Lines::new(input), layout, head: None, notes: Vec::new(), assumed: None }
    }
}

/// Returns how times in a known unit are written, by the first of them.
pub(crate) fn times_in(first: u64, unit: u64) -> Times {
    match first.checked_mul(unit) {
        _ if unit == TICK && is_ticks(first) => Times::Ticks,
        Some(nanos) if is_epoch(nanos) => Times::Epoch(unit),
        _ => Times::Since(unit),
    }
}

/// The requests whose times are in an assumed unit.
#[derive(Debug, Clone, Copy, Default)]
struct Plausible {
    requests: u64,
    /// The earliest time and the latest.
    span: Option<(i64, i64)>,
}

/// No trace has more requests a second on average.
const MOST_PER_S: f64 = 1e6;

/// Nor is it longer, in seconds: 10 years.
const LONGEST_S: f64 = 10.0 * 365.25 * 86_400.0;

/// Fewer requests say nothing of a rate.
const FEW_REQUESTS: u64 = 100;

impl Plausible {
    fn take(&mut self, at: i64) {
        self.requests += 1;
        let (from, to) = self.span.unwrap_or((at, at));
        self.span = Some((from.min(at), to.max(at)));
    }

    /// Returns why the assumed unit cannot be right, if it cannot.
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

/// Reading it.
struct Rows {
    table: Table,
    /// So many fields are needed.
    needed: usize,
    plausible: Plausible,
}

/// The samples of a table.
pub(crate) fn open(mut table: Table, options: &Options) -> Box<dyn ReadSamples> {
    if let Some(unit) = options.time_unit {
        match table.layout.time.1 {
            Times::Since(_) => table.layout.time.1 = Times::Since(unit.nanos()),
            // It was a guess that they count from 1970 in another unit.
            Times::Epoch(guess) if table.assumed.is_some() && guess != unit.nanos() => {
                table.layout.time.1 = Times::Since(unit.nanos());
            }
            _ => {}
        }
        table.assumed = None;
    }
    let layout = table.layout;
    let mut summing = Summing::new(options);
    summing.origin = match layout.time.1 {
        Times::Dates(_) | Times::Epoch(_) | Times::Ticks => Origin::Epoch,
        Times::Since(_) => Origin::Unknown,
    };
    summing.resolution = layout.resolution;
    let rows = Rows { needed: layout.last() + 1, table, plausible: Plausible::default() };
    Box::new(Samples::new(rows, summing))
}

/// The fields of a row.
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

/// Whether a line has nothing to say.
pub(crate) fn is_idle(line: &str) -> bool {
    let line = line.trim_ascii_start();
    line.is_empty() || line.starts_with('#')
}

/// Reads on to the first line that says something, and gives it back.
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

/// Whether the first rows of an input are as `is_row` wants them, `most` of them at most. The last
/// does not count if it may be cut, nor does a head.
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
    fn next(&mut self, summing: &mut Summing, sheet: &mut Sheet) -> Result<bool, ImportError> {
        self.table.notes.drain(..).for_each(|note| sheet.note(note));
        let Some(line) = self.table.lines.next_line()? else {
            return self.check().map(|()| false);
        };
        if is_idle(&line) {
            return Ok(true);
        }
        match self.row(&line, summing, sheet) {
            Ok(()) => {}
            Err(ImportError::Malformed { line: Some(_), .. }) if self.table.lines.was_open() => {
                sheet.note("its last line was cut: left out");
            }
            // The same head once more, where files were put together.
            Err(_) if self.table.head.as_ref() == Some(&line) => {}
            Err(error) => return Err(error),
        }
        Ok(true)
    }
}

impl Rows {
    /// Refuses what only a wrong unit of times explains.
    fn check(&self) -> Result<(), ImportError> {
        let Some(assumed) = self.table.assumed else { return Ok(()) };
        self.plausible.doubt().map_or(Ok(()), |doubt| {
            Err(ImportError::whole(format!(
                "its times do not say their unit; taken for {assumed}, {doubt}, which cannot be: say \
                 the unit with --time-unit s, ms, us, ns or 100ns"
            )))
        })
    }

    fn row(
        &mut self,
        line: &str,
        summing: &mut Summing,
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
        let device = summing.device(host, name.unwrap_or("disk"))?;
        summing.request(Request { at, device, direction, offset, length, latency })
    }
}

fn no_request(op: &str) -> String {
    if is_missing(op) {
        return "rows without an operation".to_owned();
    }
    format!("rows whose operation is {op}")
}

/// The fields of a row, and where it is.
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

    /// Where commas do not separate fields, they may separate decimals.
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
                Err(self.wrong(format!("the {what} is {:?}, which is no number", self.field(at))))
            }
        }
    }

    /// A negative one is how some traces say that they do not know.
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
        time.ok_or_else(|| self.wrong(format!("the time is {:?}, which is none", self.field(at))))
    }
}

/// Ticks since 1601, in nanoseconds since 1970.
fn ticks(ticks: u64) -> Option<i64> {
    i64::try_from(ticks.checked_sub(TICKS_TO_1970)?.checked_mul(TICK)?).ok()
}

/// Whether a number is ticks since 1601 of this century.
pub(crate) fn is_ticks(number: u64) -> bool {
    // 2000 to 2100.
    (125_911_584_000_000_000..157_469_184_000_000_000).contains(&number)
}

/// Whether nanoseconds since 1970 are of this century.
pub(crate) fn is_epoch(nanos: u64) -> bool {
    (946_684_800 * SECOND..4_102_444_800 * SECOND).contains(&nanos)
}

/// What a request does, as people write it: a word, a letter or two, a command of SCSI, or 0
/// and 1.
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
