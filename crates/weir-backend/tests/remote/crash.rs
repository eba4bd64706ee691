//! A server that is killed and started again under load.
//!
//! The server keeps writes in a cache of its own until a flush, and loses it when it is killed. So
//! a store that did not write again what no flush covers would lose it.

use super::common::{Place, has};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use weir_backend::{RemoteStore, State};
use weir_store::Store;
use weir_units::Span;

const KILLS: usize = 20;
const WRITERS: u64 = 4;
const BLOCK: u64 = 4096;
/// Blocks of each writer.
const BLOCKS: u64 = 64;

/// Writes stamps to blocks of its own, reads them back, and flushes now and then. Returns the last
/// stamp of each block that was answered.
fn load(store: &RemoteStore, writer: u64, ends: &AtomicBool, done: &AtomicU64) -> Vec<u64> {
    let mut last = vec![0_u64; usize::try_from(BLOCKS).unwrap()];
    let (mut random, mut stamp) = (writer + 1, 0_u64);
    while !ends.load(Ordering::Acquire) {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let block = random >> 33 & (BLOCKS - 1);
        let (own, at) = (&mut last[usize::try_from(block).unwrap()], place(writer, block));
        match random >> 60 {
            0..9 => {
                stamp += 1;
                store.write_at(at, &stamp.to_le_bytes().repeat(512)).unwrap();
                *own = stamp;
            }
            9 => {
                store.trim(at, BLOCK).unwrap();
                *own = 0;
            }
            10 => store.sync().unwrap(),
            _ => assert_eq!(stamp_at(store, at), *own, "block {block} of {writer}"),
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
    last
}

fn place(writer: u64, block: u64) -> u64 {
    (writer * BLOCKS + block) * BLOCK
}

/// Reads a block, which has to be whole.
fn stamp_at(store: &RemoteStore, at: u64) -> u64 {
    let mut found = vec![0; usize::try_from(BLOCK).unwrap()];
    store.read_at(at, &mut found).unwrap();
    let stamp = u64::from_le_bytes(found[..8].try_into().unwrap());
    assert!(found == stamp.to_le_bytes().repeat(512), "a torn block at {at}");
    stamp
}

fn check(args: &[&str]) {
    let place_of_server = Place::new();
    let disk = place_of_server.disk(WRITERS * BLOCKS * BLOCK);
    let args = [args, &["file", &disk]].concat();
    let mut server = place_of_server.nbdkit(&args);
    let (store, heard) = place_of_server.open(Span::from_secs(60)).unwrap();
    let (ends, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let last: Vec<Vec<u64>> = std::thread::scope(|scope| {
        let (store, ends, done, server) = (&store, &ends, &done, &mut server);
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(move || load(store, writer, ends, done)))
            .collect();
        for _ in 0..KILLS {
            let before = done.load(Ordering::Relaxed);
            while done.load(Ordering::Relaxed) < before + 300 {
                if writers.iter().any(|writer| writer.is_finished()) {
                    ends.store(true, Ordering::Release);
                    panic!("a writer ended");
                }
                std::thread::park_timeout(std::time::Duration::from_millis(1));
            }
            server.kill();
            heard.wait_for(|state| matches!(state, State::Lost { .. }));
            *server = place_of_server.nbdkit(&args);
            heard.wait_for(|state| *state == State::Connected);
        }
        ends.store(true, Ordering::Release);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    for (writer, last) in (0_u64..).zip(&last) {
        for (block, own) in (0_u64..).zip(last) {
            assert_eq!(stamp_at(&store, place(writer, block)), *own, "block {block} of {writer}");
        }
    }
    // After a flush, the disk has everything without the help of the store.
    store.sync().unwrap();
    drop(store);
    server.kill();
    let disk = std::fs::read(&disk).unwrap();
    let stamps: Vec<u64> = last.concat();
    for (own, block) in stamps.iter().zip(disk.chunks(usize::try_from(BLOCK).unwrap())) {
        assert!(block == own.to_le_bytes().repeat(512), "a flushed block is lost");
    }
}

#[test]
fn nothing_answered_is_lost_with_a_server_that_forgets() {
    if has("nbdkit") {
        check(&["--filter=cache"]);
    }
}

#[test]
fn nothing_answered_is_lost_with_a_server_that_is_killed() {
    if has("nbdkit") {
        check(&[]);
    }
}
