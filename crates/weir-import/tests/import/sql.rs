//! Result sets of SQL Server.

use crate::bed::{Read, input, read, refused, try_read};
use crate::samples::{sample, try_sample};
use weir_import::{FileCounts, Options, TimeUnit};
use weir_observe::{Attribute, EntityId};
use weir_units::Span;

const HEAD: &str = "collection_time,database_name,file_name,type_desc,num_of_reads,\
num_of_bytes_read,io_stall_read_ms,io_stall_queued_read_ms,num_of_writes,num_of_bytes_written,\
io_stall_write_ms,io_stall_queued_write_ms,io_stall,size_on_disk_bytes\n";

/// Returns the values of a metric of `database/file`.
#[track_caller]
fn file_values(read: &Read, who: &str, metric: &str) -> Vec<Option<f64>> {
    let (database, file) = who.split_once('/').expect("a database and a file");
    let contents = read.observation.contents();
    let is_it = |at: &usize| {
        let entity = &contents.entities[*at];
        let parent = entity.parent.and_then(|parent| contents.entity(parent));
        entity.name == file && parent.is_some_and(|parent| parent.name == database)
    };
    let at = (0..contents.entities.len()).find(is_it).unwrap_or_else(|| panic!("no {who}"));
    let id = contents.find(EntityId(u32::try_from(at).expect("few")), metric);
    let id = id.unwrap_or_else(|| panic!("{who} has no {metric}"));
    let by = 10_f64.powi(contents.series[id.0 as usize].scale.into());
    let column = read.observation.column(id).expect("a column");
    #[expect(clippy::cast_precision_loss, reason = "small")]
    column
        .iter()
        .skip(read.lead())
        .map(|v| v.map(|v| (v as f64 * by * 1e3).round() / 1e3))
        .collect()
}

fn number(number: u64) -> Option<Attribute> {
    Some(Attribute::Number(number))
}

#[test]
fn files_in_descending_order_with_missing_values() {
    let text = format!(
        "{HEAD}2024-05-01 10:00:15,sales,sales_data,ROWS,200,1638400,900,40,NULL,,10,5,910,8192\n\
         2024-05-01 10:00:00,sales,sales_data,ROWS,100,819200,400,20,7,57344,5,0,405,8192\n"
    );
    let read = read(&text);
    assert_eq!(read.kind(), "sqlserver");
    assert_eq!(read.start().as_deref(), Some("2024-05-01T10:00:00Z"));
    assert_eq!(read.seconds(), [0.0, 15.0]);
    assert_eq!(read.all("sales_data", "num_of_reads"), [100.0, 200.0]);
    assert_eq!(read.all("sales_data", "io_stall_queued_read_ms"), [20.0, 40.0]);
    assert_eq!(read.values("sales_data", "num_of_writes"), [Some(7.0), None]);
    assert_eq!(read.attribute("sales_data", "role"), Some("data".into()));
    assert_eq!(read.attribute("sales_data", "size_bytes"), number(8192));
    assert!(read.notes("no zone"), "{:?}", read.summary.notes);
    assert!(!read.notes("not used"), "{:?}", read.summary.notes);
}

#[test]
fn files_by_number_with_machine_ticks() {
    let text = "database_id\tfile_id\tsample_ms\tnum_of_reads\tio_stall_read_ms\n\
                2\t1\t5000\t10\t20\n5\t2\t5001\t30\t40\n\
                2\t1\t20000\t11\t22\n5\t2\t20000\t33\t44\n";
    let read = read(text);
    assert_eq!((read.start(), read.seconds()), (None, vec![0.0, 15.0]));
    assert_eq!(file_values(&read, "tempdb/file 1", "num_of_reads"), [Some(10.0), Some(11.0)]);
    assert_eq!(
        file_values(&read, "database 5/file 2", "io_stall_read_ms"),
        [Some(40.0), Some(44.0)]
    );
    assert_eq!(read.attribute("file 2", "role"), Some("log".into()));
    assert!(read.notes("its files are shown by number"), "{:?}", read.summary.notes);
}

