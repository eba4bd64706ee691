//! `weir tune`: steps, reasons to stop, the record, and invalid input.

use crate::common::{Place, run};
use crate::fit::{INSTANCE, LAYOUT, SHARED, need};
use serde_json::Value;
use std::fs;

const JOB: &str = "[a]\nfilename=/dev/data\nrw=randrw\nrwmixread=70\nbs=8k\nruntime=10\ntime_based\n\
    direct=1\nioengine=libaio\niodepth=32\n";

/// A database that reads and writes pages of a large file.
const OLTP: &str = "users = 60\nthink_time = \"1ms\"\nvcores = 8\nsize = \"60 GiB\"\nbuffer_pool = \"1 GiB\"\n\
    duration = \"20s\"\ndata = [\"data\"]\nlog = \"log\"\n[[transaction]]\nname = \"batch\"\nshare = 1\nreads = 2\n\
    writes = 0.5\nlog = \"1 KiB\"\ncpu = \"200us\"\n";

fn place() -> Place {
    let place = Place::new();
    place.file("layout.toml", LAYOUT);
    place.file("instance.toml", INSTANCE);
    place.file("job.fio", JOB);
    place.file("need.toml", &need(4_000, "40 MiB/s"));
    place.file("oltp.toml", OLTP);
    place
}

#[track_caller]
fn check(place: &Place, args: &[&str], code: i32, expect: &str) -> String {
    let (stdout, stderr, got) = run(place.weir(&[&["tune"], args].concat()));
    assert_eq!(got, Some(code), "{stdout}{stderr}");
    let all = format!("{stdout}{stderr}");
    assert!(all.contains(expect), "{expect:?} is not in:\n{all}");
    stdout
}

#[track_caller]
fn json(place: &Place, args: &[&str], code: i32) -> Value {
    let text = check(place, &[args, &["-o", "json"]].concat(), code, "");
    serde_json::from_str(&text).expect("JSON")
}

/// Each step names its reason, price and downtime; its prediction is within 5 % of the measurement.
/// The layout that is written carries the need.
#[test]
fn two_limits_are_raised_step_by_step() {
    let place = place();
    let report = json(&place, &["layout.toml", "--need", "need.toml", "--out", "tuned.toml"], 0);
    assert_eq!((&report["is_met"], &report["end"]), (&true.into(), &"reached".into()));
    let steps = report["steps"].as_array().expect("steps");
    assert!((2..=5).contains(&steps.len()), "{report:#}");
    for step in steps {
        assert!(step["deviation"].as_f64().expect("a number") <= 0.05, "{step:#}");
        assert!(!step["downtime"].as_str().expect("text").is_empty());
    }
    let because = steps[0]["because"].as_str().expect("a reason");
    assert!(because.contains("disk IOPS limit of data"), "{because}");
    let (stdout, stderr, code) = run(place.weir(&["fit", "tuned.toml", "--need", "need.toml"]));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let layout = fs::read_to_string(place.path("tuned.toml")).expect("the layout");
    assert_eq!(report["layout"], layout.as_str());
}

/// Premium SSD v2 includes 3,000 IOPS for each disk, so smaller disks have more for the same price.
#[test]
fn a_provisioned_disk_becomes_a_stripe_of_smaller_ones_in_one_step() {
    let place = place();
    place.file(
        "bought.toml",
        "edition = \"azure-now\"\nhost = { size = \"D8s_v5\" }\n[[volume]]\nname = \"data\"\nfamily = \"premium-ssd-v2\"\n\
         size = \"100 GiB\"\niops = 3000\nthroughput = \"125 MB/s\"\n[[file]]\nname = \"f\"\nrole = \"data\"\n\
         size = \"90 GiB\"\non = \"data\"\n",
    );
    place.file("need.toml", "[data]\nsize = \"90 GiB\"\niops = 5000\nrequest = \"40 KiB\"\n");
    let report = json(&place, &["bought.toml", "--need", "need.toml", "--out", "tuned.toml"], 0);
    let steps = report["steps"].as_array().expect("steps");
    assert_eq!(steps.len(), 1, "{report:#}");
    let change = steps[0]["change"].as_str().expect("words");
    assert!(change.contains("as a stripe of ") && change.contains(" disks of "), "{change}");
    let price = &report["price"];
    assert_eq!(price["after"], price["before"], "{report:#}");
    let layout = fs::read_to_string(place.path("tuned.toml")).expect("the layout");
    assert!(layout.contains("count = 4") && layout.contains("size = \"25 GiB\""), "{layout}");
}

