//! Tables of prices: a line for each item, a column for each region.

use super::hosts::series;
use super::{Facts, Row, Table};
use crate::error::XtaskError;
use std::collections::{BTreeMap, BTreeSet};

/// The columns before those of the regions. `per` is `host`, `instance`
/// for one without an operating system in its price, `tier` or a unit; `unit` is the time that
/// a price is for, an `hour` or a `month`; `term` is that of a reservation in years; `free` are units
/// without a price; `discount` is the percentage off for use in a whole month.
const HEADS: [&str; 7] = ["item", "per", "unit", "term", "free", "discount", "source"];

/// The file whose rows the editions have by hand.
const BY_HAND: &str = "prices.toml";

/// The storage that comes with a managed instance.
const INCLUDED_GIB: &str = "32";

/// An item with the source of its prices.
type Item = [String; 7];

/// Prices by item and region.
#[derive(Debug, Default)]
struct Prices {
    items: Vec<Item>,
    prices: BTreeMap<(Item, String), String>,
    regions: BTreeSet<String>,
}

impl Prices {
    fn add(&mut self, item: [&str; 7], region: &str, price: &str) {
        let item = item.map(str::to_owned);
        if !self.items.contains(&item) {
            self.items.push(item.clone());
        }
        self.regions.insert(region.to_owned());
        self.prices.insert((item, region.to_owned()), price.to_owned());
    }

    /// Returns the price of an Azure machine in a region, with its mark.
    fn azure_machine(&self, size: &str, region: &str) -> Option<String> {
        let key = (azure_machine(size).map(str::to_owned), region.to_owned());
        self.prices.get(&key).cloned()
    }

    fn table(&self) -> Table {
        let mut table = Table::default();
        let regions = self.regions.iter().map(String::as_str);
        table.line(HEADS.into_iter().chain(regions));
        for item in &self.items {
            table.cite(&[&item[6]]);
            let price = |region: &String| {
                self.prices.get(&(item.clone(), region.clone())).map_or("", String::as_str)
            };
            table.line(item.iter().map(String::as_str).chain(self.regions.iter().map(price)));
        }
        table
    }
}

pub(super) fn azure(facts: &Facts) -> Result<Table, XtaskError> {
    let mut prices = Prices::default();
    let sizes = facts.rows("azure-vm-sizes.csv")?;
    let names: BTreeSet<&str> = sizes.iter().map(|row| row.get("size")).collect();
    for row in facts.rows("azure-vm-prices.csv")? {
        let size = row.get("size");
        if !names.contains(size) {
            continue;
        }
        // A price that another one gives is marked.
        let mark = if row.get("basis") == "derived" { "d" } else { "" };
        let price = format!("{}{mark}", row.get("usd_hour"));
        prices.add(azure_machine(size), row.get("region"), &price);
    }
    derive_burstable(&mut prices, &sizes)?;
    for row in facts.rows("azure-disk-prices.csv")?.iter().filter(|row| !is_by_hand(row)) {
        if let Some((item, per)) = disk(row) {
            let item = [&*item, per, "month", "", "", "", row.get("source")];
            prices.add(item, row.get("region"), row.get("usd"));
        }
    }
    Ok(prices.table())
}

/// Returns the item of the price of an Azure machine.
fn azure_machine(size: &str) -> [&str; 7] {
    [size, "host", "hour", "", "", "", "karpenter-azure"]
}

/// Regions where B v2 sizes cost the same. The source has all sizes in both, some with the price of
/// Windows, which the facts leave out.
const TWINS: [&str; 2] = ["eastus", "eastus2"];
/// Marks of a price of the other region, and of one per vCPU of a larger or smaller size.
const TWIN: char = 't';
const SIBLING: char = 's';
/// The fewest vCPUs of sizes whose price is in proportion to them.
const PROPORTIONAL: u64 = 4;
/// Thousandths of a dollar per hour, in which these sizes are sold.
const MILLS: u64 = 1_000;

