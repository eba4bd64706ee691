//! The wait categories of Query Store and qpi.
//!
//! The categories and their wait types are the table "Wait categories mapping" of Microsoft's page
//! on `sys.query_store_wait_stats`; the numbers are its `wait_category`. qpi and scripts based on
//! it use the same table.

/// A category of waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Category {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: &'static str,
}

/// Categories by number, with the names of their waits. A name that ends in `%` is a prefix.
const CATEGORIES: &[(u64, &str, &[&str])] = &[
    (0, "Unknown", &["Unknown"]),
    (1, "CPU", &["SOS_SCHEDULER_YIELD"]),
    (2, "Worker Thread", &["THREADPOOL"]),
    (3, "Lock", &["LCK_M_%"]),
    (4, "Latch", &["LATCH_%"]),
    (5, "Buffer Latch", &["PAGELATCH_%"]),
    (6, "Buffer IO", &["PAGEIOLATCH_%"]),
    (7, "Compilation", &["RESOURCE_SEMAPHORE_QUERY_COMPILE"]),
    (8, "SQL CLR", &["CLR%", "SQLCLR%"]),
    (9, "Mirroring", &["DBMIRROR%"]),
    (10, "Transaction", &["XACT%", "DTC%", "TRAN_MARKLATCH_%", "MSQL_XACT_%", "TRANSACTION_MUTEX"]),
    (11, "Idle", IDLE),
    (12, "Preemptive", &["PREEMPTIVE_%"]),
    (14, "Tran Log IO", LOG),
    (15, "Network IO", NETWORK),
    (16, "Parallelism", &["CXPACKET", "EXCHANGE"]),
    (17, "Memory", MEMORY),
    (18, "User Wait", &["WAITFOR", "WAIT_FOR_RESULTS", "BROKER_RECEIVE_WAITFOR"]),
    // After a category that has one of its waits.
    (13, "Service Broker", &["BROKER_%"]),
    (19, "Tracing", TRACING),
    (20, "Full Text Search", FULL_TEXT),
    (21, "Other Disk IO", DISK),
    // Before replication, whose pattern matches one of its waits.
    (23, "Log Rate Governor", GOVERNOR),
    (22, "Replication", REPLICATION),
];

const IDLE: &[&str] = &[
    "SLEEP_%",
    "LAZYWRITER_SLEEP",
    "SQLTRACE_BUFFER_FLUSH",
    "SQLTRACE_INCREMENTAL_FLUSH_SLEEP",
    "SQLTRACE_WAIT_ENTRIES",
    "FT_IFTS_SCHEDULER_IDLE_WAIT",
    "XE_DISPATCHER_WAIT",
    "REQUEST_FOR_DEADLOCK_SEARCH",
    "LOGMGR_QUEUE",
    "ONDEMAND_TASK_QUEUE",
    "CHECKPOINT_QUEUE",
    "XE_TIMER_EVENT",
];
const LOG: &[&str] = &[
    "LOGMGR",
    "LOGBUFFER",
    "LOGMGR_RESERVE_APPEND",
    "LOGMGR_FLUSH",
    "LOGMGR_PMM_LOG",
    "CHKPT",
    "WRITELOG",
];
const NETWORK: &[&str] =
    &["ASYNC_NETWORK_IO", "NET_WAITFOR_PACKET", "PROXY_NETWORK_IO", "EXTERNAL_SCRIPT_NETWORK_IO"];
const MEMORY: &[&str] = &[
    "RESOURCE_SEMAPHORE",
    "CMEMTHREAD",
    "CMEMPARTITIONED",
    "EE_PMOLOCK",
    "MEMORY_ALLOCATION_EXT",
    "RESERVED_MEMORY_ALLOCATION_EXT",
    "MEMORY_GRANT_UPDATE",
];
const TRACING: &[&str] = &[
    "TRACEWRITE",
    "SQLTRACE_LOCK",
    "SQLTRACE_FILE_BUFFER",
    "SQLTRACE_FILE_WRITE_IO_COMPLETION",
    "SQLTRACE_FILE_READ_IO_COMPLETION",
    "SQLTRACE_PENDING_BUFFER_WRITERS",
    "SQLTRACE_SHUTDOWN",
    "QUERY_TRACEOUT",
    "TRACE_EVTNOTIFF",
];
const FULL_TEXT: &[&str] = &[
    "FT_RESTART_CRAWL",
    "FULLTEXT GATHERER",
    "MSSEARCH",
    "FT_METADATA_MUTEX",
    "FT_IFTSHC_MUTEX",
    "FT_IFTSISM_MUTEX",
    "FT_IFTS_RWLOCK",
    "FT_COMPROWSET_RWLOCK",
    "FT_MASTER_MERGE",
    "FT_PROPERTYLIST_CACHE",
    "FT_MASTER_MERGE_COORDINATOR",
    "PWAIT_RESOURCE_SEMAPHORE_FT_PARALLEL_QUERY_SYNC",
];
const DISK: &[&str] = &[
    "ASYNC_IO_COMPLETION",
    "IO_COMPLETION",
    "BACKUPIO",
    "WRITE_COMPLETION",
    "IO_QUEUE_LIMIT",
    "IO_RETRY",
];
const GOVERNOR: &[&str] = &[
    "LOG_RATE_GOVERNOR",
    "POOL_LOG_RATE_GOVERNOR",
    "HADR_THROTTLE_LOG_RATE_GOVERNOR",
    "INSTANCE_LOG_RATE_GOVERNOR",
];
const REPLICATION: &[&str] = &[
    "SE_REPL_%",
    "REPL_%",
    "HADR_%",
    "PWAIT_HADR_%",
    "REPLICA_WRITES",
    "FCB_REPLICA_WRITE",
    "FCB_REPLICA_READ",
    "PWAIT_HADRSIM",
];

