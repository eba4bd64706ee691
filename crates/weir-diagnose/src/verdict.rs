//! Who waited, how much, and at which cap.
//!
//! What requests waited is what they took beyond what they take where nothing waits. The second
//! is known from the edition, corrected by samples in which requests came alone, or seen in
//! samples in which no cap was used much; where queues of a governor are counted, the first is
//! known as it is. The pass over the samples has told to which caps it falls, and how much at most
//! can have been waited at each, so that latency of another cause is not taken for waiting. Where
//! neither tells bursts from a slow medium, a cap is suspected and not said to hold.

use crate::follow::{Bin, Facts, NEAR, Stretch, SubjectFacts, bin_start};
use crate::system::{Medium, Reads, Subject, System};
use weir_core::Cap as Kind;
use weir_report::diagnosis::Confidence;

/// Waits of less than this part of the latency are nothing that holds anybody back.
pub const THROTTLED: f64 = 1.0 / 3.0;

/// Nor is a mean wait below this, in nanoseconds: remote storage itself takes milliseconds.
const LEAST_NS: f64 = 1_000_000.0;

/// Queues of fewer operations are chance ...
const QUEUED_OPERATIONS: f64 = 100.0;

/// ... as are shorter ones.
const QUEUED_NS: f64 = 2_000_000.0;

/// The part of the time that requests have to lose by waiting: 7 s an hour. A subject that does a few
/// operations a minute may be at its limit in a burst, and nobody notices.
pub const LEAST_LOST: f64 = 0.002;

/// Requests of a short episode that wait for this long all together are told, however long the rest of
/// the observation is, in nanoseconds: 10 s.
pub const NOTED_NS: f64 = 10e9;

/// An episode takes this many seconds and more.
pub(crate) const EPISODE_S: f64 = 5.0;

/// Who is held for so long, in seconds, is held, whatever there was before and after ...
const HELD_S: f64 = 30.0;

/// ... if that are at least so many samples.
const HELD_SAMPLES: u64 = 2;

/// A cap that is near for this part of the time held meanwhile.
const NEAR_SHARE: f64 = 0.05;

/// So few quiet samples say nothing.
const QUIET_SAMPLES: u64 = 5;

/// Latency that stays this steady in quiet samples is the medium's, however long it is.
const STEADY: f64 = 1.6;

/// A medium takes up to so many times what its edition says of it ...
const SLOWEST: f64 = 3.0;

/// ... and no less than this part of it.
const FASTEST: f64 = 0.3;

/// How it is known what was waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Weir counted the waits at each cap.
    Counted,
    /// The queues of a governor were counted.
    Queued,
    /// The edition says what the medium takes, and requests that came alone how far it is that.
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
    /// What it is about, in seconds: the slow samples, if somebody is held in these and not on the
    /// whole.
    pub seconds: f64,
    /// Whether that is all that was seen.
    pub is_whole: bool,
    /// The cap that holds it if the medium takes what the edition says, where it cannot be told
    /// whether it does.
    pub suspected: Option<Held>,
    /// The caps, the one where most was waited first.
    pub held: Vec<Held>,
    /// Slow samples in which caps held it, where these are too little of the observation to call it
    /// throttled.
    pub episode: Option<Episode>,
    /// Latency beyond the medium's that no cap explains, in nanoseconds.
    pub unexplained_ns: f64,
    /// All latency, in nanoseconds.
    pub latency_ns: f64,
    /// Operations.
    pub operations: f64,
    /// What an operation takes where nothing waits, in nanoseconds, if it is known.
    pub usual_ns: Option<f64>,
    /// How many times what the edition says of the medium that is.
    pub beside_edition: f64,
    /// How it is known.
    pub basis: Basis,
    /// How sure it is.
    pub confidence: Confidence,
}

/// A short time in which a cap held a subject.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Episode {
    /// The cap at which most was waited.
    pub held: Held,
    /// The time that requests waited at all caps, in nanoseconds.
    pub waited_ns: f64,
    /// The part of the latency that this is.
    pub share: f64,
    /// How long the slow samples were, in seconds.
    pub seconds: f64,
}

