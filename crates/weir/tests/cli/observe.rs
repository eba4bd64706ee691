//! `weir observe`, and what `weir sim` leaves for it.

use crate::common::{IOSTAT, Place, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::process::Stdio;
use std::thread;

const LAYOUT: &str = "[[volume]]\nname = \"data\"\nsize = \"64 GiB\"\nlatency = \"1ms\"\n\
    limits = { iops = 200 }\n[[volume]]\nname = \"log\"\nsize = \"64 GiB\"\nlatency = \"1ms\"\n\
    unlimited = true\n";

/// 200 users on a pool that is too small: the data file is held at its limit.
pub(crate) const OLTP: &str = "users = 200\nvcores = 4\nsize = \"1 GiB\"\nbuffer_pool = \"256 MiB\"\n\
    duration = \"9s\"\nramp_time = \"1s\"\ndata = [\"data\"]\nlog = \"log\"\n[checkpoint]\n\
    every = \"1s\"\n[[transaction]]\nname = \"t\"\nshare = 1\nreads = 4\nwrites = 1\n\
    log = \"2 KiB\"\ncpu = \"200us\"\n";

const JOB: &str = "[a]\nfilename=/mnt/data\nrw=randread\nbs=4k\nsize=64m\nruntime=5\ntime_based\n\
    direct=1\nioengine=libaio\niodepth=8\n";

fn place() -> Place {
    let place = Place::new();
    place.file("layout.toml", LAYOUT);
    place.file("oltp.toml", OLTP);
    place.file("jobs.fio", JOB);
    place
}

#[track_caller]
fn ok(place: &Place, args: &[&str]) -> String {
    let (stdout, stderr, code) = run(place.weir(args));
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    stdout
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[track_caller]
fn within(value: &Value, from: f64, to: f64) {
    let value = value.as_f64().expect("a number");
    assert!((from..=to).contains(&value), "{value} is not from {from} to {to}");
}

#[test]
fn a_database_is_observed_and_shown() {
    let place = place();
    let run_alone = ok(&place, &["sim", "layout.toml", "oltp.toml", "-o", "json"]);
    let sim = ["sim", "layout.toml", "oltp.toml", "-o", "json", "--observe", "run.weirobs"];
    let observed = ok(&place, &sim);
    assert_eq!(observed, run_alone, "who observes changes nothing");
    let show = json(&ok(&place, &["observe", "show", "run.weirobs", "-o", "json"]));
    assert_eq!((&show["source"], &show["is_complete"]), (&"virtual-run".into(), &true.into()));
    assert_eq!((&show["samples"], &show["to_s"]), (&11.into(), &10.0.into()));
    assert_eq!((&show["layout"], &show["about"]["seed"]), (&"layout.toml".into(), &"1".into()));
    let data = &show["files"][0];
    assert_eq!((&data["name"], &data["role"]), (&"data".into(), &"data".into()));
    within(&data["iops"]["mean"], 195.0, 201.0);
    within(&data["iops"]["p50"], 195.0, 202.0);
    within(&data["near_iops_limit_share"], 0.95, 1.0);
    assert_eq!(data["iops_limit"], 200);
    let waited = data["waits_ns"]["disk_iops"].as_f64().expect("a time");
    assert!(waited > 0.9 * data["medium_ns"].as_f64().expect("a time"), "{data}");
    let database = &show["databases"][0];
    assert!(database["waits"][0]["wait"].as_str().is_some_and(|w| w.starts_with("PAGEIOLATCH")));
    within(&database["batches_per_s"]["mean"], 1.0, 1_000.0);
    let text = ok(&place, &["observe", "show", "run.weirobs"]);
    assert!(text.contains("11 samples from 0 s to 10.0 s, interval 1.00 s; complete"), "{text}");
    assert!(text.contains("disk_iops 9"), "{text}");
    assert!(ok(&place, &["observe", "show", "run.weirobs", "-o", "markdown"]).contains("| wait"));
}

#[test]
fn jobs_are_observed_as_often_as_one_likes() {
    let place = place();
    let sim = ["sim", "layout.toml", "jobs.fio", "--every", "100ms", "--observe", "run.weirobs"];
    ok(&place, &sim);
    let show = json(&ok(&place, &["observe", "show", "run.weirobs", "-o", "json"]));
    assert_eq!(show["interval_s"], 0.1);
    let samples = show["samples"].as_u64().expect("a count");
    assert!((51..=52).contains(&samples), "{samples}");
    assert_eq!(
        (&show["databases"], &show["files"]),
        (&Value::Array(vec![]), &Value::Array(vec![]))
    );
    within(&show["volumes"][0]["iops"]["p50"], 199.0, 211.0);
    let csv = ok(&place, &["observe", "show", "run.weirobs", "-o", "csv"]);
    let header = csv.lines().next().expect("a header");
    for key in show["volumes"][0].as_object().expect("an object").keys() {
        let known = header.split(',').any(|head| head.starts_with(key.as_str()));
        assert!(known || key == "waits_ns", "{key} is not in {header}");
    }
}

#[test]
fn a_run_or_an_observation_is_plotted() {
    let place = place();
    let sim = ["sim", "layout.toml", "oltp.toml", "--observe", "run.weirobs", "--plot", "run.svg"];
    ok(&place, &sim);
    ok(&place, &["observe", "show", "run.weirobs", "--plot", "shown.svg"]);
    let text = |name: &str| fs::read_to_string(place.path(name)).expect("text");
    let svg = text("run.svg");
    assert_eq!(svg, text("shown.svg"));
    for title in [
        ": batch requests/s",
        ": tasks waiting, by wait",
        ": CPU %",
        "data: IOPS",
        "log: MiB/s",
        "requests held, by cap",
    ] {
        assert!(svg.contains(title), "{title} is not in it");
    }
    ok(&place, &["sim", "layout.toml", "jobs.fio", "--plot", "run.html"]);
    let html = text("run.html");
    assert!(html.starts_with("<!doctype html>") && html.contains("data: IOPS"), "{html}");
}

#[test]
fn ctrl_c_leaves_what_was_observed_until_then() {
    let place = place();
    let sim = ["sim", "layout.toml", "oltp.toml", "--runtime", "1000h", "--every", "10ms"];
    let mut command = place.weir(&[&sim[..], &["--observe", "run.weirobs"]].concat());
    let mut child = command.spawn().expect("a program");
    // The header is written when signals are caught; then some chunks.
    let path = place.path("run.weirobs");
    while fs::metadata(&path).map_or(0, |meta| meta.len()) < 20_000 {
        assert_eq!(child.try_wait().expect("a state"), None, "it ended by itself");
        thread::yield_now();
    }
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process");
    kill_process(pid, Signal::INT).expect("it runs");
    let output = child.wait_with_output().expect("an end");
    let stdout = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(130));
    assert!(
        stdout.contains("interrupted after ") && stdout.contains("batch requests/s"),
        "{stdout}"
    );
    let (show, stderr, code) = run(place.weir(&["observe", "show", "run.weirobs", "-o", "json"]));
    let ending = "interrupted; all samples until then are present";
    assert_eq!((stderr, code), (format!("weir: run.weirobs: {ending}\n"), Some(0)));
    let show = json(&show);
    assert_eq!((&show["is_complete"], &show["ending"]), (&false.into(), &ending.into()));
    assert!(show["samples"].as_u64() >= Some(1_024), "{show}");
}

#[test]
fn a_cut_or_damaged_observation_is_shown_up_to_the_damage() {
    let place = place();
    ok(&place, &["sim", "layout.toml", "jobs.fio", "--every", "1ms", "--observe", "run.weirobs"]);
    let whole = fs::read(place.path("run.weirobs")).expect("a file");
    let check = |bytes: &[u8], says: &str, samples: u64| {
        fs::write(place.path("bad.weirobs"), bytes).expect("a file");
        let (show, stderr, code) =
            run(place.weir(&["observe", "show", "bad.weirobs", "-o", "json"]));
        assert_eq!((stderr, code), (format!("weir: bad.weirobs: {says}\n"), Some(0)));
        assert_eq!(json(&show)["samples"], samples);
    };
    let chunks: Vec<usize> =
        (0..whole.len() - 4).filter(|at| whole[*at..].starts_with(b"DATA")).collect();
    let cut = "no end mark: its writer was killed, or is still writing";
    check(&whole[..chunks[1]], cut, 4_096);
    let left_out = "; 5 bytes at the end are an incomplete chunk and are left out";
    check(&whole[..chunks[1] + 5], &format!("{cut}{left_out}"), 4_096);
    let mut flipped = whole.clone();
    flipped[chunks[1] + 30] ^= 1;
    let (show, ..) = run(place.weir(&["observe", "show", "run.weirobs", "-o", "json"]));
    let total = json(&show)["samples"].as_u64().expect("a number");
    let (at, lost) = (chunks[1], (total - 4_096).min(4_096));
    let damaged =
        format!("1 damaged block, the first at byte {at}, is left out with {lost} samples");
    check(&flipped, &damaged, total - lost);
}

#[test]
fn unreadable_and_unwritable_files_are_reported_with_a_reason() {
    let place = place();
    let check = |args: &[&str], expect: &str, exit: i32| {
        let (stdout, stderr, code) = run(place.weir(args));
        assert_eq!((stdout.as_str(), stderr, code), ("", format!("weir: {expect}\n"), Some(exit)));
    };
    check(
        &["observe", "show", "layout.toml"],
        "layout.toml: this is not an observation: it does not begin with \"weirobs\"; weir sim --observe \
         FILE writes one",
        2,
    );
    check(
        &["observe", "show", "none.weirobs"],
        "cannot read none.weirobs: No such file or directory (os error 2)",
        2,
    );
    check(
        &["sim", "layout.toml", "oltp.toml", "--observe", "layout.toml"],
        "--observe layout.toml: it exists and is not an observation; give another name",
        2,
    );
    check(
        &["sim", "layout.toml", "oltp.toml", "--observe", "no/run.weirobs"],
        "cannot write no/run.weirobs: the folder no does not exist; make it first",
        3,
    );
    assert_eq!(fs::read_to_string(place.path("layout.toml")).expect("a file"), LAYOUT);
    let (_, stderr, code) =
        run(place.weir(&["sim", "layout.toml", "oltp.toml", "--plot", "run.png"]));
    assert!(stderr.contains("the name of a plot must end in .svg or .html"), "{stderr}");
    assert_eq!(code, Some(2));
}

/// A file that grows over the border of its tier has the limits of the next from then on.
#[test]
fn a_file_that_grew_is_shown_with_the_limits_that_it_has() {
    let place = Place::new();
    place.file(
        "layout.toml",
        "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 8 }\n\
         [[file]]\nname = \"data\"\nrole = \"data\"\nsize = \"128 GiB\"\ngrowth = \"1 GiB\"\n\
         [[file]]\nname = \"log\"\nrole = \"log\"\nsize = \"2 TiB\"\n",
    );
    place.file(
        "load.toml",
        "users = 16\nvcores = 8\nsize = \"128 GiB\"\nworking_set = \"8 MiB\"\n\
         buffer_pool = \"64 MiB\"\nduration = \"20s\"\ndata = [\"data\"]\nlog = \"log\"\n\
         [checkpoint]\nevery = \"1s\"\ncoalesce = \"8 KiB\"\n[[transaction]]\nname = \"rows\"\n\
         share = 1\nsequential = true\nreads = 0\nwrites = 16\nlog = \"8 KiB\"\ncpu = \"1ms\"\n",
    );
    let sim = ["sim", "layout.toml", "load.toml", "--observe", "o.weirobs"];
    let (_, stderr, code) = run(place.weir(&sim));
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    let (stdout, _, _) = run(place.weir(&["observe", "show", "o.weirobs", "-o", "json"]));
    let json: Value = serde_json::from_str(&stdout).expect("JSON");
    let file = &json["files"][0];
    // P15 from the first page on; 128 GiB would be P10 with 500.
    assert_eq!((&file["name"], &file["iops_limit"]), (&"data".into(), &1_100.into()), "{file}");
    let iops = file["iops"]["max"].as_f64().expect("a rate");
    assert!((1_000.0..=1_110.0).contains(&iops), "{iops}");
    assert_eq!(json["volumes"][0]["iops_limit"], 1_100);
    let note = "data grew from 128 GiB to 129 GiB; the limits shown are those at the end";
    assert_eq!(json["notes"], serde_json::json!([note]));
}

#[test]
fn output_of_other_systems_is_imported_and_shown() {
    let place = Place::new();
    place.file("iostat.txt", IOSTAT);
    let (stdout, stderr, code) =
        run(place.weir(&["observe", "import", "iostat.txt", "--out", "db1.weirobs"]));
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(stdout, "db1.weirobs: samples: 2, entities: 2, series: 8\n");
    assert_eq!(
        stderr,
        "iostat.txt: iostat, samples: 2\niostat.txt: the first report is an average since boot and \
         is left out\n"
    );
    let show = json(&ok(&place, &["observe", "show", "db1.weirobs", "-o", "json"]));
    let sda = &show["volumes"][0];
    assert_eq!((&sda["name"], &sda["parent"]), (&"sda".into(), &"db1".into()));
    // Both reports are of five seconds.
    assert_eq!(sda["iops"]["mean"], 350.0);
    assert_eq!(sda["bytes_per_s"]["mean"], 2800.0 * 1024.0);
    // By operations: 400 of 2 ms, 100 of 7 ms and 200 of 4 ms.
    assert_eq!(sda["latency_mean_ns"], (400.0 * 2e6 + 100.0 * 7e6 + 200.0 * 4e6) / 700.0);
    let text = ok(&place, &["observe", "show", "db1.weirobs"]);
    assert!(text.contains("sda"), "{text}");
}

#[test]
fn an_import_that_is_interrupted_leaves_nothing() {
    let place = Place::new();
    place.file("kept.weirobs", "as it was");
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut command = place.weir(&["observe", "import", "-", "--out", "kept.weirobs"]);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("a program");
        let mut input = child.stdin.take().expect("a pipe");
        // More than it looks at to know what it is.
        let (head, samples) = IOSTAT.split_once("\n\n").expect("a head");
        let more = format!("{head}\n\n{}", samples.repeat(400_000 / samples.len()));
        input.write_all(more.as_bytes()).expect("a reader");
        // It has begun with its file, and waits for more input.
        while !place.path("kept.weirobs.part").exists() {
            assert_eq!(child.try_wait().expect("a state"), None, "it ended by itself");
            thread::yield_now();
        }
        let pid = Pid::from_child(&child);
        kill_process(pid, signal).expect("it is running");
        assert_eq!(child.wait().expect("an end").code(), Some(code));
        assert!(!place.path("kept.weirobs.part").exists());
        assert_eq!(fs::read_to_string(place.path("kept.weirobs")).expect("text"), "as it was");
    }
}

