//! Processors that are busy.

use super::not_storage::{busy, finding};
use super::rule::{Candidate, Rule, source};
use super::signs::entity_name;
use super::wait_times::storage_words;
use crate::case::Case;
use crate::verdict::Cause;
use weir_report::diagnosis::{Confidence, Group};
use weir_report::number::{percent, time};

pub(super) const RULE: Rule = Rule {
    id: 301,
    name: "cpu",
    group: Group::NotTheStorage,
    priority: 20,
    source: source::INSTANCE,
    finds: "processors are busy, and no limit throttles requests",
    find,
};

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let Some(host) = busy(case) else { return Vec::new() };
    let name = entity_name(case, host.entity);
    let (mean, near) = (percent(host.mean()), percent(host.near_limit_share()));
    let text = format!(
        "the CPU of {name} is at {mean} on average and at 90 % or more for {near} of the time: faster \
         storage would not help"
    );
    let Some(mut finding) = finding(case, rule, Cause::Cpu, &name, &text) else {
        return Vec::new();
    };
    finding.confidence = Confidence::High;
    let observed = time(host.seconds * 1e9);
    finding
        .evidence
        .push(format!("CPU: {mean} on average over {observed}, at 90 % or more for {near} of it"));
    finding.evidence.extend(storage_words(case));
    "find the queries or processes that use it (sys.dm_exec_query_stats by total_worker_time, or top) \
     and tune them, or add processors; larger files or disks do not help"
        .clone_into(&mut finding.action);
    vec![finding.into()]
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};
    use weir_report::diagnosis::Group;

    #[test]
    fn busy_and_no_cap() {
        let found = TestBed::bare().disk("data", EntityLoad::reads(100.0)).cpu(0.92).found("cpu");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!((finding.group, finding.priority), (Group::NotTheStorage, 20));
        assert!(!TestBed::bare().disk("data", EntityLoad::reads(100.0)).cpu(0.78).finds("cpu"));
    }

    #[test]
    fn a_throttling_cap_is_reported_before_the_cpu() {
        let text = "edition = \"azure-premium-2015\"\nhost = { size = \"DS4\" }\n[[volume]]\n\
                    name = \"data\"\ntier = \"P10\"\n";
        let bed = TestBed::layout(text).disk("data", EntityLoad::reads(498.0).ms(40.0)).cpu(0.95);
        let found = bed.found("cpu");
        assert_eq!(found[0].priority, 110);
        assert!(found[0].finding.starts_with("also, "), "{}", found[0].finding);
    }
}
