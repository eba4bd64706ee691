//! Traces for `MQSim` in ASCII: nanoseconds, device, sector, number of sectors, and 1 for a read
//! or 0 for a write.

use super::opened::Trace;
use super::request::Direction;
use super::simulator;
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::ReadSamples;

pub(crate) const KIND: Kind = Kind {
    name: "mqsim",
    about: "a block trace for MQSim, in ASCII",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[Sign::Rows(' ', 5, 5)]],
};

fn recognizes(text: &str) -> bool {
    simulator::recognizes(text, |time| time.parse().ok(), direction)
}

fn direction(op: &str) -> Option<Direction> {
    match op {
        "0" => Some(Direction::Write),
        "1" => Some(Direction::Read),
        _ => None,
    }
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(open_trace(input, options)?.samples(options))
}

#[expect(clippy::unnecessary_wraps, reason = "as of all kinds")]
pub(super) fn open_trace(input: Bytes, options: &Options) -> Result<Trace, ImportError> {
    Ok(simulator::open(input, options, (1, "nanoseconds"), direction))
}
