//! Changes of bytes and their checksums.

use super::Summed;
use super::block::{self, BLOCK, Buffer, CHUNK, Part, SUM, append_sums, parts, sum_of, sums_len};
use super::regions::{Entered, STRETCH};
use crate::Result;
use crate::pieces::{index, len_of};
use crate::store::{Store, check_range};
use crate::sync::{exclusive, locked, shared};
use std::ops::Range;
use weir_units::Bytes;

/// The new content of a range.
#[derive(Debug, Clone, Copy)]
pub(super) enum Content<'a> {
    Bytes(&'a [u8]),
    /// Zeros, without space if it may be trimmed.
    Zeros {
        may_trim: bool,
    },
}

/// The checksums of consecutive blocks, from byte `first` of the file on.
#[derive(Debug)]
enum NewSums {
    Zeros { first: u64, len: u64 },
    Of { first: u64, sums: Vec<u8> },
}

impl NewSums {
    /// Returns each checksum with its place in the file.
    fn each(&self) -> impl Iterator<Item = (u64, u32)> {
        let (first, len, sums) = match self {
            Self::Zeros { first, len } => (*first, *len, &[][..]),
            Self::Of { first, sums } => (*first, len_of(sums), &sums[..]),
        };
        let sums = sums.chunks(4).map(block::decode).chain(std::iter::repeat(0));
        (first..first + len).step_by(4).zip(sums)
    }
}

impl<S: Store> Summed<S> {
    /// Changes a range.
    pub(super) fn change(&self, offset: u64, len: u64, content: Content) -> Result<()> {
        let _no_resize = shared(&self.changing);
        check_range(offset, len, self.size().get())?;
        if len == 0 {
            return Ok(());
        }
        let entered = self.states.enter(offset, len)?;
        let mut at = offset;
        while at < offset + len {
            // Bytes lock one chunk at a time; zeros lock all chunks of a stretch and are one call.
            let unit = if matches!(content, Content::Bytes(_)) { CHUNK } else { STRETCH };
            let end = (offset + len).min((at / unit + 1) * unit);
            let content = match content {
                Content::Bytes(bytes) => {
                    Content::Bytes(&bytes[index(at - offset)..index(end - offset)])
                }
                zeros => zeros,
            };
            self.change_piece(&entered, at..end, content)?;
            at = end;
        }
        Ok(())
    }

    /// Changes a range within one stretch.
    fn change_piece(&self, entered: &Entered<S>, at: Range<u64>, content: Content) -> Result<()> {
        let _alone = match content {
            Content::Bytes(_) => (Some(self.lock_chunk(at.start)), Vec::new()),
            Content::Zeros { .. } => (None, self.lock_chunks(at.clone())),
        };
        let sums = self.new_sums(at.clone(), content)?;
        let changed = match content {
            Content::Bytes(bytes) => self.data.write_at(at.start, bytes),
            Content::Zeros { may_trim } => {
                self.data.write_zeroes(at.start, at.end - at.start, may_trim)
            }
        };
        // Zeros that take space reserve that of their checksums.
        let may_trim = matches!(content, Content::Zeros { may_trim: true });
        let stored = match &changed {
            Ok(()) => self.store_sums(&sums, may_trim),
            Err(_) => self.store_sums_of_changed(&sums),
        };
        let stored = stored.inspect_err(|_| entered.set_unknown(at.start));
        changed.and(stored)
    }

    /// Stores the checksums of those blocks that have their new bytes, after a change that failed. The others keep
    /// theirs: a checksum of the bytes that are there would also cover earlier damage.
    fn store_sums_of_changed(&self, sums: &[NewSums]) -> Result<()> {
        let size = self.size().get();
        for (at, new) in sums.iter().flat_map(NewSums::each) {
            let offset = at / SUM * BLOCK;
            let mut block: Buffer = [0; 4096];
            let block = &mut block[..index((size - offset).min(BLOCK))];
            if self.data.read_at(offset, block).is_ok() && sum_of(block) == new {
                self.sums.write(at, &new.to_le_bytes())?;
            }
        }
        Ok(())
    }

