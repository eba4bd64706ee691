//! The observations of a folder.

use crate::error::FleetError;
use crate::partition::{NO_DAY, value};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use weir_catalog::Catalog;
use weir_diagnose::system::Mapping;
use weir_layout::Layout;

/// Options that apply to all observations of a fleet.
#[derive(Debug)]
pub struct Options {
    /// The layout of all observations, with its text.
    pub layout: Option<(Layout, String)>,
    /// The edition of all observations that have no layout.
    pub edition: Option<String>,
    /// Names of observations and of the layout, where they differ.
    pub mapping: Mapping,
    /// The catalog.
    pub catalog: Catalog,
    /// Whether the days of a server in Parquet are one observation, and not one each.
    pub joins_days: bool,
    /// The texts of editions that users loaded.
    pub editions: Vec<String>,
    /// Version of Weir.
    pub version: &'static str,
}

/// An observation of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// The server: the path of the file without its ending, or the name of the partition. The name of
    /// a partition that is not directly below the folder of the fleet is its path, `eu/server=db1`.
    pub server: String,
    /// The day of a partition.
    pub day: Option<String>,
    /// The file, or the folder of a partition, relative to that of the fleet.
    pub path: PathBuf,
    /// The files to read, relative to the folder of the fleet.
    pub(crate) files: Vec<PathBuf>,
    /// Whether it is the partition of a server and a day.
    is_partition: bool,
}

impl Observed {
    /// Returns whether the observation is another day of the same server.
    fn is_same_server(&self, next: &Self) -> bool {
        self.is_partition && next.is_partition && self.server == next.server
    }

    /// Names the observation after its server alone, without the day.
    fn cover_all_days(&mut self) {
        if !self.is_partition {
            return;
        }
        let names: Vec<_> = self.path.iter().collect();
        let is_server = |name: &&OsStr| value(&name.to_string_lossy(), "server").is_some();
        let end = names.iter().rposition(is_server).map_or(names.len(), |at| at + 1);
        self.path = names[..end].iter().collect();
        self.day = None;
    }

    /// Returns whether the observation is in Parquet.
    #[must_use]
    pub fn is_parquet(&self) -> bool {
        self.files.iter().any(|file| file.extension().is_some_and(|end| end == "parquet"))
    }
}

/// The observations of a folder, in the order of servers, days and paths: those of a server follow
/// each other.
#[derive(Debug)]
pub struct Fleet {
    root: PathBuf,
    observations: Vec<Observed>,
    identity: String,
    /// Other files, which are ignored.
    ignored: u64,
    options: Options,
}

impl Fleet {
    /// Finds the observations below a folder. Names that begin with `.` or `_` are passed over, as
    /// other programs do.
    ///
    /// # Errors
    ///
    /// [`FleetError`] if there is none, or a folder cannot be read.
    pub fn find(root: &Path, options: Options) -> Result<Self, FleetError> {
        let mut walk = Walk::default();
        if !fs::metadata(root).map_err(FleetError::read(root))?.is_dir() {
            let reason =
                "it is not a folder; --fleet takes the folder of all observations".to_owned();
            return Err(FleetError::Fleet { path: root.to_owned(), reason });
        }
        walk.folder(root, Path::new(""))?;
        let Walk { mut found, ignored } = walk;
        found.sort_by(|(one, _), (other, _)| {
            (&one.server, &one.day, &one.path).cmp(&(&other.server, &other.day, &other.path))
        });
        if options.joins_days {
            found.iter_mut().for_each(|(own, _)| own.cover_all_days());
            found.dedup_by(|next, own| own.0.is_same_server(&next.0) && join(own, next));
        }
        if found.is_empty() {
            return Err(FleetError::Empty(root.to_owned()));
        }
        let identity = identity(&found, &options);
        let observations = found.into_iter().map(|(own, _)| own).collect();
        Ok(Self { root: root.to_owned(), observations, identity, ignored, options })
    }

    /// Returns the number of observations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.observations.len() as u64
    }

    /// Returns whether there are days of servers in Parquet.
    #[must_use]
    pub fn has_days(&self) -> bool {
        self.observations.iter().any(|own| own.is_partition)
    }

    /// Returns a hash of the names and sizes of all files, of the options and of Weir's version.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns the number of files that are no observations.
    #[must_use]
    pub const fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Returns an observation.
    #[must_use]
    pub fn observation(&self, number: u64) -> Option<&Observed> {
        self.observations.get(usize::try_from(number).ok()?)
    }

    /// Returns all observations.
    #[must_use]
    pub fn observations(&self) -> &[Observed] {
        &self.observations
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) const fn options(&self) -> &Options {
        &self.options
    }
}

