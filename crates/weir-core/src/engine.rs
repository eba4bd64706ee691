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

use crate::cache::BlobCache;
use crate::gate::{Arrival, Gate, GateCaps};
use crate::spec::{
    CacheMode, CacheSpec, DeviceSpec, DiskLimits, GateLimits, HostSpec, Place, SpecError,
    VolumeSpec,
};
use crate::stripe;
use crate::timers::{Alarm, Timers};
use crate::waits::{Cap, Waits};
use crate::writeback::{Dirty, WriteBack};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use slab::Slab;
use weir_units::{Bytes, Instant, Span};

mod dirty;
mod types;

pub use types::{Completion, DeviceId, Event, MAX_REQUEST, Op, Refused, Request, Totals, VolumeId};

/// Which gates a part still has to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Route(u8);

impl Route {
    const DISK: u8 = 1;
    const UNCACHED: u8 = 2;
    const CACHED: u8 = 4;
}

/// Whom a part belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// A request of its own.
    Request { tag: u64, device: DeviceId },
    /// One column's share of a striped request.
    Stripe { parent: usize },
    /// The cache, writing back.
    WriteBack(WriteBack),
}

/// What travels through the gates: a request, or what one volume gets of it.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) volume: usize,
    pub(crate) operations: u32,
    pub(crate) bytes: u32,
    /// When it came to the gate where it is.
    pub(crate) at_gate: Instant,
    pub(crate) waits: Waits,
    /// Who is behind it in the queue where it waits.
    pub(crate) next: Option<usize>,
    pub(crate) start_tag: u64,
    op: Op,
    route: Route,
    hit: bool,
    owner: Owner,
    offset: u64,
    /// Bytes of the range; `bytes` is what the gates and the medium count of it.
    len: u64,
    arrived: Instant,
    medium: Span,
    serial: u64,
}

/// A striped request that is not whole yet.
#[derive(Debug)]
struct Parent {
    tag: u64,
    device: DeviceId,
    op: Op,
    len: u64,
    arrived: Instant,
    parts_left: usize,
    hit: bool,
}

#[derive(Debug)]
struct Volume {
    spec: VolumeSpec,
    totals: Totals,
    dirty: Dirty,
}

/// One host, compiled.
#[derive(Debug)]
pub struct Engine {
    devices: Vec<DeviceSpec>,
    /// The size of each device.
    sizes: Vec<u64>,
    volumes: Vec<Volume>,
    /// The disk gate of each volume, then the host's two.
    gates: Vec<Gate>,
    cache: Option<(CacheSpec, BlobCache)>,
    dirty_blocks: u64,
    waiting_for_room: VecDeque<usize>,
    /// Volumes whose write-backs have moved on, see [`Engine::settle`].
    to_write_back: Vec<usize>,
    timers: Timers,
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

const CACHED_CAPS: GateCaps = GateCaps {
    iops: Cap::HostCachedIops,
    burst_iops: Cap::HostCachedBurstIops,
    bytes: Cap::HostCachedBytes,
    burst_bytes: Cap::HostCachedBurstBytes,
};

impl Engine {
    /// Compiles `spec`.
    ///
    /// # Errors
    ///
    /// [`SpecError`] if a device or a cache mode does not fit the rest.
    pub fn new(spec: HostSpec) -> Result<Self, SpecError> {
        check(&spec)?;
        let count = spec.volumes.len();
        let mut gates: Vec<Gate> =
            spec.volumes.iter().map(|v| Gate::of_disk(&v.limits.gate)).collect();
        gates.push(Gate::shared(UNCACHED_CAPS, &spec.uncached, count));
        gates.push(Gate::shared(CACHED_CAPS, &spec.cached, count));
        let cache = spec.cache.map(|c| {
            let blobs = BlobCache::new(c.capacity.get(), count);
            (c, blobs)
        });
        let volume = |spec| Volume { spec, totals: Totals::default(), dirty: Dirty::default() };
        let mut engine = Self {
            devices: spec.devices,
            sizes: Vec::new(),
            volumes: spec.volumes.into_iter().map(volume).collect(),
            gates,
            cache,
            dirty_blocks: 0,
            waiting_for_room: VecDeque::new(),
            to_write_back: Vec::new(),
            timers: Timers::default(),
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

    /// Works out the sizes of the devices.
    fn measure(&mut self) {
        let size = |volume: usize| self.volumes[volume].spec.size.get();
        let of = |device: &DeviceSpec| match device {
            DeviceSpec::Volume(volume) => size(*volume),
            DeviceSpec::Stripe { unit, columns } => {
                let smallest = columns.iter().map(|v| size(*v)).min().unwrap_or(0);
                smallest / unit.get() * unit.get() * columns.len() as u64
            }
        };
        self.sizes = self.devices.iter().map(of).collect();
    }

    /// Takes a request that came at `now`.
    ///
    /// # Errors
    ///
    /// [`Refused`] if the device cannot do it; nothing is changed then.
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
        let owner = Owner::Request { tag: request.tag, device: request.device };
        let whole = match &self.devices[request.device.0] {
            DeviceSpec::Volume(volume) => Some((*volume, request.offset)),
            // Most requests of a database fit one unit of a stripe.
            DeviceSpec::Stripe { unit, columns } => one_column(unit.get(), columns, request),
        };
        if let Some((volume, offset)) = whole {
            let key = self.new_part(volume, request.op, offset, request.len, owner);
            self.start(key, now);
        } else {
            self.split(request, now);
        }
        self.settle(now);
        Ok(())
    }

    /// Does what was due until `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
    }

