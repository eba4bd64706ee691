//! The earliest of all pending alarms.
//!
//! A gate has at most one entry (the head of its queue), so there are about as
//! many entries as requests inside the media, not as many as wait. They lie in a
//! wheel of buckets of 4 µs; a bucket is sorted when time has reached it and not
//! before, so the order is exact to the nanosecond and setting and taking cost the
//! same however many there are. What is further away than the wheel reaches waits
//! in a heap.
//!
//! ```text
//!   near (sorted)      | bucket | bucket |  ...  | bucket |   far (heap)
//!   the last bucket    ^ `horizon`         4.2 ms further     the rest
//!   that time reached
//! ```

use alloc::vec::Vec;
use core::cmp::Reverse;
use dary_heap::QuaternaryHeap;
use weir_units::Instant;

/// A moment that the engine waits for. Indices have 30 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alarm {
    /// The request at the head of a gate may go. Stale if the gate has meanwhile
    /// been given another time.
    Gate(u32),
    /// The medium has finished a part.
    Medium(u32),
    /// Dirty blocks of a volume have been lying long enough.
    Writeback(u32),
    /// A request that was admitted ahead is done.
    Ahead(u32),
}

impl Alarm {
    pub(crate) const INDEX: u32 = (1 << 30) - 1;

    fn pack(self) -> u32 {
        let (kind, index) = match self {
            Self::Gate(gate) => (0, gate),
            Self::Medium(part) => (1, part),
            Self::Writeback(volume) => (2, volume),
            Self::Ahead(request) => (3, request),
        };
        debug_assert!(index <= Self::INDEX, "{self:?} does not fit");
        kind << 30 | index
    }

    fn unpack(bits: u32) -> Self {
        let index = bits & Self::INDEX;
        match bits >> 30 {
            0 => Self::Gate(index),
            1 => Self::Medium(index),
            2 => Self::Writeback(index),
            _ => Self::Ahead(index),
        }
    }
}

/// Later than every entry.
const NEVER: u128 = u128::MAX;
/// The number of alarms that have a slot of their own.
pub(crate) const SLOTS: usize = 7;
/// Nanoseconds of a bucket, as a power of two.
const BUCKET_BITS: u32 = 12;
const BUCKETS: usize = 1024;

/// Entries of the same 4 µs.
#[derive(Debug, Clone)]
struct Bucket {
    first: u128,
    entries: Vec<u128>,
}

/// Pending alarms, earliest first; of equal times the one that was set first.
///
/// An entry is one integer: 64 bits of time, 32 bits of order, 32 bits of alarm.
/// The order wraps after four thousand million alarms, which can swap two alarms
/// of the same nanosecond, in every driver alike.
#[derive(Debug)]
pub(crate) struct Timers {
    /// All entries of buckets before `horizon`, latest first.
    near: Vec<u128>,
    /// The earliest entry behind `near`; known while `near` is empty.
    ahead: u128,
    /// The number of the first bucket that is not in `near`.
    horizon: u64,
    /// Buckets `horizon .. horizon + BUCKETS`, unsorted.
    wheel: Vec<Bucket>,
    /// A bit for each bucket of the wheel that is not empty.
    occupied: [u64; BUCKETS / 64],
    far: QuaternaryHeap<Reverse<u128>>,
    /// One entry for each alarm that is set again and again, so that it is replaced.
    slots: [u128; SLOTS],
    /// The slot of the earliest of these.
    first_slot: usize,
    /// The earliest entry of all. A driver asks for it several times for each alarm.
    first: u128,
    order: u32,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            near: Vec::new(),
            ahead: NEVER,
            horizon: 0,
            wheel: alloc::vec![Bucket { first: NEVER, entries: Vec::new() }; BUCKETS],
            occupied: [0; BUCKETS / 64],
            far: QuaternaryHeap::new(),
            slots: [NEVER; SLOTS],
            first_slot: 0,
            first: NEVER,
            order: 0,
        }
    }
}

impl Timers {
    /// Sets an alarm.
    pub(crate) fn set(&mut self, at: Instant, alarm: Alarm) {
        let order = self.next_order();
        self.set_in_order(at, order, alarm);
    }

    /// Sets the alarm of a slot, instead of one that is set there.
    pub(crate) fn set_slot(&mut self, slot: usize, at: Instant, alarm: Alarm) {
        self.slots[slot] = entry(at, self.next_order(), alarm);
        if slot == self.first_slot {
            self.first_slot = self.find_first_slot();
        } else if self.slots[slot] < self.slots[self.first_slot] {
            self.first_slot = slot;
        }
        self.first = self.find_first();
    }

