//! Volumes whose bytes are on NBD servers, devices and files.

mod cached;
mod devices;
mod file_systems;
mod folders;
mod late;
mod load;
mod rbd;
mod s3;

use crate::common::{Place, Server, run};
use crate::tools::{self, needs};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use weir_client::Connection;

const SIZE: u64 = 8 << 20;
const BLOCK: u64 = 4096;

/// An nbdkit; killed if it is dropped.
struct Nbdkit(Child);

impl Nbdkit {
    /// Serves `disk`, and forgets at its end what was not flushed.
    fn start(place: &Place) -> Self {
        Self::start_with(place, &["--filter=cache", "file", "disk"])
    }

    fn start_with(place: &Place, args: &[&str]) -> Self {
        let socket = place.path("kit.sock");
        let _ = fs::remove_file(&socket);
        let mut command = Command::new("nbdkit");
        command.args(["-f", "-U"]).arg(&socket).args(args);
        command.current_dir(place.dir()).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::null()).spawn().expect("a program");
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            assert!(child.try_wait().expect("a status").is_none(), "nbdkit has ended");
            std::thread::park_timeout(Duration::from_millis(1));
        }
        Self(child)
    }
}

impl Nbdkit {
    fn kill(&mut self) {
        let ended = self.0.kill().and_then(|()| self.0.wait());
        ended.expect("a process");
    }
}

impl Drop for Nbdkit {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn disk(place: &Place, size: u64) {
    File::create(place.path("disk")).and_then(|file| file.set_len(size)).expect("a file");
}

fn layout(place: &Place, backend: &str) -> String {
    let backend = backend.replace("DIR", &place.dir().display().to_string());
    format!("[[volume]]\nname = \"data\"\nunlimited = true\nbackend = {backend}\n")
}

fn stamped(stamp: u64) -> Vec<u8> {
    stamp.to_le_bytes().repeat(512)
}

/// Returns a number of a campaign: of the environment, or a small one.
fn number(variable: &str, small: u64) -> u64 {
    std::env::var(variable)
        .map_or(small, |text| text.parse().unwrap_or_else(|_| panic!("{variable}={text}")))
}

/// The status of the backend, as JSON.
fn backend(place: &Place) -> serde_json::Value {
    let (status, said, code) = run(place.weir(&["status", "--output", "json"]));
    assert_eq!(code, Some(0), "{said}");
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    status["hosts"][0]["volumes"][0]["backend"].clone()
}

#[test]
fn a_volume_is_on_another_weir() {
    let (far, near) = (Place::new(), Place::new());
    let storage = "[[volume]]\nname = \"data\"\nunlimited = true\nsize = \"8 MiB\"\n";
    let storage = far.serve(storage, &["--data", "data"]);
    let uri = format!("\"nbd+unix:///data?socket={}\"", far.path("nbd.sock").display());
    let front = near.serve(&layout(&near, &uri), &[]);
    assert!(!front.said.contains("in memory"), "{}", front.said);
    let mut client = near.open("data");
    assert_eq!(client.size().get(), SIZE);
    client.write(5, b"abc").expect("a write");
    client.write_zeroes(1 << 20, 1 << 20).expect("zeros");
    client.flush().expect("a flush");
    let mut found = [9; 5];
    far.open("data").read(4, &mut found).expect("a read");
    assert_eq!(&found, b"\0abc\0");
    let status = backend(&near);
    assert_eq!(
        (status["state"].as_str(), &status["reason"]),
        (Some("connected"), &serde_json::Value::Null)
    );
    let (text, _, _) = run(near.weir(&["status"]));
    assert!(text.contains("connected for"), "{text}");
    let (_, said, code) = run(near.weir(&["volume", "resize", "data", "16MiB"]));
    assert!(said.contains("which Weir does not resize") && code == Some(2), "{said}");
    drop(client);
    front.stop();
    storage.stop();
}

/// Writes stamps at random, some of them flushed, and checks each block before it is overwritten.
fn load(client: &mut Connection, last: &mut [u64], round: u64) {
    let mut random = round + 1;
    for n in 1..=400_u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let block = usize::try_from(random >> 40).expect("short") % last.len();
        let at = block as u64 * BLOCK;
        let mut found = vec![0; 4096];
        client.read(at, &mut found).expect("a read");
        assert!(found == stamped(last[block]), "round {round}, block {block}");
        let stamp = round << 32 | n;
        client.write(at, &stamped(stamp)).expect("a write");
        last[block] = stamp;
        if n % 50 == 0 {
            client.flush().expect("a flush");
        }
    }
}

