//! Requests that must not be done, whatever signs them.

use super::Rig;
use crate::common::Place;

const LAYOUT: &str = "[host]\nunlimited = true\n[blob]\n";
const BLOB: &str = "/safe/blob";

fn rig() -> Rig {
    let rig = Rig::new(Place::without_a_disk(), LAYOUT, &[]);
    rig.client.container("safe");
    rig.client.page_blob(BLOB, 1 << 20);
    rig.client.put(BLOB, 0, &[1; 512]);
    rig
}

/// Not a refusal but for the wrong one: what is signed depends on where the account stands.
#[test]
fn the_account_may_stand_in_the_name_of_the_host() {
    let rig = rig();
    let by_host = rig.client.by_host();
    by_host.put(BLOB, 512, &[2; 512]);
    assert_eq!(rig.client.get(BLOB, 0, 1024)[511..513], [1, 2]);
    let listed = by_host.must("GET", "/safe?comp=list&restype=container", &[], &[]).text();
    assert!(listed.contains("<Name>blob</Name>"), "{listed}");
    // With the account in both places the path names a container of that name.
    let twice = by_host.ask("GET", "/devstoreaccount1/blob", &[], &[]);
    assert_eq!((twice.status, twice.code()), (404, "ContainerNotFound"));
}

#[test]
fn a_parameter_that_comes_twice_is_refused() {
    let rig = rig();
    let made = rig.client.must("PUT", &format!("{BLOB}?comp=snapshot"), &[], &[]);
    let at = made.headers["x-ms-snapshot"].replace(':', "%3A");
    for query in [format!("snapshot=&snapshot={at}"), format!("snapshot={at}&Snapshot=")] {
        let refused = rig.client.ask("DELETE", &format!("{BLOB}?{query}"), &[], &[]);
        assert_eq!(refused.code(), "InvalidQueryParameterValue", "{query}");
    }
    rig.client.must("HEAD", BLOB, &[], &[]);
}

#[test]
fn a_snapshot_or_a_version_is_not_taken_for_the_blob() {
    let rig = rig();
    let made = rig.client.must("PUT", &format!("{BLOB}?comp=snapshot"), &[], &[]);
    let at = made.headers["x-ms-snapshot"].replace(':', "%3A");
    let write = [("x-ms-page-write", "update"), ("x-ms-range", "bytes=0-511")];
    let path = format!("{BLOB}?comp=page&snapshot={at}");
    let refused = rig.client.ask("PUT", &path, &write, &[2; 512]);
    assert_eq!(refused.code(), "InvalidQueryParameterValue");
    let refused = rig.client.ask("DELETE", &format!("{BLOB}?versionid={at}"), &[], &[]);
    assert_eq!((refused.status, refused.code()), (501, "NotImplemented"));
    assert_eq!(rig.client.get(BLOB, 0, 512), [1; 512]);
}

#[test]
fn ranges_at_the_end_of_all_numbers_are_refused() {
    let rig = rig();
    for range in ["bytes=0-18446744073709551615", "bytes=18446744073709551104-18446744073709551615"]
    {
        let clear = [("x-ms-page-write", "clear"), ("x-ms-range", range)];
        let refused = rig.client.ask("PUT", &format!("{BLOB}?comp=page"), &clear, &[]);
        assert_eq!(refused.code(), "InvalidHeaderValue", "{range}");
    }
    let clear = [("x-ms-page-write", "clear"), ("x-ms-range", "bytes=0-")];
    rig.client.must("PUT", &format!("{BLOB}?comp=page"), &clear, &[]);
    assert_eq!(rig.client.ranges(BLOB, ""), []);
}

#[test]
fn a_blob_of_nothing_has_nothing_when_it_grows_again() {
    let rig = rig();
    for size in ["0", "1048576"] {
        let resize = [("x-ms-blob-content-length", size)];
        rig.client.must("PUT", &format!("{BLOB}?comp=properties"), &resize, &[]);
    }
    assert_eq!(rig.client.ranges(BLOB, ""), []);
    assert_eq!(rig.client.get(BLOB, 0, 512), [0; 512]);
}

#[test]
fn a_missing_journal_is_told_and_nothing_is_removed() {
    let place = Place::without_a_disk();
    let rig = Rig::new(place, LAYOUT, &["--data", "data"]);
    rig.client.container("safe");
    rig.client.page_blob(BLOB, 1 << 20);
    let Rig { place, server, .. } = rig;
    server.stop();
    let journal = place.path("data/blob/records.redb");
    std::fs::rename(&journal, place.path("kept")).expect("it is there");
    let serve = ["serve", "layout.toml", "--nbd", "unix:nbd.sock", "--data", "data"];
    let (_, stderr, code) =
        crate::common::run(place.weir(&[&serve[..], &["--blob", "127.0.0.1:0"]].concat()));
    assert_eq!(code, Some(3));
    assert!(stderr.contains("records.redb: it is missing, and there are 1 volumes"), "{stderr}");
    std::fs::rename(place.path("kept"), &journal).expect("it is there");
    let rig = Rig::new(place, LAYOUT, &["--data", "data"]);
    rig.client.must("HEAD", BLOB, &[], &[]);
}
