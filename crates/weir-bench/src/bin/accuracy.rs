//! Measures the error of a saturated limit, window by window: the curve of
//! docs/BENCHMARKS.md.
//!
//! Virtual time: windows of 100 ms, limits to 400,000 IOPS. Wall time: windows of
//! 1 s over NBD, limits to 100,000 IOPS, Weir's runner and server on one machine.
//! Backends: the same for volumes on nbdkit and on qemu-storage-daemon.
//!
//! ```console
//! $ cargo run --release -p weir-bench --bin accuracy -- virtual|wall|backends [LIMITS]
//! ```
//!
//! LIMITS runs only the rows whose limits contain that text.

#![expect(clippy::print_stdout, reason = "it is a program that prints a table")]

use std::path::Path;
use std::process::Command;
use std::str::FromStr;
use weir_bench::peer::Peer;
use weir_bench::{Failure, prepare};
use weir_proto::Uri;
use weir_report::cells;
use weir_report::number::float;
use weir_report::run::RunReport;
use weir_report::table::{Listing, Table};
use weir_report::{Format, Report};
use weir_runner::RunOptions;
use weir_server::{Address, Server};
use weir_units::Span;

/// One point of the curve.
struct Case {
    /// The limits as keys of a layout: the volume's, and the host's.
    volume: String,
    host: String,
    block: u64,
    depth: u32,
    /// Jobs of that depth.
    jobs: u32,
    /// Reads among 100.
    reads: u32,
    /// I/Os per second that the limits allow.
    expect: f64,
}

const UNIT: u64 = 256 << 10;

/// Bytes that the jobs use.
const USED: usize = 256 << 20;

/// The way to measure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Virtual,
    Wall,
    Backends,
}

fn iops(limit: u64, block: u64, depth: u32, reads: u32) -> Case {
    Case {
        volume: format!("iops = {limit}"),
        host: String::new(),
        block,
        depth,
        jobs: 1,
        reads,
        expect: float(limit) / float(block.div_ceil(UNIT)),
    }
}

fn bytes(mib: u64, block: u64, depth: u32, reads: u32) -> Case {
    Case {
        volume: format!("throughput = \"{mib} MiB/s\""),
        host: String::new(),
        block,
        depth,
        jobs: 1,
        reads,
        expect: float(mib << 20) / float(block),
    }
}

fn cases(wall: bool) -> Vec<Case> {
    let mut cases = vec![
        iops(100, 4 << 10, 1, 100),
        iops(100, 4 << 10, 8, 100),
        iops(500, 8 << 10, 32, 70),
        iops(500, 1 << 20, 32, 100),
        iops(3_000, 512, 64, 100),
        iops(5_000, 8 << 10, 128, 0),
        iops(5_000, 64 << 10, 256, 50),
        iops(20_000, 4 << 10, 512, 50),
        Case { jobs: 4, ..iops(50_000, 4 << 10, 512, 100) },
        Case { jobs: 8, ..iops(50_000, 4 << 10, 256, 0) },
        Case { jobs: 8, ..iops(100_000, 4 << 10, 512, 100) },
        bytes(32, 4 << 10, 64, 50),
        bytes(200, 64 << 10, 64, 0),
        bytes(200, 1 << 20, 32, 100),
        bytes(512, 4 << 20, 16, 50),
    ];
    cases.push(Case {
        volume: "iops = 5000".into(),
        host: "iops = 3200, throughput = \"32 MiB/s\"".into(),
        block: 8 << 10,
        depth: 128,
        jobs: 1,
        reads: 70,
        expect: 3_200.0,
    });
    cases.push(Case {
        volume: "iops = 5000, throughput = \"200 MiB/s\"".into(),
        host: "iops = 25600, throughput = \"150 MiB/s\"".into(),
        block: 64 << 10,
        depth: 128,
        jobs: 1,
        reads: 50,
        expect: 2_400.0,
    });
    cases.extend([1, 4, 32, 512].map(|depth| iops(5_000, 8 << 10, depth, 50)));
    cases.extend([4 << 10, 64 << 10, 1 << 20, 4 << 20].map(|b| bytes(200, b, 64, 50)));
    if !wall {
        cases.extend([bytes(200, 512, 64, 50), iops(400_000, 4 << 10, 512, 70)]);
    }
    cases
}

