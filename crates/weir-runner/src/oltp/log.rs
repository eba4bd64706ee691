//! The bytes of the log file: blocks, the records in them, and checkpoints.
//!
//! ```text
//! block       WLOG  crc  lsn  bytes  first  0      records ...  zeros up to a sector
//!             4     4    8    4      4      8
//! record      WREC  pages  length  number  changes    page  0  version ...  zeros
//!             4     4      8       8       8          4     4  8
//! checkpoint  WEIRCKPT  crc  files  identity  sequence  lsn  commit  changes  new ...  zeros
//!             8         4    4      8         8         8    8       8        4
//! ```
//!
//! `bytes` are those of the records in the block; `first` of them belong to a record that
//! an earlier block began. A record is padded to the length that the description says.
//! It holds the new version of each page, so redoing it reads nothing and repairs a page
//! that is torn. A checkpoint has how many new pages each data file has. Checksums are CRC-32 of all that is before the zeros but themselves;
//! numbers are little-endian.

use super::page::{u32_at, u64_at};
use std::collections::VecDeque;
use weir_oltp::log::{BLOCK_HEADER, CHECKPOINT_SLOT, RECORD_HEADER, RECORD_PAGE};
use weir_oltp::{Commit, RedoPoint};

const BLOCK_MAGIC: &[u8; 4] = b"WLOG";
const RECORD_MAGIC: &[u8; 4] = b"WREC";
const CHECKPOINT_MAGIC: &[u8; 8] = b"WEIRCKPT";
pub(super) const HEADER: usize = 32;
const RECORD: usize = 32;
const RECORD_STEP: usize = 16;
pub(super) const SLOT: usize = 4096;
/// Bytes of a checkpoint before what it says of each data file.
const CHECKPOINT: usize = 56;
// As the state machine has them, which lays the file out.
const _: () = assert!(HEADER as u64 == BLOCK_HEADER && RECORD as u64 == RECORD_HEADER);
const _: () = assert!(RECORD_STEP as u64 == RECORD_PAGE && SLOT as u64 == CHECKPOINT_SLOT);

/// Records that wait to be put into blocks.
#[derive(Debug, Default)]
pub(super) struct Records {
    bytes: VecDeque<u8>,
    /// Bytes that were put into blocks, of all there ever were.
    taken: u64,
    /// Starts of the records of which no block has any part.
    starts: VecDeque<u64>,
}

impl Records {
    /// Appends the record of a commit; `versions` are those of its pages after it.
    pub(super) fn push(&mut self, commit: &Commit, versions: impl Iterator<Item = u64>) {
        let start = self.taken + self.bytes.len() as u64;
        self.starts.push_back(start);
        self.bytes.extend(RECORD_MAGIC);
        let pages = u32::try_from(commit.pages.len()).unwrap_or(u32::MAX);
        self.bytes.extend(pages.to_le_bytes());
        for number in [commit.bytes, commit.number, commit.changes] {
            self.bytes.extend(number.to_le_bytes());
        }
        for (page, version) in commit.pages.iter().zip(versions) {
            self.bytes.extend(page.to_le_bytes());
            self.bytes.extend([0; 4]);
            self.bytes.extend(version.to_le_bytes());
        }
        let end = start + commit.bytes;
        let padding = end.checked_sub(self.taken + self.bytes.len() as u64);
        let padding = padding.unwrap_or_else(|| panic!("{} bytes do not hold it", commit.bytes));
        self.bytes.extend(std::iter::repeat_n(0, index(padding)));
    }

