//! Properties of reading labels and lists of blobs with any contents.

use super::blob::parse_list;
use crate::error::BackupError;
use crate::format::BackupId;
use crate::label::{Entry, LABEL, Label, SLOT, Scope, Slots, VolumeId};

/// The bytes of a slot that its checksum covers.
const COVERED: usize = SLOT - 32;

/// Reads bytes as the start of a raw volume. `is_repaired` makes the checksums right, so that what they
/// cover is looked at.
///
/// # Panics
/// If a promise is broken.
pub(crate) fn label(data: &[u8], is_repaired: bool) {
    let mut start = data.to_vec();
    start.resize(LABEL, 0);
    for slot in start.chunks_exact_mut(SLOT).filter(|_| is_repaired) {
        let sum = *blake3::hash(&slot[..COVERED]).as_bytes();
        slot[COVERED..].copy_from_slice(&sum);
    }
    let slots = Slots::parse(&start);
    let said = slots.check("v").err().map(|error| error.to_string()).or(slots.problem("v"));
    assert!(said.is_none_or(|text| text.contains("label of v")));
    let [first, last] = slots.order();
    assert!(first + last == 1, "a label goes to both slots");
    let Some(own) = slots.newest() else { return };
    let mut own = own.clone();
    let again = own.encode();
    assert_eq!(Label::parse(&again).as_ref(), Some(&own), "a label is read as it was written");
    for size in [2 << 20, 1 << 30, u64::MAX] {
        let wanted = Entry { length: 5000, ..entry(9, false) };
        let before = own.entries.clone();
        if let Ok(made) = own.reserve("v", size, wanted) {
            let end = made.offset.checked_add(made.length).filter(|end| *end <= size);
            assert!(made.offset >= LABEL as u64 && end.is_some(), "{made:?} is outside of {size}");
            let is_apart = |other: &Entry| {
                let other_end = other.offset.saturating_add(other.length);
                other.length == 0 || other_end <= made.offset || end <= Some(other.offset)
            };
            assert!(before.iter().all(is_apart), "{made:?} overlaps another region");
        }
    }
}

fn entry(stripe: u8, is_complete: bool) -> Entry {
    Entry {
        id: BackupId::from_bytes(*b"0123456789abcdef"),
        stripe,
        is_complete,
        writer: Scope::new(b"writer"),
        offset: 0,
        length: 4096,
        created_unix_ms: 1_700_000_000_000,
    }
}

/// Reads bytes as a page of a list of blobs.
///
/// # Panics
/// If a promise is broken.
pub(crate) fn blobs(text: &[u8]) {
    match parse_list(text) {
        Ok((all, marker)) => {
            let names = all.iter().map(|own| own.name.len()).sum::<usize>();
            assert!(names + marker.len() <= text.len(), "text that was not there");
        }
        Err(reason) => assert!(!reason.trim().is_empty(), "an error says nothing"),
    }
}

/// Makes starts of volumes: without stripes, with some, in the middle of a change, and damaged.
///
/// # Errors
/// When the system has no random bytes.
pub(crate) fn labels() -> Result<Vec<(&'static str, Vec<u8>)>, BackupError> {
    let mut label = Label { sequence: 7, volume: Some(VolumeId::fixed()), entries: Vec::new() };
    let empty = label.encode();
    for stripe in 0..3 {
        label.reserve("v", 1 << 30, entry(stripe, stripe < 2))?;
    }
    label.sequence += 1;
    let some = label.encode();
    let mut torn = some;
    torn[512..1024].fill(0xee);
    let mut damaged = some;
    damaged[100] ^= 1;
    Ok(vec![
        ("empty", [empty, empty].concat()),
        ("some", [some, some].concat()),
        ("between", [some, empty].concat()),
        ("torn", [torn, some].concat()),
        ("damaged", [some, damaged].concat()),
    ])
}
