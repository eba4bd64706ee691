//! A data directory: who may have it, what is in it, and what a crash leaves.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use rustix::fs::inotify;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use weir_store::{DataDir, ErrorKind, NewVolume, Store, StoreError, Volume};
use weir_units::Bytes;

fn new(size: Bytes) -> NewVolume {
    NewVolume { size, attributes: [("tier".to_owned(), "P30".to_owned())].into(), checksums: None }
}

fn open(dir: &TempDir) -> DataDir {
    DataDir::open(dir.path(), "weir serve a.toml").unwrap()
}

fn volume(dir: &TempDir, name: &str) -> weir_store::Result<Arc<Volume>> {
    open(dir).volume(name, new(Bytes::mib(8)))
}

fn volume_path(dir: &TempDir, name: &str) -> PathBuf {
    dir.path().join("volumes").join(name)
}

/// Kind, message without the folder, and hint.
fn told(dir: &Path, error: &StoreError) -> (ErrorKind, String, Option<&'static str>) {
    let folder = dir.display().to_string();
    (error.kind(), error.to_string().replace(&folder, "DIR"), error.hint())
}

#[track_caller]
fn check(dir: &Path, error: &StoreError, kind: ErrorKind, message: &str, hint: &'static str) {
    assert_eq!(told(dir, error), (kind, message.to_owned(), Some(hint)));
}

#[test]
fn the_second_opener_is_told_who_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(&dir);
    check(
        dir.path(),
        &DataDir::open(dir.path(), "second").unwrap_err(),
        ErrorKind::Locked,
        &format!(
            "data directory DIR is in use by process {} (weir serve a.toml)",
            std::process::id()
        ),
        "stop that process or choose another data directory",
    );
    // A volume in use keeps the lock.
    let volume = first.volume("db", new(Bytes::mib(8))).unwrap();
    drop(first);
    assert_eq!(DataDir::open(dir.path(), "").unwrap_err().kind(), ErrorKind::Locked);
    drop(volume);
    let third = DataDir::open(dir.path(), "third").unwrap();
    let lock = fs::read_to_string(dir.path().join("lock")).unwrap();
    assert_eq!(lock, format!("process {} (third)\n", std::process::id()));
    drop(third);
}

#[test]
fn folders_are_made_and_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("a/b/c");
    drop(DataDir::open(&deep, "").unwrap());
    assert_eq!(fs::read_to_string(deep.join("format")).unwrap(), "weir data 1\n");
    assert!(DataDir::open(&deep, "").unwrap().list().unwrap().is_empty());
    // Opened for the first time, and crashed in the middle.
    fs::remove_file(deep.join("format")).unwrap();
    fs::remove_dir(deep.join("volumes")).unwrap();
    fs::write(deep.join("format.tmp"), "weir").unwrap();
    drop(DataDir::open(&deep, "").unwrap());
    assert_eq!(fs::read_to_string(deep.join("format")).unwrap(), "weir data 1\n");
}

#[test]
fn another_version_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("format"), "weir data 2\n").unwrap();
    check(
        dir.path(),
        &DataDir::open(dir.path(), "").unwrap_err(),
        ErrorKind::Version,
        "DIR/format has format \"weir data 2\", this release reads \"weir data 1\"",
        "use the release that wrote it, or an empty directory",
    );
    assert!(!dir.path().join("lock").exists());
}

#[test]
fn a_damaged_or_missing_format_is_told_apart_from_a_folder_of_something_else() {
    let dir = tempfile::tempdir().unwrap();
    drop(DataDir::open(dir.path(), "").unwrap());
    let refused = |message: &str| {
        check(
            dir.path(),
            &DataDir::open(dir.path(), "").unwrap_err(),
            ErrorKind::Damaged,
            message,
            "write that line into it if this release created the folder",
        );
    };
    let format = dir.path().join("format");
    fs::write(&format, "weXr data 1\n").unwrap();
    refused("DIR/format is damaged: it contains \"weXr data 1\" instead of \"weir data 1\"");
    fs::remove_file(&format).unwrap();
    refused("DIR/format is missing; it should contain the line \"weir data 1\"");
    fs::write(&format, "weir data 1\n").unwrap();
    drop(DataDir::open(dir.path(), "").unwrap());
}

