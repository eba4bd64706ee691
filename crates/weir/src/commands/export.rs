//! `weir export`: a layout as a script that builds it.

use super::whole_file;
use crate::cli::ExportArgs;
use crate::error::CliError;
use crate::input::{read, read_layout};
use crate::output;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use weir_catalog::Catalog;
use weir_export::{Backup, Source, export};
use weir_layout::Layout;
use weir_pipeline::{Buffers, Description, PlaceAbout};
use weir_units::Bytes;

pub(crate) fn run(args: &ExportArgs, catalog: &Catalog) -> Result<u8, CliError> {
    if let Some(out) = &args.out {
        let inputs: Vec<&PathBuf> = std::iter::once(&args.layout).chain(&args.from).collect();
        check_out(out, &inputs, args.backup.as_ref())?;
    }
    let layout = read_layout(&args.layout, catalog)?;
    let from = args.from.as_ref().map(|path| read_layout(path, catalog)).transpose()?;
    check_service(&args.layout, &layout, catalog)?;
    let (name, from_name) = (name_of(&args.layout), args.from.as_deref().map(name_of));
    let source = |name, layout| Source { name, layout };
    let from = from_name
        .as_deref()
        .zip(from.as_ref())
        .map(|(name, own): (&str, &Layout)| source(name, own));
    let mut options = args.options().map_err(CliError::Refused)?;
    options.backup = args.backup.as_deref().map(|path| backup(path, &layout)).transpose()?;
    let script = export(args.kind.kind(), source(&name, &layout), from, &options)?;
    script.notes.iter().for_each(|note| output::talk(&format!("note: {note}")));
    match &args.out {
        None => output::print_text(&script.text)?,
        Some(out) => {
            let written = whole_file::write(out, script.text.as_bytes());
            written.map_err(|source| CliError::write(out, source))?;
        }
    }
    Ok(0)
}

/// Reads the description of a backup and places it on the layout.
fn backup(path: &Path, layout: &Layout) -> Result<Backup, CliError> {
    let text = read(path, "description of a backup")?;
    let description = Description::parse(&path.display().to_string(), &text)?;
    let places = layout.places();
    let about =
        places.iter().map(|own| PlaceAbout { name: &own.name, size: own.size, used: own.used });
    let plan = description.plan(&about.collect::<Vec<_>>())?;
    let name = |at: u32| places.get(at as usize).map(|own| own.name.clone());
    let mut sources: Vec<String> = plan.sources.iter().filter_map(|own| name(own.place)).collect();
    sources.dedup();
    let own = plan.buffers;
    let is_compressed = own.sets > 1;
    let usual = Buffers::new((own.readers, own.devices), is_compressed, own.max_transfer, None);
    let bytes = u128::from(plan.bytes()) * u128::from(plan.compressed_per_mille.min(1000)) / 1000;
    Ok(Backup {
        file: name_of(path),
        sources,
        stripes: plan.stripes.iter().filter_map(|own| name(own.0)).collect(),
        max_transfer: own.max_transfer,
        buffer_count: (own.count != usual.count).then_some(own.count),
        is_compressed,
        encoders: if is_compressed { plan.encoders } else { 0 },
        bytes: Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX)),
    })
}

/// Rejects servers of a managed service, which no script can create.
fn check_service(path: &Path, layout: &Layout, catalog: &Catalog) -> Result<(), CliError> {
    let edition = layout.edition.as_deref().and_then(|name| catalog.edition(name).ok());
    let service = layout.hosts.iter().find_map(|host| {
        let edition = edition?;
        let size = edition.host(&host.qualified_size()?).ok()?;
        edition.series_of(size)?.service.clone()
    });
    match service {
        None => Ok(()),
        Some(service) => Err(CliError::Refused(format!(
            "{}: its server belongs to {service}, which creates it; scripts exist for virtual \
             machines and managed instances",
            path.display()
        ))),
    }
}

/// Returns the file name, because a script does not mention the folder of its layout.
fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Checks that a script may be written to a path.
fn check_out(out: &Path, inputs: &[&PathBuf], backup: Option<&PathBuf>) -> Result<(), CliError> {
    let refused = |why: &str| {
        let words = format!("--out {}: {why}; give the name of a file", out.display());
        Err(CliError::Refused(words))
    };
    if out.as_os_str() == OsStr::new("-") {
        return refused("without --out, the script goes to standard output");
    }
    let Ok(there) = fs::symlink_metadata(out) else { return Ok(()) };
    let is_one = |file: &PathBuf| fs::canonicalize(file).ok() == fs::canonicalize(out).ok();
    match () {
        () if there.is_symlink() => refused("it is a link, which would be replaced"),
        () if !there.is_file() => refused("it exists and is not a file"),
        () if inputs.iter().any(|own| is_one(own)) => refused("it is an input layout"),
        () if backup.is_some_and(is_one) => refused("it is the input backup"),
        () => Ok(()),
    }
}
