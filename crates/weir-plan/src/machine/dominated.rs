//! Machines that another machine beats: it costs no more, and each of its limits is at least as high.
//!
//! A layout on a beaten machine can be built on the machine that beats it, with the same disks and at
//! no higher price. Beaten machines are therefore left out before any disks are picked. Of a thousand
//! sizes a few dozen remain.

use super::hosts::Machines;
use super::limits::{local_disk, published_for};
use crate::demand::Limits;
use weir_catalog::HostSize;
use weir_units::Bytes;

/// The parts of a machine that the arrangements of a need use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Uses {
    pub(super) cache: bool,
    pub(super) local: bool,
}

impl<'a> Machines<'a> {
    /// Returns the machines that none before them beats. `hosts` are in order of their price.
    pub(super) fn undominated(&self, hosts: Vec<&'a HostSize>, uses: Uses) -> Vec<&'a HostSize> {
        let mut all: Vec<(&HostSize, Vec<u64>)> = Vec::new();
        for host in hosts {
            let own = self.strengths(host, uses);
            let is_beaten =
                || all.iter().any(|(_, other)| own.iter().zip(other).all(|(own, one)| own <= one));
            // The unpublished limits of a chosen machine are counted on.
            if self.is_chosen(host) || !is_beaten() {
                all.push((host, own));
            }
        }
        all.into_iter().map(|(host, _)| host).collect()
    }

    /// Returns all that a plan can gain from a machine, more being better. An unpublished limit is
    /// below any published one.
    fn strengths(&self, host: &HostSize, uses: Uses) -> Vec<u64> {
        let limits = |own: Option<Limits>| {
            let of = |n: fn(Limits) -> u64| known(own.map(n));
            [of(|own| own.operations), of(|own| own.bytes)]
        };
        let mut all = vec![self.most_disks_of(host)];
        let caps = [false, true].map(|is_bought| published_for(host, is_bought));
        all.extend(caps.iter().flat_map(|own| limits(own.uncached)));
        let taken = self.taken(host);
        all.extend(self.families.iter().map(|family| u64::from(taken.contains(family))));
        if uses.cache || uses.local {
            all.extend(limits(caps[0].cached));
        }
        if uses.cache {
            let cache = host.cache.filter(|_| host.premium_caching == Some(true)).map(Bytes::get);
            all.push(known(cache));
            // Where hits cost more than misses, only machines with equal caches are compared.
            if !self.gains_by_hits() {
                all.push(u64::MAX - known(cache));
            }
        }
        if uses.local {
            let disk = local_disk(host);
            all.push(known(disk.map(|(size, _)| size.get())));
            all.extend(limits(disk.map(|(_, limits)| limits)));
        }
        all
    }
}

/// Ranks a figure that may be unpublished.
fn known(own: Option<u64>) -> u64 {
    own.map_or(0, |own| own.saturating_add(1))
}
