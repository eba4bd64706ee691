//! The lane of a volume: writes on their way to the store, in order.
//!
//! ```text
//! push --> waiting --take_batch--> a worker --results, in order--> finish
//!          notes: one for each job that is not finished, oldest first
//! ```
//!
//! One batch is at work at a time, so the store gets the jobs one after another
//! and in the order in which they were pushed, whatever threads there are. What
//! comes meanwhile is the next batch. The jobs go to a worker; the notes about
//! them stay here, so that nothing is shared and nothing is locked.
//!
//! A store with a depth gets several jobs at once, each from a worker of its own:
//!
//! ```text
//! push --> waiting --take_apart--> workers --results, in any order--> ended --next_ended--> finish
//! ```
//!
//! A job starts only when no job before it that overlaps it is at work. Jobs are finished in the order in
//! which they were pushed, so what waits for one still waits for all before it.

use super::block::{BLOCK, Block, inside};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use weir_store::{ExtentKind, Store, StoreError};
use weir_units::Bytes;

/// The place of a job in its lane: the first is 1.
pub(super) type Ticket = u64;

/// Blocks and their contents when they were let go.
pub(super) type Blocks = Arc<[(u64, Arc<Block>)]>;

/// A job of a store.
#[derive(Debug)]
pub(crate) enum Work {
    /// Stores a client's bytes, which should be durable then if `durably`.
    Write { offset: u64, data: Arc<[u8]>, durably: bool },
    /// Makes a range read as zeros, which should be durable then if `durably`.
    Zero { offset: u64, len: u64, may_trim: bool, durably: bool },
    /// Stores dirty blocks of a cache.
    WriteBack(Blocks),
    /// Reads a block of which a client wrote a part.
    Fill { block: u64 },
    /// Does nothing. Waiting for it means waiting for all jobs before it.
    Nothing,
    /// Looks for data behind an end.
    Probe { end: u64 },
    /// Moves the end.
    Resize { size: Bytes },
}

/// The result of a job.
#[derive(Debug)]
pub(crate) enum Done {
    /// Success without a value.
    Well,
    /// The bytes are durable.
    Durable,
    /// The bytes of the block.
    Filled(Box<Block>),
    /// True if there is data behind the end.
    Probed(bool),
}

impl Done {
    fn stored(is_durable: bool) -> Self {
        if is_durable { Self::Durable } else { Self::Well }
    }
}

/// The bytes that a job reads or changes.
#[derive(Debug)]
enum Reach {
    Range(Range<u64>),
    /// It waits for all jobs before it, and all after it wait for it.
    All,
}

impl Reach {
    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Range(own), Self::Range(other)) => {
                own.start < other.end && other.start < own.end
            }
            _ => true,
        }
    }
}

impl Work {
    fn reach(&self) -> Reach {
        match self {
            Self::Write { offset, data, .. } => Reach::Range(*offset..offset + data.len() as u64),
            Self::Zero { offset, len, .. } => Reach::Range(*offset..offset + len),
            Self::WriteBack(blocks) => {
                let numbers = || blocks.iter().map(|(block, _)| *block);
                let (first, last) = (numbers().min().unwrap_or(0), numbers().max().unwrap_or(0));
                Reach::Range(first * BLOCK..(last + 1) * BLOCK)
            }
            Self::Fill { block } => Reach::Range(block * BLOCK..(block + 1) * BLOCK),
            Self::Nothing | Self::Probe { .. } | Self::Resize { .. } => Reach::All,
        }
    }

    /// Executes the job, which may wait for the medium.
    pub(crate) fn run(&self, store: &dyn Store) -> Result<Done, StoreError> {
        match self {
            Self::Write { offset, data, durably: true } => {
                return store.write_durably(*offset, data).map(Done::stored);
            }
            Self::Write { offset, data, durably: false } => store.write_at(*offset, data)?,
            Self::Zero { offset, len, may_trim, durably: true } => {
                return store.zero_durably(*offset, *len, *may_trim).map(Done::stored);
            }
            Self::Zero { offset, len, may_trim, durably: false } => {
                store.write_zeroes(*offset, *len, *may_trim)?;
            }
            Self::WriteBack(blocks) => {
                for (block, bytes) in blocks.iter() {
                    store.write_at(block * BLOCK, &bytes[..inside(store, *block)])?;
                }
            }
            Self::Fill { block } => {
                let mut bytes = Box::new([0; 4096]);
                store.read_at(block * BLOCK, &mut bytes[..inside(store, *block)])?;
                return Ok(Done::Filled(bytes));
            }
            Self::Nothing => {}
            Self::Probe { end } => {
                let extents = store.extents(*end, store.size().get().saturating_sub(*end), 2)?;
                return Ok(Done::Probed(extents.iter().any(|e| e.kind == ExtentKind::Data)));
            }
            Self::Resize { size } => store.resize(*size)?,
        }
        Ok(Done::Well)
    }
}

