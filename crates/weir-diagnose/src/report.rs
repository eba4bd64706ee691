//! Builds the report of a case.

pub(crate) mod groups;

use crate::case::{Case, JudgedSubject, basis_words};
use crate::gauged::Gauges;
use crate::rules::{BLIND, Candidate};
use crate::seconds::at_s;
use crate::system::{Owner, SubjectId};
use crate::verdict::{NOTED, WaitTimes};
use std::collections::BTreeMap;
use weir_report::diagnosis::{
    CapReport, DiagnosisReport, Finding, Group, PlotReport, SubjectReport, VerdictName,
};
use weir_report::number::{percent, time};

/// Maximum number of plots.
const PLOTS: usize = 24;

/// Builds the report of a case and its findings.
#[must_use]
pub fn report(case: &Case<'_>, found: Vec<Candidate>) -> DiagnosisReport {
    let findings = groups::grouped(found);
    let verdict = verdict(case, &findings);
    let span = case.facts.span.unwrap_or_default();
    DiagnosisReport {
        verdict,
        summary: summary(case, verdict, &findings),
        inputs: Vec::new(),
        span_s: (at_s(span.0), at_s(span.1)),
        samples: case.facts.samples,
        interval_s: case.facts.interval_s,
        limits_source: String::new(),
        caps: caps(case),
        subjects: subjects(case),
        notes: notes(case),
        plots: plots(case),
        findings,
    }
}

fn verdict(case: &Case<'_>, findings: &[Finding]) -> VerdictName {
    // Neither latencies nor limits nor the platform's own shares of its limits are known.
    let is_dark = !case.system.has_limits()
        && !Gauges::find(case).is_some_and(|gauges| gauges.show_room())
        && case.named().all(|judged| judged.facts.latency_ns().is_none_or(|ns| ns <= 0.0));
    let any = |group: Group| findings.iter().any(|finding| finding.group == group);
    let is_blind = findings.iter().any(|f| f.group == Group::Evidence && f.priority <= BLIND);
    match () {
        () if any(Group::Throttling) => VerdictName::Throttled,
        () if any(Group::NotTheStorage) => VerdictName::NotTheStorage,
        () if is_blind || is_dark => VerdictName::NotEnoughEvidence,
        () => VerdictName::Healthy,
    }
}

/// Multiple of the edition's latency from which on the summary mentions a medium.
const SLOWER: f64 = 1.5;

/// Unexplained share of the latency from which on the summary mentions it.
const STRANGE: f64 = 0.2;

fn summary(case: &Case<'_>, verdict: VerdictName, findings: &[Finding]) -> String {
    let first = |group: Group| {
        let own = findings.iter().find(|finding| finding.group == group);
        own.map(|finding| finding.finding.clone()).unwrap_or_default()
    };
    let gauges = Gauges::find(case);
    let episode = findings.iter().find(|own| own.rule == "short-episode");
    if let Some(episode) = episode.filter(|_| verdict == VerdictName::Healthy) {
        return format!("no limit throttles requests on the whole, but {}", episode.finding);
    }
    match verdict {
        // The first has the longest wait time.
        VerdictName::Throttled => first(Group::Throttling),
        VerdictName::NotTheStorage => first(Group::NotTheStorage),
        VerdictName::NotEnoughEvidence => {
            let evidence = findings.iter().find(|own| own.group == Group::Evidence);
            match (evidence, &gauges) {
                (Some(own), _) if own.priority <= BLIND => own.finding.clone(),
                (_, Some(gauges)) => without_gauges(gauges),
                (Some(own), None) => own.finding.clone(),
                (None, None) if case.named().next().is_none() => {
                    "no disk and no file was observed: import an observation of them, for example of iostat -x"
                        .to_owned()
                }
                (None, None) => {
                    "neither latencies nor limits are known: observe latencies, or state limits with \
                     --layout or --edition"
                        .to_owned()
                }
            }
        }
        VerdictName::Healthy
            if !case.system.has_limits() && gauges.as_ref().is_some_and(Gauges::show_room) =>
        {
            let most = percent(gauges.map_or(0.0, |gauges| gauges.most));
            format!("no limit throttles requests: metrics of the cloud show at most {most} of one")
        }
        VerdictName::Healthy if !case.system.has_limits() => {
            let slowest = case.named().filter_map(|judged| judged.facts.latency_ns());
            let slowest = slowest.fold(0.0, f64::max);
            format!(
                "no sign of throttling (the highest mean latency is {}), but no limit is known to compare with",
                time(slowest)
            )
        }
        VerdictName::Healthy => {
            // Upper bounds due to unknown cache hits do not count.
            let known = case.facts.caps.iter().filter(|cap| !cap.is_bound);
            let most = known.map(|cap| cap.used.max().min(1.0));
            let most = percent(most.fold(0.0, f64::max));
            let highest = |of: fn(&WaitTimes) -> f64, least: f64| {
                let all = case.named().map(|judged| (of(judged.waited), judged.name(case)));
                let highest = all.max_by(|one, other| one.0.total_cmp(&other.0));
                highest.filter(|(own, _)| *own >= least)
            };
            let more = if let Some((times, name)) = highest(|own| own.medium_ratio, SLOWER) {
                format!("; the unloaded latency of {name} is {times:.1} times that of the edition")
            } else if let Some((share, name)) = highest(WaitTimes::unexplained_share, STRANGE) {
                format!("; no limit explains {} of the latency of {name}", percent(share))
            } else if let Some((share, name)) = highest(WaitTimes::all_share, NOTED) {
                format!(", and waits at limits are {} of the latency of {name}", percent(share))
            } else {
                ", and latency is that of the unloaded storage".to_owned()
            };
            format!("no limit throttles requests: the highest utilisation is {most}{more}")
        }
    }
}

