//! Traces of Weir itself (`weir record`).

use super::opened::Trace;
use super::request::{Device, Direction, Origin, ReadRequests, Request, Sink};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind};
use crate::options::Options;
use crate::sheet::{ReadSamples, Sheet};
use weir_trace::format::SIGNATURE;
use weir_trace::{Ending, Kind as Operation, ReadError, Reader};
use weir_units::Span;

pub(crate) const KIND: Kind = Kind {
    name: "weirtrace",
    about: "a request trace of Weir",
    recognizes: By::Bytes(recognizes),
    open,
    signs: &[],
};

fn recognizes(bytes: &[u8]) -> bool {
    bytes.starts_with(&SIGNATURE)
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(open_trace(input, options)?.samples(options))
}

pub(super) fn open_trace(input: Bytes, _options: &Options) -> Result<Trace, ImportError> {
    let reader = Reader::open(input).map_err(error)?;
    let start = reader.header().start_unix_ns;
    let own = WeirTrace { reader, start: start.unwrap_or(0), devices: Vec::new() };
    let origin = if start.is_some() { Origin::Epoch } else { Origin::Unknown };
    Ok(Trace { origin, ..Trace::new(own) })
}

fn error(error: ReadError) -> ImportError {
    match error {
        ReadError::Io(error) => error.into(),
        other => ImportError::whole(other.to_string()),
    }
}

struct WeirTrace {
    reader: Reader<Bytes>,
    start: i64,
    /// Devices of the sink.
    devices: Vec<Device>,
}

impl ReadRequests for WeirTrace {
    fn next(&mut self, sink: &mut dyn Sink, sheet: &mut Sheet) -> Result<bool, ImportError> {
        let Some(request) = self.reader.next_request().map_err(error)? else {
            if let Some(ending) = self.reader.ending().filter(|own| *own != Ending::Complete) {
                sheet.note(ending.to_string());
            }
            return Ok(false);
        };
        while self.devices.len() < self.reader.devices().len() {
            let name = &self.reader.devices()[self.devices.len()];
            self.devices.push(sink.device(None, name)?);
        }
        let direction = match request.kind {
            Operation::Read => Direction::Read,
            Operation::Write | Operation::WriteThrough => Direction::Write,
            Operation::Discard => Direction::Discard,
            Operation::Flush => Direction::Flush,
        };
        sink.request(Request {
            at: self.start.saturating_add_unsigned(request.at.nanos()),
            // The reader checks that each request has a device.
            device: self.devices[request.device as usize],
            direction,
            offset: (direction != Direction::Flush).then_some(request.offset),
            length: request.len,
            latency: request.latency.map(Span::nanos),
        })?;
        Ok(true)
    }

    fn lost(&self) -> u64 {
        match self.reader.ending() {
            Some(Ending::Lossy { lost }) => lost,
            _ => 0,
        }
    }
}
