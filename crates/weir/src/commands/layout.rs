//! `weir layout`.

use super::layout_files;
use crate::cli::LayoutCommand;
use crate::error::CliError;
use crate::input::{read_layout, say_notes};
use crate::output;
use weir_catalog::Catalog;
use weir_core::{GateLimits, Limit, Reserve};
use weir_layout::Layout;
use weir_report::cells;
use weir_report::number::{float, gib, grouped, mib};
use weir_report::table::{Cell, Listing, Table};
use weir_units::Span;

pub(crate) fn run(command: &LayoutCommand, catalog: &Catalog) -> Result<u8, CliError> {
    match command {
        LayoutCommand::Check { layout, output } => {
            let layout = read_layout(layout, catalog)?;
            say_notes(&layout);
            let edition = layout.edition.as_deref().map(|name| catalog.edition(name));
            let mut tables = tables(&layout);
            tables.extend(layout_files::tables(&layout, edition.transpose()?));
            output::print(&Listing(tables), output.format())?;
        }
        LayoutCommand::Schema => {
            output::print_text(&format!("{:#}\n", weir_layout::file::schema()))?;
        }
    }
    Ok(0)
}

/// Headings of [`limits`].
const LIMITS: [&str; 9] = [
    ">IOPS|iops",
    ">MiB/s|throughput_bytes_per_s",
    ">burst IOPS / MiB/s|",
    "|burst_kind",
    "|burst_iops",
    "|burst_throughput_bytes_per_s",
    "|burst_duration_s",
    "|reserve_s",
    "|reserve_refill_s",
];

/// Formats the sustained and the burst rates, in text as one cell, and the reserve.
fn limits(gate: &GateLimits) -> [Cell; 9] {
    let operations = |n: Option<u64>| n.map_or_else(Cell::none, grouped);
    let bytes = |n: Option<u64>| n.map_or_else(Cell::none, |n| mib(float(n)));
    let rate = |limit: Option<Limit>| limit.map(|l| l.rate.get());
    let burst = |limit: Option<Limit>| limit.and_then(|l| l.burst);
    let peak = |limit: Option<Limit>| burst(limit).map(|(peak, _)| peak.get());
    let [burst_iops, burst_bytes] = [operations(peak(gate.iops)), bytes(peak(gate.bytes))];
    let bursting = gate.iops.filter(|l| l.burst.is_some()).or(gate.bytes);
    let (kind, duration, shown) = match bursting.and_then(|l| l.burst.map(|burst| (l, burst.1))) {
        None => (Cell::none(), Cell::none(), Cell::none()),
        Some((limit, duration)) => {
            let (kind, duration) = match limit.is_on_demand() {
                true => ("on-demand", Cell::none()),
                false => ("credit", seconds(duration)),
            };
            (kind.into(), duration, format!("{burst_iops} / {burst_bytes}").into())
        }
    };
    let reserve = reserve(gate);
    [
        operations(rate(gate.iops)),
        bytes(rate(gate.bytes)),
        shown,
        kind,
        burst_iops,
        burst_bytes,
        duration,
        reserve.map_or_else(Cell::none, |own| seconds(own.holds)),
        reserve.map_or_else(Cell::none, |own| seconds(own.refill)),
    ]
}

fn seconds(span: Span) -> Cell {
    Cell::number(span.to_string(), float(span.nanos()) / 1e9)
}

fn reserve(gate: &GateLimits) -> Option<Reserve> {
    gate.iops.or(gate.bytes)?.reserve
}

fn or_none(name: Option<&str>) -> Cell {
    name.map_or_else(Cell::none, Cell::from)
}

fn tables(layout: &Layout) -> Vec<Table> {
    let heads = [&["host", "size", "side"][..], &LIMITS].concat();
    let mut hosts = Table::new("", &heads).named("hosts");
    let heads = [&["volume", "host", "tier", ">size GiB|size_bytes"][..], &LIMITS, &["cache"]];
    let mut volumes = Table::new("", &heads.concat()).named("volumes");
    let heads =
        ["export", "|host", ">size GiB|size_bytes", ">columns", "unit|unit_bytes", "clients"];
    let mut exports = Table::new("", &heads).named("exports");
    for host in &layout.hosts {
        let log = GateLimits { iops: None, bytes: host.spec.log_rate };
        let writes = host.spec.uncached_writes.as_ref().map(|own| ("uncached writes", own));
        let uncached = if writes.is_some() { "uncached reads" } else { "uncached" };
        let sides = [(uncached, &host.spec.uncached), ("cached", &host.spec.cached)];
        for (side, gate) in sides.into_iter().chain(writes).chain(log.bytes.map(|_| ("log", &log)))
        {
            let mut row = cells![host.name.as_str(), or_none(host.size.as_deref()), side];
            row.extend(limits(gate));
            hosts.row(row);
        }
        // The volumes of an instance are its files, which have their own table.
        if host.instance.is_some() {
            continue;
        }
        for volume in &host.volumes {
            let tier = or_none(volume.tier.as_deref());
            let mut row = cells![volume.name.as_str(), host.name.as_str(), tier];
            row.push(gib(volume.spec.size.get()));
            row.extend(limits(&volume.spec.limits.gate));
            row.push(volume.spec.cache.name().into());
            volumes.row(row);
        }
        for export in &host.exports {
            let unit = export.unit;
            exports.row(cells![
                export.name.as_str(),
                host.name.as_str(),
                gib(export.size.get()),
                grouped(export.volumes.len() as u64),
                unit.map_or_else(Cell::none, |u| Cell::number(u.to_string(), float(u.get()))),
                layout.access.of_export(&export.name).map_or("all".to_owned(), ToString::to_string),
            ]);
        }
    }
    let specs = || layout.hosts.iter().map(|host| &host.spec);
    let disks = specs().flat_map(|spec| &spec.volumes).map(|own| &own.limits.gate);
    let mut gates = disks.chain(specs().map(|spec| &spec.uncached));
    if let Some(Reserve { holds, refill }) = gates.find_map(reserve) {
        volumes.notes.push(format!(
            "limits have a reserve: they admit {holds} of their rate at once, and {refill} without load refill it; \
             limits of your own have none"
        ));
    }
    vec![hosts, volumes, exports]
}
