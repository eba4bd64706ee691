//! Databases on layouts.

use super::*;
use weir_catalog::Catalog;
use weir_report::number::float;
use weir_report::oltp::DatabaseReport;

mod backups;

/// Two data files and a log, each with its own limits.
fn layout(data: &str, log: &str) -> Layout {
    let volume = |name: &str, limits: &str| {
        format!("[[volume]]\nname = \"{name}\"\nsize = \"64 GiB\"\nlatency = \"1ms\"\n{limits}\n")
    };
    let text = [volume("d1", data), volume("d2", data), volume("log", log)].concat();
    Layout::parse("layout.toml", &text, &Catalog::builtin()).expect("a layout")
}

const FREE: &str = "unlimited = true";

/// A warm database of 1 GiB.
const OLTP: &str = "users = 20\nthink_time = \"5ms\"\nvcores = 4\nsize = \"1 GiB\"\n\
    buffer_pool = \"2 GiB\"\nwarm = true\nduration = \"20s\"\nramp_time = \"5s\"\n\
    data = [\"d1\", \"d2\"]\nlog = \"log\"\n[checkpoint]\nevery = \"2s\"\n\
    [[transaction]]\nname = \"t\"\nshare = 1\nreads = 4\nwrites = 4\nlog = \"2 KiB\"\ncpu = \"200us\"\n";

fn options(every: Option<Span>) -> OltpOptions<'static> {
    OltpOptions { seed: 1, every, ..OltpOptions::default() }
}

/// Parses descriptions by the names of their databases.
fn descriptions(all: &[(&str, &str)]) -> Vec<Description> {
    let parse = |(name, text): &(&str, &str)| Description::parse(&format!("{name}.toml"), text);
    all.iter().map(parse).collect::<Result<_, _>>().expect("descriptions")
}

#[track_caller]
fn run_all(layout: &Layout, all: &[(&str, &str)], every: Option<Span>) -> OltpReport {
    let all = descriptions(all);
    let mut simulation = OltpSimulation::new(layout, &all, &options(every)).expect("it fits");
    assert_eq!(simulation.run_until(Instant::FAR), None);
    simulation.report()
}

#[track_caller]
fn run(layout: &Layout, oltp: &str, every: Option<Span>) -> DatabaseReport {
    run_all(layout, &[("oltp", oltp)], every).databases.remove(0)
}

#[test]
fn a_loop_without_limits_has_the_rate_that_its_times_say() {
    let report = run(&layout(FREE, FREE), OLTP, None);
    assert!((report.ramp_s - 5.0).abs() < 1e-9 && (report.elapsed_s - 20.0).abs() < 1e-9);
    let load = &report.load;
    // 5 ms of think time, 0.2 ms of CPU and 1 ms of log, plus waits for pages.
    let ideal = 20.0 / 0.0062;
    assert!((0.9..1.01).contains(&(load.batches_per_s / ideal)), "{}", load.batches_per_s);
    let users = load.batches_per_s * (load.response_mean_ns / 1e9 + 0.005);
    assert!((users / 20.0 - 1.0).abs() < 0.01, "{users}");
    assert!((load.cpu_share - load.batches_per_s * 200e-6 / 4.0).abs() < 0.001);
    assert_eq!((load.checkpoints, load.page_life_s), (10, None));
    assert!((load.buffer_hit_share - 1.0).abs() < 1e-12);
    let shares: f64 = report.waits.iter().map(|wait| wait.share).sum();
    assert!((shares - 1.0).abs() < 1e-9 && report.waits[0].wait == "WRITELOG", "{shares}");
}

#[test]
fn a_file_has_the_columns_of_sql_server() {
    // The database is small, so many changes meet a page that is being written.
    let small = OLTP.replace("size = \"1 GiB\"", "size = \"256 MiB\"");
    let report = run(&layout("limits = { iops = 200 }", FREE), &small, None);
    let names: Vec<_> = report.files.iter().map(|f| (f.file.as_str(), f.role.as_str())).collect();
    assert_eq!(names, [("d1", "data"), ("d2", "data"), ("log", "log")]);
    for data in &report.files[..2] {
        assert_eq!(
            (data.sample_ms, data.num_of_reads, data.size_on_disk_bytes),
            (20_000, 0, 64 << 30)
        );
        // At most 200 a second, and none between two checkpoints.
        assert!((3_900..=4_002).contains(&data.num_of_writes), "{}", data.num_of_writes);
        assert_eq!(data.io_stall, data.io_stall_write_ms);
        // A queue depth of 32 at 200 a second is 160 ms each, 1 of them the medium.
        assert!((155e6..161e6).contains(&data.write_mean_ns), "{}", data.write_mean_ns);
        let queued = data.waits_ns["disk_iops"] / 1_000_000;
        assert_eq!(data.io_stall_queued_write_ms, queued);
        assert_eq!(
            data.io_stall_write_ms,
            (data.waits_ns["disk_iops"] + data.medium_ns) / 1_000_000
        );
    }
    let log = &report.files[2];
    assert_eq!((log.io_stall_queued_write_ms, log.num_of_reads), (0, 0));
    assert!(log.num_of_bytes_written >= report.load.transactions * 2048, "{log:?}");
    assert_eq!(report.waits[0].wait, "PAGEIOLATCH_EX");
}

