//! The planner: searches all families, and explains the result.

mod rebuild;
mod relax;

use crate::answer::{Answer, Plan, Relaxation};
use crate::cost::Prices;
use crate::disks::{Market, credits, typical};
use crate::error::PlanError;
use crate::filesystem::FileSystem;
use crate::instance::Instances;
use crate::keep::Kept;
use crate::machine::{Machines, Searched, licence_of_machine};
use crate::need::{Need, WHOLE, Wishes, in_percent};
use crate::pooled;
use crate::rank::Aim;
use crate::service::{Service, Services};
use relax::relaxations;
use std::collections::BTreeSet;
use weir_catalog::{Catalog, Edition, HostSize, PriceBook, Series};
use weir_layout::{ManagedInstance, Role};
use weir_units::Money;

/// The request size at which the latency of families is compared.
const PAGE: u64 = 8 << 10;

/// The largest multiple of the need that is tried for the fastest layout.
const MOST_TIMES: u64 = 100_000;

/// Finds the plan and explains it.
const EXPLAINED: Aim = Aim { explains: true, budget: None };
/// Finds the plan only.
const ALONE: Aim = Aim { explains: false, budget: None };

/// A question to the planner.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// All editions.
    pub catalog: &'a Catalog,
    /// The edition to plan with.
    pub edition: &'a Edition,
    /// The prices, if they are known.
    pub prices: Option<&'a PriceBook<'a>>,
    /// The need.
    pub need: &'a Need,
    /// The constraints.
    pub wishes: &'a Wishes,
}

/// The outcome of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The need is feasible.
    Met(Box<Answer>),
    /// The need is infeasible; each of these changes alone makes it feasible.
    NotMet(Vec<Relaxation>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Machine,
    Instance(ManagedInstance),
    Service(Service),
}

const GP: Family = Family::Instance(ManagedInstance::Gp);

impl Family {
    const ALL: [Self; 6] = [
        Self::Machine,
        Self::Instance(ManagedInstance::Gp),
        Self::Instance(ManagedInstance::NextGenGp),
        Self::Instance(ManagedInstance::Bc),
        Self::Service(Service::Rds),
        Self::Service(Service::Postgres),
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Machine => "vm",
            Self::Instance(kind) => kind.name(),
            Self::Service(service) => service.name(),
        }
    }

    fn is_in(self, edition: &Edition) -> bool {
        edition.series().iter().any(|series| self.has(series))
    }

    /// Returns whether a series belongs to this family.
    fn has(self, series: &Series) -> bool {
        let is_instance = Self::ALL
            .into_iter()
            .any(|family| matches!(family, Self::Instance(_)) && family.name() == series.name);
        match self {
            Self::Machine => !is_instance && series.service.is_none(),
            Self::Instance(kind) => series.name == kind.name(),
            Self::Service(service) => series.service.as_deref() == Some(service.name()),
        }
    }

    fn hosts(self, edition: &Edition) -> impl Iterator<Item = &HostSize> {
        let own = edition.series().iter().filter(move |series| self.has(series));
        own.flat_map(|series| &series.hosts)
    }
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

/// Finds the fastest layout within `budget` per month and the constraints. All rates of the need
/// are scaled alike.
///
/// # Errors
///
/// As [`plan`], and for a budget with missing prices.
pub fn within(question: &Question<'_>, budget: Option<Money>) -> Result<Outcome, PlanError> {
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
        let Some(budget) = budget else {
            return Ok(Outcome::NotMet(relaxations(question, &families)?));
        };
        return too_little(question, &families, budget);
    }
    while high - low > (low / 10_000).max(1) {
        let middle = low + (high - low) / 2;
        match best_of(middle)? {
            Some(_) => low = middle,
            None => high = middle,
        }
    }
    let need = question.need.scaled(low.max(1));
    let scaled = Question { need: &need, ..*question };
    let searched = search(&scaled, &families, Aim { explains: true, ..aim })?;
    Ok(match answer(&scaled, &families, searched)? {
        Some(mut answer) => {
            let carried = answer.plan.carries().unwrap_or(WHOLE);
            let times = u128::from(low) * u128::from(carried) / u128::from(WHOLE);
            let times = u64::try_from(times).unwrap_or(u64::MAX);
            let words = format!("carries {} % of the need", in_percent(times));
            answer.plan.reasons.insert(0, words);
            Outcome::Met(Box::new(answer))
        }
        None => Outcome::NotMet(Vec::new()),
    })
}

