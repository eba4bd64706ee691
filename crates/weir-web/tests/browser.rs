//! The page in a real browser, by `browser.mjs`.

use serde_json::{Value, json};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weir_report::status::{
    BackendStatus, CapStatus, ClientStatus, ExportStatus, HostStatus, LATENCY_BOUNDS_NS, OpLatency,
    Status, VolumeStatus,
};
use weir_server::ServerError;
use weir_server::control::Request;
use weir_web::{Bound, Content, Source, Token};

/// A host with 200 volumes, of which one is throttled, one spends credits, one has a bad name, and one
/// loses its backend when the host crashes.
struct Disks {
    readings: AtomicU64,
    tier: Mutex<String>,
    crashes: AtomicU64,
}

const BAD_NAME: &str = "<script>window.hacked = 1</script><img src=x onerror=alert(1)>\"";

impl Disks {
    fn volume(&self, n: u64, index: u64) -> VolumeStatus {
        let name = match index {
            0 => "data".to_owned(),
            1 => "log".to_owned(),
            2 => BAD_NAME.to_owned(),
            n => format!("volume-{n}"),
        };
        let tier = self.tier.lock().expect("a lock").clone();
        let own_tier = if index == 0 { tier } else { "P10".to_owned() };
        let limit = if own_tier == "P40" { 7_500 } else { 500 };
        // Rates that differ and vary, but are known for the first volume.
        let reads = if index == 0 { n * 480 } else { n * 10 * index + (n % 20) * index };
        let bursts = index == 1;
        let backend = (index == 3).then(|| match self.crashes.load(Ordering::Relaxed) {
            0 => BackendStatus {
                address: "nbd://far/".into(),
                state: "connected".into(),
                ..BackendStatus::default()
            },
            _ => BackendStatus {
                address: "nbd://far/".into(),
                state: "lost".into(),
                reason: Some("no answer for <b>30 s</b>".into()),
                since_ns: n * 1_000_000_000,
            },
        });
        let waits = [("disk_iops", n * 900_000_000), ("host_uncached_iops", n * 300_000_000)];
        VolumeStatus {
            name,
            tier: Some(own_tier),
            size_bytes: 128 << 30,
            cache: "none".into(),
            limit_iops: Some(limit),
            limit_bytes_per_s: Some(100_000_000),
            burst_iops: bursts.then_some(3_500),
            credits_operations: bursts.then(|| 5_400_000_u64.saturating_sub(n * 2_500)),
            full_operations: bursts.then_some(5_400_000),
            reads,
            writes: reads / 3,
            read_bytes: reads << 13,
            write_bytes: (reads / 3) << 13,
            hits: reads / 5,
            backend,
            medium_ns: reads * 600_000,
            waits_ns: waits
                .iter()
                .filter(|_| index == 0)
                .map(|(c, ns)| ((*c).into(), *ns))
                .collect(),
            ..VolumeStatus::default()
        }
    }
}

/// Returns a client that did `n` requests of 4 KiB.
fn client(id: u64, peer: &str, n: u64) -> ClientStatus {
    ClientStatus { id, peer: peer.to_owned(), requests: n, bytes: n << 12, in_flight: 3 }
}

impl Source for Disks {
    fn status(&self) -> Status {
        let n = self.readings.fetch_add(1, Ordering::Relaxed);
        let mut counts = vec![0; LATENCY_BOUNDS_NS.len() + 1];
        (counts[6], counts[8]) = (n * 400, n * 80);
        let export = ExportStatus {
            name: "data".into(),
            volumes: vec!["data".into()],
            latencies: vec![OpLatency { op: "read".into(), counts, sum_ns: 0 }],
            clients: vec![client(1, "127.0.0.1:50000", 100 * n), client(2, BAD_NAME, 400 * n)],
            ..ExportStatus::default()
        };
        let limit = |cap: &str, limit| CapStatus { cap: cap.into(), limit, ..CapStatus::default() };
        let host = HostStatus {
            name: "host".into(),
            size: Some("D8s_v3".into()),
            caps: vec![
                limit("host_uncached_iops", 12_800),
                limit("host_uncached_bytes", 192_000_000),
            ],
            crashes: self.crashes.load(Ordering::Relaxed),
            volumes: (0..200).map(|index| self.volume(n, index)).collect(),
            exports: vec![export],
            ..HostStatus::default()
        };
        Status { uptime_ns: n * 1_000_000_000, hosts: vec![host], ..Status::default() }
    }

