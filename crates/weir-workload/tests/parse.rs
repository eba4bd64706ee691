//! Job files in, typed jobs or a message out.

mod common;

use common::parse;
use std::collections::HashMap;
use std::io;
use weir_units::{Bytes, BytesPerSec, Iops, Span};
use weir_workload::job::{
    Blocks, Distribution, Extent, Ignored, Mix, Order, PerOp, Rate, Submit, Target, Think,
    ThinkCount, Zone,
};
use weir_workload::{FioError, Isolated, JobSpec, Source, fio};

/// Variables and files that a test provides.
#[derive(Default)]
struct Given {
    env: HashMap<&'static str, &'static str>,
    files: HashMap<&'static str, &'static str>,
}

impl Source for Given {
    fn env(&self, name: &str) -> Option<String> {
        self.env.get(name).map(ToString::to_string)
    }

    fn include(&self, _: &str, name: &str) -> io::Result<String> {
        self.files.get(name).map(ToString::to_string).ok_or(io::ErrorKind::NotFound.into())
    }
}

/// Returns the only job of a file with these lines in its section.
#[track_caller]
fn job(lines: &str) -> JobSpec {
    parse(&format!("[job]\n{lines}\n")).jobs.remove(0)
}

/// Expects this message for a file.
#[track_caller]
fn check_error(text: &str, expect: &str) {
    match fio::parse("bad.fio", text, &Isolated) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => assert_eq!(error.to_string(), expect),
    }
}

/// Expects this message for a line, on line 3 of a job.
#[track_caller]
fn check_line(line: &str, expect: &str) {
    check_error(&format!("[job]\nsize=1g\n{line}\n"), &format!("bad.fio:3: {expect}"));
}

const fn bytes(n: u64) -> Extent {
    Extent::Bytes(Bytes::new(n))
}

#[test]
fn the_three_article_shapes() {
    let write = parse(include_str!("fixtures/max-write.fio"));
    assert_eq!(
        write.jobs.iter().map(|j| j.name.as_str()).collect::<Vec<_>>(),
        ["writer1", "writer2"]
    );
    let writer = &write.jobs[1];
    assert_eq!((writer.mix, writer.order), (Mix::Write, Order::Random { every: 1 }));
    assert_eq!(writer.size, Some(bytes(30 << 30)));
    assert_eq!((writer.depth, writer.effective_depth()), (256, 256));
    assert_eq!(writer.blocks, PerOp::all(Blocks::Fixed(8192)));
    assert_eq!(writer.target, Target::Directory(vec!["/mnt/nocache".to_owned()]));
    assert!(writer.direct && writer.random_map && !writer.time_based);
    assert_eq!(writer.runtime, None);
    assert_eq!(write.ignored, []);

    let read = parse(include_str!("fixtures/max-read.fio"));
    assert!(read.jobs.iter().all(|job| job.mix == Mix::Read));

    let both = parse(include_str!("fixtures/max-combined.fio"));
    assert_eq!(both.jobs[0].rate, PerOp::default());
    assert_eq!(both.jobs[1].rate.write, Iops::new(12_500).map(Rate::Iops));
    assert_eq!(both.jobs.iter().map(|j| (j.wave, j.group)).collect::<Vec<_>>(), [(0, 0), (0, 0)]);
}

