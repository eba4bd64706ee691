//! The queue behind the head of a gate.

use super::meters::MOST_METERS;
use super::passes::{Load, Parts, Passes};
use crate::waits::Cap;
use alloc::collections::BinaryHeap;
use alloc::collections::binary_heap::PeekMut;
use alloc::vec::Vec;
use core::cmp::Reverse;
use weir_units::{Instant, Span};

/// The queue without the head.
#[derive(Debug)]
pub(super) enum Queue {
    Fifo(Line),
    Fair(FairQueue),
}

impl Queue {
    pub(super) fn push(&mut self, key: usize, parts: &mut impl Parts, cost: u64) {
        match self {
            Self::Fifo(line) => line.push(key, parts),
            Self::Fair(fair) => fair.push(key, parts, cost),
        }
    }

    pub(super) fn pop(&mut self, parts: &mut impl Parts) -> Option<usize> {
        match self {
            Self::Fifo(line) => line.pop(parts),
            Self::Fair(fair) => fair.pop(parts),
        }
    }

    pub(super) fn clear(&mut self) {
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
pub(super) struct Line {
    ends: Option<(usize, usize)>,
}

impl Line {
    pub(super) fn push(&mut self, key: usize, parts: &mut impl Parts) {
        parts[key].link_mut().next = None;
        self.ends = Some(match self.ends {
            None => (key, key),
            Some((first, last)) => {
                parts[last].link_mut().next = Some(key);
                (first, key)
            }
        });
    }

    pub(super) fn pop(&mut self, parts: &impl Parts) -> Option<usize> {
        let (first, last) = self.ends?;
        self.ends = parts[first].link().next.map(|next| (next, last));
        Some(first)
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flow {
    line: Line,
    /// The load of the line, without the head of the gate.
    pub(super) waits: Load,
    /// Virtual time at which all that this volume asked for is served.
    pub(super) finish: u64,
}

/// Start-time fair queueing (Goyal, Vin, Cheng 1996): each request gets the later
/// of the virtual time and its volume's finish as its start tag, and the smallest
/// start tag goes first.
#[derive(Debug)]
pub(super) struct FairQueue {
    pub(super) flows: Vec<Flow>,
    /// (start tag of the first in line, volume) of each volume that waits.
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
    pub(super) virtual_time: u64,
    /// The latest finish of all.
    latest: u64,
    pub(super) head_waits: HeadWaits,
}

/// Total time that each meter of a gate has held its head. The wait of a request is the
/// difference between two readings.
#[derive(Debug, Default)]
pub(super) struct HeadWaits {
    by_meter: [u64; MOST_METERS],
    /// The time up to which it is counted, while there is a head.
    pub(super) first_since: Instant,
    /// The reading when each part came, by its key.
    at_arrival: Vec<[u64; MOST_METERS]>,
}

impl HeadWaits {
    /// Counts until `now`, while the meters admit the first in line at `admits`.
    pub(super) fn advance(&mut self, admits: &[Instant], now: Instant) {
        for (held, admits) in self.by_meter.iter_mut().zip(admits) {
            let until = now.min(*admits);
            *held = held.saturating_add((until - self.first_since).nanos());
            self.first_since = self.first_since.max(until);
        }
    }

    /// A part comes to the gate.
    pub(super) fn join(&mut self, key: usize) {
        if self.at_arrival.len() <= key {
            self.at_arrival.resize(key + 1, [0; MOST_METERS]);
        }
        self.at_arrival[key] = self.by_meter;
    }

    /// Charges a part that leaves the line.
    pub(super) fn charge(
        &self,
        caps: impl Iterator<Item = Cap>,
        key: usize,
        part: &mut impl Passes,
    ) {
        let waited = self.by_meter.iter().zip(self.at_arrival[key]);
        for (cap, (held, at_arrival)) in caps.zip(waited) {
            part.charge(cap, Span::from_nanos(held.saturating_sub(at_arrival)));
        }
    }
}

impl FairQueue {
    pub(super) fn new(volumes: usize) -> Self {
        Self {
            flows: alloc::vec![Flow::default(); volumes],
            waiting: BinaryHeap::new(),
            virtual_time: 0,
            latest: 0,
            head_waits: HeadWaits::default(),
        }
    }

    /// Counts the volumes that wait.
    pub(super) fn rivals(&self) -> u64 {
        self.waiting.len() as u64
    }

    pub(super) fn push(&mut self, key: usize, parts: &mut impl Parts, cost: u64) {
        let volume = parts[key].volume();
        let flow = &mut self.flows[volume];
        let start = flow.finish.max(self.virtual_time);
        flow.finish = start.saturating_add(cost);
        self.latest = self.latest.max(flow.finish);
        parts[key].link_mut().start_tag = start;
        flow.waits.add(&parts[key]);
        if flow.line.ends.is_none() {
            self.waiting.push(Reverse((start, volume)));
        }
        flow.line.push(key, parts);
    }

    pub(super) fn pop(&mut self, parts: &mut impl Parts) -> Option<usize> {
        let Some(mut first) = self.waiting.peek_mut() else {
            // An idle gate forgets past use.
            self.virtual_time = self.latest;
            return None;
        };
        let Reverse((start, volume)) = *first;
        self.virtual_time = start;
        let flow = &mut self.flows[volume];
        let key = flow.line.pop(parts)?;
        flow.waits.take(&parts[key]);
        match flow.line.ends {
            Some((next, _)) => *first = Reverse((parts[next].link().start_tag, volume)),
            None => drop(PeekMut::pop(first)),
        }
        Some(key)
    }
}
