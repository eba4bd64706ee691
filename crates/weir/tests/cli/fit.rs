//! `weir fit`: answers, headroom, the cheapest single change, and invalid input.

use crate::common::{Place, run};
use serde_json::Value;

pub(crate) const LAYOUT: &str = "edition = \"azure-now\"\nregion = \"westeurope\"\n\
    host = { size = \"D8ds_v5\" }\n[[volume]]\nname = \"data\"\ntier = \"P20\"\n\
    [[volume]]\nname = \"log\"\ntier = \"P10\"\n";

pub(crate) const INSTANCE: &str = "edition = \"azure-mi-2018\"\n\
    host = { managed_instance = \"gp\", vcores = 8, storage = \"1 TiB\" }\n\
    [[file]]\nname = \"data\"\nrole = \"data\"\nsize = \"100 GiB\"\n\
    [[file]]\nname = \"log\"\nrole = \"log\"\nsize = \"50 GiB\"\n";

/// Returns a need file.
pub(crate) fn need(data_iops: u32, log: &str) -> String {
    format!(
        "[data]\nsize = \"90 GiB\"\niops = {data_iops}\nrequest = \"8 KiB\"\nreads = \"70 %\"\n\
         [log]\nsize = \"20 GiB\"\nrequest = \"64 KiB\"\nthroughput = \"{log}\"\n"
    )
}

fn place() -> Place {
    let place = Place::new();
    place.file("layout.toml", LAYOUT);
    place.file("instance.toml", INSTANCE);
    place
}

#[track_caller]
fn check(place: &Place, args: &[&str], code: i32, expect: &str) -> String {
    let (stdout, stderr, got) = run(place.weir(&[&["fit"], args].concat()));
    assert_eq!(got, Some(code), "{stdout}{stderr}");
    let all = format!("{stdout}{stderr}");
    assert!(all.contains(expect), "{expect:?} is not in:\n{all}");
    stdout
}

/// Returns the role of a JSON report.
#[track_caller]
fn role<'a>(report: &'a Value, name: &str) -> &'a Value {
    let roles = report["roles"].as_array().expect("roles");
    roles.iter().find(|role| role["role"] == name).expect("the role")
}

/// A P20 does 2,300 IOPS: a need of 2,000 has 15 % of headroom, 2,200 has 4.5 %, 2,400 has none.
#[test]
fn answers_follow_the_headroom() {
    let place = place();
    for (iops, code, answer, headroom) in
        [(2_000, 0, "yes", 0.15), (2_200, 0, "barely", 0.045), (2_400, 1, "no", -0.042)]
    {
        place.file("need.toml", &need(iops, "10 MiB/s"));
        let args = ["layout.toml", "--need", "need.toml", "-o", "json"];
        let report: Value = serde_json::from_str(&check(&place, &args, code, "")).expect("JSON");
        assert_eq!(report["answer"], answer, "{report:#}");
        let data = role(&report, "data");
        assert_eq!(data["answer"], answer);
        let got = data["headroom"].as_f64().expect("a number");
        assert!((got - headroom).abs() < 0.03, "{iops}: {got}");
        assert_eq!(data["limit"]["name"], "disk_iops");
        assert_eq!(data["limit"]["rate"], 2_300);
        let log = role(&report, "log");
        assert_eq!((&log["answer"], &log["limit"]["of"]), (&"yes".into(), &"log".into()));
    }
}

/// A request that waits behind a full queue is not served, even at the full rate.
#[test]
fn a_need_that_is_met_with_a_long_queue_is_not_met() {
    let place = place();
    place.file("need.toml", &need(2_320, "10 MiB/s"));
    let text = check(&place, &["layout.toml", "--need", "need.toml"], 1, "no: data");
    assert!(text.contains("queue grows") || text.contains("median latency is"), "{text}");
}

