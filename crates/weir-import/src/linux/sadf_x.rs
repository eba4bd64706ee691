//! `sadf -x`: sar as XML.
//!
//! ```text
//!  sysstat/host              nodename
//!    statistics/timestamp    date, time, tz or utc, interval
//!      cpu-load/cpu          number, usr, sys, iowait, idle ..
//!      disk/disk-device      dev, tps, rkB, await, util-percent ..
//!      io, memory, ..        attributes, or elements with a number
//!    restarts/boot           date, time
//! ```
//!
//! Names are those of `sadf -j`. Restarts follow all samples. The interval of each sample excludes
//! the time before a restart.

use super::activity;
use super::processors::Processors;
use super::sadf_j::{DEVICES, HOST, Named, PROCESSORS, device_column, host_column, zoned};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Reports, Sheet};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use std::io::{self, BufRead, Read};
use weir_observe::header::{EntityId, EntityKind};
use weir_observe::moment::Clock;

pub(crate) const KIND: Kind = Kind {
    name: "sadf-x",
    about: "recordings of sar, as XML from sadf -x",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Xml,
        Sign::Word(&["sysstat"]),
        Sign::Word(&["sysdata-version", "file-date", "statistics"]),
    ]],
};

/// The most bytes of a tag or a text.
const LONGEST: usize = 1 << 20;
/// The deepest nesting of elements.
const DEEPEST: usize = 64;

fn recognizes(text: &str) -> bool {
    text.contains("<sysstat")
        && ["<sysdata-version>", "<file-date>", "<statistics>"].iter().any(|tag| text.contains(tag))
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    let input = Limited { input, left: LONGEST, line: 1, has_ended: false };
    let mut reader = Reader::from_reader(input);
    reader.config_mut().trim_text(true);
    Ok(Box::new(Sadf {
        reader,
        buffer: Vec::new(),
        clock: options.clock,
        told: Vec::new(),
        depth: 0,
        host: String::new(),
        has_statistics: false,
        sample: None,
    }))
}

/// An input that counts lines and rejects tags without an end.
struct Limited {
    input: Bytes,
    /// Bytes left for the next event.
    left: usize,
    line: u64,
    has_ended: bool,
}

impl Read for Limited {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Limited {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.left == 0 {
            let reason = format!("an element has more than {} KiB", LONGEST >> 10);
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        let bytes = self.input.fill_buf()?;
        self.has_ended = bytes.is_empty();
        Ok(&bytes[..bytes.len().min(self.left)])
    }

    fn consume(&mut self, count: usize) {
        if let Ok(bytes) = self.input.fill_buf() {
            let used = &bytes[..count.min(bytes.len())];
            self.line += memchr::memchr_iter(b'\n', used).count() as u64;
        }
        self.left -= count.min(self.left);
        self.input.consume(count);
    }
}

struct Sadf {
    reader: Reader<Limited>,
    buffer: Vec<u8>,
    clock: Clock,
    /// Notes given already: unused names, and zones of times.
    told: Vec<String>,
    /// Number of open elements.
    depth: usize,
    host: String,
    has_statistics: bool,
    sample: Option<Sample>,
}

/// The current sample.
struct Sample {
    at: At,
    interval_ns: Option<i64>,
    /// Depth of its element.
    depth: usize,
    host: EntityId,
    /// The current group of values, such as `disk`.
    section: String,
    /// The current element, whose text may be a value.
    element: String,
    processors: Option<Processors>,
    /// Number of values so far.
    count: usize,
}

impl ReadSamples for Sadf {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        sheet.reports = Reports::AllButIdle;
        let mut buffer = std::mem::take(&mut self.buffer);
        loop {
            buffer.clear();
            self.reader.get_mut().left = LONGEST;
            let event = match self.reader.read_event_into(&mut buffer) {
                Ok(event) => event,
                Err(_) if self.reader.get_ref().has_ended => Event::Eof,
                Err(quick_xml::Error::Io(error)) if error.kind() != io::ErrorKind::InvalidData => {
                    return Err(io::Error::new(error.kind(), error.to_string()).into());
                }
                Err(error) => return Err(self.wrong(format!("invalid XML: {error}"))),
            };
            let done = match event {
                Event::Start(tag) => {
                    self.begin(sheet, &tag)?;
                    self.depth += 1;
                    if self.depth > DEEPEST {
                        return Err(self.wrong(format!("more than {DEEPEST} elements deep")));
                    }
                    None
                }
                Event::Empty(tag) => {
                    self.begin(sheet, &tag)?;
                    self.end(sheet)
                }
                Event::Text(text) => {
                    self.text(sheet, &String::from_utf8_lossy(&text))?;
                    None
                }
                Event::End(_) => {
                    self.depth = self.depth.saturating_sub(1);
                    self.end(sheet)
                }
                Event::Eof => return self.finish(sheet),
                _ => None,
            };
            if done.is_some() {
                self.buffer = buffer;
                return Ok(done);
            }
        }
    }
}

