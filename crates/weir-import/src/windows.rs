//! Performance counters of Windows and of SQL Server.
//!
//! | module | holds |
//! |---|---|
//! | `perfmon` | logs of PerfMon, `relog` and `typeperf`: one column per counter |
//! | `get_counter` | tables with a row for each counter and time |
//! | `readings` | output of `Get-Counter` |
//! | `path` | counter paths: host, object, instance, counter |
//! | `counter` | the meaning of counters |
//! | `board` | counters to series |
//! | `row` | fields and numbers |

mod board;
mod counter;
mod get_counter;
mod path;
mod perfmon;
mod readings;
mod row;

use crate::kind::Kind;

/// The kinds, most specific first.
pub(crate) const KINDS: &[Kind] = &[perfmon::KIND, get_counter::KIND, readings::KIND];
