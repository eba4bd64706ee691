//! `weir backup internals`: what SQL Server logs of a backup under trace flags 3004, 3014, 3213 and
//! 3605.

use crate::cli::BackupInternalsArgs;
use crate::error::CliError;
use crate::input::{edition_of, read, read_layout};
use crate::output;
use std::collections::BTreeSet;
use weir_catalog::Catalog;
use weir_layout::files::Place;
use weir_layout::{Layout, Role};
use weir_pipeline::buffers::{LARGEST_TRANSFER, MAX_TRANSFER, MIN_TRANSFER};
use weir_pipeline::internals::{memory_limit, old_buffer_count};
use weir_pipeline::{Buffers, Description, Internals, PlaceAbout};
use weir_plan::backup::ground::DefaultSources;
use weir_report::backup_internals::BackupInternalsReport;
use weir_units::Bytes;

pub(super) fn run(args: &BackupInternalsArgs, catalog: &Catalog) -> Result<u8, CliError> {
    let layout = read_layout(&args.layout, catalog)?;
    let mut notes = Vec::new();
    let (buffers, is_stated, data) = match &args.backup {
        Some(path) => {
            let text = read(path, "description of a backup")?;
            let description = Description::parse(&path.display().to_string(), &text)?;
            described(&layout, &description, args)?
        }
        None => from_options(&layout, args, &mut notes)?,
    };
    let (limit, source) = limit(&layout, args, catalog)?;
    if limit.is_some_and(|limit| buffers.total() > limit) {
        notes.push(format!(
            "the buffers take {}, more than the memory limit: SQL Server may fail with error 3013 or \
             701; lower BUFFERCOUNT or MAXTRANSFERSIZE",
            buffers.total()
        ));
    }
    notes.push(format!("memory limit: {source}"));
    let own = Internals {
        buffers,
        is_stated,
        memory_limit: limit,
        data: Some(data),
        has_checksum: args.checksum,
        is_encrypted: args.encrypt,
    };
    let report = BackupInternalsReport {
        readers: buffers.readers,
        stripes: buffers.devices,
        buffer_count: buffers.count,
        buffer_sets: buffers.sets,
        max_transfer_bytes: buffers.max_transfer.get(),
        buffer_bytes: buffers.total().get(),
        media_buffers: own.media_buffers(),
        encode_buffers: own.encode_buffers(),
        memory_limit_bytes: limit.map(Bytes::get),
        memory_limit_source: source,
        estimated_bytes: own.estimate().map(Bytes::get),
        log: own.to_string().lines().map(str::to_owned).collect(),
        notes,
    };
    output::print(&report, args.output.format())?;
    Ok(0)
}

/// Buffers, whether their number is stated, and the bytes of the sources.
type Found = (Buffers, bool, Bytes);

/// Returns the buffers of a description.
fn described(
    layout: &Layout,
    description: &Description,
    args: &BackupInternalsArgs,
) -> Result<Found, CliError> {
    let places = layout.places();
    let about = |place: &'_ Place| (place.size, place.used);
    let about: Vec<PlaceAbout<'_>> = places
        .iter()
        .map(|place| {
            let (size, used) = about(place);
            PlaceAbout { name: &place.name, size, used }
        })
        .collect();
    let plan = description.plan(&about)?;
    let own = plan.buffers;
    let counts = (own.readers, own.devices);
    let default = Buffers::new(counts, own.sets > 1, own.max_transfer, None).count;
    let old = args.sql_server_2005.then(|| old_buffer_count(own.readers, own.devices));
    let buffers = Buffers { count: old.unwrap_or(own.count), ..own };
    Ok((buffers, own.count != default, Bytes::new(plan.bytes())))
}

/// Returns the buffers of a backup that the options describe.
fn from_options(
    layout: &Layout,
    args: &BackupInternalsArgs,
    notes: &mut Vec<String>,
) -> Result<Found, CliError> {
    let places = layout.places();
    let usual = DefaultSources::new(layout, &[Role::Data]);
    if args.sources.is_empty() {
        notes.push(usual.note());
    }
    let sources = sources(&places, args, &usual)?;
    let devices: BTreeSet<(usize, usize)> =
        sources.iter().map(|place| (place.host, place.device.0)).collect();
    let found = u32::try_from(devices.len()).unwrap_or(u32::MAX);
    let (readers, stripes) = (args.readers.unwrap_or(found), args.stripes.unwrap_or(1));
    let transfer = args.max_transfer_size.unwrap_or(MAX_TRANSFER);
    let is_whole = transfer.get().is_multiple_of(MIN_TRANSFER.get());
    if !is_whole || transfer < MIN_TRANSFER || transfer > LARGEST_TRANSFER {
        return Err(CliError::Refused(format!(
            "--max-transfer-size {transfer}: give a multiple of {MIN_TRANSFER} up to {LARGEST_TRANSFER}"
        )));
    }
    let old = args.sql_server_2005.then(|| old_buffer_count(readers, stripes));
    let count = args.buffer_count.or(old);
    let buffers = Buffers::new((readers, stripes), args.compress, transfer, count);
    let bytes = sources.iter().map(|place| place.used.unwrap_or(place.size).get());
    let bytes = Bytes::new(bytes.fold(0, u64::saturating_add));
    Ok((buffers, args.buffer_count.is_some(), args.size.unwrap_or(bytes)))
}

/// Returns the places that are read.
fn sources<'p>(
    places: &'p [Place],
    args: &BackupInternalsArgs,
    usual: &DefaultSources,
) -> Result<Vec<&'p Place>, CliError> {
    if args.sources.is_empty() {
        return Ok(places.iter().filter(|place| usual.names.contains(&place.name)).collect());
    }
    let find = |name: &String| {
        places.iter().find(|place| place.name == *name).ok_or_else(|| {
            let known: Vec<&str> = places.iter().map(|place| place.name.as_str()).collect();
            CliError::Refused(format!(
                "--sources {name}: {} has no such file, volume or stripe; there are: {}",
                args.layout.display(),
                known.join(", ")
            ))
        })
    };
    args.sources.iter().map(find).collect()
}

/// Returns the memory limit, and where it is from.
fn limit(
    layout: &Layout,
    args: &BackupInternalsArgs,
    catalog: &Catalog,
) -> Result<(Option<Bytes>, String), CliError> {
    if let Some(limit) = args.memory_limit {
        return Ok((Some(limit), "as stated".to_owned()));
    }
    let edition = edition_of(layout, catalog)?;
    let size = match &layout.hosts[..] {
        [host] => host.qualified_size().and_then(|name| edition?.host(&name).ok()),
        _ => None,
    };
    Ok(match size.and_then(|size| Some((size, size.memory?))) {
        Some((size, memory)) => (
            Some(memory_limit(memory)),
            format!("1/128 of the {memory} of {}, as article 004 shows", size.name),
        ),
        None => (
            None,
            "unknown, like the memory of the machine; state it with --memory-limit".to_owned(),
        ),
    })
}
