//! The folder that a server keeps its volumes in.
//!
//! ```text
//! DIR/format          "weir data 1"
//! DIR/lock            locked by the server that uses it, and names the server
//! DIR/volumes/NAME    a volume                              (crate::volume)
//! DIR/volumes/.gone-* a volume that is being removed
//! DIR/frozen/         old contents for frozen views; removed when the folder is opened
//! ```
//!
//! A folder with other contents is refused before anything is written to it. A damaged volume is an
//! error of that volume only.

use crate::lock::{self, DirLock};
use crate::meta::Meta;
use crate::registry::{Registration, Registry};
use crate::sums::Shares;
use crate::sync::locked;
use crate::volume::{self, NewVolume, Pages, Volume};
use crate::{Result, StoreError, disk, name};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

const FORMAT_FILE: &str = "format";
const FORMAT: &str = "weir data 1";
const FORMAT_FAMILY: &str = "weir data ";
pub(crate) const VOLUMES: &str = "volumes";
const GONE: &str = ".gone-";
const FROZEN: &str = "frozen";

/// Files that may be in a folder without a format file: leftovers of a crashed process, and those of
/// the file system.
const HARMLESS: [&str; 3] = [lock::FILE, "format.tmp", "lost+found"];

/// A locked folder of volumes.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    lock: Arc<DirLock>,
    /// Volumes in use: the same name gives the same volume.
    open: Arc<Mutex<Registry<Volume>>>,
    /// Limits for the checksums of all volumes.
    shares: Shares,
}

/// A volume found in a data directory.
#[derive(Debug)]
pub struct ListedVolume {
    /// Its name.
    pub name: String,
    /// Its metadata, or the reason why it cannot be served.
    pub meta: Result<Meta>,
}

impl DataDir {
    /// Opens the data directory at `path`, or makes one of an absent or empty
    /// folder. `holder` names its user to other processes, for example by the command line.
    pub fn open(path: impl Into<PathBuf>, holder: &str) -> Result<Self> {
        let path = path.into();
        disk::create_dirs(&path)?;
        check_format(&path)?;
        let lock = Arc::new(DirLock::take(&path, holder)?);
        // Another process may have made it a data directory before this one got the lock.
        if !check_format(&path)? {
            disk::replace_file(&path, FORMAT_FILE, format!("{FORMAT}\n").as_bytes())?;
        }
        let volumes = path.join(VOLUMES);
        disk::create_dirs(&volumes)?;
        // A process that was killed may have made folders and volumes whose names are not durable yet.
        disk::sync_parent(&path)?;
        disk::sync_dir(&path)?;
        disk::sync_dir(&volumes)?;
        // A crash came between the two steps of a removal.
        for name in disk::names_in(&volumes)?.unwrap_or_default() {
            if name.starts_with(GONE) {
                // A folder that cannot be removed takes room and is ignored.
                let _ = disk::remove_tree(&volumes.join(name));
            }
        }
        // Only views of a process that has ended need it.
        disk::remove_tree(&path.join(FROZEN))?;
        Ok(Self { path, lock, open: Arc::default(), shares: Shares::default() })
    }

    /// Returns the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the folder of the volume of that name, which need not exist.
    #[must_use]
    pub fn folder_of(&self, name: &str) -> PathBuf {
        self.path.join(VOLUMES).join(name)
    }

    /// Returns the folder for old contents of frozen volumes. It goes when the data directory
    /// is opened again.
    #[must_use]
    pub fn frozen(&self) -> PathBuf {
        self.path.join(FROZEN)
    }

    /// Returns the volume of that name, and creates it from `new` if it does not exist. An existing
    /// volume keeps its size, attributes and kind, see [`Volume::meta`]; it gets or loses its checksums.
    pub fn volume(&self, name: &str, new: NewVolume) -> Result<Arc<Volume>> {
        self.volume_or_new(name, new, Pages::Unknown)
    }

    /// Returns the volume of that name. If it does not exist, creates it from `new` as one that
    /// records its written pages and takes snapshots. An existing volume keeps its kind; see
    /// [`Volume::paged`].
    pub fn paged_volume(&self, name: &str, new: NewVolume) -> Result<Arc<Volume>> {
        self.volume_or_new(name, new, Pages::Known)
    }

