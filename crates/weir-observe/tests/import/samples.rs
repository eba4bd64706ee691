//! The genuine files that lie beside the project, each read right or refused with a reason.

use crate::bed::{Read, try_read};
use std::fs::{self, File};
use std::io::BufReader;
use std::path::PathBuf;
use weir_observe::import::{ImportError, Input, Options};

/// The folder of the samples; says so aloud if it is not there.
#[expect(clippy::print_stdout, reason = "a test that is skipped says so aloud")]
pub(crate) fn folder() -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/samples");
    if !root.is_dir() {
        println!("skipped: needs the samples beside the project");
        return None;
    }
    Some(root)
}

/// Reads a sample.
pub(crate) fn try_sample(path: &str) -> Option<Result<Read, ImportError>> {
    let file = File::open(folder()?.join(path)).expect(path);
    let input = Input { name: path.to_owned(), bytes: Box::new(BufReader::new(file)), kind: None };
    Some(try_read(vec![input], &Options::default()))
}

/// Reads a sample that can be read.
#[track_caller]
pub(crate) fn sample(path: &str) -> Option<Read> {
    Some(try_sample(path)?.unwrap_or_else(|error| panic!("{path}: {error}")))
}

/// What becomes of each: its kind and how many samples it has, or how it is refused.
const EXPECT: &[(&str, &str, u64)] = &[
    ("aws_cloudwatch/c7n_ebs_DescribeVolumes.json", "describe-volumes of AWS", 0),
    ("azure_monitor/azps_metrics_empty_timeseries.json", "are empty", 0),
    ("azure_monitor/c7n_SqlServerTest.test_metric_database.json", "azure-monitor", 3),
    ("block_traces/blkparse_nvme_259-2.txt", "blkparse", 2),
    ("block_traces/cloudPhysicsIO.csv", "cloudphysics", 7143),
    ("block_traces/disksim_ascii.trace", "disksim", 1534),
    ("block_traces/mqsim_tpcc-small.trace", "mqsim", 2),
    ("derived_variants/fio_truncated.json", "is cut here", 0),
    ("derived_variants/fio_utf16le_bom.json", "fio", 1),
    ("derived_variants/iostat_crlf.txt", "iostat", 4),
    ("derived_variants/iostat_decimal_comma.txt", "iostat", 4),
    ("derived_variants/iostat_truncated_last_line.txt", "iostat", 4),
    ("derived_variants/perfmon_decimal_comma.csv", "perfmon", 4),
    ("derived_variants/perfmon_tab.tsv", "perfmon", 4),
    ("derived_variants/perfmon_truncated_last_line.csv", "perfmon", 3),
    ("derived_variants/perfmon_tz_header_blank_first_sample.csv", "perfmon", 4),
    ("derived_variants/perfmon_utf16le_bom_crlf.csv", "perfmon", 4),
    ("derived_variants/perfmon_utf8_bom.csv", "perfmon", 4),
    ("derived_variants/qpi_nulls_empty_semicolon_decimal_comma.csv", "sqlserver", 1),
    ("derived_variants/variants.json", "known here", 0),
    ("derived_variants/waits_thousands_separators.tsv", "sqlserver", 1),
    ("diskspd/kisel_Irbis_TW57.txt", "diskspd", 1),
    ("diskspd/kisel_goodwinserverdc.westeurope.cloudapp.azure.com.txt", "diskspd", 2),
    ("diskspd/vc_DiskSpdExample-WriteOnly-v2.2.0-SingleGroup.txt", "diskspd", 1),
    ("diskspd/vc_Results_DiskSpd.txt", "diskspd", 1),
    ("diskstats/jc_linux-proc_diskstats", "diskstats", 1),
    ("diskstats/sysstat_root1/diskstats", "diskstats", 1),
    ("diskstats/sysstat_root2/uptime", "known here", 0),
    ("diskstats/sysstat_root4/diskstats", "diskstats", 1),
    ("diskstats/sysstat_root5/uptime", "known here", 0),
    ("fio_jobs/fio_1mbs_clients.fio", "job file of fio", 0),
    ("fio_jobs/fio_flow.fio", "job file of fio", 0),
    ("fio_jobs/fio_latency-profile.fio", "job file of fio", 0),
    ("fio_jobs/fio_sequence-distribution.fio", "job file of fio", 0),
    ("fio_jobs/fio_zipf.fio", "job file of fio", 0),
    ("fio_jobs/kochaika_write.ini", "job file of fio", 0),
    ("fio_jobs/vc_expectedoltp-c.fio1.jobfile", "job file of fio", 0),
    ("fio_json/pbench_fio-0_fio-result.txt", "fio", 1),
    ("fio_json/pbench_fio-0_fio_slat.1.log", "fio-log", 15),
    ("fio_json/vc_Results_FIO.json", "fio", 1),
    ("fio_json/vc_Results_FIO_ReadWrite.json", "fio", 1),
    ("hammerdb/aws_ec2_FinalResult-TPCC-Blog-B1.csv", "hammerdb-table", 9),
    ("hammerdb/aws_ec2_hammerdb_5E14E7F5806C03E203437343.log", "hammerdb", 1),
    ("hammerdb/aws_ec2_hammerdb_5E14EE85E49103E293539353.log", "hammerdb", 1),
    ("hammerdb/aws_ec2_hammerdb_5E14F5524C4F03E223938363.log", "hammerdb", 1),
    ("hammerdb/pkb_hammerdbcli_tpcc_tpm_per_second_4_3.log", "hammerdb-counter", 98),
    ("hammerdb/vc_HammerDBMySQL.txt", "hammerdb", 1),
    ("iometer/eilerjc_cov_rich_disk.icf", "iometer-icf", 1),
    ("iometer/eilerjc_icf_compat_golden_two_managers_run.golden.txt", "result of Iometer", 0),
    ("iometer/eilerjc_icf_compat_oldformat_specs.icf", "iometer-icf", 1),
    ("iometer/eilerjc_multispec_worker.icf", "iometer-icf", 1),
    ("iostat_json/pkb_iostat_output.json", "iostat-json", 1),
    ("iostat_text/jc_centos-7.7_iostat-1.out", "iostat", 2),
    ("iostat_text/jc_centos-7.7_iostat-x.out", "iostat", 1),
    ("iostat_text/jc_ubuntu-18.04_iostat-m.out", "iostat", 1),
    ("iostat_text/jc_ubuntu-18.04_iostat.out", "iostat", 1),
    ("iostat_text/jc_ubuntu-20.10_iostat-x.out", "iostat", 1),
    ("iostat_text/pbench_gold/iostat-1_disk_Utilization_percent.csv", "known here", 0),
    ("iostat_text/pbench_iostat-1.txt", "iostat", 21),
    ("iostat_text/pcp_iostat", "iostat", 2),
    ("iostat_text/pcp_iostat-d-k", "iostat", 2),
    ("iostat_text/pcp_iostat-t", "iostat", 2),
    ("iostat_text/pcp_iostat-x", "iostat", 2),
    ("iostat_text/pgbenchtools480_golden_iostat.csv", "known here", 0),
    ("iostat_text/pgbenchtools_iostat-darwin.log", "iostat of macOS", 0),
    ("iostat_text/pgbenchtools_iostat.log", "iostat", 12),
    ("iostat_text/sysstat_expected.iostat-dec", "iostat", 1),
    ("iostat_text/sysstat_expected.iostat-mz", "iostat", 1),
    ("iostat_text/sysstat_expected.iostat-x", "iostat", 1),
    ("perfmon/aws_ec2_sqlserver_hammerdb_getcounter_long.csv", "get-counter", 84),
    ("perfmon/typeperf_block2.csv", "perfmon", 4),
    ("pg_stat/pg_stat_database_pg10_expanded.txt", "postgres", 1),
    ("pg_stat/pgstat_vmstat_like_outputs.txt", "known here", 0),
    ("pgbench/pgbenchtools480_latency_1s.csv", "pgbench-table", 481),
    ("sar/pbench_sar-0.txt", "sar", 21),
    ("sar/pbench_sar-4.txt", "sar", 20),
    ("sar/sysstat_expected.data-11.6.5-sadf-j", "has no sample", 0),
    ("sar/sysstat_expected.sadf-d", "sadf-d", 5),
    ("sar/sysstat_expected.sadf-p", "sadf-p", 5),
    ("sar/sysstat_expected.sar-D", "sar", 2),
    ("sar/sysstat_expected.sar-pretty", "sar", 5),
    ("sql_governance/mi_bc_dm_db_resource_stats.csv", "sqlserver", 256),
    ("sql_governance/mi_bc_server_resource_stats.csv", "sqlserver", 302),
    ("sql_master_files/ipb_rhel_file_layout.txt", "sqlserver", 1),
    ("sql_qpi/mi_gp_cell04_2020-01-22T103337_db_file_stats.csv", "sqlserver", 1),
    ("sql_qpi/mi_gp_cell08_2020-01-22T125115_file_stats.csv", "sqlserver", 1),
    ("sql_qpi/mi_gp_cell30_2020-01-22T133229_db_file_stats.csv", "sqlserver", 1),
    ("sql_qpi/mi_gp_cell31_2020-01-22T133520_file_stats.csv", "sqlserver", 1),
    ("sql_qpi/mi_gp_last_file_stats.dataresource.json", "sqlserver", 1),
    ("sql_sku_csv/TEST,MSSQLSERVER_CommonDbLevel_Counters.csv", "sqlserver", 1),
    ("sql_virtual_file_stats/book_partial_columns.md", "sqlserver", 1),
    ("sql_virtual_file_stats/ipb_win_gdr_io_stall.txt", "sqlserver", 1),
    ("sql_wait_stats/blitzfirst_top5_waits.csv", "sqlserver", 1),
    ("sql_wait_stats/ipb_rhel_wait_stats_before.csv", "sqlserver", 1),
    ("sql_wait_stats/ipb_win_gdr_wait_stats_after.csv", "sqlserver", 1),
    ("sql_wait_stats/markdown_waits_thousands_sep.md", "sqlserver", 1),
    ("vmstat/jc_centos-7.7_vmstat-a.out", "vmstat", 1),
    ("vmstat/jc_centos-7.7_vmstat-d.out", "vmstat-d", 1),
    ("vmstat/jc_generic_vmstat-extra-wide.out", "vmstat", 1),
    ("vmstat/pgbenchtools480_golden_vmstat.csv", "known here", 0),
    ("vmstat/pgbenchtools_vmstat.log", "vmstat", 12),
];

/// Nothing panics, what is refused is so with words, and of those that are known it is known
/// what becomes of them.
#[test]
fn every_sample_is_read_or_refused() {
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
        let expect = EXPECT.iter().find(|(path, ..)| *path == name);
        match (try_sample(&name).expect("the samples"), expect) {
            (Ok(read), Some((_, kind, samples))) => {
                assert_eq!((read.kind(), read.summary.samples), (*kind, *samples), "{name}");
            }
            (Err(error), Some((_, why, _))) => {
                assert!(error.to_string().contains(why), "{name}: {error}");
            }
            (Err(error), None) => assert!(!error.to_string().trim().is_empty(), "{name}"),
            (Ok(_), None) => {}
        }
    }
}
