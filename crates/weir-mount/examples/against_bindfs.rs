//! Compares the mount with bindfs, a plain pass-through file system: `against_bindfs FOLDER
//! [ROUNDS]`. Both serve folders in FOLDER alternately; the table shows the medians and their
//! ratio. Requires fio, bindfs and root.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use weir_mount::{DirId, Mount, Mounted, Options, Top, Unlimited};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The measurements: fio's access pattern, whether direct, and the I/O engine.
const KINDS: [(&str, bool, &str); 8] = [
    ("read", false, "psync"),
    ("randread", false, "psync"),
    ("write", false, "psync"),
    ("randwrite", false, "psync"),
    ("read", true, "libaio"),
    ("randread", true, "libaio"),
    ("write", true, "libaio"),
    ("randwrite", true, "libaio"),
];

/// A served folder, until it is dropped.
enum Served {
    Weir(Mounted),
    Bindfs(Child, PathBuf),
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Self::Bindfs(child, dir) = self {
            let _ = Command::new("umount").arg(dir).status();
            let _ = child.wait();
        }
    }
}

fn serve(weir: bool, folder: &Path) -> Outcome<(Served, PathBuf)> {
    let (backing, dir) = (folder.join("backing"), folder.join("mount"));
    std::fs::create_dir_all(&backing)?;
    std::fs::create_dir_all(&dir)?;
    if weir {
        let top = Top { name: "volume".into(), backing, id: DirId(0) };
        let mount = Mount::new(vec![top], Arc::new(Unlimited), Options::default());
        let mounted = mount.spawn(&dir)?;
        return Ok((Served::Weir(mounted), dir.join("volume")));
    }
    let child =
        Command::new("bindfs").arg("-f").arg(&backing).arg(&dir).stdin(Stdio::null()).spawn()?;
    let served = Served::Bindfs(child, dir.clone());
    // bindfs does not report when it is ready.
    while !Command::new("mountpoint").arg("-q").arg(&dir).status()?.success() {}
    Ok((served, dir))
}

/// I/Os per second.
fn measure(dir: &Path, (pattern, direct, engine): (&str, bool, &str)) -> Outcome<f64> {
    let mut fio = Command::new("fio");
    let file = dir.join("file");
    fio.args(["--name=beside", "--size=256m", "--bs=8k"]);
    fio.arg(format!("--filename={}", file.display())).current_dir(dir);
    fio.args(["--runtime=3", "--time_based", "--randrepeat=0", "--output-format=json"]);
    fio.arg(format!("--rw={pattern}"));
    fio.arg(format!("--iodepth={}", if engine == "libaio" { 16 } else { 1 }));
    fio.arg(format!("--direct={}", u8::from(direct))).arg(format!("--ioengine={engine}"));
    // Earlier data must be read through the mount, not from its page cache.
    fio.arg("--invalidate=1");
    let output = fio.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let side = if pattern.contains("read") { "read" } else { "write" };
    report["jobs"][0][side]["iops"].as_f64().ok_or_else(|| "fio gives no figure".into())
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("usage: against_bindfs FOLDER [ROUNDS]")?);
    let rounds = match arguments.next().and_then(|rounds| rounds.into_string().ok()) {
        Some(rounds) => rounds.parse()?,
        None => 5,
    };
    println!("{:<10} {:<9} {:>9} {:>9} {:>6}", "8 KiB", "cache", "weir", "bindfs", "ratio");
    for kind in KINDS {
        let mut figures = [Vec::new(), Vec::new()];
        for _ in 0..rounds {
            for (weir, figures) in [true, false].into_iter().zip(&mut figures) {
                let name = if weir { "weir" } else { "bindfs" };
                let (served, dir) = serve(weir, &folder.join(name))?;
                figures.push(measure(&dir, kind)?);
                if let Served::Weir(mounted) = &served {
                    mounted.unmount(std::time::Duration::from_secs(60))?;
                }
            }
        }
        let [weir, bindfs] = figures.map(median);
        let cache = if kind.1 { "direct" } else { "buffered" };
        println!("{:<10} {cache:<9} {weir:>9.0} {bindfs:>9.0} {:>6.2}", kind.0, weir / bindfs);
    }
    Ok(())
}
