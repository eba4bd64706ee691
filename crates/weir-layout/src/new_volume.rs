//! Volumes to be created while their host runs.

use crate::file::{LimitKeys, Role};
use serde::{Deserialize, Serialize};
use weir_units::{Bytes, BytesPerSec, CacheMode, Iops};

/// A volume that is to be made: on a managed instance a file, elsewhere a disk. Its keys
/// mean what they mean in a layout.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewVolume {
    /// Its name.
    pub name: String,
    /// Its size; that of its tier if left out.
    pub size: Option<Bytes>,
    /// Its tier.
    pub tier: Option<String>,
    /// The tier set or family of its tier or size.
    pub family: Option<String>,
    /// The host cache mode.
    #[serde(default)]
    pub cache: CacheMode,
    /// What is in the file, on a managed instance.
    pub role: Option<Role>,
    /// The file's database.
    pub database: Option<String>,
    /// No limits and no latency.
    #[serde(default)]
    pub unlimited: bool,
    /// Operations per second of its own: provisioned ones where its family has such.
    pub iops: Option<Iops>,
    /// Bytes per second of its own, likewise.
    pub throughput: Option<BytesPerSec>,
    /// Whether it is a page blob: it knows which pages were written, and snapshots share
    /// them.
    #[serde(default)]
    pub blob: bool,
}

impl NewVolume {
    /// Its limits, if it has some of its own that no family provisions.
    pub(crate) fn limits(&self) -> Option<LimitKeys> {
        let own = self.iops.is_some() || self.throughput.is_some();
        let keys = LimitKeys { iops: self.iops, throughput: self.throughput, burst: None };
        (own && self.family.is_none() && self.tier.is_none()).then_some(keys)
    }
}
