//! Answers of the backup planner.

use super::settings::Settings;
use crate::answer::Line;
use crate::cost::Cost;
use weir_units::{Bytes, BytesPerSec, Span};

/// The binding limit of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Binding {
    /// A limit of the machine, which reads and writes share.
    Machine {
        /// The name of the limit.
        limit: String,
    },
    /// A limit of a source disk.
    Source {
        /// The source.
        place: String,
        /// The name of the limit.
        limit: String,
    },
    /// A limit of a target disk.
    Target {
        /// The target.
        place: String,
        /// The name of the limit.
        limit: String,
    },
    /// The processors that compress.
    Compression,
    /// The limit of the backup itself.
    Limit,
    /// No limit: latency binds, with too few transfers in flight.
    Latency,
}

/// The slowdown of databases beside a backup.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Slowdown {
    /// The share of transactions per second that is lost.
    pub throughput: f64,
    /// The share by which response times are longer.
    pub response: f64,
}

impl Slowdown {
    /// Returns the larger of the two.
    #[must_use]
    pub fn worst(&self) -> f64 {
        self.throughput.max(self.response)
    }
}

/// Target disks with stripes, and their simulated duration.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The disks in words, like `2 x P30`.
    pub disks: String,
    /// The family of the disks.
    pub family: String,
    /// The tier, unless limits are bought.
    pub tier: Option<String>,
    /// Number of disks.
    pub count: u64,
    /// Stripes on each disk, and the size of transfers.
    pub settings: Settings,
    /// Highest rate at which the sources are read together.
    pub limit: Option<BytesPerSec>,
    /// Buffers of a set.
    pub buffer_count: u32,
    /// The price of the disks.
    pub cost: Cost,
    /// The price by line.
    pub lines: Vec<Line>,
    /// The simulated duration.
    pub duration: Span,
    /// True if a part was simulated and the duration was extrapolated from it.
    pub is_extrapolated: bool,
    /// The binding limit.
    pub binding: Binding,
    /// The slowdown of databases beside it.
    pub slowdown: Option<Slowdown>,
    /// The layout with the disks.
    pub layout: String,
    /// The description of the backup.
    pub backup: String,
}

impl Choice {
    /// Returns the stripes of all disks.
    #[must_use]
    pub fn stripes(&self) -> u64 {
        self.settings.stripes * self.count
    }
}

/// The answer if the window can be met.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The cheapest choice that meets the window.
    pub plan: Choice,
    /// The fastest of the cheaper choices, which misses the window.
    pub cheaper: Option<Choice>,
    /// The cheapest choice that is at least 5 % faster.
    pub better: Option<Choice>,
    /// Number of simulated choices of disks, stripes and transfers.
    pub simulated: u64,
    /// Number of choices that their lower bound excluded.
    pub excluded: u64,
    /// Notes about assumptions and omissions.
    pub notes: Vec<String>,
}

/// A change of the question with which a backup meets its window.
#[derive(Debug, Clone, PartialEq)]
pub struct Relaxation {
    /// The option to change, with its new value.
    pub what: String,
    /// The choice that meets the window after the change.
    pub then: Option<Choice>,
}

/// The answer if no choice meets the window.
#[derive(Debug, Clone, PartialEq)]
pub struct Shortest {
    /// The cheapest of the fastest choices.
    pub fastest: Choice,
    /// Possible changes, the smallest first.
    pub relaxations: Vec<Relaxation>,
    /// Number of simulated choices of disks, stripes and transfers.
    pub simulated: u64,
    /// Notes about assumptions and omissions.
    pub notes: Vec<String>,
}

/// The outcome of a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The window can be met.
    Met(Box<Answer>),
    /// No choice meets the window.
    NotMet(Box<Shortest>),
}

/// Returns the rate of a backup in bytes per second of its whole duration.
#[must_use]
pub fn rate(size: Bytes, duration: Span) -> u64 {
    let per_s = u128::from(size.get()) * 1_000_000_000 / u128::from(duration.nanos().max(1));
    u64::try_from(per_s).unwrap_or(u64::MAX)
}
