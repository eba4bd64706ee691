//! Volumes on block devices.

use super::{backend, refused};
use crate::common::Place;
use crate::stack::{Loop, can_loop};
use crate::tools::{self, needs};
use std::fs::{self, File};

const SIZE: u64 = 16 << 20;

#[test]
fn a_volume_on_a_block_device() {
    needs!("losetup");
    let place = Place::new();
    if !can_loop(&place) {
        return;
    }
    File::create(place.path("disk")).and_then(|file| file.set_len(SIZE)).expect("a file");
    let device = Loop::over(&place.path("disk"));
    let path = device.path().display().to_string();
    let layout = format!(
        "[[volume]]\nname = \"data\"\nunlimited = true\nbackend = {{ file = \"{path}\" }}\n"
    );
    let server = place.serve(&layout, &[]);
    let mut client = place.open("data");
    assert_eq!(client.size().get(), SIZE);
    client.write(5_000, &[7; 10_000]).expect("a write");
    client.write(SIZE - 512, &[9; 512]).expect("a write");
    client.write_zeroes(6_000, 100).expect("zeros");
    client.flush().expect("a flush");
    let mut expect = [vec![0; 5_000], vec![7; 10_000]].concat();
    expect[6_000..6_100].fill(0);
    let disk = fs::read(place.path("disk")).expect("the disk");
    assert!(disk[..15_000] == expect && disk[disk.len() - 512..] == [9; 512]);
    assert_eq!(backend(&place)["state"], "connected");
    // It is held: neither another Weir nor a mount gets it.
    let other = Place::new();
    let (said, code) = refused(&other, &layout, &[]);
    assert!(said.contains("used by another program") && code == Some(3), "{said}");
    drop(client);
    server.stop();
    // Another server reads what the first has written.
    let server = place.serve(&layout, &[]);
    let mut found = vec![0; 15_000];
    place.open("data").read(0, &mut found).expect("a read");
    assert!(found == expect);
    // One that was killed holds it no longer.
    drop(server);
    place.serve(&layout, &[]).stop();
}
