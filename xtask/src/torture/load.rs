//! Clients that write, trim and flush until they are cut off, and note what they were promised.

use super::Tally;
use super::oracle::{BLOCK, Block, content};
use super::server::{Served, lost, wait_for_answers};
use super::system::{End, System};
use crate::error::XtaskError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use weir_client::Connection;
use weir_proto::Errno;
use weir_random::Rng;

/// Requests in flight of a client, at most.
const DEPTH: u64 = 24;
/// Blocks of a write, at most.
const LONGEST: u64 = 8;

/// The clients of a round, one for each export.
pub(super) struct Loads {
    threads: Vec<JoinHandle<Load>>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    answers: AtomicU64,
    /// The clients should end by themselves.
    is_over: AtomicBool,
    /// Answers that the disk is full.
    full: AtomicU64,
    /// Answers that the disk has failed.
    failed: AtomicU64,
    /// The first other error.
    odd: OnceLock<Errno>,
    /// The clients should not ask for syncs.
    syncs_are_paused: AtomicBool,
    /// Clients that have no request for a sync under way since then.
    without_syncs: AtomicU64,
}

/// A client, and what it was promised.
struct Load {
    client: Connection,
    rng: Rng,
    shared: Arc<Shared>,
    /// It is counted in `without_syncs`.
    is_counted: bool,
    blocks: Vec<Block>,
    writes: u64,
    flushes: u64,
}

/// A request, by its cookie.
enum Sent {
    /// Blocks with the numbers of their contents.
    Write { blocks: Vec<(usize, usize)>, fua: bool },
    /// The number of answered contents of each block when it was sent.
    Flush { covers: Vec<usize> },
}

/// Starts a client for each export.
pub(super) fn start(
    served: &Served,
    system: &System,
    known: &[Vec<Block>],
    rng: &mut Rng,
) -> Result<Loads, XtaskError> {
    let shared = Arc::new(Shared::default());
    let mut threads = Vec::new();
    for (export, blocks) in system.exports.iter().zip(known) {
        let load = Load {
            client: served.open(&export.name)?,
            rng: Rng::new(&[rng.next_u64()]),
            shared: Arc::clone(&shared),
            is_counted: false,
            blocks: blocks.clone(),
            writes: 0,
            flushes: 0,
        };
        threads.push(std::thread::spawn(move || load.run()));
    }
    Ok(Loads { threads, shared })
}

impl Loads {
    /// Returns the number of answers so far.
    pub(super) fn answers(&self) -> u64 {
        self.shared.answers.load(Ordering::Relaxed)
    }

    /// Returns the number of answers that the disk is full.
    pub(super) fn full(&self) -> u64 {
        self.shared.full.load(Ordering::Relaxed)
    }

    /// Returns the number of answers that the disk has failed.
    pub(super) fn failed(&self) -> u64 {
        self.shared.failed.load(Ordering::Relaxed)
    }

    /// Returns the first error that was not about a full disk or a failed one.
    pub(super) fn odd(&self) -> Option<Errno> {
        self.shared.odd.get().copied()
    }

    /// Keeps the clients from asking for syncs, and waits until none is under way.
    pub(super) fn pause_syncs(&self) -> Result<(), XtaskError> {
        self.shared.syncs_are_paused.store(true, Ordering::SeqCst);
        let all = self.threads.len() as u64;
        let are_all = || self.shared.without_syncs.load(Ordering::SeqCst) >= all;
        wait_for_answers(|| self.answers(), || self.sound().is_err() || are_all())?;
        self.sound()
    }

    /// Lets the clients ask for syncs again.
    pub(super) fn resume_syncs(&self) {
        self.shared.syncs_are_paused.store(false, Ordering::SeqCst);
    }

    /// Returns what clients got from a server whose disk has failed, other than EIO.
    pub(super) fn odd_on_failed_disk(&self) -> Option<String> {
        let full = (self.full() > 0).then_some(Errno::NoSpc);
        match self.odd().or(full) {
            Some(errno) => Some(format!(
                "a client got {errno} instead of EIO from a server whose disk has failed"
            )),
            None => self.has_ended().then(|| "a client was disconnected".to_owned()),
        }
    }

    /// Refuses errors of a server that has all it needs.
    pub(super) fn sound(&self) -> Result<(), XtaskError> {
        self.shared.sound()?;
        match self.has_ended() {
            true => Err(lost("a client was disconnected")),
            false => Ok(()),
        }
    }

    /// Does what [`Self::take`] does for clients whose server went on, so each answer had to be good.
    fn take_sound(self, tally: &mut Tally) -> Result<Vec<Vec<Block>>, XtaskError> {
        let shared = Arc::clone(&self.shared);
        let known = self.take(tally);
        shared.sound().map(|()| known)
    }

    /// Ends the server, unless it was killed, and waits for the clients. Returns their knowledge of their blocks.
    pub(super) fn end(
        self,
        served: Served,
        end: End,
        tally: &mut Tally,
    ) -> Result<Vec<Vec<Block>>, XtaskError> {
        let known = match end {
            End::Stop => self.take_sound(tally)?,
            // A server that ends answers with errors.
            End::Kill | End::Crash => self.take(tally),
        };
        if end != End::Kill {
            served.stop()?;
        }
        tally.ended(end);
        Ok(known)
    }

