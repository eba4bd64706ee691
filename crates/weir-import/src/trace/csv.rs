//! Traces as tables whose head names their columns: time, operation, offset, length, and
//! optionally latency, device and host, under various names.
//!
//! Units come from the head (`latency_us`, `Time (ms)`). Without one, the size of a time shows
//! whether it counts from 1970. Other assumptions are noted.

use super::opened::Trace;
use super::rows::{
    self, Layout, MILLISECOND, SECOND, SECTOR, Split, TICK, Table, Times, direction, first_line,
    first_rows, is_epoch, is_idle, is_ticks, times_in,
};
use super::summing::scaled;
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::{Options, TimeUnit};
use crate::sheet::ReadSamples;
use crate::table::delimiter;
use crate::text::Lines;

pub(crate) const KIND: Kind = Kind {
    name: "trace-csv",
    about: "a block trace as a table with named columns",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Word(&["time", "timestamp"]),
        Sign::Word(&["op", "operation", "type", "rw", "opcode"]),
        Sign::Word(&["offset", "lba", "sector"]),
        Sign::Word(&["size", "length", "bytes", "sectors"]),
    ]],
};

const TIME: &[&str] = &[
    "time",
    "timestamp",
    "ts",
    "datetime",
    "issuetime",
    "arrivaltime",
    "starttime",
    "submittime",
    "requesttime",
    "clock",
    "start",
];
const OPERATION: &[&str] = &[
    "op",
    "type",
    "rw",
    "iotype",
    "operation",
    "opcode",
    "direction",
    "cmd",
    "command",
    "optype",
    "requesttype",
    "readwrite",
    "operationtype",
];
const OFFSET: &[&str] = &["offset", "byteoffset", "address", "startoffset"];
const SECTOR_OFFSET: &[&str] = &[
    "lba",
    "lbn",
    "sector",
    "block",
    "blkno",
    "blocknumber",
    "startsector",
    "startlba",
    "sectornumber",
    "logicalblockaddress",
    "blockaddress",
    "startblock",
];
const LENGTH: &[&str] =
    &["size", "len", "length", "bytes", "iosize", "requestsize", "transfersize", "reqsize"];
const SECTOR_LENGTH: &[&str] =
    &["sectors", "nsectors", "blocks", "numsectors", "sectorcount", "nblocks", "numblocks"];
const LATENCY: &[&str] = &[
    "latency",
    "response",
    "responsetime",
    "resptime",
    "servicetime",
    "duration",
    "lat",
    "elapsed",
];
const DEVICE: &[&str] = &[
    "device",
    "dev",
    "disk",
    "disknumber",
    "volume",
    "volumeid",
    "lun",
    "deviceid",
    "devid",
    "asu",
    "diskid",
    "drive",
    "file",
    "filename",
    "path",
];
const HOST: &[&str] = &["host", "hostname", "server", "machine", "vm", "vmid"];

fn recognizes(text: &str) -> bool {
    let Some(head) = text.lines().find(|line| !is_idle(line)) else { return false };
    let Some((_, names)) = names(head) else { return false };
    let has = |wanted: &[&str]| names.iter().any(|name| wanted.contains(&name.base.as_str()));
    let has_place = has(OFFSET) || has(SECTOR_OFFSET);
    let has_length = has(LENGTH) || has(SECTOR_LENGTH);
    has(TIME) && has(OPERATION) && has_place && has_length && first_rows(text, true, 1, |_| true)
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(open_trace(input, options)?.samples(options))
}

pub(super) fn open_trace(input: Bytes, options: &Options) -> Result<Trace, ImportError> {
    let mut lines = Lines::new(input);
    let head = first_line(&mut lines)?;
    let number = lines.number();
    let (separator, names) = names(&head).ok_or_else(|| {
        ImportError::at(number, "a header with the names of columns was expected")
    })?;
    let first = first_line(&mut lines)?;
    let mut reading =
        Reading { names, first: rows::split(separator, &first), notes: Vec::new(), assumed: None };
    let layout = reading.layout(separator, options).map_err(|reason| {
        let line = if reason.in_row { lines.number() } else { number };
        ImportError::at(line, reason.text)
    })?;
    let (notes, assumed) = (reading.notes, reading.assumed);
    lines.put_back(first);
    Ok(rows::open(Table { lines, layout, head: Some(head), notes, assumed }, options))
}

