//! Changes that relieve a limit: they raise it, or move load away from it.
//!
//! Data has to fit after every change, so sizes, tiers, columns and machines only grow. Candidates
//! that a layout cannot have (too many disks, a cache on a disk that cannot have one) are left out
//! by [`expand`], which resolves each.

mod stripes;

use crate::limit::{Place, is_cached, is_of_host};
use crate::load::Load;
use crate::measure::Measured;
use crate::place::Lack;
use crate::price::{Price, Pricer};
use stripes::{columns, stripes, units};
use weir_catalog::{Catalog, Edition, HostSize, PriceBook, Tier};
use weir_core::{CacheMode, Cap, Place as Medium};
use weir_diagnose::Change;
use weir_layout::{Export, File, Host, Layout, ManagedInstance, Role, Volume};
use weir_plan::RoleNeed;
use weir_plan::promise::{idle_median, shortest};
use weir_plan::share::WHOLE;
use weir_plan::verify::Got;
use weir_report::number::{float, time, whole};
use weir_units::Bytes;

/// A latency below this part of the media's median is out of reach.
const MEDIA_MARGIN: f64 = 0.95;

/// A limit with less than this share of all waits is left alone.
pub(crate) const MINOR: f64 = 0.05;

/// Fixed steps of [`Steps`].
const STEPS: [u64; 14] = [110, 120, 130, 150, 175, 200, 250, 300, 400, 500, 600, 800, 1_000, 1_600];

/// Fixed steps above the one that closes the gap.
const ABOVE: usize = 2;

/// Most files that one change adds.
const MORE_FILES: u64 = 64;

/// vCores of managed instances.
const VCORES: [u32; 11] = [6, 8, 10, 12, 16, 20, 24, 32, 40, 64, 80];

/// Most volumes or stripes to which a file may move.
const TARGETS: usize = 8;

/// Most machine sizes for each limit, the cheapest first.
const HOSTS: usize = 12;

/// A layout after one more change, or after two of which the second needs the first.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    /// The changes.
    pub(crate) changes: Vec<Change>,
    /// The text after the changes.
    pub(crate) text: String,
    /// The layout after the changes.
    pub(crate) layout: Layout,
    /// The price after the changes.
    pub(crate) price: Price,
}

/// A reason for a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// A limit has waits.
    Limit(Place),
    /// A role lacks room.
    Lack(Lack),
    /// The media take a part of the latency, and a cache helps.
    Media,
    /// The disks of a role take too long without any wait.
    SlowMedia(Role),
}

/// The growth of a rate, or of a size that buys rates: by fixed steps, and by the one that closes the gap, so that no
/// more is bought than is asked.
#[derive(Debug, Clone, Copy)]
struct Steps {
    /// The factor by which the load's rate must grow, if it is known.
    lack: Option<f64>,
}

impl Steps {
    /// More than any disk has, and far from an overflow.
    const MOST: u64 = 1 << 60;

    /// Returns the rate or size that closes the gap, if the gap is known.
    fn exact(self, present: u64) -> Option<u64> {
        // A product of floats may be a trace above a whole number.
        self.lack.map(|times| whole((float(present) * times - 0.01).ceil()))
    }

