//! The label of a raw volume: which stripes of which backups lie where.
//!
//! ```text
//! |  slot 0  |  slot 1  |  free  | stripe | stripe | free ... |
//! 0        4096       8192     1 MiB
//! ```
//! Two slots of 4 KiB hold the same label. A new one goes to one slot and, once it is durable there, to
//! the other: a write that is torn leaves the old label, and a slot that is damaged later leaves the
//! present one. A stripe's region is reserved before its first byte is written, and the entry says that
//! it is incomplete until it is complete and durable.

use crate::error::BackupError;
use crate::format::BackupId;
use crate::random::{RandomError, fill};
use std::fmt;

/// The length of a slot.
pub(crate) const SLOT: usize = 4096;
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
const VOLUME_AT: usize = 24;
const ENTRIES_AT: usize = 64;
const ENTRY: usize = 48;
const CHECKSUM_AT: usize = SLOT - 32;

/// The random number of a volume, which it keeps as long as it has a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VolumeId([u8; 16]);

impl VolumeId {
    /// Draws a number.
    pub(crate) fn fresh() -> Result<Self, RandomError> {
        let mut bytes = [0; 16];
        fill(&mut bytes)?;
        // Zeros say that there is none.
        bytes[0] |= 1;
        Ok(Self(bytes))
    }

    /// Returns the number of volumes in inputs for fuzzing, which are the same each time.
    pub(crate) const fn fixed() -> Self {
        Self([7; 16])
    }
}

impl fmt::Display for VolumeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The scope in which locks are seen, as entries note it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scope([u8; 6]);

impl Scope {
    /// Takes the first bytes of a hash; `None` for zeros, which say that there is none.
    pub(crate) fn new(hash: &[u8]) -> Option<Self> {
        let bytes: [u8; 6] = hash.get(..6)?.try_into().ok()?;
        (bytes != [0; 6]).then_some(Self(bytes))
    }
}

/// A stripe on a raw volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) id: BackupId,
    /// The stripe, from 0.
    pub(crate) stripe: u8,
    pub(crate) is_complete: bool,
    /// The scope in which the lock of its writer is seen, if that is known.
    pub(crate) writer: Option<Scope>,
    /// Its region: its first byte, and its length, which is that of the stripe once complete.
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) created_unix_ms: u64,
}

/// A label.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) sequence: u64,
    /// The number of the volume, once it has one.
    pub(crate) volume: Option<VolumeId>,
    pub(crate) entries: Vec<Entry>,
}

/// The two slots of a volume as they were read.
#[derive(Debug, Clone)]
pub(crate) struct Slots {
    labels: [Option<Label>; 2],
    states: [SlotState; 2],
}

/// A slot that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotState {
    Sound,
    /// All zeros.
    Blank,
    /// A label that does not match its checksum, or of another version.
    Damaged,
    /// Something else.
    Foreign,
}

impl SlotState {
    fn judge(slot: &[u8], label: Option<&Label>) -> Self {
        match label {
            Some(_) => Self::Sound,
            None if slot.iter().all(|byte| *byte == 0) => Self::Blank,
            None if slot.starts_with(MAGIC) => Self::Damaged,
            None => Self::Foreign,
        }
    }
}

impl Slots {
    /// Reads the start of a volume: two slots, or less of a volume that is smaller.
    pub(crate) fn parse(start: &[u8]) -> Self {
        let slot = |at: usize| start.get(at * SLOT..(at + 1) * SLOT).unwrap_or_default();
        let label = |at: usize| slot(at).try_into().ok().and_then(Label::parse);
        let labels = [label(0), label(1)];
        let states = [0, 1].map(|at| SlotState::judge(slot(at), labels[at].as_ref()));
        Self { labels, states }
    }

    /// Returns the newest sound label.
    pub(crate) fn newest(&self) -> Option<&Label> {
        self.labels.iter().flatten().max_by_key(|label| label.sequence)
    }

    /// Returns the order in which a new label goes to the slots: the newest one is replaced last.
    pub(crate) fn order(&self) -> [u64; 2] {
        let sequence = |at: usize| self.labels[at].as_ref().map(|label| label.sequence);
        if sequence(1) < sequence(0) { [1, 0] } else { [0, 1] }
    }

    /// Returns whether no slot can be read, though there is a label: damaged, or of another version.
    fn is_unreadable(&self) -> bool {
        self.newest().is_none() && self.states.contains(&SlotState::Damaged)
    }

    /// Returns an error for a volume with a label that cannot be read.
    pub(crate) fn check(&self, volume: &str) -> Result<(), BackupError> {
        if !self.is_unreadable() {
            return Ok(());
        }
        Err(BackupError::Unusable(format!(
            "the label of {volume} is damaged in both of its places, or of another version of weir: the \
             backups on it cannot be told from free space, and nothing is written there"
        )))
    }

    /// Returns what is wrong with one slot beside a sound one.
    pub(crate) fn problem(&self, volume: &str) -> Option<String> {
        let newest = self.newest()?;
        let other = self.states.iter().find(|state| **state != SlotState::Sound)?;
        // The second slot of the first label was not written yet.
        if *other == SlotState::Blank && newest.sequence <= 1 {
            return None;
        }
        Some(format!(
            "one of the two copies of the label of {volume} is damaged; the other one is used, and may \
             be older by a change that was interrupted; the next backup to {volume} writes both again"
        ))
    }
}

/// Returns whether a volume that starts with these bytes may hold backups: its label lists some, or
/// cannot be read.
pub(crate) fn may_list_backups(start: &[u8]) -> bool {
    let slots = Slots::parse(start);
    slots.is_unreadable() || slots.newest().is_some_and(|label| !label.entries.is_empty())
}

