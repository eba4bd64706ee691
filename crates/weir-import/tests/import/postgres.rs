//! Statistics of PostgreSQL.

use crate::bed::{read, refused};
use crate::samples::sample;

const IO_16: &str = "\
    backend_type    |    object     | context | reads | read_time | writes | op_bytes | hits | stats_reset
--------------------+---------------+---------+-------+-----------+--------+----------+------+------------
 client backend     | relation      | normal  |   100 |     250.5 |      4 |     8192 |  900 | 2024-01-01
 checkpointer       | relation      | normal  |       |           |     50 |     8192 |      | 2024-01-01
(2 rows)

";

#[test]
fn io_of_16_and_of_18() {
    let read_16 = read(IO_16);
    assert_eq!(read_16.kind(), "postgres");
    let who = "client backend / relation / normal";
    assert_eq!(read_16.all(who, "reads"), [100.0]);
    assert_eq!(read_16.all(who, "read_bytes"), [819_200.0]);
    assert_eq!(read_16.all(who, "io_stall_read_ms"), [250.5]);
    let other = "checkpointer / relation / normal";
    assert_eq!(read_16.all(other, "write_bytes"), [409_600.0]);
    assert_eq!(read_16.observation.contents().find(read_16.entity(other), "reads"), None);
    let text = "ts,backend_type,object,context,reads,read_bytes,read_time\n\
                2025-10-01 10:00:00+00,client backend,relation,bulkread,10,1310720,0\n\
                2025-10-01 10:00:10+00,client backend,relation,bulkread,20,2621440,0\n";
    let read = read(text);
    let who = "client backend / relation / bulkread";
    assert_eq!(read.seconds(), [0.0, 10.0]);
    assert_eq!(read.all(who, "read_bytes"), [1_310_720.0, 2_621_440.0]);
    assert!(read.notes("it was not timed (2 times)"), "{:?}", read.summary.notes);
    assert!(!read.notes("no zone"), "{:?}", read.summary.notes);
}

#[test]
fn checkpoints_of_14_and_of_17_are_the_same() {
    let old = "checkpoints_timed,checkpoints_req,checkpoint_write_time,buffers_checkpoint,\
               buffers_clean,buffers_backend\n10,2,5000.5,1000,20,3\n";
    let new = "num_timed,num_requested,write_time,buffers_written\n10,2,5000.5,1000\n";
    for text in [old, new] {
        let read = read(text);
        assert_eq!(read.all("host", "checkpoints_timed"), [10.0]);
        assert_eq!(read.all("host", "checkpoint_write_time_ms"), [5000.5]);
        assert_eq!(read.all("host", "checkpoint_bytes"), [8_192_000.0]);
        assert!(read.notes("pages of 8 KiB"), "{:?}", read.summary.notes);
    }
    assert_eq!(read(old).all("host", "backend_write_bytes"), [24_576.0]);
}

#[test]
fn watched_results_have_times() {
    let table = " wal_records | wal_bytes | wal_sync | wal_sync_time \n\
                 -------------+-----------+----------+---------------\n";
    let text = format!(
        "Sun 22 Nov 2026 04:45:14 PM UTC (every 2s)\n\n{table}          10 |      4096 |        1 \
         |           2.5\n(1 row)\n\nSun 22 Nov 2026 04:45:16 PM UTC (every 2s)\n\n{table}          \
         30 |      8192 |        2 |           3.5\n(1 row)\n\n"
    );
    let read = read(&text);
    assert_eq!(read.start().as_deref(), Some("2026-11-22T16:45:14Z"));
    assert_eq!(read.seconds(), [0.0, 2.0]);
    assert_eq!(read.all("host", "wal_bytes"), [4096.0, 8192.0]);
    assert_eq!(read.all("host", "wal_sync_time_ms"), [2.5, 3.5]);
}

#[test]
fn databases_as_records() {
    let text = "-[ RECORD 1 ]--\ndatname   | \nblks_read | 5\nblks_hit | 15\nxact_commit | 0\n\
                -[ RECORD 2 ]--\ndatname   | app\nblks_read | 10\nblks_hit | 90\nxact_commit | 7\n";
    let read = read(text);
    assert_eq!(read.all("app", "page_lookups"), [100.0]);
    assert_eq!(read.all("app", "transactions"), [7.0]);
    assert_eq!(read.all("shared objects", "page_misses"), [5.0]);
}

#[test]
fn malformed_input_is_rejected() {
    let wrong = IO_16.replace("|   100 |", "|   1OO |");
    assert_eq!(refused(&wrong), "line 3: reads is \"1OO\", which is not a number");
    let wrong = IO_16.replace(" checkpointer       | relation ", " checkpointer ");
    assert_eq!(refused(&wrong), "line 4: a row has 8 fields, but its header has 9");
}

