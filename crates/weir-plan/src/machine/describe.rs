//! The description of a machine with disks: title, bill, reasons and layout file.

use super::candidate::{Candidate, Place, Pool};
use super::hosts::Machines;
use super::limits::published;
use crate::answer::{Line, Reason};
use crate::demand::Flow;
use crate::disks::{Disk, Disks};
use crate::filesystem::FileSystem;
use crate::keep::{Kept, KeptPool};
use crate::need::{Need, RoleNeed, rate_words};
use crate::share::{WHOLE, in_percent};
use std::collections::BTreeSet;
use weir_catalog::{Architecture, CacheMode};
use weir_layout::file::{AlikeKeys, Columns, FileKeys, HostKeys, PlaceKey, StripeKeys, VolumeKeys};
use weir_layout::{LayoutText, Role, luns};
use weir_units::Bytes;

impl<'a> Machines<'a> {
    /// Describes a candidate in one line.
    pub(super) fn describe(&self, need: &Need, candidate: &Candidate<'_>) -> String {
        let pools = candidate.arrangement.iter().zip(&candidate.choice.disks);
        let words = pools.map(|(pool, disks)| {
            format!("{} on {}", pool.names(need, " and "), on(pool, disks.as_ref()))
        });
        format!("{}: {}", candidate.host.name, words.collect::<Vec<_>>().join(", "))
    }

    /// Returns the bill.
    pub(super) fn bill(&self, need: &Need, candidate: &Candidate<'a>) -> Vec<Line> {
        let host = self.host_price(candidate.host);
        let mut lines = vec![Line::of(format!("machine {}", candidate.host.name), 1, host)];
        for (pool, disks) in candidate.arrangement.iter().zip(&candidate.choice.disks) {
            let Some(Disks { disk, count, .. }) = disks else { continue };
            lines.extend(disk.lines(&pool.names(need, "-"), *count, self.prices));
        }
        lines
    }

    /// Returns the reasons for a candidate: for each pool, then for the machine.
    pub(super) fn all_reasons(&self, need: &Need, candidate: &Candidate<'_>) -> Vec<Reason> {
        let mut all = Vec::new();
        let mut disks = candidate.choice.disks.iter().flatten();
        if self.wishes.peaks.is_some() && !disks.any(|own| matches!(own.disk, Disk::Burst(_))) {
            all.push(Reason::detail(
                "burst credits are not needed: disks that carry the load without them cost no \
                 more",
            ));
        }
        for (pool, disks) in candidate.arrangement.iter().zip(&candidate.choice.disks) {
            match disks {
                Some(disks) => all.extend(self.pool_reasons(need, candidate, pool, disks)),
                None => all.push(Reason::key(format!(
                    "{}: on the machine's local disk, which its price includes and which loses its \
                     data when the machine moves; it counts at the cached limit",
                    pool.names(need, " and ")
                ))),
            }
        }
        all.extend(self.backup_note(need, candidate));
        all.extend(self.machine_reasons(candidate));
        all
    }

