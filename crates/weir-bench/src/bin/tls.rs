//! Weir beside nbdkit over TCP on loopback, in plain text and with TLS, in turn: `nbdcopy` reads and
//! writes 256 MiB in memory with 32 requests of 4 KiB in flight, and reads it with 16 of 1 MiB. Prints
//! medians, their spread, and ratios round by round.
//!
//! ```console
//! $ cargo build --release && cargo run --release -p weir-bench --bin tls -- [ROUNDS]
//! ```
//!
//! Needs nbdcopy and nbdkit (Debian: libnbd-bin nbdkit).

#![expect(clippy::print_stdout, reason = "it is a program that prints a table")]
#![expect(clippy::print_stderr, reason = "it says what it is doing")]

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use weir_bench::peer::Peer;
use weir_bench::{Failure, median, range};
use weir_report::cells;
use weir_report::number::rate;
use weir_report::table::{Listing, Table};
use weir_report::{Format, Report};
use weir_wall::Clock;

/// Bytes that are copied.
const SIZE: u64 = 256 << 20;

/// The servers, in pairs: in plain text, then with TLS.
const NAMES: [&str; 4] = ["weir", "weir, TLS", "nbdkit", "nbdkit, TLS"];

/// Starts a server. Clients and servers have certificates in `pki`.
fn start(name: &'static str, weir: &Path, folder: &Path) -> Result<Peer, Failure> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let pki = folder.join("pki").display().to_string();
    let is_encrypted = name.ends_with("TLS");
    let mut command;
    if name.starts_with("weir") {
        command = Command::new(weir);
        command.arg("serve").arg(folder.join("layout.toml"));
        command.arg("--nbd").arg(format!("tcp:127.0.0.1:{port}"));
        command.arg("--control").arg(folder.join(format!("control-{port}")));
        if is_encrypted {
            command.args(["--tls-certificates", &pki, "--tls-verify-peer"]);
        }
    } else {
        command = Command::new("nbdkit");
        command.args(["-f", "-i", "127.0.0.1", "-p", &port.to_string()]);
        if is_encrypted {
            let pki = format!("--tls-certificates={pki}");
            command.args(["--tls=require", &pki, "--tls-verify-peer"]);
        }
        command.args(["memory", "256M"]);
    }
    let uri = match is_encrypted {
        true => format!("nbds://localhost:{port}/?tls-certificates={pki}"),
        false => format!("nbd://localhost:{port}/"),
    };
    Peer::start_at((name, uri), &mut command, || TcpStream::connect(("127.0.0.1", port)).is_ok())
}

/// Copies with a number of requests of one size in flight. Returns requests per second.
fn copy(from: &str, to: &str, requests: u32, size: u64) -> Result<f64, Failure> {
    let clock = Clock::start();
    let status = Command::new("nbdcopy")
        .args(["--connections=1", &format!("--requests={requests}")])
        .arg(format!("--request-size={size}"))
        .args([from, to])
        .status()?;
    if !status.success() {
        return Err(format!("nbdcopy {from} {to}: {status}").into());
    }
    #[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
    let (count, nanos) = ((SIZE / size) as f64, clock.now().nanos() as f64);
    Ok(count / nanos * 1e9)
}

fn main() -> Result<(), Failure> {
    let rounds: u32 = std::env::args().nth(1).map_or(Ok(5), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let weir = std::env::current_exe()?.with_file_name("weir");
    let layout = "[host]\nunlimited = true\n[[volume]]\nname = \"v\"\nunlimited = true\nsize = \"256 MiB\"\n";
    std::fs::write(folder.path().join("layout.toml"), layout)?;
    let mut cert = Command::new(&weir);
    cert.arg("cert").arg(folder.path().join("pki")).args(["--nbd", "--name", "localhost"]);
    if !cert.output()?.status.success() {
        return Err("weir cert failed; cargo build --release first".into());
    }
    let file = folder.path().join("data");
    let content: Vec<u8> = (0..SIZE / 8).flat_map(|n| (n | 1 << 63).to_le_bytes()).collect();
    std::fs::write(&file, content)?;
    let file = file.display().to_string();
    let peers = NAMES.map(|name| start(name, &weir, folder.path()));
    let peers = peers.into_iter().collect::<Result<Vec<_>, _>>()?;
    for peer in &peers {
        // So that all have their memory.
        copy(&file, &peer.uri, 16, 1 << 20)?;
    }
    let heads = [
        "workload",
        "server",
        ">median /s",
        ">least",
        ">most",
        ">ratio to plain text",
        ">least",
        ">most",
    ];
    let mut table = Table::new("", &heads);
    let workloads = [
        ("reads of 4 KiB, depth 32", 32, 4096, true),
        ("writes of 4 KiB, depth 32", 32, 4096, false),
        ("reads of 1 MiB, depth 16", 16, 1 << 20, true),
    ];
    for (workload, requests, size, reads) in workloads {
        let mut runs: Vec<Vec<f64>> = peers.iter().map(|_| Vec::new()).collect();
        for round in 0..rounds {
            eprintln!("{workload}, round {} of {rounds}", round + 1);
            for (peer, runs) in peers.iter().zip(&mut runs) {
                let (from, to) = match reads {
                    true => (peer.uri.as_str(), "null:"),
                    false => (file.as_str(), peer.uri.as_str()),
                };
                runs.push(copy(from, to, requests, size)?);
            }
        }
        for (at, peer) in peers.iter().enumerate() {
            let plain = &runs[at / 2 * 2];
            let ratios: Vec<f64> =
                runs[at].iter().zip(plain).map(|(own, plain)| own / plain).collect();
            let (own, ratio) = (range(&runs[at]), range(&ratios));
            table.row(cells![
                workload,
                peer.name,
                rate(median(runs[at].clone())),
                rate(own.0),
                rate(own.1),
                format!("{:.2}", median(ratios)),
                format!("{:.2}", ratio.0),
                format!("{:.2}", ratio.1),
            ]);
        }
    }
    print!("{}", Listing(vec![table]).render(Format::Markdown));
    Ok(())
}
