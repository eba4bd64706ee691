//! Who waited, how much, and at which cap.
//!
//! What requests waited is what they took beyond what they take where nothing waits. The second
//! is known from the edition, or seen in samples in which no cap was used much; where queues of
//! a governor are counted, the first is known as it is. It goes to the cap that was used most
//! meanwhile: requests pass all caps of their path, and the first whose rate is reached holds
//! them. That holds for bursts shorter than a sample, too: the cap of which a burst uses most is
//! the one that it reaches first, however little of it is used over the whole sample. How much
//! at most can have been waited there follows from the limit, so that latency of another cause
//! is not taken for waiting.

use crate::follow::{Bin, Facts, NEAR, SubjectFacts, bin_start};
use crate::system::{Medium, Subject, System};
use weir_core::Cap as Kind;

/// Waits of less than this part of the latency are nothing that holds anybody back.
pub const THROTTLED: f64 = 1.0 / 3.0;

/// Nor is a mean wait below this, in nanoseconds: remote storage itself takes milliseconds.
pub const LEAST_NS: f64 = 1_000_000.0;

/// So few quiet samples say nothing.
const QUIET_SAMPLES: u64 = 5;

/// Latency that stays this steady in quiet samples is the medium's, however long it is.
const STEADY: f64 = 1.6;

/// How sure a verdict is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// It may be.
    Low,
    /// It follows from what is usual.
    Medium,
    /// It was counted, or nothing else is possible.
    High,
}

/// How it is known what was waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Weir counted the waits at each cap.
    Counted,
    /// The queues of a governor were counted.
    Queued,
    /// The edition says what the medium takes.
    Medium,
    /// It was seen what requests take when nothing is used much.
    Quiet,
    /// Nothing is known but how much was used.
    Use,
}

/// What a subject waited at a cap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Held {
    /// The cap.
    pub cap: usize,
    /// As what it held: burst peaks are caps of their own.
    pub kind: Kind,
    /// What was waited there, all together, in nanoseconds.
    pub waited_ns: f64,
    /// The part of the latency that it is.
    pub share: f64,
    /// For how long the cap was the one used most and used to 90 % and more, in seconds.
    pub near_s: f64,
}

/// What a subject waited.
#[derive(Debug, Clone, PartialEq)]
pub struct Waited {
    /// The caps, the one where most was waited first.
    pub held: Vec<Held>,
    /// Latency beyond the medium's that no cap explains, in nanoseconds.
    pub unexplained_ns: f64,
    /// All latency, in nanoseconds.
    pub latency_ns: f64,
    /// Operations.
    pub operations: f64,
    /// What an operation takes where nothing waits, in nanoseconds, if it is known.
    pub usual_ns: Option<f64>,
    /// How it is known.
    pub basis: Basis,
    /// How sure it is.
    pub confidence: Confidence,
}

impl Waited {
    /// Whether something holds it back, and what.
    #[must_use]
    pub fn throttled(&self) -> Option<&Held> {
        let first = self.held.first()?;
        let waited: f64 = self.held.iter().map(|held| held.waited_ns).sum();
        let mean_ns = waited / self.operations.max(1.0);
        // What the caps cannot have done has another cause, and that is the larger.
        let explains = self.all_share() >= self.unexplained_share();
        (explains && self.all_share() >= THROTTLED && mean_ns >= LEAST_NS).then_some(first)
    }

    /// The part of the latency that was waited at caps.
    #[must_use]
    pub fn all_share(&self) -> f64 {
        let waited: f64 = self.held.iter().map(|held| held.waited_ns).sum();
        if self.latency_ns > 0.0 { waited / self.latency_ns } else { 0.0 }
    }

    /// The part of the latency that nothing explains.
    #[must_use]
    pub fn unexplained_share(&self) -> f64 {
        if self.latency_ns > 0.0 { self.unexplained_ns / self.latency_ns } else { 0.0 }
    }
}

/// What each subject waited, in the order of the system's.
#[must_use]
pub fn judge(system: &System, facts: &Facts) -> Vec<Waited> {
    let subjects = system.subjects.iter().zip(&facts.subjects);
    subjects.map(|(subject, own)| of_subject(system, subject, own)).collect()
}