/// Three machines of which only the first is too slow. The cheapest of the others has Arm processors, the next is
/// burstable, and the last, `NEW`, costs most.
const EDITION: &str = r#"
name = "own"
title = "own"
as_of = "2026-01-01"
scope = "machines and a disk"
provider = "azure"
[[tier_set]]
name = "disk"
family = "disk"
source = "none"
as_of = "2026-01-01"
rows = [{ name = "F2", size = "1 TiB", iops = 6000, throughput = "250 MB/s" }]
[[series]]
name = "all"
source = "none"
as_of = "2026-01-01"
rows = [
  { name = "D2s_v5", vcpus = 2, memory = "8 GiB", max_data_disks = 4, uncached = { iops = 3000, throughput = "400 MB/s" } },
  { name = "D4ps_v5", vcpus = 4, memory = "16 GiB", max_data_disks = 8, uncached = { iops = 9000, throughput = "400 MB/s" } },
  { name = "B4s_v2", vcpus = 4, memory = "16 GiB", max_data_disks = 8, uncached = { iops = 9000, throughput = "400 MB/s" } },
  { name = "NEW", vcpus = 4, memory = "16 GiB", max_data_disks = 8, uncached = { iops = 9000, throughput = "400 MB/s" } },
]
[[price]]
region = "here"
currency = "USD"
source = "none"
as_of = "2026-01-01"
rows = [
  { tier = "F2", month = "100" },
  { host = "D2s_v5", month = "50" },
  { host = "D4ps_v5", month = "60" },
  { host = "B4s_v2", month = "65" },
  { host = "NEW", month = "70" },
]
[[latency]]
name = "remote"
families = ["disk", "host-cache", "local-ssd"]
basis = "assumed"
reason = "a test"
source = "none"
as_of = "2026-01-01"
read = { p0 = "400 us", p50 = "700 us", p90 = "1 ms", p99 = "2 ms", p999 = "5 ms", p100 = "20 ms" }
write = { p0 = "400 us", p50 = "700 us", p90 = "1 ms", p99 = "2 ms", p999 = "5 ms", p100 = "20 ms" }
transfer = "1000 MB/s"
"#;

/// A machine keeps the architecture of its processors, and an obstacle to its new size is told.
#[test]
fn a_machine_keeps_its_processors() {
    let place = place();
    place.file(
        "small.toml",
        "edition = \"own\"\nhost = { size = \"D2s_v5\" }\n[[volume]]\nname = \"data\"\ntier = \"F2\"\n[[file]]\n\
         name = \"f\"\nrole = \"data\"\nsize = \"90 GiB\"\non = \"data\"\n",
    );
    place.file("need.toml", "[data]\nsize = \"90 GiB\"\niops = 5000\nrequest = \"8 KiB\"\n");
    for (new, downtime) in [
        ("D4s_v5", "the machine restarts"),
        (
            "D4ds_v5",
            "the machine restarts; Azure refuses to resize to D4ds_v5, because it has a local temporary disk: create a \
             new machine and move the disks to it",
        ),
    ] {
        place.file("own.toml", &EDITION.replace("NEW", new));
        let all =
            ["--catalog", "own.toml", "tune", "small.toml", "--need", "need.toml", "-o", "json"];
        let (stdout, stderr, code) = run(place.weir(&all));
        assert_eq!(code, Some(0), "{stdout}{stderr}");
        let report: Value = serde_json::from_str(&stdout).expect("JSON");
        let step = &report["steps"][0];
        assert_eq!(step["change"], format!("machine {new}"), "{report:#}");
        assert_eq!(step["downtime"], downtime, "{report:#}");
    }
}

