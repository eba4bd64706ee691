//! The state machine.
//!
//! # Calling order
//!
//! A driver does, whenever something happens or a deadline has come:
//!
//! 1. commands ([`Engine::set_disk_limits`], ...) and [`Engine::handle_request`]
//!    for each new request, with the time;
//! 2. [`Engine::handle_timeout`] with the time, if [`Engine::poll_deadline`] is due;
//! 3. [`Engine::poll_event`] until it returns `None`;
//! 4. [`Engine::poll_deadline`] for when to call again.
//!
//! Time never goes back; a `now` before an earlier one counts as that earlier one.
//! A driver that comes late loses nothing: what was due is done with the time at
//! which it was due, so a saturated gate keeps its rate however seldom it is
//! called. [`Completion::at`] is that time.
//!
//! | module | does |
//! |---|---|
//! | `path` | the data path: split, cache, gates, medium, completion |
//! | `dirty` | writes to a ReadWrite cache, and their write-back |
//! | `commands` | changes of a host while it runs |
//! | `hot_plug` | volumes that are added and removed |
//! | `above` | the billing counter of on-demand bursting |
//! | `merge` | adjacent I/Os that count as one |
//! | `ahead` | requests that are admitted when they arrive |
//! | `fixed` | an engine of fixed limits, which admits ahead |
//! | `part` | the unit that passes the gates |
//! | `route` | the gates of a host, and the way through them |
//! | `types` | requests, completions and counters |
//! | `volume` | a volume and its counters |

use crate::cache::{BLOCK, BlobCache};
use crate::gate::{Gate, GateCaps};
use crate::meter::MAX_COST;
use crate::spec::{
    CacheMode, CacheSpec, DeviceSpec, GateLimits, HostSpec, Limit, Place, SpecError, VolumeSpec,
};
use crate::timers::{Alarm, Timers};
use crate::waits::Cap;
use ahead::Ahead;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use part::{Owner, Parent, Part};
use route::{
    CACHED_BYTES, CACHED_IOPS, LOG, UNCACHED_BYTES, UNCACHED_IOPS, WRITE_BYTES, WRITE_IOPS,
    disk_gate,
};
use slab::Slab;
use volume::Volume;
use weir_units::{Bytes, Instant, Span};

mod above;
mod ahead;
mod commands;
mod dirty;
mod fixed;
mod hot_plug;
mod merge;
mod part;
mod path;
mod route;
mod types;
mod volume;

pub use types::{Completion, DeviceId, Event, MAX_REQUEST, Op, Refused, Request, Totals, VolumeId};

/// One host, compiled.
#[derive(Debug)]
pub struct Engine {
    devices: Vec<DeviceSpec>,
    /// The size of each device.
    sizes: Vec<u64>,
    volumes: Vec<Volume>,
    /// The shared gates from [`UNCACHED_IOPS`] to [`WRITE_BYTES`], then the gate of each disk.
    gates: Vec<Gate>,
    /// Writes to remote storage pass [`WRITE_IOPS`] and [`WRITE_BYTES`].
    has_separate_writes: bool,
    /// Numbers of removed volumes, which new ones take.
    vacant: Vec<usize>,
    cache: Option<(CacheSpec, BlobCache)>,
    /// Dirty blocks of all volumes, write-backs in flight included ...
    dirty_blocks: u64,
    /// ... and their limit.
    dirty_room: u64,
    waiting_for_room: VecDeque<usize>,
    /// Volumes whose write-backs have moved on, see [`Engine::settle`].
    to_write_back: Vec<usize>,
    timers: Timers,
    ahead: Option<Ahead>,
    parts: Slab<Part>,
    parents: Slab<Parent>,
    events: VecDeque<Event>,
    now: Instant,
    serial: u64,
    seed: u64,
}

const UNCACHED_CAPS: GateCaps = GateCaps {
    iops: Cap::HostUncachedIops,
    burst_iops: Cap::HostUncachedBurstIops,
    bytes: Cap::HostUncachedBytes,
    burst_bytes: Cap::HostUncachedBurstBytes,
};

const WRITE_CAPS: GateCaps = GateCaps {
    iops: Cap::HostWriteIops,
    burst_iops: Cap::HostWriteIops,
    bytes: Cap::HostWriteBytes,
    burst_bytes: Cap::HostWriteBytes,
};

const CACHED_CAPS: GateCaps = GateCaps {
    iops: Cap::HostCachedIops,
    burst_iops: Cap::HostCachedBurstIops,
    bytes: Cap::HostCachedBytes,
    burst_bytes: Cap::HostCachedBurstBytes,
};

const LOG_CAPS: GateCaps = GateCaps {
    iops: Cap::LogRate,
    burst_iops: Cap::LogRate,
    bytes: Cap::LogRate,
    burst_bytes: Cap::LogRate,
};

/// Builds the log gate's limits: throughput only, no burst.
fn log_limits(rate: Option<Limit>) -> GateLimits {
    GateLimits { iops: None, bytes: rate.map(|limit| Limit { burst: None, ..limit }) }
}

