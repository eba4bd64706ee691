//! The client against a small server over a pair of sockets, and against nbdkit.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use rustix::event::{PollFd, PollFlags, poll};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use weir_client::{Bulk, ClientError, Connection, Payloads, Stop};
use weir_proto::server::{Handshake, Parsed, Session, Step, parse_request};
use weir_proto::{
    BlockSizes, BlockState, Command, Errno, Export, Extent, Request, TransmissionFlags as Can, Uri,
    reply,
};
use weir_units::Bytes;

const SIZE: u64 = 8 << 20;

fn export() -> Export {
    Export {
        name: "disk".into(),
        description: String::new(),
        size: Bytes::new(SIZE),
        flags: Can::SEND_FLUSH | Can::SEND_FUA | Can::SEND_WRITE_ZEROES,
        block: BlockSizes::new(1, 4096, 4 << 20).unwrap(),
    }
}

/// A server of one disk in memory that answers in batches, each turned round.
struct Server<S> {
    stream: S,
    disk: Vec<u8>,
    input: Vec<u8>,
}

/// Starts a server; it returns its disk when the client has left.
fn start() -> (UnixStream, JoinHandle<Vec<u8>>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (theirs, thread::spawn(|| Server::new(ours).run()))
}

impl<S: Read + Write> Server<S> {
    fn new(stream: S) -> Self {
        let disk = vec![0; usize::try_from(SIZE).unwrap()];
        Self { stream, disk, input: Vec::new() }
    }

    fn run(mut self) -> Vec<u8> {
        let Some(session) = self.shake_hands() else { return self.disk };
        loop {
            let mut answers = Vec::new();
            let disconnect = self.batch(&session, &mut answers);
            answers.reverse();
            self.stream.write_all(&answers.concat()).unwrap();
            if disconnect || !self.receive() {
                return self.disk;
            }
        }
    }

    fn receive(&mut self) -> bool {
        let mut piece = [0; 50_000];
        let received = self.stream.read(&mut piece).unwrap();
        self.input.extend_from_slice(&piece[..received]);
        received > 0
    }

