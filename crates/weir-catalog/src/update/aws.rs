//! Files of AWS: `aws ec2 describe-instance-types` and offers of the price list.

use super::machine::Machine;
use crate::document::Document;
use crate::error::CatalogError;
use crate::price::{Item, Per, Price, PriceList, Term};
use crate::provenance::{Citation, Provenance};
use crate::region::money;
use serde_json::Value;
use std::collections::BTreeMap;

/// Bytes per second of a megabit.
const MEGABIT: u64 = 125_000;

/// Returns the instance types with their EBS limits.
pub(super) fn machines(
    document: &Document<'_>,
    as_of: &str,
) -> Result<Vec<(String, Machine)>, CatalogError> {
    let types = document.value.get("InstanceTypes").and_then(Value::as_array);
    let types = types.ok_or_else(|| document.invalid("InstanceTypes", "is no list"))?;
    let mut all = Vec::new();
    for own in types {
        let name = document.text(own, "InstanceType")?;
        let empty = Value::Null;
        let part =
            |path: &[&str]| path.iter().try_fold(own, |own, key| own.get(key)).unwrap_or(&empty);
        let ebs = part(&["EbsInfo", "EbsOptimizedInfo"]);
        let rates = |kind: &str| {
            let iops = document.count(ebs, &format!("{kind}Iops"))?;
            let bandwidth = document.small(ebs, &format!("{kind}BandwidthInMbps"))?;
            Ok::<_, CatalogError>(iops.zip(bandwidth.map(|own| u64::from(own) * MEGABIT)))
        };
        let machine = Machine {
            vcpus: document.small(part(&["VCpuInfo"]), "DefaultVCpus")?,
            memory_mib: document.count(part(&["MemoryInfo"]), "SizeInMiB")?,
            disks: document.small(part(&["EbsInfo"]), "MaximumEbsAttachments")?,
            uncached: rates("Baseline")?,
            burst: rates("Maximum")?,
            source: format!("{}: aws ec2 describe-instance-types", document.origin),
            as_of: as_of.to_owned(),
            ..Machine::default()
        };
        all.push((name.to_owned(), machine));
    }
    Ok(all)
}

/// An item of an offer: its region, its system, and the name and unit of what is sold.
struct Product<'a> {
    region: &'a str,
    os: Option<&'static str>,
    item: Item,
}

/// Returns the prices on demand, and those of standard reservations without a payment in advance.
pub(super) fn prices(document: &Document<'_>) -> Result<Vec<PriceList>, CatalogError> {
    let offer = &document.value;
    let products = offer.get("products").and_then(Value::as_object);
    let products = products.ok_or_else(|| document.invalid("products", "is missing"))?;
    let as_of = document.text(offer, "publicationDate")?;
    let as_of = as_of.get(..10).unwrap_or(as_of);
    let source =
        format!("{}: AWS price list, {}", document.origin, document.text(offer, "offerCode")?);
    let mut lists: Vec<PriceList> = Vec::new();
    for (sku, product) in products {
        let Some(product) = product.get("attributes").and_then(of_attributes) else { continue };
        for (kind, term) in [("OnDemand", Term::OnDemand), ("Reserved", Term::OneYear)] {
            let offers = offer.get("terms").and_then(|own| own.get(kind)?.get(sku)?.as_object());
            for own in offers.into_iter().flat_map(|own| own.values()) {
                let Some(term) = term_of(own, term) else { continue };
                let Some((currency, price)) = price(document, sku, own, &product, term)? else {
                    continue;
                };
                let citation = Citation::new(&source, as_of);
                let provenance = Provenance::cited(citation);
                let price = Price { provenance: provenance.clone(), ..price };
                let is_own = |list: &&mut PriceList| {
                    list.region == product.region
                        && list.currency == currency
                        && list.os.as_deref() == product.os
                };
                match lists.iter_mut().find(is_own) {
                    Some(list) => list.rows.push(price),
                    None => lists.push(PriceList {
                        region: product.region.to_owned(),
                        currency,
                        os: product.os.map(str::to_owned),
                        rows: vec![price],
                        provenance,
                    }),
                }
            }
        }
    }
    Ok(lists)
}

