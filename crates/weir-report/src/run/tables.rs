//! Lays out a run as tables.
//!
//! Text and CSV have different tables: the shares of the latency are one cell in text, and one column
//! per limit in CSV. Every figure of the JSON is a column of the CSV.

use super::{CAPS, ClockName, JobReport, OpReport, RunReport, SimReport, VolumeReport};
use crate::cells;
use crate::number::{float, grouped, mib, percent, rate, time};
use crate::page::RunPage;
use crate::table::{Cell, Report, Table};
use std::collections::BTreeMap;

/// Returns the limits and the medium by their share of the latency.
pub(crate) fn latency_shares(waits: &BTreeMap<String, u64>, medium_ns: u64) -> String {
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
    /// Returns the shares of its latency, and behind `cache_writeback` those of the write-backs.
    fn latency_shares(&self) -> String {
        let own = latency_shares(&self.waits_ns, self.medium_ns);
        if !self.waits_ns.contains_key("cache_writeback") {
            return own;
        }
        let behind = latency_shares(&self.writeback_waits_ns, self.writeback_medium_ns);
        format!("{own}; write-backs: {behind}")
    }
}

impl JobReport {
    /// Returns the kinds of operations with any, by name.
    fn operations(&self) -> impl Iterator<Item = (&'static str, &OpReport)> {
        let all = [("read", &self.read), ("write", &self.write), ("trim", &self.trim)];
        all.into_iter().filter(|(_, op)| op.ios > 0)
    }
}

