//! The columns of sar and sadf, and their tables.
//!
//! Tables describe the host, its processors, or devices; those of networks, files and fans are not
//! used.

use super::held::{Held, Slot};
use super::iostat;
use super::processors::Processors;
use super::quantity::{KIB, quantity};
use crate::in_turn::InTurn;
use crate::number::{Style, is_missing};
use crate::sheet::Sheet;
use weir_observe::header::{EntityId, EntityKind};
use weir_observe::metric::{self as m, Metric};

const SECTOR: f64 = 512.0;
/// Bytes of a page of memory on nearly all machines.
const PAGE: f64 = 4096.0;

/// The metric of a column, and the factor of its values.
pub(super) type Column = (&'static Metric, f64);

/// Returns the meaning of a column in a table of devices.
pub(super) fn device(name: &str) -> Option<Column> {
    Some(match name {
        "rd_sec/s" => (&m::READ_BYTES_PER_S, SECTOR),
        "wr_sec/s" => (&m::WRITE_BYTES_PER_S, SECTOR),
        "dc_sec/s" => (&m::DISCARD_BYTES_PER_S, SECTOR),
        "sect/s" | "blks/s" => (&m::BYTES_PER_S, SECTOR),
        _ => return iostat::column(name),
    })
}

/// Returns the meaning of a column in a table of the whole host.
pub(super) fn host(name: &str) -> Option<Column> {
    Some(match name {
        "tps" => (&m::OPERATIONS_PER_S, 1.0),
        "rtps" => (&m::READS_PER_S, 1.0),
        "wtps" => (&m::WRITES_PER_S, 1.0),
        "dtps" => (&m::DISCARDS_PER_S, 1.0),
        "bread/s" => (&m::READ_BYTES_PER_S, SECTOR),
        "bwrtn/s" => (&m::WRITE_BYTES_PER_S, SECTOR),
        "bdscd/s" => (&m::DISCARD_BYTES_PER_S, SECTOR),
        "kbmemfree" => (&m::MEMORY_FREE_BYTES, KIB),
        "kbavail" => (&m::MEMORY_AVAILABLE_BYTES, KIB),
        "kbcached" => (&m::MEMORY_CACHE_BYTES, KIB),
        "pswpin/s" => (&m::SWAP_IN_BYTES_PER_S, PAGE),
        "pswpout/s" => (&m::SWAP_OUT_BYTES_PER_S, PAGE),
        "runq-sz" => (&m::RUNNABLE, 1.0),
        "blocked" => (&m::BLOCKED, 1.0),
        _ => return None,
    })
}

/// Notes the assumption made for a column, if there is one.
pub(super) fn assume(sheet: &mut Sheet, name: &str) {
    if name == "pswpin/s" {
        sheet.note("pages of memory are assumed to have 4 KiB");
    }
}

/// Returns whether a name stands for all processors together.
pub(super) fn is_all_processors(name: &str) -> bool {
    matches!(name, "all" | "-1")
}

/// The subject of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Host,
    Processors,
    Devices,
}

/// Returns the subject of a table, and the column with names of devices or processors.
pub(super) fn meaning(names: &[&str]) -> Option<(Of, Option<usize>)> {
    let ends = [0, names.len().saturating_sub(1)];
    let key = |name: &str| ends.into_iter().find(|at| names.get(*at) == Some(&name));
    if let Some(at) = key("DEV") {
        return names.contains(&"tps").then_some((Of::Devices, Some(at)));
    }
    if let Some(at) = key("CPU") {
        return names.contains(&"%idle").then_some((Of::Processors, Some(at)));
    }
    names.iter().any(|name| host(name).is_some()).then_some((Of::Host, None))
}

/// A table of sar or `sadf -d`, and the slots of its values.
#[derive(Debug)]
pub(super) struct Table {
    names: Vec<String>,
    of: Option<(Of, Option<usize>)>,
    columns: Vec<Option<Column>>,
    /// Slots of its columns, by name in the row.
    slots: InTurn<Vec<Option<Slot>>>,
}

/// The host and moment of a row, and the store for its values.
#[derive(Debug)]
pub(super) struct Place<'a> {
    pub(super) sheet: &'a mut Sheet,
    pub(super) held: &'a mut Held,
    pub(super) host: EntityId,
    pub(super) at: i64,
}

