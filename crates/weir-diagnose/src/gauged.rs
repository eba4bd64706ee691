//! The limits that metrics of the cloud cover.
//!
//! A share of 3 % says that a limit is free, and nothing of the other limits that requests pass. So
//! it is evidence of health only together with the shares of these.

use crate::case::{Case, JudgedSubject};
use crate::system::CacheMode;
use weir_observe::metric::{self as m, Metric};
use weir_observe::{EntityId, EntityKind, attribute};

/// Above this utilisation, metrics of the cloud alone do not prove that a limit has headroom.
const NEAR: f64 = 0.9;

/// The platform's own shares of its limits, beside the limits that the load passes.
#[derive(Debug)]
pub(crate) struct Gauges {
    /// The largest share.
    pub(crate) most: f64,
    /// Limits that the load passes and whose share is not observed, in words.
    pub(crate) missing: Vec<String>,
}

impl Gauges {
    /// Looks up the shares of a case; `None` if it has none.
    pub(crate) fn find(case: &Case<'_>) -> Option<Self> {
        let all = case.facts.others.gauged.iter();
        let all = all.filter(|own| own.is_consumed() && own.seconds > 0.0);
        let most = all.map(crate::follow::Gauged::max).reduce(f64::max)?;
        let loaded: Vec<JudgedSubject<'_>> = case.named().filter(has_load).collect();
        let mut missing: Vec<String> = match loaded.as_slice() {
            [] => unloaded(case),
            _ => loaded.iter().flat_map(|judged| of_subject(case, judged)).collect(),
        };
        missing.sort();
        missing.dedup();
        Some(Self { most, missing })
    }

    /// Tells whether they show that no limit which the load passes is used up.
    pub(crate) fn show_room(&self) -> bool {
        self.most < NEAR && self.missing.is_empty()
    }
}

fn has_load(judged: &JudgedSubject<'_>) -> bool {
    judged.facts.total.operations.is_some_and(|operations| operations > 0.0)
}

/// Limits of a service: of its data and of its log.
const SERVICE: [(Metric, &str); 2] =
    [(m::DATA_IO_SHARE, "data I/O limit"), (m::LOG_WRITE_SHARE, "log rate limit")];

const DISK: [(Metric, &str); 2] =
    [(m::IOPS_SHARE, "IOPS limit"), (m::BYTES_SHARE, "throughput limit")];

const UNCACHED: [(Metric, &str); 2] = [
    (m::UNCACHED_IOPS_SHARE, "uncached IOPS limit"),
    (m::UNCACHED_BYTES_SHARE, "uncached throughput limit"),
];

const CACHED: [(Metric, &str); 2] = [
    (m::CACHED_IOPS_SHARE, "cached IOPS limit"),
    (m::CACHED_BYTES_SHARE, "cached throughput limit"),
];

/// Returns the missing gauges of the limits that the requests of a subject pass.
fn of_subject(case: &Case<'_>, judged: &JudgedSubject<'_>) -> Vec<String> {
    let within = around(case, judged.subject.entity);
    let disks = case.system.disks_of(judged.subject.id);
    let is_disk = case
        .contents
        .entity(judged.subject.entity)
        .is_some_and(|entity| matches!(entity.kind, EntityKind::Volume | EntityKind::Stripe));
    if lacks(case, &within, &SERVICE).is_empty() {
        return Vec::new();
    }
    if !is_disk && disks.iter().all(|disk| case.system.disks[*disk].entity.is_none()) {
        return named(&judged.name(case), lacks(case, &within, &SERVICE));
    }
    let mut missing = Vec::new();
    for disk in disks {
        let own = &case.system.disks[disk];
        let entity = own.entity.unwrap_or(judged.subject.entity);
        let name = match is_average(case, entity) {
            true => format!("each of the {} (split their metrics by LUN)", own.name),
            false => own.name.clone(),
        };
        missing.extend(named(&name, lacks(case, &[entity], &DISK)));
        let machine = around(case, entity);
        let machine = machine.get(1..).unwrap_or_default();
        if !own.is_local {
            missing.extend(named("the machine", lacks(case, machine, &UNCACHED)));
        }
        if own.is_local || own.cache != CacheMode::None {
            missing.extend(named("the machine", lacks(case, machine, &CACHED)));
        }
    }
    missing
}

/// Returns the missing gauges where nothing says what the load is: one set of them is to be complete.
fn unloaded(case: &Case<'_>) -> Vec<String> {
    let gauged = case.facts.others.gauged.iter().map(|own| own.entity);
    let all: Vec<EntityId> = gauged.collect();
    let is_complete = |set: &[(Metric, &'static str)]| {
        all.iter().any(|entity| lacks(case, &[*entity], set).is_empty())
    };
    let is_machine = is_complete(&DISK) && (is_complete(&UNCACHED) || has_host_share(case));
    match is_complete(&SERVICE) || is_machine {
        true => Vec::new(),
        false if lacks(case, &all, &SERVICE).len() < SERVICE.len() => {
            named("the service", lacks(case, &all, &SERVICE))
        }
        false => {
            let mut missing = named("the disks", lacks(case, &all, &DISK));
            missing.extend(named("the machine", lacks(case, &all, &UNCACHED)));
            missing
        }
    }
}

/// Tells whether the share of a disk's limit is that of a whole server, as of Azure's PostgreSQL.
fn has_host_share(case: &Case<'_>) -> bool {
    case.facts.others.gauged.iter().any(|own| {
        let kind = case.contents.entity(own.entity).map(|entity| &entity.kind);
        own.metric == m::IOPS_SHARE.name && kind != Some(&EntityKind::Volume)
    })
}

/// Returns an entity and all that it is in, from the innermost on.
fn around(case: &Case<'_>, entity: EntityId) -> Vec<EntityId> {
    let parent = |id: &EntityId| case.contents.entity(*id).and_then(|own| own.parent);
    std::iter::successors(Some(entity), parent).collect()
}

/// Returns those of a set that no entity of `on` has a gauge of. An average over all disks of a machine
/// is not the gauge of each: one may be at its limit while the others are idle.
fn lacks(case: &Case<'_>, on: &[EntityId], set: &[(Metric, &'static str)]) -> Vec<&'static str> {
    let is_of_one = |entity| !is_average(case, entity);
    let has = |measure: &Metric| {
        let mut all = case.facts.others.gauged.iter().filter(|own| is_of_one(own.entity));
        all.any(|own| own.metric == measure.name && own.seconds > 0.0 && on.contains(&own.entity))
    };
    set.iter().filter(|(measure, _)| !has(measure)).map(|(_, words)| *words).collect()
}

/// Tells whether the gauges of an entity are averages over several disks, as far as is known. A layout
/// whose only disk the entity is says that there is one.
fn is_average(case: &Case<'_>, entity: EntityId) -> bool {
    let is_all = case.contents.entity(entity).and_then(|own| own.number(attribute::ALL_DISKS));
    let is_only = case.layout.is_some() && case.system.disks.len() == 1;
    is_all.is_some() && !is_only
}

fn named(name: &str, missing: Vec<&'static str>) -> Vec<String> {
    missing.into_iter().map(|words| format!("the {words} of {name}")).collect()
}
