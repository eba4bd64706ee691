//! Families of layouts, one file each.
//!
//! | family | file | a layout consists of |
//! |---|---|---|
//! | `vm` | [`machine`](crate::machine) | a machine, disks with limits of their own, and a cache |
//! | `vm` | [`pooled`](crate::pooled) | a machine, and disks that share their limits |
//! | `gp`, `next-gen-gp`, `bc` | [`instance`](crate::instance) | vCores, storage, and files |
//! | `rds`, `postgres` | [`service`](crate::service) | a server, and one store for all files |
//!
//! A family lists candidates, picks the cheapest whose limits carry the need, and describes it by
//! the methods of [`Family`]. Disks are picked by [`Market::options`](crate::disks::Market::options)
//! for machines, and by `Services::storages` for services.
//!
//! A new family is a file with a type that implements [`Family`], a variant of `Kind` in
//! `planner/kind.rs` that names it and says which constraints apply to it, and the call of its
//! search in `planner/search.rs`.

use crate::answer::{CapUse, Cheaper, Line, PassedOver, Plan, Reason, Unpriced};
use crate::cost::Cost;
use crate::need::Need;
use crate::rank::Aim;
use weir_catalog::HostSize;
use weir_units::Bytes;

/// A family of layouts.
pub(crate) trait Family {
    /// A layout that is compared with others.
    type Candidate;

    /// The unit of processors.
    const PROCESSORS: &'static str = "vCPUs";

    /// Returns the name that plans and need files use.
    fn name(&self) -> &'static str;

    /// Returns the machine, instance size or server.
    fn host<'c>(&self, candidate: &'c Self::Candidate) -> &'c HostSize;

    /// Returns the price per month.
    fn cost(&self, candidate: &Self::Candidate) -> Cost;

    /// Returns the number of attached disks; 0 if the cloud looks after them.
    fn disks(&self, _candidate: &Self::Candidate) -> u64 {
        0
    }

    /// Describes a candidate in one line.
    fn title(&self, need: &Need, candidate: &Self::Candidate) -> String;

    /// Writes the layout file.
    fn layout(&self, need: &Need, candidate: &Self::Candidate) -> String;

    /// Returns the bill.
    fn lines(&self, need: &Need, candidate: &Self::Candidate) -> Vec<Line>;

    /// Returns the use of every limit.
    fn caps(&self, need: &Need, candidate: &Self::Candidate) -> Vec<CapUse>;

    /// Returns the reasons for a candidate.
    fn reasons(&self, need: &Need, candidate: &Self::Candidate) -> Vec<Reason>;

    /// Returns the most expensive candidate that is one step cheaper than the best and exceeds a
    /// limit.
    fn next_cheaper(&self, need: &Need, best: &Self::Candidate) -> Option<Self::Candidate>;

    /// Returns whether a candidate can be built, even if it does not carry the need.
    fn is_buildable(&self, _candidate: &Self::Candidate) -> bool {
        true
    }

    /// Returns the limits that the need exceeds.
    fn fails(&self, need: &Need, candidate: &Self::Candidate) -> Vec<CapUse> {
        let mut fails = self.caps(need, candidate);
        fails.retain(|cap| cap.used > cap.most);
        let host = self.host(candidate);
        let vcpus = host.vcpus.map_or(0, u64::from);
        let wanted = u64::from(need.vcpus);
        fails.extend(CapUse::number(&host.name, Self::PROCESSORS, wanted, vcpus).lacking());
        let memory = host.memory.unwrap_or(Bytes::ZERO);
        fails.extend(CapUse::size(&host.name, "memory", need.memory, memory).lacking());
        fails
    }

    /// Returns a candidate as a plan.
    fn plan(&self, need: &Need, candidate: &Self::Candidate) -> Plan {
        Plan {
            family: self.name().to_owned(),
            title: self.title(need, candidate),
            layout: self.layout(need, candidate),
            lines: self.lines(need, candidate),
            cost: self.cost(candidate),
            caps: self.caps(need, candidate),
            reasons: self.reasons(need, candidate),
            disks: self.disks(candidate),
            passed_over: None,
        }
    }

    /// Returns a candidate whose machine has no price, with the price of the rest.
    fn without_price(&self, need: &Need, candidate: &Self::Candidate) -> Unpriced {
        let cost = self.cost(candidate);
        Unpriced {
            host: self.host(candidate).name.clone(),
            title: self.title(need, candidate),
            cost: Cost { unpriced: cost.unpriced.saturating_sub(1), ..cost },
        }
    }

    /// Returns the next cheaper layout with the limits that it exceeds.
    fn cheaper(&self, need: &Need, best: &Self::Candidate) -> Option<Cheaper> {
        let next = self.next_cheaper(need, best)?;
        Some(Cheaper {
            what: self.title(need, &next),
            cost: self.cost(&next),
            fails: self.fails(need, &next),
            layout: self.is_buildable(&next).then(|| self.layout(need, &next)),
        })
    }

    /// Returns the result of a search that compared `compared` candidates and found `best`.
    fn searched(
        &self,
        need: &Need,
        best: Option<Self::Candidate>,
        compared: u64,
        aim: Aim,
    ) -> Searched {
        let plan = best.as_ref().map(|best| self.plan(need, best));
        let best = best.filter(|_| aim.explains);
        let cheaper = best.and_then(|best| self.cheaper(need, &best));
        Searched { plan, cheapest: None, cheaper, compared }
    }

    /// Picks the cheapest of the candidates that can be built and exceed no limit, the first of
    /// equals.
    fn pick(
        &self,
        need: &Need,
        candidates: impl Iterator<Item = Self::Candidate>,
        aim: Aim,
    ) -> Searched {
        let mut compared = 0;
        let mut best: Option<Self::Candidate> = None;
        for candidate in candidates {
            compared += 1;
            let is_less = best.as_ref().is_none_or(|best| self.cost(&candidate) < self.cost(best));
            if is_less && self.is_buildable(&candidate) && self.fails(need, &candidate).is_empty() {
                best = Some(candidate);
            }
        }
        self.searched(need, best, compared, aim)
    }
}

