//! The utilisation of a limit, sample by sample.

use super::bins::NEAR;
use crate::seconds::span_s;
use crate::system::{Cap, Counts, Limit, On, Owner, Reads, System};
use std::collections::BTreeMap;
use weir_core::Cap as Kind;
use weir_observe::load::Load;
use weir_observe::rates::{Reading, Spread};
use weir_observe::{Contents, SeriesId, attribute};
use weir_report::number::float;
use weir_units::Instant;

/// The utilisation of a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Utilisation {
    /// The rate divided by the limit.
    pub(super) share: f64,
    /// Set for an upper bound, since the number of cache hits is unknown.
    pub(super) is_bound: bool,
}

/// Credits of a cap that bursts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Credits {
    /// Credits of a full bucket.
    pub full: f64,
    /// Credits at the end, with a full bucket at the start.
    pub left: f64,
    /// The lowest balance.
    pub least: f64,
    /// Time without credits, in seconds.
    pub out_s: f64,
}

/// The facts of a limit.
#[derive(Debug)]
pub struct CapFacts {
    /// Rate in operations or bytes per second.
    pub rate: Spread,
    /// Utilisation.
    pub used: Spread,
    /// Time at 90 % or more, in seconds.
    pub near_limit_s: f64,
    /// Samples at 90 % or more.
    pub near_limit_samples: u64,
    /// Observed time in seconds.
    pub seconds: f64,
    /// Observed samples.
    pub samples: u64,
    /// Set if the utilisation is an upper bound.
    pub is_bound: bool,
    /// Burst credits, if any.
    pub credits: Option<Credits>,
    /// Operations counted in excess of the real ones, because large I/Os count several times.
    pub excess: f64,
    /// All operations.
    pub operations: f64,
    /// The limit at the end.
    pub limit: f64,
}

/// The state of a limit during the pass.
#[derive(Debug)]
pub(super) struct CapTrack {
    facts: CapFacts,
    /// Cost since the last settlement, with all reads, and without possible cache hits.
    most: f64,
    least: f64,
    /// Start of the samples since the last settlement.
    from: Option<Instant>,
    to: Instant,
    members: Vec<Member>,
    used: Option<Utilisation>,
    kind: Kind,
    is_disk_limit: bool,
    /// The series of the limit, if it may change.
    limits: Option<SeriesId>,
    limit: Limit,
    longest_ns: f64,
    /// Time without interruption at the limit, in seconds.
    backlog: f64,
    /// The highest utilisation by one member.
    largest: f64,
    /// Wait time in bursts in seconds, if all busy times are known.
    bursts_s: Option<f64>,
    /// Mean service time of an operation at the limit, in seconds.
    mean_service_s: f64,
    /// Utilisation by each group, and its product with the mean service time.
    groups: BTreeMap<usize, (f64, f64)>,
    longest_services: f64,
}

/// The division of a limit between a subject and the others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shares {
    /// Utilisation by the subject and its group.
    pub(super) own: f64,
    /// Utilisation by all others.
    pub(super) others: f64,
    /// Mean residual service time of the others' operations at random arrivals, in seconds.
    pub(super) others_wait_s: f64,
}

/// Safety factor on estimated waits in bursts.
const BURST_FACTOR: f64 = 2.0;

/// Safety factor on estimated waits for others.
const RANDOM_FACTOR: f64 = 2.0;

/// Upper bound of the wait time at a limit, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitBound {
    /// Upper bound of the mean.
    pub(super) ns: f64,
    /// Upper bound if all requests arrived at once.
    pub(super) most_ns: f64,
    /// Estimate from the burst size, if that is known.
    pub(super) likely_ns: Option<f64>,
}

