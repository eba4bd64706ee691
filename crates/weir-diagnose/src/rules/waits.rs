//! Classes of waits of SQL Server and PostgreSQL.

use crate::case::Case;
use crate::follow::WaitFacts;

/// The class of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// Reads and writes of data files.
    DataIo,
    /// Writes of the log.
    Log,
    /// The governor of the log.
    LogGovernor,
    /// Locks of rows and tables.
    Lock,
    /// Pages in memory that others hold.
    Latch,
    /// A processor.
    Cpu,
    /// Workers of a parallel query for each other.
    Parallel,
    /// A client that does not take what it asked for.
    Client,
    /// Memory to run in.
    Memory,
    /// A backup.
    Backup,
    /// Replicas.
    Replica,
    /// Idle sessions.
    Idle,
    /// Others.
    Other,
}

impl Class {
    /// Returns the class of a wait by its name.
    pub(super) fn from_name(name: &str) -> Self {
        match name.split_once(" / ").or_else(|| name.split_once(':')) {
            Some((kind, event)) => Self::from_postgres(kind, event.trim()),
            None => Self::from_event(name),
        }
    }

    /// Returns the class of a wait of PostgreSQL by its type and event.
    fn from_postgres(kind: &str, event: &str) -> Self {
        let by_event = Self::from_event(event);
        match kind.to_ascii_uppercase().as_str() {
            "ACTIVITY" | "TIMEOUT" | "EXTENSION" => Self::Idle,
            "IO" if by_event == Self::Log => Self::Log,
            "IO" => Self::DataIo,
            "LOCK" => Self::Lock,
            "LWLOCK" if by_event == Self::Log => Self::Log,
            "LWLOCK" | "BUFFERPIN" => Self::Latch,
            "CLIENT" => Self::Client,
            _ => by_event,
        }
    }

    fn from_event(name: &str) -> Self {
        let name = name.to_ascii_uppercase();
        let is = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
        if name.contains("LOG_RATE_GOVERNOR") || name.contains("THROTTLE_LOG_RATE") {
            return Self::LogGovernor;
        }
        if is(IDLE) {
            return Self::Idle;
        }
        let classes: [(&[&str], Self); 11] = [
            (
                &[
                    "PAGEIOLATCH_",
                    "ASYNC_IO_COMPLETION",
                    "IO_COMPLETION",
                    "WRITE_COMPLETION",
                    "DATAFILEREAD",
                    "DATAFILEWRITE",
                    "DATAFILEEXTEND",
                    "IO_QUEUE_LIMIT",
                    "DIRTY_PAGE_TABLE",
                    "SLEEP_BUFFERPOOL_HELPLW",
                ],
                Self::DataIo,
            ),
            (
                &["WRITELOG", "LOGBUFFER", "LOGMGR_RESERVE_APPEND", "WALWRITE", "WALSYNC", "WAL_"],
                Self::Log,
            ),
            (&["LCK_M_", "LOCK", "TRANSACTIONID", "TUPLE", "RELATION"], Self::Lock),
            (&["PAGELATCH_", "LATCH_", "LWLOCK", "BUFFERCONTENT", "BUFFERMAPPING"], Self::Latch),
            (&["SOS_SCHEDULER_YIELD", "THREADPOOL", "CPU"], Self::Cpu),
            (
                &[
                    "CXPACKET",
                    "CXCONSUMER",
                    "CXSYNC",
                    "EXCHANGE",
                    "HTBUILD",
                    "HTREPARTITION",
                    "HTDELETE",
                    "BPSORT",
                    "BMP",
                ],
                Self::Parallel,
            ),
            (
                &["ASYNC_NETWORK_IO", "NET_WAITFOR_PACKET", "CLIENTREAD", "CLIENTWRITE", "CLIENT"],
                Self::Client,
            ),
            (&["RESOURCE_SEMAPHORE", "CMEMTHREAD", "MEMORY_ALLOCATION_EXT"], Self::Memory),
            (&["BACKUPIO", "BACKUPBUFFER", "BACKUPTHREAD"], Self::Backup),
            (&["HADR_SYNC_COMMIT", "HADR_SYNCHRONIZING_THROTTLE", "SYNCREP"], Self::Replica),
            (&["PARALLEL_"], Self::Parallel),
        ];
        classes.iter().find(|(starts, _)| is(starts)).map_or(Self::Other, |(_, class)| *class)
    }
}

