//! What the rules of disks have in common: disks and stripes that carry files, and what was done
//! to each.

use super::files::REACH;
use super::held::{Who, by};
use crate::case::{Case, Seen};
use crate::system::{Cache, On, Owner, System, What};
use weir_core::Cap as Kind;
use weir_layout::Role;
use weir_observe::load::Load;
use weir_report::number::percent;

/// A stripe, or a disk that is no column of one.
#[derive(Debug)]
pub(super) struct Store {
    /// Its name.
    pub(super) name: String,
    /// Which.
    pub(super) what: What,
    /// Its disks.
    pub(super) disks: Vec<usize>,
    /// Its host.
    pub(super) host: usize,
    /// What is on it.
    pub(super) roles: Vec<Role>,
    /// The cache mode of its disks, if all have the same.
    pub(super) cache: Option<Cache>,
    /// What was done to it.
    pub(super) load: Load,
    /// For how long that is known, in seconds.
    pub(super) seconds: f64,
}

impl Store {
    pub(super) fn carries(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// The part of what is done that reads, where it is known.
    pub(super) fn read_share(&self) -> Option<f64> {
        weir_observe::load::mean(self.load.reads, self.load.operations)
    }

    /// A sum of its load by the seconds.
    pub(super) fn per_s(&self, sum: Option<f64>) -> Option<f64> {
        (self.seconds > 0.0).then_some(sum? / self.seconds)
    }
}

/// The stores of machines that something was done to. Files of instances have no disks whose
/// settings anybody could change.
pub(super) fn stores(case: &Case<'_>) -> Vec<Store> {
    let disks = case.system.disks.iter().enumerate();
    let alone = disks.filter(|(_, disk)| disk.stripe.is_none()).map(|(disk, _)| What::Disk(disk));
    let stripes = (0..case.system.stripes.len()).map(What::Stripe);
    alone.chain(stripes).filter_map(|what| store(case, what)).collect()
}

fn store(case: &Case<'_>, what: What) -> Option<Store> {
    let disks = case.system.disks_of(what);
    let first = &case.system.disks[*disks.first()?];
    if first.is_local || case.is_instance(what) {
        return None;
    }
    let on_it = |what: What| {
        let own = case.system.disks_of(what);
        !own.is_empty() && own.iter().all(|disk| disks.contains(disk))
    };
    let meters = case.all().filter(|seen| seen.subject.is_meter && on_it(seen.subject.what));
    let mut load: Option<Load> = None;
    let mut seconds: f64 = 0.0;
    for seen in meters {
        match &mut load {
            Some(load) => load.add(&seen.facts.total),
            None => load = Some(seen.facts.total),
        }
        seconds = seconds.max(seen.facts.seconds());
    }
    let same = disks.iter().all(|disk| case.system.disks[*disk].cache == first.cache);
    let (host, cache) = (first.host?, first.cache);
    let roles = case.roles(what);
    let load = load.filter(|load| load.operations.is_some_and(|operations| operations > 0.0))?;
    let name = case.name(what);
    Some(Store { name, what, disks, host, roles, cache: same.then_some(cache), load, seconds })
}

/// Whether a cap is one of a machine's cache.
pub(super) const fn is_cached(kind: Kind) -> bool {
    matches!(kind, Kind::HostCachedIops | Kind::HostCachedBytes)
}

/// Whether a cap is one of a machine to remote storage.
pub(super) const fn is_uncached(kind: Kind) -> bool {
    matches!(kind, Kind::HostUncachedIops | Kind::HostUncachedBytes)
}

/// Who is held at caps of a host, of a kind that `is`.
pub(super) fn held_at_host<'a>(case: &Case<'a>, host: usize, is: fn(Kind) -> bool) -> Vec<Who<'a>> {
    by(case, |case, held| {
        let cap = &case.system.caps[held.cap];
        cap.owner == Owner::Host(host) && is(cap.kind)
    })
}

/// How much of the caps of a host, of a kind that `is`, was used in all but 1 % of the samples;
/// of the one of which most was. Nothing where it is known as an upper bound alone.
pub(super) fn host_use(case: &Case<'_>, host: usize, is: fn(Kind) -> bool) -> Option<f64> {
    let own = case
        .caps_of_host(host)
        .filter(|(cap, facts)| is(cap.kind) && facts.samples > 0 && !facts.is_bound);
    own.map(|(_, facts)| facts.used.quantile(0.99)).reduce(f64::max)
}

/// What the load of a disk with a host cache does to the limit of the cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Matters {
    /// Requests wait there.
    Held,
    /// It comes within reach.
    Near(f64),
    /// Nothing.
    Not(Option<f64>),
}

impl Matters {
    /// To a host's cache.
    pub(super) fn at_cache(case: &Case<'_>, host: usize) -> Self {
        match host_use(case, host, is_cached) {
            _ if !held_at_host(case, host, is_cached).is_empty() => Self::Held,
            Some(used) if used >= REACH => Self::Near(used),
            used => Self::Not(used),
        }
    }

    /// The priority of advice for it.
    pub(super) const fn priority(self) -> u8 {
        match self {
            Self::Held => 100,
            Self::Near(_) => 150,
            Self::Not(_) => 200,
        }
    }

    /// In words.
    pub(super) fn words(self) -> String {
        match self {
            Self::Held => "requests wait at the limit of the machine's cache".to_owned(),
            Self::Near(used) => {
                format!("{} of the limit of the machine's cache is used", percent(used))
            }
            Self::Not(Some(used)) => format!(
                "no effect on the load observed: {} of the limit of the machine's cache is used",
                percent(used)
            ),
            Self::Not(None) => "no effect on the load observed".to_owned(),
        }
    }
}

/// The name of the first file of a role on a store.
pub(super) fn file_of(system: &System, what: What, role: Role) -> Option<String> {
    let on = match what {
        What::Disk(disk) => On::Disk(disk),
        What::Stripe(stripe) => On::Stripe(stripe),
        What::File(_) => return None,
    };
    system.files_on(on).find(|(_, file)| file.is(role)).map(|(_, file)| file.qualified())
}

/// How long a mean read takes, and what it takes where nothing waits, in nanoseconds.
pub(super) fn read_latency(
    store: &Store,
    seen: Option<Seen<'_>>,
    case: &Case<'_>,
) -> Option<(f64, f64)> {
    let reads = store.load.reads.filter(|reads| *reads > 0.0)?;
    let mean = store.load.read_ns? / reads;
    let disk = store.disks.first()?;
    let medium = seen.and_then(|seen| seen.subject.medium).or(case.system.disks[*disk].medium)?;
    Some((mean, medium.reads(reads, store.load.read_bytes.unwrap_or(0.0)) / reads))
}
