//! The limit that binds a backup, by the counters of the server: where requests of its volumes
//! waited longest since it began.

use super::served::Served;
use super::sources::Sources;
use super::targets::Targets;
use crate::error::CliError;
use std::cell::RefCell;
use std::collections::BTreeMap;
use weir_layout::Layout;
use weir_report::backup::BackupReport;
use weir_report::status::{Status, VolumeStatus};

/// Waits bind if they are this part of the time that transfers took.
const BINDS: f64 = 0.1;

/// The waits of the volumes of a backup.
#[derive(Debug)]
pub(super) struct Limits<'a> {
    served: Option<&'a Served>,
    /// The volumes of each source and target, by the name of its export.
    volumes: Vec<(String, Vec<String>)>,
    /// The waits at the last reading.
    last: RefCell<BTreeMap<String, u64>>,
}

impl<'a> Limits<'a> {
    pub(super) fn new(
        served: Option<&'a Served>,
        layout: Option<&Layout>,
        sources: &Sources,
        targets: &Targets,
    ) -> Self {
        let names = sources.exports().chain(targets.exports());
        let volumes = names.map(|name| (name.to_owned(), volumes_of(name, served, layout)));
        Self { served, volumes: volumes.collect(), last: RefCell::default() }
    }

    /// Returns the limit at which requests waited longest since the last call.
    pub(super) fn binding(&self) -> Option<String> {
        let now = self.served?.status().ok()?;
        let own = self.volumes.iter().flat_map(|(_, volumes)| volumes);
        let waits = total(own.map(|name| self.waits(&now, name)));
        let before = self.last.replace(waits.clone());
        let since = waits.into_iter().map(|(cap, nanos)| {
            let before = before.get(&cap).copied().unwrap_or(0);
            (cap, nanos.saturating_sub(before))
        });
        longest(&since.collect())
    }

    /// Adds to a report where its transfers waited.
    pub(super) fn explain(&self, report: &mut BackupReport) -> Result<(), CliError> {
        let Some(served) = self.served else { return Ok(()) };
        let now = served.status()?;
        let mut all = BTreeMap::new();
        for place in &mut report.places {
            let Some((_, volumes)) = self.volumes.iter().find(|(name, _)| *name == place.place)
            else {
                continue;
            };
            place.waits_ns = total(volumes.iter().map(|name| self.waits(&now, name)));
            place.medium_ns = volumes
                .iter()
                .map(|name| {
                    let medium = |status| find(status, name).map_or(0, |own| own.medium_ns);
                    medium(&now).saturating_sub(medium(&served.before))
                })
                .sum();
            all = total([all, place.waits_ns.clone()].into_iter());
        }
        #[expect(clippy::cast_precision_loss, reason = "times of a report")]
        let took: f64 =
            report.places.iter().map(|own| own.latency_mean_ns * own.transfers as f64).sum();
        #[expect(clippy::cast_precision_loss, reason = "times of a report")]
        let waited = all.values().sum::<u64>() as f64;
        report.binding_limit = longest(&all).filter(|_| waited >= took * BINDS);
        Ok(())
    }

    /// Returns the waits of a volume since the backup began.
    fn waits(&self, now: &Status, name: &str) -> BTreeMap<String, u64> {
        let Some(own) = find(now, name) else { return BTreeMap::new() };
        let before = self.served.and_then(|served| find(&served.before, name));
        let since = |(cap, nanos): (&String, &u64)| {
            let before = before.and_then(|own| own.waits_ns.get(cap)).copied().unwrap_or(0);
            (cap.clone(), nanos.saturating_sub(before))
        };
        own.waits_ns.iter().map(since).collect()
    }
}

fn find<'s>(status: &'s Status, name: &str) -> Option<&'s VolumeStatus> {
    status.hosts.iter().flat_map(|host| &host.volumes).find(|volume| volume.name == name)
}

fn total(all: impl Iterator<Item = BTreeMap<String, u64>>) -> BTreeMap<String, u64> {
    let mut sum = BTreeMap::new();
    for (cap, nanos) in all.flatten() {
        *sum.entry(cap).or_insert(0) += nanos;
    }
    sum
}

fn longest(waits: &BTreeMap<String, u64>) -> Option<String> {
    let longest = waits.iter().filter(|(_, nanos)| **nanos > 0).max_by_key(|(_, nanos)| **nanos);
    longest.map(|(cap, _)| cap.clone())
}

/// Returns the volumes of an export. Without the layout, those of a stripe are taken to be the
/// volumes of its host that are no exports themselves.
fn volumes_of(name: &str, served: Option<&Served>, layout: Option<&Layout>) -> Vec<String> {
    for host in layout.into_iter().flat_map(|layout| &layout.hosts) {
        if let Some(export) = host.exports.iter().find(|export| export.name == name) {
            let own = export.volumes.iter().map(|id| host.volumes[id.0].name.clone());
            return own.collect();
        }
    }
    let Some(served) = served else { return Vec::new() };
    for host in &served.before.hosts {
        if host.volumes.iter().any(|volume| volume.name == name) {
            return vec![name.to_owned()];
        }
        if host.exports.iter().any(|export| export.name == name) {
            let is_export = |own: &str| host.exports.iter().any(|export| export.name == own);
            let columns = host.volumes.iter().filter(|volume| !is_export(&volume.name));
            return columns.map(|volume| volume.name.clone()).collect();
        }
    }
    Vec::new()
}
