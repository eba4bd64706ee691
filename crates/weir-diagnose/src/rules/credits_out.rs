//! A disk or machine that bursts on credits and has none left.

use super::at_host::larger;
use super::credits::{Balance, balances};
use super::rule::{Candidate, Rule, source};
use super::signs::{NOTABLE, is_timed, throttling_caps};
use super::throttled::{next_tier, ruled_out};
use crate::case::{Case, JudgedSubject, amount, moments};
use crate::change::Change;
use crate::system::{Cap, Owner, SubjectId};
use weir_report::diagnosis::{Confidence, Group};
use weir_report::number::{percent, time};

pub(super) const RULE: Rule = Rule {
    id: 107,
    name: "credits-out",
    group: Group::Throttling,
    priority: 10,
    source: source::MODEL,
    finds: "a disk or machine has spent its burst credits and is throttled to its sustained limit",
    find,
};

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let throttling_caps = throttling_caps(case);
    let is_out = |balance: &Balance| {
        // A gauge at zero means that credits are spent as they arrive, so that the limit throttles.
        // The model counts only if requests wait there, or waits are unknown.
        let waits =
            balance.cap.is_some_and(|cap| throttling_caps.contains(&cap) || !has_times(case, cap));
        balance.out_share >= NOTABLE && (balance.is_said || waits)
    };
    balances(case).into_iter().filter(is_out).map(|own| candidate(case, rule, &own)).collect()
}

/// Returns the subjects whose requests pass a limit.
fn passing<'a>(case: &Case<'a>, cap: usize) -> impl Iterator<Item = JudgedSubject<'a>> {
    case.named().filter(move |judged| judged.subject.path.iter().any(|counts| counts.cap == cap))
}

fn has_times(case: &Case<'_>, cap: usize) -> bool {
    passing(case, cap).any(|judged| is_timed(&judged))
}

fn candidate(case: &Case<'_>, rule: &Rule, balance: &Balance) -> Candidate {
    let subject = balance.subject.clone();
    let out = time(balance.out_share * balance.seconds * 1e9);
    let limit = balance.cap.map(|cap| &case.system.caps[cap]);
    let lasting = limit.map(|cap| amount(cap.counts_bytes(), cap.limit.rate));
    let wait = match &lasting {
        Some(lasting) => format!("is throttled to its sustained limit, {lasting}"),
        None => "is throttled to its sustained limit".to_owned(),
    };
    let text = format!(
        "{subject} had no {} for {out}, {} of the time, and {wait}",
        balance.words(),
        percent(balance.out_share)
    );
    let mut finding = rule.finding(subject, text);
    finding.cap = balance.kind.map(|kind| kind.name().to_owned());
    finding.confidence = if balance.is_said { Confidence::High } else { Confidence::Medium };
    if balance.is_said {
        finding.source.title = source::CLOUD;
    }
    finding.evidence.push(format!(
        "credits: {} of a full bucket at the start, {} at the end ({})",
        percent(balance.first),
        percent(balance.last),
        balance.basis()
    ));
    let mut change = None;
    if let (Some(cap), Some(index)) = (limit, balance.cap) {
        let facts = &case.facts.caps[index];
        let of = |value| amount(cap.counts_bytes(), value);
        finding.evidence.push(format!(
            "burst limit {}, sustained limit {}; rate {} on average, {} at most",
            of(cap.limit.peak()),
            of(cap.limit.rate),
            of(facts.rate.mean().unwrap_or(0.0)),
            of(facts.rate.max())
        ));
        let waiting = passing(case, index).find_map(|judged| {
            let wait = judged.waited.waits.iter().find(|wait| wait.cap == index)?;
            Some((judged, wait))
        });
        match waiting {
            Some((judged, wait)) => {
                finding.evidence.push(format!(
                    "{} of the latency of {} is wait time there",
                    percent(wait.share),
                    judged.name(case)
                ));
                finding.moments = moments(case, &judged, 3);
                finding.ruled_out = ruled_out(case, &judged, wait);
            }
            None => finding.evidence.push("wait times are unknown".to_owned()),
        }
        let (action, own) = action(case, cap);
        finding.action = action;
        change = own;
    } else {
        "choose a tier or size with a sustained limit above the load, or leave pauses in which credits \
         return; with --layout, the finding names the tier"
            .clone_into(&mut finding.action);
    }
    Candidate::new(finding, change)
}

fn action(case: &Case<'_>, cap: &Cap) -> (String, Option<Change>) {
    let (mut action, change) = match cap.owner {
        Owner::Disk(disk) => next_tier(case, SubjectId::Disk(disk), cap.counts_bytes(), false),
        Owner::Host(host) => larger(case, &case.system.hosts[host], cap.kind, cap.limit, false),
    };
    let knows = |name: &str| {
        case.edition.is_some_and(|edition| edition.bursting().iter().any(|rule| rule.name == name))
    };
    if let (Owner::Disk(disk), true) = (cap.owner, knows("on-demand")) {
        action += &format!(
            "; on-demand bursting needs no credits, if the tier supports it: az disk update --name {} \
             --enable-bursting true, with the disk detached",
            case.system.disks[disk].name
        );
    }
    (action, change)
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};
    use weir_observe::metric as m;
    use weir_report::diagnosis::Confidence;

    const BURSTS: &str = "host = { unlimited = true }\n[[volume]]\nname = \"data\"\nsize = \
        \"128 GiB\"\nlatency = \"2ms\"\nlimits = { iops = 500, throughput = \"500 MiB/s\", burst = \
        { iops = 3500, duration = \"30s\" } }\n";

    /// Returns a disk with a burst of 3,500 IOPS, and then the sustained limit.
    fn after(seconds: u64) -> TestBed {
        TestBed::layout(BURSTS).disk_over("data", move |second| {
            if second < seconds {
                EntityLoad::reads(3500.0).ms(2.0)
            } else {
                EntityLoad::reads(500.0).ms(60.0)
            }
        })
    }

    #[test]
    fn spent_credits_throttle_to_the_sustained_limit() {
        let found = after(30).found("credits-out");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!((finding.subject.as_str(), finding.cap.as_deref()), ("data", Some("disk_iops")));
        assert!(finding.finding.contains("500 IOPS"), "{}", finding.finding);
    }

    #[test]
    fn remaining_credits_do_not_throttle() {
        let lasts = TestBed::layout(BURSTS).disk("data", EntityLoad::reads(1400.0).ms(2.0));
        assert!(!lasts.finds("credits-out"));
        // No credits for two of sixty seconds.
        let twice = TestBed::layout(BURSTS).disk_over("data", |second| match second {
            0..30 => EntityLoad::reads(3500.0),
            30..32 => EntityLoad::reads(500.0).ms(60.0),
            _ => EntityLoad::reads(20.0),
        });
        assert!(!twice.finds("credits-out"));
    }

    #[test]
    fn gauges_take_precedence_over_the_model() {
        let said = after(30).disk_gauge("data", m::BURST_BALANCE, 0.7);
        assert!(!said.finds("credits-out"));
        let nothing_else = |balance| {
            let bed = TestBed::bare().disk("data", EntityLoad::reads(100.0).untimed());
            bed.disk_gauge("data", m::BURST_BALANCE, balance).found("credits-out")
        };
        assert_eq!(nothing_else(0.0)[0].confidence, Confidence::High);
        assert_eq!(nothing_else(0.02), []);
    }
}
