//! iostat as text.

use crate::bed::{input, read, refused, try_read};
use crate::samples::sample;
use weir_import::Options;
use weir_observe::load::Loads;
use weir_units::Span;

const NEW: &str = "\
Linux 5.15.0 (db1)\t03/14/19\t_x86_64_\t(4 CPU)

03/14/19 00:42:24
avg-cpu:  %user   %nice %system %iowait  %steal   %idle
           1.00    1.00    3.00    5.00    0.50   89.50

Device            r/s     w/s     rMB/s     wMB/s   rrqm/s   wrqm/s  %rrqm  %wrqm r_await w_await aqu-sz rareq-sz wareq-sz  svctm  %util
sda              0.13    3.27      0.01      0.02     0.00     0.00   0.00   0.00    0.51    1.11   0.01     1.00     4.25   0.00   0.50

03/14/19 00:42:29
avg-cpu:  %user   %nice %system %iowait  %steal   %idle
          10.00    0.00    5.00   35.00    0.00   50.00

Device            r/s     w/s     rMB/s     wMB/s   rrqm/s   wrqm/s  %rrqm  %wrqm r_await w_await aqu-sz rareq-sz wareq-sz  svctm  %util
sda            100.20   20.00      1.50      0.25     0.00     0.20   0.00   8.33    2.50   12.00   0.75    15.00    12.50   0.00  99.80
nvme0n1          0.00    1.00      0.00      0.00     0.00     0.00   0.00   0.00    0.00    0.10   0.00     0.00     4.00   0.00   0.01
";

#[test]
fn new_with_dates_and_the_first_report_left_out() {
    let read = read(NEW);
    assert_eq!(read.kind(), "iostat");
    assert_eq!(read.start().as_deref(), Some("2019-03-14T00:42:29Z"));
    // The interval is that since the report that is left out.
    assert_eq!(read.observation.times[1] - read.observation.times[0], Span::from_secs(5));
    assert_eq!(read.all("sda", "reads_per_s"), [100.2]);
    assert_eq!(read.all("sda", "write_bytes_per_s"), [262_144.0]);
    assert_eq!(read.all("sda", "write_latency_ns"), [12e6]);
    assert_eq!(read.all("sda", "busy"), [0.998]);
    assert_eq!(read.all("nvme0n1", "writes_per_s"), [1.0]);
    assert_eq!(read.all("db1", "cpu"), [0.15]);
    assert_eq!(read.all("db1", "cpu_iowait"), [0.35]);
    assert!(read.notes("since boot"), "{:?}", read.summary.notes);
    assert!(read.notes("svctm"), "{:?}", read.summary.notes);
}

#[test]
fn with_decimal_commas_and_line_ends_of_windows() {
    let foreign = NEW.replace('.', ",").replace("5,15,0", "5.15.0").replace('\n', "\r\n");
    let (plain, foreign) = (read(NEW), read(&foreign));
    assert_eq!(plain.observation.columns, foreign.observation.columns);
    assert_eq!(plain.observation.times, foreign.observation.times);
}

#[test]
fn old_without_dates() {
    let text = "\
Device:         rrqm/s   wrqm/s     r/s     w/s   rsec/s   wsec/s avgrq-sz avgqu-sz   await  svctm  %util
sdb               0.01     8.06    0.03    0.25     2.00    48.00   248.73     0.02   86.45   3.85   0.11

Device:         rrqm/s   wrqm/s     r/s     w/s   rsec/s   wsec/s avgrq-sz avgqu-sz   await  svctm  %util
sdb               0.00     2.00   10.00   30.00   160.00   480.00    16.00     1.50   37.50   3.85  80.00

Device:         rrqm/s   wrqm/s     r/s     w/s   rsec/s   wsec/s avgrq-sz avgqu-sz   await  svctm  %util
sdb               0.00     2.00   11.00   30.00   160.00   480.00    16.00     1.50   37.50   3.85  80.00
";
    let read = read(text);
    assert_eq!((read.start(), read.seconds()), (None, vec![1.0, 2.0]));
    assert_eq!(read.first_interval(), 1.0);
    assert_eq!(read.all("sdb", "reads_per_s"), [10.0, 11.0]);
    assert_eq!(read.all("sdb", "write_bytes_per_s"), [245_760.0, 245_760.0]);
    assert_eq!(read.all("sdb", "latency_ns"), [37.5e6, 37.5e6]);
    assert_eq!(read.all("sdb", "request_bytes"), [8192.0, 8192.0]);
}