/// The cheapest single change: the next tier of the disk, with its price, and a file that grows on
/// an instance.
#[test]
fn the_cheapest_single_change_is_named_with_its_price() {
    let place = place();
    place.file("need.toml", &need(2_400, "10 MiB/s"));
    let args = ["layout.toml", "--need", "need.toml"];
    let text = check(&place, &args, 1, "cheapest single change to yes: ");
    assert!(text.contains("USD") && text.contains("downtime: "), "{text}");
    place.file("need.toml", &need(1_500, "5 MiB/s"));
    let args = ["instance.toml", "--need", "need.toml"];
    check(&place, &args, 1, "cheapest single change to yes: data at 257 GiB");
}

/// Without a single change that suffices, the answer points to the other verbs.
#[test]
fn two_limits_need_more_than_one_change() {
    let place = place();
    place.file("need.toml", &need(4_000, "40 MiB/s"));
    let args = ["layout.toml", "--need", "need.toml"];
    check(&place, &args, 1, "no single change makes it a yes");
}

#[test]
fn sizes_count() {
    let place = place();
    place.file("need.toml", "[data]\nsize = \"2 TiB\"\niops = 100\n");
    let args = ["layout.toml", "--need", "need.toml"];
    let text = check(&place, &args, 1, "no: data: it needs 2,048 GiB of room and has 512 GiB");
    assert!(text.contains("cheapest single change to yes: data as P40"), "{text}");
    place
        .file("need.toml", "vcpus = 16\nmemory = \"64 GiB\"\n[data]\nsize = \"9 GiB\"\niops = 9\n");
    let text = check(&place, &args, 1, "8 vCPUs, and the need asks for 16");
    assert!(text.contains("32 GiB of memory, and the need asks for 64 GiB"), "{text}");
}

/// The rates come from an observation, the sizes from the layout.
#[test]
fn an_observation_is_a_load() {
    let place = place();
    let jobs = "[global]\nrw=randread\nbs=8k\nruntime=60\ntime_based\ndirect=1\nioengine=libaio\n\
        iodepth=32\nrate_process=poisson\n[a]\nfilename=/dev/data\nrate_iops=1000\n\
        [b]\nfilename=/dev/log\nrw=write\nrate_iops=100\n";
    place.file("job.fio", jobs);
    let sim = ["sim", "layout.toml", "job.fio", "--observe", "seen.weirobs", "--every", "1s"];
    let (_, stderr, code) = run(place.weir(&sim));
    assert_eq!(code, Some(0), "{stderr}");
    let roles = ["--role", "data=data", "--role", "log=log"];
    let args = [&["layout.toml", "--load", "seen.weirobs", "-o", "json"], &roles[..]].concat();
    let report: Value = serde_json::from_str(&check(&place, &args, 0, "")).expect("JSON");
    let asked = role(&report, "data")["asked"].as_f64().expect("a number");
    assert!((990.0..1_150.0).contains(&asked), "{asked}");
    // Twice the load is above the disk's limit of 2,300.
    let grown = [&args[..], &["--growth", "150%"]].concat();
    let report: Value = serde_json::from_str(&check(&place, &grown, 1, "")).expect("JSON");
    assert_eq!(report["answer"], "no");
}

#[test]
fn keys_for_plans_are_named() {
    let place = place();
    place.file(
        "need.toml",
        &format!("region = \"westus\"\nmax_disks = 3\n{}", need(100, "1 MiB/s")),
    );
    let args = ["layout.toml", "--need", "need.toml"];
    check(&place, &args, 0, "need.toml: region, max_disks are for weir plan, and not used here");
}

