//! Servers for jobs: a real one, and a scripted one.

#![allow(dead_code, clippy::unwrap_used, reason = "test code; each test file uses a part")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use tempfile::TempDir;
use weir_catalog::Catalog;
use weir_layout::Layout;
use weir_proto::server::{Handshake, Parsed, Session, Step, parse_request};
use weir_proto::{BlockSizes, Command, Errno, Export, Request, TransmissionFlags, Uri, reply};
use weir_report::run::RunReport;
use weir_report::status::ExportStatus;
use weir_runner::{RunOptions, RunnerError};
use weir_server::{Address, Options, Server};
use weir_units::Bytes;
use weir_workload::{Device, Isolated, Placed, fio, place};

/// A volume of 64 MiB without limits, and one beside it.
pub(crate) const TWO: &str = "[[volume]]\nname = \"v\"\nsize = \"64 MiB\"\nunlimited = true\n\
    [[volume]]\nname = \"w\"\nsize = \"64 MiB\"\nunlimited = true\n";

/// A server in this process with data in memory.
pub(crate) struct Served {
    pub(crate) server: Server,
    pub(crate) uris: Vec<Uri>,
    devices: Vec<Device>,
    _folder: TempDir,
}

impl Served {
    #[track_caller]
    pub(crate) fn new(layout: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::parse("layout.toml", layout, &Catalog::builtin()).unwrap();
        let listen = vec![Address::Unix(folder.path().join("nbd"))];
        let options = Options { listen, ..Options::default() };
        let server = Server::start(layout, None, &options).unwrap();
        let exports = exports(&server);
        let uri = |export: &ExportStatus| export.uris[0].parse().unwrap();
        let device = |export: &ExportStatus| Device {
            name: export.name.clone(),
            size: Bytes::new(export.size_bytes),
        };
        Self {
            uris: exports.iter().map(uri).collect(),
            devices: exports.iter().map(device).collect(),
            server,
            _folder: folder,
        }
    }

    #[track_caller]
    pub(crate) fn place(&self, jobs: &str) -> Vec<Placed> {
        let file = fio::parse("jobs.fio", jobs, &Isolated).unwrap_or_else(|e| panic!("{e}"));
        place(&file, &self.devices, &[]).unwrap_or_else(|e| panic!("{e}"))
    }

    pub(crate) fn options(&self) -> RunOptions<'_> {
        RunOptions { uris: &self.uris, seed: 7, ..RunOptions::default() }
    }

    /// Runs the jobs to their end.
    #[track_caller]
    pub(crate) fn run(&self, jobs: &str) -> RunReport {
        let report = weir_runner::run(self.place(jobs), &self.options());
        report.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns the number of requests that each export has answered.
    pub(crate) fn requests(&self) -> Vec<u64> {
        exports(&self.server).iter().map(|export| export.requests).collect()
    }

    /// Waits until the jobs have begun.
    pub(crate) fn wait_for_requests(&self) {
        while self.requests().iter().sum::<u64>() == 0 {
            thread::yield_now();
        }
    }
}

fn exports(server: &Server) -> Vec<ExportStatus> {
    server.status().hosts.into_iter().flat_map(|host| host.exports).collect()
}

/// Returns the partial report of a run that was stopped.
#[track_caller]
pub(crate) fn interrupted(result: Result<RunReport, RunnerError>) -> RunReport {
    match result {
        Err(RunnerError::Interrupted(report)) => *report,
        other => panic!("not interrupted: {other:?}"),
    }
}

/// Decides which error answers a request, if any, on an export that offers everything.
pub(crate) type Answer = fn(&Request) -> Option<Errno>;

/// A scripted server for one client, which returns the requests that it got.
pub(crate) struct Told {
    pub(crate) uri: Uri,
    requests: JoinHandle<Vec<Request>>,
}

impl Told {
    pub(crate) fn new(flags: TransmissionFlags, answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let uri = format!("nbd://{}/told", listener.local_addr().unwrap()).parse().unwrap();
        let export = Export {
            name: "told".into(),
            description: String::new(),
            size: Bytes::mib(1),
            flags,
            block: BlockSizes::new(1, 4096, 65_536).unwrap(),
        };
        let serve = move || serve(listener.accept().unwrap().0, export, answer);
        Self { uri, requests: thread::spawn(serve) }
    }

    pub(crate) fn run(&self, job: &str) -> Result<RunReport, RunnerError> {
        let text = format!("[global]\ndirectory=/mnt/told\n{job}");
        let file = fio::parse("jobs.fio", &text, &Isolated).unwrap_or_else(|e| panic!("{e}"));
        // The placement may assume a larger device.
        let devices = [Device { name: "told".into(), size: Bytes::mib(2) }];
        let placed = place(&file, &devices, &[]).unwrap_or_else(|e| panic!("{e}"));
        let uris = std::slice::from_ref(&self.uri);
        weir_runner::run(placed, &RunOptions { uris, ..RunOptions::default() })
    }

    pub(crate) fn requests(self) -> Vec<Request> {
        self.requests.join().unwrap()
    }
}

/// Answers until the client leaves.
fn serve(mut stream: TcpStream, export: Export, answer: Answer) -> Vec<Request> {
    let (mut input, mut requests) = (Vec::new(), Vec::new());
    let session = shake_hands(&mut stream, &mut input, export);
    loop {
        let mut out = Vec::new();
        match parse_request(&input, &session, Bytes::mib(1)).unwrap() {
            Parsed::NeedMore { .. } => {
                if !receive(&mut stream, &mut input) {
                    return requests;
                }
                continue;
            }
            Parsed::Refused { reason, .. } => panic!("the runner asked nonsense: {reason}"),
            Parsed::Request { request, .. } if request.command == Command::Disconnect => {
                return requests;
            }
            Parsed::Request { request, consumed, .. } => {
                match answer(&request) {
                    Some(errno) => reply::error(&mut out, false, request.cookie, errno, ""),
                    None if request.command == Command::Read => {
                        let Request { cookie, offset, length, .. } = request;
                        reply::read_header(&mut out, false, cookie, offset, length);
                        out.resize(out.len() + length as usize, 0);
                    }
                    None => reply::ok(&mut out, request.cookie),
                }
                requests.push(request);
                input.drain(..consumed);
            }
        }
        if stream.write_all(&out).is_err() {
            return requests;
        }
    }
}

fn shake_hands(stream: &mut TcpStream, input: &mut Vec<u8>, export: Export) -> Session {
    let (exports, mut out) = (vec![export], Vec::new());
    let mut handshake = Handshake::start(&mut out);
    loop {
        let progress = handshake.handle(&exports, input, &mut out).unwrap();
        input.drain(..progress.consumed);
        stream.write_all(&out).unwrap();
        out.clear();
        match progress.step {
            Step::NeedMore { .. } => assert!(receive(stream, input)),
            Step::Established(session) => return session,
            Step::StartTls => unreachable!("TLS is not offered"),
            Step::Aborted => panic!("the runner left during the handshake"),
            Step::Again => {}
        }
    }
}

fn receive(stream: &mut TcpStream, input: &mut Vec<u8>) -> bool {
    let mut piece = [0; 50_000];
    let received = stream.read(&mut piece).unwrap_or(0);
    input.extend_from_slice(&piece[..received]);
    received > 0
}
