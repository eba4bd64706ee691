//! Tables with one row per counter and time: objects of `Get-Counter` (`(Get-Counter
//! ..).CounterSamples | Export-Csv`), tables that scripts make of them, and tables with object,
//! counter and instance in separate columns (Log Analytics, the database of `relog`).

use super::board::{Board, Place};
use super::path::Path;
use super::row::{Fields, Numbers, Said};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Reports, Sheet};
use crate::table::{delimiter, plain};
use crate::text::Lines;
use weir_observe::moment::Clock;

pub(crate) const KIND: Kind = Kind {
    name: "get-counter",
    about: "a table with one row per Windows counter and time, from Get-Counter",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Word(&["Timestamp", "TimeGenerated", "CounterDateTime"]),
        Sign::Word(&["Path", "CounterPath", "CounterName", "Counter"]),
        Sign::Word(&["CookedValue", "CounterValue", "Value"]),
    ]],
};

fn recognizes(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !is_preface(line));
    let (Some(head), row) = (lines.next(), lines.next().unwrap_or_default()) else { return false };
    delimiter(head).is_some_and(|delimiter| Head::parse(head, row, delimiter).is_some())
}

/// Returns whether a line is `#TYPE
/// Microsoft.PowerShell.Commands.GetCounter.PerformanceCounterSample`.
fn is_preface(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with("#TYPE") || line.starts_with("\u{feff}#TYPE")
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(Box::new(GetCounter {
        lines: Lines::new(input),
        clock: options.clock,
        head: None,
        board: Board::default(),
        numbers: Numbers::default(),
        key: String::new(),
        sample: Vec::new(),
        at: None,
        stamp: String::new(),
        last: None,
        is_sorted: true,
    }))
}

/// The columns of a row.
#[derive(Debug, Clone)]
struct Head {
    delimiter: u8,
    names: Vec<String>,
    time: usize,
    value: usize,
    counter: Counter,
    /// True if times are stated to be UTC.
    is_utc: bool,
}

#[derive(Debug, Clone)]
enum Counter {
    Path(usize),
    /// Host, object, instance, counter.
    Parts {
        host: Option<usize>,
        object: usize,
        instance: Option<usize>,
        name: usize,
    },
}

const TIMES: [&str; 8] = [
    "timestamp",
    "timegenerated",
    "counterdatetime",
    "eventdatetime",
    "datetime",
    "time",
    "date",
    "sampletime",
];
const VALUES: [&str; 4] = ["cookedvalue", "countervalue", "value", "performancecountervalue"];
const PATHS: [&str; 5] = ["path", "counterpath", "performancecounter", "counter", "countername"];
const HOSTS: [&str; 5] = ["computer", "computername", "machinename", "host", "server"];
const OBJECTS: [&str; 4] = ["objectname", "object", "counterset", "category"];
const INSTANCES: [&str; 2] = ["instancename", "instance"];
const NAMES: [&str; 2] = ["countername", "counter"];

impl Head {
    /// Finds the columns by their names and, for paths, by the contents of the first row.
    fn parse(line: &str, row: &str, delimiter: u8) -> Option<Self> {
        let names: Vec<_> = Fields::new(line, delimiter).map(str::to_owned).collect();
        let row: Vec<_> = Fields::new(row, delimiter).collect();
        let bare: Vec<_> = names.iter().map(|name| bare(name)).collect();
        let find = |wanted: &[&str]| {
            wanted.iter().find_map(|wanted| bare.iter().position(|name| name == wanted))
        };
        let (time, value) = (find(&TIMES)?, find(&VALUES)?);
        let is_path = |at: &usize| row.get(*at).is_some_and(|field| Path::parse(field).is_some());
        let counter = match find(&PATHS).filter(is_path) {
            Some(path) => Counter::Path(path),
            None => match (find(&OBJECTS), find(&NAMES)) {
                (Some(object), Some(name)) => {
                    Counter::Parts { host: find(&HOSTS), object, instance: find(&INSTANCES), name }
                }
                _ => Counter::Path((0..names.len()).find(is_path)?),
            },
        };
        let is_utc = names.get(time).is_some_and(|name| name.to_lowercase().contains("utc"));
        Some(Self { delimiter, names, time, value, counter, is_utc })
    }

