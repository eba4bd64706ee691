//! A reason why there is no diagnosis.

use crate::system::mapping::Unmatched;

/// A reason why there is no diagnosis.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiagnoseError {
    /// A layout of another system.
    #[error(
        "no name in the observation is in the layout: the observation has {}; the layout has {}; map names with --map OBSERVED=LAYOUT",
        Observed(.unmatched), .known.join(", ")
    )]
    NoneMatches {
        /// Names in the observation.
        unmatched: Vec<Unmatched>,
        /// Names in the layout.
        known: Vec<String>,
    },
    /// A mapping of a name that is nowhere.
    #[error("--map: there is no {name:?} in the {what}{}", weir_units::did_you_mean(.near))]
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
        "--map: {name:?} is ambiguous in the observation: {}; add the host or database as shown",
        .candidates.join(", ")
    )]
    Ambiguous {
        /// The name.
        name: String,
        /// Qualified names of the candidates.
        candidates: Vec<String>,
    },
    /// A mapping to a name that another entity of the observation has.
    #[error(
        "--map {observed}={name}: the observation also has {name:?}; remove this --map, or map {name:?} to another name"
    )]
    Taken {
        /// Name in the observation.
        observed: String,
        /// The name.
        name: String,
    },
    /// The observation has no I/O.
    #[error(
        "the observation has no reads and writes, so there is nothing to diagnose: it has {has}; observe files or volumes (operations, bytes and, if possible, latency)"
    )]
    NoLoad {
        /// Contents of the observation.
        has: String,
    },
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
