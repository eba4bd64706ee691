//! Answers as the report types of `weir-report`, which the command line prints.

use crate::answer::{Answer, CapUnit, CapUse, Line, Plan, Relaxation, Unpriced};
use crate::cost::Cost;
use crate::fleet::{FleetInstance, FleetOutcome};
use crate::need::{Member, Need};
use crate::planner::Outcome;
use crate::proof::Proof;
use crate::share::WHOLE;
use crate::verify::Got;
use weir_catalog::{Edition, PriceBook};
use weir_layout::Bill;
use weir_report::fleet::{FleetHost, FleetLack, FleetReport};
use weir_report::number::{Amount, Delta, float, percent};
use weir_report::plan::{
    PlanBeside, PlanCap, PlanCheaper, PlanChoice, PlanLine, PlanPassedOver, PlanPresent,
    PlanRelaxation, PlanReport, PlanUnpriced, PlanVerified, Unit,
};
use weir_units::{Money, Span};

/// Returns the report of an outcome, with notes that come before its own.
#[must_use]
pub fn plan_report(
    edition: &Edition,
    prices: Option<&PriceBook<'_>>,
    outcome: &Outcome,
    notes: Vec<String>,
) -> PlanReport {
    let mut report = PlanReport {
        edition: edition.name().to_owned(),
        region: prices.map(|book| book.region().to_owned()),
        currency: prices.map(|book| book.currency().to_owned()),
        notes,
        ..PlanReport::default()
    };
    match outcome {
        Outcome::Met(answer) => fill(&mut report, answer),
        Outcome::NotMet(relaxations) => {
            report.relaxations = relaxations.iter().map(relaxation).collect();
        }
    }
    report
}

/// At a limit that is used by this share, requests of random arrivals queue.
const NEARLY_FULL: f64 = 0.95;

/// Returns the notes about a plan that was not simulated. `is_least` says that it is the cheapest for the need, and not
/// the fastest, which uses a limit up by construction.
#[must_use]
pub fn notes_without_proof(need: &Need, report: &PlanReport, is_least: bool) -> Vec<String> {
    let Some(plan) = &report.plan else { return Vec::new() };
    let mut notes = Vec::new();
    if need.roles.iter().any(|own| own.latency.is_some()) {
        let words = "disks are chosen by latency without waits at limits; verify simulates the plan with \
                     them";
        notes.push(words.to_owned());
    }
    let rates = plan.caps.iter().filter(|cap| matches!(cap.unit, Unit::Iops | Unit::Rate));
    let busiest = rates.max_by(|one, other| one.share.total_cmp(&other.share));
    if let Some(busiest) = busiest.filter(|cap| is_least && cap.share >= NEARLY_FULL) {
        notes.push(format!(
            "{} of {} are {} used, so requests may queue there: simulate their latency with verify, \
             or plan more capacity with headroom",
            busiest.cap,
            busiest.of,
            percent(busiest.share)
        ));
    }
    notes
}

/// Adds a proof to the report of its plan. A plan that fails is removed, with all comparisons to it.
pub fn add_proof(report: &mut PlanReport, proof: Proof) {
    let rows = proof.layouts.iter().flat_map(|(layout, got)| verified(layout, got));
    report.verified = rows.collect();
    report.notes.extend(proof.notes);
    if proof.is_failed {
        report.is_met = false;
        (report.plan, report.cheaper, report.better) = (None, None, None);
        report.passed_over = None;
        report.others.clear();
        report.unpriced_machines.clear();
    }
}

fn fill(report: &mut PlanReport, answer: &Answer) {
    report.is_met = true;
    report.plan = Some(choice(&answer.plan));
    report.compared = answer.compared;
    report.others = answer.others.iter().map(|own| beside(&own.title, own.cost)).collect();
    report.better = answer.better.as_ref().map(|own| beside(&own.title, own.cost));
    report.passed_over = passed_over(&answer.plan);
    report.cheaper = answer.cheaper.as_ref().map(|own| PlanCheaper {
        what: beside(&own.what, own.cost),
        fails: own.fails.iter().map(cap).collect(),
    });
    report.unranked.clone_from(&answer.unranked);
    report.unpriced_machines = unpriced_machines(answer);
    report.notes.extend(answer.notes.iter().cloned());
}

/// Returns the cheapest layout, if the plan has fewer disks for nearly the same price.
pub(crate) fn passed_over(plan: &Plan) -> Option<PlanPassedOver> {
    plan.passed_over.as_ref().map(|own| PlanPassedOver {
        what: beside(&own.title, own.cost),
        disks: own.disks,
        saves: Amount(plan.cost.month.beyond(own.cost.month)),
    })
}

/// Returns the machines without a price that may be cheaper than the plan.
pub(crate) fn unpriced_machines(answer: &Answer) -> Vec<PlanUnpriced> {
    let machine = |own: &Unpriced| PlanUnpriced {
        machine: own.host.clone(),
        layout: own.title.clone(),
        rest: month(own.cost.month, own.cost.unpriced),
    };
    answer.unpriced.iter().map(machine).collect()
}