#[test]
fn jobs_inherit_the_globals_so_far_and_override_them() {
    let file = parse(include_str!("fixtures/oltp.fio"));
    let [readers, log, scan] = file.jobs.as_slice() else { panic!("{} jobs", file.jobs.len()) };
    assert_eq!(readers.runtime, Some(Span::from_secs(120)));
    assert_eq!(log.runtime, Some(Span::from_secs(30)), "a later global overrides an earlier one");
    assert_eq!(readers.target, Target::Files(vec!["/dev/sdd".to_owned(), "/dev/sde".to_owned()]));
    assert_eq!(log.target, Target::Files(vec!["/dev/sdf".to_owned()]));
    assert_eq!((readers.wave, log.wave, scan.wave), (0, 0, 1));
    assert_eq!((readers.group, log.group, scan.group), (0, 1, 2));
    assert_eq!(scan.ramp_time, Span::from_secs(10));

    assert_eq!((readers.mix, readers.order), (Mix::ReadWrite, Order::Random { every: 4 }));
    assert_eq!((readers.read_percent, readers.clones), (70, 4));
    let split = Blocks::Split(vec![(8192, 70), (65_536, 30)]);
    assert_eq!(readers.blocks.read, split);
    assert_eq!(readers.blocks.write, Blocks::Fixed(8192));
    let zone = |access, percent| Zone { access, size: Extent::Percent(percent) };
    let zones = vec![zone(60, 10), zone(30, 20), zone(10, 70)];
    assert_eq!(readers.distribution, Distribution::Zoned(PerOp::all(zones)));
    assert!(!readers.random_map, "a distribution other than random has no map");
    assert_eq!(readers.offset_increment, bytes(1 << 30));
    assert_eq!(readers.start_delay, Span::from_millis(500));
    assert_eq!(readers.size, Some(Extent::Percent(50)));

    assert_eq!(log.order, Order::Sequential { gap: 8192 });
    assert_eq!(
        (log.blocks.read.clone(), log.blocks.write.clone()),
        (Blocks::Fixed(4096), Blocks::Fixed(61_440))
    );
    assert_eq!((log.data_sync, log.fsync, log.fdatasync), (true, 32, 8));
    assert_eq!((log.rate.read, log.rate.write), (None, BytesPerSec::new(4 << 20).map(Rate::Bytes)));
    let think = Think { time: Span::from_micros(250), blocks: 4, count: ThinkCount::Completed };
    assert_eq!(log.think, Some(think));

    assert_eq!(scan.blocks.read, Blocks::Range { min: 65_536, max: 262_144 });
    assert_eq!((scan.offset, scan.io_size), (Extent::Percent(10), Some(bytes(1 << 30))));
    assert_eq!((scan.number_ios, scan.loops), (Some(1000), 3));
    assert_eq!(scan.percent_random, PerOp::all(20));

    let ignored: Vec<_> = file.ignored.iter().map(|i| (i.option, i.at.line)).collect();
    assert_eq!(ignored, [("thread", 5), ("percentile_list", 13)]);
}

#[test]
fn every_kind_of_job() {
    let file = parse(include_str!("fixtures/every-kind.fio"));
    let job = |name| file.jobs.iter().find(|job| job.name == name).unwrap();
    assert_eq!(job("trims").mix, Mix::Trim);
    assert_eq!(job("trims").align.trim, Some(Bytes::kib(4)));
    assert!(!job("trims").random_map, "an alignment of its own turns the map off");
    assert_eq!(job("trimwrites").mix, Mix::TrimWrite);
    assert_eq!(job("zipf").distribution, Distribution::Zipf { theta: 1.2 });
    assert_eq!(job("pareto").distribution, Distribution::Pareto { h: 0.3 });
    assert_eq!(job("normal").distribution, Distribution::Normal { deviation: 10.0 });
    let zone = |access, mib| Zone { access, size: Extent::Bytes(Bytes::mib(mib)) };
    let zones = PerOp::all(vec![zone(90, 4), zone(10, 60)]);
    assert_eq!(job("zones").distribution, Distribution::Zoned(zones));
    assert_eq!((job("synchronous").depth, job("synchronous").effective_depth()), (64, 1));
    assert!(job("synchronous").end_fsync);
    assert_eq!(job("offload").submit, Submit::Offload);
    assert_eq!(job("si").blocks.read, Blocks::Fixed(4096));
    assert_eq!(job("si").size, Some(bytes(64 << 20)), "read before kb_base was set");
}

#[test]
fn fios_defaults() {
    let job = job("size=1m");
    assert_eq!((job.mix, job.order), (Mix::Read, Order::Sequential { gap: 0 }));
    assert_eq!(job.blocks, PerOp::all(Blocks::Fixed(4096)));
    assert_eq!((job.engine.name, job.effective_depth()), ("psync", 1));
    assert_eq!((job.clones, job.loops, job.read_percent), (1, 1, 50));
    assert_eq!((job.io_size, job.runtime, job.think), (None, None, None));
    assert_eq!((job.target.clone(), job.submit), (Target::Unnamed, Submit::Inline));
    assert!(!job.direct && job.random_map && job.rand_repeat && !job.group_reporting);
}

