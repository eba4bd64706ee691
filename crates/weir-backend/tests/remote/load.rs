//! Writers that check what they read, while something goes wrong.

use super::common::Place;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;
use weir_backend::RemoteStore;
use weir_store::{Operation, Outcome, Store, StoreError, Then};

const WRITERS: u64 = 4;
const BLOCK: u64 = 4096;
/// Blocks of each writer.
const BLOCKS: u64 = 64;
/// The size of the disk.
pub(crate) const SIZE: u64 = WRITERS * BLOCKS * BLOCK;

/// The content that a block may have.
#[derive(Debug, Clone, Default)]
struct Block {
    /// The stamp of the last write that was answered.
    answered: u64,
    /// Stamps of later writes that failed, so they may be there or not.
    failed: Vec<u64>,
}

impl Block {
    fn may_hold(&self, stamp: u64) -> bool {
        stamp == self.answered || self.failed.contains(&stamp)
    }
}

/// Whether requests may fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Errors {
    /// None may.
    Never,
    /// Some may. What was answered has to be there nevertheless.
    Expected,
}

/// The result of a campaign.
#[derive(Debug)]
pub(crate) struct Tally {
    blocks: Vec<Block>,
    pub(crate) requests: u64,
    pub(crate) failed: u64,
}

impl Tally {
    /// Syncs, and checks that the file has everything that was answered, without the store's help.
    pub(crate) fn check_file(&self, store: RemoteStore, end: impl FnOnce(), place: &Place) {
        for (block, at) in self.blocks.iter().zip((0..).step_by(4096)) {
            let stamp = stamp_at(&store, at).expect("a read");
            assert!(block.may_hold(stamp), "{stamp} at {at}, expected {block:?}");
        }
        store.sync().expect("a sync");
        drop(store);
        end();
        let disk = std::fs::read(place.path("disk")).expect("the disk");
        for (block, bytes) in self.blocks.iter().zip(disk.chunks(4096)) {
            let stamp = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
            assert!(bytes == stamp.to_le_bytes().repeat(512), "a torn block");
            assert!(block.may_hold(stamp), "a flushed block is lost: {stamp}, expected {block:?}");
        }
    }
}

/// One of the writers.
struct Writer<'a> {
    store: &'a RemoteStore,
    number: u64,
    errors: Errors,
    failed: &'a AtomicU64,
}

impl Writer<'_> {
    /// Writes stamps to blocks of its own, reads them back, and flushes now and then.
    fn run(&self, ends: &AtomicBool, done: &AtomicU64) -> Vec<Block> {
        let mut blocks = vec![Block::default(); usize::try_from(BLOCKS).expect("small")];
        let (mut random, mut stamp) = (self.number + 1, 0_u64);
        while !ends.load(Ordering::Acquire) {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let number = random >> 33 & (BLOCKS - 1);
            let own = &mut blocks[usize::try_from(number).expect("small")];
            let at = (self.number * BLOCKS + number) * BLOCK;
            match random >> 60 {
                0..9 => {
                    stamp += 1;
                    let data = stamp.to_le_bytes().repeat(512).into();
                    let durably = random >> 40 & 1 == 1;
                    let write = Operation::Write { offset: at, data, durably };
                    self.settle(own, stamp, self.execute(write).map(drop));
                }
                9 => {
                    let trimmed = self.store.trim(at, BLOCK);
                    self.settle(own, 0, trimmed);
                }
                10 => drop(self.accept(self.execute(Operation::Sync))),
                _ => {
                    let read = self.execute(Operation::Read { offset: at, len: 4096 });
                    let read = read.map(|outcome| match outcome {
                        Outcome::Bytes(bytes) => stamp_of(&bytes, at),
                        other => panic!("a read came to {other:?}"),
                    });
                    if let Some(found) = self.accept(read) {
                        assert!(own.may_hold(found), "{found} at {at}, expected {own:?}");
                    }
                }
            }
            done.fetch_add(1, Ordering::Relaxed);
        }
        blocks
    }

    /// Executes an operation as a server does; every other writer waits in the store.
    fn execute(&self, operation: Operation) -> Result<Outcome, StoreError> {
        match self.number.is_multiple_of(2) {
            true => operation.run(self.store),
            false => execute_later(self.store, operation),
        }
    }

    fn settle(&self, block: &mut Block, stamp: u64, result: Result<(), StoreError>) {
        match self.accept(result) {
            Some(()) => *block = Block { answered: stamp, failed: Vec::new() },
            None => block.failed.push(stamp),
        }
    }

    fn accept<T>(&self, result: Result<T, StoreError>) -> Option<T> {
        if result.is_err() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        match self.errors {
            Errors::Never => Some(result.expect("no error")),
            Errors::Expected => result.ok(),
        }
    }
}

/// Executes an operation without a thread of its own, and waits for its result.
pub(crate) fn execute_later(
    store: &RemoteStore,
    operation: Operation,
) -> Result<Outcome, StoreError> {
    let asynchronous = store.asynchronous().expect("it is asynchronous");
    let (tell, told) = channel();
    let then = Then::new(move |result| drop(tell.send(result)));
    if let Some((operation, then)) = asynchronous.submit(operation, then) {
        then.call(operation.run(store));
    }
    asynchronous.kick();
    told.recv().expect("an answer")
}

/// Reads a block, which has to be whole.
fn stamp_at(store: &RemoteStore, at: u64) -> Result<u64, StoreError> {
    let mut found = vec![0; 4096];
    store.read_at(at, &mut found)?;
    Ok(stamp_of(&found, at))
}

fn stamp_of(block: &[u8], at: u64) -> u64 {
    let stamp = u64::from_le_bytes(block[..8].try_into().expect("eight bytes"));
    assert!(block == stamp.to_le_bytes().repeat(512), "a torn block at {at}");
    stamp
}

/// Disturbs writers `rounds` times, each time after `between` requests.
pub(crate) fn campaign(
    store: &RemoteStore,
    errors: Errors,
    (rounds, between): (u64, u64),
    mut disturb: impl FnMut(),
) -> Tally {
    let (ends, done, failed) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let blocks = std::thread::scope(|scope| {
        let (ends, done, failed) = (&ends, &done, &failed);
        let writers: Vec<_> = (0..WRITERS)
            .map(|number| {
                let writer = Writer { store, number, errors, failed };
                scope.spawn(move || writer.run(ends, done))
            })
            .collect();
        let wait = || {
            let before = done.load(Ordering::Relaxed);
            while done.load(Ordering::Relaxed) < before + between {
                if writers.iter().any(|writer| writer.is_finished()) {
                    ends.store(true, Ordering::Release);
                    panic!("a writer ended");
                }
                std::thread::park_timeout(Duration::from_millis(1));
            }
        };
        for _ in 0..rounds {
            wait();
            disturb();
        }
        wait();
        ends.store(true, Ordering::Release);
        writers.into_iter().flat_map(|writer| writer.join().expect("a writer")).collect()
    });
    Tally { blocks, requests: done.into_inner(), failed: failed.into_inner() }
}
