//! `weir observe snapshot` and `weir observe snapshots`: baselines, stored as small observations in
//! a folder.

use super::source::{Source, offset_in};
use crate::cli::{ObserveSnapshotArgs, OutputArgs};
use crate::commands::whole_file;
use crate::error::CliError;
use crate::output;
use crate::signals;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind};
use std::path::{Path, PathBuf};
use weir_observe::snapshot::Newest;
use weir_observe::{Counting, EntityId, EntityKind, Header, Observation};
use weir_report::cells;
use weir_report::number::grouped;
use weir_report::table::{Cell, Listing, Table};

/// File extension of a snapshot.
const END: &str = ".weirobs";
/// Maximum length of a name.
const MOST: usize = 100;

pub(super) fn run(args: &ObserveSnapshotArgs) -> Result<u8, CliError> {
    let path = path_of(&args.dir, &args.name).map_err(CliError::Refused)?;
    if !args.replace && path.exists() {
        return Err(is_there(&args.name, &args.dir));
    }
    let write = |source| CliError::write(&path, source);
    for file in args.files.iter().filter(|file| file.as_os_str() != "-") {
        fs::metadata(file).map_err(|source| CliError::Read { path: file.clone(), source })?;
    }
    fs::create_dir_all(&args.dir).map_err(write)?;
    // A temporary file in the same folder, so that the old snapshot stays until the new one is complete.
    let part = whole_file::part_in(&args.dir).map_err(write)?;
    let half = part.path().to_owned();
    signals::clean_at_end(move || {
        // The snapshot can be complete by now, under its final name.
        let _ = fs::remove_file(&half);
    })?;
    let source = Source::any(&args.files, &args.import)?;
    let mut snapshot = newest(&source)?;
    if let Some(reason) = without_counters(&snapshot) {
        let name = args.files.first().map(|file| file.display().to_string()).unwrap_or_default();
        return Err(CliError::Refused(format!("{name}: {reason}")));
    }
    date(&mut snapshot, &args.files);
    snapshot.header.source.about.insert("snapshot".to_owned(), args.name.clone());
    let observe = |source| CliError::Observe { path: path.clone(), source };
    let out = snapshot.write(BufWriter::new(part)).map_err(observe)?;
    let part = out.into_inner().map_err(|error| write(error.into_error()))?;
    part.as_file().sync_all().map_err(write)?;
    let kept = if args.replace { part.persist(&path) } else { part.persist_noclobber(&path) };
    kept.map_err(|failed| match failed.error.kind() {
        ErrorKind::AlreadyExists => is_there(&args.name, &args.dir),
        _ => write(failed.error),
    })?;
    File::open(&args.dir).and_then(|dir| dir.sync_all()).map_err(write)?;
    let [files, volumes, waits, _] = counts(&snapshot.header);
    output::print_text(&format!(
        "{}: taken {}, files: {files}, volumes: {volumes}, waits: {waits}\n",
        path.display(),
        taken(&snapshot.header, &snapshot).unwrap_or_else(|| "at an unknown time".to_owned()),
    ))?;
    Ok(0)
}

/// Reads the newest sample of each entity in a source.
fn newest(source: &Source) -> Result<Observation, CliError> {
    let (header, _) = source.survey()?;
    let mut newest = Newest::new(&header);
    source.each(|at, row| newest.sample(at, row))?;
    Ok(newest.into_observation())
}

/// Returns the path of a snapshot, or the reason why the name is not valid.
pub(super) fn path_of(dir: &Path, name: &str) -> Result<PathBuf, String> {
    let is_fine = !name.is_empty() && name.len() <= MOST && !name.starts_with('.');
    if !is_fine || name.contains(|c: char| c.is_control() || matches!(c, '/' | '\\' | '@' | ':')) {
        return Err(format!(
            "{name:?} is not a name for a snapshot: use 1 to {MOST} bytes that do not begin with a dot \
             and contain none of / \\ @ :"
        ));
    }
    Ok(dir.join(format!("{name}{END}")))
}

fn is_there(name: &str, dir: &Path) -> CliError {
    CliError::Refused(format!(
        "--name {name}: a snapshot of this name exists in {}; choose another name, or add --replace",
        dir.display()
    ))
}

/// Explains why the input cannot serve as a baseline.
fn without_counters(snapshot: &Observation) -> Option<String> {
    let series = snapshot.contents().series.iter().zip(&snapshot.columns);
    let mut known = series.filter(|(_, column)| column.iter().any(|value| value.is_some()));
    let is_any = known.clone().next().is_some();
    let counts = known.any(|(own, _)| own.counting == Counting::Cumulative);
    match (counts, is_any) {
        (true, _) => None,
        (_, true) => Some(
            "it has rates and no counters, and the rates of one sample say nothing about the time \
             after it; import all of it with weir observe import, and give weir observe between \
             two times of the result"
                .to_owned(),
        ),
        _ => Some("it contains nothing that a snapshot can store".to_owned()),
    }
}