/// Tables for text and Markdown.
impl RunReport {
    fn jobs_table(&self) -> Table {
        let heads = [
            "job|",
            "op|",
            ">IOPS|",
            ">MiB/s|",
            ">mean|",
            ">p50|",
            ">p99|",
            ">p99.9|",
            ">max|",
            ">queue depth|",
        ];
        let mut table = Table::new("", &heads);
        for job in &self.jobs {
            for (name, op) in job.operations() {
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
        let hash = self.trace_hash.as_ref().map(|h| format!(", trace {h}")).unwrap_or_default();
        let (seconds, clock) = (rate(self.elapsed_s), self.clock.name());
        table.notes.push(format!("{seconds} s of {clock} time, seed {}{hash}", self.seed));
        table.notes.extend(self.notes.iter().cloned());
        table
    }

    fn places_table(&self) -> Table {
        let mut heads = vec![
            "volume or host|",
            ">IOPS|",
            ">counted|",
            ">MiB/s|",
            ">hits|",
            ">queue depth|",
            "latency by limit|",
        ];
        let billed = self.volumes.iter().any(|volume| volume.burst_transactions > 0);
        let before_last = heads.len() - 1;
        if billed {
            heads.insert(before_last, ">billed bursts|");
        }
        let mut table = Table::new("", &heads);
        for v in &self.volumes {
            let mut row = cells![
                v.name.clone(),
                rate(v.iops),
                rate(v.counted_iops),
                mib(v.bytes_per_s),
                percent(v.hit_share),
                rate(v.queue_depth),
                v.latency_shares(),
            ];
            if billed {
                row.insert(before_last, grouped(v.burst_transactions));
            }
            table.row(row);
        }
        for h in &self.hosts {
            let mut row = cells![
                format!("host {}", h.size.as_deref().unwrap_or(&h.name)),
                rate(h.iops),
                Cell::none(),
                mib(h.bytes_per_s),
                Cell::none(),
                rate(h.queue_depth),
                latency_shares(&h.waits_ns, h.medium_ns),
            ];
            if billed {
                row.insert(before_last, Cell::none());
            }
            table.row(row);
        }
        table
    }

    /// Returns the wait time of each job at each limit.
    fn waits_table(&self) -> Table {
        let heads = ["job|", "limit|", ">wait time|", ">per request|", ">share|"];
        let mut table = Table::new("", &heads);
        // A wall clock knows no caps.
        let any = self.jobs.iter().any(|job| !job.waits_ns.is_empty());
        for job in self.jobs.iter().filter(|_| any) {
            let requests: u64 = job.operations().map(|(_, op)| op.ios).sum();
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
}

impl ClockName {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Virtual => "virtual",
            Self::Wall => "wall",
        }
    }
}

/// Returns a table with the columns `own` and those of [`waits`].
pub(crate) fn table(name: &str, own: &[&str]) -> Table {
    let mut heads: Vec<String> = own.iter().map(|head| format!("|{head}")).collect();
    heads.extend(wait_heads());
    Table { heads, ..Table::default() }.named(name)
}

/// Returns the headings for [`waits`].
pub(crate) fn wait_heads() -> Vec<String> {
    let caps = CAPS.iter().map(|cap| format!("|wait_{cap}_ns"));
    caps.chain(["|medium_ns".to_owned()]).collect()
}

/// Returns the wait time at each limit and the service time of the medium.
pub(crate) fn waits(waits: &BTreeMap<String, u64>, medium_ns: u64) -> Vec<Cell> {
    let waited = |cap: &str| waits.get(cap).copied().unwrap_or(0);
    CAPS.into_iter().map(waited).chain([medium_ns]).map(grouped).collect()
}

/// Returns a cell with an optional name.
fn named(name: Option<&String>) -> Cell {
    name.map_or_else(Cell::none, |name| Cell::from(name.as_str()))
}

/// Tables for CSV.
impl RunReport {
    /// Returns the figures of the whole run.
    fn run_figures(&self) -> Table {
        let heads = ["|clock", "|seed", "|elapsed_s", "|trace_hash"];
        let mut table = Table::new("", &heads).named("run");
        // A seed may have more digits than a float.
        let seed = self.seed.to_string();
        let trace = named(self.trace_hash.as_ref());
        table.row(cells![self.clock.name(), seed, rate(self.elapsed_s), trace]);
        table
    }

    fn job_figures(&self) -> Table {
        let heads = [
            "|job",
            "|op",
            "|ios",
            "|bytes",
            "|iops",
            "|bytes_per_s",
            "|mean_ns",
            "|min_ns",
            "|p50_ns",
            "|p90_ns",
            "|p95_ns",
            "|p99_ns",
            "|p99_9_ns",
            "|max_ns",
        ];
        let mut table = Table::new("", &heads).named("jobs");
        for job in &self.jobs {
            for (name, op) in job.operations() {
                let l = &op.latency;
                let mut row = cells![job.name.as_str(), name, grouped(op.ios), grouped(op.bytes)];
                row.extend([rate(op.iops), mib(op.bytes_per_s), time(l.mean)]);
                row.extend([l.min, l.p50, l.p90, l.p95, l.p99, l.p99_9, l.max].map(grouped));
                table.row(row);
            }
        }
        table
    }

    /// Returns the figures of jobs that do not depend on the kind of operation.
    fn job_waits(&self) -> Table {
        let heads = ["job", "processes", "measured_s", "queue_depth", "hit_share"];
        let mut table = table("waits", &heads);
        for job in &self.jobs {
            let mut row = cells![
                job.name.as_str(),
                grouped(job.processes as u64),
                rate(job.measured_s),
                rate(job.queue_depth),
                job.hit_share.map_or_else(Cell::none, percent),
            ];
            row.extend(waits(&job.waits_ns, job.medium_ns));
            table.row(row);
        }
        table
    }

    fn volume_figures(&self) -> Table {
        let heads = [
            "volume",
            "host",
            "tier",
            "iops",
            "bytes_per_s",
            "counted_iops",
            "hit_share",
            "queue_depth",
            "burst_transactions",
        ];
        let mut table = table("volumes", &heads);
        for v in &self.volumes {
            let mut row = cells![v.name.as_str(), v.host.as_str(), named(v.tier.as_ref())];
            row.extend([rate(v.iops), mib(v.bytes_per_s), rate(v.counted_iops)]);
            row.extend([percent(v.hit_share), rate(v.queue_depth), grouped(v.burst_transactions)]);
            row.extend(waits(&v.waits_ns, v.medium_ns));
            table.row(row);
        }
        table
    }

    fn host_figures(&self) -> Table {
        let heads = ["host", "size", "iops", "bytes_per_s", "queue_depth", "cache_resident_bytes"];
        let mut table = table("hosts", &heads);
        for h in &self.hosts {
            let mut row = cells![h.name.as_str(), named(h.size.as_ref()), rate(h.iops)];
            row.extend([mib(h.bytes_per_s), rate(h.queue_depth), grouped(h.cache_resident_bytes)]);
            row.extend(waits(&h.waits_ns, h.medium_ns));
            table.row(row);
        }
        table
    }
}

/// Tables for all formats.
impl RunReport {
    fn series_table(&self) -> Table {
        let heads = [
            ">from s|start_s",
            "|length_s",
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
                rate(p.length_s),
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
        vec![
            self.jobs_table(),
            self.places_table(),
            self.waits_table(),
            self.run_figures(),
            self.job_figures(),
            self.job_waits(),
            self.volume_figures(),
            self.host_figures(),
            self.series_table(),
        ]
    }
}

/// Write-backs of host caches.
impl SimReport {
    fn writebacks_table(&self) -> Table {
        let heads = ["written back to|", "host|", ">IOPS|", ">MiB/s|", "latency by limit|"];
        let mut table = Table::new("", &heads);
        for w in &self.writebacks {
            table.row(cells![
                w.volume.clone(),
                w.host.clone(),
                rate(w.iops),
                mib(w.bytes_per_s),
                latency_shares(&w.waits_ns, w.medium_ns),
            ]);
        }
        table
    }

    fn writeback_figures(&self) -> Table {
        let mut table = table("writebacks", &["volume", "host", "iops", "bytes_per_s"]);
        for w in &self.writebacks {
            let mut row = cells![w.volume.as_str(), w.host.as_str(), rate(w.iops)];
            row.push(mib(w.bytes_per_s));
            row.extend(waits(&w.waits_ns, w.medium_ns));
            table.row(row);
        }
        table
    }
}

impl RunPage for SimReport {
    fn verdict(&self) -> String {
        self.run.verdict()
    }

    fn facts(&self) -> Vec<String> {
        Vec::new()
    }

    fn remarks(&self) -> Vec<String> {
        self.run.notes.clone()
    }
}

impl Report for SimReport {
    fn tables(&self) -> Vec<Table> {
        let mut tables = self.run.tables();
        tables.extend([self.writebacks_table(), self.writeback_figures()]);
        tables
    }
}
