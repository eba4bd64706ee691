//! Volumes with checksums in a data directory, and the check of such a folder.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use weir_store::{
    CheckedVolume, Damage, DamagedBytes, DataDir, ErrorKind, FolderCheck, NewVolume, Store, Volume,
};
use weir_units::Bytes;

fn open(dir: &Path, checksums: Option<bool>) -> Arc<Volume> {
    let new = NewVolume { size: Bytes::mib(4), attributes: [].into(), checksums };
    DataDir::open(dir, "test").unwrap().volume("db", new).unwrap()
}

fn flip(file: &Path, offset: u64) {
    let file = fs::File::options().read(true).write(true).open(file).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ 1], offset).unwrap();
}

fn check(dir: &Path) -> (CheckedVolume, Vec<Damage>) {
    let folder = FolderCheck::open(dir, "check").unwrap();
    let mut damage = Vec::new();
    let checked = folder.check("db", &mut |found| damage.push(found)).unwrap().unwrap();
    (checked, damage)
}

#[test]
fn damage_is_found_by_reads_and_by_a_check_after_an_orderly_end() {
    let dir = tempfile::tempdir().unwrap();
    let volume = open(dir.path(), Some(true));
    volume.write_at(100, &[7; 10_000]).unwrap();
    volume.sync().unwrap();
    drop(volume);
    let (checked, damage) = check(dir.path());
    assert_eq!(damage, []);
    assert!(checked.has_checksums && checked.verified >= 10_100 && checked.unknown == 0);
    let file = dir.path().join("volumes/db/data/00000");
    flip(&file, 5000);
    let bytes = DamagedBytes { offset: 4096, volume_offset: Some(4096), len: 4096 };
    let (_, damage) = check(dir.path());
    assert_eq!((damage.len(), damage[0].bytes, &damage[0].path), (1, Some(bytes), &file));
    // Kept without the key, too.
    let volume = open(dir.path(), None);
    let (tell, told) = std::sync::mpsc::channel();
    volume.on_damage(move |error| tell.send(error.kind()).unwrap());
    assert!(volume.damaged_blocks().is_empty());
    let error = volume.read_at(4100, &mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DamagedBlock);
    assert_eq!(volume.damaged_reads(), Some(1));
    assert_eq!(volume.damaged_blocks(), [4096]);
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [ErrorKind::DamagedBlock]);
    volume.read_at(0, &mut [0; 4096]).unwrap();
    volume.write_at(4096, &[1; 4096]).unwrap();
    volume.read_at(0, &mut [0; 12_288]).unwrap();
    drop(volume);
    assert_eq!(check(dir.path()).1, []);
}

/// As after a kill: the folder is copied while the volume is open.
#[test]
fn a_copy_of_an_open_folder_has_no_damage() {
    let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let volume = open(dir.path(), Some(true));
    volume.write_at(0, &[7; 10_000]).unwrap();
    copy_all(dir.path(), copy.path());
    let (checked, damage) = check(copy.path());
    assert_eq!(damage, []);
    // A copy need not be sparse.
    assert!(checked.verified == 0 && checked.unknown >= 12_288, "{checked:?}");
    let copied = open(copy.path(), Some(true));
    let mut found = [0; 10_000];
    copied.read_at(0, &mut found).unwrap();
    assert_eq!(found, [7; 10_000]);
    drop(copied);
    let (checked, damage) = check(copy.path());
    assert_eq!(damage, []);
    assert!(checked.verified >= 12_288 && checked.unknown == 0, "{checked:?}");
}

fn copy_all(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            fs::create_dir(&target).unwrap();
            copy_all(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

#[test]
fn checksums_come_and_go_and_survive_resizes() {
    let dir = tempfile::tempdir().unwrap();
    let volume = open(dir.path(), None);
    assert_eq!(volume.damaged_reads(), None);
    volume.write_at(0, &[7; 8192]).unwrap();
    drop(volume);
    let (checked, _) = check(dir.path());
    assert_eq!((checked.has_checksums, checked.unverified), (false, 8192));
    let volume = open(dir.path(), Some(true));
    for size in [9 << 20, 5000, 4096, 100, 1 << 20] {
        volume.set_size(Bytes::new(size)).unwrap();
        let mut all = vec![0; usize::try_from(size).unwrap()];
        volume.read_at(0, &mut all).unwrap();
        assert_eq!(all[..100], [7; 100]);
    }
    drop(volume);
    assert_eq!(check(dir.path()).1, []);
    flip(&dir.path().join("volumes/db/data/00000"), 50_000);
    assert_eq!(check(dir.path()).1.len(), 1);
    drop(open(dir.path(), Some(false)));
    assert!(!dir.path().join("volumes/db/sums").exists());
    assert_eq!(check(dir.path()).1, []);
}

#[test]
fn a_folder_in_use_and_one_that_is_none_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let error = FolderCheck::open(dir.path(), "check").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoFolder);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    let volume = open(dir.path(), Some(true));
    let error = FolderCheck::open(dir.path(), "check").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    drop(volume);
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let error = FolderCheck::open(&file, "check").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoFolder);
}

