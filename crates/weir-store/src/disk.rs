//! Changes of small files and folders that a power loss leaves done or not done.

use crate::{Result, StoreError};
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

/// Replaces the content of a file atomically: a reader finds the old content or the new one, also
/// after a crash. The temporary file that a crash may leave is overwritten the next time.
pub(crate) fn replace_file(dir: &Path, name: &str, content: &[u8]) -> Result<()> {
    let path = dir.join(name);
    let temporary = dir.join(format!("{name}.tmp"));
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()
    });
    if let Err(e) = written.and_then(|()| fs::rename(&temporary, &path)) {
        // The old content is still in place; the leftover only takes space.
        let _ = fs::remove_file(&temporary);
        return Err(StoreError::io("write", &path, e));
    }
    sync_dir(dir)
}

/// Makes the names in a folder durable.
pub(crate) fn sync_dir(dir: &Path) -> Result<()> {
    File::open(dir).and_then(|d| d.sync_all()).map_err(|e| StoreError::io("sync", dir, e))?;
    #[cfg(test)]
    synced::note(dir);
    Ok(())
}

/// Makes the name of a folder durable. Ignores a parent that this process may not read, or that cannot be synced: this
/// program did not create a folder there.
pub(crate) fn sync_parent(dir: &Path) -> Result<()> {
    // Read-only file systems and automounters cannot sync a folder.
    let is_ignored = |kind| {
        let kinds =
            [ErrorKind::PermissionDenied, ErrorKind::InvalidInput, ErrorKind::ReadOnlyFilesystem];
        kinds.contains(&kind)
    };
    match sync_dir(parent_of(dir)) {
        Err(StoreError::Io { source, .. }) if is_ignored(source.kind()) => Ok(()),
        synced => synced,
    }
}

fn parent_of(dir: &Path) -> &Path {
    match dir.parent() {
        // The parent of a relative path of one part is written as "".
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Creates a folder, and those above it, unless it is there; makes the names of
/// new ones durable.
pub(crate) fn create_dirs(dir: &Path) -> Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let parent = parent_of(dir);
    create_dirs(parent)?;
    match fs::create_dir(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists || !dir.is_dir() => {
            Err(StoreError::io("create", dir, e))
        }
        _ => sync_dir(parent),
    }
}

/// Gives a folder another name; whether it was there.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<bool> {
    match fs::rename(from, to) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(StoreError::io("remove", from, e)),
    }
}

/// Removes a folder and all that is in it, if it is there.
pub(crate) fn remove_tree(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(StoreError::io("remove", dir, e)),
        _ => Ok(()),
    }
}

/// Removes a file, if it is there.
pub(crate) fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(StoreError::io("remove", path, e))
        }
        _ => Ok(()),
    }
}

/// Reads at most `limit` bytes of a small file; `None` if there is none.
pub(crate) fn read_small(path: &Path, limit: u64) -> Result<Option<Vec<u8>>> {
    let mut content = Vec::new();
    let read = File::open(path).and_then(|file| file.take(limit).read_to_end(&mut content));
    match read {
        Ok(_) => Ok(Some(content)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(StoreError::io("read", path, e)),
    }
}

/// Returns the names in a folder, sorted; `None` where there is no folder.
pub(crate) fn names_in(dir: &Path) -> Result<Option<Vec<String>>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(StoreError::io("read", dir, e)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|e| StoreError::io("read", dir, e))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(Some(names))
}

/// The folders whose names a test has made durable.
#[cfg(test)]
pub(crate) mod synced {
    use std::cell::RefCell;
    use std::path::{Path, PathBuf};

    thread_local! {
        static FOLDERS: RefCell<Vec<PathBuf>> = const { RefCell::new(Vec::new()) };
    }

    pub(super) fn note(dir: &Path) {
        FOLDERS.with_borrow_mut(|folders| folders.push(dir.to_owned()));
    }

