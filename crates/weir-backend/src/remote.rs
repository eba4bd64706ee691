//! A store on an NBD server.

mod asynchronous;

use crate::book::Action;
use crate::condition::{Condition, Gauge, Hearing};
use crate::dial::{Terms, dial};
use crate::edges::Edges;
use crate::error::{BackendError, answered, failed};
use crate::line::{Given, Line, NotGiven, Owner, Place};
use crate::pump::Pump;
use crate::unflushed::Payload;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use weir_proto::{BlockState, Uri};
use weir_store::{AsyncStore, Extent, ExtentKind, ExtentList, Store, StoreError};
use weir_units::{Bytes, Span};

type Result<T> = std::result::Result<T, StoreError>;

/// Requests of one caller in flight.
const AT_ONCE: usize = 8;
/// The longest range that is zeroed by one request, and the longest that is asked for its extents.
const LONGEST_RANGE: u64 = 128 << 20;
/// The longest write of zeros to a server without a command for them.
const ZEROS: u64 = 1 << 20;
/// Writes that are worth storing at once.
const DEPTH: usize = 32;

/// The way to an export.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// The export.
    pub uri: Uri,
    /// Maximum number of connections.
    pub connections: u32,
    /// The longest wait for an answer. Later, a request fails.
    pub timeout: Span,
    /// The receiver of changes of the condition.
    pub hearing: Hearing,
    /// Ends the wait for the first connection when it is set.
    pub given_up: Arc<AtomicBool>,
}

/// A store on an NBD server. It survives losses of the connection and restarts of the server, see the
/// crate.
#[derive(Debug)]
pub struct RemoteStore {
    export: Arc<Export>,
    /// The used part of the export.
    size: Bytes,
    terms: Terms,
    line: Arc<Line>,
    edges: Edges,
    zeros: Arc<[u8]>,
    thread: Option<JoinHandle<()>>,
}

/// The facts about an export in error messages.
#[derive(Debug)]
struct Export {
    address: String,
    timeout: Span,
}

/// A request as error messages name it.
#[derive(Debug, Clone, Copy)]
enum Asked {
    Read { offset: u64, len: u64 },
    Write { offset: u64, len: u64 },
    Zeros { offset: u64, len: u64 },
    Flush,
    Extents { offset: u64 },
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { offset, len } => write!(f, "a read of {len} bytes at {offset}"),
            Self::Write { offset, len } => write!(f, "a write of {len} bytes at {offset}"),
            Self::Zeros { offset, len } => write!(f, "zeroing {len} bytes at {offset}"),
            Self::Flush => f.write_str("a flush"),
            Self::Extents { offset } => write!(f, "a question for extents at {offset}"),
        }
    }
}

impl Export {
    fn not_given(&self, what: &Asked, reason: NotGiven) -> StoreError {
        let Self { address, timeout } = self;
        match reason {
            NotGiven::Answered(errno) => answered(address, &what.to_string(), errno),
            NotGiven::Late => {
                let context = format!("backend {address} has not answered {what} for {timeout}");
                failed(context, io::ErrorKind::TimedOut.into())
            }
            NotGiven::Failed(reason) => {
                let context = format!("backend {address} is not used any more: {reason}");
                failed(context, io::Error::other(reason))
            }
        }
    }

    fn left_out(&self, missing: usize, what: &Asked) -> StoreError {
        let context = format!("backend {} left out {missing} bytes of {what}", self.address);
        failed(context, io::ErrorKind::InvalidData.into())
    }
}

