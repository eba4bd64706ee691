//! Plots of one column against another.

use crate::error::CliError;
use std::collections::BTreeMap;
use weir_report::scatter::Scatter;
use weir_report::sweep::SensitivityReport;
use weir_sweep::results::{Columns, Kind};
use weir_sweep::sensitivity::sensitivity;
use weir_sweep::{Results, SweepError};

/// Points of a plot, at most; more are too many for a browser.
const MOST_POINTS: usize = 10_000;

/// Refuses plots of columns that do not exist, or of texts as heights.
pub(super) fn check(plots: &[(String, String)], columns: &Columns) -> Result<(), CliError> {
    for (x, y) in plots {
        columns.find("--plot", x)?;
        let up = &columns.all()[columns.find("--plot", y)?];
        if up.kind == Kind::Text {
            let reason = "the values of y are texts; give a column of numbers".to_owned();
            let (what, name) = ("--plot", up.name.clone());
            return Err(SweepError::Column { what, name, reason, near: None }.into());
        }
    }
    Ok(())
}

/// Returns the plots of the options; by default one of the ranked metric against each parameter.
pub(super) fn plots(
    wanted: &[(String, String)],
    found: Option<&SensitivityReport>,
    results: &Results,
) -> Result<Vec<Scatter>, CliError> {
    if !wanted.is_empty() {
        return wanted.iter().map(|(x, y)| plot(x, y, results)).collect();
    }
    let Some(found) = found else { return Ok(Vec::new()) };
    let one = |parameter: &str| plot(parameter, &found.metric, results);
    found.parameters.iter().map(|own| one(&own.parameter)).collect()
}

fn plot(x: &str, y: &str, results: &Results) -> Result<Scatter, CliError> {
    let columns = results.columns();
    let (x, y) = (columns.find("--plot", x)?, columns.find("--plot", y)?);
    let (across, up) = (&columns.all()[x], &columns.all()[y]);
    // Names are in the order of the results, which is that of the sweep file for a grid.
    let mut names: Vec<String> = Vec::new();
    let mut places: BTreeMap<&str, f64> = BTreeMap::new();
    for field in results.valid().map(|row| row[x].as_str()).filter(|_| across.kind == Kind::Text) {
        #[expect(clippy::cast_precision_loss, reason = "a number of names")]
        let next = names.len() as f64;
        places.entry(field).or_insert_with(|| {
            names.push(field.to_owned());
            next
        });
    }
    let place = |field: &str| match across.kind {
        Kind::Text => places.get(field).copied(),
        Kind::Whole | Kind::Number => field.parse().ok(),
    };
    let every = results.valid().count().div_ceil(MOST_POINTS).max(1);
    let rows = results.valid().step_by(every);
    let points = rows.filter_map(|row| Some((place(&row[x])?, row[y].parse().ok()?))).collect();
    // The line goes through the means at the values of a parameter.
    let is_metric = columns.metrics().any(|own| own.name == up.name);
    let found = is_metric.then(|| sensitivity(results, "--plot", &up.name)).transpose()?;
    let effects = found.into_iter().flat_map(|found| found.effects);
    let groups = effects.filter(|own| own.parameter == across.name).flat_map(|own| own.groups);
    let line = groups.filter_map(|group| {
        let (from, to) = (place(&group.value)?, group.to.as_deref().and_then(place));
        Some((to.map_or(from, |to| f64::midpoint(from, to)), group.mean))
    });
    let mut line: Vec<(f64, f64)> = line.collect();
    line.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let selected = if every > 1 { format!(" (every {every}th point)") } else { String::new() };
    let (x, y) = (format!("{}{selected}", across.name), up.name.clone());
    Ok(Scatter { x, y, names, points, line })
}
