//! Latency as clients see it beside the latency of the layout, for media of 0.3, 1 and 5 ms at
//! depths 1, 4 and 16, of one server in three ways of waiting: sleeping until a deadline, waking up
//! early (the default) and polling. fio's nbd engine reads 4 KiB at random over a Unix socket.
//!
//! No server can subtract the round trip: two switches between client and server, and the client's
//! own wake-up. nbdkit without any delay shows what it takes, and with its delay filter what another
//! server makes of the same media (whole milliseconds only). The figures of a round are taken in turn. Errors are those of the
//! mean latency without the round trip of the same round.
//!
//! ```console
//! $ cargo run --release -p weir-bench --bin latency -- [ROUNDS [SECONDS [busy]]]
//! ```
//!
//! A run is repeated if other programs use more than a tenth of a core meanwhile, except with `busy`.
//!
//! Needs fio and nbdkit (Debian: fio nbdkit).

#![expect(clippy::print_stdout, reason = "it is a program that prints a table")]
#![expect(clippy::print_stderr, reason = "it says what it is doing")]

use std::path::Path;
use std::process::Command;
use weir_bench::peer::Peer;
use weir_bench::quiet::quietly;
use weir_bench::{Failure, fio, median, range};
use weir_catalog::Catalog;
use weir_layout::Layout;
use weir_report::number::float;
use weir_report::table::{Listing, Table};
use weir_report::{Format, Report};
use weir_server::{Address, Options, Server, Waiting};
use weir_wall::process_time;

/// Media in microseconds.
const MEDIA: [u32; 3] = [300, 1_000, 5_000];
const DEPTHS: [u32; 3] = [1, 4, 16];
const WAYS: [Waiting; 3] = [Waiting::Late, Waiting::Early, Waiting::Poll];

/// Means of one run.
#[derive(Clone, Copy)]
struct Seen {
    mean_us: f64,
    /// Processor time of the server per request; zero for other programs.
    cpu_us: f64,
}

/// The servers, one for each way of waiting, in this process; and nbdkit.
struct Bench<'a> {
    folder: &'a Path,
    servers: Vec<Server>,
    no_delay: Peer,
    /// For the media that it can delay.
    delays: Vec<Option<Peer>>,
    seconds: u32,
    /// Other programs may run.
    is_busy: bool,
}

impl<'a> Bench<'a> {
    fn start(folder: &'a Path, seconds: u32, is_busy: bool) -> Result<Self, Failure> {
        let mut layout = "host = { unlimited = true }\n".to_owned();
        for medium in MEDIA {
            layout += &format!(
                "[[volume]]\nname = \"m{medium}\"\nsize = \"256 MiB\"\nunlimited = true\n\
                 latency = \"{medium}us\"\n"
            );
        }
        let layout = Layout::parse("latency.toml", &layout, &Catalog::builtin())?;
        let serve = |waiting| {
            let listen = vec![Address::Unix(folder.join(format!("weir-{waiting:?}")))];
            Server::start(layout.clone(), None, &Options { listen, waiting, ..Options::default() })
        };
        let nbdkit = |name: &'static str, delay: Option<u32>| {
            let mut command = Command::new("nbdkit");
            command.arg("-f").arg("-U").arg(folder.join(name));
            command.args(delay.map(|_| "--filter=delay")).args(["memory", "256M"]);
            command.args(delay.map(|us| format!("delay-read={}ms", us / 1_000)));
            Peer::start(name, folder, &mut command, "")
        };
        let names = ["nbdkit-300", "nbdkit-1000", "nbdkit-5000"];
        let delays = names.into_iter().zip(MEDIA).map(|(name, us)| {
            let is_whole = us % 1_000 == 0;
            is_whole.then(|| nbdkit(name, Some(us))).transpose()
        });
        Ok(Self {
            folder,
            servers: WAYS.into_iter().map(serve).collect::<Result<_, _>>()?,
            no_delay: nbdkit("nbdkit", None)?,
            delays: delays.collect::<Result<_, _>>()?,
            seconds,
            is_busy,
        })
    }

    fn run(&self, uri: &str, depth: u32) -> Result<Seen, Failure> {
        let measure = || {
            let before = process_time();
            let job = fio::Job { uri, rw: "randread", block: "4k", depth, seconds: self.seconds };
            let ran = fio::run(&job, self.folder)?;
            let cpu = process_time().saturating_sub(before);
            Ok((ran, float(cpu.nanos()) / 1e3 / ran.requests))
        };
        let peers: Vec<&Peer> =
            [&self.no_delay].into_iter().chain(self.delays.iter().flatten()).collect();
        let (ran, cpu_us) = if self.is_busy { measure()? } else { quietly(&peers, measure)? };
        let fio::Ran { mean_us, median_us, .. } = ran;
        let name = uri.rsplit('/').next().unwrap_or_default();
        eprintln!(
            "{name} at depth {depth}: mean {mean_us:.1} us, median {median_us:.1} us, {cpu_us:.1} us \
             of the server's processor"
        );
        Ok(Seen { mean_us, cpu_us })
    }

    /// Measures a medium with each way of waiting, and with nbdkit.
    fn measure(&self, medium: usize, depth: u32) -> Result<(Vec<Seen>, Option<f64>), Failure> {
        let name = format!("m{}", MEDIA[medium]);
        let ours = self.servers.iter().map(|server| {
            let uris = server.uris();
            let uri = uris.get(&name).and_then(|uris| uris.first()).ok_or("no export")?;
            self.run(uri, depth)
        });
        let ours = ours.collect::<Result<_, _>>()?;
        let nbdkit = self.delays[medium].as_ref().map(|peer| self.run(&peer.uri, depth));
        Ok((ours, nbdkit.transpose()?.map(|seen| seen.mean_us)))
    }
}

