//! `weir record --control`, and replays of what was served.

use crate::common::{Place, run};
use crate::tools::{self, needs};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command};
use std::thread;
use weir_server::control::{Request, ask};

/// Two volumes whose requests wait, at the disk and at the machine.
const LAYOUT: &str = "[host]\nlimits = { uncached = { iops = 500 } }\n\
    [[volume]]\nname = \"data\"\nsize = \"64 MiB\"\nlatency = \"1ms\"\nlimits = { iops = 400 }\n\
    [[volume]]\nname = \"log\"\nsize = \"64 MiB\"\nlatency = \"1ms\"\nlimits = { iops = 300 }\n";

/// A `weir record` of a server or a device; killed if it is dropped.
pub(crate) struct Recorder {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Recorder {
    /// Returns once it records.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().expect("a program");
        let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut said = String::new();
        stderr.read_line(&mut said).expect("text");
        assert_eq!(said, "weir: recording; Ctrl-C ends it\n");
        Self { child, stderr }
    }

    /// Waits for its end; returns what it printed, what else it said, and its exit code.
    fn wait(mut self) -> (String, String, Option<i32>) {
        let (mut stdout, mut said) = (String::new(), String::new());
        let mut out = self.child.stdout.take().expect("a pipe");
        out.read_to_string(&mut stdout).expect("text");
        self.stderr.read_to_string(&mut said).expect("text");
        (stdout, said, self.child.wait().expect("an end").code())
    }

