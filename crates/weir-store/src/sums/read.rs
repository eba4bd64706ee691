//! Reads of bytes beside their checksums.

use super::Summed;
use super::block::{self, BLOCK, Buffer, Part, SUM, SumsBuffer, first_mismatch};
use crate::pieces::index;
use crate::store::Store;
use crate::{Result, StoreError};

/// A choice: a read waits for the medium, or returns without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    Yes,
    No,
}

/// The result of a comparison.
#[derive(Debug, Clone, Copy)]
pub(super) enum Verdict {
    Sound,
    Differs { block: u64, expected: u32, found: u32 },
}

impl<S: Store> Summed<S> {
    /// Reads the checksums of the blocks of a range into `sums`.
    pub(super) fn read_sums(&self, first: u64, sums: &mut [u8], wait: Wait) -> Result<bool> {
        let at = first / BLOCK * SUM;
        match wait {
            Wait::Yes => self.sums.read(at, sums).map(|()| true),
            Wait::No => self.sums.try_read(at, sums),
        }
    }

    pub(super) fn read_data(&self, offset: u64, buf: &mut [u8], wait: Wait) -> Result<bool> {
        match wait {
            Wait::Yes => self.data.read_at(offset, buf).map(|()| true),
            Wait::No => self.data.try_read_at(offset, buf),
        }
    }

    /// Reads a part, and the rest of its block if it is none as a whole. Returns the damage; `None` if
    /// that would have to wait.
    pub(super) fn read_part(
        &self,
        part: Part,
        out: &mut [u8],
        wait: Wait,
    ) -> Result<Option<Verdict>> {
        let start = part.block_start();
        if !part.is_whole {
            let mut block: Buffer = [0; 4096];
            let len = index((self.size().get().max(part.offset + part.len) - start).min(BLOCK));
            let block = &mut block[..len];
            if !self.read_data(start, block, wait)? {
                return Ok(None);
            }
            let from = index(part.offset - start);
            out.copy_from_slice(&block[from..from + out.len()]);
            return self.compare(start, block, wait);
        }
        if !self.read_data(start, out, wait)? {
            return Ok(None);
        }
        self.compare(start, out, wait)
    }

    /// Compares the blocks from `start` on with their checksums.
    pub(super) fn compare(&self, start: u64, data: &[u8], wait: Wait) -> Result<Option<Verdict>> {
        let mut sums: SumsBuffer = [0; 1024];
        let sums = &mut sums[..index(block::sums_of_len(data))];
        if !self.read_sums(start, sums, wait)? {
            return Ok(None);
        }
        Ok(Some(match first_mismatch(data, sums) {
            None => Verdict::Sound,
            Some((number, expected, found)) => {
                Verdict::Differs { block: start + number * BLOCK, expected, found }
            }
        }))
    }

    /// Reads a part that no write changes meanwhile, and fails if it is damaged. The lock of its writes is
    /// held.
    pub(super) fn read_still(&self, part: Part, out: &mut [u8]) -> Result<()> {
        if self.states.is_unknown(part.offset) {
            return self.data.read_at(part.offset, out);
        }
        match self.read_part(part, out, Wait::Yes)? {
            // A failed sync of checksums may have made them unknown meanwhile.
            Some(Verdict::Differs { block, expected, found }) if !self.states.is_unknown(block) => {
                let volume = self.name.clone();
                let error = StoreError::DamagedBlock { volume, offset: block, expected, found };
                self.damaged.count(block, &error);
                Err(error)
            }
            _ => Ok(()),
        }
    }
}