    fn shake_hands(&mut self) -> Option<Session> {
        let mut out = Vec::new();
        let mut handshake = Handshake::start(&mut out);
        loop {
            let progress = handshake.handle(&vec![export()], &self.input, &mut out).ok()?;
            self.input.drain(..progress.consumed);
            self.stream.write_all(&out).unwrap();
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

    /// Answers every request that is whole; says whether one was a goodbye.
    fn batch(&mut self, session: &Session, answers: &mut Vec<Vec<u8>>) -> bool {
        let mut start = 0;
        loop {
            let mut out = Vec::new();
            match parse_request(&self.input[start..], session, Bytes::new(SIZE)).unwrap() {
                Parsed::NeedMore { .. } => break,
                Parsed::Refused { cookie, errno, reason, consumed, skip } => {
                    assert_eq!(skip, 0, "this server waits for the payload");
                    reply::error(&mut out, session.structured, cookie, errno, reason);
                    start += consumed;
                }
                Parsed::Request { request, payload, consumed } => {
                    if request.command == Command::Disconnect {
                        return true;
                    }
                    execute(&mut self.disk, session, (request, payload), &mut out);
                    start += consumed;
                }
            }
            answers.push(out);
        }
        self.input.drain(..start);
        false
    }
}

/// The first MiB is a hole to a block status.
fn execute(
    disk: &mut [u8],
    session: &Session,
    (request, payload): (Request, &[u8]),
    out: &mut Vec<u8>,
) {
    let Request { command, cookie, offset, length, .. } = request;
    let start = usize::try_from(offset).unwrap();
    let range = &mut disk[start..start + length as usize];
    match command {
        Command::Read => {
            reply::read_header(out, session.structured, cookie, offset, length);
            out.extend_from_slice(range);
        }
        Command::Write => {
            range.copy_from_slice(payload);
            reply::ok(out, cookie);
        }
        Command::WriteZeroes => {
            range.fill(0);
            reply::ok(out, cookie);
        }
        Command::BlockStatus => {
            let hole = Extent { length: 1 << 20, state: BlockState::HOLE | BlockState::ZERO };
            let data = Extent { length: length - (1 << 20), state: BlockState::NONE };
            reply::block_status(out, cookie, session.meta_context.unwrap(), &[hole, data]);
        }
        _ => reply::ok(out, cookie),
    }
}

fn pattern(seed: u64, length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| (at * 31 + seed * 7 + at / 256).to_be_bytes()[7]).collect()
}

/// Sends and receives without blocking until everything is answered.
fn drain(connection: &mut Connection, mut on_reply: impl FnMut(u64, Result<&[u8], Errno>)) {
    while connection.in_flight() > 0 {
        connection.flush_out().unwrap();
        let mut wanted = PollFlags::IN;
        if connection.wants_write() {
            wanted |= PollFlags::OUT;
        }
        poll(&mut [PollFd::new(connection, wanted)], None).unwrap();
        connection.receive(&mut on_reply).unwrap();
    }
}

/// Writes and reads back in every way; works on any server of 8 MiB or more.
fn exercise(connection: &mut Connection) {
    let data = pattern(1, 5000);
    let mut back = vec![0; 5000];
    connection.write(3, &data).unwrap();
    connection.flush().unwrap();
    connection.read(3, &mut back).unwrap();
    assert!(back == data);
    let error = connection.read(u64::MAX - 10, &mut back).unwrap_err();
    assert_eq!(error.to_string(), "the server answered EINVAL");

    // More than any socket buffer holds, in both directions at once, with sizes
    // from one byte to beyond the receive buffer.
    let lengths = [1, 4096, 65_536, 300_000, 1 << 20, 17, 131_072];
    let offset = |cookie: u64| cookie * (1 << 20);
    connection.set_nonblocking(true).unwrap();
    let mut answered = Vec::new();
    for (cookie, length) in (0..).zip(lengths) {
        connection.queue_write(cookie, offset(cookie), &pattern(cookie, length), true).unwrap();
    }
    drain(connection, |cookie, answer| {
        assert_eq!(answer, Ok(&[][..]));
        answered.push(cookie);
    });
    answered.sort_unstable();
    assert_eq!(answered, [0, 1, 2, 3, 4, 5, 6]);

    answered.clear();
    for round in 0..3 {
        for (cookie, length) in (0..).zip(lengths) {
            let length = u32::try_from(length).unwrap();
            connection.queue_read(round * 100 + cookie, offset(cookie), length).unwrap();
        }
        connection.queue_flush(round * 100 + 50).unwrap();
        connection.queue_read(round * 100 + 51, u64::MAX, 1).unwrap();
    }
    drain(connection, |cookie, answer| {
        answered.push(cookie);
        match cookie % 100 {
            50 => assert_eq!(answer, Ok(&[][..])),
            51 => assert_eq!(answer, Err(Errno::Inval)),
            number => {
                let length = lengths[usize::try_from(number).unwrap()];
                assert!(answer == Ok(&pattern(number, length)), "read {cookie} differs");
            }
        }
    });
    assert_eq!(answered.len(), 27);
    assert_eq!(connection.receive(|_, _| panic!("nothing was asked")).unwrap(), 0);
}

#[test]
fn written_bytes_are_read_back() {
    let (stream, server) = start();
    let mut connection = Connection::over(stream.into(), "disk").unwrap();
    assert_eq!(connection.size(), Bytes::mib(8));
    exercise(&mut connection);
    connection.close().unwrap();
    let disk = server.join().unwrap();
    assert!(disk[3 << 20..].starts_with(&pattern(3, 300_000)));
}

#[test]
fn it_is_the_same_with_structured_replies() {
    let (stream, server) = start();
    let mut connection = Connection::over_sparse(stream.into(), "disk").unwrap();
    exercise(&mut connection);
    connection.set_nonblocking(false).unwrap();
    let extents = connection.extents(0, 8 << 20).unwrap();
    let expect = [
        Extent { length: 1 << 20, state: BlockState::HOLE | BlockState::ZERO },
        Extent { length: 7 << 20, state: BlockState::NONE },
    ];
    assert_eq!(extents, expect);
    connection.write_zeroes(3 << 20, 4096).unwrap();
    connection.close().unwrap();
    let disk = server.join().unwrap();
    assert!(disk[3 << 20..][..4096].iter().all(|byte| *byte == 0));
    assert!(disk[(3 << 20) + 4096..].starts_with(&pattern(3, 300_000)[4096..]));
}

#[test]
fn a_session_without_extents_says_so() {
    let (stream, server) = start();
    let mut connection = Connection::over(stream.into(), "disk").unwrap();
    assert!(!connection.has_extents());
    let error = connection.extents(0, 4096).unwrap_err();
    assert_eq!(error.to_string(), "the export does not offer base:allocation");
    connection.close().unwrap();
    server.join().unwrap();
}

/// Buffers by cookie, and the answers.
struct Buffers {
    buffers: Vec<Vec<u8>>,
    answered: Vec<(u64, Result<(), Errno>)>,
}

impl Payloads for Buffers {
    fn landing(&mut self, cookie: u64) -> &mut [u8] {
        &mut self.buffers[usize::try_from(cookie).unwrap()]
    }