/// Returns the smallest budget that pays for the sizes of the need.
fn too_little(
    question: &Question<'_>,
    families: &[Family],
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

/// Returns the families to search, and checks that each constraint applies to one of them.
fn families(question: &Question<'_>) -> Result<Vec<Family>, PlanError> {
    if let Some(kept) = &question.wishes.keep {
        kept.check(question.need)?;
        keeps_no_service(question.edition, kept)?;
    }
    let families = families_of(question)?;
    let (edition, wishes) = (question.edition, question.wishes);
    if families.iter().all(|family| *family == Family::Machine) {
        let licence = licence_of_machine(edition, wishes);
        licence.map_err(|reason| PlanError::need("licence_owned", reason))?;
    }
    if families.contains(&Family::Machine) {
        check_file_system(edition, wishes)
            .map_err(|reason| PlanError::need("filesystem", reason))?;
    }
    let is_idle = |is_used: IsUsed| !families.iter().any(|family| is_used(question, *family));
    if let Some((key, _)) = said(wishes).find(|(_, is_used)| is_idle(*is_used)) {
        let names: Vec<&str> = families.iter().map(|family| family.name()).collect();
        let reason = format!("does not apply to {}; leave it out", names.join(", "));
        return Err(PlanError::need(key, reason));
    }
    if families.contains(&Family::Machine) {
        keeps_no_shared(question)?;
        last(question)?;
    }
    Ok(families)
}

/// Checks that the machine's operating system has the file system, and that disks in use keep
/// theirs.
fn check_file_system(edition: &Edition, wishes: &Wishes) -> Result<(), String> {
    let (own, kept) = (wishes.file_system(), wishes.keep.as_ref().map(|kept| kept.filesystem));
    if let Some(kept) = kept.filter(|kept| *kept != FileSystem::None && *kept != own) {
        return Err(format!(
            "the disks in use have {}, and another file system would erase them; leave it out",
            kept.name()
        ));
    }
    if kept == Some(FileSystem::None) && own != FileSystem::None {
        return Err(format!(
            "the layout to keep does not state the file system of its disks; if it is {}, add \
             filesystem = {:?} to its [host], otherwise leave it out",
            own.name(),
            own.name()
        ));
    }
    let is = |name: &str| wishes.os.as_ref().is_some_and(|os| os.eq_ignore_ascii_case(name));
    let is_windows = is("windows") || licence_of_machine(edition, wishes) == Ok(true);
    match own {
        FileSystem::Ntfs if is("linux") => {
            Err("ntfs needs Windows, but os is linux; use os = \"windows\", or xfs or ext4"
                .to_owned())
        }
        FileSystem::Ext4 | FileSystem::Xfs if is_windows => Err(format!(
            "{} needs Linux, but the machine runs Windows; use ntfs, or leave out os and \
             licence_owned",
            own.name()
        )),
        _ => Ok(()),
    }
}

/// Tells whether a constraint applies to a family.
type IsUsed = fn(&Question<'_>, Family) -> bool;

/// Lists the constraints of a question and the families that they apply to.
fn said(wishes: &Wishes) -> impl Iterator<Item = (&'static str, IsUsed)> {
    let machine: IsUsed = |_, family| family == Family::Machine;
    let service: IsUsed = |_, family| matches!(family, Family::Service(_));
    let licence: IsUsed = |question, family| {
        family != Family::Machine || licence_of_machine(question.edition, question.wishes).is_ok()
    };
    let all: [(_, _, IsUsed); 11] = [
        ("os", wishes.os.is_some(), machine),
        ("disks", !wishes.disks.is_empty(), |_, own| !matches!(own, Family::Instance(_))),
        ("max_disks", wishes.max_disks.is_some(), machine),
        ("apart", wishes.is_apart || wishes.shares_backup, machine),
        ("filesystem", wishes.filesystem != FileSystem::None, machine),
        ("max_files", wishes.max_files.is_some(), |_, own| own == GP),
        ("storage", wishes.storage.is_some(), |_, own| own != Family::Machine),
        ("licence_owned", wishes.owns_licence(), licence),
        ("engine", wishes.engine.is_some(), service),
        ("keep", wishes.keep.is_some(), |_, own| !matches!(own, Family::Service(_))),
        ("bursting", wishes.peaks.is_some(), machine),
    ];
    all.into_iter().filter(|(_, is_said, _)| *is_said).map(|(key, _, is_used)| (key, is_used))
}

/// Rejects services in use: their storage cannot be attached to anything else.
fn keeps_no_service(edition: &Edition, kept: &Kept) -> Result<(), PlanError> {
    let host = kept.host.as_ref().and_then(|name| edition.host(name).ok());
    let service = host.and_then(|host| edition.series_of(host)?.service.clone());
    match (service, &kept.host) {
        (Some(service), Some(host)) => {
            let host = host.rsplit('/').next().unwrap_or(host);
            let reason = format!(
                "is a server of {service} ({host}), and plans do not extend services; leave out \
                 keep, and move the data"
            );
            Err(PlanError::need("the layout to keep", reason))
        }
        _ => Ok(()),
    }
}

/// Rejects disks in use that share their limits: their limits depend on the size of all of them.
fn keeps_no_shared(question: &Question<'_>) -> Result<(), PlanError> {
    let pools = || question.wishes.keep.iter().flat_map(|kept| &kept.pools);
    let shared = question.edition.pooled_families();
    match pools().find(|pool| shared.iter().any(|own| own.family == pool.family)) {
        Some(pool) => {
            let what = format!("{} of the layout to keep", pool.name);
            let reason = format!(
                "is on {}, whose disks share their limits, and plans do not extend those; leave \
                 out keep",
                pool.family
            );
            Err(PlanError::need(what, reason))
        }
        None => Ok(()),
    }
}

/// Checks that some burst credits last as long as peaks.
fn last(question: &Question<'_>) -> Result<(), PlanError> {
    let Some(peaks) = question.wishes.peaks else { return Ok(()) };
    let (edition, kept) = (question.edition, question.wishes.keep.as_ref());
    let is_new = |role: Role| kept.is_none_or(|kept| kept.pool(role).is_none());
    let mut families = match question.need.roles.iter().any(|own| is_new(own.role)) {
        true => disk_families(question)?,
        false => Vec::new(),
    };
    families.extend(kept.iter().flat_map(|kept| &kept.pools).map(|pool| pool.family.as_str()));
    let market = Market { edition, prices: Prices(question.prices), families: &families };
    let Some(longest) = market.tiers().filter_map(credits).max() else {
        let mut names: Vec<&str> = families.clone();
        names.dedup();
        let reason = format!("no disks of {} have burst credits; leave it out", names.join(", "));
        return Err(PlanError::need("bursting", reason));
    };
    if longest >= peaks {
        return Ok(());
    }
    let lasting = market.tiers().filter(|tier| credits(tier) == Some(longest));
    let names: Vec<&str> = lasting.map(|tier| tier.name.as_str()).collect();
    let reason = format!(
        "no burst credits last {peaks}; the longest last {longest} ({}); leave it out, or plan for \
         shorter peaks",
        names.join(", ")
    );
    Err(PlanError::need("bursting", reason))
}

fn families_of(question: &Question<'_>) -> Result<Vec<Family>, PlanError> {
    let has = |family: &Family| family.is_in(question.edition);
    let own: Vec<Family> = Family::ALL.into_iter().filter(has).collect();
    let own: Vec<Family> = own
        .into_iter()
        .filter(|family| match (&question.wishes.keep, family) {
            (None, _) => true,
            (Some(kept), Family::Machine) => kept.instance.is_none(),
            (Some(kept), Family::Instance(kind)) => {
                kept.instance.is_some_and(|(own, ..)| own == *kind)
            }
            (Some(_), Family::Service(_)) => false,
        })
        .collect();
    if let (true, Some(kept)) = (own.is_empty(), &question.wishes.keep) {
        let what = match kept.instance {
            Some((kind, ..)) => {
                format!("no {} instances, as the layout to keep has", kind.name())
            }
            None => "no machines, as the layout to keep has".to_owned(),
        };
        return Err(PlanError::Nothing { edition: question.edition.name().to_owned(), what });
    }
    let known = || own.iter().map(|family| family.name()).collect::<Vec<_>>().join(", ");
    let edition = question.edition.name();
    if own.is_empty() {
        let what = "neither machines nor instances; plan with another edition".to_owned();
        return Err(PlanError::Nothing { edition: edition.to_owned(), what });
    }
    let mut wanted = Vec::new();
    for name in &question.wishes.families {
        match own.iter().find(|family| family.name() == name) {
            Some(family) => wanted.push(*family),
            None => {
                let what = format!("no family {name:?}; it has {}", known());
                return Err(PlanError::Nothing { edition: edition.to_owned(), what });
            }
        }
    }
    // A named machine belongs to one family.
    if let Some(host) = &question.wishes.host {
        let size = question.edition.host(host)?;
        let series = question.edition.series_of(size);
        let named: Vec<Family> = own
            .iter()
            .copied()
            .filter(|family: &Family| series.is_some_and(|series| family.has(series)))
            .collect();
        if !wanted.is_empty() && !named.iter().any(|family| wanted.contains(family)) {
            let reason = format!("is not in the families {}", question.wishes.families.join(", "));
            return Err(PlanError::need(format!("host {host}"), reason));
        }
        return Ok(named);
    }
    if !wanted.is_empty() {
        return Ok(wanted);
    }
    // A service without the requested features is skipped if there is another family.
    let fit: Vec<Family> = own
        .iter()
        .filter(|family: &&Family| {
            !matches!(family, Family::Service(_)) || has_what_is_asked(question, **family)
        })
        .copied()
        .collect();
    Ok(if fit.is_empty() { own } else { fit })
}

/// Returns whether a family has the roles and features of the question.
fn has_what_is_asked(question: &Question<'_>, family: Family) -> bool {
    match family {
        Family::Machine => true,
        Family::Instance(_) => question.need.role(Role::Backup).is_none(),
        Family::Service(service) => {
            services(question, service, Vec::new()).check(question.need).is_ok()
        }
    }
}

fn services<'a>(question: &Question<'a>, service: Service, families: Vec<&'a str>) -> Services<'a> {
    let (edition, prices) = (question.edition, Prices(question.prices));
    Services { service, edition, prices, families, wishes: question.wishes }
}

/// Returns the disk families to use.
fn disk_families<'a>(question: &Question<'a>) -> Result<Vec<&'a str>, PlanError> {
    usable_families(question.edition, &question.wishes.disks)
}

