//! The memory of a backup does not depend on the size of its source.

use super::{Rig, pattern};
use crate::common::Place;
use std::fs;
use std::process::Stdio;

const LAYOUT: &str = "[host]\nunlimited = true\n\
    [[volume]]\nname = \"small\"\nsize = \"1 GiB\"\nunlimited = true\n\
    [[volume]]\nname = \"large\"\nsize = \"1 TiB\"\nunlimited = true\n";
/// Pieces of each volume that hold data, evenly over all of it.
const PIECES: u64 = 64;
/// Memory that differs from run to run, in KiB.
const SLACK: u64 = 8 << 10;

/// Runs a backup; returns the most memory that it had, in KiB.
fn peak(rig: &Rig, args: &str) -> u64 {
    let mut child = rig.weir(args).stdout(Stdio::null()).spawn().expect("a program");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        // A process that has ended has no such line any more.
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let now = line.and_then(|own| own.trim().strip_suffix(" kB")?.parse().ok());
        peak = peak.max(now.unwrap_or(0));
        if let Some(ended) = child.try_wait().expect("a state") {
            assert_eq!(ended.code(), Some(0), "{args}");
            return peak;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_sparse_tebibyte_takes_no_more_memory_than_a_gibibyte() {
    let place = Place::without_a_disk();
    let server = Some(place.serve(LAYOUT, &["--data", "d"]));
    let rig = Rig { place, server };
    fs::create_dir(rig.place.path("b")).expect("a folder");
    for (name, size) in [("small", 1_u64 << 30), ("large", 1 << 40)] {
        for piece in 0..PIECES {
            rig.write(name, size / PIECES * piece, &pattern(piece, 64 << 10));
        }
    }
    // No limit would end it before its buffers are full.
    let args =
        |name: &str| format!("backup run {name} --to b --limit 8MiB/s --name {name} --quiet");
    let (small, large) = (peak(&rig, &args("small")), peak(&rig, &args("large")));
    assert!(small > 4 << 10, "{small} KiB: it was not measured");
    assert!(large <= small + SLACK, "{large} KiB for 1 TiB, {small} KiB for 1 GiB");
}
