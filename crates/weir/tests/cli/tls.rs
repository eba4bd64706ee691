//! NBD over TLS, by the clients that people use.

use crate::common::{Place, Server, run};
use crate::tools::{self, needs};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use weir_client::Connection;

const LAYOUT: &str = "[host]\nunlimited = true\n[[volume]]\nname = \"data\"\nunlimited = true\n\
    size = \"64 MiB\"\n";
const SIZE: usize = 64 << 20;

/// Serves over TCP and a Unix socket, with certificates that clients need, and returns the port.
fn serve(place: &Place, more: &[&str]) -> (Server, u16) {
    let (stdout, _, code) = run(place.weir(&["cert", "pki", "--nbd", "--name", "localhost"]));
    let files = ["ca-cert", "server-cert", "server-key", "client-cert", "client-key"];
    assert_eq!(stdout, files.map(|own| format!("pki/{own}.pem\n")).concat());
    assert_eq!(code, Some(0));
    let tls = ["--nbd", "tcp:127.0.0.1:0", "--tls-certificates", "pki"];
    let server = place.serve(LAYOUT, &[&tls, more].concat());
    let (status, _, _) = run(place.weir(&["status", "-o", "json"]));
    let status: Value = serde_json::from_str(&status).expect("JSON");
    let uris = status["hosts"][0]["exports"][0]["uris"].as_array().expect("addresses");
    let uris: Vec<&str> = uris.iter().filter_map(Value::as_str).collect();
    assert!(uris[0].starts_with("nbd+unix:///data?socket="), "{uris:?}");
    let port = uris[1].strip_prefix("nbds://127.0.0.1:").and_then(|own| own.strip_suffix("/data"));
    (server, port.and_then(|own| own.parse().ok()).expect("a port"))
}

fn client(place: &Place, program: &str, args: &[&str]) -> (String, String, Option<i32>) {
    let mut command = Command::new(program);
    command.args(args).current_dir(place.dir());
    run(command)
}

#[track_caller]
fn succeeds(place: &Place, program: &str, args: &[&str]) -> String {
    let (stdout, stderr, code) = client(place, program, args);
    assert_eq!(code, Some(0), "{program} {args:?}\n{stdout}{stderr}");
    stdout
}

#[test]
fn clients_with_a_certificate_read_and_write() {
    needs!("nbdinfo", "nbdcopy", "qemu-img");
    let place = Place::new();
    let (server, port) = serve(&place, &["--tls-verify-peer"]);
    let pki = place.path("pki").display().to_string();
    let uri = format!("nbds://localhost:{port}/data?tls-certificates={pki}");
    let info: Value =
        serde_json::from_str(&succeeds(&place, "nbdinfo", &["--json", &uri])).expect("JSON");
    assert_eq!((&info["TLS"], &info["exports"][0]["export-size"]), (&true.into(), &SIZE.into()));
    let content: Vec<u8> = (0..SIZE as u64 / 8)
        .flat_map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes())
        .collect();
    fs::write(place.path("in"), &content).expect("a file");
    // Large and many requests at once, from several connections.
    succeeds(&place, "nbdcopy", &["--connections=4", "--requests=64", "--flush", "in", &uri]);
    // One at a time: the end of a write may be decrypted when nothing is left in the socket.
    for size in [512 << 10, 1 << 20, 4 << 20, 32 << 20] {
        let size = format!("--request-size={size}");
        let one = ["--connections=1", "--requests=1", &size, "in", &uri];
        succeeds(&place, "nbdcopy", &one);
    }
    succeeds(&place, "nbdcopy", &["--request-size=1048576", &uri, "out"]);
    assert!(fs::read(place.path("out")).expect("a file") == content);
    let creds = format!("tls-creds-x509,id=tls,dir={pki},endpoint=client");
    let image = format!(
        "driver=nbd,server.type=inet,server.host=localhost,server.port={port},export=data,tls-creds=tls"
    );
    let compare =
        ["compare", "--object", &creds, "--image-opts", &image, "driver=raw,file.filename=in"];
    assert!(succeeds(&place, "qemu-img", &compare).contains("Images are identical"));
    // The Unix socket of the same server needs none.
    let plain = format!("nbd+unix:///data?socket={}", place.path("nbd.sock").display());
    assert_eq!(succeeds(&place, "nbdinfo", &["--size", &plain]), format!("{SIZE}\n"));
    server.stop();
}

/// The last message of the handshake is then the server's: a client that waits for it hung.
#[test]
fn a_client_of_tls_1_2_is_served() {
    needs!("nbdinfo");
    let place = Place::new();
    let (server, port) = serve(&place, &["--tls-verify-peer"]);
    fs::write(place.path("gnutls"), "[overrides]\ndisabled-version = tls1.3\n").expect("a file");
    let pki = place.path("pki").display().to_string();
    let uri = format!("nbds://localhost:{port}/data?tls-certificates={pki}");
    let mut info = Command::new("nbdinfo");
    info.args(["--size", &uri]).env("GNUTLS_SYSTEM_PRIORITY_FILE", place.path("gnutls"));
    info.env("GNUTLS_SYSTEM_PRIORITY_FAIL_ON_INVALID", "1");
    assert_eq!(run(info), (format!("{SIZE}\n"), String::new(), Some(0)));
    server.stop();
}