#[test]
fn bad_input_is_refused() {
    let place = place();
    place.file("need.toml", &need(100, "1 MiB/s"));
    place.file("tempdb.toml", "[tempdb]\nsize = \"9 GiB\"\niops = 9\n");
    place.file("empty.toml", "[data]\nsize = \"9 GiB\"\n");
    place.file("negative.toml", "[data]\nsize = \"9 GiB\"\niops = -9\n");
    place.file("short.txt", "nothing\n");
    for (args, expect) in [
        (&["layout.toml"][..], "the load is missing: give --need FILE or --load OBSERVATION"),
        (&["layout.toml", "--need", "missing.toml"], "cannot read missing.toml"),
        (&["missing.toml", "--need", "need.toml"], "cannot read missing.toml"),
        (
            &["layout.toml", "--need", "tempdb.toml"],
            "layout.toml: has no file for the tempdb of the load; add a [[file]] with role = \"tempdb\", \
             size and on = NAME, where NAME is one of data, log",
        ),
        (
            &["instance.toml", "--need", "tempdb.toml"],
            "add a [[file]] with role = \"tempdb\", or leave the tempdb out of the load",
        ),
        (&["layout.toml", "--need", "empty.toml"], "the load has no requests"),
        (&["layout.toml", "--need", "negative.toml"], "negative.toml:3:8"),
        (&["layout.toml", "--load", "short.txt"], "short.txt"),
        (&["layout.toml", "--need", "need.toml", "--growth", "3%"], "--load"),
        (&["layout.toml", "--need", "need.toml", "--seed", "-1"], "--seed"),
        (&["need.toml", "--need", "need.toml"], "need.toml"),
    ] {
        check(&place, args, 2, expect);
    }
}

/// Returns the rows of a JSON report with their need, role and answer.
fn rows(report: &Value) -> Vec<[&str; 3]> {
    let roles = report["roles"].as_array().expect("roles").iter();
    roles
        .map(|role| ["need", "role", "answer"].map(|key| role[key].as_str().expect("text")))
        .collect()
}

/// A change has to serve all needs: a tier for the night that the peak does not ask for.
#[test]
fn needs_of_several_times_are_answered_one_by_one() {
    let place = place();
    place.file("need.toml", &need(2_000, "10 MiB/s"));
    place.file("night.toml", &need(3_000, "10 MiB/s"));
    let args = ["layout.toml", "--need", "need.toml", "--also", "night.toml", "-o"];
    let json = check(&place, &[&args[..], &["json"]].concat(), 1, "");
    let report: Value = serde_json::from_str(&json).expect("JSON");
    let expect = [
        ["peak", "data", "yes"],
        ["peak", "log", "yes"],
        ["night", "data", "no"],
        ["night", "log", "yes"],
    ];
    assert_eq!(rows(&report), expect);
    let text =
        check(&place, &[&args[..], &["text"]].concat(), 1, "no: data, night: 2,300 IOPS of 3,000");
    assert!(text.contains("cheapest single change to yes: data as P30"), "{text}");
    let twice =
        ["layout.toml", "--need", "need.toml", "--also", "need.toml", "--also", "need.toml"];
    check(&place, &twice, 2, "two needs are called need; rename one of the files");
}

/// Returns two days of hourly counters of a file: 2,200 reads per second by day, 100 from 22:00 to
/// 06:00.
fn days() -> String {
    let mut text = "collection_time,database_name,file_name,type_desc,num_of_reads,\
        num_of_bytes_read,io_stall_read_ms,num_of_writes,num_of_bytes_written,io_stall_write_ms\n"
        .to_owned();
    let mut reads: u64 = 0;
    for hour in 0..48_u64 {
        let (day, of_day) = (1 + hour / 24, hour % 24);
        let row = format!(
            "2026-05-0{day} {of_day:02}:00:00,sales,data,ROWS,{reads},{},{},0,0,0\n",
            reads * 8192,
            reads * 2
        );
        text += &row;
        reads += 3_600 * if (6..22).contains(&of_day) { 2_200 } else { 100 };
    }
    text
}

#[test]
fn the_night_of_an_observation_has_an_answer_of_its_own() {
    let place = place();
    place.file("days.csv", &days());
    let args = ["layout.toml", "--load", "days.csv", "--night", "22:00-06:00", "-o", "json"];
    let report: Value = serde_json::from_str(&check(&place, &args, 0, "")).expect("JSON");
    assert_eq!(rows(&report), [["peak", "data", "barely"], ["night", "data", "yes"]]);
    let asked = |at: usize| report["roles"][at]["asked"].as_f64().expect("a number");
    assert!((asked(0) - 2_200.0).abs() < 5.0 && (asked(1) - 100.0).abs() < 2.0, "{report:#}");
    check(
        &place,
        &["layout.toml", "--load", "days.csv", "--night", "22:00"],
        2,
        "such as 22:00-06:00",
    );
    check(&place, &["layout.toml", "--need", "need.toml", "--night", "22:00-06:00"], 2, "--load");
    place.file(
        "job.fio",
        "[a]\nfilename=/dev/data\nrw=randread\nbs=8k\nruntime=5\ntime_based\n\
        direct=1\nioengine=libaio\nrate_iops=100\n",
    );
    let (_, stderr, code) =
        run(place.weir(&["sim", "layout.toml", "job.fio", "--observe", "o.weirobs"]));
    assert_eq!(code, Some(0), "{stderr}");
    let args = ["layout.toml", "--load", "o.weirobs", "--night", "22:00-06:00"];
    check(&place, &args, 2, "has no dates, so that it has no hours of the day");
}

