//! Traces of CloudPhysics as text: a head with `version`, `time`, `op`, `size` and `lbn`; times in
//! seconds, SCSI commands, sizes in bytes, offsets in sectors.

use super::opened::Trace;
use super::rows::{self, Layout, SECOND, SECTOR, Split, Table, Times, first_line, is_idle};
use super::scsi;
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::ReadSamples;
use crate::text::Lines;

pub(crate) const KIND: Kind = Kind {
    name: "cloudphysics",
    about: "a block trace of CloudPhysics, as text",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Word(&["lbn"]),
        Sign::Word(&["op", "cmd"]),
        Sign::Word(&["size", "len", "length"]),
    ]],
};

/// Columns of time, operation, size and offset.
type Places = [usize; 4];

fn recognizes(text: &str) -> bool {
    text.lines().find(|line| !is_idle(line)).and_then(places).is_some()
}

fn places(head: &str) -> Option<Places> {
    let names = rows::split(Split::At(','), head);
    let find = |wanted: &str| names.iter().position(|name| name.eq_ignore_ascii_case(wanted));
    find("version")?;
    Some([find("time")?, find("op")?, find("size")?, find("lbn")?])
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(open_trace(input, options)?.samples(options))
}

pub(super) fn open_trace(input: Bytes, options: &Options) -> Result<Trace, ImportError> {
    let mut lines = Lines::new(input);
    let head = first_line(&mut lines)?;
    let Some([time, op, size, place]) = places(&head) else {
        let reason = "a header with version, time, op, size and lbn was expected";
        return Err(ImportError::at(lines.number(), reason));
    };
    let layout = Layout {
        split: Split::At(','),
        time: (time, Times::Since(SECOND)),
        op: (op, scsi::hexadecimal),
        offset: Some((place, SECTOR)),
        length: (size, 1),
        latency: None,
        device: None,
        host: None,
        resolution: SECOND,
    };
    let table = Table { lines, layout, head: Some(head), notes: Vec::new(), assumed: None };
    Ok(rows::open(table, options))
}
