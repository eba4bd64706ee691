//! The endpoint over its socket, with a server that is a table of numbers.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weir_report::status::{HostStatus, Status, VolumeStatus};
use weir_server::ServerError;
use weir_server::control::Request;
use weir_web::{Bound, Content, Endpoint, Source, Token};

/// A host with volumes that do a thousand more reads at each reading.
#[derive(Default)]
struct Table {
    readings: AtomicU64,
    tier: Mutex<String>,
    asked: Mutex<Vec<Request>>,
}

impl Source for Table {
    fn status(&self) -> Status {
        let n = self.readings.fetch_add(1, Ordering::Relaxed);
        let volume = |name: &str| VolumeStatus {
            name: name.to_owned(),
            tier: Some(self.tier.lock().expect("a lock").clone()),
            limit_iops: Some(500),
            reads: n * 1_000,
            medium_ns: n * 1_000_000,
            ..VolumeStatus::default()
        };
        let volumes = vec![volume("<script>alert(1)</script>"), volume("data")];
        let host = HostStatus { name: "host".into(), volumes, ..HostStatus::default() };
        Status { uptime_ns: n * 1_000_000_000, hosts: vec![host], ..Status::default() }
    }

    fn command(&self, request: Request) -> Result<Value, ServerError> {
        self.asked.lock().expect("a lock").push(request.clone());
        match request {
            Request::SetTier { tier, .. } if tier == "P99" => {
                Err(ServerError::Refused("there is no P99".to_owned()))
            }
            Request::SetTier { tier, .. } => {
                self.tier.lock().expect("a lock").clone_from(&tier);
                Ok(json!({ "tier": tier }))
            }
            _ => Ok(Value::Null),
        }
    }
}

struct Rig {
    endpoint: Endpoint,
    table: Arc<Table>,
    folder: tempfile::TempDir,
}

fn bound() -> Bound {
    let bound = Bound::new("127.0.0.1:0", false).expect("a free port");
    bound.sampled_every(Duration::from_millis(20))
}

impl Rig {
    fn new(bound: Bound, content: impl FnOnce(PathBuf) -> Content) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let table = Arc::new(Table::default());
        let content = content(folder.path().join("token"));
        let endpoint = bound.serve(table.clone(), content).expect("a thread");
        Self { endpoint, table, folder }
    }

    fn page() -> Self {
        Self::new(bound(), |_| Content::Page(None))
    }

    fn with_control() -> Self {
        Self::new(bound(), |path| Content::Page(Some(Token::create(&path).expect("a token"))))
    }

    fn token(&self) -> String {
        let text = std::fs::read_to_string(self.folder.path().join("token")).expect("a token");
        text.trim().to_owned()
    }

    fn address(&self) -> SocketAddr {
        self.endpoint.address()
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address()).expect("a connection");
        // Only a failed test waits for so long.
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
        stream
    }

    /// Sends bytes; returns the whole answer, if the listener closes the connection.
    fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(bytes).expect("it listens");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Sends a request with these lines; returns the status, the head and the body.
    fn ask(&self, first: &str, lines: &[&str], body: &str) -> (u16, String, String) {
        let own = format!("Host: localhost:{}", self.address().port());
        let has_host = lines.iter().any(|line| line.to_ascii_lowercase().starts_with("host:"));
        let host = if has_host { vec![] } else { vec![own.as_str()] };
        let length = format!("Content-Length: {}", body.len());
        let all = [&host[..], lines, &["Connection: close", &length]].concat();
        let answer =
            self.raw(format!("{first} HTTP/1.1\r\n{}\r\n\r\n{body}", all.join("\r\n")).as_bytes());
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.unwrap_or(0), head.to_ascii_lowercase(), body.to_owned())
    }

    fn get(&self, path: &str) -> (u16, String, String) {
        self.ask(&format!("GET {path}"), &[], "")
    }

    fn command(&self, body: &str, more: &[&str]) -> (u16, String) {
        let token = format!("X-Weir-Token: {}", self.token());
        let lines = [&["Content-Type: application/json", token.as_str()], more].concat();
        let (status, _, body) = self.ask("POST /api/command", &lines, body);
        (status, body)
    }
}

