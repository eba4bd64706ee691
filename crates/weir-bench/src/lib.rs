//! Helpers that the benchmarks share. Each benchmark is a program:
//!
//! ```console
//! $ cargo run --release -p weir-bench --bin accuracy -- virtual
//! $ cargo run --release -p weir-bench --bin accuracy -- wall
//! $ cargo build --release && cargo run --release -p weir-bench --bin peers
//! $ cargo run --release -p weir-bench --bin latency
//! $ cargo build --release && cargo run --release -p weir-bench --bin tls
//! $ cargo build --release && cargo run --release -p weir-bench --bin backends
//! $ cargo run --release -p weir-sim --example speed
//! ```

#![forbid(unsafe_code)]

pub mod fio;
pub mod peer;
pub mod quiet;

use std::error::Error;
use weir_catalog::Catalog;
use weir_layout::Layout;
use weir_workload::{Isolated, Placed, place};

/// Whatever stops a benchmark.
pub type Failure = Box<dyn Error>;

/// Returns a layout and the jobs on it.
///
/// # Errors
///
/// The reason.
pub fn prepare(layout: &str, jobs: &str) -> Result<(Layout, Vec<Placed>), Failure> {
    let layout = Layout::parse("bench", layout, &Catalog::builtin())?;
    let jobs = weir_workload::fio::parse("bench", jobs, &Isolated)?;
    let placed = place(&jobs, &weir_sim::devices(&layout), &[])?;
    Ok((layout, placed))
}

/// Returns the middle one of several values, after sorting.
#[must_use]
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns the least and the most of several values.
#[must_use]
pub fn range(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    (least, values.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}
