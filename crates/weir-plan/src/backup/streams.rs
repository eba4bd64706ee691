//! Disks in order of their price. Each kind of disk is a stream that grows more expensive: more
//! disks of a tier, or disks with more bought throughput.

use crate::cost::Cost;
use crate::demand::Flow;
use crate::disks::{Asked, Disk, Market, bought};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use weir_catalog::{CacheMode, Provisioned};
use weir_units::{Bytes, Money};

/// Equal target disks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) disk: Disk<'a>,
    pub(super) count: u64,
    pub(super) cost: Cost,
}

/// Minimum requirements of targets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Least {
    /// Room of all disks, in bytes.
    pub(super) room: Bytes,
    /// Throughput of all disks, in bytes per second.
    pub(super) rate: u64,
    /// Maximum number of disks.
    pub(super) most: u64,
}

/// The next candidate of a stream.
#[derive(Debug, Clone, Copy)]
enum Next<'a> {
    /// More disks of a tier.
    Tier(Disk<'a>),
    /// Disks with this throughput each.
    Bought(&'a Provisioned, u64),
}

#[derive(Debug)]
struct Head<'a> {
    candidate: Candidate<'a>,
    next: Next<'a>,
}

impl Head<'_> {
    /// Orders by price, then by fewer disks, then by more throughput.
    fn order(&self, other: &Self) -> Ordering {
        let (own, beside) = (&self.candidate, &other.candidate);
        let rate = |own: &Candidate<'_>| own.disk.limits().bytes;
        own.cost.cmp(&beside.cost).then_with(|| rate(beside).cmp(&rate(own)))
    }
}

impl PartialEq for Head<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.order(other) == Ordering::Equal
    }
}

impl Eq for Head<'_> {}

impl PartialOrd for Head<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Head<'_> {
    /// Makes the cheapest the greatest, which a heap returns first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.order(self)
    }
}

/// All candidates, the cheapest first.
#[derive(Debug)]
pub(super) struct Streams<'a, 'm> {
    market: &'m Market<'a, 'm>,
    least: Least,
    heap: BinaryHeap<Head<'a>>,
}

impl<'a, 'm> Streams<'a, 'm> {
    pub(super) fn new(market: &'m Market<'a, 'm>, least: Least) -> Self {
        let mut own = Self { market, least, heap: BinaryHeap::new() };
        for disk in market.of_tiers(None) {
            let by_room = least.room.get().div_ceil(disk.size().get().max(1));
            let by_rate = least.rate.div_ceil(disk.limits().bytes.max(1));
            own.push_tier(disk, by_room.max(by_rate).max(1));
        }
        for family in market.edition.provisioned_families() {
            if market.families.contains(&family.family.as_str()) {
                for count in 1..=least.most {
                    own.push_bought(family, count, first_rate(family, least.rate, count));
                }
            }
        }
        own
    }

    fn push_tier(&mut self, disk: Disk<'a>, count: u64) {
        if count <= self.least.most {
            let cost = disk.cost(count, self.market.prices);
            let candidate = Candidate { disk, count, cost };
            self.heap.push(Head { candidate, next: Next::Tier(disk) });
        }
    }

    fn push_bought(&mut self, family: &'a Provisioned, count: u64, rate: u64) {
        if let Some(candidate) = bought_disks(self.market, family, (count, rate), self.least.room) {
            self.heap.push(Head { candidate, next: Next::Bought(family, rate) });
        }
    }

    /// Pushes the next candidate of the stream.
    fn follow(&mut self, head: &Head<'a>) {
        let count = head.candidate.count;
        match head.next {
            Next::Tier(disk) => self.push_tier(disk, count + 1),
            Next::Bought(family, rate) => {
                self.push_bought(family, count, rate + family.throughput_unit())
            }
        }
    }
}

