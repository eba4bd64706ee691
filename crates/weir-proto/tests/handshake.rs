//! The handshake, compared byte by byte with the protocol text.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use weir_proto::client::{self, Listed, Wanted};
use weir_proto::server::{Handshake, Session, Step};
use weir_proto::{BlockSizes, Export, ProtoError, TransmissionFlags as Can};
use weir_units::Bytes;

fn exports() -> Vec<Export> {
    let export = |name: &str, description: &str, mib, minimum| Export {
        name: name.into(),
        description: description.into(),
        size: Bytes::mib(mib),
        flags: Can::SEND_FLUSH | Can::SEND_FUA | Can::CAN_MULTI_CONN,
        block: BlockSizes::new(minimum, 4096, 32 << 20).unwrap(),
    };
    vec![export("a", "first", 1, 1), export("bc", "", 2, 512)]
}

const GREETING: &[u8] = b"NBDMAGICIHAVEOPT\0\x03";

fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap();
    [b"IHAVEOPT", &number.to_be_bytes()[..], &length.to_be_bytes(), data].concat()
}

fn reply(number: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap();
    let magic = b"\x00\x03\xe8\x89\x04\x55\x65\xa9";
    let fields = [number, kind, length].map(u32::to_be_bytes).concat();
    [magic, &fields[..], data].concat()
}

const ACK: u32 = 1;
const UNSUP: u32 = 0x8000_0001;
const INVALID: u32 = 0x8000_0003;
const UNKNOWN: u32 = 0x8000_0006;

/// Runs a server on the bytes of a client. Returns its output after the greeting, and the final
/// step or error.
fn serve(input: &[u8]) -> (Vec<u8>, Result<Option<Step>, ProtoError>) {
    serve_by(Handshake::start, input)
}

fn serve_by(
    start: impl Fn(&mut Vec<u8>) -> Handshake,
    input: &[u8],
) -> (Vec<u8>, Result<Option<Step>, ProtoError>) {
    let mut out = Vec::new();
    let mut server = start(&mut out);
    assert_eq!(out, GREETING);
    out.clear();
    let mut rest = input;
    loop {
        match server.handle(&exports(), rest, &mut out) {
            Err(error) => return (out, Err(error)),
            Ok(progress) => {
                rest = &rest[progress.consumed..];
                match progress.step {
                    Step::Again => {}
                    Step::NeedMore { .. } if rest.is_empty() => return (out, Ok(None)),
                    step => return (out, Ok(Some(step))),
                }
            }
        }
    }
}

/// Checks the exact replies to `options` after the client's flags.
#[track_caller]
fn check(options: &[Vec<u8>], replies: &[Vec<u8>]) -> Option<Step> {
    let input = [&[0, 0, 0, 3][..], &options.concat()].concat();
    let (out, end) = serve(&input);
    assert_eq!(out, replies.concat(), "{}", out.escape_ascii());
    end.unwrap()
}

#[track_caller]
fn check_dropped(input: &[u8], message: &str) {
    let (_, end) = serve(input);
    assert_eq!(end.map_err(|error| error.to_string()), Err(message.to_string()));
}

fn session(step: Option<Step>) -> Session {
    match step {
        Some(Step::Established(session)) => session,
        other => panic!("not established: {other:?}"),
    }
}

#[test]
fn export_name_is_answered_with_size_and_flags() {
    let with_zeroes = [&[0, 0, 0, 1][..], &option(1, b"bc")].concat();
    let (out, end) = serve(&with_zeroes);
    assert_eq!(out, [b"\0\0\0\0\0\x20\0\0\x01\x0d".to_vec(), vec![0; 124]].concat());
    assert_eq!(session(end.unwrap()).export.name, "bc");

    let without_zeroes = check(&[option(1, b"")], &[b"\0\0\0\0\0\x10\0\0\x01\x0d".to_vec()]);
    assert_eq!(session(without_zeroes).export.name, "a");
}

