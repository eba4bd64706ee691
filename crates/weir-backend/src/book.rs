//! The requests of a volume: what waits, what is in flight, and what would have to be sent again.
//!
//! ```text
//!  submit --> waiting --next--> sent --answered--> unflushed writes --flush--> forgotten
//!                ^               |                      |
//!                +--disconnected-+                      +--> written again after a reconnect,
//!                                                            before anything else
//! ```
//!
//! Invariants:
//!
//! - Two requests that overlap, one of which changes bytes, are never in flight together. The later one
//!   waits for the earlier one.
//! - A write whose caller has given up stays in flight until the server answers or the connection ends.
//!   Until then nothing that overlaps it is sent, since it may still be executed.
//! - A flush covers the writes that were answered before it was sent.
//! - At most one flush or durable write is in flight. Both make a server sync, and it may report a failed
//!   sync to one only. A durable write that meets another sync becomes an ordinary one, and so does one
//!   for a server that has come back without FUA.
//! - If a sync fails, what is unflushed is written again before the next flush: a server may have dropped
//!   it, and would call the flush a success.
//! - A durable write that was answered is not kept, and neither is what it has overwritten.
//! - A sample of what is durable is dropped when a change of its bytes is sent. While there is no connection, all
//!   samples are what a server that keeps its word returns.

use crate::unflushed::{Payload, Unflushed};
use crate::witness::{self, Sample, Witness};
use std::collections::{BTreeMap, VecDeque};
use weir_proto::Errno;

/// Names a request.
pub(crate) type Id = u64;

/// Most bytes and requests in flight.
const IN_FLIGHT_BYTES: u64 = 32 << 20;
const IN_FLIGHT: usize = 256;

/// The command of a request, without its offset.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    Read {
        len: u32,
    },
    Write(Payload),
    /// It is durable when it is answered.
    WriteDurably(Payload),
    Flush,
    Extents {
        len: u32,
    },
}

impl Action {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Read { len } | Self::Extents { len } => u64::from(*len),
            Self::Write(payload) | Self::WriteDurably(payload) => payload.len(),
            Self::Flush => 0,
        }
    }

    fn changes(&self) -> bool {
        matches!(self, Self::Write(_) | Self::WriteDurably(_))
    }

    /// Returns whether the server syncs its medium for it.
    fn syncs(&self) -> bool {
        matches!(self, Self::Flush | Self::WriteDurably(_))
    }

    /// Turns a durable write into an ordinary one.
    fn into_ordinary(self) -> Self {
        if let Self::WriteDurably(payload) = self { Self::Write(payload) } else { self }
    }

    /// Returns the bytes that are kept until a flush.
    fn keeps(&self) -> u64 {
        if let Self::Write(payload) = self { payload.held() } else { 0 }
    }

    /// Returns the bytes that it moves.
    fn moves(&self) -> u64 {
        match self {
            Self::Read { len } => u64::from(*len),
            Self::Write(payload) | Self::WriteDurably(payload) => payload.held(),
            Self::Flush | Self::Extents { .. } => 0,
        }
    }
}

/// A request. `owner` waits for the answer; nobody does if the caller has given up, or if the
/// request is the book's own.
#[derive(Debug)]
struct Op<T> {
    offset: u64,
    action: Action,
    owner: Option<T>,
    /// For a flush, the last write that it covers.
    covers: u64,
    /// It writes an unflushed write again.
    again: bool,
}

impl<T> Op<T> {
    fn is_flush(&self) -> bool {
        matches!(self.action, Action::Flush)
    }

    fn overlaps(&self, offset: u64, len: u64) -> bool {
        self.offset < offset + len && offset < self.offset + self.action.len()
    }

    fn excludes(&self, other: &Self) -> bool {
        (self.action.changes() || other.action.changes())
            && self.overlaps(other.offset, other.action.len())
    }
}

/// A request to be sent.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) id: Id,
    pub(crate) offset: u64,
    pub(crate) action: Action,
}

/// Unflushed writes that are being written again.
#[derive(Debug)]
struct Replay {
    /// The first byte that is not sent.
    from: u64,
    in_flight: usize,
    /// After a reconnect, nothing else is sent. After a sync that failed, an error is passed on.
    after_loss: bool,
    failed: Option<Errno>,
}

/// The caller of a request that was answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Caller<T> {
    pub(crate) owner: T,
    /// The request was a write that is durable.
    pub(crate) is_durable: bool,
}

/// An unflushed write that the server did not take again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Untaken {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) errno: Errno,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Book<T> {
    waiting: VecDeque<(Id, Op<T>)>,
    sent: BTreeMap<Id, Op<T>>,
    sent_bytes: u64,
    /// Bytes of writes in flight, which will be unflushed.
    sent_writes: u64,
    unflushed: Unflushed,
    witness: Witness,
    /// Most bytes of unflushed writes.
    most: u64,
    /// The number of writes that were answered.
    answered: u64,
    last: Id,
    online: bool,
    /// The server makes single writes durable.
    takes_durable: bool,
    replay: Option<Replay>,
    /// A sync failed, so unflushed writes are written again before the next flush.
    doubtful: bool,
    /// Callers whose requests failed without being sent.
    refused: Vec<(T, Errno)>,
}

