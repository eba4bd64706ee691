//! Files and disks without counts of operations.

use super::rule::{BLIND, Candidate, Rule, source};
use super::signs::names;
use crate::case::Case;
use std::collections::BTreeSet;
use weir_observe::metric as m;
use weir_observe::{Contents, EntityId, EntityKind};
use weir_report::diagnosis::{Confidence, Group};

pub(super) const RULE: Rule = Rule {
    id: 408,
    name: "no-operations",
    group: Group::Evidence,
    priority: BLIND,
    source: source::MODEL,
    finds: "columns that count operations are missing, so that limits and latencies are unknown",
    find,
};

/// Priority of a finding that needs no action.
const NOTE: u8 = 200;

/// Metrics that count operations.
const BOTH: [&str; 2] = [m::OPERATIONS.name, m::OPERATIONS_PER_S.name];
const READS: [&str; 3] = [m::NUM_OF_READS.name, m::READS.name, m::READS_PER_S.name];
const WRITES: [&str; 3] = [m::NUM_OF_WRITES.name, m::WRITES.name, m::WRITES_PER_S.name];

/// Returns the missing columns for the operations of an entity.
pub(super) fn missing_operations(contents: &Contents, entity: EntityId) -> Vec<&'static str> {
    let own = contents.series.iter().filter(|series| series.entity == entity);
    let known: BTreeSet<&str> = own.map(|series| series.metric.as_str()).collect();
    let has = |any: &[&str]| any.iter().any(|metric| known.contains(metric));
    if has(&BOTH) {
        return Vec::new();
    }
    let is_file = contents.entity(entity).is_some_and(|own| own.kind == EntityKind::File);
    let named = |names: [&'static str; 3]| if is_file { names[0] } else { names[2] };
    let needed = [READS, WRITES].into_iter().filter(|names| !has(names));
    needed.map(named).collect()
}

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let (mut subjects, mut missing) = (Vec::new(), BTreeSet::new());
    for subject in &case.system.subjects {
        let own = missing_operations(case.contents, subject.entity);
        if !own.is_empty() {
            subjects.push(case.system.name(subject.id));
            missing.extend(own);
        }
    }
    if subjects.is_empty() {
        return Vec::new();
    }
    let missing: Vec<String> = missing.into_iter().map(str::to_owned).collect();
    let is_all = subjects.len() == case.system.subjects.len();
    let text = format!(
        "{} {} missing for {}: without operations, neither latencies nor the use of limits can be \
         computed",
        names(&missing),
        if missing.len() == 1 { "is" } else { "are" },
        names(&subjects)
    );
    let mut finding = rule.finding("operations", text);
    finding.priority = if is_all { rule.priority } else { NOTE };
    finding.confidence = Confidence::High;
    finding.evidence.push(
        "disk-operations, disk-bytes, stripe-column, host-uncached, host-cached, log-rate and \
         near-limit need operations"
            .to_owned(),
    );
    finding.action = format!(
        "import it with {}: sys.dm_io_virtual_file_stats has num_of_reads and num_of_writes (weir \
         observe script --sqlserver reads them), iostat -x has r/s and w/s",
        names(&missing)
    );
    vec![finding.into()]
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};

    fn bed() -> TestBed {
        TestBed::bare().file("db", "data", EntityLoad::reads(50.0))
    }

    #[test]
    fn missing_columns_are_named() {
        let found = bed().without("num_of_reads").without("num_of_writes").found("no-operations");
        assert_eq!(found[0].priority, 50);
        let text = &found[0].finding;
        assert!(
            text.starts_with("num_of_reads, num_of_writes are missing for db.data: "),
            "{text}"
        );
        let found = bed().without("num_of_writes").found("no-operations");
        assert!(found[0].finding.starts_with("num_of_writes is missing for db.data: "));
        assert!(!bed().finds("no-operations"));
    }

    #[test]
    fn missing_operations_ask_for_no_second_sample() {
        assert!(!bed().without("num_of_reads").without("num_of_writes").finds("one-sample"));
    }
}
