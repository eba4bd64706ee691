//! Differences of imported observations.

use std::io::{BufReader, Cursor};
use weir_import::{Input, Options, import};
use weir_observe::between::{Between, Did, Pair, PairError, Stretch};
use weir_observe::observation::Observation;
use weir_observe::snapshot::Newest;
use weir_units::{Instant, Span};

/// Output of `sys.dm_io_virtual_file_stats` and `sys.dm_os_wait_stats`, twice, 100 s apart.
const BEFORE: &str = "\
collection_time,database_name,file_name,type_desc,num_of_reads,num_of_bytes_read,io_stall_read_ms,\
io_stall_queued_read_ms,num_of_writes,num_of_bytes_written,io_stall_write_ms,\
io_stall_queued_write_ms,size_on_disk_bytes
2026-11-22 10:00:00,tpcc,data,ROWS,1000,8192000,5000,1000,100,1638400,900,500,107374182400
2026-11-22 10:00:00,tpcc,log,LOG,7,57344,14,0,2000,8192000,4000,0,1073741824

collection_time,wait_type,waiting_tasks_count,wait_time_ms,max_wait_time_ms,signal_wait_time_ms
2026-11-22 10:00:00,PAGEIOLATCH_SH,50,100000,3000,10
2026-11-22 10:00:00,WRITELOG,1000,2000,40,5
";
const AFTER: &str = "\
collection_time,database_name,file_name,type_desc,num_of_reads,num_of_bytes_read,io_stall_read_ms,\
io_stall_queued_read_ms,num_of_writes,num_of_bytes_written,io_stall_write_ms,\
io_stall_queued_write_ms,size_on_disk_bytes
2026-11-22 10:01:40,tpcc,data,ROWS,41000,335872000,80005000,79881000,9000,147456000,16020900,15984900,107374182400
2026-11-22 10:01:40,tpcc,log,LOG,7,57344,14,0,2500,12288000,5500,0,2147483648

collection_time,wait_type,waiting_tasks_count,wait_time_ms,max_wait_time_ms,signal_wait_time_ms
2026-11-22 10:01:40,PAGEIOLATCH_SH,40050,80100000,4500,410
2026-11-22 10:01:40,WRITELOG,1500,3500,40,5
";

fn observation(texts: &[&str]) -> Observation {
    let input = |text: &&str| {
        let bytes = Box::new(BufReader::new(Cursor::new((*text).as_bytes().to_vec())));
        Input { name: "input".to_owned(), bytes, kind: None }
    };
    let inputs = texts.iter().map(input).collect();
    let (bytes, _) = import(inputs, &Options::default(), Vec::new()).expect("an observation");
    Observation::read(&bytes[..]).expect("an observation")
}

fn each(observation: &Observation, mut take: impl FnMut(Instant, &[Option<i64>])) {
    for (sample, at) in observation.times.iter().enumerate() {
        let row: Vec<_> = observation.columns.iter().map(|column| column.get(sample)).collect();
        take(*at, &row);
    }
}

fn snapshot(text: &str) -> Observation {
    let whole = observation(&[text]);
    let mut newest = Newest::new(&whole.header);
    each(&whole, |at, row| newest.sample(at, row));
    newest.into_observation()
}

fn of_pair(pair: &Pair) -> Between {
    let mut stretch = Stretch::new(&pair.contents, pair.from, Instant::FAR);
    pair.rows.iter().for_each(|(at, row)| stretch.sample(*at, row));
    stretch.finish(&pair.contents).expect("samples")
}

fn difference(before: &str, after: &str) -> (Pair, Between) {
    let pair = Pair::new(&snapshot(before), &snapshot(after), None).expect("a pair");
    let between = of_pair(&pair);
    (pair, between)
}

fn stretch(observation: &Observation, from: u64, until: u64) -> Option<Between> {
    let second = |n| Instant::ZERO + Span::from_secs(n);
    let contents = observation.contents();
    let mut stretch = Stretch::new(contents, second(from), second(until));
    each(observation, |at, row| stretch.sample(at, row));
    stretch.finish(contents)
}

