//! Traces in the format of the Storage Performance Council: unit, offset in sectors, length in
//! bytes, `r` or `w`, seconds; further columns are optional. There is no head.

use super::opened::Trace;
use super::request::Direction;
use super::rows::{self, Layout, SECOND, SECTOR, Split, Table, Times, first_rows};
use super::summing::scaled;
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::ReadSamples;

pub(crate) const KIND: Kind = Kind {
    name: "spc",
    about: "a block trace in the format of the Storage Performance Council",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[Sign::Rows(',', 5, 6), Sign::Text(&[",R,", ",W,", ",r,", ",w,"])]],
};

fn recognizes(text: &str) -> bool {
    first_rows(text, false, 3, |line| {
        let fields = rows::split(Split::At(','), line);
        let [unit, place, length, op, time, ..] = fields[..] else { return false };
        let numbers = [unit, place, length];
        numbers.iter().all(|number| number.parse::<u64>().is_ok())
            && direction(op).is_some()
            && scaled(time, SECOND).is_some()
    })
}

fn direction(op: &str) -> Option<Direction> {
    match op {
        "r" | "R" => Some(Direction::Read),
        "w" | "W" => Some(Direction::Write),
        _ => None,
    }
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(open_trace(input, options)?.samples(options))
}

#[expect(clippy::unnecessary_wraps, reason = "as of all kinds")]
pub(super) fn open_trace(input: Bytes, options: &Options) -> Result<Trace, ImportError> {
    let layout = Layout {
        split: Split::At(','),
        time: (4, Times::Since(SECOND)),
        op: (3, direction),
        offset: Some((1, SECTOR)),
        length: (2, 1),
        latency: None,
        device: Some(0),
        host: None,
        resolution: 0,
    };
    Ok(rows::open(Table::without_head(input, layout), options))
}
