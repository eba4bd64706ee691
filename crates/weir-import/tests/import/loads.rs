//! Iometer, HammerDB and pgbench.

use crate::bed::{input, read, refused, survives, try_read};
use crate::samples::{sample, try_sample};
use weir_import::Options;
use weir_observe::Attribute;

const ICF: &str = "\
Version 1.1.0
'TEST SETUP ====
'Test Description
\tA test
'ACCESS SPECIFICATIONS ====
'Access specification name,default assignment
\t4 KiB; 50% Read; 100% random,NONE
'size,% of size,% reads,% random,delay,burst,align,reply
\t4096,100,50,100,0,1,4096,0
'Access specification name,default assignment
\tmixed, as it were,NONE
'% reads,size,% of size,% random
\t100,512,25,0
\t0,4096,75,100
'END access specifications
'Worker
\tWorker 1
'Number of outstanding IOs,test connection rate
\t16,DISABLED
'Assigned access specs
\t4 KiB; 50% Read; 100% random
'End assigned access specs
";

#[test]
fn access_specifications() {
    let read = read(ICF);
    assert_eq!((read.kind(), read.summary.samples, read.summary.series), ("iometer-icf", 1, 0));
    let (one, mixed) = ("4 KiB; 50% Read; 100% random", "mixed, as it were");
    for (job, name, value) in [
        (one, "block_bytes", 4096),
        (one, "read_percent", 50),
        (one, "random_percent", 100),
        (one, "outstanding", 16),
        (mixed, "block_bytes", 3200),
        (mixed, "read_percent", 25),
        (mixed, "random_percent", 75),
    ] {
        assert_eq!(read.attribute(job, name), Some(Attribute::Number(value)), "{job} {name}");
    }
    let parts = "25%: 512 B, 100% reads, 0% random; 75%: 4096 B, 0% reads, 100% random";
    assert_eq!(read.attribute(mixed, "parts"), Some(Attribute::from(parts)));
    assert!(read.notes("has no result"), "{:?}", read.summary.notes);
}

#[test]
fn wrong_access_specifications() {
    assert_eq!(
        refused(&ICF.replace("100,512,25,0", "100,512,x,0")),
        "line 13: \"% of size\" is \"x\", which is not a number"
    );
    assert_eq!(
        refused(&ICF.replace("'% reads,size", "'% writes,size")),
        "line 13: there is no column \"size\"".replace("\"size\"", "\"% reads\"")
    );
}

#[test]
fn genuine_access_specifications() {
    let Some(read) = sample("iometer/eilerjc_multispec_worker.icf") else { return };
    let job = "64 KiB; 0% Read; 0% random";
    assert_eq!(read.attribute(job, "block_bytes"), Some(Attribute::Number(65536)));
    assert_eq!(read.attribute(job, "read_percent"), Some(Attribute::Number(0)));
    let Some(read) = sample("iometer/eilerjc_icf_compat_oldformat_specs.icf") else { return };
    let job = "access specification 1";
    assert_eq!(read.attribute(job, "block_bytes"), Some(Attribute::Number(2048)));
    assert_eq!(read.attribute(job, "read_percent"), Some(Attribute::Number(67)));
    let Some(read) = sample("iometer/eilerjc_cov_rich_disk.icf") else { return };
    assert_eq!(read.attribute("All in one", "outstanding"), Some(Attribute::Number(1)));
    let path = "iometer/eilerjc_icf_compat_golden_two_managers_run.golden.txt";
    let Some(result) = try_sample(path) else { return };
    assert_eq!(
        result.expect_err("it has no numbers").to_string(),
        "it is a result of Iometer, which is not read: only its access specifications (.icf) are"
    );
}

