//! File systems on a volume whose backend is killed.

use super::{Nbdkit, number};
use crate::common::{Place, Server};
use crate::mount::{must, shell};
use crate::stack::{Stack, can_loop};
use crate::tools::{self, needs};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// The smallest disk that mkfs.xfs takes is 300 MiB.
const SIZE: u64 = 320 << 20;
/// The content of a file.
const LEN: usize = 300_000;
/// Files at once: later ones replace the first.
const FILES: u64 = 100;

pub(super) fn serve(place: &Place) -> Server {
    let socket = place.path("kit.sock").display().to_string();
    place.serve(
        &format!(
            "[[volume]]\nname = \"data\"\nunlimited = true\n\
             backend = {{ nbd = \"nbd+unix:///?socket={socket}\", timeout = \"60s\" }}\n"
        ),
        &[],
    )
}

fn content(n: u64) -> Vec<u8> {
    n.to_le_bytes().iter().copied().cycle().take(LEN).collect()
}

fn name(n: u64) -> String {
    (n % FILES).to_string()
}

/// Writes the `n`th file, and syncs it.
fn write(dir: &Path, n: u64) {
    let mut file = File::create(dir.join(name(n))).expect("a file");
    file.write_all(&content(n)).and_then(|()| file.sync_all()).expect("a file");
}

fn check_files(dir: &Path, files: u64) {
    for n in files.saturating_sub(FILES)..files {
        assert!(fs::read(dir.join(name(n))).expect("a file") == content(n), "file {n}");
    }
}

fn check(make: &str, fsck: &str) {
    let place = Place::new();
    if !can_loop(&place) {
        return;
    }
    File::create(place.path("disk")).and_then(|file| file.set_len(SIZE)).expect("a file");
    let mut kit = Nbdkit::start(&place);
    let mut server = serve(&place);
    let mut stack = Stack::up(&place, "data");
    must(shell(make, &[&stack.device()]));
    stack.mount(&place);
    let dir = place.path("fs");
    let mut files = 0;
    // The backend alone: the file system sees nothing of it.
    for _ in 0..number("WEIR_BACKEND_KILLS", 3) {
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| (files..files + 20).for_each(|n| write(&dir, n)));
            std::thread::park_timeout(std::time::Duration::from_millis(30));
            kit.kill();
            kit = Nbdkit::start(&place);
            writer.join().expect("no error");
        });
        files += 20;
    }
    stack.unmount();
    must(shell(fsck, &[&stack.device()]));
    stack.mount(&place);
    check_files(&dir, files);
    // Weir and the backend: as after a loss of power, the journal is replayed.
    for n in files..files + 20 {
        write(&dir, n);
    }
    files += 20;
    fs::write(dir.join("unsynced"), content(0)).expect("a file");
    server.kill();
    drop(kit);
    // The file system has errors now, and its last changes are lost with it.
    drop(stack);
    let _kit = Nbdkit::start(&place);
    let server = serve(&place);
    let mut stack = Stack::up(&place, "data");
    stack.mount(&place);
    check_files(&dir, files);
    stack.unmount();
    must(shell(fsck, &[&stack.device()]));
    stack.take_down().expect("everything is taken down");
    server.stop();
}

#[test]
fn ext4_survives_a_kill_of_the_backend() {
    needs!("nbdkit", "nbdfuse", "losetup", "mkfs.ext4", "fsck.ext4");
    check("mkfs.ext4 -q \"$0\"", "fsck.ext4 -fn \"$0\"");
}

#[test]
fn xfs_survives_a_kill_of_the_backend() {
    needs!("nbdkit", "nbdfuse", "losetup", "mkfs.xfs", "xfs_repair");
    check("mkfs.xfs -q \"$0\"", "xfs_repair -n \"$0\"");
}
