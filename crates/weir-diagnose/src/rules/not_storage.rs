//! Causes outside the storage limits, and their ranking.
//!
//! The rules of these causes say them; here it is decided which there are, so that the largest
//! comes first and none is called the cause where a cap throttles at the same time.

use super::signs::{THROTTLING, is_near};
use super::waits::{Class, resource_waits, share};
use super::{Candidate, Rule, signs};
use crate::case::{Case, Seen};
use crate::follow::{HostFacts, WaitFacts};
use crate::verdict::{Basis, THROTTLED};
use weir_observe::metric as m;
use weir_report::diagnosis::{Confidence, Finding};
use weir_report::number::{percent, rate, time};

/// A cause that is no cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Processors are busy.
    Cpu,
    /// Sessions wait for locks.
    Locks,
    /// Clients do not take what they asked for.
    Client,
    /// Queries wait for memory to run in.
    MemoryGrants,
    /// Pages in memory are wanted by many at a time.
    PageLatch,
    /// Workers of a query wait for each other.
    Parallelism,
    /// The medium is slow.
    SlowMedium,
    /// Memory is too small for what is read.
    CachePressure,
}

/// Processors this busy on average leave no room.
const BUSY: f64 = 0.8;

/// Share of time at 90 % or more that counts as busy.
const BUSY_TIME: f64 = 0.2;

/// Minimum observed time in seconds.
const BUSY_FOR_S: f64 = 10.0;

/// No storage of a cloud takes as long in quiet times: twice what is usual without throttling.
const SLOW_NS: f64 = 2.0 * signs::RAISED_NS;

/// A class of waits of so large a part of all dominates.
pub(super) const DOMINATES: f64 = 0.4;

/// Minimum mean number of waiting sessions. With fewer, waits are not noticeable.
pub(super) const WAITERS: f64 = 0.5;

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
    all.extend(busy(case).map(|host| (Cause::Cpu, host.mean().max(host.near_share()))));
    let slow = slow(case).into_iter().map(|(_, share)| share).reduce(f64::max);
    all.extend(slow.map(|share| (Cause::SlowMedium, share)));
    all.extend(pressed(case).map(|share| (Cause::CachePressure, share)));
    all.sort_by(|one, other| other.1.total_cmp(&one.1));
    all
}

/// A finding of a cause, if it is one: its priority is that of its place among the others, and
/// it takes no blame from a cap that throttles.
pub(super) fn finding(
    case: &Case<'_>,
    rule: &Rule,
    cause: Cause,
    subject: &str,
    text: &str,
) -> Option<Finding> {
    let place = causes(case).iter().position(|(own, _)| *own == cause)?;
    let place = u8::try_from(place).unwrap_or(u8::MAX);
    let throttled = signs::first_throttling(case);
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
    /// The finding, if it dominates.
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
    let near = (0..case.system.caps.len()).any(|cap| is_near(case, cap));
    let words =
        if near { "is nearly reached, but no request waits for it" } else { "throttles requests" };
    let which = if near { "a limit" } else { "no limit" };
    Some(format!("{which} {words}: the highest utilisation is {}", percent(most.min(1.0))))
}

/// Wait time of a kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitedFor {
    /// Share of all wait time.
    pub(super) share: f64,
    /// Mean number of waiting sessions.
    pub(super) waiters: f64,
    /// Total wait time in milliseconds.
    pub(super) time_ms: f64,
    /// Number of waits, if known.
    pub(super) count: Option<f64>,
}

impl WaitedFor {
    /// Returns a description.
    pub(super) fn words(&self) -> String {
        let each = self.count.filter(|count| *count > 0.0).map_or(String::new(), |count| {
            format!(", {} waits of {} each", rate(count), time(self.time_ms * 1e6 / count))
        });
        format!(
            "{} of all wait time, {} waiting sessions on average{each}",
            percent(self.share),
            rate(self.waiters)
        )
    }
}

