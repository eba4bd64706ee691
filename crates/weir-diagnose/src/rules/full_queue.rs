//! A benchmark that keeps its queue full at a slow device: the device is saturated, and its rate may be
//! a limit. One run cannot tell a limit from a device that is merely slow: the rate of a hard disk
//! under a steady load repeats as well. So the finding is evidence, and never throttling.

use super::earlier;
use super::rule::{BLIND, Candidate, Rule, source};
use super::signs::{FEW, RAISED_NS, throttling_caps};
use super::throttling::OF_SUBJECTS;
use crate::case::{Case, JudgedSubject, amount};
use weir_observe::attribute;
use weir_report::diagnosis::{Confidence, Group};
use weir_report::number::{float, percent, rate, time};

pub(super) const RULE: Rule = Rule {
    id: 112,
    name: "full-queue",
    group: Group::Evidence,
    priority: BLIND,
    source: source::MODEL,
    finds: "a benchmark's queue is always full and its requests take long: a limit or a slow device",
    find,
};

/// The measured queue depth is about the target if it is within this part of it.
const ABOUT: f64 = 0.1;

/// A queue of fewer requests is none.
const DEEP: f64 = 4.0;

/// Media of clouds take no longer than this with a full queue.
const SLOW_NS: f64 = 2.0 * RAISED_NS;

/// Service time of a fast device, in addition to the transfer time. Local SSDs are below it, and so
/// are disks with limits above 20,000 IOPS and 1 GiB/s: their limits cannot be recognised by a full
/// queue.
const FAST_NS: f64 = 50_000.0;

/// The transfer time of a byte at 1 GiB/s.
const FAST_BYTE_NS: f64 = 1e9 / 1_073_741_824.0;

/// Rates of intervals this close together repeat.
const REPEATS: f64 = 0.05;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let said = earlier::subjects(case, &OF_SUBJECTS);
    let throttling_caps = throttling_caps(case);
    let unsaid = case.named().filter(|judged| {
        let is_throttled =
            judged.subject.path.iter().any(|counts| throttling_caps.contains(&counts.cap));
        !is_throttled && !said.contains(&judged.name(case))
    });
    unsaid.filter_map(|judged| check(case, rule, &judged)).collect()
}

fn check(case: &Case<'_>, rule: &Rule, judged: &JudgedSubject<'_>) -> Option<Candidate> {
    let entity = case.contents.entity(judged.subject.entity)?;
    let target = float(entity.number(attribute::TARGET_QUEUE_DEPTH)?);
    // By Little's law.
    let depth = judged.facts.depth.mean()?;
    let latency_ns = judged.facts.latency_ns()?;
    let is_full = target >= DEEP && (depth / target - 1.0).abs() <= ABOUT;
    if !is_full || latency_ns <= SLOW_NS || judged.waited.operations < FEW {
        return None;
    }
    let size = judged.facts.request_bytes().unwrap_or(0.0);
    if latency_ns / depth <= FAST_NS + size * FAST_BYTE_NS {
        return None;
    }
    let iops = judged.facts.iops.mean().filter(|iops| *iops > 0.0)?;
    let bytes = judged.facts.bytes.mean().filter(|bytes| *bytes > 0.0);
    let or = bytes.map_or(String::new(), |bytes| format!(" or {}", amount(true, bytes)));
    let name = judged.name(case);
    let latency = time(latency_ns);
    let mut finding = rule.finding(
        name.clone(),
        format!(
            "{name} is saturated: {} requests are always in flight and take {latency} each, so {}{or} \
             is a rate limit, or all that the device can do",
            rate(target),
            amount(false, iops),
        ),
    );
    let (runs, is_steady) = repeats(judged);
    // If limits are known and none is reached, the device is probably slow.
    finding.confidence = match is_steady && judged.subject.path.is_empty() {
        true => Confidence::Medium,
        false => Confidence::Low,
    };
    finding.evidence.push(format!(
        "Little's law: {} IOPS x {latency} = {} requests in flight, and the queue depth is {}",
        rate(iops),
        rate(depth),
        rate(target)
    ));
    finding.evidence.push(format!(
        "service time of a request of {1}: {0}",
        time(latency_ns / depth),
        crate::case::size(weir_report::number::whole(size))
    ));
    finding.evidence.push(match (runs, is_steady) {
        (2.., true) => {
            format!("the rate is the same within {} in {runs} intervals", percent(REPEATS))
        }
        (2.., false) => format!("the rate varies over {runs} intervals"),
        _ => "there is one interval, so whether the rate repeats is unknown".to_owned(),
    });
    finding.evidence.push(known_limits(case, judged));
    finding.action = format!(
        "compare {} with the limits of the disk and of the machine of {name}; run it again with half the \
         queue depth: at a limit, the rate stays and the latency halves",
        amount(false, iops)
    );
    let wait_ns = judged.waited.latency_ns * (1.0 - 1.0 / target);
    Some(Candidate { wait_ns, ..finding.into() })
}

/// Returns the number of intervals, and whether the rate is the same in them.
fn repeats(judged: &JudgedSubject<'_>) -> (u64, bool) {
    let rates = &judged.facts.iops;
    let (low, high) = (rates.quantile(0.1), rates.quantile(0.9));
    (rates.count(), rates.count() >= 2 && low >= (1.0 - REPEATS) * high)
}

