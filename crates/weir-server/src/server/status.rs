//! A reading of all counters of a server.

use super::shared::{Shared, Used};
use crate::host_loop::HostLoop;
use crate::mailbox::Mailbox;
use std::collections::BTreeMap;
use weir_core::{Cap, VolumeId, Waits};
use weir_layout::{Export, Host};
use weir_report::status::{ExportStatus, HostStatus, Status, VolumeStatus};
use weir_units::Bytes;

impl Shared {
    pub(super) fn status(&self) -> Status {
        let hosts: Vec<(Host, Mailbox)> = {
            let hosts = self.hosts();
            hosts.iter().map(|host| (host.layout.clone(), host.mailbox.clone())).collect()
        };
        let hosts = hosts.into_iter();
        Status {
            uptime_ns: self.clock.now().nanos(),
            pid: std::process::id(),
            edition: self.edition.as_ref().map(|e| e.name().to_owned()),
            hosts: hosts.filter_map(|(host, mailbox)| self.host_status(host, &mailbox)).collect(),
            refused: self.refused.clone(),
        }
    }

    fn host_status(&self, layout: Host, mailbox: &Mailbox) -> Option<HostStatus> {
        let uris = self.uris();
        let told = self.used.get().map_or_else(Vec::new, |Used(of)| {
            let used = |export: &Export| Some((export.volumes.clone(), of(&export.name)?));
            layout.exports.iter().filter_map(used).collect()
        });
        mailbox.ask(move |running, _| HostStatus {
            name: layout.name.clone(),
            size: layout.size.clone(),
            cache_resident_bytes: running.engine().cache_resident().get(),
            exports: layout
                .exports
                .iter()
                .filter(|export| uris.contains_key(&export.name))
                .map(|export| export_status(running, export, &uris))
                .collect(),
            volumes: (0..layout.volumes.len())
                .filter(|id| !layout.volumes[*id].is_gone())
                .map(|id| volume_status(running, &layout, VolumeId(id), &told))
                .collect(),
        })
    }
}

fn export_status(
    running: &HostLoop,
    export: &Export,
    uris: &BTreeMap<String, Vec<String>>,
) -> ExportStatus {
    let served = running.served(export.device).copied().unwrap_or_default();
    ExportStatus {
        name: export.name.clone(),
        uris: uris.get(&export.name).cloned().unwrap_or_default(),
        size_bytes: running.size(export.device).get(),
        requests: served.requests,
        errors: served.errors,
        rejected: served.turned_away,
        service_ns: served.governed.nanos(),
        overhead_ns: served.overhead.nanos(),
    }
}

/// Waits by the names of their caps.
fn named(waits: &Waits) -> BTreeMap<String, u64> {
    waits.iter().map(|(cap, span)| (cap.name().to_owned(), span.nanos())).collect()
}

fn volume_status(
    running: &HostLoop,
    layout: &Host,
    id: VolumeId,
    told: &[(Vec<VolumeId>, u64)],
) -> VolumeStatus {
    // A stripe's columns are filled evenly.
    let told = told.iter().find(|(volumes, _)| volumes.contains(&id));
    let used = told.map(|(volumes, used)| used / volumes.len() as u64);
    let volume = &layout.volumes[id.0];
    let totals = running.engine().totals(id).copied().unwrap_or_default();
    let gate = volume.spec.limits.gate;
    VolumeStatus {
        name: volume.name.clone(),
        tier: volume.tier.clone(),
        size_bytes: volume.spec.size.get(),
        allocated_bytes: used.unwrap_or_else(|| running.allocated(id).unwrap_or(Bytes::ZERO).get()),
        pending_writeback_bytes: running.owed(id).get(),
        cache: volume.spec.cache.name().to_owned(),
        limit_iops: gate.iops.map(|limit| limit.rate.get()),
        limit_bytes_per_s: gate.bytes.map(|limit| limit.rate.get()),
        burst_iops: gate.iops.and_then(|limit| limit.burst).map(|(peak, _)| peak.get()),
        burst_bytes_per_s: gate.bytes.and_then(|limit| limit.burst).map(|(peak, _)| peak.get()),
        credits_operations: running.engine().credits(id, Cap::DiskIops),
        credits_bytes: running.engine().credits(id, Cap::DiskBytes),
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