#[test]
fn others_learn_nothing() {
    needs!("nbdinfo");
    let place = Place::new();
    let (server, port) = serve(&place, &["--tls-verify-peer"]);
    let refused = |uri: &str| {
        for more in ["--size", "--list"] {
            let (stdout, _, code) = client(&place, "nbdinfo", &[more, uri]);
            assert_ne!(code, Some(0), "{stdout}");
            assert!(!stdout.contains("data") && !stdout.contains("67108864"), "{stdout}");
        }
    };
    refused(&format!("nbd://localhost:{port}/data"));
    // Without a certificate, and with one that another authority has signed.
    let (_, _, code) = run(place.weir(&["cert", "other", "--nbd"]));
    assert_eq!(code, Some(0));
    fs::create_dir(place.path("mixed")).expect("a folder");
    for name in ["client-cert.pem", "client-key.pem"] {
        let to = place.path("mixed").join(name);
        fs::copy(place.path("other").join(name), to).expect("a file");
    }
    for folder in ["bare", "mixed"] {
        fs::create_dir_all(place.path(folder)).expect("a folder");
        let authority = place.path(folder).join("ca-cert.pem");
        fs::copy(place.path("pki/ca-cert.pem"), authority).expect("a file");
        let path = place.path(folder).display().to_string();
        refused(&format!("nbds://localhost:{port}/data?tls-certificates={path}"));
    }
    // Plain text after STARTTLS is not treated as decrypted input.
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a server");
    let option = |number: u8| [&b"IHAVEOPT\0\0\0"[..], &[number, 0, 0, 0, 0]].concat();
    let input = [&[0, 0, 0, 3][..], &option(5), &option(3)].concat();
    stream.write_all(&input).expect("a socket");
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    assert!(!all.windows(4).any(|own| own == b"data"), "{}", all.escape_ascii());
    // Garbage instead of a handshake of TLS.
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a server");
    stream.write_all(&[&[0, 0, 0, 3][..], &option(5)].concat()).expect("a socket");
    let mut acknowledged = [0; 38];
    stream.read_exact(&mut acknowledged).expect("an answer");
    stream.write_all(&[b'x'; 100]).expect("a socket");
    let _ = stream.read_to_end(&mut all);
    let path = place.path("pki").display().to_string();
    let uri = format!("nbds://localhost:{port}/data?tls-certificates={path}");
    assert_eq!(succeeds(&place, "nbdinfo", &["--size", &uri]), format!("{SIZE}\n"));
    server.stop();
}

#[test]
fn without_verification_clients_need_only_the_authority() {
    needs!("nbdinfo");
    let place = Place::new();
    let (server, port) = serve(&place, &[]);
    for name in ["client-cert.pem", "client-key.pem"] {
        fs::remove_file(place.path("pki").join(name)).expect("a file");
    }
    let path = place.path("pki").display().to_string();
    let uri = format!("nbds://localhost:{port}/data?tls-certificates={path}");
    assert_eq!(succeeds(&place, "nbdinfo", &["--size", &uri]), format!("{SIZE}\n"));
    server.stop();
}

#[test]
fn wrong_certificates_are_refused_at_the_start() {
    let place = Place::new();
    place.file("layout.toml", LAYOUT);
    for folder in ["pki", "other"] {
        let (_, _, code) = run(place.weir(&["cert", folder, "--nbd"]));
        assert_eq!(code, Some(0));
    }
    let (_, stderr, code) = run(place.weir(&["cert", "pki", "--nbd"]));
    assert_eq!(code, Some(2));
    assert!(stderr.contains("pki/ca-cert.pem: the file exists"), "{stderr}");
    let (_, stderr, code) = run(place.weir(&["cert", "third", "--nbd", "--name", "db1:10809"]));
    assert_eq!((code, place.path("third").exists()), (Some(2), false));
    assert!(stderr.contains("--name \"db1:10809\" is not a host name or address"), "{stderr}");
    let refused = |more: &[&str], expect: &str| {
        let (stdout, stderr, code) = run(place.weir(&[&["serve", "layout.toml"], more].concat()));
        assert_eq!((stdout.as_str(), code), ("", Some(2)), "{stderr}");
        assert!(stderr.contains(expect), "{stderr}");
    };
    let tcp = ["--nbd", "tcp:127.0.0.1:0"];
    let with = |folder: &'static str| [&tcp[..], &["--tls-certificates", folder]].concat();
    refused(&with("nothing"), "nothing/server-cert.pem");
    fs::copy(place.path("other/server-key.pem"), place.path("pki/server-key.pem")).expect("a file");
    refused(&with("pki"), "pki/server-key.pem");
    place.file("other/ca-cert.pem", "none");
    let verifying = [&with("other")[..], &["--tls-verify-peer"]].concat();
    refused(&verifying, "other/ca-cert.pem: the file contains no PEM certificate");
    refused(&["--tls-verify-peer"], "--tls-certificates");
    let unix = ["--nbd", "unix:nbd.sock", "--tls-certificates", "other"];
    refused(&unix, "only clients over TCP use TLS");
}

