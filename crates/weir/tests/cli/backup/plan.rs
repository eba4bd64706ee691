//! `weir backup plan`, `weir backup internals`, and exports of backups.

use crate::common::{Place, run};
use serde_json::Value;

const LAYOUT: &str = "edition = \"azure-premium-2015\"\n[host]\nsize = \"DS14\"\n[[stripe]]\nname = \
                      \"data\"\nunit = \"64 KiB\"\nvolumes = { count = 10, tier = \"P30\" }\n";

/// Eight GiB in 35 s: 234 MiB/s, which three P10 and half of the machine's 512 MiB/s carry.
const PLAN: [&str; 8] =
    ["backup", "plan", "--layout", "layout.toml", "--size", "8GiB", "--within", "35s"];

fn place() -> Place {
    let place = Place::new();
    place.file("layout.toml", LAYOUT);
    place
}

/// Runs `weir`, checks its exit code, and returns its output.
fn weir(place: &Place, args: &[&str], code: i32) -> (String, String) {
    let (stdout, stderr, ended) = run(place.weir(args));
    assert_eq!(ended, Some(code), "{args:?}: {stdout}{stderr}");
    (stdout, stderr)
}

fn json(place: &Place, args: &[&str], code: i32) -> Value {
    let args = [args, &["-o", "json"]].concat();
    serde_json::from_str(&weir(place, &args, code).0).expect("JSON")
}

#[test]
fn a_plan_feeds_sim_and_export() {
    let place = place();
    let out = ["--out", "new.toml", "--out-backup", "backup.toml"];
    let report = json(&place, &[&PLAN[..], &out].concat(), 0);
    let plan = &report["plan"];
    assert_eq!((&plan["tier"], &plan["count"]), (&"P10".into(), &3.into()), "{report}");
    let duration = plan["duration_s"].as_f64().expect("seconds");
    assert!((31.9..=35.0).contains(&duration), "{duration}");
    assert_eq!((&plan["binding"], &plan["is_extrapolated"]), (&"machine".into(), &false.into()));
    assert_eq!(report["cheaper"]["count"], 2);
    // The same backup by another verb.
    let run = json(&place, &["sim", "new.toml", "backup.toml"], 0);
    let own = &run["backups"][0];
    assert_eq!(own["elapsed_s"].as_f64(), Some(duration));
    assert_eq!((&own["stripes"], &own["buffer_count"]), (&plan["stripes"], &plan["buffer_count"]));
    let export = ["export", "new.toml", "--backup", "backup.toml", "--as"];
    let drives = [
        "--database",
        "sales",
        "--mount",
        "backup-1=F:",
        "--mount",
        "backup-2=G:",
        "--mount",
        "backup-3=H:",
    ];
    let (script, _) = weir(&place, &[&export[..], &["tsql-backup"], &drives].concat(), 0);
    assert!(script.contains("BACKUP DATABASE [sales] TO\n    DISK = @file1,"), "{script}");
    assert!(script.contains("N'F:\\sales_full_' + @when"), "{script}");
    for (kind, words) in
        [("ola", "@Directory = N'F:\\,G:\\,H:\\'"), ("dbatools", "Backup-DbaDatabase @backup")]
    {
        let (script, _) = weir(&place, &[&export[..], &[kind], &drives].concat(), 0);
        assert!(script.contains(words), "{script}");
    }
    // The plan says what the exporter refuses, and refuses before it asks for mounts.
    let (_, said) = weir(&place, &[&export[..], &["pgbackrest"]].concat(), 2);
    let refused = "pgBackRest writes a backup to one repository";
    assert!(said.contains(refused), "{said}");
    let exports = plan["exports"].as_array().expect("a list");
    let fits = |kind: &str| {
        let own = exports.iter().find(|own| own["kind"] == kind).expect("a kind");
        own["refused"].as_str().map(str::to_owned)
    };
    assert_eq!(["tsql-backup", "ola", "dbatools"].map(fits), [None, None, None]);
    assert!(fits("pgbackrest").is_some_and(|own| own.contains(refused)), "{exports:?}");
    // All mounts are asked for at once.
    let (_, said) =
        weir(&place, &[&export[..], &["tsql-backup", "--database", "sales"]].concat(), 2);
    for at in 1..=3 {
        assert!(said.contains(&format!("--mount backup-{at}=")), "{said}");
    }
    // One target is a repository.
    let one =
        json(&place, &[&PLAN[..6], &["--within", "3min", "--max-disks", "1"], &out].concat(), 0);
    assert_eq!(one["plan"]["count"], 1);
    let own = ["--database", "sales", "--mount", "backup-1=/backup", "--mount", "data=/var/lib/pg"];
    let (conf, _) = weir(&place, &[&export[..], &["pgbackrest"], &own].concat(), 0);
    assert!(conf.contains("repo1-path=/backup"), "{conf}");
}

