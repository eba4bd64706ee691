//! The event loop of a backup: it owns the pipeline, and starts and ends what the pipeline asks for.

use super::links::{Bundle, Links};
use super::progress::Progress;
use super::ranges::{Changes, Feed, Piece};
use super::read_done::{ReadDone, Telling};
use super::slots::Slots;
use super::workers::{Done, Outcome, Workers};
use crate::error::BackupError;
use crate::export::Export;
use crate::format::{FrameAddress, FrameEncoder, PAGE, StripeDigest, frame_room};
use crate::target::{Region, StripeSink};
use std::collections::VecDeque;
use std::sync::Arc;
use weir_core::ServiceTime;
use weir_pipeline::buffers::WRITE_DEPTH;
use weir_pipeline::{BackupTally, Buffers, Encode, Pipeline, Plan, Transfer};
use weir_report::backup::BackupReport;
use weir_units::{BytesPerSec, Instant, Span};
use weir_wall::Clock;

/// How often progress is told.
const TICK: Span = Span::from_millis(100);
/// Ranges of a source that the pipeline knows ahead.
const AHEAD: usize = 16;

/// The parts of a job that the loop works with.
#[derive(Debug)]
pub(super) struct Setup<'a> {
    pub(super) sources: &'a [Export],
    pub(super) stripes: &'a [Arc<dyn StripeSink>],
    /// The target of each stripe.
    pub(super) targets: &'a [String],
    pub(super) buffers: Buffers,
    pub(super) block: u64,
    pub(super) bytes: u64,
    pub(super) limit: Option<BytesPerSec>,
    pub(super) name: String,
}

/// Where the pieces of a source come from: its changes, or what is known of it already.
pub(super) type Pieces = (Option<Box<dyn Changes>>, Option<VecDeque<Piece>>);

/// A backup that runs.
#[derive(Debug)]
pub(super) struct Engine {
    clock: Clock,
    pipeline: Pipeline,
    tally: BackupTally,
    slots: Slots,
    links: Links,
    /// The connections of each source, and of each stripe on an export.
    sources: Vec<Bundle>,
    volumes: Vec<Option<(Bundle, Region)>>,
    feeds: Vec<Feed>,
    telling: Telling,
    workers: Workers,
    digests: Vec<StripeDigest>,
    bytes: u64,
    /// The names of the places of the plan.
    names: Vec<String>,
}

impl Engine {
    pub(super) fn new(
        setup: &Setup<'_>,
        (pieces, read_done): (Vec<Pieces>, Vec<Option<Box<dyn ReadDone>>>),
        encoders: Vec<FrameEncoder>,
    ) -> Result<Self, BackupError> {
        let mut workers = Workers::new()?;
        let mut links = Links::new(workers.waker())?;
        let transfer = setup.buffers.max_transfer.get();
        let longest = usize::try_from(transfer).unwrap_or(usize::MAX);
        let mut sources = Vec::new();
        for export in setup.sources {
            sources.push(links.connect(export, longest)?);
        }
        let mut volumes = Vec::new();
        for sink in setup.stripes {
            let volume = sink.volume();
            let connected = volume.map(|region| {
                let connected = links.connect(&region.export, frame_room(longest));
                connected.map(|bundle| (bundle, region.clone()))
            });
            let connected = connected.transpose()?;
            workers.add_stripe(connected.is_none().then_some(sink), WRITE_DEPTH)?;
            volumes.push(connected);
        }
        let plan = plan(setup, u32::try_from(encoders.len()).unwrap_or(u32::MAX));
        encoders.into_iter().try_for_each(|encoder| workers.add_encoder(encoder))?;
        let mut pipeline = Pipeline::new(plan);
        let mut feeds = Vec::new();
        for (at, (changes, known)) in pieces.into_iter().enumerate() {
            pipeline.set_open(at, true);
            if let Some(known) = known {
                feeds.push(Feed::known(known));
                continue;
            }
            let own = (setup.sources[at].clone(), setup.block);
            feeds.push(Feed::start(own, changes, workers.waker().clone())?);
        }
        let clock = Clock::start();
        pipeline.start(clock.now());
        Ok(Self {
            clock,
            tally: BackupTally::new(setup.name.clone(), clock.now(), &pipeline),
            pipeline,
            slots: Slots::new(setup.buffers.count, transfer),
            links,
            sources,
            volumes,
            feeds,
            telling: Telling::start(read_done)?,
            workers,
            digests: vec![StripeDigest::default(); setup.stripes.len()],
            bytes: setup.bytes,
            names: names(setup),
        })
    }