    /// When something is due next.
    #[must_use]
    pub fn poll_deadline(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// The next thing to tell, in order of time.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Requests taken and not completed.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.outstanding_tags().len()
    }

    /// The tags of the requests taken and not completed.
    #[must_use]
    pub fn outstanding_tags(&self) -> Vec<u64> {
        let parents = self.parents.iter().map(|(_, parent)| parent.tag);
        let alone = self.parts.iter().filter_map(|(_, part)| match part.owner {
            Owner::Request { tag, .. } => Some(tag),
            Owner::Stripe { .. } | Owner::WriteBack(_) => None,
        });
        parents.chain(alone).collect()
    }

    /// The size of a device: of a stripe, what its smallest column allows times
    /// the columns, in whole stripe units.
    #[must_use]
    pub fn device_size(&self, device: DeviceId) -> Option<Bytes> {
        self.sizes.get(device.0).copied().map(Bytes::new)
    }

    /// The counters of a volume.
    #[must_use]
    pub fn totals(&self, volume: VolumeId) -> Option<&Totals> {
        self.volumes.get(volume.0).map(|v| &v.totals)
    }

    /// What a volume is now.
    #[must_use]
    pub fn volume(&self, volume: VolumeId) -> Option<&VolumeSpec> {
        self.volumes.get(volume.0).map(|v| &v.spec)
    }

    /// Bytes that the host cache holds.
    #[must_use]
    pub fn cache_resident(&self) -> Bytes {
        Bytes::new(self.cache.as_ref().map_or(0, |(_, blobs)| blobs.resident_bytes()))
    }

    /// Burst credits left at `cap` of a volume (`Disk*`) or of the host.
    #[must_use]
    pub fn credits(&self, volume: VolumeId, cap: Cap) -> Option<u64> {
        let gate = match cap {
            Cap::DiskIops | Cap::DiskBytes => volume.0,
            Cap::HostUncachedIops | Cap::HostUncachedBytes => self.volumes.len(),
            Cap::HostCachedIops | Cap::HostCachedBytes => self.volumes.len() + 1,
            _ => return None,
        };
        self.gates.get(gate)?.credits(cap, self.now)
    }

