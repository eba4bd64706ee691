//! The monthly price of a layout.

use crate::error::CompareError;
use crate::profile::{Data, Metric, Profile, Subject};
use weir_catalog::Catalog;
use weir_layout::Layout;
use weir_report::comparison::{Better, MetricUnit};
use weir_units::Money;

/// The monthly price of a layout.
#[derive(Debug, Clone)]
pub(crate) struct Price {
    pub(crate) month: Money,
    pub(crate) unpriced: usize,
    pub(crate) currency: String,
    pub(crate) basis: String,
    pub(crate) bill: weir_layout::bill::Bill,
}

/// Returns the price of a layout, if its edition has prices.
pub(crate) fn price_of(layout: &Layout, catalog: &Catalog) -> Result<Option<Price>, CompareError> {
    let Some((bill, book)) = layout.priced(catalog)? else { return Ok(None) };
    let dates = bill.lines.iter().filter_map(|line| line.source.as_ref());
    let mut dates: Vec<&str> = dates.map(|(_, date)| date.as_str()).collect();
    dates.sort_unstable();
    dates.dedup();
    let dated = if dates.is_empty() { "no prices".to_owned() } else { dates.join(", ") };
    Ok(Some(Price {
        month: bill.month(),
        unpriced: bill.unknown().count(),
        currency: book.currency().to_owned(),
        basis: format!("{}, {dated}", book.region()),
        bill,
    }))
}

/// Adds the price to the metrics, if it is known completely.
pub(crate) fn add_price(profile: &mut Profile, price: Option<&Price>) {
    if let Some(price) = price.filter(|price| price.unpriced == 0) {
        let metric = Metric {
            name: "price".into(),
            unit: MetricUnit::Number,
            better: Better::Lower,
            decides: false,
        };
        #[expect(clippy::cast_precision_loss, reason = "millionths of a price are far below 2^53")]
        let month = price.month.micros() as f64 / 1e6;
        profile.add(&Subject::new("layout", "layout"), metric, Data::One(month, Some(0.0)));
    }
}
