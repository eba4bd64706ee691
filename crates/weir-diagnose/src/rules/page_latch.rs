//! Pages in memory of other databases than tempdb that many want at a time.

use super::not_storage::finding;
use super::rule::{Candidate, Rule, source};
use super::tempdb_files::Tempdb;
use super::wait_times::{is_page_latch, longest, of_waits};
use super::waits::resource_waits;
use crate::case::Case;
use crate::verdict::Cause;
use weir_observe::EntityKind;
use weir_report::diagnosis::{Confidence, Group};

pub(super) const RULE: Rule = Rule {
    id: 306,
    name: "page-latch",
    group: Group::NotTheStorage,
    priority: 20,
    source: source::WAITS,
    finds: "most wait time is for hot pages in memory, not for storage",
    find,
};

/// The database of the pages that sessions wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageDatabase {
    /// Known to be tempdb.
    Tempdb,
    /// Probably tempdb's.
    ProbablyTempdb,
    /// Known to be another database, or no sign of tempdb.
    Other,
}

/// Returns the database of the pages, if it can be determined.
pub(super) fn page_database(case: &Case<'_>) -> PageDatabase {
    let (mut tempdb, mut said, mut all, mut allocation) = (0.0, 0.0, 0.0, 0.0);
    for wait in resource_waits(case).into_iter().filter(|wait| is_page_latch(wait)) {
        all += wait.time_ms;
        if wait.name.eq_ignore_ascii_case("PAGELATCH_UP") {
            allocation += wait.time_ms;
        }
        let parent = wait.parent.and_then(|parent| case.contents.entity(parent));
        if let Some(parent) = parent.filter(|parent| parent.kind == EntityKind::Database) {
            said += wait.time_ms;
            if parent.name.eq_ignore_ascii_case("tempdb") {
                tempdb += wait.time_ms;
            }
        }
    }
    let files = Tempdb::observed(case);
    match () {
        () if said > 0.5 * all && tempdb > 0.5 * said => PageDatabase::Tempdb,
        () if said > 0.5 * all => PageDatabase::Other,
        // Tempdb is misconfigured, or its files are unknown and the waits are for allocation pages.
        () if files.fault().is_some() => PageDatabase::ProbablyTempdb,
        () if files.files == 0 && allocation > 0.5 * all => PageDatabase::ProbablyTempdb,
        () => PageDatabase::Other,
    }
}

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Candidate> {
    let Some(waited) = of_waits(case, is_page_latch) else { return Vec::new() };
    if page_database(case) != PageDatabase::Other {
        return Vec::new();
    }
    let text = format!("sessions wait for latches of pages in memory: {}", waited.words());
    let Some(mut finding) = finding(case, rule, Cause::PageLatch, "pages", &text) else {
        return Vec::new();
    };
    finding.evidence.push(longest(case, is_page_latch));
    finding.confidence = Confidence::Medium;
    finding.ruled_out.push(match Tempdb::observed(case).files {
        0 => "tempdb: its files are not observed, and most waits are not for allocation pages"
            .to_owned(),
        files => format!("tempdb: its {files} data files are well configured"),
    });
    "find the page (wait_resource in sys.dm_exec_requests, then sys.dm_db_page_info): usually the \
     last page of an index that grows at its end. OPTIMIZE_FOR_SEQUENTIAL_KEY = ON, a key that \
     does not grow, or hash partitions help; storage does not"
        .clone_into(&mut finding.action);
    vec![finding.into()]
}

#[cfg(test)]
mod tests {
    use crate::bed::TestBed;

    #[test]
    fn hot_pages() {
        let bed = |ms| TestBed::bare().wait("PAGELATCH_EX", ms).wait("WRITELOG", 1000.0);
        assert_eq!(bed(1000.0).found("page-latch").len(), 1);
        assert!(!bed(500.0).finds("page-latch"));
        // On their way from storage.
        assert!(!TestBed::bare().wait("PAGEIOLATCH_EX", 2000.0).finds("page-latch"));
        assert!(!TestBed::bare().wait("PAGELATCH_UP", 2000.0).finds("page-latch"));
        let said = TestBed::bare().wait_of("sales", "PAGELATCH_UP", 2000.0);
        assert_eq!(said.found("page-latch").len(), 1);
    }
}