/// Returns the machine or volume of a product; `None` for all others, and for dedicated machines or
/// those with a database.
fn of_attributes(attributes: &Value) -> Option<Product<'_>> {
    let get = |key: &str| attributes.get(key).and_then(Value::as_str);
    let region = get("regionCode")?;
    if let Some(name) = get("instanceType") {
        let os = match get("operatingSystem")? {
            "Linux" => "linux",
            "Windows" => "windows",
            _ => return None,
        };
        let is_plain = get("tenancy") == Some("Shared")
            && get("preInstalledSw") == Some("NA")
            && get("capacitystatus").is_none_or(|status| status == "Used")
            && get("licenseModel").is_none_or(|model| model == "No License required");
        let item = Item::Host(name.to_owned());
        return is_plain.then_some(Product { region, os: Some(os), item });
    }
    let of = get("volumeApiName")?.to_owned();
    let per = match get("group") {
        Some("EBS IOPS") => Per::Iops,
        Some("EBS Throughput") => Per::Mibps,
        None => Per::Gib,
        Some(_) => return None,
    };
    Some(Product { region, os: None, item: Item::Unit { of, per } })
}

/// Returns the term of an offer; `None` if it is paid in advance or convertible.
fn term_of(offer: &Value, kind: Term) -> Option<Term> {
    if kind == Term::OnDemand {
        return Some(kind);
    }
    let get = |key: &str| offer.get("termAttributes")?.get(key)?.as_str();
    let is_plain = get("PurchaseOption") == Some("No Upfront")
        && get("OfferingClass").is_none_or(|class| class == "standard");
    match get("LeaseContractLength").filter(|_| is_plain)? {
        "1yr" => Some(Term::OneYear),
        "3yr" => Some(Term::ThreeYears),
        _ => None,
    }
}

/// Returns currency and price of an offer, with its steps.
fn price(
    document: &Document<'_>,
    sku: &str,
    offer: &Value,
    product: &Product<'_>,
    term: Term,
) -> Result<Option<(String, Price)>, CatalogError> {
    // By the number of units from which a price holds.
    let mut steps: BTreeMap<u64, (String, String, String)> = BTreeMap::new();
    let dimensions = offer.get("priceDimensions").and_then(Value::as_object);
    for own in dimensions.into_iter().flat_map(|own| own.values()) {
        let per_unit = own.get("pricePerUnit").and_then(Value::as_object);
        let amount = per_unit.and_then(|all| all.iter().next());
        let Some((currency, Some(amount))) = amount.map(|(key, own)| (key, own.as_str())) else {
            return Err(document.invalid(sku, "a price has no \"pricePerUnit\""));
        };
        let begin = document.count(own, "beginRange")?.unwrap_or(0);
        let unit = document.text(own, "unit")?.to_owned();
        steps.insert(begin, (unit, currency.clone(), amount.to_owned()));
    }
    let mut prices = Vec::new();
    let (mut hour, mut money_of) = (None, String::new());
    for (begin, (unit, currency, amount)) in steps {
        // Units of a month, or 1,024 MiB/s for a GiB/s.
        let (times, by) = match unit.to_ascii_lowercase().as_str() {
            "hrs" => (730, 1),
            "gb-mo" | "iops-mo" | "mibps-mo" => (1, 1),
            "gibps-mo" => (1, 1024),
            _ => return Ok(None),
        };
        let broken = || document.invalid(sku, &format!("{amount:?} is no price"));
        let month = money(&amount, times, by).ok_or_else(broken)?;
        if times > 1 {
            hour = money(&amount, 1, 1);
        }
        money_of = currency;
        prices.push((begin, month));
    }
    let Some((_, month)) = prices.first().copied() else { return Ok(None) };
    // Nothing is sold for nothing: free offers stand beside the priced ones.
    if prices.iter().all(|(_, month)| month.micros() == 0) {
        return Ok(None);
    }
    let price = Price {
        item: product.item.clone(),
        term,
        free: 0,
        month,
        hour,
        steps: prices.split_off(1),
        provenance: Provenance::cited(Citation::new("", "")),
    };
    Ok(Some((money_of, price)))
}
