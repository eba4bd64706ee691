//! `weir sweep`: results, interruptions, shards, reports and invalid input.

mod traces;
mod wrong;

use crate::common::{Place, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::process::Child;

const LAYOUT: &str = "edition = \"azure-now\"\nhost = { size = \"D8s_v3\" }\n\n[[volume]]\n\
    name = \"data\"\ntier = \"P30\"\n";
const JOB: &str = "[global]\nioengine=libaio\ndirect=1\nrw=randread\nsize=1g\nruntime=2s\n\
    time_based\n[job]\nfilename=/mnt/data\niodepth=8\nbs=4k\n";
const SWEEP: &str = "layout = \"layout.toml\"\nworkload = \"job.fio\"\n\n[[parameter]]\n\
    name = \"tier\"\nlayout = \"volume.data.tier\"\nvalues = [\"P20\", \"P30\"]\n\n[[parameter]]\n\
    name = \"depth\"\nworkload = \"job.iodepth\"\nfrom = 1\nto = 16\nsteps = 5\nscale = \"log\"\n";

/// Enough work that a signal comes before its end: a second of simulation on one core.
fn many() -> String {
    let parameter = "\n[[parameter]]\nname = \"seed-of-media\"\nlayout = \"seed\"\nfrom = 1\nto = 20\n\
        step = 1\n";
    format!("{SWEEP}{parameter}")
}

fn place() -> Place {
    let place = Place::new();
    place.file("layout.toml", LAYOUT);
    place.file("job.fio", JOB);
    place.file("sweep.toml", SWEEP);
    place.file("many.toml", &many());
    place
}

#[track_caller]
fn sweep(place: &Place, args: &[&str]) -> String {
    let (stdout, stderr, code) = run(place.weir(&[&["sweep"], args].concat()));
    assert_eq!((stderr.as_str(), code), ("", Some(0)), "{stdout}");
    stdout
}

fn text(place: &Place, name: &str) -> String {
    fs::read_to_string(place.path(name)).expect("a file")
}

/// Returns the fields of a column of a CSV file.
fn column(text: &str, name: &str) -> Vec<String> {
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let head = lines.next().expect("a header");
    let at = head.iter().position(|own| own == name).expect("the column");
    lines.map(|line| line[at].clone()).collect()
}

#[test]
fn a_sweep_has_a_row_for_each_point_and_names_the_parameter_that_matters() {
    let place = place();
    let told = sweep(&place, &["sweep.toml", "--out", "all.csv"]);
    assert!(told.starts_with("depth moves iops most: it explains "), "{told}");
    let all = text(&place, "all.csv");
    assert!(
        all.starts_with(
            "sweep,points,point,seed,tier,depth,status,reason,iops,throughput_bytes_per_s,\
             latency_mean_ns,latency_p50_ns,latency_p99_ns,binding_limit,binding_share,\
             price_per_month,currency\n"
        ),
        "{all}"
    );
    assert_eq!(column(&all, "depth"), ["1", "2", "4", "8", "16", "1", "2", "4", "8", "16"]);
    assert_eq!(column(&all, "point"), (0..10).map(|n| n.to_string()).collect::<Vec<_>>());
    assert!(!place.path("all.csv.journal").exists());
    // The row of a point is the result of weir sim.
    place.file("one.fio", &JOB.replace("iodepth=8", "iodepth=16"));
    let (sim, ..) = run(place.weir(&["sim", "layout.toml", "one.fio", "-o", "json"]));
    let sim: Value = serde_json::from_str(&sim).expect("JSON");
    let read = &sim["jobs"][0]["read"];
    let last = |name| column(&all, name).last().cloned().expect("a row");
    assert_eq!(last("iops"), read["iops"].as_f64().expect("a number").to_string());
    assert_eq!(last("latency_p99_ns"), read["latency"]["p99_ns"].to_string());
    assert_eq!(
        last("latency_mean_ns"),
        read["latency"]["mean_ns"].as_f64().expect("a number").to_string()
    );
}

#[test]
fn results_are_the_same_with_any_number_of_jobs() {
    let place = place();
    sweep(&place, &["sweep.toml", "--out", "one.csv", "--jobs", "1"]);
    sweep(&place, &["sweep.toml", "--out", "four.csv", "--jobs", "4"]);
    assert_eq!(text(&place, "one.csv"), text(&place, "four.csv"));
}

/// Starts a sweep, and waits until it has completed some of the points that are left.
fn started(place: &Place, args: &[&str]) -> Child {
    let journal = place.path(&format!("{}.journal", args.last().expect("an output")));
    let lines = || fs::read_to_string(&journal).unwrap_or_default().lines().count();
    let before = lines();
    let mut command = place.weir(&[&["sweep"], args].concat());
    let mut child = command.spawn().expect("a program");
    while lines() < before + 3 {
        let has_ended = child.try_wait().expect("a process").is_some();
        assert!(!has_ended, "it ended before three points");
        std::thread::yield_now();
    }
    child
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process");
    kill_process(pid, signal).expect("it is running");
}

#[test]
fn a_killed_sweep_continues_to_the_same_results() {
    let place = place();
    sweep(&place, &["many.toml", "--out", "whole.csv"]);
    let args = ["many.toml", "--jobs", "1", "--out", "killed.csv"];
    for round in 0..3 {
        let mut child = started(&place, &args);
        signal(&child, Signal::KILL);
        child.wait().expect("an end");
        assert!(!place.path("killed.csv").exists(), "round {round}: nothing half written");
        // A line that the kill cut off.
        let journal = place.path("killed.csv.journal");
        let mut bytes = fs::read(&journal).expect("a journal");
        bytes.extend_from_slice(b"{\"point\":199,\"row\":[\"ok\",");
        fs::write(&journal, bytes).expect("a journal");
    }
    let (_, stderr, code) = run(place.weir(&["sweep", "many.toml", "--out", "killed.csv"]));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        stderr.starts_with("continuing after ") && stderr.ends_with(" of 200 points\n"),
        "{stderr}"
    );
    assert!(text(&place, "killed.csv") == text(&place, "whole.csv"), "the bytes differ");
    assert!(!place.path("killed.csv.journal").exists());
}