/// Facts about a job that are needed when it is done.
#[derive(Debug)]
pub(super) struct Note<T> {
    /// The first byte that it changes, and the one behind the last.
    pub(super) span: std::ops::Range<u64>,
    /// True if the span holds data then.
    pub(super) leaves_data: bool,
    pub(super) about: T,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Lane<T> {
    waiting: VecDeque<Work>,
    notes: VecDeque<Note<T>>,
    at_work: bool,
    /// Jobs that are at work beside each other, and what they reach.
    apart: Vec<(Ticket, Reach)>,
    /// Results of such jobs, until all jobs before them are finished.
    ended: BTreeMap<Ticket, Result<Done, StoreError>>,
    finished: Ticket,
}

impl<T> Default for Lane<T> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            notes: VecDeque::new(),
            at_work: false,
            apart: Vec::new(),
            ended: BTreeMap::new(),
            finished: 0,
        }
    }
}

impl<T> Lane<T> {
    pub(super) fn is_idle(&self) -> bool {
        self.notes.is_empty() && !self.at_work
    }

    /// Returns the place of the next job.
    pub(super) fn next(&self) -> Ticket {
        self.finished + self.notes.len() as u64 + 1
    }

    /// Returns the place of the last job that is finished; all before it are.
    pub(super) fn finished(&self) -> Ticket {
        self.finished
    }

    pub(super) fn push(&mut self, work: Work, note: Note<T>) {
        self.waiting.push_back(work);
        self.notes.push_back(note);
    }

    /// Counts a job that was done at once.
    pub(super) fn pass(&mut self) -> Ticket {
        assert!(self.is_idle(), "a job was done before those that came before it");
        self.finished += 1;
        self.finished
    }

    /// Returns the waiting jobs for a worker, if no other has the lane.
    pub(super) fn take_batch(&mut self) -> Option<Vec<Work>> {
        if self.at_work || self.waiting.is_empty() {
            return None;
        }
        self.at_work = true;
        Some(std::mem::take(&mut self.waiting).into())
    }

    /// Returns the next job for a worker, if it may be at work beside the others, of which there are
    /// at most `depth`.
    pub(super) fn take_apart(&mut self, depth: usize) -> Option<(Ticket, Work)> {
        let reach = self.waiting.front()?.reach();
        let is_kept_back = self.apart.iter().any(|(_, other)| reach.meets(other));
        if is_kept_back || self.apart.len() >= depth {
            return None;
        }
        let job = self.next() - self.waiting.len() as u64;
        self.apart.push((job, reach));
        Some((job, self.waiting.pop_front()?))
    }

    /// Takes the result of a job that was at work beside others.
    pub(super) fn end(&mut self, job: Ticket, result: Result<Done, StoreError>) {
        self.apart.retain(|(own, _)| *own != job);
        self.ended.insert(job, result);
    }

    /// Returns the result of the oldest job that is not finished, if it has ended.
    pub(super) fn next_ended(&mut self) -> Option<Result<Done, StoreError>> {
        self.ended.remove(&(self.finished + 1))
    }

    /// Removes the oldest job, which is done. Returns its place and note.
    pub(super) fn finish(&mut self) -> (Ticket, Note<T>) {
        self.finished += 1;
        let note = self.notes.pop_front();
        (
            self.finished,
            note.unwrap_or_else(|| unreachable!("a worker did a job that was not pushed")),
        )
    }

    /// Marks the batch of the worker as done.
    pub(super) fn batch_done(&mut self) {
        self.at_work = false;
    }

    /// Returns the jobs that are not finished, with their places, oldest first.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = (Ticket, &Note<T>)> {
        (self.finished + 1..).zip(&self.notes)
    }
}
