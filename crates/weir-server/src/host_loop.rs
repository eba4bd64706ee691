//! The data path of one host: requests in, replies out, `now` as an argument.
//!
//! It has no sockets and no clock, so a test drives it with its own time and gets the results of the
//! simulator. It has five steps with one method each:
//!
//! | step | where |
//! |---|---|
//! | take and parse | the connection, with [`weir_proto::server::parse_request`] |
//! | admit | [`HostLoop::submit`]: the engine gets the request, the volume the bytes |
//! | execute | [`HostLoop::advance`]: requests that the engine has completed are read or synced |
//! | complete | the same: the reply is appended to the client's buffer |
//! | come back | `HostLoop::finished`: results of operations that waited for a medium |
//!
//! Nothing here waits for a medium. Operations that may wait are jobs of the host's workers
//! ([`crate::volume`] defines the order of writes). A request that changes bytes is answered when the
//! engine has completed it and its jobs are done; one that must be durable is synced after that.
//!
//! | part | holds |
//! |---|---|
//! | `durable` | flushes: the dirty blocks of a device, then its syncs |
//! | `status` | allocated ranges |
//! | `coming` | volumes that are added and removed |
//! | `freeze` | frozen views of devices |
//! | `progress` | how far resizes and syncs have come |
//! | `commands` | resizes, cache modes, crashes, the end |

mod coming;
mod commands;
mod durable;
mod freeze;
mod progress;
mod status;

pub use commands::{Behind, Owing};

use crate::error::{ServerError, errno_of};
use crate::observer::Observer;
use crate::tap::{Buffer, Tap};
use crate::volume::{After, DeviceMap, Keep, Load, VolumeBytes, VolumeData};
use crate::worker::{Finished, Job, ReadJob, Task};
pub(crate) use freeze::{FreezeOrder, FrozenDevice};
use progress::{Durability, Resizing};
use slab::Slab;
use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU64;
use std::sync::Arc;
use weir_core::{
    CacheMode, Completion, DeviceId, DeviceSpec, Engine, Event, HostSpec, Op,
    Request as EngineRequest, TraceHash, VolumeId,
};
use weir_proto::{Command, CommandFlags, Errno, Request, reply};
use weir_report::status::LATENCY_BOUNDS_NS;
use weir_store::{Store, StoreError};
use weir_units::{Bytes, Instant, Span};

/// The sender of a request, by which the reactor finds it again. Never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientId(pub u64);

/// A client's reply buffer, lent for one reply.
#[derive(Debug)]
pub struct ReplyTo<'a> {
    /// Replies are appended here.
    pub out: &'a mut Vec<u8>,
    /// True if reads are answered with structured replies.
    pub structured: bool,
    /// The client's number for `base:allocation`.
    pub meta_context: Option<u32>,
    /// Requests taken from this client and not yet answered.
    pub in_flight: &'a mut usize,
    /// Bytes held in memory for its reads that workers have.
    pub reading: &'a mut usize,
    /// Bytes held in memory for its writes: the store does not have them, or a
    /// cache keeps them and they are not answered.
    pub writing: &'a mut usize,
    /// Bytes of data that may be made ready for it. A read of more waits until
    /// [`HostLoop::resume`].
    pub room: usize,
}

impl ReplyTo<'_> {
    /// Makes space for the reply to a read of `length` bytes. A long reply gets no more than it
    /// needs, since memory is counted by capacity.
    #[inline]
    fn reserve(&mut self, length: usize) {
        /// Header of a structured reply to a read.
        const HEADER: usize = 28;
        let needed = HEADER + length;
        if self.out.capacity() - self.out.len() < needed {
            self.out.reserve_exact(needed.max(self.out.len().min(MOST_AHEAD)));
        }
    }
}

/// The most bytes that a reply buffer grows by for replies to come.
const MOST_AHEAD: usize = 1 << 20;

/// Finds a client's buffer; `None` if the client has gone.
pub trait Replies {
    /// Returns the buffer of `client`.
    fn reply_to(&mut self, client: ClientId) -> Option<ReplyTo<'_>>;
}

