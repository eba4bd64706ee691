//! The kinds of input, and telling which one it is.

use super::merge::Options;
use super::sheet::ReadSamples;
use super::{ImportError, bench, linux, text, trace};
use flate2::bufread::MultiGzDecoder;
use super::{ImportError, cloud, linux, text, windows};
use super::{ImportError, linux, postgres, sql, text};
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

/// An input that a reader takes.
pub type Bytes = Box<dyn BufRead>;

/// Bytes that an input is read in, and that its kind is found by.
const BUFFER: usize = 1 << 18;

/// An input, and what is in it if it was compressed with gzip.
///
/// # Errors
///
/// [`io::Error`] if its beginning cannot be read.
pub fn bytes_of(input: impl Read + 'static) -> io::Result<Bytes> {
    let mut input = BufReader::with_capacity(BUFFER, input);
    if !input.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        return Ok(Box::new(input));
    }
    Ok(Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(input))))
}

type Open = fn(Bytes, &Options) -> Result<Box<dyn ReadSamples>, ImportError>;

/// A kind of input.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Its name, as `--as` takes it.
    pub name: &'static str,
    /// What it is, for people.
    pub about: &'static str,
    /// Whether an input that begins so is one.
    recognizes: fn(&str) -> bool,
    open: Open,
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kind").field(&self.name).finish()
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// All kinds, the more special ones first.
pub const ALL: &[Kind] = &[
    Kind {
        name: "fio",
        about: "results of fio, as JSON",
        recognizes: bench::fio::recognizes,
        open: bench::fio::open,
    },
    Kind {
        name: "diskspd-xml",
        about: "results of diskspd, as XML",
        recognizes: bench::diskspd_xml::recognizes,
        open: bench::diskspd_xml::open,
    },
    Kind {
        name: "diskspd",
        about: "results of diskspd, as text",
        recognizes: bench::diskspd::recognizes,
        open: bench::diskspd::open,
    },
    Kind {
        name: "iometer-icf",
        about: "access specifications of Iometer",
        recognizes: bench::iometer::recognizes,
        open: bench::iometer::open,
    },
    Kind {
        name: "hammerdb-counter",
        about: "transactions counted by HammerDB from time to time",
        recognizes: bench::hammerdb_counter::recognizes,
        open: bench::hammerdb_counter::open,
    },
    Kind {
        name: "hammerdb-table",
        about: "results of HammerDB as a table",
        recognizes: bench::hammerdb_table::recognizes,
        open: bench::hammerdb_table::open,
    },
    Kind {
        name: "hammerdb",
        about: "logs of HammerDB with results",
        recognizes: bench::hammerdb::recognizes,
        open: bench::hammerdb::open,
    },
    Kind {
        name: "pgbench",
        about: "what pgbench prints",
        recognizes: bench::pgbench::recognizes,
        open: bench::pgbench::open,
    },
    Kind {
        name: "pgbench-table",
        about: "latencies of pgbench per second, as pgbench-tools keeps them",
        recognizes: bench::pgbench_log::recognizes_table,
        open: bench::pgbench_log::open_table,
    },
    Kind {
        name: "pgbench-log",
        about: "what pgbench logs per interval, with --aggregate-interval",
        recognizes: bench::pgbench_log::recognizes,
        open: bench::pgbench_log::open,
        name: "perfmon",
        about: "a log of PerfMon, relog or typeperf, as CSV or TSV",
        recognizes: windows::perfmon::recognizes,
        open: windows::perfmon::open,
    },
    Kind {
        name: "get-counter",
        about: "a table with a row for each Windows counter and time, as of Get-Counter",
        recognizes: windows::get_counter::recognizes,
        open: windows::get_counter::open,
    },
    Kind {
        name: "get-counter-readings",
        about: "what Get-Counter prints or exports of its readings",
        recognizes: windows::readings::recognizes,
        open: windows::readings::open,
    },
    Kind {
        name: "azure-monitor",
        about: "metrics of Azure Monitor, as JSON",
        recognizes: cloud::azure_monitor::recognizes,
        open: cloud::azure_monitor::open,
    },
    Kind {
        name: "cloudwatch",
        about: "metrics of AWS CloudWatch, as JSON",
        recognizes: cloud::cloudwatch::recognizes,
        open: cloud::cloudwatch::open,
        name: "iostat-json",
        about: "iostat of sysstat, as JSON",
        recognizes: linux::iostat_json::recognizes,
        open: linux::iostat_json::open,
    },
    Kind {
        name: "sadf-j",
        about: "what sar recorded, as sadf -j writes it",
        recognizes: linux::sadf_j::recognizes,
        open: linux::sadf_j::open,
    },
    Kind {
        name: "sadf-d",
        about: "what sar recorded, as sadf -d writes it",
        recognizes: linux::sadf_d::recognizes,
        open: linux::sadf_d::open,
    },
    Kind {
        name: "sadf-p",
        about: "what sar recorded, as sadf -p writes it",
        recognizes: linux::sadf_p::recognizes,
        open: linux::sadf_p::open,
    },
    Kind {
        name: "iostat",
        about: "iostat of sysstat, as text",
        recognizes: linux::iostat::recognizes,
        open: linux::iostat::open,
    },
    Kind {
        name: "fio-iolog",
        about: "what fio did, as it logs it, in version 2 or 3",
        recognizes: trace::iolog::recognizes,
        open: trace::iolog::open,
    },
    Kind {
        name: "blkparse",
        about: "events of the block layer of Linux, as blkparse prints them",
        recognizes: trace::blkparse::recognizes,
        open: trace::blkparse::open,
    },
    Kind {
        name: "msr-cambridge",
        about: "a block trace in the format of MSR Cambridge",
        recognizes: trace::msr::recognizes,
        open: trace::msr::open,
    },
    Kind {
        name: "cloudphysics",
        about: "a block trace of CloudPhysics, as text",
        recognizes: trace::cloudphysics::recognizes,
        open: trace::cloudphysics::open,
    },
    Kind {
        name: "spc",
        about: "a block trace in the format of the Storage Performance Council",
        recognizes: trace::spc::recognizes,
        open: trace::spc::open,
    },
    Kind {
        name: "disksim",
        about: "a block trace for DiskSim, in ASCII",
        recognizes: trace::disksim::recognizes,
        open: trace::disksim::open,
    },
    Kind {
        name: "mqsim",
        about: "a block trace for MQSim, in ASCII",
        recognizes: trace::mqsim::recognizes,
        open: trace::mqsim::open,
    },
    Kind {
        name: "trace-csv",
        about: "a block trace as a table whose head names its columns",
        recognizes: trace::csv::recognizes,
        open: trace::csv::open,
    },
    Kind {
        name: "vscsi",
        about: "a block trace of CloudPhysics, as it was taken",
        recognizes: by_bytes_alone,
        open: trace::vscsi::open,
    },
    Kind {
        name: "oracle-general",
        about: "a trace for caches, in the format oracleGeneral of libCacheSim",
        recognizes: by_bytes_alone,
        open: trace::oracle_general::open,
    },
];

