//! Measures the pause of a freeze under load: p50, p99 and maximum over many freezes.
//!
//! ```sh
//! cargo run --release -p weir-server --example freeze_pause -- [FOLDER]
//! ```
//!
//! Four volumes are written to at random, by a client each with 32 requests of 8 KiB in
//! flight, and all of them are frozen at one instant again and again. The pause is the time
//! in which the host's thread answers nobody. The slowest write is a client's, from its
//! request to its reply, and has waits of all kinds in it: the first line of each pair is the
//! same load without freezes. The data is in FOLDER, by default the one for temporary files.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "prints what it measures with a clock"
)]

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use weir_catalog::Catalog;
use weir_client::Connection;
use weir_layout::Layout;
use weir_proto::Uri;
use weir_server::control::{Conversation, FreezeAnswer, Purpose, Request};
use weir_server::{Address, Options, Server};

type Failure = Box<dyn std::error::Error>;

const FREEZES: usize = 200;
const DEPTH: u64 = 32;
const BLOCK: usize = 8 << 10;
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// The part of each volume that is written to.
const RANGE: u64 = 256 << 20;

fn main() -> Result<(), Failure> {
    let folder = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, Into::into);
    println!(
        "{:<24} {:>9} {:>9} {:>9} {:>13} {:>9}",
        "", "p50", "p99", "max", "slowest write", "IOPS"
    );
    let volume = |host: &str, cache: &str, name: &&str| {
        format!("[[volume]]\nname = \"{name}\"\n{host}unlimited = true\nsize = \"1 GiB\"\n{cache}")
    };
    let one: String = NAMES.iter().map(|name| volume("", "", name)).collect();
    measure("memory", &one, None, &folder)?;
    measure("files", &one, Some(()), &folder)?;
    let cache = "cache = \"read-write\"\n";
    let cached: String =
        "[host]\nunlimited = true\ncache = { size = \"1 GiB\", writeback_after = \"1h\" }\n"
            .to_owned()
            + &NAMES.iter().map(|name| volume("", cache, name)).collect::<String>();
    measure("files, read-write cache", &cached, Some(()), &folder)?;
    let hosts =
        ["one", "two"].map(|name| format!("[[host]]\nname = \"{name}\"\nunlimited = true\n"));
    let on = ["host = \"one\"\n", "host = \"two\"\n"];
    let two = NAMES.iter().zip(on.into_iter().cycle()).map(|(name, host)| volume(host, "", name));
    let two = hosts.concat() + &two.collect::<String>();
    measure("files, two hosts", &two, Some(()), &folder)
}

/// Measures a layout without freezes and with them.
fn measure(name: &str, layout: &str, kept: Option<()>, folder: &Path) -> Result<(), Failure> {
    measure_load("no freezes", layout, (kept, folder), false)?;
    measure_load(name, layout, (kept, folder), true)
}

fn measure_load(
    name: &str,
    layout: &str,
    (kept, folder): (Option<()>, &Path),
    is_frozen: bool,
) -> Result<(), Failure> {
    let place = tempfile::tempdir_in(folder)?;
    let (socket, control) = (place.path().join("nbd.sock"), place.path().join("control.sock"));
    let options = Options {
        data: kept.map(|()| place.path().join("data")),
        listen: vec![Address::Unix(socket.clone())],
        control: Some(control.clone()),
        ..Options::default()
    };
    let layout = Layout::parse("layout.toml", layout, &Catalog::builtin())?;
    let server = Server::start(layout, None, &options)?;
    let (stop, slowest, written) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let begun = Instant::now();
    let pauses = std::thread::scope(|scope| -> Result<Vec<u64>, Failure> {
        let loads: Vec<_> = NAMES
            .iter()
            .zip(1..)
            .map(|(name, seed)| {
                let (stop, slowest, written, socket) = (&stop, &slowest, &written, &socket);
                scope.spawn(move || load(&uri(socket, name), seed, stop, slowest, written))
            })
            .collect();
        let pauses = freezes(&control, is_frozen);
        stop.store(true, Ordering::Release);
        for load in loads {
            load.join().map_err(|_| "a load panicked")?.map_err(|error| error.to_string())?;
        }
        pauses
    });
    let (mut pauses, seconds) = (pauses?, begun.elapsed().as_secs_f64());
    pauses.sort_unstable();
    let at = |part: usize| match pauses.len() {
        0 => "-".to_owned(),
        count => micros(pauses[(count - 1) * part / 100]),
    };
    let rate = written.load(Ordering::Relaxed).to_string().parse::<f64>()? / seconds;
    let slowest = micros(slowest.load(Ordering::Relaxed));
    println!("{name:<24} {:>9} {:>9} {:>9} {slowest:>13} {rate:>9.0}", at(50), at(99), at(100));
    server.stop()?;
    Ok(())
}

fn micros(nanos: u64) -> String {
    format!("{}.{} us", nanos / 1000, nanos / 100 % 10)
}

fn uri(socket: &Path, name: &str) -> Uri {
    let server = weir_proto::uri::Server::Unix { socket: socket.display().to_string() };
    Uri { server, tls: None, export: name.to_owned() }
}

/// Freezes everything again and again, for a few milliseconds each, or only waits as long.
fn freezes(control: &Path, is_frozen: bool) -> Result<Vec<u64>, Failure> {
    let mut conversation = Conversation::open(control)?;
    let mut pauses = Vec::new();
    for _ in 0..FREEZES {
        std::thread::sleep(Duration::from_millis(20));
        if !is_frozen {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        }
        let (exports, backup) = (Vec::new(), "bench".to_owned());
        let request = Request::Freeze { exports, purpose: Purpose::Full, backup };
        let frozen: FreezeAnswer = conversation.ask_for(&request)?;
        pauses.push(frozen.pause_ns);
        std::thread::sleep(Duration::from_millis(5));
        conversation.ask(&Request::Release { freeze: frozen.freeze, completed: true })?;
    }
    Ok(pauses)
}

/// Keeps requests in flight until it is told to stop.
fn load(
    uri: &Uri,
    seed: u64,
    stop: &AtomicBool,
    slowest: &AtomicU64,
    written: &AtomicU64,
) -> Result<(), weir_client::ClientError> {
    let mut client = Connection::open(uri)?;
    let data = vec![7; BLOCK];
    let mut random = seed;
    let mut sent = vec![Instant::now(); 32];
    let mut next = |client: &mut Connection, cookie: u64| {
        // Marsaglia's xorshift64.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        client.queue_write(cookie, (random % (RANGE >> 13)) << 13, &data, false)
    };
    for cookie in 0..DEPTH {
        next(&mut client, cookie)?;
    }
    while client.in_flight() > 0 {
        client.flush_out()?;
        let mut done = Vec::new();
        client.receive(|cookie, _| done.push(cookie))?;
        for cookie in done {
            let place = &mut sent[usize::try_from(cookie).unwrap_or(0)];
            let took = place.elapsed().as_nanos();
            slowest.fetch_max(u64::try_from(took).unwrap_or(u64::MAX), Ordering::Relaxed);
            written.fetch_add(1, Ordering::Relaxed);
            if !stop.load(Ordering::Acquire) {
                *place = Instant::now();
                next(&mut client, cookie)?;
            }
        }
    }
    Ok(())
}
