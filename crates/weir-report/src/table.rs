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

/// A cell: how it reads, and what it is for machines.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// As people read it: grouped, rounded, with a unit.
    shown: String,
    /// The number behind it, for CSV and JSON; `None` for text.
    raw: Option<f64>,
}

impl Cell {
    /// A number that reads as `shown`.
    #[must_use]
    pub fn number(shown: String, raw: f64) -> Self {
        Self { shown, raw: Some(raw) }
    }

    /// Nothing: `-` for people, empty for machines.
    #[must_use]
    pub fn none() -> Self {
        Self { shown: "-".to_owned(), raw: None }
    }

    /// Without rounding, grouping and units.
    fn plain(&self) -> String {
        match self.raw {
            Some(raw) => raw.to_string(),
            None if self.shown == "-" => String::new(),
            None => self.shown.clone(),
        }
    }

    fn json(&self) -> serde_json::Value {
        match self.raw {
            // Counts stay whole numbers.
            Some(raw) => match raw.to_string().parse::<u64>() {
                Ok(whole) => whole.into(),
                Err(_) => raw.into(),
            },
            None if self.shown == "-" => serde_json::Value::Null,
            None => self.shown.clone().into(),
        }
    }
}

impl From<String> for Cell {
    fn from(shown: String) -> Self {
        Self { shown, raw: None }
    }
}

impl From<&str> for Cell {
    fn from(shown: &str) -> Self {
        Self { shown: shown.to_owned(), raw: None }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// A row of cells from text and numbers.
#[macro_export]
macro_rules! cells {
    ($($cell:expr),* $(,)?) => { vec![$($crate::table::Cell::from($cell)),*] };
}

/// A table: a title, column heads, rows of cells.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// What it shows; printed above it in text and Markdown.
    pub title: String,
    /// Column heads. A head that starts with `>` is of a column of numbers, which
    /// is aligned to the right. Behind a `|` stands the name for machines, with the
    /// unit of the plain number, where it is another: `>mean|mean_ns`.
    pub heads: Vec<String>,
    /// Rows, each as long as `heads`.
    pub rows: Vec<Vec<Cell>>,
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
    pub fn row(&mut self, cells: Vec<Cell>) {
        assert_eq!(cells.len(), self.heads.len(), "a row of {:?} has another length", self.title);
        self.rows.push(cells);
    }

    /// The heads for people.
    fn shown_heads(&self) -> impl Iterator<Item = &str> {
        self.heads.iter().map(|h| h.split('|').next().unwrap_or_default().trim_start_matches('>'))
    }

    /// The heads for machines.
    fn plain_heads(&self) -> impl Iterator<Item = &str> {
        self.heads.iter().map(|h| h.rsplit('|').next().unwrap_or_default().trim_start_matches('>'))
    }

    fn text(&self, preset: &str) -> String {
        let mut table = comfy_table::Table::new();
        table.load_preset(preset);
        table.set_content_arrangement(comfy_table::ContentArrangement::Disabled);
        table.set_header(self.shown_heads());
        table.add_rows(self.rows.iter().map(|row| row.iter().map(Cell::to_string)));
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
        let mut write = |cells: Vec<String>| {
            // Writing to memory does not fail, and all rows have the same length.
            let written = writer.write_record(cells);
            debug_assert!(written.is_ok());
        };
        write(self.plain_heads().map(str::to_owned).collect());
        self.rows.iter().for_each(|row| write(row.iter().map(Cell::plain).collect()));
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
#[derive(Debug, Clone, PartialEq)]
pub struct Listing(pub Vec<Table>);

impl Serialize for Listing {
    /// A list of rows, each a map from head to cell; of several tables a list of
    /// such lists.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows = |table: &Table| -> Vec<serde_json::Map<String, serde_json::Value>> {
            let heads: Vec<&str> = table.plain_heads().collect();
            let row = |cells: &Vec<Cell>| {
                let cell = |(head, cell): (&&str, &Cell)| ((*head).to_owned(), cell.json());
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
        let mut table = Table::new("Tiers", &["name", ">IOPS", ">mean|mean_ns"]);
        table.row(cells!["P10", crate::number::grouped(500), Cell::none()]);
        table.row(cells!["P30, cached", crate::number::grouped(5_000), crate::number::time(1.5e6)]);
        table.notes.push("from the catalog".into());
        Listing(vec![table])
    }

    #[test]
    fn one_report_in_four_formats() {
        let check = |format, expect: &str| assert_eq!(sample().render(format), expect);
        check(
            Format::Text,
            "Tiers\n name          IOPS     mean\n P10            500        -\n P30, cached  5,000  1.50 ms\nfrom the catalog\n",
        );
        check(Format::Csv, "name,IOPS,mean_ns\nP10,500,\n\"P30, cached\",5000,1500000\n");
        check(
            Format::Markdown,
            "**Tiers**\n\n| name        |  IOPS |    mean |\n|-------------|-------|---------|\n| P10         |   500 |       - |\n| P30, cached | 5,000 | 1.50 ms |\n\nfrom the catalog\n",
        );
        let json: serde_json::Value =
            serde_json::from_str(&sample().render(Format::Json)).expect("JSON");
        assert_eq!(json[1]["IOPS"], 5_000);
        assert_eq!(json[0]["mean_ns"], serde_json::Value::Null);
    }

    #[test]
    fn an_unknown_format_is_refused() {
        assert_eq!(
            "yaml".parse::<Format>(),
            Err("\"yaml\" is not a format; use text, json, csv, markdown".to_owned())
        );
    }
}
