//! Large requests that the disk counts several times and the database server once.

use super::rule::{Candidate, Rule, source};
use super::throttled::{next_tier, throttled_by};
use crate::case::{Case, JudgedSubject, amount, size};
use crate::system::Owner;
use crate::verdict::CapWait;
use weir_core::Cap as Kind;
use weir_report::diagnosis::Group;
use weir_report::number::{percent, rate, whole};

pub(super) const RULE: Rule = Rule {
    id: 215,
    name: "large-io-counted",
    group: Group::Layout,
    priority: 100,
    source: source::MODEL,
    finds: "large requests count several times, so that the IOPS limit is reached with fewer requests",
    find,
};

/// Fewer that are counted on top of all explain little.
const MATTERS: f64 = 0.1;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let is = |case: &Case<'_>, wait: &CapWait| {
        let cap = &case.system.caps[wait.cap];
        cap.kind == Kind::DiskIops && matches!(cap.owner, Owner::Disk(_))
    };
    let all = throttled_by(case, is);
    all.into_iter().filter_map(|(judged, wait)| check_subject(case, rule, &judged, wait)).collect()
}

/// Returns the mean sizes of reads and writes, if they are larger than the unit.
fn large(judged: &JudgedSubject<'_>, unit: f64) -> Vec<(&'static str, f64)> {
    let total = &judged.facts.total;
    let means = [
        ("reads", weir_observe::load::mean(total.read_bytes, total.reads)),
        ("writes", weir_observe::load::mean(total.write_bytes, total.writes)),
        ("requests", judged.facts.request_bytes().filter(|_| total.reads.is_none())),
    ];
    let large = means.into_iter().filter_map(|(what, mean)| Some((what, mean?)));
    large.filter(|(_, mean)| *mean > unit).collect()
}

fn check_subject(
    case: &Case<'_>,
    rule: &Rule,
    judged: &JudgedSubject<'_>,
    wait: &CapWait,
) -> Option<Candidate> {
    let counts = judged.subject.path.iter().find(|counts| counts.cap == wait.cap)?;
    // Requests that a stripe splits are another case.
    let unit = counts.unit.filter(|_| counts.piece.is_none())?;
    let (cap, facts) = case.cap(wait.cap);
    if facts.operations <= 0.0 || facts.excess < MATTERS * facts.operations {
        return None;
    }
    let counted = 1.0 + facts.excess / facts.operations;
    let subject = judged.name(case);
    let per_s = facts.operations / facts.seconds.max(1e-9);
    let text = format!(
        "{subject} is throttled at {} with {} requests/s: requests larger than {} count several times, \
         which adds {}",
        amount(false, facts.limit),
        rate(per_s),
        size(whole(unit)),
        percent(counted - 1.0),
    );
    let mut finding = rule.finding(subject, text);
    finding.cap = Some(wait.kind.name().to_owned());
    finding.confidence = judged.waited.confidence;
    for (what, mean) in large(judged, unit) {
        finding.evidence.push(format!(
            "{what} average {} and count {} times each; SQL Server counts one",
            size(whole(mean)),
            rate(mean / unit)
        ));
    }
    finding.evidence.push(format!("{} of the latency is wait time", percent(wait.share)));
    let (action, change) =
        next_tier(case, judged.subject.id, cap.counts_bytes(), wait.kind.is_burst());
    let action = format!(
        "move large requests (backups, scans, index builds) to another time or to other disks, and plan \
         with {} IOPS instead of {}; otherwise {action}",
        rate(per_s * counted),
        rate(per_s)
    );
    finding.action = action;
    Some(Candidate::new(finding, change))
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    fn bed(does: EntityLoad) -> TestBed {
        // 500 operations, and bytes enough: a layout of one's own.
        let text = "edition = \"azure-premium-2015\"\nhost = { size = \"DS14\" }\n[[volume]]\nname = \
                    \"disk\"\nsize = \"128 GiB\"\nlimits = { iops = 500, throughput = \"300 MiB/s\" \
                    }\nlatency = \"2 ms\"\n";
        TestBed::layout(text).disk("disk", does)
    }

    #[test]
    fn a_request_of_1_mib_is_four() {
        let found = bed(EntityLoad::reads(124.0).kib(1024.0).ms(60.0)).found("large-io-counted");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert!(finding.finding.contains("with 124 requests"), "{}", finding.finding);
        assert!(finding.evidence.iter().any(|line| line.contains("4.00 times")), "{finding:?}");
    }

    #[test]
    fn requests_within_the_unit_count_once() {
        assert!(!bed(EntityLoad::reads(498.0).kib(256.0).ms(60.0)).finds("large-io-counted"));
        assert!(!bed(EntityLoad::reads(100.0).kib(1024.0).ms(2.0)).finds("large-io-counted"));
    }
}
