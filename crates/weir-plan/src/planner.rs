//! The planner: searches all families, and explains the result.

mod families;
mod kind;
mod question;
mod rebuild;
mod relax;
mod search;

use crate::answer::{Answer, Incomplete, Plan, Reason, Relaxation, Unpriced};
use crate::error::PlanError;
use crate::family::Searched;
use crate::filesystem::FileSystem;
use crate::need::Wishes;
use crate::pooled;
use crate::rank::Aim;
use crate::share::{WHOLE, in_percent, to_tenths};
use families::families;
use kind::{IsUsed, Kind, stated_constraints};
pub use question::Question;
use relax::relaxations;
use search::{ALONE, cheapest, disk_families, machines, rank, search, services};
use std::collections::BTreeSet;
use weir_catalog::{Edition, Per, PriceBook};
use weir_layout::Role;
use weir_units::Money;

/// The largest multiple of the need that is tried for the fastest layout.
const MOST_TIMES: u64 = 100_000;

/// Finds the plan and explains it.
const EXPLAINED: Aim = Aim { explains: true, budget: None };

/// The outcome of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The need is feasible.
    Met(Box<Answer>),
    /// The need is infeasible; each of these changes alone makes it feasible.
    NotMet(Vec<Relaxation>),
}

/// Finds the cheapest layout that meets a need.
///
/// # Errors
///
/// [`PlanError`] for unknown names, and for roles that a family does not have.
pub fn plan(question: &Question<'_>) -> Result<Outcome, PlanError> {
    let families = families(question)?;
    let searched = search(question, &families, EXPLAINED)?;
    match answer(question, &families, searched)? {
        Some(answer) => Ok(Outcome::Met(Box::new(answer))),
        None => Ok(Outcome::NotMet(relaxations(question, &families)?)),
    }
}

/// Finds the cheapest layout like [`plan`], without alternatives, notes and relaxations.
///
/// # Errors
///
/// As [`plan`].
pub fn plan_alone(question: &Question<'_>) -> Result<Option<Plan>, PlanError> {
    let searched = search(question, &families(question)?, ALONE)?;
    Ok(cheapest(&searched).cloned())
}

/// Finds the fastest layout within `budget` per month and the constraints. All rates of the need
/// are scaled alike.
///
/// # Errors
///
/// As [`plan`], and for a budget with missing prices.
pub fn within(question: &Question<'_>, budget: Option<Money>) -> Result<Outcome, PlanError> {
    if question.need.roles.iter().all(|own| own.iops == 0 && own.throughput == 0) {
        return match budget {
            Some(budget) => least(question, budget),
            None => Err(PlanError::need(
                "the fastest layout",
                "the need has no rates; state IOPS or throughput",
            )),
        };
    }
    let mut outcome = fastest(question, budget)?;
    if let Outcome::Met(answer) = &mut outcome {
        let words = format!("carries {} % of the need", in_percent(to_tenths(answer.carried)));
        answer.plan.reasons.insert(0, Reason::key(words));
    }
    Ok(outcome)
}

/// Finds the cheapest layout for the sizes of a need within a budget.
fn least(question: &Question<'_>, budget: Money) -> Result<Outcome, PlanError> {
    let (families, budget) = (families(question)?, budget.largest_alike());
    // Without rates no limit is counted on.
    let wishes = Wishes { needs_limits: false, ..question.wishes.clone() };
    let question = &Question { wishes: &wishes, ..*question };
    let searched = search(question, &families, Aim { explains: true, budget: Some(budget) })?;
    let fits = |plan: &Plan| plan.cost.unpriced == 0 && plan.cost.month <= budget;
    if !cheapest(&searched).is_some_and(fits) {
        return too_little(question, &families, budget);
    }
    Ok(match answer(question, &families, searched)? {
        Some(answer) => Outcome::Met(Box::new(answer)),
        None => Outcome::NotMet(Vec::new()),
    })
}

