//! The I/O of a workload, and its times, on a device with a latency.

mod common;

use common::{GIB, Logged, MS, Run, parse, place};
use proptest::prelude::*;
use std::collections::HashSet;
use weir_units::{Bytes, Instant, Span};
use weir_workload::{Op, Placed, Region, Workload};

const FAST: Span = Span::from_micros(100);

fn offsets(log: &[Logged]) -> Vec<u64> {
    log.iter().map(|(_, issue)| issue.offset).collect()
}

fn ops(log: &[Logged]) -> Vec<Op> {
    log.iter().map(|(_, issue)| issue.op).collect()
}

fn times(log: &[Logged]) -> Vec<u64> {
    log.iter().map(|(at, _)| *at).collect()
}

/// `[job]` with an engine that queues.
fn queued(lines: &str) -> String {
    format!("[job]\nioengine=libaio\n{lines}\n")
}

#[test]
fn a_random_job_touches_each_block_once_and_ends() {
    let run = Run::from_text(&queued("rw=randwrite\nbs=8k\nsize=10m\niodepth=32"), GIB, FAST);
    assert_eq!(run.log.len(), 1280);
    let blocks: HashSet<u64> = offsets(&run.log).into_iter().collect();
    assert_eq!(blocks, (0..1280).map(|n| n * 8192).collect());
    assert_eq!(run.deepest, 32);
    assert_eq!(run.ended(0), 1280 / 32 * FAST.nanos());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn reads_and_writes_of_one_size_share_one_map(
        blocks in 1_u64..600, percent in 0_u32..=100, depth in 1_u32..64,
    ) {
        let size = blocks * 4096;
        let text = format!("rw=randrw\nrwmixread={percent}\nsize={size}\niodepth={depth}");
        let run = Run::from_text(&queued(&text), GIB, FAST);
        let mut touched = offsets(&run.log);
        touched.sort_unstable();
        prop_assert_eq!(touched, (0..blocks).map(|n| n * 4096).collect::<Vec<_>>());
        prop_assert!(run.deepest <= depth as usize);
    }

    #[test]
    fn the_share_of_reads_is_the_stated_one(percent in 0_u64..=100) {
        let text = format!("rw=randrw\nrwmixread={percent}\nsize=80m\nbs=4k\niodepth=8");
        let run = Run::from_text(&queued(&text), GIB, FAST);
        let reads = ops(&run.log).iter().filter(|op| **op == Op::Read).count() as u64;
        // 20,480 draws: five standard deviations are below 1.8 %.
        prop_assert!(reads.abs_diff(20_480 * percent / 100) < 20_480 * 18 / 1000, "{reads}");
        prop_assert!(percent != 0 || reads == 0);
        prop_assert!(percent != 100 || reads == 20_480);
    }

    /// The k-th I/O is issued at the first nanosecond that is not before k / rate, so any window of
    /// t seconds contains rate * t of them, plus or minus one.
    #[test]
    fn a_rate_is_exact_over_any_window(rate in 1_u64..2_000_000, window in 1_u64..2_000) {
        let text = format!("rw=randread\nbs=4k\nsize=1g\nrate_iops={rate}\niodepth=4");
        let run = Run::new(place(&parse(&queued(&text)), GIB), 3_000, |_| Span::from_nanos(1));
        let times = times(&run.log);
        for (k, at) in (0_u64..).zip(&times) {
            prop_assert_eq!(*at, (k * 1_000_000_000).div_ceil(rate));
        }
        let window = usize::try_from(window).unwrap();
        for pair in times.windows(window + 1) {
            let span = u128::from(pair[window] - pair[0]) * u128::from(rate);
            let exact = window as u128 * 1_000_000_000;
            prop_assert!(span.abs_diff(exact) <= u128::from(rate));
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_io_and_another_seed_another() {
    let file = parse(include_str!("fixtures/max-combined.fio"));
    let issued = |seed| {
        let mut workload = Workload::new(place(&file, 30 * GIB), seed).unwrap();
        std::iter::from_fn(|| workload.poll_issue(Instant::ZERO)).collect::<Vec<_>>()
    };
    // The readers' 128, and those of the paced writers that are due at once.
    assert_eq!(issued(1).len(), 129);
    assert_eq!(issued(1), issued(1));
    assert_ne!(issued(1), issued(2));
}

#[test]
fn randseed_changes_the_order() {
    let first = |seed| {
        let run =
            Run::from_text(&queued(&format!("rw=randread\nsize=1m\nrandseed={seed}")), GIB, FAST);
        offsets(&run.log)
    };
    assert_ne!(first(1), first(2));
    assert_eq!(first(1), first(1));
}

#[test]
fn processes_take_turns() {
    let run = Run::from_text(&queued("rw=randread\nsize=1m\nnumjobs=3\niodepth=4"), GIB, FAST);
    let turns: Vec<u32> = run.log.iter().take(12).map(|(_, issue)| issue.process).collect();
    assert_eq!(turns, [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]);
    assert_ne!(offsets(&run.process(0)), offsets(&run.process(1)), "clones differ");
}

#[test]
fn a_synchronous_engine_has_one_in_flight() {
    let run =
        Run::from_text("[job]\nioengine=psync\niodepth=64\nrw=randread\nsize=1m\n", GIB, FAST);
    assert_eq!((run.deepest, run.log.len()), (1, 256));
}

#[test]
fn sequential_jobs_keep_their_order_and_holes() {
    let run = Run::from_text(&queued("rw=read\nbs=64k\nsize=1m\niodepth=4"), GIB, FAST);
    assert_eq!(offsets(&run.log), (0..16).map(|n| n << 16).collect::<Vec<_>>());
    let run = Run::from_text(&queued("rw=write:4k\nbs=4k\nsize=32k"), 32 << 10, FAST);
    let holes = [0, 2, 4, 6, 0, 2, 4, 6].map(|n| n * 4096);
    assert_eq!(offsets(&run.log), holes, "at the end of the file it wraps");
    let run = Run::from_text(&queued("rw=write:4k\nbs=4k\nsize=32k"), GIB, FAST);
    assert_eq!(offsets(&run.log), holes[..4], "at the end of the range it stops");
    // 10 KiB have two blocks of 4 KiB. fio leaves the rest.
    let run = Run::from_text(&queued("rw=read\nbs=4k\nsize=10k"), GIB, FAST);
    assert_eq!(offsets(&run.log), [0, 4096]);
}

#[test]
fn reads_and_writes_of_a_sequential_mix_each_go_in_order() {
    let run = Run::from_text(&queued("rw=rw\nbs=4k\nsize=1m\niodepth=4"), GIB, FAST);
    for op in [Op::Read, Op::Write] {
        let own: Vec<_> =
            run.log.iter().filter(|(_, i)| i.op == op).map(|(_, i)| i.offset).collect();
        assert_eq!(own, (0..own.len() as u64).map(|n| n * 4096).collect::<Vec<_>>());
    }
    assert_eq!(run.log.len(), 256);
}

#[test]
fn limits_of_the_amount_end_a_job() {
    let count = |lines: &str| Run::from_text(&queued(lines), GIB, FAST).log.len();
    assert_eq!(count("rw=randread\nsize=1m"), 256);
    assert_eq!(count("rw=randread\nsize=1m\nloops=3"), 768);
    assert_eq!(count("rw=randread\nsize=1m\nio_size=256k"), 64);
    assert_eq!(count("rw=randread\nsize=1m\nio_size=5m"), 1280);
    assert_eq!(count("rw=read\nsize=1m\nio_size=2304k"), 576);
    assert_eq!(count("rw=read\nsize=1m\nio_size=256k\nloops=2"), 128);
    assert_eq!(count("rw=read\nsize=10k\nloops=2"), 4);
    assert_eq!(count("rw=randread\nsize=1m\nnumber_ios=100"), 100);
    assert_eq!(count("rw=randread\nsize=1m\nnumber_ios=100\nloops=2"), 200);
    assert_eq!(count("rw=read\nsize=1m\nio_size=50%"), 128);
    assert_eq!(count("rw=trimwrite\nsize=1m"), 512);
    assert_eq!(count("rw=randread\nbs=1m"), 1024, "no size: the whole region");
    assert_eq!(count("rw=randread\nbs=1m\nsize=25%"), 256);
}

#[test]
fn each_pass_of_a_random_job_has_its_own_order() {
    let run = Run::from_text(&queued("rw=randread\nsize=1m\nloops=2"), GIB, FAST);
    let offsets = offsets(&run.log);
    let (first, second) = offsets.split_at(256);
    assert_ne!(first, second);
    let set = |pass: &[u64]| pass.iter().copied().collect::<HashSet<_>>();
    assert_eq!(set(first), set(second));
}

#[test]
fn a_job_drains_before_it_starts_over() {
    let run = Run::from_text(&queued("rw=read\nsize=16k\nloops=2\niodepth=3"), GIB, FAST);
    // Three at once, the fourth after a completion, and the second pass only after that one.
    assert_eq!(times(&run.log), [0, 0, 0, 1, 2, 2, 2, 3].map(|n| n * FAST.nanos()));
}

#[test]
fn a_time_based_job_runs_until_its_runtime_and_drains() {
    let text = queued("rw=randread\nsize=64k\ntime_based\nruntime=10ms\niodepth=4");
    let run = Run::from_text(&text, GIB, Span::from_millis(3));
    assert_eq!(times(&run.log), [0, 3, 6, 9].map(|n| [n * MS; 4]).concat());
    assert_eq!(run.ended(0), 12 * MS, "fio counts what was in flight at the end");
    let run = Run::from_text(&queued("rw=read\nsize=16k\ntime_based\nruntime=1ms"), GIB, FAST);
    assert_eq!(offsets(&run.log), [0, 4096, 8192, 12_288, 0, 4096, 8192, 12_288, 0, 4096]);
    // Without a runtime fio does the size once.
    assert_eq!(Run::from_text(&queued("rw=read\nsize=16k\ntime_based"), GIB, FAST).log.len(), 4);
}

#[test]
fn the_ramp_comes_before_the_runtime_and_rates_start_afresh_after_it() {
    let text = queued("rw=read\nsize=1g\nruntime=10ms\nramp_time=5ms\nrate_iops=1000\niodepth=64");
    // The first I/O takes 4 ms; catching up would follow it.
    let latency = |n| if n == 0 { Span::from_micros(4_500) } else { Span::from_nanos(1) };
    let run = Run::new(place(&parse(&text), GIB), 1000, latency);
    let state = run.workload.process_state(0).unwrap();
    assert_eq!(state.measuring_from, Some(Instant::from_nanos(5 * MS)));
    assert_eq!(run.ended(0), 15 * MS);
    let after: Vec<u64> = times(&run.log).into_iter().filter(|at| *at >= 5 * MS).collect();
    assert_eq!(after, (5..15).map(|n| n * MS).collect::<Vec<_>>());
}

#[test]
fn lost_time_is_caught_up() {
    let text = queued("rw=randread\nsize=1g\nrate_iops=1000\niodepth=8");
    // The sixth I/O, at 5 ms, is answered at 9 ms. fio waits for it before it looks
    // at the clock again; then 6, 7, 8 and 9 ms are due.
    let latency = |n| if n == 5 { Span::from_millis(4) } else { Span::from_nanos(1) };
    let run = Run::new(place(&parse(&text), GIB), 12, latency);
    assert_eq!(times(&run.log), [0, 1, 2, 3, 4, 5, 9, 9, 9, 9, 10, 11].map(|n| n * MS));
    // With offload, it does not wait.
    let run = Run::new(place(&parse(&format!("{text}io_submit_mode=offload")), GIB), 12, latency);
    assert_eq!(times(&run.log), (0..12).map(|n| n * MS).collect::<Vec<_>>());
}

#[test]
fn a_byte_rate_and_mixed_sizes_are_paced_by_bytes() {
    let run = Run::new(
        place(&parse(&queued("rw=read\nsize=1g\nbssplit=4k/50:64k/50\nrate=1000000")), GIB),
        500,
        |_| Span::from_nanos(1),
    );
    let mut bytes = 0_u64;
    for (at, issue) in &run.log {
        assert_eq!(*at, (bytes * 1000).next_multiple_of(1), "1 MB/s is 1000 ns per byte");
        bytes += u64::from(issue.len);
    }
    let small = run.log.iter().filter(|(_, issue)| issue.len == 4096).count();
    assert!((200..300).contains(&small), "{small} of 500");
}

#[test]
fn each_direction_has_its_own_rate() {
    let text = queued("rw=randrw\nsize=1g\nrate_iops=1000,200\nruntime=1s\niodepth=4");
    let run = Run::from_text(&text, GIB, Span::from_nanos(1));
    let count = |op| ops(&run.log).iter().filter(|o| **o == op).count();
    assert_eq!((count(Op::Read), count(Op::Write)), (1000, 200));
}

#[test]
fn think_time_follows_a_number_of_ios() {
    let text = "[job]\nrw=read\nsize=64k\nthinktime=1ms\nthinktime_blocks=4\n";
    let run = Run::from_text(text, GIB, FAST);
    // Four I/Os of 0.1 ms, then 1 ms of think time.
    let expect = (0..16).map(|n| n % 4 * FAST.nanos() + n / 4 * (MS + 4 * FAST.nanos()));
    assert_eq!(times(&run.log), expect.collect::<Vec<_>>());
    // If issued I/Os count, a queue of four is filled and drained before each think time.
    let text = queued(
        "rw=read\nsize=32k\niodepth=8\nthinktime=1ms\nthinktime_blocks=4\nthinktime_blocks_type=issue",
    );
    let run = Run::from_text(&text, GIB, FAST);
    assert_eq!(times(&run.log), [[0; 4], [MS + FAST.nanos(); 4]].concat());
}

#[test]
fn waves_and_start_delays() {
    let file = parse(
        "[global]\nsize=16k\n[a]\n[b]\nstartdelay=5ms\n[c]\nstonewall\n[d]\nstartdelay=9ms\n",
    );
    let run = Run::new(place(&file, GIB), 1000, |_| Span::from_millis(1));
    let start = |p| run.workload.process_state(p).unwrap().started_at.unwrap().nanos() / MS;
    // b ends at 9 ms. d's delay counts from the start of the run, so it does not wait.
    assert_eq!([start(0), start(1), start(2), start(3)], [0, 5, 9, 9]);
    assert_eq!([run.ended(0), run.ended(1), run.ended(2)], [4 * MS, 9 * MS, 13 * MS]);
    assert!(run.workload.is_done());
    assert_eq!(run.workload.poll_deadline(), None);
}

#[test]
fn flushes_follow_a_number_of_writes() {
    use Op::{Flush, Write};
    let run = Run::from_text(&queued("rw=write\nsize=16k\nfsync=2"), GIB, FAST);
    assert_eq!(ops(&run.log), [Write, Write, Flush, Write, Write], "fio stops with the last write");
    let run = Run::from_text(&queued("rw=write\nsize=12k\nfdatasync=1\nend_fsync=1"), GIB, FAST);
    assert_eq!(ops(&run.log), [Write, Flush, Write, Flush, Write, Flush]);
    let data_only: Vec<bool> = run.log.iter().map(|(_, issue)| issue.data_sync).collect();
    assert_eq!(data_only, [false, true, false, true, false, false]);
    let run = Run::from_text(&queued("rw=randread\nsize=12k\nfsync=1\nend_fsync=1"), GIB, FAST);
    assert!(!ops(&run.log).contains(&Flush), "nothing was written");
    let run = Run::from_text(&queued("rw=write\nsize=1g\nruntime=1ms\nend_fsync=1"), GIB, FAST);
    assert_eq!(ops(&run.log).last(), Some(&Flush), "also when time is over");
    assert_eq!(run.ended(0), MS + FAST.nanos());
}

#[test]
fn synchronous_writes_are_marked() {
    let run = Run::from_text(&queued("rw=rw\nsize=1m\nsync=dsync"), GIB, FAST);
    assert!(run.log.iter().all(|(_, issue)| issue.data_sync == (issue.op == Op::Write)));
}

#[test]
fn trimwrite_writes_what_it_trimmed() {
    for rw in ["trimwrite", "randtrimwrite"] {
        let run = Run::from_text(&queued(&format!("rw={rw}\nsize=64k")), GIB, FAST);
        for pair in run.log.chunks(2) {
            assert_eq!([pair[0].1.op, pair[1].1.op], [Op::Trim, Op::Write]);
            assert_eq!(pair[0].1.offset, pair[1].1.offset);
        }
        let blocks: HashSet<u64> = offsets(&run.log).into_iter().collect();
        assert_eq!(blocks.len(), 16);
    }
}

#[test]
fn clones_start_further_on_and_all_stay_in_their_region() {
    let file = parse("[job]\nrw=read\nsize=64k\noffset=1m\noffset_increment=2m\nnumjobs=3\n");
    let placed = (0..3).map(|clone| Placed {
        spec: file.jobs[0].clone(),
        clone,
        regions: vec![Region { device: 9, base: Bytes::gib(4), len: Bytes::mib(8) }],
    });
    let run = Run::new(placed.collect(), 1000, |_| FAST);
    for clone in 0..3 {
        let first = run.process(clone)[0].1;
        assert_eq!(
            (first.device, first.offset),
            (9, (4 << 30) + (1 << 20) + u64::from(clone) * (2 << 20))
        );
    }
}

#[test]
fn several_files_are_used_in_turn_and_share_the_size() {
    let file = parse(&queued("rw=randread\nsize=100k\nfilename=a:b:c"));
    let region = |device| Region { device, base: Bytes::mib(1), len: Bytes::gib(1) };
    let placed = Placed {
        spec: file.jobs[0].clone(),
        clone: 0,
        regions: vec![region(0), region(1), region(2)],
    };
    let run = Run::new(vec![placed], 1000, |_| FAST);
    let devices: Vec<u32> = run.log.iter().take(6).map(|(_, issue)| issue.device).collect();
    assert_eq!(devices, [0, 1, 2, 0, 1, 2]);
    // 33 KiB have eight blocks. The rest of the size is less than a block.
    let blocks: HashSet<(u32, u64)> = run.log.iter().map(|(_, i)| (i.device, i.offset)).collect();
    assert_eq!((run.log.len(), blocks.len()), (24, 24));
}

#[test]
fn a_random_job_may_be_sequential_in_between() {
    let run = Run::from_text(&queued("rw=randread:8\nbs=4k\nsize=64m\nnorandommap"), GIB, FAST);
    let offsets = offsets(&run.log);
    let jumps = offsets.windows(2).filter(|w| w[1] != w[0] + 4096).count();
    assert!(jumps.abs_diff(offsets.len() / 8) <= 2, "{jumps} jumps in {}", offsets.len());
    let run = Run::from_text(
        &queued("rw=randread\nbs=4k\nsize=64m\nnorandommap\npercentage_random=25"),
        GIB,
        FAST,
    );
    let offsets = self::offsets(&run.log);
    let jumps = offsets.windows(2).filter(|w| w[1] != w[0] + 4096).count() * 100 / offsets.len();
    assert!((22..=28).contains(&jumps), "{jumps} %");
}

#[test]
fn offsets_are_aligned_and_inside() {
    for lines in [
        "rw=randread\nbs=8k\nba=512\nsize=1m",
        "rw=randread\nbsrange=4k-64k\nsize=1m\nnorandommap\nio_size=64m",
        "rw=randrw\nbs=4k,64k\nsize=1m\nnorandommap\nio_size=64m",
        "rw=randread\nbssplit=3k/50:7k/50\nsize=1m\nloops=20",
        "rw=read\nbsrange=4k-64k\nsize=1m\nloops=9",
        "rw=randread\nbs=4k\nsize=1m\nio_size=64m\nrandom_distribution=zipf:1.2",
    ] {
        let run = Run::from_text(&queued(lines), GIB, FAST);
        assert!(run.log.len() > 100, "{lines}");
        for (_, issue) in &run.log {
            assert!(issue.offset + u64::from(issue.len) <= 1 << 20, "{lines}: {issue:?}");
            let align = if lines.contains("ba=") { 512 } else { 1024 };
            assert_eq!(issue.offset % align, 0, "{lines}: {issue:?}");
        }
    }
}

#[test]
fn jobs_that_do_not_fit_their_placement() {
    let message = |lines: &str, regions: &[u64]| {
        let region = |len: &u64| Region { device: 0, base: Bytes::ZERO, len: Bytes::new(*len) };
        let spec = parse(&format!("[j]\n{lines}\n")).jobs.remove(0);
        let placed = Placed { spec, clone: 0, regions: regions.iter().map(region).collect() };
        Workload::new(vec![placed], 1).map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(
        message("size=1m", &[]),
        "test.fio:1: job \"j\": needs at least one region to work on"
    );
    assert_eq!(
        message("size=1m\noffset=4k", &[1 << 20]),
        "test.fio:1: job \"j\": offset 4 KiB and size 1 MiB reach past the end of its file or volume of 1 MiB; lower one of them"
    );
    assert_eq!(
        message("bs=64k", &[4096]),
        "test.fio:1: job \"j\": not one block of 64 KiB fits into its range of 4 KiB"
    );
    assert_eq!(
        message("size=8k\nfilename=a:b:c", &[GIB, GIB, GIB]),
        "test.fio:1: job \"j\": not one block of 4 KiB fits into its range of 2730 B"
    );
    assert_eq!(
        message("size=1m\nrw=randread\nrandom_distribution=zoned_abs:100/2m", &[GIB]),
        "test.fio:1: job \"j\": offset 0 B and size 2 MiB reach past the end of its file or volume of 1 MiB; lower one of them"
    );
}

#[test]
fn nothing_to_do_is_done() {
    let mut workload = Workload::new(Vec::new(), 1).unwrap();
    assert!(workload.is_done());
    assert_eq!((workload.poll_deadline(), workload.poll_issue(Instant::ZERO)), (None, None));
}

#[test]
#[should_panic(expected = "a completion without an I/O in flight")]
fn a_completion_that_belongs_to_nothing_is_a_bug_of_the_driver() {
    let mut workload = Workload::new(place(&parse("[j]\nsize=1m\n"), GIB), 1).unwrap();
    workload.handle_completion(Instant::ZERO, 0);
}