#[test]
fn a_client_without_fixed_newstyle_may_only_use_export_name() {
    let (_, end) = serve(&[&[0, 0, 0, 0][..], &option(1, b"a")].concat());
    assert!(!session(end.unwrap()).structured);
    check_dropped(
        &[&[0, 0, 0, 0][..], &option(3, b"")].concat(),
        "option 3 came from a client that did not agree on fixed newstyle",
    );
}

#[test]
fn list_names_every_export() {
    let replies = [
        reply(3, 2, b"\0\0\0\x01afirst"),
        reply(3, 2, b"\0\0\0\x02bc"),
        reply(3, ACK, b""),
        reply(3, INVALID, b"the option takes no data; 1 bytes came"),
    ];
    assert_eq!(check(&[option(3, b""), option(3, b"x")], &replies), None);
}

#[test]
fn with_tls_nothing_is_said_about_exports_before_it() {
    const TLS_REQUIRED: u32 = 0x8000_0005;
    let flags = &[0, 0, 0, 3][..];
    let serve = |options: &[Vec<u8>]| {
        let input = [flags, &options.concat()].concat();
        serve_by(|out| Handshake::start(out).with_tls(), &input)
    };
    let refused =
        |number| reply(number, TLS_REQUIRED, b"this server talks about exports over TLS only");
    let options = [option(3, b""), option(7, b"\0\0\0\x01a\0\0"), option(8, b""), option(5, b"x")];
    let invalid = reply(5, INVALID, b"the option takes no data");
    let (out, end) = serve(&options);
    assert_eq!(out, [refused(3), refused(7), refused(8), invalid].concat());
    assert_eq!(end, Ok(None));
    let (out, end) = serve(&[option(1, b"a")]);
    assert_eq!((out, end), (vec![], Err(ProtoError::TlsRequired)));
    let (out, end) = serve(&[option(2, b"")]);
    assert_eq!((out, end), (reply(2, ACK, b""), Ok(Some(Step::Aborted))));
    let (out, end) = serve(&[option(5, b"")]);
    assert_eq!((out, end), (reply(5, ACK, b""), Ok(Some(Step::StartTls))));
}

#[test]
fn after_tls_has_started_the_handshake_goes_on() {
    let mut out = Vec::new();
    let mut server = Handshake::start(&mut out).with_tls();
    let mut step = |input: &[u8]| {
        out.clear();
        let progress = server.handle(&exports(), input, &mut out).unwrap();
        assert_eq!(progress.consumed, input.len());
        (progress.step, out.clone())
    };
    assert_eq!(step(&[0, 0, 0, 3]).0, Step::Again);
    assert_eq!(step(&option(5, b"")).0, Step::StartTls);
    assert_eq!(step(&option(5, b"")).1, reply(5, INVALID, b"TLS has been started"));
    assert_eq!(step(&option(8, b"")).1, reply(8, ACK, b""));
    let (step, _) = step(&option(1, b"a"));
    assert!(session(Some(step)).structured);
}

#[test]
fn abort_is_acknowledged() {
    assert_eq!(check(&[option(2, b"")], &[reply(2, ACK, b"")]), Some(Step::Aborted));
}

#[test]
fn go_returns_the_requested_info_and_starts_transmission() {
    let step = check(
        &[option(7, b"\0\0\0\x01a\0\x03\0\x03\0\x01\0\x02")],
        &[
            reply(7, 3, b"\0\0\0\0\0\0\0\x10\0\0\x01\x0d"),
            reply(7, 3, b"\0\x01a"),
            reply(7, 3, b"\0\x02first"),
            reply(7, 3, b"\0\x03\0\0\0\x01\0\0\x10\0\x02\0\0\0"),
            reply(7, ACK, b""),
        ],
    );
    let session = session(step);
    assert_eq!(session.flags, exports()[0].flags | Can::HAS_FLAGS);
    assert!(!session.structured);
    assert_eq!(session.meta_context, None);
}

