//! Columns and rows of results.
//!
//! A field is a text, and a field without a value is empty. Numbers are written with as many digits as
//! it takes to read the same number again, so results that are read and written stay the same.

use crate::design::Axis;
use crate::error::SweepError;
use crate::file::near;
use crate::value;
use std::collections::BTreeSet;

/// Columns before the parameters.
const HEAD: [(&str, Kind); 4] =
    [("sweep", Kind::Text), ("points", Kind::Whole), ("point", Kind::Whole), ("seed", Kind::Whole)];
/// Columns between the parameters and the metrics.
const STATUS: [(&str, Kind); 2] = [("status", Kind::Text), ("reason", Kind::Text)];

/// Metrics that are texts.
const TEXTS: [&str; 3] = ["binding_limit", "currency", "keeps_up"];

/// Short names of columns.
const SHORT: [(&str, &str); 13] = [
    ("throughput", "throughput_bytes_per_s"),
    ("latency", "latency_mean_ns"),
    ("mean", "latency_mean_ns"),
    ("p50", "latency_p50_ns"),
    ("median", "latency_p50_ns"),
    ("p99", "latency_p99_ns"),
    ("transactions", "transactions_per_min"),
    ("response", "response_mean_ns"),
    ("backup", "backup_s"),
    ("elapsed", "elapsed_s"),
    ("behind", "behind_most_ns"),
    ("waiting", "binding_share"),
    ("price", "price_per_month"),
];

/// Returns whether results have a column of this name by themselves.
pub(crate) fn reserved(name: &str) -> bool {
    HEAD.iter().chain(&STATUS).any(|(own, _)| *own == name)
}

/// The contents of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers.
    Whole,
    /// Numbers.
    Number,
    /// Texts.
    Text,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its contents.
    pub kind: Kind,
}

impl Column {
    pub(crate) fn new(name: &str, kind: Kind) -> Self {
        Self { name: name.to_owned(), kind }
    }

    /// Returns the column of a parameter.
    pub(crate) fn parameter(axis: &Axis) -> Self {
        let own = axis.kind();
        let kind = if own == value::Kind::Texts { Kind::Text } else { Kind::Number };
        Self { name: own.column(&axis.name), kind }
    }
}

/// The columns of results, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    all: Vec<Column>,
    parameters: usize,
}

impl Columns {
    pub(crate) fn new(parameters: Vec<Column>, metrics: Vec<Column>) -> Self {
        let fixed = |(name, kind): &(&str, Kind)| Column::new(name, *kind);
        let count = parameters.len();
        let mut all: Vec<Column> = HEAD.iter().map(fixed).collect();
        all.extend(parameters);
        all.extend(STATUS.iter().map(fixed));
        all.extend(metrics);
        Self { all, parameters: count }
    }

    /// Recognises the columns of results by their names; `None` if they are no results. The kinds of
    /// parameters and metrics are [`Kind::Text`] at first.
    fn named<'a>(names: impl Iterator<Item = &'a str>) -> Option<Self> {
        let names: Vec<&str> = names.collect();
        let status = names.iter().position(|name| *name == STATUS[0].0)?;
        let has = |from: usize, own: &[(&str, Kind)]| {
            own.iter().enumerate().all(|(at, (name, _))| names.get(from + at) == Some(name))
        };
        if !has(0, &HEAD) || !has(status, &STATUS) || status <= HEAD.len() {
            return None;
        }
        let distinct: BTreeSet<&str> = names.iter().copied().collect();
        let text = |name: &&str| Column::new(name, Kind::Text);
        let parameters = names[HEAD.len()..status].iter().map(text).collect();
        let metrics = names[status + STATUS.len()..].iter().map(text).collect();
        (distinct.len() == names.len()).then(|| Self::new(parameters, metrics))
    }

    /// Returns all columns.
    #[must_use]
    pub fn all(&self) -> &[Column] {
        &self.all
    }

    /// Returns the columns of the parameters, each with its place.
    pub fn parameters(&self) -> impl Iterator<Item = (usize, &Column)> {
        self.all.iter().enumerate().skip(HEAD.len()).take(self.parameters)
    }

    /// Returns the columns of the metrics.
    pub fn metrics(&self) -> impl Iterator<Item = &Column> {
        self.all[self.status() + STATUS.len()..].iter()
    }

    const fn status(&self) -> usize {
        HEAD.len() + self.parameters
    }

    /// Returns the place of a column by its name, or by a short name.
    ///
    /// # Errors
    ///
    /// [`SweepError::Column`]; `what` is the option that names it.
    pub fn find(&self, what: &'static str, name: &str) -> Result<usize, SweepError> {
        let at = |name: &str| self.all.iter().position(|own| own.name == name);
        let short = SHORT.iter().find(|(short, _)| *short == name);
        at(name).or_else(|| at(short?.1)).ok_or_else(|| {
            let known: Vec<&str> = self.all.iter().map(|own| own.name.as_str()).collect();
            let short = SHORT.iter().filter(|(_, long)| known.contains(long));
            let names = known.iter().copied().chain(short.map(|(short, _)| *short));
            let reason =
                format!("the results have no such column; they have: {}", known.join(", "));
            SweepError::Column { what, name: name.to_owned(), near: near(name, names), reason }
        })
    }

    /// Returns the place of a metric.
    ///
    /// # Errors
    ///
    /// [`SweepError::Column`] as for [`find`](Self::find), or if the column is no metric with
    /// numbers.
    pub fn find_metric(&self, what: &'static str, name: &str) -> Result<usize, SweepError> {
        let at = self.find(what, name)?;
        let is_metric = at >= self.status() + STATUS.len();
        // Results that are read have no kind for a column without values.
        let is_text = TEXTS.contains(&self.all[at].name.as_str());
        if is_metric && !is_text {
            return Ok(at);
        }
        let reason = "this column is no metric with numbers".to_owned();
        Err(SweepError::Column { what, name: name.to_owned(), reason, near: None })
    }
}

