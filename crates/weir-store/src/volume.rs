//! A volume of a data directory: sparse files, and a size and attributes that
//! are found again.
//!
//! ```text
//! volumes/NAME/meta.json     size, attributes     (crate::meta)
//! volumes/NAME/data/00000    bytes                (crate::file)
//! volumes/NAME/sums/00000    with checksums: those of the blocks
//! volumes/NAME/open/00000    with checksums: the regions where they are unknown after a crash
//!                                                 (crate::sums)
//! volumes/NAME/layers/00000  instead of data, of a volume that knows its pages
//!                                                 (crate::paged)
//! volumes/NAME/changes       while it is closed   (crate::freeze)
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

mod bytes;

use crate::file::{self, FileStore, SEGMENT, segment_name, share};
use crate::freeze::{self, Folder, Freezable, Home as _};
use crate::lock::DirLock;
use crate::meta::{self, AttributeWithSize, Meta, MetaFile};
use crate::paged::PagedStore;
use crate::paged::folders::{self, Folders};
use crate::registry::Registration;
use crate::store::{Extent, Store};
use crate::sums::{self, FileSums, Shares};
use crate::{Result, StoreError, disk};
use bytes::{Kind, VolumeBytes};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use weir_units::Bytes;

pub(crate) const DATA: &str = "data";

/// The properties of a new volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewVolume {
    /// Its size, which is also its declared size.
    pub size: Bytes,
    /// Other facts to store with it.
    pub attributes: BTreeMap<String, String>,
    /// Its blocks have checksums. A volume that exists gets them or loses them when it is opened. `None`
    /// leaves it as it is, and a new volume without.
    pub checksums: Option<bool>,
}

/// A [`Store`] whose size and attributes survive like its bytes. It keeps the
/// lock of its data directory.
#[derive(Debug)]
pub struct Volume {
    name: String,
    /// The way of every change to the bytes.
    changed: Freezable,
    bytes: Arc<VolumeBytes>,
    meta: Arc<MetaFile>,
    registration: Registration<Self>,
}

/// The kind of a new volume: one that records its written pages, or a plain one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pages {
    Unknown,
    Known,
}

impl Volume {
    /// Opens the volume kept in `dir`, if there is one.
    pub(crate) fn open(
        dir: &Path,
        name: &str,
        (checksums, shares): (Option<bool>, &Shares),
        lock: Arc<DirLock>,
        registration: Registration<Self>,
    ) -> Result<Option<Self>> {
        let found = inspect(dir).inspect_err(|_| {
            // Whatever repairs it changes bytes that no record knows of.
            let _ = Folder(dir.to_owned()).forget();
        })?;
        let Some(found) = found else { return Ok(None) };
        // Its creation may have failed after the metadata was there, and before its name was durable.
        disk::sync_parent(dir)?;
        let meta = Arc::new(MetaFile::new(dir, found.clone()));
        let kind = if let Some(layers) = &found.layers {
            if checksums == Some(true) {
                return Err(StoreError::NoChecksums { volume: name.to_owned() });
            }
            Kind::Paged(Folders::open(dir, Arc::clone(&meta), layers)?)
        } else {
            let store = FileStore::open_segmented(dir.join(DATA), found.size, found.segment)?;
            store.cut()?;
            store.lengthen(found.size)?;
            match checksums.unwrap_or(found.checksums) {
                true => Kind::Summed(Box::new(with_sums(dir, name, store, (&meta, shares))?)),
                false => {
                    meta.change(|meta| meta.checksums = false)?;
                    sums::remove(dir)?;
                    Kind::Plain(store)
                }
            }
        };
        let bytes = Arc::new(VolumeBytes { kind, _lock: lock });
        let home = Box::new(Folder(dir.to_owned()));
        let changed = Freezable::opened(bytes.clone(), home);
        Ok(Some(Self { name: name.to_owned(), changed, bytes, meta, registration }))
    }

