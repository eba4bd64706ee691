//! Open and sealed regions.
//!
//! ```text
//!           first write: on the list of open regions, durably, before the bytes change
//!   sealed -----------------------------------------------------------------------> open
//!          <-----------------------------------------------------------------------
//!           no write for many syncs: bytes durable, checksums durable, off the list
//!
//!   open on the list when the volume is opened: unknown until its checksums are computed anew
//! ```
//!
//! A region is sealed after a number of syncs without a write to it. The number doubles when the region is soon
//! written again, so a region in steady use stays open, and its writes cost no more syncs of the list.
//!
//! Scattered writes to a large volume would each wait for the list. After several openings in a short time, a
//! region therefore opens together with its neighbours, in groups of growing size.

use super::block::CHUNK;
use super::log::{Log, REGIONS, Regions};
use crate::Result;
use crate::store::Store;
use crate::sync::locked;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;

/// The bytes of a volume that follow each other in one region. A volume of more than 4,096 times as many
/// has the next ones in the first region again, so no resize changes the region of a byte. Those of tests are
/// short.
pub(super) const STRETCH: u64 = if cfg!(test) { 128 << 10 } else { 64 << 20 };

const _: () = assert!(STRETCH.is_multiple_of(CHUNK), "a chunk is in one region");

/// The pace at which regions are sealed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Regions are sealed at every such sync.
    pub(super) every: u64,
    /// The syncs without a write after which a region is sealed, at first.
    pub(super) quiet: u64,
}

impl Pace {
    /// Sealing costs two more syncs, which is less than 1 % of them. The regions that are written again cost some
    /// more.
    pub(super) const DEFAULT: Self = Self { every: 256, quiet: 256 };
}

/// Two openings within this number of syncs count as one soon after the other.
const SOON: u64 = if cfg!(test) { 4 } else { 32 };

/// The openings, each soon after the one before, after which regions open in groups.
const ALONE: u32 = if cfg!(test) { 2 } else { 8 };

/// The most doublings of a group.
const MOST_JOINED: u32 = 8;

/// The most doublings of [`Pace::quiet`].
const MOST_DOUBLINGS: u32 = 20;

/// The states of all regions.
#[derive(Debug)]
pub(super) struct States<S> {
    /// Locked over its sync. Regions open and are sealed with it locked.
    log: Mutex<Log<S>>,
    /// Never locked over I/O.
    table: Mutex<Table>,
    pace: Pace,
}

#[derive(Debug, Default)]
struct Table {
    /// The regions that have ever been open.
    regions: BTreeMap<u16, Region>,
    /// The regions whose checksums are unknown, with the change that made them so.
    unknown: BTreeMap<u16, u64>,
    /// The list on the medium is one of two: that of the table, or one that a failed write was to store.
    is_list_unsure: bool,
    syncs: u64,
    /// Rises with each opening of regions soon after another one, and is halved by each other one.
    hurry: u32,
    /// The sync before the last opening.
    opened_at: u64,
    /// Counts changes, so that two states of a region can be compared.
    changes: u64,
}

#[derive(Debug, Default, Clone)]
struct Region {
    is_open: bool,
    /// Writes under way.
    active: u32,
    /// The change that ended last.
    changed: u64,
    /// The sync at which the state last changed, or before the last write.
    at_sync: u64,
    doublings: u32,
}

/// Writes under way in some regions; see [`States::enter`].
#[derive(Debug)]
pub(super) struct Entered<'a, S: Store> {
    states: &'a States<S>,
    regions: Range<u64>,
}

/// A region that may be sealed, as it was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Due {
    region: u16,
    changed: u64,
}

/// A region whose checksums are unknown, since that change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unknown {
    pub(super) region: u16,
    since: u64,
}

/// Returns the region of a stretch.
fn region_of(stretch: u64) -> u16 {
    u16::try_from(stretch % REGIONS).unwrap_or_else(|_| unreachable!("there are 4,096 regions"))
}

/// Returns the regions of stretches, each once.
fn regions_of(stretches: &Range<u64>) -> impl Iterator<Item = u16> + use<> {
    (stretches.start..stretches.end.min(stretches.start.saturating_add(REGIONS))).map(region_of)
}

/// Returns the group of stretches that open together with the given ones.
fn group_of(stretches: &Range<u64>, hurry: u32) -> Range<u64> {
    let joined = 1 << hurry.saturating_sub(ALONE);
    stretches.start / joined * joined..stretches.end.next_multiple_of(joined)
}