impl Waited {
    /// Whether something holds it back, and what.
    #[must_use]
    pub fn throttled(&self) -> Option<&Held> {
        self.held.first().filter(|_| self.is_held())
    }

    /// Whether what was waited at caps is enough to hold somebody back.
    fn is_held(&self) -> bool {
        self.is_waiting() && self.waited_ns() >= LEAST_LOST * self.seconds * 1e9
    }

    /// Tells whether requests waited at caps for a third of their latency and a millisecond, whatever
    /// part of the time that was.
    fn is_waiting(&self) -> bool {
        let mean_ns = self.waited_ns() / self.operations.max(1.0);
        if self.basis == Basis::Queued && self.is_little(mean_ns) {
            return false;
        }
        // What the caps cannot have done has another cause, and that is the larger.
        let explains = self.all_share() >= self.unexplained_share();
        explains && self.all_share() >= THROTTLED && mean_ns >= LEAST_NS
    }

    /// Whether queues are of so little that they say nothing: SQL Server counts whole milliseconds.
    fn is_little(&self, mean_ns: f64) -> bool {
        self.operations < QUEUED_OPERATIONS || mean_ns < QUEUED_NS
    }

    /// What was waited at all caps, in nanoseconds.
    #[must_use]
    pub fn waited_ns(&self) -> f64 {
        self.held.iter().fold(0.0, |sum, held| sum + held.waited_ns)
    }

    /// The part of the latency that was waited at caps.
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

/// What each subject waited, in the order of the system's.
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
    if whole.is_held() {
        return whole;
    }
    let slow = Waited { is_whole: false, ..of(&own.slow, false) };
    // What Weir did not count was not waited.
    let most = if whole.basis == Basis::Counted { whole.waited_ns() } else { f64::INFINITY };
    let is_possible = 0.5 * slow.waited_ns() <= most;
    if is_long && slow.is_held() && is_possible {
        return slow;
    }
    let is_noted = own.slow.seconds >= EPISODE_S && slow.waited_ns() >= NOTED_NS;
    let episode = slow.held.first().filter(|_| is_noted && is_possible && slow.is_waiting());
    let episode = episode.map(|held| Episode {
        held: *held,
        waited_ns: slow.waited_ns(),
        share: slow.all_share(),
        seconds: slow.seconds,
    });
    // Who was seen often to take what alone is not suspected to take anything else.
    let is_often = own.alone.len() >= QUIET_SAMPLES && 2 * own.alone.len() >= own.whole.samples;
    let is_seen = own.whole.bounded_s >= 0.5 * own.seconds() && is_often;
    let is_open = !is_seen && whole.basis == Basis::Medium;
    let trusting = [(&own.whole, true), (&own.slow, is_long)];
    let trusting = trusting.into_iter().filter(|(_, is_enough)| *is_enough && is_open);
    let mut trusting = trusting.map(|(stretch, _)| of(stretch, true));
    let suspected = trusting.find(Waited::is_held).and_then(|held| held.held.into_iter().next());
    Waited { suspected, episode, ..whole }
}

