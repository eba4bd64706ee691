//! Shards of a sweep, put together.

use crate::error::SweepError;
use crate::results::Results;
use std::collections::BTreeMap;

/// Points that a message names.
const NAMED: usize = 5;

/// Puts the shards of a sweep together. Each has the name of its file.
///
/// # Errors
///
/// [`SweepError::Merge`] if they are of different sweeps, have a point twice, or lack one.
pub fn merge(shards: Vec<(String, Results)>) -> Result<Results, SweepError> {
    let Some((first, head)) = shards.first() else {
        return Err(SweepError::Merge("there are none".to_owned()));
    };
    let (first, columns) = (first.clone(), head.columns().clone());
    let (identity, points) = (head.identity().to_owned(), head.points());
    let mut rows: BTreeMap<u64, (usize, Vec<String>)> = BTreeMap::new();
    let names: Vec<String> = shards.iter().map(|(name, _)| name.clone()).collect();
    let mut doubles: Vec<(u64, usize, usize)> = Vec::new();
    for (at, (name, shard)) in shards.into_iter().enumerate() {
        let own = shard.columns().all().iter().map(|column| &column.name);
        if !own.eq(columns.all().iter().map(|column| &column.name)) {
            let words =
                format!("{first} and {name} have different columns: they are of different sweeps");
            return Err(SweepError::Merge(words));
        }
        for row in shard.into_rows() {
            if row[0] != identity || row[1] != points.to_string() {
                return Err(SweepError::Merge(format!(
                    "{first} is of the sweep {identity}, and {name} of {}: the sweep file, the \
                     layout, the workload, the catalog or Weir's version was different",
                    row[0]
                )));
            }
            let point = Results::point(&row);
            if let Some((other, _)) = rows.insert(point, (at, row)) {
                doubles.push((point, other, at));
            }
        }
    }
    if let Some((_, one, other)) = doubles.first() {
        let same: Vec<u64> = doubles
            .iter()
            .filter(|(_, a, b)| (a, b) == (one, other))
            .map(|(point, ..)| *point)
            .collect();
        let (one, other) = (&names[*one], &names[*other]);
        let words = format!("{} of both {one} and {other}; give each shard once", list(&same));
        return Err(SweepError::Merge(format!("there is twice: {words}")));
    }
    if let Some(point) = rows.keys().next_back().filter(|point| **point >= points) {
        return Err(SweepError::Merge(format!("point {point} is beyond the {points} points")));
    }
    let missing: Vec<u64> = (0..points).filter(|point| !rows.contains_key(point)).collect();
    if !missing.is_empty() {
        let words = list(&missing);
        return Err(SweepError::Merge(format!(
            "{words} of {points} missing; add the shards that have them",
        )));
    }
    let rows: Vec<Vec<String>> = rows.into_values().map(|(_, row)| row).collect();
    // The kinds of columns follow from all rows: a shard may have numbers only.
    let names = columns.all().iter().map(|column| column.name.as_str());
    Results::read("the merged results", names, rows)
}

/// Names points.
fn list(points: &[u64]) -> String {
    let named: Vec<String> = points.iter().take(NAMED).map(u64::to_string).collect();
    let more = points.len().saturating_sub(NAMED);
    match (points, more) {
        ([one], _) => format!("point {one}"),
        (_, 0) => format!("points {}", named.join(", ")),
        _ => format!("points {} and {more} more", named.join(", ")),
    }
}
