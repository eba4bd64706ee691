//! `weir diagnose`: runs, reports of other tools, and invalid input.

use crate::common::{Place, run};
use serde_json::Value;
use std::fmt::Write as _;

const LAYOUT: &str = "edition = \"azure-premium-2015\"\nhost = { size = \"DS3\" }\n[[volume]]\n\
    name = \"data\"\ntier = \"P10\"\n[[volume]]\nname = \"log\"\ntier = \"P20\"\n";

const HELD: &str = "[a]\nfilename=/mnt/data\nrw=randread\nbs=8k\nruntime=60\ntime_based\ndirect=1\n\
    ioengine=libaio\niodepth=32\n";

const CALM: &str = "[a]\nfilename=/mnt/data\nrw=randread\nbs=8k\nruntime=60\ntime_based\ndirect=1\n\
    ioengine=libaio\niodepth=4\nrate_iops=100\n";

fn place() -> Place {
    let place = Place::new();
    place.file("layout.toml", LAYOUT);
    place.file("held.fio", HELD);
    place.file("calm.fio", CALM);
    place
}

#[track_caller]
fn observed(place: &Place, jobs: &str) {
    let (_, stderr, code) =
        run(place.weir(&["sim", "layout.toml", jobs, "--observe", "run.weirobs"]));
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
}

/// iostat's report of a minute on one device: reads a second, and how long each took.
fn iostat(device: &str, reads: u32, await_ms: f64) -> String {
    let mut text = "Linux 5.10.0 (db1) \t11/22/26 \t_x86_64_\t(4 CPU)\n".to_owned();
    for second in 0..60 {
        let depth = f64::from(reads) * await_ms / 1e3;
        let kib = reads * 8;
        let _ = write!(
            text,
            "\n11/22/26 10:{:02}:{:02}\navg-cpu:  %user   %nice %system %iowait  %steal   %idle\n           \
             5.00    0.00    1.00    4.00    0.00   90.00\n\nDevice            r/s     rkB/s   rrqm/s  \
             %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz     d/s     dkB/s   \
             drqm/s  %drqm d_await dareq-sz  aqu-sz  %util\n{device}  {reads}.00 {kib}.00 0.00 0.00 \
             {await_ms:.2} 8.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 {depth:.2} 99.00\n",
            second / 60,
            second % 60
        );
    }
    text
}

#[test]
fn a_throttled_run_is_recognised_with_its_exit_code() {
    let place = place();
    observed(&place, "held.fio");
    let (stdout, stderr, code) = run(place.weir(&["diagnose", "run.weirobs", "-o", "json"]));
    assert_eq!((stderr.as_str(), code), ("", Some(1)));
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(report["verdict"], "throttled");
    let first = &report["findings"][0];
    assert_eq!((&first["check_id"], &first["subject"]), (&101.into(), &"data".into()));
    assert_eq!((&first["cap"], &first["confidence"]), (&"disk_iops".into(), &"high".into()));
    // By simulation: a P20 has 2,300 instead of 500, and 32 requests under way are enough.
    let effect = &first["effect"];
    let (before, after) = (effect["iops_before"].as_f64(), effect["iops_after"].as_f64());
    assert!(before.is_some_and(|iops| (495.0..=505.0).contains(&iops)), "{effect}");
    assert!(after.is_some_and(|iops| (2_250.0..=2_310.0).contains(&iops)), "{effect}");
}

/// Reads and writes of this disk have limits of their own, 75 and 150 a second.
#[test]
fn separate_limits_of_reads_and_writes_are_named() {
    let place = Place::new();
    place.file(
        "layout.toml",
        "edition = \"gcp\"\nhost = { size = \"n1-8vcpu\" }\n[[volume]]\nname = \"data\"\n\
         family = \"pd-standard\"\nsize = \"100 GiB\"\n",
    );
    for (kind, cap) in [("randwrite", "host_write_iops"), ("randread", "host_uncached_iops")] {
        place.file("held.fio", &HELD.replace("randread", kind));
        place.file("calm.fio", &CALM.replace("randread", kind).replace("=100\n", "=50\n"));
        for (jobs, verdict) in [("held.fio", "throttled"), ("calm.fio", "healthy")] {
            observed(&place, jobs);
            for layout in [&["--layout", "layout.toml"][..], &[]] {
                let args = [&["diagnose", "run.weirobs", "-o", "json"], layout].concat();
                let (stdout, stderr, _) = run(place.weir(&args));
                let report: Value = serde_json::from_str(&stdout).expect("JSON");
                assert_eq!(report["verdict"], verdict, "{kind} {layout:?} {stderr} {stdout}");
                if verdict == "throttled" {
                    assert_eq!(report["findings"][0]["cap"], cap, "{kind} {layout:?} {stdout}");
                }
            }
        }
    }
}

