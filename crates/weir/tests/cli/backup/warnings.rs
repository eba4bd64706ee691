//! A backup that is complete, and something that goes wrong afterwards: a warning, never a failure.

use super::{Rig, files};
use crate::common::{Place, run};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// An answer in the place of the server's, for some requests.
type Instead = dyn Fn(&Value) -> Option<&'static str> + Send + Sync;

/// Stands between `weir` and the control socket of a server, at `proxy.sock`.
fn proxy(place: &Place, instead: Arc<Instead>) {
    let path = place.path("proxy.sock");
    drop(fs::remove_file(&path));
    let listener = UnixListener::bind(path).expect("a socket");
    let control = place.path("control.sock");
    thread::spawn(move || {
        for client in listener.incoming() {
            let (client, instead) = (client.expect("a client"), Arc::clone(&instead));
            let server = UnixStream::connect(&control).expect("a server");
            thread::spawn(move || relay(client, server, instead.as_ref()));
        }
    });
}

fn relay(client: UnixStream, server: UnixStream, instead: &Instead) {
    let (mut answers, mut to_server) = (BufReader::new(server.try_clone().expect("it")), server);
    let (mut requests, mut to_client) = (BufReader::new(client.try_clone().expect("it")), client);
    let mut line = String::new();
    while requests.read_line(&mut line).unwrap_or(0) > 0 {
        let request: Value = serde_json::from_str(&line).expect("JSON");
        let mut answer = String::new();
        match instead(&request) {
            Some(own) => answer = format!("{own}\n"),
            None => {
                to_server.write_all(line.as_bytes()).expect("it runs");
                answers.read_line(&mut answer).expect("an answer");
            }
        }
        // The client may have its own reasons to hang up.
        drop(to_client.write_all(answer.as_bytes()));
        line.clear();
    }
}

/// Answers requests of one kind.
fn on(command: &'static str, answer: &'static str) -> Arc<Instead> {
    Arc::new(move |request| (request["command"] == command).then_some(answer))
}

/// Does something to the places before the first status after the stripes have their names.
fn once_published(folder: PathBuf, act: impl Fn() + Send + Sync + 'static) -> Arc<Instead> {
    Arc::new(move |request| {
        let names = if folder.is_dir() { files(&folder) } else { Vec::new() };
        let is_published = !names.is_empty() && names.iter().all(|name| name.ends_with(".weirbak"));
        if request["command"] == "status" && is_published {
            act();
        }
        None
    })
}

/// Backs up through the proxy: the warning is on stderr and in the report, and the exit code is this.
#[track_caller]
fn check(rig: &Rig, instead: Arc<Instead>, args: &str, code: i32, expect: &str) {
    proxy(&rig.place, instead);
    let args = format!("backup run {args} --control proxy.sock -o json");
    let (stdout, stderr, got) = run(rig.weir(&args));
    assert_eq!(got, Some(code), "{stderr}");
    let warning = format!("weir: warning: the backup is complete, but {expect}");
    assert!(stderr.contains(&warning), "{stderr}");
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(report["is_complete"], true);
    let notes = report["notes"].to_string();
    assert!(notes.contains(&format!("warning: {expect}")), "{notes}");
}

#[test]
fn a_freeze_that_does_not_end_in_order_is_a_warning() {
    let rig = Rig::new();
    let expect = "the server did not end the freeze in order, and may not count changes from this \
                  backup: it is busy";
    check(&rig, on("release", "{\"failed\":\"it is busy\"}"), "data --to b --name a", 0, expect);
    assert!(rig.good("backup verify a --from b").contains("sound"));
    // The conversation is over, and the freeze with it.
    rig.backup("data --to c --name b");
}