    fn volume_or_new(&self, name: &str, new: NewVolume, pages: Pages) -> Result<Arc<Volume>> {
        name::check(name)?;
        let mut registry = locked(&self.open);
        if let Some(volume) = registry.volumes.get(name).and_then(|(_, open)| open.upgrade()) {
            return Ok(volume);
        }
        registry.last += 1;
        let number = registry.last;
        // From here on, a volume of this name that is being closed writes no record.
        registry.volumes.insert(name.to_owned(), (number, Weak::new()));
        let registration = || Registration::new(Arc::clone(&self.open), name, number);
        let dir = self.folder_of(name);
        let lock = Arc::clone(&self.lock);
        let volume =
            match Volume::open(&dir, name, (new.checksums, &self.shares), lock, registration())? {
                Some(volume) => volume,
                None => {
                    let lock = Arc::clone(&self.lock);
                    Volume::create(&dir, name, new, (pages, &self.shares), lock, registration())?
                }
            };
        let volume = Arc::new(volume);
        registry.volumes.insert(name.to_owned(), (number, Arc::downgrade(&volume)));
        Ok(volume)
    }

    /// Removes a volume and its bytes: after a crash it is there as a whole, or not at all.
    /// An open handle to it must not be used any more.
    pub fn remove(&self, name: &str) -> Result<()> {
        name::check(name)?;
        let open = locked(&self.open).volumes.remove(name);
        if let Some(volume) = open.and_then(|(_, volume)| volume.upgrade()) {
            volume.set_removed();
        }
        let volumes = self.path.join(VOLUMES);
        let gone = volumes.join(format!("{GONE}{name}"));
        disk::remove_tree(&gone)?;
        if disk::rename(&volumes.join(name), &gone)? {
            disk::sync_dir(&volumes)?;
            disk::remove_tree(&gone)?;
        }
        Ok(())
    }

    /// Returns all volumes by name, including damaged ones.
    pub fn list(&self) -> Result<Vec<ListedVolume>> {
        let volumes = self.path.join(VOLUMES);
        let mut list = Vec::new();
        for name in disk::names_in(&volumes)?.unwrap_or_default() {
            let dir = volumes.join(&name);
            if name::check(&name).is_err() || !dir.is_dir() {
                continue;
            }
            if let Some(meta) = volume::inspect(&dir).transpose() {
                list.push(ListedVolume { name, meta });
            }
        }
        Ok(list)
    }
}

/// Returns whether the folder is a data directory; if not, it can become one. A folder with other
/// contents is refused.
pub(crate) fn check_format(path: &Path) -> Result<bool> {
    let file = path.join(FORMAT_FILE);
    let content = disk::read_small(&file, 64)?;
    let text = content.as_deref().map(String::from_utf8_lossy);
    let found = text.as_deref().map(str::trim_end);
    match found {
        Some(FORMAT) => Ok(true),
        Some(found) if found.starts_with(FORMAT_FAMILY) => {
            Err(StoreError::Version { path: file, found: found.to_owned(), known: &[FORMAT] })
        }
        // No other program is likely to have both.
        found if path.join(VOLUMES).is_dir() && path.join(lock::FILE).is_file() => {
            let what = match found {
                Some(found) => format!("is damaged: it contains {found:?} instead of {FORMAT:?}"),
                None => format!("is missing; it should contain the line {FORMAT:?}"),
            };
            let hint = "write that line into it if this release created the folder";
            Err(StoreError::Damaged { what: format!("{} {what}", file.display()), hint })
        }
        Some(_) => Err(StoreError::Foreign { dir: path.to_owned(), found: FORMAT_FILE.to_owned() }),
        None => {
            let names = disk::names_in(path)?.unwrap_or_default();
            match names.into_iter().find(|name| !HARMLESS.contains(&name.as_str())) {
                Some(found) => Err(StoreError::Foreign { dir: path.to_owned(), found }),
                None => Ok(false),
            }
        }
    }
}
