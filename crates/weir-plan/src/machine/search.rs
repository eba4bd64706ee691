//! The search for the first layout in order, among all machines and arrangements.
//!
//! A frontier depends on the machine only through its cache and the disk families that it takes, so
//! each is computed once. `Market::options` (`disks.rs`) picks the disks of each pool. Three rules
//! exclude what cannot come first, before any disks are picked:
//!
//! - a machine that a cheaper one beats in every limit (`dominated.rs`);
//! - an arrangement on a machine whose price and the floor of the disks exceed the best price so far;
//! - an arrangement whose load exceeds the limits of the machine.

use super::candidate::{Arrangement, Candidate, Choice, Place, Pool};
use super::dominated::Uses;
use super::hosts::Machines;
use super::limits::{has_room, published_for};
use crate::cost::Cost;
use crate::demand::{Demand, Flow, Peak};
use crate::disks::{Asked, Disk, Disks, Market};
use crate::need::Need;
use crate::rank::Order;
use crate::share::WHOLE;
use std::collections::HashMap;
use std::rc::Rc;
use weir_catalog::{CacheMode, HostSize};
use weir_units::Span;

impl<'a> Machines<'a> {
    /// Returns the requirements for the disks of a pool.
    fn asked<'l>(
        &self,
        need: &Need,
        pool: &Pool,
        peaks: &'l [&'l Flow],
        latencies: &'l mut Vec<(Span, u64)>,
    ) -> Asked<'l>
    where
        'a: 'l,
    {
        let own = || pool.roles.iter().map(|role| &need.roles[*role]);
        latencies.extend(own().filter_map(|own| Some((own.latency?, own.request))));
        Asked {
            peaks,
            size: self.room_for(need, &pool.roles),
            mode: pool.mode,
            is_striped: pool.place != Place::Single,
            latencies,
            most: self.most_disks(),
            kept: self.kept(need, &pool.roles),
            stays_up: self.wishes.keep.as_ref().is_some_and(|kept| kept.is_up),
            peaks_last: self.wishes.peaks,
        }
    }
}

/// The load of an arrangement at each peak of the need.
type Load = Rc<Vec<Demand>>;

/// The demand of a pool, and the disks that carry it.
type Options<'a> = Rc<(Vec<Demand>, Vec<Disks<'a>>)>;

/// An arrangement, its cache hits in millionths, and the families to use, by their index.
type Key = (usize, u64, usize);

/// A search with the disks and frontiers that it has computed.
pub(super) struct Search<'a, 'm> {
    machines: &'m Machines<'a>,
    need: &'m Need,
    arrangements: Vec<Arrangement>,
    /// Sets of disk families that machines take. The first one has all families.
    taken: Vec<Vec<&'a str>>,
    loads: HashMap<(usize, u64), Load>,
    options: HashMap<(Pool, u64, usize), Options<'a>>,
    /// Disks in order of their number, more disks only if they cost less: once with tiers, once
    /// without.
    frontiers: HashMap<Key, Rc<Vec<Choice<'a>>>>,
    /// The lower bound of the price of each arrangement's disks on any machine.
    floors: HashMap<usize, Option<Cost>>,
    /// Number of layouts compared so far.
    pub(super) compared: u64,
}

impl<'a, 'm> Search<'a, 'm> {
    pub(super) fn new(machines: &'m Machines<'a>, need: &'m Need) -> Self {
        Self {
            machines,
            need,
            arrangements: machines.arrangements(need),
            taken: vec![machines.families.clone()],
            loads: HashMap::new(),
            options: HashMap::new(),
            frontiers: HashMap::new(),
            floors: HashMap::new(),
            compared: 0,
        }
    }

