//! The use of each limit between two readings.
//!
//! The server counts operations as the disk's limit counts them, so the use of operations is exact.
//! It does not count the bytes that the host cache served; with a cache, the use of bytes is
//! estimated from the share of hits.

use weir_report::number::float;
use weir_report::status::{CapStatus, HostStatus, VolumeStatus, allowed_now};

/// A limit, with the burst above it.
#[derive(Debug, Clone, PartialEq)]
pub struct CapUse {
    /// The cap, as in the time waited.
    pub cap: String,
    /// The limit that holds without burst credits.
    pub sustained: u64,
    /// The limit of a burst.
    pub burst: Option<u64>,
    /// The limit of the next second.
    pub now: u64,
    /// Operations or bytes per second; `None` if the server does not count them.
    pub used: Option<f64>,
    /// Set if `used` is an estimate.
    pub is_estimate: bool,
    /// The part of the burst credits that is left, from 0 to 1.
    pub credits: Option<f64>,
    /// Seconds until the credits are used up at the present rate; `None` if they are not spent.
    pub credits_last_s: Option<f64>,
}

impl CapUse {
    /// Returns the used part of what the limit allows now.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        self.used.filter(|_| self.now > 0).map(|used| used / float(self.now))
    }
}

/// Operations and bytes of an interval that passed limits.
#[derive(Debug, Clone, Copy, Default)]
struct Passed {
    operations: u64,
    bytes: u64,
    /// The written part of `operations`.
    written_operations: u64,
    written_bytes: u64,
    is_estimate: bool,
    /// Requests were split or merged, so which operations were reads is not known.
    is_mixed: bool,
}

impl Passed {
    /// Returns what passed the limits of a volume.
    fn disk(old: &VolumeStatus, new: &VolumeStatus) -> Self {
        let since = |count: fn(&VolumeStatus) -> u64| count(new).saturating_sub(count(old));
        let (reads, hits) = (since(|v| v.reads), since(|v| v.hits));
        let (read, written) = (since(|v| v.read_bytes), since(|v| v.write_bytes));
        let is_written_back = new.cache == "read-write";
        // A cache of whole blocks serves small and large reads alike.
        let missed = match reads {
            0 => read,
            reads => {
                let share = u128::from(reads.saturating_sub(hits)) * u128::from(read);
                u64::try_from(share / u128::from(reads)).unwrap_or(read)
            }
        };
        let written = if is_written_back { since(|v| v.written_back_bytes) } else { written };
        let operations = since(|v| v.counted);
        Self {
            operations,
            bytes: missed + written,
            written_operations: operations.saturating_sub(reads.saturating_sub(hits)),
            written_bytes: written,
            is_mixed: operations != reads.saturating_sub(hits) + since(|v| v.writes + v.discards),
            is_estimate: hits > 0 || is_written_back,
        }
    }

    /// Returns what passed the limits that the host cache and local disks share.
    fn cached(old: &VolumeStatus, new: &VolumeStatus) -> Self {
        let is_cached = new.is_local || new.cache != "none";
        let since = |count: fn(&VolumeStatus) -> u64| count(new).saturating_sub(count(old));
        match is_cached {
            // A large request counts as several operations, which only the disk's limit counts.
            true => Self {
                operations: since(VolumeStatus::operations),
                bytes: since(VolumeStatus::bytes),
                is_estimate: true,
                ..Self::default()
            },
            false => Self::default(),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            operations: self.operations + other.operations,
            bytes: self.bytes + other.bytes,
            written_operations: self.written_operations + other.written_operations,
            written_bytes: self.written_bytes + other.written_bytes,
            is_estimate: self.is_estimate || other.is_estimate,
            is_mixed: self.is_mixed || other.is_mixed,
        }
    }
}

/// Returns the limits of a volume: operations, then bytes.
#[must_use]
pub fn of_volume(old: &VolumeStatus, new: &VolumeStatus, seconds: f64) -> Vec<CapUse> {
    let passed = Passed::disk(old, new);
    let operations = new.limit_iops.map(|limit| CapUse {
        cap: "disk_iops".to_owned(),
        sustained: limit,
        burst: new.burst_iops,
        now: new.iops_now().unwrap_or(limit),
        used: per_s(passed.operations, seconds),
        is_estimate: false,
        credits: part(new.credits_operations, new.full_operations),
        credits_last_s: lasts(old.credits_operations, new.credits_operations, seconds),
    });
    let bytes = new.limit_bytes_per_s.map(|limit| CapUse {
        cap: "disk_bytes".to_owned(),
        sustained: limit,
        burst: new.burst_bytes_per_s,
        now: new.bytes_per_s_now().unwrap_or(limit),
        used: per_s(passed.bytes, seconds),
        is_estimate: passed.is_estimate,
        credits: part(new.credits_bytes, new.full_bytes),
        credits_last_s: lasts(old.credits_bytes, new.credits_bytes, seconds),
    });
    operations.into_iter().chain(bytes).collect()
}

