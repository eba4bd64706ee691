//! Volumes that a server exports over NBD.

use super::target::{Target, TargetIo};
use crate::error::BackupError;
use crate::export::Export;
use crate::format::BackupId;
use crate::format::wire::is_zero;
use crate::mark::{HEAD, SECTOR, mark};
use crate::verify::Watch;
use weir_client::Connection;
use weir_proto::TransmissionFlags;

/// The longest single write or read, in bytes.
const REQUEST: usize = 1 << 20;
/// The longest range that is asked for, or zeroed, at once.
const RANGE: u64 = 1 << 30;

/// An export that a source is restored to.
#[derive(Debug, Clone)]
pub struct NbdTarget {
    export: Export,
    size: u64,
}

impl NbdTarget {
    /// Connects, and looks at the export.
    ///
    /// # Errors
    /// If no server answers, or the export cannot be written.
    pub fn connect(export: Export) -> Result<Self, BackupError> {
        let (connection, name) = (export.open()?, export.name());
        if connection.offers(TransmissionFlags::READ_ONLY) {
            return Err(BackupError::Refused(format!(
                "cannot restore to {name}: the server exports it for reading only"
            )));
        }
        let size = connection.size().get();
        if export.holds_backups()? {
            return Err(BackupError::Refused(format!(
                "cannot restore to {name}: it holds backups, which a restore never replaces; choose \
                 another target, or remove them with weir backup prune"
            )));
        }
        Ok(Self { size, export })
    }

    fn way(&self, most: usize) -> Result<NbdWay, BackupError> {
        let connection = self.export.open_sparse()?;
        let longest = connection.session().block.max_payload() as usize;
        let request = REQUEST.min(longest).min(most.max(1));
        let name = self.export.name().to_owned();
        Ok(NbdWay { connection, name, in_flight: 0, most, request, size: self.size })
    }

    /// Calls `on_data` with each range that may hold something else than zeros.
    fn ranges(
        &self,
        way: &mut NbdWay,
        watch: &Watch,
        mut on_data: impl FnMut(&mut NbdWay, u64, u64) -> Result<bool, BackupError>,
    ) -> Result<(), BackupError> {
        let mut at = 0;
        while at < self.size {
            watch.pass(0)?;
            let left = (self.size - at).min(RANGE);
            if !way.connection.has_extents() {
                if !on_data(way, at, left)? {
                    return Ok(());
                }
                at += left;
                continue;
            }
            let asked = u32::try_from(left).unwrap_or(1 << 30);
            let extents = way.connection.extents(at, asked);
            let extents = extents.map_err(BackupError::export(self.export.name()))?;
            for extent in extents {
                let length = u64::from(extent.length).min(self.size - at);
                if !extent.state.contains(weir_proto::BlockState::ZERO)
                    && length > 0
                    && !on_data(way, at, length)?
                {
                    return Ok(());
                }
                at += length;
            }
        }
        Ok(())
    }
}

