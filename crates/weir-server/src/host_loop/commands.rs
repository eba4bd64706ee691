//! Changes to a host while it runs: resizes, cache modes, crashes, the end.

use super::HostLoop;
use super::progress::Resizing;
use crate::error::ServerError;
use crate::volume::{Done, VolumeBytes, Work};
use std::sync::Arc;
use weir_core::{
    CACHE_BLOCK, CacheMode, DeviceId, DiskLimits, Event, GateLimits, VolumeId, VolumeSpec,
};
use weir_store::{ErrorKind, StoreError};
use weir_units::{Bytes, Instant, Share, Span};

/// Notices about the store of a volume for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owing {
    /// It keeps blocks that the store does not take: they exist as long as the server
    /// lives, and flushes fail.
    Begins {
        /// The volume.
        volume: VolumeId,
        /// The store's error.
        reason: String,
        /// True if the store is full.
        full: bool,
    },
    /// The store has taken the blocks, or a crash has lost them.
    Ends {
        /// The volume.
        volume: VolumeId,
    },
    /// It had no room for a write, which failed. Given at most once a minute.
    Full {
        /// The volume.
        volume: VolumeId,
        /// The store's error.
        reason: String,
    },
}

/// The least time from one notice about a full store to the next.
const FULL_AGAIN: Span = Span::from_secs(60);

/// The treatment of data behind the new end when a volume shrinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behind {
    /// It is kept, and the volume is not shrunk.
    Keep,
    /// It is dropped.
    Forget,
}

impl HostLoop {
    /// Resizes a volume and moves its limits at `now`, or as soon as the store has
    /// done it. `told` hears [`ServerError::Volume`] if there is data behind the new end
    /// that is to be kept, and what the store says.
    ///
    /// Shrinking looks for data first. Once none was found, requests behind the new end are
    /// refused.
    pub fn resize(
        &mut self,
        now: Instant,
        volume: VolumeId,
        name: &str,
        spec: &VolumeSpec,
        behind: Behind,
        told: impl FnOnce(Result<(), ServerError>) + Send + 'static,
    ) {
        let resizing = Resizing { name: name.to_owned(), spec: spec.clone(), told: Box::new(told) };
        self.resizing.push_back((volume.0, resizing));
        let old = self.engine.volume(volume).map_or(Bytes::ZERO, |v| v.size);
        let shrinks = spec.size < old;
        let step = match behind {
            Behind::Keep if shrinks => Work::Probe { end: spec.size.get() },
            Behind::Forget if shrinks => {
                self.set_size(now, volume.0, spec.size);
                Work::Resize { size: spec.size }
            }
            _ => Work::Resize { size: spec.size },
        };
        self.resize_step(now, volume.0, step);
    }

    fn resize_step(&mut self, now: Instant, volume: usize, step: Work) {
        if let Some(result) = self.volumes[volume].resize(step) {
            self.go_on_resizing(now, volume, result);
        }
        self.look_at(volume);
    }

    /// Continues a resize after a step.
    pub(super) fn go_on_resizing(
        &mut self,
        now: Instant,
        volume: usize,
        result: Result<Done, StoreError>,
    ) {
        let own = self.resizing.iter().position(|(of, _)| *of == volume);
        let Some(own) = own else { unreachable!("no resize of volume {volume} is under way") };
        let size = self.resizing[own].1.spec.size;
        let probed = matches!(result, Ok(Done::Probed(_)));
        let found = matches!(result, Ok(Done::Probed(true)));
        if probed && !found && !self.volumes[volume].writes_behind(size.get()) {
            self.set_size(now, volume, size);
            self.resize_step(now, volume, Work::Resize { size });
            return;
        }
        let Some((_, Resizing { name, spec, told })) = self.resizing.remove(own) else { return };
        if probed {
            let reason = format!("there is data beyond {size}; trim or move it before shrinking");
            told(Err(ServerError::Volume { volume: name, reason }));
            return;
        }
        // A store that fails late, after its size has changed, still has it.
        let kept = self.volumes[volume].data.store.size();
        self.set_size(now, volume, kept);
        if kept == size {
            self.set_limits(now, VolumeId(volume), spec.limits);
        }
        told(result.map(|_| ()).map_err(ServerError::from));
    }

    fn set_size(&mut self, now: Instant, volume: usize, size: Bytes) {
        let known = self.engine.set_size(now, VolumeId(volume), size);
        debug_assert!(known.is_ok(), "volume {volume} is one of this host's");
    }

    /// Gives a volume new limits at `now`.
    pub fn set_limits(&mut self, now: Instant, volume: VolumeId, limits: DiskLimits) {
        let known = self.engine.set_disk_limits(now, volume, limits);
        debug_assert!(known.is_ok(), "{volume:?} is one of this host's");
        self.stirred = true;
    }

    /// Fills the credit buckets of a volume to `share` at `now`.
    pub fn set_credits(&mut self, now: Instant, volume: VolumeId, share: Share) {
        let known = self.engine.set_credits(now, volume, share);
        debug_assert!(known.is_ok(), "{volume:?} is one of this host's");
        self.stirred = true;
    }

    /// Fills the credit buckets of the host to `share` at `now`.
    pub fn set_host_credits(&mut self, now: Instant, share: Share) {
        self.engine.set_host_credits(now, share);
        self.stirred = true;
    }

