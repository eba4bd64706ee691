//! Computes wait times of each subject at each limit.
//!
//! Wait time is latency in excess of the unloaded latency. The unloaded latency comes from the
//! edition, corrected by samples with isolated requests, or from quiet samples. Queue times of a
//! governor are wait times already. The pass over the samples has charged the limits, with an upper
//! bound of the wait time at each, so that latency with another cause does not count as wait time.
//! If bursts and a slow medium cannot be distinguished, a limit is only suspected.

use crate::follow::{Bin, Facts, NEAR, Stretch, SubjectFacts, bin_start};
use crate::system::{Medium, Reads, Subject, System};
use weir_core::Cap as Kind;
use weir_report::diagnosis::Confidence;

/// Minimum share of wait time in the latency of a throttled subject.
pub const THROTTLED: f64 = 1.0 / 3.0;

/// Minimum mean wait time in nanoseconds: remote storage itself takes milliseconds.
const LEAST_NS: f64 = 1_000_000.0;

/// Queues of fewer operations are chance ...
const QUEUED_OPERATIONS: f64 = 100.0;

/// Minimum mean queue time in nanoseconds.
const QUEUED_NS: f64 = 2_000_000.0;

/// Minimum share of the observed time that is lost by waiting: 7 s per hour. A few operations a
/// minute may reach a limit in a burst without any effect.
pub const LEAST_LOST: f64 = 0.002;

/// Minimum total wait time of a short episode, in nanoseconds, however long the observation is.
pub const NOTED_NS: f64 = 10e9;

/// An episode takes this many seconds and more.
pub(crate) const EPISODE_S: f64 = 5.0;

/// Duration in seconds from which on throttling in slow samples counts for the whole observation.
const HELD_S: f64 = 30.0;

/// Minimum number of slow samples for that.
const HELD_SAMPLES: u64 = 2;

/// Share of time near a limit from which on it throttled.
const NEAR_SHARE: f64 = 0.05;

/// Minimum number of quiet samples.
const QUIET_SAMPLES: u64 = 5;

/// Latency that stays this steady in quiet samples is the medium's, however long it is.
const STEADY: f64 = 1.6;

/// A medium takes up to so many times what its edition says of it ...
const SLOWEST: f64 = 3.0;

/// Lowest latency of a medium, as a multiple of the edition's.
const FASTEST: f64 = 0.3;

/// The source of wait times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Weir counted the waits at each cap.
    Counted,
    /// The queues of a governor were counted.
    Queued,
    /// Latency of the edition's medium, corrected by isolated requests.
    Medium,
    /// It was seen what requests take when nothing is used much.
    Quiet,
    /// Nothing is known but how much was used.
    Use,
}

/// The wait time of a subject at a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CapWait {
    /// The cap.
    pub cap: usize,
    /// Kind of the limit. Burst limits are kinds of their own.
    pub kind: Kind,
    /// Total wait time in nanoseconds.
    pub waited_ns: f64,
    /// The part of the latency that it is.
    pub share: f64,
    /// Time in which the limit had the highest utilisation, of 90 % or more, in seconds.
    pub near_s: f64,
}

/// The wait times of a subject.
#[derive(Debug, Clone, PartialEq)]
pub struct Waited {
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
    pub usual_ns: Option<f64>,
    /// Unloaded latency as a multiple of the edition's medium.
    pub beside_edition: f64,
    /// Source of the credits or waits.
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
    pub waited_ns: f64,
    /// The part of the latency that this is.
    pub share: f64,
    /// Duration of the slow samples in seconds.
    pub seconds: f64,
}

impl Waited {
    /// Returns the limit that throttles the subject, if any.
    #[must_use]
    pub fn throttled(&self) -> Option<&CapWait> {
        self.waits.first().filter(|_| self.is_throttled())
    }

    /// Returns whether wait times are long enough for throttling.
    fn is_throttled(&self) -> bool {
        self.is_waiting() && self.waited_ns() >= LEAST_LOST * self.seconds * 1e9
    }

    /// Returns whether requests waited at limits for a third of their latency and a millisecond,
    /// whatever the lost time.
    fn is_waiting(&self) -> bool {
        let mean_ns = self.waited_ns() / self.operations.max(1.0);
        if self.basis == Basis::Queued && self.is_little(mean_ns) {
            return false;
        }
        // Otherwise another cause is larger.
        let explains = self.all_share() >= self.unexplained_share();
        explains && self.all_share() >= THROTTLED && mean_ns >= LEAST_NS
    }

    /// Returns whether queue times are too short to count: SQL Server counts whole milliseconds.
    fn is_little(&self, mean_ns: f64) -> bool {
        self.operations < QUEUED_OPERATIONS || mean_ns < QUEUED_NS
    }

    /// Returns the wait time at all limits in nanoseconds.
    #[must_use]
    pub fn waited_ns(&self) -> f64 {
        self.waits.iter().fold(0.0, |sum, wait| sum + wait.waited_ns)
    }

