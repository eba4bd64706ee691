//! `weir plan --prices`: the prices of one place, those that were given before the edition's.

use crate::error::CliError;
use std::fs;
use std::path::Path;
use weir_catalog::{Edition, PriceBook, PriceList};
use weir_plan::need::NeedFile;

/// The price lists of a file, if one was given.
pub(in crate::commands) fn own(path: Option<&Path>) -> Result<Vec<PriceList>, CliError> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let text = fs::read_to_string(path);
    let text = text.map_err(|source| CliError::Read { path: path.to_owned(), source })?;
    Ok(PriceList::read(&path.display().to_string(), &text)?)
}

/// A file with more prices than this of what an edition has not is a vendor's whole list.
const WHOLE_LIST: usize = 20;

/// The prices of one place, and what is to be said of those that are of another, or of nothing.
pub(in crate::commands) fn book<'a>(
    keys: &NeedFile,
    edition: &'a Edition,
    path: Option<&Path>,
    own: &'a [PriceList],
) -> Result<(Option<PriceBook<'a>>, Vec<String>), CliError> {
    let (region, currency) = (keys.region.as_deref(), keys.currency.as_deref());
    let lists = own.iter().chain(edition.prices());
    let book = PriceBook::of(lists, region, currency, keys.os.as_deref())?;
    let (Some(path), Some(book)) = (path, book.as_ref()) else {
        return Ok((book, Vec::new()));
    };
    let is_used = |list: &PriceList| book.lists().iter().any(|own| std::ptr::eq(*own, list));
    if !own.iter().any(is_used) {
        let asked = [region, currency, keys.os.as_deref()];
        return Err(CliError::Refused(format!(
            "--prices {}: has no prices of {}; it has {}: leave region, currency and os out, or give \
             prices of those",
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
            "prices are those of {} ({} in {}); others are of another place and left out: {left}",
            path.display(),
            book.region(),
            book.currency()
        )
    });
    let notes = other_place.into_iter().chain(of_nothing(edition, path, own));
    Ok((Some(book.clone()), notes.collect()))
}

/// What to say of prices that nothing of the edition has: nobody asks for them.
fn of_nothing(edition: &Edition, path: &Path, own: &[PriceList]) -> Option<String> {
    let rows = own.iter().flat_map(|list| &list.rows).map(|row| &row.item);
    let unknown = rows.filter(|item| !edition.has(item)).map(|item| format!("\"{item}\""));
    let unknown: Vec<String> = unknown.collect();
    (1..=WHOLE_LIST).contains(&unknown.len()).then(|| {
        format!(
            "{}: {} has no {}: the price is not used; `weir catalog tiers` and `hosts` list the names",
            path.display(),
            edition.name(),
            unknown.join(", ")
        )
    })
}

/// Regions and currencies of lists, each once.
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
