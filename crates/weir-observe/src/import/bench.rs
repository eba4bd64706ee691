//! Results of benchmarks: what a load generator says of the load that it made.
//!
//! A result is one sample at the end of its run, whose rates and means hold over the run; what
//! a benchmark says from interval to interval is a sample each.
//!
//! | module | holds |
//! |---|---|
//! | [`job`] | jobs, what is known of them, and where in time a run is |
//! | [`fio`] | results of fio, as JSON |
//! | [`fio_log`] | the logs that fio writes from interval to interval |
//! | [`run`] | a run of diskspd, however it is written |
//! | [`diskspd`] | results of diskspd, as text |
//! | [`diskspd_xml`] | the same as XML |
//! | [`iometer`] | access specifications of Iometer |
//! | [`minute`] | what the logs of HammerDB have in common |
//! | [`hammerdb`] | logs of HammerDB with results |
//! | [`hammerdb_counter`] | its logs of transactions counted from time to time |
//! | [`hammerdb_table`] | its results as a table |
//! | [`pgbench`] | what pgbench prints |
//! | [`pgbench_log`] | what pgbench logs per interval |

pub mod diskspd;
pub mod diskspd_xml;
pub mod fio;
pub mod fio_log;
pub mod hammerdb;
pub mod hammerdb_counter;
pub mod hammerdb_table;
pub mod iometer;
pub mod job;
pub mod minute;
pub mod pgbench;
pub mod pgbench_log;
pub mod run;
