//! `weir backup run` beside the programs that copy or compress the same bytes, in turn on one
//! machine: nbdcopy between two exports of one server, `pigz -1` and `zstd -T0 -1` from file to file,
//! and the binding cap of the layout of article 004. Prints medians, the spread, and the ratio.
//!
//! ```console
//! $ cargo build --release && cargo run --release -p weir-bench --bin backups -- [ROUNDS]
//! ```
//!
//! Needs nbdcopy, pigz and zstd (Debian: libnbd-bin pigz zstd). Everything is in memory.

#![expect(clippy::print_stdout, reason = "it is a program that prints a table")]
#![expect(clippy::print_stderr, reason = "it says what it is doing")]
#![expect(clippy::disallowed_methods, reason = "it measures other programs by the clock")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use weir_bench::{Failure, median};
use weir_client::Connection;
use weir_report::cells;
use weir_report::number::rate;
use weir_report::table::{Listing, Table};
use weir_report::{Format, Report};

/// Bytes that are copied.
const SIZE: usize = 512 << 20;
/// Bytes that are backed up under the caps.
const GOVERNED: usize = 1 << 30;

/// The cap of a DS14 for reads and writes together, 512 MiB/s, in MB/s.
const CAP: f64 = 536.870_912;

const MEMORY: &str = "[host]\nunlimited = true\n\
    [[volume]]\nname = \"source\"\nsize = \"512 MiB\"\nunlimited = true\n\
    [[volume]]\nname = \"target\"\nsize = \"640 MiB\"\nunlimited = true\n";

/// The best settings of article 004: ten source P30, two target P30, a DS14.
const ARTICLE: &str = "edition = \"azure-premium-2015\"\n[host]\nsize = \"DS14\"\n\
    [[stripe]]\nname = \"data\"\nunit = \"64 KiB\"\n\
    volumes = { count = 10, tier = \"P30\", cache = \"none\" }\n\
    [[volume]]\nname = \"target1\"\ntier = \"P30\"\n\
    [[volume]]\nname = \"target2\"\ntier = \"P30\"\n";

/// A server in memory; ended when it is dropped.
struct Served {
    process: Child,
    folder: tempfile::TempDir,
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Served {
    fn start(weir: &Path, layout: &str) -> Result<Self, Failure> {
        let folder = tempfile::tempdir_in("/dev/shm")?;
        fs::write(folder.path().join("layout.toml"), layout)?;
        let mut command = Command::new(weir);
        command.args(["serve", "layout.toml", "--nbd", "unix:nbd", "--control", "control"]);
        command.current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn()?;
        let said = process.stderr.take().ok_or("no stderr")?;
        let mut lines = BufReader::new(said).lines();
        let ready = lines.by_ref().map_while(Result::ok).any(|line| line.starts_with("ready;"));
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let own = Self { process, folder };
        if ready { Ok(own) } else { Err("the server did not start".into()) }
    }

    fn uri(&self, export: &str) -> String {
        format!("nbd+unix:///{export}?socket={}", self.folder.path().join("nbd").display())
    }

    fn fill(&self, export: &str, bytes: &[u8]) -> Result<(), Failure> {
        let mut connection = Connection::open(&self.uri(export).parse()?)?;
        for (at, part) in bytes.chunks(4 << 20).enumerate() {
            connection.write((at as u64) << 22, part)?;
        }
        Ok(())
    }

    /// Backs up; returns the seconds that the program took, and its report.
    fn backup(&self, weir: &Path, args: &[&str]) -> Result<(f64, serde_json::Value), Failure> {
        let mut command = Command::new(weir);
        command.args(["backup", "run", "--control", "control", "-q", "-o", "json"]).args(args);
        command.current_dir(self.folder.path());
        let start = Instant::now();
        let output = command.output()?;
        let seconds = start.elapsed().as_secs_f64();
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        Ok((seconds, serde_json::from_slice(&output.stdout)?))
    }
}

/// Runs a program to its end; returns its seconds.
fn timed(command: &mut Command) -> Result<f64, Failure> {
    let start = Instant::now();
    let status = command.status();
    let name = command.get_program().to_owned();
    let status = status.map_err(|error| format!("cannot start {name:?}: {error}; install it"))?;
    if status.success() {
        Ok(start.elapsed().as_secs_f64())
    } else {
        Err(format!("{name:?} failed").into())
    }
}

/// Makes bytes as a database has them: words that come again, and numbers that do not. They
/// compress to about a half.
fn contents(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 24).to_be_bytes()
    };
    let words: Vec<[u8; 8]> = (0..4096).map(|_| next()).collect();
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        let random = next();
        let index = usize::from(random[6]) << 4 | usize::from(random[5] >> 4);
        bytes.extend(if random[7] & 1 == 0 { words[index % 4096] } else { random });
    }
    bytes.truncate(length);
    bytes
}

/// Seconds of Weir and of another program, round by round.
struct Pairs {
    name: &'static str,
    weir: Vec<f64>,
    other: Vec<f64>,
    bytes: usize,
}