impl Sadf {
    fn wrong(&self, reason: String) -> ImportError {
        ImportError::at(self.reader.get_ref().line, reason)
    }

    /// Takes the start of an element.
    fn begin(&mut self, sheet: &mut Sheet, tag: &BytesStart<'_>) -> Result<(), ImportError> {
        let name = String::from_utf8_lossy(tag.name().as_ref()).into_owned();
        let Some(sample) = &mut self.sample else {
            match name.as_str() {
                "host" => {
                    let named =
                        self.attributes(tag)?.into_iter().find(|(key, _)| key == "nodename");
                    self.host = named.map_or_else(|| "host".to_owned(), |(_, value)| value);
                }
                "statistics" => self.has_statistics = true,
                "timestamp" => self.sample = Some(self.timestamp(sheet, tag)?),
                "boot" if !self.told.iter().any(|told| told == "boot") => {
                    self.told.push(name);
                    sheet.note("the machine was restarted");
                }
                "comment" => sheet.unused("comments"),
                _ => {}
            }
            return Ok(());
        };
        if self.depth == sample.depth + 1 {
            sample.section.clone_from(&name);
        }
        sample.element = name;
        let section = sample.section.as_str();
        let is_used =
            section == DEVICES || PROCESSORS.contains(&section) || HOST.contains(&section);
        if !is_used {
            let section = section.to_owned();
            self.unused(sheet, &section);
            return Ok(());
        }
        let attributes = self.attributes(tag)?;
        self.values(sheet, &attributes)
    }

    /// Returns the sample of a `timestamp` element.
    fn timestamp(
        &mut self,
        sheet: &mut Sheet,
        tag: &BytesStart<'_>,
    ) -> Result<Sample, ImportError> {
        let attributes = self.attributes(tag)?;
        let said = |name: &str| {
            let found = attributes.iter().find(|(key, _)| key == name);
            found.map_or("", |(_, value)| value.as_str())
        };
        let is_utc = said("tz") == "UTC" || said("utc") == "1";
        let clock = zoned(&mut self.told, sheet, self.clock, said("tz"), is_utc);
        let time = format!("{} {}", said("date"), said("time"));
        let at = clock.moment(&time);
        let at = at.ok_or_else(|| self.wrong(format!("{time:?} is not a time of a sample")))?;
        let seconds = said("interval").parse::<i64>().ok();
        Ok(Sample {
            at: At::Wall(at),
            interval_ns: seconds.and_then(|s| s.checked_mul(1_000_000_000)).filter(|ns| *ns > 0),
            depth: self.depth,
            host: sheet.entity(EntityKind::Host, &self.host, None),
            section: String::new(),
            element: String::new(),
            processors: None,
            count: 0,
        })
    }

    fn attributes(&self, tag: &BytesStart<'_>) -> Result<Vec<(String, String)>, ImportError> {
        let all = tag.attributes().map(|attribute| {
            let attribute = attribute.map_err(|error| error.to_string())?;
            let value = attribute.unescape_value().map_err(|error| error.to_string())?;
            let key = String::from_utf8_lossy(attribute.key.as_ref()).into_owned();
            Ok((key, value.into_owned()))
        });
        let all: Result<_, String> = all.collect();
        all.map_err(|reason| self.wrong(format!("invalid XML: {reason}")))
    }

