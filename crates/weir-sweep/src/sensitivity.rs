//! The parameter that moves a metric most.
//!
//! The main effect of a parameter is the variance of the metric's conditional means, one for each value
//! of the parameter, relative to the variance over all points (the first-order Sobol index, or
//! correlation ratio).

use crate::error::SweepError;
use crate::results::{Column, Kind, Results};
use std::collections::{BTreeMap, BTreeSet};

/// Points of a group of neighbouring values, at least, and groups, at most.
const LEAST_POINTS: usize = 5;
const MOST_GROUPS: usize = 10;

/// The effect of all parameters on a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Sensitivity {
    /// The column of the metric.
    pub metric: String,
    /// Points with a value.
    pub points: usize,
    /// The lowest value.
    pub lowest: f64,
    /// The highest value.
    pub highest: f64,
    /// True if the points are all combinations of values.
    pub is_grid: bool,
    /// The parameters, the largest effect first.
    pub effects: Vec<Effect>,
}

/// The main effect of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// The column of the parameter.
    pub parameter: String,
    /// Share of the variance, from 0 to 1; 0 if the metric is the same everywhere.
    pub share: f64,
    /// The share that a parameter without effect has on average, if the points are no grid.
    pub by_chance: Option<f64>,
    /// The values, in their order, or groups of neighbouring ones.
    pub groups: Vec<Group>,
}

/// Points that share a value, or neighbouring values, of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The value.
    pub value: String,
    /// The last value, if there are several.
    pub to: Option<String>,
    /// Number of points.
    pub points: usize,
    /// Mean of the metric.
    pub mean: f64,
}

/// Ranks the parameters of `results` by their effect on a metric, which `what` names.
///
/// # Errors
///
/// [`SweepError::Column`] if there is no such metric, or it has no numbers.
pub fn sensitivity(
    results: &Results,
    what: &'static str,
    metric: &str,
) -> Result<Sensitivity, SweepError> {
    let at = results.columns().find_metric(what, metric)?;
    let rows: Vec<(&Vec<String>, f64)> =
        results.valid().filter_map(|row| Some((row, row[at].parse().ok()?))).collect();
    if rows.is_empty() {
        let reason = "no point has a number in this column; prices need an edition with prices";
        let (name, reason) = (metric.to_owned(), reason.to_owned());
        return Err(SweepError::Column { what, name, reason, near: None });
    }
    let is_grid = is_grid(results, rows.len());
    let effect = |(at, own): (usize, &Column)| effect(own, at, &rows, is_grid);
    let mut effects: Vec<Effect> = results.columns().parameters().map(effect).collect();
    // A stable sort: equal effects stay in the order of the file.
    effects.sort_by(|one, other| other.share.total_cmp(&one.share));
    let values = || rows.iter().map(|(_, value)| *value);
    Ok(Sensitivity {
        metric: results.columns().all()[at].name.clone(),
        points: rows.len(),
        lowest: values().fold(f64::INFINITY, f64::min),
        highest: values().fold(f64::NEG_INFINITY, f64::max),
        is_grid,
        effects,
    })
}

/// Returns whether the points are all combinations of the values of the parameters.
fn is_grid(results: &Results, points: usize) -> bool {
    let counts = results.columns().parameters().map(|(at, _)| {
        results.rows().iter().map(|row| row[at].as_str()).collect::<BTreeSet<_>>().len()
    });
    if counts.fold(1, usize::saturating_mul) != points {
        return false;
    }
    // A sample may have as many points, and some of them twice.
    let places: Vec<usize> = results.columns().parameters().map(|(at, _)| at).collect();
    let combination = |row: &'_ Vec<String>| -> Vec<String> {
        places.iter().map(|at| row[*at].clone()).collect()
    };
    results.rows().iter().map(combination).collect::<BTreeSet<_>>().len() == points
}

fn effect(column: &Column, at: usize, rows: &[(&Vec<String>, f64)], is_grid: bool) -> Effect {
    let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (row, value) in rows {
        values.entry(row[at].as_str()).or_default().push(*value);
    }
    let mut values: Vec<(&str, Vec<f64>)> = values.into_iter().collect();
    if column.kind == Kind::Number {
        let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
        values.sort_by(|(one, _), (other, _)| number(one).total_cmp(&number(other)));
    }
    let is_scattered = values.len() * LEAST_POINTS > rows.len() && values.len() > 2;
    let groups = if column.kind == Kind::Number && !is_grid && is_scattered {
        neighbours(&values, rows.len())
    } else {
        values.into_iter().map(|(text, own)| (text, None, own)).collect()
    };
    let total = mean(rows.iter().map(|(_, value)| *value));
    let variance: f64 = rows.iter().map(|(_, value)| (value - total).powi(2)).sum();
    let between: f64 = groups
        .iter()
        .map(|(.., own)| count(own.len()) * (mean(own.iter().copied()) - total).powi(2))
        .sum();
    // Equal sums differ in their last digits.
    let rounded = |share: f64| (share * 1e9).round() / 1e9;
    let share = if variance > 0.0 { rounded(between / variance) } else { 0.0 };
    let freedom = count(groups.len() - 1) / count((rows.len() - 1).max(1));
    Effect {
        parameter: column.name.clone(),
        share,
        by_chance: (!is_grid).then_some(freedom),
        groups: groups.into_iter().map(group).collect(),
    }
}

/// Values of points that share a value, with the first and the last value if there are several.
type Grouped<'a> = (&'a str, Option<&'a str>, Vec<f64>);

fn group((value, to, own): Grouped<'_>) -> Group {
    Group {
        value: value.to_owned(),
        to: to.map(str::to_owned),
        points: own.len(),
        mean: mean(own.iter().copied()),
    }
}

/// Joins neighbouring values into groups with about as many points each.
fn neighbours<'a>(values: &[(&'a str, Vec<f64>)], points: usize) -> Vec<Grouped<'a>> {
    let wanted = (points / LEAST_POINTS).clamp(2, MOST_GROUPS);
    let mut groups: Vec<Grouped<'a>> = Vec::new();
    let mut before = 0;
    for (text, own) in values {
        // The group of a value is that of its first point.
        let is_new = before * wanted / points >= groups.len();
        match groups.last_mut().filter(|_| !is_new) {
            Some((_, to, all)) => {
                *to = Some(text);
                all.extend(own);
            }
            None => groups.push((text, None, own.clone())),
        }
        before += own.len();
    }
    groups
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

#[expect(clippy::cast_precision_loss, reason = "at most a million points")]
const fn count(n: usize) -> f64 {
    n as f64
}
