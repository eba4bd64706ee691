//! The bytes of a volume: its store, the dirty blocks of a ReadWrite cache, and jobs on their way to
//! the store.
//!
//! ```text
//!                 +--> overlay: dirty blocks of a ReadWrite cache, seen by reads
//!   write, trim --+       | written back
//!                 +-------+--> lane: jobs in order, one worker at a time --> store
//! ```
//!
//! A write enters the overlay or the lane when it arrives, whatever it waits for in the engine: the
//! protocol allows a write to be visible before its reply. It is answered when the engine has
//! completed it *and* its jobs are done. Only a ReadWrite cache keeps bytes here until they are
//! written back, so that a crash of the host can lose them.
//!
//! Invariants:
//!
//! - The store gets the jobs of a volume one after another, in the order in which their requests
//!   arrived; a store with a [depth](Store::depth) gets those together that do not overlap, and they
//!   count as done in that order. Reads and syncs are not jobs of the lane and wait for none.
//! - The overlay changes when a request arrives, so each block that it shows is the newest version.
//!   It shows every block with bytes of an answered write that are not in the store.
//! - A read that begins after a write was answered therefore sees the write, in the store or in the
//!   overlay above it.
//! - A block leaves the overlay only when the store has all of it; a change in the meantime keeps it
//!   (`overlay`).
//! - A flush syncs when the lane has passed the last job with a dirty block, and only if none of
//!   these jobs failed, or the failed ones succeeded later.
//! - The amount of answered bytes that the store lacks is bounded. Beyond the bound, a cached write is
//!   answered only when the store has caught up. If the store has refused blocks, the cache takes no
//!   further writes: they are written through, and their clients get the store's error.
//! - A volume in memory executes everything at once, and its lane is empty. The exception are zeros
//!   over a range so long that other volumes would have to wait; until they are done, further changes
//!   of the volume go through the lane, too.

mod block;
mod lane;
mod map;
mod overlay;
mod view;

pub(crate) use block::Block;
pub(crate) use lane::{Done, Work};
pub(crate) use map::DeviceMap;
pub(crate) use view::{Column, View};

use block::{BLOCK, inside};
use lane::{Lane, Note, Ticket};
use overlay::{Change, Cut, Overlay, touched};
use std::path::Path;
use std::sync::Arc;
use weir_store::{Freezable, LoggedStore, Scratch, Store, StoreError, Volume as StoredVolume};
use weir_units::{Bytes, Instant};

/// Longer ranges are not zeroed on the host's thread. For a store in memory, this length takes about
/// a millisecond.
const ZEROS_AT_ONCE: u64 = 4 << 20;

/// Maximum number of blocks on their way to a store that is slower than the limits of the volume.
/// Beyond it, a cached write is answered only when the store has its blocks.
const MAX_BEHIND: usize = (64 << 20) / size_of::<Block>();

/// Number of refused blocks that are retried at a time once the store takes writes again. The first
/// of them shows if the store is still full.
const TRY_AGAIN: usize = 256;

/// A volume's store.
#[derive(Debug, Clone)]
pub struct VolumeData {
    /// The bytes, for everything but a freeze.
    pub(crate) store: Arc<dyn Store>,
    /// The same bytes, to be frozen.
    freezable: Freezable,
    /// True if operations other than hot reads may wait for a medium.
    pub(crate) may_block: bool,
    /// True if the bytes are on a backend, whose waits are counted apart.
    pub(crate) is_on_backend: bool,
}

impl VolumeData {
    /// Wraps a store, which nothing else may change from now on.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, may_block: bool) -> Self {
        let freezable = Freezable::new(store);
        let store = Arc::new(freezable.clone());
        Self { store, freezable, may_block, is_on_backend: false }
    }

    /// Wraps the store of a backend.
    #[must_use]
    pub fn on_backend(store: Arc<dyn Store>) -> Self {
        Self { is_on_backend: true, ..Self::new(store, true) }
    }

    /// Logs all changes of the store in a new file.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the file is there, or cannot be made.
    pub fn logged(self, volume: &str, file: &Path) -> Result<Self, StoreError> {
        let store = Arc::new(LoggedStore::create(self.store, volume, file)?);
        // Also the log of a volume in memory is on a medium.
        Ok(Self { store, may_block: true, ..self })
    }

    /// Wraps a volume of a data directory.
    #[must_use]
    pub fn kept(volume: Arc<StoredVolume>) -> Self {
        let freezable = volume.freezable().clone();
        Self { store: volume, freezable, may_block: true, is_on_backend: false }
    }
}

