//! Load and limits of a machine and its disks: hits of the host cache, demand at each limit, and
//! whether the limits carry it.

use super::candidate::{Arrangement, Candidate, Choice, Place, Pool};
use super::hosts::Machines;
use crate::answer::CapUse;
use crate::demand::{self, Demand, Flow, Limits, Peak};
use crate::disks::Disks;
use crate::filesystem::FileSystem;
use crate::need::{Need, RoleNeed};
use crate::share::WHOLE;
use weir_catalog::{CacheMode, CacheOp, HostLimits, HostSize};
use weir_units::Bytes;

/// The names of limits, on operations and on bytes.
const OF_DISKS: [&str; 2] = ["disk operations", "disk bytes"];
const UNCACHED: [&str; 2] = ["uncached operations", "uncached bytes"];
const CACHED: [&str; 2] = ["cached operations", "cached bytes"];

impl Machines<'_> {
    /// Returns the hit ratio of the machine's warm cache, in millionths; `None` if it cannot be
    /// predicted.
    pub(super) fn hits(
        &self,
        need: &Need,
        arrangement: &Arrangement,
        host: &HostSize,
    ) -> Option<u64> {
        let cached = arrangement.iter().filter(|pool| pool.mode != CacheMode::None);
        let roles: Vec<usize> = cached.flat_map(|pool| pool.roles.iter().copied()).collect();
        // Cached disks in use stay cached even without a known working set. Without cached disks
        // there are no hits.
        if roles.iter().any(|role| need.roles[*role].working_set.is_none()) || roles.is_empty() {
            return Some(0);
        }
        // Limits that are not published cannot be counted on.
        if host.premium_caching != Some(true) || host.cached.is_none() {
            return None;
        }
        let cache = host.cache?;
        let set = |role: &usize| need.roles[*role].working_set.unwrap_or(need.roles[*role].size);
        let sets: u128 = roles.iter().map(|role| u128::from(set(role).get())).sum();
        // The split of a cache that is too small for all roles cannot be predicted.
        if roles.len() > 1 && u128::from(cache.get()) < sets {
            return None;
        }
        let part = u128::from(cache.get()) * u128::from(WHOLE) / sets.max(1);
        u64::try_from(part.min(u128::from(WHOLE))).ok()
    }

    /// Returns whether more hits of the cache never raise the load at any limit.
    pub(super) fn gains_by_hits(&self) -> bool {
        let counts = |op| self.edition.host_cache()?.counts(CacheMode::ReadOnly, op);
        let flags = |op| counts(op).map(|own| [own.disk, own.uncached, own.cached]);
        match (flags(CacheOp::ReadHit), flags(CacheOp::ReadMiss)) {
            (Some(hit), Some(miss)) => hit.iter().zip(miss).all(|(hit, miss)| *hit <= miss),
            _ => false,
        }
    }

    /// Returns the load of a pool on disks and machine, at each peak of the need.
    pub(super) fn demands(&self, need: &Need, pool: &Pool, hits: u64) -> Vec<Demand> {
        let stripe = match pool.place {
            Place::Striped(unit) => Some(unit),
            Place::Single | Place::Local => None,
        };
        let cache = self.edition.host_cache();
        Peak::of_need(need)
            .iter()
            .map(|peak: &Peak| {
                let mut all = Demand::default();
                for role in &pool.roles {
                    let own = &need.roles[*role];
                    let asked = demand::flow(own, *peak, self.edition.io_unit(), stripe);
                    all += &match pool.place {
                        Place::Local => Demand { cached: asked, ..Demand::default() },
                        _ => demand::by_cap(asked, own.reads.min(WHOLE), pool.mode, hits, cache),
                    };
                }
                all
            })
            .collect()
    }

    /// Returns the use of every limit.
    pub(super) fn cap_uses(&self, need: &Need, candidate: &Candidate<'_>) -> Vec<CapUse> {
        let mut all = Vec::new();
        for (pool, disks) in candidate.arrangement.iter().zip(&candidate.choice.disks) {
            let own = self.demands(need, pool, candidate.hits);
            let own: Vec<&Flow> = own.iter().map(|own| &own.disk).collect();
            let name = pool.names(need, "-");
            let size = self.room_for(need, &pool.roles);
            match disks {
                Some(Disks { disk, count, .. }) => {
                    all.extend(CapUse::rates(&name, &own, disk.limits(), *count, OF_DISKS));
                    let room = Bytes::new(disk.size().get().saturating_mul(*count));
                    all.push(CapUse::size(&name, "size", size, room));
                }
                None => {
                    let disk = candidate.host.temp.and_then(|temp| temp.size).unwrap_or(size);
                    all.push(CapUse::size(&name, "local disk", size, disk));
                }
            }
        }
        let own = published(candidate.host, &candidate.choice);
        let of = &candidate.host.name;
        let uncached: Vec<&Flow> = candidate.demands.iter().map(|own| &own.uncached).collect();
        let cached: Vec<&Flow> = candidate.demands.iter().map(|own| &own.cached).collect();
        for (most, peaks, names) in
            [(own.uncached, uncached, UNCACHED), (own.cached, cached, CACHED)]
        {
            if let Some(most) = most.filter(|_| peaks.iter().any(|flow| !flow.is_empty())) {
                all.extend(CapUse::rates(of, &peaks, most, 1, names));
            }
        }
        if let Some(most) = self.edition.most_data_disks(candidate.host) {
            all.push(CapUse::number(of, "data disks", candidate.choice.count, u64::from(most)));
        }
        all
    }
}