#[track_caller]
fn file<'a>(between: &'a Between, name: &str) -> &'a Did {
    between.io.iter().find(|did| did.who.name() == name).expect("a file")
}

/// Computed by hand: 40,000 reads of 8 KiB with 2,000 s latency, 1,997 s of it queued, and 8,900
/// writes of 16 KiB with 1,800 s, 4 s of it not queued.
#[track_caller]
fn is_by_hand(between: &Between) {
    let data = file(between, "data");
    let load = data.load.expect("a load");
    assert_eq!((data.seconds, data.size), (100.0, Some(107_374_182_400.0)));
    assert_eq!(
        (load.reads, load.writes, load.operations),
        (Some(40_000.0), Some(8_900.0), Some(48_900.0))
    );
    assert_eq!((load.iops(), load.read_bytes), (Some(489.0), Some(327_680_000.0)));
    assert_eq!(load.write_bytes, Some(145_817_600.0));
    let per = |ns: Option<f64>, of: f64| ns.map(|ns| ns / of / 1e6);
    assert_eq!(
        (per(load.read_ns, 40_000.0), per(load.read_io_ns, 40_000.0)),
        (Some(2000.0), Some(3.0))
    );
    assert_eq!(
        (per(load.write_ns, 8_900.0), per(load.write_io_ns, 8_900.0)),
        (Some(1800.0), Some(4.0))
    );
    let log = file(between, "log");
    let load = log.load.expect("a load");
    assert_eq!((load.reads, load.read_ns, load.writes), (Some(0.0), Some(0.0), Some(500.0)));
    assert_eq!((load.write_ns, log.size), (Some(1.5e9), Some(2_147_483_648.0)));
    let wait = |at: usize| between.waits[at].wait.expect("a wait");
    assert_eq!(between.waits[0].who.name(), "PAGEIOLATCH_SH");
    assert_eq!(
        (wait(0).tasks, wait(0).ms, wait(0).signal_ms),
        (Some(40_000.0), Some(8e7), Some(400.0))
    );
    // The longest WRITELOG wait may be older.
    assert_eq!((between.waits[0].max_ms, between.waits[1].max_ms), (Some(4500.0), None));
    assert_eq!((wait(1).tasks, wait(1).ms), (Some(500.0), Some(1500.0)));
}

#[test]
fn two_snapshots_or_two_times_of_one_observation_are_the_same() {
    let (pair, between) = difference(BEFORE, AFTER);
    is_by_hand(&between);
    assert_eq!(pair.apart, Some(Span::from_secs(100)));
    assert_eq!((&pair.only, &pair.stale, &pair.rates), (&Default::default(), &vec![], &vec![]));
    let whole = observation(&[BEFORE, AFTER]);
    let between = stretch(&whole, 0, 100).expect("samples");
    is_by_hand(&between);
    assert_eq!((between.from, between.to), (whole.times[0], whole.times[1]));
    // There is no newer sample at the second time.
    assert!(stretch(&whole, 0, 99).is_none());
}

#[test]
fn a_stretch_begins_with_the_newest_common_sample() {
    let more = "collection_time,wait_type,waiting_tasks_count,wait_time_ms\n\
                2026-11-22 10:00:50,WRITELOG,1400,3400\n";
    let whole = observation(&[BEFORE, more, AFTER]);
    let between = stretch(&whole, 60, 100).expect("samples");
    let log = &between.waits.iter().find(|own| own.who.name() == "WRITELOG").expect("a wait");
    assert_eq!((log.seconds, log.wait.and_then(|wait| wait.tasks)), (50.0, Some(100.0)));
    assert_eq!((file(&between, "data").seconds, between.from), (100.0, whole.times[1]));
}

