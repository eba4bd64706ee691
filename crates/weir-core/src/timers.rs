//! What happens next: the earliest of all pending moments.
//!
//! A gate has at most one entry (the head of its queue), so the heap holds about
//! as many entries as there are requests inside the media, not as many as wait.

use alloc::collections::BinaryHeap;
use core::cmp::Ordering;
use weir_units::Instant;

/// A moment that the engine waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alarm {
    /// The request at the head of a gate may go. Stale if the gate's generation
    /// has moved on (its limits were changed meanwhile).
    Gate { gate: u32, generation: u32 },
    /// The medium has finished a part.
    Medium { part: u32 },
    /// Dirty blocks of a volume have been lying long enough.
    Writeback { volume: u32 },
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    at: u64,
    /// Order of setting: what was set first goes first when times are equal.
    order: u64,
    alarm: Alarm,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    /// Reversed, since the heap gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

/// Pending alarms, earliest first.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Entry>,
    order: u64,
}

impl Timers {
    pub(crate) fn set(&mut self, at: Instant, alarm: Alarm) {
        self.order += 1;
        self.heap.push(Entry { at: at.nanos(), order: self.order, alarm });
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|entry| Instant::from_nanos(entry.at))
    }

    /// Takes the earliest alarm that is not later than `now`.
    pub(crate) fn expired(&mut self, now: Instant) -> Option<(Instant, Alarm)> {
        if self.heap.peek()?.at > now.nanos() {
            return None;
        }
        self.heap.pop().map(|entry| (Instant::from_nanos(entry.at), entry.alarm))
    }

    pub(crate) fn clear(&mut self) {
        self.heap.clear();
    }
}