/// Adds prices of B v2 sizes that the facts leave out in one of the regions with equal prices.
fn derive_burstable(prices: &mut Prices, sizes: &[Row]) -> Result<(), XtaskError> {
    let is_burstable = |row: &&Row| {
        let series = series(row.get("size"));
        series.starts_with('b') && series.ends_with("v2")
    };
    let sizes: Vec<&Row> = sizes.iter().filter(is_burstable).collect();
    for row in &sizes {
        let size = row.get("size");
        let both = TWINS.map(|region| prices.azure_machine(size, region));
        match both.each_ref().map(Option::as_deref) {
            [Some(one), Some(other)] if one != other => {
                let reason = format!("{size} costs {one} and {other} in {TWINS:?}, not the same");
                return Err(broken(reason));
            }
            [Some(one), None] => {
                prices.add(azure_machine(size), TWINS[1], &format!("{one}{TWIN}"));
            }
            [None, Some(other)] => {
                prices.add(azure_machine(size), TWINS[0], &format!("{other}{TWIN}"));
            }
            _ => {}
        }
    }
    for region in TWINS {
        for row in &sizes {
            let size = row.get("size");
            if prices.azure_machine(size, region).is_none()
                && let Some(price) = sibling_price(prices, &sizes, size, region)?
            {
                prices.add(azure_machine(size), region, &format!("{price}{SIBLING}"));
            }
        }
    }
    Ok(())
}

/// Returns the price of a size by that of the largest one of its series with a listed price in the
/// region.
fn sibling_price(
    prices: &Prices,
    sizes: &[&Row],
    size: &str,
    region: &str,
) -> Result<Option<String>, XtaskError> {
    let vcpus = |row: &Row| {
        let text = row.get("vcpus_available");
        text.parse::<u64>().map_err(|_| broken(format!("{text:?} is no number of vCPUs")))
    };
    let (mut own, mut largest) = (0, None);
    for row in sizes.iter().filter(|row| series(row.get("size")) == series(size)) {
        let count = vcpus(row)?;
        if row.get("size") == size {
            own = count;
        } else if let Some(price) = prices.azure_machine(row.get("size"), region)
            && let Some(micros) = micros(price.trim_end_matches(TWIN))
            && !price.ends_with(SIBLING)
        {
            largest = largest.max(Some((count, micros)));
        }
    }
    let largest = largest.filter(|(of, _)| own.min(*of) >= PROPORTIONAL);
    Ok(largest.map(|(of, micros)| {
        let mills = (2 * micros * own + of * 1_000) / (2 * of * 1_000);
        format!("{}.{:03}", mills / MILLS, mills % MILLS)
    }))
}

/// Returns a decimal number of dollars in millionths.
fn micros(usd: &str) -> Option<u64> {
    let (whole, decimals) = usd.split_once('.').unwrap_or((usd, ""));
    format!("{whole}{decimals:0<6}").parse().ok().filter(|_| decimals.len() <= 6)
}

fn broken(reason: String) -> XtaskError {
    XtaskError::Facts { file: "azure-vm-prices.csv".to_owned(), reason }
}

fn is_by_hand(row: &Row) -> bool {
    row.get("source") == BY_HAND
}

/// Returns the name of an Azure disk or of its family, and the unit of its price.
fn disk(row: &Row) -> Option<(String, &'static str)> {
    let item = row.get("item");
    let family = match row.get("product") {
        "Premium SSD" => "premium-ssd",
        "Standard SSD" => "standard-ssd",
        "Standard HDD" => "standard-hdd",
        "Premium SSD v2" if item == "capacity" => {
            return Some(("premium-ssd-v2".to_owned(), "GiB"));
        }
        "Ultra Disk" if item == "capacity" => return Some(("ultra".to_owned(), "GiB")),
        "Snapshot" => return Some(("snapshot".to_owned(), "GiB")),
        _ => return None,
    };
    match row.get("redundancy") {
        "LRS" => Some((item.to_owned(), "tier")),
        // Tiers of Premium SSD have these names in the edition; others have no tiers there.
        "ZRS" if family == "premium-ssd" => Some((format!("{item}-ZRS"), "tier")),
        "ZRS" => Some((format!("{family}-zrs/{item}"), "tier")),
        _ => None,
    }
}

