//! Metadata of a volume: `meta.json`.
//!
//! ```json
//! {
//!   "format": "weir volume 2",
//!   "crc32": "79d94846",
//!   "volume": { "size": "1 TiB", ... }
//! }
//! ```
//!
//! The checksum is over the format and the bytes of `volume` as they stand, so
//! an edit by hand is found as surely as a broken sector.
//!
//! The segments that have files are listed, so that one that is missing or was cut
//! is found too. A segment is listed when a sync has made its file durable, before
//! the sync returns; so a file that is not listed is one that no sync has promised
//! yet, and a crash between the two leaves nothing to complain about.
//!
//! Format 1 lists no segments. It is read, and the next sync writes format 2. A volume with checksums has
//! `"checksums": true` and format 3, since a release that does not know them would write bytes without them.
//!
//! A volume that knows its pages lists its layers, and the segments of each of them:
//!
//! ```json
//! "segments": [],
//! "layers": { "next_snapshot": 3, "stack": [
//!   { "number": 0, "size": "512 GiB", "snapshot": 2, "segments": [0] },
//!   { "number": 4, "size": "1 TiB", "segments": [] }
//! ] }
//! ```
//!
//! The last of the stack is the one that is written to, and has the volume's size.

use crate::sync::locked;
use crate::{Result, StoreError, disk};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use weir_units::Bytes;

/// The name of the file.
pub(crate) const FILE: &str = "meta.json";
pub(crate) const FORMAT: &str = "weir volume 2";
/// The format of volumes with checksums.
const SUMMED: &str = "weir volume 3";
/// The format of volumes that list no segments.
const UNLISTED: &str = "weir volume 1";
/// The formats that are read.
const KNOWN: [&str; 3] = [UNLISTED, FORMAT, SUMMED];
const MAX_LEN: u64 = 64 << 20;
const HINT: &str =
    "restore the file from a copy; the volume's bytes in data/ beside it are untouched";

/// The metadata of a volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// The size of the volume in bytes.
    pub size: Bytes,
    /// The size in the layout when it was last applied: a layout that
    /// still says so does not undo a resize made since.
    pub declared_size: Bytes,
    /// The bytes of the volume in one file.
    pub segment: Bytes,
    /// The files that are there, in the length of their share of the volume.
    #[serde(default)]
    pub segments: BTreeSet<u64>,
    /// Whatever the server wants to find again: tier, cache, limits.
    pub attributes: BTreeMap<String, String>,
    /// The layers of a volume that knows its pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<Layers>,
    /// Its blocks have checksums, in `sums/` beside the bytes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub checksums: bool,
}

/// The layers of a volume that records its written pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layers {
    /// The number of the snapshot that is taken next.
    pub next_snapshot: u64,
    /// From the lowest to the one that is written to.
    pub stack: Vec<LayerMeta>,
}

/// The metadata of a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerMeta {
    /// Its folder.
    pub number: u64,
    /// The size of the volume in this layer.
    pub size: Bytes,
    /// The snapshot that ends with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<u64>,
    /// The files that are there, in the length of their share of the size.
    pub segments: BTreeSet<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    format: String,
    crc32: String,
    volume: Box<RawValue>,
}

impl Envelope {
    fn checksum(&self) -> String {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(self.format.as_bytes());
        hasher.update(b"\n");
        hasher.update(self.volume.get().as_bytes());
        format!("{:08x}", hasher.finalize())
    }
}

/// Returns the content of a file with its checksum.
pub(crate) fn sealed(format: &str, volume: Box<RawValue>) -> serde_json::Result<String> {
    let mut envelope = Envelope { format: format.to_owned(), crc32: String::new(), volume };
    envelope.crc32 = envelope.checksum();
    serde_json::to_string_pretty(&envelope).map(|text| text + "\n")
}

impl Meta {
    /// Reads the file in `dir`, if there is one.
    pub(crate) fn load(dir: &Path) -> Result<Option<Self>> {
        let path = dir.join(FILE);
        let Some(content) = disk::read_small(&path, MAX_LEN)? else { return Ok(None) };
        Self::parse(path, &content).map(Some)
    }