/// Waits that Weir counted decide even if they take less than a millisecond, as on a disk that is fast itself.
#[test]
fn waits_of_a_fast_disk_that_were_counted_are_throttling() {
    let place = place();
    let layout = "edition = \"azure-now\"\nhost = { size = \"D8s_v5\" }\n[[volume]]\nname = \"data\"\n\
        family = \"premium-ssd-v2\"\nsize = \"100 GiB\"\n";
    place.file("layout.toml", layout);
    let jobs = |depth: u32| HELD.replace("iodepth=32", &format!("iodepth={depth}"));
    for (depth, code, expect) in [
        (5, 1, "throttled: data is throttled by its IOPS limit, 3,000 IOPS: "),
        (2, 0, "%, and waits at limits are 14."),
    ] {
        place.file("jobs.fio", &jobs(depth));
        let sim = run(place.weir(&["sim", "layout.toml", "jobs.fio", "--observe", "run.weirobs"]));
        assert_eq!(sim.2, Some(0), "{}", sim.1);
        let (stdout, stderr, got) = run(place.weir(&["diagnose", "run.weirobs"]));
        assert!(stdout.contains(expect), "depth {depth}: {stdout}{stderr}");
        assert_eq!(got, Some(code));
    }
}

/// Disks without tiers have no next one: rates are bought, or follow from the size.
#[test]
fn a_disk_without_tiers_is_advised_to_buy_or_to_grow() {
    let place = place();
    let check = |layout: &str, advice: &str, iops: f64| {
        place.file("layout.toml", layout);
        observed(&place, "held.fio");
        let (stdout, _, code) = run(place.weir(&["diagnose", "run.weirobs", "-o", "json"]));
        assert_eq!(code, Some(1), "{stdout}");
        let report: Value = serde_json::from_str(&stdout).expect("JSON");
        let first = &report["findings"][0];
        assert_eq!(first["check_id"], 101, "{first:#}");
        let fix = first["action"].as_str().expect("advice");
        assert!(fix.contains(advice), "{fix}");
        let expected = first["effect"]["iops_after"].as_f64().expect("a rate");
        assert!((expected / iops - 1.0).abs() < 0.02, "{first:#}");
    };
    let bought = "edition = \"azure-now\"\nhost = { size = \"D16s_v5\" }\n[[volume]]\nname = \"data\"\n\
                  family = \"premium-ssd-v2\"\nsize = \"100 GiB\"\niops = 3000\nthroughput = \"125 MB/s\"\n";
    check(bought, "buy 6000 IOPS and 125 MB/s for data", 6_000.0);
    let sized = "edition = \"aws\"\nhost = { size = \"m5.4xlarge\" }\n[[volume]]\nname = \"data\"\nfamily = \"gp2\"\n\
                 size = \"1000 GiB\"\n";
    check(sized, "grow data to 2000 GiB: the limits of gp2 follow from the size", 6_000.0);
}

#[test]
fn a_run_below_its_limits_is_healthy() {
    let place = place();
    observed(&place, "calm.fio");
    let (stdout, stderr, code) = run(place.weir(&["diagnose", "run.weirobs"]));
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    assert!(stdout.starts_with("healthy: no limit throttles requests"), "{stdout}");
}

