//! What a running server says of itself.

use crate::cells;
use crate::number::{float, gib, grouped, mib, rate, time};
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
    /// The layout asks for what cannot be; else something failed.
    #[serde(default)]
    pub input: bool,
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
    /// What a read-write cache has written back as far as the limits go and the
    /// store has not taken: its disk is full, say. Flushes fail until it has.
    #[serde(default)]
    pub owed_bytes: u64,
    /// none, read-only or read-write.
    pub cache: String,
    /// Operations per second that last; absent for none.
    pub limit_iops: Option<u64>,
    /// Bytes per second that last; absent for none.
    pub limit_bytes_per_s: Option<u64>,
    /// Operations per second while it bursts, for volumes that burst.
    #[serde(default)]
    pub burst_iops: Option<u64>,
    /// Bytes per second while it bursts, for volumes that burst.
    #[serde(default)]
    pub burst_bytes_per_s: Option<u64>,
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

/// A limit, or nothing for none.
fn limit(limit: Option<u64>) -> Cell {
    limit.map_or_else(Cell::none, grouped)
}

/// An amount of bytes in MiB, or nothing for none.
fn some_mib(bytes: Option<u64>) -> Cell {
    bytes.map_or_else(Cell::none, |bytes| mib(float(bytes)))
}

fn none() -> String {
    "-".to_owned()
}

impl Status {
    /// The volumes as they are set up, whatever they do.
    #[must_use]
    pub fn volume_list(&self) -> Table {
        let heads = [
            "volume",
            "host",
            "tier",
            ">size GiB|size_bytes",
            ">IOPS|limit_iops",
            ">MiB/s|limit_bytes_per_s",
            ">burst IOPS|burst_iops",
            ">burst MiB/s|burst_bytes_per_s",
            ">credits IOs|credits_operations",
            ">credits MiB|credits_bytes",
            "cache",
        ];
        let mut table = Table::new("", &heads);
        for host in &self.hosts {
            for v in &host.volumes {
                table.row(cells![
                    v.name.clone(),
                    host.name.clone(),
                    v.tier.clone().unwrap_or_else(none),
                    gib(v.size_bytes),
                    limit(v.limit_iops),
                    some_mib(v.limit_bytes_per_s),
                    limit(v.burst_iops),
                    some_mib(v.burst_bytes_per_s),
                    limit(v.credits_operations),
                    some_mib(v.credits_bytes),
                    v.cache.clone(),
                ]);
            }
        }
        table
    }
}

impl StatusReport {
    fn volumes_table(&self) -> Table {
        let heads = [
            "volume",
            "host",
            "tier",
            ">size GiB|size_bytes",
            ">used MiB|allocated_bytes",
            "cache",
            ">limit IOPS|limit_iops",
            ">limit MiB/s|limit_bytes_per_s",
            ">IOPS|iops",
            ">MiB/s|bytes_per_s",
            "held by|held_by",
        ];
        let mut table = Table::new("", &heads).named("volumes");
        for host in &self.now.hosts {
            for v in &host.volumes {
                let rates = self.rates.get(&v.name).cloned().unwrap_or_default();
                table.row(cells![
                    v.name.clone(),
                    host.size.clone().unwrap_or_else(|| host.name.clone()),
                    v.tier.clone().unwrap_or_else(none),
                    gib(v.size_bytes),
                    mib(float(v.allocated_bytes)),
                    v.cache.clone(),
                    limit(v.limit_iops),
                    some_mib(v.limit_bytes_per_s),
                    rate(rates.iops),
                    mib(rates.bytes_per_s),
                    rates.held_by.unwrap_or_else(none),
                ]);
            }
        }
        let refused = self.now.refused.iter();
        table.notes.extend(refused.map(|r| format!("not served: {}: {}", r.name, r.reason)));
        table
    }

