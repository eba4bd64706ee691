//! The label of a raw volume: which stripes of which backups lie where.
//!
//! ```text
//! |  slot 0  |  slot 1  |  free  | stripe | stripe | free ... |
//! 0        4096       8192     1 MiB
//! ```
//! Two slots of 4 KiB take turns. A new label goes to the slot that does not hold the newest one, so
//! that a write that is torn leaves the old label. A stripe's region is reserved before its first
//! byte is written, and the entry says that it is incomplete until it is complete and durable.

use crate::error::BackupError;
use crate::format::BackupId;

/// The length of a slot.
pub(super) const SLOT: usize = 4096;
/// The bytes of both slots.
pub(crate) const LABEL: usize = 2 * SLOT;
/// The first byte of a region.
const DATA_AT: u64 = 1 << 20;
/// Regions begin at multiples of this.
const ALIGNMENT: u64 = 4096;
/// The most entries of a label.
const MAX_ENTRIES: usize = (SLOT - ENTRIES_AT - 32) / ENTRY;

const MAGIC: &[u8; 8] = b"WEIRLBL1";
const VERSION: u16 = 1;
const ENTRIES_AT: usize = 64;
const ENTRY: usize = 48;
const CHECKSUM_AT: usize = SLOT - 32;

/// A stripe on a raw volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) id: BackupId,
    /// The stripe, from 0.
    pub(super) stripe: u8,
    pub(super) is_complete: bool,
    /// Its region: its first byte, and its length, which is that of the stripe once complete.
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) created_unix_ms: u64,
}

/// A label.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) sequence: u64,
    pub(super) entries: Vec<Entry>,
}

/// Returns the newest sound label of a volume that starts with these bytes.
fn newest(start: &[u8]) -> Option<Label> {
    let slots = start.chunks_exact(SLOT).take(2).filter_map(|slot| slot.try_into().ok());
    slots.filter_map(Label::parse).max_by_key(|label| label.sequence)
}

/// Returns whether a volume that starts with these bytes holds backups: a sound label that lists any.
pub(crate) fn lists_backups(start: &[u8]) -> bool {
    newest(start).is_some_and(|label| !label.entries.is_empty())
}

/// Returns whether a volume that starts with these bytes has a sound label.
pub(crate) fn has_label(start: &[u8]) -> bool {
    newest(start).is_some()
}

