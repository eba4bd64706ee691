//! Data folders: those of earlier versions are read, copies are complete, and each has one server.

use crate::common::{Place, run};
use crate::tools::{self, needs};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

const LAYOUT: &str = "[host]\nunlimited = true\n[[volume]]\nname = \"data\"\nunlimited = true\n\
    size = \"4 MiB\"\n";

#[track_caller]
fn tool(program: &str, args: &[&str], folder: &Path) {
    let mut command = Command::new(program);
    command.args(args).current_dir(folder);
    let (stdout, stderr, code) = run(command);
    assert_eq!(code, Some(0), "{program} {args:?}: {stdout}{stderr}");
}

/// Reads a block, which has to be one byte again and again.
#[track_caller]
fn byte_at(place: &Place, export: &str, offset: u64) -> u8 {
    let mut found = vec![0; 4096];
    place.open(export).read(offset, &mut found).expect("a read");
    assert!(found.iter().all(|byte| *byte == found[0]), "{export} at {offset}");
    found[0]
}

/// A folder that version 0.2.0 wrote: a volume that was resized and recached, a stripe, and a page blob
/// with a snapshot. Every later version has to read it.
/// The notice of a full disk.
const FULL: &str = "weir: volume \"data\": no space left: cannot write disk/volumes/data/data/00000; such writes fail \
                    with ENOSPC until there is space\n";

#[test]
fn the_folder_of_an_earlier_release_is_served() {
    needs!("tar");
    let place = Place::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let archive = fixtures.join("data-folder-0.2.0.tar.gz").display().to_string();
    tool("tar", &["xzf", &archive], place.dir());
    let layout = fs::read_to_string(fixtures.join("data-folder-0.2.0.toml")).expect("a layout");
    // The second start reads what the first one wrote.
    for _ in 0..2 {
        let server = place.serve(&layout, &["--data", "data", "--blob", "127.0.0.1:0"]);
        for export in ["data", "wide"] {
            let found = [0, 4096, 64 << 10, 192 << 10].map(|at| byte_at(&place, export, at));
            assert_eq!(found, *b"a\0bc", "{export}");
        }
        let found = [0, 8192, 16_384].map(|at| byte_at(&place, "vhds.disk.vhd", at));
        assert_eq!(found, *b"\0pq");
        let (status, _, _) = run(place.weir(&["volume", "list"]));
        let line = status.lines().find(|line| line.starts_with(" data ")).expect("a line");
        assert!(line.trim_end().ends_with("none"), "{status}");
        assert_eq!(place.open("data").size().get(), 2 << 20);
        server.stop();
    }
}

#[test]
fn a_newer_folder_is_left_alone() {
    let place = Place::new();
    place.serve(LAYOUT, &["--data", "data"]).stop();
    place.file("data/format", "weir data 2\n");
    let before = fs::read(place.path("data/volumes/data/meta.json")).expect("a file");
    let (stdout, stderr, code) =
        run(place.weir(&["serve", "layout.toml", "--nbd", "unix:nbd.sock", "--data", "data"]));
    assert_eq!((stdout.as_str(), code), ("", Some(3)));
    let expect = "data/format has format \"weir data 2\", this release reads \"weir data 1\"";
    assert!(stderr.contains(expect), "{stderr}");
    assert_eq!(fs::read(place.path("data/volumes/data/meta.json")).expect("a file"), before);
}

/// The bytes of a stopped server are in its folder, and nowhere else.
#[test]
fn a_copy_of_a_stopped_folder_is_a_backup() {
    needs!("cp");
    let place = Place::new();
    let server = place.serve(LAYOUT, &["--data", "data"]);
    place.open("data").write(0, &[7; 8192]).expect("a write");
    server.stop();
    tool("cp", &["-a", "--sparse=always", "data", "copy"], place.dir());
    let server = place.serve(LAYOUT, &["--data", "data"]);
    place.open("data").write(0, &[8; 4096]).expect("a write");
    server.stop();
    let server = place.serve(LAYOUT, &["--data", "copy"]);
    assert_eq!([0, 4096, 8192].map(|at| byte_at(&place, "data", at)), [7, 7, 0]);
    server.stop();
}

/// Replaces bytes of a file in the data folder, as a failing disk would.
fn damage(file: &Path, offset: u64) {
    let file = fs::File::options().write(true).open(file).expect("a file");
    file.write_all_at(&[0xEE; 16], offset).expect("a write");
}

