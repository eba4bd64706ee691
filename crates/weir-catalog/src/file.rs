//! The TOML of an edition, as it is written. [`crate::read`] checks it and makes
//! the types that others see.

use crate::cache::{CacheMode, CacheOp, Recommended};
use crate::host::Interface;
use crate::latency::{Basis, Quantiles};
use crate::price::{Per, Term};
use crate::rules::{MaxColumns, StripeUnit};
use serde::Deserialize;
use std::collections::BTreeMap;
use weir_units::{Bytes, BytesPerSec, Iops, Money, Span};

/// The keys that say where a table or a row comes from.
#[derive(Debug, Default)]
pub(crate) struct Cited {
    pub(crate) source: Option<String>,
    pub(crate) as_of: Option<String>,
    pub(crate) figures: Vec<FigureSource>,
    pub(crate) notes: Vec<String>,
    pub(crate) conflicts: Vec<String>,
    pub(crate) history: Vec<String>,
}

/// Another source for some of a row's figures.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FigureSource {
    pub(crate) of: Vec<String>,
    pub(crate) source: String,
    pub(crate) as_of: String,
}

/// Declares a table with its own keys and those of [`Cited`] beside them.
/// `#[serde(flatten)]` would do it too, but loses the line of an error and
/// accepts unknown keys.
macro_rules! cited {
    ($($(#[$meta:meta])* struct $name:ident {
        $($(#[$field_meta:meta])* $field:ident: $type:ty,)*
    })*) => {$(
        $(#[$meta])*
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            $($(#[$field_meta])* pub(crate) $field: $type,)*
            source: Option<String>,
            as_of: Option<String>,
            #[serde(default)]
            figures: Vec<FigureSource>,
            #[serde(default)]
            notes: Vec<String>,
            #[serde(default)]
            conflicts: Vec<String>,
            #[serde(default)]
            history: Vec<String>,
        }

        impl $name {
            /// Takes the keys that say where it comes from.
            pub(crate) fn cited(&mut self) -> Cited {
                use std::mem::take;
                Cited {
                    source: take(&mut self.source),
                    as_of: take(&mut self.as_of),
                    figures: take(&mut self.figures),
                    notes: take(&mut self.notes),
                    conflicts: take(&mut self.conflicts),
                    history: take(&mut self.history),
                }
            }
        }
    )*};
}

/// A whole edition.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) as_of: String,
    pub(crate) scope: String,
    pub(crate) extends: Option<String>,
    pub(crate) provider: Option<String>,
    #[serde(default)]
    pub(crate) numbered_disks: bool,
    #[serde(default)]
    pub(crate) root_disk_counts: bool,
    pub(crate) licence_programme: Option<String>,
    #[serde(default)]
    pub(crate) notes: Vec<String>,
    #[serde(default)]
    pub(crate) conflicts: Vec<String>,
    pub(crate) default_set: Option<String>,
    pub(crate) io_unit: Option<IoUnit>,
    #[serde(default)]
    pub(crate) tier_set: Vec<TierSet>,
    #[serde(default)]
    pub(crate) provisioned: Vec<Provisioned>,
    #[serde(default)]
    pub(crate) sized: Vec<Sized>,
    #[serde(default)]
    pub(crate) store: Vec<Store>,
    #[serde(default)]
    pub(crate) pooled: Vec<Pooled>,
    #[serde(default)]
    pub(crate) series: Vec<Series>,
    pub(crate) host_cache: Option<HostCache>,
    #[serde(default)]
    pub(crate) latency: Vec<Latency>,
    #[serde(default)]
    pub(crate) bursting: Vec<Bursting>,
    pub(crate) striping: Option<Striping>,
    #[serde(default)]
    pub(crate) rule: Vec<Rule>,
    #[serde(default)]
    pub(crate) price: Vec<PriceList>,
    pub(crate) host_names: Option<HostNames>,
}

/// Prices alone.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prices {
    pub(crate) price: Vec<PriceList>,
}

cited! {
    struct IoUnit {
        size: Bytes,
    }

    struct HostNames {
        prefixes: Vec<String>,
        suffixes: Vec<String>,
    }

    struct TierSet {
        name: String,
        family: String,
        #[serde(default)]
        performance_tiers: bool,
        rows: Vec<Tier>,
    }

    struct Tier {
        name: String,
        size: Bytes,
        holds: Option<Bytes>,
        iops: Iops,
        throughput: BytesPerSec,
        burst: Option<Burst>,
        plus: Option<Limits>,
    }

    struct Provisioned {
        family: String,
        min_size: Bytes,
        max_size: Bytes,
        size_step: Option<Bytes>,
        io_unit: Option<Bytes>,
        #[serde(default)]
        merges: bool,
        minimum: Limits,
        minimum_included: bool,
        maximum: Limits,
        iops_per_gib: Option<Iops>,
        iops_per_gib_min: Option<Iops>,
        throughput_per_iops: Option<BytesPerSec>,
        throughput_per_iops_min: Option<BytesPerSec>,
        throughput_step: Option<BytesPerSec>,
        #[serde(default)]
        throughput_follows: bool,
        bend: Option<Bend>,
        #[serde(default)]
        ladder: Vec<Step>,
    }

    struct Sized {
        family: String,
        min_size: Bytes,
        max_size: Bytes,
        io_unit: Option<Bytes>,
        #[serde(default)]
        merges: bool,
        #[serde(default)]
        whole_units: bool,
        minimum: Limits,
        maximum: Limits,
        iops_per_gib: Option<Iops>,
        throughput_per_tib: Option<BytesPerSec>,
        full_throughput_above: Option<Bytes>,
        iops_burst: Option<IopsBurst>,
        throughput_burst: Option<ThroughputBurst>,
    }

    struct Store {
        name: String,
        service: String,
        family: String,
        rows: Vec<StoreStep>,
    }

    struct StoreStep {
        #[serde(default)]
        engines: Vec<String>,
        min_size: Bytes,
        max_size: Bytes,
        volumes: u64,
        minimum: StoreLimits,
        maximum: Option<StoreLimits>,
        gib_per_iops: Option<u64>,
        #[serde(default)]
        licensed: bool,
    }

    struct Pooled {
        family: String,
        min_size: Option<Bytes>,
        max_size: Option<Bytes>,
        base: Option<Limits>,
        per_100_gib: PoolLimits,
        #[serde(default)]
        iops_excess: u32,
    }

    struct Series {
        name: String,
        interface: Option<Interface>,
        #[serde(default)]
        preview: bool,
        service: Option<String>,
        #[serde(default)]
        takes: Vec<String>,
        premium_caching: Option<bool>,
        rows: Vec<Host>,
    }

    struct Host {
        name: String,
        vcpus: Option<u32>,
        memory: Option<Bytes>,
        max_data_disks: Option<u32>,
        storage: Option<Bytes>,
        temp: Option<LocalDisk>,
        nvme: Option<LocalDisk>,
        cache: Option<Bytes>,
        uncached: Option<HostLimits>,
        cached: Option<HostLimits>,
        v2: Option<HostLimits>,
        #[serde(default)]
        takes: Vec<String>,
        #[serde(default)]
        pools: BTreeMap<String, PoolLimits>,
    }

    struct HostCache {
        max_disk_exclusive: Option<Bytes>,
        os_disk_default: CacheMode,
        data_disk_default: CacheMode,
        #[serde(default)]
        uncacheable: Vec<String>,
        #[serde(default)]
        recommended: Vec<Recommended>,
        rows: Vec<CacheRow>,
    }

    struct CacheRow {
        mode: CacheMode,
        op: CacheOp,
        disk: bool,
        uncached: bool,
        cached: bool,
    }

    struct Latency {
        name: String,
        families: Vec<String>,
        read: Quantiles,
        write: Quantiles,
        transfer: Option<BytesPerSec>,
        sync: Option<Quantiles>,
        write_through: Option<Quantiles>,
        basis: Basis,
        reason: String,
    }

    struct Bursting {
        name: String,
        applies_to: Vec<String>,
        starts_full: Option<bool>,
        duration: Option<Span>,
        refill: Option<Span>,
        text: String,
    }

    struct Striping {
        #[serde(default)]
        units: Vec<StripeUnit>,
        #[serde(default)]
        max_columns: Vec<MaxColumns>,
    }

    struct PriceList {
        region: String,
        currency: String,
        os: Option<String>,
        rows: Vec<Price>,
    }

    struct Price {
        tier: Option<String>,
        host: Option<String>,
        of: Option<String>,
        per: Option<Per>,
        term: Option<Term>,
        free: Option<u64>,
        month: Money,
        hour: Option<Money>,
        #[serde(default)]
        steps: Vec<PriceStep>,
    }

    struct Rule {
        name: String,
        text: String,
        count: Option<u64>,
        size: Option<Bytes>,
        iops: Option<Iops>,
        throughput: Option<BytesPerSec>,
        time: Option<Span>,
        per: Option<String>,
    }
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    pub(crate) iops: Iops,
    pub(crate) throughput: BytesPerSec,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PoolLimits {
    pub(crate) iops: Iops,
    pub(crate) throughput: BytesPerSec,
    pub(crate) writes: Option<Limits>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Burst {
    pub(crate) kind: BurstKind,
    pub(crate) duration: Option<Span>,
    pub(crate) iops: Iops,
    pub(crate) throughput: BytesPerSec,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BurstKind {
    Credit,
    OnDemand,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostLimits {
    pub(crate) iops: Iops,
    pub(crate) throughput: BytesPerSec,
    pub(crate) burst: Option<Burst>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LocalDisk {
    pub(crate) disks: Option<u32>,
    pub(crate) size: Option<Bytes>,
    pub(crate) iops: Option<Iops>,
    /// Both ways.
    pub(crate) throughput: Option<BytesPerSec>,
    pub(crate) read: Option<BytesPerSec>,
    pub(crate) write: Option<BytesPerSec>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    pub(crate) size: Bytes,
    pub(crate) iops: Iops,
    pub(crate) throughput: BytesPerSec,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IopsBurst {
    pub(crate) iops: Iops,
    pub(crate) credits: u64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThroughputBurst {
    pub(crate) per_tib: BytesPerSec,
    pub(crate) maximum: BytesPerSec,
}

/// A throughput above which each operation permits less.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bend {
    pub(crate) throughput: BytesPerSec,
    pub(crate) throughput_per_iops: BytesPerSec,
}

/// Limits of a store. Throughput is left out if it follows from the IOPS.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoreLimits {
    pub(crate) iops: Iops,
    pub(crate) throughput: Option<BytesPerSec>,
}

/// The price of units above a number.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PriceStep {
    pub(crate) above: u64,
    pub(crate) month: Money,
}