/// The figures of all rounds for one medium and depth.
#[derive(Default)]
struct Case {
    /// Seen means, by the way of waiting; the last one is nbdkit's.
    means: [Vec<f64>; 4],
    /// The errors in percent, beside the round trip of the same round.
    errors: [Vec<f64>; 4],
    cpu: [Vec<f64>; 3],
    /// Processor time of waking up early beside that of waking up late.
    cost: Vec<f64>,
}

impl Case {
    fn add(&mut self, stated: f64, trip: f64, (ours, nbdkit): (Vec<Seen>, Option<f64>)) {
        let means = ours.iter().map(|seen| seen.mean_us).chain(nbdkit);
        for ((mean, means), errors) in means.zip(&mut self.means).zip(&mut self.errors) {
            means.push(mean);
            errors.push(((mean - trip) / stated - 1.0) * 100.0);
        }
        for (seen, cpu) in ours.iter().zip(&mut self.cpu) {
            cpu.push(seen.cpu_us);
        }
        self.cost.push(ours[1].cpu_us / ours[0].cpu_us);
    }
}

fn with_range(values: &[f64], digits: usize) -> String {
    if values.is_empty() {
        return "-".to_owned();
    }
    let (least, most) = range(values);
    format!("{:.digits$} ({least:.digits$} to {most:.digits$})", median(values.to_vec()))
}

fn print(cases: &[((u32, u32), Case)], trips: &[f64]) {
    let heads = [">medium, ms", ">depth", ">late", ">early", ">poll", ">nbdkit, delay"];
    let mut seen = Table::new("mean latency seen, ms", &heads);
    let heads = [">medium, ms", ">depth", ">late", ">early", ">poll", ">nbdkit, delay"];
    let mut errors = Table::new("error without the round trip, %", &heads);
    let heads = [">medium, ms", ">depth", ">late", ">early", ">poll", ">early / late"];
    let mut cpu = Table::new("processor time of the server per request, µs", &heads);
    for ((medium, depth), case) in cases {
        let row = |cells: Vec<String>| {
            let first = [format!("{}", f64::from(*medium) / 1e3), depth.to_string()];
            first.into_iter().chain(cells).map(Into::into).collect::<Vec<_>>()
        };
        let means = case.means.iter().map(|us| match us.as_slice() {
            [] => "-".to_owned(),
            us => format!("{:.3}", median(us.to_vec()) / 1e3),
        });
        seen.row(row(means.collect()));
        errors.row(row(case.errors.iter().map(|errors| with_range(errors, 1)).collect()));
        let times = case.cpu.iter().map(|us| format!("{:.1}", median(us.clone())));
        cpu.row(row(times.chain([with_range(&case.cost, 2)]).collect()));
    }
    seen.notes.push(format!("round trip of nbdkit at depth 1, µs: {}", with_range(trips, 1)));
    print!("{}", Listing(vec![seen, errors, cpu]).render(Format::Markdown));
}

fn main() -> Result<(), Failure> {
    let number = |at| std::env::args().nth(at).map(|text: String| text.parse::<u32>()).transpose();
    let (rounds, seconds) = (number(1)?.unwrap_or(5), number(2)?.unwrap_or(2));
    let folder = tempfile::tempdir()?;
    let is_busy = std::env::args().nth(3).is_some_and(|text| text == "busy");
    let bench = Bench::start(folder.path(), seconds, is_busy)?;
    let all =
        DEPTHS.iter().flat_map(|depth| MEDIA.map(|medium| ((medium, *depth), Case::default())));
    let (mut cases, mut trips): (Vec<_>, Vec<f64>) = (all.collect(), Vec::new());
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        let trip = bench.run(&bench.no_delay.uri, 1)?.mean_us;
        trips.push(trip);
        for (at, ((medium, depth), case)) in cases.iter_mut().enumerate() {
            let measured = bench.measure(at % MEDIA.len(), *depth)?;
            case.add(f64::from(*medium), trip, measured);
        }
    }
    print(&cases, &trips);
    for server in bench.servers {
        server.stop()?;
    }
    Ok(())
}
