//! What a running server says of itself.

use crate::cells;
use crate::number::{grouped, rate, time};
use crate::table::{Cell, Report, Table};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A reading of a running server. Counters run since its start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Nanoseconds since the server started.
    pub uptime_ns: u64,
    /// The process.
    pub pid: u32,
    /// The edition, if the layout has one.
    pub edition: Option<String>,
    /// The hosts.
    pub hosts: Vec<HostStatus>,
    /// Volumes that cannot be served, and why.
    pub refused: Vec<Refused>,
}

/// A volume that is not served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Its name.
    pub name: String,
    /// Why, and what to do.
    pub reason: String,
}

/// A host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostStatus {
    /// Its name.
    pub name: String,
    /// Its size in the edition.
    pub size: Option<String>,
    /// Bytes in the host cache.
    pub cache_resident_bytes: u64,
    /// Its exports.
    pub exports: Vec<ExportStatus>,
    /// Its volumes.
    pub volumes: Vec<VolumeStatus>,
}

/// An export.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ExportStatus {
    /// Its name.
    pub name: String,
    /// Where clients find it.
    pub uris: Vec<String>,
    /// Its size.
    pub size_bytes: u64,
    /// Requests answered, those with an error included.
    pub requests: u64,
    /// Requests answered with an error.
    pub errors: u64,
    /// Sum of the time that limits and media took.
    pub governed_ns: u64,
    /// Sum of the time that Weir itself took on top.
    pub overhead_ns: u64,
}

/// A volume.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VolumeStatus {
    /// Its name.
    pub name: String,
    /// Its tier.
    pub tier: Option<String>,
    /// Its size.
    pub size_bytes: u64,
    /// Space that it takes.
    pub allocated_bytes: u64,
    /// none, read-only or read-write.
    pub cache: String,
    /// Operations per second that last; absent for none.
    pub limit_iops: Option<u64>,
    /// Bytes per second that last; absent for none.
    pub limit_bytes_per_s: Option<u64>,
    /// Burst credits left, in operations, for volumes that burst.
    pub credits_operations: Option<u64>,
    /// Burst credits left, in bytes, for volumes that burst.
    pub credits_bytes: Option<u64>,
    /// Reads completed.
    pub reads: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Reads that the host cache served.
    pub hits: u64,
    /// Operations as the disk counted them.
    pub counted: u64,
    /// Time that the medium took.
    pub medium_ns: u64,
    /// Time waited, by cap.
    pub waits_ns: BTreeMap<String, u64>,
}

/// A reading, with the rates since an earlier one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatusReport {
    /// The later reading.
    #[serde(flatten)]
    pub now: Status,
    /// Seconds between the two.
    pub interval_s: f64,
    /// Rates in between, by volume.
    pub rates: BTreeMap<String, Rates>,
}

/// What a volume did per second.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Rates {
    /// Reads and writes.
    pub iops: f64,
    /// Bytes.
    pub bytes_per_s: f64,
    /// The cap that held it most, if any did.
    pub held_by: Option<String>,
}

impl StatusReport {
    /// The rates from `earlier` to `now`.
    #[must_use]
    pub fn between(earlier: &Status, now: Status) -> Self {
        let float = crate::number::float;
        let interval_s = float(now.uptime_ns.saturating_sub(earlier.uptime_ns)) / 1e9;
        let before: BTreeMap<&str, &VolumeStatus> = volumes(earlier).collect();
        let rates = volumes(&now)
            .map(|(name, volume)| {
                let zero = VolumeStatus::default();
                let old = before.get(name).copied().unwrap_or(&zero);
                let per_s = |new: u64, old: u64| match interval_s > 0.0 {
                    true => float(new.saturating_sub(old)) / interval_s,
                    false => 0.0,
                };
                let waited = |cap: &String, ns: &u64| {
                    ns.saturating_sub(old.waits_ns.get(cap).copied().unwrap_or(0))
                };
                let most = volume.waits_ns.iter().max_by_key(|(cap, ns)| waited(cap, ns));
                let rates = Rates {
                    iops: per_s(volume.reads + volume.writes, old.reads + old.writes),
                    bytes_per_s: per_s(
                        volume.read_bytes + volume.write_bytes,
                        old.read_bytes + old.write_bytes,
                    ),
                    held_by: most.filter(|(c, ns)| waited(c, ns) > 0).map(|(c, _)| c.clone()),
                };
                (name.to_owned(), rates)
            })
            .collect();
        Self { now, interval_s, rates }
    }
}

fn volumes(status: &Status) -> impl Iterator<Item = (&str, &VolumeStatus)> {
    status.hosts.iter().flat_map(|host| &host.volumes).map(|v| (v.name.as_str(), v))
}

fn mib(bytes: f64) -> Cell {
    rate(bytes / f64::from(1 << 20))
}

fn limit(limit: Option<u64>) -> Cell {
    limit.map_or_else(Cell::none, grouped)
}

impl Report for StatusReport {
    fn tables(&self) -> Vec<Table> {
        let mut volumes_table = Table::new(
            "",
            &[
                "volume",
                "host",
                "tier",
                ">size GiB",
                ">used MiB",
                "cache",
                ">limit IOPS",
                ">limit MiB/s",
                ">IOPS",
                ">MiB/s",
                "held by",
            ],
        );
        let mut exports = Table::new(
            "",
            &[
                "export",
                ">requests",
                ">errors",
                ">limits and media|mean_governed_ns",
                ">Weir itself|mean_overhead_ns",
                "uri",
            ],
        );
        let float = crate::number::float;
        for host in &self.now.hosts {
            for v in &host.volumes {
                let rates = self.rates.get(&v.name).cloned().unwrap_or_default();
                volumes_table.row(cells![
                    v.name.clone(),
                    host.size.clone().unwrap_or_else(|| host.name.clone()),
                    v.tier.clone().unwrap_or_else(|| "-".to_owned()),
                    rate(float(v.size_bytes) / f64::from(1 << 30)),
                    mib(float(v.allocated_bytes)),
                    v.cache.clone(),
                    limit(v.limit_iops),
                    v.limit_bytes_per_s.map_or_else(Cell::none, |b| mib(float(b))),
                    rate(rates.iops),
                    mib(rates.bytes_per_s),
                    rates.held_by.unwrap_or_else(|| "-".to_owned()),
                ]);
            }
            for e in &host.exports {
                let mean = |sum: u64| match e.requests {
                    0 => Cell::none(),
                    n => time(float(sum) / float(n)),
                };
                exports.row(cells![
                    e.name.clone(),
                    grouped(e.requests),
                    grouped(e.errors),
                    mean(e.governed_ns),
                    mean(e.overhead_ns),
                    e.uris.join(" "),
                ]);
            }
        }
        for refused in &self.now.refused {
            let note = format!("not served: {}: {}", refused.name, refused.reason);
            volumes_table.notes.push(note);
        }
        vec![volumes_table, exports]
    }
}