/// A disk of 1 TiB with the files of two roles.
pub(crate) const SHARED: &str = "edition = \"azure-premium-2015\"\n[[volume]]\nname = \"disk\"\ntier = \"P30\"\n\
    [[file]]\nname = \"d\"\nrole = \"data\"\non = \"disk\"\nsize = \"400 GiB\"\n\
    [[file]]\nname = \"l\"\nrole = \"log\"\non = \"disk\"\nsize = \"400 GiB\"\n";

/// The headroom of a role is its own; a yes needs 10 % more of both roles at once.
#[test]
fn a_yes_has_headroom_for_all_roles() {
    let place = place();
    place.file("shared.toml", SHARED);
    let both = |iops: u64| {
        let role = |name: &str| {
            format!("[{name}]\nsize = \"300 GiB\"\niops = {iops}\nrequest = \"8 KiB\"\n")
        };
        role("data") + &role("log")
    };
    place.file("both.toml", &both(2_350));
    check(&place, &["shared.toml", "--need", "both.toml"], 0, "barely");
    place.file("more.toml", &both(2_585));
    check(&place, &["shared.toml", "--need", "more.toml"], 1, "no:");
}

/// Each need counts on burst credits only if it says so.
#[test]
fn bursting_is_that_of_each_need() {
    let place = place();
    place
        .file("p15.toml", "edition = \"azure-now\"\n[[volume]]\nname = \"data\"\ntier = \"P15\"\n");
    place.file("peak.toml", "[data]\nsize = \"50 GiB\"\niops = 2000\n");
    place.file("night.toml", "bursting = \"10min\"\n[data]\nsize = \"50 GiB\"\niops = 2000\n");
    let args = ["p15.toml", "--need", "peak.toml", "--also", "night.toml"];
    let text = check(&place, &[&args[..], &["-o", "json"]].concat(), 1, "");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(rows(&report), [["peak", "data", "no"], ["night", "data", "yes"]], "{report:#}");
    // A P15 has 1,100 IOPS, and bursts to 3,500.
    let limits = report["roles"].as_array().expect("roles").iter();
    let limits: Vec<_> = limits.map(|own| (&own["limit"]["name"], &own["limit"]["rate"])).collect();
    let (cap, burst) = (Value::from("disk_iops"), Value::from("disk_burst_iops"));
    assert_eq!(limits, [(&cap, &1_100.into()), (&burst, &3_500.into())], "{report:#}");
}

/// The throughput of this family follows from its operations, so only these are bought.
#[test]
fn operations_that_bring_throughput_are_bought() {
    let place = place();
    let layout = "edition = \"gcp\"\nhost = { size = \"c3-highcpu-88\" }\n[[volume]]\nname = \"data\"\n\
        family = \"hyperdisk-extreme\"\nsize = \"200 GiB\"\niops = 5860\n";
    place.file("extreme.toml", layout);
    let need = "[data]\nsize = \"190 GiB\"\niops = 5000\nrequest = \"300 KiB\"\nreads = \"0 %\"\n";
    place.file("need.toml", need);
    let args = ["extreme.toml", "--need", "need.toml"];
    check(&place, &args, 0, "cheapest single change to yes: data with 6446 IOPS bought");
}

