//! Any job file: reading it does not panic, and its workload obeys the rules and ends.

mod common;

use common::{Run, place};
use proptest::prelude::*;
use std::collections::HashMap;
use weir_units::Span;
use weir_workload::{FioError, Isolated, Op, Workload, fio};

const REGION: u64 = 1 << 20;

/// Lines of a job, each with one of a few values or missing.
fn options() -> impl Strategy<Value = Vec<String>> {
    let choices: &[(&str, &[&str])] = &[
        (
            "rw",
            &[
                "read",
                "write",
                "trim",
                "randread",
                "randwrite",
                "randtrim",
                "rw",
                "randrw",
                "trimwrite",
                "randtrimwrite",
                "randrw:3",
                "read:8k",
                "write:4k",
            ],
        ),
        ("bs", &["4k", "512", "3k", "64k", "4k,16k", "1m", "2m"]),
        ("bsrange", &["1k-4k", "4k-64k,512-2k"]),
        ("bssplit", &["4k/50:64k/50", "512/1:32k", "8k,4k/50:1k/50"]),
        ("ba", &["512", "4k", "100k"]),
        ("size", &["4k", "64k", "100k", "1m", "33%", "100%"]),
        ("io_size", &["1k", "64k", "3m", "10%", "1%"]),
        ("offset", &["0", "4k", "10%", "600k"]),
        ("offset_increment", &["8k", "1%"]),
        ("rwmixread", &["0", "50", "90", "100"]),
        ("iodepth", &["1", "2", "16"]),
        ("ioengine", &["libaio", "psync"]),
        ("numjobs", &["1", "3"]),
        ("loops", &["1", "3"]),
        ("number_ios", &["1", "50"]),
        ("runtime", &["1ms", "3ms"]),
        ("time_based", &["0", "1"]),
        ("ramp_time", &["1ms", "10ms"]),
        ("startdelay", &["1ms", "20ms"]),
        ("rate_iops", &["1000", "100000", ",5000", "3,70000"]),
        ("io_submit_mode", &["inline", "offload"]),
        ("rate_process", &["linear", "poisson"]),
        ("thinktime", &["10us", "2ms"]),
        ("thinktime_blocks", &["1", "5"]),
        ("thinktime_blocks_type", &["issue", "complete"]),
        ("fsync", &["1", "7"]),
        ("fdatasync", &["1", "4"]),
        ("end_fsync", &["0", "1"]),
        ("sync", &["none", "dsync"]),
        ("norandommap", &["0", "1"]),
        ("percentage_random", &["0", "50"]),
        (
            "random_distribution",
            &[
                "random",
                "zipf:0.8",
                "zipf:1.5",
                "pareto:0.1",
                "normal:5",
                "zoned:50/10:50/20",
                "zoned_abs:50/8k:50/16k",
            ],
        ),
        ("stonewall", &["1"]),
    ];
    let line = |(name, values): &(&'static str, &'static [&'static str])| {
        let name = *name;
        let value = prop::sample::select(*values);
        prop::option::weighted(0.3, value.prop_map(move |value| format!("{name}={value}")))
    };
    let lines: Vec<_> = choices.iter().map(line).collect();
    lines.prop_map(|lines| lines.into_iter().flatten().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_job_keeps_to_its_rules_and_ends(
        jobs in prop::collection::vec(options(), 1..3),
        latency in prop::collection::vec(1_u64..3_000_000, 1..20),
    ) {
        let sections: Vec<_> = jobs.iter().map(|lines| format!("[j]\n{}\n", lines.join("\n"))).collect();
        let text = sections.concat();
        let file = match fio::parse("any.fio", &text, &Isolated) {
            Ok(file) => file,
            Err(FioError::Conflict { .. }) => return Ok(()),
            Err(error) => panic!("{error}\n{text}"),
        };
        let placed = place(&file, REGION);
        if Workload::new(placed.clone(), 1).is_err() {
            return Ok(());
        }
        let specs: Vec<_> = placed.iter().map(|placed| placed.spec.clone()).collect();
        let run = Run::new(placed, 20_000, |n| Span::from_nanos(latency[n % latency.len()]));
        prop_assert!(run.workload.is_done() || run.log.len() == 20_000, "{}", text);

        let depths: u32 = specs.iter().map(weir_workload::JobSpec::effective_depth).sum();
        prop_assert!(run.deepest <= depths as usize);
        let mut writes_since_flush: HashMap<u32, u32> = HashMap::new();
        for (at, issue) in &run.log {
            let spec = &specs[issue.process as usize];
            let state = run.workload.process_state(issue.process).unwrap();
            prop_assert!(issue.offset + u64::from(issue.len) <= REGION, "{:?}\n{}", issue, text);
            prop_assert!(*at >= state.started_at.unwrap().nanos());
            prop_assert!(*at >= spec.start_delay.nanos());
            if let (Some(runtime), true) = (spec.runtime, issue.op != Op::Flush) {
                let end = state.measuring_from.unwrap() + runtime;
                prop_assert!(*at < end.nanos(), "issued after its runtime\n{}", text);
            }
            let since = writes_since_flush.entry(issue.process).or_default();
            *since = match issue.op {
                Op::Flush => 0,
                Op::Write => *since + 1,
                Op::Read | Op::Trim => *since,
            };
            let every = [spec.fsync, spec.fdatasync].into_iter().filter(|n| *n > 0).min();
            prop_assert!(every.is_none_or(|every| *since <= every), "no flush\n{}", text);
        }
        for process in 0..u32::try_from(specs.len()).unwrap() {
            let state = run.workload.process_state(process).unwrap();
            prop_assert!(state.in_flight <= specs[process as usize].effective_depth());
            prop_assert_eq!(state.issued, state.completed + u64::from(state.in_flight));
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "(\\[[a-z]*\\]?|[a-z_]{1,12}=?|[0-9kmgi%:,/.x-]{0,9}|\\$\\{?|[ \n;#\u{e9}])*") {
        let _either = fio::parse("any.fio", &text, &Isolated);
    }

    #[test]
    fn no_value_makes_the_reader_panic(
        option in prop::sample::select(vec![
            "rw", "bs", "bsrange", "bssplit", "size", "runtime", "rate", "random_distribution",
            "filename", "fsync", "offset", "thinktime", "iodepth", "percentage_random",
        ]),
        value in "(zipf|zoned|normal|read|rand)?[0-9kmgtpibs%:,/.x({<-]{0,30}\u{e9}?",
    ) {
        let _either = fio::parse("any.fio", &format!("[j]\n{option}={value}\n"), &Isolated);
    }
}
