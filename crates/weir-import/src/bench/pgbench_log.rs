//! Logs of pgbench per interval (`--aggregate-interval`), and the latencies per second that
//! pgbench-tools computes from them.
//!
//! ```text
//!  interval_start transactions sum_latency sum_latency_2 min_latency max_latency ..    in us
//!  1345828501 5601 1542744 483552416 61 2573
//!
//!  collected,samples,min_latency,avg_latency,max_latency                               in ms
//!  1598650497,5280,0.405,3.345,20.324
//! ```
//!
//! Both have the start of an interval; the sample is at its end. The length of an interval is the
//! distance of the first two.

use super::job::{self, MS, US};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::number::{Style, is_missing};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Sheet};
use crate::table::{Table, Tables, plain};
use crate::text::Lines;
use weir_observe::metric::{self as m, Metric};

pub(crate) const KIND: Kind = Kind {
    name: "pgbench-log",
    about: "a log of pgbench per interval (--aggregate-interval)",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[Sign::Rows(' ', 6, 20)]],
};

pub(crate) const TABLE_KIND: Kind = Kind {
    name: "pgbench-table",
    about: "latencies of pgbench per second, as stored by pgbench-tools",
    recognizes: By::Text(recognizes_table),
    open: open_table,
    signs: &[&[Sign::Word(&["collected"]), Sign::Word(&["samples"]), Sign::Word(&["avg_latency"])]],
};

/// Returns whether lines are those of intervals.
fn recognizes(text: &str) -> bool {
    all_lines(text, |line| Interval::parse(line).is_ok_and(|interval| interval.is_sound()))
}

/// Returns whether lines are those of single transactions: `client transaction time script epoch
/// us`.
pub(crate) fn is_of_transactions(text: &str) -> bool {
    all_lines(text, |line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let has_epoch = fields.get(4).is_some_and(|field| field.len() == 10);
        (6..=8).contains(&fields.len()) && fields.iter().all(|own| is_number(own)) && has_epoch
    })
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn recognizes_table(text: &str) -> bool {
    text.lines().take(5).any(|line| {
        let names: Vec<String> = line.split([',', ';', '\t', '|']).map(plain).collect();
        ["collected", "samples", "avglatency"].iter().all(|name| names.iter().any(|n| n == name))
    })
}

/// Returns whether there are lines, and all first lines are of one kind.
fn all_lines(text: &str, is_one: impl Fn(&str) -> bool) -> bool {
    // The last may be cut where the beginning ends.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut lines = whole.lines().filter(|line| !line.trim().is_empty()).take(5).peekable();
    lines.peek().is_some() && lines.all(is_one)
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(Intervals::boxed(Source::Log(Lines::new(input)), options))
}

fn open_table(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    let table = Box::new(Latencies { tables: Tables::new(Lines::new(input)), table: None });
    Ok(Intervals::boxed(Source::Table(table), options))
}

/// The transactions of an interval; latencies in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Interval {
    /// Start in nanoseconds since 1970.
    began: i64,
    count: f64,
    mean: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    /// True if there are further fields.
    has_more: bool,
}

impl Interval {
    fn parse(text: &str) -> Result<Self, String> {
        let mut fields = text.split_ascii_whitespace();
        let mut next = |what: &str| {
            let text = fields.next().ok_or_else(|| format!("there is no {what}"))?;
            text.parse::<u64>().map_err(|_| format!("{what} {text:?} is not a whole number"))
        };
        let began = i64::try_from(next("time")?)
            .ok()
            .and_then(|seconds| seconds.checked_mul(1_000_000_000))
            .ok_or("the time is beyond all clocks")?;
        #[expect(clippy::cast_precision_loss, reason = "nothing real is as large")]
        let mut number = |what: &str| next(what).map(|number| number as f64);
        let count = number("number of transactions")?;
        let (sum, _) = (number("sum of latencies")?, number("sum of squares")?);
        let (min, max) = (number("least latency")?, number("greatest latency")?);
        let has_more = fields.next().is_some();
        let of = |us: f64| (count > 0.0).then_some(us * US);
        let mean = of(sum / count.max(1.0));
        Ok(Self { began, count, mean, min: of(min), max: of(max), has_more })
    }

    /// Returns whether the mean is between least and greatest, and the time is plausible.
    fn is_sound(&self) -> bool {
        let (Some(mean), Some(min), Some(max)) = (self.mean, self.min, self.max) else {
            return self.count == 0.0;
        };
        (min..=max).contains(&mean) && self.began > 500_000_000_000_000_000
    }
}

enum Source {
    Log(Lines<Bytes>),
    Table(Box<Latencies>),
}