#[test]
fn each_option_alone() {
    assert_eq!(job("readwrite=randtrimwrite").mix, Mix::TrimWrite);
    assert_eq!(job("rw=rw").mix, Mix::ReadWrite);
    assert_eq!(job("rw=readwrite").order, Order::Sequential { gap: 0 });
    assert_eq!(job("rwmixread=100").read_percent, 100);
    assert_eq!(job("blocksize=1m").blocks.read, Blocks::Fixed(1 << 20));
    assert_eq!(job("bs=,8k").blocks.read, Blocks::Fixed(4096));
    assert_eq!(job("bs=,8k").blocks.write, Blocks::Fixed(8192));
    assert_eq!(job("bsrange=4k:1k").blocks.trim, Blocks::Range { min: 1024, max: 4096 });
    let split = |sizes: &[(u32, u8)]| Blocks::Split(sizes.to_vec());
    assert_eq!(job("bssplit=4k/30:8k").blocks.read, split(&[(4096, 30), (8192, 70)]));
    assert_eq!(
        job("bssplit=4k:8k:16k").blocks.read,
        split(&[(4096, 33), (8192, 33), (16_384, 34)])
    );
    assert_eq!(job("bssplit=4k/100:8k/0").blocks.read, Blocks::Fixed(4096));
    assert_eq!(job("bsrange=4k-4k").blocks.read, Blocks::Fixed(4096));
    assert_eq!(job("bsrange=1k-2k\nbs=16k").blocks.read, Blocks::Range { min: 1024, max: 2048 });
    assert!(!job("norandommap").random_map);
    assert!(job("norandommap=0").random_map);
    assert_eq!(job("randseed=7").seed, Some(7));
    assert!(!job("randrepeat=0").rand_repeat);
    assert!(job("buffered=0").direct);
    assert!(!job("direct=1\nbuffered=1").direct);
    assert_eq!(
        job("filename=/dev/sda:a\\:b").target,
        Target::Files(vec!["/dev/sda".into(), "a:b".into()])
    );
    assert_eq!(
        job("directory=/d\nfilename=a:b").target,
        Target::Files(vec!["/d/a".into(), "/d/b".into()])
    );
    assert_eq!(job("io_limit=1g").io_size, Some(bytes(1 << 30)));
    assert_eq!(job("fileoffset=4k").offset, bytes(4096));
    assert_eq!(job("timeout=5").runtime, Some(Span::from_secs(5)));
    assert_eq!(job("runtime=0").runtime, None);
    assert!(job("time_based=1").time_based);
    assert!(!job("time_based=0").time_based);
    assert_eq!(job("loops=0").loops, 1);
    assert_eq!(job("number_ios=0").number_ios, None);
    assert_eq!(job("rate_iops=0").rate, PerOp::default());
    assert_eq!(job("rate=1m").rate, PerOp::all(BytesPerSec::new(1 << 20).map(Rate::Bytes)));
    assert_eq!(
        job("thinktime=1ms\nthinktime_blocks_type=issue").think.unwrap().count,
        ThinkCount::Issued
    );
    assert_eq!(job("thinktime_blocks=8").think, None);
    assert!(job("sync=1").data_sync);
    assert!(!job("sync=none").data_sync);
    assert!(job("fsync_on_close=1").end_fsync);
    assert!(job("group_reporting").group_reporting);
    assert_eq!(job("name=other").name, "other");
    assert_eq!(job("ioengine=nbd\nuri=nbd://localhost\niodepth=8").effective_depth(), 8);
    assert_eq!(job("ioengine=sync\niodepth=8").effective_depth(), 1);
    assert_eq!(job("random_distribution=random").distribution, Distribution::Uniform);
    assert_eq!(job("random_distribution=zipf").distribution, Distribution::Zipf { theta: 1.1 });
    assert_eq!(job("bs = 8k".replace(" = ", " =").as_str()).blocks.read, Blocks::Fixed(8192));
}

#[test]
fn options_without_meaning_are_listed_once_each() {
    let file =
        parse("[global]\nthread\n[a]\nthread=1\ninvalidate=1\nverify=0\n[b]\ninvalidate=0\n");
    let ignored: Vec<_> = file.ignored.iter().map(|i| (i.option, i.at.to_string())).collect();
    assert_eq!(ignored, [("thread", "test.fio:2".into()), ("invalidate", "test.fio:5".into())]);
}