#[test]
fn a_damaged_copy_of_the_list_and_a_cut_file_of_checksums_are_named() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path(), Some(true)).write_at(0, &[7; 8192]).unwrap();
    let volume = dir.path().join("volumes/db");
    for copy in [0, 1] {
        flip(&volume.join("open/00000"), copy * 4096 + 40);
        let (checked, damage) = check(dir.path());
        let [found] = &damage[..] else { panic!("{damage:?}") };
        let expect = DamagedBytes { offset: copy * 4096, volume_offset: None, len: 4096 };
        assert_eq!((&found.path, found.bytes), (&volume.join("open/00000"), Some(expect)));
        assert!(found.what.starts_with("a copy of the list of open regions is damaged"));
        assert_eq!((checked.verified, checked.unknown > 0), (0, true));
        flip(&volume.join("open/00000"), copy * 4096 + 40);
    }
    assert_eq!(check(dir.path()).1, []);
    fs::File::options().write(true).open(volume.join("sums/00000")).unwrap().set_len(6).unwrap();
    let (_, damage) = check(dir.path());
    let [found] = &damage[..] else { panic!("{damage:?}") };
    assert!(found.what.contains("sums/00000, is cut to 6 bytes; restore it"), "{found:?}");
    assert_eq!(found.bytes.unwrap().volume_offset, Some(4096));
}

#[test]
fn a_file_among_the_volumes_is_named() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path(), Some(true)));
    let stray = dir.path().join("volumes/other");
    fs::write(&stray, "a file").unwrap();
    let folder = FolderCheck::open(dir.path(), "check").unwrap();
    assert_eq!(
        (folder.volumes().unwrap(), folder.strays().unwrap()),
        (vec!["db".into()], vec![stray])
    );
}

#[test]
fn missing_checksums_are_named_with_the_way_out() {
    let made = |part: &str| {
        let dir = tempfile::tempdir().unwrap();
        open(dir.path(), Some(true)).write_at(0, &[7; 8192]).unwrap();
        let path = dir.path().join("volumes/db").join(part);
        if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }.unwrap();
        let (_, damage) = check(dir.path());
        let [found] = &damage[..] else { panic!("{damage:?}") };
        found.what.replace(&dir.path().display().to_string(), "DIR")
    };
    let anew = "serve the volume once with checksums = false and then with true: its checksums are computed \
                anew, from bytes that are not verified";
    assert_eq!(
        made("open/00000"),
        format!(
            "DIR/volumes/db/open/00000: the list of a volume's regions with unknown checksums is missing or \
             damaged; {anew}"
        )
    );
    assert_eq!(
        made("sums/00000"),
        format!(
            "the bytes are not those of their checksums: the file of these checksums, \
             DIR/volumes/db/sums/00000, does not exist; restore it from a copy"
        )
    );
    assert_eq!(
        made("open"),
        format!(
            "DIR/volumes/db/open is missing; it contained the list of regions with unknown checksums; {anew}"
        )
    );
    assert_eq!(
        made("sums"),
        "DIR/volumes/db/sums is missing; it contained checksums of the volume; restore the folder from a copy, \
         or serve the volume once with checksums = false: its bytes are then served without verification"
    );
}

#[test]
fn metadata_that_cannot_be_read_is_an_error_and_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path(), None));
    let meta = dir.path().join("volumes/db/meta.json");
    fs::remove_file(&meta).unwrap();
    fs::create_dir(&meta).unwrap();
    let folder = FolderCheck::open(dir.path(), "check").unwrap();
    let error = folder.check("db", &mut |found| panic!("{found:?}")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
}

#[test]
fn all_layers_of_a_volume_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(dir.path(), "test").unwrap();
    let new = NewVolume { size: Bytes::mib(4), attributes: [].into(), checksums: None };
    let volume = data.paged_volume("db", new).unwrap();
    volume.write_at(0, &[7; 8192]).unwrap();
    volume.paged().unwrap().snapshot().unwrap();
    volume.write_at(0, &[8; 4096]).unwrap();
    volume.sync().unwrap();
    drop((volume, data));
    let (checked, damage) = check(dir.path());
    assert_eq!(damage, []);
    assert_eq!((checked.verified, checked.unverified), (0, 8192 + 4096));
}

#[test]
fn checksums_that_an_opening_has_not_computed_are_computed_later() {
    let dir = tempfile::tempdir().unwrap();
    let size = Bytes::mib(66);
    let open = |checksums| {
        let new = NewVolume { size, attributes: [].into(), checksums };
        DataDir::open(dir.path(), "test").unwrap().volume("db", new).unwrap()
    };
    open(None).write_at(0, &vec![7; 66 << 20]).unwrap();
    let volume = open(Some(true));
    assert_eq!(volume.unverified(), size);
    assert!(volume.compute_checksums(Bytes::kib(4)).unwrap());
    assert!(!volume.compute_checksums(size).unwrap());
    assert_eq!(volume.unverified(), Bytes::ZERO);
}

#[test]
fn a_damaged_map_of_a_layer_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let new = NewVolume { size: Bytes::mib(4), attributes: [].into(), checksums: None };
    let data = DataDir::open(dir.path(), "test").unwrap();
    data.paged_volume("db", new).unwrap().write_at(0, &[7; 512]).unwrap();
    drop(data);
    assert_eq!(check(dir.path()).1, []);
    let map = dir.path().join("volumes/db/layers/00000/map");
    flip(&map, 9);
    let (_, damage) = check(dir.path());
    let [found] = &damage[..] else { panic!("{damage:?}") };
    assert!(found.what.starts_with(&map.display().to_string()), "{found:?}");
}
