//! Results of diskspd, as text: versions 2.0.15 to 2.2, one run or many in a file, with any text
//! around them.
//!
//! ```text
//!  Input parameters:       timespan, path, block size, ..      facts about jobs
//!  System information:     computer name, start time           since 2.0.21
//!  Results for timespan 1:
//!    CPU |  Usage | ..     avg.
//!    Total IO, Read IO, Write IO      a row per thread and target, and a total
//!    %-ile | Read (ms) | ..           of all targets together
//! ```

use super::job::{self, BOTH, Facts, MS, READ, US, WRITE};
use super::run::{Io, Run, Runs};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::number::Style;
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Sheet};
use crate::text::Lines;
use std::collections::BTreeMap;
use weir_observe::metric::{self as m, Metric};

pub(crate) const KIND: Kind = Kind {
    name: "diskspd",
    about: "results of diskspd, as text",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Text(&["Command Line:"]),
        Sign::Text(&["Results for timespan", "timespan:"]),
        Sign::Text(&["thread |"]),
        Sign::Text(&["I/Os"]),
    ]],
};

fn recognizes(text: &str) -> bool {
    text.lines().any(|line| {
        let is_table = line.contains("thread |") && line.contains("I/Os");
        let is_command = line.starts_with("Command Line:") && line.contains("diskspd");
        is_table || is_command || is_timespan(line.trim())
    })
}

fn is_timespan(line: &str) -> bool {
    line.starts_with("Results for timespan ") || line.starts_with("timespan:")
}

fn owned(fields: &[&str]) -> Vec<String> {
    fields.iter().map(|field| (*field).to_owned()).collect()
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(Box::new(Diskspd {
        lines: Lines::new(input),
        options: options.clone(),
        plans: BTreeMap::new(),
        timespan: 1,
        host: None,
        began: None,
        runs: Runs::default(),
        results: None,
    }))
}

/// The parameters of a timespan.
#[derive(Debug, Default)]
struct Plan {
    warmup: f64,
    targets: Vec<(String, Facts)>,
}

/// The current table of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Both,
    Reads,
    Writes,
}

/// The results of a timespan, as far as they are read.
#[derive(Debug)]
struct Results {
    timespan: u32,
    run: Run,
    section: Option<Section>,
    columns: Vec<String>,
    cpu_columns: Vec<String>,
    tail_columns: Vec<(String, f64)>,
    totals: Vec<(Section, Io)>,
}

struct Diskspd {
    lines: Lines<Bytes>,
    options: Options,
    plans: BTreeMap<u32, Plan>,
    /// Timespan of the current parameters.
    timespan: u32,
    host: Option<String>,
    began: Option<i64>,
    runs: Runs,
    results: Option<Results>,
}

impl ReadSamples for Diskspd {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        loop {
            let Some(line) = self.lines.next_line()? else {
                let Some(results) = self.results.take() else { return Ok(None) };
                return Ok(self.put(sheet, results));
            };
            let text = line.trim();
            if let Some(number) = text.strip_prefix("Results for timespan ") {
                let timespan = number.trim_end_matches(':').trim().parse().unwrap_or(1);
                let done = self.results.replace(Results::new(timespan));
                if let Some(at) = done.and_then(|results| self.put(sheet, results)) {
                    return Ok(Some(at));
                }
                continue;
            }
            if text.starts_with("Command Line:") || text.starts_with("Input parameters:") {
                let done = self.results.take();
                let at = done.and_then(|results| self.put(sheet, results));
                if text.starts_with("Input parameters:") {
                    (self.host, self.began, self.timespan) = (None, None, 1);
                    self.plans.clear();
                }
                if at.is_some() {
                    return Ok(at);
                }
                continue;
            }
            match &mut self.results {
                None => self.parameter(text),
                Some(results) => {
                    let (number, is_open) = (self.lines.number(), self.lines.was_open());
                    // A row whose file name was cut cannot be assigned.
                    let is_row = is_open && results.is_row(text);
                    match results.line(if is_row { "" } else { text }) {
                        Ok(()) if is_row => sheet.note(
                            "its last line was truncated and is left \
                                                        out",
                        ),
                        Ok(()) => {}
                        Err(_) if is_open => sheet.note(
                            "its last line was truncated and is left \
                                                         out",
                        ),
                        Err(reason) => return Err(ImportError::at(number, reason)),
                    }
                }
            }
        }
    }
}

