//! Backends that are away when Weir starts.

use super::{Nbdkit, disk};
use crate::common::{Place, run};
use crate::tools::{self, needs};
use std::time::Duration;

const OTHER: &str = "[[volume]]\nname = \"other\"\nunlimited = true\nsize = \"1 MiB\"\n";

fn status(place: &Place) -> serde_json::Value {
    let (status, said, code) = run(place.weir(&["status", "--output", "json"]));
    assert_eq!(code, Some(0), "{said}");
    serde_json::from_str(&status).expect("JSON")
}

#[test]
fn a_backend_that_comes_later_is_served() {
    needs!("nbdkit");
    let place = Place::new();
    let layout = super::layout(&place, "\"nbd+unix:///?socket=DIR/kit.sock\"")
        .replace("unlimited = true", "limits = { iops = 5000 }");
    let server = place.serve(&format!("{layout}{OTHER}"), &[]);
    assert!(
        server.said.contains("not served: data: ")
            && server.said.contains("is the server running?; Weir tries again every 2 s"),
        "{}",
        server.said
    );
    let left_out = status(&place)["refused"].clone();
    assert_eq!(left_out[0]["name"], "data", "{left_out}");
    // Its name is not free meanwhile.
    let (_, said, code) = run(place.weir(&["volume", "create", "data", "--size", "1MiB"]));
    assert!(code == Some(2) && said.contains("taken"), "{code:?}: {said}");
    disk(&place, super::SIZE);
    let kit = Nbdkit::start(&place);
    while status(&place)["refused"].as_array().is_some_and(|refused| !refused.is_empty()) {
        std::thread::park_timeout(Duration::from_millis(20));
    }
    let mut client = place.open("data");
    assert_eq!(client.size().get(), super::SIZE);
    client.write(0, &[7; 512]).and_then(|()| client.flush()).expect("a write");
    let now = status(&place);
    let volumes = now["hosts"][0]["volumes"].as_array().expect("volumes");
    let data: Vec<_> = volumes.iter().filter(|volume| volume["name"] == "data").collect();
    assert_eq!((volumes.len(), data.len()), (2, 1), "{now}");
    assert_eq!(data[0]["limit_iops"], 5000);
    assert_eq!(data[0]["backend"]["state"], "connected");
    // It is a volume of the layout, like the others.
    let (_, said, code) = run(place.weir(&["volume", "delete", "data", "--yes"]));
    assert!(code == Some(2), "{code:?}: {said}");
    let (_, said, code) = run(place.weir(&["volume", "set-cache", "data", "none"]));
    assert_eq!(code, Some(0), "{said}");
    place.open("other").read(0, &mut [0; 512]).expect("a read");
    drop(client);
    // The backend is watched as any other.
    drop(kit);
    let lost = || {
        let now = status(&place);
        let volumes = now["hosts"][0]["volumes"].as_array().cloned().unwrap_or_default();
        volumes.iter().any(|volume| volume["backend"]["state"] == "lost")
    };
    while !lost() {
        std::thread::park_timeout(Duration::from_millis(20));
    }
    let _kit = Nbdkit::start(&place);
    server.signal(rustix::process::Signal::TERM);
    let (ended, said) = server.wait();
    assert_eq!(ended.code(), Some(0), "{said}");
    assert!(said.contains("is there; the volume is served now"), "{said}");
}

#[test]
fn a_backend_that_is_too_small_is_served_once_it_is_enlarged() {
    needs!("nbdkit");
    let place = Place::new();
    disk(&place, super::SIZE / 2);
    let kit = Nbdkit::start_with(&place, &["--filter=log", "file", "disk", "logfile=log"]);
    let connections = || {
        let log = std::fs::read_to_string(place.path("log")).unwrap_or_default();
        log.matches(" Connect ").count()
    };
    let layout = super::layout(&place, "\"nbd+unix:///?socket=DIR/kit.sock\"")
        .replace("unlimited = true", "unlimited = true\nsize = \"8 MiB\"");
    let server = place.serve(&format!("{layout}{OTHER}"), &[]);
    assert!(
        server.said.contains("4 MiB") && server.said.contains("Weir tries again every 2 s"),
        "{}",
        server.said
    );
    let at_start = connections();
    assert!(at_start > 0);
    // It is tried in vain once more.
    while connections() <= at_start {
        std::thread::park_timeout(Duration::from_millis(20));
    }
    drop(kit);
    disk(&place, super::SIZE);
    let _kit = Nbdkit::start(&place);
    while status(&place)["refused"].as_array().is_some_and(|refused| !refused.is_empty()) {
        std::thread::park_timeout(Duration::from_millis(20));
    }
    assert_eq!(place.open("data").size().get(), super::SIZE);
    server.signal(rustix::process::Signal::TERM);
    assert_eq!(server.wait().0.code(), Some(0));
}

/// A server that waits for a backend stops at once.
#[test]
fn a_server_that_waits_for_a_backend_stops() {
    let place = Place::new();
    let layout = super::layout(&place, "\"nbd+unix:///?socket=DIR/kit.sock\"");
    place.serve(&format!("{OTHER}{layout}"), &[]).stop();
}
