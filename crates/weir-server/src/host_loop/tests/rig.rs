//! The surroundings of a [`HostLoop`] in a test: clients, a clock, workers.

use crate::error::ServerError;
use crate::host_loop::{Behind, ClientId, HostLoop, Replies, ReplyTo};
use crate::volume::VolumeData;
use crate::worker::{Finished, Job, Task};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use weir_core::{
    CacheMode, CacheSpec, DeviceId, DeviceSpec, DiskLimits, GateLimits, HostSpec, Latency, Limit,
    Medium, Place, VolumeId, VolumeSpec,
};
use weir_proto::client::{Body, ParsedReply, Session, parse_reply};
use weir_proto::{BlockSizes, Command, CommandFlags, Errno, Request, TransmissionFlags};
use weir_store::{Extent, MemoryStore, Store, StoreError};
use weir_units::{Bytes, Instant, Iops, Span};

/// A client's answer: the data of a read, nothing for the rest, or the errno.
pub(super) type Answer = Result<Vec<u8>, Errno>;

/// A host, its clients, the time.
pub(super) struct Rig {
    pub(super) host: HostLoop,
    pub(super) now: Instant,
    /// Jobs that the host has for workers, oldest first.
    pub(super) jobs: Vec<Job>,
    /// The client that the short forms speak for.
    pub(super) me: ClientId,
    clients: Clients,
    cookie: u64,
}

#[derive(Default)]
struct Clients(BTreeMap<u64, Client>);

#[derive(Default)]
struct Client {
    out: Vec<u8>,
    in_flight: usize,
    reading: usize,
    writing: usize,
    full: bool,
    meta_context: Option<u32>,
    /// Lengths of the reads that it waits for.
    reads: BTreeMap<u64, u32>,
    answers: BTreeMap<u64, Answer>,
}

impl Replies for Clients {
    fn reply_to(&mut self, client: ClientId) -> Option<ReplyTo<'_>> {
        let client = self.0.get_mut(&client.0)?;
        Some(ReplyTo {
            out: &mut client.out,
            structured: false,
            meta_context: client.meta_context,
            in_flight: &mut client.in_flight,
            reading: &mut client.reading,
            writing: &mut client.writing,
            room: if client.full { 0 } else { usize::MAX },
        })
    }
}

impl Client {
    /// Reads the replies that have come.
    fn collect(&mut self) {
        let session = Session {
            size: Bytes::ZERO,
            flags: TransmissionFlags::NONE,
            block: BlockSizes::DEFAULT,
            structured: false,
            meta_context: None,
        };
        let mut at = 0;
        while at < self.out.len() {
            let length = |cookie| Some(self.reads.get(&cookie).copied().unwrap_or(0));
            let parsed = parse_reply(&self.out[at..], &session, length).expect("a reply");
            let ParsedReply::Reply { reply, consumed } = parsed else {
                panic!("half a reply: {parsed:?}");
            };
            let answer = match reply.body {
                Body::Nothing => Ok(Vec::new()),
                Body::Data { data, .. } => Ok(data.to_vec()),
                Body::Error { errno, .. } => Err(errno),
                other => panic!("unexpected reply: {other:?}"),
            };
            let again = self.answers.insert(reply.cookie, answer);
            assert_eq!(again, None, "request {} is answered twice", reply.cookie);
            at += consumed;
        }
        self.out.clear();
    }
}

impl Rig {
    pub(super) fn new(spec: HostSpec, stores: Vec<VolumeData>) -> Self {
        let host = HostLoop::new(spec, stores).expect("a sound specification");
        let me = ClientId(0);
        let clients = Clients([(me.0, Client::default())].into());
        Self { host, now: Instant::ZERO, jobs: Vec::new(), me, clients, cookie: 0 }
    }

    pub(super) fn connect(&mut self, client: ClientId) {
        self.clients.0.insert(client.0, Client::default());
    }

    /// The client's socket breaks.
    pub(super) fn disconnect(&mut self, client: ClientId) {
        self.clients.0.remove(&client.0);
        self.host.resume(self.now, client, &mut self.clients);
    }

    /// The short forms speak for a new client from here on.
    pub(super) fn reconnect(&mut self) {
        self.disconnect(self.me);
        self.me = ClientId(self.me.0 + 1);
        self.connect(self.me);
    }

    /// The client stops taking its replies, or takes them again.
    pub(super) fn set_full(&mut self, client: ClientId, full: bool) {
        self.clients.0.get_mut(&client.0).expect("a connected client").full = full;
        if !full {
            self.host.resume(self.now, client, &mut self.clients);
            self.collect();
        }
    }

    /// Bytes held in memory for a client.
    pub(super) fn held(&self, client: ClientId) -> usize {
        let client = &self.clients.0[&client.0];
        client.reading + client.writing
    }

