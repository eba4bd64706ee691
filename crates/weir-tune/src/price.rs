//! The monthly price of a layout.

use crate::error::TuneError;
use weir_catalog::Catalog;
use weir_layout::Layout;
use weir_layout::bill::Bill;
use weir_units::Money;

/// The price of a layout, as far as its edition has prices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Price {
    /// The lines.
    pub bill: Bill,
    /// The currency; `None` without prices.
    pub currency: Option<String>,
    /// The region; `None` without prices.
    pub region: Option<String>,
}

impl Price {
    /// Prices a layout by its own region, or by the default region of its edition.
    ///
    /// # Errors
    ///
    /// [`TuneError::Catalog`] if the edition has no such region.
    pub fn of_layout(layout: &Layout, catalog: &Catalog) -> Result<Self, TuneError> {
        let Some(name) = &layout.edition else { return Ok(Self::default()) };
        let edition = catalog.edition(name)?;
        let book = edition.price_book(layout.region.as_deref(), None, None)?;
        Ok(Self {
            bill: layout.bill(Some(edition), book.as_ref()),
            currency: book.as_ref().map(|book| book.currency().to_owned()),
            region: book.as_ref().map(|book| book.region().to_owned()),
        })
    }

    /// Returns the sum of all known prices.
    #[must_use]
    pub fn month(&self) -> Money {
        self.bill.month()
    }

    /// Returns the number of items without a price.
    #[must_use]
    pub fn unknown(&self) -> usize {
        self.bill.unknown().count()
    }

    /// Returns the rank among the prices of changes from `present`: a difference that is not known
    /// ranks last, then the lower known price ranks first.
    pub(crate) fn rank(&self, present: &Self) -> (bool, Money) {
        (!self.bill.is_comparable(&present.bill), self.month())
    }
}
