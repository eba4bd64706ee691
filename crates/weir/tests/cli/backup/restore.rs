//! Backups that are kept: listed, verified, pruned and restored by the real `weir`.

#![expect(clippy::unwrap_used, reason = "test code")]

use crate::common::{Place, run};
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use weir_backup::format::{BackupId, Identity, Kind, closing};
use weir_backup::key::{Keys, Secret};
use weir_backup::memory::{self, MemorySource};
use weir_backup::probe::{Probe, read_manifest};

const DAY_MS: u64 = 86_400_000;
/// 2026-03-02 00:00 UTC, a Monday.
const MONDAY_MS: u64 = 1_772_409_600_000;
const LAYOUT: &str = "[[volume]]\nname = \"data\"\nsize = \"4 MiB\"\nunlimited = true\n\
    [[volume]]\nname = \"log\"\nsize = \"1 MiB\"\nunlimited = true\n";

fn identity(id: u8, name: &str, stripes: u8) -> Identity {
    Identity {
        id: BackupId::from_bytes([id; 16]),
        name: name.to_owned(),
        kind: Kind::Full,
        base: None,
        stripes,
        created_unix_ms: MONDAY_MS,
        encryption: None,
    }
}

fn contents(seed: u8, length: usize) -> Vec<u8> {
    let byte = |at: usize| u8::try_from((at / 7 * (1 + usize::from(seed))) % 251).unwrap() ^ seed;
    (0..length).map(byte).collect()
}

/// Two sources: the start and the middle of one, and all of the other.
fn sources(seed: u8) -> [MemorySource; 2] {
    [
        MemorySource {
            name: "data".to_owned(),
            size: 4 << 20,
            ranges: vec![(0, contents(seed, 100_000)), (2 << 20, contents(seed + 1, 300_000))],
        },
        MemorySource {
            name: "log".to_owned(),
            size: 1 << 20,
            ranges: vec![(0, contents(seed + 2, 1 << 20))],
        },
    ]
}

/// The contents of a volume after its ranges were written over `before`.
fn expected(mut before: Vec<u8>, source: &MemorySource) -> Vec<u8> {
    before.resize(usize::try_from(source.size).unwrap(), 0);
    for (offset, contents) in &source.ranges {
        let start = usize::try_from(*offset).unwrap();
        before[start..start + contents.len()].copy_from_slice(contents);
    }
    before
}

/// Writes the stripes of a backup into a folder of the place.
fn back_up(place: &Place, folder: &str, identity: &Identity, sources: &[MemorySource]) {
    save(place, folder, identity, memory::write(identity, sources, 65_536, Some(1), None).unwrap());
}

fn save(place: &Place, folder: &str, identity: &Identity, stripes: Vec<Vec<u8>>) {
    fs::create_dir_all(place.path(folder)).unwrap();
    for (stripe, bytes) in (0..).zip(stripes) {
        fs::write(place.path(folder).join(identity.file_name(stripe)), bytes).unwrap();
    }
}

fn weir(place: &Place, args: &[&str]) -> (String, String, Option<i32>) {
    run(place.weir(args))
}

/// Runs `weir`, which must succeed and say nothing on stderr.
#[track_caller]
fn good(place: &Place, args: &[&str]) -> String {
    let (out, err, code) = weir(place, args);
    assert_eq!((err.as_str(), code), ("", Some(0)), "{out}");
    out
}

/// Runs `weir`, which must refuse with this message and exit code.
#[track_caller]
fn refused(place: &Place, args: &[&str], code: i32, message: &str) {
    let (out, err, got) = weir(place, args);
    assert_eq!(got, Some(code), "{out}{err}");
    assert!(err.contains(message), "{err}");
}

#[track_caller]
fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Serves the layout with the data folder, and compares what is on a volume.
#[track_caller]
fn check_volumes(place: &Place, data: &str, expect: &[(&str, Vec<u8>)]) {
    let server = place.serve(LAYOUT, &["--data", data]);
    for (name, expect) in expect {
        let mut connection = place.open(name);
        let mut got = vec![0; expect.len()];
        connection.read(0, &mut got).unwrap();
        assert!(got == *expect, "{name} is not what was backed up");
    }
    server.stop();
}

