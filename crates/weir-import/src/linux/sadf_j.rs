//! `sadf -j`: sar as JSON.
//!
//! Names are those of the text output without their units: `rkB` is `rkB/s`, `util-percent` is
//! `%util`, `memfree` is `kbmemfree`.

use super::activity::{self, Column};
use super::processors::Processors;
use super::statistics::Statistics;
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Reports, Sheet};
use serde_json::{Map, Value};
use weir_observe::header::{EntityId, EntityKind};
use weir_observe::moment::Clock;

pub(crate) const KIND: Kind = Kind {
    name: "sadf-j",
    about: "recordings of sar, as JSON from sadf -j",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Json,
        Sign::Word(&["sysstat"]),
        Sign::Word(&["file-date"]),
        Sign::Word(&["statistics"]),
    ]],
};

/// The groups of a sample that are used.
pub(super) const HOST: [&str; 4] = ["io", "memory", "swap-pages", "queue"];
pub(super) const PROCESSORS: [&str; 3] = ["cpu-load", "cpu-load-all", "cpu"];
pub(super) const DEVICES: &str = "disk";
const TIME: &str = "timestamp";

fn recognizes(text: &str) -> bool {
    text.trim_start_matches(['\u{feff}', ' ', '\n', '\r', '\t']).starts_with('{')
        && text.contains("\"sysstat\"")
        && text.contains("\"file-date\"")
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    let clock = options.clock;
    Ok(Box::new(Sadf { statistics: Statistics::new(input), clock, told: Vec::new() }))
}

struct Sadf {
    statistics: Statistics,
    clock: Clock,
    /// Notes given already: unused names, and zones of times.
    told: Vec<String>,
}

impl ReadSamples for Sadf {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        sheet.reports = Reports::AllButIdle;
        while self.statistics.advance()? {
            let (sample, line) = (self.statistics.sample::<Value>()?, self.statistics.begins());
            let Some(sample) = sample.as_object() else { continue };
            if self.put(sheet, sample) {
                sheet.interval_ns = interval_ns(sample);
                return Ok(Some(At::Wall(self.time(sheet, sample, line)?)));
            }
        }
        if self.statistics.was_cut() {
            sheet.note("it was truncated: the incomplete end is left out");
        }
        Ok(None)
    }
}

impl Sadf {
    /// Returns the time of a sample.
    fn time(
        &mut self,
        sheet: &mut Sheet,
        sample: &Map<String, Value>,
        line: u64,
    ) -> Result<i64, ImportError> {
        let time = sample.get(TIME).unwrap_or(&Value::Null);
        let text = |name: &str| time.get(name).and_then(Value::as_str).unwrap_or_default();
        let zone = text("tz");
        let is_utc = zone == "UTC" || time.get("utc").and_then(Value::as_i64) == Some(1);
        let clock = zoned(&mut self.told, sheet, self.clock, zone, is_utc);
        let moment = match time.as_str() {
            Some(text) => clock.moment(text),
            None => clock.moment(&format!("{} {}", text("date"), text("time"))),
        };
        moment.ok_or_else(|| ImportError::at(line, format!("the time of a sample is {time}")))
    }

    /// Writes the used values of a sample; returns whether there are any.
    fn put(&mut self, sheet: &mut Sheet, sample: &Map<String, Value>) -> bool {
        let name = self.statistics.host("nodename");
        let host = sheet.entity(EntityKind::Host, name.as_deref().unwrap_or("host"), None);
        let mut count = 0;
        for (name, value) in sample {
            let name = name.as_str();
            count += if name == TIME {
                0
            } else if name == DEVICES {
                self.devices(sheet, host, value)
            } else if PROCESSORS.contains(&name) {
                processors(sheet, host, value)
            } else if let (true, Some(values)) = (HOST.contains(&name), value.as_object()) {
                self.values(sheet, host, values, host_column)
            } else {
                self.unused(sheet, name);
                0
            };
        }
        count > 0
    }