impl Diskspd {
    /// Takes a line of the parameters or of the system information.
    fn parameter(&mut self, text: &str) {
        let Some((name, value)) = text.split_once(':') else {
            return self.target_fact(text, "");
        };
        let (name, value) = (name.trim(), value.trim());
        let seconds = || value.trim_end_matches('s').trim().parse::<f64>().ok();
        match name {
            "timespan" => self.timespan = value.parse().unwrap_or(1),
            "warm up time" => self.plan().warmup = seconds().unwrap_or(0.0),
            "path" => {
                let path = value.trim_matches('\'').to_owned();
                self.plan().targets.push((path, Facts::new()));
            }
            "computer name" => self.host = Some(value.to_owned()),
            "start time" => self.began = self.options.clock.moment(value),
            _ => self.target_fact(name, value),
        }
    }

    fn plan(&mut self) -> &mut Plan {
        self.plans.entry(self.timespan).or_default()
    }

    /// Takes a fact about the current target: `block size: 4KiB`, `performing write test`.
    fn target_fact(&mut self, name: &str, value: &str) {
        let Some((_, facts)) = self.plan().targets.last_mut() else { return };
        let mut add = |what: &'static str, value: Option<u64>| {
            facts.extend(value.map(|value| (what, value.into())));
        };
        let number = || value.trim_end_matches(')').parse().ok();
        match name {
            "block size" => add("block_bytes", job::size(value)),
            "threads per file" => add("threads", number()),
            "performing read test" => add("read_percent", Some(100)),
            "performing write test" => add("read_percent", Some(0)),
            _ if name.starts_with("performing mix test") => {
                add("read_percent", value.split('/').next().and_then(|part| part.parse().ok()));
            }
            _ if name.starts_with("number of outstanding I/O operations") => {
                add("outstanding_per_thread", number());
            }
            _ if name.starts_with("using random I/O") => add("random_percent", Some(100)),
            _ if name.starts_with("using mixed random/sequential I/O") => {
                let percent = name.split_once('(').and_then(|(_, rest)| rest.split_once('%'));
                add("random_percent", percent.and_then(|(number, _)| number.trim().parse().ok()));
            }
            _ if name.contains("sequential I/O") => add("random_percent", Some(0)),
            _ => {}
        }
    }

    /// Writes results into the sheet, if there are any.
    fn put(&mut self, sheet: &mut Sheet, mut results: Results) -> Option<At> {
        if results.totals.is_empty() && results.run.targets.is_empty() {
            sheet.note(format!("timespan {} has no results: left out", results.timespan));
            return None;
        }
        results.use_totals();
        let mut run = results.run;
        (run.host, run.began) = (self.host.clone(), self.began);
        let plan = self.plans.get(&results.timespan).or_else(|| self.plans.values().next());
        run.warmup = plan.map_or(0.0, |plan| plan.warmup);
        let facts = |path: &str| {
            let targets = plan.map(|plan| &plan.targets[..]).unwrap_or_default();
            let own = targets.iter().find(|(own, _)| own == path);
            own.map(|(_, facts)| facts.clone()).unwrap_or_default()
        };
        Some(self.runs.put(sheet, &run, facts))
    }
}

impl Results {
    fn new(timespan: u32) -> Self {
        Self {
            timespan,
            run: Run::default(),
            section: None,
            columns: Vec::new(),
            cpu_columns: Vec::new(),
            tail_columns: Vec::new(),
            totals: Vec::new(),
        }
    }

