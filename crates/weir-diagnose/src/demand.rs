//! The demand of a throttled system: its load without limits.
//!
//! The rates of a throttled disk are its limit, not its demand. The estimate takes the requests that
//! are always in flight while it is throttled, which are issued again as soon as they complete,
//! and lets each take as long as a request that does not wait (Little's law):
//!
//! ```text
//!   demand = requests in flight / unloaded latency
//! ```
//!
//! If no limit is known, all samples may be throttled, including the one with the lowest latency.
//! If the edition's medium is faster, its latency is used.
//!
//! It is an upper bound: an application may find another limit first, or have nothing more to ask.
//! Requests that are in flight for a part of the time only, as those of a burst, are not counted.

use crate::case::{Case, JudgedSubject};
use crate::rules::Candidate;
use crate::system::Medium;
use crate::verdict::{Basis, THROTTLED};
use std::collections::BTreeSet;
use weir_catalog::Edition;
use weir_observe::EntityId;
use weir_report::diagnosis::Group;

/// An estimate ends at this many times the observed rate: a longer queue has other causes.
const MOST: f64 = 10.0;

/// Requests that take this many times the unloaded latency wait.
const WAITING: f64 = 1.5;

/// The part of the throttled time in which fewer requests may be in flight.
const SELDOM: f64 = 0.1;

/// The demand of a throttled file, disk or stripe.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    /// Entity in the observation.
    pub entity: EntityId,
    /// Name.
    pub name: String,
    /// The cause of the throttling, from the finding.
    pub because: String,
    /// The mean rate while it was throttled, in operations per second.
    pub iops: f64,
    /// The estimate, if the unloaded latency is known and the estimate is above the observed rate.
    pub estimate: Option<Estimate>,
}

/// An estimated demand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Operations per second.
    pub iops: f64,
    /// Requests that are in flight for all but a tenth of the throttled time.
    pub in_flight: f64,
    /// The latency of a request that does not wait, in nanoseconds.
    pub unloaded_ns: f64,
    /// Set if this is the latency of the edition's medium, and no observed latency is near it.
    pub is_assumed: bool,
    /// Set if the estimate was cut at a multiple of the observed rate.
    pub is_capped: bool,
}

/// Estimates the demand of all throttled subjects. `edition` is the one to plan with. Its medium is
/// used if all samples have more than 1.5 times its latency, since all may have waited.
#[must_use]
pub fn estimate(case: &Case<'_>, found: &[Candidate], edition: Option<&Edition>) -> Vec<Demand> {
    let medium = edition.and_then(medium);
    let throttling = || found.iter().filter(|own| own.finding.group == Group::Throttling);
    let named: BTreeSet<&str> = throttling().map(|own| own.finding.subject.as_str()).collect();
    let because = |name: &str| {
        let own = throttling().find(|own| own.finding.subject == name);
        own.or_else(|| throttling().next()).map(|own| own.finding.finding.clone())
    };
    let held = case.all().filter(|judged| {
        judged.waited.throttled().is_some()
            || named.contains(judged.name(case).as_str())
            || is_queued(judged)
    });
    let demands = held.filter_map(|judged| {
        let name = judged.name(case);
        let because = because(&name)?;
        let queue = Queue::from_waiting(&judged, medium);
        let iops = queue.as_ref().map(|queue| queue.iops).or(judged.facts.iops.mean())?;
        let estimate = queue.and_then(|queue| queue.estimate());
        Some(Demand { entity: judged.subject.entity, name, because, iops, estimate })
    });
    demands.collect()
}

/// Returns the medium of the family that an edition places disks in where none is named.
fn medium(edition: &Edition) -> Option<Medium> {
    let tiers = edition.default_set().map(|set| set.family.as_str());
    let provisioned = || edition.provisioned_families().first().map(|own| own.family.as_str());
    let latency = edition.latency(tiers.or_else(provisioned)?)?;
    Some(Medium::from_latency(latency))
}

/// Returns the unloaded latency, and whether it is that of `medium`. Without limits, no sample is
/// known to be quiet.
fn unloaded(judged: &JudgedSubject<'_>, medium: Option<Medium>) -> Option<(f64, bool)> {
    let unloaded_ns = judged.waited.unloaded_ns.filter(|ns| *ns > 0.0);
    let is_blind = judged.subject.medium.is_none()
        && judged.subject.path.is_empty()
        && matches!(judged.waited.basis, Basis::Quiet | Basis::Utilisation);
    let assumed = medium.filter(|_| is_blind).map(|medium| medium.mean_ns(judged));
    match (unloaded_ns, assumed) {
        (Some(unloaded), Some(assumed)) if unloaded <= WAITING * assumed => Some((unloaded, false)),
        (_, Some(assumed)) if assumed > 0.0 => Some((assumed, true)),
        (unloaded, _) => unloaded.map(|ns| (ns, false)),
    }
}

impl Medium {
    /// Returns the mean latency of the requests of a subject.
    fn mean_ns(self, judged: &JudgedSubject<'_>) -> f64 {
        let reads = judged.facts.read_share().unwrap_or(1.0);
        let size = judged.facts.request_bytes().unwrap_or(0.0);
        let read_ns = self.read_ns + size * self.read_byte_ns;
        let write_ns = self.write_ns + size * self.write_byte_ns;
        reads * read_ns + (1.0 - reads) * write_ns
    }
}

/// Returns whether queue time of a governor is a third of the latency or more.
fn is_queued(judged: &JudgedSubject<'_>) -> bool {
    let total = &judged.facts.total;
    let queued = total.queued_read_ns.unwrap_or(0.0) + total.queued_write_ns.unwrap_or(0.0);
    judged.facts.has_queue_times && total.ns.is_some_and(|ns| ns > 0.0 && queued >= THROTTLED * ns)
}

