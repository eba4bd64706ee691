//! The contents that each block may have after a server has ended.

use super::system::End;
use weir_client::Connection;

/// Bytes of a block.
pub(super) const BLOCK: u64 = 4096;
/// Blocks that are read at once.
const AT_ONCE: usize = 64;

/// The contents of a block, known by their stamps; 0 is zeros.
#[derive(Debug, Clone, Default)]
pub(super) struct Block {
    /// In the order in which they were sent. Zeros come before all of them.
    pub(super) given: Vec<u64>,
    /// How many of them are known to have been answered.
    pub(super) answered: usize,
    /// How many of them a flush or FUA covers: the last of these has to survive, or a later one.
    pub(super) promised: usize,
}

impl Block {
    /// Adds a content that is sent, and returns its number.
    pub(super) fn give(&mut self, stamp: u64) -> usize {
        self.given.push(stamp);
        self.given.len()
    }

    /// Takes in that everything that was answered is promised, as where each answer is a promise.
    pub(super) fn promise(&mut self) {
        self.promised = self.answered;
    }

    /// Returns the newest content; zeros if there is none.
    pub(super) fn newest(&self) -> u64 {
        self.given.last().copied().unwrap_or(0)
    }

    /// Checks the content that was found after the end of a server. Whatever was found has to be
    /// there from now on.
    fn settle(&mut self, found: u64, end: End) -> Result<(), String> {
        // An orderly stop keeps everything that was answered.
        let least = match end {
            End::Stop => self.answered,
            End::Kill | End::Crash => self.promised,
        };
        let is_first = least == 0 && found == 0;
        let allowed = self.given.get(least.saturating_sub(1)..).unwrap_or_default();
        if !is_first && !allowed.contains(&found) {
            return Err(format!("content {found}, where {allowed:?} may be (0 is zeros)"));
        }
        *self = Self { given: vec![found], answered: 1, promised: 1 };
        Ok(())
    }
}

/// Returns the content with a stamp.
pub(super) fn content(stamp: u64) -> Vec<u8> {
    stamp.to_le_bytes().repeat(usize::try_from(BLOCK / 8).unwrap_or(0))
}

/// Returns the stamp of a content that is whole.
pub(super) fn stamp_of(found: &[u8]) -> Option<u64> {
    let stamp = found.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))?;
    (found == content(stamp)).then_some(stamp)
}

/// Fills bytes from an offset on.
type Read<'a> = dyn FnMut(u64, &mut [u8]) -> Result<(), String> + 'a;

/// Reads and checks all blocks of an export, a blob or a file. Returns how many of them had a promise.
pub(super) fn check(read: &mut Read<'_>, blocks: &mut [Block], end: End) -> Result<u64, String> {
    let (mut promises, mut at) = (0, 0_u64);
    for part in blocks.chunks_mut(AT_ONCE) {
        let mut found = vec![0; part.len() * usize::try_from(BLOCK).unwrap_or(0)];
        read(at * BLOCK, &mut found)?;
        for (block, found) in part.iter_mut().zip(found.chunks(usize::try_from(BLOCK).unwrap_or(1)))
        {
            promises += u64::from(block.promised > 0);
            let stamp = stamp_of(found).ok_or_else(|| format!("block {at} is torn"))?;
            block.settle(stamp, end).map_err(|what| format!("block {at} has {what}"))?;
            at += 1;
        }
    }
    Ok(promises)
}

/// Reads and checks all blocks of an export.
pub(super) fn check_export(
    client: &mut Connection,
    blocks: &mut [Block],
    end: End,
) -> Result<u64, String> {
    let mut read =
        |at: u64, bytes: &mut [u8]| client.read(at, bytes).map_err(|error| error.to_string());
    check(&mut read, blocks, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(promised: usize, answered: usize, found: u64, end: End) -> bool {
        let mut block = Block { given: vec![7, 8, 9], answered, promised };
        block.settle(found, end).is_ok()
    }

    #[test]
    fn a_block_holds_its_newest_promise_or_later_content() {
        // Nothing is promised: any content, also the zeros before.
        assert!([0, 7, 8, 9].iter().all(|found| settled(0, 3, *found, End::Kill)));
        // The second is promised.
        let expect = [false, false, true, true];
        assert_eq!([0, 7, 8, 9].map(|found| settled(2, 3, found, End::Kill)), expect);
        assert_eq!([0, 7, 8, 9].map(|found| settled(2, 3, found, End::Crash)), expect);
        assert!(!settled(0, 0, 10, End::Kill), "nobody wrote it");
        // A stop keeps what was answered.
        assert_eq!([8, 9].map(|found| settled(0, 3, found, End::Stop)), [false, true]);
    }

    #[test]
    fn what_was_found_has_to_stay() {
        let mut block = Block { given: vec![7, 8], answered: 1, promised: 0 };
        assert_eq!(block.settle(8, End::Kill), Ok(()));
        assert!(block.clone().settle(7, End::Kill).is_err() && block.settle(0, End::Kill).is_err());
    }

    #[test]
    fn a_torn_block_has_no_stamp() {
        let mut bytes = content(5);
        assert_eq!(stamp_of(&bytes), Some(5));
        bytes[4095] = 1;
        assert_eq!(stamp_of(&bytes), None);
        assert_eq!(stamp_of(&content(0)), Some(0));
    }
}
