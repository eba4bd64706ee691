//! Measures how many I/Os the simulator does per second of real time, for the article's
//! combined job on the article's machine, on one core:
//!
//! ```text
//! cargo run --release -p weir-sim --example speed [SIMULATED SECONDS]
//! ```

#![expect(clippy::print_stdout, reason = "it is a program that prints a figure")]
#![expect(clippy::disallowed_methods, reason = "it measures real time")]

use std::error::Error;
use std::time::Instant;
use weir_catalog::Catalog;
use weir_layout::Layout;
use weir_sim::{Options, devices, simulate};
use weir_workload::{Isolated, fio, place};

const LAYOUT: &str = include_str!("../../../labs/ds14-benchmark/layout.toml");
const JOB: &str = include_str!("../../../labs/ds14-benchmark/fioreadwrite.ini");

fn main() -> Result<(), Box<dyn Error>> {
    let seconds: u64 = std::env::args().nth(1).map_or(Ok(30), |text| text.parse())?;
    let layout = Layout::parse("layout.toml", LAYOUT, &Catalog::builtin())?;
    let runtime = Some(weir_units::Span::from_secs(seconds));
    let file = fio::parse("fioreadwrite.ini", JOB, &Isolated)?.scale(None, runtime);
    let options = Options { warm: vec!["readcache".to_owned()], ..Options::default() };
    let mut best = f64::MAX;
    let mut ios = 0;
    for _ in 0..5 {
        let placed = place(&file, &devices(&layout), &[])?;
        let start = Instant::now();
        let report = simulate(&layout, placed, &options)?;
        best = best.min(start.elapsed().as_secs_f64());
        ios = report.jobs.iter().map(|job| job.read.ios + job.write.ios).sum::<u64>();
        println!(
            "{ios} I/Os in {:.3} s: {:.2} million a second",
            start.elapsed().as_secs_f64(),
            weir_report::number::float(ios) / start.elapsed().as_secs_f64() / 1e6
        );
    }
    println!("best: {:.2} million a second", weir_report::number::float(ios) / best / 1e6);
    Ok(())
}
