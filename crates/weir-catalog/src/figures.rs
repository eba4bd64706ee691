//! A row as a list of figures, each with its document: what `weir catalog show`
//! prints.

use crate::cache::HostCache;
use crate::host::{HostSize, LocalDisk};
use crate::latency::Latency;
use crate::limits::{Burst, BurstKind, Limits};
use crate::provenance::{Citation, Provenance};
use crate::provisioned::Provisioned;
use crate::rules::{BurstRule, Rule, RuleValue, Striping};
use crate::sized::SizedFamily;
use crate::store::{Pooled, Store};
use crate::tier::Tier;
use std::fmt::{self, Display};

/// The figures that can have a source of their own (`figures` in an edition).
pub const NAMES: [&str; 24] = [
    "size",
    "min_size",
    "max_size",
    "holds",
    "iops",
    "throughput",
    "burst",
    "plus",
    "vcpus",
    "memory",
    "max_data_disks",
    "interface",
    "storage",
    "temp",
    "nvme",
    "cache",
    "uncached",
    "uncached.burst",
    "cached",
    "cached.burst",
    "v2",
    "v2.burst",
    "pools",
    "iops_excess",
];

/// One figure of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figure<'a> {
    /// Name of the figure, as the key in editions: `uncached.burst.iops`.
    pub name: String,
    /// The value with its unit.
    pub value: Value,
    /// The document that it is from.
    pub citation: &'a Citation,
}

/// The value of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value {
    /// A quantity.
    Quantity(RuleValue),
    /// A kind, or yes or no.
    Word(&'static str),
}

impl Value {
    /// The plain number, if it is one.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Quantity(quantity) => Some(quantity.number()),
            Self::Word(_) => None,
        }
    }

    /// The unit of the plain number; `None` for counts and words.
    #[must_use]
    pub fn unit(&self) -> Option<&'static str> {
        match self {
            Self::Quantity(quantity) => quantity.unit(),
            Self::Word(_) => None,
        }
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quantity(quantity) => quantity.fmt(f),
            Self::Word(word) => f.write_str(word),
        }
    }
}

impl Tier {
    /// Returns the published figures.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure<'_>> {
        let mut list = List::new(&self.provenance);
        list.push("size", Some(self.size));
        list.push("holds", (self.holds != self.size).then_some(self.holds));
        list.limits("", Some(self.limits()));
        list.burst("burst", self.burst);
        list.limits("plus.", self.plus);
        list.figures
    }
}

impl HostSize {
    /// Returns the published figures.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure<'_>> {
        let mut list = List::new(&self.provenance);
        list.push("vcpus", self.vcpus);
        list.push("memory", self.memory);
        list.push("max_data_disks", self.max_data_disks);
        if let Some(interface) = self.interface {
            list.add("interface", Value::Word(interface.name()));
        }
        list.push("storage", self.storage);
        list.local_disk("temp", self.temp);
        list.local_disk("nvme", self.nvme);
        list.push("cache", self.cache);
        for (name, limits) in
            [("uncached", self.uncached), ("cached", self.cached), ("v2", self.v2)]
        {
            list.limits(&format!("{name}."), limits.map(|l| l.limits()));
            list.burst(&format!("{name}.burst"), limits.and_then(|l| l.burst));
        }
        for (family, limits) in &self.pools {
            list.limits(&format!("pools.{family}."), Some(limits.limits));
            list.limits(&format!("pools.{family}.writes."), limits.writes);
        }
        list.figures
    }
}

impl Store {
    /// Returns the figures of all steps.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure<'_>> {
        let mut figures = Vec::new();
        for step in &self.steps {
            let mut list = List::new(&step.provenance);
            let engines = step.engines.join(",");
            let of = match step.engines.is_empty() {
                true => format!("from.{}", step.min_size),
                false => format!("{engines}.from.{}", step.min_size),
            };
            list.push(&format!("{of}.max_size"), Some(step.max_size));
            list.push(&format!("{of}.volumes"), Some(RuleValue::Count(step.volumes)));
            for (name, limits) in [("minimum", Some(step.minimum)), ("maximum", step.maximum)] {
                list.push(&format!("{of}.{name}.iops"), limits.map(|own| own.iops));
                let throughput = limits.and_then(|own| own.throughput);
                list.push(&format!("{of}.{name}.throughput"), throughput);
            }
            list.push(&format!("{of}.gib_per_iops"), step.gib_per_iops.map(RuleValue::Count));
            figures.append(&mut list.figures);
        }
        figures
    }
}

