//! The meaning of counters: entity, metric and unit.
//!
//! Means of disks are 0 without operations, so such a mean is missing.

use super::path::Path;
use weir_observe::metric::{self as m, Metric};

const NANOS: f64 = 1e9;
const MILLIS: f64 = 1e6;
const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * 1024.0;
const PERCENT: f64 = 0.01;

/// The entity of a counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Of {
    Host,
    /// A physical disk.
    Physical,
    /// A drive letter or a mount point.
    Logical,
    /// An instance of SQL Server, with its name unless it is the default one.
    Server(Option<String>),
    Database(Option<String>),
    /// A pool of the resource governor.
    Pool(Option<String>),
}

impl Of {
    pub(super) const fn is_disk(&self) -> bool {
        matches!(self, Self::Physical | Self::Logical)
    }
}

/// The meaning of a counter.
#[derive(Debug, Clone)]
pub(super) struct Meaning {
    pub(super) of: Of,
    pub(super) measure: &'static Metric,
    pub(super) number: Number,
    /// Rank among counters with the same meaning; the lowest is used.
    pub(super) rank: u8,
}

/// The conversion of a counter's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Times(f64),
    /// A mean, which is 0 without operations.
    Mean(f64),
    /// The complement to 100 %.
    Rest,
}

impl Number {
    /// Converts a value to the unit of the metric, if it is present.
    pub(super) fn convert(self, value: f64) -> Option<f64> {
        match self {
            Self::Times(by) => Some(value * by),
            Self::Mean(by) => (value > 0.0).then_some(value * by),
            Self::Rest => Some((1.0 - value * PERCENT).max(0.0)),
        }
    }
}

