//! Single writes that are durable: a flag of the write (FUA) to servers that offer it.

use super::common::{Place, Program, has};
use super::load::execute_later;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_backend::RemoteStore;
use weir_store::{Operation, Outcome, Store};
use weir_units::Span;

const LONG: Span = Span::from_secs(30);
/// The unit of the cache of nbdkit.
const UNIT: u64 = 64 << 10;

/// Starts nbdkit on its memory with a log of what it is asked.
fn logged(place: &Place, filters: &[&str]) -> Program {
    let log = format!("logfile={}", place.path("log").display());
    place.nbdkit(&[&["--filter=log"], filters, &["memory", "4M", &log]].concat())
}

/// Returns the requests of a kind in the log that have the text.
fn count(place: &Place, kind: &str, text: &str) -> usize {
    let log = std::fs::read_to_string(place.path("log")).unwrap();
    let is_one = |line: &&str| line.contains(&format!(" {kind} id=")) && line.contains(text);
    log.lines().filter(is_one).count()
}

fn write(store: &RemoteStore, offset: u64, durably: bool) -> Outcome {
    let data = vec![7; 4096].into();
    execute_later(store, Operation::Write { offset, data, durably }).unwrap()
}

#[test]
fn a_durable_write_is_a_flag_and_no_flush() {
    if !has("nbdkit") {
        return;
    }
    let place = Place::new();
    let _server = logged(&place, &[]);
    let (store, _) = place.open(LONG).unwrap();
    assert_eq!(write(&store, 0, false), Outcome::Done);
    assert_eq!(count(&place, "Write", "fua=1"), 0);
    assert_eq!(write(&store, 0, true), Outcome::Durable);
    assert!(store.write_durably(1, &[1; 5]).unwrap());
    assert!(store.zero_durably(8192, 4096, true).unwrap());
    assert!(store.zero_durably(16384, 4096, false).unwrap());
    assert_eq!(count(&place, "Write", "fua=1"), 2);
    assert_eq!(count(&place, "Zero", "trim=1 fua=1"), 1);
    assert_eq!(count(&place, "Zero", "trim=0 fua=1"), 1);
    assert_eq!(count(&place, "Flush", ""), 0);
    let longer_than_a_request = vec![1; 3 << 20];
    assert!(store.write_durably(0, &longer_than_a_request).unwrap());
}

#[test]
fn a_durable_write_needs_a_flush_without_the_flag() {
    if !has("nbdkit") {
        return;
    }
    let place = Place::new();
    // Its default is to offer no FUA.
    let _server = logged(&place, &["--filter=fua"]);
    let (store, _) = place.open(LONG).unwrap();
    assert_eq!(write(&store, 0, true), Outcome::Done);
    assert!(!store.write_durably(1, &[1; 5]).unwrap());
    assert!(!store.zero_durably(8192, 4096, true).unwrap());
    assert_eq!((count(&place, "Write", "fua=1"), count(&place, "Zero", "fua=1")), (0, 0));
    assert_eq!((count(&place, "Write", "fua=0"), count(&place, "Zero", "fua=0")), (2, 1));
}

#[test]
fn a_durable_write_of_a_part_of_a_block_is_one_of_the_block() {
    if !has("nbdkit") {
        return;
    }
    let place = Place::new();
    let log = format!("logfile={}", place.path("log").display());
    let _server = place.nbdkit(&[
        "--filter=blocksize-policy",
        "--filter=log",
        "memory",
        "4M",
        "blocksize-minimum=4096",
        "blocksize-maximum=65536",
        "blocksize-error-policy=error",
        &log,
    ]);
    let (store, _) = place.open(LONG).unwrap();
    assert!(store.write_durably(5, &[1; 5]).unwrap());
    assert_eq!(count(&place, "Write", "offset=0x0 count=0x1000 fua=1"), 1);
    assert!(!store.write_durably(0, &[1; 65537]).unwrap(), "it takes two requests");
    assert_eq!(count(&place, "Write", "fua=1"), 1);
}

/// Both the server and Weir are killed, so nothing is written again. The server forgets what was
/// neither flushed nor written durably.
#[test]
fn durable_writes_survive_a_kill_of_both() {
    if !has("nbdkit") {
        return;
    }
    let place = Place::new();
    let disk = place.disk(128 * UNIT);
    let mut server = place.nbdkit(&["--filter=cache", "file", &disk]);
    let (store, _) = place.open(Span::from_secs(60)).unwrap();
    let durable: Vec<AtomicU64> = (0..128).map(AtomicU64::new).collect();
    // Four writers, so that some durable writes meet.
    std::thread::scope(|scope| {
        for blocks in durable.chunks(32) {
            let store = &store;
            scope.spawn(move || {
                for (round, block) in (0..4_u8).flat_map(|n| blocks.iter().map(move |b| (n, b))) {
                    let number = block.load(Ordering::Relaxed) & 0xff;
                    let durably = number % 2 == 1;
                    let data = vec![round + 1; 4096].into();
                    let write = Operation::Write { offset: number * UNIT, data, durably };
                    let outcome = match round % 2 {
                        0 => write.run(store),
                        _ => execute_later(store, write),
                    };
                    if outcome.unwrap() == Outcome::Durable {
                        block.store(number | u64::from(round + 1) << 8, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    server.kill();
    drop(store);
    let disk = std::fs::read(disk).unwrap();
    let (mut kept, mut forgotten) = (0, 0);
    for (block, bytes) in durable.iter().zip(disk.chunks(64 << 10)) {
        let round = block.load(Ordering::Relaxed) >> 8;
        assert!(u64::from(bytes[0]) >= round, "{} instead of {round}", bytes[0]);
        assert!(bytes[..4096].iter().all(|byte| *byte == bytes[0]), "a part of a write");
        kept += usize::from(round == 4);
        forgotten += usize::from(bytes[0] == 0);
    }
    assert!(kept > 0, "no write was durable");
    assert!(forgotten > 0, "the server has forgotten nothing, so the test cannot fail");
}
