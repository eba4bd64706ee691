//! What the rules of the caps have in common: who is held there, and how it is said.

use super::{Found, Rule};
use crate::case::{Case, Seen, amount, basis_words, cap_words, moments, size, usual_words};
use crate::change::Change;
use crate::follow::NEAR;
use crate::system::{Owner, What};
use crate::verdict::{Held, THROTTLED};
use weir_catalog::{Burst, BurstKind, Tier};
use weir_core::Cap as Kind;
use weir_report::diagnosis::Finding;
use weir_report::number::{percent, rate, time};
use weir_units::{BytesPerSec, Iops};

/// Who is held at a cap of a kind.
pub(super) type Who<'a> = (Seen<'a>, &'a Held);

/// Everybody who is held, and most at a cap of a kind that `is`, or there for a third and more of
/// the latency.
pub(super) fn by<'a>(case: &Case<'a>, is: impl Fn(&Case<'a>, &Held) -> bool) -> Vec<Who<'a>> {
    let all = case.named().filter(|seen| seen.waited.throttled().is_some());
    let held = |seen: Seen<'a>| {
        let first = seen.waited.held.first()?;
        let own = seen.waited.held.iter().filter(|held| is(case, held));
        // What is the most, or by itself enough.
        let own = own.max_by(|one, other| one.waited_ns.total_cmp(&other.waited_ns))?;
        (own == first || own.share >= THROTTLED).then_some((seen, own))
    };
    let mut all: Vec<Who<'a>> = all.filter_map(held).collect();
    all.sort_by(|one, other| other.1.waited_ns.total_cmp(&one.1.waited_ns));
    all
}

