//! The requests of a host, for a recording.
//!
//! ```text
//!   host's thread: begun, ended --> local list --(end of a turn, if the lock is free)--> buffer
//!   recorder:      every 20 ms, takes the buffer, sorts, writes
//! ```
//!
//! A host without a recording pays one comparison for each request. One with a recording never
//! waits for the recorder: if the buffer is locked, the list is handed over in the next turn, and
//! if it is full, requests are counted as lost and the recording fails.

use std::mem;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use weir_core::{DeviceId, Op};
use weir_units::{Instant, Span};

/// The most events that wait for the recorder.
const MOST: usize = 1 << 20;

/// A step of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Begun {
        device: DeviceId,
        op: Op,
        offset: u64,
        len: u64,
        at: Instant,
    },
    /// `None` if it was dropped by a crash.
    Ended(Option<Span>),
}

/// A step of the request with this number. Numbers follow the order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tapped {
    pub(crate) number: NonZeroU64,
    pub(crate) step: Step,
}

/// Events that wait for the recorder, and the number of requests that found no room.
#[derive(Debug, Default)]
struct Waiting {
    events: Vec<Tapped>,
    lost: u64,
}

/// The buffer between a host and its recorder.
#[derive(Debug, Clone, Default)]
pub(crate) struct Buffer(Arc<Mutex<Waiting>>);

impl Buffer {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces `events`, whose room is used again, by those that wait. Returns the number of
    /// requests lost so far.
    pub(crate) fn take(&self, events: &mut Vec<Tapped>) -> u64 {
        events.clear();
        let mut waiting = self.lock();
        mem::swap(&mut waiting.events, events);
        waiting.lost
    }
}

/// A host's end of a recording.
#[derive(Debug)]
pub(crate) struct Tap {
    buffer: Buffer,
    /// Events of this turn, and of earlier ones that found the buffer locked.
    local: Vec<Tapped>,
    /// The numbers of the last request before the recording and of the last one so far.
    before: u64,
    begun: u64,
    /// Requests lost that the recorder was not told of.
    lost: u64,
}

impl Tap {
    /// Taps a host whose last recorded request had the number `before`.
    pub(crate) const fn new(buffer: Buffer, before: u64) -> Self {
        Self { buffer, local: Vec::new(), before, begun: before, lost: 0 }
    }

    /// Notes an arrival and returns its number.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        at: Instant,
        (device, op): (DeviceId, Op),
        (offset, len): (u64, u64),
    ) -> Option<NonZeroU64> {
        self.begun += 1;
        let number = NonZeroU64::new(self.begun)?;
        let (offset, len) = if op == Op::Flush { (0, 0) } else { (offset, len) };
        let step = Step::Begun { device, op, offset, len, at };
        self.local.push(Tapped { number, step });
        Some(number)
    }

    #[inline]
    pub(crate) fn end(&mut self, number: NonZeroU64, latency: Option<Span>) {
        // Otherwise it is of an earlier recording.
        if number.get() > self.before {
            self.local.push(Tapped { number, step: Step::Ended(latency) });
        }
    }

    /// Hands the events over, unless the recorder has the buffer right now.
    pub(crate) fn hand_over(&mut self) {
        if self.local.is_empty() {
            return;
        }
        let is_begin = |own: &&Tapped| matches!(own.step, Step::Begun { .. });
        let waiting = match self.buffer.0.try_lock() {
            Ok(waiting) => Some(waiting),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        let room = MOST.saturating_sub(waiting.as_ref().map_or(0, |own| own.events.len()));
        if self.local.len() > room {
            self.lost += self.local.iter().filter(is_begin).count() as u64;
            self.local.clear();
        }
        if let Some(mut waiting) = waiting {
            waiting.events.append(&mut self.local);
            waiting.lost += mem::take(&mut self.lost);
        }
    }

    /// Ends the recording and hands over the last events. Returns the number of the last request.
    pub(crate) fn finish(mut self) -> u64 {
        let mut waiting = self.buffer.lock();
        waiting.events.append(&mut self.local);
        waiting.lost += self.lost;
        self.begun
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(tap: &mut Tap, count: u64) {
        for n in 0..count {
            let at = Instant::from_nanos(n);
            tap.begin(at, (DeviceId(0), Op::Read), (n, 512)).expect("a number");
        }
    }

    #[test]
    fn a_slow_recorder_loses_requests_and_is_told_how_many() {
        let buffer = Buffer::default();
        let mut tap = Tap::new(buffer.clone(), 40);
        let most = MOST as u64;
        fill(&mut tap, most);
        tap.hand_over();
        fill(&mut tap, 7);
        tap.hand_over();
        let mut events = Vec::new();
        assert_eq!((buffer.take(&mut events), events.len()), (7, MOST));
        // There is room again.
        fill(&mut tap, 3);
        tap.hand_over();
        assert_eq!((buffer.take(&mut events), events.len()), (7, 3));
    }

    #[test]
    fn the_host_does_not_wait_for_the_recorder() {
        let buffer = Buffer::default();
        let mut tap = Tap::new(buffer.clone(), 40);
        let held = buffer.lock();
        fill(&mut tap, 5);
        tap.hand_over();
        assert_eq!((tap.local.len(), held.events.len()), (5, 0));
        drop(held);
        tap.hand_over();
        assert_eq!(tap.local.len(), 0);
        let mut events = Vec::new();
        assert_eq!((buffer.take(&mut events), events.len()), (0, 5));
    }

    #[test]
    fn the_end_of_a_request_of_an_earlier_recording_is_not_kept() {
        let buffer = Buffer::default();
        let mut tap = Tap::new(buffer.clone(), 40);
        let number = tap.begin(Instant::ZERO, (DeviceId(0), Op::Flush), (9, 9)).expect("a number");
        tap.end(NonZeroU64::new(40).expect("a number"), None);
        assert_eq!(number.get(), 41);
        tap.end(number, Some(Span::from_nanos(3)));
        assert_eq!(tap.finish(), 41);
        let mut events = Vec::new();
        buffer.take(&mut events);
        let (device, op, at) = (DeviceId(0), Op::Flush, Instant::ZERO);
        let begun = Step::Begun { device, op, offset: 0, len: 0, at };
        let steps: Vec<Step> = events.iter().map(|own| own.step).collect();
        assert_eq!(steps, [begun, Step::Ended(Some(Span::from_nanos(3)))]);
    }
}