#[test]
fn signals_keep_what_is_complete() {
    let place = place();
    sweep(&place, &["many.toml", "--out", "whole.csv"]);
    let args = ["many.toml", "--jobs", "1", "--out", "ended.csv"];
    for (sent, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let child = started(&place, &args);
        signal(&child, sent);
        let output = child.wait_with_output().expect("an end");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0), "{stderr}");
        let words =
            " of 200 points, which are kept in ended.csv.journal; the same command continues\n";
        assert!(stderr.contains("weir: interrupted after ") && stderr.ends_with(words), "{stderr}");
        assert!(!place.path("ended.csv").exists());
    }
    let (_, stderr, code) = run(place.weir(&["sweep", "many.toml", "--out", "ended.csv"]));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(text(&place, "ended.csv") == text(&place, "whole.csv"), "the bytes differ");
}

#[test]
fn merged_shards_equal_the_whole() {
    let place = place();
    let whole = sweep(&place, &["sweep.toml", "--out", "whole.csv", "-o", "json"]);
    for shard in 1..=3 {
        let (of, out) = (format!("{shard}/3"), format!("{shard}.csv"));
        let told = sweep(&place, &["sweep.toml", "--shard", &of, "--out", &out]);
        let count = if shard == 1 { 4 } else { 3 };
        assert_eq!(told, format!("Shard {of}: {count} of 10 points.\n"));
    }
    let merged =
        sweep(&place, &["--merge", "3.csv", "1.csv", "2.csv", "--out", "merged.csv", "-o", "json"]);
    assert_eq!(text(&place, "merged.csv"), text(&place, "whole.csv"));
    assert_eq!(merged, whole, "and so is the report");
}

/// The results of the whole may have taken hours.
#[test]
fn a_shard_does_not_replace_the_whole() {
    let place = place();
    sweep(&place, &["sweep.toml", "--out", "all.csv"]);
    let whole = text(&place, "all.csv");
    let args = ["sweep", "sweep.toml", "--out", "all.csv", "--shard", "1/2"];
    let (_, stderr, code) = run(place.weir(&args));
    assert_eq!(code, Some(2), "{stderr}");
    assert!(
        stderr.contains("all.csv: has the results of 10 points, and this run has 5"),
        "{stderr}"
    );
    assert_eq!(text(&place, "all.csv"), whole);
}