/// Limits that a backend on the same two cores can carry.
fn cases_on_backends() -> Vec<Case> {
    vec![
        iops(500, 8 << 10, 32, 70),
        iops(500, 1 << 20, 32, 100),
        iops(3_000, 512, 64, 100),
        iops(5_000, 8 << 10, 32, 50),
        iops(5_000, 8 << 10, 128, 0),
        iops(20_000, 4 << 10, 512, 50),
        bytes(32, 4 << 10, 64, 50),
        bytes(200, 64 << 10, 64, 0),
        bytes(200, 1 << 20, 32, 50),
    ]
}

/// Starts the server of a backend.
fn backend(name: &'static str, folder: &Path) -> Result<Peer, Failure> {
    if name == "nbdkit" {
        let mut command = Command::new(name);
        command.arg("-f").arg("-U").arg(folder.join(name)).args(["memory", "256M"]);
        return Peer::start(name, folder, &mut command, "");
    }
    let disk = folder.join("disk");
    std::fs::write(&disk, vec![1; USED])?;
    let mut command = Command::new(name);
    command
        .arg("--blockdev")
        .arg(format!("driver=file,node-name=disk,filename={}", disk.display()));
    command.arg("--nbd-server");
    command.arg(format!("addr.type=unix,addr.path={}", folder.join(name).display()));
    command.args(["--export", "type=nbd,id=v,node-name=disk,name=v,writable=on"]);
    Peer::start(name, folder, &mut command, "v")
}

impl Case {
    fn layout(&self, backend: Option<&Peer>) -> String {
        let host = match self.host.as_str() {
            "" => "host = { unlimited = true }".to_owned(),
            limits => format!("host = {{ limits = {{ uncached = {{ {limits} }} }} }}"),
        };
        // The edition only says how large an operation is.
        let bytes = match backend {
            Some(peer) => format!("size = \"256 MiB\"\nbackend = \"{}\"", peer.uri),
            None => "size = \"1 GiB\"".to_owned(),
        };
        format!(
            "edition = \"azure-premium-2015\"\n{host}\n[[volume]]\nname = \"v\"\n{bytes}\n\
             latency = \"100us\"\nlimits = {{ {} }}\n",
            self.volume
        )
    }

    fn job(&self, runtime: Span, ramp: Span) -> String {
        format!(
            "[job]\nfilename=/dev/v\nrw=randrw\nrwmixread={}\nbs={}\niodepth={}\nioengine=libaio\n\
             direct=1\ntime_based\nnumjobs={}\nruntime={}ms\nramp_time={}ms\nsize=256m\nnorandommap\n",
            self.reads,
            self.block,
            self.depth,
            self.jobs,
            runtime.nanos() / 1_000_000,
            ramp.nanos() / 1_000_000
        )
    }
}

/// Returns the mean and worst deviation of the whole windows from `expect`, as shares of it,
/// and the largest deviation in requests.
fn errors(run: &RunReport, expect: f64, skip: usize) -> (f64, f64, f64) {
    let whole = &run.series[skip..run.series.len().saturating_sub(1)];
    let off = |p: &weir_report::run::SeriesPoint| (p.read_iops + p.write_iops) - expect;
    let count = float(whole.len() as u64);
    let mean = whole.iter().map(off).sum::<f64>() / count / expect;
    let worst = whole.iter().map(|p| off(p).abs() / expect).fold(0.0, f64::max);
    let requests = whole.iter().map(|p| off(p).abs() * p.length_s).fold(0.0, f64::max);
    (mean, worst, requests)
}

fn virtually(case: &Case) -> Result<RunReport, Failure> {
    let runtime = Span::from_secs(5);
    let (layout, placed) = prepare(&case.layout(None), &case.job(runtime, Span::ZERO))?;
    let every = Some(Span::from_millis(100));
    let options = weir_sim::Options { seed: 1, every, ..weir_sim::Options::default() };
    Ok(weir_sim::simulate(&layout, placed, &options)?)
}

