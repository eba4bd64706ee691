//! A disk or machine that bursts on credits and has none left.

use super::at_host::larger;
use super::credits::{Balance, balances};
use super::held::{next_tier, ruled_out};
use super::signs::{NOTABLE, holding, is_timed};
use super::{Found, Rule, source};
use crate::case::{Case, Seen, amount, moments};
use crate::change::Change;
use crate::system::{Cap, Owner, What};
use weir_report::diagnosis::{Confidence, Group};
use weir_report::number::{percent, time};

pub(super) const RULE: Rule = Rule {
    id: 107,
    name: "credits-out",
    group: Group::Throttling,
    priority: 10,
    source: source::MODEL,
    finds: "a disk or machine that bursts on credits has run out of them and is held at what lasts",
    find,
};

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Found> {
    let holding = holding(case);
    let is_out = |balance: &Balance| {
        // A gauge at nothing says that credits go as fast as they come: the limit holds. The
        // model alone knows it only where somebody waits there, or nobody says who waits.
        let waits = balance.cap.is_some_and(|cap| holding.contains(&cap) || !has_times(case, cap));
        balance.out_share >= NOTABLE && (balance.is_said || waits)
    };
    balances(case).into_iter().filter(is_out).map(|own| of(case, rule, &own)).collect()
}

/// Those whose requests pass a cap.
fn passing<'a>(case: &Case<'a>, cap: usize) -> impl Iterator<Item = Seen<'a>> {
    case.named().filter(move |seen| seen.subject.path.iter().any(|counts| counts.cap == cap))
}

fn has_times(case: &Case<'_>, cap: usize) -> bool {
    passing(case, cap).any(|seen| is_timed(&seen))
}

fn of(case: &Case<'_>, rule: &Rule, balance: &Balance) -> Found {
    let subject = balance.subject.clone();
    let out = time(balance.out_share * balance.seconds * 1e9);
    let limit = balance.cap.map(|cap| &case.system.caps[cap]);
    let lasting = limit.map(|cap| amount(cap.counts_bytes(), cap.limit.rate));
    let held = match &lasting {
        Some(lasting) => format!("is held at what lasts, {lasting}"),
        None => "is held at what lasts".to_owned(),
    };
    let text = format!(
        "{subject} has run out of {} for {out}, {} of the time, and {held}",
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
        "of a full bucket {} were left at first, {} at last ({})",
        percent(balance.first),
        percent(balance.last),
        balance.basis()
    ));
    let mut change = None;
    if let (Some(cap), Some(index)) = (limit, balance.cap) {
        let facts = &case.facts.caps[index];
        let of = |value| amount(cap.counts_bytes(), value);
        finding.evidence.push(format!(
            "{} were possible with credits, of which {} last; {} were used on average, {} at most",
            of(cap.limit.peak()),
            of(cap.limit.rate),
            of(facts.rate.mean().unwrap_or(0.0)),
            of(facts.rate.max())
        ));
        let waiting = passing(case, index).find_map(|seen| {
            let held = seen.waited.held.iter().find(|held| held.cap == index)?;
            Some((seen, held))
        });
        match waiting {
            Some((seen, held)) => {
                finding.evidence.push(format!(
                    "{} of the latency of {} is waiting there",
                    percent(held.share),
                    seen.name(case)
                ));
                finding.moments = moments(case, &seen, 3);
                finding.ruled_out = ruled_out(case, &seen, held);
            }
            None => finding.evidence.push("how long requests wait is not said".to_owned()),
        }
        let (action, own) = action(case, cap);
        finding.action = action;
        change = own;
    } else {
        "take a tier or size whose lasting limit is above what is used, or spread the load so \
         that credits come back between bursts; --layout says which"
            .clone_into(&mut finding.action);
    }
    Found::new(finding, change)
}

fn action(case: &Case<'_>, cap: &Cap) -> (String, Option<Change>) {
    let (mut action, change) = match cap.owner {
        Owner::Disk(disk) => next_tier(case, What::Disk(disk), cap.counts_bytes(), false),
        Owner::Host(host) => larger(case, &case.system.hosts[host], cap.kind, cap.limit, false),
    };
    let knows = |name: &str| {
        case.edition.is_some_and(|edition| edition.bursting().iter().any(|rule| rule.name == name))
    };
    if let (Owner::Disk(disk), true) = (cap.owner, knows("on-demand")) {
        action += &format!(
            "; where the tier has it, bursting on demand needs no credits: az disk update --name \
             {} --enable-bursting true, with the disk detached",
            case.system.disks[disk].name
        );
    }
    (action, change)
}

#[cfg(test)]
mod tests {
    use crate::bed::{Bed, Does};
    use weir_observe::import::measure as m;
    use weir_report::diagnosis::Confidence;

    const BURSTS: &str = "host = { unlimited = true }\n[[volume]]\nname = \"data\"\nsize = \
        \"128 GiB\"\nlatency = \"2ms\"\nlimits = { iops = 500, throughput = \"500 MiB/s\", burst = \
        { iops = 3500, duration = \"30s\" } }\n";

    /// A burst of so many seconds at 3,500, and what lasts after it.
    fn after(seconds: u64) -> Bed {
        Bed::layout(BURSTS).disk_over("data", move |second| {
            if second < seconds { Does::reads(3500.0).ms(2.0) } else { Does::reads(500.0).ms(60.0) }
        })
    }

    #[test]
    fn out_and_held_at_what_lasts() {
        let found = after(30).found("credits-out");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!((finding.subject.as_str(), finding.cap.as_deref()), ("data", Some("disk_iops")));
        assert!(finding.finding.contains("500 IOPS"), "{}", finding.finding);
    }

    #[test]
    fn credits_that_last_hold_nobody() {
        let lasts = Bed::layout(BURSTS).disk("data", Does::reads(1400.0).ms(2.0));
        assert!(!lasts.finds("credits-out"));
        // They are gone for two of sixty seconds.
        let twice = Bed::layout(BURSTS).disk_over("data", |second| match second {
            0..30 => Does::reads(3500.0),
            30..32 => Does::reads(500.0).ms(60.0),
            _ => Does::reads(20.0),
        });
        assert!(!twice.finds("credits-out"));
    }

    #[test]
    fn what_the_cloud_says_goes_before_the_model() {
        let said = after(30).disk_gauge("data", m::BURST_BALANCE, 0.7);
        assert!(!said.finds("credits-out"));
        let nothing_else = |balance| {
            let bed = Bed::bare().disk("data", Does::reads(100.0).untimed());
            bed.disk_gauge("data", m::BURST_BALANCE, balance).found("credits-out")
        };
        assert_eq!(nothing_else(0.0)[0].confidence, Confidence::High);
        assert_eq!(nothing_else(0.02), []);
    }
}
