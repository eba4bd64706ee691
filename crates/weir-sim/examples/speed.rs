//! Measures how many I/Os the simulator does per second of real time, for the article's
//! combined job on the article's machine, on one core:
//!
//! ```text
//! cargo run --release -p weir-sim --example speed [SIMULATED SECONDS]
//! ```
//!
//! It fails if the simulator is slow beside a reference loop in the same run. Both are compared in processor
//! time, since other programs on the machine take the processor away from either.

#![expect(clippy::print_stdout, reason = "it is a program that prints a figure")]
#![expect(clippy::disallowed_methods, reason = "it measures real time")]

use rustix::time::{ClockId, clock_gettime};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};
use weir_catalog::Catalog;
use weir_layout::Layout;
use weir_report::number::float;
use weir_sim::{Options, devices, simulate};
use weir_workload::{Isolated, fio, place};

const LAYOUT: &str = include_str!("../../../labs/ds14-benchmark/layout.toml");
const JOB: &str = include_str!("../../../labs/ds14-benchmark/fioreadwrite.ini");

/// Requests in flight of the reference loop, about as many as the job has.
const IN_FLIGHT: u64 = 256;

/// Events of the reference loop in each measurement.
const EVENTS: u64 = 5_000_000;

/// The least I/Os of the simulator for each event of the reference loop.
const LEAST: f64 = 0.05;

/// Returns the events per second of processor time of the least that a simulation does: a heap has the
/// deadlines of the requests in flight, and the earliest is replaced by a random later one.
fn reference() -> f64 {
    let mut heap: BinaryHeap<_> =
        (0..IN_FLIGHT).map(|request| Reverse((request, request))).collect();
    let (start, mut random) = (processor_time(), 1_u64);
    for _ in 0..EVENTS {
        let Some(mut first) = heap.peek_mut() else { break };
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        first.0.0 += 1 + (random >> 44);
    }
    black_box(&heap);
    float(EVENTS) / (processor_time() - start).as_secs_f64()
}

/// Returns the processor time of this thread.
fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

fn main() -> Result<(), Box<dyn Error>> {
    let seconds: u64 = std::env::args().nth(1).map_or(Ok(30), |text| text.parse())?;
    let layout = Layout::parse("layout.toml", LAYOUT, &Catalog::builtin())?;
    let runtime = Some(weir_units::Span::from_secs(seconds));
    let file = fio::parse("fioreadwrite.ini", JOB, &Isolated)?.scale(None, runtime);
    let options = Options { warm: vec!["readcache".to_owned()], ..Options::default() };
    let (mut best, mut used) = (f64::MAX, f64::MAX);
    let mut events = 0.0_f64;
    let mut ios = 0;
    for _ in 0..5 {
        events = events.max(reference());
        let placed = place(&file, &devices(&layout), &[])?;
        let (start, processor) = (Instant::now(), processor_time());
        let report = simulate(&layout, placed, &options)?;
        let took = start.elapsed().as_secs_f64();
        best = best.min(took);
        used = used.min((processor_time() - processor).as_secs_f64());
        ios = report.jobs.iter().map(|job| job.read.ios + job.write.ios).sum::<u64>();
        println!("{ios} I/Os in {took:.3} s: {:.2} million a second", float(ios) / took / 1e6);
    }
    println!("best: {:.2} million a second", float(ios) / best / 1e6);
    let part = float(ios) / used / events;
    println!("reference: {:.1} million events a second; I/Os for each: {part:.3}", events / 1e6);
    if part < LEAST {
        return Err(
            format!("{part:.3} I/Os for each event of the reference; at least {LEAST}").into()
        );
    }
    Ok(())
}