    /// Appends the next block, of `bytes` of records.
    pub(super) fn block(&mut self, lsn: u64, bytes: u64, len: u64, out: &mut Vec<u8>) {
        let end = self.taken + bytes;
        let first = self.starts.front().map_or(bytes, |start| (start - self.taken).min(bytes));
        while self.starts.front().is_some_and(|start| *start < end) {
            self.starts.pop_front();
        }
        self.taken = end;
        let start = out.len();
        out.extend_from_slice(BLOCK_MAGIC);
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&lsn.to_le_bytes());
        for number in [bytes, first] {
            out.extend_from_slice(&number.to_le_bytes()[..4]);
        }
        out.extend_from_slice(&[0; 8]);
        out.extend(self.bytes.drain(..index(bytes)));
        let crc = checksum(&out[start..], 4);
        out[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
        out.resize(start + index(len), 0);
    }
}

/// The header of a log block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockHeader {
    pub(super) bytes: usize,
    pub(super) first: usize,
}

/// The header of the block with this LSN.
pub(super) fn block_header(lsn: u64, bytes: &[u8]) -> Option<BlockHeader> {
    if bytes.len() < HEADER || bytes[..4] != *BLOCK_MAGIC || u64_at(bytes, 8) != lsn {
        return None;
    }
    let header =
        BlockHeader { bytes: u32_at(bytes, 16) as usize, first: u32_at(bytes, 20) as usize };
    (header.first <= header.bytes).then_some(header)
}

/// The records of a whole block, if it is as it was written.
pub(super) fn block_records(header: BlockHeader, bytes: &[u8]) -> Option<&[u8]> {
    let block = bytes.get(..HEADER + header.bytes)?;
    (u32_at(block, 4) == checksum(block, 4)).then(|| &block[HEADER..])
}

/// A record that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) number: u64,
    pub(super) changes: u64,
    /// Pages and their versions after it.
    pub(super) pages: Vec<(u32, u64)>,
}

/// The record at the beginning of `bytes` and its length: nothing if it is not whole, an
/// error if it is none.
pub(super) fn record(bytes: &[u8]) -> Result<Option<(Record, usize)>, ()> {
    if bytes.len() < RECORD {
        return Ok(None);
    }
    let (pages, length) = (u32_at(bytes, 4) as usize, index(u64_at(bytes, 8)));
    if bytes[..4] != *RECORD_MAGIC || length < RECORD + RECORD_STEP * pages {
        return Err(());
    }
    if bytes.len() < length {
        return Ok(None);
    }
    let entries = bytes[RECORD..RECORD + RECORD_STEP * pages].chunks_exact(RECORD_STEP);
    let pages = entries.map(|entry| (u32_at(entry, 0), u64_at(entry, 8))).collect();
    let record = Record { number: u64_at(bytes, 16), changes: u64_at(bytes, 24), pages };
    Ok(Some((record, length)))
}

/// Data files of which a checkpoint has room.
pub(super) const MOST_FILES: usize = (SLOT - CHECKPOINT) / 4;

/// Appends a checkpoint of the database with this identity. `new` are the numbers of new pages of
/// its data files.
pub(super) fn checkpoint(identity: u64, redo: &RedoPoint, new: &[u32], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(CHECKPOINT_MAGIC);
    out.extend_from_slice(&[0; 4]);
    let files = u32::try_from(new.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&files.to_le_bytes());
    for number in [identity, redo.sequence, redo.lsn, redo.commit, redo.changes] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    new.iter().for_each(|pages| out.extend_from_slice(&pages.to_le_bytes()));
    let crc = checksum(&out[start..], 8);
    out[start + 8..start + 12].copy_from_slice(&crc.to_le_bytes());
    out.resize(start + SLOT, 0);
}

/// The contents of a checkpoint slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Slot {
    /// Nothing was ever written there.
    Empty,
    /// A write of it was cut off, or it is damaged.
    Torn,
    /// A checkpoint of a database with this identity, and the new pages of its data files.
    Checkpoint(u64, RedoPoint, Vec<u32>),
}