    fn command(&self, request: Request) -> Result<Value, ServerError> {
        match request {
            Request::SetTier { tier, .. } if tier == "P40" => {
                self.tier.lock().expect("a lock").clone_from(&tier);
                Ok(json!({ "tier": tier }))
            }
            Request::SetTier { tier, .. } => {
                Err(ServerError::Refused(format!("unknown tier <b>{tier}</b>")))
            }
            _ => {
                self.crashes.fetch_add(1, Ordering::Relaxed);
                Ok(Value::Null)
            }
        }
    }
}

/// Returns the browser: `WEIR_TEST_CHROMIUM`, or the one in `PATH`.
fn chromium() -> Option<PathBuf> {
    let named = std::env::var_os("WEIR_TEST_CHROMIUM").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        || std::env::split_paths(&path).map(|dir| dir.join("chromium")).find(|p| p.is_file());
    named.or_else(found)
}

/// Returns whether Node.js has the driver of the browser, in `WEIR_TEST_NODE` or here.
fn has_driver(folder: &Path) -> bool {
    let mut node = Command::new("node");
    node.args(["-e", "require('playwright-core')"]).current_dir(folder);
    node.output().is_ok_and(|output| output.status.success())
}

#[test]
fn the_page_works_in_a_browser() {
    let node = std::env::var_os("WEIR_TEST_NODE").map_or_else(|| PathBuf::from("."), PathBuf::from);
    let browser = chromium().filter(|_| has_driver(&node));
    let must = std::env::var_os("CI").as_deref() == Some(OsStr::new("true"));
    assert!(browser.is_some() || !must, "CI=true, and chromium or playwright-core is missing");
    let Some(browser) = browser else {
        println!("skipped: needs chromium and playwright-core for Node.js");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let pictures = std::env::var_os("WEIR_TEST_PICTURES");
    let pictures = pictures.map_or_else(|| folder.path().to_owned(), PathBuf::from);
    let disks = Arc::new(Disks {
        readings: AtomicU64::new(1),
        tier: Mutex::new("P10".to_owned()),
        crashes: AtomicU64::new(0),
    });
    let serve = |address: &str| {
        let token = Token::create(&folder.path().join("token")).expect("a token");
        let secret = token.secret().to_owned();
        let bound = Bound::new(address, false).expect("a free port");
        // A chart has points soon.
        let bound = bound.sampled_every(Duration::from_millis(200));
        let endpoint = bound.serve(disks.clone(), Content::Page(Some(token)));
        (endpoint.expect("a thread"), secret)
    };
    let (endpoint, secret) = serve("127.0.0.1:0");
    let address = endpoint.address().to_string();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser.mjs");
    let mut child = Command::new("node")
        .arg(script)
        .arg(format!("http://{address}/"))
        .arg(&secret)
        .arg(&pictures)
        .arg(browser)
        .arg(BAD_NAME)
        .current_dir(&node)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node");
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut running = Some(endpoint);
    let mut passed = 0;
    let mut failed = Vec::new();
    for line in BufReader::new(child.stdout.take().expect("a pipe")).lines() {
        let line = line.expect("text");
        println!("{line}");
        match line.split(' ').next() {
            Some("ok") => passed += 1,
            Some("figure") => {}
            Some("restart") => {
                drop(running.take());
                running = Some(serve(&address).0);
                writeln!(stdin, "restarted").expect("it waits");
            }
            _ => failed.push(line),
        }
    }
    assert_eq!((failed, child.wait().expect("an end").code()), (vec![], Some(0)));
    assert!(passed >= 43, "{passed} checks");
}