#[test]
fn a_folder_of_something_else_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("thesis.txt"), "").unwrap();
    check(
        dir.path(),
        &DataDir::open(dir.path(), "").unwrap_err(),
        ErrorKind::Foreign,
        "DIR is not a Weir data directory and not empty: it holds \"thesis.txt\"",
        "choose an empty directory, or one that Weir created",
    );
    fs::write(dir.path().join("format"), "PostgreSQL 17").unwrap();
    let error = DataDir::open(dir.path(), "").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Foreign);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    let file = dir.path().join("thesis.txt");
    assert_eq!(DataDir::open(file, "").unwrap_err().kind(), ErrorKind::Io);
}

/// Watches the folder of a volume for files that are put in place of others.
fn watch(folder: &Path) -> OwnedFd {
    let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    // Equal events without another one in between are merged.
    let both = inotify::WatchFlags::MOVED_FROM | inotify::WatchFlags::MOVED_TO;
    inotify::add_watch(&watch, folder, both).unwrap();
    watch
}

/// Returns how many versions of the metadata were put in place since the last call.
fn versions(watch: &OwnedFd) -> usize {
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(watch, &mut buffer);
    let mut versions = 0;
    while let Ok(event) = reader.next() {
        versions += usize::from(event.file_name() == Some(c"meta.json"));
    }
    versions
}

#[test]
fn a_size_and_its_attribute_are_stored_in_one_step() {
    let dir = tempfile::tempdir().unwrap();
    let data = open(&dir);
    let plain = data.volume("plain", new(Bytes::mib(8))).unwrap();
    let paged = data.paged_volume("paged", new(Bytes::mib(8))).unwrap();
    for volume in [plain, paged] {
        let tier = || volume.meta().attributes.get("tier").cloned();
        let watch = watch(&volume_path(&dir, volume.name()));
        for (mib, name) in [(16, "large"), (4, "small")] {
            let size = Bytes::mib(mib);
            let stores = volume.attribute_with_size(size, "tier", name);
            volume.set_attribute("note", Some(name)).unwrap();
            assert_ne!(tier().as_deref(), Some(name), "stored before the resize");
            versions(&watch);
            volume.set_size(size).unwrap();
            assert_eq!(versions(&watch), 1, "of meta.json, by {}", volume.name());
            assert_eq!((tier().as_deref(), volume.size()), (Some(name), size));
            drop(stores);
        }
        // A resize to the present size stores it, too, and one that fails does not.
        let stores = volume.attribute_with_size(Bytes::mib(4), "tier", "other");
        volume.set_size(Bytes::mib(4)).unwrap();
        drop(stores);
        let stores = volume.attribute_with_size(Bytes::new(u64::MAX), "tier", "none");
        volume.set_size(Bytes::new(u64::MAX)).unwrap_err();
        drop(stores);
        drop(volume.attribute_with_size(Bytes::mib(8), "tier", "dropped"));
        volume.set_size(Bytes::mib(8)).unwrap();
        assert_eq!(tier().as_deref(), Some("other"));
    }
    drop(data);
    assert_eq!(volume(&dir, "plain").unwrap().meta().attributes["tier"], "other");
}

#[test]
fn a_volume_is_found_again_with_all_that_is_remembered() {
    let dir = tempfile::tempdir().unwrap();
    let data = open(&dir);
    let db = data.volume("db", new(Bytes::mib(8))).unwrap();
    assert!(Arc::ptr_eq(&db, &data.volume("db", new(Bytes::mib(1))).unwrap()));
    db.write_at(0, b"first").unwrap();
    db.set_size(Bytes::mib(16)).unwrap();
    db.set_attribute("cache", Some("read-only")).unwrap();
    db.set_attribute("tier", None).unwrap();
    db.write_at((16 << 20) - 4, b"last").unwrap();
    let before = db.meta();
    assert_eq!((before.size, before.declared_size), (Bytes::mib(16), Bytes::mib(8)));
    drop((db, data));

    let db = volume(&dir, "db").unwrap();
    assert_eq!((db.name(), db.meta(), db.size()), ("db", before, Bytes::mib(16)));
    assert_eq!(db.meta().attributes, [("cache".to_owned(), "read-only".to_owned())].into());
    let mut buf = [0; 5];
    db.read_at(0, &mut buf).unwrap();
    assert_eq!(&buf, b"first");
    db.read_at((16 << 20) - 5, &mut buf).unwrap();
    assert_eq!(&buf, b"\0last");
    db.set_declared_size(Bytes::mib(32)).unwrap();
    drop(db);
    assert_eq!(volume(&dir, "db").unwrap().meta().declared_size, Bytes::mib(32));
}

