//! The wait times of a subject, and whether they mean throttling.

use weir_core::Cap as Kind;
use weir_report::diagnosis::Confidence;

/// Minimum share of wait time in the latency of a throttled subject.
pub const THROTTLED: f64 = 1.0 / 3.0;

/// Minimum mean wait time in nanoseconds, unless waits were counted: remote storage itself takes milliseconds.
const LEAST_NS: f64 = 1_000_000.0;

/// Minimum share of wait time in the latency that is mentioned.
pub(crate) const NOTED: f64 = 0.05;

/// Minimum number of operations whose queue times count.
const QUEUED_OPERATIONS: f64 = 100.0;

/// Minimum mean queue time in nanoseconds.
const QUEUED_NS: f64 = 2_000_000.0;

/// Minimum share of the observed time that is lost by waiting: 7 s per hour. A few operations a
/// minute may reach a limit in a burst without any effect.
pub(crate) const LEAST_LOST: f64 = 0.002;

/// The source of wait times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Weir counted the waits at each cap.
    Counted,
    /// The governor counted queue times.
    Queued,
    /// Latency of the edition's medium, corrected by isolated requests.
    Medium,
    /// Latency of quiet samples.
    Quiet,
    /// Utilisation of limits only.
    Utilisation,
}

/// The wait time of a subject at a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CapWait {
    /// The cap.
    pub cap: usize,
    /// Kind of the limit. Burst limits are kinds of their own.
    pub kind: Kind,
    /// Total wait time in nanoseconds.
    pub wait_ns: f64,
    /// Its share of the latency.
    pub share: f64,
    /// Time in which the limit had the highest utilisation, of 90 % or more, in seconds.
    pub near_limit_s: f64,
}

/// The wait times of a subject.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitTimes {
    /// Duration in seconds: that of the slow samples if only these are throttled.
    pub seconds: f64,
    /// Set if this is the whole observation.
    pub is_whole: bool,
    /// The suspected limit, which throttles if the medium is as fast as the edition's.
    pub suspected: Option<CapWait>,
    /// Limits, by wait time.
    pub waits: Vec<CapWait>,
    /// A short episode of throttling, which is too short for a verdict.
    pub episode: Option<Episode>,
    /// Latency beyond the medium's that no cap explains, in nanoseconds.
    pub unexplained_ns: f64,
    /// Total latency in nanoseconds.
    pub latency_ns: f64,
    /// Operations.
    pub operations: f64,
    /// Unloaded latency in nanoseconds, if known.
    pub unloaded_ns: Option<f64>,
    /// Unloaded latency as a multiple of the edition's medium.
    pub medium_ratio: f64,
    /// Source of the wait times.
    pub basis: Basis,
    /// Confidence.
    pub confidence: Confidence,
}

/// A short time in which a limit throttled a subject.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Episode {
    /// The limit with the longest wait time.
    pub wait: CapWait,
    /// Wait time at all limits in nanoseconds.
    pub wait_ns: f64,
    /// Its share of the latency.
    pub share: f64,
    /// Duration of the slow samples in seconds.
    pub seconds: f64,
}

impl WaitTimes {
    /// Returns the limit that throttles the subject, if any.
    #[must_use]
    pub fn throttled(&self) -> Option<&CapWait> {
        self.waits.first().filter(|_| self.is_throttled())
    }

    /// Returns whether wait times are long enough for throttling.
    pub(super) fn is_throttled(&self) -> bool {
        self.is_waiting() && self.wait_ns() >= LEAST_LOST * self.seconds * 1e9
    }

    /// Returns whether requests waited at limits for a third of their latency, and for a millisecond if this is an
    /// estimate, whatever the lost time.
    pub(super) fn is_waiting(&self) -> bool {
        let mean_ns = self.wait_ns() / self.operations.max(1.0);
        if self.basis == Basis::Queued && self.is_little(mean_ns) {
            return false;
        }
        // Otherwise another cause is larger.
        let explains = self.all_share() >= self.unexplained_share();
        let is_long = self.basis == Basis::Counted || mean_ns >= LEAST_NS;
        explains && self.all_share() >= THROTTLED && is_long
    }

    /// Returns whether queue times are too short to count: SQL Server counts whole milliseconds.
    fn is_little(&self, mean_ns: f64) -> bool {
        self.operations < QUEUED_OPERATIONS || mean_ns < QUEUED_NS
    }

    /// Returns the wait time at all limits in nanoseconds.
    #[must_use]
    pub fn wait_ns(&self) -> f64 {
        self.waits.iter().fold(0.0, |sum, wait| sum + wait.wait_ns)
    }

    /// Returns the share of wait time in the latency.
    #[must_use]
    pub(crate) fn all_share(&self) -> f64 {
        if self.latency_ns > 0.0 { self.wait_ns() / self.latency_ns } else { 0.0 }
    }

    /// Returns the share of the latency that no cap explains.
    #[must_use]
    pub(crate) fn unexplained_share(&self) -> f64 {
        if self.latency_ns > 0.0 { self.unexplained_ns / self.latency_ns } else { 0.0 }
    }
}
