//! Results of benchmarks.
//!
//! A result is one sample at the end of its run; its rates and means hold over the run. Reports of
//! intervals are a sample each.
//!
//! | module | holds |
//! |---|---|
//! | `job` | jobs, their attributes, and the times of runs |
//! | `fio` | results of fio, as JSON |
//! | `fio_log` | logs of intervals written by fio |
//! | `run` | a run of diskspd in any format |
//! | `diskspd` | results of diskspd, as text |
//! | `diskspd_xml` | the same as XML |
//! | `iometer` | access specifications of Iometer |
//! | `minute` | common parts of the logs of HammerDB |
//! | `hammerdb` | logs of HammerDB with results |
//! | `hammerdb_counter` | its logs of transaction counts |
//! | `hammerdb_profile` | its time profiles |
//! | `hammerdb_table` | its results as a table |
//! | `pgbench` | output of pgbench |
//! | `pgbench_log` | logs of intervals written by pgbench |

mod diskspd;
mod diskspd_xml;
pub(crate) mod fio;
mod fio_log;
mod hammerdb;
mod hammerdb_counter;
mod hammerdb_profile;
mod hammerdb_table;
mod iometer;
pub(crate) mod job;
mod minute;
mod pgbench;
pub(crate) mod pgbench_log;
mod run;

use crate::kind::Kind;

/// The kinds, most specific first.
pub(crate) const KINDS: &[Kind] = &[
    fio::KIND,
    diskspd_xml::KIND,
    diskspd::KIND,
    iometer::KIND,
    hammerdb_counter::KIND,
    hammerdb_profile::KIND,
    hammerdb_table::KIND,
    hammerdb::KIND,
    pgbench::KIND,
    pgbench_log::TABLE_KIND,
    pgbench_log::KIND,
    fio_log::KIND,
    fio_log::LATENCY_KIND,
    fio_log::BANDWIDTH_KIND,
    fio_log::IOPS_KIND,
];
