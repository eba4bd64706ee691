//! Logs of fio: `write_bw_log`, `write_iops_log`, `write_lat_log`.
//!
//! ```text
//!  time in ms, value, direction, block size[, offset[, priority[, ..]]]
//!  1000, 12609, 0, 0
//! ```
//!
//! The name of the file tells the kind of its values: `job_clat.1.log`. With `log_avg_msec`, a
//! line is the mean of an interval and its block size is 0. Otherwise a line is a single request,
//! and means of intervals are computed.

use super::job::{self, DISCARD, Direction, READ, WRITE};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Sheet};
use crate::text::Lines;
use weir_observe::header::SeriesId;
use weir_observe::metric::Metric;

pub(crate) const KIND: Kind = Kind {
    name: "fio-log",
    about: "a log of fio; its file name shows its contents",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[Sign::Rows(',', 4, 6)]],
};

pub(crate) const LATENCY_KIND: Kind = Kind {
    name: "fio-lat-log",
    about: "a log of fio: latencies",
    recognizes: By::Stated,
    open: open_lat,
    signs: &[],
};

pub(crate) const BANDWIDTH_KIND: Kind = Kind {
    name: "fio-bw-log",
    about: "a log of fio: bandwidth",
    recognizes: By::Stated,
    open: open_bw,
    signs: &[],
};

pub(crate) const IOPS_KIND: Kind = Kind {
    name: "fio-iops-log",
    about: "a log of fio: operations per second",
    recognizes: By::Stated,
    open: open_iops,
    signs: &[],
};

const KIB: f64 = 1024.0;
/// Nanoseconds in a millisecond.
const MS: u64 = 1_000_000;

/// The kind of the values of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// KiB per second.
    Bandwidth,
    /// Operations per second.
    Operations,
    /// Nanoseconds of the whole latency, or of the named part.
    Latency(&'static str),
}

fn recognizes(text: &str) -> bool {
    // The last line may be cut where the beginning ends.
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).take(5).peekable();
    let first = lines.peek().copied();
    let is_one = |line: &str| Line::parse(line).is_ok();
    let head = first.is_some_and(is_one) && text.contains('\n');
    head && lines.take(4).filter(|line| !is_one(line)).count() <= usize::from(!text.ends_with('\n'))
}

type Opened = Result<Box<dyn ReadSamples>, ImportError>;

fn open(input: Bytes, options: &Options) -> Opened {
    Ok(FioLog::boxed(input, options, content_of(&options.name)))
}

fn open_lat(input: Bytes, options: &Options) -> Opened {
    let content = match content_of(&options.name) {
        Some(content @ Content::Latency(_)) => content,
        _ => Content::Latency(""),
    };
    Ok(FioLog::boxed(input, options, Some(content)))
}

fn open_bw(input: Bytes, options: &Options) -> Opened {
    Ok(FioLog::boxed(input, options, Some(Content::Bandwidth)))
}

fn open_iops(input: Bytes, options: &Options) -> Opened {
    Ok(FioLog::boxed(input, options, Some(Content::Operations)))
}

/// Returns the name of a file without its folder.
fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Returns the kind of a log by the name of its file: `fio_slat.1.log`.
fn content_of(path: &str) -> Option<Content> {
    let name = file_name(path).to_ascii_lowercase();
    let has =
        |part: &str| name.contains(&format!("_{part}.")) || name.starts_with(&format!("{part}."));
    [
        ("bw", Content::Bandwidth),
        ("iops", Content::Operations),
        ("slat", Content::Latency("submission")),
        ("clat", Content::Latency("completion")),
        ("lat", Content::Latency("")),
    ]
    .into_iter()
    .find_map(|(part, content)| has(part).then_some(content))
}

/// Returns the job of a log by the name of its file: the part before `_clat.1.log`, and the number
/// of the job.
fn job_of(path: &str) -> String {
    let name = file_name(path);
    let parts = ["_bw.", "_iops.", "_slat.", "_clat.", "_lat."];
    let Some((job, rest)) = parts.iter().find_map(|part| name.split_once(part)) else {
        return "fio".to_owned();
    };
    match rest.split('.').next().filter(|number| number.parse::<u32>().is_ok()) {
        Some(number) => format!("{job}.{number}"),
        None => job.to_owned(),
    }
}

/// A line of a log.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Line {
    /// Time in milliseconds.
    time: u64,
    value: f64,
    direction: u8,
    block_bytes: u64,
}

