//! An unknown limit: a rate that stays at a plateau while the queue depth varies.
//!
//! Without a limit, more requests in flight increase the rate. At a limit, the rate stays the same,
//! and only latency grows.

use super::earlier::{self, LIMITS};
use super::rule::{Candidate, Rule, source};
use super::signs::{FEW, RAISED_NS, throttling_caps};
use crate::case::{Case, JudgedSubject, amount, moments};
use weir_catalog::Edition;
use weir_core::Cap as Kind;
use weir_report::diagnosis::{Confidence, Group};
use weir_report::number::{float, percent, rate, time};

pub(super) const RULE: Rule = Rule {
    id: 110,
    name: "ceiling",
    group: Group::Throttling,
    priority: 10,
    source: source::MODEL,
    finds: "no limit is known, but the rate stays at a plateau while the queue is long",
    find,
};

/// Rates this close together are the same: a cloud's limiter is exact to a percent or two, and
/// tiers lie further apart.
const FLAT: f64 = 0.03;

/// A tier within this of the ceiling may be it.
const SAME: f64 = 0.03;

/// Rates of so much more than the ceiling say that it is none.
const ABOVE: f64 = 1.1;

/// As they may come from what was left over of a moment before, a few may be.
const FEW_ABOVE: f64 = 0.02;

/// Minimum share of the busy time at the plateau. Busy is at least half of its rate; random rates
/// vary more.
const AT_IT: f64 = 0.6;

/// Samples below which a rate is flat by chance.
const SAMPLES: f64 = 10.0;

/// Queue depth that counts as a queue.
const DEEP: f64 = 8.0;

/// The queue grows and shrinks by so much, and the rate does not.
const VARIES: f64 = 2.0;

/// Minimum depth of a constant queue, since a closed loop also has a constant rate.
const ALWAYS_DEEP: f64 = 16.0;

/// Minimum latency with a constant queue, above that of any medium of a cloud.
const ALWAYS_SLOW_NS: f64 = 2.0 * RAISED_NS;

/// A ceiling.
#[derive(Debug, Clone, Copy)]
struct Ceiling {
    is_bytes: bool,
    rate: f64,
    /// The part of the busy time at it.
    share: f64,
    /// The depth that a tenth of the time is below, and that a tenth is above.
    depth: (f64, f64),
    /// The middle of the latencies there, in nanoseconds.
    latency_ns: f64,
    varies: bool,
}

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let said = earlier::subjects(case, &LIMITS);
    let throttling_caps = throttling_caps(case);
    let unsaid = case.named().filter(|judged| {
        let is_throttled =
            judged.subject.path.iter().any(|counts| throttling_caps.contains(&counts.cap));
        !is_throttled && !said.contains(&judged.name(case))
    });
    let found = unsaid.filter_map(|judged| Some((finding(case, rule, &judged)?, judged)));
    found
        .map(|(finding, judged)| Candidate { wait_ns: excess_ns(&judged), ..finding.into() })
        .collect()
}

/// Returns the latency beyond that of requests that do not wait, in nanoseconds.
fn excess_ns(judged: &JudgedSubject<'_>) -> f64 {
    let unloaded = judged.waited.unloaded_ns.unwrap_or(0.0) * judged.waited.operations;
    (judged.waited.latency_ns - unloaded).max(0.0)
}

fn finding(
    case: &Case<'_>,
    rule: &Rule,
    judged: &JudgedSubject<'_>,
) -> Option<weir_report::diagnosis::Finding> {
    let knows = |is_bytes: bool| {
        let mut caps = judged.subject.path.iter().map(|counts| &case.system.caps[counts.cap]);
        caps.any(|cap| cap.counts_bytes() == is_bytes)
    };
    let both = [false, true]
        .map(|is_bytes| if knows(is_bytes) { None } else { ceiling(case, judged, is_bytes) });
    // With requests of one size, both rates are constant, and either limit may be the cause.
    let first = both.iter().flatten().max_by(|one, other| one.share.total_cmp(&other.share))?;
    let other = both.iter().flatten().find(|own| own.is_bytes != first.is_bytes);
    let name = judged.name(case);
    let or = other.map_or(String::new(), |own| format!(" or {}", amount(own.is_bytes, own.rate)));
    let mut finding = rule.finding(
        name.clone(),
        format!(
            "{name} stays at {}{or} while the median latency is {}: this looks like an unknown limit",
            amount(first.is_bytes, first.rate),
            time(first.latency_ns)
        ),
    );
    let kind = if first.is_bytes { Kind::DiskBytes } else { Kind::DiskIops };
    finding.cap = other.is_none().then(|| kind.name().to_owned());
    finding.confidence = if first.varies { Confidence::Medium } else { Confidence::Low };
    finding.evidence.push(format!(
        "for {} of the busy time, the rate is within {} of {}, and almost never above",
        percent(first.share),
        percent(FLAT),
        amount(first.is_bytes, first.rate)
    ));
    finding.evidence.push(format!(
        "the queue depth is {} to {} meanwhile: a deeper queue does not increase the rate",
        rate(first.depth.0),
        rate(first.depth.1)
    ));
    let tiers = tiers(case, first, other.copied());
    if !tiers.is_empty() {
        finding.evidence.push(format!(
            "known limits within {}: {}",
            percent(SAME),
            tiers.join(", ")
        ));
    }
    finding.moments = moments(case, judged, 3);
    finding.ruled_out = case
        .facts
        .others
        .processors
        .iter()
        .map(|host| format!("CPU: {} on average", percent(host.mean())))
        .collect();
    finding.action = format!(
        "look up the limit of {name} where it was created{}, and state it with --layout or --edition: \
         the finding then tells whether the disk or the machine throttles it",
        if tiers.is_empty() { "" } else { ", for example one of the tiers above" }
    );
    Some(finding)
}