#[test]
fn a_failed_import_leaves_no_file() {
    let place = Place::new();
    place.file("iostat.txt", IOSTAT);
    place.file("letter.txt", "Dear Sir,\n");
    place.file("kept.weirobs", "as it was");
    let refused = |args: &[&str], expect: &str| {
        let all = [&["observe", "import", "--out", "kept.weirobs"], args].concat();
        let (stdout, stderr, code) = run(place.weir(&all));
        assert_eq!((stdout.as_str(), code), ("", Some(2)));
        assert!(stderr.starts_with(&format!("weir: {expect}")), "{stderr}");
        assert_eq!(fs::read_to_string(place.path("kept.weirobs")).expect("text"), "as it was");
        assert!(!place.path("kept.weirobs.part").exists());
    };
    refused(
        &["letter.txt"],
        "letter.txt: unknown kind of input: it begins with \"Dear Sir,\"; it resembles no \
         kind; `weir observe kinds` lists what is read\n",
    );
    refused(&["iostat.txt", "--as", "nonsense"], "--as nonsense: unknown kind; the kinds are ");
    refused(&["nowhere.txt"], "cannot read nowhere.txt: No such file");
    refused(
        &["iostat.txt", "--start", "soon"],
        "--start soon: it is not a time; give one such as \"2026-11-22 14:00:00\"\n",
    );
    refused(
        &["iostat.txt", "--utc-offset", "x"],
        "--utc-offset x: it is not a UTC offset; give one such as +01:00 or Z\n",
    );
    let undated = IOSTAT.lines().filter(|line| !line.starts_with("03/14"));
    place.file("undated.txt", &undated.collect::<Vec<_>>().join("\n"));
    refused(
        &["iostat.txt", "undated.txt"],
        "undated.txt: it has no dates and other inputs have; say when it begins, with --start\n",
    );
}

