//! Measures durable writes of 8 KiB by several threads: plain files, and pages of a volume.
//!
//! ```sh
//! cargo run --release -p weir-store --example durable_pages -- [FOLDER [THREADS [ROUNDS]]]
//! ```
//!
//! Each thread writes a random block and syncs, again and again. On the plain file this is a write
//! and fdatasync, as fio does it. The pages are written before ("again"), or not ("first"). The
//! kinds take turns; the ratios are those of one round.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "prints what it measures with a clock"
)]

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use weir_store::{DataDir, NewVolume, Store};
use weir_units::Bytes;

type Failed = Box<dyn std::error::Error + Send + Sync>;

const BLOCK: usize = 8192;
const BLOCK_LEN: u64 = BLOCK as u64;
const SIZE: Bytes = Bytes::mib(64);
const LONG: Duration = Duration::from_secs(1);

fn main() -> Result<(), Failed> {
    let mut args = std::env::args_os().skip(1);
    let folder = args.next().map_or_else(std::env::temp_dir, Into::into);
    let mut number = |default| {
        let given = args.next().map(|arg| arg.to_string_lossy().parse());
        given.unwrap_or(Ok::<_, std::num::ParseIntError>(default))
    };
    let (threads, rounds) = (number(16)?, number(10)?);
    let dir = tempfile::tempdir_in(folder)?;
    let data = DataDir::open(dir.path().join("data"), "durable_pages")?;
    let volume = data.paged_volume("again", new_volume())?;
    let plain =
        File::options().create_new(true).read(true).write(true).open(dir.path().join("f"))?;
    for at in 0..SIZE.get() / BLOCK_LEN {
        volume.write_at(at * BLOCK_LEN, &[1; BLOCK])?;
        plain.write_all_at(&[1; BLOCK], at * BLOCK_LEN)?;
    }
    volume.sync()?;
    plain.sync_all()?;
    println!("durable writes of 8 KiB per second by {threads} threads");
    println!("{:>8} {:>8} {:>8} {:>8} {:>8}", "plain", "again", "ratio", "first", "ratio");
    let (mut again, mut first) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let file = per_second(threads, |at| {
            plain.write_all_at(&[2; BLOCK], at)?;
            Ok(plain.sync_data()?)
        })?;
        let written = measure(&*volume, threads)?;
        let fresh = data.paged_volume(&format!("first-{round}"), new_volume())?;
        let new = measure(&*fresh, threads)?;
        println!(
            "{file:>8.0} {written:>8.0} {:>8.2} {new:>8.0} {:>8.2}",
            written / file,
            new / file
        );
        again.push(written / file);
        first.push(new / file);
    }
    for (name, ratios) in [("again", &mut again), ("first", &mut first)] {
        ratios.sort_by(f64::total_cmp);
        if let [least, .., most] = ratios[..] {
            println!("{name}: {:.2} ({least:.2} to {most:.2})", ratios[ratios.len() / 2]);
        }
    }
    Ok(())
}

fn new_volume() -> NewVolume {
    NewVolume { size: SIZE, attributes: BTreeMap::new(), checksums: None }
}

fn measure(store: &dyn Store, threads: u64) -> Result<f64, Failed> {
    per_second(threads, |at| {
        store.write_at(at, &[2; BLOCK])?;
        Ok(store.sync()?)
    })
}

/// Returns how often per second threads do `operation` at random blocks.
fn per_second(
    threads: u64,
    operation: impl Fn(u64) -> Result<(), Failed> + Sync,
) -> Result<f64, Failed> {
    let (is_over, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let started = Instant::now();
    let run = |thread: u64| {
        let mut random = thread + 1;
        while !is_over.load(Ordering::Relaxed) {
            // Marsaglia's xorshift64.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            operation(random % (SIZE.get() / BLOCK_LEN) * BLOCK_LEN)?;
            count.fetch_add(1, Ordering::Relaxed);
        }
        Ok::<(), Failed>(())
    };
    std::thread::scope(|scope| {
        let run = &run;
        let all: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        std::thread::sleep(LONG);
        is_over.store(true, Ordering::Relaxed);
        all.into_iter().try_for_each(|thread| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    Ok(count.into_inner() as f64 / started.elapsed().as_secs_f64())
}