/// A column name in parts.
#[derive(Debug, PartialEq, Eq)]
struct Name {
    written: String,
    /// The normalized name without its unit.
    base: String,
    /// The unit, in lower case.
    unit: Option<String>,
}

/// Returns the column names of a head, and its separator.
fn names(head: &str) -> Option<(Split, Vec<Name>)> {
    let separator = delimiter(head).map_or(Split::Spaces, |byte| Split::At(char::from(byte)));
    let names: Vec<_> = rows::split(separator, head).into_iter().map(name).collect();
    (names.len() > 1).then_some((separator, names))
}

fn name(written: &str) -> Name {
    let lower = written.trim_start_matches('\u{feff}').to_lowercase();
    let is_break = |c: char| !c.is_alphanumeric();
    let mut words: Vec<_> = lower.split(is_break).filter(|word| !word.is_empty()).collect();
    let is_unit = |word: &&str| nanos(word).is_some() || bytes(word).is_some();
    // `sectors` alone is a name, and so is `bytes`.
    let unit = words.last().filter(|word| words.len() > 1 && is_unit(word)).copied();
    if unit.is_some() {
        words.pop();
    }
    if matches!(unit, Some("bytes" | "sectors" | "blocks")) && words == ["in"] {
        words.clear();
    }
    let unit = unit.map(str::to_owned);
    Name { written: written.to_owned(), base: words.concat(), unit }
}

/// Returns the nanoseconds of a unit of time.
fn nanos(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" | "nsec" | "nanos" | "nanoseconds" => 1,
        "us" | "µs" | "μs" | "usec" | "usecs" | "micros" | "microseconds" => 1000,
        "ms" | "msec" | "msecs" | "millis" | "milliseconds" => MILLISECOND,
        "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
        _ => return None,
    })
}

/// Returns the bytes of a unit of size.
fn bytes(unit: &str) -> Option<u64> {
    Some(match unit {
        "b" | "byte" | "bytes" => 1,
        "kb" | "kib" => 1 << 10,
        "mb" | "mib" => 1 << 20,
        "sector" | "sectors" | "block" | "blocks" => SECTOR,
        _ => return None,
    })
}

/// The reason why a head or its first row is not accepted.
struct Reason {
    text: String,
    in_row: bool,
}

/// The derivation of a layout from a head and the first row.
struct Reading<'a> {
    names: Vec<Name>,
    first: Vec<&'a str>,
    notes: Vec<String>,
    /// Assumed unit of times.
    assumed: Option<&'static str>,
}

