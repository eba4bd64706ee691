//! The search for the first layout in order, among all machines and arrangements.
//!
//! A frontier depends on the machine only through its cache and the disk families that it takes, so
//! each is computed once. `Market::options` (`disks.rs`) picks the disks of each pool.

use super::candidate::{Arrangement, Candidate, Choice, Place, Pool};
use super::hosts::{MOST_DISKS, Machines};
use super::limits::{has_room, published};
use crate::cost::Cost;
use crate::demand::{Demand, Flow, Peak};
use crate::disks::{Asked, Disk, Disks, Market};
use crate::need::Need;
use crate::rank::Order;
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

/// The demand of an arrangement and the disks that carry it, for all machines with the same hit
/// ratio.
#[derive(Debug)]
struct Frontier<'a> {
    demands: Vec<Demand>,
    /// Disks in order of their number, more disks only if they cost less: once with tiers, once
    /// without.
    choices: Vec<Choice<'a>>,
}

/// The demand of a pool, and the disks that carry it.
type Options<'a> = Rc<(Vec<Demand>, Vec<Disks<'a>>)>;

/// A search with the disks and frontiers that it has computed.
pub(super) struct Search<'a, 'm> {
    machines: &'m Machines<'a>,
    need: &'m Need,
    arrangements: Vec<Arrangement>,
    options: HashMap<(Pool, u64, Vec<&'a str>), Options<'a>>,
    frontiers: HashMap<(usize, u64, Vec<&'a str>), Frontier<'a>>,
    /// Number of layouts compared so far.
    pub(super) compared: u64,
}

impl<'a, 'm> Search<'a, 'm> {
    pub(super) fn new(machines: &'m Machines<'a>, need: &'m Need) -> Self {
        Self {
            machines,
            need,
            arrangements: machines.arrangements(need),
            options: HashMap::new(),
            frontiers: HashMap::new(),
            compared: 0,
        }
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
        let is_named = self.machines.is_chosen(host);
        let most =
            host.max_data_disks.map_or(MOST_DISKS, u64::from).min(self.machines.most_disks());
        let taken = self.machines.taken(host);
        for index in 0..self.arrangements.len() {
            let Some(hits) = self.machines.hits(self.need, &self.arrangements[index], host) else {
                continue;
            };
            let io_unit = self.machines.edition.io_unit();
            let filesystem = self.machines.wishes.file_system();
            if !has_room(self.need, &self.arrangements[index], host, io_unit, filesystem) {
                continue;
            }
            let key = (index, hits, taken.clone());
            if !self.frontiers.contains_key(&key) {
                let arrangement = self.arrangements[index].clone();
                let frontier = self.frontier(&arrangement, hits, &taken);
                self.frontiers.insert(key.clone(), frontier);
            }
            let Some(frontier) = self.frontiers.get(&key) else { continue };
            self.compared += 1;
            for choice in &frontier.choices {
                let cost = host_cost + choice.cost;
                let before = best.as_ref().map(|best| (best.choice.count, best.cost));
                let is_first = order.prefers((choice.count, cost), before);
                let carries = || published(host, choice).carry(&frontier.demands, is_named);
                if is_first && choice.count <= most && carries() {
                    *best = Some(Candidate {
                        host,
                        arrangement: self.arrangements[index].clone(),
                        choice: choice.clone(),
                        demands: frontier.demands.clone(),
                        hits,
                        cost,
                    });
                }
            }
        }
    }

    /// Returns the demand of a pool, and the disks that carry it (none for the local disk).
    fn options(&mut self, pool: &Pool, hits: u64, taken: &[&'a str]) -> Options<'a> {
        let hits = if pool.mode == CacheMode::None { 0 } else { hits };
        let key = (pool.clone(), hits, taken.to_vec());
        if let Some(options) = self.options.get(&key) {
            return Rc::clone(options);
        }
        let demands = self.machines.demands(self.need, pool, hits);
        let mut options = Vec::new();
        if pool.place != Place::Local {
            let (edition, prices) = (self.machines.edition, self.machines.prices);
            let kept =
                self.machines.kept(self.need, &pool.roles).map(|kept| [kept.family.as_str()]);
            let families = kept.as_ref().map_or(taken, |kept| kept.as_slice());
            let market = Market { edition, prices, families };
            let peaks: Vec<&Flow> = demands.iter().map(|own| &own.disk).collect();
            let mut latencies = Vec::new();
            options = market.options(&self.machines.asked(self.need, pool, &peaks, &mut latencies));
        }
        let options = Rc::new((demands, options));
        self.options.insert(key, Rc::clone(&options));
        options
    }

    fn frontier(
        &mut self,
        arrangement: &Arrangement,
        hits: u64,
        taken: &[&'a str],
    ) -> Frontier<'a> {
        let mut all = vec![Demand::default(); Peak::of_need(self.need).len()];
        let none = Choice { disks: Vec::new(), count: 0, cost: Cost::default(), is_bought: true };
        let mut choices = vec![none];
        for pool in arrangement {
            let options = self.options(pool, hits, taken);
            let (own, options) = (&options.0, &options.1);
            all.iter_mut().zip(own).for_each(|(all, own)| *all += own);
            if pool.place == Place::Local {
                choices.iter_mut().for_each(|choice| choice.disks.push(None));
                continue;
            }
            let with = |choice: &Choice<'a>| {
                let choice = choice.clone();
                options
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
        Frontier { demands: all, choices }
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
