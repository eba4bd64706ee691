//! Writes frames: collects samples until they fill a chunk.

use super::beside::{Beside, Work};
use super::column::Encoder;
use super::error::WriteError;
use super::{End, MAX_PAYLOAD, MAX_VALUES, SIGNATURE, tag};
use crate::columns::{Column, Note};
use crate::header::{Checked, Contents, Header};
use serde::Serialize;
use std::io::Write;
use weir_units::Instant;

/// The samples in a chunk, with few series.
const SAMPLES: usize = 4096;
/// The values in a chunk, with many series: 32 MiB of memory.
const VALUES: usize = 1 << 22;
/// The least samples in a chunk, for which [`MAX_VALUES`] has room.
const MIN_SAMPLES: usize = 16;

const _: () = assert!(MIN_SAMPLES * crate::header::MAX_SERIES <= MAX_VALUES);

/// A writer of an observation, sample by sample. It holds at most two chunks: one that is being
/// filled, and one that a thread encodes.
///
/// All completed chunks but the last, and all [flushed](Self::flush) samples, are in the file
/// whatever happens afterwards. Without [`finish`](Self::finish), a reader reports that the file
/// has no end.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    contents: Contents,
    checked: Checked,
    /// The chunk that is being filled.
    work: Work,
    last: Option<Instant>,
    samples: u64,
    encoder: Encoder,
    beside: Option<Beside>,
}

impl<W: Write> Writer<W> {
    /// Begins an observation.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the header is inconsistent or cannot be written.
    pub fn new(mut out: W, header: &Header) -> Result<Self, WriteError> {
        let contents = header.contents.clone();
        let mut checked = Checked::default();
        checked.extend(&contents)?;
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend(frame(tag::HEAD, &json(header))?);
        out.write_all(&bytes)?;
        out.flush()?;
        let (work, encoder) = (Work::default(), Encoder::new());
        let mut writer =
            Self { out, contents, checked, work, last: None, samples: 0, encoder, beside: None };
        writer.make_room();
        Ok(writer)
    }

    /// Declares more entities and series, whose indices follow the existing ones.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if they are inconsistent with the existing ones, or cannot be written.
    pub fn declare(&mut self, more: &Contents) -> Result<(), WriteError> {
        let known = (self.contents.entities.len(), self.contents.series.len());
        self.contents.entities.extend(more.entities.iter().cloned());
        self.contents.series.extend(more.series.iter().cloned());
        if let Err(error) = self.checked.extend(&self.contents) {
            self.contents.entities.truncate(known.0);
            self.contents.series.truncate(known.1);
            self.checked = Checked::default();
            self.checked.extend(&self.contents)?;
            return Err(error.into());
        }
        let (samples, series) = (self.work.chunk.times.len(), self.contents.series.len());
        // One chunk per new series would take quadratic space.
        let is_full = samples.saturating_mul(series) > VALUES;
        if is_full {
            self.flush()?
        } else {
            self.collect().map(drop)?
        }
        self.frame(tag::MORE, &json(more))?;
        let samples = self.work.chunk.times.len();
        self.work.chunk.columns.resize_with(series, || Column::missing(samples));
        Ok(())
    }

    /// Appends a sample: one value per series, in their order.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if its length is wrong, if it is not later than the previous one, or if a
    /// full chunk cannot be written.
    pub fn sample(&mut self, at: Instant, row: &[Option<i64>]) -> Result<(), WriteError> {
        let series = self.contents.series.len();
        if row.len() != series {
            return Err(WriteError::SampleLength { values: row.len(), series });
        }
        if let Some(before) = self.last.filter(|before| *before >= at) {
            let (at_ns, before_ns) = (at.nanos(), before.nanos());
            return Err(WriteError::Backwards { at_ns, before_ns });
        }
        self.last = Some(at);
        self.samples += 1;
        let chunk = &mut self.work.chunk;
        chunk.times.push(at);
        for (column, value) in chunk.columns.iter_mut().zip(row) {
            column.push(*value);
        }
        let most = (VALUES / series.max(1)).clamp(MIN_SAMPLES, SAMPLES);
        if chunk.times.len() >= most { self.hand_over() } else { Ok(()) }
    }

    /// Hands a full chunk to the encoder thread.
    fn hand_over(&mut self) -> Result<(), WriteError> {
        let spare = self.collect()?.unwrap_or_default();
        if self.beside.is_none() {
            // If the system starts no thread, the chunk is encoded here.
            self.beside = Beside::start().ok();
        }
        let Some(beside) = &mut self.beside else { return self.flush() };
        beside.give(std::mem::replace(&mut self.work, spare))?;
        self.make_room();
        Ok(())
    }

    /// Writes the chunk that was handed over, and returns its memory.
    fn collect(&mut self) -> Result<Option<Work>, WriteError> {
        let done = self.beside.as_mut().map_or(Ok(None), Beside::take)?;
        if let Some(done) = &done {
            self.frame(tag::DATA, &done.payload)?;
            self.out.flush()?;
        }
        Ok(done)
    }

    /// Appends a note.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if it cannot be written.
    pub fn note(&mut self, note: &Note) -> Result<(), WriteError> {
        self.collect()?;
        self.frame(tag::NOTE, &json(note))
    }

    /// Writes pending samples as a chunk of their own. Small chunks take more space; once a minute
    /// is often enough.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if they cannot be written.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.collect()?;
        if self.work.chunk.times.is_empty() {
            return Ok(());
        }
        self.work.encode(&mut self.encoder);
        self.out.write_all(&frame(tag::DATA, &self.work.payload)?)?;
        self.out.flush()?;
        self.make_room();
        Ok(())
    }

    /// Writes pending samples and the end mark, which says whether the run is `complete`.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if it cannot be written.
    pub fn finish(mut self, complete: bool) -> Result<W, WriteError> {
        self.flush()?;
        self.frame(tag::END, &json(&End { samples: self.samples, complete }))?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn frame(&mut self, tag: [u8; 4], payload: &[u8]) -> Result<(), WriteError> {
        // In one write, so that an interruption cuts as little as possible.
        Ok(self.out.write_all(&frame(tag, payload)?)?)
    }

    /// Creates an empty chunk with a column per series.
    fn make_room(&mut self) {
        let chunk = &mut self.work.chunk;
        chunk.times.clear();
        chunk.columns.iter_mut().for_each(Column::clear);
        chunk.columns.resize(self.contents.series.len(), Column::default());
    }
}

/// Serializes headers and notes. They hold text, numbers, lists and maps with text keys, all of
/// which JSON can express.
fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

fn frame(tag: [u8; 4], payload: &[u8]) -> Result<Vec<u8>, WriteError> {
    let bytes = payload.len();
    let length = u32::try_from(bytes).ok().filter(|length| *length <= MAX_PAYLOAD);
    let length = length.ok_or(WriteError::TooLarge { bytes })?;
    let mut frame = Vec::with_capacity(bytes + 12);
    frame.extend(tag);
    frame.extend(length.to_le_bytes());
    frame.extend(payload);
    let sum = crc32fast::hash(&frame);
    frame.extend(sum.to_le_bytes());
    Ok(frame)
}