    /// Makes a volume in `dir`, where [`inspect`] found none. Until `meta.json`
    /// is there it does not exist; a crash before that leaves empty folders.
    pub(crate) fn create(
        dir: &Path,
        name: &str,
        new: NewVolume,
        (pages, shares): (Pages, &Shares),
        lock: Arc<DirLock>,
        registration: Registration<Self>,
    ) -> Result<Self> {
        // A crash may have left parts of a volume of the other kind.
        disk::remove_tree(&dir.join(folders::LAYERS))?;
        disk::remove_tree(&dir.join(DATA))?;
        disk::remove_file(&dir.join(freeze::FILE))?;
        sums::remove(dir)?;
        let checksums = new.checksums == Some(true);
        let first = Meta {
            size: new.size,
            declared_size: new.size,
            segment: SEGMENT,
            segments: BTreeSet::new(),
            attributes: new.attributes,
            layers: None,
            checksums,
        };
        let meta = Arc::new(MetaFile::new(dir, first));
        let kind = match pages {
            Pages::Known if checksums => {
                return Err(StoreError::NoChecksums { volume: name.to_owned() });
            }
            Pages::Known => Kind::Paged(Folders::create(dir, Arc::clone(&meta), new.size)?),
            Pages::Unknown => {
                let data = dir.join(DATA);
                std::fs::create_dir_all(&data).map_err(|e| StoreError::io("create", &data, e))?;
                let store = FileStore::open(data, new.size)?;
                if checksums {
                    FileSums::create(dir)?;
                }
                meta.get().save(dir)?;
                match checksums {
                    true => Kind::Summed(Box::new(FileSums::open_in(dir, name, store, shares)?)),
                    false => Kind::Plain(store),
                }
            }
        };
        dir.parent().map_or(Ok(()), disk::sync_dir)?;
        let bytes = Arc::new(VolumeBytes { kind, _lock: lock });
        let home = Box::new(Folder(dir.to_owned()));
        let changed = Freezable::recorded(bytes.clone(), home);
        Ok(Self { name: name.to_owned(), changed, bytes, meta, registration })
    }

    /// Returns the volume's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the volume as one that records its written pages, if it is one. Changes
    /// of bytes must go through the volume, which tracks them.
    #[must_use]
    pub fn paged(&self) -> Option<&PagedStore> {
        match &self.bytes.kind {
            Kind::Paged(store) => Some(store),
            Kind::Plain(_) | Kind::Summed(_) => None,
        }
    }

    /// Returns the number of reads, and of writes of parts of blocks, that failed on a damaged block, if blocks have
    /// checksums.
    #[must_use]
    pub fn damaged_reads(&self) -> Option<u64> {
        self.bytes.sums().map(FileSums::damaged_reads)
    }

    /// Returns the offsets of the blocks on which they failed, without those after the first thousand.
    #[must_use]
    pub fn damaged_blocks(&self) -> Vec<u64> {
        self.bytes.sums().map(FileSums::damaged_blocks).unwrap_or_default()
    }

    /// Computes checksums that are unknown, since a crash or because the volume had none, until about `budget`
    /// bytes are read. Returns whether some are still unknown: blocks that are read without verification.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if bytes cannot be read or checksums cannot be stored. Syncs try again.
    pub fn compute_checksums(&self, budget: Bytes) -> Result<bool> {
        let compute = || self.bytes.sums().map_or(Ok(false), |sums| sums.compute(budget.get()));
        self.registration.while_own(compute).unwrap_or(Ok(false))
    }

    /// Returns the most bytes whose checksums are unknown.
    #[must_use]
    pub fn unverified(&self) -> Bytes {
        Bytes::new(self.bytes.sums().map_or(0, FileSums::unknown_bytes))
    }

    /// Has `tell` called with the error of each damaged block that a request meets, once for each. It must not
    /// wait. Only the first such function is kept.
    pub fn on_damage(&self, tell: impl Fn(&StoreError) + Send + Sync + 'static) {
        if let Some(sums) = self.bytes.sums() {
            sums.on_damage(tell);
        }
    }

    /// Returns the volume's bytes as what can be frozen.
    #[must_use]
    pub fn freezable(&self) -> &Freezable {
        &self.changed
    }