/// The load of a throttled run is its demand at the limits of the run, not at those of the layout that is asked about.
#[test]
fn the_demand_of_a_run_is_that_of_its_own_layout() {
    let place = place();
    let volume = |tier| {
        format!(
            "edition = \"azure-now\"\nhost = {{ size = \"D8ds_v5\" }}\n[[volume]]\nname = \"data\"\ntier = \"{tier}\"\n"
        )
    };
    place.file("observed.toml", &volume("P20"));
    place.file("asked.toml", &volume("P30"));
    let jobs = "[data]\nfilename=/dev/data\nrw=randread\nbs=8k\nruntime=120\ntime_based\ndirect=1\n\
        ioengine=libaio\niodepth=32\n";
    place.file("jobs.fio", jobs);
    let sim = run(place.weir(&["sim", "observed.toml", "jobs.fio", "--observe", "run.weirobs"]));
    assert_eq!(sim.2, Some(0), "{}", sim.1);
    let asked = |layout: &str| {
        let (stdout, stderr, _) =
            run(place.weir(&["fit", layout, "--load", "run.weirobs", "-o", "json"]));
        let report: Value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stderr}"));
        role(&report, "data")["asked"].as_f64().expect("a rate")
    };
    assert!(asked("observed.toml") > 2_500.0, "the run has waits at 2,300 IOPS");
    assert!((asked("asked.toml") - asked("observed.toml")).abs() < 1.0);
}

/// A backup to a disk with bought rates, beside data.
const BESIDE: &str = "edition = \"azure-now\"\nhost = { size = \"D8s_v5\" }\n\
    [[volume]]\nname = \"d\"\nfamily = \"premium-ssd-v2\"\nsize = \"512 GiB\"\niops = 5000\n\
    throughput = \"200 MB/s\"\n[[file]]\nname = \"f\"\nrole = \"data\"\nsize = \"400 GiB\"\non = \"d\"\n\
    [[volume]]\nname = \"b\"\nfamily = \"premium-ssd-v2\"\nsize = \"512 GiB\"\niops = 3000\n\
    throughput = \"125 MB/s\"\n[[file]]\nname = \"bk\"\nrole = \"backup\"\nsize = \"400 GiB\"\non = \"b\"\n";

fn backup_of(rate: &str) -> String {
    format!(
        "[data]\nsize = \"400 GiB\"\niops = 2000\n[backup]\nsize = \"400 GiB\"\nthroughput = \"{rate}\"\n"
    )
}

#[test]
fn a_backup_has_a_rate_and_no_latency_to_keep() {
    let place = place();
    place.file("beside.toml", BESIDE);
    place.file("need.toml", &backup_of("170 MB/s"));
    let args = ["beside.toml", "--need", "need.toml", "-o", "json"];
    let report: Value = serde_json::from_str(&check(&place, &args, 1, "")).expect("JSON");
    assert_eq!(role(&report, "backup")["latency_target_ns"], Value::Null, "{report:#}");
    assert_eq!(role(&report, "backup")["is_latency_assumed"], false, "{report:#}");
    assert!(role(&report, "data")["latency_target_ns"].is_u64(), "{report:#}");
    assert_eq!(report["change"]["then"], "yes", "{report:#}");
    // A stated latency is kept.
    let stated = backup_of("170 MB/s") + "latency = \"1 ms\"\n";
    place.file("need.toml", &stated);
    let report: Value = serde_json::from_str(&check(&place, &args, 1, "")).expect("JSON");
    assert_eq!(role(&report, "backup")["latency_target_ns"], 1_000_000, "{report:#}");
}

/// A role without a file is placed somewhere, and the answer says where.
#[test]
fn a_role_without_a_file_is_placed_and_said() {
    let place = place();
    place.file("one.toml", "edition = \"azure-now\"\n[[volume]]\nname = \"all\"\ntier = \"P40\"\n");
    place.file(
        "need.toml",
        &(need(2_000, "20 MiB/s") + "[backup]\nsize = \"90 GiB\"\nthroughput = \"10 MB/s\"\n"),
    );
    let text = check(&place, &["one.toml", "--need", "need.toml"], 0, "").replace("\n  ", " ");
    for words in [
        "log: the layout has no file for it, so it is placed on all; add a [[file]] with its role to place it elsewhere",
        "backup: the layout has no file for it, so it is placed on all; if the disk is lost, so is the backup; add a volume for it",
    ] {
        assert!(text.contains(words), "{text}");
    }
    // A volume with the role's name is its place.
    place.file("need.toml", &need(2_000, "20 MiB/s"));
    let text = check(&place, &["layout.toml", "--need", "need.toml"], 0, "");
    assert!(!text.contains("has no file for it"), "{text}");
}