/// The sum of the steps is the difference of the bills.
#[test]
fn money_adds_up() {
    let place = place();
    let report = json(&place, &["layout.toml", "--need", "need.toml"], 0);
    let of = |value: &Value| value.as_f64().expect("a price");
    let steps = report["steps"].as_array().expect("steps");
    let sum: f64 = steps.iter().map(|step| of(&step["cost"])).sum();
    let price = &report["price"];
    assert!((sum - (of(&price["after"]) - of(&price["before"]))).abs() < 0.01, "{report:#}");
}

/// On an instance, the file grows into the tier that has the rate.
#[test]
fn a_file_of_an_instance_grows() {
    let place = place();
    place.file("need.toml", &need(1_500, "5 MiB/s"));
    let text = check(&place, &["instance.toml", "--need", "need.toml"], 0, "data at 257 GiB");
    assert!(text.contains("the goal is reached in 1 step"), "{text}");
}

#[test]
fn goals_of_jobs_are_metrics() {
    let place = place();
    let args =
        ["layout.toml", "--workload", "job.fio", "--goal", "iops=5000", "--goal", "p99=20ms"];
    let report = json(&place, &args, 0);
    let metrics = report["after"]["metrics"].as_array().expect("metrics");
    let value = |name: &str| {
        let own = metrics.iter().find(|own| own["name"] == name).expect(name);
        own["value"].as_f64().expect("a number")
    };
    assert!(value("iops") >= 4_900.0 && value("p99_ns") <= 20.4e6, "{report:#}");
}

/// A database reads faster from a larger file of an instance.
#[test]
fn goals_of_databases_are_transactions() {
    let place = place();
    let args = ["instance.toml", "--workload", "oltp.toml", "--goal", "transactions=50000"];
    let report = json(&place, &args, 0);
    let value = |state: &str| {
        let all = report[state]["metrics"].as_array().expect("metrics");
        let own = all.iter().find(|own| own["name"] == "transactions_per_min").expect("the metric");
        own["value"].as_f64().expect("a number")
    };
    assert!(value("before") < 49_000.0 && value("after") >= 49_000.0, "{report:#}");
    assert_eq!(report["before"]["limit_of"], "data");
}