/// Says why the platform's own metrics do not show that nothing is throttled.
fn without_gauges(gauges: &Gauges) -> String {
    const MOST: usize = 4;
    let most = percent(gauges.most);
    let Gauges { missing, .. } = gauges;
    if missing.is_empty() {
        return format!(
            "metrics of the cloud show at most {most} of a limit, and wait times are unknown: observe \
             latencies, or state limits with --layout or --edition"
        );
    }
    let first = missing.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    let more = match missing.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "metrics of the cloud show at most {most} of a limit, and none for {first}{more}: observe these \
         metrics or latencies, or state limits with --layout or --edition"
    )
}

fn caps(case: &Case<'_>) -> Vec<CapReport> {
    let mut waited: BTreeMap<usize, f64> = BTreeMap::new();
    for judged in case.named() {
        for wait in &judged.waited.waits {
            *waited.entry(wait.cap).or_default() += wait.wait_ns;
        }
    }
    let all = case.system.caps.iter().zip(&case.facts.caps).enumerate();
    let used = all.filter(|(_, (_, facts))| facts.samples > 0);
    let mut caps: Vec<CapReport> = used
        .map(|(index, (cap, facts))| CapReport {
            cap: cap.kind.name().to_owned(),
            owner: case.system.owner_name(cap).to_owned(),
            limit: facts.limit,
            is_bytes: cap.counts_bytes(),
            mean: facts.rate.mean().unwrap_or(0.0),
            p99: facts.rate.quantile(0.99),
            max: facts.rate.max(),
            near_limit_count: facts.near_limit_samples,
            samples: facts.samples,
            near_limit_share: facts.near_limit_s / facts.seconds.max(1e-9),
            wait_ns: waited.get(&index).copied().unwrap_or(0.0),
            is_upper_bound: facts.is_bound,
        })
        .collect();
    caps.sort_by(|one, other| other.wait_ns.total_cmp(&one.wait_ns));
    caps
}

fn subjects(case: &Case<'_>) -> Vec<SubjectReport> {
    let mut all: Vec<(f64, SubjectReport)> = case
        .named()
        .map(|judged| {
            let disk = case.system.disks_of(judged.subject.id).first().copied();
            let report = SubjectReport {
                name: judged.name(case),
                kind: match judged.subject.id {
                    SubjectId::File(_) => "file",
                    SubjectId::Disk(_) => "disk",
                    SubjectId::Stripe(_) => "stripe",
                },
                tier: disk.and_then(|disk| case.system.disks[disk].tier.clone()),
                iops: judged.facts.iops.mean(),
                bytes_per_s: judged.facts.bytes.mean(),
                latency_ns: judged.facts.latency_ns(),
                unloaded_latency_ns: judged.waited.unloaded_ns,
                wait_share: wait_share(&judged),
                cap: judged.waited.throttled().map(|wait| wait.kind.name().to_owned()),
                basis: basis_words(judged.waited.basis),
            };
            (wait_ns(&judged), report)
        })
        .collect();
    all.sort_by(|one, other| other.0.total_cmp(&one.0));
    all.into_iter().map(|(_, report)| report).collect()
}

