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
const BLOB: &str = "/backups/disk";
const BLOBS: &str = "[host]\nunlimited = true\n[blob]\n";
const FILES: &str = "[[volume]]\nname = \"files\"\nsize = \"64 MiB\"\nunlimited = true\n";

fn content(stamp: u8) -> Vec<u8> {
    (0..MIB).map(|at| stamp.wrapping_add((at % 251) as u8)).collect()
}

/// Servers of blobs and of a mount with their data in `folder`.
struct Above {
    blobs: Rig,
    files: Server,
    place: Place,
}

impl Above {
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

    /// Writes to both. What is answered is durable.
    fn write(&self, stamp: u8) {
        self.blobs.client.put(BLOB, 0, &content(stamp));
        let mut file = File::create(self.place.path("mnt/files/file")).expect("a file");
        file.write_all(&content(stamp)).and_then(|()| file.sync_all()).expect("a file");
    }

    fn check(&self, stamp: u8) {
        assert!(self.blobs.client.get(BLOB, 0, MIB as u64) == content(stamp), "a blob");
        assert!(fs::read(self.place.path("mnt/files/file")).expect("a file") == content(stamp));
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

/// Checks that what page blobs and mounts have acknowledged survives the loss of everything above the
/// store. `volume` starts a server of the volume `data`, and the returned value ends it when it is dropped.
pub(super) fn check<Volume>(volume: impl Fn(&Place) -> Volume) {
    let place = Place::new();
    if !can_loop(&place) || !can_mount() {
        return;
    }
    let below = volume(&place);
    let mut stack = Stack::up(&place, "data");
    must(shell("mkfs.ext4 -q \"$0\"", &[&stack.device()]));
    stack.mount(&place);
    let folder = place.path("fs");
    let above = Above::start(&folder);
    above.blobs.client.container("backups");
    above.blobs.client.page_blob(BLOB, MIB as u64);
    above.write(1);
    above.check(1);
    above.kill();
    let above = Above::start(&folder);
    above.check(1);
    above.write(2);
    // The volume goes first, as after a loss of power: nothing that is only in memory arrives.
    drop(below);
    above.kill();
    drop(stack);
    let place = Place::new();
    let _below = volume(&place);
    let mut stack = Stack::up(&place, "data");
    stack.mount(&place);
    let above = Above::start(&place.path("fs"));
    above.check(2);
    above.stop();
    stack.unmount();
    must(shell("fsck.ext4 -fn \"$0\"", &[&stack.device()]));
    stack.take_down().expect("everything is taken down");
}

#[test]
fn page_blobs_and_mounts_on_an_nbd_server() {
    needs!("nbdkit", "nbdfuse", "losetup", "mkfs.ext4", "fsck.ext4");
    let store = Place::new();
    disk(&store, 512 << 20);
    let file = store.path("disk").display().to_string();
    check(|place| {
        let kit = Nbdkit::start_with(place, &["--filter=cache", "file", &file]);
        (super::file_systems::serve(place), kit)
    });
}
