//! The limits of a layout, and where they are.

use weir_core::{CacheMode, Cap, GateLimits, Limit, Place as Medium};
use weir_layout::{Export, File, Host, Layout, Role};
use weir_plan::share::{WHOLE, pro_rata};
use weir_plan::{Need, RoleNeed};

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
    /// Returns the limits of a layout that hold without bursts: those of each host and of each export.
    pub(crate) fn all(layout: &Layout) -> impl Iterator<Item = Self> {
        const OF_HOST: [Cap; 7] = [
            Cap::HostUncachedIops,
            Cap::HostUncachedBytes,
            Cap::HostWriteIops,
            Cap::HostWriteBytes,
            Cap::HostCachedIops,
            Cap::HostCachedBytes,
            Cap::LogRate,
        ];
        const OF_EXPORT: [Cap; 2] = [Cap::DiskIops, Cap::DiskBytes];
        layout.hosts.iter().enumerate().flat_map(|(host, own)| {
            let of_host = OF_HOST.map(|cap| Self { host, export: None, cap });
            let exports = (0..own.exports.len()).map(Some);
            let of_exports =
                exports.flat_map(move |export| OF_EXPORT.map(|cap| Self { host, export, cap }));
            of_host.into_iter().chain(of_exports)
        })
    }

    /// Returns the place at which a volume waited.
    #[must_use]
    pub fn of_volume(layout: &Layout, host: usize, volume: usize, cap: Cap) -> Option<Self> {
        let exports = &layout.hosts.get(host)?.exports;
        let export = exports.iter().position(|own| own.volumes.iter().any(|id| id.0 == volume))?;
        let is_own = !is_of_host(cap);
        Some(Self { host, export: is_own.then_some(export), cap })
    }

    /// Returns the place at which requests of a file waited: a database file, or a volume or stripe
    /// that holds nothing else.
    pub(crate) fn of_file(layout: &Layout, name: &str, cap: Cap) -> Option<Self> {
        let is_own = !is_of_host(cap);
        layout.hosts.iter().enumerate().find_map(|(host, own)| {
            let file = own.files.iter().find(|file| file.name == name);
            let device = file.map(|file| file.device);
            let is_it = |export: &Export| match device {
                Some(device) => export.device == device,
                None => export.name == name,
            };
            let export = own.exports.iter().position(is_it)?;
            Some(Self { host, export: is_own.then_some(export), cap })
        })
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
        self.sum(layout, |limit| limit.rate.get())
    }

    /// Returns the limit as reports state it: the burst rate for the limit of a burst.
    #[must_use]
    pub(crate) fn stated(&self, layout: &Layout) -> Option<u64> {
        let is_burst = self.cap.is_burst();
        self.sum(layout, |limit| match limit.burst.filter(|_| is_burst) {
            Some((peak, _)) => peak.get(),
            None => limit.rate.get(),
        })
    }

    /// Returns the sum of a figure over all columns.
    fn sum(&self, layout: &Layout, of: impl Fn(Limit) -> u64) -> Option<u64> {
        let (host, export) = self.parts(layout)?;
        let gate = |limits: &GateLimits| match self.cap.counts_bytes() {
            true => limits.bytes,
            false => limits.iops,
        };
        let base = |limit: Option<Limit>| limit.map(&of);
        match export {
            Some(export) => export.volumes.iter().try_fold(0_u64, |sum, id| {
                let own = base(gate(&host.spec.volumes.get(id.0)?.limits.gate))?;
                Some(sum.saturating_add(own))
            }),
            None if self.cap == Cap::LogRate => base(host.spec.log_rate),
            None if is_cached(self.cap) => base(gate(&host.spec.cached)),
            None if is_of_writes(self.cap) => base(gate(host.spec.uncached_writes.as_ref()?)),
            None => base(gate(&host.spec.uncached)),
        }
    }

    /// Returns the operations or bytes per second that a need asks of the limit, at least: requests that are split count
    /// more, and so do reads that miss a cache.
    pub(crate) fn demand(&self, layout: &Layout, need: &Need) -> u64 {
        let Some((host, export)) = self.parts(layout) else { return 0 };
        let of_role = |own: &RoleNeed| {
            let files = |host: &'_ Host| {
                let files = host.files.iter().filter(|file| file.role == own.role);
                files.map(|file| (file.device, file.size.get())).collect::<Vec<_>>()
            };
            let all: u64 = layout.hosts.iter().flat_map(files).map(|(_, size)| size).sum();
            let rate = if self.cap.counts_bytes() { own.throughput } else { own.iops };
            let of_file = |(device, size)| {
                let on = host.exports.iter().find(|own| own.device == device)?;
                let is_here = export.is_none_or(|export| on.device == export.device);
                // A database fills its files in proportion to their sizes.
                is_here.then(|| self.part(host, on, (pro_rata(rate, size, all), own.reads)))
            };
            files(host).into_iter().filter_map(of_file).fold(0, u64::saturating_add)
        };
        let roles = need.roles.iter().filter(|own| self.limits(layout, own.role));
        roles.map(of_role).fold(0, u64::saturating_add)
    }

    /// Returns the part of an export's rate that passes the limit at any hit ratio. `reads` are millionths.
    fn part(&self, host: &Host, export: &Export, (rate, reads): (u64, u64)) -> u64 {
        let Some(volume) = export.volumes.first().and_then(|id| host.spec.volumes.get(id.0)) else {
            return 0;
        };
        let is_local = volume.place != Medium::Remote;
        let writes = rate - pro_rata(rate, reads.min(WHOLE), WHOLE);
        let to_disk = match volume.cache {
            CacheMode::None => rate,
            CacheMode::ReadOnly => writes,
            // Blocks that are written twice may reach the disk once.
            CacheMode::ReadWrite => 0,
        };
        let is_apart = host.spec.uncached_writes.is_some();
        match self.cap {
            Cap::LogRate => writes,
            cap if is_of_writes(cap) && is_local => 0,
            cap if is_of_writes(cap) => to_disk.min(writes),
            Cap::HostUncachedIops | Cap::HostUncachedBytes if is_apart && !is_local => {
                to_disk.saturating_sub(writes)
            }
            cap if is_cached(cap) && !is_local && volume.cache == CacheMode::None => 0,
            cap if is_cached(cap) => rate,
            cap if is_of_host(cap) && is_local => 0,
            _ => to_disk,
        }
    }

    /// Returns what a failure at this limit depends on beside its rate: the same load meets the limit
    /// in the same way only if cache modes, stripe units and files are the same.
    pub(crate) fn setting(&self, layout: &Layout) -> Setting {
        let Some((host, export)) = self.parts(layout) else { return Setting::default() };
        let of = |export: &Export| {
            let mode = export.volumes.first().map(|id| host.spec.volumes[id.0].cache);
            let files = || host.files.iter().filter(|file| file.device == export.device);
            let is_peer = |file: &&File| files().any(|own| own.role == file.role);
            ExportSetting {
                cache: mode.unwrap_or(CacheMode::None),
                unit: export.unit.map(|unit| unit.get()),
                files: files().map(|file| file.name.clone()).collect(),
                peers: layout.hosts.iter().flat_map(|host| &host.files).filter(is_peer).count(),
            }
        };
        match export {
            Some(export) => Setting(vec![of(export)]),
            // An instance has no caches and no stripes, but files on others take a part of its load.
            None if host.instance.is_some() => {
                let is_here = |file: &&File| host.files.iter().any(|own| own.name == file.name);
                let files = layout.hosts.iter().flat_map(|host| &host.files);
                let peers = files.filter(|file| !is_here(file)).count();
                Setting(vec![ExportSetting { peers, ..ExportSetting::default() }])
            }
            None => Setting(host.exports.iter().map(of).collect()),
        }
    }
}