/// The result of a search in one family.
#[derive(Debug, Default)]
pub(crate) struct Searched {
    /// The chosen layout, if the need is feasible.
    pub(crate) plan: Option<Plan>,
    /// The cheapest layout with disks, if there is one.
    pub(crate) cheapest: Option<PassedOver>,
    /// The next cheaper layout, and the limits that it exceeds.
    pub(crate) cheaper: Option<Cheaper>,
    /// Number of candidates compared.
    pub(crate) compared: u64,
}

impl Searched {
    /// Merges two searches among machines. The cheaper plan is taken, or the one with fewer disks
    /// if both are close to the cheapest price.
    pub(crate) fn merged(self, other: Self, aim: Aim) -> Self {
        let compared = self.compared + other.compared;
        let cheapest =
            self.cheapest.iter().chain(&other.cheapest).min_by_key(|own| own.cost).cloned();
        let close = cheapest.as_ref().and_then(|own| aim.close_to(own.cost));
        let rank = |own: &Self| {
            let plan = own.plan.as_ref()?;
            let is_close = close.is_some_and(|close| close.holds(plan.cost));
            Some((!is_close, if is_close { plan.disks } else { 0 }, plan.cost))
        };
        let is_other = match (rank(&self), rank(&other)) {
            (Some(own), Some(other)) => other < own,
            (own, _) => own.is_none(),
        };
        let mut taken = if is_other { other } else { self };
        if let Some(plan) = &mut taken.plan {
            plan.passed_over = cheapest.clone().filter(|own: &PassedOver| {
                own.cost.unpriced == plan.cost.unpriced && own.cost.month < plan.cost.month
            });
        }
        Self { compared, cheapest, ..taken }
    }
}
