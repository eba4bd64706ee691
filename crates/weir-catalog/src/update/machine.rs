//! A machine of a downloaded file.

use weir_units::{Bytes, BytesPerSec};

/// A machine as a file describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Machine {
    pub(super) vcpus: Option<u32>,
    pub(super) memory_mib: Option<u64>,
    pub(super) disks: Option<u32>,
    pub(super) cache: Option<u64>,
    pub(super) uncached: Option<Rates>,
    pub(super) burst: Option<Rates>,
    pub(super) cached: Option<Rates>,
    pub(super) source: String,
    pub(super) as_of: String,
}

/// Operations and bytes per second.
pub(super) type Rates = (u64, u64);

impl Machine {
    /// Writes it as a row of a series.
    pub(super) fn toml(&self, name: &str) -> String {
        let mut row = format!("  {{ name = {name:?}");
        let mut put = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                row.push_str(&format!(", {key} = {value}"));
            }
        };
        put("vcpus", self.vcpus.map(|n| n.to_string()));
        put("memory", self.memory_mib.map(|mib| quoted(Bytes::mib(mib).exact())));
        put("max_data_disks", self.disks.map(|n| n.to_string()));
        put("cache", self.cache.map(|bytes| quoted(Bytes::new(bytes).exact())));
        let burst = self.burst.filter(|burst| Some(*burst) != self.uncached);
        put("uncached", self.uncached.map(|own| limits(own, burst)));
        put("cached", self.cached.map(|own| limits(own, None)));
        row.push_str(" },\n");
        row
    }
}

fn quoted(value: impl std::fmt::Display) -> String {
    format!("\"{value}\"")
}

fn limits((iops, bytes): Rates, burst: Option<Rates>) -> String {
    let burst = burst.map(|(iops, bytes)| {
        format!(
            ", burst = {{ kind = \"credit\", duration = \"30 min\", iops = {iops}, throughput = {} }}",
            rate(bytes)
        )
    });
    let burst = burst.unwrap_or_default();
    format!("{{ iops = {iops}, throughput = {}{burst} }}", rate(bytes))
}

/// Returns bytes per second as a quantity of an edition.
fn rate(bytes: u64) -> String {
    BytesPerSec::new(bytes).map_or_else(|| quoted("1 B/s"), quoted)
}