#[test]
fn backups_are_listed_and_shown() {
    let place = Place::new();
    back_up(&place, "b", &identity(1, "sales", 2), &sources(1));
    let other = identity(2, "hr", 3);
    back_up(&place, "b/deep", &other, &sources(2));
    fs::remove_file(place.path("b/deep").join(other.file_name(1))).unwrap();
    // One that is being written.
    let third = identity(3, "sales", 1);
    back_up(&place, "b", &third, &sources(3));
    let name = place.path("b").join(third.file_name(0));
    fs::rename(&name, name.with_extension("weirbak.tmp")).unwrap();
    fs::write(place.path("b/note-01of02.weirbak"), "a letter").unwrap();
    let out = good(&place, &["backup", "list", "b"]);
    let first = "3 backups in b: 1 complete, 1 with missing stripes, 1 incomplete\n";
    assert!(out.starts_with(first), "{out}");
    assert!(out.contains("hr 02020202-0202 is not whole: stripe 2 of 3 is missing"), "{out}");
    assert!(out.contains(" 01010101-0101  sales  full  2026-03-02 00:00"), "{out}");
    assert!(out.contains("b/note-01of02.weirbak is no stripe of a backup"), "{out}");
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    let list = json(&good(&place, &["backup", "list", "b", "--output", "json"]));
    let states: Vec<&str> = list["backups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|own| own["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["complete", "missing stripes", "incomplete"]);
    assert_eq!(list["backups"][1]["missing_stripes"], serde_json::json!([2]));
    let shown =
        json(&good(&place, &["backup", "show", "sales", "--from", "b", "--output", "json"]));
    assert_eq!(shown["id"], "01010101-0101-0101-0101-010101010101");
    assert_eq!(shown["sources"][1]["source"], "log");
    assert_eq!(shown["stripe_files"].as_array().unwrap().len(), 2);
    // By the beginning of the id, and by a stripe.
    let path = format!("b/{}", identity(1, "sales", 2).file_name(1));
    for text in ["0101", &path] {
        let own = json(&good(&place, &["backup", "show", text, "--from", "b", "--output", "json"]));
        assert_eq!(own["id"], shown["id"]);
    }
    refused(&place, &["backup", "show", "nothing", "--from", "b"], 2, "no backup \"nothing\" in b");
    refused(&place, &["backup", "show", "sales"], 2, "say where to look for the backup");
    refused(&place, &["backup", "list", "./none"], 2, "cannot look for backups in ./none");
    // A folder without backups is an answer.
    fs::create_dir(place.path("empty")).unwrap();
    let (out, err, code) = weir(&place, &["backup", "list", "./empty"]);
    let expect = "no backup was found in ./empty\n";
    assert_eq!((out.as_str(), err.as_str(), code), (expect, "", Some(1)));
}

#[test]
fn a_verification_names_what_is_damaged() {
    let place = Place::new();
    let own = identity(1, "sales", 3);
    back_up(&place, "b", &own, &sources(1));
    let path = |stripe| place.path("b").join(own.file_name(stripe));
    let args = ["backup", "verify", "sales", "--from", "b"];
    assert!(good(&place, &args).contains("sound"));
    let whole = fs::read(path(1)).unwrap();
    let mut bytes = whole.clone();
    bytes[512 + 200] ^= 4;
    fs::write(path(1), bytes).unwrap();
    let (out, err, code) = weir(&place, &args);
    assert_eq!((code, err.as_str()), (Some(1), ""));
    assert!(
        out.contains(
            "frame 0 of stripe 2 (34,464 bytes at offset 65,536 of source 0): its bytes do not match \
             their checksum"
        ),
        "{out}"
    );
    fs::write(path(1), &whole[..2048]).unwrap();
    let (out, _, code) = weir(&place, &[&args[..], &["--output", "json"]].concat());
    assert_eq!(code, Some(1));
    let report = &json(&out)["verified"][0];
    assert_eq!(report["is_restorable"], false);
    assert_eq!(report["damage"][0]["kind"], "truncated");
    assert_eq!(report["damage"][0]["stripe"], 2);
    fs::remove_file(path(1)).unwrap();
    let (out, _, code) = weir(&place, &args);
    assert_eq!(code, Some(1));
    assert!(out.contains("stripe 2 of 3 is missing"), "{out}");
    // A stripe of another backup under this name.
    let other = identity(2, "hr", 3);
    back_up(&place, "other", &other, &sources(2));
    fs::copy(place.path("other").join(other.file_name(1)), path(1)).unwrap();
    let (out, _, code) = weir(&place, &args);
    assert_eq!(code, Some(1));
    assert!(out.contains("stale: ") && out.contains("named stripe 2"), "{out}");
}