/// Returns whether an input shows the present: a pipe, or a file in /proc or /sys.
fn is_live(file: &Path) -> bool {
    let is_file = file.as_os_str() != "-" && fs::metadata(file).is_ok_and(|own| own.is_file());
    !is_file || file.starts_with("/proc") || file.starts_with("/sys")
}

/// Dates a snapshot of present counters that has no time of its own.
fn date(snapshot: &mut Observation, files: &[PathBuf]) {
    if snapshot.header.start_unix_ns.is_some() {
        return;
    }
    let paths: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    let names = paths.join(", ");
    if !files.iter().all(|file| is_live(file)) {
        output::talk(&format!(
            "{names}: it does not state its time, so later rates will be unknown; state it with \
             --start, or with --apart of weir observe between"
        ));
        return;
    }
    let last = snapshot.times.last().map_or(0, |at| at.nanos());
    let start = weir_wall::calendar().saturating_sub(last);
    snapshot.header.start_unix_ns = i64::try_from(start).ok();
    output::talk(&format!("{names}: it does not state its time: the current time is used"));
}

/// Returns the time at which a snapshot was taken.
pub(super) fn taken(header: &Header, snapshot: &Observation) -> Option<String> {
    let last = snapshot.times.last()?;
    let start = header.start_unix_ns?;
    let offset = offset_in(header).unwrap_or(0);
    Some(weir_observe::when::written(start.saturating_add_unsigned(last.nanos()), offset))
}

/// Counts the entities by kind.
fn counts(header: &Header) -> [u64; 4] {
    let contents = &header.contents;
    let mut counts = [0; 4];
    for (own, id) in contents.entities.iter().zip(0..) {
        let place = match own.kind {
            EntityKind::File => 0,
            EntityKind::Volume => 1,
            EntityKind::Wait => 2,
            _ => 3,
        };
        let is_counted = contents.series.iter().any(|series| series.entity == EntityId(id));
        counts[place] += u64::from(is_counted);
    }
    counts
}

/// Lists the snapshots in a folder; a missing folder has none.
pub(super) fn names(dir: &Path) -> Result<Vec<String>, CliError> {
    let read = |source| CliError::Read { path: dir.to_owned(), source };
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(read)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let file = entry.map_err(read)?.file_name();
        let name = file.to_str().and_then(|file| file.strip_suffix(END));
        names.extend(name.filter(|name| path_of(dir, name).is_ok()).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

/// Returns the time of the newest sample, if it is known.
fn newest_unix_ns(own: &Observation) -> Option<i64> {
    let last = own.times.last()?;
    Some(own.header.start_unix_ns?.saturating_add_unsigned(last.nanos()))
}

pub(super) fn list(dir: &Path, args: &OutputArgs) -> Result<u8, CliError> {
    let heads = ["name", "taken", "source", ">files", ">volumes", ">waits", ">others", "what"];
    let mut table = Table::new("", &heads);
    let mut rows = Vec::new();
    for name in names(dir)? {
        let path = dir.join(format!("{name}{END}"));
        // An unreadable snapshot must not hide the others.
        let read = File::open(&path)
            .map_err(|source| CliError::Read { path: path.clone(), source })
            .and_then(|file| {
                let failed = |source| CliError::Observation { path: path.clone(), source };
                Observation::read(io::BufReader::new(file)).map_err(failed)
            });
        match read {
            Ok(own) => rows.push((name, own)),
            Err(error) => output::talk(&format!("weir: {}", error.with_causes())),
        }
    }
    rows.sort_by_key(|(_, own)| (newest_unix_ns(own).is_none(), newest_unix_ns(own)));
    for (name, own) in rows {
        let [files, volumes, waits, others] = counts(&own.header);
        let about = &own.header.source.about;
        let what = about.get("inputs").cloned().map_or_else(Cell::none, Cell::from);
        table.row(cells![
            name,
            taken(&own.header, &own).map_or_else(Cell::none, Cell::from),
            about.get("kinds").map_or(own.header.source.kind.name(), String::as_str),
            grouped(files),
            grouped(volumes),
            grouped(waits),
            grouped(others),
            what,
        ]);
    }
    if table.rows.is_empty() {
        table.notes.push(format!(
            "there are no snapshots in {}; weir observe snapshot --name NAME FILE makes one",
            dir.display()
        ));
    }
    output::print(&Listing(vec![table]), args.format())?;
    Ok(0)
}
