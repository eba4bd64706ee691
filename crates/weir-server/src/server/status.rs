//! A reading of all counters of a server.

use super::shared::{HostState, Shared, Used};
use crate::backing::Backing;
use crate::host_loop::{HostLoop, LATENCY_OPS};
use crate::mailbox::Mailbox;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_core::spec::Place;
use weir_core::{Cap, GateLimits, Limit, VolumeId, Waits};
use weir_layout::{Export, Host};
use weir_report::status::{
    CapStatus, ClientStatus, DamageStatus, ExportStatus, FailureStatus, HostStatus, OpLatency,
    Refused, Status, VolumeStatus,
};
use weir_store::Volume as StoredVolume;
use weir_units::{Bytes, Instant};

/// A copy of a host's state, which its thread need not be asked for.
struct Known {
    host: Host,
    mailbox: Mailbox,
    backings: BTreeMap<usize, Backing>,
    damage: BTreeMap<String, DamageStatus>,
}

impl Known {
    fn copy(state: &HostState) -> Self {
        let HostState { layout, mailbox, backings, .. } = state;
        let (host, mailbox, backings) = (layout.clone(), mailbox.clone(), backings.clone());
        Self { host, mailbox, backings, damage: damage(state) }
    }
}

impl Shared {
    pub(super) fn status(&self) -> Status {
        let hosts: Vec<Known> = self.hosts().iter().map(Known::copy).collect();
        let hosts = hosts.into_iter();
        let refused = self.refused().clone();
        Status {
            uptime_ns: self.clock.now().nanos(),
            pid: std::process::id(),
            edition: self.edition.as_ref().map(|e| e.name().to_owned()),
            hosts: hosts
                .filter_map(|Known { host, mailbox, backings, mut damage }| {
                    let names = host.volumes.iter().map(|volume| volume.name.clone());
                    let names: Vec<String> = names.collect();
                    let unserved = unserved(&host, &refused);
                    let mut status = self.host_status(host, &mailbox)?;
                    for volume in &mut status.volumes {
                        let id = names.iter().position(|name| *name == volume.name);
                        let backing = id.and_then(|id| backings.get(&id));
                        volume.backend = backing.map(Backing::status);
                        volume.damage = damage.remove(&volume.name);
                        volume.unserved = id.and_then(|id| unserved.get(&id).cloned());
                    }
                    Some(status)
                })
                .collect(),
            refused,
        }
    }

    fn host_status(&self, layout: Host, mailbox: &Mailbox) -> Option<HostStatus> {
        let uris = self.uris();
        let told = self.used.get().map_or_else(Vec::new, |Used(of)| {
            let used = |export: &Export| Some((export.volumes.clone(), of(&export.name)?));
            layout.exports.iter().filter_map(used).collect()
        });
        let mut clients: BTreeMap<usize, Vec<ClientStatus>> = BTreeMap::new();
        for (device, client) in mailbox.clients() {
            clients.entry(device.0).or_default().push(client);
        }
        clients.values_mut().for_each(|all| all.sort_by_key(|own| own.id));
        let allowed = layout.exports.iter().filter_map(|export| {
            let clients = self.directory.clients_of(&export.name)?;
            Some((export.name.clone(), clients.to_string()))
        });
        let mut allowed: BTreeMap<String, String> = allowed.collect();
        mailbox.ask(move |running, now| HostStatus {
            name: layout.name.clone(),
            size: layout.size.clone(),
            cache_resident_bytes: running.engine().cache_resident().get(),
            caps: host_caps(running, &layout, now),
            crashes: running.crashes(),
            exports: layout
                .exports
                .iter()
                .filter(|export| uris.contains_key(&export.name))
                .map(|export| ExportStatus {
                    clients: clients.remove(&export.device.0).unwrap_or_default(),
                    allowed_clients: allowed.remove(&export.name),
                    last_failure: running.last_failure(export.device, now).map(|(reason, ago)| {
                        FailureStatus { reason: reason.to_owned(), ago_ns: ago.nanos() }
                    }),
                    ..export_status(running, &layout, export, &uris)
                })
                .collect(),
            volumes: (0..layout.volumes.len())
                .filter(|id| !layout.volumes[*id].is_gone())
                .map(|id| volume_status(running, &layout, VolumeId(id), (now, &told)))
                .collect(),
        })
    }
}

/// Returns the reasons why volumes are not served, by their numbers: their own, or that of their stripe.
fn unserved(host: &Host, refused: &[Refused]) -> BTreeMap<usize, String> {
    let reason = |name: &str| refused.iter().find(|own| own.name == name).map(|own| &own.reason);
    let of = |export: &Export, id: usize| {
        let own = host.volumes.get(id).and_then(|volume| reason(&volume.name));
        own.or_else(|| reason(&export.name)).cloned()
    };
    let ids = host.exports.iter().flat_map(|own| own.volumes.iter().map(move |id| (own, id.0)));
    ids.filter_map(|(export, id)| Some((id, of(export, id)?))).collect()
}

/// Returns the damage that requests met, by volume with checksums.
fn damage(host: &HostState) -> BTreeMap<String, DamageStatus> {
    let own = |volume: &Arc<StoredVolume>| {
        let failed_requests = volume.damaged_reads()?;
        let damage = DamageStatus { failed_requests, blocks: volume.damaged_blocks() };
        Some((volume.name().to_owned(), damage))
    };
    host.stored.iter().flatten().filter_map(own).collect()
}

