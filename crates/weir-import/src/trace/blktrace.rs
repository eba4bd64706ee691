//! Binary traces of blktrace: one file per processor, `NAME.blktrace.N`, with records of 48 bytes
//! and variable data, in the byte order of the traced machine.
//!
//! ```text
//! magic u32   number u32   nanoseconds u64   sector u64   bytes u32   action u32
//! process u32   device u32   processor u32   error u16   length of what follows u16
//! ```
//!
//! The magic number is 0x65617400 plus the version, which is 7. The lower half of an action is the
//! event, the upper half the kind of request.
//!
//! A request may be queued on one processor and completed on another, so the files of a trace are
//! merged by time.

use super::opened::Trace;
use super::pairing::{Action, Event, Pairing};
use super::record::{self, Next};
use super::request::{Direction, ReadRequests, Sink};
use super::rows::SECTOR;
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind};
use crate::options::Options;
use crate::sheet::{ReadSamples, Sheet};
use std::collections::HashMap;
use std::io::{self, BufReader, Read};

pub(crate) const KIND: Kind = Kind {
    name: "blktrace",
    about: "a binary trace of blktrace, one file per processor",
    recognizes: By::Bytes(recognizes),
    open,
    signs: &[],
};

const RECORD: usize = 48;
const MAGIC: u32 = 0x6561_7407;

/// Bits of an action for the kind of request.
const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const NOTIFY: u32 = 1 << 26;
const DISCARD: u32 = 1 << 29;
/// The lower half, without the bit for a control group.
const WHAT: u32 = 0xfeff;

pub(crate) fn recognizes(bytes: &[u8]) -> bool {
    order(bytes).is_some()
}

/// The byte order of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

fn order(bytes: &[u8]) -> Option<Order> {
    let magic = *bytes.first_chunk::<4>()?;
    match (u32::from_le_bytes(magic), u32::from_be_bytes(magic)) {
        (MAGIC, _) => Some(Order::Little),
        (_, MAGIC) => Some(Order::Big),
        _ => None,
    }
}

/// A record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Record {
    nanos: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    device: u32,
    error: u16,
    /// Length of the data that follows.
    more: u16,
}

impl Record {
    fn parse(bytes: &[u8; RECORD]) -> Option<Self> {
        let order = order(bytes)?;
        let u16_at = |at: usize| {
            let field = bytes.get(at..)?.first_chunk::<2>()?;
            Some(match order {
                Order::Little => u16::from_le_bytes(*field),
                Order::Big => u16::from_be_bytes(*field),
            })
        };
        let u32_at = |at: usize| {
            let field = bytes.get(at..)?.first_chunk::<4>()?;
            Some(match order {
                Order::Little => u32::from_le_bytes(*field),
                Order::Big => u32::from_be_bytes(*field),
            })
        };
        let u64_at = |at: usize| {
            let field = bytes.get(at..)?.first_chunk::<8>()?;
            Some(match order {
                Order::Little => u64::from_le_bytes(*field),
                Order::Big => u64::from_be_bytes(*field),
            })
        };
        Some(Self {
            nanos: u64_at(8)?,
            sector: u64_at(16)?,
            bytes: u32_at(24)?,
            action: u32_at(28)?,
            device: u32_at(36)?,
            error: u16_at(44)?,
            more: u16_at(46)?,
        })
    }

    fn action(&self) -> Option<Action> {
        match self.action & WHAT {
            _ if self.action & NOTIFY != 0 => None,
            1 => Some(Action::Queued),
            2 | 3 => Some(Action::Merged),
            6 => Some(Action::Requeued),
            7 => Some(Action::Sent),
            8 => Some(Action::Completed),
            _ => None,
        }
    }

    fn direction(&self) -> Option<Direction> {
        let has = |bit: u32| self.action & bit != 0;
        match () {
            () if has(DISCARD) => Some(Direction::Discard),
            () if self.bytes == 0 && (has(FLUSH) || has(WRITE)) => Some(Direction::Flush),
            () if has(WRITE) => Some(Direction::Write),
            () if has(READ) => Some(Direction::Read),
            () => None,
        }
    }
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(open_trace(input, options)?.samples(options))
}

pub(super) fn open_trace(mut input: Bytes, _options: &Options) -> Result<Trace, ImportError> {
    if order(input.fill_buf()?).is_none() {
        let reason = "records of blktrace, version 7, were expected";
        return Err(ImportError::whole(reason));
    }
    let trace = Blktrace { input, pairing: Pairing::default(), records: 0, names: HashMap::new() };
    Ok(Trace::new(trace))
}

struct Blktrace {
    input: Bytes,
    pairing: Pairing,
    records: u64,
    /// Devices by their numbers.
    names: HashMap<u32, String>,
}