    /// The volumes that burst, with the credits that they have left.
    fn bursts_table(&self) -> Table {
        let heads = [
            "volume",
            ">burst IOPS|burst_iops",
            ">burst MiB/s|burst_bytes_per_s",
            ">credits IOs|credits_operations",
            ">credits MiB|credits_bytes",
        ];
        let mut table = Table::new("", &heads).named("bursts");
        for (name, v) in volumes(&self.now) {
            if v.burst_iops.is_some() || v.burst_bytes_per_s.is_some() {
                let (iops, bytes_per_s) = (limit(v.burst_iops), some_mib(v.burst_bytes_per_s));
                let (operations, bytes) = (limit(v.credits_operations), some_mib(v.credits_bytes));
                table.row(cells![name, iops, bytes_per_s, operations, bytes]);
            }
        }
        table
    }

    fn owed_table(&self) -> Table {
        let heads = ["volume", ">not stored MiB|owed_bytes"];
        let mut table = Table::new("", &heads).named("owed");
        for (name, v) in volumes(&self.now).filter(|(_, v)| v.owed_bytes > 0) {
            table.row(cells![name, mib(float(v.owed_bytes))]);
        }
        table
    }

    fn exports_table(&self) -> Table {
        let heads = [
            "export",
            ">requests",
            ">errors",
            ">limits and media|mean_governed_ns",
            ">Weir itself|mean_overhead_ns",
            "uri",
        ];
        let mut table = Table::new("", &heads).named("exports");
        for e in self.now.hosts.iter().flat_map(|host| &host.exports) {
            let mean = |sum: u64| match e.requests {
                0 => Cell::none(),
                n => time(float(sum) / float(n)),
            };
            table.row(cells![
                e.name.clone(),
                grouped(e.requests),
                grouped(e.errors),
                mean(e.governed_ns),
                mean(e.overhead_ns),
                e.uris.join(" "),
            ]);
        }
        table
    }
}

impl Report for StatusReport {
    fn tables(&self) -> Vec<Table> {
        vec![self.volumes_table(), self.bursts_table(), self.owed_table(), self.exports_table()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

    fn reading(uptime_ns: u64, reads: u64) -> Status {
        let plain = VolumeStatus {
            name: "data".into(),
            tier: Some("P30".into()),
            size_bytes: 1 << 40,
            cache: "none".into(),
            limit_iops: Some(5_000),
            limit_bytes_per_s: Some(200_000_000),
            reads,
            read_bytes: reads << 12,
            ..VolumeStatus::default()
        };
        let bursting = VolumeStatus {
            name: "log".into(),
            burst_iops: Some(30_000),
            burst_bytes_per_s: Some(1_000_000_000),
            credits_operations: Some(5_400_000),
            credits_bytes: Some(80 << 20),
            ..plain.clone()
        };
        let volumes = vec![plain, bursting];
        let host = HostStatus { name: "host".into(), volumes, ..HostStatus::default() };
        Status { uptime_ns, hosts: vec![host], ..Status::default() }
    }

    #[test]
    fn what_bursts_shows_its_credits() {
        let report = StatusReport::between(&reading(0, 0), reading(1_000_000_000, 100));
        let text = report.render(Format::Text);
        let expect = " volume  burst IOPS  burst MiB/s  credits IOs  credits MiB\n \
                      log         30,000          954    5,400,000         80.0\n";
        assert!(text.contains(expect), "{text}");
        let csv = report.render(Format::Csv);
        assert!(csv.starts_with("table,volume,host,tier,size_bytes,allocated_bytes,cache,limit_iops,limit_bytes_per_s,iops,bytes_per_s,held_by,burst_iops,burst_bytes_per_s,credits_operations,credits_bytes,owed_bytes,export,"), "{csv}");
        let row = "\nvolumes,data,host,P30,1099511627776,0,none,5000,200000000,100,409600,,,,";
        assert!(csv.contains(row), "{csv}");
        assert!(csv.contains("\nbursts,log,,,,,,,,,,,30000,1000000000,5400000,83886080,"), "{csv}");
        let list = reading(0, 0).volume_list();
        let json = serde_json::to_value(crate::table::Listing(vec![list])).expect("JSON");
        assert_eq!(json[0]["credits_operations"], serde_json::Value::Null);
        assert_eq!(json[1]["credits_operations"], 5_400_000);
        assert_eq!(json[1]["credits_bytes"], 80 << 20);
    }
}
