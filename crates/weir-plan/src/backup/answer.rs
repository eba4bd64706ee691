//! What is found for a backup.

use super::trial::Settings;
use crate::answer::Line;
use crate::cost::Cost;
use weir_units::{Bytes, Span};

/// The limit that holds a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Binding {
    /// A limit of the machine, which reads and writes share.
    Machine {
        /// The name of the limit.
        limit: String,
    },
    /// A limit of a disk that is read.
    Source {
        /// The source.
        place: String,
        /// The name of the limit.
        limit: String,
    },
    /// A limit of a disk that is written.
    Target {
        /// The target.
        place: String,
        /// The name of the limit.
        limit: String,
    },
    /// The processors that compress.
    Compression,
    /// No limit: each transfer takes its time, and too few are in flight.
    Latency,
}

/// The slowdown of databases beside a backup.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Slowdown {
    /// The part of the transactions that is lost.
    pub throughput: f64,
    /// The part that a transaction takes longer.
    pub response: f64,
}

impl Slowdown {
    /// Returns the larger one.
    #[must_use]
    pub fn worst(&self) -> f64 {
        self.throughput.max(self.response)
    }
}

/// Disks with stripes on them, and what a simulation says.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The disks in words, like `2 x P30`.
    pub disks: String,
    /// The family of the disks.
    pub family: String,
    /// Their tier, if they have one.
    pub tier: Option<String>,
    /// How many.
    pub count: u64,
    /// Stripes on each disk, and the size of transfers.
    pub settings: Settings,
    /// Buffers of a set.
    pub buffer_count: u32,
    /// The price of the disks.
    pub cost: Cost,
    /// The price by line.
    pub lines: Vec<Line>,
    /// The simulated duration.
    pub duration: Span,
    /// Whether a part was simulated, and the whole follows from it.
    pub is_extrapolated: bool,
    /// The limit that holds it.
    pub binding: Binding,
    /// What it costs databases beside it.
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

/// The answer where the window can be met.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The cheapest choice that meets the window.
    pub plan: Choice,
    /// The fastest of those that cost less.
    pub cheaper: Option<Choice>,
    /// The cheapest that is at least 5 % faster.
    pub better: Option<Choice>,
    /// Choices of disks, stripes and transfers that were simulated.
    pub simulated: u64,
    /// Those that their lower bound excluded.
    pub excluded: u64,
    /// What was assumed and left out.
    pub notes: Vec<String>,
}

/// Something that would have to give.
#[derive(Debug, Clone, PartialEq)]
pub struct Relaxation {
    /// The option that gives, and how far.
    pub what: String,
    /// What meets the window then.
    pub then: Option<Choice>,
}

/// The answer where nothing meets the window.
#[derive(Debug, Clone, PartialEq)]
pub struct Shortest {
    /// The cheapest of the fastest.
    pub fastest: Choice,
    /// What could give, the smallest change first.
    pub relaxations: Vec<Relaxation>,
    /// Choices of disks, stripes and transfers that were simulated.
    pub simulated: u64,
    /// What was assumed and left out.
    pub notes: Vec<String>,
}

/// What comes of a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The window can be met.
    Met(Box<Answer>),
    /// Nothing meets it.
    NotMet(Box<Shortest>),
}

/// Returns the rate of a backup: bytes per second of its whole duration.
#[must_use]
pub fn rate(size: Bytes, duration: Span) -> u64 {
    let per_s = u128::from(size.get()) * 1_000_000_000 / u128::from(duration.nanos().max(1));
    u64::try_from(per_s).unwrap_or(u64::MAX)
}