#[test]
fn info_returns_the_same_and_continues() {
    let step = check(
        &[option(6, b"\0\0\0\0\0\0"), option(6, b"\0\0\0\x02bc\0\x01\0\x03")],
        &[
            reply(6, 3, b"\0\0\0\0\0\0\0\x10\0\0\x01\x0d"),
            reply(6, ACK, b""),
            reply(6, 3, b"\0\0\0\0\0\0\0\x20\0\0\x01\x0d"),
            reply(6, 3, b"\0\x03\0\0\x02\0\0\0\x10\0\x02\0\0\0"),
            reply(6, ACK, b""),
        ],
    );
    assert_eq!(step, None);
}

#[test]
fn go_is_refused_with_a_message() {
    let sums = b"the lengths in the option do not add up";
    let name = b"an export name is UTF-8 without NUL, at most 4096 bytes long";
    let long = [&4097u32.to_be_bytes()[..], &[b'x'; 4097], &[0, 0]].concat();
    let step = check(
        &[
            option(7, b"\0\0\0\x01x\0\0"),
            option(7, b"\0\0\0\x02bc\0\0"),
            option(7, b""),
            option(7, b"\0\0\0\x05bc\0\0"),
            option(7, b"\xff\xff\xff\xffbc\0\0"),
            option(7, b"\0\0\0\x01a\0\x02\0\x01"),
            option(7, b"\0\0\0\x01a\0\0!"),
            option(7, b"\0\0\0\x01\xff\0\0"),
            option(7, b"\0\0\0\x01\0\0\0"),
            option(7, &long),
        ],
        &[
            reply(7, UNKNOWN, b"there is no export named \"x\""),
            reply(
                7,
                0x8000_0008,
                b"requests must be multiples of 512 bytes; ask for the block sizes",
            ),
            reply(7, INVALID, sums),
            reply(7, INVALID, sums),
            reply(7, INVALID, sums),
            reply(7, INVALID, sums),
            reply(7, INVALID, sums),
            reply(7, INVALID, name),
            reply(7, INVALID, name),
            reply(7, INVALID, name),
        ],
    );
    assert_eq!(step, None);
}

#[test]
fn unknown_options_and_tls_are_refused_and_the_handshake_continues() {
    let step = check(
        &[option(5, b""), option(11, b""), option(0xdead_beef, b"data"), option(2, b"")],
        &[
            reply(5, UNSUP, b"TLS is not configured"),
            reply(11, UNSUP, b"option 11 is not known"),
            reply(0xdead_beef, UNSUP, b"option 3735928559 is not known"),
            reply(2, ACK, b""),
        ],
    );
    assert_eq!(step, Some(Step::Aborted));
}

#[test]
fn structured_replies_and_base_allocation_hold_for_the_session() {
    let step = check(
        &[
            option(8, b""),
            option(10, b"\0\0\0\x01a\0\0\0\x01\0\0\0\x0fbase:allocation"),
            option(7, b"\0\0\0\x01a\0\0"),
        ],
        &[
            reply(8, ACK, b""),
            reply(10, 4, b"\0\0\0\x01base:allocation"),
            reply(10, ACK, b""),
            reply(7, 3, b"\0\0\0\0\0\0\0\x10\0\0\x01\x8d"),
            reply(7, ACK, b""),
        ],
    );
    let session = session(step);
    assert!(session.structured && session.flags.contains(Can::SEND_DF));
    assert_eq!(session.meta_context, Some(1));
}

#[test]
fn a_context_of_another_export_is_not_selected() {
    let step = check(
        &[
            option(8, b""),
            option(10, b"\0\0\0\x02bc\0\0\0\x01\0\0\0\x0fbase:allocation"),
            option(1, b"a"),
        ],
        &[
            reply(8, ACK, b""),
            reply(10, 4, b"\0\0\0\x01base:allocation"),
            reply(10, ACK, b""),
            b"\0\0\0\0\0\x10\0\0\x01\x8d".to_vec(),
        ],
    );
    assert_eq!(session(step).meta_context, None);
}

