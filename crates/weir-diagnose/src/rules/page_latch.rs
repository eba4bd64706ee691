//! Pages in memory of other databases than tempdb that many want at a time.

use super::not_storage::{Cause, Tempdb, finding, is_page_latch, longest, of_waits};
use super::waits::resource_waits;
use super::{Found, Rule, source};
use crate::case::Case;
use weir_observe::EntityKind;
use weir_report::diagnosis::{Confidence, Group};

pub(super) const RULE: Rule = Rule {
    id: 306,
    name: "page-latch",
    group: Group::NotTheStorage,
    priority: 20,
    source: source::WAITS,
    finds: "most of the waiting is for hot pages in memory, not for storage",
    find,
};

/// Whose pages those are that are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// Tempdb's: it is said.
    Tempdb,
    /// Probably tempdb's.
    Unsaid,
    /// Not tempdb's, as it is said, or as nothing speaks for it.
    Others,
}

/// Whose pages they are, as far as it can be told.
pub(super) fn whose(case: &Case<'_>) -> Whose {
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
    let files = Tempdb::of(case);
    match () {
        () if said > 0.5 * all && tempdb > 0.5 * said => Whose::Tempdb,
        () if said > 0.5 * all => Whose::Others,
        // Its files are such that it has them, or nobody says its files and they are of the kind.
        () if files.fault().is_some() => Whose::Unsaid,
        () if files.files == 0 && allocation > 0.5 * all => Whose::Unsaid,
        () => Whose::Others,
    }
}

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Found> {
    let Some(waited) = of_waits(case, is_page_latch) else { return Vec::new() };
    if whose(case) != Whose::Others {
        return Vec::new();
    }
    let text = format!("sessions wait for pages in memory that others hold: {}", waited.words());
    let Some(mut finding) = finding(case, rule, Cause::PageLatch, "pages", &text) else {
        return Vec::new();
    };
    finding.evidence.push(longest(case, is_page_latch));
    finding.confidence = Confidence::Medium;
    finding.ruled_out.push(match Tempdb::of(case).files {
        0 => "tempdb: its files are not observed, and most waits are not for allocation pages"
            .to_owned(),
        files => format!("tempdb: it has {files} data files, and nothing is wrong with them"),
    });
    "find the page (wait_resource in sys.dm_exec_requests, then sys.dm_db_page_info): mostly the \
     last one of an index that grows at its end. OPTIMIZE_FOR_SEQUENTIAL_KEY = ON, a key that \
     does not grow, or partitions by hash help; storage does not"
        .clone_into(&mut finding.action);
    vec![finding.into()]
}

#[cfg(test)]
mod tests {
    use crate::bed::Bed;

    #[test]
    fn hot_pages() {
        let bed = |ms| Bed::bare().wait("PAGELATCH_EX", ms).wait("WRITELOG", 1000.0);
        assert_eq!(bed(1000.0).found("page-latch").len(), 1);
        assert!(!bed(500.0).finds("page-latch"));
        // On their way from storage.
        assert!(!Bed::bare().wait("PAGEIOLATCH_EX", 2000.0).finds("page-latch"));
        assert!(!Bed::bare().wait("PAGELATCH_UP", 2000.0).finds("page-latch"));
        let said = Bed::bare().wait_of("sales", "PAGELATCH_UP", 2000.0);
        assert_eq!(said.found("page-latch").len(), 1);
    }
}
