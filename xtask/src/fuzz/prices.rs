//! Invariants of price lists, editions and downloads of the clouds: they are read, or rejected with a
//! message that names the file.

use super::plans::small;
use weir_catalog::{CatalogError, Edition, PriceList, Update};

const FILE: &str = "fuzz.json";
const AS_OF: &str = "2026-11-01";

pub(super) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    said(PriceList::read(FILE, &text));
    said(Edition::from_toml(FILE, &text));
    let mut update = Update::new(small());
    if said(update.read(FILE, &text, AS_OF))
        && let Ok(written) = update.toml("fuzz")
    {
        // Figures of a download may contradict each other.
        said(Edition::from_toml(FILE, &written));
    }
}

/// Checks the message of an error, and returns whether there is none.
fn said<T>(result: Result<T, CatalogError>) -> bool {
    let Err(error) = result else { return true };
    let message = error.to_string();
    assert!(message.contains(FILE) && message.len() > FILE.len() + 2, "{message:?} of {error:?}");
    false
}
