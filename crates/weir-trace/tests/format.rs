//! The file: written and read, truncated, damaged.

use proptest::prelude::*;
use weir_trace::{Ending, Header, Kind, ReadError, Reader, Request, WriteError, Writer};
use weir_units::{Instant, Span};

fn header() -> Header {
    let (source, by) = ("a test".to_owned(), "weir 0".to_owned());
    Header { start_unix_ns: Some(1_700_000_000_000_000_000), source, by }
}

/// Writes requests in blocks: a flush follows each request whose index is in `flushes`.
fn written(requests: &[Request], devices: usize, flushes: &[usize]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &header()).expect("memory");
    for device in 0..devices {
        writer.device(&format!("disk {device}")).expect("few devices");
    }
    for (at, request) in requests.iter().enumerate() {
        writer.request(request).expect("in order");
        if flushes.contains(&at) {
            writer.flush().expect("memory");
        }
    }
    writer.finish(0).expect("memory")
}

type Read = (Vec<Request>, Option<Ending>, Option<ReadError>);

fn read(bytes: &[u8]) -> Read {
    let mut reader = match Reader::open(bytes) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), None, Some(error)),
    };
    let mut requests = Vec::new();
    loop {
        match reader.next_request() {
            Ok(Some(request)) => requests.push(request),
            Ok(None) => return (requests, reader.ending(), None),
            Err(error) => return (requests, reader.ending(), Some(error)),
        }
    }
}

fn request() -> impl Strategy<Value = (u64, Request)> {
    let kind = proptest::sample::select(&Kind::ALL);
    let gap = prop_oneof![Just(0_u64), 0_u64..1000, 0_u64..1 << 40];
    let offset = prop_oneof![(0_u64..1 << 30).prop_map(|n| n * 512), 0..u64::MAX / 2, Just(0)];
    let len = prop_oneof![Just(4096_u64), Just(8192), 0..u64::MAX / 2];
    let latency = proptest::option::of(0_u64..1 << 50);
    (gap, 0_u32..3, kind, offset, len, latency).prop_map(
        |(gap, device, kind, offset, len, latency)| {
            let is_flush = kind == Kind::Flush;
            let (offset, len) = if is_flush { (0, 0) } else { (offset, len) };
            let latency = latency.map(Span::from_nanos);
            (gap, Request { at: Instant::ZERO, device, kind, offset, len, latency })
        },
    )
}

fn requests(most: usize) -> impl Strategy<Value = Vec<Request>> {
    proptest::collection::vec(request(), 0..most).prop_map(|steps| {
        let mut now = Instant::ZERO;
        let mut place = |(gap, request): (u64, Request)| {
            now += Span::from_nanos(gap);
            Request { at: now, ..request }
        };
        steps.into_iter().map(&mut place).collect()
    })
}

proptest! {
    #[test]
    fn a_trace_is_read_as_it_was_written(
        requests in requests(200),
        flushes in proptest::collection::vec(0_usize..200, 0..4),
    ) {
        let bytes = written(&requests, 3, &flushes);
        let (again, ending, error) = read(&bytes);
        prop_assert!(error.is_none(), "{:?}", error);
        prop_assert_eq!(again, requests);
        prop_assert_eq!(ending, Some(Ending::Complete));
    }

    #[test]
    fn any_bytes_are_a_trace_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        weir_trace::fuzz::trace_bytes(&bytes);
    }

    #[test]
    fn a_trace_with_changed_bytes_keeps_the_promises(
        requests in requests(60),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = vec![0x80];
        bytes.extend(written(&requests, 3, &[20]));
        for (at, value) in changes {
            let at = 1 + at.index(bytes.len() - 1);
            bytes[at] = value;
        }
        weir_trace::fuzz::trace_bytes(&bytes);
    }
}

/// `count` requests of a database: pages at random, in order of time.
fn steady(count: u64) -> Vec<Request> {
    let one = |n: u64| Request {
        at: Instant::from_nanos(n * 1_000),
        device: u32::from(n.is_multiple_of(3)),
        kind: if n.is_multiple_of(4) { Kind::Write } else { Kind::Read },
        offset: n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (1 << 24) * 8192,
        len: 8192,
        latency: Some(Span::from_micros(100 + n % 7)),
    };
    (0..count).map(one).collect()
}

#[test]
fn more_than_a_block_is_read_as_it_was_written() {
    let requests = steady(150_000);
    let (again, ending, error) = read(&written(&requests, 2, &[]));
    assert!(error.is_none() && again == requests);
    assert_eq!(ending, Some(Ending::Complete));
}

#[test]
fn a_truncated_trace_is_read_up_to_its_last_whole_block_and_says_so() {
    let requests = steady(90);
    let bytes = written(&requests, 2, &[30, 60]);
    let (mut shortest, mut whole) = (usize::MAX, Vec::new());
    for length in 0..bytes.len() {
        let (again, ending, error) = read(&bytes[..length]);
        match error {
            None => {
                shortest = shortest.min(length);
                assert!(matches!(ending, Some(Ending::Cut { .. })), "{length}: {ending:?}");
                assert_eq!(again, requests[..again.len()]);
                whole.push(again.len());
            }
            Some(error) => assert!(length < shortest, "{length}: {error}"),
        }
    }
    whole.dedup();
    assert_eq!(whole, [0, 30, 60, 90]);
    let said = read(&bytes[..bytes.len() - 1]).1.expect("an ending").to_string();
    assert!(said.contains("no end mark") && said.contains("left out"), "{said}");
}

