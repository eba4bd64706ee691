//! `weir serve` from its start to its end, and what it takes of the machine.

use crate::common::{Place, Server, run};
use crate::tools::{self, needs};
use rustix::process::Signal;
use std::fmt::Write;
use std::fs;
use weir_client::ClientError;
use weir_client::Connection;

const LAYOUT: &str = "[[volume]]\nname = \"v\"\nunlimited = true\nsize = \"64 MiB\"\n";

#[test]
fn it_says_where_to_connect_and_ends_when_told_to() {
    for signal in [Signal::TERM, Signal::INT] {
        let place = Place::new();
        let server = place.serve(LAYOUT, &[]);
        let expect = "the data is in memory and lost at exit; --data DIR keeps it\nready; control \
                      socket control.sock\n";
        assert_eq!(server.said, expect);
        server.signal(signal);
        let (status, said) = server.wait();
        assert_eq!(
            said,
            "stopping: completing the requests in flight; press Ctrl-C again to stop at once\n"
        );
        assert_eq!(status.code(), Some(0));
        assert!(!place.path("nbd.sock").exists() && !place.path("control.sock").exists());
    }
}

#[test]
fn the_uris_are_on_stdout() {
    let place = Place::new();
    place.file("layout.toml", LAYOUT);
    let mut serve =
        place.weir(&["serve", "layout.toml", "--nbd", "unix:nbd.sock", "--nbd", "tcp:127.0.0.1:0"]);
    serve.stdout(fs::File::create(place.path("uris")).expect("a file"));
    let server = Server::start(serve);
    let uris = fs::read_to_string(place.path("uris")).expect("text");
    let uris: Vec<&str> = uris.lines().collect();
    let socket = place.path("nbd.sock");
    assert_eq!(uris[0], format!("v nbd+unix:///v?socket={}", socket.display()));
    assert!(uris[1].starts_with("v nbd://127.0.0.1:"), "{}", uris[1]);
    for line in &uris {
        let uri = line.strip_prefix("v ").expect("the export's name").parse().expect("a URI");
        assert_eq!(Connection::open(&uri).expect("an export").size().get(), 64 << 20);
    }
    server.stop();
}

#[test]
fn data_outlives_the_server_and_so_does_a_resize() {
    let place = Place::new();
    let layout = "edition = \"azure-premium-2015\"\n[[volume]]\nname = \"v\"\nsize = \"100 GiB\"\n";
    let server = place.serve(layout, &["--data", "data"]);
    // The disk has 512 GiB for this once it is a P20.
    let (_, said, code) = run(place.weir(&["volume", "resize", "v", "500GiB"]));
    assert_eq!((said.as_str(), code), ("v has 500 GiB, now P20\n", Some(0)));
    let mut client = place.open("v");
    client.write(400 << 30, b"here").expect("a write");
    drop(client);
    // Not flushed: stopping does that.
    server.stop();
    let server = place.serve(layout, &["--data", "data"]);
    let (listed, _, _) = run(place.weir(&["volume", "list", "--output", "csv"]));
    assert!(listed.contains("v,host,P20,536870912000,2300,"), "{listed}");
    let mut found = [0; 4];
    place.open("v").read(400 << 30, &mut found).expect("a read");
    assert_eq!(&found, b"here");
    server.stop();
}

/// The lines on stderr that are about volume `name`.
fn said_of<'a>(server: &'a Server, name: &str) -> Vec<&'a str> {
    server.said.lines().filter(|line| line.starts_with(&format!("{name}: "))).collect()
}

