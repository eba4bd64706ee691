//! Editions from files that users download from their cloud: machines, limits and prices.
//!
//! An update extends a built-in edition. It is written as TOML, which `--catalog` reads, so that it can
//! be looked at and kept with a project.

mod aws;
mod azure;
mod google;
mod machine;

use crate::document::Document;
use crate::edition::Edition;
use crate::error::CatalogError;
use crate::price::{Item, Price, PriceList, Term};
use crate::provenance::Citation;
use crate::retail;
use machine::Machine;
use std::collections::BTreeMap;

/// Machines and prices of downloaded files, to extend an edition with.
#[derive(Debug)]
pub struct Update<'a> {
    base: &'a Edition,
    machines: BTreeMap<String, Machine>,
    prices: Vec<PriceList>,
    rates: google::Rates,
    as_of: String,
}

/// The contents of a downloaded file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contents {
    /// The kind of file.
    pub kind: &'static str,
    /// Number of machines.
    pub machines: usize,
    /// Number of prices.
    pub prices: usize,
}

impl<'a> Update<'a> {
    /// Starts an update of an edition.
    #[must_use]
    pub fn new(base: &'a Edition) -> Self {
        let (machines, prices, rates) = Default::default();
        Self { base, machines, prices, rates, as_of: String::new() }
    }

    /// Reads a file: the retail price list of Azure in JSON (also several pages) or CSV, `az vm
    /// list-skus`, `aws ec2 describe-instance-types`, a price list offer of AWS, `gcloud compute
    /// machine-types list`, or the SKU list of Google. `as_of` is the date of files that state none.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Syntax`] for text that is neither JSON nor a known CSV,
    /// [`CatalogError::Invalid`] for a file of another kind or with a broken entry.
    pub fn read(
        &mut self,
        origin: &str,
        text: &str,
        as_of: &str,
    ) -> Result<Contents, CatalogError> {
        let text = text.trim_start_matches('\u{feff}');
        if self.as_of.as_str() < as_of {
            as_of.clone_into(&mut self.as_of);
        }
        if !text.trim_start().starts_with(['{', '[']) {
            return self.take_prices("Azure retail prices", retail::of_csv(origin, text)?);
        }
        let documents = Document::all(origin, text)?;
        if documents.iter().any(|own| own.value.get("Items").is_some()) {
            return self.take_prices("Azure retail prices", retail::of_pages(origin, &documents)?);
        }
        let mut contents = None;
        for document in &documents {
            let own = self.read_document(document, as_of)?;
            let sum: &mut Contents =
                contents.get_or_insert(Contents { machines: 0, prices: 0, ..own });
            sum.machines += own.machines;
            sum.prices += own.prices;
        }
        contents.ok_or_else(|| CatalogError::Invalid {
            origin: origin.to_owned(),
            place: "file".to_owned(),
            reason: "is empty".to_owned(),
        })
    }

    fn read_document(
        &mut self,
        document: &Document<'_>,
        as_of: &str,
    ) -> Result<Contents, CatalogError> {
        let value = &document.value;
        let has = |key: &str| value.get(key).is_some();
        if has("InstanceTypes") {
            return self.take_machines("EC2 instance types", aws::machines(document, as_of)?);
        }
        if has("offerCode") {
            return self.take_prices("AWS price list", aws::prices(document)?);
        }
        if has("skus") {
            let prices = self.rates.read(document)?;
            return Ok(Contents { kind: "Google SKUs", machines: 0, prices });
        }
        let first = value.as_array().and_then(|all| all.first());
        let of_first = |key: &str| first.is_some_and(|own| own.get(key).is_some());
        if of_first("resourceType") {
            return self.take_machines("Azure SKUs", azure::machines(document, as_of)?);
        }
        if of_first("guestCpus") {
            return self.take_machines("Google machine types", google::machines(document, as_of)?);
        }
        if of_first("skuId") {
            let prices = self.rates.read(document)?;
            return Ok(Contents { kind: "Google SKUs", machines: 0, prices });
        }
        Err(document.invalid(
            "file",
            "is none of: Azure retail prices ({\"Items\": ..}), az vm list-skus, aws ec2 \
             describe-instance-types, an AWS price list offer, gcloud compute machine-types list, \
             Google SKUs ({\"skus\": ..})",
        ))
    }

    fn take_machines(
        &mut self,
        kind: &'static str,
        machines: Vec<(String, Machine)>,
    ) -> Result<Contents, CatalogError> {
        let contents = Contents { kind, machines: machines.len(), prices: 0 };
        self.machines.extend(machines);
        Ok(contents)
    }

    fn take_prices(
        &mut self,
        kind: &'static str,
        prices: Vec<PriceList>,
    ) -> Result<Contents, CatalogError> {
        let rows = prices.iter().map(|list| list.rows.len()).sum();
        self.prices.extend(prices);
        Ok(Contents { kind, machines: 0, prices: rows })
    }

    /// Writes the update as an edition that extends the base. Machines that the base has in several
    /// series are left out, because a file does not tell which is meant; so are prices of things that
    /// neither has.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Invalid`] if nothing is left.
    pub fn toml(&self, name: &str) -> Result<String, CatalogError> {
        let base = self.base.name();
        let mut text = format!(
            "# Written by weir catalog update. Use it with --catalog FILE and edition = {name:?}.\n\n\
             name = {name:?}\nextends = {base:?}\ntitle = {:?}\nas_of = {:?}\nscope = {:?}\n",
            format!("{}, updated", self.base.title()),
            self.as_of,
            self.base.scope(),
        );
        let left_out = self.rates.left_out(self.base, &self.machines);
        if left_out > 0 {
            text.push_str(&format!(
                "notes = [\"{left_out} machine types have no price here: they share cores, or include \
                 accelerators or local disks, which are sold apart\"]\n"
            ));
        }
        let before = text.len();
        self.add_machines(&mut text);
        let of_rates = self.rates.prices(self.base, &self.machines);
        self.add_prices(&mut text, self.prices.iter().chain(&of_rates));
        match text.len() == before {
            false => Ok(text),
            true => Err(CatalogError::Invalid {
                origin: name.to_owned(),
                place: "update".to_owned(),
                reason: format!("no machine and no price is of {base}; is it of the right cloud?"),
            }),
        }
    }

