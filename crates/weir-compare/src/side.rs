//! The inputs of a comparison.

use std::collections::BTreeSet;
use weir_catalog::Catalog;
use weir_layout::Layout;
use weir_observe::Header;
use weir_observe::joined::Chunks;
use weir_workload::JobFile;

/// A side of the comparison: one input, or repetitions of one measurement.
#[derive(Debug)]
pub struct Side {
    /// Its name, for example a path.
    pub name: String,
    /// The inputs.
    pub inputs: Vec<Input>,
}

/// An input.
#[derive(Debug)]
pub enum Input {
    /// An observation.
    Observation(Box<Observed>),
    /// The text of a result in JSON.
    Result(String),
    /// A layout.
    Layout(Box<Layout>),
}

/// An observation.
pub struct Observed {
    /// Entities and series, with those declared later in the file.
    pub header: Header,
    /// The samples.
    pub chunks: Chunks,
    /// The layout of the observed system, if it is known.
    pub layout: Option<Layout>,
    /// Notes on the observation.
    pub notes: Vec<String>,
}

impl std::fmt::Debug for Observed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observed").field("header", &self.header).finish_non_exhaustive()
    }
}

/// The kind of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Observation,
    Result,
    Layout,
}

impl Kind {
    pub(crate) const fn singular(self) -> &'static str {
        match self {
            Self::Observation => "an observation",
            Self::Result => "the result of a run",
            Self::Layout => "a layout",
        }
    }

    pub(crate) const fn plural(self) -> &'static str {
        match self {
            Self::Observation => "observations",
            Self::Result => "results",
            Self::Layout => "layouts",
        }
    }
}

impl Input {
    pub(crate) const fn kind(&self) -> Kind {
        match self {
            Self::Observation(_) => Kind::Observation,
            Self::Result(_) => Kind::Result,
            Self::Layout(_) => Kind::Layout,
        }
    }
}

/// The workload by which layouts are compared.
#[derive(Debug)]
pub enum Workload {
    /// Jobs of fio.
    Jobs(JobFile),
    /// Databases and backups.
    Descriptions(Vec<weir_oltp::Description>, Vec<weir_pipeline::Description>),
}

/// Options of a comparison.
#[derive(Debug, Clone)]
pub struct Options {
    /// The share by which a side may be worse than the first.
    pub tolerance: f64,
    /// The subjects to compare; those with the most load if empty.
    pub subjects: BTreeSet<String>,
    /// The metrics that decide; rates and latencies if empty.
    pub metrics: BTreeSet<String>,
    /// Names in later sides and the names in the first side that they stand for.
    pub map: Vec<(String, String)>,
    /// Compares sums only.
    pub total_only: bool,
    /// Number of simulations of each layout.
    pub seeds: u64,
    /// Seed of the first simulation.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tolerance: 0.05,
            subjects: BTreeSet::new(),
            metrics: BTreeSet::new(),
            map: Vec::new(),
            total_only: false,
            seeds: 10,
            seed: 1,
        }
    }
}

/// A comparison to make.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The catalog, for limits and prices.
    pub catalog: &'a Catalog,
    /// The workload of layouts.
    pub workload: Option<&'a Workload>,
    /// The options.
    pub options: &'a Options,
}
