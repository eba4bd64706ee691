//! `weir sim`: what it shows beside the run itself.

use crate::common::{Place, run};
use crate::tools::{self, needs};
use serde_json::Value;
use std::process::Command;

/// A read-write cache of little room before a slow disk, and a job that writes.
fn place() -> Place {
    let place = Place::new();
    place.file(
        "layout.toml",
        "[host]\nunlimited = true\ncache = { size = \"1 GiB\", dirty_limit = \"1 MiB\" }\n\
         [[volume]]\nname = \"v\"\nlimits = { iops = 100 }\ncache = \"read-write\"\n",
    );
    let job = "[a]\nrw=randwrite\nbs=4k\nsize=64m\nruntime=5\ntime_based\ndirect=1\nioengine=libaio\n\
               iodepth=8\n";
    place.file("jobs.fio", job);
    place
}

#[test]
fn a_write_back_counts_at_the_disk_and_names_what_held_it() {
    let place = place();
    let sim = ["sim", "layout.toml", "jobs.fio"];
    let (json, stderr, code) = run(place.weir(&[&sim[..], &["-o", "json"]].concat()));
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert!(json["jobs"][0]["waits_ns"]["cache_writeback"].as_u64() > Some(0), "{json}");
    let counted = json["volumes"][0]["counted_iops"].as_f64().expect("a rate");
    assert!((95.0..105.0).contains(&counted), "{counted}");
    let back = &json["writebacks"][0];
    assert_eq!((&back["volume"], &back["host"]), (&"v".into(), &"host".into()));
    assert_eq!(back["iops"].as_f64(), Some(counted));
    assert!(back["waits_ns"]["disk_iops"].as_u64() > Some(0), "{back}");
    let (text, _, _) = run(place.weir(&sim));
    let line = text.lines().skip_while(|line| !line.starts_with(" written back to")).nth(1);
    assert!(
        line.is_some_and(|l| l.starts_with(" v ") && l.contains("disk_iops 100.0 %")),
        "{text}"
    );
}

#[test]
fn progress_is_for_terminals() {
    needs!("script");
    let place = place();
    let seen = |more: &str| {
        let weir = env!("CARGO_BIN_EXE_weir");
        let line = format!("{weir} sim layout.toml jobs.fio {more}");
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).current_dir(place.dir()).env("TERM", "xterm");
        run(script).0
    };
    let text = seen("");
    assert!(text.contains(" of 5.00 s simulated, ") && text.contains(" I/O per s"), "{text}");
    let text = seen("--quiet");
    assert!(!text.contains("simulated") && text.contains("written back to"), "{text}");
}

/// A P10 without credits has its 500 IOPS, one with all of them 3,500.
#[test]
fn a_disk_starts_with_the_credits_of_its_layout() {
    let place = Place::new();
    let job = "[a]\nrw=randread\nbs=4k\nsize=64m\nruntime=10\ntime_based\ndirect=1\n\
               ioengine=libaio\niodepth=32\n";
    place.file("jobs.fio", job);
    for (credits, iops) in [("", 3_500.0), ("credits = \"0 %\"\n", 500.0)] {
        let layout =
            format!("edition = \"azure-now\"\n[[volume]]\nname = \"v\"\ntier = \"P10\"\n{credits}");
        place.file("layout.toml", &layout);
        let (json, stderr, code) =
            run(place.weir(&["sim", "layout.toml", "jobs.fio", "-o", "json"]));
        assert_eq!((stderr.as_str(), code), ("", Some(0)));
        let json: Value = serde_json::from_str(&json).expect("JSON");
        let done = json["volumes"][0]["counted_iops"].as_f64().expect("a rate");
        assert!((done - iops).abs() <= 1.0, "{credits}: {done}");
    }
}
