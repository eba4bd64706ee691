//! A running server and its clients, good and bad.

use crate::common::{Place, Raw, request, start, unlimited};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use weir_client::Connection;
use weir_proto::{Command, Errno, Uri};
use weir_server::{Address, Bounds, Listening, Notice, Options, ServerError, Waiting};
use weir_units::{Bytes, Span};
use weir_wall::Clock;

const TWO_HOSTS: &str = r#"
[[host]]
name = "one"
unlimited = true
[[host]]
name = "two"
unlimited = true
[[volume]]
name = "first"
host = "one"
unlimited = true
size = "1 MiB"
[[volume]]
name = "second"
host = "two"
unlimited = true
size = "2 MiB"
[[stripe]]
name = "wide"
host = "two"
unit = "64 KiB"
volumes = { count = 3, unlimited = true, size = "1 MiB" }
"#;

#[test]
fn every_export_has_bytes_of_its_own_and_the_first_is_the_default() {
    let place = Place::new();
    let server = place.serve(TWO_HOSTS);
    let names: Vec<String> = server.uris().into_keys().collect();
    assert_eq!(names, ["first", "second", "wide"]);
    for (name, mib) in [("first", 1), ("second", 2), ("wide", 3)] {
        let mut client = place.open(name);
        assert_eq!(client.size().get(), mib << 20);
        client.write(12_345, name.as_bytes()).expect("a write");
    }
    for name in &names {
        let mut found = vec![0; name.len()];
        place.open(name).read(12_345, &mut found).expect("a read");
        assert_eq!(found, name.as_bytes());
    }
    assert_eq!(place.open("").size().get(), 1 << 20);
    server.stop().expect("a clean end");
    assert!(!place.socket().exists() && !place.path("control.sock").exists());
}

#[test]
fn an_export_that_is_not_there_is_refused_by_name() {
    let place = Place::new();
    let _server = place.serve(TWO_HOSTS);
    let error = Connection::open(&place.uri("third")).expect_err("no such export").to_string();
    let expect = "the server refused the export \"third\" (unknown export): there is no export \
                  named \"third\"";
    assert_eq!(error, format!("{}: {expect}", place.socket().display()));
    // A column is not an export: who wrote to it would tear holes into the stripe.
    assert!(Connection::open(&place.uri("wide-0")).is_err());
}

#[test]
fn tcp_gives_the_port_that_was_free() {
    let options = Options {
        listen: vec![Address::Tcp("127.0.0.1:0".to_owned()), Address::Tcp("[::1]:0".to_owned())],
        ..Options::default()
    };
    let server = match start(TWO_HOSTS, &options) {
        Ok(server) => server,
        // A machine without IPv6.
        Err(_) => start(TWO_HOSTS, &Options { listen: options.listen[..1].to_vec(), ..options })
            .expect("a server"),
    };
    for text in &server.uris()["second"].clone() {
        let uri: Uri = text.parse().expect("a URI");
        assert!(!text.contains(":0/"), "{text}");
        assert_eq!(Connection::open(&uri).expect("an export").size().get(), 2 << 20);
    }
    server.stop().expect("a clean end");
}

#[test]
fn a_request_beyond_the_end_is_refused_and_the_next_is_served() {
    let place = Place::new();
    let server = place.serve(&unlimited("1 MiB", &["v"]));
    let mut raw = Raw::open(&place.socket(), "v");
    let end = 1 << 20;
    let mut check = |bytes: &[u8], expect: Result<Vec<u8>, Errno>| {
        raw.send(bytes);
        assert_eq!(raw.answer(), Some((7, expect)));
    };
    check(&request(Command::Read, 7, end - 1, 2), Err(Errno::Inval));
    check(&request(Command::Read, 7, u64::MAX, 2), Err(Errno::Inval));
    check(&request(Command::Trim, 7, end, 1), Err(Errno::Inval));
    check(&request(Command::WriteZeroes, 7, end, 1), Err(Errno::NoSpc));
    check(&[request(Command::Write, 7, end - 1, 2), vec![1, 2]].concat(), Err(Errno::NoSpc));
    check(&request(Command::Read, 7, 0, 0), Err(Errno::Inval));
    check(&request(Command::Read, 7, 0, (64 << 20) + 1), Err(Errno::Inval));
    check(&request(Command::Read, 7, end - 2, 2), Ok(vec![0, 0]));
    let status = server.status();
    let export = &status.hosts[0].exports[0];
    // A request that never reached the host is not among its requests.
    assert_eq!((export.requests, export.errors), (2, 1));
}

