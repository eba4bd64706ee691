//! Runs fio job files on exports, here or with `--with-fio`:
//!
//! ```text
//! cargo run --release -p weir-runner --example drive -- [--with-fio] JOB.fio... URI...
//! ```
//!
//! A job's `directory` or `filename` is the export of that name. The last line has the runner's own
//! CPU time.

#![expect(clippy::print_stdout, reason = "a program's output")]

use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::path::Path;
use weir_client::Connection;
use weir_proto::Uri;
use weir_report::{Format, Report};
use weir_runner::{RunOptions, run, run_with_fio};
use weir_workload::{Device, Isolated, JobFile, fio, place};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut jobs, mut uris, mut with_fio) = (JobFile::default(), Vec::new(), false);
    for argument in std::env::args().skip(1) {
        if argument == "--with-fio" {
            with_fio = true;
        } else if argument.contains("://") {
            uris.push(argument.parse::<Uri>()?);
        } else {
            let text = std::fs::read_to_string(&argument)?;
            jobs = jobs.then(fio::parse(&argument, &text, &Isolated)?);
        }
    }
    let mut devices = Vec::new();
    for uri in &uris {
        let connection = Connection::open(uri)?;
        devices.push(Device { name: uri.export.clone(), size: connection.size() });
        connection.close()?;
    }
    let placed = place(&jobs, &devices, &[])?;
    let options = RunOptions { uris: &uris, seed: 1, ..RunOptions::default() };
    let report = match with_fio {
        true => run_with_fio(placed, &options, Path::new("fio"))?,
        false => run(placed, &options)?,
    };
    print!("{}", report.render(Format::Text));
    let used = clock_gettime(ClockId::ProcessCPUTime);
    println!(
        "{:.0} IOPS; {}.{:02} s of CPU here",
        report.iops(),
        used.tv_sec,
        used.tv_nsec / 10_000_000
    );
    Ok(())
}