/// Reads the next event of a stream in chunks: its name and data.
fn next_event(stream: &mut BufReader<TcpStream>) -> (String, Value) {
    let mut name = String::new();
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).expect("text") > 0, "the stream ended");
        if let Some(own) = line.strip_prefix("event: ") {
            name = own.trim_end().to_owned();
        } else if let Some(data) = line.strip_prefix("data: ") {
            return (name, serde_json::from_str(data).expect("JSON"));
        }
    }
}

fn live(rig: &Rig) -> BufReader<TcpStream> {
    let mut stream = rig.connect();
    write!(stream, "GET /api/live HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it listens");
    BufReader::new(stream)
}

#[test]
fn the_page_needs_nothing_from_elsewhere() {
    let rig = Rig::page();
    for (path, media_type) in [
        ("/", "text/html"),
        ("/page.js", "text/javascript"),
        ("/page.css", "text/css"),
        ("/uplot.js", "text/javascript"),
        ("/uplot.css", "text/css"),
        ("/icon.svg", "image/svg+xml"),
    ] {
        let (status, head, body) = rig.get(path);
        assert_eq!(status, 200, "{path}");
        assert!(head.contains(&format!("content-type: {media_type}")), "{head}");
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'",
            "x-content-type-options: nosniff",
            "x-frame-options: deny",
            "referrer-policy: no-referrer",
            "cross-origin-resource-policy: same-origin",
            "cache-control: no-store",
        ] {
            assert!(head.contains(header), "{path} lacks {header}: {head}");
        }
        assert!(!head.contains("unsafe-"), "{head}");
        assert!(!head.contains("access-control-allow"), "{head}");
        // Only names of XML and of the library's own page are addresses.
        let body = body
            .replace("http://www.w3.org/2000/svg", "")
            .replace("https://github.com/leeoniya/uPlot", "");
        assert!(!body.contains("http://") && !body.contains("https://"), "{path}");
        if path == "/" {
            let inline = [" onclick", " onload", " style=", "<style", "javascript:"];
            assert!(inline.iter().all(|word| !body.contains(word)), "{body}");
            assert_eq!(body.matches("<script").count(), body.matches("<script src=\"/").count());
        }
        if path == "/page.js" {
            // A page that is saved is read as HTML; nothing is set to it.
            assert_eq!(
                body.matches("outerHTML").count(),
                body.matches("${page.outerHTML}").count()
            );
            let unsafe_ways = ["innerHTML", "insertAdjacent", "document.write", "eval("];
            assert!(unsafe_ways.iter().all(|word| !body.contains(word)));
        }
        let (status, head_of_head, none) = rig.ask(&format!("HEAD {path}"), &[], "");
        assert_eq!((status, none.as_str()), (200, ""), "{head_of_head}");
    }
    assert_eq!(rig.get("/api/nothing").0, 404);
    assert_eq!(rig.get("/../etc/passwd").0, 404);
}

