//! Credits that go faster than they come.

use super::credits::{Balance, balances};
use super::rule::{Candidate, Rule, source};
use super::signs::NOTABLE;
use crate::case::{Case, amount};
use weir_report::diagnosis::{Confidence, Group};
use weir_report::number::{percent, time};

pub(super) const RULE: Rule = Rule {
    id: 214,
    name: "credits-soon",
    group: Group::Headroom,
    priority: 120,
    source: source::MODEL,
    finds: "burst credits will be spent at the present rate",
    find,
};

/// A fall of less is within what clouds round to.
const FALL: f64 = 0.02;

/// Credits that last a day return at night.
const SOON_S: f64 = 24.0 * 3600.0;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let all = balances(case).into_iter();
    all.filter_map(|own| candidate(case, rule, &own)).collect()
}

fn candidate(case: &Case<'_>, rule: &Rule, own: &Balance) -> Option<Candidate> {
    let fallen = own.first - own.last;
    // Credits that returned are not falling, and spent ones have a rule of their own.
    let is_falling = fallen >= FALL && own.last <= own.least + FALL;
    let left_s = own.last / (fallen / own.between_s);
    if !is_falling || own.is_out() || own.out_share >= NOTABLE || left_s > SOON_S {
        return None;
    }
    let subject = own.subject.clone();
    let left = time(left_s * 1e9);
    let text = format!(
        "{subject} has {} of its {} left, which will be spent in {left} at the present rate",
        percent(own.last),
        own.words()
    );
    let mut finding = rule.finding(subject, text);
    finding.cap = own.kind.map(|kind| kind.name().to_owned());
    finding.confidence = if own.is_said { Confidence::High } else { Confidence::Medium };
    finding.evidence.push(format!(
        "they fell from {} to {} in {} ({})",
        percent(own.first),
        percent(own.last),
        time(own.between_s * 1e9),
        own.basis()
    ));
    let lasting = own.cap.map(|index| {
        let (cap, facts) = case.cap(index);
        let is_bytes = cap.counts_bytes();
        let used = amount(is_bytes, facts.rate.mean().unwrap_or(0.0));
        (amount(is_bytes, cap.limit.rate), used)
    });
    if let Some((lasting, used)) = &lasting {
        finding.evidence.push(format!("mean rate {used}, sustained limit {lasting}"));
    }
    finding.action = match lasting {
        Some((lasting, used)) => format!(
            "if the load lasts longer than {left}, choose a sustained limit of {used} instead of {lasting}; \
             if it is a peak, do nothing: credits return below {lasting}"
        ),
        None => format!(
            "if the load lasts longer than {left}, choose a tier or size with a sustained limit above it; \
             if it is a peak, do nothing: credits return"
        ),
    };
    Some(finding.into())
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};
    use weir_observe::metric as m;

    fn falling(to: f64) -> TestBed {
        let balance = move |second| 1.0 - (1.0 - to) * weir_report::number::float(second) / 60.0;
        let bed = TestBed::bare().disk("data", EntityLoad::reads(100.0));
        bed.disk_gauge_over("data", m::BURST_BALANCE, balance)
    }

    #[test]
    fn falling_credits_are_predicted() {
        // A tenth in a minute: the other nine last for nine.
        let found = falling(0.9).found("credits-soon");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert!(finding.finding.contains("540 s"), "{}", finding.finding);
    }

    #[test]
    fn spent_or_returning_credits_are_silent() {
        assert!(!falling(0.99).finds("credits-soon"));
        let over = |balance: fn(u64) -> f64| {
            let bed = TestBed::bare().disk("data", EntityLoad::reads(100.0));
            bed.disk_gauge_over("data", m::BURST_BALANCE, balance).finds("credits-soon")
        };
        assert!(!over(|second| if second < 30 { 0.5 } else { 0.8 }));
        assert!(!over(|second| if second < 5 { 0.5 } else { 0.0 }));
        // Down, and half of the way back.
        assert!(!over(|second| match second {
            0..10 => 1.0,
            10..40 => 0.5,
            _ => 0.7,
        }));
    }
}
