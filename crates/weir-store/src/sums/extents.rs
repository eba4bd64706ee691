//! Data and holes of bytes with checksums.

use super::Summed;
use super::block::{self, BLOCK, SUM};
use crate::Result;
use crate::pieces::index;
use crate::store::{ExtentKind, ExtentList, Store};
use std::ops::Range;

impl<S: Store> Summed<S> {
    /// Appends the blocks of a hole that have checksums as data, since bytes of them are missing.
    pub(super) fn extents_of_hole(&self, hole: Range<u64>, list: &mut ExtentList) -> Result<()> {
        let first = hole.start / BLOCK * SUM;
        let len = hole.end.div_ceil(BLOCK) * SUM - first;
        let mut listed = hole.start;
        // Lists the bytes up to the block of the checksum at `sum`.
        let mut push = |sum: u64, kind| {
            let to = (sum / SUM * BLOCK).clamp(hole.start, hole.end);
            list.push(to - listed, kind);
            listed = to;
            list.is_full()
        };
        let (mut at, last) = (first, first + len);
        while at < last {
            // One after the other, so that a list that is full ends the work.
            let Some(extent) = self.sums.first_extent(at, last - at)? else { break };
            let end = at + extent.len;
            if extent.kind == ExtentKind::Hole {
                // A hole need not end at a checksum; the rest of that one is data.
                if push(end, ExtentKind::Hole) {
                    return Ok(());
                }
                at = end;
                continue;
            }
            let mut buffer = [0; 4096];
            at -= at % SUM;
            while at < end.next_multiple_of(SUM) {
                let stored = &mut buffer[..index((end.next_multiple_of(SUM) - at).min(BLOCK))];
                self.sums.read(at, stored)?;
                for sum in stored.chunks(4) {
                    let kind = match block::decode(sum) {
                        0 => ExtentKind::Hole,
                        _ => ExtentKind::Data,
                    };
                    at += SUM;
                    if push(at, kind) {
                        return Ok(());
                    }
                }
            }
            at = end;
        }
        Ok(())
    }
}