/// Returns the number of other requests of its burst that a request meets, from the busy time. A
/// burst is busy for one unloaded latency and the waits of the others. Each request takes
/// `service_s` at its slowest limit. Bursts arrive at random, so that some overlap, or back to back
/// if they are spaced `evenly` and the remaining latency fits the medium. `None` if the busy time
/// is unknown.
pub(super) fn others_of_burst(load: &Load, service_s: f64, evenly: Option<f64>) -> Option<f64> {
    let operations = load.operations?;
    if operations <= 0.0 {
        return Some(0.0);
    }
    let latency_s = load.latency_ns()? / 1e9;
    // Without service time or latency there is no queue.
    if service_s <= 0.0 || latency_s <= 0.0 {
        return load.busy().map(|_| 0.0);
    }
    // Burst of n: n * started = (n - 1) * service + medium, latency = medium + (n - 1) * service / 2.
    let others = |busy_s: f64| {
        let started_s = busy_s / operations;
        let apart = started_s - service_s / 2.0;
        // If the service time at the limit exceeds that of the medium, few are in pairs.
        let apart = if apart > 0.0 { apart } else { started_s / 2.0 };
        let most = 2.0 * latency_s / service_s;
        if apart > 0.0 { ((latency_s - started_s) / apart).clamp(0.0, most) } else { most }
    };
    let busy = load.busy()?;
    let busy_s = busy.min(1.0) * load.seconds();
    if let Some(medium_s) = evenly {
        if busy < OFTEN_IDLE {
            return Some(others(busy_s));
        }
        let others = (2.0 * (latency_s - medium_s) / service_s).max(0.0);
        // The last of a burst to end is the slowest of them.
        let last_s = (others + 1.0) * busy_s / operations - others * service_s;
        if AS_SAID.contains(&(last_s / medium_s)) {
            return Some(others);
        }
    }
    let idle = (1.0 - busy).max(1e-3);
    Some(others(-idle.ln() * load.seconds()))
}

/// Idle time from this share on shows the burst size, whatever the medium.
pub(super) const OFTEN_IDLE: f64 = 0.7;

/// Range of the last latency of back-to-back bursts, as a multiple of the medium's.
const AS_SAID: std::ops::Range<f64> = 0.8..2.0;

/// A subject with less than this part of the utilisation by another is not throttled by a shared
/// limit.
const FAIR: f64 = 0.8;

#[derive(Debug, Clone, Copy)]
struct Member {
    subject: usize,
    to: Instant,
    seconds: f64,
    has_said: bool,
    /// Cost and operations since the last settlement.
    cost: f64,
    operations: f64,
    /// Service time of an operation at the limit, in seconds.
    service_s: f64,
    /// Mean wait time for requests of the same burst, in seconds.
    burst_wait_s: f64,
    /// Utilisation at the last settlement.
    share: f64,
    /// The group; columns of a stripe are one.
    group: usize,
}

impl CapTrack {
    pub(super) fn new(system: &System, contents: &Contents, index: usize) -> Self {
        let cap = &system.caps[index];
        let name =
            if cap.counts_bytes() { attribute::BYTES_PER_S_LIMIT } else { attribute::IOPS_LIMIT };
        let limits = match cap.owner {
            Owner::Disk(disk) => {
                let file = system
                    .files
                    .iter()
                    .find(|file| file.on == Some(On::Disk(disk)) && file.entity.is_some());
                let own = system.disks[disk].entity.or(file.and_then(|file| file.entity));
                own.and_then(|entity| contents.find(entity, name))
            }
            Owner::Host(_) => None,
        };
        let credits = cap.limit.burst.and_then(|burst| {
            let full = (burst.peak - cap.limit.rate).max(0.0) * burst.seconds?;
            Some(Credits { full, left: full, least: full, out_s: 0.0 })
        });
        let facts = CapFacts {
            rate: Spread::default(),
            used: Spread::default(),
            near_limit_s: 0.0,
            near_limit_samples: 0,
            seconds: 0.0,
            samples: 0,
            is_bound: false,
            credits,
            excess: 0.0,
            operations: 0.0,
            limit: cap.limit.rate,
        };
        Self {
            facts,
            most: 0.0,
            least: 0.0,
            from: None,
            to: Instant::ZERO,
            members: Vec::new(),
            used: None,
            kind: cap.kind,
            is_disk_limit: matches!(cap.owner, Owner::Disk(_)),
            limits,
            limit: cap.limit,
            longest_ns: 0.0,
            backlog: 0.0,
            largest: 0.0,
            bursts_s: None,
            mean_service_s: 0.0,
            groups: BTreeMap::new(),
            longest_services: 0.0,
        }
    }