impl RemoteStore {
    /// Connects, and starts the thread of the volume.
    ///
    /// # Errors
    ///
    /// [`BackendError`] if the server cannot be reached, or its export cannot be used.
    pub fn open(options: RemoteOptions) -> std::result::Result<Self, BackendError> {
        let RemoteOptions { uri, connections, timeout, hearing, given_up } = options;
        let line = Arc::new(Line::new(Gauge::new(hearing))?);
        let (open, terms) = dial(&uri, connections, timeout, &given_up, |_, _| Ok(()))?;
        let export = Arc::new(Export { address: uri.to_string(), timeout });
        let place = Place { uri, connections, timeout };
        let pump = Pump::new(Arc::clone(&line), place, open, terms)?;
        let thread = thread::Builder::new().name("weir-nbd".to_owned()).spawn(move || pump.run());
        let context = "starting the thread of a backend";
        let thread = thread.map_err(|source| BackendError::System { context, source })?;
        let zeros = if terms.zeroes { Vec::new() } else { vec![0; zeros_len(&terms)] };
        let edges = Edges::new(terms.block);
        let (zeros, thread) = (zeros.into(), Some(thread));
        let size = terms.size;
        Ok(Self { export, size, terms, line, edges, zeros, thread })
    }

    /// Uses only the first `size` bytes.
    #[must_use]
    pub fn shortened(mut self, size: Bytes) -> Self {
        self.size = size.min(self.size);
        self
    }

    /// Returns the state of the connection.
    #[must_use]
    pub fn condition(&self) -> Condition {
        self.line.gauge.read()
    }

    fn check(&self, offset: u64, len: u64) -> Result<()> {
        let size = self.size.get();
        match offset.checked_add(len) {
            Some(end) if end <= size => Ok(()),
            _ => Err(StoreError::OutOfRange { offset, len, size }),
        }
    }

    /// Sends requests, and hands on their results, which come in any order. Each has the timeout for
    /// itself. After an error, no further ones are sent.
    fn send(
        &self,
        what: &Asked,
        actions: impl IntoIterator<Item = (u64, Action)>,
        mut take: impl FnMut(usize, Given),
    ) -> Result<()> {
        let (told, answers) = channel();
        let (mut under_way, mut error) = (0, None);
        let mut actions = actions.into_iter().enumerate();
        loop {
            while under_way < AT_ONCE && error.is_none() {
                let Some((place, (offset, action))) = actions.next() else { break };
                let told = told.clone();
                // The other end is there until all are answered.
                let owner = Owner::new(move |result| drop(told.send((place, result))));
                self.line.submit(offset, action, owner);
                under_way += 1;
            }
            if under_way == 0 {
                return error.map_or(Ok(()), Err);
            }
            self.line.kick();
            let Ok((place, result)) = answers.recv() else {
                unreachable!("this function has an end of the channel itself")
            };
            under_way -= 1;
            match result {
                Ok(given) => take(place, given),
                Err(reason) => error = error.or(Some(self.export.not_given(what, reason))),
            }
        }
    }

    /// Splits a range at multiples of `longest` bytes from its start.
    fn split(range: Range<u64>, longest: u64) -> impl Iterator<Item = (u64, u32)> {
        let (mut at, end) = (range.start, range.end);
        std::iter::from_fn(move || {
            let len = (end - at).min(longest);
            let part = (at, u32::try_from(len).unwrap_or(u32::MAX));
            at += len;
            (len > 0).then_some(part)
        })
    }

    /// Reads whole blocks.
    fn read_blocks(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let longest = u64::from(self.terms.longest);
        let parts = Self::split(offset..offset + buf.len() as u64, longest);
        let reads = parts.map(|(at, len)| (at, Action::Read { len }));
        let what = Asked::Read { offset, len: buf.len() as u64 };
        let mut missing = buf.len();
        self.send(&what, reads, |place, given| {
            let start = place * self.terms.longest as usize;
            let Given::Data(data) = given else { return };
            if let Some(to) = buf.get_mut(start..).and_then(|to| to.get_mut(..data.len())) {
                to.copy_from_slice(&data);
                missing = missing.saturating_sub(data.len());
            }
        })?;
        if missing > 0 {
            return Err(self.export.left_out(missing, &what));
        }
        Ok(())
    }

