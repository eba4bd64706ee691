//! `sadf -d`: the tables of sar for a database, separated by semicolons.
//!
//! Output is table by table, each with all times up to the next restart of the machine.

use super::activity::{Place, Table};
use super::by_table::{ByTable, Hosts, Moments, TakeLines};
use super::held::Held;
use super::quantity::style_of;
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::number::Style;
use crate::options::Options;
use crate::sheet::{ReadSamples, Sheet};
use crate::text::fields;

pub(crate) const KIND: Kind = Kind {
    name: "sadf-d",
    about: "recordings of sar, as tables from sadf -d",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Word(&["hostname"]),
        Sign::Word(&["timestamp"]),
        Sign::Word(&["interval"]),
        Sign::Text(&["# "]),
    ]],
};

/// Name of the first column.
const HOST: &str = "hostname";
const INTERVAL: &str = "interval";
const TIME: &str = "timestamp";

fn recognizes(text: &str) -> bool {
    text.lines().any(|line| {
        names_of(line).is_some_and(|names| names.contains(&HOST) && names.contains(&TIME))
    })
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    let sadf = Sadf {
        moments: Moments::new(options.clock),
        style: None,
        hosts: Hosts::default(),
        tables: Vec::new(),
        table: None,
    };
    Ok(ByTable::new(input, sadf))
}

/// Returns the column names, if a line is a head.
fn names_of(line: &str) -> Option<Vec<&str>> {
    let names = line.strip_prefix('#')?;
    Some(names.trim().split(';').collect())
}

struct Sadf {
    moments: Moments,
    style: Option<Style>,
    hosts: Hosts,
    tables: Vec<Known>,
    table: Option<usize>,
}

struct Known {
    table: Table,
    /// Columns with the host and the time.
    host_at: usize,
    time_at: usize,
    /// Column with the sampling interval, in seconds.
    interval_at: Option<usize>,
}

impl TakeLines for Sadf {
    fn line(&mut self, sheet: &mut Sheet, held: &mut Held, line: &str) -> Result<(), String> {
        if let Some(names) = names_of(line) {
            return self.head(sheet, &names);
        }
        let Some(known) = self.table.and_then(|at| self.tables.get_mut(at)) else {
            sheet.unused("lines before the first header");
            return Ok(());
        };
        let words = fields(line, b';');
        let rest = words.get(known.time_at + 1..).unwrap_or_default();
        match rest.first() {
            Some(word) if word.starts_with("LINUX-RESTART") => {
                let time = words.get(known.time_at).ok_or("a restart has no time")?;
                held.restart(self.moments.moment(time)?);
                sheet.note("the machine was restarted");
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
            return Err("a row has no host and time".to_owned());
        };
        let at = self.moments.moment(time)?;
        let interval = known.interval_at.and_then(|place| words.get(place)?.parse::<i64>().ok());
        if let Some(seconds) = interval {
            held.cover(at, seconds.saturating_mul(1_000_000_000));
        }
        let (host, is_other) = self.hosts.host(sheet, host);
        if is_other {
            self.tables.iter_mut().for_each(|known| known.table.forget());
        }
        let style = style_of(&mut self.style, rest);
        let table = self.table.and_then(|at| self.tables.get_mut(at));
        let mut place = Place { sheet, held, host, at };
        table.map_or(Ok(()), |known| known.table.row(rest, style, &mut place))
    }
}

impl Sadf {
    fn head(&mut self, sheet: &mut Sheet, names: &[&str]) -> Result<(), String> {
        let at = |wanted: &str| names.iter().position(|name| *name == wanted);
        let (Some(host_at), Some(time_at)) = (at(HOST), at(TIME)) else {
            return Err("a header has no hostname and timestamp".to_owned());
        };
        let own = names.get(time_at + 1..).unwrap_or_default();
        let is_known = |known: &Known| {
            known.table.has(own) && known.time_at == time_at && known.host_at == host_at
        };
        self.table = self.tables.iter().position(is_known).or_else(|| {
            let (table, interval_at) = (Table::new(own, sheet), at(INTERVAL));
            self.tables.push(Known { table, host_at, time_at, interval_at });
            Some(self.tables.len() - 1)
        });
        Ok(())
    }
}