/// Returns the requested disk families of an edition; by default, those that are no slower than the
/// edition's default family.
///
/// # Errors
///
/// [`PlanError::Nothing`] for a family that the edition does not have.
pub(crate) fn usable_families<'a>(
    edition: &'a Edition,
    wished: &[String],
) -> Result<Vec<&'a str>, PlanError> {
    let mut all: Vec<&str> = Vec::new();
    for family in edition.families() {
        if !all.contains(&family) {
            all.push(family);
        }
    }
    if wished.is_empty() {
        // Slower families are used only on request.
        let usual = edition.default_set().and_then(|set| typical(edition, &set.family, PAGE));
        all.retain(|family| {
            usual.is_none_or(|usual| typical(edition, family, PAGE).is_some_and(|own| own <= usual))
        });
        return Ok(all);
    }
    wished
        .iter()
        .map(|name: &String| match all.iter().find(|family| family.eq_ignore_ascii_case(name)) {
            Some(family) => Ok(*family),
            None => Err(PlanError::Nothing {
                edition: edition.name().to_owned(),
                what: format!("no disks {name:?}; it has {}", all.join(", ")),
            }),
        })
        .collect()
}

fn search(
    question: &Question<'_>,
    families: &[Family],
    aim: Aim,
) -> Result<Vec<Searched>, PlanError> {
    let prices = Prices(question.prices);
    let of = |family: &Family| match *family {
        Family::Machine => {
            let machines = machines(question)?;
            let shared = pooled::search(&machines, question.need, aim);
            let rival = shared.plan.as_ref().map(|plan| plan.cost);
            Ok(machines.search(question.need, aim, rival).merged(shared, aim))
        }
        Family::Instance(kind) => {
            let (catalog, edition) = (question.catalog, question.edition);
            let instances = Instances { kind, catalog, edition, prices, wishes: question.wishes };
            instances.search(question.need, aim.explains)
        }
        Family::Service(service) => {
            let services = services(question, service, disk_families(question)?);
            services.search(question.need, aim.explains)
        }
    };
    families.iter().map(of).collect()
}

