//! `--web` and `--metrics` of the serving verbs.

use crate::common::{Place, Server, run};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

const LAYOUT: &str =
    "edition = \"azure-now\"\n[[volume]]\nname = \"v\"\ntier = \"P10\"\ncredits = \"50 %\"\n";

/// Returns the address in a line of what a server said.
pub(crate) fn address<'a>(server: &'a Server, line: &str) -> &'a str {
    let rest = server.said.split(line).nth(1).unwrap_or_else(|| panic!("{}", server.said));
    rest.split('/').next().unwrap_or_default()
}

/// Asks over HTTP; returns the whole answer.
pub(crate) fn ask(address: &str, first: &str, lines: &[&str], body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a listener");
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    let head = format!("{first} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{lines}");
    let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    answer
}

#[test]
fn a_served_volume_has_a_page_and_metrics_and_changes_with_the_token() {
    let place = Place::new();
    let args = ["--web", "127.0.0.1:0", "--web-control", "--metrics", "127.0.0.1:0"];
    let server = place.serve(LAYOUT, &args);
    let page = address(&server, "live page http://");
    let metrics = address(&server, "\nmetrics http://");
    let mut client = place.open("v");
    client.write(0, &[7; 4096]).expect("a write");
    let text = ask(metrics, "GET /metrics", &[], "");
    for line in [
        "weir_volume_io_total{host=\"host\",volume=\"v\",op=\"write\"} 1",
        "weir_limit{host=\"host\",volume=\"v\",cap=\"disk_iops\"} 500.0",
        "weir_limit_now{host=\"host\",volume=\"v\",cap=\"disk_iops\"} 3500.0",
        "weir_io_latency_seconds_count{host=\"host\",export=\"v\",op=\"write\"} 1",
    ] {
        assert!(text.lines().any(|own| own == line), "{line}\n{text}");
    }
    assert!(ask(metrics, "GET /", &[], "").starts_with("HTTP/1.1 404"));
    assert!(ask(page, "GET /", &[], "").contains("<title>Weir</title>"));
    assert!(ask(page, "GET /metrics", &[], "").contains("weir_uptime_seconds "));
    let file = place.path("control.sock.token");
    assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    let secret = fs::read_to_string(&file).expect("text");
    let told = format!("token for changes: {} (also in control.sock.token)\n", secret.trim());
    assert!(server.said.contains(&told), "{}", server.said);
    let token = format!("X-Weir-Token: {}", secret.trim());
    let json = "Content-Type: application/json";
    let command = |lines: &[&str], body: &str| ask(page, "POST /api/command", lines, body);
    let body = r#"{"command":"set-tier","volume":"v","tier":"P30"}"#;
    assert!(command(&[json], body).starts_with("HTTP/1.1 401"));
    assert!(command(&[json, &token], body).starts_with("HTTP/1.1 200"));
    let (listed, _, _) = run(place.weir(&["volume", "list", "--output", "csv"]));
    assert!(listed.contains("v,host,P30,137438953472,5000,"), "{listed}");
    let refused = command(&[json, &token], r#"{"command":"set-tier","volume":"v","tier":"P99"}"#);
    assert!(refused.starts_with("HTTP/1.1 422") && refused.contains("unknown tier"), "{refused}");
    drop(client);
    server.stop();
    assert!(!file.exists());
}

#[test]
fn addresses_that_cannot_be_served_are_refused_before_anything_is_created() {
    let place = Place::new();
    place.file("layout.toml", LAYOUT);
    let serve = |args: &[&str]| {
        let own = ["serve", "layout.toml", "--nbd", "unix:nbd.sock", "--data", "data"];
        let (_, said, code) = run(place.weir(&[&own, args].concat()));
        (said, code)
    };
    for option in ["--web", "--metrics"] {
        let (said, code) = serve(&[option, "0.0.0.0:0"]);
        let expect = "weir: 0.0.0.0:0 can be reached from other machines, and the page has no login; \
                      listen on 127.0.0.1, or permit it with --web-remote\n";
        assert_eq!((said.as_str(), code), (expect, Some(2)));
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let (said, code) = serve(&["--web", &address]);
    assert!(code == Some(3) && said.contains("choose another address"), "{said}");
    let (said, code) = serve(&["--web-control"]);
    assert!(code == Some(2) && said.contains("--web <HOST:PORT>"), "{said}");
    assert!(!place.path("data").exists());
}

#[test]
fn a_run_has_metrics_while_it_lasts() {
    let place = Place::new();
    place.file(
        "layout.toml",
        "[[volume]]\nname = \"data\"\nunlimited = true\nsize = \"1 GiB\"\n[[volume]]\nname = \"log\"\n\
         unlimited = true\nsize = \"1 GiB\"\n[[file]]\nname = \"d\"\nrole = \"data\"\nsize = \"64 MiB\"\n\
         on = \"data\"\n[[file]]\nname = \"l\"\nrole = \"log\"\nsize = \"64 MiB\"\non = \"log\"\n",
    );
    place.file(
        "oltp.toml",
        "users = 1\nvcores = 1\nsize = \"8 MiB\"\nworking_set = \"4 MiB\"\nbuffer_pool = \"1 MiB\"\n\
         duration = \"10min\"\ndata = [\"d\"]\nlog = \"l\"\n[[transaction]]\nname = \"t\"\nshare = 1\n\
         reads = 2\nwrites = 1\nlog = \"1 KiB\"\ncpu = \"1ms\"\n",
    );
    let run_it = ["run", "layout.toml", "oltp.toml"];
    let control = [&run_it[..], &["--web", "127.0.0.1:0", "--web-control"]].concat();
    let (_, said, code) = run(place.weir(&control));
    assert!(code == Some(2) && said.contains("give --control PATH"), "{said}");
    let mut child = place.weir(&[&run_it[..], &["--metrics", "127.0.0.1:0"]].concat());
    let mut child = child.spawn().expect("a program");
    let mut said = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let line = said.next().expect("a line").expect("text");
    let address =
        line.strip_prefix("metrics http://").and_then(|rest| rest.strip_suffix("/metrics"));
    let text = ask(address.unwrap_or_else(|| panic!("{line}")), "GET /metrics", &[], "");
    assert!(
        text.contains("weir_volume_size_bytes{host=\"host\",volume=\"log\"} 1073741824.0"),
        "{text}"
    );
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process");
    kill_process(pid, Signal::INT).expect("it runs");
    assert_eq!(child.wait().expect("an end").code(), Some(130));
}