/// A role's load and data are divided among its files by their sizes.
#[test]
fn files_of_unequal_sizes_carry_their_share() {
    let place = place();
    let layout = "edition = \"azure-now\"\nhost = { size = \"E8s_v3\" }\n[[volume]]\nname = \"a\"\ntier = \"P20\"\n\
        [[volume]]\nname = \"b\"\ntier = \"P10\"\n[[file]]\nname = \"d1\"\nrole = \"data\"\nsize = \"400 GiB\"\non = \
        \"a\"\n[[file]]\nname = \"d2\"\nrole = \"data\"\nsize = \"100 GiB\"\non = \"b\"\n";
    place.file("unequal.toml", layout);
    let need =
        |iops: u32| format!("[data]\niops = {iops}\nrequest = \"8 KiB\"\nreads = \"100 %\"\n");
    // A fifth of the load is on a P10 with 500 IOPS.
    place.file("need.toml", &need(2_200));
    check(&place, &["unequal.toml", "--need", "need.toml"], 0, "yes: ");
    place.file("need.toml", &need(2_600));
    check(&place, &["unequal.toml", "--need", "need.toml"], 1, "disk IOPS limit of b: 500 IOPS");
}

/// A latency below that of the media ends the search at once, unless a cache may serve the reads.
#[test]
fn a_latency_that_no_disk_has_is_said() {
    let place = place();
    let stated = |role: &str| {
        need(2_000, "20 MiB/s").replace(role, &format!("{role}latency = \"100 us\"\n"))
    };
    place.file("need.toml", &stated("[log]\n"));
    let out_of_reach =
        "the log needs a median latency of 100 us, and the fastest disk of the layout takes ";
    let text = check(&place, &["layout.toml", "--need", "need.toml"], 1, "").replace("\n  ", " ");
    assert!(text.contains(out_of_reach), "{text}");
    let tune = ["tune", "layout.toml", "--need", "need.toml", "-o", "json"];
    let (stdout, stderr, code) = run(place.weir(&tune));
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    let ended = (code, report["end"].as_str(), report["simulated"].as_u64());
    assert_eq!(ended, (Some(1), Some("exhausted"), Some(0)), "{stderr}{report:#}");
    let verdict = report["verdict"].as_str().expect("text");
    assert!(verdict.contains(out_of_reach), "{verdict}");
    // Reads of the data may hit a cache, but its writes go to the disk.
    place.file("need.toml", &stated("[data]\n"));
    let text = check(&place, &["layout.toml", "--need", "need.toml"], 1, "").replace("\n  ", " ");
    assert!(text.contains("the data needs a median latency of 100 us"), "{text}");
    place.file("need.toml", &stated("[data]\n").replace("70 %", "100 %"));
    let text = check(&place, &["layout.toml", "--need", "need.toml"], 1, "").replace("\n  ", " ");
    assert!(!text.contains("the fastest disk of the layout"), "{text}");
}

#[test]
fn changes_with_downtime_are_left_out_if_asked() {
    let place = place();
    place.file("beside.toml", BESIDE);
    place.file("need.toml", &backup_of("150 MB/s"));
    let args = ["beside.toml", "--need", "need.toml"];
    let stripe =
        "b as a stripe of 2 disks of 256 GiB with 3000 IOPS and 125 MB/s (free; downtime: a new";
    let text = check(&place, &args, 1, "").replace("\n  ", " ");
    assert!(text.contains(stripe), "{text}");
    let online = [&args[..], &["--no-downtime"]].concat();
    let text = check(&place, &online, 1, "").replace("\n  ", " ");
    assert!(text.contains("b with 3000 IOPS and 165 MB/s bought"), "{text}");
    assert!(text.contains("downtime: none; a disk can change up to four times"), "{text}");
    // tune makes the same changes.
    let tune = |more: &[&str]| run(place.weir(&[&["tune"], &args[..], more].concat())).0;
    assert!(tune(&[]).contains("a new stripe is built"));
    let text = tune(&["--no-downtime"]);
    assert!(text.starts_with("the goal is reached in 1 step"), "{text}");
    assert!(!text.contains("stripe is built") && text.contains("bought"), "{text}");
    // If nothing is left, both say why.
    place.file("need.toml", &backup_of("2 GB/s"));
    let left_out = "changes with downtime were left out";
    check(&place, &online, 1, left_out);
    assert!(tune(&["--no-downtime"]).contains(left_out));
    assert!(!check(&place, &args, 1, "").contains(left_out));
}