const OLD: &str = "\
Hammerdb Log @ Tue Jan 07 12:20:05 PST 2020
+-+-+-+
Timestamp 1 @ Tue Jan 07 12:20:05 PST 2020
Vuser 1:Beginning rampup time of 2 minutes
Timestamp 1 @ Tue Jan 07 12:22:09 PST 2020
Vuser 1:Timing test period of 3 in minutes
Timestamp 1 @ Tue Jan 07 12:25:14 PST 2020
Vuser 1:8 Active Virtual Users configured
Timestamp 1 @ Tue Jan 07 12:25:15 PST 2020
Vuser 1:TEST RESULT : System achieved 60000 SQL Server TPM at 12000 NOPM
";

const NEW: &str = "\
HammerDB CLI v4.12
 mssqls_count_ware       = 100
Vuser 1:Beginning rampup time of 2 minutes
Vuser 1:Timing test period of 5 in minutes
Vuser 1:16 Active Virtual Users configured
Vuser 1:TEST RESULT : System achieved 6000 NOPM from 12000 MariaDB TPM
Vuser 1:32 Active Virtual Users configured
Vuser 1:TEST RESULT : System achieved 9000 NOPM from 18000 MariaDB TPM
";

#[test]
fn hammerdb_logs() {
    let read = read(OLD);
    assert_eq!(read.kind(), "hammerdb");
    assert_eq!(read.start().as_deref(), Some("2020-01-07T20:25:15Z"));
    assert_eq!(read.all("HammerDB", "transactions_per_s"), [1000.0]);
    assert_eq!(read.all("HammerDB", "new_orders_per_s"), [200.0]);
    assert_eq!(read.all("HammerDB", "users"), [8.0]);
    assert_eq!(read.attribute("HammerDB", "database"), Some(Attribute::from("SQL Server")));
    assert_eq!(read.attribute("HammerDB", "minutes"), Some(Attribute::Number(3)));
    assert!(read.notes("PST is assumed to be -0800"), "{:?}", read.summary.notes);

    let read = crate::bed::read(NEW);
    assert_eq!((read.start(), read.seconds()[0]), (None, 420.0));
    assert_eq!(read.values("HammerDB", "new_orders_per_s"), [Some(100.0), None]);
    assert_eq!(read.values("HammerDB #2", "transactions_per_s"), [None, Some(300.0)]);
    assert_eq!(read.attribute("HammerDB", "warehouses"), Some(Attribute::Number(100)));

    let json = "[\n  \"64A\",\n  \"2023-07-05 12:00:00\",\n  \"4 Active Virtual Users configured\",\n  \
                \"TEST RESULT : System achieved 600 NOPM from 1200 MariaDB TPM\"\n]\n";
    let read = crate::bed::read(json);
    assert_eq!(read.start().as_deref(), Some("2023-07-05T12:00:00Z"));
    assert_eq!(read.all("HammerDB", "users"), [4.0]);
    assert_eq!(read.all("HammerDB", "transactions_per_s"), [20.0]);
}

#[test]
fn wrong_hammerdb_logs() {
    assert_eq!(
        refused(&OLD.replace("at 12000", "at some")),
        "line 10: a result is expected as \"N NOPM from M .. TPM\" or \"M .. TPM at N NOPM\", \
         there is \"Vuser 1:TEST RESULT : System achieved 60000 SQL Server TPM at some NOPM\""
    );
    let end = OLD.find("Timestamp 1 @ Tue Jan 07 12:25:15").expect("it is there");
    assert_eq!(refused(&OLD[..end]), "line 8: it contains no TEST RESULT: no run was completed");
}