    /// Returns what a rate or size can become: what closes the gap and the next fixed steps above it, or else all fixed
    /// steps.
    fn values(self, present: u64) -> impl Iterator<Item = u64> {
        let scaled = move |percent: u64| {
            let scaled = (u128::from(present) * u128::from(percent)).div_ceil(100);
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        let exact = self.exact(present).filter(|own| *own > present);
        let above = move |own: &u64| exact.is_none_or(|exact| *own > exact);
        let count = if exact.is_some() { ABOVE } else { STEPS.len() };
        let fixed = STEPS.into_iter().map(scaled).filter(above).take(count);
        exact.into_iter().chain(fixed).map(|own| own.min(Self::MOST))
    }
}

/// Says whether a role meets its need.
pub(crate) type Meets = fn(&Got) -> bool;

/// Returns whether a limit may hold the load back: one that a role passes which misses its need. Jobs
/// and databases have no needs, and pass all limits.
pub(crate) fn may_bind(place: Place, layout: &Layout, measured: &Measured, meets: Meets) -> bool {
    let mut failing = measured.roles.iter().filter(|own| !meets(own));
    measured.roles.is_empty() || failing.any(|own| place.limits(layout, own.role))
}

/// Returns the reasons to change a layout that was measured, the first one first.
pub(crate) fn reasons(
    layout: &Layout,
    load: &Load,
    measured: &Measured,
    meets: Meets,
) -> Vec<Reason> {
    let waits = || measured.waits.iter();
    let binding = || waits().filter(|(place, _)| may_bind(*place, layout, measured, meets));
    let all: u64 = binding().map(|(_, ns)| *ns).sum();
    let is_major = |ns: u64| float(ns) >= MINOR * float(all);
    let mut reasons: Vec<Reason> = measured.lacks.iter().map(|lack| Reason::Lack(*lack)).collect();
    let slow = slow_media(layout, load, measured, meets);
    reasons.extend(slow.iter().map(|role| Reason::SlowMedia(*role)));
    let limits = binding().filter(|(_, ns)| is_major(*ns));
    reasons.extend(limits.map(|(place, _)| Reason::Limit(*place)));
    // A role with its rate may wait at a limit for a small part of its latency only.
    let is_slow = measured.roles.iter().any(|own| own.has_rate() && !meets(own));
    if slow.is_empty() && (reasons.is_empty() || is_slow) {
        reasons.push(Reason::Media);
    }
    reasons
}

/// Returns the roles that miss their latency on idle disks already, if no role misses its need for another reason.
pub(crate) fn slow_media(
    layout: &Layout,
    load: &Load,
    measured: &Measured,
    meets: Meets,
) -> Vec<Role> {
    let Load::Needs(needs) = load else { return Vec::new() };
    let is_too_slow = |got: &&Got| {
        let own = needs.iter().filter_map(|need| need.role(got.role));
        // The result may be that of any need.
        let idle = own.filter_map(|own| idle_median(layout, own)).min();
        let Some((idle, most)) = idle.zip(got.asked_latency) else { return false };
        got.has_rate() && MEDIA_MARGIN * float(idle.nanos()) > float(most.nanos())
    };
    let failing = || measured.roles.iter().filter(|own| !meets(own));
    if !failing().all(|own| is_too_slow(&own)) {
        return Vec::new();
    }
    let mut roles: Vec<Role> = failing().map(|own| own.role).collect();
    roles.dedup();
    roles
}

/// Returns a message if a need asks for a latency below that of the fastest medium of the layout, and no host cache may
/// serve its requests: then no change helps, whatever the limits are.
pub(crate) fn out_of_reach(
    layout: &Layout,
    load: &Load,
    edition: Option<&Edition>,
) -> Option<String> {
    let Load::Needs(needs) = load else { return None };
    let hosts = || layout.hosts.iter();
    let has = |is_it: &dyn Fn(CacheMode) -> bool| {
        hosts().any(|host| host.spec.volumes.iter().any(|own| is_it(own.cache)))
    };
    // A cache serves reads, perhaps that of another machine, and takes writes if the layout says so.
    let takes_writes = has(&|mode| mode == CacheMode::ReadWrite);
    let is_machine = hosts().any(|host| host.instance.is_none());
    let has_caches = is_machine && edition.is_some_and(|own| own.host_cache().is_some());
    let serves_reads = has_caches || has(&|mode| mode != CacheMode::None);
    // The latency of a role is the median of its reads or of its writes, whichever is longer.
    let least = |own: &RoleNeed| {
        let reads = (own.reads > 0 && !serves_reads).then(|| shortest(layout, true));
        let writes = (own.reads < WHOLE && !takes_writes).then(|| shortest(layout, false));
        reads.flatten().max(writes.flatten())
    };
    needs.iter().flat_map(|need| &need.roles).find_map(|own| {
        let (asked, least) = (own.latency?, least(own)?);
        // A need is met at 2 % more, and the median of the media has an error, too.
        (float(asked.nanos()) < MEDIA_MARGIN * float(least.nanos())).then(|| {
            format!(
                "the {} needs a median latency of {}, and the fastest disk of the layout takes {} without any \
                 wait; choose another kind of disk",
                own.role.name(),
                time(float(asked.nanos())),
                time(float(least.nanos()))
            )
        })
    })
}

/// Returns the layouts after each change for a reason. `lack` is the factor by which the rate of the load must
/// grow, if it is known.
pub(crate) fn expand(
    text: &str,
    layout: &Layout,
    (reason, lack): (Reason, Option<f64>),
    (catalog, pricer): (&Catalog, &Pricer<'_>),
) -> Vec<Candidate> {
    let edition = pricer.edition();
    let changes = match reason {
        Reason::Limit(place) => relief(layout, place, Steps { lack }, pricer),
        Reason::Lack(lack) => larger(layout, lack, edition),
        Reason::Media => {
            let hosts = layout.hosts.iter();
            let all = hosts.flat_map(|host| host.exports.iter().map(move |own| (host, own)));
            all.filter_map(|(host, own)| cache_on(host, own, edition)).collect()
        }
        Reason::SlowMedia(role) => faster(layout, role, edition),
    };
    let candidate = |changes: Vec<Change>| {
        let text = changes.iter().try_fold(text.to_owned(), |text, own| own.apply(&text))?;
        let layout = Layout::parse("layout.toml", &text, catalog).ok()?;
        let price = pricer.price(&layout);
        Some(Candidate { changes, text, layout, price })
    };
    let mut machines = None;
    let mut candidates = Vec::new();
    if let Reason::SlowMedia(role) = reason {
        let all = cached_machines(text, layout, role, (catalog, pricer));
        candidates.extend(all.into_iter().filter_map(candidate));
    }
    for change in changes {
        if let Some(candidate) = candidate(vec![change.clone()]) {
            candidates.push(candidate);
        } else if let (Reason::Limit(place), Change::Stripe { .. } | Change::Columns { .. }) =
            (reason, &change)
        {
            // The machine may have too few places for the disks. If the first that has more of them is too
            // slow, others follow.
            let all: &Vec<Change> =
                machines.get_or_insert_with(|| larger_machines(layout, place, pricer));
            let mut both = all.iter().map(|machine| vec![machine.clone(), change.clone()]);
            candidates.extend(both.find_map(candidate));
        }
    }
    candidates
}

/// Returns the machines with higher limits that the machine of a place can become.
fn larger_machines(layout: &Layout, place: Place, pricer: &Pricer<'_>) -> Vec<Change> {
    let host = Place { export: None, cap: Cap::HostUncachedIops, ..place };
    match (host.parts(layout), pricer.edition()) {
        (Some((own, _)), Some(edition)) if own.instance.is_none() => {
            machines(own, host, layout, (edition, pricer.book()))
        }
        _ => Vec::new(),
    }
}

/// Returns the changes to a cache, other disks or other stripe units for a role.
fn faster(layout: &Layout, role: Role, edition: Option<&Edition>) -> Vec<Change> {
    let mut changes = Vec::new();
    for (host, export) in exports_of(layout, role) {
        changes.extend(cache_on(host, export, edition));
        changes.extend(units(export));
        changes.extend(moves(host, export, |_| true));
    }
    changes
}

/// Returns the exports with files of a role.
fn exports_of(layout: &Layout, role: Role) -> impl Iterator<Item = (&Host, &Export)> {
    layout.hosts.iter().flat_map(move |host| {
        let has_role = move |export: &&Export| {
            host.files.iter().any(|file| file.device == export.device && file.role == role)
        };
        host.exports.iter().filter(has_role).map(move |export| (host, export))
    })
}

/// Returns the changes of machines without a host cache to machines with one, each with a cache for a role.
fn cached_machines(
    text: &str,
    layout: &Layout,
    role: Role,
    (catalog, pricer): (&Catalog, &Pricer<'_>),
) -> Vec<Vec<Change>> {
    let Some(edition) = pricer.edition() else { return Vec::new() };
    let mut changes = Vec::new();
    for (at, host) in layout.hosts.iter().enumerate() {
        let is_other = host.spec.cache.is_some() || host.instance.is_some();
        if is_other || !host.files.iter().any(|file| file.role == role) {
            continue;
        }
        let place = Place { host: at, export: None, cap: Cap::HostCachedIops };
        for machine in machines(host, place, layout, (edition, pricer.book())) {
            let text = machine.apply(text);
            let after = text.and_then(|text| Layout::parse("layout.toml", &text, catalog).ok());
            let cache = after.as_ref().and_then(|after| {
                let mut exports = exports_of(after, role);
                exports.find_map(|(host, export)| cache_on(host, export, Some(edition)))
            });
            changes.extend(cache.map(|cache| vec![machine, cache]));
        }
    }
    changes
}

/// Returns the changes that relieve a limit.
fn relief(layout: &Layout, place: Place, steps: Steps, pricer: &Pricer<'_>) -> Vec<Change> {
    let Some((host, export)) = place.parts(layout) else { return Vec::new() };
    let edition = pricer.edition();
    let mut changes = Vec::new();
    if let Some(export) = export {
        if place.cap == Cap::CacheWriteback {
            changes.push(Change::Cache { name: export.name.clone(), mode: CacheMode::ReadOnly });
        }
        changes.extend(units(export));
        changes.extend(cache_on(host, export, edition));
        changes.extend(moves(host, export, |_| true));
        changes.extend(columns(export));
        changes.extend(
            edition.map(|own| stripes(host, export, (own, place.cap, steps))).unwrap_or_default(),
        );
        let disks = edition.map(|own| disks(host, export, place.cap, (own, steps)));
        changes.extend(disks.unwrap_or_default());
        changes.extend(more_files(layout, host, export, steps));
        return changes;
    }
    let caches = host.exports.iter().flat_map(|own| match is_cached(place.cap) {
        true => cache_off(host, own),
        false => cache_on(host, own, edition),
    });
    if is_of_host(place.cap) && place.cap != Cap::LogRate {
        changes.extend(caches);
        // Requests to other disks bypass the limit, or some of them do.
        let passes = |export: &Export| {
            let volume = export.volumes.first().and_then(|id| host.spec.volumes.get(id.0));
            let is_remote = volume.is_some_and(|own| own.place == Medium::Remote);
            let has_cache = volume.is_some_and(|own| own.cache != CacheMode::None);
            if is_cached(place.cap) { !is_remote || has_cache } else { is_remote && !has_cache }
        };
        let passing = host.exports.iter().filter(|own| passes(own));
        changes.extend(passing.flat_map(|own| moves(host, own, |other| !passes(other))));
    }
    changes.extend(host.exports.iter().filter(|_| !place.cap.counts_bytes()).flat_map(units));
    match (&host.instance, edition) {
        (Some(_), _) => changes.extend(instance(host, place.cap, steps)),
        (None, Some(edition)) => {
            changes.extend(machines(host, place, layout, (edition, pricer.book())));
        }
        _ => {}
    }
    changes
}

/// Returns the changes that give a role the room that it lacks, on each of its disks.
fn larger(layout: &Layout, lack: Lack, edition: Option<&Edition>) -> Vec<Change> {
    let more = lack.size.get() - lack.room.get();
    let mut changes = Vec::new();
    for host in &layout.hosts {
        for file in host.files.iter().filter(|file| file.role == lack.role) {
            if host.instance.is_some() {
                let bytes = file.size.get().saturating_add(more).next_multiple_of(1 << 30);
                changes.push(grown(host, &[&file.name], bytes));
                continue;
            }
            let Some(export) = host.export_of(file) else { continue };
            changes.extend(edition.map(|own| roomier(host, export, more, own)).unwrap_or_default());
        }
    }
    changes
}

/// Returns the smallest growths of an export by at least `more` bytes.
fn roomier(host: &Host, export: &Export, more: u64, edition: &Edition) -> Vec<Change> {
    let columns = export.volumes.len() as u64;
    let each = export.size.get().saturating_add(more).div_ceil(columns.max(1));
    let name = || export.name.clone();
    let Some(volume) = export.volumes.first().and_then(|id| host.volumes.get(id.0)) else {
        return Vec::new();
    };
    let mut changes = Vec::new();
    if export.unit.is_some() {
        let own = volume.spec.size.get().max(1);
        let needed = export.size.get().saturating_add(more).div_ceil(own);
        changes.extend(
            u32::try_from(needed).ok().map(|columns| Change::Columns { name: name(), columns }),
        );
    }
    let family = volume.family.as_deref().unwrap_or_default();
    match edition.tier_set(family) {
        Ok(set) => {
            for tier in set.tiers.iter().filter(|tier| tier.holds.get() >= each) {
                if volume.choices().performance_tier.is_some() {
                    // The performance tier stays, where it is above the new tier.
                    changes.push(Change::Tier { name: name(), tier: tier.name.clone() });
                }
                changes.push(in_tier(volume, &export.name, tier));
            }
        }
        Err(_) if export.unit.is_none() => {
            changes.push(Change::Size { name: name(), bytes: each.next_multiple_of(1 << 30) });
        }
        Err(_) => {}
    }
    changes
}

/// Returns the moves of files to other exports of a machine that have room for them and are `wanted`.
fn moves(host: &Host, export: &Export, wanted: impl Fn(&Export) -> bool) -> Vec<Change> {
    if host.instance.is_some() {
        return Vec::new();
    }
    let room = |other: &Export| {
        let files = host.files.iter().filter(|file| file.device == other.device);
        files.fold(other.size.get(), |room, file| room.saturating_sub(file.size.get()))
    };
    let mut changes = Vec::new();
    for file in host.files.iter().filter(|file| file.device == export.device) {
        // A backup on the disk of its data or log would be lost with it.
        let is_backup = |file: &File| file.role == Role::Backup;
        let goes_along = |other: &Export| {
            let mut there = host.files.iter().filter(|own| own.device == other.device);
            there.all(|own| is_backup(own) == is_backup(file))
        };
        let fits = |other: &&Export| {
            other.device != export.device
                && wanted(other)
                && room(other) >= file.size.get()
                && goes_along(other)
        };
        let others = host.exports.iter().filter(fits).take(TARGETS);
        changes.extend(
            others.map(|other| Change::Move { file: file.name.clone(), on: other.name.clone() }),
        );
    }
    changes
}

/// Returns the change to a read-only cache, unless the export has a cache, holds a log or cannot
/// be cached.
fn cache_on(host: &Host, export: &Export, edition: Option<&Edition>) -> Option<Change> {
    let caches = edition?.host_cache()?;
    let mut volumes = export.volumes.iter().filter_map(|id| host.volumes.get(id.0));
    let can = |volume: &Volume| {
        let family = volume.family.as_deref().unwrap_or_default();
        volume.spec.cache == CacheMode::None
            && volume.spec.place == Medium::Remote
            && caches.can_cache(family, volume.spec.size)
    };
    let is_log =
        host.files.iter().any(|file| file.device == export.device && file.role == Role::Log);
    let is_possible = host.spec.cache.is_some() && host.instance.is_none() && !is_log;
    (is_possible && volumes.all(can))
        .then(|| Change::Cache { name: export.name.clone(), mode: CacheMode::ReadOnly })
}

/// Returns the change to no cache.
fn cache_off(host: &Host, export: &Export) -> Option<Change> {
    let mut volumes = export.volumes.iter().filter_map(|id| host.volumes.get(id.0));
    let is_cached = volumes.any(|own| own.spec.cache != CacheMode::None);
    is_cached.then(|| Change::Cache { name: export.name.clone(), mode: CacheMode::None })
}

/// Returns larger tiers, sizes or bought rates of the disks of an export.
fn disks(
    host: &Host,
    export: &Export,
    cap: Cap,
    (edition, steps): (&Edition, Steps),
) -> Vec<Change> {
    let Some(volume) = export.volumes.first().and_then(|id| host.volumes.get(id.0)) else {
        return Vec::new();
    };
    let (Some(family), false) = (volume.family.as_deref(), volume.choices().has_own_limits) else {
        return Vec::new();
    };
    let name = || export.name.clone();
    if let Some(provisioned) =
        edition.provisioned_families().iter().find(|own| own.family == family)
    {
        return bought(volume, &name(), cap, (provisioned, steps));
    }
    if edition.sized(family).is_some() {
        let larger = steps.values(volume.spec.size.get());
        let whole = larger.map(|bytes| bytes.next_multiple_of(1 << 30));
        return whole.map(|bytes| Change::Size { name: name(), bytes }).collect();
    }
    let set = host.instance.as_ref().and_then(|own| own.tiers.as_deref()).unwrap_or(family);
    let Ok(set) = edition.tier_set(set) else { return Vec::new() };
    let rate = |tier: &Tier| match cap.counts_bytes() {
        true => tier.throughput.get(),
        false => tier.iops.get(),
    };
    let gate = &volume.spec.limits.gate;
    let now = if cap.counts_bytes() { gate.bytes } else { gate.iops };
    let now = now.map_or(0, |limit| limit.rate.get());
    let mut changes = Vec::new();
    let mut most = now;
    for (at, tier) in set.tiers.iter().enumerate() {
        let is_write_back = cap == Cap::CacheWriteback;
        if tier.holds < volume.spec.size || (rate(tier) <= most && !is_write_back) {
            continue;
        }
        most = rate(tier);
        if host.instance.is_none() {
            if volume.choices().performance_tier.is_some() {
                // The disk keeps its size.
                let tier = Some(tier.name.clone());
                changes.push(Change::PerformanceTier { name: name(), tier });
            }
            changes.push(in_tier(volume, &export.name, tier));
            continue;
        }
        // The smallest file of the tier, in whole GiB.
        let below = at.checked_sub(1).map_or(0, |below| set.tiers[below].holds.get());
        let bytes = below.saturating_add(1 << 30).max(volume.spec.size.get());
        changes.push(grown(host, &[&export.name], bytes));
        // A database spreads its data by the sizes of its files, so they grow alike.
        let peers = peers(host, export);
        if peers.len() > 1 {
            changes.push(grown(host, &peers, bytes));
        }
    }
    changes
}

/// Returns the growth of a volume into a tier. It drops a performance tier, whose limits would otherwise apply.
fn in_tier(volume: &Volume, name: &str, tier: &Tier) -> Change {
    let grown = Change::Tier { name: name.to_owned(), tier: tier.name.clone() };
    match volume.choices().performance_tier {
        None => grown,
        Some(_) => {
            let dropped = Change::PerformanceTier { name: name.to_owned(), tier: None };
            Change::All(vec![dropped, grown])
        }
    }
}

/// Returns the names of the files of an instance with the role and database of a file.
fn peers<'h>(host: &'h Host, export: &Export) -> Vec<&'h str> {
    let Some(own) = host.files.iter().find(|file| file.device == export.device) else {
        return Vec::new();
    };
    let is_alike = |file: &&File| file.role == own.role && file.database == own.database;
    host.files.iter().filter(is_alike).map(|file| file.name.as_str()).collect()
}

/// Returns the growth of files of an instance to a size, with the storage that they need.
fn grown(host: &Host, names: &[&str], bytes: u64) -> Change {
    let is_smaller = |file: &&File| names.contains(&file.name.as_str()) && file.size.get() < bytes;
    let growing: Vec<&File> = host.files.iter().filter(is_smaller).collect();
    let size = |file: &&File| Change::Size { name: file.name.clone(), bytes };
    let changes: Vec<Change> = growing.iter().map(size).collect();
    let more = growing.iter().map(|file| bytes - file.size.get()).fold(0, u64::saturating_add);
    with_storage(host, changes, more)
}

/// Returns changes that add `more` bytes to the files of an instance, with the storage that they need.
fn with_storage(host: &Host, mut changes: Vec<Change>, more: u64) -> Change {
    if let Some(instance) = &host.instance {
        let sizes = host.files.iter().map(|file| file.size.get());
        let needed = sizes.fold(more, u64::saturating_add);
        let reserved = host.billed_storage().unwrap_or(instance.storage).get();
        if needed > reserved {
            let step = instance.storage_step.get().max(1 << 30);
            let bytes = needed.next_multiple_of(step);
            changes.push(Change::Storage { host: host.name.clone(), bytes });
        }
    }
    match changes.as_slice() {
        [only] => only.clone(),
        _ => Change::All(changes),
    }
}

/// Returns the additions of files that take a part of the load of an instance's data or tempdb file. Each is as large as
/// the largest file of the database.
fn more_files(layout: &Layout, host: &Host, export: &Export, steps: Steps) -> Vec<Change> {
    let files = || layout.hosts.iter().flat_map(|host| &host.files);
    let own = host.files.iter().find(|file| file.device == export.device);
    let is_divided = |own: &&File| matches!(own.role, Role::Data | Role::Tempdb);
    let Some(own) = own.filter(is_divided).filter(|_| host.instance.is_some()) else {
        return Vec::new();
    };
    let count = files().filter(|file| file.role == own.role).count() as u64;
    let needed = steps.exact(count).map(|all| all.saturating_sub(count)).filter(|more| *more > 0);
    let counts: Vec<u64> = match needed {
        Some(needed) => vec![needed, needed.saturating_add(1)],
        None => vec![1, 2, 4],
    };
    let is_peer = |file: &&File| file.role == own.role && file.database == own.database;
    let own = host.files.iter().filter(is_peer).max_by_key(|file| file.size).unwrap_or(own);
    let bytes = own.size.get();
    let is_taken = |name: &str| {
        files().any(|file| file.name == name)
            || layout.hosts.iter().flat_map(|host| &host.exports).any(|other| other.name == name)
    };
    let stem = match own.name.rsplit_once('-') {
        Some((stem, number)) if number.bytes().all(|digit| digit.is_ascii_digit()) => stem,
        _ => &own.name,
    };
    let with = |count: u64| {
        let names = (2_u64..).map(|number| format!("{stem}-{number}"));
        let names = names.filter(|name| !is_taken(name)).take(usize::try_from(count).ok()?);
        let file = |name| Change::File { name, like: own.name.clone(), bytes };
        let changes = names.map(file).collect();
        Some(with_storage(host, changes, bytes.saturating_mul(count)))
    };
    counts.into_iter().filter(|count| *count <= MORE_FILES).filter_map(with).collect()
}

/// Returns larger bought rates of a provisioned disk.
fn bought(
    volume: &Volume,
    name: &str,
    cap: Cap,
    (family, steps): (&weir_catalog::Provisioned, Steps),
) -> Vec<Change> {
    let gate = &volume.spec.limits.gate;
    let (Some(iops), Some(bytes)) = (gate.iops, gate.bytes) else { return Vec::new() };
    let (iops, bytes) = (iops.rate.get(), bytes.rate.get());
    let size = volume.spec.size;
    let mut changes = Vec::new();
    for more in steps.values(if cap.counts_bytes() { bytes } else { iops }) {
        let own = match cap.counts_bytes() {
            true => family.closest(size, iops, more),
            false => family.closest(size, more, bytes),
        };
        let throughput = (!family.throughput_follows).then_some(own.throughput.get());
        let change = Change::Bought { name: name.to_owned(), iops: own.iops.get(), throughput };
        if (own.iops.get() > iops || own.throughput.get() > bytes) && !changes.contains(&change) {
            changes.push(change);
        }
    }
    changes
}

/// Returns larger managed instances.
fn instance(host: &Host, cap: Cap, steps: Steps) -> Vec<Change> {
    let Some(own) = &host.instance else { return Vec::new() };
    let name = || host.name.clone();
    let mut changes = Vec::new();
    if own.kind == ManagedInstance::NextGenGp && !cap.counts_bytes() {
        let now = host.spec.uncached.iops.map_or(0, |limit| limit.rate.get());
        changes.extend(steps.values(now).map(|iops| Change::InstanceIops { host: name(), iops }));
        // Storage includes operations.
        let storage = host.billed_storage().unwrap_or(own.storage).get();
        let step = own.storage_step.get().max(1 << 30);
        let more = steps.values(storage).map(|bytes| bytes.next_multiple_of(step));
        changes.extend(more.map(|bytes| Change::Storage { host: name(), bytes }));
    }
    let more = VCORES.into_iter().filter(|vcores| *vcores > own.vcores);
    changes.extend(more.map(|vcores| Change::Vcores { host: name(), vcores }));
    changes
}

/// Returns machines with a higher limit, the cheapest first, without those that a cheaper one
/// matches in every limit.
fn machines(
    host: &Host,
    place: Place,
    layout: &Layout,
    (edition, book): (&Edition, Option<&PriceBook<'_>>),
) -> Vec<Change> {
    let Some(now) = host.qualified_size().and_then(|name| edition.host(&name).ok()) else {
        return Vec::new();
    };
    let limits = |size: &HostSize| {
        let pair = |own: Option<&weir_catalog::HostLimits>| {
            own.map_or([0, 0], |own| [own.iops.get(), own.throughput.get()])
        };
        let ([a, b], [c, d]) = (pair(size.uncached.as_ref()), pair(size.cached.as_ref()));
        [a, b, c, d]
    };
    let bound = usize::from(place.cap.counts_bytes()) + if is_cached(place.cap) { 2 } else { 0 };
    let present = place.rate(layout).unwrap_or(0);
    let price = |size: &HostSize| book.and_then(|book| book.host(&size.name)).map(|own| own.month);
    let has_price = price(now).is_some();
    let is_larger = |size: &&HostSize| {
        size.vcpus >= now.vcpus
            && size.memory.unwrap_or(Bytes::ZERO) >= now.memory.unwrap_or(Bytes::ZERO)
            && limits(size)[bound] > present
            && edition.architecture(size) == edition.architecture(now)
            && edition.may_replace(Some(now), size)
            && !size.stands_for_others
            && edition.series_of(size).is_none_or(|series| series.service.is_none())
            && (!has_price || price(size).is_some())
    };
    let mut all: Vec<&HostSize> = edition.hosts().filter(is_larger).collect();
    all.sort_by_cached_key(|size| (price(size), size.vcpus, size.name.clone()));
    let mut kept: Vec<&HostSize> = Vec::new();
    for size in all {
        let is_matched = |own: &&HostSize| {
            let (mut own, other) = (limits(own).into_iter(), limits(size));
            other.into_iter().all(|rate| own.next().is_some_and(|own| own >= rate))
        };
        let fits = || {
            let change = change_to(host, size, edition);
            edition.most_data_disks(size).is_none_or(|most| {
                let remote = host.volumes.iter().filter(|own| own.spec.place == Medium::Remote);
                remote.count() as u64 <= u64::from(most)
            }) && change.is_some()
        };
        if !kept.iter().any(is_matched) && fits() {
            kept.push(size);
        }
    }
    kept.into_iter().take(HOSTS).filter_map(|size| change_to(host, size, edition)).collect()
}

/// Returns the change to a machine size, with its series where several have the size.
fn change_to(host: &Host, size: &HostSize, edition: &Edition) -> Option<Change> {
    let name = match edition.host(&size.name) {
        Ok(found) if found.series == size.series => size.name.clone(),
        _ => size.qualified(),
    };
    edition.host(&name).ok()?;
    Some(Change::HostSize { host: host.name.clone(), size: name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_closes_the_gap_to_the_unit() {
        let of = |present, lack| -> Vec<u64> { Steps { lack }.values(present).collect() };
        let fixed = of(3_000, None);
        assert_eq!((fixed.len(), fixed[0], fixed[1]), (STEPS.len(), 3_300, 3_600));
        assert_eq!(of(3_000, Some(3_360.0 / 3_000.0)), [3_360, 3_600, 3_900]);
        assert_eq!(of(10_000, Some(11_000.0 / 10_000.0)), [11_000, 12_000, 13_000]);
        assert_eq!(of(3_000, Some(1.0001)), [3_001, 3_300, 3_600]);
        assert_eq!(of(3_000, Some(100.0)), [300_000]);
        assert_eq!(of(1 << 40, Some(1e30)).into_iter().max(), Some(Steps::MOST), "and no overflow");
    }
}
