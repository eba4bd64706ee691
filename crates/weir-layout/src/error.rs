//! Every way in which a layout can be wrong. A message says where, what and what
//! to do; the place is the file's name and the line.

use std::fmt;
use weir_catalog::CatalogError;
use weir_core::SpecError;

/// Why a layout cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {kind}")]
pub struct LayoutError {
    /// File and line.
    pub place: Place,
    /// What is wrong.
    pub kind: Kind,
}

/// A file and, where it is known, a line in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file as the caller named it.
    pub file: String,
    /// From 1.
    pub line: Option<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        self.line.map_or(Ok(()), |line| write!(f, ":{line}"))
    }
}

/// What is wrong with a layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Kind {
    /// Not TOML, an unknown key, or a value of another kind.
    #[error("{message}")]
    Syntax {
        /// What the reader says.
        message: String,
    },
    /// A name or size that the catalog does not have.
    #[error("{0}")]
    Catalog(Box<CatalogError>),
    /// Two keys that exclude each other, or one that needs another.
    #[error("{what}: {reason}")]
    Contradiction {
        /// The host, volume or stripe.
        what: String,
        /// Which keys, and what to do.
        reason: String,
    },
    /// A name that is used twice.
    #[error("the name {name:?} is used twice; exports need names of their own")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// A name that cannot be an export or a folder.
    #[error(
        "the name {name:?} cannot be used; take letters, digits, '.', '_' and '-', at most 100, not first '.'"
    )]
    BadName {
        /// The name.
        name: String,
    },
    /// A volume or host that is referred to and is not there.
    #[error("{what} refers to {name:?}, which is not in this layout{}", Near(.near))]
    Missing {
        /// Who refers to it.
        what: String,
        /// The name.
        name: String,
        /// The closest name that there is.
        near: Option<String>,
    },
    /// More disks than the machine takes.
    #[error(
        "host {host:?}: {count} disks are more than the {max} that {size} takes; use fewer or larger disks, or a larger size"
    )]
    TooManyDisks {
        /// The host.
        host: String,
        /// Its size.
        size: String,
        /// Disks in the layout.
        count: usize,
        /// Disks that it takes.
        max: u32,
    },
    /// A cache where none can be.
    #[error("volume {volume:?}: no host cache is possible: {reason}; set cache = \"none\"")]
    NotCacheable {
        /// The volume.
        volume: String,
        /// Why.
        reason: String,
    },
    /// An engine cannot be made of it.
    #[error("{0}")]
    Spec(SpecError),
}

impl From<CatalogError> for Kind {
    fn from(error: CatalogError) -> Self {
        Self::Catalog(Box::new(error))
    }
}

struct Near<'a>(&'a Option<String>);

impl fmt::Display for Near<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |near| write!(f, "; did you mean {near:?}?"))
    }
}

/// Where a text stands, to turn byte positions into lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
}

impl Source<'_> {
    pub(crate) fn at(&self, offset: Option<usize>, kind: Kind) -> LayoutError {
        let line = |at: usize| self.text[..at.min(self.text.len())].matches('\n').count() + 1;
        LayoutError { place: Place { file: self.name.to_owned(), line: offset.map(line) }, kind }
    }

    /// A reader's error, with the nearest known key where a key is unknown.
    pub(crate) fn syntax(&self, error: &toml::de::Error) -> LayoutError {
        let mut message = error.message().replace('\n', " ");
        if let Some(near) = nearest_key(&message) {
            message = format!("{}; did you mean `{near}`?", message.trim_end());
        }
        self.at(error.span().map(|span| span.start), Kind::Syntax { message })
    }
}

/// The key closest to the unknown one of a message like
/// "unknown field `teir`, expected one of `name`, `tier`".
fn nearest_key(message: &str) -> Option<String> {
    let mut quoted = message.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2);
    let unknown = quoted.next()?;
    nearest(unknown, quoted)
}

/// The candidate within a third of the letters of `name`.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let allowed = (name.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(name, candidate), candidate))
        .filter(|(edits, _)| *edits <= allowed)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate.to_owned())
}
