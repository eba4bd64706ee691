//! A volume or host with its figures.

use crate::text::clean;
use std::collections::BTreeMap;
use weir_report::run::CAPS;
use weir_report::status::{HostStatus, Status, StatusReport, VolumeStatus};
use weir_watch::caps::{self, CapUse};
use weir_watch::sample::{
    DEPTH, HIT_RATE, LATENCY_MS, P99_MS, READ_BYTES, READ_IOPS, Row, Sampled, WAITS, WRITE_BYTES,
    WRITE_IOPS,
};
use weir_watch::verdict::is_throttled;

/// The identity of a volume, or without one of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) host: String,
    pub(crate) volume: Option<String>,
}

/// A volume or host with its figures.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) item: Item,
    /// Its name without control characters.
    pub(crate) name: String,
    /// The tier, or the size of the machine.
    pub(crate) kind: String,
    pub(crate) row: Row,
    /// The host caches it.
    is_cached: bool,
    /// Its own limits.
    pub(crate) caps: Vec<CapUse>,
    /// Seconds until its burst credits are used up.
    pub(crate) credits_last_s: Option<f64>,
    /// Its requests wait for longer than the medium takes.
    pub(crate) is_throttled: bool,
    /// Its backend does not answer, or has failed.
    pub(crate) is_lost: bool,
}

impl Line {
    pub(crate) const fn is_host(&self) -> bool {
        self.item.volume.is_none()
    }

    fn at(&self, column: usize) -> f64 {
        self.row[column].into()
    }

    pub(crate) fn iops(&self) -> f64 {
        self.at(READ_IOPS) + self.at(WRITE_IOPS)
    }

    pub(crate) fn bytes(&self) -> f64 {
        self.at(READ_BYTES) + self.at(WRITE_BYTES)
    }

    pub(crate) fn latency_ms(&self) -> f64 {
        self.at(LATENCY_MS)
    }

    pub(crate) fn p99_ms(&self) -> f64 {
        self.at(P99_MS)
    }

    pub(crate) fn depth(&self) -> f64 {
        self.at(DEPTH)
    }

    /// Returns the share of reads that the host cache served; NaN without one.
    pub(crate) fn hit_rate(&self) -> f64 {
        if self.is_cached { self.at(HIT_RATE) } else { f64::NAN }
    }

    /// Returns the mean number of requests that wait at caps.
    pub(crate) fn waiting(&self) -> f64 {
        self.row[WAITS..].iter().map(|seconds| f64::from(*seconds)).sum()
    }

    /// Returns the caps with waits and the seconds waited per second, the longest first.
    pub(crate) fn waits(&self) -> Vec<(&'static str, f64)> {
        let all = CAPS.into_iter().zip(&self.row[WAITS..]);
        let mut waits: Vec<_> = all.map(|(cap, seconds)| (cap, f64::from(*seconds))).collect();
        waits.retain(|(_, seconds)| *seconds > 0.0);
        waits.sort_by(|a, b| b.1.total_cmp(&a.1));
        waits
    }

    /// Returns the limit on operations (`_iops`) or bytes (`_bytes`) that is used most.
    pub(crate) fn fullest(&self, kind: &str) -> Option<&CapUse> {
        let own = self.caps.iter().filter(|cap| cap.cap.ends_with(kind));
        let share = |cap: &CapUse| cap.share().unwrap_or(0.0);
        // Of equal ones the first.
        own.rev().max_by(|a, b| share(a).total_cmp(&share(b)))
    }

    /// Returns the used part of the limit that [`fullest`](Self::fullest) finds; NaN without one.
    pub(crate) fn full(&self, kind: &str) -> f64 {
        self.fullest(kind).and_then(CapUse::share).unwrap_or(f64::NAN)
    }

    /// Returns the left part of the burst credits; NaN without any.
    pub(crate) fn credits(&self) -> f64 {
        self.caps.iter().filter_map(|cap| cap.credits).fold(f64::NAN, f64::min)
    }
}

/// Returns the lines of a reading, each host before its volumes.
pub(crate) fn lines(old: &Status, report: &StatusReport, sampled: Vec<Sampled>) -> Vec<Line> {
    let now = &report.now;
    let nanos = now.uptime_ns.saturating_sub(old.uptime_ns);
    let seconds = weir_report::number::float(nanos) / 1e9;
    let mut sampled = sampled.into_iter();
    let mut lines = Vec::new();
    let (no_host, no_volume) = (HostStatus::default(), VolumeStatus::default());
    for host in &now.hosts {
        let before = old.hosts.iter().find(|own| own.name == host.name).unwrap_or(&no_host);
        let volumes: BTreeMap<&str, &VolumeStatus> =
            before.volumes.iter().map(|own| (own.name.as_str(), own)).collect();
        let own = caps::of_host(before, host, seconds);
        let last = own.iter().filter_map(|cap| cap.credits_last_s).reduce(f64::min);
        lines.extend(sampled.next().map(|sampled| Line {
            is_cached: host.volumes.iter().any(|volume| volume.cache != "none"),
            kind: host.size.as_deref().map(clean).unwrap_or_default(),
            credits_last_s: last,
            ..line(sampled, own, false)
        }));
        for volume in &host.volumes {
            let before = volumes.get(volume.name.as_str()).copied().unwrap_or(&no_volume);
            let own = caps::of_volume(before, volume, seconds);
            let rates = report.rates.get(&volume.name);
            lines.extend(sampled.next().map(|sampled| Line {
                is_cached: volume.cache != "none",
                kind: volume.tier_words().as_deref().map(clean).unwrap_or_default(),
                credits_last_s: rates.and_then(|rates| rates.credits_last_s),
                is_lost: volume.backend.as_ref().is_some_and(|own| !own.is_connected()),
                ..line(sampled, own, rates.is_some_and(is_throttled))
            }));
        }
    }
    lines
}

fn line(sampled: Sampled, caps: Vec<CapUse>, is_throttled: bool) -> Line {
    let Sampled { host, volume, row } = sampled;
    let name = clean(volume.as_deref().unwrap_or(&host));
    let item = Item { host, volume };
    Line {
        item,
        name,
        kind: String::new(),
        row,
        is_cached: true,
        caps,
        credits_last_s: None,
        is_throttled,
        is_lost: false,
    }
}
