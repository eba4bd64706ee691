//! `sadf -d`: the tables of sar for a database, with semicolons.
//!
//! They come table by table, each with all times up to the next restart of the machine.

use super::activity::{Place, Table};
use super::held::Held;
use super::style_of;
use crate::header::{EntityId, EntityKind};
use crate::import::ImportError;
use crate::import::kind::Bytes;
use crate::import::merge::Options;
use crate::import::moment::Clock;
use crate::import::number::Style;
use crate::import::sheet::{At, ReadSamples, Sheet};
use crate::import::text::Lines;

/// The names of the columns before those of the table.
const HOST: &str = "hostname";
const TIME: &str = "timestamp";

pub(in crate::import) fn recognizes(text: &str) -> bool {
    text.lines().any(|line| {
        names_of(line).is_some_and(|names| names.contains(&HOST) && names.contains(&TIME))
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
        tables: Vec::new(),
        table: None,
        last_time: (String::new(), 0),
        ended: false,
    }))
}

/// The names of the columns, in a line that has them.
fn names_of(line: &str) -> Option<Vec<&str>> {
    let names = line.strip_prefix('#')?;
    Some(names.trim().split(';').collect())
}

/// The host of the rows at hand.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    last: Option<(String, EntityId)>,
}

impl Hosts {
    /// The host of that name, and whether it is another than before.
    pub(super) fn host(&mut self, sheet: &mut Sheet, name: &str) -> (EntityId, bool) {
        match &self.last {
            Some((last, id)) if last == name => (*id, false),
            last => {
                let is_other = last.is_some();
                let id = sheet.entity(EntityKind::Host, name, None);
                self.last = Some((name.to_owned(), id));
                (id, is_other)
            }
        }
    }
}

struct Sadf {
    lines: Lines<Bytes>,
    clock: Clock,
    style: Option<Style>,
    hosts: Hosts,
    held: Held,
    tables: Vec<Known>,
    table: Option<usize>,
    /// Rows of one time come one after the other: the last one that was read.
    last_time: (String, i64),
    ended: bool,
}

struct Known {
    table: Table,
    /// Where the name of the host and the time are.
    host_at: usize,
    time_at: usize,
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
                    self.held.release();
                }
            }
        }
    }
}

impl Sadf {
    fn line(&mut self, sheet: &mut Sheet, line: &str) -> Result<(), ImportError> {
        if let Some(names) = names_of(line) {
            return self.head(sheet, &names);
        }
        let Some(known) = self.table.and_then(|at| self.tables.get_mut(at)) else {
            sheet.unused("lines before the first head");
            return Ok(());
        };
        let words: Vec<_> = line.split(';').collect();
        let rest = words.get(known.time_at + 1..).unwrap_or_default();
        match rest.first() {
            Some(word) if word.starts_with("LINUX-RESTART") => {
                self.held.release();
                sheet.note("the machine was started again");
                return Ok(());
            }
            Some(word) if word.starts_with("COM ") => {
                sheet.unused("comments");
                return Ok(());
            }
            _ => {}
        }
        if !known.table.is_used() {
            return Ok(());
        }
        let (Some(host), Some(time)) = (words.get(known.host_at), words.get(known.time_at)) else {
            return self.wrong(sheet, "a row has no host and time");
        };
        if self.last_time.0 != *time {
            let Some(at) = self.clock.moment(time) else {
                let reason = format!("{time:?} is no time");
                return self.wrong(sheet, &reason);
            };
            self.last_time = ((*time).to_owned(), at);
        }
        let (host, is_other) = self.hosts.host(sheet, host);
        let style = style_of(&mut self.style, rest);
        let mut place = Place { sheet, held: &mut self.held, host, at: self.last_time.1 };
        if is_other {
            self.tables.iter_mut().for_each(|known| known.table.forget());
        }
        let Some(known) = self.table.and_then(|at| self.tables.get_mut(at)) else {
            return Ok(());
        };
        match known.table.row(rest, style, &mut place) {
            Ok(()) => Ok(()),
            Err(reason) => self.wrong(sheet, &reason),
        }
    }

    fn head(&mut self, sheet: &mut Sheet, names: &[&str]) -> Result<(), ImportError> {
        let at = |wanted: &str| names.iter().position(|name| *name == wanted);
        let (Some(host_at), Some(time_at)) = (at(HOST), at(TIME)) else {
            let reason = "a head has no hostname and timestamp";
            return self.wrong(sheet, reason);
        };
        let own = names.get(time_at + 1..).unwrap_or_default();
        let is_known = |known: &Known| {
            known.table.has(own) && known.time_at == time_at && known.host_at == host_at
        };
        self.table = self.tables.iter().position(is_known).or_else(|| {
            self.tables.push(Known { table: Table::new(own, sheet), host_at, time_at });
            Some(self.tables.len() - 1)
        });
        Ok(())
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
