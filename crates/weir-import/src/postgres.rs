//! What PostgreSQL counts, as psql or any client saves it.
//!
//! | module | holds |
//! |---|---|
//! | `activity` | `pg_stat_activity` |
//! | `pgstat` | what `pgstat -s database` prints |
//! | `stat` | `pg_stat_io`, `pg_stat_database`, `pg_stat_bgwriter` and their kin |

mod activity;
pub(crate) mod pgstat;
pub(crate) mod stat;

use super::kind::{By, Kind};

/// What is read of it, the more special first.
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
