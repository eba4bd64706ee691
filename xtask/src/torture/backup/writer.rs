//! A client that writes a part of an export, and knows when each content was there.

use super::super::oracle::{self, BLOCK, Block, content};
use super::super::system::End;
use super::super::writers::Progress;
use super::moments::Moments;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_client::Connection;
use weir_random::Rng;

/// Blocks of a write, at most.
const LONGEST: u64 = 8;

/// Blocks of an export with their only writer, which has one request in flight.
pub(super) struct Writer {
    pub(super) export: String,
    /// The first of the blocks.
    pub(super) first: usize,
    pub(super) blocks: Vec<Block>,
    pub(super) moments: Vec<Moments>,
    pub(super) client: Option<Connection>,
    rng: Rng,
    stamp: u64,
    pub(super) writes: u64,
    pub(super) flushes: u64,
}

impl Writer {
    pub(super) fn new(export: &str, first: usize, blocks: usize, rng: &mut Rng) -> Self {
        Self {
            export: export.to_owned(),
            first,
            blocks: vec![Block::default(); blocks],
            moments: vec![Moments::default(); blocks],
            client: None,
            rng: Rng::new(&[rng.next_u64()]),
            stamp: rng.next_u64() >> 8,
            writes: 0,
            flushes: 0,
        }
    }

    /// Begins a round with the contents that are known.
    pub(super) fn begin(&mut self, client: Connection) {
        self.client = Some(client);
        self.moments = self.blocks.iter().map(Moments::begin).collect();
    }

    /// Writes, zeroes and flushes until the server is gone. Without an answer, a block may have the old content
    /// or the new one.
    pub(super) fn write(&mut self, clock: &AtomicU64, progress: &Progress) -> Result<(), String> {
        let mut client = self.client.take().ok_or("it has no connection")?;
        while !progress.is_over() {
            if self.rng.chance(8) {
                client.flush().map_err(|error| error.to_string())?;
                self.blocks.iter_mut().for_each(Block::promise);
                self.flushes += 1;
            } else {
                self.change(&mut client, clock).map_err(|error| error.to_string())?;
                self.writes += 1;
            }
            progress.count();
        }
        Ok(())
    }

    fn change(
        &mut self,
        client: &mut Connection,
        clock: &AtomicU64,
    ) -> Result<(), weir_client::ClientError> {
        let first = self.rng.index(self.blocks.len());
        let longest = usize::try_from(self.rng.within(1, LONGEST)).unwrap_or(1);
        let last = (first + longest).min(self.blocks.len());
        let clears = self.rng.chance(10);
        let now = clock.fetch_add(1, Ordering::SeqCst);
        let mut data = Vec::new();
        for at in first..last {
            self.stamp += 1;
            let stamp = if clears { 0 } else { self.stamp };
            self.blocks[at].give(stamp);
            self.moments[at].give(stamp, now);
            data.extend(content(stamp));
        }
        let offset = (self.first + first) as u64 * BLOCK;
        if clears {
            client.write_zeroes(offset, u32::try_from(data.len()).unwrap_or(0))?;
        } else {
            client.write(offset, &data)?;
        }
        let now = clock.fetch_add(1, Ordering::SeqCst);
        for at in first..last {
            self.blocks[at].answered = self.blocks[at].given.len();
            self.moments[at].answer(now);
        }
        Ok(())
    }

    /// Checks the content of its blocks after the end of a server. Returns how many of them had a promise.
    pub(super) fn check(&mut self, client: &mut Connection, end: End) -> Result<u64, String> {
        let base = self.first as u64 * BLOCK;
        let mut read = |at: u64, bytes: &mut [u8]| {
            client.read(base + at, bytes).map_err(|error| error.to_string())
        };
        let checked = oracle::check(&mut read, &mut self.blocks, end);
        checked.map_err(|what| format!("{} from block {}: {what}", self.export, self.first))
    }
}
