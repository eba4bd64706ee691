//! A limit that is nearly reached, with short waits or none.

use super::earlier;
use super::rule::{Candidate, Rule, source};
use super::signs::{is_near, is_timed, throttling_caps};
use super::throttling::OF_SUBJECTS;
use crate::case::{Case, JudgedSubject, amount, cap_words};
use crate::system::Owner;
use crate::verdict::NOTED;
use std::collections::BTreeMap;
use weir_report::diagnosis::{Confidence, Finding, Group};
use weir_report::number::percent;

pub(super) const RULE: Rule = Rule {
    id: 111,
    name: "near-limit",
    group: Group::Headroom,
    priority: 120,
    source: source::INSTANCE,
    finds: "a limit is used to 90 % or more, and requests hardly wait for it",
    find,
};

/// Returns the share of a subject's latency that is waiting at a cap.
pub(super) fn waited_at(judged: &JudgedSubject<'_>, cap: usize) -> f64 {
    let waits = judged.waited.waits.iter().filter(|wait| wait.cap == cap);
    waits.map(|wait| wait.share).fold(0.0, f64::max)
}

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let throttling_caps = throttling_caps(case);
    let said = earlier::findings(case, &OF_SUBJECTS);
    let mut near: BTreeMap<(bool, usize, &str), Vec<usize>> = BTreeMap::new();
    for (index, cap) in case.system.caps.iter().enumerate() {
        if !is_near(case, index) || throttling_caps.contains(&index) {
            continue;
        }
        // The columns of a stripe are near together.
        let (is_stripe, owner) = match cap.owner {
            Owner::Host(host) => (false, host * 2),
            Owner::Disk(disk) => match case.system.disks[disk].stripe {
                Some(stripe) => (true, stripe),
                None => (false, disk * 2 + 1),
            },
        };
        near.entry((is_stripe, owner, cap.kind.name())).or_default().push(index);
    }
    let all = near.into_iter().filter_map(|((is_stripe, owner, _), caps)| {
        let stripe = is_stripe.then(|| case.system.stripes[owner].name.clone());
        finding(case, rule, stripe, &caps)
    });
    let is_said = |finding: &Finding| {
        said.iter().any(|other| other.subject == finding.subject && other.cap == finding.cap)
    };
    all.filter(|finding| !is_said(finding)).map(Candidate::from).collect()
}

/// Builds the finding of the caps of one owner.
fn finding(
    case: &Case<'_>,
    rule: &Rule,
    stripe: Option<String>,
    caps: &[usize],
) -> Option<Finding> {
    let most = caps.iter().max_by_key(|cap| case.facts.caps[**cap].near_limit_samples)?;
    let (cap, facts) = case.cap(*most);
    let subject = stripe.unwrap_or_else(|| name_of(case, cap.owner));
    let is_bytes = cap.counts_bytes();
    // A rate above the sustained limit is near the burst limit.
    let is_burst = cap.limit.burst.is_some() && facts.rate.max() > facts.limit;
    let kind = if is_burst { cap.kind.burst() } else { cap.kind };
    let limit = amount(is_bytes, if is_burst { cap.limit.peak() } else { facts.limit });
    let passing = || {
        case.named().filter(|judged| judged.subject.path.iter().any(|counts| counts.cap == *most))
    };
    let timed = passing().any(|judged| is_timed(&judged));
    // Waits may be charged to one column of several that are alike.
    let shares = caps.iter().flat_map(|cap| case.named().map(|judged| waited_at(&judged, *cap)));
    let share = shares.fold(0.0, f64::max);
    let waits = match timed {
        true if share >= NOTED => format!("and waits for it are {} of the latency", percent(share)),
        true => "and no request waits for it yet".to_owned(),
        false => "and wait times are unknown".to_owned(),
    };
    let columns = match caps.len() {
        1 => String::new(),
        several => format!(" in {several} of its columns"),
    };
    let text = format!(
        "{subject} is at 90 % or more of its {}, {limit}{columns}, in {} of {} samples, {waits}",
        cap_words(kind),
        facts.near_limit_samples,
        facts.samples
    );
    let mut finding = rule.finding(subject.clone(), text);
    finding.cap = Some(kind.name().to_owned());
    finding.confidence = if timed { Confidence::High } else { Confidence::Medium };
    let count = if is_bytes { "ThroughputNearLimitCount" } else { "IOPSNearLimitCount" };
    finding.evidence.push(format!("{count} {} of {}", facts.near_limit_samples, facts.samples));
    finding.evidence.push(format!(
        "rate {} on average, {} at most ({} and {} of the limit)",
        amount(is_bytes, facts.rate.mean().unwrap_or(0.0)),
        amount(is_bytes, facts.rate.max()),
        percent(facts.used.mean().unwrap_or(0.0)),
        percent(facts.used.max())
    ));
    for judged in passing() {
        if let Some(ns) = judged.facts.latency_ns() {
            let latency = weir_report::number::time(ns);
            finding.evidence.push(format!("mean latency of {}: {latency}", judged.name(case)));
        }
    }
    finding.action = match share >= NOTED {
        true => format!("raise the limit of {subject} above {limit} before its load grows"),
        false => format!(
            "nothing now; before the load of {subject} grows, raise its limit above {limit}. Bursts shorter \
             than the sampling interval may wait already"
        ),
    };
    Some(finding)
}

/// Returns the name of a cap's owner. A disk with one file is named by the file.
fn name_of(case: &Case<'_>, owner: Owner) -> String {
    match owner {
        Owner::Host(host) => case.system.hosts[host].name.clone(),
        Owner::Disk(disk) => {
            let mut files = case.system.files_on(crate::system::On::Disk(disk));
            match (files.next(), files.next()) {
                (Some((_, file)), None) => file.qualified(),
                _ => case.system.disks[disk].name.clone(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    const P10: &str = "edition = \"azure-premium-2015\"\nhost = { size = \"DS4\" }\n[[volume]]\n\
                       name = \"data\"\ntier = \"P10\"\n";

    #[test]
    fn a_limit_that_is_near_without_waits() {
        let found =
            TestBed::layout(P10).disk("data", EntityLoad::reads(470.0).ms(2.0)).found("near-limit");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!((finding.subject.as_str(), finding.cap.as_deref()), ("data", Some("disk_iops")));
        assert!(finding.evidence[0].starts_with("IOPSNearLimitCount 60 of 60"), "{finding:?}");
        let untimed = TestBed::layout(P10).disk("data", EntityLoad::reads(470.0).untimed());
        assert_eq!(untimed.found("near-limit").len(), 1);
    }

    #[test]
    fn low_use_or_throttling_is_not_near() {
        assert!(
            !TestBed::layout(P10)
                .disk("data", EntityLoad::reads(440.0).ms(2.0))
                .finds("near-limit")
        );
        assert!(
            !TestBed::layout(P10)
                .disk("data", EntityLoad::reads(498.0).ms(40.0))
                .finds("near-limit")
        );
        // Two samples of sixty.
        let twice = |second| EntityLoad::reads(if second < 2 { 490.0 } else { 100.0 });
        assert!(!TestBed::layout(P10).disk_over("data", twice).finds("near-limit"));
    }
}