fn machines<'a>(question: &Question<'a>) -> Result<Machines<'a>, PlanError> {
    let editions = std::iter::once(question.edition).chain(question.catalog.editions());
    let mut striping = editions.filter_map(Edition::striping);
    let units = striping.next().map(|striping| striping.units.iter().map(|own| own.unit));
    Ok(Machines {
        edition: question.edition,
        prices: Prices(question.prices),
        units: units.map(Iterator::collect).unwrap_or_default(),
        families: disk_families(question)?,
        wishes: question.wishes,
    })
}

/// Returns a note about machines that were left out because their limits are not published.
///
/// # Errors
///
/// As [`plan`].
pub fn left_out(question: &Question<'_>) -> Result<Option<String>, PlanError> {
    match families(question)?.contains(&Family::Machine) {
        true => Ok(machines(question)?.left_out(question.need)),
        false => Ok(None),
    }
}

fn cheapest(searched: &[Searched]) -> Option<&Plan> {
    searched.iter().filter_map(|own| own.plan.as_ref()).min_by_key(|plan| rank(plan))
}

/// Returns the key that orders plans of different families. Sizes of different families cannot be
/// compared, so plans without prices keep their order.
fn rank(plan: &Plan) -> (u32, Money) {
    (plan.cost.unpriced, plan.cost.month)
}

