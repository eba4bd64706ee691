//! `weir catalog update`: an edition from files that the user downloaded.

use crate::error::CliError;
use crate::input::read;
use crate::output;
use std::fs;
use std::path::{Path, PathBuf};
use weir_catalog::{Catalog, Edition, Update, date_of};
use weir_report::number::grouped;

const DAY: u64 = 86_400 * 1_000_000_000;

/// The edition to extend, and the files to extend it with.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) edition: &'a str,
    pub(super) files: &'a [PathBuf],
    pub(super) name: Option<&'a str>,
    pub(super) as_of: Option<&'a str>,
}

pub(super) fn run(
    request: &Request<'_>,
    out: Option<&Path>,
    catalog: &Catalog,
) -> Result<u8, CliError> {
    let base = catalog.edition(request.edition)?;
    let today = date_of(weir_wall::calendar() / DAY);
    let as_of = request.as_of.unwrap_or(&today);
    let mut update = Update::new(base);
    for path in request.files {
        let origin = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        let contents = update.read(&origin, &read(path, "downloaded file")?, as_of)?;
        output::talk(&format!(
            "{}: {}, {} machines, {} prices",
            path.display(),
            contents.kind,
            grouped(contents.machines as u64),
            grouped(contents.prices as u64)
        ));
    }
    let name = request.name.map_or_else(|| format!("{}-updated", base.name()), str::to_owned);
    let text = update.toml(&name)?;
    // The edition must be one that --catalog takes.
    catalog.clone().add(Edition::from_toml(&name, &text)?)?;
    match out {
        None => output::print_text(&text)?,
        Some(path) => fs::write(path, &text)
            .map_err(|source| CliError::Write { path: path.to_owned(), source })?,
    }
    Ok(0)
}