    /// Returns the reasons for the disks of a pool.
    fn pool_reasons(
        &self,
        need: &Need,
        candidate: &Candidate<'_>,
        pool: &Pool,
        Disks { disk, count, .. }: &Disks<'_>,
    ) -> Vec<Reason> {
        let own = self.demands(need, pool, candidate.hits);
        let name = pool.names(need, " and ");
        let each = disk.limits();
        let most = Flow::most(own.iter().map(|own| &own.disk));
        let mut all = vec![Reason::detail(format!(
            "{name}: needs {} IOPS and {} at the disks; {count} x {} IOPS and {} provide {} IOPS \
             and {}",
            most.operations,
            rate_words(most.bytes),
            each.operations,
            rate_words(each.bytes),
            each.operations * count,
            rate_words(each.bytes * count),
        ))];
        if let Disk::Burst(tier) = disk {
            all.push(Reason::key(format!(
                "{name}: uses burst credits, as requested: each {} falls to {} and {} when its \
                 credits are spent, and earns new ones only below these rates",
                tier.name, tier.iops, tier.throughput
            )));
        }
        if let Disk::Plus(tier) = disk {
            all.push(Reason::key(format!(
                "{name}: performance plus is free and can only be chosen when a disk is created; \
                 without it, each {} has {} and {}",
                tier.name, tier.iops, tier.throughput
            )));
        }
        if let Some(kept) = self.kept(need, &pool.roles) {
            all.push(Reason::key(kept_note(&name, kept, disk, pool.place)));
            all.extend(settings_note(&name, kept, disk).map(Reason::key));
            all.extend(rebuild_note(&name, kept, pool.place).map(Reason::key));
            all.extend(cache_note(&name, kept, pool.mode).map(Reason::key));
        }
        let size: u64 = pool.roles.iter().map(|role| need.roles[*role].size.get()).sum();
        let room = disk.size().get().saturating_mul(*count);
        all.extend(file_system_note(self.wishes.file_system(), &name, size, room));
        if let (Place::Striped(unit), true) = (pool.place, *count > 1) {
            all.push(Reason::detail(format!(
                "{name}: a stripe of {count} columns, one per disk, with a unit of {unit}"
            )));
        }
        if pool.mode == CacheMode::ReadOnly {
            all.push(Reason::detail(format!(
                "{name}: read-only cache with a hit ratio of {} % once it is warm; misses and \
                 writes count at both the uncached and the cached limit",
                in_percent(candidate.hits)
            )));
        }
        all
    }

    /// Returns the reasons that concern the machine: its licence, and limits that are not published.
    fn machine_reasons(&self, candidate: &Candidate<'_>) -> Vec<Reason> {
        let mut all = Vec::new();
        if let Some(programme) = self.edition.licence_programme().filter(|_| self.has_licence()) {
            all.push(Reason::detail(format!(
                "the Windows Server licence is owned, so the price of the machine excludes it \
                 ({programme})"
            )));
        }
        let name = &candidate.host.name;
        let edition = self.edition;
        let in_use = self.in_use();
        let is_new = in_use.is_none_or(|own| edition.architecture(own) == Architecture::X64);
        if edition.architecture(candidate.host) == Architecture::Arm64
            && self.wishes.architecture.is_none()
            && is_new
        {
            let advice = match self.wishes.host {
                Some(_) => "",
                None => "; --architecture x64 leaves such machines out",
            };
            all.push(Reason::key(format!(
                "{name} has Arm processors, and software for x64 such as SQL Server does not run \
                 there{advice}"
            )));
        }
        if let Some(own) = in_use.filter(|own| own.qualified() != candidate.host.qualified()) {
            let restart =
                || format!("the machine changes from {} to {name} and restarts", own.name);
            let obstacle = edition.obstacle(own, candidate.host);
            all.push(Reason::key(obstacle.unwrap_or_else(restart)));
        }
        if edition.is_burstable(candidate.host) {
            all.push(Reason::key(format!(
                "{name} is burstable: its processors run at full speed only while their credits last, \
                 which the plan does not model"
            )));
        }
        if published(candidate.host, &candidate.choice).uncached.is_none() {
            all.push(Reason::key(format!(
                "no limits of {name} itself are published, so only those of its disks count"
            )));
        }
        if candidate.host.max_data_disks.is_none() && candidate.choice.count > 1 {
            all.push(Reason::key(format!(
                "the maximum number of disks of {name} is not published, so up to {} are tried \
                 (change it with --max-disks)",
                self.most_disks()
            )));
        }
        all
    }

