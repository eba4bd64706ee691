//! The frames of one stripe, read in order, past whatever is damaged.

use crate::damage::{Damage, FrameDamage};
use crate::error::BackupError;
use crate::format::frame::FRAME_HEADER;
use crate::format::wire::is_zero;
use crate::format::{BackupId, FrameDecoder, FrameHeader, PAGE, StripeDigest, StripeSummary};
use crate::read_at::ReadAt;
use std::io;

/// How much is read at once, in bytes.
const CHUNK: usize = 2 << 20;

/// A consumer of the frames of a stripe.
pub trait FrameSink {
    /// Takes a sound frame. `raw` is its contents, `None` for zeros, and for encrypted contents
    /// without a key.
    ///
    /// # Errors
    /// Whatever ends the walk.
    fn frame(&mut self, header: &FrameHeader, raw: Option<&[u8]>) -> Result<(), BackupError>;

    /// Takes something that is damaged.
    ///
    /// # Errors
    /// Whatever ends the walk.
    fn damage(&mut self, damage: Damage) -> Result<(), BackupError>;

    /// Is told the number of bytes that the walk has advanced.
    ///
    /// # Errors
    /// [`BackupError::Interrupted`] ends the walk.
    fn passed(&mut self, bytes: u64) -> Result<(), BackupError>;

    /// Hears that all frames of the stripe were read.
    ///
    /// # Errors
    /// When something that the sink began cannot be completed.
    fn finish(&mut self) -> Result<(), BackupError> {
        Ok(())
    }
}

/// A stripe as it is known before its frames are read.
#[derive(Debug)]
pub(crate) struct About<'a> {
    pub(crate) id: BackupId,
    pub(crate) stripe: u8,
    pub(crate) name: &'a str,
    /// Where the frames end.
    pub(crate) end: u64,
    /// The sizes of the sources, if there is a manifest.
    pub(crate) sources: Option<&'a [u64]>,
    /// The stripe's entry in the manifest.
    pub(crate) summary: Option<&'a StripeSummary>,
}

