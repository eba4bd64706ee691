//! `weir plan`: the price of the layout in use, its storage, file systems, backups, units of tables.

use crate::common::{Place, run};
use serde_json::Value;

/// Runs `weir plan --verbose` for a need that can be met.
fn met(place: &Place, args: &[&str]) -> String {
    let (stdout, stderr, code) = run(place.weir(&[&["plan", "--verbose"], args].concat()));
    assert_eq!((stderr.as_str(), code), ("", Some(0)), "{args:?}: {stdout}");
    stdout
}

fn refused(place: &Place, args: &[&str], words: &str) {
    let (stdout, stderr, code) = run(place.weir(&[&["plan"], args].concat()));
    assert_eq!((stdout.as_str(), code), ("", Some(2)), "{args:?}: {stderr}");
    assert!(stderr.contains(words), "{args:?}: {stderr}");
}

/// A machine with one P10 of 100 GiB of data.
const NOW: &str = "edition = \"azure-premium-2015\"\nhost = { size = \"DS13\" }\n[[volume]]\nname = \"d\"\n\
    tier = \"P10\"\n[[file]]\nname = \"f\"\nrole = \"data\"\nsize = \"100 GiB\"\non = \"d\"\n";

#[test]
fn the_price_at_present_stands_beside_the_plans() {
    let place = Place::new();
    place.file("now.toml", NOW);
    let need = ["--keep", "now.toml", "--size", "400GiB", "--iops", "4000"];
    let with = |format: &'static str| met(&place, &[&need[..], &["-o", format]].concat());
    // A DS13 costs 1,003.66, a P10 19.71 and a P30 136.085.
    let text = with("text");
    assert!(text.starts_with("plan: DS13: data on 1 x P30: 1,139.75 USD a month"), "{text}");
    let words = "cost: 1,023.37 USD a month at present (now.toml), 1,139.75 USD a month planned; difference: 116.38 USD more";
    assert!(text.contains(words), "{text}");
    assert!(text.contains("\nPrice at present\n"), "{text}");
    let markdown = with("markdown");
    assert!(markdown.contains(words), "{markdown}");
    assert!(markdown.contains("| at present ") && markdown.contains("| difference "), "{markdown}");
    let csv = with("csv");
    assert!(csv.contains("\nlayout,at present,now.toml,1023.37,0,"), "{csv}");
    assert!(csv.contains("\nlayout,difference,plan minus present,116.375,"), "{csv}");
    assert!(csv.contains("\npresent,,,19.71,,,d: disk P10,"), "{csv}");
    let report: Value = serde_json::from_str(&with("json")).expect("JSON");
    let present = &report["present"];
    assert_eq!((&present["month"], &present["unpriced"]), (&1_023.37.into(), &0.into()));
    assert_eq!(present["difference"], 116.375);
    assert_eq!(present["lines"][1]["item"], "d: disk P10");
}

#[test]
fn the_layout_of_present_is_priced_beside_the_one_to_keep() {
    let place = Place::new();
    place.file("now.toml", NOW);
    place.file("other.toml", &NOW.replace("P10", "P20"));
    let need =
        ["--keep", "now.toml", "--present", "other.toml", "--size", "100GiB", "--iops", "400"];
    let text = met(&place, &need);
    // A DS13 costs 1,003.66, and a P20 73.22.
    assert!(text.contains("cost: 1,076.88 USD a month at present (other.toml)"), "{text}");
}

#[test]
fn a_present_price_that_is_not_known_is_said() {
    let place = Place::new();
    let now = NOW.replace("azure-premium-2015", "azure-now").replace("DS13", "Standard_DC16es_v5");
    place.file("now.toml", &now);
    let need = ["--keep", "now.toml", "--size", "400GiB", "--iops", "400"];
    // The same machine before and after: the disks are known, a P20 and a P10.
    let text = met(&place, &[&need[..], &["--no-downtime"]].concat());
    let words = "cost: 19.71 USD a month and an unknown price at present (now.toml) (machine \
                 Standard_DC16es_v5 has no price), 73.22 USD a month and an unknown price planned; \
                 difference: 53.51 USD more";
    assert!(text.contains(words), "{text}");
    let text = met(&place, &[&need[..], &["--host", "Standard_D8s_v3"]].concat());
    assert!(text.contains("difference: unknown, because prices are missing"), "{text}");
}

