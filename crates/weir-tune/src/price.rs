//! The monthly price of a layout.

use crate::error::TuneError;
use weir_catalog::{Catalog, Edition, PriceBook};
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

/// The prices of layouts with the same edition and region.
#[derive(Debug)]
pub(crate) struct Pricer<'a> {
    edition: Option<&'a Edition>,
    book: Option<PriceBook<'a>>,
}

impl<'a> Pricer<'a> {
    /// Returns the prices of the layout's region, or of the default region of its edition.
    pub(crate) fn new(layout: &Layout, catalog: &'a Catalog) -> Result<Self, TuneError> {
        let Some(name) = &layout.edition else { return Ok(Self { edition: None, book: None }) };
        let edition = catalog.edition(name)?;
        let book = edition.price_book(layout.region.as_deref(), None, None)?;
        Ok(Self { edition: Some(edition), book })
    }

    /// Returns the edition.
    pub(crate) fn edition(&self) -> Option<&'a Edition> {
        self.edition
    }

    /// Returns the prices; `None` if the edition has none.
    pub(crate) fn book(&self) -> Option<&PriceBook<'a>> {
        self.book.as_ref()
    }

    /// Prices a layout.
    pub(crate) fn price(&self, layout: &Layout) -> Price {
        let Some(edition) = self.edition else { return Price::default() };
        Price {
            bill: layout.bill(Some(edition), self.book()),
            currency: self.book().map(|book| book.currency().to_owned()),
            region: self.book().map(|book| book.region().to_owned()),
        }
    }
}

impl Price {
    /// Prices a layout by its own region, or by the default region of its edition.
    ///
    /// # Errors
    ///
    /// [`TuneError::Catalog`] if the edition has no such region.
    pub fn of_layout(layout: &Layout, catalog: &Catalog) -> Result<Self, TuneError> {
        Ok(Pricer::new(layout, catalog)?.price(layout))
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