#[test]
fn units_of_numbers_override_units_of_heads() {
    let text = "\
Device            r/s     rkB/s   w/s     wkB/s  areq-sz %util
sda              1.00    512.0B  2.00      1.5k     4.0k   50.0%
";
    let read = read(text);
    assert_eq!(read.all("sda", "read_bytes_per_s"), [512.0]);
    assert_eq!(read.all("sda", "write_bytes_per_s"), [1536.0]);
    assert_eq!(read.all("sda", "request_bytes"), [4096.0]);
    assert_eq!(read.all("sda", "busy"), [0.5]);
}

#[test]
fn a_first_report_of_an_interval_is_kept() {
    let report = |second: u32, rates: &str| {
        format!(
            "03/14/19 00:42:{second:02}\nDevice r/s w/s f/s rrqm/s\nsda {rates}\nsdb {rates}\n\n"
        )
    };
    let text = [report(0, "3.33 4.67 1.00 2.00"), report(3, "0.00 0.00 0.00 0.00")].concat()
        + &report(6, "0.00 0.00 0.00 0.00");
    let read = read(&text);
    assert_eq!(read.all("sda", "reads_per_s"), [3.33, 0.0, 0.0]);
    assert!(read.summary.notes.is_empty(), "{:?}", read.summary.notes);
}

#[test]
fn a_truncated_last_line_is_left_out_with_a_note() {
    let cut = &NEW[..NEW.len() - 30];
    let read = read(cut);
    assert_eq!(read.all("sda", "reads_per_s"), [100.2]);
    assert!(read.notes("its last line was truncated"), "{:?}", read.summary.notes);
}

#[test]
fn a_line_that_does_not_match_its_head_is_rejected() {
    let wrong = NEW.replace("nvme0n1          0.00    1.00", "nvme0n1          1.00");
    assert_eq!(refused(&wrong), "line 16: a device has 15 columns, but its header has 16");
    let wrong = NEW.replace(" 100.20", " 1o0.20");
    assert_eq!(refused(&wrong), "line 15: \"1o0.20\" is not a number");
}

#[test]
fn iostat_of_macos_is_rejected_by_name() {
    let text = "              disk0       cpu\n    KB/t  tps  MB/s  us sy id\n   26.49   18  0.47   2  1 96\n";
    assert_eq!(
        refused(text),
        "it is iostat of macOS, which is not read: it does not distinguish reads from writes"
    );
}

#[test]
fn samples_have_the_published_figures() {
    let Some(read) = sample("iostat_text/pbench_iostat-1.txt") else { return };
    // It ran with -y: its 21 reports are all of intervals.
    assert_eq!(read.summary.samples, 21);
    let busy = read.all("sda", "busy");
    assert_eq!(busy.iter().filter(|share| **share >= 0.9).count(), 3, "{busy:?}");
    assert_eq!(busy[0], 0.911);
    assert!(!read.notes("only report"), "{:?}", read.summary.notes);
    let Some(read) = sample("iostat_text/pgbenchtools_iostat.log") else { return };
    assert_eq!(read.start().as_deref(), Some("2015-01-03T16:40:48.768729Z"));
    let foreign = sample("derived_variants/iostat_decimal_comma.txt");
    let (Some(a), Some(b)) = (foreign, sample("derived_variants/iostat_crlf.txt")) else { return };
    assert_eq!(a.observation.columns, b.observation.columns);
    let Some(read) = sample("derived_variants/iostat_truncated_last_line.txt") else { return };
    assert!(read.notes("its last line was truncated"), "{:?}", read.summary.notes);
}

