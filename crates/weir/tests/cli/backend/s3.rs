//! A volume in the objects of an S3 service, through nbdkit's plug-in.

use super::{Nbdkit, layout};
use crate::common::Place;
use crate::tools::{self, needs, python_with};
use rustix::process::Signal;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// The S3 service of moto on loopback, with one bucket. Stopped if it is dropped.
struct Service {
    program: Child,
    port: u16,
}

impl Service {
    fn start(python: &str, bucket: &str) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.expect("a port").port();
        let mut command = Command::new(python);
        command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut service = Self { program: command.spawn().expect("a program"), port };
        let mut client = loop {
            if let Ok(client) = TcpStream::connect(("127.0.0.1", port)) {
                break client;
            }
            assert!(service.program.try_wait().expect("a status").is_none(), "moto has ended");
            thread::park_timeout(Duration::from_millis(20));
        };
        let request = format!(
            "PUT /{bucket} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        client.write_all(request.as_bytes()).expect("a request");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        service
    }

    /// Serves objects of the bucket at `kit.sock` of a folder, as docs/SCALE.md says.
    fn serve(&self, place: &Place, bucket: &str) -> Nbdkit {
        let socket = place.path("kit.sock");
        let _ = fs::remove_file(&socket);
        let mut command = Command::new("nbdkit");
        command.args(["-f", "-U"]).arg(&socket).arg("S3");
        command.arg(format!("endpoint-url=http://127.0.0.1:{}", self.port));
        command.arg(format!("bucket={bucket}"));
        command.args(["key=disk", "size=8M", "object-size=64k"]);
        command.env("HOME", place.dir()).env("AWS_DEFAULT_REGION", "us-east-1");
        command.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("a program");
        while UnixStream::connect(&socket).is_err() {
            assert!(child.try_wait().expect("a status").is_none(), "nbdkit has ended");
            thread::park_timeout(Duration::from_millis(10));
        }
        Nbdkit(child)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

#[test]
fn a_volume_is_in_objects_of_s3() {
    needs!("nbdkit");
    if !tools::nbdkit_has("S3") {
        return;
    }
    let Some(python) = python_with("moto.server") else { return };
    let service = Service::start(&python, "weir");
    let place = Place::new();
    let mut kit = service.serve(&place, "weir");
    let server = place.serve(&layout(&place, "\"nbd+unix:///?socket=DIR/kit.sock\""), &[]);
    let mut client = place.open("data");
    assert_eq!(client.size().get(), 8 << 20);
    // Across the border of two objects, and within one.
    let written: Vec<u8> = (0..9_000_u32).map(|at| at.to_le_bytes()[0]).collect();
    client.write(62_000, &written).expect("a write");
    client.write(1 << 20, &[7; 4096]).expect("a write");
    client.write_zeroes((1 << 20) + 512, 512).expect("zeros");
    client.flush().expect("a flush");

    kit.kill();
    drop(kit);
    let _kit = service.serve(&place, "weir");
    let mut found = vec![9; 9_002];
    client.read(61_999, &mut found).expect("a read");
    assert!(found[0] == 0 && found[1..9_001] == written && found[9_001] == 0);
    let mut found = [9; 1024];
    client.read(1 << 20, &mut found).expect("a read");
    assert!(found[..512] == [7; 512] && found[512..] == [0; 512]);
    drop(client);
    server.signal(Signal::TERM);
    let (status, said) = server.wait();
    assert!(status.success() && said.contains("answers again"), "{said}");
}
