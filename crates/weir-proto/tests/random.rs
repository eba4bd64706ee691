//! Client and server against each other with arbitrary splits, and on arbitrary bytes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use proptest::prelude::*;
use weir_proto::client::{self, Body, ParsedReply, Wanted, parse_reply};
use weir_proto::server::{self, Parsed, parse_request};
use weir_proto::{
    BlockSizes, BlockState, Command, CommandFlags, Errno, Export, Extent, Request,
    TransmissionFlags as Can, fuzz, reply,
};
use weir_units::Bytes;

const SIZE: u64 = 64 << 10;

fn exports() -> Vec<Export> {
    let all = Can::from_bits(0x0fff).without(Can::READ_ONLY).without(Can::SEND_FAST_ZERO);
    let export = |name: &str| Export {
        name: name.into(),
        description: "words".into(),
        size: Bytes::new(SIZE),
        flags: all,
        block: BlockSizes::DEFAULT,
    };
    vec![export("disk"), export("other")]
}

/// One direction of a pipe, whose bytes are delivered in given pieces.
struct Pipe {
    sent: Vec<u8>,
    delivered: usize,
    taken: usize,
}

impl Pipe {
    fn new() -> Self {
        Self { sent: Vec::new(), delivered: 0, taken: 0 }
    }

    fn input(&self) -> &[u8] {
        &self.sent[self.taken..self.delivered]
    }

    /// Delivers bytes; `false` if there were none.
    fn deliver(&mut self, bytes: usize) -> bool {
        let before = self.delivered;
        self.delivered = self.sent.len().min(before + bytes);
        self.delivered > before
    }
}

/// Both sessions, and all bytes sent in each direction.
struct Met {
    client: client::Session,
    server: server::Session,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
}

/// Runs both handshakes over pipes that deliver `pieces` in turn.
fn meet(wanted: Wanted, pieces: &[usize]) -> Met {
    let (mut up, mut down) = (Pipe::new(), Pipe::new());
    let mut server = Some(server::Handshake::start(&mut down.sent));
    let mut client = Some(client::Handshake::open(wanted));
    let (mut at_server, mut at_client) = (None, None);
    for piece in pieces.iter().cycle().take(100_000) {
        let moved = up.deliver(*piece) | down.deliver(*piece);
        assert!(moved || at_client.is_none(), "both sides wait for each other");
        while let Some(handshake) = &mut server {
            let progress = handshake.handle(&exports(), up.input(), &mut down.sent).unwrap();
            up.taken += progress.consumed;
            match progress.step {
                server::Step::Again => {}
                server::Step::NeedMore { .. } => break,
                server::Step::Established(session) => (at_server, server) = (Some(session), None),
                server::Step::StartTls => panic!("TLS was not asked for"),
                server::Step::Aborted => panic!("the client left"),
            }
        }
        while let Some(handshake) = &mut client {
            let progress = handshake.handle(down.input(), &mut up.sent).unwrap();
            down.taken += progress.consumed;
            match progress.step {
                client::Step::Again => {}
                client::Step::NeedMore { .. } => break,
                client::Step::Established(session) => (at_client, client) = (Some(session), None),
                client::Step::Listed(_) => panic!("no list was requested"),
                client::Step::StartTls => panic!("TLS was not requested"),
            }
        }
        if let (Some(client), Some(server)) = (&at_client, &at_server) {
            assert_eq!(down.taken, down.sent.len());
            let (client, server) = (client.clone(), server.clone());
            return Met { client, server, to_server: up.sent, to_client: down.sent };
        }
    }
    panic!("the handshake does not end");
}

/// Serves a request. The data is a function of the offset, and odd cookies fail.
fn serve(request: Request, session: &server::Session, out: &mut Vec<u8>) {
    let Request { command, cookie, offset, length, .. } = request;
    match command {
        Command::Disconnect => {}
        _ if cookie % 2 == 1 => {
            reply::error(out, session.structured, cookie, Errno::Io, "odd");
        }
        Command::Read => {
            reply::read_header(out, session.structured, cookie, offset, length);
            out.extend(data(offset, length));
        }
        Command::BlockStatus => {
            let extent = Extent { length, state: BlockState::ZERO };
            reply::block_status(out, cookie, session.meta_context.unwrap(), &[extent]);
        }
        _ => reply::ok(out, cookie),
    }
}

fn data(offset: u64, length: u32) -> impl Iterator<Item = u8> {
    (offset..offset + u64::from(length)).map(|at| at.to_be_bytes()[6] ^ at.to_be_bytes()[7])
}

#[track_caller]
fn check_answer(request: Request, client: &client::Session, body: Body<'_>) {
    let Request { command, cookie, offset, length, .. } = request;
    if cookie % 2 == 1 {
        let message = if client.structured { "odd" } else { "" };
        assert_eq!(body, Body::Error { errno: Errno::Io, message, offset: None });
        return;
    }
    match (command, body) {
        (Command::Read, Body::Data { offset: at, data: bytes }) => {
            assert!(bytes.iter().copied().eq(data(offset, length)));
            assert_eq!(at, client.structured.then_some(offset));
        }
        (Command::Read, Body::Nothing) => assert_eq!(length, 0),
        (Command::BlockStatus, Body::BlockStatus { context, extents }) => {
            assert_eq!(Some(context), client.meta_context);
            assert_eq!(extents.map(|extent| extent.length).collect::<Vec<_>>(), [length]);
        }
        (_, Body::Nothing) => {}
        (command, body) => panic!("{command:?} answered with {body:?}"),
    }
}

