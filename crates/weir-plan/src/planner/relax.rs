//! The changes that would meet a need that cannot be met as asked.

use super::families::{families_of, has_what_is_asked};
use super::kind::{GP, Kind};
use super::question::Question;
use super::search::{ALONE, cheapest, search};
use crate::answer::{Plan, Relaxation};
use crate::disks::stated_latency;
use crate::error::PlanError;
use crate::need::{Need, RoleNeed, Wishes};
use crate::share::{WHOLE, in_percent};
use weir_layout::Role;
use weir_report::number::{float, time};
use weir_units::Bytes;

/// A wish or requirement that can be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Give {
    Host,
    Architecture,
    Downtime,
    Keep,
    MaxDisks,
    MaxFiles,
    Disks,
    Apart,
    /// The disks of a backup.
    Backup,
    Storage,
    Families,
    /// Maximum latency of the role at this index.
    Latency(usize),
    /// Number of processors and memory.
    Machine,
}

impl Give {
    /// Lists all constraints and requirements that can be dropped.
    fn all(question: &Question<'_>, families: &[Kind]) -> Vec<Self> {
        let (need, wishes) = (question.need, question.wishes);
        let is_up = wishes.keep.as_ref().is_some_and(|kept| kept.is_up);
        let has_files = families.contains(&GP);
        let said = [
            (Self::Host, wishes.host.is_some()),
            (Self::Architecture, wishes.architecture.is_some()),
            (Self::Downtime, is_up),
            (Self::Keep, wishes.keep.is_some()),
            (Self::MaxDisks, wishes.max_disks.is_some()),
            (Self::MaxFiles, has_files),
            (Self::Disks, !wishes.disks.is_empty()),
            (Self::Apart, wishes.is_apart),
            (Self::Backup, is_backup_apart(need, wishes)),
            (Self::Storage, wishes.storage.is_some()),
            (Self::Families, !wishes.families.is_empty()),
            (Self::Machine, need.vcpus > 0 || need.memory > Bytes::ZERO),
        ]
        .into_iter()
        .filter(|(_, is_said)| *is_said)
        .map(|(give, _)| give);
        let latencies = need.roles.iter().enumerate().filter(|(_, role)| role.latency.is_some());
        said.chain(latencies.map(|(at, _)| Self::Latency(at))).collect()
    }

    /// Drops it from the question.
    fn up(self, need: &mut Need, wishes: &mut Wishes) {
        match self {
            Self::Host => wishes.host = None,
            Self::Architecture => wishes.architecture = None,
            Self::Downtime => wishes.keep.iter_mut().for_each(|kept| kept.is_up = false),
            Self::Keep => wishes.keep = None,
            Self::MaxDisks => wishes.max_disks = None,
            Self::MaxFiles => wishes.max_files = Some(u64::MAX),
            Self::Disks => wishes.disks = Vec::new(),
            // A backup would otherwise still be kept apart from data and log.
            Self::Apart => (wishes.is_apart, wishes.shares_backup) = (false, true),
            Self::Backup => wishes.shares_backup = true,
            Self::Storage => wishes.storage = None,
            Self::Families => wishes.families = Vec::new(),
            Self::Latency(at) => need.roles[at].latency = None,
            Self::Machine => (need.vcpus, need.memory) = (0, Bytes::ZERO),
        }
    }

    /// Describes the change, which leads to `plan`.
    fn words(self, question: &Question<'_>, plan: &Plan) -> String {
        match self {
            Self::Host => "another machine".to_owned(),
            Self::Architecture => "machines with other processors".to_owned(),
            Self::Downtime => "a restart".to_owned(),
            Self::Keep => "a new layout, to which all data is copied".to_owned(),
            Self::MaxDisks => "more disks".to_owned(),
            Self::MaxFiles => "more data files".to_owned(),
            Self::Disks => "other disks".to_owned(),
            Self::Apart => "roles that share disks".to_owned(),
            Self::Backup => "a backup on the disks of data or log (apart = false)".to_owned(),
            Self::Storage => "more storage".to_owned(),
            Self::Families => "another family".to_owned(),
            Self::Latency(at) => {
                let own = &question.need.roles[at];
                let role = own.role.name();
                let Some(asked) = own.latency else { return format!("any latency of {role}") };
                let from = (question.edition, question.catalog);
                // Another constraint may be what excludes faster disks.
                let stated = stated_latency(from, &plan.layout, own).filter(|own| *own > asked);
                match stated.map(|own| time(float(own.nanos()))) {
                    Some(stated) => format!(
                        "a latency of {role} of {stated} (the median of its disks without waits) instead of {asked}"
                    ),
                    None => format!("a latency of {role} above {asked}"),
                }
            }
            Self::Machine => "a smaller machine".to_owned(),
        }
    }
}

/// Tells whether a backup is kept apart from data and log although nothing asks for it.
fn is_backup_apart(need: &Need, wishes: &Wishes) -> bool {
    let has = |role: Role| need.role(role).is_some();
    let is_exposed = has(Role::Backup) && (has(Role::Data) || has(Role::Log));
    is_exposed && !wishes.is_apart && !wishes.shares_backup
}