#[test]
fn the_checklist_has_the_percentiles_of_what_was_asked() {
    let place = Place::new();
    place.file("iostat.txt", IOSTAT);
    let (_, stderr, code) =
        run(place.weir(&["observe", "import", "iostat.txt", "--out", "db1.weirobs"]));
    assert_eq!(code, Some(0), "{stderr}");
    let list = json(&ok(&place, &["observe", "checklist", "db1.weirobs", "-o", "json"]));
    let of = |name: &str| -> Value {
        let all = list["lists"][0]["requirements"].as_array().expect("requirements");
        all.iter().find(|own| own["name"] == name).unwrap_or_else(|| panic!("{name}")).clone()
    };
    within(&of("IOPS")["p99"], 495.0, 505.0);
    within(&of("IOPS")["p50"], 198.0, 202.0);
    assert_eq!(of("IOPS")["mean"], 350.0);
    assert_eq!(of("reads")["mean"], 600.0 / 700.0);
    assert_eq!(of("request size")["mean"], 8192.0);
    assert_eq!(of("latency")["mean"], (400.0 * 2e6 + 100.0 * 7e6 + 200.0 * 4e6) / 700.0);
    assert_eq!(of("write latency")["mean"], 7e6);
    let refused = run(place.weir(&["observe", "checklist", "db1.weirobs", "--only", "sdz"]));
    let expect = "weir: --only sdz: nothing has that name; there are: db1, sda\n";
    assert_eq!((refused.1.as_str(), refused.2), (expect, Some(2)));
    // The checklist of one of Weir's own runs is complete, too.
    let place = self::place();
    ok(&place, &["sim", "layout.toml", "oltp.toml", "-o", "json", "--observe", "run.weirobs"]);
    let text = ok(&place, &["observe", "checklist", "run.weirobs"]);
    assert!(text.contains("data") && text.contains("all together"), "{text}");
}

