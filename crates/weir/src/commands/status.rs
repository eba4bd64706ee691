//! `weir status`, `weir volume`, `weir host`: talk to a running server.

use crate::cli::{ControlArgs, HostCommand, StatusArgs, VolumeCommand};
use crate::error::CliError;
use crate::output;
use serde_json::Value;
use std::time::Duration;
use weir_report::cells;
use weir_report::number::{float, grouped, rate};
use weir_report::status::{Status, StatusReport};
use weir_report::table::{Cell, Listing, Table};
use weir_server::control::{Request, ask};
use weir_units::Span;

pub(crate) fn run(args: &StatusArgs) -> Result<u8, CliError> {
    if args.interval > Span::from_secs(3_600) {
        return Err(CliError::Refused(format!("--interval {}: 1 h is the most", args.interval)));
    }
    let before = reading(&args.control)?;
    #[expect(clippy::disallowed_methods, reason = "rates are measured over this time")]
    std::thread::sleep(Duration::from_nanos(args.interval.nanos()));
    let report = StatusReport::between(&before, reading(&args.control)?);
    output::print(&report, args.output.format())?;
    Ok(0)
}

pub(crate) fn volume(command: &VolumeCommand) -> Result<u8, CliError> {
    match command {
        VolumeCommand::List { control, output } => {
            let table = list(&reading(control)?);
            output::print(&Listing(vec![table]), output.format())?;
        }
        VolumeCommand::Resize { name, size, control } => {
            let done = send(control, &Request::Resize { volume: name.clone(), size: *size })?;
            let tier = done["tier"].as_str().map(|tier| format!(", now {tier}"));
            output::talk(&format!("{name} has {size}{}", tier.unwrap_or_default()));
        }
        VolumeCommand::SetCache { name, mode, control } => {
            let request = Request::SetCache { volume: name.clone(), mode: mode.clone() };
            send(control, &request)?;
            output::talk(&format!("{name} has cache {mode}; it starts cold"));
        }
    }
    Ok(0)
}

pub(crate) fn host(command: &HostCommand) -> Result<u8, CliError> {
    match command {
        HostCommand::Crash { name, control } => {
            let done = send(control, &Request::Crash { host: name.clone() })?;
            let lost = done["lost_bytes"].as_u64().unwrap_or(0);
            output::talk(&format!("{name} crashed; {} bytes were lost", grouped(lost)));
        }
        HostCommand::Warm { export, offset, length, control } => {
            let (export, offset, len) = (export.clone(), offset.get(), length.get());
            send(control, &Request::Warm { export, offset, len })?;
        }
    }
    Ok(0)
}

fn send(control: &ControlArgs, request: &Request) -> Result<Value, CliError> {
    ask(&control.path(), request)?.map_err(CliError::Refused)
}

fn reading(control: &ControlArgs) -> Result<Status, CliError> {
    let value = send(control, &Request::Status)?;
    serde_json::from_value(value)
        .map_err(|error| CliError::Refused(format!("the server is of another release: {error}")))
}

fn list(status: &Status) -> Table {
    let heads = ["volume", "host", "tier", ">size GiB", ">IOPS", ">MiB/s", "cache"];
    let mut table = Table::new("", &heads);
    for host in &status.hosts {
        for v in &host.volumes {
            let mib = |bytes: u64| rate(float(bytes) / f64::from(1 << 20));
            table.row(cells![
                v.name.clone(),
                host.name.clone(),
                v.tier.clone().unwrap_or_else(|| "-".to_owned()),
                rate(float(v.size_bytes) / f64::from(1 << 30)),
                v.limit_iops.map_or_else(Cell::none, grouped),
                v.limit_bytes_per_s.map_or_else(Cell::none, mib),
                v.cache.clone(),
            ]);
        }
    }
    table
}
