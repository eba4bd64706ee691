//! The changes of a volume on a medium, while the volume is closed.
//!
//! ```text
//! "weir changes 1\n"   size: u64   length of the base's id: u32   id   leaves: u64
//! leaf: number u64, 512 words u64                        all little-endian
//! CRC-32 of all that: u32
//! ```
//!
//! The file is written when a volume is closed and removed, durably, before the first change
//! after that. So a crash leaves none, and one that is there is right.

use super::bitmap::{BLOCK, Bitmap, LEAF_BITS, WORDS, Words};
use crate::{Result, disk};
use std::fmt::Debug;
use std::path::PathBuf;

pub(crate) const FILE: &str = "changes";
const MAGIC: &[u8] = b"weir changes 1\n";
/// Longest record that is read: one of a PiB, all of it changed, has half of that.
pub(super) const MOST: u64 = 4 << 30;
const LEAF_LEN: u64 = 8 * (WORDS as u64 + 1);

/// The contents of a record.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) base: Option<String>,
    pub(super) changed: Bitmap,
}

impl Record {
    /// Changes behind the end are recorded too: what comes back there may differ from the base.
    pub(super) fn encode(base: Option<&str>, changed: &Bitmap, size: u64) -> Vec<u8> {
        let id = base.unwrap_or_default().as_bytes();
        let mut out = MAGIC.to_vec();
        out.extend(size.to_le_bytes());
        out.extend(u32::try_from(id.len()).unwrap_or(u32::MAX).to_le_bytes());
        out.extend(id);
        let (mut leaves, mut count) = (Vec::new(), 0_u64);
        if base.is_some() {
            changed.for_each_leaf(|number, words| {
                count += 1;
                leaves.extend(number.to_le_bytes());
                words.iter().for_each(|word| leaves.extend(word.to_le_bytes()));
            });
        }
        out.extend(count.to_le_bytes());
        out.extend(leaves);
        out.extend(crc32fast::hash(&out).to_le_bytes());
        out
    }

    /// Returns the record of a volume of `size`; `None` if it is damaged or another's.
    pub(super) fn decode(content: &[u8], size: u64) -> Option<Self> {
        let (content, sum) = content.split_last_chunk::<4>()?;
        if crc32fast::hash(content) != u32::from_le_bytes(*sum) {
            return None;
        }
        let mut rest = content.strip_prefix(MAGIC)?;
        if u64::from_le_bytes(take(&mut rest)?) != size {
            return None;
        }
        let len = usize::try_from(u32::from_le_bytes(take(&mut rest)?)).ok()?;
        let (id, after) = rest.split_at_checked(len)?;
        rest = after;
        let id = String::from_utf8(id.to_vec()).ok()?;
        let count = u64::from_le_bytes(take(&mut rest)?);
        if rest.len() as u64 != count.checked_mul(LEAF_LEN)? {
            return None;
        }
        let changed = Bitmap::default();
        while !rest.is_empty() {
            let number = u64::from_le_bytes(take(&mut rest)?);
            if number > u64::MAX / LEAF_BITS / BLOCK {
                return None;
            }
            let mut words: Words = [0; WORDS];
            for word in &mut words {
                *word = u64::from_le_bytes(take(&mut rest)?);
            }
            changed.add_leaf(number, &words);
        }
        Some(Self { base: (!id.is_empty()).then_some(id), changed })
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*first)
}

/// The medium of a record.
pub(crate) trait Home: Debug + Send + Sync {
    /// Returns the record, if there is one; of a longer one, only this number of bytes.
    fn load(&self, most: u64) -> Result<Option<Vec<u8>>>;
    /// Puts a record in place, durably; a crash leaves it, or none.
    fn save(&self, record: &[u8]) -> Result<()>;
    /// Removes the record: when it returns, no crash brings it back.
    fn forget(&self) -> Result<()>;
}

/// A record in a file of a volume's folder.
#[derive(Debug)]
pub(crate) struct Folder(pub(crate) PathBuf);

impl Home for Folder {
    fn load(&self, most: u64) -> Result<Option<Vec<u8>>> {
        disk::read_small(&self.0.join(FILE), most)
    }

    fn save(&self, record: &[u8]) -> Result<()> {
        disk::replace_file(&self.0, FILE, record)
    }

    fn forget(&self) -> Result<()> {
        disk::remove_file(&self.0.join(FILE))?;
        disk::sync_dir(&self.0)
    }
}
