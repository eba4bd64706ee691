//! A machine that lets less through than its disks could.

use super::files::REACH;
use super::rule::{Candidate, Rule, source};
use super::stores::{host_use, is_uncached, throttled_at_host};
use crate::case::{Case, amount};
use crate::change::Change;
use weir_catalog::HostSize;
use weir_core::Cap as Kind;
use weir_report::diagnosis::Group;
use weir_report::number::{float, percent};

pub(super) const RULE: Rule = Rule {
    id: 209,
    name: "vm-below-disks",
    group: Group::Layout,
    priority: 100,
    source: source::PREMIUM,
    finds: "the machine's limit is below that of its disks, and the load is near it",
    find,
};

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    (0..case.system.hosts.len()).filter_map(|host| check_host(case, rule, host)).collect()
}

/// Returns the total limit of the remote disks of a host, if all are known.
fn of_disks(case: &Case<'_>, host: usize, is_bytes: bool) -> Option<f64> {
    let disks = case.system.disks.iter();
    let remote = disks.filter(|disk| disk.host == Some(host) && !disk.is_local);
    remote
        .map(|disk| Some(if is_bytes { disk.limits.bytes? } else { disk.limits.iops? }.rate))
        .sum()
}

fn check_host(case: &Case<'_>, rule: &Rule, host: usize) -> Option<Candidate> {
    let subjects = throttled_at_host(case, host, is_uncached);
    let near = host_use(case, host, is_uncached);
    let is_near = near.is_some_and(|near| near >= REACH);
    // The limit that throttles, otherwise the one with the highest utilisation.
    let wait = subjects.first().map(|(_, wait)| wait.cap);
    let is_throttled = |kind: Kind| wait.is_some_and(|wait| case.system.caps[wait].kind == kind);
    let caps = case.caps_of_host(host).filter(|(cap, facts)| {
        is_uncached(cap.kind) && (!facts.is_bound || is_throttled(cap.kind))
    });
    let rank = |kind: Kind, used: f64| (is_throttled(kind), used);
    let (cap, facts) = caps
        .map(|(cap, facts)| (rank(cap.kind, facts.used.quantile(0.99)), cap, facts))
        .max_by(|one, other| one.0.0.cmp(&other.0.0).then(one.0.1.total_cmp(&other.0.1)))
        .map(|(_, cap, facts)| (cap, facts))?;
    let sum = of_disks(case, host, cap.counts_bytes())?;
    // While the machine bursts it lets more through than lasts, and another rule says that.
    if subjects.first().is_some_and(|(_, wait)| wait.kind.is_burst()) {
        return None;
    }
    if sum <= cap.limit.rate || (subjects.is_empty() && !is_near) {
        return None;
    }
    let own = &case.system.hosts[host];
    let is_bytes = cap.counts_bytes();
    let text = format!(
        "the limit of {} on remote storage is {}, and that of its disks together {}: {} of the paid \
         performance is unusable{}",
        own.name,
        amount(is_bytes, cap.limit.rate),
        amount(is_bytes, sum),
        percent(1.0 - cap.limit.rate / sum),
        if subjects.is_empty() { "; no effect on the observed load so far" } else { "" }
    );
    let mut finding = rule.finding(own.name.clone(), text);
    match subjects.first() {
        Some((judged, wait)) => {
            finding.cap = Some(wait.kind.name().to_owned());
            finding.confidence = judged.waited.confidence;
            finding.evidence.push(format!(
                "{} of the latency of {} is wait time there",
                percent(wait.share),
                judged.name(case)
            ));
        }
        None => finding.priority = 200,
    }
    finding
        .evidence
        .push(format!("the limit is used to {} at most", percent(facts.used.quantile(0.99))));
    let (action, change) = action(case, host);
    finding.action = action;
    let change = change.filter(|_| !subjects.is_empty());
    Some(Candidate::new(finding, change))
}

/// Proposes the smallest machine of the series whose limit is that of the disks or higher.
fn action(case: &Case<'_>, host: usize) -> (String, Option<Change>) {
    let fewer = "or use fewer or smaller disks, since the machine caps them";
    let plain = || (format!("use a machine with a higher limit, {fewer}"), None);
    let own = &case.system.hosts[host];
    let now = own.qualified_size.as_deref().and_then(|size| case.edition?.host(size).ok());
    let (Some(edition), Some(now)) = (case.edition, now) else { return plain() };
    let need = (of_disks(case, host, false), of_disks(case, host, true));
    let limits = |size: &HostSize| size.uncached.as_ref().map(weir_catalog::HostLimits::limits);
    let both = |size: &HostSize| {
        limits(size).map(|own| (float(own.iops.get()), float(own.throughput.get())))
    };
    let series: Vec<(&HostSize, (f64, f64))> = edition
        .hosts()
        .filter(|size| size.series == now.series)
        .filter_map(|size| Some((size, both(size)?)))
        .collect();
    let carries = |(iops, bytes): (f64, f64)| {
        need.0.is_none_or(|need| need <= iops) && need.1.is_none_or(|need| need <= bytes)
    };
    let enough = series.iter().filter(|(_, own)| carries(*own));
    let least = enough.min_by(|one, other| one.1.0.total_cmp(&other.1.0));
    let largest = series.iter().max_by(|one, other| one.1.0.total_cmp(&other.1.0));
    let Some((size, (iops, bytes))) = least.or(largest).filter(|(size, _)| size.name != now.name)
    else {
        return (format!("no machine of this series has a higher limit: {fewer}"), None);
    };
    let words = if least.is_some() { "covers all disks" } else { "has the highest limit" };
    let change = Change::HostSize { host: own.name.clone(), size: size.name.clone() };
    let action = format!(
        "use a {}, which {words} ({} and {}), {fewer}",
        size.name,
        amount(false, *iops),
        amount(true, *bytes)
    );
    (action, case.layout.map(|_| change))
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    fn bed(size: &str, does: EntityLoad) -> TestBed {
        let text = format!(
            "edition = \"azure-premium-2015\"\nhost = {{ size = \"{size}\" }}\n[[volume]]\nname = \
             \"data\"\ntier = \"P30\"\n"
        );
        TestBed::layout(&text).disk("data", does)
    }

    #[test]
    fn a_p30_on_a_ds1() {
        // 5,000 operations of the disk, 3,200 of the machine.
        let held = EntityLoad::reads(3190.0).kib(4.0).ms(30.0);
        let found = bed("DS1", held).found("vm-below-disks");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!((finding.priority, finding.cap.as_deref()), (100, Some("host_uncached_iops")));
        assert!(finding.finding.contains("36.0 %"), "{}", finding.finding);
        // 5,000 and 200 MiB/s are what a DS4 carries.
        assert!(finding.action.contains("use a DS4"), "{}", finding.action);
        let near = bed("DS1", EntityLoad::reads(2500.0).kib(4.0)).found("vm-below-disks");
        assert_eq!(near[0].priority, 200);
    }

    #[test]
    fn low_use_or_a_large_machine_is_silent() {
        assert!(!bed("DS1", EntityLoad::reads(2000.0).kib(4.0)).finds("vm-below-disks"));
        assert!(!bed("DS4", EntityLoad::reads(4990.0).kib(4.0).ms(30.0)).finds("vm-below-disks"));
    }
}
