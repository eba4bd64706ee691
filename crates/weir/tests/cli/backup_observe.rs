//! `weir observe import`, `show` and `diagnose` of backups.

use crate::common::{Place, run};
use serde_json::Value;

const LAYOUT: &str = "edition = \"azure-premium-2015\"\n[host]\nsize = \"DS14\"\n[[stripe]]\nname = \
                      \"data\"\nunit = \"64 KiB\"\nvolumes = { count = 10, tier = \"P30\" }\n[[volume]]\nname \
                      = \"target\"\ntier = \"P30\"\nlatency = \"24.2 ms\"\n";
const MESSAGES: &str = "BACKUP DATABASE [Sales] TO DISK = N'F:\\b\\1.bak' WITH MAXTRANSFERSIZE = 1048576\n\
                        BACKUP DATABASE successfully processed 5122010 pages in 243.504 seconds \
                        (164.332 MB/sec).\n";

fn place() -> Place {
    let place = Place::new();
    place.file("layout.toml", LAYOUT);
    place.file("messages.txt", MESSAGES);
    place
}

fn imported(place: &Place) {
    let args = ["observe", "import", "messages.txt", "--out", "b.weirobs"];
    let (_, stderr, code) = run(place.weir(&args));
    assert_eq!(code, Some(0), "{stderr}");
}

#[test]
fn a_message_is_shown_with_its_rate() {
    let place = place();
    imported(&place);
    let (json, _, code) = run(place.weir(&["observe", "show", "b.weirobs", "-o", "json"]));
    let shown: Value = serde_json::from_str(&json).expect("JSON");
    let own = &shown["backups"][0];
    assert_eq!(code, Some(0));
    assert_eq!(own["backup"], "Sales full");
    assert_eq!((&own["count"], &own["seconds"]), (&1.into(), &243.504.into()));
    assert_eq!((&own["stripes"], &own["targets"]), (&1.into(), &"F:\\b".into()));
    // What was written is not known, and not zero.
    assert_eq!(own["written_bytes"], Value::Null);
    let (text, _, _) = run(place.weir(&["observe", "show", "b.weirobs"]));
    let row = text.lines().find(|line| line.contains("Sales full")).expect("a row");
    assert!(row.contains("164") && row.contains("F:\\b"), "{row}");
    let (_, stderr, code) = run(place.weir(&["observe", "checklist", "b.weirobs"]));
    assert!(code.is_some() && !stderr.contains("panic"), "{stderr}");
}

#[test]
fn a_message_and_a_layout_name_the_limit() {
    let place = place();
    let args =
        ["diagnose", "messages.txt", "--layout", "layout.toml", "--map", "F:=target", "-o", "json"];
    let (json, stderr, code) = run(place.weir(&args));
    let report: Value =
        serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {stderr}"));
    // Too few files are no cap.
    assert_eq!(code, Some(0), "{stderr}");
    let own = &report["findings"][0];
    assert_eq!((&own["rule"], &own["check_id"]), (&"backup-limit".into(), &113.into()));
    assert!(
        own["finding"].as_str().is_some_and(|text| text.contains("too few writes in flight")),
        "{own}"
    );
    let text =
        place.weir(&["diagnose", "messages.txt", "--layout", "layout.toml", "--map", "F:=target"]);
    let (text, ..) = run(text);
    assert!(text.contains("write 4 files at a time"), "{text}");
}

#[test]
fn a_simulated_backup_is_diagnosed_from_its_observation() {
    let place = place();
    let backup =
        "[backup]\nsources = [\"data\"]\nto = [\"target\"]\nstripes = 4\nsize = \"8 GiB\"\n";
    place.file("backup.toml", backup);
    let args = ["sim", "layout.toml", "backup.toml", "--observe", "run.weirobs"];
    let (_, stderr, code) = run(place.weir(&args));
    assert_eq!(code, Some(0), "{stderr}");
    let (text, _, code) = run(place.weir(&["diagnose", "run.weirobs"]));
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("held at the throughput limit of its target target"), "{text}");
    assert!(text.contains("write to 2 disks of this kind"), "{text}");
    let (shown, ..) = run(place.weir(&["observe", "show", "run.weirobs"]));
    let row = shown.lines().find(|line| line.starts_with(" backup  ") && line.ends_with("target"));
    let row: Vec<&str> = row.unwrap_or_else(|| panic!("{shown}")).split_whitespace().collect();
    // Its stripes, its reader, its buffers and its transfers, before its target.
    assert_eq!(row[row.len() - 5..], ["4", "1", "22", "1024", "target"], "{shown}");
}

#[test]
fn a_target_that_the_layout_does_not_have_is_refused() {
    let place = place();
    let args = ["diagnose", "messages.txt", "--layout", "layout.toml", "--map", "F:=tarjet"];
    let (_, stderr, code) = run(place.weir(&args));
    assert_eq!(code, Some(2), "{stderr}");
    assert!(
        stderr.contains("no \"tarjet\" in the layout") && stderr.contains("\"target\""),
        "{stderr}"
    );
}