#[test]
fn predictions_with_a_host_cache_say_what_they_assume() {
    let place = place();
    let cached = "edition = \"azure-now\"\nhost = { size = \"D8s_v3\" }\n[[volume]]\nname = \"d\"\n\
        tier = \"P20\"\ncache = \"read-only\"\n[[file]]\nname = \"f\"\nrole = \"data\"\nsize = \"400 GiB\"\n\
        on = \"d\"\n";
    place.file("cached.toml", cached);
    place.file("plain.toml", &cached.replace("cache = \"read-only\"\n", ""));
    let need = |iops: u32, more: &str| {
        let text = format!("[data]\nsize = \"400 GiB\"\niops = {iops}\nreads = \"90 %\"\n{more}");
        place.file("need.toml", &text);
    };
    let says = |args: &[&str], is_said: bool| {
        let (stdout, stderr, _) = run(place.weir(&[args, &["--need", "need.toml"]].concat()));
        let words = "reads are predicted to hit a warm cache as far as the data fits into it; a need with \
                     working_set says how much of the data is used";
        let text = stdout.replace("\n  ", " ");
        assert_eq!(text.contains(words), is_said, "{args:?}: {stdout}{stderr}");
    };
    need(2_000, "");
    says(&["fit", "cached.toml"], true);
    says(&["tune", "cached.toml"], true);
    says(&["fit", "plain.toml"], false);
    // The cheapest change is a cache.
    need(2_400, "");
    says(&["fit", "plain.toml"], true);
    says(&["tune", "plain.toml"], true);
    need(2_000, "working_set = \"100 GiB\"\n");
    says(&["fit", "cached.toml"], false);
    need(2_000, "");
    place.file("need.toml", "[data]\nsize = \"400 GiB\"\niops = 2000\nreads = \"0 %\"\n");
    says(&["fit", "cached.toml"], false);
}

/// Neither has any headroom: one waits for another role at a limit that they share, the other for its disk.
#[test]
fn a_role_without_headroom_names_the_limit_that_others_use_up_or_its_disks() {
    let place = Place::new();
    let layout = "edition = \"azure-now\"\nhost = { size = \"D4s_v3\" }\n[[volume]]\nname = \"data\"\n\
                  tier = \"P40\"\n[[volume]]\nname = \"log\"\ntier = \"P20\"\n";
    place.file("layout.toml", layout);
    for (data, latency, expect) in
        [(7_000, "1350us", Some("host_uncached_iops")), (1_000, "1ms", None)]
    {
        let need = format!(
            "[data]\nsize = \"90 GiB\"\niops = {data}\n[log]\nsize = \"20 GiB\"\niops = 300\nreads = \"0 %\"\n\
             request = \"64 KiB\"\nlatency = \"{latency}\"\n"
        );
        place.file("need.toml", &need);
        let args = ["fit", "layout.toml", "--need", "need.toml", "-o", "json"];
        let (stdout, stderr, code) = run(place.weir(&args));
        assert_eq!(code, Some(1), "{stderr}");
        let report: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
        let log = &report["roles"][1];
        assert_eq!((&log["role"], &log["answer"]), (&"log".into(), &"no".into()), "{report:#}");
        assert_eq!(log["headroom"], -1.0, "{report:#}");
        assert_eq!(log["limit"]["name"].as_str(), expect, "{report:#}");
    }
}
