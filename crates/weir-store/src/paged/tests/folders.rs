//! Files on the medium: found again, found damaged, or left by a crash.

use super::model::{BASE, SEGMENT, START, create, open};
use crate::paged::log::{self, Files, Medium};
use crate::paged::{PAGE, PageRange, PagedStore};
use crate::store::Store;
use crate::{DataDir, ErrorKind, NewVolume, disk};
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use weir_units::Bytes;

fn layer(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("layers/{number:05}"))
}

fn names(dir: &Path) -> Vec<String> {
    disk::names_in(dir).unwrap().unwrap()
}

/// The first page of each run.
fn firsts(store: &PagedStore) -> Vec<u64> {
    let pages = store.pages(None, BASE, START - BASE, usize::MAX).unwrap();
    pages.iter().map(|PageRange { offset, .. }| (offset - BASE) / PAGE).collect()
}

/// A volume with a page written in each sync.
fn with_pages(pages: &[u64]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let store = create(dir.path());
    for page in pages {
        store.write_at(BASE + page * PAGE, &[1; 512]).unwrap();
        store.sync().unwrap();
    }
    dir
}

/// Kind and message, without the folder.
fn told(dir: &Path) -> (ErrorKind, String) {
    let error = open(dir).unwrap_err();
    assert!(error.hint().is_some());
    (error.kind(), error.to_string().replace(&format!("{}/", dir.display()), ""))
}

#[track_caller]
fn damaged(dir: &Path, message: &str) {
    assert_eq!(told(dir), (ErrorKind::Damaged, message.to_owned()));
}

fn new(size: Bytes) -> NewVolume {
    NewVolume { size, attributes: [("tier".to_owned(), "P30".to_owned())].into(), checksums: None }
}

#[test]
fn a_volume_of_pages_is_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(dir.path(), "").unwrap();
    let volume = data.paged_volume("db", new(Bytes::mib(8))).unwrap();
    let store = volume.paged().unwrap();
    volume.write_at(0, &[1; 1024]).unwrap();
    let id = store.snapshot().unwrap();
    volume.trim(0, 512).unwrap();
    volume.set_size(Bytes::mib(16)).unwrap();
    volume.resize(Bytes::mib(32)).unwrap();
    volume.set_attribute("cache", Some("none")).unwrap();
    let before = volume.meta();
    assert_eq!((before.size, before.declared_size), (Bytes::mib(32), Bytes::mib(8)));
    drop((volume, data));

    let data = DataDir::open(dir.path(), "").unwrap();
    assert_eq!(data.list().unwrap()[0].meta.as_ref().unwrap().size, Bytes::mib(32));
    // As whatever it is, and only once.
    let volume = data.volume("db", new(Bytes::mib(1))).unwrap();
    let again = data.paged_volume("db", new(Bytes::mib(1))).unwrap();
    assert!(std::sync::Arc::ptr_eq(&volume, &again));
    assert_eq!((volume.meta(), volume.size()), (before, Bytes::mib(32)));
    let store = volume.paged().unwrap();
    let range = |offset, len| [PageRange { offset, len }];
    assert_eq!(store.pages(None, 0, 1 << 20, 9).unwrap(), range(512, 512));
    assert_eq!(store.pages(Some(id), 0, 1 << 20, 9).unwrap(), range(0, 1024));
    assert_eq!(store.view(id).unwrap().size(), Bytes::mib(8));
    assert_eq!(store.snapshots(), [id]);
    data.remove("db").unwrap();
    assert!(data.list().unwrap().is_empty());
}

#[test]
fn closing_a_volume_that_was_removed_does_nothing_to_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(dir.path(), "").unwrap();
    let old = data.paged_volume("db", new(Bytes::mib(8))).unwrap();
    old.write_at(0, &[1; 512]).unwrap();
    data.remove("db").unwrap();
    let next = data.paged_volume("db", new(Bytes::mib(8))).unwrap();
    next.write_at(1024, &[2; 512]).unwrap();
    next.sync().unwrap();
    drop(old);
    drop(next);
    let next = data.volume("db", new(Bytes::mib(8))).unwrap();
    let pages = next.paged().unwrap().pages(None, 0, 8 << 20, 9).unwrap();
    assert_eq!(pages, [PageRange { offset: 1024, len: 512 }]);
}

