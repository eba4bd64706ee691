//! A workload that ran, in virtual or wall time.

use crate::cells;
use crate::number::{float, mib, percent, rate, time};
use crate::table::{Cell, Report, Table};
use serde::Serialize;
use std::collections::BTreeMap;

/// Which clock drove a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockName {
    /// The simulator's.
    Virtual,
    /// The real one.
    Wall,
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunReport {
    /// Which clock.
    pub clock: ClockName,
    /// The seed: the same one gives the same virtual run.
    pub seed: u64,
    /// From the first request to the last completion.
    pub elapsed_s: f64,
    /// Fingerprint of every admission, in hexadecimal; of virtual runs.
    pub trace_hash: Option<String>,
    /// The jobs; those of one reporting group are one entry.
    pub jobs: Vec<JobReport>,
    /// The volumes.
    pub volumes: Vec<VolumeReport>,
    /// The hosts.
    pub hosts: Vec<HostReport>,
    /// How it went over time.
    pub series: Vec<SeriesPoint>,
    /// What a reader should know, such as options that had no meaning.
    pub notes: Vec<String>,
}

/// A job, or a reporting group of jobs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobReport {
    /// Its name; of a group the names of its jobs.
    pub name: String,
    /// Processes in it.
    pub processes: usize,
    /// Seconds that were measured, of the process that ran longest.
    pub measured_s: f64,
    /// Reads.
    pub read: OpReport,
    /// Writes.
    pub write: OpReport,
    /// Trims.
    pub trim: OpReport,
    /// Requests under way on average.
    pub queue_depth: f64,
    /// Share of reads that the host cache served; of virtual runs.
    pub hit_share: Option<f64>,
    /// Time waited per cap, of all requests together; of virtual runs.
    pub waits_ns: BTreeMap<String, u64>,
    /// Time that the media took, of all requests together; of virtual runs.
    pub medium_ns: u64,
}

/// One kind of operation.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct OpReport {
    /// Operations completed while measured.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Their latency.
    pub latency: LatencyReport,
}

/// A latency, in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LatencyReport {
    /// The mean, exact.
    #[serde(rename = "mean_ns")]
    pub mean: f64,
    /// The shortest.
    #[serde(rename = "min_ns")]
    pub min: u64,
    /// Half are shorter. This and the other percentiles are within 1 %.
    #[serde(rename = "p50_ns")]
    pub p50: u64,
    /// 90 % are shorter.
    #[serde(rename = "p90_ns")]
    pub p90: u64,
    /// 95 % are shorter.
    #[serde(rename = "p95_ns")]
    pub p95: u64,
    /// 99 % are shorter.
    #[serde(rename = "p99_ns")]
    pub p99: u64,
    /// 99.9 % are shorter.
    #[serde(rename = "p99_9_ns")]
    pub p99_9: u64,
    /// The longest.
    #[serde(rename = "max_ns")]
    pub max: u64,
}

/// A volume over the whole run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct VolumeReport {
    /// Its name.
    pub name: String,
    /// Its host.
    pub host: String,
    /// Its tier.
    pub tier: Option<String>,
    /// Reads and writes that reached it, per second.
    pub iops: f64,
    /// Their bytes per second.
    pub bytes_per_s: f64,
    /// Operations per second as the disk counted them.
    pub counted_iops: f64,
    /// Share of reads that the host cache served.
    pub hit_share: f64,
    /// Requests under way on average.
    pub queue_depth: f64,
    /// Time waited per cap.
    pub waits_ns: BTreeMap<String, u64>,
    /// Time that the medium took.
    pub medium_ns: u64,
    /// Write-backs of its ReadWrite cache that reached the disk, per second. They are
    /// in `counted_iops` and not in `iops`.
    pub writeback_iops: f64,
    /// Their bytes per second.
    pub writeback_bytes_per_s: f64,
    /// Time that they waited per cap: what is behind `cache_writeback`.
    pub writeback_waits_ns: BTreeMap<String, u64>,
    /// Time that the medium took of them.
    pub writeback_medium_ns: u64,
    /// Transactions above the target that on-demand bursting is billed for.
    pub burst_transactions: u64,
}