/// Returns sqlcmd's output of the script at a time, with the counters of second `n`.
fn answers(at: &str, n: u64) -> String {
    let (reads, bytes, stall) = (1000 + 600 * n, 8192 * (1000 + 600 * n), 2000 + 3000 * n);
    format!(
        "collection_time_utc,database_name,file_name,file_id,type_desc,physical_name,size_pages,\
         max_size,growth,is_percent_growth,num_of_reads,num_of_bytes_read,io_stall_read_ms,\
         io_stall_queued_read_ms,num_of_writes,num_of_bytes_written,io_stall_write_ms,\
         io_stall_queued_write_ms,size_on_disk_bytes\r\n\
         -------------------,-------------,---------,-------,---------,-------------,----------,\
         --------,------,-----------------,------------,-----------------,----------------,\
         -----------------------,-------------,--------------------,-----------------,\
         ------------------------,------------------\r\n\
         {at},sales,data,1,ROWS,D:\\sales.mdf,131072,-1,8192,0,{reads},{bytes},{stall},{stall},\
         0,0,0,0,1073741824\r\n\
         \r\n\
         collection_time_utc,wait_type,waiting_tasks_count,wait_time_ms,max_wait_time_ms,\
         signal_wait_time_ms\r\n\
         -------------------,---------,-------------------,------------,----------------,\
         -------------------\r\n\
         {at},PAGEIOLATCH_SH,{reads},{stall},30,5\r\n"
    )
}

