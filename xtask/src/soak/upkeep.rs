//! Upkeep beside the clients: backups, changes of volumes, polls, and clients that break off.

use super::shared::{Shared, count};
use crate::blob_client::exchange;
use crate::interrupt::in_own_group;
use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::Arc;
use std::thread::JoinHandle;
use weir_random::Rng;
use weir_server::control::{Request, ask};
use weir_units::Bytes;

/// Times between two of their kind, in milliseconds.
const BACKUP: u64 = 4000;
const CHANGE: u64 = 700;
const POLL: u64 = 500;
const BREAK: u64 = 150;

/// Something that is done again and again.
type Part = fn(&Shared, &mut Rng) -> Result<(), String>;

/// Starts the threads.
pub(super) fn start(shared: &Arc<Shared>, rng: &mut Rng) -> Vec<JoinHandle<()>> {
    let parts: [(&'static str, u64, Part); 4] = [
        ("backups", BACKUP, back_up),
        ("changes", CHANGE, change),
        ("polls", POLL, poll),
        ("clients that break off", BREAK, break_off),
    ];
    let mut threads = Vec::new();
    for (name, every, part) in parts {
        let (own, mut rng) = (Arc::clone(shared), Rng::new(&[rng.next_u64()]));
        threads.push(shared.spawn(name, move || {
            while !own.is_over() {
                part(&own, &mut rng)?;
                own.rest(every);
            }
            Ok(())
        }));
    }
    threads
}

/// Backs up volumes as of one instant, verifies the backup and removes it.
fn back_up(shared: &Shared, _: &mut Rng) -> Result<(), String> {
    let to = shared.folder.join("backups");
    fs::create_dir(&to).map_err(|error| error.to_string())?;
    let place = to.display().to_string();
    let control = shared.folder.join("control").display().to_string();
    let run = ["backup", "run", "plain", "striped", "--to", &place, "--control", &control];
    succeed(shared, &run)?;
    succeed(shared, &["backup", "verify", &place])?;
    count(&shared.counts.backups);
    fs::remove_dir_all(&to).map_err(|error| error.to_string())
}

fn succeed(shared: &Shared, args: &[&str]) -> Result<(), String> {
    let mut command = in_own_group(&shared.weir);
    command.args(args).stdin(Stdio::null());
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("weir {}: {}: {said}", args.join(" "), output.status))
}

/// Resizes a volume beyond the blocks that are compared, or changes a cache mode.
fn change(shared: &Shared, rng: &mut Rng) -> Result<(), String> {
    let request = if rng.flip() {
        let size = Bytes::new((32 + rng.below(4)) << 20);
        Request::Resize { volume: "read-cached".to_owned(), size }
    } else {
        let mode = (*rng.one(&["none", "read-only", "read-write"])).to_owned();
        Request::SetCache { volume: "cached".to_owned(), mode }
    };
    control(shared, &request)?;
    count(&shared.counts.changes);
    Ok(())
}

/// Asks for the status, the live page and the metrics.
fn poll(shared: &Shared, _: &mut Rng) -> Result<(), String> {
    control(shared, &Request::Status)?;
    let port = shared.ports.0;
    for path in ["/", "/metrics"] {
        let head =
            format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n");
        let status = exchange(port, head.as_bytes(), &[])?.status;
        if status != 200 {
            return Err(format!("GET {path}: {status}"));
        }
    }
    count(&shared.counts.polls);
    Ok(())
}

fn control(shared: &Shared, request: &Request) -> Result<(), String> {
    let answer = ask(&shared.folder.join("control"), request);
    answer.map(drop).map_err(|error| format!("{request:?}: {error}"))
}

/// Connects to one of the sockets, sends some bytes that mean nothing or not yet, and leaves.
fn break_off(shared: &Shared, rng: &mut Rng) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let words: [&[u8]; 4] = [b"", b"\0\0\0\x03IHAVEOPT\0\0", b"GET / HT", b"{\"stat"];
    let words = *rng.one(&words);
    let path = |name: &str| shared.folder.join(name);
    // The server may have closed the connection before it has read everything.
    match rng.below(4) {
        0 => drop(UnixStream::connect(path("nbd")).map_err(failed)?.write_all(words)),
        1 => drop(UnixStream::connect(path("control")).map_err(failed)?.write_all(words)),
        side => {
            let port = if side == 2 { shared.ports.0 } else { shared.ports.1 };
            let stream = TcpStream::connect(("127.0.0.1", port)).map_err(failed);
            drop(stream?.write_all(words));
        }
    }
    Ok(())
}