/// Operations alone and bytes alone.
fn sides(limits: &GateLimits) -> [GateLimits; 2] {
    [GateLimits { bytes: None, ..*limits }, GateLimits { iops: None, ..*limits }]
}

impl Engine {
    /// Compiles `spec`.
    ///
    /// # Errors
    ///
    /// [`SpecError`] if a device or a cache mode does not fit the rest.
    pub fn new(spec: HostSpec) -> Result<Self, SpecError> {
        spec.check()?;
        let count = spec.volumes.len();
        let writes = spec.uncached_writes.unwrap_or_default();
        let [uncached, cached, writes] = [&spec.uncached, &spec.cached, &writes].map(sides);
        let mut gates: Vec<Gate> = Vec::new();
        gates.extend(uncached.map(|side| Gate::shared(UNCACHED_CAPS, &side, count)));
        gates.extend(cached.map(|side| Gate::shared(CACHED_CAPS, &side, count)));
        gates.push(Gate::shared(LOG_CAPS, &log_limits(spec.log_rate), count));
        gates.extend(writes.map(|side| Gate::shared(WRITE_CAPS, &side, count)));
        gates.iter_mut().for_each(|gate| gate.fill(spec.credits, Instant::ZERO));
        gates.extend(spec.volumes.iter().map(|volume| {
            let mut gate = Gate::for_disk(&volume.limits.gate);
            gate.fill(volume.credits, Instant::ZERO);
            gate
        }));
        let cache = spec.cache.map(|c| {
            let blobs = BlobCache::new(c.capacity.get(), count);
            (c, blobs)
        });
        let mut engine = Self {
            devices: spec.devices,
            sizes: Vec::new(),
            volumes: spec.volumes.into_iter().map(Volume::new).collect(),
            gates,
            has_separate_writes: spec.uncached_writes.is_some(),
            vacant: Vec::new(),
            // Dirty blocks are in the cache, so its capacity limits them.
            dirty_room: cache
                .as_ref()
                .map_or(0, |(spec, _)| spec.dirty_limit.min(spec.capacity).get() / BLOCK),
            cache,
            dirty_blocks: 0,
            waiting_for_room: VecDeque::new(),
            to_write_back: Vec::new(),
            timers: Timers::default(),
            ahead: None,
            parts: Slab::new(),
            parents: Slab::new(),
            events: VecDeque::new(),
            now: Instant::ZERO,
            serial: 0,
            seed: spec.seed,
        };
        engine.measure();
        Ok(engine)
    }

    /// Computes the sizes of the devices.
    fn measure(&mut self) {
        let size = |volume: &usize| self.volumes[*volume].spec.size.get();
        let sizes = self.devices.iter().map(|device| match device {
            DeviceSpec::Volume(volume) => size(volume),
            DeviceSpec::Stripe { unit, columns } => {
                let smallest = columns.iter().map(size).min().unwrap_or(0);
                smallest / unit.get() * unit.get() * columns.len() as u64
            }
        });
        self.sizes = sizes.collect();
    }

    /// Takes a request that came at `now`.
    ///
    /// # Errors
    ///
    /// [`Refused`] if the device cannot do it; nothing is changed then.
    #[inline]
    pub fn handle_request(&mut self, now: Instant, request: &Request) -> Result<(), Refused> {
        self.advance(now);
        let now = self.now;
        let size = self.device_size(request.device).ok_or(Refused::NoDevice)?;
        if request.op != Op::Flush {
            if request.len == 0 || request.len > MAX_REQUEST {
                return Err(Refused::BadLength);
            }
            let end = request.offset.checked_add(request.len).ok_or(Refused::OutOfRange)?;
            if end > size.get() {
                return Err(Refused::OutOfRange);
            }
        }
        if self.ahead.is_some() {
            self.admit_ahead(request, now);
        } else {
            self.route_to_columns(request, now);
            self.settle(now);
        }
        Ok(())
    }

