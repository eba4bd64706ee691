//! A gate: the meters of one disk, or of one side of a host's limits, and the queue before
//! them.
//!
//! A request passes the meters one after the other (operations, then bytes), so
//! each nanosecond of its wait belongs to exactly one of them. Requests are let
//! through in order of arrival within a volume; one that waits for bytes does not
//! keep those behind it from the operations. Where several volumes share the
//! gate, it serves them by start-time fair queueing on what they cost it, so that
//! a volume with large requests cannot starve one with small ones. Such a gate
//! counts either operations or bytes: with both, one serving order would decide both shares. A
//! request that others overtook has waited for the limits that held those; so there a wait is
//! charged to the meters that held the head of the queue meanwhile.
//!
//! The first in line is the *head*: the gate knows when it may go, and the engine
//! sets one alarm for it. Its cost is charged when it goes, so a change of limits
//! before that takes effect at once.

use crate::engine::Part;
use crate::meter::Meter;
use crate::spec::{GateLimits, Limit};
use crate::waits::Cap;
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use slab::Slab;
use weir_units::time::NANOS_PER_SEC;
use weir_units::{Instant, Span};

/// Two sides, each with its burst.
const MOST_METERS: usize = 4;

/// Two sides without a burst.
pub(crate) const AHEAD_METERS: usize = 2;

/// The unit that a meter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counts {
    Operations,
    Bytes,
}

/// A meter with the cap it stands for.
#[derive(Debug)]
struct Metered {
    meter: Meter,
    cap: Cap,
    counts: Counts,
    /// Charged costs, which the tests compare with its rate.
    #[cfg(test)]
    passed: Vec<(Instant, u64)>,
}

impl Metered {
    fn new(meter: Meter, cap: Cap, counts: Counts) -> Self {
        Self {
            meter,
            cap,
            counts,
            #[cfg(test)]
            passed: Vec::new(),
        }
    }

    fn cost(&self, part: &Part) -> u64 {
        match self.counts {
            Counts::Operations => u64::from(part.operations),
            Counts::Bytes => u64::from(part.bytes),
        }
    }
}

/// The four caps of one gate: of its operations and bytes, lasting and at the
/// most while bursting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GateCaps {
    pub(crate) iops: Cap,
    pub(crate) burst_iops: Cap,
    pub(crate) bytes: Cap,
    pub(crate) burst_bytes: Cap,
}

/// The result of an arrival at a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It passed.
    Passed,
    /// It is first in line and may go at this time.
    Head(Instant),
    /// Others are before it.
    Queued,
}

/// Meters in sequence and a queue.
#[derive(Debug)]
pub(crate) struct Gate {
    caps: GateCaps,
    meters: Vec<Metered>,
    head: Option<usize>,
    /// For when the head's alarm is set; another alarm is an old one.
    pub(crate) head_due: Option<Instant>,
    /// Admission times of the head at each meter, or of the last part that was admitted:
    /// computed by [`due`](Self::due), since the meters do not change until it goes.
    admits: [Instant; MOST_METERS],
    queue: Queue,
    /// The load of the queue, including the head.
    waiting: Load,
}

/// Costs of several requests.
#[derive(Debug, Clone, Copy, Default)]
struct Load {
    operations: u64,
    bytes: u64,
}

impl Load {
    fn add(&mut self, part: &Part) {
        self.operations += u64::from(part.operations);
        self.bytes += u64::from(part.bytes);
    }

    fn take(&mut self, part: &Part) {
        self.operations -= u64::from(part.operations);
        self.bytes -= u64::from(part.bytes);
    }
}

impl Gate {
    /// Makes the gate of one disk.
    pub(crate) fn for_disk(limits: &GateLimits) -> Self {
        let caps = GateCaps {
            iops: Cap::DiskIops,
            burst_iops: Cap::DiskBurstIops,
            bytes: Cap::DiskBytes,
            burst_bytes: Cap::DiskBurstBytes,
        };
        Self::new(caps, limits, Queue::Fifo(Line::default()))
    }

    /// Makes the gate of a disk that is added at `now`.
    pub(crate) fn for_disk_from(limits: &GateLimits, now: Instant) -> Self {
        let mut gate = Self::for_disk(limits);
        gate.meters.iter_mut().for_each(|metered| metered.meter.start(now));
        gate
    }

