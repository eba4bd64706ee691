//! Requests without a socket.
//!
//! They take the same path as all others. Each is a client of its own with a single request, so
//! that its answer is handed over as it was made.

use crate::host_loop::{ClientId, Elsewhere, HostLoop, ReplyTo};
use bytes::Bytes;
use slab::Slab;
use std::collections::HashMap;
use std::fmt;
use weir_core::DeviceId;
use weir_proto::{Command, CommandFlags, Errno, Request};
use weir_units::{Instant, Span};

/// The ids of errands have this bit, those of connections don't.
const ERRAND: u64 = 1 << 63;
/// The magic number, the error and the cookie before a reply's bytes.
const REPLY_HEADER: usize = 16;

/// A request to a device. Offsets and lengths are in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// The bytes of a range.
    Read {
        /// The first byte.
        offset: u64,
        /// The length; not zero.
        len: u32,
    },
    /// Puts bytes in place.
    Write {
        /// The first byte that they replace.
        offset: u64,
        /// The bytes; not none.
        data: Vec<u8>,
        /// Answered when they survive a loss of power.
        durable: bool,
    },
    /// Makes a range read as zeros, and frees its space.
    Zero {
        /// The first byte.
        offset: u64,
        /// The length; not zero.
        len: u32,
        /// Answered when that survives a loss of power.
        durable: bool,
    },
    /// Makes acknowledged writes durable.
    Flush,
    /// Admits an operation that is executed elsewhere: no bytes of the device move.
    Admit(Passing),
}

/// An operation that is executed elsewhere and charged to a device. Offsets and lengths are in
/// bytes, the length of all but a flush is not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passing {
    /// Bytes are read: where, how many.
    Read(u64, u32),
    /// Bytes are written, and past a cache if they must be durable.
    Write(u64, u32, bool),
    /// A range is discarded.
    Discard(u64, u32),
    /// Writes are made durable.
    Flush,
}

impl Ask {
    fn request(&self, cookie: u64) -> Request {
        let (command, offset, length, durable) = match self {
            Self::Read { offset, len } => (Command::Read, *offset, *len, false),
            Self::Write { offset, data, durable } => {
                let len = u32::try_from(data.len()).unwrap_or(u32::MAX);
                (Command::Write, *offset, len, *durable)
            }
            Self::Zero { offset, len, durable } => (Command::WriteZeroes, *offset, *len, *durable),
            Self::Flush | Self::Admit(Passing::Flush) => (Command::Flush, 0, 0, false),
            Self::Admit(Passing::Read(offset, len)) => (Command::Read, *offset, *len, false),
            Self::Admit(Passing::Write(offset, len, durable)) => {
                (Command::Write, *offset, *len, *durable)
            }
            Self::Admit(Passing::Discard(offset, len)) => {
                (Command::WriteZeroes, *offset, *len, false)
            }
        };
        let flags = if durable { CommandFlags::FUA } else { CommandFlags::NONE };
        Request { flags, command, cookie, offset, length }
    }

    fn payload(&self) -> &[u8] {
        if let Self::Write { data, .. } = self { data } else { &[] }
    }
}

/// Conditions under which a request is refused instead of waiting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Terms {
    /// The longest wait at the limits; unlimited by default.
    pub most_wait: Option<Span>,
    /// The most requests of its device that may be in flight before it; any number
    /// if not said.
    pub most_before: Option<usize>,
}

/// The reason why a request was not executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotDone {
    /// Its [`Terms`] are not met. The value is the estimated wait.
    Busy(Span),
    /// The device failed.
    Failed(Errno),
    /// The device was removed, or its host crashed or stops.
    Gone,
}

/// The result of a request: the bytes of a read, else nothing.
pub type Answer = Result<Bytes, NotDone>;

type Told = Box<dyn FnOnce(Answer) + Send>;

/// The receiver of an answer, which is also told if the request is dropped: a host that ends drops
/// what is in its mailbox.
pub(crate) struct Telling(Option<Told>);

impl Telling {
    pub(crate) fn new(told: impl FnOnce(Answer) + Send + 'static) -> Self {
        Self(Some(Box::new(told)))
    }

    fn tell(mut self, answer: Answer) {
        if let Some(told) = self.0.take() {
            told(answer);
        }
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        if let Some(told) = self.0.take() {
            told(Err(NotDone::Gone));
        }
    }
}

/// A request on its way to its host.
pub(crate) struct NewErrand {
    pub(crate) device: DeviceId,
    pub(crate) ask: Ask,
    pub(crate) terms: Terms,
    pub(crate) from: Option<Elsewhere>,
    pub(crate) told: Telling,
}