/// Returns the wait time at limits or in queues of a governor, in nanoseconds.
fn wait_ns(judged: &JudgedSubject<'_>) -> f64 {
    let at_limits = judged.waited.wait_ns();
    let total = &judged.facts.total;
    let queued = total.queued_read_ns.unwrap_or(0.0) + total.queued_write_ns.unwrap_or(0.0);
    if judged.facts.has_queue_times { at_limits.max(queued) } else { at_limits }
}

/// Returns the share of wait time in the latency. Queue times of a governor are known without
/// limits; without either, the share is unknown.
fn wait_share(judged: &JudgedSubject<'_>) -> Option<f64> {
    let total = &judged.facts.total;
    let queued = total.queued_read_ns.unwrap_or(0.0) + total.queued_write_ns.unwrap_or(0.0);
    match total.ns.filter(|ns| judged.facts.has_queue_times && *ns > 0.0) {
        Some(ns) => Some((queued / ns).min(1.0)),
        None => (!judged.subject.path.is_empty()).then(|| judged.waited.all_share()),
    }
}

fn notes(case: &Case<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    if case.facts.restarts > 0 {
        notes.push(format!(
            "counters decreased {} times, as after a restart; the time between two such values is left out",
            case.facts.restarts
        ));
    }
    notes
}

