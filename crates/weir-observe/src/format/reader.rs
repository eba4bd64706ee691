//! Reads frames, chunk by chunk, and leaves out those that are damaged.

use super::column::Decoder;
use super::error::ReadError;
use super::{End, MAX_PAYLOAD, MAX_SAMPLES, MAX_VALUES, SIGNATURE, tag};
use crate::columns::{Chunk, Column, Note};
use crate::header::{Checked, Contents, Header};
use std::fmt;
use std::io::{self, Cursor, Read};
use weir_bytes::{Input, Wrong};
use weir_units::Instant;

/// Bytes of a frame before its payload: tag and length.
const HEAD: usize = 8;

/// The end of an observation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// The observed run or recording ended normally.
    Complete,
    /// It was interrupted; everything until then is in the file.
    Interrupted,
    /// There is no end mark: the writer was killed or is still writing. All chunks that it
    /// completed are in the file.
    Cut {
        /// Bytes of an incomplete chunk.
        left_over: u64,
    },
    /// Damaged blocks are left out. Everything else is read.
    Gaps {
        /// Number of damaged blocks.
        blocks: u64,
        /// Offset of the first one in the file.
        at: u64,
        /// Number of samples in them; `None` if there is no end mark.
        samples: Option<u64>,
    },
    /// The file is damaged from an offset on. Everything before it is read.
    Damaged {
        /// Offset in the file.
        at: u64,
        /// Description of the damage.
        reason: String,
    },
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => f.write_str("complete"),
            Self::Interrupted => f.write_str("interrupted; all samples until then are present"),
            Self::Cut { left_over } => {
                f.write_str("no end mark: its writer was killed, or is still writing")?;
                match left_over {
                    0 => Ok(()),
                    n => write!(
                        f,
                        "; {n} bytes at the end are an incomplete chunk and are left \
                                    out"
                    ),
                }
            }
            Self::Gaps { blocks, at, samples } => {
                let (s, are) = if *blocks == 1 { ("", "is") } else { ("s", "are") };
                write!(f, "{blocks} damaged block{s}, the first at byte {at}, {are} left out")?;
                match samples {
                    Some(samples) => write!(f, " with {samples} samples"),
                    None => {
                        f.write_str("; no end mark: its writer was killed, or is still writing")
                    }
                }
            }
            Self::Damaged { at, reason } => {
                write!(f, "damaged at byte {at}: {reason}; the rest is left out")
            }
        }
    }
}

/// The offset, the tag and the payload of a frame.
type Placed = (u64, [u8; 4], Vec<u8>);

/// A frame, or the reason why there is none.
enum Frame {
    Whole([u8; 4], Vec<u8>),
    /// The file ended inside the frame, after these bytes.
    Cut(Vec<u8>),
    /// The frame is damaged: the reason, and its bytes as far as they were read.
    Bad(String, Vec<u8>),
}

/// The input, before it bytes that are read again.
struct Source<R> {
    again: Cursor<Vec<u8>>,
    rest: R,
}

impl<R> fmt::Debug for Source<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("again", &self.again.get_ref().len()).finish_non_exhaustive()
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.again.read(buffer)? {
            0 => self.rest.read(buffer),
            some => Ok(some),
        }
    }
}

/// The damaged blocks so far.
#[derive(Debug, Default)]
struct Lost {
    blocks: u64,
    first: u64,
}

