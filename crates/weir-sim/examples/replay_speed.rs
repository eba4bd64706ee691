//! Times the replay of a trace file:
//! `cargo run --release -p weir-sim --example replay_speed -- [MILLIONS] [LAYOUT]`. The trace has
//! as many requests, is written to a temporary file first, and is deleted at the end.

#![expect(clippy::print_stdout, reason = "an example that prints what it measures")]

use std::fs::File;
use std::io::{BufReader, BufWriter};
use weir_catalog::Catalog;
use weir_layout::Layout;
use weir_report::number::float;
use weir_sim::{ReplaySimOptions, ReplaySimulation};
use weir_trace::{Header, Kind, Reader, Request, Writer};
use weir_units::{Instant, Span};
use weir_workload::replay::Recording;

/// A disk with limits, as most layouts have it.
const LAYOUT: &str = "edition = \"azure-now\"\n[[volume]]\nname = \"data\"\ntier = \"P40\"\n";

/// Requests per second in the trace, below the limit of the disk.
const RATE: u64 = 5_000;

/// Writes pages at random, a third of them writes, at irregular times with latencies.
fn write(path: &std::path::Path, count: u64) -> u64 {
    let file = BufWriter::new(File::create(path).expect("a temporary file"));
    let mut writer = Writer::new(file, &Header::default()).expect("a header");
    writer.device("data").expect("one device");
    let mut state = 1_u64;
    let mut noise = move |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut at = Instant::ZERO;
    for _ in 0..count {
        at += Span::from_nanos(noise(2_000_000_000 / RATE));
        let kind = if noise(3) == 0 { Kind::Write } else { Kind::Read };
        let (offset, latency) = (noise(200 << 17) * 8192, Some(Span::from_nanos(noise(4_000_000))));
        let request = Request { at, device: 0, kind, offset, len: 8192, latency };
        writer.request(&request).expect("a request");
    }
    let bytes = writer.bytes();
    writer.finish(0).expect("the end");
    bytes
}

fn main() {
    let mut args = std::env::args().skip(1);
    let millions: u64 = args.next().map_or(10, |text| text.parse().expect("millions"));
    let text = args.next().map(|path| std::fs::read_to_string(path).expect("a layout"));
    let text = text.unwrap_or_else(|| LAYOUT.to_owned());
    let layout = Layout::parse("layout.toml", &text, &Catalog::builtin());
    let layout = layout.unwrap_or_else(|error| panic!("{error}"));
    let count = millions * 1_000_000;
    let path = std::env::temp_dir().join(format!("replay-speed-{}", std::process::id()));
    let clock = stopwatch();
    write(&path, count);
    let written = clock();
    let open =
        || Reader::open(BufReader::new(File::open(&path).expect("a file"))).expect("a trace");
    let mut reader = open();
    while reader.next_request().expect("sound").is_some() {}
    let read = clock();
    let recording = Recording { name: "t".to_owned(), trace: Box::new(open()) };
    let options = ReplaySimOptions::default();
    let simulation = ReplaySimulation::new(&layout, vec![recording], &options);
    let mut simulation = simulation.unwrap_or_else(|error| panic!("{error}"));
    simulation.run_until(Instant::FAR).unwrap_or_else(|error| panic!("{error}"));
    let replayed = clock();
    let bytes = std::fs::metadata(&path).expect("a file").len();
    let _ = std::fs::remove_file(&path);
    let per_s = |from: f64, to: f64| float(count) / (to - from) / 1e6;
    println!("{millions} million requests, {:.2} bytes each", float(bytes) / float(count));
    println!("written: {:.2} million per second", per_s(0.0, written));
    println!("read: {:.2} million per second", per_s(written, read));
    println!("replayed: {:.2} million per second", per_s(read, replayed));
    let report = simulation.report(1);
    println!("keeps up: {}, {:.3} s simulated", report.keeps_up(), report.run.elapsed_s);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    println!("peak memory {}", peak.trim_start_matches("VmHWM:").trim());
}

/// Returns a function that returns the seconds since this call.
#[expect(clippy::disallowed_methods, reason = "a measurement")]
fn stopwatch() -> impl Fn() -> f64 {
    let start = std::time::Instant::now();
    move || start.elapsed().as_secs_f64()
}
