//! Errors: unknown names, invalid editions, disks that are not offered.

use std::fmt;
use weir_units::{Bytes, BytesPerSec, Iops};

/// The error type of this crate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// A name that is not in the catalog or the edition.
    #[error("unknown {kind} {name:?}{}{}; {known}", Within(.edition.as_deref()), weir_units::did_you_mean(.near))]
    Unknown {
        /// The kind of the object.
        kind: Kind,
        /// The name that was given.
        name: String,
        /// The edition that was searched; `None` if all were.
        edition: Option<String>,
        /// The closest name that there is.
        near: Option<String>,
        /// The names that there are, or the first of them.
        known: String,
    },
    /// A name that several things of one edition have.
    #[error(
        "{kind} {name:?} is in {edition} several times, with different limits; write one of {}",
        .choices.join(", ")
    )]
    Ambiguous {
        /// The kind of the object.
        kind: Kind,
        /// The name that was given.
        name: String,
        /// The edition.
        edition: String,
        /// The names that say which is meant.
        choices: Vec<String>,
    },
    /// An edition of that name is already there.
    #[error("the catalog already has an edition {name:?}; give yours another name")]
    DuplicateEdition {
        /// The edition's name.
        name: String,
    },
    /// An edition that is not TOML, or has a key or a value that is not known.
    #[error("{origin}{}: {message}", At(.at))]
    Syntax {
        /// Where the text came from, as the caller named it.
        origin: String,
        /// Line and column, both from 1; columns count characters.
        at: Option<(usize, usize)>,
        /// Description of the problem.
        message: String,
    },
    /// An edition that contradicts itself or leaves something out.
    #[error("{origin}: {place}: {reason}")]
    Invalid {
        /// Where the text came from, as the caller named it.
        origin: String,
        /// The table or row.
        place: String,
        /// Description of the problem and its remedy.
        reason: String,
    },
    /// Prices of a region, a currency or an operating system that there are none of.
    #[error(
        "there are no prices of {asked}; {}{}",
        if .known.is_empty() { "the edition has none".to_owned() } else { format!("there are: {known}") },
        weir_units::did_you_mean(.near)
    )]
    NoPrices {
        /// The requested region, currency or operating system.
        asked: String,
        /// The available ones.
        known: String,
        /// The closest region that there is.
        near: Option<String>,
    },
    /// A size that no tier of the set holds.
    #[error(
        "{size} is more than the largest tier of {set} holds ({largest}: {holds}); use several: disks in a stripe, files of one database"
    )]
    TooLarge {
        /// The size asked for.
        size: Bytes,
        /// The tier set.
        set: String,
        /// The largest tier's name.
        largest: String,
        /// The largest size that snaps to it.
        holds: Bytes,
    },
    /// A size outside of what a provisioned family offers.
    #[error("{family}: {size} is not offered; sizes go from {min} to {max}")]
    SizeOutOfRange {
        /// The family.
        family: String,
        /// The size asked for.
        size: Bytes,
        /// The smallest.
        min: Bytes,
        /// The largest.
        max: Bytes,
    },
    /// A size between two steps of a provisioned family.
    #[error("{family}: {size} is not offered; sizes go in steps of {step}, the next is {next}")]
    SizeOffStep {
        /// The family.
        family: String,
        /// The size asked for.
        size: Bytes,
        /// The step.
        step: Bytes,
        /// The smallest size on a step that is large enough.
        next: Bytes,
    },
    /// IOPS that cannot be provisioned at that size.
    #[error("{family}: {want} cannot be provisioned at {size}; from {min} to {max} can")]
    IopsOutOfRange {
        /// The family.
        family: String,
        /// The rate asked for.
        want: Iops,
        /// The disk's size.
        size: Bytes,
        /// The lowest rate.
        min: Iops,
        /// The highest rate at this size.
        max: Iops,
    },
    /// A throughput that cannot be provisioned with those IOPS.
    #[error("{family}: {want} cannot be provisioned with {iops}; from {min} to {max} can")]
    ThroughputOutOfRange {
        /// The family.
        family: String,
        /// The rate asked for.
        want: BytesPerSec,
        /// The operations per second that go with it.
        iops: Iops,
        /// The lowest rate.
        min: BytesPerSec,
        /// The highest rate with these IOPS.
        max: BytesPerSec,
    },
    /// A throughput between two steps of a provisioned family.
    #[error("{family}: {want} cannot be provisioned; throughput is sold in steps of {step}")]
    ThroughputOffStep {
        /// The family.
        family: String,
        /// The rate asked for.
        want: BytesPerSec,
        /// The step.
        step: BytesPerSec,
    },
    /// A throughput asked for where it comes with the IOPS.
    #[error("{family}: throughput cannot be chosen: {iops} include {throughput}; leave it out")]
    ThroughputFollows {
        /// The family.
        family: String,
        /// The operations per second.
        iops: Iops,
        /// The throughput that is included.
        throughput: BytesPerSec,
    },
    /// A family that includes nothing in its price: the rates must be stated.
    #[error(
        "{family}: state the {what}; nothing is included, from {min} to {max} can be provisioned"
    )]
    NotStated {
        /// The family.
        family: String,
        /// `iops` or `throughput`.
        what: &'static str,
        /// The lowest value.
        min: String,
        /// The highest value.
        max: String,
    },
}

/// The kind of a named object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// An edition.
    Edition,
    /// A tier.
    Tier,
    /// A tier set, or the family that it belongs to.
    TierSet,
    /// A family whose limits are provisioned.
    Provisioned,
    /// A host size.
    Host,
    /// Anything that has a name.
    Anything,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Edition => "edition",
            Self::Tier => "tier",
            Self::TierSet => "tier set or family",
            Self::Provisioned => "provisioned family",
            Self::Host => "host size",
            Self::Anything => "name",
        })
    }
}

/// The most names that a message lists in full.
const SHORT: usize = 12;

/// Names listed before the rest is counted, if there are more than [`SHORT`].
const LISTED: usize = 8;

/// The names that could have been given, as far as that is short; the command `all`
/// prints every one.
pub(crate) fn known<'a>(names: impl IntoIterator<Item = &'a str>, all: &str) -> String {
    let mut known: Vec<&str> = Vec::new();
    for name in names {
        // A size that is published twice has one name.
        if !known.contains(&name) {
            known.push(name);
        }
    }
    match known.len() {
        0 => "there are none".to_owned(),
        1..=SHORT => format!("there are: {}", known.join(", ")),
        n => {
            let listed = known[..LISTED].join(", ");
            format!("there are: {listed} and {} more, which {all} lists", n - LISTED)
        }
    }
}

/// ` in EDITION`.
struct Within<'a>(Option<&'a str>);

impl fmt::Display for Within<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |edition| write!(f, " in {edition}"))
    }
}

/// `:LINE:COLUMN`.
struct At<'a>(&'a Option<(usize, usize)>);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |(line, column)| write!(f, ":{line}:{column}"))
    }
}