/// Returns the stretches that a range touches.
pub(super) fn stretches(offset: u64, len: u64) -> Range<u64> {
    offset / STRETCH..(offset + len).div_ceil(STRETCH)
}

impl<S: Store> States<S> {
    /// Takes the list of a volume. The checksums of regions that are open there are unknown.
    pub(super) fn load(store: S, pace: Pace) -> Result<Self> {
        let log = Log::load(store)?;
        let open = Region { is_open: true, ..Region::default() };
        let regions = log.open().iter().map(|region| (region, open.clone())).collect();
        let unknown = log.open().iter().map(|region| (region, 0)).collect();
        let table = Table { regions, unknown, ..Table::default() };
        Ok(Self { log: Mutex::new(log), table: Mutex::new(table), pace })
    }

    /// Makes the list durable that was loaded.
    pub(super) fn settle(&self) -> Result<()> {
        locked(&self.log).settle()
    }

    /// Returns the offset of a copy of the list that was damaged when it was loaded.
    pub(super) fn damaged_copy(&self) -> Option<u64> {
        locked(&self.log).damaged()
    }

    /// Notes that the checksums of open regions may be lost.
    pub(super) fn set_open_unknown(&self) {
        let mut table = locked(&self.table);
        table.changes += 1;
        let (change, open) = (table.changes, table.open());
        for region in open.iter() {
            table.unknown.insert(region, change);
        }
    }

    /// Begins a change of a range: opens its regions durably. They are not sealed before the change is
    /// over.
    pub(super) fn enter(&self, offset: u64, len: u64) -> Result<Entered<'_, S>> {
        let regions = stretches(offset, len);
        if !locked(&self.table).begin(&regions) {
            let mut log = locked(&self.log);
            let (mut open, hurry, is_unsure) = {
                let table = locked(&self.table);
                (table.open(), table.next_hurry(&regions), table.is_list_unsure)
            };
            let group = hurry.map_or(regions.clone(), |hurry| group_of(&regions, hurry));
            regions_of(&group).for_each(|region| open.insert(region));
            if is_unsure || open != *log.open() {
                log.write(open).inspect_err(|_| locked(&self.table).is_list_unsure = true)?;
            }
            let mut table = locked(&self.table);
            table.is_list_unsure = false;
            table.reopen(&regions, self.pace);
            if let Some(hurry) = hurry {
                table.join(&group, hurry);
            }
            let begun = table.begin(&regions);
            debug_assert!(begun, "they are open, and the list is sure");
        }
        Ok(Entered { states: self, regions })
    }

    /// Counts a sync that begins. Returns whether it is one that seals regions.
    pub(super) fn begin_sync(&self) -> bool {
        let mut table = locked(&self.table);
        table.syncs += 1;
        table.syncs.is_multiple_of(self.pace.every)
    }

    /// Returns the regions that can be sealed once the bytes and checksums are durable that are there now:
    /// those that were not written for a while, or `all` that have no write under way.
    pub(super) fn due(&self, all: bool) -> Vec<Due> {
        let table = locked(&self.table);
        let due = table.regions.iter().filter(|(number, region)| {
            let quiet = self.pace.quiet << region.doublings;
            region.is_open
                && region.active == 0
                && !table.unknown.contains_key(number)
                && (all || table.syncs - region.at_sync >= quiet)
        });
        due.map(|(number, region)| Due { region: *number, changed: region.changed }).collect()
    }

    /// Seals those of the regions that were not written since [`States::due`]. The bytes and checksums that
    /// they had then are durable.
    pub(super) fn seal(&self, due: &[Due]) -> Result<()> {
        // A write that finds its region sealed waits for this lock.
        let mut log = locked(&self.log);
        let open = {
            let mut table = locked(&self.table);
            table.seal(due);
            table.open()
        };
        if open == *log.open() {
            return Ok(());
        }
        log.write(open).inspect_err(|_| locked(&self.table).is_list_unsure = true)
    }

    /// Returns whether the checksums of the region are unknown in which `offset` is.
    pub(super) fn is_unknown(&self, offset: u64) -> bool {
        locked(&self.table).unknown.contains_key(&region_of(offset / STRETCH))
    }

    /// Returns the number of regions with unknown checksums in a volume of `size`.
    pub(super) fn unknown_in(&self, size: u64) -> u64 {
        let regions = size.div_ceil(STRETCH).min(REGIONS);
        let table = locked(&self.table);
        table.unknown.keys().filter(|region| u64::from(**region) < regions).count() as u64
    }

    /// Returns a region whose checksums are unknown: the first after `last`, or the first of all.
    pub(super) fn next_unknown(&self, last: Option<u16>) -> Option<Unknown> {
        let table = locked(&self.table);
        let after = last.and_then(|last| table.unknown.range(last.saturating_add(1)..).next());
        let (region, since) = after.or_else(|| table.unknown.first_key_value())?;
        Some(Unknown { region: *region, since: *since })
    }

    /// Notes that the checksums of a region are computed, unless they became unknown again meanwhile.
    pub(super) fn set_known(&self, computed: Unknown) {
        let mut table = locked(&self.table);
        if table.unknown.get(&computed.region) == Some(&computed.since) {
            table.unknown.remove(&computed.region);
        }
    }
}

