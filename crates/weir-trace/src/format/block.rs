//! Requests to the payload of a `DATA` frame and back.
//!
//! A block begins with its number of requests and the times of its first and last request, so that
//! a reader can pass over it. Then come columns:
//!
//! | column | holds |
//! |---|---|
//! | times | differences of neighbours |
//! | what | device, kind and length: an index in a table of the combinations, or three columns |
//! | near | the previous request of the device whose end is nearest to the offset, of four |
//! | offsets | the difference from that end |
//! | latencies | 0 for unknown, otherwise 1 more than nanoseconds in units of their divisor |
//!
//! Several sequential streams on one device therefore cost almost nothing.

use super::column::{Decoder, Encoder};
use super::{BLOCK, MAX_DEVICES};
use crate::request::{Kind, Request};
use std::collections::HashMap;
use weir_bytes::{Input, Wrong, divisor, put, unzigzag, zigzag};
use weir_units::{Instant, Span};

/// The most combinations of device, kind and length that have a table.
const MAX_TABLE: usize = 4096;
/// Ends of requests that are remembered for each device.
const ENDS: usize = 4;

/// The latest ends of requests of a device, in a circle.
#[derive(Debug, Clone, Copy, Default)]
struct Ends {
    ends: [u64; ENDS],
    next: usize,
}

impl Ends {
    /// Returns the end that is `back` requests before the last one.
    #[inline]
    fn get(&self, back: usize) -> u64 {
        self.ends[(self.next + ENDS - 1 - back) % ENDS]
    }

    #[inline]
    fn push(&mut self, end: u64) {
        self.ends[self.next] = end;
        self.next = (self.next + 1) % ENDS;
    }

    /// Returns how far back the nearest end is; the latest one of several.
    #[inline]
    fn nearest(&self, offset: u64) -> usize {
        let mut best = (u64::MAX, 0);
        for back in 0..ENDS {
            let distance = self.get(back).abs_diff(offset);
            if distance < best.0 {
                best = (distance, back);
            }
        }
        best.1
    }
}

/// The extent of a block, which is known without decoding it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) count: usize,
    pub(super) first: Instant,
    pub(super) last: Instant,
}

impl Extent {
    /// Reads the beginning of a block.
    pub(super) fn read(input: &mut Input<'_>) -> Result<Self, Wrong> {
        let count = usize::try_from(input.u32()?).unwrap_or(usize::MAX);
        let [first, last] = [input.u64()?, input.u64()?].map(Instant::from_nanos);
        if count == 0 || count > BLOCK || first > last {
            return Err("a block does not begin as one");
        }
        Ok(Self { count, first, last })
    }
}

/// An encoder of blocks that reuses its working memory.
#[derive(Debug)]
pub(super) struct BlockEncoder {
    encoder: Encoder,
    numbers: Vec<u64>,
    near: Vec<u64>,
    ends: Vec<Ends>,
    table: HashMap<(u32, u8, u64), u64>,
}

impl BlockEncoder {
    pub(super) fn new() -> Self {
        let (encoder, table) = (Encoder::new(), HashMap::new());
        Self { encoder, numbers: Vec::new(), near: Vec::new(), ends: Vec::new(), table }
    }