#[test]
fn genuine_hammerdb_logs() {
    for (path, tpm, users, start) in [
        ("5E14E7F5806C03E203437343", 66_804.0, 8.0, "2020-01-07T20:25:15Z"),
        ("5E14EE85E49103E293539353", 69_278.0, 34.0, "2020-01-07T20:53:17Z"),
        ("5E14F5524C4F03E223938363", 78_844.0, 144.0, "2020-01-07T21:23:32Z"),
    ] {
        let Some(read) = sample(&format!("hammerdb/aws_ec2_hammerdb_{path}.log")) else { return };
        let per_s = (tpm / 60.0 * 1e3_f64).round() / 1e3;
        assert_eq!(read.all("HammerDB", "transactions_per_s"), [per_s], "{path}");
        assert_eq!(read.all("HammerDB", "users"), [users], "{path}");
        assert_eq!(read.start().as_deref(), Some(start));
    }
    let Some(read) = sample("hammerdb/vc_HammerDBMySQL.txt") else { return };
    assert_eq!(read.all("HammerDB", "new_orders_per_s"), [0.183]);
    assert_eq!(read.all("HammerDB", "transactions_per_s"), [0.417]);
    let Some(read) = sample("hammerdb/aws_ec2_FinalResult-TPCC-Blog-B1.csv") else { return };
    assert_eq!(read.kind(), "hammerdb-table");
    assert_eq!(read.start().as_deref(), Some("2020-01-07T20:06:45Z"));
    let per_s = read.all("Blog-B1", "transactions_per_s");
    assert_eq!((per_s.len(), per_s[0], per_s[8]), (9, 888.65, 1314.067));
    assert_eq!(read.all("Blog-B1", "users")[8], 144.0);
    let path = "hammerdb/pkb_hammerdbcli_tpcc_tpm_per_second_4_3.log";
    let Some(read) = sample(path) else { return };
    assert_eq!(read.kind(), "hammerdb-counter");
    assert_eq!(read.start().as_deref(), Some("2022-06-30T22:43:41Z"));
    assert_eq!(read.all("HammerDB", "transactions_per_s")[0], 5409.0);
    assert_eq!(read.attribute("HammerDB", "database"), Some(Attribute::from("PostgreSQL")));
}

const COUNTER: &str = "\
Hammerdb Transaction Counter Log @ Thu Jun 30 22:43:39 UTC 2022
+-+-+-+
0 SQL Server tpm @ Thu Jun 30 22:43:40 UTC 2022
600 SQL Server tpm @ Thu Jun 30 22:43:50 UTC 2022
0 SQL Server tpm @ Thu Jun 30 22:44:00 UTC 2022
";

#[test]
fn hammerdb_counters() {
    let read = read(COUNTER);
    assert_eq!(read.kind(), "hammerdb-counter");
    assert_eq!(read.all("HammerDB", "transactions_per_s"), [10.0, 0.0]);
    assert_eq!(read.attribute("HammerDB", "database"), Some(Attribute::from("SQL Server")));
    assert!(read.notes("covers no interval"), "{:?}", read.summary.notes);
    let json = "{\"MariaDB tpm\": {\n  \"0\": \"2023-07-05 12:00:00\",\n  \"120\": \"2023-07-05 12:00:10\"\n}}\n";
    let read = crate::bed::read(json);
    assert_eq!(read.all("HammerDB", "transactions_per_s"), [2.0]);
    assert_eq!(
        refused(&COUNTER.replace("600 SQL", "six SQL")),
        "line 4: \"six\" is not a number of transactions"
    );
    assert_eq!(
        refused(&COUNTER.replace("22:43:50 UTC 2022", "22:43")),
        "line 4: \"Thu Jun 30 22:43\" is not a time"
    );
}

#[test]
fn hammerdb_tables() {
    let text = "NOPM;Virtual Users;End Time;TPM;Remark\n600;4;2024-01-01 10:00:00;1200;x\n;8;2024-01-01 10:10:00;2400;y\n";
    let read = read(text);
    assert_eq!(read.kind(), "hammerdb-table");
    assert_eq!(read.values("HammerDB", "new_orders_per_s"), [Some(10.0), None]);
    assert_eq!(read.all("HammerDB", "transactions_per_s"), [20.0, 40.0]);
    assert_eq!(read.seconds(), [0.0, 600.0]);
    assert!(read.notes("Remark"), "{:?}", read.summary.notes);
    assert_eq!(refused(&text.replace("1200", "many")), "line 2: \"many\" is not a number");
    assert_eq!(
        refused(&text.replace("10:10:00", "noon")),
        "line 3: \"2024-01-01 noon\" is not a time"
    );
}