#[test]
fn metadata_contexts_are_listed_by_namespace_but_selected_by_name() {
    let listed = reply(9, 4, b"\0\0\0\0base:allocation");
    let step = check(
        &[
            option(9, b"\0\0\0\0\0\0\0\0"),
            option(8, b""),
            option(9, b"\0\0\0\0\0\0\0\0"),
            option(9, b"\0\0\0\0\0\0\0\x02\0\0\0\x03x:y\0\0\0\x05base:"),
            option(9, b"\0\0\0\0\0\0\0\x01\0\0\0\x03x:y"),
            option(10, b"\0\0\0\0\0\0\0\x01\0\0\0\x05base:"),
            option(10, b"\0\0\0\x01x\0\0\0\0"),
            option(10, b"\0\0\0\0\xff\xff\xff\xff"),
        ],
        &[
            reply(9, INVALID, b"metadata contexts need structured replies first"),
            reply(8, ACK, b""),
            listed.clone(),
            reply(9, ACK, b""),
            listed,
            reply(9, ACK, b""),
            reply(9, ACK, b""),
            reply(10, ACK, b""),
            reply(10, UNKNOWN, b"there is no export named \"x\""),
            reply(10, INVALID, b"the lengths in the option do not add up"),
        ],
    );
    assert_eq!(step, None);
}

#[test]
fn contexts_that_are_listed_or_not_known_are_not_selected() {
    let established = b"\0\0\0\0\0\x10\0\0\x01\x8d";
    let listed = [reply(9, 4, b"\0\0\0\0base:allocation"), reply(9, ACK, b"")].concat();
    for (asks, answer) in [
        (option(9, b"\0\0\0\x01a\0\0\0\x01\0\0\0\x0fbase:allocation"), listed),
        (option(10, b"\0\0\0\x01a\0\0\0\x01\0\0\0\x03x:y"), reply(10, ACK, b"")),
    ] {
        let options = [option(8, b""), asks, option(1, b"a")];
        let step = check(&options, &[reply(8, ACK, b""), answer, established.to_vec()]);
        assert_eq!(session(step).meta_context, None);
    }
}

#[test]
fn a_failed_selection_clears_the_previous_one() {
    let step = check(
        &[
            option(8, b""),
            option(10, b"\0\0\0\x01a\0\0\0\x01\0\0\0\x0fbase:allocation"),
            option(10, b""),
            option(1, b"a"),
        ],
        &[
            reply(8, ACK, b""),
            reply(10, 4, b"\0\0\0\x01base:allocation"),
            reply(10, ACK, b""),
            reply(10, INVALID, b"the lengths in the option do not add up"),
            b"\0\0\0\0\0\x10\0\0\x01\x8d".to_vec(),
        ],
    );
    assert_eq!(session(step).meta_context, None);
}

#[test]
fn an_oversized_option_is_skipped_and_refused() {
    let longest = option(99, &vec![0; 65_536]);
    let too_long = option(99, &vec![0; 65_537]);
    let step = check(
        &[longest, too_long, option(2, b"")],
        &[
            reply(99, UNSUP, b"option 99 is not known"),
            reply(99, 0x8000_0009, b"at most 65536 bytes of option data are read"),
            reply(2, ACK, b""),
        ],
    );
    assert_eq!(step, Some(Step::Aborted));
}

#[test]
fn an_oversized_option_may_arrive_in_pieces() {
    let oversized = option(99, &[0; 70_000]);
    let input = [&[0, 0, 0, 3][..], &oversized, &option(2, b"")].concat();
    let mut out = Vec::new();
    let mut server = Handshake::start(&mut out);
    out.clear();
    let (mut rest, mut end) = (Vec::new(), None);
    for piece in input.chunks(1000) {
        rest.extend(piece);
        loop {
            let progress = server.handle(&exports(), &rest, &mut out).unwrap();
            rest.drain(..progress.consumed);
            match progress.step {
                Step::Again => {}
                step => {
                    end = Some(step);
                    break;
                }
            }
        }
    }
    assert_eq!(end, Some(Step::Aborted));
    let too_long = reply(99, 0x8000_0009, b"at most 65536 bytes of option data are read");
    assert_eq!(out, [too_long, reply(2, ACK, b"")].concat());
}