#[test]
fn an_oversized_write_is_refused_and_its_payload_passed_over() {
    let place = Place::new();
    let _server = place.serve(&unlimited("256 MiB", &["v"]));
    let mut raw = Raw::open(&place.socket(), "v");
    let length = (64 << 20) + 1;
    raw.send(&request(Command::Write, 1, 0, length));
    // Sent in pieces, so that the payload arrives in many reads.
    let piece = vec![0xEE; 1 << 20];
    (0..64).for_each(|_| raw.send(&piece));
    raw.send(&[0xEE]);
    raw.send(&request(Command::Read, 2, 0, 4));
    assert_eq!(raw.answer(), Some((1, Err(Errno::Inval))));
    assert_eq!(raw.answer(), Some((2, Ok(vec![0; 4]))));
    // The largest that is allowed, in both directions.
    raw.send(&request(Command::Write, 3, 0, length - 1));
    (0..64).for_each(|_| raw.send(&piece));
    assert_eq!(raw.answer(), Some((3, Ok(vec![]))));
    raw.send(&request(Command::Read, 4, 0, length - 1));
    assert_eq!(raw.answer(), Some((4, Ok(vec![0xEE; 64 << 20]))));
}

/// A client that gets an error before it has sent the payload takes that for a defect.
#[test]
fn the_error_of_a_write_comes_after_its_payload() {
    let place = Place::new();
    let _server = place.serve(&unlimited("1 MiB", &["v"]));
    let mut raw = Raw::open(&place.socket(), "v");
    for (offset, length, errno) in
        [(0, (64 << 20) + 1, Errno::Inval), (1 << 20, 4096, Errno::NoSpc)]
    {
        raw.send(&request(Command::Write, 1, offset, length));
        (1..length / 4096).for_each(|_| raw.send(&[0xEE; 4096]));
        assert!(raw.is_silent());
        raw.send(&vec![0xEE; 4096 + length as usize % 4096]);
        assert_eq!(raw.answer(), Some((1, Err(errno))));
    }
    raw.send(&request(Command::Read, 2, 0, 4));
    assert_eq!(raw.answer(), Some((2, Ok(vec![0; 4]))));
}

/// Options with these bounds, and the notices of the server.
fn bounded(place: &Place, bounds: Bounds) -> (Options, Receiver<Notice>) {
    let (sender, notices) = channel();
    let notices_to = Listening::with(move |notice| drop(sender.send(notice)));
    (Options { bounds, notices: notices_to, ..place.options() }, notices)
}

#[test]
fn silent_clients_do_not_keep_others_out() {
    let place = Place::new();
    let (options, notices) = bounded(&place, Bounds { handshakes: 4, ..Bounds::default() });
    let _server = start(&unlimited("1 MiB", &["v"]), &options).expect("a server");
    let silent: Vec<_> =
        (0..20).map(|_| UnixStream::connect(place.socket()).expect("a server")).collect();
    let mut client = place.open("v");
    client.write(0, b"heard").expect("a write");
    let told = notices.recv().expect("a notice");
    assert_eq!(told, Notice::Silent { most: 4, clients: 1 });
    assert_eq!(notices.try_recv().ok(), None);
    drop(silent);
}

#[test]
fn clients_beyond_the_most_are_rejected_and_told() {
    let place = Place::new();
    let (options, notices) = bounded(&place, Bounds { clients: 2, ..Bounds::default() });
    let _server = start(&unlimited("1 MiB", &["v"]), &options).expect("a server");
    let (first, second) = (place.open("v"), place.open("v"));
    assert!(Connection::open(&place.uri("v")).is_err());
    assert_eq!(notices.recv().ok(), Some(Notice::TooMany { most: 2, clients: 1 }));
    drop(first);
    // The server sees that it has gone, in a moment.
    while Connection::open(&place.uri("v")).is_err() {
        std::thread::yield_now();
    }
    drop(second);
}