/// Returns whether a volume that starts with these bytes has a label, also one that cannot be read.
pub(crate) fn has_label(start: &[u8]) -> bool {
    let slots = Slots::parse(start);
    slots.is_unreadable() || slots.newest().is_some()
}

impl Label {
    /// Reads a slot; `None` if it is no sound label.
    pub(crate) fn parse(slot: &[u8; SLOT]) -> Option<Self> {
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
                writer: Scope::new(&slot[at + 18..at + 24]),
                offset: number(at + 24),
                length: number(at + 32),
                created_unix_ms: number(at + 40),
            }
        };
        let mut volume = [0; 16];
        volume.copy_from_slice(&slot[VOLUME_AT..VOLUME_AT + 16]);
        Some(Self {
            sequence: number(16),
            volume: (volume != [0; 16]).then_some(VolumeId(volume)),
            entries: (0..count).map(entry).collect(),
        })
    }

    /// Writes the label.
    pub(crate) fn encode(&self) -> [u8; SLOT] {
        let mut slot = [0; SLOT];
        let mut put = |at: usize, bytes: &[u8]| slot[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(10, &u16::try_from(self.entries.len()).unwrap_or(u16::MAX).to_le_bytes());
        put(16, &self.sequence.to_le_bytes());
        put(VOLUME_AT, &self.volume.map_or([0; 16], |volume| volume.0));
        for (at, own) in self.entries.iter().enumerate() {
            let at = ENTRIES_AT + at * ENTRY;
            put(at, own.id.as_bytes());
            put(at + 16, &[own.stripe, u8::from(own.is_complete)]);
            put(at + 18, &own.writer.map_or([0; 6], |writer| writer.0));
            put(at + 24, &own.offset.to_le_bytes());
            put(at + 32, &own.length.to_le_bytes());
            put(at + 40, &own.created_unix_ms.to_le_bytes());
        }
        let checksum = blake3::hash(&slot[..CHECKSUM_AT]);
        slot[CHECKSUM_AT..].copy_from_slice(checksum.as_bytes());
        slot
    }

    /// Removes the stripes whose writers have ended before they were complete. To be called by the
    /// holder of the volume's lock: nobody else within its scope writes there.
    pub(crate) fn remove_abandoned(&mut self, scope: Option<Scope>) {
        self.entries.retain(|own| own.is_complete || own.writer.is_none() || own.writer != scope);
    }

    /// Returns the free regions of a volume of `size` bytes, in their order.
    pub(crate) fn free(&self, size: u64) -> Vec<(u64, u64)> {
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
    pub(crate) fn reserve(
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
            return Err(BackupError::NoRoom(format!(
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
        let writer = Scope::new(&[3; 6]);
        Entry { id, stripe, is_complete: true, writer, offset: 0, length, created_unix_ms: 7 }
    }

    #[test]
    fn a_label_is_read_as_it_was_written_and_damage_is_seen() {
        let volume = Some(VolumeId::fresh().expect("random bytes"));
        let mut label = Label { sequence: 41, volume, entries: Vec::new() };
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

    fn slots(first: &[u8; SLOT], second: &[u8; SLOT]) -> Slots {
        Slots::parse(&[*first, *second].concat())
    }

    #[test]
    fn a_damaged_slot_is_named_and_its_copy_used() {
        let label = |sequence| Label { sequence, ..Label::default() };
        let (old, new) = (label(6).encode(), label(7).encode());
        let mut torn = new;
        torn[40] ^= 1;
        #[track_caller]
        fn check(own: &Slots, sequence: u64, first: u64, is_named: bool) {
            assert_eq!(own.newest().map(|label| label.sequence), Some(sequence));
            assert_eq!(own.order()[0], first);
            let problem = own.problem("v");
            assert_eq!(problem.is_some(), is_named, "{problem:?}");
            assert!(
                problem.is_none_or(|text| text.contains("copies of the label of v is damaged"))
            );
            own.check("v").expect("a label");
        }
        check(&slots(&new, &new), 7, 0, false);
        // Between the two writes.
        check(&slots(&new, &old), 7, 1, false);
        check(&slots(&old, &new), 7, 0, false);
        check(&slots(&torn, &new), 7, 0, true);
        check(&slots(&new, &torn), 7, 1, true);
        check(&slots(&torn, &old), 6, 0, true);
        check(&slots(&new, &[0; SLOT]), 7, 1, true);
        check(&slots(&label(1).encode(), &[0; SLOT]), 1, 1, false);
        let none = slots(&torn, &torn).check("v").expect_err("no label").to_string();
        assert!(none.starts_with("the label of v is damaged in both"), "{none}");
        slots(&[0; SLOT], &[0; SLOT]).check("v").expect("an empty volume");
    }

    #[test]
    fn only_entries_of_ended_writers_are_abandoned() {
        let (own, other) = (Scope::new(&[3; 6]), Scope::new(&[4; 6]));
        let mut label = Label::default();
        for (stripe, is_complete, writer) in
            [(0, true, own), (1, false, own), (2, false, other), (3, false, None)]
        {
            label.entries.push(Entry { is_complete, writer, ..entry(stripe, 1) });
        }
        let left = |scope| {
            let mut label = label.clone();
            label.remove_abandoned(scope);
            label.entries.iter().map(|own| own.stripe).collect::<Vec<_>>()
        };
        assert_eq!(left(own), [0, 2, 3]);
        assert_eq!(left(None), [0, 1, 2, 3]);
    }
}