#[test]
fn a_truncated_backup_is_damaged_and_never_removed_silently() {
    let place = Place::new();
    let own = identity(1, "sales", 4);
    back_up(&place, "b", &own, &sources(1));
    back_up(
        &place,
        "b",
        &Identity { created_unix_ms: MONDAY_MS + 1, ..identity(2, "sales", 1) },
        &sources(2),
    );
    let path = |stripe| place.path("b").join(own.file_name(stripe));
    let bytes = fs::read(path(0)).unwrap();
    fs::write(path(0), &bytes[..bytes.len() - 512]).unwrap();
    fs::remove_file(path(2)).unwrap();
    let words = "damaged: stripe 1 of 4 is truncated; stripe 3 of 4 is missing";
    let list =
        good(&place, &["backup", "list", "b"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(list.contains(words), "{list}");
    let prune = ["backup", "prune", "b", "--keep-last", "1"];
    let said = good(&place, &[&prune[..], &["--incomplete"]].concat());
    assert!(said.starts_with("0 backups removed, 0 B; 2 backups kept\n"), "{said}");
    assert!(said.contains("stripe 1 of 4 is truncated"), "{said}");
    assert!(path(0).exists() && path(1).exists());
    let said = good(&place, &[&prune[..], &["--damaged"]].concat());
    assert!(said.starts_with("1 backup removed, "), "{said}");
    assert!(!path(0).exists() && !path(1).exists());
}

/// A finished stripe that cannot be read may be of a differential, whose full backup must stay.
#[test]
fn nothing_is_pruned_beside_a_stripe_that_cannot_be_read() {
    let place = Place::new();
    back_up(&place, "b", &identity(1, "sales", 1), &sources(1));
    back_up(&place, "b", &identity(2, "sales", 1), &sources(1));
    let note = place.path("b/note-01of01.weirbak");
    fs::write(&note, "a letter").unwrap();
    let prune = ["backup", "prune", "b", "--keep-last", "1"];
    refused(&place, &prune, 2, "nothing is pruned, since b/note-01of01.weirbak may be of");
    assert_eq!(fs::read_dir(place.path("b")).unwrap().count(), 3);
    fs::remove_file(note).unwrap();
    good(&place, &prune);
    assert_eq!(fs::read_dir(place.path("b")).unwrap().count(), 1);
}

#[test]
fn an_encrypted_backup_is_read_with_its_key_only() {
    let place = Place::new();
    place.file("key", "a secret that is long enough\n");
    place.file("wrong", "another secret that is long enough\n");
    place.file("short", "short\n");
    let keys = Keys::new(Secret::read(&place.path("key")).unwrap());
    let (encryption, key) = keys.fresh().unwrap();
    let own = Identity { encryption: Some(encryption), ..identity(1, "sales", 2) };
    let stripes = memory::write(&own, &sources(1), 65_536, Some(1), Some(&key)).unwrap();
    save(&place, "b", &own, stripes);
    let verify = ["backup", "verify", "sales", "--from", "b"];
    let with = |file| [&verify[..], &["--key-file", file]].concat();
    assert!(good(&place, &with("key")).contains("sound"));
    let said = good(&place, &verify);
    let verdict = "sales 01010101-0101: stored bytes sound, contents not checked: encrypted\n";
    assert!(said.starts_with(verdict), "{said}");
    refused(&place, &with("wrong"), 2, "the key does not belong to backup 01010101");
    refused(&place, &with("short"), 2, "a key of 5 bytes is too short");
    refused(&place, &with("none"), 2, "cannot read the key file none");
    let mut command = place.weir(&verify);
    command.env("WEIR_BACKUP_KEY", "a secret that is long enough");
    let (out, err, code) = run(command);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    assert!(out.starts_with("sales 01010101-0101 is sound: "), "{out}");
    let restore = ["restore", "sales", "--from", "b", "--image", "i"];
    refused(&place, &restore, 2, "is encrypted: give its key with --key-file");
    // A plain backup of the same name, and newer, does not pass for one made with the key.
    back_up(&place, "plain", &identity(2, "sales", 1), &sources(1));
    let mut command = place.weir(&["backup", "verify", "sales", "--from", "plain"]);
    command.env("WEIR_BACKUP_KEY", "a secret that is long enough");
    let (_, err, code) = run(command);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("was not made with the key of WEIR_BACKUP_KEY"), "{err}");
    assert!(!place.path("i").exists());
    good(&place, &[&restore[..], &["--key-file", "key"]].concat());
    let image = fs::read(place.path("i/data.raw")).unwrap();
    assert!(image == expected(Vec::new(), &sources(1)[0]));
}

#[test]
fn retention_keeps_what_a_differential_needs() {
    let place = Place::new();
    for day in 0..10_u8 {
        let created_unix_ms = MONDAY_MS + u64::from(day) * DAY_MS;
        let own = Identity { created_unix_ms, ..identity(day + 1, "sales", 2) };
        // From the sixth day on, differentials on the fifth.
        let own = match day {
            0..=4 => own,
            _ => Identity {
                kind: Kind::Differential,
                base: Some(BackupId::from_bytes([5; 16])),
                ..own
            },
        };
        back_up(&place, "b", &own, &sources(day));
    }
    let all = || {
        let list = json(&good(&place, &["backup", "list", "b", "--output", "json"]));
        let ids = list["backups"].as_array().unwrap().iter();
        ids.map(|own| own["id"].as_str().unwrap()[..2].to_owned()).collect::<Vec<String>>()
    };
    let prune = ["backup", "prune", "b", "--keep-daily", "2", "--keep-weekly", "2"];
    let said = good(&place, &[&prune[..], &["--dry-run"]].concat());
    assert!(said.starts_with("6 backups would be removed, "), "{said}");
    assert_eq!(all().len(), 10);
    good(&place, &prune);
    // The newest of two days, of two weeks, and the full backup of all of them.
    assert_eq!(all(), ["05", "07", "09", "0a"]);
    refused(&place, &["backup", "prune", "b"], 2, "no rule keeps a backup");
    let named = [&prune[..], &["--name", "hr"]].concat();
    refused(&place, &named, 2, "there are no backups named \"hr\"");
    // One that was interrupted just now is left alone.
    let late = place.path("b/x-01of01.weirbak.tmp");
    fs::write(&late, identity(77, "x", 1).header(0)).unwrap();
    let said = good(&place, &prune).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("so it may still be running; --incomplete removes it"), "{said}");
    good(&place, &[&prune[..], &["--incomplete"]].concat());
    assert!(!late.exists());
}