    /// Sends writes. Returns whether all of them are durable.
    fn send_writes(
        &self,
        what: &Asked,
        writes: impl IntoIterator<Item = (u64, Action)>,
    ) -> Result<bool> {
        let mut are_durable = true;
        self.send(what, writes, |_, given| are_durable &= matches!(given, Given::Durable))?;
        Ok(are_durable)
    }

    /// Makes the action of a write that should be durable if `durably`.
    fn write_action(&self, payload: Payload, durably: bool) -> Action {
        match durably && self.terms.fua {
            true => Action::WriteDurably(payload),
            false => Action::Write(payload),
        }
    }

    /// Writes whole blocks. If it takes several requests, one flush costs less than to make each durable.
    fn write_blocks(&self, offset: u64, data: &[u8], durably: bool) -> Result<bool> {
        let longest = self.terms.longest as usize;
        let durably = durably && data.len() <= longest;
        let parts = data.chunks(longest).enumerate().map(|(place, part)| {
            let at = offset + (place * longest) as u64;
            (at, self.write_action(Payload::bytes(part.into()), durably))
        });
        self.send_writes(&Asked::Write { offset, len: data.len() as u64 }, parts)
    }

    /// Writes a range by reading the blocks around it, changing and writing them. Nothing else writes.
    fn change_blocks(
        &self,
        (offset, len): (u64, u64),
        durably: bool,
        change: impl FnOnce(&mut [u8]),
    ) -> Result<bool> {
        let around = self.edges.around(offset, len);
        let mut blocks = vec![0; within(around.end - around.start)];
        self.read_blocks(around.start, &mut blocks)?;
        change(&mut blocks[within(offset - around.start)..within(offset + len - around.start)]);
        self.write_blocks(around.start, &blocks, durably)
    }

    /// Zeroes whole blocks, see [`Self::write_blocks`].
    fn zero_blocks(
        &self,
        (offset, len): (u64, u64),
        keeps_space: bool,
        durably: bool,
    ) -> Result<bool> {
        let block = u64::from(self.terms.block);
        let longest = match self.terms.zeroes {
            true => LONGEST_RANGE / block * block,
            false => self.zeros.len() as u64,
        };
        let durably = durably && len <= longest;
        let parts = Self::split(offset..offset + len, longest).map(|(at, len)| {
            let payload = match self.terms.zeroes {
                true => Payload::Zeros { len: u64::from(len), keeps_space },
                false => {
                    let (all, len) = (Arc::clone(&self.zeros), len as usize);
                    Payload::Bytes { all, start: 0, len }
                }
            };
            (at, self.write_action(payload, durably))
        });
        self.send_writes(&Asked::Zeros { offset, len }, parts)
    }

    fn write(&self, offset: u64, data: &[u8], durably: bool) -> Result<bool> {
        let len = data.len() as u64;
        self.check(offset, len)?;
        self.edges.write(offset, len, |grows| match grows {
            false => self.write_blocks(offset, data, durably),
            true => self.change_blocks((offset, len), durably, |part| part.copy_from_slice(data)),
        })
    }

    fn zero(&self, offset: u64, len: u64, may_trim: bool, durably: bool) -> Result<bool> {
        self.check(offset, len)?;
        // The whole blocks inside, and a part of a block before and after them.
        let around = self.edges.around(offset, len);
        let start =
            if around.start < offset { around.start + u64::from(self.terms.block) } else { offset };
        let end = offset + len;
        let inner_end =
            if around.end > end { around.end - u64::from(self.terms.block) } else { end };
        let zero_part = |from: u64, to: u64| {
            let range = (from, to - from);
            let zero = |_| self.change_blocks(range, durably, |part| part.fill(0));
            self.edges.write(from, to - from, zero)
        };
        if start > inner_end {
            return zero_part(offset, end);
        }
        let mut are_durable = true;
        for (from, to) in [(offset, start), (inner_end, end)] {
            if from < to {
                are_durable &= zero_part(from, to)?;
            }
        }
        let inner = (start, inner_end - start);
        let zero = |_| self.zero_blocks(inner, !may_trim, durably);
        are_durable &= self.edges.write(start, inner.1, zero)?;
        Ok(are_durable)
    }
}

