//! Allocated ranges of a device: `BLOCK_STATUS`.
//!
//! It passes no gate, since it moves no bytes. Finding the holes of a file may wait for a write to
//! it, so a worker does it if workers do the writes.

use super::{Elsewhere, HostLoop, Pending, Replies};
use crate::error::errno_of;
use crate::volume::DeviceMap;
use crate::worker::{Job, Task};
use std::sync::Arc;
use weir_proto::{BlockState, CommandFlags, Errno, Extent, reply};
use weir_store::{ExtentKind, Store, StoreError};
use weir_units::Instant;

/// Extents in one answer.
const MAX_EXTENTS: usize = 1024;
/// Pieces of a stripe looked at for one.
const MAX_STATUS_PIECES: u64 = 1024;

impl HostLoop {
    /// Answers what was asked since the last turn, or has it looked for.
    pub(super) fn answer_asked(&mut self, now: Instant, replies: &mut impl Replies) {
        for key in std::mem::take(&mut self.asked) {
            let Pending { device, request, .. } = self.pending[key];
            let from = self.pending[key].from.take();
            let map = &self.devices[device].map;
            let mut len = u64::from(request.length);
            if map.unit != 0 {
                len = len.min(map.unit * MAX_STATUS_PIECES - request.offset % map.unit);
            }
            let one = request.flags.contains(CommandFlags::REQ_ONE);
            let max = if one { 1 } else { MAX_EXTENTS };
            let inline = map.volumes.iter().all(|v| self.volumes[*v].is_inline());
            if let Some(Elsewhere::Store { store, .. }) = from {
                let (stores, map) = ([store].into(), DeviceMap::single(0));
                self.look_for_extents(now, key, (stores, map), (len, max, inline), replies);
            } else if !map.volumes.iter().all(|v| self.volumes[*v].is_clean()) {
                // Dirty blocks are data wherever the store has a hole, and may be in
                // the store by the time that it is asked, or just after.
                let all = weir_store::Extent { len, kind: ExtentKind::Data };
                self.answer_extents(now, key, Ok(vec![all]), replies);
            } else {
                let at = (Arc::clone(&self.stores), map.clone());
                self.look_for_extents(now, key, at, (len, max, inline), replies);
            }
        }
    }

    /// Looks for data in stores, here and now or on a worker.
    fn look_for_extents(
        &mut self,
        now: Instant,
        key: usize,
        (stores, map): (Arc<[Arc<dyn Store>]>, DeviceMap),
        (len, max, inline): (u64, usize, bool),
        replies: &mut impl Replies,
    ) {
        let Pending { device, request, .. } = self.pending[key];
        if inline {
            let result = map.extents(&stores, request.offset, len, max);
            self.answer_extents(now, key, result, replies);
            return;
        }
        self.pending[key].on_worker = true;
        let task = Task::Extents { key, stores, map, range: (request.offset, len), max };
        self.jobs.push(Job { device, task });
    }

    /// Answers with what was found.
    pub(super) fn answer_extents(
        &mut self,
        now: Instant,
        key: usize,
        result: Result<Vec<weir_store::Extent>, StoreError>,
        replies: &mut impl Replies,
    ) {
        let Pending { client, request, .. } = self.pending[key];
        let mut failed = result.is_err();
        if let Some(to) = replies.reply_to(client) {
            *to.in_flight -= 1;
            let context = to.meta_context.ok_or((Errno::Inval, String::new()));
            let found = result.map_err(|error| (errno_of(&error), error.to_string()));
            match context.and_then(|context| Ok((context, found?))) {
                Ok((context, found)) => {
                    let extents: Vec<Extent> = found.iter().map(told).collect();
                    reply::block_status(to.out, request.cookie, context, &extents);
                }
                Err((errno, reason)) => {
                    failed = true;
                    reply::error(to.out, to.structured, request.cookie, errno, &reason);
                }
            }
        }
        self.settle(now, key, failed);
    }
}

fn told(extent: &weir_store::Extent) -> Extent {
    Extent {
        length: u32::try_from(extent.len).unwrap_or(u32::MAX),
        state: match extent.kind {
            ExtentKind::Data => BlockState::NONE,
            ExtentKind::Hole => BlockState::HOLE | BlockState::ZERO,
        },
    }
}