#[test]
fn damage_is_named_and_nothing_wrong_is_read() {
    let requests = steady(90);
    let bytes = written(&requests, 2, &[30, 60]);
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        let (again, ending, error) = read(&damaged);
        assert_eq!(again, requests[..again.len()], "byte {at}");
        // A length that is too large reaches beyond the end, like a cut.
        let is_said = error.is_some() || matches!(ending, Some(Ending::Cut { .. }));
        assert!(is_said, "byte {at}: {ending:?}");
    }
    let mut damaged = bytes.clone();
    let middle = bytes.len() / 2;
    damaged[middle] ^= 1;
    let error = read(&damaged).2.expect("damage").to_string();
    assert!(
        error.contains("is damaged at byte") && error.contains("30 requests before"),
        "{error}"
    );
}

#[test]
fn what_follows_the_end_and_long_names_are_damage() {
    let requests = steady(90);
    let bytes = written(&requests, 2, &[]);
    let (_, _, error) = read(&[bytes.clone(), bytes].concat());
    let error = error.expect("damage").to_string();
    assert!(error.contains("bytes follow the end mark; 90 requests before"), "{error}");
    let to = requests.last().expect("a request").at.nanos() + 1;
    assert!(error.contains(&format!("--to {to}ns selects them")), "{error}");
    let mut writer = Writer::new(Vec::new(), &header()).expect("memory");
    assert!(writer.device(&"n".repeat(4096)).is_ok());
    let error = writer.device(&"n".repeat(4097)).expect_err("it is too long").to_string();
    assert!(error.contains("has 4097 bytes"), "{error}");
    while writer.device(&"n".repeat(4096)).is_ok() {}
    // The same name in a file, in a frame that is sound.
    let mut bytes =
        Writer::new(Vec::new(), &header()).expect("memory").finish_cut().expect("memory");
    let name = "n".repeat(4097);
    let payload = format!("[{{\"name\":\"{name}\"}}]").into_bytes();
    let length = u32::try_from(payload.len()).expect("a short name").to_le_bytes();
    let frame = [b"NAME".as_slice(), &length, &payload].concat();
    bytes.extend_from_slice(&frame);
    bytes.extend_from_slice(&crc32fast::hash(&frame).to_le_bytes());
    let error = read(&bytes).2.expect("damage").to_string();
    assert!(error.contains("names of its devices are longer"), "{error}");
}

#[test]
fn blocks_before_a_window_are_passed_over() {
    let requests = steady(200_000);
    let bytes = written(&requests, 2, &[]);
    let mut reader = Reader::open(bytes.as_slice()).expect("a trace");
    reader.skip_before(Instant::from_nanos(190_000_000));
    let first = reader.next_request().expect("sound").expect("a request");
    // The block of the window begins at the third multiple of 65,536 requests.
    assert_eq!(first, requests[131_072]);
    let mut rest = 1;
    while reader.next_request().expect("sound").is_some() {
        rest += 1;
    }
    assert_eq!((rest, reader.ending()), (200_000 - 131_072, Some(Ending::Complete)));
}

#[test]
fn a_lossy_recording_says_how_much_is_missing() {
    let mut writer = Writer::new(Vec::new(), &header()).expect("memory");
    writer.device("a").expect("a device");
    writer.request(&steady(1)[0]).expect_err("of device 1");
    let bytes = writer.finish(17).expect("memory");
    let (_, ending, _) = read(&bytes);
    assert_eq!(ending, Some(Ending::Lossy { lost: 17 }));
    let said = ending.map(|ending| ending.to_string()).unwrap_or_default();
    assert!(said.starts_with("17 requests are missing"), "{said}");
}

#[test]
fn requests_that_no_trace_can_hold_are_refused() {
    let mut writer = Writer::new(Vec::new(), &header()).expect("memory");
    writer.device("a").expect("a device");
    let request = Request { device: 0, ..steady(6)[5] };
    writer.request(&request).expect("the first");
    let earlier = Request { at: Instant::ZERO, ..request };
    assert!(matches!(writer.request(&earlier), Err(WriteError::Backwards { .. })));
    let far = Request { offset: u64::MAX, ..request };
    assert!(matches!(writer.request(&far), Err(WriteError::TooFar { .. })));
    writer.request(&request).expect("the writer goes on");
}

#[test]
fn other_files_are_named() {
    let said = |bytes: &[u8]| read(bytes).2.expect("an error").to_string();
    assert!(said(b"weirobs1....").contains("not a trace"));
    assert!(said(b"").contains("not a trace"));
    assert!(said(b"weirtrc2....").contains("version \"2\""));
    assert!(said(b"weirtrc1").contains("the file ends in it"));
}
