//! Performance counters of Windows and of SQL Server.
//!
//! | module | holds |
//! |---|---|
//! | [`perfmon`] | logs of PerfMon, `relog` and `typeperf`: one column per counter |
//! | [`get_counter`] | tables with a row for each counter and time |
//! | [`readings`] | output of `Get-Counter` |
//! | `path` | counter paths: host, object, instance, counter |
//! | `counter` | the meaning of counters |
//! | `board` | counters to series |
//! | `row` | fields and numbers |

mod board;
mod counter;
pub mod get_counter;
mod path;
pub mod perfmon;
pub mod readings;
mod row;

use super::kind::{By, Kind};

/// The kinds, most specific first.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "perfmon",
        about: "a log of PerfMon, relog or typeperf, as CSV or TSV",
        recognizes: By::Text(perfmon::recognizes),
        open: perfmon::open,
    },
    Kind {
        name: "get-counter",
        about: "a table with a row for each Windows counter and time, as of Get-Counter",
        recognizes: By::Text(get_counter::recognizes),
        open: get_counter::open,
    },
    Kind {
        name: "get-counter-readings",
        about: "what Get-Counter prints or exports of its readings",
        recognizes: By::Text(readings::recognizes),
        open: readings::open,
    },
];
