//! A data directory compared with what it says about itself, without changing it.
//!
//! | part | compared with |
//! |---|---|
//! | `format` | the formats that this release reads |
//! | `meta.json` | its checksum |
//! | segments | the list of them, and their lengths |
//! | blocks of a volume with checksums | their checksums, unless these are unknown |
//! | the list of open regions | its checksum |
//! | bytes without checksums | nothing: they are only read |
//! | maps and logs of layers | their checksums |

use crate::dir::{VOLUMES, check_format};
use crate::file::{FileStore, segment_name};
use crate::lock::DirLock;
use crate::paged::folders;
use crate::pieces::{index, pieces};
use crate::store::{ExtentKind, Store};
use crate::sums::{BLOCK, FileSums, missing};
use crate::volume::{self, DATA};
use crate::{DamagedRange, ErrorKind, Result, StoreError, disk, name};
use std::path::{Path, PathBuf};
use weir_units::Bytes;

/// The bytes that are read at once where there are no checksums.
const READ: u64 = 1 << 20;

/// The bytes whose extents are listed at once.
const LISTED: u64 = 1 << 30;

/// Damage of one of two copies.
const COPY: &str = "a copy of the list of open regions is damaged, or a loss of power tore it; the other one may be \
                    older, so all checksums of the volume are unknown, and the next server computes them";

/// A data directory that is checked. Its lock is held, so no server changes it meanwhile.
#[derive(Debug)]
pub struct FolderCheck {
    path: PathBuf,
    _lock: DirLock,
}

/// Damage of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// The damaged bytes, if they are known.
    pub bytes: Option<DamagedBytes>,
    /// The damage.
    pub what: String,
}

/// A damaged range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DamagedBytes {
    /// The first byte in the file.
    pub offset: u64,
    /// The first byte in the volume, except for bytes of a layer.
    pub volume_offset: Option<u64>,
    /// The length in bytes.
    pub len: u64,
}

/// The extent of a check of one volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedVolume {
    /// The size of the volume; `None` if its metadata is damaged.
    pub size: Option<Bytes>,
    /// True if its blocks have checksums.
    pub has_checksums: bool,
    /// Bytes that were compared with their checksums.
    pub verified: u64,
    /// Bytes in open regions, whose checksums are unknown.
    pub unknown: u64,
    /// Bytes without checksums.
    pub unverified: u64,
}

impl FolderCheck {
    /// Locks the data directory at `path`, which must be one. `holder` names the caller to other processes.
    pub fn open(path: impl Into<PathBuf>, holder: &str) -> Result<Self> {
        let path = path.into();
        if !path.is_dir() {
            let found = if path.exists() { "is not a folder" } else { "does not exist" };
            return Err(StoreError::NoFolder { dir: path, found });
        }
        match check_format(&path) {
            Ok(true) => {}
            Ok(false) | Err(StoreError::Foreign { .. }) => {
                let found = "is not a Weir data directory: it has no valid file \"format\"";
                return Err(StoreError::NoFolder { dir: path, found });
            }
            Err(error) => return Err(error),
        }
        let lock = DirLock::take(&path, holder)?;
        Ok(Self { path, _lock: lock })
    }

    /// Returns the names of the volumes.
    pub fn volumes(&self) -> Result<Vec<String>> {
        let volumes = self.path.join(VOLUMES);
        let mut names = disk::names_in(&volumes)?.unwrap_or_default();
        names.retain(|name| name::check(name).is_ok() && volumes.join(name).is_dir());
        Ok(names)
    }

    /// Returns the entries beside the folders of the volumes that are not folders.
    pub fn strays(&self) -> Result<Vec<PathBuf>> {
        let volumes = self.path.join(VOLUMES);
        let names = disk::names_in(&volumes)?.unwrap_or_default();
        let all = names.into_iter().map(|name| volumes.join(name));
        Ok(all.filter(|path| !path.is_dir()).collect())
    }

    /// Checks a volume, and passes its damage to `report`. Returns `None` if there is none of that name, or one
    /// whose creation did not finish.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the volume cannot be checked, for example because a later release wrote it.
    pub fn check(
        &self,
        name: &str,
        report: &mut dyn FnMut(Damage),
    ) -> Result<Option<CheckedVolume>> {
        name::check(name)?;
        let dir = self.path.join(VOLUMES).join(name);
        let mut checked = CheckedVolume {
            size: None,
            has_checksums: false,
            verified: 0,
            unknown: 0,
            unverified: 0,
        };
        let done = check_volume(&dir, name, &mut checked, report);
        match done {
            Ok(is_there) => Ok(is_there.then_some(checked)),
            Err(error) if error.kind() == ErrorKind::Damaged => {
                let what = match error.hint() {
                    Some(hint) => format!("{error}; {hint}"),
                    None => error.to_string(),
                };
                report(Damage { path: dir, bytes: None, what });
                Ok(Some(checked))
            }
            Err(error) => Err(error),
        }
    }
}

