//! `weir sim` of a backup.

use crate::common::{Place, run};
use serde_json::Value;

const LAYOUT: &str = "edition = \"azure-premium-2015\"\nhost = { size = \"DS14\" }\n[[volume]]\nname = \
                      \"data\"\ntier = \"P30\"\n[[volume]]\nname = \"log\"\ntier = \"P10\"\n[[volume]]\nname = \
                      \"target\"\ntier = \"P10\"\n";
const BACKUP: &str =
    "[backup]\nsources = [\"data\"]\nto = [\"target\"]\nstripes = 4\nsize = \"1 GiB\"\n";
const OLTP: &str = "mix = \"tpcc\"\nusers = 8\nvcores = 4\nsize = \"8 GiB\"\nbuffer_pool = \"1 GiB\"\nduration = \
                    \"5s\"\ndata = [\"data\"]\nlog = \"log\"\n";

fn place() -> Place {
    let place = Place::new();
    place.file("layout.toml", LAYOUT);
    place.file("backup.toml", BACKUP);
    place.file("oltp.toml", OLTP);
    place
}

fn simulated(place: &Place, jobs: &[&str]) -> Value {
    let args = [&["sim", "layout.toml"], jobs, &["-o", "json"]].concat();
    let (stdout, stderr, code) = run(place.weir(&args));
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    serde_json::from_str(&stdout).expect("JSON")
}

#[test]
fn a_backup_alone_is_as_fast_as_its_target() {
    let place = place();
    let backup = &simulated(&place, &["backup.toml"])["backups"][0];
    // A P10 takes 100 MiB/s.
    let rate = backup["mib_per_s"].as_f64().expect("a rate");
    assert!((97.0..=100.5).contains(&rate), "{rate}");
    assert_eq!(
        (&backup["binding_limit"], &backup["is_complete"]),
        (&"disk_bytes".into(), &true.into())
    );
    assert_eq!(
        (&backup["bytes_written"], &backup["buffer_count"]),
        (&(1_u64 << 30).into(), &22.into())
    );
    let target = &backup["places"][1];
    assert_eq!((&target["place"], &target["role"]), (&"target".into(), &"target".into()));
    assert!(target["queue_depth"].as_f64().is_some_and(|depth| depth > 15.0), "{target}");
    let (csv, _, _) = run(place.weir(&["sim", "layout.toml", "backup.toml", "-o", "csv"]));
    let elapsed = backup["elapsed_s"].as_f64().expect("seconds").to_string();
    assert!(csv.contains(&format!("backups,backup,{elapsed},1073741824,")), "{csv}");
    let (text, _, code) = run(place.weir(&["sim", "layout.toml", "backup.toml"]));
    assert_eq!(code, Some(0));
    assert!(text.contains("BACKUP DATABASE successfully processed 131072 pages in "), "{text}");
}

#[test]
fn a_backup_beside_a_database_costs_it_transactions() {
    let place = place();
    let alone = simulated(&place, &["oltp.toml"]);
    let both = simulated(&place, &["backup.toml", "oltp.toml"]);
    let done = |run: &Value| run["databases"][0]["load"]["transactions"].as_u64().expect("a count");
    assert!(done(&both) < done(&alone), "{} and {}", done(&both), done(&alone));
    assert_eq!(both["databases"][0]["elapsed_s"], 5.0);
    assert_eq!(both["backups"][0]["is_complete"], true);
    assert_eq!(both, simulated(&place, &["backup.toml", "oltp.toml"]));
    assert_eq!(alone.get("backups"), None);
    // The cost is that of the run without the backup.
    let cost = &both["costs"][0];
    let load = |run: &Value, key: &str| run["databases"][0]["load"][key].clone();
    assert_eq!(cost["transactions_per_min_alone"], load(&alone, "transactions_per_min"));
    assert_eq!(cost["transactions_per_min"], load(&both, "transactions_per_min"));
    assert_eq!(cost["response_mean_alone_ns"], load(&alone, "response_mean_ns"));
    assert!(cost["throughput_loss"].as_f64().is_some_and(|own| own > 0.0), "{cost}");
    assert_eq!(alone.get("costs"), None);
    let args = ["sim", "layout.toml", "backup.toml", "oltp.toml", "-q"];
    let (text, _, _) = run(place.weir(&args));
    assert!(text.contains("Cost of the backup to the databases"), "{text}");
    // The rows of sources and targets begin with their disks in every part of the table.
    let of_place = |line: &&str| line.contains("medium ") || line.contains(" target ");
    let mut rows = text.lines().filter(of_place).map(str::trim_start);
    assert!(rows.clone().any(|row| row.starts_with("target ")), "{text}");
    assert!(rows.all(|row| !row.starts_with("backup ")), "{text}");
}

#[test]
fn wrong_backups_are_refused() {
    let place = place();
    let check = |change: (&str, &str), more: &[&str], expect: &str| {
        place.file("wrong.toml", &BACKUP.replace(change.0, change.1));
        let (stdout, stderr, code) =
            run(place.weir(&[&["sim", "layout.toml", "wrong.toml"], more].concat()));
        assert_eq!((stdout.as_str(), code), ("", Some(2)), "{stderr}");
        assert!(stderr.contains(expect), "{stderr}");
    };
    check(("stripes = 4", "stripes = 0"), &[], "wrong.toml:4:11: stripes = 0: give 1 to 64");
    check(("\"target\"", "\"data\""), &[], "\"data\" is a source and a target");
    check(("\"target\"", "\"targets\""), &[], "did you mean \"target\"?");
    check(("1 GiB", "900 GiB"), &[], "\"target\" of 128 GiB is too small for its stripes");
    check(("stripes", "stripe"), &[], "unknown field `stripe`");
    check(("", ""), &["--runtime", "5s"], "--runtime is for databases and jobs");
}