/// The name of a kind that is no text, and whether an input that begins so is one.
type ByBytes = (&'static str, fn(&[u8]) -> bool);

/// They are looked for before all others.
const BY_BYTES: &[ByBytes] =
    &[("vscsi", trace::vscsi::recognizes), ("oracle-general", trace::oracle_general::recognizes)];

/// What is no text is not known by its text.
const fn by_bytes_alone(_: &str) -> bool {
    false
}

/// What is known and not read: what it begins with, what it is called, and why.
type RefusedBytes = (&'static [u8], &'static str, &'static str);

const REFUSED_BYTES: &[RefusedBytes] = &[
    (b"\x07tae", "a trace of blktrace", "let blkparse print it, and take that"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "decompress it, and take that"),
];
        name: "fio-log",
        about: "a log of fio; its file's name says of what",
        recognizes: bench::fio_log::recognizes,
        open: bench::fio_log::open,
    },
    Kind {
        name: "fio-lat-log",
        about: "a log of fio: latencies",
        recognizes: bench::fio_log::never,
        open: bench::fio_log::open_lat,
    },
    Kind {
        name: "fio-bw-log",
        about: "a log of fio: bandwidth",
        recognizes: bench::fio_log::never,
        open: bench::fio_log::open_bw,
    },
    Kind {
        name: "fio-iops-log",
        about: "a log of fio: operations a second",
        recognizes: bench::fio_log::never,
        open: bench::fio_log::open_iops,
        name: "sqlserver",
        about: "result sets of SQL Server: files, waits, resources",
        recognizes: sql::recognizes,
        open: sql::open,
    },
    Kind {
        name: "postgres",
        about: "pg_stat_io, pg_stat_database and other statistics of PostgreSQL",
        recognizes: postgres::stat::recognizes,
        open: postgres::stat::open,
        name: "sar",
        about: "sar of sysstat, as text",
        recognizes: linux::sar::recognizes,
        open: linux::sar::open,
    },
    Kind {
        name: "vmstat",
        about: "vmstat, as text",
        recognizes: linux::vmstat::recognizes,
        open: linux::vmstat::open,
    },
    Kind {
        name: "vmstat-d",
        about: "counters of disks, as vmstat -d writes them",
        recognizes: linux::vmstat_d::recognizes,
        open: linux::vmstat_d::open,
    },
    Kind {
        name: "diskstats",
        about: "/proc/diskstats of Linux, once or repeatedly",
        recognizes: linux::diskstats::recognizes,
        open: linux::diskstats::open,
    },
];

