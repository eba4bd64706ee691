//! Requests and replies, compared byte by byte with the protocol text.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use weir_proto::client::{self, Body, ParsedReply, Reply, parse_reply};
use weir_proto::server::{Parsed, Session, parse_request};
use weir_proto::{
    BlockSizes, BlockState, Command, CommandFlags as Flags, Errno, Export, Extent, ProtoError,
    Request, TransmissionFlags as Can,
};
use weir_units::Bytes;

const SIZE: Bytes = Bytes::mib(64);

fn session(flags: Can) -> Session {
    let export = Export {
        name: "a".into(),
        description: String::new(),
        size: SIZE,
        flags,
        block: BlockSizes::DEFAULT,
    };
    Session { export, flags, structured: true, meta_context: Some(1) }
}

/// Returns a session that offers everything except fast zeroes.
fn everything() -> Session {
    session(Can::from_bits(u16::MAX).without(Can::READ_ONLY).without(Can::SEND_FAST_ZERO))
}

/// Returns a request with its payload, if it is within the maximum.
fn bytes(request: Request) -> Vec<u8> {
    let mut out = Vec::new();
    request.encode(&mut out);
    if request.command == Command::Write && request.length <= 32 << 20 {
        out.resize(out.len() + request.length as usize, 0xab);
    }
    out
}

fn new(command: Command, offset: u64, length: u32) -> Request {
    Request::new(command, 7, offset, length)
}

#[track_caller]
fn check_in(session: &Session, request: Request, expect: Result<(), (Errno, &str)>) {
    let buf = bytes(request);
    let got = match parse_request(&buf, session, SIZE).unwrap() {
        Parsed::Request { request: parsed, payload, consumed } => {
            assert_eq!((parsed, consumed), (request, buf.len()));
            assert_eq!(payload, &buf[28..]);
            Ok(())
        }
        Parsed::Refused { cookie, errno, reason, consumed, skip } => {
            assert_eq!(cookie, 7);
            let payload = if request.command == Command::Write { request.length } else { 0 };
            assert_eq!(consumed as u64 + u64::from(skip), 28 + u64::from(payload));
            assert_eq!(consumed, buf.len());
            Err((errno, reason))
        }
        more @ Parsed::NeedMore { .. } => panic!("{more:?}"),
    };
    assert_eq!(got, expect);
}

#[track_caller]
fn check(request: Request, expect: Result<(), (Errno, &str)>) {
    check_in(&everything(), request, expect);
}

const BEYOND: &str = "the range reaches beyond the end of the export";
const TOO_LONG: &str = "the length is above the maximum block size";
const FLAGS: &str = "the command does not take these flags";
const NOT_OFFERED: &str = "the command was not offered";

#[test]
fn all_commands_are_parsed() {
    for command in Command::ALL {
        let length = if command == Command::Flush { 0 } else { 4096 };
        check(new(command, 0, length), Ok(()));
        check(new(command, 0, length).with(Flags::FUA), Ok(()));
    }
    check(new(Command::Read, 0, 0), Ok(()));
    check(new(Command::Write, SIZE.get(), 0), Ok(()));
}

#[test]
fn a_range_beyond_the_end_is_refused() {
    let last = SIZE.get() - 4096;
    check(new(Command::Read, last, 4096), Ok(()));
    check(new(Command::Read, last, 4097), Err((Errno::Inval, BEYOND)));
    check(new(Command::Write, last, 4096), Ok(()));
    check(new(Command::Write, last, 4097), Err((Errno::NoSpc, BEYOND)));
    check(new(Command::WriteZeroes, last, 4097), Err((Errno::NoSpc, BEYOND)));
    check(new(Command::Trim, last, 4097), Err((Errno::Inval, BEYOND)));
    check(new(Command::Cache, last, 4097), Err((Errno::Inval, BEYOND)));
    check(new(Command::BlockStatus, last, 4097), Err((Errno::Inval, BEYOND)));
    check(new(Command::Read, u64::MAX, 1), Err((Errno::Inval, BEYOND)));
    check(new(Command::Write, u64::MAX, 0), Err((Errno::NoSpc, BEYOND)));
}

#[test]
fn the_current_size_limits_ranges() {
    let buf = bytes(new(Command::Read, 4096, 4096));
    let parse = |size| parse_request(&buf, &everything(), Bytes::new(size)).unwrap();
    assert!(matches!(parse(8192), Parsed::Request { .. }));
    assert!(matches!(parse(8191), Parsed::Refused { errno: Errno::Inval, .. }));
}

