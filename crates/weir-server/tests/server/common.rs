//! A server in a folder of its own, and clients for it.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use weir_catalog::Catalog;
use weir_client::Connection;
use weir_layout::Layout;
use weir_proto::client::{Body, Handshake, ParsedReply, Session, Step, Wanted, parse_reply};
use weir_proto::{Command, Errno, Request, TransmissionFlags, Uri};
use weir_server::control::{self, Request as Control};
use weir_server::{Address, Options, Server, ServerError};

/// A folder for sockets and data; gone at the end.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path("data")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path("nbd.sock")
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            data: None,
            listen: vec![Address::Unix(self.socket())],
            control: Some(self.path("control.sock")),
            ..Options::default()
        }
    }

    /// Serves `layout`, in memory.
    pub(crate) fn serve(&self, layout: &str) -> Server {
        start(layout, &self.options()).expect("a server")
    }

    /// Serves `layout` from the data directory of this place.
    pub(crate) fn serve_kept(&self, layout: &str) -> Server {
        self.try_kept(layout).expect("a server")
    }

    pub(crate) fn try_kept(&self, layout: &str) -> Result<Server, ServerError> {
        start(layout, &Options { data: Some(self.data()), ..self.options() })
    }

    /// Opens an export.
    pub(crate) fn open(&self, export: &str) -> Connection {
        Connection::open(&self.uri(export)).expect("an export")
    }

    pub(crate) fn uri(&self, export: &str) -> Uri {
        let server = weir_proto::uri::Server::Unix { socket: self.socket().display().to_string() };
        Uri { server, tls: None, export: export.to_owned() }
    }

    /// Asks over the control socket; what it refuses, it refuses for the input.
    pub(crate) fn ask(&self, request: &Control) -> Result<serde_json::Value, String> {
        control::ask(&self.path("control.sock"), request).map_err(|error| match error {
            ServerError::Refused(reason) => reason,
            other => panic!("{other:?}"),
        })
    }
}

pub(crate) fn start(layout: &str, options: &Options) -> Result<Server, ServerError> {
    let catalog = Catalog::builtin();
    let layout = Layout::parse("layout.toml", layout, &catalog).expect("a sound layout");
    let edition = layout.edition.clone();
    let edition = edition.map(|name| catalog.edition(&name).expect("a known edition"));
    Server::start(layout, edition, options)
}

/// Volumes without limits, each of `size`.
pub(crate) fn unlimited(size: &str, names: &[&str]) -> String {
    let volume = |name: &&str| {
        format!("[[volume]]\nname = \"{name}\"\nunlimited = true\nsize = \"{size}\"\n")
    };
    names.iter().map(volume).collect()
}

/// A client that says what a well-behaved one would not.
pub(crate) struct Raw {
    pub(crate) stream: UnixStream,
    session: Session,
    input: Vec<u8>,
}

/// A reply: the cookie, and the data or the errno.
pub(crate) type Answer = (u64, Result<Vec<u8>, Errno>);

impl Raw {
    pub(crate) fn open(socket: &Path, export: &str) -> Self {
        let stream = UnixStream::connect(socket).expect("a server");
        let wanted =
            Wanted { export: export.to_owned(), structured: true, block_status: true, tls: false };
        let mut handshake = Handshake::open(wanted);
        let (mut input, mut out) = (Vec::new(), Vec::new());
        loop {
            let progress = handshake.handle(&input, &mut out).expect("a server's handshake");
            input.drain(..progress.consumed);
            (&stream).write_all(&out).expect("the server listens");
            out.clear();
            match progress.step {
                Step::Established(session) => return Self { stream, session, input },
                Step::Again => {}
                Step::NeedMore { .. } => assert!(receive(&stream, &mut input), "it hung up"),
                Step::Listed(_) => panic!("no list was asked for"),
                Step::StartTls => panic!("TLS was not asked for"),
            }
        }
    }

    pub(crate) fn flags(&self) -> TransmissionFlags {
        self.session.flags
    }

    pub(crate) fn send(&self, bytes: &[u8]) {
        (&self.stream).write_all(bytes).expect("the server listens");
    }

    /// Returns whether no reply comes for a moment.
    pub(crate) fn is_silent(&self) -> bool {
        self.stream.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
        let is_silent = (&self.stream).read(&mut [0]).is_err();
        self.stream.set_read_timeout(None).expect("no timeout");
        is_silent && self.input.is_empty()
    }

    /// The next reply; `None` if the server has hung up.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        let mut data = Vec::new();
        loop {
            let parsed = parse_reply(&self.input, &self.session, |_| None).expect("a reply");
            let ParsedReply::Reply { reply, consumed } = parsed else {
                if receive(&self.stream, &mut self.input) {
                    continue;
                }
                return None;
            };
            let result = match reply.body {
                Body::Data { data: more, .. } => {
                    data.extend_from_slice(more);
                    Ok(())
                }
                Body::Error { errno, .. } => Err(errno),
                Body::BlockStatus { .. } | Body::Nothing | Body::Hole { .. } => Ok(()),
            };
            let (cookie, done) = (reply.cookie, reply.done);
            self.input.drain(..consumed);
            if done {
                return Some((cookie, result.map(|()| data)));
            }
        }
    }
}

fn receive(mut stream: &UnixStream, input: &mut Vec<u8>) -> bool {
    let mut piece = vec![0; 64 << 10];
    match stream.read(&mut piece) {
        Ok(0) | Err(_) => false,
        Ok(n) => {
            input.extend_from_slice(&piece[..n]);
            true
        }
    }
}

/// The bytes of a request.
pub(crate) fn request(command: Command, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    let mut out = Vec::new();
    Request::new(command, cookie, offset, length).encode(&mut out);
    out
}
