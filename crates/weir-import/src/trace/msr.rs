//! Traces of MSR Cambridge (SNIA IOTTA 388): `Timestamp,Hostname,DiskNumber,Type,Offset,
//! Size,ResponseTime`, mostly without that head. Times and latencies are ticks of 100 ns, times
//! since 1601.
//!
//! Other sources write the same columns with other times. The size of a time since 1970 shows its
//! unit. Times from another start do not show it and are taken for ticks.

use super::opened::Trace;
use super::rows::{
    self, Layout, MILLISECOND, SECOND, Split, TICK, Table, Times, direction, first_line,
    first_rows, times_in,
};
use super::summing::scaled;
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::{Options, TimeUnit};
use crate::sheet::ReadSamples;
use crate::text::Lines;

pub(crate) const KIND: Kind = Kind {
    name: "msr-cambridge",
    about: "a block trace in the format of MSR Cambridge",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[Sign::Rows(',', 7, 7), Sign::Text(&[",Read,", ",Write,"])]],
};

const NAMES: [&str; 7] =
    ["timestamp", "hostname", "disknumber", "type", "offset", "size", "responsetime"];

fn recognizes(text: &str) -> bool {
    let has_head = text.lines().next().is_some_and(is_head);
    first_rows(text, has_head, 1, |line| {
        let fields = rows::split(Split::At(','), line);
        let [time, _, disk, kind, offset, size, response] = fields[..] else { return false };
        let is_time = scaled(time, 1).is_some();
        let numbers = [disk, offset, size];
        let is_latency = scaled(response, 1).is_some();
        is_time
            && is_latency
            && direction(kind).is_some()
            && numbers.iter().all(|n| n.parse::<u64>().is_ok())
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

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(open_trace(input, options)?.samples(options))
}

pub(super) fn open_trace(input: Bytes, options: &Options) -> Result<Trace, ImportError> {
    let mut lines = Lines::new(input);
    let first = first_line(&mut lines)?;
    let head = if is_head(&first) {
        Some(first)
    } else {
        lines.put_back(first);
        None
    };
    let row = first_line(&mut lines)?;
    let units = Units::new(&row, options);
    lines.put_back(row);
    let layout = Layout {
        split: Split::At(','),
        time: (0, units.times),
        op: (3, direction),
        offset: Some((4, 1)),
        length: (5, 1),
        latency: Some((6, units.latency)),
        device: Some(2),
        host: Some(1),
        resolution: 0,
    };
    let (notes, assumed) = (units.notes, units.assumed);
    Ok(rows::open(Table { lines, layout, head, notes, assumed }, options))
}

/// The notation of times and latencies.
struct Units {
    times: Times,
    latency: u64,
    notes: Vec<String>,
    /// Assumed unit of times.
    assumed: Option<&'static str>,
}

impl Units {
    /// Determines the units of a trace that begins with `row`.
    fn new(row: &str, options: &Options) -> Self {
        let first = rows::split(Split::At(','), row).first().and_then(|time| scaled(time, 1));
        let first = first.unwrap_or(0);
        let plain = |times, latency| Self { times, latency, notes: Vec::new(), assumed: None };
        if let Some(unit) = options.time_unit.map(TimeUnit::nanos) {
            return plain(times_in(first, unit), unit);
        }
        if times_in(first, TICK) == Times::Ticks {
            return plain(Times::Ticks, TICK);
        }
        let units = [
            (SECOND, "seconds", "seconds since 1970"),
            (MILLISECOND, "milliseconds", "milliseconds since 1970"),
            (1000, "microseconds", "microseconds since 1970"),
            (1, "nanoseconds", "nanoseconds since 1970"),
        ];
        let since_1970 =
            units.into_iter().find(|(unit, ..)| times_in(first, *unit) == Times::Epoch(*unit));
        if let Some((unit, name, assumed)) = since_1970 {
            let note = format!(
                "its times are {name} since 1970, and its latencies are assumed to be {name}; --time-unit \
                 sets another unit"
            );
            let assumed = Some(assumed);
            return Self { notes: vec![note], assumed, ..plain(Times::Epoch(unit), unit) };
        }
        let note = "its times count neither from 1601 nor from 1970 and have no unit: \
                    assumed to be ticks of 100 ns, the unit of the format; --time-unit sets another";
        let assumed = Some("ticks of 100 ns");
        Self { notes: vec![note.to_owned()], assumed, ..plain(Times::Since(TICK), TICK) }
    }
}
