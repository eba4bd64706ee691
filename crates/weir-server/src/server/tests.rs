use super::*;
use std::sync::mpsc::channel;

/// What a defect of a host comes to: it is told, the others go on, and the server
/// does not end as if all were well.
#[test]
fn a_host_that_panics_is_told_and_fails_the_stop() {
    let text = r#"
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
    let layout = Layout::parse("layout.toml", text, &weir_catalog::Catalog::builtin()).unwrap();
    let (sender, notices) = channel();
    let server = Server::start(
        layout,
        None,
        &Options {
            listen: vec!["tcp:127.0.0.1:0".parse().unwrap()],
            notices: Listening::with(move |notice| sender.send(notice).unwrap()),
            ..Options::default()
        },
    )
    .unwrap();
    let mailbox = server.shared.hosts()[0].mailbox.clone();
    assert!(mailbox.ask(|_, _| panic!("a defect, made by the test")).is_none());
    let told = notices.recv().unwrap();
    assert!(matches!(&told, Notice::HostEnded { host, .. } if host == "a"), "{told}");
    let status = server.status();
    assert_eq!(status.hosts.iter().map(|h| h.name.as_str()).collect::<Vec<_>>(), ["b"]);
    assert_eq!(server.stop().unwrap_err().to_string(), "asking a host's thread: it has ended");
}
