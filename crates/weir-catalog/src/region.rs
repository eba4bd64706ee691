//! Prices by region from a table. A region is read when it is asked for.

use crate::price::{Item, Per, Price, PriceList, Term, is_place};
use crate::provenance::Provenance;
use crate::tables::{self, Packed};
use std::fmt;
use std::sync::{Arc, OnceLock};
use weir_units::Money;

/// The currency of all tables.
const CURRENCY: &str = "USD";
/// Hours per month in the calculation of all vendors.
pub(crate) const HOURS: u128 = 730;
/// Number of columns before those of the regions.
const ITEM_COLUMNS: usize = 7;
/// The column of prices that hold in every region.
const EVERYWHERE: &str = "all";
/// The marks of prices that were computed from others, and the rules that their sources state.
const DERIVED: [(char, &str); 3] = [('d', "derived"), ('t', "twin"), ('s', "sibling")];

/// The prices of an edition in many regions.
#[derive(Clone)]
pub(crate) struct RegionPrices {
    table: Packed,
    /// Names of regions as the edition spells them.
    spelled: Vec<String>,
    unpacked: Arc<OnceLock<Unpacked>>,
}

/// A table, with the price lists that were read from it. No cell has a comma or quotation marks.
struct Unpacked {
    text: String,
    regions: Vec<Region>,
    everywhere: Option<usize>,
}

struct Region {
    name: String,
    column: usize,
    lists: OnceLock<Vec<PriceList>>,
}

impl fmt::Debug for RegionPrices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegionPrices").field("table", &self.table.name).finish_non_exhaustive()
    }
}

impl PartialEq for RegionPrices {
    fn eq(&self, other: &Self) -> bool {
        self.table == other.table && self.spelled == other.spelled
    }
}

impl Eq for RegionPrices {}

impl RegionPrices {
    /// Returns the prices of a built-in edition, if there is a table of them. `spelled` are the names
    /// that the edition itself has for some regions.
    pub(crate) fn find(edition: &str, spelled: Vec<String>) -> Option<Self> {
        let (_, table) = tables::PRICES.into_iter().find(|own| own.0 == edition)?;
        Some(Self { table, spelled, unpacked: Arc::default() })
    }

    fn unpacked(&self) -> &Unpacked {
        self.unpacked.get_or_init(|| {
            let text = self.table.text();
            let heads: Vec<&str> = text.lines().next().unwrap_or_default().split(',').collect();
            let spelled = |name: &str| {
                let own = self.spelled.iter().find(|own| is_place(own, name));
                own.map_or_else(|| name.to_owned(), Clone::clone)
            };
            let regions = heads.iter().enumerate().skip(ITEM_COLUMNS);
            let regions = regions.filter(|(_, name)| **name != EVERYWHERE);
            let region = |(column, name): (usize, &&str)| Region {
                name: spelled(name),
                column,
                lists: OnceLock::new(),
            };
            Unpacked {
                everywhere: heads.iter().position(|name| *name == EVERYWHERE),
                regions: regions.map(region).collect(),
                text,
            }
        })
    }