#[test]
fn a_reset_counter_excludes_its_server() {
    // The data file's counters went back, so the server restarted. Those of the log have grown
    // past their old values since.
    let restarted = AFTER.replace("ROWS,41000", "ROWS,900");
    let (_, between) = difference(BEFORE, &restarted);
    assert!(between.io.iter().all(|did| did.load.is_none() && did.seconds < 1e-9));
    assert!(between.waits.iter().all(|own| own.wait.is_none() && own.max_ms.is_none()));
    let back: Vec<_> = between.restarts.iter().map(|(who, n)| (who.name(), *n)).collect();
    assert_eq!(back, [("data", 1)]);
    // Waits alone can be reset on request; files go on.
    let (_, between) = difference(BEFORE, &AFTER.replace("WRITELOG,1500", "WRITELOG,15"));
    assert!(between.waits.iter().all(|own| own.wait.is_none()));
    assert_eq!(file(&between, "data").load.and_then(|load| load.iops()), Some(489.0));
}

#[test]
fn only_the_step_with_the_restart_is_left_out() {
    let restarted = AFTER.replace("10:01:40", "10:00:30").replace("ROWS,41000", "ROWS,900");
    let later = AFTER
        .replace("10:01:40", "10:00:40")
        .replace("ROWS,41000", "ROWS,1000")
        .replace("LOG,7,57344,14,0,2500", "LOG,7,57344,14,0,2510");
    let whole = observation(&[BEFORE, &restarted, &later]);
    let between = stretch(&whole, 0, 100).expect("samples");
    let (data, log) = (file(&between, "data"), file(&between, "log"));
    assert_eq!((data.seconds, data.load.and_then(|load| load.reads)), (10.0, Some(100.0)));
    assert_eq!((log.seconds, log.load.and_then(|load| load.writes)), (10.0, Some(10.0)));
}

#[test]
fn unmatched_entities_and_those_without_counters_are_reported() {
    let before = BEFORE.replace("tpcc,log", "tpcc,old_log").replace("WRITELOG", "LCK_M_X");
    let (pair, between) = difference(&before, AFTER);
    let names = |which: usize| -> Vec<(&str, Option<f64>)> {
        pair.only[which].iter().map(|(who, ms)| (who.name(), *ms)).collect()
    };
    assert_eq!(names(0), [("old_log", None), ("LCK_M_X", Some(2000.0))]);
    assert_eq!(names(1), [("log", None), ("WRITELOG", Some(3500.0))]);
    assert_eq!((between.io.len(), between.waits.len()), (1, 1));
    let rates = "collection_time,wait_type,WaitTimesPerMinute\n";
    let (one, two) = (
        format!("{rates}2026-11-22 10:00:00,WRITELOG,1.5\n"),
        format!("{rates}2026-11-22 10:01:00,WRITELOG,2.5\n"),
    );
    let pair = Pair::new(&snapshot(&one), &snapshot(&two), None).expect("a pair");
    assert!(!pair.has_any());
}

#[test]
fn values_missing_from_a_snapshot_are_unknown() {
    let before = BEFORE.replace("1000,8192000,5000,1000,", "1000,8192000,,,");
    let (_, between) = difference(&before, AFTER);
    let load = file(&between, "data").load.expect("a load");
    assert_eq!(
        (load.reads, load.read_ns, load.read_io_ns, load.ns),
        (Some(40_000.0), None, None, None)
    );
    assert_eq!(load.write_io_ns, Some(8_900.0 * 4e6));
}

#[test]
fn snapshots_that_cannot_be_compared() {
    let (before, after) = (snapshot(BEFORE), snapshot(AFTER));
    let check = |a: &Observation, b: &Observation, apart, expect: PairError| {
        assert_eq!(Pair::new(a, b, apart).expect_err("refused"), expect);
    };
    let apart = Span::from_secs(100);
    check(&after, &before, None, PairError::WrongWay { by: apart });
    check(&after, &after, None, PairError::NoLength);
    check(&before, &after, Some(apart), PairError::Apart { apart });
    // Without times, order and distance are unknown.
    let without = |own: &Observation| {
        let mut own = own.clone();
        own.header.start_unix_ns = None;
        own
    };
    let pair = Pair::new(&without(&before), &without(&after), None).expect("a pair");
    assert_eq!(pair.apart, None);
    assert_eq!(file(&of_pair(&pair), "data").load.and_then(|load| load.reads), Some(40_000.0));
    let pair = Pair::new(&without(&before), &without(&after), Some(apart)).expect("a pair");
    is_by_hand(&of_pair(&pair));
}