/// Builds a report of `iostat -dxz` at a second, with the devices that are not idle.
fn busy_report(second: u64, devices: &[(&str, f64)]) -> String {
    let mut text = format!(
        "11/22/26 10:{:02}:{:02}\nDevice            r/s     rkB/s   r_await     w/s     wkB/s   \
         w_await  aqu-sz  %util\n",
        second / 60,
        second % 60
    );
    for (name, reads) in devices {
        text += &format!("{name} {reads:.2} {:.2} 1.00 0.00 0.00 0.00 1.00 50.00\n", reads * 8.0);
    }
    text + "\n"
}

const BANNER: &str = "Linux 6.1.0 (db1) \t11/22/26 \t_x86_64_\t(4 CPU)\n\n";

/// Returns the mean operations per second of a device, and the known duration in seconds.
fn mean_iops(read: &crate::bed::Read, name: &str) -> (f64, f64) {
    let entity = read.entity(name);
    let mut loads = Loads::new(read.observation.contents());
    let (mut operations, mut seconds) = (0.0, 0.0);
    for (sample, at) in read.observation.times.iter().enumerate() {
        let row: Vec<_> =
            read.observation.columns.iter().map(|column| column.get(sample)).collect();
        loads.sample(*at, &row, |id, load| {
            if id == entity {
                operations += load.operations.expect("operations");
                seconds += load.seconds();
            }
        });
    }
    (operations / seconds, seconds)
}

#[test]
fn a_device_missing_from_reports_without_idle_ones_was_idle() {
    // Busy in 2 of 60 reports, from the 31st on: 5,000 reads a second in 2 of 60 intervals.
    let mut text = BANNER.to_owned() + &busy_report(0, &[("sda", 1.3), ("sdb", 0.7)]);
    for report in 1..=60 {
        let own: &[_] = if [31, 45].contains(&report) { &[("sdb", 5_000.0)] } else { &[] };
        text += &busy_report(5 * report, own);
    }
    let read = read(&text);
    assert_eq!(read.summary.samples, 60);
    let (mean, seconds) = mean_iops(&read, "sdb");
    assert!((mean - 10_000.0 / 60.0).abs() < 0.01, "{mean}");
    assert!((seconds - 300.0).abs() < 0.01, "{seconds}");
}

#[test]
fn a_device_missing_among_idle_ones_leaves_a_gap() {
    let mut text = BANNER.to_owned() + &busy_report(0, &[("sda", 1.3), ("sdb", 0.7)]);
    for report in 1..=60 {
        let sdb: Option<(&str, f64)> = [10, 50].contains(&report).then_some(("sdb", 5_000.0));
        let devices: Vec<_> = std::iter::once(("sda", 0.0)).chain(sdb).collect();
        text += &busy_report(5 * report, &devices).replace("1.00 50.00", "0.00 0.00");
    }
    let (mean, seconds) = mean_iops(&read(&text), "sdb");
    assert!((mean - 5_000.0).abs() < 0.01, "{mean}");
    assert!((seconds - 10.0).abs() < 0.01, "{seconds}");
}

#[test]
fn each_run_in_a_file_begins_with_averages() {
    let run = |minute: u64, reads: f64| {
        let mut text = BANNER.to_owned() + &busy_report(60 * minute, &[("sda", 77.7)]);
        for report in 1..=3 {
            text += &busy_report(60 * minute + 5 * report, &[("sda", reads)]);
        }
        text
    };
    let read = read(&(run(0, 100.0) + &run(40, 300.0)));
    assert_eq!(read.all("sda", "reads_per_s"), [100.0, 100.0, 100.0, 300.0, 300.0, 300.0]);
    let (mean, seconds) = mean_iops(&read, "sda");
    assert!((mean - 200.0).abs() < 0.01, "{mean}");
    assert!((seconds - 30.0).abs() < 0.01, "{seconds}");
}