    fn uses(&self, at: usize) -> bool {
        let of_counter = match self.counter {
            Counter::Path(path) => at == path,
            Counter::Parts { host, object, instance, name } => {
                [host, Some(object), instance, Some(name)].contains(&Some(at))
            }
        };
        at == self.time || at == self.value || of_counter
    }
}

/// Normalizes a column name, without its unit or zone.
fn bare(name: &str) -> String {
    let name = name.trim_start_matches('\u{feff}');
    plain(name.split(['(', '[']).next().unwrap_or_default())
}

struct GetCounter {
    lines: Lines<Bytes>,
    clock: Clock,
    head: Option<Head>,
    board: Board,
    numbers: Numbers,
    /// Key of a counter with several columns.
    key: String,
    /// Values of the current sample.
    sample: Vec<(Place, f64)>,
    at: Option<i64>,
    /// Text of its time.
    stamp: String,
    last: Option<i64>,
    is_sorted: bool,
}

impl ReadSamples for GetCounter {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        sheet.reports = Reports::All;
        while let Some(line) = self.lines.next_line()? {
            if line.trim().is_empty() {
                continue;
            }
            let Some(head) = self.head.take() else {
                self.read_head(sheet, &line)?;
                continue;
            };
            let before = self.row(sheet, &head, &line);
            self.head = Some(head);
            if let Some(at) = before? {
                return Ok(Some(at));
            }
        }
        self.board.check(self.lines.number())?;
        Ok(self.finish(sheet, None))
    }
}

impl GetCounter {
    fn read_head(&mut self, sheet: &mut Sheet, line: &str) -> Result<(), ImportError> {
        if is_preface(line) {
            return Ok(());
        }
        let number = self.lines.number();
        let row = self.lines.next_line()?.unwrap_or_default();
        let head = delimiter(line).and_then(|delimiter| Head::parse(line, &row, delimiter));
        let Some(head) = head else {
            return Err(ImportError::at(
                number,
                "a header was expected with a time, the path of a counter and its value",
            ));
        };
        self.lines.put_back(row);
        for (at, name) in head.names.iter().enumerate() {
            if !head.uses(at) {
                sheet.unused(name);
            }
        }
        if head.is_utc {
            self.clock.offset = 0;
        }
        self.head = Some(head);
        Ok(())
    }

    /// Takes a row; returns the time of the previous sample, if that has ended.
    fn row(
        &mut self,
        sheet: &mut Sheet,
        head: &Head,
        line: &str,
    ) -> Result<Option<At>, ImportError> {
        let number = self.lines.number();
        let Some(row) = Row::parse(head, line) else {
            if self.lines.was_open() {
                sheet.note("its last line was truncated and is left out");
                return Ok(None);
            }
            if !line.contains(char::from(head.delimiter)) {
                sheet.unused("lines of text");
                return Ok(None);
            }
            let reason = format!("a row has fewer columns than its header, {}", head.names.len());
            return Err(ImportError::at(number, reason));
        };
        let begins = row.time != self.stamp || self.at.is_none();
        let at = if begins { self.moment(sheet, head, row.time)? } else { self.at };
        let Some(at) = at else {
            // A repeated head: files were concatenated.
            if Head::parse(line, "", head.delimiter).is_some() || row.time == head.names[head.time]
            {
                return Ok(None);
            }
            return Err(ImportError::at(number, format!("{:?} is not a time", row.time)));
        };
        let value = match self.numbers.read(row.value) {
            Said::Value(value) => Some(value),
            Said::Nothing => None,
            Said::Other => {
                return Err(ImportError::at(number, format!("{:?} is not a number", row.value)));
            }
        };
        let before = if begins {
            row.time.clone_into(&mut self.stamp);
            self.finish(sheet, Some(at))
        } else {
            None
        };
        let place = self.place(sheet, &row, number)?;
        if let Some(value) = value {
            self.sample.push((place, value));
        }
        Ok(before)
    }

