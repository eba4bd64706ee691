//! Files of several verbs: layouts, their editions, other text, and comparisons of paths.

use crate::error::CliError;
use crate::output;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::Path;
use weir_catalog::{Catalog, Edition};
use weir_layout::Layout;

/// Reads a text file; `what` names its kind in messages.
pub(crate) fn read(path: &Path, what: &'static str) -> Result<String, CliError> {
    fs::read_to_string(path).map_err(|source| match source.kind() {
        ErrorKind::InvalidData => CliError::NotText { path: path.to_owned(), what },
        _ => CliError::Read { path: path.to_owned(), source },
    })
}

/// Reads and resolves a layout file.
pub(crate) fn read_layout(path: &Path, catalog: &Catalog) -> Result<Layout, CliError> {
    Ok(read_layout_text(path, catalog)?.1)
}

/// Reads a layout file and returns its text, too.
pub(crate) fn read_layout_text(
    path: &Path,
    catalog: &Catalog,
) -> Result<(String, Layout), CliError> {
    let text = read_layout_file(path)?;
    let layout = Layout::parse(&path.display().to_string(), &text, catalog)?;
    Ok((text, layout))
}

/// Reads the text of a layout, unless it is too large for one.
pub(crate) fn read_layout_file(path: &Path) -> Result<String, CliError> {
    let most = Layout::MAX_SIZE.get();
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes));
    read.map_err(|source| CliError::Read { path: path.to_owned(), source })?;
    if bytes.len() as u64 > most {
        return Err(Layout::too_large(&path.display().to_string()).into());
    }
    String::from_utf8(bytes)
        .map_err(|_| CliError::NotText { path: path.to_owned(), what: "layout" })
}

/// Returns the edition of a layout, if it has one.
pub(crate) fn edition_of<'a>(
    layout: &Layout,
    catalog: &'a Catalog,
) -> Result<Option<&'a Edition>, CliError> {
    let edition = layout.edition.as_ref().map(|name| catalog.edition(name));
    Ok(edition.transpose()?)
}

/// Returns whether two paths lead to the same existing file or folder.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).ok();
    real(one).is_some_and(|one| real(other) == Some(one))
}

/// Prints the notes on a layout that affect the results.
pub(crate) fn say_notes(layout: &Layout) {
    for host in &layout.hosts {
        host.notes
            .iter()
            .for_each(|note| output::talk(&format!("note: host {}: {note}", host.name)));
    }
}
