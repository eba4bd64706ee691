//! The queries for PostgreSQL: views of statistics, each with all columns, so that every version
//! returns all of its counters.

/// The first version with a view, and the query.
const QUESTIONS: &[(u32, &str)] = &[
    (0, "SELECT * FROM pg_catalog.pg_stat_database"),
    (0, "SELECT * FROM pg_catalog.pg_stat_bgwriter"),
    (14, "SELECT * FROM pg_catalog.pg_stat_wal"),
    (16, "SELECT * FROM pg_catalog.pg_stat_io"),
    (17, "SELECT * FROM pg_catalog.pg_stat_checkpointer"),
    (0, ACTIVITY),
];

/// Sessions by their wait, without the session that asks.
const ACTIVITY: &str = "SELECT wait_event_type, wait_event, state, count(*) AS sessions \
    FROM pg_catalog.pg_stat_activity WHERE pid <> pg_catalog.pg_backend_pid() \
    GROUP BY wait_event_type, wait_event, state";

/// The oldest version supported.
pub const OLDEST: u32 = 13;

/// Returns the version as a number (`160004`), and whether sessions and statistics of other users
/// are visible: `t` or `f`.
pub const WHO: &str = "SELECT pg_catalog.current_setting('server_version_num') AS version, \
    pg_catalog.current_setting('server_version') AS called, \
    pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE') AS sees_all, \
    pg_catalog.current_setting('track_io_timing') AS is_timed";

/// Returns all queries for a version (16, not 160004), in one text.
#[must_use]
pub fn questions(version: u32) -> String {
    let known = QUESTIONS.iter().filter(|(since, _)| version >= *since);
    known.map(|(_, question)| *question).collect::<Vec<_>>().join(";\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the release notes: `pg_stat_wal` came with 14, `pg_stat_io` with 16,
    /// `pg_stat_checkpointer` with 17.
    #[test]
    fn a_version_gets_only_queries_it_supports() {
        let check = |version, wal, io, checkpointer| {
            let text = questions(version);
            assert_eq!(text.contains("pg_stat_wal"), wal, "{version}");
            assert_eq!(text.contains("pg_stat_io"), io, "{version}");
            assert_eq!(text.contains("pg_stat_checkpointer"), checkpointer, "{version}");
            assert!(text.contains("pg_stat_database") && text.contains("pg_stat_activity"));
        };
        check(13, false, false, false);
        check(15, true, false, false);
        check(16, true, true, false);
        check(18, true, true, true);
    }
}
