//! On a managed instance a database is a directory, and each file a volume of its own.

use super::{Rig, must, shell};
use crate::common::run;
use serde_json::Value;
use std::fs;
use std::path::Path;

const LAYOUT: &str = "edition = \"azure-mi-2018\"\n\
                      host = { managed_instance = \"gp\", vcores = 8 }\n\
                      [[file]]\nname = \"crm-data\"\ndatabase = \"crm\"\nrole = \"data\"\n\
                      size = \"10 GiB\"\n";
const ARGS: [&str; 2] = ["--database", "sales"];
const NO_SPACE: &str = "No space left on device";

fn tier(rig: &Rig, volume: &str) -> Option<(Value, Value)> {
    rig.volume(volume).map(|volume| (volume["tier"].clone(), volume["limit_iops"].clone()))
}

fn is(tier: &str, iops: u32) -> Option<(Value, Value)> {
    Some((tier.into(), iops.into()))
}

fn truncate(path: &Path, size: &str) -> Result<(), String> {
    let line = format!("truncate -s {size} \"$0\"");
    let output = shell(&line, &[path]).output().expect("a shell");
    let said = String::from_utf8(output.stderr).expect("text");
    if output.status.success() { Ok(()) } else { Err(said) }
}

#[test]
fn a_file_is_a_volume_and_moves_through_the_tiers() {
    let Some(mut rig) = Rig::new(LAYOUT, &ARGS) else { return };
    assert_eq!(must(shell("ls \"$0\"", &[&rig.place.path("mnt")])), "crm\nsales\n");
    let file = rig.path("sales/sales.mdf");
    assert_eq!(tier(&rig, "sales.sales.mdf"), None);
    fs::write(&file, "rows").expect("a file");
    assert_eq!(tier(&rig, "sales.sales.mdf"), is("P10", 500));
    for (size, name, iops) in [
        ("128G", "P10", 500),
        ("129G", "P15", 1100),
        ("200G", "P15", 1100),
        ("1T", "P30", 5000),
        ("300G", "P20", 2300),
        ("4", "P10", 500),
    ] {
        truncate(&file, size).expect("there is space");
        assert_eq!(tier(&rig, "sales.sales.mdf"), is(name, iops), "{size}");
    }
    assert_eq!(fs::read_to_string(&file).expect("a file"), "rows");
    // Renamed it is the same volume, and a second file another.
    fs::rename(&file, rig.path("sales/renamed.mdf")).expect("a file");
    fs::write(rig.path("sales/log.ldf"), "log").expect("a file");
    assert_eq!(tier(&rig, "sales.log.ldf"), is("P10", 500));
    let link = shell("ln \"$0\" \"$0.link\"", &[&rig.path("sales/log.ldf")]).output();
    let said = String::from_utf8(link.expect("a shell").stderr).expect("text");
    assert!(said.contains("Operation not permitted"), "{said}");
    fs::remove_file(rig.path("sales/renamed.mdf")).expect("a file");
    fs::remove_file(rig.path("sales/log.ldf")).expect("a file");
    super::wait_until("the volumes are gone", || {
        let status = rig.status();
        status["hosts"][0]["volumes"].as_array().is_some_and(|volumes| volumes.len() == 1)
    });
    assert!(tier(&rig, "crm-data").is_some(), "the layout's own stays");
    rig.stop();
}

#[test]
fn an_instance_needs_no_file_to_have_a_database() {
    let empty = "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 8 }\n";
    let Some(mut rig) = Rig::new(empty, &ARGS) else { return };
    fs::write(rig.path("sales/sales.mdf"), "rows").expect("a file");
    assert_eq!(tier(&rig, "sales.sales.mdf"), is("P10", 500));
    rig.stop();
    // Served without a mount it would have nothing to offer.
    let (_, said, code) = run(rig.place.weir(&["serve", "layout.toml"]));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("no volume"), "{said}");
}

#[test]
fn each_file_has_limits_of_its_own() {
    let Some(mut rig) = Rig::new(LAYOUT, &ARGS) else { return };
    for (name, size) in [("small", "1G"), ("large", "1T")] {
        truncate(&rig.path("sales").join(name), size).expect("there is space");
    }
    // The files answer after some milliseconds each: one writer would not reach a limit.
    let write = "for name in small large; do for n in 0 1 2 3 4 5 6 7; do \
                 dd if=/dev/zero of=\"$0/$name\" bs=8k count=50 seek=$((n * 50)) oflag=direct \
                 conv=notrunc status=none & done; done; wait";
    let clock = weir_wall::Clock::start();
    must(shell(write, &[&rig.path("sales")]));
    assert!(clock.now().nanos() >= 399 * 1_000_000_000 / 500, "{:?}", clock.now());
    let waited = |name: &str| {
        let volume = rig.volume(name).expect("the volume");
        assert_eq!(volume["writes"], 400, "{volume}");
        volume["waits_ns"]["disk_iops"].as_u64().unwrap_or(0)
    };
    let (small, large) = (waited("sales.small"), waited("sales.large"));
    assert!(small > large, "{small} {large}");
    rig.stop();
}

#[test]
fn the_instance_has_so_much_storage_for_all_files() {
    let Some(mut rig) = Rig::new(LAYOUT, &ARGS) else { return };
    let df = |rig: &Rig| {
        let df = "df -BG --output=size,avail \"$0\" | tail -n 1";
        let text = must(shell(df, &[&rig.path("sales")]));
        text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    // 8 TiB, of which the layout's file has 10 GiB.
    assert_eq!(df(&rig), ["8192G", "8182G"]);
    // The edition has no larger blob than 4 TiB.
    let refused = truncate(&rig.path("sales/a"), "5T").expect_err("too large for a file");
    assert!(refused.contains(NO_SPACE), "{refused}");
    truncate(&rig.path("sales/a"), "4T").expect("there is space");
    truncate(&rig.path("sales/b"), "3T").expect("there is space");
    assert_eq!(df(&rig), ["8192G", "1014G"]);
    let refused = truncate(&rig.path("sales/c"), "2T").expect_err("too much in all");
    assert!(refused.contains(NO_SPACE), "{refused}");
    assert_eq!(fs::metadata(rig.path("sales/c")).expect("a file").len(), 0);
    assert_eq!(tier(&rig, "sales.c"), is("P10", 500));
    truncate(&rig.path("sales/c"), "900G").expect("there is space");

    // After a restart everything is as it was.
    let tiers = |rig: &Rig| ["a", "b", "c"].map(|name| tier(rig, &format!("sales.{name}")));
    let before = tiers(&rig);
    assert_eq!(before, [is("P50", 7500), is("P50", 7500), is("P30", 5000)]);
    rig.stop();
    rig.mount(LAYOUT, &ARGS);
    assert_eq!(tiers(&rig), before);
    assert_eq!(df(&rig), ["8192G", "114G"]);
    // Nor does a kill change it.
    rig.kill();
    rig.mount(LAYOUT, &ARGS);
    assert_eq!(tiers(&rig), before);
    fs::remove_file(rig.path("sales/a")).expect("a file");
    super::wait_until("the space is free", || df(&rig) == ["8192G", "4210G"]);
    rig.stop();
}