    /// Returns the share of wait time in the latency.
    #[must_use]
    pub fn all_share(&self) -> f64 {
        if self.latency_ns > 0.0 { self.waited_ns() / self.latency_ns } else { 0.0 }
    }

    /// The part of the latency that nothing explains.
    #[must_use]
    pub fn unexplained_share(&self) -> f64 {
        if self.latency_ns > 0.0 { self.unexplained_ns / self.latency_ns } else { 0.0 }
    }
}

/// Wait times of each subject, in the order of the system's subjects.
#[must_use]
pub fn judge(system: &System, facts: &Facts) -> Vec<Waited> {
    let subjects = system.subjects.iter().zip(&facts.subjects);
    subjects.map(|(subject, own)| of_subject(system, subject, own)).collect()
}

fn of_subject(system: &System, subject: &Subject, own: &SubjectFacts) -> Waited {
    let of = |stretch: &Stretch, trusts: bool| of_stretch(system, subject, own, stretch, trusts);
    let whole = match own.waited.is_empty() {
        true => of(&own.whole, false),
        false => counted(system, subject, own, &own.whole.all()),
    };
    let is_long = own.slow.seconds >= HELD_S && own.slow.samples >= HELD_SAMPLES;
    if whole.is_throttled() {
        return whole;
    }
    let slow = Waited { is_whole: false, ..of(&own.slow, false) };
    // Waits that Weir did not count did not occur.
    let most = if whole.basis == Basis::Counted { whole.waited_ns() } else { f64::INFINITY };
    let is_possible = 0.5 * slow.waited_ns() <= most;
    if is_long && slow.is_throttled() && is_possible {
        return slow;
    }
    let is_noted = own.slow.seconds >= EPISODE_S && slow.waited_ns() >= NOTED_NS;
    let episode = slow.waits.first().filter(|_| is_noted && is_possible && slow.is_waiting());
    let episode = episode.map(|wait| Episode {
        wait: *wait,
        waited_ns: slow.waited_ns(),
        share: slow.all_share(),
        seconds: slow.seconds,
    });
    // A medium whose latency was often seen in isolated requests is not suspected.
    let is_often = own.alone.len() >= QUIET_SAMPLES && 2 * own.alone.len() >= own.whole.samples;
    let is_seen = own.whole.bounded_s >= 0.5 * own.seconds() && is_often;
    let is_open = !is_seen && whole.basis == Basis::Medium;
    let trusting = [(&own.whole, true), (&own.slow, is_long)];
    let trusting = trusting.into_iter().filter(|(_, is_enough)| *is_enough && is_open);
    let mut trusting = trusting.map(|(stretch, _)| of(stretch, true));
    let suspected =
        trusting.find(Waited::is_throttled).and_then(|own| own.waits.into_iter().next());
    Waited { suspected, episode, ..whole }
}

/// Computes the wait times in a stretch. With `trusts`, the edition's medium is taken as it is, and
/// all excess latency as wait time, as far as one burst of all operations of a sample explains it.
/// Without it, wait time needs evidence: a known burst size, or a limit that was reached.
fn of_stretch(
    system: &System,
    subject: &Subject,
    own: &SubjectFacts,
    stretch: &Stretch,
    trusts: bool,
) -> Waited {
    let all = stretch.all();
    let usual = Usual::of(subject, own, trusts);
    let beside_edition = if trusts { 1.0 } else { beside_edition(subject, own) };
    let near_s = stretch.bins.iter().map(|bins| near(bins)).fold(0.0, f64::max);
    let is_near = near_s >= NEAR_SHARE * stretch.seconds && near_s > 0.0;
    let is_bounded = stretch.bounded_s >= 0.5 * stretch.seconds;
    let is_told = trusts || is_near || is_bounded || own.says_queued;
    let mut waited = Waited {
        seconds: stretch.seconds,
        is_whole: true,
        suspected: None,
        waits: Vec::new(),
        episode: None,
        unexplained_ns: 0.0,
        latency_ns: all.ns,
        operations: all.operations,
        usual_ns: usual.mean(&all),
        beside_edition: if subject.medium.is_some() { beside_edition } else { 1.0 },
        basis: usual.basis(own),
        confidence: Confidence::Low,
    };
    for (place, counts) in subject.path.iter().enumerate() {
        let mut wait_ns = 0.0;
        for bin in &stretch.bins[place] {
            let beyond = usual.beyond(bin, own.says_queued);
            let possible_ns = if trusts { bin.most_ns } else { bin.possible_ns };
            // Excess latency above the upper bound has another cause.
            let here = if is_told { beyond.min(possible_ns) } else { 0.0 };
            wait_ns += here;
            waited.unexplained_ns += (beyond - here).max(0.0);
        }
        let near_s = near(&stretch.bins[place]);
        if wait_ns > 0.0 || near_s > 0.0 {
            let cap = &system.caps[counts.cap];
            let share = if all.ns > 0.0 { wait_ns / all.ns } else { 0.0 };
            let (at_peak, all_of_it) = own.peaks[place];
            let kind = if at_peak > 0.5 * all_of_it { cap.at_peak() } else { cap.kind };
            waited.waits.push(CapWait { cap: counts.cap, kind, waited_ns: wait_ns, share, near_s });
        }
    }
    for bin in stretch.bins.last().into_iter().flatten() {
        waited.unexplained_ns += usual.beyond(bin, own.says_queued);
    }
    waited.waits.sort_by(|one, other| {
        other.waited_ns.total_cmp(&one.waited_ns).then(other.near_s.total_cmp(&one.near_s))
    });
    waited.confidence = confidence(&waited, is_near);
    waited
}