    /// Appends a block of at least one request, in order of time, to `out`.
    pub(super) fn encode(&mut self, requests: &[Request], out: &mut Vec<u8>) {
        let (Some(first), Some(last)) = (requests.first(), requests.last()) else { return };
        let count = u32::try_from(requests.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(&first.at.nanos().to_le_bytes());
        out.extend_from_slice(&last.at.nanos().to_le_bytes());
        self.numbers.clear();
        let gaps = requests.windows(2).map(|pair| pair[1].at.nanos() - pair[0].at.nanos());
        self.numbers.extend(gaps);
        self.encoder.divided(&mut self.numbers, out);
        self.what(requests, out);
        self.offsets(requests, out);
        let latency = |request: &Request| request.latency.map(Span::nanos);
        let divisor = divisor(requests.iter().filter_map(latency));
        put(out, divisor);
        self.numbers.clear();
        let latencies = requests.iter().map(|r| latency(r).map_or(0, |n| (n / divisor) + 1));
        self.numbers.extend(latencies);
        self.encoder.column(&self.numbers, out);
    }

    /// Appends devices, kinds and lengths.
    fn what(&mut self, requests: &[Request], out: &mut Vec<u8>) {
        self.table.clear();
        for request in requests {
            *self.table.entry(key(request)).or_default() += 1;
            if self.table.len() > MAX_TABLE {
                break;
            }
        }
        if self.table.len() > MAX_TABLE {
            put(out, 0);
            let all: Vec<_> = requests.iter().map(key).collect();
            self.three(&all, out);
            return;
        }
        // The most frequent come first; their numbers are short.
        let mut entries: Vec<_> = self.table.drain().map(|(key, count)| (count, key)).collect();
        entries.sort_unstable_by_key(|(count, key)| (std::cmp::Reverse(*count), *key));
        let keys: Vec<_> = entries.into_iter().map(|(_, key)| key).collect();
        put(out, keys.len() as u64);
        self.three(&keys, out);
        self.table.extend(keys.into_iter().zip(0..));
        let table = &self.table;
        self.numbers.clear();
        let numbers = requests.iter().map(|r| table.get(&key(r)).copied().unwrap_or_default());
        self.numbers.extend(numbers);
        self.encoder.column(&self.numbers, out);
    }

    fn three(&mut self, all: &[(u32, u8, u64)], out: &mut Vec<u8>) {
        let mut column = |numbers: &mut dyn Iterator<Item = u64>| {
            self.numbers.clear();
            self.numbers.extend(numbers);
            self.encoder.divided(&mut self.numbers, out);
        };
        column(&mut all.iter().map(|(device, ..)| u64::from(*device)));
        column(&mut all.iter().map(|(_, kind, _)| u64::from(*kind)));
        column(&mut all.iter().map(|(.., len)| *len));
    }

    fn offsets(&mut self, requests: &[Request], out: &mut Vec<u8>) {
        let placed = || requests.iter().filter(|request| request.kind != Kind::Flush);
        let divisor = divisor(placed().flat_map(|request| [request.offset, request.len]));
        self.ends.clear();
        self.numbers.clear();
        self.near.clear();
        for request in placed() {
            let device = request.device as usize;
            if self.ends.len() <= device {
                self.ends.resize(device + 1, Ends::default());
            }
            let ends = &mut self.ends[device];
            let offset = request.offset / divisor;
            let near = ends.nearest(offset);
            self.near.push(near as u64);
            self.numbers.push(zigzag(offset.wrapping_sub(ends.get(near))));
            ends.push(offset + request.len / divisor);
        }
        put(out, divisor);
        self.encoder.column(&self.near, out);
        self.encoder.column(&self.numbers, out);
    }
}

fn key(request: &Request) -> (u32, u8, u64) {
    (request.device, request.kind.number(), request.len)
}

/// A decoder of blocks that reuses its working memory.
#[derive(Debug)]
pub(super) struct BlockDecoder {
    decoder: Decoder,
    numbers: Vec<u64>,
    near: Vec<u64>,
    columns: [Vec<u64>; 3],
    keys: Vec<(u32, Kind, u64)>,
    ends: Vec<Ends>,
}

impl BlockDecoder {
    pub(super) fn new() -> Self {
        Self {
            decoder: Decoder::new(),
            numbers: Vec::new(),
            near: Vec::new(),
            columns: [const { Vec::new() }; 3],
            keys: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Replaces `into` by the requests of a block, whose extent is read, of a trace with this
    /// number of devices.
    pub(super) fn decode(
        &mut self,
        extent: Extent,
        mut input: Input<'_>,
        devices: usize,
        into: &mut Vec<Request>,
    ) -> Result<(), Wrong> {
        into.clear();
        let input = &mut input;
        self.decoder.divided(input, extent.count - 1, &mut self.numbers)?;
        let mut at = extent.first.nanos();
        let request = |at| Request {
            at: Instant::from_nanos(at),
            device: 0,
            kind: Kind::Read,
            offset: 0,
            len: 0,
            latency: None,
        };
        into.push(request(at));
        for gap in &self.numbers {
            at = at.checked_add(*gap).ok_or("a time has more than 64 bits")?;
            into.push(request(at));
        }
        if at != extent.last.nanos() {
            return Err("a block ends at another time than it says");
        }
        self.what(input, devices, into)?;
        self.offsets(input, devices, into)?;
        let divisor = input.number()?;
        self.decoder.column(input, into.len(), &mut self.numbers)?;
        for (request, stored) in into.iter_mut().zip(&self.numbers) {
            if *stored > 0 {
                let nanos = (stored - 1).checked_mul(divisor);
                let nanos = nanos.ok_or("a latency has more than 64 bits")?;
                request.latency = Some(Span::from_nanos(nanos));
            }
        }
        if input.is_empty() { Ok(()) } else { Err("a block is longer than its columns") }
    }

    /// Reads devices, kinds and lengths.
    fn what(
        &mut self,
        input: &mut Input<'_>,
        devices: usize,
        into: &mut [Request],
    ) -> Result<(), Wrong> {
        let entries = input.length()?;
        if entries > MAX_TABLE {
            return Err("a table is longer than it may be");
        }
        let rows = if entries == 0 { into.len() } else { entries };
        for column in &mut self.columns {
            self.decoder.divided(input, rows, column)?;
        }
        self.keys.clear();
        let [own, kinds, lengths] = &self.columns;
        for ((device, kind), len) in own.iter().zip(kinds).zip(lengths) {
            let known = usize::try_from(*device).is_ok_and(|device| device < devices);
            let device = u32::try_from(*device).ok().filter(|_| known);
            let device = device.ok_or("a request is of a device that has no name")?;
            let kind = usize::try_from(*kind).ok().and_then(|kind| Kind::ALL.get(kind));
            let kind = *kind.ok_or("a request is of a kind that is not known")?;
            self.keys.push((device, kind, *len));
        }
        if entries > 0 {
            self.decoder.column(input, into.len(), &mut self.numbers)?;
        }
        for (row, request) in into.iter_mut().enumerate() {
            let at = match entries {
                0 => row,
                _ => usize::try_from(self.numbers[row]).unwrap_or(usize::MAX),
            };
            let key = self.keys.get(at).ok_or("a request is not in the table")?;
            (request.device, request.kind, request.len) = *key;
        }
        Ok(())
    }

    fn offsets(
        &mut self,
        input: &mut Input<'_>,
        devices: usize,
        into: &mut [Request],
    ) -> Result<(), Wrong> {
        let placed = into.iter().filter(|request| request.kind != Kind::Flush).count();
        let divisor = input.number()?;
        self.decoder.column(input, placed, &mut self.near)?;
        self.decoder.column(input, placed, &mut self.numbers)?;
        if divisor == 0 {
            return Err("a divisor is 0");
        }
        self.ends.clear();
        self.ends.resize(devices.min(MAX_DEVICES), Ends::default());
        let mut stored = self.near.iter().zip(&self.numbers);
        for request in into.iter_mut() {
            if request.kind == Kind::Flush {
                if request.len > 0 {
                    return Err("a flush has a length");
                }
                continue;
            }
            let Some((near, difference)) = stored.next() else { break };
            let near = usize::try_from(*near).ok().filter(|near| *near < ENDS);
            let near = near.ok_or("an offset is near to nothing")?;
            let ends = &mut self.ends[request.device as usize];
            let offset = ends.get(near).wrapping_add(unzigzag(*difference));
            let end = offset.checked_add(request.len / divisor);
            ends.push(end.ok_or("an offset has more than 64 bits")?);
            let offset = offset.checked_mul(divisor).ok_or("an offset has more than 64 bits")?;
            offset.checked_add(request.len).ok_or("an offset has more than 64 bits")?;
            request.offset = offset;
        }
        Ok(())
    }
}
