//! Blocking reads and writes of database files, for recovery.

use super::serving::ServedFile;
use crate::error::RunnerError;
use weir_client::{ClientError, Connection};
use weir_layout::files::Place;
use weir_oltp::Model;
use weir_proto::Errno;
use weir_units::Bytes;

/// Maximum bytes of a read.
pub(super) const PIECE: u64 = 1 << 20;
/// Maximum writes in flight.
const WRITES: usize = 32;

/// The files, data first and the log last, each with its own connection.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) served: Vec<ServedFile>,
    pub(super) connections: Vec<Connection>,
}

impl Files {
    /// Opens the files of the model among `all`.
    pub(super) fn open(model: &Model, all: &[ServedFile]) -> Result<Self, RunnerError> {
        let own = model.files().into_iter().map(|(file, _)| all[file as usize].clone());
        let served: Vec<ServedFile> = own.collect();
        let mut connections = Vec::new();
        for file in &served {
            let uri = file.uri.as_ref().map_err(|reason| RunnerError::NotServed {
                file: file.place.name.clone(),
                reason: reason.clone(),
            })?;
            let connection = Connection::open(uri)?;
            let Place { base, size, growth, .. } = &file.place;
            let end = base.get().saturating_add(size.get());
            let room = growth.and_then(|growth| Some((growth.room?, growth.most)));
            let grown = |(room, most): (Bytes, Bytes)| {
                room.get().saturating_add(most.get().saturating_sub(size.get()))
            };
            let end = room.map_or(end, |room| end.max(grown(room)));
            let size = connection.size();
            if end > size.get() {
                let (job, export) = (file.place.name.clone(), uri.export.clone());
                return Err(RunnerError::TooSmall { job, export, size, needed: Bytes::new(end) });
            }
            connections.push(connection);
        }
        Ok(Self { served, connections })
    }

    /// Returns the index of the log.
    pub(super) fn log(&self) -> usize {
        self.served.len() - 1
    }

    /// Reads `length` bytes at `offset` of a file.
    pub(super) fn read(
        &mut self,
        file: usize,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, RunnerError> {
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        let most = PIECE.min(self.connections[file].session().block.max_payload().into());
        let mut at = offset;
        for piece in bytes.chunks_mut(usize::try_from(most).unwrap_or(usize::MAX)) {
            let read = self.connections[file].read(self.served[file].place.address(at), piece);
            read.map_err(|error| self.failed(file, "read", at, piece.len() as u64, error))?;
            at += piece.len() as u64;
        }
        Ok(bytes)
    }

    /// Writes with FUA: all writes are durable when this returns.
    pub(super) fn write(
        &mut self,
        file: usize,
        writes: impl IntoIterator<Item = (u64, Vec<u8>)>,
    ) -> Result<(), RunnerError> {
        for (offset, bytes) in writes {
            let address = self.served[file].place.address(offset);
            let connection = &mut self.connections[file];
            connection.queue_write(offset, address, &bytes, true)?;
            if connection.in_flight() == WRITES {
                self.settle(file)?;
            }
        }
        self.settle(file)
    }

    /// Waits for all answers.
    fn settle(&mut self, file: usize) -> Result<(), RunnerError> {
        let connection = &mut self.connections[file];
        connection.flush_out()?;
        let mut failed: Option<(u64, Errno)> = None;
        while connection.in_flight() > 0 {
            connection.receive(|offset, answer| {
                failed = failed.or(answer.err().map(|errno| (offset, errno)));
            })?;
        }
        match failed {
            None => Ok(()),
            Some((offset, errno)) => {
                Err(self.failed(file, "write", offset, 0, ClientError::Failed(errno)))
            }
        }
    }

    fn failed(
        &self,
        file: usize,
        op: &'static str,
        offset: u64,
        length: u64,
        error: ClientError,
    ) -> RunnerError {
        match error {
            ClientError::Failed(errno) => {
                let file = self.served[file].place.name.clone();
                RunnerError::FileIo { file, op, offset, length, errno }
            }
            other => other.into(),
        }
    }
}
