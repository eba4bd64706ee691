//! The size of an observation: a day of 100 files at one second stays under 50 MB. It takes half of
//! that.
//!
//! The load is that of an instance with many databases: a few files that are busy all
//! day, some that are busy in office hours, and most that only checkpoints and a stray
//! query touch. Arrivals are noisy as arrivals are (their variance is their mean), sizes
//! are mixed, latencies are noisy in every request, and a few files are held at caps.

use std::io::{self, Write};
use weir_observe::run::{DatabaseShape, FileCounters, FileShape, HostShape, Sample, Shape};
use weir_observe::{Header, Source, SourceKind, Writer};
use weir_random::Rng;
use weir_units::{Instant, Span};

const DAY: u64 = 86_400;

/// A writer that counts bytes.
#[derive(Default)]
struct Bytes(u64);

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Draws of counts.
struct Counts(Rng);

impl Counts {
    /// Draws an approximately normal number with mean 0 and variance 1: the sum of twelve uniform ones.
    fn normal(&mut self) -> f64 {
        let draws = [(); 3].map(|()| self.0.next_u64());
        let parts = draws.iter().flat_map(|n| n.to_le_bytes().map(f64::from)).take(24);
        (parts.sum::<f64>() / 256.0 - 12.0 + 24.0 / 512.0) / 2_f64.sqrt()
    }

    /// Draws an approximately Poisson-distributed number.
    fn count(&mut self, mean: f64) -> u64 {
        round(mean + mean.sqrt() * self.normal())
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "made up")]
fn round(x: f64) -> u64 {
    x.max(0.0).round() as u64
}

#[expect(clippy::cast_precision_loss, reason = "made up")]
fn float(n: u64) -> f64 {
    n as f64
}

/// Returns the reads and writes per second of a file at a time.
fn load(file: u64, second: u64, rng: &mut Counts) -> (f64, f64) {
    let office = (9 * 3_600..17 * 3_600).contains(&second);
    let checkpoint = (second + file * 7) % 60 < 5;
    match file {
        0..8 => (300.0 + 100.0 * float(file), 150.0),
        8..40 if office => (40.0, if checkpoint { 60.0 } else { 8.0 }),
        _ if checkpoint => (0.0, 4.0),
        _ if rng.0.next_u64().is_multiple_of(50) => (2.0, 0.0),
        _ => (0.0, 0.0),
    }
}

fn second(
    counted: &mut FileCounters,
    (reads, writes): (f64, f64),
    is_held: bool,
    rng: &mut Counts,
) {
    let (reads, writes) = (rng.count(reads), rng.count(writes));
    // Most reads are pages, some are extents; writes are coalesced now and then.
    let extents = rng.count(float(reads) * 0.05).min(reads);
    let coalesced = rng.count(float(writes) * 0.2).min(writes);
    let noisy = |n: u64, each: f64, rng: &mut Counts| {
        round(float(n) * each + float(n).sqrt() * each * 0.4 * rng.normal())
    };
    let queued = |n: u64, rng: &mut Counts| if is_held { noisy(n, 9e6, rng) } else { 0 };
    let (read_queued, write_queued) = (queued(reads, rng), queued(writes, rng));
    let (read_medium, write_medium) = (noisy(reads, 1.9e6, rng), noisy(writes, 2.4e6, rng));
    counted.reads += reads;
    counted.read_bytes += reads * 8_192 + extents * 7 * 8_192;
    counted.read_stall_ns += read_queued + read_medium;
    counted.read_queued_ns += read_queued;
    counted.writes += writes;
    counted.write_bytes += writes * 8_192 + coalesced * 3 * 8_192;
    counted.write_stall_ns += write_queued + write_medium;
    counted.write_queued_ns += write_queued;
    counted.medium_ns += read_medium + write_medium;
    let waited = counted.waits.first().map_or(0, |(_, ns)| *ns);
    counted.waits = vec![("disk_iops", waited + read_queued + write_queued)];
}

/// Writes an observation of a number of files over a number of seconds, and returns its bytes.
fn size(files: u64, seconds: u64, load: impl Fn(u64, u64, &mut Counts) -> (f64, f64)) -> u64 {
    let file = |n: u64| FileShape {
        name: format!("data_{n}"),
        caps: Some(vec!["disk_iops", "disk_bytes"]),
        ..FileShape::default()
    };
    let shape = Shape {
        hosts: vec![HostShape { name: "host".to_owned(), ..HostShape::default() }],
        databases: vec![DatabaseShape { name: "db".to_owned(), ..DatabaseShape::default() }],
        files: (0..files).map(file).collect(),
        ..Shape::default()
    };
    let kind = SourceKind::VirtualRun;
    let source = Source { kind, by: "test".to_owned(), about: [].into() };
    let mut header = Header::new(source);
    header.contents = shape.contents();
    let mut writer = Writer::new(Bytes::default(), &header).expect("memory");
    let mut sample = Sample { databases: vec![Default::default()], ..Sample::default() };
    sample.files.resize(files.try_into().expect("few"), FileCounters::default());
    let (mut rng, mut row) = (Counts(Rng::from_state(1)), Vec::new());
    for now in 0..seconds {
        for (n, counted) in (0..).zip(&mut sample.files) {
            second(counted, load(n, now, &mut rng), n.is_multiple_of(4), &mut rng);
        }
        shape.row(&sample, &mut row);
        writer.sample(Instant::ZERO + Span::from_secs(now), &row).expect("memory");
    }
    writer.finish(true).expect("memory").0
}

#[test]
fn a_day_of_a_hundred_files_is_under_50_mb() {
    let bytes = size(100, DAY, load);
    println!("a day of 100 files: {bytes} bytes");
    assert!(bytes < 25_000_000, "{bytes} bytes");
}

/// The worst case: all hundred files are busy all day. An hour of ten files represents it.
#[test]
fn a_day_of_a_hundred_busy_files() {
    let bytes = size(10, DAY / 24, |file, now, rng| load(file % 8, now, rng)) * 240;
    println!("a day of 100 busy files: {bytes} bytes");
    assert!(bytes < 100_000_000, "{bytes} bytes");
}
