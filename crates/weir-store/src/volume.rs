//! A volume of a data directory: sparse files, and a size and attributes that
//! are found again.
//!
//! ```text
//! volumes/NAME/meta.json     size, attributes     (crate::meta)
//! volumes/NAME/data/00000    bytes                (crate::file)
//! ```
//!
//! `meta.json` decides how long the volume is. A crash leaves the old size or the
//! new one, and never old bytes in a part that is new:
//!
//! | growing | shrinking |
//! |---|---|
//! | cut off what the files have behind the old end | `meta.json` says the new size |
//! | make the last file as long as its new share | requests behind the new end are refused |
//! | sync: both are durable | cut off what the files have behind it |
//! | `meta.json` says the new size | |
//! | requests up to the new end are let in | |
//!
//! It also lists the segments. One that is listed and not there, or shorter than its
//! share, was lost or cut by somebody: the volume is refused rather than read as
//! zeros. No crash leaves it like that, since a segment comes into being so:
//!
//! 1. its file is made, in full length; a crash leaves a file that is not listed,
//!    of any length: it is lengthened when the volume is opened;
//! 2. the next sync makes file and name durable;
//! 3. `meta.json` lists it, and the sync returns.

use crate::file::{FileStore, SEGMENT, segment_name, share};
use crate::lock::DirLock;
use crate::meta::{self, Meta};
use crate::store::{Extent, Store};
use crate::sync::locked;
use crate::{Result, StoreError, disk};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use weir_units::Bytes;

const DATA: &str = "data";

/// What a volume starts with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewVolume {
    /// How many bytes it has, and its declared size.
    pub size: Bytes,
    /// What else is to be remembered.
    pub attributes: BTreeMap<String, String>,
}

/// A [`Store`] whose size and attributes survive like its bytes. It keeps the
/// lock of its data directory.
#[derive(Debug)]
pub struct Volume {
    name: String,
    dir: PathBuf,
    store: FileStore,
    meta: Mutex<Meta>,
    _lock: Arc<DirLock>,
}

impl Volume {
    /// Opens the volume kept in `dir`, if there is one.
    pub(crate) fn open(dir: PathBuf, name: &str, lock: Arc<DirLock>) -> Result<Option<Self>> {
        let Some(meta) = inspect(&dir)? else { return Ok(None) };
        let store = FileStore::open_segmented(dir.join(DATA), meta.size, meta.segment)?;
        store.cut()?;
        store.lengthen(meta.size)?;
        Ok(Some(Self { name: name.to_owned(), dir, store, meta: Mutex::new(meta), _lock: lock }))
    }

    /// Makes a volume in `dir`, where [`inspect`] found none. Until `meta.json`
    /// is there it does not exist; a crash before that leaves empty folders.
    pub(crate) fn create(
        dir: PathBuf,
        name: &str,
        new: NewVolume,
        lock: Arc<DirLock>,
    ) -> Result<Self> {
        let data = dir.join(DATA);
        std::fs::create_dir_all(&data).map_err(|e| StoreError::io("create", &data, e))?;
        let store = FileStore::open(data, new.size)?;
        let meta = Meta {
            size: new.size,
            declared_size: new.size,
            segment: SEGMENT,
            segments: BTreeSet::new(),
            attributes: new.attributes,
        };
        meta.save(&dir)?;
        dir.parent().map_or(Ok(()), disk::sync_dir)?;
        Ok(Self { name: name.to_owned(), dir, store, meta: Mutex::new(meta), _lock: lock })
    }

    /// The volume's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is remembered of the volume now.
    #[must_use]
    pub fn meta(&self) -> Meta {
        locked(&self.meta).clone()
    }

    /// Resizes, durably. If it fails, the size is the old one, or the new one
    /// with space still to be freed; [`Store::size`] says which.
    pub fn set_size(&self, new: Bytes) -> Result<()> {
        self.store.check_size(new)?;
        // Held over all of it, so that two resizes do not interleave.
        let mut meta = locked(&self.meta);
        if new > meta.size {
            self.store.prepare(new)?;
        }
        let mut changed = Meta { size: new, ..meta.clone() };
        changed.segments.retain(|number| share(new.get(), meta.segment.get(), *number) > 0);
        self.replace_meta(&mut meta, changed)?;
        self.store.adopt(new)?;
        self.store.cut()
    }

    /// Remembers, durably, that the layout has asked for `size`.
    pub fn set_declared_size(&self, size: Bytes) -> Result<()> {
        self.change_meta(|meta| meta.declared_size = size)
    }