#[test]
fn the_sample_has_the_published_figures() {
    let Some(read) = sample("pg_stat/pg_stat_database_pg10_expanded.txt") else { return };
    let (lookups, misses) =
        (read.all("postgres", "page_lookups"), read.all("postgres", "page_misses"));
    assert!((1.0 - misses[0] / lookups[0] - 0.965_089).abs() < 1e-6);
    assert_eq!(read.all("postgres", "transactions"), [2320.0]);
    assert!(read.notes("it was not timed"), "{:?}", read.summary.notes);
    let since = read.observation.header.source.about.get("counted since");
    assert_eq!(since.map(String::as_str), Some("2017-11-10 19:31:05.052166-05"));
}

/// Output of pgstat; the first row covers the time since the reset.
const PGSTAT: &str = "\
- backends - ------ xacts ------ -------------- blocks -------------- ------ temp ------
                commit rollback     read    hit read_time write_time    files     bytes
         1      224041       17    24768 2803774         0          0        1  14016512
        11          20        1        0    500         5          0        0         0
         1           3        0        2    205         0          0        1      8192
";

#[test]
fn rows_of_pgstat_add_up_to_counters() {
    let read = read(PGSTAT);
    assert_eq!((read.kind(), read.seconds()), ("pgstat", vec![0.0, 1.0, 2.0]));
    for (metric, expect) in [
        ("users", [1.0, 11.0, 1.0]),
        ("transactions", [224_041.0, 224_061.0, 224_064.0]),
        ("transactions_rolled_back", [17.0, 18.0, 18.0]),
        ("page_misses", [24_768.0, 24_768.0, 24_770.0]),
        ("page_hits", [2_803_774.0, 2_804_274.0, 2_804_479.0]),
        ("temp_bytes", [14_016_512.0, 14_016_512.0, 14_024_704.0]),
    ] {
        assert_eq!(read.all("host", metric), expect, "{metric}");
    }
    assert_eq!(read.values("host", "io_stall_read_ms"), [None, Some(5.0), Some(5.0)]);
    let contents = read.observation.contents();
    assert_eq!(contents.find(read.entity("host"), "io_stall_write_ms"), None, "nothing was timed");
    assert!(read.notes("files"), "{:?}", read.summary.notes);
}

#[test]
fn malformed_pgstat() {
    let wrong = PGSTAT.replace("11          20", "11          2o");
    assert_eq!(refused(&wrong), "line 4: \"2o\" is not a number");
    let wrong = PGSTAT.replace("0         0\n", "0\n");
    assert_eq!(refused(&wrong), "line 4: a row has 8 columns, but its header has 9");
    let other = "- backends - ------ tuples ------\n  ret fet\n 1 2 3\n";
    assert_eq!(
        refused(&format!("{PGSTAT}{other}")),
        "line 7: another table begins here: give each a file of its own"
    );
    crate::bed::survives(PGSTAT, "pgstat");
}

#[test]
fn a_sample_of_pgstat() {
    let Some(root) = crate::samples::folder() else { return };
    let path = root.join("pg_stat/pgstat_vmstat_like_outputs.txt");
    let text = std::fs::read_to_string(path).expect("a sample");
    // The file has an output of each kind.
    let begin = text.find("$ pgstat -s database 1").expect("that of databases");
    let own = &text[begin..];
    let read = read(&own[..own.find("\n----").expect("its end")]);
    let transactions = read.all("host", "transactions");
    // The last is the sum of the seventeen numbers of the column.
    assert_eq!((transactions.len(), transactions[1]), (17, 224_041.0));
    assert_eq!(transactions[16], 225_164.0);
}

#[test]
fn waiting_sessions_are_counted_in_each_list() {
    let text = "now,pid,state,wait_event_type,wait_event,backend_type\n\
                2026-11-22 10:00:00+00,11,active,IO,DataFileRead,client backend\n\
                2026-11-22 10:00:00+00,12,active,IO,DataFileRead,client backend\n\
                2026-11-22 10:00:00+00,13,active,,,client backend\n\
                2026-11-22 10:00:00+00,14,idle,Client,ClientRead,client backend\n\
                2026-11-22 10:00:00+00,15,,Activity,WalWriterMain,walwriter\n\
                2026-11-22 10:00:01+00,11,active,IO,WALSync,client backend\n\
                2026-11-22 10:00:01+00,16,,IO,DataFileWrite,checkpointer\n";
    let read = read(text);
    assert_eq!(read.kind(), "postgres");
    assert_eq!(read.all("IO / DataFileRead", "waiting"), [2.0, 0.0]);
    assert_eq!(read.values("IO / WALSync", "waiting"), [None, Some(1.0)]);
    assert_eq!(read.all("host", "active_sessions"), [3.0, 1.0]);
    let names = read.observation.contents().entities.iter().map(|entity| entity.name.as_str());
    let idle = ["Client / ClientRead", "Activity / WalWriterMain"];
    assert!(!names.into_iter().any(|name| idle.contains(&name)));
}

#[test]
fn sessions_counted_by_the_server() {
    let text = " wait_event_type |  wait_event  | state  | sessions \n\
                -----------------+--------------+--------+----------\n \
                IO              | DataFileRead | active |        3\n \
                                |              | active |        2\n(2 rows)\n\n";
    let read = read(text);
    assert_eq!(read.all("IO / DataFileRead", "waiting"), [3.0]);
    assert_eq!(read.all("host", "active_sessions"), [5.0]);
}
