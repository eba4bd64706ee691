//! `kill -9` in the middle of writing: everything that a flush or FUA covered is
//! there when the server comes back.
//!
//! Each block's content tells when it was written. The client knows every content
//! that it gave to a block, in order, and the newest that a promise covers; after
//! the kill the block holds that one or a later one, whole.

use crate::common::Place;
use rustix::process::Signal;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use weir_client::Connection;

/// Writing back takes a while, so that a kill finds blocks that are only in the cache.
const LAYOUT: &str = r#"
[host]
unlimited = true
cache = { size = "64 MiB", dirty_limit = "1 MiB", writeback_after = "50ms" }
[[volume]]
name = "plain"
unlimited = true
size = "4 MiB"
[[volume]]
name = "cached"
limits = { iops = 20000 }
size = "4 MiB"
cache = "read-write"
[[stripe]]
name = "wide"
unit = "16 KiB"
volumes = { count = 4, unlimited = true, size = "1 MiB", cache = "read-write" }
"#;
const EXPORTS: [&str; 3] = ["plain", "cached", "wide"];
const BLOCK: u64 = 4096;
const BLOCKS: u64 = (4 << 20) / BLOCK;
/// Promises that the load waits for before the server is killed.
const PROMISES: usize = 60;
const ROUNDS: u64 = 3;

#[derive(Clone, Default)]
struct Block {
    /// Stamps in the order in which they were written.
    given: Vec<u64>,
    /// How many of them, at least, are known to have been answered.
    answered: usize,
    /// How many of them, at least, must survive: the last of these or a later one.
    promised: usize,
}

/// One client's load, and what it was promised.
struct Load {
    client: Connection,
    blocks: Vec<Block>,
    seed: u64,
}

/// A request that was sent, by its cookie.
#[derive(Clone)]
enum Sent {
    Write { block: usize, nth: usize, fua: bool },
    Flush { covers: Vec<usize> },
}

impl Load {
    fn random(&mut self, below: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.seed >> 33) % below
    }

    /// Writes and flushes until the server is gone; tells of each promise.
    fn run(mut self, promises: &Sender<()>) -> Vec<Block> {
        let mut stamp = self.seed;
        loop {
            let mut sent = Vec::new();
            // Covers what was answered before, not the writes beside it.
            let covers = self.blocks.iter().map(|block| block.answered).collect();
            sent.push(Sent::Flush { covers });
            let mut queued = self.client.queue_flush(0);
            for cookie in 1..24 {
                let block = usize::try_from(self.random(BLOCKS)).expect("small");
                let fua = self.random(8) == 0;
                stamp += 1;
                self.blocks[block].given.push(stamp);
                let nth = self.blocks[block].given.len();
                sent.push(Sent::Write { block, nth, fua });
                let data = stamp.to_le_bytes().repeat(512);
                let at = block as u64 * BLOCK;
                queued =
                    queued.and_then(|()| self.client.queue_write(cookie, at, &data, fua).map(drop));
            }
            queued.expect("fitting requests");
            if self.client.flush_out().is_err() {
                return self.blocks;
            }
            while self.client.in_flight() > 0 {
                let blocks = &mut self.blocks;
                let received = self.client.receive(|cookie, answer| {
                    answer.expect("no request fails");
                    note(blocks, &sent[usize::try_from(cookie).expect("small")]);
                    let _ = promises.send(());
                });
                if received.is_err() {
                    return self.blocks;
                }
            }
        }
    }
}

/// Takes note of an answer.
fn note(blocks: &mut [Block], sent: &Sent) {
    match sent {
        Sent::Write { block, nth, fua } => {
            let block = &mut blocks[*block];
            block.answered = block.answered.max(*nth);
            block.promised = block.promised.max(if *fua { *nth } else { 0 });
        }
        Sent::Flush { covers } => {
            for (block, answered) in blocks.iter_mut().zip(covers) {
                block.promised = block.promised.max(*answered);
            }
        }
    }
}

/// Checks every block; what it finds is what the next round begins with.
fn check(client: &mut Connection, blocks: &mut [Block], export: &str) {
    let mut promised = 0;
    for (at, block) in (0..).zip(blocks.iter_mut()) {
        let mut found = vec![0; 4096];
        client.read(at * BLOCK, &mut found).expect("a read");
        let stamp = u64::from_le_bytes(found[..8].try_into().expect("eight bytes"));
        assert!(found == stamp.to_le_bytes().repeat(512), "{export}: block {at} is torn");
        let never = block.promised == 0 && stamp == 0;
        let allowed = &block.given[block.promised.saturating_sub(1)..];
        assert!(
            never || allowed.contains(&stamp),
            "{export}: block {at} holds {stamp}, {allowed:?}"
        );
        promised += usize::from(block.promised > 0);
        let given = if stamp == 0 { vec![] } else { vec![stamp] };
        // The survivors of this kill have to survive the next.
        *block = Block { answered: given.len(), promised: given.len(), given };
    }
    assert!(promised > 0, "{export}: nothing was promised");
}

#[test]
fn flushed_writes_survive_a_kill() {
    let place = Place::new();
    let mut known: Vec<Vec<Block>> = EXPORTS
        .iter()
        .map(|_| vec![Block::default(); usize::try_from(BLOCKS).expect("small")])
        .collect();
    for round in 1..=ROUNDS {
        let server = place.serve(LAYOUT, &["--data", "data"]);
        let (sender, promises) = channel();
        let loads: Vec<_> = (0..)
            .zip(EXPORTS)
            .map(|(n, export)| {
                let (client, sender) = (place.open(export), sender.clone());
                let load =
                    Load { client, blocks: known[n].clone(), seed: round << 40 | (n as u64) << 32 };
                thread::spawn(move || load.run(&sender))
            })
            .collect();
        let answers = PROMISES * 24 * usize::try_from(round).expect("small");
        (0..answers).for_each(|_| promises.recv().expect("the load goes on"));
        server.signal(Signal::KILL);
        drop(server.wait());
        known = loads.into_iter().map(|load| load.join().expect("a load")).collect();

        let server = place.serve(LAYOUT, &["--data", "data"]);
        for (export, blocks) in EXPORTS.iter().zip(&mut known) {
            check(&mut place.open(export), blocks, export);
        }
        server.stop();
    }
}