/// Every end has its exit code and its sentence.
#[test]
fn the_walk_ends_for_a_stated_reason() {
    let place = place();
    place.file("small.toml", &need(100, "1 MiB/s"));
    let job = ["layout.toml", "--workload", "job.fio"];
    let with = |more: &[&'static str]| [&job[..], more].concat();
    check(&place, &["layout.toml", "--need", "small.toml"], 0, "the goal is reached already");
    let beyond = with(&["--goal", "iops=5000", "--budget", "500"]);
    check(&place, &beyond, 1, "nothing within the budget of 500.00 USD reaches the goal");
    let beyond = json(&place, &beyond, 1);
    assert_eq!(
        (&beyond["end"], beyond["steps"].as_array().map(Vec::len)),
        (&"beyond-budget".into(), Some(0))
    );
    place.file(
        "bare.toml",
        "[host]\nunlimited = true\n[[volume]]\nname = \"data\"\nlimits = { iops = 500 }\n\
        size = \"1 TiB\"\n",
    );
    let exhausted = ["bare.toml", "--workload", "job.fio", "--goal", "iops=5000"];
    check(&place, &exhausted, 1, "nothing on offer raises it far enough");
    assert_eq!(json(&place, &exhausted, 1)["end"], "exhausted");
    let few = with(&["--goal", "iops=5000", "--simulations", "1"]);
    check(&place, &few, 1, "raise --simulations");
    // One request at a time waits for the medium, not for a limit.
    place.file("one.fio", &JOB.replace("iodepth=32", "iodepth=1"));
    let args = ["layout.toml", "--workload", "one.fio", "--goal", "iops=5000"];
    check(&place, &args, 1, "the limit is not a cap of storage");
}

/// The record is a page without references to other machines.
#[test]
fn the_record_is_a_page() {
    let place = place();
    check(&place, &["layout.toml", "--need", "need.toml", "--html", "tuned.html"], 0, "");
    let page = fs::read_to_string(place.path("tuned.html")).expect("the page");
    // The name of the format of its charts.
    let page = page.replace("http://www.w3.org/2000/svg", "");
    assert!(page.contains("<svg"), "{page}");
    for part in ["the goal is reached", "USD a month", "downtime", "<table", "tier = &quot;"] {
        assert!(page.contains(part), "{part} is not in:\n{page}");
    }
    assert!(
        !page.contains("http://") && !page.contains("https://") && !page.contains("<script src")
    );
}

#[test]
fn bad_input_is_refused() {
    let place = place();
    let own = ["layout.toml", "--workload", "job.fio"];
    let with = |more: &[&'static str]| [&own[..], more].concat();
    for (args, expect) in [
        (vec!["layout.toml"], "the load is missing: give --workload FILE, --need FILE or --load"),
        (with(&["--need", "need.toml"]), "cannot be used with"),
        (
            vec!["layout.toml", "--need", "need.toml", "--goal", "iops=9"],
            "the need states its own targets; change them there",
        ),
        (
            vec!["layout.toml", "--need", "need.toml", "--runtime", "9s"],
            "--runtime needs --workload FILE",
        ),
        (with(&["--as-observed"]), "--as-observed needs --load OBSERVATION"),
        (with(&["--role", "sdc=data"]), "--role needs --load OBSERVATION"),
        (with(&["--goal", "iops"]), "write METRIC=VALUE, for example iops=8000"),
        (
            with(&["--goal", "speed=9"]),
            "use iops, throughput, latency, p99, transactions, response",
        ),
        (with(&["--goal", "latency=0ms"]), "is 0"),
        (with(&["--goal", "iops=1", "--goal", "iops=2"]), "given twice; leave out one"),
        (with(&["--goal", "latency=9ms", "--goal", "p99=5ms"]), "below the median"),
        (with(&["--goal", "transactions=5"]), "jobs have no transactions"),
        (with(&["--budget", "cheap"]), "--budget"),
        (with(&["--simulations", "0"]), "--simulations"),
        (with(&["--out", "layout.toml"]), "--out layout.toml: is an input file"),
        (with(&["--html", "job.fio"]), "--html job.fio: is an input file"),
        (with(&["--out", "new", "--html", "new"]), "name the same file"),
    ] {
        check(&place, &args, 2, expect);
    }
    // A refused call changes no file.
    assert_eq!(fs::read_to_string(place.path("layout.toml")).expect("the layout"), LAYOUT);
}

/// A disk for data and another for tempdb, which needs a short latency.
const TEMPDB: &str = "edition = \"azure-now\"\nregion = \"westeurope\"\nhost = { size = \"SIZE\" }\n\
    [[volume]]\nname = \"data\"\ntier = \"P30\"\n[[volume]]\nname = \"tempdb\"\ntier = \"P30\"\n";
const FAST_TEMPDB: &str = "[data]\nsize = \"50 GiB\"\niops = 100\nlatency = \"50ms\"\n[tempdb]\n\
    size = \"20 GiB\"\nworking_set = \"5 GiB\"\niops = 1000\nreads = \"100 %\"\nlatency = \"1ms\"\n";

/// Each change relieves a failing role, and none is made twice.
#[test]
fn a_latency_of_the_medium_needs_a_cache_for_its_own_role() {
    let place = place();
    place.file("need.toml", FAST_TEMPDB);
    place.file("e16.toml", &TEMPDB.replace("SIZE", "E16s_v4"));
    let changes = |report: &Value| -> Vec<String> {
        let steps = report["steps"].as_array().expect("steps").iter();
        steps.map(|step| step["change"].as_str().expect("words").to_owned()).collect()
    };
    let report = json(&place, &["e16.toml", "--need", "need.toml"], 0);
    assert_eq!(changes(&report), ["tempdb with host cache read-only"], "{report:#}");
    let fit = run(place.weir(&["fit", "e16.toml", "--need", "need.toml"]));
    assert!(fit.0.contains("tempdb with host cache read-only (free"), "{fit:?}");
    // This machine has no cache, so it becomes one with a cache.
    place.file("d16.toml", &TEMPDB.replace("SIZE", "D16ds_v5"));
    let report = json(&place, &["d16.toml", "--need", "need.toml"], 0);
    let cache = "tempdb with host cache read-only";
    assert_eq!(changes(&report), ["machine Standard_D16as_v4", cache], "{report:#}");
}

/// The rate of two jobs is a sum, so the cheaper of the two disks may bring it.
#[test]
fn a_sum_of_jobs_may_come_from_the_cheaper_disk() {
    let place = place();
    place.file(
        "two.toml",
        "edition = \"azure-premium-2015\"\n[[volume]]\nname = \"data\"\ntier = \"P30\"\n\
        [[volume]]\nname = \"log\"\ntier = \"P10\"\n",
    );
    place.file("two.fio", "[global]\nrw=randread\nbs=8k\nruntime=20\ntime_based\ndirect=1\n\
        ioengine=libaio\n[data]\niodepth=128\nfilename=/dev/data\n[log]\niodepth=16\nfilename=/dev/log\n");
    let report = json(&place, &["two.toml", "--workload", "two.fio", "--goal", "iops=6500"], 0);
    let change = report["steps"][0]["change"].as_str().expect("words");
    assert!(change.starts_with("log as"), "{report:#}");
    assert_eq!(report["steps"].as_array().map(Vec::len), Some(1));
}

#[test]
fn room_vcpus_prices_and_downtime_are_not_passed_over() {
    let place = place();
    // Both roles need more than half of the disk.
    place.file("shared.toml", SHARED);
    place.file(
        "large.toml",
        "[data]\nsize = \"600 GiB\"\niops = 200\n[log]\nsize = \"600 GiB\"\niops = 100\n",
    );
    let report = json(&place, &["shared.toml", "--need", "large.toml"], 1);
    assert_eq!(report["end"], "exhausted", "{report:#}");
    let verdict = report["verdict"].as_str().expect("words");
    assert!(verdict.contains("of room, and has"), "{verdict}");
    let (stdout, _, code) = run(place.weir(&["fit", "shared.toml", "--need", "large.toml"]));
    assert!(code == Some(1) && stdout.contains("of room and has"), "{stdout}");
    // A machine with too few vCPUs: no disk helps.
    place.file(
        "small.toml",
        "edition = \"azure-now\"\nhost = { size = \"D2ds_v5\" }\n[[volume]]\nname = \"data\"\n\
        tier = \"P10\"\n",
    );
    place.file("vcpus.toml", "vcpus = 16\n[data]\nsize = \"50 GiB\"\niops = 600\n");
    let (stdout, _, code) = run(place.weir(&["fit", "small.toml", "--need", "vcpus.toml"]));
    assert_eq!(code, Some(1), "{stdout}");
    let expect = "2 vCPUs, and the need asks for 16; choose a larger machine";
    assert!(stdout.contains(expect) && !stdout.contains("single change"), "{stdout}");
    let text =
        check(&place, &["small.toml", "--need", "vcpus.toml"], 0, "asks for 16; tune does not");
    assert!(text.contains("note: host has 2 vCPUs"), "{text}");
    let verdict = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(verdict.contains(", but the machine is smaller than the need goal:"), "{text}");
    // An edition without prices has no budget.
    place.file(
        "old.toml",
        "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 4, \
        storage = \"128 GiB\" }\n[[file]]\nname = \"data\"\nrole = \"data\"\nsize = \"60 GiB\"\n",
    );
    place.file("some.toml", "[data]\nsize = \"50 GiB\"\niops = 1500\n");
    let old = ["old.toml", "--need", "some.toml"];
    check(
        &place,
        &[&old[..], &["--budget", "1"]].concat(),
        2,
        "--budget: the edition of the layout",
    );
    // A file that grows with its storage ends in a failover.
    let report = json(&place, &old, 0);
    let downtime = report["steps"][0]["downtime"].as_str().expect("words");
    assert!(downtime.contains("failover"), "{downtime:?}");
}

/// A need that the bought rates and the machine both miss is reached in few simulations, whatever the number of
/// changes that cost less than a larger machine.
#[test]
fn limits_below_the_need_are_raised_without_simulations() {
    let place = place();
    let layout = "edition = \"azure-now\"\nhost = { size = \"D2s_v5\" }\n[[stripe]]\nname = \"data\"\nunit = \
        \"64 KiB\"\nvolumes = { count = 2, family = \"premium-ssd-v2\", size = \"500 GiB\" }\n[[volume]]\nname = \
        \"log\"\nfamily = \"premium-ssd-v2\"\nsize = \"256 GiB\"\n";
    place.file("layout.toml", layout);
    let need = "[data]\niops = 30000\nthroughput = \"500 MB/s\"\nsize = \"900 GiB\"\nreads = \"70 %\"\n\
        [log]\niops = 4000\nthroughput = \"60 MB/s\"\nsize = \"200 GiB\"\n";
    place.file("need.toml", need);
    let report = json(&place, &["layout.toml", "--need", "need.toml"], 0);
    assert_eq!(report["end"], "reached");
    let changes = report["steps"].to_string();
    assert!(changes.contains("machine ") && changes.contains("bought"), "{report:#}");
    let simulated = report["simulated"].as_u64().expect("a count");
    assert!(simulated <= 40, "{simulated} simulations");
}

/// A disk with a performance tier gets a higher one, and keeps its size.
#[test]
fn a_performance_tier_is_raised() {
    let place = place();
    let layout = LAYOUT
        .replace("azure-premium-2015", "azure-now")
        .replace("tier = \"P20\"", "tier = \"P20\"\nperformance_tier = \"P30\"");
    place.file("layout.toml", &layout);
    place.file("need.toml", &need(7_000, "40 MiB/s"));
    let report = json(&place, &["layout.toml", "--need", "need.toml", "--no-downtime"], 0);
    let changes = report["steps"].to_string();
    assert!(changes.contains("data with performance tier P40"), "{report:#}");
    let tuned = report["layout"].as_str().expect("text");
    assert!(
        tuned.contains("performance_tier = \"P40\"") && tuned.contains("tier = \"P20\""),
        "{tuned}"
    );
}

/// Where no file is large enough for the load, a second one takes half of it.
#[test]
fn an_instance_gets_another_file() {
    let place = place();
    let instance = INSTANCE.replace("100 GiB", "1100 GiB").replace("1 TiB", "3 TiB");
    place.file("instance.toml", &instance);
    place.file("need.toml", &need(14_000, "5 MiB/s"));
    let args = ["instance.toml", "--need", "need.toml"];
    let report = json(&place, &args, 0);
    let step = &report["steps"][0];
    assert_eq!(step["change"], "new file data-2 of 1100 GiB", "{report:#}");
    let downtime = step["downtime"].as_str().expect("text");
    assert!(downtime.starts_with("none; existing data stays in the other files"), "{downtime}");
    let layout = report["layout"].as_str().expect("text");
    assert!(layout.contains("name = \"data-2\""), "{layout}");
    // Jobs and databases name their files.
    place.file("job.fio", &JOB.replace("iodepth=32", "iodepth=256"));
    let args = ["instance.toml", "--workload", "job.fio", "--goal", "iops=14000"];
    check(&place, &args, 1, "no change of this layout reaches the goal");
}

/// Each layout can carry its need, by a change that is easily passed over.
#[test]
fn no_layout_that_carries_the_need_is_passed_over() {
    let place = place();
    let gp = "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 8, storage = \"3 TiB\" }\n";
    let file = |name: &str, role: &str, gib: u32, more: &str| {
        format!("[[file]]\nname = \"{name}\"\nrole = \"{role}\"\nsize = \"{gib} GiB\"\n{more}")
    };
    let machine = |size: &str, more: &str| {
        format!("edition = \"azure-now\"\nhost = {{ size = \"{size}\" }}\n{more}")
    };
    let may_grow = "max_size = \"600 GiB\"\ngrowth = \"1 GiB\"\n";
    for (layout, need, change) in [
        // Reads of a log do not pass the log rate.
        (
            format!("{gp}{}{}", file("data", "data", 1_100, ""), file("log", "log", 600, "")),
            "[data]\nsize = \"1000 GiB\"\niops = 12000\nrequest = \"8 KiB\"\n[log]\nsize = \"500 GiB\"\n\
             throughput = \"45 MB/s\"\nrequest = \"60 KiB\"\nreads = \"70 %\"\n",
            "new file data-2",
        ),
        // A new file has the size and the keys of the largest one.
        (
            format!("{gp}{}{}", file("d1", "data", 500, may_grow), file("d2", "data", 1_100, "")),
            "[data]\nsize = \"1000 GiB\"\niops = 16000\nrequest = \"8 KiB\"\n",
            "new file d",
        ),
        // A limit of the machine is relieved by a move to its local disk.
        (
            "edition = \"azure-now\"\n[host]\nlimits = { uncached = { iops = 3750, throughput = \"85 MB/s\" }, \
             cached = { iops = 9000, throughput = \"125 MB/s\" } }\ncache = { size = \"10 GiB\" }\n[[volume]]\n\
             name = \"data\"\ntier = \"P20\"\n[[volume]]\nname = \"tmp\"\nplace = \"local\"\nsize = \"75 GiB\"\n\
             unlimited = true\n[[file]]\nname = \"t1\"\nrole = \"tempdb\"\nsize = \"50 GiB\"\non = \"data\"\n"
                .to_owned(),
            "[tempdb]\nsize = \"40 GiB\"\niops = 8500\nrequest = \"8 KiB\"\n",
            "t1 moved to tmp",
        ),
        // A disk with a performance tier grows into a tier.
        (
            machine(
                "Standard_E16ds_v5",
                "[[volume]]\nname = \"data\"\ntier = \"P20\"\nperformance_tier = \"P30\"\n",
            ),
            "[data]\nsize = \"1500 GiB\"\niops = 3000\nrequest = \"8 KiB\"\n",
            "data without a performance tier, data as P40",
        ),
        // A stripe splits large requests, whose latency is then shorter than that of one disk.
        (
            machine(
                "Standard_E64ds_v5",
                "[[stripe]]\nname = \"backup\"\nunit = \"4 MiB\"\nvolumes = { count = 2, tier = \"P20\" }\n",
            ),
            "[backup]\nsize = \"100 GiB\"\nthroughput = \"400 MB/s\"\nrequest = \"8 MiB\"\nreads = \"0 %\"\n\
             latency = \"8500 us\"\n",
            "backup",
        ),
    ] {
        place.file("layout.toml", &layout);
        place.file("need.toml", need);
        let report = json(&place, &["layout.toml", "--need", "need.toml"], 0);
        let changes = report["steps"].to_string();
        assert!(changes.contains(change), "{change}: {report:#}");
    }
}

/// The purchase follows the measurement where split requests need more operations than the need states.
#[test]
fn a_stripe_buys_what_its_split_requests_ask_for() {
    let place = place();
    place.file(
        "split.toml",
        "edition = \"azure-now\"\nhost = { size = \"Standard_E64ds_v5\" }\n[[stripe]]\nname = \"data\"\nunit = \
         \"16 KiB\"\nvolumes = { count = 2, family = \"premium-ssd-v2\", size = \"256 GiB\", iops = 3000, \
         throughput = \"400 MB/s\" }\n",
    );
    place.file(
        "need.toml",
        "[data]\nsize = \"300 GiB\"\niops = 7000\nrequest = \"64 KiB\"\nreads = \"50 %\"\n",
    );
    let args = ["fit", "split.toml", "--need", "need.toml", "--no-downtime"];
    let (stdout, stderr, code) = run(place.weir(&args));
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stdout.contains("cheapest single change to yes: data with 15"), "{stdout}");
}

/// A change without downtime costs up to 1 % more than one for which data is copied, and comes first.
#[test]
fn data_is_not_copied_to_save_one_per_cent() {
    let place = place();
    let layout = "edition = \"azure-now\"\nregion = \"westeurope\"\nhost = { size = \"E8ds_v5\" }\n[[volume]]\nname = \
        \"data\"\ntier = \"P20\"\n[[volume]]\nname = \"log\"\ntier = \"P10\"\n";
    place.file("layout.toml", layout);
    // The disk of the data has no room for the operations of the log.
    place.file("need.toml", &need(2_250, "60 MB/s"));
    let report = json(&place, &["layout.toml", "--need", "need.toml"], 0);
    let online = json(&place, &["layout.toml", "--need", "need.toml", "--no-downtime"], 0);
    assert_eq!(report["steps"][0]["change"], "log as P15", "{report:#}");
    assert_eq!(report["price"], online["price"]);
}
