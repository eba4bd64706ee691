//! A host cache in front of a backend.

use super::load::Load;
use super::{Nbdkit, SIZE, disk, stamped};
use crate::common::{Place, run};
use crate::tools::{self, needs};
use rustix::process::Signal;
use std::fs;

/// A cache from which nothing is written back but by a flush, or because it is full.
fn layout(place: &Place) -> String {
    let socket = place.path("kit.sock").display().to_string();
    format!(
        "[host]\nunlimited = true\ncache = {{ size = \"128 KiB\", writeback_after = \"1h\" }}\n\
         [[volume]]\nname = \"data\"\nunlimited = true\ncache = \"read-write\"\n\
         backend = \"nbd+unix:///?socket={socket}\"\n"
    )
}

#[test]
fn a_read_write_cache_keeps_what_the_backend_does_not_have() {
    needs!("nbdkit");
    let place = Place::new();
    disk(&place, SIZE);
    // Without nbdkit's own cache, what reaches the backend is on the disk at once.
    let kit = Nbdkit::start_with(&place, &["file", "disk"]);
    let mut front = place.serve(&layout(&place), &[]);
    let on_disk = || fs::read(place.path("disk")).expect("the disk")[..4096].to_vec();
    let mut client = place.open("data");
    client.write(0, &stamped(1)).and_then(|()| client.flush()).expect("a flushed write");
    assert!(on_disk() == stamped(1));
    client.write(0, &stamped(2)).expect("a write");
    assert!(on_disk() == stamped(1), "the cache has it");
    let mut found = vec![0; 4096];
    client.read(0, &mut found).expect("a read");
    assert!(found == stamped(2), "the cache serves it");
    let (said, error, code) = run(place.weir(&["host", "crash", "host"]));
    assert_eq!(code, Some(0), "{said}{error}");
    assert!(error.contains("4,096 bytes were lost"), "{error}");
    let mut client = place.open("data");
    client.read(0, &mut found).expect("a read");
    assert!(found == stamped(1), "a crash of the host loses what was not written back");
    client.write(0, &stamped(3)).and_then(|()| client.flush()).expect("a flushed write");
    front.kill();
    drop(kit);
    assert!(on_disk() == stamped(3));
}

#[test]
fn a_backend_is_killed_behind_a_read_write_cache() {
    needs!("nbdkit");
    let place = Place::new();
    disk(&place, SIZE);
    let mut kit = Nbdkit::start(&place);
    let front = place.serve(&layout(&place), &[]);
    let mut load = Load::new();
    for _ in 0..5 {
        let failed = load.disturbed(&place, || {
            kit.kill();
            kit = Nbdkit::start(&place);
        });
        assert!(!failed, "a request failed when the backend was restarted");
    }
    let mut client = place.open("data");
    load.check_flushed(&mut client);
    drop(client);
    load.check_disk(&fs::read(place.path("disk")).expect("the disk"));
    front.signal(Signal::TERM);
    let (status, said) = front.wait();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(said.contains("answers again"), "{said}");
}
