//! The family of machines with disks: the machine, its disks, which roles share them, and caching.
//!
//! ```text
//! arrangement   roles by disk, with cache mode and stripe
//! demand        load at each limit, by arrangement and by size of the host cache
//! frontier      disks that carry the demand: more disks only if they cost less
//! machine       its limits carry the demand -> the cheapest disks of the frontier that fit
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `hosts` | [`Machines`]: the machines to consider, and their prices |
//! | `candidate` | [`Candidate`]: a machine with disks for every pool of roles |
//! | `arrangements` | which roles share disks, and how these are cached and striped |
//! | `limits` | demand at each limit, and the published limits |
//! | `dominated` | machines that a cheaper one beats, which are left out |
//! | `search` | the cheapest disks for each machine and arrangement |
//! | `cheaper` | the next cheaper layout, which fails |
//! | `describe` | title, bill, reasons and layout file |
//! | `unpublished` | machines that are left out |

mod arrangements;
mod candidate;
mod cheaper;
mod describe;
mod dominated;
mod hosts;
mod limits;
mod search;
mod unpublished;

use crate::answer::{CapUse, Line, PassedOver, Reason, Unpriced};
use crate::cost::Cost;
use crate::family::{Family, Searched};
use crate::need::Need;
use crate::rank::{Aim, Order};
use candidate::Candidate;
pub(crate) use describe::{backup_apart, pool_name};
pub(crate) use hosts::{Machines, licence_of_machine, runs_windows};
use search::Search;
use weir_catalog::HostSize;

/// The name of the family, also of machines whose disks share their limits.
pub(crate) const NAME: &str = "vm";

impl<'a> Family for Machines<'a> {
    type Candidate = Candidate<'a>;

    fn name(&self) -> &'static str {
        NAME
    }

    fn host<'c>(&self, candidate: &'c Candidate<'a>) -> &'c HostSize {
        candidate.host
    }

    fn cost(&self, candidate: &Candidate<'a>) -> Cost {
        candidate.cost
    }

    fn disks(&self, candidate: &Candidate<'a>) -> u64 {
        candidate.choice.count
    }

    fn title(&self, need: &Need, candidate: &Candidate<'a>) -> String {
        self.describe(need, candidate)
    }

    fn layout(&self, need: &Need, candidate: &Candidate<'a>) -> String {
        self.layout_file(need, candidate)
    }

    fn lines(&self, need: &Need, candidate: &Candidate<'a>) -> Vec<Line> {
        self.bill(need, candidate)
    }

    fn caps(&self, need: &Need, candidate: &Candidate<'a>) -> Vec<CapUse> {
        self.cap_uses(need, candidate)
    }

    fn reasons(&self, need: &Need, candidate: &Candidate<'a>) -> Vec<Reason> {
        self.all_reasons(need, candidate)
    }

    fn next_cheaper(&self, need: &Need, best: &Candidate<'a>) -> Option<Candidate<'a>> {
        self.one_step_cheaper(need, best)
    }
}

impl<'a> Machines<'a> {
    /// Finds the cheapest layout, or the layout with the fewest disks at about the same price.
    /// `rival` is the cost of the cheapest layout found elsewhere.
    #[must_use]
    pub(crate) fn search(&self, need: &Need, aim: Aim, rival: Option<Cost>) -> Searched {
        let mut search = Search::new(self, need);
        let hosts = search.hosts();
        let cheapest = search.best(&hosts, Order::Price);
        let compared = search.compared;
        let least = cheapest.iter().map(|candidate| candidate.cost).chain(rival).min();
        // Prices can only be close to each other where they are known. Otherwise the machine stays
        // that of the cheapest layout.
        let hosts = match &cheapest {
            Some(cheapest) if cheapest.cost.unpriced > 0 => vec![cheapest.host],
            _ => hosts,
        };
        let close = least.and_then(|least| aim.close_to(least));
        let fewest = close.and_then(|close| search.best(&hosts, Order::Disks(close)));
        let passed_over = cheapest.as_ref().map(|candidate: &Candidate<'a>| PassedOver {
            title: self.title(need, candidate),
            cost: candidate.cost,
            disks: candidate.choice.count,
        });
        let best = fewest.or(cheapest);
        Searched { cheapest: passed_over, ..self.searched(need, best, compared, aim) }
    }

    /// Lists the machines without a price that carry the need, each with its cheapest disks.
    #[must_use]
    pub(crate) fn unpriced(&self, need: &Need) -> Vec<Unpriced> {
        let mut search = Search::new(self, need);
        let hosts = self.hosts(need).into_iter().filter(|host| self.host_price(host).is_none());
        let carrying = hosts.filter_map(|host| search.best(&[host], Order::Price));
        carrying.map(|own| self.without_price(need, &own)).collect()
    }
}
