//! Both sides on arbitrary bytes, for fuzzers and tests.
//!
//! Invariants for any input: nothing panics, no more is consumed than was received, each step
//! progresses or needs more bytes, the output is in proportion to the input, and the result does
//! not depend on how the bytes are split.

use crate::client::{self, ParsedReply, Wanted, parse_reply};
use crate::error::ProtoError;
use crate::export::{BlockSizes, Export, TransmissionFlags};
use crate::server::{self, Parsed, parse_request};
use crate::wire;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use weir_units::Bytes;

/// Maximum output for one option, given [`exports`].
const MAX_ANSWER: usize = 16 << 10;

/// Passes `data` to a server: as a handshake followed by requests, and as requests alone.
///
/// # Panics
/// If an invariant is violated.
pub fn server_bytes(data: &[u8]) {
    for with_tls in [false, true] {
        let whole = serve(data, data.len(), with_tls);
        assert_eq!(whole, serve(data, 1, with_tls), "the outcome depends on how the bytes arrive");
    }
    for structured in [false, true] {
        let session = server::Session {
            export: exports().swap_remove(0),
            flags: TransmissionFlags::from_bits(u16::MAX).without(TransmissionFlags::READ_ONLY),
            structured,
            meta_context: structured.then_some(wire::BASE_ALLOCATION_ID),
        };
        let mut log = String::new();
        requests(&mut Stream::whole(data), &session, &mut log);
    }
}

/// Passes `data` to a client: to one that opens an export, followed by replies, to one that lists,
/// and as replies alone.
///
/// # Panics
/// If an invariant is violated.
pub fn client_bytes(data: &[u8]) {
    let (export, structured, block_status) = ("disk".into(), true, true);
    let wanted = Wanted { export, structured, block_status, tls: false };
    let encrypted = client::Handshake::open(Wanted { tls: true, ..wanted.clone() });
    let plain = client::Handshake::open(Wanted::default());
    let all = [plain, encrypted, client::Handshake::open(wanted), client::Handshake::list()];
    for client in all {
        let whole = connect(client.clone(), data, data.len());
        assert_eq!(whole, connect(client, data, 1), "the outcome depends on the pieces");
    }
    for structured in [false, true] {
        let session = client::Session {
            size: Bytes::mib(1),
            flags: TransmissionFlags::from_bits(u16::MAX),
            block: BlockSizes::DEFAULT,
            structured,
            meta_context: None,
        };
        replies(&mut Stream::whole(data), &session, &mut String::new());
    }
}

/// Input that arrives in pieces.
struct Stream<'a> {
    data: &'a [u8],
    start: usize,
    end: usize,
    piece: usize,
}

impl<'a> Stream<'a> {
    fn new(data: &'a [u8], piece: usize) -> Self {
        Self { data, start: 0, end: 0, piece: piece.max(1) }
    }

    fn whole(data: &'a [u8]) -> Self {
        Self::new(data, data.len())
    }

    fn buf(&self) -> &'a [u8] {
        &self.data[self.start..self.end]
    }

    fn consume(&mut self, bytes: usize) {
        assert!(bytes <= self.end - self.start, "{bytes} bytes were consumed that are not there");
        self.start += bytes;
    }

    /// Receives another piece; `false` at the end.
    fn more(&mut self, at_least: usize) -> bool {
        assert!(at_least > self.end - self.start, "{at_least} bytes were asked for and are there");
        let before = self.end;
        self.end = self.data.len().min(self.end + self.piece);
        self.end > before
    }
}

fn exports() -> Vec<Export> {
    let export = |name: &str, minimum| Export {
        name: name.into(),
        description: "for fuzzing".into(),
        size: Bytes::mib(1),
        flags: TransmissionFlags::SEND_FLUSH | TransmissionFlags::SEND_FUA,
        block: BlockSizes::new(minimum, 4096, 65_536).unwrap_or_default(),
    };
    vec![export("disk", 1), export("blocks", 512)]
}