const PG_OLD: &str = "\
starting vacuum...end.
transaction type: <builtin: TPC-B (sort of)>
scaling factor: 100
query mode: simple
number of clients: 10
number of threads: 2
duration: 60 s
number of transactions actually processed: 60000
latency average = 10.000 ms
latency stddev = 2.500 ms
tps = 999.500000 (including connections establishing)
tps = 1000.250000 (excluding connections establishing)
";

const PG_NEW: &str = "\
pgbench (16.1)
starting vacuum...end.
progress: 5.0 s, 900.0 tps, lat 11.000 ms stddev 3.000, 0 failed
progress: 10.0 s, 0.0 tps, lat 0.000 ms stddev 0.000, 0 failed
transaction type: mine.sql
scaling factor: 1
number of clients: 4
duration: 10 s
number of transactions actually processed: 4500
number of failed transactions: 3 (0.066%)
latency average = 5.500 ms
initial connection time = 12.000 ms
tps = 450.125 (without initial connection time)
SQL script 1: mine.sql
 - weight: 1 (targets 100.0% of total)
 - 4500 transactions (100.0% of total, tps = 450.1)
 - latency average = 5.5 ms
";

#[test]
fn pgbench_summaries() {
    let read = read(PG_OLD);
    let job = "<builtin: TPC-B (sort of)>";
    assert_eq!((read.kind(), read.seconds()), ("pgbench", vec![60.0]));
    for (metric, value) in [
        ("transactions_per_s", 1000.25),
        ("transactions_with_connecting_per_s", 999.5),
        ("transaction_latency_ns", 10e6),
        ("transaction_latency_stddev_ns", 2.5e6),
        ("transactions", 60_000.0),
        ("users", 10.0),
    ] {
        assert_eq!(read.all(job, metric), [value], "{metric}");
    }
    assert_eq!(read.attribute(job, "scale"), Some(Attribute::Number(100)));
    assert_eq!(read.attribute(job, "query_mode"), Some(Attribute::from("simple")));
}

#[test]
fn pgbench_with_progress_and_several_runs() {
    let read = read(&format!("{PG_NEW}{PG_NEW}"));
    assert_eq!(read.seconds(), [5.0, 10.0, 15.0, 20.0]);
    assert_eq!(read.all("pgbench", "transactions_per_s"), [900.0, 0.0, 900.0, 0.0]);
    let latency = read.values("pgbench", "transaction_latency_ns");
    assert_eq!(latency, [Some(11e6), None, Some(11e6), None], "of no transactions");
    let whole = read.values("mine.sql, whole run", "transactions_per_s");
    assert_eq!(whole, [None, Some(450.125), None, Some(450.125)]);
    assert_eq!(read.values("mine.sql, whole run", "transactions_failed")[1], Some(3.0));
    let dated = PG_NEW
        .replace("progress: 5.0", "progress: 1598650502.0")
        .replace("progress: 10.0", "progress: 1598650507.0");
    let read = crate::bed::read(&dated);
    assert_eq!(read.start().as_deref(), Some("2020-08-28T21:35:02Z"));
    assert_eq!(read.seconds(), [0.0, 5.0]);
}

#[test]
fn wrong_pgbench() {
    assert_eq!(
        refused(&PG_OLD.replace("clients: 10", "clients: ten")),
        "line 5: number of clients is \"ten\", which is not a number"
    );
    assert_eq!(
        refused(&PG_NEW.replace("900.0 tps", "900.0")),
        "line 3: progress is expected as \"N s, N tps, ..\", but found \"5.0 s, 900.0, lat 11.000 \
         ms stddev 3.000, 0 failed\""
    );
}

const PG_LOG: &str = "\
1345828500 100 200000 500000000 1000 5000
1345828510 200 200000 300000000 500 2500 0 0
1345828520 0 0 0 0 0
";

