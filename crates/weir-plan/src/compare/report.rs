//! The comparison as a report: the verdict first.

use super::clouds::Cloud;
use super::contest::{Contender, Contest, Proven};
use crate::report::{cap, choice, passed_over, relaxation, unpriced_machines, verified};
use crate::share::WHOLE;
use weir_catalog::PriceBook;
use weir_report::compare::{CompareChoice, CompareCloud, CompareReport};
use weir_report::number::{Amount, float};
use weir_report::plan::may_be_cheaper;
use weir_units::{Money, Span};

/// Returns the report of a comparison, with notes about the need.
#[must_use]
pub fn compare_report(
    contest: &Contest<'_>,
    clouds: &[Cloud<'_>],
    contenders: &[Contender],
    notes: Vec<String>,
) -> CompareReport {
    let offers: Vec<Offer<'_>> =
        clouds.iter().zip(contenders).filter_map(|(cloud, own)| Offer::find(cloud, own)).collect();
    let verdict = Verdict::judge(&offers);
    let cheapest = verdict.cheapest();
    let is_met = contenders.iter().any(|own| own.cheapest.is_some());
    let exceeded = contest.budget.zip(contest.currency(clouds)).filter(|(most, currency)| {
        let is_dear =
            |own: &Offer<'_>| own.month > most.largest_alike() && own.currency() == *currency;
        // A price in another currency may be within the budget.
        is_met && offers.iter().all(is_dear)
    });
    let mut words = vec![match is_met {
        true => verdict.words(&offers),
        false => unmet_words(clouds),
    }];
    words.extend(cheapest.and_then(|cheapest| cheaper_machines(clouds, contenders, cheapest)));
    words.extend(cheapest.and_then(|cheapest| cheaper_disks(clouds, contenders, cheapest)));
    let unmet = clouds.iter().zip(contenders).filter(|(_, own)| own.cheapest.is_none());
    let unmet: Vec<&str> = unmet.map(|(cloud, _)| cloud.name.as_str()).collect();
    words.extend(exceeded.map(|(most, currency)| {
        format!("the cheapest layout found costs more than the budget of {most} {currency} a month")
    }));
    if is_met && !unmet.is_empty() {
        words.push(format!("{} cannot meet the need", unmet.join(" and ")));
    }
    CompareReport {
        is_met: is_met && exceeded.is_none(),
        verdict: words.join("; "),
        cheapest: cheapest.map(|own| own.cloud.name.clone()),
        budget: contest.budget.map(Amount),
        clouds: clouds
            .iter()
            .zip(contenders)
            .map(|(cloud, own)| row(cloud, own, cheapest))
            .collect(),
        notes,
    }
}

/// Says that no cloud meets the need.
fn unmet_words(clouds: &[Cloud<'_>]) -> String {
    let names: Vec<&str> = clouds.iter().map(|cloud| cloud.name.as_str()).collect();
    match names.as_slice() {
        [only] => format!("{only} does not meet the need"),
        all => format!("none of {} meets the need", all.join(", ")),
    }
}

/// A layout that meets the need, with its price.
struct Offer<'c> {
    cloud: &'c Cloud<'c>,
    month: Money,
    unpriced: u32,
}

impl<'c> Offer<'c> {
    fn find(cloud: &'c Cloud<'c>, own: &Contender) -> Option<Self> {
        let cost = own.cheapest.as_ref()?.answer.plan.cost;
        Some(Self { cloud, month: cost.month, unpriced: cost.unpriced })
    }

    fn currency(&self) -> &str {
        self.cloud.prices.as_ref().map_or("", |book| book.currency())
    }

    fn words(&self) -> String {
        format!("{} {} a month", self.month, self.currency())
    }
}

/// The order of the offers.
enum Verdict<'o, 'c> {
    /// The cheapest one, and the next of the others.
    Cheapest(&'o Offer<'c>, Option<&'o Offer<'c>>),
    /// Prices in several currencies.
    Currencies,
    /// No complete price.
    Unknown,
}

impl<'o, 'c> Verdict<'o, 'c> {
    fn judge(offers: &'o [Offer<'c>]) -> Self {
        let mut priced: Vec<&Offer<'_>> = offers.iter().filter(|own| own.unpriced == 0).collect();
        priced.sort_by_key(|own| own.month);
        match priced[..] {
            [] => Self::Unknown,
            [first, ..] if priced.iter().any(|own| own.currency() != first.currency()) => {
                Self::Currencies
            }
            [first, ..] => Self::Cheapest(first, priced.get(1).copied()),
        }
    }

    fn cheapest(&self) -> Option<&'o Offer<'c>> {
        match self {
            Self::Cheapest(first, _) => Some(first),
            Self::Currencies | Self::Unknown => None,
        }
    }

    fn words(&self, offers: &[Offer<'_>]) -> String {
        let unknown: Vec<&str> = offers
            .iter()
            .filter(|own| own.unpriced > 0)
            .map(|own| own.cloud.name.as_str())
            .collect();
        let verdict = match self {
            Self::Unknown => {
                let names: Vec<&str> = offers.iter().map(|own| own.cloud.name.as_str()).collect();
                let verb = if names.len() == 1 { "meets" } else { "meet" };
                return format!(
                    "{} {verb} the need, but prices are missing, so none is called cheapest",
                    names.join(" and ")
                );
            }
            Self::Currencies => {
                let priced = offers.iter().filter(|own| own.unpriced == 0);
                let prices = priced.map(|own| format!("{} {}", own.cloud.name, own.words()));
                format!(
                    "prices are in different currencies, so none is called cheapest: {}",
                    prices.collect::<Vec<_>>().join(", ")
                )
            }
            Self::Cheapest(only, None) if offers.len() == 1 => {
                format!("only {} meets the need: {}", only.cloud.name, only.words())
            }
            Self::Cheapest(first, None) => {
                format!("only {} has all prices: {}", first.cloud.name, first.words())
            }
            Self::Cheapest(first, Some(next)) if first.month == next.month => format!(
                "{} and {} are the cheapest: {} each",
                first.cloud.name,
                next.cloud.name,
                first.words()
            ),
            Self::Cheapest(first, Some(next)) => format!(
                "{} is cheapest: {}, {} below {}",
                first.cloud.name,
                first.words(),
                below(first.month, next.month),
                next.cloud.name
            ),
        };
        match unknown.is_empty() {
            true => verdict,
            false => format!(
                "{verdict}; prices of {} are missing, so it may be cheaper",
                unknown.join(" and ")
            ),
        }
    }
}

/// Returns the difference of two prices in whole per cent of the higher one.
fn below(less: Money, more: Money) -> String {
    let percent = more.beyond(less).micros().saturating_mul(100) / more.micros().max(1);
    if percent == 0 { "less than 1 %".to_owned() } else { format!("{percent} %") }
}

/// Says how many machines without a price may undercut the cheapest cloud.
fn cheaper_machines(
    clouds: &[Cloud<'_>],
    contenders: &[Contender],
    cheapest: &Offer<'_>,
) -> Option<String> {
    let mut of = Vec::new();
    let mut count = 0;
    let is_comparable = |cloud: &Cloud<'_>| {
        cloud.prices.as_ref().is_none_or(|book| book.currency() == cheapest.currency())
    };
    let contenders = clouds.iter().zip(contenders).filter(|(cloud, _)| is_comparable(cloud));
    for (cloud, own) in contenders {
        let machines = own.cheapest.iter().flat_map(|own| &own.answer.unpriced);
        let below = machines.filter(|own| own.cost.month < cheapest.month).count();
        if below > 0 {
            of.push(cloud.name.as_str());
            count += below;
        }
    }
    Some(format!("{} ({})", may_be_cheaper(count)?, of.join(", ")))
}

/// Says on which clouds disks without all prices may undercut the cheapest cloud.
fn cheaper_disks(
    clouds: &[Cloud<'_>],
    contenders: &[Contender],
    cheapest: &Offer<'_>,
) -> Option<String> {
    let may_undercut = |(cloud, own): &(&Cloud<'_>, &Contender)| {
        let currency = cloud.prices.as_ref().map(PriceBook::currency);
        let other = own.cheapest.as_ref().and_then(|own| own.answer.incomplete.as_ref());
        let is_less = other.is_some_and(|other| other.cost.month < cheapest.month);
        is_less && currency == Some(cheapest.currency())
    };
    let names: Vec<&str> = clouds
        .iter()
        .zip(contenders)
        .filter(may_undercut)
        .map(|(cloud, _)| cloud.name.as_str())
        .collect();
    (!names.is_empty())
        .then(|| format!("disks without all prices may be cheaper ({})", names.join(", ")))
}

fn row(cloud: &Cloud<'_>, own: &Contender, cheapest: Option<&Offer<'_>>) -> CompareCloud {
    let answer = own.cheapest.as_ref().map(|own| &own.answer);
    let priced = answer.map(|own| own.plan.cost).filter(|cost| cost.unpriced == 0);
    let above = priced.zip(cheapest).map(|(cost, cheapest)| {
        float(cost.month.beyond(cheapest.month).micros()) / float(cheapest.month.micros().max(1))
    });
    let mut notes: Vec<String> =
        cloud.note.iter().map(|note| format!("{} {note}", cloud.edition.name())).collect();
    notes.extend(answer.iter().filter_map(|own| own.unranked.clone()));
    let passed = answer.and_then(|own| Some((passed_over(&own.plan)?, own.plan.disks)));
    notes.extend(passed.map(|(own, disks)| format!("{}: {}", cloud.name, own.words(disks))));
    let reasons = answer.iter().flat_map(|own| &own.plan.reasons);
    notes.extend(reasons.filter(|own| own.is_key).map(|own| own.text.clone()));
    notes.extend(own.notes.iter().cloned());
    CompareCloud {
        cloud: cloud.name.clone(),
        edition: cloud.edition.name().to_owned(),
        region: cloud.prices.as_ref().map(|book| book.region().to_owned()),
        currency: cloud.prices.as_ref().map(|book| book.currency().to_owned()),
        cheapest: own.cheapest.as_ref().map(proven),
        above_cheapest: above,
        fastest: own.fastest.as_ref().map(proven),
        unpriced_machines: answer.map(unpriced_machines).unwrap_or_default(),
        refused: own.refused.as_ref().map(ToString::to_string),
        relaxations: own.relaxations.iter().map(relaxation).collect(),
        beyond_budget: own.beyond_budget.iter().map(relaxation).collect(),
        notes,
    }
}

fn proven(own: &Proven) -> CompareChoice {
    let plan = &own.answer.plan;
    let binding = plan.binding();
    let sum = |of: fn(&crate::need::RoleNeed) -> u64| {
        own.need.roles.iter().map(of).fold(0, u64::saturating_add)
    };
    CompareChoice {
        plan: choice(plan),
        iops: sum(|role| role.iops),
        bytes_per_s: sum(|role| role.throughput),
        share_of_need: float(own.answer.carried) / float(WHOLE),
        binding_limit: binding.map(cap),
        slack: binding.map(|own| 1.0 - own.utilisation()),
        latency_ns: own.latency.map(Span::nanos),
        verified: verified("plan", &own.got).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::edition_of;
    use weir_catalog::Catalog;

    fn cloud<'a>(catalog: &'a Catalog, name: &str) -> Cloud<'a> {
        let edition = edition_of(catalog, name).expect("an edition");
        let prices = edition.price_book(None, None, None).expect("prices");
        Cloud { name: name.to_owned(), edition, prices, note: None }
    }

    #[test]
    fn a_verdict_never_hides_a_missing_price() {
        let catalog = Catalog::builtin();
        let clouds = ["azure", "aws", "gcp"].map(|name| cloud(&catalog, name));
        let check = |months: [(u64, u32); 3], expect: &str| {
            let offers: Vec<Offer<'_>> = clouds
                .iter()
                .zip(months)
                .filter(|(_, (month, _))| *month > 0)
                .map(|(cloud, (month, unpriced))| {
                    let month = Money::from_micros(month * 1_000_000);
                    Offer { cloud, month, unpriced }
                })
                .collect();
            assert_eq!(Verdict::judge(&offers).words(&offers), expect);
        };
        let words = "aws is cheapest: 82.00 USD a month, 18 % below azure";
        check([(100, 0), (82, 0), (200, 0)], words);
        check([(0, 0), (82, 0), (0, 0)], "only aws meets the need: 82.00 USD a month");
        let words = "azure is cheapest: 100.00 USD a month, less than 1 % below aws; prices of gcp \
                     are missing, so it may be cheaper";
        check([(1_000, 0), (1_001, 0), (7, 1)], &words.replace("100.00", "1,000.00"));
        let words = "azure and aws are the cheapest: 5.00 USD a month each";
        check([(5, 0), (5, 0), (6, 0)], words);
        let words =
            "azure and aws meet the need, but prices are missing, so none is called cheapest";
        check([(5, 1), (5, 2), (0, 0)], words);
    }
}
