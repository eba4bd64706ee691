//! Writes frames.

use super::block::BlockEncoder;
use super::error::WriteError;
use super::{BLOCK, End, Header, MAX_DEVICES, MAX_NAME, MAX_NAMES, Name, SIGNATURE, tag};
use crate::request::{Kind, Request};
use serde::Serialize;
use std::io::Write;

/// A writer of traces that holds one block at a time.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    encoder: BlockEncoder,
    block: Vec<Request>,
    devices: usize,
    /// Declared devices that are not written.
    names: Vec<Name>,
    /// Bytes of the names of all devices.
    name_bytes: usize,
    requests: u64,
    bytes: u64,
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    ///
    /// # Errors
    ///
    /// [`WriteError::Io`].
    pub fn new(mut out: W, header: &Header) -> Result<Self, WriteError> {
        out.write_all(&SIGNATURE)?;
        let mut writer = Self {
            out,
            encoder: BlockEncoder::new(),
            block: Vec::with_capacity(BLOCK),
            devices: 0,
            names: Vec::new(),
            name_bytes: 0,
            requests: 0,
            bytes: SIGNATURE.len() as u64,
        };
        writer.document(tag::HEAD, header)?;
        Ok(writer)
    }

    /// Declares a device and returns its number.
    ///
    /// # Errors
    ///
    /// [`WriteError::TooManyDevices`], or [`WriteError::LongName`].
    pub fn device(&mut self, name: &str) -> Result<u32, WriteError> {
        let number = u32::try_from(self.devices).map_err(|_| WriteError::TooManyDevices)?;
        if self.devices == MAX_DEVICES {
            return Err(WriteError::TooManyDevices);
        }
        let (len, before) = (name.len(), self.name_bytes);
        if len > MAX_NAME || before + len > MAX_NAMES {
            return Err(WriteError::LongName { len, before });
        }
        self.name_bytes += len;
        self.devices += 1;
        self.names.push(Name { name: name.to_owned() });
        Ok(number)
    }

    /// Appends a request. The offset and length of a flush are not kept.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the request does not fit the trace, or for an I/O error.
    pub fn request(&mut self, request: &Request) -> Result<(), WriteError> {
        let Request { at, device, kind, offset, len, .. } = *request;
        if let Some(before) = self.block.last().map(|last| last.at).filter(|last| *last > at) {
            return Err(WriteError::Backwards { at, before });
        }
        if device as usize >= self.devices {
            return Err(WriteError::NoDevice { device, known: self.devices });
        }
        if offset.checked_add(len).is_none() {
            return Err(WriteError::TooFar { offset, len });
        }
        let is_flush = kind == Kind::Flush;
        let (offset, len) = if is_flush { (0, 0) } else { (offset, len) };
        self.block.push(Request { offset, len, ..*request });
        // The last request stays, for the order of the next one.
        if self.block.len() > BLOCK {
            let last = self.block.pop();
            self.write_block()?;
            self.block.extend(last);
        }
        Ok(())
    }

    /// Writes everything that is held, as a block of its own.
    ///
    /// # Errors
    ///
    /// [`WriteError::Io`].
    pub fn flush(&mut self) -> Result<(), WriteError> {
        let last = self.block.last().copied();
        if self.block.len() > 1 {
            self.block.pop();
            self.write_block()?;
            self.block.extend(last);
        }
        Ok(self.out.flush()?)
    }

    /// Writes the end, with the number of requests that the recorder had to leave out, and returns
    /// the output.
    ///
    /// # Errors
    ///
    /// [`WriteError::Io`].
    pub fn finish(mut self, lost: u64) -> Result<W, WriteError> {
        self.write_block()?;
        let end = End { requests: self.requests, lost };
        self.document(tag::END, &end)?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Writes what is held without an end, since the trace is a copy of one that was cut off, and
    /// returns the output.
    ///
    /// # Errors
    ///
    /// [`WriteError::Io`].
    pub fn finish_cut(mut self) -> Result<W, WriteError> {
        self.write_block()?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Returns the number of requests so far.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.requests + self.block.len() as u64
    }

    /// Returns the number of bytes written so far.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    fn write_block(&mut self) -> Result<(), WriteError> {
        if !self.names.is_empty() {
            let names = std::mem::take(&mut self.names);
            self.document(tag::NAME, &names)?;
        }
        if self.block.is_empty() {
            return Ok(());
        }
        let mut payload = Vec::new();
        self.encoder.encode(&self.block, &mut payload);
        self.requests += self.block.len() as u64;
        self.block.clear();
        self.frame(tag::DATA, &payload)
    }

    fn document(&mut self, tag: [u8; 4], document: &impl Serialize) -> Result<(), WriteError> {
        let payload = serde_json::to_vec(document).map_err(std::io::Error::from)?;
        self.frame(tag, &payload)
    }

    fn frame(&mut self, tag: [u8; 4], payload: &[u8]) -> Result<(), WriteError> {
        // A block has at most 2^16 requests of less than 64 bytes, and names are limited.
        let length = u32::try_from(payload.len()).map_err(std::io::Error::other)?;
        let mut head = [0; 8];
        head[..4].copy_from_slice(&tag);
        head[4..].copy_from_slice(&length.to_le_bytes());
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&head);
        checksum.update(payload);
        self.out.write_all(&head)?;
        self.out.write_all(payload)?;
        self.out.write_all(&checksum.finalize().to_le_bytes())?;
        self.bytes += 12 + u64::from(length);
        Ok(())
    }
}
