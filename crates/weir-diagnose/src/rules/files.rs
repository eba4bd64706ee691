//! Functions for rules on database files: files of a database, their limits, the tier of another
//! size, and the free storage of an instance.

use super::throttled::layout_name;
use crate::case::{Case, JudgedSubject, amount};
use crate::change::Change;
use crate::follow::CapFacts;
use crate::system::{Limit, On, Owner, SubjectId};
use crate::verdict::{CapWait, THROTTLED};
use std::collections::BTreeMap;
use weir_catalog::{Limits, TierSet};
use weir_layout::Role;
use weir_layout::steps::Steps;
use weir_observe::EntityKind;
use weir_report::number::float;
use weir_units::Bytes;

/// From here on a load comes within reach of a cap: what grows by half as much again is there.
pub(super) const REACH: f64 = 0.7;

/// Unit of file sizes.
pub(super) const GIB: u64 = 1 << 30;

/// The data files of a database.
#[derive(Debug)]
pub(super) struct Database {
    /// Name, if known.
    pub(super) name: String,
    /// Data files.
    pub(super) files: Vec<usize>,
}

/// Returns the databases of each host that have data files.
pub(super) fn databases(case: &Case<'_>) -> Vec<Database> {
    let mut all: BTreeMap<(Option<usize>, Option<&str>), Vec<usize>> = BTreeMap::new();
    for (file, _) in case.system.files.iter().enumerate().filter(|(_, f)| f.is(Role::Data)) {
        let host = case.system.host_of(SubjectId::File(file));
        all.entry((host, database_of(case, file))).or_default().push(file);
    }
    let name = |name: Option<&str>| name.unwrap_or("the database").to_owned();
    all.into_iter().map(|((_, database), files)| Database { name: name(database), files }).collect()
}

/// Returns the name of a file's database, from the layout or the observation.
pub(super) fn database_of<'a>(case: &Case<'a>, file: usize) -> Option<&'a str> {
    let own = &case.system.files[file];
    let parent = || {
        let entity = case.contents.entity(own.entity?)?;
        let parent = case.contents.entity(entity.parent?)?;
        (parent.kind == EntityKind::Database).then_some(parent.name.as_str())
    };
    own.database.as_deref().or_else(parent)
}

/// Finds the subject of a file: itself, otherwise the disk or stripe that it has to itself.
pub(super) fn judged_file<'a>(case: &Case<'a>, file: usize) -> Option<JudgedSubject<'a>> {
    let alone = || {
        let on = case.system.files[file].on?;
        let id = match on {
            On::Disk(disk) => SubjectId::Disk(disk),
            On::Stripe(stripe) => SubjectId::Stripe(stripe),
        };
        (case.system.files_on(on).count() == 1).then(|| case.subject(id)).flatten()
    };
    case.subject_of_file(file).or_else(alone)
}

/// Returns the limit of its own disks that throttles a subject, with the longest wait time or a
/// sufficient share.
pub(super) fn throttled_at_own<'a>(
    case: &Case<'a>,
    judged: &JudgedSubject<'a>,
) -> Option<&'a CapWait> {
    let first = judged.waited.throttled()?;
    let is_own = |wait: &&CapWait| matches!(case.system.caps[wait.cap].owner, Owner::Disk(_));
    let own = judged.waited.waits.iter().filter(is_own);
    let own = own.max_by(|one, other| one.wait_ns.total_cmp(&other.wait_ns))?;
    (own == first || own.share >= THROTTLED).then_some(own)
}

/// Returns the limit of its own disks that throttles a file.
pub(super) fn file_throttled<'a>(
    case: &Case<'a>,
    file: usize,
) -> Option<(JudgedSubject<'a>, &'a CapWait)> {
    let judged = judged_file(case, file)?;
    Some((judged, throttled_at_own(case, &judged)?))
}

/// Returns whether a limit is one on throughput.
pub(super) fn counts_bytes(case: &Case<'_>, wait: &CapWait) -> bool {
    case.system.caps[wait.cap].counts_bytes()
}

/// Returns the total limit of the disks of a subject.
pub(super) fn limit(case: &Case<'_>, id: SubjectId, is_bytes: bool) -> Option<f64> {
    let disks = case.system.disks_of(id);
    let of = |disk: &usize| -> Option<Limit> {
        let limits = &case.system.disks[*disk].limits;
        if is_bytes { limits.bytes } else { limits.iops }
    };
    let all: Option<Vec<f64>> = disks.iter().map(|disk| Some(of(disk)?.rate)).collect();
    all.filter(|all| !all.is_empty()).map(|all| all.iter().sum())
}

/// Returns the 99th percentile of the utilisation of the disks' limits, of the highest one. `None`
/// if it is only an upper bound.
pub(super) fn used(case: &Case<'_>, id: SubjectId, is_bytes: bool) -> Option<f64> {
    let disks = case.system.disks_of(id);
    let caps = disks.iter().flat_map(|disk| case.caps_of_disk(*disk));
    let is = |facts: &CapFacts| facts.samples > 0 && !facts.is_bound;
    let own = caps.filter(|(cap, facts)| cap.counts_bytes() == is_bytes && is(facts));
    own.map(|(_, facts)| facts.used.quantile(0.99)).reduce(f64::max)
}

