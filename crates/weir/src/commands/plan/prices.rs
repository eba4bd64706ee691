//! `weir plan --prices`: the prices of one place, those that were given before the edition's.

use crate::error::CliError;
use std::fs;
use std::path::Path;
use weir_catalog::{CatalogError, Edition, PriceBook, PriceList};
use weir_plan::need::NeedFile;

/// Reads the price lists of a file, if one is given.
pub(crate) fn own(path: Option<&Path>) -> Result<Vec<PriceList>, CliError> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let text = fs::read_to_string(path)
        .map_err(|source| CliError::Read { path: path.to_owned(), source })?;
    let lists = PriceList::read(&path.display().to_string(), &text)?;
    match lists.iter().find(|list| !is_currency(&list.currency)) {
        Some(list) => Err(CliError::Refused(format!(
            "--prices {}: {:?} is not a currency code; use three letters, for example USD",
            path.display(),
            list.currency
        ))),
        None => Ok(lists),
    }
}

/// Returns whether a text has the form of an ISO 4217 code.
pub(super) fn is_currency(text: &str) -> bool {
    text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// A file with more unknown items than this is a vendor's complete list.
const WHOLE_LIST: usize = 20;

/// Returns the prices of one region and currency, and notes about prices that are not used.
pub(crate) fn book<'a>(
    keys: &NeedFile,
    edition: &'a Edition,
    path: Option<&Path>,
    own: &'a [PriceList],
) -> Result<(Option<PriceBook<'a>>, Vec<String>), CliError> {
    let (region, currency) = (keys.region.as_deref(), keys.currency.as_deref());
    let book = edition.price_book_with(own, region, currency, keys.os.as_deref());
    let book = book.map_err(|error| match (&error, path) {
        (CatalogError::NoPrices { .. }, None) => {
            CliError::Refused(format!("{error}; --prices FILE takes others"))
        }
        _ => error.into(),
    })?;
    let (Some(path), Some(book)) = (path, book.as_ref()) else {
        return Ok((book, Vec::new()));
    };
    if !own.iter().any(|list: &PriceList| book.lists().iter().any(|own| std::ptr::eq(*own, list))) {
        let asked = [region, currency, keys.os.as_deref()];
        return Err(CliError::Refused(format!(
            "--prices {}: has no prices for {}; it has {}; leave out region, currency and os, or \
             add those prices",
            path.display(),
            asked.into_iter().flatten().collect::<Vec<_>>().join(", "),
            places(own.iter())
        )));
    }
    let is_here = |list: &PriceList| {
        let mut lists = book.lists().iter();
        lists.any(|own| own.region == list.region && own.currency == list.currency)
    };
    let left = places(own.iter().chain(edition.prices()).filter(|list| !is_here(list)));
    let other_place = (!left.is_empty()).then(|| {
        format!(
            "prices are from {} ({} in {}); those of other regions or currencies are left out: \
             {left}",
            path.display(),
            book.region(),
            book.currency()
        )
    });
    let notes = other_place.into_iter().chain(of_nothing(edition, path, own));
    Ok((Some(book.clone()), notes.collect()))
}

/// Returns the note about prices of items that the edition does not have.
fn of_nothing(edition: &Edition, path: &Path, own: &[PriceList]) -> Option<String> {
    let rows = own.iter().flat_map(|list| &list.rows).map(|row| &row.item);
    let unknown: Vec<String> =
        rows.filter(|item| !edition.has(item)).map(|item| format!("\"{item}\"")).collect();
    (1..=WHOLE_LIST).contains(&unknown.len()).then(|| {
        format!(
            "{}: {} has no {}, so the price is not used; `weir catalog tiers` and `hosts` list the \
             names",
            path.display(),
            edition.name(),
            unknown.join(", ")
        )
    })
}

/// Lists the regions and currencies of price lists, each once.
fn places<'a>(lists: impl Iterator<Item = &'a PriceList>) -> String {
    let mut all: Vec<String> = Vec::new();
    for list in lists {
        let os = list.os.as_ref().map(|os| format!(" ({os})")).unwrap_or_default();
        let name = format!("{} in {}{os}", list.region, list.currency);
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all.join(", ")
}