#[test]
fn results_of_the_sql_server_script_are_imported_and_shown() {
    let place = Place::new();
    let script = ok(&place, &["observe", "script", "--sqlserver"]);
    for column in answers("x", 0).split([',', '\r', '\n']).filter(|name| name.contains('_')) {
        let is_name = column.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        assert!(!is_name || script.contains(column), "the script does not ask for {column}");
    }
    for word in ["CLEAR", "INSERT", "UPDATE", "DELETE", "CREATE", "DBCC"] {
        assert!(!script.contains(word), "the script only reads, and says {word}");
    }
    place.file("before.csv", &answers("2026-11-22 10:00:00.1234567", 0));
    place.file("after.csv", &answers("2026-11-22 10:01:00.1234567", 1));
    let import = ["observe", "import", "before.csv", "after.csv", "--out", "server.weirobs"];
    let (_, stderr, code) = run(place.weir(&import));
    assert_eq!(code, Some(0), "{stderr}");
    let show = json(&ok(&place, &["observe", "show", "server.weirobs", "-o", "json"]));
    let file = &show["files"][0];
    assert_eq!((&file["name"], &file["role"]), (&"data".into(), &"data".into()));
    assert_eq!(file["iops"]["mean"], 10.0);
    assert_eq!(file["latency_mean_ns"], 5e6);
    let list = json(&ok(&place, &["observe", "checklist", "server.weirobs", "-o", "json"]));
    assert_eq!(list["lists"][0]["requirements"][0]["mean"], 10.0);
    let waits = show["databases"].as_array().expect("databases");
    let wait = waits.iter().find_map(|own| own["waits"].get(0)).expect("a wait");
    assert_eq!((&wait["wait"], &wait["time_ms"]), (&"PAGEIOLATCH_SH".into(), &3000.0.into()));
}

