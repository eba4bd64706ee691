//! Allocation pages of tempdb that many want at a time.

use super::not_storage::finding;
use super::page_latch::{PageDatabase, page_database};
use super::rule::{Candidate, Rule, source};
use super::tempdb_files::Tempdb;
use super::wait_times::{is_page_latch, longest, of_waits};
use crate::case::{Case, size};
use crate::verdict::Cause;
use weir_report::diagnosis::{Confidence, Group};

pub(super) const RULE: Rule = Rule {
    id: 305,
    name: "tempdb-contention",
    group: Group::NotTheStorage,
    priority: 20,
    source: source::SCALE_OUT,
    finds: "sessions wait for allocation pages of tempdb, which has too few data files",
    find,
};

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let (Some(waited), page_database) = (of_waits(case, is_page_latch), page_database(case)) else {
        return Vec::new();
    };
    if page_database == PageDatabase::Other {
        return Vec::new();
    }
    let tempdb = Tempdb::observed(case);
    let fault = tempdb.fault();
    let why = fault.as_deref().map_or(String::new(), |fault| format!(", and {fault}"));
    let text = format!("sessions wait for pages of tempdb in memory{why}: {}", waited.words());
    let Some(mut finding) = finding(case, rule, Cause::PageLatch, "tempdb", &text) else {
        return Vec::new();
    };
    finding.confidence = match (page_database, &fault) {
        (PageDatabase::Tempdb, _) => Confidence::High,
        (_, Some(_)) => Confidence::Medium,
        _ => Confidence::Low,
    };
    if page_database != PageDatabase::Tempdb {
        finding.evidence.push(
            "the database of the pages is unknown: PAGELATCH_UP is for allocation pages, which are \
             mostly tempdb's; in sys.dm_exec_requests, a wait_resource of 2:.. is tempdb"
                .to_owned(),
        );
    }
    finding.evidence.push(longest(case, is_page_latch));
    finding.action = action(&tempdb);
    vec![finding.into()]
}

fn action(tempdb: &Tempdb) -> String {
    let wanted = tempdb.wanted;
    let each = match tempdb.sizes {
        Some((_, most)) => format!("of {} each", size(most)),
        None => "of the same size and growth".to_owned(),
    };
    if tempdb.processors.is_none() && tempdb.files <= wanted {
        return "give tempdb as many data files of equal size as there are processors, up to 8"
            .to_owned();
    }
    if tempdb.files < wanted {
        return format!(
            "give tempdb {wanted} data files {each}: ALTER DATABASE tempdb ADD FILE (NAME = \
             N'temp{}', FILENAME = N'..', SIZE = ..), {} more, and restart",
            tempdb.files + 1,
            wanted - tempdb.files
        );
    }
    format!(
        "give tempdb data files {each}: ALTER DATABASE tempdb MODIFY FILE (NAME = .., SIZE = ..); if \
         they are equal, use fewer and smaller temporary tables"
    )
}

#[cfg(test)]
mod tests {
    use crate::bed::{EntityLoad, TestBed};
    use weir_report::diagnosis::Confidence;

    fn with_files(files: u64, gib: fn(u64) -> u64, ms: f64) -> TestBed {
        let mut bed = TestBed::bare().wait("PAGELATCH_UP", ms).wait("WRITELOG", 3000.0);
        for file in 0..files {
            let name = format!("tempdev{file}");
            bed =
                bed.file("tempdb", &name, EntityLoad::writes(10.0)).with_role("tempdb", gib(file));
        }
        bed.file("tempdb", "templog", EntityLoad::writes(10.0)).with_role("tempdb", 1)
    }

    #[test]
    fn too_few_or_unequal_tempdb_files() {
        let found = with_files(1, |_| 8, 900.0).found("tempdb-contention");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!(finding.confidence, Confidence::Medium);
        assert!(finding.finding.contains("1 data file"), "{}", finding.finding);
        assert!(with_files(4, |file| 8 << (file % 2), 900.0).finds("tempdb-contention"));
        let of_tempdb = TestBed::bare().wait_of("tempdb", "PAGELATCH_EX", 2000.0);
        assert_eq!(of_tempdb.found("tempdb-contention")[0].confidence, Confidence::High);
    }

    #[test]
    fn well_configured_tempdb_or_few_waits_are_silent() {
        // A tenth of the waiting.
        assert!(!with_files(1, |_| 8, 330.0).finds("tempdb-contention"));
        // A quarter, and nothing to say against its files.
        assert!(!with_files(8, |_| 8, 1000.0).finds("tempdb-contention"));
        assert!(
            !TestBed::bare().wait_of("sales", "PAGELATCH_EX", 2000.0).finds("tempdb-contention")
        );
    }
}
