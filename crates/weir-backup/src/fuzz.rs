//! Properties of reading stripes with any contents: they are read as far as they
//! are sound, or refused with words; nothing is written outside of a source; and a backup that is
//! called sound is restored whole.

use crate::assemble::{Assembly, StripeInput};
use crate::error::BackupError;
use crate::format::{BackupId, Encryption, Identity, Kind};
use crate::key::Key;
use crate::memory::{self, MemorySource};
use crate::restore::{RestoreOptions, Target, TargetIo, restore};
use crate::target::promises;
use crate::verify::{Verified, Watch, verify};
use std::sync::Arc;

/// A bit of the first byte: checksums are made right, so that what they cover is looked at.
const REPAIR: u8 = 0x80;

/// Reads `data` as stripes: the first byte says how many, and the rest is cut into equal parts.
///
/// # Panics
/// If a promise is broken.
pub fn stripe_bytes(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let count = usize::from(first % 4) + 1;
    let length = rest.len() / count;
    let mut stripes: Vec<Vec<u8>> = match length {
        0 => vec![rest.to_vec()],
        _ => rest.chunks_exact(length).take(count).map(<[u8]>::to_vec).collect(),
    };
    if first & REPAIR != 0 {
        stripes.iter_mut().for_each(|stripe| repair(stripe));
    }
    let verified = match verify(inputs(&stripes), None, None, &Watch::default()) {
        Ok(verified) => verified,
        Err(error) => return said(&error),
    };
    for damage in &verified.counts.damage {
        assert!(!damage.to_string().is_empty() && !damage.kind().is_empty());
    }
    assert!(!verified.is_sound() || verified.is_restorable(), "sound, and not restorable");
    let assembly = Assembly::new(inputs(&stripes), None, None);
    let mut assembly = assembly.unwrap_or_else(|error| panic!("it was read before: {error}"));
    if assembly.identity.encryption.is_some() {
        assembly.key = Some(Arc::new(key()));
    }
    put_back(&verified, assembly);
}

/// Reads `data` as the start of a raw volume: a flag for repaired checksums, and two slots.
///
/// # Panics
/// If a promise is broken.
pub fn label_bytes(data: &[u8]) {
    if let Some((first, rest)) = data.split_first() {
        promises::label(rest, first & REPAIR != 0);
    }
}

/// Reads `data` as a page of a list of blobs.
///
/// # Panics
/// If a promise is broken.
pub fn blob_list_bytes(data: &[u8]) {
    promises::blobs(data);
}

/// Restores what is sound to targets that only check.
fn put_back(verified: &Verified, mut assembly: Assembly) {
    let Some(manifest) = assembly.manifest.clone() else { return };
    let sources = manifest.sources.iter().take(1 + usize::from(u16::MAX));
    let counts: Vec<Bounds> = sources.map(|own| Bounds(own.size)).collect();
    let targets: Vec<Option<&dyn Target>> =
        counts.iter().map(|own| Some(own as &dyn Target)).collect();
    let options = RestoreOptions { is_damage_skipped: true, is_proved: false };
    match restore(&mut assembly, None, &targets, options, &Watch::default()) {
        Ok(all) => {
            let restored = all.iter().map(|own| own.raw_bytes).fold(0, u64::saturating_add);
            if verified.is_sound() && verified.is_decrypted {
                assert_eq!(restored, manifest.raw_bytes(), "a sound backup is restored whole");
            }
        }
        Err(error) => said(&error),
    }
}

fn said(error: &BackupError) {
    assert!(!error.to_string().trim().is_empty(), "{error:?} says nothing");
}

fn inputs(stripes: &[Vec<u8>]) -> Vec<StripeInput> {
    let input = |(index, bytes): (u8, &Vec<u8>)| StripeInput {
        name: format!("stripe-{index}"),
        named: Some(index),
        bytes: Box::new(bytes.clone()),
    };
    (0..).zip(stripes).map(input).collect()
}

/// Makes the checksums of headers, frames and footers right.
fn repair(stripe: &mut [u8]) {
    let mut at = 0;
    while at + 160 <= stripe.len() {
        let (block, covered) = match stripe.get(at..at + 8) {
            Some(b"WEIRFRM1") => (160, 128),
            Some(b"WEIRBAK1" | b"WEIREND1") => (512, 480),
            _ => {
                // The copy of a frame's header stands before a page.
                at += if at % 512 == 352 { 160 } else { 352 };
                continue;
            }
        };
        if let Some(own) = stripe.get_mut(at..at + block) {
            let sum = *blake3::hash(&own[..covered]).as_bytes();
            own[covered..].copy_from_slice(&sum);
        }
        at += if block == 512 {
            512
        } else if at % 512 == 352 {
            160
        } else {
            352
        };
    }
}

/// The key of encrypted inputs.
fn key() -> Key {
    Key::from_master(&[9; 32])
}

