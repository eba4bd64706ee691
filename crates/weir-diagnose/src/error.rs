//! Why there is no diagnosis.

use crate::system::Unmatched;

/// Why there is no diagnosis.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiagnoseError {
    /// A layout of another system.
    #[error(
        "no name of the observation is in the layout: observed are {}; the layout has {}; say which is which with --map OBSERVED=LAYOUT",
        Observed(.unmatched), .known.join(", ")
    )]
    NoneMatches {
        /// Who is observed.
        unmatched: Vec<Unmatched>,
        /// Who is in the layout.
        known: Vec<String>,
    },
    /// A mapping of a name that is nowhere.
    #[error("--map: there is no {name:?} in the {what}{}", Near(.near))]
    Mapping {
        /// Observation or layout.
        what: &'static str,
        /// The name.
        name: String,
        /// The nearest that there is.
        near: Option<String>,
    },
    /// A mapping of a name that several have.
    #[error(
        "--map: several are called {name:?} in the observation: {}; say which with its host or database, as here",
        .candidates.join(", ")
    )]
    Ambiguous {
        /// The name.
        name: String,
        /// Those that have it, with whom they are in.
        candidates: Vec<String>,
    },
    /// A mapping to a name that somebody else in the observation has.
    #[error(
        "--map {observed}={name}: the observation has a {name:?} of its own; leave the map out, or say with another --map who that is"
    )]
    Taken {
        /// Who is said to be it.
        observed: String,
        /// The name.
        name: String,
    },
    /// Nobody's I/O is in it.
    #[error(
        "nobody's reads and writes are in the observation, so there is nothing to diagnose: it has {has}; observe files or volumes (operations and bytes, and latency if it can be had)"
    )]
    NoLoad {
        /// What there is instead.
        has: String,
    },
}

struct Near<'a>(&'a Option<String>);

impl std::fmt::Display for Near<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.as_ref().map_or(Ok(()), |near| write!(f, "; did you mean {near:?}?"))
    }
}

struct Observed<'a>(&'a [Unmatched]);

impl std::fmt::Display for Observed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, Unmatched { name, near }) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            match near {
                Some(near) => write!(f, "{comma}{name} (nearest: {near})")?,
                None => write!(f, "{comma}{name}")?,
            }
        }
        Ok(())
    }
}
