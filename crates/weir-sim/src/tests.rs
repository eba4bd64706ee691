//! The simulator on the article's machine.

use super::*;
use weir_catalog::Catalog;
use weir_workload::{Isolated, JobFile, fio, place};

const DS14: &str = "edition = \"azure-premium-2015\"\n[host]\nsize = \"DS14\"\n\
    [[volume]]\nname = \"readcache\"\ntier = \"P30\"\ncache = \"read-only\"\n\
    [[stripe]]\nname = \"nocache\"\nunit = \"64 KiB\"\n\
    volumes = { count = 10, tier = \"P30\", cache = \"none\" }\n";

fn run(layout: &str, job: &str, options: &Options) -> Result<RunReport, String> {
    let layout =
        Layout::parse("layout.toml", layout, &Catalog::builtin()).map_err(|e| e.to_string())?;
    let file: JobFile = fio::parse("job.fio", job, &Isolated).map_err(|e| e.to_string())?;
    let placed = place(&file, &devices(&layout), &[]).map_err(|e| e.to_string())?;
    simulate(&layout, placed, options).map_err(|e| e.to_string())
}

fn write_job(seconds: u64) -> String {
    format!(
        "[global]\nsize=30g\ndirect=1\niodepth=256\nioengine=libaio\nbs=8k\nruntime={seconds}\n\
         directory=/mnt/nocache\nrw=randwrite\n[writer1]\n[writer2]\n[writer3]\n[writer4]\n"
    )
}

#[test]
fn the_write_test_of_the_article_is_throttled_at_the_machine() {
    let report = run(DS14, &write_job(5), &Options::default()).expect("a run");
    let iops = report.iops();
    assert!((49_000.0..=50_010.0).contains(&iops), "{iops}");
    let host = &report.hosts[0];
    assert!((host.queue_depth - 1024.0).abs() < 20.0, "{}", host.queue_depth);
    for job in &report.jobs {
        let waited: u64 = job.waits_ns.values().sum();
        let seen = job.write.latency.mean * float(job.write.ios);
        let parts = float(waited + job.medium_ns);
        assert!((parts / seen - 1.0).abs() < 1e-9, "{parts} of {seen}");
    }
}

#[test]
fn one_seed_is_one_run() {
    let hash = |seed| {
        let options = Options { seed, ..Options::default() };
        run(DS14, &write_job(1), &options).expect("a run").trace_hash
    };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}

#[test]
fn slices_do_not_change_a_run() {
    let layout = Layout::parse("layout.toml", DS14, &Catalog::builtin()).expect("a layout");
    let file = fio::parse("job.fio", &write_job(1), &Isolated).expect("a job file");
    let placed = || place(&file, &devices(&layout), &[]).expect("jobs that fit");
    let options = Options {
        every: Some(Span::from_millis(100)),
        crash: Some(("host".to_owned(), Span::from_millis(450))),
        ..Options::default()
    };
    let whole = simulate(&layout, placed(), &options).expect("a run");
    let mut simulation = Simulation::new(&layout, placed(), &options).expect("a run");
    let slice = Span::from_millis(70);
    let (mut until, mut slices, mut completed) = (Instant::ZERO + slice, 0, 0);
    while let Some(next) = simulation.run_until(until).expect("a slice") {
        assert!(next > until, "{next:?} is not after {until:?}");
        // The machine allows 50,000 a second: 3,500 in 70 ms.
        let new = simulation.completed() - completed;
        assert!((3_000..4_500).contains(&new), "{new} in slice {slices}");
        completed = simulation.completed();
        until += slice;
        slices += 1;
    }
    assert_eq!(slices, 14);
    assert_eq!(simulation.report(), whole);
    let written: u64 = (1..11)
        .filter_map(|id| simulation.totals(0, VolumeId(id)))
        .map(|totals| totals.writes)
        .sum();
    assert_eq!(written, simulation.completed());
}

#[test]
fn a_warm_cache_serves_reads_at_the_cached_limit() {
    let job = write_job(2).replace("nocache", "readcache").replace("randwrite", "randread");
    let options = Options { warm: vec!["readcache".to_owned()], ..Options::default() };
    let warm = run(DS14, &job, &options).expect("a run");
    assert!((warm.iops() / 64_000.0 - 1.0).abs() < 0.001, "{}", warm.iops());
    assert_eq!(warm.jobs[0].hit_share, Some(1.0));
    let cold = run(DS14, &job, &Options::default()).expect("a run");
    assert!(cold.iops() < 6_000.0, "a cold cache gives the disk's limit: {}", cold.iops());
}

fn no_time(export: &str) -> String {
    format!(
        "no limit and no latency holds what the jobs do on {export:?}, so it takes no time; give it, \
         or the host cache that serves it, limits or a latency"
    )
}

#[test]
fn jobs_that_take_no_time_are_an_error() {
    let layout = "[[volume]]\nname = \"v\"\nunlimited = true\n";
    let job = "[a]\nfilename=/dev/v\nrw=randread\nbs=4k\nruntime=1\ntime_based\n";
    assert_eq!(run(layout, job, &Options::default()).map(|_| ()), Err(no_time("v")));
    // The error names the export. A cache without latency counts, too.
    let layout = "[host]\nunlimited = true\ncache = { size = \"1 GiB\" }\n[[volume]]\nname = \"u\"\n\
        unlimited = true\n[[volume]]\nname = \"v\"\nlimits = { iops = 100 }\ncache = \"read-only\"\n\
        size = \"1 MiB\"\n";
    let warm = Options { warm: vec!["v".to_owned()], ..Options::default() };
    assert_eq!(run(layout, job, &warm).map(|_| ()), Err(no_time("v")));
}