    /// Makes a gate that all volumes of a host share; it limits either operations or bytes.
    pub(crate) fn shared(caps: GateCaps, limits: &GateLimits, volumes: usize) -> Self {
        debug_assert!(limits.iops.is_none() || limits.bytes.is_none(), "one side: {limits:?}");
        Self::new(caps, limits, Queue::Fair(FairQueue::new(volumes)))
    }

    fn new(caps: GateCaps, limits: &GateLimits, queue: Queue) -> Self {
        Self {
            caps,
            meters: meters(caps, limits),
            head: None,
            head_due: None,
            admits: [Instant::ZERO; MOST_METERS],
            queue,
            waiting: Load::default(),
        }
    }

    /// Changes the number of volumes.
    pub(crate) fn share_with(&mut self, volumes: usize) {
        if let Queue::Fair(fair) = &mut self.queue {
            fair.flows.resize(volumes, Flow::default());
        }
    }

    /// Returns the charged costs of each meter since its limits were set.
    #[cfg(test)]
    pub(crate) fn passed(&self) -> impl Iterator<Item = (&Meter, &[(Instant, u64)])> {
        self.meters.iter().map(|m| (&m.meter, &m.passed[..]))
    }

    /// Returns whether there are no limits.
    pub(crate) fn is_open(&self) -> bool {
        self.meters.is_empty()
    }

    /// Takes a part that arrives now.
    pub(crate) fn arrive(&mut self, key: usize, parts: &mut Slab<Part>, now: Instant) -> Arrival {
        if self.head.is_some() {
            let cost = self.binding_cost(&parts[key]);
            if let Queue::Fair(fair) = &mut self.queue {
                fair.head_waits.advance(&self.admits[..self.meters.len()], now);
                fair.head_waits.join(key);
            }
            self.waiting.add(&parts[key]);
            self.queue.push(key, parts, cost);
            return Arrival::Queued;
        }
        let due = self.due(&parts[key]);
        if due <= now {
            self.charge(&mut parts[key]);
            Arrival::Passed
        } else {
            if let Queue::Fair(fair) = &mut self.queue {
                fair.head_waits.first_since = now;
                fair.head_waits.join(key);
            }
            self.waiting.add(&parts[key]);
            self.head = Some(key);
            Arrival::Head(due)
        }
    }

    /// Admits a request that arrives at `arrived`, perhaps after it: in order of arrival nothing
    /// that comes later changes its admission. Returns the time, and the wait at each meter.
    #[inline]
    pub(crate) fn admit_ahead(
        &mut self,
        arrived: Instant,
        operations: u64,
        bytes: u64,
    ) -> (Instant, [Span; AHEAD_METERS]) {
        debug_assert!(self.head.is_none() && matches!(self.queue, Queue::Fifo(_)), "{self:?}");
        let mut waits = [Span::ZERO; AHEAD_METERS];
        let mut at = arrived;
        for (m, wait) in self.meters.iter_mut().zip(&mut waits) {
            let admitted = m.meter.admits_at(at);
            *wait = admitted - at;
            let cost = match m.counts {
                Counts::Operations => operations,
                Counts::Bytes => bytes,
            };
            m.meter.charge(admitted, cost);
            #[cfg(test)]
            m.passed.push((admitted, cost));
            at = admitted;
        }
        (at, waits)
    }

