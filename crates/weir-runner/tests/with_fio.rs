//! Jobs driven by the real fio, on a server in this process.

#![expect(clippy::print_stdout, reason = "what is skipped is said aloud")]

mod common;

use common::{Served, TWO, interrupted};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use weir_report::run::RunReport;
use weir_runner::{RunOptions, RunnerError, run_with_fio};
use weir_units::Span;

/// Returns whether fio is missing, and prints that the test is skipped; fails in CI.
fn fio_is_missing() -> bool {
    let fio = Command::new("fio").arg("--version").stdout(Stdio::null()).status();
    let missing = fio.is_err();
    assert!(!missing || std::env::var_os("CI").is_none(), "CI needs fio");
    if missing {
        println!("skipped: needs fio");
    }
    missing
}

fn run(served: &Served, jobs: &str) -> Result<RunReport, RunnerError> {
    run_with_fio(served.place(jobs), &served.options(), Path::new("fio"))
}

#[test]
fn fio_does_the_same_jobs() {
    if fio_is_missing() {
        return;
    }
    let served = Served::new(TWO);
    let jobs = "[global]\nsize=4m\niodepth=8\nioengine=libaio\nbs=4k\n\
        [a]\nrw=randread\nnumber_ios=500\nnumjobs=3\ndirectory=/mnt/v\n\
        [b]\nrw=randwrite\nbs=8k\ndirectory=/mnt/w\nfsync=64\niodepth=1\n\
        [c]\nstonewall\nrw=randread\nnumber_ios=50\nrate_iops=500\ngroup_reporting\n\
        directory=/mnt/v\n\
        [d]\nrw=randtrim\nnumber_ios=9\ngroup_reporting\ndirectory=/mnt/v\n";
    let fio = run(&served, jobs).unwrap();
    let asked = served.requests();
    let own = served.run(jobs);
    let both = asked.iter().map(|asked| asked * 2).collect::<Vec<_>>();
    assert_eq!(served.requests(), both, "not as many requests, flushes among them");
    for (fio, own) in fio.jobs.iter().zip(&own.jobs) {
        assert_eq!((&fio.name, fio.processes), (&own.name, own.processes));
        let ops = [(&fio.read, &own.read), (&fio.write, &own.write), (&fio.trim, &own.trim)];
        for (fio, own) in ops {
            assert_eq!((fio.ios, fio.bytes), (own.ios, own.bytes));
            let l = &fio.latency;
            assert!(l.min <= l.p50 && l.p50 <= l.p99 && l.p99 <= l.max, "{l:?}");
            assert_eq!(l.mean > 0.0, own.ios > 0);
        }
    }
    let names: Vec<&str> = fio.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c, d"]);
    assert!(fio.elapsed_s >= 0.098 && fio.jobs[2].measured_s >= 0.098, "{fio:?}");
    assert!(fio.notes[0].starts_with("run by fio-") && fio.notes.len() == 1, "{:?}", fio.notes);
}

#[test]
fn flushes_of_a_deep_queue_are_noted() {
    if fio_is_missing() {
        return;
    }
    let served = Served::new(TWO);
    let jobs = "[j]\ndirectory=/mnt/v\nrw=write\nbs=4k\nsize=64k\nfsync=4\niodepth=4\n\
        ioengine=libaio\n";
    let report = run(&served, jobs).unwrap();
    let note = "job \"j\": where fsync asks for one flush, fio may send up to iodepth";
    assert_eq!((report.notes[1].as_str(), report.notes.len()), (note, 2));
}

#[test]
fn fio_can_be_stopped_and_reports_partial_results() {
    if fio_is_missing() {
        return;
    }
    let served = Served::new(TWO);
    let stop = AtomicBool::new(false);
    let options = RunOptions { stop: Some(&stop), ..served.options() };
    let jobs = "[j]\ndirectory=/mnt/v\nrw=randread\nsize=1m\ntime_based\nruntime=1h\n";
    let report = thread::scope(|scope| {
        let fio = || run_with_fio(served.place(jobs), &options, Path::new("fio"));
        let running = scope.spawn(fio);
        served.wait_for_requests();
        stop.store(true, Ordering::Relaxed);
        interrupted(running.join().unwrap())
    });
    assert!(report.jobs[0].read.ios > 0 && report.jobs[0].measured_s < 3600.0, "{report:?}");
}

#[test]
fn a_missing_server_is_the_message_of_fio() {
    if fio_is_missing() {
        return;
    }
    let served = Served::new(TWO);
    let placed = served.place("[j]\ndirectory=/mnt/v\nrw=read\nsize=1m\n");
    let folder = tempfile::tempdir().unwrap();
    let uri = format!("nbd+unix:///v?socket={}/none", folder.path().display()).parse().unwrap();
    let options = RunOptions { uris: &[uri], ..RunOptions::default() };
    let error = run_with_fio(placed, &options, Path::new("fio")).unwrap_err().to_string();
    assert!(error.starts_with("fio failed (exit status: 1): "), "{error}");
    assert!(error.contains("No such file or directory"), "{error}");
}

#[test]
fn without_fio_it_says_what_to_install() {
    let served = Served::new(TWO);
    let placed = served.place("[j]\ndirectory=/mnt/v\nrw=read\nsize=1m\n");
    let error = run_with_fio(placed, &served.options(), Path::new("/nowhere/fio")).unwrap_err();
    let expect = "/nowhere/fio was not found; install fio (on Debian and Ubuntu: apt install fio), \
                  or run the jobs without it";
    assert_eq!(error.to_string(), expect);
    assert!(matches!(error, RunnerError::NoFio { .. }));
}

#[test]
fn fio_has_no_windows() {
    let served = Served::new(TWO);
    let placed = served.place("[j]\ndirectory=/mnt/v\nrw=read\nsize=1m\n");
    let options = RunOptions { record_windows: Some(Span::from_secs(1)), ..served.options() };
    let error = run_with_fio(placed, &options, Path::new("fio")).unwrap_err().to_string();
    assert_eq!(
        error,
        "job \"j\": fio's report has no intervals over time; run the jobs without fio"
    );
}
