//! Sessions that wait for each other's locks.

use super::not_storage::Dominant;
use super::rule::{Rule, source};
use super::waits::Class;
use crate::verdict::Cause;
use weir_report::diagnosis::Group;

pub(super) const RULE: Rule = Rule {
    id: 302,
    name: "locks",
    group: Group::NotTheStorage,
    priority: 20,
    source: source::WAITS,
    finds: "most wait time is for locks",
    find: |case, rule| DOMINANT.find(case, rule),
};

const DOMINANT: Dominant = Dominant {
    cause: Cause::Locks,
    subject: "locks",
    text: "sessions wait for locks",
    action: "find the blocking sessions (sys.dm_exec_requests by blocking_session_id; pg_blocking_pids) and \
     shorten their transactions, or use row versions for reads (ALTER DATABASE .. SET \
     READ_COMMITTED_SNAPSHOT ON); storage helps only if the blocking sessions wait for it",
    is: |wait| Class::from_name(&wait.name) == Class::Lock,
};

#[cfg(test)]
mod tests {
    use crate::bed::TestBed;

    #[test]
    fn dominant_waits_are_the_cause() {
        let found = TestBed::bare().wait("LCK_M_X", 900.0).wait("WRITELOG", 300.0).found("locks");
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert!(finding.finding.contains("75.0 %"), "{}", finding.finding);
        assert_eq!(TestBed::bare().wait("Lock:transactionid", 900.0).found("locks").len(), 1);
    }

    #[test]
    fn few_waits_are_no_cause() {
        assert!(!TestBed::bare().wait("LCK_M_X", 900.0).wait("WRITELOG", 1500.0).finds("locks"));
        // All wait time, but only of a tenth of a session.
        assert!(!TestBed::bare().wait("LCK_M_X", 100.0).finds("locks"));
        // Idle sessions always wait.
        let idle = TestBed::bare().wait("LCK_M_X", 100.0).wait("LAZYWRITER_SLEEP", 1000.0);
        assert!(!idle.finds("locks"));
    }

    #[test]
    fn the_largest_cause_comes_first() {
        let bed = || TestBed::bare().wait("LCK_M_S", 900.0).wait("ASYNC_NETWORK_IO", 1100.0);
        assert_eq!(bed().found("client")[0].priority, 20);
        assert_eq!(bed().found("locks")[0].priority, 21);
    }
}