impl Pairs {
    fn row(&self, table: &mut Table) {
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        let speed = |seconds: f64| self.bytes as f64 / 1e6 / seconds;
        let ratios: Vec<f64> =
            self.weir.iter().zip(&self.other).map(|(own, other)| other / own).collect();
        let spread = |values: &[f64]| {
            let (least, most) = values
                .iter()
                .fold((f64::MAX, 0_f64), |(least, most), own| (least.min(*own), most.max(*own)));
            format!("{} to {}", rate(least), rate(most))
        };
        table.row(cells![
            self.name,
            rate(speed(median(self.weir.clone()))),
            rate(speed(median(self.other.clone()))),
            rate(median(ratios.clone())),
            spread(&ratios),
        ]);
    }
}

fn copies(weir: &Path, bytes: &[u8], rounds: usize) -> Result<Pairs, Failure> {
    let mut pairs =
        Pairs { name: "copy: nbdcopy", weir: vec![], other: vec![], bytes: bytes.len() };
    for round in 0..rounds {
        eprintln!("copy, round {round}");
        let order = [round % 2, 1 - round % 2];
        for which in order {
            // A new server each time: the memory of its target is new for both.
            let served = Served::start(weir, MEMORY)?;
            served.fill("source", bytes)?;
            if which == 0 {
                // nbdcopy moves 256 KiB at a time too.
                let args = ["source", "--to", "target", "--copy-only", "--stripes", "2"];
                let args = [&args[..], &["--max-transfer-size", "256KiB"]].concat();
                pairs.weir.push(served.backup(weir, &args)?.0);
            } else {
                let mut copy = Command::new("nbdcopy");
                copy.arg(served.uri("source")).arg(served.uri("target"));
                pairs.other.push(timed(&mut copy)?);
            }
        }
    }
    Ok(pairs)
}

fn compressions(weir: &Path, bytes: &[u8], rounds: usize) -> Result<[Pairs; 2], Failure> {
    let pairs = |name| Pairs { name, weir: vec![], other: vec![], bytes: bytes.len() };
    let mut all = [pairs("compress: pigz -1"), pairs("compress: zstd -T0 -1")];
    let served = Served::start(weir, MEMORY)?;
    served.fill("source", bytes)?;
    let folder = served.folder.path();
    let file = folder.join("file");
    fs::File::create(&file)?.write_all(bytes)?;
    for round in 0..rounds {
        eprintln!("compression, round {round}");
        let to = folder.join("to");
        fs::create_dir(&to)?;
        let args = ["source", "--to", "./to", "--stripes", "4", "--compress", "--copy-only"];
        let (own, report) = served.backup(weir, &args)?;
        eprintln!("  stored {} MB", report["stored_bytes"].as_u64().unwrap_or(0) / 1_000_000);
        fs::remove_dir_all(&to)?;
        let programs: [(&str, &[&str]); 2] =
            [("pigz", &["-1", "-k", "-c"]), ("zstd", &["-q", "-T0", "-1", "-c"])];
        for (pairs, (program, args)) in all.iter_mut().zip(programs) {
            let out = fs::File::create(folder.join("out"))?;
            let other = timed(Command::new(program).args(args).arg(&file).stdout(out))?;
            pairs.weir.push(own);
            pairs.other.push(other);
            eprintln!(
                "  {program} stored {} MB",
                fs::metadata(folder.join("out"))?.len() / 1_000_000
            );
        }
    }
    Ok(all)
}

/// Bytes per second of a backup under the caps of the article: it reads and writes, and the machine
/// has one cap for both.
fn governed(weir: &Path, rounds: usize) -> Result<Vec<f64>, Failure> {
    let bytes = contents(GOVERNED);
    let mut speeds = Vec::new();
    for round in 0..rounds {
        eprintln!("governed, round {round}");
        let served = Served::start(weir, ARTICLE)?;
        served.fill("data", &bytes)?;
        let args = ["data", "--to", "target1", "target2", "--stripes", "8", "--copy-only"];
        let (_, report) = served.backup(weir, &args)?;
        let elapsed = report["elapsed_s"].as_f64().ok_or("no time")?;
        let moved = |key: &str| report[key].as_f64().unwrap_or(0.0);
        speeds.push((moved("bytes_read") + moved("bytes_written")) / elapsed / 1e6);
        eprintln!("  {} MiB/s, bound by {}", report["mib_per_s"], report["binding_limit"]);
    }
    Ok(speeds)
}

fn main() -> Result<(), Failure> {
    let rounds = std::env::args().nth(1).map_or(Ok(5), |text| text.parse())?;
    let mut weir: PathBuf = std::env::current_exe()?;
    weir.set_file_name("weir");
    let bytes = contents(SIZE);
    let heads = ["measure", ">weir MB/s|weir", ">other MB/s|other", ">ratio", ">spread"];
    let mut table = Table::new("Backups beside other programs", &heads);
    copies(&weir, &bytes, rounds)?.row(&mut table);
    for pairs in compressions(&weir, &bytes, rounds)? {
        pairs.row(&mut table);
    }
    let speeds = governed(&weir, rounds.min(3))?;
    let speed = median(speeds);
    table.notes.push(format!(
        "two targets and 8 stripes of article 004: {} MB/s read and written, {} % of the machine's \
         {CAP} MB/s",
        rate(speed),
        rate(speed / CAP * 100.0)
    ));
    print!("{}", Listing(vec![table]).render(Format::Text));
    Ok(())
}
