//! Throttling for so little of the observation that it is no verdict.

use super::queued;
use super::rule::{Candidate, Rule, source};
use super::signs::{FEW, RAISED_NS};
use super::throttling;
use crate::case::{Case, JudgedSubject, cap_words, moments};
use crate::verdict::{EPISODE_S, NOTED_NS, THROTTLED};
use weir_report::diagnosis::{Confidence, Group};
use weir_report::number::{percent, time};

pub(super) const RULE: Rule = Rule {
    id: 409,
    name: "short-episode",
    group: Group::Evidence,
    priority: 150,
    source: source::MODEL,
    finds: "requests waited for some seconds of a long observation, which is too short for a verdict",
    find,
};

/// Waiting in a short part of the observation.
struct Episode {
    /// The limit, or the queue of the governor where no limit is known.
    place: String,
    cap: Option<String>,
    wait_ns: f64,
    share: f64,
    seconds: f64,
}

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let mut said = throttling::throttled(case);
    said.extend(queued::members(case));
    let unsaid = case.named().filter(|judged| !said.contains(&judged.name(case)));
    unsaid.filter_map(|judged| check(case, rule, &judged)).collect()
}

fn check(case: &Case<'_>, rule: &Rule, judged: &JudgedSubject<'_>) -> Option<Candidate> {
    let episode = at_cap(case, judged).or_else(|| in_queue(judged))?;
    let (name, all_s) = (judged.name(case), judged.facts.seconds());
    let mut finding = rule.finding(
        name.clone(),
        format!(
            "requests to {name} waited {} in total at {}, within {} of the {} observed, which is too short \
             to call it throttled",
            time(episode.wait_ns),
            episode.place,
            time(episode.seconds * 1e9),
            time(all_s * 1e9)
        ),
    );
    finding.cap = episode.cap;
    finding.confidence = Confidence::Medium;
    finding
        .evidence
        .push(format!("{} of the latency in these samples is wait time", percent(episode.share)));
    finding.moments = moments(case, judged, 3);
    finding.action =
        "observe and diagnose that time alone: its importance does not depend on the length of the rest \
         of the observation"
            .to_owned();
    Some(Candidate { wait_ns: episode.wait_ns, ..finding.into() })
}

/// Returns the waiting at caps in slow samples, unless the subject is throttled.
fn at_cap(case: &Case<'_>, judged: &JudgedSubject<'_>) -> Option<Episode> {
    let own = judged.waited.episode?;
    let cap = case.cap(own.wait.cap).0;
    Some(Episode {
        place: format!("the {} of {}", cap_words(own.wait.kind), case.system.owner_name(cap)),
        cap: Some(own.wait.kind.name().to_owned()),
        wait_ns: own.wait_ns,
        share: own.share,
        seconds: own.seconds,
    })
}

/// Returns the waiting in queues of a governor in slow samples, where no limit is known.
fn in_queue(judged: &JudgedSubject<'_>) -> Option<Episode> {
    let slow = judged.facts.slow.all();
    let is_enough = judged.subject.path.is_empty()
        && judged.facts.has_queue_times
        && judged.facts.slow.seconds >= EPISODE_S
        && slow.queued_ns >= NOTED_NS
        && slow.queued_ns >= THROTTLED * slow.ns
        && slow.operations >= FEW
        && slow.ns >= RAISED_NS * slow.operations;
    is_enough.then(|| Episode {
        place: "a governor's queue".to_owned(),
        cap: None,
        wait_ns: slow.queued_ns,
        share: slow.queued_ns / slow.ns,
        seconds: judged.facts.slow.seconds,
    })
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed, with_case};
    use crate::report::report;
    use weir_report::diagnosis::{Group, VerdictName};

    const P10: &str = "edition = \"azure-premium-2015\"\nhost = { size = \"DS4\" }\n[[volume]]\n\
                       name = \"data\"\ntier = \"P10\"\n";

    /// Returns a disk that is at its limit for `seconds` of the observation.
    fn held(seconds: u64, of: u64) -> TestBed {
        let does = move |second| match (600..600 + seconds).contains(&second) {
            true => EntityLoad::reads(500.0).ms(80.0).busy_ms(1000.0),
            false => EntityLoad::reads(140.0).ms(2.0).busy_ms(260.0),
        };
        TestBed::layout(P10).seconds(of).disk_over("data", does)
    }

    #[test]
    fn a_short_episode_is_reported() {
        // 20 s with 40 requests in flight are 13 minutes of waiting, in 2 h.
        let report = with_case(held(20, 7200), report);
        assert_eq!(report.verdict, VerdictName::Healthy, "{}", report.summary);
        let own = report.findings.iter().find(|own| own.rule == "short-episode");
        let own = own.expect("a finding");
        assert_eq!(
            report.summary,
            format!("no limit throttles requests on the whole, but {}", own.finding)
        );
        assert_eq!((own.group, own.cap.as_deref()), (Group::Evidence, Some("disk_iops")));
        assert!(own.finding.contains("within 20.00 s of the 7,200 s"), "{}", own.finding);
        assert!(!own.moments.is_empty());
    }

    #[test]
    fn a_moment_or_a_throttled_disk_is_no_episode() {
        assert!(!held(2, 7200).finds("short-episode"));
        assert!(!held(0, 7200).finds("short-episode"));
        let throttled = || held(60, 7200);
        assert!(throttled().finds("disk-operations") && !throttled().finds("short-episode"));
    }

    #[test]
    fn a_governor_queue_without_a_limit_is_an_episode() {
        let does = |second: u64| match (600..620).contains(&second) {
            true => EntityLoad::writes(50.0).ms(100.0).queued_ms(90.0),
            false => EntityLoad::writes(100.0).ms(3.0).queued_ms(0.1),
        };
        let bed = || TestBed::bare().seconds(86_400).every(20).file_over("db", "data", does);
        assert!(!bed().finds("queued"));
        let found = bed().found("short-episode");
        let [own] = &found[..] else { panic!("{found:?}") };
        assert!(own.finding.contains("90.0 s in total at a governor's queue"), "{}", own.finding);
    }

    #[test]
    fn files_of_a_throttled_group_are_no_episode() {
        let does = || EntityLoad::writes(50.0).ms(100.0).queued_ms(90.0);
        let bed = || {
            let first = TestBed::bare().file("tempdb", "tempdev", does()).with_role("tempdb", 10);
            first.file("tempdb", "tempdev2", does()).with_role("tempdb", 10)
        };
        assert_eq!(bed().found("queued")[0].subject, "tempdb");
        assert!(!bed().finds("short-episode"));
    }
}
