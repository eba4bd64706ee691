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

#[cfg(test)]
use crate::meter::Meter;
use crate::spec::GateLimits;
use crate::waits::Cap;
use alloc::vec::Vec;
use meters::{Counts, MOST_METERS, Metered, burst_of, meters};
use passes::Load;
use queue::{FairQueue, Flow, HeadWaits, Line, Queue};
use weir_units::time::NANOS_PER_SEC;
use weir_units::{Instant, Share, Span};

mod meters;
mod passes;
mod queue;

pub(crate) use meters::GateCaps;
pub(crate) use passes::{Link, Parts, Passes};

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

    /// Returns whether a part waits; in order of arrival, the last that came is one of them.
    #[inline]
    pub(crate) fn is_holding(&self) -> bool {
        self.head.is_some()
    }

    /// Returns whether there are no limits.
    pub(crate) fn is_open(&self) -> bool {
        self.meters.is_empty()
    }

    /// Takes a part that arrives now.
    pub(crate) fn arrive(&mut self, key: usize, parts: &mut impl Parts, now: Instant) -> Arrival {
        if self.head.is_some() {
            let cost = self.binding_cost(&parts[key]);
            if let Some((waits, admits)) = self.head_waits() {
                waits.advance(admits, now);
                waits.join(key);
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
            if let Some((waits, _)) = self.head_waits() {
                waits.first_since = now;
                waits.join(key);
            }
            self.waiting.add(&parts[key]);
            self.head = Some(key);
            Arrival::Head(due)
        }
    }

    /// Admits a part that arrives now, perhaps later than now: in order of arrival nothing that
    /// comes later changes its admission. Returns the time.
    #[inline]
    pub(crate) fn admit_ahead(&mut self, part: &mut impl Passes) -> Instant {
        debug_assert!(self.head.is_none() && matches!(self.queue, Queue::Fifo(_)), "{self:?}");
        let mut at = part.at_gate();
        for m in &mut self.meters {
            let admitted = m.meter.admits_at(at);
            part.charge(m.cap, admitted - at);
            let cost = m.cost(part);
            m.meter.charge(admitted, cost);
            #[cfg(test)]
            m.passed.push((admitted, cost));
            at = admitted;
        }
        at
    }

    /// Releases the head; charges its costs and its wait.
    pub(crate) fn release_head(&mut self, parts: &mut impl Parts) -> Option<usize> {
        let key = self.head.take()?;
        self.head_due = None;
        let part = &mut parts[key];
        self.waiting.take(part);
        if let Some((waits, admits)) = self.head_waits() {
            waits.advance(admits, Instant::FAR);
        }
        if let Some(waits) = self.shared_waits() {
            waits.charge(self.meters.iter().map(|m| m.cap), key, part);
        }
        self.charge(part);
        Some(key)
    }

    /// Makes the next in line the head; returns when it is admitted.
    pub(crate) fn next_head(&mut self, parts: &mut impl Parts) -> Option<Instant> {
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
        parts: &mut impl Parts,
        now: Instant,
    ) -> Vec<usize> {
        let waiting = self.take_waiting(parts, now);
        let mut new = meters(self.caps, limits);
        for metered in &mut new {
            // A disk that begins or ends to burst on demand has the other of its two
            // caps then, and still owes what it owed.
            let same_cap = self.meters.iter().find(|old| old.cap == metered.cap);
            let same_side = || self.meters.iter().find(|old| old.counts == metered.counts);
            if let Some(old) = same_cap.or_else(same_side) {
                metered.meter.inherit(&old.meter, now);
            }
        }
        self.meters = new;
        waiting
    }

    /// Fills the buckets of credits to `share` from `now` on. Returns the waiting parts, like
    /// [`set_limits`](Self::set_limits).
    pub(crate) fn set_credits(
        &mut self,
        share: Share,
        parts: &mut impl Parts,
        now: Instant,
    ) -> Vec<usize> {
        let waiting = self.take_waiting(parts, now);
        self.fill(share, now);
        waiting
    }

    /// Fills the buckets of credits of a gate at which nothing waits.
    pub(crate) fn fill(&mut self, share: Share, now: Instant) {
        self.meters.iter_mut().for_each(|metered| metered.meter.fill(now, share));
    }

    /// Empties the queue, and charges each waiting part its wait until `now`, to the cap that
    /// holds the head. Returns the parts in order.
    fn take_waiting(&mut self, parts: &mut impl Parts, now: Instant) -> Vec<usize> {
        let held_by = self.head.and_then(|key| self.held_by(&parts[key], now));
        let has_head = self.head.is_some();
        if let Some((waits, admits)) = self.head_waits().filter(|_| has_head) {
            waits.advance(admits, now);
        }
        let first = self.head.take();
        let behind = core::iter::from_fn(|| self.queue.pop(parts));
        let waiting: Vec<usize> = first.into_iter().chain(behind).collect();
        for key in &waiting {
            let part = &mut parts[*key];
            match (self.shared_waits(), held_by) {
                (Some(waits), _) => waits.charge(self.meters.iter().map(|m| m.cap), *key, part),
                (None, Some(cap)) => part.charge(cap, now - part.at_gate()),
                (None, None) => {}
            }
            part.set_at_gate(now);
        }
        self.clear();
        waiting
    }

    /// Returns the cap that a part waits for at `now`.
    fn held_by(&self, part: &impl Passes, now: Instant) -> Option<Cap> {
        let mut at = part.at_gate();
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

    /// Returns the remaining burst credits of `cap`, and those of a full bucket.
    pub(crate) fn credits(&self, cap: Cap, now: Instant) -> Option<(u64, u64)> {
        let bursts = self.meters.iter().any(|m| m.cap == burst_of(self.caps, cap));
        let bucket = self.meters.iter().find(|m| m.cap == cap)?;
        bursts.then(|| (bucket.meter.credits(now), bucket.meter.capacity()))
    }

    /// Computes when a part that arrived at its `at_gate` is admitted.
    fn due(&mut self, part: &impl Passes) -> Instant {
        let mut at = part.at_gate();
        for (admits, m) in self.admits.iter_mut().zip(&self.meters) {
            at = m.meter.admits_at(at);
            *admits = at;
        }
        at
    }

    /// Charges the meters for the part of the last call of [`due`](Self::due), and the part its
    /// wait unless [`HeadWaits`] has it.
    fn charge(&mut self, part: &mut impl Passes) {
        let charges_wait = self.shared_waits().is_none();
        let mut at = part.at_gate();
        for (m, admitted) in self.meters.iter_mut().zip(self.admits) {
            if charges_wait && admitted > at {
                part.charge(m.cap, admitted - at);
            }
            let cost = m.cost(part);
            m.meter.charge(admitted, cost);
            #[cfg(test)]
            m.passed.push((admitted, cost));
            at = admitted;
        }
        part.set_at_gate(at);
    }

    /// Returns the waits at the head of a shared gate that has several meters. With one meter, a
    /// part waits for that meter from its arrival to its release, whatever overtakes it.
    #[inline]
    fn shared_waits(&self) -> Option<&HeadWaits> {
        match &self.queue {
            Queue::Fair(fair) if self.meters.len() > 1 => Some(&fair.head_waits),
            _ => None,
        }
    }

    /// Returns the same, and when each meter admits the head.
    #[inline]
    fn head_waits(&mut self) -> Option<(&mut HeadWaits, &[Instant])> {
        match &mut self.queue {
            Queue::Fair(fair) if self.meters.len() > 1 => {
                Some((&mut fair.head_waits, &self.admits[..self.meters.len()]))
            }
            _ => None,
        }
    }

    /// Returns the longest time that a part takes at any meter.
    fn binding_cost(&self, part: &impl Passes) -> u64 {
        match self.queue {
            Queue::Fifo(_) => 0,
            Queue::Fair(_) => {
                let share = |m: &Metered| m.cost(part) * NANOS_PER_SEC / m.meter.rate();
                self.meters.iter().map(share).max().unwrap_or(0)
            }
        }
    }
}
