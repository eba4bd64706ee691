//! The facts of a system: the result of the pass over the samples.

use super::backups::BackupFacts;
use super::bins::LoadHistogram;
use super::cap::CapFacts;
use super::moments::Moment;
use super::others::Others;
use crate::system::{SubjectId, System};
use hdrhistogram::Histogram;
use weir_observe::load::{Load, mean};
use weir_observe::rates::{Points, Spread};
use weir_units::Instant;

/// The load of a subject, by utilisation of its limits.
#[derive(Debug)]
pub struct SubjectFacts {
    /// All samples.
    pub whole: LoadHistogram,
    /// Samples with a latency above the unloaded latency.
    pub slow: LoadHistogram,
    /// Operations at the burst limit, and all operations, for each limit.
    pub peaks: Vec<(f64, f64)>,
    /// All samples.
    pub total: Load,
    /// Operations a second.
    pub iops: Spread,
    /// Bytes a second.
    pub bytes: Spread,
    /// Queue depth over time.
    pub depth: Spread,
    /// Mean latencies of samples with low utilisation of all caps, in nanoseconds.
    pub idle_latency: Histogram<u64>,
    /// Latencies of isolated requests without queue time, in thousandths of the edition's medium.
    /// If the busy time is unknown, those of quiet samples.
    pub alone: Histogram<u64>,
    /// Latencies of bursts without their wait time, which is known if there was enough idle time
    /// between them.
    pub apart: Histogram<u64>,
    /// Mean latencies of all samples.
    pub latency: Histogram<u64>,
    /// Moments with the longest wait times.
    pub moments: Vec<Moment>,
    /// Set if queue times are known.
    pub has_queue_times: bool,
    /// Set if a queue time of zero was ignored, which proves nothing by itself.
    pub has_zero_queue_times: bool,
    /// Wait time at each limit as counted by Weir, in nanoseconds.
    pub waited: Vec<(String, f64)>,
    /// Rates and latency over time.
    pub over_time: OverTime,
}

/// Rates over time, for plots.
#[derive(Debug)]
pub struct OverTime {
    /// Operations.
    pub iops: Points,
    /// Bytes.
    pub bytes: Points,
    /// Latency in milliseconds, of samples that have any.
    pub latency_ms: Points,
}

impl OverTime {
    /// Extends all curves to a time, so that they have the same time spans.
    pub(super) fn reach(&mut self, to: Instant) {
        self.iops.reach(to);
        self.bytes.reach(to);
        self.latency_ms.reach(to);
    }
}

/// The facts of a system.
#[derive(Debug)]
pub struct Facts {
    /// Facts of each limit, in the order of the system's.
    pub caps: Vec<CapFacts>,
    /// Facts of each subject.
    pub subjects: Vec<SubjectFacts>,
    /// Other facts: waits, processors, metrics of a cloud on its limits.
    pub others: Others,
    /// Backups.
    pub backups: Vec<BackupFacts>,
    /// The part of the time that processors were busy, over time, if there are backups.
    pub processors: Option<Points>,
    /// Number of samples.
    pub samples: u64,
    /// Times of the first and the last sample.
    pub span: Option<(Instant, Instant)>,
    /// Number of counter resets.
    pub restarts: u64,
    /// Median of the sampling intervals.
    pub interval_s: f64,
}

impl SubjectFacts {
    /// Returns the observed time in seconds.
    #[must_use]
    pub const fn seconds(&self) -> f64 {
        self.whole.seconds
    }

    /// Returns the mean size of an operation in bytes.
    #[must_use]
    pub fn request_bytes(&self) -> Option<f64> {
        mean(self.total.bytes, self.total.operations)
    }

    /// Returns the mean latency in nanoseconds.
    #[must_use]
    pub fn latency_ns(&self) -> Option<f64> {
        let all = self.whole.all();
        mean(Some(all.ns), Some(all.operations))
    }

    /// Returns the share of reads in all operations.
    #[must_use]
    pub fn read_share(&self) -> Option<f64> {
        mean(self.total.reads, self.total.operations)
    }
}

impl Facts {
    /// Finds the facts of a subject, and its index.
    #[must_use]
    pub fn subject<'s>(
        &'s self,
        system: &System,
        id: SubjectId,
    ) -> Option<(usize, &'s SubjectFacts)> {
        let index = system.subjects.iter().position(|subject| subject.id == id)?;
        Some((index, &self.subjects[index]))
    }
}
