//! Costs of layouts, and their order.
//!
//! An unknown price is not zero: fewer missing prices rank first, then the lower known price. Among
//! equals the smaller layout ranks first: fewer disks, a smaller machine, less storage.

use weir_catalog::{Per, Price, PriceBook};
pub use weir_layout::bill::gib;
use weir_units::Money;

/// A price per month. The order is that of preference, the cheapest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// Number of missing prices.
    pub unpriced: u32,
    /// The sum of the known prices.
    pub month: Money,
    /// The size of the layout, which decides among equal prices.
    pub size: u64,
}

impl std::ops::Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            unpriced: self.unpriced + other.unpriced,
            month: self.month + other.month,
            size: self.size.saturating_add(other.size),
        }
    }
}

impl Cost {
    /// Returns the cost of `units` at a price that may be unknown.
    #[must_use]
    pub fn of_units(price: Option<&Price>, units: u64, size: u64) -> Self {
        match price {
            Some(price) => Self { unpriced: 0, month: price.of(units), size },
            None => Self { unpriced: u32::from(units > 0), month: Money::ZERO, size },
        }
    }
}

/// The prices of a region and currency, if there are any.
#[derive(Debug, Clone, Copy)]
pub struct Prices<'a>(pub Option<&'a PriceBook<'a>>);

impl<'a> Prices<'a> {
    /// Returns the price of a disk of a tier.
    #[must_use]
    pub fn tier(self, name: &str) -> Option<&'a Price> {
        self.0?.tier(name)
    }

    /// Returns the price of a machine.
    #[must_use]
    pub fn host(self, name: &str) -> Option<&'a Price> {
        self.0?.host(name)
    }

    /// Returns the price of a machine whose operating system's licence is owned.
    #[must_use]
    pub fn unlicensed_host(self, name: &str) -> Option<&'a Price> {
        self.0?.unlicensed_host(name)
    }

    /// Returns the price of a unit of a family or series.
    #[must_use]
    pub fn unit(self, of: &str, per: Per) -> Option<&'a Price> {
        self.0?.unit(of, per)
    }
}