impl<T> Book<T> {
    /// Starts without a connection. Unflushed writes take at most `most` bytes.
    pub(crate) fn new(most: u64) -> Self {
        Self {
            waiting: VecDeque::new(),
            sent: BTreeMap::new(),
            sent_bytes: 0,
            sent_writes: 0,
            unflushed: Unflushed::default(),
            witness: Witness::default(),
            most,
            answered: 0,
            // The callers' ids are even, the book's own are odd.
            last: 1,
            online: false,
            takes_durable: false,
            replay: None,
            doubtful: false,
            refused: Vec::new(),
        }
    }

    /// Takes a request. Its id is even and above those before it.
    pub(crate) fn submit(&mut self, id: Id, offset: u64, action: Action, owner: T) {
        let owner = Some(owner);
        self.waiting.push_back((id, Op { offset, action, owner, covers: 0, again: false }));
    }

    /// Gives up the requests of callers up to the id `last`. Returns each caller, and the id of the
    /// request if it is in flight.
    pub(crate) fn expire(&mut self, last: Id) -> Vec<(T, Option<Id>)> {
        let sent = self.sent.range_mut(..=last);
        let sent = sent.filter_map(|(id, op)| Some((op.owner.take()?, Some(*id))));
        let mut expired: Vec<_> = sent.collect();
        let (late, waiting) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition::<VecDeque<_>, _>(|(id, op)| *id <= last && op.owner.is_some());
        self.waiting = waiting;
        expired.extend(late.into_iter().filter_map(|(_, op)| Some((op.owner?, None))));
        expired
    }

    /// Returns the next request to be sent, if one may be.
    pub(crate) fn next(&mut self) -> Option<Order> {
        if !self.online || self.sent.len() >= IN_FLIGHT || self.sent_bytes >= IN_FLIGHT_BYTES {
            return None;
        }
        if self.replay.is_some() {
            return self.next_again();
        }
        let wants_flush = self.flush_is_due();
        if self.doubtful && (wants_flush || self.has_flush_waiting()) {
            // Alone, so that it overlaps nothing in flight.
            if !self.sent.is_empty() {
                return None;
            }
            self.doubtful = false;
            self.replay = Some(Replay { from: 0, in_flight: 0, after_loss: false, failed: None });
            return self.next();
        }
        if wants_flush {
            return Some(self.send_own(0, Action::Flush, false));
        }
        let at = (0..self.waiting.len()).find(|at| self.may_go(*at))?;
        let (id, op) = self.waiting.remove(at)?;
        Some(self.send(id, op))
    }

    /// Returns whether unflushed writes take so much that they should be flushed before the next one.
    fn flush_is_due(&self) -> bool {
        self.unflushed.held() > self.most / 2
            && self.waiting.iter().any(|(_, op)| op.action.changes())
            && !self.has_flush_waiting()
            && !self.is_syncing()
    }

    /// Returns whether a flush or a durable write is in flight.
    fn is_syncing(&self) -> bool {
        self.sent.values().any(|op| op.action.syncs())
    }

    fn has_flush_waiting(&self) -> bool {
        self.waiting.iter().any(|(_, op)| op.is_flush())
    }

    fn may_go(&self, at: usize) -> bool {
        let (_, op) = &self.waiting[at];
        if op.is_flush() {
            return !self.is_syncing();
        }
        let after = self.unflushed.held() + self.sent_writes;
        if op.action.changes() && after > 0 && after + op.action.moves() > self.most {
            return false;
        }
        let earlier = self.waiting.iter().take(at).map(|(_, op)| op);
        !earlier.chain(self.sent.values()).any(|other| op.excludes(other))
    }

    fn next_again(&mut self) -> Option<Order> {
        let replay = self.replay.as_mut()?;
        if let Some((offset, payload)) =
            self.unflushed.next(replay.from).filter(|_| replay.failed.is_none())
        {
            replay.from = offset + payload.len();
            replay.in_flight += 1;
            return Some(self.send_own(offset, Action::Write(payload), true));
        }
        if replay.in_flight > 0 {
            return None;
        }
        if let Some(errno) = self.replay.take().and_then(|replay| replay.failed) {
            self.flush_failed(errno);
        }
        self.next()
    }

    fn send_own(&mut self, offset: u64, action: Action, again: bool) -> Order {
        self.last += 2;
        let op = Op { offset, action, owner: None, covers: 0, again };
        self.send(self.last, op)
    }

    fn send(&mut self, id: Id, op: Op<T>) -> Order {
        let may_be_durable = self.takes_durable && !self.is_syncing();
        let action = if may_be_durable { op.action } else { op.action.into_ordinary() };
        let op = Op { covers: self.answered, action, ..op };
        if op.action.changes() {
            self.witness.cut(op.offset, op.action.len());
        }
        self.sent_bytes += op.action.moves();
        self.sent_writes += if op.again { 0 } else { op.action.keeps() };
        let order = Order { id, offset: op.offset, action: op.action.clone() };
        self.sent.insert(id, op);
        order
    }

