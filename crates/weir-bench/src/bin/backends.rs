//! A volume on the export of another NBD server, beside the same export used directly, in pairs: fio
//! with random requests of 4 KiB and sequential ones of 1 MiB. Prints medians of the rates, their
//! spread, and ratios round by round, also of the processor time that both servers need for a request.
//!
//! ```console
//! $ cargo build --release && cargo run --release -p weir-bench --bin backends -- [ROUNDS [WEIR [CEPH_CONF]]]
//! ```
//!
//! Needs fio, nbdkit and qemu-storage-daemon (Debian: fio nbdkit qemu-system-common). With the configuration file of a
//! Ceph cluster, the image `weir-bench` of its pool `rbd` (of 256 MiB) is measured instead, through
//! qemu-storage-daemon (Debian: qemu-block-extra).

#![expect(clippy::print_stdout, reason = "it is a program that prints a table")]
#![expect(clippy::print_stderr, reason = "it says what it is doing")]

use std::path::{Path, PathBuf};
use std::process::Command;
use weir_bench::peer::Peer;
use weir_bench::{Failure, fio, median, range};
use weir_report::cells;
use weir_report::number::rate;
use weir_report::table::{Listing, Table};
use weir_report::{Format, Report};

/// Bytes of an export.
const SIZE: usize = 256 << 20;

/// The workloads: name, fio's `rw` and `bs`, queue depth.
const WORKLOADS: [(&str, &str, &str, u32); 4] = [
    ("random reads of 4 KiB, depth 32", "randread", "4k", 32),
    ("random writes of 4 KiB, depth 32", "randwrite", "4k", 32),
    ("reads of 1 MiB, depth 8", "read", "1m", 8),
    ("writes of 1 MiB, depth 8", "write", "1m", 8),
];

/// A server, and Weir with a volume on it.
struct Pair {
    name: &'static str,
    server: Peer,
    weir: Peer,
}

impl Pair {
    /// Starts nbdkit on its memory.
    fn of_memory(weir: &Path, folder: &Path) -> Result<Self, Failure> {
        let mut command = Command::new("nbdkit");
        command.arg("-f").arg("-U").arg(folder.join("nbdkit")).args(["memory", "256M"]);
        Self::start(("nbdkit", ""), command, weir, folder)
    }

    /// Starts qemu-storage-daemon on a written file.
    fn of_file(weir: &Path, folder: &Path) -> Result<Self, Failure> {
        let disk = folder.join("disk");
        std::fs::write(&disk, vec![1; SIZE])?;
        let node = format!("driver=file,node-name=disk,filename={}", disk.display());
        Self::of_node("qemu-storage-daemon", &node, weir, folder)
    }

    /// Starts qemu-storage-daemon on an image of a Ceph cluster.
    fn of_image(conf: &str, weir: &Path, folder: &Path) -> Result<Self, Failure> {
        let node = format!("driver=rbd,node-name=disk,pool=rbd,image=weir-bench,conf={conf}");
        Self::of_node("rbd", &node, weir, folder)
    }

    fn of_node(
        name: &'static str,
        node: &str,
        weir: &Path,
        folder: &Path,
    ) -> Result<Self, Failure> {
        let mut command = Command::new("qemu-storage-daemon");
        command.args(["--blockdev", node, "--nbd-server"]);
        command.arg(format!("addr.type=unix,addr.path={}", folder.join(name).display()));
        command.args(["--export", "type=nbd,id=v,node-name=disk,name=v,writable=on"]);
        Self::start((name, "v"), command, weir, folder)
    }

    /// Starts a server, and Weir on its export.
    fn start(
        (name, export): (&'static str, &str),
        mut command: Command,
        weir: &Path,
        folder: &Path,
    ) -> Result<Self, Failure> {
        let server = Peer::start(name, folder, &mut command, export)?;
        let folder = folder.join(format!("weir-{name}"));
        std::fs::create_dir(&folder)?;
        let layout = folder.join("layout.toml");
        let text = "[host]\nunlimited = true\n[[volume]]\nname = \"v\"\nunlimited = true\n";
        std::fs::write(&layout, format!("{text}backend = \"{}\"\n", server.uri))?;
        let mut command = Command::new(weir);
        command.arg("serve").arg(&layout);
        command.arg("--nbd").arg(format!("unix:{}", folder.join("weir").display()));
        command.arg("--control").arg(folder.join("control"));
        let weir = Peer::start("weir", &folder, &mut command, "v")?;
        Ok(Self { name, server, weir })
    }

    /// Runs a workload at the server, or through Weir. Returns requests per second, and the
    /// microseconds of processor time that the servers need for one.
    fn run(
        &self,
        through: bool,
        (rw, block, depth): (&str, &str, u32),
        folder: &Path,
    ) -> Result<(f64, f64), Failure> {
        let uri = if through { &self.weir.uri } else { &self.server.uri };
        let used = || Ok::<_, Failure>(self.server.cpu_seconds()? + self.weir.cpu_seconds()?);
        let before = used()?;
        let ran = fio::run(&fio::Job { uri, rw, block, depth, seconds: 2 }, folder)?;
        Ok((ran.iops, (used()? - before) / ran.requests * 1e6))
    }
}

fn main() -> Result<(), Failure> {
    let rounds: u32 = std::env::args().nth(1).map_or(Ok(5), |text| text.parse())?;
    let beside = std::env::current_exe()?.with_file_name("weir");
    let weir = std::env::args().nth(2).map_or(beside, PathBuf::from);
    let folder = tempfile::tempdir()?;
    let pairs = match std::env::args().nth(3) {
        Some(conf) => vec![Pair::of_image(&conf, &weir, folder.path())?],
        None => vec![Pair::of_memory(&weir, folder.path())?, Pair::of_file(&weir, folder.path())?],
    };
    let heads = [
        "backend",
        "workload",
        ">direct /s",
        ">through Weir /s",
        ">ratio",
        ">least",
        ">most",
        ">direct us",
        ">through Weir us",
    ];
    let mut table = Table::new("", &heads);
    for pair in &pairs {
        // So that all of the memory is there.
        pair.run(false, ("write", "1m", 8), folder.path())?;
        for (workload, rw, block, depth) in WORKLOADS {
            let (mut direct, mut through) = (Vec::new(), Vec::new());
            for round in 0..rounds {
                eprintln!("{}, {workload}, round {} of {rounds}", pair.name, round + 1);
                direct.push(pair.run(false, (rw, block, depth), folder.path())?);
                through.push(pair.run(true, (rw, block, depth), folder.path())?);
            }
            let ratios = through.iter().zip(&direct).map(|(own, other)| own.0 / other.0);
            let ratios: Vec<f64> = ratios.collect();
            let (least, most) = range(&ratios);
            let first = |all: &[(f64, f64)]| median(all.iter().map(|one| one.0).collect());
            let second = |all: &[(f64, f64)]| median(all.iter().map(|one| one.1).collect());
            table.row(cells![
                pair.name,
                workload,
                rate(first(&direct)),
                rate(first(&through)),
                format!("{:.2}", median(ratios)),
                format!("{least:.2}"),
                format!("{most:.2}"),
                format!("{:.1}", second(&direct)),
                format!("{:.1}", second(&through)),
            ]);
        }
    }
    print!("{}", Listing(vec![table]).render(Format::Markdown));
    Ok(())
}