pub(super) fn azure_mi(facts: &Facts) -> Result<Table, XtaskError> {
    let mut prices = Prices::default();
    for row in facts.rows("azure-disk-prices.csv")?.iter().filter(|row| !is_by_hand(row)) {
        let (of, per, unit, term) = match (row.get("product"), row.get("item")) {
            ("SQL Managed Instance", item) => match item {
                "GP vCore Gen5" => ("gp", "vCore", "hour", ""),
                "BC vCore Gen5" => ("bc", "vCore", "hour", ""),
                "GP storage" => ("gp", "GiB", "month", ""),
                "BC storage" => ("bc", "GiB", "month", ""),
                "SQL Server licence, GP" => ("gp", "vCore licence", "hour", ""),
                "GP vCore Gen5, 1 year reserved" => ("gp", "vCore", "hour", "1"),
                "GP vCore Gen5, 3 years reserved" => ("gp", "vCore", "hour", "3"),
                "GP vCore Premium-series" => ("gp-premium-series", "vCore", "hour", ""),
                "BC vCore Premium-series" => ("bc-premium-series", "vCore", "hour", ""),
                _ => continue,
            },
            ("SQL Database", item) => match item {
                "GP vCore Gen5" => ("sql-database-gp", "vCore", "hour", ""),
                "BC vCore Gen5" => ("sql-database-bc", "vCore", "hour", ""),
                "Hyperscale vCore Gen5" => ("sql-database-hyperscale", "vCore", "hour", ""),
                "GP serverless vCore Gen5" => ("sql-database-serverless", "vCore", "hour", ""),
                "GP storage" => ("sql-database-gp", "GiB", "month", ""),
                "BC storage" => ("sql-database-bc", "GiB", "month", ""),
                "Hyperscale storage" => ("sql-database-hyperscale", "GiB", "month", ""),
                _ => continue,
            },
            ("SQL Server on VM", "licence Enterprise") => {
                ("sql-server-enterprise", "vCore licence", "hour", "")
            }
            ("SQL Server on VM", "licence Standard") => {
                ("sql-server-standard", "vCore licence", "hour", "")
            }
            _ => continue,
        };
        // The edition's file has these prices of West Europe with more digits.
        let is_more_exact =
            matches!((of, per, term), ("gp", "vCore" | "GiB", "") | ("bc", "vCore", ""));
        if is_more_exact && row.get("region") == "westeurope" {
            continue;
        }
        // The first GiB of an instance come with its compute.
        let is_storage = matches!((of, per), ("gp" | "bc", "GiB"));
        let free = if is_storage { INCLUDED_GIB } else { "" };
        let item = [of, per, unit, term, free, "", row.get("source")];
        let region = row.get("region");
        // A licence costs the same everywhere.
        prices.add(item, if region.is_empty() { "eastus" } else { region }, row.get("usd"));
    }
    Ok(prices.table())
}

pub(super) fn azure_postgres(facts: &Facts) -> Result<Table, XtaskError> {
    let mut prices = Prices::default();
    for row in facts.rows("azure-disk-prices.csv")?.iter().filter(|row| !is_by_hand(row)) {
        let name = row.get("item").split_once('(').and_then(|(_, name)| name.strip_suffix(')'));
        if let ("PostgreSQL flexible", Some(name)) = (row.get("product"), name) {
            let item = [name, "instance", "hour", "", "", "", row.get("source")];
            prices.add(item, row.get("region"), row.get("usd"));
        }
    }
    Ok(prices.table())
}

pub(super) fn aws(facts: &Facts) -> Result<Table, XtaskError> {
    let mut prices = Prices::default();
    for row in facts.rows("aws-ec2.csv")? {
        let price = row.get("usd_hour_us_east_1");
        if !price.is_empty() {
            let item = [row.get("instance_type"), "host", "hour", "", "", "", "karpenter-aws"];
            prices.add(item, "us-east-1", price);
        }
    }
    for row in facts.rows("aws-storage-prices.csv")?.iter().filter(|row| !is_by_hand(row)) {
        let of = match (row.get("service"), row.get("item")) {
            ("EBS", name) => name,
            ("RDS storage", "gp3 single-AZ") => "rds-gp3",
            ("RDS storage", "io1 single-AZ") => "rds-io1",
            _ => continue,
        };
        let item = [of, "GiB", "month", "", "", "", row.get("source")];
        prices.add(item, row.get("region"), row.get("usd"));
    }
    Ok(prices.table())
}

/// Percentages off for use in a whole month. The catalog's monthly prices, found apart from these
/// hourly ones, show them.
const SUSTAINED: [(&str, &str); 3] = [("n1-", "30"), ("n2-", "20"), ("m1-", "30")];

pub(super) fn gcp(facts: &Facts) -> Result<Table, XtaskError> {
    let mut prices = Prices::default();
    for row in facts.rows("gcp-prices.csv")? {
        let name = row.get("item");
        let discount = SUSTAINED.iter().find(|own| name.starts_with(own.0)).map_or("", |own| own.1);
        let family = name.replace(' ', "-");
        let item = match row.get("kind") {
            "vm" => [name, "host", "hour", "", "", discount, row.get("source")],
            _ => [&family, "GiB", "month", "", "", "", row.get("source")],
        };
        prices.add(item, row.get("region"), row.get("usd"));
    }
    Ok(prices.table())
}