fn zeros_len(terms: &Terms) -> usize {
    let block = u64::from(terms.block);
    within(ZEROS.min(u64::from(terms.longest)) / block * block)
}

#[expect(clippy::cast_possible_truncation, reason = "within a buffer that is in memory")]
fn within(n: u64) -> usize {
    n as usize
}

impl Store for RemoteStore {
    fn size(&self) -> Bytes {
        self.size
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let len = buf.len() as u64;
        self.check(offset, len)?;
        if self.edges.is_aligned(offset, len) {
            return self.read_blocks(offset, buf);
        }
        let around = self.edges.around(offset, len);
        let mut blocks = vec![0; within(around.end - around.start)];
        self.read_blocks(around.start, &mut blocks)?;
        buf.copy_from_slice(&blocks[within(offset - around.start)..][..buf.len()]);
        Ok(())
    }

    /// Never reads: the server would have to be waited for.
    fn try_read_at(&self, offset: u64, buf: &mut [u8]) -> Result<bool> {
        self.check(offset, buf.len() as u64)?;
        Ok(buf.is_empty())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.write(offset, data, false).map(drop)
    }

    fn write_zeroes(&self, offset: u64, len: u64, may_trim: bool) -> Result<()> {
        self.zero(offset, len, may_trim, false).map(drop)
    }

    fn write_durably(&self, offset: u64, data: &[u8]) -> Result<bool> {
        self.write(offset, data, true)
    }

    fn zero_durably(&self, offset: u64, len: u64, may_trim: bool) -> Result<bool> {
        self.zero(offset, len, may_trim, true)
    }

    /// Zeroes the range: a trim of NBD would leave its content open.
    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        self.write_zeroes(offset, len, true)
    }

    fn sync(&self) -> Result<()> {
        self.send(&Asked::Flush, [(0, Action::Flush)], |_, _| {})
    }

    fn resize(&self, new: Bytes) -> Result<()> {
        if new == self.size {
            return Ok(());
        }
        let context = format!("backend {} is not resized by Weir", self.export.address);
        Err(failed(context, io::ErrorKind::Unsupported.into()))
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>> {
        self.check(offset, len)?;
        let mut list = ExtentList::new(max);
        if !self.terms.extents {
            list.push(len, ExtentKind::Data);
            return Ok(list.into_vec());
        }
        let around = self.edges.around(offset, len);
        let (mut at, end) = (around.start, offset + len);
        while at < end && !list.is_full() {
            let ask = u32::try_from((around.end - at).min(LONGEST_RANGE)).unwrap_or(u32::MAX);
            let (mut told, what) = (Vec::new(), Asked::Extents { offset: at });
            self.send(&what, [(at, Action::Extents { len: ask })], |_, given| {
                if let Given::Extents(extents) = given {
                    told = extents;
                }
            })?;
            if told.is_empty() {
                let context =
                    format!("backend {} answered no extents at {at}", self.export.address);
                return Err(failed(context, io::ErrorKind::InvalidData.into()));
            }
            for extent in told {
                let is_hole = extent.state.contains(BlockState::ZERO | BlockState::HOLE);
                let kind = if is_hole { ExtentKind::Hole } else { ExtentKind::Data };
                let (from, to) = (at.max(offset), (at + u64::from(extent.length)).min(end));
                list.push(to.saturating_sub(from), kind);
                at += u64::from(extent.length);
            }
        }
        Ok(list.into_vec())
    }

    /// Returns the size: a server is not asked for less.
    fn allocated(&self) -> Result<Bytes> {
        Ok(self.size)
    }

    fn depth(&self) -> usize {
        DEPTH
    }

    fn asynchronous(&self) -> Option<&dyn AsyncStore> {
        Some(self)
    }
}

impl Drop for RemoteStore {
    fn drop(&mut self) {
        self.line.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