/// Counters of a device since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Served {
    /// Requests answered.
    pub requests: u64,
    /// Requests answered with an error.
    pub errors: u64,
    /// Requests that were rejected because of their expected wait.
    pub turned_away: u64,
    /// Total time between the arrivals of requests and their deadlines.
    pub governed: Span,
    /// Time between that moment and the reply, of all: late wake-ups, reading
    /// and syncing.
    pub overhead: Span,
    /// That time of requests whose bytes were on their way to or from a backend at the deadline. The
    /// three together are the latency that clients saw from Weir.
    pub backend: Span,
    /// Latencies from the arrival to the reply: of reads, of requests that change bytes, and of
    /// flushes.
    pub latencies: [Latencies; 3],
}

/// The operations of [`Served::latencies`], in its order.
pub const LATENCY_OPS: [&str; 3] = ["read", "write", "flush"];

/// Requests by latency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Requests up to each of [`LATENCY_BOUNDS_NS`], and at the end those beyond.
    pub counts: [u64; LATENCY_BOUNDS_NS.len() + 1],
    /// Their sum.
    pub sum: Span,
}

impl Latencies {
    #[inline]
    fn count(&mut self, latency: Span) {
        let bucket = LATENCY_BOUNDS_NS.partition_point(|bound| *bound < latency.nanos());
        self.counts[bucket] += 1;
        self.sum += latency;
    }
}

/// The source of a request's bytes if they are not its device's. The device's limits apply
/// all the same.
#[derive(Debug, Clone)]
pub(crate) enum Elsewhere {
    /// A read gives these.
    Store { store: Arc<dyn Store>, offset: u64, len: u32 },
    /// The caller executes the request once the limits admit it.
    Done,
}

#[derive(Debug)]
struct Pending {
    client: ClientId,
    device: usize,
    request: Request,
    arrived: Instant,
    due: Instant,
    /// The engine has admitted and completed it.
    let_go: bool,
    /// A worker has it, or will have it: it ends even if the host crashes.
    on_worker: bool,
    /// Jobs of lanes that must be done before it is answered.
    jobs: u32,
    /// Parts of a write that are not known to be durable.
    parts_at_risk: u32,
    /// Bytes that caches keep for it.
    in_caches: usize,
    /// The store that it reads from, if not from its device.
    from: Option<Elsewhere>,
    /// The error that prevented its bytes from being kept.
    error: Option<Arc<StoreError>>,
    /// Its number in a recording.
    tapped: Option<NonZeroU64>,
    /// It waits for a store after its deadline.
    awaits_store: bool,
}

#[derive(Debug)]
struct Device {
    map: DeviceMap,
    served: Served,
    /// The last error of the storage, and when it was answered.
    last_failure: Option<(String, Instant)>,
    durability: Durability,
    /// The most syncs at a time.
    syncs: usize,
    /// The bytes of a volume of it are on a backend.
    is_on_backend: bool,
    /// A volume of it can never be read at once.
    is_asynchronous: bool,
}

impl Device {
    fn new<'a>(map: DeviceMap, volumes: impl IntoIterator<Item = &'a VolumeData>) -> Self {
        let (served, durability) = (Served::default(), Durability::default());
        let (mut is_on_backend, mut is_asynchronous) = (false, false);
        let mut syncs = usize::MAX;
        for volume in volumes {
            is_on_backend |= volume.is_on_backend;
            is_asynchronous |= volume.store.asynchronous().is_some();
            syncs = syncs.min(volume.store.syncs());
        }
        let last_failure = None;
        Self { map, served, last_failure, durability, syncs, is_on_backend, is_asynchronous }
    }
}

