//! `weir observe --sqlserver | --postgres | --diskstats`: real systems while they run.

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlserver")]
mod sqlserver;
#[cfg(feature = "sqlserver")]
mod tds_double;

use crate::common::{Place, run};
use crate::tools;
use crate::web::ask;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command};

/// Returns the contents of an observation.
fn shown(place: &Place, file: &str) -> Value {
    let (stdout, _, code) = run(place.weir(&["observe", "show", file, "-o", "json"]));
    assert_eq!(code, Some(0), "{stdout}");
    serde_json::from_str(&stdout).expect("JSON")
}

/// Returns the observed entity of that name.
#[cfg(feature = "sqlserver")]
fn entity<'a>(show: &'a Value, list: &str, name: &str) -> &'a Value {
    let all = show[list].as_array().unwrap_or_else(|| panic!("no {list} in {show}"));
    all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name} in {all:?}"))
}

/// An observation, to be asked for single values.
struct Observed(weir_observe::Observation);

impl Observed {
    fn open(place: &Place, file: &str) -> Self {
        let bytes = fs::read(place.path(file)).expect("a file");
        Self(weir_observe::Observation::read(&bytes[..]).expect("an observation"))
    }

    /// The values of somebody's metric that are there, as they are stored.
    #[track_caller]
    fn values(&self, name: &str, metric: &str) -> Vec<i64> {
        let contents = self.0.contents();
        let at = contents.entities.iter().position(|entity| entity.name == name);
        let at = at.unwrap_or_else(|| panic!("no {name}"));
        let id = weir_observe::EntityId(u32::try_from(at).expect("few"));
        let id = contents.find(id, metric).unwrap_or_else(|| panic!("{name} has no {metric}"));
        self.0.column(id).expect("a column").iter().flatten().collect()
    }

    /// A number that is known of somebody.
    #[cfg(feature = "sqlserver")]
    fn number(&self, name: &str, attribute: &str) -> Option<u64> {
        let entity = self.0.contents().entities.iter().find(|entity| entity.name == name);
        entity.expect(name).number(attribute)
    }

    /// That its head says nothing of these.
    #[cfg(any(feature = "postgres", feature = "sqlserver"))]
    #[track_caller]
    fn is_silent_of(&self, secrets: &[&str]) {
        let head = format!("{:?}{:?}", self.0.header, self.0.notes);
        assert!(secrets.iter().all(|secret| !head.contains(secret)), "{head}");
    }
}

fn notes(show: &Value) -> String {
    show["notes"].to_string()
}

/// A program that goes on until a signal; killed if it is dropped.
struct Running {
    child: Child,
    stderr: Box<dyn BufRead>,
    said: String,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let mut child = command.spawn().expect("a program");
        let stderr = Box::new(BufReader::new(child.stderr.take().expect("a pipe")));
        Self { child, stderr, said: String::new() }
    }

    /// Waits until it says that.
    fn until(&mut self, text: &str) {
        while !self.said.contains(text) {
            let read = self.stderr.read_line(&mut self.said).expect("text");
            assert!(read > 0, "it ended and did not say {text:?}: {}", self.said);
        }
    }

    /// Ctrl-C; what it then printed and said, and its exit code.
    fn interrupt(mut self) -> (String, String, Option<i32>) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process"), Signal::INT).expect("it runs");
        let mut stdout = String::new();
        let mut pipe = self.child.stdout.take().expect("a pipe");
        pipe.read_to_string(&mut stdout).expect("text");
        self.stderr.read_to_string(&mut self.said).expect("text");
        let code = self.child.wait().expect("an end").code();
        (stdout, std::mem::take(&mut self.said), code)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn disks_of_this_machine_for_a_while() {
    let disks = fs::read_to_string("/proc/diskstats").expect("the kernel's counters");
    if !tools::machine_has("disks", !disks.trim().is_empty()) {
        return;
    }
    let place = Place::new();
    let live =
        ["observe", "--diskstats", "--every", "100ms", "--for", "500ms", "--out", "d.weirobs"];
    let (stdout, stderr, code) = run(place.weir(&live));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        stdout.starts_with("d.weirobs: samples: ") && stdout.ends_with("; complete\n"),
        "{stdout}"
    );
    let show = shown(&place, "d.weirobs");
    assert_eq!((&show["source"], &show["is_complete"]), (&"live".into(), &true.into()));
    assert_eq!(show["interval_s"], 0.1);
    assert_eq!(show["about"]["diskstats file"], "/proc/diskstats");
    let samples = show["samples"].as_u64().expect("a count");
    let missed = notes(&show).contains("samples missed");
    assert!(samples == 6 || (samples < 6 && missed), "{samples} {show}");
    assert!(!show["volumes"].as_array().expect("volumes").is_empty(), "{show}");
}

/// A pipe in place of a file gives each reading when the test does, so what is read is known
/// without a clock.
fn pipe(place: &Place, name: &str) {
    let path = place.path(name);
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
}

/// Gives a reading to the next reader of the pipe, and replaces the pipe by a new one.
fn give(place: &Place, text: &str) {
    let opened = fs::OpenOptions::new().write(true).open(place.path("pipe"));
    let mut writer = opened.expect("somebody reads");
    pipe(place, "next");
    fs::rename(place.path("next"), place.path("pipe")).expect("a pipe");
    writer.write_all(text.as_bytes()).expect("somebody reads");
}

