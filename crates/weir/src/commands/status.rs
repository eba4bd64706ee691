//! `weir status`, `weir volume`, `weir host`: talk to a running server.

use crate::cli::{ControlArgs, CreateArgs, HostCommand, StatusArgs, VolumeCommand};
use crate::error::CliError;
use crate::output;
use serde_json::Value;
use std::time::Duration;
use weir_layout::Role;
use weir_layout::hot_plug::NewVolume;
use weir_report::number::grouped;
use weir_report::status::{Status, StatusReport};
use weir_report::table::Listing;
use weir_server::control::{Request, ask};
use weir_units::{Bytes, Span};

pub(crate) fn run(args: &StatusArgs) -> Result<u8, CliError> {
    if args.interval > Span::from_secs(3_600) {
        return Err(CliError::Refused(format!(
            "--interval {}: must be at most 1 h",
            args.interval
        )));
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
            let table = reading(control)?.volume_list();
            output::print(&Listing(vec![table]), output.format())?;
        }
        VolumeCommand::Create(args) => create(args)?,
        VolumeCommand::Delete { name, yes, if_unused, control } => {
            if !yes && !if_unused {
                return Err(CliError::Refused(format!(
                    "{name}: its data cannot be recovered; confirm the deletion with --yes, or use --if-unused"
                )));
            }
            let request = Request::Delete { volume: name.clone(), if_unused: *if_unused };
            send(control, &request)?;
            output::talk(&format!("{name} is deleted"));
        }
        VolumeCommand::Resize { name, size, control } => {
            let done = send(control, &Request::Resize { volume: name.clone(), size: *size })?;
            let tier = done["tier"].as_str().map(|tier| format!(", now {tier}"));
            output::talk(&format!("{name} has {size}{}", tier.unwrap_or_default()));
        }
        VolumeCommand::SetTier { name, tier, control } => {
            let request = Request::SetTier { volume: name.clone(), tier: tier.clone() };
            let done = send(control, &request)?;
            let tier = done["tier"].as_str().unwrap_or(tier);
            output::talk(&format!("{name} has the limits of {tier}"));
        }
        VolumeCommand::SetRates { name, iops, throughput, control } => {
            let request =
                Request::SetRates { volume: name.clone(), iops: *iops, throughput: *throughput };
            let done = send(control, &request)?;
            let iops = done["iops"].as_u64().map(|n| format!("{} IOPS", grouped(n)));
            let throughput = done["throughput"].as_str().map(str::to_owned);
            let rates: Vec<String> = iops.into_iter().chain(throughput).collect();
            output::talk(&format!("{name} has {}", rates.join(" and ")));
        }
        VolumeCommand::SetCredits { name, credits, control } => {
            let request = Request::SetCredits { volume: name.clone(), credits: *credits };
            let done = send(control, &request)?;
            let left = |key: &str| done[key].as_u64();
            let operations = left("operations").map(|n| format!("{} operations", grouped(n)));
            let bytes = left("bytes").map(|n| format!("{} MiB", grouped(n >> 20)));
            let left: Vec<String> = operations.into_iter().chain(bytes).collect();
            output::talk(&format!("{name} has {credits} of its credits: {}", left.join(" and ")));
        }
        VolumeCommand::SetCache { name, mode, control } => {
            let mode = mode.name();
            let request = Request::SetCache { volume: name.clone(), mode: mode.to_owned() };
            send(control, &request)?;
            output::talk(&format!("{name} has cache {mode}; it starts cold"));
        }
    }
    Ok(0)
}

fn create(args: &CreateArgs) -> Result<(), CliError> {
    let volume = NewVolume {
        name: args.name.clone(),
        size: args.size,
        tier: args.tier.clone(),
        family: args.family.clone(),
        cache: args.cache.unwrap_or_default(),
        role: args.role.map(Role::from),
        database: args.database.clone(),
        unlimited: args.unlimited,
        iops: args.iops,
        throughput: args.throughput,
        checksums: args.checksums,
        ..NewVolume::default()
    };
    let done = send(&args.control, &Request::Create { host: args.host.clone(), volume })?;
    let size = done["size"].as_str().unwrap_or_default();
    let tier = done["tier"].as_str().map(|tier| format!(", {tier}")).unwrap_or_default();
    output::talk(&format!("{} has {size}{tier}", args.name));
    let uris = done["uris"].as_array().into_iter().flatten();
    uris.filter_map(Value::as_str).for_each(|uri| output::talk(&format!("  {uri}")));
    Ok(())
}

pub(crate) fn host(command: &HostCommand) -> Result<u8, CliError> {
    match command {
        HostCommand::Crash { name, control } => {
            let done = send(control, &Request::Crash { host: name.clone() })?;
            let lost = done["lost_bytes"].as_u64().unwrap_or(0);
            output::talk(&format!("{name} crashed; {} bytes were lost", grouped(lost)));
        }
        HostCommand::SetCredits { name, credits, control } => {
            send(control, &Request::SetHostCredits { host: name.clone(), credits: *credits })?;
            output::talk(&format!("{name} has {credits} of its credits"));
        }
        HostCommand::Warm { export, offset, length, control } => {
            output::talk(&warm(control, export, *offset, *length)?);
        }
    }
    Ok(0)
}

fn send(control: &ControlArgs, request: &Request) -> Result<Value, CliError> {
    Ok(ask(&control.control, request)?)
}

/// Asks a server for its counters.
pub(super) fn reading(control: &ControlArgs) -> Result<Status, CliError> {
    let value = send(control, &Request::Status)?;
    serde_json::from_value(value).map_err(|error| {
        CliError::Refused(format!(
            "the server runs another release of weir: \
                                                    {error}"
        ))
    })
}

/// Warms a range; says what came of it.
fn warm(
    control: &ControlArgs,
    export: &str,
    offset: Bytes,
    length: Bytes,
) -> Result<String, CliError> {
    let before = reading(control)?;
    let (name, offset, len) = (export.to_owned(), offset.get(), length.get());
    let done = send(control, &Request::Warm { export: name, offset, len })?;
    let warmed = done["warmed_bytes"].as_u64().map_or(length, Bytes::new);
    let rest = if warmed < length {
        format!(" (the rest of the {length} does not fit, or is on volumes without a cache)")
    } else {
        String::new()
    };
    let after = reading(control)?;
    // The server has taken the export, so one of its hosts has it.
    let host = after.hosts.iter().find(|host| host.exports.iter().any(|e| e.name == export));
    let host = host.cloned().unwrap_or_default();
    let old = before.hosts.iter().find(|other| other.name == host.name);
    let resident = host.cache_resident_bytes;
    let new = resident.saturating_sub(old.map_or(0, |old| old.cache_resident_bytes));
    let (resident, new) = (Bytes::new(resident), Bytes::new(new));
    Ok(format!(
        "{warmed} of {export} warmed{rest}; the cache of host {} holds {resident}, {new} more than \
         before",
        host.name
    ))
}
