//! Checksums computed anew from the bytes, in regions where they are unknown.

use super::block::{BLOCK, CHUNK, SUM, append_sums, sum_of};
use super::regions::{STRETCH, Unknown};
use super::{REGIONS, Summed};
use crate::pieces::index;
use crate::store::{ExtentKind, Store};
use crate::sync::shared;
use crate::{Result, StoreError};
use std::io;
use std::sync::TryLockError;
use std::sync::atomic::Ordering;

/// The progress of a computation.
#[derive(Debug, Default)]
pub(super) struct Rebuild {
    current: Option<Cursor>,
    /// The region that was begun last. A region that cannot be read does not keep the others from their turn.
    last: Option<u16>,
}

#[derive(Debug, Clone, Copy)]
struct Cursor {
    region: Unknown,
    stretch: u64,
    offset: u64,
}

impl<S: Store> Summed<S> {
    /// Computes checksums of regions where they are unknown, until about `budget` bytes are read. Returns what is
    /// left of it. Another call that computes meanwhile does it alone.
    ///
    /// After a failed sync of the checksums it computes none: what it stores might be dropped again.
    pub(super) fn rebuild(&self, budget: u64) -> Result<u64> {
        if self.is_lost.load(Ordering::Acquire) {
            let context = format!(
                "volume {:?}: an earlier sync of its checksums failed, some may be lost",
                self.name
            );
            return Err(StoreError::Io { context, source: io::ErrorKind::Other.into() });
        }
        let mut rebuild = match self.rebuild.try_lock() {
            Ok(rebuild) => rebuild,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(budget),
        };
        let mut left = budget;
        while left > 0 {
            let Some(cursor) = rebuild.current.take().or_else(|| self.begin(&mut rebuild)) else {
                break;
            };
            let (next, read) = self.rebuild_some(cursor)?;
            rebuild.current = next;
            // Holes cost less, but not nothing.
            left = left.saturating_sub(read.max(BLOCK));
        }
        Ok(left)
    }

    fn begin(&self, rebuild: &mut Rebuild) -> Option<Cursor> {
        let region = self.states.next_unknown(rebuild.last)?;
        rebuild.last = Some(region.region);
        let stretch = u64::from(region.region);
        Some(Cursor { region, stretch, offset: stretch * STRETCH })
    }

    /// Computes the checksums of the next chunk or hole. Returns the place to go on, if there is one, and
    /// the bytes read.
    fn rebuild_some(&self, cursor: Cursor) -> Result<(Option<Cursor>, u64)> {
        let _no_resize = shared(&self.changing);
        let size = self.size().get();
        let end = ((cursor.stretch + 1) * STRETCH).min(size);
        if cursor.offset >= end {
            let stretch = cursor.stretch + REGIONS;
            if stretch * STRETCH >= size {
                if !self.is_lost.load(Ordering::Acquire) {
                    self.states.set_known(cursor.region);
                }
                return Ok((None, 0));
            }
            return Ok((Some(Cursor { stretch, offset: stretch * STRETCH, ..cursor }), 0));
        }
        let mut alone = vec![self.lock_chunk(cursor.offset)];
        // The end of the volume was there if it is within a block.
        let at = cursor.offset / BLOCK * BLOCK;
        let first = at / BLOCK * SUM;
        let chunk_end = end.min((at / CHUNK + 1) * CHUNK);
        let mut hole = self.hole_at(at, end)?;
        if at + hole > chunk_end {
            // Writes to the other chunks may have come before their locks.
            alone.extend(self.lock_chunks(chunk_end..end));
            hole = self.hole_at(at, end)?;
        }
        if hole > 0 {
            self.sums.zero(first, hole.div_ceil(BLOCK) * SUM, true)?;
            return Ok((Some(Cursor { offset: at + hole, ..cursor }), 0));
        }
        alone.truncate(1);
        let len = chunk_end - at;
        let (mut data, mut sums) = (vec![0; index(len)], Vec::new());
        if self.data.read_at(at, &mut data).is_ok() {
            append_sums(&mut sums, &data);
            self.sums.write(first, &sums)?;
        } else {
            self.rebuild_readable(at, &mut data)?;
        }
        Ok((Some(Cursor { offset: at + len, ..cursor }), len))
    }

    /// Returns the length of the hole at `at`, up to `end`, in whole blocks.
    fn hole_at(&self, at: u64, end: u64) -> Result<u64> {
        let extents = self.data.extents(at, end - at, 1)?;
        let hole = extents.first().filter(|extent| extent.kind == ExtentKind::Hole);
        Ok(match hole {
            Some(hole) if at + hole.len == end => hole.len,
            Some(hole) => hole.len / BLOCK * BLOCK,
            None => 0,
        })
    }

    /// Computes the checksums of the blocks from `at` on that the medium can read. The others keep theirs: their
    /// reads fail now, and later unless they have the bytes of that checksum.
    fn rebuild_readable(&self, at: u64, data: &mut [u8]) -> Result<()> {
        for (offset, block) in (at..).step_by(4096).zip(data.chunks_mut(4096)) {
            if self.data.read_at(offset, block).is_ok() {
                self.sums.write(offset / BLOCK * SUM, &sum_of(block).to_le_bytes())?;
            }
        }
        Ok(())
    }
}
