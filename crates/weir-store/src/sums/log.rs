//! The list of open regions: which checksums a crash makes unknown.
//!
//! ```text
//! offset 0     slot 0    "WEIRSUM1"  generation (8)  CRC-32 (4)  zeros (12)  a bit for each region (512)
//! offset 4096  slot 1    the same
//! ```
//!
//! The slots are written in turn, and the valid one with the higher generation counts. A torn write
//! leaves the other, whose list is right as well: what the torn one would have allowed has not
//! happened. If neither is valid, every region counts as open.

use crate::Result;
use crate::store::Store;

/// The number of regions of a volume.
pub(super) const REGIONS: u64 = 4096;

/// The bytes of the file.
pub(crate) const LEN: u64 = 2 * SLOT;
const SLOT: u64 = 4096;
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
}

impl<S: Store> Log<S> {
    /// Reads the list.
    pub(super) fn load(store: S) -> Result<Self> {
        let slots = [read_slot(&store, 0)?, read_slot(&store, 1)?];
        let newest = slots.into_iter().flatten().max_by_key(|(generation, _)| *generation);
        let (generation, open) = newest.unwrap_or((0, Regions::ALL));
        Ok(Self { store, generation, open })
    }

    /// Returns the regions that are open on the medium. After a write that failed, they may be those that it
    /// was to store, too.
    pub(super) fn open(&self) -> &Regions {
        &self.open
    }

    /// Stores another list durably.
    pub(super) fn write(&mut self, open: Regions) -> Result<()> {
        // A write that failed is repeated in its place: the other slot is the last one that is sure.
        let generation = self.generation + 1;
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
    fn an_empty_file_means_that_all_are_open() {
        let log = Log::load(MemoryStore::new(Bytes::new(LEN))).unwrap();
        assert_eq!(log.open(), &Regions::ALL);
        assert_eq!(log.open().iter().count(), 4096);
    }

    #[test]
    fn a_torn_write_leaves_the_list_before_it() {
        for seed in 0..50 {
            let mut log = Log::load(FaultStore::new(Bytes::new(LEN))).unwrap();
            for last in [1, 2, 3] {
                log.write(regions(&[last])).unwrap();
            }
            log.store.fail_after(1, Fault::Io);
            log.write(regions(&[7, 4095])).unwrap_err();
            let after = Log::load(log.store.crash(seed).unwrap()).unwrap();
            let found: Vec<_> = after.open().iter().collect();
            assert!(found == [3] || found == [7, 4095], "{found:?}");
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let mut log = Log::load(MemoryStore::new(Bytes::new(LEN))).unwrap();
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
