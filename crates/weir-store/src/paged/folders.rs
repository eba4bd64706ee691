//! Layers in folders of a volume, and their list in its `meta.json`.
//!
//! ```text
//! volumes/NAME/layers/00003/map, log     which pages it has     (super::log)
//! volumes/NAME/layers/00003/data/00000   their bytes            (crate::file)
//! ```
//!
//! A folder that is not in the list is a layer that was not taken into it yet, or is not
//! any more, when a crash came. It is removed when the volume is opened.

use super::home::{Home, LayerList, ListedLayer};
use super::layer::Parts;
use super::log::{Files, MapLog};
use crate::file::{FileStore, share};
use crate::meta::{LayerMeta, Layers, Meta, MetaFile};
use crate::sync::locked;
use crate::{PagedStore, Result, disk, file};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use weir_units::Bytes;

/// The folder of a volume's layers.
pub(crate) const LAYERS: &str = "layers";
const DATA: &str = "data";

/// The folders of a volume's layers.
#[derive(Debug)]
pub(crate) struct Folders {
    dir: PathBuf,
    meta: Arc<MetaFile>,
    /// The layers in use, to ask them what of their segments is durable.
    stores: Mutex<BTreeMap<u64, Weak<FileStore>>>,
}

/// Returns the folder of a layer's bytes, in a volume's folder.
pub(crate) fn data_dir(volume: &Path, number: u64) -> PathBuf {
    volume.join(LAYERS).join(layer_name(number)).join(DATA)
}

fn layer_name(number: u64) -> String {
    format!("{number:05}")
}

fn layer_of(meta: &mut Meta, number: u64) -> Option<&mut LayerMeta> {
    let stack = &mut meta.layers.as_mut()?.stack;
    stack.iter_mut().find(|layer| layer.number == number)
}

/// Verifies the map and the log of a layer in the folder `volume`.
pub(crate) fn check(volume: &Path, number: u64) -> Result<()> {
    let dir = volume.join(LAYERS).join(layer_name(number));
    MapLog::open(Box::new(Files::new(&dir))).map(drop)
}

impl Folders {
    fn new(volume: &Path, meta: Arc<MetaFile>) -> Self {
        Self { dir: volume.join(LAYERS), meta, stores: Mutex::default() }
    }

    /// Returns a new volume in the folder `volume`. It exists when its `meta.json` does.
    pub(crate) fn create(volume: &Path, meta: Arc<MetaFile>, size: Bytes) -> Result<PagedStore> {
        let folders = Self::new(volume, meta);
        folders.check_size(size)?;
        PagedStore::create(Arc::new(folders), size)
    }

    /// Returns the volume in the folder `volume`, whose layers are `layers`.
    pub(crate) fn open(volume: &Path, meta: Arc<MetaFile>, layers: &Layers) -> Result<PagedStore> {
        let folders = Self::new(volume, meta);
        // A process that was killed may have put the list in its place just before. It must
        // not be the one before again, after a power loss, when its layers are gone.
        disk::sync_dir(volume)?;
        let kept: BTreeSet<_> = layers.stack.iter().map(|layer| layer_name(layer.number)).collect();
        for name in disk::names_in(&folders.dir)?.unwrap_or_default() {
            if !kept.contains(&name) {
                disk::remove_tree(&folders.dir.join(name))?;
            }
        }
        let parts = layers.stack.iter().map(|layer| folders.parts(layer.number, layer.size));
        let parts = parts.collect::<Result<_>>()?;
        let listed = layers.stack.iter().map(|layer| ListedLayer {
            number: layer.number,
            size: layer.size,
            snapshot: layer.snapshot,
        });
        let list = LayerList { layers: listed.collect(), next_snapshot: layers.next_snapshot };
        PagedStore::open(Arc::new(folders), &list, parts)
    }

    fn layer_dir(&self, number: u64) -> PathBuf {
        self.dir.join(layer_name(number))
    }

    fn parts(&self, number: u64, size: Bytes) -> Result<Parts> {
        let dir = self.layer_dir(number);
        let segment = self.meta.get().segment;
        let bytes = FileStore::open_segmented(dir.join(DATA), size, segment)?;
        bytes.cut()?;
        bytes.lengthen(size)?;
        let bytes = Arc::new(bytes);
        locked(&self.stores).insert(number, Arc::downgrade(&bytes));
        Ok(Parts { bytes, medium: Some(Box::new(Files::new(&dir))) })
    }
}

impl Home for Folders {
    fn check_size(&self, size: Bytes) -> Result<()> {
        file::check_size(size)
    }

    fn make(&self, number: u64, size: Bytes) -> Result<Parts> {
        let dir = self.layer_dir(number);
        disk::remove_tree(&dir)?;
        disk::create_dirs(&dir.join(DATA))?;
        self.parts(number, size)
    }

    fn save(&self, list: &LayerList) -> Result<()> {
        self.meta.change_size(|meta| {
            let before = meta.layers.take().map_or_else(Vec::new, |layers| layers.stack);
            let segment = meta.segment.get();
            let stack = list.layers.iter().map(|layer| {
                let known = before.iter().find(|known| known.number == layer.number);
                let mut segments = known.map_or_else(BTreeSet::new, |k| k.segments.clone());
                // One behind the end holds nothing that could be missed.
                segments.retain(|number| share(layer.size.get(), segment, *number) > 0);
                let ListedLayer { number, size, snapshot } = *layer;
                LayerMeta { number, size, snapshot, segments }
            });
            let stack: Vec<_> = stack.collect();
            if let Some(top) = stack.last() {
                meta.size = top.size;
            }
            meta.layers = Some(Layers { next_snapshot: list.next_snapshot, stack });
        })
    }

    /// Lists the segments that are there to stay and are not listed yet.
    fn synced(&self, number: u64) -> Result<()> {
        let store = locked(&self.stores).get(&number).and_then(Weak::upgrade);
        let Some(store) = store else { return Ok(()) };
        let mut meta = self.meta.lock();
        let segment = meta.segment.get();
        let Some(layer) = layer_of(&mut meta, number) else { return Ok(()) };
        let size = layer.size.get();
        let mut durable = store.durable_segments();
        durable.retain(|number| share(size, segment, *number) > 0);
        if durable.is_subset(&layer.segments) {
            return Ok(());
        }
        let mut changed = meta.clone();
        layer_of(&mut changed, number).into_iter().for_each(|l| l.segments.append(&mut durable));
        self.meta.replace(&mut meta, changed)
    }

    fn remove(&self, number: u64) -> Result<()> {
        locked(&self.stores).remove(&number);
        disk::remove_tree(&self.layer_dir(number))
    }
}