struct Intervals {
    source: Source,
    /// Length of an interval in nanoseconds, once it is known.
    step: Option<u64>,
    said_step: Option<u64>,
    next: Option<Interval>,
    begun: bool,
}

impl Intervals {
    fn boxed(source: Source, options: &Options) -> Box<dyn ReadSamples> {
        let said_step = options.every.map(|every| every.nanos());
        Box::new(Self { source, step: None, said_step, next: None, begun: false })
    }

    fn read(&mut self, sheet: &mut Sheet) -> Result<Option<Interval>, ImportError> {
        match &mut self.source {
            Source::Log(lines) => log_line(lines, sheet),
            Source::Table(table) => table.row(sheet),
        }
    }

    /// Takes the first line, and determines the length of an interval.
    fn begin(&mut self, sheet: &mut Sheet) -> Result<Option<Interval>, ImportError> {
        self.begun = true;
        let Some(first) = self.read(sheet)? else { return Ok(None) };
        self.next = self.read(sheet)?;
        let between = self
            .next
            .and_then(|next| u64::try_from(next.began - first.began).ok())
            .filter(|nanos| *nanos > 0);
        let step = self.said_step.or(between).unwrap_or(1_000_000_000);
        sheet.note(format!(
            "its intervals are assumed to be {} s; the last may be incomplete",
            step / 1_000_000_000
        ));
        self.step = Some(step);
        Ok(Some(first))
    }
}

impl ReadSamples for Intervals {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        let interval = if self.begun {
            let interval = self.next.take();
            if interval.is_some() {
                self.next = self.read(sheet)?;
            }
            interval
        } else {
            self.begin(sheet)?
        };
        let (Some(interval), Some(step)) = (interval, self.step) else { return Ok(None) };
        let id = job::job(sheet, None, "pgbench");
        #[expect(clippy::cast_precision_loss, reason = "some seconds")]
        let seconds = step as f64 / 1e9;
        sheet.set(id, &m::TRANSACTIONS_PER_S, interval.count / seconds);
        let all: [(&'static Metric, Option<f64>); 3] = [
            (&m::TRANSACTION_LATENCY_NS, interval.mean),
            (&m::TRANSACTION_LATENCY_MIN_NS, interval.min),
            (&m::TRANSACTION_LATENCY_MAX_NS, interval.max),
        ];
        for (measure, value) in all {
            if let Some(value) = value {
                sheet.set(id, measure, value);
            }
        }
        Ok(Some(At::Wall(interval.began.saturating_add_unsigned(step))))
    }
}

fn log_line(lines: &mut Lines<Bytes>, sheet: &mut Sheet) -> Result<Option<Interval>, ImportError> {
    while let Some(text) = lines.next_line()? {
        if text.trim_ascii().is_empty() {
            continue;
        }
        if lines.was_open() {
            sheet.note("its last line has no line break and may be truncated: it is left out");
            return Ok(None);
        }
        let wrong = |reason| ImportError::at(lines.number(), reason);
        let interval = Interval::parse(&text).map_err(wrong)?;
        if interval.has_more {
            sheet.unused("fields after the sixth");
        }
        return Ok(Some(interval));
    }
    Ok(None)
}

/// The table of pgbench-tools.
struct Latencies {
    tables: Tables<Bytes>,
    table: Option<Table>,
}

impl Latencies {
    fn row(&mut self, sheet: &mut Sheet) -> Result<Option<Interval>, ImportError> {
        let table = match &self.table {
            Some(table) => table,
            None => match self.tables.next_table()? {
                Some(table) => self.table.insert(table),
                None => return Ok(None),
            },
        };
        let Some(row) = self.tables.next_row(table)? else {
            if self.tables.cut().is_some() {
                sheet.note("its last line was truncated and is left out");
            }
            return Ok(None);
        };
        let line = self.tables.line();
        let number = |name: &str| -> Result<Option<f64>, ImportError> {
            let Some(text) = table.column(&[name]).and_then(|at| row.get(at)) else {
                return Ok(None);
            };
            if is_missing(text) {
                return Ok(None);
            }
            let wrong = || ImportError::at(line, format!("{name} {text:?} is not a number"));
            Style::Point.parse(text).map(Some).ok_or_else(wrong)
        };
        let latency = |name: &str| number(name).map(|ms| ms.map(|ms| ms * MS));
        let needed = |name: &str| {
            let none = || ImportError::at(line, format!("there is no {name}"));
            number(name).and_then(|value| value.ok_or_else(none))
        };
        let began = i64::try_from(job::nanos(needed("collected")?)).unwrap_or(i64::MAX);
        Ok(Some(Interval {
            began,
            count: needed("samples")?,
            mean: latency("avg_latency")?,
            min: latency("min_latency")?,
            max: latency("max_latency")?,
            has_more: false,
        }))
    }
}
