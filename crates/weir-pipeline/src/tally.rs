//! A backup's counts, made in the same way by both clocks.

use crate::description::PAGE;
use crate::pipeline::{Pipeline, Transfer, printed_rate};
use std::collections::BTreeMap;
use weir_core::{ServiceTime, Waits};
use weir_report::backup::{BackupPlaceReport, BackupReport};
use weir_report::number::float;
use weir_units::{Bytes, Instant, Span};

/// Limits bind a backup if waits at them are at least this part of the latency of its transfers:
/// one in ten.
const BINDS: u64 = 10;

/// The name of a backup's own limit among the limits that can bind it.
const OWN_LIMIT: &str = "limit";

/// Counts of the transfers of a place, all in one direction.
#[derive(Debug, Clone, Copy, Default)]
struct Transfers {
    count: u64,
    bytes: u64,
    /// The sum of their latencies.
    latency: Span,
    service: ServiceTime,
}

/// Counts of a backup.
#[derive(Debug)]
pub struct BackupTally {
    name: String,
    start: Instant,
    end: Option<Instant>,
    now: Instant,
    /// Places and whether they are targets, sources first.
    places: Vec<(u32, bool)>,
    counts: Vec<Transfers>,
    /// Buffers in use times nanoseconds.
    used: u128,
}

impl BackupTally {
    /// Starts counting a backup that begins at `start`.
    #[must_use]
    pub fn new(name: String, start: Instant, pipeline: &Pipeline) -> Self {
        let mut places: Vec<(u32, bool)> = Vec::new();
        let plan = pipeline.plan();
        let sources = plan.sources.iter().map(|source| (source.place, false));
        for own in sources.chain(plan.stripes.iter().map(|(place, _)| (*place, true))) {
            if !places.contains(&own) {
                places.push(own);
            }
        }
        let counts = vec![Transfers::default(); places.len()];
        Self { name, start, end: None, now: start, places, counts, used: 0 }
    }

    /// Returns the name of the backup.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds the time until `now`, in which `pipeline` did not change.
    pub fn pass(&mut self, now: Instant, pipeline: &Pipeline) {
        if self.end.is_none() && now > self.now {
            let nanos = u128::from(now.since(self.now).nanos());
            self.used += nanos * pipeline.used() as u128;
            self.now = now;
        }
    }

    /// Counts a transfer.
    pub fn record(&mut self, transfer: &Transfer, latency: Span, service: &ServiceTime) {
        let own = (transfer.place, transfer.is_write);
        if let Some(at) = self.places.iter().position(|place| *place == own) {
            let counts = &mut self.counts[at];
            counts.count += 1;
            counts.bytes += u64::from(transfer.len);
            counts.latency += latency;
            counts.service += *service;
        }
    }

    /// Notes that the backup is complete.
    pub fn finish(&mut self, now: Instant) {
        self.end.get_or_insert(now);
    }

    /// Returns the report at `now`. `name` returns the name of a place.
    #[must_use]
    pub fn report(
        &self,
        now: Instant,
        pipeline: &Pipeline,
        name: impl Fn(u32) -> String,
    ) -> BackupReport {
        let elapsed = self.end.unwrap_or(now).since(self.start);
        let seconds = float(elapsed.nanos()) / 1e9;
        let (plan, totals) = (pipeline.plan(), pipeline.totals());
        let bytes = pipeline.bytes();
        let rate = printed_rate(Bytes::new(totals.read), elapsed);
        let message = self.end.and(rate).map(|rate| {
            format!(
                "BACKUP DATABASE successfully processed {} pages in {seconds:.3} seconds \
                 ({rate:.3} MB/sec).",
                bytes.div_ceil(PAGE)
            )
        });
        let places = self.places.iter().zip(&self.counts);
        #[expect(clippy::cast_precision_loss, reason = "a mean")]
        let buffers_used = self.used as f64 / float(elapsed.nanos().max(1));
        BackupReport {
            backup: self.name.clone(),
            is_complete: self.end.is_some(),
            start_s: float(self.start.nanos()) / 1e9,
            elapsed_s: seconds,
            bytes,
            bytes_read: totals.read,
            bytes_written: totals.written,
            mib_per_s: rate,
            message,
            binding_limit: self.binding(totals.waited_for_limit, elapsed),
            readers: plan.buffers.readers,
            stripes: plan.buffers.devices,
            buffer_count: plan.buffers.count,
            buffer_sets: plan.buffers.sets,
            max_transfer_bytes: plan.buffers.max_transfer.get(),
            buffers_used,
            waited_for_buffer_s: float(totals.waited_for_buffer.nanos()) / 1e9,
            waited_for_data_s: float(totals.waited_for_data.nanos()) / 1e9,
            places: places.map(|(own, count)| place(own, count, seconds, &name)).collect(),
        }
    }

    /// Returns `limit` if reads waited for the limit of the backup most of the time, or the limit at
    /// which transfers waited longest, if they waited.
    fn binding(&self, limited: Span, elapsed: Span) -> Option<String> {
        if limited.nanos() > elapsed.nanos() / 2 {
            return Some(OWN_LIMIT.to_owned());
        }
        let mut waits = Waits::default();
        let mut latency = Span::ZERO;
        for own in &self.counts {
            waits += own.service.waits;
            latency += own.latency;
        }
        if waits.total().nanos() < latency.nanos() / BINDS {
            return None;
        }
        waits.iter().max_by_key(|(_, span)| *span).map(|(cap, _)| cap.name().to_owned())
    }
}

fn place(
    (at, is_target): &(u32, bool),
    own: &Transfers,
    seconds: f64,
    name: impl Fn(u32) -> String,
) -> BackupPlaceReport {
    let per_s = |n: f64| if seconds > 0.0 { n / seconds } else { 0.0 };
    let waits = own.service.waits.iter().map(|(cap, span)| (cap.name().to_owned(), span.nanos()));
    let latency = float(own.latency.nanos());
    BackupPlaceReport {
        place: name(*at),
        role: if *is_target { "target" } else { "source" }.to_owned(),
        transfers: own.count,
        bytes: own.bytes,
        bytes_per_s: per_s(float(own.bytes)),
        latency_mean_ns: if own.count > 0 { latency / float(own.count) } else { 0.0 },
        // By Little's law.
        queue_depth: per_s(latency / 1e9),
        waits_ns: waits.collect::<BTreeMap<_, _>>(),
        medium_ns: own.service.medium.nanos(),
    }
}
