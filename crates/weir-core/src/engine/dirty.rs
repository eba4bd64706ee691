//! Dirty blocks of ReadWrite caches in the engine.
//!
//! A block is dirty from the moment when the cache takes a write until the disk
//! has it, and all that time it is held. The limit is on all of these, of all
//! volumes; writes that find no room wait in the order in which they came.

use super::part::{Owner, Part};
use super::route::Route;
use super::types::{Event, Op, VolumeId, narrow};
use super::{Alarm, Engine};
use crate::cache::{BLOCK, Brought};
use crate::spec::CacheMode;
use crate::waits::Cap;
use crate::writeback::{WriteBack, touched};
use weir_units::Instant;

impl Engine {
    /// Continues write-backs after others have arrived, until nothing moves. A
    /// write-back that arrives only leaves its volume in `to_write_back`: on a
    /// medium without latency each would otherwise start the next from within.
    #[inline]
    pub(super) fn settle(&mut self, now: Instant) {
        while let Some(volume) = self.to_write_back.pop() {
            self.continue_write_backs(volume, now);
        }
    }

    fn continue_write_backs(&mut self, volume: usize, now: Instant) {
        self.write_back(volume, now);
        self.admit_dirty(now);
    }

    /// A flush waits for what is dirty now.
    pub(super) fn start_flush(&mut self, key: usize, volume: usize, now: Instant) {
        if self.volumes[volume].dirty.flush(key) {
            self.finish_flush(key, now);
        } else {
            self.write_back(volume, now);
        }
    }

    /// A write to a ReadWrite volume: the cache takes it, now or when there is room.
    /// A write larger than the limit of dirty blocks goes to the disk.
    pub(super) fn start_cached_write(&mut self, key: usize, now: Instant) {
        let part = &mut self.parts[key];
        let blocks = touched(part.offset, part.len);
        if blocks.end - blocks.start > self.dirty_room {
            part.passes_cache = true;
        } else if self.waiting_for_room.is_empty() && self.has_room(key) {
            self.take_dirty(key, now);
        } else {
            self.wait_for_room(key, now);
            return;
        }
        self.send(key, now);
    }

    fn has_room(&self, key: usize) -> bool {
        let part = &self.parts[key];
        let dirty = &self.volumes[part.volume].dirty;
        self.dirty_blocks + dirty.new_blocks(part.offset, part.len) <= self.dirty_room
    }

    /// Lets a write wait, and writes back what is dirty.
    fn wait_for_room(&mut self, key: usize, now: Instant) {
        self.waiting_for_room.push_back(key);
        if self.waiting_for_room.len() > 1 {
            return;
        }
        for volume in 0..self.volumes.len() {
            self.volumes[volume].dirty.draining = true;
            self.write_back(volume, now);
        }
    }

    /// Lets writes go that waited for room.
    fn admit_dirty(&mut self, now: Instant) {
        while let Some(key) = self.waiting_for_room.front().copied() {
            // The volume's cache may have been switched off meanwhile.
            let volume = self.parts[key].volume;
            let cached = self.volumes[volume].spec.cache == CacheMode::ReadWrite;
            if cached && !self.has_room(key) {
                return;
            }
            self.waiting_for_room.pop_front();
            let part = &mut self.parts[key];
            part.waits.charge(Cap::CacheWriteback, now - part.at_gate);
            part.at_gate = now;
            if cached {
                self.take_dirty(key, now);
            }
            self.send(key, now);
        }
    }

    /// Makes the blocks of a write dirty. They are held from now on.
    fn take_dirty(&mut self, key: usize, now: Instant) {
        let Some((cache, blobs)) = &mut self.cache else { return };
        let Part { volume, offset, len, .. } = self.parts[key];
        let dirty = &mut self.volumes[volume].dirty;
        self.dirty_blocks += dirty.mark(offset, len);
        let volumes = &self.volumes;
        let pinned = |volume: usize, first| volumes[volume].dirty.mask(first);
        blobs.insert(volume, Brought::Write { offset, len }, pinned);
        let dirty = &mut self.volumes[volume].dirty;
        if self.dirty_blocks * 2 > self.dirty_room || !self.waiting_for_room.is_empty() {
            dirty.draining = true;
            self.write_back(volume, now);
        } else if !dirty.alarm_set {
            dirty.alarm_set = true;
            let at = now + cache.writeback_after;
            self.timers.set(at, Alarm::Writeback(narrow(volume as u64)));
        }
    }

    /// A discard came: what it covers need not be written any more.
    pub(super) fn forget_dirty(&mut self, volume: usize, offset: u64, len: u64) {
        let gone = self.volumes[volume].dirty.discard(offset, len);
        if gone > 0 {
            self.dirty_blocks -= gone;
            self.to_write_back.push(volume);
        }
    }

    /// Sends what a volume's cache owes, as far as it may.
    pub(super) fn write_back(&mut self, volume: usize, now: Instant) {
        while let Some(run) = self.volumes[volume].dirty.next_run() {
            let spec = &self.volumes[volume].spec;
            let route = Route(Route::to_disk(spec.place, Op::Write, self.has_separate_writes));
            // The volume may have shrunk.
            let len = run.len.min(spec.size.get().saturating_sub(run.offset));
            let owner = Owner::WriteBack(run);
            let key = self.new_part(volume, Op::Write, run.offset, len, owner);
            self.parts[key].route = route;
            self.proceed(key, now);
        }
    }

    /// A write-back has reached the disk.
    pub(super) fn finish_write_back(&mut self, run: &WriteBack, part: &Part, now: Instant) {
        let held = &mut self.volumes[part.volume];
        part.count_write_back(&mut held.totals);
        let flushes = held.dirty.written(run);
        self.dirty_blocks -= run.len / BLOCK;
        let volume = VolumeId(part.volume);
        self.events.push_back(Event::WrittenBack { volume, offset: run.offset, len: run.len });
        for flush in flushes {
            let waited = now - self.parts[flush].arrived;
            self.parts[flush].waits.charge(Cap::CacheWriteback, waited);
            self.finish_flush(flush, now);
        }
        self.to_write_back.push(part.volume);
    }
}
