//! An observation to be read.

use crate::fleet::{Fleet, Observed};
use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
use std::path::Path;
use weir_observe::joined::Chunks;
use weir_observe::{Ending, Header, Reader};

/// An observation that is open.
pub struct Opened {
    /// Origin, entities and series.
    pub header: Header,
    /// The part that is missing, if the file is truncated or damaged.
    pub damage: Option<String>,
    /// The samples.
    pub chunks: Chunks,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened").field("damage", &self.damage).finish_non_exhaustive()
    }
}

/// Opens an observation of a fleet.
///
/// # Errors
///
/// The reason why it cannot be read.
pub fn open(fleet: &Fleet, observed: &Observed) -> Result<Opened, String> {
    if observed.is_parquet() {
        return open_tables(fleet, observed);
    }
    let path = observed.files.first().map(|file| fleet.root().join(file)).unwrap_or_default();
    open_file(&path)
}

fn open_file(path: &Path) -> Result<Opened, String> {
    let mut file = File::open(path).map_err(|error| error.to_string())?;
    let open = |file: File| {
        Reader::open(BufReader::with_capacity(1 << 17, file)).map_err(|error| error.to_string())
    };
    let again = file.try_clone().map_err(|error| error.to_string())?;
    let mut reader = open(again)?;
    reader.skip_to_end().map_err(|error| error.to_string())?;
    let (header, _, ending) = reader.into_parts();
    file.seek(SeekFrom::Start(0)).map_err(|error| error.to_string())?;
    let mut reader = open(file)?;
    let damage = damage(&ending);
    Ok(Opened { header, damage, chunks: Box::new(move || reader.next_chunk()) })
}

/// Returns what is missing of an observation. One that was interrupted has all samples until then.
fn damage(ending: &Ending) -> Option<String> {
    match ending {
        Ending::Complete | Ending::Interrupted => None,
        other => Some(other.to_string()),
    }
}

#[cfg(feature = "parquet")]
fn open_tables(fleet: &Fleet, observed: &Observed) -> Result<Opened, String> {
    use crate::error::FleetError;
    use crate::table::{DIFFERENT, Tables};
    use weir_observe::ReadError;

    let files = observed.files.iter().map(|file| fleet.root().join(file)).collect();
    let tables = Tables::open(files).map_err(|error| match &error {
        FleetError::Table { path, reason }
            if fleet.options().joins_days && reason.contains(DIFFERENT) =>
        {
            format!("{}: the days are of several recordings; use --by day", path.display())
        }
        _ => error.to_string(),
    })?;
    let mut samples = tables.samples();
    let described = tables.described();
    let header = described.header.clone();
    let next =
        move || samples.next_chunk().map_err(|error| ReadError::Io(std::io::Error::other(error)));
    Ok(Opened { header, damage: damage(&described.ending), chunks: Box::new(next) })
}

#[cfg(not(feature = "parquet"))]
fn open_tables(_: &Fleet, _: &Observed) -> Result<Opened, String> {
    Err("this build of weir lacks Parquet".to_owned())
}