/// The place to which a write goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    InStore,
    /// In the store, which should make it durable.
    Durably,
    InCache,
}

/// The parts of a request that lanes and caches hold.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Load {
    /// Parts in single volumes.
    pub(crate) parts: u32,
    /// Jobs that must be done before it is answered.
    pub(crate) jobs: u32,
    /// Bytes that are held for it in memory, each until its job is done.
    pub(crate) in_lanes: usize,
    /// Bytes that caches keep for it, and that are its own until it is answered.
    pub(crate) in_caches: usize,
}

/// The continuation of a job.
#[derive(Debug)]
enum About {
    /// A request goes on that wrote through.
    Request { key: usize, held: usize },
    /// A request goes on that wrote a part of a block.
    Fill { key: usize, block: u64, part: u64 },
    /// Blocks have been written back.
    WriteBack(lane::Blocks),
    /// A step of a resize.
    Resize,
}

/// The effect of a finished job on the host.
#[derive(Debug)]
pub(crate) enum After {
    Nothing,
    /// A job of the request with that key, and the bytes that it held.
    Request {
        key: usize,
        held: usize,
        error: Option<Arc<StoreError>>,
        /// Its bytes are durable.
        is_durable: bool,
    },
    /// The resize of the volume goes on.
    Resize(Result<Done, StoreError>),
}

/// The bytes of one volume.
#[derive(Debug)]
pub(crate) struct VolumeBytes {
    pub(crate) data: VolumeData,
    /// Jobs that the store takes at once.
    depth: usize,
    overlay: Overlay,
    lane: Lane<About>,
    /// The last job that carried a block of the overlay.
    last_carrier: Ticket,
    /// Blocks in the lane that the engine holds for written.
    behind: usize,
    /// The error of the store, if it did not take some blocks.
    refused: Option<Arc<StoreError>>,
    /// It was said that there are.
    pub(crate) owing_told: bool,
    /// Time of the last notice that the store is full.
    pub(crate) full_told: Option<Instant>,
    /// The host has it on its list of lanes with something to do.
    pub(crate) listed: bool,
}

impl VolumeBytes {
    pub(crate) fn new(data: VolumeData) -> Self {
        let depth = data.store.depth();
        Self {
            data,
            depth,
            overlay: Overlay::default(),
            lane: Lane::default(),
            last_carrier: 0,
            behind: 0,
            refused: None,
            owing_told: false,
            full_told: None,
            listed: false,
        }
    }

    /// Returns whether a job may be done on the host's thread.
    pub(crate) fn is_inline(&self) -> bool {
        !self.data.may_block && self.lane.is_idle()
    }

    /// Returns whether the lane is empty.
    pub(crate) fn is_idle(&self) -> bool {
        self.lane.is_idle()
    }

    /// Returns whether nothing is dirty.
    pub(crate) fn is_clean(&self) -> bool {
        self.overlay.is_empty()
    }

    /// Freezes what a client would read now. The dirty blocks follow by
    /// [`capture_some`](Self::capture_some).
    pub(crate) fn freeze(&mut self, scratch: Scratch) -> Column {
        self.overlay.begin_capture();
        Column::freeze(&self.data.freezable, scratch)
    }

    /// Returns dirty blocks as they were at the freeze, after looking at up to `most` more, and
    /// whether these were the last ones.
    pub(crate) fn capture_some(&mut self, most: usize) -> (Vec<(u64, Arc<Block>)>, bool) {
        self.overlay.capture_some(most)
    }

    /// Returns the dirty bytes of a range, which cover those of the store: offset in the range,
    /// bytes.
    pub(crate) fn seen_in(&self, offset: u64, len: u64) -> impl Iterator<Item = (usize, &[u8])> {
        self.overlay.seen_in(offset, len)
    }

    /// Does a job here and now if that may be, else puts it into the lane.
    fn push(&mut self, work: Work, note: Note<About>) -> Option<After> {
        let inline = self.is_inline();
        self.lane.push(work, note);
        if !inline {
            return None;
        }
        let batch = self.lane.take_batch().unwrap_or_default();
        let done = batch.into_iter().map(|work| self.finished(work.run(&*self.data.store))).last();
        self.lane.batch_done();
        done
    }