    /// Adds the load of a subject in a sample.
    pub(super) fn take(
        &mut self,
        cap: &Cap,
        counts: &Counts,
        (subject, group): (usize, usize),
        load: &Load,
    ) {
        let Some((least, most)) = cost(cap, counts, load) else { return };
        self.most += most * counts.share;
        self.least += least * counts.share;
        if !cap.counts_bytes() {
            let operations = load.operations.unwrap_or(0.0) * counts.share;
            self.facts.operations += operations;
            self.facts.excess += (most * counts.share - operations).max(0.0);
        }
        self.from = Some(self.from.map_or(load.from, |from| from.min(load.from)));
        self.to = self.to.max(load.to);
        let (cost, operations) = (most * counts.share, load.operations.unwrap_or(0.0));
        let new = || Member {
            subject,
            to: load.to,
            seconds: 0.0,
            has_said: true,
            cost: 0.0,
            operations: 0.0,
            service_s: 0.0,
            burst_wait_s: 0.0,
            share: 0.0,
            group,
        };
        let at = self.members.binary_search_by_key(&subject, |member| member.subject);
        let at = at.unwrap_or_else(|at| {
            self.members.insert(at, new());
            at
        });
        let member = &mut self.members[at];
        (member.to, member.seconds, member.has_said) = (load.to, load.seconds(), true);
        member.cost += cost;
        member.operations += operations * counts.share;
    }

    /// Returns whether all users have reported since the last settlement. A user without a report
    /// for two sampling intervals is not waited for.
    fn is_whole(&self, at: Instant) -> bool {
        let is_late = |member: &Member| span_s(at - member.to) > 2.5 * member.seconds;
        self.members.iter().all(|member| member.has_said || is_late(member))
    }

    /// Computes the utilisation once all members have reported.
    pub(super) fn settle(&mut self, cap: &Cap, at: Instant, row: &[Option<i64>]) {
        let said = self.limits.and_then(|id| row.get(id.0 as usize).copied().flatten());
        let said = said.and_then(|limit| u64::try_from(limit).ok()).filter(|limit| *limit > 0);
        if let Some(limit) = said.map(float) {
            self.facts.limit = limit;
            // If the limit changed in the meantime, the larger one counts.
            self.limit.rate = limit.max(self.limit.rate);
        }
        let Some(from) = self.from.filter(|_| self.is_whole(at)) else { return };
        let seconds = span_s(self.to - from);
        if seconds <= 0.0 {
            return;
        }
        let (most, least) = (self.most / seconds, self.least / seconds);
        let limit = self.limit_now(cap, most.min(self.limit.peak()), seconds);
        let is_bound = most > least * 1.02 + 1e-9 && most > 1.05 * limit;
        let share = if is_bound { 1.0 } else { most / limit };
        self.used = Some(Utilisation { share, is_bound });
        // If all requests arrive at once, the mean wait is half of the busy time, behind the
        // backlog.
        self.backlog = if share >= NEAR { self.backlog + seconds } else { 0.0 };
        self.longest_ns = (share.min(1.0) * seconds / 2.0 + self.backlog) * 1e9;
        let reading = |amount: f64| Reading { from, to: self.to, amount };
        self.facts.rate.add(&reading(most.min(limit * 1.2) * seconds));
        self.facts.used.add(&reading(share * seconds));
        self.facts.seconds += seconds;
        self.facts.samples += 1;
        self.facts.is_bound |= is_bound;
        if share >= NEAR {
            self.facts.near_limit_s += seconds;
            self.facts.near_limit_samples += 1;
        }
        (self.most, self.least, self.from) = (0.0, 0.0, None);
        self.limit.rate = self.facts.limit;
        self.largest = 0.0;
        self.groups.clear();
        self.longest_services = 0.0;
        let operations: f64 = self.members.iter().map(|member| member.operations).sum();
        let cost: f64 = self.members.iter().map(|member| member.cost).sum();
        self.mean_service_s = cost / operations.max(1.0) / limit;
        self.bursts_s = Some(0.0);
        for member in &mut self.members {
            member.share = member.cost / seconds / limit;
            self.largest = self.largest.max(member.share);
            let (share, services) = self.groups.entry(member.group).or_default();
            *share += member.share;
            if member.operations > 0.0 {
                // A random arrival meets an operation with a probability proportional to its length.
                member.service_s = member.cost / member.operations / limit;
                *services += member.share * member.service_s;
                self.longest_services += member.share * member.service_s;
            }
            (member.cost, member.operations, member.has_said) = (0.0, 0.0, false);
        }
    }