/// Finds a ceiling in operations or bytes.
fn ceiling(case: &Case<'_>, judged: &JudgedSubject<'_>, is_bytes: bool) -> Option<Ceiling> {
    let over_time = &judged.facts.over_time;
    if judged.waited.operations < FEW || float(case.facts.samples) < SAMPLES {
        return None;
    }
    let rates = if is_bytes { &over_time.bytes } else { &over_time.iops };
    let all = rates.iter().zip(over_time.iops.iter()).zip(over_time.latency_ms.iter());
    let known = rates.iter().filter(|(_, rate)| rate.is_some()).count();
    // Rate, latency and queue depth.
    let mut points: Vec<(f64, f64, f64)> = all
        .filter_map(|((rate, iops), latency)| {
            let (rate, iops) = (rate.1?, iops.1?);
            let ns = latency.1.unwrap_or(0.0) * 1e6;
            (rate > 0.0).then_some((rate, ns, iops * ns / 1e9))
        })
        .collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    let count = |from: f64, to: f64| {
        let place = |rate: f64| points.partition_point(|point| point.0 < rate);
        place(to).saturating_sub(place(from))
    };
    // The rate that most others are close to, of the upper half.
    let upper = points.iter().skip(points.len() / 4);
    let most = upper.max_by_key(|point| count(point.0 * (1.0 - FLAT), point.0 * (1.0 + FLAT)))?.0;
    let at = &points[points.partition_point(|point| point.0 < most * (1.0 - FLAT))
        ..points.partition_point(|point| point.0 < most * (1.0 + FLAT))];
    let busy = count(most / 2.0, f64::INFINITY);
    let share = part(at.len(), busy);
    let above = part(count(most * ABOVE, f64::INFINITY), busy);
    // A point of the picture may be a part of a sample, or several.
    let samples = share * part(busy, known) * float(case.facts.samples);
    if share < AT_IT || above > FEW_ABOVE || samples < SAMPLES {
        return None;
    }
    let middle = |of: fn(&(f64, f64, f64)) -> f64, share: f64| {
        let mut values: Vec<f64> = at.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        quantile(&values, share)
    };
    let latency_ns = middle(|point| point.1, 0.5);
    let depth = (middle(|point| point.2, 0.1), middle(|point| point.2, 0.9));
    let varies = depth.1 >= DEEP && depth.1 >= VARIES * depth.0 && latency_ns > RAISED_NS;
    let is_always = depth.0 >= ALWAYS_DEEP && latency_ns > ALWAYS_SLOW_NS;
    let rate = middle(|point| point.0, 0.5);
    (varies || is_always).then_some(Ceiling { is_bytes, rate, share, depth, latency_ns, varies })
}

fn part(some: usize, of: usize) -> f64 {
    float(some as u64) / float(of.max(1) as u64)
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let at = usize::try_from(weir_report::number::whole(float(last as u64) * share));
    sorted.get(at.unwrap_or(last)).copied().unwrap_or(0.0)
}

/// Tiers of the catalog whose limit is about there, with their editions.
fn tiers(case: &Case<'_>, first: &Ceiling, other: Option<Ceiling>) -> Vec<String> {
    const MOST: usize = 6;
    let is = |ceiling: &Ceiling, iops: u64, bytes: u64| {
        let limit = float(if ceiling.is_bytes { bytes } else { iops });
        (limit / ceiling.rate - 1.0).abs() <= SAME
    };
    let fits = |iops: u64, bytes: u64| {
        is(first, iops, bytes) || other.is_some_and(|other| is(&other, iops, bytes))
    };
    let mut names = Vec::new();
    for edition in editions(case) {
        for family in edition.provisioned_families() {
            let least = &family.minimum;
            if fits(least.iops.per_sec().get(), least.throughput.per_sec().get()) {
                let how = if family.minimum_included {
                    "the included performance of"
                } else {
                    "the minimum of"
                };
                names.push(format!("{how} {} of {}", family.family, edition.name()));
            }
        }
        for tier in edition.tiers() {
            let lasting = (tier.iops, tier.throughput, "");
            let burst = tier.burst.as_ref().map(|b| (b.iops, b.throughput, " in a burst"));
            let plus = tier.plus.as_ref().map(|p| (p.iops, p.throughput, " with performance plus"));
            let all = [Some(lasting), burst, plus].into_iter().flatten();
            let fitting = all.into_iter().find(|(iops, throughput, _)| {
                fits(iops.per_sec().get(), throughput.per_sec().get())
            });
            if let Some((.., how)) = fitting {
                names.push(format!("{} of {}{how}", tier.name, edition.name()));
            }
        }
    }
    let more = names.len().saturating_sub(MOST);
    names.truncate(MOST);
    if more > 0 {
        names.push(format!("{more} more"));
    }
    names
}