/// One host being served.
#[derive(Debug)]
pub struct HostLoop {
    engine: Engine,
    devices: Vec<Device>,
    volumes: Vec<VolumeBytes>,
    /// The volumes' stores, for workers.
    stores: Arc<[Arc<dyn Store>]>,
    /// The device of each volume, whose share of the workers it has.
    owners: Vec<usize>,
    pending: Slab<Pending>,
    /// Reads that are due and whose client does not take its replies.
    held: HashMap<ClientId, VecDeque<usize>>,
    jobs: Vec<Job>,
    /// Volumes whose lanes have jobs for a worker.
    lanes: Vec<usize>,
    /// Devices whose flushes wait for lanes.
    storing: Vec<usize>,
    /// Devices whose next sync may begin.
    flushing: Vec<usize>,
    /// `BLOCK_STATUS` requests to be answered in the next turn.
    asked: Vec<usize>,
    /// Resizes under way, by volume, oldest first.
    resizing: VecDeque<(usize, Resizing)>,
    owing: Vec<Owing>,
    /// True if the engine got a request or command since the last `advance`.
    stirred: bool,
    trace: TraceHash,
    crashes: u64,
    observer: Observer,
    /// A recording of its requests, and the number of the last one of earlier recordings.
    tap: Option<Tap>,
    tapped: u64,
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
            DeviceSpec::Volume(volume) => DeviceMap::single(*volume),
            DeviceSpec::Stripe { unit, columns } => {
                DeviceMap { volumes: columns.clone(), unit: unit.get() }
            }
        });
        let devices = devices.map(|map| {
            let own: Vec<&VolumeData> = map.volumes.iter().map(|own| &volumes[*own]).collect();
            Device::new(map, own)
        });
        let devices: Vec<Device> = devices.collect();
        let mut owners = vec![0; volumes.len()];
        for (id, device) in devices.iter().enumerate() {
            device.map.volumes.iter().for_each(|volume| owners[*volume] = id);
        }
        let engine = Engine::new(spec)
            .map_err(|error| ServerError::Layout(weir_layout::error::Kind::Spec(error)))?;
        Ok(Self {
            engine,
            devices,
            stores: volumes.iter().map(|v| Arc::clone(&v.store)).collect(),
            volumes: volumes.into_iter().map(VolumeBytes::new).collect(),
            owners,
            pending: Slab::new(),
            held: HashMap::new(),
            jobs: Vec::new(),
            lanes: Vec::new(),
            storing: Vec::new(),
            flushing: Vec::new(),
            asked: Vec::new(),
            resizing: VecDeque::new(),
            owing: Vec::new(),
            stirred: false,
            trace: TraceHash::default(),
            crashes: 0,
            observer: Observer::default(),
            tap: None,
            tapped: 0,
        })
    }

    /// Sets the receiver of each request's waits.
    pub fn set_observer(&mut self, observer: Observer) {
        self.observer = observer;
    }

    /// Begins to pass its requests to a recording; returns false if there is one already.
    pub(crate) fn begin_recording(&mut self, buffer: Buffer) -> bool {
        if self.tap.is_some() {
            return false;
        }
        self.tap = Some(Tap::new(buffer, self.tapped));
        true
    }

    /// Ends a recording. Everything until now is in its buffer.
    pub(crate) fn end_recording(&mut self) {
        if let Some(tap) = self.tap.take() {
            self.tapped = tap.finish();
        }
    }

    /// Takes a request that came at `now`. Its reply comes out of
    /// [`advance`](Self::advance), except what is answered here. Returns how many
    /// bytes are held for it, see [`ReplyTo::writing`].
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
    ) -> Result<usize, Errno> {
        self.submit_from(now, client, device, request, payload, None)
    }

    /// Does the same for a read whose bytes may be elsewhere.
    ///
    /// # Errors
    ///
    /// The errno to answer at once.
    pub(crate) fn submit_from(
        &mut self,
        now: Instant,
        client: ClientId,
        device: DeviceId,
        request: &Request,
        payload: &[u8],
        from: Option<Elsewhere>,
    ) -> Result<usize, Errno> {
        let admitted = self.admit(now, client, device, request, payload, from);
        if admitted.is_err() {
            let served = &mut self.devices[device.0].served;
            served.requests += 1;
            served.errors += 1;
        }
        admitted.map(|(_, held)| held)
    }

    /// Returns the key of the request, and how many bytes are held for it.
    fn admit(
        &mut self,
        now: Instant,
        client: ClientId,
        device: DeviceId,
        request: &Request,
        payload: &[u8],
        from: Option<Elsewhere>,
    ) -> Result<(usize, usize), Errno> {
        let fua = request.flags.contains(CommandFlags::FUA);
        let op = match request.command {
            Command::Read | Command::Cache => Some(Op::Read),
            Command::Write if fua => Some(Op::WriteThrough),
            Command::Write => Some(Op::Write),
            // Zeros that must take their space are written.
            Command::WriteZeroes if request.flags.contains(CommandFlags::NO_HOLE) => {
                Some(Op::WriteThrough)
            }
            Command::Trim | Command::WriteZeroes => Some(Op::Discard),
            Command::Flush => Some(Op::Flush),
            // It passes no gate: it moves no bytes.
            Command::BlockStatus => None,
            Command::Disconnect => return Err(Errno::Inval),
        };
        let (mut offset, mut len) = (request.offset, u64::from(request.length));
        if matches!(from, Some(Elsewhere::Store { .. })) && op == Some(Op::Read) {
            // The device may be shorter now than what it is read in place of.
            let size = self.size(device).get();
            if offset + len > size {
                (offset, len) = (0, len.min(size));
            }
        }
        let entry = self.pending.vacant_entry();
        let key = entry.key();
        let mut tapped = None;
        if let Some(op) = op {
            let engine_request = EngineRequest { device, op, offset, len, tag: key as u64 };
            self.engine.handle_request(now, &engine_request).map_err(|_| Errno::Inval)?;
            if let Some(tap) = &mut self.tap {
                tapped = tap.begin(now, (device, op), (offset, len));
            }
        } else {
            self.asked.push(key);
        }
        entry.insert(Pending {
            client,
            device: device.0,
            request: *request,
            arrived: now,
            due: now,
            let_go: false,
            on_worker: false,
            jobs: 0,
            parts_at_risk: 0,
            in_caches: 0,
            from,
            error: None,
            tapped,
            awaits_store: false,
        });
        self.stirred = true;
        let held = match request.command {
            _ if matches!(self.pending[key].from, Some(Elsewhere::Done)) => 0,
            Command::Write | Command::Trim | Command::WriteZeroes => self.store(key, op, payload),
            _ => 0,
        };
        Ok((key, held))
    }

    /// Keeps the bytes of a request that changes them; returns how many are held
    /// in memory for it.
    fn store(&mut self, key: usize, op: Option<Op>, payload: &[u8]) -> usize {
        let Pending { device, request, .. } = self.pending[key];
        let map = &self.devices[device].map;
        let mut load = Load::default();
        let durably = request.flags.contains(CommandFlags::FUA);
        let stored = if request.command == Command::Write {
            let engine = &self.engine;
            let keep = |volume| {
                let mode = engine.volume(VolumeId(volume)).map(|v| v.cache);
                let cached = op == Some(Op::Write) && mode == Some(CacheMode::ReadWrite);
                match (cached, durably) {
                    (true, _) => Keep::InCache,
                    (false, true) => Keep::Durably,
                    (false, false) => Keep::InStore,
                }
            };
            let data = (request.offset, payload);
            map.write(&mut self.volumes, key, data, keep, &mut load)
        } else {
            let may_trim =
                request.command == Command::Trim || !request.flags.contains(CommandFlags::NO_HOLE);
            let range = (request.offset, u64::from(request.length));
            map.zero(&mut self.volumes, key, range, (may_trim, durably), &mut load)
        };
        let pending = &mut self.pending[key];
        pending.jobs = load.jobs;
        pending.parts_at_risk = load.parts;
        pending.in_caches = load.in_caches;
        pending.error = stored.err().map(Arc::new);
        if load.jobs > 0 {
            let map = &self.devices[device].map;
            map.volumes.iter().for_each(|v| list(&mut self.lanes, &mut self.volumes, *v));
        }
        load.in_lanes + load.in_caches
    }

    /// Does what is due at `now` and appends the replies.
    pub fn advance(&mut self, now: Instant, replies: &mut impl Replies) {
        self.stirred = false;
        self.engine.handle_timeout(now);
        while let Some(event) = self.engine.poll_event() {
            match event {
                Event::WrittenBack { volume, offset, len } => {
                    self.volumes[volume.0].write_back(offset, len);
                    self.look_at(volume.0);
                }
                Event::Completed(completion) => self.execute(now, &completion, replies),
            }
        }
        if !self.asked.is_empty() {
            self.answer_asked(now, replies);
        }
        self.begin_syncs(now, replies);
        if let Some(tap) = &mut self.tap {
            tap.hand_over();
        }
    }

    /// Returns when [`advance`](Self::advance) is needed next: at once after anything that may
    /// have completed something.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let is_due = self.stirred || !self.flushing.is_empty();
        if is_due { Some(Instant::ZERO) } else { self.engine.poll_deadline() }
    }

    fn execute(&mut self, now: Instant, completion: &Completion, replies: &mut impl Replies) {
        self.trace.record(completion);
        let key = usize::try_from(completion.tag).unwrap_or(usize::MAX);
        let pending = &mut self.pending[key];
        pending.due = completion.at;
        pending.let_go = true;
        self.observer.hear(pending.request.cookie, completion);
        if pending.jobs == 0 {
            self.go_on(now, key, replies);
        } else {
            pending.awaits_store = true;
        }
    }

    /// Goes on with a request that the engine has let go and whose jobs are done.
    fn go_on(&mut self, now: Instant, key: usize, replies: &mut impl Replies) {
        let pending = &mut self.pending[key];
        if pending.in_caches > 0
            && let Some(to) = replies.reply_to(pending.client)
        {
            *to.writing -= pending.in_caches;
        }
        if let Some(error) = pending.error.take() {
            self.answer(now, key, Some(&error), replies);
            return;
        }
        if matches!(pending.from, Some(Elsewhere::Done)) {
            self.answer(now, key, None, replies);
            return;
        }
        let (device, request) = (pending.device, pending.request);
        let needs_sync = match request.command {
            Command::Flush => true,
            _ => request.flags.contains(CommandFlags::FUA) && pending.parts_at_risk > 0,
        };
        match request.command {
            Command::Read => self.read(now, key, replies),
            _ if needs_sync => self.sync(now, device, key, replies),
            _ => self.answer(now, key, None, replies),
        }
    }

    fn read(&mut self, now: Instant, key: usize, replies: &mut impl Replies) {
        let Pending { client, device, request, .. } = self.pending[key];
        let map = &self.devices[device].map;
        let Some(mut to) = replies.reply_to(client) else {
            self.settle(now, key, false);
            return;
        };
        if request.length as usize > to.room {
            self.held.entry(client).or_default().push_back(key);
            return;
        }
        let is_elsewhere = self.pending[key].from.is_some();
        if self.devices[device].is_asynchronous && !is_elsewhere {
            *to.reading += request.length as usize;
            self.read_later(key);
            return;
        }
        to.reserve(request.length as usize);
        if let Some(Elsewhere::Store { store: from, offset, len }) = self.pending[key].from.take() {
            let start = to.out.len();
            reply::read_header(to.out, to.structured, request.cookie, request.offset, len);
            let data = to.out.len();
            to.out.resize(data + len as usize, 0);
            match from.try_read_at(offset, &mut to.out[data..]) {
                Ok(true) => {
                    *to.in_flight -= 1;
                    self.settle(now, key, false);
                }
                Ok(false) => {
                    to.out.truncate(start);
                    *to.reading += request.length as usize;
                    self.read_from(key, from, (offset, len));
                }
                Err(error) => {
                    to.out.truncate(start);
                    self.answer(now, key, Some(&error), replies);
                }
            }
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
                self.read_later(key);
            }
            Err(error) => {
                to.out.truncate(start);
                self.answer(now, key, Some(&error), replies);
            }
        }
    }

    /// Reads from the device's stores, which may wait for their medium.
    fn read_later(&mut self, key: usize) {
        let Pending { device, request: Request { offset, length, .. }, .. } = self.pending[key];
        let map = &self.devices[device].map;
        let dirty = map.dirty_in(&self.volumes, offset, u64::from(length));
        let (stores, map) = (Arc::clone(&self.stores), map.clone());
        let read = ReadJob { key, stores, map, offset, len: length as usize, dirty };
        self.pending[key].on_worker = true;
        self.pending[key].awaits_store = true;
        self.jobs.push(Job { device, task: Task::Read(Box::new(read)) });
    }

    /// Reads from another store than the device's, which may wait for its medium.
    fn read_from(&mut self, key: usize, store: Arc<dyn Store>, (offset, len): (u64, u32)) {
        let device = self.pending[key].device;
        let (stores, map, dirty) = ([store].into(), DeviceMap::single(0), Vec::new());
        let len = len as usize;
        let read = ReadJob { key, stores, map, offset, len, dirty };
        self.pending[key].on_worker = true;
        self.jobs.push(Job { device, task: Task::Read(Box::new(read)) });
    }

    /// Estimates how long a request that came at `now` would wait before the limits.
    pub fn backlog(&mut self, now: Instant, device: DeviceId) -> Span {
        self.stirred = true;
        self.engine.backlog(now, device)
    }

    /// Goes on with the reads of `client` that waited for room, in their order, up to the first one
    /// that still has none. Those of a client that has gone are dropped.
    pub fn resume(&mut self, now: Instant, client: ClientId, replies: &mut impl Replies) {
        if self.held.is_empty() {
            return;
        }
        let mut keys = self.held.remove(&client).unwrap_or_default();
        while let Some(key) = keys.pop_front() {
            self.read(now, key, replies);
            if let Some(again) = self.held.remove(&client) {
                again.into_iter().rev().for_each(|key| keys.push_front(key));
                break;
            }
        }
        if !keys.is_empty() {
            self.held.insert(client, keys);
        }
    }

    /// Returns the length of the next read of `client` that waits for room.
    pub(crate) fn next_held(&self, client: ClientId) -> Option<usize> {
        if self.held.is_empty() {
            return None;
        }
        let key = self.held.get(&client)?.front()?;
        Some(self.pending[*key].request.length as usize)
    }

    /// Takes back what a worker did, and answers those who waited for it.
    pub(crate) fn finished(&mut self, now: Instant, done: Finished, replies: &mut impl Replies) {
        match done {
            Finished::Lane { volume, results, last } => {
                let takes = results.iter().any(Result::is_ok);
                for result in results {
                    let after = self.volumes[volume].finished(result);
                    self.after(now, volume, after, replies);
                }
                if last {
                    self.volumes[volume].batch_done();
                }
                if takes {
                    self.volumes[volume].settle_some();
                }
                self.look_at(volume);
                self.go_on_storing(now, replies);
            }
            Finished::Apart { volume, job, result } => {
                self.volumes[volume].end(job, result);
                let mut takes = false;
                while let Some(result) = self.volumes[volume].next_ended() {
                    takes |= result.is_ok();
                    let after = self.volumes[volume].finished(result);
                    self.after(now, volume, after, replies);
                }
                if takes {
                    self.volumes[volume].settle_some();
                }
                self.look_at(volume);
                self.go_on_storing(now, replies);
            }
            Finished::Sync { device, number, result } => {
                self.synced(now, device, number, result, replies);
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
            Finished::Extents { key, result } => self.answer_extents(now, key, result, replies),
        }
    }

    /// Takes in the effect of a job of a lane.
    fn after(&mut self, now: Instant, volume: usize, after: After, replies: &mut impl Replies) {
        match after {
            After::Nothing => {}
            After::Request { key, held, error, is_durable } => {
                if let Some(error) = &error {
                    self.note_full(now, volume, error);
                }
                let pending = &mut self.pending[key];
                pending.jobs -= 1;
                pending.parts_at_risk -= u32::from(is_durable);
                pending.error = pending.error.take().or(error);
                let goes_on = pending.jobs == 0 && pending.let_go;
                if held > 0
                    && let Some(to) = replies.reply_to(pending.client)
                {
                    *to.writing -= held;
                }
                if goes_on {
                    self.go_on(now, key, replies);
                }
            }
            After::Resize(result) => self.go_on_resizing(now, volume, result),
        }
    }

    /// Updates the lists of a volume whose lane or debts may have changed.
    fn look_at(&mut self, volume: usize) {
        list(&mut self.lanes, &mut self.volumes, volume);
        self.note_owing(volume);
    }

    fn answer_read(&mut self, now: Instant, key: usize, data: &[u8], replies: &mut impl Replies) {
        let Pending { client, request, .. } = self.pending[key];
        if let Some(mut to) = replies.reply_to(client) {
            let Request { cookie, offset, length, .. } = request;
            to.reserve(data.len());
            reply::read_header(to.out, to.structured, cookie, offset, length);
            to.out.extend_from_slice(data);
            *to.in_flight -= 1;
        }
        self.settle(now, key, false);
    }

    fn answer(
        &mut self,
        now: Instant,
        key: usize,
        error: Option<&StoreError>,
        replies: &mut impl Replies,
    ) {
        let Pending { client, request, device, .. } = self.pending[key];
        if let Some(error) = error {
            self.devices[device].last_failure = Some((error.to_string(), now));
        }
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
        if let (Some(tap), Some(number)) = (&mut self.tap, pending.tapped) {
            tap.end(number, Some(now - pending.arrived));
        }
        let served = &mut self.devices[pending.device].served;
        served.requests += 1;
        served.errors += u64::from(failed);
        served.governed += pending.due - pending.arrived;
        let late = now - pending.due;
        match pending.awaits_store && self.devices[pending.device].is_on_backend {
            true => self.devices[pending.device].served.backend += late,
            false => self.devices[pending.device].served.overhead += late,
        }
        let served = &mut self.devices[pending.device].served;
        let op = match pending.request.command {
            Command::Read | Command::Cache => 0,
            Command::Write | Command::Trim | Command::WriteZeroes => 1,
            Command::Flush => 2,
            Command::BlockStatus | Command::Disconnect => return,
        };
        served.latencies[op].count(now - pending.arrived);
    }

    /// Returns the jobs that have to run on a worker.
    pub(crate) fn take_jobs(&mut self) -> Vec<Job> {
        for volume in self.lanes.drain(..) {
            let bytes = &mut self.volumes[volume];
            bytes.listed = false;
            let device = self.owners[volume];
            if bytes.is_deep() {
                while let Some((job, work)) = bytes.take_apart() {
                    let store = Arc::clone(&bytes.data.store);
                    let task = Task::Apart { volume, job, store, work };
                    self.jobs.push(Job { device, task });
                }
            } else if let Some(batch) = bytes.take_batch() {
                let store = Arc::clone(&bytes.data.store);
                self.jobs.push(Job { device, task: Task::Lane { volume, store, batch } });
            }
        }
        std::mem::take(&mut self.jobs)
    }

    /// Returns whether a store takes several operations at once.
    pub(crate) fn is_deep(&self) -> bool {
        self.volumes.iter().any(VolumeBytes::is_deep)
    }

    /// Requests taken and not answered.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.pending.len()
    }

    /// Returns whether every request is answered and every store has its writes.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.volumes.iter().all(VolumeBytes::is_idle)
    }

    /// Returns the engine, to read from.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns a fingerprint of all completions so far.
    #[must_use]
    pub fn trace(&self) -> TraceHash {
        self.trace
    }

    /// Returns the number of crashes so far.
    #[must_use]
    pub fn crashes(&self) -> u64 {
        self.crashes
    }

    /// Returns the counters of a device.
    #[must_use]
    pub fn served(&self, device: DeviceId) -> Option<&Served> {
        self.devices.get(device.0).map(|d| &d.served)
    }

    /// Returns the last error of a device's storage, and the time since.
    #[must_use]
    pub fn last_failure(&self, device: DeviceId, now: Instant) -> Option<(&str, Span)> {
        let (reason, at) = self.devices.get(device.0)?.last_failure.as_ref()?;
        Some((reason, now - *at))
    }

    /// Rejects a request to a device that would wait for too long.
    pub(crate) fn turn_away(&mut self, device: DeviceId) {
        if let Some(device) = self.devices.get_mut(device.0) {
            device.served.turned_away += 1;
        }
    }

    /// Returns the size of a device.
    #[must_use]
    pub fn size(&self, device: DeviceId) -> Bytes {
        self.engine.device_size(device).unwrap_or(Bytes::ZERO)
    }
}

/// Puts a volume on the list of those whose lanes have something for a worker.
fn list(lanes: &mut Vec<usize>, volumes: &mut [VolumeBytes], volume: usize) {
    let bytes = &mut volumes[volume];
    if !bytes.listed && !bytes.is_idle() {
        bytes.listed = true;
        lanes.push(volume);
    }
}

#[cfg(test)]
mod tests;