#[test]
fn a_full_backup_from_which_changes_are_not_counted_is_a_warning() {
    let rig = Rig::new();
    let answer = "{\"ok\":{\"freeze\":1,\"base_of\":[\"log\"],\"kept_bytes\":0}}";
    let expect = "the server does not count the changes of data from it";
    check(&rig, on("release", answer), "data log --to b", 0, expect);
    // None is expected of a copy.
    proxy(&rig.place, on("release", answer));
    let copy = "backup run data log --to c --copy-only --control proxy.sock";
    let (_, stderr, code) = run(rig.weir(copy));
    assert_eq!((code, stderr.contains("warning")), (Some(0), false), "{stderr}");
}

#[test]
fn a_server_that_does_not_tell_its_limits_is_a_warning() {
    let rig = Rig::new();
    let folder = rig.place.path("b");
    let status: Arc<Instead> = Arc::new(move |request| {
        let is_published = files(&folder).iter().any(|name| name.ends_with(".weirbak"));
        (request["command"] == "status" && is_published).then_some("{\"failed\":\"it is busy\"}")
    });
    check(&rig, status, "data --to b", 0, "the server did not tell its limits: it is busy");
}

#[test]
fn a_full_backup_that_goes_while_its_differential_is_made_is_a_warning() {
    let rig = Rig::new();
    rig.backup("data --to b --name week");
    let full = rig.place.path("b").join(&rig.files("b")[0]);
    let act = once_published(rig.place.path("c"), move || drop(fs::remove_file(&full)));
    let args = "data --to c --from b --differential --name day";
    check(&rig, act, args, 1, "it may be impossible to restore: the full backup");
    assert_eq!(rig.files("c").len(), 1);
}

#[test]
fn a_backup_that_cannot_be_read_back_is_a_warning() {
    let rig = Rig::new();
    let (folder, aside) = (rig.place.path("b"), rig.place.path("aside"));
    let act = once_published(folder.clone(), move || drop(fs::rename(&folder, &aside)));
    check(&rig, act, "data --to b --name a --verify", 1, "it could not be verified: ");
    assert!(rig.good("backup verify a --from aside").contains("sound"));
    // Nothing builds on what was not verified.
    rig.refuse("data --to c --from aside --differential", 2, "take a full backup first");
    // One that is damaged meanwhile is no warning: that is what was asked.
    fs::create_dir(rig.place.path("b")).expect("a folder");
    let folder = rig.place.path("b");
    let damage = once_published(folder.clone(), move || {
        let stripe = folder.join(&files(&folder)[0]);
        let mut bytes = fs::read(&stripe).expect("a stripe");
        bytes[9000] ^= 1;
        fs::write(&stripe, bytes).expect("a stripe");
    });
    proxy(&rig.place, damage);
    let args = "backup run data --to b --verify --control proxy.sock -o json";
    let (stdout, stderr, code) = run(rig.weir(args));
    assert_eq!(code, Some(1), "{stderr}");
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(report["is_verified"], false);
    assert!(report["notes"].to_string().contains("damage: "), "{report}");
}

/// Whatever can be wrong without a freeze is found before one is asked for.
#[test]
fn clients_pay_for_no_freeze_of_a_backup_that_is_refused() {
    let rig = Rig::new();
    rig.place.file("short", "abc");
    let frozen = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&frozen);
    let instead: Arc<Instead> = Arc::new(move |request| {
        seen.fetch_or(request["command"] == "freeze", Ordering::Relaxed);
        None
    });
    proxy(&rig.place, instead);
    for (args, expect) in [
        ("data --to log", "contains data other than backups"),
        ("data --to b --name a/b", "is not a file name"),
        ("data --to http://127.0.0.1:1/a/c", "is the endpoint up"),
        ("data --to b --differential --from ./none", "cannot look for backups in ./none"),
    ] {
        let (_, stderr, _) = run(rig.weir(&format!("backup run {args} --control proxy.sock")));
        assert!(stderr.contains(expect), "{args}: {stderr}");
        assert!(!frozen.load(Ordering::Relaxed), "{args}: it was frozen");
    }
    rig.backup("data --to b --control proxy.sock");
    assert!(frozen.load(Ordering::Relaxed));
}