/// Without `checksums`, a read of a volume returns what the disk has. Damage of metadata is found.
#[test]
fn damaged_bytes_are_read_as_they_are_and_damaged_metadata_is_named() {
    let place = Place::new();
    let server = place.serve(LAYOUT, &["--data", "data"]);
    place.open("data").write(0, &[7; 8192]).expect("a write");
    server.stop();
    let volume = place.path("data/volumes/data");
    damage(&volume.join("data/00000"), 4096);
    let server = place.serve(LAYOUT, &["--data", "data"]);
    let mut found = [0; 8192];
    place.open("data").read(0, &mut found).expect("a read");
    assert!(found[..4096] == [7; 4096] && found[4096..4112] == [0xEE; 16]);
    assert!(found[4112..] == [7; 4080]);
    server.stop();
    damage(&volume.join("meta.json"), 20);
    let (stdout, stderr, code) =
        run(place.weir(&["serve", "layout.toml", "--nbd", "unix:nbd.sock", "--data", "data"]));
    assert_eq!(stdout, "");
    assert_ne!(code, Some(0), "{stderr}");
    assert!(stderr.contains("data/volumes/data/meta.json"), "{stderr}");
}

#[test]
fn a_folder_has_one_server() {
    let place = Place::new();
    let server = place.serve(LAYOUT, &["--data", "data"]);
    let mut second =
        place.weir(&["serve", "layout.toml", "--nbd", "unix:second", "--data", "data"]);
    second.env("WEIR_CONTROL", "second-control");
    let (stdout, stderr, code) = run(second);
    assert_eq!((stdout.as_str(), code), ("", Some(3)));
    let expect = format!("data directory data is in use by process {} ", server.id());
    assert!(stderr.contains(&expect), "{stderr}");
    place.open("data").write(0, &[1; 4096]).expect("the first one goes on");
    server.stop();
}

#[test]
fn a_read_only_folder_is_refused_and_a_full_one_is_served() {
    needs!("unshare", "mount", "cp", "dd");
    refuses_read_only_and_serves_full(LAYOUT);
}

#[test]
fn a_volume_with_checksums_is_served_on_a_full_disk() {
    needs!("unshare", "mount", "cp", "dd");
    let layout = LAYOUT.replace("[[volume]]\n", "[[volume]]\nchecksums = true\n");
    assert_ne!(layout, LAYOUT);
    refuses_read_only_and_serves_full(&layout);
}

fn refuses_read_only_and_serves_full(layout: &str) {
    let place = Place::new();
    let server = place.serve(layout, &["--data", "data"]);
    place.open("data").write(0, &[5; 1 << 20]).expect("a write");
    server.stop();
    fs::create_dir(place.path("disk")).expect("a folder");
    let on_disk = |script: &str| {
        let weir =
            place.weir(&["serve", "layout.toml", "--nbd", "unix:nbd.sock", "--data", "disk"]);
        let script =
            format!("mount -t tmpfs -o size=3m none disk && cp -r data/. disk/ && {script}");
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", &script, "sh"]);
        command.arg(weir.get_program()).args(weir.get_args()).current_dir(place.dir());
        command.env("WEIR_CONTROL", "control.sock").env("COLUMNS", "1000");
        command
    };
    let (stdout, stderr, code) = run(on_disk("mount -o remount,ro none disk && exec \"$@\""));
    assert_eq!((stdout.as_str(), code), ("", Some(3)));
    assert!(stderr.contains("cannot lock disk/lock: Read-only file system"), "{stderr}");
    let mut full = on_disk("{ dd if=/dev/zero of=disk/fill bs=4k 2>/dev/null; exec \"$@\"; }");
    full.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
    let server = crate::common::Server::start(full);
    assert_eq!(byte_at(&place, "data", 0), 5);
    let mut client = place.open("data");
    let error = client.write(2 << 20, &[6; 64 << 10]).expect_err("it is full");
    assert_eq!(error.to_string(), "the server answered ENOSPC");
    // Allocated blocks can be overwritten, and trimmed to make room.
    client.write(0, &[6; 4096]).expect("its space is taken");
    client.queue_trim(0, 512 << 10, 512 << 10).expect("queued");
    client.flush_out().expect("sent");
    client.receive(|_, answer| assert!(answer.is_ok())).expect("a reply");
    client.write(2 << 20, &[6; 64 << 10]).expect("there is space");
    client.flush().expect("there is space");
    drop(client);
    server.stop_after(FULL);
}