#[test]
fn a_plain_volume_stays_one() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(dir.path(), "").unwrap();
    drop(data.volume("db", new(Bytes::mib(8))).unwrap());
    assert!(data.paged_volume("db", new(Bytes::mib(8))).unwrap().paged().is_none());
    assert_eq!(names(&dir.path().join("volumes/db")), ["changes", "data", "meta.json"]);
}

#[test]
fn the_list_of_layers_is_as_documented() {
    let dir = with_pages(&[0]);
    let store = open(dir.path()).unwrap();
    store.snapshot().unwrap();
    store.resize(Bytes::gib(1)).unwrap();
    let text = fs::read_to_string(dir.path().join("meta.json")).unwrap();
    let volume = "  \"volume\": {\"size\":\"1 GiB\",\"declared_size\":\"2054 KiB\",\
                  \"segment\":\"2 MiB\",\"segments\":[],\"attributes\":{},\
                  \"layers\":{\"next_snapshot\":2,\"stack\":[\
                  {\"number\":0,\"size\":\"2054 KiB\",\"snapshot\":1,\"segments\":[0]},\
                  {\"number\":1,\"size\":\"1 GiB\",\"segments\":[]}]}}";
    assert_eq!(text.lines().nth(3).unwrap(), volume);
    assert_eq!(names(&dir.path().join("layers")), ["00000", "00001"]);
    assert_eq!(names(&layer(dir.path(), 0)), ["data", "log", "map"]);
}

#[test]
fn map_and_log_are_as_documented() {
    let dir = with_pages(&[0, 2]);
    let path = layer(dir.path(), 0);
    let frame = |magic: &[u8], number: u64, crc: u32, runs: &[[u64; 2]]| {
        let words = [1, number].map(u64::to_le_bytes).concat();
        let count = u32::try_from(runs.len()).unwrap();
        let runs = runs.iter().flatten().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        [magic, &words, &count.to_le_bytes(), &crc.to_le_bytes(), &runs].concat()
    };
    // The checksums are from another implementation of CRC-32, over the same bytes.
    let data = 1 << 62;
    let page = BASE / PAGE;
    let log = [
        frame(b"weirlog1", 0, CRCS[1], &[]),
        frame(b"weirlog1", 1, CRCS[2], &[[page, data | 1]]),
        frame(b"weirlog1", 2, CRCS[3], &[[page + 2, data | 1]]),
    ];
    assert_eq!(fs::read(path.join("map")).unwrap(), frame(b"weirmap1", 0, CRCS[0], &[]));
    assert_eq!(fs::read(path.join("log")).unwrap(), log.concat());
}

/// Else the fuzzer would not get beyond the checksums.
#[test]
fn the_checksums_of_all_frames_are_corrected_for_the_fuzzer() {
    let dir = with_pages(&[0, 2]);
    let content = fs::read(layer(dir.path(), 0).join("log")).unwrap();
    let mut changed = content.clone();
    [28, 32 + 28, 80 + 28].into_iter().for_each(|at| changed[at] ^= 1);
    log::repair(&mut changed);
    assert_eq!(changed, content);
    log::repair(&mut []);
}

const CRCS: [u32; 4] = [0x5ce7_fc42, 0xfc9f_dc38, 0xa28e_2eee, 0x27f0_0caa];

#[test]
fn every_flipped_bit_is_found_or_cuts_off_the_last_entry() {
    let dir = with_pages(&[0, 2, 4]);
    let path = layer(dir.path(), 0);
    for file in ["map", "log"] {
        let file = path.join(file);
        let content = fs::read(&file).unwrap();
        let last = content.len() - 48 * usize::from(file.ends_with("log"));
        for bit in 0..content.len() * 8 {
            let mut changed = content.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            fs::write(&file, changed).unwrap();
            match open(dir.path()) {
                Err(e) => assert_eq!((e.kind(), bit / 8 < last), (ErrorKind::Damaged, true)),
                Ok(store) => {
                    assert!(bit / 8 >= last, "{} bit {bit}", file.display());
                    assert_eq!(firsts(&store), [0, 2]);
                }
            }
        }
        fs::write(&file, content).unwrap();
    }
}