/// Finds the fastest layout like [`within`], for a need with rates.
///
/// # Errors
///
/// As [`within`], and for a machine whose limits are not published.
pub fn fastest(question: &Question<'_>, budget: Option<Money>) -> Result<Outcome, PlanError> {
    let budget = budget.map(Money::largest_alike);
    // A layout is the fastest only up to limits that are known.
    let wishes = Wishes { needs_limits: true, ..question.wishes.clone() };
    let question = &Question { wishes: &wishes, ..*question };
    let families = families(question)?;
    let aim = Aim { explains: false, budget };
    let best_of = |part: u64| -> Result<Option<Vec<Searched>>, PlanError> {
        let need = question.need.scaled(part);
        let searched = search(&Question { need: &need, ..*question }, &families, aim)?;
        let is_fine = cheapest(&searched).is_some_and(|plan| match budget {
            Some(budget) => plan.cost.unpriced == 0 && plan.cost.month <= budget,
            None => true,
        });
        Ok(is_fine.then_some(searched))
    };
    // Bisects the largest feasible scale, to one ten-thousandth of itself.
    let (mut low, mut high) = (0, WHOLE);
    while high <= WHOLE * MOST_TIMES && best_of(high)?.is_some() {
        low = high;
        high *= 2;
    }
    if low == 0 && best_of(1)?.is_none() {
        check_limits(question)?;
        return match budget {
            Some(budget) => too_little(question, &families, budget),
            None => Ok(Outcome::NotMet(relaxations(question, &families)?)),
        };
    }
    while high - low > (low / 10_000).max(1) {
        let middle = low + (high - low) / 2;
        match best_of(middle)? {
            Some(_) => low = middle,
            None => high = middle,
        }
    }
    let part = low.max(1);
    let need = question.need.scaled(part);
    let scaled = Question { need: &need, ..*question };
    let searched = search(&scaled, &families, Aim { explains: true, ..aim })?;
    let Some(mut answer) = answer(&scaled, &families, searched)? else {
        return Ok(Outcome::NotMet(Vec::new()));
    };
    let carried = answer.plan.carries().unwrap_or(WHOLE);
    let times = u128::from(part) * u128::from(carried) / u128::from(WHOLE);
    answer.carried = u64::try_from(times).unwrap_or(u64::MAX);
    Ok(Outcome::Met(Box::new(answer)))
}

/// Returns an error if the least of a need is carried by limits alone that are not published.
fn check_limits(question: &Question<'_>) -> Result<(), PlanError> {
    let need = question.need.scaled(1);
    let counting = Wishes { needs_limits: false, ..question.wishes.clone() };
    let least = Question { need: &need, wishes: &counting, ..*question };
    let Some(plan) = plan_alone(&least)? else { return Ok(()) };
    if plan_alone(&Question { need: &need, ..*question })?.is_some() {
        return Ok(());
    }
    let machine = plan.title.split(':').next().unwrap_or_default();
    let reason = "its limits are not published, so the highest rates on it are not known; ask for a plan of \
                  stated rates, without --fastest and --budget";
    Err(PlanError::need(machine, reason))
}

/// Returns the smallest budget that pays for the sizes of the need.
fn too_little(
    question: &Question<'_>,
    families: &[Kind],
    budget: Money,
) -> Result<Outcome, PlanError> {
    let need = question.need.scaled(1);
    let aim = Aim { explains: false, budget: Some(Money::ZERO) };
    let searched = search(&Question { need: &need, ..*question }, families, aim)?;
    let Some(plan) = cheapest(&searched) else {
        return Ok(Outcome::NotMet(relaxations(question, families)?));
    };
    if plan.cost.unpriced > 0 {
        let reason = "prices are missing, so the cost cannot be compared with the budget; add them \
                      with --prices FILE";
        return Err(PlanError::need(format!("{} with a budget of {budget}", plan.title), reason));
    }
    let what = format!("a budget of {}, the lowest price for the sizes alone", plan.cost.month);
    Ok(Outcome::NotMet(vec![Relaxation { what, cost: plan.cost, title: plan.title.clone() }]))
}

/// Returns whether an edition has machines that are rented as such.
pub(crate) fn has_machines(edition: &Edition) -> bool {
    Kind::Machine.is_in(edition)
}

