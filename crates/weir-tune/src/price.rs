//! The monthly price of a layout.

use crate::error::TuneError;
use weir_catalog::{Catalog, Edition, PriceBook};
use weir_layout::bill::Bill;
use weir_layout::{Host, Layout};
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
    /// Processors, which rank layouts of the same price, or without prices.
    vcpus: u32,
    /// Bytes of all disks, which rank layouts with as many processors.
    bytes: u64,
}

/// The rank of a price: whether the difference is unknown, the known price, processors and bytes.
pub(crate) type PriceRank = (bool, Money, u32, u64);

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
            vcpus: layout.hosts.iter().map(|host| vcpus(host, edition)).sum(),
            bytes: layout.hosts.iter().map(bytes).fold(0, u64::saturating_add),
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
    /// ranks last, then the lower known price ranks first, then fewer processors and bytes.
    pub(crate) fn rank(&self, present: &Self) -> PriceRank {
        (!self.bill.is_comparable(&present.bill), self.month(), self.vcpus, self.bytes)
    }
}

/// Returns the processors of a machine or instance; 0 if they are unknown.
fn vcpus(host: &Host, edition: &Edition) -> u32 {
    let of_size = || edition.host(&host.qualified_size()?).ok()?.vcpus;
    host.instance.as_ref().map(|own| own.vcores).or_else(of_size).unwrap_or(0)
}

fn bytes(host: &Host) -> u64 {
    host.volumes.iter().map(|own| own.spec.size.get()).fold(0, u64::saturating_add)
}