#[test]
fn requests_under_other_names_and_from_other_pages_are_refused() {
    let rig = Rig::page();
    for path in ["/", "/api/live", "/api/history?host=host", "/metrics", "/nothing"] {
        let first = format!("GET {path}");
        let (status, head, body) = rig.ask(&first, &["Host: evil.example"], "");
        assert_eq!(status, 421, "{path}");
        assert!(body.contains("is not a name of this listener"), "{body}");
        assert!(head.contains("content-security-policy"), "{head}");
    }
    let none = rig.raw(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert!(none.starts_with("HTTP/1.1 400"), "{none}");
    let history = "GET /api/history?host=host";
    assert_eq!(rig.ask(history, &["Origin: http://evil.example"], "").0, 403);
    assert_eq!(rig.ask(history, &["Sec-Fetch-Site: cross-site"], "").0, 403);
    assert_eq!(rig.ask("POST /", &[], "").0, 405);
    assert_eq!(rig.ask("DELETE /metrics", &[], "").0, 405);
}

#[test]
fn changes_need_the_token_and_the_page_itself() {
    let rig = Rig::with_control();
    let body = r#"{"command":"set-tier","volume":"data","tier":"P40"}"#;
    let json = "Content-Type: application/json";
    let token = format!("X-Weir-Token: {}", rig.token());
    let origin = format!("Origin: http://localhost:{}", rig.address().port());
    let ask = |lines: &[&str], body: &str| rig.ask("POST /api/command", lines, body).0;
    assert_eq!(ask(&[json], body), 401);
    assert_eq!(ask(&[json, "X-Weir-Token: 0"], body), 401);
    assert_eq!(ask(&[json, &token, &token], body), 400);
    assert_eq!(ask(&[json, &token, "Origin: http://evil.example"], body), 403);
    assert_eq!(ask(&[json, &token, "Origin: null"], body), 403);
    assert_eq!(ask(&[json, &token, "Sec-Fetch-Site: same-site"], body), 403);
    assert_eq!(ask(&[&token, "Content-Type: text/plain"], body), 415);
    assert_eq!(ask(&[json, &token], "{"), 400);
    assert_eq!(ask(&[json, &token], &" ".repeat(5_000)), 413);
    assert_eq!(rig.ask("GET /api/command", &[&token], "").0, 405);
    // The control socket knows more commands than the page may use.
    for more in [r#"{"command":"status"}"#, r#"{"command":"delete","volume":"data"}"#] {
        assert_eq!(ask(&[json, &token], more), 403, "{more}");
    }
    assert!(rig.table.asked.lock().expect("a lock").is_empty());
    assert_eq!(ask(&[json, &token, &origin, "Sec-Fetch-Site: same-origin"], body), 200);
    let (status, refused) =
        rig.command(r#"{"command":"set-tier","volume":"data","tier":"P99"}"#, &[]);
    assert_eq!(status, 422);
    assert!(refused.contains("there is no P99"), "{refused}");
    let commands = [
        r#"{"command":"resize","volume":"data","size":"2 TiB"}"#,
        r#"{"command":"set-cache","volume":"data","mode":"read-only"}"#,
        r#"{"command":"set-credits","volume":"data","credits":"0 %"}"#,
        r#"{"command":"set-host-credits","host":"host","credits":"50 %"}"#,
        r#"{"command":"crash","host":"host"}"#,
    ];
    for command in commands {
        assert_eq!(rig.command(command, &[]).0, 200, "{command}");
    }
    assert_eq!(rig.table.asked.lock().expect("a lock").len(), 2 + commands.len());
    // Without --web-control there is no token that would do.
    let plain = Rig::page();
    let (status, _, refused) = plain.ask("POST /api/command", &[json, &token], body);
    assert_eq!(status, 403);
    assert!(refused.contains("--web-control"), "{refused}");
}

#[test]
fn samples_are_pushed_and_a_change_shows() {
    let rig = Rig::with_control();
    let mut stream = live(&rig);
    let (name, described) = next_event(&mut stream);
    assert_eq!((name.as_str(), described["controls"].as_bool()), ("describe", Some(true)));
    let mut samples = 0;
    while samples < 3 {
        let (name, data) = next_event(&mut stream);
        if name == "sample" {
            // A thousand reads in a second of the table's own time.
            assert_eq!(data["rows"][2][0].as_f64(), Some(1_000.0), "{data}");
            samples += 1;
        }
    }
    assert_eq!(rig.command(r#"{"command":"set-tier","volume":"data","tier":"P40"}"#, &[]).0, 200);
    loop {
        let (name, data) = next_event(&mut stream);
        if name == "describe" && data["hosts"][0]["volumes"][1]["tier"] == "P40" {
            assert_eq!(data["hosts"][0]["volumes"][0]["name"], "<script>alert(1)</script>");
            break;
        }
    }
    let (status, _, history) =
        rig.get("/api/history?host=host&volume=%3Cscript%3Ealert(1)%3C%2Fscript%3E");
    assert_eq!(status, 200);
    let history: Value = serde_json::from_str(&history).expect("JSON");
    assert_eq!(history["columns"]["read_iops"].as_f64(), Some(1_000.0), "{history}");
    assert_eq!(rig.get("/api/history?host=host").0, 200);
    assert_eq!(rig.get("/api/history?host=host&volume=none").0, 404);
    assert_eq!(rig.get("/api/history").0, 400);
}

#[test]
fn metrics_alone_show_no_page() {
    let rig = Rig::new(bound(), |_| Content::Metrics);
    let (status, head, body) = rig.get("/metrics");
    assert_eq!(status, 200);
    assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(
        body.contains("weir_volume_io_total{host=\"host\",volume=\"data\",op=\"read\"} "),
        "{body}"
    );
    assert!(body.contains("volume=\"<script>alert(1)</script>\""), "{body}");
    assert!(body.ends_with("# EOF\n"));
    assert_eq!((rig.get("/").0, rig.get("/api/live").0), (404, 404));
    let page = Rig::page();
    assert_eq!(page.get("/metrics").0, 200);
}

#[test]
fn malformed_requests_end_their_connection_only() {
    let rig = Rig::page();
    let long = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "a".repeat(64 << 10));
    let binary: Vec<u8> = (0..=255).collect();
    for bytes in [
        &b"\r\n\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\x00b\r\n\r\n",
        b"GET / HTTP/1.1\r\n: no name\r\n\r\n",
        b"POST /api/command HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        long.as_bytes(),
        &binary,
    ] {
        let mut stream = rig.connect();
        // It may answer and close before it has read all.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        let is_refused = answer.is_empty() || answer.starts_with("HTTP/1.1 4");
        assert!(is_refused, "{:?}: {answer}", String::from_utf8_lossy(bytes));
        assert_eq!(rig.get("/").0, 200);
    }
}

#[test]
fn connections_without_progress_are_closed() {
    let bound = bound().with_patience(Duration::from_millis(50));
    let rig = Rig::new(bound, |_| Content::Page(None));
    // One says nothing, one stops in the middle of a head.
    let silent = rig.connect();
    let mut slow = rig.connect();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: loc").expect("it listens");
    for mut stream in [silent, slow] {
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"), "{answer:?}");
    }
    assert_eq!(rig.get("/").0, 200);
}

/// Clients that keep connections without using them keep nobody out: one of them is closed.
#[test]
fn a_client_replaces_an_idle_connection() {
    let rig = Rig::new(bound().with_patience(Duration::from_secs(3_600)), |_| Content::Page(None));
    let mut idle: Vec<TcpStream> = (0..64).map(|_| rig.connect()).collect();
    for stream in &mut idle {
        stream.write_all(b"GET /icon.svg HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it listens");
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 200");
    }
    assert_eq!(rig.get("/metrics").0, 200);
    let mut closed = 0;
    for stream in &mut idle {
        stream.set_nonblocking(true).expect("a socket");
        let mut rest = Vec::new();
        closed += usize::from(stream.read_to_end(&mut rest).is_ok());
    }
    assert!((1..=2).contains(&closed), "{closed} of 64 were closed");
}

#[test]
fn pages_are_bounded_and_the_end_is_not_held_up_by_them() {
    let rig = Rig::page();
    let mut open: Vec<BufReader<TcpStream>> = (0..16).map(|_| live(&rig)).collect();
    for stream in &mut open {
        assert_eq!(next_event(stream).0, "describe");
    }
    let (status, _, body) = rig.get("/api/live");
    assert_eq!((status, body.as_str()), (503, "too many pages are open; close one\n"));
    // A page that was closed makes room, once the listener has noticed.
    drop(open.pop());
    loop {
        let mut stream = live(&rig);
        let mut line = String::new();
        stream.read_line(&mut line).expect("text");
        if line.starts_with("HTTP/1.1 200") {
            break;
        }
        assert!(line.starts_with("HTTP/1.1 503"), "{line}");
    }
    drop(rig);
    for stream in &mut open {
        let mut rest = Vec::new();
        // It ends, in whatever way.
        let _ = stream.read_to_end(&mut rest);
    }
}