#[test]
fn the_report_ranks_by_any_metric_and_has_plots() {
    let place = place();
    sweep(&place, &["sweep.toml", "--out", "all.csv"]);
    let of = |metric: &str| {
        let told = sweep(&place, &["--merge", "all.csv", "--of", metric, "-o", "json"]);
        let told: Value = serde_json::from_str(&told).expect("JSON");
        told["sensitivity"].clone()
    };
    let price = of("price");
    assert_eq!(price["metric"], "price_per_month");
    assert_eq!(price["parameters"][0]["parameter"], "tier");
    assert_eq!(price["parameters"][0]["variance_share"], 1.0);
    assert_eq!(price["parameters"][1]["variance_share"], 0.0);
    assert_eq!(of("p99")["parameters"][0]["values"].as_array().map(Vec::len), Some(5));
    sweep(&place, &["--merge", "all.csv", "--html", "page.html", "--plot", "x=depth,y=p99"]);
    let page = text(&place, "page.html");
    assert!(
        page.contains("<h1>depth moves iops most") && page.contains("latency_p99_ns"),
        "{page}"
    );
    assert_eq!(page.matches("<circle").count(), 10);
    let csv = sweep(&place, &["--merge", "all.csv", "-o", "csv"]);
    assert!(csv.starts_with("table,sweep,points,"), "{csv}");
}

#[test]
fn a_sample_is_seeded() {
    let place = place();
    let keys = SWEEP.replace("steps = 5\nscale", "scale").replace("\n\n[[", "\nsample = 12\n\n[[");
    // Only the first table may follow the keys of the file.
    let keys = keys.replacen("sample = 12\n", "SAMPLE\n", 1).replace("sample = 12\n", "");
    let keys = keys.replace("SAMPLE", "sample = 12");
    let of = |name: &str, keys: &str| {
        place.file("sample.toml", keys);
        let told = sweep(&place, &["sample.toml", "--out", name]);
        assert!(told.contains("by chance"), "{told}");
        let all = text(&place, name);
        (column(&all, "depth"), column(&all, "iops"))
    };
    let first = of("a.csv", &keys);
    assert_eq!(first.0.len(), 12);
    assert_eq!(first, of("b.csv", &keys));
    assert_ne!(first.0, of("c.csv", &format!("seed = 2\n{keys}")).0);
}

#[test]
fn databases_are_swept_by_the_keys_of_their_description() {
    let place = Place::new();
    let layout = "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 8 }\n\n\
        [[file]]\nname = \"data\"\nrole = \"data\"\nsize = \"128 GiB\"\n\n[[file]]\nname = \"log\"\n\
        role = \"log\"\nsize = \"128 GiB\"\n";
    place.file("layout.toml", layout);
    place.file(
        "oltp.toml",
        "mix = \"tpcc\"\nusers = 20\nvcores = 8\nbuffer_pool = \"8 GiB\"\nsize = \"100 GiB\"\n\
         data = [\"data\"]\nlog = \"log\"\nduration = \"5s\"\n",
    );
    place.file(
        "sweep.toml",
        "layout = \"layout.toml\"\nworkload = \"oltp.toml\"\n\n[[parameter]]\nname = \"users\"\n\
         workload = \"users\"\nvalues = [5, 50]\n\n[[parameter]]\nname = \"file\"\n\
         layout = [\"file.data.size\", \"file.log.size\"]\nvalues = [\"128 GiB\", \"1 TiB\"]\n",
    );
    let told = sweep(&place, &["sweep.toml", "--out", "all.csv"]);
    assert!(told.contains(" moves transactions_per_min most"), "{told}");
    let all = text(&place, "all.csv");
    assert_eq!(column(&all, "file_bytes"), ["137438953472", "1099511627776"].repeat(2));
    let number = |name: &str| -> Vec<f64> {
        column(&all, name).iter().map(|field| field.parse().expect("a number")).collect()
    };
    assert!(number("transactions_per_min")[3] > number("transactions_per_min")[0]);
    assert!(number("response_mean_ns").iter().all(|time| *time > 0.0));
}