#[test]
fn garbage_drops_the_connection() {
    check_dropped(
        b"\0\0\0\x07",
        "the client answered the greeting with the flags 0x00000007; only 0x3 were offered",
    );
    check_dropped(
        b"\0\0\0\x03GET / HT",
        "an option starts with 0x474554202f204854 instead of IHAVEOPT; the client lost its place",
    );
    check_dropped(
        &[b"\0\0\0\x03", &option(1, b"nope")[..]].concat(),
        "there is no export named \"nope\"",
    );
    check_dropped(
        &[b"\0\0\0\x03", &option(1, b"\xff")[..]].concat(),
        "an export name of 1 bytes is not UTF-8 without NUL of at most 4096 bytes",
    );
    // Refused by its length, before the name has arrived.
    check_dropped(
        b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\x10\x01",
        "an export name of 4097 bytes is not UTF-8 without NUL of at most 4096 bytes",
    );
    let many = option(5, b"").repeat(4097);
    check_dropped(
        &[b"\0\0\0\x03", &many[..]].concat(),
        "the client sent 4097 options without choosing an export",
    );
}

/// Plays a server's `script`: each part is sent after the client has sent the bytes before it.
/// Returns the client's result.
#[track_caller]
fn connect(
    mut handshake: client::Handshake,
    script: &[(&[u8], &[u8])],
) -> Result<client::Step, ProtoError> {
    for (sends, expects) in script {
        let (mut rest, mut out) = (*sends, Vec::new());
        loop {
            let progress = handshake.handle(rest, &mut out)?;
            rest = &rest[progress.consumed..];
            match progress.step {
                client::Step::Again => {}
                client::Step::StartTls => assert!(rest.is_empty(), "it was not encrypted"),
                client::Step::NeedMore { .. } => break,
                step => {
                    assert_eq!((rest, &out[..]), (&b""[..], *expects));
                    return Ok(step);
                }
            }
        }
        assert_eq!(out, *expects, "{}", out.escape_ascii());
    }
    panic!("the script ended before the handshake");
}

#[test]
fn a_client_that_wants_tls_asks_for_nothing_before_it() {
    let secret = Wanted { tls: true, ..wanted("disk", false) };
    let greeting = b"NBDMAGICIHAVEOPT\0\x03";
    let told = [&b"\0\0"[..], &1024_u64.to_be_bytes(), &[0, 1]].concat();
    let replies = [reply(7, 3, &told), reply(7, ACK, b"")].concat();
    let go = option(7, b"\0\0\0\x04disk\0\x01\0\x03");
    let start = [b"\0\0\0\x03", &option(5, b"")[..]].concat();
    let script: [(&[u8], &[u8]); 3] =
        [(greeting, &start), (&reply(5, ACK, b""), &go), (&replies, b"")];
    let end = connect(client::Handshake::open(secret.clone()), &script);
    assert!(matches!(end, Ok(client::Step::Established(_))), "{end:?}");
    let refused = reply(5, 1 << 31 | 1, b"no");
    for (script, error) in [
        (vec![(&greeting[..], &start[..]), (&refused, b"")], ProtoError::NoTls),
        (vec![(&b"NBDMAGICIHAVEOPT\0\0"[..], &b""[..])], ProtoError::NotFixedNewstyle),
    ] {
        assert_eq!(connect(client::Handshake::open(secret.clone()), &script), Err(error));
    }
}

fn wanted(export: &str, structured: bool) -> Wanted {
    Wanted { export: export.into(), structured, block_status: structured, tls: false }
}

