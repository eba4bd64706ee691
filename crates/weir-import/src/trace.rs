//! Block traces: single I/Os, summed into samples.
//!
//! ```text
//!  a trace --> one request after the other --> summing: counters, queue, places --> samples
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`summing`] | single requests to samples |
//! | [`rows`] | traces as tables with one request per row |
//! | [`csv`] | tables whose head names their columns |
//! | [`msr`] | traces of MSR Cambridge |
//! | [`cloudphysics`] | traces of CloudPhysics, as text |
//! | [`spc`] | traces of the Storage Performance Council |
//! | [`disksim`] | traces for `DiskSim`, in ASCII |
//! | `simulator` | common parts of traces for simulators |
//! | [`mqsim`] | traces for `MQSim`, in ASCII |
//! | [`blkparse`] | output of blkparse |
//! | [`blktrace`] | binary output of blktrace |
//! | `pairing` | events of the block layer, paired to requests |
//! | [`iolog`] | I/O logs of fio, versions 2 and 3 |
//! | [`vscsi`] | traces of CloudPhysics, in their original format |
//! | [`oracle_general`] | traces for caches: times, objects and sizes |
//! | [`scsi`] | SCSI commands |
//! | [`record`] | records of fixed length |

pub mod blkparse;
pub mod blktrace;
pub mod cloudphysics;
pub mod csv;
pub mod disksim;
pub mod iolog;
pub mod mqsim;
pub mod msr;
pub mod oracle_general;
mod pairing;
pub mod record;
pub mod rows;
pub mod scsi;
mod simulator;
pub mod spc;
pub mod summing;
pub mod vscsi;

use super::kind::{By, Kind};

/// The unit of times in a block trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
    /// Ticks of 100 ns, as Windows counts.
    Ticks,
}

impl TimeUnit {
    /// The names of the units, as [`Self::named`] takes them.
    pub const NAMES: [&str; 5] = ["s", "ms", "us", "ns", "100ns"];

    /// Returns the unit of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "s" => Self::Seconds,
            "ms" => Self::Milliseconds,
            "us" => Self::Microseconds,
            "ns" => Self::Nanoseconds,
            "100ns" => Self::Ticks,
            _ => return None,
        })
    }

    /// Returns the length of the unit in nanoseconds.
    pub(crate) const fn nanos(self) -> u64 {
        match self {
            Self::Seconds => rows::SECOND,
            Self::Milliseconds => rows::MILLISECOND,
            Self::Microseconds => 1000,
            Self::Nanoseconds => 1,
            Self::Ticks => rows::TICK,
        }
    }
}

/// The kinds, most specific first.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "fio-iolog",
        about: "what fio did, as it logs it, in version 2 or 3",
        recognizes: By::Text(iolog::recognizes),
        open: iolog::open,
    },
    Kind {
        name: "blkparse",
        about: "events of the block layer of Linux, as blkparse prints them",
        recognizes: By::Text(blkparse::recognizes),
        open: blkparse::open,
    },
    Kind {
        name: "msr-cambridge",
        about: "a block trace in the format of MSR Cambridge",
        recognizes: By::Text(msr::recognizes),
        open: msr::open,
    },
    Kind {
        name: "cloudphysics",
        about: "a block trace of CloudPhysics, as text",
        recognizes: By::Text(cloudphysics::recognizes),
        open: cloudphysics::open,
    },
    Kind {
        name: "spc",
        about: "a block trace in the format of the Storage Performance Council",
        recognizes: By::Text(spc::recognizes),
        open: spc::open,
    },
    Kind {
        name: "disksim",
        about: "a block trace for DiskSim, in ASCII",
        recognizes: By::Text(disksim::recognizes),
        open: disksim::open,
    },
    Kind {
        name: "mqsim",
        about: "a block trace for MQSim, in ASCII",
        recognizes: By::Text(mqsim::recognizes),
        open: mqsim::open,
    },
    Kind {
        name: "trace-csv",
        about: "a block trace as a table whose head names its columns",
        recognizes: By::Text(csv::recognizes),
        open: csv::open,
    },
    Kind {
        name: "blktrace",
        about: "a binary trace of blktrace, a file for each processor",
        recognizes: By::Bytes(blktrace::recognizes),
        open: blktrace::open,
    },
    Kind {
        name: "vscsi",
        about: "a block trace of CloudPhysics, as it was taken",
        recognizes: By::Bytes(vscsi::recognizes),
        open: vscsi::open,
    },
    Kind {
        name: "oracle-general",
        about: "a trace for caches, in the format oracleGeneral of libCacheSim",
        recognizes: By::Bytes(oracle_general::recognizes),
        open: oracle_general::open,
    },
];