/// A reader of observations that holds one chunk at a time.
#[derive(Debug)]
pub struct Reader<R> {
    input: Source<R>,
    /// Bytes read.
    offset: u64,
    header: Header,
    checked: Checked,
    notes: Vec<Note>,
    last: Option<Instant>,
    samples: u64,
    ending: Option<Ending>,
    lost: Lost,
    decoder: Decoder,
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
        let mut offset = SIGNATURE.len() as u64;
        let damaged = |reason: String| ReadError::Header { reason };
        let header: Header = match frame(&mut input, &mut offset)? {
            Frame::Whole(tag::HEAD, payload) => {
                serde_json::from_slice(&payload).map_err(|error| damaged(error.to_string()))?
            }
            Frame::Whole(..) => return Err(damaged("it is not where it should be".to_owned())),
            Frame::Cut(_) => return Err(damaged("the file ends in it".to_owned())),
            Frame::Bad(reason, _) => return Err(damaged(reason)),
        };
        let mut checked = Checked::default();
        checked.extend(&header.contents).map_err(|error| damaged(error.to_string()))?;
        Ok(Self {
            input: Source { again: Cursor::default(), rest: input },
            offset,
            header,
            checked,
            notes: Vec::new(),
            last: None,
            samples: 0,
            ending: None,
            lost: Lost::default(),
            decoder: Decoder::new(),
        })
    }

    /// Returns the header, with entities and series declared so far.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the entities and series declared so far.
    #[must_use]
    pub fn contents(&self) -> &Contents {
        &self.header.contents
    }

    /// Returns the notes read so far.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Returns the number of samples read so far.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Returns how the file ended; `None` while [`next_chunk`](Self::next_chunk) may return more.
    #[must_use]
    pub fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// Returns header, notes and ending, once everything is read.
    #[must_use]
    pub fn into_parts(self) -> (Header, Vec<Note>, Ending) {
        (self.header, self.notes, self.ending.unwrap_or(Ending::Cut { left_over: 0 }))
    }

    /// Returns the next chunk; `None` at the end.
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`] for an I/O error. A cut or damaged file is no error but an
    /// [`ending`](Self::ending).
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>, ReadError> {
        while let Some((start, tag, payload)) = self.whole()? {
            let taken = match tag {
                tag::DATA => match self.chunk(&payload) {
                    Ok(chunk) => return Ok(Some(chunk)),
                    Err(reason) => Err(reason.to_owned()),
                },
                _ => self.take(tag, &payload),
            };
            if let Err(reason) = taken {
                self.ending = Some(Ending::Damaged { at: start, reason });
            }
        }
        Ok(None)
    }

    /// Reads to the end without decoding chunks. Header, notes, ending and all declarations are
    /// known afterwards.
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`] for an I/O error.
    pub fn skip_to_end(&mut self) -> Result<(), ReadError> {
        while let Some((start, tag, payload)) = self.whole()? {
            let taken = match tag {
                tag::DATA => match Input(&payload).length() {
                    Ok(samples) => {
                        self.samples += samples as u64;
                        Ok(())
                    }
                    Err(reason) => Err(reason.to_owned()),
                },
                _ => self.take(tag, &payload),
            };
            if let Err(reason) = taken {
                self.ending = Some(Ending::Damaged { at: start, reason });
            }
        }
        Ok(())
    }

    /// Reads the next whole frame. Sets the ending if there is none.
    fn whole(&mut self) -> io::Result<Option<Placed>> {
        while self.ending.is_none() {
            let start = self.offset;
            let (bytes, ending) = match frame(&mut self.input, &mut self.offset)? {
                Frame::Whole(tag, payload) => return Ok(Some((start, tag, payload))),
                Frame::Cut(bytes) => {
                    let left_over = bytes.len() as u64;
                    let ending = match self.lost {
                        Lost { blocks: 0, .. } => Ending::Cut { left_over },
                        Lost { blocks, first } => Ending::Gaps { blocks, at: first, samples: None },
                    };
                    (bytes, ending)
                }
                Frame::Bad(reason, bytes) => (bytes, Ending::Damaged { at: start, reason }),
            };
            if self.pass_over(start, bytes)? {
                if self.lost.blocks == 0 {
                    self.lost.first = start;
                }
                self.lost.blocks += 1;
            } else {
                self.ending = Some(ending);
            }
        }
        Ok(None)
    }

    /// Goes to the next whole frame after a damaged one that begins at `start`, if that was a chunk or
    /// a note. Chunks after lost declarations could be misread.
    fn pass_over(&mut self, start: u64, mut bytes: Vec<u8>) -> io::Result<bool> {
        /// The most bytes in which a frame is looked for.
        const SEARCHED: u64 = 64 << 20;
        /// The most places that are tried.
        const TRIES: usize = 64;
        let is_like = |tag: [u8; 4]| bytes.iter().zip(tag).filter(|(a, b)| **a == *b).count() >= 3;
        if bytes.len() < HEAD || !(is_like(tag::DATA) || is_like(tag::NOTE)) {
            return Ok(false);
        }
        let end = HEAD + word(&bytes[4..HEAD]) as usize + 4;
        self.input.by_ref().take(SEARCHED).read_to_end(&mut bytes)?;
        let is_tag = |at: &usize| {
            let four = bytes.get(*at..*at + 4);
            four.is_some_and(|four| {
                [tag::DATA, tag::MORE, tag::NOTE, tag::END].iter().any(|t| t == four)
            })
        };
        let is_whole = |at: &usize| {
            let mut rest = &bytes[*at..];
            matches!(frame(&mut rest, &mut 0), Ok(Frame::Whole(..)))
        };
        // The place that the length says is right even if the file ends there, or in the next frame.
        let expected = Some(end).filter(|end| *end == bytes.len() || is_tag(end));
        let next = expected.or_else(|| (1..bytes.len()).filter(is_tag).take(TRIES).find(is_whole));
        let Some(next) = next else { return Ok(false) };
        self.offset = start + next as u64;
        self.input.again = Cursor::new(bytes.split_off(next));
        Ok(true)
    }

    /// Handles a frame other than a chunk.
    fn take(&mut self, tag: [u8; 4], payload: &[u8]) -> Result<(), String> {
        let said = |error: serde_json::Error| error.to_string();
        match tag {
            tag::MORE => {
                let more: Contents = serde_json::from_slice(payload).map_err(said)?;
                self.header.contents.entities.extend(more.entities);
                self.header.contents.series.extend(more.series);
                self.checked.extend(&self.header.contents).map_err(|error| error.to_string())
            }
            tag::NOTE => {
                self.notes.push(serde_json::from_slice(payload).map_err(said)?);
                Ok(())
            }
            tag::END => {
                let end: End = serde_json::from_slice(payload).map_err(said)?;
                if self.lost.blocks > 0
                    && let Some(samples) = end.samples.checked_sub(self.samples)
                {
                    let Lost { blocks, first } = self.lost;
                    self.ending = Some(Ending::Gaps { blocks, at: first, samples: Some(samples) });
                    return Ok(());
                }
                if end.samples != self.samples {
                    let (is, said) = (self.samples, end.samples);
                    return Err(format!("there are {is} samples and the end mark says {said}"));
                }
                let ending = if end.complete { Ending::Complete } else { Ending::Interrupted };
                self.ending = Some(ending);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn chunk(&mut self, payload: &[u8]) -> Result<Chunk, Wrong> {
        let mut input = Input(payload);
        let samples = input.length()?;
        let series = self.header.contents.series.len();
        if samples == 0 || samples > MAX_SAMPLES || samples.saturating_mul(series) > MAX_VALUES {
            return Err("a chunk has no samples, or more than it may");
        }
        let times = self.decoder.column(&mut input, samples)?;
        let times: Option<Vec<Instant>> =
            times.iter().map(|at| u64::try_from(at?).ok().map(Instant::from_nanos)).collect();
        let times = times.ok_or("a sample has no time")?;
        let mut before = self.last;
        for at in &times {
            if before.is_some_and(|before| before >= *at) {
                return Err("time goes back");
            }
            before = Some(*at);
        }
        let mut columns: Vec<Column> = Vec::with_capacity(series);
        while !input.is_empty() {
            let id = input.length()?;
            if id < columns.len() || id >= series {
                return Err("a column is of no series, or out of order");
            }
            columns.resize(id, Column::missing(samples));
            columns.push(self.decoder.column(&mut input, samples)?);
        }
        columns.resize(series, Column::missing(samples));
        self.last = before;
        self.samples += samples as u64;
        Ok(Chunk { times, columns })
    }
}

fn check_signature(found: &[u8]) -> Result<(), ReadError> {
    let name = SIGNATURE.len() - 1;
    match found {
        _ if found == SIGNATURE => Ok(()),
        [name_of @ .., version]
            if found.len() == SIGNATURE.len() && *name_of == SIGNATURE[..name] =>
        {
            Err(ReadError::Version { found: char::from(*version).to_string() })
        }
        _ => Err(ReadError::NotAnObservation),
    }
}

/// Reads the next frame.
fn frame(input: &mut impl Read, offset: &mut u64) -> io::Result<Frame> {
    let mut bytes = Vec::new();
    // Reads what exists, whatever length a damaged frame claims.
    let mut more = |bytes: &mut Vec<u8>, n: u64| -> io::Result<bool> {
        let got = input.by_ref().take(n).read_to_end(bytes)?;
        *offset += got as u64;
        Ok(got as u64 == n)
    };
    if !more(&mut bytes, HEAD as u64)? {
        return Ok(Frame::Cut(bytes));
    }
    let length = word(&bytes[4..]);
    if length > MAX_PAYLOAD {
        return Ok(Frame::Bad(format!("a part of {length} bytes is longer than any"), bytes));
    }
    if !more(&mut bytes, u64::from(length) + 4)? {
        return Ok(Frame::Cut(bytes));
    }
    let sum = bytes.split_off(bytes.len() - 4);
    if word(&sum) != crc32fast::hash(&bytes) {
        bytes.extend(sum);
        return Ok(Frame::Bad("a checksum does not fit".to_owned(), bytes));
    }
    let tag = [bytes[0], bytes[1], bytes[2], bytes[3]];
    Ok(Frame::Whole(tag, bytes.split_off(HEAD)))
}

fn word(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).rev().fold(0, |word, byte| word << 8 | u32::from(*byte))
}
