//! Write logs: at each of their flush points, a file system on the volume is sound.

use crate::common::{Place, run};
use crate::mount::{must, shell};
use crate::stack::{Stack, can_loop};
use crate::tools::{self, needs};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use weir_store::write_log::{LogReader, Replay};

/// Dirty blocks stay in the cache for a while, so that a flush finds some.
const LAYOUT: &str = r#"
[host]
unlimited = true
cache = { size = "64 MiB", dirty_limit = "8 MiB", writeback_after = "20ms" }
[[volume]]
name = "data"
unlimited = true
size = "48 MiB"
cache = "read-write"
"#;

/// Recovery as the kernel does it, and a check that finds nothing left to repair.
const CHECK: &str = "cp --sparse=always \"$0\" \"$1\" && { e2fsck -p \"$1\" || [ $? -eq 1 ]; } && \
                     e2fsck -fn \"$1\"";

/// Returns the number of points to check, which a campaign sets.
fn points() -> u64 {
    std::env::var("WEIR_WRITE_LOG_POINTS")
        .map_or(30, |text| text.parse().unwrap_or_else(|_| panic!("{text:?} is no number")))
}

fn entries(place: &Place) -> u64 {
    LogReader::open(&place.path("data.log")).expect("a log").entries()
}

/// Makes, syncs, renames and removes files.
fn change(dir: &Path, round: u64) {
    let folder = dir.join(format!("folder-{}", round % 7));
    fs::create_dir_all(&folder).expect("a folder");
    let new = folder.join("new");
    let mut file = File::create(&new).expect("a file");
    let len = usize::try_from(round * 7919 % 60_000).expect("small");
    file.write_all(&vec![round.to_le_bytes()[0]; len]).expect("space");
    file.sync_all().expect("a sync");
    fs::rename(&new, folder.join(format!("file-{}", round % 11))).expect("a rename");
    if round.is_multiple_of(5) {
        let gone = dir.join(format!("folder-{}", (round + 3) % 7));
        let _ = fs::remove_dir_all(gone);
    }
    let unsynced = dir.join("unsynced");
    fs::write(unsynced, vec![1; len / 2]).expect("space");
}

#[test]
fn ext4_is_sound_at_every_flush_point() {
    needs!("nbdfuse", "losetup", "mkfs.ext4", "e2fsck");
    let place = Place::new();
    if !can_loop(&place) {
        return;
    }
    let server = place.serve(LAYOUT, &["--data", "store", "--write-log", "data=data.log"]);
    let mut stack = Stack::up(&place, "data");
    let make = "mkfs.ext4 -q \"$0\" && blockdev --flushbufs \"$0\"";
    must(shell(make, &[&stack.device()]));
    let made = entries(&place);
    assert!(made > 10, "{made} entries");
    stack.mount(&place);
    // Each change is at least one flush.
    (0..points()).for_each(|round| change(&place.path("fs"), round));
    stack.unmount();
    stack.take_down().expect("everything is taken down");
    server.stop();

    let image = place.path("image");
    let mut replay = Replay::open(&place.path("data.log"), &image).expect("a log");
    let mut checked = 0;
    while let Some(entry) = replay.step().expect("a whole log") {
        if entry.number >= made && entry.flags.is_point() {
            must(shell(CHECK, &[&image, &place.path("checked")]));
            checked += 1;
        }
    }
    assert!(checked >= points(), "{checked} points");
    // All of it is the volume as it is now.
    let server = place.serve(LAYOUT, &["--data", "store"]);
    let mut now = vec![0; 48 << 20];
    let mut client = place.open("data");
    for (at, part) in (0_u64..).zip(now.chunks_mut(1 << 20)) {
        client.read(at << 20, part).expect("bytes");
    }
    drop(client);
    assert!(fs::read(&image).expect("an image") == now, "the replay has other bytes");
    server.stop();
}

#[test]
fn a_log_in_memory_has_all_writes_and_survives_a_kill() {
    let place = Place::new();
    let mut server = place.serve(LAYOUT, &["--write-log", "data=data.log"]);
    let mut client = place.open("data");
    client.write(4096, &[7; 4096]).expect("a write");
    client.write(1, &[8; 100]).expect("a write");
    client.flush().expect("a flush");
    client.write(8192, &[9; 4096]).expect("a write");
    server.kill();
    let mut replay = Replay::open(&place.path("data.log"), &place.path("image")).expect("a log");
    while replay.step().expect("a whole log").is_some() {}
    let image = fs::read(place.path("image")).expect("an image");
    assert_eq!(
        (image.len(), &image[..2], &image[99..102]),
        (48 << 20, &[0, 8][..], &[8, 8, 0][..])
    );
    assert!(image[4096..8192] == [7; 4096] && image[8192..] == vec![0; (48 << 20) - 8192]);
}

#[test]
fn wrong_write_logs_are_refused() {
    let place = Place::new();
    place.file(
        "layout.toml",
        "[host]\nunlimited = true\n[[volume]]\nname = \"data\"\nsize = \"1 MiB\"\nunlimited = true\n\
         [[stripe]]\nname = \"wide\"\nunit = \"16 KiB\"\nvolumes = { count = 2, size = \"1 MiB\", unlimited = true }\n",
    );
    place.file("there", "");
    let check = |logs: &[&str], expect: &str| {
        let serve = ["serve", "layout.toml", "--nbd", "unix:nbd.sock"];
        let logs: Vec<&str> = logs.iter().flat_map(|log| ["--write-log", *log]).collect();
        let (_, said, code) = run(place.weir(&[&serve, &logs[..]].concat()));
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(expect), "{said}");
    };
    check(&["data"], "expected VOLUME=FILE, for example data=data.log");
    check(&["dota=log"], "there is no volume \"dota\"; did you mean \"data\"?");
    check(&["wide=log"], "volume \"wide\": it is a stripe; name its columns one by one: wide");
    check(
        &["data=a", "data=b"],
        "--write-log data=b: data has a write log already; name each volume once",
    );
    let there =
        "its write log there is there already; a log begins with the server: give a new file";
    check(&["data=there"], there);
    check(
        &["data=no/log"],
        "cannot create the write log no/log: No such file or directory (os error 2); give another path for its write log",
    );
}
