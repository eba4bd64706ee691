//! The list of open regions: which checksums a crash makes unknown.
//!
//! ```text
//! offset 0     slot 0    "WEIRSUM1"  generation (8)  CRC-32 (4)  zeros (12)  a bit for each region (512)
//! offset 4096  slot 1    the same
//! ```
//!
//! The slots are written in turn, and the valid one with the higher generation counts. Both are there from the
//! start, so a full disk stops no later write of the list. If a slot is damaged, by a torn write or otherwise, it
//! may have been the newer one, and every region counts as open. If neither is valid, the list is damaged.

use crate::store::Store;
use crate::{Result, StoreError};

/// The number of regions of a volume.
pub(super) const REGIONS: u64 = 4096;

/// The bytes of the file.
pub(crate) const LEN: u64 = 2 * SLOT;

/// The way out of a list that is missing or damaged.
pub(super) const ANEW: &str = "serve the volume once with checksums = false and then with true: its checksums are \
                               computed anew, from bytes that are not verified";

/// The bytes of each of its two copies.
pub(crate) const SLOT: u64 = 4096;
const MAGIC: &[u8; 8] = b"WEIRSUM1";
const GENERATION: std::ops::Range<usize> = 8..16;
const CRC: std::ops::Range<usize> = 16..20;
const HEADER: usize = 32;
const BITS: usize = 512;
const USED: usize = HEADER + BITS;

/// A set of regions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Regions([u8; BITS]);

impl Regions {
    pub(super) const NONE: Self = Self([0; BITS]);
    pub(super) const ALL: Self = Self([0xff; BITS]);

    pub(super) fn insert(&mut self, region: u16) {
        self.0[usize::from(region) / 8] |= 1 << (region % 8);
    }

    pub(super) fn contains(&self, region: u16) -> bool {
        self.0[usize::from(region) / 8] & 1 << (region % 8) != 0
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u16> {
        (0..4096).filter(|region| self.contains(*region))
    }
}

/// The list on its medium.
#[derive(Debug)]
pub(super) struct Log<S> {
    store: S,
    /// That of the newest slot.
    generation: u64,
    open: Regions,
    /// The offset of a slot that was damaged when the list was loaded.
    damaged: Option<u64>,
}

impl<S: Store> Log<S> {
    /// Stores the first list durably, and returns the store.
    pub(super) fn init(store: S, open: Regions) -> Result<S> {
        let mut log = Self { store, generation: 0, open: Regions::ALL, damaged: None };
        log.write(open.clone())?;
        log.write(open)?;
        Ok(log.store)
    }

    /// Reads the list.
    pub(super) fn load(store: S) -> Result<Self> {
        let slots = [read_slot(&store, 0)?, read_slot(&store, 1)?];
        let damaged = slots.iter().position(Option::is_none).map(|slot| slot as u64 * SLOT);
        let newest = slots.into_iter().flatten().max_by_key(|(generation, _)| *generation);
        let Some((generation, open)) = newest else {
            return Err(StoreError::Damaged {
                what: "the list of a volume's regions with unknown checksums is missing or damaged"
                    .to_owned(),
                hint: ANEW,
            });
        };
        let open = if damaged.is_none() { open } else { Regions::ALL };
        Ok(Self { store, generation, open, damaged })
    }

    /// Returns the offset of a slot that was damaged when the list was loaded.
    pub(super) fn damaged(&self) -> Option<u64> {
        self.damaged
    }

    /// Makes the list durable that was loaded: a process that was killed may have left it in memory only.
    pub(super) fn settle(&mut self) -> Result<()> {
        // Not over the only slot that is valid: a torn write would leave none.
        let generation = self.generation + u64::from(self.damaged.is_some());
        self.write_as(generation, self.open.clone())
    }

    /// Returns the regions that are open on the medium. After a failed write, the medium may have the new list
    /// instead.
    pub(super) fn open(&self) -> &Regions {
        &self.open
    }

    /// Stores another list durably.
    pub(super) fn write(&mut self, open: Regions) -> Result<()> {
        // A write that failed is repeated in its place: the other slot is the last one that is sure.
        self.write_as(self.generation + 1, open)
    }

    fn write_as(&mut self, generation: u64, open: Regions) -> Result<()> {
        let mut slot = [0; USED];
        slot[..MAGIC.len()].copy_from_slice(MAGIC);
        slot[GENERATION].copy_from_slice(&generation.to_le_bytes());
        slot[HEADER..].copy_from_slice(&open.0);
        let crc = checksum(&slot);
        slot[CRC].copy_from_slice(&crc.to_le_bytes());
        self.store.write_at(generation % 2 * SLOT, &slot)?;
        self.store.sync()?;
        (self.generation, self.open) = (generation, open);
        Ok(())
    }
}

#[cfg(test)]
impl<S> Log<S> {
    pub(super) fn store(&self) -> &S {
        &self.store
    }