    /// Runs until everything is read and written. Returns the digests of the stripes.
    pub(super) fn drive(
        &mut self,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<Vec<StripeDigest>, BackupError> {
        let mut next_tick = Instant::ZERO;
        loop {
            let now = self.clock.now();
            self.tally.pass(now, &self.pipeline);
            self.take_in(now)?;
            self.feed()?;
            let until = self.start(now)?;
            self.links.send(&self.slots)?;
            if now >= next_tick || self.pipeline.is_done() {
                next_tick = now + TICK;
                let (feeds, pipeline) = (&self.feeds, &self.pipeline);
                let is_ended = |at: usize| feeds[at].is_ended() && pipeline.pieces(at) == 0;
                self.telling.tell(is_ended)?;
                if !watch(&self.progress(now)) {
                    return Err(BackupError::Interrupted);
                }
            }
            if self.pipeline.is_done() {
                self.tally.finish(now);
                self.telling.finish()?;
                return Ok(self.digests.clone());
            }
            if !self.slots.finished.is_empty() {
                continue;
            }
            let until = until.map_or(next_tick, |until| until.min(next_tick));
            let timeout = until.since(self.clock.now());
            self.links.wait(&mut self.slots, self.workers.waker(), Some(timeout))?;
        }
    }

    /// Returns the counts.
    pub(super) fn report(&self) -> BackupReport {
        let name = |place: u32| self.names[place as usize].clone();
        self.tally.report(self.clock.now(), &self.pipeline, name)
    }

    fn progress(&self, now: Instant) -> Progress {
        let totals = self.pipeline.totals();
        Progress {
            read: totals.read,
            total: self.bytes,
            written: totals.written,
            buffers_used: u32::try_from(self.pipeline.used()).unwrap_or(u32::MAX),
            elapsed: now.since(Instant::ZERO),
        }
    }

    /// Hands ranges to sources that have few left.
    fn feed(&mut self) -> Result<(), BackupError> {
        for (at, feed) in self.feeds.iter_mut().enumerate() {
            while !feed.is_ended() && self.pipeline.pieces(at) < AHEAD {
                match feed.poll()? {
                    Some(piece) => self.pipeline.add(at, piece.range, piece.is_zeros),
                    None if feed.is_ended() => self.pipeline.set_open(at, false),
                    None => break,
                }
            }
        }
        Ok(())
    }

    /// Starts whatever can start now. Returns when the limit lets the next read go.
    fn start(&mut self, now: Instant) -> Result<Option<Instant>, BackupError> {
        loop {
            while let Some(encode) = self.pipeline.poll_encode() {
                self.encode(&encode);
            }
            if let Some(write) = self.pipeline.poll_write() {
                self.write(write, now)?;
                continue;
            }
            let Some(read) = self.pipeline.poll_read(now) else {
                return Ok(self.pipeline.poll_deadline());
            };
            self.read(read, now)?;
        }
    }

    fn read(&mut self, read: Transfer, now: Instant) -> Result<(), BackupError> {
        let slot = self.slots.slot(read.buffer);
        (slot.read, slot.transfer, slot.issued) = (Some(read), Some(read), now);
        if let Some(mark) = self.telling.mark(read.lane) {
            mark.start(&read);
        }
        if read.is_zeros {
            self.slots.finished.push((read.buffer, Ok(())));
            return Ok(());
        }
        self.slots.prepare(read.buffer);
        let request = |bulk: &mut weir_client::Bulk| {
            bulk.queue_read(read.buffer.into(), read.offset, read.len)
        };
        self.links.queue(&self.sources[read.lane as usize], request)
    }

    fn encode(&mut self, encode: &Encode) {
        let slot = self.slots.slot(encode.buffer);
        let Some(read) = slot.read else { unreachable!("a buffer was read before") };
        let address = FrameAddress {
            stripe: u8::try_from(encode.stripe).unwrap_or(u8::MAX),
            sequence: encode.sequence,
            source: u16::try_from(read.lane).unwrap_or(u16::MAX),
            offset: read.offset,
        };
        let frame = std::mem::take(&mut slot.frame);
        let contents = (u64::from(encode.len), read.is_zeros);
        self.workers.encode(encode.buffer, frame, address, contents);
    }

    fn write(&mut self, write: Transfer, now: Instant) -> Result<(), BackupError> {
        let stripe = write.lane as usize;
        let slot = self.slots.slot(write.buffer);
        (slot.transfer, slot.issued) = (Some(write), now);
        // Writes of a stripe come in the order of its frames.
        if let Some(encoded) = slot.encoded.take() {
            self.digests[stripe].add(&encoded.header, &encoded.checksum);
        }
        if let Some((bundle, region)) = &self.volumes[stripe] {
            region.check(&self.names[write.place as usize], write.offset, write.len.into())?;
            let offset = region.base + write.offset;
            let request = |bulk: &mut weir_client::Bulk| {
                bulk.queue_write(write.buffer.into(), offset, write.len, false)
            };
            return self.links.queue(bundle, request);
        }
        let frame = std::mem::take(&mut slot.frame);
        let length = write.len as usize;
        let handed = self.workers.write(stripe, (write.buffer, frame), length, write.offset);
        if handed.is_err() {
            unreachable!("a stripe is on an export or has threads");
        }
        Ok(())
    }

    /// Takes in what sockets and threads have done.
    fn take_in(&mut self, now: Instant) -> Result<(), BackupError> {
        for (buffer, answer) in std::mem::take(&mut self.slots.finished) {
            if let Err(errno) = answer {
                return Err(self.failed(buffer, errno));
            }
            self.complete(buffer, now);
        }
        while let Some(Done { buffer, frame, outcome }) = self.workers.poll_done() {
            self.slots.slot(buffer).frame = frame;
            match outcome {
                Outcome::Encoded(encoded) => {
                    let encoded = encoded?;
                    let length = u32::try_from(encoded.length).unwrap_or(u32::MAX);
                    self.slots.slot(buffer).encoded = Some(encoded);
                    self.pipeline.handle_encoded(now, buffer, length);
                }
                Outcome::Written(written) => {
                    written?;
                    self.complete(buffer, now);
                }
            }
        }
        Ok(())
    }

    fn complete(&mut self, buffer: u32, now: Instant) {
        let slot = self.slots.slot(buffer);
        if let Some(transfer) = slot.transfer.take() {
            if !transfer.is_zeros {
                let latency = now.since(slot.issued);
                self.tally.record(&transfer, latency, &ServiceTime::default());
            }
            if let Some(mark) = self.telling.mark(transfer.lane).filter(|_| !transfer.is_write) {
                mark.complete(&transfer);
            }
        }
        self.pipeline.handle_completion(now, buffer);
    }

    fn failed(&self, buffer: u32, errno: weir_proto::Errno) -> BackupError {
        let transfer = self.slots.all[buffer as usize].transfer;
        let Some(Transfer { offset, len, is_write, place, .. }) = transfer else {
            return BackupError::Failed(format!("the server answered {errno}"));
        };
        let (verb, name) =
            (if is_write { "writing" } else { "reading" }, &self.names[place as usize]);
        BackupError::Failed(format!(
            "{verb} {len} bytes at offset {offset} of {name:?} failed: {errno}; the server's log may \
             say why"
        ))
    }
}

/// Builds the pipeline's plan: places are the sources, then the targets.
fn plan(setup: &Setup<'_>, encoders: u32) -> Plan {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let source = |at| weir_pipeline::Source { place: at, ranges: Vec::new() };
    let sources = count(setup.sources.len());
    let names = names(setup);
    let place = |target: &String| {
        let targets = names.iter().skip(setup.sources.len());
        targets.zip(sources..).find(|(name, _)| *name == target).map_or(sources, |(_, at)| at)
    };
    Plan {
        sources: (0..sources).map(source).collect(),
        // The stripe's header stands before the first frame.
        stripes: setup.targets.iter().map(|target| (place(target), PAGE)).collect(),
        buffers: setup.buffers,
        compressed_per_mille: 1000,
        compression_per_mib: Span::ZERO,
        encoders,
        limit: setup.limit,
    }
}

/// Returns the names of the sources, then of the targets, each once.
fn names(setup: &Setup<'_>) -> Vec<String> {
    let mut names: Vec<String> =
        setup.sources.iter().map(|export| export.name().to_owned()).collect();
    let sources = names.len();
    for target in setup.targets {
        if !names[sources..].contains(target) {
            names.push(target.clone());
        }
    }
    names
}