#[test]
fn a_backup_is_restored_to_a_layout_and_refused_where_something_is() {
    let place = Place::new();
    place.file("layout.toml", LAYOUT);
    let (first, second) = (sources(1), sources(11));
    back_up(&place, "b", &identity(1, "sales", 3), &first);
    let restore = ["restore", "sales", "--from", "b", "--to", "layout.toml", "--data", "d"];
    let report = json(&good(&place, &[&restore[..], &["--prove", "--output", "json"]].concat()));
    assert_eq!(report["is_proved"], true);
    assert_eq!(report["bytes"], 100_000 + 300_000 + (1 << 20));
    assert_eq!(report["targets"][1]["target"], "log");
    let whole = |own: &[MemorySource; 2]| {
        own.iter().map(|own| expected(Vec::new(), own)).collect::<Vec<_>>()
    };
    let [data, log] = whole(&first).try_into().unwrap();
    check_volumes(&place, "d", &[("data", data.clone()), ("log", log)]);
    refused(&place, &restore, 2, "data is not empty; --force replaces what is there");
    // What the other one does not have is zeros again, not what was there.
    let other = Identity { created_unix_ms: MONDAY_MS + DAY_MS, ..identity(2, "sales", 2) };
    let mut second = second;
    second[0].ranges.remove(0);
    back_up(&place, "b", &other, &second);
    good(&place, &[&restore[..], &["--force"]].concat());
    let [data, log] = whole(&second).try_into().unwrap();
    check_volumes(&place, "d", &[("data", data), ("log", log.clone())]);
    // To volumes of other names and sizes.
    place.file("small.toml", "[[volume]]\nname = \"a\"\nsize = \"1 MiB\"\nunlimited = true\n");
    let small = ["restore", "sales", "--from", "b", "--to", "small.toml", "--data", "e"];
    refused(&place, &small, 2, "small.toml has no export \"data\" to restore to; it has a");
    assert!(!place.path("e").exists());
    let mapped = [&small[..], &["--map", "data=a", "--only", "data"]].concat();
    refused(&place, &mapped, 2, "a has 1048576 bytes, and data has 4194304");
    good(&place, &[&small[..], &["--map", "log=a", "--only", "log"]].concat());
    let unknown = [&small[..], &["--only", "tempdb"]].concat();
    refused(&place, &unknown, 2, "the backup has no source \"tempdb\"; it has data, log");
    refused(&place, &["restore", "sales", "--from", "b"], 2, "say where to restore to");
}