/// Returns the editions that the disk may be of: the one that is given, those whose cloud names
/// machines like the observed ones, or all.
fn editions<'a>(case: &Case<'a>) -> Vec<&'a Edition> {
    if let Some(edition) = case.edition {
        return vec![edition];
    }
    let hosts: Vec<&str> = case.system.hosts.iter().map(|host| host.name.as_str()).collect();
    let matched = |edition: &Edition| {
        let names = edition.host_names()?;
        hosts.iter().map(|host| names.match_length(host)).max().filter(|length| *length > 0)
    };
    let all: Vec<&Edition> = case.catalog.editions().collect();
    let best = all.iter().filter_map(|edition| matched(edition)).max();
    match best {
        Some(_) => all.into_iter().filter(|edition| matched(edition) == best).collect(),
        None => all,
    }
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed, found_in_sample};
    use weir_report::diagnosis::Confidence;
    use weir_report::number::float;

    /// Returns a disk whose IOPS and latency in milliseconds vary by second.
    fn disk(iops: fn(u64) -> f64, ms: fn(u64) -> f64) -> TestBed {
        TestBed::bare().disk_over("data", move |second| {
            EntityLoad::writes(iops(second))
                .kib(8.0 + (iops(second) + ms(second)) % 5.0)
                .ms(ms(second))
        })
    }

    #[test]
    fn a_plateau_with_a_varying_queue_is_a_ceiling() {
        let found = disk(|second| 2280.0 + float(second % 7) * 5.0, |s| 8.0 + float(s % 9) * 9.0);
        let found = found.found("ceiling");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!(finding.cap.as_deref(), Some("disk_iops"));
        assert_eq!(finding.confidence, Confidence::Medium);
        assert!(finding.evidence.iter().any(|line| line.contains("P20")), "{:?}", finding.evidence);
    }

    #[test]
    fn a_steady_demand_is_no_ceiling() {
        // Fast: eight clients one after the other, 2 ms each.
        assert!(!disk(|_| 4000.0, |_| 2.0).finds("ceiling"));
        // Slow, and few at a time.
        assert!(!disk(|_| 100.0, |_| 30.0).finds("ceiling"));
        // As much as is asked for, which is more at times.
        assert!(
            !disk(|s| 500.0 + float(s % 20) * 50.0, |s| 8.0 + float(s % 9) * 9.0).finds("ceiling")
        );
        // Flat and deep, and now and then much more.
        assert!(
            !disk(|s| if s % 10 == 0 { 4000.0 } else { 2300.0 }, |s| 8.0 + float(s % 9) * 9.0)
                .finds("ceiling")
        );
    }

    #[test]
    fn a_known_limit_is_not_guessed() {
        let text = "edition = \"azure-premium-2015\"\nhost = { size = \"DS4\" }\n[[volume]]\n\
                    name = \"data\"\ntier = \"P30\"\n";
        let does = |second: u64| EntityLoad::writes(2300.0).ms(8.0 + float(second % 9) * 9.0);
        assert!(!TestBed::layout(text).disk_over("data", does).finds("ceiling"));
    }

    #[test]
    fn the_disk_of_an_ec2_machine() {
        let sample = "perfmon/aws_ec2_sqlserver_hammerdb_getcounter_long.csv";
        let Some(found) = found_in_sample(sample, None, "ceiling") else { return };
        let [finding] = &found[..] else { panic!("{found:?}") };
        // Near 3,000 in 39 of 50 busy minutes, and no other disk is.
        assert!(finding.subject.contains("2 e:"), "{}", finding.subject);
        assert_eq!(finding.cap.as_deref(), Some("disk_iops"));
        let words: Vec<&str> = finding.finding.split(' ').collect();
        // The name of the machine is one that EC2 gives: other clouds' tiers are not meant.
        let tiers = finding.evidence.iter().find(|line| line.starts_with("known limits within"));
        assert_eq!(
            tiers.map(String::as_str),
            Some("known limits within 3.0 %: the included performance of gp3 of aws")
        );
        let unit = words.iter().position(|word| *word == "IOPS").expect("IOPS");
        let iops: f64 = words[unit - 1].replace(',', "").parse().expect("a rate");
        assert!((2950.0..3080.0).contains(&iops), "{}", finding.finding);
    }
}
