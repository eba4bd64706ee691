//! Traces for `DiskSim` in ASCII: milliseconds, device, block of 512 bytes, number of blocks, and
//! hexadecimal flags, whose lowest bit marks a read.

use super::opened::Trace;
use super::request::Direction;
use super::rows::{self, MILLISECOND, Split};
use super::simulator;
use super::summing::scaled;
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::ReadSamples;

pub(crate) const KIND: Kind = Kind {
    name: "disksim",
    about: "a block trace for DiskSim, in ASCII",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[Sign::Rows(' ', 5, 5)]],
};

fn recognizes(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    // Without decimals, times are more likely nanoseconds.
    let has_decimals = rows::split(Split::Spaces, first).first().is_some_and(|t| t.contains('.'));
    has_decimals && simulator::recognizes(text, |time| scaled(time, MILLISECOND), direction)
}

fn direction(flags: &str) -> Option<Direction> {
    let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16).ok()?;
    Some(if flags & 1 == 1 { Direction::Read } else { Direction::Write })
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(open_trace(input, options)?.samples(options))
}

#[expect(clippy::unnecessary_wraps, reason = "as of all kinds")]
pub(super) fn open_trace(input: Bytes, options: &Options) -> Result<Trace, ImportError> {
    Ok(simulator::open(input, options, (MILLISECOND, "milliseconds"), direction))
}
