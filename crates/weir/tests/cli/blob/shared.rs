//! A page blob that is an export too: one set of bytes, limits and counters, and one writer
//! at a time.

use super::Rig;
use crate::common::{Place, run};
use serde_json::Value;
use weir_client::Connection;

const LAYOUT: &str = "[host]\nunlimited = true\n[blob]\n";
const BLOB: &str = "/vhds/disk.vhd";
const EXPORT: &str = "vhds.disk.vhd";

fn rig() -> Rig {
    let rig = Rig::new(Place::without_a_disk(), LAYOUT, &[]);
    rig.client.container("vhds");
    rig.client.page_blob(BLOB, 1 << 20);
    rig
}

fn read(export: &mut Connection, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    export.read(offset, &mut bytes).expect("bytes");
    bytes
}

fn status(rig: &Rig) -> Value {
    let (stdout, stderr, code) = run(rig.place.weir(&["status", "-o", "json"]));
    assert_eq!(code, Some(0), "{stderr}");
    let status: Value = serde_json::from_str(&stdout).expect("JSON");
    let volumes = status["hosts"][0]["volumes"].as_array().expect("volumes");
    volumes.iter().find(|volume| volume["name"] == EXPORT).expect("the blob").clone()
}

#[test]
fn a_blob_is_an_export_and_both_see_the_same() {
    let rig = rig();
    rig.client.put(BLOB, 4096, &[7; 1024]);
    let mut export = rig.place.open(EXPORT);
    assert_eq!(read(&mut export, 4096, 1024), [7; 1024]);
    export.write(8192, &[9; 512]).expect("a write");
    drop(export);
    assert_eq!(rig.client.get(BLOB, 8192, 512), [9; 512]);
    assert_eq!(rig.client.ranges(BLOB, ""), [(4096, 5119), (8192, 8703)]);
    let volume = status(&rig);
    assert_eq!((&volume["reads"], &volume["writes"]), (&2.into(), &2.into()), "{volume}");
    let (_, stderr, code) = run(rig.place.weir(&["volume", "delete", EXPORT, "--yes"]));
    assert_eq!(code, Some(2));
    assert!(stderr.contains("it is a page blob"), "{stderr}");
}

#[test]
fn a_client_of_the_export_that_writes_has_the_lease() {
    let rig = rig();
    let mut export = rig.place.open(EXPORT);
    // A reader does not prevent writes.
    read(&mut export, 0, 512);
    rig.client.put(BLOB, 0, &[1; 512]);
    export.write(512, &[2; 512]).expect("a write");
    let refused = rig.client.try_put(BLOB, 0, &[3; 512]).expect("an answer");
    assert_eq!((refused.status, refused.code()), (412, "LeaseIdMissing"));
    let lease = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
    let refused = rig.client.ask("PUT", &format!("{BLOB}?comp=lease"), &lease, &[]);
    assert_eq!((refused.status, refused.code()), (409, "LeaseAlreadyPresent"));
    let head = rig.client.must("HEAD", BLOB, &[], &[]);
    assert_eq!(head.headers["x-ms-lease-state"], "leased");
    drop(export);
    // The server sees that it has gone, in a moment.
    while rig.client.must("HEAD", BLOB, &[], &[]).headers["x-ms-lease-state"] == "leased" {
        std::thread::yield_now();
    }
    rig.client.put(BLOB, 0, &[3; 512]);
}

#[test]
fn a_blob_that_is_leased_is_not_written_to_through_its_export() {
    let rig = rig();
    let mut before = rig.place.open(EXPORT);
    let lease = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
    let leased = rig.client.must("PUT", &format!("{BLOB}?comp=lease"), &lease, &[]);
    assert!(before.write(0, &[1; 512]).is_err());
    let mut after = rig.place.open(EXPORT);
    assert!(after.write(0, &[1; 512]).is_err());
    assert_eq!(read(&mut after, 0, 512), [0; 512]);
    let id = leased.headers["x-ms-lease-id"].clone();
    let release = [("x-ms-lease-action", "release"), ("x-ms-lease-id", &*id)];
    rig.client.must("PUT", &format!("{BLOB}?comp=lease"), &release, &[]);
    before.write(0, &[1; 512]).expect("a write");
}

#[test]
fn writes_to_an_export_change_the_etag_of_the_blob() {
    let rig = rig();
    let etag = |rig: &Rig| rig.client.must("HEAD", BLOB, &[], &[]).headers["etag"].clone();
    let before = etag(&rig);
    assert_eq!(etag(&rig), before);
    let mut export = rig.place.open(EXPORT);
    export.write(0, &[1; 512]).expect("a write");
    let while_it_writes = etag(&rig);
    assert_ne!(while_it_writes, before);
    drop(export);
    assert_ne!(etag(&rig), while_it_writes);
    let (_, stderr, code) = run(rig.place.weir(&["volume", "resize", EXPORT, "2MiB"]));
    assert_eq!(code, Some(2));
    assert!(stderr.contains("it is a page blob"), "{stderr}");
}

/// Whatever its volume is called, a blob is exported under its own name, and what only a
/// snapshot has left of it not at all.
#[test]
fn a_blob_that_is_made_again_is_the_export() {
    let place = Place::new();
    let rig = Rig::new(place, LAYOUT, &["--data", "data"]);
    rig.client.container("vhds");
    rig.client.page_blob(BLOB, 1 << 20);
    rig.client.put(BLOB, 0, &[1; 512]);
    rig.client.must("PUT", &format!("{BLOB}?comp=snapshot"), &[], &[]);
    let mut old = rig.place.open(EXPORT);
    assert_eq!(read(&mut old, 0, 512), [1; 512]);
    for n in 2..5_u8 {
        rig.client.page_blob(BLOB, 1 << 20);
        rig.client.put(BLOB, 0, &[n; 512]);
        assert_eq!(read(&mut rig.place.open(EXPORT), 0, 512), [n; 512]);
    }
    // Acknowledged writes are in the blob; a client of the old blob gets an error.
    assert!(old.write(512, &[8; 512]).is_err(), "a write that no blob has");
    let mut export = rig.place.open(EXPORT);
    export.write(512, &[9; 512]).expect("a write");
    drop((export, old));
    let rig = rig.again(&["--data", "data"]);
    assert_eq!(read(&mut rig.place.open(EXPORT), 0, 513), [[4; 512].as_slice(), &[9]].concat());
    assert_eq!(rig.client.get(BLOB, 512, 1), [9]);
    let (stdout, _, _) = run(rig.place.weir(&["status", "-o", "json"]));
    let status: Value = serde_json::from_str(&stdout).expect("JSON");
    let exports = status["hosts"][0]["exports"].as_array().expect("exports");
    let names: Vec<_> = exports.iter().map(|export| &export["name"]).collect();
    assert_eq!(names, [EXPORT]);
}