#[test]
fn single_report_runs_are_classified_by_their_changes() {
    let run =
        |minute: u64, reads: f64| BANNER.to_owned() + &busy_report(60 * minute, &[("sda", reads)]);
    // Appended by cron with iostat -y 30 1.
    let rates = [100.0, 900.0, 40.0, 700.0, 100.0];
    let text: String = (1..).zip(rates).map(|(minute, reads)| run(minute, reads)).collect();
    let busy = read(&text);
    assert_eq!(busy.all("sda", "reads_per_s"), rates);
    assert!(busy.notes("rise and fall"), "{:?}", busy.summary.notes);
    // Without -y: averages since the machine started.
    let text: String = (1..=50).map(|minute| run(minute, 100.0 + minute as f64)).collect();
    let averages = read(&text);
    assert_eq!(averages.all("sda", "reads_per_s"), [150.0]);
    assert!(averages.notes("only the last is used"), "{:?}", averages.summary.notes);
    assert!(averages.notes("49 reports left out"), "{:?}", averages.summary.notes);
}

#[test]
fn rates_do_not_extend_into_the_next_file() {
    let file = |minute: u64, reads: f64| {
        let reports = (0..=3).map(|at| busy_report(60 * minute + 5 * at, &[("sda", reads)]));
        (BANNER.to_owned() + &reports.collect::<String>()).into_bytes()
    };
    let inputs = vec![input("a.txt", file(0, 100.0), None), input("b.txt", file(50, 300.0), None)];
    let read = try_read(inputs, &Options::default()).expect("an import");
    let (mean, seconds) = mean_iops(&read, "sda");
    assert!((mean - 200.0).abs() < 0.01, "{mean}");
    assert!((seconds - 30.0).abs() < 0.01, "{seconds}");
}

/// Output of `iostat -ct 5`, with a time in front of each report.
const PROCESSORS: &str = "\
Linux 5.15.0 (db1)\t03/14/19\t_x86_64_\t(4 CPU)

03/14/19 00:42:24
avg-cpu:  %user   %nice %system %iowait  %steal   %idle
           1.00    1.00    3.00    5.00    0.50   89.50

03/14/19 00:42:29
avg-cpu:  %user   %nice %system %iowait  %steal   %idle
          10.00    0.00    5.00   35.00    0.00   50.00

03/14/19 00:42:34
avg-cpu:  %user   %nice %system %iowait  %steal   %idle
          20.00    5.00    5.00   10.00    0.00   60.00

";

#[test]
fn processors_alone() {
    let check = |text: &str| {
        let read = read(text);
        assert_eq!(read.kind(), "iostat");
        assert_eq!(read.all("db1", "cpu"), [0.15, 0.3]);
        assert_eq!(read.all("db1", "cpu_iowait"), [0.35, 0.1]);
        assert_eq!((read.summary.entities, read.summary.samples), (1, 2));
        assert!(read.notes("since boot and is left out"), "{:?}", read.summary.notes);
        assert!(read.notes("say nothing about disks"), "{:?}", read.summary.notes);
        read
    };
    let timed = check(PROCESSORS);
    assert_eq!(timed.start().as_deref(), Some("2019-03-14T00:42:29Z"));
    assert_eq!((timed.seconds(), timed.first_interval()), (vec![0.0, 5.0], 5.0));
    let untimed: Vec<_> = PROCESSORS.lines().filter(|line| !line.starts_with("03/14")).collect();
    check(&(untimed.join("\n") + "\n"));
    check(&PROCESSORS.replace('\n', "\r\n"));
}

#[test]
fn truncated_reports_of_processors_alone() {
    let cut = read(&PROCESSORS[..PROCESSORS.len() - 20]);
    assert_eq!(cut.all("db1", "cpu"), [0.15]);
    assert!(cut.notes("a report was truncated"), "{:?}", cut.summary.notes);
    let head = PROCESSORS.split("           1.00").next().expect("a part");
    assert!(refused(head).contains("has no samples"), "{}", refused(head));
    crate::bed::survives(&PROCESSORS[..400], "iostat");
}

#[test]
fn a_report_truncated_before_its_disks_is_not_of_processors_alone() {
    let cut = PROCESSORS.rfind("03/14").map(|at| &PROCESSORS[at..]).expect("a report");
    let whole = NEW.rfind("03/14").map(|at| &NEW[at..]).expect("a report");
    let last = whole.replace("00:42:29", "00:42:39").replace("100.20", "200.40");
    for (text, expect) in [
        (format!("{NEW}\n{cut}"), vec![100.2]),
        (format!("{NEW}\n{cut}{last}"), vec![100.2, 200.4]),
    ] {
        let read = read(&text);
        assert_eq!(read.all("sda", "reads_per_s"), expect);
        assert!(read.notes("a report was truncated"), "{:?}", read.summary.notes);
    }
}

