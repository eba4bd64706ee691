//! Properties of reading a trace with any contents: it is read as far as it is whole, or refused
//! with words, in order of time; what was read can be written and read again unchanged.

use crate::format::{Ending, Header, ReadError, Reader, WriteError, Writer};
use crate::request::Request;

/// A bit of the first byte: checksums are made right, so that what they cover is read.
const REPAIR: u8 = 0x80;

/// Reads `data` as a trace. The first byte says whether its checksums are made right.
///
/// # Panics
/// If a promise is broken.
pub fn trace_bytes(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let mut bytes = rest.to_vec();
    if first & REPAIR != 0 {
        repair(&mut bytes);
    }
    let mut reader = match Reader::open(bytes.as_slice()) {
        Ok(reader) => reader,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let mut requests: Vec<Request> = Vec::new();
    loop {
        match reader.next_request() {
            Ok(Some(request)) => requests.push(request),
            Ok(None) => break,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                break;
            }
        }
    }
    let devices = reader.devices().to_vec();
    assert!(requests.is_sorted_by_key(|request| request.at), "requests are in order of time");
    for request in &requests {
        assert!((request.device as usize) < devices.len(), "each device has a name");
        assert!(request.offset.checked_add(request.len).is_some(), "no end is beyond 2^64");
    }
    again(reader.header(), &devices, &requests);
}

/// Writes what was read, and reads it again.
fn again(header: &Header, devices: &[String], requests: &[Request]) {
    let written = write(header, devices, requests);
    let bytes = written.unwrap_or_else(|error| panic!("what was read can be written: {error}"));
    let read = compare(&bytes, (header, devices), requests);
    read.unwrap_or_else(|error| panic!("what was written can be read: {error}"));
}

fn write(header: &Header, devices: &[String], requests: &[Request]) -> Result<Vec<u8>, WriteError> {
    let mut writer = Writer::new(Vec::new(), header)?;
    for name in devices {
        writer.device(name)?;
    }
    for request in requests {
        writer.request(request)?;
    }
    writer.finish(0)
}

fn compare(
    bytes: &[u8],
    (header, devices): (&Header, &[String]),
    requests: &[Request],
) -> Result<(), ReadError> {
    let mut reader = Reader::open(bytes)?;
    for request in requests {
        assert_eq!(reader.next_request()?, Some(*request), "it is read as it was written");
    }
    assert_eq!(reader.next_request()?, None);
    assert_eq!(reader.ending(), Some(Ending::Complete));
    assert_eq!((reader.header(), reader.devices()), (header, devices));
    Ok(())
}

/// Makes the checksum of each whole frame right.
fn repair(bytes: &mut [u8]) {
    let mut at = crate::format::SIGNATURE.len();
    while let Some(head) = bytes.get(at..at + 8) {
        let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let Some(end) = at.checked_add(8 + length) else { return };
        let Some(covered) = bytes.get(at..end) else { return };
        let sum = crc32fast::hash(covered).to_le_bytes();
        let Some(place) = bytes.get_mut(end..end + 4) else { return };
        place.copy_from_slice(&sum);
        at = end + 4;
    }
}