#[track_caller]
fn check_client_fails(wanted_export: &str, script: &[(&[u8], &[u8])], message: &str) {
    let end = connect(client::Handshake::open(wanted(wanted_export, false)), script);
    assert_eq!(end.map_err(|error| error.to_string()), Err(message.to_string()));
}

const GO_A: &[u8] = b"\0\0\0\x03IHAVEOPT\0\0\0\x07\0\0\0\x09\0\0\0\x01a\0\x01\0\x03";

#[test]
fn a_client_requests_all_wanted_features() {
    let set = option(10, b"\0\0\0\x01a\0\0\0\x01\0\0\0\x0fbase:allocation");
    let context = [reply(10, 4, b"\0\0\0\x09base:allocation"), reply(10, ACK, b"")].concat();
    let facts = [
        reply(7, 3, b"\0\0\0\0\0\0\0\x10\0\0\x01\x8d"),
        reply(7, 3, b"\0\x03\0\0\x02\0\0\0\x10\0\0\x01\0\0"),
        reply(7, 3, b"\xff\xffnews"),
        reply(7, ACK, b""),
    ]
    .concat();
    let end = connect(
        client::Handshake::open(wanted("a", true)),
        &[
            (GREETING, &[&[0, 0, 0, 3][..], &option(8, b"")].concat()),
            (&reply(8, ACK, b""), &set),
            (&context, &GO_A[4..]),
            (&facts, b""),
        ],
    );
    let session = client::Session {
        size: Bytes::mib(1),
        flags: Can::from_bits(0x018d),
        block: BlockSizes::new(512, 4096, 65_536).unwrap(),
        structured: true,
        meta_context: Some(9),
    };
    assert_eq!(end, Ok(client::Step::Established(session)));
}

#[test]
fn a_client_continues_without_unsupported_features() {
    let end = connect(
        client::Handshake::open(wanted("a", true)),
        &[
            (GREETING, &[&[0, 0, 0, 3][..], &option(8, b"")].concat()),
            (&reply(8, UNSUP, b""), &GO_A[4..]),
            (&reply(7, UNSUP, b""), &option(1, b"a")),
            (b"\0\0\0\0\0\x10\0\0\0\x01", b""),
        ],
    );
    let session = client::Session {
        size: Bytes::mib(1),
        flags: Can::HAS_FLAGS,
        block: BlockSizes::DEFAULT,
        structured: false,
        meta_context: None,
    };
    assert_eq!(end, Ok(client::Step::Established(session)));
}

#[test]
fn a_plain_newstyle_server_gets_export_name() {
    let answer = [b"\0\0\0\0\0\x10\0\0\0\x01".to_vec(), vec![0; 124]].concat();
    let end = connect(
        client::Handshake::open(wanted("a", true)),
        &[
            (b"NBDMAGICIHAVEOPT\0\0", &[&[0, 0, 0, 0][..], &option(1, b"a")].concat()),
            (&answer, b""),
        ],
    );
    assert!(matches!(end, Ok(client::Step::Established(_))), "{end:?}");
    let end = connect(client::Handshake::list(), &[(b"NBDMAGICIHAVEOPT\0\0", b"")]);
    assert_eq!(end, Err(ProtoError::NotFixedNewstyle));
}

#[test]
fn an_export_name_may_have_4096_bytes() {
    let name = "x".repeat(4096);
    let asks = [&[0, 0, 0, 0][..], &option(1, name.as_bytes())].concat();
    let answer = [b"\0\0\0\0\0\x10\0\0\0\x01".to_vec(), vec![0; 124]].concat();
    let client = client::Handshake::open(wanted(&name, false));
    let end = connect(client, &[(b"NBDMAGICIHAVEOPT\0\0", &asks), (&answer, b"")]);
    assert!(matches!(end, Ok(client::Step::Established(_))), "{end:?}");
    assert_eq!(serve(&asks).1, Err(ProtoError::UnknownExport(name)));
}