#[test]
fn an_import_replaces_no_input_link_or_device() {
    let place = Place::new();
    let csv = "sample_time,database_name,file_name,num_of_reads,num_of_bytes_read,io_stall_read_ms\n\
        2026-11-22T14:00:00,db1,d,100,819200,100\n";
    place.file("a.csv", csv);
    std::os::unix::fs::symlink("a.csv", place.path("link")).expect("a link");
    for (out, why) in [
        ("a.csv", "it is one of the files to read"),
        ("link", "it is a link"),
        ("/dev/null", "it exists and is not a file"),
        ("-", "cannot be written to standard output"),
    ] {
        let (_, stderr, code) =
            crate::common::run(place.weir(&["observe", "import", "a.csv", "--out", out]));
        assert_eq!(code, Some(2), "{out}: {stderr}");
        assert!(stderr.contains(why), "{stderr}");
    }
    assert_eq!(std::fs::read_to_string(place.path("a.csv")).expect("a file"), csv);
}

#[test]
fn benchmark_results_are_shown() {
    let place = Place::new();
    let side = |iops: f64| {
        format!(
            "{{\"io_bytes\":40960,\"bw_bytes\":4096,\"iops\":{iops},\"runtime\":1000,\"total_ios\":10,\
             \"clat_ns\":{{\"min\":1000,\"max\":9000,\"mean\":5000.0,\"stddev\":1.0,\"N\":10}}}}"
        )
    };
    let json = format!(
        "{{\"fio version\":\"fio-3.33\",\"timestamp\":1700000000,\"jobs\":[{{\"jobname\":\"a\",\
         \"error\":0,\"job options\":{{\"rw\":\"randrw\"}},\"read\":{},\"write\":{}}}]}}",
        side(2_160.25),
        side(7.0)
    );
    place.file("fio.json", &json);
    let (_, stderr, code) =
        crate::common::run(place.weir(&["observe", "import", "fio.json", "--out", "a.weirobs"]));
    assert_eq!(code, Some(0), "{stderr}");
    let (stdout, _, _) = crate::common::run(place.weir(&["observe", "show", "a.weirobs"]));
    assert!(stdout.contains("reads_per_s 2160.250"), "{stdout}");
}

#[test]
fn files_without_names_are_files_of_their_own() {
    let place = Place::new();
    let csv = "db_name,size_gb,read_mbps,num_of_reads,num_of_writes,interval_mi,type\n\
        db1,1,1.0,6000,0,10,ROWS\ndb1,1,0.0,0,3000,10,LOG\n";
    place.file("a.csv", csv);
    let (stdout, stderr, code) =
        crate::common::run(place.weir(&["observe", "import", "a.csv", "--out", "a.weirobs"]));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("samples: 1,"), "{stdout}");
    assert!(stderr.contains("it does not name its files: they are numbered"), "{stderr}");
    let (stdout, _, _) = crate::common::run(place.weir(&["observe", "show", "a.weirobs"]));
    assert!(stdout.contains("file 1") && stdout.contains("file 2"), "{stdout}");
}
