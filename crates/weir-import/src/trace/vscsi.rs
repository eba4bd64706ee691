//! Traces of CloudPhysics as recorded below virtual machines: records of 32 bytes (version 1) or
//! 40 (version 2), little-endian.
//!
//! ```text
//! version 1:  number u32, length u32, parts u32, command u16, version u16, sector u64, time u64
//! version 2:  command u16, version u16, number u32, length u32, parts u32, sector u64, time u64,
//!             response time u64
//! ```
//!
//! The version is in the upper byte of its field. Times are microseconds, lengths bytes, sectors
//! have 512 bytes.

use super::opened::Trace;
use super::record::{self, Fields, Next};
use super::request::{Direction, ReadRequests, Request, Sink};
use super::rows::SECTOR;
use super::scsi;
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind};
use crate::options::Options;
use crate::sheet::{ReadSamples, Sheet};

pub(crate) const KIND: Kind = Kind {
    name: "vscsi",
    about: "a block trace of CloudPhysics, in its original format",
    recognizes: By::Bytes(recognizes),
    open,
    signs: &[],
};

/// The fewest records that must be valid.
const LEAST: usize = 2;
const MICROSECOND: u64 = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Version {
    const fn bytes(self) -> usize {
        match self {
            Self::One => 32,
            Self::Two => 40,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Record {
    command: u16,
    length: u32,
    sector: u64,
    micros: u64,
}

/// Parses a record of a version; `None` if it is invalid.
fn parse(bytes: &[u8], version: Version) -> Option<Record> {
    let mut fields = Fields(bytes);
    let (command, said, length) = match version {
        Version::One => {
            let (_, length, _) = (fields.u32(), fields.u32(), fields.u32());
            (fields.u16(), fields.u16(), length)
        }
        Version::Two => {
            let (command, said) = (fields.u16(), fields.u16());
            let (_, length, _) = (fields.u32(), fields.u32(), fields.u32());
            (command, said, length)
        }
    };
    let number = match version {
        Version::One => 1,
        Version::Two => 2,
    };
    let is_one = said >> 8 == number && command <= 0xff;
    is_one.then(|| Record { command, length, sector: fields.u64(), micros: fields.u64() })
}

/// Returns the version of all records at the beginning.
fn version(bytes: &[u8]) -> Option<Version> {
    [Version::Two, Version::One].into_iter().find(|version| {
        let mut records = bytes.chunks_exact(version.bytes()).map(|chunk| parse(chunk, *version));
        let mut count = 0;
        let all = records.all(|record| {
            count += 1;
            record.is_some()
        });
        all && count >= LEAST
    })
}

fn recognizes(bytes: &[u8]) -> bool {
    version(bytes).is_some()
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(open_trace(input, options)?.samples(options))
}

pub(super) fn open_trace(mut input: Bytes, _options: &Options) -> Result<Trace, ImportError> {
    let Some(version) = version(input.fill_buf()?) else {
        let reason = "records of a vscsi trace of version 1 or 2 were expected";
        return Err(ImportError::whole(reason));
    };
    let trace = Vscsi { input, version, records: 0 };
    Ok(Trace::new(trace))
}

struct Vscsi {
    input: Bytes,
    version: Version,
    records: u64,
}

impl ReadRequests for Vscsi {
    fn next(&mut self, sink: &mut dyn Sink, sheet: &mut Sheet) -> Result<bool, ImportError> {
        let record = match self.version {
            Version::One => self.record::<32>(sheet)?,
            Version::Two => self.record::<40>(sheet)?,
        };
        let Some(record) = record else { return Ok(false) };
        let Some(direction) = scsi::direction(record.command) else {
            sheet.unused(&format!("requests whose command is {:02x}", record.command));
            return Ok(true);
        };
        let at = record.micros.checked_mul(MICROSECOND).and_then(|nanos| i64::try_from(nanos).ok());
        let at = at.ok_or_else(|| {
            ImportError::whole(format!("record {}: its time cannot be right", self.records))
        })?;
        let device = sink.device(None, "disk")?;
        let moves = matches!(direction, Direction::Read | Direction::Write);
        let length = if moves { u64::from(record.length) } else { 0 };
        let offset = record.sector.checked_mul(SECTOR);
        sink.request(Request { at, device, direction, offset, length, latency: None })?;
        Ok(true)
    }
}

impl Vscsi {
    fn record<const N: usize>(&mut self, sheet: &mut Sheet) -> Result<Option<Record>, ImportError> {
        let bytes = match record::next::<N>(&mut *self.input)? {
            Next::Record(bytes) => bytes,
            Next::End => {
                if self.version == Version::Two {
                    sheet.unused("response times, whose unit is not known");
                }
                return Ok(None);
            }
            Next::Cut => {
                sheet.note("its last record was truncated and is left out");
                return Ok(None);
            }
        };
        self.records += 1;
        let record = parse(&bytes, self.version);
        record.map(Some).ok_or_else(|| {
            ImportError::whole(format!("record {}: it is not of the version before", self.records))
        })
    }
}