fn export_status(
    running: &HostLoop,
    layout: &Host,
    export: &Export,
    uris: &BTreeMap<String, Vec<String>>,
) -> ExportStatus {
    let served = running.served(export.device).copied().unwrap_or_default();
    ExportStatus {
        name: export.name.clone(),
        uris: uris.get(&export.name).cloned().unwrap_or_default(),
        volumes: export.volumes.iter().map(|id| layout.volumes[id.0].name.clone()).collect(),
        size_bytes: running.size(export.device).get(),
        requests: served.requests,
        errors: served.errors,
        rejected: served.turned_away,
        service_ns: served.governed.nanos(),
        overhead_ns: served.overhead.nanos(),
        backend_ns: served.backend.nanos(),
        latencies: LATENCY_OPS
            .iter()
            .zip(&served.latencies)
            .map(|(op, own)| OpLatency {
                op: (*op).to_owned(),
                counts: own.counts.to_vec(),
                sum_ns: own.sum.nanos(),
            })
            .collect(),
        last_failure: None,
        clients: Vec::new(),
        allowed_clients: None,
    }
}

/// Returns the limits of a host, with their credits.
fn host_caps(running: &HostLoop, layout: &Host, now: Instant) -> Vec<CapStatus> {
    let spec = &layout.spec;
    let sides = |gate: &GateLimits| [gate.iops, gate.bytes];
    let [uncached_iops, uncached_bytes] = sides(&spec.uncached);
    let [cached_iops, cached_bytes] = sides(&spec.cached);
    let [write_iops, write_bytes] = sides(&spec.uncached_writes.unwrap_or_default());
    let limits = [
        (Cap::LogRate, spec.log_rate),
        (Cap::HostUncachedIops, uncached_iops),
        (Cap::HostUncachedBytes, uncached_bytes),
        (Cap::HostWriteIops, write_iops),
        (Cap::HostWriteBytes, write_bytes),
        (Cap::HostCachedIops, cached_iops),
        (Cap::HostCachedBytes, cached_bytes),
    ];
    let mut caps = Vec::new();
    for (cap, limit) in limits {
        let Some(Limit { rate, burst, .. }) = limit else { continue };
        let bucket = running.engine().bucket(now, VolumeId(0), cap);
        let own = |cap: Cap, limit: u64| CapStatus {
            cap: cap.name().to_owned(),
            limit,
            ..CapStatus::default()
        };
        let credits = (bucket.map(|(left, _)| left), bucket.map(|(_, full)| full));
        caps.push(CapStatus { credits: credits.0, full: credits.1, ..own(cap, rate.get()) });
        caps.extend(burst.map(|(peak, _)| own(cap.burst(), peak.get())));
    }
    caps
}

/// Waits by the names of their caps.
fn named(waits: &Waits) -> BTreeMap<String, u64> {
    waits.iter().map(|(cap, span)| (cap.name().to_owned(), span.nanos())).collect()
}

fn volume_status(
    running: &HostLoop,
    layout: &Host,
    id: VolumeId,
    (now, told): (Instant, &[(Vec<VolumeId>, u64)]),
) -> VolumeStatus {
    // A stripe's columns are filled evenly.
    let told = told.iter().find(|(volumes, _)| volumes.contains(&id));
    let used = told.map(|(volumes, used)| used / volumes.len() as u64);
    let volume = &layout.volumes[id.0];
    let totals = running.engine().totals(id).copied().unwrap_or_default();
    let gate = volume.spec.limits.gate;
    let bucket = |cap| running.engine().bucket(now, id, cap);
    let (operations, bytes) = (bucket(Cap::DiskIops), bucket(Cap::DiskBytes));
    VolumeStatus {
        name: volume.name.clone(),
        tier: volume.tier.clone(),
        performance_tier: volume
            .limits_tier()
            .filter(|own| volume.tier.as_deref() != Some(own))
            .map(str::to_owned),
        size_bytes: volume.spec.size.get(),
        allocated_bytes: used.unwrap_or_else(|| running.allocated(id).unwrap_or(Bytes::ZERO).get()),
        pending_writeback_bytes: running.owed(id).get(),
        backend: None,
        damage: None,
        unserved: None,
        cache: volume.spec.cache.name().to_owned(),
        is_local: volume.spec.place == Place::Local,
        limit_iops: gate.iops.map(|limit| limit.rate.get()),
        limit_bytes_per_s: gate.bytes.map(|limit| limit.rate.get()),
        burst_iops: gate.iops.and_then(|limit| limit.burst).map(|(peak, _)| peak.get()),
        burst_bytes_per_s: gate.bytes.and_then(|limit| limit.burst).map(|(peak, _)| peak.get()),
        credits_operations: operations.map(|(left, _)| left),
        credits_bytes: bytes.map(|(left, _)| left),
        full_operations: operations.map(|(_, full)| full),
        full_bytes: bytes.map(|(_, full)| full),
        reads: totals.reads,
        writes: totals.writes,
        discards: totals.discards,
        read_bytes: totals.read_bytes,
        write_bytes: totals.write_bytes,
        hits: totals.hits,
        counted: totals.counted,
        burst_transactions: totals.burst_transactions,
        medium_ns: totals.medium.nanos(),
        busy_ns: totals.busy.nanos(),
        waits_ns: named(&totals.waits),
        writebacks: totals.writebacks,
        written_back_bytes: totals.written_back,
        writeback_medium_ns: totals.writeback_medium.nanos(),
        writeback_waits_ns: named(&totals.writeback_waits),
    }
}