    pub(super) fn into_store(self) -> S {
        self.store
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }
}

fn read_slot<S: Store>(store: &S, number: u64) -> Result<Option<(u64, Regions)>> {
    let mut slot = [0; USED];
    store.read_at(number * SLOT, &mut slot)?;
    let is_valid = slot.starts_with(MAGIC) && super::block::decode(&slot[CRC]) == checksum(&slot);
    Ok(is_valid.then(|| {
        let (mut generation, mut open) = ([0; 8], [0; BITS]);
        generation.copy_from_slice(&slot[GENERATION]);
        open.copy_from_slice(&slot[HEADER..]);
        (u64::from_le_bytes(generation), Regions(open))
    }))
}

/// Returns the CRC-32 of all but its own place.
fn checksum(slot: &[u8; USED]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&slot[..CRC.start]);
    hasher.update(&slot[CRC.end..]);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fault, FaultStore, MemoryStore};
    use weir_units::Bytes;

    fn regions(of: &[u16]) -> Regions {
        let mut set = Regions::NONE;
        of.iter().for_each(|region| set.insert(*region));
        set
    }

    #[test]
    fn an_empty_file_is_damage() {
        let error = Log::load(MemoryStore::new(Bytes::new(LEN))).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Damaged);
    }

    #[test]
    fn a_damaged_slot_means_that_all_are_open() {
        for slot in 0..2 {
            let mut log = loaded(MemoryStore::new(Bytes::new(LEN)));
            log.write(regions(&[5])).unwrap();
            log.store.write_at(slot * SLOT + 40, &[9]).unwrap();
            let log = Log::load(log.store).unwrap();
            assert_eq!(log.open(), &Regions::ALL);
            assert_eq!(log.open().iter().count(), 4096);
        }
    }

    /// A killed process leaves a list that is not durable; the next one makes it so.
    #[test]
    fn a_list_that_was_loaded_survives_a_loss_of_power() {
        for seed in 0..50 {
            let mut log = loaded(FaultStore::new(Bytes::new(LEN)));
            log.store.fail_after(1, Fault::Io);
            log.write(regions(&[7])).unwrap_err();
            let mut log = Log::load(log.store.kill().unwrap()).unwrap();
            assert_eq!(log.open(), &regions(&[7]));
            log.settle().unwrap();
            let after = Log::load(log.store.crash(seed).unwrap()).unwrap();
            assert_eq!(after.open(), &regions(&[7]));
        }
    }

    /// Returns the list of a new volume.
    fn loaded<S: Store>(store: S) -> Log<S> {
        Log::load(Log::init(store, Regions::NONE).unwrap()).unwrap()
    }

    #[test]
    fn a_torn_write_leaves_either_list_or_all_regions() {
        for seed in 0..50 {
            let mut log = loaded(FaultStore::new(Bytes::new(LEN)));
            for last in [1, 2, 3] {
                log.write(regions(&[last])).unwrap();
            }
            log.store.fail_after(1, Fault::Io);
            log.write(regions(&[7, 4095])).unwrap_err();
            let after = Log::load(log.store.crash(seed).unwrap()).unwrap();
            let found: Vec<_> = after.open().iter().collect();
            assert!(found == [3] || found == [7, 4095] || found.len() == 4096, "{found:?}");
        }
    }

    /// The first loss of power tears one slot, and the second one tears what the next start writes.
    #[test]
    fn two_torn_writes_one_after_the_other_leave_a_list() {
        for (slot, seed) in (0..100).map(|at| (at % 2, at / 2)) {
            let mut log = loaded(FaultStore::new(Bytes::new(LEN)));
            log.write(regions(&[7])).unwrap();
            log.store.write_at(slot * SLOT + 40, &[9]).unwrap();
            log.store.sync().unwrap();
            let mut log = Log::load(log.store).unwrap();
            log.store.fail_after(1, Fault::Io);
            log.settle().unwrap_err();
            let after = Log::load(log.store.crash(seed).unwrap()).unwrap();
            assert_eq!(after.open(), &Regions::ALL, "seed {seed}");
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let mut log = loaded(MemoryStore::new(Bytes::new(LEN)));
        log.write(regions(&[5])).unwrap();
        let mut slot = [0; USED];
        log.store.read_at(SLOT, &mut slot).unwrap();
        for bit in 0..USED * 8 {
            let mut damaged = slot;
            damaged[bit / 8] ^= 1 << (bit % 8);
            log.store.write_at(SLOT, &damaged).unwrap();
            assert_eq!(read_slot(&log.store, 1).unwrap(), None, "bit {bit}");
        }
    }
}