    /// Returns the waiting jobs of the lane for a worker, if no other has it.
    pub(crate) fn take_batch(&mut self) -> Option<Vec<Work>> {
        self.lane.take_batch()
    }

    /// Returns whether the store takes several jobs at once.
    pub(crate) fn is_deep(&self) -> bool {
        self.depth > 1
    }

    /// Returns the next job of the lane for a worker of its own, if it may be at work beside others.
    pub(crate) fn take_apart(&mut self) -> Option<(u64, Work)> {
        self.lane.take_apart(self.depth)
    }

    /// Takes the result of a job that was at work beside others.
    pub(crate) fn end(&mut self, job: u64, result: Result<Done, StoreError>) {
        self.lane.end(job, result);
    }

    /// Returns the result of the oldest job that is not finished, if it has ended.
    pub(crate) fn next_ended(&mut self) -> Option<Result<Done, StoreError>> {
        self.lane.next_ended()
    }

    /// Takes in that the worker has done all of its batch.
    pub(crate) fn batch_done(&mut self) {
        self.lane.batch_done();
    }

    /// Stores a write, which should be durable then if `durably`.
    fn write_through(
        &mut self,
        key: usize,
        (offset, data): (u64, &[u8]),
        durably: bool,
        load: &mut Load,
    ) -> Result<(), StoreError> {
        let len = data.len() as u64;
        if self.is_inline() {
            self.data.store.write_at(offset, data)?;
            self.followed(offset, len, Change::Bytes(data));
            return Ok(());
        }
        let work = Work::Write { offset, data: data.into(), durably };
        self.change(key, work, (offset, len), Change::Bytes(data), load);
        Ok(())
    }

    /// Makes a range read as zeros, which should be durable then if `durably`.
    fn zero(
        &mut self,
        key: usize,
        (offset, len): (u64, u64),
        (may_trim, durably): (bool, bool),
        load: &mut Load,
    ) -> Result<(), StoreError> {
        if self.is_inline() && len <= ZEROS_AT_ONCE {
            self.data.store.write_zeroes(offset, len, may_trim)?;
            self.followed(offset, len, Change::Zeros);
            return Ok(());
        }
        let work = Work::Zero { offset, len, may_trim, durably };
        self.change(key, work, (offset, len), Change::Zeros, load);
        Ok(())
    }

    /// Updates the overlay after a change that the store has.
    fn followed(&mut self, offset: u64, len: u64, change: Change) {
        if !self.overlay.is_empty() {
            let job = self.lane.pass();
            self.overlay.follow(offset, len, change, job);
            self.stored((offset, len), job);
        }
    }

    /// Puts a request's change of the store into the lane.
    fn change(
        &mut self,
        key: usize,
        work: Work,
        (offset, len): (u64, u64),
        change: Change,
        load: &mut Load,
    ) {
        let held = match change {
            Change::Bytes(data) => data.len(),
            Change::Zeros => 0,
        };
        load.jobs += 1;
        load.in_lanes += held;
        if self.overlay.follow(offset, len, change, self.lane.next()) {
            self.last_carrier = self.lane.next();
        }
        let leaves_data = !matches!(work, Work::Zero { may_trim: true, .. });
        let about = About::Request { key, held };
        self.lane.push(work, Note { span: offset..offset + len, leaves_data, about });
    }

