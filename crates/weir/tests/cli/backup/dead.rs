//! Ctrl-C while a server or an endpoint says nothing any more.

use super::{Rig, pattern};
use crate::common::{Place, Server};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::net::UnixListener;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use weir_server::control::{Request, ask};

/// A command ends well before any of its timeouts.
const LIMIT: Duration = Duration::from_secs(8);

fn start(rig: &Rig, args: &str) -> Child {
    rig.weir(args).stderr(Stdio::null()).stdout(Stdio::null()).spawn().expect("a program")
}

/// Interrupts a command, which ends with the exit code of Ctrl-C.
#[track_caller]
fn interrupt(mut child: Child, args: &str) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process");
    assert_eq!(child.try_wait().expect("a state"), None, "{args}: it ended too early");
    kill_process(pid, Signal::INT).expect("it runs");
    #[expect(clippy::disallowed_methods, reason = "it must end long before its timeouts")]
    let start = Instant::now();
    while child.try_wait().expect("a state").is_none() {
        if start.elapsed() > LIMIT {
            drop(child.kill());
            panic!("{args}: it waits on");
        }
        std::thread::yield_now();
    }
    assert_eq!(child.wait().expect("an end").code(), Some(130), "{args}");
}

/// A server whose volumes take a second for each MiB.
fn slow() -> (Place, Server) {
    let place = Place::without_a_disk();
    let volume = |name: &str| {
        format!(
            "[[volume]]\nname = \"{name}\"\nsize = \"64 MiB\"\nlimits = {{ throughput = \"1 MiB/s\" }}\n"
        )
    };
    let server = place.serve(&["data", "raw"].map(volume).concat(), &["--data", "d"]);
    (place, server)
}

/// Returns the bytes that were read from and written to the volumes of a server.
fn moved(place: &Place) -> u64 {
    let status = ask(&place.path("control.sock"), &Request::Status).expect("a status");
    let volumes = status["hosts"][0]["volumes"].as_array().expect("volumes").iter();
    let bytes = |own: &serde_json::Value| {
        own["write_bytes"].as_u64().expect("bytes") + own["read_bytes"].as_u64().expect("bytes")
    };
    volumes.map(bytes).sum()
}

#[test]
fn ctrl_c_ends_the_wait_for_a_server_that_does_not_shake_hands() {
    let rig = Rig::new();
    rig.backup("data --to b --name sales");
    let socket = rig.place.path("dead.sock");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let uri = format!("nbd+unix:///x?socket={}", socket.display());
    for args in [
        format!("backup run {uri} --to b"),
        format!("backup run data --to {uri}"),
        format!("backup run data --to b --differential --from {uri}"),
        format!("backup verify x --from {uri}"),
        format!("restore x --from {uri} --image i"),
        format!("restore sales --from b --to {uri} --force"),
    ] {
        let child = start(&rig, &args);
        let (stream, _) = listener.accept().expect("a connection");
        interrupt(child, &args);
        drop(stream);
    }
    assert!(!rig.place.path("i").exists());
    assert_eq!(rig.files("b").len(), 1, "{:?}", rig.files("b"));
}

#[test]
fn ctrl_c_ends_the_wait_for_a_server_that_stops_in_the_middle() {
    let rig = Rig::new();
    rig.backup("data --to b --name sales");
    let (other, server) = slow();
    other.open("data").write(0, &pattern(8, 2 << 20)).expect("a write");
    let uri =
        |name: &str| format!("nbd+unix:///{name}?socket={}", other.path("nbd.sock").display());
    for args in [
        format!("backup run {} --to c", uri("data")),
        format!("backup run data --to {}", uri("raw")),
        format!("restore sales --from b --to {} --force", uri("data")),
    ] {
        let before = moved(&other);
        let child = start(&rig, &args);
        while moved(&other) < before + (64 << 10) {
            std::thread::yield_now();
        }
        server.signal(Signal::STOP);
        interrupt(child, &args);
        server.signal(Signal::CONT);
    }
    // Nothing looks like a backup, and the next ones are as good as any.
    assert_eq!(rig.files("c"), [""; 0]);
    let list = rig.weir(&format!("backup list {} -o json", uri("raw"))).output().expect("a list");
    assert!(!String::from_utf8_lossy(&list.stdout).contains("\"complete\""));
    fs::create_dir(rig.place.path("e")).expect("a folder");
    rig.backup("data --to e --verify");
    drop(server);
}