/// The requests of a subject while they wait.
struct Queue {
    iops: f64,
    in_flight: f64,
    unloaded_ns: f64,
    is_assumed: bool,
}

impl Queue {
    /// Takes the parts of the picture over time in which requests wait.
    fn from_waiting(judged: &JudgedSubject<'_>, medium: Option<Medium>) -> Option<Self> {
        let (unloaded_ns, is_assumed) = unloaded(judged, medium)?;
        let over_time = &judged.facts.over_time;
        let points = over_time.iops.iter().zip(over_time.latency_ms.iter());
        let mut waiting: Vec<(f64, f64)> = points
            .filter_map(|((_, iops), (_, latency_ms))| Some((iops?, latency_ms? * 1e6)))
            .filter(|(iops, ns)| *iops > 0.0 && *ns >= WAITING * unloaded_ns)
            .map(|(iops, ns)| (iops, iops * ns / 1e9))
            .collect();
        waiting.sort_by(|one, other| one.1.total_cmp(&other.1));
        let count = weir_report::number::float(waiting.len() as u64);
        let seldom = usize::try_from(weir_report::number::whole((count * SELDOM).floor())).ok()?;
        let in_flight = waiting.get(seldom)?.1;
        let iops = waiting.iter().map(|(iops, _)| iops).sum::<f64>() / count;
        Some(Self { iops, in_flight, unloaded_ns, is_assumed })
    }

    /// Estimates the demand; `None` if it is not above what was done.
    fn estimate(&self) -> Option<Estimate> {
        let Self { iops, in_flight, unloaded_ns, is_assumed } = *self;
        let demand = in_flight / (unloaded_ns / 1e9);
        let most = MOST * iops;
        let is_capped = demand > most;
        let iops_asked = demand.min(most);
        let estimate = Estimate { iops: iops_asked, in_flight, unloaded_ns, is_assumed, is_capped };
        (demand > WAITING * iops).then_some(estimate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed::{EntityLoad, TestBed, with_case};

    const P10: &str = "edition = \"azure-premium-2015\"\nhost = { size = \"DS4\" }\n[[volume]]\n\
                       name = \"data\"\ntier = \"P10\"\n";

    fn demands(bed: TestBed) -> Vec<Demand> {
        with_case(bed, |case, found| estimate(case, &found, case.catalog.edition("azure-now").ok()))
    }

    #[test]
    fn a_constant_queue_demands_more_than_the_limit() {
        // 20 in flight at 500 IOPS take 40 ms each; a P30 would take 2.07 ms for each.
        let held = demands(TestBed::layout(P10).disk("data", EntityLoad::reads(498.0).ms(40.0)));
        let [demand] = &held[..] else { panic!("{held:?}") };
        assert!((demand.iops - 498.0).abs() < 1.0, "{demand:?}");
        let estimate = demand.estimate.expect("an estimate");
        assert!((estimate.in_flight - 19.9).abs() < 0.1, "{estimate:?}");
        assert!(estimate.is_capped && (estimate.iops - 4_980.0).abs() < 10.0, "{estimate:?}");
        let held = demands(TestBed::layout(P10).disk("data", EntityLoad::reads(498.0).ms(8.0)));
        let estimate = held[0].estimate.expect("an estimate");
        let expect = estimate.in_flight / (estimate.unloaded_ns / 1e9);
        assert!(!estimate.is_capped && (estimate.iops - expect).abs() < 1.0, "{estimate:?}");
        assert!((1_500.0..2_200.0).contains(&estimate.iops), "{estimate:?}");
    }

    #[test]
    fn a_passing_burst_demands_nothing_more() {
        let bursts = |second| match second % 2 {
            0 => EntityLoad::reads(499.0).ms(60.0),
            _ => EntityLoad::reads(499.0).ms(4.0),
        };
        let held = demands(TestBed::layout(P10).disk_over("data", bursts));
        let in_flight = held[0].estimate.map(|estimate| estimate.in_flight);
        assert!(in_flight.is_none_or(|in_flight| in_flight < 3.0), "{held:?}");
    }

    #[test]
    fn a_disk_that_was_throttled_throughout_takes_the_latency_of_the_edition() {
        // 400 IOPS with 32 in flight, from the first sample to the last, and no limit is known.
        let held = demands(TestBed::bare().disk("data", EntityLoad::reads(400.0).ms(80.0)));
        let [demand] = &held[..] else { panic!("{held:?}") };
        let estimate = demand.estimate.expect("an estimate");
        assert!(estimate.is_assumed && estimate.unloaded_ns < 10e6, "{estimate:?}");
        assert!(estimate.iops >= 3.0 * demand.iops, "{estimate:?}");
        // The medium itself was seen in half of the samples.
        let half = |second: u64| match second % 40 {
            0..20 => EntityLoad::reads(400.0).ms(80.0),
            _ => EntityLoad::reads(60.0).ms(1.2),
        };
        let held = demands(TestBed::bare().seconds(200).disk_over("data", half));
        let estimate = held[0].estimate.expect("an estimate");
        assert!(!estimate.is_assumed && (estimate.unloaded_ns - 1.2e6).abs() < 5e4, "{held:?}");
    }

    #[test]
    fn demand_without_throttling_is_the_observed_load() {
        assert_eq!(
            demands(TestBed::layout(P10).disk("data", EntityLoad::reads(200.0).ms(2.0))),
            []
        );
    }
}