#[test]
fn names_do_not_climb_out() {
    let dir = tempfile::tempdir().unwrap();
    let error = volume(&dir, "a/../../db").unwrap_err();
    check(
        dir.path(),
        &error,
        ErrorKind::Name,
        "volume name \"a/../../db\" has a character that is not a letter, digit, '.', '_' or '-'",
        "use 1 to 128 letters, digits, '.', '_' or '-', and no '.' in front",
    );
}

#[test]
fn a_damaged_volume_is_told_and_the_others_are_served() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["flipped", "lost-data", "lost-meta", "well"] {
        volume(&dir, name).unwrap().write_at(0, &[7]).unwrap();
    }
    let meta = volume_path(&dir, "flipped").join("meta.json");
    let text = fs::read_to_string(&meta).unwrap();
    fs::write(&meta, text.replace("P30", "P31")).unwrap();
    fs::remove_dir_all(volume_path(&dir, "lost-data").join("data")).unwrap();
    fs::remove_file(volume_path(&dir, "lost-meta").join("meta.json")).unwrap();

    // The checksums are from another implementation of CRC-32.
    check(
        dir.path(),
        &volume(&dir, "flipped").unwrap_err(),
        ErrorKind::Damaged,
        "DIR/volumes/flipped/meta.json was changed: its checksum says \"ee44b097\", its content has \
         \"56f8d7f2\"",
        "restore the file from a copy; the volume's bytes in data/ beside it are untouched",
    );
    check(
        dir.path(),
        &volume(&dir, "lost-data").unwrap_err(),
        ErrorKind::Damaged,
        "DIR/volumes/lost-data/data is missing; it contained the bytes of the volume",
        "restore the folder from a copy; with an empty folder in its place, the volume reads as \
         zeros",
    );
    check(
        dir.path(),
        &volume(&dir, "lost-meta").unwrap_err(),
        ErrorKind::Damaged,
        "DIR/volumes/lost-meta/meta.json is missing, and data/ beside it contains the bytes of a \
         volume",
        "restore the file from a copy, or move the folder away to start with an empty volume",
    );

    let listed = open(&dir).list().unwrap();
    let kinds: Vec<_> =
        listed.iter().map(|v| (v.name.as_str(), v.meta.as_ref().err().map(|e| e.kind()))).collect();
    let damaged = Some(ErrorKind::Damaged);
    assert_eq!(
        kinds,
        [("flipped", damaged), ("lost-data", damaged), ("lost-meta", damaged), ("well", None)]
    );
    let mut buf = [0];
    volume(&dir, "well").unwrap().read_at(0, &mut buf).unwrap();
    assert_eq!(buf, [7]);
}

#[test]
fn a_volume_whose_making_was_cut_short_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(&dir));
    for (name, leftover) in [("a", ""), ("b", "data"), ("c", "data")] {
        fs::create_dir_all(volume_path(&dir, name).join(leftover)).unwrap();
    }
    fs::write(volume_path(&dir, "c").join("meta.json.tmp"), "{").unwrap();
    fs::write(dir.path().join("volumes/stray-file"), "").unwrap();
    assert!(open(&dir).list().unwrap().is_empty());
    for name in ["a", "b", "c"] {
        assert_eq!(volume(&dir, name).unwrap().size(), Bytes::mib(8));
    }
    assert_eq!(open(&dir).list().unwrap().len(), 3);
}