    /// Sends a request as a connection does; returns its cookie.
    pub(super) fn send(
        &mut self,
        from: ClientId,
        device: usize,
        request: Request,
        payload: &[u8],
    ) -> u64 {
        self.cookie += 1;
        let cookie = self.cookie;
        let request = Request { cookie, ..request };
        let client = self.clients.0.get_mut(&from.0).expect("a connected client");
        if request.command == Command::Read {
            client.reads.insert(cookie, request.length);
        }
        client.in_flight += 1;
        let taken = self.host.submit(self.now, from, DeviceId(device), &request, payload);
        match taken {
            Ok(held) => client.writing += held,
            Err(errno) => {
                client.in_flight -= 1;
                client.answers.insert(cookie, Err(errno));
            }
        }
        cookie
    }

    pub(super) fn write(&mut self, device: usize, offset: u64, data: &[u8]) -> u64 {
        let length = u32::try_from(data.len()).expect("a short write");
        self.send(self.me, device, Request::new(Command::Write, 0, offset, length), data)
    }

    pub(super) fn write_fua(&mut self, device: usize, offset: u64, data: &[u8]) -> u64 {
        let length = u32::try_from(data.len()).expect("a short write");
        let request = Request::new(Command::Write, 0, offset, length).with(CommandFlags::FUA);
        self.send(self.me, device, request, data)
    }

    pub(super) fn read(&mut self, device: usize, offset: u64, length: u32) -> u64 {
        self.send(self.me, device, Request::new(Command::Read, 0, offset, length), &[])
    }

    pub(super) fn flush(&mut self, device: usize) -> u64 {
        self.send(self.me, device, Request::new(Command::Flush, 0, 0, 0), &[])
    }

    /// One turn of the loop at the time that it is.
    pub(super) fn turn(&mut self) {
        self.host.advance(self.now, &mut self.clients);
        self.collect();
    }

    /// Lets the oldest job run.
    pub(super) fn work_one(&mut self) {
        self.work_on(0);
    }

    /// Runs the job at this position, if there is one.
    pub(super) fn work_on(&mut self, which: usize) {
        if which < self.jobs.len() {
            let done = reports(self.jobs.remove(which));
            self.hand_back(done);
        }
    }

    /// Runs the job at this position, or its beginning, if there is one; what
    /// it came to is handed back when the test wants it to be.
    pub(super) fn run_some(&mut self, which: usize) -> Option<Vec<Finished>> {
        if which >= self.jobs.len() {
            return None;
        }
        let mut job = self.jobs.remove(which);
        if let Task::Lane { volume, store, batch } = &mut job.task
            && batch.len() > 1
        {
            let results = vec![batch.remove(0).run(&**store)];
            let some = Finished::Lane { volume: *volume, results, last: false };
            self.jobs.insert(which, job);
            return Some(vec![some]);
        }
        Some(reports(job))
    }

    /// Hands back what a job came to. The turn ends, as it does in the reactor.
    pub(super) fn hand_back(&mut self, done: Vec<Finished>) {
        for done in done {
            self.host.finished(self.now, done, &mut self.clients);
        }
        self.turn();
    }

    /// Lets all jobs run, and those that come of them.
    pub(super) fn work(&mut self) {
        while !self.jobs.is_empty() {
            self.work_one();
        }
    }

    fn collect(&mut self) {
        self.jobs.extend(self.host.take_jobs());
        self.clients.0.values_mut().for_each(Client::collect);
    }

    /// Time passes; what comes due meanwhile is done when it is due. No worker runs.
    pub(super) fn wait(&mut self, span: Span) {
        let until = self.now + span;
        self.turn();
        while let Some(due) = self.host.deadline().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.turn();
        }
        self.now = until;
        self.turn();
    }

    /// Everything runs until every request is answered.
    pub(super) fn settle(&mut self) {
        self.turn();
        self.work();
        while !self.host.is_idle() {
            let due = self.host.deadline().expect("requests wait and nothing is due");
            self.now = self.now.max(due);
            self.turn();
            self.work();
        }
    }

    /// The answer to a request, if it has come.
    pub(super) fn answer(&self, cookie: u64) -> Option<&Answer> {
        self.clients.0.values().find_map(|client| client.answers.get(&cookie))
    }

    /// Requests that `client` has sent and that are not answered.
    pub(super) fn in_flight(&self, client: ClientId) -> usize {
        self.clients.0[&client.0].in_flight
    }

    /// The answer to a request, once everything has run.
    pub(super) fn finish(&mut self, cookie: u64) -> Answer {
        self.settle();
        self.answer(cookie).expect("every request is answered").clone()
    }

    /// Returns the data of a read, once everything has run.
    #[track_caller]
    pub(super) fn contents(&mut self, device: usize, offset: u64, length: u32) -> Vec<u8> {
        let cookie = self.read(device, offset, length);
        self.finish(cookie).expect("a read that succeeds")
    }

    /// Resizes the first volume; what comes of it, once everything has run.
    pub(super) fn resize(&mut self, spec: &VolumeSpec) -> Result<(), String> {
        let (sender, told) = channel();
        let tell = move |result: Result<(), ServerError>| {
            sender.send(result.map_err(|e| e.to_string())).expect("someone listens");
        };
        self.host.resize(self.now, VolumeId(0), "data", spec, Behind::Keep, tell);
        self.collect();
        self.work();
        told.try_recv().expect("the resize is over")
    }

    /// The raw answer to `BLOCK_STATUS`.
    pub(super) fn block_status(&mut self, device: usize, request: Request) -> Vec<u8> {
        self.clients.0.get_mut(&self.me.0).expect("a connected client").meta_context = Some(1);
        self.send(self.me, device, request, &[]);
        self.host.advance(self.now, &mut self.clients);
        let mut jobs = self.host.take_jobs();
        if let Some(job) = jobs.pop() {
            reports(job)
                .into_iter()
                .for_each(|done| self.host.finished(self.now, done, &mut self.clients));
        }
        std::mem::take(&mut self.clients.0.get_mut(&self.me.0).expect("still there").out)
    }

    #[track_caller]
    pub(super) fn check(&mut self, cookie: u64, expect: Result<(), Errno>) {
        assert_eq!(self.finish(cookie).map(|_| ()), expect);
    }
}

