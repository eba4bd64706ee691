//! Replays in virtual time, compared with the engine driven by hand.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;
use weir_catalog::Catalog;
use weir_trace::{Request as Recorded, TraceError};
use weir_workload::replay::Pace;

/// One volume, a stripe, and a cached volume, on a machine with limits.
const LAYOUT: &str = "[host]\n\
    limits = { uncached = { iops = 3200, throughput = \"48 MiB/s\" }, cached = { iops = 4000 } }\n\
    cache = { size = \"1 GiB\", latency = \"100us\" }\n\
    [[volume]]\nname = \"data\"\nsize = \"64 GiB\"\n\
    limits = { iops = 500, throughput = \"60 MiB/s\" }\nlatency = \"2ms\"\n\
    [[stripe]]\nname = \"wide\"\nunit = \"64 KiB\"\nvolumes = { count = 3, size = \"16 GiB\", \
    limits = { iops = 300 }, latency = \"2ms\" }\n\
    [[volume]]\nname = \"cached\"\nsize = \"8 GiB\"\ncache = \"read-write\"\n\
    limits = { iops = 500 }\nlatency = \"2ms\"\n";

/// One volume whose requests take a millisecond, without limits.
const PLAIN: &str = "[[volume]]\nname = \"data\"\nsize = \"1 GiB\"\nunlimited = true\n\
    latency = \"1ms\"\n";

fn layout(text: &str) -> Layout {
    Layout::parse("layout.toml", text, &Catalog::builtin()).unwrap_or_else(|e| panic!("{e}"))
}

/// A trace in memory.
struct Listed {
    requests: VecDeque<Recorded>,
    devices: Vec<String>,
}

impl weir_trace::ReadTrace for Listed {
    fn next_request(&mut self) -> Result<Option<Recorded>, TraceError> {
        Ok(self.requests.pop_front())
    }

