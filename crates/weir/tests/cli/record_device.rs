//! `weir record --device`: the block events of the kernel, beside fio's own log of the same requests.

use crate::common::{Place, run};
use crate::replay_served::Recorder;
use crate::stack::{Loop, can_loop};
use crate::tools::{self, machine_has, needs};
use std::fs;
use std::path::Path;
use std::process::Command;
use weir_trace::{Kind, Reader, Request};

const TRACING: &str = "/sys/kernel/tracing";

/// Returns the requests of fio's log: their kinds, offsets and lengths.
fn logged(log: &str) -> Vec<(Kind, u64, u64)> {
    let request = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, _, kind, offset, len] = fields[..] else { return None };
        let kind = if kind == "read" { Kind::Read } else { Kind::Write };
        Some((kind, offset.parse().expect("a number"), len.parse().expect("a number")))
    };
    log.lines().filter_map(request).collect()
}

fn recorded(trace: &[u8]) -> Vec<Request> {
    let mut reader = Reader::open(trace).expect("a trace");
    std::iter::from_fn(|| reader.next_request().expect("sound")).collect()
}

/// The trace of a device has each request of fio's log in the same order, with its latency, and nothing is left
/// switched on.
#[test]
fn a_device_is_recorded_as_fio_used_it() {
    needs!("fio", "losetup");
    let place = Place::new();
    let is_traced = Path::new(TRACING).join("events/block").is_dir();
    if !can_loop(&place) || !machine_has("tracefs", is_traced) {
        return;
    }
    fs::File::create(place.path("disk")).and_then(|file| file.set_len(64 << 20)).expect("a file");
    let device = Loop::over(&place.path("disk"));
    let path = device.path().display().to_string();
    let record = ["record", "--device", path.as_str(), "--out", "t.weirtrace", "-o", "json"];
    let recorder = Recorder::start(place.weir(&record));
    let mut fio = Command::new("fio");
    fio.args(["--name=t", "--rw=randrw", "--bs=8k", "--direct=1", "--ioengine=psync"])
        .args(["--number_ios=400", "--write_iolog=log", &format!("--filename={path}")])
        .current_dir(place.dir());
    let (_, said, code) = run(fio);
    assert_eq!(code, Some(0), "{said}");
    let report = recorder.stop();
    let trace = recorded(&fs::read(place.path("t.weirtrace")).expect("a trace"));
    let logged = logged(&fs::read_to_string(place.path("log")).expect("a log"));
    let seen: Vec<_> = trace.iter().map(|own| (own.kind, own.offset, own.len)).collect();
    assert!(logged.len() >= 400 && seen == logged, "{seen:?}\n{logged:?}");
    assert!(trace.iter().all(|own| own.latency.is_some()), "{report:#}");
    let left: Vec<_> = fs::read_dir(Path::new(TRACING).join("instances"))
        .expect("a folder")
        .flatten()
        .map(|own| own.file_name())
        .filter(|name| name.to_string_lossy().starts_with("weir"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
