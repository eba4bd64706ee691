//! Results of fio, as JSON and JSON+, of fio 2 and 3, of one machine and of client and server.
//!
//! ```text
//!  text, progress          not used
//!  { "fio version", "timestamp_ms",
//!    "jobs" or "client_stats": [ { "jobname", "read": { "iops", "lat_ns", .. }, .. } ],
//!    "disk_util": [ .. ] }
//! ```
//!
//! Before fio 3, latencies were in microseconds (`lat`, not `lat_ns`) and `io_bytes` in KiB. With
//! `--status-interval` there are several documents, each of the time since the start.

use super::job::{self, BOTH, DISCARD, Direction, Facts, MS, READ, WRITE};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Sheet};
use crate::text::Lines;
use serde_json::Value;
use std::collections::HashMap;
use weir_observe::attribute;
use weir_observe::header::{Attribute, EntityId, EntityKind};
use weir_observe::metric as m;

pub(crate) const KIND: Kind = Kind {
    name: "fio",
    about: "results of fio, as JSON",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Json,
        Sign::Word(&["fio version", "fio"]),
        Sign::Word(&["jobs"]),
        Sign::Word(&["jobname"]),
    ]],
};

/// The most bytes of a document, which is kept in memory.
const LONGEST: usize = 128 << 20;
const KIB: f64 = 1024.0;
const SECTOR: f64 = 512.0;
/// fio's name of the sum of all rows.
const SUM: &str = "All clients";

fn recognizes(text: &str) -> bool {
    text.contains("\"fio version\"")
        || text.contains("fio=fio-")
        || text.lines().any(|line| line.contains("(g=") && line.contains("rw="))
}

/// Returns whether a text is a job file: sections with `rw=` or `ioengine=`.
pub(crate) fn is_job_file(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    lines.clone().any(is_section) && lines.any(is_job_option)
}

fn is_section(line: &str) -> bool {
    line.starts_with('[') && line.ends_with(']') && line.len() > 2
}

fn is_job_option(line: &str) -> bool {
    const OPTIONS: [&str; 3] = ["rw", "readwrite", "ioengine"];
    line.split_once('=').is_some_and(|(name, _)| OPTIONS.contains(&name.trim()))
}

/// Returns whether a text is output of `--minimal`: `3;fio-3.7;job;0;0;..`.
pub(crate) fn is_terse(text: &str) -> bool {
    text.lines().any(|line| {
        let mut fields = line.split(';');
        let version = fields.next().and_then(|field| field.trim().parse::<u8>().ok());
        version.is_some() && fields.next().is_some_and(|field| field.starts_with("fio-"))
    })
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    let documents = Documents { lines: Lines::new(input), rest: String::new() };
    Ok(Box::new(Fio { documents, options: options.clone(), reports: 0, last: None }))
}

struct Fio {
    documents: Documents,
    options: Options,
    reports: u64,
    /// Time of the previous report.
    last: Option<At>,
}

