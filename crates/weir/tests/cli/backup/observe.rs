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
    // The written bytes are unknown, not zero.
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

/// Three small disks, one of which is for backups.
const SMALL: &str = "edition = \"azure-now\"\n[host]\nsize = \"D2s_v3\"\n[[volume]]\nname = \"data\"\ntier \
                     = \"P4\"\n[[volume]]\nname = \"log\"\ntier = \"P4\"\n[[volume]]\nname = \
                     \"backup1\"\ntier = \"P4\"\n";

#[test]
fn a_layout_that_a_backup_is_faster_than_does_not_fit() {
    let place = place();
    // Without bursts: three disks of 25 MB/s.
    let disk = |name: &str| {
        format!(
            "[[volume]]\nname = \"{name}\"\nsize = \"32 GiB\"\nlimits = {{ throughput = \"25 MB/s\" }}\n"
        )
    };
    place.file("small.toml", &["data", "log", "backup1"].map(disk).concat());
    let diagnose = ["diagnose", "messages.txt", "--layout", "small.toml", "-o", "json"];
    let finding = |args: &[&str]| {
        let (json, stderr, code) = run(place.weir(args));
        assert_eq!(code, Some(0), "{stderr}");
        let report: Value = serde_json::from_str(&json).expect("JSON");
        let all = report["findings"].as_array().expect("findings").iter();
        all.clone().find(|own| own["rule"] == "backup-limit").expect("a finding").clone()
    };
    let own = finding(&diagnose);
    let said = own["finding"].as_str().expect("text");
    // The volume for backups is not read.
    let words = "the layout does not fit Sales full: it reads 164 MiB/s, more than the 47.7 MiB/s that \
                 its sources data, log give together";
    assert_eq!((said, &own["group"]), (words, &"evidence".into()));
    let action = own["action"].as_str().expect("text");
    assert!(action.contains("--map F:\\b=VOLUME"), "{action}");
    let own = finding(&[&diagnose[..], &["--map", "F:=backup1"]].concat());
    let said = own["finding"].as_str().expect("text");
    assert!(said.contains("it writes 164 MiB/s, more than the 23.8 MiB/s that its target backup1"));
    // A burst may be what was seen, and is no contradiction.
    place.file("bursts.toml", SMALL);
    let bursts = ["diagnose", "messages.txt", "--layout", "bursts.toml", "-o", "json"];
    let said = finding(&bursts)["finding"].to_string();
    assert!(!said.contains("does not fit"), "{said}");
}

#[test]
fn a_target_that_is_nowhere_is_asked_for() {
    let place = place();
    let (text, stderr, code) =
        run(place.weir(&["diagnose", "messages.txt", "--layout", "layout.toml"]));
    assert_eq!(code, Some(0), "{stderr}");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("its target F:\\b is not in the layout"), "{text}");
    assert!(text.contains("--map F:\\b=VOLUME"), "{text}");
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
    assert!(text.contains("limited by the throughput limit of its target target"), "{text}");
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
