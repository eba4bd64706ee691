//! The clients that people use, against the real server.

use crate::common::{Place, run};
use crate::tools::{self, needs};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A volume of each cache mode, and a stripe.
const LAYOUT: &str = r#"
[host]
unlimited = true
cache = { size = "64 MiB", dirty_limit = "1 MiB", writeback_after = "100ms" }
[[volume]]
name = "plain"
unlimited = true
size = "32 MiB"
[[volume]]
name = "ro"
unlimited = true
size = "32 MiB"
cache = "read-only"
[[volume]]
name = "rw"
unlimited = true
size = "32 MiB"
cache = "read-write"
[[stripe]]
name = "wide"
unit = "64 KiB"
volumes = { count = 4, unlimited = true, size = "8 MiB" }
"#;
const EXPORTS: [&str; 4] = ["plain", "ro", "rw", "wide"];
const SIZE: usize = 32 << 20;

fn uri(place: &Place, export: &str) -> String {
    format!("nbd+unix:///{export}?socket={}", place.path("nbd.sock").display())
}

/// Runs a client; it must succeed. Returns what it printed.
#[track_caller]
fn client(place: &Place, program: &str, args: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(args).current_dir(place.dir());
    let (stdout, stderr, code) = run(command);
    assert_eq!(code, Some(0), "{program} {args:?}\n{stdout}{stderr}");
    stdout
}

/// Content with holes, that is nowhere the same: the block's number, and nothing in
/// every third stretch of 256 KiB.
fn content() -> Vec<u8> {
    let word = |n: u64| if n / 32_768 % 3 == 1 { 0 } else { n.wrapping_mul(0x9E37_79B9_7F4A_7C15) };
    (0..SIZE as u64 / 8).flat_map(|n| word(n).to_le_bytes()).collect()
}

fn same(path: &Path, expect: &[u8]) -> bool {
    std::fs::read(path).expect("a file") == expect
}

#[test]
fn nbdinfo_finds_what_is_promised() {
    needs!("nbdinfo");
    let place = Place::new();
    let server = place.serve(LAYOUT, &["--data", "data"]);
    let json = |args: &[&str]| -> Value {
        let text = client(&place, "nbdinfo", &[&["--json"], args].concat());
        serde_json::from_str(&text).expect("JSON")
    };
    let info = json(&[&uri(&place, "wide")]);
    assert_eq!(info["protocol"], "newstyle-fixed");
    assert_eq!(info["structured"], true);
    let export = &info["exports"][0];
    assert_eq!(export["export-name"], "wide");
    assert_eq!(export["description"], "4 x own limits, stripe unit 64 KiB");
    assert_eq!(export["export-size"], SIZE);
    assert_eq!(export["contexts"], serde_json::json!(["base:allocation"]));
    for (flag, expect) in [
        ("is_read_only", false),
        ("is_rotational", false),
        ("can_cache", true),
        ("can_df", true),
        ("can_fast_zero", false),
        ("can_flush", true),
        ("can_fua", true),
        ("can_multi_conn", true),
        ("can_trim", true),
        ("can_zero", true),
    ] {
        assert_eq!(export[flag], expect, "{flag}");
    }
    assert_eq!(export["block_size_minimum"], 1);
    assert_eq!(export["block_size_preferred"], 4096);
    assert_eq!(export["block_size_maximum"], 64 << 20);

    let list = json(&["--list", &uri(&place, "")]);
    let listed = list["exports"].as_array().expect("a list").iter();
    assert!(listed.map(|export| export["export-name"].as_str()).eq(EXPORTS.map(Some)));
    assert_eq!(client(&place, "nbdinfo", &["--size", &uri(&place, "")]), format!("{SIZE}\n"));
    server.stop();
}

#[test]
fn nbdinfo_maps_what_is_written() {
    needs!("nbdinfo", "qemu-io");
    let place = Place::new();
    let server = place.serve(LAYOUT, &["--data", "data"]);
    for export in EXPORTS {
        let uri = uri(&place, export);
        let write =
            ["-f", "raw", &uri, "-c", "write 1M 256k", "-c", "discard 1088k 64k", "-c", "flush"];
        client(&place, "qemu-io", &write);
        let map = client(&place, "nbdinfo", &["--map", "--json", &uri]);
        let map: Value = serde_json::from_str(&map).expect("JSON");
        let extents = map.as_array().expect("a list").iter();
        let extents: Vec<(u64, u64)> = extents
            .map(|e| (e["length"].as_u64().unwrap_or(0) >> 10, e["type"].as_u64().unwrap_or(9)))
            .collect();
        // 3 is a hole that reads as zeroes.
        assert_eq!(extents, [(1024, 3), (64, 0), (64, 3), (128, 0), (31_488, 3)], "{export}");
    }
    server.stop();
}

#[test]
fn nbdcopy_in_and_out() {
    needs!("nbdcopy");
    let place = Place::new();
    let server = place.serve(LAYOUT, &["--data", "data"]);
    let content = content();
    std::fs::write(place.path("in"), &content).expect("a file");
    for export in EXPORTS {
        client(&place, "nbdcopy", &["--flush", "in", &uri(&place, export)]);
    }
    server.stop();
    let server = place.serve(LAYOUT, &["--data", "data"]);
    for export in EXPORTS {
        let name = format!("out-{export}");
        client(&place, "nbdcopy", &[&uri(&place, export), &name]);
        assert!(same(&place.path(&name), &content), "{export}");
    }
    // From one export to another, at the same time.
    client(&place, "nbdcopy", &["--destination-is-zero", &uri(&place, "rw"), &uri(&place, "wide")]);
    client(&place, "nbdcopy", &[&uri(&place, "wide"), "out"]);
    assert!(same(&place.path("out"), &content));
    server.stop();
}

