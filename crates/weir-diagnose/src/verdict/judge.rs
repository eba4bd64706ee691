//! Computes the wait times of each subject at each limit.

use super::unloaded::{QUIET_SAMPLES, Unloaded, medium_ratio};
use super::wait::{Basis, CapWait, Episode, WaitTimes};
use crate::follow::{Bin, Facts, LoadHistogram, NEAR, SubjectFacts, bin_start};
use crate::system::{Subject, System};
use weir_report::diagnosis::Confidence;

/// Minimum total wait time of a short episode, in nanoseconds, however long the observation is.
pub(crate) const NOTED_NS: f64 = 10e9;

/// An episode takes this many seconds and more.
pub(crate) const EPISODE_S: f64 = 5.0;

/// Duration in seconds from which on throttling in slow samples counts for the whole observation.
const HELD_S: f64 = 30.0;

/// Minimum number of slow samples for that.
const HELD_SAMPLES: u64 = 2;

/// Share of time near a limit from which on it throttled.
const NEAR_SHARE: f64 = 0.05;

/// Computes the wait times of each subject, in the order of the system's subjects.
#[must_use]
pub fn judge(system: &System, facts: &Facts) -> Vec<WaitTimes> {
    let subjects = system.subjects.iter().zip(&facts.subjects);
    subjects.map(|(subject, own)| judge_subject(system, subject, own)).collect()
}