/// A request under way.
struct Errand {
    id: ClientId,
    device: DeviceId,
    told: Telling,
    out: Vec<u8>,
    in_flight: usize,
    reading: usize,
    writing: usize,
}

/// The requests of a host that came without a socket.
#[derive(Default)]
pub(crate) struct Errands {
    open: Slab<Errand>,
    count: u32,
    /// The number of requests of each device.
    of_device: HashMap<DeviceId, usize>,
}

impl fmt::Debug for Errands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Errands").field("open", &self.open.len()).finish_non_exhaustive()
    }
}

impl Errands {
    /// Returns whether this is the id of such a request.
    pub(crate) fn has(id: ClientId) -> bool {
        id.0 & ERRAND != 0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Takes a request to the host.
    pub(crate) fn take(&mut self, new: NewErrand, now: Instant, host: &mut HostLoop) {
        let NewErrand { device, ask, terms, from, told } = new;
        let from = if matches!(ask, Ask::Admit(_)) { Some(Elsewhere::Done) } else { from };
        let before = self.of_device.get(&device).copied().unwrap_or(0);
        if terms.most_wait.is_some() || terms.most_before.is_some_and(|most| before >= most) {
            let wait = host.backlog(now, device);
            let too_long = terms.most_wait.is_some_and(|most| wait > most);
            if too_long || terms.most_before.is_some_and(|most| before >= most) {
                host.turn_away(device);
                told.tell(Err(NotDone::Busy(wait)));
                return;
            }
        }
        self.count = self.count.wrapping_add(1) & (u32::MAX >> 1);
        let key = self.open.vacant_key();
        let id = ClientId(ERRAND | u64::from(self.count) << 32 | key as u64);
        let (mut request, payload) = (ask.request(key as u64), ask.payload());
        if matches!(from, Some(Elsewhere::Store { .. })) {
            let size = u32::try_from(host.size(device).get()).unwrap_or(u32::MAX);
            request.length = request.length.min(size);
        }
        let reads = request.command == Command::Read && !matches!(from, Some(Elsewhere::Done));
        match host.submit_from(now, id, device, &request, payload, from) {
            Err(errno) => told.tell(Err(NotDone::Failed(errno))),
            Ok(writing) => {
                let room = REPLY_HEADER + if reads { request.length as usize } else { 0 };
                let (out, reading) = (Vec::with_capacity(room), 0);
                self.open.insert(Errand { id, device, told, out, in_flight: 1, reading, writing });
                *self.of_device.entry(device).or_default() += 1;
            }
        }
    }

    pub(crate) fn reply_to(&mut self, id: ClientId) -> Option<ReplyTo<'_>> {
        let errand = self.get(id)?;
        Some(ReplyTo {
            out: &mut errand.out,
            structured: false,
            meta_context: None,
            in_flight: &mut errand.in_flight,
            reading: &mut errand.reading,
            writing: &mut errand.writing,
            room: usize::MAX,
        })
    }

    /// Passes the answer on, if the request is answered.
    pub(crate) fn look_after(&mut self, id: ClientId) {
        if self.get(id).is_some_and(|errand| errand.in_flight == 0) {
            let mut errand = self.remove(key_of(id));
            let answer = match errno_in(&errand.out) {
                Some(errno) => Err(NotDone::Failed(errno)),
                None => {
                    let reply = Bytes::from(std::mem::take(&mut errand.out));
                    Ok(reply.slice(REPLY_HEADER.min(reply.len())..))
                }
            };
            errand.told.tell(answer);
        }
    }

    /// Drops all requests in flight, which answers them with [`NotDone::Gone`].
    pub(crate) fn forget_all(&mut self) {
        self.of_device.clear();
        self.open.drain().for_each(drop);
    }

    fn get(&mut self, id: ClientId) -> Option<&mut Errand> {
        self.open.get_mut(key_of(id)).filter(|errand| errand.id == id)
    }

    fn remove(&mut self, key: usize) -> Errand {
        let errand = self.open.remove(key);
        if let Some(count) = self.of_device.get_mut(&errand.device) {
            *count -= 1;
            if *count == 0 {
                self.of_device.remove(&errand.device);
            }
        }
        errand
    }
}

fn key_of(id: ClientId) -> usize {
    usize::try_from(id.0 & u64::from(u32::MAX)).unwrap_or(usize::MAX)
}

/// Returns the error of a reply.
fn errno_in(reply: &[u8]) -> Option<Errno> {
    let code = reply.get(4..8).and_then(|code| code.try_into().ok()).map(u32::from_be_bytes);
    match code {
        Some(code) => Errno::from_wire(code),
        None => Some(Errno::Io),
    }
}