#[test]
fn the_answer_comes_first_and_is_narrow() {
    let place = place();
    let (text, _) = weir(&place, &PLAN, 0);
    let first = text.lines().next().expect("a line");
    assert!(first.starts_with("plan: 3 x P10, ") && first.contains(" binds"), "{text}");
    let table = text.lines().skip_while(|line| !line.trim_start().starts_with("which"));
    let table: Vec<&str> = table.take_while(|line| !line.is_empty()).collect();
    assert!(table.len() >= 3, "{text}");
    assert!(table.iter().all(|line| line.chars().count() <= 80), "{}", table.join("\n"));
    let (csv, _) = weir(&place, &[&PLAN[..], &["-o", "csv"]].concat(), 0);
    assert!(csv.contains("choice,plan,"), "{csv}");
    let (markdown, _) = weir(&place, &[&PLAN[..], &["-o", "markdown"]].concat(), 0);
    assert!(markdown.starts_with("**3 x P10, "), "{markdown}");
}

#[test]
fn a_window_that_nothing_meets_is_a_no() {
    let place = place();
    let short = ["backup", "plan", "--layout", "layout.toml", "--size", "8GiB", "--within", "20s"];
    let report = json(&place, &short, 1);
    assert_eq!((&report["is_met"], &report["plan"]), (&false.into(), &Value::Null));
    assert_eq!(report["fastest"]["binding"], "machine");
    let what = report["relaxations"][0]["what"].as_str().expect("a relaxation");
    assert!(what.starts_with("--within 3"), "{what}");
    let (text, _) = weir(&place, &short, 1);
    assert!(text.starts_with("no disks meet 20.0 s: the shortest duration is 3"), "{text}");
}

#[test]
fn a_machine_without_a_layout_has_an_assumed_source() {
    let place = Place::new();
    let args = ["backup", "plan", "--size", "4GiB", "--within", "60s", "--edition", "azure-now"];
    let report = json(&place, &[&args[..], &["--host", "D16s_v3"]].concat(), 0);
    let notes = report["notes"].to_string();
    assert!(notes.contains("the source is assumed to have no limits"), "{notes}");
    assert!(report["plan"]["month"].as_f64().is_some_and(|month| month > 0.0), "{report}");
}

#[test]
fn wrong_questions_are_refused() {
    let place = place();
    let check = |args: &[&str], expect: &str| {
        let (stdout, stderr) = weir(&place, &[&["backup", "plan"], args].concat(), 2);
        assert_eq!(stdout, "");
        assert!(stderr.contains(expect), "{stderr}");
    };
    let layout = ["--layout", "layout.toml", "--within", "1h"];
    check(&["--within", "1h"], "--size");
    check(&[&layout[..], &["--sources", "date"]].concat(), "did you mean \"data\"?");
    check(&[&layout[..], &["--compress", "3"]].concat(), "write 0.4, 40% or 2.5:1");
    check(&[&layout[..], &["--disks", "tape"]].concat(), "has no disks \"tape\"");
    check(&[&layout[..], &["--out", "layout.toml"]].concat(), "is one of the inputs");
    check(&[&layout[..], &["--max-slowdown", "5%"]].concat(), "--beside");
    check(&["--size", "1TiB", "--within", "1h", "--host", "D16x"], "D16x");
}

/// The log of article 004.
const ARTICLE: &str = "Backup: DBReaderCount = 4\n\
    Memory limit: 895MB\n\
    BufferCount:                13\n\
    Sets of Buffers:            1\n\
    MaxTransferSize:            1024 KB\n\
    Min MaxTransferSize:        64 KB\n\
    Total buffer space:         13 MB\n\
    Tabular data device count:  4\n\
    Fulltext data device count: 0\n\
    Filestream device count:    0\n\
    TXF device count:           0\n\
    Filesystem I/O alignment:   512\n\
    Media Buffer count:           13\n\
    Media Buffer size:          1024KB\n";

#[test]
fn internals_print_the_log_of_article_004() {
    let place = place();
    let internals = ["backup", "internals", "layout.toml"];
    let (text, _) = weir(&place, &[&internals[..], &["--readers", "4"]].concat(), 0);
    assert!(text.starts_with(ARTICLE), "{text}");
    // By the description of the lab, the same.
    place.file(
        "backup.toml",
        "[backup]\nsources = [\"data\"]\nto = [\"target\"]\nreaders = 4\nsize = \"1 GiB\"\n",
    );
    place.file("with.toml", &format!("{LAYOUT}[[volume]]\nname = \"target\"\ntier = \"P30\"\n"));
    let (text, _) = weir(&place, &["backup", "internals", "with.toml", "backup.toml"], 0);
    assert!(text.starts_with(ARTICLE) && text.contains("TotalSize=1073741824 bytes\n"), "{text}");
    let more = ["--stripes", "3", "--compress", "--memory-limit", "40MiB"];
    let report = json(&place, &[&internals[..], &more].concat(), 0);
    assert_eq!((&report["buffer_count"], &report["buffer_sets"]), (&17.into(), &3.into()));
    assert_eq!(report["buffer_bytes"], 51 << 20);
    let notes = report["notes"].to_string();
    assert!(notes.contains("more than the memory"), "{notes}");
    let old = json(&place, &[&internals[..], &["--sql-server-2005"]].concat(), 0);
    assert_eq!(old["buffer_count"], 6);
    let wrong = [&internals[..], &["--max-transfer-size", "100000 B"]].concat();
    assert!(weir(&place, &wrong, 2).1.contains("give a multiple of 64 KiB up to 4 MiB"));
}