    /// Returns the machines that can be part of the first layout in order.
    pub(super) fn hosts(&self) -> Vec<&'a HostSize> {
        let pools = || self.arrangements.iter().flatten();
        let uses = Uses {
            cache: pools().any(|pool| pool.mode != CacheMode::None),
            local: pools().any(|pool| pool.place == Place::Local),
        };
        self.machines.undominated(self.machines.hosts(self.need), uses)
    }

    /// Returns the first layout in order, on any of the machines.
    pub(super) fn best(&mut self, hosts: &[&'a HostSize], order: Order) -> Option<Candidate<'a>> {
        let mut best = None;
        for host in hosts {
            self.host(host, order, &mut best);
        }
        best
    }

    /// Compares all arrangements on a machine with the best candidate so far.
    fn host(&mut self, host: &'a HostSize, order: Order, best: &mut Option<Candidate<'a>>) {
        let host_cost = self.machines.host_cost(host);
        // Disks cost money, so a machine that alone costs as much as the best candidate cannot win.
        if order.ends(host_cost, best.as_ref().map(|best| best.cost)) {
            return;
        }
        let is_counted_on = self.machines.is_counted_on(host);
        let most = self.machines.most_disks_of(host);
        let taken = self.taken(host);
        let io_unit = self.machines.edition.io_unit();
        let filesystem = self.machines.wishes.file_system();
        for index in 0..self.arrangements.len() {
            let Some(hits) = self.machines.hits(self.need, &self.arrangements[index], host) else {
                continue;
            };
            if !has_room(self.need, &self.arrangements[index], host, io_unit, filesystem) {
                continue;
            }
            self.compared += 1;
            let Some(floor) = self.floor(index) else { continue };
            if order.ends(host_cost + floor, best.as_ref().map(|best| best.cost)) {
                continue;
            }
            let load = self.load(index, hits);
            let carries = [false, true]
                .map(|is_bought| published_for(host, is_bought).carry(&load, is_counted_on));
            if carries == [false, false] {
                continue;
            }
            for choice in self.frontier((index, hits, taken)).iter() {
                let cost = host_cost + choice.cost;
                let before = best.as_ref().map(|best| (best.choice.count, best.cost));
                let is_first = order.prefers((choice.count, cost), before);
                if is_first && choice.count <= most && carries[usize::from(choice.passes_bought())]
                {
                    *best = Some(Candidate {
                        host,
                        arrangement: self.arrangements[index].clone(),
                        choice: choice.clone(),
                        demands: load.to_vec(),
                        hits,
                        cost,
                    });
                }
            }
        }
    }

    /// Returns the index of the set of families that a machine takes.
    fn taken(&mut self, host: &HostSize) -> usize {
        let own = self.machines.taken(host);
        self.taken.iter().position(|taken| *taken == own).unwrap_or_else(|| {
            self.taken.push(own);
            self.taken.len() - 1
        })
    }

    /// Returns a lower bound of the price of an arrangement's disks on any machine; `None` if no
    /// disks carry it.
    fn floor(&mut self, index: usize) -> Option<Cost> {
        if let Some(floor) = self.floors.get(&index) {
            return *floor;
        }
        let is_cached = self.arrangements[index].iter().any(|pool| pool.mode != CacheMode::None);
        // With the most hits and all families, no machine needs more or dearer disks.
        let floor = match is_cached {
            true if !self.machines.gains_by_hits() => Some(Cost::default()),
            true => self.cheapest((index, WHOLE, 0)),
            false => self.cheapest((index, 0, 0)),
        };
        self.floors.insert(index, floor);
        floor
    }

    fn cheapest(&mut self, key: Key) -> Option<Cost> {
        self.frontier(key).iter().map(|choice| choice.cost).min()
    }

    /// Returns the load of an arrangement.
    fn load(&mut self, index: usize, hits: u64) -> Load {
        let of = || {
            let mut all = vec![Demand::default(); Peak::of_need(self.need).len()];
            for pool in &self.arrangements[index] {
                let own = self.machines.demands(self.need, pool, hits);
                all.iter_mut().zip(&own).for_each(|(all, own)| *all += own);
            }
            Rc::new(all)
        };
        Rc::clone(self.loads.entry((index, hits)).or_insert_with(of))
    }

    /// Returns the demand of a pool, and the disks that carry it (none for the local disk).
    fn options(&mut self, pool: &Pool, hits: u64, taken: usize) -> Options<'a> {
        let hits = if pool.mode == CacheMode::None { 0 } else { hits };
        let key = (pool.clone(), hits, taken);
        if let Some(options) = self.options.get(&key) {
            return Rc::clone(options);
        }
        let demands = self.machines.demands(self.need, pool, hits);
        let mut options = Vec::new();
        if pool.place != Place::Local {
            let (edition, prices) = (self.machines.edition, self.machines.prices);
            let kept =
                self.machines.kept(self.need, &pool.roles).map(|kept| [kept.family.as_str()]);
            let families = kept.as_ref().map_or(&self.taken[taken][..], |kept| kept.as_slice());
            let market = Market { edition, prices, families };
            let peaks: Vec<&Flow> = demands.iter().map(|own| &own.disk).collect();
            let mut latencies = Vec::new();
            options = market.options(&self.machines.asked(self.need, pool, &peaks, &mut latencies));
        }
        let options = Rc::new((demands, options));
        self.options.insert(key, Rc::clone(&options));
        options
    }

    /// Returns the disks that carry an arrangement.
    fn frontier(&mut self, key: Key) -> Rc<Vec<Choice<'a>>> {
        if let Some(frontier) = self.frontiers.get(&key) {
            return Rc::clone(frontier);
        }
        let (index, hits, taken) = key;
        let none = Choice { disks: Vec::new(), count: 0, cost: Cost::default(), is_bought: true };
        let mut choices = vec![none];
        for pool in self.arrangements[index].clone() {
            if pool.place == Place::Local {
                choices.iter_mut().for_each(|choice| choice.disks.push(None));
                continue;
            }
            let options = self.options(&pool, hits, taken);
            let with = |choice: &Choice<'a>| {
                let choice = choice.clone();
                options
                    .1
                    .iter()
                    .map(move |disks| {
                        let mut more = choice.clone();
                        more.disks.push(Some(*disks));
                        more.count += disks.count;
                        more.cost = more.cost + disks.cost;
                        more.is_bought &= matches!(disks.disk, Disk::Bought { .. });
                        more
                    })
                    .collect::<Vec<_>>()
            };
            choices = choices.iter().flat_map(with).collect();
            only_useful(&mut choices);
        }
        let frontier = Rc::new(choices);
        self.frontiers.insert(key, Rc::clone(&frontier));
        frontier
    }
}

/// Keeps the choices that no other beats in both number of disks and price, separately for bought
/// disks and for others, because machines may have different limits for the two.
fn only_useful(choices: &mut Vec<Choice<'_>>) {
    choices.sort_by_key(|choice| (choice.count, choice.cost));
    let mut least: [Option<Cost>; 2] = [None; 2];
    choices.retain(|choice| {
        let own = &mut least[usize::from(choice.is_bought)];
        let is_less = own.is_none_or(|least| choice.cost < least);
        if is_less {
            *own = Some(choice.cost);
        }
        is_less
    });
}