#[test]
fn reports_of_other_tools_are_diagnosed_with_a_layout() {
    let place = place();
    place.file("iostat.txt", &iostat("sdc", 498, 63.0));
    let args = ["diagnose", "iostat.txt", "--layout", "layout.toml", "--map", "sdc=data"];
    let (stdout, _, code) = run(place.weir(&args));
    assert_eq!(code, Some(1), "{stdout}");
    assert!(stdout.starts_with("throttled: data is throttled by its IOPS limit"), "{stdout}");
    // The same, far from the limit.
    place.file("iostat.txt", &iostat("sdc", 60, 2.0));
    let (stdout, _, code) = run(place.weir(&args));
    assert_eq!(code, Some(0), "{stdout}");
}

#[test]
fn all_formats_and_the_page() {
    let place = place();
    observed(&place, "held.fio");
    let as_format = |format: &str| {
        run(place.weir(&["diagnose", "run.weirobs", "-o", format, "--html", "r.html"])).0
    };
    let csv = as_format("csv");
    assert!(
        csv.starts_with("CheckID,Priority,FindingsGroup,Finding,URL,Details\n101,10,"),
        "{csv}"
    );
    assert!(as_format("markdown").starts_with("# throttled\n"));
    let page = std::fs::read_to_string(place.path("r.html")).expect("the page");
    assert!(page.contains("<svg") && page.contains("disk-operations"));
}

#[track_caller]
fn refused(place: &Place, args: &[&str], says: &[&str]) {
    let (stdout, stderr, code) = run(place.weir(args));
    assert_eq!((stdout.as_str(), code), ("", Some(2)), "{stderr}");
    for word in says {
        assert!(stderr.contains(word), "{word} is not in {stderr}");
    }
    assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
}

#[test]
fn an_error_is_one_line() {
    let place = place();
    observed(&place, "held.fio");
    place.file("nothing.txt", "nothing that anybody knows\n");
    place.file("iostat.txt", &iostat("sdc", 498, 63.0));
    refused(&place, &["diagnose", "missing.weirobs"], &["missing.weirobs"]);
    refused(&place, &["diagnose", "nothing.txt"], &["nothing.txt"]);
    let with = |rest: &[&'static str]| -> Vec<&'static str> {
        ["diagnose", "iostat.txt"].into_iter().chain(rest.iter().copied()).collect()
    };
    refused(&place, &with(&["--edition", "azure-mi"]), &["azure-mi-2018"]);
    refused(&place, &with(&["--layout", "layout.toml"]), &["sdc", "data, host, log", "--map"]);
    let map = |map: &'static str| with(&["--layout", "layout.toml", "--map", map]);
    refused(&place, &map("sdc"), &["OBSERVED=LAYOUT"]);
    refused(&place, &map("sdb=data"), &["sdb", "sdc"]);
    refused(&place, &map("sdc=dat"), &["\"dat\"", "\"data\""]);
    refused(&place, &with(&["--jobs", "2"]), &["--jobs needs --fleet DIR, and files are given"]);
    refused(&place, &with(&["--by", "day"]), &["--by needs --fleet DIR"]);
}

/// Snapshots of /proc/diskstats of a minute, a second apart, from a second of the clock on.
fn diskstats(device: &str, begin: u64, reads: u64, await_ms: u64) -> String {
    let mut text = String::new();
    for second in 0..60 {
        let (count, busy) = (second * reads, second * reads * await_ms);
        let _ = write!(
            text,
            "{}\n   8      32 {device} {count} 0 {} {busy} 0 0 0 0 0 {} {busy} 0 0 0 0 0 0\n",
            begin + second,
            count * 16,
            second * 1000
        );
    }
    text
}

/// 22 November 2026, 10:00, when [`iostat`] begins.
const TEN: u64 = 1_795_341_600;

#[test]
fn an_entity_without_a_host_is_on_the_only_one_in_any_order() {
    let place = place();
    place.file("iostat.txt", &iostat("sdc", 100, 9.0));
    place.file("diskstats.txt", &diskstats("sdc", TEN - 86_400, 498, 63));
    let verdict = |files: [&str; 2]| {
        let rest = ["--layout", "layout.toml", "--map", "sdc=data"];
        let (stdout, stderr, _) = run(place.weir(&[&["diagnose"], &files[..], &rest].concat()));
        assert!(!stdout.contains("left out: sdc"), "{stdout}{stderr}");
        let note = "iostat.txt begins 86341 s after the end of diskstats.txt";
        assert!(stdout.contains(note), "{stdout}");
        stdout.lines().next().map(str::to_owned)
    };
    let one = verdict(["iostat.txt", "diskstats.txt"]);
    assert_eq!(one, verdict(["diskstats.txt", "iostat.txt"]));
    assert!(one.is_some_and(|verdict| verdict.starts_with("throttled: ")));
}

#[test]
fn a_name_that_several_have_is_refused_with_all_of_them() {
    let place = place();
    place.file("one.txt", &iostat("sdc", 498, 63.0));
    place.file("other.txt", &iostat("sdc", 60, 2.0).replace("(db1)", "(db2)"));
    let with = |map: &'static str| {
        ["diagnose", "one.txt", "other.txt", "--layout", "layout.toml", "--map", map]
    };
    refused(&place, &with("sdc=data"), &["\"sdc\"", "db1.sdc, db2.sdc"]);
    let (stdout, _, code) = run(place.weir(&with("db1.sdc=data")));
    assert_eq!(code, Some(1), "{stdout}");
    let (stdout, _, code) = run(place.weir(&with("db2.sdc=data")));
    assert_eq!(code, Some(0), "{stdout}");
}

