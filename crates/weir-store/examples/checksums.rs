//! The cost of checksums: a volume with them beside one without, in turn, in one folder.
//!
//! ```console
//! $ cargo run --release -p weir-store --example checksums -- FOLDER [ROUNDS]
//! ```
//!
//! 32 threads read or write random blocks of 4 KiB of 1 GiB, and one thread reads or writes it in order by
//! 1 MiB. Prints the median of each workload, and of the ratios round by round. The volumes are called
//! without a server, so a share of a served request is smaller.

#![expect(clippy::print_stdout, reason = "it is a program that prints a table")]
#![expect(clippy::disallowed_methods, reason = "a measurement reads a clock")]

use std::error::Error;
use std::sync::Arc;
use std::thread;
use std::time::Instant;
use weir_random::Rng;
use weir_store::{DataDir, NewVolume, Store, Volume};
use weir_units::Bytes;

const SIZE: u64 = 1 << 30;
const DEPTH: u64 = 32;
/// Random requests of one thread.
const REQUESTS: u64 = 4_000;

/// Executes requests of one size; returns bytes per second.
fn measure(volume: &Arc<Volume>, threads: u64, size: usize, is_read: bool) -> f64 {
    let start = Instant::now();
    let count = if threads == 1 { SIZE / size as u64 } else { REQUESTS };
    thread::scope(|scope| {
        for thread in 0..threads {
            let volume = Arc::clone(volume);
            scope.spawn(move || {
                let (mut rng, mut buffer) = (Rng::from_state(thread), vec![7; size]);
                for request in 0..count {
                    let slot = match threads {
                        1 => request,
                        _ => rng.next_u64() % (SIZE / size as u64),
                    };
                    let offset = slot * size as u64;
                    let done = match is_read {
                        true => volume.read_at(offset, &mut buffer),
                        false => volume.write_at(offset, &buffer),
                    };
                    assert!(done.is_ok(), "{done:?}");
                }
            });
        }
    });
    // A write is complete when it is durable.
    let synced = if is_read { Ok(()) } else { volume.sync() };
    assert!(synced.is_ok(), "{synced:?}");
    #[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
    let bytes = (threads * count * size as u64) as f64;
    bytes / start.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let folder = args.next().ok_or("give a folder that is empty or not there")?;
    let rounds: u32 = args.next().map_or(Ok(5), |text| text.parse())?;
    let data = DataDir::open(&folder, "checksums")?;
    let make = |name: &str, checksums| {
        let checksums = Some(checksums);
        data.volume(name, NewVolume { size: Bytes::new(SIZE), attributes: [].into(), checksums })
    };
    let volumes = [make("without", false)?, make("with", true)?];
    for volume in &volumes {
        measure(volume, 1, 1 << 20, false);
    }
    println!("| workload | MiB/s without | MiB/s with | ratio |\n|---|--:|--:|--:|");
    let workloads = [
        ("random reads of 4 KiB, depth 32", DEPTH, 4096, true),
        ("random writes of 4 KiB, depth 32", DEPTH, 4096, false),
        ("sequential reads of 1 MiB", 1, 1 << 20, true),
        ("sequential writes of 1 MiB", 1, 1 << 20, false),
    ];
    for (name, threads, size, is_read) in workloads {
        let mut runs = [Vec::new(), Vec::new()];
        for _ in 0..rounds {
            for (volume, runs) in volumes.iter().zip(&mut runs) {
                runs.push(measure(volume, threads, size, is_read) / f64::from(1 << 20));
            }
        }
        let ratios = runs[1].iter().zip(&runs[0]).map(|(with, without)| with / without).collect();
        let [without, with] = runs.map(median);
        println!("| {name} | {without:.0} | {with:.0} | {:.3} |", median(ratios));
    }
    drop(volumes);
    Ok(std::fs::remove_dir_all(folder)?)
}