#[test]
fn a_slow_log_is_the_top_wait() {
    let slow = run(&layout(FREE, "limits = { throughput = \"1 MiB/s\" }"), OLTP, None);
    assert!(slow.wait("WRITELOG").is_some_and(|wait| wait.share > 0.95), "{:?}", slow.waits);
    // 2 KiB each and a block's header are 2.5 KiB in sectors.
    assert!((400.0..=410.0).contains(&slow.load.batches_per_s), "{}", slow.load.batches_per_s);
}

#[test]
fn a_pool_that_is_too_small_reads() {
    let small = OLTP.replace("\"2 GiB\"", "\"256 MiB\"").replace("writes = 4", "writes = 0");
    let report = run(&layout(FREE, FREE), &small, None);
    assert!(
        (0.24..0.26).contains(&report.load.buffer_hit_share),
        "{}",
        report.load.buffer_hit_share
    );
    assert_eq!(report.load.buffer_bytes, 256 << 20);
    let reads: u64 = report.files.iter().map(|file| file.num_of_reads).sum();
    // The pages of the buffer pool, divided by the reads per second.
    let life = 32_768.0 / (float(reads) / 20.0);
    let seen = report.load.page_life_s.expect("pages go");
    assert!((seen / life - 1.0).abs() < 0.01, "{seen} and {life}");
    assert_eq!(report.waits[0].wait, "PAGEIOLATCH_SH");
}

#[test]
fn slices_do_not_change_a_run() {
    let layout = layout("limits = { iops = 500 }", FREE);
    let all = [("oltp", OLTP)];
    let whole = run_all(&layout, &all, Some(Span::from_secs(1)));
    let all = descriptions(&all);
    let every = options(Some(Span::from_secs(1)));
    let mut simulation = OltpSimulation::new(&layout, &all, &every).expect("it fits");
    let mut until = Instant::ZERO;
    while let Some(next) = simulation.run_until(until) {
        assert!(next > until);
        until = next + Span::from_millis(7);
    }
    assert_eq!(simulation.report(), whole);
    let other = OltpOptions { seed: 2, ..every };
    let mut simulation = OltpSimulation::new(&layout, &all, &other).expect("it fits");
    simulation.run_until(Instant::FAR);
    assert_ne!(simulation.report().trace_hash, whole.trace_hash);
}

#[test]
fn intervals_add_up_to_the_run() {
    let report = run(&layout(FREE, FREE), OLTP, Some(Span::from_secs(3)));
    let ends: Vec<_> = report.series.iter().map(|p| (p.start_s, p.length_s)).collect();
    assert_eq!(ends.len(), 9);
    assert!(ends[8] == (24.0, 1.0) && ends[7] == (21.0, 3.0), "{ends:?}");
    let measured: f64 =
        report.series.iter().skip(2).map(|p| p.batches_per_s * p.length_s).sum::<f64>();
    // This rate is from 6 s on, and that of the run from 5 s on.
    let rate = report.load.batches_per_s;
    assert!((measured / (rate * 19.0) - 1.0).abs() < 0.02, "{measured} at {rate}");
    assert!(report.series.iter().all(|p| p.top_wait.as_deref() == Some("WRITELOG")));
}

#[test]
fn a_run_too_short_for_a_checkpoint_says_so() {
    let report = run(&layout(FREE, FREE), &OLTP.replace("\"2s\"", "\"60s\""), None);
    assert_eq!(
        report.notes,
        ["no checkpoint ended in the measured time, so the data files were written less than in \
          the long run; measure longer"]
    );
}

/// The text of `OLTP` with other files and another duration.
fn on(data: &str, log: &str, duration: &str) -> String {
    OLTP.replace("size = \"1 GiB\"", "size = \"256 MiB\"")
        .replace("[\"d1\", \"d2\"]", &format!("[\"{data}\"]"))
        .replace("log = \"log\"\n[", &format!("log = \"{log}\"\n["))
        .replace("duration = \"20s\"", &format!("duration = \"{duration}\""))
}

