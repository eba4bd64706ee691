//! The genuine samples beside the project, and the small ones of the repository: each is read correctly,
//! or rejected with a reason.

use crate::bed::{Read, try_read};
use std::fs::{self, File};
use std::io::BufReader;
use std::path::PathBuf;
use weir_import::{ImportError, Input, Options};

/// Returns the folder of the genuine files beside the project.
pub(crate) fn folder() -> Option<PathBuf> {
    weir_needs::shared("samples")
}

/// Reads a sample.
pub(crate) fn try_sample(path: &str) -> Option<Result<Read, ImportError>> {
    let file = File::open(folder()?.join(path)).expect(path);
    let input = Input { name: path.to_owned(), bytes: Box::new(BufReader::new(file)), kind: None };
    Some(try_read(vec![input], &Options::default()))
}

/// Returns the text of a sample, if it is there.
#[track_caller]
pub(crate) fn text(path: &str) -> String {
    let bytes = folder().map(|folder| fs::read(folder.join(path)).expect(path));
    String::from_utf8(bytes.unwrap_or_default()).expect("UTF-8")
}

/// Reads a sample, which must be readable.
#[track_caller]
pub(crate) fn sample(path: &str) -> Option<Read> {
    Some(try_sample(path)?.unwrap_or_else(|error| panic!("{path}: {error}")))
}

