//! Observations as tables: one file, or one for each server and day.

use crate::cli::ObserveExportArgs;
use crate::commands::observe::Source;
use crate::commands::plan;
use crate::commands::whole_file::{self, CleanUp};
use crate::error::CliError;
use crate::output;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use weir_fleet::partition::{day, day_folder, server_folder};
use weir_fleet::table::{Described, Table};
use weir_parquet::TableError;
use weir_units::Instant;

pub(super) fn run(args: &ObserveExportArgs) -> Result<u8, CliError> {
    let root = &args.parquet;
    let ends_as_folder = root.as_os_str().as_encoded_bytes().ends_with(b"/");
    match &args.files[..] {
        [one] if !root.is_dir() && !ends_as_folder => {
            for (is_given, option) in
                [(args.server.is_some(), "--server"), (args.replace, "--replace")]
            {
                if is_given {
                    let words = format!("{option}: is for folders; write --parquet DIR/");
                    return Err(CliError::Refused(words));
                }
            }
            file(one, root)
        }
        _ if root.exists() && !root.is_dir() => Err(CliError::Refused(format!(
            "--parquet {}: is a file, and the observations need a folder; give another name",
            root.display()
        ))),
        _ => {
            let clean_up = CleanUp::at_end()?;
            folder(args, root, &clean_up).inspect_err(|_| clean_up.run())
        }
    }
}

/// Reads everything of an observation but its samples.
fn described(source: &Source) -> Result<Described, CliError> {
    let (header, _) = source.survey()?;
    let (notes, ending) = source.ending()?;
    Ok(Described::new(header, notes, &ending))
}

fn file(own: &Path, out: &Path) -> Result<u8, CliError> {
    if plan::is_same(own, out) {
        let words = format!("--parquet {}: is the observation; use another name", out.display());
        return Err(CliError::Refused(words));
    }
    plan::can_write("--parquet", out)?;
    let source = Source::observation(own)?;
    let described = described(&source)?;
    let written = |source| CliError::write(out, source);
    let failed = |source| CliError::Parquet { path: out.to_owned(), source };
    let clean_up = CleanUp::at_end()?;
    let part = whole_file::part_of(out).map_err(written)?;
    clean_up.add(part.path());
    let clone = part.as_file().try_clone().map_err(written)?;
    let mut table = Table::new(clone, &described).map_err(failed)?;
    let mut result = Ok(());
    source.each(|at, row| {
        if result.is_ok() {
            result = table.sample(at, row);
        }
    })?;
    result.and_then(|()| table.finish().map(drop)).map_err(failed)?;
    whole_file::keep(part, out).map_err(written)?;
    described.notes.iter().for_each(|note| output::talk(&format!("note: {}", note.text)));
    Ok(0)
}

fn folder(args: &ObserveExportArgs, root: &Path, clean_up: &CleanUp) -> Result<u8, CliError> {
    let servers = servers(args)?;
    // All days of all servers, before anything is written.
    for (server, own) in &servers {
        let folder = root.join(server_folder(server));
        for day in days(own)? {
            check_day(&folder.join(day_folder(&day)), args.replace)?;
        }
    }
    for (server, own) in &servers {
        let source = Source::observation(own)?;
        let described = described(&source)?;
        let folder = root.join(server_folder(server));
        let mut days =
            Days { folder, clean_up, described: &described, open: None, complete: Vec::new() };
        let mut result = Ok(());
        source.each(|at, row| {
            if result.is_ok() {
                result = days.sample(at, row);
            }
        })?;
        result.and_then(|()| days.finish())?;
        let named = |note: &weir_observe::Note| format!("note: {server}: {}", note.text);
        described.notes.iter().for_each(|note| output::talk(&named(note)));
    }
    Ok(0)
}

/// Returns the observations with the names of their servers, which differ.
fn servers(args: &ObserveExportArgs) -> Result<BTreeMap<String, &Path>, CliError> {
    if args.server.is_some() && args.files.len() > 1 {
        let words = "--server: names the server of one observation, and there are several; export \
                     them one at a time";
        return Err(CliError::Refused(words.to_owned()));
    }
    let mut servers: BTreeMap<String, &Path> = BTreeMap::new();
    for own in &args.files {
        let stem = || own.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = args.server.clone().or_else(stem).unwrap_or_default();
        if let Some(other) = servers.insert(name.clone(), own) {
            return Err(CliError::Refused(format!(
                "{} and {} are both of the server {name:?}; export them one at a time, each with \
                 --server",
                other.display(),
                own.display()
            )));
        }
    }
    Ok(servers)
}

