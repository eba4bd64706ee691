//! Measures the simulation of an hour of a database of 8 vCores with about 7,000 batch
//! requests a second, on one core, and how it scales with the number of data files:
//!
//! ```text
//! cargo run --release -p weir-sim --example oltp_speed [SIMULATED SECONDS] [DATA FILES...]
//! ```

#![expect(clippy::print_stdout, reason = "it is a program that prints a figure")]
#![expect(clippy::disallowed_methods, reason = "it measures real time")]

use std::error::Error;
use std::fmt::Write;
use std::time::Instant;
use weir_catalog::Catalog;
use weir_layout::Layout;
use weir_oltp::Description;
use weir_report::number::rate;
use weir_sim::{OltpOptions, OltpSimulation};
use weir_units::Span;

/// The last layout of the lab `mi-file-size`: its users and checkpoints.
const OLTP: &str = "users = 100\nthink_time = \"3500us\"\nvcores = 8\nsize = \"90 GiB\"\n\
    working_set = \"52 MiB\"\nbuffer_pool = \"40 GiB\"\nlog = \"log\"\n\
    [log_writer]\nwrites = 8\n[checkpoint]\ntarget_recovery = \"550ms\"\nwrites = 220\n\
    latency = \"250ms\"\ncoalesce = \"8 KiB\"\n\
    [[transaction]]\nname = \"batch\"\nshare = 1\nreads = 6\nwrites = 6.7\nlog = \"2 KiB\"\n\
    cpu = \"525us\"\n";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let seconds = arguments.next().unwrap_or(Ok(3600))?;
    let counts = arguments.collect::<Result<Vec<u64>, _>>()?;
    for files in if counts.is_empty() { vec![3] } else { counts } {
        measure(seconds, files)?;
    }
    Ok(())
}

fn measure(seconds: u64, files: u64) -> Result<(), Box<dyn Error>> {
    let mut layout = "edition = \"azure-mi-2018\"\nhost = { unlimited = true }\n".to_owned();
    let mut names = Vec::new();
    for n in 0..=files {
        let name = if n == files { "log".to_owned() } else { format!("data-{n}") };
        writeln!(layout, "[[volume]]\nname = {name:?}\ntier = \"mi-2020/P40\"")?;
        names.push(name);
    }
    names.pop();
    let layout = Layout::parse("layout.toml", &layout, &Catalog::builtin())?;
    let oltp = OLTP.replacen("log =", &format!("data = {names:?}\nlog ="), 1);
    let mut description = Description::parse("oltp.toml", &oltp)?;
    description.duration = Span::from_secs(seconds);
    let mut simulation = OltpSimulation::new(&layout, &[description], &OltpOptions::default())?;
    let start = Instant::now();
    simulation.run_until(weir_units::Instant::FAR);
    let took = start.elapsed().as_secs_f64();
    let report = simulation.report();
    let database = &report.databases[0];
    println!(
        "{files} data files, {seconds} s simulated in {took:.2} s: {} batch requests/s, {} I/Os, \
         top wait {}",
        rate(database.load.batches_per_s),
        simulation.completed(),
        database.waits.first().map_or("none", |wait| &wait.wait),
    );
    Ok(())
}
