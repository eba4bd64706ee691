//! A thread that encodes one chunk while the next is filled.

use super::column::Encoder;
use crate::columns::Chunk;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use weir_bytes::put;

/// A chunk and its encoded payload.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) chunk: Chunk,
    pub(super) payload: Vec<u8>,
}

impl Work {
    /// Encodes the chunk.
    pub(super) fn encode(&mut self, encoder: &mut Encoder) {
        let (chunk, payload) = (&self.chunk, &mut self.payload);
        payload.clear();
        put(payload, chunk.times.len() as u64);
        let times = chunk.times.iter().map(|at| Some(at.nanos().cast_signed()));
        encoder.column(&times.collect(), payload);
        for (column, series) in chunk.columns.iter().zip(0_u64..) {
            if column.iter().any(|value| value.is_some()) {
                put(payload, series);
                encoder.column(column, payload);
            }
        }
    }
}

/// A thread that encodes chunks; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Beside {
    work: SyncSender<Work>,
    done: Receiver<Work>,
    is_busy: bool,
}

impl Beside {
    /// Starts the thread, if the system allows it.
    pub(super) fn start() -> io::Result<Self> {
        let (work, todo) = sync_channel::<Work>(1);
        let (finished, done) = sync_channel(1);
        thread::Builder::new().name("encode".to_owned()).spawn(move || {
            let mut encoder = Encoder::new();
            for mut own in todo {
                own.encode(&mut encoder);
                if finished.send(own).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { work, done, is_busy: false })
    }

    /// Hands over a chunk. The caller has taken the previous one before.
    pub(super) fn give(&mut self, work: Work) -> io::Result<()> {
        self.is_busy = true;
        self.work.send(work).map_err(|_| ended())
    }

    /// Returns the last chunk, encoded, unless it was taken before.
    pub(super) fn take(&mut self) -> io::Result<Option<Work>> {
        if !std::mem::take(&mut self.is_busy) {
            return Ok(None);
        }
        self.done.recv().map(Some).map_err(|_| ended())
    }
}

fn ended() -> io::Error {
    io::Error::other("the thread that encodes it has ended")
}