/// What was waited in a stretch. Who `trusts` an edition takes its medium as it is and all that is
/// beyond that for waiting, as far as bursts of all operations of a sample can explain it. Who does
/// not takes what can be told: how many came at once, or that a cap was used up.
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
        held: Vec::new(),
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
        let mut held_ns = 0.0;
        for bin in &stretch.bins[place] {
            let beyond = usual.beyond(bin, own.says_queued);
            let possible_ns = if trusts { bin.most_ns } else { bin.possible_ns };
            // No more than the cap can have held: what is left has another cause.
            let here = if is_told { beyond.min(possible_ns) } else { 0.0 };
            held_ns += here;
            waited.unexplained_ns += (beyond - here).max(0.0);
        }
        let near_s = near(&stretch.bins[place]);
        if held_ns > 0.0 || near_s > 0.0 {
            let cap = &system.caps[counts.cap];
            let share = if all.ns > 0.0 { held_ns / all.ns } else { 0.0 };
            let (at_peak, all_of_it) = own.peaks[place];
            let kind = if at_peak > 0.5 * all_of_it { cap.at_peak() } else { cap.kind };
            waited.held.push(Held { cap: counts.cap, kind, waited_ns: held_ns, share, near_s });
        }
    }
    for bin in stretch.bins.last().into_iter().flatten() {
        waited.unexplained_ns += usual.beyond(bin, own.says_queued);
    }
    waited.held.sort_by(|one, other| {
        other.waited_ns.total_cmp(&one.waited_ns).then(other.near_s.total_cmp(&one.near_s))
    });
    waited.confidence = confidence(&waited, is_near);
    waited
}

/// For how long a cap was used to 90 % and more, in seconds.
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
        let near_s = place.map_or(0.0, |place| near(&own.whole.bins[place]));
        let waited_ns = *waited_ns;
        let share = if all.ns > 0.0 { waited_ns / all.ns } else { 0.0 };
        held.push(Held { cap, kind, waited_ns, share, near_s });
    }
    held.sort_by(|one, other| other.waited_ns.total_cmp(&one.waited_ns));
    let waited: f64 = held.iter().map(|held| held.waited_ns).sum();
    let usual = (all.ns - waited - elsewhere).max(0.0) / all.operations.max(1.0);
    Waited {
        seconds: own.seconds(),
        is_whole: true,
        suspected: None,
        held,
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

/// How many times what the edition says the medium of a subject takes, as far as was seen: what is
/// published is not what every disk has on every day.
fn beside_edition(subject: &Subject, own: &SubjectFacts) -> f64 {
    let may_hit = subject.path.iter().any(|counts| counts.reads != Reads::All);
    if own.alone.is_empty() {
        // Where all come in bursts, a fast medium is known by what these do not explain.
        let is_known = own.apart.len() >= QUIET_SAMPLES && !may_hit;
        let middle = || weir_report::number::float(own.apart.value_at_quantile(0.5)) / 1000.0;
        return if is_known { middle().clamp(FASTEST, 1.0) } else { 1.0 };
    }
    let at = |share| weir_report::number::float(own.alone.value_at_quantile(share)) / 1000.0;
    let (fast, middle) = (at(0.1), at(0.5));
    // Where it is not known how many came at once, bursts too short to be seen wait for longer than
    // that.
    let is_known = own.whole.bounded_s >= 0.5 * own.seconds();
    match fast {
        fast if fast > SLOWEST && !is_known => SLOWEST,
        fast if fast >= 1.0 => fast,
        // What a host cache serves is fast, and says nothing of the medium.
        _ if may_hit => 1.0,
        _ => middle.clamp(FASTEST, 1.0),
    }
}

/// What requests take where nothing waits.
#[derive(Debug, Clone, Copy)]
enum Usual {
    /// As the edition says, or times that, as was seen.
    Medium(Medium),
    /// As was seen.
    Quiet(f64),
    /// Nobody knows.
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
                    medium.of(both, all.bytes, all.hits) / (both.0 + both.1)
                } else {
                    most()
                })
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
                let usual = medium.reads_with_hits(bin.reads, bin.bytes.0, bin.hits);
                let reads = bin.read_ns - usual;
                let writes = bin.write_ns - medium.writes(bin.writes, bin.bytes.1);
                reads.max(0.0) + writes.max(0.0)
            }
            Self::Medium(medium) if bin.mixed.0 + bin.mixed.1 > 0.0 => {
                bin.ns - medium.of(bin.mixed, bin.bytes, bin.hits)
            }
            Self::Medium(medium) => bin.ns - medium.most(bin.operations, bin.bytes.1),
            Self::Quiet(ns) => bin.ns - bin.operations * ns,
            Self::Unknown => 0.0,
        };
        beyond.max(0.0)
    }
}
