//! Block traces as single requests.

use crate::bed::input;
use crate::samples::folder;
use std::fs::File;
use std::io::BufReader;
use weir_import::{Input, Options, Requests, kind_named, trace_kind};
use weir_trace::{Ending, Header, Kind, ReadTrace, Reader, Request, Writer};
use weir_units::{Instant, Span};

/// Reads all requests of an input, with its devices and notes.
#[track_caller]
fn all(input: Input) -> (Vec<Request>, Vec<String>, Vec<String>) {
    let opened = Requests::open(vec![input], &Options::default());
    let mut trace = opened.unwrap_or_else(|(_, error)| panic!("{error}")).remove(0);
    let next = || trace.next_request().unwrap_or_else(|error| panic!("{error}"));
    let requests: Vec<Request> = std::iter::from_fn(next).collect();
    (requests, trace.devices().to_vec(), trace.notes())
}

fn refused(text: impl Into<Vec<u8>>, kind: Option<&str>) -> String {
    let opened = Requests::open(vec![input("input", text, kind)], &Options::default());
    let error = |error: weir_import::ImportError| error.to_string();
    match opened {
        Err((_, refused)) => error(refused),
        Ok(mut traces) => loop {
            match traces[0].next_request() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("it is read"),
                Err(refused) => return error(refused),
            }
        },
    }
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

#[test]
fn requests_come_in_order_of_arrival_with_their_latencies() {
    // The second line arrived first.
    let text = "128166372002500000,web,0,Read,4096,512,20\n\
                128166372000000000,web,1,Write,0,4096,5000000\n";
    let (requests, devices, notes) = all(input("input", text, None));
    assert_eq!(devices, ["web/0", "web/1"]);
    let first = Request {
        at: at(0),
        device: 1,
        kind: Kind::Write,
        offset: 0,
        len: 4096,
        latency: Some(Span::from_millis(500)),
    };
    let second = Request {
        at: at(250_000_000),
        device: 0,
        kind: Kind::Read,
        offset: 4096,
        len: 512,
        latency: Some(Span::from_micros(2)),
    };
    assert_eq!(requests, [first, second]);
    assert_eq!(notes, [""; 0]);
}

#[test]
fn events_of_the_block_layer_become_requests() {
    let text = "\
8,0 0 1 1.000000000 9 Q W 100 + 8 [x]
8,0 0 2 1.000001000 9 D W 100 + 8 [x]
8,0 0 3 1.000002000 9 D R 900 + 16 [x]
8,0 0 4 1.000052000 0 C R 900 + 16 [0]
8,0 0 5 1.000101000 0 C W 100 + 8 [0]
8,0 0 6 1.000201000 9 D FWS [x]
8,0 0 7 1.000301000 9 D R 0 + 8 [x]
";
    let (requests, devices, notes) = all(input("input", text, None));
    assert_eq!(devices, ["8,0"]);
    let short = |r: &Request| (r.kind, r.offset, r.len, r.latency.map(|l| l.nanos() / 1000));
    let expect = [
        (Kind::Write, 51_200, 4096, Some(100)),
        (Kind::Read, 460_800, 8192, Some(50)),
        (Kind::Flush, 0, 0, None),
        (Kind::Read, 0, 4096, None),
    ];
    assert_eq!(requests.iter().map(short).collect::<Vec<_>>(), expect);
    assert_eq!(requests[0].at, at(0), "times count from the first request");
    assert!(notes.iter().any(|note| note.contains("in flight at its end")), "{notes:?}");
}

#[test]
fn objects_of_a_trace_for_caches_have_places() {
    let record = |seconds: u32, object: u64, bytes: u32, next: i64| {
        let parts: [&[u8]; 4] = [
            &seconds.to_le_bytes(),
            &object.to_le_bytes(),
            &bytes.to_le_bytes(),
            &next.to_le_bytes(),
        ];
        parts.concat()
    };
    let bytes = [record(1, 77, 4096, 2), record(1, 5, 512, -1), record(2, 77, 4096, -1)].concat();
    let (requests, _, notes) = all(input("input", bytes, Some("oracle-general")));
    let offsets: Vec<_> = requests.iter().map(|r| (r.kind, r.offset, r.len)).collect();
    let read = |offset, len| (Kind::Read, offset, len);
    assert_eq!(offsets, [read(0, 4096), read(4096, 512), read(0, 4096)]);
    let notes = notes.join("; ");
    assert!(notes.contains("3 requests may be reads or writes"), "{notes}");
    assert!(notes.contains("2 objects have no offsets"), "{notes}");
}

#[test]
fn a_wrong_time_does_not_drop_the_rest_of_a_trace() {
    let rows = |wrong: &[u64]| {
        let row = |n: u64| {
            let later = if wrong.contains(&n) { 36_000 } else { 0 };
            let tick = 128_166_372_000_000_000 + (n + later) * 10_000_000;
            format!("{tick},web,0,Write,{},4096,20000\n", n * 4096)
        };
        (0..1000).map(row).collect::<String>()
    };
    let (requests, _, notes) = all(input("input", rows(&[10, 500]), None));
    assert_eq!(requests.len(), 998);
    assert!(notes.join("; ").contains("2 requests that were more than 60 s away"), "{notes:?}");
    // A pause is no wrong time.
    let after: Vec<u64> = (500..1000).collect();
    assert_eq!(all(input("input", rows(&after), None)).0.len(), 1000);
    let error = refused(rows(&[10, 11]), None);
    assert!(error.contains("988 of 1000 requests are more than 60 s earlier"), "{error}");
}