#[test]
fn a_log_that_was_cut_has_what_is_before_the_cut() {
    let dir = with_pages(&[0, 2, 4]);
    let log = layer(dir.path(), 0).join("log");
    let content = fs::read(&log).unwrap();
    for len in 0..=content.len() {
        fs::write(&log, &content[..len]).unwrap();
        if len < 32 {
            damaged(dir.path(), "layers/00000/log is truncated, or was changed at its beginning");
            continue;
        }
        let store = open(dir.path()).unwrap();
        assert_eq!(firsts(&store), [0, 2, 4][..(len - 32) / 48]);
    }
    // The next entry takes the place of a torn one.
    fs::write(&log, &content[..content.len() - 1]).unwrap();
    open(dir.path()).unwrap().write_at(BASE + 6 * PAGE, &[1]).unwrap();
    assert_eq!(firsts(&open(dir.path()).unwrap()), [0, 2, 6]);
}

#[test]
fn damage_is_named() {
    let dir = with_pages(&[0, 2]);
    let path = layer(dir.path(), 0);
    let log = fs::read(path.join("log")).unwrap();
    let map = fs::read(path.join("map")).unwrap();
    let with = |file: &str, content: &[u8], message| {
        let before = fs::read(path.join(file)).unwrap();
        fs::write(path.join(file), content).unwrap();
        damaged(dir.path(), message);
        fs::write(path.join(file), before).unwrap();
    };
    with("map", &map[..31], "layers/00000/map is truncated or was changed");
    with("map", &[&map[..], &[0]].concat(), "layers/00000/map is truncated or was changed");
    with("map", &log, "layers/00000/map is truncated or was changed");
    let cut_out = [&log[..32], &log[80..]].concat();
    with("log", &cut_out, "layers/00000/log was changed before its last entry");
    with("log", &map, "layers/00000/log is truncated, or was changed at its beginning");
    for file in ["map", "log"] {
        let content = fs::read(path.join(file)).unwrap();
        fs::remove_file(path.join(file)).unwrap();
        let missing = format!(
            "layers/00000/{file} is missing; it recorded which pages were \
                               written"
        );
        damaged(dir.path(), &missing);
        fs::write(path.join(file), content).unwrap();
    }
    let segment = OpenOptions::new().write(true).open(path.join("data/00000")).unwrap();
    segment.set_len(100).unwrap();
    let cut = "was truncated to 100 bytes; it contained 2097152 bytes of the volume";
    damaged(dir.path(), &format!("layers/00000/data/00000 {cut}"));
    fs::remove_file(path.join("data/00000")).unwrap();
    let missing = "is missing; it contained 2097152 bytes of the volume";
    damaged(dir.path(), &format!("layers/00000/data/00000 {missing}"));
    fs::remove_dir_all(&path).unwrap();
    damaged(dir.path(), "layers/00000/data is missing; it contained the bytes of the volume");
}

#[test]
fn a_segment_of_a_frozen_layer_is_missed_too() {
    let dir = with_pages(&[0, 12]);
    let store = open(dir.path()).unwrap();
    store.snapshot().unwrap();
    store.snapshot().unwrap();
    store.delete_snapshot(store.snapshots()[0]).unwrap();
    while store.tidy().unwrap() {}
    drop(store);
    assert_eq!(START.div_ceil(SEGMENT), 2);
    fs::remove_file(layer(dir.path(), 0).join("data/00001")).unwrap();
    let len = START - SEGMENT;
    let message = format!(
        "layers/00000/data/00001 is missing; it contained {len} bytes of the \
                           volume"
    );
    damaged(dir.path(), &message);
}

#[test]
fn layers_that_are_not_listed_are_removed() {
    let dir = with_pages(&[0]);
    let store = open(dir.path()).unwrap();
    for _ in 0..2 {
        store.write_at(BASE, &[2; 512]).unwrap();
        store.snapshot().unwrap();
    }
    let before = store.snapshots();
    let list = fs::read(dir.path().join("meta.json")).unwrap();
    // Taken, but a crash came before the list was there: its layer is left.
    store.snapshot().unwrap();
    drop(store);
    fs::write(dir.path().join("meta.json"), &list).unwrap();
    fs::create_dir_all(layer(dir.path(), 77).join("data")).unwrap();
    let store = open(dir.path()).unwrap();
    assert_eq!(names(&dir.path().join("layers")), ["00000", "00001", "00002"]);
    assert_eq!(store.snapshots(), before);
    // A merged layer goes when no view needs it.
    let view = store.view(before[1]).unwrap();
    store.delete_snapshot(before[0]).unwrap();
    while store.tidy().unwrap() {}
    assert_eq!(names(&dir.path().join("layers")), ["00000", "00001", "00002"]);
    let mut buf = [0; 512];
    view.read_at(BASE, &mut buf).unwrap();
    assert_eq!(buf, [2; 512]);
    drop(view);
    assert!(!store.tidy().unwrap());
    assert_eq!(names(&dir.path().join("layers")), ["00000", "00002"]);
}

