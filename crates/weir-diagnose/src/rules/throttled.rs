//! Functions for rules on limits: throttled subjects, and the wording of findings.

use super::bought::more_of;
use super::rule::{Candidate, Rule};
use crate::case::{
    Case, JudgedSubject, amount, basis_words, cap_words, moments, size, unloaded_words,
};
use crate::change::Change;
use crate::follow::NEAR;
use crate::system::{Owner, SubjectId};
use crate::verdict::{CapWait, THROTTLED};
use weir_catalog::{Burst, BurstKind, Tier};
use weir_core::Cap as Kind;
use weir_report::diagnosis::Finding;
use weir_report::number::{float, percent, rate, time};
use weir_units::{BytesPerSec, Iops};

/// A throttled subject, with its wait time at a limit.
pub(super) type Throttled<'a> = (JudgedSubject<'a>, &'a CapWait);

/// Returns the subjects that are throttled by a limit that `is` selects: by wait time the first, or
/// at least a third of the latency.
pub(super) fn throttled_by<'a>(
    case: &Case<'a>,
    is: impl Fn(&Case<'a>, &CapWait) -> bool,
) -> Vec<Throttled<'a>> {
    let all = case.named().filter(|judged| judged.waited.throttled().is_some());
    let wait = |judged: JudgedSubject<'a>| {
        let first = judged.waited.waits.first()?;
        let own = judged.waited.waits.iter().filter(|wait| is(case, wait));
        // The longest wait time, or a sufficient share.
        let own = own.max_by(|one, other| one.wait_ns.total_cmp(&other.wait_ns))?;
        (own == first || own.share >= THROTTLED).then_some((judged, own))
    };
    let mut all: Vec<Throttled<'a>> = all.filter_map(wait).collect();
    all.sort_by(|one, other| other.1.wait_ns.total_cmp(&one.1.wait_ns));
    all
}

