//! The arrangements of a need: which roles share disks, and how these are cached and striped.

use super::candidate::{Arrangement, Place, Pool};
use super::hosts::Machines;
use crate::demand::{self, Peak};
use crate::keep::KeptPool;
use crate::need::{Need, RoleNeed};
use weir_catalog::CacheMode;
use weir_layout::Role;
use weir_units::Bytes;

impl Machines<'_> {
    /// Lists all ways to share, cache and stripe disks.
    pub(super) fn arrangements(&self, need: &Need) -> Vec<Arrangement> {
        let mut all = Vec::new();
        for partition in partitions(need.roles.len()) {
            let may_share = partition.iter().all(|roles| self.may_share(need, roles));
            if !may_share || !self.is_kept(need, &partition) {
                continue;
            }
            let ways = partition.iter().map(|roles| self.ways(need, roles));
            let mut made: Vec<Arrangement> = vec![Vec::new()];
            for ways in ways {
                made = made
                    .iter()
                    .flat_map(|pools: &Arrangement| {
                        let pools = pools.clone();
                        ways.iter()
                            .map(move |way| {
                                let mut pools = pools.clone();
                                pools.push(way.clone());
                                pools
                            })
                            .collect::<Vec<_>>()
                    })
                    .collect();
            }
            all.extend(made);
        }
        all
    }

    /// Returns whether roles may share disks. A backup beside data or log would be lost with them,
    /// and its writes would compete with theirs (article 004).
    fn may_share(&self, need: &Need, roles: &[usize]) -> bool {
        let has = |role: Role| roles.iter().any(|own| need.roles[*own].role == role);
        let is_exposed = has(Role::Backup) && (has(Role::Data) || has(Role::Log));
        let is_kept = self.kept(need, roles).is_some();
        match roles.len() {
            0 | 1 => true,
            _ if self.wishes.is_apart => false,
            _ => !is_exposed || self.wishes.shares_backup || is_kept,
        }
    }

    /// Returns whether exactly the roles that share disks in use still share them.
    fn is_kept(&self, need: &Need, partition: &[Vec<usize>]) -> bool {
        let pool = |role: &usize| self.wishes.keep.as_ref()?.pool(need.roles[*role].role);
        let needed = |pool: &KeptPool| {
            need.roles.iter().filter(|own| pool.roles.contains(&own.role)).count()
        };
        partition.iter().all(|roles| match roles.first().and_then(pool) {
            Some(first) => {
                roles.iter().all(|role| pool(role) == Some(first)) && roles.len() == needed(first)
            }
            None => roles.iter().all(|role| pool(role).is_none()),
        })
    }

    /// Lists the possible disks of some roles.
    fn ways(&self, need: &Need, roles: &[usize]) -> Vec<Pool> {
        let of = |mode, place| Pool { roles: roles.to_vec(), mode, place };
        let own = || roles.iter().map(|role| &need.roles[*role]);
        let is_read = |role: Role| matches!(role, Role::Data | Role::Tempdb);
        let is_cacheable = || {
            self.edition.host_cache().is_some()
                && own().all(|own| is_read(own.role) && own.working_set.is_some())
        };
        if let Some(kept) = self.kept(need, roles) {
            let place = match kept.unit {
                _ if kept.is_local => Place::Local,
                Some(unit) => Place::Striped(unit),
                None => Place::Single,
            };
            let mut ways = vec![of(kept.mode, place)];
            // Another unit or cache mode costs downtime but no money, so the present ones come first among equal
            // prices.
            let rebuilt = Place::Striped(self.unit(own()));
            if matches!(place, Place::Striped(_)) && rebuilt != place && self.may_rebuild() {
                ways.push(of(kept.mode, rebuilt));
            }
            let other = match kept.mode {
                CacheMode::None => CacheMode::ReadOnly,
                CacheMode::ReadOnly | CacheMode::ReadWrite => CacheMode::None,
            };
            // Without a working set, the gain and the loss of a cache are unknown.
            if !kept.is_local && is_cacheable() && self.may_recache() {
                let cached: Vec<Pool> = ways.iter().map(|way| of(other, way.place)).collect();
                ways.extend(cached);
            }
            return ways;
        }
        let unit = self.unit(own());
        let mut ways =
            vec![of(CacheMode::None, Place::Single), of(CacheMode::None, Place::Striped(unit))];
        if is_cacheable() {
            ways.push(of(CacheMode::ReadOnly, Place::Single));
            ways.push(of(CacheMode::ReadOnly, Place::Striped(unit)));
        }
        if own().all(|own| own.role == Role::Tempdb) {
            ways.push(of(CacheMode::None, Place::Local));
        }
        ways
    }

    /// Returns the room on disks that the files of some roles need.
    pub(super) fn room_for(&self, need: &Need, roles: &[usize]) -> Bytes {
        let sizes = roles.iter().map(|role| need.roles[*role].size.get());
        self.wishes.file_system().room_for(Bytes::new(sizes.fold(0, u64::saturating_add)))
    }

    /// Returns the stripe unit with the fewest operations, the smaller one of two equals.
    pub(super) fn unit<'n>(&self, roles: impl Iterator<Item = &'n RoleNeed> + Clone) -> Bytes {
        let io_unit = self.edition.io_unit();
        if io_unit.is_none() {
            // Without an I/O unit, requests are best not split at all.
            return self.units.iter().copied().max().unwrap_or(Bytes::kib(64));
        }
        let counted = |unit: &Bytes| -> u64 {
            roles
                .clone()
                .map(|need: &RoleNeed| -> u64 {
                    let peaks = [Peak::Operations, Peak::Throughput];
                    let at = |peak| demand::flow(need, peak, io_unit, Some(*unit));
                    peaks.map(|peak| at(peak).operations).into_iter().fold(0, u64::saturating_add)
                })
                .fold(0, u64::saturating_add)
        };
        let units = self.units.iter().copied();
        units.min_by_key(|unit| (counted(unit), *unit)).unwrap_or(Bytes::kib(64))
    }
}

/// Lists all partitions of `n` items into groups.
fn partitions(n: usize) -> Vec<Vec<Vec<usize>>> {
    let mut all: Vec<Vec<Vec<usize>>> = vec![Vec::new()];
    for thing in 0..n {
        all = all
            .iter()
            .flat_map(|groups: &Vec<Vec<usize>>| {
                let mut made = Vec::new();
                for at in 0..=groups.len() {
                    let mut groups = groups.clone();
                    match groups.get_mut(at) {
                        Some(group) => group.push(thing),
                        None => groups.push(vec![thing]),
                    }
                    made.push(groups);
                }
                made
            })
            .collect();
    }
    all
}