    /// Gives a volume new limits at `now`; requests that wait are held to them.
    ///
    /// # Errors
    ///
    /// [`Refused::NoDevice`] if there is no such volume.
    pub fn set_disk_limits(
        &mut self,
        now: Instant,
        volume: VolumeId,
        limits: DiskLimits,
    ) -> Result<(), Refused> {
        self.advance(now);
        self.volumes.get_mut(volume.0).ok_or(Refused::NoDevice)?.spec.limits = limits;
        self.set_gate_limits(volume.0, &limits.gate);
        Ok(())
    }

    /// Gives the host new limits at `now`.
    pub fn set_host_limits(&mut self, now: Instant, uncached: &GateLimits, cached: &GateLimits) {
        self.advance(now);
        self.set_gate_limits(self.volumes.len(), uncached);
        self.set_gate_limits(self.volumes.len() + 1, cached);
    }

    /// Gives a volume a new size at `now`. What is under way completes.
    ///
    /// # Errors
    ///
    /// [`Refused::NoDevice`] if there is no such volume.
    pub fn set_size(&mut self, now: Instant, volume: VolumeId, size: Bytes) -> Result<(), Refused> {
        self.advance(now);
        self.volumes.get_mut(volume.0).ok_or(Refused::NoDevice)?.spec.size = size;
        self.measure();
        Ok(())
    }

    /// Gives a volume a new cache mode at `now`. The volume starts cold; what a
    /// ReadWrite cache still owes is written back at once.
    ///
    /// # Errors
    ///
    /// [`Refused::NoDevice`] if there is no such volume or the host has no cache.
    pub fn set_cache_mode(
        &mut self,
        now: Instant,
        volume: VolumeId,
        mode: CacheMode,
    ) -> Result<(), Refused> {
        self.advance(now);
        let held = self.volumes.get_mut(volume.0).ok_or(Refused::NoDevice)?;
        match &mut self.cache {
            Some((_, blobs)) => blobs.forget(volume.0),
            None if mode == CacheMode::None => {}
            None => return Err(Refused::NoDevice),
        }
        held.spec.cache = mode;
        held.dirty.draining = true;
        self.write_back(volume.0, self.now);
        self.settle(self.now);
        Ok(())
    }

    /// Puts a range of a device into the cache, as a warm-up would have.
    pub fn warm(&mut self, device: DeviceId, offset: u64, len: u64) {
        let Some((_, blobs)) = &mut self.cache else { return };
        match self.devices.get(device.0) {
            Some(DeviceSpec::Volume(volume)) => blobs.insert(*volume, offset, len, false),
            Some(DeviceSpec::Stripe { unit, columns }) => {
                for piece in stripe::pieces(unit.get(), columns.len(), offset, len) {
                    blobs.insert(columns[piece.column], piece.offset, piece.len, false);
                }
            }
            None => {}
        }
    }

    /// The host crashes at `now`: every request under way is gone without a
    /// completion, the cache is empty, and what a ReadWrite cache had not written
    /// back is lost. Returns those ranges, per volume.
    pub fn crash(&mut self, now: Instant) -> Vec<(VolumeId, u64, u64)> {
        self.advance(now);
        let mut lost = Vec::new();
        for (id, volume) in self.volumes.iter_mut().enumerate() {
            let ranges = volume.dirty.ranges();
            lost.extend(ranges.into_iter().map(|(offset, len)| (VolumeId(id), offset, len)));
            volume.dirty = Dirty::default();
            if let Some((_, blobs)) = &mut self.cache {
                blobs.forget(id);
            }
        }
        for (_, part) in &self.parts {
            if let Owner::WriteBack(run) = part.owner {
                lost.push((VolumeId(part.volume), run.offset, run.len));
            }
        }
        self.gates.iter_mut().for_each(Gate::clear);
        self.timers.clear();
        self.parts.clear();
        self.parents.clear();
        self.events.clear();
        self.waiting_for_room.clear();
        self.to_write_back.clear();
        self.dirty_blocks = 0;
        lost
    }