/// The `meta.json` of a volume of another size, written by the same release.
fn meta_of_size(size: Bytes) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    drop(open(&dir).volume("db", new(size)).unwrap());
    fs::read(volume_path(&dir, "db").join("meta.json")).unwrap()
}

#[test]
fn a_crash_between_the_steps_of_a_shrinking_leaves_no_old_bytes() {
    let dir = tempfile::tempdir().unwrap();
    volume(&dir, "db").unwrap().write_at(0, &[1; 8 << 20]).unwrap();
    fs::write(volume_path(&dir, "db").join("meta.json"), meta_of_size(Bytes::mib(2))).unwrap();
    let db = volume(&dir, "db").unwrap();
    assert_eq!(db.size(), Bytes::mib(2));
    assert!(db.allocated().unwrap() <= Bytes::new((2 << 20) + 4096));
    db.set_size(Bytes::mib(8)).unwrap();
    let mut buf = vec![0xee; 8 << 20];
    db.read_at(0, &mut buf).unwrap();
    assert!(buf[..2 << 20].iter().all(|b| *b == 1) && buf[2 << 20..].iter().all(|b| *b == 0));
}

#[test]
fn a_crash_between_the_steps_of_a_growing_leaves_the_old_or_the_new() {
    let dir = tempfile::tempdir().unwrap();
    volume(&dir, "db").unwrap().write_at(0, &[1; 8 << 20]).unwrap();
    let meta = volume_path(&dir, "db").join("meta.json");
    // Before the new description took its place ...
    fs::write(meta.with_extension("json.tmp"), &meta_of_size(Bytes::mib(16))[..50]).unwrap();
    assert_eq!(volume(&dir, "db").unwrap().size(), Bytes::mib(8));
    // ... and after.
    fs::write(&meta, meta_of_size(Bytes::mib(16))).unwrap();
    let db = volume(&dir, "db").unwrap();
    assert_eq!(db.size(), Bytes::mib(16));
    let mut buf = vec![0xee; 16 << 20];
    db.read_at(0, &mut buf).unwrap();
    assert!(buf[..8 << 20].iter().all(|b| *b == 1) && buf[8 << 20..].iter().all(|b| *b == 0));
}

#[test]
fn a_size_that_cannot_be_is_refused_before_anything_changes() {
    let dir = tempfile::tempdir().unwrap();
    let db = volume(&dir, "db").unwrap();
    let error = db.set_size(Bytes::new(u64::MAX)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert_eq!((db.size(), db.meta().size), (Bytes::mib(8), Bytes::mib(8)));
}

/// The segments that are listed in `meta.json` now.
fn listed(dir: &TempDir) -> Vec<u64> {
    let found = open(dir).list().unwrap();
    found[0].meta.as_ref().unwrap().segments.iter().copied().collect()
}

fn segment(dir: &TempDir) -> PathBuf {
    volume_path(dir, "db").join("data/00000")
}

fn cut(path: &Path, len: u64) {
    fs::OpenOptions::new().write(true).open(path).unwrap().set_len(len).unwrap();
}

#[test]
fn a_segment_that_was_lost_or_cut_is_told_and_the_others_are_served() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["db", "well"] {
        let volume = volume(&dir, name).unwrap();
        volume.write_at(4096, &[7]).unwrap();
        volume.sync().unwrap();
    }
    let hint = "restore the file from a copy; to give up its bytes, extend it to that length with \
                truncate -s, and they read as zeros";
    cut(&segment(&dir), 8192);
    let error = volume(&dir, "db").unwrap_err();
    let message = "DIR/volumes/db/data/00000 was truncated to 8192 bytes; it contained 8388608 \
                   bytes of the volume";
    check(dir.path(), &error, ErrorKind::Damaged, message, hint);

    fs::remove_file(segment(&dir)).unwrap();
    let error = volume(&dir, "db").unwrap_err();
    let message =
        "DIR/volumes/db/data/00000 is missing; it contained 8388608 bytes of the volume".to_owned();
    check(dir.path(), &error, ErrorKind::Damaged, &message, hint);
    let found = open(&dir).list().unwrap();
    assert_eq!(told(dir.path(), found[0].meta.as_ref().unwrap_err()).1, message);

    let mut buf = [0];
    volume(&dir, "well").unwrap().read_at(4096, &mut buf).unwrap();
    assert_eq!(buf, [7]);
    // As the hint says.
    fs::File::create(segment(&dir)).unwrap();
    cut(&segment(&dir), 8 << 20);
    volume(&dir, "db").unwrap().read_at(4096, &mut buf).unwrap();
    assert_eq!(buf, [0]);
}