impl Target for NbdTarget {
    fn name(&self) -> &str {
        self.export.name()
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn is_empty(&self, watch: &Watch) -> Result<bool, BackupError> {
        let mut way = self.way(REQUEST)?;
        let (mut empty, mut buffer) = (true, vec![0; way.request]);
        self.ranges(&mut way, watch, |way, offset, length| {
            let (mut at, end) = (offset, offset + length);
            while at < end {
                watch.pass(0)?;
                let part = usize::try_from(end - at).unwrap_or(usize::MAX).min(buffer.len());
                way.read(at, &mut buffer[..part])?;
                if !is_zero(&buffer[..part]) {
                    empty = false;
                    return Ok(false);
                }
                at += part as u64;
            }
            Ok(true)
        })?;
        Ok(empty)
    }

    fn begin(&self, id: BackupId) -> Result<Vec<u8>, BackupError> {
        // The sector with the mark first: the others are not whole without what it had.
        let (head, mut way) = (mark(id, self.size), self.way(REQUEST)?);
        let mut before = vec![0; head.len()];
        way.read(0, &mut before)?;
        let (first, rest) = head.split_at(SECTOR.min(head.len()));
        way.write(0, first)?;
        way.finish()?;
        way.write(SECTOR as u64, rest)?;
        way.finish()?;
        Ok(before)
    }

    fn unmark(&self, head: &[u8]) -> Result<(), BackupError> {
        // The sector with the mark last.
        let (first, rest) = head.split_at(SECTOR.min(head.len()));
        let mut way = self.way(REQUEST)?;
        way.write(SECTOR as u64, rest)?;
        way.finish()?;
        way.write(0, first)?;
        way.finish()
    }

    fn clear(&self, watch: &Watch) -> Result<(), BackupError> {
        let (mut way, mut zeroing) = (self.way(REQUEST)?, self.way(REQUEST)?);
        self.ranges(&mut way, watch, |_, offset, length| {
            let (start, end) = (offset.max(HEAD), offset.saturating_add(length));
            if start < end {
                zeroing.write_zeros(start, end - start)?;
            }
            Ok(true)
        })?;
        zeroing.finish()
    }

    fn open(&self, in_flight: usize) -> Result<Box<dyn TargetIo>, BackupError> {
        Ok(Box::new(self.way(in_flight)?))
    }

    fn publish(&self) -> Result<(), BackupError> {
        Ok(())
    }
}

/// A connection to the export.
struct NbdWay {
    connection: Connection,
    name: String,
    /// Bytes of writes that wait for an answer, and the most of them.
    in_flight: usize,
    most: usize,
    request: usize,
    size: u64,
}

impl NbdWay {
    /// Waits until at most this number of bytes of writes is unanswered.
    fn drain(&mut self, most: usize) -> Result<(), BackupError> {
        let mut refused = None;
        while self.in_flight > most {
            self.connection.flush_out().map_err(BackupError::export(&self.name))?;
            let answered = &mut self.in_flight;
            let received = self.connection.receive(|length, answer| {
                *answered -= usize::try_from(length).unwrap_or(0).min(*answered);
                if let Err(errno) = answer {
                    refused.get_or_insert(errno);
                }
            });
            received.map_err(BackupError::export(&self.name))?;
        }
        match refused {
            None => Ok(()),
            Some(errno) => Err(BackupError::Failed(format!(
                "writing to {}: the server answered {errno}",
                self.name
            ))),
        }
    }
}

impl TargetIo for NbdWay {
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), BackupError> {
        let mut at = offset;
        for part in data.chunks(self.request) {
            self.drain(self.most.saturating_sub(part.len()))?;
            // The cookie is the length: it says how much an answer is about.
            let queued = self.connection.queue_write(part.len() as u64, at, part, false);
            queued.map_err(BackupError::export(&self.name))?;
            self.in_flight += part.len();
            at += part.len() as u64;
        }
        // Answers that are there already are taken in by the next write.
        self.connection.flush_out().map(drop).map_err(BackupError::export(&self.name))
    }

    fn write_zeros(&mut self, offset: u64, length: u64) -> Result<(), BackupError> {
        let end = offset.saturating_add(length).min(self.size);
        let mut at = offset;
        let is_offered = self.connection.offers(TransmissionFlags::SEND_WRITE_ZEROES);
        let zeros = if is_offered { Vec::new() } else { vec![0; self.request] };
        while at < end {
            if is_offered {
                self.drain(0)?;
                let part = (end - at).min(RANGE);
                let own = u32::try_from(part).unwrap_or(1 << 30);
                self.connection.write_zeroes(at, own).map_err(BackupError::export(&self.name))?;
                at += u64::from(own);
            } else {
                let part = usize::try_from(end - at).unwrap_or(usize::MAX).min(zeros.len());
                self.write(at, &zeros[..part])?;
                at += part as u64;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), BackupError> {
        self.drain(0)?;
        if self.connection.offers(TransmissionFlags::SEND_FLUSH) {
            self.connection.flush().map_err(BackupError::export(&self.name))?;
        }
        Ok(())
    }

    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), BackupError> {
        self.drain(0)?;
        let mut at = offset;
        for part in data.chunks_mut(self.request) {
            self.connection.read(at, part).map_err(BackupError::export(&self.name))?;
            at += part.len() as u64;
        }
        Ok(())
    }
}