#[test]
fn time_based_without_a_runtime_is_listed_as_ignored() {
    let check = |text: &str, expect: &[&str]| {
        let said = |i: &Ignored| format!("{}: {}: {}", i.at, i.option, i.why);
        assert_eq!(parse(text).ignored.iter().map(said).collect::<Vec<_>>(), expect);
    };
    let why = "it needs a runtime, as in fio; the job ends when its size is done";
    check(
        "[a]\nsize=1m\ntime_based\n[b]\ntime_based\n",
        &[&format!("test.fio:3: time_based: {why}")],
    );
    check("[global]\ntime_based\n[a]\nruntime=0\n", &[&format!("test.fio:2: time_based: {why}")]);
    check("[global]\ntime_based\n[a]\nruntime=1\n[b]\ntime_based=0\n", &[]);
    let scaled = parse("[a]\nthread\ntime_based\n").scale(None, Some(Span::from_secs(3)));
    assert_eq!(scaled.ignored.iter().map(|i| i.option).collect::<Vec<_>>(), ["thread"]);
    assert!(scaled.jobs[0].time_based);
}

#[test]
fn the_range_of_a_clone_in_its_file() {
    let check = |options: &str, (clone, file), expect| {
        let range = job(options).range(clone, file, 1 << 20);
        assert_eq!(range, expect, "{options}");
    };
    let one = (0, 1);
    check("bs=4k", (0, one), (0, 1 << 20));
    check("bs=4k\noffset=64k", (0, one), (65_536, (1 << 20) - 65_536));
    check("bs=4k\nsize=64k\noffset_increment=64k", (3, one), (196_608, 65_536));
    // Shares are whole blocks, the start rounded up, the length down.
    check("bs=64k\noffset=10%\nsize=33%", (0, one), (131_072, 327_680));
    check("bs=4k\nsize=12k", (0, (0, 2)), (0, 6_144));
    check("bs=1k\nsize=3001", (0, (0, 2)), (0, 1_500));
    check("bs=1\nsize=3001", (0, (0, 2)), (0, 1_501));
    // A range that does not fit is an error of the placement.
    check("bs=4k\noffset=1m\nsize=1m", (0, one), (1 << 20, 1 << 20));
}

#[test]
fn comments_blanks_and_line_ends_are_as_in_fio() {
    let file = parse("\u{feff}; a comment\r\n\r\n  [a] # of five\r\n\tbs=8k ; bytes\r\n# end\r\n");
    assert_eq!((file.jobs[0].name.as_str(), file.jobs[0].at.line), ("a", 3));
    assert_eq!(file.jobs[0].blocks.read, Blocks::Fixed(8192));
}

#[test]
fn stonewall_in_a_global_section_runs_jobs_one_by_one() {
    let file = parse("[global]\nstonewall\n[a]\n[b]\n[c]\nstonewall=0\n");
    assert_eq!(file.jobs.iter().map(|job| job.wave).collect::<Vec<_>>(), [0, 1, 1]);
}