#[test]
fn storage_that_is_assumed_is_said() {
    let place = Place::new();
    place.file(
        "now.toml",
        "edition = \"azure-mi-now\"\nhost = { managed_instance = \"gp\", vcores = 8 }\n[[file]]\nname = \
         \"a\"\nrole = \"data\"\nsize = \"500 GiB\"\n",
    );
    let text = met(&place, &["--keep", "now.toml", "--size", "500GiB", "--iops", "2000"]);
    let words = "does not state the storage of its instance: 512 GiB is assumed";
    assert!(text.contains(words), "{text}");
    assert!(!text.contains("8 TiB: data"), "{text}");
    // 8 vCores at 195.205625 and 512 - 32 GiB at 0.137.
    assert!(text.contains("cost: 1,627.41 USD a month at present (now.toml)"), "{text}");
}

#[test]
fn a_file_system_takes_room_on_machines_alone() {
    let place = Place::new();
    let size = ["--size", "4TiB", "--iops", "16000"];
    let premium =
        [&["--edition", "azure-premium-2015", "--filesystem", "ext4"], &size[..]].concat();
    let text = met(&place, &premium);
    // 4,096 GiB are 93.3 % of 4,390.1 GiB: four P30 are too small, and five cost more than nine P20
    // (680.43 and 658.98).
    assert!(text.starts_with("plan: DS13: data on 9 x P20: 1,662.64 USD"), "{text}");
    let words = "files of 4 TiB need disks of 4391 GiB with ext4 (overhead 6.7 %";
    assert!(text.contains(words), "{text}");
    refused(&place, &["--size", "1TiB", "--filesystem", "zfs"], "use ext4, xfs, ntfs, none");
    let instance = ["--edition", "azure-mi-now", "--size", "1TiB", "--filesystem", "ntfs"];
    refused(&place, &instance, "filesystem: does not apply to gp");
    place.file("need.toml", "filesystem = \"zfs\"\n[data]\nsize = \"1 TiB\"\n");
    refused(&place, &["--need", "need.toml"], "need.toml:1:");
}

#[test]
fn a_backup_shares_disks_only_if_that_is_allowed() {
    let place = Place::new();
    place.file(
        "need.toml",
        "edition = \"azure-premium-2015\"\n[data]\nsize = \"300 GiB\"\niops = 400\n[backup]\nsize = \"300 \
         GiB\"\n",
    );
    let need = ["--need", "need.toml"];
    let text = met(&place, &need);
    assert!(
        text.contains("backup: on disks of its own, so that it survives the loss of data and log"),
        "{text}"
    );
    let shared = met(&place, &[&need[..], &["--apart=false"]].concat());
    assert!(shared.contains("data and backup on"), "{shared}");
    assert!(shared.contains("backup: shares disks with data, as apart = false allows"), "{shared}");
    let apart = met(&place, &[&need[..], &["--apart"]].concat());
    assert!(!apart.contains("data and backup on"), "{apart}");
}

#[test]
fn a_column_of_a_table_has_one_unit() {
    let place = Place::new();
    place.file(
        "need.toml",
        "edition = \"azure-now\"\napart = true\n[data]\nsize = \"1 TiB\"\nthroughput = \"125 MiB/s\"\n[log]\n\
         size = \"100 GiB\"\nthroughput = \"20 MB/s\"\n",
    );
    let text = met(&place, &["--need", "need.toml"]);
    let caps = text
        .split("\nLimits\n")
        .nth(1)
        .and_then(|rest| rest.split("\n\n").next())
        .expect("a table");
    let count = |unit: &str| caps.matches(unit).count();
    assert!(count(" GiB ") + count(" TiB ") >= 4, "{caps}");
    assert!(count(" GiB ") == 0 || count(" TiB ") == 0, "{caps}");
    assert!(count(" MiB/s") + count(" MB/s") >= 4, "{caps}");
    assert!(count(" MiB/s") == 0 || count(" MB/s") == 0, "{caps}");
    assert_eq!(count(" KB/s") + count(" KiB/s") + count(" B/s"), 0, "{caps}");
}

