//! Weir beside nbdkit and qemu-storage-daemon over a Unix socket, in turn: 4 KiB
//! random reads at depths 32 and 256, 4 KiB random writes, volumes without limits,
//! in memory. Driven by fio's nbd engine, and by Weir's runner, which needs less of
//! its core for a request and so shows more of the servers. Prints medians, the
//! spread, CPU seconds of the server per million requests, and the ratio pair by
//! pair.
//!
//! ```console
//! $ cargo build --release && cargo run --release -p weir-bench --bin peers -- [ROUNDS] [OTHER_WEIR]
//! ```
//!
//! `OTHER_WEIR` is a second binary to run beside the others, of another profile or version.
//! Needs fio, nbdkit and qemu-storage-daemon (Debian: fio nbdkit qemu-system-common).

#![expect(clippy::print_stdout, reason = "it is a program that prints a table")]
#![expect(clippy::print_stderr, reason = "it says what it is doing")]

use std::path::{Path, PathBuf};
use std::process::Command;
use weir_bench::peer::Peer;
use weir_bench::{Failure, fio, median, range};
use weir_proto::Uri;
use weir_report::cells;
use weir_report::number::rate;
use weir_report::table::{Listing, Table};
use weir_report::{Format, Report};
use weir_runner::RunOptions;
use weir_units::Bytes;
use weir_workload::{Device, Isolated, place};

/// The result of one run.
struct Run {
    iops: f64,
    cpu_per_million: f64,
}

fn peers(folder: &Path, other: Option<&Path>) -> Result<Vec<Peer>, Failure> {
    let socket = |name: &str| folder.join(name).display().to_string();
    let layout = folder.join("layout.toml");
    std::fs::write(&layout, "[[volume]]\nname = \"v\"\nunlimited = true\nsize = \"1 GiB\"\n")?;
    let own = std::env::current_exe()?;
    let weir = own.with_file_name("weir");
    if !weir.exists() {
        return Err(format!("{} is missing; cargo build --release first", weir.display()).into());
    }
    let serve = |binary: &Path, name: &str| {
        let mut serve = Command::new(binary);
        serve.arg("serve").arg(&layout).arg("--nbd").arg(format!("unix:{}", socket(name)));
        serve.arg("--control").arg(folder.join(format!("{name}-control")));
        serve
    };
    let mut nbdkit = Command::new("nbdkit");
    nbdkit.args(["-f", "-U", &socket("nbdkit"), "memory", "1G"]);
    // A file on tmpfs, which is what this daemon offers nearest to memory.
    let image = PathBuf::from(format!("/dev/shm/weir-peers-{}.img", std::process::id()));
    std::fs::File::create(&image)?.set_len(1 << 30)?;
    let mut daemon = Command::new("qemu-storage-daemon");
    daemon.args([
        "--blockdev",
        &format!("driver=file,node-name=f,filename={}", image.display()),
        "--nbd-server",
        &format!("addr.type=unix,addr.path={}", socket("qemu-storage-daemon")),
        "--export",
        "type=nbd,id=e,node-name=f,name=v,writable=on",
    ]);
    let mut started = vec![
        Peer::start("weir", folder, &mut serve(&weir, "weir"), "v")?,
        Peer::start("nbdkit", folder, &mut nbdkit, "")?,
        Peer::start("qemu-storage-daemon", folder, &mut daemon, "v")?,
    ];
    if let Some(other) = other {
        started.push(Peer::start("other-weir", folder, &mut serve(other, "other-weir"), "v")?);
    }
    // It is open by now, and goes with its last user.
    std::fs::remove_file(image)?;
    Ok(started)
}

fn fio(peer: &Peer, folder: &Path, rw: &str, depth: u32, seconds: u32) -> Result<Run, Failure> {
    let before = peer.cpu_seconds()?;
    let job = fio::Job { uri: &peer.uri, rw, block: "4k", depth, seconds };
    let ran = fio::run(&job, folder)?;
    let cpu = peer.cpu_seconds()? - before;
    Ok(Run { iops: ran.iops, cpu_per_million: cpu / ran.requests * 1e6 })
}

fn runner(peer: &Peer, rw: &str, depth: u32, seconds: u32) -> Result<Run, Failure> {
    let jobs = format!(
        "[x]\nfilename=v\nrw={rw}\nbs=4k\ntime_based\nsize=256m\niodepth={depth}\nioengine=libaio\n\
         runtime={seconds}\n"
    );
    let jobs = weir_workload::fio::parse("peers.fio", &jobs, &Isolated)?;
    let device = Device { name: "v".to_owned(), size: Bytes::gib(1) };
    let placed = place(&jobs, &[device], &[])?;
    let uris = [peer.uri.parse::<Uri>()?];
    let before = peer.cpu_seconds()?;
    let options = RunOptions { uris: &uris, seed: 1, ..RunOptions::default() };
    let iops = weir_runner::run(placed, &options)?.iops();
    let cpu = peer.cpu_seconds()? - before;
    Ok(Run { iops, cpu_per_million: cpu / (iops * f64::from(seconds)) * 1e6 })
}

fn main() -> Result<(), Failure> {
    let rounds: u32 = std::env::args().nth(1).map_or(Ok(5), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let other = std::env::args_os().nth(2).map(PathBuf::from);
    let peers = peers(folder.path(), other.as_deref())?;
    for peer in &peers {
        // So that all have their memory.
        fio(peer, folder.path(), "randwrite", 32, 2)?;
    }
    let heads = [
        "client",
        "workload",
        "server",
        ">median IOPS",
        ">least",
        ">most",
        ">CPU s per million",
        ">Weir's ratio, median",
        ">least",
        ">most",
    ];
    let mut table = Table::new("", &heads);
    let workloads = [("randread", 32), ("randread", 256), ("randwrite", 32)];
    let clients = ["fio", "Weir's runner"];
    for (client, (rw, depth)) in clients.into_iter().flat_map(|c| workloads.map(|w| (c, w))) {
        let mut runs: Vec<Vec<Run>> = peers.iter().map(|_| Vec::new()).collect();
        for round in 0..rounds {
            eprintln!("{client}, {rw} at depth {depth}, round {} of {rounds}", round + 1);
            // In turn forwards and backwards, so that no server always follows the same one.
            let mut order: Vec<_> = peers.iter().zip(&mut runs).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for (peer, runs) in order {
                runs.push(match client {
                    "fio" => fio(peer, folder.path(), rw, depth, 3)?,
                    _ => runner(peer, rw, depth, 3)?,
                });
            }
        }
        for (peer, own) in peers.iter().zip(&runs) {
            let iops: Vec<f64> = own.iter().map(|run| run.iops).collect();
            let ratios: Vec<f64> = runs[0].iter().zip(own).map(|(w, o)| w.iops / o.iops).collect();
            let (iops_range, ratio_range) = (range(&iops), range(&ratios));
            table.row(cells![
                client.to_owned(),
                format!("{rw} 4 KiB, depth {depth}"),
                peer.name.to_owned(),
                rate(median(iops)),
                rate(iops_range.0),
                rate(iops_range.1),
                format!("{:.2}", median(own.iter().map(|run| run.cpu_per_million).collect())),
                format!("{:.2}", median(ratios)),
                format!("{:.2}", ratio_range.0),
                format!("{:.2}", ratio_range.1),
            ]);
        }
    }
    print!("{}", Listing(vec![table]).render(Format::Markdown));
    Ok(())
}