#[test]
fn inputs_without_requests_are_refused() {
    let error = refused("Device r/s w/s\nsda 1 2\n", Some("iostat"));
    assert!(error.contains("which has no single requests; block traces are weirtrace"), "{error}");
    let error = refused("time_s,op,size_bytes,lba_x\n1,R,512,9\n", Some("trace-csv"));
    assert!(error.contains("without offsets nothing can be replayed"), "{error}");
    assert_eq!(trace_kind(b"[global]\nrw=read\n"), None);
    assert_eq!(trace_kind(b"weirtrc1....."), kind_named("weirtrace"));
}

/// The samples, their requests, and the most bytes of a request in a trace of Weir.
///
/// blkparse has random times, latencies and pages with a resolution of nanoseconds: 8.3 bytes of
/// noise for each request.
const SAMPLES: [(&str, u64, u64); 4] = [
    ("blkparse_nvme_259-2.txt", 1694, 9),
    ("cloudPhysicsIO.csv", 113_872, 2),
    ("disksim_ascii.trace", 100_000, 6),
    ("mqsim_tpcc-small.trace", 6999, 6),
];

/// Of all samples together.
const MOST_BYTES: u64 = 6;

/// Random requests as a trace of CloudPhysics, in runs as a file system makes them: 64 requests follow each
/// other, and then come others from elsewhere.
fn in_runs(requests: u64) -> String {
    let mut text = "version,time,op,size,lbn\n".to_owned();
    let (mut random, mut sector, mut time) = (7_u64, 0, 0);
    for n in 0..requests {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if n % 64 == 0 {
            sector = (random >> 40) * 8;
        }
        let op = if random >> 63 == 1 { "28" } else { "2a" };
        let size = 4096 << (random >> 61 & 1);
        time += random >> 54;
        text += &format!("1,{time},{op},{size},{sector}\n");
        sector += size / 512;
    }
    text
}

/// A sample that is always there.
#[test]
fn a_trace_in_runs_takes_at_most_six_bytes_a_request_and_is_read_unchanged() {
    let count = 20_000;
    let (requests, devices, _) = all(input("input", in_runs(count), None));
    assert_eq!((requests.len() as u64, devices.len()), (count, 1));
    let mut writer = Writer::new(Vec::new(), &Header::default()).expect("memory");
    writer.device(&devices[0]).expect("one device");
    requests.iter().for_each(|request| writer.request(request).expect("in order"));
    let written = writer.finish(0).expect("memory");
    assert!(written.len() as u64 <= MOST_BYTES * count, "{} bytes", written.len());
    let mut reader = Reader::open(written.as_slice()).expect("a trace");
    let next = || reader.next_request().expect("sound");
    assert!(std::iter::from_fn(next).eq(requests.iter().cloned()));
    assert_eq!(reader.ending(), Some(Ending::Complete));
    // The trace of Weir gives the counts of its source.
    let read = |bytes: Vec<u8>| {
        let read = crate::bed::try_read(vec![input("t", bytes, None)], &Options::default());
        let read = read.expect("it is read");
        ["reads", "read_bytes", "writes", "write_bytes"]
            .map(|metric| *read.all(&devices[0], metric).last().expect("a sample"))
    };
    let (from_source, from_trace) = (read(in_runs(count).into_bytes()), read(written.clone()));
    assert_eq!(from_source, from_trace);
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let all = count as f64;
    assert_eq!(from_source[0] + from_source[2], all);
}

#[test]
fn samples_take_at_most_six_bytes_a_request_and_are_read_unchanged() {
    let Some(folder) = folder() else { return };
    let (mut bytes_of_all, mut requests_of_all) = (0, 0);
    for (name, count, most) in SAMPLES {
        let file = File::open(folder.join("block_traces").join(name)).expect(name);
        let bytes = Box::new(BufReader::new(file));
        let (requests, devices, _) = all(Input { name: name.to_owned(), bytes, kind: None });
        assert_eq!(requests.len() as u64, count, "{name}");
        let mut writer = Writer::new(Vec::new(), &Header::default()).expect("memory");
        for device in &devices {
            writer.device(device).expect("few devices");
        }
        for request in &requests {
            writer.request(request).expect("in order");
        }
        let written = writer.finish(0).expect("memory");
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let each = written.len() as f64 / count as f64;
        println!("{name}: {each:.2} bytes a request");
        assert!(written.len() as u64 <= most * count, "{name}: {each:.2} bytes");
        bytes_of_all += written.len() as u64;
        requests_of_all += count;
        let mut reader = Reader::open(written.as_slice()).expect("a trace");
        let next = || reader.next_request().expect("sound");
        assert!(std::iter::from_fn(next).eq(requests), "{name}");
        assert_eq!(reader.ending(), Some(Ending::Complete));
    }
    assert!(bytes_of_all <= MOST_BYTES * requests_of_all, "{bytes_of_all} bytes");
}

#[test]
fn a_trace_of_weir_gives_the_rates_of_its_source() {
    let Some(folder) = folder() else { return };
    let path = folder.join("block_traces/blkparse_nvme_259-2.txt");
    let text = std::fs::read(path).expect("a sample");
    let (requests, devices, _) = all(input("input", text, None));
    let mut writer = Writer::new(Vec::new(), &Header::default()).expect("memory");
    writer.device(&devices[0]).expect("one device");
    requests.iter().for_each(|request| writer.request(request).expect("in order"));
    let written = writer.finish(0).expect("memory");
    let read = crate::bed::try_read(vec![input("t", written, None)], &Options::default());
    let read = read.expect("it is read");
    assert_eq!(read.kind(), "weirtrace");
    let last = |metric: &str| *read.all("259,2", metric).last().expect("a sample");
    // The figures of the importer of its source, see `trace.rs`.
    assert_eq!((last("reads"), last("read_bytes")), (1694.0, 198_029_312.0));
    assert_eq!(last("io_stall_read_ms"), 273.798);
}