fn any_request() -> impl Strategy<Value = Request> {
    let command = prop::sample::select(&[
        Command::Read,
        Command::Write,
        Command::Flush,
        Command::Trim,
        Command::Cache,
        Command::WriteZeroes,
    ]);
    (command, 0..SIZE, 0u32..5000, any::<bool>()).prop_map(|(command, offset, length, fua)| {
        let room = u32::try_from(SIZE - offset).unwrap();
        let (offset, length) =
            if command == Command::Flush { (0, 0) } else { (offset, length.min(room)) };
        let flags = if fua { CommandFlags::FUA } else { CommandFlags::NONE };
        Request::new(command, 0, offset, length).with(flags)
    })
}

fn any_wanted() -> impl Strategy<Value = Wanted> {
    (prop::sample::select(&["", "disk", "other"]), any::<bool>(), any::<bool>()).prop_map(
        |(export, structured, block_status)| Wanted {
            export: export.into(),
            structured,
            block_status,
            tls: false,
        },
    )
}

/// Runs a whole conversation and returns the bytes of client and server.
fn converse(wanted: Wanted, requests: &[Request], pieces: &[usize]) -> (Vec<u8>, Vec<u8>) {
    let block_status = wanted.structured && wanted.block_status;
    let Met { client, server, mut to_server, mut to_client } = meet(wanted, pieces);
    assert_eq!(client.flags, server.flags);
    assert_eq!(client.structured, server.structured);
    assert_eq!(client.meta_context, server.meta_context);
    assert_eq!(client.meta_context.is_some(), block_status);

    let mut requests = requests.to_vec();
    if block_status {
        requests.push(Request::new(Command::BlockStatus, 0, 512, 4096));
    }
    let (mut up, mut down) = (Pipe::new(), Pipe::new());
    for (cookie, request) in (0..).zip(&mut requests) {
        request.cookie = cookie;
        request.encode(&mut up.sent);
        if request.command == Command::Write {
            up.sent.extend(data(request.offset, request.length));
        }
    }

    let (mut served, mut answered) = (0, 0);
    for piece in pieces.iter().cycle() {
        if !(up.deliver(*piece) | down.deliver(*piece)) {
            break;
        }
        while let Parsed::Request { request, payload, consumed } =
            parse_request(up.input(), &server, Bytes::new(SIZE)).unwrap()
        {
            assert_eq!(request, requests[served]);
            if request.command == Command::Write {
                assert!(payload.iter().copied().eq(data(request.offset, request.length)));
            }
            up.taken += consumed;
            served += 1;
            serve(request, &server, &mut down.sent);
        }
        let length = |cookie: u64| {
            let request = requests.get(usize::try_from(cookie).unwrap())?;
            Some(if request.command == Command::Read { request.length } else { 0 })
        };
        while let ParsedReply::Reply { reply, consumed } =
            parse_reply(down.input(), &client, length).unwrap()
        {
            assert!(reply.done);
            assert_eq!(reply.cookie, requests[answered].cookie);
            check_answer(requests[answered], &client, reply.body);
            down.taken += consumed;
            answered += 1;
        }
    }
    assert_eq!((served, answered), (requests.len(), requests.len()));
    to_server.extend(up.sent);
    to_client.extend(down.sent);
    (to_server, to_client)
}

fn mutate(bytes: &mut [u8], changes: &[(prop::sample::Index, u8)]) {
    for (index, value) in changes {
        bytes[index.index(bytes.len())] = *value;
    }
}

proptest! {
    #[test]
    fn client_and_server_agree_with_any_split(
        wanted in any_wanted(),
        requests in prop::collection::vec(any_request(), 0..20),
        pieces in prop::collection::vec(1usize..3000, 1..20),
    ) {
        converse(wanted, &requests, &pieces);
    }

    #[test]
    fn mutated_conversations_do_not_panic(
        wanted in any_wanted(),
        requests in prop::collection::vec(any_request(), 0..5),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        keep: prop::sample::Index,
    ) {
        let (mut to_server, mut to_client) = converse(wanted, &requests, &[4096]);
        mutate(&mut to_server, &changes);
        mutate(&mut to_client, &changes);
        fuzz::server_bytes(&to_server);
        fuzz::client_bytes(&to_client);
        fuzz::server_bytes(&to_server[..keep.index(to_server.len())]);
        fuzz::client_bytes(&to_client[..keep.index(to_client.len())]);
    }

    #[test]
    fn garbage_does_not_panic(data in prop::collection::vec(any::<u8>(), 0..300)) {
        fuzz::server_bytes(&data);
        fuzz::client_bytes(&data);
        let after = |start: &[u8]| [start, &data].concat();
        fuzz::server_bytes(&after(b"\0\0\0\x03IHAVEOPT\0\0\0"));
        fuzz::server_bytes(&after(b"\x25\x60\x95\x13\0"));
        fuzz::client_bytes(&after(b"NBDMAGICIHAVEOPT\0\x03\0\x03\xe8\x89\x04\x55\x65\xa9\0\0\0"));
        fuzz::client_bytes(&after(b"\x66\x8e\x33\xef\0"));
    }
}

#[test]
fn single_bytes_suffice() {
    let wanted =
        Wanted { export: "other".into(), structured: true, block_status: true, tls: false };
    let requests =
        [Request::new(Command::Read, 0, 0, 300), Request::new(Command::Write, 0, 8, 300)];
    let (to_server, to_client) = converse(wanted, &requests, &[1]);
    fuzz::server_bytes(&to_server);
    fuzz::client_bytes(&to_client);
}
