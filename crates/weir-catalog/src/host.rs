//! Machines and their limits.
//!
//! A limit that was not published is `None`. That neither means that there is no limit, nor is it
//! replaced by the limit of another machine.

use crate::limits::{Burst, Limits, PoolLimits};
use crate::provenance::Provenance;
use serde::Deserialize;
use std::collections::BTreeMap;
use weir_units::{Bytes, BytesPerSec, Iops};

/// The names that a cloud gives its machines unless their owners choose others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostNames {
    pub(crate) prefixes: Vec<String>,
    pub(crate) suffixes: Vec<String>,
    pub(crate) provenance: Provenance,
}

impl HostNames {
    /// Returns the length of the longest prefix or suffix that `host` has; 0 if it has none.
    #[must_use]
    pub fn match_length(&self, host: &str) -> usize {
        let host = host.to_ascii_lowercase();
        let prefixes = self.prefixes.iter().filter(|own| host.starts_with(own.as_str()));
        let suffixes = self.suffixes.iter().filter(|own| ends_with(&host, own));
        prefixes.chain(suffixes).map(String::len).max().unwrap_or(0)
    }

    /// Where the names come from.
    #[must_use]
    pub const fn provenance(&self) -> &Provenance {
        &self.provenance
    }
}

/// Tells whether a name ends with a suffix, in which `*` stands for any text.
fn ends_with(host: &str, suffix: &str) -> bool {
    match suffix.split_once('*') {
        None => host.ends_with(suffix),
        Some((first, last)) => host.strip_suffix(last).is_some_and(|rest| rest.contains(first)),
    }
}

/// A machine size.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostSize {
    /// Published name, for example `DS14` or `Standard_E8ds_v5`.
    pub name: String,
    /// The series it is listed in. A size that is published twice with different
    /// limits (NVMe and SCSI) is in two series.
    pub series: String,
    /// Virtual processors.
    pub vcpus: Option<u32>,
    /// Memory.
    pub memory: Option<Bytes>,
    /// Maximum number of data disks.
    pub max_data_disks: Option<u32>,
    /// The interface of its remote disks, for which its limits hold; that of its series. `None`
    /// if no page says it.
    pub interface: Option<Interface>,
    /// Maximum reserved storage of a managed instance.
    pub storage: Option<Bytes>,
    /// The local disk that comes with the machine.
    pub temp: Option<LocalDisk>,
    /// Local NVMe disks beside it.
    pub nvme: Option<LocalDisk>,
    /// Size of the host cache.
    pub cache: Option<Bytes>,
    /// For I/O that goes to remote disks.
    pub uncached: Option<HostLimits>,
    /// For I/O that the host cache or the local disk serves; stands beside
    /// `uncached`, the two add up.
    pub cached: Option<HostLimits>,
    /// For Premium SSD v2 and Ultra disks, where it differs from `uncached`.
    pub v2: Option<HostLimits>,
    /// The families that can be attached, if they are others than those of its series.
    pub takes: Vec<String>,
    /// Limits of all disks of a family together, for families whose disks share theirs
    /// ([`crate::Pooled`]).
    pub pools: BTreeMap<String, PoolLimits>,
    /// True if the host can cache disks, as stated or as implied by a published cache size or
    /// cached limit. `None` if it is not published.
    pub premium_caching: Option<bool>,
    /// True for a row that stands for all machines with as many vCPUs, where the edition has those
    /// machines too. It has no price and is not offered by itself.
    pub stands_for_others: bool,
    /// Source, date, conflicts.
    pub provenance: Provenance,
}

impl HostSize {
    /// Returns the name qualified by the series, which is unique in the edition.
    #[must_use]
    pub fn qualified(&self) -> String {
        format!("{}/{}", self.series, self.name)
    }

    /// The limit that disks of families with limits of their own (Premium SSD v2,
    /// Ultra) pass: `v2`, or `uncached` where none is published apart.
    #[must_use]
    pub fn v2_or_uncached(&self) -> Option<&HostLimits> {
        self.v2.as_ref().or(self.uncached.as_ref())
    }
}

/// The interface through which a machine sees its remote disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub enum Interface {
    /// SCSI.
    #[serde(rename = "SCSI")]
    Scsi,
    /// NVM Express.
    #[serde(rename = "NVMe")]
    Nvme,
}

impl Interface {
    /// The name in editions, which is also Azure's name of the disk controller.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Scsi => "SCSI",
            Self::Nvme => "NVMe",
        }
    }
}

/// One limit of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostLimits {
    /// Operations per second.
    pub iops: Iops,
    /// Bytes per second.
    pub throughput: BytesPerSec,
    /// Limits above these for a while.
    pub burst: Option<Burst>,
}

impl HostLimits {
    /// The base limits.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits { iops: self.iops, throughput: self.throughput }
    }
}

/// Disks inside the machine, gone when it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocalDisk {
    /// Number of disks.
    pub disks: u32,
    /// The size of each.
    pub size: Option<Bytes>,
    /// Operations per second of all together.
    pub iops: Option<Iops>,
    /// Bytes read per second of all together.
    pub read: Option<BytesPerSec>,
    /// Bytes written per second of all together.
    pub write: Option<BytesPerSec>,
}

/// Machines that one document lists together.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Series {
    /// Name, for example `ds` or `ebdsv5-nvme`.
    pub name: String,
    /// The interface of remote disks, for which the limits hold; `None` if no page says it.
    pub interface: Option<Interface>,
    /// True if the document marks the series as preview.
    pub preview: bool,
    /// The managed database service whose machines these are; `None` for machines that one has to
    /// oneself.
    pub service: Option<String>,
    /// The families that can be attached, if not all; empty if not stated.
    pub takes: Vec<String>,
    /// The machines, in the document's order.
    pub hosts: Vec<HostSize>,
    /// Source, date, conflicts of the series.
    pub provenance: Provenance,
}