#[test]
fn only_reads_and_writes_have_a_maximum_length() {
    check(new(Command::Read, 0, 32 << 20), Ok(()));
    check(new(Command::Read, 0, (32 << 20) + 1), Err((Errno::Inval, TOO_LONG)));
    let unfragmented = new(Command::Read, 0, (32 << 20) + 1).with(Flags::DF);
    check(unfragmented, Err((Errno::Overflow, TOO_LONG)));
    check(new(Command::Write, 0, (32 << 20) + 1), Err((Errno::Inval, TOO_LONG)));
    check(new(Command::Write, 0, u32::MAX), Err((Errno::Inval, TOO_LONG)));
    check(new(Command::Trim, 0, 64 << 20), Ok(()));
    check(new(Command::WriteZeroes, 0, 64 << 20), Ok(()));
    check(new(Command::BlockStatus, 0, 64 << 20), Ok(()));
}

#[test]
fn flags_belong_to_commands() {
    let fast = Flags::FAST_ZERO;
    check(new(Command::Read, 0, 1).with(Flags::DF), Ok(()));
    check(new(Command::Write, 0, 1).with(Flags::DF), Err((Errno::Inval, FLAGS)));
    check(new(Command::WriteZeroes, 0, 1).with(Flags::NO_HOLE), Ok(()));
    check(new(Command::Trim, 0, 1).with(Flags::NO_HOLE), Err((Errno::Inval, FLAGS)));
    check(new(Command::BlockStatus, 0, 1).with(Flags::REQ_ONE), Ok(()));
    check(new(Command::Read, 0, 1).with(Flags::REQ_ONE), Err((Errno::Inval, FLAGS)));
    check(new(Command::WriteZeroes, 0, 1).with(fast), Err((Errno::Inval, FLAGS)));
    check_in(
        &session(Can::from_bits(0xffff).without(Can::READ_ONLY)),
        new(Command::WriteZeroes, 0, 1).with(fast),
        Ok(()),
    );
    for bit in 5..16 {
        let unknown = Flags::from_bits(1 << bit);
        check(new(Command::Read, 0, 1).with(unknown), Err((Errno::Inval, FLAGS)));
        check(new(Command::Disconnect, 0, 0).with(unknown), Ok(()));
    }
}

#[test]
fn a_disconnect_may_have_any_fields() {
    check(new(Command::Disconnect, u64::MAX, u32::MAX), Ok(()));
}

#[test]
fn unoffered_commands_are_refused() {
    let mut bare = session(Can::HAS_FLAGS);
    bare.meta_context = None;
    for command in [Command::Read, Command::Write, Command::Disconnect] {
        check_in(&bare, new(command, 0, 512), Ok(()));
        if command != Command::Disconnect {
            check_in(&bare, new(command, 0, 512).with(Flags::FUA), Err((Errno::Inval, FLAGS)));
        }
    }
    check_in(&bare, new(Command::Read, 0, 512).with(Flags::DF), Err((Errno::Inval, FLAGS)));
    for command in
        [Command::Flush, Command::Trim, Command::Cache, Command::WriteZeroes, Command::BlockStatus]
    {
        check_in(&bare, new(command, 0, 0), Err((Errno::Inval, NOT_OFFERED)));
    }
}

#[test]
fn a_read_only_export_refuses_writes() {
    let read_only = session(Can::from_bits(u16::MAX));
    let refused = Err((Errno::Perm, "the export is read-only"));
    check_in(&read_only, new(Command::Write, 0, 512), refused);
    check_in(&read_only, new(Command::Trim, 0, 512), refused);
    check_in(&read_only, new(Command::WriteZeroes, 0, 512), refused);
    check_in(&read_only, new(Command::Read, 0, 512), Ok(()));
}

#[test]
fn requests_keep_to_the_minimum_block_size() {
    let unaligned = Err((Errno::Inval, "the range is no multiple of the minimum block size"));
    let mut blocks = everything();
    blocks.export.block = BlockSizes::new(512, 4096, 65_536).unwrap();
    check_in(&blocks, new(Command::Read, 512, 1024), Ok(()));
    check_in(&blocks, new(Command::Read, 256, 1024), unaligned);
    check_in(&blocks, new(Command::Read, 256, 256), unaligned);
    check_in(&blocks, new(Command::Write, 512, 1000), unaligned);
    check_in(&blocks, new(Command::Read, 0, 66_048), Err((Errno::Inval, TOO_LONG)));
}

