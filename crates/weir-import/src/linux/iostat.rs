//! `iostat`, as text: old and new sysstat, with and without `-x`, `-t`, `-k`, `-m`, `-h`, `-c`.
//!
//! A run of `iostat -c` reports processors alone. In any other run, a report without disks was
//! cut.

use super::line::{banner, stamped};
use super::processors::Processors;
use super::quantity::quantity;
use super::report::{self, Beginning, PROCESSORS_ALONE};
use super::runs::{self, Runs};
use crate::error::ImportError;
use crate::in_turn::InTurn;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::number::Style;
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Reports, Sheet};
use crate::text::{Lines, words};
use std::collections::BTreeMap;
use std::rc::Rc;
use weir_observe::header::{EntityId, EntityKind, SeriesId};
use weir_observe::metric::{self as m, Metric};
use weir_observe::moment::{Clock, time_of};

pub(crate) const KIND: Kind = Kind {
    name: "iostat",
    about: "iostat of sysstat, as text",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Word(&["Device"]),
        Sign::Word(&["r/s", "tps", "rkB/s", "kB_read/s"]),
        Sign::Word(&["w/s", "tps", "wkB/s", "kB_wrtn/s"]),
        Sign::Word(&["avg-cpu", "%util"]),
    ]],
};

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * 1024.0;
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
const SECTOR: f64 = 512.0;
const MS: f64 = 1e6;

fn recognizes(text: &str) -> bool {
    text.lines().any(|line| {
        let words: Vec<_> = stamped(line, Clock::default()).1.split_whitespace().collect();
        device_column(&words).is_some_and(|_| words.iter().any(|word| column(word).is_some()))
            || processor_columns(&words).is_some_and(|own| own.iter().any(|w| Processors::has(w)))
    })
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(Box::new(Iostat {
        lines: Lines::new(input),
        options: options.clone(),
        style: None,
        host: None,
        date: None,
        runs: Runs::new(options.every),
        columns: Columns::default(),
        device_at: 0,
        cpu: None,
        devices: InTurn::default(),
        devices_columns: Columns::default(),
        reports: 0,
        has_disks: false,
        told_no_disks: false,
    }))
}

/// Returns the metric of a column, and the factor of its values.
pub(super) fn column(name: &str) -> Option<(&'static Metric, f64)> {
    Some(match name {
        "r/s" => (&m::READS_PER_S, 1.0),
        "w/s" => (&m::WRITES_PER_S, 1.0),
        "d/s" => (&m::DISCARDS_PER_S, 1.0),
        "f/s" => (&m::FLUSHES_PER_S, 1.0),
        "tps" => (&m::OPERATIONS_PER_S, 1.0),
        "rrqm/s" => (&m::READS_MERGED_PER_S, 1.0),
        "wrqm/s" => (&m::WRITES_MERGED_PER_S, 1.0),
        "await" => (&m::LATENCY_NS, MS),
        "r_await" => (&m::READ_LATENCY_NS, MS),
        "w_await" => (&m::WRITE_LATENCY_NS, MS),
        "d_await" => (&m::DISCARD_LATENCY_NS, MS),
        "f_await" => (&m::FLUSH_LATENCY_NS, MS),
        "aqu-sz" | "avgqu-sz" => (&m::QUEUE_DEPTH, 1.0),
        "areq-sz" => (&m::REQUEST_BYTES, KIB),
        "avgrq-sz" => (&m::REQUEST_BYTES, SECTOR),
        "%util" => (&m::BUSY, 0.01),
        _ => return bytes_column(name),
    })
}

/// Returns the meaning of `rkB/s`, `wMB/s`, `kB_read/s`, `Blk_wrtn/s`, `rsec/s`.
fn bytes_column(name: &str) -> Option<(&'static Metric, f64)> {
    let name = name.strip_suffix("/s")?;
    let unit = |unit: &str| {
        Some(match unit {
            "kB" | "KB" => KIB,
            "MB" => MIB,
            "GB" => GIB,
            "sec" | "Blk" => SECTOR,
            _ => return None,
        })
    };
    if let Some((of, what)) = name.split_once('_') {
        let measure = match what {
            "read" => &m::READ_BYTES_PER_S,
            "wrtn" => &m::WRITE_BYTES_PER_S,
            "dscd" => &m::DISCARD_BYTES_PER_S,
            _ => return None,
        };
        return Some((measure, unit(of)?));
    }
    let measure = match name.chars().next()? {
        'r' => &m::READ_BYTES_PER_S,
        'w' => &m::WRITE_BYTES_PER_S,
        'd' => &m::DISCARD_BYTES_PER_S,
        _ => return None,
    };
    Some((measure, unit(&name[1..])?))
}

/// Returns the column with names of devices, if a line is the head of their table.
fn device_column(words: &[&str]) -> Option<usize> {
    let last = words.len().checked_sub(1).filter(|last| *last > 1)?;
    let is_it = |at: &usize| words[*at].trim_end_matches(':') == "Device";
    [0, last].into_iter().find(is_it)
}

