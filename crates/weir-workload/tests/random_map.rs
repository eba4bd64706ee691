//! The random map of I/Os that differ in size: against its definition, and against fio itself.

mod common;

use common::{GIB, Run};
use proptest::prelude::*;
use std::process::Command;
use weir_units::Span;

const FAST: Span = Span::from_micros(100);

/// I/Os and bytes of a job of `lines`, run to its end.
fn count(lines: &str) -> (u64, u64) {
    let run = Run::of(&format!("[job]\nioengine=libaio\n{lines}\n"), GIB, FAST);
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
        let run = Run::of(&text, GIB, FAST);
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
fn a_map_of_too_many_blocks_and_of_two_units_is_refused() {
    let parsed = |text: &str| {
        weir_workload::fio::parse("a.fio", text, &weir_workload::Isolated)
            .map_err(|error| error.to_string())
    };
    let mixed = "[j]\nioengine=libaio\nrw=randrw\nsize=1m\nbssplit=4k/50:64k/50,8k/50:64k/50\n";
    let error = parsed(mixed).unwrap_err();
    assert!(error.contains("the same smallest block"), "{error}");
    assert!(error.starts_with("a.fio:5:"), "{error}");
    parsed(&format!("{mixed}norandommap\n")).unwrap();
    let large = "[j]\nioengine=libaio\nrw=randread\nsize=1100g\nbssplit=1k/50:64k/50\n";
    let placed = common::place(&parsed(large).unwrap(), 2048 * GIB);
    let error = weir_workload::Workload::new(placed, 1).unwrap_err().to_string();
    assert!(error.contains("1153433600 blocks of 1 KiB, more than 1073741824"), "{error}");
}

/// I/Os that fio does of a pass, by its own count. Nothing is read or written.
#[expect(clippy::print_stdout, reason = "what is skipped is said aloud")]
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