#[test]
fn a_backup_is_restored_to_a_server_that_runs() {
    let place = Place::new();
    let own = sources(1);
    back_up(&place, "b", &identity(1, "sales", 2), &own);
    let server = place.serve(LAYOUT, &[]);
    let restore = ["restore", "sales", "--from", "b"];
    let to_server = [&restore[..], &["--control", "control.sock"]].concat();
    good(&place, &to_server);
    let read = |name: &str, length: usize| {
        let mut got = vec![0; length];
        place.open(name).read(0, &mut got).unwrap();
        got
    };
    assert!(read("data", 4 << 20) == expected(Vec::new(), &own[0]));
    refused(&place, &to_server, 2, "data is not empty");
    let uri = format!("nbd+unix:///log?socket={}", place.path("nbd.sock").display());
    let to_uri = [&restore[..], &["--to", &uri, "--force"]].concat();
    refused(&place, &to_uri, 2, "is one export, and the backup has 2 sources");
    good(&place, &[&to_uri[..], &["--only", "log", "--prove"]].concat());
    assert!(read("log", 1 << 20) == expected(Vec::new(), &own[1]));
    let nowhere = [&restore[..], &["--control", "control.sock", "--map", "data=x"]].concat();
    refused(
        &place,
        &nowhere,
        2,
        "has no export \"x\", and there is no folder of that name; it has data, log",
    );
    server.stop();
}

#[test]
fn a_differential_is_restored_on_its_full_backup() {
    let place = Place::new();
    let own = sources(1);
    let full = identity(1, "sales", 2);
    back_up(&place, "full", &full, &own);
    let differential = Identity {
        kind: Kind::Differential,
        base: Some(full.id),
        created_unix_ms: MONDAY_MS + DAY_MS,
        ..identity(2, "sales", 3)
    };
    let changes = [
        MemorySource {
            ranges: vec![(65_536, contents(9, 65_536)), (3 << 20, vec![0; 4096])],
            ..own[0].clone()
        },
        // All zeros now, at the start too.
        MemorySource { ranges: vec![(0, vec![0; 131_072])], ..own[1].clone() },
    ];
    back_up(&place, "diff", &differential, &changes);
    let restore = ["restore", "0202", "--from", "diff", "--image", "i", "--prove"];
    refused(&place, &restore, 1, "builds on the full backup 01010101");
    good(&place, &[&restore[..], &["--from", "full"]].concat());
    for (own, change) in own.iter().zip(&changes) {
        let image = fs::read(place.path("i").join(format!("{}.raw", own.name))).unwrap();
        assert!(image == expected(expected(Vec::new(), own), change), "{}", own.name);
    }
    let out = good(&place, &["backup", "verify", "0202", "--from", "diff", "--from", "full"]);
    assert!(out.contains("01010101-") && out.contains("02020202-"), "{out}");
    let shown = good(&place, &["backup", "show", "0202", "--from", "diff"]);
    assert!(shown.contains("builds on    01010101-0101-0101-0101-010101010101\n"), "{shown}");
    assert!(shown.contains("encoding     zstd, level 1, not encrypted\n"), "{shown}");
}