    fn member(&self, subject: usize) -> Option<&Member> {
        let at = self.members.binary_search_by_key(&subject, |member| member.subject).ok()?;
        Some(&self.members[at])
    }

    /// Returns the utilisation by a subject and its group, that by all others, and the mean
    /// residual service time of others' operations in seconds.
    pub(super) fn shares(&self, subject: usize) -> Shares {
        let all = self.used.map_or(0.0, |used| used.share);
        // A file on an observed disk has the values of the disk.
        let group = self.member(subject).and_then(|member| self.groups.get(&member.group));
        let (own, own_services) = group.copied().unwrap_or((all, self.longest_services));
        let others = (all - own).max(0.0);
        let services = (self.longest_services - own_services).max(0.0);
        // A random arrival waits for a residual service time. A saturated limit serves all members
        // in turn, so at most one operation of each comes first.
        let randomness = services / 2.0 / (1.0 - all).max(1e-6);
        Shares { own, others, others_wait_s: randomness.min(services / others.max(1e-9)) }
    }

    /// Returns the utilisation by a subject relative to that by the largest. A shared limit is divided fairly,
    /// so that a smaller user is not throttled.
    pub(super) fn relative_to_largest(&self, subject: usize) -> f64 {
        let own = self.member(subject).map(|member| member.share);
        own.filter(|own| *own < FAIR * self.largest).map_or(f64::INFINITY, |own| own / self.largest)
    }

    /// Returns the effective limit: the burst limit as long as there are credits.
    fn limit_now(&mut self, cap: &Cap, rate: f64, seconds: f64) -> f64 {
        let base = self.limit.rate;
        let Some(burst) = self.limit.burst else {
            self.kind = cap.kind;
            return base;
        };
        let Some(credits) = &mut self.facts.credits else {
            self.kind = cap.kind.burst();
            return burst.peak;
        };
        let before = credits.left;
        credits.left = (before + (base - rate) * seconds).clamp(0.0, credits.full);
        credits.least = credits.least.min(credits.left);
        // Credits that ran out allowed bursts for a part of the time only.
        let lasted = match rate > base {
            true => (before / (rate - base)).min(seconds),
            false => seconds,
        };
        let is_out = before <= credits.full * 1e-3 || lasted < seconds / 2.0;
        if is_out && rate >= NEAR * base {
            credits.out_s += seconds;
            self.kind = cap.kind;
            return (base * (seconds - lasted) + burst.peak * lasted) / seconds;
        }
        self.kind = cap.kind.burst();
        burst.peak
    }

    pub(super) const fn used(&self) -> Option<Utilisation> {
        self.used
    }

    pub(super) const fn kind_now(&self) -> Kind {
        self.kind
    }

    /// Returns whether this is the limit of one disk.
    pub(super) const fn is_disk_limit(&self) -> bool {
        self.is_disk_limit
    }

    /// Returns whether the burst limit was effective last.
    pub(super) fn is_at_peak(&self) -> bool {
        self.kind.is_burst()
    }

    /// Returns the service time of an operation of a subject, in seconds.
    pub(super) fn service_s(&self, subject: usize) -> f64 {
        self.member(subject).map_or(0.0, |member| member.service_s)
    }