    fn lent(&self, cookie: u64) -> &[u8] {
        &self.buffers[usize::try_from(cookie).unwrap()]
    }

    fn finished(&mut self, cookie: u64, result: Result<(), Errno>) {
        self.answered.push((cookie, result));
    }
}

#[test]
fn bulk_transfers_use_the_buffers_of_the_caller() {
    let (stream, server) = start();
    let mut bulk = Bulk::new(Connection::over(stream.into(), "disk").unwrap()).unwrap();
    let lengths = [1, 4096, 65_536, 300_000, 1 << 20, 17, 131_072];
    let data = (0..).zip(lengths).map(|(cookie, length)| pattern(cookie, length));
    let mut own = Buffers { buffers: data.collect(), answered: Vec::new() };
    let expect = own.buffers.clone();
    for is_write in [true, false] {
        for (cookie, length) in (0..).zip(lengths) {
            let (offset, length) = (cookie << 20, u32::try_from(length).unwrap());
            if is_write {
                bulk.queue_write(cookie, offset, length, cookie % 2 == 0).unwrap();
            } else {
                own.landing(cookie).fill(0);
                bulk.queue_read(cookie, offset, length).unwrap();
            }
        }
        bulk.queue_flush(90).unwrap();
        bulk.queue_read(91, u64::MAX, 1).unwrap();
        while bulk.in_flight() > 0 {
            bulk.flush_out(&own).unwrap();
            let more = if bulk.wants_write() { PollFlags::OUT } else { PollFlags::empty() };
            poll(&mut [PollFd::new(&bulk, PollFlags::IN | more)], None).unwrap();
            bulk.receive(&mut own).unwrap();
        }
        own.answered.sort_unstable_by_key(|(cookie, _)| *cookie);
        let mut answers: Vec<_> = (0..7).map(|cookie| (cookie, Ok(()))).collect();
        answers.extend([(90, Ok(())), (91, Err(Errno::Inval))]);
        assert_eq!(own.answered, answers);
        assert!(own.buffers == expect);
        own.answered.clear();
    }
    bulk.close().unwrap();
    let disk = server.join().unwrap();
    assert!(disk[4 << 20..].starts_with(&pattern(4, 1 << 20)));
}

#[test]
fn it_is_the_same_over_tcp() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("nbd://{}/disk", listener.local_addr().unwrap());
    let server = thread::spawn(move || Server::new(listener.accept().unwrap().0).run());
    let mut connection = Connection::open(&uri.parse().unwrap()).unwrap();
    exercise(&mut connection);
    connection.close().unwrap();
    server.join().unwrap();
}

#[test]
fn requests_that_the_export_refuses_are_not_sent() {
    let (stream, server) = start();
    let mut connection = Connection::over(stream.into(), "disk").unwrap();
    let refused = connection.queue_trim(1, 0, 4096).map_err(|error| error.to_string());
    assert_eq!(refused, Err("the export does not offer TRIM".to_string()));
    let too_long = "a request of 4194305 bytes is above the export's maximum of 4194304 bytes";
    let refused = connection.queue_read(1, 0, (4 << 20) + 1).map_err(|error| error.to_string());
    assert_eq!(refused, Err(too_long.to_string()));
    let data = vec![0; (4 << 20) + 1];
    let refused = connection.queue_write(1, 0, &data, false).map_err(|error| error.to_string());
    assert_eq!(refused, Err(too_long.to_string()));
    assert!(connection.in_flight() == 0 && !connection.wants_write());
    connection.close().unwrap();
    server.join().unwrap();
}

#[test]
fn an_unknown_export_is_named() {
    let (stream, server) = start();
    let error = Connection::over(stream.into(), "tape").unwrap_err();
    let message = "the server: the server refused the export \"tape\" (unknown export): \
                   there is no export named \"tape\"";
    assert_eq!(error.to_string(), message);
    server.join().unwrap();
}

/// The client has sent one read; the server answers `answer` and leaves.
#[track_caller]
fn check_lost(answer: &[u8], message: &str) {
    let (stream, theirs) = UnixStream::pair().unwrap();
    let answer = answer.to_vec();
    let server = thread::spawn(move || {
        let mut server = Server::new(stream);
        server.shake_hands().unwrap();
        while server.input.len() < 28 {
            assert!(server.receive());
        }
        server.stream.write_all(&answer).unwrap();
    });
    let mut connection = Connection::over(theirs.into(), "").unwrap();
    let error = connection.read(0, &mut [0; 4]).unwrap_err();
    assert_eq!(error.to_string(), message);
    server.join().unwrap();
}

