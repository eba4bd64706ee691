//! The bytes of a data page.
//!
//! A page contains its own address, so lost, torn and misplaced pages are found. A transaction
//! changes its version and its last transaction; the rest is derived from these. The buffer pool
//! therefore keeps 16 bytes per page, and a page is generated when it is written. A page of zeros
//! was never written and has version 0.
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `WEIRPAGE` |
//! | 8..12 | data file, counted as the description has them |
//! | 12..16 | CRC-32 of all other bytes |
//! | 16..24 | page of the file |
//! | 24..32 | version: how often it was changed |
//! | 32..40 | the commit that changed it last |
//! | 40..8192 | words derived from the above |
//!
//! Numbers are little-endian.

use weir_oltp::model::PAGE;
use weir_random::Rng;

/// Bytes of a page.
pub(super) const SIZE: usize = 8192;
const _: () = assert!(SIZE as u64 == PAGE);
const MAGIC: &[u8; 8] = b"WEIRPAGE";
const BODY: usize = 40;

/// The address of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageId {
    /// The data file, by its position in the description.
    pub(super) file: u32,
    /// Page of the file.
    pub(super) page: u64,
}

/// The contents of a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct State {
    /// Number of changes.
    pub(super) version: u64,
    /// The commit that changed it last.
    pub(super) commit: u64,
}

/// A difference between a page and the bytes that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Bad {
    /// Neither a page nor zeros, or torn.
    #[error("it is torn or damaged: its checksum is {found:08x}, its bytes have {expect:08x}")]
    Checksum { found: u32, expect: u32 },
    /// Another page.
    #[error("it is page {page} of data file {file}: a write or a read went to the wrong place")]
    Misplaced { file: u32, page: u64 },
}

/// Appends a page.
pub(super) fn encode(id: PageId, state: State, out: &mut Vec<u8>) {
    let start = out.len();
    if state == State::default() {
        out.resize(start + SIZE, 0);
        return;
    }
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&id.file.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    for number in [id.page, state.version, state.commit] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    let mut seed = id.page ^ u64::from(id.file).rotate_left(48) ^ state.version.rotate_left(24);
    seed ^= state.commit.rotate_left(40);
    out.resize(start + SIZE, 0);
    Rng::from_state(seed).fill(&mut out[start + BODY..]);
    let crc = checksum(&out[start..]);
    out[start + 12..start + 16].copy_from_slice(&crc.to_le_bytes());
}

/// Decodes a page, and checks its checksum and its address.
pub(super) fn decode(id: PageId, bytes: &[u8]) -> Result<State, Bad> {
    if bytes.iter().all(|byte| *byte == 0) {
        return Ok(State::default());
    }
    let (found, expect) = (u32_at(bytes, 12), checksum(bytes));
    if found != expect || bytes[..8] != *MAGIC {
        return Err(Bad::Checksum { found, expect });
    }
    let (file, page) = (u32_at(bytes, 8), u64_at(bytes, 16));
    if (file, page) != (id.file, id.page) {
        return Err(Bad::Misplaced { file, page });
    }
    Ok(State { version: u64_at(bytes, 24), commit: u64_at(bytes, 32) })
}

fn checksum(page: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&page[..12]);
    hasher.update(&page[16..]);
    hasher.finalize()
}

/// Reads a little-endian number.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

/// Reads a little-endian number.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: PageId = PageId { file: 2, page: 77 };
    const STATE: State = State { version: 3, commit: 900 };

    fn page(id: PageId, state: State) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(id, state, &mut bytes);
        assert_eq!(bytes.len(), SIZE);
        bytes
    }

    #[test]
    fn a_page_says_what_it_holds() {
        assert_eq!(decode(ID, &page(ID, STATE)), Ok(STATE));
        assert_eq!(decode(ID, &[0; SIZE]), Ok(State::default()));
        assert_eq!(page(ID, State::default()), [0; SIZE]);
    }

    #[test]
    fn every_flipped_bit_and_every_tear_is_found() {
        let whole = page(ID, STATE);
        let old = page(ID, State { version: 2, commit: 800 });
        for at in (0..SIZE).step_by(13).chain(0..BODY) {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << (at % 8);
            assert!(matches!(decode(ID, &flipped), Err(Bad::Checksum { .. })), "byte {at}");
        }
        for tear in [512, 4096, 7680] {
            for rest in [&old, &vec![0; SIZE]] {
                let torn = [&whole[..tear], &rest[tear..]].concat();
                assert!(matches!(decode(ID, &torn), Err(Bad::Checksum { .. })), "at {tear}");
            }
        }
    }

    #[test]
    fn a_page_of_another_place_is_found() {
        let other = PageId { file: 1, page: 77 };
        assert_eq!(
            decode(ID, &page(other, STATE)).map_err(|bad| bad.to_string()),
            Err("it is page 77 of data file 1: a write or a read went to the wrong place".into())
        );
    }
}