    /// Returns whether a client has ended by itself, which none should.
    pub(super) fn has_ended(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Lets the clients complete what they have sent, and end.
    pub(super) fn hurry(&self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }

    /// Waits for the clients. Returns what they know of their blocks, in the order of their exports.
    pub(super) fn take(self, tally: &mut Tally) -> Vec<Vec<Block>> {
        let Self { threads, shared } = self;
        let ended = threads.into_iter().map(|own| {
            let load = own.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            tally.writes += load.writes;
            tally.flushes += load.flushes;
            load.blocks
        });
        let known = ended.collect();
        tally.full += shared.full.load(Ordering::Relaxed);
        tally.failed += shared.failed.load(Ordering::Relaxed);
        known
    }
}

impl Shared {
    fn sound(&self) -> Result<(), XtaskError> {
        if let Some(errno) = self.odd.get() {
            return Err(lost(&format!("a client got {errno}")));
        }
        match (self.full.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed)) {
            (0, 0) => Ok(()),
            (0, failed) => Err(lost(&format!("{failed} requests got EIO, and the disk works"))),
            (full, _) => Err(lost(&format!("{full} changes got ENOSPC, and the disk is not full"))),
        }
    }
}

impl Load {
    fn run(mut self) -> Self {
        let mut stamp = self.rng.next_u64() >> 8;
        while !self.shared.is_over.load(Ordering::Relaxed) {
            // Everything before is answered.
            let has_syncs = !self.shared.syncs_are_paused.load(Ordering::SeqCst);
            if !has_syncs && !std::mem::replace(&mut self.is_counted, true) {
                self.shared.without_syncs.fetch_add(1, Ordering::SeqCst);
            }
            let sent = self.send(&mut stamp, has_syncs);
            let Ok(sent) = sent else { return self };
            while self.client.in_flight() > 0 {
                let Self { client, blocks, writes, flushes, shared, .. } = &mut self;
                let received = client.receive(|cookie, answer| {
                    // An error is no promise; a server that ends answers with some.
                    match answer {
                        Ok(_) => {}
                        Err(Errno::NoSpc) => {
                            shared.full.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(Errno::Io) => {
                            shared.failed.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(errno) => {
                            // The first one is enough.
                            let _ = shared.odd.set(errno);
                        }
                    }
                    let at = usize::try_from(cookie).unwrap_or(usize::MAX);
                    let Some(sent) = sent.get(at).filter(|_| answer.is_ok()) else { return };
                    match sent {
                        Sent::Write { .. } => *writes += 1,
                        Sent::Flush { .. } => *flushes += 1,
                    }
                    note(blocks, sent);
                    shared.answers.fetch_add(1, Ordering::Relaxed);
                });
                if received.is_err() {
                    return self;
                }
            }
        }
        self
    }

    /// Sends a batch of requests. No two of its writes are to the same block, since their order would
    /// not be known.
    fn send(
        &mut self,
        stamp: &mut u64,
        has_syncs: bool,
    ) -> Result<Vec<Sent>, weir_client::ClientError> {
        let mut sent = Vec::new();
        let mut taken = vec![false; self.blocks.len()];
        for _ in 0..=self.rng.below(DEPTH) {
            let cookie = sent.len() as u64;
            if self.rng.chance(8) && has_syncs {
                let covers = self.blocks.iter().map(|block| block.answered).collect();
                self.client.queue_flush(cookie)?;
                sent.push(Sent::Flush { covers });
                continue;
            }
            let first = self.rng.index(self.blocks.len());
            let longest = usize::try_from(self.rng.within(1, LONGEST)).unwrap_or(1);
            let free = taken[first..].iter().take(longest).take_while(|own| !**own).count();
            if free == 0 {
                continue;
            }
            taken[first..first + free].fill(true);
            let is_trim = self.rng.chance(10);
            let fua = !is_trim && self.rng.chance(10) && has_syncs;
            let mut data = Vec::new();
            let mut blocks = Vec::new();
            for at in first..first + free {
                *stamp += 1;
                let content_of = if is_trim { 0 } else { *stamp };
                blocks.push((at, self.blocks[at].give(content_of)));
                data.extend(content(content_of));
            }
            let offset = first as u64 * BLOCK;
            if is_trim {
                let length = u32::try_from(data.len()).unwrap_or(0);
                self.client.queue_trim(cookie, offset, length)?;
            } else {
                self.client.queue_write(cookie, offset, &data, fua)?;
            }
            sent.push(Sent::Write { blocks, fua });
        }
        self.client.flush_out()?;
        Ok(sent)
    }
}

/// Takes note of an answer.
fn note(blocks: &mut [Block], sent: &Sent) {
    match sent {
        Sent::Write { blocks: written, fua } => {
            for (at, number) in written {
                let block = &mut blocks[*at];
                block.answered = block.answered.max(*number);
                block.promised = block.promised.max(if *fua { *number } else { 0 });
            }
        }
        Sent::Flush { covers } => {
            for (block, answered) in blocks.iter_mut().zip(covers) {
                block.promised = block.promised.max(*answered);
            }
        }
    }
}
