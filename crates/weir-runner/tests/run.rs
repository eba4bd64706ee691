//! Jobs of Weir's runner, on a server in this process. The clock is real, so times have only lower
//! bounds, and counts are exact.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{Served, TWO, Told, interrupted};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use weir_client::ClientError;
use weir_client::Connection;
use weir_proto::{Command, CommandFlags, Errno, TransmissionFlags as Can};
use weir_report::number::float;
use weir_report::run::{ClockName, OpReport};
use weir_runner::{RunOptions, RunnerError, run};
use weir_units::Span;

#[track_caller]
fn check_op(op: &OpReport, ios: u64, block: u64) {
    assert_eq!((op.ios, op.bytes), (ios, ios * block));
    let l = &op.latency;
    let ordered = [1, l.min, l.p50, l.p90, l.p95, l.p99, l.p99_9, l.max];
    // A percentile may be up to 1 % too high.
    assert!(ordered.windows(2).all(|pair| pair[0] <= pair[1] + pair[1] / 100), "{l:?}");
    assert!(l.mean > 0.0 && op.iops > 0.0 && op.bytes_per_s > 0.0, "{op:?}");
}

#[test]
fn every_request_is_counted_once() {
    let served = Served::new(TWO);
    let report = served.run(
        "[global]\nsize=4m\niodepth=16\nioengine=libaio\n\
         [a]\nrw=randread\nbs=4k\nnumjobs=3\nnumber_ios=500\ndirectory=/mnt/v\n\
         [b]\nrw=write\nbs=8k\ndirectory=/mnt/w\n\
         [c]\nrw=randrw\nrwmixread=0\nbs=512\nnumber_ios=100\ndirectory=/mnt/v\n\
         [d]\nrw=trim\nbs=64k\ndirectory=/mnt/w\n",
    );
    assert_eq!((report.clock, report.seed), (ClockName::Wall, 7));
    let jobs: Vec<_> = report.jobs.iter().map(|job| (job.name.as_str(), job.processes)).collect();
    assert_eq!(jobs, [("a", 3), ("b", 1), ("c", 1), ("d", 1)]);
    check_op(&report.jobs[0].read, 1500, 4096);
    check_op(&report.jobs[1].write, 512, 8192);
    check_op(&report.jobs[2].write, 100, 512);
    check_op(&report.jobs[3].trim, 64, 65_536);
    assert_eq!(report.jobs[1].read, OpReport::default());
    assert!(report.jobs.iter().all(|job| job.queue_depth > 0.0 && job.queue_depth <= 48.0));
    assert!(report.jobs.iter().all(|job| job.measured_s > 0.0) && report.elapsed_s > 0.0);
    assert_eq!(served.requests(), [1600, 512 + 64]);
}

#[test]
fn a_process_may_have_files_on_several_devices() {
    let served = Served::new(TWO);
    let report = served.run(
        "[j]\nfilename=/dev/v:/mnt/w/f\nsize=4m\nrw=randwrite\nbs=64k\niodepth=4\nioengine=libaio\n",
    );
    check_op(&report.jobs[0].write, 64, 65_536);
    assert_eq!(served.requests(), [32, 32]);
}

/// More than a socket takes at once, in both directions.
#[test]
fn large_requests_pass_a_full_socket() {
    let served = Served::new(TWO);
    let report = served.run(
        "[j]\ndirectory=/mnt/v\nrw=randrw\nbs=4m\nsize=32m\nio_size=256m\niodepth=8\n\
         ioengine=libaio\n",
    );
    let job = &report.jobs[0];
    assert_eq!(job.read.ios + job.write.ios, 64);
    assert!(job.read.ios > 0 && job.write.ios > 0, "{job:?}");
}

#[test]
fn written_bytes_are_noise_and_the_same_for_a_seed() {
    let written = |seed| {
        let served = Served::new(TWO);
        let placed = served.place("[j]\ndirectory=/mnt/v\nrw=write\nbs=64k\nsize=128k\n");
        run(placed, &RunOptions { seed, ..served.options() }).unwrap();
        let mut data = vec![0; 128 << 10];
        Connection::open(&served.uris[0]).unwrap().read(0, &mut data).unwrap();
        data
    };
    let data = written(1);
    let mut seen = [0_u32; 256];
    data.iter().for_each(|byte| seen[usize::from(*byte)] += 1);
    assert!(seen.iter().all(|count| (300..=730).contains(count)), "{seen:?}");
    assert!(data == written(1) && data != written(2));
}

/// Checks that the run succeeded, and returns the requests at the server.
#[track_caller]
fn asked(job: &str) -> Vec<(Command, bool)> {
    let told = Told::new(Can::SEND_FLUSH | Can::SEND_FUA | Can::SEND_TRIM, |_| None);
    told.run(job).unwrap();
    let asked = told.requests();
    asked.iter().map(|r| (r.command, r.flags.contains(CommandFlags::FUA))).collect()
}