#[test]
fn a_gap_is_a_note_and_no_note_comes_twice() {
    let place = place();
    let late = |text: &str| text.replace("10:00:5", "11:00:5");
    place.file("iostat.txt", &late(&iostat("sdc", 60, 2.0)));
    let (stdout, _, code) = run(place.weir(&["diagnose", "iostat.txt"]));
    assert_eq!(code, Some(0), "{stdout}");
    let gap = "iostat.txt: samples are usually 1 s apart; unobserved gaps of more than 60 s: 1, \
        the longest 3601 s";
    for note in [gap, "iostat.txt: not used: "] {
        assert_eq!(stdout.matches(note).count(), 1, "{stdout}");
    }
    assert!(!stdout.contains("-0.0"), "{stdout}");
}

const FILES: &str = "sample_time,database_name,file_name,type_desc,size_on_disk_bytes";

#[test]
fn columns_that_are_missing_are_named_with_what_needs_them() {
    let place = place();
    place.file(
        "noops.csv",
        "sample_time,database_name,file_name,io_stall_read_ms,io_stall_write_ms\n\
         2026-11-22T14:00:00,db1,d,100,100\n2026-11-22T14:00:01,db1,d,200,200\n",
    );
    let (stdout, _, _) = run(place.weir(&["diagnose", "noops.csv", "--edition", "azure-mi-2018"]));
    let says = "not enough evidence: num_of_reads, num_of_writes are missing for db1.d: ";
    assert!(stdout.starts_with(says), "{stdout}");
    assert!(stdout.contains("disk-operations") && !stdout.contains("one sample"), "{stdout}");
}

#[test]
fn limits_are_named_with_the_database_where_names_are_not_unique() {
    let place = place();
    let mut text = format!(
        "{FILES},num_of_reads,num_of_bytes_read,io_stall_read_ms,num_of_writes,\
         num_of_bytes_written,io_stall_write_ms\n"
    );
    for second in 0..60 {
        for (database, reads) in [("a", 0), ("b", 100), ("c", 200)] {
            let reads = reads * second;
            let _ = writeln!(
                text,
                "2026-11-22T14:00:{second:02},{database},data_0,ROWS,107374182400,{reads},{},{},0,0,0",
                reads * 8192,
                reads * 5
            );
        }
    }
    place.file("files.csv", &text);
    let args = ["diagnose", "files.csv", "--edition", "azure-mi-2018", "--verbose"];
    let (stdout, _, _) = run(place.weir(&args));
    let limits = stdout.split("\nLimits").nth(1).and_then(|rest| rest.split("\n\n").next());
    let limits = limits.unwrap_or_else(|| panic!("{stdout}"));
    assert!(limits.contains(" b.data_0 ") && limits.contains(" c.data_0 "), "{limits}");
    assert!(!limits.contains(" data_0 "), "{limits}");
    // The limits of the first host were not used.
    assert!(limits.starts_with(" (2 unused limits") && !limits.contains("a.data_0"), "{limits}");
    let json = run(place.weir(&[&args[..], &["-o", "json"]].concat())).0;
    assert!(json.contains("\"owner\": \"a.data_0\""), "{json}");
}