#[test]
fn a_crash_empties_the_cache_and_the_jobs_go_on() {
    let layout = "edition = \"azure-premium-2015\"\n[host]\nsize = \"DS14\"\n\
        [[volume]]\nname = \"v\"\ntier = \"P30\"\ncache = \"read-write\"\n";
    let job =
        "[a]\ndirectory=/mnt/v\nsize=64m\nrw=randread\nbs=4k\niodepth=8\nruntime=4\ntime_based\n";
    let options = Options {
        warm: vec!["v".to_owned()],
        every: Some(Span::from_secs(1)),
        crash: Some(("host".to_owned(), Span::from_secs(2))),
        ..Options::default()
    };
    let report = run(layout, job, &options).expect("a run");
    assert!(report.series[1].hit_share > Some(0.99) && report.series[2].hit_share < Some(0.9));
    let unknown = Options { crash: Some(("x".to_owned(), Span::ZERO)), ..Options::default() };
    assert_eq!(
        run(layout, job, &unknown).map(|_| ()),
        Err("there is no host \"x\" in the layout; there are: host".to_owned())
    );
    let near = Options { crash: Some(("hots".to_owned(), Span::ZERO)), ..Options::default() };
    assert_eq!(
        run(layout, job, &near).map(|_| ()),
        Err("there is no host \"hots\" in the layout; did you mean \"host\"?; there are: host"
            .to_owned())
    );
}

#[test]
fn bursting_on_demand_is_counted_for_the_bill() {
    let layout = "edition = \"azure-now\"\n[[volume]]\nname = \"v\"\ntier = \"P30\"\non_demand_burst = true\n";
    let job = "[a]\nfilename=/dev/v\nrw=randread\nbs=4k\nrate_iops=6000\nioengine=libaio\niodepth=64\nruntime=10\ntime_based\n";
    let volume = &run(layout, job, &Options::default()).expect("a run").volumes[0];
    // 1,000 a second above the 5,000 of a P30; the first second starts without burst credits.
    assert!((9_900..=10_001).contains(&volume.burst_transactions), "{}", volume.burst_transactions);
    let without = layout.replace("on_demand_burst = true", "on_demand_burst = false");
    let volume = &run(&without, job, &Options::default()).expect("a run").volumes[0];
    assert_eq!(volume.burst_transactions, 0);
}

#[test]
fn limits_behind_a_full_cache_are_named() {
    let layout = "edition = \"azure-premium-2015\"\n[host]\nsize = \"DS14\"\n\
        [[volume]]\nname = \"v\"\ntier = \"P10\"\ncache = \"read-write\"\n";
    let job = "[a]\ndirectory=/mnt/v\nsize=4g\nrw=randwrite\nbs=8k\nioengine=libaio\niodepth=64\nruntime=60\ntime_based\n";
    let report = run(layout, job, &Options::default()).expect("a run");
    let volume = &report.volumes[0];
    assert!(volume.waits_ns.contains_key("cache_writeback"), "{:?}", volume.waits_ns);
    let behind = volume.writeback_waits_ns.iter().max_by_key(|(_, ns)| **ns);
    assert_eq!(behind.map(|(cap, _)| cap.as_str()), Some("disk_iops"));
    assert!((volume.writeback_iops / 500.0 - 1.0).abs() < 0.05, "{}", volume.writeback_iops);
    assert!((volume.counted_iops - volume.writeback_iops).abs() < 1.0, "{}", volume.counted_iops);
}

/// A warm-up loads only the ranges that jobs may use, so it fits a small cache.
#[test]
fn a_warm_cache_has_the_ranges_of_the_jobs() {
    let layout = "[host]\nunlimited = true\ncache = { size = \"8 MiB\", latency = \"100us\" }\n\
        [[volume]]\nname = \"c\"\nlimits = { iops = 100 }\nsize = \"1 GiB\"\ncache = \"read-only\"\n";
    let job =
        "[a]\nfilename=/dev/c\nrw=randread\nbs=4k\noffset=512m\nsize=4m\nruntime=1\ntime_based\n";
    let options = Options { warm: vec!["c".to_owned()], ..Options::default() };
    let report = run(layout, job, &options).expect("a run");
    assert_eq!(report.jobs[0].hit_share, Some(1.0));
    assert_eq!(report.hosts[0].cache_resident_bytes, 4 << 20);
}

#[test]
fn figures_over_several_waves_are_said_to_be_averages() {
    let layout = "[[volume]]\nname = \"v\"\nlimits = { iops = 100 }\n";
    let one = "[global]\nfilename=/dev/v\nrw=read\nbs=4k\nruntime=1\ntime_based\n[a]\n[b]\n";
    assert_eq!(run(layout, one, &Options::default()).expect("a run").notes, [""; 0]);
    let two = one.replace("[b]\n", "[b]\nstonewall\n");
    assert_eq!(
        run(layout, &two, &Options::default()).expect("a run").notes,
        [
            "the jobs ran in 2 parts, one after the other; volumes and hosts have their averages over \
          all of them"
        ]
    );
}

#[test]
fn reports_name_every_cap_in_the_order_of_a_requests_path() {
    assert_eq!(weir_report::run::CAPS, weir_core::Cap::ALL.map(weir_core::Cap::name));
}