/// The expected result of a sample.
enum Becomes {
    /// It has this kind, and samples.
    Read(&'static str),
    /// It is rejected with this message.
    Refused(&'static str),
}
use Becomes::{Read as Is, Refused};

/// The kind of each sample, according to its source.
const EXPECT: &[(&str, Becomes)] = &[
    ("SOURCES.md", Refused("unknown kind")),
    ("aws_cloudwatch/c7n_ebs_DescribeVolumes.json", Refused("describe-volumes of AWS")),
    ("azure_monitor/azps_metrics_empty_timeseries.json", Refused("are empty")),
    ("azure_monitor/c7n_SqlServerTest.test_metric_database.json", Is("azure-monitor")),
    ("block_traces/blkparse_nvme_259-2.txt", Is("blkparse")),
    ("block_traces/cloudPhysicsIO.csv", Is("cloudphysics")),
    ("block_traces/disksim_ascii.trace", Is("disksim")),
    ("block_traces/mqsim_tpcc-small.trace", Is("mqsim")),
    ("derived_variants/fio_truncated.json", Refused("is truncated here")),
    ("derived_variants/fio_utf16le_bom.json", Is("fio")),
    ("derived_variants/iostat_crlf.txt", Is("iostat")),
    ("derived_variants/iostat_decimal_comma.txt", Is("iostat")),
    ("derived_variants/iostat_truncated_last_line.txt", Is("iostat")),
    ("derived_variants/perfmon_decimal_comma.csv", Is("perfmon")),
    ("derived_variants/perfmon_tab.tsv", Is("perfmon")),
    ("derived_variants/perfmon_truncated_last_line.csv", Is("perfmon")),
    ("derived_variants/perfmon_tz_header_blank_first_sample.csv", Is("perfmon")),
    ("derived_variants/perfmon_utf16le_bom_crlf.csv", Is("perfmon")),
    ("derived_variants/perfmon_utf8_bom.csv", Is("perfmon")),
    ("derived_variants/qpi_nulls_empty_semicolon_decimal_comma.csv", Is("sqlserver")),
    ("derived_variants/variants.json", Refused("unknown kind")),
    ("derived_variants/waits_thousands_separators.tsv", Is("sqlserver")),
    ("diskspd/kisel_Irbis_TW57.txt", Is("diskspd")),
    ("diskspd/kisel_goodwinserverdc.westeurope.cloudapp.azure.com.txt", Is("diskspd")),
    ("diskspd/vc_DiskSpdExample-WriteOnly-v2.2.0-SingleGroup.txt", Is("diskspd")),
    ("diskspd/vc_Results_DiskSpd.txt", Is("diskspd")),
    ("diskstats/jc_linux-proc_diskstats", Is("diskstats")),
    ("diskstats/sysstat_root1/diskstats", Is("diskstats")),
    ("diskstats/sysstat_root2/uptime", Refused("unknown kind")),
    ("diskstats/sysstat_root4/diskstats", Is("diskstats")),
    ("diskstats/sysstat_root5/uptime", Refused("unknown kind")),
    ("fio_jobs/fio_1mbs_clients.fio", Refused("job file of fio")),
    ("fio_jobs/fio_flow.fio", Refused("job file of fio")),
    ("fio_jobs/fio_latency-profile.fio", Refused("job file of fio")),
    ("fio_jobs/fio_sequence-distribution.fio", Refused("job file of fio")),
    ("fio_jobs/fio_zipf.fio", Refused("job file of fio")),
    ("fio_jobs/kochaika_write.ini", Refused("job file of fio")),
    ("fio_jobs/vc_expectedoltp-c.fio1.jobfile", Refused("job file of fio")),
    ("fio_json/pbench_fio-0_fio-result.txt", Is("fio")),
    ("fio_json/pbench_fio-0_fio_slat.1.log", Is("fio-log")),
    ("fio_json/vc_Results_FIO.json", Is("fio")),
    ("fio_json/vc_Results_FIO_ReadWrite.json", Is("fio")),
    ("hammerdb/aws_ec2_FinalResult-TPCC-Blog-B1.csv", Is("hammerdb-table")),
    ("hammerdb/aws_ec2_hammerdb_5E14E7F5806C03E203437343.log", Is("hammerdb")),
    ("hammerdb/aws_ec2_hammerdb_5E14EE85E49103E293539353.log", Is("hammerdb")),
    ("hammerdb/aws_ec2_hammerdb_5E14F5524C4F03E223938363.log", Is("hammerdb")),
    ("hammerdb/pkb_hammerdbcli_tpcc_tpm_per_second_4_3.log", Is("hammerdb-counter")),
    ("hammerdb/vc_HammerDBMySQL.txt", Is("hammerdb")),
    ("iometer/eilerjc_cov_rich_disk.icf", Is("iometer-icf")),
    ("iometer/eilerjc_icf_compat_golden_two_managers_run.golden.txt", Refused("result of Iometer")),
    ("iometer/eilerjc_icf_compat_oldformat_specs.icf", Is("iometer-icf")),
    ("iometer/eilerjc_multispec_worker.icf", Is("iometer-icf")),
    ("iostat_json/pkb_iostat_output.json", Is("iostat-json")),
    ("iostat_text/jc_centos-7.7_iostat-1.out", Is("iostat")),
    ("iostat_text/jc_centos-7.7_iostat-x.out", Is("iostat")),
    ("iostat_text/jc_ubuntu-18.04_iostat-m.out", Is("iostat")),
    ("iostat_text/jc_ubuntu-18.04_iostat.out", Is("iostat")),
    ("iostat_text/jc_ubuntu-20.10_iostat-x.out", Is("iostat")),
    ("iostat_text/pbench_gold/iostat-1_disk_Utilization_percent.csv", Refused("unknown kind")),
    ("iostat_text/pbench_iostat-1.txt", Is("iostat")),
    ("iostat_text/pcp_iostat", Is("iostat")),
    ("iostat_text/pcp_iostat-d-k", Is("iostat")),
    ("iostat_text/pcp_iostat-t", Is("iostat")),
    ("iostat_text/pcp_iostat-x", Is("iostat")),
    ("iostat_text/pgbenchtools480_golden_iostat.csv", Refused("unknown kind")),
    ("iostat_text/pgbenchtools_iostat-darwin.log", Refused("iostat of macOS")),
    ("iostat_text/pgbenchtools_iostat.log", Is("iostat")),
    ("iostat_text/sysstat_expected.iostat-dec", Is("iostat")),
    ("iostat_text/sysstat_expected.iostat-mz", Is("iostat")),
    ("iostat_text/sysstat_expected.iostat-x", Is("iostat")),
    ("perfmon/aws_ec2_sqlserver_hammerdb_getcounter_long.csv", Is("get-counter")),
    ("perfmon/typeperf_block2.csv", Is("perfmon")),
    ("pg_stat/pg_stat_database_pg10_expanded.txt", Is("postgres")),
    ("pg_stat/pgstat_vmstat_like_outputs.txt", Refused("unknown kind")),
    ("pgbench/pgbenchtools480_latency_1s.csv", Is("pgbench-table")),
    ("sar/pbench_sar-0.txt", Is("sar")),
    ("sar/pbench_sar-4.txt", Is("sar")),
    ("sar/sysstat_expected.data-11.6.5-sadf-j", Refused("has no samples")),
    ("sar/sysstat_expected.sadf-d", Is("sadf-d")),
    ("sar/sysstat_expected.sadf-p", Is("sadf-p")),
    ("sar/sysstat_expected.sar-D", Is("sar")),
    ("sar/sysstat_expected.sar-pretty", Is("sar")),
    ("sql_governance/mi_bc_dm_db_resource_stats.csv", Is("sqlserver")),
    ("sql_governance/mi_bc_server_resource_stats.csv", Is("sqlserver")),
    ("sql_master_files/ipb_rhel_file_layout.txt", Is("sqlserver")),
    ("sql_qpi/mi_gp_cell04_2020-01-22T103337_db_file_stats.csv", Is("sqlserver")),
    ("sql_qpi/mi_gp_cell08_2020-01-22T125115_file_stats.csv", Is("sqlserver")),
    ("sql_qpi/mi_gp_cell30_2020-01-22T133229_db_file_stats.csv", Is("sqlserver")),
    ("sql_qpi/mi_gp_cell31_2020-01-22T133520_file_stats.csv", Is("sqlserver")),
    ("sql_qpi/mi_gp_last_file_stats.dataresource.json", Is("sqlserver")),
    ("sql_sku_csv/TEST,MSSQLSERVER_CommonDbLevel_Counters.csv", Is("sqlserver")),
    ("sql_virtual_file_stats/book_partial_columns.md", Is("sqlserver")),
    ("sql_virtual_file_stats/ipb_win_gdr_io_stall.txt", Is("sqlserver")),
    ("sql_wait_stats/blitzfirst_top5_waits.csv", Is("sqlserver")),
    ("sql_wait_stats/ipb_rhel_wait_stats_before.csv", Is("sqlserver")),
    ("sql_wait_stats/ipb_win_gdr_wait_stats_after.csv", Is("sqlserver")),
    ("sql_wait_stats/markdown_waits_thousands_sep.md", Is("sqlserver")),
    ("vmstat/jc_centos-7.7_vmstat-a.out", Is("vmstat")),
    ("vmstat/jc_centos-7.7_vmstat-d.out", Is("vmstat-d")),
    ("vmstat/jc_generic_vmstat-extra-wide.out", Is("vmstat")),
    ("vmstat/pgbenchtools480_golden_vmstat.csv", Refused("unknown kind")),
    ("vmstat/pgbenchtools_vmstat.log", Is("vmstat")),
];

/// The kind of each input in the corpus of the importer, which is always there.
const CORPUS: &[(&str, Becomes)] = &[
    ("azure", Is("azure-monitor")),
    ("backup-basebackup", Is("pg-basebackup")),
    ("backup-client", Is("sqlserver-backup")),
    ("backup-errorlog", Is("sqlserver-errorlog")),
    ("backup-errorlog-utf16", Is("sqlserver-errorlog")),
    ("backup-history", Is("backup-history")),
    ("backup-pgbackrest", Is("pgbackrest")),
    ("backup-wal-g", Is("wal-g")),
    ("blkparse", Is("blkparse")),
    ("blktrace", Is("blktrace")),
    ("cloudwatch", Is("cloudwatch")),
    ("cloudwatch-firehose", Is("cloudwatch-stream")),
    ("cloudwatch-stream", Is("cloudwatch-stream")),
    ("diskstats", Is("diskstats")),
    ("diskstats-json", Is("diskstats-json")),
    ("files", Is("sqlserver")),
    ("fio", Is("fio")),
    ("fio-job", Is("fio")),
    ("found-far-times", Refused("which is not between 1990 and 2100")),
    ("found-oracle-times", Refused("unknown kind of input: it is not text")),
    ("found-perfmon-zone", Refused("it has no samples")),
    ("found-slow", Refused("is beyond all times")),
    ("found-zero-latency", Is("iostat")),
    ("get-counter", Is("get-counter")),
    ("hammerdb-profile", Is("hammerdb-profile")),
    ("hammerdb-timing", Is("hammerdb-profile")),
    ("html", Is("sqlserver")),
    ("iostat", Is("iostat")),
    ("iostat-idle", Is("iostat")),
    ("iostat-processors", Is("iostat")),
    ("msr-relative", Is("msr-cambridge")),
    ("perfmon", Is("perfmon")),
    ("perfmon-comment", Is("perfmon")),
    ("pgbench", Is("pgbench")),
    ("postgres", Is("postgres")),
    ("sadf-x", Is("sadf-x")),
    ("sar-restart", Is("sar")),
    ("telegraf", Is("diskstats-json")),
    ("trace", Is("trace-csv")),
    ("unknown-iostat", Refused("unknown kind of input")),
    ("vmstat", Is("vmstat")),
    ("waits", Is("sqlserver")),
];

/// Returns the readable inputs of the corpus, with their kinds and contents.
pub(crate) fn corpus() -> impl Iterator<Item = (&'static str, &'static str, Vec<u8>)> {
    CORPUS.iter().filter_map(|(name, becomes)| match becomes {
        Is(kind) => Some((*name, *kind, fs::read(corpus_folder().join(name)).expect(name))),
        Refused(_) => None,
    })
}

fn corpus_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/import")
}

/// Returns the readable samples with their kinds.
pub(crate) fn expected() -> impl Iterator<Item = (&'static str, &'static str)> {
    EXPECT.iter().filter_map(|(path, becomes)| match becomes {
        Is(kind) => Some((*path, *kind)),
        Refused(_) => None,
    })
}

/// Checks what became of an input.
#[track_caller]
fn check(name: &str, found: Result<Read, ImportError>, expect: Option<&Becomes>) {
    match (found, expect) {
        (Ok(read), expect) => {
            assert!(read.summary.samples > 0, "{name}");
            match expect {
                Some(Is(kind)) => assert_eq!(read.kind(), *kind, "{name}"),
                Some(Refused(why)) => panic!("{name} is read, and not refused: {why}"),
                None => {}
            }
        }
        (Err(error), Some(Refused(why))) => {
            assert!(error.to_string().contains(why), "{name}: {error}");
        }
        (Err(error), Some(Is(kind))) => panic!("{name} is no {kind}: {error}"),
        (Err(error), None) => assert!(!error.to_string().trim().is_empty(), "{name}"),
    }
}

/// The inputs of the corpus, each of which must be listed above.
#[test]
fn every_input_of_the_corpus_is_read_or_rejected() {
    let mut seen = 0;
    for entry in fs::read_dir(corpus_folder()).expect("the corpus") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let expect = CORPUS.iter().find(|(own, _)| *own == name);
        let (_, expect) = expect.unwrap_or_else(|| panic!("{name} is not listed"));
        let bytes = Box::new(BufReader::new(File::open(path).expect("a file")));
        let input = Input { name: name.clone(), bytes, kind: None };
        check(&name, try_read(vec![input], &Options::default()), Some(expect));
        seen += 1;
    }
    assert_eq!(seen, CORPUS.len());
}

/// No sample makes a reader panic, and each known sample has its expected result.
#[test]
fn every_sample_is_read_or_rejected() {
    let Some(root) = folder() else { return };
    let mut folders = vec![root.clone()];
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { folders.push(path) } else { paths.push(path) }
        }
    }
    for path in paths {
        let name = path.strip_prefix(&root).expect("within").display().to_string();
        let expect = EXPECT.iter().find(|(path, _)| *path == name).map(|(_, becomes)| becomes);
        check(&name, try_sample(&name).expect("the samples"), expect);
    }
}