    /// Parses the content of the file at `path`.
    pub(crate) fn parse(path: PathBuf, content: &[u8]) -> Result<Self> {
        let damaged = |what: String| StoreError::Damaged {
            what: format!("{} {what}", path.display()),
            hint: HINT,
        };
        let unreadable = |e: serde_json::Error| damaged(format!("cannot be read: {e}"));
        let envelope: Envelope = serde_json::from_slice(content).map_err(unreadable)?;
        let computed = envelope.checksum();
        if computed != envelope.crc32 {
            let found = &envelope.crc32;
            return Err(damaged(format!(
                "was changed: its checksum says {found:?}, its content has {computed:?}"
            )));
        }
        if !KNOWN.contains(&envelope.format.as_str()) {
            return Err(StoreError::Version { path, found: envelope.format, known: &KNOWN });
        }
        let meta: Self = serde_json::from_str(envelope.volume.get()).map_err(unreadable)?;
        if meta.segment == Bytes::ZERO {
            return Err(damaged("has a segment size of zero".to_owned()));
        }
        let top = meta.layers.as_ref().map(|layers| layers.stack.last().map(|top| top.size));
        if top.is_some_and(|size| size != Some(meta.size)) {
            return Err(damaged("has no layer of the volume's size on top".to_owned()));
        }
        Ok(meta)
    }

    /// Puts this in place of what the file in `dir` says.
    pub(crate) fn save(&self, dir: &Path) -> Result<()> {
        self.save_as(if self.checksums { SUMMED } else { FORMAT }, dir)
    }

    fn save_as(&self, format: &str, dir: &Path) -> Result<()> {
        let encoded = to_raw_value(self).and_then(|volume| sealed(format, volume));
        let text = encoded.map_err(|e| StoreError::io("encode", &dir.join(FILE), e.into()))?;
        disk::replace_file(dir, FILE, text.as_bytes())
    }
}

/// The metadata of an open volume: in memory, and the same in its file.
#[derive(Debug)]
pub(crate) struct MetaFile {
    dir: PathBuf,
    meta: Mutex<Meta>,
    with_size: Mutex<Option<WithSize>>,
}

/// An attribute that is stored by the change to a size.
#[derive(Debug)]
struct WithSize {
    size: Bytes,
    name: String,
    value: String,
}

/// Stores an attribute with a change of size, until it is dropped
/// ([`Volume::attribute_with_size`](crate::Volume::attribute_with_size)).
#[derive(Debug)]
#[must_use = "the attribute is stored only while this exists"]
pub struct AttributeWithSize(Arc<MetaFile>);

impl Drop for AttributeWithSize {
    fn drop(&mut self) {
        *locked(&self.0.with_size) = None;
    }
}

impl MetaFile {
    /// Takes the file in `dir`, which has `meta`, or is to have it with the first change.
    pub(crate) fn new(dir: &Path, meta: Meta) -> Self {
        Self { dir: dir.to_owned(), meta: Mutex::new(meta), with_size: Mutex::new(None) }
    }

    /// Stores the attribute with the change that makes `size` the size.
    pub(crate) fn with_size(
        self: &Arc<Self>,
        size: Bytes,
        name: &str,
        value: &str,
    ) -> AttributeWithSize {
        let with = WithSize { size, name: name.to_owned(), value: value.to_owned() };
        *locked(&self.with_size) = Some(with);
        AttributeWithSize(Arc::clone(self))
    }

    pub(crate) fn get(&self) -> Meta {
        self.lock().clone()
    }