#[test]
fn volumes_missing_in_the_layout_are_listed_at_the_start() {
    let place = Place::new();
    let layout = "[host]\nunlimited = true\ncache = { size = \"1 GiB\" }\n[[volume]]\n\
                  name = \"v\"\nunlimited = true\nsize = \"1 GiB\"\n";
    let server = place.serve(layout, &["--data", "data"]);
    assert_eq!(said_of(&server, "v"), [""; 0]);
    for change in [["resize", "v", "2GiB"], ["set-cache", "v", "read-only"]] {
        let (_, said, code) = run(place.weir(&[&["volume"][..], &change].concat()));
        assert_eq!(code, Some(0), "{said}");
    }
    server.stop();
    let server = place.serve(layout, &["--data", "data"]);
    let expect = [
        "v: has 2 GiB since a resize, but layout.toml says 1 GiB; write 2 GiB there, or undo the resize \
         with weir volume resize v 1GiB",
        "v: has cache read-only since a change, but layout.toml says none; write read-only there, \
         or undo the change with weir volume set-cache v none",
    ];
    assert_eq!(said_of(&server, "v"), expect);
    server.stop();
    let renamed = layout.replace("\"v\"", "\"w\"");
    let server = place.serve(&renamed, &["--data", "data"]);
    let expect = "v: data has data for it, but layout.toml does not name it, so the data is kept \
                  and not served; restore the old name of the volume, or remove data/volumes/v";
    assert_eq!(said_of(&server, "v"), [expect]);
    server.stop();
}

#[test]
fn a_warm_up_says_what_it_did_and_credits_are_shown() {
    let place = Place::new();
    let layout = "[host]\nunlimited = true\ncache = { size = \"4 MiB\" }\n[[volume]]\n\
                  name = \"v\"\nsize = \"64 MiB\"\ncache = \"read-only\"\n\
                  limits = { iops = 100, burst = { iops = 200, duration = \"10s\" } }\n";
    let server = place.serve(layout, &[]);
    let warm = |offset| {
        let warm = ["host", "warm", "v", "--length", "2MiB", "--offset", offset];
        run(place.weir(&warm))
    };
    let said = "2 MiB of v warmed; the cache of host host holds";
    assert_eq!(warm("0B").1, format!("{said} 2 MiB, 2 MiB more than before\n"));
    assert_eq!(warm("1MiB").1, format!("{said} 3 MiB, 1 MiB more than before\n"));
    let (_, said, _) = run(place.weir(&["host", "warm", "v", "--length", "16MiB"]));
    assert_eq!(
        said,
        "4 MiB of v warmed (the rest of the 16 MiB does not fit, or is on volumes without a cache); \
         the cache of host host holds 4 MiB, 1 MiB more than before\n"
    );
    let (status, _, _) = run(place.weir(&["status", "--interval", "1ms"]));
    assert!(
        status.contains(
            " bursting  IOPS now  then  MiB/s now  then  credits  at this rate\n \
             v              200   100          -     -  100.0 %  full\n"
        ),
        "{status}"
    );
    let (list, _, _) = run(place.weir(&["volume", "list", "-o", "json"]));
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!(list[0]["credits_operations"], 1_000);
    assert_eq!(list[0]["credits_bytes"], serde_json::Value::Null);
    server.stop();
}

#[test]
fn a_signal_under_load_ends_it_at_once() {
    let place = Place::new();
    // The requests in flight would take minutes at this rate.
    let slow = "[[volume]]\nname = \"v\"\nsize = \"64 MiB\"\nlimits = { iops = 1 }\n";
    let server = place.serve(slow, &["--data", "data"]);
    let mut client = place.open("v");
    for n in 0..500 {
        client.queue_write(n, n * 4096, &[1; 4096], true).expect("queued");
    }
    client.flush_out().expect("sent");
    let mut answered = Vec::new();
    while answered.is_empty() {
        client.receive(|cookie, answer| answered.push((cookie, answer.is_ok()))).expect("replies");
    }
    server.signal(Signal::TERM);
    let lost = loop {
        if let Err(lost) = client.receive(|cookie, answer| answered.push((cookie, answer.is_ok())))
        {
            break lost;
        }
    };
    assert!(matches!(lost, ClientError::Closed { .. }), "{lost}");
    assert_eq!(server.wait().0.code(), Some(0));
    assert!(answered.iter().all(|(_, ok)| *ok));

    let server = place.serve(LAYOUT, &["--data", "data"]);
    let mut client = place.open("v");
    for (n, _) in answered {
        let mut found = [0; 4096];
        client.read(n * 4096, &mut found).expect("a read");
        assert_eq!(found, [1; 4096]);
    }
    server.stop();
}

