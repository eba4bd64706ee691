//! The catalog and a small edition, and plans for needs of any kind.

use std::sync::OnceLock;
use weir_catalog::{Catalog, Edition};
use weir_plan::Question;
use weir_plan::need::NeedFile;

/// An edition with one machine and two disk sizes, for which plans take microseconds.
const SMALL: &str = include_str!("../../../catalog/example.toml");

pub(super) fn catalog() -> &'static Catalog {
    static CATALOG: OnceLock<Catalog> = OnceLock::new();
    CATALOG.get_or_init(Catalog::builtin)
}

pub(super) fn small() -> &'static Edition {
    static EDITION: OnceLock<Edition> = OnceLock::new();
    EDITION.get_or_init(|| {
        Edition::from_toml("example.toml", SMALL).unwrap_or_else(|error| panic!("{error}"))
    })
}

/// Plans for a need, which may be refused with a message.
pub(super) fn plan(file: &NeedFile) {
    let need = match file.need() {
        Ok((need, _)) => need,
        Err(error) => return assert!(!error.to_string().trim().is_empty(), "{error:?}"),
    };
    let wishes = file.wishes();
    let question = Question {
        catalog: catalog(),
        edition: small(),
        prices: None,
        need: &need,
        wishes: &wishes,
    };
    if let Err(error) = weir_plan::plan(&question) {
        assert!(!error.to_string().trim().is_empty(), "{error:?} says nothing");
    }
}
