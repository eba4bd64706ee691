//! Functions that several rules need: high latency, throttling limits, earlier findings.

use super::throttled::throttled_by;
use crate::case::{Case, JudgedSubject};
use crate::verdict::{Basis, LEAST_LOST, THROTTLED};
use std::collections::BTreeSet;
use weir_observe::EntityId;

/// Without throttling, the latency of remote storage is 2 to 10 ms (article 000).
pub(super) const RAISED_NS: f64 = 10e6;

/// Latency from this multiple of the medium's on has another cause.
const TIMES_MEDIUM: f64 = 2.0;

/// The mean of fewer operations is chance.
pub(super) const FEW: f64 = 100.0;

/// A limit used to 90 % and more in fewer samples than this was touched, not used up.
pub(super) const NEAR_SAMPLES: u64 = 3;

/// Minimum share of samples near the limit.
pub(super) const NEAR_SHARE: f64 = 0.01;

/// The part of the time from which on something is no accident.
pub(super) const NOTABLE: f64 = 0.05;

/// Returns whether the latency of a subject is high.
pub(super) fn is_raised(judged: &JudgedSubject<'_>) -> bool {
    let waited = judged.waited;
    let is_felt = waited.latency_ns >= LEAST_LOST * judged.facts.seconds() * 1e9;
    if waited.operations < FEW || waited.latency_ns <= 0.0 || !is_felt {
        return false;
    }
    let mean = waited.latency_ns / waited.operations;
    let unloaded = waited.unloaded_ns.filter(|_| waited.basis == Basis::Medium).unwrap_or(0.0);
    let medium = unloaded / waited.medium_ratio;
    mean > RAISED_NS.max(TIMES_MEDIUM * medium)
}

/// Returns whether latencies of a subject are known.
pub(super) fn is_timed(judged: &JudgedSubject<'_>) -> bool {
    judged.waited.latency_ns > 0.0
}

/// Returns the limits that throttle a subject.
pub(super) fn throttling_caps(case: &Case<'_>) -> BTreeSet<usize> {
    let subjects = throttled_by(case, |_, _| true);
    let all = subjects.iter().flat_map(|(judged, first)| {
        let enough = judged.waited.waits.iter().filter(|wait| wait.share >= THROTTLED);
        enough.map(|wait| wait.cap).chain([first.cap])
    });
    all.collect()
}

/// Returns whether a limit was nearly reached in enough samples, and its use is exact.
pub(super) fn is_near(case: &Case<'_>, cap: usize) -> bool {
    let facts = &case.facts.caps[cap];
    let samples = weir_report::number::float(facts.samples.max(1));
    !facts.is_bound
        && facts.near_limit_samples >= NEAR_SAMPLES
        && weir_report::number::float(facts.near_limit_samples) >= NEAR_SHARE * samples
}

/// Returns the name of an entity; files are named with their database.
pub(super) fn entity_name(case: &Case<'_>, id: EntityId) -> String {
    let Some(entity) = case.contents.entity(id) else { return String::new() };
    let known = case.system.subjects.iter().find(|subject| subject.entity == id);
    known.map_or_else(|| entity.name.clone(), |subject| case.name(subject.id))
}

/// Lists the first names, and the number of others.
pub(super) fn names(names: &[String]) -> String {
    const MOST: usize = 4;
    let first = names.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};
    use weir_observe::metric as m;

    /// A machine that is well built and has room: disks that are quick, log and backups apart.
    const WELL: &str = "edition = \"azure-premium-2015\"\nhost = { size = \"DS14\" }\n[[volume]]\n\
        name = \"d\"\ntier = \"P30\"\ncache = \"read-only\"\n[[volume]]\nname = \"l\"\ntier = \"P30\"\n[[volume]]\n\
        name = \"b\"\ntier = \"P30\"\n[[file]]\nname = \"data\"\nrole = \"data\"\nsize = \"500 \
        GiB\"\non = \"d\"\n[[file]]\nname = \"log\"\nrole = \"log\"\nsize = \"99 GiB\"\non = \
        \"l\"\n[[file]]\nname = \"full\"\nrole = \"backup\"\nsize = \"500 GiB\"\non = \"b\"\n";

    /// Returns the rules that fire.
    fn rules(bed: TestBed) -> Vec<&'static str> {
        bed.findings().into_iter().map(|found| found.finding.rule).collect()
    }

    #[test]
    fn a_healthy_system_has_no_findings() {
        let busy = |second: u64| {
            let beat = weir_report::number::float(second % 7);
            EntityLoad::reads(900.0 + 60.0 * beat).and_writes(300.0).ms(1.6 + 0.05 * beat)
        };
        let bed = TestBed::layout(WELL)
            .disk_over("d", busy)
            .disk("l", EntityLoad::writes(800.0).kib(16.0).ms(1.5))
            .disk("b", EntityLoad::writes(0.0))
            .cpu(0.55)
            .wait("WRITELOG", 700.0)
            .wait("PAGEIOLATCH_SH", 900.0)
            .wait("LCK_M_X", 120.0)
            .wait("CXPACKET", 300.0)
            .wait("PAGELATCH_EX", 90.0)
            .wait("LAZYWRITER_SLEEP", 1000.0)
            .host_gauge(m::PAGE_LIFE_EXPECTANCY_S, 4000.0)
            .host_gauge(m::UNCACHED_IOPS_SHARE, 0.2)
            .host_gauge(m::BUFFER_HIT_SHARE, 0.99)
            .seconds(120);
        assert_eq!(rules(bed), [""; 0]);
    }

    #[test]
    fn an_idle_system_has_no_findings() {
        let bed = TestBed::layout(WELL)
            .disk("d", EntityLoad::writes(0.1))
            .disk("l", EntityLoad::writes(0.2));
        assert_eq!(rules(bed), [""; 0]);
    }
}
