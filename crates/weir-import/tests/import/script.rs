//! The script for SQL Server.

use crate::bed::{input, read, try_read};
use weir_import::Options;
use weir_import::live::sqlserver::SCRIPT;

/// Returns the words of the statements that a server executes: without comments, and with the texts
/// of dynamic SQL.
fn words() -> Vec<String> {
    let mut code = String::new();
    let mut rest = SCRIPT;
    while let Some((before, comment)) = rest.split_once("/*") {
        code.push_str(before);
        rest = comment.split_once("*/").expect("a comment that ends").1;
    }
    code.push_str(rest);
    assert!(!code.contains("--"), "comments are of one kind, so that this test sees them");
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '@');
    code.split(|c| !is_word(c)).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

#[test]
fn the_script_changes_nothing() {
    let changes = [
        "insert",
        "update",
        "delete",
        "merge",
        "truncate",
        "into",
        "create",
        "alter",
        "drop",
        "dbcc",
        "grant",
        "revoke",
        "deny",
        "kill",
        "reconfigure",
        "shutdown",
        "backup",
        "restore",
        "sp_configure",
        "execute",
        "use",
        "waitfor",
        "begin tran",
        "openrowset",
        "bulk",
        "write",
        "writetext",
        "updatetext",
        "enable",
        "disable",
        "clear",
        "set identity_insert",
    ];
    let words = words();
    for word in &words {
        assert!(!changes.contains(&word.as_str()), "{word}");
    }
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).map_or("", String::as_str);
        match word.as_str() {
            // Nothing is run but what stands here.
            "exec" => assert_eq!(next, "sys.sp_executesql"),
            "checkpoint" => assert_eq!(next, "pages", "a counter, and no statement"),
            "set" => assert!(["nocount", "@query", "@columns"].contains(&next), "set {next}"),
            "declare" => assert!(next.starts_with('@'), "declare {next}"),
            _ => {}
        }
    }
    // Every source of rows is a view or function of the system.
    for (at, _) in
        words.iter().enumerate().filter(|(_, word)| ["from", "join"].contains(&word.as_str()))
    {
        let from = words.get(at + 1).expect("a source");
        assert!(from.starts_with("sys."), "from {from}");
    }
}

/// Views that only some editions have are queried only after a check of the edition.
#[test]
fn views_of_azure_alone_are_guarded() {
    for (view, guard) in [
        (
            "FROM sys.dm_instance_resource_governance",
            "OBJECT_ID(N'sys.dm_instance_resource_governance')",
        ),
        (
            "FROM sys.dm_user_db_resource_governance",
            "OBJECT_ID(N'sys.dm_user_db_resource_governance')",
        ),
        ("sys.dm_db_wait_stats", "CASE @edition WHEN 5 THEN N'FROM sys.dm_db_wait_stats'"),
        ("d.physical_database_name", "CASE WHEN @edition IN (5, 8) THEN N'LEFT JOIN sys.databases"),
    ] {
        let view = SCRIPT.find(view).expect(view);
        let guard = SCRIPT.find(guard).expect(guard);
        assert!(guard <= view, "{guard} {view}");
    }
}

/// The result sets of the script, as sqlcmd writes them with -s "," -W.
fn result(time: &str, batches: u64, log: u64, hits: u64) -> String {
    format!(
        "collection_time_utc,database_name,file_name,file_id,type_desc,physical_name,size_pages,\
         max_size,growth,is_percent_growth,num_of_reads,num_of_bytes_read,io_stall_read_ms,\
         io_stall_queued_read_ms,num_of_writes,num_of_bytes_written,io_stall_write_ms,\
         io_stall_queued_write_ms,size_on_disk_bytes\n\
         ---,---,---,---,---,---,---,---,---,---,---,---,---,---,---,---,---,---,---\n\
         {time},sales,sales_data,1,ROWS,E:\\sales.mdf,1024,-1,8192,0,10,81920,50,5,20,163840,90,9,8388608\n\n\
         collection_time_utc,wait_type,waiting_tasks_count,wait_time_ms,max_wait_time_ms,\
         signal_wait_time_ms\n---,---,---,---,---,---\n\
         {time},WRITELOG,5,12,3,1\n{time},IO_QUEUE_LIMIT,0,0,0,0\n\n\
         collection_time_utc,object_name,counter_name,instance_name,cntr_value,cntr_type\n\
         ---,---,---,---,---,---\n\
         {time},SQLServer:SQL Statistics,Batch Requests/sec,,{batches},272696576\n\
         {time},SQLServer:Databases,Log Bytes Flushed/sec,sales,{log},272696576\n\
         {time},SQLServer:Databases,Log Bytes Flushed/sec,_Total,{log},272696576\n\
         {time},SQLServer:Databases,Log Flush Waits/sec,sales,7,272696576\n\
         {time},SQLServer:Buffer Manager,Buffer cache hit ratio,,{hits},537003264\n\
         {time},SQLServer:Buffer Manager,Buffer cache hit ratio base,,4000,1073939712\n\
         {time},SQLServer:Buffer Manager,Page life expectancy,,4711,65792\n\
         {time},SQLServer:Buffer Manager,Page reads/sec,,321,272696576\n\
         {time},SQLServer:Memory Manager,Total Server Memory (KB),,2048,65792\n\n\
         collection_time_utc,instance_max_log_rate,volume_local_iops\n---,---,---\n\
         {time},50331648,32000\n"
    )
}