    fn advance(&mut self, now: Instant) {
        while let Some((at, alarm)) = self.timers.expired(now) {
            self.now = at;
            match alarm {
                Alarm::Medium(part) => self.finish(part as usize, at),
                Alarm::Gate(gate) => {
                    let gate = gate as usize;
                    if self.gates[gate].head_due == Some(at) {
                        self.release(gate, at);
                    }
                }
                Alarm::Writeback(volume) => {
                    let volume = volume as usize;
                    self.volumes[volume].dirty.alarm_set = false;
                    self.volumes[volume].dirty.draining = true;
                    self.write_back(volume, at);
                }
            }
            self.settle(at);
        }
        self.now = self.now.max(now);
    }

    fn new_part(&mut self, volume: usize, op: Op, offset: u64, len: u64, owner: Owner) -> usize {
        let spec = &self.volumes[volume].spec;
        let (operations, bytes) = match op {
            Op::Flush => (0, 0),
            Op::Discard => (1, 0),
            Op::Read | Op::Write | Op::WriteThrough => {
                (spec.limits.io_unit.map_or(1, |unit| len.div_ceil(unit.get())), len)
            }
        };
        self.serial += 1;
        self.parts.insert(Part {
            volume,
            operations: narrow(operations),
            bytes: narrow(bytes),
            at_gate: self.now,
            waits: Waits::default(),
            next: None,
            start_tag: 0,
            op,
            route: Route(0),
            hit: false,
            owner,
            offset,
            len: if op == Op::Flush { 0 } else { len },
            arrived: self.now,
            medium: Span::ZERO,
            serial: self.serial,
        })
    }

    fn split(&mut self, request: &Request, now: Instant) {
        let DeviceSpec::Stripe { unit, columns } = self.devices[request.device.0].clone() else {
            return;
        };
        let parent = self.parents.insert(Parent {
            tag: request.tag,
            device: request.device,
            op: request.op,
            len: request.len,
            arrived: now,
            parts_left: 0,
            hit: true,
        });
        let owner = Owner::Stripe { parent };
        let pieces = || stripe::pieces(unit.get(), columns.len(), request.offset, request.len);
        let keys: Vec<usize> = match request.op {
            Op::Flush => {
                columns.iter().map(|v| self.new_part(*v, Op::Flush, 0, 0, owner)).collect()
            }
            // What a discard covers of a column is one range, so one operation.
            Op::Discard => (0..columns.len())
                .filter_map(|column| {
                    let (offset, len) = (request.offset, request.len);
                    let width = columns.len();
                    let own = stripe::column_range(unit.get(), width, column, offset, len)?;
                    Some(self.new_part(columns[column], Op::Discard, own.0, own.1, owner))
                })
                .collect(),
            op => pieces()
                .map(|p| self.new_part(columns[p.column], op, p.offset, p.len, owner))
                .collect(),
        };
        self.parents[parent].parts_left = keys.len();
        for key in keys {
            self.start(key, now);
        }
    }

    /// Looks into the cache and sends a part on its way.
    fn start(&mut self, key: usize, now: Instant) {
        let part = &self.parts[key];
        let (volume, op, offset, len) = (part.volume, part.op, part.offset, part.len);
        let spec = &self.volumes[volume].spec;
        let (mode, place) = (spec.cache, spec.place);
        if op == Op::Flush {
            if self.volumes[volume].dirty.flush(key) {
                self.finish(key, now);
            } else {
                self.write_back(volume, now);
            }
            return;
        }
        if mode == CacheMode::ReadWrite && op == Op::Write && !self.take_dirty(key, now) {
            return;
        }
        let disk = Route::DISK | if place == Place::Remote { Route::UNCACHED } else { 0 };
        let cached = if place == Place::Local { Route::CACHED } else { 0 };
        let mut hit = false;
        let route = match (mode, op) {
            (CacheMode::None, _) => disk | cached,
            (CacheMode::ReadWrite, Op::Write) => {
                hit = true;
                Route::CACHED
            }
            (_, Op::Read) => {
                let serves =
                    |(_, blobs): &mut (CacheSpec, BlobCache)| blobs.serves(volume, offset, len);
                hit = self.cache.as_mut().is_some_and(serves);
                if hit { Route::CACHED } else { disk | Route::CACHED }
            }
            _ => disk | Route::CACHED,
        };
        if op == Op::Discard {
            self.dirty_blocks -= self.volumes[volume].dirty.discard(offset, len);
        }
        let part = &mut self.parts[key];
        part.route = Route(route);
        part.hit = hit;
        self.proceed(key, now);
    }