/// Reads a slot.
pub(super) fn slot(bytes: &[u8]) -> Slot {
    if bytes.iter().all(|byte| *byte == 0) {
        return Slot::Empty;
    }
    let files = u32_at(bytes, 12) as usize;
    let end = CHECKPOINT + 4 * files.min(MOST_FILES);
    if bytes[..8] != *CHECKPOINT_MAGIC || u32_at(bytes, 8) != checksum(&bytes[..end], 8) {
        return Slot::Torn;
    }
    let [identity, sequence, lsn, commit, changes] =
        [16, 24, 32, 40, 48].map(|at| u64_at(bytes, at));
    let new = (CHECKPOINT..end).step_by(4).map(|at| u32_at(bytes, at)).collect();
    Slot::Checkpoint(identity, RedoPoint { sequence, lsn, commit, changes }, new)
}

/// The checksum of everything but the checksum, which stands at `at`.
fn checksum(bytes: &[u8], at: usize) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..at]);
    hasher.update(&bytes[at + 4..]);
    hasher.finalize()
}

/// A length in memory; the machine has 64 bits.
fn index(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(number: u64, bytes: u64, pages: &[u32]) -> Commit {
        Commit { number, changes: number * 10, bytes, pages: pages.to_vec() }
    }

    /// Two records in blocks of these lengths, and what is read from them.
    fn through(blocks: &[u64]) -> (Vec<Record>, Vec<usize>) {
        let mut records = Records::default();
        records.push(&commit(7, 100, &[4, 5]), [1, 9].into_iter());
        records.push(&commit(8, 300, &[4]), [2].into_iter());
        let (mut stream, mut firsts, mut lsn) = (Vec::new(), Vec::new(), 4096);
        for bytes in blocks {
            let mut block = Vec::new();
            let len = (bytes + BLOCK_HEADER).next_multiple_of(512);
            records.block(lsn, *bytes, len, &mut block);
            assert_eq!(block.len() as u64, len);
            assert_eq!(block_header(lsn + 512, &block), None);
            let header = block_header(lsn, &block).expect("a block");
            stream.extend_from_slice(block_records(header, &block).expect("a whole block"));
            firsts.push(header.first);
            block[HEADER + 3] ^= 1;
            assert_eq!(block_records(header, &block), None);
            lsn += len;
        }
        let mut read = Vec::new();
        while let Some((next, length)) = record(&stream).expect("records") {
            stream.drain(..length);
            read.push(next);
        }
        (read, firsts)
    }

    #[test]
    fn records_are_read_from_any_blocks() {
        let first = Record { number: 7, changes: 70, pages: vec![(4, 1), (5, 9)] };
        let second = Record { number: 8, changes: 80, pages: vec![(4, 2)] };
        let both = vec![first.clone(), second];
        assert_eq!(through(&[400]), (both.clone(), vec![0]));
        assert_eq!(through(&[100, 300]), (both.clone(), vec![0, 0]));
        assert_eq!(through(&[60, 200, 140]), (both, vec![0, 40, 140]));
        assert_eq!(through(&[60, 200]), (vec![first], vec![0, 40]));
    }

    #[test]
    fn invalid_records_differ_from_incomplete_ones() {
        assert_eq!(record(&[0; 31]), Ok(None));
        assert_eq!(record(&[0; 64]), Err(()));
    }

    #[test]
    fn a_checkpoint_is_whole_or_torn() {
        let redo = RedoPoint { sequence: 3, lsn: 5120, commit: 9, changes: 40 };
        let mut bytes = Vec::new();
        checkpoint(77, &redo, &[3, 0, 9], &mut bytes);
        let whole = Slot::Checkpoint(77, redo, vec![3, 0, 9]);
        assert_eq!((slot(&bytes), bytes.len()), (whole, SLOT));
        assert_eq!(slot(&[0; SLOT]), Slot::Empty);
        for at in [9, 12, 40, 64] {
            let mut torn = bytes.clone();
            torn[at] ^= 1;
            assert_eq!(slot(&torn), Slot::Torn, "{at}");
        }
    }
}