/// Each connection is counted apart, with the process of a local client and the address of another.
#[test]
fn requests_are_counted_by_client() {
    let place = Place::new();
    let listen = vec![Address::Unix(place.socket()), Address::Tcp("127.0.0.1:0".to_owned())];
    let options = Options { listen, ..place.options() };
    let server = start(&unlimited("1 MiB", &["v", "w"]), &options).expect("a server");
    let tcp = server.uris()["v"].iter().find(|uri| uri.starts_with("nbd://")).cloned();
    let tcp: Uri = tcp.expect("an address").parse().expect("a URI");
    let (mut near, mut far) = (place.open("v"), Connection::open(&tcp).expect("a server"));
    for _ in 0..3 {
        near.write(0, &[1; 4096]).expect("a write");
    }
    far.read(0, &mut [0; 512]).expect("a read");
    far.flush().expect("a flush");
    let mut exports = server.status().hosts.remove(0).exports.into_iter();
    let clients = exports.next().expect("an export").clients;
    let counted = clients.iter().map(|own| (own.requests, own.bytes, own.in_flight));
    assert_eq!(counted.collect::<Vec<_>>(), [(3, 3 * 4096, 0), (2, 512, 0)]);
    assert_eq!(clients[0].peer, format!("process {}", std::process::id()));
    assert!(clients[1].peer.starts_with("127.0.0.1:"), "{clients:?}");
    assert!(exports.next().expect("an export").clients.is_empty());
}

#[test]
fn a_client_that_stalls_is_disconnected() {
    let place = Place::new();
    let stall = Span::from_millis(100);
    let bounds = Bounds { stall, stall_when_short: stall, ..Bounds::default() };
    let (options, notices) = bounded(&place, bounds);
    let _server = start(&unlimited("64 MiB", &["v"]), &options).expect("a server");
    // One that is silent between requests may be so for ever.
    let mut idle = Raw::open(&place.socket(), "v");
    let mut half_sent = Raw::open(&place.socket(), "v");
    half_sent.send(&request(Command::Write, 1, 0, 65_536));
    half_sent.send(&[1; 1000]);
    assert_eq!(half_sent.answer(), None);
    assert_eq!(notices.recv().ok(), Some(Notice::Stalled { clients: 1 }));
    let mut refused = Raw::open(&place.socket(), "v");
    refused.send(&request(Command::Write, 1, 0, u32::MAX));
    assert_eq!(refused.answer(), None);
    assert_eq!(notices.recv().ok(), Some(Notice::Stalled { clients: 1 }));
    let deaf = Raw::open(&place.socket(), "v");
    deaf.send(&request(Command::Read, 1, 0, 32 << 20));
    assert_eq!(notices.recv().ok(), Some(Notice::Stalled { clients: 1 }));
    idle.send(&request(Command::Read, 2, 0, 4));
    assert_eq!(idle.answer(), Some((2, Ok(vec![0; 4]))));
}

/// The program of a client may be stopped, and go on later.
#[test]
fn a_stalled_client_stays_while_there_is_memory() {
    let place = Place::new();
    let stall_when_short = Span::from_millis(100);
    let bounds = Bounds { memory: Bytes::mib(256), stall_when_short, ..Bounds::default() };
    let (options, notices) = bounded(&place, bounds);
    let _server = start(&unlimited("64 MiB", &["v"]), &options).expect("a server");
    let read = request(Command::Read, 1, 0, 64 << 20);
    let mut stopped = Raw::open(&place.socket(), "v");
    stopped.send(&read);
    // Five times as long as one may take while memory is short.
    let idle = Raw::open(&place.socket(), "v");
    assert!((0..10).all(|_| idle.is_silent()));
    assert_eq!(stopped.answer(), Some((1, Ok(vec![0; 64 << 20]))));
    assert_eq!(notices.try_recv().ok(), None);
    // This one holds nothing that others could use.
    let mut half_sent = Raw::open(&place.socket(), "v");
    half_sent.send(&request(Command::Write, 2, 0, 4096));
    half_sent.send(&[1; 1000]);
    // Three of these take more than half of the memory.
    let deaf: Vec<_> = (0..3)
        .map(|_| {
            let raw = Raw::open(&place.socket(), "v");
            raw.send(&read);
            raw
        })
        .collect();
    assert!(matches!(notices.recv(), Ok(Notice::Stalled { .. })));
    half_sent.send(&[1; 3096]);
    assert_eq!(half_sent.answer(), Some((2, Ok(Vec::new()))));
    drop(deaf);
}

