//! The next cheaper layout: one step below the plan, with the limits that it exceeds.

use super::candidate::{Candidate, Place};
use super::hosts::Machines;
use super::limits::published;
use crate::demand::{Demand, Peak};
use crate::disks::{Disk, Disks, Market, becomes, larger, slower, smaller};
use crate::family::Family as _;
use crate::keep::KeptPool;
use crate::need::Need;

impl<'a> Machines<'a> {
    /// Returns the most expensive layout that is one step cheaper than the best and fails. A step
    /// is fewer or smaller disks, less of a bought limit, or a smaller machine; if there is none,
    /// less of a bought size.
    pub(super) fn one_step_cheaper(
        &self,
        need: &Need,
        best: &Candidate<'a>,
    ) -> Option<Candidate<'a>> {
        let with_disks = (0..best.arrangement.len()).flat_map(|at| {
            let kept = self.kept(need, &best.arrangement[at].roles);
            self.with_less(need, best, at, |own, fewest| self.less(best, own, kept, fewest))
        });
        let hosts = self.edition.hosts().filter(|host| self.is_named(host));
        let with_hosts = hosts.filter_map(|host| {
            let cost = self.host_cost(host) + best.choice.cost;
            let is_priced = cost.unpriced == best.cost.unpriced && cost.month < best.cost.month;
            // Demand cannot be compared with limits that are not published.
            let own = published(host, &best.choice);
            let is_known = own.is_known(&best.demands) || self.is_counted_on(host);
            (is_priced && is_known).then(|| Candidate { host, cost, ..best.clone() })
        });
        let smaller = (0..best.arrangement.len()).flat_map(|at| {
            self.with_less(need, best, at, |own, _| {
                let Disk::Bought { family, .. } = own.disk else { return Vec::new() };
                smaller(&own.disk, family).map(|disk| (disk, own.count)).into_iter().collect()
            })
        });
        self.dearest(need, with_disks.chain(with_hosts)).or_else(|| self.dearest(need, smaller))
    }

    /// Returns the most expensive candidate that exceeds a limit.
    fn dearest(
        &self,
        need: &Need,
        all: impl Iterator<Item = Candidate<'a>>,
    ) -> Option<Candidate<'a>> {
        all.filter(|other| !self.fails(need, other).is_empty())
            .max_by_key(|other| (other.cost.month, std::cmp::Reverse(other.choice.count)))
    }

    /// Returns the best candidate with cheaper disks for one of its pools.
    fn with_less(
        &self,
        need: &Need,
        best: &Candidate<'a>,
        at: usize,
        ways: impl Fn(&Disks<'a>, u64) -> Vec<(Disk<'a>, u64)>,
    ) -> Vec<Candidate<'a>> {
        let Some(own) = best.choice.disks.get(at).copied().flatten() else { return Vec::new() };
        let pool = &best.arrangement[at];
        let kept = self.kept(need, &pool.roles);
        let is_less = |disks: &Disks<'_>| {
            disks.cost.unpriced == own.cost.unpriced && disks.cost.month < own.cost.month
        };
        // Disks in use keep their number and limits.
        let stays = |disks: &Disks<'_>| {
            kept.is_none_or(|kept| disks.count == kept.count && becomes(kept, &disks.disk))
        };
        let with = |disks: Disks<'a>| {
            let mut other = best.clone();
            // A single disk has no stripe.
            other.arrangement[at].place = match (pool.place, disks.count) {
                (Place::Striped(_), 1) => Place::Single,
                (Place::Single, 2..) => {
                    Place::Striped(self.unit(pool.roles.iter().map(|role| &need.roles[*role])))
                }
                (place, _) => place,
            };
            other.choice.disks[at] = Some(disks);
            other.choice.count = other.choice.count - own.count + disks.count;
            let rest = best.cost.month.beyond(own.cost.month);
            other.cost.month = rest + disks.cost.month;
            other.demands = vec![Demand::default(); Peak::of_need(need).len()];
            for pool in &other.arrangement {
                let own = self.demands(need, pool, other.hits);
                other.demands.iter_mut().zip(&own).for_each(|(all, own)| *all += own);
            }
            other
        };
        let ways = ways(&own, kept.map_or(1, |kept| kept.count)).into_iter().map(
            |(disk, count): (Disk<'a>, u64)| Disks {
                disk,
                count,
                cost: disk.cost(count, self.prices),
            },
        );
        ways.filter(|own| is_less(own) && stays(own)).map(with).collect()
    }

    /// Lists smaller choices of a pool's disks with their number, which is at least `fewest`.
    fn less(
        &self,
        best: &Candidate<'a>,
        own: &Disks<'a>,
        kept: Option<&KeptPool>,
        fewest: u64,
    ) -> Vec<(Disk<'a>, u64)> {
        match own.disk {
            Disk::Tier(_) | Disk::Plus(_) | Disk::Burst(_) | Disk::Chosen(_) => {
                self.of_tiers(best, own, kept)
            }
            Disk::Bought { family, .. } => {
                let fewer = larger(&own.disk, family, own.count).filter(|_| own.count > fewest);
                let slower = slower(&own.disk, family).into_iter().map(|disk| (disk, own.count));
                slower.chain(fewer.map(|disk| (disk, own.count - 1))).collect()
            }
        }
    }

    /// Lists the disks of a family's tiers that cost less, in any number.
    fn of_tiers(
        &self,
        best: &Candidate<'a>,
        own: &Disks<'a>,
        kept: Option<&KeptPool>,
    ) -> Vec<(Disk<'a>, u64)> {
        let families = [own.disk.family()];
        let market = Market { edition: self.edition, prices: self.prices, families: &families };
        let most = self.most_disks_of(best.host);
        let of = |disk: Disk<'a>| {
            // The price grows with the number.
            (1..=most)
                .take_while(|count: &u64| disk.cost(*count, self.prices).month < own.cost.month)
                .map(|count| (disk, count))
                .collect::<Vec<_>>()
        };
        // The last of equal cost is taken, so performance plus counts.
        market.of_tiers(kept).into_iter().flat_map(of).collect()
    }
}
