//! Counters of `/proc/diskstats` as JSON, as other programs write them:
//!
//! ```text
//!  [ { "device": "sda", "reads_completed": 1, "sectors_read": 8, .. } ]        jc --proc-diskstats
//!  { "name": "diskio", "tags": { "name": "sda" }, "fields": { "reads": 1, "read_bytes": 4096, .. },
//!    "timestamp": 1700000000 }                                                Telegraf, a line each
//! ```
//!
//! Documents are consecutive. A snapshot ends at a repeated device or another time. A list of jc
//! may be inside an object with the time.

use super::disks::{Column, Disks};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Sheet};
use crate::values::Values;
use serde_json::Value;
use std::collections::VecDeque;
use weir_observe::metric as m;
use weir_observe::moment::Clock;

pub(crate) const KIND: Kind = Kind {
    name: "diskstats-json",
    about: "counters of /proc/diskstats as JSON (jc, Telegraf)",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Json,
        Sign::Word(&["device", "diskio"]),
        Sign::Word(&["reads_completed", "tags"]),
        Sign::Word(&["sectors_read", "fields"]),
    ]],
};

const SECTOR: f64 = 512.0;

/// The most device records kept, about 400 bytes each.
const MOST_DEVICES: usize = 4 << 20;

/// Counters by their names in different programs.
const COUNTERS: [(&[&str], Column); 19] = [
    (&["reads_completed", "reads"], (&m::READS, 1.0)),
    (&["reads_merged", "merged_reads"], (&m::READS_MERGED, 1.0)),
    (&["sectors_read"], (&m::READ_BYTES, SECTOR)),
    (&["read_bytes"], (&m::READ_BYTES, 1.0)),
    (&["read_time_ms", "read_time"], (&m::IO_STALL_READ_MS, 1.0)),
    (&["writes_completed", "writes"], (&m::WRITES, 1.0)),
    (&["writes_merged", "merged_writes"], (&m::WRITES_MERGED, 1.0)),
    (&["sectors_written"], (&m::WRITE_BYTES, SECTOR)),
    (&["write_bytes"], (&m::WRITE_BYTES, 1.0)),
    (&["write_time_ms", "write_time"], (&m::IO_STALL_WRITE_MS, 1.0)),
    (&["io_in_progress", "iops_in_progress"], (&m::QUEUE_LENGTH, 1.0)),
    (&["io_time_ms", "io_time"], (&m::BUSY_MS, 1.0)),
    (&["weighted_io_time_ms", "weighted_io_time"], (&m::QUEUED_MS, 1.0)),
    (&["discards_completed_successfully", "discards_completed"], (&m::DISCARDS, 1.0)),
    (&["discards_merged"], (&m::DISCARDS_MERGED, 1.0)),
    (&["sectors_discarded"], (&m::DISCARD_BYTES, SECTOR)),
    (&["discarding_time_ms", "discard_time_ms"], (&m::IO_STALL_DISCARD_MS, 1.0)),
    (&["flush_requests_completed_successfully", "flushes_completed"], (&m::FLUSHES, 1.0)),
    (&["flushing_time_ms", "flush_time_ms"], (&m::IO_STALL_FLUSH_MS, 1.0)),
];

fn recognizes(text: &str) -> bool {
    let has = |name: &str| text.contains(name);
    let is_of_jc = has("\"device\"") && has("\"reads_completed\"") && has("\"sectors_read\"");
    let is_of_telegraf = has("\"diskio\"") && has("\"tags\"") && has("\"fields\"");
    text.trim_start().starts_with(['{', '[']) && (is_of_jc || is_of_telegraf)
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    let (devices, is_cut) = devices(input, options.clock)?;
    let (step, disks) = (options.step().nanos(), Disks::default());
    Ok(Box::new(Json { devices, is_cut, disks, step, last: None }))
}

/// The counters of a device in a snapshot.
#[derive(Debug)]
struct Device {
    name: String,
    /// Time, if it is stated.
    at: Option<i64>,
    values: [Option<f64>; COUNTERS.len()],
}

struct Json {
    devices: VecDeque<Device>,
    is_cut: bool,
    disks: Disks,
    /// Interval of snapshots without times, in nanoseconds.
    step: u64,
    last: Option<At>,
}

