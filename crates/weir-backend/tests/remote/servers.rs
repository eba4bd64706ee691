//! Servers of several kinds do what a store does.

use super::common::{Place, has};
use weir_backend::RemoteStore;
use weir_store::{ExtentKind, Store};
use weir_units::{Bytes, Span};

const LONG: Span = Span::from_secs(30);

/// Reads, writes, zeroes, trims and asks for extents, at aligned offsets and others.
fn exercise(store: &RemoteStore, size: u64) {
    assert_eq!(store.size(), Bytes::new(size));
    let data: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    store.write_at(1_000_001, &data).unwrap();
    let mut found = vec![9; 3_000_002];
    store.read_at(1_000_000, &mut found).unwrap();
    assert!(found[0] == 0 && found[3_000_001] == 0 && found[1..=3_000_000] == data);
    assert!(!store.try_read_at(0, &mut found).unwrap(), "it would wait");
    store.write_at(size - 1, b"z").unwrap();
    store.trim(1_500_000, 1_000_000).unwrap();
    store.write_zeroes(3_000_003, 5, false).unwrap();
    store.write_zeroes(3_000_100, 1000, false).unwrap();
    store.sync().unwrap();
    store.read_at(1_000_000, &mut found).unwrap();
    let mut expect = [&[0], data.as_slice(), &[0]].concat();
    expect[500_000..1_500_000].fill(0);
    expect[2_000_003..2_000_008].fill(0);
    expect[2_000_100..2_001_100].fill(0);
    assert!(found == expect);
    let extents = store.extents(5, size - 5, 1000).unwrap();
    assert_eq!(extents.iter().map(|own| own.len).sum::<u64>(), size - 5);
    assert!(store.extents(1_600_000, 1, 1).unwrap().len() == 1);
    let out = store.write_at(size - 1, b"zz").unwrap_err().to_string();
    assert!(out.contains("reach past the end of the volume"), "{out}");
    assert!(store.resize(Bytes::new(size * 2)).is_err());
}

#[test]
fn memory_of_nbdkit() {
    if !has("nbdkit") {
        return;
    }
    let place = Place::new();
    let _server = place.nbdkit(&["memory", "64M"]);
    let (store, _) = place.open(LONG).unwrap();
    exercise(&store, 64 << 20);
    let extents = store.extents(8 << 20, 16 << 20, 10).unwrap();
    assert_eq!(extents[0].kind, ExtentKind::Hole);
}

#[test]
fn servers_that_can_do_less() {
    if !has("nbdkit") {
        return;
    }
    for filters in [
        &["--filter=nozero", "zeromode=none"][..],
        &["--filter=noextents"],
        &["--filter=multi-conn", "multi-conn-mode=disable"],
        &["--filter=blocksize-policy", "blocksize-minimum=512", "blocksize-error-policy=error"],
        &[
            "--filter=blocksize-policy",
            "blocksize-minimum=4096",
            "blocksize-maximum=65536",
            "blocksize-error-policy=error",
        ],
    ] {
        let place = Place::new();
        let (options, parameters) = filters.split_at(1);
        let _server = place.nbdkit(&[options, &["memory", "64M"], parameters].concat());
        let (store, _) = place.open(LONG).unwrap();
        exercise(&store, 64 << 20);
    }
}

#[test]
fn a_file_of_qemu_storage_daemon() {
    if !has("qemu-storage-daemon") {
        return;
    }
    let place = Place::new();
    let _server = place.qemu(&place.disk(64 << 20));
    let (store, _) = place.open(LONG).unwrap();
    exercise(&store, 64 << 20);
}

#[test]
fn servers_that_cannot_be_used_are_refused() {
    if !has("nbdkit") {
        return;
    }
    let place = Place::new();
    let said = |place: &Place| place.open(LONG).unwrap_err().to_string();
    assert!(said(&place).contains("is the server running?"), "{}", said(&place));
    let mut server = place.nbdkit(&["-r", "memory", "1M"]);
    assert!(said(&place).starts_with("the export is read-only"), "{}", said(&place));
    server.kill();
    // Only plug-ins that cannot be written have no flush, so a script that can be written.
    let script = ["get_size=echo 1M", "pread=exit 1", "pwrite=exit 1", "can_write=exit 0"];
    let _server = place.nbdkit(&[&["eval"][..], &script].concat());
    assert!(said(&place).starts_with("the server offers no FLUSH"), "{}", said(&place));
}
