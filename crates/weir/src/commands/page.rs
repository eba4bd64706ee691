//! Writing HTML pages, which `--html` and `--plot` ask for.

use super::observe::picture::Picture;
use super::plan::can_write;
use crate::error::CliError;
use crate::input::is_same;
use std::fs;
use std::path::Path;
use weir_catalog::Catalog;
use weir_layout::Layout;
use weir_observe::when::written as date;
use weir_report::Page;
use weir_report::page::RunPage;

/// Writes a page with its date.
pub(crate) fn write(path: &Path, page: &Page) -> Result<(), CliError> {
    fs::write(path, page.html(&written())).map_err(|source| CliError::write(path, source))
}

/// Writes the page of a run, if `--html` asks for it.
pub(crate) fn write_run(
    path: Option<&Path>,
    report: &impl RunPage,
    priced: Option<(&Layout, &Catalog)>,
    picture: Option<&Picture>,
) -> Result<(), CliError> {
    let Some(path) = path else { return Ok(()) };
    let (charts, notes) = picture.map(Picture::charts).unwrap_or_default();
    let money = priced.map(|(layout, catalog)| money(layout, catalog)).transpose()?.flatten();
    let page = report.page(money.as_deref(), &charts)?;
    write(path, &page.paragraphs(notes.iter().map(String::as_str)))
}

/// Refuses a page that would replace another file of the run, before the run begins.
pub(crate) fn check<'a>(
    html: Option<&Path>,
    others: impl IntoIterator<Item = &'a Path>,
) -> Result<(), CliError> {
    let Some(html) = html else { return Ok(()) };
    if others.into_iter().any(|own| own == html || is_same(own, html)) {
        let words =
            format!("--html {}: is another file of this run; use another name", html.display());
        return Err(CliError::Refused(words));
    }
    can_write("--html", html)
}

/// Returns a sentence on the monthly price of a layout, if its edition has prices.
fn money(layout: &Layout, catalog: &Catalog) -> Result<Option<String>, CliError> {
    let Some((bill, book)) = layout.priced(catalog)? else { return Ok(None) };
    let unknown = match bill.unknown().count() {
        0 => String::new(),
        1 => "; one item has no price".to_owned(),
        n => format!("; {n} items have no price"),
    };
    Ok(Some(format!("{} {} a month, in {}{unknown}", bill.month(), book.currency(), book.region())))
}

/// Returns when and by what a page is written.
fn written() -> String {
    let by = concat!("weir ", env!("CARGO_PKG_VERSION"));
    let seconds = weir_wall::calendar() / 1_000_000_000;
    let nanos = i64::try_from(seconds).unwrap_or(0).saturating_mul(1_000_000_000);
    format!("Written by {by} at {}.", date(nanos, 0))
}