    /// Returns the place that an alarm set now would have among those of the same time.
    pub(crate) fn next_order(&mut self) -> u32 {
        self.order = self.order.wrapping_add(1);
        self.order
    }

    /// Sets an alarm that has this place among those of the same time.
    pub(crate) fn set_in_order(&mut self, at: Instant, order: u32, alarm: Alarm) {
        let entry = entry(at, order, alarm);
        self.first = self.first.min(entry);
        let bucket = bucket(at);
        if bucket < self.horizon {
            let behind = self.near.partition_point(|other| *other > entry);
            self.near.insert(behind, entry);
            return;
        }
        if self.near.is_empty() {
            self.ahead = self.ahead.min(entry);
        }
        if bucket - self.horizon < BUCKETS as u64 {
            self.put(bucket, entry);
        } else {
            self.far.push(Reverse(entry));
        }
    }

    #[inline]
    pub(crate) fn next(&self) -> Option<Instant> {
        (self.first != NEVER).then(|| time(self.first))
    }

    fn find_first(&self) -> u128 {
        self.first_in_order().min(self.slots[self.first_slot])
    }

    /// Returns the earliest entry that is not in a slot.
    fn first_in_order(&self) -> u128 {
        self.near.last().copied().unwrap_or(self.ahead)
    }

    /// Takes the earliest alarm that is not later than `now`.
    #[inline]
    pub(crate) fn expired(&mut self, now: Instant) -> Option<(Instant, Alarm)> {
        let first = self.first;
        if time(first) > now || first == NEVER {
            return None;
        }
        self.take_first();
        Some((time(first), alarm(first)))
    }

    /// Takes the earliest entry of all.
    fn take_first(&mut self) {
        if self.first == self.slots[self.first_slot] {
            self.slots[self.first_slot] = NEVER;
            self.first_slot = self.find_first_slot();
        } else {
            if self.near.pop().is_none() {
                self.take_ahead();
            }
            if self.near.is_empty() {
                self.ahead = self.first_ahead();
            }
        }
        self.first = self.find_first();
    }