    /// Sends a part through the gates that it still has to pass, then to the medium.
    fn proceed(&mut self, key: usize, now: Instant) {
        loop {
            let part = &mut self.parts[key];
            if part.route.0 == 0 {
                self.enter_medium(key, now);
                return;
            }
            let bit = part.route.0 & part.route.0.wrapping_neg();
            part.route.0 ^= bit;
            part.at_gate = now;
            let gate = match bit {
                Route::DISK => part.volume,
                Route::UNCACHED => self.volumes.len(),
                _ => self.volumes.len() + 1,
            };
            if self.gates[gate].is_open() {
                continue;
            }
            match self.gates[gate].arrive(key, &mut self.parts, now) {
                Arrival::Passed => {}
                Arrival::Queued => return,
                Arrival::Head(due) => {
                    self.set_gate_alarm(gate, due);
                    return;
                }
            }
        }
    }

    fn set_gate_alarm(&mut self, gate: usize, due: Instant) {
        self.gates[gate].head_due = Some(due);
        self.timers.set(due, Alarm::Gate(narrow(gate as u64)));
    }

    /// The head of a gate goes, and whoever may go with it.
    fn release(&mut self, gate: usize, now: Instant) {
        while let Some(key) = self.gates[gate].release_head(&mut self.parts) {
            let next = self.gates[gate].next_head(&mut self.parts);
            // The next is in line before this one is gone on, so that whatever
            // this one causes at this gate comes behind.
            let waits = next.is_some_and(|due| due > now);
            if let Some(due) = next
                && waits
            {
                self.set_gate_alarm(gate, due);
            }
            self.proceed(key, now);
            if waits {
                return;
            }
        }
    }

    fn enter_medium(&mut self, key: usize, now: Instant) {
        let part = &mut self.parts[key];
        let spec = &self.volumes[part.volume].spec;
        let latency = match (&self.cache, part.hit, part.op) {
            (Some((cache, _)), true, _) => &cache.latency,
            (_, _, Op::Read) => &spec.medium.read,
            _ => &spec.medium.write,
        };
        part.medium = latency.draw(self.seed, part.serial, u64::from(part.bytes));
        if part.medium == Span::ZERO {
            self.finish(key, now);
        } else {
            self.timers.set(now + part.medium, Alarm::Medium(narrow(key as u64)));
        }
    }

    fn finish(&mut self, key: usize, now: Instant) {
        let part = self.parts.remove(key);
        let len = part.len;
        let volume = &mut self.volumes[part.volume];
        if let Owner::WriteBack(run) = part.owner {
            volume.totals.written_back += len;
            let done = volume.dirty.written(&run);
            let volume = VolumeId(part.volume);
            self.events.push_back(Event::WrittenBack { volume, offset: run.offset, len: run.len });
            for flush in done {
                let waited = now - self.parts[flush].arrived;
                self.parts[flush].waits.charge(Cap::CacheWriteback, waited);
                self.finish(flush, now);
            }
            self.to_write_back.push(part.volume);
            return;
        }
        count(&mut volume.totals, &part);
        if volume.spec.cache != CacheMode::None
            && let Some((_, blobs)) = &mut self.cache
        {
            match part.op {
                Op::Read if !part.hit => blobs.insert(part.volume, part.offset, len, false),
                Op::Write | Op::WriteThrough => blobs.insert(part.volume, part.offset, len, true),
                _ => {}
            }
        }
        match part.owner {
            Owner::Request { tag, device } => self.complete(Completion {
                tag,
                device,
                op: part.op,
                len,
                arrived: part.arrived,
                at: now,
                waits: part.waits,
                medium: part.medium,
                hit: part.hit,
            }),
            Owner::Stripe { parent } => self.finish_column(parent, &part, now),
            Owner::WriteBack(_) => {}
        }
    }

