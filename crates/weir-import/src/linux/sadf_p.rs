//! `sadf -p`: sar for scripts, one value per line.
//!
//! ```text
//! host  seconds  time  subject  metric  value
//! ```
//!
//! Output is table by table, each with all times up to the next restart of the machine.

use super::activity::{self, Column, Place};
use super::by_table::{ByTable, Hosts, Moments, TakeLines};
use super::held::{Held, Slot};
use super::processors::Processors;
use super::quantity::style_of;
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::number::Style;
use crate::options::Options;
use crate::sheet::{ReadSamples, Sheet};
use std::collections::HashMap;
use weir_observe::header::{EntityId, EntityKind};
use weir_observe::moment::Clock;

pub(crate) const KIND: Kind = Kind {
    name: "sadf-p",
    about: "recordings of sar, as lines from sadf -p",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[Sign::Word(&["tps", "rkB/s", "%usr", "%user", "%idle"]), Sign::Rows('\t', 6, 6)]],
};

/// Fields of a line with a value.
const FIELDS: usize = 6;
/// Subject of values of the whole host.
const HOST: &str = "-";

fn recognizes(text: &str) -> bool {
    text.lines().any(|line| {
        let fields: Vec<_> = line.split('\t').collect();
        let [_, seconds, time, _, name, _] = fields[..] else { return false };
        let is_of_it = activity::host(name).is_some()
            || activity::device(name).is_some()
            || name.starts_with('%') && Processors::has(name);
        is_of_it && seconds.parse::<i64>().is_ok() && Clock::default().moment(time).is_some()
    })
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    let sadf = Sadf {
        moments: Moments::new(options.clock),
        style: None,
        hosts: Hosts::default(),
        goes: HashMap::new(),
        processors: None,
    };
    Ok(ByTable::new(input, sadf))
}

/// The destination of a value.
#[derive(Debug, Clone, Copy)]
enum Goes {
    To(Slot, f64),
    Processors,
    Nowhere,
}

struct Sadf {
    moments: Moments,
    style: Option<Style>,
    hosts: Hosts,
    /// Destinations by subject and name.
    goes: HashMap<String, HashMap<String, Goes>>,
    /// Shares of processors in the current lines, with host and time.
    processors: Option<(EntityId, i64, Processors)>,
}

impl TakeLines for Sadf {
    fn line(&mut self, sheet: &mut Sheet, held: &mut Held, line: &str) -> Result<(), String> {
        let mut fields = line.split('\t');
        let mut all: [&str; FIELDS] = [""; FIELDS];
        let count = all.iter_mut().zip(&mut fields).map(|(field, text)| *field = text).count();
        let [host, interval, time, whose, name, value] = all;
        if whose == "LINUX-RESTART" {
            self.put_processors(sheet, held);
            held.restart(self.moments.moment(time)?);
            sheet.note("the machine was restarted");
            return Ok(());
        }
        if whose.starts_with("COM ") {
            sheet.unused("comments");
            return Ok(());
        }
        if count < FIELDS || fields.next().is_some() {
            let count = line.split('\t').count();
            return Err(format!("a line has {count} fields instead of {FIELDS}"));
        }
        let (host, is_other) = self.hosts.host(sheet, host);
        if is_other {
            self.goes.clear();
        }
        let goes = match self.goes.get(whose).and_then(|own| own.get(name)) {
            Some(goes) => *goes,
            None => self.find(sheet, held, host, (whose, name)),
        };
        if matches!(goes, Goes::Nowhere) {
            return Ok(());
        }
        let at = self.moments.moment(time)?;
        if let Ok(seconds) = interval.parse::<i64>() {
            held.cover(at, seconds.saturating_mul(1_000_000_000));
        }
        let by = if let Goes::To(_, by) = goes { by } else { 1.0 };
        let style = style_of(&mut self.style, &[value]);
        let Some(number) = activity::number(style, value, by)? else { return Ok(()) };
        match goes {
            Goes::To(slot, _) => held.add(at, slot, number),
            Goes::Processors => {
                if self.processors.is_some_and(|(of, when, _)| (of, when) != (host, at)) {
                    self.put_processors(sheet, held);
                }
                let (_, _, all) = self.processors.get_or_insert((host, at, Processors::default()));
                all.add(name, number);
            }
            Goes::Nowhere => {}
        }
        Ok(())
    }

    fn end(&mut self, sheet: &mut Sheet, held: &mut Held) {
        self.put_processors(sheet, held);
        held.release();
    }
}

impl Sadf {
    /// Returns the destination of values with a name.
    fn find(
        &mut self,
        sheet: &mut Sheet,
        held: &mut Held,
        host: EntityId,
        (whose, name): (&str, &str),
    ) -> Goes {
        let mut to = |sheet: &mut Sheet, entity: EntityId, (measure, by): Column| {
            let slot = held.slot(sheet.series(entity, measure), measure);
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

    /// Stores the shares of processors at the current time.
    fn put_processors(&mut self, sheet: &mut Sheet, held: &mut Held) {
        if let Some((host, at, all)) = self.processors.take() {
            activity::hold_processors(all, &mut Place { sheet, held, host, at });
        }
    }
}
