//! An NBD server of one store on a Unix socket, which notes each change.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use weir_proto::server::{Handshake, Parsed, Session, Step, parse_request};
use weir_proto::{
    BlockSizes, BlockState, Command, CommandFlags, Errno, Export, Extent, Request,
    TransmissionFlags as Can, Uri, reply,
};
use weir_store::{FaultStore, Store};
use weir_units::Bytes;

/// A change of a store.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Write(u64, Vec<u8>),
    Zeros(u64, u64),
    Sync,
}

impl Change {
    /// Does it to a store.
    pub(crate) fn apply(&self, store: &FaultStore) {
        match self {
            Self::Write(offset, bytes) => store.write_at(*offset, bytes),
            Self::Zeros(offset, length) => store.write_zeroes(*offset, *length, true),
            Self::Sync => store.sync(),
        }
        .unwrap();
    }
}

/// An export that is served until it is dropped.
pub(crate) struct Served {
    disk: Arc<Disk>,
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

struct Disk {
    store: FaultStore,
    changes: Mutex<Vec<Change>>,
}

impl Served {
    pub(crate) fn new(store: FaultStore) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let disk = Arc::new(Disk { store, changes: Mutex::default() });
        let own = Arc::clone(&disk);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(stream), disk) = (stream, Arc::clone(&own)) else { return };
                thread::spawn(move || Conversation { stream, input: Vec::new(), disk }.run());
            }
        });
        Self { disk, socket, _folder: folder }
    }

    pub(crate) fn uri(&self) -> Uri {
        format!("nbd+unix:///disk?socket={}", self.socket.display()).parse().unwrap()
    }

    pub(crate) fn store(&self) -> &FaultStore {
        &self.disk.store
    }

    /// Returns the changes so far.
    pub(crate) fn changes(&self) -> Vec<Change> {
        self.disk.changes.lock().unwrap().clone()
    }
}

struct Conversation {
    stream: UnixStream,
    input: Vec<u8>,
    disk: Arc<Disk>,
}

impl Conversation {
    fn export(&self) -> Export {
        Export {
            name: "disk".into(),
            description: String::new(),
            size: self.disk.store.size(),
            flags: Can::SEND_FLUSH | Can::SEND_FUA | Can::SEND_WRITE_ZEROES,
            block: BlockSizes::new(1, 4096, 8 << 20).unwrap(),
        }
    }

    fn run(mut self) {
        let Some(session) = self.shake_hands() else { return };
        loop {
            let mut out = Vec::new();
            let is_over = self.answer(&session, &mut out);
            if self.stream.write_all(&out).is_err() || is_over || !self.receive() {
                return;
            }
        }
    }

    fn receive(&mut self) -> bool {
        let mut piece = vec![0; 1 << 20];
        let received = self.stream.read(&mut piece).unwrap_or(0);
        self.input.extend_from_slice(&piece[..received]);
        received > 0
    }

    fn shake_hands(&mut self) -> Option<Session> {
        let mut out = Vec::new();
        let mut handshake = Handshake::start(&mut out);
        loop {
            let progress = handshake.handle(&vec![self.export()], &self.input, &mut out).ok()?;
            self.input.drain(..progress.consumed);
            self.stream.write_all(&out).ok()?;
            out.clear();
            match progress.step {
                Step::NeedMore { .. } if !self.receive() => return None,
                Step::Established(session) => return Some(session),
                Step::StartTls => unreachable!("TLS is not offered"),
                Step::Aborted => return None,
                Step::NeedMore { .. } | Step::Again => {}
            }
        }
    }

    /// Answers every request that is whole. Returns whether one was a goodbye.
    fn answer(&mut self, session: &Session, out: &mut Vec<u8>) -> bool {
        let mut start = 0;
        let size = self.disk.store.size();
        loop {
            match parse_request(&self.input[start..], session, size).unwrap() {
                Parsed::NeedMore { .. } => break,
                Parsed::Refused { cookie, errno, reason, consumed, .. } => {
                    reply::error(out, session.structured, cookie, errno, reason);
                    start += consumed;
                }
                Parsed::Request { request, payload, consumed } => {
                    if request.command == Command::Disconnect {
                        return true;
                    }
                    self.disk.execute(session, (request, payload), out);
                    start += consumed;
                }
            }
        }
        self.input.drain(..start);
        false
    }
}

impl Disk {
    fn execute(&self, session: &Session, own: (Request, &[u8]), out: &mut Vec<u8>) {
        let (Request { command, cookie, offset, length, flags }, payload) = own;
        let mut changes = self.changes.lock().unwrap();
        let mut new = Vec::new();
        match command {
            Command::Read => {
                let mut bytes = vec![0; length as usize];
                if self.store.read_at(offset, &mut bytes).is_err() {
                    return reply::error(out, session.structured, cookie, Errno::Io, "broken");
                }
                reply::read_header(out, session.structured, cookie, offset, length);
                out.extend_from_slice(&bytes);
                return;
            }
            // All of it is data.
            Command::BlockStatus => {
                let extents = [Extent { length, state: BlockState::NONE }];
                let context = session.meta_context.unwrap();
                return reply::block_status(out, cookie, context, &extents);
            }
            Command::Write => new.push(Change::Write(offset, payload.to_vec())),
            Command::WriteZeroes => new.push(Change::Zeros(offset, length.into())),
            Command::Flush => new.push(Change::Sync),
            _ => return reply::error(out, session.structured, cookie, Errno::Inval, "not served"),
        }
        if flags.contains(CommandFlags::FUA) {
            new.push(Change::Sync);
        }
        new.iter().for_each(|change| change.apply(&self.store));
        changes.extend(new);
        reply::ok(out, cookie);
    }
}

/// Returns a store of a size with bytes at its start, which are durable.
pub(crate) fn store(size: u64, bytes: &[u8]) -> FaultStore {
    let store = FaultStore::new(Bytes::new(size));
    store.write_at(0, bytes).unwrap();
    store.sync().unwrap();
    store
}
