//! Clients that stall, flood or vanish, and a disk without space.

use super::Rig;
use super::client::{Client, KEY, read_answer};
use crate::common::{Place, Server};
use crate::tools::{self, needs};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const BLOB: &str = "/safe/blob";

fn rig() -> Rig {
    let layout = format!(
        "[host]\nunlimited = true\n[blob]\n[[blob.account]]\nname = \"second\"\nkey = \"{KEY}\"\n"
    );
    let rig = Rig::new(Place::without_a_disk(), &layout, &[]);
    for client in [&rig.client, &rig.client.of_account("second")] {
        client.container("safe");
        client.page_blob(BLOB, 64 << 20);
    }
    rig
}

/// The head of a write of `len` bytes of pages.
fn write_head(client: &Client, len: usize, connection: &str) -> String {
    let range = format!("bytes=0-{}", len - 1);
    let headers = [("x-ms-page-write", "update"), ("x-ms-range", &*range)];
    client.head(("PUT", &format!("{BLOB}?comp=page")), &headers, len, connection)
}

#[test]
fn uploads_that_stall_stop_no_other_account() {
    let rig = rig();
    let head = write_head(&rig.client, 4 << 20, "");
    let stalled: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = rig.client.connect();
            stream.write_all(head.as_bytes()).expect("the server listens");
            stream
        })
        .collect();
    // The server has begun with them once they fill the budget of their address.
    let other = rig.client.of_account("second");
    for n in 0..8 {
        other.put(BLOB, n << 22, &vec![2; 4 << 20]);
    }
    assert_eq!(other.get(BLOB, 0, 512), [2; 512]);
    // Nor reads of their own account.
    assert_eq!(rig.client.get(BLOB, 0, 512), [0; 512]);
    drop(stalled);
    rig.client.put(BLOB, 0, &vec![1; 4 << 20]);
}

#[test]
fn downloads_that_nobody_takes_stop_no_other_account() {
    let rig = rig();
    let head = rig.client.head(("GET", BLOB), &[], 0, "");
    let deaf: Vec<TcpStream> = (0..100)
        .map(|_| {
            let mut stream = rig.client.connect();
            stream.write_all(head.as_bytes()).expect("the server listens");
            stream
        })
        .collect();
    let other = rig.client.of_account("second");
    assert_eq!(other.get(BLOB, 0, 32 << 20).len(), 32 << 20);
    drop(deaf);
    assert_eq!(rig.client.get(BLOB, 0, 32 << 20).len(), 32 << 20);
}

#[test]
fn a_client_that_has_closed_its_side_gets_its_answers() {
    let rig = rig();
    for _ in 0..20 {
        let mut stream = rig.client.connect();
        stream.write_all(write_head(&rig.client, 4096, "").as_bytes()).expect("sent");
        stream.write_all(&[3; 4096]).expect("sent");
        stream.shutdown(Shutdown::Write).expect("its side");
        assert_eq!(read_answer(stream, false).expect("an answer").status, 201);
    }
    let mut stream = rig.client.connect();
    let one = rig.client.head(("GET", &format!("{BLOB}?comp=metadata")), &[], 0, "");
    let all = one.repeat(1000);
    let mut sending = stream.try_clone().expect("a socket");
    let sending = std::thread::spawn(move || {
        sending.write_all(all.as_bytes()).expect("sent");
        sending.shutdown(Shutdown::Write).expect("its side");
    });
    let mut answers = String::new();
    stream.read_to_string(&mut answers).expect("text");
    sending.join().expect("sent");
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 1000);
}

#[test]
fn a_body_that_is_refused_for_its_size_gets_its_status() {
    let rig = rig();
    let len = 48 << 20;
    let mut stream = rig.client.connect();
    stream.write_all(write_head(&rig.client, len, "").as_bytes()).expect("sent");
    // The whole body is sent before anything is read.
    stream.write_all(&vec![0; len]).expect("the server takes what it refuses");
    let answer = read_answer(stream, false).expect("an answer");
    assert_eq!((answer.status, answer.code()), (413, "RequestBodyTooLarge"));
    assert_eq!(answer.headers["connection"], "close");
}

#[test]
fn a_name_with_a_percent_sign_that_escapes_nothing_is_refused() {
    let rig = rig();
    let refused = rig.client.ask("HEAD", "/safe/%zz", &[], &[]);
    assert_eq!((refused.status, refused.code()), (400, "InvalidUri"));
}