#[test]
fn a_reply_to_an_option_may_have_64_kib() {
    let longest = [&[0xff; 2][..], &[0; 65_534]].concat();
    let facts = [&longest[..], b"\0\0\0\0\0\0\0\x10\0\0\x01\x8d"];
    let replies = [reply(7, 3, facts[0]), reply(7, 3, facts[1]), reply(7, ACK, b"")].concat();
    let client = client::Handshake::open(wanted("a", false));
    let end = connect(client, &[(GREETING, GO_A), (&replies, b"")]);
    assert!(matches!(end, Ok(client::Step::Established(_))), "{end:?}");
}

#[test]
#[should_panic(expected = "the handshake is over")]
fn an_established_client_takes_no_more_of_a_handshake() {
    let mut client = client::Handshake::open(wanted("a", false));
    let mut handle = |input: &[u8]| client.handle(input, &mut Vec::new()).unwrap();
    handle(GREETING);
    handle(&reply(7, 3, b"\0\0\0\0\0\0\0\x10\0\0\x01\x8d"));
    let progress = handle(&reply(7, ACK, b""));
    assert!(matches!(progress.step, client::Step::Established(_)), "{progress:?}");
    handle(b"");
}

#[test]
fn a_client_lists_and_aborts() {
    let listing =
        [reply(3, 2, b"\0\0\0\x01afirst"), reply(3, 2, b"\0\0\0\0"), reply(3, ACK, b"")].concat();
    let end = connect(
        client::Handshake::list(),
        &[(GREETING, &[&[0, 0, 0, 3][..], &option(3, b"")].concat()), (&listing, &option(2, b""))],
    );
    let listed = vec![
        Listed { name: "a".into(), description: "first".into() },
        Listed { name: String::new(), description: String::new() },
    ];
    assert_eq!(end, Ok(client::Step::Listed(listed)));
}

#[test]
fn a_client_takes_65536_exports_and_not_one_more() {
    let list = [&[0, 0, 0, 3][..], &option(3, b"")].concat();
    let listed = |exports| {
        let listing = [reply(3, 2, b"\0\0\0\0").repeat(exports), reply(3, ACK, b"")].concat();
        let script = [(GREETING, &list[..]), (&listing, &option(2, b""))];
        match connect(client::Handshake::list(), &script)? {
            client::Step::Listed(listed) => Ok(listed.len()),
            step => panic!("{step:?}"),
        }
    };
    assert_eq!(listed(65_536), Ok(65_536));
    assert_eq!(listed(65_537), Err(ProtoError::TooManyExports));
}

#[test]
fn a_refusal_is_passed_on_with_its_kind_and_message() {
    let list = [&[0, 0, 0, 3][..], &option(3, b"")].concat();
    for (number, kind) in [
        (1, "the option is not supported"),
        (2, "forbidden by policy"),
        (3, "invalid"),
        (5, "TLS is required"),
        (6, "unknown export"),
        (7, "the server is shutting down"),
        (8, "block sizes must be asked for"),
        (9, "too big"),
        (10, "another reason"),
    ] {
        let refusal = |option| reply(option, 1 << 31 | number, b"no\0");
        let error = |export: &str| {
            Err(ProtoError::Refused { export: export.into(), kind, message: "no".into() })
        };
        let end = connect(client::Handshake::list(), &[(GREETING, &list), (&refusal(3), b"")]);
        assert_eq!(end, error(""));
        // A server that does not know GO is asked by EXPORT_NAME.
        if number != 1 {
            let client = client::Handshake::open(wanted("a", false));
            let end = connect(client, &[(GREETING, GO_A), (&refusal(7), b"")]);
            assert_eq!(end, error("a"));
        }
    }
}

