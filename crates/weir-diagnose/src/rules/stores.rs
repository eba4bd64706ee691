//! Functions for rules on disks: disks and stripes with files, and their load.

use super::files::REACH;
use super::throttled::{Throttled, throttled_by};
use crate::case::{Case, JudgedSubject};
use crate::system::{CacheMode, On, Owner, SubjectId, System};
use weir_core::Cap as Kind;
use weir_layout::Role;
use weir_observe::load::Load;
use weir_report::number::percent;

/// A stripe, or a disk that is no column of one.
#[derive(Debug)]
pub(super) struct Store {
    /// Name.
    pub(super) name: String,
    /// The metric.
    pub(super) id: SubjectId,
    /// Disks.
    pub(super) disks: Vec<usize>,
    /// Host.
    pub(super) host: usize,
    /// Roles of its files.
    pub(super) roles: Vec<Role>,
    /// The cache mode of its disks, if all have the same.
    pub(super) cache: Option<CacheMode>,
    /// Load.
    pub(super) load: Load,
    /// Observed time in seconds.
    pub(super) seconds: f64,
}

impl Store {
    pub(super) fn carries(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// Returns the share of reads, if it is known.
    pub(super) fn read_share(&self) -> Option<f64> {
        weir_observe::load::mean(self.load.reads, self.load.operations)
    }

    /// Returns a sum of its load per second.
    pub(super) fn per_s(&self, sum: Option<f64>) -> Option<f64> {
        (self.seconds > 0.0).then_some(sum? / self.seconds)
    }
}

/// Returns the stores of machines with load. Files of instances have no disks with settings.
pub(super) fn stores(case: &Case<'_>) -> Vec<Store> {
    let disks = case.system.disks.iter().enumerate();
    let alone =
        disks.filter(|(_, disk)| disk.stripe.is_none()).map(|(disk, _)| SubjectId::Disk(disk));
    let stripes = (0..case.system.stripes.len()).map(SubjectId::Stripe);
    alone.chain(stripes).filter_map(|id| store(case, id)).collect()
}

fn store(case: &Case<'_>, id: SubjectId) -> Option<Store> {
    let disks = case.system.disks_of(id);
    let first = &case.system.disks[*disks.first()?];
    if first.is_local || case.is_instance(id) {
        return None;
    }
    let on_it = |id: SubjectId| {
        let own = case.system.disks_of(id);
        !own.is_empty() && own.iter().all(|disk| disks.contains(disk))
    };
    let meters = case.all().filter(|judged| judged.subject.is_meter && on_it(judged.subject.id));
    let mut load: Option<Load> = None;
    let mut seconds: f64 = 0.0;
    for judged in meters {
        match &mut load {
            Some(load) => load.add(&judged.facts.total),
            None => load = Some(judged.facts.total),
        }
        seconds = seconds.max(judged.facts.seconds());
    }
    let same = disks.iter().all(|disk| case.system.disks[*disk].cache == first.cache);
    let (host, cache) = (first.host?, first.cache);
    let roles = case.roles(id);
    let load = load.filter(|load| load.operations.is_some_and(|operations| operations > 0.0))?;
    let name = case.name(id);
    Some(Store { name, id, disks, host, roles, cache: same.then_some(cache), load, seconds })
}

/// Returns whether a limit is one of a machine's cache.
pub(super) const fn is_cached(kind: Kind) -> bool {
    matches!(kind, Kind::HostCachedIops | Kind::HostCachedBytes)
}

/// Returns whether a limit is one of a machine on remote storage.
pub(super) const fn is_uncached(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::HostUncachedIops
            | Kind::HostUncachedBytes
            | Kind::HostWriteIops
            | Kind::HostWriteBytes
    )
}

/// Returns the subjects throttled by limits of a host that `is` selects.
pub(super) fn throttled_at_host<'a>(
    case: &Case<'a>,
    host: usize,
    is: fn(Kind) -> bool,
) -> Vec<Throttled<'a>> {
    throttled_by(case, |case, wait| {
        let cap = &case.system.caps[wait.cap];
        cap.owner == Owner::Host(host) && is(cap.kind)
    })
}

/// Returns the 99th percentile of the utilisation of the limits of a host that `is` selects, of the
/// highest one. `None` if it is only an upper bound.
pub(super) fn host_use(case: &Case<'_>, host: usize, is: fn(Kind) -> bool) -> Option<f64> {
    let own = case
        .caps_of_host(host)
        .filter(|(cap, facts)| is(cap.kind) && facts.samples > 0 && !facts.is_bound);
    own.map(|(_, facts)| facts.used.quantile(0.99)).reduce(f64::max)
}

/// The effect of a cached disk on the limit of the cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum CacheRelevance {
    /// Requests wait at the limit.
    Throttled,
    /// The limit is within reach.
    WithinReach(f64),
    /// The limit is not within reach.
    Irrelevant(Option<f64>),
}

impl CacheRelevance {
    /// Rates the effect on a host's cached limit.
    pub(super) fn at_cache(case: &Case<'_>, host: usize) -> Self {
        match host_use(case, host, is_cached) {
            _ if !throttled_at_host(case, host, is_cached).is_empty() => Self::Throttled,
            Some(used) if used >= REACH => Self::WithinReach(used),
            used => Self::Irrelevant(used),
        }
    }

    /// Returns the priority of advice.
    pub(super) const fn priority(self) -> u8 {
        match self {
            Self::Throttled => 100,
            Self::WithinReach(_) => 150,
            Self::Irrelevant(_) => 200,
        }
    }

    /// Returns a description.
    pub(super) fn words(self) -> String {
        match self {
            Self::Throttled => "the limit of the machine's cache throttles requests".to_owned(),
            Self::WithinReach(used) => {
                format!("the limit of the machine's cache is used to {}", percent(used))
            }
            Self::Irrelevant(Some(used)) => format!(
                "no effect on the observed load: the limit of the machine's cache is used to {}",
                percent(used)
            ),
            Self::Irrelevant(None) => "no effect on the observed load".to_owned(),
        }
    }
}

/// Returns the name of the first file of a role on a store.
pub(super) fn file_of(system: &System, id: SubjectId, role: Role) -> Option<String> {
    let on = match id {
        SubjectId::Disk(disk) => On::Disk(disk),
        SubjectId::Stripe(stripe) => On::Stripe(stripe),
        SubjectId::File(_) => return None,
    };
    system.files_on(on).find(|(_, file)| file.is(role)).map(|(_, file)| file.qualified())
}

/// Returns the mean latency of reads and their unloaded latency, in nanoseconds.
pub(super) fn read_latency(
    store: &Store,
    judged: Option<JudgedSubject<'_>>,
    case: &Case<'_>,
) -> Option<(f64, f64)> {
    let reads = store.load.reads.filter(|reads| *reads > 0.0)?;
    let mean = store.load.read_ns? / reads;
    let disk = store.disks.first()?;
    let medium =
        judged.and_then(|judged| judged.subject.medium).or(case.system.disks[*disk].medium)?;
    Some((mean, medium.reads(reads, store.load.read_bytes.unwrap_or(0.0)) / reads))
}