#[test]
fn flushes_and_durable_writes_are_sent() {
    let (write, flush) = ((Command::Write, false), (Command::Flush, false));
    let job = "[j]\nrw=write\nbs=4k\nsize=16k\n";
    assert_eq!(asked(&format!("{job}sync=1\n")), [(Command::Write, true); 4]);
    assert_eq!(asked(&format!("{job}sync=dsync\n")), [(Command::Write, true); 4]);
    // As in fio, none follows the last write.
    let between = [write, write, flush, write, write];
    assert_eq!(asked(&format!("{job}fsync=2\n")), between);
    assert_eq!(asked(&format!("{job}fdatasync=2\n")), between);
    assert_eq!(asked(&format!("{job}end_fsync=1\n")), [write, write, write, write, flush]);
    let trim = (Command::Trim, false);
    assert_eq!(asked("[j]\nrw=trimwrite\nbs=4k\nsize=8k\n"), [trim, write, trim, write]);
    // A block is written as long as it was trimmed.
    assert_eq!(asked("[j]\nrw=trimwrite\nbs=4k,4k,8k\nsize=8k\n"), [trim, write]);
}

/// The first I/O is issued at once, so n I/Os at a rate of r take (n - 1) / r.
#[test]
fn a_rate_is_held() {
    let served = Served::new(TWO);
    let job =
        "[j]\ndirectory=/mnt/v\nrw=randread\nbs=4k\nsize=1m\nnumber_ios=101\nrate_iops=1000\n";
    for engine in ["", "ioengine=libaio\niodepth=8\nio_submit_mode=offload\n"] {
        let report = served.run(&format!("{job}{engine}"));
        check_op(&report.jobs[0].read, 101, 4096);
        assert!(report.elapsed_s >= 0.1, "{}", report.elapsed_s);
    }
}

#[test]
fn a_limit_of_the_volume_applies() {
    let limit = "[[volume]]\nname = \"v\"\nsize = \"64 MiB\"\nlimits = { iops = 1000 }\n";
    let report = Served::new(limit).run(
        "[j]\ndirectory=/mnt/v\nrw=randread\nbs=4k\nsize=1m\nnumber_ios=250\niodepth=8\n\
         ioengine=libaio\n",
    );
    check_op(&report.jobs[0].read, 250, 4096);
    assert!(report.elapsed_s > 0.2, "{}", report.elapsed_s);
    assert!(report.jobs[0].read.latency.mean > 2e6, "{:?}", report.jobs[0].read.latency);
}

#[test]
fn behind_a_stonewall_the_next_wave_waits() {
    let served = Served::new(TWO);
    let report = served.run(
        "[global]\ndirectory=/mnt/v\nrw=read\nbs=4k\nsize=1m\nnumber_ios=51\nrate_iops=1000\n\
         [a]\n[b]\nstonewall\n[c]\nstonewall\n",
    );
    assert!(report.jobs.iter().all(|job| job.read.ios == 51));
    assert!(report.elapsed_s >= 0.15, "{}", report.elapsed_s);
}

#[test]
fn a_ramp_is_run_and_not_measured() {
    let served = Served::new(TWO);
    let report = served.run(
        "[j]\ndirectory=/mnt/v\nrw=randread\nbs=4k\nsize=1m\ntime_based\nruntime=60ms\n\
         ramp_time=50ms\n",
    );
    let job = &report.jobs[0];
    assert!(job.measured_s >= 0.06 && report.elapsed_s >= job.measured_s + 0.049, "{report:?}");
    let answered = served.requests()[0];
    assert!(0 < job.read.ios && job.read.ios < answered, "{} of {answered}", job.read.ios);
}

#[test]
fn windows_contain_every_request() {
    let served = Served::new(TWO);
    let placed = served.place(
        "[j]\ndirectory=/mnt/v\nrw=randrw\nbs=4k\nsize=1m\nrate_iops=1000,1000\nnumber_ios=100\n",
    );
    let options = RunOptions { record_windows: Some(Span::from_millis(5)), ..served.options() };
    let report = run(placed, &options).unwrap();
    let (mut reads, mut writes) = (0.0, 0.0);
    let last = report.series.len() - 1;
    for (at, point) in report.series.iter().enumerate() {
        assert!((point.start_s - float(at as u64) * 0.005).abs() < 1e-9);
        // A rest of less than a tenth of a window is part of the last one.
        assert!(point.length_s == 0.005 || (at == last && point.length_s < 0.005_5));
        reads += point.read_iops * point.length_s;
        writes += point.write_iops * point.length_s;
    }
    let job = &report.jobs[0];
    assert!((reads - float(job.read.ios)).abs() < 1e-6, "{reads} of {job:?}");
    assert!((writes - float(job.write.ios)).abs() < 1e-6, "{writes} of {job:?}");
    assert!(report.series.len() > 5, "{}", report.series.len());
}