    /// Takes the attributes of an element in a used group.
    fn values(
        &mut self,
        sheet: &mut Sheet,
        attributes: &[(String, String)],
    ) -> Result<(), ImportError> {
        let Some(sample) = &self.sample else { return Ok(()) };
        let said = |name: &str| attributes.iter().find(|(key, _)| key == name);
        if PROCESSORS.contains(&sample.section.as_str()) {
            let is_all = said("number").is_some_and(|(_, of)| activity::is_all_processors(of));
            if is_all && sample.processors.is_none() {
                let mut all = Processors::default();
                for (name, value) in attributes.iter().filter(|(name, _)| Processors::has(name)) {
                    all.add(name, self.number(value)?);
                }
                self.sample.as_mut().map(|sample| sample.processors.replace(all));
            }
            return Ok(());
        }
        let is_device = sample.section == DEVICES;
        let entity = match said("dev").filter(|_| is_device) {
            Some((_, name)) => sheet.entity(EntityKind::Volume, name, Some(sample.host)),
            // The element around devices.
            None if is_device => return Ok(()),
            None => sample.host,
        };
        let column = if is_device { device_column } else { host_column };
        for (name, value) in attributes {
            if !["dev", "per", "unit"].contains(&name.as_str()) {
                self.value(sheet, entity, column, (name, value))?;
            }
        }
        Ok(())
    }

    /// Takes the text of an element, which is a value if its name is a metric of the host.
    fn text(&mut self, sheet: &mut Sheet, text: &str) -> Result<(), ImportError> {
        let Some(sample) = &self.sample else { return Ok(()) };
        if !HOST.contains(&sample.section.as_str()) {
            return Ok(());
        }
        let (host, name) = (sample.host, sample.element.clone());
        self.value(sheet, host, host_column, (&name, text))
    }

    fn value(
        &mut self,
        sheet: &mut Sheet,
        entity: EntityId,
        column: fn(&str) -> Named,
        (name, value): (&str, &str),
    ) -> Result<(), ImportError> {
        let Some(((measure, by), text)) = column(name) else {
            self.unused(sheet, name);
            return Ok(());
        };
        let number = self.number(value)?;
        if !self.told.contains(&text) {
            activity::assume(sheet, &text);
            self.told.push(text);
        }
        sheet.set(entity, measure, number * by);
        if let Some(sample) = &mut self.sample {
            sample.count += 1;
        }
        Ok(())
    }

    fn number(&self, text: &str) -> Result<f64, ImportError> {
        let number = text.trim().replace(',', ".").parse();
        number.map_err(|_| self.wrong(format!("{text:?} is not a number")))
    }

    /// Takes the end of an element; returns the time of the sample if it was one with values.
    fn end(&mut self, sheet: &mut Sheet) -> Option<At> {
        let sample = self.sample.take_if(|sample| sample.depth == self.depth)?;
        let mut count = sample.count;
        for (measure, share) in sample.processors.unwrap_or_default().shares() {
            sheet.set(sample.host, measure, share);
            count += 1;
        }
        sheet.interval_ns = sample.interval_ns.filter(|_| count > 0);
        (count > 0).then_some(sample.at)
    }

    /// Ends the input.
    fn finish(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        if !self.has_statistics {
            return Err(ImportError::whole("it has no <statistics>"));
        }
        if self.depth > 0 || self.sample.is_some() {
            sheet.note("it was truncated: the incomplete end is left out");
            self.depth = 0;
            self.sample = None;
        }
        Ok(None)
    }

    fn unused(&mut self, sheet: &mut Sheet, name: &str) {
        if !self.told.iter().any(|told| told == name) {
            self.told.push(name.to_owned());
            sheet.unused(name);
        }
    }
}