/// Returns the report of a fleet.
#[must_use]
pub fn fleet_report(
    edition: &Edition,
    prices: Option<&PriceBook<'_>>,
    members: &[Member],
    outcome: &FleetOutcome,
    notes: Vec<String>,
) -> FleetReport {
    let mut report = FleetReport {
        edition: edition.name().to_owned(),
        region: prices.map(|book| book.region().to_owned()),
        currency: prices.map(|book| book.currency().to_owned()),
        databases: members.len(),
        notes,
        ..FleetReport::default()
    };
    match outcome {
        FleetOutcome::Met(plan) => {
            report.is_met = true;
            report.goal = Some(plan.goal.words().to_owned());
            report.month = month(plan.cost.month, plan.cost.unpriced);
            report.unpriced = plan.cost.unpriced;
            report.bound = plan.bound.map(Amount);
            report.gap = Some(float(plan.gap) / float(WHOLE));
            report.notes.extend(plan.notes.iter().cloned());
            let hosts = plan.instances.iter().enumerate();
            report.instances = hosts.map(|(at, own)| fleet_host(at, own, members)).collect();
        }
        FleetOutcome::NotMet(lacking) => {
            let lack = |(name, caps): &(String, Vec<CapUse>)| FleetLack {
                database: name.clone(),
                caps: caps.iter().map(cap).collect(),
            };
            report.lacks = lacking.iter().map(lack).collect();
        }
    }
    report
}

fn fleet_host(at: usize, own: &FleetInstance, members: &[Member]) -> FleetHost {
    FleetHost {
        name: format!("instance{}", at + 1),
        databases: own.members.iter().map(|member| members[*member].name.clone()).collect(),
        plan: choice(&own.plan),
        verified: None,
    }
}

/// Returns the layout in use with its bill, and the difference from the bill of the plan.
#[must_use]
pub fn present(name: String, bill: &Bill, planned: Option<&Bill>) -> PlanPresent {
    let comparable = planned.filter(|planned| planned.is_comparable(bill));
    let unpriced = u32::try_from(bill.unknown().count()).unwrap_or(u32::MAX);
    PlanPresent {
        name,
        month: month(bill.month(), unpriced),
        unpriced,
        unknown: bill.unknown().map(|line| format!("{} has no price", line.what)).collect(),
        lines: lines(&bill.lines),
        difference: comparable.map(|planned| Delta::between(bill.month(), planned.month())),
    }
}

/// Returns the simulated results of a layout, a row for each role.
pub fn verified<'g>(layout: &'g str, got: &'g [Got]) -> impl Iterator<Item = PlanVerified> + 'g {
    got.iter().map(move |own| PlanVerified {
        layout: layout.to_owned(),
        role: own.role.name().to_owned(),
        request: own.request,
        asked: own.asked,
        got: own.got,
        latency_ns: own.latency,
        median_ns: own.median,
        asked_latency_ns: own.asked_latency.map(Span::nanos),
        is_met: own.is_met(),
    })
}

pub(crate) fn choice(plan: &Plan) -> PlanChoice {
    let binding = plan.binding().map(|own| {
        let left = percent(1.0 - own.utilisation()).to_string();
        let own = cap(own);
        format!("{} of {}: {} of {}, {left} left", own.cap, own.of, own.needed(), own.limit())
    });
    let texts = |is_shown: fn(bool) -> bool| -> Vec<String> {
        let shown = plan.reasons.iter().filter(|own| is_shown(own.is_key));
        shown.map(|own| own.text.clone()).collect()
    };
    PlanChoice {
        family: plan.family.clone(),
        title: plan.title.clone(),
        layout: plan.layout.clone(),
        month: month(plan.cost.month, plan.cost.unpriced),
        unpriced: plan.cost.unpriced,
        disks: plan.disks,
        lines: lines(&plan.lines),
        caps: plan.caps.iter().map(cap).collect(),
        binding,
        key_points: texts(|is_key| is_key),
        reasons: texts(|_| true),
    }
}

/// Returns the lines of a bill with a number above 0.
#[must_use]
pub fn lines(all: &[Line]) -> Vec<PlanLine> {
    let counted = all.iter().filter(|line| line.units > 0);
    let line = |line: &Line| PlanLine {
        what: line.what.clone(),
        units: line.units,
        free: line.free.min(line.units),
        each: line.each.map(Amount),
        month: line.month().map(Amount),
        source: line.source.as_ref().map(|(source, _)| source.clone()),
        as_of: line.source.as_ref().map(|(_, as_of)| as_of.clone()),
    };
    counted.map(line).collect()
}

pub(crate) fn relaxation(own: &Relaxation) -> PlanRelaxation {
    PlanRelaxation { what: own.what.clone(), then: beside(&own.title, own.cost) }
}

fn beside(title: &str, cost: Cost) -> PlanBeside {
    let Cost { month: known, unpriced, .. } = cost;
    PlanBeside { title: title.to_owned(), month: month(known, unpriced), unpriced }
}

/// Returns the sum of the known prices; `None` if no price is known.
#[must_use]
pub fn month(known: Money, unpriced: u32) -> Option<Amount> {
    (unpriced == 0 || known > Money::ZERO).then_some(Amount(known))
}

pub(crate) fn cap(own: &CapUse) -> PlanCap {
    let (unit, parts) = match own.unit {
        CapUnit::Iops => (Unit::Iops, 1.0),
        CapUnit::Rate => (Unit::Rate, 1.0),
        CapUnit::Size => (Unit::Size, 1.0),
        CapUnit::Thousandths => (Unit::Count, 1_000.0),
        CapUnit::Number => (Unit::Count, 1.0),
    };
    PlanCap {
        of: own.of.clone(),
        cap: own.cap.to_owned(),
        used: float(own.used) / parts,
        most: float(own.most) / parts,
        unit,
        share: own.utilisation(),
    }
}