/// Returns the tiers from which a file on a disk gets its limits.
pub(super) fn tiers<'a>(case: &Case<'a>, disk: usize) -> Option<&'a TierSet> {
    let own = &case.system.disks[disk];
    let host = own.host.map(|host| case.system.hosts[host].name.as_str());
    let hosts = case.layout.map(|layout| layout.hosts.as_slice()).unwrap_or_default();
    let said = hosts.iter().find(|other| Some(other.name.as_str()) == host);
    let said = said.and_then(|host| host.instance.as_ref()?.tiers.as_deref());
    case.edition?.tier_set(said.or(own.family.as_deref())?).ok()
}

/// Returns the disk that a file has to itself.
pub(super) fn own_disk(case: &Case<'_>, file: usize) -> Option<usize> {
    match case.system.files[file].on? {
        on @ On::Disk(disk) if case.system.files_on(on).count() == 1 => Some(disk),
        _ => None,
    }
}

/// Returns the size of a file of an instance, and the sizes at which its limits change.
pub(super) fn steps(case: &Case<'_>, file: usize) -> Option<(u64, Steps)> {
    let disk = own_disk(case, file)?;
    if !case.is_instance(SubjectId::File(file)) || case.system.disks[disk].is_local {
        return None;
    }
    let size = case.system.files[file].size?;
    Some((size, Steps::around(tiers(case, disk)?, Bytes::new(size))?))
}

/// Returns one of the two limits.
pub(super) fn one_of(limits: &Limits, is_bytes: bool) -> f64 {
    float(if is_bytes { limits.throughput.get() } else { limits.iops.get() })
}

/// Formats both limits.
pub(super) fn words(limits: &Limits) -> String {
    format!("{} and {}", amount(false, one_of(limits, false)), amount(true, one_of(limits, true)))
}

/// Returns the size of a throttled file, and the size at which its limit is higher.
pub(super) fn needed(case: &Case<'_>, file: usize, is_bytes: bool) -> Option<(u64, u64)> {
    let (size, _) = steps(case, file)?;
    let set = tiers(case, own_disk(case, file)?)?;
    let at = set.tiers.iter().position(|tier| tier.holds.get() >= size)?;
    let now = one_of(&set.tiers[at].limits(), is_bytes);
    let more = set.tiers[at..].iter().position(|tier| one_of(&tier.limits(), is_bytes) > now)?;
    Some((size, set.tiers[at + more - 1].holds.get() + GIB))
}

/// Returns the files of a host that are throttled by their own limits, by wait time.
pub(super) fn throttled_on<'a>(
    case: &Case<'a>,
    host: usize,
) -> Vec<(usize, JudgedSubject<'a>, &'a CapWait)> {
    let files = 0..case.system.files.len();
    let own = files.filter(|file| case.system.host_of(SubjectId::File(*file)) == Some(host));
    let mut wait: Vec<_> = own
        .filter(|file| own_disk(case, *file).is_some())
        .filter_map(|file| file_throttled(case, file).map(|(judged, wait)| (file, judged, wait)))
        .collect();
    wait.sort_by(|one, other| other.2.wait_ns.total_cmp(&one.2.wait_ns));
    wait
}

/// The storage of an instance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InstanceStorage {
    /// Reserved storage.
    pub(crate) storage: u64,
    /// Total size of its files.
    pub(crate) files: u64,
}

impl InstanceStorage {
    /// Computes the storage of a host, if it is an instance and all sizes are known.
    pub(crate) fn new(case: &Case<'_>, host: usize) -> Option<Self> {
        let storage = case.system.hosts[host].instance?.storage;
        let all = case.system.files.iter().enumerate();
        let own = all.filter(|(file, _)| case.system.host_of(SubjectId::File(*file)) == Some(host));
        let files: Option<u64> = own.map(|(_, file)| file.size).sum();
        Some(Self { storage, files: files? }).filter(|room| room.storage > 0)
    }

    /// Returns the free storage.
    pub(super) const fn free(self) -> u64 {
        self.storage.saturating_sub(self.files)
    }
}

/// Returns the statement that resizes a file of an instance.
pub(super) fn resize(case: &Case<'_>, file: usize, bytes: u64) -> String {
    let own = &case.system.files[file];
    format!(
        "ALTER DATABASE {} MODIFY FILE (NAME = N'{}', SIZE = {} MB)",
        database_name(case, file),
        own.name.replace('\'', "''"),
        bytes.div_ceil(1 << 20)
    )
}

/// Returns the database of a file as a statement names it.
pub(super) fn database_name(case: &Case<'_>, file: usize) -> String {
    let name = database_of(case, file);
    name.map_or("CURRENT".to_owned(), |name| format!("[{}]", name.replace(']', "]]")))
}

/// Returns the change that resizes a file in the layout.
pub(super) fn sized(case: &Case<'_>, file: usize, bytes: u64) -> Option<Change> {
    Some(Change::Size { name: layout_name(case, SubjectId::File(file))?, bytes })
}

/// Returns the change that grows several files, if the instance has enough free storage.
pub(super) fn grown(case: &Case<'_>, files: &[usize], bytes: u64) -> Option<Change> {
    let own = |file: &usize| case.system.files[*file].size.unwrap_or(0);
    let more: u64 = files.iter().map(|file| bytes.saturating_sub(own(file))).sum();
    let room = case
        .system
        .host_of(SubjectId::File(*files.first()?))
        .and_then(|h| InstanceStorage::new(case, h));
    let has_room = room.is_none_or(|room| room.free() >= more);
    let changes: Option<Vec<Change>> = files.iter().map(|file| sized(case, *file, bytes)).collect();
    changes.filter(|_| has_room).map(Change::All)
}

/// Returns the name of a file.
pub(super) fn name(case: &Case<'_>, file: usize) -> String {
    case.name(SubjectId::File(file))
}