#[cfg(test)]
impl<S> States<S> {
    pub(super) fn into_store(self) -> S {
        self.log.into_inner().unwrap().into_store()
    }

    /// Returns how often the list was written.
    pub(super) fn generation(&self) -> u64 {
        locked(&self.log).generation()
    }

    pub(super) fn with_store(&self, act: impl FnOnce(&S)) {
        act(locked(&self.log).store());
    }
}

impl Table {
    fn open(&self) -> Regions {
        let mut open = Regions::NONE;
        let numbers = self.regions.iter().filter(|(_, region)| region.is_open);
        numbers.for_each(|(number, _)| open.insert(*number));
        open
    }

    /// Begins a change, if all its regions are open for certain.
    fn begin(&mut self, regions: &Range<u64>) -> bool {
        if self.is_list_unsure || !self.are_open(regions) {
            return false;
        }
        for number in regions_of(regions) {
            if let Some(region) = self.regions.get_mut(&number) {
                region.active += 1;
            }
        }
        true
    }

    fn seal(&mut self, due: &[Due]) {
        for due in due {
            if let Some(region) = self.regions.get_mut(&due.region)
                && region.active == 0
                && region.changed == due.changed
                && !self.unknown.contains_key(&due.region)
            {
                (region.is_open, region.at_sync) = (false, self.syncs);
            }
        }
    }

    /// Returns [`Table::hurry`] after an opening of `regions`; `None` if all of them are open.
    fn next_hurry(&self, regions: &Range<u64>) -> Option<u32> {
        if self.are_open(regions) {
            return None;
        }
        Some(match self.syncs - self.opened_at < SOON {
            true => (self.hurry + 1).min(ALONE + MOST_JOINED),
            false => self.hurry / 2,
        })
    }

    /// Opens the neighbours of regions that are opened for a change.
    fn join(&mut self, group: &Range<u64>, hurry: u32) {
        let syncs = self.syncs;
        (self.hurry, self.opened_at) = (hurry, syncs);
        for number in regions_of(group) {
            let region = self.regions.entry(number).or_default();
            if !region.is_open {
                (region.is_open, region.at_sync) = (true, syncs);
            }
        }
    }

    fn are_open(&self, regions: &Range<u64>) -> bool {
        let is_open = |number| self.regions.get(&number).is_some_and(|region| region.is_open);
        regions_of(regions).all(is_open)
    }

    fn reopen(&mut self, regions: &Range<u64>, pace: Pace) {
        let syncs = self.syncs;
        for number in regions_of(regions) {
            let region = self.regions.entry(number).or_default();
            if region.is_open {
                continue;
            }
            let quiet = pace.quiet << region.doublings;
            let is_soon = region.changed > 0 && syncs - region.at_sync < 8 * quiet;
            region.doublings = match is_soon {
                true => (region.doublings + 1).min(MOST_DOUBLINGS),
                false => region.doublings.saturating_sub(1),
            };
            (region.is_open, region.at_sync) = (true, syncs);
        }
    }

    fn end(&mut self, regions: &Range<u64>) {
        self.changes += 1;
        let (change, sync) = (self.changes, self.syncs);
        for number in regions_of(regions) {
            let Some(region) = self.regions.get_mut(&number) else { continue };
            region.active -= 1;
            (region.changed, region.at_sync) = (change, sync);
        }
    }
}

impl<S: Store> Entered<'_, S> {
    /// Notes that the checksums of the region of `offset`, which is one of these, are unknown from now on.
    pub(super) fn set_unknown(&self, offset: u64) {
        let mut table = locked(&self.states.table);
        table.changes += 1;
        let change = table.changes;
        table.unknown.insert(region_of(offset / STRETCH), change);
    }
}

impl<S: Store> Drop for Entered<'_, S> {
    fn drop(&mut self) {
        locked(&self.states.table).end(&self.regions);
    }
}

#[cfg(test)]
mod tests;