/// Notices a record of changes that is still there after somebody repaired the bytes.
#[test]
fn the_changes_of_a_damaged_volume_are_unknown_after_its_repair() {
    let dir = tempfile::tempdir().unwrap();
    let db = volume(&dir, "db").unwrap();
    db.write_at(4096, &[7]).unwrap();
    db.sync().unwrap();
    drop(db);
    let is_known = || volume(&dir, "db").unwrap().freezable().tracking().known;
    assert!(is_known());
    cut(&segment(&dir), 100);
    assert_eq!(volume(&dir, "db").unwrap_err().kind(), ErrorKind::Damaged);
    cut(&segment(&dir), 8 << 20);
    assert!(!is_known());
}

/// Notices changes that count as known although a sync has lost bytes.
#[test]
fn the_changes_of_a_volume_are_unknown_after_a_failed_sync() {
    let dir = tempfile::tempdir().unwrap();
    drop(volume(&dir, "db").unwrap());
    // A file that takes every length and cannot be synced.
    std::os::unix::fs::symlink("/proc/self/comm", segment(&dir)).unwrap();
    let db = volume(&dir, "db").unwrap();
    assert!(db.freezable().tracking().known);
    assert_eq!(db.sync().unwrap_err().kind(), ErrorKind::Io);
    assert!(!db.freezable().tracking().known);
}

#[test]
fn a_segment_is_listed_by_the_sync_that_promises_it_and_only_then() {
    let dir = tempfile::tempdir().unwrap();
    let db = volume(&dir, "db").unwrap();
    db.sync().unwrap();
    assert!(db.meta().segments.is_empty());
    db.write_at(0, &[7]).unwrap();
    assert!(db.meta().segments.is_empty());
    db.sync().unwrap();
    assert_eq!(db.meta().segments, [0].into());
    let listed_at = || fs::metadata(volume_path(&dir, "db").join("meta.json")).unwrap();
    let inode = std::os::unix::fs::MetadataExt::ino(&listed_at());
    db.write_at(1 << 20, &[7]).unwrap();
    db.trim(0, 8 << 20).unwrap();
    db.sync().unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::ino(&listed_at()), inode, "once is enough");
    drop(db);
    assert_eq!(listed(&dir), [0]);
}

#[test]
fn a_crash_between_making_a_segment_and_listing_it_is_no_damage() {
    // The file's name survived, or its name and length, or all of it.
    for survived in [0, 5000, 8 << 20] {
        let dir = tempfile::tempdir().unwrap();
        volume(&dir, "db").unwrap().write_at(100, &[7]).unwrap();
        assert!(listed(&dir).is_empty());
        cut(&segment(&dir), survived);
        let db = volume(&dir, "db").unwrap();
        let mut buf = [0xee; 2];
        db.read_at(100, &mut buf).unwrap();
        assert_eq!(buf, [if survived == 0 { 0 } else { 7 }, 0]);
        db.sync().unwrap();
        drop(db);
        assert_eq!(listed(&dir), [0]);
        assert_eq!(fs::metadata(segment(&dir)).unwrap().len(), 8 << 20);
        volume(&dir, "db").unwrap();
    }
    // The file itself did not survive.
    let dir = tempfile::tempdir().unwrap();
    volume(&dir, "db").unwrap().write_at(100, &[7]).unwrap();
    fs::remove_file(segment(&dir)).unwrap();
    volume(&dir, "db").unwrap();
}