    /// Sets the wait within a burst: `others` is the mean number of requests of the same burst that a
    /// request meets, spread over `disks` disks.
    pub(super) fn meet(&mut self, subject: usize, others: Option<f64>, disks: f64) {
        let Ok(at) = self.members.binary_search_by_key(&subject, |member| member.subject) else {
            return;
        };
        let member = &mut self.members[at];
        // The first request of a burst does not wait; the last waits for all others.
        let burst_wait_s = others.map(|others| others * member.service_s / 2.0);
        member.burst_wait_s = burst_wait_s.unwrap_or(0.0);
        self.bursts_s = self.bursts_s.zip(burst_wait_s).map(|(all, own)| all + own / disks);
    }

    /// Returns the wait time for random arrivals in seconds: all others', and a part of the
    /// subject's own.
    fn random_wait_s(&self, subject: usize, randomness: f64) -> f64 {
        let all = self.used.map_or(0.0, |used| used.share);
        let own = self.member(subject).map_or(0.0, |member| member.share);
        let used = (all - own * (1.0 - randomness)).clamp(0.0, NEAR);
        used * self.mean_service_s / 2.0 / (1.0 - used)
    }

    /// Returns upper bounds of the mean wait time of a subject: with all requests in one burst, and
    /// with the burst size that the busy time shows.
    pub(super) fn longest(&self, subject: usize, randomness: f64) -> WaitBound {
        let is_near = self.used.is_some_and(|used| used.share >= NEAR);
        match self.bursts_s.filter(|_| !is_near) {
            Some(bursts_s) => {
                let random_wait_s = self.random_wait_s(subject, randomness);
                let most_s = BURST_FACTOR * bursts_s + RANDOM_FACTOR * random_wait_s;
                let burst_wait_s =
                    self.member(subject).map_or(bursts_s, |member| member.burst_wait_s);
                let likely_ns = Some((burst_wait_s + random_wait_s) * 1e9);
                let most_ns = self.longest_ns;
                WaitBound { ns: most_ns.min(most_s * 1e9), most_ns, likely_ns }
            }
            None => WaitBound { ns: self.longest_ns, most_ns: self.longest_ns, likely_ns: None },
        }
    }

    pub(super) fn finish(self) -> CapFacts {
        self.facts
    }
}

/// Returns the use of a limit by a load: lower and upper bound.
fn cost(cap: &Cap, counts: &Counts, load: &Load) -> Option<(f64, f64)> {
    let apart = match (cap.counts_bytes(), load.reads.zip(load.writes)) {
        (true, _) => load.read_bytes.zip(load.write_bytes),
        (false, Some((reads, writes))) => {
            let read = reads * times(counts, load.read_bytes, reads, load);
            Some((read, writes * times(counts, load.write_bytes, writes, load)))
        }
        (false, None) => None,
    };
    let Some((read, written)) = apart else {
        let all = match cap.counts_bytes() {
            true => load.bytes?,
            false => {
                let operations = load.operations?;
                operations * times(counts, load.bytes, operations, load)
            }
        };
        return Some(match (counts.reads, counts.writes) {
            (Reads::All, true) => (all, all),
            _ => (0.0, all),
        });
    };
    let written = if counts.writes { written } else { 0.0 };
    Some(match counts.reads {
        Reads::All => (read + written, read + written),
        Reads::None => (written, written),
        Reads::Misses => match load.hits.zip(load.reads) {
            Some((hits, reads)) if reads > 0.0 => {
                let missed = read * ((reads - hits) / reads).clamp(0.0, 1.0);
                (missed + written, missed + written)
            }
            _ => (written, read + written),
        },
    })
}

/// Returns the number of counted operations per request, from the mean size. Requests above the
/// unit count several times, and a stripe splits them first.
fn times(counts: &Counts, bytes: Option<f64>, operations: f64, load: &Load) -> f64 {
    if let (Some(counted), Some(all)) = (load.counted, load.operations)
        && all > 0.0
        && counts.piece.is_none()
    {
        return counted / all;
    }
    let size = match bytes {
        Some(bytes) if operations > 0.0 => bytes / operations,
        _ => return 1.0,
    };
    let pieces = counts.piece.map_or(1.0, |piece| (size / piece).max(1.0));
    let units = counts.unit.map_or(1.0, |unit| (size / pieces / unit).max(1.0));
    pieces * units
}
