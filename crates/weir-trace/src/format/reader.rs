//! Reads frames, block by block.

use super::block::{BlockDecoder, Extent};
use super::error::ReadError;
use super::{End, Header, MAX_DEVICES, MAX_NAME, MAX_NAMES, MAX_PAYLOAD, Name, SIGNATURE, tag};
use crate::read::{ReadTrace, TraceError};
use crate::request::Request;
use std::fmt;
use std::io::{self, Read};
use weir_bytes::Input;
use weir_units::Instant;

/// The end of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// The recording ended normally.
    Complete,
    /// The recorder was too slow: requests are missing.
    Lossy {
        /// Requests that are missing.
        lost: u64,
    },
    /// There is no end mark: the writer was killed or is still writing, or the file was truncated.
    /// All blocks before are read.
    Cut {
        /// Bytes of an incomplete block.
        left_over: u64,
    },
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => f.write_str("complete"),
            Self::Lossy { lost } => write!(
                f,
                "{lost} requests are missing, because the recorder was too slow to keep them"
            ),
            Self::Cut { left_over } => {
                f.write_str(
                    "no end mark: it was truncated, or its writer was killed or still writes",
                )?;
                match left_over {
                    0 => Ok(()),
                    n => write!(f, "; {n} bytes at the end are an incomplete block and left out"),
                }
            }
        }
    }
}

/// A frame, or the reason why there is none.
enum Frame {
    Whole([u8; 4]),
    /// The file ended inside the frame, after this number of bytes.
    Cut(u64),
    Bad(&'static str),
}

/// A reader of traces that holds one block at a time.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    /// Bytes read.
    offset: u64,
    header: Header,
    devices: Vec<String>,
    /// Bytes of the names of the devices.
    names: usize,
    decoder: BlockDecoder,
    payload: Vec<u8>,
    block: Vec<Request>,
    /// The next request of the block.
    next: usize,
    /// Requests of the blocks before.
    before: u64,
    /// Time of the last request of the blocks before.
    last: Instant,
    skip_before: Instant,
    ending: Option<Ending>,
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if there is none.
    pub fn open(mut input: R) -> Result<Self, ReadError> {
        let mut signature = Vec::new();
        input.by_ref().take(SIGNATURE.len() as u64).read_to_end(&mut signature)?;
        check_signature(&signature)?;
        let mut reader = Self {
            input,
            offset: SIGNATURE.len() as u64,
            header: Header::default(),
            devices: Vec::new(),
            names: 0,
            decoder: BlockDecoder::new(),
            payload: Vec::new(),
            block: Vec::new(),
            next: 0,
            before: 0,
            last: Instant::ZERO,
            skip_before: Instant::ZERO,
            ending: None,
        };
        let damaged = |reason: &str| ReadError::Header { reason: reason.to_owned() };
        match reader.frame()? {
            Frame::Whole(tag::HEAD) => {
                let header = serde_json::from_slice(&reader.payload);
                reader.header = header.map_err(|error| damaged(&error.to_string()))?;
                Ok(reader)
            }
            Frame::Whole(_) => Err(damaged("it is not where it should be")),
            Frame::Cut(_) => Err(damaged("the file ends in it")),
            Frame::Bad(reason) => Err(damaged(reason)),
        }
    }

    /// Returns the header.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the names of the devices read so far.
    #[must_use]
    pub fn devices(&self) -> &[String] {
        &self.devices
    }

    /// Returns how the trace ended; `None` while there may be more requests.
    #[must_use]
    pub const fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// Leaves out blocks that end before `at`, without decoding them.
    pub const fn skip_before(&mut self, at: Instant) {
        self.skip_before = at;
    }

    /// Returns the next request; `None` at the end.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the trace is damaged, or for an I/O error.
    #[inline]
    pub fn next_request(&mut self) -> Result<Option<Request>, ReadError> {
        while self.next == self.block.len() {
            if !self.next_block()? {
                return Ok(None);
            }
        }
        let request = self.block.get(self.next).copied();
        self.next += 1;
        Ok(request)
    }

    /// Reads on to the next block; returns false at the end.
    fn next_block(&mut self) -> Result<bool, ReadError> {
        self.block.clear();
        self.next = 0;
        while self.ending.is_none() {
            let start = self.offset;
            match self.frame()? {
                Frame::Cut(left_over) => self.ending = Some(Ending::Cut { left_over }),
                Frame::Bad(reason) => return Err(self.damaged(start, reason)),
                Frame::Whole(tag::DATA) => match self.data() {
                    Ok(true) => return Ok(true),
                    Ok(false) => {}
                    Err(reason) => {
                        self.block.clear();
                        return Err(self.damaged(start, reason));
                    }
                },
                Frame::Whole(tag::NAME) => {
                    let names: Result<Vec<Name>, _> = serde_json::from_slice(&self.payload);
                    let names = names.map_err(|error| self.damaged(start, &error.to_string()))?;
                    self.declare(names).map_err(|reason| self.damaged(start, reason))?;
                }
                Frame::Whole(tag::END) => {
                    self.ending = Some(self.end(start)?);
                }
                Frame::Whole(_) => {}
            }
        }
        Ok(false)
    }