/// Returns the names of the columns in the head of a table of processors.
fn processor_columns<'a, 'b>(words: &'a [&'b str]) -> Option<&'a [&'b str]> {
    words.split_first().filter(|(first, _)| **first == "avg-cpu:").map(|(_, names)| names)
}

/// The metric of each column, and the factor of its values.
type Columns = Rc<[Option<(&'static Metric, f64)>]>;

struct Iostat {
    lines: Lines<Bytes>,
    runs: Runs<Report>,
    options: Options,
    style: Option<Style>,
    host: Option<EntityId>,
    /// Date in the first line, for times without one.
    date: Option<i64>,
    columns: Columns,
    device_at: usize,
    /// Columns of a line of processors that follows.
    cpu: Option<Vec<String>>,
    devices: InTurn<Vec<Option<SeriesId>>>,
    /// Columns of the series in `devices`.
    devices_columns: Columns,
    reports: u64,
    /// True if a report of this run had disks.
    has_disks: bool,
    /// True if the absence of disks was noted.
    told_no_disks: bool,
}

#[derive(Debug, Default)]
struct Report {
    beginning: Beginning,
    /// Tables found so far.
    has_processors: bool,
    has_devices: bool,
    /// Metrics of processors with their values.
    host: Vec<(&'static Metric, f64)>,
    columns: Columns,
    /// Devices with the values of their columns.
    devices: Vec<(String, Vec<Option<f64>>)>,
}

impl Report {
    /// Returns whether there is no table. With `-z`, a report of idle devices has a table without
    /// rows.
    const fn is_empty(&self) -> bool {
        !self.has_devices && !self.has_processors
    }
}

impl report::Report for Report {
    fn beginning(&self) -> Beginning {
        self.beginning
    }

    fn counts(&self) -> BTreeMap<(&str, &'static str), f64> {
        let rates = self.devices.iter().flat_map(|(name, values)| {
            let own = values.iter().zip(&*self.columns);
            own.filter_map(|(value, column)| {
                let (measure, _) = column.filter(|(measure, _)| runs::is_count(measure))?;
                Some(((name.as_str(), measure.name), (*value)?))
            })
        });
        rates.collect()
    }
}

impl ReadSamples for Iostat {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        sheet.reports = Reports::AllButIdle;
        let mut runs = std::mem::replace(&mut self.runs, Runs::new(None));
        let report = runs.next(sheet, |sheet| self.report(sheet));
        self.runs = runs;
        Ok(report?.map(|report| self.put(sheet, &report)))
    }
}

impl Iostat {
    /// Puts a report into the sheet.
    fn put(&mut self, sheet: &mut Sheet, report: &Report) -> At {
        if !report.has_devices && !std::mem::replace(&mut self.told_no_disks, true) {
            sheet.note(PROCESSORS_ALONE);
        }
        // Disk figures of another run do not extend to a run without disks.
        let is_silent = !report.has_devices && !self.devices_columns.is_empty();
        sheet.reports = if is_silent { Reports::Some } else { Reports::AllButIdle };
        let host = self.host(sheet);
        for (measure, value) in &report.host {
            sheet.set(host, measure, *value);
        }
        let columns = &report.columns;
        if *columns != self.devices_columns {
            self.devices.clear();
            self.devices_columns = Rc::clone(columns);
        }
        for (name, values) in &report.devices {
            let series = self.devices.get(name, || {
                let device = sheet.entity(EntityKind::Volume, name, Some(host));
                let of = |column: &Option<(&'static Metric, f64)>| {
                    column.map(|(measure, _)| sheet.series(device, measure))
                };
                columns.iter().map(of).collect()
            });
            for ((series, column), value) in series.iter().zip(&**columns).zip(values) {
                if let (Some(series), Some((measure, _)), Some(value)) = (series, column, value) {
                    sheet.put(*series, measure, *value);
                }
            }
        }
        self.reports += 1;
        match report.beginning.at {
            Some(at) => At::Wall(at),
            None => At::Since(self.options.step().nanos().saturating_mul(self.reports - 1)),
        }
    }

    fn host(&mut self, sheet: &mut Sheet) -> EntityId {
        *self.host.get_or_insert_with(|| sheet.entity(EntityKind::Host, "host", None))
    }

    /// Reads the next complete report.
    fn report(&mut self, sheet: &mut Sheet) -> Result<Option<Report>, ImportError> {
        loop {
            let mut report = self.any_report(sheet)?;
            if report.is_empty() {
                return Ok(None);
            }
            report.columns = Rc::clone(&self.columns);
            self.has_disks = report.has_devices || self.has_disks && !report.beginning.begins_a_run;
            let is_whole = report.has_devices || !self.has_disks && !report.host.is_empty();
            if is_whole {
                return Ok(Some(report));
            }
            sheet.note("a report was truncated before its values and is left out");
        }
    }

    fn any_report(&mut self, sheet: &mut Sheet) -> Result<Report, ImportError> {
        let mut report = Report::default();
        loop {
            let Some(line) = self.lines.next_line()? else {
                return Ok(report);
            };
            let (stamp, text) = stamped(&line, self.options.clock);
            let words = words(text);
            let cpu_line = processor_columns(&words);
            let time = self.time_of(text);
            let head = device_column(&words);
            let begins_a_run = banner(text, self.options.clock);
            let is_next = match report.has_devices {
                true => {
                    time.is_some() || cpu_line.is_some() || head.is_some() || begins_a_run.is_some()
                }
                false => {
                    let begins = time.is_some() || cpu_line.is_some() || begins_a_run.is_some();
                    report.has_processors && begins
                }
            };
            if is_next {
                self.lines.put_back(line);
                return Ok(report);
            }
            if words.is_empty() {
                continue;
            }
            if let Some((host, date)) = begins_a_run {
                self.date = date;
                self.host = Some(sheet.entity(EntityKind::Host, &host, None));
                report.beginning.begins_a_run = true;
            } else if let Some(at) = time {
                report.beginning.at = Some(at);
            } else if let Some(names) = cpu_line {
                report.has_processors = true;
                self.cpu = Some(names.iter().map(|word| (*word).to_owned()).collect());
            } else if let Some(names) = self.cpu.take() {
                // A cut line may have truncated numbers.
                if words.len() == names.len() || !self.lines.was_open() {
                    report.host = self.processors(&names, &words);
                }
            } else if let Some(at) = head {
                self.head(sheet, &words, at);
                report.has_devices = true;
                report.beginning.at = report.beginning.at.or(stamp);
            } else if !self.columns.is_empty() {
                self.device(sheet, &words, &mut report)?;
            } else {
                sheet.skipped("lines before the first report", self.lines.number(), &line);
            }
        }
    }

    /// Parses a line that has only a time.
    fn time_of(&mut self, text: &str) -> Option<i64> {
        let text = text.trim();
        if !text.starts_with(|c: char| c.is_ascii_digit()) && !text.starts_with("Time:") {
            return None;
        }
        if let Some(at) = self.options.clock.moment(text) {
            return Some(at);
        }
        let (time, offset) = time_of(text.strip_prefix("Time:").unwrap_or(text))?;
        let offset = offset.unwrap_or(self.options.clock.offset);
        Some(self.date? + time - offset * 1_000_000_000)
    }

    fn head(&mut self, sheet: &mut Sheet, words: &[&str], at: usize) {
        let names = || words.iter().enumerate().filter(|(place, _)| *place != at);
        let columns: Columns = names().map(|(_, word)| column(word)).collect();
        if columns != self.columns {
            for (_, word) in names().filter(|(_, word)| column(word).is_none()) {
                sheet.unused(word);
            }
            self.columns = columns;
        }
        self.device_at = at;
    }

    fn style(&mut self, words: &[&str]) -> Style {
        // All numbers have decimals, so even zeros show the style.
        *self.style.get_or_insert_with(|| Style::detect(words.iter().copied()))
    }

    fn processors(&mut self, names: &[String], words: &[&str]) -> Vec<(&'static Metric, f64)> {
        let style = self.style(words);
        let mut all = Processors::default();
        for (name, word) in names.iter().zip(words) {
            if let Some(percent) = style.parse(word) {
                all.add(name, percent);
            }
        }
        all.shares().collect()
    }

    fn device(
        &mut self,
        sheet: &mut Sheet,
        words: &[&str],
        report: &mut Report,
    ) -> Result<(), ImportError> {
        let expected = self.columns.len() + 1;
        if words.len() != expected {
            if self.lines.was_open() && words.len() < expected {
                sheet.note("its last line was truncated and is left out");
                return Ok(());
            }
            return Err(ImportError::at(
                self.lines.number(),
                format!("a device has {} columns, but its header has {expected}", words.len()),
            ));
        }
        let last = words.len() - 1;
        let (name, numbers) = if self.device_at == 0 {
            (words[0], &words[1..])
        } else {
            (words[last], &words[..last])
        };
        let style = self.style(numbers);
        let mut values = Vec::with_capacity(numbers.len());
        for (text, column) in numbers.iter().zip(&*self.columns) {
            let Some((_, by)) = column else {
                values.push(None);
                continue;
            };
            let Some(number) = quantity(style, text, *by) else {
                if self.lines.was_open() {
                    sheet.note("its last line was truncated and is left out");
                    return Ok(());
                }
                let reason = format!("{text:?} is not a number");
                return Err(ImportError::at(self.lines.number(), reason));
            };
            values.push(Some(number));
        }
        report.devices.push((name.to_owned(), values));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_by_their_units() {
        let check = |name: &str, expect: Option<(&'static Metric, f64)>| {
            assert_eq!(column(name), expect, "{name}");
        };
        check("rkB/s", Some((&m::READ_BYTES_PER_S, 1024.0)));
        check("wMB/s", Some((&m::WRITE_BYTES_PER_S, 1048576.0)));
        check("Blk_wrtn/s", Some((&m::WRITE_BYTES_PER_S, 512.0)));
        check("kB_dscd/s", Some((&m::DISCARD_BYTES_PER_S, 1024.0)));
        check("kB_read", None);
        check("svctm", None);
        check("%util", Some((&m::BUSY, 0.01)));
    }
}
