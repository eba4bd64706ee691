//! `weir sim` of a database.

use crate::common::{Place, run};
use serde_json::Value;

const LAYOUT: &str = "[[volume]]\nname = \"data\"\nsize = \"64 GiB\"\nlatency = \"1ms\"\n\
    limits = { iops = 200 }\n[[volume]]\nname = \"log\"\nsize = \"64 GiB\"\nlatency = \"1ms\"\n\
    unlimited = true\n";

const OLTP: &str = "users = 20\nthink_time = \"5ms\"\nvcores = 4\nsize = \"128 MiB\"\n\
    buffer_pool = \"2 GiB\"\nwarm = true\nduration = \"4s\"\nramp_time = \"1s\"\ndata = [\"data\"]\n\
    log = \"log\"\n[checkpoint]\nevery = \"1s\"\n[[transaction]]\nname = \"t\"\nshare = 1\n\
    reads = 4\nwrites = 4\nlog = \"2 KiB\"\ncpu = \"200us\"\n";

fn place() -> Place {
    let place = Place::new();
    place.file("layout.toml", LAYOUT);
    place.file("oltp.toml", OLTP);
    place
}

const SIM: [&str; 3] = ["sim", "layout.toml", "oltp.toml"];

#[test]
fn a_database_in_all_formats() {
    let place = place();
    let output = |format: &str| {
        let (stdout, stderr, code) =
            run(place.weir(&[&SIM[..], &["--every", "1s", "-o", format]].concat()));
        assert_eq!((stderr.as_str(), code), ("", Some(0)));
        stdout
    };
    let json: Value = serde_json::from_str(&output("json")).expect("JSON");
    let text = output("text");
    let csv = output("csv");
    let json = &json["databases"][0];
    assert_eq!(
        (&json["database"], &json["waits"][0]["wait"]),
        (&"oltp".into(), &"PAGEIOLATCH_EX".into())
    );
    let data = &json["files"][0];
    assert_eq!((&data["file"], &data["role"]), (&"data".into(), &"data".into()));
    let writes = data["num_of_writes"].as_u64().expect("a count");
    assert!((740..=802).contains(&writes), "{writes}");
    assert_eq!(json["series"].as_array().map(Vec::len), Some(5));
    assert!(text.contains("disk_iops 99."), "{text}");
    assert!(text.contains("\nvirtual time, seed 1, trace "), "{text}");
    assert!(text.contains("\n4.00 s after 1.00 s of ramp, 20 users\n"), "{text}");
    // Every figure is there for machines.
    let header = csv.lines().next().expect("a header");
    for key in ["batches_per_s", "io_stall_queued_write_ms", "wait_disk_iops_ns", "top_wait"] {
        assert!(header.split(',').any(|head| head == key), "{key} is not in {header}");
    }
    for (object, name) in [(&json["load"], "load"), (data, "files"), (&json["series"][0], "series")]
    {
        for key in object.as_object().expect("an object").keys().filter(|key| *key != "waits_ns") {
            assert!(header.split(',').any(|head| head == key), "{name}: {key} is not in {header}");
        }
    }
    assert!(output("markdown").contains("| batch requests/s |"));
}

#[test]
fn runtime_and_seed() {
    let place = place();
    let json = |more: &[&str]| {
        let (stdout, stderr, _) = run(place.weir(&[&SIM[..], more, &["-o", "json"]].concat()));
        serde_json::from_str::<Value>(&stdout).unwrap_or_else(|_| panic!("{stderr}"))
    };
    let short = json(&["--runtime", "2s"]);
    assert_eq!(short["databases"][0]["elapsed_s"], 2.0);
    assert_eq!(short, json(&["--runtime", "2s", "--seed", "1"]));
    assert_ne!(short["trace_hash"], json(&["--runtime", "2s", "--seed", "2"])["trace_hash"]);
}

#[test]
fn contradictory_options_are_refused() {
    let place = place();
    let check = |args: &[&str], expect: &str| {
        let (stdout, stderr, code) = run(place.weir(args));
        assert_eq!((stdout.as_str(), stderr, code), ("", format!("weir: {expect}\n"), Some(2)));
    };
    check(
        &["sim", "layout.toml", "jobs.fio", "oltp.toml"],
        "oltp.toml describes a database or backup (.toml) and jobs.fio is a fio job file; give the one or the \
         other",
    );
    check(
        &["sim", "layout.toml", "oltp.toml", "oltp.toml"],
        "oltp.toml:9:9: \"data\" is a file of another database of this run; give each database its \
         own files",
    );
    for (option, value, expect) in [
        ("--size", "1GiB", "give size and working_set in the OLTP description"),
        ("--map", "/mnt/d=data", "name the files in data and log of the OLTP description"),
        ("--warm", "data", "give warm = true in the OLTP description for its buffer pool"),
        ("--crash", "host@1s", "a database that crashes is not simulated"),
    ] {
        check(
            &[&SIM[..], &[option, value]].concat(),
            &format!("{option} is for fio job files; {expect}"),
        );
    }
    place.file("oltp.toml", &OLTP.replace("users = 20", "users = 0"));
    check(&SIM, "oltp.toml:1:9: users = 0: give 1 to 1000000; a database needs users");
    place.file("oltp.toml", &OLTP.replace("\"log\"", "\"lgo\""));
    check(
        &SIM,
        "oltp.toml:10:7: log = \"lgo\" is not in the layout; did you mean \"log\"?; there are: data, \
         log",
    );
}
