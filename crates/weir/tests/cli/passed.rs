//! Sockets that another program listens on and passes to the server, as systemd does.

use crate::common::{Place, Server, run};
use crate::tools::{self, needs};
use serde_json::Value;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::process::Command;

const LAYOUT: &str = "[[volume]]\nname = \"a\"\nsize = \"8 MiB\"\nunlimited = true\n\
    [[volume]]\nname = \"b\"\nsize = \"1 MiB\"\nunlimited = true\n";
/// Starts a program with its standard input as the socket that is passed.
const PASS: &str = "exec 3<&0 0</dev/null; export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$@\"";

/// Returns the command of a server that is passed `socket`.
fn passing(place: &Place, socket: OwnedFd, args: &[&str]) -> Command {
    place.file("layout.toml", LAYOUT);
    let weir = place.weir(&[]);
    let mut command = Command::new("sh");
    command.args(["-c", PASS, "sh"]).arg(weir.get_program());
    command.args(["serve", "layout.toml", "--nbd", "systemd", "--data", "data"]).args(args);
    command.current_dir(place.dir());
    command.envs(weir.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(socket).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
    command
}

#[test]
fn a_passed_socket_outlives_the_server_and_is_passed_to_the_next() {
    let place = Place::new();
    let socket = UnixListener::bind(place.path("nbd.sock")).expect("a socket");
    let pass = || OwnedFd::from(socket.try_clone().expect("a socket"));
    let server = Server::start(passing(&place, pass(), &[]));
    let mut client = place.open("a");
    client.write(4096, b"kept").expect("a write");
    client.flush().expect("a flush");
    drop(client);
    server.stop();
    // A client that comes in between waits for the next server.
    let waiting = std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut found = [0; 4];
            place.open("a").read(4096, &mut found).expect("a read");
            found
        });
        let server = Server::start(passing(&place, pass(), &[]));
        let found = client.join().expect("a client");
        server.stop();
        found
    });
    assert_eq!(&waiting, b"kept");
    assert!(place.path("nbd.sock").exists());
}

#[test]
fn a_passed_socket_that_others_reach_is_said() {
    let place = Place::new();
    let socket = TcpListener::bind("0.0.0.0:0").expect("a socket");
    let port = socket.local_addr().expect("an address").port();
    let server = Server::start(passing(&place, OwnedFd::from(socket), &[]));
    let warns = format!("tcp:0.0.0.0:{port}: other machines can read and write all volumes there");
    assert!(server.said.contains(&warns), "{}", server.said);
    server.stop();
}

#[test]
fn what_is_not_a_listening_stream_socket_is_refused() {
    let place = Place::new();
    let null = std::fs::File::open("/dev/null").expect("a file");
    let (connected, _other) = std::os::unix::net::UnixStream::pair().expect("sockets");
    let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let cases = [
        (OwnedFd::from(null), "socket 1 cannot be used: fd 3 is not a socket"),
        (OwnedFd::from(connected), "socket 1 is not listened on"),
        (OwnedFd::from(datagrams), "socket 1 cannot be used: fd 3 is not a valid tcp socket"),
    ];
    for (socket, reason) in cases {
        let (_, stderr, code) = run(passing(&place, socket, &[]));
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(reason) && stderr.contains("Accept=no"), "{stderr}");
        assert!(!place.path("data").exists(), "it leaves nothing behind");
    }
    let (_, stderr, code) = run(place.weir(&["serve", "layout.toml", "--nbd", "systemd"]));
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("no socket was passed"), "{stderr}");
}

/// libnbd passes a socket to a server that it starts.
#[test]
fn libnbd_starts_the_server_in_brackets() {
    needs!("nbdinfo", "nbdcopy");
    let place = Place::new();
    place.file("layout.toml", LAYOUT);
    let content: Vec<u8> = (0..1_u64 << 20).flat_map(|n| n.to_le_bytes()).collect();
    std::fs::write(place.path("content"), &content).expect("a file");
    let weir = place.weir(&[]).get_program().to_string_lossy().into_owned();
    let client = |program: &str, before: &[&str], after: &[&str]| {
        let server = ["[", &weir, "serve", "layout.toml", "--nbd", "systemd"];
        let rest = ["--control", "control.sock", "--data", "data", "]"];
        let mut command = Command::new(program);
        command.args([before, &server, &rest, after].concat()).current_dir(place.dir());
        let (stdout, stderr, code) = run(command);
        assert_eq!(code, Some(0), "{program}\n{stdout}{stderr}");
        stdout
    };
    client("nbdcopy", &["--flush", "--", "content"], &[]);
    client("nbdcopy", &["--"], &["copied"]);
    assert!(std::fs::read(place.path("copied")).expect("a file") == content);
    let listed = client("nbdinfo", &["--json", "--list", "--"], &[]);
    // The server's own lines come first.
    let json = listed.find("{\n").map_or("", |start| &listed[start..]);
    let listed: Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(listed["exports"].as_array().map(Vec::len), Some(2), "{listed}");
}