impl Pooled {
    /// Returns the figures.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure<'_>> {
        let mut list = List::new(&self.provenance);
        list.push("min_size", self.min_size);
        list.push("max_size", self.max_size);
        list.limits("base.", self.base);
        list.limits("per_100_gib.", Some(self.per_100_gib.limits));
        list.limits("per_100_gib.writes.", self.per_100_gib.writes);
        let excess = (self.iops_excess > 0).then(|| RuleValue::Count(self.iops_excess.into()));
        list.push("iops_excess", excess);
        list.figures
    }
}

impl Provisioned {
    /// Returns the figures: the rules of provisioning.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure<'_>> {
        let mut list = List::new(&self.provenance);
        list.push("min_size", Some(self.min_size));
        list.push("max_size", Some(self.max_size));
        list.push("size_step", self.size_step);
        list.limits("minimum.", Some(self.minimum));
        list.add("minimum_included", Value::Word(if self.minimum_included { "yes" } else { "no" }));
        list.limits("maximum.", Some(self.maximum));
        list.push("io_unit", self.io_unit);
        if self.merges {
            list.add("merges", Value::Word("yes"));
        }
        list.push("iops_per_gib", self.iops_per_gib);
        list.push("iops_per_gib_min", self.iops_per_gib_min);
        list.push("throughput_per_iops", self.throughput_per_iops);
        list.push("throughput_per_iops_min", self.throughput_per_iops_min);
        list.push("throughput_step", self.throughput_step);
        list.push("bend.throughput", self.bend.map(|bend| bend.throughput));
        list.push("bend.throughput_per_iops", self.bend.map(|bend| bend.throughput_per_iops));
        for (size, limits) in &self.ladder {
            list.limits(&format!("ladder.{size}."), Some(*limits));
        }
        list.figures
    }
}

impl SizedFamily {
    /// Returns the figures: the rules by size.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure<'_>> {
        let mut list = List::new(&self.provenance);
        list.push("min_size", Some(self.min_size));
        list.push("max_size", Some(self.max_size));
        list.push("io_unit", self.io_unit);
        if self.merges {
            list.add("merges", Value::Word("yes"));
        }
        list.limits("minimum.", Some(self.minimum));
        list.limits("maximum.", Some(self.maximum));
        list.push("iops_per_gib", self.iops_per_gib);
        list.push("throughput_per_tib", self.throughput_per_tib);
        list.push("full_throughput_above", self.full_throughput_above);
        if let Some(burst) = self.iops_burst {
            list.push("iops_burst.iops", Some(burst.iops));
            list.push("iops_burst.credits", Some(RuleValue::Count(burst.credits)));
        }
        if let Some(burst) = self.throughput_burst {
            list.push("throughput_burst.per_tib", Some(burst.per_tib));
            list.push("throughput_burst.maximum", Some(burst.maximum));
        }
        list.figures
    }
}

impl Latency {
    /// Returns the figures. They are a model and must be shown with [`Latency::basis`] and
    /// [`Latency::reason`].
    #[must_use]
    pub fn figures(&self) -> Vec<Figure<'_>> {
        let mut list = List::new(&self.provenance);
        let all = [
            ("read", Some(self.read)),
            ("write", Some(self.write)),
            ("sync", self.sync),
            ("write_through", self.write_through),
        ];
        for (op, q) in all.into_iter().filter_map(|(op, q)| Some((op, q?))) {
            list.push(&format!("{op}.p0"), Some(q.p0));
            list.push(&format!("{op}.p50"), Some(q.p50));
            list.push(&format!("{op}.p90"), q.p90);
            list.push(&format!("{op}.p99"), q.p99);
            list.push(&format!("{op}.p999"), q.p999);
            list.push(&format!("{op}.p100"), Some(q.p100));
        }
        list.push("transfer", self.transfer);
        list.figures
    }
}