    /// Returns those of `act`, which keeps to this thread, in their order.
    pub(crate) fn during<T>(act: impl FnOnce() -> T) -> Vec<PathBuf> {
        FOLDERS.take();
        act();
        FOLDERS.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::freeze::{Folder, Home};
    use crate::{DataDir, ErrorKind, NewVolume};
    use weir_units::Bytes;

    /// Notices names that are not made durable at all. The system syncs no folder there.
    #[test]
    fn a_folder_that_cannot_be_synced_is_an_error() {
        assert_eq!(sync_dir(Path::new("/proc")).unwrap_err().kind(), ErrorKind::Io);
    }

    /// Notices a new, replaced or removed name that a loss of power takes back.
    #[test]
    fn names_of_files_and_folders_are_made_durable_where_they_change() {
        let dir = tempfile::tempdir().unwrap();
        let (top, a, b) = (dir.path(), dir.path().join("a"), dir.path().join("a/b"));
        assert_eq!(synced::during(|| create_dirs(&b).unwrap()), [top, &a]);
        assert_eq!(synced::during(|| create_dirs(&b).unwrap()), [top; 0]);
        assert_eq!(synced::during(|| replace_file(&b, "changes", b"1").unwrap()), [&*b]);
        assert_eq!(synced::during(|| Folder(b.clone()).forget().unwrap()), [&*b]);
    }

    /// Notices a volume that is not there after a loss of power, or there again.
    #[test]
    fn volumes_that_come_and_go_are_made_durable_in_their_folders() {
        let dir = tempfile::tempdir().unwrap();
        let data = DataDir::open(dir.path(), "").unwrap();
        let volumes = dir.path().join("volumes");
        let new = |checksums| NewVolume { size: Bytes::mib(1), attributes: [].into(), checksums };
        let plain = synced::during(|| drop(data.volume("db", new(Some(false))).unwrap()));
        assert!(plain.contains(&volumes), "{plain:?}");
        let gone = synced::during(|| data.remove("db").unwrap());
        assert_eq!(gone, [&*volumes]);
        // The list of layers may have been put in its place just before.
        drop(data.paged_volume("pages", new(None)).unwrap());
        let mut opened = None;
        let synced = synced::during(|| opened = Some(data.volume("pages", new(None)).unwrap()));
        assert_eq!(synced, [volumes.clone(), volumes.join("pages")]);
    }

    /// Notices an error that is taken for a missing file: metadata that is made anew, a removal that is
    /// not done.
    #[test]
    fn only_a_missing_file_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let (file, folder, missing) = (path("file"), path("folder"), path("missing"));
        fs::write(&file, "content").unwrap();
        fs::create_dir_all(folder.join("full")).unwrap();
        assert_eq!(read_small(&file, 4).unwrap(), Some(b"cont".to_vec()));
        assert_eq!(names_in(&folder).unwrap(), Some(vec!["full".to_owned()]));
        assert_eq!(read_small(&missing, 4).unwrap(), None);
        assert_eq!(names_in(&missing).unwrap(), None);
        assert!(!rename(&missing, &path("other")).unwrap());
        remove_file(&missing).unwrap();
        remove_tree(&missing).unwrap();
        let failed = |done: Result<()>| assert_eq!(done.unwrap_err().kind(), ErrorKind::Io);
        failed(read_small(&folder, 4).map(drop));
        failed(names_in(&file).map(drop));
        failed(rename(&file, &folder).map(drop));
        failed(remove_file(&folder));
        failed(remove_tree(&file));
        failed(create_dirs(&file));
        failed(create_dirs(&file.join("in")));
        assert!(file.is_file() && folder.join("full").is_dir());
    }

    #[test]
    fn a_folder_that_appears_on_the_way_to_another_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        create_dirs(&dir.path().join("new/../data")).unwrap();
        assert!(dir.path().join("data").is_dir());
    }

    #[test]
    fn a_parent_that_cannot_be_synced_is_ignored_and_one_that_is_missing_is_not() {
        sync_parent(Path::new("/proc/weir")).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let error = sync_parent(&dir.path().join("missing/data")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
    }

    #[test]
    fn the_parent_of_a_relative_path_of_one_part_is_the_working_folder() {
        let parents = ["data", "a/data", "/data", "/"].map(|dir| parent_of(Path::new(dir)));
        assert_eq!(parents, [".", "a", "/", "."].map(Path::new));
    }

    /// A process that was killed while it made them has not synced the names.
    #[test]
    fn names_that_a_killed_process_left_are_made_durable_at_the_next_start() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        let new = NewVolume { size: Bytes::mib(1), attributes: [].into(), checksums: Some(false) };
        drop(DataDir::open(&path, "").unwrap().volume("db", new.clone()).unwrap());
        let mut data = None;
        let opened = synced::during(|| data = Some(DataDir::open(&path, "").unwrap()));
        assert_eq!(opened, [dir.path(), &*path, &*path.join("volumes")]);
        let volume = synced::during(|| drop(data.unwrap().volume("db", new).unwrap()));
        assert_eq!(volume, [path.join("volumes")]);
    }
}
