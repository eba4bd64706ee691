//! Where a figure comes from, and who says otherwise.
//!
//! A limit without a source is a rumour: every table of an edition states its
//! document and date, and a row keeps the disagreements that were found, so that
//! the reader and not the catalog decides whom to believe.

/// A document and its date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Citation {
    /// The document.
    pub source: String,
    /// Its date; a period or two dates where the document has them.
    pub as_of: String,
}

/// The sources of a row, with what contradicts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    pub(crate) citation: Citation,
    pub(crate) figures: Vec<(String, Citation)>,
    pub(crate) notes: Vec<String>,
    pub(crate) conflicts: Vec<String>,
    pub(crate) history: Vec<String>,
}

impl Provenance {
    /// The document behind every figure that has none of its own.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.citation.source
    }

    /// The date of that document.
    #[must_use]
    pub fn as_of(&self) -> &str {
        &self.citation.as_of
    }

    /// The document behind one figure of the row: one of [`crate::figures::NAMES`], or
    /// a part of one. A part (`cached.burst.iops`) without a document of its own has
    /// that of the whole (`cached.burst`, `cached`).
    #[must_use]
    pub fn of(&self, figure: &str) -> &Citation {
        match self.figures.iter().find(|(name, _)| name == figure) {
            Some((_, citation)) => citation,
            None => figure.rsplit_once('.').map_or(&self.citation, |(whole, _)| self.of(whole)),
        }
    }

    /// Remarks that are needed to read the figures right.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Where another source gives another figure; the row holds the one used.
    #[must_use]
    pub fn conflicts(&self) -> &[String] {
        &self.conflicts
    }

    /// What a figure was before, or what became of it.
    #[must_use]
    pub fn history(&self) -> &[String] {
        &self.history
    }
}