/// Returns whether the machine's local disk carries the pools on it, in size and in rates.
pub(super) fn has_room(
    need: &Need,
    arrangement: &Arrangement,
    host: &HostSize,
    io_unit: Option<Bytes>,
    filesystem: FileSystem,
) -> bool {
    let local = || {
        let own = arrangement.iter().filter(|pool| pool.place == Place::Local);
        own.flat_map(|pool| &pool.roles).map(|role| &need.roles[*role])
    };
    if local().next().is_none() {
        return true;
    }
    let size: u64 = local().map(|own| own.size.get()).sum();
    let size = filesystem.room_for(Bytes::new(size));
    let mut flow = Flow::default();
    for own in local() {
        flow += &demand::flow(own, Peak::Operations, io_unit, None);
    }
    let Some((room, limits)) = local_disk(host) else { return false };
    let peak = |own: &RoleNeed| demand::flow(own, Peak::Throughput, io_unit, None);
    let rates = flow.fits(limits, 1) && local().all(|own| peak(own).fits(limits, 1));
    rates && room >= size
}

/// Returns size and limits of a machine's local disk. Limits that are not published cannot be
/// counted on.
pub(super) fn local_disk(host: &HostSize) -> Option<(Bytes, Limits)> {
    let disk = host.temp.filter(|_| host.cached.is_some())?;
    // Reads and writes share the disk's limits. If they have limits of their own, the lower one is
    // used.
    let bytes = [disk.read, disk.write].into_iter().flatten().map(|own| own.get()).min();
    let limits = Limits {
        operations: disk.iops.map_or(u64::MAX, |own| own.get()),
        bytes: bytes.unwrap_or(u64::MAX),
    };
    Some((disk.size?, limits))
}

/// The published limits of a machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caps {
    pub(super) uncached: Option<Limits>,
    pub(super) cached: Option<Limits>,
}

impl Caps {
    /// Returns whether the limits carry all of `demands`. An unpublished limit carries nothing,
    /// except on a machine that is counted on.
    pub(super) fn carry(&self, demands: &[Demand], is_counted_on: bool) -> bool {
        let carries = |most: Option<Limits>, asked: &Flow| match most {
            Some(most) => asked.fits(most, 1),
            None => is_counted_on || asked.is_empty(),
        };
        demands
            .iter()
            .all(|own| carries(self.uncached, &own.uncached) && carries(self.cached, &own.cached))
    }

    /// Returns whether all limits that the demands reach are published.
    pub(super) fn is_known(&self, demands: &[Demand]) -> bool {
        let is_known = |most: Option<Limits>, asked: &Flow| most.is_some() || asked.is_empty();
        demands
            .iter()
            .all(|own| is_known(self.uncached, &own.uncached) && is_known(self.cached, &own.cached))
    }
}

/// Returns the published limits of a machine that apply to a choice of disks.
pub(super) fn published(host: &HostSize, choice: &Choice<'_>) -> Caps {
    published_for(host, choice.passes_bought())
}

/// Returns the published limits of a machine, for disks with bought limits or for others.
pub(super) fn published_for(host: &HostSize, is_bought: bool) -> Caps {
    let load = |limits: &HostLimits| Limits {
        operations: limits.iops.get(),
        bytes: limits.throughput.get(),
    };
    let uncached = if is_bought { host.v2_or_uncached() } else { host.uncached.as_ref() };
    Caps { uncached: uncached.map(load), cached: host.cached.as_ref().map(load) }
}
