//! Statistics of PostgreSQL, as psql or other clients save them.
//!
//! | module | holds |
//! |---|---|
//! | `activity` | `pg_stat_activity` |
//! | `pgstat` | output of `pgstat -s database` |
//! | `stat` | `pg_stat_io`, `pg_stat_database`, `pg_stat_bgwriter` and related views |

mod activity;
pub(crate) mod pgstat;
pub(crate) mod stat;

use super::kind::{By, Kind};

/// The kinds, most specific first.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "pgstat",
        about: "what pgstat -s database prints of PostgreSQL",
        recognizes: By::Text(pgstat::recognizes),
        open: pgstat::open,
    },
    Kind {
        name: "postgres",
        about: "pg_stat_io, pg_stat_database and other statistics of PostgreSQL",
        recognizes: By::Text(stat::recognizes),
        open: stat::open,
    },
];