/// The days of a server. All get their names when all are complete.
struct Days<'a> {
    folder: PathBuf,
    clean_up: &'a CleanUp,
    described: &'a Described,
    open: Option<Day>,
    complete: Vec<(NamedTempFile, PathBuf)>,
}

struct Day {
    name: String,
    path: PathBuf,
    part: NamedTempFile,
    table: Table<File>,
}

impl Days<'_> {
    fn sample(&mut self, at: Instant, row: &[Option<i64>]) -> Result<(), CliError> {
        let name = day_of(self.described.header.start_unix_ns, at);
        if self.open.as_ref().is_none_or(|own| own.name != name) {
            self.close()?;
            self.open = Some(self.begin(name)?);
        }
        let Some(own) = &mut self.open else { return Ok(()) };
        own.table.sample(at, row).map_err(failed(&own.path))
    }

    fn begin(&self, name: String) -> Result<Day, CliError> {
        let folder = self.folder.join(day_folder(&name));
        let path = folder.join(PART);
        let written = |source| CliError::write(&path, source);
        let new: Vec<&Path> = folder.ancestors().take_while(|own| !own.exists()).collect();
        for own in new.into_iter().rev().filter(|own| !own.as_os_str().is_empty()) {
            match fs::create_dir(own) {
                Ok(()) => self.clean_up.add(own),
                // Another export made it.
                Err(_) if own.is_dir() => {}
                Err(source) => return Err(CliError::write(&path, source)),
            }
        }
        let part = whole_file::part_in(&folder).map_err(written)?;
        self.clean_up.add(part.path());
        let clone = part.as_file().try_clone().map_err(written)?;
        let table = Table::new(clone, self.described).map_err(failed(&path))?;
        Ok(Day { name, path, part, table })
    }

    fn close(&mut self) -> Result<(), CliError> {
        let Some(own) = self.open.take() else { return Ok(()) };
        own.table.finish().map_err(failed(&own.path))?;
        self.complete.push((own.part, own.path));
        Ok(())
    }

    fn finish(mut self) -> Result<(), CliError> {
        self.close()?;
        for (part, path) in std::mem::take(&mut self.complete) {
            whole_file::keep(part, &path).map_err(|source| CliError::write(&path, source))?;
        }
        Ok(())
    }
}

/// The name of a day's table.
const PART: &str = "part.parquet";

/// Returns the day of a sample.
fn day_of(start_unix_ns: Option<i64>, at: Instant) -> String {
    let offset = i64::try_from(at.nanos()).ok();
    day(start_unix_ns.zip(offset).and_then(|(start, offset)| start.checked_add(offset)))
}

/// Returns the days of an observation.
fn days(own: &Path) -> Result<BTreeSet<String>, CliError> {
    let source = Source::observation(own)?;
    let (header, _) = source.survey()?;
    let (mut days, mut last) = (BTreeSet::new(), String::new());
    source.times(|at| {
        let name = day_of(header.start_unix_ns, at);
        if name != last {
            days.insert(name.clone());
            last = name;
        }
    })?;
    if days.is_empty() {
        let words = format!("{}: has no samples, and so no day to export", own.display());
        return Err(CliError::Refused(words));
    }
    Ok(days)
}

/// Refuses a day that has tables, unless the export replaces all of them.
fn check_day(folder: &Path, replace: bool) -> Result<(), CliError> {
    let mut tables = tables_in(folder)?;
    let is_there = !tables.is_empty();
    tables.retain(|own| own != PART);
    match (is_there, replace) {
        (true, false) => Err(CliError::Refused(format!(
            "{}: the folder has this day already; give another --server, or --replace",
            folder.display()
        ))),
        (true, true) if !tables.is_empty() => Err(CliError::Refused(format!(
            "{}: the folder has other tables of this day, which --replace leaves ({}); remove them",
            folder.display(),
            tables.join(", ")
        ))),
        _ => Ok(()),
    }
}

/// Returns the names of the tables in a folder; none if there is no such folder.
fn tables_in(folder: &Path) -> Result<Vec<String>, CliError> {
    let unread = |source| CliError::Read { path: folder.to_owned(), source };
    let mut names = Vec::new();
    if !folder.is_dir() {
        return Ok(names);
    }
    for entry in fs::read_dir(folder).map_err(unread)? {
        let name = entry.map_err(unread)?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".parquet") && !name.starts_with(['.', '_']) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn failed(path: &Path) -> impl FnOnce(TableError) -> CliError {
    let path = path.to_owned();
    move |source| CliError::Parquet { path, source }
}