impl Reading<'_> {
    fn layout(&mut self, split: Split, options: &Options) -> Result<Layout, Reason> {
        let time = self.must(TIME, "a time")?;
        let op = self.must(OPERATION, "an operation")?;
        let length = if let Some(at) = self.find(LENGTH) {
            (at, self.size(at, 1, "bytes"))
        } else {
            let at = self.must(SECTOR_LENGTH, "a length")?;
            (at, self.size(at, SECTOR, "sectors of 512 bytes"))
        };
        let offset = self.find(OFFSET).map(|at| (at, self.size(at, 1, "bytes")));
        let in_sectors = self.find(SECTOR_OFFSET);
        let offset = offset
            .or_else(|| in_sectors.map(|at| (at, self.size(at, SECTOR, "sectors of 512 bytes"))));
        let (times, resolution) = self.times(time, options)?;
        let latency = self.find(LATENCY).map(|at| (at, self.latency(at, times)));
        if matches!(self.field(op), "0" | "1") {
            self.assume(op, "0 for a read and 1 for a write");
        }
        Ok(Layout {
            split,
            time: (time, times),
            op: (op, direction),
            offset,
            length,
            latency,
            device: self.find(DEVICE),
            host: self.find(HOST),
            resolution,
        })
    }

    /// Returns the column with the first of these names that exists.
    fn find(&self, names: &[&str]) -> Option<usize> {
        names.iter().find_map(|name| self.names.iter().position(|column| column.base == *name))
    }

    fn must(&self, names: &[&str], what: &str) -> Result<usize, Reason> {
        self.find(names).ok_or_else(|| {
            let there: Vec<_> = self.names.iter().map(|name| name.written.as_str()).collect();
            let text = format!("no column is named as {what} is; there are {}", there.join(", "));
            Reason { text, in_row: false }
        })
    }

    fn field(&self, at: usize) -> &str {
        self.first.get(at).copied().unwrap_or_default()
    }

    fn unit(&self, at: usize) -> Option<&str> {
        self.names.get(at)?.unit.as_deref()
    }

    fn assume(&mut self, at: usize, what: &str) {
        let name = self.names.get(at).map(|name| name.written.clone()).unwrap_or_default();
        self.notes.push(format!("{name} has no unit: assumed to be {what}"));
    }

    fn size(&mut self, at: usize, usual: u64, said: &str) -> u64 {
        if let Some(unit) = self.unit(at).and_then(bytes) {
            return unit;
        }
        if !matches!(self.names.get(at).map(|name| name.base.as_str()), Some("bytes" | "sectors")) {
            self.assume(at, said);
        }
        usual
    }

    /// Returns the notation and resolution of times.
    fn times(&mut self, at: usize, options: &Options) -> Result<(Times, u64), Reason> {
        let text = self.field(at).to_owned();
        let exact = text.contains(['.', ',', 'e']);
        let resolution = |unit: u64| if exact { 0 } else { unit };
        let Some(number) = scaled(&text.replacen(',', ".", 1), 1) else {
            if options.clock.moment(&text).is_none() {
                let text = format!("the time is {text:?}, which is not a time");
                return Err(Reason { text, in_row: true });
            }
            if !has_zone(&text) && options.clock.offset == 0 {
                self.notes.push("its times have no zone: UTC is assumed".to_owned());
            }
            let seconds = text.rsplit(':').next().unwrap_or_default();
            let resolution = if seconds.contains(['.', ',']) { 0 } else { SECOND };
            return Ok((Times::Dates(options.clock), resolution));
        };
        if let Some(unit) = options.time_unit.map(TimeUnit::nanos) {
            return Ok((times_in(number, unit), resolution(unit)));
        }
        let is_since_1970 = |unit: &u64| number.checked_mul(*unit).is_some_and(is_epoch);
        if let Some(unit) = self.unit(at).and_then(nanos) {
            let since = is_since_1970(&unit);
            let times = if since { Times::Epoch(unit) } else { Times::Since(unit) };
            return Ok((times, resolution(unit)));
        }
        if is_ticks(number) {
            return Ok((Times::Ticks, 0));
        }
        let units = [
            (SECOND, "seconds since 1970"),
            (MILLISECOND, "milliseconds since 1970"),
            (1000, "microseconds since 1970"),
            (1, "nanoseconds since 1970"),
        ];
        if let Some((unit, said)) = units.iter().find(|(unit, _)| is_since_1970(unit)) {
            self.assumed = Some(*said);
            self.assume(at, said);
            return Ok((Times::Epoch(*unit), resolution(*unit)));
        }
        self.assumed = Some("seconds");
        let why = "seconds, as no unit is named and they are no times since 1970; --time-unit says \
                   another";
        self.assume(at, why);
        Ok((Times::Since(SECOND), resolution(SECOND)))
    }

    /// Returns the unit of latencies: that of times, unless the head has another.
    fn latency(&mut self, at: usize, times: Times) -> u64 {
        if let Some(unit) = self.unit(at).and_then(nanos) {
            return unit;
        }
        let unit = match times {
            Times::Ticks => TICK,
            Times::Epoch(unit) | Times::Since(unit) => unit,
            Times::Dates(_) => MILLISECOND,
        };
        self.assume(
            at,
            match unit {
                1 => "nanoseconds",
                TICK => "ticks of 100 ns",
                1000 => "microseconds",
                MILLISECOND => "milliseconds",
                _ => "seconds",
            },
        );
        unit
    }
}

/// Returns whether a date has a zone.
fn has_zone(text: &str) -> bool {
    let behind = text.get(10..).unwrap_or_default();
    behind.ends_with(['Z', 'z']) || behind.contains(['+', '-']) || behind.contains("UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_units() {
        let check = |written: &str, base: &str, unit: Option<&str>| {
            let name = name(written);
            assert_eq!((name.base.as_str(), name.unit.as_deref()), (base, unit), "{written}");
        };
        check("Latency (us)", "latency", Some("us"));
        check("response_time_ms", "responsetime", Some("ms"));
        check("ResponseTime", "responsetime", None);
        check("sectors", "sectors", None);
        check("offset[bytes]", "offset", Some("bytes"));
        check("IO Type", "iotype", None);
        check("R/W", "rw", None);
    }
}