/// Makes inputs: small backups of each kind, as [`stripe_bytes`] takes them.
///
/// # Errors
/// When one cannot be written.
pub fn seeds() -> Result<Vec<(&'static str, Vec<u8>)>, BackupError> {
    let text: Vec<u8> = b"the quick brown fox ".repeat(60);
    let sources = |length: usize| {
        let ranges = vec![(4096, text[..length].to_vec()), (65_536, vec![0; length])];
        [MemorySource { name: "data".to_owned(), size: 1 << 20, ranges }]
    };
    let mut all = Vec::new();
    let kinds: [(&str, u8, Option<i32>, bool); 5] = [
        ("plain-1", 1, None, false),
        ("plain-3", 3, None, false),
        ("zstd-2", 2, Some(1), false),
        ("encrypted-2", 2, None, true),
        ("encrypted-zstd-1", 1, Some(1), true),
    ];
    for (name, stripes, compression, is_encrypted) in kinds {
        let key = is_encrypted.then(|| Arc::new(key()));
        let encryption = key.as_ref().map(|key| Encryption {
            salt: [1; 16],
            nonce_prefix: [2; 15],
            check: *key.check(),
        });
        let identity = Identity {
            id: BackupId::from_bytes(*b"0123456789abcdef"),
            name: "seed".to_owned(),
            kind: Kind::Full,
            base: None,
            stripes,
            created_unix_ms: 1_700_000_000_000,
            encryption,
        };
        // Enough bytes to make all stripes the same length.
        let length = usize::from(stripes) * 300;
        let files = memory::write(&identity, &sources(length), 300, compression, key.as_ref())?;
        for (prefix, is_repaired) in [(0, false), (REPAIR, true)] {
            let mut data = vec![prefix | (stripes - 1)];
            files.iter().for_each(|file| data.extend_from_slice(file));
            if !is_repaired {
                all.push((name, data));
            } else if name == "plain-3" {
                all.push(("repaired-plain-3", data));
            } else if name == "encrypted-zstd-1" {
                all.push(("repaired-encrypted-zstd-1", data));
            }
        }
    }
    Ok(all)
}

/// Makes inputs, as [`label_bytes`] takes them.
///
/// # Errors
/// When one cannot be made.
pub fn label_seeds() -> Result<Vec<(&'static str, Vec<u8>)>, BackupError> {
    let with = |(name, start): (&'static str, Vec<u8>)| (name, [vec![REPAIR], start].concat());
    Ok(promises::labels()?.into_iter().map(with).collect())
}

/// A target of this size in bytes, which only checks.
#[derive(Clone, Copy)]
struct Bounds(u64);

impl Target for Bounds {
    fn name(&self) -> &'static str {
        "bounds"
    }

    fn size(&self) -> u64 {
        self.0
    }

    fn is_empty(&self, _: &Watch) -> Result<bool, BackupError> {
        Ok(true)
    }

    fn clear(&self, _: &Watch) -> Result<(), BackupError> {
        Ok(())
    }

    fn open(&self, _: usize) -> Result<Box<dyn TargetIo>, BackupError> {
        Ok(Box::new(*self))
    }

    fn publish(&self) -> Result<(), BackupError> {
        Ok(())
    }
}

impl TargetIo for Bounds {
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), BackupError> {
        self.write_zeros(offset, data.len() as u64)
    }

    fn write_zeros(&mut self, offset: u64, length: u64) -> Result<(), BackupError> {
        let end = offset.checked_add(length);
        assert!(end.is_some_and(|end| end <= self.0), "{offset}+{length} of {}", self.0);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), BackupError> {
        Ok(())
    }

    fn read(&mut self, _: u64, _: &mut [u8]) -> Result<(), BackupError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_are_sound_backups() {
        let all = seeds().expect("seeds");
        assert_eq!(all.len(), 7);
        for (name, data) in all {
            let count = usize::from(data[0] % 4) + 1;
            let stripes: Vec<Vec<u8>> =
                data[1..].chunks((data.len() - 1) / count).map(<[u8]>::to_vec).collect();
            assert_eq!(stripes.len(), count, "{name}");
            let verified = verify(inputs(&stripes), None, None, &Watch::default()).expect("one");
            assert!(verified.is_sound(), "{name}: {:?}", verified.counts.damage);
            // Checksums that are right already stay as they are.
            let mut repaired = stripes.clone();
            repaired.iter_mut().for_each(|stripe| repair(stripe));
            assert!(repaired == stripes, "{name}");
            stripe_bytes(&data);
        }
    }

    #[test]
    fn the_seeds_of_labels_keep_their_promises() {
        let all = label_seeds().expect("seeds");
        assert_eq!(all.len(), 5);
        for (_, mut data) in all {
            label_bytes(&data);
            for at in (0..data.len()).step_by(7) {
                data[at] ^= 0x41;
                label_bytes(&data);
            }
            data[0] = 0;
            label_bytes(&data);
        }
    }

    #[test]
    fn any_short_input_is_read_or_refused() {
        for length in 0..600 {
            stripe_bytes(&vec![0x83; length]);
            label_bytes(&vec![0x83; length]);
            blob_list_bytes(&vec![b'<'; length]);
        }
    }
}