#[test]
fn figures_of_an_own_edition_are_parameters() {
    let place = place();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../catalog/example.toml");
    place.file("my-cloud.toml", &fs::read_to_string(root).expect("the example"));
    let layout = "edition = \"my-cloud\"\nhost = { size = \"m8\" }\n[[volume]]\nname = \"data\"\n\
        tier = \"F2\"\n";
    place.file("own.toml", layout);
    place.file(
        "own-sweep.toml",
        "layout = \"own.toml\"\nworkload = \"job.fio\"\ncatalog = \"my-cloud.toml\"\n\n[[parameter]]\n\
         name = \"promised\"\ncatalog = \"tier_set.fast-disk.rows.F2.iops\"\nvalues = [1000, 3000]\n\
         [[parameter]]\nname = \"depth\"\nworkload = \"iodepth\"\nvalues = [64]\n",
    );
    sweep(&place, &["own-sweep.toml", "--out", "own.csv"]);
    let iops = column(&text(&place, "own.csv"), "iops");
    let iops: Vec<f64> = iops.iter().map(|field| field.parse().expect("a number")).collect();
    assert!((iops[0] - 1_000.0).abs() < 50.0 && (iops[1] - 3_000.0).abs() < 150.0, "{iops:?}");
}

#[test]
fn the_example_of_the_documentation_runs() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/SWEEP.md");
    let docs = fs::read_to_string(path).expect("the documentation");
    let block = |start: &str| {
        let rest = docs.split(start).nth(1).expect("a block");
        rest.split("\n```").next().expect("its end").to_owned() + "\n"
    };
    let place = Place::new();
    place.file("layout.toml", &block("```toml\n# layout.toml\n"));
    place.file("job.fio", &block("```ini\n"));
    place.file("sweep.toml", &block("```toml\n# sweep.toml\n"));
    sweep(&place, &["sweep.toml", "--out", "results.csv"]);
    let results = text(&place, "results.csv");
    assert_eq!(column(&results, "status"), ["ok"; 36]);
    assert_eq!(
        column(&results, "block_bytes")[..6],
        ["4096", "4096", "4096", "16384", "16384", "16384"]
    );
    for name in results.lines().next().expect("a header").split(',') {
        let known = docs.contains(&format!("`{name}`")) || matches!(name, "tier" | "depth");
        assert!(known, "docs/SWEEP.md does not explain the column {name}");
    }
}

/// The Parquet file has the rows of the CSV file, and shards of both kinds are merged.
#[cfg(feature = "parquet")]
#[test]
fn parquet_has_the_same_results() {
    let place = place();
    sweep(&place, &["sweep.toml", "--out", "all.csv"]);
    sweep(&place, &["sweep.toml", "--out", "all.parquet"]);
    sweep(&place, &["--merge", "all.parquet", "--out", "back.csv"]);
    assert_eq!(text(&place, "back.csv"), text(&place, "all.csv"));
    sweep(&place, &["sweep.toml", "--shard", "1/2", "--out", "1.parquet"]);
    sweep(&place, &["sweep.toml", "--shard", "2/2", "--out", "2.csv"]);
    sweep(&place, &["--merge", "1.parquet", "2.csv", "--out", "merged.parquet"]);
    let bytes = |name: &str| fs::read(place.path(name)).expect("a file");
    assert!(bytes("merged.parquet") == bytes("all.parquet"), "the bytes differ");
    let Some(python) = crate::tools::python_with("duckdb") else { return };
    let query = "import duckdb\nprint(duckdb.sql(\"select (select count(*) from (select * from \
        'all.parquet' except select * from read_csv('all.csv', all_varchar = false))), \
        (select sum(depth) from 'all.parquet'), (select typeof(depth) || typeof(tier) || \
        typeof(point) from 'all.parquet' limit 1)\").fetchall())\n";
    let mut command = std::process::Command::new(python);
    command.args(["-c", query]).current_dir(place.dir());
    let output = command.output().expect("a program");
    let told = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(told, "[(0, 62.0, 'DOUBLEVARCHARBIGINT')]\n", "{stderr}");
}
