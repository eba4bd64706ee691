//! Measures the time of a random 4 KiB read and write in each store, on one thread.
//!
//! ```sh
//! cargo run --release -p weir-store --example store_speed -- [FOLDER]
//! ```
//!
//! The files are made in FOLDER, by default the one for temporary files.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "prints what it measures with a clock"
)]

use std::hint::black_box;
use std::time::Instant;
use weir_store::{FileStore, MemoryStore, PagedStore, Result, Store};
use weir_units::Bytes;

const BLOCK: usize = 4096;
const BLOCK_LEN: u64 = BLOCK as u64;
const OPERATIONS: u64 = 1_000_000;
const SIZE: Bytes = Bytes::gib(32 << 10);

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, Into::into);
    let dir = tempfile::tempdir_in(folder)?;
    println!("ns per 4 KiB operation at a random block of the range, {OPERATIONS} operations");
    println!("{:<8} {:>8} {:>8} {:>8} {:>8}", "store", "range", "read", "try", "write");
    for range in [Bytes::mib(1), Bytes::mib(16), Bytes::mib(256), Bytes::gib(1)] {
        report("memory", range, &MemoryStore::new(SIZE))?;
        let paged = PagedStore::in_memory(SIZE);
        report("paged", range, &paged)?;
        paged.snapshot()?;
        report("over one", range, &paged)?;
        let files = FileStore::open(dir.path(), SIZE)?;
        report("files", range, &files)?;
        files.trim(0, SIZE.get())?;
    }
    Ok(())
}

fn report(name: &str, range: Bytes, store: &impl Store) -> Result<()> {
    let mut block = [7; BLOCK];
    for at in 0..range.get() / BLOCK_LEN {
        store.write_at(at * BLOCK_LEN, &block)?;
    }
    let read = time(range, |at| store.read_at(at, black_box(&mut block)))?;
    let try_read = time(range, |at| store.try_read_at(at, black_box(&mut block)).map(|_| ()))?;
    let write = time(range, |at| store.write_at(at, black_box(&block)))?;
    println!("{name:<8} {:>8} {read:>8} {try_read:>8} {write:>8}", range.to_string());
    Ok(())
}

/// Nanoseconds per operation.
fn time(range: Bytes, mut operation: impl FnMut(u64) -> Result<()>) -> Result<u128> {
    let mut random = 1_u64;
    let start = Instant::now();
    for _ in 0..OPERATIONS {
        // Marsaglia's xorshift64.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        operation(random % (range.get() / BLOCK_LEN) * BLOCK_LEN)?;
    }
    Ok(start.elapsed().as_nanos() / u128::from(OPERATIONS))
}