    /// Locks it, so that it does not change meanwhile.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Meta> {
        locked(&self.meta)
    }

    /// Changes it, durably.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Meta)) -> Result<()> {
        let mut meta = self.lock();
        let mut changed = meta.clone();
        change(&mut changed);
        if changed == *meta { Ok(()) } else { self.replace(&mut meta, changed) }
    }

    /// Changes the size, durably, with the attribute that is stored with it.
    pub(crate) fn change_size(&self, change: impl FnOnce(&mut Meta)) -> Result<()> {
        self.change(|meta| {
            change(meta);
            self.add_attribute(meta);
        })
    }

    /// Adds the attribute that is stored with the size, if `changed` has this size.
    pub(crate) fn add_attribute(&self, changed: &mut Meta) {
        if let Some(with) = &*locked(&self.with_size)
            && with.size == changed.size
        {
            changed.attributes.insert(with.name.clone(), with.value.clone());
        }
    }

    /// Puts `changed` in place of what [`lock`](Self::lock) gave.
    pub(crate) fn replace(&self, meta: &mut Meta, changed: Meta) -> Result<()> {
        changed.save(&self.dir).inspect_err(|_| {
            // If it failed late, the file may be the new one already, and a
            // smaller size in it would cut off what is written from here on.
            let _ = meta.save(&self.dir);
        })?;
        *meta = changed;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::fuzz::example;
    use std::fs;

    /// Loads what is left of a saved file after `change`; errors without the folder.
    fn loaded(change: impl FnOnce(&mut Vec<u8>)) -> std::result::Result<Meta, (ErrorKind, String)> {
        let dir = tempfile::tempdir().unwrap();
        example().save(dir.path()).unwrap();
        let path = dir.path().join(FILE);
        let mut content = fs::read(&path).unwrap();
        change(&mut content);
        fs::write(&path, &content).unwrap();
        let folder = format!("{}/", dir.path().display());
        Meta::load(dir.path())
            .map(|found| found.unwrap())
            .map_err(|e| (e.kind(), e.to_string().replace(&folder, "")))
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut Vec<u8>), kind: ErrorKind, message: &str) {
        assert_eq!(loaded(change), Err((kind, message.to_owned())));
    }

    #[test]
    fn metadata_is_loaded_as_saved_in_the_documented_format() {
        assert_eq!(loaded(|_| {}), Ok(example()));
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Meta::load(dir.path()).unwrap(), None);
        example().save(dir.path()).unwrap();
        let text = fs::read_to_string(dir.path().join(FILE)).unwrap();
        // The checksum is from another implementation of CRC-32, over the same bytes.
        assert_eq!(text, EXAMPLE_FILE);
    }

    const EXAMPLE_FILE: &str = r#"{
  "format": "weir volume 2",
  "crc32": "79d94846",
  "volume": {"size":"1 TiB","declared_size":"512 GiB","segment":"1 TiB","segments":[0],"attributes":{"tier":"P30"}}
}
"#;

    #[test]
    fn every_flipped_bit_is_found() {
        let dir = tempfile::tempdir().unwrap();
        for bit in 0..EXAMPLE_FILE.len() * 8 {
            let mut content = EXAMPLE_FILE.as_bytes().to_vec();
            content[bit / 8] ^= 1 << (bit % 8);
            fs::write(dir.path().join(FILE), content).unwrap();
            let error = Meta::load(dir.path()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Damaged, "bit {bit}: {error}");
        }
    }

    #[test]
    fn damage_is_named() {
        let at = |text: &str| EXAMPLE_FILE.find(text).unwrap();
        check(
            |content| content[at("1 TiB")] = b'2',
            ErrorKind::Damaged,
            "meta.json was changed: its checksum says \"79d94846\", its content has \"d597e328\"",
        );
        check(
            |content| content.truncate(40),
            ErrorKind::Damaged,
            "meta.json cannot be read: EOF while parsing an object at line 3 column 9",
        );
        check(
            Vec::clear,
            ErrorKind::Damaged,
            "meta.json cannot be read: EOF while parsing a value at line 1 column 0",
        );
        check(
            |content| content.fill(0),
            ErrorKind::Damaged,
            "meta.json cannot be read: expected value at line 1 column 1",
        );
    }

    #[test]
    fn a_crash_while_saving_leaves_the_old_or_the_new() {
        let dir = tempfile::tempdir().unwrap();
        example().save(dir.path()).unwrap();
        // Before the rename: a part of the new file lies beside the old one.
        fs::write(dir.path().join("meta.json.tmp"), "{\"form").unwrap();
        assert_eq!(Meta::load(dir.path()).unwrap(), Some(example()));
        let grown = Meta { size: Bytes::gib(2048), ..example() };
        grown.save(dir.path()).unwrap();
        assert_eq!(Meta::load(dir.path()).unwrap(), Some(grown));
        assert!(!dir.path().join("meta.json.tmp").exists());
    }

    /// Notices a file that takes its name before its content is durable.
    #[test]
    fn metadata_that_cannot_be_synced_does_not_take_its_name() {
        let dir = tempfile::tempdir().unwrap();
        // A device takes writes, and is never synced.
        std::os::unix::fs::symlink("/dev/null", dir.path().join("meta.json.tmp")).unwrap();
        assert_eq!(example().save(dir.path()).unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(Meta::load(dir.path()).unwrap(), None);
    }

    #[test]
    fn a_file_of_the_format_before_lists_no_segments() {
        let dir = tempfile::tempdir().unwrap();
        // Written by the release before, byte for byte.
        let text = r#"{
  "format": "weir volume 1",
  "crc32": "1c283b5f",
  "volume": {"size":"1 TiB","declared_size":"512 GiB","segment":"1 TiB","attributes":{"tier":"P30"}}
}
"#;
        fs::write(dir.path().join(FILE), text).unwrap();
        let expect = Meta { segments: BTreeSet::new(), ..example() };
        assert_eq!(Meta::load(dir.path()).unwrap(), Some(expect));
    }

    #[test]
    fn another_format_is_not_damage() {
        let dir = tempfile::tempdir().unwrap();
        example().save_as("weir volume 4", dir.path()).unwrap();
        let error = Meta::load(dir.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Version);
        assert_eq!(
            error.to_string(),
            format!(
                "{}/meta.json has format \"weir volume 4\", this release reads \"weir volume 1\", \
                 \"weir volume 2\" and \"weir volume 3\"",
                dir.path().display()
            )
        );
    }
}
