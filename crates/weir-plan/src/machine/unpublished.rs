//! Machines with unpublished limits. They are left out unless the user names them.

use super::hosts::Machines;
use crate::need::Need;
use weir_catalog::HostSize;

/// Number of machines that the message names before it counts the rest.
const NAMED: usize = 3;

impl<'a> Machines<'a> {
    /// Returns a note about machines that would fit but have unpublished limits.
    pub(crate) fn left_out(&self, need: &Need) -> Option<String> {
        let has_rates = need.roles.iter().any(|own| own.iops > 0 || own.throughput > 0);
        let hosts = self.edition.hosts().filter(|host| !self.is_counted_on(host));
        let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
        for host in hosts.filter(|host| self.is_large_enough(need, host)) {
            let unknown = match self.is_counted(host) {
                true if has_rates => self.unknown_families(host).join(", "),
                true => String::new(),
                false => "number of disks".to_owned(),
            };
            match groups.iter_mut().find(|(own, _)| *own == unknown) {
                _ if unknown.is_empty() => {}
                Some((_, names)) => names.push(&host.name),
                None => groups.push((unknown, vec![&host.name])),
            }
        }
        let groups: Vec<String> = groups
            .into_iter()
            .map(|(unknown, names)| {
                let more = match names.len().saturating_sub(NAMED) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let names: Vec<&str> = names.into_iter().take(NAMED).collect();
                format!("{}{more} ({unknown})", names.join(", "))
            })
            .collect();
        (!groups.is_empty()).then(|| {
            let hint = match self.wishes.needs_limits {
                true => "",
                false => " (choose one with --host NAME)",
            };
            format!("left out because limits are not published: {}{hint}", groups.join("; "))
        })
    }

    /// Returns the disk families for which a machine has no published limit.
    fn unknown_families(&self, host: &HostSize) -> Vec<&'a str> {
        self.taken(host)
            .into_iter()
            .filter(|family: &&str| {
                let is_bought = self.edition.provisioned(family).is_ok();
                let is_shared = self.edition.pooled(family).is_some();
                match is_bought {
                    true => host.v2_or_uncached().is_none(),
                    false => !is_shared && host.uncached.is_none(),
                }
            })
            .collect()
    }
}
