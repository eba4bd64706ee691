//! Tables and the four formats.

use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// How to print a report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// Aligned columns for people.
    #[default]
    Text,
    /// One JSON document.
    Json,
    /// Comma-separated values with a header line; several tables are separated by
    /// an empty line.
    Csv,
    /// Markdown tables.
    Markdown,
}

impl Format {
    /// The names, as given to `--output`.
    pub const NAMES: [&'static str; 4] = ["text", "json", "csv", "markdown"];
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            "csv" => Ok(Self::Csv),
            "markdown" => Ok(Self::Markdown),
            _ => Err(format!("{text:?} is not a format; use {}", Self::NAMES.join(", "))),
        }
    }
}

/// A table: a title, column heads, rows of cells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// What it shows; printed above it in text and Markdown.
    pub title: String,
    /// Column heads. A head that starts with `>` is of a column of numbers, which
    /// is aligned to the right.
    pub heads: Vec<String>,
    /// Rows, each as long as `heads`.
    pub rows: Vec<Vec<String>>,
    /// Lines below the table, in text and Markdown.
    pub notes: Vec<String>,
}

impl Table {
    /// An empty table with these heads.
    #[must_use]
    pub fn new(title: impl Into<String>, heads: &[&str]) -> Self {
        let heads = heads.iter().map(|head| (*head).to_owned()).collect();
        Self { title: title.into(), heads, ..Self::default() }
    }

    /// Appends a row.
    ///
    /// # Panics
    ///
    /// If it is not as long as the heads.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.heads.len(), "a row of {:?} has another length", self.title);
        self.rows.push(cells);
    }

    fn plain_heads(&self) -> impl Iterator<Item = &str> {
        self.heads.iter().map(|head| head.trim_start_matches('>'))
    }

    fn text(&self, preset: &str) -> String {
        let mut table = comfy_table::Table::new();
        table.load_preset(preset);
        table.set_content_arrangement(comfy_table::ContentArrangement::Disabled);
        table.set_header(self.plain_heads());
        table.add_rows(&self.rows);
        for (column, head) in table.column_iter_mut().zip(&self.heads) {
            if head.starts_with('>') {
                column.set_cell_alignment(comfy_table::CellAlignment::Right);
            }
        }
        let lines = table.lines().map(|line| line.trim_end().to_owned());
        lines.collect::<Vec<_>>().join("\n")
    }

    fn csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let mut write = |cells: Vec<&str>| {
            // Writing to memory does not fail, and all rows have the same length.
            let written = writer.write_record(cells);
            debug_assert!(written.is_ok());
        };
        write(self.plain_heads().collect());
        self.rows.iter().for_each(|row| write(row.iter().map(String::as_str).collect()));
        let bytes = writer.into_inner().unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Something that can be printed in every format.
pub trait Report: Serialize {
    /// Its tables.
    fn tables(&self) -> Vec<Table>;

    /// The whole report in `format`, ending in a newline.
    fn render(&self, format: Format) -> String {
        let tables = self.tables();
        match format {
            Format::Json => {
                // The report types hold strings, numbers, lists and maps with string
                // keys: nothing that JSON cannot say.
                let json = serde_json::to_string_pretty(self);
                json.map_or_else(|error| format!("{{\"error\":\"{error}\"}}\n"), |text| text + "\n")
            }
            Format::Csv => tables.iter().map(Table::csv).collect::<Vec<_>>().join("\n"),
            Format::Text => {
                let preset = comfy_table::presets::NOTHING;
                let one = |table: &Table| layout(&table.title, &table.text(preset), &table.notes);
                tables.iter().map(one).collect::<Vec<_>>().join("\n")
            }
            Format::Markdown => {
                let preset = comfy_table::presets::ASCII_MARKDOWN;
                let one = |table: &Table| {
                    let title = match table.title.is_empty() {
                        true => String::new(),
                        false => format!("**{}**\n", table.title),
                    };
                    let notes: Vec<String> =
                        table.notes.iter().map(|note| format!("\n{note}")).collect();
                    layout(&title, &table.text(preset), &notes)
                };
                tables.iter().map(one).collect::<Vec<_>>().join("\n")
            }
        }
    }
}

fn layout(title: &str, body: &str, notes: &[String]) -> String {
    let mut out = String::new();
    let mut line = |text: &str| {
        out.push_str(text);
        out.push('\n');
    };
    if !title.is_empty() {
        line(title);
    }
    line(body);
    notes.iter().for_each(|note| line(note));
    out
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Markdown => "markdown",
        })
    }
}

/// Tables that stand for themselves, such as a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing(pub Vec<Table>);

impl Serialize for Listing {
    /// A list of rows, each a map from head to cell; of several tables a list of
    /// such lists.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows = |table: &Table| -> Vec<serde_json::Map<String, serde_json::Value>> {
            let heads: Vec<&str> = table.plain_heads().collect();
            let row = |cells: &Vec<String>| {
                let cell = |(head, cell): (&&str, &String)| {
                    ((*head).to_owned(), serde_json::Value::String(cell.clone()))
                };
                heads.iter().zip(cells).map(cell).collect()
            };
            table.rows.iter().map(row).collect()
        };
        match self.0.as_slice() {
            [one] => rows(one).serialize(serializer),
            many => many.iter().map(rows).collect::<Vec<_>>().serialize(serializer),
        }
    }
}

impl Report for Listing {
    fn tables(&self) -> Vec<Table> {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Listing {
        let mut table = Table::new("Tiers", &["name", ">IOPS"]);
        table.row(vec!["P10".into(), "500".into()]);
        table.row(vec!["P30, cached".into(), "5,000".into()]);
        table.notes.push("from the catalog".into());
        Listing(vec![table])
    }

    #[test]
    fn one_report_in_four_formats() {
        let check = |format, expect: &str| assert_eq!(sample().render(format), expect);
        check(
            Format::Text,
            "Tiers\n name          IOPS\n P10            500\n P30, cached  5,000\nfrom the catalog\n",
        );
        check(Format::Csv, "name,IOPS\nP10,500\n\"P30, cached\",\"5,000\"\n");
        check(
            Format::Markdown,
            "**Tiers**\n\n| name        |  IOPS |\n|-------------|-------|\n| P10         |   500 |\n| P30, cached | 5,000 |\n\nfrom the catalog\n",
        );
        let json: serde_json::Value =
            serde_json::from_str(&sample().render(Format::Json)).expect("JSON");
        assert_eq!(json[1]["IOPS"], "5,000");
    }

    #[test]
    fn an_unknown_format_is_refused() {
        assert_eq!(
            "yaml".parse::<Format>(),
            Err("\"yaml\" is not a format; use text, json, csv, markdown".to_owned())
        );
    }
}