/// Commands of Weir that findings name.
const NAMED: &[&[&str]] = &[&["observe", "script", "--sqlserver"]];

#[test]
fn commands_that_findings_name_are_there() {
    let place = place();
    for command in NAMED {
        let (_, stderr, code) = run(place.weir(&[command, &["--help"][..]].concat()));
        assert_eq!((stderr.as_str(), code), ("", Some(0)), "weir {command:?}");
    }
    let verbs = run(place.weir(&["--help"])).0;
    let verbs: Vec<&str> = verbs.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    let verbs = verbs.iter().filter_map(|line| line.split_whitespace().next());
    let verbs: Vec<&str> = verbs.filter(|verb| !verb.starts_with('-')).collect();
    let rules = concat!(env!("CARGO_MANIFEST_DIR"), "/../weir-diagnose/src/rules");
    let mut found = 0;
    for file in std::fs::read_dir(rules).expect("the rules") {
        let path = file.expect("a rule").path();
        let text = std::fs::read_to_string(&path).expect("its text");
        let words: Vec<&str> = text.split_whitespace().filter(|word| *word != "\\").collect();
        for (at, _) in words.iter().enumerate().filter(|(_, word)| word.ends_with("weir")) {
            let rest = &words[at + 1..];
            if !rest.first().is_some_and(|verb| verbs.contains(verb)) {
                continue;
            }
            let is_it = |command: &&&[&str]| {
                let own = rest.iter().map(|word| word.trim_end_matches([')', ';', ',', '.', '"']));
                own.take(command.len()).eq(command.iter().copied())
            };
            let named = rest.iter().take(4).copied().collect::<Vec<_>>().join(" ");
            assert!(NAMED.iter().any(|command| is_it(&command)), "{}: {named}", path.display());
            found += 1;
        }
    }
    assert!(found >= 3, "{found}");
}

#[test]
fn two_copies_of_counters_are_one_observation() {
    let place = place();
    let head = "sample_time,database_name,file_name,type_desc,size_on_disk_bytes,num_of_reads,\
        num_of_bytes_read,io_stall_read_ms,num_of_writes,num_of_bytes_written,io_stall_write_ms\n";
    let row = |time: &str, n: u64, ms: u64| {
        format!("{head}2026-11-22T{time},db1,d,ROWS,34359738368,{n},{},{ms},0,0,0\n", n * 8192)
    };
    // 500 operations a second of 2 s each between them.
    place.file("before.csv", &row("14:00:00", 1_000, 1_000));
    place.file("after.csv", &row("14:01:40", 51_000, 100_001_000));
    let args = ["diagnose", "before.csv", "after.csv", "--edition", "azure-mi-2018"];
    let (stdout, _, code) = run(place.weir(&args));
    assert_eq!(code, Some(1), "{stdout}");
    assert!(stdout.contains("before.csv, after.csv; 2 samples, 100 s apart"), "{stdout}");
}

#[test]
fn waits_of_postgres_are_a_cause() {
    let place = place();
    let mut text = "sampled_at,state,wait_event_type,wait_event,count\n".to_owned();
    for second in 0..60 {
        let _ = write!(
            text,
            "2026-11-22 14:00:{second:02},active,Lock,transactionid,9\n\
             2026-11-22 14:00:{second:02},active,IO,DataFileRead,1\n"
        );
    }
    place.file("pg.csv", &text);
    let (stdout, stderr, code) = run(place.weir(&["diagnose", "pg.csv"]));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stdout.starts_with("not the storage: sessions wait for locks"), "{stdout}");
    assert!(stdout.contains("90.0 % of all wait time, 9.00 waiting sessions"), "{stdout}");
}

