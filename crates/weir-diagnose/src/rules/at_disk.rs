//! A file or disk at its own limit, in operations or in bytes.

use super::rule::{Candidate, Rule, source};
use super::throttled::{finding, next_tier, throttled_by, with};
use crate::case::Case;
use crate::system::{Owner, SubjectId};
use crate::verdict::CapWait;
use weir_core::Cap as Kind;
use weir_report::diagnosis::Group;

/// In operations.
pub(super) const IN_OPERATIONS: Rule = Rule {
    id: 101,
    name: "disk-operations",
    group: Group::Throttling,
    priority: 10,
    source: source::INSTANCE,
    finds: "a file or disk is throttled by its IOPS limit",
    find: |case, rule| find(case, rule, Kind::DiskIops, Kind::DiskBurstIops),
};

/// In bytes.
pub(super) const IN_BYTES: Rule = Rule {
    id: 102,
    name: "disk-bytes",
    group: Group::Throttling,
    priority: 10,
    source: source::INSTANCE,
    finds: "a file or disk is throttled by its throughput limit",
    find: |case, rule| find(case, rule, Kind::DiskBytes, Kind::DiskBurstBytes),
};

fn find(case: &Case<'_>, rule: &Rule, lasting: Kind, peak: Kind) -> Vec<Candidate> {
    let is = |case: &Case<'_>, wait: &CapWait| {
        let alone = match case.system.caps[wait.cap].owner {
            Owner::Disk(disk) => case.system.disks[disk].stripe.is_none(),
            Owner::Host(_) => false,
        };
        alone && (wait.kind == lasting || wait.kind == peak)
    };
    let needs_bytes = lasting == Kind::DiskBytes;
    throttled_by(case, is)
        .into_iter()
        .filter_map(|subjects| {
            let (judged, wait) = subjects;
            let mut finding = finding(case, rule, judged.name(case), &[subjects])?;
            finding.evidence.extend(files_on(case, judged.subject.id));
            Some(with(
                finding,
                &[subjects],
                next_tier(case, judged.subject.id, needs_bytes, wait.kind.is_burst()),
            ))
        })
        .collect()
}

/// Returns the share of each file in the operations of a disk.
fn files_on(case: &Case<'_>, id: SubjectId) -> Option<String> {
    let SubjectId::Disk(disk) = id else { return None };
    let files = case.system.files_on(crate::system::On::Disk(disk));
    let mut operations: Vec<(String, f64)> = files
        .filter_map(|(file, own)| {
            let judged = case.subject_of_file(file)?;
            Some((own.qualified(), judged.facts.total.operations?))
        })
        .collect();
    let all: f64 = operations.iter().map(|(_, operations)| operations).sum();
    operations.sort_by(|one, other| other.1.total_cmp(&one.1));
    let part = |(name, own): &(String, f64)| {
        format!("{name} {}", weir_report::number::percent(own / all.max(1.0)))
    };
    let parts: Vec<String> = operations.iter().take(4).map(part).collect();
    (parts.len() > 1).then(|| format!("operations by file: {}", parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};
    use weir_report::diagnosis::Confidence;

    const P10: &str = "edition = \"azure-premium-2015\"\nhost = { size = \"DS4\" }\n[[volume]]\n\
                       name = \"data\"\ntier = \"P10\"\n";

    #[test]
    fn waits_at_the_limit_are_throttling() {
        let found = TestBed::layout(P10)
            .disk("data", EntityLoad::reads(498.0).ms(40.0))
            .found("disk-operations");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!((finding.subject.as_str(), finding.cap.as_deref()), ("data", Some("disk_iops")));
        assert_eq!(finding.confidence, Confidence::High);
        assert!(finding.action.contains("P20"), "{}", finding.action);
        assert!(finding.ruled_out.iter().any(|out| out.starts_with("disk_bytes")));
        // 200 of 256 KiB are 50 of 100 MiB/s in bytes; 399 of these are all of them.
        let bytes =
            TestBed::layout(P10).disk("data", EntityLoad::writes(399.0).kib(256.0).ms(60.0));
        assert_eq!(bytes.found("disk-bytes").len(), 1);
    }

    #[test]
    fn use_without_waits_is_no_throttling() {
        let near = || TestBed::layout(P10).disk("data", EntityLoad::reads(490.0).ms(2.0));
        assert!(!near().finds("disk-operations") && !near().finds("disk-bytes"));
        // Slow, and far from any limit: no cap can have made them wait that long.
        let slow = TestBed::layout(P10).disk("data", EntityLoad::reads(5.0).ms(80.0));
        assert!(!slow.finds("disk-operations"));
    }

    #[test]
    fn a_slow_medium_is_no_throttling() {
        // 3.3 ms where the edition says 2.07, one by one at a quarter of the limit.
        let one_by_one = |does: EntityLoad| TestBed::layout(P10).disk("data", does);
        let slower = EntityLoad::reads(125.0).ms(3.3);
        assert!(!one_by_one(slower).finds("disk-operations"));
        assert!(!one_by_one(slower.busy_ms(410.0)).finds("disk-operations"));
        // The same mean latency in bursts of five: most of it is wait time for the others.
        let fives = EntityLoad::reads(125.0).ms(6.1).busy_ms(250.0);
        let found = one_by_one(fives).found("disk-operations");
        assert_eq!(found.len(), 1);
        // Reads with an unloaded latency of 1 ms that take 2.8 ms at the limit wait, although the
        // edition's medium takes 2.07 ms.
        let faster = |second| match second % 4 {
            0 => EntityLoad::reads(50.0).ms(1.0).busy_ms(50.0),
            _ => EntityLoad::reads(499.0).ms(2.8).busy_ms(1_000.0),
        };
        let found = TestBed::layout(P10).disk_over("data", faster).found("disk-operations");
        assert!(
            found[0]
                .evidence
                .iter()
                .any(|line| line.contains("0.4 times that of the medium in the edition"))
        );
    }

    #[test]
    fn short_bursts_show_in_the_queue() {
        let text = "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 8 \
                    }\n[[file]]\nname = \"data\"\nrole = \"data\"\nsize = \"32 GiB\"\n";
        let bursts = |queued| {
            let does = EntityLoad::writes(150.0).ms(queued + 4.0).queued_ms(queued);
            TestBed::layout(text).file("db", "data", does)
        };
        let found = bursts(90.0).found("disk-operations");
        assert_eq!(found.len(), 1);
        assert!(
            found[0]
                .evidence
                .iter()
                .any(|line| line.contains("shorter than the sampling interval"))
        );
        assert!(!bursts(0.2).finds("disk-operations"));
    }
}