    fn devices(&mut self, sheet: &mut Sheet, host: EntityId, devices: &Value) -> usize {
        let devices = devices.as_array().into_iter().flatten().filter_map(Value::as_object);
        let mut count = 0;
        for device in devices {
            // The name is the only text.
            let Some(name) = device.values().find_map(Value::as_str) else { continue };
            let volume = sheet.entity(EntityKind::Volume, name, Some(host));
            count += self.values(sheet, volume, device, device_column);
        }
        count
    }

    /// Writes values and those of nested objects; returns their number.
    fn values(
        &mut self,
        sheet: &mut Sheet,
        entity: EntityId,
        values: &Map<String, Value>,
        column: fn(&str) -> Named,
    ) -> usize {
        let mut count = 0;
        for (name, value) in values {
            match (value.as_object(), value.as_f64(), column(name)) {
                (Some(own), _, _) => count += self.values(sheet, entity, own, column),
                (_, Some(number), Some(((measure, by), text))) => {
                    if !self.told.contains(&text) {
                        activity::assume(sheet, &text);
                        self.told.push(text);
                    }
                    sheet.set(entity, measure, number * by);
                    count += 1;
                }
                (_, Some(_), None) => self.unused(sheet, name),
                _ => {}
            }
        }
        count
    }

    fn unused(&mut self, sheet: &mut Sheet, name: &str) {
        if !self.told.iter().any(|told| told == name) {
            self.told.push(name.to_owned());
            sheet.unused(name);
        }
    }
}

/// Returns the sampling interval that a sample states, in nanoseconds.
fn interval_ns(sample: &Map<String, Value>) -> Option<i64> {
    let seconds = sample.get(TIME)?.get("interval")?.as_i64()?;
    seconds.checked_mul(1_000_000_000).filter(|ns| *ns > 0)
}

/// Writes the shares of all processors; returns their number.
fn processors(sheet: &mut Sheet, host: EntityId, all: &Value) -> usize {
    let rows = all.as_array().into_iter().flatten().filter_map(Value::as_object);
    let is_all = |row: &&Map<String, Value>| {
        row.get("cpu").and_then(Value::as_str).is_some_and(activity::is_all_processors)
    };
    let mut sum = Processors::default();
    for (name, value) in rows.filter(is_all).take(1).flatten() {
        if let Some(percent) = value.as_f64() {
            sum.add(name, percent);
        }
    }
    let mut count = 0;
    for (measure, share) in sum.shares() {
        sheet.set(host, measure, share);
        count += 1;
    }
    count
}

/// Returns the clock of times in a zone; a zone other than UTC is noted once.
pub(super) fn zoned(
    told: &mut Vec<String>,
    sheet: &mut Sheet,
    clock: Clock,
    zone: &str,
    is_utc: bool,
) -> Clock {
    if is_utc {
        return Clock { offset: 0, ..clock };
    }
    if !told.iter().any(|told| told == zone) {
        told.push(zone.to_owned());
        let zone = if zone.is_empty() { "not said" } else { zone };
        sheet.note(format!(
            "the zone of its times is {zone}: assumed to be {} s ahead of UTC",
            clock.offset
        ));
    }
    clock
}

/// A column and its name in the text of sar.
pub(super) type Named = Option<(Column, String)>;

pub(super) fn device_column(name: &str) -> Named {
    named_so(name, activity::device)
}

pub(super) fn host_column(name: &str) -> Named {
    named_so(name, activity::host)
}

/// Returns the column for a name in JSON, with its name in the text output.
fn named_so(name: &str, column: fn(&str) -> Option<Column>) -> Named {
    let percent = name.strip_suffix("-percent").unwrap_or(name);
    let names = [name.to_owned(), format!("{name}/s"), format!("kb{name}"), format!("%{percent}")];
    names.into_iter().find_map(|name| Some((column(&name)?, name)))
}
