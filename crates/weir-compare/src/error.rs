//! A reason why there is no comparison.

use weir_catalog::CatalogError;
use weir_layout::LayoutError;
use weir_observe::{ReadError, WriteError};
use weir_sim::{OltpSimError, SimError};
use weir_workload::PlaceError;

/// A reason why there is no comparison.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// Inputs of different kinds.
    #[error(
        "{one} is {kind} and {other} is {other_kind}: compare inputs of one kind; weir sim --observe or \
         weir run --observe makes an observation of a layout"
    )]
    Kinds {
        /// A side.
        one: String,
        /// Its kind.
        kind: &'static str,
        /// Another side.
        other: String,
        /// Its kind.
        other_kind: &'static str,
    },
    /// Only one side.
    #[error("there is nothing to compare with: give two or more inputs")]
    OneSide,
    /// A folder without inputs.
    #[error("{name}: the folder has no files; each file in it is one repetition of a measurement")]
    Empty {
        /// The side.
        name: String,
    },
    /// Layouts without a workload.
    #[error(
        "layouts are compared by simulation: give the workload with --workload FILE, a fio job file or a \
         description of a database or backup"
    )]
    NoWorkload,
    /// A workload without layouts.
    #[error("--workload is for layouts, and the inputs are {kind}: leave it out")]
    UselessWorkload {
        /// Kind of the inputs.
        kind: &'static str,
    },
    /// Too few values.
    #[error("{name} is too short to compare: {has}; {needs}")]
    TooShort {
        /// The side.
        name: String,
        /// The available values.
        has: String,
        /// The necessary values.
        needs: String,
    },
    /// No metric that both sides have.
    #[error(
        "{one} and {other} have no common subject: {one} has {of_one}; {other} has {of_other}; map \
         names with --map NAME_IN_OTHER=NAME_IN_A, or compare sums only with --total"
    )]
    NothingCommon {
        /// The first side.
        one: String,
        /// Its subjects.
        of_one: String,
        /// The other side.
        other: String,
        /// Its subjects.
        of_other: String,
    },
    /// A name that is mapped twice.
    #[error("--map: {name} is given twice; map each name of the other sides to another name of A")]
    MappedTwice {
        /// The name.
        name: String,
    },
    /// Two subjects with one name after a map.
    #[error(
        "--map: {one} and {other} of {side} would both be called {name}; map the other one as well, \
         for example --map {name}={one}"
    )]
    SameName {
        /// The side.
        side: String,
        /// The name.
        name: String,
        /// A subject.
        one: String,
        /// Another subject.
        other: String,
    },
    /// An unknown subject or metric in an option.
    #[error("{option} {name}: there is no such {what} in both inputs{}; there are: {known}",
        weir_units::did_you_mean(.near))]
    Unknown {
        /// The option.
        option: &'static str,
        /// Subject or metric.
        what: &'static str,
        /// The name.
        name: String,
        /// The nearest that there is.
        near: Option<String>,
        /// The names that there are.
        known: String,
    },
    /// A result that is none of Weir's.
    #[error("{name}: {reason}")]
    Result {
        /// The side.
        name: String,
        /// The reason.
        reason: String,
    },
    /// An observation that cannot be read.
    #[error("{name}: {source}")]
    Read {
        /// The side.
        name: String,
        /// The reason.
        source: ReadError,
    },
    /// A simulation that cannot be recorded.
    #[error("{name}: {source}")]
    Observe {
        /// The layout.
        name: String,
        /// The reason.
        source: WriteError,
    },
    /// A layout that is wrong.
    #[error("{0}")]
    Layout(#[from] LayoutError),
    /// An edition that is wrong.
    #[error("{0}")]
    Catalog(#[from] CatalogError),
    /// A job that does not fit a layout.
    #[error("{name}: {source}")]
    Place {
        /// The layout.
        name: String,
        /// The reason.
        source: Box<PlaceError>,
    },
    /// A simulation that is impossible.
    #[error("{name}: {source}")]
    Simulation {
        /// The layout.
        name: String,
        /// The reason.
        source: Box<SimError>,
    },
    /// A database or backup that does not fit a layout.
    #[error("{name}: {source}")]
    Database {
        /// The layout.
        name: String,
        /// The reason.
        source: Box<OltpSimError>,
    },
}