impl Line {
    fn parse(text: &str) -> Result<Self, String> {
        Self::plain(text.as_bytes()).map_or_else(|| Self::explained(text), Ok)
    }

    /// Parses a line as fio writes it. There may be one per request, so this is the hot path.
    fn plain(mut rest: &[u8]) -> Option<Self> {
        let [time, value, direction, block_bytes] = [
            next_number(&mut rest)?,
            next_number(&mut rest)?,
            next_number(&mut rest)?,
            next_number(&mut rest)?,
        ];
        let direction = u8::try_from(direction).ok().filter(|direction| *direction <= 2)?;
        #[expect(clippy::cast_precision_loss, reason = "nothing real is as large")]
        Some(Self { time, value: value as f64, direction, block_bytes })
    }

    /// Parses any other line, with a description of an error.
    fn explained(text: &str) -> Result<Self, String> {
        let mut fields = text.split(',').map(str::trim);
        let mut next = |what: &str| {
            let text = fields.next().ok_or_else(|| format!("there is no {what}"))?;
            text.parse::<u64>().map_err(|_| format!("{what} {text:?} is not a whole number"))
        };
        let time = next("time")?;
        let value = next("value")?;
        let direction = next("direction")?;
        let direction = u8::try_from(direction)
            .ok()
            .filter(|direction| *direction <= 2)
            .ok_or_else(|| format!("direction {direction} is none of 0, 1 and 2"))?;
        let block_bytes = next("block size")?;
        #[expect(clippy::cast_precision_loss, reason = "nothing real is as large")]
        Ok(Self { time, value: value as f64, direction, block_bytes })
    }
}

/// Parses the number at the beginning of a text, up to the comma or the end.
fn next_number(rest: &mut &[u8]) -> Option<u64> {
    let text = rest.trim_ascii_start();
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, behind) = text.split_at(digits);
    *rest = match behind.trim_ascii_start() {
        [] => &[],
        [b',', behind @ ..] => behind,
        _ => return None,
    };
    let add = |sum: u64, byte: &u8| sum.checked_mul(10)?.checked_add(u64::from(byte - b'0'));
    if number.is_empty() { None } else { number.iter().try_fold(0, add) }
}

/// Sums over the lines of an interval and direction.
#[derive(Debug, Default, Clone, Copy)]
struct Sum {
    lines: f64,
    values: f64,
    bytes: f64,
}

