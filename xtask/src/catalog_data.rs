//! The tables in `catalog/data`: machines and prices of today's editions, in a compact form.
//!
//! They are generated from files of facts that are kept elsewhere, so that nobody copies a figure by
//! hand. `cargo xtask catalog-data FACTS` writes them again when the facts have changed.

use crate::error::XtaskError;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

mod hosts;
mod prices;
mod sources;

/// Writes all tables below `root`, and returns their paths.
///
/// # Errors
///
/// [`XtaskError::File`] if a file of facts cannot be read or a table not be written,
/// [`XtaskError::Facts`] if a file of facts has another form than expected.
pub fn write(facts: &Path, root: &Path) -> Result<Vec<PathBuf>, XtaskError> {
    let facts = Facts { folder: facts.to_owned() };
    let folder = root.join("catalog").join("data");
    fs::create_dir_all(&folder).map_err(XtaskError::file("making", &folder))?;
    let tables = [
        ("azure-hosts.csv", hosts::azure(&facts)?),
        ("aws-hosts.csv", hosts::aws(&facts)?),
        ("gcp-hosts.csv", hosts::gcp(&facts)?),
        ("azure-prices.csv", prices::azure(&facts)?),
        ("azure-mi-prices.csv", prices::azure_mi(&facts)?),
        ("azure-postgres-prices.csv", prices::azure_postgres(&facts)?),
        ("aws-prices.csv", prices::aws(&facts)?),
        ("gcp-prices.csv", prices::gcp(&facts)?),
        ("conflicts.csv", sources::conflicts(&facts)?),
    ];
    let mut paths = Vec::new();
    let mut keys = BTreeSet::new();
    for (name, table) in &tables {
        keys.extend(table.sources.iter().cloned());
        let path = folder.join(name);
        fs::write(&path, &table.text).map_err(XtaskError::file("writing", &path))?;
        paths.push(path);
    }
    let path = folder.join("sources.csv");
    let text = sources::cited(&facts, &keys)?;
    fs::write(&path, text).map_err(XtaskError::file("writing", &path))?;
    paths.push(path);
    Ok(paths)
}

/// A table as CSV, with the keys of the sources that it cites.
#[derive(Debug, Default)]
struct Table {
    text: String,
    sources: BTreeSet<String>,
}

impl Table {
    fn line<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        for (index, cell) in cells.into_iter().enumerate() {
            let cell = cell.as_ref();
            if index > 0 {
                self.text.push(',');
            }
            match cell.contains([',', '"']) {
                true => self.text.push_str(&format!("\"{}\"", cell.replace('"', "\"\""))),
                false => self.text.push_str(cell),
            }
        }
        self.text.push('\n');
    }

    fn cite(&mut self, keys: &[&str]) {
        self.sources.extend(keys.iter().filter(|key| !key.is_empty()).map(|key| (*key).to_owned()));
    }
}

/// The folder of the facts.
#[derive(Debug)]
struct Facts {
    folder: PathBuf,
}

impl Facts {
    fn text(&self, name: &str) -> Result<String, XtaskError> {
        let path = self.folder.join(name);
        fs::read_to_string(&path).map_err(XtaskError::file("reading", &path))
    }

    /// Reads a CSV file with one line of headings.
    fn rows(&self, name: &str) -> Result<Vec<Row>, XtaskError> {
        let text = self.text(name)?;
        let mut lines = text.lines().filter(|line| !line.is_empty());
        let heads = cells(lines.next().unwrap_or_default());
        let row = |line: &str| {
            let cells = cells(line);
            match cells.len() == heads.len() {
                true => Ok(Row(heads.iter().cloned().zip(cells).collect())),
                false => Err(XtaskError::Facts {
                    file: name.to_owned(),
                    reason: format!(
                        "{} cells where the headings have {}: {line}",
                        cells.len(),
                        heads.len()
                    ),
                }),
            }
        };
        lines.map(row).collect()
    }
}

/// A row of a file of facts.
#[derive(Debug)]
struct Row(BTreeMap<String, String>);

impl Row {
    /// Returns a cell; empty if the file has no such column.
    fn get(&self, head: &str) -> &str {
        self.0.get(head).map_or("", String::as_str)
    }
}

/// Splits a line of CSV.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                if let Some(cell) = cells.last_mut() {
                    cell.push('"');
                }
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            c => {
                if let Some(cell) = cells.last_mut() {
                    cell.push(c);
                }
            }
        }
    }
    cells
}