    /// Returns the caps of the meters, in order.
    pub(crate) fn caps(&self) -> impl Iterator<Item = Cap> + '_ {
        self.meters.iter().map(|m| m.cap)
    }

    /// Releases the head; charges its costs and its wait.
    pub(crate) fn release_head(&mut self, parts: &mut Slab<Part>) -> Option<usize> {
        let key = self.head.take()?;
        self.head_due = None;
        let part = &mut parts[key];
        self.waiting.take(part);
        if let Queue::Fair(fair) = &mut self.queue {
            fair.head_waits.advance(&self.admits[..self.meters.len()], Instant::FAR);
            fair.head_waits.charge(&self.meters, key, part);
        }
        self.charge(part);
        Some(key)
    }

    /// Makes the next in line the head; returns when it is admitted.
    pub(crate) fn next_head(&mut self, parts: &mut Slab<Part>) -> Option<Instant> {
        let key = self.queue.pop(parts)?;
        self.head = Some(key);
        Some(self.due(&parts[key]))
    }

    /// Sets new limits from `now` on. Admitted costs stay owed. Each waiting part is charged
    /// its wait until `now`, to the cap that holds the head, and is returned in order to
    /// arrive again.
    pub(crate) fn set_limits(
        &mut self,
        limits: &GateLimits,
        parts: &mut Slab<Part>,
        now: Instant,
    ) -> Vec<usize> {
        let held_by = self.head.and_then(|key| self.held_by(&parts[key], now));
        if let (Some(_), Queue::Fair(fair)) = (self.head, &mut self.queue) {
            fair.head_waits.advance(&self.admits[..self.meters.len()], now);
        }
        let first = self.head.take();
        let behind = core::iter::from_fn(|| self.queue.pop(parts));
        let waiting: Vec<usize> = first.into_iter().chain(behind).collect();
        for key in &waiting {
            let part = &mut parts[*key];
            match (&self.queue, held_by) {
                (Queue::Fair(fair), _) => fair.head_waits.charge(&self.meters, *key, part),
                (Queue::Fifo(_), Some(cap)) => part.waits.charge(cap, now - part.at_gate),
                (Queue::Fifo(_), None) => {}
            }
            part.at_gate = now;
        }
        self.clear();
        let mut new = meters(self.caps, limits);
        for metered in &mut new {
            // A disk that begins or ends to burst on demand has the other of its two
            // caps then, and still owes what it owed.
            let same_cap = self.meters.iter().find(|old| old.cap == metered.cap);
            let same_side = || self.meters.iter().find(|old| old.counts == metered.counts);
            match same_cap.or_else(same_side) {
                Some(old) => metered.meter.inherit(&old.meter, now),
                None => metered.meter.start(now),
            }
        }
        self.meters = new;
        waiting
    }

    /// Returns the cap that a part waits for at `now`.
    fn held_by(&self, part: &Part, now: Instant) -> Option<Cap> {
        let mut at = part.at_gate;
        for m in &self.meters {
            at = m.meter.admits_at(at);
            if at > now {
                return Some(m.cap);
            }
        }
        // It may go this very moment: the last cap that made it wait.
        self.meters.last().map(|m| m.cap)
    }

    /// Empties the queue; the meters keep their state.
    pub(crate) fn clear(&mut self) {
        self.head = None;
        self.head_due = None;
        self.queue.clear();
        self.waiting = Load::default();
    }

    /// Estimates the wait of a request of `volume` that arrives now: the debt of each meter
    /// and the backlog before it, at a shared gate its fair share. The queue of the gate
    /// `before` arrives here next.
    pub(crate) fn backlog(&self, volume: usize, before: Option<&Self>, now: Instant) -> Span {
        let takes = |m: &Metered, load: &Load| {
            let cost = match m.counts {
                Counts::Operations => load.operations,
                Counts::Bytes => load.bytes,
            };
            let takes =
                u128::from(cost) * u128::from(NANOS_PER_SEC) / u128::from(m.meter.rate().get());
            Span::from_nanos(u64::try_from(takes).unwrap_or(u64::MAX))
        };
        let upstream = before.map_or_else(Load::default, |gate| gate.waiting);
        let wait = |m: &Metered| {
            let queued = takes(m, &self.waiting) + takes(m, &upstream);
            (m.meter.admits_at(now) - now, queued)
        };
        let longest = |own: Option<Span>| {
            let waits = self.meters.iter().map(wait);
            let waits =
                waits.map(|(owed, queued)| owed + own.map_or(queued, |own| own.min(queued)));
            waits.max().unwrap_or(Span::ZERO)
        };
        match &self.queue {
            Queue::Fifo(_) => longest(None),
            Queue::Fair(fair) => {
                let own = fair.flows[volume].finish.saturating_sub(fair.virtual_time);
                let upstream = before.and_then(|gate| gate.fair()).map(|fair| &fair.flows[volume]);
                let upstream = upstream.map_or_else(Load::default, |flow| flow.waits);
                let upstream = self.meters.iter().map(|m| takes(m, &upstream).nanos()).max();
                let own = own.saturating_add(upstream.unwrap_or(0));
                let there = before.and_then(|gate| gate.fair()).map_or(0, FairQueue::rivals);
                let rivals = fair.rivals().max(there).max(1);
                longest(Some(Span::from_nanos(own.saturating_mul(rivals))))
            }
        }
    }

    fn fair(&self) -> Option<&FairQueue> {
        match &self.queue {
            Queue::Fifo(_) => None,
            Queue::Fair(fair) => Some(fair),
        }
    }

    /// Returns the remaining burst credits of `cap`.
    pub(crate) fn credits(&self, cap: Cap, now: Instant) -> Option<u64> {
        let bursts = self.meters.iter().any(|m| m.cap == burst_of(self.caps, cap));
        let bucket = self.meters.iter().find(|m| m.cap == cap)?;
        bursts.then(|| bucket.meter.credits(now))
    }

    /// Computes when a part that arrived at its `at_gate` is admitted.
    fn due(&mut self, part: &Part) -> Instant {
        let mut at = part.at_gate;
        for (admits, m) in self.admits.iter_mut().zip(&self.meters) {
            at = m.meter.admits_at(at);
            *admits = at;
        }
        at
    }

    /// Charges the meters for the part of the last call of [`due`](Self::due), and in a
    /// first-come queue its wait.
    fn charge(&mut self, part: &mut Part) {
        let in_order = matches!(self.queue, Queue::Fifo(_));
        let mut at = part.at_gate;
        for (m, admitted) in self.meters.iter_mut().zip(self.admits) {
            if in_order && admitted > at {
                part.waits.charge(m.cap, admitted - at);
            }
            let cost = m.cost(part);
            m.meter.charge(admitted, cost);
            #[cfg(test)]
            m.passed.push((admitted, cost));
            at = admitted;
        }
        part.at_gate = at;
    }

    /// Returns the longest time that a part takes at any meter.
    fn binding_cost(&self, part: &Part) -> u64 {
        match self.queue {
            Queue::Fifo(_) => 0,
            Queue::Fair(_) => {
                let share = |m: &Metered| m.cost(part) * NANOS_PER_SEC / m.meter.rate();
                self.meters.iter().map(share).max().unwrap_or(0)
            }
        }
    }
}

