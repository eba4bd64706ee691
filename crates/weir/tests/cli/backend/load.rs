//! Clients that write, read and flush while something is killed.

use crate::common::Place;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use weir_client::{ClientError, Connection};

const CLIENTS: u64 = 4;
/// Blocks of each client.
const BLOCKS: u64 = 64;
const BLOCK: u64 = 4096;
/// The bytes that all clients use.
pub(crate) const USED: u64 = CLIENTS * BLOCKS * BLOCK;

/// The stamps of a block: each write has a larger one than those before.
#[derive(Debug, Clone, Copy, Default)]
struct Stamps {
    flushed: u64,
    answered: u64,
    sent: u64,
}

/// A client's part of the volume.
#[derive(Debug)]
struct Part {
    number: u64,
    blocks: Vec<Stamps>,
    stamp: u64,
    random: u64,
}

impl Part {
    fn place(&self, block: usize) -> u64 {
        (self.number * BLOCKS + block as u64) * BLOCK
    }

    fn step(&mut self, client: &mut Connection) -> Result<(), ClientError> {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let block = usize::try_from(self.random >> 33 & (BLOCKS - 1)).expect("small");
        let at = self.place(block);
        match self.random >> 60 {
            0 => {
                client.flush()?;
                self.blocks.iter_mut().for_each(|own| own.flushed = own.answered);
            }
            1..=9 => {
                self.stamp += 1;
                self.blocks[block].sent = self.stamp;
                client.write(at, &self.stamp.to_le_bytes().repeat(512))?;
                self.blocks[block].answered = self.stamp;
            }
            _ => {
                let found = stamp_at(client, at)?;
                assert_eq!(found, self.blocks[block].answered, "the stamp at {at}");
            }
        }
        Ok(())
    }

    fn run(
        &mut self,
        mut client: Connection,
        ends: &AtomicBool,
        done: &AtomicU64,
    ) -> Result<(), ClientError> {
        while !ends.load(Ordering::Acquire) {
            self.step(&mut client)?;
            done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn stamp_at(client: &mut Connection, at: u64) -> Result<u64, ClientError> {
    let mut found = vec![0; 4096];
    client.read(at, &mut found)?;
    Ok(stamp_of(&found))
}

fn stamp_of(block: &[u8]) -> u64 {
    let stamp = u64::from_le_bytes(block[..8].try_into().expect("eight bytes"));
    assert!(block == stamp.to_le_bytes().repeat(512), "a torn block");
    stamp
}

/// All clients of the volume `data`.
#[derive(Debug)]
pub(crate) struct Load(Vec<Part>);

impl Load {
    /// Begins on a volume of zeros.
    pub(crate) fn new() -> Self {
        let part = |number| {
            let blocks = vec![Stamps::default(); usize::try_from(BLOCKS).expect("small")];
            Part { number, blocks, stamp: 0, random: number + 1 }
        };
        Self((0..CLIENTS).map(part).collect())
    }

    /// Runs all clients, disturbs them in the middle, and returns whether a request failed.
    pub(crate) fn disturbed(&mut self, place: &Place, disturb: impl FnOnce()) -> bool {
        const BEFORE: u64 = 200;
        let (ends, done) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let (ends, done) = (&ends, &done);
            let clients: Vec<_> = self
                .0
                .iter_mut()
                .map(|part| {
                    let client = place.open("data");
                    scope.spawn(move || part.run(client, ends, done))
                })
                .collect();
            let wait = || {
                let before = done.load(Ordering::Relaxed);
                let is_over = || clients.iter().any(|client| client.is_finished());
                while done.load(Ordering::Relaxed) < before + BEFORE && !is_over() {
                    std::thread::park_timeout(Duration::from_millis(1));
                }
            };
            wait();
            disturb();
            wait();
            ends.store(true, Ordering::Release);
            let results = clients.into_iter().map(|client| client.join().expect("a client"));
            results.filter(Result::is_err).count() > 0
        })
    }

    /// Checks after a loss of what was not flushed: each block has what was flushed, or newer content.
    /// Then that is flushed.
    pub(crate) fn check_flushed(&mut self, client: &mut Connection) {
        for part in &mut self.0 {
            for block in 0..part.blocks.len() {
                let found = stamp_at(client, part.place(block)).expect("a read");
                let Stamps { flushed, sent, .. } = part.blocks[block];
                assert!((flushed..=sent).contains(&found), "{found}, expected {flushed} to {sent}");
                part.blocks[block] = Stamps { flushed: found, answered: found, sent: found };
            }
        }
        client.flush().expect("a flush");
    }

    /// Checks that the disk has all that was answered. The last of it was flushed.
    pub(crate) fn check_disk(&self, disk: &[u8]) {
        let stamps = self.0.iter().flat_map(|part| &part.blocks);
        for (stamps, block) in stamps.zip(disk.chunks(4096)) {
            assert_eq!(stamp_of(block), stamps.answered, "a flushed block is lost");
        }
    }
}