#[test]
fn a_volume_of_the_format_before_is_taken_over() {
    let dir = tempfile::tempdir().unwrap();
    let db = volume(&dir, "db").unwrap();
    db.write_at(100, &[7]).unwrap();
    db.sync().unwrap();
    drop(db);
    // By the release before, the file ended with the last byte written.
    cut(&segment(&dir), 101);
    let text = "{\"format\":\"weir volume 1\",\"crc32\":\"6f8ef1a2\",\"volume\":{\"size\":\"8 MiB\",\
                \"declared_size\":\"8 MiB\",\"segment\":\"1 TiB\",\"attributes\":{}}}";
    fs::write(volume_path(&dir, "db").join("meta.json"), text).unwrap();
    let db = volume(&dir, "db").unwrap();
    let mut buf = [0xee; 2];
    db.read_at(100, &mut buf).unwrap();
    assert_eq!(buf, [7, 0]);
    db.sync().unwrap();
    drop(db);
    assert_eq!(listed(&dir), [0]);
    let text = fs::read_to_string(volume_path(&dir, "db").join("meta.json")).unwrap();
    assert!(text.contains("weir volume 2"), "{text}");
}

#[test]
fn a_resize_keeps_the_segments_as_long_as_their_shares() {
    let dir = tempfile::tempdir().unwrap();
    let db = volume(&dir, "db").unwrap();
    db.write_at(0, &[7]).unwrap();
    db.sync().unwrap();
    for mib in [16, 2, 3] {
        db.set_size(Bytes::mib(mib)).unwrap();
        assert_eq!(fs::metadata(segment(&dir)).unwrap().len(), mib << 20);
    }
    db.set_size(Bytes::ZERO).unwrap();
    assert!(db.meta().segments.is_empty() && !segment(&dir).exists());
    db.set_size(Bytes::mib(8)).unwrap();
    db.sync().unwrap();
    drop(db);
    assert_eq!(volume(&dir, "db").unwrap().size(), Bytes::mib(8));
}

#[test]
fn a_segment_that_could_not_be_removed_is_not_missed_once_it_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let data = open(&dir);
    let db = data.volume("db", new(Bytes::gib(3072))).unwrap();
    for at in [0, 2 << 40] {
        db.write_at(at, &[7]).unwrap();
    }
    let (last, away) = (volume_path(&dir, "db").join("data/00002"), dir.path().join("away"));
    fs::rename(&last, &away).unwrap();
    fs::create_dir(&last).unwrap();
    let error = db.set_size(Bytes::gib(1024)).unwrap_err();
    assert_eq!(told(dir.path(), &error).1, "cannot remove DIR/volumes/db/data/00002");
    assert_eq!((db.size(), db.meta().size), (Bytes::gib(1024), Bytes::gib(1024)));
    db.sync().unwrap();
    assert_eq!(db.meta().segments, [0].into());
    drop((db, data));
    fs::remove_dir(&last).unwrap();
    fs::rename(&away, &last).unwrap();
    for _ in 0..2 {
        assert_eq!(volume(&dir, "db").unwrap().size(), Bytes::gib(1024));
        assert!(!last.exists());
    }
}

#[test]
fn a_segment_listed_behind_the_end_is_not_missed_nor_listed_when_the_volume_grows() {
    let dir = tempfile::tempdir().unwrap();
    volume(&dir, "db").unwrap();
    // The checksum is from another implementation of CRC-32.
    let text = "{\"format\":\"weir volume 2\",\"crc32\":\"7e0bab54\",\"volume\":{\"size\":\"8 MiB\",\
                \"declared_size\":\"8 MiB\",\"segment\":\"1 TiB\",\"segments\":[2],\
                \"attributes\":{}}}";
    fs::write(volume_path(&dir, "db").join("meta.json"), text).unwrap();
    volume(&dir, "db").unwrap().set_size(Bytes::gib(3072)).unwrap();
    assert!(volume(&dir, "db").unwrap().meta().segments.is_empty());
}