/// What is known and not read, by what it is called, how it is recognized, and why.
type Refused = (&'static str, fn(&str) -> bool, &'static str);

const REFUSED: &[Refused] = &[
    (
        "iostat of macOS",
        |text| text.contains("KB/t") && text.contains("MB/s"),
        "it does not tell reads from writes",
    ),
    (
        "a job file of fio",
        bench::fio::is_job_file,
        "it says what is to be run, and has no result; give it to `weir sim`",
    ),
    (
        "a result of Iometer",
        |text| text.contains("'Target Type,Target Name") || text.contains("'Test Type,Test Desc"),
        "only its access specifications (.icf) are",
    ),
    (
        "the terse output of fio",
        bench::fio::is_terse,
        "its fields have no names; run fio with --output-format=json",
    ),
    (
        "a log of single transactions of pgbench",
        bench::pgbench_log::is_of_transactions,
        "run pgbench with --aggregate-interval too",
        "the answer of describe-volumes of AWS",
        |text| text.contains("\"Volumes\"") && text.contains("\"VolumeType\""),
        "it says what volumes there are, and not what they did",
    ),
    (
        "the answer of describe-db-instances of AWS",
        |text| text.contains("\"DBInstances\"") && text.contains("\"AllocatedStorage\""),
        "it says what instances there are, and not what they did",
    ),
];

impl Kind {
    /// The kind of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        ALL.iter().find(|kind| kind.name == name).copied()
    }

    /// The kind of an input that begins with `bytes`.
    ///
    /// # Errors
    ///
    /// [`ImportError::UnknownKind`], with what was looked for.
    pub fn of(bytes: &[u8]) -> Result<Self, ImportError> {
        if let Some((name, _)) = BY_BYTES.iter().find(|(_, is_it)| is_it(bytes))
            && let Some(kind) = Self::named(name)
        {
            return Ok(kind);
        }
        let refused = REFUSED_BYTES.iter().find(|(begin, _, _)| bytes.starts_with(begin));
        if let Some((_, what, why)) = refused {
            return Err(ImportError::whole(format!("it is {what}, which is not read: {why}")));
        }
        let text = text::beginning(bytes);
        if let Some(kind) = ALL.iter().find(|kind| (kind.recognizes)(&text)) {
            return Ok(*kind);
        }
        if let Some((what, _, why)) = REFUSED.iter().find(|(_, is_it, _)| is_it(&text)) {
            return Err(ImportError::whole(format!("it is {what}, which is not read: {why}")));
        }
        let names: Vec<_> = ALL.iter().map(|kind| kind.name).collect();
        Err(ImportError::UnknownKind { found: found(&text, bytes), looked_for: names.join(", ") })
    }

    /// A reader of `input`.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if its beginning is not what it must be.
    pub fn open(
        self,
        input: Bytes,
        options: &Options,
    ) -> Result<Box<dyn ReadSamples>, ImportError> {
        (self.open)(input, options)
    }
}

/// What an input begins with, for a person.
fn found(text: &str, bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "it is empty".to_owned();
    }
    let strange = text.chars().filter(|c| c.is_control() && !c.is_whitespace()).count();
    if strange * 20 > text.len() {
        return "it is no text".to_owned();
    }
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let short: String = first.trim().chars().take(60).collect();
    format!("it begins with {short:?}")
}