#[test]
fn qemu_img_converts_and_compares() {
    needs!("qemu-img");
    let place = Place::new();
    let server = place.serve(LAYOUT, &["--data", "data"]);
    std::fs::write(place.path("in"), content()).expect("a file");
    for export in EXPORTS {
        let uri = uri(&place, export);
        let convert = ["convert", "-n", "-W", "-m", "8", "-f", "raw", "-O", "raw", "in", &uri];
        client(&place, "qemu-img", &convert);
        let said = client(&place, "qemu-img", &["compare", "-f", "raw", "-F", "raw", "in", &uri]);
        assert_eq!(said, "Images are identical.\n", "{export}");
    }
    let (plain, wide) = (uri(&place, "plain"), uri(&place, "wide"));
    client(&place, "qemu-img", &["convert", "-f", "raw", "-O", "qcow2", &plain, "out.qcow2"]);
    let said =
        client(&place, "qemu-img", &["compare", "-f", "qcow2", "-F", "raw", "out.qcow2", &wide]);
    assert_eq!(said, "Images are identical.\n");
    server.stop();
}

#[test]
fn qemu_io_patterns() {
    needs!("qemu-io");
    let place = Place::new();
    let server = place.serve(LAYOUT, &["--data", "data"]);
    let qemu_io = |export: &str, commands: &[&str]| {
        let uri = uri(&place, export);
        let mut args = vec!["-f", "raw", &uri];
        commands.iter().for_each(|command| args.extend(["-c", command]));
        let said = client(&place, "qemu-io", &args);
        assert!(!said.contains("failed") && !said.contains("Invalid"), "{export}: {said}");
    };
    for export in EXPORTS {
        qemu_io(
            export,
            &[
                "write -P 0xa1 0 1M",
                "write -f -P 0xa2 65023 1026",
                "read -P 0xa1 0 65023",
                "read -P 0xa2 65023 1026",
                "read -P 0xa1 66049 982527",
                "write -z 131072 65536",
                "read -P 0 131072 65536",
                "write -z -u 300k 100k",
                "discard 512k 64k",
                "read -P 0 300k 100k",
                "read -P 0 512k 64k",
                "aio_write -P 0xa3 2M 4M",
                "aio_write -P 0xa4 8M 512",
                "aio_flush",
                "read -P 0xa3 2M 4M",
                "flush",
            ],
        );
    }
    server.stop();
    let server = place.serve(LAYOUT, &["--data", "data"]);
    for export in EXPORTS {
        qemu_io(export, &["read -P 0xa2 65023 1026", "read -P 0 512k 64k", "read -P 0xa4 8M 512"]);
    }
    server.stop();
}

/// The options of a fio run that writes every block once, in random order, each with
/// a checksum of its own.
fn fio<'a>(name: &'a str, uri: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let options = [
        "--rw=randwrite",
        "--bs=4k",
        "--iodepth=64",
        "--size=32M",
        "--verify=crc32c",
        "--verify_fatal=1",
        "--randseed=7",
    ];
    [&[name, "--ioengine=nbd", uri], &options[..], more].concat()
}

#[test]
fn fio_verifies_at_once_and_after_a_restart() {
    needs!("fio");
    let place = Place::new();
    let server = place.serve(LAYOUT, &["--data", "data"]);
    let jobs = |more: &[&str]| {
        // One fio with a job for each export, all at the same time.
        let uris = EXPORTS.map(|export| format!("--uri={}", uri(&place, export)));
        let names = EXPORTS.map(|export| format!("--name={export}"));
        let args: Vec<&str> =
            names.iter().zip(&uris).flat_map(|(name, uri)| fio(name, uri, more)).collect();
        client(&place, "fio", &args);
    };
    jobs(&["--end_fsync=1"]);
    server.stop();
    let server = place.serve(LAYOUT, &["--data", "data"]);
    jobs(&["--verify_only=1"]);
    // A single changed byte would have been found.
    let mut byte = place.open("wide");
    byte.write(20_000_000, &[0x5A]).expect("a write");
    let uri = format!("--uri={}", uri(&place, "wide"));
    let mut again = Command::new("fio");
    again.args(fio("--name=wide", &uri, &["--verify_only=1"])).current_dir(place.dir());
    let (_, said, code) = run(again);
    assert!(code == Some(1) && said.contains("crc32c: verify failed"), "{said}");
    server.stop();
}

#[test]
fn fio_mixes_everything_at_once() {
    needs!("fio");
    let place = Place::new();
    let server = place.serve(LAYOUT, &["--data", "data"]);
    for (export, options) in [
        ("plain", ["--rw=randrw", "--bsrange=512-256k", "--fsync=16"]),
        ("rw", ["--rw=randrw", "--bsrange=512-256k", "--fsync=8"]),
        ("wide", ["--rw=randtrimwrite", "--bs=64k", "--fsync=32"]),
    ] {
        let uri = format!("--uri={}", uri(&place, export));
        let name = format!("--name={export}");
        let more = ["--size=32M", "--iodepth=128", "--verify=crc32c"];
        client(
            &place,
            "fio",
            &[&[name.as_str(), "--ioengine=nbd", &uri], &options[..], &more].concat(),
        );
    }
    server.stop();
}