const SEVERAL: &str = "\
=== 1. Files ===
database_id file_id type_desc name       physical_name      size        max_size    growth      is_percent_growth
----------- ------- --------- ---------- ------------------ ----------- ----------- ----------- -----------------
          7       1 ROWS      orders     E:\\data\\orders.mdf      131072          -1        8192                 0
          7       2 LOG       orders_log F:\\log\\orders.ldf        16384   268435456          10                 1
=== 2. Stalls ===
database_id file_id num_of_reads         io_stall_read_ms     io_stall
----------- ------- -------------------- -------------------- --------
          7       1                  100                  250      300
          7       2                    3                    4       50

(2 rows affected)

=== 3. Waits ===
wait_type    waiting_tasks_count wait_time_ms
------------ ------------------- ------------
WRITELOG                    1070          954
";

#[test]
fn several_results_of_one_time_are_one_sample() {
    let read = read(SEVERAL);
    assert_eq!(read.summary.samples, 1);
    assert_eq!(file_values(&read, "database 7/orders", "num_of_reads"), [Some(100.0)]);
    assert_eq!(read.attribute("orders", "size_bytes"), number(131_072 * 8192));
    assert_eq!(read.attribute("orders", "max_size_bytes"), None, "-1 is no limit");
    assert_eq!(read.attribute("orders", "growth_bytes"), number(8192 * 8192));
    assert_eq!(read.attribute("orders_log", "max_size_bytes"), number(2 << 40));
    assert_eq!(read.attribute("orders_log", "growth_percent"), number(10));
    assert_eq!(read.attribute("orders_log", "role"), Some("log".into()));
    assert_eq!(read.attribute("orders", "physical_name"), Some("E:\\data\\orders.mdf".into()));
    assert_eq!(read.all("WRITELOG", "wait_time_ms"), [954.0]);
    assert!(read.notes("counters need a second sample"), "{:?}", read.summary.notes);
}

#[test]
fn files_without_names_are_matched_between_times() {
    let text = "time,database_name,num_of_reads,io_stall_read_ms\n\
                2024-05-01T10:00:00Z,a,1,2\n2024-05-01T10:00:00Z,a,3,4\n\
                2024-05-01T10:00:01Z,a,5,6\n2024-05-01T10:00:01Z,a,7,8\n";
    let read = read(text);
    assert_eq!(file_values(&read, "a/file 1", "num_of_reads"), [Some(1.0), Some(5.0)]);
    assert_eq!(file_values(&read, "a/file 2", "num_of_reads"), [Some(3.0), Some(7.0)]);
    assert!(read.notes("numbered in order"), "{:?}", read.summary.notes);
}

#[test]
fn waits_before_and_after() {
    let text = "before\nwait_type,waiting_tasks_count,wait_time_ms\n\
                ---------,-------------------,------------\nWRITELOG,6,12\n\n(1 rows affected)\n\n\
                after\nwait_type,waiting_tasks_count,wait_time_ms\n\
                ---------,-------------------,------------\nLCK_M_X,3,900\nWRITELOG,10,30\n";
    let read = read(text);
    assert_eq!(read.seconds(), [0.0, 1.0]);
    assert_eq!(read.all("WRITELOG", "waiting_tasks_count"), [6.0, 10.0]);
    assert_eq!(read.values("LCK_M_X", "wait_time_ms"), [None, Some(900.0)]);
    assert!(read.notes("assumed to be 1 s apart"), "{:?}", read.summary.notes);
}