#[test]
fn a_removed_volume_is_gone_and_its_name_is_free() {
    let dir = tempfile::tempdir().unwrap();
    let data = open(&dir);
    let old = data.volume("db", new(Bytes::mib(8))).unwrap();
    old.write_at(0, &[7; 4096]).unwrap();
    data.remove("db").unwrap();
    assert!(data.list().unwrap().is_empty());
    assert_eq!(fs::read_dir(dir.path().join("volumes")).unwrap().count(), 0);
    // A new volume of that name is another one, even if the old one is still open.
    let next = data.volume("db", new(Bytes::mib(4))).unwrap();
    let mut bytes = [1; 4096];
    next.read_at(0, &mut bytes).unwrap();
    assert_eq!((bytes, next.size()), ([0; 4096], Bytes::mib(4)));
    data.remove("none").unwrap();
    assert_eq!(data.remove("../db").unwrap_err().kind(), ErrorKind::Name);
}

#[test]
fn a_crash_between_the_steps_of_a_removal_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    drop(volume(&dir, "db").unwrap());
    let gone = volume_path(&dir, ".gone-db");
    fs::rename(volume_path(&dir, "db"), &gone).unwrap();
    let data = open(&dir);
    assert!(!gone.exists() && data.list().unwrap().is_empty());
}

#[test]
fn volumes_of_each_kind_count_their_space_and_are_worth_several_syncs_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let data = open(&dir);
    let size = Bytes::mib(8);
    let volumes = [
        data.volume("plain", new(size)),
        data.volume("summed", NewVolume { checksums: Some(true), ..new(size) }),
        data.paged_volume("paged", new(size)),
    ];
    for volume in volumes.map(Result::unwrap) {
        volume.write_at(0, &[7; 64 << 10]).unwrap();
        assert_eq!(volume.syncs(), 4, "{}", volume.name());
        let allocated = volume.allocated().unwrap();
        assert!((Bytes::kib(64)..size).contains(&allocated), "{} of {}", allocated, volume.name());
    }
}

#[test]
fn a_volume_of_pages_gets_no_checksums() {
    let dir = tempfile::tempdir().unwrap();
    let asked = NewVolume { checksums: Some(true), ..new(Bytes::mib(8)) };
    let error = open(&dir).paged_volume("db", asked).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoChecksums);
    assert!(!volume_path(&dir, "db").join("meta.json").exists());
}

/// Notices bytes behind the end that return: the shrinking is finished before the volume grows.
#[test]
fn a_segment_that_could_not_be_removed_is_removed_when_the_volume_grows() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir).volume("db", new(Bytes::gib(3072))).unwrap();
    db.write_at(2 << 40, &[7]).unwrap();
    let (last, away) = (volume_path(&dir, "db").join("data/00002"), dir.path().join("away"));
    fs::rename(&last, &away).unwrap();
    fs::create_dir(&last).unwrap();
    db.set_size(Bytes::gib(1024)).unwrap_err();
    fs::remove_dir(&last).unwrap();
    fs::rename(&away, &last).unwrap();
    db.set_size(Bytes::gib(3072)).unwrap();
    let mut found = [1];
    db.read_at(2 << 40, &mut found).unwrap();
    assert_eq!(found, [0]);
}

/// Notices a segment that is not missed any more, or one that is missed behind the end.
#[test]
fn a_shrinking_leaves_those_segments_listed_that_it_keeps() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir).volume("db", new(Bytes::gib(3072))).unwrap();
    [0, 2 << 40].into_iter().for_each(|at| db.write_at(at, &[7]).unwrap());
    db.sync().unwrap();
    assert_eq!(db.meta().segments, [0, 2].into());
    db.set_size(Bytes::gib(1025)).unwrap();
    assert_eq!(db.meta().segments, [0].into());
}

#[test]
fn a_segment_that_cannot_be_looked_at_is_not_told_as_missing() {
    let dir = tempfile::tempdir().unwrap();
    let db = volume(&dir, "db").unwrap();
    db.write_at(0, &[7]).unwrap();
    db.sync().unwrap();
    drop(db);
    fs::remove_file(segment(&dir)).unwrap();
    // A link to itself.
    std::os::unix::fs::symlink("00000", segment(&dir)).unwrap();
    let (kind, message, _) = told(dir.path(), &volume(&dir, "db").unwrap_err());
    assert_eq!((kind, &*message), (ErrorKind::Io, "cannot look at DIR/volumes/db/data/00000"));
}