#[test]
fn a_disk_keeps_its_load_beside_a_file_of_its_name() {
    let place = place();
    let file = "[[file]]\nname = \"data\"\nrole = \"data\"\nsize = \"90 GiB\"\non = \"data\"\n";
    place.file("same.toml", &format!("{LAYOUT}{file}"));
    place.file("held.txt", &iostat("sdc", 499, 40.0));
    let args = ["diagnose", "held.txt", "--layout", "same.toml", "--map", "sdc=data"];
    let (stdout, _, code) = run(place.weir(&args));
    assert_eq!(code, Some(1), "{stdout}");
    assert!(stdout.starts_with("throttled: data is throttled by its IOPS limit"), "{stdout}");
}

/// One volume of a host is throttled by bytes, and another takes most of the host's operations.
#[test]
fn limits_on_bytes_and_on_operations_bind_different_volumes() {
    let place = place();
    let volume = |name: &str| {
        format!(
            "[[volume]]\nname = \"{name}\"\nsize = \"512 GiB\"\nlimits = {{ iops = 20000, throughput = \
             \"900 MiB/s\" }}\n"
        )
    };
    let layout = format!(
        "edition = \"azure-now\"\n[host]\nlimits = {{ uncached = {{ iops = 10000, throughput = \"100 \
         MiB/s\" }} }}\n{}{}",
        volume("large"),
        volume("small")
    );
    place.file("two.toml", &layout);
    // As the simulation of the two has it: 62 MiB/s of 256 KiB and 38 of 4 KiB.
    let device = |name: &str, reads: u32, kib: u32, await_ms: f64| {
        let depth = f64::from(reads) * await_ms / 1e3;
        format!(
            "{name} {reads}.00 {}.00 0.00 0.00 {await_ms:.2} {kib}.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 \
             0.00 0.00 0.00 0.00 0.00 {depth:.2} 99.00\n",
            reads * kib
        )
    };
    let heads = iostat("large", 1, 1.0);
    let mut text = String::new();
    for line in heads.lines() {
        match line.starts_with("large") {
            true => text += &(device("large", 248, 256, 64.5) + &device("small", 9_750, 4, 26.25)),
            false => text += &format!("{line}\n"),
        }
    }
    place.file("two.txt", &text);
    let (stdout, _, code) = run(place.weir(&["diagnose", "two.txt", "--layout", "two.toml"]));
    assert_eq!(code, Some(1), "{stdout}");
    for words in ["IOPS limit, 10,000 IOPS", "throughput limit, 100 MiB/s"] {
        assert!(stdout.contains(&format!("host is throttled by its uncached {words}")), "{stdout}");
    }
    assert!(!stdout.contains("large is slow but not throttled"), "{stdout}");
}

#[test]
fn a_name_in_use_cannot_be_mapped_to() {
    let place = place();
    place.file("one.txt", &iostat("data", 60, 2.0));
    place.file("two.txt", &iostat("log", 60, 2.0));
    let args = ["diagnose", "one.txt", "two.txt", "--layout", "layout.toml", "--map", "log=data"];
    let (_, stderr, code) = run(place.weir(&args));
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("--map log=data: the observation also has \"data\""), "{stderr}");
}

#[test]
fn processors_of_which_nothing_is_known_are_not_busy() {
    let place = place();
    let zeros = "0.00    0.00    0.00    0.00    0.00    0.00";
    let text =
        iostat("sdc", 60, 2.0).replace("5.00    0.00    1.00    4.00    0.00   90.00", zeros);
    place.file("iostat.txt", &text);
    let (stdout, _, code) = run(place.weir(&["diagnose", "iostat.txt"]));
    assert_eq!(code, Some(0), "{stdout}");
    assert!(!stdout.contains("not the storage"), "{stdout}");
}

/// A result of fio: 64 random reads of 8 KiB in flight for a minute.
fn fio(iops: f64, latency_ms: f64) -> String {
    format!(
        r#"{{"fio version":"fio-3.28","timestamp_ms":1795341660000,
        "jobs":[{{"jobname":"t","job options":{{"rw":"randread","bs":"8k","ioengine":"libaio",
        "iodepth":"32","numjobs":"2","group_reporting":""}},
        "read":{{"io_bytes":{bytes},"io_kbytes":1,"bw_bytes":{rate},"iops":{iops},
        "total_ios":{count},"runtime":60000,"lat_ns":{{"mean":{ns}}}}},
        "write":{{"io_bytes":0,"io_kbytes":0,"bw_bytes":0,"iops":0.0,"total_ios":0,"runtime":0}}}}]}}"#,
        bytes = iops * 60.0 * 8192.0,
        rate = iops * 8192.0,
        count = iops * 60.0,
        ns = latency_ms * 1e6,
    )
}

