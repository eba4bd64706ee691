//! The data path of one host: requests in, replies out, `now` as an argument.
//!
//! No socket and no clock here, so a test drives it with its own time and gets
//! what the simulator gets. Five steps, one method each:
//!
//! | step | where |
//! |---|---|
//! | take and parse | the connection, with [`weir_proto::server::parse_request`] |
//! | admit | [`HostLoop::submit`]: writes are stored, the engine gets the request |
//! | execute | [`HostLoop::advance`]: what the engine lets go is read or synced |
//! | complete | the same: the reply is appended to the client's buffer |
//! | come back | `HostLoop::finished`: what had to wait for a medium |

use crate::error::{ServerError, errno_of};
use crate::volume::{DeviceMap, Keep, VolumeBytes, VolumeData};
use crate::worker::{Finished, Job, ReadJob};
use slab::Slab;
use std::collections::HashMap;
use std::sync::Arc;
use weir_core::{
    CacheMode, Completion, DeviceId, DeviceSpec, DiskLimits, Engine, Event, GateLimits, HostSpec,
    Op, Request as EngineRequest, TraceHash, VolumeId, VolumeSpec,
};
use weir_proto::{BlockState, Command, CommandFlags, Errno, Extent, Request, reply};
use weir_store::{ExtentKind, Store, StoreError};
use weir_units::{Bytes, Instant, Span};

/// Extents in one answer to `BLOCK_STATUS`.
const MAX_EXTENTS: usize = 1024;
/// Pieces of a stripe looked at for one such answer.
const MAX_STATUS_PIECES: u64 = 1024;

/// Who sent a request, for the reactor to find again. Never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientId(pub u64);

/// A client's reply buffer, lent for one reply.
#[derive(Debug)]
pub struct ReplyTo<'a> {
    /// Replies are appended here.
    pub out: &'a mut Vec<u8>,
    /// Whether reads are answered with structured replies.
    pub structured: bool,
    /// The client's number for `base:allocation`.
    pub meta_context: Option<u32>,
    /// Requests taken from this client and not yet answered.
    pub in_flight: &'a mut usize,
    /// Bytes that workers are reading for this client.
    pub reading: &'a mut usize,
    /// The client leaves so many replies unread that no data should be added
    /// until [`HostLoop::resume`].
    pub full: bool,
}

/// Finds a client's buffer; `None` if the client has gone.
pub trait Replies {
    /// The buffer of `client`.
    fn reply_to(&mut self, client: ClientId) -> Option<ReplyTo<'_>>;
}

/// Counters of a device since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Served {
    /// Requests answered.
    pub requests: u64,
    /// Requests answered with an error.
    pub errors: u64,
    /// Time between a request's arrival and the moment it was due, of all.
    pub governed: Span,
    /// Time between that moment and the reply, of all: late wake-ups, reading
    /// and syncing. The two together are the latency that clients saw from Weir.
    pub overhead: Span,
}

#[derive(Debug)]
struct Pending {
    client: ClientId,
    device: usize,
    request: Request,
    arrived: Instant,
    due: Instant,
    /// A worker has it, or will have it: it ends even if the host crashes.
    on_worker: bool,
}

#[derive(Debug)]
struct Device {
    map: DeviceMap,
    served: Served,
    /// Requests whose sync is running, and those that need the next one.
    syncing: Vec<usize>,
    sync_next: Vec<usize>,
}

/// One host being served.
#[derive(Debug)]
pub struct HostLoop {
    engine: Engine,
    devices: Vec<Device>,
    volumes: Vec<VolumeBytes>,
    /// The volumes' stores, for workers.
    stores: Arc<[Arc<dyn Store>]>,
    pending: Slab<Pending>,
    /// Reads that are due and whose client does not take its replies.
    held: HashMap<ClientId, Vec<usize>>,
    jobs: Vec<Job>,
    /// Something was handed to the engine since the last `advance`.
    stirred: bool,
    trace: TraceHash,
}