/// Returns a note about machines that were left out because their limits are not published.
///
/// # Errors
///
/// As [`plan`].
pub fn left_out(question: &Question<'_>) -> Result<Option<String>, PlanError> {
    match families(question)?.contains(&Kind::Machine) {
        true => Ok(machines(question)?.left_out(question.need)),
        false => Ok(None),
    }
}

fn answer(
    question: &Question<'_>,
    families: &[Kind],
    mut searched: Vec<Searched>,
) -> Result<Option<Answer>, PlanError> {
    let compared = searched.iter().map(|own| own.compared).sum();
    searched.retain(|own| own.plan.is_some());
    searched.sort_by_key(|own| own.plan.as_ref().map(rank));
    let mut searched = searched.into_iter();
    let Some(Searched { plan: Some(mut plan), cheaper, .. }) = searched.next() else {
        return Ok(None);
    };
    let others = searched.filter_map(|own| own.plan).collect();
    let better = better(question, families, &plan)?;
    let unranked = unranked(question, &plan);
    let unpriced = unpriced(question, families, &plan)?;
    let mut notes = notes(question, &plan);
    if plan.family == Kind::Machine.name() {
        notes.extend(left_out(question)?);
    }
    if question.wishes.keep.is_some() && cheaper.is_none() {
        notes.push("no cheaper layout one step away keeps the disks and files in use".to_owned());
    }
    let unchanged = rebuild::without_rebuilding(question, families, &plan)?;
    plan.reasons.extend(unchanged.map(Reason::key));
    let incomplete = incomplete(question, families, &plan)?;
    plan.reasons.extend(incomplete.iter().map(|own| Reason::key(own.words())));
    let carried = WHOLE;
    Ok(Some(Answer {
        plan,
        others,
        cheaper,
        carried,
        better,
        compared,
        unranked,
        unpriced,
        incomplete,
        notes,
    }))
}

/// Returns notes about prices, and about parts of the need that do not affect the plan.
fn notes<'a>(question: &Question<'a>, plan: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    for list in question
        .prices
        .into_iter()
        .flat_map(|book: &'a PriceBook<'a>| book.lists().iter().chain(book.unlicensed_lists()))
    {
        let is_used = plan.lines.iter().any(|line| {
            line.source.as_ref().is_some_and(|(source, _)| source == list.provenance.source())
        });
        let said = list.provenance.notes().iter().filter(|_| is_used);
        notes.extend(said.map(|note| format!("prices of {}: {note}", list.provenance.as_of())));
    }
    // Lists of two operating systems may have the same notes.
    let mut seen = BTreeSet::new();
    notes.retain(|note| seen.insert(note.clone()));
    let wishes = question.wishes;
    let is_machine = plan.family == Kind::Machine.name();
    if is_machine
        && wishes.file_system() == FileSystem::Ntfs
        && wishes.os.is_none()
        && !wishes.owns_licence()
    {
        let words = "ntfs needs Windows, whose licence is in the price only with os = \"windows\" \
                     (--os windows)";
        notes.push(words.to_owned());
    }
    let family = Kind::named(&plan.family);
    let is_idle = |is_used: IsUsed| !family.is_some_and(|family| is_used(question, family));
    let idle: Vec<&str> = stated_constraints(question.wishes)
        .filter(|(_, is_used)| is_idle(*is_used))
        .map(|(key, _)| key)
        .collect();
    if !idle.is_empty() {
        notes.push(format!(
            "without effect on {}, the family of the plan: {}",
            plan.family,
            idle.join(", ")
        ));
    }
    let has_cache = plan.family == Kind::Machine.name() && question.edition.host_cache().is_some();
    let is_cacheable = |role: Role| has_cache && matches!(role, Role::Data | Role::Tempdb);
    let idle = question.need.roles.iter().filter(|own| own.working_set.is_some());
    let idle: Vec<&str> =
        idle.filter(|own| !is_cacheable(own.role)).map(|own| own.role.name()).collect();
    if !idle.is_empty() {
        notes.push(format!(
            "{}: the working set has no effect, because the plan uses no cache for it",
            idle.join(", ")
        ));
    }
    notes
}

