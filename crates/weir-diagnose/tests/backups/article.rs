//! The backups of article 004, and backups without a limit.

use crate::tools::{Tool, from_messages, named};
use crate::world::{Change, World};
use weir_catalog::Catalog;
use weir_report::diagnosis::{DiagnosisReport, Group, VerdictName};

const SOURCE: &str = "edition = \"azure-premium-2015\"\n[host]\nsize = \"DS14\"\n[[stripe]]\nname = \
                      \"data\"\nunit = \"64 KiB\"\nvolumes = { count = 10, tier = \"P30\" }\n";
const DISK: &str = "[[volume]]\nname = \"target\"\ntier = \"P30\"\nlatency = \"24.2 ms\"\n";
const POOL: &str = "[[stripe]]\nname = \"target\"\nunit = \"64 KiB\"\nvolumes = { count = 5, tier = \
                    \"P30\", latency = \"24.2 ms\" }\n";

fn world(target: &str, stripes: u64) -> World {
    World::new(&format!("{SOURCE}{target}"), &["target"], stripes, 8 << 30)
}

#[track_caller]
fn check(target: &str, stripes: u64, expect: Change, verdict: VerdictName) {
    let catalog = Catalog::builtin();
    let world = world(target, stripes);
    let run = world.run();
    for tool in Tool::ALL {
        let report = tool.diagnose(&world, &run, &catalog);
        assert_eq!(named(&report), [expect], "{}: {}", tool.name(), report.summary);
        assert_eq!(report.verdict, verdict, "{}", report.summary);
        // The headline is that of the backup, and no other finding says the same.
        assert_eq!(report.findings[0].rule, "backup-limit", "{:?}", rules(&report));
        let repeats = ["disk-bytes", "host-uncached", "backup-stripes", "depth-low"];
        assert!(rules(&report).iter().all(|rule| !repeats.contains(rule)), "{:?}", rules(&report));
    }
}

fn rules(report: &DiagnosisReport) -> Vec<&'static str> {
    report.findings.iter().map(|own| own.rule).collect()
}

#[test]
fn the_backups_of_article_004() {
    check(DISK, 1, Change::Stripes, VerdictName::NotTheStorage);
    check(DISK, 4, Change::Target, VerdictName::Throttled);
    check(POOL, 1, Change::Stripes, VerdictName::NotTheStorage);
    check(POOL, 20, Change::Machine, VerdictName::Throttled);
}

#[test]
fn the_advice_is_that_of_the_article_with_its_effect() {
    let (catalog, world) = (Catalog::builtin(), world(DISK, 1));
    let report = Tool::Iostat.diagnose(&world, &world.run(), &catalog);
    let own = &report.findings[0];
    assert!(own.action.starts_with("write 4 files at a time"), "{}", own.action);
    assert!(own.action.contains("MAXTRANSFERSIZE = 4194304"), "{}", own.action);
    assert!(own.action.contains("leave BUFFERCOUNT alone"), "{}", own.action);
    assert!(
        own.evidence.iter().any(|text| text.starts_with("simulated, 4 files")),
        "{:?}",
        own.evidence
    );
    assert!(
        own.ruled_out.iter().any(|text| text.contains("host_uncached_bytes")),
        "{:?}",
        own.ruled_out
    );
    let transfers = report.findings.iter().find(|own| own.rule == "backup-transfer-size");
    assert_eq!(transfers.map(|own| own.priority), Some(150));
    // Two disks come to half of what the machine has.
    let full = self::world(DISK, 4);
    let report = Tool::Weir.diagnose(&full, &full.run(), &catalog);
    let action = &report.findings[0].action;
    assert!(action.starts_with("write to 2 disks of this kind"), "{action}");
    assert!(action.contains("8 files in all"), "{action}");
}

/// Returns a message with a result of the article.
fn message(target: &str, stripes: u64, result: &str, expect: &[Change]) -> DiagnosisReport {
    let disks: Vec<String> =
        (1..=stripes).map(|file| format!("DISK = '/backup/target/{file}.bak'")).collect();
    let text = format!(
        "BACKUP DATABASE [db] TO {}\nBACKUP DATABASE successfully processed {result}.\n",
        disks.join(", ")
    );
    let report = from_messages(&world(target, stripes), &text, &Catalog::builtin());
    assert_eq!(named(&report), expect, "{}", report.summary);
    report
}