/// Returns the limits of a host.
#[must_use]
pub fn of_host(old: &HostStatus, new: &HostStatus, seconds: f64) -> Vec<CapUse> {
    let zero = VolumeStatus::default();
    let sum = |of: fn(&VolumeStatus, &VolumeStatus) -> Passed| {
        let passed = new.volumes.iter().map(|volume| {
            let before = old.volumes.iter().find(|own| own.name == volume.name);
            of(before.unwrap_or(&zero), volume)
        });
        passed.fold(Passed::default(), Passed::plus)
    };
    let remote = |old: &VolumeStatus, new: &VolumeStatus| match new.is_local {
        true => Passed::default(),
        false => Passed::disk(old, new),
    };
    let (mut uncached, cached) = (sum(remote), sum(Passed::cached));
    let Passed { written_operations, written_bytes, .. } = uncached;
    let is_separate = new.caps.iter().any(|cap| cap.cap.starts_with("host_write_"));
    let is_mixed = is_separate && uncached.is_mixed;
    if is_separate {
        uncached.operations -= written_operations;
        uncached.bytes -= written_bytes;
    }
    let burst_of = |cap: &CapStatus| {
        let (front, kind) = cap.cap.rsplit_once('_')?;
        let name = format!("{front}_burst_{kind}");
        new.caps.iter().find(|own| own.cap == name).map(|own| own.limit)
    };
    let sustained = new.caps.iter().filter(|cap| !cap.cap.contains("_burst_"));
    sustained
        .map(|cap| {
            let burst = burst_of(cap);
            let (used, is_estimate) = match cap.cap.as_str() {
                "host_uncached_iops" => (Some(uncached.operations), is_mixed),
                "host_uncached_bytes" => (Some(uncached.bytes), uncached.is_estimate),
                "host_write_iops" => (Some(written_operations), is_mixed),
                "host_write_bytes" => (Some(written_bytes), uncached.is_estimate),
                "host_cached_iops" => (Some(cached.operations), cached.is_estimate),
                "host_cached_bytes" => (Some(cached.bytes), false),
                // The log rate: which volumes hold logs is not in a reading.
                _ => (None, false),
            };
            let before = old.caps.iter().find(|own| own.cap == cap.cap);
            CapUse {
                cap: cap.cap.clone(),
                sustained: cap.limit,
                burst,
                now: allowed_now(Some(cap.limit), burst, cap.credits).unwrap_or(cap.limit),
                used: used.and_then(|used| per_s(used, seconds)),
                is_estimate,
                credits: part(cap.credits, cap.full),
                credits_last_s: lasts(before.and_then(|cap| cap.credits), cap.credits, seconds),
            }
        })
        .collect()
}

fn per_s(count: u64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| float(count) / seconds)
}

/// Returns the time until credits are used up, if they became fewer.
fn lasts(old: Option<u64>, new: Option<u64>, seconds: f64) -> Option<f64> {
    let spent = old?.checked_sub(new?).filter(|spent| *spent > 0)?;
    Some(float(new?) * seconds / float(spent))
}

