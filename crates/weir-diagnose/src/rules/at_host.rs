//! A machine at its limits to remote storage, or at those of its cache.

use super::rule::{Candidate, Rule, source};
use super::stores;
use super::throttled::{Throttled, finding, host_of, throttled_by, with};
use crate::case::{Case, amount};
use crate::change::Change;
use crate::system::{CacheMode, Host, Limit};
use crate::verdict::CapWait;
use std::collections::BTreeMap;
use weir_catalog::HostSize;
use weir_core::Cap as Kind;
use weir_report::diagnosis::Group;
use weir_report::number::float;

/// To remote storage.
pub(super) const UNCACHED: Rule = Rule {
    id: 104,
    name: "host-uncached",
    group: Group::Throttling,
    priority: 10,
    source: source::PREMIUM,
    finds: "the machine is throttled by its limit on remote storage, although its disks could do more",
    find: |case, rule| find(case, rule, is_uncached),
};

/// The limits of the cache.
pub(super) const CACHED: Rule = Rule {
    id: 105,
    name: "host-cached",
    group: Group::Throttling,
    priority: 10,
    source: source::PREMIUM,
    finds: "the machine is throttled by the limit of its cache and local SSD",
    find: |case, rule| find(case, rule, is_cached),
};

const fn is_uncached(kind: Kind) -> bool {
    let is_burst = matches!(kind, Kind::HostUncachedBurstIops | Kind::HostUncachedBurstBytes);
    is_burst || stores::is_uncached(kind)
}

const fn is_cached(kind: Kind) -> bool {
    let is_burst = matches!(kind, Kind::HostCachedBurstIops | Kind::HostCachedBurstBytes);
    is_burst || stores::is_cached(kind)
}

fn find(case: &Case<'_>, rule: &Rule, is: fn(Kind) -> bool) -> Vec<Candidate> {
    let mut by_cap: BTreeMap<usize, Vec<Throttled<'_>>> = BTreeMap::new();
    for subjects in throttled_by(case, |_, wait: &CapWait| is(wait.kind)) {
        by_cap.entry(subjects.1.cap).or_default().push(subjects);
    }
    by_cap
        .into_iter()
        .filter_map(|(cap, subjects)| check_host(case, rule, cap, &subjects))
        .collect()
}

fn check_host(
    case: &Case<'_>,
    rule: &Rule,
    cap: usize,
    subjects: &[Throttled<'_>],
) -> Option<Candidate> {
    let index = host_of(case, cap)?;
    let host = &case.system.hosts[index];
    let mut finding = finding(case, rule, host.name.clone(), subjects)?;
    let own = &case.system.caps[cap];
    let disks = case.system.disks.iter().filter(|disk| disk.host == Some(index) && !disk.is_local);
    let limits = disks.filter_map(|disk| match own.counts_bytes() {
        true => disk.limits.bytes,
        false => disk.limits.iops,
    });
    let sum: f64 = limits.map(|limit| limit.rate).sum();
    if sum > own.limit.rate {
        let (disks, host) =
            (amount(own.counts_bytes(), sum), amount(own.counts_bytes(), own.limit.rate));
        finding.evidence.push(format!("its disks together: {disks}; the machine: {host}"));
    }
    let is_peak = subjects.first().is_some_and(|(_, wait)| wait.kind.is_burst());
    let (mut action, change) = larger(case, host, own.kind, own.limit, is_peak);
    if is_cached(own.kind) {
        let writes =
            subjects.iter().any(|(judged, _)| judged.facts.read_share().is_some_and(|r| r < 0.5));
        if writes {
            action += "; disable the cache of disks that are mostly written: writes count against its \
                       limit and gain nothing";
        }
    } else if subjects.iter().any(|(judged, _)| is_read_uncached(case, judged)) {
        action += "; reads that are served by the host cache do not count against this limit";
    }
    Some(with(finding, subjects, (action, change)))
}

fn is_read_uncached(case: &Case<'_>, judged: &crate::case::JudgedSubject<'_>) -> bool {
    let disks = case.system.disks_of(judged.subject.id);
    let is_uncached = disks.iter().all(|disk| case.system.disks[*disk].cache == CacheMode::None);
    is_uncached && judged.facts.read_share().is_some_and(|share| share > 0.5)
}

/// Returns the smallest machine with a higher limit, preferably of the same series.
pub(super) fn larger(
    case: &Case<'_>,
    host: &Host,
    kind: Kind,
    limit: Limit,
    is_peak: bool,
) -> (String, Option<Change>) {
    let plain = || ("use a machine with a higher limit, or reduce the load".to_owned(), None);
    let (Some(edition), Some(size)) = (case.edition, host.size.as_deref()) else {
        return plain();
    };
    let Ok(now) = edition.host(size) else { return plain() };
    let of = |size: &HostSize| {
        let limits = if is_cached(kind) { size.cached.as_ref() } else { size.uncached.as_ref() };
        let limits = limits?;
        let lasting = (limits.iops, limits.throughput);
        let peak = limits.burst.filter(|_| is_peak).map(|burst| (burst.iops, burst.throughput));
        let (iops, throughput) = peak.unwrap_or(lasting);
        Some(match kind {
            kind if kind.counts_bytes() => float(throughput.get()),
            _ => float(iops.get()),
        })
    };
    let now_is = if is_peak { limit.peak() } else { limit.rate };
    let series = edition.series_of(now).map(|series| series.name.clone());
    let better: Vec<(&HostSize, f64)> = edition
        .hosts()
        .filter(|size| edition.series_of(size).map(|series| series.name.clone()) == series)
        .filter_map(|size| Some((size, of(size)?)))
        .filter(|(_, own)| *own > now_is * 1.001)
        .collect();
    let least = better.into_iter().min_by(|one, other| one.1.total_cmp(&other.1));
    let Some((size, own)) = least else { return plain() };
    let is_bytes = kind.counts_bytes();
    let burst = if is_peak { " during bursts" } else { "" };
    let name = size.name.clone();
    let change = case.layout.map(|_| Change::HostSize { host: host.name.clone(), size: name });
    let action = format!(
        "use a {} (this limit: {}{burst}), or distribute the load over several machines",
        size.name,
        amount(is_bytes, own)
    );
    (action, change)
}
