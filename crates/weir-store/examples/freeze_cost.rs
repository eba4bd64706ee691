//! Measures the cost of a store that can be frozen: time per write with the wrapper and without, in
//! turn, on one thread.
//!
//! ```sh
//! cargo run --release -p weir-store --example freeze_cost -- [FOLDER]
//! ```
//!
//! The files are made in FOLDER, by default the one for temporary files. The ratio is the
//! speed with the wrapper to that without: the median of the rounds.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "prints what it measures with a clock"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use weir_store::{FileStore, Freezable, MemoryStore, Result, Scratch, Store};
use weir_units::Bytes;

const RANGE: u64 = 256 << 20;
const ROUNDS: usize = 15;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, Into::into);
    let dir = tempfile::tempdir_in(folder)?;
    println!("ns per write at a random place of 256 MiB, median of {ROUNDS} rounds");
    println!(
        "{:<8} {:>8} {:>9} {:>9} {:>6} {:>9} {:>6}",
        "store", "write", "bare", "wrapped", "ratio", "tracked", "ratio"
    );
    for size in [4 << 10, 64 << 10, 1 << 20] {
        let memory: Arc<dyn Store> = Arc::new(MemoryStore::new(Bytes::new(RANGE)));
        report("memory", size, &memory)?;
        let files: Arc<dyn Store> = Arc::new(FileStore::open(dir.path(), Bytes::new(RANGE))?);
        report("files", size, &files)?;
    }
    println!("\nwhile frozen, the first write to each block of 64 KiB copies it:");
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new(Bytes::new(RANGE)));
    frozen("memory", memory, Scratch::memory())?;
    let files = Arc::new(FileStore::open(dir.path(), Bytes::new(RANGE))?);
    frozen("files", files, Scratch::folder(dir.path().join("frozen")))?;
    Ok(())
}

fn report(name: &str, size: usize, store: &Arc<dyn Store>) -> Result<()> {
    let wrapped = Freezable::new(Arc::clone(store));
    let tracked = Freezable::new(Arc::clone(store));
    let base = tracked.freeze(Scratch::memory());
    tracked.complete(&base, "base")?;
    tracked.thaw(&base);
    let writes = (1 << 30) / size / 8;
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    time(&**store, size, writes)?;
    for _ in 0..ROUNDS {
        let stores: [&dyn Store; 3] = [&**store, &wrapped, &tracked];
        for (times, store) in times.iter_mut().zip(stores) {
            times.push(time(store, size, writes)?);
        }
    }
    let [bare, wrapped, tracked] = times.map(|mut times| {
        times.sort_unstable();
        times[ROUNDS / 2]
    });
    let ratio = |other: u64| format!("{}.{:03}", bare / other, bare % other * 1000 / other);
    let (one, two) = (ratio(wrapped), ratio(tracked));
    println!("{name:<8} {size:>8} {bare:>9} {wrapped:>9} {one:>6} {tracked:>9} {two:>6}");
    Ok(())
}

fn frozen(name: &str, store: Arc<dyn Store>, scratch: Scratch) -> Result<()> {
    let freezable = Freezable::new(store);
    let writes = (RANGE >> 16).try_into().unwrap_or(usize::MAX);
    let block = vec![7; 4096];
    let all = |freezable: &Freezable| -> Result<u128> {
        let start = Instant::now();
        for at in 0..RANGE >> 16 {
            freezable.write_at(at << 16, black_box(&block))?;
        }
        Ok(start.elapsed().as_nanos() / (RANGE >> 16) as u128)
    };
    time(&freezable, 1 << 20, writes / 16)?;
    for at in 0..RANGE >> 20 {
        freezable.write_at(at << 20, &vec![3; 1 << 20])?;
    }
    let before = all(&freezable)?;
    let view = freezable.freeze(scratch);
    let (first, again) = (all(&freezable)?, all(&freezable)?);
    println!("{name:<8} 4096 bytes: {before} ns, frozen {first} ns, the second time {again} ns");
    freezable.thaw(&view);
    Ok(())
}

/// Nanoseconds per write.
fn time(store: &dyn Store, size: usize, writes: usize) -> Result<u64> {
    let data = vec![7; size];
    let len = size as u64;
    let mut random = 1_u64;
    let start = Instant::now();
    for _ in 0..writes {
        // Marsaglia's xorshift64.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        store.write_at(random % (RANGE / len) * len, black_box(&data))?;
    }
    let nanos = start.elapsed().as_nanos() / writes.max(1) as u128;
    Ok(u64::try_from(nanos).unwrap_or(u64::MAX))
}
