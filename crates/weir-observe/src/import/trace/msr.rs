//! The traces of MSR Cambridge (SNIA IOTTA 388): `Timestamp,Hostname,DiskNumber,Type,Offset,
//! Size,ResponseTime`, mostly without that head. Times and latencies are ticks of 100 ns.

use super::rows::{
    self, Layout, Split, TICK, Table, Times, direction, first_line, first_rows, is_ticks,
};
use crate::import::ImportError;
use crate::import::kind::Bytes;
use crate::import::merge::Options;
use crate::import::sheet::ReadSamples;
use crate::import::text::Lines;

const NAMES: [&str; 7] =
    ["timestamp", "hostname", "disknumber", "type", "offset", "size", "responsetime"];

pub(in crate::import) fn recognizes(text: &str) -> bool {
    let has_head = text.lines().next().is_some_and(is_head);
    first_rows(text, has_head, 1, |line| {
        let fields = rows::split(Split::At(','), line);
        let [time, _, disk, kind, offset, size, response] = fields[..] else { return false };
        let is_time = time.parse().is_ok_and(is_ticks);
        let numbers = [disk, offset, size, response];
        is_time && direction(kind).is_some() && numbers.iter().all(|n| n.parse::<u64>().is_ok())
    })
}

fn is_head(line: &str) -> bool {
    let fields = rows::split(Split::At(','), line);
    fields.len() == NAMES.len()
        && fields
            .iter()
            .zip(NAMES)
            .all(|(field, name)| field.trim_start_matches('\u{feff}').eq_ignore_ascii_case(name))
}

pub(in crate::import) fn open(
    input: Bytes,
    options: &Options,
) -> Result<Box<dyn ReadSamples>, ImportError> {
    let mut lines = Lines::new(input);
    let first = first_line(&mut lines)?;
    let head = if is_head(&first) {
        Some(first)
    } else {
        lines.put_back(first);
        None
    };
    let layout = Layout {
        split: Split::At(','),
        time: (0, Times::Ticks),
        op: (3, direction),
        offset: Some((4, 1)),
        length: (5, 1),
        latency: Some((6, TICK)),
        device: Some(2),
        host: Some(1),
        resolution: 0,
    };
    Ok(rows::open(Table { lines, layout, head, notes: Vec::new() }, options))
}
