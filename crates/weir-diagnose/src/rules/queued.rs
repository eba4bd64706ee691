//! Queues of a governor where no limit is known: the total latency against that of the storage.

use super::held::by;
use super::{Found, Rule, source};
use crate::case::{Case, Seen, moments, size};
use crate::system::What;
use crate::verdict::THROTTLED;
use weir_layout::Role;
use weir_report::diagnosis::{Confidence, Group};
use weir_report::number::{percent, rate, time};

pub(super) const RULE: Rule = Rule {
    id: 109,
    name: "queued",
    group: Group::Throttling,
    priority: 10,
    source: source::PRESIZE,
    finds: "requests wait in queues of a governor, and it is not known for which limit",
    find,
};

/// Queues of less, on average, hold nobody back.
const LEAST_NS: f64 = 1e6;

/// What fewer operations waited is chance.
const FEW: f64 = 30.0;

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Found> {
    let held = by(case, |_, _| true);
    let is_held = |seen: &Seen<'_>| held.iter().any(|(other, _)| other.index == seen.index);
    let rest = case.named().filter(|seen| seen.facts.says_queued && !is_held(seen));
    let mut found: Vec<(f64, Found)> =
        rest.filter_map(|seen| of(case, rule, &seen)).collect();
    found.sort_by(|one, other| other.0.total_cmp(&one.0));
    found.into_iter().map(|(_, found)| found).collect()
}

fn of(case: &Case<'_>, rule: &Rule, seen: &Seen<'_>) -> Option<(f64, Found)> {
    let total = &seen.facts.total;
    let both = |read: Option<f64>, write: Option<f64>| match (read, write) {
        (None, None) => None,
        (read, write) => Some(read.unwrap_or(0.0) + write.unwrap_or(0.0)),
    };
    let queued = both(total.queued_read_ns, total.queued_write_ns)?;
    let (all, operations) = (total.ns?, total.operations?);
    let share = queued / all.max(1.0);
    if operations < FEW || share < THROTTLED || queued / operations < LEAST_NS {
        return None;
    }
    let name = seen.name(case);
    let (latency, io) = (time(all / operations), time((all - queued).max(0.0) / operations));
    let text = format!(
        "{name} is held by a governor: of {latency} latency {} is waiting in its queue, and {io} \
         is the storage",
        percent(share)
    );
    let mut finding = rule.finding(name.clone(), text);
    finding.confidence = Confidence::High;
    let each = |what: &str, ns: Option<f64>, queued: Option<f64>, count: Option<f64>| {
        let (ns, queued, count) = (ns?, queued?, count.filter(|count| *count > 0.0)?);
        Some(format!(
            "{what}: {} latency, {} of it I/O (io_stall without io_stall_queued)",
            time(ns / count),
            time((ns - queued).max(0.0) / count)
        ))
    };
    let reads = each("reads", total.read_ns, total.queued_read_ns, total.reads);
    let writes = each("writes", total.write_ns, total.queued_write_ns, total.writes);
    finding.evidence.extend(reads.into_iter().chain(writes));
    let seconds = seen.facts.seconds.max(1e-9);
    let bytes = total.bytes.map_or(String::new(), |bytes| {
        format!(" and {} MiB/s", rate(bytes / seconds / f64::from(1 << 20)))
    });
    finding.evidence.push(format!(
        "it does {} IOPS{bytes} on average: bursts shorter than a sample reach a limit that the \
         averages do not",
        rate(operations / seconds)
    ));
    finding.moments = moments(case, seen, 3);
    finding.action = action(case, seen, &name);
    Some((queued, finding.into()))
}

fn action(case: &Case<'_>, seen: &Seen<'_>, name: &str) -> String {
    let What::File(file) = seen.subject.what else {
        return format!("give {name} more: --layout or --edition says what its limit is");
    };
    let file = &case.system.files[file];
    let now = file.size.map_or(String::new(), |bytes| format!(", which has {}", size(bytes)));
    let database = file.database.as_deref().unwrap_or("database");
    let log = match file.role {
        Some(Role::Log) => "; a log can be held by the log rate of the instance, too, which no \
                            size changes",
        _ => "",
    };
    format!(
        "grow {name}{now} into the next tier: ALTER DATABASE [{database}] MODIFY FILE (NAME = \
         N'{}', SIZE = ..); --edition azure-mi-2018, or --layout, says which size that is{log}",
        file.name
    )
}

#[cfg(test)]
mod tests {
    use crate::bed::{Bed, Does, found_in_sample};

    fn file(queued: f64) -> Bed {
        Bed::bare().file("db", "data", Does::writes(50.0).ms(queued + 4.0).queued_ms(queued))
    }

    #[test]
    fn a_queue_and_no_limit_known() {
        let found = file(96.0).found("queued");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!(finding.subject, "db.data");
        assert!(finding.finding.contains("96.0 %"), "{}", finding.finding);
        assert!(finding.evidence[0].contains("4.00 ms of it I/O"), "{:?}", finding.evidence);
    }

    #[test]
    fn slow_without_a_queue_is_not_governed() {
        assert!(!Bed::bare().file("db", "data", Does::writes(50.0).ms(96.0).queued_ms(0.2)).finds("queued"));
        // A tenth of 4 ms is nothing.
        assert!(!file(0.6).finds("queued"));
    }

    #[test]
    fn a_limit_that_is_known_says_it() {
        let text = "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 8 \
                    }\n[[file]]\nname = \"data\"\nrole = \"data\"\nsize = \"32 GiB\"\n";
        let does = Does::writes(150.0).ms(94.0).queued_ms(90.0);
        let bed = || Bed::layout(text).file("db", "data", does);
        assert!(bed().finds("disk-operations") && !bed().finds("queued"));
    }

    #[test]
    fn files_of_an_instance_that_nobody_says_the_size_of() {
        let sample = "sql_qpi/mi_gp_cell08_2020-01-22T125115_file_stats.csv";
        let Some(found) = found_in_sample(sample, None, "queued") else { return };
        // As the notebook that the sample is from has it: 148 to 184 ms, more than 95 % queued.
        let who: Vec<&str> = found.iter().map(|finding| finding.subject.as_str()).collect();
        assert_eq!(who.len(), 3, "{who:?}");
        for name in ["DB2.data_0", "DB3.data_0", "SSISDB.data_0"] {
            assert!(who.contains(&name), "{who:?}");
        }
    }
}
