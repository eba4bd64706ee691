//! The vendor's retail price list as downloaded: JSON with `Items`, of which the relevant ones are
//! used.

use crate::document::Document;
use crate::error::CatalogError;
use crate::price::{Item, Per, Price, PriceList, Term};
use crate::provenance::{Citation, Provenance};
use serde::Deserialize;
use serde_json::Number;
use weir_units::Money;

/// Hours per month in the vendor's calculation.
const HOURS: f64 = 730.0;

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
    #[serde(default)]
    reservation_term: Option<String>,
}

/// Parses the lists by region, currency and operating system.
pub(crate) fn prices(origin: &str, text: &str) -> Result<Vec<PriceList>, CatalogError> {
    let download: Download = serde_json::from_str(text).map_err(|error| CatalogError::Syntax {
        origin: origin.to_owned(),
        at: Some((error.line(), error.column())),
        message: format!("{error}; expected the retail price list, {{\"Items\": [..]}}"),
    })?;
    lists(origin, &download.items)
}

/// Parses the pages of a list.
pub(crate) fn of_pages(
    origin: &str,
    pages: &[Document<'_>],
) -> Result<Vec<PriceList>, CatalogError> {
    let mut items = Vec::new();
    for page in pages {
        let download = Download::deserialize(&page.value);
        let broken = |error: serde_json::Error| page.invalid("Items", &error.to_string());
        items.append(&mut download.map_err(broken)?.items);
    }
    lists(origin, &items)
}

/// Parses a list that was saved as CSV, with the keys of the JSON as headings.
pub(crate) fn of_csv(origin: &str, text: &str) -> Result<Vec<PriceList>, CatalogError> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    // Some tools begin the keys with a capital.
    let camel = |head: &str| {
        let mut chars = head.chars();
        let first = chars.next().map(|c| c.to_ascii_lowercase());
        first.into_iter().chain(chars).collect::<String>()
    };
    let heads: csv::StringRecord = match reader.headers() {
        Ok(heads) => heads.iter().map(camel).collect(),
        Err(_) => csv::StringRecord::new(),
    };
    if !heads.iter().any(|head| head == "retailPrice") {
        return Err(CatalogError::Invalid {
            origin: origin.to_owned(),
            place: "file".to_owned(),
            reason:
                "is neither JSON nor a retail price list in CSV, which has a column retailPrice"
                    .to_owned(),
        });
    }
    let mut items = Vec::new();
    for record in reader.records() {
        let meter = record.and_then(|record| record.deserialize::<Meter>(Some(&heads)));
        items.push(meter.map_err(|error| CatalogError::Syntax {
            origin: origin.to_owned(),
            at: None,
            message: error.to_string(),
        })?);
    }
    lists(origin, &items)
}

/// Groups the prices of meters by region, currency and operating system.
fn lists(origin: &str, items: &[Meter]) -> Result<Vec<PriceList>, CatalogError> {
    let mut lists: Vec<PriceList> = Vec::new();
    for meter in items {
        let Some(term) = meter.term() else { continue };
        let Some((item, free, os)) = meter.item() else { continue };
        let (month, hour) = meter.price(origin, term)?;
        let is_own = |list: &&mut PriceList| {
            list.region == meter.arm_region_name
                && list.currency == meter.currency_code
                && list.os.as_deref() == os
        };
        let as_of = meter.effective_start_date.get(..10).unwrap_or("not stated");
        let source = format!("{origin}: retail price list, {}", meter.product_name);
        let provenance = Provenance {
            citation: Citation::new(&source, as_of),
            figures: Vec::new(),
            notes: Vec::new(),
            conflicts: Vec::new(),
            history: Vec::new(),
        };
        let price = Price {
            item,
            term,
            free,
            month,
            hour,
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
            place: format!("{} items", items.len()),
            reason: "none is the price, pay as you go, of a machine or of a managed disk"
                .to_owned(),
        });
    }
    Ok(lists)
}

impl Meter {
    /// Returns the term of the price; `None` for kinds of prices that are not used.
    fn term(&self) -> Option<Term> {
        match (self.kind.as_str(), self.reservation_term.as_deref()) {
            ("Consumption", _) => Some(Term::OnDemand),
            ("Reservation", Some("1 Year")) => Some(Term::OneYear),
            ("Reservation", Some("3 Years")) => Some(Term::ThreeYears),
            _ => None,
        }
    }

    /// Returns the item, the number of free units and the operating system.
    fn item(&self) -> Option<(Item, u64, Option<&'static str>)> {
        let is_begun =
            self.tier_minimum_units.as_ref().and_then(Number::as_f64).unwrap_or(0.0) > 0.0;
        if is_begun && !self.product_name.ends_with("SSD v2") {
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

    /// Returns the price per month, and per hour if it is sold by the hour. A reservation states the
    /// price of its whole term.
    fn price(&self, origin: &str, term: Term) -> Result<(Money, Option<Money>), CatalogError> {
        let invalid = |reason: String| CatalogError::Invalid {
            origin: origin.to_owned(),
            place: format!("{} {}", self.product_name, self.meter_name),
            reason,
        };
        let price = self.retail_price.as_f64().unwrap_or(-1.0);
        let money = |amount: f64| {
            let micros = (amount * 1e6).round();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "in the range that is checked"
            )]
            let micros = (0.0..1e15).contains(&micros).then_some(micros as u64);
            let broken = || invalid(format!("{} is no price", self.retail_price));
            micros.map(Money::from_micros).ok_or_else(broken)
        };
        match (term, self.unit_of_measure.as_str()) {
            (Term::OneYear, _) => Ok((money(price / 12.0)?, None)),
            (Term::ThreeYears, _) => Ok((money(price / 36.0)?, None)),
            // Hourly prices have more decimals than `Money`, so they are multiplied first.
            (Term::OnDemand, unit) if unit.ends_with("Hour") => {
                Ok((money(price * HOURS)?, Some(money(price)?)))
            }
            (Term::OnDemand, unit) if unit.ends_with("Month") => Ok((money(price)?, None)),
            (Term::OnDemand, unit) => {
                Err(invalid(format!("the unit {unit:?} is neither an hour nor a month")))
            }
        }
    }
}