impl HostCache {
    /// Returns the figures on cacheable disks and default modes. [`HostCache::rows`] has the limits
    /// that an I/O counts against.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure<'_>> {
        let mut list = List::new(&self.provenance);
        list.push("max_disk_exclusive", self.max_disk_exclusive);
        list.add("os_disk_default", Value::Word(self.os_disk_default.name()));
        list.add("data_disk_default", Value::Word(self.data_disk_default.name()));
        for use_of in &self.recommended {
            list.add(&format!("recommended.{}", use_of.r#for), Value::Word(use_of.mode.name()));
        }
        list.figures
    }
}

impl BurstRule {
    /// Returns the figures.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure<'_>> {
        let mut list = List::new(&self.provenance);
        list.push("duration", self.duration);
        list.push("refill", self.refill);
        if let Some(full) = self.starts_full {
            list.add("starts_full", Value::Word(if full { "yes" } else { "no" }));
        }
        list.figures
    }
}

impl Striping {
    /// Returns the figures: stripe units by workload, columns by machine series.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure<'_>> {
        let mut list = List::new(&self.provenance);
        for unit in &self.units {
            list.push(&format!("unit.{}", unit.workload), Some(unit.unit));
        }
        for most in &self.max_columns {
            list.push(&format!("max_columns.{}", most.series), Some(most.columns));
        }
        list.figures
    }
}

impl Rule {
    /// Returns the figure, if there is one.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure<'_>> {
        let mut list = List::new(&self.provenance);
        let per = self.per.as_ref().map(|per| format!("per {per}"));
        list.push(per.as_deref().unwrap_or("value"), self.value);
        list.figures
    }
}

struct List<'a> {
    provenance: &'a Provenance,
    figures: Vec<Figure<'a>>,
}

impl<'a> List<'a> {
    fn new(provenance: &'a Provenance) -> Self {
        Self { provenance, figures: Vec::new() }
    }

    fn add(&mut self, name: &str, value: Value) {
        let citation = self.provenance.of(name);
        self.figures.push(Figure { name: name.to_owned(), value, citation });
    }

    fn push(&mut self, name: &str, value: Option<impl Into<RuleValue>>) {
        if let Some(value) = value {
            self.add(name, Value::Quantity(value.into()));
        }
    }

    /// Adds both rates of a pair under `prefix`.
    fn limits(&mut self, prefix: &str, limits: Option<Limits>) {
        self.push(&format!("{prefix}iops"), limits.map(|l| l.iops));
        self.push(&format!("{prefix}throughput"), limits.map(|l| l.throughput));
    }

    fn burst(&mut self, name: &str, burst: Option<Burst>) {
        let Some(Burst { kind, iops, throughput }) = burst else { return };
        let (word, duration) = match kind {
            BurstKind::Credit { duration } => ("credit", Some(duration)),
            BurstKind::OnDemand => ("on-demand", None),
        };
        self.add(&format!("{name}.kind"), Value::Word(word));
        self.limits(&format!("{name}."), Some(Limits { iops, throughput }));
        self.push(&format!("{name}.duration"), duration);
    }

    fn local_disk(&mut self, name: &str, disk: Option<LocalDisk>) {
        let Some(LocalDisk { disks, size, iops, read, write }) = disk else { return };
        self.push(&format!("{name}.disks"), (disks > 1).then_some(disks));
        self.push(&format!("{name}.size"), size);
        self.push(&format!("{name}.iops"), iops);
        if read == write {
            self.push(&format!("{name}.throughput"), read);
        } else {
            self.push(&format!("{name}.read"), read);
            self.push(&format!("{name}.write"), write);
        }
    }
}