#[test]
fn the_result_is_read_completely() {
    let (before, after) = ("2026-11-22 10:00:00.1234567", "2026-11-22 10:01:00.1234567");
    let inputs = vec![
        input("before.csv", result(before, 1000, 4096, 3000), None),
        input("after.csv", result(after, 1600, 8192, 3600), None),
    ];
    let both = try_read(inputs, &Options::default()).expect("two samples");
    assert_eq!(both.seconds(), [0.0, 60.0]);
    assert_eq!(both.all("host", "batch_requests"), [1000.0, 1600.0]);
    assert_eq!(both.all("sales", "log_bytes"), [4096.0, 8192.0]);
    assert_eq!(both.all("host", "log_bytes"), [4096.0, 8192.0]);
    assert_eq!(both.all("sales", "log_flush_waits"), [7.0, 7.0]);
    assert_eq!(both.all("host", "buffer_hit_share"), [0.75, 0.9]);
    assert_eq!(both.all("host", "page_life_expectancy_s"), [4711.0, 4711.0]);
    assert_eq!(both.all("host", "page_reads"), [321.0, 321.0]);
    assert_eq!(both.all("host", "server_memory_bytes"), [2_097_152.0, 2_097_152.0]);
    assert_eq!(both.all("sales_data", "io_stall_queued_read_ms"), [5.0, 5.0]);
    assert_eq!(both.all("IO_QUEUE_LIMIT", "waiting_tasks_count"), [0.0, 0.0]);
    assert_eq!(both.attribute("host", "log_bytes_per_s_limit"), Some(50_331_648.into()));
    let host = both.entity("host");
    let limit = both.observation.contents().find(host, "log_bytes_per_s_limit");
    assert_eq!(limit, None, "a limit that stays is no series");
    assert!(both.summary.notes.iter().all(|note| !note.contains("not used")), "{:?}", both.summary);
    assert!(!both.notes("has no time"), "{:?}", both.summary.notes);
}

/// Windows and Linux name the objects of a named instance after it, Azure as one of an id.
#[test]
fn counters_of_named_instances_and_without_types() {
    let text = "object_name,counter_name,instance_name,cntr_value\n\
                MSSQL$PROD:SQL Statistics            ,Batch Requests/sec   ,   ,12\n\
                MSSQL$PROD:Databases ,Transactions/sec ,sales ,34\n\
                MSSQL$PROD:Locks,Lock Waits/sec,_Total,5\n";
    let read = read(text);
    assert_eq!(read.kind(), "sqlserver");
    assert_eq!(read.all("host", "batch_requests"), [12.0]);
    assert_eq!(read.all("sales", "transactions"), [34.0]);
    assert!(read.notes("not used: the counter locks: lock waits/sec"), "{:?}", read.summary.notes);
}

#[test]
fn the_type_of_a_counter_overrides_its_name() {
    let text = "object_name,counter_name,instance_name,cntr_value,cntr_type\n\
                SQLServer:SQL Statistics,Batch Requests/sec,,12,65792\n\
                SQLServer:General Statistics,User Connections,,3,65792\n";
    let read = read(text);
    assert_eq!(read.all("host", "users"), [3.0]);
    let host = read.entity("host");
    assert_eq!(read.observation.contents().find(host, "batch_requests"), None);
}

#[test]
fn a_changing_limit_is_a_gauge_too() {
    let text = "collection_time_utc,database_name,slo_name,primary_max_log_rate,primary_group_max_io\n\
                2026-11-22 10:00:00,sales,GP_4,1000,500\n\
                2026-11-22 10:00:10,sales,GP_8,2000,500\n";
    let read = read(text);
    assert_eq!(read.attribute("sales", "log_bytes_per_s_limit"), Some(1000.into()));
    assert_eq!(read.values("sales", "log_bytes_per_s_limit"), [None, Some(2000.0)]);
    assert_eq!(read.observation.contents().find(read.entity("sales"), "iops_limit"), None);
}
