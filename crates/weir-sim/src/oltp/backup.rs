//! One backup of a run.

use weir_core::{Completion, Op};
use weir_layout::files::Place;
use weir_observe::attribute;
use weir_observe::run::{BackupCounters, BackupShape};
use weir_pipeline::{
    BackupError, BackupTally, Description, Encodings, Pipeline, PlaceAbout, Transfer,
};
use weir_report::backup::BackupReport;
use weir_units::Instant;

/// A backup beside databases, or alone.
#[derive(Debug)]
pub(super) struct Backup {
    /// The start of the first transfer.
    start: Instant,
    pipeline: Pipeline,
    encodings: Encodings,
    tally: BackupTally,
    /// The transfer in flight of each buffer.
    transfers: Vec<Option<Transfer>>,
    has_started: bool,
}

impl Backup {
    /// Places a backup on `places`.
    pub(super) fn new(description: &Description, places: &[Place]) -> Result<Self, BackupError> {
        let about = |place: &Place| PlaceAbout { size: place.size, used: place.used, name: "" };
        let about: Vec<PlaceAbout<'_>> =
            places.iter().map(|place| PlaceAbout { name: &place.name, ..about(place) }).collect();
        let pipeline = Pipeline::new(description.plan(&about)?);
        let start = Instant::ZERO + description.start;
        Ok(Self {
            start: start + description.setup,
            tally: BackupTally::new(description.name(), start, &pipeline),
            transfers: vec![None; pipeline.plan().buffers.count as usize],
            encodings: Encodings::new(pipeline.plan()),
            pipeline,
            has_started: false,
        })
    }

    pub(super) fn is_done(&self) -> bool {
        self.pipeline.is_done()
    }

    pub(super) fn poll_transfer(&mut self, now: Instant) -> Option<Transfer> {
        if now < self.start {
            return None;
        }
        if !std::mem::replace(&mut self.has_started, true) {
            self.pipeline.start(now);
        }
        let transfer = self.pipeline.poll_transfer(now)?;
        self.transfers[transfer.buffer as usize] = Some(transfer);
        Some(transfer)
    }

    pub(super) fn poll_deadline(&self) -> Option<Instant> {
        if !self.has_started {
            return Some(self.start);
        }
        let deadlines = [self.encodings.poll_deadline(), self.pipeline.poll_deadline()];
        deadlines.into_iter().flatten().min()
    }

    /// Advances to `next`. Nothing changes until then.
    pub(super) fn pass(&mut self, next: Instant) {
        if self.has_started {
            self.tally.pass(next, &self.pipeline);
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        while let Some((buffer, len)) = self.encodings.poll_done(now) {
            self.pipeline.handle_encoded(now, buffer, len);
        }
        self.encode(now);
    }

    fn encode(&mut self, now: Instant) {
        while let Some(encode) = self.pipeline.poll_encode() {
            self.encodings.start(now, &encode);
        }
    }

    /// Takes the completion of a buffer's transfer.
    pub(super) fn complete(&mut self, completion: &Completion, buffer: u32) {
        let Some(transfer) = self.transfers[buffer as usize].take() else { return };
        debug_assert_eq!(transfer.is_write, completion.op != Op::Read);
        let latency = completion.at - completion.arrived;
        self.tally.record(&transfer, latency, &completion.service());
        self.pipeline.handle_completion(completion.at, buffer);
        self.encode(completion.at);
        if self.pipeline.is_done() {
            self.tally.finish(completion.at);
        }
    }

    /// Returns its name, and its attributes in an observation.
    pub(super) fn shape(&self, places: &[Place]) -> BackupShape {
        let plan = self.pipeline.plan();
        let names = |all: &mut dyn Iterator<Item = u32>| {
            let mut names: Vec<&str> = Vec::new();
            for place in all {
                let name = places[place as usize].name.as_str();
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            names.join("; ")
        };
        let sources = names(&mut plan.sources.iter().map(|source| source.place));
        let targets = names(&mut plan.stripes.iter().map(|(place, _)| *place));
        let mut attributes: weir_observe::header::Attributes = [
            (attribute::SOURCES, sources.as_str()),
            (attribute::TARGETS, targets.as_str()),
            (attribute::OPERATION, "backup"),
            (attribute::TOOL, "Weir"),
        ]
        .map(|(name, value)| (name.to_owned(), value.into()))
        .into();
        for (name, value) in [
            (attribute::READERS, plan.buffers.readers),
            (attribute::STRIPES, plan.buffers.devices),
            (attribute::BUFFER_COUNT, plan.buffers.count),
            (attribute::BUFFER_SETS, plan.buffers.sets),
        ] {
            attributes.insert(name.to_owned(), u64::from(value).into());
        }
        let max_transfer = plan.buffers.max_transfer.get();
        attributes.insert(attribute::MAX_TRANSFER_BYTES.to_owned(), max_transfer.into());
        if plan.encoders > 0 {
            attributes.insert(attribute::COMPRESSION.to_owned(), "on".into());
            attributes.insert(attribute::ENCODERS.to_owned(), u64::from(plan.encoders).into());
        }
        let host = plan.sources.first().map_or(0, |source| places[source.place as usize].host);
        BackupShape { name: self.tally.name().to_owned(), host, attributes }
    }

    /// Returns its counters.
    pub(super) fn counters(&self) -> BackupCounters {
        let totals = self.pipeline.totals();
        BackupCounters {
            bytes: totals.read,
            written_bytes: totals.written,
            buffer_wait_ns: totals.waited_for_buffer.nanos(),
            data_wait_ns: totals.waited_for_data.nanos(),
            buffers_used: self.pipeline.used() as u64,
        }
    }

    pub(super) fn report(&self, now: Instant, places: &[Place]) -> BackupReport {
        self.tally.report(now, &self.pipeline, |place: u32| places[place as usize].name.clone())
    }
}
