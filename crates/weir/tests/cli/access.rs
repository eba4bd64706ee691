//! Which clients reach which exports, and what is recorded of the others.

use crate::blob::KEY;
use crate::common::{Place, Server, run};
use crate::tools::{self, needs};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use weir_blob::auth::account::Account;
use weir_client::Connection;
use weir_server::control::{Conversation, Purpose, Request};

fn volume(name: &str, clients: &str) -> String {
    let clients = if clients.is_empty() { String::new() } else { format!("clients = {clients}\n") };
    format!("[[volume]]\nname = \"{name}\"\nunlimited = true\nsize = \"4 MiB\"\n{clients}")
}

/// Returns the port on which the server serves over TCP.
fn port_of(place: &Place) -> u16 {
    let (status, _, _) = run(place.weir(&["status", "-o", "json"]));
    let status: Value = serde_json::from_str(&status).expect("JSON");
    let uris = status["hosts"][0]["exports"][0]["uris"].as_array().expect("addresses").clone();
    let tcp = uris.iter().filter_map(Value::as_str).find_map(|uri| uri.split_once("://127.0.0.1:"));
    let (_, rest) = tcp.expect("an address");
    rest.split('/').next().and_then(|port| port.parse().ok()).expect("a port")
}

/// Stops a server; the audit lines that it gave.
fn audit_of(server: Server) -> Vec<String> {
    server.signal(Signal::TERM);
    let (status, said) = server.wait();
    assert_eq!(status.code(), Some(0), "{said}");
    let lines = said.lines().filter_map(|line| line.strip_prefix("audit: "));
    lines.map(str::to_owned).collect()
}

/// Returns the names that a client is listed.
fn listed(uri: &str) -> Vec<String> {
    let mut command = Command::new("nbdinfo");
    command.args(["--list", "--json", uri]);
    let (stdout, stderr, code) = run(command);
    assert_eq!(code, Some(0), "{stderr}");
    let list: Value = serde_json::from_str(&stdout).expect("JSON");
    let exports = list["exports"].as_array().expect("exports").iter();
    exports.map(|own| own["export-name"].as_str().expect("a name").to_owned()).collect()
}

fn open(uri: &str) -> Result<Connection, String> {
    Connection::open(&uri.parse().expect("a URI")).map_err(|error| error.to_string())
}

/// Asks for an export by an option, and returns all that the server says about it.
fn asked(port: u16, option: u32, name: &str) -> Vec<u8> {
    asked_for_all(port, option, &[name])
}

/// Asks for exports in one handshake.
fn asked_for_all(port: u16, option: u32, names: &[&str]) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a server");
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).expect("a greeting");
    let mut request = 3_u32.to_be_bytes().to_vec();
    for name in names {
        let length = u32::try_from(name.len()).expect("it is short").to_be_bytes();
        let mut data = name.as_bytes().to_vec();
        // INFO and GO have the length of the name, and a number of requests for facts.
        if matches!(option, 6 | 7) {
            data = [&length[..], name.as_bytes(), &[0, 0]].concat();
        }
        let length = u32::try_from(data.len()).expect("it is short").to_be_bytes();
        request.extend([&b"IHAVEOPT"[..], &option.to_be_bytes(), &length, &data].concat());
    }
    request.extend([&b"IHAVEOPT"[..], &2_u32.to_be_bytes(), &0_u32.to_be_bytes()].concat());
    stream.write_all(&request).expect("a server");
    let mut answer = Vec::new();
    // After an unknown name, EXPORT_NAME ends the connection with what follows unread.
    let _ = stream.read_to_end(&mut answer);
    answer
}

