//! Connections that are cut in the middle of a request or an answer, under load.

use super::common::{Place, Program, has, number};
use super::load::{Errors, SIZE, campaign};
use super::proxy::Proxy;
use weir_backend::State;
use weir_units::Span;

/// Requests between two cuts.
const BETWEEN: u64 = 100;

fn check(name: &str, start: impl Fn(&Place, &str) -> Program) {
    let place = Place::new();
    let disk = place.disk(SIZE);
    let mut server = start(&place, &disk);
    let proxy = Proxy::start(&place.path("nbd.sock"));
    let (store, heard) = Place::open_at(&proxy.uri(), Span::from_secs(60)).unwrap();
    let cuts = number("WEIR_BACKEND_CUTS", 20);
    let mut random = 1_u32;
    let outcome = campaign(&store, Errors::Never, (cuts, BETWEEN), || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let before = proxy.cuts();
        proxy.cut_after(random >> 16, random >> 15 & 1 == 1);
        heard.wait_for(|state| matches!(state, State::Lost { .. }));
        heard.wait_for(|state| *state == State::Connected);
        assert_eq!(proxy.cuts(), before + 1);
    });
    println!("{name}: {cuts} cuts, {} requests, nothing lost", outcome.requests);
    outcome.check_file(store, || server.kill(), &place);
}

#[test]
fn nothing_answered_is_lost_when_connections_to_nbdkit_are_cut() {
    if has("nbdkit") {
        check("nbdkit", |place, disk| place.nbdkit(&["--filter=cache", "file", disk]));
    }
}

#[test]
fn nothing_answered_is_lost_when_connections_to_qemu_storage_daemon_are_cut() {
    if has("qemu-storage-daemon") {
        check("qemu-storage-daemon", Place::qemu);
    }
}