impl HostLoop {
    /// Compiles `spec` over `volumes`, one for each of its volumes in order.
    ///
    /// # Errors
    ///
    /// [`ServerError::Layout`] if no engine can be made of `spec`.
    pub fn new(spec: HostSpec, volumes: Vec<VolumeData>) -> Result<Self, ServerError> {
        assert_eq!(spec.volumes.len(), volumes.len(), "each volume has a store");
        let devices = spec.devices.iter().map(|device| match device {
            DeviceSpec::Volume(volume) => DeviceMap { volumes: vec![*volume], unit: 0 },
            DeviceSpec::Stripe { unit, columns } => {
                DeviceMap { volumes: columns.clone(), unit: unit.get() }
            }
        });
        let device = |map| Device {
            map,
            served: Served::default(),
            syncing: Vec::new(),
            sync_next: Vec::new(),
        };
        let devices = devices.map(device).collect();
        let engine = Engine::new(spec)
            .map_err(|error| ServerError::Layout(weir_layout::error::Kind::Spec(error)))?;
        Ok(Self {
            engine,
            devices,
            stores: volumes.iter().map(|v| Arc::clone(&v.store)).collect(),
            volumes: volumes.into_iter().map(VolumeBytes::new).collect(),
            pending: Slab::new(),
            held: HashMap::new(),
            jobs: Vec::new(),
            stirred: false,
            trace: TraceHash::default(),
        })
    }

    /// Takes a request that came at `now`. Its reply comes out of
    /// [`advance`](Self::advance), except what is answered here.
    ///
    /// # Errors
    ///
    /// The errno to answer at once.
    pub fn submit(
        &mut self,
        now: Instant,
        client: ClientId,
        device: DeviceId,
        request: &Request,
        payload: &[u8],
    ) -> Result<(), Errno> {
        let admitted = self.admit(now, client, device, request, payload);
        if admitted.is_err() {
            let served = &mut self.devices[device.0].served;
            served.requests += 1;
            served.errors += 1;
        }
        admitted
    }

    fn admit(
        &mut self,
        now: Instant,
        client: ClientId,
        device: DeviceId,
        request: &Request,
        payload: &[u8],
    ) -> Result<(), Errno> {
        let fua = request.flags.contains(CommandFlags::FUA);
        let op = match request.command {
            Command::Read | Command::Cache => Op::Read,
            Command::Write if fua => Op::WriteThrough,
            Command::Write => Op::Write,
            // Zeros that must take their space are written.
            Command::WriteZeroes if request.flags.contains(CommandFlags::NO_HOLE) => {
                Op::WriteThrough
            }
            Command::Trim | Command::WriteZeroes => Op::Discard,
            Command::Flush => Op::Flush,
            Command::BlockStatus | Command::Disconnect => return Err(Errno::Inval),
        };
        self.store(device.0, op, request, payload).map_err(|error| errno_of(&error))?;
        let entry = self.pending.vacant_entry();
        let engine_request = EngineRequest {
            device,
            op,
            offset: request.offset,
            len: u64::from(request.length).min(weir_core::engine::MAX_REQUEST),
            tag: entry.key() as u64,
        };
        self.engine.handle_request(now, &engine_request).map_err(|_| Errno::Inval)?;
        entry.insert(Pending {
            client,
            device: device.0,
            request: *request,
            arrived: now,
            due: now,
            on_worker: false,
        });
        self.stirred = true;
        Ok(())
    }

    /// Keeps the bytes of a request that changes them.
    fn store(
        &mut self,
        device: usize,
        op: Op,
        request: &Request,
        payload: &[u8],
    ) -> Result<(), StoreError> {
        let map = &self.devices[device].map;
        match request.command {
            Command::Trim | Command::WriteZeroes => {
                let may_trim = request.command == Command::Trim
                    || !request.flags.contains(CommandFlags::NO_HOLE);
                let len = u64::from(request.length);
                map.zero(&mut self.volumes, request.offset, len, may_trim)
            }
            Command::Write => {
                let engine = &self.engine;
                let keep = |volume| {
                    let mode = engine.volume(VolumeId(volume)).map(|v| v.cache);
                    let cached = op == Op::Write && mode == Some(CacheMode::ReadWrite);
                    if cached { Keep::InCache } else { Keep::InStore }
                };
                map.write(&mut self.volumes, request.offset, payload, keep)
            }
            _ => Ok(()),
        }
    }