/// Says how much of the known limits was used, since none of them explains the queue.
fn known_limits(case: &Case<'_>, judged: &JudgedSubject<'_>) -> String {
    let caps = judged.subject.path.iter().map(|counts| case.cap(counts.cap));
    let Some(most) = caps.map(|(_, facts)| facts.used.max()).reduce(f64::max) else {
        return "no limit is known: a slow device, such as a hard disk, looks the same".to_owned();
    };
    format!(
        "known limits are used to {} at most: the device is slow, or another limit throttles it",
        percent(most.min(1.0))
    )
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::bed::{TestBed, found_in_sample};
    use weir_report::diagnosis::{Confidence, Finding, Group};

    #[track_caller]
    fn one(bed: TestBed) -> Finding {
        let found = bed.found("full-queue");
        let [finding] = &found[..] else { panic!("{found:?}") };
        finding.clone()
    }

    #[test]
    fn a_full_queue_at_a_slow_device_is_evidence() {
        let finding = one(TestBed::bare().seconds(5).job("t", 64, |_| (400.0, 160.0)));
        assert!(
            finding.finding.starts_with("t is saturated: 64.0 requests"),
            "{}",
            finding.finding
        );
        assert!(finding.finding.contains("400 IOPS or 3.12 MiB/s"), "{}", finding.finding);
        assert_eq!((finding.confidence, finding.group), (Confidence::Medium, Group::Evidence));
        // One interval does not repeat, nor do rates that are 20 % apart.
        let short = TestBed::bare().seconds(1).job("t", 64, |_| (400.0, 160.0));
        let short = one(short);
        assert_eq!((short.confidence, short.group), (Confidence::Low, Group::Evidence));
        let uneven = |second| if second % 2 == 0 { (400.0, 160.0) } else { (320.0, 200.0) };
        assert_eq!(
            one(TestBed::bare().seconds(6).job("t", 64, uneven)).confidence,
            Confidence::Low
        );
    }

    #[test]
    fn a_fast_device_with_a_full_queue_is_not_throttled() {
        assert!(!TestBed::bare().job("t", 64, |_| (80_000.0, 0.8)).finds("full-queue"));
        assert!(!TestBed::bare().job("t", 64, |_| (6_400.0, 10.0)).finds("full-queue"));
        // 1,024 in flight take long anywhere: 31 us for each request.
        assert!(!TestBed::bare().job("t", 1024, |_| (32_000.0, 32.0)).finds("full-queue"));
        // 64 requests of 1 MiB at 2 GiB/s take 31 ms each.
        let large = || TestBed::bare().job_of("t", (64, 1 << 20), |_| (2_048.0, 31.25));
        assert!(!large().finds("full-queue"));
        let slow = TestBed::bare().seconds(5).job_of("t", (64, 1 << 20), |_| (200.0, 320.0));
        assert!(
            one(slow)
                .evidence
                .iter()
                .any(|line| line.contains("service time of a request of 1 MiB: 5.00 ms"))
        );
    }

    #[test]
    fn a_partial_or_unknown_queue_is_silent() {
        // 16 of 64 are in flight.
        assert!(!TestBed::bare().job("t", 64, |_| (400.0, 40.0)).finds("full-queue"));
        assert!(!TestBed::bare().job("t", 0, |_| (400.0, 160.0)).finds("full-queue"));
        // A queue depth of one is no queue.
        assert!(!TestBed::bare().job("t", 1, |_| (40.0, 25.0)).finds("full-queue"));
    }

    const P30: &str = "edition = \"azure-premium-2015\"\nhost = { size = \"DS14\" }\n[[volume]]\nname = \
                       \"t\"\ntier = \"P30\"\n";

    #[test]
    fn a_known_limit_takes_precedence() {
        let at_limit = || TestBed::layout(P30).seconds(1).job("t", 128, |_| (5_000.0, 25.6));
        let rules = at_limit().findings().into_iter().map(|found| found.finding.rule);
        let rules: Vec<&str> = rules.collect();
        assert!(rules.contains(&"disk-operations") && !rules.contains(&RULE.name), "{rules:?}");
        // Far below the known limit, another one throttles it.
        let below = one(TestBed::layout(P30).job("t", 64, |_| (400.0, 160.0)));
        let known = "known limits are used to 8.0 % at most";
        assert!(below.evidence.iter().any(|line| line.starts_with(known)), "{:?}", below.evidence);
        assert_eq!((below.confidence, below.group), (Confidence::Low, Group::Evidence));
    }

    #[test]
    fn the_disk_of_a_machine_of_azure() {
        let sample = "diskspd/kisel_goodwinserverdc.westeurope.cloudapp.azure.com.txt";
        let Some(found) = found_in_sample(sample, None, "full-queue") else { return };
        // The local SSD in the same file does 50,445 IOPS at 1.27 ms with as many in flight.
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!(finding.subject, "C:\\testfile.foo");
        assert!(finding.evidence.iter().any(|line| line.contains("a slow device")));
        assert!(finding.finding.contains("393 IOPS or 1.54 MiB/s"), "{}", finding.finding);
        assert_eq!((finding.confidence, finding.group), (Confidence::Low, Group::Evidence));
    }

    #[test]
    fn a_tablet_is_slow_and_not_throttled() {
        let Some(found) = found_in_sample("diskspd/kisel_Irbis_TW57.txt", None, "") else { return };
        let is_throttling = |own: &&Finding| own.group == Group::Throttling;
        assert_eq!(found.iter().find(is_throttling), None);
        assert!(found.iter().any(|own| own.rule == RULE.name), "{found:?}");
    }
}