#[test]
fn a_damaged_backup_is_restored_only_if_damage_is_skipped() {
    let place = Place::new();
    let own = identity(1, "sales", 2);
    back_up(&place, "b", &own, &sources(1));
    let path = place.path("b").join(own.file_name(0));
    let mut bytes = fs::read(&path).unwrap();
    bytes[512 + 200] ^= 4;
    fs::write(&path, bytes).unwrap();
    let restore = ["restore", "sales", "--from", "b", "--image", "i"];
    refused(&place, &restore, 1, "frame 0 of stripe 1 (65,536 bytes at offset 0 of source 0)");
    let (_, said, _) = weir(&place, &restore);
    assert!(said.contains("; the unfinished images in i were removed"), "{said}");
    // Nothing that looks like an image is left.
    assert_eq!(fs::read_dir(place.path("i")).unwrap().count(), 0);
    let (out, err, code) = weir(&place, &[&restore[..], &["--damaged", "skip"]].concat());
    assert_eq!(code, Some(1), "{err}");
    assert!(out.contains("frame 0 of stripe 1"), "{out}");
    let image = fs::read(place.path("i/data.raw")).unwrap();
    let mut expect = expected(Vec::new(), &sources(1)[0]);
    expect[..65_536].fill(0);
    assert!(image == expect);
    refused(&place, &restore, 2, "i/data.raw is there already; --force replaces it");
    // A missing stripe too.
    fs::remove_file(&path).unwrap();
    let again = [&restore[..], &["--force"]].concat();
    refused(&place, &again, 1, "stripe 1 of 2 is missing");
    // What was restored before is still there.
    assert!(fs::read(place.path("i/data.raw")).unwrap() == expect);
}

#[test]
fn a_restore_is_proved_without_a_target() {
    let place = Place::new();
    back_up(&place, "b", &identity(1, "sales", 2), &sources(1));
    fs::create_dir(place.path("scratch")).unwrap();
    let args = ["restore", "sales", "--from", "b", "--prove", "--scratch", "scratch"];
    let out = good(&place, &args);
    let verdict = "sales 01010101-0101 can be restored: proved on scratch volumes, which are gone;";
    assert!(out.starts_with(verdict), "{out}");
    assert_eq!(fs::read_dir(place.path("scratch")).unwrap().count(), 0);
}

/// A backup whose manifest states more data than any file system has room for.
#[test]
fn images_without_room_are_refused_before_any_is_made() {
    let place = Place::new();
    let own = identity(1, "sales", 1);
    let mut stripe = memory::write(&own, &sources(1), 65_536, None, None).unwrap().remove(0);
    let footer = Probe::read("stripe", &mut stripe).unwrap().footer.unwrap();
    let mut manifest = read_manifest(&mut stripe, &footer).unwrap().unwrap();
    (manifest.sources[0].size, manifest.sources[0].raw_bytes) = (1 << 60, 1 << 60);
    stripe.truncate(usize::try_from(footer.position).unwrap());
    stripe.extend(closing(&manifest, &own, 0, footer.position, None).unwrap());
    save(&place, "b", &own, vec![stripe]);
    fs::create_dir(place.path("scratch")).unwrap();
    let restore = ["restore", "sales", "--from", "b"];
    let to = [&restore[..], &["--image", "i"]].concat();
    refused(&place, &to, 2, "no room in i: the images need 1048576 TiB, and ");
    let proof = [&restore[..], &["--prove", "--scratch", "scratch"]].concat();
    refused(
        &place,
        &proof,
        2,
        "give another folder, restore less with --only, or try it with --force",
    );
    assert!(!place.path("i").exists());
    assert_eq!(fs::read_dir(place.path("scratch")).unwrap().count(), 0);
    // Only the sources that are restored count.
    good(&place, &[&to[..], &["--only", "log"]].concat());
    assert!(place.path("i/log.raw").exists() && !place.path("i/data.raw").exists());
}

/// Bytes on disk below a folder.
fn allocated(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| {
            let about = entry.metadata();
            let own = about.map_or(0, |about| std::os::unix::fs::MetadataExt::blocks(&about) * 512);
            own + allocated(&entry.path())
        })
        .sum()
}

