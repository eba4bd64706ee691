//! Measures the cost of one I/O in the generator: `poll_issue` and `handle_completion` together, in
//! nanoseconds. Run it with `--release`.

use std::collections::VecDeque;
use std::error::Error;
use weir_units::{Bytes, Instant};
use weir_workload::{Isolated, Placed, Region, Workload, fio};

const IOS: u64 = 20_000_000;

const CASES: &[(&str, &str)] = &[
    ("8 processes, 4k random", "rw=randread\nbs=4k\nnumjobs=8"),
    ("8 processes, 4k random, norandommap", "rw=randread\nbs=4k\nnumjobs=8\nnorandommap"),
    ("8 processes, 4k mixed 70/30", "rw=randrw\nrwmixread=70\nbs=4k\nnumjobs=8"),
    ("8 processes, 64k sequential", "rw=read\nbs=64k\nnumjobs=8"),
    ("8 processes, 4k and 64k random", "rw=randread\nbssplit=4k/60:64k/40\nnumjobs=8"),
    ("8 processes, 8k random, paced", "rw=randread\nbs=8k\nnumjobs=8\nrate_iops=100000"),
    ("8 processes, 8k zipf:1.1", "rw=randread\nbs=8k\nnumjobs=8\nrandom_distribution=zipf:1.1"),
    ("1000 processes, 8k random", "rw=randread\nbs=8k\nnumjobs=1000"),
];

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn main() -> Result<(), Box<dyn Error>> {
    for (name, options) in CASES {
        println!("{name:40} {:6.1} ns", nanos_per_io(options)?);
    }
    Ok(())
}

fn nanos_per_io(options: &str) -> Result<f64, Box<dyn Error>> {
    let text = format!(
        "[job]\nioengine=libaio\niodepth=32\nsize=30g\ntime_based\nruntime=30d\n{options}\n"
    );
    let file = fio::parse("case", &text, &Isolated)?;
    let spec = &file.jobs[0];
    let region = Region { device: 0, base: Bytes::ZERO, len: Bytes::gib(30) };
    let placed =
        (0..spec.clones).map(|clone| Placed { spec: spec.clone(), clone, regions: vec![region] });
    let mut workload = Workload::new(placed.collect(), 1)?;
    let mut in_flight: VecDeque<u32> = VecDeque::with_capacity(32_000);
    let (mut now, mut sum) = (Instant::ZERO, 0_u64);
    #[expect(clippy::disallowed_methods, reason = "a benchmark reads a clock")]
    let start = std::time::Instant::now();
    for _ in 0..IOS {
        let issue = loop {
            if let Some(issue) = workload.poll_issue(now) {
                break issue;
            }
            match in_flight.pop_front() {
                Some(process) => workload.handle_completion(now, process),
                None => now = workload.poll_deadline().ok_or("nothing left to do")?,
            }
        };
        in_flight.push_back(issue.process);
        sum = sum.wrapping_add(issue.offset);
    }
    std::hint::black_box(sum);
    #[expect(clippy::cast_precision_loss, reason = "printed with one decimal")]
    Ok(start.elapsed().as_nanos() as f64 / IOS as f64)
}