/// A free cache replaces larger disks where the need states the working set, and the machine in use stays among those of
/// its price.
#[test]
fn a_host_cache_is_switched_on_for_a_stated_working_set() {
    let place = Place::new();
    let layout = |cache: &str| {
        format!(
            "edition = \"azure-now\"\nhost = {{ size = \"E16s_v4\" }}\n[[volume]]\nname = \"data\"\ntier = \
             \"P30\"\n{cache}[[file]]\nname = \"data\"\nrole = \"data\"\nsize = \"800 GiB\"\non = \"data\"\n"
        )
    };
    let need = |set: &str, iops: u32| {
        format!(
            "[data]\nsize = \"800 GiB\"\niops = {iops}\nrequest = \"8 KiB\"\nreads = \"90 %\"\n{set}"
        )
    };
    let set = "working_set = \"100 GiB\"\n";
    place.file("now.toml", &layout(""));
    place.file("need.toml", &need(set, 7_000));
    let keep = ["--need", "need.toml", "--keep", "now.toml"];
    let text = met(&place, &[&keep[..], &["--verify"]].concat());
    assert!(text.starts_with("plan: Standard_E16s_v4: data on 1 x P30, cached: "), "{text}");
    let change = "data: the disks get a read-only host cache, which is free; they are detached and attached again";
    assert!(text.contains(change) && text.contains("difference: the same"), "{text}");
    assert!(text.contains("cache = \"read-only\""), "{text}");
    // With a smaller load, no cache is needed, and without downtime or a working set, no cache may.
    place.file("need.toml", &need(set, 4_000));
    let first = |args: &[&str]| met(&place, args).lines().next().unwrap_or_default().to_owned();
    assert!(!first(&keep).contains("cached"), "{}", first(&keep));
    place.file("need.toml", &need(set, 7_000));
    let online = [&keep[..], &["--no-downtime"]].concat();
    assert!(!first(&online).contains("cached"), "it stays attached");
    // A restart does not offer a smaller machine either.
    place.file("need.toml", &need(set, 8_000));
    let (stdout, _, code) = run(place.weir(&[&["plan"], &online[..]].concat()));
    assert_eq!(code, Some(1), "{stdout}");
    let restart = "feasible with a restart: Standard_E16s_v4: data on 1 x P30, cached";
    assert!(stdout.contains(restart), "{stdout}");
    place.file("need.toml", &need("", 7_000));
    assert!(!first(&keep).contains("cached"), "the hits are unknown");
}

/// An instance keeps its vCores, a layout its region, and another machine is said to restart.
#[test]
fn a_plan_keeps_what_nobody_asked_to_change() {
    let place = Place::new();
    let instance = "edition = \"azure-mi-now\"\nregion = \"westeurope\"\nhost = { managed_instance = \"gp\", vcores = 8, \
        storage = \"256 GiB\" }\n[[file]]\nname = \"d\"\nrole = \"data\"\nsize = \"100 GiB\"\n[[file]]\nname = \"l\"\n\
        role = \"log\"\nsize = \"20 GiB\"\n";
    place.file("now.toml", instance);
    let need = "[data]\nsize = \"90 GiB\"\niops = 300\n[log]\nsize = \"15 GiB\"\nthroughput = \"2 MB/s\"\n";
    place.file("need.toml", need);
    let keep = ["--need", "need.toml", "--keep", "now.toml"];
    let text = met(&place, &keep);
    assert!(text.starts_with("plan: gp with 8 vCores"), "{text}");
    assert!(text.contains("the instance gets no fewer than 8 vCores; state vcpus"), "{text}");
    assert!(text.contains("\nregion = \"West Europe\"\n"), "{text}");
    place.file("need.toml", &format!("vcpus = 4\n{need}"));
    assert!(met(&place, &keep).starts_with("plan: gp with 4 vCores"));

    // So does the tier set of its files: 129 GiB are enough for a P20 of 2020.
    let older = "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 8, storage = \"1 TiB\", tiers = \
        \"mi-2020\" }\n[[file]]\nname = \"d\"\nrole = \"data\"\nsize = \"100 GiB\"\n";
    place.file("now.toml", older);
    place.file("need.toml", "[data]\nsize = \"90 GiB\"\niops = 2000\n");
    let text = met(&place, &keep);
    assert!(
        text.contains("tiers = \"mi-2020\"") && text.contains("data 1 x 129 GiB (P20)"),
        "{text}"
    );

    let machine = "edition = \"azure-now\"\nregion = \"westeurope\"\nhost = { size = \"E8s_v4\" }\n[[volume]]\nname = \
        \"d\"\ntier = \"P30\"\n[[file]]\nname = \"f\"\nrole = \"data\"\nsize = \"800 GiB\"\non = \"d\"\n";
    place.file("now.toml", machine);
    place.file("need.toml", "[data]\nsize = \"800 GiB\"\niops = 4000\n");
    let text = met(&place, &keep);
    assert!(text.starts_with("plan: Standard_E8as_v5: "), "{text}");
    let restarts = "the machine changes from Standard_E8s_v4 to Standard_E8as_v5 and restarts";
    assert!(text.contains(restarts), "{text}");
    assert!(text.contains("\nregion = \"westeurope\"\n"), "{text}");
    // A machine for confidential computing stays one, and no other becomes one.
    place.file("now.toml", &machine.replace("E8s_v4", "EC8as_v5"));
    assert!(met(&place, &keep).starts_with("plan: Standard_EC"));
}