#[test]
fn waits_in_seconds_and_in_minutes_a_minute() {
    let text = "| wait_type | waiting_tasks_count | wait_s | pct |\n|:--|:--|:--|:--|\n\
                | WRITELOG | 1,070 | 0.954 | 35.3 |\n";
    let read_seconds = read(text);
    assert_eq!(read_seconds.all("WRITELOG", "wait_time_ms"), [954.0]);
    assert_eq!(read_seconds.all("WRITELOG", "waiting_tasks_count"), [1070.0]);
    let text = "WaitType,WaitTimesPerMinute,WaitingTasks\nWRITELOG,1.5,3\nLATCH_EX,2.25,1\n";
    let read = read(text);
    assert_eq!(read.all("WRITELOG", "wait_ms_per_s"), [1500.0]);
    assert!(read.notes("not used: WaitingTasks"), "{:?}", read.summary.notes);
}

#[test]
fn answers_in_json() {
    let plain = r#"[{"wait_type":"WRITELOG","waiting_tasks_count":6,"wait_time_ms":12},
        {"wait_type":"LCK_M_X","waiting_tasks_count":null,"wait_time_ms":1}]"#;
    let named = r#"{"schema":{"fields":[{"name":"wait_type"},{"name":"waiting_tasks_count"},
        {"name":"wait_time_ms"}]},"data":[{"0":"WRITELOG","1":"6","2":"12"},
        {"0":"LCK_M_X","1":"NULL","2":"1"}]}"#;
    for text in [plain, named] {
        let read = read(text);
        assert_eq!(read.all("WRITELOG", "wait_time_ms"), [12.0], "{text}");
        let missing =
            read.observation.contents().find(read.entity("LCK_M_X"), "waiting_tasks_count");
        assert_eq!(missing, None);
    }
}

#[test]
fn the_fastest_file_determines_the_interval() {
    let text = "db_name;file_name;size_gb;read_mbps;write_mbps;read_iops;write_iops;\
                read_latency_ms;write_latency_ms;write_io_latency_ms;read_mb;write_mb;\
                num_of_reads;num_of_writes;interval_mi;type\n\
                a;data;0,5;0,00;20,00;0;10;NULL;148,4;5,0;0,00;5700,00;0;2850;5;ROWS\n\
                a;log;0,25;0,00;0,00;0;0;NULL;4,0;4,0;0,00;0,50;0;57;5;LOG\n";
    let read = read(text);
    assert_eq!(read.all("data", "writes_per_s"), [10.0]);
    assert_eq!(read.all("log", "writes_per_s"), [0.2]);
    assert_eq!(read.all("data", "write_bytes_per_s"), [20.0 * 1_048_576.0]);
    assert_eq!(read.all("data", "write_latency_ns"), [148.4e6]);
    assert_eq!(read.all("data", "write_io_latency_ns"), [5e6]);
    assert_eq!(read.attribute("log", "size_bytes"), number(1 << 28));
    assert!(read.notes("its interval is 285 s"), "{:?}", read.summary.notes);
    // Its rates hold that long.
    let times = &read.observation.times;
    assert_eq!((times.len(), (times[1] - times[0]).nanos()), (2, 285_000_000_000));
}

#[test]
fn resources_and_limits() {
    let text = "end_time,avg_cpu_percent,avg_data_io_percent,avg_log_write_percent,\
                avg_instance_cpu_percent,cpu_limit\n\
                2021-05-15 19:39:34.607,12.5,100.00,0.50,3.00,4.00\n\
                2021-05-15 19:39:19.560,10.0,99.00,NULL,2.00,4.00\n";
    let read_shares = read(text);
    assert_eq!(read_shares.all("database", "data_io_share"), [0.99, 1.0]);
    assert_eq!(read_shares.values("database", "log_write_share"), [None, Some(0.005)]);
    assert_eq!(read_shares.all("host", "cpu"), [0.02, 0.03]);
    assert_eq!(read_shares.attribute("database", "vcores"), number(4));
    let text = "database_name,slo_name,primary_max_log_rate,primary_group_max_io,\
                instance_max_log_rate,volume_local_iops,dtu_limit\n\
                sales,SQLDB_GP_GEN5_8,37748736,2560,37748736,32000,NULL\n";
    let read = read(text);
    assert_eq!(read.attribute("sales", "iops_limit"), number(2560));
    assert_eq!(read.attribute("sales", "log_bytes_per_s_limit"), number(36 << 20));
    assert_eq!(read.attribute("host", "volume_local_iops_limit"), number(32_000));
    assert_eq!(read.attribute("sales", "dtu_limit"), None);
}