impl<'a> Iterator for Streams<'a, '_> {
    type Item = Candidate<'a>;

    fn next(&mut self) -> Option<Candidate<'a>> {
        let head = self.heap.pop()?;
        self.follow(&head);
        Some(head.candidate)
    }
}

fn first_rate(family: &Provisioned, rate: u64, count: u64) -> u64 {
    let step = family.throughput_unit();
    rate.div_ceil(count.max(1)).max(1).next_multiple_of(step)
}

/// Returns the `count` smallest disks with this throughput each and room for everything.
pub(super) fn bought_disks<'a>(
    market: &Market<'a, '_>,
    family: &'a Provisioned,
    (count, rate): (u64, u64),
    room: Bytes,
) -> Option<Candidate<'a>> {
    let unit = family.io_unit.or(market.edition.io_unit()).map_or(1 << 18, Bytes::get);
    let bytes = rate.checked_mul(count)?;
    let flow = Flow { operations: bytes.div_ceil(unit), bytes };
    let asked = Asked {
        peaks: &[&flow],
        size: Bytes::new(room.get().div_ceil(count) * count),
        mode: CacheMode::None,
        is_striped: count > 1,
        latencies: &[],
        most: count,
        kept: None,
        stays_up: false,
        peaks_last: None,
    };
    let disk = bought(family, &asked, count)?.disk(family);
    let cost = disk.cost(count, market.prices);
    Some(Candidate { disk, count, cost })
}

/// Returns the fastest disks of each kind: the maximum number, with the maximum of each bought
/// limit.
pub(super) fn fastest<'a>(market: &Market<'a, '_>, least: Least) -> Vec<Candidate<'a>> {
    let mut all: Vec<Candidate<'a>> = Vec::new();
    for disk in market.of_tiers(None) {
        let has_room = disk.size().get().saturating_mul(least.most) >= least.room.get();
        if has_room {
            let cost = disk.cost(least.most, market.prices);
            all.push(Candidate { disk, count: least.most, cost });
        }
    }
    for family in market.edition.provisioned_families() {
        if market.families.contains(&family.family.as_str()) {
            let most = family.maximum.throughput.get() / family.throughput_unit()
                * family.throughput_unit();
            all.extend(bought_disks(market, family, (least.most, most), least.room));
        }
    }
    all
}

/// Returns whether a price is lower. Without prices, fewer disks are.
fn is_below(own: Cost, cost: Cost) -> bool {
    let is_priced = cost.unpriced == 0 && cost.month > Money::ZERO;
    if is_priced { own.unpriced == 0 && own.month < cost.month } else { own < cost }
}

/// Returns the fastest disks of each kind that cost less than `cost`, in their largest number.
pub(super) fn below<'a>(market: &Market<'a, '_>, least: Least, cost: Cost) -> Vec<Candidate<'a>> {
    let mut all = Vec::new();
    for disk in market.of_tiers(None) {
        let first = least.room.get().div_ceil(disk.size().get().max(1)).max(1);
        let counts = (first..=least.most).rev();
        all.extend(
            counts
                .map(|count| Candidate { disk, count, cost: disk.cost(count, market.prices) })
                .find(|own| is_below(own.cost, cost)),
        );
    }
    for family in market.edition.provisioned_families() {
        if !market.families.contains(&family.family.as_str()) {
            continue;
        }
        let most = family.maximum.throughput.get() / family.throughput_unit();
        for count in 1..=least.most {
            let of = |steps: u64| {
                let rate = steps * family.throughput_unit();
                bought_disks(market, family, (count, rate), least.room)
                    .filter(|own| is_below(own.cost, cost))
            };
            // More throughput never costs less.
            let (mut low, mut high) = (1, most.max(1));
            let Some(mut best) = of(low) else { continue };
            while low < high {
                let middle = low + (high - low).div_ceil(2);
                match of(middle) {
                    Some(own) => (low, best) = (middle, own),
                    None => high = middle - 1,
                }
            }
            all.push(best);
        }
    }
    all
}
