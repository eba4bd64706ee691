//! Servers that fail, stall, and come back as others.

use super::common::{Place, has};
use weir_backend::State;
use weir_store::{ErrorKind, Store};
use weir_units::Span;

#[test]
fn errors_of_the_server_are_passed_on_and_pass() {
    if !has("nbdkit") {
        return;
    }
    let place = Place::new();
    let (eio, full) = (place.path("eio"), place.path("full"));
    let (eio_file, full_file) = (
        format!("error-pread-file={}", eio.display()),
        format!("error-pwrite-file={}", full.display()),
    );
    let _server = place.nbdkit(&[
        "--filter=error",
        "memory",
        "4M",
        "error-pread=EIO",
        "error-pread-rate=100%",
        &eio_file,
        "error-pwrite=ENOSPC",
        "error-pwrite-rate=100%",
        &full_file,
    ]);
    let (store, _) = place.open(Span::from_secs(30)).unwrap();
    store.write_at(0, &[1; 4096]).unwrap();
    std::fs::write(&full, "").unwrap();
    let error = store.write_at(4096, &[2; 4096]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    assert!(
        error.to_string().contains("answered ENOSPC to a write of 4096 bytes at 4096"),
        "{error}"
    );
    std::fs::write(&eio, "").unwrap();
    let mut found = [0; 4096];
    let error = store.read_at(0, &mut found).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    std::fs::remove_file(&eio).unwrap();
    std::fs::remove_file(&full).unwrap();
    store.write_at(4096, &[2; 4096]).unwrap();
    store.read_at(0, &mut found).unwrap();
    assert_eq!(found, [1; 4096]);
    assert_eq!(store.condition().state, State::Connected);
}

/// Like a fenced qemu-storage-daemon, which takes connections and refuses all requests.
#[test]
fn a_server_that_refuses_all_requests_is_asked_less_and_less() {
    if !has("nbdkit") {
        return;
    }
    let place = Place::new();
    let refuses = place.path("refuses");
    let file = format!("error-file={}", refuses.display());
    let filter = ["--filter=error", "memory", "4M", "error=ESHUTDOWN", "error-rate=100%", &file];
    let _server = place.nbdkit(&filter);
    let (store, heard) = place.open(Span::from_millis(1500)).unwrap();
    store.write_at(0, &[1; 4096]).unwrap();
    std::fs::write(&refuses, "").unwrap();
    assert!(store.write_at(0, &[2; 4096]).is_err());
    // Waits of 50, 100, 200, 400 and 800 ms, each followed by a connection and its loss.
    let changes = heard.count();
    assert!(changes <= 13, "{changes} changes");
    std::fs::remove_file(&refuses).unwrap();
    heard.wait_for(|state| *state == State::Connected);
    store.write_at(0, &[3; 4096]).unwrap();
}

#[test]
fn a_stall_is_an_error_after_the_timeout_and_passes() {
    if !has("nbdkit") {
        return;
    }
    let place = Place::new();
    let server = place.nbdkit(&["memory", "4M"]);
    let (store, heard) = place.open(Span::from_secs(1)).unwrap();
    store.write_at(0, &[1; 4096]).unwrap();
    server.stall();
    let error = store.write_at(0, &[2; 4096]).unwrap_err().to_string();
    assert!(error.contains("has not answered a write of 4096 bytes at 0 for 1 s"), "{error}");
    let State::Lost { reason } = heard.wait_for(|state| *state != State::Connected) else {
        panic!("it is not lost");
    };
    assert_eq!(reason, "no answer for 1 s");
    // Nothing overtakes the write that may still be executed.
    assert!(store.write_at(0, &[3; 4096]).is_err());
    server.go_on();
    heard.wait_for(|state| *state == State::Connected);
    store.write_at(0, &[4; 4096]).unwrap();
    let mut found = [0; 4096];
    store.read_at(0, &mut found).unwrap();
    assert_eq!(found, [4; 4096]);
}

/// Restarts the server with other arguments, and returns why the store has failed.
fn failure(before: &[&str], after: &[&str]) -> String {
    let place = Place::new();
    let mut server = place.nbdkit(before);
    let (store, heard) = place.open(Span::from_secs(30)).unwrap();
    store.write_at(0, &[1; 4096]).unwrap();
    server.kill();
    let _server = place.nbdkit(after);
    let State::Failed { reason } = heard.wait_for(|state| matches!(state, State::Failed { .. }))
    else {
        unreachable!("it was waited for");
    };
    let error = store.read_at(0, &mut [0; 512]).unwrap_err().to_string();
    assert!(error.contains("is not used any more") && error.contains(&reason), "{error}");
    assert!(store.sync().is_err() && store.write_at(0, &[1]).is_err());
    reason
}

#[test]
fn a_server_that_comes_back_as_another_is_not_used() {
    if !has("nbdkit") {
        return;
    }
    let reason = failure(&["memory", "4M"], &["memory", "8M"]);
    assert!(reason.starts_with("it came back with 8 MiB instead of 4 MiB"), "{reason}");
    let reason = failure(&["memory", "4M"], &["-r", "memory", "4M"]);
    assert!(reason.starts_with("the export is read-only"), "{reason}");
    let full = ["--filter=error", "memory", "4M", "error=ENOSPC", "error-pwrite-rate=100%"];
    let reason = failure(&["memory", "4M"], &full);
    assert!(reason.starts_with("it did not take 4096 bytes at 0 again"), "{reason}");
}

/// The memory of nbdkit confirms every flush, and is empty after a restart.
#[test]
fn a_server_that_forgets_what_it_has_flushed_is_not_used() {
    if !has("nbdkit") {
        return;
    }
    for durably in [false, true] {
        let place = Place::new();
        let mut server = place.nbdkit(&["memory", "4M"]);
        let (store, heard) = place.open(Span::from_secs(30)).unwrap();
        if durably {
            assert!(store.write_durably(8192, &[1; 4096]).unwrap());
        } else {
            store.write_at(8192, &[1; 4096]).unwrap();
            store.sync().unwrap();
        }
        server.kill();
        let _server = place.nbdkit(&["memory", "4M"]);
        let State::Failed { reason } =
            heard.wait_for(|state| matches!(state, State::Failed { .. }))
        else {
            unreachable!("it was waited for");
        };
        assert!(reason.starts_with("it came back without the 4096 bytes at 8192"), "{reason}");
        let error = store.read_at(0, &mut [0; 512]).unwrap_err().to_string();
        assert!(error.contains(&reason), "{error}");
    }
}

#[test]
fn a_server_that_is_away_is_waited_for() {
    if !has("nbdkit") {
        return;
    }
    let place = Place::new();
    let disk = place.disk(4 << 20);
    let mut server = place.nbdkit(&["file", &disk]);
    let (store, heard) = place.open(Span::from_secs(30)).unwrap();
    server.kill();
    heard.wait_for(|state| matches!(state, State::Lost { .. }));
    std::thread::scope(|scope| {
        let write = scope.spawn(|| store.write_at(512, &[7; 512]));
        let _server = place.nbdkit(&["file", &disk]);
        heard.wait_for(|state| *state == State::Connected);
        write.join().unwrap().unwrap();
        let mut found = [0; 512];
        store.read_at(512, &mut found).unwrap();
        assert_eq!(found, [7; 512]);
    });
}

#[test]
fn a_server_that_stays_away_is_an_error_after_the_timeout() {
    if !has("nbdkit") {
        return;
    }
    let place = Place::new();
    let mut server = place.nbdkit(&["memory", "4M"]);
    let (store, _) = place.open(Span::from_millis(300)).unwrap();
    server.kill();
    let error = store.read_at(0, &mut [0; 512]).unwrap_err().to_string();
    assert!(error.contains("has not answered a read of 512 bytes at 0 for 300 ms"), "{error}");
}