impl ReadSamples for Json {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        if std::mem::take(&mut self.is_cut) {
            sheet.note("its last document was truncated and is left out");
        }
        self.disks.begin();
        let columns = COUNTERS.map(|(_, column)| Some(column));
        let Some(first) = self.devices.front().map(|device| device.at) else {
            if self.disks.snapshot() == 2 {
                sheet.note("it is one snapshot of counters: rates need two");
            }
            return Ok(None);
        };
        while let Some(device) = self.devices.pop_front() {
            if self.disks.has(&device.name) || device.at != first {
                self.devices.push_front(device);
                break;
            }
            self.disks.put(sheet, &device.name, &columns, &device.values);
        }
        let at = match (first, self.last) {
            (Some(at), None | Some(At::Wall(_))) => At::Wall(at),
            (_, Some(At::Wall(last))) => At::Wall(last.saturating_add_unsigned(self.step)),
            (_, Some(At::Since(last))) => At::Since(last.saturating_add(self.step)),
            (None, None) => {
                sheet.note("it has no times: snapshots are assumed to be evenly spaced");
                At::Since(0)
            }
        };
        self.last = Some(at);
        Ok(Some(at))
    }
}

/// Returns the devices of all documents in order, and whether the last document was cut.
fn devices(input: Bytes, clock: Clock) -> Result<(VecDeque<Device>, bool), ImportError> {
    let mut found = Found { clock, devices: VecDeque::new(), host: None };
    let mut values = Values::new(input);
    while let Some((value, line)) = values.next()? {
        found.walk(&value, None)?;
        if found.devices.len() > MOST_DEVICES {
            let reason = format!("it has more than {MOST_DEVICES} counters of disks: split it");
            return Err(ImportError::at(line, reason));
        }
    }
    if values.was_cut() && found.devices.is_empty() {
        return Err(ImportError::whole("the JSON is truncated within its first value"));
    }
    Ok((found.devices, values.was_cut()))
}

struct Found {
    clock: Clock,
    devices: VecDeque<Device>,
    host: Option<String>,
}

impl Found {
    /// Finds the devices in a value; their time is that of the enclosing object unless they have
    /// their own.
    fn walk(&mut self, value: &Value, at: Option<i64>) -> Result<(), ImportError> {
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.walk(item, at)),
            Value::Object(fields) => {
                let at = self.moment(value).or(at);
                let is_diskio = value["name"].as_str().is_some_and(|name| name == "diskio");
                if let (true, Some(name)) = (is_diskio, value["tags"]["name"].as_str()) {
                    self.check_host(value["tags"]["host"].as_str())?;
                    self.take(name, &value["fields"], at)
                } else if let Some(name) = value["device"].as_str() {
                    self.take(name, value, at)
                } else {
                    fields.values().try_for_each(|field| self.walk(field, at))
                }
            }
            _ => Ok(()),
        }
    }

    fn take(&mut self, name: &str, own: &Value, at: Option<i64>) -> Result<(), ImportError> {
        let mut values = [None; COUNTERS.len()];
        for (value, (names, (measure, _))) in values.iter_mut().zip(COUNTERS) {
            let Some(found) = names.iter().find_map(|name| own.get(*name)) else { continue };
            let number = found.as_f64().or_else(|| found.as_str()?.parse().ok());
            let Some(number) = number.filter(|number| number.is_finite()) else {
                let reason =
                    format!("{} of {name} is {found}, which is not a number", measure.name);
                return Err(ImportError::whole(reason));
            };
            *value = Some(number);
        }
        if values.iter().any(Option::is_some) {
            self.devices.push_back(Device { name: name.to_owned(), at, values });
        }
        Ok(())
    }

    /// Returns the time of an object, given in seconds (or milliseconds and so on) since 1970 or
    /// as text.
    fn moment(&self, value: &Value) -> Option<i64> {
        let names = ["timestamp", "time", "date"];
        let found = names.iter().find_map(|name| value.get(*name))?;
        match found {
            Value::Number(number) => self.clock.moment(&number.to_string()),
            Value::String(text) => self.clock.moment(text),
            _ => None,
        }
    }

    /// Rejects devices of a second host, which would be taken for those of the first.
    fn check_host(&mut self, host: Option<&str>) -> Result<(), ImportError> {
        let Some(host) = host else { return Ok(()) };
        let known = self.host.get_or_insert_with(|| host.to_owned());
        if known == host {
            return Ok(());
        }
        let reason = format!("it contains disks of {known} and of {host}: split it by host");
        Err(ImportError::whole(reason))
    }
}
