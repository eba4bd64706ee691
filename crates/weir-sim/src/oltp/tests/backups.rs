//! Backups alone and beside a database.

use super::*;
use weir_pipeline::Description as Backup;
use weir_report::backup::BackupReport;

/// A machine with 512 MiB/s, a source of ten disks, and two targets.
const DS14: &str = "edition = \"azure-premium-2015\"\n[host]\nsize = \"DS14\"\n\
    [[stripe]]\nname = \"data\"\nunit = \"256 KiB\"\nvolumes = { count = 10, tier = \"P30\" }\n\
    [[volume]]\nname = \"b1\"\ntier = \"P30\"\n[[volume]]\nname = \"b2\"\ntier = \"P30\"\n\
    [[volume]]\nname = \"d1\"\ntier = \"P30\"\n[[volume]]\nname = \"d2\"\ntier = \"P30\"\n\
    [[volume]]\nname = \"log\"\ntier = \"P30\"\n";

const BACKUP: &str =
    "[backup]\nsources = [\"data\"]\nto = [\"b1\", \"b2\"]\nstripes = 8\nsize = \"4GiB\"\n";

fn ds14() -> Layout {
    Layout::parse("layout.toml", DS14, &Catalog::builtin()).expect("a layout")
}

/// Runs a backup beside databases, in slices of this length, and returns its report and the number
/// of I/Os.
fn simulate(backup: &str, databases: &[(&str, &str)], slice: Option<Span>) -> (OltpReport, u64) {
    let layout = ds14();
    let backups = [Backup::parse("backup.toml", backup).expect("a backup")];
    let options = OltpOptions { backups: &backups, ..options(None) };
    let all = descriptions(databases);
    let mut simulation = OltpSimulation::new(&layout, &all, &options).expect("it fits");
    let until = |now: Instant| slice.map_or(Instant::FAR, |slice| now + slice);
    let mut now = Instant::ZERO;
    while let Some(next) = simulation.run_until(until(now)) {
        assert!(next > now, "{next:?} is not later than {now:?}");
        now = next;
    }
    (simulation.report(), simulation.completed())
}

fn backup(report: &OltpReport) -> &BackupReport {
    report.backups.first().expect("a backup")
}

#[test]
fn each_transfer_is_simulated_as_one_read_and_one_write() {
    let check = |keys: &str, transfers: u64, written: u64| {
        let (report, ios) = simulate(&format!("{BACKUP}{keys}"), &[], None);
        let own = backup(&report);
        assert!(own.is_complete);
        assert_eq!((ios, own.bytes_written), (2 * transfers, written), "{keys}");
        assert_eq!(own.places.iter().map(|place| place.transfers).sum::<u64>(), ios);
    };
    check("", 4096, 4 << 30);
    check("max_transfer_size = \"4MiB\"\n", 1024, 4 << 30);
    check("compression = { ratio = 0.25, rate = \"400MiB\", threads = 4 }\n", 4096, 1 << 30);
}

#[test]
fn a_backup_alone_gets_half_of_the_machine() {
    let (report, _) = simulate(BACKUP, &[], None);
    let own = backup(&report);
    let rate = own.mib_per_s.expect("a rate");
    assert!((250.0..=256.0).contains(&rate), "{rate}");
    assert_eq!(own.binding_limit.as_deref(), Some("host_uncached_bytes"));
}

#[test]
fn a_backup_with_a_limit_reads_at_that_rate_and_not_faster() {
    let (report, _) = simulate(&format!("{BACKUP}limit = \"100 MiB/s\"\n"), &[], None);
    let own = backup(&report);
    assert_eq!(own.binding_limit.as_deref(), Some("limit"));
    // The last of 4,096 reads of 1 MiB starts after 40.95 s, and is read and written then.
    assert!((40.95..41.0).contains(&own.elapsed_s), "{}", own.elapsed_s);
}

#[test]
fn slices_do_not_change_a_backup() {
    let databases = [("oltp", OLTP)];
    let limited = format!("{BACKUP}limit = \"150 MB/s\"\n");
    for text in [BACKUP, &limited] {
        for databases in [&[][..], &databases] {
            let whole = simulate(text, databases, None);
            for slice in [Span::from_micros(700), Span::from_millis(333)] {
                assert_eq!(simulate(text, databases, Some(slice)), whole, "{slice}");
            }
        }
    }
}

/// A machine without limits, so that only disks throttle requests.
const UNLIMITED: &str = "edition = \"azure-premium-2015\"\nhost = { unlimited = true }\n\
    [[stripe]]\nname = \"data\"\nunit = \"64 KiB\"\nvolumes = { count = 10, tier = \"P30\" }\n\
    [[stripe]]\nname = \"b1\"\nunit = \"64 KiB\"\nvolumes = { count = 3, tier = \"P20\" }\n\
    [[volume]]\nname = \"b2\"\ntier = \"P30\"\n\
    [[volume]]\nname = \"d1\"\ntier = \"P30\"\n[[volume]]\nname = \"d2\"\ntier = \"P30\"\n\
    [[volume]]\nname = \"log\"\ntier = \"P30\"\n";

/// The trace, the report and the samples of a run are those of an engine that has an event for
/// each piece of a request.
#[test]
fn requests_admitted_ahead_do_not_change_a_backup() {
    let layout = Layout::parse("layout.toml", UNLIMITED, &Catalog::builtin()).expect("a layout");
    let backups = [Backup::parse("backup.toml", BACKUP).expect("a backup")];
    let options = OltpOptions { backups: &backups, ..options(None) };
    for databases in [&[][..], &[("oltp", OLTP)]] {
        let all = descriptions(databases);
        let ahead = OltpSimulation::new(&layout, &all, &options).expect("it fits");
        let mut pieces = OltpSimulation::new(&layout, &all, &options).expect("it fits");
        pieces.engines = crate::engines(&layout, |host| Engine::new(host.spec.clone())).0;
        let [ahead, pieces] = [ahead, pieces].map(|mut simulation| {
            let mut samples = Vec::new();
            let mut until = Instant::ZERO;
            while simulation.run_until(until).is_some() {
                samples.push(simulation.sample());
                until += Span::from_millis(333);
            }
            samples.push(simulation.sample());
            (samples, simulation.report())
        });
        assert!(ahead.0.len() > 10);
        assert_eq!(ahead, pieces);
    }
}
