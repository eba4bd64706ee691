//! What PostgreSQL counts, as psql or any client saves it.
//!
//! | module | holds |
//! |---|---|
//! | [`stat`] | `pg_stat_io`, `pg_stat_database`, `pg_stat_bgwriter` and their kin |

pub(in crate::import) mod stat;