/// Returns the time at 90 % of the limit or more, in seconds.
fn near(bins: &[Bin]) -> f64 {
    let near = bins.iter().enumerate().filter(|(bin, _)| bin_start(*bin) >= NEAR - 1e-9);
    near.fold(0.0, |sum, (_, bin)| sum + bin.seconds)
}

fn confidence(waited: &Waited, is_near: bool) -> Confidence {
    match waited.basis {
        Basis::Counted => Confidence::High,
        Basis::Queued | Basis::Medium | Basis::Quiet if is_near => Confidence::High,
        Basis::Queued | Basis::Medium | Basis::Quiet => Confidence::Medium,
        Basis::Use if is_near => Confidence::Medium,
        Basis::Use => Confidence::Low,
    }
}

/// Returns the wait times that Weir counted.
fn counted(system: &System, subject: &Subject, own: &SubjectFacts, all: &Bin) -> Waited {
    let mut waits = Vec::new();
    let mut elsewhere = 0.0;
    for (name, waited_ns) in own.waited.iter().filter(|(_, ns)| *ns > 0.0) {
        let cap = subject.path.iter().map(|counts| counts.cap).find(|cap| {
            let cap = &system.caps[*cap];
            cap.kind.name() == name || cap.at_peak().name() == name
        });
        let Some(cap) = cap else {
            elsewhere += waited_ns;
            continue;
        };
        let own_cap = &system.caps[cap];
        let is_peak = own_cap.kind.name() != name;
        let kind = if is_peak { own_cap.at_peak() } else { own_cap.kind };
        let place = subject.path.iter().position(|counts| counts.cap == cap);
        let near_s = place.map_or(0.0, |place| near(&own.whole.bins[place]));
        let waited_ns = *waited_ns;
        let share = if all.ns > 0.0 { waited_ns / all.ns } else { 0.0 };
        waits.push(CapWait { cap, kind, waited_ns, share, near_s });
    }
    waits.sort_by(|one, other| other.waited_ns.total_cmp(&one.waited_ns));
    let waited: f64 = waits.iter().map(|wait: &CapWait| wait.waited_ns).sum();
    let usual = (all.ns - waited - elsewhere).max(0.0) / all.operations.max(1.0);
    Waited {
        seconds: own.seconds(),
        is_whole: true,
        suspected: None,
        waits,
        episode: None,
        unexplained_ns: elsewhere,
        latency_ns: all.ns,
        operations: all.operations,
        usual_ns: Some(usual),
        beside_edition: 1.0,
        basis: Basis::Counted,
        confidence: Confidence::High,
    }
}

/// Returns the unloaded latency as a multiple of the edition's medium, from the samples, since real
/// disks differ from published figures.
fn beside_edition(subject: &Subject, own: &SubjectFacts) -> f64 {
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
enum Usual {
    /// As the edition says, or times that, as was seen.
    Medium(Medium),
    /// As was seen.
    Quiet(f64),
    /// Unknown.
    Unknown,
}

impl Usual {
    fn of(subject: &Subject, own: &SubjectFacts, trusts: bool) -> Self {
        if let Some(medium) = subject.medium {
            let times = if trusts { 1.0 } else { beside_edition(subject, own) };
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

    const fn basis(self, own: &SubjectFacts) -> Basis {
        match self {
            _ if own.says_queued => Basis::Queued,
            Self::Medium(_) => Basis::Medium,
            Self::Quiet(_) => Basis::Quiet,
            Self::Unknown => Basis::Use,
        }
    }

    fn mean(self, all: &Bin) -> Option<f64> {
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
    fn beyond(self, bin: &Bin, says_queued: bool) -> f64 {
        if says_queued {
            return bin.queued_ns;
        }
        let beyond = match self {
            Self::Medium(medium) if bin.reads + bin.writes > 0.0 => {
                // Cache hits are faster, but do not reduce the wait time of others.
                let usual = medium.reads_with_hits(bin.reads, bin.bytes.0, bin.hits);
                let reads = bin.read_ns - usual;
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