    /// Returns the reason why a backup has disks of its own, or a warning that it has not.
    fn backup_note(&self, need: &Need, candidate: &Candidate<'_>) -> Option<Reason> {
        let is = |at: &usize, roles: &[Role]| roles.contains(&need.roles[*at].role);
        let exposed = [Role::Data, Role::Log];
        if !need.roles.iter().any(|own| exposed.contains(&own.role)) {
            return None;
        }
        let mut pools = candidate.arrangement.iter();
        let own = pools.find(|pool| pool.roles.iter().any(|at| is(at, &[Role::Backup])))?;
        let beside: Vec<&str> = own
            .roles
            .iter()
            .filter(|at| is(at, &exposed))
            .map(|at| need.roles[*at].role.name())
            .collect();
        Some(match (beside.is_empty(), self.kept(need, &own.roles)) {
            (true, _) => Reason::detail(backup_apart()),
            (false, kept) => Reason::key(format!(
                "backup: shares disks with {}, {}; if these disks fail, the backup is lost too",
                beside.join(" and "),
                match kept {
                    Some(_) => "as in the layout to keep",
                    None => "as apart = false allows",
                }
            )),
        })
    }

    /// Writes the layout file.
    pub(super) fn layout_file(&self, need: &Need, candidate: &Candidate<'_>) -> String {
        let is_single = self.edition.host(&candidate.host.name).is_ok();
        let size = if is_single { candidate.host.name.clone() } else { candidate.host.qualified() };
        let mut text =
            LayoutText::new(self.edition.name()).in_region(self.wishes.region.as_deref());
        text.host(&HostKeys {
            size: Some(size),
            licence_owned: self.has_licence(),
            filesystem: self.wishes.file_system().key(),
            ..HostKeys::default()
        });
        let mut taken = self.wishes.keep.as_ref().map(Kept::luns).unwrap_or_default();
        let pools = || candidate.arrangement.iter().zip(&candidate.choice.disks);
        let mut luns: Vec<Vec<u32>> = pools()
            .map(|(pool, disks): (&Pool, &Option<Disks<'_>>)| {
                let count = disks.as_ref().map_or(0, |disks| disks.count);
                self.luns(self.kept(need, &pool.roles), count, &mut taken)
            })
            .collect();
        // A layout has no LUNs beyond the maximum.
        if luns.iter().flatten().any(|lun| *lun >= luns::MOST) {
            luns.iter_mut().for_each(Vec::clear);
        }
        for ((pool, disks), luns) in pools().zip(&luns) {
            write_pool(&mut text, need, pool, disks.as_ref(), self.kept(need, &pool.roles), luns);
        }
        text.finish()
    }

    /// Assigns LUNs to a pool's disks. Disks in use keep theirs, and new ones take the lowest free
    /// numbers.
    fn luns(&self, kept: Option<&KeptPool>, count: u64, taken: &mut BTreeSet<u32>) -> Vec<u32> {
        if !self.edition.has_numbered_disks() {
            return Vec::new();
        }
        let mut there = kept.into_iter().flat_map(|kept| &kept.luns).copied();
        (0..count).map(|_| there.next().unwrap_or_else(|| luns::lowest(taken))).collect()
    }
}

/// Returns the reason why a backup has disks of its own.
pub(crate) fn backup_apart() -> String {
    "backup: on disks of its own, so that it survives the loss of data and log and does not \
     compete with them (apart = false lets them share disks)"
        .to_owned()
}

/// Returns the assumed overhead of the file system. Without a file system, returns a warning if
/// ext4 would not leave enough room.
fn file_system_note(filesystem: FileSystem, name: &str, size: u64, room: u64) -> Option<Reason> {
    if filesystem != FileSystem::None {
        return Some(Reason::detail(format!(
            "{name}: files of {} need disks of {} with {} (overhead {})",
            Bytes::new(size),
            Bytes::new(filesystem.room_for(Bytes::new(size)).get().next_multiple_of(1 << 30)),
            filesystem.name(),
            filesystem.words()
        )));
    }
    let left = u128::from(room.saturating_sub(size)) * u128::from(WHOLE);
    (left < u128::from(room) * u128::from(FileSystem::Ext4.overhead())).then(|| {
        Reason::key(format!(
            "{name}: {} of the disks' {} are needed, which may leave too little for a file system: \
             ext4 takes 1.7 % and reserves 5 % for root, others take less; plan for it with \
             --filesystem ext4|xfs|ntfs",
            Bytes::new(size),
            Bytes::new(room)
        ))
    })
}