    fn find_first_slot(&self) -> usize {
        let mut first = 0;
        for slot in 1..SLOTS {
            if self.slots[slot] < self.slots[first] {
                first = slot;
            }
        }
        first
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn put(&mut self, bucket: u64, entry: u128) {
        let slot = slot(bucket);
        let Bucket { first, entries } = &mut self.wheel[slot];
        *first = entry.min(*first);
        entries.push(entry);
        self.occupied[slot / 64] |= 1 << (slot % 64);
    }

    /// Takes the first entry behind `near`, and makes the rest of its bucket the near one.
    fn take_ahead(&mut self) {
        let first = self.ahead;
        let bucket = bucket(time(first));
        if bucket - self.horizon >= BUCKETS as u64 {
            // It is in the heap.
            self.turn(bucket);
        }
        let slot = slot(bucket);
        let held = &mut self.wheel[slot];
        held.first = NEVER;
        if held.entries.len() > 1 {
            core::mem::swap(&mut self.near, &mut held.entries);
            self.near.sort_unstable_by(|a, b| b.cmp(a));
            self.near.pop();
        } else {
            held.entries.clear();
        }
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        self.turn(bucket + 1);
    }

    /// Moves the horizon to a bucket, before which nothing lies in the wheel, and
    /// brings in what the wheel reaches now.
    #[inline]
    fn turn(&mut self, to: u64) {
        self.horizon = to;
        while let Some(Reverse(entry)) = self.far.peek().copied() {
            let bucket = bucket(time(entry));
            if bucket - to >= BUCKETS as u64 {
                return;
            }
            self.far.pop();
            self.put(bucket, entry);
        }
    }

    /// The earliest entry of wheel and heap.
    fn first_ahead(&self) -> u128 {
        match self.next_occupied() {
            Some(slot) => self.wheel[slot].first,
            None => self.far.peek().map_or(NEVER, |first| first.0),
        }
    }

    /// The first slot of the wheel that is not empty.
    fn next_occupied(&self) -> Option<usize> {
        let start = slot(self.horizon);
        let words = BUCKETS / 64;
        for step in 0..=words {
            let word = (start / 64 + step) % words;
            // The last step comes to the first word again, for the bits below these.
            let mask = if step == 0 { u64::MAX << (start % 64) } else { u64::MAX };
            let bits = self.occupied[word] & mask;
            if bits != 0 {
                return Some(word * 64 + bits.trailing_zeros() as usize);
            }
        }
        None
    }
}

fn entry(at: Instant, order: u32, alarm: Alarm) -> u128 {
    let low = u64::from(order) << 32 | u64::from(alarm.pack());
    u128::from(at.nanos()) << 64 | u128::from(low)
}

fn bucket(at: Instant) -> u64 {
    at.nanos() >> BUCKET_BITS
}

#[expect(clippy::cast_possible_truncation, reason = "less than BUCKETS")]
fn slot(bucket: u64) -> usize {
    (bucket % BUCKETS as u64) as usize
}

fn time(entry: u128) -> Instant {
    Instant::from_nanos((entry >> 64) as u64)
}

#[expect(clippy::cast_possible_truncation, reason = "the low 32 of 128 bits")]
fn alarm(entry: u128) -> Alarm {
    Alarm::unpack(entry as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earliest_first_and_then_in_order_of_setting() {
        let mut timers = Timers::default();
        let at = Instant::from_nanos;
        timers.set(at(20), Alarm::Gate(1));
        timers.set(at(10), Alarm::Writeback(2));
        timers.set(at(20), Alarm::Medium(0));
        assert_eq!(timers.next(), Some(at(10)));
        assert_eq!(timers.expired(at(9)), None);
        let mut all = core::iter::from_fn(|| timers.expired(at(30)));
        assert_eq!(all.next(), Some((at(10), Alarm::Writeback(2))));
        assert_eq!(all.next(), Some((at(20), Alarm::Gate(1))));
        assert_eq!(all.next(), Some((at(20), Alarm::Medium(0))));
        assert_eq!(all.next(), None);
    }

    /// Notices buckets of another length: the wheel would be of no use.
    #[test]
    fn only_alarms_that_the_wheel_does_not_reach_are_in_the_heap() {
        let mut timers = Timers::default();
        for (micros, far) in [(10, 0), (4_000, 0), (5_000, 1)] {
            timers.set(Instant::from_nanos(micros * 1_000), Alarm::Medium(0));
            assert_eq!(timers.far.len(), far, "{micros} µs");
        }
    }

    #[test]
    fn a_far_alarm_does_not_make_near_ones_dear() {
        let mut timers = Timers::default();
        let millis = |n: u64| Instant::from_nanos(n * 1_000_000);
        // A write-back in ten seconds, and then a thousand requests at a time.
        timers.set(millis(10_000), Alarm::Writeback(0));
        for round in 0..100 {
            let now = millis(round * 50);
            while timers.expired(now).is_some() {}
            for n in 0..1_000 {
                timers.set(now + weir_units::Span::from_micros(10 + n * 40), Alarm::Medium(0));
                // A sorted insertion into more than these would cost by their number.
                assert!(timers.near.len() <= 1, "{} sorted entries", timers.near.len());
            }
            assert_eq!(timers.next(), Some(now + weir_units::Span::from_micros(10)));
        }
    }

    proptest::proptest! {
        /// Against a sorted list, with times from nanoseconds to hours apart. An alarm in a slot replaces the one
        /// that was there.
        #[test]
        fn agrees_with_a_sorted_list(
            steps in proptest::collection::vec((0_u64..40, 0_u8..7, 0_u64..1 << 20), 1..400),
        ) {
            let mut timers = Timers::default();
            let mut model: Vec<(u64, u32, Option<usize>)> = Vec::new();
            let mut now = 0_u64;
            for (n, (magnitude, kind, part)) in (0_u32..).zip(steps) {
                if kind == 0 {
                    // Time passes, not up to the first.
                    let first = model.iter().map(|entry| entry.0).min();
                    now = first.map_or(now + (1 << magnitude), |first| now.midpoint(first));
                    if first != Some(now) {
                        proptest::prop_assert_eq!(timers.expired(Instant::from_nanos(now)), None);
                    }
                } else if kind < 3 {
                    model.sort_unstable();
                    now = model.first().map_or(now, |first| first.0.max(now));
                    let expect = (!model.is_empty()).then(|| model.remove(0));
                    let got = timers.expired(Instant::from_nanos(now));
                    let got = got.map(|(at, alarm)| (at.nanos(), alarm));
                    proptest::prop_assert_eq!(got, expect.map(|(at, n, _)| (at, Alarm::Gate(n))));
                } else {
                    let at = now + (part >> 10) + ((1 << magnitude) >> 1);
                    let slot = (kind > 4).then(|| usize::try_from(part).unwrap() % SLOTS);
                    match slot {
                        Some(slot) => {
                            timers.set_slot(slot, Instant::from_nanos(at), Alarm::Gate(n));
                            model.retain(|entry| entry.2 != Some(slot));
                        }
                        None => timers.set(Instant::from_nanos(at), Alarm::Gate(n)),
                    }
                    model.push((at, n, slot));
                }
                let first = model.iter().map(|entry| entry.0).min();
                proptest::prop_assert_eq!(timers.next().map(Instant::nanos), first);
            }
        }
    }
}
