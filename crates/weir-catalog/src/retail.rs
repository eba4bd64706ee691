//! The vendor's retail price list as downloaded: JSON with `Items`, of which the relevant ones are
//! used.

use crate::error::CatalogError;
use crate::price::{Item, Per, Price, PriceList, Term};
use crate::provenance::{Citation, Provenance};
use serde::Deserialize;
use serde_json::Number;
use weir_units::Money;

/// Hours per month in the vendor's calculation.
const HOURS: u64 = 730;

#[derive(Debug, Deserialize)]
struct Download {
    #[serde(rename = "Items")]
    items: Vec<Meter>,
}

/// A meter, with keys as in the vendor's documentation.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meter {
    currency_code: String,
    retail_price: Number,
    arm_region_name: String,
    #[serde(default)]
    effective_start_date: String,
    #[serde(default)]
    meter_name: String,
    #[serde(default)]
    product_name: String,
    #[serde(default)]
    sku_name: String,
    #[serde(default)]
    service_name: String,
    #[serde(default)]
    arm_sku_name: String,
    #[serde(default)]
    unit_of_measure: String,
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    tier_minimum_units: Option<Number>,
}

/// Parses the lists by region, currency and operating system.
pub(crate) fn prices(origin: &str, text: &str) -> Result<Vec<PriceList>, CatalogError> {
    let download: Download = serde_json::from_str(text).map_err(|error| CatalogError::Syntax {
        origin: origin.to_owned(),
        at: Some((error.line(), error.column())),
        message: format!("{error}; expected the retail price list, {{\"Items\": [..]}}"),
    })?;
    let mut lists: Vec<PriceList> = Vec::new();
    for meter in &download.items {
        let Some((item, free, os)) = meter.item() else { continue };
        let month = meter.month(origin)?;
        let is_own = |list: &&mut PriceList| {
            list.region == meter.arm_region_name
                && list.currency == meter.currency_code
                && list.os.as_deref() == os
        };
        let as_of = meter.effective_start_date.get(..10).unwrap_or("not stated").to_owned();
        let source = format!("{origin}: retail price list, {}", meter.product_name);
        let provenance = Provenance {
            citation: Citation { source, as_of },
            figures: Vec::new(),
            notes: Vec::new(),
            conflicts: Vec::new(),
            history: Vec::new(),
        };
        let price = Price {
            item,
            term: Term::OnDemand,
            free,
            month,
            hour: None,
            steps: Vec::new(),
            provenance: provenance.clone(),
        };
        match lists.iter_mut().find(is_own) {
            Some(list) => list.rows.push(price),
            None => lists.push(PriceList {
                region: meter.arm_region_name.clone(),
                currency: meter.currency_code.clone(),
                os: os.map(str::to_owned),
                rows: vec![price],
                provenance,
            }),
        }
    }
    if lists.is_empty() {
        return Err(CatalogError::Invalid {
            origin: origin.to_owned(),
            place: format!("{} items", download.items.len()),
            reason: "none is the price, pay as you go, of a machine or of a managed disk"
                .to_owned(),
        });
    }
    Ok(lists)
}

impl Meter {
    /// Returns the item, the number of free units and the operating system.
    fn item(&self) -> Option<(Item, u64, Option<&'static str>)> {
        let is_begun =
            self.tier_minimum_units.as_ref().and_then(Number::as_f64).unwrap_or(0.0) > 0.0;
        if self.kind != "Consumption" || (is_begun && !self.product_name.ends_with("SSD v2")) {
            return None;
        }
        if self.service_name == "Virtual Machines" {
            let is_spare = ["Spot", "Low Priority"].iter().any(|word| self.sku_name.contains(word));
            let os = if self.product_name.ends_with("Windows") { "windows" } else { "linux" };
            let is_machine = !is_spare && self.arm_sku_name.starts_with("Standard_");
            return is_machine.then(|| (Item::Host(self.arm_sku_name.clone()), 0, Some(os)));
        }
        let unit = |of: &str, per: Per, free: u64| {
            Some((Item::Unit { of: of.to_owned(), per }, free, None))
        };
        let provisioned = |of: &str| match &self.meter_name {
            // Free units have a separate row with price zero.
            _ if self.is_free() => None,
            name if name.contains("Capacity") => unit(of, Per::Gib, 0),
            name if name.contains("IOPS") => unit(of, Per::Iops, self.free()),
            name if name.contains("Throughput") => unit(of, Per::Mbps, self.free()),
            _ => None,
        };
        match self.product_name.as_str() {
            "Premium SSD Managed Disks"
            | "Standard SSD Managed Disks"
            | "Standard HDD Managed Disks" => {
                let tier = self.sku_name.strip_suffix(" LRS")?;
                let is_disk = self.meter_name == format!("{} Disk", self.sku_name)
                    || self.meter_name == format!("{tier} Disks");
                is_disk.then(|| (Item::Tier(tier.to_owned()), 0, None))
            }
            "Azure Premium SSD v2" => provisioned("premium-ssd-v2"),
            "Ultra Disks" => provisioned("ultra"),
            _ => None,
        }
    }

    fn is_free(&self) -> bool {
        self.retail_price.as_f64() == Some(0.0)
    }

    /// Returns the number of units before the first billed one.
    fn free(&self) -> u64 {
        let from = self.tier_minimum_units.as_ref().and_then(Number::as_f64).unwrap_or(0.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        let from = from.max(0.0) as u64;
        from
    }

    fn month(&self, origin: &str) -> Result<Money, CatalogError> {
        let invalid = |reason: String| CatalogError::Invalid {
            origin: origin.to_owned(),
            place: format!("{} {}", self.product_name, self.meter_name),
            reason,
        };
        let hours = match self.unit_of_measure.as_str() {
            unit if unit.ends_with("Hour") => HOURS,
            unit if unit.ends_with("Month") => 1,
            unit => {
                return Err(invalid(format!("the unit {unit:?} is neither an hour nor a month")));
            }
        };
        // Hourly prices have more decimals than `Money`, so they are multiplied first.
        let price = self.retail_price.as_f64().unwrap_or(-1.0);
        #[expect(clippy::cast_precision_loss, reason = "730 at most")]
        let micros = (price * hours as f64 * 1e6).round();
        if !(0.0..1e15).contains(&micros) {
            return Err(invalid(format!("{} is no price", self.retail_price)));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked above"
        )]
        let micros = micros as u64;
        Ok(Money::from_micros(micros))
    }
}
