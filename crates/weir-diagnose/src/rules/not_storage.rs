//! Causes outside the storage limits, and their ranking.
//!
//! The rules of these causes say them; here it is decided which there are, so that the largest
//! comes first and none is called the cause where a cap throttles at the same time.

use super::near_limit::waited_at;
use super::rule::{Candidate, Rule};
use super::signs::{RAISED_NS, is_near, is_raised};
use super::tempdb_files::Tempdb;
use super::throttling;
use super::wait_times::{
    WAITERS, WaitedFor, is_memory_grant, is_page_latch, longest, of_class, of_waits, storage_words,
};
use super::waits::Class;
use crate::case::{Case, JudgedSubject};
use crate::follow::{HostFacts, WaitFacts};
use crate::verdict::{Basis, Cause, NOTED, THROTTLED};
use weir_observe::metric as m;
use weir_report::diagnosis::{Confidence, Finding};
use weir_report::number::percent;

/// Processors this busy on average leave no room.
const BUSY: f64 = 0.8;

/// Share of time at 90 % or more that counts as busy.
const BUSY_TIME: f64 = 0.2;

/// Minimum observed time in seconds.
const BUSY_FOR_S: f64 = 10.0;

/// No storage of a cloud takes as long in quiet times: twice what is usual without throttling.
const SLOW_NS: f64 = 2.0 * RAISED_NS;

/// Share of all wait time from which on a class dominates.
pub(super) const DOMINATES: f64 = 0.4;

/// Parallel queries that wait for each other and leave processors idle wait for something else.
const PARALLEL_CPU: f64 = 0.5;

/// A pool in which a page stays for less is too small (the rule of thumb of SQL Server's
/// documentation for a small machine; larger ones want more).
pub(super) const SHORT_LIFE_S: f64 = 300.0;

/// Fewer pages wanted that are in memory than this are few, for a system of transactions.
pub(super) const LOW_HITS: f64 = 0.9;

/// Returns all causes with their weights from 0 to 1, in descending order.
pub(super) fn causes<'a>(case: &Case<'a>) -> &'a [(Cause, f64)] {
    case.known.causes.get_or_init(|| all_causes(case))
}

fn all_causes(case: &Case<'_>) -> Vec<(Cause, f64)> {
    let waits = [
        (Cause::Locks, of_class(case, Class::Lock), DOMINATES),
        (Cause::Client, of_class(case, Class::Client), DOMINATES),
        (Cause::MemoryGrants, of_waits(case, is_memory_grant), DOMINATES),
        (Cause::PageLatch, of_waits(case, is_page_latch), latches_from(case)),
        (Cause::Parallelism, parallelism(case), DOMINATES),
    ];
    let mut all: Vec<(Cause, f64)> = waits
        .into_iter()
        .filter_map(|(cause, waited, from)| {
            let waited = waited?;
            (waited.share >= from && waited.waiters >= WAITERS).then_some((cause, waited.share))
        })
        .collect();
    all.extend(busy(case).map(|host| (Cause::Cpu, host.mean().max(host.near_limit_share()))));
    let slow = slow(case).into_iter().map(|(_, share)| share).reduce(f64::max);
    all.extend(slow.map(|share| (Cause::SlowMedium, share)));
    all.extend(pressed(case).map(|share| (Cause::CachePressure, share)));
    all.sort_by(|one, other| other.1.total_cmp(&one.1));
    all
}

/// Builds the finding of a cause, if it is one. The priority follows its rank among the causes, and
/// is lower if a cap throttles at the same time.
pub(super) fn finding(
    case: &Case<'_>,
    rule: &Rule,
    cause: Cause,
    subject: &str,
    text: &str,
) -> Option<Finding> {
    let place = causes(case).iter().position(|(own, _)| *own == cause)?;
    let place = u8::try_from(place).unwrap_or(u8::MAX);
    let throttled = throttling::first(case);
    let mut finding = match &throttled {
        Some(_) => {
            let mut also = rule.finding(subject, format!("also, {text}"));
            also.priority = ALSO + place;
            also
        }
        None => {
            let mut alone = rule.finding(subject, text);
            alone.priority = rule.priority + place;
            alone
        }
    };
    match throttled {
        Some(first) => {
            finding.evidence.push(format!("a limit throttles at the same time: {}", first.finding));
        }
        None => finding.ruled_out.extend(no_cap(case)),
    }
    Some(finding)
}

/// A kind of waits that dominates, and what to say of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dominant {
    pub(super) cause: Cause,
    pub(super) subject: &'static str,
    /// Sentence of the finding; the share of wait time is appended.
    pub(super) text: &'static str,
    pub(super) action: &'static str,
    pub(super) is: fn(&WaitFacts) -> bool,
}

impl Dominant {
    /// Returns the finding if these waits dominate.
    pub(super) fn find(&self, case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
        let Some(waited) = of_waits(case, self.is) else { return Vec::new() };
        let text = format!("{}: {}", self.text, waited.words());
        let found = finding(case, rule, self.cause, self.subject, &text).map(|mut finding| {
            finding.confidence = Confidence::High;
            finding.evidence.push(longest(case, self.is));
            finding.evidence.extend(storage_words(case));
            self.action.clone_into(&mut finding.action);
            finding.into()
        });
        found.into_iter().collect()
    }
}

/// Priority if a limit throttles at the same time.
const ALSO: u8 = 110;

