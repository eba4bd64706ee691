//! Queues of a governor where no limit is known: the total latency against that of the storage.

use super::rule::{Candidate, Rule, source};
use super::signs::{self, FEW, RAISED_NS};
use super::throttled::throttled_by;
use crate::case::{Case, JudgedSubject, moments, size};
use crate::system::SubjectId;
use crate::verdict::{LEAST_LOST, THROTTLED};
use std::collections::{BTreeMap, BTreeSet};
use weir_layout::Role;
use weir_report::diagnosis::{Confidence, Group};
use weir_report::number::{percent, rate, time};

pub(super) const RULE: Rule = Rule {
    id: 109,
    name: "queued",
    group: Group::Throttling,
    priority: 10,
    source: source::PRESIZE,
    finds: "requests wait in the queue of a governor, and its limit is unknown",
    find,
};

/// A queue of less is not felt beside the 2 to 10 ms that storage itself takes (article 000).
const LEAST_NS: f64 = 5e6;

/// A subject with its queue time.
struct Queued<'a> {
    judged: JudgedSubject<'a>,
    queued_ns: f64,
    ns: f64,
    operations: f64,
}

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let groups = groups(case).into_iter();
    groups.filter_map(|(database, group)| candidate(case, rule, &database, &group)).collect()
}

/// Returns the files and disks that wait in a queue, each of a group by its name.
pub(super) fn members(case: &Case<'_>) -> BTreeSet<String> {
    groups(case).iter().flat_map(|(_, group)| group).map(|own| own.judged.name(case)).collect()
}