/// A walk through the frames of a stripe.
pub(crate) struct Walk<'a> {
    about: About<'a>,
    window: Window<'a>,
    decoder: FrameDecoder,
    position: u64,
    /// The sequence of the next frame.
    sequence: u64,
    digest: StripeDigest,
    /// Frames whose headers are gone are not in the digest.
    is_partial: bool,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(about: About<'a>, bytes: &'a mut dyn ReadAt, decoder: FrameDecoder) -> Self {
        let window = Window { bytes, end: about.end, start: 0, buffer: Vec::new() };
        Self {
            about,
            window,
            decoder,
            position: PAGE,
            sequence: 0,
            digest: StripeDigest::default(),
            is_partial: false,
        }
    }

    /// Reads to the end of the frames.
    ///
    /// # Errors
    /// Those of the sink.
    pub(crate) fn run(mut self, sink: &mut dyn FrameSink) -> Result<(), BackupError> {
        while self.position < self.about.end {
            let before = self.position;
            match self.step(sink) {
                Ok(()) => sink.passed(self.position - before)?,
                Err(Stop::Backup(error)) => return Err(error),
                Err(Stop::Medium(error)) if error.kind() == io::ErrorKind::Interrupted => {
                    return Err(BackupError::Interrupted);
                }
                Err(Stop::Medium(error)) => {
                    let name = self.about.name.to_owned();
                    let (stripe, position) = (self.about.stripe, self.position);
                    let reason = error.to_string();
                    self.damage(sink, Damage::Unreadable { stripe, name, position, reason })?;
                    break;
                }
            }
        }
        if let Some(summary) = self.about.summary {
            if summary.frames > self.sequence {
                self.lost(sink, summary.frames)?;
            }
            if !self.is_partial && self.digest.summary() != *summary {
                let (stripe, name) = (self.about.stripe, self.about.name.to_owned());
                self.damage(sink, Damage::Digest { stripe, name })?;
            }
        }
        Ok(())
    }

    fn step(&mut self, sink: &mut dyn FrameSink) -> Result<(), Stop> {
        let position = self.position;
        let Some(header) = self.header_at(position)? else { return self.search(sink) };
        let length = header.frame_length();
        if header.address.sequence < self.sequence {
            self.position = position.saturating_add(length);
            let stripe = self.about.stripe;
            return Ok(self.damage(sink, Damage::Extra { stripe, position, length })?);
        }
        if header.address.sequence > self.sequence {
            self.lost(sink, header.address.sequence)?;
        }
        if length > self.about.end - position {
            self.pass(&header, &header.encode());
            self.position = self.about.end;
            return Ok(self.damage(sink, frame(&header, FrameDamage::Cut))?);
        }
        self.take(&header, position, sink)
    }

    /// Finds the next frame after a header that is damaged: by the copy of that header at the
    /// frame's end, or by the header of the frame after it.
    fn search(&mut self, sink: &mut dyn FrameSink) -> Result<(), Stop> {
        let (from, end) = (self.position, self.about.end);
        let mut at = from;
        while at < end {
            at = at.saturating_add(PAGE).min(end);
            if let Some(header) = self.header_at(at - FRAME_HEADER as u64)?
                && header.address.sequence >= self.sequence
                && header.frame_length() <= at - from
            {
                if header.address.sequence > self.sequence {
                    self.lost(sink, header.address.sequence)?;
                }
                return self.take(&header, at - header.frame_length(), sink);
            }
            if at < end
                && let Some(header) = self.header_at(at)?
                && header.address.sequence >= self.sequence
            {
                break;
            }
        }
        self.position = at;
        let next = if at < end { self.header_at(at)? } else { None };
        let next = next.map(|header| header.address.sequence);
        let next = next.or(self.about.summary.map(|summary| summary.frames));
        match next {
            Some(next) if next > self.sequence => self.lost(sink, next)?,
            _ => {
                let (stripe, length) = (self.about.stripe, at - from);
                self.damage(sink, Damage::Extra { stripe, position: from, length })?;
            }
        }
        Ok(())
    }

    /// Reads the frame at `start`, whose header is known.
    fn take(
        &mut self,
        header: &FrameHeader,
        start: u64,
        sink: &mut dyn FrameSink,
    ) -> Result<(), Stop> {
        let block = header.encode();
        let length = header.frame_length();
        self.pass(header, &block);
        self.position = start.saturating_add(length);
        let bytes = self.window.get(start, usize::try_from(length).map_err(too_long)?)?;
        let (front, rest) = bytes.split_at_mut(FRAME_HEADER);
        let (rest, end) = rest.split_at_mut(rest.len() - FRAME_HEADER);
        let (payload, padding) = rest.split_at_mut(header.stored_length as usize);
        let slight = if front != block {
            Some(FrameDamage::Header)
        } else if end != block {
            Some(FrameDamage::End)
        } else if !is_zero(padding) {
            Some(FrameDamage::Padding)
        } else {
            None
        };
        let is_inside = self.about.sources.is_none_or(|sizes| {
            let size = sizes.get(usize::from(header.address.source));
            let end = header.address.offset.saturating_add(header.raw_length);
            size.is_some_and(|size| end <= *size)
        });
        let decoded = match () {
            () if !is_inside => Err(FrameDamage::Outside),
            () if header.is_zeros => Ok(None),
            () => self.decoder.decode(header, payload).map_err(FrameDamage::Contents),
        };
        let damage = match decoded {
            Ok(raw) => {
                sink.frame(header, raw)?;
                slight
            }
            Err(fault) => Some(fault),
        };
        if let Some(fault) = damage {
            self.damage(sink, frame(header, fault))?;
        }
        Ok(())
    }

    /// Counts a frame whose header is known.
    fn pass(&mut self, header: &FrameHeader, block: &[u8; FRAME_HEADER]) {
        self.digest.add(header, &FrameHeader::checksum(block));
        self.sequence = header.address.sequence.saturating_add(1);
    }

    fn lost(&mut self, sink: &mut dyn FrameSink, next: u64) -> Result<(), BackupError> {
        let (stripe, first) = (self.about.stripe, self.sequence);
        (self.sequence, self.is_partial) = (next, true);
        self.damage(sink, Damage::Lost { stripe, first, count: next - first })
    }

    fn damage(&mut self, sink: &mut dyn FrameSink, damage: Damage) -> Result<(), BackupError> {
        self.is_partial |= matches!(damage, Damage::Unreadable { .. });
        sink.damage(damage)
    }

    /// Reads the header of a frame of this stripe.
    fn header_at(&mut self, at: u64) -> io::Result<Option<FrameHeader>> {
        if self.about.end.saturating_sub(at) < FRAME_HEADER as u64 {
            return Ok(None);
        }
        let header = FrameHeader::parse(self.window.get(at, FRAME_HEADER)?);
        let (id, stripe) = (self.about.id, self.about.stripe);
        Ok(header.filter(|header| header.id == id && header.address.stripe == stripe))
    }
}

fn frame(header: &FrameHeader, fault: FrameDamage) -> Damage {
    Damage::Frame { address: header.address, length: header.raw_length, fault }
}

fn too_long(_: std::num::TryFromIntError) -> Stop {
    Stop::Medium(io::ErrorKind::FileTooLarge.into())
}

/// Why a step ended early.
enum Stop {
    Backup(BackupError),
    Medium(io::Error),
}

impl From<BackupError> for Stop {
    fn from(error: BackupError) -> Self {
        Self::Backup(error)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Medium(error)
    }
}

/// A part of the stripe in memory, which moves on.
struct Window<'a> {
    bytes: &'a mut dyn ReadAt,
    end: u64,
    start: u64,
    buffer: Vec<u8>,
}

impl Window<'_> {
    /// Returns `length` bytes at `at`, which do not reach beyond the end.
    fn get(&mut self, at: u64, length: usize) -> io::Result<&mut [u8]> {
        let have = self.start.saturating_add(self.buffer.len() as u64);
        let wanted = at.saturating_add(length as u64);
        if at < self.start || wanted > have {
            let kept = if (self.start..have).contains(&at) { have - at } else { 0 };
            let kept = usize::try_from(kept).unwrap_or(0);
            let from = self.buffer.len() - kept;
            self.buffer.copy_within(from.., 0);
            self.start = at;
            let left = usize::try_from(self.end.saturating_sub(at)).unwrap_or(usize::MAX);
            let size = length.max(CHUNK).min(left);
            if size < length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.buffer.resize(size, 0);
            let read = self.bytes.read_at(at + kept as u64, &mut self.buffer[kept..]);
            if let Err(error) = read {
                self.buffer.clear();
                return Err(error);
            }
        }
        let from = usize::try_from(at - self.start).unwrap_or(usize::MAX);
        Ok(&mut self.buffer[from..from + length])
    }
}