/// A finding that names whom a cap holds, most first; `who` is not empty.
pub(super) fn finding(
    case: &Case<'_>,
    rule: &Rule,
    subject: String,
    who: &[Who<'_>],
) -> Option<Finding> {
    let ((seen, held), (cap, facts)) = (who.first()?, case.cap(who.first()?.1.cap));
    let is_bytes = cap.counts_bytes();
    let waited: f64 = who.iter().map(|(_, held)| held.waited_ns).sum();
    let latency: f64 = who.iter().map(|(seen, _)| seen.waited.latency_ns).sum();
    let operations: f64 = who.iter().map(|(seen, _)| seen.waited.operations).sum();
    let share = percent(waited / latency.max(1.0));
    let limit = limit_now(held.kind, cap.limit.peak(), facts.limit);
    let words = cap_words(held.kind);
    let mut finding = rule.finding(
        subject.clone(),
        format!(
            "{subject} is held at its {words}, {}{}: {share} of the latency is waiting there",
            amount(is_bytes, limit),
            during(seen)
        ),
    );
    finding.cap = Some(held.kind.name().to_owned());
    finding.confidence = seen.waited.confidence;
    let per_operation = time(waited / operations.max(1.0));
    let all = time(latency / operations.max(1.0));
    finding.evidence.push(format!(
        "requests took {all} on average, {per_operation} of it waiting here ({})",
        basis_words(seen.waited.basis)
    ));
    finding.evidence.push(used(held.kind, is_bytes, limit, facts));
    finding.evidence.extend(usual_words(seen.waited));
    if who.len() > 1 {
        let names = who.iter().map(|(seen, held)| {
            format!("{} ({} of its latency)", seen.name(case), percent(held.share))
        });
        finding.evidence.push(format!("held are {}", names.collect::<Vec<_>>().join(", ")));
    }
    if held.near_s < 0.05 * seen.waited.seconds {
        finding.evidence.push(
            "it is reached in bursts shorter than a sample: the averages look harmless".to_owned(),
        );
    }
    finding.moments = moments(case, seen, 3);
    finding.ruled_out = ruled_out(case, seen, held);
    Some(finding)
}

/// For how long, if that is not all the time.
fn during(seen: &Seen<'_>) -> String {
    match seen.waited.is_whole {
        true => String::new(),
        false => format!(
            ", for {} of {}",
            time(seen.waited.seconds * 1e9),
            time(seen.facts.seconds() * 1e9)
        ),
    }
}

fn limit_now(kind: Kind, peak: f64, limit: f64) -> f64 {
    if is_peak(kind) { peak } else { limit }
}

/// Whether it is the peak of a burst that holds.
pub(super) fn is_peak(kind: Kind) -> bool {
    kind.name().contains("burst")
}

/// How much of a cap was used, as the script of Microsoft's engineers counts it.
fn used(kind: Kind, is_bytes: bool, limit: f64, facts: &crate::follow::CapFacts) -> String {
    let mean = facts.rate.mean().unwrap_or(0.0);
    let name = if is_bytes { "ThroughputNearLimitCount" } else { "IOPSNearLimitCount" };
    let bound = if facts.is_bound { "at most " } else { "" };
    format!(
        "{} uses {bound}{} on average and {} at most of {}; in {} of {} samples it is at {} % and \
         more ({name})",
        kind.name(),
        amount(is_bytes, mean),
        amount(is_bytes, facts.rate.max()),
        amount(is_bytes, limit),
        facts.near_samples,
        facts.samples,
        rate(NEAR * 100.0),
    )
}

/// The other caps of the path, and why each is not the one.
pub(super) fn ruled_out(case: &Case<'_>, seen: &Seen<'_>, held: &Held) -> Vec<String> {
    let others = seen.subject.path.iter().map(|counts| counts.cap).filter(|cap| *cap != held.cap);
    let mut out: Vec<String> = others
        .map(|index| {
            let (cap, facts) = case.cap(index);
            let own = seen.waited.held.iter().find(|own| own.cap == index);
            let waited = own.map_or(0.0, |own| own.share);
            let owner = case.system.owner_name(cap);
            format!(
                "{} of {owner}: {} of {} at most, {} of the latency",
                cap.at_most().name(),
                percent(facts.used.max().min(1.0)),
                amount(cap.counts_bytes(), cap.limit.peak()),
                percent(waited)
            )
        })
        .collect();
    for host in &case.facts.others.processors {
        let name = case.contents.entity(host.entity).map_or("", |own| own.name.as_str());
        let busy = host.near_share();
        if busy < 0.05 {
            out.push(format!(
                "processors of {name}: {} busy on average, {} of the time at 90 % and more",
                percent(host.mean()),
                percent(busy)
            ));
        }
    }
    out
}

/// What makes a file or disk faster: the next tier, if there is one.
pub(super) fn next_tier(
    case: &Case<'_>,
    what: What,
    needs_bytes: bool,
    is_peak: bool,
) -> (String, Option<Change>) {
    let disks = case.system.disks_of(what);
    let Some(disk) = disks.first().copied() else {
        return ("raise its limits, or spread what is on it".to_owned(), None);
    };
    let own = &case.system.disks[disk];
    let most = |tier: &Tier| tier_most(tier, needs_bytes, is_peak);
    let above = case.tier_above(disk, |now, above| most(above) > most(now));
    let burst = if is_peak { " while it bursts" } else { "" };
    match above {
        Some((tier, needed)) if case.is_instance(what) => {
            let name = case.name(what);
            let (iops, throughput) = (tier.iops, tier.throughput);
            let action = format!(
                "grow {name} to {} or more: that is {}, {iops} and {throughput}",
                size(needed),
                tier.name
            );
            let layout = layout_name(case, what);
            (action, layout.map(|name| Change::Size { name, bytes: needed }))
        }
        Some((tier, _)) => {
            let limits = tier_peak(tier).filter(|_| is_peak);
            let (iops, throughput) = limits.unwrap_or((tier.iops, tier.throughput));
            let stripe = own.stripe.map(|stripe| case.system.stripes[stripe].name.clone());
            let name = stripe.unwrap_or_else(|| own.name.clone());
            let action = format!(
                "make {name} of {} ({iops} and {throughput} each{burst}), or stripe over more disks",
                tier.name
            );
            (action, Some(Change::Tier { name, tier: tier.name.clone() }))
        }
        _ => (
            format!("no larger tier is known for {}: stripe it, or add files and spread", own.name),
            None,
        ),
    }
}

/// What a tier lets through of operations or bytes, while a burst lasts if that is what holds.
fn tier_most(tier: &Tier, of_bytes: bool, is_peak: bool) -> u64 {
    let lasting = (tier.iops, tier.throughput);
    let (iops, throughput) = tier_peak(tier).filter(|_| is_peak).unwrap_or(lasting);
    if of_bytes { throughput.get() } else { iops.get() }
}

/// The peak of a tier that bursts by credits; bursting on demand is somebody's choice.
fn tier_peak(tier: &Tier) -> Option<(Iops, BytesPerSec)> {
    let is_credit = |burst: &Burst| matches!(burst.kind, BurstKind::Credit { .. });
    tier.burst.filter(is_credit).map(|burst| (burst.iops, burst.throughput))
}

/// The name that a file, disk or stripe has in the layout.
pub(super) fn layout_name(case: &Case<'_>, what: What) -> Option<String> {
    case.layout?;
    Some(match what {
        What::File(file) => case.system.files[file].name.clone(),
        What::Disk(disk) => case.system.disks[disk].name.clone(),
        What::Stripe(stripe) => case.system.stripes[stripe].name.clone(),
    })
}

/// The host that owns a cap.
pub(super) fn host_of(case: &Case<'_>, cap: usize) -> Option<usize> {
    match case.system.caps[cap].owner {
        Owner::Host(host) => Some(host),
        Owner::Disk(_) => None,
    }
}

/// A finding with what was waited by whom it names, and with what would change that.
pub(super) fn with(
    mut finding: Finding,
    who: &[Who<'_>],
    (action, change): (String, Option<Change>),
) -> Found {
    finding.action = action;
    let waited_ns = who.iter().map(|(_, held)| held.waited_ns).sum();
    Found { waited_ns, ..Found::new(finding, change) }
}
