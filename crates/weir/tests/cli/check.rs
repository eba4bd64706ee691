//! Checksums at rest: damaged blocks are errors, and `weir check` names them.

use crate::common::{Place, run};
use crate::web::{address, ask};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

const LAYOUT: &str = "[host]\nunlimited = true\n[[volume]]\nname = \"data\"\nunlimited = true\n\
    size = \"4 MiB\"\nchecksums = true\n[[volume]]\nname = \"plain\"\nunlimited = true\nsize = \"4 MiB\"\n";

/// Flips a bit of a file, as a failing disk would.
fn flip(file: &Path, offset: u64) {
    let file = fs::File::options().read(true).write(true).open(file).expect("a file");
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).expect("a byte");
    file.write_all_at(&[byte[0] ^ 4], offset).expect("a write");
}

/// Runs `weir check data` with more arguments.
fn check(place: &Place, more: &[&str]) -> (String, String, Option<i32>) {
    run(place.weir(&[&["check", "data"], more].concat()))
}

/// Returns all files below a folder with their contents, except for the lock.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("lock") {
                found.push((path.display().to_string(), fs::read(&path).expect("a file")));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_damaged_block_is_named_fails_its_reads_and_is_repaired_by_a_write() {
    let place = Place::new();
    let server = place.serve(LAYOUT, &["--data", "data"]);
    place.open("data").write(0, &[7; 16_384]).expect("a write");
    place.open("plain").write(0, &[7; 4096]).expect("a write");
    server.stop();
    let (stdout, stderr, code) = check(&place, &[]);
    assert_eq!((stderr.as_str(), code), ("", Some(0)), "{stdout}");
    assert!(stdout.starts_with("data has no damage that can be found\n"), "{stdout}");
    flip(&place.path("data/volumes/data/data/00000"), 2 * 4096 + 5);
    let before = contents(&place.path("data"));
    let (stdout, stderr, code) = check(&place, &[]);
    assert_eq!((stderr.as_str(), code), ("", Some(1)), "{stdout}");
    let line = "data/volumes/data/data/00000: 4096 bytes at offset 8192, 8192 in the volume: the \
                bytes are not those of their checksums";
    assert!(stdout.contains(line), "{stdout}");
    assert_eq!(contents(&place.path("data")), before, "a check changes nothing");
    let (json, _, code) = check(&place, &["--volume", "data", "--output", "json"]);
    assert!(json.contains("\"volume_offset\": 8192") && code == Some(1), "{json}");
    assert_eq!(check(&place, &["--volume", "plain"]).2, Some(0));

    let server = place.serve(LAYOUT, &["--data", "data"]);
    let mut client = place.open("data");
    let error = client.read(8192, &mut [0; 4096]).expect_err("damage");
    assert_eq!(error.to_string(), "the server answered EIO");
    let error = client.write(8192, &[1; 512]).expect_err("a part would bless the rest");
    assert_eq!(error.to_string(), "the server answered EIO");
    for sound in [0, 4096, 12_288] {
        let mut found = [0; 4096];
        client.read(sound, &mut found).expect("a read");
        assert_eq!(found, [7; 4096]);
    }
    client.write(8192, &[8; 4096]).expect("a write of the whole block");
    let mut found = [0; 4096];
    client.read(8192, &mut found).expect("a read");
    assert_eq!(found, [8; 4096]);
    drop(client);
    server.signal(Signal::TERM);
    assert_eq!(server.wait().0.code(), Some(0));
    let (stdout, _, code) = check(&place, &[]);
    assert_eq!(code, Some(0), "{stdout}");
}

/// The status, the metrics and the log name what requests met.
#[test]
fn damage_that_a_read_meets_is_in_the_status_the_metrics_and_once_in_the_log() {
    let place = Place::new();
    let server = place.serve(LAYOUT, &["--data", "data"]);
    place.open("data").write(0, &[7; 16_384]).expect("a write");
    server.stop();
    flip(&place.path("data/volumes/data/data/00000"), 4096);
    flip(&place.path("data/volumes/data/data/00000"), 12_288);

    let server = place.serve(LAYOUT, &["--data", "data", "--metrics", "127.0.0.1:0"]);
    let metrics = address(&server, "metrics http://").to_owned();
    let damaged = |count: u64| {
        let line =
            format!("weir_volume_damaged_reads_total{{host=\"host\",volume=\"data\"}} {count}");
        let text = ask(&metrics, "GET /metrics", &[], "");
        assert!(text.lines().any(|own| own == line), "{line}\n{text}");
        assert!(!text.contains("weir_volume_damaged_reads_total{host=\"host\",volume=\"plain\"}"));
    };
    damaged(0);
    let (text, _, _) = run(place.weir(&["status"]));
    let expect = " with checksums  failed requests  damaged blocks  offsets\n data                          0               0\n";
    assert!(text.contains(expect), "{text}");
    let mut client = place.open("data");
    for offset in [4096, 4096, 0, 12_288] {
        let read = client.read(offset, &mut [0; 4096]);
        assert_eq!(read.is_err(), offset > 0);
    }
    damaged(3);
    let (text, _, _) = run(place.weir(&["status"]));
    let expect = " with checksums  failed requests  damaged blocks  offsets\n data                          3               2  4096 12288\n";
    assert!(text.contains(expect), "{text}");
    let (json, _, _) = run(place.weir(&["status", "--output", "json"]));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let volumes = &json["hosts"][0]["volumes"];
    let expect = serde_json::json!({ "failed_requests": 3, "blocks": [4096, 12_288] });
    assert_eq!(volumes[0]["damage"], expect);
    assert!(volumes[1].get("damage").is_none(), "{}", volumes[1]);
    drop(client);
    server.signal(Signal::TERM);
    let (_, said) = server.wait();
    for block in [4096, 12_288] {
        let line = format!(
            "volume \"data\": block at offset {block} of volume data is damaged: its checksum is "
        );
        assert_eq!(said.matches(&line).count(), 1, "{said}");
    }
    assert!(said.contains("; its reads fail until the whole block is written\n"), "{said}");
}

