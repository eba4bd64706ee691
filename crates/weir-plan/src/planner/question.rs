//! The question to the planner.

use crate::need::{Need, Wishes};
use weir_catalog::{Catalog, Edition, PriceBook};

/// A question to the planner.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// All editions.
    pub catalog: &'a Catalog,
    /// The edition to plan with.
    pub edition: &'a Edition,
    /// The prices, if they are known.
    pub prices: Option<&'a PriceBook<'a>>,
    /// The need.
    pub need: &'a Need,
    /// The constraints.
    pub wishes: &'a Wishes,
}