/// Returns the note about another cache mode of disks in use.
fn cache_note(name: &str, kept: &KeptPool, mode: CacheMode) -> Option<String> {
    let change = match mode {
        _ if mode == kept.mode => return None,
        CacheMode::None => "the host cache is switched off",
        CacheMode::ReadOnly | CacheMode::ReadWrite => "the disks get a read-only host cache",
    };
    Some(format!(
        "{name}: {change}, which is free; they are detached and attached again for it, so the database on them stops \
         for some seconds"
    ))
}

/// Returns the note about rebuilding a stripe with another unit.
fn rebuild_note(name: &str, kept: &KeptPool, place: Place) -> Option<String> {
    let (Some(old), Place::Striped(unit)) = (kept.unit, place) else { return None };
    (old != unit).then(|| {
        format!(
            "{name}: the stripe is rebuilt with a unit of {unit} instead of {old}, so that limits \
             count fewer operations; it costs no more, but the data must be copied away and back \
             (or restored from a backup) and is unavailable meanwhile"
        )
    })
}

/// Returns the note about disks in use: kept, or grown.
fn kept_note(name: &str, kept: &KeptPool, disk: &Disk<'_>, place: Place) -> String {
    let (count, size) = (kept.count, disk.size());
    let old = kept.tier.clone().unwrap_or_else(|| format!("{} of {}", kept.family, kept.size));
    let grow = format!("{name}: the {count} x {old} in use grow to {size} each");
    match (size > kept.size, kept.unit) {
        (true, None) => format!("{grow}, without copying"),
        (true, Some(unit)) if place != Place::Striped(unit) => grow,
        // docs/EXPORT.md has the steps by tool.
        (true, Some(_)) => format!(
            "{grow}; their limits rise without copying, but only an LVM stripe can use the new \
             room in place: data on mdadm or Storage Spaces must be copied"
        ),
        (false, _) => format!("{name}: the {count} x {old} in use keep their size"),
    }
}

/// Returns the note about settings of disks in use.
fn settings_note(name: &str, kept: &KeptPool, disk: &Disk<'_>) -> Option<String> {
    let mut words = Vec::new();
    if let Disk::Bought { iops, throughput, .. } = disk {
        let old = kept.limits?;
        let change = |old: String, new: String| match old == new {
            true => format!("keeps {new}"),
            false => format!("changes from {old} to {new}"),
        };
        words.push(format!("each disk {}", change(old.iops.to_string(), iops.to_string())));
        words.push(change(old.throughput.to_string(), throughput.to_string()));
    }
    let own = disk.chosen();
    match (&kept.performance_tier, own.and_then(|own| own.performance_tier)) {
        (Some(_), Some(tier)) => words.push(format!("performance tier {} stays", tier.name)),
        (Some(old), None) => {
            words.push(format!("performance tier {old} is dropped, because the disks grow to it"));
        }
        (None, _) => {}
    }
    if kept.on_demand_burst {
        words.push("on-demand bursting stays on, but the plan does not count on it".to_owned());
    }
    (!words.is_empty()).then(|| format!("{name}: {}", words.join(", ")))
}

/// Maximum length of an XFS label.
const MOST_LABEL: usize = 12;

/// Returns the name of disks in a layout: their roles, if that is short enough for a file system
/// label.
pub(crate) fn pool_name(roles: &str) -> String {
    let name = if roles.len() <= MOST_LABEL { roles } else { "pool" };
    name.to_owned()
}