    /// Remembers an attribute, durably; `None` forgets it.
    pub fn set_attribute(&self, name: &str, value: Option<&str>) -> Result<()> {
        self.change_meta(|meta| {
            match value {
                Some(value) => meta.attributes.insert(name.to_owned(), value.to_owned()),
                None => meta.attributes.remove(name),
            };
        })
    }

    /// Lists the segments that are there to stay and are not listed yet.
    fn list_segments(&self) -> Result<()> {
        let mut meta = locked(&self.meta);
        let mut listed = self.store.durable_segments();
        if listed.is_subset(&meta.segments) {
            return Ok(());
        }
        listed.extend(&meta.segments);
        let changed = Meta { segments: listed, ..meta.clone() };
        self.replace_meta(&mut meta, changed)
    }

    fn change_meta(&self, change: impl FnOnce(&mut Meta)) -> Result<()> {
        let mut meta = locked(&self.meta);
        let mut changed = meta.clone();
        change(&mut changed);
        if changed == *meta { Ok(()) } else { self.replace_meta(&mut meta, changed) }
    }

    fn replace_meta(&self, meta: &mut Meta, changed: Meta) -> Result<()> {
        changed.save(&self.dir).inspect_err(|_| {
            // If it failed late, the file may be the new one already, and a
            // smaller size in it would cut off what is written from here on.
            let _ = meta.save(&self.dir);
        })?;
        *meta = changed;
        Ok(())
    }
}

/// What is remembered of the volume in the folder `dir`; `None` where there is
/// no volume, or one whose creation did not finish.
pub(crate) fn inspect(dir: &Path) -> Result<Option<Meta>> {
    let meta = Meta::load(dir)?;
    let data = dir.join(DATA);
    let segments = disk::names_in(&data)?;
    match (meta, segments) {
        (Some(mut meta), Some(_)) => {
            // One behind the end holds nothing that could be missed.
            let (size, segment) = (meta.size.get(), meta.segment.get());
            meta.segments.retain(|number| share(size, segment, *number) > 0);
            check_segments(&meta, &data)?;
            Ok(Some(meta))
        }
        (Some(_), None) => Err(StoreError::Damaged {
            what: format!("{} is missing, which held the volume's bytes", data.display()),
            hint: "put the folder back from a copy; with an empty folder in its place the volume \
                   is all zeros",
        }),
        (None, Some(segments)) if !segments.is_empty() => Err(StoreError::Damaged {
            what: format!(
                "{} is missing, and data/ beside it holds a volume's bytes",
                dir.join(meta::FILE).display()
            ),
            hint: "put the file back from a copy, or move the folder away to start anew",
        }),
        (None, _) => Ok(None),
    }
}

/// Refuses a volume of which a file is missing or was cut.
fn check_segments(meta: &Meta, data: &Path) -> Result<()> {
    for number in &meta.segments {
        let path = data.join(segment_name(*number));
        let share = share(meta.size.get(), meta.segment.get(), *number);
        let found = match std::fs::metadata(&path) {
            Ok(found) => Some(found.len()),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
            Err(e) => return Err(StoreError::io("look at", &path, e)),
        };
        let damaged = |what: String| StoreError::Damaged {
            what: format!("{} {what}, it held {share} bytes of the volume", path.display()),
            hint: "put the file back from a copy; to do without its bytes, make it that long with \
                   truncate -s, and they read as zeros",
        };
        match found {
            None => return Err(damaged("is missing".to_owned())),
            Some(len) if len < share => {
                return Err(damaged(format!("was cut to {len} bytes")));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// The bytes are the files'; a resize is [`Volume::set_size`].
impl Store for Volume {
    fn size(&self) -> Bytes {
        self.store.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.store.read_at(offset, buf)
    }

    fn try_read_at(&self, offset: u64, buf: &mut [u8]) -> Result<bool> {
        self.store.try_read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.store.write_at(offset, data)
    }

    fn write_zeroes(&self, offset: u64, len: u64, may_trim: bool) -> Result<()> {
        self.store.write_zeroes(offset, len, may_trim)
    }

    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        self.store.trim(offset, len)
    }

    fn sync(&self) -> Result<()> {
        self.store.sync()?;
        self.list_segments()
    }

    fn resize(&self, new: Bytes) -> Result<()> {
        self.set_size(new)
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>> {
        self.store.extents(offset, len, max)
    }

    fn allocated(&self) -> Result<Bytes> {
        self.store.allocated()
    }
}
