//! `iostat -o JSON`. A document is a run of iostat.

use super::iostat::column;
use super::processors::Processors;
use super::record::{Field, Record};
use super::report::{self, Beginning, PROCESSORS_ALONE};
use super::runs::{self, Runs};
use super::statistics::Statistics;
use crate::error::ImportError;
use crate::in_turn::InTurn;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Reports, Sheet};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use weir_observe::header::EntityKind;
use weir_observe::metric::Metric;

pub(crate) const KIND: Kind = Kind {
    name: "iostat-json",
    about: "iostat of sysstat, as JSON",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Json,
        Sign::Word(&["sysstat"]),
        Sign::Word(&["statistics"]),
        Sign::Word(&["avg-cpu", "disk_device"]),
    ]],
};

fn recognizes(text: &str) -> bool {
    let has = |what: &str| text.contains(what);
    text.trim_start_matches(['\u{feff}', ' ', '\n', '\r', '\t']).starts_with('{')
        && has("\"statistics\"")
        && (has("\"avg-cpu\"") || has("\"disk_device\""))
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(Box::new(Iostat {
        statistics: Statistics::new(input),
        options: options.clone(),
        runs: Runs::new(options.every),
        documents: 0,
        samples: 0,
        columns: Columns::default(),
        told: false,
        told_no_disks: false,
    }))
}

/// The meanings of names.
type Columns = InTurn<Option<(&'static Metric, f64)>>;

/// A sample of a document.
#[derive(Deserialize)]
struct Sample<'a> {
    timestamp: Option<Value>,
    #[serde(borrow, default, rename = "avg-cpu")]
    processors: Record<'a>,
    /// `None` in reports of processors alone.
    #[serde(borrow)]
    disk: Option<Vec<Record<'a>>>,
}

struct Iostat {
    statistics: Statistics,
    options: Options,
    runs: Runs<Report>,
    /// Number of documents begun.
    documents: u64,
    samples: u64,
    columns: Columns,
    /// True if unused parts were noted.
    told: bool,
    /// True if the absence of disks was noted.
    told_no_disks: bool,
}

/// The values of a report.
#[derive(Debug, Default)]
struct Report {
    beginning: Beginning,
    host: Option<String>,
    processors: Processors,
    devices: Vec<(String, Vec<(&'static Metric, f64)>)>,
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
    fn report(&mut self, sheet: &mut Sheet) -> Result<Option<Report>, ImportError> {
        if !self.statistics.advance()? {
            if self.statistics.was_cut() {
                sheet.note("it was truncated: the incomplete end is left out");
            }
            return Ok(None);
        }
        let sample: Sample<'_> = self.statistics.sample()?;
        let line = self.statistics.begins();
        let mut report = Report { host: self.statistics.host("nodename"), ..Report::default() };
        let documents = self.statistics.documents();
        report.beginning.begins_a_run =
            std::mem::replace(&mut self.documents, documents) < documents;
        if let Some(text) = &sample.timestamp {
            let at = text.as_str().and_then(|text| self.options.clock.moment(text));
            let reason = || ImportError::at(line, format!("{text} is not a time"));
            report.beginning.at = Some(at.ok_or_else(reason)?);
        }
        for (name, value) in &sample.processors.0 {
            let is_used = matches!(value, Field::Number(n) if report.processors.add(name, *n));
            if !is_used {
                sheet.unused(name);
            }
        }
        if sample.disk.is_none() && !std::mem::replace(&mut self.told_no_disks, true) {
            sheet.note(PROCESSORS_ALONE);
        }
        for device in sample.disk.iter().flatten() {
            let told = (!self.told).then_some(&mut *sheet);
            let device = device_of(device, &mut self.columns, told);
            let missing = || ImportError::at(line, "a device in this sample has no name");
            report.devices.push(device.ok_or_else(missing)?);
            self.told = true;
        }
        Ok(Some(report))
    }

    fn put(&mut self, sheet: &mut Sheet, report: &Report) -> At {
        let host = sheet.entity(EntityKind::Host, report.host.as_deref().unwrap_or("host"), None);
        for (measure, share) in report.processors.shares() {
            sheet.set(host, measure, share);
        }
        for (name, values) in &report.devices {
            let device = sheet.entity(EntityKind::Volume, name, Some(host));
            for (measure, value) in values {
                sheet.set(device, measure, *value);
            }
        }
        self.samples += 1;
        let step = self.options.step().nanos();
        report
            .beginning
            .at
            .map_or_else(|| At::Since(step.saturating_mul(self.samples - 1)), At::Wall)
    }
}

impl report::Report for Report {
    fn beginning(&self) -> Beginning {
        self.beginning
    }

    fn counts(&self) -> BTreeMap<(&str, &'static str), f64> {
        let values = self.devices.iter().flat_map(|(name, values)| {
            let counts = values.iter().filter(|(measure, _)| runs::is_count(measure));
            counts.map(|(measure, rate)| ((name.as_str(), measure.name), *rate))
        });
        values.collect()
    }
}

/// Returns the name of a device, which is its only text, and its measured values; notes unused
/// columns if `unused` is given.
fn device_of(
    device: &Record<'_>,
    columns: &mut Columns,
    mut told: Option<&mut Sheet>,
) -> Option<(String, Vec<(&'static Metric, f64)>)> {
    let mut values = Vec::with_capacity(device.0.len());
    let mut device_name = None;
    for (name, value) in &device.0 {
        let number = match value {
            Field::Number(number) => *number,
            Field::Text(text) => {
                device_name = device_name.or(Some(text));
                continue;
            }
            // It is missing.
            Field::Other => continue,
        };
        let find = || column(name).or_else(|| column(&format!("%{name}")));
        match columns.get(name, find) {
            Some((measure, by)) => values.push((*measure, number * *by)),
            None => {
                if let Some(sheet) = &mut told {
                    sheet.unused(name);
                }
            }
        }
    }
    Some((device_name?.clone().into_owned(), values))
}
