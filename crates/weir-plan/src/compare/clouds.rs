//! The clouds to compare: for each an edition, and its prices in one region and currency.

use crate::planner::has_machines;
use weir_catalog::{Catalog, CatalogError, Edition, PriceBook};

/// A cloud with its edition and prices.
#[derive(Debug, Clone)]
pub struct Cloud<'a> {
    /// The name that was asked for: a cloud or an edition.
    pub name: String,
    /// The edition.
    pub edition: &'a Edition,
    /// The prices, if there are any.
    pub prices: Option<PriceBook<'a>>,
    /// The part of the question that the prices do not cover.
    pub note: Option<String>,
}

impl<'a> Cloud<'a> {
    /// Finds the edition and the prices of a cloud. Another currency than that of the prices is
    /// noted, since it depends on the cloud; so are prices without the operating system.
    ///
    /// # Errors
    ///
    /// [`CatalogError`] for an unknown name or region.
    pub fn find(
        catalog: &'a Catalog,
        (name, region): (&str, Option<&str>),
        currency: Option<&str>,
        os: Option<&str>,
    ) -> Result<Self, CatalogError> {
        let edition = edition_of(catalog, name)?;
        let book = |currency, os| edition.price_book(region, currency, os);
        let own = |prices, note| Self { name: name.to_owned(), edition, prices, note };
        let lacking = match book(currency, os) {
            Ok(prices) => return Ok(own(prices, None)),
            Err(error) => error,
        };
        if let (Some(wanted), Ok(Some(prices))) = (currency, book(None, os)) {
            let note = format!("has no prices in {wanted}, so they are in {}", prices.currency());
            return Ok(own(Some(prices), Some(note)));
        }
        match (os, book(None, None)) {
            (Some(os), Ok(_)) => {
                let note = format!("has no prices of machines with {os}");
                Ok(own(None, Some(note)))
            }
            _ => Err(lacking),
        }
    }
}

/// Returns the edition with a name, or the newest of a cloud's editions that have machines.
///
/// # Errors
///
/// [`CatalogError::Unknown`] if there is neither.
pub fn edition_of<'a>(catalog: &'a Catalog, name: &str) -> Result<&'a Edition, CatalogError> {
    let unknown = match catalog.edition(name) {
        Ok(edition) => return Ok(edition),
        Err(unknown) => unknown,
    };
    let is_own = |edition: &&Edition| {
        edition.provider().is_some_and(|own| own.eq_ignore_ascii_case(name.trim()))
    };
    let own = || catalog.editions().filter(is_own);
    let newest = |one: &&Edition, other: &&Edition| last_date(one).cmp(last_date(other));
    own()
        .filter(|edition| has_machines(edition))
        .max_by(newest)
        .or_else(|| own().max_by(newest))
        .ok_or(unknown)
}

/// Returns the last date of an edition's period, such as `2026-09-16`.
fn last_date(edition: &Edition) -> &str {
    let words = edition.as_of().split(|c: char| !c.is_ascii_digit() && c != '-');
    let is_date = |word: &&str| word.len() >= 4 && word.bytes().take(4).all(|c| c.is_ascii_digit());
    words.filter(is_date).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cloud_is_its_newest_edition_with_machines() {
        let catalog = Catalog::builtin();
        let check = |name: &str, expect: &str| {
            assert_eq!(edition_of(&catalog, name).map(Edition::name).ok(), Some(expect), "{name}");
        };
        check("azure", "azure-now");
        check("Azure", "azure-now");
        check("aws", "aws");
        check("gcp", "gcp");
        // Any edition can be named.
        check("azure-premium-2015", "azure-premium-2015");
        check("azure-mi-now", "azure-mi-now");
        let error = edition_of(&catalog, "azzure").expect_err("no cloud").to_string();
        assert!(error.contains("azure-now"), "{error}");
    }

    #[test]
    fn a_currency_that_a_cloud_lacks_is_noted() {
        let catalog = Catalog::builtin();
        let find = |region, currency| Cloud::find(&catalog, ("aws", region), currency, None);
        let own = find(None, Some("EUR")).expect("a cloud");
        assert_eq!(own.prices.map(|book| book.currency().to_owned()).as_deref(), Some("USD"));
        let note = "has no prices in EUR, so they are in USD";
        assert_eq!(own.note.as_deref(), Some(note));
        assert!(find(Some("Mars"), None).is_err());
    }
}