/// Returns the changes that meet the need: each alone; where no single change is enough, two
/// together; where that is not, less of everything.
pub(super) fn relaxations(
    question: &Question<'_>,
    families: &[Kind],
) -> Result<Vec<Relaxation>, PlanError> {
    let mut found = Vec::new();
    if let Some(part) = largest_part(question, families, Need::scaled)? {
        let what = format!("{} % of the rates: {}", in_percent(part), rates(question.need, part));
        found.extend(attempt(question, families, what, &question.need.scaled(part))?);
    }
    if let Some(part) = largest_part(question, families, Need::resized)? {
        let what = format!("{} % of the sizes: {}", in_percent(part), sizes(question.need, part));
        found.extend(attempt(question, families, what, &question.need.resized(part))?);
    }
    let gives = Give::all(question, families);
    for give in &gives {
        let disks = match (give, question.wishes.max_disks) {
            (Give::MaxDisks, Some(most)) => fewest_beyond(question, families, most)?,
            _ => None,
        };
        let Some(disks) = disks else {
            found.extend(without(question, families, &[*give])?);
            continue;
        };
        let most = question.wishes.max_disks.unwrap_or_default();
        let wishes = Wishes { max_disks: Some(disks), ..question.wishes.clone() };
        let question = Question { wishes: &wishes, ..*question };
        let what = format!("{disks} instead of {most} disks");
        found.extend(attempt(&question, families, what, question.need)?);
    }
    if !found.is_empty() {
        return Ok(found);
    }
    for (at, one) in gives.iter().enumerate() {
        for other in &gives[at + 1..] {
            found.extend(without(question, families, &[*one, *other])?);
        }
    }
    if !found.is_empty() {
        return Ok(found);
    }
    let all = |need: &Need, part: u64| need.scaled(part).resized(part);
    if let Some(part) = largest_part(question, families, all)? {
        let need = question.need;
        let (percent, rates, sizes) = (in_percent(part), rates(need, part), sizes(need, part));
        let what = format!("{percent} % of the sizes and the rates: {sizes}; {rates}");
        found.extend(attempt(question, families, what, &all(need, part))?);
    }
    if found.is_empty() && gives.len() > 2 {
        found.extend(without(question, families, &gives)?);
    }
    Ok(found)
}

/// Plans for another need, and returns it as a relaxation.
fn attempt(
    question: &Question<'_>,
    families: &[Kind],
    what: String,
    need: &Need,
) -> Result<Option<Relaxation>, PlanError> {
    let searched = search(&Question { need, ..*question }, families, ALONE)?;
    Ok(cheapest(&searched).map(|plan| relaxation(what, plan)))
}

fn relaxation(what: String, plan: &Plan) -> Relaxation {
    Relaxation { what, cost: plan.cost, title: plan.title.clone() }
}

/// Plans without some of what was asked for.
fn without(
    question: &Question<'_>,
    families: &[Kind],
    gives: &[Give],
) -> Result<Option<Relaxation>, PlanError> {
    let (mut need, mut wishes) = (question.need.clone(), question.wishes.clone());
    gives.iter().for_each(|give| give.up(&mut need, &mut wishes));
    let own = Question { need: &need, wishes: &wishes, ..*question };
    // A named machine belongs to one family and stays in it.
    let families = match gives.contains(&Give::Families) {
        true => families_of(&own)?,
        false => families.to_vec(),
    };
    let families: Vec<Kind> =
        families.into_iter().filter(|family: &Kind| has_what_is_asked(&own, *family)).collect();
    let searched = search(&own, &families, ALONE)?;
    Ok(cheapest(&searched).map(|plan| {
        let words: Vec<String> = gives.iter().map(|give| give.words(question, plan)).collect();
        relaxation(words.join(", and "), plan)
    }))
}

fn rates(need: &Need, part: u64) -> String {
    need.roles
        .iter()
        .map(|role: &RoleNeed| {
            let own = role.scaled(part);
            let rate = crate::need::rate_words(own.throughput);
            format!("{} at {} IOPS and {rate}", role.role.name(), own.iops)
        })
        .collect::<Vec<_>>()
        .join(", ")
}

fn sizes(need: &Need, part: u64) -> String {
    let own = need.resized(part);
    own.roles
        .iter()
        .map(|role: &RoleNeed| format!("{} of {}", role.role.name(), role.size))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Finds the fewest disks beyond `most` that meet the need, up to 64 more.
fn fewest_beyond(
    question: &Question<'_>,
    families: &[Kind],
    most: u64,
) -> Result<Option<u64>, PlanError> {
    for disks in most + 1..=(most + 64).min(1_024) {
        let wishes = Wishes { max_disks: Some(disks), ..question.wishes.clone() };
        let searched = search(&Question { wishes: &wishes, ..*question }, families, ALONE)?;
        if cheapest(&searched).is_some() {
            return Ok(Some(disks));
        }
    }
    Ok(None)
}

/// Finds the largest feasible part of the need in millionths; `of` scales the need.
fn largest_part(
    question: &Question<'_>,
    families: &[Kind],
    of: impl Fn(&Need, u64) -> Need,
) -> Result<Option<u64>, PlanError> {
    let is_met = |part: u64| -> Result<bool, PlanError> {
        let need = of(question.need, part);
        let searched = search(&Question { need: &need, ..*question }, families, ALONE)?;
        Ok(cheapest(&searched).is_some())
    };
    if !is_met(1)? {
        return Ok(None);
    }
    let (mut low, mut high) = (1, WHOLE);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if is_met(middle)? { low = middle } else { high = middle }
    }
    Ok(Some(low))
}
