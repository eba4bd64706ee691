//! A row as a list of figures, each with its document: what `weir catalog show`
//! prints.

use crate::host::{HostLimits, HostSize, LocalDisk};
use crate::latency::Latency;
use crate::limits::{Burst, BurstKind, Limits};
use crate::provenance::{Citation, Provenance};
use crate::provisioned::Provisioned;
use crate::tier::Tier;
use std::fmt::Display;

/// The figures that can have a source of their own (`figures` in an edition).
pub const NAMES: [&str; 18] = [
    "size",
    "holds",
    "iops",
    "throughput",
    "burst",
    "plus",
    "vcpus",
    "memory",
    "max_data_disks",
    "temp",
    "nvme",
    "cache",
    "uncached",
    "uncached.burst",
    "cached",
    "cached.burst",
    "v2",
    "v2.burst",
];

/// One figure of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figure<'a> {
    /// What it is, as the key of the edition names it.
    pub name: &'static str,
    /// The value with its unit.
    pub value: String,
    /// The document that it is from.
    pub citation: &'a Citation,
}

impl Tier {
    /// Its figures. What is not published is not in the list.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure<'_>> {
        let mut list = List::of(&self.provenance);
        list.push("size", Some(self.size));
        list.push("holds", (self.holds != self.size).then_some(self.holds));
        list.push("iops", Some(self.iops));
        list.push("throughput", Some(self.throughput));
        list.push("burst", self.burst.map(burst));
        list.push("plus", self.plus.map(pair));
        list.figures
    }
}

impl HostSize {
    /// Its figures. What is not published is not in the list.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure<'_>> {
        let mut list = List::of(&self.provenance);
        list.push("vcpus", self.vcpus);
        list.push("memory", self.memory);
        list.push("max_data_disks", self.max_data_disks);
        list.push("temp", self.temp.map(local_disk));
        list.push("nvme", self.nvme.map(local_disk));
        list.push("cache", self.cache);
        list.host_limits("uncached", "uncached.burst", self.uncached);
        list.host_limits("cached", "cached.burst", self.cached);
        list.host_limits("v2", "v2.burst", self.v2);
        list.figures
    }
}

impl Provisioned {
    /// Its figures: the rules by which limits are bought.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure<'_>> {
        let included = if self.minimum_included { " (included)" } else { "" };
        let mut list = List::of(&self.provenance);
        list.push("min_size", Some(self.min_size));
        list.push("max_size", Some(self.max_size));
        list.push("size_step", self.size_step);
        list.push("minimum", Some(pair(self.minimum) + included));
        list.push("maximum", Some(pair(self.maximum)));
        list.push("iops_per_gib", Some(self.iops_per_gib));
        list.push("throughput_per_iops", Some(self.throughput_per_iops));
        for (size, limits) in &self.ladder {
            list.push("ladder", Some(format!("up to {} at {size}", pair(*limits))));
        }
        list.figures
    }
}

impl Latency {
    /// Its figures. They are a model; say so where they are shown, with
    /// [`Latency::basis`] and [`Latency::reason`].
    #[must_use]
    pub fn figures(&self) -> Vec<Figure<'_>> {
        let quantiles = |q: &crate::latency::Quantiles| {
            format!(
                "p0 {}, p50 {}, p90 {}, p99 {}, p99.9 {}, p100 {}",
                q.p0, q.p50, q.p90, q.p99, q.p999, q.p100
            )
        };
        let mut list = List::of(&self.provenance);
        list.push("read", Some(quantiles(&self.read)));
        list.push("write", Some(quantiles(&self.write)));
        list.push("transfer", self.transfer);
        list.figures
    }
}

struct List<'a> {
    provenance: &'a Provenance,
    figures: Vec<Figure<'a>>,
}

impl<'a> List<'a> {
    fn of(provenance: &'a Provenance) -> Self {
        Self { provenance, figures: Vec::new() }
    }

    fn push(&mut self, name: &'static str, value: Option<impl Display>) {
        if let Some(value) = value {
            let citation = self.provenance.of(name);
            self.figures.push(Figure { name, value: value.to_string(), citation });
        }
    }

    fn host_limits(
        &mut self,
        name: &'static str,
        burst_name: &'static str,
        limits: Option<HostLimits>,
    ) {
        self.push(name, limits.map(|l| pair(l.limits())));
        self.push(burst_name, limits.and_then(|l| l.burst).map(burst));
    }
}

fn pair(limits: Limits) -> String {
    format!("{}, {}", limits.iops, limits.throughput)
}

fn burst(burst: Burst) -> String {
    let limits = pair(Limits { iops: burst.iops, throughput: burst.throughput });
    match burst.kind {
        BurstKind::Credit { duration } => format!("{limits} (credit for {duration})"),
        BurstKind::OnDemand => format!("{limits} (on demand)"),
    }
}

fn local_disk(disk: LocalDisk) -> String {
    let size = disk.size.map(|size| match disk.disks {
        1 => size.to_string(),
        n => format!("{n} x {size}"),
    });
    let iops = disk.iops.map(|iops| iops.to_string());
    let rates = match (disk.read, disk.write) {
        (Some(read), Some(write)) if read == write => [Some(read.to_string()), None],
        (read, write) => {
            [read.map(|rate| format!("read {rate}")), write.map(|rate| format!("write {rate}"))]
        }
    };
    let parts: Vec<String> = [size, iops].into_iter().chain(rates).flatten().collect();
    parts.join(", ")
}
