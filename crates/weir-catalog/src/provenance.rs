//! Sources and conflicts of figures.
//!
//! Every table of an edition states its document and date, and a row keeps the conflicts between
//! sources, so that readers can judge them.

use std::sync::Arc;

/// A document and its date. Cheap to clone, since thousands of figures share one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Citation {
    /// The document.
    pub source: Arc<str>,
    /// Date of the document; a period or two dates if the document has them.
    pub as_of: Arc<str>,
}

impl Citation {
    pub(crate) fn new(source: &str, as_of: &str) -> Self {
        Self { source: source.into(), as_of: as_of.into() }
    }
}

/// The sources of a row, with conflicts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    pub(crate) citation: Citation,
    pub(crate) figures: Vec<(String, Citation)>,
    pub(crate) notes: Vec<String>,
    pub(crate) conflicts: Vec<String>,
    pub(crate) history: Vec<String>,
}

impl Provenance {
    /// Returns the provenance of figures that are all of one document.
    pub(crate) fn cited(citation: Citation) -> Self {
        let (figures, notes, conflicts, history) = Default::default();
        Self { citation, figures, notes, conflicts, history }
    }

    /// Returns the document of all figures without their own.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.citation.source
    }

    /// Returns the date of that document.
    #[must_use]
    pub fn as_of(&self) -> &str {
        &self.citation.as_of
    }

    /// Returns the document of a figure: one of [`crate::figures::NAMES`] or a part of one. A part
    /// (`cached.burst.iops`) defaults to the whole (`cached.burst`, `cached`).
    #[must_use]
    pub fn of(&self, figure: &str) -> &Citation {
        match self.figures.iter().find(|(name, _)| name == figure) {
            Some((_, citation)) => citation,
            None => figure.rsplit_once('.').map_or(&self.citation, |(whole, _)| self.of(whole)),
        }
    }

    /// Returns notes on the interpretation of the figures.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns conflicts with other sources. The row has the figure in use.
    #[must_use]
    pub fn conflicts(&self) -> &[String] {
        &self.conflicts
    }

    /// Returns earlier or later values of figures.
    #[must_use]
    pub fn history(&self) -> &[String] {
        &self.history
    }
}