/// Sums up the waits that `is` selects.
pub(super) fn of_waits(case: &Case<'_>, is: impl Fn(&WaitFacts) -> bool) -> Option<WaitedFor> {
    let waits = resource_waits(case);
    let all: f64 = waits.iter().map(|wait| wait.time_ms).sum();
    let (from, to) = case.facts.span?;
    let seconds = crate::case::at_s(to) - crate::case::at_s(from);
    if all <= 0.0 || seconds <= 0.0 {
        return None;
    }
    let own: Vec<_> = waits.into_iter().filter(|wait| is(wait)).collect();
    let time_ms: f64 = own.iter().map(|wait| wait.time_ms).sum();
    let count = own.iter().map(|wait| wait.count).sum::<Option<f64>>();
    Some(WaitedFor { share: time_ms / all, waiters: time_ms / 1e3 / seconds, time_ms, count })
}

/// Sums up the waits of a class.
pub(super) fn of_class(case: &Case<'_>, class: Class) -> Option<WaitedFor> {
    of_waits(case, |wait| Class::of(&wait.name) == class)
}

/// The waits of a class by their names, the longest first.
pub(super) fn longest(case: &Case<'_>, is: impl Fn(&WaitFacts) -> bool) -> String {
    let waits = resource_waits(case).into_iter().filter(|wait| is(wait));
    let words = waits.take(3).map(|wait| {
        let count = wait.count.map_or(String::new(), |count| format!(" in {} waits", rate(count)));
        format!("{} {}{count}", wait.name, time(wait.time_ms * 1e6))
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Returns the share of storage in all wait time, in words.
pub(super) fn storage_words(case: &Case<'_>) -> Option<String> {
    let classes = [Class::DataIo, Class::Log, Class::LogGovernor];
    let sum = |sum: f64, class| Some(sum + share(case, class)?);
    let storage = classes.into_iter().try_fold(0.0, sum)?;
    Some(format!("waits for storage: {} of all wait time", percent(storage)))
}

/// Queries that wait for memory to run in; other waits of memory are of another kind.
pub(super) fn is_memory_grant(wait: &WaitFacts) -> bool {
    wait.name.to_ascii_uppercase().starts_with("RESOURCE_SEMAPHORE")
}

/// Pages in memory, not those on their way there.
pub(super) fn is_page_latch(wait: &WaitFacts) -> bool {
    wait.name.to_ascii_uppercase().starts_with("PAGELATCH_")
}

fn parallelism(case: &Case<'_>) -> Option<WaitedFor> {
    let busy = case.facts.others.processors.iter().map(HostFacts::mean).reduce(f64::max);
    of_class(case, Class::Parallel).filter(|_| busy.is_none_or(|busy| busy >= PARALLEL_CPU))
}

/// Contention of allocation pages is worth less of the waiting where tempdb is built so as to
/// have it.
fn latches_from(case: &Case<'_>) -> f64 {
    if Tempdb::of(case).fault().is_some() { HIGH } else { DOMINATES }
}

/// Waits for pages of so large a part of all are many.
const HIGH: f64 = 0.15;

/// The busiest processors, if they are busy.
pub(super) fn busy<'a>(case: &Case<'a>) -> Option<&'a HostFacts> {
    let hosts = case.facts.others.processors.iter();
    let hosts = hosts.filter(|host| host.seconds >= BUSY_FOR_S);
    let busy = hosts.filter(|host| host.mean() >= BUSY || host.near_share() >= BUSY_TIME);
    busy.max_by(|one, other| one.mean().total_cmp(&other.mean()))
}

/// A medium that takes so many times what its edition says of it is slow.
const SLOWER: f64 = 2.0;

/// Returns the slow subjects that no limit explains, with the unexplained share of their latency.
pub(super) fn slow<'a>(case: &Case<'a>) -> Vec<(Seen<'a>, f64)> {
    let said = signs::throttled(case, THROTTLING);
    let slow = case.named().filter_map(|seen| {
        let waited = seen.waited;
        let is_said = || said.contains(&seen.name(case));
        if waited.throttled().is_some() || !signs::is_raised(&seen) || is_said() {
            return None;
        }
        match waited.basis {
            // Counted waits are not due to the medium.
            Basis::Counted => return None,
            // Counted queue times show throttling without limits.
            Basis::Queued => return unqueued(&seen).map(|share| (seen, share)),
            _ if seen.subject.path.is_empty() => return None,
            _ => {}
        }
        // Quiet samples that take long show the medium itself, as nothing else was there.
        let is_seen = waited.basis == Basis::Quiet || waited.beside_edition >= SLOWER;
        let quiet = waited.usual_ns.filter(|_| is_seen);
        let is_quiet_slow = quiet.is_some_and(|ns| ns > SLOW_NS);
        let share = waited.unexplained_share();
        match is_quiet_slow {
            true => Some((seen, share.max(1.0 - waited.all_share()))),
            // Bursts at a cap would explain it as well: that is bursts-or-slow.
            false if waited.suspected.is_some() => None,
            false => (share >= 0.5).then_some((seen, share)),
        }
    });
    let mut slow: Vec<(Seen<'a>, f64)> = slow.collect();
    slow.sort_by(|one, other| other.0.waited.latency_ns.total_cmp(&one.0.waited.latency_ns));
    slow
}

/// The part of the latency that is not the queue of a governor, where it takes long without.
fn unqueued(seen: &Seen<'_>) -> Option<f64> {
    let total = &seen.facts.total;
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
        let reads = case.named().filter(|seen| {
            let share = seen.facts.read_share().unwrap_or(0.0);
            share > 0.5 && (signs::is_raised(seen) || seen.waited.throttled().is_some())
        });
        // Half of the weight, since slow reads are only partly due to memory.
        reads.map(|seen| seen.facts.read_share().unwrap_or(0.0) * 0.5).reduce(f64::max)
    };
    is_pressed.then(|| by_waits.or_else(by_latency)).flatten()
}

