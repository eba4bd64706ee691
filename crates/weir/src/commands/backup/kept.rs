//! What the verbs that read backups share: places, a backup's line, and progress.

use super::exports::{Exports, open_places};
use super::volumes::{is_layout, without_layouts};
use crate::cli::{ChosenArgs, KeyArgs, PlaceArgs};
use crate::error::CliError;
use crate::signals::Signals;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;
use weir_backup::damage::Damage;
use weir_backup::format::BackupId;
use weir_backup::key::{Keys, Secret};
use weir_backup::library::{Entry, State};
use weir_backup::target::spec::shown;
use weir_backup::{Assembly, BackupError, Cancel, Library, Watch};
use weir_catalog::Catalog;
use weir_observe::when::written;
use weir_report::backups::{BackupLine, DamageLine};

/// The environment variable that has the key.
const KEY_VARIABLE: &str = "WEIR_BACKUP_KEY";
/// The start of the file `format` in the data folder of a server.
const DATA_FORMAT: &str = "weir data ";
/// How often progress is shown and signals are heard.
const TICK: Duration = Duration::from_millis(100);

/// Returns the layout that the places' exports are of. Without --layout, --data is of the layout that
/// is among the places.
fn layout_of<'a>(args: &'a PlaceArgs, places: &'a [String]) -> Result<Option<&'a Path>, CliError> {
    let (None, Some(data)) = (&args.layout, &args.data) else { return Ok(args.layout.as_deref()) };
    let mut layouts = places.iter().filter(|place| is_layout(place)).map(Path::new);
    match (layouts.next(), layouts.next()) {
        (Some(layout), None) => Ok(Some(layout)),
        _ => Err(CliError::Refused(format!(
            "--data {}: give its layout with --layout FILE",
            data.display()
        ))),
    }
}

/// Finds the server of places that are named by their export.
fn exports(
    args: &PlaceArgs,
    layout: Option<&Path>,
    catalog: &Catalog,
) -> Result<Exports, CliError> {
    match (layout, &args.data) {
        (Some(layout), Some(data)) => {
            if !data.join("format").exists() {
                return Err(CliError::Refused(format!(
                    "{} holds no data of weir; give the folder that weir serve --data has",
                    data.display()
                )));
            }
            Exports::offline(layout, data, catalog)
        }
        _ => Exports::served(&args.control.control),
    }
}

/// Looks at whatever is in the places. `cancel` ends requests to them.
pub(crate) fn library(
    places: &[String],
    args: &PlaceArgs,
    catalog: &Catalog,
    cancel: &Cancel,
) -> Result<(Library, Option<Exports>), CliError> {
    let layout = layout_of(args, places)?;
    let all = without_layouts(places, catalog)?;
    let ways = (cancel, args.sas_file.as_deref());
    let (places, exports) = open_places(&all, ways, || exports(args, layout, catalog))?;
    Ok((Library::open(places)?, exports))
}

/// Refuses a folder within the data folder of a server: its volumes are there.
pub(crate) fn outside_of_data(folder: &Path) -> Result<(), CliError> {
    // A folder that is to be made is where its first existing parent is.
    let there = folder.ancestors().find_map(|own| {
        let own = if own.as_os_str().is_empty() { Path::new(".") } else { own };
        own.canonicalize().ok()
    });
    let is_data = |own: &&Path| {
        let format = std::fs::read_to_string(own.join("format"));
        format.is_ok_and(|text| text.starts_with(DATA_FORMAT))
    };
    match there.iter().flat_map(|own| own.ancestors()).find(is_data) {
        Some(data) => Err(CliError::Refused(format!(
            "{} is in {}, the data folder of a weir server; give a folder elsewhere",
            folder.display(),
            data.display()
        ))),
        None => Ok(()),
    }
}

/// Returns the places to look for a backup in.
pub(crate) fn places(args: &ChosenArgs) -> Result<Vec<String>, CliError> {
    let mut places = args.from.clone();
    let is_path = places.is_empty() || args.backup.contains('/');
    if is_path && Path::new(&args.backup).exists() {
        places.push(args.backup.clone());
    }
    if places.is_empty() {
        return Err(CliError::Refused(format!(
            "{:?} is not a path: say where to look for the backup with --from PLACE",
            shown(&args.backup)
        )));
    }
    Ok(places)
}

/// Finds the backup that is meant.
pub(crate) fn chosen(args: &ChosenArgs, library: &Library) -> Result<BackupId, CliError> {
    let path = Path::new(&args.backup);
    // With --from, a folder or file in the working directory does not hide a name.
    let is_path = args.from.is_empty() || args.backup.contains('/');
    let entry = if !is_path {
        library.find(&args.backup)?
    } else if path.is_dir() {
        let all = library.entries().iter();
        let newest = all.clone().rfind(|entry| entry.is_complete()).or_else(|| all.last());
        newest.ok_or_else(|| BackupError::NotFound {
            name: shown(&args.backup).to_owned(),
            places: library.place_names(),
            there: String::new(),
        })?
    } else if path.exists() {
        // As the folder lists it.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let name = path.file_name().unwrap_or_default();
        let listed = folder.unwrap_or(Path::new(".")).join(name);
        library.find(&listed.display().to_string())?
    } else {
        library.find(&args.backup)?
    };
    Ok(entry.identity.id)
}