/// A line of `/proc/PID/status`, in KiB.
fn memory(server: &Server, line: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).expect("its status");
    let found = status.lines().find_map(|l| l.strip_prefix(line)).expect("the line");
    found.trim_matches(|c: char| !c.is_ascii_digit()).parse().expect("a number")
}

#[test]
fn a_thousand_idle_exports_take_little_memory() {
    let mut layout = String::new();
    for n in 0..1000 {
        write!(layout, "[[volume]]\nname = \"v{n}\"\nunlimited = true\nsize = \"32 TiB\"\n")
            .expect("text");
    }
    for args in [&[][..], &["--data", "data"]] {
        // Making a thousand volumes durable would be most of the time.
        let place = Place::without_a_disk();
        let server = place.serve(&layout, args);
        let started = memory(&server, "VmHWM:");
        let clients: Vec<Connection> = (0..200).map(|n| place.open(&format!("v{n}"))).collect();
        let mut last = place.open("v999");
        last.write((32 << 40) - 4096, &[1; 4096]).expect("a write");
        let connected = memory(&server, "VmHWM:");
        println!("1,000 exports: {started} KiB; with 200 clients {connected} KiB");
        assert!(connected < 100_000, "{started} KiB, then {connected} KiB");
        drop((clients, last));
        server.stop();
    }
}

#[test]
fn a_client_that_reads_no_replies_does_not_fill_the_memory() {
    let place = Place::new();
    let server = place.serve(LAYOUT, &[]);
    let mut deaf = place.open("v");
    // 16 GiB of replies.
    for n in 0..4000 {
        deaf.queue_read(n, 0, 4 << 20).expect("queued");
    }
    deaf.flush_out().expect("sent");
    let mut other = place.open("v");
    for _ in 0..10 {
        other.read(0, &mut [0; 4096]).expect("it is served all the same");
    }
    let most = memory(&server, "VmHWM:");
    println!("at most {most} KiB");
    assert!(most < 300_000, "{most} KiB");
    // It has gone, with what was kept for it.
    drop(deaf);
    other.read(0, &mut [0; 4096]).expect("a read");
    server.stop();
}

/// Serves from a file system of 8 MiB that only this server sees.
fn on_a_small_disk(place: &Place, layout: &str) -> Server {
    place.file("layout.toml", layout);
    fs::create_dir(place.path("small")).expect("a folder");
    let weir =
        place.weir(&["serve", "layout.toml", "--nbd", "unix:nbd.sock", "--data", "small/data"]);
    let script = "mount -t tmpfs -o size=8m none small && exec \"$@\"";
    let mut command = std::process::Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    command.arg(weir.get_program()).args(weir.get_args()).current_dir(place.dir());
    command.env("WEIR_CONTROL", "control.sock");
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
    Server::start(command)
}

fn refused(result: Result<(), ClientError>) -> String {
    result.expect_err("the disk is full").to_string()
}

