//! Options of runs, and the scaling of wall time.

use crate::file::Lab;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_units::{Bytes, Span};

/// Start of a wall run that is not measured. The first access to memory costs time of the machine
/// that does not belong to the limits.
pub(crate) const WALL_RAMP: Span = Span::from_secs(2);

/// The clocks to run labs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clocks {
    /// The simulator's clock.
    Virtual,
    /// The real clock.
    Wall,
    /// Both clocks.
    Both,
}

/// The driver of jobs in wall time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Driver {
    /// Weir's own runner.
    #[default]
    Weir,
    /// The real fio.
    Fio,
}

/// Options of a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The clocks.
    pub clocks: Clocks,
    /// The driver of jobs in wall time.
    pub driver: Driver,
    /// Maximum size of a job's files in wall time. Larger files of an article get this size.
    pub size: Bytes,
    /// Runtime of each job in wall time, instead of that of the article.
    pub runtime: Span,
    /// Maximum number of runs in wall time until the figures hold. The last run counts, as a whole.
    pub tries: u32,
    /// The random seed.
    pub seed: u64,
    /// A flag that ends the run early.
    pub stop: Arc<AtomicBool>,
}

impl Default for Options {
    /// Both clocks, with wall time scaled so that the DS14 lab ends within two minutes.
    fn default() -> Self {
        Self {
            clocks: Clocks::Both,
            driver: Driver::Weir,
            size: Bytes::mib(64),
            runtime: Span::from_secs(6),
            tries: 1,
            seed: 1,
            stop: Arc::default(),
        }
    }
}

/// Returns the runtime of a lab's jobs in wall time.
pub(crate) fn wall_runtime(lab: &Lab, options: &Options) -> Span {
    lab.file.wall_runtime.unwrap_or(options.runtime)
}

/// Returns the maximum file size in wall time.
pub(crate) fn wall_size(lab: &Lab, options: &Options) -> Bytes {
    lab.file.wall_size.unwrap_or(options.size)
}
