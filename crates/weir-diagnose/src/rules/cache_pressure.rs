//! Memory that is too small for what is read.

use super::not_storage::{LOW_HITS, SHORT_LIFE_S, finding, pressed};
use super::rule::{Candidate, Rule, source};
use super::signs::entity_name;
use super::wait_times::storage_words;
use crate::case::Case;
use crate::verdict::Cause;
use weir_observe::metric as m;
use weir_report::diagnosis::{Confidence, Group};
use weir_report::number::{percent, rate};

pub(super) const RULE: Rule = Rule {
    id: 309,
    name: "cache-pressure",
    group: Group::NotTheStorage,
    priority: 20,
    source: source::WAITS,
    finds: "memory is too small for the working set, and reads wait for storage",
    find,
};

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    if pressed(case).is_none() {
        return Vec::new();
    }
    let (mut words, mut subject) = (Vec::new(), String::new());
    for gauge in &case.facts.others.gauged {
        let mean = gauge.mean();
        let says = match gauge.metric {
            name if name == m::PAGE_LIFE_EXPECTANCY_S.name && mean < SHORT_LIFE_S => {
                format!("page life expectancy is {} s", rate(mean))
            }
            name if name == m::BUFFER_HIT_SHARE.name && mean < LOW_HITS => {
                format!("the buffer hit rate is {}", percent(mean))
            }
            _ => continue,
        };
        words.push(says);
        subject = entity_name(case, gauge.entity);
    }
    let text = format!(
        "memory is too small for the working set: {}, and reads wait for storage",
        words.join(" and ")
    );
    let Some(mut finding) = finding(case, rule, Cause::CachePressure, &subject, &text) else {
        return Vec::new();
    };
    finding.confidence = Confidence::Medium;
    finding.evidence.extend(storage_words(case));
    for judged in case.named() {
        let total = &judged.facts.total;
        if let Some(reads) = total.reads.filter(|reads| *reads > 0.0) {
            let per_s = rate(reads / judged.facts.seconds().max(1e-9));
            finding.evidence.push(format!("{}: {per_s} reads/s", judged.name(case)));
        }
    }
    finding.evidence.truncate(6);
    "find the queries with the most reads (sys.dm_exec_query_stats by total_physical_reads) and add \
     indexes, or add memory (max server memory): fewer reads are cheaper than faster ones"
        .clone_into(&mut finding.action);
    vec![finding.into()]
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};
    use weir_observe::metric as m;

    fn bed(life_s: f64, ms: f64) -> TestBed {
        let bed = TestBed::bare().disk("data", EntityLoad::reads(300.0).ms(ms));
        bed.host_gauge(m::PAGE_LIFE_EXPECTANCY_S, life_s)
    }

    #[test]
    fn short_page_life_is_cache_pressure() {
        assert_eq!(bed(40.0, 30.0).found("cache-pressure").len(), 1);
        let hits =
            TestBed::bare().wait("PAGEIOLATCH_SH", 900.0).host_gauge(m::BUFFER_HIT_SHARE, 0.7);
        assert_eq!(hits.found("cache-pressure").len(), 1);
    }

    #[test]
    fn long_page_life_or_fast_reads_are_no_cache_pressure() {
        assert!(!bed(400.0, 30.0).finds("cache-pressure"));
        assert!(!bed(40.0, 2.0).finds("cache-pressure"));
        // Writes do not come from that.
        let writes =
            TestBed::bare().disk("data", EntityLoad::reads(100.0).and_writes(300.0).ms(30.0));
        assert!(!writes.host_gauge(m::PAGE_LIFE_EXPECTANCY_S, 40.0).finds("cache-pressure"));
        let hits =
            TestBed::bare().wait("PAGEIOLATCH_SH", 900.0).host_gauge(m::BUFFER_HIT_SHARE, 0.95);
        assert!(!hits.finds("cache-pressure"));
    }

    #[test]
    fn page_life_after_a_restart_is_ignored() {
        let bed = TestBed::bare().disk("data", EntityLoad::reads(300.0).ms(30.0));
        let grows = |second| weir_report::number::float(second);
        let bed = bed.disk_gauge_over("data", m::PAGE_LIFE_EXPECTANCY_S, grows);
        assert!(!bed.finds("cache-pressure"));
    }
}