/// A kill is no damage, and what was acknowledged is there.
#[test]
fn after_a_kill_no_block_looks_damaged() {
    let place = Place::new();
    let mut server = place.serve(LAYOUT, &["--data", "data"]);
    place.open("data").write(0, &[7; 1 << 20]).expect("a write");
    server.kill();
    let (stdout, _, code) = check(&place, &[]);
    assert_eq!(code, Some(0), "{stdout}");
    assert!(
        stdout.contains("1.00 MiB are in regions that were open when the last server ended"),
        "{stdout}"
    );
    let server = place.serve(LAYOUT, &["--data", "data"]);
    let mut found = vec![0; 1 << 20];
    place.open("data").read(0, &mut found).expect("a read");
    assert!(found.iter().all(|byte| *byte == 7));
    server.stop();
    flip(&place.path("data/volumes/data/data/00000"), 0);
    assert_eq!(check(&place, &[]).2, Some(1));
}

#[test]
fn checksums_are_added_to_a_volume_and_removed_with_the_key() {
    let place = Place::new();
    let without = LAYOUT.replace("checksums = true\n", "");
    let server = place.serve(&without, &["--data", "data"]);
    place.open("data").write(0, &[7; 8192]).expect("a write");
    server.stop();
    assert!(!place.path("data/volumes/data/sums").exists());
    place.serve(LAYOUT, &["--data", "data"]).stop();
    flip(&place.path("data/volumes/data/data/00000"), 1);
    assert_eq!(check(&place, &[]).2, Some(1));
    place.serve(&without, &["--data", "data"]).stop();
    assert!(!place.path("data/volumes/data/sums").exists());
    let (stdout, _, code) = check(&place, &[]);
    assert_eq!(code, Some(0), "{stdout}");
    assert!(stdout.contains("have no checksums and were only read"), "{stdout}");
}

#[test]
fn damaged_metadata_and_missing_files_are_named() {
    let place = Place::new();
    let server = place.serve(LAYOUT, &["--data", "data", "--blob", "127.0.0.1:0"]);
    place.open("data").write(0, &[7; 8192]).expect("a write");
    place.open("data").flush().expect("a flush");
    server.stop();
    let (stdout, _, code) = check(&place, &[]);
    assert!(stdout.contains("data/blob/records.redb is sound") && code == Some(0), "{stdout}");
    fs::write(place.path("data/volumes/other"), "a file").expect("a file");
    let (stdout, _, code) = check(&place, &[]);
    let named = stdout.contains("data/volumes/other is not the folder of a volume");
    assert!(named && code == Some(0), "{stdout}");
    flip(&place.path("data/volumes/plain/meta.json"), 20);
    fs::remove_file(place.path("data/volumes/data/data/00000")).expect("a file");
    fs::write(place.path("data/blob/records.redb"), "something else").expect("a file");
    let (stdout, _, code) = check(&place, &[]);
    assert_eq!(code, Some(1), "{stdout}");
    for damaged in ["plain/meta.json", "data/volumes/data/data/00000 is missing", "blob journal"] {
        assert!(stdout.contains(damaged), "{damaged}: {stdout}");
    }
}

#[test]
fn a_served_folder_and_wrong_input_are_refused() {
    let place = Place::new();
    let server = place.serve(LAYOUT, &["--data", "data"]);
    let (stdout, stderr, code) = check(&place, &[]);
    assert_eq!((stdout.as_str(), code), ("", Some(3)));
    let expect = format!("data directory data is in use by process {} ", server.id());
    assert!(stderr.contains(&expect), "{stderr}");
    server.stop();
    let (_, stderr, code) = check(&place, &["--volume", "dat"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("data has no volume \"dat\"; there is data, plain"), "{stderr}");
    let (_, stderr, code) = run(place.weir(&["check", "nowhere"]));
    assert_eq!(code, Some(2));
    assert!(stderr.contains("nowhere does not exist"), "{stderr}");
    assert!(!place.path("nowhere").exists());
    let on_backend =
        LAYOUT.replace("checksums = true\n", "checksums = true\nbackend = \"nbd://h/x\"\n");
    place.file("backend.toml", &on_backend);
    let (_, stderr, code) = run(place.weir(&["layout", "check", "backend.toml"]));
    assert_eq!(code, Some(2));
    assert!(stderr.contains("it has a backend, whose bytes have no checksums"), "{stderr}");
    place.file("memory.toml", LAYOUT);
    let (_, stderr, code) = run(place.weir(&["serve", "memory.toml", "--nbd", "unix:nbd"]));
    assert_eq!(code, Some(2));
    let expect =
        "volume \"data\" has checksums = true, but without --data its bytes are only in memory";
    assert!(stderr.contains(expect), "{stderr}");
}
