//! A data folder in a file system on a volume whose bytes are elsewhere: page blobs and mounts on a
//! distributed store.

use super::{Nbdkit, disk};
use crate::blob::Rig;
use crate::common::{Place, Server};
use crate::mount::{can_mount, must, shell};
use crate::stack::{Stack, can_loop};
use crate::tools::{self, needs};
use rustix::process::Signal;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

const MIB: usize = 1 << 20;
const BLOBS: &str = "[host]\nunlimited = true\n[blob]\n";
const FILES: &str = "[[volume]]\nname = \"files\"\nsize = \"64 MiB\"\nunlimited = true\n";

fn content(stamp: u8) -> Vec<u8> {
    (stamp..=250).chain(0..stamp).cycle().take(MIB).collect()
}

/// Servers of blobs and of a mount with their data in `folder`.
struct Upper {
    blobs: Rig,
    files: Server,
    place: Place,
}

impl Upper {
    fn start(folder: &Path) -> Self {
        let data = |name: &str| folder.join(name).display().to_string();
        let blobs = Rig::new(Place::new(), BLOBS, &["--data", &data("blobs")]);
        let place = Place::new();
        fs::create_dir(place.path("mnt")).expect("a folder");
        place.file("layout.toml", FILES);
        let mount = ["mount", "layout.toml", "mnt", "--data", &data("files")];
        let files = Server::start(place.weir(&mount));
        Self { blobs, files, place }
    }

    /// Makes a blob and a file of this content. The pages are answered and the file is synced, so both are durable;
    /// another file is not synced.
    fn write(&self, stamp: u8) {
        let (blob, client) = (format!("/backups/{stamp}"), &self.blobs.client);
        client.page_blob(&blob, MIB as u64);
        client.put(&blob, 0, &content(stamp));
        let path = |name: String| self.place.path("mnt/files").join(name);
        let mut file = File::create(path(stamp.to_string())).expect("a file");
        file.write_all(&content(stamp)).and_then(|()| file.sync_all()).expect("a file");
        File::open(path(String::new())).and_then(|dir| dir.sync_all()).expect("a folder");
        fs::write(path(format!("{stamp}-unsynced")), content(stamp)).expect("a file");
    }

    fn check(&self, stamp: u8) {
        let blob = self.blobs.client.get(&format!("/backups/{stamp}"), 0, MIB as u64);
        assert!(blob == content(stamp), "blob {stamp}");
        let file = self.place.path("mnt/files").join(stamp.to_string());
        assert!(fs::read(file).expect("a file") == content(stamp), "file {stamp}");
    }

    fn stop(self) {
        self.blobs.server.stop();
        self.files.signal(Signal::TERM);
        let (status, _) = self.files.wait();
        assert_eq!(status.code(), Some(0));
    }

    fn kill(mut self) {
        self.blobs.server.kill();
        self.files.kill();
        // The mount of a server that is gone.
        must(shell("umount -lR \"$0\"", &[&self.place.path("mnt")]));
    }
}

/// Checks that page blobs that were answered and files that were synced survive the loss of everything above the store, on
/// a file system that `make` makes and `fsck` checks. `volume` starts a server of the volume `data`, and dropping what it
/// returns ends the server.
pub(super) fn survive<Volume>(make: &str, fsck: &str, volume: impl Fn(&Place) -> Volume) {
    needs!("nbdfuse", "losetup", "mkfs.ext4", "fsck.ext4", "mkfs.xfs", "xfs_repair");
    let place = Place::new();
    if !can_loop(&place) || !can_mount() {
        return;
    }
    let below = volume(&place);
    let mut stack = Stack::up(&place, "data");
    must(shell(make, &[&stack.device()]));
    stack.mount(&place);
    let folder = place.path("fs");
    let upper = Upper::start(&folder);
    upper.blobs.client.container("backups");
    upper.write(1);
    upper.check(1);
    upper.kill();
    let upper = Upper::start(&folder);
    upper.check(1);
    upper.write(2);
    // The volume goes first, as after a loss of power: nothing that is only in memory arrives.
    drop(below);
    upper.kill();
    drop(stack);
    let place = Place::new();
    let _below = volume(&place);
    let mut stack = Stack::up(&place, "data");
    stack.mount(&place);
    let upper = Upper::start(&place.path("fs"));
    upper.check(1);
    upper.check(2);
    upper.stop();
    stack.unmount();
    must(shell(fsck, &[&stack.device()]));
    stack.take_down().expect("everything is taken down");
}

#[test]
fn page_blobs_and_mounts_on_an_nbd_server() {
    needs!("nbdkit");
    let store = Place::new();
    let file = store.path("disk").display().to_string();
    let volume = |place: &Place| {
        let kit = Nbdkit::start_with(place, &["--filter=cache", "file", &file]);
        (super::file_systems::serve(place), kit)
    };
    for [make, fsck] in [
        ["mkfs.ext4 -q \"$0\"", "fsck.ext4 -fn \"$0\""],
        ["mkfs.xfs -q \"$0\"", "xfs_repair -n \"$0\""],
    ] {
        disk(&store, 0);
        disk(&store, 512 << 20);
        survive(make, fsck, volume);
    }
}
