//! Traces for cache simulators (oracleGeneral of libCacheSim): packed records of 24 bytes,
//! little-endian. They have no offsets and no distinction of reads and writes.
//!
//! ```text
//! seconds u32   object u64   bytes u32   the number of the next request of that object i64
//! ```
//!
//! The format has no signature. It is recognized by records that agree with each other: times do
//! not go back, and the next request of an object is where a record says.

use super::opened::Trace;
use super::record::{self, Fields, Next};
use super::request::{Direction, Origin, ReadRequests, Request, Sink};
use super::rows::{SECOND, is_epoch};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind};
use crate::options::Options;
use crate::sheet::{ReadSamples, Sheet};
use std::collections::HashMap;

pub(crate) const KIND: Kind = Kind {
    name: "oracle-general",
    about: "a trace for caches, in the format oracleGeneral of libCacheSim",
    recognizes: By::Bytes(recognizes),
    open,
    signs: &[],
};

const LENGTH: usize = 24;
/// The fewest records that must agree.
const LEAST: usize = 8;
/// The largest plausible object.
const MOST_BYTES: u32 = 1 << 31;
/// The most plausible number of requests.
const MOST_REQUESTS: i64 = 1 << 44;

#[derive(Debug, Clone, Copy)]
struct Record {
    seconds: u32,
    object: u64,
    bytes: u32,
    /// `None` if the object is not requested again.
    next: Option<i64>,
}

fn parse(bytes: &[u8]) -> Record {
    let mut fields = Fields(bytes);
    let (seconds, object, bytes) = (fields.u32(), fields.u64(), fields.u32());
    let next = Some(fields.i64()).filter(|next| !matches!(*next, -1 | i64::MAX));
    Record { seconds, object, bytes, next }
}

fn recognizes(bytes: &[u8]) -> bool {
    let records: Vec<_> = bytes.chunks_exact(LENGTH).map(parse).collect();
    let sorted = records.is_sorted_by_key(|record| record.seconds);
    let plausible = records.iter().zip(0_i64..).all(|(record, number)| {
        record.bytes < MOST_BYTES
            && record.next.is_none_or(|next| next > number && next < MOST_REQUESTS)
    });
    let moves = records.iter().any(|record| record.bytes > 0);
    // Some tools count requests from 0 and some from 1.
    let agree = [0, 1].into_iter().any(|first| agree(&records, first));
    records.len() >= LEAST && sorted && plausible && moves && agree
}

/// Returns whether each object's next request is where its record says, within this beginning.
fn agree(records: &[Record], first: i64) -> bool {
    let mut said: HashMap<u64, Option<i64>> = HashMap::new();
    let mut right = records.iter().zip(first..).map(|(record, number)| {
        let before = said.insert(record.object, record.next);
        before.is_none_or(|next| next == Some(number))
    });
    right.all(|right| right)
        && said.values().flatten().all(|next| {
            usize::try_from(next.saturating_sub(first)).is_ok_and(|at| at >= records.len())
        })
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(open_trace(input, options)?.samples(options))
}

pub(super) fn open_trace(mut input: Bytes, _options: &Options) -> Result<Trace, ImportError> {
    let first = input.fill_buf()?.first_chunk::<LENGTH>().map(|bytes| parse(bytes));
    let Some(first) = first else {
        let reason = "records of 24 bytes were expected, and there is not one";
        return Err(ImportError::whole(reason));
    };
    let mut trace = Trace::new(OracleGeneral { input, records: 0 });
    if is_epoch(u64::from(first.seconds) * SECOND) {
        trace.origin = Origin::Epoch;
    }
    trace.resolution = SECOND;
    Ok(trace)
}

struct OracleGeneral {
    input: Bytes,
    records: u64,
}

impl ReadRequests for OracleGeneral {
    fn next(&mut self, sink: &mut dyn Sink, sheet: &mut Sheet) -> Result<bool, ImportError> {
        let bytes = match record::next::<LENGTH>(&mut *self.input)? {
            Next::Record(bytes) => bytes,
            Next::End => return Ok(false),
            Next::Cut => {
                sheet.note("its last record was truncated and is left out");
                return Ok(false);
            }
        };
        if self.records == 0 {
            sheet.note(
                "it has neither offsets nor latencies, and does not distinguish reads from writes",
            );
        }
        self.records += 1;
        let record = parse(&bytes);
        if record.bytes >= MOST_BYTES {
            let reason = format!("record {}: an object of {} bytes", self.records, record.bytes);
            return Err(ImportError::whole(reason));
        }
        let at = i64::from(record.seconds) * 1_000_000_000;
        let device = sink.device(None, "disk")?;
        let (direction, length) = (Direction::Either, u64::from(record.bytes));
        let request = Request { at, device, direction, offset: None, length, latency: None };
        sink.object(request, record.object)?;
        Ok(true)
    }
}