impl ReadSamples for Fio {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        let document = match self.documents.next_document() {
            Ok(Some(document)) => document,
            Ok(None) if self.reports == 0 => {
                let reason = "there is no JSON in this output of fio; run fio with \
                              --output-format=json";
                return Err(ImportError::whole(reason));
            }
            Ok(None) => return Ok(None),
            Err(cut @ ImportError::Malformed { .. }) if self.reports > 0 => {
                sheet.note(format!("its last report is left out: {cut}"));
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let report = parse(&document)?;
        let rows = ["jobs", "client_stats"].into_iter().filter_map(|name| report[name].as_array());
        let rows: Vec<&Value> = rows.flatten().collect();
        if rows.is_empty() {
            let reason = "a JSON document without \"jobs\" and without \"client_stats\"";
            return Err(ImportError::at(document.line, reason));
        }
        self.reports += 1;
        if self.reports == 2 {
            sheet.note("each of its reports, means included, covers the time since the start");
        }
        if let Some(version) = report["fio version"].as_str() {
            sheet.about("fio", version);
        }
        let at = self.moment(&report);
        let since = self.last.replace(at).and_then(|last| nanos_between(last, at));
        let mut names = Names::new(&rows);
        let parts = rows.iter().filter(|row| !is_sum(row)).count();
        let mut longest = 0;
        for row in rows {
            if is_sum(row) && parts > 0 {
                sheet.unused(SUM);
            } else {
                let id = job_row(sheet, row, &report["global options"], &mut names);
                // A later report is of the time since the start, but adds only the time since the
                // previous report.
                let nanos = run_nanos(row).min(since.unwrap_or(u64::MAX));
                job::put_interval(sheet, id, nanos);
                longest = longest.max(nanos);
            }
        }
        for disk in report["disk_util"].as_array().into_iter().flatten() {
            disk_row(sheet, disk);
        }
        job::begin(sheet, longest);
        Ok(Some(at))
    }
}

impl Fio {
    /// Returns the time of a report.
    fn moment(&self, report: &Value) -> At {
        let scaled = |name: &str, by: i64| report[name].as_i64()?.checked_mul(by);
        let at = scaled("timestamp_ms", 1_000_000)
            .or_else(|| scaled("timestamp", 1_000_000_000))
            .or_else(|| self.options.clock.moment(report["time"].as_str()?));
        let step = self.options.step().nanos();
        at.map_or(At::Since(step.saturating_mul(self.reports - 1)), At::Wall)
    }
}

/// Returns the nanoseconds from one time to another.
fn nanos_between(from: At, to: At) -> Option<u64> {
    match (from, to) {
        (At::Wall(from), At::Wall(to)) => u64::try_from(to.checked_sub(from)?).ok(),
        (At::Since(from), At::Since(to)) => to.checked_sub(from),
        _ => None,
    }
}

/// Returns the run time of a row in nanoseconds, or 0 if it is unknown. For jobs that fio has
/// grouped, `job_runtime` is a sum.
fn run_nanos(row: &Value) -> u64 {
    let all = ["read", "write", "trim", "mixed"].into_iter();
    let parts = all.filter_map(|name| row[name]["runtime"].as_f64());
    let longest = parts.fold(0.0, f64::max);
    let ms = match longest > 0.0 {
        true => Some(longest),
        false => row["elapsed"].as_f64().map(|seconds| seconds * 1e3),
    };
    job::nanos(ms.unwrap_or(0.0) / 1e3)
}

/// The names of rows. Clones of a job share its name, in order of their numbers; fio may have
/// grouped them into one row.
struct Names {
    /// Number of rows, and of rows read, by host and name.
    rows: HashMap<(String, String), (u64, u64)>,
}

impl Names {
    fn new(all: &[&Value]) -> Self {
        let mut rows: HashMap<_, (u64, u64)> = HashMap::new();
        for row in all {
            rows.entry(Self::key(row)).or_default().0 += 1;
        }
        Self { rows }
    }

    fn key(row: &Value) -> (String, String) {
        let text = |name: &str| row[name].as_str().map(str::to_owned);
        (text("hostname").unwrap_or_default(), text("jobname").unwrap_or("job".to_owned()))
    }