/// Returns a note about missing prices, if no layout has all of them.
fn unranked(question: &Question<'_>, plan: &Plan) -> Option<String> {
    if question.prices.is_none() {
        return Some(format!(
            "{} has no prices, so smaller layouts rank first (add prices with --prices FILE)",
            question.edition.name()
        ));
    }
    (plan.cost.unpriced > 0).then(|| {
        "no layout that meets the need has all prices; fewer missing prices rank first, then the \
         lower known price, then the smaller layout (add prices with --prices FILE)"
            .to_owned()
    })
}

/// Returns the machines without a price that may be cheaper than the plan, in all families.
fn unpriced(
    question: &Question<'_>,
    families: &[Kind],
    plan: &Plan,
) -> Result<Vec<Unpriced>, PlanError> {
    if question.prices.is_none() || plan.cost.unpriced > 0 || question.wishes.host.is_some() {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    for family in families {
        match *family {
            Kind::Machine => {
                let machines = machines(question)?;
                all.extend(machines.unpriced(question.need));
                all.extend(pooled::unpriced(&machines, question.need));
            }
            Kind::Service(service) => {
                let services = services(question, service, disk_families(question)?);
                all.extend(services.unpriced(question.need));
            }
            // Instances are paid by the vCore.
            Kind::Instance(_) => {}
        }
    }
    // The unknown price is above zero, so a layout that costs as much without it costs more.
    all.retain(|own| own.cost.month < plan.cost.month);
    all.sort_by(|one, other| (one.cost, &one.host).cmp(&(other.cost, &other.host)));
    let mut seen = BTreeSet::new();
    all.retain(|own| seen.insert(own.host.clone()));
    Ok(all)
}

/// Returns the cheapest layout on a family of disks without all prices, if its known prices are below the plan's.
fn incomplete(
    question: &Question<'_>,
    families: &[Kind],
    plan: &Plan,
) -> Result<Option<Incomplete>, PlanError> {
    let Some(book) = question.prices else { return Ok(None) };
    let is_new = question.wishes.keep.is_none() && families.contains(&Kind::Machine);
    if plan.cost.unpriced > 0 || !is_new {
        return Ok(None);
    }
    let has = |family: &str, per| book.unit(family, per).is_some();
    let is_provisioned = |family: &&str| {
        let mut all = question.edition.provisioned_families().iter();
        all.any(|own| own.family == **family)
    };
    let lacks = |family: &&str| {
        let throughput = has(family, Per::Mbps) || has(family, Per::Mibps);
        !(has(family, Per::Gib) && has(family, Per::Iops) && throughput)
    };
    let mut found: Option<Incomplete> = None;
    let disks = disk_families(question)?;
    for family in disks.into_iter().filter(is_provisioned).filter(lacks) {
        let wishes = Wishes { disks: vec![family.to_owned()], ..question.wishes.clone() };
        let searched = search(&Question { wishes: &wishes, ..*question }, &[Kind::Machine], ALONE)?;
        let Some(other) = cheapest(&searched) else { continue };
        let least = found.as_ref().map_or(plan.cost.month, |own| own.cost.month);
        if other.cost.unpriced > 0 && other.cost.month < least {
            let lacking = other.lines.iter().filter(|line| line.each.is_none());
            found = Some(Incomplete {
                title: other.title.clone(),
                cost: other.cost,
                lacks: lacking.map(|line| line.what.clone()).collect(),
            });
        }
    }
    Ok(found)
}

/// Returns the cheapest layout that carries more than the plan.
fn better(
    question: &Question<'_>,
    families: &[Kind],
    plan: &Plan,
) -> Result<Option<Plan>, PlanError> {
    let Some(carries) = plan.carries() else { return Ok(None) };
    // Rounding may hide the first step.
    for more in [1, 100, 10_000] {
        let need = question.need.scaled(carries.saturating_add(more));
        let searched = search(&Question { need: &need, ..*question }, families, ALONE)?;
        match cheapest(&searched) {
            Some(better) if better.layout != plan.layout => return Ok(Some(better.clone())),
            Some(_) => {}
            None => return Ok(None),
        }
    }
    Ok(None)
}