/// Two results saved without times, one before and one after.
#[test]
fn results_without_times_are_the_stated_interval_apart() {
    let waits = |tasks: u32| {
        format!("wait_type,waiting_tasks_count,wait_time_ms\nWRITELOG,{tasks},{}\n", tasks * 2)
    };
    let inputs =
        || vec![input("before.csv", waits(100), None), input("after.csv", waits(700), None)];
    let refused = try_read(inputs(), &Options::default()).expect_err("a missing interval");
    assert_eq!(
        refused.to_string(),
        "it has no time, and neither has before.csv; say how far they are \
         apart, with --every"
    );
    let options = Options { every: Some(weir_units::Span::from_secs(60)), ..Options::default() };
    let read = try_read(inputs(), &options).expect("two samples");
    assert_eq!(read.all("WRITELOG", "waiting_tasks_count"), [100.0, 700.0]);
    assert_eq!(read.seconds(), [0.0, 60.0]);
}

#[test]
fn pivots_of_databases() {
    let text = "measurement;servername;type;sales;tempdb;Total\n\
                Log writes (bytes/sec);DB1;Database IO;0;159744;159744\n\
                Rows (reads/sec);DB1;Database IO;12;3;15\n\
                Rows read latency (ms);DB1;Database stats;42;7;1\n";
    let read = read(text);
    assert_eq!(file_values(&read, "tempdb/log", "write_bytes_per_s"), [Some(159_744.0)]);
    assert_eq!(file_values(&read, "sales/rows", "reads_per_s"), [Some(12.0)]);
    assert_eq!(file_values(&read, "sales/rows", "read_latency_ns"), [Some(42e6)]);
    let names = read.observation.contents().entities.iter().map(|entity| entity.name.as_str());
    assert!(!names.into_iter().any(|name| name == "Total"));
}

#[test]
fn malformed_input_is_rejected() {
    let wrong = format!("{HEAD}2024-05-01 10:00:15,a,b,ROWS,2x,1,9,4,1,1,1,5,9,8\n");
    assert_eq!(refused(&wrong), "line 2: num_of_reads is \"2x\", which is not a number");
    let wrong = format!("{HEAD}soon,a,b,ROWS,2,1,9,4,1,1,1,5,9,8\n");
    assert_eq!(refused(&wrong), "line 2: \"soon\" is not a time");
    let wrong = "wait_type,wait_time_ms\nWRITELOG,1\nLCK_M_X\n";
    let wrong = format!("{wrong}LATCH_EX,3\n");
    assert_eq!(refused(&wrong), "line 3: a row has 1 fields, but its header has 2");
    let cut = "[{\"wait_type\":\"WRITELOG\",\"wait_time_ms\":12},{\"wait_ty";
    assert_eq!(
        refused(cut),
        "line 1: incomplete JSON: EOF while parsing a string at line 1 column 53"
    );
    let pivot = "measurement;servername;type;I/O\nWait time (ms);DB1;Wait stats;0\n";
    assert_eq!(
        refused(pivot),
        "it has no samples: it contains nothing that can be used: Wait time (ms), as it does not \
         say of how long an interval"
    );
}

#[test]
fn a_truncated_row_is_left_out_with_a_note() {
    let read = read("wait_type,waiting_tasks_count,wait_time_ms\nWRITELOG,1,2\nLCK_M_X,5");
    assert_eq!(read.all("WRITELOG", "wait_time_ms"), [2.0]);
    assert!(read.notes("its last line was truncated"), "{:?}", read.summary.notes);
}

