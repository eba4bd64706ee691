//! A server that is killed and started again under load.
//!
//! With nbdkit's cache filter, the server keeps writes in a cache of its own until a flush, and loses
//! it when it is killed. So a store that did not write again what no flush covers would lose it.

use super::common::{Place, Program, has, number};
use super::load::{Errors, SIZE, campaign};
use weir_backend::State;
use weir_units::Span;

/// Requests between two kills.
const BETWEEN: u64 = 300;

fn check(name: &str, start: impl Fn(&Place, &str) -> Program) {
    let place = Place::new();
    let disk = place.disk(SIZE);
    let mut server = start(&place, &disk);
    let (store, heard) = place.open(Span::from_secs(60)).unwrap();
    let kills = number("WEIR_BACKEND_KILLS", 20);
    let outcome = campaign(&store, Errors::Never, (kills, BETWEEN), || {
        server.kill();
        heard.wait_for(|state| matches!(state, State::Lost { .. }));
        server = start(&place, &disk);
        heard.wait_for(|state| *state == State::Connected);
    });
    println!("{name}: {kills} kills, {} requests, nothing lost", outcome.requests);
    outcome.check_file(store, || server.kill(), &place);
}

#[test]
fn nothing_answered_is_lost_with_a_server_that_forgets() {
    if has("nbdkit") {
        check("nbdkit with a cache", |place, disk| place.nbdkit(&["--filter=cache", "file", disk]));
    }
}

#[test]
fn nothing_answered_is_lost_with_a_server_that_is_killed() {
    if has("nbdkit") {
        check("nbdkit", |place, disk| place.nbdkit(&["file", disk]));
    }
}

#[test]
fn nothing_answered_is_lost_with_qemu_storage_daemon_killed() {
    if has("qemu-storage-daemon") {
        check("qemu-storage-daemon", Place::qemu);
    }
}
