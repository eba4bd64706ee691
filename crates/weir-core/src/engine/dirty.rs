//! What the engine does about dirty blocks of ReadWrite caches.

use super::{Alarm, Engine, Op, Owner, Route, narrow};
use crate::cache::BLOCK;
use crate::waits::Cap;
use weir_units::Instant;

impl Engine {
    /// Goes on with write-backs after others have arrived, until nothing moves. A
    /// write-back that arrives only leaves its volume in `to_write_back`: on a
    /// medium without latency each would otherwise start the next from within.
    pub(super) fn settle(&mut self, now: Instant) {
        while let Some(volume) = self.to_write_back.pop() {
            self.write_back(volume, now);
            self.admit_dirty(now);
        }
    }

    /// Makes the blocks of a write dirty, or lets it wait until there is room.
    pub(super) fn take_dirty(&mut self, key: usize, now: Instant) -> bool {
        let Some((cache, _)) = &self.cache else { return true };
        let limit = cache.dirty_limit.get() / BLOCK;
        let after = cache.writeback_after;
        let part = &self.parts[key];
        let blocks = self.volumes[part.volume].dirty.new_blocks(part.offset, part.len);
        // A write larger than all the room goes when the room is empty.
        if self.dirty_blocks > 0 && self.dirty_blocks + blocks > limit {
            self.waiting_for_room.push_back(key);
            let volumes = self.volumes.len();
            (0..volumes).for_each(|v| self.volumes[v].dirty.draining = true);
            (0..volumes).for_each(|v| self.write_back(v, now));
            return false;
        }
        let (id, offset, len) = (part.volume, part.offset, part.len);
        let dirty = &mut self.volumes[id].dirty;
        self.dirty_blocks += dirty.mark(offset, len);
        let half_full = self.dirty_blocks * 2 > limit;
        if half_full {
            dirty.draining = true;
        } else if !dirty.alarm_set {
            dirty.alarm_set = true;
            self.timers.set(now + after, Alarm::Writeback(narrow(id as u64)));
        }
        if half_full {
            self.write_back(id, now);
        }
        true
    }

    /// Lets writes go that waited for room.
    fn admit_dirty(&mut self, now: Instant) {
        for _ in 0..self.waiting_for_room.len() {
            let Some(key) = self.waiting_for_room.pop_front() else { return };
            let part = &mut self.parts[key];
            part.waits.charge(Cap::CacheWriteback, now - part.at_gate);
            part.at_gate = now;
            let waiting = self.waiting_for_room.len();
            self.start(key, now);
            if self.waiting_for_room.len() > waiting {
                // Still no room: it is first in line, as before.
                self.waiting_for_room.rotate_right(1);
                return;
            }
        }
    }

    /// Sends what a volume's cache owes, as far as it may.
    pub(super) fn write_back(&mut self, volume: usize, now: Instant) {
        while let Some(run) = self.volumes[volume].dirty.next_run() {
            self.dirty_blocks -= run.len / BLOCK;
            let end = self.volumes[volume].spec.size.get();
            let len = run.len.min(end.saturating_sub(run.offset));
            let owner = Owner::WriteBack(run);
            let key = self.new_part(volume, Op::Write, run.offset, len, owner);
            self.parts[key].route = Route(Route::DISK | Route::UNCACHED);
            self.proceed(key, now);
        }
    }
}