#[test]
fn samples_of_files_and_waits() {
    let Some(read) = sample("sql_virtual_file_stats/ipb_win_gdr_io_stall.txt") else { return };
    assert_eq!(read.all("InstantPaymentBench", "num_of_reads"), [71.0]);
    assert_eq!(read.all("InstantPaymentBench", "io_stall_read_ms"), [198.0]);
    let Some(read) = sample("sql_virtual_file_stats/book_partial_columns.md") else { return };
    assert_eq!(
        file_values(&read, "AdventureWorks2017/file 2", "io_stall_write_ms"),
        [Some(258_568.0)]
    );
    assert!(read.notes("latency of reads is unknown"), "{:?}", read.summary.notes);
    let Some(read) = sample("sql_master_files/ipb_rhel_file_layout.txt") else { return };
    assert_eq!(read.attribute("tempdev8", "size_bytes"), number(512 << 20));
    assert_eq!(read.attribute("tempdev8", "max_size_bytes"), None);
    assert_eq!(read.attribute("InstantPaymentBench_log", "max_size_bytes"), number(2 << 40));
    assert_eq!(read.attribute("InstantPaymentBench_log", "growth_bytes"), number(64 << 20));
    let Some(read) = sample("sql_sku_csv/TEST,MSSQLSERVER_CommonDbLevel_Counters.csv") else {
        return;
    };
    assert_eq!(read.start().as_deref(), Some("2021-10-28T19:08:03Z"));
    assert_eq!(read.attribute("AdventureWorks2008R2_Data", "size_bytes"), number(205_455_360));
    let Some(read) = sample("sql_wait_stats/ipb_win_gdr_wait_stats_after.csv") else { return };
    assert_eq!(read.all("WRITELOG", "waiting_tasks_count"), [30_999.0]);
    assert_eq!(read.all("WRITELOG", "wait_time_ms"), [13_536.0]);
    let Some(read) = sample("sql_wait_stats/ipb_rhel_wait_stats_before.csv") else { return };
    assert_eq!(read.all("LCK_M_RIn_X", "wait_time_ms"), [0.0]);
    let Some(read) = sample("sql_wait_stats/markdown_waits_thousands_sep.md") else { return };
    assert_eq!(read.all("WRITELOG", "waiting_tasks_count"), [1070.0]);
    let Some(read) = sample("derived_variants/waits_thousands_separators.tsv") else { return };
    assert_eq!(read.all("LCK_M_RS_U", "wait_time_ms"), [167_901_259.0]);
    let Some(read) = sample("sql_wait_stats/blitzfirst_top5_waits.csv") else { return };
    assert_eq!(read.all("CXPACKET", "wait_ms_per_s"), [70_634.3]);
}