    fn devices(&self) -> &[String] {
        &self.devices
    }

    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

fn recording(name: &str, devices: &[&str], requests: &[Recorded]) -> Recording {
    let devices = devices.iter().map(|name| (*name).to_owned()).collect();
    let trace = Listed { requests: requests.iter().copied().collect(), devices };
    Recording { name: name.to_owned(), trace: Box::new(trace) }
}

fn options(pace: Pace) -> ReplaySimOptions {
    let replay = ReplayOptions { pace, ..ReplayOptions::default() };
    ReplaySimOptions { replay, ..ReplaySimOptions::default() }
}

fn report(text: &str, requests: &[Recorded], options: &ReplaySimOptions) -> ReplayReport {
    try_report(text, &["data"], requests, options).unwrap_or_else(|error| panic!("{error}"))
}

fn try_report(
    text: &str,
    devices: &[&str],
    requests: &[Recorded],
    options: &ReplaySimOptions,
) -> Result<ReplayReport, String> {
    let layout = layout(text);
    let recordings = vec![recording("t", devices, requests)];
    let simulation = ReplaySimulation::new(&layout, recordings, options);
    let mut simulation = simulation.map_err(|error| error.to_string())?;
    simulation.run_until(Instant::FAR).map_err(|error| error.to_string())?;
    Ok(simulation.report(1))
}

/// A read of 4 KiB at this millisecond that took so many.
fn read(at_ms: u64, latency_ms: Option<u64>) -> Recorded {
    Recorded {
        at: Instant::ZERO + Span::from_millis(at_ms),
        device: 0,
        kind: Kind::Read,
        offset: 0,
        len: 4096,
        latency: latency_ms.map(Span::from_millis),
    }
}

/// Drives the engine by hand: each request at its time, all deadlines in between.
fn by_hand(layout: &Layout, requests: &[Recorded]) -> TraceHash {
    let host = &layout.hosts[0];
    let mut engine = Engine::new(host.spec.clone()).expect("a sound specification");
    let mut hash = TraceHash::default();
    let mut record = |engine: &mut Engine| {
        while let Some(event) = engine.poll_event() {
            if let Event::Completed(completion) = event {
                hash.record(&completion);
            }
        }
    };
    for request in requests {
        while let Some(due) = engine.poll_deadline().filter(|due| *due <= request.at) {
            engine.handle_timeout(due);
            record(&mut engine);
        }
        let op = match request.kind {
            Kind::Read => Op::Read,
            Kind::Write => Op::Write,
            Kind::WriteThrough => Op::WriteThrough,
            Kind::Discard => Op::Discard,
            Kind::Flush => Op::Flush,
        };
        let device = host.exports[request.device as usize].device;
        let (offset, len) = (request.offset, request.len);
        let request_of = Request { device, op, offset, len, tag: 0 };
        engine.handle_request(request.at, &request_of).expect("in range");
        record(&mut engine);
    }
    while let Some(due) = engine.poll_deadline() {
        engine.handle_timeout(due);
        record(&mut engine);
    }
    hash
}

fn requests() -> impl Strategy<Value = Vec<Recorded>> {
    let kind = proptest::sample::select(&Kind::ALL);
    let gap = prop_oneof![3 => 0_u64..2_000_000, 1 => Just(0), 1 => 0_u64..300_000_000];
    let len = prop_oneof![Just(512_u64), Just(8192), Just(300 << 10)];
    let one = (gap, kind, 0_u32..3, 0_u64..4096, len);
    proptest::collection::vec(one, 1..150).prop_map(|steps| {
        let mut at = Instant::ZERO;
        let mut place = |(gap, kind, device, block, len)| {
            at += Span::from_nanos(gap);
            let (offset, len) = if kind == Kind::Flush { (0, 0) } else { (block * 4096, len) };
            Recorded { at, device, kind, offset, len, latency: None }
        };
        steps.into_iter().map(&mut place).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_replay_is_admitted_as_the_engine_admits_it(
        requests in requests(),
        slice in 1_000_000_u64..50_000_000,
    ) {
        let layout = layout(LAYOUT);
        let names: Vec<&str> = layout.hosts[0].exports.iter().map(|e| e.name.as_str()).collect();
        let expect = by_hand(&layout, &requests);
        let new = || {
            let recordings = vec![recording("t", &names, &requests)];
            ReplaySimulation::new(&layout, recordings, &options(Pace::Recorded)).expect("it fits")
        };
        let mut whole = new();
        prop_assert_eq!(whole.run_until(Instant::FAR).expect("a run"), None);
        prop_assert_eq!(whole.trace(), expect);
        prop_assert_eq!(whole.completed(), requests.len() as u64);
        let mut sliced = new();
        let mut until = Instant::ZERO;
        while let Some(next) = sliced.run_until(until).expect("a run") {
            prop_assert!(next > until);
            until = next + Span::from_nanos(slice);
        }
        prop_assert_eq!(sliced.trace(), expect);
        prop_assert_eq!(sliced.report(1), whole.report(1));
    }
}

#[test]
fn a_factor_changes_the_times_and_nothing_else() {
    let requests: Vec<Recorded> = (0..=10).map(|n| read(n * 1000, None)).collect();
    let twice = report(PLAIN, &requests, &options(Pace::Times(2000)));
    assert_eq!((twice.requests, twice.recorded_s, twice.due_s), (11, 10.0, 5.0));
    assert!((twice.run.elapsed_s - 5.001).abs() < 1e-9, "{}", twice.run.elapsed_s);
    assert!(twice.keeps_up() && twice.pace == "2x");
}

#[test]
fn a_closed_replay_keeps_dependencies_and_drops_idle_time() {
    // The first two overlap. The third came after the first, the fourth after all.
    let requests = [read(0, Some(5)), read(1, Some(50)), read(10, Some(2)), read(900, Some(1))];
    let closed = report(PLAIN, &requests, &options(Pace::Closed { depth: None }));
    // The third is issued after the first at 1 ms, and the fourth after it at 2 ms.
    assert!((closed.run.elapsed_s - 0.003).abs() < 1e-9, "{}", closed.run.elapsed_s);
    let one = report(PLAIN, &requests, &options(Pace::Closed { depth: Some(1) }));
    assert!((one.run.elapsed_s - 0.004).abs() < 1e-9, "{}", one.run.elapsed_s);
    let four = report(PLAIN, &requests, &options(Pace::Closed { depth: Some(4) }));
    assert!((four.run.elapsed_s - 0.001).abs() < 1e-9, "{}", four.run.elapsed_s);
    let closed = options(Pace::Closed { depth: None });
    let error = try_report(PLAIN, &["data"], &[read(0, None)], &closed).expect_err("unknown");
    assert!(error.starts_with("t: request 1 has no recorded latency"), "{error}");
}

#[test]
fn recorded_latencies_stand_beside_those_of_the_replay() {
    let report = report(PLAIN, &[read(0, Some(7)), read(100, None)], &options(Pace::Recorded));
    let [own] = report.recorded.as_slice() else { panic!("{:?}", report.recorded) };
    assert_eq!((own.ios, own.op.as_str()), (1, "read"));
    // Percentiles are accurate to 1 %.
    let is_near = |ns: u64, expect: u64| ns.abs_diff(expect) * 100 <= expect;
    assert!(is_near(own.recorded.p99, 7_000_000) && is_near(own.replayed.p99, 1_000_000));
    assert_eq!(report.run.jobs[0].read.ios, 2);
}

#[test]
fn a_layout_that_is_too_slow_falls_behind() {
    // 1,000 in a second, of 100 each second.
    let slow = PLAIN.replace("unlimited = true", "limits = { iops = 100 }");
    let requests: Vec<Recorded> = (0..1000).map(|n| read(n, None)).collect();
    let report = report(&slow, &requests, &options(Pace::Recorded));
    assert!(!report.keeps_up() && report.run.elapsed_s > 9.0, "{}", report.run.elapsed_s);
    let text = weir_report::Report::render(&report, weir_report::Format::Text);
    assert!(text.starts_with("It falls behind: 1,000 requests arrive in"), "{text}");
    assert!(text.contains("requests wait most for disk_iops"), "{text}");
}

#[test]
fn requests_beyond_the_end_are_refused_or_wrapped() {
    let far = Recorded { offset: (1 << 30) + 8192, ..read(1, None) };
    let requests = [read(0, None), far];
    let error = try_report(PLAIN, &["data"], &requests, &options(Pace::Recorded));
    let error = error.expect_err("beyond the end");
    assert_eq!(
        error,
        "t: request 2, a read of 4096 bytes at offset 1073750016 of data, ends beyond the end of \
         \"data\", which has 1 GiB; map data to a larger volume, or move such requests into it with \
         --wrap"
    );
    let mut wrap = options(Pace::Recorded);
    wrap.replay.wrap = true;
    let report = report(PLAIN, &requests, &wrap);
    assert_eq!(report.requests, 2);
    let notes = report.run.notes.join("\n");
    assert!(notes.contains("data: 1 requests lie beyond the end and were moved"), "{notes}");
    let large = Recorded { len: 2 << 30, ..read(0, None) };
    let error = try_report(PLAIN, &["data"], &[large], &wrap).expect_err("too long");
    assert!(error.contains("it is longer than the volume"), "{error}");
}

#[test]
fn devices_stand_for_volumes() {
    let two = format!("{PLAIN}{}", PLAIN.replace("\"data\"", "\"log\""));
    let mut mapped = options(Pace::Recorded);
    let error = try_report(&two, &["8,0"], &[read(0, None)], &mapped).expect_err("unknown");
    assert!(error.contains("no volume or stripe is called like its device \"8,0\""), "{error}");
    assert!(error.contains("there are: data, log; map it with --map 8,0=NAME"), "{error}");
    mapped.replay.map = vec![("8,0".to_owned(), "log".to_owned())];
    let report = try_report(&two, &["8,0"], &[read(0, None)], &mapped).expect("a run");
    assert_eq!(report.run.jobs[0].name, "8,0 on log");
    mapped.replay.map.push(("sdx".to_owned(), "data".to_owned()));
    let report = try_report(&two, &["8,0"], &[read(0, None)], &mapped).expect("a run");
    let notes = report.run.notes.join("\n");
    assert!(notes.contains("--map sdx=data has no effect"), "{notes}");
    mapped.replay.map[1].1 = "dat".to_owned();
    let error = try_report(&two, &["8,0"], &[read(0, None)], &mapped).expect_err("unknown");
    assert!(
        error.contains("there is no volume or stripe \"dat\"; did you mean \"data\""),
        "{error}"
    );
    // A single device stands for a single volume.
    assert!(try_report(PLAIN, &["8,0"], &[read(0, None)], &options(Pace::Recorded)).is_ok());
}

#[test]
fn several_traces_run_side_by_side() {
    let layout = layout(PLAIN);
    let requests: Vec<Recorded> = (0..10).map(|n| read(n * 10, None)).collect();
    let both = ["a", "b"].map(|name| recording(name, &["data"], &requests));
    let simulation = ReplaySimulation::new(&layout, both.into(), &options(Pace::Recorded));
    let mut simulation = simulation.expect("they fit");
    simulation.run_until(Instant::FAR).expect("a run");
    let report = simulation.report(1);
    let names: Vec<&str> = report.run.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!((names, report.requests), (vec!["a: data", "b: data"], 20));
    assert!((report.run.elapsed_s - 0.091).abs() < 1e-9, "{}", report.run.elapsed_s);
}

#[test]
fn a_replay_that_ends_early_has_no_verdict() {
    let text = "[[volume]]\nname = \"data\"\nsize = \"1 GiB\"\nlatency = \"1ms\"\n\
                limits = { iops = 500 }\n";
    let requests: Vec<Recorded> = (0..4000).map(|n| read(n, None)).collect();
    let layout = layout(text);
    let recordings = vec![recording("t", &["data"], &requests)];
    let simulation = ReplaySimulation::new(&layout, recordings, &options(Pace::Recorded));
    let mut simulation = simulation.expect("it fits");
    let until = Instant::ZERO + Span::from_secs(1);
    assert!(simulation.run_until(until).expect("a run").is_some());
    simulation.end_early().expect("a trace");
    let report = simulation.report(1);
    assert!(!report.is_whole && !report.keeps_up());
    // A request each millisecond, the first at the start.
    assert_eq!(report.requests + report.in_flight + report.unissued, 1001);
    assert!(report.in_flight > 400, "{}", report.in_flight);
}