/// The resident memory of a process in KiB.
fn memory(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id()));
    let status = status.expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn idle_connections_are_cheap_and_make_room() {
    let rig = rig();
    let before = memory(&rig.server);
    let idle: Vec<TcpStream> = (0..1000).map(|_| rig.client.connect()).collect();
    // Those are accepted before this one.
    assert_eq!(rig.client.get(BLOB, 0, 512), [0; 512]);
    let silent = memory(&rig.server) - before;
    assert!(silent < 16 << 10, "{silent} KiB for 1,000 connections that said nothing");
    let one = rig.client.head(("HEAD", BLOB), &[], 0, "");
    for mut stream in &idle {
        stream.write_all(one.as_bytes()).expect("the server listens");
        let mut answer = [0; 15];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 200 OK");
    }
    let used = memory(&rig.server) - before;
    assert!(used < 64 << 10, "{used} KiB for 1,000 connections that were used");
    // At the limit of an address the oldest idle ones make room.
    let more: Vec<TcpStream> = (0..100).map(|_| rig.client.connect()).collect();
    assert_eq!(rig.client.get(BLOB, 0, 512), [0; 512]);
    let mut rest = Vec::new();
    let mut oldest = &idle[0];
    oldest.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    oldest.read_to_end(&mut rest).expect("it is closed");
    drop((idle, more));
}

/// A file system of 32 MiB that lives until this is dropped.
struct SmallDisk(Child);

impl SmallDisk {
    fn new(place: &Place) -> Self {
        std::fs::create_dir(place.path("small")).expect("a folder");
        let script = "mount -t tmpfs -o size=32m none small && echo mounted && exec sleep 3600";
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", script]).current_dir(place.dir());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("a program");
        let mut said = [0; 8];
        child.stdout.as_mut().expect("a pipe").read_exact(&mut said).expect("it is mounted");
        Self(child)
    }

    /// The command with which another one runs where the file system is mounted.
    fn command(&self, place: &Place, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--preserve-credentials", "--user", "--mount", "--target"]);
        // The folder has to be entered there: its path leads past the mount from here.
        let script = "cd \"$0\" && exec \"$@\"";
        command.arg(self.0.id().to_string()).args(["sh", "-c", script]).arg(place.dir());
        command.arg(program).env("WEIR_CONTROL", "control.sock");
        command
    }

    fn serve(&self, place: Place) -> Rig {
        let weir = place.weir(&[]);
        let mut command = self.command(&place, &weir.get_program().to_string_lossy());
        command.args(["serve", "layout.toml", "--nbd", "unix:nbd.sock", "--blob", "127.0.0.1:0"]);
        command.args(["--data", "small/data"]);
        let out = std::fs::File::create(place.path("out")).expect("a file");
        command.stdout(out).stderr(Stdio::piped());
        let server = Server::start(command);
        let said = std::fs::read_to_string(place.path("out")).expect("text");
        let url = said.lines().find_map(|line| line.strip_prefix("blobs ")).expect("blobs");
        let client = Client::new(url);
        Rig { place, server, client }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const FULL: &str = "the disk of the data folder is full: reads and deletes are served, and nothing else \
                    until there is space";

#[test]
fn blobs_are_served_on_a_full_disk_and_can_be_deleted() {
    needs!("unshare", "mount", "nsenter");
    let place = Place::new();
    place.file("layout.toml", "[host]\nunlimited = true\n[blob]\n");
    let disk = SmallDisk::new(&place);
    let rig = disk.serve(place);
    rig.client.container("safe");
    for blob in ["/safe/kept", "/safe/gone"] {
        rig.client.page_blob(blob, 16 << 20);
        (0..2).for_each(|n| rig.client.put(blob, n << 22, &vec![5; 4 << 20]));
    }
    let Rig { place, server, .. } = rig;
    server.stop();
    // Nothing of the disk is left. Another disk would take this much.
    let mut fill = disk.command(&place, "sh");
    fill.args(["-c", "head -c 64M /dev/zero >small/rest"]).stderr(Stdio::null());
    assert!(!fill.status().expect("a shell").success());

    let rig = disk.serve(place);
    assert!(rig.server.said.contains(&format!("weir: blobs: {FULL}\n")), "{}", rig.server.said);
    assert_eq!(rig.client.get("/safe/kept", 0, 4 << 20), vec![5; 4 << 20]);
    let refused = rig.client.ask("PUT", "/other?restype=container", &[], &[]);
    assert_eq!((refused.status, refused.code()), (500, "InternalError"));
    assert!(refused.text().contains(FULL), "{}", refused.text());
    // These pages have their space.
    rig.client.put("/safe/kept", 4096, &[7; 512]);
    assert_eq!(rig.client.get("/safe/kept", 4096, 512), [7; 512]);
    rig.client.must("DELETE", "/safe/gone", &[], &[]);
    // There is space now.
    rig.client.container("other");
    rig.client.put("/safe/kept", 0, &[6; 512]);
    let Rig { place, server, .. } = rig;
    server.stop();
    let rig = disk.serve(place);
    assert!(!rig.server.said.contains(FULL), "{}", rig.server.said);
    assert_eq!(rig.client.ask("HEAD", "/safe/gone", &[], &[]).status, 404);
    assert_eq!(rig.client.get("/safe/kept", 0, 512), [6; 512]);
    rig.client.must("GET", "/other?restype=container", &[], &[]);
}