/// A host over the whole run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct HostReport {
    /// Its name.
    pub name: String,
    /// Its size in the edition.
    pub size: Option<String>,
    /// Reads and writes of all its volumes, per second.
    pub iops: f64,
    /// Their bytes per second.
    pub bytes_per_s: f64,
    /// Requests under way on average.
    pub queue_depth: f64,
    /// Bytes in the host cache at the end.
    pub cache_resident_bytes: u64,
    /// Time waited per cap.
    pub waits_ns: BTreeMap<String, u64>,
    /// Time that the media took.
    pub medium_ns: u64,
}

/// A simulated run: what the jobs saw, and what host caches did behind them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SimReport {
    /// The run.
    #[serde(flatten)]
    pub run: RunReport,
    /// The volumes that a host cache wrote back to.
    pub writebacks: Vec<WritebackReport>,
}

/// What a host cache wrote back to a volume, over the whole run. Jobs wait for it as
/// `cache_writeback`; what the write-backs waited for is here.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WritebackReport {
    /// The volume.
    pub volume: String,
    /// Its host.
    pub host: String,
    /// Write-backs per second, of up to 256 KiB.
    pub iops: f64,
    /// Their bytes per second.
    pub bytes_per_s: f64,
    /// Time that they waited, per cap.
    pub waits_ns: BTreeMap<String, u64>,
    /// Time that the medium took of them.
    pub medium_ns: u64,
}

/// A stretch of the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SeriesPoint {
    /// Its start, in seconds from the run's.
    pub start_s: f64,
    /// Its length in seconds.
    pub length_s: f64,
    /// Bytes read per second.
    pub read_bytes_per_s: f64,
    /// Bytes written per second.
    pub write_bytes_per_s: f64,
    /// Reads per second.
    pub read_iops: f64,
    /// Writes per second.
    pub write_iops: f64,
    /// Share of reads that the host cache served; of virtual runs.
    pub hit_share: Option<f64>,
}

impl JobReport {
    /// The operations of all kinds, per second.
    #[must_use]
    pub fn iops(&self) -> f64 {
        self.read.iops + self.write.iops + self.trim.iops
    }

    /// The bytes of all kinds, per second.
    #[must_use]
    pub fn bytes_per_s(&self) -> f64 {
        self.read.bytes_per_s + self.write.bytes_per_s + self.trim.bytes_per_s
    }
}

impl RunReport {
    /// Operations per second of all jobs.
    #[must_use]
    pub fn iops(&self) -> f64 {
        self.jobs.iter().map(JobReport::iops).sum()
    }
}

/// The caps that held most, with their share of all waiting and service time.
fn held_by(waits: &BTreeMap<String, u64>, medium_ns: u64) -> String {
    let total: u64 = waits.values().sum::<u64>() + medium_ns;
    let mut parts: Vec<(&str, u64)> = waits.iter().map(|(c, ns)| (c.as_str(), *ns)).collect();
    parts.push(("medium", medium_ns));
    parts.retain(|(_, ns)| *ns > 0 && ns.saturating_mul(200) >= total);
    parts.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let shown = parts.iter().map(|(c, ns)| format!("{c} {}", percent(float(*ns) / float(total))));
    let shown = shown.collect::<Vec<_>>().join(", ");
    if shown.is_empty() { "-".to_owned() } else { shown }
}

impl VolumeReport {
    /// The caps that held its requests, and behind `cache_writeback` those that held
    /// the write-backs.
    fn held_by(&self) -> String {
        let own = held_by(&self.waits_ns, self.medium_ns);
        if !self.waits_ns.contains_key("cache_writeback") {
            return own;
        }
        let behind = held_by(&self.writeback_waits_ns, self.writeback_medium_ns);
        format!("{own}; write-backs: {behind}")
    }
}

impl RunReport {
    fn jobs_table(&self) -> Table {
        let heads = [
            "job",
            "op",
            ">IOPS|iops",
            ">MiB/s|bytes_per_s",
            ">mean|mean_ns",
            ">p50|p50_ns",
            ">p99|p99_ns",
            ">p99.9|p99_9_ns",
            ">max|max_ns",
            ">queue depth|queue_depth",
        ];
        let mut table = Table::new("", &heads).named("jobs");
        for job in &self.jobs {
            for (name, op) in [("read", &job.read), ("write", &job.write), ("trim", &job.trim)] {
                if op.ios == 0 {
                    continue;
                }
                let l = &op.latency;
                table.row(cells![
                    job.name.clone(),
                    name.to_owned(),
                    rate(op.iops),
                    mib(op.bytes_per_s),
                    time(l.mean),
                    time(float(l.p50)),
                    time(float(l.p99)),
                    time(float(l.p99_9)),
                    time(float(l.max)),
                    rate(job.queue_depth),
                ]);
            }
        }
        let clock = match self.clock {
            ClockName::Virtual => "virtual",
            ClockName::Wall => "wall",
        };
        let hash = self.trace_hash.as_ref().map(|h| format!(", trace {h}")).unwrap_or_default();
        let seconds = rate(self.elapsed_s);
        table.notes.push(format!("{seconds} s of {clock} time, seed {}{hash}", self.seed));
        table.notes.extend(self.notes.iter().cloned());
        table
    }