fn on(pool: &Pool, disks: Option<&Disks<'_>>) -> String {
    let cached = if pool.mode == CacheMode::None { "" } else { ", cached" };
    match disks {
        None => "the local disk".to_owned(),
        Some(Disks { disk: Disk::Burst(tier), count, .. }) => {
            format!("{count} x {} bursting{cached}", tier.name)
        }
        Some(Disks { disk: Disk::Tier(tier), count, .. }) => {
            format!("{count} x {}{cached}", tier.name)
        }
        Some(Disks { disk: Disk::Plus(tier), count, .. }) => {
            format!("{count} x {} with performance plus{cached}", tier.name)
        }
        Some(Disks { disk: Disk::Chosen(own), count, .. }) => {
            let mut words = format!("{count} x {}", own.tier.name);
            if let Some(tier) = own.performance_tier {
                words += &format!(" with performance tier {}", tier.name);
            }
            if own.is_plus {
                words += " with performance plus";
            }
            if own.on_demand_burst {
                words += " with on-demand bursting";
            }
            words + cached
        }
        Some(Disks { disk: Disk::Bought { family, size, iops, throughput }, count, .. }) => {
            format!("{count} x {} of {size}, {iops} and {throughput}", family.family)
        }
    }
}

/// Writes the disks of a pool with their LUNs, and the files on them.
fn write_pool(
    text: &mut LayoutText,
    need: &Need,
    pool: &Pool,
    disks: Option<&Disks<'_>>,
    kept: Option<&KeptPool>,
    luns: &[u32],
) {
    let name = kept.map_or_else(|| pool_name(&pool.names(need, "-")), |kept| kept.name.clone());
    let local = || VolumeKeys { place: Some(PlaceKey::Local), ..VolumeKeys::default() };
    let each = disks.map_or_else(local, |disks| disks.disk.keys());
    let each = VolumeKeys { cache: pool.mode, ..each };
    let one = |name: &str, at: usize| VolumeKeys {
        name: Some(name.to_owned()),
        lun: luns.get(at).copied().map(i64::from),
        ..each.clone()
    };
    let stripe = |unit: Bytes, volumes: Columns| StripeKeys {
        name: name.clone(),
        host: None,
        unit,
        volumes,
        clients: None,
    };
    let own_names = kept.filter(|kept| {
        let mut named = kept.volumes.iter().enumerate();
        kept.unit.is_some() && !named.all(|(at, own)| *own == format!("{name}-{at}"))
    });
    match (pool.place, own_names) {
        // Columns with names of their own are written one by one.
        (Place::Striped(unit), Some(kept)) => {
            for (at, volume) in kept.volumes.iter().enumerate() {
                text.volume(&one(volume, at));
            }
            text.stripe(&stripe(unit, Columns::Named(kept.volumes.clone())));
        }
        (Place::Striped(unit), None) => {
            let count = u32::try_from(disks.map_or(1, |disks| disks.count)).unwrap_or(u32::MAX);
            let luns = luns.iter().copied().map(i64::from).collect::<Vec<_>>();
            let luns = (!luns.is_empty()).then_some(luns);
            let alike = AlikeKeys { count, luns, each: each.clone() };
            text.stripe(&stripe(unit, Columns::Alike(Box::new(alike))));
        }
        (Place::Single | Place::Local, _) => text.volume(&one(&name, 0)),
    }
    for role in &pool.roles {
        write_role_files(text, &need.roles[*role], kept, &name);
    }
}

/// Writes the files of a role: those in use, or a new one.
fn write_role_files(text: &mut LayoutText, own: &RoleNeed, kept: Option<&KeptPool>, on: &str) {
    let there = kept.iter().flat_map(|kept| &kept.files).filter(|(_, role)| *role == own.role);
    let mut files: Vec<String> = there.map(|(name, _)| name.clone()).collect();
    if files.is_empty() {
        files.push(format!("{}-file", own.role.name()));
    }
    // Equal files, of whole sectors.
    let part = own.size.get().div_ceil(files.len() as u64).next_multiple_of(1 << 20);
    let size = if files.len() == 1 { own.size } else { Bytes::new(part) };
    for file in files {
        let keys = FileKeys::new(file, own.role, size);
        text.file(&FileKeys { on: Some(on.to_owned()), ..keys });
    }
}