impl Table {
    /// Creates a table with these columns, and notes the unused ones.
    pub(super) fn new(names: &[&str], sheet: &mut Sheet) -> Self {
        let of = meaning(names);
        let column = |name: &&str| match of?.0 {
            Of::Host => host(name),
            Of::Devices => device(name),
            Of::Processors => None,
        };
        let columns: Vec<_> = names.iter().map(column).collect();
        match of {
            None => sheet.unused(&format!("the table of {}", names.first().unwrap_or(&"nothing"))),
            Some((Of::Processors, _)) => {}
            Some((_, key)) => {
                let unknown = columns.iter().zip(names).enumerate();
                let unknown =
                    unknown.filter(|(at, (column, _))| column.is_none() && Some(*at) != key);
                for (_, (_, name)) in unknown {
                    sheet.unused(name);
                }
            }
        }
        for name in names {
            assume(sheet, name);
        }
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Self { names, of, columns, slots: InTurn::default() }
    }

    /// Returns whether its columns are these.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.names.iter().eq(names)
    }

    /// Returns whether any column is used.
    pub(super) const fn is_used(&self) -> bool {
        self.of.is_some()
    }

    /// Forgets the names in rows, because the next rows are of another host.
    pub(super) fn forget(&mut self) {
        self.slots.clear();
    }

    /// Takes the values of a row.
    ///
    /// # Errors
    ///
    /// A description of the malformed part.
    pub(super) fn row(
        &mut self,
        words: &[&str],
        style: Style,
        place: &mut Place<'_>,
    ) -> Result<(), String> {
        let Some((of, key)) = self.of else { return Ok(()) };
        if words.len() != self.names.len() {
            let expected = self.names.len();
            return Err(format!(
                "a row has {} columns, but its header has {expected}",
                words.len()
            ));
        }
        let name = key.and_then(|at| words.get(at)).copied().unwrap_or_default();
        if of == Of::Processors {
            return self.processors(name, words, style, place);
        }
        let columns = &self.columns;
        let slots = self.slots.get(name, || {
            let entity = match of {
                Of::Devices => place.sheet.entity(EntityKind::Volume, name, Some(place.host)),
                Of::Host | Of::Processors => place.host,
            };
            let slot = |column: &Option<Column>| {
                let (measure, _) = (*column)?;
                place.held.slot(place.sheet.series(entity, measure), measure)
            };
            columns.iter().map(slot).collect()
        });
        for ((word, column), slot) in words.iter().zip(columns).zip(slots) {
            let (Some((_, by)), Some(slot)) = (column, slot) else { continue };
            if let Some(value) = number(style, word, *by)? {
                place.held.add(place.at, *slot, value);
            }
        }
        Ok(())
    }

    /// Takes a row of processors, if it is the one for all of them.
    fn processors(
        &mut self,
        name: &str,
        words: &[&str],
        style: Style,
        place: &mut Place<'_>,
    ) -> Result<(), String> {
        if !is_all_processors(name) {
            return Ok(());
        }
        let mut all = Processors::default();
        for (name, word) in self.names.iter().zip(words).filter(|(name, _)| Processors::has(name)) {
            if let Some(percent) = number(style, word, 1.0)? {
                all.add(name, percent);
            }
        }
        hold_processors(all, place);
        Ok(())
    }
}

/// Stores the processor shares of a host.
pub(super) fn hold_processors(all: Processors, place: &mut Place<'_>) {
    for (measure, share) in all.shares() {
        let series = place.sheet.series(place.host, measure);
        place.held.add_series(place.at, series, measure, share);
    }
}

/// Parses a number that may be missing.
pub(super) fn number(style: Style, text: &str, by: f64) -> Result<Option<f64>, String> {
    match quantity(style, text, by) {
        Some(number) => Ok(Some(number)),
        None if is_missing(text.trim_start_matches('-')) => Ok(None),
        None => Err(format!("{text:?} is not a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_by_their_columns() {
        let check = |names: &str, expect: Option<(Of, Option<usize>)>| {
            let names: Vec<_> = names.split(' ').collect();
            assert_eq!(meaning(&names), expect, "{names:?}");
        };
        check("DEV tps rd_sec/s", Some((Of::Devices, Some(0))));
        check("tps rkB/s await DEV", Some((Of::Devices, Some(3))));
        check("CPU %user %idle", Some((Of::Processors, Some(0))));
        check("CPU MHz", None);
        check("IFACE rxpck/s txpck/s", None);
        check("tps rtps wtps bread/s bwrtn/s", Some((Of::Host, None)));
        check("", None);
    }
}
