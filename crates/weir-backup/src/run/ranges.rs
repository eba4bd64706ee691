//! The ranges of a source that a backup reads: those that hold data, in their order.
//!
//! A walk asks the server which ranges hold data (`base:allocation`), and for a differential first
//! which changed. It keeps no list: a thread hands the ranges to the event loop as they are asked
//! for, so that memory does not grow with the fragments of a source.

use super::workers::Waker;
use crate::error::BackupError;
use crate::export::Export;
use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use weir_client::Connection;
use weir_proto::BlockState;

/// Ranges in the hands of the event loop at most.
const AHEAD: usize = 256;
/// Bytes that one block status asks for: as many as a request can say, in whole blocks.
const ASKED: u64 = (4 << 30) - (1 << 20);
/// Bytes of a piece that is handed on before its end.
const LONG: u64 = 1 << 30;
/// Pieces of a source that are remembered from the count. More are walked a second time, so that
/// memory does not grow with the fragments of a source.
pub(super) const REMEMBERED: usize = 64 << 10;

/// Tells which ranges of a source changed since the base.
pub trait Changes: Send {
    /// Returns ranges that may have changed, as offsets and lengths in ascending order, from an
    /// offset on, and where to ask next; `None` after the last.
    ///
    /// # Errors
    /// When the server does not say.
    fn changed(&mut self, from: u64) -> Result<ChangedRanges, BackupError>;
}

/// Changed ranges, and where to ask for the next.
pub type ChangedRanges = (Vec<(u64, u64)>, Option<u64>);

/// A range that a backup holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Its bytes.
    pub range: Range<u64>,
    /// They are zeros, which are noted and not read.
    pub is_zeros: bool,
}

/// A walk over the ranges of one source.
pub(super) struct Walk<'a> {
    connection: Connection,
    name: &'a str,
    /// Ranges of data are whole blocks of this many bytes.
    block: u64,
    size: u64,
    changes: Option<&'a mut (dyn Changes + 'static)>,
    /// The piece that the next one may continue.
    open: Option<Piece>,
}

impl fmt::Debug for Walk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Walk").field("size", &self.size).finish_non_exhaustive()
    }
}

impl<'a> Walk<'a> {
    pub(super) fn open(
        export: &'a Export,
        block: u64,
        changes: Option<&'a mut (dyn Changes + 'static)>,
    ) -> Result<Self, BackupError> {
        let (connection, name) = (export.open_sparse()?, export.name());
        let size = connection.size().get();
        Ok(Self { connection, name, block: block.max(1), size, changes, open: None })
    }

    /// Calls `on_piece` for each piece, until it returns false.
    pub(super) fn each(
        mut self,
        on_piece: &mut dyn FnMut(Piece) -> bool,
    ) -> Result<(), BackupError> {
        if self.changes.is_none() {
            if self.range(0..self.size, on_piece)? {
                self.close(on_piece);
            }
            return Ok(());
        }
        let mut from = Some(0);
        while let Some(at) = from {
            let Some(changes) = &mut self.changes else { break };
            let (ranges, next) = changes.changed(at)?;
            for (offset, length) in ranges {
                let end = offset.saturating_add(length).min(self.size);
                if !self.range(offset..end, on_piece)? {
                    return Ok(());
                }
            }
            if let Some(next) = next.filter(|next| *next <= at) {
                return Err(BackupError::Failed(format!(
                    "{}: the server told the changes from {at} on and then sent back to {next}; \
                     the list of changes is incomplete, take a full backup",
                    self.name
                )));
            }
            from = next;
        }
        self.close(on_piece);
        Ok(())
    }

    /// Walks a range. Returns whether to go on.
    fn range(
        &mut self,
        range: Range<u64>,
        on_piece: &mut dyn FnMut(Piece) -> bool,
    ) -> Result<bool, BackupError> {
        if !self.connection.has_extents() {
            return Ok(range.is_empty() || self.add(range, false, on_piece));
        }
        let mut at = range.start;
        while at < range.end {
            let length = u32::try_from((range.end - at).min(ASKED)).unwrap_or(u32::MAX);
            let extents = self.connection.extents(at, length);
            for extent in extents.map_err(BackupError::export(self.name))? {
                let end = at.saturating_add(extent.length.into()).min(range.end);
                let is_zeros = extent.state.contains(BlockState::ZERO);
                // A full backup has no frame for zeros: what it does not have is zeros.
                let is_wanted = !is_zeros || self.changes.is_some();
                let whole = match self.changes.is_some() {
                    true => at..end,
                    false => self.whole_blocks(at..end),
                };
                if is_wanted && end > at && !self.add(whole, is_zeros, on_piece) {
                    return Ok(false);
                }
                // A gap that no block spans ends the open piece.
                let ends = self.open.as_ref().is_some_and(|open| {
                    !is_wanted && end > open.range.end.next_multiple_of(self.block)
                });
                if ends
                    && let Some(open) = self.open.take()
                    && !on_piece(open)
                {
                    return Ok(false);
                }
                at = end;
            }
        }
        Ok(true)
    }

    /// Extends a range to whole blocks.
    fn whole_blocks(&self, range: Range<u64>) -> Range<u64> {
        let end = range.end.div_ceil(self.block).saturating_mul(self.block);
        range.start / self.block * self.block..end.min(self.size)
    }

    /// Adds a piece to the open one, or hands that on.
    fn add(
        &mut self,
        range: Range<u64>,
        is_zeros: bool,
        on_piece: &mut dyn FnMut(Piece) -> bool,
    ) -> bool {
        match &mut self.open {
            // Ranges that were extended to the same block overlap.
            Some(open) if open.is_zeros == is_zeros && open.range.end >= range.start => {
                open.range.end = range.end.max(open.range.end);
                // A long piece is handed on before the walk has come to its end. The last block
                // stays, for the next range may begin in it.
                let length = open.range.end - open.range.start;
                if length < 2 * LONG {
                    return true;
                }
                let middle = open.range.start + LONG;
                let first = open.range.start..middle;
                open.range.start = middle;
                on_piece(Piece { range: first, is_zeros })
            }
            open => {
                let done = open.replace(Piece { range, is_zeros });
                done.is_none_or(on_piece)
            }
        }
    }

    fn close(&mut self, on_piece: &mut dyn FnMut(Piece) -> bool) {
        if let Some(open) = self.open.take() {
            on_piece(open);
        }
    }
}

