//! The random map of I/Os that differ in size: against its definition, and against fio itself.

#![expect(clippy::print_stdout, reason = "what is skipped is said aloud")]

mod common;

use common::{GIB, Run};
use proptest::prelude::*;
use std::process::Command;
use weir_units::{Instant, Span};
use weir_workload::Op;

const FAST: Span = Span::from_micros(100);

/// Returns I/Os and bytes of a job of `lines`, run to its end.
fn count(lines: &str) -> (u64, u64) {
    let run = Run::from_text(&format!("[job]\nioengine=libaio\n{lines}\n"), GIB, FAST);
    let bytes = run.log.iter().map(|(_, issue)| u64::from(issue.len)).sum();
    (run.log.len() as u64, bytes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_pass_of_mixed_sizes_touches_each_byte_once(
        blocks in 16_u64..3_000,
        shares in (1_u32..60, 1_u32..30),
        kind in prop::sample::select(vec!["randread", "randwrite", "randrw", "randtrim"]),
        depth in 1_u32..64,
    ) {
        let (small, middle) = shares;
        let large = 100 - small - middle;
        let text = format!(
            "[job]\nioengine=libaio\nrw={kind}\nsize={}\niodepth={depth}\n\
             bssplit=4k/{small}:8k/{middle}:64k/{large}\n",
            blocks * 4096
        );
        let run = Run::from_text(&text, GIB, FAST);
        let mut touched: Vec<u64> = Vec::new();
        for (_, issue) in &run.log {
            prop_assert!(issue.len > 0 && issue.len.is_multiple_of(4096));
            touched.extend((0..u64::from(issue.len) / 4096).map(|n| issue.offset / 4096 + n));
        }
        touched.sort_unstable();
        prop_assert_eq!(touched, (0..blocks).collect::<Vec<_>>());
    }
}

#[test]
fn without_the_map_no_io_is_cut() {
    let (ios, bytes) = count("rw=randread\nsize=64m\nbssplit=4k/60:64k/40\nnorandommap");
    let mean = bytes / ios;
    // 0.6 x 4 KiB + 0.4 x 64 KiB = 28,672 bytes, of 2,300 I/Os within four standard errors.
    assert!(mean.abs_diff(28_672) < 2_450, "{mean}");
    // Bytes end the job.
    assert!((64 << 20..(64 << 20) + 65_536).contains(&bytes), "{bytes}");
}

#[test]
fn without_a_map_lengths_are_the_stated_ones() {
    for lines in ["random_generator=lfsr", "random_distribution=zipf:0.5", "ba=512"] {
        let text = format!("rw=randread\nsize=256m\nbssplit=4k/50:64k/50\n{lines}");
        let run = Run::from_text(&format!("[job]\nioengine=libaio\n{text}\n"), GIB, FAST);
        let of = |len| run.log.iter().filter(|(_, issue)| issue.len == len).count();
        assert_eq!(of(4096) + of(65_536), run.log.len(), "{lines}");
        assert!((45..=55).contains(&(of(4096) * 100 / run.log.len())), "{lines}");
    }
}

/// fio's log of such a job has only offset 0, and with `ba=128k` the job does nothing.
#[test]
fn a_random_offset_has_room_for_a_whole_step() {
    let text = "[j]\nrw=randread\nbs=4k\nsize=100k\nio_size=400k\n";
    let run = Run::from_text(&format!("{text}ba=64k\n"), GIB, FAST);
    assert_eq!(run.log.len(), 100);
    assert!(run.log.iter().all(|(_, issue)| issue.offset == 0));
    let placed = common::place(&common::parse(&format!("{text}ba=128k\n")), GIB);
    let error = weir_workload::Workload::new(placed, 1).unwrap_err().to_string();
    assert!(error.ends_with("not one block of 128 KiB fits into its range of 100 KiB"), "{error}");
}

#[test]
fn lfsr_draws_no_block_twice_even_without_a_map() {
    let text = "[job]\nrw=randread\nsize=4m\nrandom_generator=lfsr\nnorandommap\n";
    let run = Run::from_text(text, GIB, FAST);
    let mut offsets: Vec<u64> = run.log.iter().map(|(_, issue)| issue.offset).collect();
    offsets.sort_unstable();
    assert_eq!(offsets, (0..1024).map(|n| n * 4096).collect::<Vec<_>>());
}

#[test]
fn lfsr_is_rejected_where_fio_leaves_the_file() {
    let check = |lines: &str, expect: &str| {
        let text = format!("[j]\nrw=randrw\nsize=1m\nrandom_generator=lfsr\n{lines}\n");
        let parsed = weir_workload::fio::parse("a.fio", &text, &weir_workload::Isolated);
        match parsed {
            Ok(_) => assert_eq!("accepted", expect, "{lines}"),
            Err(error) => assert_eq!(error.to_string(), expect),
        }
    };
    check(
        "bs=4k,16k",
        "a.fio:5: job \"j\": random_generator=lfsr needs the same smallest block for reads, writes \
         and trims",
    );
    check(
        "ba=8k",
        "a.fio:5: job \"j\": random_generator=lfsr does not go with an alignment (ba) of its own; \
         leave one of them out",
    );
    check(
        "random_distribution=zoned:50/10:50/90",
        "a.fio:5: job \"j\": random_generator=lfsr does not keep to zones; leave one of them out",
    );
    check("random_distribution=zipf:0.9\nbs=4k,16k", "accepted");
    check("bssplit=4k/50:64k/50", "accepted");
}

/// Returns the error of [`Workload::new`](weir_workload::Workload::new) for jobs on 2 TiB each.
fn started(lines: &str) -> Result<(), String> {
    let text = format!("[j]\nrw=randread\nbssplit=1k/50:64k/50\n{lines}\n");
    let placed = common::place(&common::parse(&text), 2048 * GIB);
    weir_workload::Workload::new(placed, 1).map(|_| ()).map_err(|error| error.to_string())
}

#[test]
fn a_map_that_is_too_large_is_rejected_or_omitted() {
    let message = |blocks: u64, most: u64| {
        Err(format!(
            "test.fio:1: job \"j\": the random map of its range would have {blocks} blocks of 1 KiB, \
             more than {most}; a file has at most 1073741824, and all files of a run 8589934592; \
             give a larger smallest block, a smaller size, fewer jobs, norandommap or softrandommap"
        ))
    };
    assert_eq!(started("size=1100g"), message(1100 << 20, 1 << 30));
    assert_eq!(started("size=1000g\nnumjobs=9"), message(1000 << 20, 192 << 20));
    assert_eq!(started("size=1000g\nnumjobs=2"), Ok(()));
    assert_eq!(started("size=1100g\nsoftrandommap=1"), Ok(()));
    assert_eq!(started("size=1100g\nnorandommap"), Ok(()));
    assert_eq!(started("size=1100g\nrandom_generator=lfsr"), Ok(()));
}

#[test]
fn a_size_that_is_not_reached_is_reported() {
    let ignored = |lines: &str| {
        let file = common::parse(&format!("[j]\nrw=randrw\nsize=1m\n{lines}\n"));
        file.ignored.iter().map(|i| (i.option, i.at.line)).collect::<Vec<_>>()
    };
    assert_eq!(ignored("bs=4k,16k"), [("size", 3)]);
    assert_eq!(
        ignored("bs=16k,16k,4k"),
        [("size", 3)],
        "trims do not occur and count all the same"
    );
    assert_eq!(ignored("bssplit=4k/50:64k/50,8k/50:64k/50"), [("size", 3)]);
    assert_eq!(ignored("bssplit=4k/50:64k/50,4k/50:16k/50"), []);
    assert_eq!(ignored("bs=4k,16k\nnorandommap"), []);
}

#[test]
fn a_time_based_job_of_several_units_runs_until_its_runtime() {
    let text =
        "[j]\nioengine=libaio\niodepth=4\nrw=randrw\nsize=1m\nbs=4k,16k\ntime_based\nruntime=1s\n";
    let run = Run::from_text(text, GIB, FAST);
    assert_eq!(run.ended(0), 1_000_000_000);
    assert!(run.log.len() > 30_000, "{}", run.log.len());
    assert!(run.log.iter().all(|(_, issue)| issue.offset + u64::from(issue.len) <= 1 << 20));
}

/// Returns fio's own count of the I/Os of a pass. Nothing is read or written.
fn count_of_fio(lines: &str) -> Option<(u64, u64)> {
    let args = ["--name=job", "--ioengine=null", "--output-format=json"];
    let lines = lines.lines().map(|line| format!("--{line}"));
    let Ok(output) = Command::new("fio").args(args).args(lines).output() else {
        assert!(std::env::var_os("CI").is_none(), "needs fio");
        println!("skipped: needs fio");
        return None;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let sum = |key: &str| -> u64 {
        let values = text.lines().filter_map(|line| line.trim().strip_prefix(key));
        let values = values.filter_map(|value| value.trim_end_matches(',').parse::<u64>().ok());
        values.sum()
    };
    Some((sum("\"total_ios\" : "), sum("\"io_bytes\" : ")))
}

#[test]
fn as_many_ios_as_fio_does() {
    // The count of one seed varies by 1.4 %, in fio as here, and the sum of eight by 0.5 %.
    const SEEDS: u64 = 8;
    for split in ["4k/60:64k/40", "4k/50:8k/30:64k/20", "8k/90:256k/10", "4k/10:16k/90"] {
        for kind in ["randread", "randwrite", "randrw"] {
            let (mut own, mut fio) = (0, 0);
            for seed in 1..=SEEDS {
                let lines = format!("size=256m\nrw={kind}\nbssplit={split}\nrandseed={seed}");
                let Some(by_fio) = count_of_fio(&lines) else { return };
                let by_weir = count(&lines);
                assert_eq!(by_weir.1, by_fio.1, "bytes of {kind} {split}");
                own += by_weir.0;
                fio += by_fio.0;
            }
            assert!(own.abs_diff(fio) * 100 <= 2 * fio, "{kind} {split}: {own} I/Os, fio {fio}");
        }
    }
}

/// The I/Os and bytes of reads, writes and trims.
type Counts = [(u64, u64); 3];

/// Returns the sums over all jobs that fio reports; `None`, with a message, without fio.
fn done_by_fio(text: &str) -> Option<Counts> {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("job.fio"), text).expect("a job file");
    let output =
        Command::new("fio").args(["--output-format=json", "job.fio"]).current_dir(&dir).output();
    let Ok(output) = output else {
        assert!(std::env::var_os("CI").is_none(), "CI needs fio");
        println!("skipped: needs fio");
        return None;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let values = |name: &str| -> Vec<u64> {
        let start = format!("\"{name}\" : ");
        let value =
            |line: &str| line.trim().strip_prefix(&start)?.trim_end_matches(',').parse().ok();
        text.lines().filter_map(value).collect()
    };
    // A job has reads, writes and trims, in this order; its syncs have a count only.
    let (ios, bytes) = (values("total_ios"), values("io_bytes"));
    let mut counts = Counts::default();
    for (ios, bytes) in ios.chunks_exact(4).zip(bytes.chunks_exact(3)) {
        for ((count, ios), bytes) in counts.iter_mut().zip(ios).zip(bytes) {
            *count = (count.0 + ios, count.1 + bytes);
        }
    }
    assert!(counts.iter().any(|(ios, _)| *ios > 0), "fio did nothing: {text}");
    Some(counts)
}

fn done_by_weir(text: &str) -> Counts {
    let placed = common::place(&common::parse(text), 4 * GIB);
    let mut workload = weir_workload::Workload::new(placed, 42).expect("a run");
    let mut counts = Counts::default();
    while !workload.is_done() {
        let Some(issue) = workload.poll_issue(Instant::ZERO) else { continue };
        let op = match issue.op {
            Op::Read => 0,
            Op::Write => 1,
            Op::Trim => 2,
            Op::Flush => panic!("no job here flushes"),
        };
        counts[op] = (counts[op].0 + 1, counts[op].1 + u64::from(issue.len));
        workload.handle_completion(Instant::ZERO, issue.process);
    }
    counts
}

/// Fails unless fio and Weir do the same, to `permille` in each direction's I/Os, bytes and
/// mean size.
#[track_caller]
fn check(lines: &str, permille: u64) {
    let text = format!("[job]\nioengine=null\nthread\n{lines}\n");
    let Some(fio) = done_by_fio(&text) else { return };
    let weir = done_by_weir(&text);
    println!("{lines:?}\n  {weir:?}\n  {fio:?}");
    let near = |a: u64, b: u64| a.abs_diff(b) * 1000 <= b * permille;
    let mean = |counts: &(u64, u64)| counts.1.checked_div(counts.0).unwrap_or(0);
    for (weir, fio) in weir.iter().zip(&fio) {
        assert!(near(weir.0, fio.0) && near(weir.1, fio.1), "{lines}:\n{weir:?}\n{fio:?}");
        assert!(near(mean(weir), mean(fio)), "{lines}:\n{weir:?}\n{fio:?}");
    }
}

/// On 4 GiB the count of one seed has a standard deviation of about 0.4 %, in fio as here.
#[test]
fn splits_are_cut_as_fio_cuts_them() {
    check("rw=randread\nsize=4g\nbssplit=4k/60:64k/40", 10);
    check("rw=randwrite\nsize=4g\nbssplit=4k:8k:64k", 10);
    check("rw=randread\nsize=4g\nbssplit=8k/90:24k/10", 10);
    check("rw=randrw\nsize=4g\nbssplit=4k/60:64k/40", 10);
    check("rw=randrw\nrwmixread=70\nsize=4g\nbssplit=4k/50:32k/50,4k/20:128k/80", 10);
    check("rw=randtrim\nsize=4g\nbssplit=4k/60:64k/40", 10);
    check("rw=randtrimwrite\nsize=4g\nbssplit=4k/60:64k/40", 10);
    check("rw=randread\nsize=1g\nnumjobs=4\nbssplit=512/10:4k/60:8k/15:64k/15", 10);
}

#[test]
fn other_options_beside_a_split_do_what_fio_does() {
    check("rw=randread\nsize=4g\nbsrange=4k-64k", 10);
    check("rw=randread\nsize=4g\nbsrange=4k-64k\nnorandommap", 10);
    check("rw=randwrite\nsize=1g\nbsrange=3k-7k\nnorandommap", 10);
    check("rw=randwrite\nsize=4g\nbssplit=4k/50:6k/30:64k/20\nnorandommap", 10);
    check("rw=randwrite\nsize=4g\nbssplit=4k/50:6k/30:64k/20", 10);
    // Few I/Os are cut early in a pass.
    check("rw=randread\nsize=4g\nio_size=2g\nbssplit=4k/60:64k/40", 10);
    check("rw=randread\nsize=4g\nbssplit=4k/60:64k/40\npercentage_random=50", 10);
    check("rw=randread:8\nsize=4g\nbssplit=4k/60:64k/40", 10);
    check("rw=randread\nsize=4g\nbssplit=4k/60:64k/40\nrandom_generator=lfsr", 10);
    check("rw=randread\nsize=4g\nnumjobs=2\nbssplit=4k/60:64k/40\nba=4k", 10);
    check("rw=randread\nsize=4g\nbssplit=4k/60:64k/40\nba=512", 10);
    check("rw=randread\nsize=4g\nbssplit=4k/60:64k/40\nrandom_distribution=zipf:0.9", 10);
    check("rw=randread\nsize=1g\nbssplit=4k/60:64k/40\nnumjobs=4\nfilename=x", 10);
}

/// fio counts the blocks of each direction in different units, in one map. Its jobs end early, at
/// different times: the mean of 300 jobs has a standard error of 1.6 %, in fio as here.
#[test]
fn jobs_of_several_units_end_as_early_as_in_fio() {
    check("rw=randrw\nsize=16m\nbs=4k,16k\nnumjobs=300", 70);
    check("rw=randrw\nsize=16m\nbs=64k,64k,4k\nnumjobs=300", 70);
    check("rw=randrw\nsize=16m\nbssplit=4k/50:64k/50,8k/50:64k/50\nnumjobs=300", 70);
}