    fn finish_column(&mut self, key: usize, part: &Part, now: Instant) {
        let parent = &mut self.parents[key];
        parent.parts_left -= 1;
        parent.hit &= part.hit;
        if parent.parts_left > 0 {
            return;
        }
        let parent = self.parents.remove(key);
        self.complete(Completion {
            tag: parent.tag,
            device: parent.device,
            op: parent.op,
            len: parent.len,
            arrived: parent.arrived,
            at: now,
            waits: part.waits,
            medium: part.medium,
            hit: parent.hit,
        });
    }

    fn complete(&mut self, completion: Completion) {
        self.events.push_back(Event::Completed(completion));
    }

    fn set_gate_limits(&mut self, gate: usize, limits: &GateLimits) {
        let bit = match gate.checked_sub(self.volumes.len()) {
            None => Route::DISK,
            Some(0) => Route::UNCACHED,
            Some(_) => Route::CACHED,
        };
        for key in self.gates[gate].set_limits(limits, &mut self.parts, self.now) {
            self.parts[key].route.0 |= bit;
            self.proceed(key, self.now);
        }
        self.settle(self.now);
    }
}

fn check(spec: &HostSpec) -> Result<(), SpecError> {
    if spec.volumes.len() >= 1 << 31 {
        return Err(SpecError::TooMany);
    }
    for (device, target) in spec.devices.iter().enumerate() {
        let columns = match target {
            DeviceSpec::Volume(volume) => core::slice::from_ref(volume),
            DeviceSpec::Stripe { unit, columns } => {
                let twice = columns.iter().enumerate().any(|(i, v)| columns[..i].contains(v));
                if columns.len() < 2 || unit.get() == 0 || twice {
                    return Err(SpecError::BadStripe { device });
                }
                columns
            }
        };
        if let Some(volume) = columns.iter().find(|v| **v >= spec.volumes.len()) {
            return Err(SpecError::NoSuchVolume { device, volume: *volume });
        }
    }
    let uncached = spec.volumes.iter().position(|v| v.cache != CacheMode::None);
    match uncached {
        Some(volume) if spec.cache.is_none() => Err(SpecError::NoCache { volume }),
        _ => Ok(()),
    }
}

/// The volume and offset of a request that touches one unit of a stripe only.
fn one_column(unit: u64, columns: &[usize], request: &Request) -> Option<(usize, u64)> {
    if request.op == Op::Flush || request.offset % unit + request.len > unit {
        return None;
    }
    let piece = stripe::pieces(unit, columns.len(), request.offset, request.len).next()?;
    Some((columns[piece.column], piece.offset))
}

fn count(totals: &mut Totals, part: &Part) {
    let len = part.len;
    match part.op {
        Op::Read => {
            totals.reads += 1;
            totals.read_bytes += len;
            totals.hits += u64::from(part.hit);
        }
        Op::Write | Op::WriteThrough => {
            totals.writes += 1;
            totals.write_bytes += len;
        }
        Op::Discard => totals.discards += 1,
        Op::Flush => {}
    }
    if !part.hit {
        totals.counted += u64::from(part.operations);
    }
    totals.waits += part.waits;
    totals.medium += part.medium;
}

/// Counts and indices that are bounded well below 2^32 (requests by
/// [`MAX_REQUEST`], volumes by [`check`], parts by memory).
#[expect(clippy::cast_possible_truncation, reason = "bounded by the callers, see above")]
fn narrow(n: u64) -> u32 {
    debug_assert!(u32::try_from(n).is_ok(), "{n} does not fit");
    n as u32
}

#[cfg(test)]
mod tests;
