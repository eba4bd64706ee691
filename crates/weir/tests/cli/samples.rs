//! Every reading verb on the corpus of the importer and on the genuine files that lie beside the project: none may panic or print a
//! figure that is no number, and where the truth is known the verdict is the right one.

use crate::common::{Place, run};
use crate::tools;
use serde_json::Value;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const FORMATS: [&str; 4] = ["text", "json", "csv", "markdown"];

/// Lists all files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// Returns whether a text has a float that is not a number.
fn has_non_number(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| matches!(word, "NaN" | "nan" | "inf" | "Infinity"))
}

/// Runs one command and returns its flaws: a panic, an undocumented exit code, a failure without a
/// message, a figure that is no number, or JSON that does not parse.
fn flaws(place: &Place, args: &[&str], codes: &[i32]) -> Vec<String> {
    let (stdout, stderr, code) = run(place.weir(args));
    let mut found = Vec::new();
    if !code.is_some_and(|code| codes.contains(&code)) || stderr.contains("panicked") {
        found.push(format!("exit code {code:?}: {stderr}"));
    }
    if stdout.is_empty() && stderr.is_empty() {
        found.push("neither an answer nor a message".to_owned());
    }
    if let Some(line) = stdout.lines().chain(stderr.lines()).find(|line| has_non_number(line)) {
        found.push(format!("a figure that is no number: {line}"));
    }
    if args.contains(&"json") && !stdout.is_empty() {
        let parsed = serde_json::from_str::<Value>(&stdout);
        found.extend(parsed.err().map(|error| format!("JSON: {error}")));
    }
    found.into_iter().map(|flaw| format!("weir {}: {flaw}", args.join(" "))).collect()
}

/// Runs every reading verb over one file.
fn flaws_of_sample(path: &Path) -> Vec<String> {
    let place = Place::new();
    let name = path.to_str().expect("a path in UTF-8");
    let out = "sample.weirobs";
    let mut found = flaws(&place, &["observe", "import", name, "--out", out], &[0, 2]);
    if !place.path(out).exists() {
        return found;
    }
    for format in FORMATS {
        let output = ["--output", format];
        for args in [&["observe", "show", out][..], &["observe", "checklist", out]] {
            found.extend(flaws(&place, &[args, &output].concat(), &[0, 1, 2]));
        }
        for edition in [&[][..], &["--edition", "azure-mi-2018"], &["--edition", "azure-now"]] {
            let args = [&["diagnose", out][..], edition, &output].concat();
            found.extend(flaws(&place, &args, &[0, 1, 2]));
        }
        let plan = ["plan", "--edition", "azure-now", "--from", out];
        let args = [&plan[..], &["--size", "100GiB"], &output].concat();
        found.extend(flaws(&place, &args, &[0, 1, 2]));
    }
    found
}

