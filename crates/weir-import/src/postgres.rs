//! Statistics of PostgreSQL, as psql or other clients save them.
//!
//! | module | holds |
//! |---|---|
//! | `activity` | `pg_stat_activity` |
//! | `pgstat` | output of `pgstat -s database` |
//! | `stat` | `pg_stat_io`, `pg_stat_database`, `pg_stat_bgwriter` and related views |

mod activity;
mod pgstat;
pub(crate) mod stat;

use crate::kind::Kind;

/// The kinds, most specific first.
pub(crate) const KINDS: &[Kind] = &[pgstat::KIND, stat::KIND];