    /// Processes all deadlines until `now`.
    #[inline]
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
    }

    /// Processes deadlines until `now`, but stops at the first instant that has an event. Returns
    /// the time reached. A driver that waits only for events gets the same ones at the same times
    /// as with [`Self::handle_timeout`] at each deadline.
    #[inline]
    pub fn handle_timeout_until_event(&mut self, now: Instant) -> Instant {
        let until = |own: &Self| if own.events.is_empty() { now } else { own.now.min(now) };
        while let Some((at, alarm)) = self.timers.expired(until(self)) {
            self.handle_alarm(at, alarm);
        }
        self.now
    }

    /// Estimates the wait of a request that came at `now`: the longest backlog of the gates on
    /// its path. The cache is not consulted.
    pub fn backlog(&mut self, now: Instant, device: DeviceId) -> Span {
        self.advance(now);
        let Some(device) = self.devices.get(device.0) else { return Span::ZERO };
        let columns = device.columns().iter();
        let at = |volume: usize| {
            let spec = &self.volumes[volume].spec;
            let is_remote = spec.place == Place::Remote;
            let uncached = is_remote.then_some([UNCACHED_IOPS, UNCACHED_BYTES]);
            let writes =
                (is_remote && self.has_separate_writes).then_some([WRITE_IOPS, WRITE_BYTES]);
            let is_cached = !is_remote || spec.cache != CacheMode::None;
            let cached = is_cached.then_some([CACHED_IOPS, CACHED_BYTES]);
            let log = spec.log.then_some(LOG);
            let alone = [disk_gate(volume)].into_iter().chain(log);
            let alone = alone.map(|gate| self.gates[gate].backlog(volume, None, self.now));
            let pairs =
                [uncached, writes, cached].into_iter().flatten().flat_map(|[iops, bytes]| {
                    let (iops, bytes) = (&self.gates[iops], &self.gates[bytes]);
                    let at_bytes = bytes.backlog(volume, Some(iops), self.now);
                    [iops.backlog(volume, None, self.now), at_bytes]
                });
            alone.chain(pairs).max()
        };
        columns.filter_map(|volume| at(*volume)).max().unwrap_or(Span::ZERO)
    }

    /// Returns the next deadline.
    #[must_use]
    #[inline]
    pub fn poll_deadline(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Returns the next event, in order of time.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Counts the requests in flight.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.outstanding_tags().len()
    }

    /// Returns the tags of the requests in flight.
    #[must_use]
    pub fn outstanding_tags(&self) -> Vec<u64> {
        let parents = self.parents.iter().map(|(_, parent)| parent.tag);
        let alone = self.parts.iter().filter_map(|(_, part)| match part.owner {
            Owner::Request { tag, .. } => Some(tag),
            Owner::Stripe { .. } | Owner::WriteBack(_) => None,
        });
        let ahead = self.ahead.iter().flat_map(Ahead::tags);
        parents.chain(alone).chain(ahead).collect()
    }

    /// Returns the size of a device. A stripe has the size of its smallest column, in whole
    /// units, times the number of columns.
    #[must_use]
    pub fn device_size(&self, device: DeviceId) -> Option<Bytes> {
        self.sizes.get(device.0).copied().map(Bytes::new)
    }

    /// Returns the counters of a volume; on a host with fixed limits as of the last call of
    /// [`settle_totals`](Self::settle_totals).
    #[must_use]
    pub fn totals(&self, volume: VolumeId) -> Option<&Totals> {
        self.volumes.get(volume.0).map(|v| &v.totals)
    }

    /// Returns the current specification of a volume.
    #[must_use]
    pub fn volume(&self, volume: VolumeId) -> Option<&VolumeSpec> {
        self.volumes.get(volume.0).map(|v| &v.spec)
    }

    /// Returns the bytes in the host cache.
    #[must_use]
    pub fn cache_resident(&self) -> Bytes {
        Bytes::new(self.cache.as_ref().map_or(0, |(_, blobs)| blobs.resident_bytes()))
    }

    /// Returns the burst credits left at `cap` of a volume (`Disk*`) or of the host.
    #[must_use]
    pub fn credits(&self, volume: VolumeId, cap: Cap) -> Option<u64> {
        self.bucket(self.now, volume, cap).map(|(left, _)| left)
    }

    /// Returns the burst credits left at `now`, and those of a full bucket. An idle engine earns
    /// credits without being called, so `now` may be later than its last event.
    #[must_use]
    pub fn bucket(&self, now: Instant, volume: VolumeId, cap: Cap) -> Option<(u64, u64)> {
        let gate = match cap {
            Cap::DiskIops | Cap::DiskBytes => disk_gate(volume.0),
            Cap::HostUncachedIops => UNCACHED_IOPS,
            Cap::HostUncachedBytes => UNCACHED_BYTES,
            Cap::HostCachedIops => CACHED_IOPS,
            Cap::HostCachedBytes => CACHED_BYTES,
            _ => return None,
        };
        self.gates.get(gate)?.credits(cap, self.now.max(now))
    }

    fn advance(&mut self, now: Instant) {
        while let Some((at, alarm)) = self.timers.expired(now) {
            self.handle_alarm(at, alarm);
        }
        self.now = self.now.max(now);
    }

    fn handle_alarm(&mut self, at: Instant, alarm: Alarm) {
        self.now = at;
        match alarm {
            Alarm::Medium(part) => self.finish(part as usize, at),
            Alarm::Ahead(request) => self.finish_ahead(request as usize),
            Alarm::Gate(gate) => {
                let gate = gate as usize;
                if self.gates[gate].head_due != Some(at) {
                    // The gate's limits have changed since.
                } else if self.ahead.is_some() {
                    self.release_ahead(gate, at);
                } else {
                    self.release(gate, at);
                }
            }
            Alarm::Writeback(volume) => {
                let volume = volume as usize;
                // An alarm that is not set belongs to a removed volume.
                if core::mem::take(&mut self.volumes[volume].dirty.alarm_set) {
                    self.volumes[volume].dirty.draining = true;
                    self.write_back(volume, at);
                }
            }
        }
        self.settle(at);
    }
}

const _: () = assert!(MAX_REQUEST <= MAX_COST, "a meter takes every request at once");

#[cfg(test)]
mod tests;