fn check_volume(
    dir: &Path,
    name: &str,
    checked: &mut CheckedVolume,
    report: &mut dyn FnMut(Damage),
) -> Result<bool> {
    let Some(meta) = volume::inspect(dir)? else { return Ok(false) };
    (checked.size, checked.has_checksums) = (Some(meta.size), meta.checksums);
    if let Some(layers) = &meta.layers {
        for layer in &layers.stack {
            // A damaged layer does not keep the others from being checked.
            if let Err(error) = folders::check(dir, layer.number) {
                report(Damage { path: dir.to_owned(), bytes: None, what: error.to_string() });
            }
            let data = folders::data_dir(dir, layer.number);
            let store = FileStore::open_segmented(&data, layer.size, meta.segment)?;
            let mut told = |found| tell(found, &data, meta.segment, false, report);
            checked.unverified += read_all(&store, &mut told)?;
        }
        return Ok(true);
    }
    let data = dir.join(DATA);
    let store = FileStore::open_segmented(&data, meta.size, meta.segment)?;
    if meta.checksums {
        let sums = FileSums::look_in(dir, name, store)?;
        if let Some((path, offset, len)) = sums.damaged_copy(dir) {
            let bytes = Some(DamagedBytes { offset, volume_offset: None, len });
            report(Damage { path, bytes, what: COPY.to_owned() });
        }
        let scrub = sums.scrub(|mut found| {
            found.reason = found.reason.or_else(|| missing(dir, found.offset));
            tell(found, &data, meta.segment, true, report);
        })?;
        (checked.verified, checked.unknown) = (scrub.verified, scrub.unknown);
    } else {
        let mut told = |found| tell(found, &data, meta.segment, true, report);
        checked.unverified = read_all(&store, &mut told)?;
    }
    Ok(true)
}

/// Reports a damaged range of a volume by the files that contain it.
fn tell(
    found: DamagedRange,
    data: &Path,
    segment: Bytes,
    is_volume: bool,
    report: &mut dyn FnMut(Damage),
) {
    for piece in pieces(found.offset, found.len, segment.get()) {
        let volume_offset = is_volume.then_some(found.offset + piece.at);
        let what = found.reason.clone();
        report(Damage {
            path: data.join(segment_name(piece.unit)),
            bytes: Some(DamagedBytes { offset: piece.start, volume_offset, len: piece.len }),
            what: what.unwrap_or_else(|| "the bytes are not those of their checksums".to_owned()),
        });
    }
}

/// Reads all bytes that a store has, and returns their number. What cannot be read is damage.
fn read_all(store: &FileStore, report: &mut dyn FnMut(DamagedRange)) -> Result<u64> {
    let mut read = 0;
    let mut buffer = vec![0; index(READ)];
    for listed in pieces(0, store.size().get(), LISTED) {
        let mut at = listed.at;
        for extent in store.extents(at, listed.len, usize::MAX)? {
            let is_data = extent.kind == ExtentKind::Data;
            for piece in pieces(at, extent.len, READ).filter(|_| is_data) {
                let (offset, len) = (at + piece.at, piece.len);
                if store.read_at(offset, &mut buffer[..index(len)]).is_err() {
                    read_blocks(store, (offset, len), report);
                }
                read += len;
            }
            at += extent.len;
        }
    }
    Ok(read)
}

/// Reports those blocks of a range that cannot be read.
fn read_blocks(store: &FileStore, (offset, len): (u64, u64), report: &mut dyn FnMut(DamagedRange)) {
    let mut buffer = vec![0; index(BLOCK)];
    for piece in pieces(offset, len, BLOCK) {
        let (offset, len) = (offset + piece.at, piece.len);
        if let Err(error) = store.read_at(offset, &mut buffer[..index(len)]) {
            let reason = Some(crate::sums::told(&error));
            report(DamagedRange { offset, len, reason });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_over_a_border_of_files_is_told_for_each_with_its_place_in_both() {
        let told = |is_volume| {
            let mut told = Vec::new();
            let found = DamagedRange { offset: 3 * BLOCK, len: 2 * BLOCK, reason: None };
            let mut report = |damage: Damage| told.push((damage.path, damage.bytes.unwrap()));
            tell(found, Path::new("data"), Bytes::new(4 * BLOCK), is_volume, &mut report);
            told
        };
        let place = |offset, volume_offset| DamagedBytes { offset, volume_offset, len: BLOCK };
        let files = [PathBuf::from("data/00000"), PathBuf::from("data/00001")];
        let [first, second] = files.clone();
        let of_volume =
            [(first, place(3 * BLOCK, Some(3 * BLOCK))), (second, place(0, Some(4 * BLOCK)))];
        assert_eq!(told(true), of_volume);
        let [first, second] = files;
        let of_layer = [(first, place(3 * BLOCK, None)), (second, place(0, None))];
        assert_eq!(told(false), of_layer);
    }

    /// Notices bytes that are left out or have another place, and a file that is read forever.
    #[test]
    fn each_block_that_cannot_be_read_is_told_and_the_others_are_not() {
        const LEN: u64 = 2 * READ;
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("00000"), [1; 8192]).unwrap();
        // Nothing is mapped at the lowest addresses of a process.
        std::os::unix::fs::symlink("/proc/self/mem", dir.path().join("00001")).unwrap();
        let (size, segment) = (Bytes::new(2 * LEN), Bytes::new(LEN));
        let store = FileStore::open_segmented(dir.path(), size, segment).unwrap();
        let mut told = Vec::new();
        let read = read_all(&store, &mut |found| told.push(found)).unwrap();
        assert!((LEN + 8192..2 * LEN).contains(&read), "{read}");
        let places = (LEN..2 * LEN).step_by(index(BLOCK)).map(|at| (at, BLOCK));
        assert!(told.iter().map(|found| (found.offset, found.len)).eq(places), "{told:?}");
        assert!(told.iter().all(|found| found.reason.is_some()));
    }
}