#[test]
fn a_volume_whose_making_was_cut_off_is_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(dir.path(), "").unwrap();
    let path = dir.path().join("volumes/db");
    let rest = || {
        fs::remove_file(path.join("meta.json")).unwrap();
        assert!(data.list().unwrap().is_empty());
    };
    drop(data.paged_volume("db", new(Bytes::mib(8))).unwrap());
    rest();
    drop(data.volume("db", new(Bytes::mib(8))).unwrap());
    assert_eq!(names(&path), ["changes", "data", "meta.json"]);
    rest();
    let volume = data.paged_volume("db", new(Bytes::mib(8))).unwrap();
    assert_eq!(names(&path), ["layers", "meta.json"]);
    volume.write_at(0, &[1]).unwrap();
    drop(volume);
    fs::remove_file(path.join("meta.json")).unwrap();
    let error = data.paged_volume("db", new(Bytes::mib(8))).unwrap_err();
    let message = format!(
        "{}/meta.json is missing, and layers/00000/data/ beside it contains the bytes of a volume",
        path.display()
    );
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Damaged, message));
}

#[test]
fn a_log_does_not_grow_for_ever() {
    let dir = with_pages(&[]);
    let store = open(dir.path()).unwrap();
    let (map, log) = (layer(dir.path(), 0).join("map"), layer(dir.path(), 0).join("log"));
    let mut longest = 0;
    for n in 0..200 {
        store.write_at(BASE + n % 10 * 2 * PAGE, &[1; 512]).unwrap();
        store.sync().unwrap();
        store.trim(BASE + (n + 5) % 10 * 2 * PAGE, 512).unwrap();
        longest = longest.max(fs::metadata(&log).unwrap().len());
    }
    assert!((400..1200).contains(&longest), "{longest}");
    let expect = firsts(&store);
    drop(store);
    // A crash came between the new map and its log.
    let (old_map, old_log) = (fs::read(&map).unwrap(), fs::read(&log).unwrap());
    let generation =
        |path: &Path| u64::from_le_bytes(fs::read(path).unwrap()[8..16].try_into().unwrap());
    let before = generation(&map);
    let store = open(dir.path()).unwrap();
    while generation(&map) == before {
        store.write_at(BASE + PAGE, &[1; 512]).unwrap();
        store.sync().unwrap();
        store.trim(BASE + PAGE, 512).unwrap();
        store.sync().unwrap();
    }
    assert_eq!(firsts(&store), expect);
    drop(store);
    let new_log = fs::read(&log).unwrap();
    fs::write(&log, &old_log).unwrap();
    let store = open(dir.path()).unwrap();
    assert!(firsts(&store).iter().filter(|page| **page != 1).eq(&expect));
    store.write_at(BASE + 3 * PAGE, &[1; 512]).unwrap();
    drop(store);
    assert!(firsts(&open(dir.path()).unwrap()).contains(&3));
    // No crash leaves it the other way round.
    fs::write(&log, &new_log).unwrap();
    fs::write(&map, &old_map).unwrap();
    damaged(dir.path(), "layers/00000/log belongs to a later map than the one beside it");
}

/// Notices a log whose new frame, or whose frames found at the start, are not made durable. A device
/// takes writes, and is never synced.
#[test]
fn a_log_that_cannot_be_synced_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/null", dir.path().join("log")).unwrap();
    let mut files = Files::new(dir.path());
    assert_eq!(files.append(0, &[0; 48]).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(files.settle().unwrap_err().kind(), ErrorKind::Io);
}

/// Notices a log that was put in its place just before, and is not there after a loss of power.
#[test]
fn a_log_that_is_found_is_made_durable_with_its_name() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("log"), []).unwrap();
    let synced = disk::synced::during(|| Files::new(dir.path()).settle().unwrap());
    assert_eq!(synced, [dir.path()]);
}