/// Runs a server and returns a log to compare.
fn serve(data: &[u8], piece: usize, with_tls: bool) -> String {
    let mut stream = Stream::new(data, piece);
    let mut out = Vec::new();
    let mut handshake = server::Handshake::start(&mut out);
    if with_tls {
        handshake = handshake.with_tls();
    }
    let mut log = String::new();
    loop {
        let answered = out.len();
        let progress = match handshake.handle(&exports(), stream.buf(), &mut out) {
            Ok(progress) => progress,
            Err(error) => return ended(log, &out, &error),
        };
        assert!(out.len() - answered <= MAX_ANSWER, "one option was answered without end");
        stream.consume(progress.consumed);
        match progress.step {
            server::Step::NeedMore { at_least } => {
                assert!(at_least <= wire::OPTION_HEADER + wire::MAX_OPTION as usize);
                if !stream.more(at_least) {
                    return format!("{log} waits, {out:x?}");
                }
            }
            // The bytes behind it stand for those that would be decrypted.
            server::Step::Again | server::Step::StartTls => {}
            server::Step::Aborted => return format!("{log} aborted, {out:x?}"),
            server::Step::Established(session) => {
                log += &format!("{session:?}, {out:x?}");
                requests(&mut stream, &session, &mut log);
                return log;
            }
        }
    }
}

fn ended(log: String, out: &[u8], error: &ProtoError) -> String {
    format!("{log} {error}, {out:x?}")
}

fn requests(stream: &mut Stream<'_>, session: &server::Session, log: &mut String) {
    let size = session.export.size;
    loop {
        match parse_request(stream.buf(), session, size) {
            Err(error) => {
                *log += &format!("{error}");
                return;
            }
            Ok(Parsed::NeedMore { at_least }) => {
                assert!(at_least <= wire::REQUEST_HEADER + wire::MAX_PAYLOAD as usize);
                if !stream.more(at_least) {
                    return;
                }
            }
            Ok(Parsed::Request { request, payload, consumed }) => {
                let end = request.offset.saturating_add(u64::from(request.length));
                let ranged = request.command != crate::Command::Disconnect;
                assert!(!ranged || end <= size.get(), "{request:?} reaches beyond the end");
                *log += &format!("{request:?} {payload:x?}");
                stream.consume(consumed);
            }
            Ok(Parsed::Refused { cookie, errno, reason, consumed, skip }) => {
                *log += &format!("{cookie} {errno} {reason}");
                stream.consume(consumed);
                let mut skip = skip as usize;
                while skip > 0 {
                    let here = skip.min(stream.buf().len());
                    stream.consume(here);
                    skip -= here;
                    if skip > 0 && !stream.more(1) {
                        return;
                    }
                }
            }
        }
    }
}

/// Runs a client and returns a log to compare.
fn connect(mut handshake: client::Handshake, data: &[u8], piece: usize) -> String {
    let mut stream = Stream::new(data, piece);
    let mut out = Vec::new();
    let mut log = String::new();
    loop {
        let progress = match handshake.handle(stream.buf(), &mut out) {
            Ok(progress) => progress,
            Err(error) => return ended(log, &out, &error),
        };
        stream.consume(progress.consumed);
        match progress.step {
            client::Step::NeedMore { at_least } => {
                assert!(at_least <= wire::OPTION_REPLY_HEADER + wire::MAX_OPTION as usize);
                if !stream.more(at_least) {
                    return format!("{log} waits, {out:x?}");
                }
            }
            // The bytes behind it stand for those that would be decrypted.
            client::Step::Again | client::Step::StartTls => {}
            client::Step::Listed(exports) => return format!("{log} {exports:?}, {out:x?}"),
            client::Step::Established(session) => {
                log += &format!("{session:?}, {out:x?}");
                replies(&mut stream, &session, &mut log);
                return log;
            }
        }
    }
}

fn replies(stream: &mut Stream<'_>, session: &client::Session, log: &mut String) {
    // Treats each odd cookie as a read of a length derived from it.
    let data_length = |cookie: u64| u32::try_from(cookie % 64 * (cookie & 1)).ok();
    loop {
        match parse_reply(stream.buf(), session, data_length) {
            Err(error) => {
                *log += &format!("{error}");
                return;
            }
            Ok(ParsedReply::NeedMore { at_least }) => {
                if !stream.more(at_least) {
                    return;
                }
            }
            Ok(ParsedReply::Reply { reply, consumed }) => {
                *log += &format!("{reply:x?}");
                stream.consume(consumed);
            }
        }
    }
}