#[test]
fn a_second_file_waits_for_the_first() {
    let first = parse("[a]\n[b]\nstonewall\nthread\n");
    let both = first.then(parse("[c]\n[d]\nstonewall\nthread\n"));
    assert_eq!(both.jobs.iter().map(|job| job.wave).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(both.jobs.iter().map(|job| job.group).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(both.ignored.len(), 1);
}

#[test]
fn scaling_sets_size_and_runtime_of_every_job() {
    let file = parse(include_str!("fixtures/max-write.fio"));
    let scaled = file.clone().scale(Some(Bytes::gib(1)), Some(Span::from_secs(3)));
    assert!(scaled.jobs.iter().all(|job| job.size == Some(bytes(1 << 30))));
    assert!(scaled.jobs.iter().all(|job| job.runtime == Some(Span::from_secs(3))));
    assert_eq!(file.clone().scale(None, None), file);
}

#[test]
fn includes_and_variables() {
    let given = Given {
        env: HashMap::from([("WEIR_TEST_BS", "16k"), ("WEIR_TEST_NAME", "x")]),
        files: HashMap::from([("common.inc", include_str!("fixtures/common.inc"))]),
    };
    let file = fio::parse("a.fio", include_str!("fixtures/including.fio"), &given).unwrap();
    assert_eq!(file.jobs[0].blocks.read, Blocks::Fixed(16_384));
    assert_eq!(file.jobs[0].engine.name, "libaio");
    assert_eq!(file.jobs[0].name, "from-x-set");
    // An unset variable is empty, as in fio; only an empty value is rejected.
    let file = fio::parse("a.fio", "[j]\nbs=${NO}4k\n", &given).unwrap();
    assert_eq!(file.jobs[0].blocks.read, Blocks::Fixed(4096));
}

#[test]
fn faults_of_includes() {
    let message = |text: &str, files: &[(&'static str, &'static str)]| {
        let given = Given { files: files.iter().copied().collect(), ..Given::default() };
        fio::parse("a.fio", text, &given).unwrap_err().to_string()
    };
    assert_eq!(
        message("[j]\ninclude no.inc\n", &[]),
        "a.fio:2: cannot include \"no.inc\": entity not found"
    );
    assert_eq!(
        message("[j]\ninclude s.inc\n", &[("s.inc", "bs=4k\n[other]\n")]),
        "s.inc:2: an included file cannot start a section (\"[other]\"); move it to the job file"
    );
    assert_eq!(
        message("[j]\ninclude b.inc\n", &[("b.inc", "bs=4k\niodepth=zero\n")]),
        "b.inc:2: iodepth=zero: \"zero\" is not a whole number"
    );
    assert_eq!(
        message("[j]\ninclude l.inc\n", &[("l.inc", "include l.inc\n")]),
        "l.inc:1: \"l.inc\" is included more than 16 levels deep; does it include itself?"
    );
}

#[test]
fn faults_of_the_structure() {
    check_error(
        "bs=4k\n[a]\n",
        "bad.fio:1: \"bs=4k\" stands outside of a section; put it under [global] or a [job name]",
    );
    check_error("[a\n", "bad.fio:1: \"[a\" is not a section; write [name] alone on its line");
    check_error("[a]\n[]\n", "bad.fio:2: \"[]\" is not a section; write [name] alone on its line");
    check_error("# nothing\n", "bad.fio: no job in this file; add a [job name] section");
    check_error("[global]\nbs=4k\n", "bad.fio: no job in this file; add a [job name] section");
}

#[test]
fn unknown_options_and_words() {
    check_line("iodepht=3", "unknown option \"iodepht\"; did you mean \"iodepth\"?");
    check_line("colour=blue", "unknown option \"colour\"");
    check_line(
        "rw=randraed",
        "rw=randraed: must be one of read, write, trim, randread, randwrite, randtrim, rw, \
         readwrite, randrw, trimwrite, randtrimwrite; did you mean \"randread\"?",
    );
    check_line(
        "ioengine=cpuio",
        "ioengine=cpuio: I/O engine not supported; use libaio, io_uring, posixaio, windowsaio, \
         nbd, sync, psync, vsync, pvsync, pvsync2",
    );
    check_line(
        "random_distribution=sequence:2,0,1",
        "random_distribution=sequence:2,0,1: must be one of random, zipf, pareto, normal, zoned, \
         zoned_abs",
    );
    check_line("sync=yes", "sync=yes: must be one of none, sync, dsync, 0, 1");
    check_line("kb_base=1023", "kb_base=1023: must be one of 1024, 1000; did you mean \"1024\"?");
}

#[test]
fn options_that_change_the_io_and_are_not_modelled() {
    let check = |line: &str, why: &str| {
        check_line(line, &format!("option \"{line}\" is not supported and changes the I/O: {why}"));
    };
    check("verify=crc32c", "it reads back what was written");
    check("latency_target=500000", "it adapts the load to measured latency");
    check("rate_min=1m", "it ends the job when it is too slow");
    check("flow=8", "it balances jobs against each other");
    check("iodepth_batch=16", "it submits or reaps I/O in batches");
    check("iodepth_batch_complete=8", "it submits or reaps I/O in batches");
    check("exec_prerun=true", "it runs a program before the job");
    check("read_iolog=trace", "it replays a trace instead of the job");
    check("zonemode=zbd", "it works zone by zone");
    check("nrfiles=8", "it spreads the job over files in its own way");
    check("exitall", "it ends other jobs early");
    check("wait_for=other", "it waits for another job by name; use stonewall");
    check("steadystate=iops:2%", "it ends the job when its speed is steady");
}

#[test]
fn values_that_options_cannot_have() {
    check_line("iodepth=0", "iodepth=0: iodepth is 1 to 65536");
    check_line("numjobs=1m", "numjobs=1m: numjobs is 1 to 65536");
    check_line("bs=0", "bs=0: a block is 1 byte to 1073741824 bytes");
    check_line("bs=2g", "bs=2g: a block is 1 byte to 1073741824 bytes");
    check_line("bs=", "bs=: a value is missing");
    check_line("bs", "bs=: a value is missing");
    check_line("bs= 8k", "bs=8k: remove the blank after '=': fio misreads or refuses such a value");
    check_line(
        "bs=8q",
        "bs=8q: unknown unit \"q\"; use k, m, g, t, p, or KiB, MiB, ... as fio's kb_base defines them",
    );
    check_line("bs=1,2,3,4", "bs=1,2,3,4: takes at most three values: read,write,trim");
    check_line("bsrange=4k", "bsrange=4k: a range is written MIN-MAX, for example 1k-4k");
    check_line("bssplit=4k/50:8k/40", "bssplit=4k/50:8k/40: the percentages add up to 90, not 100");
    check_line(
        "bssplit=4k/50:8k/60",
        "bssplit=4k/50:8k/60: the percentages add up to 110, not 100",
    );
    check_line("size=101%", "size=101%: must be 0 to 100");
    check_line("size=lots", "size=lots: \"lots\" is not a whole number");
    check_line(
        "runtime=30sec",
        "runtime=30sec: unknown time unit \"sec\", which fio reads as microseconds; use us, ms, s, m, h or d",
    );
    check_line("rwmixread=110", "rwmixread=110: must be 0 to 100");
    check_line("direct=2", "direct=2: must be 0 or 1");
    check_line("direct", "direct=: a value is missing");
    check_line(
        "startdelay=5-10",
        "startdelay=5-10: unknown time unit \"-10\", which fio reads as microseconds; use us, ms, s, m, h or d",
    );
    check_line("bs=(4*1024)", "bs=(4*1024): write the result instead of an expression");
    check_line(
        "random_distribution=zipf:1",
        "random_distribution=zipf:1: theta must be more than 0 and not 1",
    );
    check_line(
        "random_distribution=pareto:1",
        "random_distribution=pareto:1: h must be between 0 and 1",
    );
    check_line(
        "random_distribution=normal:100",
        "random_distribution=normal:100: the deviation must be 0 to less than 100",
    );
    check_line(
        "random_distribution=zipf:x",
        "random_distribution=zipf:x: the parameter is not a number",
    );
    check_line(
        "random_distribution=zipf:1.2:0.5",
        "random_distribution=zipf:1.2:0.5: a centre of the distribution is not supported",
    );
    check_line(
        "random_distribution=zoned:60/10:30/20",
        "random_distribution=zoned:60/10:30/20: the percentages add up to 90, not 100",
    );
    check_line(
        "random_distribution=zoned:60/50:40/60",
        "random_distribution=zoned:60/50:40/60: the sizes of the zones add up to 110 %, more than 100",
    );
    check_line("rate=9999999p", "rate=9999999p: is too large");
    check_line("rate_iops=8g", "rate_iops=8g: must be 0 to 4294967296");
}

#[test]
fn templates_that_were_not_filled_in() {
    check_line(
        "filename=${FILENAME}",
        "filename=${FILENAME}: the environment variable FILENAME is not set",
    );
    check_line(
        "size={{ size }}",
        "size={{ size }}: this is a placeholder of a template; fill it in first",
    );
    check_line("size=<size>", "size=<size>: this is a placeholder of a template; fill it in first");
    check_line(
        "runtime=$(duration)",
        "runtime=$(duration): this is a placeholder of a template; fill it in first",
    );
    check_line("bs=${BS", "bs=${BS: a ${...} is not closed");
    check_line("numjobs=$ncpus", "numjobs=$ncpus: $ncpus depends on the machine; write the number");
}

#[test]
fn options_that_exclude_each_other() {
    check_error(
        "[global]\nrate=1m\n[j]\nsize=1m\nrate_iops=10\n",
        "bad.fio:5: job \"j\": rate and rate_iops exclude each other; keep one",
    );
    check_error(
        "[j]\nsize=4k\nbs=8k\n",
        "bad.fio:3: job \"j\": size is smaller than the smallest block",
    );
}

#[test]
fn errors_can_be_matched() {
    let error = fio::parse("a", "[j]\nverify=md5\n", &Isolated).unwrap_err();
    assert!(matches!(error, FioError::Unsupported { option: "verify", at, .. } if at.line == 2));
}
