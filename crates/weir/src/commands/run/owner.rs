//! Ownership of the files in a data directory: a record for each database that ran there lists
//! its files and their locations. It keeps a database from using the files of another, tells a
//! lost log from a first run, and reveals a layout that moves a file before anything is read from
//! the wrong location.

use crate::error::CliError;
use std::fmt;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use weir_layout::Layout;
use weir_layout::files::Place;
use weir_oltp::model::DataFile;
use weir_oltp::{Description, Model};

/// Prefix of a record's file name; the name of the log follows.
const PREFIX: &str = "database-";

/// The locations of a database's files.
pub(super) struct Geometry<'a> {
    pub(super) layout: &'a Layout,
    pub(super) places: &'a [Place],
    pub(super) model: &'a Model,
}

/// The location of a file, in bytes. Its line in the record is
/// `FILE on EXPORT at BASE size SIZE new NEW_FROM room ROOM MOST`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    file: String,
    export: String,
    base: u64,
    size: u64,
    /// Start of its new pages; 0 for a log.
    new_from: u64,
    /// Offset on the export of the room to grow into, and the maximum size.
    room: Option<(u64, u64)>,
}

impl Geometry<'_> {
    fn lines(&self) -> impl Iterator<Item = Line> + '_ {
        let files = self.model.files();
        let kept = files.into_iter().filter(|(_, role)| *role != "tempdb");
        kept.map(|(file, _)| {
            let place = &self.places[file as usize];
            let mut exports = self.layout.hosts[place.host].exports.iter();
            let export = exports.find(|export| export.device == place.device);
            let data = self.model.data.iter().find(|data| data.file == file);
            Line {
                file: place.name.clone(),
                export: export.map_or(&place.name, |export| &export.name).clone(),
                base: place.base.get(),
                size: place.size.get(),
                new_from: data.map_or(0, DataFile::new_from),
                room: place.growth.and_then(|growth| Some((growth.room?.get(), growth.most.get()))),
            }
        })
    }
}

impl Line {
    fn read(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let [file, "on", export, "at", base, "size", size, "new", new, "room", room, most] =
            words[..]
        else {
            return None;
        };
        let room = room.parse().ok().zip(most.parse().ok());
        let (base, size, new_from) = (base.parse().ok()?, size.parse().ok()?, new.parse().ok()?);
        Some(Self { file: file.to_owned(), export: export.to_owned(), base, size, new_from, room })
    }

    /// Returns the ranges of the export that the file occupies.
    fn ranges(&self) -> impl Iterator<Item = std::ops::Range<u64>> + '_ {
        let room = |(room, most): (u64, u64)| room..room + most.saturating_sub(self.size);
        std::iter::once(self.base..self.base + self.size).chain(self.room.map(room))
    }

    fn overlaps(&self, other: &Self) -> bool {
        let meets =
            |a: &std::ops::Range<u64>, b: &std::ops::Range<u64>| a.start < b.end && b.start < a.end;
        self.export == other.export
            && self.ranges().any(|own| other.ranges().any(|others| meets(&own, &others)))
    }

    /// Returns whether `other` places bytes of this file elsewhere. Room to grow that was never used
    /// can change.
    fn moves_to(&self, now: &Self) -> bool {
        let room_moves = match (self.room, now.room) {
            (None, _) => false,
            (Some((was, _)), Some((now, _))) => was != now,
            (Some(_), None) => true,
        };
        room_moves
            || (&self.file, &self.export, self.base, self.size, self.new_from)
                != (&now.file, &now.export, now.base, now.size, now.new_from)
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, export, base, size, new_from, room } = self;
        write!(f, "{file} on {export} at {base} size {size} new {new_from} room ")?;
        match room {
            Some((room, most)) => write!(f, "{room} {most}"),
            None => f.write_str("- -"),
        }
    }
}

/// The record of a database.
pub(super) struct Owner {
    path: PathBuf,
    text: String,
    /// The database ran here before.
    pub(super) is_known: bool,
}

