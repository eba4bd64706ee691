//! Counters of a server in this process, for an observation of a run.

use std::collections::BTreeMap;
use weir_core::Cap;
use weir_layout::Layout;
use weir_observe::run::{CapTimes, HostCounters, LimitsNow, Sample, VolumeCounters};
use weir_report::status::{Status, VolumeStatus};

/// Returns the counters of the volumes of a layout; the server can have others that were created on
/// it.
pub(super) fn counters(status: &Status, layout: &Layout) -> Sample {
    let mut sample = Sample::default();
    for (host, declared) in status.hosts.iter().zip(&layout.hosts) {
        let cache_resident_bytes = host.cache_resident_bytes;
        sample.hosts.push(HostCounters { cache_resident_bytes });
        sample.volumes.extend(declared.volumes.iter().map(|volume| {
            let status = host.volumes.iter().find(|own| own.name == volume.name);
            status.map(volume_counters).unwrap_or_default()
        }));
    }
    sample
}

pub(super) fn limits_now(volume: &VolumeStatus) -> LimitsNow {
    LimitsNow { iops: volume.limit_iops, bytes_per_s: volume.limit_bytes_per_s }
}

/// Returns the known waits in the order of the caps.
fn waits_by_cap(waits: &BTreeMap<String, u64>) -> CapTimes {
    let caps = Cap::ALL.into_iter().map(Cap::name);
    caps.filter_map(|cap| Some((cap, *waits.get(cap)?))).collect()
}

fn volume_counters(volume: &VolumeStatus) -> VolumeCounters {
    let credits = [
        (Cap::DiskIops.name(), volume.credits_operations),
        (Cap::DiskBytes.name(), volume.credits_bytes),
    ];
    VolumeCounters {
        limits: limits_now(volume),
        reads: volume.reads,
        read_bytes: volume.read_bytes,
        writes: volume.writes,
        write_bytes: volume.write_bytes,
        discards: volume.discards,
        counted_operations: volume.counted,
        cache_hits: volume.hits,
        waits: waits_by_cap(&volume.waits_ns),
        medium_ns: volume.medium_ns,
        busy_ns: volume.busy_ns,
        writebacks: volume.writebacks,
        written_back_bytes: volume.written_back_bytes,
        writeback_waits: waits_by_cap(&volume.writeback_waits_ns),
        burst_transactions: volume.burst_transactions,
        credits: credits.into_iter().filter_map(|(cap, left)| Some((cap, left?))).collect(),
    }
}