#[test]
fn a_reply_that_its_option_does_not_have_is_a_violation() {
    const SERVER: u32 = 2;
    const INFO: u32 = 3;
    let info = b"\0\0\0\0\0\0\0\x10\0\0\x01\x8d";
    let encrypted = Wanted { tls: true, ..wanted("a", false) };
    for (client, asks, number, kind) in [
        (client::Handshake::list(), &option(3, b"")[..], 3, INFO),
        (client::Handshake::open(encrypted), &option(5, b""), 5, INFO),
        (client::Handshake::open(wanted("a", false)), &GO_A[4..], 7, SERVER),
        (client::Handshake::open(wanted("a", true)), &option(8, b""), 8, INFO),
    ] {
        let start = [&[0, 0, 0, 3][..], asks].concat();
        let end = connect(client, &[(GREETING, &start), (&reply(number, kind, info), b"")]);
        assert_eq!(end, Err(ProtoError::OptionReply { option: number, kind }));
    }
}

#[test]
fn a_server_grants_the_context_once_or_not_at_all() {
    let context = reply(10, 4, b"\0\0\0\x09base:allocation");
    let info = reply(7, 3, b"\0\0\0\0\0\0\0\x10\0\0\x01\x8d");
    let end = |answer: &[u8], go: &[u8]| {
        let start = [&[0, 0, 0, 3][..], &option(8, b"")].concat();
        let set = option(10, b"\0\0\0\x01a\0\0\0\x01\0\0\0\x0fbase:allocation");
        let established = [info.clone(), reply(7, ACK, b"")].concat();
        let script = [
            (GREETING, &start[..]),
            (&reply(8, ACK, b""), &set),
            (answer, go),
            (&established, b""),
        ];
        connect(client::Handshake::open(wanted("a", true)), &script)
    };
    assert_eq!(end(&context.repeat(2), b""), Err(ProtoError::OptionReply { option: 10, kind: 4 }));
    match end(&reply(10, ACK, b""), &GO_A[4..]) {
        Ok(client::Step::Established(session)) => assert_eq!(session.meta_context, None),
        end => panic!("{end:?}"),
    }
}

#[test]
fn a_client_explains_failures() {
    check_client_fails(
        "a",
        &[(b"SSH-2.0-OpenSSH_9", b"")],
        "the server's greeting starts with 0x5353482d322e302d, which is not NBD; is it another \
         service?",
    );
    check_client_fails(
        "a",
        &[(b"NBDMAGIC\x00\x00\x42\x02\x81\x86\x12\x53", b"")],
        "the server speaks the oldstyle handshake; a newstyle one (nbd 2.9.17 or later) is needed",
    );
    check_client_fails(
        "a",
        &[(GREETING, GO_A), (&reply(7, UNKNOWN, b"no such disk"), b"")],
        "the server refused the export \"a\" (unknown export): no such disk",
    );
    check_client_fails(
        "a",
        &[(GREETING, GO_A), (&reply(7, 0x8000_0005, b""), b"")],
        "the server refused the export \"a\" (TLS is required)",
    );
    check_client_fails(
        "a",
        &[(GREETING, GO_A), (&reply(7, ACK, b""), b"")],
        "the server answered option 7 with a reply of type 0x1, or one it may not be",
    );
    check_client_fails(
        "a",
        &[(GREETING, GO_A), (&reply(3, ACK, b""), b"")],
        "the server answered option 3 when 7 was asked",
    );
    check_client_fails(
        "a",
        &[
            (GREETING, GO_A),
            (b"\0\x03\xe8\x89\x04\x55\x65\xa9\0\0\0\x07\0\0\0\x03\0\x01\0\x01", b""),
        ],
        "the server's reply to option 7 is 65537 bytes long; at most 65536 are read",
    );
    check_client_fails(
        "a",
        &[(GREETING, GO_A), (b"NBDMAGIC", b"")],
        "a reply to an option starts with 0x4e42444d41474943; the server lost its place",
    );
    let long = "x".repeat(4097);
    check_client_fails(
        &long,
        &[(GREETING, b"")],
        "an export name of 4097 bytes is not UTF-8 without NUL of at most 4096 bytes",
    );
}
