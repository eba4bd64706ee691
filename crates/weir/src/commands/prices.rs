//! `weir prices`: what a machine, a disk or a unit costs, by region, with source and date.

use crate::cli::PricesArgs;
use crate::error::CliError;
use crate::output;
use std::thread;
use weir_catalog::{Catalog, CatalogError, Edition, Item, Price, PriceBook, PriceList, Term};
use weir_report::cells;
use weir_report::table::{Cell, Listing, Table};
use weir_units::Money;

/// The value of `--region` that means all of them.
const ALL: &str = "all";

/// Number of regions that a message names before it counts the rest.
const LISTED: usize = 12;

/// The region of an edition whose document names none.
const NO_REGION: &str = "not given";

const DAY: u64 = 86_400 * 1_000_000_000;

pub(crate) fn run(args: &PricesArgs, catalog: &Catalog) -> Result<u8, CliError> {
    let table = match &args.name {
        _ if args.regions => regions(args, catalog)?,
        Some(name) => of_name(name, args, catalog)?,
        None => return Err(CliError::Refused("name a machine, a disk or a family".to_owned())),
    };
    output::print(&Listing(vec![table]), args.output.format())?;
    Ok(0)
}

/// Lists the regions of an edition or of all.
fn regions(args: &PricesArgs, catalog: &Catalog) -> Result<Table, CliError> {
    let mut table = Table::new("", &["region", "edition"]).named("regions");
    let named = args.edition.as_ref().or(args.name.as_ref());
    for edition in editions(named, catalog)? {
        for region in edition.regions() {
            table.row(cells![region, edition.name()]);
        }
    }
    match named.filter(|_| table.rows.is_empty()) {
        Some(name) => Err(CliError::Refused(format!(
            "{name} has no prices; `weir prices --regions` lists the editions that have some"
        ))),
        None => Ok(table),
    }
}

/// Returns the edition of a name, or all.
fn editions<'a>(
    name: Option<&String>,
    catalog: &'a Catalog,
) -> Result<Vec<&'a Edition>, CatalogError> {
    match name {
        Some(name) => Ok(vec![catalog.edition(name)?]),
        None => {
            catalog.read_all();
            Ok(catalog.editions().collect())
        }
    }
}

fn of_name(name: &str, args: &PricesArgs, catalog: &Catalog) -> Result<Table, CliError> {
    let mut table = table();
    let mut refused = None;
    let editions = editions(args.edition.as_ref(), catalog)?;
    let wanted = args.region.as_deref().filter(|region| *region != ALL);
    // Prices are read on first use: those of all editions in parallel. Errors come again below.
    thread::scope(|scope| {
        for edition in &editions {
            let read = || drop(edition.price_book(wanted, args.currency.as_deref(), None));
            // Without a thread, they are read below.
            let _ = thread::Builder::new().spawn_scoped(scope, read);
        }
    });
    for edition in &editions {
        let regions = match args.region.as_deref() {
            Some(ALL) => edition.regions().into_iter().map(Some).collect(),
            region => vec![region],
        };
        for region in regions {
            match edition.price_book(region, args.currency.as_deref(), None) {
                Ok(book) => book.iter().for_each(|book| add(&mut table, edition, book, name)),
                Err(error) => {
                    let rank = relevance(&error, edition, name);
                    if refused.as_ref().is_none_or(|(best, _)| *best < rank) {
                        refused = Some((rank, error));
                    }
                }
            }
        }
    }
    match (table.rows.is_empty(), refused) {
        (false, _) => Ok(table),
        // No edition has the region or the currency.
        (true, Some((_, error))) if editions.iter().all(|own| is_unknown(own, args)) => {
            catalog.get(name)?;
            Err(error.into())
        }
        (true, _) => Err(missing(name, wanted, args, catalog, &editions)?),
    }
}

/// Ranks the error of an edition: one that suggests a similar region helps most, then one of the
/// edition that has the item in most regions.
fn relevance(error: &CatalogError, edition: &Edition, name: &str) -> usize {
    let has = |book: PriceBook<'_>| book.all(bare(name)).next().is_some();
    match error {
        CatalogError::NoPrices { near: Some(_), .. } => usize::MAX,
        _ if edition.price_book(None, None, None).ok().flatten().is_some_and(has) => {
            edition.regions().len()
        }
        _ => 0,
    }
}

fn is_unknown(edition: &Edition, args: &PricesArgs) -> bool {
    let region = args.region.as_deref().filter(|region| *region != ALL);
    !matches!(edition.price_book(region, args.currency.as_deref(), None), Ok(Some(_)))
}