#[test]
fn the_messages_of_article_004_alone() {
    let one = "5122010 pages in 243.504 seconds (164.332 MB/sec)";
    let report = message(DISK, 1, one, &[Change::Stripes]);
    assert!(
        report.findings[0].evidence.iter().any(|text| text.contains("its disks were not observed"))
    );
    message(DISK, 4, "5122010 pages in 208.847 seconds (191.602 MB/sec)", &[Change::Target]);
    message(POOL, 20, "5122010 pages in 161.905 seconds (247.155 MB/sec)", &[Change::Machine]);
    // Enough files, and below all limits: the limit is unknown.
    let report = message(DISK, 4, "5122010 pages in 400.157 seconds (100.000 MB/sec)", &[]);
    assert_eq!(report.verdict, VerdictName::NotEnoughEvidence, "{}", report.summary);
    assert!(report.summary.contains("cannot be told"), "{}", report.summary);
}

#[test]
fn a_backup_without_limits_is_not_judged() {
    let text = "BACKUP DATABASE successfully processed 5122010 pages in 243.504 seconds (164.332 MB/sec).\n";
    let own = World::new(
        "[host]\nunlimited = true\n[[volume]]\nname = \"data\"\nsize = \"99 GiB\"\nunlimited = true\n[[volume]]\nname = \"target\"\nsize = \"99 GiB\"\nunlimited = true\n",
        &[],
        1,
        1,
    );
    let report = from_messages(&own, text, &Catalog::builtin());
    assert_eq!(report.verdict, VerdictName::NotEnoughEvidence, "{}", report.summary);
    assert!(report.summary.contains("no limit of its disks is known"), "{}", report.summary);
}

#[test]
fn a_short_backup_is_no_headline() {
    let catalog = Catalog::builtin();
    let world = World::new(&format!("{SOURCE}{DISK}"), &["target"], 4, 200 << 20);
    let run = world.run();
    for tool in Tool::ALL {
        let report = tool.diagnose(&world, &run, &catalog);
        assert_eq!(report.verdict, VerdictName::Healthy, "{}: {}", tool.name(), report.summary);
        assert!(
            report.findings.iter().all(|own| own.group != Group::Throttling),
            "{:?}",
            rules(&report)
        );
    }
}

#[test]
fn practices_of_the_article() {
    let catalog = Catalog::builtin();
    let cached = DISK.replace("latency", "cache = \"read-only\"\nlatency");
    let mut own = world(&cached, 1);
    own.buffers = Some(50);
    let report = Tool::Iostat.diagnose(&own, &own.run(), &catalog);
    let rules = rules(&report);
    for rule in ["backup-cached", "backup-buffers", "backup-transfer-size"] {
        assert!(rules.contains(&rule), "{rule}: {rules:?}");
    }
    // With four files and the largest transfers there is nothing to say.
    let mut best = world(DISK, 4);
    best.transfer = 4 << 20;
    let report = Tool::Iostat.diagnose(&best, &best.run(), &catalog);
    let practices = ["backup-cached", "backup-buffers", "backup-transfer-size", "backup-files"];
    assert!(
        report.findings.iter().all(|own| !practices.contains(&own.rule)),
        "{:?}",
        self::rules(&report)
    );
}

#[test]
fn more_than_two_files_on_the_local_ssd() {
    let ssd = "[[volume]]\nname = \"target\"\nsize = \"200 GiB\"\nplace = \"local\"\nunlimited = true\nlatency = \"80 ms\"\n";
    let world = World::new(&format!("{SOURCE}{ssd}"), &["target"], 4, 8 << 30);
    let report = Tool::Iostat.diagnose(&world, &world.run(), &Catalog::builtin());
    let own = &report.findings[0];
    assert!(own.finding.contains("more than 2 files to the machine's own SSD"), "{}", own.finding);
    assert!(rules(&report).contains(&"backup-local-ssd"), "{:?}", rules(&report));
}