    fn places_table(&self) -> Table {
        let heads = [
            "volume or host|place",
            ">IOPS|iops",
            ">counted|counted_iops",
            ">MiB/s|bytes_per_s",
            ">hits|hit_share",
            ">queue depth|queue_depth",
            "where the time went|where_the_time_went",
        ];
        let mut table = Table::new("", &heads).named("places");
        for v in &self.volumes {
            table.row(cells![
                v.name.clone(),
                rate(v.iops),
                rate(v.counted_iops),
                mib(v.bytes_per_s),
                percent(v.hit_share),
                rate(v.queue_depth),
                v.held_by(),
            ]);
        }
        for h in &self.hosts {
            table.row(cells![
                format!("host {}", h.size.as_deref().unwrap_or(&h.name)),
                rate(h.iops),
                Cell::none(),
                mib(h.bytes_per_s),
                Cell::none(),
                rate(h.queue_depth),
                held_by(&h.waits_ns, h.medium_ns),
            ]);
        }
        table
    }

    /// Time waited per cap and job: one row per pair that is not zero.
    fn waits_table(&self) -> Table {
        let mut table = Table::new(
            "",
            &["job", "cap", ">time waited|waited_ns", ">per request|per_request_ns", ">share"],
        )
        .named("waits");
        for job in &self.jobs {
            let requests = job.read.ios + job.write.ios + job.trim.ios;
            let total: u64 = job.waits_ns.values().sum::<u64>() + job.medium_ns;
            let medium = ("medium".to_owned(), job.medium_ns);
            for (cap, ns) in job.waits_ns.clone().into_iter().chain([medium]) {
                if ns == 0 || requests == 0 {
                    continue;
                }
                table.row(cells![
                    job.name.clone(),
                    cap,
                    time(float(ns)),
                    time(float(ns) / float(requests)),
                    percent(float(ns) / float(total)),
                ]);
            }
        }
        table
    }

    fn series_table(&self) -> Table {
        let heads = [
            ">from s|start_s",
            ">read IOPS|read_iops",
            ">read MiB/s|read_bytes_per_s",
            ">write IOPS|write_iops",
            ">write MiB/s|write_bytes_per_s",
            ">hits|hit_share",
        ];
        let mut table = Table::new("", &heads).named("series");
        for p in &self.series {
            table.row(cells![
                Cell::number(format!("{:.1}", p.start_s), p.start_s),
                rate(p.read_iops),
                mib(p.read_bytes_per_s),
                rate(p.write_iops),
                mib(p.write_bytes_per_s),
                p.hit_share.map_or_else(Cell::none, percent),
            ]);
        }
        table
    }
}

impl Report for RunReport {
    fn tables(&self) -> Vec<Table> {
        let mut tables = vec![self.jobs_table(), self.places_table()];
        if self.jobs.iter().any(|job| !job.waits_ns.is_empty()) {
            tables.push(self.waits_table());
        }
        if !self.series.is_empty() {
            tables.push(self.series_table());
        }
        tables
    }
}

impl Report for SimReport {
    fn tables(&self) -> Vec<Table> {
        let heads = [
            "written back to|volume",
            "host",
            ">IOPS|iops",
            ">MiB/s|bytes_per_s",
            "where the time went|where_the_time_went",
        ];
        let mut table = Table::new("", &heads).named("writebacks");
        for w in &self.writebacks {
            table.row(cells![
                w.volume.clone(),
                w.host.clone(),
                rate(w.iops),
                mib(w.bytes_per_s),
                held_by(&w.waits_ns, w.medium_ns),
            ]);
        }
        let mut tables = self.run.tables();
        tables.push(table);
        tables
    }
}