    /// Takes the names of devices.
    fn declare(&mut self, names: Vec<Name>) -> Result<(), &'static str> {
        for Name { name } in names {
            self.names += name.len();
            if name.len() > MAX_NAME || self.names > MAX_NAMES {
                return Err("the names of its devices are longer than they may be");
            }
            if self.devices.len() == MAX_DEVICES {
                return Err("it has too many devices");
            }
            self.devices.push(name);
        }
        Ok(())
    }

    /// Takes the end mark, which began at `start`. Nothing may follow it.
    fn end(&mut self, start: u64) -> Result<Ending, ReadError> {
        let end: Result<End, _> = serde_json::from_slice(&self.payload);
        let end = end.map_err(|error| self.damaged(start, &error.to_string()))?;
        if end.requests != self.before {
            let reason = format!(
                "it says that it has {} requests, but there are {}",
                end.requests, self.before
            );
            return Err(self.damaged(start, &reason));
        }
        if fill(&mut self.input, &mut [0])? > 0 {
            return Err(self.damaged(self.offset, "bytes follow the end mark"));
        }
        Ok(match end.lost {
            0 => Ending::Complete,
            lost => Ending::Lossy { lost },
        })
    }

    /// Takes a block; returns whether it is wanted.
    fn data(&mut self) -> Result<bool, &'static str> {
        let mut input = Input(&self.payload);
        let extent = Extent::read(&mut input)?;
        if extent.first < self.last {
            return Err("a block begins before the end of the one before");
        }
        let is_wanted = extent.last >= self.skip_before;
        if is_wanted {
            self.decoder.decode(extent, input, self.devices.len(), &mut self.block)?;
        }
        self.last = extent.last;
        self.before += extent.count as u64;
        Ok(is_wanted)
    }

    fn damaged(&self, at: u64, reason: &str) -> ReadError {
        let (before, last) = (self.before, self.last);
        ReadError::Damaged { at, reason: reason.to_owned(), before, last }
    }

    /// Reads a frame into `payload`.
    fn frame(&mut self) -> Result<Frame, ReadError> {
        let mut head = [0; 8];
        let read = fill(&mut self.input, &mut head)?;
        if read < head.len() {
            return Ok(Frame::Cut(read as u64));
        }
        let [tag @ .., a, b, c, d] = head;
        let length = u32::from_le_bytes([a, b, c, d]);
        if length > MAX_PAYLOAD {
            return Ok(Frame::Bad("a frame is longer than it may be"));
        }
        let wanted = u64::from(length) + 4;
        self.payload.clear();
        // It grows as far as there are bytes, whatever the length says.
        let read = (&mut self.input).take(wanted).read_to_end(&mut self.payload)? as u64;
        if read < wanted {
            return Ok(Frame::Cut(8 + read));
        }
        let Some((payload, sum)) = self.payload.split_last_chunk::<4>() else {
            return Ok(Frame::Bad("a frame has no checksum"));
        };
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&head);
        checksum.update(payload);
        if checksum.finalize() != u32::from_le_bytes(*sum) {
            return Ok(Frame::Bad("the checksum is wrong"));
        }
        self.payload.truncate(length as usize);
        self.offset += 8 + wanted;
        Ok(Frame::Whole(tag))
    }
}

impl<R: Read> ReadTrace for Reader<R> {
    fn next_request(&mut self) -> Result<Option<Request>, TraceError> {
        Ok(Self::next_request(self)?)
    }

    fn devices(&self) -> &[String] {
        Self::devices(self)
    }

    fn skip_before(&mut self, at: Instant) {
        Self::skip_before(self, at);
    }

    fn notes(&self) -> Vec<String> {
        let ending = self.ending.filter(|ending| *ending != Ending::Complete);
        ending.map(|ending| ending.to_string()).into_iter().collect()
    }
}

fn check_signature(found: &[u8]) -> Result<(), ReadError> {
    if found == SIGNATURE {
        return Ok(());
    }
    let (name, _) = SIGNATURE.split_at(SIGNATURE.len() - 1);
    match found.strip_prefix(name) {
        Some(version) if !version.is_empty() => {
            Err(ReadError::Version { found: String::from_utf8_lossy(version).into_owned() })
        }
        _ => Err(ReadError::NotATrace),
    }
}

/// Reads until `into` is full or the input ends.
fn fill(input: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(room) = into.get_mut(filled..).filter(|room| !room.is_empty()) {
        match input.read(room) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