#[test]
fn a_handshake_has_lines_for_a_few_names_only() {
    let place = Place::new();
    let server = place.serve(&volume("data", ""), &["--nbd", "tcp:127.0.0.1:0"]);
    let names: Vec<String> = (0..100).map(|n| format!("none-{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    asked_for_all(port_of(&place), 6, &names);
    assert_eq!(audit_of(server).len(), 8);
}

#[test]
fn exports_of_others_are_neither_listed_nor_found() {
    needs!("nbdinfo");
    let place = Place::new();
    let theirs = volume("theirs", "{ addresses = [\"10.0.0.0/8\", \"::1\"] }");
    let mine = volume("mine", "{ addresses = [\"127.0.0.0/8\"] }");
    let layout =
        format!("clients = {{ addresses = [\"127.0.0.1\"] }}\n{theirs}{mine}{}", volume("all", ""));
    let server = place.serve(&layout, &["--nbd", "tcp:127.0.0.1:0"]);
    let port = port_of(&place);
    let uri = format!("nbd://127.0.0.1:{port}");
    assert_eq!(listed(&uri), ["mine", "all"]);
    // The default is the first export, and no other takes its place.
    assert!(open(&uri).is_err());
    assert!(open(&format!("{uri}/all")).is_ok());
    // The answers are those for a name that does not exist.
    for option in [1, 6, 7] {
        let (theirs, none) = (asked(port, option, "theirs"), asked(port, option, "nobody"));
        let text = String::from_utf8_lossy(&theirs).replace("theirs", "nobody");
        assert_eq!(text, String::from_utf8_lossy(&none), "option {option}");
    }
    // The Unix socket is protected by its file.
    assert!(place.open("theirs").size().get() == 4 << 20);
    let audit = audit_of(server);
    assert_eq!(audit.len(), 7, "{audit:?}");
    let of = |name: &str, why: &str| {
        let end = format!("what=\"export {name}\" why=\"{why}\"");
        audit.iter().filter(|line| line.contains("front=nbd") && line.ends_with(&end)).count()
    };
    assert_eq!(of("theirs", "the address is not among its clients"), 3, "{audit:?}");
    assert_eq!(of("", "the address is not among its clients"), 1, "{audit:?}");
    assert_eq!(of("nobody", "there is no such export"), 3, "{audit:?}");
    assert!(audit.iter().all(|line| line.contains("client=\"127.0.0.1:")), "{audit:?}");
}

#[test]
fn a_frozen_export_has_the_clients_of_its_volume() {
    needs!("nbdinfo");
    let place = Place::new();
    let theirs = volume("theirs", "{ addresses = [\"10.0.0.0/8\"] }");
    let server =
        place.serve(&format!("{theirs}{}", volume("all", "")), &["--nbd", "tcp:127.0.0.1:0"]);
    let mut talk = Conversation::open(&place.path("control.sock")).expect("a server");
    let (exports, backup) = (Vec::new(), "test".to_owned());
    talk.ask(&Request::Freeze { exports, purpose: Purpose::Full, backup }).expect("a freeze");
    let uri = format!("nbd://127.0.0.1:{}", port_of(&place));
    let names = listed(&uri);
    assert!(names.len() == 2 && names.iter().all(|name| name.starts_with("all")), "{names:?}");
    let socket = format!("nbd+unix:///?socket={}", place.path("nbd.sock").display());
    assert_eq!(listed(&socket).len(), 4);
    drop(talk);
    server.stop();
}

/// Writes certificates for a server and for clients, with the names of NBD programs.
fn certificates(place: &Place) {
    let key = || KeyPair::generate().expect("a key");
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority_key = key();
    let root = authority.self_signed(&authority_key).expect("a certificate").pem();
    let issuer = Issuer::new(authority, authority_key);
    let signed = |folder: &str, file: &str, common: &str, names: &[String]| {
        let dir = place.path(folder);
        fs::create_dir_all(&dir).expect("a folder");
        let mut own = CertificateParams::new(names).expect("names");
        own.distinguished_name.push(DnType::CommonName, common);
        own.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let own_key = key();
        let text = own.signed_by(&own_key, &issuer).expect("a certificate").pem();
        fs::write(dir.join(format!("{file}-cert.pem")), text).expect("a file");
        fs::write(dir.join(format!("{file}-key.pem")), own_key.serialize_pem()).expect("a file");
        fs::write(dir.join("ca-cert.pem"), &root).expect("a file");
    };
    signed("pki", "server", "server", &["localhost".to_owned(), "127.0.0.1".to_owned()]);
    signed("db1", "client", "a database", &["db1.example".to_owned()]);
    signed("backup", "client", "Backup of db1", &[]);
    signed("other", "client", "other", &["xdb1.example".to_owned()]);
}

#[test]
fn certificates_have_the_names_that_a_layout_admits() {
    let place = Place::new();
    certificates(&place);
    let db1 = volume("db1", "{ certificates = [\"db1.example\", \"Backup of db1\"] }");
    let both = volume("both", "{ certificates = [\"db1.example\"], addresses = [\"10.0.0.0/8\"] }");
    let layout = format!("{db1}{both}{}", volume("all", ""));
    let tls = ["--nbd", "tcp:127.0.0.1:0", "--tls-certificates", "pki"];
    let server = place.serve(&layout, &[&tls[..], &["--tls-verify-peer"]].concat());
    let port = port_of(&place);
    let reached = |client: &str| {
        let pki = place.path(client).display().to_string();
        let uri = |export: &str| format!("nbds://127.0.0.1:{port}/{export}?tls-certificates={pki}");
        ["db1", "both", "all"].map(|export| open(&uri(export)).is_ok())
    };
    assert_eq!(reached("db1"), [true, false, true]);
    assert_eq!(reached("backup"), [true, false, true]);
    assert_eq!(reached("other"), [false, false, true]);
    let audit = audit_of(server);
    assert_eq!(audit.len(), 4, "{audit:?}");
    assert!(
        audit[2].ends_with("why=\"no name of the certificate is among its clients\""),
        "{audit:?}"
    );
    // Without certificates of clients, such a list would admit nobody.
    for args in [&tls[..], &tls[..2]] {
        let serve = [&["serve", "layout.toml"], args].concat();
        let (stdout, stderr, code) = run(place.weir(&serve));
        assert_eq!((stdout.as_str(), code), ("", Some(2)), "{stderr}");
        let expect = "weir: layout.toml: clients.certificates admits clients by their certificates, but the \
                      server asks for none; add --tls-certificates DIR --tls-verify-peer, or use \
                      clients.addresses\n";
        assert_eq!(stderr, expect);
    }
}

/// Sends a request to a web address, and returns its status line.
fn http(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a server");
    stream.write_all(request.as_bytes()).expect("a server");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer.lines().next().unwrap_or_default().to_owned()
}

/// Finds an address in what a server prints.
fn address_in(text: &str, before: &str) -> String {
    let (_, rest) = text.split_once(before).expect("an address");
    rest.split(['/', '\n']).next().expect("an address").to_owned()
}

#[test]
fn each_refused_request_has_one_line_without_secrets() {
    let place = Place::new();
    certificates(&place);
    place.file("layout.toml", &format!("{}[blob]\n", volume("data", "")));
    let serve = ["serve", "layout.toml", "--nbd", "tcp:127.0.0.1:0", "--tls-certificates", "pki"];
    let more = ["--blob", "127.0.0.1:0", "--web", "127.0.0.1:0", "--web-control"];
    let mut command = place.weir(&[&serve[..], &more].concat());
    command.stdout(fs::File::create(place.path("out")).expect("a file"));
    let server = Server::start(command);
    let out = fs::read_to_string(place.path("out")).expect("text");
    let blobs = address_in(&out, "blobs http://");
    let web = address_in(&server.said, "live page http://");
    let nbd = format!("127.0.0.1:{}", port_of(&place));
    // NBD: no protocol at all, and no TLS.
    for bytes in [&[0, 0, 0, 9][..], b"\0\0\0\x03IHAVEOPT\0\0\0\x03\0\0\0\0"] {
        let mut stream = TcpStream::connect(&nbd).expect("a server");
        stream.write_all(bytes).expect("a server");
        stream.shutdown(std::net::Shutdown::Write).expect("a server");
        let _ = stream.read_to_end(&mut Vec::new());
    }
    // Blobs: nobody, a wrong key, a signature that has expired.
    let host = format!("host: {blobs}\r\nconnection: close\r\n");
    let date = weir_blob::time::Moment(weir_wall::calendar()).http();
    let key =
        format!("x-ms-date: {date}\r\nauthorization: SharedKey devstoreaccount1:U0VDUkVU\r\n");
    let path = "/devstoreaccount1/c/%0A%22b";
    let account = Account::new("devstoreaccount1", KEY).expect("an account");
    let end = "2020-01-01T00:00:00Z";
    let sig = account.sign(&format!("devstoreaccount1\nr\nb\nsco\n\n{end}\n\n\n2018-11-09\n"));
    let sig = sig.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    let signed = format!("?sv=2018-11-09&ss=b&srt=sco&sp=r&se={end}&sig={sig}");
    for (query, headers) in [("", ""), ("", &*key), (&*signed, "")] {
        let status = http(&blobs, &format!("GET {path}{query} HTTP/1.1\r\n{host}{headers}\r\n"));
        assert!(status.contains(" 403 ") || status.contains(" 404 "), "{status}");
    }
    // The page: another name, another page, a wrong token.
    let command = |headers: &str| {
        let head = format!("POST /api/command HTTP/1.1\r\nhost: {web}\r\nconnection: close\r\n");
        http(
            &web,
            &format!("{head}content-type: application/json\r\ncontent-length: 0\r\n{headers}\r\n"),
        )
    };
    assert!(
        http(&web, "GET / HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n")
            .contains(" 421 ")
    );
    assert!(command("origin: http://evil.example\r\n").contains(" 403 "));
    assert!(command("x-weir-token: U0VDUkVU\r\n").contains(" 401 "));
    // The control socket.
    let control = std::os::unix::net::UnixStream::connect(place.path("control.sock"));
    let mut control = control.expect("a server");
    control.write_all(b"\"U0VDUkVU\"\n").expect("a server");
    control.shutdown(std::net::Shutdown::Write).expect("a server");
    let _ = control.read_to_end(&mut Vec::new());
    let expect = [
        ("nbd", "handshake", "the flags 0x00000009"),
        ("nbd", "handshake", "the client did not start TLS"),
        ("blob", "GET /devstoreaccount1/c/", "ResourceNotFound, no signature"),
        ("blob", "GET /devstoreaccount1/c/", "AuthenticationFailed: the signature does not match"),
        ("blob", "GET /devstoreaccount1/c/", "AuthenticationFailed: the signature has expired"),
        ("web", "GET /", "Host \\\"evil.example\\\" is not a name"),
        ("web", "POST /api/command", "the page of \\\"http://evil.example\\\""),
        ("web", "POST /api/command", "this is not the token"),
        ("control", "line", "not a request"),
    ];
    let mut audit = audit_of(server);
    // Front ends have threads of their own.
    audit.sort_by_key(|line| {
        ["nbd", "blob", "web", "control"].map(|own| !line.contains(&format!("front={own} ")))
    });
    assert_eq!(audit.len(), expect.len(), "{audit:#?}");
    for (line, (front, what, why)) in audit.iter().zip(expect) {
        let (time, rest) = line.split_once(' ').expect("a time");
        assert!(time.len() == 24 && time.ends_with('Z'), "{line}");
        assert!(rest.starts_with(&format!("refused front={front} client=\"")), "{line}");
        assert!(line.contains(&format!(" what=\"{what}")) && line.contains(why), "{line}");
        assert!(!["U0VDUkVU", "sig=", &sig[..8]].iter().any(|own| line.contains(own)), "{line}");
    }
}

#[test]
fn a_flood_of_refused_clients_is_counted_and_gives_few_lines() {
    const CLIENTS: u64 = 2000;
    let place = Place::new();
    let server = place.serve(&volume("data", ""), &["--nbd", "tcp:127.0.0.1:0"]);
    let port = port_of(&place);
    for _ in 0..CLIENTS {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a server");
        stream.write_all(&[0, 0, 0, 9]).expect("a server");
        let _ = stream.read_to_end(&mut Vec::new());
    }
    assert!(place.open("data").size().get() > 0);
    let audit = audit_of(server);
    let counts = audit.iter().filter_map(|line| line.split_once(" suppressed front=nbd refusals="));
    let suppressed: u64 = counts.map(|(_, count)| count.parse::<u64>().expect("a number")).sum();
    let shown = audit.iter().filter(|line| line.contains(" refused front=nbd ")).count() as u64;
    assert_eq!(shown + suppressed, CLIENTS);
    assert!(shown < CLIENTS / 2, "{shown} lines");
}