/// Returns the subjects that wait in a queue, by database and role, the longest queue times first.
fn groups<'a>(case: &Case<'a>) -> Vec<(String, Vec<Queued<'a>>)> {
    let wait = throttled_by(case, |_, _| true);
    let wait: BTreeSet<usize> = wait.iter().map(|(other, _)| other.index).collect();
    let is_throttled = |judged: &JudgedSubject<'_>| wait.contains(&judged.index);
    let rest = case.named().filter(|judged| judged.facts.has_queue_times && !is_throttled(judged));
    // The files of a database that are alike, as those of tempdb are, are one finding.
    let mut groups: BTreeMap<(String, &str), Vec<Queued<'_>>> = BTreeMap::new();
    for own in rest.filter_map(queued) {
        let file = match own.judged.subject.id {
            SubjectId::File(file) => Some(&case.system.files[file]),
            _ => None,
        };
        let role = file.and_then(|file| file.role).map_or("", Role::name);
        let database = file.and_then(|file| file.database.clone());
        let group = database.unwrap_or_else(|| own.judged.name(case));
        groups.entry((group, role)).or_default().push(own);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    let sum = |group: &[Queued<'_>]| group.iter().map(|own| own.queued_ns).sum::<f64>();
    groups.sort_by(|(_, one), (_, other)| sum(other).total_cmp(&sum(one)));
    let sorted = groups.into_iter().map(|((database, _), mut group)| {
        group.sort_by(|one, other| other.queued_ns.total_cmp(&one.queued_ns));
        (database, group)
    });
    sorted.collect()
}

fn queued(judged: JudgedSubject<'_>) -> Option<Queued<'_>> {
    let total = &judged.facts.total;
    let queued_ns = match (total.queued_read_ns, total.queued_write_ns) {
        (None, None) => return None,
        (read, write) => read.unwrap_or(0.0) + write.unwrap_or(0.0),
    };
    let (ns, operations) = (total.ns?, total.operations?);
    let is_enough = operations >= FEW
        && ns / operations >= RAISED_NS
        && queued_ns >= THROTTLED * ns
        && queued_ns / operations >= LEAST_NS
        && queued_ns >= LEAST_LOST * judged.facts.seconds() * 1e9;
    is_enough.then_some(Queued { judged, queued_ns, ns, operations })
}

fn candidate(
    case: &Case<'_>,
    rule: &Rule,
    database: &str,
    group: &[Queued<'_>],
) -> Option<Candidate> {
    let first = group.first()?;
    let names: Vec<String> = group.iter().map(|own| own.judged.name(case)).collect();
    let (subject, subjects) = match names.as_slice() {
        [one] => (one.clone(), one.clone()),
        several => (database.to_owned(), format!("{database} with {} files", several.len())),
    };
    let sum = |of: fn(&Queued<'_>) -> f64| group.iter().map(of).sum::<f64>();
    let (queued, all) = (sum(|own| own.queued_ns), sum(|own| own.ns));
    let operations = sum(|own| own.operations);
    let (latency, io) = (time(all / operations), time((all - queued).max(0.0) / operations));
    let text = format!(
        "{subjects} is throttled by a governor: of {latency} latency, {} is queue time and {io} is the \
         storage",
        percent(queued / all.max(1.0))
    );
    let mut finding = rule.finding(subject, text);
    finding.confidence = Confidence::High;
    if names.len() > 1 {
        finding.evidence.push(format!("throttled: {}", signs::names(&names)));
    }
    let total = &first.judged.facts.total;
    let each = |what: &str, ns: Option<f64>, queued: Option<f64>, count: Option<f64>| {
        let (ns, queued, count) = (ns?, queued?, count.filter(|count| *count > 0.0)?);
        Some(format!(
            "{what} of {}: {} latency, {} of it I/O (io_stall without io_stall_queued)",
            names[0],
            time(ns / count),
            time((ns - queued).max(0.0) / count)
        ))
    };
    let reads = each("reads", total.read_ns, total.queued_read_ns, total.reads);
    let writes = each("writes", total.write_ns, total.queued_write_ns, total.writes);
    finding.evidence.extend(reads.into_iter().chain(writes));
    let seconds = first.judged.facts.seconds().max(1e-9);
    finding.evidence.push(format!(
        "{} IOPS and {} MiB/s on average: bursts shorter than the sampling interval reach a limit \
         that the averages do not",
        rate(total.operations.unwrap_or(0.0) / seconds),
        rate(total.bytes.unwrap_or(0.0) / seconds / f64::from(1 << 20))
    ));
    finding.moments = moments(case, &first.judged, 3);
    finding.action = action(case, &first.judged, &names[0]);
    Some(Candidate { wait_ns: queued, ..finding.into() })
}

fn action(case: &Case<'_>, judged: &JudgedSubject<'_>, name: &str) -> String {
    let SubjectId::File(file) = judged.subject.id else {
        return format!(
            "raise the limit of {name}; with --layout or --edition, the finding names the limit"
        );
    };
    let file = &case.system.files[file];
    if file.is(Role::Tempdb) {
        return "use tempdb less: it is on the local SSD, whose limit depends on the vCores and not on \
                the size of its files"
            .to_owned();
    }
    let now = file.size.map_or(String::new(), |bytes| format!(", which has {},", size(bytes)));
    let database = file.database.as_deref().unwrap_or("database");
    let log = match file.role {
        Some(Role::Log) => {
            "; the log rate limit of the instance may also throttle a log, whatever its size"
        }
        _ => "",
    };
    format!(
        "grow {name}{now} into the next tier: ALTER DATABASE [{database}] MODIFY FILE (NAME = N'{}', \
         SIZE = ..); with --edition azure-mi-2018 or --layout, the finding names the size{log}",
        file.name
    )
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed, found_in_sample};
    use weir_report::diagnosis::Group;

    fn file(queued: f64) -> TestBed {
        TestBed::bare().file(
            "db",
            "data",
            EntityLoad::writes(50.0).ms(queued + 4.0).queued_ms(queued),
        )
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
        assert!(
            !TestBed::bare()
                .file("db", "data", EntityLoad::writes(50.0).ms(96.0).queued_ms(0.2))
                .finds("queued")
        );
        // The total is the latency of storage without throttling.
        assert!(!file(4.0).finds("queued"));
    }

    #[test]
    fn a_queue_of_zero_proves_nothing_on_a_machine() {
        let does = || EntityLoad::reads(300.0).ms(80.0).queued_ms(0.0);
        let bare = || TestBed::bare().seconds(8).file("db", "data", does());
        assert!(!bare().finds("slow-medium"));
        assert_eq!(bare().found("no-limits")[0].priority, 50);
        // A managed instance counts its queues, and so does a server on which another file has one.
        let instance = TestBed::edition("azure-mi-2018").seconds(8).file("db", "data", does());
        assert!(instance.finds("slow-medium"));
        let other = EntityLoad::writes(50.0).ms(96.0).queued_ms(92.0);
        let both = || bare().file("db", "other", other);
        assert_eq!(both().found("slow-medium")[0].subject, "db.data");
        assert_eq!(both().found("queued")[0].subject, "db.other");
        // Limits of a disk hold requests that no governor counts.
        let text = "edition = \"azure-premium-2015\"\nhost = { size = \"DS4\" }\n[[volume]]\nname = \
                    \"disk\"\ntier = \"P10\"\n[[volume]]\nname = \"second\"\ntier = \"P30\"\n[[file]]\nname \
                    = \"data\"\nsize = \"50 GiB\"\non = \"disk\"\nrole = \"data\"\n[[file]]\nname = \
                    \"other\"\nsize = \"50 GiB\"\non = \"second\"\nrole = \"data\"\n";
        let held = EntityLoad::reads(500.0).ms(80.0).queued_ms(0.0);
        let placed = TestBed::layout(text).file("db", "data", held).file("db", "other", other);
        assert!(placed.finds("disk-operations"));
    }

    #[test]
    fn files_that_are_alike_are_one_finding() {
        let does = EntityLoad::writes(50.0).ms(44.0).queued_ms(40.0);
        let bed = TestBed::bare().file("tempdb", "tempdev", does).file("tempdb", "temp2", does);
        let found = bed.file("sales", "sales_data", does).found("queued");
        let who: Vec<&str> = found.iter().map(|finding| finding.subject.as_str()).collect();
        // Two files lose more time than one that does the same.
        assert_eq!(who, ["tempdb", "sales.sales_data"]);
    }

    #[test]
    fn a_known_limit_takes_precedence() {
        let text = "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 8 \
                    }\n[[file]]\nname = \"data\"\nrole = \"data\"\nsize = \"32 GiB\"\n";
        let does = EntityLoad::writes(150.0).ms(94.0).queued_ms(90.0);
        let bed = || TestBed::layout(text).file("db", "data", does);
        assert!(bed().finds("disk-operations") && !bed().finds("queued"));
    }

    #[test]
    fn files_of_an_instance_with_unknown_sizes() {
        let sample = "sql_qpi/mi_gp_cell08_2020-01-22T125115_file_stats.csv";
        let Some(found) = found_in_sample(sample, None, "queued") else { return };
        // As the notebook that the sample is from has it: 148 to 184 ms, more than 95 % queued.
        let who: Vec<&str> = found.iter().map(|finding| finding.subject.as_str()).collect();
        assert_eq!(who.len(), 3, "{who:?}");
        for name in ["DB2.data_0", "DB3.data_0", "SSISDB.data_0"] {
            assert!(who.contains(&name), "{who:?}");
        }
    }

    /// Returns the throttled subjects of a sample, the most urgent first.
    fn headlines(sample: &str) -> Option<Vec<String>> {
        let found = found_in_sample(sample, Some("azure-mi-2018"), "")?;
        let throttling = found.into_iter().filter(|finding| finding.group == Group::Throttling);
        Some(throttling.map(|finding| finding.subject).collect())
    }

    #[test]
    fn the_files_that_lose_most_time_come_first() {
        // 12 files of tempdb with 8 IOPS each and 80 % of their writes' latency queued, beside a file
        // that wrote 204 times in 109 minutes.
        let sample = "sql_qpi/mi_gp_last_file_stats.dataresource.json";
        let Some(subjects) = headlines(sample) else { return };
        assert_eq!(subjects, ["tempdb"]);
    }

    #[test]
    fn a_few_operations_an_hour_are_no_throttling() {
        // DB7's file did 651 operations in 141 minutes, and lost 2 s.
        let sample = "sql_qpi/mi_gp_cell08_2020-01-22T125115_file_stats.csv";
        let Some(subjects) = headlines(sample) else { return };
        assert_eq!(subjects, ["DB2.data_0", "SSISDB.data_0", "DB3.data_0"]);
    }
}