/// The pieces of all sources, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    /// Bytes to read.
    pub bytes: u64,
    /// Bytes of zeros to note.
    pub zeros: u64,
    /// Frames, with transfers of the size that was asked for.
    pub frames: u64,
}

impl Extent {
    /// Counts a piece that is read in transfers of `transfer` bytes.
    pub(super) fn add(&mut self, piece: &Piece, transfer: u64) {
        let length = piece.range.end - piece.range.start;
        let (bytes, each) = match piece.is_zeros {
            true => (&mut self.zeros, weir_pipeline::pipeline::MAX_ZEROS),
            false => (&mut self.bytes, transfer),
        };
        *bytes = bytes.saturating_add(length);
        self.frames = self.frames.saturating_add(length.div_ceil(each.max(1)));
    }
}

/// The pieces of a source as they are asked for.
#[derive(Debug)]
pub(super) struct Feed {
    known: VecDeque<Piece>,
    walker: Option<Walker>,
    is_ended: bool,
}

/// A thread that walks a source.
#[derive(Debug)]
struct Walker {
    pieces: Receiver<Result<Piece, BackupError>>,
    thread: Option<JoinHandle<()>>,
    /// Ends the waits of the thread.
    is_unwanted: Arc<AtomicBool>,
}

impl Feed {
    pub(super) fn start(
        (export, block): (Export, u64),
        mut changes: Option<Box<dyn Changes>>,
        waker: Waker,
    ) -> Result<Self, BackupError> {
        let (sender, pieces) = sync_channel(AHEAD);
        let is_unwanted = Arc::new(AtomicBool::new(false));
        let cancel = export.cancel().with(Arc::clone(&is_unwanted));
        let export = export.with_cancel(&cancel);
        let walk = move || {
            walk((&export, block), changes.as_deref_mut(), sender, &waker);
            waker.wake();
        };
        let thread = std::thread::Builder::new().name("backup-ranges".to_owned()).spawn(walk);
        let failed = |source| BackupError::System { action: "starting a thread", source };
        let thread = Some(thread.map_err(failed)?);
        let walker = Some(Walker { pieces, thread, is_unwanted });
        Ok(Self { known: VecDeque::new(), walker, is_ended: false })
    }

    /// Takes pieces that are known already.
    pub(super) const fn known(known: VecDeque<Piece>) -> Self {
        Self { known, walker: None, is_ended: false }
    }

    /// Returns the next piece if it is there.
    pub(super) fn poll(&mut self) -> Result<Option<Piece>, BackupError> {
        let Some(walker) = &self.walker else {
            let piece = self.known.pop_front();
            self.is_ended = piece.is_none();
            return Ok(piece);
        };
        match walker.pieces.try_recv() {
            Ok(piece) => piece.map(Some),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => {
                self.is_ended = true;
                Ok(None)
            }
        }
    }

    /// Returns whether no piece comes any more.
    pub(super) const fn is_ended(&self) -> bool {
        self.is_ended
    }
}

impl Drop for Walker {
    fn drop(&mut self) {
        self.is_unwanted.store(true, Ordering::Relaxed);
        // The thread ends when its channel has no receiver.
        let (_, unconnected) = sync_channel(1);
        self.pieces = unconnected;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn walk(
    (export, block): (&Export, u64),
    changes: Option<&mut (dyn Changes + 'static)>,
    sender: SyncSender<Result<Piece, BackupError>>,
    waker: &Waker,
) {
    let mut send = |piece: Piece| {
        let sent = sender.send(Ok(piece)).is_ok();
        waker.wake();
        sent
    };
    let walked = Walk::open(export, block, changes).and_then(|walk| walk.each(&mut send));
    if let Err(error) = walked {
        // After another failure there is no receiver.
        let _ = sender.send(Err(error));
    }
}