fn of_subject(system: &System, subject: &Subject, own: &SubjectFacts) -> Waited {
    let all = all(own);
    if !own.waited.is_empty() && all.ns > 0.0 {
        return counted(system, subject, own, &all);
    }
    let usual = Usual::of(subject, own);
    let mut waited = Waited {
        held: Vec::new(),
        unexplained_ns: 0.0,
        latency_ns: all.ns,
        operations: all.operations,
        usual_ns: usual.mean(&all),
        basis: usual.basis(own),
        confidence: Confidence::Low,
    };
    for (place, counts) in subject.path.iter().enumerate() {
        let (mut held_ns, mut near_s) = (0.0, 0.0);
        for (index, bin) in own.bins[place].iter().enumerate() {
            let beyond = usual.beyond(bin, own.says_queued);
            // No more than the cap can have held: what is left has another cause.
            let here = beyond.min(bin.possible_ns);
            held_ns += here;
            waited.unexplained_ns += (beyond - here).max(0.0);
            if bin_start(index) >= NEAR - 1e-9 {
                near_s += bin.seconds;
            }
        }
        if held_ns > 0.0 || near_s > 0.0 {
            let cap = &system.caps[counts.cap];
            let share = if all.ns > 0.0 { held_ns / all.ns } else { 0.0 };
            let (at_peak, all_of_it) = own.peaks[place];
            let kind = if at_peak > 0.5 * all_of_it { cap.at_peak() } else { cap.kind };
            waited.held.push(Held { cap: counts.cap, kind, waited_ns: held_ns, share, near_s });
        }
    }
    for bin in own.bins.last().into_iter().flatten() {
        waited.unexplained_ns += usual.beyond(bin, own.says_queued);
    }
    waited.held.sort_by(|one, other| {
        other.waited_ns.total_cmp(&one.waited_ns).then(other.near_s.total_cmp(&one.near_s))
    });
    waited.confidence = confidence(&waited, own);
    waited
}

fn confidence(waited: &Waited, own: &SubjectFacts) -> Confidence {
    let near = waited.held.first().is_some_and(|held| held.near_s >= 0.05 * own.seconds);
    match waited.basis {
        Basis::Counted | Basis::Queued => Confidence::High,
        Basis::Medium | Basis::Quiet if near => Confidence::High,
        Basis::Medium | Basis::Quiet => Confidence::Medium,
        Basis::Use if near => Confidence::Medium,
        Basis::Use => Confidence::Low,
    }
}

fn all(own: &SubjectFacts) -> Bin {
    let mut all = Bin::default();
    own.bins.iter().flatten().for_each(|bin| all.join(bin));
    all
}

/// What Weir counted itself.
fn counted(system: &System, subject: &Subject, own: &SubjectFacts, all: &Bin) -> Waited {
    let mut held = Vec::new();
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
        let near = |place: usize| -> f64 {
            let bins = own.bins[place].iter().enumerate();
            bins.filter(|(bin, _)| bin_start(*bin) >= NEAR - 1e-9).map(|(_, b)| b.seconds).sum()
        };
        let near_s = place.map_or(0.0, near);
        let waited_ns = *waited_ns;
        held.push(Held { cap, kind, waited_ns, share: waited_ns / all.ns, near_s });
    }
    held.sort_by(|one, other| other.waited_ns.total_cmp(&one.waited_ns));
    let waited: f64 = held.iter().map(|held| held.waited_ns).sum();
    let usual = (all.ns - waited - elsewhere).max(0.0) / all.operations.max(1.0);
    Waited {
        held,
        unexplained_ns: elsewhere,
        latency_ns: all.ns,
        operations: all.operations,
        usual_ns: Some(usual),
        basis: Basis::Counted,
        confidence: Confidence::High,
    }
}

/// What requests take where nothing waits.
#[derive(Debug, Clone, Copy)]
enum Usual {
    /// As the edition says.
    Medium(Medium),
    /// As was seen.
    Quiet(f64),
    /// Nobody knows.
    Unknown,
}

impl Usual {
    fn of(subject: &Subject, own: &SubjectFacts) -> Self {
        if let Some(medium) = subject.medium {
            return Self::Medium(medium);
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
                Some(if known { medium.of(both, all.bytes) / (both.0 + both.1) } else { most() })
            }
            Self::Quiet(ns) => Some(ns),
            Self::Unknown => None,
        }
    }

    /// What the operations of a bin took beyond it, all together.
    fn beyond(self, bin: &Bin, says_queued: bool) -> f64 {
        if says_queued {
            return bin.queued_ns;
        }
        let beyond = match self {
            Self::Medium(medium) if bin.reads + bin.writes > 0.0 => {
                // Reads that a host cache served took less, and make up for nobody's waiting.
                let reads = bin.read_ns - medium.reads(bin.reads, bin.bytes.0);
                let writes = bin.write_ns - medium.writes(bin.writes, bin.bytes.1);
                reads.max(0.0) + writes.max(0.0)
            }
            Self::Medium(medium) if bin.mixed.0 + bin.mixed.1 > 0.0 => {
                bin.ns - medium.of(bin.mixed, bin.bytes)
            }
            Self::Medium(medium) => bin.ns - medium.most(bin.operations, bin.bytes.1),
            Self::Quiet(ns) => bin.ns - bin.operations * ns,
            Self::Unknown => 0.0,
        };
        beyond.max(0.0)
    }
}