#[test]
fn pgbench_logs() {
    let read = read(PG_LOG);
    assert_eq!(read.kind(), "pgbench-log");
    assert_eq!(read.start().as_deref(), Some("2012-08-24T17:15:10Z"));
    assert_eq!(read.seconds(), [0.0, 10.0, 20.0]);
    assert_eq!(read.all("pgbench", "transactions_per_s"), [10.0, 20.0, 0.0]);
    let mean = read.values("pgbench", "transaction_latency_ns");
    assert_eq!(mean, [Some(2e6), Some(1e6), None]);
    assert_eq!(read.values("pgbench", "transaction_latency_max_ns")[0], Some(5e6));
    assert!(read.notes("its intervals are assumed to be 10 s"), "{:?}", read.summary.notes);
    assert_eq!(
        refused("0 199 2241 0 1175850568 995598\n0 200 2465 0 1175850568 998079\n"),
        "it is a log of single transactions of pgbench, which is not read: run pgbench with \
         --aggregate-interval too"
    );
    let wrong = |text: &str| {
        let result = try_read(vec![input("a", text, Some("pgbench-log"))], &Options::default());
        result.expect_err("it is wrong").to_string()
    };
    assert_eq!(
        wrong("1345828500 100 200000 500000000 1000 5000\n1345828510 x\n"),
        "line 2: number of transactions \"x\" is not a whole number"
    );
    assert_eq!(
        wrong("1345828500 100 200000 500000000 1000\n"),
        "line 1: there is no greatest latency"
    );
}

#[test]
fn tables_of_pgbench_tools() {
    let text = "samples,avg_latency,collected\n10,2.5,1598650497\n20,,1598650498\n";
    let read = read(text);
    assert_eq!(read.kind(), "pgbench-table");
    assert_eq!(read.all("pgbench", "transactions_per_s"), [10.0, 20.0]);
    assert_eq!(read.values("pgbench", "transaction_latency_ns"), [Some(2.5e6), None]);
    assert_eq!(refused(&text.replace("2.5", "a")), "line 2: avg_latency \"a\" is not a number");
    assert_eq!(refused(&text.replace("20,,", ",,")), "line 3: there is no samples");

    let Some(read) = sample("pgbench/pgbenchtools480_latency_1s.csv") else { return };
    assert_eq!(read.summary.samples, 481);
    let tps = read.all("pgbench", "transactions_per_s");
    #[expect(clippy::cast_precision_loss, reason = "few")]
    let mean = tps.iter().sum::<f64>() / tps.len() as f64;
    assert_eq!(mean.round(), 6883.0);
    let latency = read.all("pgbench", "transaction_latency_ns");
    let sum: f64 = latency.iter().zip(&tps).map(|(ns, tps)| ns * tps).sum();
    let of_all = sum / tps.iter().sum::<f64>() / 1e6;
    assert!((3.475..3.485).contains(&of_all), "{of_all}");
}

#[test]
fn malformed_and_truncated_input() {
    for (text, kind) in [
        (ICF, "iometer-icf"),
        (OLD, "hammerdb"),
        (NEW, "hammerdb"),
        (COUNTER, "hammerdb-counter"),
        ("NOPM,TPM,End Time\n600,1200,2024-01-01 10:00:00\n", "hammerdb-table"),
        (PG_OLD, "pgbench"),
        (PG_NEW, "pgbench"),
        (PG_LOG, "pgbench-log"),
        ("samples,avg_latency,collected\n10,2.5,1598650497\n", "pgbench-table"),
    ] {
        survives(text, kind);
    }
}

const PROFILE: &str = "\
MySQL Hammerdb Time Profile Report @ Thu Jan 27 05:47:26 UTC 2022
+-+-+-+-+
>>>>> VIRTUAL USER 2 : ELAPSED TIME : 912505ms
>>>>> PROC: NEWORD
CALLS: 41234\tMIN: 2.409ms\tAVG: 9.169ms\tMAX: 32.726ms\tTOTAL: 378094.854ms\t
P99: 14.159ms\tP95: 12.367ms\tP50: 9.026ms\tSD: 1840.094\tRATIO: 41.435%\t
+-+-+-+-+
>>>>> SUMMARY OF 8 ACTIVE VIRTUAL USERS : MEDIAN ELAPSED TIME : 900000ms
>>>>> PROC: NEWORD
CALLS: 322200\tMIN: 2.269ms\tAVG: 9.236ms\tMAX: 36.366ms\tTOTAL: 2975206.250ms\t
P99: 14.197ms\tP95: 12.399ms\tP50: 9.087ms\tSD: 1808.882\tRATIO: 41.115%\t
>>>>> PROC: OSTAT
CALLS: 32044\tMIN: 1.095ms\tAVG: 2.221ms\tMAX: 17.160ms\tTOTAL: 71195.208ms\t
P99: 5.246ms\tP95: 3.752ms\tP75: 3.0ms\tP50: 2.033ms\tSD: 0.755ms\tRATIO: 0.984%\t
+-+-+-+-+
";