    /// Returns the names of the regions.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.unpacked().regions.iter().map(|region| region.name.as_str())
    }

    /// Returns the price lists of a region; none if the table does not have it.
    pub(crate) fn lists(&self, region: &str) -> &[PriceList] {
        let own = self.unpacked().regions.iter().find(|own| is_place(&own.name, region));
        own.map_or(&[], |own| own.lists.get_or_init(|| self.read(own)))
    }

    fn read(&self, region: &Region) -> Vec<PriceList> {
        let Unpacked { text, everywhere, .. } = self.unpacked();
        let mut lists: Vec<PriceList> = Vec::new();
        for line in text.lines().skip(1) {
            let columns = [Some(region.column), *everywhere].into_iter().flatten();
            let mut cells = columns.filter_map(|column| line.split(',').nth(column));
            let Some(cell) = cells.find(|cell| !cell.is_empty()) else { continue };
            let (price, os) = self.price(line, cell);
            let is_own = |list: &&mut PriceList| {
                list.os.as_deref() == os && list.provenance.citation == price.provenance.citation
            };
            match lists.iter_mut().find(is_own) {
                Some(list) => list.rows.push(price),
                None => lists.push(PriceList {
                    region: region.name.clone(),
                    currency: CURRENCY.to_owned(),
                    os: os.map(str::to_owned),
                    provenance: Provenance { notes: Vec::new(), ..price.provenance.clone() },
                    rows: vec![price],
                }),
            }
        }
        lists
    }

    /// Returns the price in a cell, and the operating system that it includes.
    fn price(&self, line: &str, cell: &str) -> (Price, Option<&'static str>) {
        let mut columns = line.split(',');
        let [name, per, unit, term, free, discount, source] =
            [(); ITEM_COLUMNS].map(|()| columns.next().unwrap_or_default());
        let name = name.to_owned();
        let (item, os) = match per {
            "host" => (Item::Host(name), Some("linux")),
            "instance" => (Item::Host(name), None),
            "tier" => (Item::Tier(name), None),
            unit => match Per::named(unit) {
                Some(per) => (Item::Unit { of: name, per }, None),
                None => self.broken(unit),
            },
        };
        let rule = DERIVED.into_iter().find(|(mark, _)| cell.ends_with(*mark));
        let digits = cell.trim_end_matches(char::is_alphabetic);
        let is_hourly = unit == "hour";
        let hours = if is_hourly { HOURS } else { 1 };
        let off: u128 = discount.parse().unwrap_or(0);
        let (Some(month), Some(each)) =
            (money(digits, hours * (100 - off), 100), money(digits, 1, 1))
        else {
            self.broken(cell);
        };
        let (mut notes, mut key) = (Vec::new(), source.to_owned());
        if off > 0 {
            notes.push(format!(
                "a month is {HOURS} hours less {off} % for sustained use, which a whole month gets"
            ));
        }
        if let Some((_, rule)) = rule {
            key = format!("{key}-{rule}");
        }
        let price = Price {
            item,
            term: match term {
                "1" => Term::OneYear,
                "3" => Term::ThreeYears,
                _ => Term::OnDemand,
            },
            free: free.parse().unwrap_or(0),
            month,
            hour: is_hourly.then_some(each),
            steps: Vec::new(),
            provenance: Provenance {
                citation: tables::citation(&key),
                figures: Vec::new(),
                notes,
                conflicts: Vec::new(),
                history: Vec::new(),
            },
        };
        (price, os)
    }

    fn broken(&self, text: &str) -> ! {
        unreachable!("{} is broken: {text:?}", self.table.name)
    }
}

/// Returns a decimal number as money, times `times`, by `by`; halves of a millionth are rounded up.
pub(crate) fn money(digits: &str, times: u128, by: u128) -> Option<Money> {
    /// Decimals that are kept; no price has more.
    const DECIMALS: usize = 15;
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    let is_empty = whole.is_empty() && decimals.is_empty();
    if is_empty || decimals.len() > DECIMALS {
        return None;
    }
    let number = |text: &str| match text {
        "" => Some(0),
        // A sign is no digit.
        text if !text.bytes().all(|byte| byte.is_ascii_digit()) => None,
        text => text.parse::<u64>().ok().map(u128::from),
    };
    let power = |exponent: usize| Some(10_u128.pow(u32::try_from(exponent).ok()?));
    let fraction = number(decimals)? * power(DECIMALS - decimals.len())?;
    let scaled = number(whole)? * power(DECIMALS)? + fraction;
    let divisor = by * power(DECIMALS - 6)?;
    let micros = (scaled * times + divisor / 2) / divisor;
    u64::try_from(micros).ok().map(Money::from_micros)
}

#[cfg(test)]
mod tests {
    use super::money;

    #[test]
    fn a_price_is_exact_to_a_millionth() {
        let micros = |digits, times, by| money(digits, times, by).map(weir_units::Money::micros);
        assert_eq!(micros("0.192", 730, 1), Some(140_160_000));
        assert_eq!(micros("5", 1, 1), Some(5_000_000));
        assert_eq!(micros("102.648409134027", 730, 1), Some(74_933_338_668));
        // 283.58456 less 20 %.
        assert_eq!(micros("0.388472", 730 * 80, 100), Some(226_867_648));
        assert_eq!(micros("0.000001", 1, 1), Some(1));
        assert_eq!((micros("3.", 1, 1), micros("3.5", 1, 1)), (Some(3_000_000), Some(3_500_000)));
        assert_eq!(micros(".5", 1, 1), Some(500_000));
        for wrong in ["", ".", "x", "1.x", "+1", "1.+5", "1.2.3", "1.0000000000000001"] {
            assert_eq!(micros(wrong, 1, 1), None, "{wrong}");
        }
    }
}