impl ReadRequests for Blktrace {
    fn next(&mut self, sink: &mut dyn Sink, sheet: &mut Sheet) -> Result<bool, ImportError> {
        let bytes = match record::next::<RECORD>(&mut *self.input)? {
            Next::Record(bytes) => bytes,
            Next::End => {
                self.pairing.tell(sheet);
                return Ok(false);
            }
            Next::Cut => {
                sheet.note("its last record was truncated and is left out");
                self.pairing.tell(sheet);
                return Ok(false);
            }
        };
        self.records += 1;
        let Some(record) = Record::parse(&bytes) else {
            let reason =
                format!("record {} does not begin like a record of blktrace", self.records);
            return Err(ImportError::whole(reason));
        };
        let follows = u64::from(record.more);
        let skipped = io::copy(&mut (&mut *self.input).take(follows), &mut io::sink())?;
        if skipped < follows {
            sheet.note("its last record was truncated and is left out");
            return Ok(true);
        }
        let (Some(action), Some(direction)) = (record.action(), record.direction()) else {
            return Ok(true);
        };
        let wrong = |what: &str| format!("record {}: its {what} cannot be right", self.records);
        let at = i64::try_from(record.nanos).map_err(|_| ImportError::whole(wrong("time")))?;
        let name = self.names.entry(record.device).or_insert_with(|| {
            format!("{},{}", record.device >> 20, record.device & ((1 << 20) - 1))
        });
        let event = Event {
            disk: name,
            action,
            at,
            direction,
            sector: record.sector,
            offset: record.sector.checked_mul(SECTOR).filter(|_| record.bytes > 0),
            length: u64::from(record.bytes),
            has_failed: record.error != 0,
        };
        self.pairing.event(event, sink).map_err(ImportError::whole)?;
        Ok(true)
    }
}

/// Merges the files of a trace into one, in order of time.
pub(crate) fn merged(files: Vec<Bytes>) -> io::Result<Bytes> {
    let mut parts = Vec::new();
    for mut input in files {
        let next = read_record(&mut input)?;
        parts.push(Part { input, next });
    }
    Ok(Box::new(BufReader::new(Merged { parts, now: Vec::new(), at: 0 })))
}

/// A file with its next record.
struct Part {
    input: Bytes,
    next: Pending,
}

/// The next part of a file.
enum Pending {
    /// A record with its data, and its time.
    Record(Vec<u8>, u64),
    /// Bytes that are no complete record, returned after all records.
    Rest(Vec<u8>),
    End,
}

struct Merged {
    parts: Vec<Part>,
    /// The current record, and the number of bytes returned of it.
    now: Vec<u8>,
    at: usize,
}

/// Reads a record and its data.
fn read_record(input: &mut Bytes) -> io::Result<Pending> {
    let mut bytes = Vec::with_capacity(RECORD);
    input.as_mut().take(RECORD as u64).read_to_end(&mut bytes)?;
    let parsed = bytes.first_chunk::<RECORD>().and_then(Record::parse);
    let Some(record) = parsed else {
        return Ok(if bytes.is_empty() { Pending::End } else { Pending::Rest(bytes) });
    };
    let length = u64::from(record.more);
    let read = input.as_mut().take(length).read_to_end(&mut bytes)?;
    let is_whole = u64::try_from(read).is_ok_and(|read| read == length);
    Ok(if is_whole { Pending::Record(bytes, record.nanos) } else { Pending::Rest(bytes) })
}

impl Merged {
    /// Takes the earliest record; incomplete records come last.
    fn advance(&mut self) -> io::Result<()> {
        let key = |part: &Part| match &part.next {
            Pending::Record(_, nanos) => Some((0, *nanos)),
            Pending::Rest(_) => Some((1, 0)),
            Pending::End => None,
        };
        let places = self.parts.iter().enumerate();
        let first = places.filter_map(|(at, part)| Some((key(part)?, at))).min();
        (self.now, self.at) = (Vec::new(), 0);
        let Some(part) = first.and_then(|(_, at)| self.parts.get_mut(at)) else { return Ok(()) };
        match std::mem::replace(&mut part.next, Pending::End) {
            Pending::Record(bytes, _) => {
                self.now = bytes;
                part.next = read_record(&mut part.input)?;
            }
            Pending::Rest(bytes) => {
                // The rest is the end.
                self.parts.clear();
                self.now = bytes;
            }
            Pending::End => {}
        }
        Ok(())
    }
}

impl Read for Merged {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.now.len() {
            self.advance()?;
        }
        let rest = self.now.get(self.at..).unwrap_or_default();
        let count = rest.len().min(into.len());
        if let (Some(to), Some(from)) = (into.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        self.at += count;
        Ok(count)
    }
}