/// A restore to a volume that takes minutes, ended by a signal when it has begun to write.
#[track_caller]
fn interrupted(signal: Signal) -> (Place, Option<i32>, String) {
    let place = Place::new();
    let own = [MemorySource {
        name: "data".to_owned(),
        size: 64 << 20,
        ranges: vec![(0, contents(1, 60 << 20))],
    }];
    back_up(&place, "b", &identity(1, "sales", 2), &own);
    place.file(
        "slow.toml",
        "[[volume]]\nname = \"data\"\nsize = \"64 MiB\"\nlimits = { throughput = \"2 MB/s\" }\n",
    );
    let args = ["restore", "sales", "--from", "b", "--to", "slow.toml", "--data", "d"];
    let mut command: Command = place.weir(&args);
    let child = command.spawn().unwrap();
    let volume = place.path("d/volumes/data/data");
    while allocated(&volume) < 1 << 20 {
        #[expect(clippy::disallowed_methods, reason = "another process writes in the meantime")]
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, signal).unwrap();
    let output = child.wait_with_output().unwrap();
    (place, output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// The volume begins with a mark, and the restore can be made again.
#[track_caller]
fn check_incomplete(place: &Place) {
    place.file("fast.toml", "[[volume]]\nname = \"data\"\nsize = \"64 MiB\"\nunlimited = true\n");
    let args = ["restore", "sales", "--from", "b", "--to", "fast.toml", "--data", "d", "--quiet"];
    refused(place, &args, 2, "data is not empty");
    let segment = fs::read(place.path("d/volumes/data/data/00000")).unwrap();
    assert!(
        segment.starts_with(b"WEIR RESTORING 1")
            && segment[512..4096].iter().all(|byte| *byte == 0)
    );
    fs::create_dir(place.path("c")).unwrap();
    let backup =
        ["backup", "run", "--layout", "fast.toml", "--data", "d", "--to", "./c", "--quiet"];
    refused(place, &backup, 2, "data is not whole: a restore of backup 01010101-");
    good(place, &[&args[..], &["--force", "--prove"]].concat());
}

#[test]
fn a_restore_that_is_interrupted_says_so_and_does_not_look_whole() {
    let (place, code, said) = interrupted(Signal::INT);
    assert_eq!(code, Some(130), "{said}");
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("weir: ")).collect();
    let expect = "weir: interrupted; the restore is incomplete, do not use data: the first 4,096 bytes \
                  hold the mark of an unfinished restore; restore again with --force";
    assert_eq!(lines, [expect]);
    check_incomplete(&place);
}

#[test]
fn a_restore_that_is_killed_does_not_look_whole() {
    let (place, code, _) = interrupted(Signal::KILL);
    assert_eq!(code, None);
    check_incomplete(&place);
}

const OLTP: &str = "users = 20\nthink_time = \"1ms\"\nvcores = 4\nsize = \"8 MiB\"\n\
    buffer_pool = \"2 MiB\"\nduration = \"300ms\"\ndata = [\"data\"]\nlog = \"log\"\n\
    [checkpoint]\nevery = \"200ms\"\n\
    [[transaction]]\nname = \"t\"\nshare = 1\nreads = 2\nwrites = 4\nlog = \"1 KiB\"\ncpu = \"100us\"\n";

#[test]
fn a_database_is_backed_up_restored_and_recovered() {
    let place = Place::without_a_disk();
    place.file(
        "layout.toml",
        "[[volume]]\nname = \"data\"\nsize = \"64 MiB\"\nunlimited = true\n\
         [[volume]]\nname = \"log\"\nsize = \"1 MiB\"\nunlimited = true\n",
    );
    place.file("oltp.toml", OLTP);
    fs::create_dir(place.path("b")).unwrap();
    let (out, err, code) = weir(&place, &["run", "layout.toml", "oltp.toml", "--data", "d"]);
    assert_eq!(code, Some(0), "{out}{err}");
    let backup = ["backup", "run", "oltp.toml", "--layout", "layout.toml", "--data", "d"];
    let to = ["--to", "./b", "--stripes", "3", "--compress", "--name", "sales", "--quiet"];
    let (out, err, code) = weir(&place, &[&backup[..], &to[..]].concat());
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(good(&place, &["backup", "verify", "sales", "--from", "b"]).contains("sound"));
    let proof = ["--prove", "--oltp", "oltp.toml", "--acknowledged", "d/acknowledged-log"];
    let restore = ["restore", "sales", "--from", "b", "--to", "layout.toml", "--data", "e"];
    let out = good(&place, &[&restore[..], &proof[..]].concat());
    assert!(out.contains("nothing that was acknowledged, up to transaction"), "{out}");
    // One that acknowledged more than was backed up is told.
    fs::write(place.path("more"), "999999999\n").unwrap();
    let more = ["--prove", "--oltp", "oltp.toml", "--acknowledged", "more", "--force"];
    let (out, err, code) = weir(&place, &[&restore[..], &more[..]].concat());
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(err.contains("999"), "{err}");
}