#[test]
fn invalid_requests_are_refused() {
    let flush = Err((Errno::Inval, "a flush takes no offset and no length"));
    check(new(Command::Flush, 1, 0), flush);
    check(new(Command::Flush, 0, 1), flush);
    let status = Err((Errno::Inval, "a block status of no bytes has no answer"));
    check(new(Command::BlockStatus, 0, 0), status);
    let mut unknown = bytes(new(Command::Read, 0, 512));
    unknown[7] = 8;
    let parsed = parse_request(&unknown, &everything(), SIZE);
    let reason = "the command is not known";
    let refused = Parsed::Refused { cookie: 7, errno: Errno::Inval, reason, consumed: 28, skip: 0 };
    assert_eq!(parsed, Ok(refused));
}

#[test]
fn incomplete_requests_report_the_missing_length() {
    let write = bytes(new(Command::Write, 0, 100));
    for length in 0..128 {
        let at_least = if length < 28 { 28 } else { 128 };
        let parsed = parse_request(&write[..length], &everything(), SIZE);
        assert_eq!(parsed, Ok(Parsed::NeedMore { at_least }), "{length}");
    }
}

#[test]
fn a_refused_write_is_refused_before_its_payload_and_skips_it() {
    let write = bytes(new(Command::Write, SIZE.get(), 100));
    for length in 28..128 {
        let parsed = parse_request(&write[..length], &everything(), SIZE).unwrap();
        let Parsed::Refused { consumed, skip, .. } = parsed else { panic!("{parsed:?}") };
        assert_eq!((consumed, skip as usize), (length, 128 - length));
    }
    let mut two = write;
    two.extend(bytes(new(Command::Read, 0, 1)));
    let parsed = parse_request(&two, &everything(), SIZE).unwrap();
    assert!(matches!(parsed, Parsed::Refused { consumed: 128, skip: 0, .. }), "{parsed:?}");
}

#[test]
fn a_bad_magic_is_fatal_at_once() {
    let error = parse_request(b"GET ", &everything(), SIZE).map_err(|error| error.to_string());
    let message =
        "a request starts with 0x47455420 instead of 0x25609513; the client lost its place";
    assert_eq!(error, Err(message.to_string()));
}

fn client_session(structured: bool) -> client::Session {
    client::Session {
        size: SIZE,
        flags: Can::HAS_FLAGS,
        block: BlockSizes::DEFAULT,
        structured,
        meta_context: None,
    }
}

#[track_caller]
fn check_reply(structured: bool, buf: &[u8], expect: Reply<'_>) {
    let session = client_session(structured);
    let read_of_three = |cookie| (cookie == 7).then_some(3);
    for length in 0..buf.len() {
        let parsed = parse_reply(&buf[..length], &session, read_of_three).unwrap();
        let ParsedReply::NeedMore { at_least } = parsed else { panic!("{length}: {parsed:?}") };
        assert!(length < at_least && at_least <= buf.len(), "{length}: {at_least}");
    }
    let followed = [buf, b"next"].concat();
    let parsed = parse_reply(&followed, &session, read_of_three);
    assert_eq!(parsed, Ok(ParsedReply::Reply { reply: expect, consumed: buf.len() }));
}

#[track_caller]
fn check_bad_reply(structured: bool, buf: &[u8], message: &str) {
    let parsed = parse_reply(buf, &client_session(structured), |_| None);
    assert_eq!(parsed.map_err(|error| error.to_string()), Err(message.to_string()));
}

#[test]
fn simple_replies_are_parsed() {
    let ok = b"\x67\x44\x66\x98\0\0\0\0\0\0\0\0\0\0\0\x07";
    let data = Body::Data { offset: None, data: b"abc" };
    check_reply(false, &[ok, &b"abc"[..]].concat(), Reply { cookie: 7, body: data, done: true });
    check_reply(true, ok, Reply { cookie: 7, body: Body::Nothing, done: true });
    let body = Body::Error { errno: Errno::NoSpc, message: "", offset: None };
    check_reply(
        false,
        b"\x67\x44\x66\x98\0\0\0\x1c\0\0\0\0\0\0\0\x07",
        Reply { cookie: 7, body, done: true },
    );
}