fn burst_of(caps: GateCaps, cap: Cap) -> Cap {
    if cap == caps.iops { caps.burst_iops } else { caps.burst_bytes }
}

/// Makes the meters of a gate, in the order in which a request passes them.
fn meters(caps: GateCaps, limits: &GateLimits) -> Vec<Metered> {
    let sides = [
        (limits.iops, caps.iops, caps.burst_iops, Counts::Operations),
        (limits.bytes, caps.bytes, caps.burst_bytes, Counts::Bytes),
    ];
    let mut meters = Vec::new();
    for (limit, cap, burst_cap, counts) in sides {
        let Some(Limit { rate, burst }) = limit else { continue };
        if let Some((peak, _)) = burst {
            meters.push(Metered::new(Meter::new(peak), burst_cap, counts));
        }
        let meter = match burst {
            None => Meter::new(rate),
            Some((_, Limit::ON_DEMAND)) => continue,
            Some((peak, duration)) => {
                let surplus = u128::from(peak.get().saturating_sub(rate.get()));
                let credits = surplus * u128::from(duration.nanos()) / u128::from(NANOS_PER_SEC);
                Meter::with_credits(rate, u64::try_from(credits).unwrap_or(u64::MAX))
            }
        };
        meters.push(Metered::new(meter, cap, counts));
    }
    meters
}

/// The queue without the head.
#[derive(Debug)]
enum Queue {
    Fifo(Line),
    Fair(FairQueue),
}

impl Queue {
    fn push(&mut self, key: usize, parts: &mut Slab<Part>, cost: u64) {
        match self {
            Self::Fifo(line) => line.push(key, parts),
            Self::Fair(fair) => fair.push(key, parts, cost),
        }
    }

    fn pop(&mut self, parts: &mut Slab<Part>) -> Option<usize> {
        match self {
            Self::Fifo(line) => line.pop(parts),
            Self::Fair(fair) => fair.pop(parts),
        }
    }

    fn clear(&mut self) {
        match self {
            Self::Fifo(line) => *line = Line::default(),
            Self::Fair(fair) => {
                let head_waits = core::mem::take(&mut fair.head_waits);
                *fair = FairQueue { head_waits, ..FairQueue::new(fair.flows.len()) };
            }
        }
    }
}