type Known = Option<(&'static Metric, Number)>;

/// Returns the meaning of a counter that is used here.
pub(super) fn meaning(path: &Path) -> Option<Meaning> {
    let counter = path.counter.as_str();
    let (of, known) = match path.object.as_str() {
        "physicaldisk" => (Of::Physical, disk(counter)),
        "logicaldisk" => (Of::Logical, disk(counter)),
        "processor" | "processor information" if path.is_total() => (Of::Host, processor(counter)),
        "memory" => (Of::Host, memory(counter)),
        "system" => (Of::Host, system(counter)),
        object => {
            let object = server(object)?;
            sql(named_instance(path), object, path)?
        }
    };
    let (measure, number) = known?;
    let rank = u8::from(counter == "% disk time" || path.object == "processor information");
    Some(Meaning { of, measure, number, rank })
}

fn disk(counter: &str) -> Known {
    use Number::{Mean, Rest, Times};
    Some(match counter {
        "disk reads/sec" => (&m::READS_PER_S, Times(1.0)),
        "disk writes/sec" => (&m::WRITES_PER_S, Times(1.0)),
        "disk transfers/sec" => (&m::OPERATIONS_PER_S, Times(1.0)),
        "disk read bytes/sec" => (&m::READ_BYTES_PER_S, Times(1.0)),
        "disk write bytes/sec" => (&m::WRITE_BYTES_PER_S, Times(1.0)),
        "disk bytes/sec" => (&m::BYTES_PER_S, Times(1.0)),
        "avg. disk sec/read" => (&m::READ_LATENCY_NS, Mean(NANOS)),
        "avg. disk sec/write" => (&m::WRITE_LATENCY_NS, Mean(NANOS)),
        "avg. disk sec/transfer" => (&m::LATENCY_NS, Mean(NANOS)),
        "avg. disk bytes/read" => (&m::READ_REQUEST_BYTES, Mean(1.0)),
        "avg. disk bytes/write" => (&m::WRITE_REQUEST_BYTES, Mean(1.0)),
        "avg. disk bytes/transfer" => (&m::REQUEST_BYTES, Mean(1.0)),
        "current disk queue length" => (&m::QUEUE_LENGTH, Times(1.0)),
        "avg. disk queue length" => (&m::QUEUE_DEPTH, Times(1.0)),
        "avg. disk read queue length" => (&m::READ_QUEUE_DEPTH, Times(1.0)),
        "avg. disk write queue length" => (&m::WRITE_QUEUE_DEPTH, Times(1.0)),
        // In spite of its name, this is the queue depth in hundredths.
        "% disk time" => (&m::QUEUE_DEPTH, Times(PERCENT)),
        "% idle time" => (&m::BUSY, Rest),
        "free megabytes" => (&m::FREE_BYTES, Times(MIB)),
        _ => return None,
    })
}

fn processor(counter: &str) -> Known {
    let measure = match counter {
        "% processor time" => &m::CPU,
        "% user time" => &m::CPU_USER,
        "% privileged time" => &m::CPU_SYSTEM,
        "% idle time" => &m::CPU_IDLE,
        _ => return None,
    };
    Some((measure, Number::Times(PERCENT)))
}

fn memory(counter: &str) -> Known {
    let (measure, by) = match counter {
        "available bytes" => (&m::MEMORY_AVAILABLE_BYTES, 1.0),
        "available kbytes" => (&m::MEMORY_AVAILABLE_BYTES, KIB),
        "available mbytes" => (&m::MEMORY_AVAILABLE_BYTES, MIB),
        "free & zero page list bytes" => (&m::MEMORY_FREE_BYTES, 1.0),
        "cache bytes" => (&m::MEMORY_CACHE_BYTES, 1.0),
        _ => return None,
    };
    Some((measure, Number::Times(by)))
}

fn system(counter: &str) -> Known {
    (counter == "processor queue length").then_some((&m::RUNNABLE, Number::Times(1.0)))
}

/// Returns the object in `sqlserver:databases` and in `mssql$name:databases`.
fn server(object: &str) -> Option<&str> {
    let (server, object) = object.split_once(':')?;
    let is_named = server.strip_prefix("mssql$").is_some_and(|name| !name.is_empty());
    (server == "sqlserver" || is_named).then_some(object)
}

/// Returns the name of an instance, unless it is the default one.
fn named_instance(path: &Path) -> Option<String> {
    let (server, _) = path.told.split_once(':')?;
    let (_, name) = server.split_once('$')?;
    Some(name.to_owned())
}

fn sql(instance: Option<String>, object: &str, path: &Path) -> Option<(Of, Known)> {
    let counter = path.counter.as_str();
    let server = Of::Server(instance.clone());
    Some(match object {
        // The sum over all databases belongs to the server.
        "databases" if path.is_total() => (server, database(counter)),
        "databases" => (Of::Database(instance), database(counter)),
        "resource pool stats" => (Of::Pool(instance), pool(counter)),
        "buffer manager" => (server, buffer(counter)),
        "memory manager" => (server, server_memory(counter)),
        "sql statistics" if counter == "batch requests/sec" => {
            (server, Some((&m::BATCH_REQUESTS_PER_S, Number::Times(1.0))))
        }
        "general statistics" if counter == "user connections" => {
            (server, Some((&m::USERS, Number::Times(1.0))))
        }
        _ => return None,
    })
}

fn database(counter: &str) -> Known {
    let measure = match counter {
        "transactions/sec" => &m::TRANSACTIONS_PER_S,
        "log bytes flushed/sec" => &m::LOG_BYTES_PER_S,
        "log flushes/sec" => &m::LOG_FLUSHES_PER_S,
        "log flush waits/sec" => &m::LOG_FLUSH_WAITS_PER_S,
        "log flush wait time" => &m::LOG_FLUSH_WAIT_TIME_MS,
        "log flush write time (ms)" => &m::LOG_FLUSH_WRITE_TIME_MS,
        _ => return None,
    };
    Some((measure, Number::Times(1.0)))
}

fn pool(counter: &str) -> Known {
    use Number::{Mean, Times};
    Some(match counter {
        "disk read io/sec" => (&m::READS_PER_S, Times(1.0)),
        "disk write io/sec" => (&m::WRITES_PER_S, Times(1.0)),
        "disk read bytes/sec" => (&m::READ_BYTES_PER_S, Times(1.0)),
        "disk write bytes/sec" => (&m::WRITE_BYTES_PER_S, Times(1.0)),
        "avg disk read io (ms)" => (&m::READ_LATENCY_NS, Mean(MILLIS)),
        "avg disk write io (ms)" => (&m::WRITE_LATENCY_NS, Mean(MILLIS)),
        "disk read io throttled/sec" => (&m::READS_THROTTLED_PER_S, Times(1.0)),
        "disk write io throttled/sec" => (&m::WRITES_THROTTLED_PER_S, Times(1.0)),
        "cpu usage %" => (&m::CPU, Times(PERCENT)),
        _ => return None,
    })
}

fn buffer(counter: &str) -> Known {
    let (measure, by) = match counter {
        "page life expectancy" => (&m::PAGE_LIFE_EXPECTANCY_S, 1.0),
        "page reads/sec" => (&m::PAGE_READS_PER_S, 1.0),
        "page writes/sec" => (&m::PAGE_WRITES_PER_S, 1.0),
        "readahead pages/sec" => (&m::READAHEAD_PAGES_PER_S, 1.0),
        "checkpoint pages/sec" => (&m::CHECKPOINT_PAGES_PER_S, 1.0),
        "background writer pages/sec" => (&m::BACKGROUND_WRITER_PAGES_PER_S, 1.0),
        "lazy writes/sec" => (&m::LAZY_WRITES_PER_S, 1.0),
        "page lookups/sec" => (&m::PAGE_LOOKUPS_PER_S, 1.0),
        "buffer cache hit ratio" => (&m::BUFFER_HIT_SHARE, PERCENT),
        _ => return None,
    };
    Some((measure, Number::Times(by)))
}

fn server_memory(counter: &str) -> Known {
    let measure = match counter {
        "database cache memory (kb)" => &m::BUFFER_BYTES,
        "total server memory (kb)" => &m::SERVER_MEMORY_BYTES,
        "target server memory (kb)" => &m::SERVER_MEMORY_TARGET_BYTES,
        _ => return None,
    };
    Some((measure, Number::Times(KIB)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expect: Option<(Of, &Metric, Number)>) {
        let path = Path::parse(path).expect("a path");
        let got = meaning(&path);
        let got = got.as_ref().map(|known| (known.of.clone(), known.measure, known.number));
        assert_eq!(got, expect, "{path:?}");
    }

    #[test]
    fn counters_and_their_meaning() {
        use Number::{Mean, Rest, Times};
        check(
            r"\\h\PhysicalDisk(1 D:)\DISK READS/SEC",
            Some((Of::Physical, &m::READS_PER_S, Times(1.0))),
        );
        check(
            r"\\h\LogicalDisk(D:)\Avg. Disk sec/Read",
            Some((Of::Logical, &m::READ_LATENCY_NS, Mean(1e9))),
        );
        check(
            r"\\h\Logischer Datenträger(D:)\Leerlaufzeit (%)",
            Some((Of::Logical, &m::BUSY, Rest)),
        );
        check(
            r"\\h\Processor Information(_Total)\% Processor Time",
            Some((Of::Host, &m::CPU, Times(0.01))),
        );
        check(r"\\h\Processor(0)\% Processor Time", None);
        check(
            r"\\h\MSSQL$SALES:Databases(tpcc)\Transactions/sec",
            Some((Of::Database(Some("SALES".to_owned())), &m::TRANSACTIONS_PER_S, Times(1.0))),
        );
        check(
            r"\\h\SQLServer:Databases(_Total)\Transactions/sec",
            Some((Of::Server(None), &m::TRANSACTIONS_PER_S, Times(1.0))),
        );
        check(
            r"\\h\SQLServer:Resource Pool Stats(default)\Avg Disk Read IO (ms)",
            Some((Of::Pool(None), &m::READ_LATENCY_NS, Mean(1e6))),
        );
        check(r"\\h\MSSQL$:Databases(x)\Transactions/sec", None);
        check(r"\\h\SQLServer:Locks(_Total)\Lock Waits/sec", None);
    }

    #[test]
    fn a_mean_of_nothing_is_missing() {
        assert_eq!(Number::Mean(1e9).convert(0.0), None);
        assert_eq!(Number::Mean(1e9).convert(0.5), Some(5e8));
        assert_eq!(Number::Times(2.0).convert(0.0), Some(0.0));
        assert_eq!(Number::Rest.convert(100.5), Some(0.0));
    }
}