    /// Keeps a write in the cache, if that owes nothing. If it fails, nothing of it
    /// is kept.
    fn keep(
        &mut self,
        key: usize,
        offset: u64,
        data: &[u8],
        load: &mut Load,
    ) -> Result<(), StoreError> {
        if self.refused.is_some() {
            return self.write_through(key, (offset, data), false, load);
        }
        let len = data.len() as u64;
        let (first, last) = (offset / BLOCK, (offset + len - 1) / BLOCK);
        let ends = if first == last { &[first][..] } else { &[first, last] };
        let in_part = |block: &&u64| !Cut::new(**block, offset, len).is_whole();
        let unknown = |block: &&u64| in_part(block) && !self.overlay.holds(**block);
        let read = |block: &u64| Ok((*block, self.read_now(*block)?));
        let bases: Vec<_> = ends.iter().filter(unknown).map(read).collect::<Result<_, _>>()?;
        for (block, base) in bases {
            if let Some(bytes) = base {
                self.overlay.put(block, bytes);
            }
        }
        for block in ends.iter().filter(in_part) {
            if let Some(part) = self.overlay.part(*block) {
                let about = About::Fill { key, block: *block, part };
                let note = Note { span: 0..0, leaves_data: false, about };
                self.lane.push(Work::Fill { block: *block }, note);
                load.jobs += 1;
            }
        }
        // The read of the rest is still in the lane, so somebody comes for this too.
        for block in self.overlay.keep(offset, data) {
            self.write_back(block * BLOCK, BLOCK);
        }
        load.in_caches += data.len();
        if self.behind > MAX_BEHIND {
            let about = About::Request { key, held: 0 };
            self.lane.push(Work::Nothing, Note { span: 0..0, leaves_data: false, about });
            load.jobs += 1;
        }
        Ok(())
    }

    /// Returns the bytes of a block, if they can be had without waiting: not while there
    /// are changes of it on their way.
    fn read_now(&self, block: u64) -> Result<Option<Arc<Block>>, StoreError> {
        let span = block * BLOCK..(block + 1) * BLOCK;
        let reaches = |note: &Note<About>| note.span.start < span.end && span.start < note.span.end;
        if self.lane.unfinished().any(|(_, note)| reaches(note)) {
            return Ok(None);
        }
        let mut bytes = Arc::new([0; 4096]);
        let store = &*self.data.store;
        let inside = &mut Arc::make_mut(&mut bytes)[..inside(store, block)];
        if !self.data.may_block {
            store.read_at(span.start, inside)?;
            return Ok(Some(bytes));
        }
        Ok(store.try_read_at(span.start, inside)?.then_some(bytes))
    }

    /// Writes back bytes that the engine counts as written to the disk.
    /// Blocks that the store does not take are owed: reads still see them here, and
    /// [`settle`](Self::settle) tries again.
    pub(crate) fn write_back(&mut self, offset: u64, len: u64) {
        let blocks = self.overlay.let_go(touched(offset, len), self.lane.next());
        self.carry(blocks);
    }

    /// Writes back all there is, as [`write_back`](Self::write_back) does.
    pub(crate) fn write_back_all(&mut self) {
        self.write_back(0, u64::MAX / 2);
    }

    /// Tries again to write all that is owed.
    pub(crate) fn settle(&mut self) {
        self.pay(usize::MAX);
    }

    /// Tries some of the owed blocks, since the store took something. If it
    /// does, this comes up again.
    pub(crate) fn settle_some(&mut self) {
        self.pay(TRY_AGAIN);
    }

    fn pay(&mut self, most: usize) {
        if self.overlay.owed() > 0 {
            let blocks = self.overlay.let_owed_go(most, self.lane.next());
            self.carry(blocks);
        }
    }

    fn carry(&mut self, blocks: Vec<(u64, Arc<Block>)>) {
        if blocks.is_empty() {
            return;
        }
        self.last_carrier = self.lane.next();
        self.behind += blocks.len();
        let blocks: lane::Blocks = blocks.into();
        let about = About::WriteBack(Arc::clone(&blocks));
        self.push(Work::WriteBack(blocks), Note { span: 0..0, leaves_data: false, about });
    }

    /// Returns the ticket that the lane must have passed before a sync makes durable what was
    /// dirty; `None` if it is there.
    pub(crate) fn barrier(&self) -> Option<u64> {
        (self.last_carrier > self.lane.finished()).then_some(self.last_carrier)
    }

    /// Returns whether the lane has passed a ticket.
    pub(crate) fn has_passed(&self, barrier: u64) -> bool {
        self.lane.finished() >= barrier
    }

    /// Returns the bytes that are written for the engine and that the store did not take, and why.
    pub(crate) fn owes(&self) -> Option<(Bytes, &Arc<StoreError>)> {
        let reason = self.refused.as_ref()?;
        Some((Bytes::new(self.overlay.owed() as u64 * BLOCK), reason))
    }