fn judge_subject(system: &System, subject: &Subject, own: &SubjectFacts) -> WaitTimes {
    let of =
        |stretch: &LoadHistogram, trusts: bool| wait_times(system, subject, own, stretch, trusts);
    let whole = match own.waited.is_empty() {
        true => of(&own.whole, false),
        false => counted(system, subject, own, &own.whole.all()),
    };
    let is_long = own.slow.seconds >= HELD_S && own.slow.samples >= HELD_SAMPLES;
    if whole.is_throttled() {
        return whole;
    }
    let slow = WaitTimes { is_whole: false, ..of(&own.slow, false) };
    // Waits that Weir did not count did not occur.
    let most = if whole.basis == Basis::Counted { whole.wait_ns() } else { f64::INFINITY };
    let is_possible = 0.5 * slow.wait_ns() <= most;
    if is_long && slow.is_throttled() && is_possible {
        return slow;
    }
    let is_noted = own.slow.seconds >= EPISODE_S && slow.wait_ns() >= NOTED_NS;
    let episode = slow.waits.first().filter(|_| is_noted && is_possible && slow.is_waiting());
    let episode = episode.map(|wait| Episode {
        wait: *wait,
        wait_ns: slow.wait_ns(),
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
        trusting.find(WaitTimes::is_throttled).and_then(|own| own.waits.into_iter().next());
    WaitTimes { suspected, episode, ..whole }
}

/// Computes the wait times in a stretch. With `trusts`, the edition's medium is taken as it is, and
/// all excess latency as wait time, as far as one burst of all operations of a sample explains it.
/// Without it, wait time needs evidence: a known burst size, or a limit that was reached.
fn wait_times(
    system: &System,
    subject: &Subject,
    own: &SubjectFacts,
    stretch: &LoadHistogram,
    trusts: bool,
) -> WaitTimes {
    let all = stretch.all();
    let unloaded = Unloaded::new(subject, own, trusts);
    let medium_ratio = if trusts { 1.0 } else { medium_ratio(subject, own) };
    let near_limit_s = stretch.bins.iter().map(|bins| near(bins)).fold(0.0, f64::max);
    let is_near = near_limit_s >= NEAR_SHARE * stretch.seconds && near_limit_s > 0.0;
    let is_bounded = stretch.bounded_s >= 0.5 * stretch.seconds;
    let is_told = trusts || is_near || is_bounded || own.has_queue_times;
    let mut waited = WaitTimes {
        seconds: stretch.seconds,
        is_whole: true,
        suspected: None,
        waits: Vec::new(),
        episode: None,
        unexplained_ns: 0.0,
        latency_ns: all.ns,
        operations: all.operations,
        unloaded_ns: unloaded.mean(&all),
        medium_ratio: if subject.medium.is_some() { medium_ratio } else { 1.0 },
        basis: unloaded.basis(own),
        confidence: Confidence::Low,
    };
    for (place, counts) in subject.path.iter().enumerate() {
        let mut wait_ns = 0.0;
        for bin in &stretch.bins[place] {
            let beyond = unloaded.excess(bin, own.has_queue_times);
            let possible_ns = if trusts { bin.most_ns } else { bin.possible_ns };
            // Excess latency above the upper bound has another cause.
            let here = if is_told { beyond.min(possible_ns) } else { 0.0 };
            wait_ns += here;
            waited.unexplained_ns += (beyond - here).max(0.0);
        }
        let near_limit_s = near(&stretch.bins[place]);
        if wait_ns > 0.0 || near_limit_s > 0.0 {
            let cap = &system.caps[counts.cap];
            let share = if all.ns > 0.0 { wait_ns / all.ns } else { 0.0 };
            let (at_peak, all_of_it) = own.peaks[place];
            let kind = if at_peak > 0.5 * all_of_it { cap.kind.burst() } else { cap.kind };
            waited.waits.push(CapWait { cap: counts.cap, kind, wait_ns, share, near_limit_s });
        }
    }
    for bin in stretch.bins.last().into_iter().flatten() {
        waited.unexplained_ns += unloaded.excess(bin, own.has_queue_times);
    }
    waited.waits.sort_by(|one, other| {
        other.wait_ns.total_cmp(&one.wait_ns).then(other.near_limit_s.total_cmp(&one.near_limit_s))
    });
    waited.confidence = confidence(&waited, is_near);
    waited
}

/// Returns the time at 90 % of the limit or more, in seconds.
fn near(bins: &[Bin]) -> f64 {
    let near = bins.iter().enumerate().filter(|(bin, _)| bin_start(*bin) >= NEAR - 1e-9);
    near.fold(0.0, |sum, (_, bin)| sum + bin.seconds)
}

fn confidence(waited: &WaitTimes, is_near: bool) -> Confidence {
    match waited.basis {
        Basis::Counted => Confidence::High,
        Basis::Queued | Basis::Medium | Basis::Quiet if is_near => Confidence::High,
        Basis::Queued | Basis::Medium | Basis::Quiet => Confidence::Medium,
        Basis::Utilisation if is_near => Confidence::Medium,
        Basis::Utilisation => Confidence::Low,
    }
}

/// Returns the wait times that Weir counted.
fn counted(system: &System, subject: &Subject, own: &SubjectFacts, all: &Bin) -> WaitTimes {
    let mut waits = Vec::new();
    let mut elsewhere = 0.0;
    for (name, wait_ns) in own.waited.iter().filter(|(_, ns)| *ns > 0.0) {
        let cap = subject.path.iter().map(|counts| counts.cap).find(|cap| {
            let cap = &system.caps[*cap];
            cap.kind.name() == name || cap.kind.burst().name() == name
        });
        let Some(cap) = cap else {
            elsewhere += wait_ns;
            continue;
        };
        let own_cap = &system.caps[cap];
        let is_peak = own_cap.kind.name() != name;
        let kind = if is_peak { own_cap.kind.burst() } else { own_cap.kind };
        let place = subject.path.iter().position(|counts| counts.cap == cap);
        let near_limit_s = place.map_or(0.0, |place| near(&own.whole.bins[place]));
        let wait_ns = *wait_ns;
        let share = if all.ns > 0.0 { wait_ns / all.ns } else { 0.0 };
        waits.push(CapWait { cap, kind, wait_ns, share, near_limit_s });
    }
    waits.sort_by(|one, other| other.wait_ns.total_cmp(&one.wait_ns));
    let waited: f64 = waits.iter().map(|wait: &CapWait| wait.wait_ns).sum();
    let unloaded = (all.ns - waited - elsewhere).max(0.0) / all.operations.max(1.0);
    WaitTimes {
        seconds: own.seconds(),
        is_whole: true,
        suspected: None,
        waits,
        episode: None,
        unexplained_ns: elsewhere,
        latency_ns: all.ns,
        operations: all.operations,
        unloaded_ns: Some(unloaded),
        medium_ratio: 1.0,
        basis: Basis::Counted,
        confidence: Confidence::High,
    }
}
