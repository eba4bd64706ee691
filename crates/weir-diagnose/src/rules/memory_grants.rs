//! Queries that wait for memory to run in.

use super::not_storage::Dominant;
use super::rule::{Rule, source};
use super::wait_times::is_memory_grant;
use crate::verdict::Cause;
use weir_report::diagnosis::Group;

pub(super) const RULE: Rule = Rule {
    id: 304,
    name: "memory-grants",
    group: Group::NotTheStorage,
    priority: 20,
    source: source::WAITS,
    finds: "most wait time is for query memory",
    find: |case, rule| DOMINANT.find(case, rule),
};

const DOMINANT: Dominant = Dominant {
    cause: Cause::MemoryGrants,
    subject: "memory",
    text: "queries wait for a memory grant",
    action: "find the queries with large grants (sys.dm_exec_query_memory_grants by requested_memory_kb): \
     update statistics, add indexes that avoid their sorts and hashes, limit them with \
     MAX_GRANT_PERCENT, or add memory; storage does not help",
    is: is_memory_grant,
};

#[cfg(test)]
mod tests {
    use crate::bed::TestBed;

    #[test]
    fn dominant_waits_are_the_cause() {
        let bed = || TestBed::bare().wait("RESOURCE_SEMAPHORE", 800.0);
        assert_eq!(bed().wait("WRITELOG", 200.0).found("memory-grants").len(), 1);
        assert!(!bed().wait("WRITELOG", 1600.0).finds("memory-grants"));
        // Threads that wait for each other to allocate are of another kind.
        assert!(!TestBed::bare().wait("CMEMTHREAD", 800.0).finds("memory-grants"));
    }
}