    /// Takes in that the oldest job of the lane is done.
    pub(crate) fn finished(&mut self, result: Result<Done, StoreError>) -> After {
        let (job, note) = self.lane.finish();
        let span = (note.span.start, note.span.end - note.span.start);
        let after = match note.about {
            About::Request { key, held } => {
                let is_durable = matches!(result, Ok(Done::Durable));
                let error = result.err().map(Arc::new);
                match &error {
                    None => self.stored(span, job),
                    Some(error) => self.not_stored(span, job, error),
                }
                After::Request { key, held, error, is_durable }
            }
            About::Fill { key, block, part } => {
                let (base, error) = match result {
                    Ok(Done::Filled(base)) => (Some(base), None),
                    Ok(other) => unreachable!("a read came to {other:?}"),
                    Err(error) => (None, Some(Arc::new(error))),
                };
                if self.overlay.filled(block, part, base) {
                    self.write_back(block * BLOCK, BLOCK);
                }
                After::Request { key, held: 0, error, is_durable: false }
            }
            About::WriteBack(blocks) => {
                self.behind -= blocks.len();
                self.written_back(&blocks, job, result.is_ok());
                self.refused = result.err().map(Arc::new).or(self.refused.take());
                After::Nothing
            }
            About::Resize => After::Resize(result),
        };
        if self.overlay.owed() == 0 {
            self.refused = None;
        }
        after
    }

    fn written_back(&mut self, blocks: &[(u64, Arc<Block>)], job: Ticket, stored: bool) {
        for (block, _) in blocks {
            match stored {
                true => self.overlay.stored(*block, job, true),
                false => self.overlay.not_stored(*block, job, true),
            }
        }
    }

    fn stored(&mut self, (offset, len): (u64, u64), job: Ticket) {
        for block in self.overlay.held_in(offset, len) {
            self.overlay.stored(block, job, Cut::new(block, offset, len).is_whole());
        }
    }

    fn not_stored(&mut self, (offset, len): (u64, u64), job: Ticket, error: &Arc<StoreError>) {
        for block in self.overlay.held_in(offset, len) {
            self.overlay.not_stored(block, job, Cut::new(block, offset, len).is_whole());
            self.refused = Some(Arc::clone(error));
        }
    }

    /// Drops the blocks that were not written back, after a crash of the host. Blocks that the
    /// engine holds for written and that are in the lane stay. Returns how many blocks are lost.
    pub(crate) fn lose(&mut self) -> usize {
        let under_way = self.lane.unfinished().filter_map(|(job, note)| match &note.about {
            About::WriteBack(blocks) => Some((job, &**blocks)),
            _ => None,
        });
        let lost = self.overlay.lose(under_way);
        if self.overlay.owed() == 0 {
            self.refused = None;
        }
        lost
    }

    /// Returns whether there are dirty blocks behind `size`, or changes in the lane that
    /// leave data there.
    pub(crate) fn writes_behind(&self, size: u64) -> bool {
        let under_way =
            |(_, note): (Ticket, &Note<About>)| note.leaves_data && note.span.end > size;
        self.overlay.reaches_behind(size) || self.lane.unfinished().any(under_way)
    }

    /// Takes a step of a resize; what it came to, if that is known at once.
    pub(crate) fn resize(&mut self, step: Work) -> Option<Result<Done, StoreError>> {
        let note = Note { span: 0..0, leaves_data: false, about: About::Resize };
        match self.push(step, note) {
            Some(After::Resize(result)) => Some(result),
            _ => None,
        }
    }

    /// Makes durable what the engine holds for written, here and now. The lane is
    /// empty.
    pub(crate) fn sync(&mut self) -> Result<(), StoreError> {
        if self.overlay.owed() > 0 {
            let job = self.lane.pass();
            let owed: lane::Blocks = self.overlay.let_owed_go(usize::MAX, job).into();
            let stored = Work::WriteBack(Arc::clone(&owed)).run(&*self.data.store);
            self.written_back(&owed, job, stored.is_ok());
            stored?;
            self.refused = None;
        }
        self.data.store.sync()
    }

    /// Writes back whatever is left and makes it durable, here and now. No worker
    /// has anything of the lane.
    pub(crate) fn finish(&mut self) -> Result<(), StoreError> {
        self.write_back_all();
        while let Some(batch) = self.lane.take_batch() {
            for work in batch {
                self.finished(work.run(&*self.data.store));
            }
            self.lane.batch_done();
        }
        self.sync()
    }
}