#[test]
fn clients_that_hold_much_memory_wait_for_themselves() {
    let place = Place::new();
    let memory = Bytes::mib(256);
    let (options, _) = bounded(&place, Bounds { memory, ..Bounds::default() });
    let _server = start(&unlimited("64 MiB", &["v"]), &options).expect("a server");
    let write = request(Command::Write, 1, 0, 64 << 20);
    let hostile: Vec<_> = (0..24)
        .map(|n| {
            let raw = Raw::open(&place.socket(), "v");
            if n % 2 == 0 {
                raw.send(&write);
                // The server stops to receive from those that have no part of the memory.
                raw.stream.set_write_timeout(Some(Duration::from_millis(50))).expect("a timeout");
                let _ = (&raw.stream).write_all(&vec![1; (64 << 20) - 1]);
            } else {
                (0..4).for_each(|n| raw.send(&request(Command::Read, n, 0, 64 << 20)));
            }
            raw
        })
        .collect();
    // Others are served, in requests of any usual size.
    let mut other = place.open("v");
    let data = vec![7; 2 << 20];
    let mut found = vec![0; 2 << 20];
    for n in 0..20 {
        other.write(n << 21, &data).expect("a write");
        other.read(n << 21, &mut found).expect("a read");
        assert!(found == data);
    }
    // Memory that comes back is used by those that wait.
    let mut largest = Raw::open(&place.socket(), "v");
    largest.send(&request(Command::Read, 9, 0, 64 << 20));
    drop(hostile);
    assert!(largest.answer().is_some_and(|(_, data)| data.is_ok_and(|d| d.len() == 64 << 20)));
}

#[test]
fn a_small_request_does_not_wait_for_the_large_ones_before_it() {
    let place = Place::new();
    let memory = Bytes::mib(256);
    let (options, _) = bounded(&place, Bounds { memory, ..Bounds::default() });
    let _server = start(&unlimited("64 MiB", &["v"]), &options).expect("a server");
    let deaf = |count: usize, reads: u64, length: u32| -> Vec<Raw> {
        let open = |_| {
            let raw = Raw::open(&place.socket(), "v");
            (0..reads).for_each(|n| raw.send(&request(Command::Read, n, 0, length)));
            raw
        };
        (0..count).map(open).collect()
    };
    // Three of them get the memory for large holdings.
    let large = deaf(24, 1, 64 << 20);
    let small = deaf(60, 2, 1 << 20);
    let mut last = Raw::open(&place.socket(), "v");
    last.send(&request(Command::Read, 7, 0, 1 << 20));
    assert!(last.is_silent());
    drop(small);
    assert_eq!(last.answer(), Some((7, Ok(vec![0; 1 << 20]))));
    drop(large);
}

/// Sends `bytes` and waits until the server has hung up.
fn until_hung_up(stream: &UnixStream, bytes: &[u8]) {
    // It may hang up before all is sent.
    let _ = (&*stream).write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut rest = Vec::new();
    let _ = (&*stream).read_to_end(&mut rest);
}

#[test]
fn garbage_ends_its_connection_and_nothing_else() {
    let place = Place::new();
    let server = place.serve(&unlimited("1 MiB", &["v"]));
    let mut good = place.open("v");
    good.write(0, b"untouched").expect("a write");
    let mut state = 1_u64;
    let mut noise = |len: usize| -> Vec<u8> {
        let byte = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_be_bytes()[0]
        };
        std::iter::repeat_with(byte).take(len).collect()
    };
    for n in 0..40 {
        let bytes = noise(n * n * 7);
        until_hung_up(&UnixStream::connect(place.socket()).expect("a server"), &bytes);
        until_hung_up(&Raw::open(&place.socket(), "v").stream, &bytes);
    }
    // The right magic, then nothing that makes sense.
    for n in 0_u8..40 {
        let mut bytes = request(Command::Read, 1, 0, 512);
        bytes[4..].iter_mut().for_each(|byte| *byte ^= noise(1)[0] & n);
        until_hung_up(&Raw::open(&place.socket(), "v").stream, &bytes);
    }
    let mut found = [0; 9];
    good.read(0, &mut found).expect("a read");
    assert_eq!(&found, b"untouched");
    server.stop().expect("a clean end");
}