fn chunk(flags: u8, kind: u16, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap();
    [
        b"\x66\x8e\x33\xef\0",
        &[flags][..],
        &kind.to_be_bytes(),
        b"\0\0\0\0\0\0\0\x07",
        &length.to_be_bytes(),
        payload,
    ]
    .concat()
}

#[test]
fn chunks_are_parsed() {
    let check = |flags, kind, payload: &[u8], body| {
        check_reply(
            true,
            &chunk(flags, kind, payload),
            Reply { cookie: 7, body, done: flags & 1 == 1 },
        );
    };
    check(1, 0, b"", Body::Nothing);
    check(0, 1, b"\0\0\0\0\0\0\x10\0abc", Body::Data { offset: Some(4096), data: b"abc" });
    check(3, 2, b"\0\0\0\0\0\0\x10\0\0\0\0\x05", Body::Hole { offset: 4096, length: 5 });
    let error = |message, offset| Body::Error { errno: Errno::Io, message, offset };
    check(1, 0x8001, b"\0\0\0\x05\0\0", error("", None));
    check(1, 0x8001, b"\0\0\0\x05\0\x02no", error("no", None));
    check(1, 0x8002, b"\0\0\0\x05\0\x02no\0\0\0\0\0\0\0\x09", error("no", Some(9)));
    check(1, 0x80ff, b"\0\0\0\x05\0\x02no?", error("no", None));
}

#[test]
fn extents_are_parsed() {
    let status = chunk(1, 5, b"\0\0\0\x01\0\0\x10\0\0\0\0\0\0\0\x02\0\0\0\0\x03");
    let parsed = parse_reply(&status, &client_session(true), |_| None).unwrap();
    let ParsedReply::Reply { reply: Reply { body, .. }, .. } = parsed else { panic!("{parsed:?}") };
    let Body::BlockStatus { context: 1, extents } = body else { panic!("{body:?}") };
    let expect = vec![
        Extent { length: 4096, state: BlockState::NONE },
        Extent { length: 512, state: BlockState::HOLE | BlockState::ZERO },
    ];
    assert_eq!(extents.collect::<Vec<_>>(), expect);
}

#[test]
fn broken_replies_are_fatal() {
    check_bad_reply(true, b"oops", "a reply starts with 0x6f6f7073; the server lost its place");
    check_bad_reply(
        false,
        &chunk(1, 0, b""),
        "a reply starts with 0x668e33ef; the server lost its place",
    );
    check_bad_reply(
        false,
        b"\x67\x44\x66\x98\0\0\0\0\0\0\0\0\0\0\0\x07",
        "the server answered the request 0x7, which is not waiting for an answer",
    );
    let malformed: [(u8, u16, &[u8]); 12] = [
        (0, 0, b""),
        (1, 0, b"x"),
        (1, 1, b"\0\0\0\0\0\0\x10\0"),
        (1, 2, b"\0\0\0\0\0\0\x10\0\0\0\0\0"),
        (1, 2, b"\0\0\0\0\0\0\x10\0\0\0\0\x01!"),
        (1, 5, b"\0\0\0\x01"),
        (1, 5, b"\0\0\0\x01\0\0\x10\0\0\0\0"),
        (1, 5, b"\0\0\0\x01\0\0\0\0\0\0\0\0"),
        (1, 3, b""),
        (1, 3, b"\0\0\0\x05\0\0"),
        (1, 0x8001, b"\0\0\0\x05\0\x03no"),
        (1, 0x8002, b"\0\0\0\x05\0\x02no"),
    ];
    for (flags, kind, payload) in malformed {
        let length = payload.len();
        let message = format!("a reply chunk of type {kind:#x} and {length} bytes is malformed");
        check_bad_reply(true, &chunk(flags, kind, payload), &message);
    }
}

#[test]
fn a_chunk_that_is_too_long_is_refused_by_its_length_alone() {
    const LONGEST: u32 = (64 << 20) + (64 << 10);
    let parse = |length: u32| {
        let header = [&chunk(1, 1, b"")[..16], &length.to_be_bytes()].concat();
        match parse_reply(&header, &client_session(true), |_| None)? {
            ParsedReply::NeedMore { at_least } => Ok(at_least),
            reply @ ParsedReply::Reply { .. } => panic!("{reply:?}"),
        }
    };
    assert_eq!(parse(LONGEST), Ok(20 + LONGEST as usize));
    for length in [LONGEST + 1, u32::MAX] {
        assert_eq!(parse(length), Err(ProtoError::Chunk { kind: 1, length }));
    }
}