#[test]
fn disks_are_unknown_during_a_run_of_processors_alone() {
    let read = read(&(NEW.to_owned() + "\n" + PROCESSORS));
    assert_eq!(read.values("sda", "reads_per_s")[0], Some(100.2));
    assert!(read.values("sda", "reads_per_s")[1..].iter().all(Option::is_none));
}

#[test]
fn rates_of_single_report_files_do_not_extend_between_them() {
    let file = |minute: u64, reads: f64| {
        (BANNER.to_owned() + &busy_report(60 * minute, &[("sda", reads)])).into_bytes()
    };
    let inputs =
        || vec![input("a.txt", file(0, 100.0), None), input("b.txt", file(50, 300.0), None)];
    let read = try_read(inputs(), &Options::default()).expect("an import");
    assert_eq!(mean_iops(&read, "sda"), (200.0, 2.0));
    assert!(read.notes("b.txt: it has one report, which does not state the interval of its rates"));
    let every = Options { every: Some(Span::from_secs(5)), ..Options::default() };
    let read = try_read(inputs(), &every).expect("an import");
    assert_eq!(mean_iops(&read, "sda"), (200.0, 10.0));
}

#[test]
fn single_report_runs_are_compared_by_device_and_options() {
    let run = |minute: u64, devices: &[_]| BANNER.to_owned() + &busy_report(60 * minute, devices);
    // Averages whose machine was started again twice: their sums rise and fall.
    let averages = |minute: u64| 100.0 + (minute % 17) as f64;
    let text: String = (1..=30).map(|minute| run(minute, &[("sda", averages(minute))])).collect();
    let read = self::read(&text);
    assert_eq!(read.all("sda", "reads_per_s"), [averages(30)]);
    assert!(read.notes("29 reports left out"), "{:?}", read.summary.notes);
    // Averages of all disks and of one of them, in turn.
    let devices = [("sda", 100.0), ("sdb", 900.0)];
    let one_or_both = (1..).zip([1, 2].into_iter().cycle().take(30));
    let text: String = one_or_both.map(|(at, count)| run(at, &devices[..count])).collect();
    assert_eq!(self::read(&text).summary.samples, 1);
    // Averages and intervals in turn: which is which is not told.
    let rates = [100.0, 900.0, 40.0, 700.0, 300.0];
    let both = rates.into_iter().cycle().flat_map(|rate| [77.0, rate]).take(30);
    let text: String = (1..).zip(both).map(|(at, rate)| run(at, &[("sda", rate)])).collect();
    assert_eq!(self::read(&text).summary.samples, 1);
}

#[test]
fn reports_of_two_hosts_are_rejected() {
    let run = |host: &str, minute: u64| {
        let reports = (0..3).map(|at| busy_report(60 * minute + 5 * at, &[("sda", 100.0)]));
        BANNER.replace("db1", host) + &reports.collect::<String>()
    };
    let text = run("db1", 0) + &run("db2", 10);
    let expect = "it contains reports of db1 and of db2: split it by host";
    assert_eq!(refused(&text), expect);
    assert_eq!(read(&(run("db1", 0) + &run("db1", 10))).summary.samples, 4);
}

#[test]
fn zeros_of_missing_devices_have_no_bound() {
    let names: Vec<String> = (0..3_000).map(|at| format!("sd{at}")).collect();
    let all: Vec<_> = names.iter().map(|name| (name.as_str(), 7.7)).collect();
    let mut text = BANNER.to_owned() + &busy_report(0, &all) + &busy_report(5, &all);
    for report in 2..=4 {
        text += &busy_report(5 * report, &all[..1]);
    }
    let read = read(&text);
    let (mean, seconds) = mean_iops(&read, "sd2999");
    assert!((mean - 7.7 / 4.0).abs() < 1e-9 && seconds == 20.0, "{mean} for {seconds} s");
}
