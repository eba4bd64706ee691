//! Traces for `DiskSim` in ASCII: milliseconds, device, block of 512 bytes, number of blocks, and
//! flags in hexadecimal, whose lowest bit says that it is a read.

use super::rows::{self, Layout, MILLISECOND, SECTOR, Split, Table, Times, first_rows};
use super::summing::{Direction, scaled};
use crate::import::ImportError;
use crate::import::kind::Bytes;
use crate::import::merge::Options;
use crate::import::sheet::ReadSamples;
use crate::import::text::Lines;
use std::cell::Cell;

pub(in crate::import) fn recognizes(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    // Where no time has decimals it is more likely nanoseconds.
    let has_decimals = rows::split(Split::Spaces, first).first().is_some_and(|t| t.contains('.'));
    let last = Cell::new(0);
    has_decimals
        && first_rows(text, false, 8, |line| {
            let fields = rows::split(Split::Spaces, line);
            let [time, device, place, length, flags] = fields[..] else { return false };
            let Some(time) = scaled(time, MILLISECOND) else { return false };
            let numbers = [device, place, length];
            last.replace(time) <= time
                && numbers.iter().all(|number| number.parse::<u64>().is_ok())
                && direction(flags).is_some()
        })
}

fn direction(flags: &str) -> Option<Direction> {
    let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16).ok()?;
    Some(if flags & 1 == 1 { Direction::Read } else { Direction::Write })
}

#[expect(clippy::unnecessary_wraps, reason = "as of all kinds")]
pub(in crate::import) fn open(
    input: Bytes,
    options: &Options,
) -> Result<Box<dyn ReadSamples>, ImportError> {
    let layout = Layout {
        split: Split::Spaces,
        time: (0, Times::Since(MILLISECOND)),
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