/// Does a job; everything that it reports.
pub(super) fn reports(job: Job) -> Vec<Finished> {
    let mut reports = Vec::new();
    job.run(&mut |done| reports.push(done));
    reports
}

/// A store that is in memory, and one that syncs and reads by workers.
pub(super) fn memory(size: Bytes) -> VolumeData {
    VolumeData::new(Arc::new(MemoryStore::new(size)), false)
}

pub(super) fn blocking(store: &Arc<impl Store + 'static>) -> VolumeData {
    VolumeData::new(Arc::clone(store) as Arc<dyn Store>, true)
}

/// A volume without limits and latency.
pub(super) fn volume(size: Bytes) -> VolumeSpec {
    VolumeSpec {
        size,
        limits: DiskLimits::default(),
        cache: CacheMode::None,
        place: Place::Remote,
        medium: Medium::new(Latency::zero(), Latency::zero()),
        log: false,
        credits: weir_units::Share::WHOLE,
    }
}

pub(super) fn iops(n: u64) -> DiskLimits {
    let limit = Iops::new(n).map(Limit::from);
    DiskLimits { gate: GateLimits { iops: limit, bytes: None }, io_unit: None, merges: false }
}

/// A host with a cache, one device for each volume.
pub(super) fn host(volumes: Vec<VolumeSpec>) -> HostSpec {
    let cache = CacheSpec {
        capacity: Bytes::mib(16),
        latency: Latency::zero(),
        write_through: None,
        dirty_limit: Bytes::mib(1),
        writeback_after: Span::from_secs(1),
    };
    let devices = (0..volumes.len()).map(DeviceSpec::Volume).collect();
    HostSpec { volumes, devices, cache: Some(cache), seed: 1, ..HostSpec::default() }
}

/// A store of which nothing is in the page cache, unless told otherwise: every
/// read is for a worker.
#[derive(Debug)]
pub(super) struct Cold<S> {
    pub(super) store: S,
    pub(super) cold: AtomicBool,
    /// The number of its syncs.
    pub(super) syncs: AtomicUsize,
    depth: usize,
    /// The most syncs at a time.
    at_once: usize,
}

impl<S> Cold<S> {
    pub(super) fn new(store: S) -> Self {
        Self::deep(store, 1)
    }

    /// It takes `depth` operations at once.
    pub(super) fn deep(store: S, depth: usize) -> Self {
        let (cold, syncs) = (AtomicBool::new(true), AtomicUsize::new(0));
        Self { store, cold, syncs, depth, at_once: 1 }
    }

    /// It takes `at_once` syncs at a time.
    pub(super) fn with_syncs(self, at_once: usize) -> Self {
        Self { at_once, ..self }
    }
}

impl<S: Store> Store for Cold<S> {
    fn size(&self) -> Bytes {
        self.store.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        self.store.read_at(offset, buf)
    }

    fn try_read_at(&self, offset: u64, buf: &mut [u8]) -> Result<bool, StoreError> {
        match self.cold.load(Ordering::Acquire) {
            true => Ok(false),
            false => self.store.try_read_at(offset, buf),
        }
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), StoreError> {
        self.store.write_at(offset, data)
    }

    fn write_zeroes(&self, offset: u64, len: u64, may_trim: bool) -> Result<(), StoreError> {
        self.store.write_zeroes(offset, len, may_trim)
    }

    fn trim(&self, offset: u64, len: u64) -> Result<(), StoreError> {
        self.store.trim(offset, len)
    }

    fn write_durably(&self, offset: u64, data: &[u8]) -> Result<bool, StoreError> {
        self.store.write_durably(offset, data)
    }

    fn zero_durably(&self, offset: u64, len: u64, may_trim: bool) -> Result<bool, StoreError> {
        self.store.zero_durably(offset, len, may_trim)
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.store.sync()
    }

    fn resize(&self, new: Bytes) -> Result<(), StoreError> {
        self.store.resize(new)
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>, StoreError> {
        self.store.extents(offset, len, max)
    }

    fn allocated(&self) -> Result<Bytes, StoreError> {
        self.store.allocated()
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn syncs(&self) -> usize {
        self.at_once
    }
}
