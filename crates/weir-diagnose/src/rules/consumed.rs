//! A cloud's own metric that says that a limit is used up.

use super::rule::{Candidate, Rule, source};
use super::signs::{NOTABLE, entity_name};
use crate::case::{Case, JudgedSubject};
use crate::follow::Gauged;
use crate::verdict::Basis;
use weir_core::Cap as Kind;
use weir_observe::EntityKind;
use weir_observe::metric as m;
use weir_observe::metric::Metric;
use weir_report::diagnosis::{Confidence, Group};
use weir_report::number::{percent, time};

pub(super) const RULE: Rule = Rule {
    id: 108,
    name: "consumed",
    group: Group::Throttling,
    priority: 10,
    source: source::CLOUD,
    finds: "a metric of the cloud shows that a limit is reached, or nearly",
    find,
};

/// A limit that is near, but not used up, is no more urgent than others that are.
const NEARLY: u8 = 120;

/// A gauge, what it says is taken, the cap that it is of at a disk, and what people call it.
struct ConsumedMetric(Metric, Option<Kind>, &'static str, Reading);

#[derive(Clone, Copy, PartialEq)]
enum Reading {
    /// The part of the limit that is taken.
    Share,
    /// Set while the demand exceeds the limit.
    Exceeded,
}

const GAUGES: &[ConsumedMetric] = &[
    ConsumedMetric(m::IOPS_SHARE, Some(Kind::DiskIops), "IOPS limit", Reading::Share),
    ConsumedMetric(m::BYTES_SHARE, Some(Kind::DiskBytes), "throughput limit", Reading::Share),
    ConsumedMetric(
        m::UNCACHED_IOPS_SHARE,
        Some(Kind::HostUncachedIops),
        "uncached IOPS limit",
        Reading::Share,
    ),
    ConsumedMetric(
        m::UNCACHED_BYTES_SHARE,
        Some(Kind::HostUncachedBytes),
        "uncached throughput limit",
        Reading::Share,
    ),
    ConsumedMetric(
        m::CACHED_IOPS_SHARE,
        Some(Kind::HostCachedIops),
        "cached IOPS limit",
        Reading::Share,
    ),
    ConsumedMetric(
        m::CACHED_BYTES_SHARE,
        Some(Kind::HostCachedBytes),
        "cached throughput limit",
        Reading::Share,
    ),
    ConsumedMetric(m::DATA_IO_SHARE, None, "data I/O limit", Reading::Share),
    ConsumedMetric(m::LOG_WRITE_SHARE, Some(Kind::LogRate), "log rate limit", Reading::Share),
    ConsumedMetric(m::IOPS_EXCEEDED, Some(Kind::DiskIops), "IOPS limit", Reading::Exceeded),
    ConsumedMetric(m::BYTES_EXCEEDED, Some(Kind::DiskBytes), "throughput limit", Reading::Exceeded),
];

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let of = |gauge: &Gauged| {
        let says = GAUGES.iter().find(|says| says.0.name == gauge.metric)?;
        match says.3 {
            Reading::Share => taken(case, rule, gauge, says),
            Reading::Exceeded => exceeded(case, rule, gauge, says),
        }
    };
    case.facts.others.gauged.iter().filter_map(of).collect()
}

fn taken(case: &Case<'_>, rule: &Rule, gauge: &Gauged, says: &ConsumedMetric) -> Option<Candidate> {
    let (near, full) = (gauge.near_limit_share(), gauge.saturated_share());
    if near < NOTABLE {
        return None;
    }
    let is_full = full >= NOTABLE;
    let waits = waits_there(case, gauge);
    // If latencies show the waits, the rules of the limits report them.
    if is_full && waits == Some(true) {
        return None;
    }
    let is_idle = waits == Some(false);
    let subject = entity_name(case, gauge.entity);
    let words = says.2;
    let text = if is_full && is_idle {
        format!(
            "{subject} reached its {words} for {} of the time, and requests do not wait there",
            percent(full)
        )
    } else if is_full {
        format!("{subject} reached its {words} for {} of the time", percent(full))
    } else {
        format!(
            "{subject} is at 90 % or more of its {words} for {} of the time, but does not reach it",
            percent(near)
        )
    };
    let mut finding = rule.finding(subject, text);
    if !is_full || is_idle {
        finding.group = Group::Headroom;
        finding.priority = NEARLY;
    }
    finding.confidence = Confidence::High;
    finding.cap = cap_name(case, gauge, says);
    finding.evidence.push(format!(
        "{}: {} on average, {} at most over {}; {} of the time at 90 % or more, {} at 99 % or more",
        gauge.metric,
        percent(gauge.mean()),
        percent(gauge.max()),
        time(gauge.seconds * 1e9),
        percent(near),
        percent(full)
    ));
    finding.action = action(says, is_full && !is_idle);
    Some(finding.into())
}

