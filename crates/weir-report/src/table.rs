//! Tables and the four formats.

use crate::answer::Answer;
use crate::columns::{Column, lay_out};
use crate::screen::Screen;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// An output format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// Aligned columns.
    #[default]
    Text,
    /// One JSON document.
    Json,
    /// Comma-separated values with one header line. If a report has several tables, the first
    /// column names the table, and the columns are those of all tables.
    Csv,
    /// Markdown tables.
    Markdown,
}

impl Format {
    /// The values of `--output`.
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

/// A cell with its text and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Text: rounded, with separators and unit.
    shown: String,
    /// The number for CSV and JSON; `None` if the cell is text.
    raw: Option<f64>,
}

impl Cell {
    /// Returns a number with its text.
    #[must_use]
    pub fn number(shown: String, raw: f64) -> Self {
        // Adding zero turns -0 into 0.
        Self { shown, raw: Some(raw + 0.0) }
    }

    /// Returns a cell without a value: `-` in text, empty in CSV, `null` in JSON.
    #[must_use]
    pub fn none() -> Self {
        Self { shown: "-".to_owned(), raw: None }
    }

    /// Returns the value for CSV.
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

/// Builds a row of cells from text and numbers.
#[macro_export]
macro_rules! cells {
    ($($cell:expr),* $(,)?) => { vec![$($crate::table::Cell::from($cell)),*] };
}

/// A table with title, headings and rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// Title, printed above the table in text and Markdown.
    pub title: String,
    /// Name in CSV (column `table`) and JSON (key); the title if empty. Tables of the same name are
    /// one table there.
    pub name: String,
    /// Headings. `>` at the start aligns a column of numbers to the right. A name behind `|` is
    /// used in CSV and JSON, with the unit of the plain number: `>mean|mean_ns`. A column with
    /// nothing before `|` is in CSV and JSON only, one with nothing behind it in text and Markdown
    /// only.
    pub heads: Vec<String>,
    /// Rows, each as long as `heads`.
    pub rows: Vec<Vec<Cell>>,
    /// Lines below the table, in text and Markdown.
    pub notes: Vec<String>,
}

impl Table {
    /// Returns an empty table with these headings.
    #[must_use]
    pub fn new(title: impl Into<String>, heads: &[&str]) -> Self {
        let heads = heads.iter().map(|head| (*head).to_owned()).collect();
        Self { title: title.into(), heads, ..Self::default() }
    }

    /// Returns the table with a name for CSV and JSON.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Appends a row.
    ///
    /// # Panics
    ///
    /// If the row and the headings differ in length.
    pub fn row(&mut self, cells: Vec<Cell>) {
        assert_eq!(cells.len(), self.heads.len(), "a row of {:?} has another length", self.title);
        self.rows.push(cells);
    }

    fn machine_name(&self) -> &str {
        if self.name.is_empty() { &self.title } else { &self.name }
    }

    /// Returns the headings and indexes of columns for text.
    pub(crate) fn shown(&self) -> Vec<(&str, usize)> {
        let shown = |head: &'_ str| head.find('|').unwrap_or(head.len());
        let heads = self.heads.iter().enumerate();
        let heads = heads.map(|(at, head)| (head[..shown(head)].trim_start_matches('>'), at));
        heads.filter(|(head, _)| !head.is_empty()).collect()
    }

    /// Returns the headings and indexes of columns for CSV and JSON.
    fn plain(&self) -> Vec<(&str, usize)> {
        let plain = |head: &'_ str| head.rfind('|').map_or(0, |bar| bar + 1);
        let heads = self.heads.iter().enumerate();
        let heads = heads.map(|(at, head)| (head[plain(head)..].trim_start_matches('>'), at));
        heads.filter(|(head, _)| !head.is_empty()).collect()
    }

    /// Returns whether text has anything to print.
    pub(crate) fn speaks(&self) -> bool {
        !self.notes.is_empty() || (!self.rows.is_empty() && !self.shown().is_empty())
    }

    /// Returns the table as aligned columns that fit the screen.
    pub(crate) fn text(&self, screen: &Screen) -> String {
        let columns: Vec<Column<'_>> = self
            .shown()
            .into_iter()
            .map(|(head, at)| Column {
                head,
                is_number: self.heads[at].starts_with('>'),
                cells: self.rows.iter().map(|row| row[at].to_string()).collect(),
            })
            .collect();
        lay_out(&columns, screen.width())
    }

