//! Measures the simulation of a backup of 4 TiB in transfers of 1 MiB, which lasts about an
//! hour of simulated time, on one core, without and with compression:
//!
//! ```text
//! cargo run --release -p weir-sim --example backup_speed [GIB]
//! ```

#![expect(clippy::print_stdout, reason = "it is a program that prints a figure")]
#![expect(clippy::disallowed_methods, reason = "it measures real time")]

use std::error::Error;
use std::time::Instant;
use weir_catalog::Catalog;
use weir_layout::Layout;
use weir_pipeline::Description;
use weir_sim::{OltpOptions, OltpSimulation};

/// One volume that is read and one that is written; striped volumes, whose transfers have a part on
/// each disk; and these stripes on a machine whose limits they share.
const LAYOUTS: [(&str, &str); 3] = [
    (
        "single volumes",
        "edition = \"azure-premium-2015\"\nhost = { unlimited = true }\n\
         [[volume]]\nname = \"data\"\nsize = \"8 TiB\"\nlatency = \"2 ms\"\n\
         limits = { iops = 50000, throughput = \"1200 MiB/s\" }\n\
         [[volume]]\nname = \"target\"\nsize = \"8 TiB\"\nlatency = \"2 ms\"\n\
         limits = { iops = 50000, throughput = \"1200 MiB/s\" }\n",
    ),
    (
        "stripes of 10 and 6 disks",
        "edition = \"azure-premium-2015\"\nhost = { unlimited = true }\n\
         [[stripe]]\nname = \"data\"\nunit = \"64 KiB\"\nvolumes = { count = 10, tier = \"P30\" }\n\
         [[stripe]]\nname = \"target\"\nunit = \"64 KiB\"\nvolumes = { count = 6, tier = \"P30\" }\n",
    ),
    (
        "stripes of 10 and 6 disks on a DS14",
        "edition = \"azure-premium-2015\"\nhost = { size = \"DS14\" }\n\
         [[stripe]]\nname = \"data\"\nunit = \"64 KiB\"\nvolumes = { count = 10, tier = \"P30\" }\n\
         [[stripe]]\nname = \"target\"\nunit = \"64 KiB\"\nvolumes = { count = 6, tier = \"P30\" }\n",
    ),
];

fn main() -> Result<(), Box<dyn Error>> {
    let gib = std::env::args().nth(1).map_or(Ok(4096), |text| text.parse::<u64>())?;
    let only = std::env::args().nth(2);
    for (name, layout) in LAYOUTS
        .into_iter()
        .filter(|(name, _)| only.as_ref().is_none_or(|only| name.ends_with(only.as_str())))
    {
        let layout = Layout::parse("layout.toml", layout, &Catalog::builtin())?;
        for compression in ["", "compression = { ratio = 0.4, rate = \"400 MiB\", threads = 4 }\n"]
        {
            let backup = format!(
                "[backup]\nsources = [\"data\"]\nto = [\"target\"]\nstripes = 8\n\
                 size = \"{gib} GiB\"\n{compression}"
            );
            let backups = [Description::parse("backup.toml", &backup)?];
            let options = OltpOptions { backups: &backups, ..OltpOptions::default() };
            let mut simulation = OltpSimulation::new(&layout, &[], &options)?;
            let start = Instant::now();
            simulation.run_until(weir_units::Instant::FAR);
            let took = start.elapsed().as_secs_f64();
            let report = simulation.report();
            let backup = &report.backups[0];
            println!(
                "{name}{}: {gib} GiB in {:.0} s of simulated time, {} I/Os, simulated in {took:.2} s",
                if compression.is_empty() { "" } else { ", compressed" },
                backup.elapsed_s,
                simulation.completed(),
            );
        }
    }
    Ok(())
}