/// Returns the error of an operation; one that a signal ended has the exit code of the signal.
pub(crate) fn ended(error: BackupError, signals: &Signals) -> CliError {
    match (error, signals.code()) {
        // One with something to say is told as it is.
        (BackupError::Interrupted, Some(code)) => CliError::Ended(i32::from(code) - 128),
        (error, _) => error.into(),
    }
}

/// Returns an error; one that a signal ended has the exit code of the signal.
pub(crate) fn interrupted(error: CliError, signals: &Signals) -> CliError {
    match error {
        CliError::Stripes(error) => ended(error, signals),
        other => other,
    }
}

/// Reads the key, if one is given.
pub(crate) fn keys(args: &KeyArgs) -> Result<Option<Keys>, CliError> {
    if let Some(file) = &args.key_file {
        return Ok(Some(Keys::new(Secret::read(file)?)));
    }
    let Some(text) = std::env::var_os(KEY_VARIABLE).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let secret = Secret::new(text.as_encoded_bytes());
    let secret = secret.map_err(|error| CliError::Refused(format!("{KEY_VARIABLE}: {error}")))?;
    Ok(Some(Keys::new(secret)))
}

/// Refuses a backup that is not encrypted though a key was given: it is not the backup that was made
/// with the key.
pub(crate) fn check_keys(args: &KeyArgs, all: &[Assembly]) -> Result<(), CliError> {
    let Some(plain) = all.iter().find(|own| own.identity.encryption.is_none()) else {
        return Ok(());
    };
    let is_set = std::env::var_os(KEY_VARIABLE).is_some_and(|text| !text.is_empty());
    let (source, remedy) = match &args.key_file {
        Some(_) => ("--key-file", "leave the option out"),
        None if is_set => (KEY_VARIABLE, "unset the variable"),
        None => return Ok(()),
    };
    Err(CliError::Refused(format!(
        "backup {} is not encrypted, so it was not made with the key of {source}; {remedy} if that \
         is right",
        plain.identity.id
    )))
}

/// Returns a Unix time in milliseconds as text.
pub(crate) fn moment(unix_ms: u64) -> String {
    let nanos = i64::try_from(unix_ms / 1000).unwrap_or(i64::MAX).saturating_mul(1_000_000_000);
    written(nanos, 0)
}

/// Returns a backup in a line.
pub(crate) fn line(entry: &Entry) -> BackupLine {
    let identity = &entry.identity;
    let manifest = entry.manifest.as_ref();
    BackupLine {
        id: identity.id.to_string(),
        name: identity.name.clone(),
        kind: identity.kind.to_string(),
        state: match &entry.state {
            State::Complete => "complete",
            State::Incomplete => "incomplete",
            State::Missing(_) => "missing stripes",
            State::Damaged => "damaged",
        }
        .to_owned(),
        missing_stripes: numbers(&entry.gaps.missing),
        unfinished_stripes: numbers(&entry.gaps.unfinished),
        truncated_stripes: numbers(&entry.gaps.truncated),
        created: moment(identity.created_unix_ms),
        created_unix_ms: identity.created_unix_ms,
        stripes: identity.stripes.into(),
        bytes: manifest.map(weir_backup::format::Manifest::raw_bytes),
        stored_bytes: entry.stored_bytes,
        base: identity.base.map(|base| base.to_string()),
        is_encrypted: identity.encryption.is_some(),
        compression: manifest.and_then(|manifest| manifest.options.compression),
    }
}

/// Returns stripes as people count them.
fn numbers(stripes: &[u8]) -> Vec<u32> {
    stripes.iter().map(|stripe| u32::from(*stripe) + 1).collect()
}

/// Returns places as messages name them: a URL without its signature.
pub(crate) fn place_names(places: &[String]) -> Vec<String> {
    places.iter().map(|place| shown(place).to_owned()).collect()
}

/// Returns damage for a report.
pub(crate) fn damage(all: &[Damage]) -> Vec<DamageLine> {
    let line = |own: &Damage| DamageLine {
        stripe: own.stripe().map(|stripe| u32::from(stripe) + 1),
        kind: own.kind().to_owned(),
        loses_data: own.loses_data(),
        damage: own.to_string(),
    };
    all.iter().map(line).collect()
}

/// A bar of bytes on stderr, if that is a terminal.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    pub(crate) fn new(total: u64, is_quiet: bool) -> Self {
        let target = match is_quiet {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        let style = ProgressStyle::with_template(
            "{bar:30} {percent} %, {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, \
             {eta} left",
        );
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self(bar)
    }

    /// Returns the seconds since it was made.
    pub(crate) fn elapsed_s(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Does something long on a thread of its own, while progress is shown and signals are heard.
pub(crate) fn watched<T: Send>(
    signals: &Signals,
    bar: &Bar,
    watch: &Watch,
    work: impl FnOnce() -> Result<T, BackupError> + Send,
) -> Result<T, BackupError> {
    thread::scope(|scope| {
        let (done, result) = channel();
        scope.spawn(move || drop(done.send(work())));
        loop {
            match result.recv_timeout(TICK) {
                Ok(result) => return result,
                Err(RecvTimeoutError::Timeout) => {
                    bar.0.set_position(watch.passed());
                    if signals.code().is_some() {
                        watch.stop();
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Err(BackupError::Interrupted),
            }
        }
    })
}
