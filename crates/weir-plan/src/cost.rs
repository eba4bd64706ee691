//! What a layout costs, and how costs compare.
//!
//! A price that is not known is not zero: what has one less comes first, whatever the rest costs.
//! Among equals the smaller comes first: fewer disks, a smaller machine, less storage.

use weir_catalog::{Per, Price, PriceBook};
pub use weir_layout::bill::gib;
use weir_units::Money;

/// What something costs a month. Ordered: the cheapest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// How many prices are missing.
    pub unpriced: u32,
    /// The prices that are known.
    pub month: Money,
    /// How large it is, to choose among equals.
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
    /// `units` of something with a price that may not be known.
    #[must_use]
    pub fn of(price: Option<&Price>, units: u64, size: u64) -> Self {
        match price {
            Some(price) => Self { unpriced: 0, month: price.of(units), size },
            None => Self { unpriced: u32::from(units > 0), month: Money::ZERO, size },
        }
    }
}

/// The prices that there are, if there are any.
#[derive(Debug, Clone, Copy)]
pub struct Prices<'a>(pub Option<&'a PriceBook<'a>>);

impl<'a> Prices<'a> {
    /// Of a disk of a tier.
    #[must_use]
    pub fn tier(self, name: &str) -> Option<&'a Price> {
        self.0?.tier(name)
    }

    /// Of a machine.
    #[must_use]
    pub fn host(self, name: &str) -> Option<&'a Price> {
        self.0?.host(name)
    }

    /// Returns the price of a machine whose operating system's licence is owned.
    #[must_use]
    pub fn unlicensed_host(self, name: &str) -> Option<&'a Price> {
        self.0?.unlicensed_host(name)
    }

    /// Of a unit of a family or series.
    #[must_use]
    pub fn unit(self, of: &str, per: Per) -> Option<&'a Price> {
        self.0?.unit(of, per)
    }
}