    /// Records which blocks changed since the last full backup, for the next opening of the
    /// volume. The first change after this removes the record again. Dropping the volume also
    /// writes the record.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if that cannot be written: the changes are unknown then.
    pub fn record_changes(&self) -> Result<()> {
        // Also where there is nothing to record.
        let sync = || self.changed.sync().inspect_err(|_| self.changed.forget());
        let close = || self.bytes.sums().map_or(Ok(()), FileSums::close);
        let record = || sync().and_then(|()| self.changed.record()).and_then(|()| close());
        self.registration.while_own(record).unwrap_or(Ok(()))
    }

    /// Notes that its folder may be another volume's from now on.
    pub(crate) fn set_removed(&self) {
        self.paged().into_iter().for_each(PagedStore::set_removed);
    }

    /// Returns the volume's metadata.
    #[must_use]
    pub fn meta(&self) -> Meta {
        self.meta.get()
    }

    /// Resizes the volume durably. If it fails, the size is the old one, or the new one
    /// with space still to be freed; [`Store::size`] says which.
    pub fn set_size(&self, new: Bytes) -> Result<()> {
        self.changed.resized(new, || match &self.bytes.kind {
            Kind::Paged(store) => store.resize(new),
            Kind::Plain(store) => self.set_size_of(store, new),
            Kind::Summed(store) => store.resized(new, |store| self.set_size_of(store, new)),
        })
    }

    fn set_size_of(&self, store: &FileStore, new: Bytes) -> Result<()> {
        file::check_size(new)?;
        // Held over all of it, so that two resizes do not interleave.
        let mut meta = self.meta.lock();
        if new > meta.size {
            store.prepare(new)?;
        }
        let mut changed = Meta { size: new, ..meta.clone() };
        self.meta.add_attribute(&mut changed);
        changed.segments.retain(|number| share(new.get(), meta.segment.get(), *number) > 0);
        self.meta.replace(&mut meta, changed)?;
        store.adopt(new)?;
        store.cut()
    }

    /// Stores durably that the layout has asked for `size`.
    pub fn set_declared_size(&self, size: Bytes) -> Result<()> {
        self.meta.change(|meta| meta.declared_size = size)
    }

    /// Has the change to `size` store an attribute in the same step, so that a crash leaves both or none,
    /// until the returned value is dropped. There is one such attribute at a time.
    pub fn attribute_with_size(&self, size: Bytes, name: &str, value: &str) -> AttributeWithSize {
        self.meta.with_size(size, name, value)
    }

    /// Stores an attribute durably; `None` removes it.
    pub fn set_attribute(&self, name: &str, value: Option<&str>) -> Result<()> {
        self.meta.change(|meta| {
            match value {
                Some(value) => meta.attributes.insert(name.to_owned(), value.to_owned()),
                None => meta.attributes.remove(name),
            };
        })
    }
}

/// Opens the checksums of a volume in `dir`. One that has none gets some that are unknown.
fn with_sums(
    dir: &Path,
    name: &str,
    store: FileStore,
    (meta, shares): (&MetaFile, &Shares),
) -> Result<FileSums> {
    if !meta.get().checksums {
        FileSums::add(dir)?;
        // From here on every open region has unknown checksums, and all are open.
        meta.change(|meta| meta.checksums = true)?;
    }
    FileSums::open_in(dir, name, store, shares)
}

/// Lists the segments that are there to stay and are not listed yet.
fn list_segments(store: &FileStore, file: &MetaFile) -> Result<()> {
    let mut meta = file.lock();
    let mut listed = store.durable_segments();
    if listed.is_subset(&meta.segments) {
        return Ok(());
    }
    listed.extend(&meta.segments);
    let changed = Meta { segments: listed, ..meta.clone() };
    file.replace(&mut meta, changed)
}

