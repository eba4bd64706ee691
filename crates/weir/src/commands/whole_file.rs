//! Files that are written under a temporary name and renamed when they are whole.

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::NamedTempFile;

/// Creates a temporary file in a folder, with the default permissions of new files. It is removed
/// unless it is kept.
pub(super) fn part_in(folder: &Path) -> io::Result<NamedTempFile> {
    let all = Permissions::from_mode(0o666);
    tempfile::Builder::new().prefix(".").suffix(".part").permissions(all).tempfile_in(folder)
}

/// Creates a temporary file for `path`.
pub(super) fn part_of(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|own| !own.as_os_str().is_empty());
    part_in(folder.unwrap_or(Path::new(".")))
}

/// Gives a temporary file its name, in place of another file.
pub(super) fn keep(part: NamedTempFile, path: &Path) -> io::Result<()> {
    part.as_file().sync_all()?;
    part.persist(path).map(drop).map_err(|error| error.error)
}

/// Writes a file as a whole.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut part = part_of(path)?;
    part.write_all(bytes)?;
    keep(part, path)
}
