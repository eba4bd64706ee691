//! `weir layout`.

use super::{read_layout, say_notes};
use crate::cli::LayoutCommand;
use crate::error::CliError;
use crate::output;
use weir_catalog::Catalog;
use weir_core::{CacheMode, GateLimits, Limit};
use weir_layout::Layout;
use weir_report::cells;
use weir_report::number::{float, grouped, rate};
use weir_report::table::{Cell, Listing, Table};

pub(crate) fn run(command: &LayoutCommand, catalog: &Catalog) -> Result<u8, CliError> {
    match command {
        LayoutCommand::Check { layout, output } => {
            let layout = read_layout(layout, catalog)?;
            say_notes(&layout);
            output::print(&Listing(tables(&layout)), output.format())?;
        }
        LayoutCommand::Schema => {
            output::print_text(&format!("{:#}\n", weir_layout::file::schema()))?;
        }
    }
    Ok(0)
}

fn iops(limit: Option<Limit>) -> Cell {
    limit.map_or_else(Cell::none, |limit| grouped(limit.rate.get()))
}

fn mib(limit: Option<Limit>) -> Cell {
    let mib = |limit: Limit| rate(float(limit.rate.get()) / f64::from(1 << 20));
    limit.map_or_else(Cell::none, mib)
}

/// The rate while credits last, of operations and MiB.
fn burst(gate: &GateLimits) -> String {
    let peak = |limit: Option<Limit>| limit.and_then(|l| l.burst).map(|(peak, _)| peak.get());
    match (peak(gate.iops), peak(gate.bytes)) {
        (None, None) => "-".to_owned(),
        (operations, bytes) => format!(
            "{} / {}",
            operations.map_or_else(Cell::none, grouped),
            bytes.map_or_else(Cell::none, |b| rate(float(b) / f64::from(1 << 20)))
        ),
    }
}

fn tables(layout: &Layout) -> Vec<Table> {
    let heads = ["host", "size", "side", ">IOPS", ">MiB/s", ">burst IOPS / MiB/s"];
    let mut hosts = Table::new("", &heads);
    let heads =
        ["volume", "host", "tier", ">size GiB", ">IOPS", ">MiB/s", ">burst IOPS / MiB/s", "cache"];
    let mut volumes = Table::new("", &heads);
    let mut exports = Table::new("", &["export", ">size GiB", ">columns", "unit"]);
    let gib = |bytes: u64| rate(float(bytes) / f64::from(1 << 30));
    for host in &layout.hosts {
        for (side, gate) in [("uncached", &host.spec.uncached), ("cached", &host.spec.cached)] {
            let size = host.size.clone().unwrap_or_else(|| "-".to_owned());
            let cells = [iops(gate.iops), mib(gate.bytes), burst(gate).into()];
            let mut row = cells![host.name.clone(), size, side];
            row.extend(cells);
            hosts.row(row);
        }
        for volume in &host.volumes {
            let gate = &volume.spec.limits.gate;
            volumes.row(cells![
                volume.name.clone(),
                host.name.clone(),
                volume.tier.clone().unwrap_or_else(|| "-".to_owned()),
                gib(volume.spec.size.get()),
                iops(gate.iops),
                mib(gate.bytes),
                burst(gate),
                match volume.spec.cache {
                    CacheMode::None => "none",
                    CacheMode::ReadOnly => "read-only",
                    CacheMode::ReadWrite => "read-write",
                }
                .to_owned(),
            ]);
        }
        for export in &host.exports {
            exports.row(cells![
                export.name.clone(),
                gib(export.size.get()),
                export.volumes.len().to_string(),
                export.unit.map_or_else(Cell::none, |unit| unit.to_string().into()),
            ]);
        }
    }
    vec![hosts, volumes, exports]
}