fn really(case: &Case, backend: Option<&Peer>) -> Result<RunReport, Failure> {
    let runtime = Span::from_secs(12);
    let (layout, placed) = prepare(&case.layout(backend), &case.job(runtime, Span::ZERO))?;
    let folder = tempfile::tempdir()?;
    let listen = vec![Address::Unix(folder.path().join("nbd"))];
    let options = weir_server::Options { listen, ..weir_server::Options::default() };
    let server = Server::start(layout, None, &options)?;
    let uri = server.uris().get("v").and_then(|uris| uris.first()).cloned().unwrap_or_default();
    let uris = [Uri::from_str(&uri)?];
    let record_windows = Some(Span::from_secs(1));
    let options = RunOptions { uris: &uris, seed: 1, record_windows, stop: None };
    let report = weir_runner::run(placed, &options);
    server.stop()?;
    Ok(report?)
}

/// Measures each case by `run`, without the first `skip` windows.
fn measure(
    title: &str,
    cases: Vec<Case>,
    skip: usize,
    run: impl Fn(&Case) -> Result<RunReport, Failure>,
) -> Result<Table, Failure> {
    let heads = [
        "limits",
        ">block",
        ">depth",
        ">jobs",
        ">reads %",
        ">expected IOPS",
        ">mean error %",
        ">worst window %",
        ">worst window, requests",
    ];
    let mut table = Table::new(title, &heads);
    let (mut means, mut worst_of_all) = (Vec::new(), 0.0_f64);
    for case in cases {
        let (mean, worst, requests) = errors(&run(&case)?, case.expect, skip);
        let limits = match case.host.as_str() {
            "" => case.volume.clone(),
            host => format!("{} in {host}", case.volume),
        };
        table.row(cells![
            limits,
            weir_units::Bytes::new(case.block).to_string(),
            case.depth.to_string(),
            case.jobs.to_string(),
            case.reads.to_string(),
            format!("{:.1}", case.expect),
            format!("{:+.3}", mean * 100.0),
            format!("{:.3}", worst * 100.0),
            format!("{requests:.1}"),
        ]);
        means.push(mean.abs());
        worst_of_all = worst_of_all.max(worst);
    }
    let count = float(means.len() as u64);
    table.notes.push(format!(
        "over all: mean error {:.3} %, worst window {:.3} %",
        means.iter().sum::<f64>() / count * 100.0,
        worst_of_all * 100.0
    ));
    Ok(table)
}

fn main() -> Result<(), Failure> {
    let mode = match std::env::args().nth(1).as_deref() {
        Some("virtual") | None => Mode::Virtual,
        Some("wall") => Mode::Wall,
        Some("backends") => Mode::Backends,
        Some(other) => return Err(format!("{other:?}: say virtual, wall or backends").into()),
    };
    let only = std::env::args().nth(2).unwrap_or_default();
    let chosen = |mut cases: Vec<Case>| {
        cases.retain(|case| case.volume.contains(&only));
        cases
    };
    // The first windows hold the start of the jobs and of the memory.
    let tables = match mode {
        Mode::Virtual => {
            vec![measure("virtual, windows of 100 ms", chosen(cases(false)), 1, virtually)?]
        }
        Mode::Wall => {
            let run = |case: &Case| really(case, None);
            vec![measure("wall, windows of 1 s", chosen(cases(true)), 2, run)?]
        }
        Mode::Backends => {
            let folder = tempfile::tempdir()?;
            let mut tables = Vec::new();
            for name in ["nbdkit", "qemu-storage-daemon"] {
                let peer = backend(name, folder.path())?;
                let title = format!("on {name}, windows of 1 s");
                let run = |case: &Case| really(case, Some(&peer));
                tables.push(measure(&title, chosen(cases_on_backends()), 2, run)?);
            }
            tables
        }
    };
    print!("{}", Listing(tables).render(Format::Markdown));
    Ok(())
}