#[test]
fn a_server_that_leaves_or_talks_nonsense_is_reported() {
    let closed = "the server closed the connection with 1 requests unanswered";
    check_lost(b"", closed);
    check_lost(b"\x67\x44\x66\x98\0\0\0\0\0\0\0\0\0\0\0\0abc", closed);
    check_lost(
        b"HTTP/1.1 400",
        "the server: a reply starts with 0x48545450; the server lost its place",
    );
    check_lost(
        b"\x67\x44\x66\x98\0\0\0\0\0\0\0\x01\0\0\0\0",
        "the server: the server answered the request 0x100000000, which is not waiting for an \
         answer",
    );
}

#[test]
fn a_missing_server_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("none");
    let uri: Uri = format!("nbd+unix:///?socket={}", socket.display()).parse().unwrap();
    let error = Connection::open(&uri).unwrap_err();
    let expect = format!(
        "cannot connect to {}: No such file or directory (os error 2); is the server running?",
        socket.display()
    );
    assert_eq!(error.to_string(), expect);
    assert!(matches!(error, ClientError::Connect { .. }));
}

/// An nbdkit that lives until its standard input is closed, which happens even if
/// the test does not get to its end.
fn nbdkit() -> Option<(Child, Uri)> {
    let mut nbdkit = std::process::Command::new("nbdkit");
    nbdkit.args(["-U", "-", "memory", "64M", "--run", "echo \"$uri\"; read line"]);
    let child = match nbdkit.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        child => child,
    };
    let mut child = child.unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    Some((child, line.trim().parse().unwrap()))
}

#[test]
fn nbdkit_is_understood() {
    let Some((mut child, uri)) = nbdkit() else {
        assert!(std::env::var_os("CI").is_none(), "CI needs nbdkit");
        println!("skipped: needs nbdkit");
        return;
    };
    let mut connection = Connection::open(&uri).unwrap();
    assert_eq!(connection.size(), Bytes::mib(64));
    exercise(&mut connection);
    connection.queue_trim(9, 0, 1 << 20).unwrap();
    drain(&mut connection, |cookie, answer| assert_eq!((cookie, answer), (9, Ok(&[][..]))));
    connection.set_nonblocking(false).unwrap();
    let mut back = [1; 4096];
    connection.read(0, &mut back).unwrap();
    assert!(back.iter().all(|byte| *byte == 0));
    connection.close().unwrap();
    drop(child.stdin.take());
    child.wait().unwrap();
}

/// A server on a Unix socket that shakes hands, if it should, and then says nothing.
fn silent(shakes_hands: bool) -> (tempfile::TempDir, Uri) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut server = Server::new(stream);
        if shakes_hands {
            server.shake_hands().unwrap();
        }
        while server.receive() {}
    });
    let uri = format!("nbd+unix:///?socket={}", socket.display());
    (folder, uri.parse().unwrap())
}

#[test]
fn a_stop_ends_the_wait_for_a_server_that_says_nothing() {
    let is_set = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_set);
    let stop = Stop::new(move || flag.load(Ordering::Relaxed));
    let (_folder, uri) = silent(true);
    let mut connection = Connection::open_until(&uri, false, &stop).unwrap();
    let (begun, has_begun) = channel();
    let reader = thread::spawn(move || {
        begun.send(()).unwrap();
        let ends = [connection.read(0, &mut [0; 512]), connection.flush()];
        ends.map(|end| end.unwrap_err().to_string())
    });
    has_begun.recv().unwrap();
    is_set.store(true, Ordering::Relaxed);
    // The second request is not sent: the answer to the first may still come.
    assert_eq!(reader.join().unwrap(), ["the wait was stopped"; 2]);
    let (_folder, uri) = silent(false);
    let error = Connection::open_until(&uri, true, &stop).unwrap_err();
    assert!(matches!(error, ClientError::Stopped), "{error}");
}

/// The server executes what it has received before it closes its side.
#[test]
fn a_server_that_is_hung_up_on_is_waited_for() {
    let (stream, server) = start();
    let mut client = Connection::over(stream.into(), "disk").unwrap();
    client.queue_write(1, 4096, &[7; 512], false).unwrap();
    assert!(client.flush_out().unwrap());
    assert!(client.hang_up(std::time::Duration::from_secs(60), &Stop::new(|| false)));
    assert_eq!(server.join().unwrap()[4096..4096 + 512], [7; 512]);
    // One that does not end is not waited for any longer.
    let (stream, server) = start();
    let client = Connection::over(stream.into(), "disk").unwrap();
    assert!(!client.hang_up(std::time::Duration::from_secs(60), &Stop::new(|| true)));
    server.join().unwrap();
}