    /// Returns the name of the next row, and whether it may represent several clones.
    fn next(&mut self, row: &Value) -> (String, bool) {
        let key = Self::key(row);
        let name = key.1.clone();
        let (count, read) = self.rows.entry(key).or_default();
        *read += 1;
        let own = if *read == 1 { name } else { format!("{name} #{read}") };
        (own, *count == 1)
    }
}

/// I/O engines that wait for each request.
const SYNCHRONOUS: [&str; 7] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice"];

/// Returns the queue depth that a row keeps; `None` if options limit it further.
fn target_depth(own: &Value, globals: &Value, is_together: bool) -> Option<u64> {
    let option = |name: &str| own[name].as_str().or_else(|| globals[name].as_str());
    let is_said = own.is_object() || globals.is_object();
    if !is_said || ["rate", "rate_iops", "thinktime", "flow"].iter().any(|o| option(o).is_some()) {
        return None;
    }
    let number = |name: &str| option(name).map_or(Some(1), |text| text.parse::<u64>().ok());
    let waits = option("ioengine").is_some_and(|engine| SYNCHRONOUS.contains(&engine));
    let depth = if waits { 1 } else { number("iodepth")? };
    let clones = if is_together { number("numjobs")? } else { 1 };
    depth.checked_mul(clones).filter(|depth| *depth > 0)
}

/// Returns the host of a row.
fn host(sheet: &mut Sheet, row: &Value) -> EntityId {
    job::host(sheet, row["hostname"].as_str())
}

/// Reads a job, or a group of jobs.
fn job_row(sheet: &mut Sheet, row: &Value, globals: &Value, names: &mut Names) -> EntityId {
    let host = host(sheet, row);
    let (own, is_together) = names.next(row);
    let id = job::job(sheet, Some(host), &own);
    for (what, value) in facts(&row["job options"], globals) {
        sheet.attribute(id, what, value);
    }
    if let Some(depth) = target_depth(&row["job options"], globals, is_together) {
        sheet.attribute(id, attribute::TARGET_QUEUE_DEPTH, depth);
    }
    let error = row["error"].as_i64().unwrap_or(0);
    if error != 0 {
        sheet.note(format!("job {own} ended with error {error}"));
    }
    for (name, of) in [("read", &READ), ("write", &WRITE), ("trim", &DISCARD), ("mixed", &BOTH)] {
        direction(sheet, id, of, &row[name]);
    }
    flushes(sheet, id, &row["sync"]);
    for (name, measure) in [("usr_cpu", &m::CPU_USER), ("sys_cpu", &m::CPU_SYSTEM)] {
        if let Some(percent) = row[name].as_f64() {
            sheet.set(id, measure, percent / 100.0);
        }
    }
    id
}

/// Returns the options of a job, its own and the global ones.
fn facts(own: &Value, globals: &Value) -> Facts {
    let option = |names: &[&str]| {
        let of =
            |from: &Value| names.iter().find_map(|name| from[*name].as_str().map(str::to_owned));
        of(own).or_else(|| of(globals))
    };
    let number = |names: &[&str]| option(names)?.parse::<u64>().ok();
    let mut facts = Facts::new();
    let mut add = |name: &'static str, value: Option<Attribute>| {
        facts.extend(value.map(|value| (name, value)));
    };
    let size = |names: &[&str]| option(names).as_deref().and_then(job::size).map(Attribute::from);
    add("block_bytes", size(&["bs", "blocksize"]));
    add("size_bytes", size(&["size", "filesize"]));
    add("outstanding", number(&["iodepth"]).map(Attribute::from));
    add("threads", number(&["numjobs"]).map(Attribute::from));
    let pattern = option(&["rw", "readwrite"]);
    add("pattern", pattern.as_deref().map(Attribute::from));
    if let Some(pattern) = pattern {
        let mixed =
            || number(&["rwmixread"]).or_else(|| 100_u64.checked_sub(number(&["rwmixwrite"])?));
        let reads = match pattern.trim_start_matches("rand") {
            "read" => Some(100),
            "write" => Some(0),
            "rw" | "readwrite" => Some(mixed().unwrap_or(50)),
            _ => None,
        };
        add("read_percent", reads.map(Attribute::from));
        let random = if pattern.starts_with("rand") { 100 } else { 0 };
        add("random_percent", reads.map(|_| Attribute::from(random)));
    }
    for (name, option_name) in
        [("engine", "ioengine"), ("direct", "direct"), ("filename", "filename")]
    {
        add(name, option(&[option_name]).as_deref().map(Attribute::from));
    }
    facts
}