#[test]
fn a_full_disk_is_said_and_nothing_else_is_lost() {
    needs!("unshare", "mount");
    let place = Place::new();
    let layout = format!(
        "[host]\nunlimited = true\ncache = {{ size = \"64 MiB\", dirty_limit = \"32 MiB\", \
         writeback_after = \"1h\" }}\n{LAYOUT}[[volume]]\nname = \"rw\"\nunlimited = true\n\
         size = \"64 MiB\"\ncache = \"read-write\"\n"
    );
    let server = on_a_small_disk(&place, &layout);
    let (mut plain, mut cached) = (place.open("v"), place.open("rw"));
    cached.write(0, &[1; 4096]).expect("a write");
    cached.flush().expect("there is space");
    let block = |n: u64| n.to_le_bytes().repeat(8192);
    let full = (0..1024).find_map(|n| Some((n, plain.write(n << 16, &block(n)).err()?)));
    let (count, error) = full.expect("8 MiB do not hold 64");
    assert_eq!(error.to_string(), "the server answered ENOSPC");
    assert!((100..128).contains(&count), "{count} of 64 KiB");

    // A cache takes what the disk does not, and the flush says so, again and again.
    cached.write(1 << 20, &[2; 1 << 20]).expect("a write");
    for _ in 0..2 {
        assert_eq!(refused(cached.flush()), "the server answered ENOSPC");
    }
    let mut found = vec![0; 65_536];
    for n in 0..count {
        plain.read(n << 16, &mut found).expect("a read");
        assert!(found == block(n), "block {n}");
    }
    cached.read(0, &mut found[..4096]).expect("a read");
    assert_eq!(found[..4096], [1; 4096]);

    // Room again: what was owed is written, and the server goes on.
    plain.queue_trim(0, 0, 4 << 20).expect("queued");
    plain.flush_out().expect("sent");
    plain.receive(|_, answer| assert!(answer.is_ok())).expect("a reply");
    cached.flush().expect("there is space");
    plain.write(0, &block(7)).expect("there is space");
    plain.flush().expect("there is space");
    drop((plain, cached));
    server.stop_after(
        "weir: volume \"v\": no space left: cannot write small/data/volumes/v/data/00000; such writes \
         fail with ENOSPC until there is space\nweir: volume \"rw\": no space left: cannot write small/data/volumes/rw/data/00000; the \
         data that its cache has acknowledged stays in memory, and flushes fail, until there is \
         space\nweir: volume \"rw\": all data that was kept in memory is stored now\n",
    );
}

#[test]
fn credits_and_tiers_are_changed_while_it_runs() {
    let place = Place::new();
    let layout = "edition = \"azure-now\"\n[[volume]]\nname = \"v\"\ntier = \"P10\"\n\
                  credits = \"50 %\"\n[[volume]]\nname = \"w\"\ntier = \"P30\"\n";
    let server = place.serve(layout, &[]);
    let volume = |args: &[&str]| {
        let (stdout, stderr, code) = run(place.weir(&[&["volume"], args].concat()));
        assert_eq!(stdout, "");
        (stderr, code)
    };
    let reading = || {
        let (json, stderr, _) = run(place.weir(&["status", "--interval", "1ms", "-o", "json"]));
        assert_eq!(stderr, "");
        serde_json::from_str::<serde_json::Value>(&json).expect("JSON")
    };
    // A bucket of 5.4 million that earns 500 a second is not full for 90 minutes.
    let before = reading();
    let own = &before["hosts"][0]["volumes"][0];
    let credits = own["credits_operations"].as_u64();
    assert!((2_700_000..5_400_000).contains(&credits.expect("credits")), "{credits:?}");
    assert_eq!(own["full_operations"].as_u64(), Some(5_400_000));
    assert_eq!(before["rates"]["v"]["iops_now"].as_u64(), Some(3_500));
    assert_eq!(
        volume(&["set-credits", "v", "100%"]),
        ("v has 100 % of its credits: 5,400,000 operations and 120,162 MiB\n".into(), Some(0))
    );
    let now = reading();
    assert_eq!(now["hosts"][0]["volumes"][0]["credits_operations"].as_u64(), Some(5_400_000));
    let refused = "weir: volume \"w\": it has no burst credits (P30); weir status lists those that \
                   have\n";
    assert_eq!(volume(&["set-credits", "w", "0%"]), (refused.into(), Some(2)));
    let (said, code) = volume(&["set-credits", "v", "120%"]);
    assert!(code == Some(2) && said.contains("\"120%\" is above the maximum of 100 %"), "{said}");
    assert_eq!(volume(&["set-tier", "v", "P40"]), ("v has the limits of P40\n".into(), Some(0)));
    assert_eq!(reading()["rates"]["v"]["iops_now"].as_u64(), Some(7_500));
    let (said, code) = volume(&["set-tier", "v", "P4"]);
    assert!(code == Some(2) && said.contains("is more than P4 holds"), "{said}");
    let (_, said, code) = run(place.weir(&["host", "set-credits", "host", "0%"]));
    assert_eq!((said.as_str(), code), ("weir: host \"host\" has no burst credits\n", Some(2)));
    server.stop();
}