    /// Takes a line; the error describes the malformed part.
    fn line(&mut self, text: &str) -> Result<(), String> {
        if let Some(rest) = text.strip_prefix("actual test time:") {
            let seconds = rest.trim().trim_end_matches('s').trim_end();
            self.run.seconds = number(seconds)?;
            return Ok(());
        }
        self.section = match text {
            "Total IO" => Some(Section::Both),
            "Read IO" => Some(Section::Reads),
            "Write IO" => Some(Section::Writes),
            _ if !text.contains('|') => return Ok(()),
            _ => self.section,
        };
        let row = text.replacen("total:", "total|", 1);
        let fields: Vec<&str> = row.split('|').map(str::trim).collect();
        let cpu = fields.iter().position(|field| *field == "CPU");
        match (fields[0], cpu) {
            (_, Some(at)) if fields.contains(&"Usage") => {
                self.cpu_columns = owned(&fields[at + 1..])
            }
            ("avg.", _) => self.cpu(&fields[1..])?,
            ("thread", _) => self.columns = owned(&fields),
            ("%-ile", _) => {
                self.tail_columns = fields[1..].iter().map(|f| tail_column(f)).collect()
            }
            (label, _) if !self.tail_columns.is_empty() => self.tail(label, &fields[1..])?,
            ("total", _) => self.row(&fields, true)?,
            (label, _) if label.parse::<u64>().is_ok() && self.section.is_some() => {
                self.row(&fields, false)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns whether a line is a row of a thread and a target.
    fn is_row(&self, text: &str) -> bool {
        self.tail_columns.is_empty() && text.starts_with(|c: char| c.is_ascii_digit())
    }

    /// Takes the mean of all processors.
    fn cpu(&mut self, fields: &[&str]) -> Result<(), String> {
        for (name, text) in self.cpu_columns.iter().zip(fields) {
            let measure = match name.as_str() {
                "Usage" => &m::CPU,
                "User" => &m::CPU_USER,
                "Kernel" => &m::CPU_SYSTEM,
                "Idle" => &m::CPU_IDLE,
                _ => continue,
            };
            self.run.cpu.push((measure, number(text)? / 100.0));
        }
        Ok(())
    }

    /// Takes a row of a thread and a target, or of the total.
    fn row(&mut self, fields: &[&str], is_total: bool) -> Result<(), String> {
        let (Some(section), false) = (self.section, self.columns.is_empty()) else { return Ok(()) };
        let expected = self.columns.len() - usize::from(is_total);
        if fields.len() < expected {
            return Err(format!(
                "a row has {} columns, but its header has {expected}",
                fields.len()
            ));
        }
        let text = |name: &str| {
            let at = self.columns.iter().position(|column| column == name)?;
            fields.get(at).copied()
        };
        let needed = |name: &str| number(text(name).ok_or(format!("there is no column {name}"))?);
        let latency = |name: &str| text(name).and_then(|text| Style::Point.parse(text));
        let count = needed("I/Os")?;
        let io = Io {
            count,
            bytes: needed("bytes")?,
            per_s: needed("I/O per s")?,
            latency_sum: latency("AvgLat").map(|ms| ms * MS * count),
            stddev: latency("LatStdDev").map(|ms| ms * MS),
        };
        if is_total {
            self.totals.push((section, io));
            return Ok(());
        }
        let file = text("file").ok_or("there is no column file")?.to_owned();
        let (path, size) = target(&file);
        let target = self.run.target(path);
        target.size = target.size.or(size);
        target.threads += u64::from(section == Section::Both);
        let slot = match section {
            Section::Both => &mut target.both,
            Section::Reads => &mut target.reads,
            Section::Writes => &mut target.writes,
        };
        slot.get_or_insert_default().add(&io);
        Ok(())
    }

    /// Takes a row of the latency distribution.
    fn tail(&mut self, label: &str, fields: &[&str]) -> Result<(), String> {
        let Some(what) = tail(label) else { return Ok(()) };
        for ((column, by), text) in self.tail_columns.iter().zip(fields) {
            let of = match column.as_str() {
                "Read" => &READ,
                "Write" => &WRITE,
                "Total" => &BOTH,
                _ => continue,
            };
            if matches!(*text, "N/A" | "") {
                continue;
            }
            let nanos = number(text)? * by;
            let measure: Option<&'static Metric> = match what {
                Tail::Named(name) => of.tail(name),
                Tail::Percent(percent) => of.percentile(percent),
            };
            self.run.tails.extend(measure.map(|measure| (measure, nanos)));
        }
        Ok(())
    }

    /// Uses the printed totals of a single target, which are less rounded than a sum over its
    /// threads.
    fn use_totals(&mut self) {
        let [target] = &mut self.run.targets[..] else { return };
        for (section, io) in &self.totals {
            match section {
                Section::Both => target.both = Some(*io),
                Section::Reads => target.reads = Some(*io),
                Section::Writes => target.writes = Some(*io),
            }
        }
    }
}

fn number(text: &str) -> Result<f64, String> {
    Style::Point.parse(text).ok_or_else(|| format!("{text:?} is not a number"))
}

/// Parses `Read (ms)`: the direction, and the nanoseconds of the unit.
fn tail_column(field: &str) -> (String, f64) {
    let (name, unit) = field.split_once('(').unwrap_or((field, "ms"));
    let by = if unit.trim_end_matches(')') == "us" { US } else { MS };
    (name.trim().to_owned(), by)
}

enum Tail {
    Named(&'static str),
    Percent(f64),
}

/// Parses `min`, `25th`, `3-nines`, `max`.
fn tail(label: &str) -> Option<Tail> {
    if let Some(nines) = label.strip_suffix("-nines") {
        return Some(Tail::Percent(match nines {
            "3" => 99.9,
            "4" => 99.99,
            "5" => 99.999,
            _ => return None,
        }));
    }
    match label {
        "min" => Some(Tail::Named("min")),
        "max" => Some(Tail::Named("max")),
        _ => Some(Tail::Percent(label.strip_suffix("th")?.parse().ok()?)),
    }
}

/// Parses `C:\testfile.foo (8192MB)`: a target's path and size.
fn target(file: &str) -> (&str, Option<u64>) {
    let Some((path, size)) = file.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) else {
        return (file, None);
    };
    match job::size(size) {
        Some(size) => (path, Some(size)),
        None => (file, None),
    }
}