/// Reads one direction: reads, writes, discards, or all mixed.
fn direction(sheet: &mut Sheet, id: EntityId, of: &Direction, from: &Value) {
    if !from.is_object() {
        return;
    }
    let number = |name: &str| from[name].as_f64();
    let bytes = match (number("io_bytes"), number("io_kbytes")) {
        (Some(bytes), Some(_)) => Some(bytes),
        // Without the other name this is fio 2, which counts KiB here.
        (kib, None) | (None, kib) => kib.map(|kib| kib * KIB),
    };
    let done = number("total_ios").or(bytes).or_else(|| number("iops")).unwrap_or(0.0);
    if done == 0.0 && !matches!(of.prefix, "read_" | "write_") {
        return;
    }
    let rate = number("bw_bytes").or_else(|| number("bw").map(|kib| kib * KIB));
    for (measure, value) in [(of.rate, number("iops")), (of.bytes_rate, rate)] {
        if let Some(value) = value {
            sheet.set(id, measure, value);
        }
    }
    if let Some((count, sum)) = of.totals {
        for (measure, value) in [(count, number("total_ios")), (sum, bytes)] {
            if let Some(value) = value {
                sheet.set(id, measure, value);
            }
        }
    }
    if done > 0.0 {
        latencies(sheet, id, of, from);
    }
}

/// Returns whether a row is the sum of all jobs.
fn is_sum(row: &Value) -> bool {
    row["jobname"].as_str() == Some(SUM)
}

/// Returns a kind of latency, and the nanoseconds of its unit.
fn latency<'a>(from: &'a Value, name: &str) -> Option<(&'a Value, f64)> {
    if let Some(nanos) = from.get(format!("{name}_ns")).filter(|value| value.is_object()) {
        return Some((nanos, 1.0));
    }
    from.get(name).filter(|value| value.is_object()).map(|micros| (micros, job::US))
}

fn latencies(sheet: &mut Sheet, id: EntityId, of: &Direction, from: &Value) {
    for (name, part) in [("lat", ""), ("slat", "submission"), ("clat", "completion")] {
        let Some((value, by)) = latency(from, name) else { continue };
        if let (Some(measure), Some(mean)) = (of.part(part), value["mean"].as_f64()) {
            sheet.set(id, measure, mean * by);
        }
        if value["bins"].is_object() {
            sheet.unused("bins of latencies");
        }
    }
    if let Some((value, by)) = latency(from, "lat") {
        for (name, what) in [("min", "min"), ("max", "max"), ("stddev", "stddev")] {
            if let (Some(measure), Some(nanos)) = (of.tail(what), value[name].as_f64()) {
                sheet.set(id, measure, nanos * by);
            }
        }
    }
    let percentiles = ["lat", "clat"].into_iter().find_map(|name| {
        let (value, by) = latency(from, name)?;
        Some((name, value["percentile"].as_object()?, by))
    });
    let Some((name, percentiles, by)) = percentiles else { return };
    if name == "clat" && !sheet.about.contains_key("percentiles") {
        sheet.about("percentiles", "completion latency");
        sheet.note("percentiles are of the latency from submission to completion (clat)");
    }
    for (percent, value) in percentiles {
        let Some((percent, value)) = percent.parse::<f64>().ok().zip(value.as_f64()) else {
            continue;
        };
        if let Some(measure) = of.percentile(percent) {
            sheet.set(id, measure, value * by);
        }
    }
}

fn flushes(sheet: &mut Sheet, id: EntityId, from: &Value) {
    let done = from["total_ios"].as_f64().unwrap_or(0.0);
    if done == 0.0 {
        return;
    }
    sheet.set(id, &m::FLUSHES, done);
    if let Some((mean, by)) =
        latency(from, "lat").and_then(|(v, by)| Some((v["mean"].as_f64()?, by)))
    {
        sheet.set(id, &m::FLUSH_LATENCY_NS, mean * by);
    }
}