/// Returns the metadata of the volume in the folder `dir`; `None` if there is
/// no volume, or one whose creation did not finish.
pub(crate) fn inspect(dir: &Path) -> Result<Option<Meta>> {
    let Some(mut meta) = Meta::load(dir)? else {
        return check_no_bytes(dir).map(|()| None);
    };
    let segment = meta.segment.get();
    match &mut meta.layers {
        Some(layers) => {
            for layer in &mut layers.stack {
                let data = folders::data_dir(dir, layer.number);
                check_segments(&mut layer.segments, layer.size, segment, &data)?;
            }
        }
        None => check_segments(&mut meta.segments, meta.size, segment, &dir.join(DATA))?,
    }
    Ok(Some(meta))
}

/// Refuses a folder that has a volume's bytes and nothing to say what they are of.
fn check_no_bytes(dir: &Path) -> Result<()> {
    let layers = dir.join(folders::LAYERS);
    let layers = disk::names_in(&layers)?.unwrap_or_default().into_iter().map(|l| layers.join(l));
    let layers = layers.map(|layer| layer.join(DATA));
    for data in layers.chain([dir.join(DATA)]) {
        if disk::names_in(&data)?.is_some_and(|segments| !segments.is_empty()) {
            let inside = data.strip_prefix(dir).unwrap_or(&data).display();
            return Err(StoreError::Damaged {
                what: format!(
                    "{} is missing, and {inside}/ beside it contains the bytes of a volume",
                    dir.join(meta::FILE).display()
                ),
                hint: "restore the file from a copy, or move the folder away to start with an \
                       empty volume",
            });
        }
    }
    Ok(())
}

/// Refuses a volume, or a layer of one, of which a file is missing or was cut.
fn check_segments(
    listed: &mut BTreeSet<u64>,
    size: Bytes,
    segment: u64,
    data: &Path,
) -> Result<()> {
    if !data.is_dir() {
        return Err(StoreError::Damaged {
            what: format!("{} is missing; it contained the bytes of the volume", data.display()),
            hint: "restore the folder from a copy; with an empty folder in its place, the volume \
                   reads as zeros",
        });
    }
    // One behind the end holds nothing that could be missed.
    listed.retain(|number| share(size.get(), segment, *number) > 0);
    for number in &*listed {
        let path = data.join(segment_name(*number));
        let share = share(size.get(), segment, *number);
        let found = match std::fs::metadata(&path) {
            Ok(found) => Some(found.len()),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
            Err(e) => return Err(StoreError::io("look at", &path, e)),
        };
        let damaged = |what: String| StoreError::Damaged {
            what: format!("{} {what}; it contained {share} bytes of the volume", path.display()),
            hint: "restore the file from a copy; to give up its bytes, extend it to that length \
                   with truncate -s, and they read as zeros",
        };
        match found {
            None => return Err(damaged("is missing".to_owned())),
            Some(len) if len < share => {
                return Err(damaged(format!("was truncated to {len} bytes")));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

impl Drop for Volume {
    fn drop(&mut self) {
        // Without the record the changes are unknown, as after a crash.
        let _ = self.record_changes();
    }
}

/// The bytes are the files' or the layers'; a resize is [`Volume::set_size`].
impl Store for Volume {
    fn size(&self) -> Bytes {
        self.changed.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.changed.read_at(offset, buf)
    }

    fn try_read_at(&self, offset: u64, buf: &mut [u8]) -> Result<bool> {
        self.changed.try_read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.changed.write_at(offset, data)
    }

    fn write_zeroes(&self, offset: u64, len: u64, may_trim: bool) -> Result<()> {
        self.changed.write_zeroes(offset, len, may_trim)
    }

    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        self.changed.trim(offset, len)
    }

    fn sync(&self) -> Result<()> {
        self.changed.sync().inspect_err(|_| self.changed.forget())?;
        self.bytes.files().map_or(Ok(()), |store| list_segments(store, &self.meta))
    }

    fn resize(&self, new: Bytes) -> Result<()> {
        self.set_size(new)
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>> {
        self.changed.extents(offset, len, max)
    }

    fn syncs(&self) -> usize {
        self.changed.syncs()
    }

    fn allocated(&self) -> Result<Bytes> {
        self.changed.allocated()
    }
}