    /// Takes in the answer to a request. Returns its caller.
    ///
    /// # Errors
    /// [`Untaken`] if a write was lost with a connection and cannot be repeated.
    pub(crate) fn answered(
        &mut self,
        id: Id,
        result: Result<(), Errno>,
    ) -> Result<Option<Caller<T>>, Untaken> {
        let Some(op) = self.sent.remove(&id) else { return Ok(None) };
        self.sent_bytes -= op.action.moves();
        if op.again {
            return self.again_answered(&op, result).map(|()| None);
        }
        let is_durable = matches!(op.action, Action::WriteDurably(_)) && result.is_ok();
        match (op.action, result) {
            (Action::Write(payload), result) => {
                self.sent_writes -= payload.held();
                match result {
                    Ok(()) => {
                        self.answered += 1;
                        self.unflushed.add(op.offset, payload, self.answered);
                    }
                    Err(_) => self.unflushed.doubt(op.offset, payload.len()),
                }
            }
            (Action::WriteDurably(payload), Ok(())) => {
                self.unflushed.cut(op.offset, payload.len());
                self.witness.add(op.offset, &payload);
            }
            (Action::WriteDurably(payload), Err(_)) => {
                self.doubtful = true;
                self.unflushed.doubt(op.offset, payload.len());
            }
            (Action::Flush, Ok(())) => self.flushed(op.covers),
            (Action::Flush, Err(errno)) => self.flush_failed(errno),
            _ => {}
        }
        Ok(op.owner.map(|owner| Caller { owner, is_durable }))
    }

    fn again_answered(&mut self, op: &Op<T>, result: Result<(), Errno>) -> Result<(), Untaken> {
        let Some(replay) = &mut self.replay else { return Ok(()) };
        replay.in_flight -= 1;
        let Err(errno) = result else { return Ok(()) };
        if replay.after_loss {
            return Err(Untaken { offset: op.offset, bytes: op.action.len(), errno });
        }
        replay.failed = Some(errno);
        Ok(())
    }

    /// Takes in that all writes up to the `number`th are durable.
    fn flushed(&mut self, number: u64) {
        let Self { unflushed, witness: samples, sent, .. } = self;
        let is_changing = |offset: u64, len: u64| {
            sent.values().any(|op| op.action.changes() && op.overlaps(offset, len))
        };
        for (offset, payload) in unflushed.newest(number, witness::MOST) {
            if !is_changing(offset, payload.len()) {
                samples.add(offset, payload);
            }
        }
        unflushed.forget(number);
    }

    /// Returns samples of what the server has confirmed as durable.
    pub(crate) fn samples(&self) -> Vec<Sample> {
        self.witness.samples()
    }

    /// Keeps in mind that what the flush should have covered may be lost. Waiting flushes, and
    /// writes for which there is no room without a flush, fail.
    fn flush_failed(&mut self, errno: Errno) {
        self.doubtful = true;
        let is_full = self.unflushed.held() > self.most / 2;
        let (waiting, kept) = (std::mem::take(&mut self.waiting), &mut self.waiting);
        for (id, mut op) in waiting {
            let fails = match op.action {
                Action::Flush => true,
                Action::Write(_) | Action::WriteDurably(_) => is_full,
                Action::Read { .. } | Action::Extents { .. } => false,
            };
            if fails {
                self.refused.extend(op.owner.take().map(|owner| (owner, errno)));
            } else {
                kept.push_back((id, op));
            }
        }
    }

    /// Returns the callers whose requests failed without being sent, each with the server's error.
    pub(crate) fn take_refused(&mut self) -> Vec<(T, Errno)> {
        std::mem::take(&mut self.refused)
    }

    /// Takes in that all connections are lost. What was in flight waits again.
    pub(crate) fn disconnected(&mut self) {
        self.online = false;
        self.replay = None;
        (self.sent_bytes, self.sent_writes) = (0, 0);
        let sent = std::mem::take(&mut self.sent);
        for (id, op) in sent.into_iter().rev() {
            if op.owner.is_some() {
                self.waiting.push_front((id, op));
            }
        }
    }

    /// Takes in that there are connections again. Unflushed writes are sent first.
    pub(crate) fn connected(&mut self, takes_durable: bool) {
        self.online = true;
        self.takes_durable = takes_durable;
        self.doubtful = false;
        if !self.unflushed.is_empty() {
            self.replay = Some(Replay { from: 0, in_flight: 0, after_loss: true, failed: None });
        }
    }

    /// Returns the callers of all requests, which will not be answered any more.
    pub(crate) fn give_up(&mut self) -> Vec<T> {
        self.online = false;
        let sent = std::mem::take(&mut self.sent).into_values();
        let waiting = self.waiting.drain(..).map(|(_, op)| op);
        let refused = self.refused.drain(..).map(|(owner, _)| owner);
        sent.chain(waiting).filter_map(|op| op.owner).chain(refused).collect()
    }

    /// Returns whether no caller waits.
    pub(crate) fn is_settled(&self) -> bool {
        self.sent.is_empty() && self.waiting.is_empty() && self.refused.is_empty()
    }
}

#[cfg(test)]
mod tests;
