//! Volumes to be created while their host runs.

use crate::file::{LimitKeys, Role};
use serde::{Deserialize, Serialize};
use weir_units::{Bytes, BytesPerSec, CacheMode, Iops};

/// A volume to be created: a file on a managed instance, otherwise a disk. The keys have the same
/// meaning as in a layout.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewVolume {
    /// Name.
    pub name: String,
    /// Size; that of the tier by default.
    pub size: Option<Bytes>,
    /// Tier.
    pub tier: Option<String>,
    /// Tier set or family of the tier or size.
    pub family: Option<String>,
    /// The host cache mode.
    #[serde(default)]
    pub cache: CacheMode,
    /// Role of the file, on a managed instance.
    pub role: Option<Role>,
    /// The file's database.
    pub database: Option<String>,
    /// True for no limits and no latency.
    #[serde(default)]
    pub unlimited: bool,
    /// Operations per second: provisioned ones if the family has them, else an explicit limit.
    pub iops: Option<Iops>,
    /// Bytes per second, likewise.
    pub throughput: Option<BytesPerSec>,
    /// True for a page blob, which records the written pages and shares them with snapshots.
    #[serde(default)]
    pub blob: bool,
    /// True if its blocks have checksums in the data folder. Releases that do not know the key take a volume
    /// without it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub checksums: bool,
}

impl NewVolume {
    /// Returns the explicit limits, if there are any and no family provisions them.
    pub(crate) fn limits(&self) -> Option<LimitKeys> {
        let own = self.iops.is_some() || self.throughput.is_some();
        let keys = LimitKeys { iops: self.iops, throughput: self.throughput, burst: None };
        (own && self.family.is_none() && self.tier.is_none()).then_some(keys)
    }
}