    /// Interrupts it, and returns its report.
    pub(crate) fn stop(self) -> Value {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process"), Signal::INT).expect("it is running");
        let (stdout, said, code) = self.wait();
        assert_eq!((said.as_str(), code), ("", Some(0)), "{stdout}");
        serde_json::from_str(&stdout).expect("JSON")
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const RECORD: [&str; 7] =
    ["record", "--control", "control.sock", "--out", "served.weirtrace", "-o", "json"];

#[track_caller]
fn sim(place: &Place) -> Value {
    let (stdout, stderr, code) =
        run(place.weir(&["sim", "layout.toml", "served.weirtrace", "-o", "json"]));
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    serde_json::from_str(&stdout).expect("JSON")
}

/// Clients of both volumes: each reads and writes 60 times, at most one request at a time.
fn load(place: &Place) {
    thread::scope(|scope| {
        for (export, shift) in [("data", 0), ("data", 1 << 20), ("log", 0), ("log", 1 << 20)] {
            scope.spawn(move || {
                let mut connection = place.open(export);
                let mut buffer = vec![7; 8192];
                for n in 0..60 {
                    let offset = shift + n * 8192;
                    match n % 3 {
                        0 => connection.read(offset, &mut buffer).expect("a read"),
                        _ => connection.write(offset, &buffer).expect("a write"),
                    }
                }
            });
        }
    });
}

/// Waits and service times of each volume.
fn volumes(list: &Value) -> Vec<(String, Value, u64)> {
    let volume = |own: &Value| {
        let name = own["name"].as_str().expect("a name").to_owned();
        (name, own["waits_ns"].clone(), own["medium_ns"].as_u64().expect("a time"))
    };
    list.as_array().expect("volumes").iter().map(volume).collect()
}

#[test]
fn served_requests_are_recorded_and_replayed_to_the_nanosecond() {
    let place = Place::without_a_disk();
    let server = place.serve(LAYOUT, &[]);
    let recorder = Recorder::start(place.weir(&RECORD));
    load(&place);
    let report = recorder.stop();
    assert_eq!((&report["requests"], &report["lost"]), (&240.into(), &0.into()));
    let devices = report["devices"].as_array().expect("devices");
    let names: Vec<&str> = devices.iter().filter_map(|own| own["name"].as_str()).collect();
    assert!(names.contains(&"data") && names.contains(&"log") && names.len() == 2, "{names:?}");
    assert_eq!((&devices[0]["reads"], &devices[0]["writes"]), (&40.into(), &80.into()));
    let status = ask(&place.path("control.sock"), &Request::Status).expect("a status");
    // The simulator charges each wait to the same limit, to the nanosecond.
    let replayed = sim(&place);
    assert_eq!(replayed["requests"], 240);
    let served = volumes(&status["hosts"][0]["volumes"]);
    assert_eq!(volumes(&replayed["volumes"]), served);
    let waited: u64 = served.iter().filter_map(|(_, waits, _)| waits["disk_iops"].as_u64()).sum();
    assert!(waited > 0, "{served:?}");
    // A recorded latency includes the server's own time.
    for own in replayed["recorded"].as_array().expect("latencies") {
        let mean = |of: &str| own[of]["mean_ns"].as_f64().expect("a time");
        assert!(mean("recorded") >= mean("replayed"), "{own}");
    }
    server.stop();
}

#[test]
fn one_recording_at_a_time_and_only_of_known_exports() {
    let place = Place::without_a_disk();
    let server = place.serve(LAYOUT, &[]);
    let refused = |more: &[&str], expect: &str| {
        let (stdout, said, code) = run(place.weir(&[&RECORD[..], more].concat()));
        assert_eq!((stdout.as_str(), code), ("", Some(2)), "{said}");
        assert!(said.contains(expect), "{said}");
    };
    refused(&["--device", "dta"], "there is no export \"dta\"");
    refused(&["--from", "1s"], "--from is for traces");
    let names = std::fs::read_dir(place.dir()).expect("a folder").flatten();
    assert!(names.into_iter().all(|own| !own.path().to_string_lossy().ends_with(".part")));
    let first = Recorder::start(place.weir(&[&RECORD[..], &["--device", "log"]].concat()));
    refused(&[], "another recording of this server is under way");
    place.open("data").write(0, &[1; 512]).expect("a write");
    place.open("log").write(0, &[1; 512]).expect("a write");
    let report = first.stop();
    assert_eq!((&report["requests"], &report["devices"][0]["name"]), (&1.into(), &"log".into()));
    // The first one has ended. Its trace is not replaced by an empty one.
    let timed = [&RECORD[..], &["--duration", "50ms"]].concat();
    let (stdout, said, code) = Recorder::start(place.weir(&timed)).wait();
    assert_eq!((stdout.as_str(), code), ("", Some(2)), "{said}");
    assert!(said.contains("no request came, so served.weirtrace keeps the trace"), "{said}");
    let kept = std::fs::read(place.path("served.weirtrace")).expect("a trace");
    assert!(kept.len() > 100, "{} bytes", kept.len());
    std::fs::remove_file(place.path("served.weirtrace")).expect("a file");
    let (_, said, code) = Recorder::start(place.weir(&timed)).wait();
    assert_eq!((said.as_str(), code), ("", Some(0)));
    server.stop();
}

#[test]
fn a_recording_of_a_server_that_stops_is_complete() {
    let place = Place::without_a_disk();
    let server = place.serve(LAYOUT, &[]);
    let recorder = Recorder::start(place.weir(&RECORD));
    place.open("data").write(4096, &[1; 512]).expect("a write");
    server.stop();
    let (stdout, said, code) = recorder.wait();
    assert_eq!((said.as_str(), code), ("", Some(0)), "{stdout}");
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(report["requests"], 1);
}

#[test]
fn a_recording_of_a_server_that_is_killed_says_so() {
    let place = Place::without_a_disk();
    let server = place.serve(LAYOUT, &[]);
    let recorder = Recorder::start(place.weir(&RECORD));
    drop(server);
    let (stdout, said, code) = recorder.wait();
    match code {
        // The header was on its way.
        Some(3) if !stdout.is_empty() => assert!(stdout.contains("no end mark"), "{stdout}"),
        _ => assert!(code == Some(3) && !said.is_empty(), "{code:?} {said}"),
    }
}

/// A log of fio: 800 requests of 4 KiB at random, a third of them reads.
fn iolog() -> String {
    let mut state = 1_u64;
    let mut log = "fio version 3 iolog\n0 data add\n0 data open\n".to_owned();
    for n in 0..800 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let op = if n % 3 == 0 { "read" } else { "write" };
        log += &format!("{} data {op} {} 4096\n", n * 2000, (state >> 33) % 8000 * 4096);
    }
    log + "1600000 data close\n"
}

/// fio's own replay of the same log with the same number of requests in flight: the limit of the
/// disk decides, so both take the same time.
#[test]
fn fio_replays_the_same_trace_at_the_same_rate() {
    needs!("fio");
    let place = Place::without_a_disk();
    place.file("t.iolog", &iolog());
    // Other programs can only make a replay take longer, so the shortest of each is compared.
    let mut shortest = (f64::INFINITY, f64::INFINITY);
    for _ in 0..10 {
        let server = place.serve(LAYOUT, &[]);
        let uri = format!("--uri=nbd+unix:///data?socket={}", place.path("nbd.sock").display());
        let mut fio = Command::new("fio");
        fio.args(["--name=t", "--ioengine=nbd", &uri, "--read_iolog=t.iolog", "--iodepth=8"])
            .args(["--replay_no_stall=1", "--output-format=json"])
            .current_dir(place.dir());
        let (stdout, said, code) = run(fio);
        assert_eq!(code, Some(0), "{said}");
        // fio prints the address of the export first.
        let json = stdout.find('{').and_then(|start| stdout.get(start..)).unwrap_or_default();
        let fio: Value = serde_json::from_str(json).expect("JSON");
        let fio = &fio["jobs"][0];
        assert_eq!(
            (&fio["read"]["total_ios"], &fio["write"]["total_ios"]),
            (&267.into(), &533.into())
        );
        let fio_s = fio["job_runtime"].as_f64().expect("a time") / 1000.0;
        server.stop();
        let args =
            ["run", "layout.toml", "t.iolog", "--pace", "closed", "--depth", "8", "-o", "json"];
        let (stdout, said, code) = run(place.weir(&args));
        assert_eq!(code, Some(0), "{said}");
        let own: Value = serde_json::from_str(&stdout).expect("JSON");
        assert_eq!(own["requests"], 800);
        let own_s = own["elapsed_s"].as_f64().expect("a time");
        shortest = (fio_s.min(shortest.0), own_s.min(shortest.1));
        if (shortest.0 / shortest.1 - 1.0).abs() <= 0.03 {
            return;
        }
    }
    panic!("seconds of fio and of weir: {shortest:?}");
}

#[test]
fn a_trace_is_replayed_in_real_time() {
    let place = Place::without_a_disk();
    let tick = |ms: u64| 128_166_372_000_000_000 + ms * 10_000;
    let row = |n: u64| format!("{},h,0,Write,{},4096,20000\n", tick(n * 4), n * 4096);
    place.file("layout.toml", LAYOUT);
    place.file("t.csv", &(0..50).map(row).collect::<String>());
    let args = ["run", "layout.toml", "t.csv", "--map", "h/0=data", "-o", "json"];
    let (stdout, stderr, code) = run(place.weir(&args));
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!((&report["clock"], &report["requests"]), (&"wall".into(), &50.into()));
    let elapsed = report["elapsed_s"].as_f64().expect("a time");
    assert!(elapsed >= 0.196, "the last request arrives after 196 ms: {elapsed}");
    assert_eq!(report["volumes"][0]["name"], "data");
    // The volumes of a folder are not overwritten by accident.
    let data = [&args[..], &["--data", "d"]].concat();
    assert_eq!(run(place.weir(&data)).2, Some(0));
    let (stdout, stderr, code) = run(place.weir(&data));
    assert_eq!((stdout.as_str(), code), ("", Some(2)));
    assert!(stderr.contains("--data d: it holds volumes"), "{stderr}");
    assert_eq!(run(place.weir(&[&data[..], &["--overwrite"]].concat())).2, Some(0));
    let (_, stderr, code) = run(place.weir(&[&args[..], &["--runtime", "1s"]].concat()));
    assert_eq!(code, Some(2));
    assert!(stderr.contains("--runtime is for databases"), "{stderr}");
}
