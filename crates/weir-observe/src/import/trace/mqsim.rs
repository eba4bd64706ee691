//! Traces for `MQSim` in ASCII: nanoseconds, device, sector, number of sectors, and 1 for a read
//! or 0 for a write.

use super::rows::{self, Layout, SECTOR, Split, Table, Times, first_rows};
use super::summing::Direction;
use crate::import::ImportError;
use crate::import::kind::Bytes;
use crate::import::merge::Options;
use crate::import::sheet::ReadSamples;
use crate::import::text::Lines;
use std::cell::Cell;

pub(in crate::import) fn recognizes(text: &str) -> bool {
    let last = Cell::new(0_u64);
    first_rows(text, false, 8, |line| {
        let fields = rows::split(Split::Spaces, line);
        let [time, device, place, length, op] = fields[..] else { return false };
        let Ok(time) = time.parse() else { return false };
        let numbers = [device, place, length];
        last.replace(time) <= time
            && numbers.iter().all(|number| number.parse::<u64>().is_ok())
            && direction(op).is_some()
    })
}

fn direction(op: &str) -> Option<Direction> {
    match op {
        "0" => Some(Direction::Write),
        "1" => Some(Direction::Read),
        _ => None,
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as of all kinds")]
pub(in crate::import) fn open(
    input: Bytes,
    options: &Options,
) -> Result<Box<dyn ReadSamples>, ImportError> {
    let layout = Layout {
        split: Split::Spaces,
        time: (0, Times::Since(1)),
        op: (4, direction),
        offset: Some((2, SECTOR)),
        length: (3, SECTOR),
        latency: None,
        device: Some(1),
        host: None,
        resolution: 0,
    };
    let lines = Lines::new(input);
    Ok(rows::open(Table { lines, layout, head: None, notes: Vec::new() }, options))
}