    /// Answers `BLOCK_STATUS`, which passes no gate: it moves no bytes.
    ///
    /// # Errors
    ///
    /// The errno to answer.
    pub fn block_status(
        &self,
        device: DeviceId,
        request: &Request,
        context: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), Errno> {
        let map = &self.devices[device.0].map;
        let one = request.flags.contains(CommandFlags::REQ_ONE);
        let mut len = u64::from(request.length);
        if map.unit != 0 {
            len = len.min(map.unit * MAX_STATUS_PIECES - request.offset % map.unit);
        }
        let max = if one { 1 } else { MAX_EXTENTS };
        let found = map
            .extents(&self.volumes, request.offset, len, max)
            .map_err(|error| errno_of(&error))?;
        let extents: Vec<Extent> = found
            .iter()
            .map(|extent| Extent {
                length: u32::try_from(extent.len).unwrap_or(u32::MAX),
                state: match extent.kind {
                    ExtentKind::Data => BlockState::NONE,
                    ExtentKind::Hole => BlockState::HOLE | BlockState::ZERO,
                },
            })
            .collect();
        reply::block_status(out, request.cookie, context, &extents);
        Ok(())
    }

    /// Does what is due at `now` and appends the replies.
    pub fn advance(&mut self, now: Instant, replies: &mut impl Replies) {
        self.stirred = false;
        self.engine.handle_timeout(now);
        while let Some(event) = self.engine.poll_event() {
            match event {
                Event::WrittenBack { volume, offset, len } => {
                    self.volumes[volume.0].write_back(offset, len);
                }
                Event::Completed(completion) => self.execute(now, &completion, replies),
            }
        }
    }

