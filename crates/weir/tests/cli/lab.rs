//! `weir lab run`: what it refuses, and that nothing is left of it when it is told to
//! stop.

use crate::common::{Place, run};
use crate::tools::{self, needs};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Stdio};

const KNOWN: &str = "backup-targets, cache-warmup, cost-16k-iops, ds14-benchmark, hammerdb-presize, io-size, log-governor, \
                     mi-allocation, mi-file-size, noisy-neighbour, premium-limits, published, queue-depth, stripe, \
                     tempdb-scale-out, vm-cap";

/// `weir lab run` says `expect` and ends with 2.
#[track_caller]
fn check(args: &[&str], expect: &str) {
    let (stdout, stderr, code) = run(Place::new().weir(&[&["lab", "run"], args].concat()));
    assert_eq!((stdout.as_str(), stderr.as_str()), ("", format!("weir: {expect}\n").as_str()));
    assert_eq!(code, Some(2));
}

#[test]
fn labs_that_cannot_run_are_refused_before_any_run() {
    check(&[], &format!("no lab was named: give one or more, or --all; there are: {KNOWN}"));
    check(
        &["stripe", "ds14"],
        &format!("there is no lab \"ds14\"; did you mean \"ds14-benchmark\"?; there are: {KNOWN}"),
    );
    check(&["oltp"], &format!("there is no lab \"oltp\"; there are: {KNOWN}"));
    check(
        &["queue-depth", "io-size", "--size", "64KiB"],
        "--size 64 KiB: lab \"io-size\" has blocks of 1 MiB; give at least that",
    );
    let wall = ["--with", "weir", "--size", "1GiB", "--runtime", "1s", "--tries", "3"];
    check(
        &[&["io-size", "--clock", "virtual"], &wall[..]].concat(),
        "--clock virtual: only runs in wall time use --with, --size, --runtime, --tries; leave it \
         out, or use --clock wall or both",
    );
    check(
        &["--all", "--tries", "1", "--clock", "virtual"],
        "--clock virtual: only runs in wall time use --tries; leave it out, or use --clock wall \
         or both",
    );
}

#[test]
fn sizes_times_and_tries_are_more_than_none() {
    let check = |option: &str, value: &str, why: &str| {
        let lab = ["lab", "run", "vm-cap", "--clock", "virtual", option, value];
        let (stdout, stderr, code) = run(Place::new().weir(&lab));
        assert_eq!((stdout.as_str(), code), ("", Some(2)));
        assert!(stderr.starts_with(&format!("error: invalid value '{value}' for '{option} ")));
        let said = stderr.lines().next().unwrap_or_default();
        assert!(said.ends_with(why), "{stderr}");
    };
    check("--tries", "0", "0 is not in 1..=10");
    check("--tries", "11", "11 is not in 1..=10");
    check("--size", "0B", "it must be more than zero");
    check("--runtime", "0s", "it must be more than zero");
}

#[test]
fn a_virtual_run_is_one_csv_table() {
    let lab = ["lab", "run", "vm-cap", "stripe", "--clock", "virtual", "--output", "csv"];
    let (stdout, _, code) = run(Place::new().weir(&lab));
    assert_eq!(code, Some(0), "{stdout}");
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines.len(), 1 + 4 + 3, "{stdout}");
    assert!(lines[0].starts_with("lab,figure,published,compare,expected,virtual,"), "{stdout}");
    assert!(lines[1].starts_with("vm-cap,") && lines[5].starts_with("stripe,"), "{stdout}");
    assert!(lines[4].contains(",>=,0.9,"), "{stdout}");
}

/// A lab that only reads layouts reports its figures without a run.
#[test]
fn limits_of_instance_files_are_computed_without_a_run() {
    let (stdout, stderr, code) =
        run(Place::new().weir(&["lab", "run", "mi-allocation", "--clock", "virtual"]));
    assert_eq!((stderr.as_str(), code), ("", Some(0)), "{stdout}");
    let row = stdout.lines().find(|line| line.contains("a report: BlobSizeGB")).expect("a row");
    let cells: Vec<&str> = row.split_whitespace().skip(3).collect();
    assert_eq!(cells, ["2,944", "2,944", "2,944", "-", "+0.0", "none", "GiB", "exact", "holds"]);
    assert!(stdout.starts_with("13 of 13 figures hold\n"), "{stdout}");
}

/// A lab on the wall clock that would take an hour; killed if it is dropped.
struct Running(Child);

impl Running {
    /// Its temporary files are in `tmp`.
    fn start(place: &Place, driver: &str) -> Self {
        fs::create_dir(place.path("tmp")).expect("a folder");
        let lab = ["lab", "run", "io-size", "--clock", "wall", "--runtime", "1h", "--with", driver];
        let mut command = place.weir(&lab);
        command.env("TMPDIR", place.path("tmp")).stdout(Stdio::null());
        let mut running = Self(command.spawn().expect("a program"));
        let mut stderr = BufReader::new(running.0.stderr.take().expect("a pipe"));
        let mut said = String::new();
        stderr.read_line(&mut said).expect("text");
        assert_eq!(said, "io-size: 8k in wall time, 1 h\n");
        running.0.stderr = Some(stderr.into_inner());
        running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The only child of a process, once it is there.
fn child_of(parent: &mut Child) -> String {
    let id = parent.id();
    while parent.try_wait().expect("its state").is_none() {
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"))
            .expect("a running process");
        if let Some(child) = children.split_whitespace().next() {
            return child.to_owned();
        }
        std::thread::yield_now();
    }
    panic!("it ended without a child");
}

/// Told twice at once, as `timeout` does, or once: it ends in order and leaves nothing.
#[track_caller]
fn check_stopped(place: &Place, mut running: Running, signals: &[Signal]) {
    let child = &mut running.0;
    let pid = Pid::from_child(child);
    for signal in signals {
        kill_process(pid, *signal).expect("it is running");
    }
    let mut said = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert_eq!(said, "weir: interrupted; nothing is left running\n");
    let code = child.wait().expect("an end").code().expect("an exit code");
    let codes = signals.iter().map(|signal| 128 + signal.as_raw());
    assert!(codes.clone().any(|own| own == code), "{code} after {signals:?}");
    assert_eq!(fs::read_dir(place.path("tmp")).expect("a folder").count(), 0, "files are left");
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    let place = Place::new();
    let running = Running::start(&place, "weir");
    check_stopped(&place, running, &[Signal::INT, Signal::TERM, Signal::INT]);
}

#[test]
fn an_interrupted_run_with_fio_leaves_no_file_and_no_fio() {
    needs!("fio");
    for signals in [&[Signal::INT][..], &[Signal::TERM], &[Signal::TERM, Signal::INT]] {
        let place = Place::new();
        let mut running = Running::start(&place, "fio");
        let fio = child_of(&mut running.0);
        check_stopped(&place, running, signals);
        assert!(!Path::new("/proc").join(fio).exists(), "fio is still there");
    }
}

#[test]
fn a_run_of_labs_is_a_page() {
    let place = Place::new();
    let lab = ["lab", "run", "mi-allocation", "--clock", "virtual", "--html", "labs.html"];
    let (stdout, _, code) = run(place.weir(&lab));
    assert_eq!(code, Some(0), "{stdout}");
    let page = std::fs::read_to_string(place.path("labs.html")).expect("a page");
    assert!(page.contains("<h1>13 of 13 figures hold</h1>\n<h2>mi-allocation: "), "{page}");
}