/// Observations with the sizes of their files.
#[derive(Default)]
struct Walk {
    found: Vec<(Observed, Vec<u64>)>,
    ignored: u64,
}

impl Walk {
    fn folder(&mut self, root: &Path, below: &Path) -> Result<(), FleetError> {
        let folder = root.join(below);
        let mut parts: Vec<(PathBuf, u64)> = Vec::new();
        for entry in fs::read_dir(&folder).map_err(FleetError::read(&folder))? {
            let entry = entry.map_err(FleetError::read(&folder))?;
            let name = entry.file_name();
            if name.to_string_lossy().starts_with(['.', '_']) {
                continue;
            }
            let path = below.join(&name);
            // Links to folders could lead in circles.
            if entry.file_type().map_err(FleetError::read(root.join(&path)))?.is_dir() {
                self.folder(root, &path)?;
                continue;
            }
            let about = fs::metadata(entry.path()).ok().filter(fs::Metadata::is_file);
            let end = path.extension().and_then(|end| end.to_str());
            match (about, end) {
                (Some(about), Some("weirobs")) => self.one(path, about.len()),
                (Some(about), Some("parquet")) => parts.push((path, about.len())),
                _ => self.ignored += 1,
            }
        }
        parts.sort();
        self.tables(below, parts);
        Ok(())
    }

    /// Adds a file that is an observation by itself.
    fn one(&mut self, path: PathBuf, bytes: u64) {
        let server = path.with_extension("").to_string_lossy().into_owned();
        let files = vec![path.clone()];
        let own = Observed { server, day: None, path, files, is_partition: false };
        self.found.push((own, vec![bytes]));
    }

    /// Adds the tables of a folder: together if it is a day's, else each by itself.
    fn tables(&mut self, below: &Path, parts: Vec<(PathBuf, u64)>) {
        let Some((server, day)) = partition(below) else {
            parts.into_iter().for_each(|(path, bytes)| self.one(path, bytes));
            return;
        };
        if parts.is_empty() {
            return;
        }
        let day = Some(day).filter(|day| day != NO_DAY);
        let (files, sizes) = parts.into_iter().unzip();
        let path = below.to_owned();
        self.found.push((Observed { server, day, path, files, is_partition: true }, sizes));
    }
}

/// Adds the files of the next day to the observation of a server. Returns true, since the day is then part
/// of it.
fn join(own: &mut (Observed, Vec<u64>), next: &mut (Observed, Vec<u64>)) -> bool {
    let (observed, sizes) = own;
    observed.files.append(&mut next.0.files);
    sizes.append(&mut next.1);
    true
}

/// Returns the server and the day of a folder, if it is a day's below a server's. Servers of the same
/// name in different folders are different servers.
fn partition(below: &Path) -> Option<(String, String)> {
    let names: Vec<_> = below.iter().map(|own| own.to_string_lossy()).collect();
    let at = names.iter().rposition(|own| value(own, "server").is_some())?;
    let day = names[at + 1..].iter().rev().find_map(|own| value(own, "day"))?;
    let server = match at {
        0 => value(&names[0], "server")?,
        _ => names[..=at].join("/"),
    };
    Some((server, day))
}

fn identity(found: &[(Observed, Vec<u64>)], options: &Options) -> String {
    let mut hash = blake3::Hasher::new();
    let mut add = |text: &str| {
        hash.update(&(text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    };
    add(options.version);
    add(if options.joins_days { "joined days" } else { "" });
    add(options.layout.as_ref().map_or("", |(_, text)| text));
    add(options.edition.as_deref().unwrap_or_default());
    for (observed, layout) in &options.mapping {
        add(observed);
        add(layout);
    }
    // Lists end where the next begins.
    add("");
    options.editions.iter().for_each(|text| add(text));
    add("");
    for (observed, sizes) in found {
        for (file, bytes) in observed.files.iter().zip(sizes) {
            add(&file.to_string_lossy());
            add(&bytes.to_string());
        }
    }
    hash.finalize().to_hex()[..16].to_owned()
}