    /// Returns the checksums of a range with new content. Old bytes that stay in its blocks are verified: a
    /// new checksum over damaged bytes would make them look sound.
    fn new_sums(&self, at: Range<u64>, content: Content) -> Result<Vec<NewSums>> {
        let mut sums = Vec::new();
        for part in parts(at.start, at.end - at.start) {
            let bytes = match content {
                Content::Bytes(bytes) => {
                    let from = index(part.offset - at.start);
                    Some(&bytes[from..from + index(part.len)])
                }
                Content::Zeros { .. } => None,
            };
            let first = part.offset / BLOCK * SUM;
            let len = part.len / BLOCK * SUM;
            let new = match bytes {
                None if part.is_whole => {
                    if let Some(NewSums::Zeros { len: before, .. }) = sums.last_mut() {
                        *before += len;
                        continue;
                    }
                    NewSums::Zeros { first, len }
                }
                Some(bytes) if part.is_whole => {
                    let mut sums = Vec::with_capacity(index(len));
                    append_sums(&mut sums, bytes);
                    NewSums::Of { first, sums }
                }
                _ => NewSums::Of { first, sums: self.merged(part, bytes)?.to_le_bytes().into() },
            };
            sums.push(new);
        }
        Ok(sums)
    }

    /// Returns the checksum of a block after a part of it has changed to `bytes`, or to zeros.
    fn merged(&self, part: Part, bytes: Option<&[u8]>) -> Result<u32> {
        let start = part.block_start();
        let len = (self.size().get() - start).min(BLOCK);
        let mut block: Buffer = [0; 4096];
        let block = &mut block[..index(len)];
        if part.len < len {
            self.read_still(Part { offset: start, len, is_whole: false }, block)?;
        }
        let changed = &mut block[index(part.offset - start)..][..index(part.len)];
        match bytes {
            Some(bytes) => changed.copy_from_slice(bytes),
            None => changed.fill(0),
        }
        Ok(sum_of(block))
    }

    fn store_sums(&self, sums: &[NewSums], may_trim: bool) -> Result<()> {
        sums.iter().try_for_each(|sums| match sums {
            NewSums::Zeros { first, len } => self.sums.zero(*first, *len, may_trim),
            NewSums::Of { first, sums } => self.sums.write(*first, sums),
        })
    }

    /// Resizes the volume by `resize`, which changes the bytes and the size.
    pub(crate) fn resized(&self, new: Bytes, resize: impl FnOnce(&S) -> Result<()>) -> Result<()> {
        let _alone = locked(&self.resizing);
        let (old, new) = (self.size().get(), new.get());
        if new >= old {
            // A shrinking that failed late may have left some behind the end.
            self.sums.resize(sums_len(old))?;
            self.sums.resize(sums_len(new))?;
            // Writes go on, since this waits for syncs. A block that the end cuts counts as filled up with zeros,
            // so its checksum is that of the longer one, too.
            return resize(&self.data);
        }
        let _no_change = exclusive(&self.changing);
        let entered = self.states.enter(new, old - new)?;
        let block = new / BLOCK * BLOCK;
        let last = match new > block {
            true => {
                let part = Part { offset: new, len: old.min(block + BLOCK) - new, is_whole: false };
                Some(self.merged(part, None)?)
            }
            false => None,
        };
        let done = resize(&self.data).and_then(|()| {
            if let Some(last) = last {
                self.sums.write(block / BLOCK * SUM, &last.to_le_bytes())?;
            }
            self.sums.resize(sums_len(self.size().get()))
        });
        // Without a new size, nothing has changed.
        done.inspect_err(|_| {
            if self.size().get() != old {
                entered.set_unknown(block);
            }
        })
    }
}
