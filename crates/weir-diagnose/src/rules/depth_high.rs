//! A queue depth above what the limit needs, which only adds latency.

use super::depth_low::per_disk;
use super::files::throttled_at_own;
use super::rule::{Candidate, Rule, source};
use crate::case::{Case, JudgedSubject, amount};
use weir_layout::Role;
use weir_report::diagnosis::Group;
use weir_report::number::{float, rate, time, whole};

pub(super) const RULE: Rule = Rule {
    id: 213,
    name: "depth-high",
    group: Group::Layout,
    priority: 150,
    source: source::PREMIUM,
    finds: "the queue depth is far above what the limit needs, which only adds latency",
    find,
};

/// Multiple of the needed queue depth that counts as too high.
const FAR_MORE: f64 = 4.0;

/// Multiple of the needed queue depth that is advised, with a reserve for uneven arrivals.
const SPARE: f64 = 2.0;

/// Ratio of the 10th to the 90th percentile from which on a queue depth counts as constant, as if
/// it was configured.
const STEADY: f64 = 0.8;

/// It is at the limit for more than this part of the time.
const MOSTLY: f64 = 0.5;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    case.named().filter_map(|judged| check_subject(case, rule, &judged)).collect()
}

fn check_subject(case: &Case<'_>, rule: &Rule, judged: &JudgedSubject<'_>) -> Option<Candidate> {
    let wait = throttled_at_own(case, judged).or(judged.waited.throttled())?;
    let roles = case.roles(judged.subject.id);
    // The queue depth of a database server is not configurable: it comes from its users.
    if roles.iter().any(|role| matches!(role, Role::Data | Role::Log | Role::Tempdb)) {
        return None;
    }
    let own = &judged.facts.depth;
    let (depth, unloaded) = (own.mean()?, judged.waited.unloaded_ns?);
    let is_steady = own.quantile(0.1) >= STEADY * own.quantile(0.9);
    let iops = judged.facts.iops.mean().filter(|iops| *iops > 0.0)?;
    let fills = iops * unloaded / 1e9;
    let disks = float(case.system.disks_of(judged.subject.id).len() as u64);
    let most = per_disk(case, "outstanding-max").map_or(0.0, |most| most * disks);
    let is_long = wait.near_limit_s >= MOSTLY * judged.facts.seconds();
    if !is_steady || !is_long || depth < FAR_MORE * fills || depth <= most {
        return None;
    }
    let lower =
        (SPARE * fills).max(per_disk(case, "outstanding-min").unwrap_or(1.0) * disks).ceil();
    if lower >= depth {
        return None;
    }
    let cap = &case.system.caps[wait.cap];
    let subject = judged.name(case);
    let latency = judged.facts.latency_ns()?;
    let limit = if wait.kind.is_burst() { cap.limit.peak() } else { cap.limit.rate };
    let text = format!(
        "the queue depth of {subject} is {}, and {} would reach its limit of {}: latency is {} instead \
         of {} at a depth of {}, at the same throughput",
        rate(depth),
        rate(fills),
        amount(cap.counts_bytes(), limit),
        time(latency),
        time(lower / iops * 1e9),
        whole(lower),
    );
    let mut finding = rule.finding(subject, text);
    finding.cap = Some(wait.kind.name().to_owned());
    finding.confidence = judged.waited.confidence;
    finding.evidence.push(format!(
        "Little's law: {} IOPS x {} unloaded latency = {} in flight",
        rate(iops),
        time(unloaded),
        rate(fills)
    ));
    if most > 0.0 {
        finding
            .evidence
            .push(format!("more than {} in flight do not help on disks of this kind", rate(most)));
    }
    finding.action = format!(
        "lower the queue depth to {}: use fewer threads, streams or backup files (fio: iodepth; SQL \
         Server: MAXDOP, fewer backup files)",
        whole(lower)
    );
    Some(finding.into())
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    fn bed(role: &str, does: EntityLoad) -> TestBed {
        let text = format!(
            "edition = \"azure-premium-2015\"\nhost = {{ size = \"DS14\" }}\n[[volume]]\nname = \
             \"disk\"\ntier = \"P10\"\n[[file]]\nname = \"file\"\nrole = \"{role}\"\nsize = \"50 \
             GiB\"\non = \"disk\"\n"
        );
        TestBed::layout(&text).disk("disk", does)
    }

    #[test]
    fn a_depth_of_64_where_1_saturates() {
        let found = bed("backup", EntityLoad::writes(498.0).ms(128.5)).found("depth-high");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert!(
            finding.finding.starts_with("the queue depth of disk is 64.0,"),
            "{}",
            finding.finding
        );
        assert!(finding.action.contains("queue depth to 8"), "{}", finding.action);
    }

    #[test]
    fn fixed_moderate_or_unthrottled_depths_are_silent() {
        assert!(!bed("data", EntityLoad::writes(498.0).ms(128.5)).finds("depth-high"));
        // 16 are what the article still has for a disk.
        assert!(!bed("backup", EntityLoad::writes(498.0).ms(31.0)).finds("depth-high"));
        assert!(!bed("backup", EntityLoad::writes(300.0).ms(4.0)).finds("depth-high"));
    }
}