    /// When [`advance`](Self::advance) is needed next: at once after whatever may
    /// have completed something.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        if self.stirred { Some(Instant::ZERO) } else { self.engine.poll_deadline() }
    }

    fn execute(&mut self, now: Instant, completion: &Completion, replies: &mut impl Replies) {
        self.trace.record(completion);
        let key = usize::try_from(completion.tag).unwrap_or(usize::MAX);
        let pending = &mut self.pending[key];
        pending.due = completion.at;
        let (device, request) = (pending.device, pending.request);
        let needs_sync =
            request.command == Command::Flush || request.flags.contains(CommandFlags::FUA);
        match request.command {
            Command::Read => self.read(now, key, replies),
            _ if needs_sync => self.sync(now, device, key, replies),
            _ => self.answer(now, key, None, replies),
        }
    }

    fn read(&mut self, now: Instant, key: usize, replies: &mut impl Replies) {
        let Pending { client, device, request, .. } = self.pending[key];
        let map = &self.devices[device].map;
        let Some(to) = replies.reply_to(client) else {
            self.settle(now, key, false);
            return;
        };
        if to.full {
            self.held.entry(client).or_default().push(key);
            return;
        }
        let Request { cookie, offset, length, .. } = request;
        let start = to.out.len();
        reply::read_header(to.out, to.structured, cookie, offset, length);
        let data = to.out.len();
        to.out.resize(data + length as usize, 0);
        match map.try_read(&self.volumes, offset, &mut to.out[data..]) {
            Ok(true) => {
                *to.in_flight -= 1;
                self.settle(now, key, false);
            }
            Ok(false) => {
                to.out.truncate(start);
                *to.reading += length as usize;
                let dirty = map.dirty_in(&self.volumes, offset, u64::from(length));
                let (stores, map) = (Arc::clone(&self.stores), map.clone());
                let read = ReadJob { key, stores, map, offset, len: length as usize, dirty };
                self.pending[key].on_worker = true;
                self.jobs.push(Job::Read(Box::new(read)));
            }
            Err(error) => {
                to.out.truncate(start);
                self.answer(now, key, Some(&error), replies);
            }
        }
    }

    /// Goes on with what was held because `client` left its replies unread: it has
    /// taken some, or it has gone.
    pub fn resume(&mut self, now: Instant, client: ClientId, replies: &mut impl Replies) {
        if self.held.is_empty() {
            return;
        }
        for key in self.held.remove(&client).unwrap_or_default() {
            self.read(now, key, replies);
        }
    }

    /// Makes a device durable on behalf of a request. One sync at a time: those
    /// that come meanwhile share the next.
    fn sync(&mut self, now: Instant, device: usize, key: usize, replies: &mut impl Replies) {
        self.devices[device].sync_next.push(key);
        let own = &self.devices[device].map.volumes;
        if own.iter().any(|v| self.volumes[*v].data.may_block) {
            self.pending[key].on_worker = true;
            if self.devices[device].syncing.is_empty() {
                self.start_sync(now, device, replies);
            }
        } else {
            let result = own.iter().try_for_each(|v| {
                self.volumes[*v].settle()?;
                self.volumes[*v].data.store.sync()
            });
            let keys = std::mem::take(&mut self.devices[device].sync_next);
            self.answer_all(now, &keys, result.as_ref().err(), replies);
        }
    }

    /// Starts a sync for those who wait for one, once the stores have what the
    /// cache owes them.
    fn start_sync(&mut self, now: Instant, device: usize, replies: &mut impl Replies) {
        let Device { map, syncing, sync_next, .. } = &mut self.devices[device];
        let keys = std::mem::take(sync_next);
        if keys.is_empty() {
            return;
        }
        let owed = map.volumes.iter().try_for_each(|v| self.volumes[*v].settle());
        if let Err(error) = owed {
            self.answer_all(now, &keys, Some(&error), replies);
            return;
        }
        *syncing = keys;
        let stores = map.volumes.iter().map(|v| Arc::clone(&self.stores[*v])).collect();
        self.jobs.push(Job::Sync { device, stores });
    }

    /// Takes back what a worker did, and answers those who waited for it.
    pub(crate) fn finished(&mut self, now: Instant, done: Finished, replies: &mut impl Replies) {
        match done {
            Finished::Sync { device, result } => {
                let keys = std::mem::take(&mut self.devices[device].syncing);
                self.answer_all(now, &keys, result.as_ref().err(), replies);
                self.start_sync(now, device, replies);
            }
            Finished::Read { key, result } => {
                let Pending { client, request, .. } = self.pending[key];
                if let Some(to) = replies.reply_to(client) {
                    *to.reading -= request.length as usize;
                }
                match result {
                    Ok(data) => self.answer_read(now, key, &data, replies),
                    Err(error) => self.answer(now, key, Some(&error), replies),
                }
            }
        }
    }

    fn answer_read(&mut self, now: Instant, key: usize, data: &[u8], replies: &mut impl Replies) {
        let Pending { client, request, .. } = self.pending[key];
        if let Some(to) = replies.reply_to(client) {
            let Request { cookie, offset, length, .. } = request;
            reply::read_header(to.out, to.structured, cookie, offset, length);
            to.out.extend_from_slice(data);
            *to.in_flight -= 1;
        }
        self.settle(now, key, false);
    }

    fn answer_all(
        &mut self,
        now: Instant,
        keys: &[usize],
        error: Option<&StoreError>,
        replies: &mut impl Replies,
    ) {
        keys.iter().for_each(|key| self.answer(now, *key, error, replies));
    }

    fn answer(
        &mut self,
        now: Instant,
        key: usize,
        error: Option<&StoreError>,
        replies: &mut impl Replies,
    ) {
        let Pending { client, request, .. } = self.pending[key];
        if let Some(to) = replies.reply_to(client) {
            match error {
                None => reply::ok(to.out, request.cookie),
                Some(error) => {
                    let (cookie, errno) = (request.cookie, errno_of(error));
                    reply::error(to.out, to.structured, cookie, errno, &error.to_string());
                }
            }
            *to.in_flight -= 1;
        }
        self.settle(now, key, error.is_some());
    }

    fn settle(&mut self, now: Instant, key: usize, failed: bool) {
        let pending = self.pending.remove(key);
        let served = &mut self.devices[pending.device].served;
        served.requests += 1;
        served.errors += u64::from(failed);
        served.governed += pending.due - pending.arrived;
        served.overhead += now - pending.due;
    }

    /// What has to run on a worker.
    pub(crate) fn take_jobs(&mut self) -> Vec<Job> {
        std::mem::take(&mut self.jobs)
    }

    /// Requests taken and not answered.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.pending.len()
    }

    /// The engine, to read from.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// A fingerprint of all completions so far.
    #[must_use]
    pub fn trace(&self) -> TraceHash {
        self.trace
    }

    /// The counters of a device.
    #[must_use]
    pub fn served(&self, device: DeviceId) -> Option<&Served> {
        self.devices.get(device.0).map(|d| &d.served)
    }

    /// The size of a device.
    #[must_use]
    pub fn size(&self, device: DeviceId) -> Bytes {
        self.devices[device.0].map.size(&self.volumes)
    }

    /// Space that a volume takes.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot say.
    pub fn allocated(&self, volume: VolumeId) -> Result<Bytes, StoreError> {
        self.volumes[volume.0].data.store.allocated()
    }

    /// Puts a range of a device into the host cache, as a warm-up would have.
    pub fn warm(&mut self, device: DeviceId, offset: u64, len: u64) {
        self.engine.warm(device, offset, len);
    }

    /// Resizes a volume and moves its limits at `now`; loses nothing.
    ///
    /// # Errors
    ///
    /// [`ServerError::Volume`] if there is data behind the new end, and what the
    /// store says.
    pub fn resize(
        &mut self,
        now: Instant,
        volume: VolumeId,
        name: &str,
        spec: &VolumeSpec,
    ) -> Result<(), ServerError> {
        let held = &self.volumes[volume.0];
        if held.has_data_behind(spec.size.get())? {
            return Err(ServerError::Volume {
                volume: name.to_owned(),
                reason: format!(
                    "there is data behind {}; trim or move it before shrinking",
                    spec.size
                ),
            });
        }
        let resized = held.data.store.resize(spec.size);
        // A store that fails late, after its size has changed, still has it.
        if held.data.store.size() == spec.size {
            self.set_limits(now, volume, spec.limits);
            let known = self.engine.set_size(now, volume, spec.size);
            debug_assert!(known.is_ok(), "{volume:?} is one of this host's");
        }
        Ok(resized?)
    }

    /// Gives a volume new limits at `now`.
    pub fn set_limits(&mut self, now: Instant, volume: VolumeId, limits: DiskLimits) {
        let known = self.engine.set_disk_limits(now, volume, limits);
        debug_assert!(known.is_ok(), "{volume:?} is one of this host's");
        self.stirred = true;
    }

    /// Gives a volume another cache mode at `now`. What it had not written back is
    /// in the store when this returns, whatever the engine still charges for it.
    pub fn set_cache(&mut self, now: Instant, volume: VolumeId, mode: CacheMode) {
        let known = self.engine.set_cache_mode(now, volume, mode);
        debug_assert!(known.is_ok(), "{volume:?} is one of this host's, which has a cache");
        // Writes that waited for room go on as uncached: nothing would write them back.
        self.volumes[volume.0].write_back_all();
        self.stirred = true;
    }

    /// The host crashes: requests under way are gone, the cache is empty, and
    /// what was not written back is lost. Returns the lost bytes.
    pub fn crash(&mut self, now: Instant) -> Bytes {
        self.engine.crash(now);
        let blocks: usize = self.volumes.iter_mut().map(VolumeBytes::lose).sum();
        self.pending.retain(|_, pending| pending.on_worker);
        self.held.clear();
        Bytes::kib(4 * blocks as u64)
    }

    /// Lifts all limits and writes back what the cache owes, so that what is
    /// under way completes at once: the server is going to stop.
    pub fn drain(&mut self, now: Instant) {
        self.engine.set_host_limits(now, &GateLimits::default(), &GateLimits::default());
        for volume in 0..self.volumes.len() {
            self.set_limits(now, VolumeId(volume), DiskLimits::default());
            let cached = self.engine.volume(VolumeId(volume)).map(|v| v.cache);
            if cached == Some(CacheMode::ReadWrite) {
                self.set_cache(now, VolumeId(volume), CacheMode::None);
            }
        }
    }

    /// Writes back whatever is left and makes every volume durable.
    ///
    /// # Errors
    ///
    /// What the first store says that cannot; the others are synced all the same.
    pub fn sync_all(&mut self) -> Result<(), StoreError> {
        let mut first = Ok(());
        for volume in &mut self.volumes {
            volume.write_back_all();
            let result = volume.settle().and_then(|()| volume.data.store.sync());
            if first.is_ok() {
                first = result;
            }
        }
        first
    }
}

#[cfg(test)]
mod tests;