#[test]
fn a_backend_is_killed_under_load() {
    needs!("nbdkit");
    let place = Place::new();
    disk(&place, SIZE);
    let mut kit = Nbdkit::start(&place);
    let front = place.serve(&layout(&place, "\"nbd+unix:///?socket=DIR/kit.sock\""), &[]);
    let mut client = place.open("data");
    let mut last = vec![0; 64];
    for round in 0..5 {
        let writer = std::thread::scope(|scope| {
            let load = scope.spawn(|| load(&mut client, &mut last, round));
            // Somewhere in the middle of it.
            std::thread::park_timeout(Duration::from_millis(20));
            kit.kill();
            kit = Nbdkit::start(&place);
            load.join()
        });
        writer.expect("nothing is lost and nothing fails");
    }
    client.flush().expect("a flush");
    drop(kit);
    while backend(&place)["state"] != "lost" {
        std::thread::park_timeout(Duration::from_millis(10));
    }
    assert!(backend(&place)["reason"].is_string());
    let disk = fs::read(place.path("disk")).expect("the disk");
    for (stamp, block) in last.iter().zip(disk.chunks(4096)) {
        assert!(block == stamped(*stamp), "a flushed block is lost");
    }
    let _kit = Nbdkit::start(&place);
    while backend(&place)["state"] != "connected" {
        std::thread::park_timeout(Duration::from_millis(10));
    }
    drop(client);
    front.signal(rustix::process::Signal::TERM);
    let (status, said) = front.wait();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(said.contains("requests wait for it") && said.contains("answers again"), "{said}");
}

#[test]
fn the_status_has_the_last_error_of_a_backend() {
    needs!("nbdkit");
    let place = Place::new();
    let faults = ["--filter=error", "memory", "8M", "error=EIO", "error-pread-rate=100%"];
    let _server = Nbdkit::start_with(&place, &faults);
    let front = place.serve(&layout(&place, "\"nbd+unix:///?socket=DIR/kit.sock\""), &[]);
    let status = || run(place.weir(&["status"])).0;
    assert!(!status().contains("last error"));
    let mut client = place.open("data");
    client.write(0, &[1; 4096]).expect("a write");
    assert!(client.read(0, &mut [0; 4096]).is_err());
    let (text, told) = (status(), "answered EIO to a read of 4096 bytes at 0");
    assert!(text.contains("last error") && text.contains(told), "{text}");
    // The connection is fine, and each request may succeed.
    assert_eq!(backend(&place)["state"], "connected");
    drop(client);
    front.stop();
}

#[test]
fn a_stripe_of_backends_and_a_file() {
    let place = Place::new();
    for name in ["left", "right"] {
        File::create(place.path(name)).and_then(|file| file.set_len(SIZE)).expect("a file");
    }
    let column = |name: &str| {
        let file = place.path(name).display().to_string();
        format!(
            "[[volume]]\nname = \"{name}\"\nunlimited = true\nbackend = {{ file = \"{file}\" }}\n"
        )
    };
    let layout = format!(
        "{}{}[[stripe]]\nname = \"both\"\nunit = \"64 KiB\"\nvolumes = [\"left\", \"right\"]\n",
        column("left"),
        column("right")
    );
    let front = place.serve(&layout, &[]);
    let mut client = place.open("both");
    assert_eq!(client.size().get(), 2 * SIZE);
    client.write(60 << 10, &[7; 8192]).expect("a write");
    client.flush().expect("a flush");
    let at = |name: &str, at: usize| fs::read(place.path(name)).expect("a file")[at];
    assert_eq!((at("left", (64 << 10) - 1), at("right", 0), at("right", 4096)), (7, 7, 0));
    drop(client);
    front.stop();
}