fn part(left: Option<u64>, full: Option<u64>) -> Option<f64> {
    full.filter(|full| *full > 0).map(|full| float(left.unwrap_or(0)) / float(full))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(cache: &str, reads: u64, hits: u64, counted: u64) -> VolumeStatus {
        VolumeStatus {
            name: cache.into(),
            cache: cache.into(),
            limit_iops: Some(500),
            burst_iops: Some(3_500),
            credits_operations: Some(1_000),
            full_operations: Some(4_000),
            limit_bytes_per_s: Some(100_000_000),
            reads,
            hits,
            counted,
            read_bytes: reads << 20,
            writes: 10,
            write_bytes: 10 << 20,
            ..VolumeStatus::default()
        }
    }

    fn used(caps: &[CapUse]) -> Vec<(&str, Option<u64>, bool)> {
        let whole = weir_report::number::whole;
        caps.iter().map(|cap| (cap.cap.as_str(), cap.used.map(whole), cap.is_estimate)).collect()
    }

    #[test]
    fn a_large_request_uses_several_operations_of_a_disk() {
        let caps = of_volume(&volume("none", 0, 0, 0), &volume("none", 100, 0, 400), 2.0);
        assert_eq!(
            used(&caps),
            [("disk_iops", Some(200), false), ("disk_bytes", Some(50 << 20), false)]
        );
        assert_eq!((caps[0].sustained, caps[0].burst, caps[0].now), (500, Some(3_500), 1_500));
        assert_eq!(
            (caps[1].sustained, caps[1].burst, caps[1].now),
            (100_000_000, None, 100_000_000)
        );
        assert_eq!((caps[0].credits, caps[1].credits), (Some(0.25), None));
        assert_eq!(caps[0].credits_last_s, None);
        let mut less = volume("none", 100, 0, 400);
        less.credits_operations = Some(600);
        let caps = of_volume(&volume("none", 0, 0, 0), &less, 2.0);
        assert_eq!((caps[0].credits_last_s, caps[0].now), (Some(3.0), 1_100));
        let caps = of_volume(&volume("none", 0, 0, 0), &volume("none", 100, 0, 400), 2.0);
        assert!((caps[0].share().expect("a share") - 200.0 / 1_500.0).abs() < 1e-9);
        // Two readings of one instant have no rates.
        let same = of_volume(&volume("none", 0, 0, 0), &volume("none", 0, 0, 0), 0.0);
        assert_eq!(same[0].share(), None);
    }

    #[test]
    fn hits_use_the_limits_of_the_cache_and_not_of_the_disk() {
        let (old, new) = (volume("read-only", 0, 0, 0), volume("read-only", 100, 75, 100));
        let caps = of_volume(&old, &new, 1.0);
        assert_eq!(
            used(&caps),
            [("disk_iops", Some(100), false), ("disk_bytes", Some(25 << 20), true)]
        );
        let mut local = volume("none", 1_000, 0, 1_000);
        local.is_local = true;
        let cap = |name: &str, limit| CapStatus { cap: name.into(), limit, ..CapStatus::default() };
        let names = [
            "log_rate",
            "host_uncached_iops",
            "host_uncached_burst_iops",
            "host_uncached_bytes",
            "host_cached_iops",
            "host_cached_bytes",
        ];
        let caps = names.map(|name| cap(name, if name.contains("burst") { 9_000 } else { 6_000 }));
        let host = |volumes| HostStatus { volumes, caps: caps.to_vec(), ..HostStatus::default() };
        let before =
            host(vec![old, VolumeStatus { name: "none".into(), ..volume("none", 0, 0, 0) }]);
        let all = of_host(&before, &host(vec![new, local]), 1.0);
        let expect = [
            ("log_rate", None, false),
            ("host_uncached_iops", Some(100), false),
            ("host_uncached_bytes", Some(25 << 20), true),
            ("host_cached_iops", Some(1_100), true),
            ("host_cached_bytes", Some(1_100 << 20), false),
        ];
        assert_eq!(used(&all), expect);
        // A burst without credits is one on demand.
        assert_eq!((all[1].sustained, all[1].burst, all[1].now), (6_000, Some(9_000), 9_000));
    }

    #[test]
    fn limits_of_reads_and_has_separate_writes_are_used_by_their_own() {
        let names =
            ["host_uncached_iops", "host_uncached_bytes", "host_write_iops", "host_write_bytes"];
        let cap = |name: &str| CapStatus { cap: name.into(), limit: 100, ..CapStatus::default() };
        let host = |volume| HostStatus {
            volumes: vec![volume],
            caps: names.map(cap).to_vec(),
            ..HostStatus::default()
        };
        let mut new = volume("none", 40, 0, 100);
        (new.writes, new.write_bytes) = (70, 16 << 20);
        let all = of_host(&host(volume("none", 0, 0, 0)), &host(new), 1.0);
        let expect = [
            ("host_uncached_iops", Some(40), false),
            ("host_uncached_bytes", Some(40 << 20), false),
            ("host_write_iops", Some(60), false),
            ("host_write_bytes", Some(6 << 20), false),
        ];
        assert_eq!(used(&all), expect);
        // Where requests are merged, the parts of reads and writes are estimates.
        let mut merged = volume("none", 40, 0, 90);
        (merged.writes, merged.write_bytes) = (70, 16 << 20);
        let all = of_host(&host(volume("none", 0, 0, 0)), &host(merged), 1.0);
        assert_eq!(used(&all)[2], ("host_write_iops", Some(50), true));
    }
}
