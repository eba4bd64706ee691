//! Traces for simulators: time, device, sector, number of sectors, and operation.

use super::opened::Trace;
use super::request::Direction;
use super::rows::{self, Layout, SECTOR, Split, Table, Times, first_rows};
use crate::kind::Bytes;
use crate::options::Options;
use std::cell::Cell;

/// A parser of the operation.
type Op = fn(&str) -> Option<Direction>;

/// Returns whether the first rows are those of such a trace, in order of time.
pub(super) fn recognizes(text: &str, time_of: fn(&str) -> Option<u64>, op_of: Op) -> bool {
    let last = Cell::new(0);
    first_rows(text, false, 8, |line| {
        let fields = rows::split(Split::Spaces, line);
        let [time, device, place, length, op] = fields[..] else { return false };
        let Some(time) = time_of(time) else { return false };
        let numbers = [device, place, length];
        last.replace(time) <= time
            && numbers.iter().all(|number| number.parse::<u64>().is_ok())
            && op_of(op).is_some()
    })
}

/// Opens a trace whose times are in units of this many nanoseconds.
pub(super) fn open(
    input: Bytes,
    options: &Options,
    (unit, name): (u64, &'static str),
    op_of: Op,
) -> Trace {
    let layout = Layout {
        split: Split::Spaces,
        time: (0, Times::Since(unit)),
        op: (4, op_of),
        offset: Some((2, SECTOR)),
        length: (3, SECTOR),
        latency: None,
        device: Some(1),
        host: None,
        resolution: 0,
    };
    let mut table = Table::without_head(input, layout);
    // The format has one unit, but is recognized by its shape alone.
    table.assumed = Some(name);
    if options.time_unit.is_none() {
        table.notes.push(format!(
            "its times are assumed to be {name}, the unit of the format; --time-unit sets another"
        ));
    }
    rows::open(table, options)
}