fn answer(
    question: &Question<'_>,
    families: &[Family],
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
    let mut notes = notes(question, &plan);
    if plan.family == Family::Machine.name() {
        notes.extend(left_out(question)?);
    }
    if question.wishes.keep.is_some() && cheaper.is_none() {
        notes.push("no cheaper layout one step away keeps the disks and files in use".to_owned());
    }
    plan.reasons.extend(rebuild::without_rebuilding(question, families, &plan)?);
    Ok(Some(Answer { plan, others, cheaper, better, compared, unranked, notes }))
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
    let is_machine = plan.family == Family::Machine.name();
    if is_machine
        && wishes.file_system() == FileSystem::Ntfs
        && wishes.os.is_none()
        && !wishes.owns_licence()
    {
        let words = "ntfs needs Windows, whose licence is in the price only with os = \"windows\" \
                     (--os windows)";
        notes.push(words.to_owned());
    }
    let family = Family::ALL.into_iter().find(|family| family.name() == plan.family);
    let is_idle = |is_used: IsUsed| !family.is_some_and(|family| is_used(question, family));
    let idle: Vec<&str> = said(question.wishes)
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
    let has_cache =
        plan.family == Family::Machine.name() && question.edition.host_cache().is_some();
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

/// Returns a note about missing prices, if one of them could change the answer.
fn unranked(question: &Question<'_>, plan: &Plan) -> Option<String> {
    let Some(book) = question.prices else {
        return Some(format!(
            "{} has no prices, so smaller layouts rank first (add prices with --prices FILE)",
            question.edition.name()
        ));
    };
    if plan.cost.unpriced > 0 {
        return Some(
            "no layout that meets the need has all prices; fewer missing prices rank first, then \
             the lower known price, then the smaller layout (add prices with --prices FILE)"
                .to_owned(),
        );
    }
    let family = Family::ALL.into_iter().find(|family| family.name() == plan.family);
    // Machines without a price of their own are paid by the vCore.
    let family = family.filter(|family| !matches!(family, Family::Instance(_)));
    let hosts = || family.into_iter().flat_map(|family| family.hosts(question.edition));
    let has_licence = plan.family == Family::Machine.name()
        && licence_of_machine(question.edition, question.wishes).unwrap_or(false);
    let price = |host: &HostSize| match has_licence {
        true => book.unlicensed_host(&host.name),
        false => book.host(&host.name),
    };
    let unknown = hosts().filter(|host| price(host).is_none()).count();
    (unknown > 0 && question.wishes.host.is_none()).then(|| {
        format!(
            "of {} machines, {unknown} have no price (region: {}) and are not ranked; one of them \
             may be cheaper (add prices with --prices FILE)",
            hosts().count(),
            book.region()
        )
    })
}

/// Returns the cheapest layout that carries more than the plan.
fn better(
    question: &Question<'_>,
    families: &[Family],
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
