//! Results of benchmarks.
//!
//! A result is one sample at the end of its run; its rates and means hold over the run. Reports of
//! intervals are a sample each.
//!
//! | module | holds |
//! |---|---|
//! | [`job`] | jobs, their attributes, and the times of runs |
//! | [`fio`] | results of fio, as JSON |
//! | [`fio_log`] | logs of intervals written by fio |
//! | [`run`] | a run of diskspd in any format |
//! | [`diskspd`] | results of diskspd, as text |
//! | [`diskspd_xml`] | the same as XML |
//! | [`iometer`] | access specifications of Iometer |
//! | [`minute`] | common parts of the logs of HammerDB |
//! | [`hammerdb`] | logs of HammerDB with results |
//! | [`hammerdb_counter`] | its logs of transaction counts |
//! | [`hammerdb_profile`] | its time profiles |
//! | [`hammerdb_table`] | its results as a table |
//! | [`pgbench`] | output of pgbench |
//! | [`pgbench_log`] | logs of intervals written by pgbench |

pub mod diskspd;
pub mod diskspd_xml;
pub mod fio;
pub mod fio_log;
pub mod hammerdb;
pub mod hammerdb_counter;
pub mod hammerdb_profile;
pub mod hammerdb_table;
pub mod iometer;
pub mod job;
pub mod minute;
pub mod pgbench;
pub mod pgbench_log;
pub mod run;

use super::kind::{By, Kind};

/// The kinds, most specific first.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "fio",
        about: "results of fio, as JSON",
        recognizes: By::Text(fio::recognizes),
        open: fio::open,
    },
    Kind {
        name: "diskspd-xml",
        about: "results of diskspd, as XML",
        recognizes: By::Text(diskspd_xml::recognizes),
        open: diskspd_xml::open,
    },
    Kind {
        name: "diskspd",
        about: "results of diskspd, as text",
        recognizes: By::Text(diskspd::recognizes),
        open: diskspd::open,
    },
    Kind {
        name: "iometer-icf",
        about: "access specifications of Iometer",
        recognizes: By::Text(iometer::recognizes),
        open: iometer::open,
    },
    Kind {
        name: "hammerdb-counter",
        about: "transactions counted by HammerDB from time to time",
        recognizes: By::Text(hammerdb_counter::recognizes),
        open: hammerdb_counter::open,
    },
    Kind {
        name: "hammerdb-profile",
        about: "time profiles of HammerDB (hdbxtprofile.log, job ID timing)",
        recognizes: By::Text(hammerdb_profile::recognizes),
        open: hammerdb_profile::open,
    },
    Kind {
        name: "hammerdb-table",
        about: "results of HammerDB as a table",
        recognizes: By::Text(hammerdb_table::recognizes),
        open: hammerdb_table::open,
    },
    Kind {
        name: "hammerdb",
        about: "logs of HammerDB with results",
        recognizes: By::Text(hammerdb::recognizes),
        open: hammerdb::open,
    },
    Kind {
        name: "pgbench",
        about: "what pgbench prints",
        recognizes: By::Text(pgbench::recognizes),
        open: pgbench::open,
    },
    Kind {
        name: "pgbench-table",
        about: "latencies of pgbench per second, as pgbench-tools keeps them",
        recognizes: By::Text(pgbench_log::recognizes_table),
        open: pgbench_log::open_table,
    },
    Kind {
        name: "pgbench-log",
        about: "what pgbench logs per interval, with --aggregate-interval",
        recognizes: By::Text(pgbench_log::recognizes),
        open: pgbench_log::open,
    },
    Kind {
        name: "fio-log",
        about: "a log of fio; its file's name says of what",
        recognizes: By::Text(fio_log::recognizes),
        open: fio_log::open,
    },
    Kind {
        name: "fio-lat-log",
        about: "a log of fio: latencies",
        recognizes: By::Text(fio_log::never),
        open: fio_log::open_lat,
    },
    Kind {
        name: "fio-bw-log",
        about: "a log of fio: bandwidth",
        recognizes: By::Text(fio_log::never),
        open: fio_log::open_bw,
    },
    Kind {
        name: "fio-iops-log",
        about: "a log of fio: operations a second",
        recognizes: By::Text(fio_log::never),
        open: fio_log::open_iops,
    },
];