/// Reads the system's counters of a disk during the run.
fn disk_row(sheet: &mut Sheet, row: &Value) {
    let Some(name) = row["name"].as_str() else { return };
    let host = host(sheet, row);
    let id = sheet.entity(EntityKind::Volume, name, Some(host));
    let all = [
        ("read_ios", &m::READS, 1.0),
        ("write_ios", &m::WRITES, 1.0),
        ("read_sectors", &m::READ_BYTES, SECTOR),
        ("write_sectors", &m::WRITE_BYTES, SECTOR),
        ("read_ticks", &m::IO_STALL_READ_MS, 1.0),
        ("write_ticks", &m::IO_STALL_WRITE_MS, 1.0),
        ("in_queue", &m::QUEUED_MS, 1.0),
        ("util", &m::BUSY, 0.01),
    ];
    for (name, measure, by) in all {
        if let Some(value) = row[name].as_f64() {
            sheet.set(id, measure, value * by);
        }
    }
    let mean = |ticks: &str, count: &str| {
        let (ticks, count) = (row[ticks].as_f64()?, row[count].as_f64()?);
        (count > 0.0).then_some(ticks / count * MS)
    };
    for (measure, value) in [
        (&m::READ_LATENCY_NS, mean("read_ticks", "read_ios")),
        (&m::WRITE_LATENCY_NS, mean("write_ticks", "write_ios")),
    ] {
        if let Some(value) = value {
            sheet.set(id, measure, value);
        }
    }
}

/// A JSON document, and the line that it begins in.
struct Document {
    text: String,
    line: u64,
}

fn parse(document: &Document) -> Result<Value, ImportError> {
    let error = match serde_json::from_str(&document.text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    // Some versions write a mean without samples like this.
    let plain = [": -nan", ": nan", ": inf", ": -inf"]
        .into_iter()
        .fold(document.text.clone(), |text, word| text.replace(word, ": null"));
    serde_json::from_str(&plain).map_err(|_| {
        let line = document.line + u64::try_from(error.line()).unwrap_or(1) - 1;
        let message = error.to_string();
        let reason = message.split(" at line ").next().unwrap_or_default();
        ImportError::at(line, format!("the JSON is wrong at column {}: {reason}", error.column()))
    })
}

/// The JSON documents in a text with other content.
struct Documents {
    lines: Lines<Bytes>,
    /// The rest of a line after a document.
    rest: String,
}

impl Documents {
    fn next_document(&mut self) -> Result<Option<Document>, ImportError> {
        loop {
            let line = match std::mem::take(&mut self.rest) {
                rest if rest.is_empty() => match self.lines.next_line()? {
                    Some(line) => line,
                    None => return Ok(None),
                },
                rest => rest,
            };
            // Progress is overwritten with carriage returns.
            let last = line.rsplit('\r').next().unwrap_or_default();
            let text = last.trim_start_matches([' ', '\t', '[', ',', ']']);
            if text.starts_with('{') {
                let (text, line) = (text.to_owned(), self.lines.number());
                return self.document(text, line).map(Some);
            }
        }
    }

    fn document(&mut self, mut piece: String, line: u64) -> Result<Document, ImportError> {
        let mut depth = Depth::default();
        let mut text = String::new();
        loop {
            if let Some(end) = depth.end(&piece) {
                text.push_str(&piece[..end]);
                self.rest = piece[end..].to_owned();
                return Ok(Document { text, line });
            }
            text.push_str(&piece);
            text.push('\n');
            if text.len() > LONGEST {
                let reason = format!("a JSON document has more than {} MiB", LONGEST >> 20);
                return Err(ImportError::at(line, reason));
            }
            let Some(next) = self.lines.next_line()? else {
                let reason = format!(
                    "the JSON that begins in line {line} is truncated here, within {} brackets",
                    depth.open
                );
                return Err(ImportError::at(self.lines.number(), reason));
            };
            piece = next;
        }
    }
}

/// The nesting depth of brackets.
#[derive(Default)]
struct Depth {
    open: u32,
    is_quoted: bool,
    is_escaped: bool,
}

impl Depth {
    /// Scans a piece of text; returns where the outermost bracket closes.
    fn end(&mut self, piece: &str) -> Option<usize> {
        for (at, byte) in piece.bytes().enumerate() {
            if self.is_quoted {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => self.is_quoted = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.is_quoted = true,
                b'{' | b'[' => self.open += 1,
                b'}' | b']' => self.open = self.open.saturating_sub(1),
                _ => continue,
            }
            if self.open == 0 {
                return Some(at + 1);
            }
        }
        None
    }
}
