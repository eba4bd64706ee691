//! Servers that stall, and servers that fail some of their requests, under load.

use super::common::{Place, Program, has, number};
use super::load::{Errors, SIZE, campaign};
use std::time::Duration;
use weir_backend::State;
use weir_units::Span;

const STALLS: u64 = 3;

/// Stalls the server for some seconds. With a timeout beyond that, nothing fails.
fn stall(name: &str, errors: Errors, start: impl Fn(&Place, &str) -> Program) {
    let place = Place::new();
    let disk = place.disk(SIZE);
    let mut server = start(&place, &disk);
    let seconds = number("WEIR_BACKEND_STALL_SECONDS", 1);
    let timeout = match errors {
        Errors::Never => Span::from_secs(4 * seconds + 60),
        Errors::Expected => Span::from_millis(seconds * 1000 / 4),
    };
    let (store, heard) = place.open(timeout).unwrap();
    let outcome = campaign(&store, errors, (STALLS, 300), || {
        server.stall();
        std::thread::park_timeout(Duration::from_secs(seconds));
        if errors == Errors::Expected {
            heard.wait_for(|state| matches!(state, State::Lost { .. }));
        }
        server.go_on();
        if errors == Errors::Expected {
            heard.wait_for(|state| *state == State::Connected);
        }
    });
    let (requests, failed) = (outcome.requests, outcome.failed);
    println!("{name}: {STALLS} stalls of {seconds} s, {requests} requests, {failed} failed");
    assert_eq!(failed > 0, errors == Errors::Expected);
    outcome.check_file(store, || server.kill(), &place);
}

#[test]
fn stalls_that_are_shorter_than_the_timeout_are_waited_for() {
    if has("nbdkit") {
        stall("nbdkit", Errors::Never, |place, disk| {
            place.nbdkit(&["--filter=cache", "file", disk])
        });
    }
}

#[test]
fn stalls_that_are_longer_than_the_timeout_lose_nothing_answered() {
    if has("nbdkit") {
        stall("nbdkit", Errors::Expected, |place, disk| {
            place.nbdkit(&["--filter=cache", "file", disk])
        });
    }
}

#[test]
fn stalls_of_qemu_storage_daemon_lose_nothing_answered() {
    if has("qemu-storage-daemon") {
        stall("qemu-storage-daemon", Errors::Expected, Place::qemu);
    }
}

/// Fails some requests of a kind with an error while a file exists.
fn fail(filters: &[&str], error: &str) {
    let place = Place::new();
    let (disk, trigger) = (place.disk(SIZE), place.path("fails"));
    let file = format!("error-file={}", trigger.display());
    let error = format!("error={error}");
    let own = ["file", &disk, &error, "error-rate=20%", &file];
    let mut server = place.nbdkit(&[filters, &own].concat());
    let (store, _heard) = place.open(Span::from_secs(60)).unwrap();
    let rounds = number("WEIR_BACKEND_ERRORS", 5);
    let mut fails = false;
    let outcome = campaign(&store, Errors::Expected, (2 * rounds, 200), || {
        fails = !fails;
        match fails {
            true => std::fs::write(&trigger, "").unwrap(),
            false => std::fs::remove_file(&trigger).unwrap(),
        }
    });
    let (requests, failed) = (outcome.requests, outcome.failed);
    println!("{filters:?}, {error}: {rounds} phases, {requests} requests, {failed} failed");
    assert!(failed > 0);
    outcome.check_file(store, || server.kill(), &place);
}

#[test]
fn requests_that_fail_lose_nothing_answered() {
    if has("nbdkit") {
        fail(&["--filter=error"], "EIO");
        fail(&["--filter=error"], "ENOSPC");
    }
}

/// The server accepts writes, and fails when it writes its cache back: at a flush.
#[test]
fn flushes_that_fail_lose_nothing_answered() {
    if has("nbdkit") {
        fail(&["--filter=cache", "--filter=error"], "EIO");
        fail(&["--filter=cache", "--filter=error"], "ENOSPC");
    }
}
