use super::*;
use crate::notice::Listening;
use std::sync::mpsc::channel;

const TWO_HOSTS: &str = r#"
[[host]]
name = "a"
unlimited = true
[[host]]
name = "b"
unlimited = true
[[volume]]
name = "x"
host = "a"
size = "1 MiB"
unlimited = true
[[volume]]
name = "y"
host = "b"
size = "1 MiB"
unlimited = true
"#;

fn serve(notices: Listening) -> Server {
    let catalog = weir_catalog::Catalog::builtin();
    let layout = Layout::parse("layout.toml", TWO_HOSTS, &catalog).unwrap();
    let listen = vec!["tcp:127.0.0.1:0".parse().unwrap()];
    Server::start(layout, None, &Options { listen, notices, ..Options::default() }).unwrap()
}

/// A defect of a host is told, the others go on, and the server
/// does not end as if all were well.
#[test]
fn a_host_that_panics_is_told_and_fails_the_stop() {
    let (sender, notices) = channel();
    let server = serve(Listening::with(move |notice| sender.send(notice).unwrap()));
    let mailbox = server.shared.hosts()[0].mailbox.clone();
    assert!(mailbox.ask(|_, _| panic!("a defect, made by the test")).is_none());
    let told = notices.recv().unwrap();
    assert!(matches!(&told, Notice::HostEnded { host, .. } if host == "a"), "{told}");
    let status = server.status();
    assert_eq!(status.hosts.iter().map(|h| h.name.as_str()).collect::<Vec<_>>(), ["b"]);
    let error = server.stop().unwrap_err();
    assert_eq!(error.to_string(), "asking a host's thread: it has ended");
    // Errors that are not of the input have exit code 3.
    assert!(!error.is_input());
}

/// A request that waits for a medium holds up no other, and is not begun twice.
#[test]
fn a_resize_that_takes_its_time_holds_up_nothing_but_changes_of_its_volume() {
    let server = serve(Listening::default());
    let resize = |volume: &str, size| {
        let (volume, size) = (volume.to_owned(), Bytes::mib(size));
        server.command(Request::Resize { volume, size }).map_err(|error| error.to_string())
    };
    let (go_on, held) = channel::<()>();
    let hold = move |_: &mut HostLoop, _| {
        let _ = held.recv();
    };
    server.shared.hosts()[0].mailbox.send(Message::Call(Box::new(hold)));
    std::thread::scope(|scope| {
        // Dropped if this fails, so that the host does not wait for ever.
        let go_on = go_on;
        let first = scope.spawn(|| resize("x", 2));
        while server.shared.hosts()[0].changing.is_empty() {
            std::thread::yield_now();
        }
        let busy = "volume \"x\": it is being resized right now; ask again when that is done";
        assert_eq!(resize("x", 3), Err(busy.to_owned()));
        let (volume, mode) = ("x".to_owned(), "none".to_owned());
        let recached = server.command(Request::SetCache { volume, mode });
        assert_eq!(recached.unwrap_err().to_string(), busy);
        assert_eq!(resize("y", 2).unwrap()["size"], "2 MiB");
        go_on.send(()).unwrap();
        assert_eq!(first.join().unwrap().unwrap()["size"], "2 MiB");
    });
    assert_eq!(resize("x", 3).unwrap()["size"], "3 MiB");
    assert_eq!(server.status().hosts[0].volumes[0].size_bytes, 3 << 20);
    server.stop().unwrap();
}

#[test]
fn polling_needs_a_core_for_each_host_and_one_more() {
    for (hosts, cores) in [(1, 2), (1, 8), (7, 8)] {
        cores_for(hosts, cores).unwrap();
    }
    for (hosts, cores) in [(1, 1), (2, 2), (8, 8)] {
        let error = cores_for(hosts, cores).unwrap_err();
        assert!(error.is_input(), "{error}");
    }
    assert_eq!(
        cores_for(2, 1).unwrap_err().to_string(),
        "polling needs a core for each host and one more for the clients: 2 hosts, 1 core; leave \
         out --poll"
    );
    check_cores(Waiting::Early, usize::MAX).unwrap();
    check_cores(Waiting::Late, usize::MAX).unwrap();
    check_cores(Waiting::Poll, usize::MAX).unwrap_err();
}