/// Runs every reading verb over each of the files.
#[track_caller]
fn check(paths: &[PathBuf]) {
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let found: Vec<String> = thread::scope(|scope| {
        let work = || {
            let mut found = Vec::new();
            while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                found.extend(flaws_of_sample(path));
            }
            found
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_reading_verb_answers_or_refuses_the_corpus_of_the_importer() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/import");
    let paths = files(&root);
    assert!(paths.len() > 40, "{} inputs", paths.len());
    check(&paths);
}

#[test]
fn every_reading_verb_answers_or_refuses_every_sample() {
    let Some(root) = tools::samples() else { return };
    let paths = files(&root);
    assert!(paths.len() > 90, "{} samples", paths.len());
    check(&paths);
}

/// The right answer of `weir diagnose`.
enum Answer {
    /// A verdict, with the rule and the subjects that have to come first, in their order. If it is
    /// "throttled", these are all that is throttled; else nothing is.
    Verdict(&'static str, &'static str, &'static [&'static str]),
    /// A refusal that contains these words.
    Refused(&'static str),
}
use Answer::{Refused, Verdict};

const HEALTHY: Answer = Verdict("healthy", "", &[]);
const TOO_SHORT: Answer = Verdict("not-enough-evidence", "too-short", &["samples"]);
const ONE_SAMPLE: Answer = Verdict("not-enough-evidence", "one-sample", &["samples"]);
const NO_LIMITS: Answer = Verdict("not-enough-evidence", "no-limits", &["limits"]);
const FULL_QUEUE: Answer = Verdict("not-enough-evidence", "full-queue", &["C:\\testfile.foo"]);
const CELL08: &[&str] = &["DB2.data_0", "SSISDB.data_0", "DB3.data_0"];

/// Samples whose truth is known (SOURCES.md beside them), options, and the right answer.
const TRUTHS: &[(&str, &[&str], Answer)] = &[
    // Pinned near 3,000 IOPS in 39 of 50 busy minutes; the other disks are not.
    (
        "perfmon/aws_ec2_sqlserver_hammerdb_getcounter_long.csv",
        &[],
        Verdict("throttled", "ceiling", &["2 e:"]),
    ),
    // The governor throttles the writes of three files; DB2's log is slow and not queued.
    (
        "sql_qpi/mi_gp_cell08_2020-01-22T125115_file_stats.csv",
        &[],
        Verdict("throttled", "queued", CELL08),
    ),
    (
        "sql_qpi/mi_gp_cell08_2020-01-22T125115_file_stats.csv",
        &["--edition", "azure-mi-2018"],
        Verdict("throttled", "disk-operations", CELL08),
    ),
    (
        "derived_variants/qpi_nulls_empty_semicolon_decimal_comma.csv",
        &[],
        Verdict("throttled", "queued", CELL08),
    ),
    // Twelve files of tempdb queue for 80 % of their time; another made 204 writes in 109 minutes.
    (
        "sql_qpi/mi_gp_last_file_stats.dataresource.json",
        &["--edition", "azure-mi-2018"],
        Verdict("throttled", "queued", &["tempdb"]),
    ),
    // Hardly any load: 651 I/Os in 141 minutes and the like.
    (
        "sql_qpi/mi_gp_cell04_2020-01-22T103337_db_file_stats.csv",
        &["--edition", "azure-mi-2018"],
        HEALTHY,
    ),
    (
        "sql_qpi/mi_gp_cell30_2020-01-22T133229_db_file_stats.csv",
        &["--edition", "azure-mi-2018"],
        HEALTHY,
    ),
    (
        "sql_qpi/mi_gp_cell31_2020-01-22T133520_file_stats.csv",
        &["--edition", "azure-mi-2018"],
        HEALTHY,
    ),
    // Idle: a peak of 10.3 IOPS of 32,000.
    ("sql_governance/mi_bc_dm_db_resource_stats.csv", &[], HEALTHY),
    // The same instance, idle. It counts requests of the whole instance, and has neither latencies nor
    // the limits.
    (
        "sql_governance/mi_bc_server_resource_stats.csv",
        &[],
        Verdict("not-enough-evidence", "", &[]),
    ),
    // An idle server, seen for a second.
    ("sql_telegraf_v1/DatabaseIO.csv", &[], TOO_SHORT),
    ("sql_telegraf_v1/PerformanceCounters.csv", &[], TOO_SHORT),
    ("sql_telegraf_v1/WaitStatsCategorized.csv", &[], Refused("how long an interval")),
    // The storage of a tablet, which is slow: 1,061 IOPS with 64 requests in flight.
    ("diskspd/kisel_Irbis_TW57.txt", &[], FULL_QUEUE),
    // The disk of a machine of Azure that is likely to be limited, by inference from one run.
    ("diskspd/kisel_goodwinserverdc.westeurope.cloudapp.azure.com.txt", &[], FULL_QUEUE),
    // One disk of a machine with bursts, three of 21 reports at 90 % and more, and the same in sar: no
    // limits are stated.
    ("iostat_text/pbench_iostat-1.txt", &[], NO_LIMITS),
    ("sar/pbench_sar-0.txt", &[], NO_LIMITS),
    // Traces of 15.8 and 65.2 IOPS on average, without latencies or limits.
    ("block_traces/cloudPhysicsIO.csv", &[], NO_LIMITS),
    ("block_traces/disksim_ascii.trace", &[], NO_LIMITS),
    // 12 to 22 transfers a second in 0.2 to 0.4 ms, in every dialect.
    ("perfmon/typeperf_block2.csv", &[], HEALTHY),
    ("derived_variants/perfmon_decimal_comma.csv", &[], HEALTHY),
    ("derived_variants/perfmon_tab.tsv", &[], HEALTHY),
    ("derived_variants/perfmon_truncated_last_line.csv", &[], HEALTHY),
    ("derived_variants/perfmon_tz_header_blank_first_sample.csv", &[], HEALTHY),
    ("derived_variants/perfmon_utf16le_bom_crlf.csv", &[], HEALTHY),
    ("derived_variants/perfmon_utf8_bom.csv", &[], HEALTHY),
    // Another resource has the most waits.
    (
        "sql_wait_stats/blitzfirst_top5_waits.csv",
        &[],
        Verdict("not-the-storage", "parallelism", &["queries"]),
    ),
    ("iostat_text/pgbenchtools_iostat.log", &[], Verdict("not-the-storage", "cpu", &["toy"])),
    ("vmstat/pgbenchtools_vmstat.log", &[], Verdict("not-the-storage", "cpu", &["host"])),
    // One snapshot of counters has no rates, and its times are integer divisions.
    ("diskstats/jc_linux-proc_diskstats", &[], ONE_SAMPLE),
    ("diskstats/sysstat_root1/diskstats", &[], ONE_SAMPLE),
    ("diskstats/sysstat_root4/diskstats", &[], ONE_SAMPLE),
    ("vmstat/jc_centos-7.7_vmstat-d.out", &[], ONE_SAMPLE),
    ("sql_virtual_file_stats/ipb_win_gdr_io_stall.txt", &[], ONE_SAMPLE),
    ("sql_virtual_file_stats/book_partial_columns.md", &[], ONE_SAMPLE),
    ("sql_wait_stats/ipb_rhel_wait_stats_before.csv", &[], ONE_SAMPLE),
    ("sql_wait_stats/ipb_win_gdr_wait_stats_after.csv", &[], ONE_SAMPLE),
    ("sql_wait_stats/markdown_waits_thousands_sep.md", &[], ONE_SAMPLE),
    ("derived_variants/waits_thousands_separators.tsv", &[], ONE_SAMPLE),
    // Traces of a fraction of a second.
    ("block_traces/blkparse_nvme_259-2.txt", &[], TOO_SHORT),
    ("block_traces/mqsim_tpcc-small.trace", &[], TOO_SHORT),
    // Nothing in them reads or writes.
    ("azure_monitor/azps_metrics_empty_timeseries.json", &[], Refused("are empty")),
    ("aws_cloudwatch/c7n_ebs_DescribeVolumes.json", &[], Refused("describe-volumes of AWS")),
    ("derived_variants/fio_truncated.json", &[], Refused("is truncated here")),
    ("pg_stat/pg_stat_database_pg10_expanded.txt", &[], Refused("nothing to diagnose")),
    ("sql_master_files/ipb_rhel_file_layout.txt", &[], Refused("nothing to diagnose")),
];

/// Diagnoses a sample and returns how the answer differs from the right one, if it does.
fn difference(root: &Path, path: &str, options: &[&str], right: &Answer) -> Option<String> {
    let file = root.join(path);
    let args = ["diagnose", file.to_str()?, "--output", "json"];
    let (stdout, stderr, _) = run(Place::new().weir(&[&args[..], options].concat()));
    let report: Value = serde_json::from_str(&stdout).unwrap_or_default();
    let is_right = match right {
        Refused(words) => stdout.is_empty() && stderr.contains(words),
        Verdict(verdict, rule, subjects) => {
            let findings = report["findings"].as_array().map_or(&[][..], Vec::as_slice);
            // A finding can have several subjects.
            let found: Vec<(&Value, &Value, bool)> = findings
                .iter()
                .flat_map(|own| {
                    let is_throttling = own["group"] == "throttling";
                    let all = own["subjects"].as_array().map_or(&[][..], Vec::as_slice);
                    all.iter().map(move |subject| (&own["rule"], subject, is_throttling))
                })
                .collect();
            let begins = subjects.iter().enumerate().all(|(place, subject)| {
                found.get(place).is_some_and(|own| own.0 == rule && own.1 == subject)
            });
            let throttled: Vec<&Value> =
                found.iter().filter(|own| own.2).map(|own| own.1).collect();
            let expected = if *verdict == "throttled" { *subjects } else { &[] };
            report["verdict"] == *verdict && begins && throttled == expected
        }
    };
    (!is_right).then(|| format!("{path} {options:?}: {stderr}{stdout:.600}"))
}

#[test]
fn samples_of_known_truth_get_the_right_verdict() {
    let Some(root) = tools::samples() else { return };
    let wrong =
        |(path, options, right): &(&str, &[&str], Answer)| difference(&root, path, options, right);
    let wrong: Vec<String> = TRUTHS.iter().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