/// Returns the reason why no limit is the cause.
fn no_cap(case: &Case<'_>) -> Option<String> {
    let used = case.facts.caps.iter().filter(|cap| cap.samples > 0 && !cap.is_bound);
    let most = used.map(|cap| cap.used.max()).reduce(f64::max)?;
    let near: Vec<usize> = (0..case.system.caps.len()).filter(|cap| is_near(case, *cap)).collect();
    let shares = near.iter().flat_map(|cap| case.named().map(|judged| waited_at(&judged, *cap)));
    let words = match shares.reduce(f64::max) {
        None => "no limit throttles requests".to_owned(),
        Some(share) if share >= NOTED => format!(
            "a limit is nearly reached, and waits for it are {} of the latency",
            percent(share)
        ),
        Some(_) => "a limit is nearly reached, but no request waits for it".to_owned(),
    };
    Some(format!("{words}: the highest utilisation is {}", percent(most.min(1.0))))
}

fn parallelism(case: &Case<'_>) -> Option<WaitedFor> {
    let busy = case.facts.others.processors.iter().map(HostFacts::mean).reduce(f64::max);
    of_class(case, Class::Parallel).filter(|_| busy.is_none_or(|busy| busy >= PARALLEL_CPU))
}

/// Returns the least share of page latches that is a cause. It is smaller if tempdb is
/// misconfigured.
fn latches_from(case: &Case<'_>) -> f64 {
    if Tempdb::observed(case).fault().is_some() { HIGH } else { DOMINATES }
}

/// Share of all wait time from which on page latches are a cause if tempdb is misconfigured.
const HIGH: f64 = 0.15;

/// Returns the busiest processors, if they are busy.
pub(super) fn busy<'a>(case: &Case<'a>) -> Option<&'a HostFacts> {
    let hosts = case.facts.others.processors.iter();
    let hosts = hosts.filter(|host| host.seconds >= BUSY_FOR_S);
    let busy = hosts.filter(|host| host.mean() >= BUSY || host.near_limit_share() >= BUSY_TIME);
    busy.max_by(|one, other| one.mean().total_cmp(&other.mean()))
}

/// A medium with this multiple of the edition's latency is slow.
const SLOWER: f64 = 2.0;

/// Returns the slow subjects that no limit explains, with the unexplained share of their latency.
pub(super) fn slow<'a>(case: &Case<'a>) -> Vec<(JudgedSubject<'a>, f64)> {
    let said = throttling::throttled(case);
    let slow = case.named().filter_map(|judged| {
        let waited = judged.waited;
        let is_said = || said.contains(&judged.name(case));
        if waited.throttled().is_some() || !is_raised(&judged) || is_said() {
            return None;
        }
        match waited.basis {
            // Counted waits are not due to the medium.
            Basis::Counted => return None,
            // Counted queue times show throttling without limits.
            Basis::Queued => return unqueued(&judged).map(|share| (judged, share)),
            _ if judged.subject.path.is_empty() => return None,
            _ => {}
        }
        // Quiet samples that take long show the medium itself, as nothing else was there.
        let is_seen = waited.basis == Basis::Quiet || waited.medium_ratio >= SLOWER;
        let quiet = waited.unloaded_ns.filter(|_| is_seen);
        let is_quiet_slow = quiet.is_some_and(|ns| ns > SLOW_NS);
        let share = waited.unexplained_share();
        match is_quiet_slow {
            true => Some((judged, share.max(1.0 - waited.all_share()))),
            // Bursts at a cap would explain it as well: that is bursts-or-slow.
            false if waited.suspected.is_some() => None,
            false => (share >= 0.5).then_some((judged, share)),
        }
    });
    let mut slow: Vec<(JudgedSubject<'a>, f64)> = slow.collect();
    slow.sort_by(|one, other| other.0.waited.latency_ns.total_cmp(&one.0.waited.latency_ns));
    slow
}

/// Returns the share of the latency that is no queue time of a governor, if the rest is slow.
fn unqueued(judged: &JudgedSubject<'_>) -> Option<f64> {
    let total = &judged.facts.total;
    let queued = total.queued_read_ns.unwrap_or(0.0) + total.queued_write_ns.unwrap_or(0.0);
    let (all, operations) = (total.ns?, total.operations?);
    let rest_ns = (all - queued) / operations.max(1.0);
    (rest_ns > SLOW_NS && queued < THROTTLED * all).then_some(1.0 - queued / all)
}

/// Returns the weight of reads in all wait time, if memory is too small for the working set.
pub(super) fn pressed(case: &Case<'_>) -> Option<f64> {
    let gauges = case.facts.others.gauged.iter();
    let is_pressed = gauges.into_iter().any(|gauge| match gauge.metric {
        name if name == m::PAGE_LIFE_EXPECTANCY_S.name => {
            // From a restart on it grows by a second in a second, however large memory is.
            let grown = match (gauge.first, gauge.last) {
                (Some((_, first)), Some((_, last))) => last - first,
                _ => 0.0,
            };
            gauge.mean() < SHORT_LIFE_S && grown < 0.8 * gauge.seconds
        }
        name if name == m::BUFFER_HIT_SHARE.name => gauge.mean() < LOW_HITS,
        _ => false,
    });
    let reads = of_waits(case, |wait| wait.name.to_ascii_uppercase().starts_with("PAGEIOLATCH_"));
    let by_waits =
        reads.filter(|own| own.share >= 0.2 && own.waiters >= WAITERS).map(|own| own.share);
    let by_latency = || {
        let reads = case.named().filter(|judged| {
            let share = judged.facts.read_share().unwrap_or(0.0);
            share > 0.5 && (is_raised(judged) || judged.waited.throttled().is_some())
        });
        // Half of the weight, since slow reads are only partly due to memory.
        reads.map(|judged| judged.facts.read_share().unwrap_or(0.0) * 0.5).reduce(f64::max)
    };
    is_pressed.then(|| by_waits.or_else(by_latency)).flatten()
}