impl Owner {
    /// Reads the records of `data`. It is an error if a file of `description` belongs to another
    /// database, overlaps a file of another database, or has moved.
    pub(super) fn find(
        data: &Path,
        description: &Description,
        geometry: &Geometry<'_>,
    ) -> Result<Self, CliError> {
        let mut lines: Vec<Line> = geometry.lines().collect();
        let failed = |path: &Path| {
            let context = format!("reading {}", path.display());
            move |source| CliError::Folder { context, source }
        };
        let own = format!("{PREFIX}{}", description.log_name());
        let path = data.join(&own);
        for entry in fs::read_dir(data).map_err(failed(data))? {
            let entry = entry.map_err(failed(data))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.starts_with(PREFIX) || name == own {
                continue;
            }
            let text = fs::read_to_string(entry.path()).map_err(failed(&entry.path()))?;
            let claims = |own: &Line, other: &str| match Line::read(other) {
                Some(other) => other.file == own.file || other.overlaps(own),
                // A record of an earlier release has only the names.
                None => other == own.file,
            };
            let shared = |own: &&Line| text.lines().any(|other| claims(own, other));
            if let Some(Line { file, .. }) = lines.iter().find(shared) {
                return Err(CliError::Refused(format!(
                    "file {file:?} in {} belongs to the database whose log is {:?}, or overlaps \
                     one of its files; give this database its own files, or another folder",
                    data.display(),
                    &name[PREFIX.len()..],
                )));
            }
        }
        let known = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            read => Some(read.map_err(failed(&path))?),
        };
        if let Some(known) = &known
            && known.lines().count() != lines.len()
        {
            let was = known.lines().map(|line| line.split(' ').next().unwrap_or_default());
            let was: Vec<&str> = was.collect();
            let now: Vec<&str> = lines.iter().map(|line| line.file.as_str()).collect();
            return Err(CliError::Refused(format!(
                "the database in {} has the files {}, and now {} are named: files cannot be added \
                 to a database or removed from it; restore the list, or give another folder",
                data.display(),
                was.join(", "),
                now.join(", "),
            )));
        }
        let was: Vec<&str> = known.iter().flat_map(|known| known.lines()).collect();
        for (was, now) in was.iter().zip(&lines) {
            let moved = match Line::read(was) {
                Some(old) => {
                    // Another file must not get the room that this one has grown into.
                    let mut others = lines.iter().filter(|other| other.file != old.file);
                    old.moves_to(now) || others.any(|other| other.overlaps(&old))
                }
                None => *was != now.file,
            };
            if moved {
                return Err(CliError::Refused(format!(
                    "the database in {} has its file at {was:?}, but the layout and the \
                     description now place it at {:?}, or give a part of its place to another \
                     file; restore them, or give another folder",
                    data.display(),
                    now.to_string(),
                )));
            }
        }
        // Keeps the room that a file can have grown into, even if it can no longer grow.
        let old = was.iter().filter_map(|line| Line::read(line));
        for (old, line) in old.zip(&mut lines) {
            line.room = line.room.map(|(at, most)| (at, most.max(old.room.map_or(0, |r| r.1))));
        }
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        Ok(Self { path, text, is_known: known.is_some() })
    }

    /// Replaces the record, before the database writes anything.
    pub(super) fn keep(&self) -> Result<(), CliError> {
        let write = || {
            let name = self.path.file_name().unwrap_or_default().to_string_lossy();
            // Without the prefix of a record, so that a leftover of a crash does not count as one.
            let temporary = self.path.with_file_name(format!(".{name}.tmp"));
            let mut file = fs::File::create(&temporary)?;
            file.write_all(self.text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&temporary, &self.path)?;
            self.path.parent().map_or(Ok(()), |folder| fs::File::open(folder)?.sync_all())
        };
        let context = || format!("writing {}", self.path.display());
        write().map_err(|source| CliError::Folder { context: context(), source })
    }
}