    /// Gives a volume another cache mode at `now`. What it had not written back is
    /// on its way to the store when this returns, whatever the engine still charges
    /// for it: a crash does not lose it, and a flush waits for it.
    pub fn set_cache(&mut self, now: Instant, volume: VolumeId, mode: CacheMode) {
        let known = self.engine.set_cache_mode(now, volume, mode);
        debug_assert!(known.is_ok(), "{volume:?} is one of this host's, which has a cache");
        // Writes that waited for room go on as uncached: nothing would write them back.
        self.volumes[volume.0].write_back_all();
        self.look_at(volume.0);
        self.stirred = true;
    }

    /// Puts a range of a device into the host cache, as a warm-up would have;
    /// returns how much of it that is.
    pub fn warm(&mut self, device: DeviceId, offset: u64, len: u64) -> Bytes {
        self.engine.warm(device, offset, len)
    }

    /// Crashes the host: requests in flight are gone, the cache is empty, and
    /// what was not written back is lost. What workers have, they end. Returns the
    /// lost bytes.
    pub fn crash(&mut self, now: Instant) -> Bytes {
        self.crashes += 1;
        self.engine.crash(now);
        // Everything written back by now is on the disk.
        while let Some(event) = self.engine.poll_event() {
            if let Event::WrittenBack { volume, offset, len } = event {
                self.volumes[volume.0].write_back(offset, len);
                self.look_at(volume.0);
            }
        }
        let blocks: usize = self.volumes.iter_mut().map(VolumeBytes::lose).sum();
        let tap = &mut self.tap;
        self.pending.retain(|_, pending| {
            // The engine will not let it go any more.
            pending.let_go = true;
            let ends = pending.on_worker || pending.jobs > 0;
            if let (false, Some(tap), Some(number)) = (ends, &mut *tap, pending.tapped) {
                tap.end(number, None);
            }
            ends
        });
        self.held.clear();
        self.asked.clear();
        (0..self.volumes.len()).for_each(|volume| self.note_owing(volume));
        Bytes::new(blocks as u64 * CACHE_BLOCK)
    }

    /// Lifts all limits and writes back what the cache owes, so that what is
    /// under way completes at once: the server is going to stop.
    pub fn drain(&mut self, now: Instant) {
        self.engine.set_host_limits(now, &GateLimits::default(), &GateLimits::default());
        self.engine.set_log_rate(now, None);
        for volume in 0..self.volumes.len() {
            self.set_limits(now, VolumeId(volume), DiskLimits::default());
            let cached = self.engine.volume(VolumeId(volume)).map(|v| v.cache);
            if cached == Some(CacheMode::ReadWrite) {
                self.set_cache(now, VolumeId(volume), CacheMode::None);
            }
        }
    }

    /// Writes back whatever is left and makes every volume durable, here and now.
    /// The host [is idle](Self::is_idle): no worker has anything of it.
    ///
    /// # Errors
    ///
    /// The error of the first store that cannot sync; the others are synced all the same.
    pub fn sync_all(&mut self) -> Result<(), StoreError> {
        self.volumes.iter_mut().map(VolumeBytes::finish).fold(Ok(()), Result::and)
    }

    /// Returns the space that a volume takes.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot say.
    pub fn allocated(&self, volume: VolumeId) -> Result<Bytes, StoreError> {
        self.volumes[volume.0].data.store.allocated()
    }

    /// Bytes that were answered for, that the engine holds for written, and that
    /// the store did not take: they are in memory only.
    #[must_use]
    pub fn owed(&self, volume: VolumeId) -> Bytes {
        self.volumes[volume.0].owes().map_or(Bytes::ZERO, |(bytes, _)| bytes)
    }

    /// Returns the bytes that all volumes [owe](Self::owed).
    #[must_use]
    pub fn owed_in_all(&self) -> Bytes {
        Bytes::new((0..self.volumes.len()).map(|volume| self.owed(VolumeId(volume)).get()).sum())
    }

    /// Returns the notices since the last call.
    pub fn take_owing(&mut self) -> Vec<Owing> {
        std::mem::take(&mut self.owing)
    }

    /// Notes a change that failed because the store is full.
    pub(super) fn note_full(&mut self, now: Instant, volume: usize, error: &StoreError) {
        let bytes = &mut self.volumes[volume];
        let is_due = bytes.full_told.is_none_or(|told| now - told >= FULL_AGAIN);
        // A cache that keeps the data in memory has its own notice.
        if error.kind() == ErrorKind::NoSpace && is_due && bytes.owes().is_none() {
            bytes.full_told = Some(now);
            let reason = error.to_string();
            self.owing.push(Owing::Full { volume: VolumeId(volume), reason });
        }
    }

    /// Notes when a volume begins to owe, and when that is over.
    pub(super) fn note_owing(&mut self, volume: usize) {
        let bytes = &mut self.volumes[volume];
        let owes = bytes.owes().map(|(_, reason)| Arc::clone(reason));
        if owes.is_some() == bytes.owing_told {
            return;
        }
        bytes.owing_told = owes.is_some();
        let volume = VolumeId(volume);
        self.owing.push(match owes {
            Some(reason) => {
                let full = reason.kind() == ErrorKind::NoSpace;
                Owing::Begins { volume, reason: reason.to_string(), full }
            }
            None => Owing::Ends { volume },
        });
    }
}