/// A value of a direction, and its series once there is one.
type Slot = Option<(SeriesId, &'static Metric)>;

struct FioLog {
    lines: Lines<Bytes>,
    content: Content,
    is_assumed: bool,
    job: String,
    /// Length of the intervals of single requests, in milliseconds.
    step: u64,
    /// The next line.
    next: Option<Line>,
    /// True if lines are single requests.
    is_single: bool,
    begun: bool,
    sums: [Sum; 3],
    /// Value, operations and bytes per second, by direction.
    slots: [[Slot; 3]; 3],
    late: u64,
}

impl FioLog {
    fn boxed(input: Bytes, options: &Options, content: Option<Content>) -> Box<dyn ReadSamples> {
        Box::new(Self {
            lines: Lines::new(input),
            content: content.unwrap_or(Content::Latency("")),
            is_assumed: content.is_none(),
            job: job_of(&options.name),
            step: (options.step().nanos() / MS).max(1),
            next: None,
            is_single: false,
            begun: false,
            sums: [Sum::default(); 3],
            slots: [[None; 3]; 3],
            late: 0,
        })
    }

    /// Returns the next line, or `None` at the end.
    fn line(&mut self, sheet: &mut Sheet) -> Result<Option<Line>, ImportError> {
        loop {
            let Some(text) = self.lines.next_line()? else { return Ok(None) };
            if text.trim().is_empty() {
                continue;
            }
            return match Line::parse(&text) {
                // A truncated number still parses.
                _ if self.lines.was_open() => {
                    sheet.note(
                        "its last line has no line break and may be truncated: it is left \
                                out",
                    );
                    Ok(None)
                }
                Ok(line) => Ok(Some(line)),
                Err(reason) => Err(ImportError::at(self.lines.number(), reason)),
            };
        }
    }

    fn begin(&mut self, sheet: &mut Sheet) -> Result<(), ImportError> {
        self.begun = true;
        self.next = self.line(sheet)?;
        self.is_single = self.next.is_some_and(|line| line.block_bytes > 0);
        if self.is_assumed {
            sheet.note(
                "its name does not show the kind of its values: latencies in nanoseconds are \
                 assumed, as in fio 3; otherwise give --as fio-bw-log or --as fio-iops-log",
            );
        } else if let Content::Latency(_) = self.content {
            sheet.note("its latencies are assumed to be nanoseconds, as in fio 3");
        }
        if self.is_single {
            let step = self.step;
            sheet.note(format!(
                "its lines are single requests: they are combined for each {step} \
                                ms"
            ));
        }
        Ok(())
    }

    /// Returns whether a line is in the interval that ends then.
    fn is_within(&self, line: &Line, end: u64) -> bool {
        if self.is_single { line.time < end } else { line.time == end }
    }

    fn put(&mut self, sheet: &mut Sheet, of: usize) {
        let sum = self.sums[of];
        if sum.lines == 0.0 {
            return;
        }
        let direction: &Direction = [&READ, &WRITE, &DISCARD][of];
        let by = if self.content == Content::Bandwidth { KIB } else { 1.0 };
        self.slot(sheet, direction, of, 0, sum.values / sum.lines * by);
        // With one line per request, their number is known too.
        if self.is_single && matches!(self.content, Content::Latency(_)) {
            #[expect(clippy::cast_precision_loss, reason = "milliseconds")]
            let seconds = self.step as f64 / 1e3;
            self.slot(sheet, direction, of, 1, sum.lines / seconds);
            self.slot(sheet, direction, of, 2, sum.bytes / seconds);
        }
    }

    fn slot(
        &mut self,
        sheet: &mut Sheet,
        direction: &Direction,
        of: usize,
        what: usize,
        value: f64,
    ) {
        let slot = &mut self.slots[of][what];
        if slot.is_none() {
            let measure = match (what, self.content) {
                (0, Content::Bandwidth) => Some(direction.bytes_rate),
                (0, Content::Operations) | (1, _) => Some(direction.rate),
                (0, Content::Latency(part)) => direction.part(part),
                _ => Some(direction.bytes_rate),
            };
            let Some(measure) = measure else { return };
            let job = job::job(sheet, None, &self.job);
            *slot = Some((sheet.series(job, measure), measure));
        }
        if let Some((series, measure)) = slot {
            sheet.put(*series, measure, value);
        }
    }
}

impl ReadSamples for FioLog {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        if !self.begun {
            self.begin(sheet)?;
        }
        let Some(first) = self.next else {
            if self.late > 0 {
                let late = std::mem::take(&mut self.late);
                sheet.note(format!(
                    "{late} lines were earlier than those before them and are left \
                                    out"
                ));
            }
            return Ok(None);
        };
        let end = if self.is_single {
            (first.time / self.step).saturating_add(1).saturating_mul(self.step)
        } else {
            first.time
        };
        if self.is_single && end <= first.time {
            let reason = format!("{} ms is beyond all times", first.time);
            return Err(ImportError::at(self.lines.number(), reason));
        }
        self.sums = [Sum::default(); 3];
        while let Some(line) = self.next {
            if !self.is_within(&line, end) {
                break;
            }
            if self.is_single && line.time.saturating_add(self.step) < end {
                self.late += 1;
            } else {
                let sum = &mut self.sums[usize::from(line.direction)];
                sum.lines += 1.0;
                sum.values += line.value;
                #[expect(clippy::cast_precision_loss, reason = "nothing real is as large")]
                {
                    sum.bytes += line.block_bytes as f64;
                }
            }
            self.next = self.line(sheet)?;
        }
        for of in 0..3 {
            self.put(sheet, of);
        }
        // The logs count from the start of the job.
        Ok(Some(At::Since(end.saturating_mul(MS))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_log_shows_its_content() {
        let check = |name: &str, content, job: &str| {
            assert_eq!((content_of(name), job_of(name).as_str()), (content, job), "{name}");
        };
        check("a/fio_slat.1.log", Some(Content::Latency("submission")), "fio.1");
        check("rnd_read_clat.12.log", Some(Content::Latency("completion")), "rnd_read.12");
        check("x_lat.log", Some(Content::Latency("")), "x");
        check("C:\\r\\x_bw.2.log", Some(Content::Bandwidth), "x.2");
        check("x_iops.2.log", Some(Content::Operations), "x.2");
        check("input", None, "fio");
    }
}