/// First come, first served; linked through the parts themselves, so that
/// waiting allocates nothing.
#[derive(Debug, Clone, Copy, Default)]
struct Line {
    ends: Option<(usize, usize)>,
}

impl Line {
    fn push(&mut self, key: usize, parts: &mut Slab<Part>) {
        parts[key].next = None;
        self.ends = Some(match self.ends {
            None => (key, key),
            Some((first, last)) => {
                parts[last].next = Some(key);
                (first, key)
            }
        });
    }

    fn pop(&mut self, parts: &Slab<Part>) -> Option<usize> {
        let (first, last) = self.ends?;
        self.ends = parts[first].next.map(|next| (next, last));
        Some(first)
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Flow {
    line: Line,
    /// The load of the line, without the head of the gate.
    waits: Load,
    /// Virtual time at which all that this volume asked for is served.
    finish: u64,
}

/// Start-time fair queueing (Goyal, Vin, Cheng 1996): each request gets the later
/// of the virtual time and its volume's finish as its start tag, and the smallest
/// start tag goes first.
#[derive(Debug)]
struct FairQueue {
    flows: Vec<Flow>,
    /// (start tag of the first in line, volume) of each volume that waits.
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
    virtual_time: u64,
    /// The latest finish of all.
    latest: u64,
    head_waits: HeadWaits,
}

/// Total time that each meter of a gate has held its head. The wait of a request is the
/// difference between two readings.
#[derive(Debug, Default)]
struct HeadWaits {
    by_meter: [u64; MOST_METERS],
    /// The time up to which it is counted, while there is a head.
    first_since: Instant,
    /// The reading when each part came, by its key.
    at_arrival: Vec<[u64; MOST_METERS]>,
}

impl HeadWaits {
    /// Counts until `now`, while the meters admit the first in line at `admits`.
    fn advance(&mut self, admits: &[Instant], now: Instant) {
        for (held, admits) in self.by_meter.iter_mut().zip(admits) {
            let until = now.min(*admits);
            *held = held.saturating_add((until - self.first_since).nanos());
            self.first_since = self.first_since.max(until);
        }
    }

    /// A part comes to the gate.
    fn join(&mut self, key: usize) {
        if self.at_arrival.len() <= key {
            self.at_arrival.resize(key + 1, [0; MOST_METERS]);
        }
        self.at_arrival[key] = self.by_meter;
    }

    /// Charges a part that leaves the line.
    fn charge(&self, meters: &[Metered], key: usize, part: &mut Part) {
        let waited = self.by_meter.iter().zip(self.at_arrival[key]);
        for (m, (held, at_arrival)) in meters.iter().zip(waited) {
            part.waits.charge(m.cap, Span::from_nanos(held.saturating_sub(at_arrival)));
        }
    }
}

impl FairQueue {
    fn new(volumes: usize) -> Self {
        Self {
            flows: alloc::vec![Flow::default(); volumes],
            waiting: BinaryHeap::new(),
            virtual_time: 0,
            latest: 0,
            head_waits: HeadWaits::default(),
        }
    }

    /// Counts the volumes that wait.
    fn rivals(&self) -> u64 {
        self.waiting.len() as u64
    }

    fn push(&mut self, key: usize, parts: &mut Slab<Part>, cost: u64) {
        let volume = parts[key].volume;
        let flow = &mut self.flows[volume];
        let start = flow.finish.max(self.virtual_time);
        flow.finish = start.saturating_add(cost);
        self.latest = self.latest.max(flow.finish);
        parts[key].start_tag = start;
        flow.waits.add(&parts[key]);
        if flow.line.ends.is_none() {
            self.waiting.push(Reverse((start, volume)));
        }
        flow.line.push(key, parts);
    }

    fn pop(&mut self, parts: &mut Slab<Part>) -> Option<usize> {
        let Some(Reverse((start, volume))) = self.waiting.pop() else {
            // An idle gate forgets past use.
            self.virtual_time = self.latest;
            return None;
        };
        self.virtual_time = start;
        let flow = &mut self.flows[volume];
        let key = flow.line.pop(parts)?;
        flow.waits.take(&parts[key]);
        if let Some((next, _)) = flow.line.ends {
            self.waiting.push(Reverse((parts[next].start_tag, volume)));
        }
        Some(key)
    }
}
