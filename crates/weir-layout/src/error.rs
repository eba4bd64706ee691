//! Errors of layouts. A message has the place (file, line and column of the key), the problem and
//! its remedy.

use std::fmt;
use toml::de::{DeArray, DeTable};
use weir_catalog::{Catalog, CatalogError, Edition};
use weir_core::SpecError;
use weir_units::{Bytes, did_you_mean, parser_message};

/// An error of a layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {kind}")]
pub struct LayoutError {
    /// File, line and column.
    pub place: Place,
    /// Problem.
    pub kind: Kind,
}

/// A file and a place in it, if known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file as the caller named it.
    pub file: String,
    /// Line and column, both from 1; columns count characters.
    pub at: Option<(usize, usize)>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        self.at.map_or(Ok(()), |(line, column)| write!(f, ":{line}:{column}"))
    }
}

/// A problem of a layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Kind {
    /// Invalid TOML, an unknown key, or a value of another type.
    #[error("{message}")]
    Syntax {
        /// Message of the parser.
        message: String,
    },
    /// A name or size that is not in the catalog.
    #[error("{0}")]
    Catalog(Box<CatalogError>),
    /// Two keys that exclude each other, or one that needs another.
    #[error("{what}: {reason}")]
    Contradiction {
        /// The host, volume or stripe.
        what: String,
        /// The keys, and the remedy.
        reason: String,
    },
    /// A text that is too large for a layout.
    #[error("a layout has at most {most}; this file has more, so it may be something else")]
    TooLarge {
        /// Maximum size.
        most: Bytes,
    },
    /// More hosts, volumes or files than a layout can have.
    #[error(
        "the layout has {count} {what}, and at most {most} are possible; divide it into several"
    )]
    TooMany {
        /// The kind of the tables.
        what: &'static str,
        /// Number in the layout, or in its part up to the place of the error.
        count: usize,
        /// Maximum number.
        most: usize,
    },
    /// A name that is used twice.
    #[error("the name {name:?} is used twice; each export needs its own name")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// An invalid name for an export or a folder.
    #[error(
        "the name {name:?} is not valid; use at most 100 letters, digits, '.', '_' and '-', and no \
         '.' at the start"
    )]
    BadName {
        /// The name.
        name: String,
    },
    /// A reference to a volume or host that does not exist.
    #[error("{what} refers to {name:?}, which is not in this layout{}", did_you_mean(.near))]
    Missing {
        /// Subject of the message.
        what: String,
        /// The name.
        name: String,
        /// Nearest existing name.
        near: Option<String>,
    },
    /// Too many disks for the machine.
    #[error(
        "host {host:?}: {count} disks are more than the {max} that {size} can attach; use fewer or \
         larger disks, or a larger size"
    )]
    TooManyDisks {
        /// The host.
        host: String,
        /// Size.
        size: String,
        /// Disks in the layout.
        count: usize,
        /// Maximum number of disks.
        max: u32,
    },
    /// A machine that is not in the catalog, or is ambiguous.
    #[error("{0}; or leave size out and give limits = {{ .. }}")]
    NoSuchMachine(Box<CatalogError>),
    /// A lookup in a layout without an edition.
    #[error(
        "{what}: {needs} is looked up in an edition; add edition = \"..\" at the top (one of \
         {editions}), or give limits = {{ .. }}"
    )]
    NoEdition {
        /// The host or volume.
        what: String,
        /// Object of the lookup.
        needs: &'static str,
        /// Existing editions.
        editions: String,
    },
    /// A cache on a volume that cannot have one.
    #[error("volume {volume:?}: no host cache is possible: {reason}; set its cache to none")]
    NotCacheable {
        /// The volume.
        volume: String,
        /// Reason.
        reason: String,
    },
    /// Files that are larger than their volume or stripe.
    #[error(
        "{files} on {export:?} take {total}, {} more than its {size}; enlarge it, or make the \
         files smaller",
        Bytes::new(total.get().saturating_sub(size.get()))
    )]
    DoesNotFit {
        /// The volume or stripe.
        export: String,
        /// Number of files, in words.
        files: String,
        /// Total size of the files.
        total: Bytes,
        /// Size of the export.
        size: Bytes,
    },
    /// Files beyond the limits of a managed instance.
    #[error("{0}")]
    BeyondLimit(Box<Beyond>),
    /// An invalid input of the engine.
    #[error("{0}")]
    Spec(SpecError),
}

