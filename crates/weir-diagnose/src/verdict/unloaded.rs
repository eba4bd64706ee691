//! The unloaded latency of a subject.

use super::wait::Basis;
use crate::follow::{Bin, SubjectFacts};
use crate::system::{Medium, Reads, Subject};

/// Minimum number of quiet samples.
pub(super) const QUIET_SAMPLES: u64 = 5;

/// Latency that stays this steady in quiet samples is the medium's, however long it is.
const STEADY: f64 = 1.6;

/// Highest latency of a medium, as a multiple of the edition's.
const SLOWEST: f64 = 3.0;

/// Lowest latency of a medium, as a multiple of the edition's.
const FASTEST: f64 = 0.3;

/// Returns the unloaded latency as a multiple of the edition's medium, from the samples, since real
/// disks differ from published figures.
pub(super) fn medium_ratio(subject: &Subject, own: &SubjectFacts) -> f64 {
    let may_hit = subject.path.iter().any(|counts| counts.reads != Reads::All);
    if own.alone.is_empty() {
        // With bursts only, a fast medium shows in the latency that they do not explain.
        let is_known = own.apart.len() >= QUIET_SAMPLES && !may_hit;
        let middle = || weir_report::number::float(own.apart.value_at_quantile(0.5)) / 1000.0;
        return if is_known { middle().clamp(FASTEST, 1.0) } else { 1.0 };
    }
    let at = |share| weir_report::number::float(own.alone.value_at_quantile(share)) / 1000.0;
    let (fast, middle) = (at(0.1), at(0.5));
    // If the burst size is unknown, latencies above this may be due to short bursts.
    let is_known = own.whole.bounded_s >= 0.5 * own.seconds();
    match fast {
        fast if fast > SLOWEST && !is_known => SLOWEST,
        fast if fast >= 1.0 => fast,
        // Cache hits are fast, whatever the medium.
        _ if may_hit => 1.0,
        _ => middle.clamp(FASTEST, 1.0),
    }
}

/// The unloaded latency.
#[derive(Debug, Clone, Copy)]
pub(super) enum Unloaded {
    /// The edition's medium, corrected by observed latencies.
    Medium(Medium),
    /// Latency of quiet samples in nanoseconds.
    Quiet(f64),
    /// Unknown.
    Unknown,
}

impl Unloaded {
    pub(super) fn new(subject: &Subject, own: &SubjectFacts, trusts: bool) -> Self {
        if let Some(medium) = subject.medium {
            let times = if trusts { 1.0 } else { medium_ratio(subject, own) };
            return Self::Medium(medium * times);
        }
        let quiet = &own.idle_latency;
        let at = |share| weir_report::number::float(quiet.value_at_quantile(share));
        if quiet.len() < QUIET_SAMPLES {
            return Self::Unknown;
        }
        // Samples of little use show the medium, unless their bursts wait: the fastest of them.
        let (fast, middle) = (at(0.1), at(0.5));
        Self::Quiet(if middle < STEADY * fast { middle } else { fast })
    }

    pub(super) const fn basis(self, own: &SubjectFacts) -> Basis {
        match self {
            _ if own.has_queue_times => Basis::Queued,
            Self::Medium(_) => Basis::Medium,
            Self::Quiet(_) => Basis::Quiet,
            Self::Unknown => Basis::Utilisation,
        }
    }

    pub(super) fn mean(self, all: &Bin) -> Option<f64> {
        let operations = all.operations.max(1.0);
        match self {
            Self::Medium(medium) => {
                let both = (all.reads + all.mixed.0, all.writes + all.mixed.1);
                let known = both.0 + both.1 > 0.0;
                let most = || medium.most(operations, all.bytes.1) / operations;
                Some(if known {
                    medium.total_ns(both, all.bytes, all.hits) / (both.0 + both.1)
                } else {
                    most()
                })
            }
            Self::Quiet(ns) => Some(ns),
            Self::Unknown => None,
        }
    }

    /// Returns the total latency of a bin in excess of it.
    pub(super) fn excess(self, bin: &Bin, has_queue_times: bool) -> f64 {
        if has_queue_times {
            return bin.queued_ns;
        }
        let beyond = match self {
            Self::Medium(medium) if bin.reads + bin.writes > 0.0 => {
                // Cache hits are faster, but do not reduce the wait time of others.
                let unloaded = medium.reads_with_hits(bin.reads, bin.bytes.0, bin.hits);
                let reads = bin.read_ns - unloaded;
                let writes = bin.write_ns - medium.writes(bin.writes, bin.bytes.1);
                reads.max(0.0) + writes.max(0.0)
            }
            Self::Medium(medium) if bin.mixed.0 + bin.mixed.1 > 0.0 => {
                bin.ns - medium.total_ns(bin.mixed, bin.bytes, bin.hits)
            }
            Self::Medium(medium) => bin.ns - medium.most(bin.operations, bin.bytes.1),
            Self::Quiet(ns) => bin.ns - bin.operations * ns,
            Self::Unknown => 0.0,
        };
        beyond.max(0.0)
    }
}
