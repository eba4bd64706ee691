//! The limits of a layout, and where they are.

use weir_core::{CacheMode, Cap, GateLimits, Limit};
use weir_layout::{Export, Host, Layout, Role};

/// A limit at which requests waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The host.
    pub host: usize,
    /// The export, if it is a limit of a disk, a stripe or a file. Limits of hosts have none.
    pub export: Option<usize>,
    /// The limit.
    pub cap: Cap,
}

impl Place {
    /// Returns the place at which a volume waited.
    #[must_use]
    pub fn of_volume(layout: &Layout, host: usize, volume: usize, cap: Cap) -> Option<Self> {
        let exports = &layout.hosts.get(host)?.exports;
        let export = exports.iter().position(|own| own.volumes.iter().any(|id| id.0 == volume))?;
        let is_own = !is_of_host(cap);
        Some(Self { host, export: is_own.then_some(export), cap })
    }

    /// Returns the host and the export.
    pub(crate) fn parts<'l>(&self, layout: &'l Layout) -> Option<(&'l Host, Option<&'l Export>)> {
        let host = layout.hosts.get(self.host)?;
        Some((host, self.export.and_then(|at| host.exports.get(at))))
    }

    /// Returns whether requests of a role pass the limit.
    pub(crate) fn limits(&self, layout: &Layout, role: Role) -> bool {
        let Some((host, export)) = self.parts(layout) else { return false };
        let mut files = host.files.iter().filter(|file| file.role == role);
        match (export, self.cap) {
            (Some(export), _) => files.any(|file| file.device == export.device),
            (None, Cap::LogRate) => role == Role::Log,
            (None, _) => files.next().is_some(),
        }
    }

    /// Returns the name of the disk, stripe, file or host.
    #[must_use]
    pub fn name(&self, layout: &Layout) -> String {
        self.parts(layout).map_or_else(String::new, |(host, export)| {
            export.map_or_else(|| host.name.clone(), |export| export.name.clone())
        })
    }

    /// Returns the limit in operations or bytes per second, of all columns together.
    #[must_use]
    pub fn rate(&self, layout: &Layout) -> Option<u64> {
        let (host, export) = self.parts(layout)?;
        let gate = |limits: &GateLimits| match self.cap.counts_bytes() {
            true => limits.bytes,
            false => limits.iops,
        };
        let base = |limit: Option<Limit>| limit.map(|limit| limit.rate.get());
        match export {
            Some(export) => export.volumes.iter().try_fold(0_u64, |sum, id| {
                let own = base(gate(&host.spec.volumes.get(id.0)?.limits.gate))?;
                Some(sum.saturating_add(own))
            }),
            None if self.cap == Cap::LogRate => base(host.spec.log_rate),
            None if is_cached(self.cap) => base(gate(&host.spec.cached)),
            None => base(gate(&host.spec.uncached)),
        }
    }

    /// Returns what a failure at this limit depends on beside its rate: the same load meets the limit
    /// in the same way only if cache modes, stripe units, columns and files are the same.
    pub(crate) fn setting(&self, layout: &Layout) -> Setting {
        let Some((host, export)) = self.parts(layout) else { return Setting::default() };
        let of = |export: &Export, columns: usize| {
            let mode = export.volumes.first().map(|id| host.spec.volumes[id.0].cache);
            let files = host.files.iter().filter(|file| file.device == export.device);
            ExportSetting {
                cache: mode.unwrap_or(CacheMode::None),
                unit: export.unit.map(|unit| unit.get()),
                columns,
                files: files.map(|file| file.name.clone()).collect(),
            }
        };
        match export {
            Some(export) => Setting(vec![of(export, export.volumes.len())]),
            None => Setting(host.exports.iter().map(|export| of(export, 0)).collect()),
        }
    }
}

/// What the load at a limit depends on, for each export that the limit applies to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Setting(Vec<ExportSetting>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct ExportSetting {
    cache: CacheMode,
    unit: Option<u64>,
    columns: usize,
    files: Vec<String>,
}

/// Returns whether all volumes of a host share the limit.
#[must_use]
pub(crate) fn is_of_host(cap: Cap) -> bool {
    !matches!(
        cap,
        Cap::DiskIops
            | Cap::DiskBytes
            | Cap::DiskBurstIops
            | Cap::DiskBurstBytes
            | Cap::CacheWriteback
    )
}

/// Returns whether the limit is that of a host's cache and local SSD.
pub(crate) fn is_cached(cap: Cap) -> bool {
    matches!(
        cap,
        Cap::HostCachedIops
            | Cap::HostCachedBytes
            | Cap::HostCachedBurstIops
            | Cap::HostCachedBurstBytes
    )
}

/// Returns the limit with a name.
pub(crate) fn cap_named(name: &str) -> Option<Cap> {
    Cap::ALL.into_iter().find(|cap| cap.name() == name)
}

/// Returns the limit in the words of a database administrator.
#[must_use]
pub fn words(cap: Cap) -> &'static str {
    match cap {
        Cap::LogRate => "log rate limit",
        Cap::DiskIops => "disk IOPS limit",
        Cap::DiskBytes => "disk throughput limit",
        Cap::DiskBurstIops => "disk burst IOPS limit",
        Cap::DiskBurstBytes => "disk burst throughput limit",
        Cap::HostUncachedIops => "uncached IOPS limit of the machine",
        Cap::HostUncachedBytes => "uncached throughput limit of the machine",
        Cap::HostUncachedBurstIops => "uncached burst IOPS limit of the machine",
        Cap::HostUncachedBurstBytes => "uncached burst throughput limit of the machine",
        Cap::HostCachedIops => "cached IOPS limit of the machine",
        Cap::HostCachedBytes => "cached throughput limit of the machine",
        Cap::HostCachedBurstIops => "cached burst IOPS limit of the machine",
        Cap::HostCachedBurstBytes => "cached burst throughput limit of the machine",
        Cap::CacheWriteback => "write-back of the host cache",
    }
}