#[test]
fn ctrl_c_ends_it_and_the_file_is_whole() {
    let place = Place::new();
    pipe(&place, "pipe");
    let live = ["observe", "--diskstats", "pipe", "--every", "100ms", "--out", "d.weirobs"];
    let running = Running::start(place.weir(&live));
    // The first is read before there is a file.
    for reads in [0_u64, 100, 350] {
        give(&place, &format!("8 0 sda {reads} 0 {} 5 0 0 0 0 0 9 9\n", reads * 16));
    }
    // The next reader waits, and the end does not wait for it.
    let (stdout, stderr, code) = running.interrupt();
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("samples: 2") && stdout.ends_with("complete\n"), "{stdout}{stderr}");
    let show = shown(&place, "d.weirobs");
    assert_eq!((&show["samples"], &show["is_complete"]), (&2.into(), &true.into()));
    assert_eq!(Observed::open(&place, "d.weirobs").values("sda", "reads"), [100, 350]);
}

/// The test gives the readings, and the page's clock the time between them. So the latency is known, and of
/// the rate only that there is one.
#[test]
fn the_page_of_an_observed_system_has_its_rates() {
    let place = Place::new();
    pipe(&place, "pipe");
    let live = ["observe", "--diskstats", "pipe", "--every", "100ms", "--web", "127.0.0.1:0"];
    let mut running = Running::start(place.weir(&[&live[..], &["--out", "d.weirobs"]].concat()));
    let mut reads = 0_u64;
    let mut more = || {
        reads += 100;
        give(&place, &format!("8 0 sda {reads} 0 {} {reads} 0 0 0 0 0 9 9\n", reads * 16));
    };
    more();
    more();
    running.until("live page http://");
    let line = running.said.split("live page http://").nth(1).expect("an address");
    let address = line.split('/').next().expect("an address").to_owned();
    let values = |history: &Value, name: &str| -> Vec<f64> {
        let one = &history["columns"][name];
        let all = one.as_array().cloned().unwrap_or_else(|| vec![one.clone()]);
        all.iter().filter_map(Value::as_f64).collect()
    };
    // The page reads the counters by its own clock.
    let found = std::iter::repeat_with(|| {
        more();
        let answer = ask(&address, "GET /api/history?host=host&volume=sda", &[], "");
        serde_json::from_str(answer.split("\r\n\r\n").nth(1).expect("a body")).expect("JSON")
    });
    let mut found = found.take(1_000);
    let history = found.find(|own: &Value| values(own, "read_iops").iter().any(|rate| *rate > 0.0));
    // Each read took a millisecond.
    let latencies = values(&history.expect("a rate"), "latency_ms");
    assert!(latencies.iter().any(|ms| (ms - 1.0).abs() < 1e-6), "{latencies:?}");
    let refused = ask(&address, "POST /api/command", &["Content-Type: application/json"], "{}");
    assert!(refused.starts_with("HTTP/1.1 4"), "{refused}");
    let (_, stderr, code) = running.interrupt();
    assert_eq!(code, Some(0), "{stderr}");
}

#[test]
fn ctrl_c_before_its_time_is_said() {
    let place = Place::new();
    pipe(&place, "pipe");
    let live =
        ["observe", "--diskstats", "pipe", "--every", "100ms", "--for", "1h", "--out", "d.weirobs"];
    let running = Running::start(place.weir(&live));
    for _ in 0..2 {
        give(&place, "8 0 sda 1 0 16 5 0 0 0 0 0 9 9\n");
    }
    let (stdout, _, code) = running.interrupt();
    assert_eq!((code, stdout.ends_with("incomplete\n")), (Some(130), true), "{stdout}");
    assert_eq!(shown(&place, "d.weirobs")["is_complete"], false);
}

#[test]
fn invalid_arguments_are_reported_and_leave_no_file() {
    let place = Place::new();
    let check = |args: &[&str], code: i32, expect: &str| {
        let (stdout, stderr, found) = run(place.weir(&[&["observe"], args].concat()));
        assert!(stderr.contains(expect), "{args:?}: {stderr}");
        assert_eq!((stdout.as_str(), found), ("", Some(code)), "{args:?}: {stderr}");
        assert!(!place.path("o.weirobs").exists(), "{args:?}");
    };
    let out = ["--out", "o.weirobs"];
    let with = |args: &[&'static str]| [args, &out].concat();
    check(&out, 2, "name a system: --sqlserver URL, --postgres URL or --diskstats");
    check(&["--diskstats"], 2, "--out <FILE>");
    check(
        &with(&["--diskstats", "--every", "50ms"]),
        2,
        "the sampling interval must be at least 100ms",
    );
    check(&with(&["--diskstats", "--for", "0s"]), 2, "it must be more than zero");
    check(&with(&["--diskstats", "nothing"]), 2, "diskstats: cannot read nothing");
    check(
        &with(&["--diskstats", "--password-file", "x"]),
        2,
        "--password-file needs --sqlserver or --postgres",
    );
    place.file("empty", "");
    check(&with(&["--diskstats", "empty"]), 2, "this machine shows no block device");
}

#[cfg(not(any(feature = "sqlserver", feature = "postgres")))]
#[test]
fn a_build_without_the_clients_says_how_to_get_them() {
    let place = Place::new();
    for what in ["sqlserver", "postgres"] {
        let (option, url) = (format!("--{what}"), format!("{what}://weir@db1"));
        let live = ["observe", &option, &url, "--out", "o.weirobs"];
        let (_, stderr, code) = run(place.weir(&live));
        assert_eq!(code, Some(2));
        let how = format!("cargo build --release --features {what}");
        assert!(stderr.contains(&how), "{stderr}");
    }
}