/// The data files of tempdb.
#[derive(Debug, Clone, Default)]
pub(super) struct Tempdb {
    /// Number of files.
    pub(super) files: usize,
    /// The smallest and the largest, if all say it.
    pub(super) sizes: Option<(u64, u64)>,
    /// Recommended number of files.
    pub(super) wanted: usize,
    /// Processors, if that is known.
    pub(super) processors: Option<u64>,
}

/// Maximum recommended number of tempdb files, however many processors there are (KB 2154845, which
/// article 002 follows).
const FILES: u64 = 8;

/// Files of one size differ by less: the larger ones get more of the allocations.
const EQUAL: f64 = 0.1;

impl Tempdb {
    pub(super) fn of(case: &Case<'_>) -> Self {
        let is_log = |name: &str| {
            let name = name.to_ascii_lowercase();
            name.contains("log") || name.ends_with(".ldf")
        };
        let files: Vec<_> = case
            .system
            .files
            .iter()
            .filter(|file| file.is(weir_layout::Role::Tempdb) && !is_log(&file.name))
            .collect();
        let sizes: Option<Vec<u64>> = files.iter().map(|file| file.size).collect();
        let sizes = sizes.and_then(|sizes| Some((*sizes.iter().min()?, *sizes.iter().max()?)));
        let processors = processors(case);
        // Contention needs two processors. An unknown number counts as two.
        let wanted = processors.unwrap_or(2).clamp(1, FILES);
        let wanted = usize::try_from(wanted).unwrap_or(1);
        Self { files: files.len(), sizes, wanted, processors }
    }

    /// Returns the misconfiguration in words, if there is one.
    pub(super) fn fault(&self) -> Option<String> {
        if self.files == 0 {
            return None;
        }
        if self.files < self.wanted {
            let of = self.processors.map_or(String::new(), |n| format!(" for {n} processors"));
            let files = if self.files == 1 { "file" } else { "files" };
            return Some(format!("tempdb has {} data {files}{of}", self.files));
        }
        let (least, most) = self.sizes?;
        let float = weir_report::number::float;
        (float(least) < (1.0 - EQUAL) * float(most)).then(|| {
            let size = crate::case::size;
            format!("the data files of tempdb differ in size: {} to {}", size(least), size(most))
        })
    }
}

/// Returns the number of processors, if known.
fn processors(case: &Case<'_>) -> Option<u64> {
    let of_host = |host: &crate::system::Host| {
        let instance = host.instance.map(|instance| instance.vcores).filter(|n| *n > 0);
        let size = || {
            let size = case.edition?.host(host.qualified_size.as_deref()?).ok()?;
            size.vcpus.map(u64::from)
        };
        let said = || case.contents.entity(host.entity?)?.number(weir_observe::attribute::VCORES);
        instance.or_else(size).or_else(said)
    };
    case.system.hosts.iter().find_map(of_host)
}