/// Returns the message for an item without a price in the regions that were asked for.
fn missing(
    name: &str,
    region: Option<&str>,
    args: &PricesArgs,
    catalog: &Catalog,
    editions: &[&Edition],
) -> Result<CliError, CliError> {
    let mut places: Vec<String> = Vec::new();
    for edition in editions {
        for region in edition.regions() {
            let book = edition.price_book(Some(region), args.currency.as_deref(), None);
            let has = |book: PriceBook<'_>| book.all(bare(name)).next().is_some();
            if book.ok().flatten().is_some_and(has) {
                places.push(region.to_owned());
            }
        }
    }
    if places.is_empty() {
        let found = catalog.get(name)?;
        let edition = match (&args.edition, found.first()) {
            (Some(named), _) => catalog.edition(named)?.name(),
            (None, found) => found.map_or("the catalog", |found| found.edition().name()),
        };
        let words = format!(
            "no price of {name} is known in {edition}; weir catalog update makes an edition with \
             prices that you download"
        );
        return Ok(CliError::Refused(words));
    }
    let more = match places.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more (--region all lists the prices)"),
    };
    places.truncate(LISTED);
    let here = region.map_or("the default region".to_owned(), str::to_owned);
    let words =
        format!("no price of {name} is known in {here}; there are in {}{more}", places.join(", "));
    Ok(CliError::Refused(words))
}

/// Returns an empty table of prices.
pub(super) fn table() -> Table {
    let heads = [
        "price of|item",
        "edition",
        "region",
        "per",
        "os",
        "term",
        ">hour|hour",
        ">month|month",
        ">free|free",
        "currency",
        "in use|in_use",
        "as of|as_of",
        "source",
        "|note",
    ];
    Table::new("", &heads).named("prices")
}

/// Returns a name without the series of a machine.
fn bare(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, size)| size)
}

/// Adds all prices of an item in a price book, with notes about old ones.
pub(super) fn add(table: &mut Table, edition: &Edition, book: &PriceBook<'_>, name: &str) {
    let today = weir_wall::calendar() / DAY;
    // A disk of another redundancy is priced by its set.
    let rows: Vec<(&PriceList, &Price)> = book.all(name).collect();
    let rows = if rows.is_empty() { book.all(bare(name)).collect() } else { rows };
    for (list, price) in rows {
        let used = used(book, price);
        table.row(row(edition, list, price, used));
        let citation = price.provenance.of("price");
        // Plans do not count on a price that is not in use. People decide by a reservation, so its age counts.
        if used != InUse::No && citation.is_old(today) {
            note(
                table,
                format!(
                    "the price of {}{} is of {}, more than a year ago: check it before you decide",
                    words(&price.item),
                    match list.region.as_str() {
                        NO_REGION => String::new(),
                        region => format!(" in {region}"),
                    },
                    citation.as_of
                ),
            );
        }
        for text in price.provenance.notes() {
            note(table, text.clone());
        }
    }
}

/// Names an item in a sentence, as in `io2 per GiB`.
fn words(item: &Item) -> String {
    match item {
        Item::Tier(name) | Item::Host(name) => name.clone(),
        Item::Unit { of, per } => format!("{of} per {}", per.name()),
    }
}

fn note(table: &mut Table, text: String) {
    if !table.notes.contains(&text) {
        table.notes.push(text);
    }
}

/// Tells whether plans count on a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InUse {
    Yes,
    /// Another source counts.
    No,
    /// A reservation.
    Listed,
}

impl InUse {
    const fn name(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Listed => "-",
        }
    }
}

/// Returns whether plans count on a price.
fn used(book: &PriceBook<'_>, price: &Price) -> InUse {
    let used = match &price.item {
        Item::Tier(name) => book.tier(name),
        Item::Host(name) => book.host(name),
        Item::Unit { of, per } => book.unit(of, *per),
    };
    match used {
        Some(used) if std::ptr::eq(used, price) => InUse::Yes,
        _ if price.term == Term::OnDemand => InUse::No,
        _ => InUse::Listed,
    }
}

fn row(edition: &Edition, list: &PriceList, price: &Price, in_use: InUse) -> Vec<Cell> {
    let (name, per) = match &price.item {
        Item::Tier(name) => (name, "disk"),
        Item::Host(name) => (name, "machine"),
        Item::Unit { of, per } => (of, per.name()),
    };
    let citation = price.provenance.of("price");
    let notes = price.provenance.notes().join("; ");
    let os = list.os.as_deref().filter(|_| matches!(price.item, Item::Host(_)));
    cells![
        name.as_str(),
        edition.name(),
        list.region.as_str(),
        per,
        os.map_or_else(Cell::none, Cell::from),
        price.term.name(),
        amount(price.hour),
        amount(Some(price.month)),
        match price.free {
            0 => Cell::none(),
            free => weir_report::number::grouped(free),
        },
        list.currency.as_str(),
        in_use.name(),
        &*citation.as_of,
        &*citation.source,
        if notes.is_empty() { Cell::none() } else { notes.into() },
    ]
}

fn amount(money: Option<Money>) -> Cell {
    #[expect(clippy::cast_precision_loss, reason = "millionths of a price are far below 2^53")]
    money.map_or_else(Cell::none, |money| {
        Cell::number(money.exact().to_string(), money.micros() as f64 / 1e6)
    })
}