#[test]
fn samples_of_intervals_resources_and_pivots() {
    let Some(read) = sample("sql_qpi/mi_gp_cell31_2020-01-22T133520_file_stats.csv") else {
        return;
    };
    assert_eq!(file_values(&read, "DB2/data_0", "writes_per_s"), [Some(74.901)]);
    assert_eq!(file_values(&read, "DB2/log", "read_latency_ns"), [Some(32.8e6)]);
    assert_eq!(file_values(&read, "model/log", "writes_per_s"), [Some(0.0)]);
    let path = "sql_qpi/mi_gp_cell08_2020-01-22T125115_file_stats.csv";
    let comma = "derived_variants/qpi_nulls_empty_semicolon_decimal_comma.csv";
    let (Some(point), Some(comma)) = (sample(path), sample(comma)) else { return };
    assert_eq!(point.observation.columns, comma.observation.columns);
    assert_eq!(file_values(&point, "DB2/data_0", "write_latency_ns"), [Some(148.4e6)]);
    assert_eq!(file_values(&point, "DB2/data_0", "write_io_latency_ns"), [Some(5e6)]);
    let Some(read) = sample("sql_qpi/mi_gp_last_file_stats.dataresource.json") else { return };
    assert_eq!(file_values(&read, "master/data_0", "write_latency_ns"), [Some(1.4e6)]);
    let Some(read) = sample("sql_governance/mi_bc_server_resource_stats.csv") else { return };
    let most = read.all("bobazuresqlmi", "operations_per_s").into_iter().fold(0.0, f64::max);
    assert!((most - 10.255).abs() < 0.001, "{most}");
    assert_eq!(read.attribute("bobazuresqlmi", "managed_instance"), Some("bc".into()));
    assert_eq!(read.attribute("bobazuresqlmi", "storage_bytes"), number(256 << 30));
    let Some(read) = sample("sql_governance/mi_bc_dm_db_resource_stats.csv") else { return };
    assert_eq!(read.summary.samples, 256);
    assert_eq!(read.all("database", "cpu").last(), Some(&0.007));
    let Some(read) = sample("sql_telegraf_v1/DatabaseIO.csv") else { return };
    assert_eq!(file_values(&read, "tempdb/log", "write_bytes_per_s"), [Some(159_744.0)]);
    let Some(read) = sample("sql_telegraf_v1/PerformanceCounters.csv") else { return };
    assert_eq!(read.all("WIN8-DEV", "page_life_expectancy_s"), [29_730.0]);
    let Some(result) = try_sample("sql_telegraf_v1/WaitStatsCategorized.csv") else { return };
    let error = result.expect_err("it is refused").to_string();
    assert!(error.contains("how long an interval"), "{error}");
}