#[test]
fn an_address_that_others_reach_is_said() {
    let place = Place::new();
    let server = place.serve(LAYOUT, &["--nbd", "tcp:0.0.0.0:0"]);
    assert!(
        server.said.contains("tcp:0.0.0.0:0: other machines can read and write"),
        "{}",
        server.said
    );
    server.stop();
    let listed = format!("clients = {{ addresses = [\"10.0.0.1\"] }}\n{LAYOUT}");
    let server = place.serve(&listed, &["--nbd", "tcp:0.0.0.0:0"]);
    assert!(server.said.contains("a client is known by its address alone"), "{}", server.said);
    server.stop();
    let server = place.serve(LAYOUT, &["--nbd", "tcp:127.0.0.1:0"]);
    assert!(!server.said.contains("other machines"), "{}", server.said);
    server.stop();
}

#[test]
fn a_volume_is_on_another_weir_over_tls() {
    let (far, near) = (Place::new(), Place::new());
    let (storage, port) = serve(&far, &["--tls-verify-peer"]);
    let pki = far.path("pki").display().to_string();
    let uri = format!("nbds://localhost:{port}/data?tls-certificates={pki}");
    let backend = format!("[[volume]]\nname = \"near\"\nunlimited = true\nbackend = \"{uri}\"\n");
    let front = near.serve(&backend, &[]);
    let mut client = near.open("near");
    let content: Vec<u8> = (0..4_u64 << 17)
        .flat_map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes())
        .collect();
    for (offset, len) in [(0, 4 << 20), (5, 1), (8 << 20, 4 << 20), (63 << 20, 1 << 20)] {
        client.write(offset, &content[..len]).expect("a write");
    }
    client.flush().expect("a flush");
    // Many answers at once: what is decrypted is taken without waiting for the socket.
    for n in 0..1024 {
        client.queue_read(n, n * 4096, 4096).expect("it fits");
    }
    let mut answers = 0;
    while answers < 1024 {
        client.flush_out().expect("a socket");
        answers += client
            .receive(|n, data| {
                let at = usize::try_from(n * 4096).expect("it fits");
                let mut expect = content[at..at + 4096].to_vec();
                if n == 0 {
                    expect[5] = content[0];
                }
                assert!(data.expect("a read") == expect, "block {n}");
            })
            .expect("a socket");
    }
    let mut direct = Connection::open_sparse(&uri.parse().expect("a URI")).expect("the export");
    let mut found = vec![0; 4 << 20];
    direct.read(8 << 20, &mut found).expect("a read");
    assert!(found == content);
    assert!(direct.has_extents());
    front.stop();
    storage.stop();
}

#[test]
fn weirs_client_says_why_it_cannot_encrypt() {
    let place = Place::new();
    let (server, port) = serve(&place, &["--tls-verify-peer"]);
    let (_, _, code) = run(place.weir(&["cert", "other", "--nbd", "--name", "localhost"]));
    assert_eq!(code, Some(0));
    fs::create_dir(place.path("bare")).expect("a folder");
    fs::copy(place.path("pki/ca-cert.pem"), place.path("bare/ca-cert.pem")).expect("a file");
    let at = |folder: &str| place.path(folder).display().to_string();
    let check = |uri: String, expect: &str| {
        let error =
            Connection::open(&uri.parse().expect("a URI")).expect_err("refused").to_string();
        assert!(error.contains(expect), "{uri}: {error}");
    };
    let uri = format!("nbds://localhost:{port}/data?tls-certificates=");
    check(format!("{uri}{}", at("none")), "none/ca-cert.pem: ");
    check(format!("{uri}{}", at("other")), "of the same name as the trusted one");
    check(
        format!("{uri}{}", at("bare")),
        "put client-cert.pem and client-key.pem beside ca-cert.pem",
    );
    let named = format!("{uri}{}&tls-hostname=db1.example", at("pki"));
    check(named, "certificate not valid for name \"db1.example\"");
    let socket = place.path("nbd.sock").display().to_string();
    let plain = format!("nbds+unix:///data?socket={socket}&tls-certificates={}", at("pki"));
    check(plain, "the server offers no TLS");
    check(format!("nbd://localhost:{port}/data"), "TLS is required");
    let right = format!("{uri}{}", at("pki"));
    assert!(Connection::open(&right.parse().expect("a URI")).is_ok());
    server.stop();
}
