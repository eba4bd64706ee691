//! The published rates of `../shared/facts/backup-measurements.csv` beside the model.
//!
//! `measurements/checks.toml` says how each row is expressed as a simulation, or why it cannot be. No
//! row has a tolerance: a fitted row must be met within 2 %, and a predicted one is counted by its
//! error. The counts stand in `docs/BACKUP.md`, so a change of the model that moves one is seen there.

#![expect(clippy::print_stdout, reason = "says what is skipped, and which steps differ")]

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use weir_catalog::Catalog;
use weir_layout::Layout;
use weir_pipeline::{Buffers, Description, buffers, printed_rate};
use weir_sim::{OltpOptions, OltpSimulation};
use weir_units::{Bytes, Instant, Span};

const MIB: f64 = 1_048_576.0;
/// Maximum error of a fitted row.
const FITTED: f64 = 0.02;
/// Changes below this share are none.
const SAME: f64 = 0.05;
/// Bounds of the errors of predictions, in percent.
const BOUNDS: [u32; 5] = [2, 5, 10, 20, 50];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Checks {
    printed: Rows,
    buffers: Rows,
    group: Vec<Group>,
    direction: Vec<Group>,
    not_expressed: Vec<NotExpressed>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rows {
    rows: Vec<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    name: String,
    layout: String,
    size: String,
    /// The size of the database in GiB, where the row has none.
    gib: Option<f64>,
    /// Rows that parameters were fitted to.
    #[serde(default)]
    fitted: Vec<u32>,
    rows: Vec<Simulated>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Simulated {
    id: u32,
    /// Keys of the backup that differ.
    backup: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NotExpressed {
    reason: String,
    rows: Vec<u32>,
}

/// A row of the published rates.
#[derive(Debug, Deserialize)]
struct Published {
    id: u32,
    database_gb: String,
    duration_s: String,
    rate: String,
    rate_unit: String,
    buffer_count: String,
    note: String,
}

impl Published {
    /// Returns its rate in MiB/s: the published one, or the size over the duration.
    fn rate(&self, gib: Option<f64>) -> Option<f64> {
        let number = |text: &str| text.parse::<f64>().ok();
        let unit = match self.rate_unit.split(' ').next()? {
            "MiB/s" => 1.0,
            "GiB/s" => 1024.0,
            "MB/s" => 1e6 / MIB,
            _ => 0.0,
        };
        if let Some(rate) = number(&self.rate)
            && unit > 0.0
        {
            return Some(rate * unit);
        }
        Some(gib.or_else(|| number(&self.database_gb))? * 1024.0 / number(&self.duration_s)?)
    }

    /// Returns the pages that its note has.
    fn pages(&self) -> Option<u64> {
        let (pages, _) = self.note.split_once(" pages")?;
        pages.rsplit(' ').next()?.replace(',', "").parse().ok()
    }
}

fn published() -> Option<BTreeMap<u32, Published>> {
    let path = weir_needs::shared("facts")?.join("backup-measurements.csv");
    let mut reader = csv::Reader::from_path(path).expect("a CSV file");
    let rows = reader.deserialize().map(|row| row.expect("a row"));
    Some(rows.map(|row: Published| (row.id, row)).collect())
}

fn checks() -> Checks {
    toml::from_str(include_str!("measurements/checks.toml")).expect("sound checks")
}

/// Simulates a row and returns its rate in MiB/s.
fn simulate(group: &Group, row: &Simulated) -> f64 {
    let layout = Layout::parse(&group.name, &group.layout, &Catalog::builtin());
    let layout = layout.unwrap_or_else(|error| panic!("{}: {error}", group.name));
    let text =
        format!("[backup]\nsources = [\"source\"]\nsize = \"{}\"\n{}\n", group.size, row.backup);
    let backup = Description::parse(&format!("row {}", row.id), &text);
    let backups = [backup.unwrap_or_else(|error| panic!("{}: {error}", group.name))];
    let options = OltpOptions { backups: &backups, ..OltpOptions::default() };
    let mut simulation = OltpSimulation::new(&layout, &[], &options).expect("it fits");
    simulation.run_until(Instant::FAR);
    simulation.report().backups[0].mib_per_s.expect("a rate")
}

/// A row beside the model.
struct Beside {
    id: u32,
    is_fitted: bool,
    published: f64,
    model: f64,
}

impl Beside {
    fn error(&self) -> f64 {
        self.model / self.published - 1.0
    }
}

fn beside(group: &Group, published: &BTreeMap<u32, Published>) -> Vec<Beside> {
    let row = |row: &Simulated| {
        let rate = published[&row.id].rate(group.gib);
        Beside {
            id: row.id,
            is_fitted: group.fitted.contains(&row.id),
            published: rate.unwrap_or_else(|| panic!("row {} has no rate", row.id)),
            model: simulate(group, row),
        }
    };
    group.rows.iter().map(row).collect()
}

/// Steps between neighbours of a group, and those in which the model changes like the rates.
fn steps(rows: &[Beside]) -> (usize, usize) {
    let agrees = |pair: &&[Beside]| {
        let change = |of: fn(&Beside) -> f64| of(&pair[1]) / of(&pair[0]) - 1.0;
        let (published, model) = (change(|own| own.published), change(|own| own.model));
        let is_close = ((1.0 + model) / (1.0 + published) - 1.0).abs() <= SAME;
        let is_alike = published.abs() > SAME && model.abs() > SAME && published * model > 0.0;
        if !is_close && !is_alike {
            println!("rows {} and {}: {published:+.2}, model {model:+.2}", pair[0].id, pair[1].id);
        }
        is_close || is_alike
    };
    (rows.len() - 1, rows.windows(2).filter(agrees).count())
}

#[test]
fn every_row_is_expressed_once_or_has_a_reason() {
    let checks = checks();
    let groups = checks.group.iter().chain(&checks.direction);
    let simulated = groups.flat_map(|group| group.rows.iter().map(|row| row.id));
    let reasons = checks.not_expressed.iter().flat_map(|own| own.rows.iter().copied());
    let listed = checks.printed.rows.iter().chain(&checks.buffers.rows).copied();
    let mut seen = BTreeSet::new();
    for id in simulated.chain(reasons).chain(listed) {
        assert!(seen.insert(id), "row {id} stands twice");
    }
    assert_eq!(seen, (1..=257).collect());
    let Some(published) = published() else { return };
    assert_eq!(seen, published.keys().copied().collect());
}

#[test]
fn printed_rates_are_pages_over_seconds() {
    let Some(published) = published() else { return };
    let checks = checks();
    for id in &checks.printed.rows {
        let row = &published[id];
        let seconds: f64 = row.duration_s.parse().expect("a duration");
        let pages = row.pages().unwrap_or_else(|| panic!("row {id} has no pages"));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time")]
        let elapsed = Span::from_nanos((seconds * 1e9) as u64);
        let rate = printed_rate(Bytes::new(pages * 8192), elapsed).expect("a rate");
        let expect = row.rate(None).expect("a rate");
        assert!((rate / expect - 1.0).abs() < 0.001, "row {id}: {rate} beside {expect}");
    }
    for id in &checks.buffers.rows {
        let own = Buffers::new((1, 1), false, buffers::MAX_TRANSFER, None);
        assert_eq!(published[id].buffer_count, own.count.to_string(), "row {id}");
    }
}

#[test]
fn the_documentation_counts_what_the_model_gives() {
    let Some(published) = published() else { return };
    let checks = checks();
    let mut table = String::from(
        "| experiment | rows | fitted | predicted | errors of the predictions |\n|---|--:|--:|--:|---|\n",
    );
    let mut errors = Vec::new();
    for group in &checks.group {
        let rows = beside(group, &published);
        for row in rows.iter().filter(|row| row.is_fitted) {
            let Beside { id, published, model, .. } = row;
            let is_met = row.error().abs() <= FITTED;
            assert!(is_met, "row {id} of {:?}: {model:.1} beside {published:.1}", group.name);
        }
        let predicted = rows.iter().filter(|row| !row.is_fitted);
        let own: Vec<f64> = predicted.map(Beside::error).collect();
        let shown: Vec<String> = own.iter().map(|e| format!("{:+.0} %", 100.0 * e)).collect();
        let (all, fitted) = (rows.len(), rows.len() - own.len());
        let _ = writeln!(
            table,
            "| {} | {all} | {fitted} | {} | {} |",
            group.name,
            own.len(),
            shown.join(", ")
        );
        errors.extend(own);
    }
    table += "\n| predictions within | rows |\n|---|--:|\n";
    for bound in BOUNDS {
        let within = errors.iter().filter(|e| e.abs() <= f64::from(bound) / 100.0).count();
        let _ = writeln!(table, "| {bound} % | {within} |");
    }
    let _ = writeln!(table, "| all | {} |\n", errors.len());
    table += "| series | steps | in which the model changes likewise |\n|---|--:|--:|\n";
    for group in &checks.direction {
        let (steps, agreed) = steps(&beside(group, &published));
        let _ = writeln!(table, "| {} | {steps} | {agreed} |", group.name);
    }
    table += "\n| not expressed | rows |\n|---|--:|\n";
    for own in &checks.not_expressed {
        let _ = writeln!(table, "| {} | {} |", own.reason, own.rows.len());
    }
    let docs = include_str!("../../../docs/BACKUP.md");
    for line in table.lines().filter(|line| !line.is_empty()) {
        assert!(docs.contains(line), "docs/BACKUP.md does not have {line:?} of\n\n{table}");
    }
}
