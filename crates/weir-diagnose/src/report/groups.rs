//! Findings with the same cause become one finding with several subjects.
//!
//! Four files that are throttled at 500 IOPS each have one cause and one fix. A rule makes a finding
//! for each subject; the report groups them. The effect is that of a change for the first one.

use crate::rules::Candidate;
use std::cmp::Reverse;
use weir_report::diagnosis::{Finding, Group};
use weir_report::number::whole;

/// Names in a sentence.
const NAMES: usize = 4;

/// Subjects whose own findings are listed as evidence.
const LISTED: usize = 6;

/// Returns the findings by priority and then by wait time, those with the same cause in one.
pub(super) fn grouped(found: Vec<Candidate>) -> Vec<Finding> {
    let mut groups: Vec<Vec<Finding>> = Vec::new();
    for Candidate { mut finding, wait_ns, .. } in found {
        finding.wait_ns = wait_ns;
        match groups.iter_mut().find(|group| has_same_cause(&group[0], &finding)) {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    let mut findings: Vec<Finding> = groups.into_iter().filter_map(merged).collect();
    findings.sort_by_key(|own| (own.priority, Reverse(whole(own.wait_ns)), own.check_id));
    findings
}

/// Returns whether two findings are of the same rule, at limits of the same kind and height.
pub(crate) fn has_same_cause(one: &Finding, other: &Finding) -> bool {
    let key = |own: &Finding| {
        (own.check_id, own.group, own.priority, own.cap.clone(), own.limit.map(f64::to_bits))
    };
    let is_grouped = matches!(one.group, Group::Throttling | Group::Headroom | Group::Evidence);
    is_grouped && key(one) == key(other)
}

/// Merges findings with the same cause, of which the first has the longest wait time.
fn merged(group: Vec<Finding>) -> Option<Finding> {
    let mut all = group.into_iter();
    let mut first = all.next()?;
    let others: Vec<Finding> = all.collect();
    if others.is_empty() {
        return Some(first);
    }
    for other in &others {
        first.subjects.extend(other.subjects.iter().cloned());
        first.wait_ns += other.wait_ns;
        first.confidence = first.confidence.max(other.confidence);
    }
    let listed = others.iter().take(LISTED).map(|other| other.finding.clone());
    first.evidence.extend(listed);
    if others.len() > LISTED {
        first.evidence.push(format!("and {} more with the same finding", others.len() - LISTED));
    }
    for other in &others {
        for part in other.action.split("; ") {
            if !part.is_empty() && !first.action.contains(part) {
                first.action = format!("{}; {part}", first.action);
            }
        }
    }
    first.finding = sentence(&first);
    Some(first)
}

/// Returns the sentence of a finding with several subjects.
fn sentence(own: &Finding) -> String {
    let prefix = format!("{} is throttled by its ", own.subject);
    match own.finding.strip_prefix(&prefix).and_then(|rest| rest.split(": ").next()) {
        Some(limit) => format!(
            "{} files or disks are throttled by their {limit} each: {}",
            own.subjects.len(),
            names(&own.subjects)
        ),
        None => format!("{}; the same applies to {}", own.finding, names(&own.subjects[1..])),
    }
}

/// Returns the first names, and the number of others.
fn names(all: &[String]) -> String {
    let first = all.iter().take(NAMES).cloned().collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(NAMES) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed, with_case};
    use crate::report::report;

    const LAYOUT: &str = "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 8 \
        }\n[[file]]\nname = \"one\"\nrole = \"data\"\nsize = \"64 GiB\"\n[[file]]\nname = \"two\"\nrole = \"data\"\nsize = \"64 GiB\"\n\
        [[file]]\nname = \"large\"\nrole = \"data\"\nsize = \"900 GiB\"\n";

    fn file(iops: f64) -> EntityLoad {
        EntityLoad::reads(iops).ms(60.0)
    }

    #[test]
    fn files_at_the_same_limit_are_one_finding() {
        let bed =
            TestBed::layout(LAYOUT).file("db", "one", file(498.0)).file("db", "two", file(499.0));
        let report = with_case(bed, report);
        let own = report.findings.iter().filter(|own| own.check_id == 101).collect::<Vec<_>>();
        let [finding] = own[..] else { panic!("{:?}", report.findings) };
        assert_eq!(finding.subjects.len(), 2, "{finding:?}");
        assert_eq!(finding.subject, finding.subjects[0]);
        let begin = "2 files or disks are throttled by their IOPS limit, 500 IOPS each: ";
        assert!(report.summary.starts_with(begin), "{}", report.summary);
    }

    #[test]
    fn files_at_other_limits_are_findings_of_their_own() {
        let bed = TestBed::layout(LAYOUT).file("db", "one", file(498.0));
        let report = with_case(bed.file("db", "large", file(4_990.0)), report);
        let own = report.findings.iter().filter(|own| own.check_id == 101);
        let waits: Vec<f64> = own.map(|own| own.wait_ns).collect();
        assert_eq!(waits.len(), 2, "{:?}", report.findings);
        assert!(waits[0] > waits[1], "the longest wait time comes first: {waits:?}");
    }
}