/// Serves a layout that has nothing else to serve; what is said, and the exit code.
fn refused(place: &Place, layout: &str, args: &[&str]) -> (String, Option<i32>) {
    place.file("layout.toml", layout);
    let serve = ["serve", "layout.toml", "--nbd", "unix:nbd.sock"];
    let (_, said, code) = run(place.weir(&[&serve, args].concat()));
    (said, code)
}

fn holds_nothing_else(place: &Path) -> bool {
    !place.join("nbd.sock").exists() && !place.join("control.sock").exists()
}

#[test]
fn what_cannot_be_a_backend_is_refused() {
    let place = Place::new();
    let check = |layout: &str, args: &[&str], expect: &str, code: i32| {
        let (said, got) = refused(&place, layout, args);
        assert!(said.contains(expect) && got == Some(code), "{got:?}: {said}");
        assert!(holds_nothing_else(place.dir()), "{said}");
    };
    check(&layout(&place, "\"nbd+unix:///x?socket=DIR/none\""), &[], "is the server running?", 3);
    check(
        &layout(&place, "\"disk\""),
        &[],
        "layout.toml:4:1: volume \"data\": \"disk\" is not an NBD URI",
        2,
    );
    check(&layout(&place, "{ nbdd = \"nbd://h/x\" }"), &[], "nbdd", 2);
    check(&layout(&place, "{ file = \"DIR\" }"), &[], "it is neither a block device nor a file", 3);
    disk(&place, 1 << 20);
    let small = layout(&place, "{ file = \"DIR/disk\" }") + "size = \"2 MiB\"\n";
    check(&small, &[], "has 1 MiB, which is less than its size of 2 MiB", 2);
    let instance = "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 8 }\n\
        [[file]]\nname = \"a\"\nrole = \"data\"\nsize = \"10 GiB\"\nbackend = \"nbd://h/x\"\n";
    check(instance, &[], "backend", 2);
}

#[test]
fn the_others_are_served_and_stored_data_stays() {
    let place = Place::new();
    disk(&place, 1 << 20);
    let local = "[[volume]]\nname = \"data\"\nunlimited = true\nsize = \"1 MiB\"\n\
        [[volume]]\nname = \"other\"\nunlimited = true\nsize = \"1 MiB\"\n";
    let server = place.serve(local, &["--data", "data"]);
    let mut client = place.open("data");
    client.write(0, &[7; 512]).expect("a write");
    client.flush().expect("a flush");
    drop(client);
    server.stop();
    let edited = layout(&place, "{ file = \"DIR/disk\" }")
        + "[[volume]]\nname = \"other\"\nunlimited = true\nsize = \"1 MiB\"\n";
    let server: Server = place.serve(&edited, &["--data", "data"]);
    assert!(
        server.said.contains("not served: data: ") && server.said.contains("but it has data in"),
        "{}",
        server.said
    );
    place.open("other").read(0, &mut [0; 512]).expect("a read");
    server.stop();
    let server = place.serve(local, &["--data", "data"]);
    let mut found = [0; 512];
    place.open("data").read(0, &mut found).expect("a read");
    assert_eq!(found, [7; 512]);
    server.stop();
}

/// A mount has its own folder for files.
#[test]
fn a_mount_takes_no_backend() {
    let place = Place::new();
    place.file("layout.toml", &layout(&place, "\"nbd+unix:///?socket=DIR/kit.sock\""));
    fs::create_dir(place.path("mnt")).expect("a folder");
    let (_, stderr, code) = run(place.weir(&["mount", "layout.toml", "mnt"]));
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("volume \"data\": a mount keeps its files in a folder"), "{stderr}");
}