/// What the load at a limit depends on, for each export that the limit applies to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Setting(Vec<ExportSetting>);

#[derive(Debug, Clone, Default)]
struct ExportSetting {
    cache: CacheMode,
    unit: Option<u64>,
    files: Vec<String>,
    /// Number of files in the layout among which the load of these files' roles is divided.
    peers: usize,
}

impl Setting {
    /// Returns whether a limit with this setting carries no more than one of the same rate with
    /// `other`: caches and files are the same, stripe units are no larger, so that no fewer requests are
    /// split, and the load is divided among no more files.
    pub(crate) fn is_no_better_than(&self, other: &Self) -> bool {
        let unit = |own: &ExportSetting| own.unit.unwrap_or(u64::MAX);
        let pairs = || self.0.iter().zip(&other.0);
        self.0.len() == other.0.len()
            && pairs().all(|(own, other)| {
                own.cache == other.cache
                    && own.files == other.files
                    && own.peers <= other.peers
                    && unit(own) <= unit(other)
            })
    }
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

/// Returns whether a limit holds for writes alone.
fn is_of_writes(cap: Cap) -> bool {
    matches!(cap, Cap::HostWriteIops | Cap::HostWriteBytes)
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
        Cap::HostWriteIops => "write IOPS limit of the machine",
        Cap::HostWriteBytes => "write throughput limit of the machine",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_catalog::Catalog;
    use weir_plan::need::NeedFile;

    /// Returns what a role asks of the disk, of the uncached and of the cached limit of a machine, in operations.
    fn demands(volume: &str, role: &str) -> [u64; 3] {
        let text = format!(
            "[host]\nlimits = {{ uncached = {{ iops = 1 }}, cached = {{ iops = 1 }} }}\ncache = {{ size = \"1 GiB\" \
             }}\n[[volume]]\nname = \"v\"\nsize = \"9 GiB\"\nlimits = {{ iops = 1 }}\n{volume}\n[[file]]\nname = \
             \"f\"\nrole = \"{role}\"\nsize = \"8 GiB\"\non = \"v\"\n"
        );
        let layout = Layout::parse("layout.toml", &text, &Catalog::builtin()).expect("a layout");
        let need = format!("[{role}]\nsize = \"8 GiB\"\niops = 1000\nreads = \"70 %\"\n");
        let need = NeedFile::read("need.toml", &need).and_then(|own| own.need()).expect("a need").0;
        let places =
            [(Some(0), Cap::DiskIops), (None, Cap::HostUncachedIops), (None, Cap::HostCachedIops)];
        places.map(|(export, cap)| Place { host: 0, export, cap }.demand(&layout, &need))
    }

    #[test]
    fn a_demand_is_what_passes_a_limit_whatever_the_hits_are() {
        assert_eq!(demands("", "data"), [1_000, 1_000, 0]);
        assert_eq!(demands("cache = \"read-only\"", "data"), [300, 300, 1_000]);
        assert_eq!(demands("cache = \"read-write\"", "tempdb"), [0, 0, 1_000]);
        assert_eq!(demands("place = \"local\"", "tempdb"), [1_000, 0, 1_000]);
    }

    #[test]
    fn reads_and_writes_pass_limits_of_their_own_where_these_are_separate() {
        let text = "edition = \"gcp\"\nhost = { size = \"n1-8vcpu\" }\n[[volume]]\nname = \"v\"\nfamily = \
            \"pd-standard\"\nsize = \"100 GiB\"\n[[file]]\nname = \"f\"\nrole = \"data\"\nsize = \"8 GiB\"\non \
            = \"v\"\n";
        let layout = Layout::parse("layout.toml", text, &Catalog::builtin()).expect("a layout");
        let need = "[data]\nsize = \"8 GiB\"\niops = 1000\nreads = \"70 %\"\n";
        let need = NeedFile::read("need.toml", need).and_then(|own| own.need()).expect("a need").0;
        let of = |cap| {
            let place = Place { host: 0, export: None, cap };
            (place.demand(&layout, &need), place.rate(&layout))
        };
        assert_eq!(of(Cap::HostUncachedIops), (700, Some(75)));
        assert_eq!(of(Cap::HostWriteIops), (300, Some(150)));
    }

    #[test]
    fn only_writes_pass_the_log_rate() {
        let text = "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 8, storage = \"1 TiB\" }\n\
            [[file]]\nname = \"log\"\nrole = \"log\"\nsize = \"100 GiB\"\n";
        let layout = Layout::parse("layout.toml", text, &Catalog::builtin()).expect("a layout");
        let need = "[log]\nsize = \"90 GiB\"\nthroughput = \"10 MB/s\"\nreads = \"70 %\"\n";
        let need = NeedFile::read("need.toml", need).and_then(|own| own.need()).expect("a need").0;
        let place = Place { host: 0, export: None, cap: Cap::LogRate };
        let demand = place.demand(&layout, &need);
        assert!((2_990_000..3_100_000).contains(&demand), "{demand}");
    }
}
