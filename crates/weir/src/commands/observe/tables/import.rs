//! An observation from its tables.

use crate::commands::whole_file::{self, CleanUp};
use crate::error::CliError;
use crate::output;
use std::fs;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use weir_fleet::table::Tables;
use weir_observe::{Ending, Note, WriteError, Writer};
use weir_units::Instant;

pub(super) fn run(path: &Path, out: &Path) -> Result<u8, CliError> {
    let tables = Tables::open(files(path)?)?;
    let failed = |source: WriteError| CliError::Observe { path: out.to_owned(), source };
    let written = |source| CliError::write(out, source);
    let clean_up = CleanUp::at_end()?;
    let part = whole_file::part_of(out).map_err(written)?;
    clean_up.add(part.path());
    let described = tables.described();
    let header = &described.header;
    let mut writer = Writer::new(BufWriter::new(part.as_file()), header).map_err(failed)?;
    for note in &described.notes {
        writer.note(note).map_err(failed)?;
    }
    let (mut samples, mut row, mut count) = (tables.samples(), Vec::new(), 0_u64);
    let mut last = Instant::ZERO;
    while let Some(chunk) = samples.next_chunk()? {
        for (sample, at) in chunk.times.iter().enumerate() {
            chunk.row(sample, &mut row);
            writer.sample(*at, &row).map_err(failed)?;
            count += 1;
            last = *at;
        }
    }
    let ending = &described.ending;
    // A file with an end mark is complete or interrupted. A note keeps anything else.
    if !matches!(ending, Ending::Complete | Ending::Interrupted) {
        let text = format!("the observation before its export: {ending}");
        writer.note(&Note { at_ns: last.nanos(), text }).map_err(failed)?;
    }
    let out_of = writer.finish(*ending == Ending::Complete).map_err(failed)?;
    out_of.into_inner().map_err(|error| written(error.into_error()))?;
    whole_file::keep(part, out).map_err(written)?;
    if *ending != Ending::Complete {
        output::talk(&format!("weir: {}: {ending}", path.display()));
    }
    output::print_text(&format!(
        "{}: samples: {count}, entities: {}, series: {}\n",
        out.display(),
        header.contents.entities.len(),
        header.contents.series.len()
    ))?;
    Ok(0)
}

/// Returns the files of a server or a day, in the order of the days.
fn files(path: &Path) -> Result<Vec<PathBuf>, CliError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let (mut files, folders) = entries(path)?;
    let is_of = |folder: &PathBuf, key: &str| {
        folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(key))
    };
    let servers = folders.iter().filter(|own| is_of(own, "server=")).count();
    for folder in &folders {
        if is_of(folder, "day=") || (servers == 1 && is_of(folder, "server=")) {
            files.extend(self::files(folder)?);
        }
    }
    let refused = |reason: String| Err(CliError::Refused(format!("{}: {reason}", path.display())));
    match (servers, files.is_empty()) {
        (2.., _) => refused(format!(
            "there are {servers} servers, and an observation is of one; give the folder of one"
        )),
        (_, true) => refused("there are no tables (day=*/*.parquet)".to_owned()),
        _ => Ok(files),
    }
}

/// Returns the tables and the folders in a folder, by name.
fn entries(path: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), CliError> {
    let unread = |source| CliError::Read { path: path.to_owned(), source };
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(path).map_err(unread)? {
        let own = entry.map_err(unread)?.path();
        match () {
            () if own.is_dir() => folders.push(own),
            () if own.extension().is_some_and(|end| end == "parquet") => files.push(own),
            () => {}
        }
    }
    files.sort();
    folders.sort();
    Ok((files, folders))
}