    fn add_machines(&self, text: &mut String) {
        let mut all: BTreeMap<(String, &str, &str), Vec<String>> = BTreeMap::new();
        for (name, machine) in &self.machines {
            let series = match self.base.host(name) {
                Ok(host) => host.series.clone(),
                Err(CatalogError::Ambiguous { .. }) => continue,
                Err(_) => series_name(name),
            };
            let key = (series, machine.source.as_str(), machine.as_of.as_str());
            all.entry(key).or_default().push(machine.toml(name));
        }
        // A series has one table; machines of other files state their own source.
        let mut last = String::new();
        for ((series, source, as_of), rows) in all {
            if series == last {
                // Written behind the rows of the series, with a source each.
                let own = format!(", source = {source:?}, as_of = {as_of:?} }},\n");
                let rows: String = rows.iter().map(|row| row.replacen(" },\n", &own, 1)).collect();
                text.truncate(text.len() - 2);
                text.push_str(&rows);
                text.push_str("]\n");
                continue;
            }
            last.clone_from(&series);
            let head = format!(
                "\n[[series]]\nname = {series:?}\nsource = {source:?}\nas_of = {as_of:?}\nrows = [\n"
            );
            text.push_str(&head);
            text.extend(rows);
            text.push_str("]\n");
        }
    }

    /// Returns the number of units without charge. Price lists do not state those that come with a
    /// disk, so they are the base's.
    fn free(&self, price: &Price) -> u64 {
        let same = |row: &&Price| row.item == price.item && row.term == price.term;
        let of_base = self.base.prices().flat_map(|list| &list.rows).filter(same);
        of_base.map(|row| row.free).max().unwrap_or(0).max(price.free)
    }

    fn has(&self, item: &Item) -> bool {
        self.base.has(item)
            || match item {
                Item::Host(name) => self.machines.keys().any(|own| own.eq_ignore_ascii_case(name)),
                Item::Tier(_) | Item::Unit { .. } => false,
            }
    }

    fn add_prices<'p>(&self, text: &mut String, lists: impl Iterator<Item = &'p PriceList>) {
        type Place<'p> = (&'p str, &'p str, Option<&'p str>, &'p Citation);
        let mut all: Vec<(Place<'_>, String)> = Vec::new();
        for list in lists {
            for price in list.rows.iter().filter(|price| self.has(&price.item)) {
                let place = (
                    list.region.as_str(),
                    list.currency.as_str(),
                    list.os.as_deref(),
                    &price.provenance.citation,
                );
                let row = row(price, self.free(price));
                match all.iter_mut().find(|own| own.0 == place) {
                    Some((_, rows)) => rows.push_str(&row),
                    None => all.push((place, row)),
                }
            }
        }
        for ((region, currency, os, citation), rows) in all {
            let os = os.map(|os| format!("os = {os:?}\n")).unwrap_or_default();
            let Citation { source, as_of } = citation;
            let table = format!(
                "\n[[price]]\nregion = {region:?}\ncurrency = {currency:?}\n{os}source = {source:?}\n\
                 as_of = {as_of:?}\nrows = [\n{rows}]\n"
            );
            text.push_str(&table);
        }
    }
}

/// Returns the row of a price, with the number of units without charge.
fn row(price: &Price, free: u64) -> String {
    let item = match &price.item {
        Item::Tier(name) => format!("tier = {name:?}"),
        Item::Host(name) => format!("host = {name:?}"),
        Item::Unit { of, per } => format!("of = {of:?}, per = {:?}", per.name()),
    };
    let term = match price.term {
        Term::OnDemand => String::new(),
        term => format!(", term = {:?}", term.name()),
    };
    let free = if free > 0 { format!(", free = {free}") } else { String::new() };
    let hour = price.hour.map(|hour| format!(", hour = \"{}\"", hour.exact())).unwrap_or_default();
    let steps: Vec<String> = price
        .steps
        .iter()
        .map(|(above, month)| format!("{{ above = {above}, month = \"{}\" }}", month.exact()))
        .collect();
    let steps = match steps.is_empty() {
        true => String::new(),
        false => format!(", steps = [{}]", steps.join(", ")),
    };
    format!("  {{ {item}{term}{free}, month = \"{}\"{hour}{steps} }},\n", price.month.exact())
}

/// Returns the series of a machine that no edition has: `dsv7` of `Standard_D8s_v7`, `m9i` of
/// `m9i.large`, `n5` of `n5-standard-8`.
fn series_name(name: &str) -> String {
    if let Some(size) = name.strip_prefix("Standard_") {
        let parts = size.split('_').filter(|part| !part.chars().all(|c| c.is_ascii_digit()));
        let mut parts = parts.map(|part| match part.starts_with(['v', 'V']) {
            true => part.to_owned(),
            false => part.chars().filter(char::is_ascii_alphabetic).collect(),
        });
        return parts.by_ref().collect::<String>().to_lowercase();
    }
    name.split(['.', '-']).next().unwrap_or(name).to_lowercase()
}