#[test]
fn a_client_that_vanishes_in_the_middle_of_a_payload_writes_nothing() {
    let place = Place::new();
    let server = place.serve(&unlimited("1 MiB", &["v"]));
    let raw = Raw::open(&place.socket(), "v");
    raw.send(&request(Command::Write, 1, 0, 1 << 20));
    raw.send(&vec![9; 300_000]);
    drop(raw);
    // And one in the middle of many requests.
    let raw = Raw::open(&place.socket(), "v");
    let mut bytes: Vec<u8> =
        (0..2_000).flat_map(|n| request(Command::Read, n, 0, 65_536)).collect();
    bytes.truncate(bytes.len() - 10);
    raw.send(&bytes);
    drop(raw);
    let mut found = vec![1; 1 << 20];
    place.open("v").read(0, &mut found).expect("a read");
    assert!(found.iter().all(|byte| *byte == 0));
    server.stop().expect("a clean end");
}

#[test]
fn a_batch_larger_than_what_may_be_under_way_is_answered_whole() {
    let place = Place::new();
    let _server = place.serve(&unlimited("1 MiB", &["v"]));
    let mut raw = Raw::open(&place.socket(), "v");
    let count = 9_000;
    let bytes: Vec<u8> = (0..count).flat_map(|n| request(Command::Read, n, n, 1)).collect();
    raw.send(&bytes);
    let mut answered: Vec<u64> = (0..count)
        .map(|_| match raw.answer() {
            Some((cookie, Ok(data))) if data == [0] => cookie,
            other => panic!("{other:?}"),
        })
        .collect();
    answered.sort_unstable();
    assert!(answered.into_iter().eq(0..count));
}

#[test]
fn a_goodbye_behind_requests_waits_for_their_answers() {
    let place = Place::new();
    let _server = place.serve(
        "[[volume]]\nname = \"v\"\nsize = \"1 MiB\"\nlimits = { iops = 500 }\nlatency = \"5ms\"",
    );
    let mut raw = Raw::open(&place.socket(), "v");
    let mut bytes: Vec<u8> = (0..50).flat_map(|n| request(Command::Read, n, 0, 512)).collect();
    bytes.extend(request(Command::Disconnect, 0, 0, 0));
    // Bytes behind a goodbye are ignored.
    bytes.extend(request(Command::Read, 99, 0, 512));
    raw.send(&bytes);
    let answered: Vec<u64> =
        std::iter::from_fn(|| raw.answer()).map(|(cookie, _)| cookie).collect();
    assert_eq!(answered.len(), 50);
    assert!(!answered.contains(&99));
}

#[test]
fn a_client_that_reads_no_replies_delays_no_other_and_loses_none() {
    let place = Place::new();
    let _server = place.serve(&unlimited("4 MiB", &["v"]));
    let mut other = place.open("v");
    other.write(0, &[5; 4096]).expect("a write");
    let mut deaf = Raw::open(&place.socket(), "v");
    let count = 200;
    let bytes: Vec<u8> = (0..count).flat_map(|n| request(Command::Read, n, 0, 1 << 20)).collect();
    deaf.send(&bytes);
    let mut found = [0; 4096];
    for _ in 0..100 {
        other.read(0, &mut found).expect("a read");
        assert_eq!(found, [5; 4096]);
    }
    for _ in 0..count {
        let (_, data) = deaf.answer().expect("it may hear after all");
        assert!(data.is_ok_and(|data| data.len() == 1 << 20 && data[..4096] == [5; 4096]));
    }
}

/// Wakes up and polls before a deadline in every way, and replies after it.
#[test]
fn no_reply_comes_before_its_deadline() {
    let latency = Span::from_micros(700);
    let layout = format!("{}latency = \"700us\"\n", unlimited("1 MiB", &["v"]));
    for waiting in [Waiting::Late, Waiting::Early, Waiting::Poll] {
        let place = Place::new();
        let options = Options { waiting, ..place.options() };
        let server = match start(&layout, &options) {
            Err(error @ ServerError::TooFewCores { .. }) => {
                eprintln!("skipped: {error}");
                continue;
            }
            other => other.expect("a server"),
        };
        let mut client = place.open("v");
        let (clock, mut data) = (Clock::start(), [0; 512]);
        for request in 0..200 {
            let sent = clock.now();
            client.read(request * 512, &mut data).expect("a read");
            let took = clock.now() - sent;
            assert!(took >= latency, "{waiting:?}: {took}");
        }
        server.stop().expect("a clean end");
    }
}