const SHARED: &str = "[[volume]]\nname = \"disk\"\nsize = \"64 GiB\"\nlatency = \"1ms\"\n\
    limits = { iops = 400 }\n[[volume]]\nname = \"logs\"\nsize = \"64 GiB\"\nlatency = \"1ms\"\n\
    unlimited = true\n\
    [[file]]\nname = \"a\"\nrole = \"data\"\nsize = \"8 GiB\"\non = \"disk\"\n\
    [[file]]\nname = \"b\"\nrole = \"data\"\nsize = \"8 GiB\"\non = \"disk\"\n\
    [[file]]\nname = \"alog\"\nrole = \"log\"\nsize = \"1 GiB\"\non = \"logs\"\n\
    [[file]]\nname = \"blog\"\nrole = \"log\"\nsize = \"1 GiB\"\non = \"logs\"\n";

#[test]
fn databases_on_one_disk_share_its_limits() {
    let layout = Layout::parse("layout.toml", SHARED, &Catalog::builtin()).expect("a layout");
    let (a, b) = (on("a", "alog", "20s"), on("b", "blog", "20s"));
    let alone = run(&layout, &a, None);
    let both = run_all(&layout, &[("a", &a), ("b", &b)], None);
    let names: Vec<_> = both.databases.iter().map(|d| d.database.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let wanted = |n: usize| both.databases[n].load.pages_wanted;
    assert_ne!(wanted(0), wanted(1), "each has draws of its own");
    let writes = |database: &DatabaseReport| database.files[0].num_of_writes;
    assert!((7_800..=8_002).contains(&writes(&alone)), "{}", writes(&alone));
    let of_both = both.databases.iter().map(writes).sum::<u64>();
    assert!((7_800..=8_002).contains(&of_both), "{of_both}");
    for database in &both.databases {
        let share = float(writes(database)) / float(of_both);
        assert!((0.45..0.55).contains(&share), "{share}");
        assert!(database.load.batches_per_s < 0.8 * alone.load.batches_per_s);
        assert_eq!(database.files[0].size_on_disk_bytes, 8 << 30);
    }
}

#[test]
fn a_database_whose_time_is_over_leaves_the_disk_to_the_others() {
    let layout = Layout::parse("layout.toml", SHARED, &Catalog::builtin()).expect("a layout");
    let (a, b) = (on("a", "alog", "20s"), on("b", "blog", "5s"));
    let report = run_all(&layout, &[("a", &a), ("b", &b)], Some(Span::from_secs(5)));
    let [a, b] = &report.databases[..] else { panic!("two databases") };
    assert!((a.elapsed_s - 20.0).abs() < 1e-9 && (b.elapsed_s - 5.0).abs() < 1e-9);
    assert_eq!((a.series.len(), b.series.len()), (5, 2));
    let beside = a.series[1].batches_per_s;
    assert!(a.series[3].batches_per_s > 1.3 * beside, "{:?}", a.series);
}

#[test]
fn two_databases_do_not_get_the_same_file() {
    let layout = Layout::parse("layout.toml", SHARED, &Catalog::builtin()).expect("a layout");
    let (a, b) = (on("a", "alog", "20s"), on("b", "alog", "20s"));
    let all = descriptions(&[("a", &a), ("b", &b)]);
    let refused = OltpSimulation::new(&layout, &all, &options(None)).map(|_| ());
    assert_eq!(
        refused.map_err(|error| error.to_string()),
        Err("b.toml:10:7: \"alog\" is a file of another database of this run; give each database \
             its own files"
            .to_owned())
    );
}

/// An instance of 4 vCores with the files of two databases and tempdb's.
const INSTANCE: &str = "edition = \"azure-mi-2018\"\n\
    host = { managed_instance = \"gp\", vcores = 4 }\n\
    [[file]]\nname = \"a\"\ndatabase = \"a\"\nrole = \"data\"\nsize = \"8 GiB\"\n\
    [[file]]\nname = \"alog\"\ndatabase = \"a\"\nrole = \"log\"\nsize = \"8 GiB\"\n\
    [[file]]\nname = \"b\"\ndatabase = \"b\"\nrole = \"data\"\nsize = \"8 GiB\"\n\
    [[file]]\nname = \"blog\"\ndatabase = \"b\"\nrole = \"log\"\nsize = \"8 GiB\"\n\
    [[file]]\nname = \"t\"\nrole = \"tempdb\"\nsize = \"8 GiB\"\n\
    [[file]]\nname = \"tlog\"\nrole = \"tempdb\"\nsize = \"8 GiB\"\n";

#[test]
fn a_database_has_the_files_that_the_layout_has_for_it() {
    let layout = Layout::parse("layout.toml", INSTANCE, &Catalog::builtin()).expect("a layout");
    let new = |all: &[(&str, &str)]| {
        let all = descriptions(all);
        OltpSimulation::new(&layout, &all, &options(None)).map(|_| ()).map_err(|e| e.to_string())
    };
    let of = |data: &str, log: &str| on(data, log, "20s");
    assert_eq!(new(&[("a", &of("a", "alog"))]), Ok(()));
    assert_eq!(new(&[("t", &of("t", "tlog"))]), Ok(()), "tempdb itself");
    let check = |all: &[(&str, &str)], expect: &str| {
        assert_eq!(new(all), Err(expect.to_owned()));
    };
    check(
        &[("a", &of("alog", "a"))],
        "a.toml:9:9: data = \"alog\": the layout says role = \"log\"; give a file of role \"data\"",
    );
    check(
        &[("a", &of("a", "tlog"))],
        "a.toml:10:7: log = \"tlog\": the layout says role = \"tempdb\"; give a file of role \"log\"",
    );
    check(
        &[("a", &of("a", "blog"))],
        "a.toml:10:7: \"blog\" belongs to database \"b\" in the layout, but the files before it \
         belong to \"a\"",
    );
    check(
        &[("a", &of("a", "alog")), ("b", &of("b", "blog"))],
        "b.toml:3:10: vcores = 4 beside 4 of other databases: the instance of the layout has 4",
    );
}

/// A load of 20 s into a file of 126 GiB, of which 125 are in use. It grows by 1 GiB, up to the
/// limit of `storage`.
fn growing(storage: &str) -> OltpReport {
    let text = format!(
        "edition = \"azure-mi-2018\"\n\
         host = {{ managed_instance = \"gp\", vcores = 8, storage = \"{storage}\" }}\n\
         [[file]]\nname = \"data\"\nrole = \"data\"\nsize = \"126 GiB\"\ngrowth = \"1 GiB\"\n\
         [[file]]\nname = \"log\"\nrole = \"log\"\nsize = \"64 GiB\"\ngrowth = \"1 GiB\"\n"
    );
    let catalog = Catalog::builtin();
    let layout = Layout::parse("layout.toml", &text, &catalog).expect("a layout");
    let oltp = "users = 8\nvcores = 8\nsize = \"125 GiB\"\nworking_set = \"64 MiB\"\n\
        buffer_pool = \"1 GiB\"\nduration = \"200s\"\ndata = [\"data\"]\nlog = \"log\"\n\
        [checkpoint]\nevery = \"1s\"\n[[transaction]]\nname = \"rows\"\nshare = 1\n\
        sequential = true\nreads = 0\nwrites = 128\nlog = \"60 KiB\"\ncpu = \"5ms\"\n";
    let edition = Some(catalog.edition("azure-mi-2018").expect("the edition"));
    let all = descriptions(&[("load", oltp)]);
    let options = OltpOptions { edition, ..options(None) };
    let mut simulation = OltpSimulation::new(&layout, &all, &options).expect("it fits");
    assert_eq!(simulation.run_until(Instant::FAR), None);
    let files: Vec<u64> = simulation.sample().files.iter().map(|file| file.size_bytes).collect();
    let report = simulation.report();
    let data = report.databases[0].files[0].size_on_disk_bytes;
    assert_eq!(files, [data, 64 << 30]);
    report
}

#[test]
fn a_file_that_fills_grows_into_the_limits_of_the_next_tier() {
    let report = growing("8 TiB");
    let database = &report.databases[0];
    let grown = database.load.growths;
    assert!(grown > 4 && database.load.failed == 0, "{grown}");
    assert_eq!(database.files[0].size_on_disk_bytes, (126 + grown) << 30);
    // 1 MiB for each transaction, after the 125 GiB; eight may be in flight.
    let added = database.load.transactions << 20;
    assert!((grown << 30..(grown + 1) << 30).contains(&(added + (8 << 20))), "{added}");
    assert!(database.files[0].num_of_bytes_written > added / 2);
    let [grew] = &database.notes[..] else { panic!("{:?}", database.notes) };
    let (from, to) = (Bytes::gib(126), Bytes::gib(126 + grown));
    assert!(grew.starts_with(&format!("data grew {grown} times, from {from} to {to}; ")), "{grew}");
    assert!(
        grew.contains("went from P10 to P15 at ") && grew.ends_with(" s with 129 GiB"),
        "{grew}"
    );
    let idle = "growth of log has no effect: only data files grow";
    assert!(report.notes.iter().any(|note| note.starts_with(idle)), "{:?}", report.notes);
}

#[test]
fn a_file_grows_no_further_than_its_instance_has_storage() {
    let report = growing("192 GiB");
    let database = &report.databases[0];
    assert_eq!((database.load.growths, database.files[0].size_on_disk_bytes), (2, 128 << 30));
    assert!(database.load.failed > 0);
    let [full, grew] = &database.notes[..] else { panic!("{:?}", database.notes) };
    assert!(full.contains("transactions failed: the data files are full"), "{full}");
    assert!(
        grew.contains("could not grow at ") && grew.contains("193 GiB, 1 GiB more than"),
        "{grew}"
    );
}
