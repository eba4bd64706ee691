//! `weir observe import` and `weir observe kinds`.

use crate::cli::{ClockArgs, ImportArgs, ObserveImportArgs, OutputArgs};
use crate::error::CliError;
use crate::output;
use crate::signals;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek};
use std::path::{Path, PathBuf};
use weir_import::{FileCounts, Input, Kind, Options, Summary, TimeUnit, decompressed, import};
use weir_observe::moment::{Clock, Order, offset_of};
use weir_report::cells;
use weir_report::table::{Listing, Table};

pub(super) fn run(args: &ObserveImportArgs) -> Result<u8, CliError> {
    if let Some(path) = &args.parquet {
        check_out(&args.out, std::slice::from_ref(path))?;
        return super::tables::import(path, &args.out);
    }
    let options = options_of(&args.import)?;
    check_out(&args.out, &args.files)?;
    let inputs = inputs_of(&args.files, &args.import)?;
    // A temporary file in the same folder, so that an existing file stays until the import is complete.
    let mut part = args.out.clone().into_os_string();
    part.push(".part");
    let part = PathBuf::from(part);
    let write = |source| CliError::write(&args.out, source);
    let half = part.clone();
    signals::clean_at_end(move || {
        // The import can be complete by now, under its final name.
        let _ = fs::remove_file(&half);
    })?;
    let file = File::create(&part).map_err(write)?;
    let imported = import(inputs, &options, BufWriter::new(file));
    let done = imported.map_err(|(name, source)| CliError::Import { name, source });
    let kept = done.and_then(|(out, summary)| {
        let file = out.into_inner().map_err(|error| write(error.into_error()))?;
        file.sync_all().and_then(|()| fs::rename(&part, &args.out)).map_err(write)?;
        Ok(summary)
    });
    let summary = kept.inspect_err(|_| {
        // Removes the incomplete file.
        let _ = fs::remove_file(&part);
    })?;
    talk_of(&summary);
    output::print_text(&format!(
        "{}: samples: {}, entities: {}, series: {}\n",
        args.out.display(),
        summary.samples,
        summary.entities,
        summary.series
    ))?;
    Ok(0)
}

/// Checks that an observation can be written there. Only an observation that is not also an input
/// is replaced.
fn check_out(out: &Path, files: &[PathBuf]) -> Result<(), CliError> {
    let refused = |why: &str| {
        let words = format!("--out {}: {why}; give the name of a file", out.display());
        Err(CliError::Refused(words))
    };
    if out.as_os_str() == "-" {
        return refused("an observation cannot be written to standard output");
    }
    let Ok(there) = fs::symlink_metadata(out) else { return Ok(()) };
    let is_one = |file: &PathBuf| fs::canonicalize(file).ok() == fs::canonicalize(out).ok();
    match () {
        () if there.is_symlink() => refused("it is a link, which would be replaced"),
        () if !there.is_file() => refused("it exists and is not a file"),
        () if files.iter().any(is_one) => refused("it is one of the files to read"),
        () if there.permissions().readonly() => refused("it exists and is read-only"),
        () => Ok(()),
    }
}

/// Reports the imported data and the notes.
pub(super) fn talk_of(summary: &Summary) {
    for (name, kind, samples) in &summary.inputs {
        output::talk(&format!("{name}: {kind}, samples: {samples}"));
    }
    summary.notes.iter().for_each(|note| output::talk(note));
}

/// Imports the inputs into one temporary observation.
pub(super) fn imported(files: &[PathBuf], args: &ImportArgs) -> Result<(File, Summary), CliError> {
    let options = options_of(args)?;
    let inputs = inputs_of(files, args)?;
    let failed = |source| CliError::System { context: "storing the imported data", source };
    let file = tempfile::tempfile().map_err(failed)?;
    let imported = import(inputs, &options, BufWriter::new(file));
    let (out, summary) = imported.map_err(|(name, source)| CliError::Import { name, source })?;
    let mut file = out.into_inner().map_err(|error| failed(error.into_error()))?;
    file.rewind().map_err(failed)?;
    Ok((file, summary))
}

pub(super) fn kinds(args: &OutputArgs) -> Result<u8, CliError> {
    let mut table = Table::new("", &["kind", "input"]);
    for kind in weir_import::kinds() {
        table.row(cells![kind.name, kind.about]);
    }
    output::print(&Listing(vec![table]), args.format())?;
    Ok(0)
}

/// Parses `--utc-offset` into seconds.
pub(super) fn offset(text: Option<&String>) -> Result<Option<i64>, CliError> {
    let read = |text: &String| {
        offset_of(text).ok_or_else(|| {
            CliError::Refused(format!(
                "--utc-offset {text}: it is not a UTC offset; give one such as +01:00 or Z"
            ))
        })
    };
    text.map(read).transpose()
}

pub(super) fn clock_of(args: &ClockArgs) -> Result<Clock, CliError> {
    let order = if args.day_first { Order::Day } else { Order::Month };
    Ok(Clock { order, offset: offset(args.utc_offset.as_ref())?.unwrap_or(0) })
}

pub(crate) fn options_of(args: &ImportArgs) -> Result<Options, CliError> {
    let clock = clock_of(&args.clock)?;
    let start = args.start.as_deref().map(|text| {
        let wrong = || {
            format!("--start {text}: it is not a time; give one such as \"2026-11-22 14:00:00\"")
        };
        clock.moment(text).ok_or_else(|| CliError::Refused(wrong()))
    });
    let by = concat!("weir ", env!("CARGO_PKG_VERSION")).to_owned();
    let time_unit = args.time_unit.as_deref().and_then(TimeUnit::named);
    let file_counts = args.file_counts.as_deref().and_then(FileCounts::named);
    let (every, start) = (args.every, start.transpose()?);
    Ok(Options { clock, every, start, by, time_unit, file_counts, ..Options::default() })
}

/// Opens the files, with the kind that was given or detected.
pub(super) fn inputs_of(files: &[PathBuf], args: &ImportArgs) -> Result<Vec<Input>, CliError> {
    let kind = kind_of(args)?;
    files.iter().map(|path| open(path, kind)).collect()
}

/// Returns the kind that was given.
pub(crate) fn kind_of(args: &ImportArgs) -> Result<Option<Kind>, CliError> {
    args.kind.as_deref().map(kind_named).transpose()
}

fn kind_named(name: &str) -> Result<Kind, CliError> {
    weir_import::kind_named(name).ok_or_else(|| {
        let names: Vec<_> = weir_import::kinds().map(|kind| kind.name).collect();
        CliError::Refused(format!("--as {name}: unknown kind; the kinds are {}", names.join(", ")))
    })
}

fn open(path: &Path, kind: Option<Kind>) -> Result<Input, CliError> {
    let failed = |source| CliError::Read { path: path.to_owned(), source };
    let bytes = if path.as_os_str() == "-" {
        decompressed(io::stdin())
    } else {
        File::open(path).and_then(decompressed)
    };
    Ok(Input { name: path.display().to_string(), bytes: bytes.map_err(failed)?, kind })
}