impl Label {
    /// Reads a slot; `None` if it is no sound label.
    pub(super) fn parse(slot: &[u8; SLOT]) -> Option<Self> {
        let number = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&slot[at..at + 8]);
            u64::from_le_bytes(bytes)
        };
        let is_sound = &slot[..8] == MAGIC
            && slot[8..10] == VERSION.to_le_bytes()
            && *blake3::hash(&slot[..CHECKSUM_AT]).as_bytes() == slot[CHECKSUM_AT..];
        let count = usize::from(u16::from_le_bytes([slot[10], slot[11]]));
        if !is_sound || count > MAX_ENTRIES {
            return None;
        }
        let entry = |at: usize| {
            let at = ENTRIES_AT + at * ENTRY;
            let mut id = [0; 16];
            id.copy_from_slice(&slot[at..at + 16]);
            Entry {
                id: BackupId::from_bytes(id),
                stripe: slot[at + 16],
                is_complete: slot[at + 17] == 1,
                offset: number(at + 24),
                length: number(at + 32),
                created_unix_ms: number(at + 40),
            }
        };
        Some(Self { sequence: number(16), entries: (0..count).map(entry).collect() })
    }

    /// Writes the label.
    pub(super) fn encode(&self) -> [u8; SLOT] {
        let mut slot = [0; SLOT];
        let mut put = |at: usize, bytes: &[u8]| slot[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(10, &u16::try_from(self.entries.len()).unwrap_or(u16::MAX).to_le_bytes());
        put(16, &self.sequence.to_le_bytes());
        for (at, own) in self.entries.iter().enumerate() {
            let at = ENTRIES_AT + at * ENTRY;
            put(at, own.id.as_bytes());
            put(at + 16, &[own.stripe, u8::from(own.is_complete)]);
            put(at + 24, &own.offset.to_le_bytes());
            put(at + 32, &own.length.to_le_bytes());
            put(at + 40, &own.created_unix_ms.to_le_bytes());
        }
        let checksum = blake3::hash(&slot[..CHECKSUM_AT]);
        slot[CHECKSUM_AT..].copy_from_slice(checksum.as_bytes());
        slot
    }

    /// Returns the slot of this label, by its number.
    pub(super) const fn slot(&self) -> u64 {
        self.sequence % 2
    }

    /// Returns the free regions of a volume of `size` bytes, in their order.
    pub(super) fn free(&self, size: u64) -> Vec<(u64, u64)> {
        let mut used: Vec<(u64, u64)> =
            self.entries.iter().map(|own| (own.offset, own.length)).collect();
        used.sort_unstable();
        let (mut free, mut at) = (Vec::new(), DATA_AT);
        for (offset, length) in used.into_iter().chain([(size, 0)]) {
            let end = offset.min(size) / ALIGNMENT * ALIGNMENT;
            if end > at {
                free.push((at, end - at));
            }
            let end = offset.saturating_add(length);
            at = at.max(end.checked_next_multiple_of(ALIGNMENT).unwrap_or(end));
        }
        free
    }

    /// Reserves a region of `length` bytes for a stripe.
    pub(super) fn reserve(
        &mut self,
        volume: &str,
        size: u64,
        entry: Entry,
    ) -> Result<Entry, BackupError> {
        if self.entries.len() >= MAX_ENTRIES {
            return Err(BackupError::Refused(format!(
                "{volume} holds {MAX_ENTRIES} stripes, and its label has no room for more; remove \
                 backups with weir backup prune"
            )));
        }
        let free = self.free(size);
        let fitting = free.iter().find(|(_, length)| *length >= entry.length);
        let Some((offset, _)) = fitting else {
            let most = free.iter().map(|(_, length)| *length).max().unwrap_or(0);
            let incomplete = self.entries.iter().filter(|own| !own.is_complete).count();
            let left = match incomplete {
                0 => String::new(),
                n => format!(
                    " ({n} of its stripes are incomplete: weir backup prune --incomplete removes \
                     them)"
                ),
            };
            return Err(BackupError::Refused(format!(
                "no room on {volume}: a stripe needs {} in one piece, and {} are free{left}; remove \
                 backups with weir backup prune, or add targets",
                weir_units::Bytes::new(entry.length),
                weir_units::Bytes::new(most)
            )));
        };
        let entry = Entry { offset: *offset, ..entry };
        self.entries.push(entry);
        Ok(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(stripe: u8, length: u64) -> Entry {
        let id = BackupId::from_bytes([9; 16]);
        Entry { id, stripe, is_complete: true, offset: 0, length, created_unix_ms: 7 }
    }

    #[test]
    fn a_label_is_read_as_it_was_written_and_damage_is_seen() {
        let mut label = Label { sequence: 41, entries: Vec::new() };
        for stripe in 0..83 {
            label.reserve("v", 1 << 40, entry(stripe, 5000)).expect("room");
        }
        let full = label.reserve("v", 1 << 40, entry(0, 1)).expect_err("no room");
        assert!(full.to_string().contains("v holds 83 stripes"), "{full}");
        let slot = label.encode();
        assert_eq!(Label::parse(&slot).as_ref(), Some(&label));
        for at in 0..SLOT {
            let mut slot = slot;
            slot[at] ^= 1;
            assert_eq!(Label::parse(&slot), None, "byte {at}");
        }
        assert_eq!(Label::parse(&[0; SLOT]), None);
    }

    #[test]
    fn regions_do_not_overlap_and_gaps_are_used_again() {
        let mut label = Label::default();
        let size = 16 << 20;
        let first = label.reserve("v", size, entry(0, 5 << 20)).expect("room");
        let second = label.reserve("v", size, entry(1, (5 << 20) + 1)).expect("room");
        assert_eq!((first.offset, second.offset), (1 << 20, 6 << 20));
        let none = label.reserve("v", size, entry(2, 5 << 20)).expect_err("no room").to_string();
        let expect = "no room on v: a stripe needs 5 MiB in one piece, and 5116 KiB are free; \
                      remove backups with weir backup prune, or add targets";
        assert_eq!(none, expect);
        label.entries.remove(0);
        let again = label.reserve("v", size, entry(2, 5 << 20)).expect("room");
        assert_eq!(again.offset, 1 << 20);
    }
}