/// Builds a finding on the subjects that a limit throttles, by wait time.
pub(super) fn finding(
    case: &Case<'_>,
    rule: &Rule,
    subject: String,
    subjects: &[Throttled<'_>],
) -> Option<Finding> {
    let ((judged, wait), (cap, facts)) = (subjects.first()?, case.cap(subjects.first()?.1.cap));
    let is_bytes = cap.counts_bytes();
    let waited: f64 = subjects.iter().map(|(_, wait)| wait.wait_ns).sum();
    let latency: f64 = subjects.iter().map(|(judged, _)| judged.waited.latency_ns).sum();
    let operations: f64 = subjects.iter().map(|(judged, _)| judged.waited.operations).sum();
    let share = percent(waited / latency.max(1.0));
    let limit = limit_now(wait.kind, cap.limit.peak(), facts.limit);
    let words = cap_words(wait.kind);
    let mut finding = rule.finding(
        subject.clone(),
        format!(
            "{subject} is throttled by its {words}, {}{}: {share} of the latency is wait time",
            amount(is_bytes, limit),
            during(judged)
        ),
    );
    finding.cap = Some(wait.kind.name().to_owned());
    finding.limit = Some(limit);
    finding.is_bytes = is_bytes;
    finding.confidence = judged.waited.confidence;
    let per_operation = time(waited / operations.max(1.0));
    let all = time(latency / operations.max(1.0));
    finding.evidence.push(format!(
        "mean latency {all}, of which {per_operation} is wait time ({})",
        basis_words(judged.waited.basis)
    ));
    finding.evidence.push(used(wait.kind, is_bytes, limit, facts));
    finding.evidence.extend(unloaded_words(judged.waited));
    if subjects.len() > 1 {
        let names = subjects.iter().map(|(judged, wait)| {
            format!("{} ({} of its latency)", judged.name(case), percent(wait.share))
        });
        finding.evidence.push(format!("throttled: {}", names.collect::<Vec<_>>().join(", ")));
    }
    if wait.near_limit_s < 0.05 * judged.waited.seconds {
        finding.evidence.push(
            "bursts shorter than the sampling interval reach the limit; averages do not show them"
                .to_owned(),
        );
    }
    finding.moments = moments(case, judged, 3);
    finding.ruled_out = ruled_out(case, judged, wait);
    Some(finding)
}

/// Returns the duration in words, if it is not the whole observation.
fn during(judged: &JudgedSubject<'_>) -> String {
    match judged.waited.is_whole {
        true => String::new(),
        false => format!(
            ", for {} of {}",
            time(judged.waited.seconds * 1e9),
            time(judged.facts.seconds() * 1e9)
        ),
    }
}

fn limit_now(kind: Kind, peak: f64, limit: f64) -> f64 {
    if kind.is_burst() { peak } else { limit }
}

/// Returns the use of a limit, with the counts of the authors of article 000.
fn used(kind: Kind, is_bytes: bool, limit: f64, facts: &crate::follow::CapFacts) -> String {
    let mean = facts.rate.mean().unwrap_or(0.0);
    let name = if is_bytes { "ThroughputNearLimitCount" } else { "IOPSNearLimitCount" };
    let bound = if facts.is_bound { "at most " } else { "" };
    format!(
        "{}: {bound}{} on average and {} at most, limit {}; {} of {} samples at {} % or more \
         ({name})",
        kind.name(),
        amount(is_bytes, mean),
        amount(is_bytes, facts.rate.max()),
        amount(is_bytes, limit),
        facts.near_limit_samples,
        facts.samples,
        rate(NEAR * 100.0),
    )
}

/// Describes the other caps of the path with their use, and idle processors.
pub(super) fn ruled_out(
    case: &Case<'_>,
    judged: &JudgedSubject<'_>,
    wait: &CapWait,
) -> Vec<String> {
    let others = judged.subject.path.iter().map(|counts| counts.cap).filter(|cap| *cap != wait.cap);
    let mut out: Vec<String> = others
        .map(|index| {
            let (cap, facts) = case.cap(index);
            let own = judged.waited.waits.iter().find(|own| own.cap == index);
            let waited = own.map_or(0.0, |own| own.share);
            let owner = case.system.owner_name(cap);
            format!(
                "{} of {owner}: at most {} of {}, {} of the latency",
                cap.at_most().name(),
                percent(facts.used.max().min(1.0)),
                amount(cap.counts_bytes(), cap.limit.peak()),
                percent(waited)
            )
        })
        .collect();
    for host in &case.facts.others.processors {
        let name = case.contents.entity(host.entity).map_or("", |own| own.name.as_str());
        let busy = host.near_limit_share();
        if busy < 0.05 {
            out.push(format!(
                "CPU of {name}: {} on average, {} of the time at 90 % or more",
                percent(host.mean()),
                percent(busy)
            ));
        }
    }
    out
}

/// Returns the fix for a file or disk: the next tier, higher bought rates or a larger size, if there is one.
pub(super) fn next_tier(
    case: &Case<'_>,
    id: SubjectId,
    needs_bytes: bool,
    is_peak: bool,
) -> (String, Option<Change>) {
    let disks = case.system.disks_of(id);
    let Some(disk) = disks.first().copied() else {
        return ("raise its limits, or distribute its load".to_owned(), None);
    };
    let own = &case.system.disks[disk];
    let most = |tier: &Tier| tier_most(tier, needs_bytes, is_peak);
    let above = case.tier_above(disk, |now, above| most(above) > most(now));
    let burst = if is_peak { " during bursts" } else { "" };
    match above {
        Some((tier, needed)) if case.is_instance(id) => {
            let name = case.name(id);
            let (iops, throughput) = words(tier.iops, tier.throughput);
            let action = format!(
                "grow {name} to at least {} ({}: {iops} and {throughput})",
                size(needed),
                tier.name
            );
            let layout = layout_name(case, id);
            (action, layout.map(|name| Change::Size { name, bytes: needed }))
        }
        Some((tier, _)) => {
            let limits = tier_peak(tier).filter(|_| is_peak);
            let (iops, throughput) = limits.unwrap_or((tier.iops, tier.throughput));
            let (iops, throughput) = words(iops, throughput);
            let stripe = own.stripe.map(|stripe| case.system.stripes[stripe].name.clone());
            let name = stripe.unwrap_or_else(|| own.name.clone());
            let action = format!(
                "change {name} to {} ({iops} and {throughput} each{burst}), or stripe over more disks",
                tier.name
            );
            (action, Some(Change::Tier { name, tier: tier.name.clone() }))
        }
        _ => more_of(case, disk, (needs_bytes, is_peak)).unwrap_or_else(|| {
            let action = format!(
                "no larger tier is known for {}: stripe it, or distribute the load over more files",
                own.name
            );
            (action, None)
        }),
    }
}

/// Returns both limits of a tier in the units of all findings.
fn words(iops: Iops, throughput: BytesPerSec) -> (String, String) {
    (amount(false, float(iops.get())), amount(true, float(throughput.get())))
}

/// Returns the limit of a tier in operations or bytes, sustained or burst.
fn tier_most(tier: &Tier, of_bytes: bool, is_peak: bool) -> u64 {
    let lasting = (tier.iops, tier.throughput);
    let (iops, throughput) = tier_peak(tier).filter(|_| is_peak).unwrap_or(lasting);
    if of_bytes { throughput.get() } else { iops.get() }
}

/// Returns the burst limits of a tier with credits. On-demand bursting is optional.
fn tier_peak(tier: &Tier) -> Option<(Iops, BytesPerSec)> {
    let is_credit = |burst: &Burst| matches!(burst.kind, BurstKind::Credit { .. });
    tier.burst.filter(is_credit).map(|burst| (burst.iops, burst.throughput))
}

/// Returns the name of a file, disk or stripe in the layout.
pub(super) fn layout_name(case: &Case<'_>, id: SubjectId) -> Option<String> {
    case.layout?;
    Some(match id {
        SubjectId::File(file) => case.system.files[file].name.clone(),
        SubjectId::Disk(disk) => case.system.disks[disk].name.clone(),
        SubjectId::Stripe(stripe) => case.system.stripes[stripe].name.clone(),
    })
}

/// Returns the host that owns a cap.
pub(super) fn host_of(case: &Case<'_>, cap: usize) -> Option<usize> {
    match case.system.caps[cap].owner {
        Owner::Host(host) => Some(host),
        Owner::Disk(_) => None,
    }
}

/// Completes a finding with its wait time and its fix.
pub(super) fn with(
    mut finding: Finding,
    subjects: &[Throttled<'_>],
    (action, change): (String, Option<Change>),
) -> Candidate {
    finding.action = action;
    let wait_ns = subjects.iter().map(|(_, wait)| wait.wait_ns).sum();
    Candidate { wait_ns, ..Candidate::new(finding, change) }
}