/// Builds an HTML table from lines with commas.
fn html(csv: &str) -> String {
    let row = |(line, cell): (&str, &str)| {
        let cells = line.split(',').map(|field| {
            let field = field.replace('&', "&amp;").replace('<', "&lt;");
            format!("<{cell}>{field}</{cell}>")
        });
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let cells = std::iter::once("th").chain(std::iter::repeat("td"));
    let rows: String = csv.lines().zip(cells).map(row).collect();
    format!("<html><body>\n<table border=\"1\">\n{rows}</table></body></html>\n")
}

#[test]
fn file_stats_of_qpi_as_a_page() {
    let csv = "db_name,file_name,size_gb,iops,read_iops,write_iops,latency_ms,read_latency_ms,\
               write_latency_ms,num_of_reads,num_of_writes,interval_mi,type\n\
               DB2,data_0,32,2,0,2,148.0,NULL,148.0,0,16800,141,ROWS\n\
               DB2,log,1,4,1,3,9.5,20.0,6.0,100,300,141,LOG\n";
    let (page, plain) = (read(&html(csv)), read(csv));
    assert_eq!(page.kind(), "sqlserver");
    assert_eq!(page.observation.columns, plain.observation.columns);
    assert_eq!(page.observation.contents(), plain.observation.contents());
    // 300 in 141 minutes.
    assert_eq!(page.all("log", "writes_per_s"), [0.035]);
    // A row without an end is left out, as is a last line that was cut.
    let text = html(csv);
    let cut = text.rfind("<td>LOG").expect("the last cell");
    let cut = read(&text[..cut]);
    assert!(cut.notes("its last line was truncated"), "{:?}", cut.summary.notes);
    let names = &cut.observation.contents().entities;
    assert!(
        names.iter().any(|own| own.name == "data_0") && names.iter().all(|own| own.name != "log")
    );
    let message = refused("<html><table><tr><th>a</th></tr></table></html>\n");
    assert!(message.contains("unknown kind of input"), "{message}");
}

#[test]
fn genuine_file_stats_as_a_page() {
    let path = "sql_qpi/mi_gp_cell08_2020-01-22T125115_file_stats.csv";
    let Some(plain) = sample(path) else { return };
    let page = read(&html(&crate::samples::text(path)));
    assert_eq!(page.observation.columns, plain.observation.columns);
}

/// Returns aggregated counters of an assessment: a file, its server and its database at two times.
fn aggregated() -> String {
    let mut text =
        "ServerName,DatabaseName,DatabaseFileName,FileType,TimeDataCollected,CounterName,\
                    AggregatorType,Value\n"
            .to_owned();
    for (time, reads) in [("23:18:39", 600), ("23:29:04", 900)] {
        let counters = [("FNR", reads), ("FNW", 30), ("FRM", 60), ("FWM", 3), ("FRL", 5)];
        let mut row = |entity: &str, (counter, mean): (&str, i32)| {
            for (aggregator, value) in [("Mean", mean), ("Occurence", 19), ("Max", 9999)] {
                text.push_str(&format!(
                    "SQL1,{entity},2021-10-27 {time},{counter},{aggregator},{value}\n"
                ));
            }
        };
        row(",,", ("ICP", 40));
        for counter in counters {
            row("sales,D:\\data\\sales.mdf,ROWS", counter);
        }
        row("sales,,", ("DCS", 2));
    }
    text
}

#[test]
fn aggregated_counters_of_an_assessment_are_read_once_their_meaning_is_stated() {
    let text = aggregated();
    let message = refused(&text);
    assert!(message.contains("--file-counts per-second"), "{message}");
    let read = |options: Options| try_read(vec![input("a.csv", text.clone(), None)], &options);
    let every = Some(Span::from_secs(30));
    let per_second =
        Options { file_counts: Some(FileCounts::PerSecond), every, ..Options::default() };
    let per_query = Options { file_counts: Some(FileCounts::PerQuery), ..per_second.clone() };
    for (options, seconds) in [(per_second, 1.0), (per_query.clone(), 30.0)] {
        let read = read(options).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read.kind(), "sku-counters");
        assert_eq!(read.start().as_deref(), Some("2021-10-27T23:18:39Z"));
        assert_eq!(read.seconds(), [0.0, 625.0]);
        assert!((read.first_interval() - 600.0).abs() < 1e-6);
        let of = |metric: &str| read.all("sales.mdf", metric);
        assert_eq!(of("reads_per_s"), [600.0 / seconds, 900.0 / seconds]);
        assert_eq!(of("writes_per_s"), [30.0 / seconds; 2]);
        assert_eq!(of("read_bytes_per_s"), [60.0 * 1_048_576.0 / seconds; 2]);
        assert_eq!(read.all("SQL1", "cpu"), [0.4; 2]);
        assert_eq!(read.attribute("sales.mdf", "role"), Some("data".into()));
        assert!(read.notes("FRL, whose unit is not published"), "{:?}", read.summary.notes);
        assert!(read.notes("peaks are not seen"), "{:?}", read.summary.notes);
    }
    let Err(error) = read(Options { every: None, ..per_query }) else { panic!("no interval") };
    assert!(error.to_string().contains("give it with --every"), "{error}");
}

#[test]
fn options_for_other_kinds_are_noted_as_ignored() {
    let file_counts = Some(FileCounts::PerSecond);
    let time_unit = Some(TimeUnit::Seconds);
    let told = |text: String, options: Options| {
        let read = try_read(vec![input("a.csv", text, None)], &options);
        read.unwrap_or_else(|error| panic!("{error}")).summary.notes.join("\n")
    };
    let both = Options { file_counts, time_unit, ..Options::default() };
    let notes = told(aggregated(), both.clone());
    assert!(notes.contains("--time-unit is ignored: it is for msr-cambridge"), "{notes}");
    assert!(!notes.contains("--file-counts is"), "{notes}");
    let trace = "time,op,offset,size\n0.0,R,0,4096\n1.5,W,4096,4096\n".to_owned();
    let notes = told(trace, both);
    assert!(notes.contains("--file-counts is ignored: it is for sku-counters"), "{notes}");
    assert!(!notes.contains("--time-unit is"), "{notes}");
}