/// Files beyond a limit of a managed instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beyond {
    /// The host.
    pub host: String,
    /// Limited quantity.
    pub what: &'static str,
    /// Value in the layout.
    pub used: String,
    /// Excess.
    pub over: String,
    /// The limit, in words.
    pub most: String,
}

impl fmt::Display for Beyond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, what, used, over, most } = self;
        write!(f, "host {host:?}: {what} is {used}, {over} more than {most}")
    }
}

impl From<CatalogError> for Kind {
    fn from(error: CatalogError) -> Self {
        Self::Catalog(Box::new(error))
    }
}

/// An invalid key, and the reason.
pub type Wrong = (&'static str, String);

/// A problem with the key of its table.
#[derive(Debug)]
pub(crate) struct Fault {
    /// The names that lead to the key, like `limits.burst.iops`; the table itself if
    /// empty.
    key: String,
    pub(crate) kind: Kind,
}

impl From<Kind> for Fault {
    fn from(kind: Kind) -> Self {
        Self { key: String::new(), kind }
    }
}

impl Kind {
    /// Creates the error for a lookup without an edition. [`Source::at`] adds the names of
    /// editions.
    pub(crate) fn no_edition(what: String, needs: &'static str) -> Self {
        Self::NoEdition { what, needs, editions: String::new() }
    }

    /// Returns the fault of `key`.
    pub(crate) fn at(self, key: impl Into<String>) -> Fault {
        Fault { key: key.into(), kind: self }
    }
}

impl Fault {
    /// Returns the fault relative to the table that contains this one under `outer`.
    pub(crate) fn within(self, outer: &str) -> Self {
        let key = if self.key.is_empty() { outer.into() } else { format!("{outer}.{}", self.key) };
        Self { key, ..self }
    }
}

/// The text of a layout, for places in messages, and the catalog.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
    pub(crate) catalog: &'a Catalog,
}

impl Source<'_> {
    /// Returns the error for a fault, with its place in the file.
    pub(crate) fn at(&self, mut fault: Fault) -> LayoutError {
        if let Kind::NoEdition { editions, .. } = &mut fault.kind {
            let known: Vec<&str> = self.catalog.editions().map(Edition::name).collect();
            *editions = known.join(", ");
        }
        let offset = self.find(&fault.key);
        self.at_offset(offset, fault.kind)
    }

    fn at_offset(&self, offset: Option<usize>, kind: Kind) -> LayoutError {
        let place = |offset: usize| {
            let before = self.text.get(..offset).unwrap_or(self.text);
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
            (before.matches('\n').count() + 1, column + 1)
        };
        LayoutError { place: Place { file: self.name.to_owned(), at: offset.map(place) }, kind }
    }

    /// Returns the position of the last key of `path` that exists: for `volume.2.tier` the `tier` of
    /// the third volume, or its `[[volume]]` if it has no tier.
    fn find(&self, path: &str) -> Option<usize> {
        let root = DeTable::parse(self.text).ok()?;
        let mut table = Some(root.get_ref());
        let mut list: Option<&DeArray<'_>> = None;
        let mut found = None;
        for name in path.split('.') {
            let value = match (table, list, name.parse::<usize>()) {
                (Some(table), ..) => {
                    let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref() == name)
                    else {
                        // `[host]` may stand for a list of one.
                        if name.parse::<usize>().is_ok() {
                            continue;
                        }
                        break;
                    };
                    found = Some(key.span().start);
                    value
                }
                (None, Some(list), Ok(index)) => {
                    let Some(value) = list.get(index) else { break };
                    found = Some(value.span().start);
                    value
                }
                _ => break,
            };
            table = value.get_ref().as_table();
            list = value.get_ref().as_array();
        }
        found
    }

    /// Returns the error of the parser, with the nearest known key for an unknown one.
    pub(crate) fn syntax(&self, error: &toml::de::Error) -> LayoutError {
        let message = parser_message(error.message());
        self.at_offset(error.span().map(|span| span.start), Kind::Syntax { message })
    }
}