/// Idle waits: background workers and timers.
const IDLE: &[&str] = &[
    "SLEEP_",
    "LAZYWRITER_SLEEP",
    "BROKER_",
    "CHECKPOINT_QUEUE",
    "CHKPT",
    "CLR_",
    "DBMIRROR",
    "DIRTY_PAGE_POLL",
    "DISPATCHER_QUEUE_SEMAPHORE",
    "EXECSYNC",
    "FSAGENT",
    "FT_IFTS",
    "HADR_CLUSAPI_CALL",
    "HADR_FILESTREAM_IOMGR_IOCOMPLETION",
    "HADR_LOGCAPTURE_WAIT",
    "HADR_NOTIFICATION_DEQUEUE",
    "HADR_TIMER_TASK",
    "HADR_WORK_QUEUE",
    "HADR_FABRIC_CALLBACK",
    "KSOURCE_WAKEUP",
    "LOGMGR_QUEUE",
    "MEMORY_ALLOCATION_EXT_IDLE",
    "ONDEMAND_TASK_QUEUE",
    "PARALLEL_REDO",
    "PREEMPTIVE_",
    "PVS_PREALLOCATE",
    "PWAIT_",
    "QDS_",
    "REDO_THREAD_PENDING_WORK",
    "REQUEST_FOR_DEADLOCK_SEARCH",
    "RESOURCE_QUEUE",
    "SERVER_IDLE_CHECK",
    "SNI_HTTP_ACCEPT",
    "SOS_WORK_DISPATCHER",
    "SP_SERVER_DIAGNOSTICS_SLEEP",
    "SQLTRACE_",
    "STARTUP_DEPENDENCY_MANAGER",
    "TRACEWRITE",
    "UCS_SESSION_REGISTRATION",
    "VDI_CLIENT_OTHER",
    "WAITFOR",
    "WAIT_FOR_RESULTS",
    "WAIT_XTP_",
    "XE_",
    "VALIDATION_IO_THREAD",
    "AZURE_IMDS_VERSIONS",
    "POPULATE_LOCK_ORDINALS",
    "CXCONSUMER_IDLE",
];

/// Returns all waits except idle ones.
pub(super) fn resource_waits<'a>(case: &Case<'a>) -> Vec<&'a WaitFacts> {
    let waits = case.facts.others.waits.iter();
    let mut waits: Vec<&WaitFacts> =
        waits.filter(|w| Class::from_name(&w.name) != Class::Idle).collect();
    // SLEEP_BUFFERPOOL_HELPLW is a wait for the writer of a full pool, by its name an idle one.
    let helped = case.facts.others.waits.iter().filter(|w| w.name == "SLEEP_BUFFERPOOL_HELPLW");
    waits.extend(helped);
    waits
}

/// Returns the share of a class in all wait time, from 0 to 1; `None` if waits are unknown.
pub(super) fn share(case: &Case<'_>, class: Class) -> Option<f64> {
    let waits = resource_waits(case);
    let all: f64 = waits.iter().map(|wait| wait.time_ms).sum();
    let is = |wait: &&&WaitFacts| {
        Class::from_name(&wait.name) == class
            || (class == Class::DataIo && wait.name == "SLEEP_BUFFERPOOL_HELPLW")
    };
    let own: f64 = waits.iter().filter(is).map(|wait| wait.time_ms).sum();
    (all > 0.0).then(|| own / all)
}

#[cfg(test)]
mod tests {
    use super::Class;

    #[test]
    fn waits_of_postgres_have_a_type_and_an_event() {
        let check = |name: &str, class: Class| assert_eq!(Class::from_name(name), class, "{name}");
        check("Lock / transactionid", Class::Lock);
        check("Lock:transactionid", Class::Lock);
        check("LWLock / WALWrite", Class::Log);
        check("LWLock / LockManager", Class::Latch);
        check("IO / DataFileRead", Class::DataIo);
        check("IO / BufFileRead", Class::DataIo);
        check("IO / WALSync", Class::Log);
        check("Client / ClientRead", Class::Client);
        check("IPC / SyncRep", Class::Replica);
        check("Timeout / VacuumDelay", Class::Idle);
        check("PAGEIOLATCH_SH", Class::DataIo);
    }
}