/// Tells whether requests that pass the gauged limit are throttled; `None` where latencies or
/// limits are unknown: a cap that is not known cannot have been seen to hold nothing.
fn waits_there(case: &Case<'_>, gauge: &Gauged) -> Option<bool> {
    let host = case.system.hosts.iter().position(|host| host.entity == Some(gauge.entity));
    let passes = |judged: &JudgedSubject<'_>| match host {
        Some(_) => case.system.host_of(judged.subject.id) == host,
        None => judged.subject.entity == gauge.entity,
    };
    let passing = case.all().filter(|judged| {
        passes(judged) && judged.facts.total.operations.is_some_and(|operations| operations > 0.0)
    });
    let passing: Vec<JudgedSubject<'_>> = passing.collect();
    let is_known = !passing.is_empty()
        && passing.iter().all(|judged| {
            judged.waited.basis != Basis::Utilisation && judged.waited.latency_ns > 0.0
        })
        && passing.iter().all(|judged| !judged.subject.path.is_empty());
    is_known.then(|| {
        passing
            .iter()
            .any(|judged| judged.waited.throttled().is_some() || judged.waited.suspected.is_some())
    })
}

fn exceeded(
    case: &Case<'_>,
    rule: &Rule,
    gauge: &Gauged,
    says: &ConsumedMetric,
) -> Option<Candidate> {
    let share = gauge.mean();
    if share < NOTABLE {
        return None;
    }
    let subject = entity_name(case, gauge.entity);
    let text = format!(
        "the demand on {subject} exceeded its {} for {} of the time",
        says.2,
        percent(share)
    );
    let mut finding = rule.finding(subject, text);
    finding.confidence = Confidence::High;
    finding.cap = cap_name(case, gauge, says);
    finding.evidence.push(format!(
        "{}: true for {} of {}",
        gauge.metric,
        percent(share),
        time(gauge.seconds * 1e9)
    ));
    finding.action = action(says, true);
    Some(finding.into())
}

/// Returns the name of the cap, which depends on whether a disk or a machine has the gauge.
fn cap_name(case: &Case<'_>, gauge: &Gauged, says: &ConsumedMetric) -> Option<String> {
    let kind = case.contents.entity(gauge.entity).map(|entity| &entity.kind);
    let cap = match (kind, says.1?) {
        (Some(EntityKind::Host), Kind::DiskIops) => Kind::HostUncachedIops,
        (Some(EntityKind::Host), Kind::DiskBytes) => Kind::HostUncachedBytes,
        (_, cap) => cap,
    };
    Some(cap.name().to_owned())
}

fn action(says: &ConsumedMetric, is_full: bool) -> String {
    let more = match says.1 {
        Some(Kind::DiskIops | Kind::DiskBytes) => {
            "use a larger tier (az disk update --sku or --set tier=..), provision more, or stripe \
             over more disks"
        }
        Some(Kind::LogRate) => {
            "write less log, or use a larger service objective: a larger log file does not help"
        }
        None => "use a larger service objective, or read less",
        Some(_) => "use a larger machine, or move I/O elsewhere: larger or more disks do not help",
    };
    if is_full { more.to_owned() } else { format!("before the load grows, {more}") }
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};
    use weir_observe::metric::{self as m, Metric};
    use weir_report::diagnosis::{Confidence, Group};

    fn disk(measure: Metric, value: impl Fn(u64) -> f64 + 'static) -> TestBed {
        let bed = TestBed::bare().disk("data", EntityLoad::reads(100.0).untimed());
        bed.disk_gauge_over("data", measure, value)
    }

    #[test]
    fn consumed_limits_are_throttling() {
        let found = disk(m::IOPS_SHARE, |second| if second < 30 { 1.0 } else { 0.4 });
        let found = found.found("consumed");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!((finding.group, finding.priority), (Group::Throttling, 10));
        assert_eq!(
            (finding.cap.as_deref(), finding.confidence),
            (Some("disk_iops"), Confidence::High)
        );
        let host = TestBed::bare().host_gauge(m::UNCACHED_BYTES_SHARE, 1.0).found("consumed");
        assert_eq!(host[0].cap.as_deref(), Some("host_uncached_bytes"));
        let exceeded = TestBed::bare().host_gauge(m::IOPS_EXCEEDED, 0.3).found("consumed");
        assert_eq!(exceeded[0].cap.as_deref(), Some("host_uncached_iops"));
    }

    #[test]
    fn latencies_do_not_show_that_a_limit_is_free_where_no_limit_is_known() {
        let is_full = |second: u64| second % 60 >= 45;
        let does =
            move |second| EntityLoad::reads(500.0).ms(if is_full(second) { 12.8 } else { 2.0 });
        let share = move |second| if is_full(second) { 1.0 } else { 0.4 };
        let bed = TestBed::bare().seconds(600).disk_over("data", does);
        let found = bed.disk_gauge_over("data", m::IOPS_SHARE, share).found("consumed");
        assert_eq!(found[0].group, Group::Throttling, "{found:?}");
    }

    #[test]
    fn nearly_consumed_is_headroom() {
        let nearly = disk(m::BYTES_SHARE, |_| 0.95).found("consumed");
        assert_eq!((nearly[0].group, nearly[0].priority), (Group::Headroom, 120));
        assert!(!disk(m::BYTES_SHARE, |_| 0.89).finds("consumed"));
        // Two of sixty seconds.
        assert!(
            !disk(m::IOPS_SHARE, |second| if second < 2 { 1.0 } else { 0.4 }).finds("consumed")
        );
        assert!(
            !disk(m::IOPS_EXCEEDED, |second| if second < 2 { 1.0 } else { 0.0 }).finds("consumed")
        );
    }
}