#[test]
fn time_profiles_of_hammerdb() {
    let read = read(PROFILE);
    assert_eq!((read.kind(), read.summary.samples), ("hammerdb-profile", 1));
    assert_eq!(read.start().as_deref(), Some("2022-01-27T05:47:26Z"));
    for (metric, value) in [
        ("transactions", 322_200.0),
        ("transactions_per_s", 358.0),
        ("transaction_latency_ns", 9.236e6),
        ("transaction_latency_min_ns", 2.269e6),
        ("transaction_latency_max_ns", 36.366e6),
        ("transaction_latency_p50_ns", 9.087e6),
        ("transaction_latency_p95_ns", 12.399e6),
        ("transaction_latency_p99_ns", 14.197e6),
        ("transaction_latency_stddev_ns", 1_808_882.0),
        ("users", 8.0),
        ("interval_ns", 900e9),
    ] {
        assert_eq!(read.all("NEWORD", metric), [value], "{metric}");
    }
    assert_eq!(read.all("OSTAT", "transaction_latency_stddev_ns"), [755_000.0]);
    assert!(read.notes("times of single virtual users"), "{:?}", read.summary.notes);
    let later = PROFILE.replace("05:47:26", "06:47:26").replace("322200", "322209");
    let both = crate::bed::read(&format!("{PROFILE}{later}"));
    assert_eq!(both.all("NEWORD", "transactions"), [322_200.0, 322_209.0]);
    assert_eq!(both.seconds(), [0.0, 3600.0]);
}

#[test]
fn time_profiles_as_json() {
    let text = r#"{
      "NEWORD": { "elapsed_ms": "60000.0", "calls": "1200", "min_ms": "1.5", "avg_ms": "9.0",
        "max_ms": "30.0", "total_ms": "10800.0", "p99_ms": "20.0", "p95_ms": "15.0",
        "p50_ms": "8.0", "sd": "1500.0", "ratio_pct": "40.0" },
      "SLEV": { "calls": 12, "avg_ms": 2.5, "p99_ms": 5.0, "elapsed_ms": 60000.0 }
    }"#;
    let read = read(text);
    assert_eq!(read.kind(), "hammerdb-profile");
    assert_eq!(read.all("NEWORD", "transactions_per_s"), [20.0]);
    assert_eq!(read.all("NEWORD", "transaction_latency_stddev_ns"), [1.5e6]);
    assert_eq!(read.all("SLEV", "transaction_latency_ns"), [2.5e6]);
    let message = refused(&text[..text.len() - 30]);
    assert!(message.contains("incomplete JSON"), "{message}");
    assert_eq!(
        refused(r#"{"calls": 1, "avg_ms": 2, "p99_ms": 3}"#),
        "line 1: a JSON document in which no procedure has \"calls\""
    );
}

#[test]
fn a_time_profile_that_is_cut() {
    let before = PROFILE.find(">>>>> SUMMARY").expect("it is there");
    assert!(refused(&PROFILE[..before]).contains("it contains no SUMMARY of a time profile"));
    let within = PROFILE.find("SD: 0.755").expect("it is there");
    let read = crate::bed::read(&PROFILE[..within + 6]);
    assert_eq!(read.all("OSTAT", "transaction_latency_p50_ns"), [2.033e6]);
    crate::bed::survives(PROFILE, "hammerdb-profile");
}