    /// Returns the table in Markdown.
    pub(crate) fn markdown(&self) -> String {
        let shown = self.shown();
        let mut table = comfy_table::Table::new();
        table.load_preset(comfy_table::presets::ASCII_MARKDOWN);
        table.set_content_arrangement(comfy_table::ContentArrangement::Disabled);
        table.set_header(shown.iter().map(|(head, _)| *head));
        table
            .add_rows(self.rows.iter().map(|row| shown.iter().map(|(_, at)| row[*at].to_string())));
        for (column, (_, at)) in table.column_iter_mut().zip(&shown) {
            if self.heads[*at].starts_with('>') {
                column.set_cell_alignment(comfy_table::CellAlignment::Right);
            }
        }
        let lines = table.lines().map(|line| line.trim_end().to_owned());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Returns the title, the table and its notes as text.
    pub(crate) fn block(&self, screen: &Screen) -> String {
        let mut lines = Vec::new();
        if !self.title.is_empty() {
            lines.push(screen.prose(&self.title, 2));
        }
        if self.has_body() {
            lines.push(self.text(screen));
        }
        lines.extend(self.notes.iter().map(|note| screen.prose(note, 2)));
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Returns the title, the table and its notes in Markdown.
    fn markdown_block(&self) -> String {
        let mut lines = Vec::new();
        if !self.title.is_empty() {
            lines.push(format!("**{}**\n", self.title));
        }
        if self.has_body() {
            lines.push(self.markdown());
        }
        lines.extend(self.notes.iter().map(|note| format!("\n{note}")));
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Returns whether the table itself is printed: an empty one is not, if a note says why.
    fn has_body(&self) -> bool {
        !self.rows.is_empty() || self.notes.is_empty()
    }

    /// Returns the rows as maps from heading to cell.
    fn json(&self) -> Vec<serde_json::Value> {
        let heads = self.plain();
        let row = |cells: &Vec<Cell>| {
            let cell = |(head, at): &(&str, usize)| ((*head).to_owned(), cells[*at].json());
            serde_json::Value::Object(heads.iter().map(cell).collect())
        };
        self.rows.iter().map(row).collect()
    }
}

/// Returns a report in JSON.
pub(crate) fn json<T: Serialize + ?Sized>(report: &T) -> String {
    // Report types consist of strings, numbers, lists and maps with string keys, so that this does
    // not fail.
    let json = serde_json::to_string_pretty(report);
    json.map_or_else(|error| format!("{{\"error\":\"{error}\"}}\n"), |text| text + "\n")
}

/// Returns all tables as one. If there are several, the first column names the table, and rows have
/// cells for the columns of all. Tables without columns for CSV are left out.
pub(crate) fn csv(tables: &[Table]) -> String {
    let tables: Vec<&Table> = tables.iter().filter(|table| !table.plain().is_empty()).collect();
    let mut heads: Vec<&str> = Vec::new();
    for (head, _) in tables.iter().flat_map(|table| table.plain()) {
        if !heads.contains(&head) {
            heads.push(head);
        }
    }
    let several = tables.len() > 1;
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut write = |table: &str, cells: Vec<String>| {
        let first = several.then(|| table.to_owned());
        // Writing to memory does not fail, and all rows have the same length.
        let written = writer.write_record(first.into_iter().chain(cells));
        debug_assert!(written.is_ok());
    };
    write("table", heads.iter().map(|head| (*head).to_owned()).collect());
    for table in &tables {
        let own = table.plain();
        let places: Vec<Option<usize>> = heads
            .iter()
            .map(|head| own.iter().find(|(known, _)| known == head).map(|(_, at)| *at))
            .collect();
        for row in &table.rows {
            let cell = |at: &Option<usize>| at.map_or_else(String::new, |at| row[at].plain());
            write(table.machine_name(), places.iter().map(cell).collect());
        }
    }
    let bytes = writer.into_inner().unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A result that can be printed in every format.
pub trait Report: Serialize {
    /// Returns its tables.
    fn tables(&self) -> Vec<Table>;

    /// Returns the answer that stands above the tables, if the report has one.
    fn lead(&self) -> Option<Answer> {
        None
    }

    /// Returns the report as text for a screen, ending in a newline.
    fn text(&self, screen: &Screen) -> String {
        if let Some(answer) = self.lead() {
            return answer.text(&self.tables(), screen);
        }
        let blocks = printed(&self.tables()).map(|table| table.block(screen)).collect::<Vec<_>>();
        blocks.join("\n")
    }

    /// Returns the report in Markdown, ending in a newline.
    fn markdown(&self) -> String {
        if let Some(answer) = self.lead() {
            return answer.markdown(&self.tables());
        }
        printed(&self.tables()).map(Table::markdown_block).collect::<Vec<_>>().join("\n")
    }

    /// Returns the report as comma-separated values.
    fn csv(&self) -> String {
        csv(&self.tables())
    }

    /// Returns the report in `format`, with text of unlimited width.
    fn render(&self, format: Format) -> String {
        self.render_on(format, &Screen::unlimited())
    }

    /// Returns the report in `format`, with text for `screen`.
    fn render_on(&self, format: Format, screen: &Screen) -> String {
        match format {
            Format::Text => self.text(screen),
            Format::Json => json(self),
            Format::Csv => self.csv(),
            Format::Markdown => self.markdown(),
        }
    }
}

/// Returns the tables that people read: a single one, or those with content.
fn printed(tables: &[Table]) -> impl Iterator<Item = &Table> {
    tables.iter().filter(|table| tables.len() == 1 || table.speaks())
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

/// Tables without a report type, such as a listing.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing(pub Vec<Table>);

impl Serialize for Listing {
    /// Serializes one table as a list of rows, several as a map from names to lists.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let [one] = self.0.as_slice() {
            return one.json().serialize(serializer);
        }
        let mut named: BTreeMap<&str, Vec<serde_json::Value>> = BTreeMap::new();
        for table in &self.0 {
            named.entry(table.machine_name()).or_default().append(&mut table.json());
        }
        named.serialize(serializer)
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
    fn several_tables_are_one_document_for_machines() {
        let mut tiers = Table::new("premium", &["tier", ">burst|", "|burst_iops"]).named("tiers");
        tiers.row(cells!["P10", "3,500 / 170", crate::number::grouped(3_500)]);
        tiers.row(cells!["P30", Cell::none(), Cell::none()]);
        let mut more = Table::new("standard", &["tier", "|burst_iops"]).named("tiers");
        more.row(cells!["E10", crate::number::grouped(600)]);
        let mut remarks = Table::new("", &["|tier", "|kind"]).named("remarks");
        remarks.row(cells!["P10", "conflict"]);
        let empty = Table::new("nothing", &["family"]).named("families");
        let listing = Listing(vec![tiers, more, remarks, empty]);
        assert_eq!(
            listing.render(Format::Text),
            "premium\n tier        burst\n P10   3,500 / 170\n P30             -\n\n\
             standard\n tier\n E10\n"
        );
        assert_eq!(
            listing.render(Format::Csv),
            "table,tier,burst_iops,kind,family\ntiers,P10,3500,,\ntiers,P30,,,\ntiers,E10,600,,\n\
             remarks,P10,,conflict,\n"
        );
        let json: serde_json::Value =
            serde_json::from_str(&listing.render(Format::Json)).expect("JSON");
        assert_eq!(
            json,
            serde_json::json!({
                "families": [],
                "remarks": [{ "tier": "P10", "kind": "conflict" }],
                "tiers": [
                    { "tier": "P10", "burst_iops": 3_500 },
                    { "tier": "P30", "burst_iops": null },
                    { "tier": "E10", "burst_iops": 600 },
                ],
            })
        );
    }

    #[test]
    fn a_table_is_for_people_for_machines_or_says_why_it_is_empty() {
        let mut people = Table::new("", &["where the time went|"]);
        people.row(cells!["disk_iops 90.6 %"]);
        let mut machines = Table::new("", &["|wait_disk_iops_ns"]).named("waits");
        machines.row(cells![crate::number::grouped(12_345)]);
        let both = Listing(vec![people, machines]);
        assert_eq!(both.render(Format::Csv), "wait_disk_iops_ns\n12345\n");
        assert_eq!(both.render(Format::Text), " where the time went\n disk_iops 90.6 %\n");
        let mut empty = Table::new("", &["machine"]);
        empty.notes.push("there are none".to_owned());
        let empty = Listing(vec![empty]);
        assert_eq!(empty.render(Format::Text), "there are none\n");
        assert_eq!(empty.render(Format::Csv), "machine\n");
    }

    #[test]
    fn an_unknown_format_is_refused() {
        assert_eq!(
            "yaml".parse::<Format>(),
            Err("\"yaml\" is not a format; use text, json, csv, markdown".to_owned())
        );
    }
}