    fn moment(
        &mut self,
        sheet: &mut Sheet,
        head: &Head,
        text: &str,
    ) -> Result<Option<i64>, ImportError> {
        let at = self.clock.moment(text);
        if self.at.is_none() && at.is_some() && !head.is_utc && self.clock.offset == 0 {
            let ahead = Clock { offset: 3600, ..self.clock };
            if ahead.moment(text) != at {
                sheet.note("its times have no zone: UTC is assumed");
            }
        }
        Ok(at)
    }

    fn place(&mut self, sheet: &mut Sheet, row: &Row<'_>, line: u64) -> Result<Place, ImportError> {
        self.key.clear();
        let key = match row.counter {
            Named::Path(path) => path,
            Named::Parts(parts) => {
                for part in parts {
                    self.key.push_str(part);
                    self.key.push('\u{1f}');
                }
                &self.key
            }
        };
        if let Some(place) = self.board.place(key) {
            return Ok(place);
        }
        if self.board.len() >= MOST_COUNTERS {
            return Err(ImportError::at(
                line,
                format!("there are more than {MOST_COUNTERS} counters"),
            ));
        }
        let path = match row.counter {
            Named::Path(text) => Path::parse(text).ok_or_else(|| {
                ImportError::at(line, format!("{text:?} is not the path of a counter"))
            })?,
            Named::Parts([host, object, instance, name]) => Path::new(host, object, instance, name),
        };
        let key = key.to_owned();
        Ok(self.board.add(sheet, &key, path))
    }

    /// Writes the finished sample into the sheet, and begins one at `next`.
    fn finish(&mut self, sheet: &mut Sheet, next: Option<i64>) -> Option<At> {
        let ended = self.at;
        self.at = next;
        if let (Some(at), Some(last)) = (ended, self.last)
            && at < last
            && self.is_sorted
        {
            self.is_sorted = false;
            sheet.note("its rows are not in order of time: sort them so that all are read");
        }
        self.last = ended.or(self.last);
        self.board.settle(sheet);
        for (place, value) in self.sample.drain(..) {
            self.board.put(sheet, place, value);
        }
        ended.map(At::Wall)
    }
}

/// The most different counters.
const MOST_COUNTERS: usize = 1_000_000;

/// A parsed row.
struct Row<'a> {
    time: &'a str,
    value: &'a str,
    counter: Named<'a>,
}

#[derive(Clone, Copy)]
enum Named<'a> {
    Path(&'a str),
    Parts([&'a str; 4]),
}

impl<'a> Row<'a> {
    fn parse(head: &Head, line: &'a str) -> Option<Self> {
        let (mut time, mut value, mut parts) = ("", "", [""; 4]);
        let mut fields = Fields::new(line, head.delimiter);
        let mut count = 0;
        for (at, field) in fields.by_ref().enumerate() {
            count += 1;
            if at == head.time {
                time = field;
            } else if at == head.value {
                value = field;
            }
            match head.counter {
                Counter::Path(path) if at == path => parts[0] = field,
                Counter::Parts { host, object, instance, name } => {
                    let places = [host, Some(object), instance, Some(name)];
                    if let Some(part) = places.iter().position(|place| *place == Some(at)) {
                        parts[part] = field;
                    }
                }
                Counter::Path(_) => {}
            }
        }
        if count < head.names.len() || fields.is_open() {
            return None;
        }
        let counter = match head.counter {
            Counter::Path(_) => Named::Path(parts[0]),
            Counter::Parts { .. } => Named::Parts(parts),
        };
        Some(Self { time, value, counter })
    }
}
