//! `sadf -p`: what sar says, a value a line, for scripts.
//!
//! ```text
//! host  seconds  time  whose  what  value
//! ```
//!
//! They come table by table, each with all times up to the next restart of the machine.

use super::activity::{self, Column, Place};
use super::held::{Held, Slot};
use super::processors::Processors;
use super::sadf_d::Hosts;
use super::style_of;
use crate::header::{EntityId, EntityKind};
use crate::import::ImportError;
use crate::import::kind::Bytes;
use crate::import::merge::Options;
use crate::import::moment::Clock;
use crate::import::number::Style;
use crate::import::sheet::{At, ReadSamples, Sheet};
use crate::import::text::Lines;
use std::collections::HashMap;

/// Fields of a line that has a value.
const FIELDS: usize = 6;
/// Whose a value of the whole host is.
const HOST: &str = "-";

pub(in crate::import) fn recognizes(text: &str) -> bool {
    text.lines().any(|line| {
        let fields: Vec<_> = line.split('\t').collect();
        let [_, seconds, time, _, name, _] = fields[..] else { return false };
        let is_of_it = activity::host(name).is_some()
            || activity::device(name).is_some()
            || name.starts_with('%') && Processors::has(name);
        is_of_it && seconds.parse::<i64>().is_ok() && Clock::default().moment(time).is_some()
    })
}

pub(in crate::import) fn open(
    input: Bytes,
    options: &Options,
) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(Box::new(Sadf {
        lines: Lines::new(input),
        clock: options.clock,
        style: None,
        hosts: Hosts::default(),
        held: Held::default(),
        goes: HashMap::new(),
        processors: None,
        last_time: (String::new(), 0),
        ended: false,
    }))
}

/// Where a value goes.
#[derive(Debug, Clone, Copy)]
enum Goes {
    To(Slot, f64),
    Processors,
    Nowhere,
}

struct Sadf {
    lines: Lines<Bytes>,
    clock: Clock,
    style: Option<Style>,
    hosts: Hosts,
    held: Held,
    /// By whose it is, and by its name.
    goes: HashMap<String, HashMap<String, Goes>>,
    /// Those of the lines at hand, with their host and time.
    processors: Option<(EntityId, i64, Processors)>,
    last_time: (String, i64),
    ended: bool,
}

impl ReadSamples for Sadf {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        loop {
            if let Some(at) = self.held.next(sheet) {
                return Ok(Some(At::Wall(at)));
            }
            if self.ended {
                return Ok(None);
            }
            match self.lines.next_line()? {
                Some(line) if line.trim().is_empty() => {}
                Some(line) => self.line(sheet, &line)?,
                None => {
                    self.ended = true;
                    self.release(sheet);
                }
            }
        }
    }
}

impl Sadf {
    fn line(&mut self, sheet: &mut Sheet, line: &str) -> Result<(), ImportError> {
        let mut fields = line.split('\t');
        let mut all: [&str; FIELDS] = [""; FIELDS];
        let count = all.iter_mut().zip(&mut fields).map(|(field, text)| *field = text).count();
        let [host, _, time, whose, name, value] = all;
        if whose == "LINUX-RESTART" {
            self.release(sheet);
            sheet.note("the machine was started again");
            return Ok(());
        }
        if whose.starts_with("COM ") {
            sheet.unused("comments");
            return Ok(());
        }
        if count < FIELDS || fields.next().is_some() {
            let count = line.split('\t').count();
            return self.wrong(sheet, &format!("a line has {count} fields, and not {FIELDS}"));
        }
        let (host, is_other) = self.hosts.host(sheet, host);
        if is_other {
            self.goes.clear();
        }
        let goes = match self.goes.get(whose).and_then(|own| own.get(name)) {
            Some(goes) => *goes,
            None => self.find(sheet, host, whose, name),
        };
        if matches!(goes, Goes::Nowhere) {
            return Ok(());
        }
        if self.last_time.0 != time {
            let Some(at) = self.clock.moment(time) else {
                return self.wrong(sheet, &format!("{time:?} is no time"));
            };
            self.last_time = (time.to_owned(), at);
        }
        let by = if let Goes::To(_, by) = goes { by } else { 1.0 };
        let style = style_of(&mut self.style, &[value]);
        match activity::number(style, value, by) {
            Ok(Some(number)) => self.take(sheet, host, goes, name, number),
            Ok(None) => {}
            Err(reason) => return self.wrong(sheet, &reason),
        }
        Ok(())
    }

    /// Where values of that name go.
    fn find(&mut self, sheet: &mut Sheet, host: EntityId, whose: &str, name: &str) -> Goes {
        let mut to = |sheet: &mut Sheet, entity: EntityId, (measure, by): Column| {
            let slot = self.held.slot(sheet.series(entity, measure), measure);
            slot.map_or(Goes::Nowhere, |slot| Goes::To(slot, by))
        };
        let goes = if activity::is_all_processors(whose) && Processors::has(name) {
            Goes::Processors
        } else if let Some(column) = activity::host(name).filter(|_| whose == HOST) {
            activity::assume(sheet, name);
            to(sheet, host, column)
        } else if let Some(column) = activity::device(name).filter(|_| whose != HOST) {
            let device = sheet.entity(EntityKind::Volume, whose, Some(host));
            to(sheet, device, column)
        } else {
            if !Processors::has(name) {
                sheet.unused(name);
            }
            Goes::Nowhere
        };
        self.goes.entry(whose.to_owned()).or_default().insert(name.to_owned(), goes);
        goes
    }

    fn take(&mut self, sheet: &mut Sheet, host: EntityId, goes: Goes, name: &str, number: f64) {
        let at = self.last_time.1;
        match goes {
            Goes::To(slot, _) => self.held.add(at, slot, number),
            Goes::Processors => {
                if self.processors.is_some_and(|(of, when, _)| (of, when) != (host, at)) {
                    self.put_processors(sheet);
                }
                let (_, _, all) = self.processors.get_or_insert((host, at, Processors::default()));
                all.add(name, number);
            }
            Goes::Nowhere => {}
        }
    }

    /// Holds what is known of the processors at the time at hand.
    fn put_processors(&mut self, sheet: &mut Sheet) {
        if let Some((host, at, all)) = self.processors.take() {
            activity::hold_processors(all, &mut Place { sheet, held: &mut self.held, host, at });
        }
    }

    fn release(&mut self, sheet: &mut Sheet) {
        self.put_processors(sheet);
        self.held.release();
    }

    /// What is wrong with a line, unless it was cut.
    fn wrong(&self, sheet: &mut Sheet, reason: &str) -> Result<(), ImportError> {
        if self.lines.was_open() {
            sheet.note("its last line was cut: left out");
            return Ok(());
        }
        Err(ImportError::at(self.lines.number(), reason))
    }
}