#[test]
fn a_result_of_a_benchmark_is_diagnosed_with_a_layout() {
    let place = place();
    let p30 = "edition = \"azure-premium-2015\"\nhost = { size = \"DS14\" }\n[[volume]]\nname = \
               \"data\"\ntier = \"P30\"\n";
    place.file("p30.toml", p30);
    // 64 in flight at 5,000 IOPS take 12.8 ms each.
    place.file("result.json", &fio(5_000.0, 12.8));
    let args = ["diagnose", "result.json", "--layout", "p30.toml", "--map", "t=data"];
    let json = [&args[..], &["-o", "json"]].concat();
    let (stdout, stderr, code) = run(place.weir(&json));
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    let first = &report["findings"][0];
    assert_eq!((&first["check_id"], &first["cap"]), (&101.into(), &"disk_iops".into()), "{stdout}");
    let finding = first["finding"].as_str().unwrap_or_default();
    assert!(finding.starts_with("t is throttled by its IOPS limit, 5,000 IOPS"), "{finding}");
    // A fast disk with as many in flight is none.
    place.file("result.json", &fio(2_000.0, 2.0));
    let (stdout, _, code) = run(place.weir(&args));
    assert_eq!(code, Some(0), "{stdout}");
    // Without the place of the job, the command asks for it.
    let bare = ["diagnose", "result.json", "--layout", "p30.toml"];
    refused(&place, &bare, &["the observation has t", "--map OBSERVED=LAYOUT"]);
    refused(&place, &[&bare[..], &["--map", "t=dat"]].concat(), &["\"dat\"", "\"data\""]);
    // Without a layout one run cannot tell a limit from a slow device.
    place.file("result.json", &fio(400.0, 160.0));
    let (stdout, _, code) = run(place.weir(&["diagnose", "result.json"]));
    assert_eq!(code, Some(0), "{stdout}");
    assert!(stdout.starts_with("not enough evidence: t is saturated"), "{stdout}");
    assert!(stdout.contains("t is saturated: 64.0 requests are always in flight"), "{stdout}");
}

/// Runs a command as in a pipe, without `COLUMNS`, and checks the width of its text.
#[track_caller]
fn fits(place: &Place, args: &[&str], width: usize) {
    let mut command = place.weir(args);
    command.env_remove("COLUMNS");
    if width != 80 {
        command.env("COLUMNS", width.to_string());
    }
    let (stdout, stderr, code) = run(command);
    assert!(matches!(code, Some(0 | 1)) && !stdout.is_empty(), "{args:?}: {stderr}");
    for line in stdout.lines() {
        // A path, an address or a command is never broken, so that it can be copied.
        let is_one_word = line.split_whitespace().count() <= 2;
        // Neither is a line of the layout that a plan prints, which is TOML.
        let is_layout = line.contains(" = { ");
        assert!(line.chars().count() <= width || is_one_word || is_layout, "{args:?}: {line}");
    }
    assert!(!stdout.contains('\u{1b}'), "{args:?}: a pipe has no colours");
}

#[test]
fn text_fits_80_columns() {
    let place = place();
    observed(&place, "held.fio");
    let commands: [&[&str]; 9] = [
        &["diagnose", "run.weirobs"],
        &["diagnose", "run.weirobs", "--verbose"],
        &["observe", "show", "run.weirobs"],
        &["observe", "checklist", "run.weirobs"],
        &["sim", "layout.toml", "held.fio"],
        &["layout", "check", "layout.toml"],
        &["catalog", "editions"],
        &["catalog", "tiers", "azure-now"],
        &["plan", "--iops", "16000", "--size", "4TiB"],
    ];
    for args in commands {
        fits(&place, args, 80);
        fits(&place, args, 120);
    }
}