const ENDLESS: &str = "[j]\ndirectory=/mnt/v\nrw=randread\nbs=4k\nsize=1m\ntime_based\nruntime=1h\n\
    iodepth=8\nioengine=libaio\nnumjobs=2\n";

#[test]
fn a_server_that_goes_away_ends_the_run() {
    let served = Served::new(TWO);
    let error = thread::scope(|scope| {
        let running = scope.spawn(|| run(served.place(ENDLESS), &served.options()));
        served.wait_for_requests();
        served
            .server
            .command(weir_server::control::Request::Crash { host: "host".into() })
            .unwrap();
        running.join().unwrap().unwrap_err()
    });
    assert!(matches!(error, RunnerError::Client(ClientError::Closed { .. })), "{error}");
}

#[test]
fn a_run_can_be_stopped_and_keeps_its_results() {
    let served = Served::new(TWO);
    let stop = AtomicBool::new(false);
    let options = RunOptions { stop: Some(&stop), ..served.options() };
    let report = thread::scope(|scope| {
        let running = scope.spawn(|| run(served.place(ENDLESS), &options));
        served.wait_for_requests();
        stop.store(true, Ordering::Relaxed);
        interrupted(running.join().unwrap())
    });
    let answered = served.requests()[0];
    assert!(report.jobs[0].read.ios <= answered, "{report:?}");
}

#[test]
fn a_stop_is_noticed_while_nothing_is_due() {
    let served = Served::new(TWO);
    let stop = AtomicBool::new(false);
    let options = RunOptions { stop: Some(&stop), ..served.options() };
    let jobs = "[global]\ndirectory=/mnt/v\nrw=read\nbs=4k\nsize=1m\nnumber_ios=1\n\
        [a]\n[b]\nstartdelay=1h\n";
    let report = thread::scope(|scope| {
        let running = scope.spawn(|| run(served.place(jobs), &options));
        served.wait_for_requests();
        stop.store(true, Ordering::Relaxed);
        interrupted(running.join().unwrap())
    });
    assert_eq!(report.jobs[1].read.ios, 0);
}

#[track_caller]
fn check_error(flags: Can, answer: common::Answer, job: &str, message: &str) {
    let error = Told::new(flags, answer).run(job).unwrap_err();
    assert_eq!(error.to_string(), message);
}

#[test]
fn a_failed_request_is_named() {
    let at_8k: common::Answer = |request| (request.offset == 8192).then_some(Errno::Io);
    check_error(
        Can::SEND_FLUSH,
        at_8k,
        "[reader]\nrw=read\nbs=4k\nsize=64k\niodepth=4\nioengine=libaio\n",
        "job \"reader\": a read of 4096 bytes at offset 8192 of \"told\" failed: EIO; \
         the server's log may say why",
    );
    check_error(
        Can::SEND_FLUSH,
        |_| Some(Errno::NoSpc),
        "[writer]\nrw=write\nbs=16k\nsize=64k\n",
        "job \"writer\": a write of 16384 bytes at offset 0 of \"told\" failed: ENOSPC; \
         free space where the server keeps its data",
    );
    check_error(
        Can::SEND_FLUSH,
        |request| (request.command == Command::Flush).then_some(Errno::Shutdown),
        "[w]\nrw=write\nbs=16k\nsize=64k\nfsync=1\n",
        "job \"w\": a flush at offset 0 of \"told\" failed: ESHUTDOWN; the server is stopping",
    );
}

#[test]
fn requests_that_an_export_cannot_take_are_errors() {
    check_error(
        Can::SEND_FLUSH,
        |_| None,
        "[j]\nrw=trim\nbs=4k\nsize=64k\n",
        "job \"j\": the export does not offer TRIM",
    );
    check_error(
        Can::SEND_FLUSH,
        |_| None,
        "[j]\nrw=write\nbs=4k\nsize=64k\nsync=1\n",
        "job \"j\": the export does not offer FUA",
    );
    check_error(
        Can::SEND_FLUSH,
        |_| None,
        "[j]\nrw=read\nbs=128k\nsize=512k\n",
        "job \"j\": a request of 131072 bytes is above the export's maximum of 65536 bytes",
    );
    check_error(
        Can::SEND_FLUSH,
        |_| None,
        "[j]\nrw=read\nbs=4k\nsize=1536k\n",
        "job \"j\" needs \"told\" to have 1536 KiB, and the server says 1 MiB; does it serve \
         another layout?",
    );
}

#[test]
fn a_missing_server_is_reported() {
    let served = Served::new(TWO);
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("none");
    let uri = format!("nbd+unix:///v?socket={}", socket.display()).parse().unwrap();
    let options = RunOptions { uris: &[uri], ..RunOptions::default() };
    let placed = served.place("[j]\ndirectory=/mnt/v\nrw=read\nsize=1m\n");
    let expect = format!(
        "cannot connect to {}: No such file or directory (os error 2); is the server running?",
        socket.display()
    );
    assert_eq!(run(placed, &options).unwrap_err().to_string(), expect);
}