/// The results of a sweep, or of a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Results {
    columns: Columns,
    rows: Vec<Vec<String>>,
}

impl Results {
    /// Makes results of rows in the order of their points.
    pub(crate) const fn new(columns: Columns, rows: Vec<Vec<String>>) -> Self {
        Self { columns, rows }
    }

    /// Reads results from the names of columns and the fields of rows. `file` is their name in
    /// messages.
    ///
    /// # Errors
    ///
    /// [`SweepError::Results`] if the columns are no results of a sweep, or a field is wrong.
    pub fn read<'a>(
        file: &str,
        names: impl Iterator<Item = &'a str>,
        rows: Vec<Vec<String>>,
    ) -> Result<Self, SweepError> {
        let wrong = |reason: String| Err(SweepError::Results { file: file.to_owned(), reason });
        let Some(mut columns) = Columns::named(names) else {
            return wrong("these are no results of weir sweep: other columns are expected".into());
        };
        for (at, row) in rows.iter().enumerate() {
            if row.len() != columns.all.len() {
                let expect = columns.all.len();
                return wrong(format!("row {}: {} fields, {expect} expected", at + 1, row.len()));
            }
            for (column, field) in columns.all.iter().zip(row) {
                if column.kind == Kind::Whole && field.parse::<u64>().is_err() {
                    let name = &column.name;
                    return wrong(format!("row {}: {name} = {field:?} is no whole number", at + 1));
                }
            }
        }
        if rows.is_empty() {
            return wrong("there are no rows".to_owned());
        }
        let status = columns.status();
        for (at, column) in columns.all.iter_mut().enumerate() {
            let is_free = at >= HEAD.len() && at != status && at != status + 1;
            let mut fields = rows.iter().map(|row| row[at].as_str()).filter(|own| !own.is_empty());
            // A number that is not written as Weir writes it is a text.
            let is_number = |field: &str| {
                field.parse::<f64>().is_ok_and(|x| x.is_finite() && x.to_string() == field)
            };
            if is_free && fields.clone().next().is_some() && fields.all(is_number) {
                column.kind = Kind::Number;
            }
        }
        Ok(Self { columns, rows })
    }

    /// Returns the columns.
    #[must_use]
    pub const fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Returns the rows.
    #[must_use]
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    pub(crate) fn into_rows(self) -> Vec<Vec<String>> {
        self.rows
    }

    /// Returns the identity of the sweep.
    #[must_use]
    pub fn identity(&self) -> &str {
        self.rows.first().map_or("", |row| row[0].as_str())
    }

    /// Returns the number of points of the whole sweep.
    #[must_use]
    pub fn points(&self) -> u64 {
        self.rows.first().and_then(|row| row[1].parse().ok()).unwrap_or(0)
    }

    /// Returns the point of a row.
    pub(crate) fn point(row: &[String]) -> u64 {
        row[2].parse().unwrap_or(u64::MAX)
    }

    /// Returns the rows of points that were simulated.
    pub fn valid(&self) -> impl Iterator<Item = &Vec<String>> {
        let status = self.columns.status();
        self.rows.iter().filter(move |row| row[status] == "ok")
    }

    /// Returns the first point that could not be simulated, with its reason.
    #[must_use]
    pub fn first_invalid(&self) -> Option<(u64, &str)> {
        let status = self.columns.status();
        let row = self.rows.iter().find(|row| row[status] != "ok")?;
        Some((Self::point(row), &row[status + 1]))
    }

    /// Returns the metric that results are ranked by if none is named: transactions, the latency of a
    /// replay, operations per second, or the time of a backup.
    #[must_use]
    pub fn main_metric(&self) -> &'static str {
        let has = |name: &&str| self.columns.metrics().any(|own| own.name == *name);
        // The rate of a replay is that of its traces.
        if has(&"behind_most_ns") {
            return "latency_mean_ns";
        }
        let order = ["transactions_per_min", "iops", "backup_s"];
        order.into_iter().find(has).unwrap_or("iops")
    }
}
