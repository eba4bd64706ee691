//! Clients over NBD that know the content of their blocks.

use super::shared::{Shared, count};
use crate::error::XtaskError;
use std::sync::Arc;
use std::thread::JoinHandle;
use weir_client::Connection;
use weir_random::Rng;
use weir_wall::Clock;

const BLOCK: usize = 4096;
/// Requests in flight of a client, at most.
const DEPTH: u64 = 12;
/// Blocks of a request, at most.
const LONGEST: u64 = 8;
/// Blocks that are written or read at once before and after the load.
const AT_ONCE: usize = 256;
/// Batches of requests before a client connects anew, at most.
const STAY: u64 = 200;

/// A client with a part of the blocks of an export.
pub(super) struct Client {
    shared: Arc<Shared>,
    export: &'static str,
    connection: Connection,
    first: usize,
    /// The stamp of each block's content; 0 is zeros.
    blocks: Vec<u64>,
    stamp: u64,
    rng: Rng,
}

/// A request: its first block and the number of blocks.
#[derive(Debug, Clone, Copy)]
enum Sent {
    Change,
    Flush,
    Read { at: usize, count: usize },
}

impl Client {
    pub(super) fn open(
        shared: &Arc<Shared>,
        export: &'static str,
        (first, blocks): (usize, usize),
        rng: &mut Rng,
    ) -> Result<Self, XtaskError> {
        let connection = connect(shared, export).map_err(XtaskError::Lost)?;
        Ok(Self {
            shared: Arc::clone(shared),
            export,
            connection,
            first,
            blocks: vec![0; blocks],
            stamp: 0,
            rng: Rng::new(&[rng.next_u64()]),
        })
    }

    pub(super) fn start(self) -> JoinHandle<()> {
        let shared = Arc::clone(&self.shared);
        let export = self.export;
        shared.spawn(export, move || self.run())
    }

    fn run(mut self) -> Result<(), String> {
        self.fill()?;
        while !self.shared.is_over() {
            for _ in 0..self.rng.within(1, STAY) {
                if self.shared.is_over() {
                    break;
                }
                self.batch().map_err(|what| format!("client of {}: {what}", self.export))?;
            }
            let next = connect(&self.shared, self.export)?;
            let last = std::mem::replace(&mut self.connection, next);
            // The other half leave without a word.
            if self.rng.flip() {
                last.close().map_err(|error| error.to_string())?;
            }
        }
        self.check_all()
    }

    /// Writes all blocks, so that the space that they take is that of a volume in use.
    fn fill(&mut self) -> Result<(), String> {
        for first in (0..self.blocks.len()).step_by(AT_ONCE) {
            let last = self.blocks.len().min(first + AT_ONCE);
            let data = self.give(first, last - first);
            let offset = ((self.first + first) * BLOCK) as u64;
            self.connection.write(offset, &data).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Gives blocks a new content and returns it.
    fn give(&mut self, at: usize, count: usize) -> Vec<u8> {
        let mut data = Vec::with_capacity(count * BLOCK);
        for block in &mut self.blocks[at..at + count] {
            self.stamp += 1;
            *block = self.stamp;
            data.extend(content(self.stamp));
        }
        data
    }

    /// Sends some requests for different blocks, and waits for their answers.
    fn batch(&mut self) -> Result<(), String> {
        let mut sent = Vec::new();
        let mut taken = std::collections::BTreeSet::new();
        let clock = Clock::start();
        for _ in 0..=self.rng.below(DEPTH) {
            let at = self.rng.index(self.blocks.len());
            let longest = usize::try_from(self.rng.within(1, LONGEST)).unwrap_or(1);
            let longest = longest.min(self.blocks.len() - at);
            let count = (at..at + longest).take_while(|block| !taken.contains(block)).count();
            if count == 0 {
                continue;
            }
            taken.extend(at..at + count);
            let request = self.send((at, count), sent.len() as u64);
            sent.push(request.map_err(|error| error.to_string())?);
        }
        self.connection.flush_out().map_err(|error| error.to_string())?;
        let (mut latencies, mut wrong) = (Vec::new(), None);
        let Self { connection, blocks, shared, .. } = self;
        while connection.in_flight() > 0 {
            let received = connection.receive(|cookie, answer| {
                latencies.push(clock.now().since(weir_units::Instant::ZERO));
                let request = usize::try_from(cookie).ok().and_then(|at| sent.get(at).copied());
                let checked = match (answer, request) {
                    (Ok(data), Some(Sent::Read { at, count })) => {
                        compare(data, &blocks[at..at + count], shared)
                    }
                    (Ok(_), Some(Sent::Change | Sent::Flush)) => Ok(()),
                    (Ok(_), None) => {
                        Err(format!("an answer to request {cookie}, which was not sent"))
                    }
                    (Err(errno), _) => Err(format!("{request:?} failed: {errno:?}")),
                };
                wrong = wrong.take().or(checked.err());
            });
            received.map_err(|error| error.to_string())?;
        }
        self.shared.add_latencies(&mut latencies);
        wrong.map_or(Ok(()), Err)
    }

    /// Sends a request for blocks that no other request in flight is for.
    fn send(
        &mut self,
        (at, count): (usize, usize),
        cookie: u64,
    ) -> Result<Sent, weir_client::ClientError> {
        let offset = ((self.first + at) * BLOCK) as u64;
        let length = u32::try_from(count * BLOCK).unwrap_or(u32::MAX);
        match self.rng.below(20) {
            0 => self.connection.queue_flush(cookie).map(|()| Sent::Flush),
            1 => {
                self.blocks[at..at + count].fill(0);
                self.connection.queue_trim(cookie, offset, length).map(|()| Sent::Change)
            }
            2..=10 => {
                let data = self.give(at, count);
                let fua = self.rng.chance(10);
                self.connection.queue_write(cookie, offset, &data, fua).map(|_| Sent::Change)
            }
            _ => {
                self.connection.queue_read(cookie, offset, length)?;
                Ok(Sent::Read { at, count })
            }
        }
    }

    /// Reads all blocks at the end.
    fn check_all(&mut self) -> Result<(), String> {
        for (number, blocks) in self.blocks.chunks(AT_ONCE).enumerate() {
            let mut data = vec![0; blocks.len() * BLOCK];
            let offset = ((self.first + number * AT_ONCE) * BLOCK) as u64;
            self.connection.read(offset, &mut data).map_err(|error| error.to_string())?;
            compare(&data, blocks, &self.shared)?;
        }
        Ok(())
    }
}

fn connect(shared: &Shared, export: &str) -> Result<Connection, String> {
    let uri = format!("nbd+unix:///{export}?socket={}", shared.folder.join("nbd").display());
    let uri = uri.parse().map_err(|error| format!("{uri}: {error}"))?;
    count(&shared.counts.connections);
    Connection::open(&uri).map_err(|error| error.to_string())
}

/// Returns the content with a stamp.
fn content(stamp: u64) -> Vec<u8> {
    stamp.to_le_bytes().repeat(BLOCK / 8)
}

/// Compares what was read with the stamps of its blocks.
fn compare(data: &[u8], blocks: &[u64], shared: &Shared) -> Result<(), String> {
    if data.len() != blocks.len() * BLOCK {
        return Err(format!("{} bytes were read instead of {}", data.len(), blocks.len() * BLOCK));
    }
    for (found, stamp) in data.chunks(BLOCK).zip(blocks) {
        if found != content(*stamp) {
            let first = found.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
            return Err(format!("a block has content {first:?} instead of {stamp}, or is torn"));
        }
        count(&shared.counts.checked);
    }
    Ok(())
}