/// Waits that have a category but only mean that a background thread is idle. Source: Paul
/// Randal's list
/// (<https://www.sqlskills.com/blogs/paul/wait-statistics-or-please-tell-me-where-it-hurts/>).
/// Waits without a category need no entry.
const BACKGROUND: &[&str] = &[
    "BROKER_EVENTHANDLER",
    "BROKER_RECEIVE_WAITFOR",
    "BROKER_TASK_STOP",
    "BROKER_TO_FLUSH",
    "BROKER_TRANSMITTER",
    "CHECKPOINT_QUEUE",
    "CHKPT",
    "CLR_AUTO_EVENT",
    "CLR_MANUAL_EVENT",
    "CLR_SEMAPHORE",
    "DBMIRROR_DBM_EVENT",
    "DBMIRROR_EVENTS_QUEUE",
    "DBMIRROR_WORKER_QUEUE",
    "DBMIRRORING_CMD",
    "FT_IFTS_SCHEDULER_IDLE_WAIT",
    "FT_IFTSHC_MUTEX",
    "HADR_CLUSAPI_CALL",
    "HADR_FILESTREAM_IOMGR_IOCOMPLETION",
    "HADR_LOGCAPTURE_WAIT",
    "HADR_NOTIFICATION_DEQUEUE",
    "HADR_TIMER_TASK",
    "HADR_WORK_QUEUE",
    "LAZYWRITER_SLEEP",
    "LOGMGR_QUEUE",
    "MEMORY_ALLOCATION_EXT",
    "ONDEMAND_TASK_QUEUE",
    "PREEMPTIVE_XE_GETTARGETSTATE",
    "REQUEST_FOR_DEADLOCK_SEARCH",
    "SLEEP_BPOOL_FLUSH",
    "SLEEP_DBSTARTUP",
    "SLEEP_DCOMSTARTUP",
    "SLEEP_MASTERDBREADY",
    "SLEEP_MASTERMDREADY",
    "SLEEP_MASTERUPGRADED",
    "SLEEP_MSDBSTARTUP",
    "SLEEP_SYSTEMTASK",
    "SLEEP_TASK",
    "SLEEP_TEMPDBSTARTUP",
    "SQLTRACE_BUFFER_FLUSH",
    "SQLTRACE_INCREMENTAL_FLUSH_SLEEP",
    "SQLTRACE_WAIT_ENTRIES",
    "WAITFOR",
    "WAIT_FOR_RESULTS",
    "XE_DISPATCHER_WAIT",
    "XE_TIMER_EVENT",
];

/// Returns the category of a wait; most background waits have none.
#[must_use]
pub fn category(wait: &str) -> Option<Category> {
    let is = |name: &&str| match name.strip_suffix('%') {
        Some(beginning) => wait.starts_with(beginning),
        None => wait == *name,
    };
    let found = CATEGORIES.iter().find(|(_, _, waits)| waits.iter().any(is));
    found.map(|(id, name, _)| Category { id: *id, name })
}

/// Returns whether `qpi.wait_stats` leaves the wait out: it has no category, or it only means that
/// a background thread is idle.
#[must_use]
pub fn is_background(wait: &str) -> bool {
    category(wait).is_none() || BACKGROUND.contains(&wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_where_query_store_puts_them() {
        let check = |wait: &str, expect: Option<(u64, &str)>| {
            let found = category(wait).map(|own| (own.id, own.name));
            assert_eq!(found, expect, "{wait}");
        };
        check("PAGEIOLATCH_SH", Some((6, "Buffer IO")));
        check("PAGELATCH_UP", Some((5, "Buffer Latch")));
        check("LATCH_EX", Some((4, "Latch")));
        check("WRITELOG", Some((14, "Tran Log IO")));
        check("LOGMGR_QUEUE", Some((11, "Idle")));
        check("INSTANCE_LOG_RATE_GOVERNOR", Some((23, "Log Rate Governor")));
        check("HADR_THROTTLE_LOG_RATE_GOVERNOR", Some((23, "Log Rate Governor")));
        check("HADR_SYNC_COMMIT", Some((22, "Replication")));
        check("BROKER_RECEIVE_WAITFOR", Some((18, "User Wait")));
        check("BROKER_TO_FLUSH", Some((13, "Service Broker")));
        check("SLEEP_BUFFERPOOL_HELPLW", Some((11, "Idle")));
        check("IO_COMPLETION", Some((21, "Other Disk IO")));
        check("RESOURCE_SEMAPHORE", Some((17, "Memory")));
        check("RESOURCE_SEMAPHORE_QUERY_COMPILE", Some((7, "Compilation")));
        check("DIRTY_PAGE_POLL", None);
    }

    #[test]
    fn waits_of_background_tasks_are_ignored() {
        for wait in ["SLEEP_TASK", "DIRTY_PAGE_POLL", "BROKER_TO_FLUSH", "WAITFOR"] {
            assert!(is_background(wait), "{wait}");
        }
        for wait in ["SLEEP_BUFFERPOOL_HELPLW", "PAGEIOLATCH_SH", "WRITELOG", "LCK_M_X"] {
            assert!(!is_background(wait), "{wait}");
        }
    }
}