fn plots(case: &Case<'_>) -> Vec<PlotReport> {
    let mut named: Vec<_> = case.named().collect();
    named.sort_by(|one, other| {
        wait_ns(other)
            .total_cmp(&wait_ns(one))
            .then(other.facts.seconds().total_cmp(&one.facts.seconds()))
    });
    let plot = |judged: JudgedSubject<'_>| {
        let limit = |is_bytes: bool| {
            let own = judged.subject.path.iter().map(|counts| &case.system.caps[counts.cap]);
            let own = own.filter(|cap| {
                matches!(cap.owner, Owner::Disk(_)) && cap.counts_bytes() == is_bytes
            });
            let sum: f64 = own.map(|cap| cap.limit.rate).sum();
            (sum > 0.0).then_some(sum)
        };
        PlotReport {
            name: judged.name(case),
            iops: judged.facts.over_time.iops.iter().collect(),
            bytes_per_s: judged.facts.over_time.bytes.iter().collect(),
            latency_ms: judged.facts.over_time.latency_ms.iter().collect(),
            iops_limit: limit(false),
            bytes_per_s_limit: limit(true),
        }
    };
    named.into_iter().take(PLOTS).map(plot).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed::{EntityLoad, TestBed, with_case};
    use weir_observe::metric as m;

    fn diagnosed(bed: TestBed) -> DiagnosisReport {
        with_case(bed, report)
    }

    #[test]
    fn shares_of_limits_that_the_platform_reports_are_evidence_of_health() {
        let idle = TestBed::bare().host_gauge(m::DATA_IO_SHARE, 0.03);
        let idle = diagnosed(idle.host_gauge(m::LOG_WRITE_SHARE, 0.01));
        assert_eq!(idle.verdict, VerdictName::Healthy);
        assert!(idle.summary.contains("show at most 3.0 % of one"), "{}", idle.summary);
        assert_eq!(diagnosed(TestBed::bare().cpu(0.1)).verdict, VerdictName::NotEnoughEvidence);
    }

    #[test]
    fn a_share_near_a_limit_is_no_evidence_of_health() {
        let near = TestBed::bare().disk("d", EntityLoad::reads(500.0).untimed());
        let report = diagnosed(near.disk_gauge("d", m::IOPS_SHARE, 0.985));
        assert_eq!(report.verdict, VerdictName::NotEnoughEvidence, "{}", report.summary);
    }

    #[test]
    fn a_gauge_of_another_limit_is_no_evidence_of_health() {
        let disk = || TestBed::bare().disk("d", EntityLoad::reads(500.0).untimed());
        let cached = diagnosed(disk().host_gauge(m::CACHED_IOPS_SHARE, 0.03));
        assert_eq!(cached.verdict, VerdictName::NotEnoughEvidence, "{}", cached.summary);
        assert!(cached.summary.contains("the throughput limit of d"), "{}", cached.summary);
        let own = || {
            let own = disk().disk_gauge("d", m::IOPS_SHARE, 0.1);
            own.disk_gauge("d", m::BYTES_SHARE, 0.1).host_gauge(m::UNCACHED_IOPS_SHARE, 0.1)
        };
        assert_eq!(diagnosed(own()).verdict, VerdictName::NotEnoughEvidence);
        let all = diagnosed(own().host_gauge(m::UNCACHED_BYTES_SHARE, 0.1));
        assert_eq!(all.verdict, VerdictName::Healthy, "{}", all.summary);
        // A second disk has gauges of its own.
        let other = own().host_gauge(m::UNCACHED_BYTES_SHARE, 0.1);
        let other = diagnosed(other.disk("e", EntityLoad::reads(500.0).untimed()));
        assert!(other.summary.contains("the throughput limit of e"), "{}", other.summary);
        // Latencies show by themselves that nothing waits, whatever the gauge is of.
        let timed = TestBed::bare().disk("d", EntityLoad::reads(500.0).ms(1.0));
        let timed = diagnosed(timed.host_gauge(m::CACHED_IOPS_SHARE, 0.03));
        assert!(timed.summary.contains("no limit is known"), "{}", timed.summary);
    }

    /// Bursts of 1 MiB requests on a stripe with a unit of 64 KiB, of which only the columns are
    /// observed. Operations of a column in a loop are not isolated: 16 pieces of a request arrive
    /// together.
    #[test]
    fn pieces_of_requests_to_a_stripe_are_not_isolated() {
        let layout = "edition = \"azure-premium-2015\"\nhost = { size = \"DS13\" }\n[[stripe]]\nname \
                      = \"pool\"\nunit = \"64 KiB\"\nvolumes = { count = 2, tier = \"P30\" }\n";
        let column = |second: u64| {
            let writes = [1_400.0, 1_700.0, 1_500.0][usize::try_from(second % 3).expect("small")];
            EntityLoad::writes(writes).kib(64.0).ms(183_000.0 / writes).busy_ms(750.0)
        };
        let bed = TestBed::layout(layout).disk_over("pool-0", column).disk_over("pool-1", column);
        let report = diagnosed(bed);
        // A medium that takes 119 ms would be the wrong conclusion.
        assert_eq!(report.verdict, VerdictName::NotEnoughEvidence, "{}", report.summary);
        assert!(
            report.summary.contains("uncached throughput limit, 256 MiB/s"),
            "{}",
            report.summary
        );
    }

    #[test]
    fn an_average_over_all_disks_is_no_gauge_of_each() {
        let bed = |name: &str| {
            let disk = TestBed::bare().disk(name, EntityLoad::reads(500.0).untimed());
            let disk =
                disk.disk_gauge(name, m::IOPS_SHARE, 0.1).disk_gauge(name, m::BYTES_SHARE, 0.1);
            let own = disk.host_gauge(m::UNCACHED_IOPS_SHARE, 0.1);
            own.host_gauge(m::UNCACHED_BYTES_SHARE, 0.1)
        };
        assert_eq!(diagnosed(bed("d")).verdict, VerdictName::Healthy);
        let averaged = diagnosed(bed("data disks").all_disks("data disks"));
        assert_eq!(averaged.verdict, VerdictName::NotEnoughEvidence, "{}", averaged.summary);
        assert!(averaged.summary.contains("split their metrics by LUN"), "{}", averaged.summary);
    }

    #[test]
    fn rates_without_counters_are_unknown() {
        let untimed = diagnosed(TestBed::bare().disk("d", EntityLoad::reads(5.0)).seconds(0));
        assert_eq!((untimed.subjects[0].iops, untimed.subjects[0].bytes_per_s), (None, None));
        let without = TestBed::bare().disk("d", EntityLoad::reads(5.0)).without("read_bytes");
        let report = diagnosed(without.without("write_bytes"));
        assert!(report.subjects[0].iops.is_some_and(|iops| (iops - 5.0).abs() < 0.1));
        assert_eq!(report.subjects[0].bytes_per_s, None);
    }
}
