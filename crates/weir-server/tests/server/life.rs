//! Starting, changing while it runs, stopping, and starting again.

use crate::common::{Place, Raw, request, unlimited};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use weir_client::Connection;
use weir_proto::{Command, CommandFlags, Request};
use weir_server::ServerError;
use weir_server::control::Request as Control;
use weir_units::Bytes;

/// The message of a server that does not start.
#[track_caller]
fn refused(result: Result<weir_server::Server, ServerError>) -> String {
    match result {
        Ok(_) => panic!("it started"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn flushed_writes_survive_a_restart() {
    let place = Place::new();
    let layout = unlimited("1 GiB", &["a", "b"]);
    let server = place.serve_kept(&layout);
    let mut client = place.open("a");
    client.write(123_456_789, b"kept").expect("a write");
    client.flush().expect("a flush");
    drop(client);
    server.stop().expect("a clean end");

    let server = place.serve_kept(&layout);
    let mut found = [0; 6];
    place.open("a").read(123_456_788, &mut found).expect("a read");
    assert_eq!(&found, b"\0kept\0");
    place.open("b").read(123_456_788, &mut found).expect("a read");
    assert_eq!(found, [0; 6]);
    server.stop().expect("a clean end");
}

#[test]
fn a_second_server_is_told_who_has_the_data() {
    let place = Place::new();
    let layout = unlimited("1 MiB", &["v"]);
    let _first = place.serve_kept(&layout);
    let other = Place::new();
    let options = weir_server::Options { data: Some(place.data()), ..other.options() };
    let expect = format!(
        "data directory {} is in use by process {} (weir serve at unix:{}); stop that process or \
         choose another data directory",
        place.data().display(),
        std::process::id(),
        place.socket().display()
    );
    assert_eq!(refused(crate::common::start(&layout, &options)), expect);
    assert!(!other.socket().exists(), "it leaves nothing behind");
    assert_eq!(place.open("v").size(), Bytes::mib(1));
}

#[test]
fn a_socket_of_a_living_server_stays_and_one_of_a_dead_is_taken() {
    let place = Place::new();
    let layout = unlimited("1 MiB", &["v"]);
    let first = place.serve(&layout);
    let in_use = format!(
        "{} is in use by a running server; stop it or give another path",
        place.socket().display()
    );
    assert_eq!(refused(crate::common::start(&layout, &place.options())), in_use);
    let other = Place::new();
    let options =
        weir_server::Options { control: Some(place.path("control.sock")), ..other.options() };
    let in_use = format!(
        "{} is in use by a running server; stop it or give another path",
        place.path("control.sock").display()
    );
    assert_eq!(refused(crate::common::start(&layout, &options)), in_use);
    assert_eq!(place.open("v").size(), Bytes::mib(1), "the first goes on");
    first.stop().expect("a clean end");

    // As a killed server leaves it.
    drop(UnixListener::bind(place.socket()).expect("a socket"));
    place.serve(&layout).stop().expect("a clean end");
    // A file that is no socket is not removed.
    fs::write(place.socket(), "mine").expect("a file");
    let expect = format!(
        "cannot listen on unix:{}: this path exists and is not a socket; give another",
        place.socket().display()
    );
    assert_eq!(refused(crate::common::start(&layout, &place.options())), expect);
    assert_eq!(fs::read_to_string(place.socket()).expect("the file"), "mine");
}

#[test]
fn a_server_stops_even_if_its_sockets_were_removed() {
    let place = Place::new();
    let server = place.serve(&unlimited("1 MiB", &["v"]));
    fs::remove_file(place.socket()).expect("the socket");
    fs::remove_file(place.path("control.sock")).expect("the socket");
    server.stop().expect("a clean end");
}

#[test]
fn data_of_another_version_is_not_touched() {
    let place = Place::new();
    fs::create_dir(place.data()).expect("a folder");
    fs::write(place.data().join("format"), "weir data 2\n").expect("a file");
    let layout = unlimited("1 MiB", &["v"]);
    let expect = format!(
        "{}/format has format \"weir data 2\", this release reads \"weir data 1\"; use the release \
         that wrote it, or an empty directory",
        place.data().display()
    );
    assert_eq!(refused(place.try_kept(&layout)), expect);
    fs::write(place.data().join("format"), "something else\n").expect("a file");
    let expect = format!(
        "{} is not a Weir data directory and not empty: it holds \"format\"; choose an empty \
         directory, or one that Weir created",
        place.data().display()
    );
    assert_eq!(refused(place.try_kept(&layout)), expect);
}

#[test]
fn a_damaged_volume_is_named_and_the_others_are_served() {
    let place = Place::new();
    let layout = format!(
        "{}[[stripe]]\nname = \"s\"\nunit = \"64 KiB\"\nvolumes = {{ count = 2, unlimited = true, \
         size = \"1 MiB\" }}\n",
        unlimited("1 MiB", &["bad", "good"])
    );
    place.serve_kept(&layout).stop().expect("a clean end");
    let meta = |name: &str| place.data().join("volumes").join(name).join("meta.json");
    for name in ["bad", "s-1"] {
        let text = fs::read_to_string(meta(name)).expect("its metadata");
        fs::write(meta(name), text.replace("1 MiB", "9 MiB")).expect("a damage");
    }

    let server = place.serve_kept(&layout);
    let reasons: Vec<(&str, &str)> =
        server.refused().iter().map(|r| (r.name.as_str(), r.reason.as_str())).collect();
    let names: Vec<&str> = reasons.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["bad", "s-1", "s"]);
    assert_eq!(reasons[2].1, "its volume \"s-1\" is not served");
    let start = format!("{} was changed: its checksum says ", meta("bad").display());
    let end = "; restore the file from a copy; the volume's bytes in data/ beside it are untouched";
    assert!(reasons[0].1.starts_with(&start) && reasons[0].1.ends_with(end), "{}", reasons[0].1);
    assert_eq!(place.open("good").size(), Bytes::mib(1));
    assert!(Connection::open(&place.uri("bad")).is_err());
    assert_eq!(server.status().refused.len(), 3);

    let resize = Control::Resize { volume: "bad".to_owned(), size: Bytes::mib(2) };
    let answer = place.ask(&resize).expect_err("it is not served");
    assert_eq!(answer, format!("volume \"bad\": it is not served: {}", reasons[0].1));
    server.stop().expect("a clean end");

    let text = fs::read_to_string(meta("good")).expect("its metadata");
    fs::write(meta("good"), &text[..20]).expect("a damage");
    let message = refused(place.try_kept(&layout));
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 5, "{message}");
    assert_eq!(lines[0], "no volume can be served");
    assert!(lines[2].starts_with("  good: ") && lines[2].contains("cannot be read"), "{message}");
}

#[test]
fn an_edited_layout_decides_unless_data_would_be_lost_or_garbled() {
    let place = Place::new();
    let volume = |size: &str| unlimited(size, &["v"]);
    let stripe = |unit: &str, count: u32| {
        format!(
            "[[stripe]]\nname = \"s\"\nunit = \"{unit}\"\nvolumes = {{ count = {count}, unlimited \
             = true, size = \"1 MiB\" }}\n"
        )
    };
    place.serve_kept(&(volume("4 MiB") + &stripe("64 KiB", 2))).stop().expect("a clean end");
    // Nothing is written yet, so everything may change.
    let server = place.serve_kept(&(volume("2 MiB") + &stripe("32 KiB", 3)));
    assert_eq!(server.refused(), []);
    assert_eq!(place.open("v").size(), Bytes::mib(2));
    place.open("v").write((1 << 20) + 5, b"here").expect("a write");
    let mut wide = place.open("s");
    (0..3).for_each(|n| wide.write(n * 32_768, &[1; 512]).expect("a write"));
    drop(wide);
    server.stop().expect("a clean end");

    let server =
        place.serve_kept(&(volume("1 MiB") + &stripe("64 KiB", 3) + &unlimited("1 MiB", &["w"])));
    let reasons: Vec<(&str, &str)> =
        server.refused().iter().map(|r| (r.name.as_str(), r.reason.as_str())).collect();
    let garbled = "the layout now makes it column 1 of 3, unit 64 KiB, but its \
                   data was written as column 1 of 3, unit 32 KiB; restore the layout, or copy the \
                   data to another volume first";
    let lost = "the layout now says 1 MiB, but there is data beyond that in its 2 \
                MiB; declare 2 MiB, or trim or move the data before shrinking";
    assert_eq!(reasons[0], ("v", lost));
    assert_eq!(reasons[1], ("s-0", garbled));
    assert_eq!(reasons.len(), 5);
    server.stop().expect("a clean end");

    let server = place.serve_kept(&(volume("2 MiB") + &stripe("32 KiB", 3)));
    assert_eq!(server.refused(), []);
    let mut found = [0; 4];
    place.open("v").read((1 << 20) + 5, &mut found).expect("a read");
    assert_eq!(&found, b"here");
    server.stop().expect("a clean end");
}

const P30: &str = "edition = \"azure-premium-2015\"\n[host]\nunlimited = true\n\
                   cache = { size = \"64 MiB\" }\n[[volume]]\nname = \"v\"\ntier = \"P30\"\n";

#[test]
fn changes_by_the_control_socket_outlive_a_restart_until_the_layout_says_otherwise() {
    let place = Place::new();
    let server = place.serve_kept(P30);
    let resize = Control::Resize { volume: "v".to_owned(), size: Bytes::gib(300) };
    let set = Control::SetCache { volume: "v".to_owned(), mode: "read-only".to_owned() };
    assert_eq!(place.ask(&resize).expect("it is empty")["tier"], "P20");
    assert_eq!(place.ask(&set).expect("there is a cache")["cache"], "read-only");
    server.stop().expect("a clean end");

    let now = |server: &weir_server::Server| {
        let volume = server.status().hosts[0].volumes[0].clone();
        (volume.tier.unwrap_or_default(), volume.size_bytes >> 30, volume.limit_iops, volume.cache)
    };
    let server = place.serve_kept(P30);
    assert_eq!(now(&server), ("P20".to_owned(), 300, Some(2300), "read-only".to_owned()));
    server.stop().expect("a clean end");

    let edited = P30.replace("tier = \"P30\"", "tier = \"P10\"\ncache = \"read-write\"");
    let server = place.serve_kept(&edited);
    assert_eq!(now(&server), ("P10".to_owned(), 128, Some(500), "read-write".to_owned()));
    server.stop().expect("a clean end");
    // A host without a cache: the mode that was set once is no hindrance.
    let server = place.serve_kept(&P30.replace("cache = { size = \"64 MiB\" }\n", ""));
    assert_eq!(server.refused(), []);
    server.stop().expect("a clean end");
}

/// Writes blocks that tell their place and round and reads them back, until told
/// to stop; reports each round. Returns what every block holds.
fn load(mut client: Connection, stop: &AtomicBool, rounds: &SyncSender<()>) -> Vec<u64> {
    const BLOCKS: u64 = 256;
    let mut held = vec![0; 256];
    for round in 1.. {
        let content = |block: u64| (round << 16 | block).to_le_bytes().repeat(512);
        let chosen: Vec<u64> = (0..64).map(|n| (n * 37 + round * 11) % BLOCKS).collect();
        for block in &chosen {
            client
                .queue_write(0, block * 4096, &content(*block), *block % 16 == 0)
                .expect("queued");
        }
        drain(&mut client, |_, answer| assert!(answer.is_empty()));
        for block in &chosen {
            held[usize::try_from(*block).expect("small")] = round << 16 | block;
            client.queue_read(*block, block * 4096, 4096).expect("queued");
        }
        drain(&mut client, |block, answer| assert!(answer == content(block), "block {block}"));
        // The server may have ended.
        let _ = rounds.try_send(());
        if stop.load(Ordering::Acquire) {
            return held;
        }
    }
    held
}

fn drain(client: &mut Connection, mut check: impl FnMut(u64, &[u8])) {
    client.flush_out().expect("sent");
    while client.in_flight() > 0 {
        client.receive(|cookie, answer| check(cookie, answer.expect("no error"))).expect("replies");
    }
}

/// Waits until two rounds have begun and ended, or so: the load is running.
fn under_load(rounds: &Receiver<()>) {
    (0..2).for_each(|_| rounds.recv().expect("the load goes on"));
}

#[test]
fn resizes_and_cache_changes_under_load_lose_nothing() {
    let place = Place::new();
    let server = place.serve_kept(P30);
    let stop = AtomicBool::new(false);
    let (sender, rounds) = sync_channel(1);
    let held = std::thread::scope(|scope| {
        let client = place.open("v");
        let loading = scope.spawn(|| load(client, &stop, &sender));
        for (gib, mode) in [
            (300, "read-write"),
            (1000, "none"),
            (64, "read-only"),
            (540, "read-write"),
            (1024, "none"),
        ] {
            under_load(&rounds);
            place
                .ask(&Control::Resize { volume: "v".to_owned(), size: Bytes::gib(gib) })
                .expect("room");
            assert_eq!(place.open("v").size(), Bytes::gib(gib), "a new client sees the new size");
            under_load(&rounds);
            let set = Control::SetCache { volume: "v".to_owned(), mode: mode.to_owned() };
            place.ask(&set).expect("a mode");
        }
        let refused = place.ask(&Control::Resize { volume: "v".to_owned(), size: Bytes::mib(1) });
        assert!(refused.is_ok(), "the load is within the first MiB: {refused:?}");
        let refused = place.ask(&Control::Resize { volume: "v".to_owned(), size: Bytes::kib(512) });
        let expect = "volume \"v\": there is data beyond 512 KiB; trim or move it before shrinking";
        assert_eq!(refused, Err(expect.to_owned()));
        stop.store(true, Ordering::Release);
        loading.join().expect("a load that went well")
    });
    server.stop().expect("a clean end");
    let server = place.serve_kept(P30);
    let mut client = place.open("v");
    for (block, stamp) in (0..).zip(held) {
        let mut found = vec![0; 4096];
        client.read(block * 4096, &mut found).expect("a read");
        assert!(found == stamp.to_le_bytes().repeat(512), "block {block}");
    }
    drop(client);
    server.stop().expect("a clean end");
}

#[test]
fn stopping_lifts_the_limits_and_answers_what_is_under_way() {
    let place = Place::new();
    let slow = "[[volume]]\nname = \"v\"\nsize = \"1 MiB\"\nlimits = { iops = 1 }\n";
    let server = place.serve_kept(slow);
    let mut raw = Raw::open(&place.socket(), "v");
    // At one per second these would take minutes.
    let count = 200_u8;
    for n in 0..count {
        let mut bytes = Vec::new();
        let write = Request::new(Command::Write, n.into(), u64::from(n) * 512, 512);
        write.with(CommandFlags::FUA).encode(&mut bytes);
        bytes.extend([n; 512]);
        raw.send(&bytes);
    }
    assert_eq!(raw.answer(), Some((0, Ok(vec![]))), "they have arrived");
    server.stop().expect("a clean end");
    let answered =
        std::iter::from_fn(|| raw.answer()).inspect(|(_, answer)| assert!(answer.is_ok()));
    let answered = answered.count();
    let server = place.serve_kept(&slow.replace("iops = 1 ", "iops = 10000 "));
    let mut client = place.open("v");
    for n in 0..=u8::try_from(answered).expect("at most 199") {
        let mut found = [0; 512];
        client.read(u64::from(n) * 512, &mut found).expect("a read");
        assert_eq!(found, [n; 512]);
    }
    // The kernel had handed over more than the first when it was answered.
    assert!(answered > 0);
    drop(client);
    server.stop().expect("a clean end");
}

#[test]
fn a_client_that_reads_no_replies_cannot_keep_a_server_from_stopping() {
    let place = Place::new();
    let server = place.serve(&unlimited("4 MiB", &["v"]));
    let deaf = Raw::open(&place.socket(), "v");
    let reads = (0..100).flat_map(|n| request(Command::Read, n, 0, 4 << 20));
    deaf.send(&reads.collect::<Vec<u8>>());
    let mut other = place.open("v");
    other.write(0, b"x").expect("the reads before it are under way");
    server.stop().expect("a clean end");
}

#[test]
fn a_crashed_host_cuts_its_clients_off_and_loses_its_cache() {
    let place = Place::new();
    // Nothing is written back but by a flush.
    let layout = P30.replace("\"64 MiB\" }", "\"64 MiB\", writeback_after = \"1h\" }")
        + "cache = \"read-write\"\n";
    let server = place.serve_kept(&layout);
    let mut client = place.open("v");
    client.write(0, &[1; 4096]).expect("a write");
    client.flush().expect("a flush");
    client.write(0, &[2; 4096]).expect("a write");
    client.write(8192, &[2; 4096]).expect("a write");
    let lost = place.ask(&Control::Crash { host: "host".to_owned() }).expect("a crash");
    assert_eq!(lost["lost_bytes"], 8192);
    assert!(client.read(0, &mut [0; 512]).is_err(), "its connection is gone");
    let mut found = vec![0; 12_288];
    place.open("v").read(0, &mut found).expect("a read");
    assert!(found[..4096] == [1; 4096] && found[4096..].iter().all(|byte| *byte == 0));
    let unknown = place.ask(&Control::Crash { host: "x".to_owned() });
    assert_eq!(unknown, Err("there is no host \"x\"; there is host".to_owned()));
    server.stop().expect("a clean end");
}

#[test]
fn the_control_socket_answers_nonsense_with_a_sentence() {
    let place = Place::new();
    let _server = place.serve(&unlimited("1 MiB", &["v"]));
    let stream = UnixStream::connect(place.path("control.sock")).expect("a server");
    let mut answers = BufReader::new(&stream);
    let mut check = |line: &str, expect: &str| {
        (&stream).write_all(line.as_bytes()).expect("it listens");
        let mut answer = String::new();
        answers.read_line(&mut answer).expect("an answer");
        assert_eq!(answer.trim_end(), expect);
    };
    check("hello\n", r#"{"refused":"not a request: expected value at line 1 column 1"}"#);
    check(
        "{\"command\":\"fly\"}\n",
        "{\"refused\":\"not a request: unknown variant `fly`, expected one of `status`, `resize`, `create`, `delete`, `set-cache`, `set-tier`, `set-rates`, `set-credits`, `set-host-credits`, `crash`, `warm`, `freeze`, `changed`, `read-done`, `record`, `release` at line 1 column 16\"}",
    );
    check(
        "{\"command\":\"resize\",\"volume\":\"w\",\"size\":\"1 GiB\"}\n",
        r#"{"refused":"there is no volume \"w\"; there is v"}"#,
    );
    check(
        "{\"command\":\"set-cache\",\"volume\":\"v\",\"mode\":\"fast\"}\n",
        r#"{"refused":"volume \"v\": \"fast\" is not a cache mode; use none, read-only or read-write"}"#,
    );
    check(
        "{\"command\":\"set-cache\",\"volume\":\"v\",\"mode\":\"read-only\"}\n",
        r#"{"refused":"volume \"v\": no host cache is possible: host \"host\" has no cache (give it cache = { size = \"..\" }); set its cache to none"}"#,
    );
    check(
        "{\"command\":\"warm\",\"export\":\"v\",\"offset\":0,\"len\":1}\n",
        r#"{"refused":"export \"v\": its volumes have no host cache, so there is nothing to warm; set cache = \"read-only\" or \"read-write\" for one of them"}"#,
    );
}

#[test]
fn a_warm_up_says_how_much_of_it_the_cache_holds() {
    let place = Place::new();
    let cached = "[host]\nunlimited = true\ncache = { size = \"1 MiB\" }\n".to_owned()
        + &unlimited("4 MiB", &["v"])
        + "cache = \"read-only\"\n";
    let server = place.serve(&cached);
    let warm = |offset, len| place.ask(&Control::Warm { export: "v".to_owned(), offset, len });
    for (offset, len) in [(0, u64::MAX), (u64::MAX, 1), (4 << 20, 1)] {
        let beyond = "export \"v\" has 4 MiB; the range reaches beyond its end";
        assert_eq!(warm(offset, len), Err(beyond.to_owned()));
    }
    let resident = || server.status().hosts[0].cache_resident_bytes;
    assert_eq!(warm(0, 512 << 10).expect("a range")["warmed_bytes"], 512 << 10);
    assert_eq!(resident(), 512 << 10);
    assert_eq!(warm(0, 4 << 20).expect("a range")["warmed_bytes"], 1 << 20);
    assert_eq!(resident(), 1 << 20);
}
